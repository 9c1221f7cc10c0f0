//! The tighter method: linear programs over trees, and a fixed point over the bursts where the
//! network was cut into them.

use super::certify::Solution;
use super::curve::Bucket;
use super::program::{Known, LinearProgram, SubFlowEntry, TreeFacts, constant};
use super::total::{self, Limit, least, members, regulated};
use super::tree::{Forest, SubFlow, fluid};
use super::work::{Work, cube};
use super::{AMOUNT_MAX, Bounds, FifoNetwork, Method, separate};
use onbeat_model::time::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Taking a flow to one server of a path counts as so many steps.
const STEPS_PER_FLOW: u64 = 500;

/// How many steps towards a fixed point are tried.
const STEPS_MAX: usize = 40;

/// The best bounds, given those of total flow analysis if it has any.
pub(crate) fn analyse(network: &FifoNetwork, total: Option<Bounds>, work: &Work) -> Option<Bounds> {
    let mut analysis = Analysis::new(network, total.as_ref(), work);
    if !analysis.find_bursts() {
        return total;
    }
    let mut bounds = total::analyse(network, &analysis.limits()).or_else(|| total.clone())?;
    analysis.improve(&mut bounds);
    Some(bounds)
}

struct Analysis<'a> {
    network: &'a FifoNetwork,
    facts: TreeFacts<'a>,
    forest: Forest,
    /// What total flow analysis found.
    total: Option<&'a Bounds>,
    entries: Vec<SubFlowEntry>,
    /// The sub-flows whose burst is unknown: behind an edge that was cut.
    cut: Vec<usize>,
    /// By sub-flow, the burst at its sustained rate where it enters its tree.
    bursts: Vec<i128>,
    work: &'a Work,
}

impl<'a> Analysis<'a> {
    fn new(network: &'a FifoNetwork, total: Option<&'a Bounds>, work: &'a Work) -> Self {
        let forest = Forest::new(network);
        let mut analysis = Self {
            network,
            facts: TreeFacts::new(network),
            total,
            entries: Vec::new(),
            cut: Vec::new(),
            bursts: Vec::new(),
            work,
            forest,
        };
        for index in 0..analysis.forest.sub_flows.len() {
            analysis.enter(index);
        }
        analysis
    }

    fn enter(&mut self, index: usize) {
        let sub_flow = &self.forest.sub_flows[index];
        let flow = &self.network.flows[sub_flow.flow];
        let hop = &flow.hops[sub_flow.hops[0]];
        let shape = regulated(flow, hop);
        let jitter = if hop.reshaped.is_some() { Span::ZERO } else { hop.latest - hop.earliest };
        let cut = sub_flow.from.is_some() && hop.reshaped.is_none();
        let known = match self.total {
            Some(bounds) => Some(bounds.hops[sub_flow.flow][sub_flow.hops[0]].arrival.clone()),
            None if cut => None,
            None => shape.delayed(jitter),
        };
        let start = known.as_ref().map_or(shape.sustained(), super::Curve::sustained);
        self.bursts.push(start.burst);
        let unknown = cut.then(|| shape.sustained().bps());
        if cut {
            self.cut.push(index);
        }
        self.entries.push(SubFlowEntry { known, unknown });
    }

    /// The server from which a cut sub-flow comes, and the sub-flow there.
    fn source(&self, cut: usize) -> (usize, usize) {
        let (sub_flow, hop) = self.forest.sub_flows[cut].from.expect("a cut piece");
        (sub_flow, self.network.flows[self.forest.sub_flows[cut].flow].hops[hop].server)
    }

    fn program(&self, root: usize, known: &Known<'_>) -> Option<LinearProgram> {
        let wanted: Vec<usize> = if fluid(self.network, &self.forest.tree(root)) {
            let from = self.cut.iter().map(|cut| self.source(*cut));
            from.filter(|(_, server)| *server == root).map(|(sub_flow, _)| sub_flow).collect()
        } else {
            Vec::new()
        };
        let (facts, forest) = (&self.facts, &self.forest);
        LinearProgram::new(facts, forest, root, &self.entries, &wanted, known, self.work)
    }

