//! GraphML 1.0: nodes and edges, and of their attributes those that a network has. No entity but
//! those of XML is known, and no other file is read.

use super::SUGGESTED;
use super::notes::{Note, Notes};
use super::{Edge, Graph, ImportOptions, NETWORK, Node, codes, number, too_large};
use crate::{At, Sink, did_you_mean, origin, shorten};
use onbeat_model::codes::description;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::limits;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::BTreeMap;

/// Elements within each other.
const DEPTH: usize = 32;
/// Attributes of an element.
const ATTRIBUTES: usize = 64;
/// Declared attributes.
const KEYS: usize = 256;
/// Octets of a value of an attribute.
const VALUE_OCTETS: usize = 1 << 12;
/// Attributes of nodes that mean something here.
const OF_NODES: [&str; 4] = ["kind", "type", "label", "forwarding_ns"];
/// Attributes of edges that do. The last three are those of the Topology Zoo.
const OF_EDGES: [&str; 6] =
    ["rate_bps", "rate_mbps", "propagation_ns", "LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits"];
/// Attributes of edges that would mean something if they had a unit.
const WITHOUT_UNIT: [&str; 7] =
    ["rate", "speed", "bandwidth", "capacity", "delay", "latency", "propagation"];
const HOSTS: [&str; 4] = ["host", "end-station", "endstation", "es"];
const BRIDGES: [&str; 3] = ["bridge", "switch", "sw"];
/// Units of `LinkSpeed` and their powers of ten.
const UNITS: [(&str, u32); 4] = [("K", 3), ("M", 6), ("G", 9), ("T", 12)];

/// Reads a graph; nothing if the text is not such a file.
pub(super) fn read(
    text: &str,
    options: &ImportOptions,
    notes: &mut Notes,
    sink: &mut Sink,
) -> Option<Graph> {
    let rate = options.rate.unwrap_or(super::RATE);
    let propagation = options.propagation.unwrap_or_default();
    let mut reading = Reading {
        graph: Graph::default(),
        ids: BTreeMap::new(),
        keys: BTreeMap::new(),
        ends: Vec::new(),
        open: Vec::new(),
        values: BTreeMap::new(),
        text: String::new(),
        is_directed: false,
        graphs: 0,
        rate,
        propagation,
        notes,
        sink,
    };
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    loop {
        let from = position(reader.buffer_position());
        let event = reader.read_event();
        let to = position(reader.buffer_position()).max(from);
        let at = origin(NETWORK, from..to);
        let step = match event {
            Ok(Event::Eof) => break,
            Ok(event) => reading.event(&event, at),
            Err(wrong) => {
                let from = boundary(text, position(reader.error_position()));
                let to = boundary(text, to).max(from);
                Err(Wrong::Syntax(wrong.to_string(), origin(NETWORK, from..to)))
            }
        };
        if let Err(wrong) = step {
            wrong.tell(reading.sink);
            return None;
        }
    }
    let end = origin(NETWORK, text.len()..text.len());
    let missing = match (reading.open.last(), reading.graphs) {
        (Some(_), _) => "an element does not end",
        (None, 0) => "there is no `graph`",
        _ => return Some(reading.finish()),
    };
    Wrong::Syntax(missing.to_owned(), end).tell(sink);
    None
}

fn position(octet: u64) -> usize {
    usize::try_from(octet).unwrap_or(usize::MAX)
}

