//! Gate schedules (802.1Q-2022 8.6.8.4): when each frame of each flow leaves each port on its tree,
//! so that it meets no other.
//!
//! ```text
//! Network, PeriodicFlow ─→ Synthesizer ─→ Placed (release, queue, start at each hop) ─→ gate lists
//! ```
//!
//! A *window* is the time for which only one flow's queue is open at a port. A frame is queued
//! before its window opens in the worst case, nothing else is in its queue then, and no other queue
//! is open: so it starts when the window opens, by the clock of the port's node, whatever the load.
//! That removes the jitter of the hop before; a lost frame moves no other.
//!
//! Pure and in integers: equal inputs give equal schedules. Every rule is stated at [`Placed`].

#[cfg(feature = "exact")]
pub mod exact;
mod gates;
mod order;
mod place;
mod proof;
mod timeline;

pub(crate) use gates::multiple;
pub use gates::{GateList, GateState, gate_lists};

use onbeat_model::time::Span;
use order::Order;
use place::{Hindrances, Port, Route};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use timeline::{Taken, Timeline};

/// The ports that flows may leave through, each a direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// In any order; flows name them by position.
    pub ports: Vec<Egress>,
}

/// One egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// From the last bit of a frame on the wire until it is queued at the next node, or received:
    /// at least and at most.
    pub latency: [Span; 2],
    /// By how much the clock of the port's node may be wrong, either way.
    pub clock_error: Span,
    /// Windows begin and end at multiples of it; at least 1 ns.
    pub tick: Span,
    /// How many queues scheduled flows may use, at least 1.
    pub queues: u8,
    /// The most entries of its gate control list.
    pub entries_max: usize,
}

/// One periodic flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodicFlow {
    /// One frame in each.
    pub period: Span,
    /// When the frame is made in each period, by the talker's clock; none: the schedule says when.
    pub release: Option<Span>,
    /// From its release until it is queued at the talker's port: at least and at most.
    pub ready: [Span; 2],
    /// From its release until it is received, at most, at each leaf of the tree.
    pub deadline: Span,
    /// By how much receipts at a leaf may differ.
    pub jitter: Option<Span>,
    /// A tree: each hop behind the one that it follows.
    pub hops: Vec<FlowHop>,
    /// Where copies of a replicated frame come together: hops with a further hop before them, in
    /// front of which it stands. Of the copies, the first one is queued.
    pub joins: Vec<Join>,
}

/// A further hop before one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The hop, by its position in [`PeriodicFlow::hops`].
    pub hop: usize,
    /// The other hop before it, by its position.
    pub before: usize,
}

/// One port on a flow's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHop {
    /// Its position in [`Network::ports`].
    pub port: usize,
    /// The position of the hop before it in [`PeriodicFlow::hops`]; none at the talker.
    pub after: Option<usize>,
    /// From the start of the frame to its last bit.
    pub sent: Span,
    /// From the start of the frame until another one may start: with the gap.
    pub occupies: Span,
}

/// Whether frames may wait in bridges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// A frame may be held at a bridge until its window comes.
    #[default]
    Allowed,
    /// A frame starts at the first tick at which it is queued in any case.
    None,
}

/// Where a flow was placed.
///
/// For hop *k* of flow *f* at port *p* with clock error *e*, all modulo the period *T* of the flow:
///
/// 1. *start* and *T* are multiples of the tick of *p*; the window is as long as *occupies*,
///    rounded up to ticks.
/// 2. At the talker a frame is queued from *release + ready\[0\]* to *release + ready\[1\]*; its
///    window begins no earlier than the latter. *release* is in *\[0, T)*.
/// 3. Behind hop *j* at port *q* it is queued from *start_j + sent_j + latency_q\[0\] − e_q − e_p*
///    to *start_j + sent_j + latency_q\[1\] + e_q + e_p*; its window begins no earlier than the
///    latter, and without waiting at the first tick from then on. Where copies come together
///    ([`Join`]) that is from the first instant of any of them to the last of all, as each may be
///    the only one.
/// 4. Windows at one port do not overlap, whatever their queues, in any period.
/// 5. From the first instant at which a frame may be queued to the end of its window, no other
///    frame may be in its queue there, be it of another flow or of its own.
/// 6. At a leaf it is received from *start + sent + latency\[0\] − e* to *start + sent +
///    latency\[1\] + e*. The latter, plus the clock error of the talker's port, minus *release* is
///    at most the deadline; the difference of both is at most the jitter.
/// 7. The gate control list of a port has at most `entries_max` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// When the frame is made in each period, by the talker's clock.
    pub release: Span,
    /// Its queue, the same at each hop: 0 up to the least number of queues on its tree.
    pub queue: u8,
    /// By hop: when its window begins, counted from the begin of the period of its release; it may
    /// be in a later one.
    pub starts: Vec<Span>,
}

