//! The linear program of a tree: dates, and how much of each flow comes between them.
//!
//! `docs/network-calculus.md` derives it (after Bouillard, *Trade-off between accuracy and
//! tractability of Network Calculus in FIFO networks*, Performance Evaluation 2022). A server of
//! depth *d*, the root's being 0, has the dates *t₀ ≥ t₁ ≥ … ≥ t_{d+1}*. All but the last are when
//! that came which leaves at the same-numbered date of the server behind; the last is from when
//! on it served all the time until what leaves at the one before. Variables, none negative:
//!
//! - how long what leaves at the latest date was in each server;
//! - the gaps between two dates next to each other, in each server;
//! - how much of each flow came in each of those, from the gap of the last server that it crosses
//!   to that of the first: the others bind nothing;
//! - for a flow of which the burst behind the root is asked, how much more it may have sent.

use super::FifoNetwork;
use super::certify::{self, Exact, Objective, Solution, Unit};
use super::curve::{Bucket, Curve};
use super::simplex::{Inequality, Simplex};
use super::total::{At, input_link, over, span, whole};
use super::tree::{Forest, between, fluid};
use super::work::{Work, cube};
use onbeat_model::time::Span;
use std::collections::{BTreeMap, HashMap};

/// Looking at one server on the path of a sub-flow counts as so many steps.
const STEPS_PER_HOP: u64 = 100;

/// Above so many variables, sub-flows of the same path count as one whatever their curves.
const COARSE: usize = 400;

/// What is known of a sub-flow where it enters its tree.
#[derive(Clone, Debug)]
pub(crate) struct SubFlowEntry {
    /// What it brings for certain.
    pub(crate) known: Option<Curve>,
    /// The rate of the bucket whose burst is a variable of the fixed point, if there is one.
    pub(crate) unknown: Option<i128>,
}

/// What is the same for all trees of a network.
pub(crate) struct TreeFacts<'a> {
    pub(crate) network: &'a FifoNetwork,
    /// Per server, the largest packet.
    largest: Vec<i128>,
    /// The greatest burst of a source.
    burst: i128,
}

impl<'a> TreeFacts<'a> {
    pub(crate) fn new(network: &'a FifoNetwork) -> Self {
        let mut largest = vec![0; network.servers.len()];
        for flow in &network.flows {
            for hop in &flow.hops {
                largest[hop.server] = flow.largest.max(largest[hop.server]);
            }
        }
        let burst = network.flows.iter().map(|f| f.arrival.burst()).max().unwrap_or(1);
        Self { network, largest, burst }
    }
}

/// What else is known of a tree.
pub(crate) struct Known<'a> {
    /// The longest delay of each server, for all that it serves.
    pub(crate) delays: &'a [Option<Span>],
    /// The longest time from entering the first server to leaving the second, without the
    /// constant delays between them.
    pub(crate) paths: &'a BTreeMap<(usize, usize), Span>,
}

/// A server of the tree.
struct TreeServer {
    server: usize,
    depth: usize,
    /// Position of the one behind.
    behind: Option<usize>,
    /// The first variable of its gaps.
    gaps: usize,
}

/// A sub-flow in the tree, or several with the same path that count as one.
struct Member {
    sub_flows: Vec<usize>,
    /// Positions of its servers.
    nodes: Vec<usize>,
    /// The gap of the first of its amounts, and their first variable.
    first: usize,
    amounts: usize,
    more: Option<usize>,
}

/// The program of the tree that ends in one root, for any objective.
pub(crate) struct LinearProgram {
    nodes: Vec<TreeServer>,
    members: Vec<Member>,
    rows: Vec<Exact>,
    early: Vec<bool>,
    units: Vec<Unit>,
    simplex: Option<Simplex>,
    scale: certify::Scale,
    /// Whether all its servers deliver bit by bit.
    fluid: bool,
}

