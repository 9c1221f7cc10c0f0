//! How long the frames of each flow wait at each port: total flow analysis with the shaping of
//! lines and of credit.

use super::arrival::{REGULATOR_ROUNDING, in_true_time, is_same_rate};
use super::network::{FlowNetwork, PortHop, Upstream};
use super::windows::FOLLOWED_MAX;
use super::{BILLION, div_ceil};
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::system::PortId;
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};
use std::collections::{BTreeMap, BTreeSet};

/// A delay beyond this is no bound that anybody could use.
const DELAY_MAX: i128 = 3_600 * BILLION;

/// How often delays are recomputed from each other. Where no two ports wait for each other, as in
/// any tree, as many rounds as the longest path has ports suffice, and one to see it.
const ITERATIONS_MAX: usize = 2_000;

/// The wire that a frame occupies at most while it cannot be interrupted: one of 123 octets, whose
/// 64 last ones may not stand alone once the first 60 are sent (802.3-2022 99.4.7).
pub(super) const UNINTERRUPTIBLE: Octets = Octets::new(143);

/// What an interruption costs: a check sum, a gap and a preamble.
pub(super) const INTERRUPTION: Octets = Octets::new(24);

/// The times of a flow's frames at one of its hops, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HopTimes {
    /// From release to being queued, at least, in nanoseconds.
    pub(crate) early: i128,
    /// The same at most; None: without limit.
    pub(crate) arrives: Option<i128>,
    /// From release to being queued and eligible (802.1Qcr), at most.
    pub(crate) late: Option<i128>,
    /// From being eligible to the start of transmission, at most.
    pub(crate) wait: Option<i128>,
    /// From release to the start of transmission, at least.
    pub(crate) starts: i128,
}

impl HopTimes {
    /// By how much delays before this port differ.
    fn jitter(&self) -> Option<i128> {
        Some(self.late? - self.early)
    }
}

/// A queue: the index of its port, and its number there, 0 to 7.
pub(super) type QueueId = (usize, usize);

/// Every flow's delays, hop by hop.
pub(crate) struct Analysis<'a> {
    pub(crate) network: &'a FlowNetwork<'a>,
    /// Per flow and hop.
    pub(crate) states: Vec<Vec<HopTimes>>,
    /// The flows of each queue: flow and hop.
    pub(super) members: BTreeMap<QueueId, Vec<(usize, usize)>>,
    /// The most credit of each credit-based shaper, in nanobits.
    pub(super) credit: BTreeMap<QueueId, i128>,
    /// The queues whose delays depend on themselves, and all that depend on these.
    pub(super) cyclic: BTreeSet<QueueId>,
    /// The flows whose bounds hold for their described phases only.
    pub(crate) phase_specific: BTreeSet<usize>,
    /// The queues that were not followed through their windows to the end: that takes too long.
    pub(crate) cut_short: BTreeSet<QueueId>,
    /// How many more frames may be followed.
    pub(super) followed_left: i128,
}

impl<'a> Analysis<'a> {
    /// Computes each queue once, after those that it depends on. Where queues wait for each other
    /// in a cycle, delays are recomputed until nothing changes; whatever still grows then, and
    /// all that depends on it, has no bound.
    pub(crate) fn new(network: &'a FlowNetwork<'a>) -> Self {
        let mut members: BTreeMap<QueueId, Vec<_>> = BTreeMap::new();
        for (f, flow) in network.flows.iter().enumerate() {
            for (h, hop) in flow.hops.iter().enumerate() {
                members.entry((hop.port.index(), flow.queue)).or_default().push((f, h));
            }
        }
        let zero =
            HopTimes { late: Some(0), arrives: Some(0), wait: Some(0), ..HopTimes::default() };
        let states = network.flows.iter().map(|flow| vec![zero; flow.hops.len()]).collect();
        let (order, cyclic) = order(network, members.keys().copied());
        let mut analysis = Self {
            network,
            states,
            members,
            credit: BTreeMap::new(),
            cyclic,
            phase_specific: BTreeSet::new(),
            cut_short: BTreeSet::new(),
            followed_left: FOLLOWED_MAX,
        };
        for place in order {
            analysis.advance(place, false);
            analysis.serve(place, false);
        }
        analysis.iterate();
        analysis
    }

