//! Paths that share no link and no bridge but the first and the last, with the fewest links in all.
//!
//! Each bridge in between counts as two nodes with one arc between them, so that one path takes it.
//! Paths are added one at a time, each the shortest by which one more is possible; it may take
//! links back from those before (J. W. Suurballe, *Disjoint paths in a network*, Networks 4, 1974).

use super::{Path, next, sends};
use onbeat_model::system::{NodeId, NodeKind, PortId, System};
use std::collections::VecDeque;

/// Where a search is: at the entry of a bridge, or at its exit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Side {
    node: NodeId,
    is_exit: bool,
}

impl Side {
    fn entry(node: NodeId) -> Self {
        Self { node, is_exit: false }
    }
    fn exit(node: NodeId) -> Self {
        Self { node, is_exit: true }
    }
    fn index(self) -> usize {
        2 * self.node.index() + usize::from(self.is_exit)
    }
}

/// A step to another side: along a link or back along one that a path takes, or through a bridge.
#[derive(Clone, Copy)]
struct Step {
    to: Side,
    links: i64,
    /// The port by which the link is taken, or given back.
    port: Option<PortId>,
}

/// The paths from one bridge to another that are found so far.
struct Disjoint<'a> {
    system: &'a System,
    vlan: Option<u16>,
    ends: [NodeId; 2],
    /// By port: whether a path leaves by it.
    taken: Vec<bool>,
    /// By node: the port by which the path enters it.
    entered: Vec<Option<PortId>>,
}

/// `count` disjoint paths between two hosts, the shortest first; none if there are not so many.
pub(super) fn paths(
    system: &System,
    [talker, listener]: [NodeId; 2],
    count: usize,
    vlan: Option<u16>,
) -> Option<Vec<Path>> {
    let [first, arrives] = [talker, listener].map(|host| system.node(host).ports[0]);
    let last = system.port(arrives).peer;
    let ends = [next(system, first), system.port(last).node];
    let is_bridge = |node: NodeId| matches!(system.node(node).kind, NodeKind::Bridge(_));
    let is_open = ends.into_iter().all(is_bridge)
        && [first, last].into_iter().all(|port| sends(system, port, vlan));
    if ends[0] == ends[1] || !is_open {
        return None;
    }
    let taken = vec![false; system.ports.len()];
    let mut search =
        Disjoint { system, vlan, ends, taken, entered: vec![None; system.nodes.len()] };
    for _ in 0..count {
        search.add()?;
    }
    let between = search.between();
    let whole = |between: Path| [&[first][..], &between, &[last]].concat();
    Some(between.into_iter().map(whole).collect())
}

impl Disjoint<'_> {
    /// Finds one path more; none if there is none.
    fn add(&mut self) -> Option<()> {
        let goal = Side::entry(self.ends[1]);
        let sides = 2 * self.system.nodes.len();
        let mut links = vec![i64::MAX; sides];
        let mut came: Vec<Option<(Side, Step)>> = vec![None; sides];
        let start = Side::exit(self.ends[0]);
        links[start.index()] = 0;
        let mut ahead = VecDeque::from([start]);
        let mut is_ahead = vec![false; sides];
        // Giving a link back makes a way shorter, so a side may be reached again.
        while let Some(at) = ahead.pop_front() {
            is_ahead[at.index()] = false;
            for step in self.steps(at) {
                let to = step.to.index();
                let found = links[at.index()] + step.links;
                if found < links[to] {
                    links[to] = found;
                    came[to] = Some((at, step));
                    if !is_ahead[to] && step.to != goal {
                        is_ahead[to] = true;
                        ahead.push_back(step.to);
                    }
                }
            }
        }
        let mut at = goal;
        let mut steps = Vec::new();
        while at != start {
            let (from, step) = came[at.index()]?;
            steps.push(step);
            at = from;
        }
        // What is given back first, so that a bridge which another link enters keeps that.
        let (back, on): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(|s| s.links < 0);
        for port in back.into_iter().filter_map(|step| step.port) {
            self.taken[port.index()] = false;
            self.entered[next(self.system, port).index()] = None;
        }
        for port in on.into_iter().filter_map(|step| step.port) {
            self.taken[port.index()] = true;
            self.entered[next(self.system, port).index()] = Some(port);
        }
        Some(())
    }

    fn steps(&self, at: Side) -> Vec<Step> {
        let system = self.system;
        let through = |to| Step { to, links: 0, port: None };
        let back = |port: PortId| {
            let to = Side::exit(system.port(port).node);
            Step { to, links: -1, port: Some(port) }
        };
        match (at.is_exit, self.entered[at.node.index()]) {
            (false, None) => vec![through(Side::exit(at.node))],
            (false, Some(port)) => vec![back(port)],
            (true, entered) => {
                let on = system.node(at.node).ports.iter().filter(|port| self.leads(**port));
                let on = on.map(|port| Step {
                    to: Side::entry(next(system, *port)),
                    links: 1,
                    port: Some(*port),
                });
                on.chain(entered.map(|_| through(Side::entry(at.node)))).collect()
            }
        }
    }

    /// Whether a path may take the link behind a port.
    fn leads(&self, port: PortId) -> bool {
        let to = next(self.system, port);
        let is_bridge = matches!(self.system.node(to).kind, NodeKind::Bridge(_));
        !self.taken[port.index()]
            && is_bridge
            && to != self.ends[0]
            && sends(self.system, port, self.vlan)
    }

    /// The ports of each path but those of the hosts' links, the shortest first.
    fn between(&self) -> Vec<Path> {
        let leaves = |node: NodeId| {
            let ports = self.system.node(node).ports.iter().copied();
            ports.filter(|port| self.taken[port.index()])
        };
        let mut paths: Vec<Path> = Vec::new();
        for first in leaves(self.ends[0]) {
            let mut path = vec![first];
            let mut at = next(self.system, first);
            while at != self.ends[1] {
                let port = leaves(at).next().expect("a path goes on to its end");
                path.push(port);
                at = next(self.system, port);
            }
            paths.push(path);
        }
        paths.sort_by_key(Vec::len);
        paths
    }
}
