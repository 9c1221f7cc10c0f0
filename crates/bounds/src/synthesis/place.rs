//! Placing one flow among those that are placed: first fit in time, past what is in the way.

use super::timeline::{Owner, Taken, Timeline};
use super::{Network, Obstacle, PeriodicFlow, Placed, Refusal, Waiting};
use onbeat_model::time::Span;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The most moves in search of a place for one flow in one queue. Who needs more is refused.
pub(super) const MOVES_MAX: usize = 20_000;
/// The same where others can make room.
pub(super) const MOVES_FEW: usize = 200;
/// The same from one release on, where there are many to try.
const MOVES_CLOSE: usize = 60;
/// How much earlier than without waiting frames are released to leave no time unused at a hop, in
/// nanoseconds: where others are in the way before it, they wait there.
const EARLIER: [i64; 5] = [0, 2_000, 4_000, 8_000, 16_000];

/// A port with what is taken of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    pub(super) windows: Timeline,
    /// By queue: from when a frame may be queued to the end of its window.
    pub(super) queues: Vec<Timeline>,
}

/// One hop of a flow in numbers, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) port: usize,
    pub(super) after: Option<usize>,
    /// From the begin of the window before, or the release, until it is queued.
    pub(super) queued: [i64; 2],
    /// How long its window is.
    pub(super) window: i64,
    pub(super) tick: i64,
    /// If it is a leaf: from the begin of its window until it is received at most, with both
    /// clocks' errors; and the difference of receipts.
    pub(super) leaf: Option<[i64; 2]>,
}

/// A further hop before one ([`super::Join`]), in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherWay {
    hop: usize,
    before: usize,
    /// From the begin of the window there until it is queued.
    queued: [i64; 2],
}

/// A flow in numbers.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) legs: Vec<Leg>,
    pub(super) other_ways: Vec<OtherWay>,
    pub(super) period: i64,
    pub(super) deadline: i64,
    pub(super) release: Option<i64>,
    pub(super) queues: u8,
}

/// The first multiple of a tick, which is 1 ns at least, from an instant on.
pub(super) fn up_to_tick(at: i64, tick: i64) -> i64 {
    let tick = tick.max(1);
    let over = at.rem_euclid(tick);
    if over == 0 { at } else { at + tick - over }
}

impl Route {
    pub(super) fn new(network: &Network, flow: &PeriodicFlow) -> Self {
        let mut is_leaf = vec![true; flow.hops.len()];
        let before = flow.hops.iter().filter_map(|hop| hop.after);
        let before = before.chain(flow.joins.iter().map(|join| join.before));
        before.for_each(|before| is_leaf[before] = false);
        let talker = flow.hops.first().map_or(0, |hop| error(network, hop.port));
        let queued = |before: usize, hop: &super::FlowHop| {
            let before = &flow.hops[before];
            let from = &network.ports[before.port];
            let apart = from.clock_error.as_ns() + error(network, hop.port);
            let [least, most] = from.latency.map(|latency| (before.sent + latency).as_ns());
            [least - apart, most + apart]
        };
        let leg = |(number, hop): (usize, &super::FlowHop)| {
            let port = &network.ports[hop.port];
            let own = port.clock_error.as_ns();
            let tick = port.tick.as_ns().max(1);
            let queued = match hop.after {
                None => flow.ready.map(Span::as_ns),
                Some(before) => queued(before, hop),
            };
            let leaf = is_leaf[number].then(|| {
                let [least, most] = port.latency.map(Span::as_ns);
                [hop.sent.as_ns() + most + own + talker, most - least + 2 * own]
            });
            let window = up_to_tick(hop.occupies.as_ns(), tick);
            Leg { port: hop.port, after: hop.after, queued, window, tick, leaf }
        };
        let other_ways = flow.joins.iter().map(|join| OtherWay {
            hop: join.hop,
            before: join.before,
            queued: queued(join.before, &flow.hops[join.hop]),
        });
        Self {
            legs: flow.hops.iter().enumerate().map(leg).collect(),
            other_ways: other_ways.collect(),
            period: flow.period.as_ns(),
            deadline: flow.deadline.as_ns(),
            release: flow.release.map(Span::as_ns),
            queues: flow.hops.iter().map(|hop| network.ports[hop.port].queues).min().unwrap_or(0),
        }
    }

    /// From the release until it is received at a leaf at least, whatever the ticks.
    fn least(&self, leaf: usize) -> i64 {
        self.queued(leaf) + self.legs[leaf].leaf.map_or(0, |[most, _]| most)
    }