    /// Recomputes the queues in cycles.
    fn iterate(&mut self) {
        let places: Vec<QueueId> = self.cyclic.iter().copied().collect();
        let mut dirty = vec![true; self.network.system.ports.len()];
        for round in 0.. {
            let last = round >= ITERATIONS_MAX;
            let mut moved = false;
            for &place in &places {
                let moves = self.advance(place, last);
                dirty[place.0] |= moves;
                moved |= moves;
            }
            let mut next = vec![false; dirty.len()];
            for &place in places.iter().filter(|place| dirty[place.0]) {
                let served = self.serve(place, last);
                next[place.0] |= served.waits;
                if served.credit {
                    self.mark_downstream(place, &mut next);
                }
            }
            if !moved && !next.contains(&true) {
                break;
            }
            dirty = next;
        }
    }

    /// Carries delays on to a queue; whether anything changes there.
    fn advance(&mut self, place: QueueId, last: bool) -> bool {
        let mut moved = false;
        for at in 0..self.members[&place].len() {
            let (f, h) = self.members[&place][at];
            let before = self.states[f][h];
            let mut now = self.entering(f, h);
            now.late = self.eligible(f, h, &now);
            (now.wait, now.starts) = (before.wait, before.starts);
            if before.late.is_none() {
                continue;
            }
            let moves = [(before.arrives, now.arrives), (before.late, now.late)];
            if (last && moves.iter().any(|(before, now)| before != now))
                || moves.iter().any(|(_, now)| now.is_none_or(|delay| delay > DELAY_MAX))
            {
                (now.arrives, now.late, now.wait) = (None, None, None);
            }
            if now != before {
                self.states[f][h] = now;
                moved = true;
            }
        }
        moved
    }

    /// From release to a queue: out of the stack, or over the hops before it.
    fn entering(&self, f: usize, h: usize) -> HopTimes {
        let flow = &self.network.flows[f];
        let ns = |span: Span| i128::from(span.as_ns());
        if flow.hops[h].from.is_empty() {
            let arrives = Some(ns(flow.stack[1]));
            return HopTimes { early: ns(flow.stack[0]), arrives, ..HopTimes::default() };
        }
        if flow.babbles && flow.meter.is_some() && flow.hops[h].from[0].hop == 0 {
            // Whenever it was released: all that follows begins with the meter.
            return HopTimes { arrives: Some(0), ..HopTimes::default() };
        }
        let before = |from: &Upstream| {
            let state = &self.states[f][from.hop];
            let arrives = state.late.zip(state.wait).map(|(l, w)| l + w + ns(from.travel[1]));
            (state.early.max(state.starts) + ns(from.travel[0]), arrives)
        };
        let all: Vec<_> = flow.hops[h].from.iter().map(before).collect();
        let early = all.iter().map(|(early, _)| *early).min().expect("some way leads here");
        let arrives = all.iter().map(|(_, arrives)| *arrives).reduce(|a, b| Some(a?.max(b?)));
        // Until nothing changes any more, the latest may not yet be as late as the earliest.
        let arrives = arrives.flatten().map(|arrives| arrives.max(early));
        HopTimes { early, arrives, ..HopTimes::default() }
    }

    /// From release to being eligible: at once, except where an asynchronous shaper may hold it.
    fn eligible(&self, f: usize, h: usize, now: &HopTimes) -> Option<i128> {
        let flow = &self.network.flows[f];
        let place = (flow.hops[h].port.index(), flow.queue);
        if flow.hops[h].regulator.is_none() || !self.is_asynchronous(place) {
            return now.arrives;
        }
        let arrives = now.arrives?;
        if flow.hops[h].from.is_empty() {
            // A talker has a scheduler for each stream: none holds another.
            let held = self.held(f, h, Some(arrives - now.early))?;
            return Some(arrives + held + if held > 0 { REGULATOR_ROUNDING } else { 0 });
        }
        let group = self.group(place, f, h);
        let conforms = |&(g, k): &(usize, usize)| {
            let state = if (g, k) == (f, h) { *now } else { self.entering(g, k) };
            self.conforms(g, k, state.arrives.map(|arrives| arrives - state.early))
        };
        if group.iter().all(conforms) {
            return now.arrives;
        }
        self.shaping_for_free(f, h, &group)
    }

