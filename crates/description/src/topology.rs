//! Links: which ports they join, and which nodes hang together.

use super::fields::{Fields, NS};
use super::names::{Alphabet, check_name, shorten};
use super::nodes::Nodes;
use super::parse::Entry;
use super::{At, Sink, codes, limits, raw};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::port::PortSettings;
use onbeat_model::system::{Link, LinkId, NodeId, NodeKind, Port, PortId};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::collections::BTreeMap;

/// One end of a link as the description names it.
struct LinkEnd {
    node: NodeId,
    port: Option<String>,
    at: Origin,
}

struct Draft {
    ends: [LinkEnd; 2],
    rate: BitRate,
    propagation: Span,
    origin: Origin,
}

/// Checks all links and gives the nodes their ports.
pub(super) fn check(
    entries: &[Entry<raw::Link>],
    nodes: &mut Nodes,
    sink: &mut Sink,
) -> (Vec<Port>, Vec<Link>) {
    let drafts: Vec<Draft> = entries.iter().filter_map(|e| draft(e, nodes, sink)).collect();
    nodes.links_complete = drafts.len() == entries.len();
    check_ports(&drafts, nodes, sink);
    join(&drafts, nodes);
    connect(drafts, nodes)
}

fn draft(entry: &Entry<raw::Link>, nodes: &Nodes, sink: &mut Sink) -> Option<Draft> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "link", &None, sink);
    if let Some(ends) = &raw.ends {
        let [a, b] = &ends.value;
        fields.what = format!("link {}–{}", shorten(&a.value), shorten(&b.value));
    }
    let ends = fields.need("ends", &raw.ends);
    let rate = rate(&mut fields);
    let propagation = ("propagation_ns", &raw.propagation_ns);
    let range = Span::ZERO..=limits::DELAY;
    let propagation = fields.time(codes::OUT_OF_RANGE, propagation, NS, range);
    let At { value: [a, b], at } = ends?;
    let (a, b) = (end(&a, nodes, sink), end(&b, nodes, sink));
    let ends = [a?, b?];
    if ends[0].node == ends[1].node {
        let name = &nodes.list[ends[0].node.index()].name;
        let message = format!("a link joins `{name}` to itself");
        let help = "name two different nodes";
        let error = Diagnostic::error(codes::SELF_LINK, message, at, "these ends").help(help);
        sink.push(error);
        return None;
    }
    Some(Draft { ends, rate, propagation: propagation.unwrap_or_default(), origin: at })
}

fn rate(fields: &mut Fields<'_, raw::Link>) -> BitRate {
    let raw = &fields.entry.raw;
    let (mbps, bps) = (("rate_mbps", &raw.rate_mbps), ("rate_bps", &raw.rate_bps));
    fields.need_one(mbps, bps);
    fields.bit_rate(mbps, bps).unwrap_or(BitRate::from_bps(1))
}

fn end(text: &At<String>, nodes: &Nodes, sink: &mut Sink) -> Option<LinkEnd> {
    let (node, port) = match text.value.split_once('.') {
        Some((node, port)) => (node, Some(port.to_owned())),
        None => (text.value.as_str(), None),
    };
    if let Some(port) = &port {
        let name = text.with(port.clone());
        check_name(&name, "port", Alphabet::Plain, limits::NAME_OCTETS, sink);
    }
    let node = nodes.names.find(codes::UNKNOWN_NODE, &text.with(node.to_owned()), sink)?;
    Some(LinkEnd { node, port, at: text.at })
}

/// No port has two links, and a host has exactly one.
fn check_ports(drafts: &[Draft], nodes: &Nodes, sink: &mut Sink) {
    let mut taken: BTreeMap<(NodeId, &str), Origin> = BTreeMap::new();
    let mut host_link: BTreeMap<NodeId, Origin> = BTreeMap::new();
    for end in drafts.iter().flat_map(|d| &d.ends) {
        let node = &nodes.list[end.node.index()];
        if let Some(port) = &end.port
            && let Some(first) = taken.insert((end.node, port), end.at)
        {
            let message = format!("port `{}.{port}` has two links", node.name);
            let error = Diagnostic::error(codes::PORT_TAKEN, message, end.at, "the second")
                .help("name another port, or leave the name out: unnamed ports are numbered")
                .related(first, "the first");
            sink.push(error);
        } else if matches!(node.kind, NodeKind::Host(_))
            && let Some(first) = host_link.insert(end.node, end.at)
        {
            let message = format!("host `{}` has two links", node.name);
            let error = Diagnostic::error(codes::HOST_LINKS, message, end.at, "the second")
                .help("put a [[bridge]] between them")
                .related(first, "the first");
            sink.push(error);
        }
    }
    if !nodes.links_complete {
        return;
    }
    for (i, node) in nodes.list.iter().enumerate() {
        let is_host = matches!(node.kind, NodeKind::Host(_));
        if is_host && !host_link.contains_key(&NodeId(i as u32)) {
            let message = format!("host `{}` has no link", node.name);
            let help = format!("add a [[link]] with `{}` in its ends", node.name);
            let error = Diagnostic::error(codes::HOST_LINKS, message, node.origin, "this host");
            sink.push(error.help(help));
        }
    }
}

/// Which nodes are joined by links.
fn join(drafts: &[Draft], nodes: &mut Nodes) {
    let mut parent: Vec<usize> = (0..nodes.list.len()).collect();
    for draft in drafts {
        let [a, b] = draft.ends.each_ref().map(|end| root(&mut parent, end.node.index()));
        parent[a] = b;
    }
    for i in 0..parent.len() {
        nodes.component[i] = root(&mut parent, i);
    }
}

/// The representative of a set, with path halving: no recursion, near constant time.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

/// Names the unnamed ports: each the first of p1, p2, … that its node does not name itself.
fn connect(drafts: Vec<Draft>, nodes: &mut Nodes) -> (Vec<Port>, Vec<Link>) {
    let mut named: Vec<Vec<String>> = vec![Vec::new(); nodes.list.len()];
    for end in drafts.iter().flat_map(|d| &d.ends) {
        named[end.node.index()].extend(end.port.clone());
    }
    named.iter_mut().for_each(|names| names.sort_unstable());
    let mut next = vec![1; nodes.list.len()];
    let (mut ports, mut links) = (Vec::new(), Vec::new());
    for (index, draft) in drafts.into_iter().enumerate() {
        let link = LinkId(index as u32);
        let ids = [PortId(2 * index as u32), PortId(2 * index as u32 + 1)];
        for (side, end) in draft.ends.into_iter().enumerate() {
            let at = end.node.index();
            let name = end.port.unwrap_or_else(|| unused(&named[at], &mut next[at]));
            nodes.list[at].ports.push(ids[side]);
            ports.push(Port {
                name,
                node: end.node,
                link,
                peer: ids[1 - side],
                settings: PortSettings::default(),
            });
        }
        let Draft { rate, propagation, origin, .. } = draft;
        links.push(Link { ports: ids, rate, propagation, origin });
    }
    (ports, links)
}

fn unused(named: &[String], next: &mut usize) -> String {
    loop {
        let name = format!("p{next}");
        *next += 1;
        if named.binary_search(&name).is_err() {
            return name;
        }
    }
}
