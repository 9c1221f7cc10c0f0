//! How long after its tag a reaction finishes at most, if its federate begins each tag as late as
//! it may: the greatest backlog over all windows of tags. `docs/lingua-franca.md` ("Bounds and
//! maxwait") has the formulas.

use super::demand::Demand;
use super::stream::{Stream, gcd};
use super::{Figure, Ns, Unknown, ns};
use onbeat_model::federation::Tag;
use std::collections::BTreeSet;

/// So many tags of a federate are looked at one by one; beyond, by their spacings.
const TAGS_MAX: Ns = 100_000;
/// So often may the work in a window grow before it ends.
const STEPS_MAX: usize = 20_000;
/// Whatever takes longer, ten years, has no bound.
const FOREVER: Ns = 10 * 366 * 86_400 * 1_000_000_000;
/// Parts of one.
const PPM: Ns = 1_000_000;

/// A reaction of a federate, by its position.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The longest execution.
    pub(super) worst: Ns,
    pub(super) streams: BTreeSet<Stream>,
    /// How much later than the federate's wait it may wait for inputs, at this position.
    pub(super) more: Ns,
}

/// All that a federate executes.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// In their order.
    pub(super) tasks: Vec<Task>,
    /// Per connection from the federate: the positions of its writers, in order.
    pub(super) outputs: Vec<Vec<usize>>,
    /// How much later than its wait it may wait for any input.
    pub(super) more: Ns,
}

/// From when the federate stops waiting, at the latest, to the end at the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// Of each reaction.
    pub(super) tasks: Vec<Ns>,
    /// Of all that a message on each output waits for.
    pub(super) outputs: Vec<Ns>,
}

/// How long work takes on processors that others use too: from the work, the time.
pub(super) type Completion<'a> = dyn Fn(Ns) -> Figure<Ns> + 'a;

impl Work {
    /// The share of a processor that it needs, in parts per million, rounded up.
    pub(super) fn ppm(&self) -> Ns {
        let demand = |task: &Task| {
            let streams = task.streams.iter().filter_map(Stream::spacing);
            streams.map(|spacing| ceil(task.worst * PPM, spacing)).sum::<Ns>()
        };
        let by_spacing = self.tasks.iter().map(demand).sum();
        // Where several causes share tags, a reaction executes once for all.
        self.cycle().map_or(by_spacing, |(work, length)| ceil(work * PPM, length).min(by_spacing))
    }

    /// The work of a hyperperiod, and its length, if all tags are known and not too many.
    fn cycle(&self) -> Option<(Ns, Ns)> {
        if !self.tasks.iter().flat_map(|task| &task.streams).all(is_known) {
            return None;
        }
        let (begin, length) = self.horizon()?;
        let mut total = 0;
        for (tag, task) in self.tags(begin + 2 * length) {
            let time = ns(tag.time);
            if (begin + length..begin + 2 * length).contains(&time) {
                total += self.tasks[task].worst;
            }
        }
        (length > 0).then_some((total, length))
    }

    /// When each reaction has finished at the latest, and each output.
    pub(super) fn ends(&self, completion: Option<&Completion<'_>>) -> Figure<Ends> {
        if let Some(ends) = self.exactly(completion.is_some()) {
            return ends;
        }
        let completion = completion.unwrap_or(&Ok);
        let demand = Demand::new(self);
        let mut ends = Ends::default();
        for at in 0..self.tasks.len() {
            ends.tasks.push(self.end(&demand, at, &[at], completion)?);
        }
        for writers in &self.outputs {
            let last = writers.last().copied().unwrap_or(0);
            ends.outputs.push(self.end(&demand, last, writers, completion)?);
        }
        Ok(ends)
    }

    /// The last first tag and the hyperperiod of the tags that are known, if they are not too many.
    fn horizon(&self) -> Option<(Ns, Ns)> {
        let fixed = || self.tasks.iter().flat_map(|task| &task.streams);
        let (mut begin, mut length): (Ns, Ns) = (0, 0);
        for stream in fixed() {
            let Stream::Fixed { first, period } = stream else { continue };
            begin = begin.max(ns(first.time));
            if let Some(period) = period {
                length = match length {
                    0 => *period,
                    _ => (length / gcd(length, *period)).checked_mul(*period)?,
                };
            }
            if length > FOREVER {
                return None;
            }
        }
        let until = begin + 2 * length;
        let count = |stream: &Stream| match stream {
            Stream::Fixed { first, period: Some(period) } => (until - ns(first.time)) / period + 1,
            _ => 1,
        };
        (fixed().map(count).sum::<Ns>() <= TAGS_MAX).then_some((begin, length))
    }

