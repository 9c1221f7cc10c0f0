//! Paths that a stream must take.

use super::fields::Fields;
use super::streams::Infrastructure;
use super::{At, codes, limits, raw};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::system::{NodeId, NodeKind};

/// How many sequence numbers back a duplicate is recognised: enough for paths that differ by some
/// frames. 802.1CB-2017 10.4.1.6 (frerSeqRcvyHistoryLength) starts from 2.
const HISTORY_DEFAULT: i64 = 64;

/// The paths of a stream and how far back its duplicates are recognised; 0 where there are none.
pub(super) fn check(
    fields: &mut Fields<'_, raw::Stream>,
    network: &Infrastructure<'_>,
    talker: Option<NodeId>,
    listeners: Option<&[NodeId]>,
) -> (Vec<Vec<NodeId>>, u32) {
    let raw = &fields.entry.raw;
    let mut paths = Vec::new();
    if let Some(written) = &raw.paths {
        let listener = match listeners {
            Some([one]) => Some(*one),
            Some(several) => {
                let text = format!("it has paths, but {} listeners", several.len());
                let help = "make one stream per listener: only a stream to one listener has paths";
                fields.error(codes::WAY, &text, written.at, "these paths", help);
                None
            }
            None => None,
        };
        paths = read(fields, network, written);
        if let (Some(talker), Some(listener)) = (talker, listener) {
            for (bridges, at) in &paths {
                check_links(fields, network, talker, bridges, listener, *at);
            }
        }
    }
    let count = raw.paths.as_ref().map_or(0, |paths| paths.value.len());
    if let (Some(At { at, .. }), 0..=1) = (raw.history, count) {
        let help = "remove `history`, or give two `paths`";
        fields.error(
            codes::WAY,
            "`history` applies to two or more paths only",
            at,
            "this key",
            help,
        );
    }
    let history = fields.int(codes::OUT_OF_RANGE, ("history", &raw.history), 2..=limits::HISTORY);
    let history = if count < 2 { 0 } else { history.unwrap_or(HISTORY_DEFAULT) };
    (paths.into_iter().map(|(bridges, _)| bridges).collect(), history as u32)
}

/// The bridges of each path that can be read, and where it is written.
fn read(
    fields: &mut Fields<'_, raw::Stream>,
    network: &Infrastructure<'_>,
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

fn bridge(
    fields: &mut Fields<'_, raw::Stream>,
    network: &Infrastructure<'_>,
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
fn check_links(
    fields: &mut Fields<'_, raw::Stream>,
    network: &Infrastructure<'_>,
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
