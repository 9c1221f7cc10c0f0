//! Scheduled traffic: frames whose instants are known, behind gates whose windows are known. What
//! [`super::gates`] takes the worst alignment of is followed here frame by frame.

use super::arrival::{Arrival, clock_rate};
use super::bound::longest_run;
use super::flow::{Analysis, QueueId};
use super::gates;
use super::network::Owner;
use super::{BILLION, div_ceil};
use onbeat_model::port::{GateControl, Selection};
use onbeat_model::stream::Source;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::Octets;

/// The most frames of one repetition of a queue's pattern that are followed.
const FRAMES_MAX: i128 = 20_000;

/// The most frames of all queues together, each counted as often as it is followed. What is not
/// followed then has the bound of the worst alignment.
pub(super) const FOLLOWED_MAX: i128 = 1_000_000;

/// A clock's instants are whole nanoseconds.
pub(crate) const ROUNDING: Span = Span::from_ns(2);

/// From release to the start of transmission, of all frames of one flow, whenever each is really
/// released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) early: i128,
    pub(super) late: i128,
}

/// One flow at a queue. Instants are true network time in nanoseconds.
struct Train {
    interval: i128,
    /// Frames that are released together.
    batch: i128,
    /// What each takes of the wire, gap included.
    takes: i128,
    /// The first instant, not before zero, until which frames of an interval are all queued.
    queued: i128,
    /// How much earlier they may be queued, and how much earlier they are released at least and
    /// at most.
    width: i128,
    released: [i128; 2],
    /// The talker's nanoseconds per 10⁹ true ones.
    clock: i128,
}

impl Train {
    /// What it takes of the wire in 10¹⁸ ns, by a clock with so many nanoseconds per 10⁹ true
    /// ones; rounded up.
    fn load(&self, clock: i128) -> i128 {
        div_ceil(self.batch * self.takes * clock * BILLION, self.interval)
    }
}

/// The frames of a flow that are queued together.
struct Due {
    train: usize,
    /// Until when they are queued, from the beginning of the pattern.
    at: i128,
    /// What may be queued before them that may also come after them: with their own.
    among: i128,
}

/// By how much a node's clock may be wrong until the longest run is over.
pub(crate) fn clock_error(system: &System, node: NodeId) -> Span {
    let end = NetTime::ZERO + longest_run(system) + Span::from_s(1);
    match system.clock_wrong(node, end) {
        Span::ZERO => Span::ZERO,
        error => error + ROUNDING,
    }
}