/// The last place of a character at or before an octet.
fn boundary(text: &str, octet: usize) -> usize {
    (0..=octet.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Why reading ends.
enum Wrong {
    Syntax(String, Origin),
    TooLarge(String, Origin),
}

impl Wrong {
    fn tell(self, sink: &mut Sink) {
        match self {
            Self::Syntax(why, at) => {
                let message = format!("the text is not GraphML: {}", shorten(&why));
                let wrong = Diagnostic::error(codes::SYNTAX, message, at, "here");
                sink.push(wrong.help("export the network as GraphML 1.0, with one flat graph"));
            }
            Self::TooLarge(why, at) => too_large(why, at, sink),
        }
    }
}

/// An element that has begun.
enum Element {
    /// What holds others, or means nothing here.
    Other,
    Graph,
    /// The declaration of an attribute, by its identifier.
    Key(String),
    /// A value that nodes or edges have by default: that of the key around it.
    Default,
    /// A node or an edge, and where it begins.
    Node(String, Origin),
    Edge([String; 2], bool, Origin),
    /// A value: the identifier of its key.
    Data(String, Origin),
}

/// A declared attribute.
struct Key {
    /// `node`, `edge`, `graph` or `all`.
    of: String,
    name: String,
    default: Option<At<String>>,
}

/// The values of a node's or an edge's attributes, by their names.
type Values = BTreeMap<&'static str, At<String>>;

struct Reading<'a> {
    graph: Graph,
    ids: BTreeMap<String, usize>,
    keys: BTreeMap<String, Key>,
    /// What edges are between, in the order of the edges: nodes may follow.
    ends: Vec<[String; 2]>,
    open: Vec<Element>,
    /// Those of the node or edge that is open.
    values: Values,
    /// The text of the value that is open.
    text: String,
    is_directed: bool,
    graphs: usize,
    rate: BitRate,
    propagation: Span,
    notes: &'a mut Notes,
    sink: &'a mut Sink,
}

impl Reading<'_> {
    fn event(&mut self, event: &Event<'_>, at: Origin) -> Result<(), Wrong> {
        match event {
            Event::Start(start) => self.begin(start, at),
            Event::End(_) => {
                match self.open.pop() {
                    Some(element) => self.end(element, at),
                    None => return Err(Wrong::Syntax("an element ends twice".to_owned(), at)),
                }
                Ok(())
            }
            Event::Text(text) => self.add(text, at),
            Event::CData(text) => self.add(text, at),
            Event::GeneralRef(name) => {
                let letter = name.resolve_char_ref().ok().flatten().map(String::from);
                let known = || quick_xml::escape::resolve_xml_entity(name).map(str::to_owned);
                match letter.or_else(known) {
                    Some(text) => self.add(&text, at),
                    None => {
                        let why = format!("the entity `{}` is unknown", shorten(name));
                        Err(Wrong::Syntax(why, at))
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// Text: part of the value that is open, else only space between elements.
    fn add(&mut self, text: &str, at: Origin) -> Result<(), Wrong> {
        if !matches!(self.open.last(), Some(Element::Data(..) | Element::Default)) {
            return Ok(());
        }
        if self.text.len() + text.len() > VALUE_OCTETS {
            let why = format!("a value has more than {VALUE_OCTETS} octets");
            return Err(Wrong::TooLarge(why, at));
        }
        self.text.push_str(text);
        Ok(())
    }

    fn begin(&mut self, start: &BytesStart<'_>, at: Origin) -> Result<(), Wrong> {
        if self.open.len() == DEPTH {
            let why = format!("more than {DEPTH} elements are within each other");
            return Err(Wrong::TooLarge(why, at));
        }
        let wrong = |why: String| Err(Wrong::Syntax(why, at));
        let name = start.local_name();
        let name = name.as_ref();
        if self.open.is_empty() && (name != "graphml" || self.graphs > 0) {
            return wrong(format!("the element `{}` is no `graphml`", shorten(name)));
        }
        // Within a node or edge only values mean something: what draws them does not.
        let element = match (self.open.last(), name) {
            (Some(Element::Other), "graph") if self.open.len() == 1 && self.graphs == 0 => {
                let attributes = attributes(start, at)?;
                self.graphs = 1;
                self.is_directed = attributes.get("edgedefault").is_some_and(|it| it == "directed");
                Element::Graph
            }
            (_, "graph") => return wrong("there is a second or a nested `graph`".to_owned()),
            (_, "hyperedge") => return wrong("there is a `hyperedge`".to_owned()),
            (Some(Element::Other), "key") if self.open.len() == 1 => self.key(start, at)?,
            (Some(Element::Key(_)), "default") => Element::Default,
            (Some(Element::Graph), "node") => {
                let id = needed(&mut attributes(start, at)?, "id", at)?;
                Element::Node(super::identifier(&id).to_owned(), at)
            }
            (Some(Element::Graph), "edge") => {
                let mut attributes = attributes(start, at)?;
                let ends = [
                    needed(&mut attributes, "source", at)?,
                    needed(&mut attributes, "target", at)?,
                ];
                if attributes.contains_key("sourceport") || attributes.contains_key("targetport") {
                    self.notes.add(Note::Ports, at);
                }
                let directed = attributes.get("directed");
                let is_directed = directed.map_or(self.is_directed, |it| it == "true");
                Element::Edge(ends.map(|end| super::identifier(&end).to_owned()), is_directed, at)
            }
            (Some(Element::Node(..) | Element::Edge(..)), "data") => {
                Element::Data(needed(&mut attributes(start, at)?, "key", at)?, at)
            }
            _ => Element::Other,
        };
        if matches!(element, Element::Data(..) | Element::Default) {
            self.text.clear();
        }
        self.open.push(element);
        Ok(())
    }

    fn key(&mut self, start: &BytesStart<'_>, at: Origin) -> Result<Element, Wrong> {
        if self.keys.len() == KEYS {
            return Err(Wrong::TooLarge(format!("there are more than {KEYS} keys"), at));
        }
        let mut attributes = attributes(start, at)?;
        let id = needed(&mut attributes, "id", at)?;
        let of = attributes.remove("for").unwrap_or_else(|| "all".to_owned());
        let name = attributes.remove("attr.name").unwrap_or_else(|| id.clone());
        if self.keys.insert(id.clone(), Key { of, name, default: None }).is_some() {
            self.duplicate(&format!("the key `{}`", shorten(&id)), at, None);
        }
        Ok(Element::Key(id))
    }

    fn duplicate(&mut self, what: &str, at: Origin, first: Option<Origin>) {
        let message = format!("{what} is there twice");
        let mut wrong = Diagnostic::error(codes::DUPLICATE, message, at, "the second");
        if let Some(first) = first {
            wrong = wrong.related(first, "the first");
        }
        self.sink.push(wrong.help("rename one of them"));
    }

    fn end(&mut self, element: Element, at: Origin) {
        match element {
            Element::Other | Element::Graph | Element::Key(_) => {}
            Element::Default => {
                let value = std::mem::take(&mut self.text);
                if let Some(Element::Key(id)) = self.open.last()
                    && let Some(key) = self.keys.get_mut(id)
                {
                    key.default = Some(At { value, at });
                }
            }
            Element::Data(key, begun) => self.value(&key, begun),
            Element::Node(id, begun) => {
                let values = self.all_values("node", &OF_NODES);
                self.node(id, &values, begun);
            }
            Element::Edge(ends, is_directed, begun) => {
                let values = self.all_values("edge", &OF_EDGES);
                self.edge(ends, is_directed, &values, begun);
            }
        }
    }

    /// Keeps the value that ends, if it means something.
    fn value(&mut self, key: &str, at: Origin) {
        let name = self.keys.get(key).map_or(key, |key| key.name.as_str());
        let known: &[&'static str] = match self.open.last() {
            Some(Element::Node(..)) => &OF_NODES,
            _ => &OF_EDGES,
        };
        if let Some(name) = known.iter().find(|known| **known == name) {
            let value = At { value: std::mem::take(&mut self.text), at };
            self.values.insert(name, value);
        } else if matches!(self.open.last(), Some(Element::Edge(..)))
            && let Some(name) = WITHOUT_UNIT.iter().find(|it| it.eq_ignore_ascii_case(name))
        {
            self.notes.add(Note::NoUnit((*name).to_owned()), at);
        }
    }

    /// The values of the element that ends, and the default ones of the others.
    fn all_values(&mut self, kind: &str, known: &[&'static str]) -> Values {
        let mut values = std::mem::take(&mut self.values);
        for key in self.keys.values().filter(|key| key.of == kind || key.of == "all") {
            let Some(default) = &key.default else { continue };
            if let Some(name) = known.iter().find(|known| **known == key.name) {
                values.entry(name).or_insert_with(|| default.clone());
            }
        }
        values
    }

    fn node(&mut self, id: String, values: &Values, at: Origin) {
        if let Some(first) = self.ids.insert(id.clone(), self.graph.nodes.len()) {
            let first = self.graph.nodes[first].at;
            self.duplicate(&format!("the node `{}`", shorten(&id)), at, Some(first));
        }
        let what = format!("node `{}`", shorten(&id));
        let processing = values.get("forwarding_ns").and_then(|value| {
            let most = limits::DELAY.as_ns();
            let what = format!("{what}: `forwarding_ns`");
            number(&what, &value.with(value.value.as_str()), 0, 0..=most, self.sink)
        });
        let is_bridge = values.get("kind").and_then(|value| {
            let known = kind(&value.value);
            if known.is_none() {
                let message = format!("{what}: `kind` is `{}`", shorten(value.value.trim()));
                let wrong = Diagnostic::error(codes::VALUE, message, value.at, "no kind");
                self.sink.push(wrong.help("use `host` or `bridge`"));
            }
            known
        });
        let is_bridge = is_bridge.or_else(|| values.get("type").and_then(|it| kind(&it.value)));
        let label = values.get("label").map(|value| value.value.clone());
        let processing = processing.map(Span::from_ns);
        self.graph.nodes.push(Node { id, label, is_bridge, processing, at });
    }

    fn edge(&mut self, ends: [String; 2], is_directed: bool, values: &Values, at: Origin) {
        let [from, to] = [0, 1].map(|end| shorten(&ends[end]));
        let what = format!("edge `{from}` to `{to}`");
        let propagation = values.get("propagation_ns").and_then(|value| {
            let most = limits::DELAY.as_ns();
            let what = format!("{what}: `propagation_ns`");
            number(&what, &value.with(value.value.as_str()), 0, 0..=most, self.sink)
        });
        let propagation = propagation.map_or(self.propagation, Span::from_ns);
        let rate = self.rate_of(&what, values).unwrap_or(self.rate);
        self.ends.push(ends);
        self.graph.edges.push(Edge {
            ends: [0; 2],
            ports: [None, None],
            is_directed,
            rate,
            propagation,
            at,
        });
    }

    /// The rate that an edge has, by the first of the attributes that say it.
    fn rate_of(&mut self, what: &str, values: &Values) -> Option<BitRate> {
        let raw = [("rate_bps", 0), ("rate_mbps", 6), ("LinkSpeedRaw", 0)];
        let raw = raw.iter().find(|(name, _)| values.contains_key(name)).copied();
        let (name, power) = match (raw, values.get("LinkSpeed"), values.get("LinkSpeedUnits")) {
            (Some(raw), ..) => raw,
            (None, Some(speed), units) => {
                let units = units.map(|units| units.value.trim()).unwrap_or_default();
                let Some((_, power)) = UNITS.iter().find(|(unit, _)| *unit == units) else {
                    self.notes.add(Note::NoUnit("LinkSpeed".to_owned()), speed.at);
                    return None;
                };
                ("LinkSpeed", *power)
            }
            (None, None, _) => return None,
        };
        let value = &values[name];
        let what = format!("{what}: `{name}`");
        let text = value.with(value.value.as_str());
        let bps = number(&what, &text, power, 1..=limits::LINK_BPS, self.sink)?;
        Some(BitRate::from_bps(bps.unsigned_abs()))
    }

    /// Finds the nodes of the edges.
    fn finish(mut self) -> Graph {
        let edges = std::mem::take(&mut self.graph.edges);
        let ends = std::mem::take(&mut self.ends);
        for (mut edge, ends) in edges.into_iter().zip(&ends) {
            if ends[0] == ends[1] {
                self.notes.add(Note::SelfLink, edge.at);
                continue;
            }
            for (place, end) in edge.ends.iter_mut().zip(ends) {
                match self.ids.get(end) {
                    Some(node) => *place = *node,
                    None if self.sink.is_full() => {}
                    None => self.unknown(end, edge.at),
                }
            }
            self.graph.edges.push(edge);
        }
        self.graph
    }

    fn unknown(&mut self, id: &str, at: Origin) {
        let message = format!("an edge ends at the unknown node `{}`", shorten(id));
        let help = match did_you_mean(id, self.ids.keys().take(SUGGESTED).map(String::as_str)) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "add the node, or remove the edge".to_owned(),
        };
        let code = description::UNKNOWN_NODE;
        self.sink.push(Diagnostic::error(code, message, at, "this edge").help(help));
    }
}

/// Whether a word says that a node is a bridge, or a host.
fn kind(word: &str) -> Option<bool> {
    let word = word.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    let is_bridge = BRIDGES.contains(&word.as_str());
    (is_bridge || HOSTS.contains(&word.as_str())).then_some(is_bridge)
}

/// The attributes of an element by their names without prefixes.
fn attributes(start: &BytesStart<'_>, at: Origin) -> Result<BTreeMap<String, String>, Wrong> {
    let mut attributes = BTreeMap::new();
    for attribute in start.attributes().with_checks(false) {
        if attributes.len() == ATTRIBUTES {
            let why = format!("an element has more than {ATTRIBUTES} attributes");
            return Err(Wrong::TooLarge(why, at));
        }
        let wrong = |why: String| Wrong::Syntax(why, at);
        let attribute = attribute.map_err(|why| wrong(why.to_string()))?;
        let name = attribute.key.local_name().as_ref().to_owned();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|why| wrong(why.to_string()))?.into_owned();
        if attributes.insert(name, value).is_some() {
            return Err(wrong("an attribute is there twice".to_owned()));
        }
    }
    Ok(attributes)
}

/// An attribute that must be there.
fn needed(
    attributes: &mut BTreeMap<String, String>,
    name: &str,
    at: Origin,
) -> Result<String, Wrong> {
    let missing = || Wrong::Syntax(format!("the attribute `{name}` is missing"), at);
    attributes.remove(name).filter(|value| !value.is_empty()).ok_or_else(missing)
}
