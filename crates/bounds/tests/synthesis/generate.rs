//! Instances in the style of the published benchmark (Xue et al., RTAS 2024), and others that have
//! everything the types can say.

use onbeat_bounds::synthesis::{Egress, FlowHop, Join, Network, PeriodicFlow, Waiting};
use onbeat_model::time::Span;
use onbeat_testkit::Random;
use std::collections::VecDeque;

/// How bridges are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Line,
    Ring,
    Tree,
    Mesh,
    /// Two circles in which the bridges are in random orders.
    Random,
}

impl Topology {
    pub(crate) const ALL: [Self; 5] =
        [Self::Line, Self::Ring, Self::Tree, Self::Mesh, Self::Random];
}

/// Periods in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Periods {
    Sparse,
    Dense,
}

impl Periods {
    const fn all(self) -> [i64; 4] {
        match self {
            Self::Sparse => [500, 1_000, 2_000, 4_000],
            Self::Dense => [100, 200, 400, 800],
        }
    }
}

/// One instance.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) network: Network,
    pub(crate) flows: Vec<PeriodicFlow>,
    pub(crate) waiting: Waiting,
}

/// Directed links between nodes: bridges first, then an end station at each. A port is a link.
pub(crate) struct Graph {
    links: Vec<(usize, usize)>,
    /// By node: the links that leave it.
    out: Vec<Vec<usize>>,
    bridges: usize,
}

impl Graph {
    pub(crate) fn new(random: &mut Random, topology: Topology, bridges: usize) -> Self {
        let mut graph = Self { links: Vec::new(), out: vec![Vec::new(); 2 * bridges], bridges };
        let width = bridges.isqrt().max(2);
        for _ in 0..2 * usize::from(topology == Topology::Random) {
            let mut circle: Vec<usize> = (0..bridges).collect();
            circle.sort_by_cached_key(|_| random.draw());
            (0..bridges).for_each(|at| graph.join(circle[at], circle[(at + 1) % bridges]));
        }
        for bridge in 1..bridges {
            match topology {
                Topology::Random => {}
                Topology::Line | Topology::Ring => graph.join(bridge, bridge - 1),
                Topology::Tree => graph.join(bridge, random.index(bridge)),
                // A grid.
                Topology::Mesh => {
                    let left = (bridge % width > 0).then(|| bridge - 1);
                    let above = bridge.checked_sub(width);
                    left.into_iter().chain(above).for_each(|other| graph.join(bridge, other));
                }
            }
        }
        if topology == Topology::Ring && bridges > 2 {
            graph.join(0, bridges - 1);
        }
        (0..bridges).for_each(|bridge| graph.join(bridge, bridges + bridge));
        graph
    }

    fn join(&mut self, a: usize, b: usize) {
        if self.links.contains(&(a, b)) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            self.out[from].push(self.links.len());
            self.links.push((from, to));
        }
    }

    pub(crate) fn ports(&self) -> usize {
        self.links.len()
    }

    /// The shortest paths from an end station to others, as a tree: each link with the one before.
    pub(crate) fn tree(&self, from: usize, to: &[usize]) -> Vec<(usize, Option<usize>)> {
        let start = self.bridges + from;
        let mut by = vec![None; self.out.len()];
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            for link in &self.out[node] {
                let next = self.links[*link].1;
                if next != start && by[next].is_none() {
                    by[next] = Some(*link);
                    open.push_back(next);
                }
            }
        }
        let mut hops: Vec<(usize, Option<usize>)> = Vec::new();
        for station in to {
            let mut links = Vec::new();
            let mut node = self.bridges + station;
            while node != start {
                let link = by[node].expect("all stations are joined");
                links.push(link);
                node = self.links[link].0;
            }
            let mut before = None;
            for link in links.into_iter().rev() {
                let known = hops.iter().position(|(other, _)| *other == link);
                before = known.or_else(|| {
                    hops.push((link, before));
                    Some(hops.len() - 1)
                });
            }
        }
        hops
    }
}

pub(crate) fn hops(
    tree: &[(usize, Option<usize>)],
    octets: i64,
    octet_ns: impl Fn(usize) -> i64,
) -> Vec<FlowHop> {
    let hop = |(port, after): &(usize, Option<usize>)| FlowHop {
        port: *port,
        after: *after,
        sent: Span::from_ns((octets + 8) * octet_ns(*port)),
        occupies: Span::from_ns((octets + 20) * octet_ns(*port)),
    };
    tree.iter().map(hop).collect()
}

/// So many streams over so many bridges at 1 Gb/s: 100 to 500 octets, one listener each, deadlines
/// as long as periods, 2 µs in each bridge.
pub(crate) fn published(
    seed: u64,
    streams: usize,
    bridges: usize,
    topology: Topology,
    periods: Periods,
) -> Instance {
    let mut random = Random(seed);
    let graph = Graph::new(&mut random, topology, bridges);
    let egress = Egress {
        latency: [Span::from_us(2); 2],
        clock_error: Span::ZERO,
        tick: Span::from_ns(1),
        queues: 8,
        entries_max: usize::MAX,
    };
    let flow = |_| {
        let from = random.index(bridges);
        let to = (from + 1 + random.index(bridges - 1)) % bridges;
        let period = Span::from_us(random.one_of(&periods.all()));
        let octets = random.between(100, 500);
        PeriodicFlow {
            period,
            release: None,
            ready: [Span::ZERO; 2],
            deadline: period,
            jitter: None,
            hops: hops(&graph.tree(from, &[to]), octets, |_| 8),
            joins: Vec::new(),
        }
    };
    let flows = (0..streams).map(flow).collect();
    Instance {
        name: format!("{streams} streams, {bridges} bridges, {topology:?}, {periods:?}"),
        network: Network { ports: vec![egress; graph.ports()] },
        flows,
        waiting: Waiting::Allowed,
    }
}