    /// From the release until it is queued at a hop at least, whatever the ticks.
    fn queued(&self, hop: usize) -> i64 {
        let mut takes: Vec<i64> = Vec::with_capacity(hop + 1);
        for at in 0..=hop {
            let [_, queued] = self.queued_at(at, 0, |before| takes[before]);
            takes.push(queued);
        }
        takes[hop]
    }

    /// From when on and from when at the latest a frame is queued at a hop, by its release and the
    /// begins of its windows before.
    fn queued_at(&self, hop: usize, release: i64, starts: impl Fn(usize) -> i64) -> [i64; 2] {
        let leg = &self.legs[hop];
        let from = leg.after.map_or(release, &starts);
        let mut queued = leg.queued.map(|after| from + after);
        for other in self.other_ways.iter().filter(|other| other.hop == hop) {
            let [early, late] = other.queued.map(|after| starts(other.before) + after);
            queued = [queued[0].min(early), queued[1].max(late)];
        }
        queued
    }

    /// The hop before one from which a frame may come first.
    fn first_before(&self, hop: usize, starts: &[i64]) -> Option<usize> {
        let leg = &self.legs[hop];
        let ways = leg.after.map(|before| (before, leg.queued[0])).into_iter();
        let others = self.other_ways.iter().filter(|other| other.hop == hop);
        let ways = ways.chain(others.map(|other| (other.before, other.queued[0])));
        ways.min_by_key(|(before, after)| starts[*before] + after).map(|(before, _)| before)
    }

    /// A release to try, which is another one for each number; and a queue.
    pub(super) fn guess(&self, number: u64) -> (i64, usize) {
        // Multiples of the golden ratio are spread evenly.
        let part = i128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let release = (part * i128::from(self.period)) >> 64;
        let release = i64::try_from(release).expect("less than the period");
        let queue = usize::try_from(number % u64::from(self.queues.max(1))).expect("few queues");
        (self.release.unwrap_or(release), queue)
    }

    /// The hop at whose port most time is taken, by the loads of the ports.
    pub(super) fn busiest(&self, loads: &[u64]) -> usize {
        let load = |hop: &usize| (loads[self.legs[*hop].port], Reverse(*hop));
        (0..self.legs.len()).max_by_key(load).expect("a flow has a hop")
    }

    /// What no schedule can give it, even if it is alone.
    pub(super) fn impossible(&self, flow: &PeriodicFlow) -> Option<Obstacle> {
        for (hop, leg) in self.legs.iter().enumerate() {
            let Some([_, varies]) = leg.leaf else { continue };
            let takes = self.least(hop);
            if takes > self.deadline {
                return Some(Obstacle::Path { hop, takes: Span::from_ns(takes) });
            }
            let varies = Span::from_ns(varies);
            if flow.jitter.is_some_and(|jitter| varies > jitter) {
                return Some(Obstacle::Jitter { hop, varies });
            }
        }
        let is_odd = |leg: &Leg| self.period % leg.tick != 0;
        if let Some(hop) = self.legs.iter().position(is_odd) {
            return Some(Obstacle::Tick { hop });
        }
        let is_long = |leg: &Leg| leg.window + leg.queued[1] - leg.queued[0] > self.period;
        self.legs.iter().position(is_long).map(|hop| Obstacle::Period { hop })
    }
}

impl Route {
    /// Whether a flow may be so, as far as it is alone: its numbers may be any.
    pub(super) fn allows(&self, placed: &Placed) -> bool {
        let release = placed.release.as_ns();
        let is_release = (0..self.period).contains(&release)
            && self.release.is_none_or(|fixed| fixed == release)
            && placed.queue < self.queues
            && placed.starts.len() == self.legs.len();
        is_release
            && self.legs.iter().zip(&placed.starts).enumerate().all(|(hop, (leg, start))| {
                let start = start.as_ns();
                let before = |before: usize| placed.starts[before].as_ns();
                let [early, late] = self.queued_at(hop, release, before);
                // First what keeps the rest within 64 bits.
                (0..self.period + self.deadline.max(0)).contains(&start)
                    && start % leg.tick == 0
                    && start >= late
                    && start + leg.window - early <= self.period
                    && leg.leaf.is_none_or(|[most, _]| start + most - release <= self.deadline)
            })
    }
}

/// Whether the place where a flow was is free.
pub(super) fn is_free(route: &Route, placed: &Placed, ports: &mut [Port]) -> bool {
    taken(route, placed).all(|(port, window, queued)| {
        let port = &mut ports[port];
        port.windows.conflict(window).is_none()
            && port.queues[usize::from(placed.queue)].conflict(queued).is_none()
    })
}