impl Analysis<'_> {
    /// When the frames of each flow in a queue start, if all of them are scheduled and have windows
    /// of their own that carry them; in the order of the queue's members.
    pub(super) fn followed(&mut self, place: QueueId) -> Option<Vec<Start>> {
        let (port, queue) = place;
        let mut members = self.members[&place].iter().map(|(f, _)| &self.network.flows[*f]);
        if members.all(|flow| self.network.has_windows(flow)) {
            return None;
        }
        let list = self.own_windows(place)?;
        let node = self.network.system.ports[port].node;
        let error = i128::from(clock_error(self.network.system, node).as_ns());
        let begins = i128::from(list.base.as_ns());
        if begins > error {
            return None;
        }
        let cycle = i128::from(list.cycle.as_ns());
        let trains = self.trains(place)?;
        let (part, longest) = self.parts(place)?;
        let open = gates::open_between(list, queue, begins.rem_euclid(cycle), error);
        let windows = Windows::new(open, cycle, part, longest)?;
        let first = self.first_cycle(port, list);
        let (gates, _) = clock_rate(&self.network.system.node(node).clock);
        if !windows.carry(&trains, gates) {
            return None;
        }
        let Some(pattern) = pattern(&trains, cycle) else {
            self.cut_short.insert(place);
            return None;
        };
        let mut run = Run { first, free: 0, windows, pattern };
        if first > 0 {
            // Until the first cycle begins, others may start what is still on the wire then.
            let others = self.network.longest[port].iter().max()?;
            run.free = first + self.time_on_wire(port, *others);
        }
        let (starts, followed) = run.steady(&trains, self.followed_left);
        self.followed_left -= followed;
        if starts.is_none() {
            self.cut_short.insert(place);
        }
        starts
    }

    /// The one gate control list of a queue's port, if its frames have its windows to themselves
    /// and start in the order of arrival whenever they fit.
    pub(super) fn own_windows(&self, (port, queue): QueueId) -> Option<&GateControl> {
        let settings = &self.network.plan.ports[port].settings;
        let [list] = &settings.gates[..] else { return None };
        let others = (0..8).filter(|other| *other != queue);
        let used = others.filter(|other| self.network.longest[port][*other].get() > 0);
        let used = used.fold(0u8, |mask, other| mask | 1 << other);
        let alone = settings.selection[queue] == Selection::StrictPriority
            && settings.preemptable >> queue & 1 == 0
            && list.length_aware
            && list.entries.iter().all(|e| e.open >> queue & 1 == 0 || e.open & used == 0);
        alone.then_some(list)
    }

    /// When the first cycle of a list of a port begins, at the latest.
    pub(super) fn first_cycle(&self, port: usize, list: &GateControl) -> i128 {
        let system = self.network.system;
        let node = system.ports[port].node;
        let begins = system.node(node).clock.when(SyncedTime::from_ns(list.base.as_ns()));
        let is_kept = system.synchronisation.is_some_and(|it| it.in_run);
        let late = if is_kept { clock_error(system, node) } else { Span::ZERO };
        (begins + late).as_ns().into()
    }

    /// The greatest common part of what the frames of a queue take of the wire, and the longest of
    /// them; none if there may be others.
    pub(super) fn parts(&self, place: QueueId) -> Option<(i128, i128)> {
        let octets = |&(f, _): &(usize, usize)| self.network.flows[f].arrival.octets[1];
        let members = self.members.get(&place)?.iter().map(octets);
        let known = members.clone().max()? == self.network.longest[place.0][place.1];
        let known = known && !self.network.unlimited[place.0][place.1];
        let times = members.map(|octets| self.time_on_wire(place.0, octets));
        let (part, longest) = times.fold((0, 0), |(p, l), time| (gcd(p, time), time.max(l)));
        known.then_some((part, longest))
    }

    fn time_on_wire(&self, port: usize, octets: Octets) -> i128 {
        Arrival::on_wire(self.link_rate(port), octets, Octets::default())
            / i128::from(self.link_rate(port).as_bps())
    }

    /// The flows of a queue, if the instants of all are known.
    fn trains(&self, place: QueueId) -> Option<Vec<Train>> {
        self.members[&place].iter().map(|&(f, h)| self.train(place.0, f, h)).collect()
    }

    fn train(&self, port: usize, f: usize, h: usize) -> Option<Train> {
        let flow = &self.network.flows[f];
        let system = self.network.system;
        let Owner::Stream(id) = flow.owner else { return None };
        let stream = &system.streams[id.index()];
        let (interval, batch, jitter) = match &stream.source {
            Source::Periodic { interval, jitter } => (interval, 1, jitter.as_ns()),
            Source::Bursty { interval, frames } => (interval, i128::from(*frames), 0),
            Source::Sporadic { .. } | Source::Trace(_) => return None,
        };
        if flow.babbles || flow.hops[h].regulator.is_some() {
            return None;
        }
        let [phase, interval] = [&stream.phase, interval].map(|span| i128::from(span.as_ns()));
        let error = i128::from(clock_error(system, stream.talker).as_ns());
        let state = self.states[f][h];
        let late = state.late?;
        // From a release by a right clock to a real one, and from that to the queue.
        let release = [-error, i128::from(jitter) + error];
        let queued = [release[0] + state.early, release[1] + late];
        Some(Train {
            interval,
            batch,
            takes: self.time_on_wire(port, flow.arrival.octets[1]),
            queued: (phase + queued[1]).rem_euclid(interval),
            width: queued[1] - queued[0],
            released: release.map(|release| queued[1] - release),
            clock: clock_rate(&system.node(stream.talker).clock).0,
        })
    }
}