    /// The longest delay of each server, for all that it serves.
    fn delays(&self, bounds: Option<&Bounds>) -> Vec<Option<Span>> {
        let mut delays = vec![None; self.network.servers.len()];
        for (flow, hops) in self.network.flows.iter().zip(bounds.iter().flat_map(|b| &b.hops)) {
            for (hop, bound) in flow.hops.iter().zip(hops) {
                let delay = &mut delays[hop.server];
                *delay = (*delay).max(Some(bound.delay));
            }
        }
        delays
    }

    /// Finds the bursts of the cut sub-flows; whether there are any.
    fn find_bursts(&mut self) -> bool {
        let delays = self.delays(self.total);
        let paths = BTreeMap::new();
        let known = Known { delays: &delays, paths: &paths };
        let roots: BTreeSet<usize> = self.cut.iter().map(|cut| self.source(*cut).1).collect();
        let mut programs = BTreeMap::new();
        for root in roots {
            let Some(program) = self.program(root, &known) else { return self.total.is_some() };
            programs.insert(root, program);
        }
        let (order, cyclic) = self.cut_order();
        if cyclic { self.fixed_point(&mut programs) } else { self.in_order(&order, &mut programs) }
    }

    /// The cut sub-flows, each after those that its burst depends on; and whether that is
    /// impossible. All that are cut behind one root depend on the same: those that begin in its
    /// tree.
    fn cut_order(&self) -> (Vec<usize>, bool) {
        let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cut in &self.cut {
            behind.entry(self.source(*cut).1).or_default().push(*cut);
        }
        let is_cut = |sub_flow: &usize| self.entries[*sub_flow].unknown.is_some();
        let needs = |root: &usize| -> BTreeSet<usize> {
            let inside = self.forest.inside(&self.forest.tree(*root));
            inside.into_iter().filter(is_cut).map(|cut| self.source(cut).1).collect()
        };
        let mut waits: BTreeMap<usize, BTreeSet<usize>> =
            behind.keys().map(|root| (*root, needs(root))).collect();
        let mut order: Vec<usize> = Vec::with_capacity(self.cut.len());
        loop {
            let ready: BTreeSet<usize> =
                waits.iter().filter(|(_, needs)| needs.is_empty()).map(|(root, _)| *root).collect();
            if ready.is_empty() {
                return (order, !waits.is_empty());
            }
            for root in &ready {
                order.extend(&behind[root]);
                waits.remove(root);
            }
            waits.values_mut().for_each(|needs| needs.retain(|root| !ready.contains(root)));
        }
    }

    /// The burst of a cut sub-flow if those of all others are as they are, and how it depends on
    /// them. `direct` leaves out what only holds where nothing goes in a cycle.
    fn burst(
        &self,
        cut: usize,
        bursts: &[i128],
        direct: bool,
        programs: &mut BTreeMap<usize, LinearProgram>,
    ) -> Option<Solution> {
        let (sub_flow, root) = self.source(cut);
        let of = &self.forest.sub_flows[sub_flow];
        let hop = &self.network.flows[of.flow].hops[self.forest.sub_flows[cut].hops[0]];
        let rate = self.entries[cut].unknown.expect("a cut piece");
        let spread = rate * i128::from((hop.latest - hop.earliest).as_ns());
        let program = programs.get_mut(&root)?;
        program.set_bursts(bursts);
        if program.is_fluid() {
            let mut solution = program.burst_solution(sub_flow, bursts)?;
            solution.bound += spread;
            return Some(solution);
        }
        if !self.work.take((program.size() as u64).pow(2)) {
            return None;
        }
        let mut solution = program.delay_solution(of.servers[0], bursts)?;
        let at = of.servers.iter().position(|s| *s == root).expect("on its way");
        let flow = &self.network.flows[of.flow];
        let spent =
            of.servers[..=at].iter().map(|s| least(&self.network.servers[*s], flow.smallest));
        let least = if direct { spent.fold(Span::ZERO, |sum, s| sum + s) } else { Span::ZERO };
        let jitter = solution.bound - i128::from(least.as_ns());
        solution.bound = bursts[sub_flow] + rate * jitter + spread;
        solution.slopes.iter_mut().for_each(|(_, slope)| *slope *= rate as f64);
        if self.entries[sub_flow].unknown.is_some() {
            solution.slopes.push((sub_flow, 1.0));
        }
        Some(solution)
    }

