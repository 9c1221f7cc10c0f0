//! Which way frames go.

mod disjoint;
mod exhaustive;
pub(crate) mod load_aware;

use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::stream::{PathRequest, Stream};
use onbeat_model::system::{Channel, NodeId, Noise, PortId, System};
use onbeat_model::tcp::TcpFlow;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

/// Shortest routes by number of links, by breadth-first search from each source. Where several
/// are equally short, the one wins whose nodes the search met first, looking at each node's ports
/// in their order; so all routes from one source in one VLAN form one tree, as multicast needs.
/// A loop of bridges changes nothing: the routes are fixed, and no frame is flooded.
pub(crate) struct Routes<'a> {
    system: &'a System,
    /// Whether any port leaves a VLAN out; else all VLANs have the same tree.
    pub(crate) filtered: bool,
    trees: BTreeMap<(NodeId, Option<u16>), Tree>,
    /// OB2010 for each path that was asked for and lies in no VLAN; it is missing in the answer.
    pub(crate) errors: Vec<Diagnostic>,
}

/// Per node: the egress port, on the node before it, through which frames come.
type Tree = Vec<Option<PortId>>;

/// The egress ports on the path, the source's first.
pub(crate) type Path = Vec<PortId>;

/// Who sends to whom, for the words of an error.
struct Wanted<'a> {
    what: &'a str,
    name: &'a str,
    vlan: u16,
    origin: Origin,
}

impl<'a> Routes<'a> {
    /// No routes yet; they are found when asked for.
    pub(crate) fn new(system: &'a System) -> Self {
        let filtered = system.ports.iter().any(|port| port.settings.vlans.is_some());
        Self { system, filtered, trees: BTreeMap::new(), errors: Vec::new() }
    }

    /// One path per listener; of a replicated channel all paths to its only listener.
    pub(crate) fn of_channel(&mut self, channel: &Channel) -> Vec<Path> {
        let Channel { name, vlan, origin, talker, paths, .. } = channel;
        let wanted = Wanted { what: "channel", name, vlan: *vlan, origin: *origin };
        let to = |to: &NodeId| self.asked(paths, [*talker, *to], &wanted);
        let found: Vec<Path> = channel.listeners.iter().flat_map(to).collect();
        self.errors.extend(crossing(self.system, channel, &found));
        found
    }

    /// Per listener its paths.
    pub(crate) fn of_stream(&mut self, stream: &Stream) -> Vec<Vec<Path>> {
        let Stream { name, vlan, origin, talker, paths, .. } = stream;
        let wanted = Wanted { what: "stream", name, vlan: *vlan, origin: *origin };
        let to = |to: &NodeId| self.asked(paths, [*talker, *to], &wanted);
        stream.listeners.iter().map(to).collect()
    }

    /// The paths to a listener that the description asks for.
    fn asked(
        &mut self,
        paths: &PathRequest,
        [from, to]: [NodeId; 2],
        wanted: &Wanted<'_>,
    ) -> Vec<Path> {
        let PathRequest { along, disjoint, .. } = paths;
        if from == to {
            return vec![own(self.system, from)];
        }
        if *disjoint > 0 {
            return self.disjoint(*disjoint as usize, [from, to], wanted);
        }
        if along.is_empty() {
            return self.shortest(from, to, wanted).into_iter().collect();
        }
        along.iter().filter_map(|bridges| self.along(from, bridges, to, wanted)).collect()
    }

    fn disjoint(&mut self, count: usize, ends: [NodeId; 2], wanted: &Wanted<'_>) -> Vec<Path> {
        let vlan = self.filtered.then_some(wanted.vlan);
        if let Some(paths) = disjoint::paths(self.system, ends, count, vlan) {
            return paths;
        }
        let Wanted { what, name, vlan, origin } = wanted;
        let [from, to] = ends.map(|end| &self.system.node(end).name);
        let message = format!(
            "{what} `{name}`: there are no {count} paths from `{from}` to `{to}` within VLAN \
             {vlan} that share no bridge in between"
        );
        let help = "add links or bridges, ask for fewer paths, or name paths that share bridges \
                    in `paths`";
        let none = Diagnostic::error(codes::REPLICATION, message, *origin, "is replicated");
        self.errors.push(none.help(help));
        Vec::new()
    }

    /// The path of a noise source, whose frames have no tag and leave every port.
    ///
    /// # Panics
    /// When the two hosts are not connected, which the description's check excludes.
    pub(crate) fn of_noise(&mut self, noise: &Noise) -> Path {
        self.path(noise.from, noise.to, None).expect("a checked system is connected")
    }

    /// The path of what a TCP connection sends from a host to another, and back; as noise.
    ///
    /// # Panics
    /// When the two hosts are not connected, which the description's check excludes.
    pub(crate) fn of_tcp(&mut self, flow: &TcpFlow) -> [Path; 2] {
        [(flow.talker, flow.listener), (flow.listener, flow.talker)]
            .map(|(from, to)| self.path(from, to, None).expect("a checked system is connected"))
    }

    fn shortest(&mut self, from: NodeId, to: NodeId, wanted: &Wanted<'_>) -> Option<Path> {
        let path = self.path(from, to, self.filtered.then_some(wanted.vlan));
        self.report(from, to, wanted, path)
    }