/// After how long everything repeats: the least common multiple of the cycle and all
/// intervals, if it does not have too many frames.
fn pattern(trains: &[Train], cycle: i128) -> Option<i128> {
    let mut pattern = cycle;
    for train in trains {
        pattern = pattern / gcd(pattern, train.interval) * train.interval;
        if pattern / train.interval > FRAMES_MAX {
            return None;
        }
    }
    let frames: i128 = trains.iter().map(|train| pattern / train.interval * train.batch).sum();
    (frames <= FRAMES_MAX).then_some(pattern)
}

/// All frames of one repetition of the pattern, in the order of the instants until which they are
/// queued.
fn dues(trains: &[Train], pattern: i128) -> Vec<Due> {
    let mut dues = Vec::new();
    let mut earliest = Vec::new();
    let mut among: i128 = 0;
    for (at, train) in trains.iter().enumerate() {
        let work = train.batch * train.takes;
        // Those that may be queued before the pattern begins and also after that.
        let begun = train.width - train.queued;
        among += work * ((begun + train.interval - 1).div_euclid(train.interval)).max(0);
        let opens = (train.queued - train.width).rem_euclid(train.interval);
        for k in 0..pattern / train.interval {
            earliest.push((opens + k * train.interval, work));
            let queued = train.queued + k * train.interval;
            dues.push(Due { train: at, at: queued, among: work });
        }
    }
    dues.sort_by_key(|due| due.at);
    earliest.sort_unstable();
    let mut earliest = earliest.into_iter().peekable();
    let mut before = 0;
    for at in 0..dues.len() {
        while let Some((_, work)) = earliest.next_if(|(early, _)| *early <= dues[at].at) {
            among += work;
        }
        while dues[before].at < dues[at].at {
            let train = &trains[dues[before].train];
            among -= train.batch * train.takes;
            before += 1;
        }
        dues[at].among = among;
    }
    dues
}

/// A queue that is followed from the beginning on, every frame as late as may be.
struct Run {
    windows: Windows,
    pattern: i128,
    /// When the first cycle begins: a frame may go at once until then, but others may keep it from
    /// the wire.
    first: i128,
    /// When all that was queued before is sent.
    free: i128,
}

impl Run {
    /// The extremes of each flow, and how many frames were followed for them: until what is left
    /// at the end of a pattern is no more than what was left of the one before. What is left grows
    /// with what was left, so it is never more again.
    fn steady(mut self, trains: &[Train], most: i128) -> (Option<Vec<Start>>, i128) {
        let dues = dues(trains, self.pattern);
        let all: i128 = dues.iter().map(|due| trains[due.train].batch).sum();
        let far = Start { early: i128::MAX, late: i128::MIN };
        let mut starts = vec![far; trains.len()];
        let mut followed = 0;
        let mut left = None;
        let mut begins = 0;
        loop {
            let now = (self.free - begins).max(0);
            if begins >= self.first && left.is_some_and(|left| now <= left) {
                return (Some(starts), followed);
            }
            left = (begins >= self.first).then_some(now);
            followed += all;
            if followed > most {
                return (None, most);
            }
            for same in dues.chunk_by(|a, b| a.at == b.at) {
                self.queue(trains, same, begins, &mut starts);
            }
            begins += self.pattern;
        }
    }

    /// Frames are queued at one instant at the latest. Each of them may have before it all that
    /// may have come before it.
    fn queue(&mut self, trains: &[Train], same: &[Due], begins: i128, starts: &mut [Start]) {
        let at = begins + same[0].at;
        let from = at.max(self.free).max(self.first);
        let mut work = 0;
        for due in same {
            let train = &trains[due.train];
            let behind = self.windows.served(from, due.among - train.takes);
            let last = self.windows.start(behind, train.takes);
            let early = at - train.width;
            let before = self.first > 0 && early <= self.first;
            let first = if before { early } else { self.windows.first(early) };
            let start = &mut starts[due.train];
            start.early = start.early.min(first - (at - train.released[1]));
            start.late = start.late.max(last - (at - train.released[0]));
            work += train.batch * train.takes;
        }
        self.free = self.windows.served(from, work);
    }
}