/// Why a flow was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub flow: usize,
    /// What is in the way.
    pub why: Obstacle,
    /// Whether no schedule by the rules of [`Placed`] can exist; else none was found.
    pub is_proven: bool,
}

/// Why there is no place for a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Even alone it takes so long to a leaf, more than its deadline.
    Path {
        /// The leaf's hop.
        hop: usize,
        /// The least time.
        takes: Span,
    },
    /// Even alone its receipts differ by so much, more than its jitter.
    Jitter {
        /// The leaf's hop.
        hop: usize,
        /// The difference.
        varies: Span,
    },
    /// The windows at a port take more than all of its time.
    Overload {
        /// The port.
        port: usize,
        /// The flows that have windows there.
        flows: Vec<usize>,
    },
    /// Its period is no multiple of the tick of a port: its windows would not be, either.
    Tick {
        /// Where.
        hop: usize,
    },
    /// Its window, or its time in a queue, is as long as its period.
    Period {
        /// Where.
        hop: usize,
    },
    /// Two flows take so much of a port that in no phase both fit: the longer windows overlap in
    /// the greatest common divisor of their periods.
    Pair {
        /// The port.
        port: usize,
        /// The other flow.
        other: usize,
    },
    /// There is room nowhere between other flows.
    Occupied {
        /// Where the search failed most often.
        port: usize,
        /// The flows that were in the way there.
        flows: Vec<usize>,
    },
    /// A gate control list would have too many entries.
    Entries {
        /// The port.
        port: usize,
        /// How many it would have; none: too many to count.
        entries: Option<usize>,
    },
}

impl Obstacle {
    /// The port that has no room; none if the flow would find no place even alone.
    pub fn port(&self) -> Option<usize> {
        match self {
            Self::Overload { port, .. }
            | Self::Pair { port, .. }
            | Self::Occupied { port, .. }
            | Self::Entries { port, .. } => Some(*port),
            Self::Path { .. } | Self::Jitter { .. } | Self::Tick { .. } | Self::Period { .. } => {
                None
            }
        }
    }
}

/// Places flows one by one and takes them out again; those that stay do not move.
///
/// ```
/// use onbeat_bounds::synthesis::{Egress, PeriodicFlow, FlowHop, Network, Synthesizer, Waiting};
/// use onbeat_model::time::Span;
///
/// let port = Egress {
///     latency: [Span::from_us(2); 2],
///     clock_error: Span::ZERO,
///     tick: Span::from_ns(1),
///     queues: 1,
///     entries_max: 1_024,
/// };
/// let network = Network { ports: vec![port; 2] };
/// let [sent, occupies] = [Span::from_us(4), Span::from_us(5)];
/// let hop = |port, after| FlowHop { port, after, sent, occupies };
/// let flow = PeriodicFlow {
///     period: Span::from_us(100),
///     release: None,
///     ready: [Span::ZERO; 2],
///     deadline: Span::from_us(50),
///     jitter: None,
///     hops: vec![hop(0, None), hop(1, Some(0))],
///     joins: Vec::new(),
/// };
/// let mut synthesizer = Synthesizer::new(&network, Waiting::None);
/// let first = synthesizer.add(0, &flow).expect("it is alone");
/// assert_eq!(first.starts, [Span::ZERO, Span::from_us(6)]);
/// let second = synthesizer.add(1, &flow).expect("there is room");
/// // In one queue it follows when the first has left it everywhere.
/// assert_eq!(second.starts, [Span::from_us(5), Span::from_us(11)]);
/// ```
#[derive(Clone, Debug)]
pub struct Synthesizer<'a> {
    network: Cow<'a, Network>,
    waiting: Waiting,
    ports: Vec<Port>,
    placed: HashMap<usize, (Route, Placed)>,
}

impl<'a> Synthesizer<'a> {
    /// No flow yet.
    pub fn new(network: &'a Network, waiting: Waiting) -> Self {
        Self::of(Cow::Borrowed(network), waiting)
    }