    pub(super) fn is_asynchronous(&self, (port, queue): QueueId) -> bool {
        let settings = &self.network.plan.ports[port].settings;
        settings.selection[queue] == Selection::Asynchronous
    }

    /// The flows with buckets that come to a queue from the same port.
    pub(super) fn group(&self, place: QueueId, f: usize, h: usize) -> Vec<(usize, usize)> {
        let upstream = |(f, h): (usize, usize)| -> Vec<PortId> {
            let flow = &self.network.flows[f];
            flow.hops[h].from.iter().map(|from| flow.hops[from.hop].port).collect()
        };
        let mine = upstream((f, h));
        let members = self.members[&place].iter().copied();
        let regulated = |m: &(usize, usize)| self.network.flows[m.0].hops[m.1].regulator.is_some();
        members.filter(|m| regulated(m) && upstream(*m) == mine).collect()
    }

    /// Whether a flow with this jitter never makes its bucket at a hop wait.
    fn conforms(&self, f: usize, h: usize, jitter: Option<i128>) -> bool {
        self.held(f, h, jitter) == Some(0)
    }

    /// The longest that its bucket at a hop, if no other stream interferes, holds a flow with
    /// this jitter: until the bucket has gathered what is missing. None: without limit.
    fn held(&self, f: usize, h: usize, jitter: Option<i128>) -> Option<i128> {
        let flow = &self.network.flows[f];
        let PortHop { port, regulator, .. } = flow.hops[h];
        let (burst, rate) = in_true_time(self.network.system, regulator?, port, false);
        let frame = i128::from(frame::on_wire(flow.arrival.octets[1]).get()) * 8 * BILLION;
        let curve = flow.arrival.curve(frame, jitter?);
        if curve.rate() > rate || rate == 0 {
            return None;
        }
        let missing = |t: i128| (curve.at(t) - burst).max(0);
        curve.corners().map(|t| (div_ceil(missing(t), rate) - t).max(0)).max()
    }

    /// Reshaping is for free: behind a queue that serves in order, and into which all flows of the
    /// group come in the shape to which it restores them, the regulator adds nothing to the
    /// longest delay of that queue (Le Boudec 2018).
    fn shaping_for_free(&self, f: usize, h: usize, group: &[(usize, usize)]) -> Option<i128> {
        let mut longest = 0;
        let mut entered = None;
        for &(g, k) in group {
            let flow = &self.network.flows[g];
            let [from] = &flow.hops[k].from[..] else { return None };
            let state = &self.states[g][from.hop];
            if !self.is_cascade(g, from.hop, k) && !self.conforms(g, k, state.jitter()) {
                return None;
            }
            longest = longest.max(state.wait? + i128::from(from.travel[1].as_ns()));
            if (g, k) == (f, h) {
                entered = state.late;
            }
        }
        Some(entered? + longest + REGULATOR_ROUNDING)
    }

    /// Whether a flow's bucket at a hop holds whatever passed the one at the hop before.
    fn is_cascade(&self, f: usize, before: usize, h: usize) -> bool {
        let (flow, system) = (&self.network.flows[f], self.network.system);
        let [up, here] = [before, h].map(|at| &flow.hops[at]);
        let (Some(first), Some(then)) = (up.regulator, here.regulator) else { return false };
        if !self.is_asynchronous((up.port.index(), flow.queue)) {
            return false;
        }
        if is_same_rate(system, up.port, here.port) {
            return first.rate <= then.rate && first.burst <= then.burst;
        }
        let (burst, rate) = in_true_time(system, first, up.port, true);
        let (most, at) = in_true_time(system, then, here.port, false);
        burst <= most && rate <= at
    }