impl LinearProgram {
    /// The program of the tree of `root`; none if it takes more work than is left. `wanted` are
    /// the sub-flows through it whose burst behind it will be asked for.
    pub(crate) fn new(
        facts: &TreeFacts<'_>,
        forest: &Forest,
        root: usize,
        entries: &[SubFlowEntry],
        wanted: &[usize],
        known: &Known<'_>,
        work: &Work,
    ) -> Option<Self> {
        let network = facts.network;
        let tree = forest.tree(root);
        // Without what comes in them, it has so many variables.
        let mut depth = BTreeMap::new();
        let mut size = 0;
        for server in tree.iter().rev() {
            let behind = forest.parent[*server].and_then(|parent| depth.get(&parent));
            let own: usize = behind.map_or(0, |behind| behind + 1);
            depth.insert(*server, own);
            size += own + 2;
        }
        let sub_flows = forest.inside(&tree);
        let steps: usize = sub_flows.iter().map(|p| forest.sub_flows[*p].servers.len()).sum();
        if !work.allows(cube(size)) || !work.take(STEPS_PER_HOP * steps as u64) {
            return None;
        }
        let sized = |coarse| {
            let mut program = Self {
                nodes: Vec::with_capacity(tree.len()),
                members: Vec::new(),
                rows: Vec::new(),
                early: Vec::new(),
                units: Vec::new(),
                simplex: None,
                scale: certify::Scale::new(network, &tree, facts.burst),
                fluid: fluid(network, &tree),
            };
            program.add_nodes(forest, &tree);
            program.add_members(network, forest, &sub_flows, entries, wanted, coarse);
            program
        };
        let exact = sized(false);
        let mut program = if exact.size() > COARSE { sized(true) } else { exact };
        if !work.take(cube(program.size())) {
            return None;
        }
        program.add_order();
        program.add_service(facts);
        for member in 0..program.members.len() {
            program.add_arrivals(member, entries);
        }
        program.add_input_links(network, forest);
        program.add_delays(known);
        Some(program)
    }

    /// Whether all its servers deliver bit by bit.
    pub(crate) fn is_fluid(&self) -> bool {
        self.fluid
    }

    /// How many variables it has: the size that tells how long it takes.
    pub(crate) fn size(&self) -> usize {
        self.units.len()
    }

    fn variable(&mut self, unit: Unit) -> usize {
        self.units.push(unit);
        self.units.len() - 1
    }

    fn add_nodes(&mut self, forest: &Forest, tree: &[usize]) {
        let position: BTreeMap<usize, usize> =
            tree.iter().rev().enumerate().map(|(at, server)| (*server, at)).collect();
        // The root first: each after the one behind it. Its wait is the variable of its position.
        for server in tree.iter().rev() {
            let behind = if self.nodes.is_empty() {
                None
            } else {
                forest.parent[*server].map(|parent| position[&parent])
            };
            let depth = behind.map_or(0, |at| self.nodes[at].depth + 1);
            self.variable(Unit::Time);
            self.nodes.push(TreeServer { server: *server, depth, behind, gaps: 0 });
        }
        for at in 0..self.nodes.len() {
            self.nodes[at].gaps = self.size();
            for _ in 0..=self.nodes[at].depth {
                self.variable(Unit::Time);
            }
        }
    }

