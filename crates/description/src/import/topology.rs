//! Network topologies of YANG (RFC 8345): `ietf-network` with `ietf-network-topology`, as JSON.

use super::json::{self, Data, Wrong};
use super::notes::{Note, Notes};
use super::{Edge, Graph, ImportOptions, Node, SUGGESTED, codes, too_large};
use crate::{Sink, did_you_mean, shorten};
use onbeat_model::codes::description;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin};
use std::collections::{BTreeMap, BTreeSet};

const NETWORK: &str = "ietf-network";
const TOPOLOGY: &str = "ietf-network-topology";
/// What these have of a network, a node and a link. Types and other layers mean nothing here.
const KNOWN: [&str; 12] = [
    "network-id",
    "network-types",
    "node",
    "link",
    "node-id",
    "termination-point",
    "link-id",
    "source",
    "destination",
    "supporting-network",
    "supporting-node",
    "supporting-link",
];

/// Reads a topology; nothing if the text is none.
pub(super) fn read(
    text: &str,
    options: &ImportOptions,
    notes: &mut Notes,
    sink: &mut Sink,
) -> Option<Graph> {
    let root = match json::read(text.trim_start_matches('\u{feff}')) {
        Ok(root) => root,
        Err(Wrong::TooLarge(why, at)) => {
            too_large(why, at, sink);
            return None;
        }
        Err(Wrong::Syntax(why, at)) => {
            let message = format!("the text is not JSON: {why}");
            let wrong = Diagnostic::error(codes::SYNTAX, message, at, "here");
            sink.push(wrong.help("export the topology as JSON (RFC 7951)"));
            return None;
        }
    };
    let networks = root.all(NETWORK, "networks").flat_map(|it| it.all(NETWORK, "network"));
    let networks: Vec<&Data<'_>> = networks.collect();
    let [network] = networks[..] else {
        let at = networks.get(1).map_or(root.at, |second| second.at);
        let message = format!("there are {} networks in `ietf-network:networks`", networks.len());
        let wrong = Diagnostic::error(codes::SYNTAX, message, at, "here");
        sink.push(wrong.help("leave exactly one `network` in the file"));
        return None;
    };
    let mut reading = Reading { options, notes, sink, nodes: BTreeMap::new() };
    Some(reading.network(network))
}

struct Reading<'a, 't> {
    options: &'a ImportOptions,
    notes: &'a mut Notes,
    sink: &'a mut Sink,
    nodes: BTreeMap<&'t str, Known<'t>>,
}

/// A node that is known: its number, and per termination point where it is and whether it has a
/// link in each direction.
struct Known<'t> {
    number: usize,
    points: BTreeMap<&'t str, (Origin, [Option<Origin>; 2])>,
}