    fn of(network: Cow<'a, Network>, waiting: Waiting) -> Self {
        let port = |egress: &Egress| Port {
            windows: Timeline::default(),
            queues: vec![Timeline::default(); usize::from(egress.queues)],
        };
        let ports = network.ports.iter().map(port).collect();
        Self { network, waiting, ports, placed: HashMap::new() }
    }

    /// Places one more flow, which is called `id` from now on.
    ///
    /// # Errors
    /// When there is no room; nothing has changed then.
    ///
    /// # Panics
    /// When there is a flow of that number already; when a hop is not behind the one that it
    /// follows, or its port is none of the network.
    pub fn add(&mut self, id: usize, flow: &PeriodicFlow) -> Result<Placed, Refusal> {
        self.add_within(id, flow, place::MOVES_MAX)
    }

    /// The same, with fewer moves in search of a place.
    fn add_within(
        &mut self,
        id: usize,
        flow: &PeriodicFlow,
        moves: usize,
    ) -> Result<Placed, Refusal> {
        assert!(!self.placed.contains_key(&id), "there is a flow {id}");
        let route = Route::new(&self.network, flow);
        if let Some(why) = route.impossible(flow) {
            return Err(Refusal { flow: id, why, is_proven: true });
        }
        let mut hindrances = Hindrances::default();
        match place::place(&route, &mut self.ports, self.waiting, moves, &mut hindrances) {
            Some(placed) => {
                self.take(id, route, placed.clone());
                Ok(placed)
            }
            None => Err(place::refused(id, &route, hindrances)),
        }
    }

    /// Places one more flow so that its window follows another one without a gap at the busiest of
    /// its ports. False if that is not possible.
    fn add_close(&mut self, id: usize, flow: &PeriodicFlow, loads: &[u64]) -> bool {
        let route = Route::new(&self.network, flow);
        let hop = route.busiest(loads);
        let placed = place::place_close(&route, &mut self.ports, self.waiting, hop);
        let is_placed = placed.is_some();
        if let Some(placed) = placed {
            self.take(id, route, placed);
        }
        is_placed
    }

    /// Puts a flow back where it was in an earlier schedule, waiting or not. False if that is not
    /// right any more, or where others are; nothing has changed then.
    ///
    /// # Panics
    /// As [`Synthesizer::add`].
    pub fn put_back(&mut self, id: usize, flow: &PeriodicFlow, placed: &Placed) -> bool {
        assert!(!self.placed.contains_key(&id), "there is a flow {id}");
        let route = Route::new(&self.network, flow);
        let is_right = route.impossible(flow).is_none()
            && route.allows(placed)
            && place::is_free(&route, placed, &mut self.ports);
        if is_right {
            self.take(id, route, placed.clone());
        }
        is_right
    }

    fn take(&mut self, id: usize, route: Route, placed: Placed) {
        for (port, window, queued) in place::taken(&route, &placed) {
            self.ports[port].windows.insert(id, window);
            self.ports[port].queues[usize::from(placed.queue)].insert(id, queued);
        }
        self.placed.insert(id, (route, placed));
    }

    /// Takes a flow out; false if there is none of that number.
    pub fn remove(&mut self, id: usize) -> bool {
        let Some((route, placed)) = self.placed.remove(&id) else { return false };
        for (port, _, _) in place::taken(&route, &placed) {
            self.ports[port].windows.remove(id);
            self.ports[port].queues[usize::from(placed.queue)].remove(id);
        }
        true
    }

    /// Whether flows that are added from now on may wait in bridges.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// A port's gate control list as flows are placed now; as [`gate_lists`].
    ///
    /// # Panics
    /// When there is no such port.
    pub fn gate_list(&self, port: usize) -> Option<GateList> {
        gates::listed(&self.windows(port))
    }

    /// The first of a flow's ports whose gate control list has too many entries:
    /// [`Synthesizer::add`] does not look at that.
    pub fn excess_entries(&self, id: usize) -> Option<Obstacle> {
        let (route, placed) = self.placed.get(&id)?;
        place::taken(route, placed).find_map(|(port, ..)| {
            let most = self.network.ports[port].entries_max;
            let entries = gates::count(&self.windows(port), most);
            let fits = entries.is_some_and(|entries| entries <= most);
            (!fits).then_some(Obstacle::Entries { port, entries })
        })
    }

    fn windows(&self, port: usize) -> Vec<gates::Window> {
        let windows = self.ports[port].windows.iter();
        let window = |(owner, taken): (usize, Taken)| {
            (taken.begin, taken.length, taken.period, self.placed[&owner].1.queue)
        };
        windows.map(window).collect()
    }
}

