//! Scheduled traffic: frames whose instants are known, behind gates whose windows are known. What
//! [`super::gates`] takes the worst alignment of is followed here frame by frame.

use super::arrival::Arrival;
use super::bound::longest_run;
use super::flow::{Analysis, Place};
use super::gates;
use super::network::Whose;
use onbeat_model::port::{GateControl, Selection};
use onbeat_model::stream::Source;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{LocalTime, NetTime, Span};
use onbeat_model::units::Octets;

/// The most frames that are followed at one queue.
const FRAMES_MAX: i128 = 20_000;

/// After so many repetitions of the whole pattern the last two must be alike.
const PATTERNS: i128 = 3;

/// A clock's instants are whole nanoseconds.
const ROUNDING: i128 = 2;

/// One frame at a queue. Instants are true network time in nanoseconds.
struct Due {
    flow: usize,
    /// When it is released, by a right clock.
    released: i128,
    /// When it may really be released.
    may: [i128; 2],
    /// When it may be queued.
    arrives: [i128; 2],
    /// What it takes of the wire, gap included.
    takes: i128,
}

/// From release to the start of transmission, of all frames of one flow, whenever each is really
/// released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) early: i128,
    pub(super) late: i128,
}

/// By how much a node's clock may be wrong until the longest run is over.
fn error(system: &System, node: NodeId) -> i128 {
    let end = NetTime::ZERO + longest_run(system) + Span::from_s(1);
    let error = i128::from(system.node(node).clock.max_abs(end).as_ns());
    if error == 0 { 0 } else { error + ROUNDING }
}

impl Analysis<'_> {
    /// When the frames of each flow in a queue start, if all of them are scheduled and have windows
    /// of their own; in the order of the queue's members.
    pub(super) fn followed(&self, place: Place) -> Option<Vec<Start>> {
        let (port, queue) = place;
        let settings = &self.network.plan.ports[port].settings;
        let [list] = &settings.gates[..] else { return None };
        let node = self.network.system.ports[port].node;
        let error = error(self.network.system, node);
        let begins = i128::from(list.base.as_ns());
        let clock = &self.network.system.node(node).clock;
        let first = i128::from(clock.when(LocalTime::from_ns(list.base.as_ns())).as_ns());
        let alone = settings.selection[queue] == Selection::StrictPriority
            && settings.preemptable >> queue & 1 == 0
            && list.length_aware
            && begins <= error
            && self.is_alone(place, list);
        if !alone {
            return None;
        }
        let cycle = i128::from(list.cycle.as_ns());
        let windows = gates::open_between(list, queue, begins.rem_euclid(cycle), error);
        let pattern = self.pattern(place, cycle)?;
        let mut frames = self.frames_due(place, pattern * PATTERNS)?;
        if first > 0 {
            // Until the first cycle begins, others may start what is still on the wire then.
            let longest = self.network.longest[port].iter().max()?;
            let takes = self.time_on_wire(port, *longest);
            let flow = usize::MAX;
            frames.push(Due { flow, released: 0, may: [0; 2], arrives: [-1, first], takes });
        }
        frames.sort_by_key(|due| due.arrives[0]);
        let starts = follow(&frames, &windows, first, cycle)?;
        self.settled(place, &frames, &starts, pattern)
    }

    /// Whether no other queue that may hold anything is open when this one is.
    fn is_alone(&self, (port, queue): Place, list: &GateControl) -> bool {
        let others = (0..8).filter(|other| *other != queue);
        let used = others.filter(|other| self.network.longest[port][*other].get() > 0);
        let used = used.fold(0u8, |mask, other| mask | 1 << other);
        list.entries.iter().all(|entry| entry.open >> queue & 1 == 0 || entry.open & used == 0)
    }

    /// After how long everything comes again: the least common multiple of the cycle and all
    /// intervals, if it is not too long.
    fn pattern(&self, place: Place, cycle: i128) -> Option<i128> {
        let mut pattern = cycle;
        for &(f, _) in &self.members[&place] {
            let (_, interval, _) = self.instants(f)?;
            pattern = pattern / gcd(pattern, interval) * interval;
        }
        let count = |&(f, _): &(usize, usize)| {
            let (_, interval, frames) = self.instants(f).expect("just looked at");
            pattern / interval * frames
        };
        let frames: i128 = self.members[&place].iter().map(count).sum();
        (frames * (PATTERNS + 1) <= FRAMES_MAX).then_some(pattern)
    }

    /// Phase, interval and frames per interval of a flow whose instants are known.
    fn instants(&self, f: usize) -> Option<(i128, i128, i128)> {
        let flow = &self.network.flows[f];
        let Whose::Stream(id) = flow.whose else { return None };
        let stream = &self.network.system.streams[id.index()];
        let (interval, frames) = match &stream.source {
            Source::Periodic { interval, .. } => (interval, 1),
            Source::Bursty { interval, frames } => (interval, i128::from(*frames)),
            Source::Sporadic { .. } | Source::Trace(_) => return None,
        };
        let known = !flow.babbles && flow.regulator.is_none();
        let [phase, interval] = [&stream.phase, interval].map(|span| i128::from(span.as_ns()));
        known.then_some((phase, interval, frames))
    }

    fn time_on_wire(&self, port: usize, octets: Octets) -> i128 {
        Arrival::on_wire(self.link_rate(port), octets, Octets::default())
            / i128::from(self.link_rate(port).as_bps())
    }

    /// All frames that are released until all sources have begun and `long` has gone by.
    fn frames_due(&self, place: Place, long: i128) -> Option<Vec<Due>> {
        let system = self.network.system;
        let phases = self.members[&place].iter().map(|&(f, _)| Some(self.instants(f)?.0));
        let end = phases.collect::<Option<Vec<_>>>()?.into_iter().max()? + long;
        let mut frames = Vec::new();
        for &(f, h) in &self.members[&place] {
            let flow = &self.network.flows[f];
            let (phase, interval, batch) = self.instants(f)?;
            let Whose::Stream(id) = flow.whose else { return None };
            let stream = &system.streams[id.index()];
            let jitter = match &stream.source {
                Source::Periodic { jitter, .. } => i128::from(jitter.as_ns()),
                _ => 0,
            };
            let error = error(system, stream.talker);
            let state = self.states[f][h];
            let takes = self.time_on_wire(place.0, flow.arrival.octets[1]);
            let late = state.late?;
            let count = (end - phase) / interval;
            if (count + 1) * batch > FRAMES_MAX {
                return None;
            }
            for k in 0..=count {
                let released = phase + k * interval;
                let may = [released - error, released + jitter + error];
                let arrives = [may[0] + state.early, may[1] + late];
                let due = || Due { flow: f, released, may, arrives, takes };
                frames.extend((0..batch).map(|_| due()));
            }
        }
        Some(frames)
    }

    /// The extremes of each flow, if the pattern has become steady.
    fn settled(
        &self,
        place: Place,
        frames: &[Due],
        starts: &[[i128; 2]],
        pattern: i128,
    ) -> Option<Vec<Start>> {
        let both = || frames.iter().zip(starts);
        let last = frames.iter().map(|due| due.released).max()?;
        let of = |f: usize, from: i128, to: i128| {
            let within = move |due: &Due| due.released > from && due.released <= to;
            let mine = both().filter(move |(due, _)| due.flow == f && within(due));
            mine.map(move |(due, [early, late])| {
                (due.released - from, [early - due.may[1], late - due.may[0]])
            })
        };
        self.members[&place]
            .iter()
            .map(|&(f, _)| {
                let newest = of(f, last - pattern, last);
                let before = of(f, last - 2 * pattern, last - pattern);
                let steady = newest.eq(before);
                let all = || of(f, i128::MIN / 4, last).map(|(_, start)| start);
                let early = all().map(|start| start[0]).min()?;
                let late = all().map(|start| start[1]).max()?;
                steady.then_some(Start { early, late })
            })
            .collect()
    }
}