    /// Without cycles: each from those before it.
    fn in_order(&mut self, order: &[usize], programs: &mut BTreeMap<usize, LinearProgram>) -> bool {
        let mut bursts = self.bursts.clone();
        for cut in order {
            if let Some(solution) = self.burst(*cut, &bursts, true, programs) {
                let better = solution.bound.min(self.bursts[*cut]);
                self.bursts[*cut] = if self.total.is_some() { better } else { solution.bound };
                bursts[*cut] = self.bursts[*cut];
            } else if self.total.is_none() {
                return false;
            }
        }
        true
    }

    /// With cycles: bursts of which each is more than what follows from all of them. The
    /// programs' maxima are concave in the bursts, so any such bursts are bounds.
    fn fixed_point(&mut self, programs: &mut BTreeMap<usize, LinearProgram>) -> bool {
        let start = self.bursts.clone();
        for times in [1_i128, 8, 64, 512, 4_096, 32_768] {
            let mut bursts = start.clone();
            if self.total.is_none() {
                self.cut.iter().for_each(|cut| bursts[*cut] *= times);
            }
            if let Some(found) = self.descend(bursts, programs) {
                self.bursts = found;
                return true;
            }
            if self.total.is_some() {
                break;
            }
        }
        self.bursts = start;
        self.total.is_some()
    }

    /// Newton's method: where all programs' tangents meet, again and again.
    fn descend(
        &self,
        mut bursts: Vec<i128>,
        programs: &mut BTreeMap<usize, LinearProgram>,
    ) -> Option<Vec<i128>> {
        for _ in 0..STEPS_MAX {
            let tangents: Vec<Solution> = self
                .cut
                .iter()
                .map(|cut| self.burst(*cut, &bursts, false, programs))
                .collect::<Option<_>>()?;
            let met = self.meet(&tangents, &bursts)?;
            let near = |cut: &usize, met: f64| {
                let now = bursts[*cut] as f64;
                (met - now).abs() <= 1e-8 * now
            };
            let settled = self.cut.iter().zip(&met).all(|(cut, met)| near(cut, *met));
            for (cut, met) in self.cut.iter().zip(&met) {
                bursts[*cut] = *met as i128;
            }
            if settled {
                return self.iterate(&bursts, programs);
            }
        }
        None
    }

    /// Bursts a little above these that are bounds for certain.
    fn iterate(
        &self,
        bursts: &[i128],
        programs: &mut BTreeMap<usize, LinearProgram>,
    ) -> Option<Vec<i128>> {
        [10_000_000_i128, 100_000, 1_000].into_iter().find_map(|part| {
            let mut above = bursts.to_vec();
            self.cut.iter().for_each(|cut| above[*cut] += above[*cut] / part + 1);
            let holds = |cut: &usize| {
                let solution = self.burst(*cut, &above, false, programs);
                solution.is_some_and(|s| s.bound < above[*cut] && above[*cut] <= AMOUNT_MAX)
            };
            self.cut
                .iter()
                .all({
                    let mut holds = holds;
                    move |cut| holds(cut)
                })
                .then_some(above.clone())
        })
    }