/// When a queue's gate is open in each cycle: surely, and perhaps, as clocks err.
pub(super) struct Open {
    /// In order; the last may end in the next cycle.
    pub(super) sure: Vec<(i128, i128)>,
    /// When each opens at the earliest, and closes at the latest.
    pub(super) perhaps: Vec<(i128, i128)>,
}

/// Windows that are served in parts of one length: a part starts where the longest frame would fit,
/// and not before the one ahead of it is over. No frame starts later than its first part, whatever
/// the order of those before it: each takes a whole number of parts, and needs no more room than
/// the longest.
struct Windows {
    /// Those with room for the longest frame: when they open and close, and how many parts fit.
    sure: Vec<(i128, i128, i128)>,
    perhaps: Vec<(i128, i128)>,
    cycle: i128,
    part: i128,
    longest: i128,
    /// How many parts fit into all windows of a cycle.
    parts: i128,
}

impl Windows {
    /// None: no window has room.
    fn new(open: Open, cycle: i128, part: i128, longest: i128) -> Option<Self> {
        let room = |(opens, closes): (i128, i128)| {
            let parts = (closes - opens - longest).div_euclid(part) + 1;
            (parts > 0).then_some((opens, closes, parts))
        };
        let sure: Vec<_> = open.sure.into_iter().filter_map(room).collect();
        let parts = sure.iter().map(|(_, _, parts)| parts).sum();
        let windows = Self { sure, perhaps: open.perhaps, cycle, part, longest, parts };
        (parts > 0).then_some(windows)
    }

    /// Whether they carry what comes in the long run: if all clocks are right, and as they drift.
    /// Exact but for 10⁻¹⁸ of each flow, by which a load that they just carry may be too much.
    fn carry(&self, trains: &[Train], gates: i128) -> bool {
        let carried = self.parts * self.part * BILLION;
        let load = |of: fn(&Train) -> i128| trains.iter().map(|t| t.load(of(t))).sum::<i128>();
        let spare = trains.len() as i128;
        // What is too long a number is far more than they carry.
        let comes = |load: i128| (load - spare).checked_mul(self.cycle);
        let within = |load, clock: i128| comes(load).is_some_and(|l| l <= carried * clock);
        within(load(|_| BILLION), BILLION) && within(load(|t| t.clock), gates)
    }

    /// The first window that closes after `from`: the cycle's beginning, and its position.
    fn at<W>(&self, windows: &[W], closes: impl Fn(&W) -> i128, from: i128) -> (i128, usize) {
        let last = windows.last().map_or(0, &closes);
        // A window of the cycle before may still be open.
        let cycle = (from - last).div_euclid(self.cycle) + 1;
        let begins = cycle * self.cycle;
        (begins, windows.partition_point(|window| closes(window) + begins <= from))
    }

    /// The earliest instant from `from` on at which the gate may be open.
    fn first(&self, from: i128) -> i128 {
        let (begins, at) = self.at(&self.perhaps, |(_, closes)| *closes, from);
        from.max(self.perhaps[at].0 + begins)
    }

    /// When a frame that takes `own` starts at the latest, if nothing is before it from `from` on.
    fn start(&self, from: i128, own: i128) -> i128 {
        let (mut begins, mut at) = self.at(&self.sure, |(_, closes, _)| *closes, from);
        loop {
            let (opens, closes, _) = self.sure[at];
            let start = from.max(opens + begins);
            if start + own <= closes + begins {
                return start;
            }
            at += 1;
            if at == self.sure.len() {
                (begins, at) = (begins + self.cycle, 0);
            }
        }
    }