impl<'t> Reading<'_, 't> {
    fn network(&mut self, network: &'t Data<'_>) -> Graph {
        let mut graph = Graph::default();
        self.note_unknown(network);
        for node in network.all(NETWORK, "node") {
            self.note_unknown(node);
            graph.nodes.extend(self.node(node, graph.nodes.len()));
        }
        let mut links = BTreeSet::new();
        for link in network.all(TOPOLOGY, "link") {
            self.note_unknown(link);
            let id = self.needed(link, TOPOLOGY, "link-id", "a link");
            let Some(id) = id else { continue };
            if !links.insert(id) {
                self.duplicate(&format!("the link `{}`", shorten(id)), link.at, None);
            }
            graph.edges.extend(self.link(link, id));
        }
        let points = self.nodes.values().flat_map(|node| node.points.values());
        for (at, _) in points.filter(|(_, links)| links.iter().all(Option::is_none)) {
            self.notes.add(Note::FreePort, *at);
        }
        graph
    }

    /// What augments a topology is not read.
    fn note_unknown(&mut self, data: &Data<'_>) {
        let json::Content::Inner(children) = &data.content else { return };
        for child in children {
            let is_of_topologies = child.module == NETWORK || child.module == TOPOLOGY;
            let is_known = KNOWN.contains(&child.name.as_ref());
            if !(is_of_topologies && is_known) {
                let name = shorten(&format!("{}:{}", child.module, child.name));
                self.notes.add(Note::Data(name), child.at);
            }
        }
    }

    fn node(&mut self, node: &'t Data<'_>, number: usize) -> Option<Node> {
        let id = super::identifier(self.needed(node, NETWORK, "node-id", "a node")?);
        let mut points = BTreeMap::new();
        for point in node.all(TOPOLOGY, "termination-point") {
            let what = format!("a termination point of `{}`", shorten(id));
            let Some(name) = self.needed(point, TOPOLOGY, "tp-id", &what) else { continue };
            if let Some((first, _)) = points.insert(name, (point.at, [None; 2])) {
                let what = format!("the termination point `{}`", shorten(name));
                self.duplicate(&what, point.at, Some(first));
            }
        }
        if self.nodes.insert(id, Known { number, points }).is_some() {
            self.duplicate(&format!("the node `{}`", shorten(id)), node.at, None);
        }
        Some(Node {
            id: id.to_owned(),
            label: None,
            is_bridge: None,
            processing: None,
            at: node.at,
        })
    }

    /// A link leads one way: the other direction is another link.
    fn link(&mut self, link: &'t Data<'_>, id: &'t str) -> Option<Edge> {
        let source = self.end(link, id, 0);
        let destination = self.end(link, id, 1);
        let ((from, a), (to, b)) = (source?, destination?);
        if from == to {
            self.notes.add(Note::SelfLink, link.at);
            return None;
        }
        Some(Edge {
            ends: [from, to],
            ports: [a, b],
            is_directed: true,
            rate: self.options.rate.unwrap_or(super::RATE),
            propagation: self.options.propagation.unwrap_or_default(),
            at: link.at,
        })
    }

    /// The node and the termination point at which a link begins, or ends.
    fn end(
        &mut self,
        link: &'t Data<'_>,
        id: &str,
        side: usize,
    ) -> Option<(usize, Option<String>)> {
        let (container, node, point) = match side {
            0 => ("source", "source-node", "source-tp"),
            _ => ("destination", "dest-node", "dest-tp"),
        };
        let what = format!("link `{}`", shorten(id));
        let end = link.all(TOPOLOGY, container).next();
        let Some((name, at)) = end.and_then(|end| end.leaf(TOPOLOGY, node)) else {
            let message = format!("{what}: `{container}` has no `{node}`");
            let help = "name the node: a link has two";
            self.error(codes::VALUE, message, link.at, "this link", help);
            return None;
        };
        let Some(known) = self.nodes.get_mut(super::identifier(name)) else {
            let message = format!("{what}: unknown node `{}`", shorten(name));
            let known = self.nodes.keys().take(SUGGESTED).copied();
            let help = match did_you_mean(name, known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "add the node, or remove the link".to_owned(),
            };
            self.error(description::UNKNOWN_NODE, message, at, "this node", &help);
            return None;
        };
        let number = known.number;
        let Some((port, at)) = end.and_then(|end| end.leaf(TOPOLOGY, point)) else {
            return Some((number, None));
        };
        let Some((_, links)) = known.points.get_mut(port) else {
            let message = format!(
                "{what}: node `{}` has no termination point `{}`",
                shorten(name),
                shorten(port)
            );
            let help = "add it to the node, or name one of the node's";
            self.error(codes::VALUE, message, at, "this termination point", help);
            return None;
        };
        if let Some(first) = links[side].replace(at) {
            let what = format!("a link at the termination point `{}`", shorten(port));
            self.duplicate(&what, at, Some(first));
        }
        Some((number, Some(port.to_owned())))
    }

    fn needed(
        &mut self,
        data: &'t Data<'_>,
        module: &str,
        key: &str,
        what: &str,
    ) -> Option<&'t str> {
        let found = data.leaf(module, key).filter(|(value, _)| !value.is_empty());
        if found.is_none() {
            let message = format!("{what} has no `{key}`");
            self.error(codes::VALUE, message, data.at, "here", "give it one: it is a key");
        }
        found.map(|(value, _)| value)
    }

    fn duplicate(&mut self, what: &str, at: Origin, first: Option<Origin>) {
        let message = format!("{what} is there twice");
        let mut wrong = Diagnostic::error(codes::DUPLICATE, message, at, "the second");
        if let Some(first) = first {
            wrong = wrong.related(first, "the first");
        }
        self.sink.push(wrong.help("remove or rename one of them"));
    }

    fn error(&mut self, code: Code, message: String, at: Origin, label: &str, help: &str) {
        self.sink.push(Diagnostic::error(code, message, at, label).help(help));
    }
}
