//! Which way frames go.

use onbeat_model::system::{NodeId, PortId, System};
use std::collections::{BTreeMap, VecDeque};

/// Shortest routes by number of links, by breadth-first search from each source. Where several
/// are equally short, the one wins whose nodes the search met first, looking at each node's ports
/// in their order; so all routes from one source form one tree, as multicast needs.
pub(crate) struct Routes<'a> {
    system: &'a System,
    trees: BTreeMap<NodeId, Tree>,
}

/// Per node: the egress port, on the node before it, through which frames come.
type Tree = Vec<Option<PortId>>;

impl<'a> Routes<'a> {
    /// No routes yet; they are found when asked for.
    pub(crate) fn new(system: &'a System) -> Self {
        Self { system, trees: BTreeMap::new() }
    }

    /// The egress ports on the way, the source's first.
    ///
    /// # Panics
    /// When the two nodes are not connected.
    pub(crate) fn path(&mut self, from: NodeId, to: NodeId) -> Vec<PortId> {
        let tree = self.trees.entry(from).or_insert_with(|| tree_from(self.system, from));
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let port = tree[at.index()].expect("a checked system is connected");
            path.push(port);
            at = self.system.port(port).node;
        }
        path.reverse();
        path
    }
}

fn tree_from(system: &System, from: NodeId) -> Tree {
    let mut tree = vec![None; system.nodes.len()];
    let mut ahead = VecDeque::from([from]);
    while let Some(at) = ahead.pop_front() {
        for &port in &system.node(at).ports {
            let next = system.port(system.port(port).peer).node;
            if next != from && tree[next.index()].is_none() {
                tree[next.index()] = Some(port);
                ahead.push_back(next);
            }
        }
    }
    tree
}