    /// When `work` is done that begins not before `from`.
    fn served(&self, from: i128, work: i128) -> i128 {
        let mut left = work / self.part;
        if left == 0 {
            return from;
        }
        let (mut begins, mut at) = self.at(&self.sure, |(_, closes, _)| *closes, from);
        loop {
            let (opens, closes, _) = self.sure[at];
            let start = from.max(opens + begins);
            let room = closes + begins - start - self.longest;
            let parts = (room.div_euclid(self.part) + 1).max(0);
            if left <= parts {
                return start + left * self.part;
            }
            left -= parts;
            at += 1;
            if at == self.sure.len() {
                // Whole cycles, but for the last part.
                let cycles = (left - 1) / self.parts;
                left -= cycles * self.parts;
                (begins, at) = (begins + (1 + cycles) * self.cycle, 0);
            }
        }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::network::FlowNetwork;
    use proptest::prelude::*;

    /// When so many parts have started and are over, one by one, nanosecond by nanosecond.
    fn by_hand(windows: &Windows, from: i128, parts: i128) -> i128 {
        let fits = |at: i128| {
            let mut all = windows.sure.iter().flat_map(|(opens, closes, _)| {
                [-1, 0, 1].map(|n| {
                    let begins = (at.div_euclid(windows.cycle) + n) * windows.cycle;
                    (opens + begins, closes + begins)
                })
            });
            all.any(|(opens, closes)| opens <= at && at + windows.longest <= closes)
        };
        let mut at = from;
        for _ in 0..parts {
            while !fits(at) {
                at += 1;
            }
            at += windows.part;
        }
        at
    }

    proptest! {
        #[test]
        fn parts_are_served_as_one_by_one(
            cuts in proptest::collection::btree_set(0i128..60, 2..6),
            over in 0i128..10,
            (part, times) in (1i128..5, 1i128..4),
            from in -70i128..130,
            count in 0i128..40,
        ) {
            let cuts: Vec<i128> = cuts.into_iter().collect();
            let mut sure: Vec<_> = cuts.chunks_exact(2).map(|w| (w[0] + 10, w[1] + 10)).collect();
            let last = sure.len() - 1;
            sure[last].1 += over;
            let open = Open { perhaps: sure.clone(), sure };
            let Some(windows) = Windows::new(open, 70, part, part * times) else { return Ok(()) };
            prop_assert_eq!(windows.served(from, count * part), by_hand(&windows, from, count));
        }
    }

    /// One stream over two ports with windows for one frame of 123.36 in 400 µs.
    fn followed(interval: i64) -> (Option<Vec<Start>>, i128) {
        let text = format!(
            r#"
            format = 1
            name = "slow"
            run = {{ duration_ms = 50 }}
            host = [{{ name = "a" }}, {{ name = "b" }}]
            bridge = [{{ name = "s" }}]
            link = [{{ ends = ["a", "s.a"], rate_mbps = 100 }},
                {{ ends = ["s.b", "b"], rate_mbps = 100 }}]
            stream = [{{ name = "x", talker = "a", listeners = ["b"], traffic_class = 5,
                frame_octets = 1522, interval_ns = {interval} }}]
            port = [{{ names = ["s.b"], gates = [{{ entries = [
                {{ open = [5], interval_ns = 157_490 }},
                {{ open = [7], interval_ns = 242_510 }}] }}] }}]
            "#
        );
        let loaded = onbeat_description::load("x.toml", &text, &mut |_| Err(String::new()));
        let system = loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let plan = crate::plan(&system, true).expect("a plan");
        let network = FlowNetwork::new(&system, &plan, true);
        let mut analysis = Analysis::new(&network);
        let place = (network.flows[0].hops[1].port.index(), 5);
        let once = FOLLOWED_MAX - analysis.followed_left;
        (analysis.followed(place), once)
    }

    #[test]
    fn a_queue_is_followed_once_for_each_frame_of_two_patterns_at_most() {
        // 5,000 frames and 5,001 cycles repeat together.
        let (starts, frames) = followed(400_080);
        assert!(starts.is_some() && (5_000..=10_000).contains(&frames), "{frames}");
        let (starts, frames) = followed(400_100);
        assert!(starts.is_some() && (4_000..=8_000).contains(&frames), "{frames}");
        // More than the windows carry, in patterns of 5,000 frames and of 400,000: no frame is.
        for interval in [370_080, 370_081, 399_999] {
            let (starts, frames) = followed(interval);
            assert_eq!((starts, frames), (None, 0), "{interval}");
        }
    }
}