    /// Sub-flows that come over the same line, go the same path and have the same curve count as
    /// one: that loses nothing. In a `coarse` program their curves need not be the same.
    fn add_members(
        &mut self,
        network: &FifoNetwork,
        forest: &Forest,
        sub_flows: &[usize],
        entries: &[SubFlowEntry],
        wanted: &[usize],
        coarse: bool,
    ) {
        let position: BTreeMap<usize, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.server, at)).collect();
        let mut same = HashMap::new();
        for &index in sub_flows {
            let sub_flow = &forest.sub_flows[index];
            let nodes: Vec<usize> =
                sub_flow.servers.iter().map_while(|s| position.get(s).copied()).collect();
            let (Some(start), Some(end)) = (nodes.first(), nodes.last()) else { continue };
            let hops = &network.flows[sub_flow.flow].hops;
            let line = over(hops, &hops[sub_flow.hops[0]]).map(|up| up.server);
            let entry = &entries[index];
            let alone = wanted.contains(&index) || entry.unknown.is_some() && !coarse;
            let curve = entry.known.as_ref().filter(|_| !coarse);
            let key = (nodes.clone(), line, alone.then_some(index), curve);
            if let Some(member) = same.get(&key) {
                let member: &mut Member = &mut self.members[*member];
                member.sub_flows.push(index);
                continue;
            }
            same.insert(key, self.members.len());
            let (first, last) = (self.nodes[*end].depth, self.nodes[*start].depth);
            let amounts = self.size();
            for _ in first..=last {
                self.variable(Unit::Amount);
            }
            let more = wanted.contains(&index).then(|| self.variable(Unit::Amount));
            self.members.push(Member { sub_flows: vec![index], nodes, first, amounts, more });
        }
    }

    fn row(&mut self, terms: Vec<(usize, i128)>, limit: i128, unit: Unit, early: bool) {
        self.rows.push(Exact { terms, limit, bursts: Vec::new(), unit });
        self.early.push(early);
    }

    /// How long what leaves at date `date` of the server behind was in `node`.
    fn stay(&self, node: usize, date: usize) -> Vec<(usize, i128)> {
        let mut terms = vec![(node, 1)];
        if let Some(behind) = self.nodes[node].behind {
            for gap in 0..date {
                terms.push((self.nodes[node].gaps + gap, 1));
                terms.push((self.nodes[behind].gaps + gap, -1));
            }
        }
        terms
    }

    /// No date is before that of the server in front.
    fn add_order(&mut self) {
        for node in 0..self.nodes.len() {
            for date in 1..=self.nodes[node].depth {
                let terms = self.stay(node, date).into_iter().map(|(v, a)| (v, -a)).collect();
                self.row(terms, 0, Unit::Time, true);
            }
        }
    }

    /// What a server has served from its last date on.
    fn add_service(&mut self, facts: &TreeFacts<'_>) {
        for node in 0..self.nodes.len() {
            let TreeServer { server, depth, gaps, .. } = self.nodes[node];
            let of = &facts.network.servers[server];
            let rate = i128::from(of.rate.as_bps());
            let mut terms = self.stay(node, depth);
            terms.push((gaps + depth, 1));
            terms.iter_mut().for_each(|(_, a)| *a *= rate);
            for member in self.members.iter().filter(|m| m.nodes.contains(&node)) {
                terms.push((member.amounts + depth - member.first, -1));
            }
            let largest = if self.fluid || depth == 0 { 0 } else { facts.largest[server] };
            let limit = rate * i128::from(of.latency.as_ns()) + whole(of, largest);
            self.row(terms, limit, Unit::Amount, true);
        }
    }

    /// What `member` sent from date `to` until date `from` of one of its servers.
    fn amount(&self, member: &Member, from: usize, to: usize) -> Vec<(usize, i128)> {
        let last = self.nodes[member.nodes[0]].depth;
        let gaps = from.max(member.first)..to.min(last + 1);
        gaps.map(|gap| (member.amounts + gap - member.first, 1)).collect()
    }

    fn within(&self, node: usize, from: usize, to: usize, rate: i128) -> Vec<(usize, i128)> {
        (from..to).map(|gap| (self.nodes[node].gaps + gap, -rate)).collect()
    }

    /// No more comes than the arrival curve allows.
    fn add_arrivals(&mut self, member: usize, entries: &[SubFlowEntry]) {
        let of = &self.members[member];
        let (start, more, first) = (of.nodes[0], of.more, of.first);
        let end = self.nodes[start].depth + 1;
        let limits = limits(&of.sub_flows, entries);
        let whole_way: Vec<usize> = of.nodes.clone();
        for (rate, limit, bursts) in limits {
            for from in first..end {
                for to in from + 1..=end {
                    let mut terms = self.amount(&self.members[member], from, to);
                    terms.extend(self.within(start, from, to, rate));
                    let bursts = bursts.clone();
                    self.rows.push(Exact { terms, limit, bursts, unit: Unit::Amount });
                    self.early.push(to == end || to == from + 1);
                }
            }
            let Some(more) = more else { continue };
            for to in 0..=end {
                let mut terms = self.amount(&self.members[member], 0, to);
                terms.push((more, 1));
                terms.extend(self.within(start, 0, to, rate));
                terms.extend(whole_way.iter().map(|node| (*node, -rate)));
                let bursts = bursts.clone();
                self.rows.push(Exact { terms, limit, bursts, unit: Unit::Amount });
                self.early.push(true);
            }
        }
    }

    /// No more comes over a line than it carries.
    fn add_input_links(&mut self, network: &FifoNetwork, forest: &Forest) {
        for node in 0..self.nodes.len() {
            // All sub-flows of a member come over one line.
            let mut lines: BTreeMap<Option<usize>, (Vec<usize>, Vec<At>)> = BTreeMap::new();
            for (index, member) in self.members.iter().enumerate() {
                let Some(at) = member.nodes.iter().position(|n| *n == node) else { continue };
                let place = |sub_flow: &usize| {
                    let sub_flow = &forest.sub_flows[*sub_flow];
                    (sub_flow.flow, sub_flow.hops[at])
                };
                let (flow, hop) = place(&member.sub_flows[0]);
                let hops = &network.flows[flow].hops;
                let from = over(hops, &hops[hop]).map(|up| up.server);
                let (members, group) = lines.entry(from).or_default();
                members.push(index);
                group.extend(member.sub_flows.iter().map(place));
            }
            for (from, (members, group)) in lines {
                if let Some(limit) = from.and_then(|from| input_link(network, from, &group)) {
                    self.add_input_link(node, &members, limit);
                }
            }
        }
    }

    fn add_input_link(&mut self, node: usize, members: &[usize], limit: Bucket) {
        let end = self.nodes[node].depth + 1;
        for from in 0..end {
            for to in from + 1..=end {
                let mut terms = Vec::new();
                for member in members {
                    terms.extend(self.amount(&self.members[*member], from, to));
                }
                if terms.is_empty() {
                    continue;
                }
                terms.extend(self.within(node, from, to, limit.bps()));
                self.row(terms, limit.burst, Unit::Amount, false);
            }
        }
    }

    /// Delays that other methods have found.
    fn add_delays(&mut self, known: &Known<'_>) {
        for node in 0..self.nodes.len() {
            let TreeServer { server, depth, .. } = self.nodes[node];
            if let Some(delay) = known.delays[server] {
                for date in 0..=depth {
                    let terms = self.stay(node, date);
                    self.row(terms, delay.as_ns().into(), Unit::Time, date == depth);
                }
            }
            let mut end = node;
            let mut path = vec![node];
            while let Some(behind) = self.nodes[end].behind {
                end = behind;
                path.push(end);
                let Some(delay) = known.paths.get(&(server, self.nodes[end].server)) else {
                    continue;
                };
                for date in 0..=self.nodes[end].depth {
                    let terms = path.iter().flat_map(|n| self.stay(*n, date)).collect();
                    self.row(terms, delay.as_ns().into(), Unit::Time, false);
                }
            }
        }
    }

    /// Sets the bursts of the sub-flows whose burst is a variable of the fixed point.
    pub(crate) fn set_bursts(&mut self, bursts: &[i128]) {
        let Some(simplex) = &mut self.simplex else { return };
        for (at, row) in self.rows.iter().enumerate().filter(|(_, row)| !row.bursts.is_empty()) {
            simplex.set_limit(at, self.scale.limit(row, bursts));
        }
    }

    /// Solves it for an objective and makes the certificate. What a solver in floating point
    /// cannot continue with, it may still solve from the start, or with more room for rounding.
    fn solve(&mut self, objective: &Objective, bursts: &[i128]) -> Option<Solution> {
        [1e-9, 1e-9, 1e-7].into_iter().find_map(|margin| {
            let mut simplex = self.simplex.take().unwrap_or_else(|| self.simplex(bursts));
            let floats = objective.floats(self.size(), margin);
            let multipliers = simplex.solve(&floats).ok()?;
            let (rows, count) = (&self.rows, self.size());
            let solution =
                certify::certify(rows, count, objective, &multipliers, &self.scale, bursts)?;
            self.simplex = Some(simplex);
            Some(solution)
        })
    }

    fn simplex(&self, bursts: &[i128]) -> Simplex {
        let floats = self.rows.iter().zip(&self.early).map(|(row, early)| Inequality {
            terms: self.scale.terms(row, &self.units),
            limit: self.scale.limit(row, bursts),
            early: *early,
        });
        Simplex::new(self.size(), floats.collect())
    }

    /// The longest time from entering `server` to leaving the root, without the constant delays
    /// between servers.
    pub(crate) fn delay(&mut self, server: usize, bursts: &[i128]) -> Option<Span> {
        span(self.delay_solution(server, bursts)?.bound)
    }

    /// [`LinearProgram::delay`] with what it depends on.
    pub(crate) fn delay_solution(&mut self, server: usize, bursts: &[i128]) -> Option<Solution> {
        let mut node = self.nodes.iter().position(|n| n.server == server)?;
        let mut terms = vec![(node, 1)];
        while let Some(behind) = self.nodes[node].behind {
            node = behind;
            terms.push((node, 1));
        }
        self.solve(&Objective { terms, unit: Unit::Time }, bursts)
    }

    /// The burst of a wanted sub-flow behind the root, where all outputs are bits.
    pub(crate) fn burst_solution(&mut self, sub_flow: usize, bursts: &[i128]) -> Option<Solution> {
        let more = self.members.iter().find(|m| m.sub_flows == [sub_flow])?.more?;
        self.solve(&Objective { terms: vec![(more, 1)], unit: Unit::Amount }, bursts)
    }
}