    /// Solves the linear system of the tangents; none if it has no positive solution.
    fn meet(&self, tangents: &[Solution], bursts: &[i128]) -> Option<Vec<f64>> {
        let count = self.cut.len();
        if !self.work.take(cube(count)) {
            return None;
        }
        let column: BTreeMap<usize, usize> =
            self.cut.iter().enumerate().map(|(at, cut)| (*cut, at)).collect();
        let mut system = vec![vec![0.0; count + 1]; count];
        for (at, tangent) in tangents.iter().enumerate() {
            system[at][at] += 1.0;
            let mut rest = tangent.bound as f64;
            for (sub_flow, slope) in &tangent.slopes {
                system[at][column[sub_flow]] -= slope;
                rest -= slope * bursts[*sub_flow] as f64;
            }
            system[at][count] = rest;
        }
        let met = eliminate(system)?;
        let limit = AMOUNT_MAX as f64;
        met.iter().all(|burst| (1.0..limit).contains(burst)).then_some(met)
    }

    /// What the flows bring to the hops behind cut edges.
    fn limits(&self) -> Vec<Limit> {
        let limit = |cut: &usize| {
            let sub_flow = &self.forest.sub_flows[*cut];
            let flow = &self.network.flows[sub_flow.flow];
            let rate = regulated(flow, &flow.hops[sub_flow.hops[0]]).sustained().rate;
            let bucket = Bucket { burst: self.bursts[*cut], rate };
            Limit { flow: sub_flow.flow, hop: sub_flow.hops[0], bucket }
        };
        self.cut.iter().map(limit).collect()
    }

    /// Replaces what the programs can better.
    fn improve(&self, bounds: &mut Bounds) {
        let delays = self.delays(Some(bounds));
        let trees: Vec<usize> = self.forest.order.clone();
        let mut paths = BTreeMap::new();
        if fluid(self.network, &trees) {
            paths = separate::paths(self.network, &self.forest, bounds);
        }
        let mut ends: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for sub_flow in &self.forest.sub_flows {
            let last = *sub_flow.servers.last().expect("a server");
            ends.entry(last).or_default().insert(sub_flow.servers[0]);
        }
        for cut in &self.cut {
            let (sub_flow, root) = self.source(*cut);
            ends.entry(root).or_default().insert(self.forest.sub_flows[sub_flow].servers[0]);
        }
        for root in &trees {
            let Some(starts) = ends.get(root) else { continue };
            let known = Known { delays: &delays, paths: &paths };
            let Some(mut program) = self.program(*root, &known) else { continue };
            for start in starts {
                if let Some(delay) = program.delay(*start, &self.bursts) {
                    let best = paths.entry((*start, *root)).or_insert(delay);
                    *best = delay.min(*best);
                }
            }
        }
        self.apply(&paths, bounds);
        self.uncut(&paths, bounds);
    }

    /// Bounds once more each path that was cut, now that it is known what all others bring to it.
    fn uncut(&self, paths: &BTreeMap<(usize, usize), Span>, bounds: &mut Bounds) {
        let members = members(self.network);
        let delays = self.delays(Some(bounds));
        let mut found: HashMap<Vec<usize>, Option<Span>> = HashMap::new();
        for (index, flow) in self.network.flows.iter().enumerate() {
            for last in 0..flow.hops.len() {
                let Some((hops, constant)) = self.cut_path(index, last) else { continue };
                let path: Vec<usize> = hops.iter().map(|hop| flow.hops[*hop].server).collect();
                let delay = *found.entry(path).or_insert_with_key(|path| {
                    let there: usize = path.iter().map(|server| members[*server].len()).sum();
                    if !self.work.take(STEPS_PER_FLOW * there as u64) {
                        return None;
                    }
                    let forest = Forest::along(self.network, &members, path)?;
                    self.along(&forest, path, &delays, paths, bounds)
                });
                let Some(delay) = delay else { continue };
                let of = &mut bounds.hops[index][last];
                if constant + delay < of.total {
                    (of.total, of.method) = (constant + delay, Method::Linear);
                }
            }
        }
    }