    /// All known tags up to a time, in order, with the reactions that execute.
    fn tags(&self, until: Ns) -> Vec<(Tag, usize)> {
        let mut all = Vec::new();
        for (at, task) in self.tasks.iter().enumerate() {
            for stream in &task.streams {
                let Stream::Fixed { first, period } = stream else { continue };
                let (mut time, step) = (ns(first.time), period.unwrap_or(FOREVER));
                while time <= until {
                    let time_of = super::span(time).unwrap_or_default();
                    all.push((Tag { time: time_of, microstep: first.microstep }, at));
                    time += step;
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The ends, where all tags are known but for some that happen once: tag by tag, up to when the
    /// backlog repeats. After the last first tag and one hyperperiod it is no greater than before:
    /// the backlog at the end of a hyperperiod is the greater of a constant and the one before it
    /// less what remains of the processor.
    fn exactly(&self, is_shared: bool) -> Option<Figure<Ends>> {
        let streams = || self.tasks.iter().flat_map(|task| &task.streams);
        if is_shared || !streams().all(is_known) {
            return None;
        }
        let (begin, length) = self.horizon()?;
        if let Some((work, length)) = self.cycle().filter(|(work, length)| work > length) {
            return Some(Err(overload(ceil(work * PPM, length))));
        }
        // What happens once, whenever, delays everything once.
        let is_loose = |stream: &&Stream| matches!(stream, Stream::Loose(_));
        let once = |task: &Task| task.worst * task.streams.iter().filter(is_loose).count() as Ns;
        let loose: Ns = self.tasks.iter().map(once).sum();
        let mut work = self.clone();
        if streams().any(|stream| is_loose(&stream)) {
            // It may wait for any input right before any other tag.
            work.tasks.iter_mut().for_each(|task| task.more = self.more);
        }
        let mut backlog = Backlog::new(&work);
        for (tag, task) in self.tags(begin + 2 * length) {
            backlog.execute(tag, task);
        }
        let Backlog { mut ends, greatest, .. } = backlog.end();
        for (at, task) in self.tasks.iter().enumerate() {
            if task.streams.iter().any(|stream| is_loose(&stream)) {
                ends.tasks[at] = ends.tasks[at].max(greatest).max(self.more);
            }
            ends.tasks[at] += loose;
        }
        for (at, writers) in self.outputs.iter().enumerate() {
            let mut streams = writers.iter().flat_map(|at| &self.tasks[*at].streams);
            if streams.any(|stream| is_loose(&stream)) {
                ends.outputs[at] = ends.outputs[at].max(greatest).max(self.more);
            }
            ends.outputs[at] += loose;
        }
        Some(Ok(ends))
    }

    /// The end of the reactions up to `last` at tags of some of them, by spacings: over all windows
    /// that end at such a tag, the time that their work takes beyond their length.
    fn end(
        &self,
        demand: &Demand,
        last: usize,
        writers: &[usize],
        completion: &Completion<'_>,
    ) -> Figure<Ns> {
        let mut worst = 0;
        for end in demand.ends(last, writers) {
            let mut window = 0;
            for step in 0.. {
                worst = worst.max(completion(demand.until(end, window))? - window);
                let idle = completion(demand.most(window))?;
                let Some(next) = demand.next(window).filter(|next| *next < idle) else { break };
                if step >= STEPS_MAX || next > FOREVER {
                    return Err(self.endless());
                }
                window = next;
            }
        }
        Ok(worst + self.more)
    }

    fn endless(&self) -> Unknown {
        let ppm = self.ppm();
        if ppm >= PPM {
            return overload(ppm);
        }
        Unknown("its processor is never certainly idle".to_owned())
    }
}

/// Whether a stream's tags are known, or it has one only.
fn is_known(stream: &Stream) -> bool {
    matches!(stream, Stream::Fixed { .. }) || stream.spacing().is_none()
}

fn overload(ppm: Ns) -> Unknown {
    let (whole, rest) = (ppm / 10_000, ppm % 10_000 / 100);
    Unknown(format!("its reactions need {whole}.{rest:02} % of a processor"))
}

/// The quotient, rounded up.
fn ceil(a: Ns, b: Ns) -> Ns {
    (a + b - 1) / b
}

/// A federate that executes tag after tag, each begun as late as it may and as long as it may.
struct Backlog<'a> {
    work: &'a Work,
    ends: Ends,
    /// From any tag to the end of all that executes there, at most.
    greatest: Ns,
    /// Up to when it is busy.
    now: Ns,
    current: Option<Tag>,
    /// Per output: when its last writer, or what is between its writers, was done; and whether a
    /// writer executed at all.
    outputs: Vec<(Ns, bool)>,
}

impl<'a> Backlog<'a> {
    fn new(work: &'a Work) -> Self {
        let outputs = work.outputs.len();
        Self {
            work,
            ends: Ends { tasks: vec![0; work.tasks.len()], outputs: vec![0; outputs] },
            greatest: 0,
            now: Ns::MIN / 4,
            current: None,
            outputs: vec![(0, false); outputs],
        }
    }

    fn execute(&mut self, tag: Tag, at: usize) {
        if self.current != Some(tag) {
            self.leave();
            self.current = Some(tag);
            self.outputs.fill((ns(tag.time), false));
        }
        let (time, task) = (ns(tag.time), &self.work.tasks[at]);
        self.now = self.now.max(time + task.more) + task.worst;
        self.ends.tasks[at] = self.ends.tasks[at].max(self.now - time);
        for (writers, (done, is_set)) in self.work.outputs.iter().zip(&mut self.outputs) {
            if writers.last().is_some_and(|last| at <= *last) {
                *done = self.now;
            }
            *is_set |= writers.contains(&at);
        }
    }

    /// Ends the current tag: all its inputs are waited for.
    fn leave(&mut self) {
        let Some(tag) = self.current else { return };
        let time = ns(tag.time);
        for (end, (done, is_set)) in self.ends.outputs.iter_mut().zip(&self.outputs) {
            if *is_set {
                *end = (*end).max(done - time);
            }
        }
        self.now = self.now.max(time + self.work.more);
        self.greatest = self.greatest.max(self.now - time);
    }

    fn end(mut self) -> Self {
        self.leave();
        self
    }
}
