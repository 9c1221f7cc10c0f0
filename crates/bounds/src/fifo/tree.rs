//! The network cut into trees, and the flows cut into the sub-flows that stay in one.

use super::total::{At, groups, members, order, over};
use super::{Departure, FifoNetwork};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// The part of a flow's path that stays in one tree.
#[derive(Clone, Debug)]
pub(crate) struct SubFlow {
    pub(crate) flow: usize,
    /// The hops, each upstream of the next.
    pub(crate) hops: Vec<usize>,
    /// The hops' servers.
    pub(crate) servers: Vec<usize>,
    /// The sub-flow and hop from which it continues, over an edge that was cut; none at the source.
    pub(crate) from: Option<(usize, usize)>,
}

/// Servers of which each feeds one other at most.
pub(crate) struct Forest {
    /// Which one, by server.
    pub(crate) parent: Vec<Option<usize>>,
    /// Which sub-flow each hop is in, by flow and hop; not known along one path.
    pub(crate) sub_flow_of: Vec<Vec<usize>>,
    pub(crate) sub_flows: Vec<SubFlow>,
    /// The servers, each after those that feed it in its tree.
    pub(crate) order: Vec<usize>,
    /// Per server: those that feed it in its tree, its position in the order, and the sub-flows
    /// that begin there.
    feeders: Vec<Vec<usize>>,
    position: Vec<usize>,
    begin: Vec<Vec<usize>>,
}

impl Forest {
    /// Keeps for each server the edge to the next of its successors in the order of the flows'
    /// paths, of the edges that all their flows pass unchanged and in the same time.
    pub(crate) fn new(network: &FifoNetwork) -> Self {
        let (order, _) = order(network);
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, server)| position[*server] = at);
        let mut parent: Vec<Option<usize>> = vec![None; order.len()];
        for (server, here) in members(network).iter().enumerate() {
            for (from, group) in groups(network, here) {
                let Some(from) = from else { continue };
                let nearer = parent[from].is_none_or(|p| position[server] < position[p]);
                if position[from] < position[server] && nearer && steady(network, server, &group) {
                    parent[from] = Some(server);
                }
            }
        }
        let mut forest = Self::of(parent, order);
        for flow in 0..network.flows.len() {
            forest.cut(network, flow);
        }
        forest.index();
        forest
    }

    fn of(parent: Vec<Option<usize>>, order: Vec<usize>) -> Self {
        let mut position = vec![0; parent.len()];
        order.iter().enumerate().for_each(|(at, server)| position[*server] = at);
        let mut feeders = vec![Vec::new(); parent.len()];
        for server in &order {
            if let Some(parent) = parent[*server] {
                feeders[parent].push(*server);
            }
        }
        let begin = vec![Vec::new(); parent.len()];
        let (sub_flow_of, sub_flows) = (Vec::new(), Vec::new());
        Self { parent, sub_flow_of, sub_flows, order, feeders, position, begin }
    }

    fn index(&mut self) {
        for (index, sub_flow) in self.sub_flows.iter().enumerate() {
            self.begin[sub_flow.servers[0]].push(index);
        }
    }

    /// The sub-flows that begin in a tree.
    pub(crate) fn inside(&self, tree: &[usize]) -> Vec<usize> {
        let mut inside: Vec<usize> = tree.iter().flat_map(|s| &self.begin[*s]).copied().collect();
        inside.sort_unstable();
        inside
    }

    /// Only the servers of one path, whose flows come from elsewhere or along it; none if an edge
    /// of it cannot be kept. `members` are the flows at each server.
    pub(crate) fn along(
        network: &FifoNetwork,
        members: &[Vec<At>],
        path: &[usize],
    ) -> Option<Self> {
        let mut parent = vec![None; network.servers.len()];
        for edge in path.windows(2) {
            let group = groups(network, &members[edge[1]]).remove(&Some(edge[0]))?;
            if !steady(network, edge[1], &group) {
                return None;
            }
            parent[edge[0]] = Some(edge[1]);
        }
        let mut forest = Self::of(parent, path.to_vec());
        let mut sub_flow_of: BTreeMap<At, usize> = BTreeMap::new();
        for (flow, at) in path.iter().flat_map(|server| &members[*server]) {
            let hops = &network.flows[*flow].hops;
            let before = over(hops, &hops[*at]).zip(hops[*at].upstream);
            let kept = before.filter(|(up, _)| forest.parent[up.server] == Some(hops[*at].server));
            let sub_flow = if let Some((_, up)) = kept {
                sub_flow_of[&(*flow, up)]
            } else {
                let (hops, servers, from) = (Vec::new(), Vec::new(), None);
                forest.sub_flows.push(SubFlow { flow: *flow, hops, servers, from });
                forest.sub_flows.len() - 1
            };
            forest.sub_flows[sub_flow].hops.push(*at);
            forest.sub_flows[sub_flow].servers.push(hops[*at].server);
            sub_flow_of.insert((*flow, *at), sub_flow);
        }
        forest.index();
        Some(forest)
    }

    fn cut(&mut self, network: &FifoNetwork, flow: usize) {
        let mut sub_flow_of: Vec<usize> = Vec::new();
        let hops = &network.flows[flow].hops;
        for (at, hop) in hops.iter().enumerate() {
            let up = hop.upstream.map(|up| (sub_flow_of[up], up));
            let kept = up.filter(|(_, up)| {
                self.parent[hops[*up].server] == Some(hop.server) && hop.reshaped.is_none()
            });
            if let Some((sub_flow, _)) = kept {
                self.sub_flows[sub_flow].hops.push(at);
                self.sub_flows[sub_flow].servers.push(hop.server);
                sub_flow_of.push(sub_flow);
            } else {
                sub_flow_of.push(self.sub_flows.len());
                let (hops, servers) = (vec![at], vec![hop.server]);
                self.sub_flows.push(SubFlow { flow, hops, servers, from: up });
            }
        }
        self.sub_flow_of.push(sub_flow_of);
    }

    /// The servers that lead to `root`, which comes last.
    pub(crate) fn tree(&self, root: usize) -> Vec<usize> {
        let mut tree = vec![root];
        let mut next = 0;
        while let Some(server) = tree.get(next) {
            tree.extend(&self.feeders[*server]);
            next += 1;
        }
        tree.sort_unstable_by_key(|server| self.position[*server]);
        tree
    }
}

/// Whether all flows of a group take the same constant time to `server`.
fn steady(network: &FifoNetwork, server: usize, group: &[At]) -> bool {
    let hop = |(f, h): &At| &network.flows[*f].hops[*h];
    let first = hop(&group[0]);
    debug_assert_eq!(first.server, server);
    let same = |at: &At| hop(at).earliest == first.earliest && hop(at).latest == first.earliest;
    group.iter().all(same)
}

/// The constant time between leaving a sub-flow's server and entering the next one of the sub-flow.
pub(crate) fn between(network: &FifoNetwork, sub_flow: &SubFlow, at: usize) -> Span {
    network.flows[sub_flow.flow].hops[sub_flow.hops[at]].latest
}

/// Whether all servers of a tree deliver bit by bit.
pub(crate) fn fluid(network: &FifoNetwork, tree: &[usize]) -> bool {
    tree.iter().all(|server| network.servers[*server].output == Departure::Bits)
}