    /// Recomputes the waits at one queue.
    fn serve(&mut self, place: QueueId, last: bool) -> Served {
        let service = self.service(place);
        let arrivals = self.arrivals(place, 0, Octets::default());
        let mut served = Served::default();
        if let (Some(service), Some(Some(accrual))) = (&service, self.accrual(place))
            && let Some(credit) = service.credit(&accrual)
        {
            served.credit = self.credit.insert(place, credit) != Some(credit);
        }
        // What settles in a cycle is a bound if it is more than what follows from it.
        let cyclic = self.cyclic.contains(&place);
        let followed = !cyclic && !self.network.unlimited[place.0][place.1];
        let scheduled = followed.then(|| self.followed(place)).flatten();
        let mut known: BTreeMap<i128, Option<i128>> = BTreeMap::new();
        for at in 0..self.members[&place].len() {
            let (f, h) = self.members[&place][at];
            let own = self.frame_at(f, place.0, 0, Octets::default());
            let wait = *known.entry(own).or_insert_with(|| {
                let wait = service.as_ref()?.wait(arrivals.as_ref()?, own)?;
                (wait <= DELAY_MAX).then_some(wait + i128::from(cyclic))
            });
            let start = scheduled.as_ref().map(|starts| starts[at]);
            self.phase_specific.extend(start.map(|_| f));
            let state = &mut self.states[f][h];
            let exact = start.zip(state.late).map(|(start, late)| start.late - late);
            let wait = [wait, exact].into_iter().flatten().min();
            state.starts = start.map_or(0, |start| start.early);
            // Delays only ever grow: what was without limit stays so.
            if state.wait.is_some() && state.wait != wait {
                state.wait = wait.filter(|_| !last);
                served.waits = true;
            }
        }
        served
    }

    fn mark_downstream(&self, place: QueueId, next: &mut [bool]) {
        for &(f, h) in &self.members[&place] {
            let hops = &self.network.flows[f].hops;
            let after = hops.iter().filter(|hop| hop.from.iter().any(|from| from.hop == h));
            after.for_each(|hop| next[hop.port.index()] = true);
        }
    }
}

/// What changed at a queue.
#[derive(Default)]
struct Served {
    waits: bool,
    /// The greatest credit of its shaper.
    credit: bool,
}

/// The queues in an order in which each comes after those that it depends on: those that feed it
/// and the others of its port that go first. And those for which there is none, as they depend on
/// themselves or on such.
fn order(
    network: &FlowNetwork<'_>,
    places: impl Iterator<Item = QueueId>,
) -> (Vec<QueueId>, BTreeSet<QueueId>) {
    let mut left: BTreeSet<QueueId> = places.collect();
    let mut edges: BTreeSet<(QueueId, QueueId)> = BTreeSet::new();
    for flow in &network.flows {
        for hop in &flow.hops {
            let at = |hop: usize| (flow.hops[hop].port.index(), flow.queue);
            let here = (hop.port.index(), flow.queue);
            edges.extend(hop.from.iter().map(|from| (at(from.hop), here)));
        }
    }
    for &(port, queue) in &left {
        let first = network.goes_first(port, queue);
        let others = (0..QUEUES).filter(|other| first >> other & 1 == 1);
        let there = others.map(|other| (port, other)).filter(|other| left.contains(other));
        edges.extend(there.map(|other| (other, (port, queue))));
    }
    let mut waits_for: BTreeMap<QueueId, usize> = left.iter().map(|place| (*place, 0)).collect();
    for (_, to) in &edges {
        *waits_for.entry(*to).or_default() += 1;
    }
    let ready = waits_for.iter().filter(|(_, count)| **count == 0).map(|(place, _)| *place);
    let mut order: Vec<QueueId> = ready.collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        left.remove(&place);
        for (_, to) in edges.range((place, (0, 0))..=(place, (usize::MAX, usize::MAX))) {
            let count = waits_for.get_mut(to).expect("a queue");
            *count -= 1;
            if *count == 0 {
                order.push(*to);
            }
        }
    }
    (order, left)
}