/// The same with copies of some frames that take another way, of its own ports, and join again.
pub(crate) fn joined(seed: u64) -> Instance {
    let mut instance = any(seed);
    let mut random = Random(!seed);
    let ports = instance.network.ports.len();
    for flow in &mut instance.flows {
        for _ in 0..random.below(3) {
            let end = random.index(flow.hops.len());
            let used = |port: usize| flow.hops.iter().any(|hop| hop.port == port);
            let free: Vec<usize> = (0..ports).filter(|port| !used(*port)).collect();
            if end == 0 || free.is_empty() {
                continue;
            }
            // Before the hop where they join; what is behind it moves on by one.
            let moved = |hop: usize| if hop >= end { hop + 1 } else { hop };
            for hop in &mut flow.hops {
                hop.after = hop.after.map(moved);
            }
            for join in &mut flow.joins {
                (join.hop, join.before) = (moved(join.hop), moved(join.before));
            }
            let (after, like) = (random.index(end), flow.hops[random.index(flow.hops.len())]);
            let port = random.one_of(&free);
            flow.hops.insert(end, FlowHop { port, after: Some(after), ..like });
            flow.joins.push(Join { hop: end + 1, before: end });
        }
    }
    Instance { name: format!("joined {seed}"), ..instance }
}

/// 256 instances: streams × bridges × periods × topologies.
pub(crate) fn published_set(seed: u64) -> Vec<Instance> {
    let mut set = Vec::new();
    for streams in (10..=220).step_by(30) {
        for bridges in (8..=78).step_by(10) {
            for periods in [Periods::Sparse, Periods::Dense] {
                for topology in [Topology::Line, Topology::Ring] {
                    let seed = seed + set.len() as u64;
                    set.push(published(seed, streams, bridges, topology, periods));
                }
            }
        }
    }
    set
}

/// Anything.
pub(crate) fn any(seed: u64) -> Instance {
    let mut random = Random(seed);
    let random = &mut random;
    let topology = random.one_of(&Topology::ALL);
    let bridges = 2 + random.index(7);
    let graph = Graph::new(random, topology, bridges);
    let (errs, ticks, few, varies, tight) = (
        random.percent(40),
        random.percent(40),
        random.percent(40),
        random.percent(40),
        random.percent(40),
    );
    let egress = |random: &mut Random| {
        let least = random.between(-500, 3_000);
        Egress {
            latency: [least, least + if varies { random.between(0, 3_000) } else { 0 }]
                .map(Span::from_ns),
            clock_error: Span::from_ns(if errs { random.between(0, 1_000) } else { 0 }),
            tick: Span::from_ns(if ticks { random.one_of(&[1, 8, 200, 7, 1_000]) } else { 1 }),
            queues: if few { 1 } else { 1 + random.index(8) as u8 },
            entries_max: if random.one_in(60) { random.index(60) } else { 100_000 },
        }
    };
    let ports: Vec<Egress> = (0..graph.ports()).map(|_| egress(random)).collect();
    let slow = if random.percent(30) { 80 } else { 8 };
    let octet_ns: Vec<i64> = ports.iter().map(|_| random.one_of(&[8, 8, slow])).collect();
    let odd = random.percent(30);
    let (fixed, count) = (random.percent(30), 1 + random.below(24));
    let flow = |_| {
        let from = random.index(bridges);
        let count = if random.one_in(3) { 1 + random.index(bridges - 1) } else { 1 };
        let to: Vec<usize> = (1..=count).map(|by| (from + by) % bridges).collect();
        let period = match odd {
            true => random.one_of(&[300, 500, 700, 1_000, 1_500]),
            false => random.one_of(&[250, 500, 1_000, 2_000]),
        };
        let period = Span::from_us(period);
        let early = random.between(0, 3_000);
        let ready = [early, early + random.between(0, 3_000)].map(Span::from_ns);
        let release = Span::from_ns(random.below(period.as_ns().unsigned_abs()).cast_signed());
        PeriodicFlow {
            period,
            release: (fixed && random.one_in(4)).then_some(release),
            ready: if random.one_in(3) { ready } else { [Span::ZERO; 2] },
            deadline: match random.below(4) {
                0 if tight => Span::from_us(random.between(5, 300)),
                1 => period * 2,
                _ => period.max(Span::from_ms(1)),
            },
            jitter: (tight && random.one_in(6))
                .then(|| Span::from_ns(random.between(3_000, 20_000))),
            hops: hops(&graph.tree(from, &to), random.between(64, 600), |port| octet_ns[port]),
            joins: Vec::new(),
        }
    };
    let flows = (0..count).map(flow).collect();
    let waiting = if seed.is_multiple_of(2) { Waiting::Allowed } else { Waiting::None };
    Instance { name: format!("seed {seed}"), network: Network { ports }, flows, waiting }
}