    /// The hops up to the last one of a flow's path, and the constant delays before and between
    /// them, if it was cut on the path.
    fn cut_path(&self, index: usize, last: usize) -> Option<(Vec<usize>, Span)> {
        let flow = &self.network.flows[index];
        if flow.hops.iter().any(|hop| hop.upstream == Some(last)) {
            return None;
        }
        let mut hops = vec![last];
        let mut constant = flow.hops[last].latest;
        while let Some(up) = flow.hops[hops[hops.len() - 1]].upstream {
            hops.push(up);
            constant += flow.hops[up].latest;
        }
        hops.reverse();
        let sub_flows = &self.forest.sub_flow_of[index];
        (sub_flows[hops[0]] != sub_flows[last]).then_some((hops, constant))
    }

    fn along(
        &self,
        forest: &Forest,
        path: &[usize],
        delays: &[Option<Span>],
        paths: &BTreeMap<(usize, usize), Span>,
        bounds: &Bounds,
    ) -> Option<Span> {
        let entry = |sub_flow: &SubFlow| {
            let known = Some(bounds.hops[sub_flow.flow][sub_flow.hops[0]].arrival.clone());
            SubFlowEntry { known, unknown: None }
        };
        let entries: Vec<SubFlowEntry> = forest.sub_flows.iter().map(entry).collect();
        // What is known of a part of the path is known of this path if it is the same there.
        let mut same = BTreeMap::new();
        for (at, start) in path.iter().enumerate() {
            for (step, end) in path[at..].iter().enumerate() {
                if step > 0 && self.forest.parent[path[at + step - 1]] != Some(*end) {
                    break;
                }
                same.extend(paths.get(&(*start, *end)).map(|delay| ((*start, *end), *delay)));
            }
        }
        let known = Known { delays, paths: &same };
        let root = *path.last()?;
        let program =
            LinearProgram::new(&self.facts, forest, root, &entries, &[], &known, self.work);
        program?.delay(path[0], &[])
    }

    fn apply(&self, paths: &BTreeMap<(usize, usize), Span>, bounds: &mut Bounds) {
        for (index, flow) in self.network.flows.iter().enumerate() {
            for at in 0..flow.hops.len() {
                let hop = &flow.hops[at];
                let (before, method) = hop.upstream.map_or((Span::ZERO, Method::TotalFlow), |up| {
                    (bounds.hops[index][up].total, bounds.hops[index][up].method)
                });
                let sum = before + hop.latest + bounds.hops[index][at].delay;
                let of = &mut bounds.hops[index][at];
                (of.total, of.method) = (sum, method);
                let sub_flow = self.forest.sub_flow_of[index][at];
                let servers = &self.forest.sub_flows[sub_flow].servers;
                let Some(path) = paths.get(&(servers[0], hop.server)) else { continue };
                let first = self.forest.sub_flows[sub_flow].hops[0];
                let before = flow.hops[first].upstream;
                let before = before.map_or(Span::ZERO, |up| bounds.hops[index][up].total);
                let to = servers.iter().position(|s| *s == hop.server).expect("on its way");
                let between = constant(self.network, &self.forest, sub_flow, to);
                let whole = before + flow.hops[first].latest + between + *path;
                let of = &mut bounds.hops[index][at];
                if whole < of.total {
                    (of.total, of.method) = (whole, Method::Linear);
                }
            }
        }
    }
}

/// Solves a square system with its right-hand side in the last column.
fn eliminate(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = system.len();
    for column in 0..count {
        let pivot = (column..count)
            .max_by(|a, b| system[*a][column].abs().total_cmp(&system[*b][column].abs()))?;
        system.swap(column, pivot);
        let by = system[column][column];
        if by.abs() < 1e-12 {
            return None;
        }
        system[column].iter_mut().for_each(|cell| *cell /= by);
        let from = system[column].clone();
        for (_, row) in system.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column];
            row.iter_mut().zip(&from).for_each(|(cell, from)| *cell -= factor * from);
        }
    }
    Some(system.into_iter().map(|row| row[count]).collect())
}
