//! The network cut into trees, and the flows cut into the pieces that stay in one.

use super::total::{At, groups, members, order, over};
use super::{Network, Output};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// What part of a flow's way stays in one tree.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) flow: usize,
    /// The hops, each upstream of the next.
    pub(crate) hops: Vec<usize>,
    /// The hops' servers.
    pub(crate) servers: Vec<usize>,
    /// The piece and hop from which it goes on, over an edge that was cut; none at the source.
    pub(crate) from: Option<(usize, usize)>,
}

/// Servers of which each feeds one other at most.
pub(crate) struct Forest {
    /// Which one, by server.
    pub(crate) parent: Vec<Option<usize>>,
    /// Which piece each hop is in, by flow and hop; not known along one way.
    pub(crate) piece_of: Vec<Vec<usize>>,
    pub(crate) pieces: Vec<Piece>,
    /// The servers, each after those that feed it in its tree.
    pub(crate) order: Vec<usize>,
    /// Per server: those that feed it in its tree, its position in the order, and the pieces that
    /// begin there.
    feeders: Vec<Vec<usize>>,
    position: Vec<usize>,
    begin: Vec<Vec<usize>>,
}

impl Forest {
    /// Keeps for each server the edge to the next of its successors in the order of the flows'
    /// ways, of the edges that all their flows pass unchanged and in the same time.
    pub(crate) fn new(network: &Network) -> Self {
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
        let (piece_of, pieces) = (Vec::new(), Vec::new());
        Self { parent, piece_of, pieces, order, feeders, position, begin }
    }

    fn index(&mut self) {
        for (index, piece) in self.pieces.iter().enumerate() {
            self.begin[piece.servers[0]].push(index);
        }
    }

    /// The pieces that begin in a tree.
    pub(crate) fn inside(&self, tree: &[usize]) -> Vec<usize> {
        let mut inside: Vec<usize> = tree.iter().flat_map(|s| &self.begin[*s]).copied().collect();
        inside.sort_unstable();
        inside
    }

    /// Only the servers of one way, whose flows come from elsewhere or along it; none if an edge of
    /// it cannot be kept. `members` are the flows at each server.
    pub(crate) fn along(network: &Network, members: &[Vec<At>], way: &[usize]) -> Option<Self> {
        let mut parent = vec![None; network.servers.len()];
        for edge in way.windows(2) {
            let group = groups(network, &members[edge[1]]).remove(&Some(edge[0]))?;
            if !steady(network, edge[1], &group) {
                return None;
            }
            parent[edge[0]] = Some(edge[1]);
        }
        let mut forest = Self::of(parent, way.to_vec());
        let mut piece_of: BTreeMap<At, usize> = BTreeMap::new();
        for (flow, at) in way.iter().flat_map(|server| &members[*server]) {
            let hops = &network.flows[*flow].hops;
            let before = over(hops, &hops[*at]).zip(hops[*at].upstream);
            let kept = before.filter(|(up, _)| forest.parent[up.server] == Some(hops[*at].server));
            let piece = if let Some((_, up)) = kept {
                piece_of[&(*flow, up)]
            } else {
                let (hops, servers, from) = (Vec::new(), Vec::new(), None);
                forest.pieces.push(Piece { flow: *flow, hops, servers, from });
                forest.pieces.len() - 1
            };
            forest.pieces[piece].hops.push(*at);
            forest.pieces[piece].servers.push(hops[*at].server);
            piece_of.insert((*flow, *at), piece);
        }
        forest.index();
        Some(forest)
    }

    fn cut(&mut self, network: &Network, flow: usize) {
        let mut piece_of: Vec<usize> = Vec::new();
        let hops = &network.flows[flow].hops;
        for (at, hop) in hops.iter().enumerate() {
            let up = hop.upstream.map(|up| (piece_of[up], up));
            let kept = up.filter(|(_, up)| {
                self.parent[hops[*up].server] == Some(hop.server) && hop.reshaped.is_none()
            });
            if let Some((piece, _)) = kept {
                self.pieces[piece].hops.push(at);
                self.pieces[piece].servers.push(hop.server);
                piece_of.push(piece);
            } else {
                piece_of.push(self.pieces.len());
                let (hops, servers) = (vec![at], vec![hop.server]);
                self.pieces.push(Piece { flow, hops, servers, from: up });
            }
        }
        self.piece_of.push(piece_of);
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
fn steady(network: &Network, server: usize, group: &[At]) -> bool {
    let hop = |(f, h): &At| &network.flows[*f].hops[*h];
    let first = hop(&group[0]);
    debug_assert_eq!(first.server, server);
    let same = |at: &At| hop(at).earliest == first.earliest && hop(at).latest == first.earliest;
    group.iter().all(same)
}

/// The constant time between leaving a piece's server and entering the next one of the piece.
pub(crate) fn between(network: &Network, piece: &Piece, at: usize) -> Span {
    network.flows[piece.flow].hops[piece.hops[at]].latest
}

/// Whether all servers of a tree deliver bit by bit.
pub(crate) fn fluid(network: &Network, tree: &[usize]) -> bool {
    tree.iter().all(|server| network.servers[*server].output == Output::Bits)
}