fn error(network: &Network, port: usize) -> i64 {
    network.ports[port].clock_error.as_ns()
}

/// What prevented a place for a flow, where how often.
#[derive(Clone, Debug, Default)]
pub(super) struct Hindrances {
    /// By hop.
    pub(super) times: Vec<usize>,
    /// Whose windows and frames, in the order in which they were met.
    pub(super) owners: Vec<Owner>,
}

/// What prevents a set of starts.
enum Conflict {
    /// The window of a hop has to be later by so much.
    Window(i64),
    /// The frame has to be queued at a hop later by so much.
    Queue(i64),
}

/// The search for one flow in one queue.
struct Search<'a> {
    route: &'a Route,
    ports: &'a mut [Port],
    queue: usize,
    waiting: Waiting,
    moves_max: usize,
    hindrances: &'a mut Hindrances,
    /// By hop, when its window begins at least, and when it does.
    least: Vec<i64>,
    starts: Vec<i64>,
}

impl<'a> Search<'a> {
    fn new(
        route: &'a Route,
        ports: &'a mut [Port],
        waiting: Waiting,
        moves_max: usize,
        hindrances: &'a mut Hindrances,
    ) -> Self {
        let count = route.legs.len();
        hindrances.times.resize(count, 0);
        let (least, starts) = (vec![0; count], vec![0; count]);
        Self { route, ports, queue: 0, waiting, moves_max, hindrances, least, starts }
    }

    /// Finds the starts for a release, each no earlier than its least; or by how much later the
    /// release must be at least.
    fn find(&mut self, release: i64, moves: &mut usize) -> Result<(), i64> {
        let count = self.route.legs.len();
        self.least.fill(i64::MIN);
        let mut hop = 0;
        while hop < count {
            let leg = self.route.legs[hop];
            let queued = self.route.queued_at(hop, release, |before| self.starts[before]);
            self.starts[hop] = up_to_tick(queued[1].max(self.least[hop]), leg.tick);
            if let Some([most, _]) = leg.leaf {
                let late = self.starts[hop] + most - release - self.route.deadline;
                if late > 0 {
                    return Err(late);
                }
            }
            *moves += 1;
            let Some(conflict) = self.conflict(&leg, queued[0], self.starts[hop]) else {
                hop += 1;
                continue;
            };
            self.hindrances.times[hop] += 1;
            if *moves > self.moves_max {
                return Err(self.route.period);
            }
            match (conflict, self.route.first_before(hop, &self.starts), self.waiting) {
                // Where nothing waits, all is later by as much.
                (Conflict::Window(by) | Conflict::Queue(by), _, Waiting::None)
                | (Conflict::Queue(by), None, Waiting::Allowed) => return Err(by),
                (Conflict::Window(by), _, Waiting::Allowed) => {
                    self.least[hop] = self.starts[hop] + by
                }
                (Conflict::Queue(by), Some(before), Waiting::Allowed) => {
                    self.least[before] = self.starts[before] + by;
                    // Only what is behind it moves; hops are in an order in which it is later.
                    self.least[before + 1..].fill(i64::MIN);
                    hop = before;
                }
            }
        }
        Ok(())
    }

    fn conflict(&mut self, leg: &Leg, queued: i64, start: i64) -> Option<Conflict> {
        let period = self.route.period;
        let port = &mut self.ports[leg.port];
        let window = Taken { begin: start, length: leg.window, period };
        if let Some((by, owner)) = port.windows.conflict(window) {
            self.hindrances.owners.push(owner);
            return Some(Conflict::Window(by));
        }
        let length = start + leg.window - queued;
        if length > period {
            return Some(Conflict::Queue(length - period));
        }
        let (by, owner) =
            port.queues[self.queue].conflict(Taken { begin: queued, length, period })?;
        self.hindrances.owners.push(owner);
        Some(Conflict::Queue(by))
    }

    /// With the latest release for these starts, if that is free: so nothing waits at the talker.
    fn placed(&self, release: i64) -> Placed {
        let starts = &self.starts;
        let first = self.route.legs.iter().zip(starts).filter(|(leg, _)| leg.after.is_none());
        let latest = first.map(|(leg, start)| start - leg.queued[1]).min();
        let latest = latest.filter(|_| self.route.release.is_none()).unwrap_or(release);
        let whole = latest.div_euclid(self.route.period) * self.route.period;
        Placed {
            release: Span::from_ns(latest - whole),
            queue: u8::try_from(self.queue).expect("a port has few queues"),
            starts: starts.iter().map(|start| Span::from_ns(start - whole)).collect(),
        }
    }

