//! Paths that a stream or channel must take.

use super::fields::Fields;
use super::nodes::Nodes;
use super::{At, codes, limits, raw};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::stream::PathRequest;
use onbeat_model::system::{NodeId, NodeKind, Port};

/// The keys of a table that say which paths frames take.
pub(super) struct PathKeys<'a> {
    pub(super) paths: &'a Option<At<raw::Paths>>,
    pub(super) disjoint_paths: &'a Option<At<i64>>,
    pub(super) history: &'a Option<At<i64>>,
}

/// Nodes and ports, for neighbours.
#[derive(Clone, Copy)]
pub(super) struct Topology<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) ports: &'a [Port],
}

/// Which paths a stream or channel asks for.
pub(super) fn check<R>(
    fields: &mut Fields<'_, R>,
    keys: &PathKeys<'_>,
    network: Topology<'_>,
    talker: Option<NodeId>,
    listeners: Option<&[NodeId]>,
) -> PathRequest {
    let mut along = Vec::new();
    if let (Some(paths), Some(_)) = (keys.paths, keys.disjoint_paths) {
        let help = "give `disjoint_paths` to let the plan find paths, or name them in `paths`";
        let text = "both `paths` and `disjoint_paths` are given";
        fields.error(codes::BOTH_KEYS, text, paths.at, "these paths", help);
    }
    let at = keys.paths.as_ref().map(|key| key.at);
    let at = at.or(keys.disjoint_paths.map(|key| key.at));
    let listener = match (listeners, at) {
        (Some([own]), Some(at)) if Some(*own) == talker => {
            let help = "add the other hosts that listen, or remove the paths";
            fields.error(
                codes::WAY,
                "it has paths, but no other host listens",
                at,
                "this key",
                help,
            );
            None
        }
        (Some([one]), _) => Some(*one),
        (Some(several), Some(at)) => {
            let text = format!("it has paths, but {} listeners", several.len());
            let help = "only what has one listener can have paths: make one of these per listener";
            fields.error(codes::WAY, &text, at, "this key", help);
            None
        }
        _ => None,
    };
    if let Some(written) = keys.paths {
        let read = read(fields, network, written);
        if let (Some(talker), Some(listener)) = (talker, listener) {
            for (bridges, at) in &read {
                check_links(fields, network, talker, bridges, listener, *at);
            }
        }
        along = read.into_iter().map(|(bridges, _)| bridges).collect();
    }
    let disjoint = ("disjoint_paths", keys.disjoint_paths);
    let disjoint = fields.int(codes::OUT_OF_RANGE, disjoint, 2..=limits::DISJOINT_PATHS);
    let named = keys.paths.as_ref().map_or(0, |paths| paths.value.len());
    let is_replicated = named > 1 || keys.disjoint_paths.is_some();
    if let (Some(At { at, .. }), false) = (*keys.history, is_replicated) {
        let help = "remove `history`, or give two `paths`, or `disjoint_paths`";
        fields.error(
            codes::WAY,
            "`history` applies to two or more paths only",
            at,
            "this key",
            help,
        );
    }
    let history = fields.int(codes::OUT_OF_RANGE, ("history", keys.history), 2..=limits::HISTORY);
    let history = history.map_or(PathRequest::HISTORY, |history| history as u32);
    let history = if is_replicated { history } else { 0 };
    PathRequest { along, disjoint: disjoint.unwrap_or(0) as u32, history }
}

/// The bridges of each path that can be read, and where it is written.
fn read<R>(
    fields: &mut Fields<'_, R>,
    network: Topology<'_>,
    written: &At<raw::Paths>,
) -> Vec<(Vec<NodeId>, Origin)> {
    let mut paths: Vec<(Vec<NodeId>, Origin)> = Vec::new();
    let longest = written.value.iter().map(|path| path.value.len()).max().unwrap_or(0);
    if written.value.len() > limits::PATHS || longest > limits::PATHS {
        let text = format!("{} paths of up to {longest} bridges", written.value.len());
        let help = format!("give at most {0} paths of {0} bridges", limits::PATHS);
        fields.error(codes::WAY, &text, written.at, "these paths", &help);
        return paths;
    }
    for At { value: names, at } in &written.value {
        let bridges: Vec<NodeId> =
            names.iter().filter_map(|name| bridge(fields, network, name)).collect();
        if bridges.len() < names.len() {
            continue;
        }
        if (1..bridges.len()).any(|i| bridges[..i].contains(&bridges[i])) {
            let help = "name each bridge once";
            fields.error(codes::WAY, "the path visits a bridge twice", *at, "this path", help);
        } else if paths.iter().any(|(other, _)| *other == bridges) {
            let help = "remove one of the two: copies on one path are lost together";
            fields.error(codes::WAY, "duplicate path", *at, "the second", help);
        } else {
            paths.push((bridges, *at));
        }
    }
    paths
}

fn bridge<R>(
    fields: &mut Fields<'_, R>,
    network: Topology<'_>,
    name: &At<String>,
) -> Option<NodeId> {
    let id = network.nodes.names.find(codes::UNKNOWN_NODE, name, fields.sink)?;
    let node = &network.nodes.list[id.index()];
    if matches!(node.kind, NodeKind::Bridge(_)) {
        return Some(id);
    }
    let message = format!("{}: `{}` is a host", fields.what, name.value);
    let wrong = Diagnostic::error(codes::WAY, message, name.at, "must be a bridge")
        .help("name the bridges between talker and listener, without these two")
        .related(node.origin, "the host");
    fields.sink.push(wrong);
    None
}

/// Reports the first two neighbours on a way that no link joins.
fn check_links<R>(
    fields: &mut Fields<'_, R>,
    network: Topology<'_>,
    talker: NodeId,
    bridges: &[NodeId],
    listener: NodeId,
    at: Origin,
) {
    if !network.nodes.links_complete {
        return;
    }
    let node = |id: NodeId| &network.nodes.list[id.index()];
    let linked = |a: NodeId, b: NodeId| {
        let mut peers = node(a).ports.iter().map(|p| network.ports[p.index()].peer);
        peers.any(|peer| network.ports[peer.index()].node == b)
    };
    let nodes: Vec<NodeId> = [talker].iter().chain(bridges).chain([&listener]).copied().collect();
    if let Some(apart) = nodes.windows(2).find(|pair| !linked(pair[0], pair[1])) {
        let text = format!("no link joins `{}` and `{}`", node(apart[0]).name, node(apart[1]).name);
        let help = "name every bridge in order, from the talker's to the listener's";
        fields.error(codes::WAY, &text, at, "this path", help);
    }
}