/// The constant delays between the servers of a sub-flow up to position `to`.
pub(crate) fn constant(network: &FifoNetwork, forest: &Forest, sub_flow: usize, to: usize) -> Span {
    let of = &forest.sub_flows[sub_flow];
    (1..=to).map(|at| between(network, of, at)).fold(Span::ZERO, |sum, s| sum + s)
}

/// The buckets of some sub-flows together: rate, burst, and the sub-flows whose unknown bursts are
/// more.
fn limits(sub_flows: &[usize], entries: &[SubFlowEntry]) -> Vec<(i128, i128, Vec<usize>)> {
    let known: Option<Vec<&Curve>> = sub_flows.iter().map(|p| entries[*p].known.as_ref()).collect();
    let sum = known.map(Curve::sum);
    let buckets = sum.iter().flat_map(|curve| curve.buckets());
    let mut limits: Vec<_> = buckets.map(|b| (b.bps(), b.burst, Vec::new())).collect();
    // Sub-flows that come over the same cut edge all have one.
    let rates = sub_flows.iter().filter_map(|p| entries[*p].unknown);
    let rate = rates.sum();
    let unknown = sub_flows.iter().copied().filter(|p| entries[*p].unknown.is_some());
    let unknown: Vec<usize> = unknown.collect();
    if !unknown.is_empty() {
        debug_assert_eq!(unknown.len(), sub_flows.len());
        limits.push((rate, 0, unknown));
    }
    limits
}