    /// The first release from which on all fits.
    fn place(&mut self) -> Option<Placed> {
        let (mut release, last) = match self.route.release {
            Some(fixed) => (fixed, fixed),
            None => (0, self.route.period - 1),
        };
        let mut moves = 0;
        while release <= last {
            match self.find(release, &mut moves) {
                Ok(()) => return Some(self.placed(release)),
                Err(later) => release += later.max(1),
            }
        }
        None
    }
}

/// A place for a flow, in the first queue in which there is one.
pub(super) fn place(
    route: &Route,
    ports: &mut [Port],
    waiting: Waiting,
    moves_max: usize,
    hindrances: &mut Hindrances,
) -> Option<Placed> {
    let mut search = Search::new(route, ports, waiting, moves_max, hindrances);
    (0..usize::from(route.queues)).find_map(|queue| {
        search.queue = queue;
        search.place()
    })
}

/// A place for a flow where its window at a hop begins when another one ends: so no time is unused
/// between them, in which no other would find room later.
pub(super) fn place_close(
    route: &Route,
    ports: &mut [Port],
    waiting: Waiting,
    hop: usize,
) -> Option<Placed> {
    if route.release.is_some() {
        return None;
    }
    let ends = ports[route.legs[hop].port].windows.ends(route.period);
    let takes = route.queued(hop);
    let mut hindrances = Hindrances::default();
    let mut search = Search::new(route, ports, waiting, MOVES_CLOSE, &mut hindrances);
    for earlier in EARLIER {
        for end in &ends {
            let release = (end - takes - earlier).rem_euclid(route.period);
            for queue in 0..usize::from(route.queues) {
                search.queue = queue;
                if search.find(release, &mut 0).is_ok()
                    && ends.binary_search(&search.starts[hop].rem_euclid(route.period)).is_ok()
                {
                    return Some(search.placed(release));
                }
            }
        }
    }
    None
}

/// Where a flow would be without waiting, from a release on and in a queue, whoever is there, and
/// whom it would displace. None if it would be late.
pub(super) fn displace(
    route: &Route,
    ports: &mut [Port],
    release: i64,
    queue: usize,
) -> Option<(Placed, BTreeSet<Owner>)> {
    let mut starts = Vec::with_capacity(route.legs.len());
    for (hop, leg) in route.legs.iter().enumerate() {
        let [_, queued] = route.queued_at(hop, release, |before| starts[before]);
        let start = up_to_tick(queued, leg.tick);
        if leg.leaf.is_some_and(|[most, _]| start + most - release > route.deadline) {
            return None;
        }
        starts.push(start);
    }
    let placed = Placed {
        release: Span::from_ns(release),
        queue: u8::try_from(queue).expect("a port has few queues"),
        starts: starts.into_iter().map(Span::from_ns).collect(),
    };
    let mut owners = BTreeSet::new();
    for (port, window, queued) in taken(route, &placed) {
        if queued.length > route.period {
            return None;
        }
        ports[port].windows.owners(window, &mut owners);
        ports[port].queues[queue].owners(queued, &mut owners);
    }
    Some((placed, owners))
}

/// What a placed flow takes: by hop its port, its window and its time in the queue.
pub(super) fn taken<'a>(
    route: &'a Route,
    placed: &'a Placed,
) -> impl Iterator<Item = (usize, Taken, Taken)> + 'a {
    let period = route.period;
    route.legs.iter().zip(&placed.starts).enumerate().map(move |(hop, (leg, start))| {
        let (start, before) = (start.as_ns(), |before: usize| placed.starts[before].as_ns());
        let [queued, _] = route.queued_at(hop, placed.release.as_ns(), before);
        let window = Taken { begin: start, length: leg.window, period };
        (leg.port, window, Taken { begin: queued, length: start + leg.window - queued, period })
    })
}

/// The refusal of a flow that found no place.
pub(super) fn refused(flow: usize, route: &Route, hindrances: Hindrances) -> Refusal {
    let worst = hindrances.times.iter().enumerate().max_by_key(|(_, times)| **times);
    let port = worst.map_or(0, |(hop, _)| route.legs[hop].port);
    let flows: BTreeSet<Owner> = hindrances.owners.into_iter().collect();
    let flows = flows.into_iter().collect();
    Refusal { flow, why: Obstacle::Occupied { port, flows }, is_proven: false }
}