    fn path(&mut self, from: NodeId, to: NodeId, vlan: Option<u16>) -> Option<Path> {
        let system = self.system;
        let tree = self
            .trees
            .entry((from, vlan))
            .or_insert_with(|| tree(system, from, vlan, &HashSet::new()));
        along_tree(system, tree, from, to)
    }

    /// The ports along given bridges: between two nodes, the first that joins them.
    fn along(
        &mut self,
        from: NodeId,
        bridges: &[NodeId],
        to: NodeId,
        wanted: &Wanted<'_>,
    ) -> Option<Path> {
        let system = self.system;
        let nodes: Vec<NodeId> = [&from].into_iter().chain(bridges).chain([&to]).copied().collect();
        let port = |pair: &[NodeId]| {
            let joins = |port: &PortId| next(system, *port) == pair[1];
            let mut ports = system.node(pair[0]).ports.iter().copied();
            ports.find(|port| joins(port) && sends(system, *port, Some(wanted.vlan)))
        };
        let path = nodes.windows(2).map(port).collect();
        self.report(from, to, wanted, path)
    }

    /// Says so if there is no path.
    fn report(
        &mut self,
        from: NodeId,
        to: NodeId,
        wanted: &Wanted<'_>,
        path: Option<Path>,
    ) -> Option<Path> {
        if path.is_none() {
            let Wanted { what, name, vlan, origin } = wanted;
            let message = format!(
                "{what} `{name}`: no path from `{}` to `{}` within VLAN {vlan}",
                self.system.node(from).name,
                self.system.node(to).name,
            );
            let help =
                "add the VLAN to the `vlans` of the ports on the path, or choose another `vlan`";
            let none =
                Diagnostic::error(codes::NO_WAY, message, *origin, "is in this VLAN").help(help);
            self.errors.push(none);
        }
        path
    }
}

/// The error for paths of a replicated channel that leave a bridge by other ports the one than the
/// other: bridges look up where frames leave by their destination, not by where they came in.
fn crossing(system: &System, channel: &Channel, paths: &[Path]) -> Option<Diagnostic> {
    if !channel.paths.is_replicated() {
        return None;
    }
    let mut steps: BTreeMap<NodeId, BTreeMap<PortId, BTreeSet<PortId>>> = BTreeMap::new();
    for pair in paths.iter().flat_map(|path| path.windows(2)) {
        let of_bridge = steps.entry(system.port(pair[1]).node).or_default();
        of_bridge.entry(pair[0]).or_default().insert(pair[1]);
    }
    let is_crossed = |by_entry: &BTreeMap<PortId, BTreeSet<PortId>>| {
        let mut leaves = by_entry.values();
        let first = leaves.next();
        leaves.any(|other| Some(other) != first)
    };
    let bridge = system.node(*steps.iter().find(|(_, by_entry)| is_crossed(by_entry))?.0);
    let message = format!(
        "channel `{}`: paths come to `{}` by different ports and leave it by different ports",
        channel.name, bridge.name,
    );
    let help = "let all paths leave a bridge where they meet by the same ports: it looks up where \
                a frame leaves by its destination";
    let error = Diagnostic::error(codes::REPLICATION, message, channel.origin, "its paths cross");
    Some(error.related(bridge.origin, "where they cross").help(help))
}

/// The node at the other end of a port's link.
pub(crate) fn next(system: &System, port: PortId) -> NodeId {
    system.port(system.port(port).peer).node
}

/// Whether frames of the VLAN leave the port (802.1Q-2022 8.8.2).
pub(crate) fn sends(system: &System, port: PortId, vlan: Option<u16>) -> bool {
    let members = &system.port(port).settings.vlans;
    let (Some(members), Some(vlan)) = (members, vlan) else { return true };
    members.contains(&vlan)
}

/// One path per listener of a channel, the shortest that avoid some ports; none if these are in
/// every way, or only they lead there in time.
pub(crate) fn around(
    system: &System,
    channel: &Channel,
    avoided: &HashSet<PortId>,
) -> Option<Vec<Path>> {
    let vlan = Routes::new(system).filtered.then_some(channel.vlan);
    let tree = tree(system, channel.talker, vlan, avoided);
    let path = |to: &NodeId| {
        if *to == channel.talker {
            return Some(own(system, *to));
        }
        let path = along_tree(system, &tree, channel.talker, *to)?;
        (load_aware::least(system, channel, *to, &path) <= channel.fixed_delay).then_some(path)
    };
    channel.listeners.iter().map(path).collect()
}

/// The path by which a talker hears itself.
pub(crate) fn own(system: &System, talker: NodeId) -> Path {
    vec![system.node(talker).ports[0]]
}

/// The path in a tree from its root to a node that it reaches.
fn along_tree(system: &System, tree: &Tree, from: NodeId, to: NodeId) -> Option<Path> {
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        let port = tree[at.index()]?;
        path.push(port);
        at = system.port(port).node;
    }
    path.reverse();
    Some(path)
}

fn tree(system: &System, from: NodeId, vlan: Option<u16>, avoided: &HashSet<PortId>) -> Tree {
    let mut tree = vec![None; system.nodes.len()];
    let mut ahead = VecDeque::from([from]);
    while let Some(at) = ahead.pop_front() {
        for &port in &system.node(at).ports {
            let next = next(system, port);
            let leads = sends(system, port, vlan) && !avoided.contains(&port);
            if next != from && tree[next.index()].is_none() && leads {
                tree[next.index()] = Some(port);
                ahead.push_back(next);
            }
        }
    }
    tree
}
