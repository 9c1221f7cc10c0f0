//! A graph as hosts, bridges and full-duplex links.

use super::notes::{Note, Notes};
use super::{Edge, Graph, ImportOptions, Node, codes, too_large};
use crate::Sink;
use onbeat_model::codes::description;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::limits;
use onbeat_model::name::is_plain;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// A host or a bridge.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) name: String,
    pub(super) is_bridge: bool,
    /// A bridge's forwarding delay, or the delay of a host's receiving stack.
    pub(super) processing: Span,
    /// How many links it has.
    pub(super) links: usize,
    /// The host at which streams of this node begin and end.
    pub(super) host: Option<usize>,
    /// Nodes that links join, directly or not, have the same part.
    pub(super) part: usize,
}

/// A full-duplex link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) ends: [usize; 2],
    /// The names of its ports, where the file has some.
    pub(super) ports: [Option<String>; 2],
    pub(super) rate: BitRate,
    pub(super) propagation: Span,
    at: Origin,
}

/// A network as a description has it.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) nodes: Vec<Station>,
    pub(super) links: Vec<Link>,
    /// The nodes by what the file calls them.
    pub(super) ids: BTreeMap<String, usize>,
}

/// Decides what each node is, and joins the two directions of each link.
pub(super) fn shape(
    graph: &Graph,
    options: &ImportOptions,
    notes: &mut Notes,
    sink: &mut Sink,
) -> Option<Shape> {
    let mut links = pair(graph, notes, sink);
    name_ports(&mut links, graph.nodes.len());
    let mut degrees = vec![0; graph.nodes.len()];
    links.iter().flat_map(|link| link.ends).for_each(|end| degrees[end] += 1);
    let mut names = Names::default();
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for (node, degree) in graph.nodes.iter().zip(degrees) {
        let is_bridge = node.is_bridge.unwrap_or(degree != 1);
        if !is_bridge && degree != 1 {
            let message = format!("host `{}` has {degree} links", crate::shorten(&node.id));
            let wrong = Diagnostic::error(description::HOST_LINKS, message, node.at, "a host");
            sink.push(wrong.help("give it one link, or make it a bridge"));
        }
        let processing = match (is_bridge, node.processing) {
            (true, own) => own.or(options.forwarding),
            (false, Some(own)) if !graph.is_for_hosts && own != Span::ZERO => {
                notes.add(Note::HostForwards, node.at);
                None
            }
            (false, own) => own,
        };
        nodes.push(Station {
            name: names.unique(&name(node, is_bridge)),
            is_bridge,
            processing: processing.unwrap_or_default(),
            links: degree,
            host: (!is_bridge).then_some(nodes.len()),
            part: 0,
        });
    }
    if options.add_hosts {
        add_hosts(&mut nodes, &mut links, graph, options, &mut names);
    }
    limit(&nodes, &links, graph, sink)?;
    part(&mut nodes, &links);
    let ids = graph.nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at)).collect();
    Some(Shape { nodes, links, ids })
}

/// The links: an edge each, or two directions of one.
fn pair(graph: &Graph, notes: &mut Notes, sink: &mut Sink) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    // Links of which one direction is known, by that direction.
    let mut open: HashMap<[(usize, Option<&str>); 2], VecDeque<usize>> = HashMap::new();
    for edge in &graph.edges {
        let [from, to] = [0, 1].map(|end| (edge.ends[end], edge.ports[end].as_deref()));
        if edge.is_directed {
            let other = open.get_mut(&[to, from]).and_then(VecDeque::pop_front);
            if let Some(link) = other {
                join(&mut links[link], edge, notes, sink);
                continue;
            }
            open.entry([from, to]).or_default().push_back(links.len());
        }
        let Edge { ends, rate, propagation, at, .. } = *edge;
        let ports = edge.ports.clone();
        links.push(Link { ends, ports, rate, propagation, at });
    }
    let mut alone: Vec<usize> = open.into_values().flatten().collect();
    alone.sort_unstable();
    alone.into_iter().for_each(|link| notes.add(Note::OneWay, links[link].at));
    links
}

/// Gives ports names that a description may have, each its own at its node.
fn name_ports(links: &mut [Link], nodes: usize) {
    let mut names: Vec<Names> = Vec::new();
    names.resize_with(nodes, Names::default);
    for link in links {
        for (node, port) in link.ends.iter().zip(&mut link.ports) {
            *port = port.take().map(|name| names[*node].unique(&plain(&name)));
        }
    }
}