impl Synthesizer<'static> {
    /// No flow yet, in a network of its own.
    pub fn owning(network: Network, waiting: Waiting) -> Self {
        Self::of(Cow::Owned(network), waiting)
    }
}

/// Places all flows, if that can be found: by first fit in several orders, in one of them behind
/// other windows without a gap, each mended by placing those that found no place where others are,
/// and these elsewhere.
///
/// # Errors
/// The first flow for which there is no place. Whatever its other rules, a refusal that is proven
/// holds for every schedule.
///
/// # Panics
/// As [`Synthesizer::add`].
pub fn synthesize(
    network: &Network,
    flows: &[PeriodicFlow],
    waiting: Waiting,
) -> Result<Vec<Placed>, Refusal> {
    synthesize_keeping(network, flows, waiting, &[])
}

/// The same, where flows stay as they were in an earlier schedule. They are put back in the order
/// of `kept`, each that is still right there, unless one before it is in its place; only who finds
/// no place else moves them.
///
/// # Errors
/// As [`synthesize`].
///
/// # Panics
/// As [`Synthesizer::add`].
pub fn synthesize_keeping(
    network: &Network,
    flows: &[PeriodicFlow],
    waiting: Waiting,
    kept: &[(usize, Placed)],
) -> Result<Vec<Placed>, Refusal> {
    if let Some(refusal) = proof::impossible(network, flows) {
        return Err(refusal);
    }
    let mut refusal = None;
    for order in order::orders(network, flows) {
        match attempt(network, flows, waiting, kept, &order) {
            Ok(placed) => return Ok(placed),
            Err(found) => refusal = refusal.or(Some(found)),
        }
    }
    Err(refusal.expect("there is an order"))
}

/// Places all flows in an order, and mends what is left.
fn attempt(
    network: &Network,
    flows: &[PeriodicFlow],
    waiting: Waiting,
    kept: &[(usize, Placed)],
    order: &Order,
) -> Result<Vec<Placed>, Refusal> {
    let mut synthesizer = Synthesizer::new(network, waiting);
    for (flow, kept) in kept {
        synthesizer.put_back(*flow, &flows[*flow], kept);
    }
    let (mut lacking, mut first) = (VecDeque::new(), None);
    let loads = order::loads(network, flows);
    for flow in &order.flows {
        if synthesizer.placed.contains_key(flow) {
            continue;
        }
        if order.is_close && synthesizer.add_close(*flow, &flows[*flow], &loads) {
            continue;
        }
        if let Err(refusal) = synthesizer.add(*flow, &flows[*flow]) {
            lacking.push_back(*flow);
            first.get_or_insert(refusal);
        }
    }
    if let Some(refusal) = first
        && !synthesizer.mend(flows, lacking)
    {
        return Err(refusal);
    }
    let placed = (0..flows.len()).map(|flow| synthesizer.placed[&flow].1.clone()).collect();
    gates::within(network, flows, placed)
}

impl Synthesizer<'_> {
    /// Places those that found no place where others are, and these elsewhere, until all have one
    /// or it has taken too long. Who was displaced often is displaced last.
    fn mend(&mut self, flows: &[PeriodicFlow], mut lacking: VecDeque<usize>) -> bool {
        // Who needs much of a port's time is hard to place again.
        let loads: Vec<u64> = flows.iter().map(order::load).collect();
        let mut weights = loads.clone();
        let mut guesses = 0u64;
        for _ in 0..order::moves(flows.len()) {
            let Some(id) = lacking.pop_front() else { return true };
            if self.add_within(id, &flows[id], place::MOVES_FEW).is_ok() {
                continue;
            }
            let route = Route::new(&self.network, &flows[id]);
            let mut best: Option<(u64, Placed, BTreeSet<usize>)> = None;
            for _ in 0..order::GUESSES {
                guesses += 1;
                let (release, queue) = route.guess(guesses);
                let Some((placed, displaced)) =
                    place::displace(&route, &mut self.ports, release, queue)
                else {
                    continue;
                };
                let cost = displaced.iter().map(|other| weights[*other]).sum();
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, placed, displaced));
                }
            }
            let Some((_, placed, displaced)) = best else { return false };
            for other in displaced {
                self.remove(other);
                lacking.push_back(other);
            }
            self.take(id, route, placed);
            weights[id] += loads[id] / 2;
        }
        lacking.is_empty()
    }
}