/// The earliest and latest start of each frame, in order of their earliest arrival. A frame may
/// have before it all that may have come before it and may not yet be gone. Until the `first` cycle
/// begins it may go at once, but others may keep it from the wire. None: one never fits.
fn follow(frames: &[Due], windows: &Windows, first: i128, cycle: i128) -> Option<Vec<[i128; 2]>> {
    let longest = frames.iter().map(|due| due.takes).max()?;
    let mut starts: Vec<[i128; 2]> = Vec::with_capacity(frames.len());
    // What is gone for certain before the earliest arrival of this and all later frames.
    let mut gone = 0;
    for (at, due) in frames.iter().enumerate() {
        let [early, late] = due.arrives;
        while gone < at && starts[gone][1] + frames[gone].takes <= early {
            gone += 1;
        }
        let over = |k: usize| k < at && starts[k][1] + frames[k].takes <= early;
        let ahead = (gone..frames.len()).take_while(|k| frames[*k].arrives[0] <= late);
        let ahead = ahead.filter(|k| *k != at && !over(*k)).map(|k| frames[k].takes).sum();
        let last = windows.serve(late.max(first), ahead, due.takes, longest, cycle)?;
        let soonest = if early <= first { early } else { windows.first(early, cycle) };
        starts.push([soonest, last]);
    }
    Some(starts)
}

/// When a queue's gate is open in each cycle: surely, and perhaps, as clocks err.
pub(super) struct Windows {
    /// In order; the last may end in the next cycle.
    pub(super) sure: Vec<(i128, i128)>,
    /// When each opens at the earliest, and closes at the latest.
    pub(super) perhaps: Vec<(i128, i128)>,
}

impl Windows {
    /// The windows of a list that end after `from`, as true times.
    fn after(
        windows: &[(i128, i128)],
        from: i128,
        cycle: i128,
    ) -> impl Iterator<Item = (i128, i128)> {
        let first = from.div_euclid(cycle) - 1;
        let all = (first..).flat_map(move |n| {
            windows.iter().map(move |(open, close)| (open + n * cycle, close + n * cycle))
        });
        all.filter(move |(_, close)| *close > from)
    }

    /// The earliest instant from `from` on at which the gate may be open.
    fn first(&self, from: i128, cycle: i128) -> i128 {
        let mut after = Self::after(&self.perhaps, from, cycle);
        after.next().map_or(from, |(open, _)| open.max(from))
    }

    /// When a frame that takes `own` starts at the latest, if frames that take `ahead` go before
    /// it, none longer than `longest`, and no window is used before `from`.
    fn serve(
        &self,
        from: i128,
        mut ahead: i128,
        own: i128,
        longest: i128,
        cycle: i128,
    ) -> Option<i128> {
        if self.sure.iter().all(|(open, close)| close - open < own.max(longest)) {
            return None;
        }
        for (open, close) in Self::after(&self.sure, from, cycle) {
            let begin = open.max(from);
            if begin + ahead + own <= close {
                return Some(begin + ahead);
            }
            // What does not fit any more leaves less than the longest frame unused.
            ahead -= (close - begin - longest + 1).clamp(0, ahead);
        }
        None
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