/// Adds the other direction to a link.
fn join(link: &mut Link, other: &Edge, notes: &mut Notes, sink: &mut Sink) {
    if link.rate != other.rate {
        let message = format!("the directions of a link have {} and {}", link.rate, other.rate);
        let wrong = Diagnostic::error(codes::VALUE, message, other.at, "the other direction");
        let help = "give both directions the same rate: links are full-duplex";
        sink.push(wrong.help(help).related(link.at, "one direction"));
    }
    if link.propagation != other.propagation {
        notes.add(Note::Propagation, other.at);
        link.propagation = link.propagation.max(other.propagation);
    }
}

/// What a node is called: by its label, or by what it is and its number.
fn name(node: &Node, is_bridge: bool) -> String {
    let label = node.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
    let text = label.unwrap_or(&node.id);
    if label.is_none() && text.bytes().all(|octet| octet.is_ascii_digit()) {
        return format!("{}{text}", if is_bridge { "b" } else { "h" });
    }
    plain(text)
}

/// A text with `-` for what names do not have, and not longer than these.
pub(super) fn plain(text: &str) -> String {
    let letter = |letter: char| match letter.is_ascii() && is_plain(letter as u8) {
        true => letter,
        false => '-',
    };
    text.chars().take(limits::NAME_OCTETS).map(letter).collect()
}

/// Names that are taken.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// The last number behind each name that was taken.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// The name, or if it is taken, with the first number behind it that is free.
    pub(super) fn unique(&mut self, name: &str) -> String {
        self.unique_of(name, "-", limits::NAME_OCTETS)
    }

    /// The same with another separator and length.
    pub(super) fn unique_of(&mut self, name: &str, separator: &str, most: usize) -> String {
        let head = |octets: usize| &name[..name.len().min(octets)];
        if self.taken.insert(head(most).to_owned()) {
            return head(most).to_owned();
        }
        // Room for a separator and the numbers of all that there may be.
        let head = head(most - 8);
        loop {
            let number = self.numbers.entry(head.to_owned()).or_insert(1);
            *number += 1;
            let name = format!("{head}{separator}{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Gives each bridge a host, on a link as fast as its fastest.
fn add_hosts(
    nodes: &mut Vec<Station>,
    links: &mut Vec<Link>,
    graph: &Graph,
    options: &ImportOptions,
    names: &mut Names,
) {
    let mut fastest: Vec<Option<BitRate>> = vec![None; nodes.len()];
    for link in &*links {
        link.ends.iter().for_each(|end| fastest[*end] = fastest[*end].max(Some(link.rate)));
    }
    for bridge in 0..graph.nodes.len() {
        if !nodes[bridge].is_bridge {
            continue;
        }
        let host = nodes.len();
        let head: String = nodes[bridge].name.chars().take(limits::NAME_OCTETS - 5).collect();
        nodes.push(Station {
            name: names.unique(&format!("{head}-host")),
            is_bridge: false,
            processing: Span::ZERO,
            links: 1,
            host: Some(host),
            part: 0,
        });
        nodes[bridge].host = Some(host);
        nodes[bridge].links += 1;
        let rate = fastest[bridge].or(options.rate).unwrap_or(super::RATE);
        let at = graph.nodes[bridge].at;
        let ports = [None, None];
        links.push(Link { ends: [bridge, host], ports, rate, propagation: Span::ZERO, at });
    }
}

/// Not more than a description may have.
fn limit(nodes: &[Station], links: &[Link], graph: &Graph, sink: &mut Sink) -> Option<()> {
    let bridges = nodes.iter().filter(|node| node.is_bridge).count();
    let at = graph.nodes.first().map(|node| node.at).unwrap_or_default();
    let mut fits = true;
    for (what, count, most) in [
        ("hosts", nodes.len() - bridges, limits::NODES),
        ("bridges", bridges, limits::NODES),
        ("links", links.len(), limits::LINKS),
    ] {
        if count > most {
            too_large(format!("there are {count} {what}, of at most {most}"), at, sink);
            fits = false;
        }
    }
    fits.then_some(())
}

/// Finds out which nodes links join.
fn part(nodes: &mut [Station], links: &[Link]) {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for Link { ends: [a, b], .. } in links {
        next[*a].push(*b);
        next[*b].push(*a);
    }
    for first in 0..nodes.len() {
        if nodes[first].part > 0 {
            continue;
        }
        let mut open = vec![first];
        while let Some(node) = open.pop() {
            if nodes[node].part == 0 {
                nodes[node].part = first + 1;
                open.extend(&next[node]);
            }
        }
    }
}
