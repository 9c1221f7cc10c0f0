//! Lingua Franca: a model to a federation, and to the description of its channels.
//! `docs/lingua-franca.md` says what of a model matters.
//!
//! A file's text becomes tokens (`lexer`), then a syntax tree (`parser`, `syntax`). Files find each
//! other (`imports`), classes inherit (`class`), instances get values and widths (`instances`,
//! `values`), and ports are connected cell by cell (`wiring`). Reactions get their causes
//! (`reactions`), an order (`order`) and rates (`rates`). What the model does not say, the sidecar
//! does (`sidecar`); `channels` writes the description.

mod annotations;
mod channels;
mod class;
mod imports;
mod instances;
mod lexer;
mod order;
mod parser;
mod rates;
mod reactions;
mod sidecar;
mod syntax;
mod table;
mod types;
mod values;
mod waits;
mod wiring;

pub use channels::{
    ChannelEntry, Description, Document, HEADER_OCTETS, Undescribed, describe, schema,
};
pub use table::{Table, table};
pub use waits::{WaitPlace, WaitPlaces};

use crate::{At, Sink, schema_of};
use annotations::ChannelNote;
use class::Classes;
use imports::{ClassId, Units};
use instances::{Builder, Tree, qualified};
use onbeat_model::codes::federation as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, Severity, SourceFile};
use onbeat_model::federation::{
    Connection, Coordination, Federate, FederateId, Federation, Reaction, ReactionId, Trigger,
};
use onbeat_model::time::Span;
use rates::Rate;
use reactions::{Graph, Tracer};
use sidecar::{Kind, Sidecar};
use std::collections::{BTreeMap, BTreeSet};
use syntax::{Element, Member, Role};
use types::Size;
use wiring::Wiring;

/// What documents models and sidecars.
const DOCUMENT: &str = "docs/lingua-franca.md";

/// Checks the syntax of one file of a model, of any target. Its place is in file 0.
///
/// # Errors
/// The first piece that the grammar does not allow.
pub fn syntax(text: &str) -> Result<(), Box<Diagnostic>> {
    parser::parse(text, 0).map(drop)
}

/// Types whose sizes a compiler of C knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeQuestion {
    /// The types, each once.
    pub types: Vec<String>,
    /// The model's preambles, which declare them.
    pub preamble: String,
}

/// What the front end cannot know by itself.
pub struct Outside<'o> {
    /// Fetches a file by its path relative to the directory of the model, and says what went wrong
    /// if it cannot.
    pub read: &'o mut dyn FnMut(&str) -> Result<String, String>,
    /// The sizes of types in octets, in their order; none for those that do not compile. It is
    /// called at most once.
    pub sizes: &'o mut dyn FnMut(&SizeQuestion) -> Vec<Option<u32>>,
}

/// What became of a model.
#[derive(Debug)]
pub struct Loaded {
    /// The federation, if nothing is wrong; warnings do not count.
    pub federation: Option<Federation>,
    /// What is wrong, in the order of the files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read: the sidecar if there is one, the model, then its imports.
    pub sources: Vec<SourceFile>,
    /// What a description needs beside the federation.
    details: Details,
}

/// What a description needs beside the federation.
#[derive(Debug, Default)]
struct Details {
    target: String,
    /// Where the target is named.
    target_at: Origin,
    timeout: Option<Span>,
    sidecar: Sidecar,
    /// Per connection.
    notes: Vec<ChannelNote>,
    rates: Vec<Rate>,
    sizes: Vec<Size>,
    /// Per connection, the number of the input at its end.
    inputs: Vec<usize>,
    waits: WaitPlaces,
    /// Per connection, both ports with and without indices.
    ports: Vec<[[String; 2]; 2]>,
    /// Where an action is declared, by its qualified name.
    actions: BTreeMap<String, Origin>,
    /// The qualified names of reactions by the numbers that doubts have, with their places.
    drafts: Vec<(String, Origin)>,
}

/// Reads a model, which came from `path`, with the sidecar, which came from where it says.
pub fn load(
    path: &str,
    text: &str,
    sidecar: Option<(&str, &str)>,
    outside: &mut Outside<'_>,
) -> Loaded {
    let mut sink = Sink::of(DOCUMENT);
    let mut sources = Vec::new();
    let mut details = Details::default();
    if let Some((path, text)) = sidecar {
        sources.push(SourceFile { path: path.to_owned(), text: text.to_owned() });
        details.sidecar = sidecar::read(text, &mut sink);
    }
    let units = imports::load(path, text, outside.read, &mut sources, &mut sink);
    let federation = units.and_then(|units| elaborate(&units, outside, &mut details, &mut sink));
    let diagnostics = sink.into_sorted();
    let federation = federation.filter(|_| !has_error(&diagnostics));
    Loaded { federation, diagnostics, sources, details }
}

fn has_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The federation as far as it could be made out.
fn elaborate(
    units: &Units,
    outside: &mut Outside<'_>,
    details: &mut Details,
    sink: &mut Sink,
) -> Option<Federation> {
    let main = main_reactor(units, sink)?;
    let classes = class::flatten(units, main, sink);
    attributes(units, &classes, sink);
    ports(&classes, main, sink);
    if sink.has_error() {
        return None;
    }
    let given = std::mem::take(&mut details.sidecar.parameters);
    let mut builder = Builder { units, classes: &classes, given: &given, sink };
    let tree = builder.all(main)?;
    let federates = wiring::federates(&tree);
    let wiring = wiring::wire(&mut builder, &tree, &federates)?;
    reactions::loops(&mut builder, &tree, &wiring);
    let Sidecar { actions, executions, .. } = &details.sidecar;
    let tracer = Tracer::new(&mut builder, &tree, &wiring, &federates, actions, executions);
    let graph = tracer.trace();
    let model = Model { units, classes: &classes, tree: &tree, wiring: &wiring, given: &given };
    details.target = model.target();
    details.target_at = model.target_at();
    details.timeout = model.timeout();
    details.sidecar.check(&model.names(&graph), sink);
    if sink.has_error() {
        return None;
    }
    let positions = order::order(&graph.drafts, sink)?;
    model.federation(main, &graph, &positions, outside, details, sink)
}

/// The federated reactor of the model's own file.
fn main_reactor(units: &Units, sink: &mut Sink) -> Option<ClassId> {
    let reactors = &units.list[0].tree.reactors;
    let mut mains = reactors.iter().enumerate().filter(|(_, r)| r.role != Role::Class);
    let help = "write `federated reactor { … }` with an instance for each federate";
    let Some((reactor, first)) = mains.next() else {
        let at = reactors.first().map_or(Origin::default(), |reactor| reactor.at);
        let message = "the model has no federated reactor".to_owned();
        let none = Diagnostic::error(codes::MAIN, message, at, "the first reactor");
        sink.push(none.help(help));
        return None;
    };
    if let Some((_, second)) = mains.next() {
        let message = "the model has two main reactors".to_owned();
        let two = Diagnostic::error(codes::MAIN, message, second.at, "the second");
        sink.push(two.related(first.at, "the first").help("keep one of them"));
        return None;
    }
    if first.role == Role::Main {
        let message = "the main reactor is not federated".to_owned();
        let main = Diagnostic::error(codes::MAIN, message, first.at, "this reactor");
        sink.push(main.help(help));
        return None;
    }
    Some(ClassId { file: 0, reactor })
}

/// The federated reactor has no ports: nothing is outside of it.
fn ports(classes: &Classes<'_>, main: ClassId, sink: &mut Sink) {
    let own = classes.list.get(&main).map_or(&[][..], |class| &class.ports);
    for (port, _) in own {
        let message = format!("the federated reactor has the port `{}`", port.name.value);
        let none = Diagnostic::error(codes::CONNECTION, message, port.name.at, "this port");
        sink.push(none.help("remove it: nothing is outside of a federation"));
    }
}

/// Warns of attributes that nothing knows, and of ours where they say nothing.
fn attributes(units: &Units, classes: &Classes<'_>, sink: &mut Sink) {
    for unused in units.list.iter().flat_map(|unit| &unit.tree.unused) {
        annotations::misplaced(*unused, sink);
    }
    for class in classes.list.values() {
        for (child, ..) in &class.children {
            annotations::check(&child.attributes, &["wcet", "channel"], sink);
        }
        for wire in &class.connections {
            annotations::check(&wire.declared.attributes, &["wcet"], sink);
        }
        for react in &class.reactions {
            annotations::check(&react.declared.attributes, &["channel"], sink);
        }
    }
}

/// An elaborated model.
struct Model<'m, 't> {
    units: &'t Units,
    classes: &'m Classes<'t>,
    tree: &'m Tree,
    wiring: &'m Wiring<'t>,
    /// Values that the sidecar gives to parameters.
    given: &'m BTreeMap<String, values::Value>,
}

impl Model<'_, '_> {
    fn target(&self) -> String {
        let target = &self.units.list[0].tree.target;
        target.as_ref().map_or_else(String::new, |target| target.name.value.clone())
    }

    fn target_at(&self) -> Origin {
        let target = &self.units.list[0].tree.target;
        target.as_ref().map_or_else(Origin::default, |target| target.name.at)
    }

    fn property(&self, key: &str) -> Option<&Element> {
        let target = self.units.list[0].tree.target.as_ref()?;
        let found = target.properties.iter().find(|property| property.key.value == key)?;
        Some(&found.value)
    }

    fn timeout(&self) -> Option<Span> {
        match self.property("timeout")? {
            Element::Time(time) => values::span(time.value),
            _ => None,
        }
    }

    fn coordination(&self) -> Coordination {
        let is = |text: &str| text.trim_matches('"').eq_ignore_ascii_case("decentralized");
        match self.property("coordination") {
            Some(Element::Path(path)) if is(&path.value) => Coordination::Decentralized,
            Some(Element::Literal(At { value: syntax::Literal::Text(text), .. })) if is(text) => {
                Coordination::Decentralized
            }
            _ => Coordination::Centralized,
        }
    }

    /// All names that a sidecar may use, with and without indices.
    fn names(&self, graph: &Graph) -> BTreeMap<Kind, BTreeSet<String>> {
        let mut names: BTreeMap<Kind, BTreeSet<String>> = BTreeMap::new();
        let mut add = |kind, name: String| {
            names.entry(kind).or_default().insert(name);
        };
        for instance in &self.tree.list {
            let Some(class) = self.classes.list.get(&instance.class) else { continue };
            for path in [&instance.path, &instance.plain] {
                for action in &class.actions {
                    add(Kind::Action, qualified(path, &action.name.value));
                }
                for parameter in &class.parameters {
                    add(Kind::Parameter, qualified(path, &parameter.name.value));
                }
                for (number, react) in class.reactions.iter().enumerate() {
                    let name = react.declared.name.as_ref().map(|name| name.value.clone());
                    let name = name.unwrap_or_else(|| format!("reaction_{}", number + 1));
                    add(Kind::Reaction, qualified(path, &name));
                }
                for (watchdog, ..) in &class.watchdogs {
                    add(Kind::Reaction, qualified(path, &watchdog.name.value));
                }
                if instance.parent.is_some_and(|(parent, _)| parent == 0) {
                    add(Kind::Federate, path.clone());
                }
            }
        }
        for edge in graph.connections.keys() {
            let edge = &self.wiring.edges[*edge];
            for (kind, cell) in [(Kind::Output, edge.from), (Kind::Input, edge.to)] {
                for name in self.port_names(cell) {
                    add(kind, name);
                }
            }
        }
        names
    }

    /// A port's qualified name, with and without indices.
    fn port_names(&self, cell: usize) -> [String; 2] {
        let of = self.tree.cells[cell];
        let instance = &self.tree.list[of.instance];
        let port = wiring::port_name(self.tree, self.classes, cell);
        let plain = port.split('[').next().unwrap_or("");
        [qualified(&instance.path, &port), qualified(&instance.plain, plain)]
    }

    fn federation(
        &self,
        main: ClassId,
        graph: &Graph,
        positions: &[usize],
        outside: &mut Outside<'_>,
        details: &mut Details,
        sink: &mut Sink,
    ) -> Option<Federation> {
        let mut federation = Federation {
            name: self.units.name(main),
            coordination: self.coordination(),
            federates: self.federates(details, sink),
            reactions: reactions_in_order(graph, positions),
            connections: Vec::new(),
        };
        if federation.federates.is_empty() {
            let at = self.units.reactor(main).at;
            let message = "the federated reactor has no federates".to_owned();
            let none = Diagnostic::error(codes::MAIN, message, at, "this reactor");
            sink.push(none.help("write an instance for each federate"));
            return None;
        }
        self.connections(graph, positions, details, &mut federation, sink);
        details.sidecar.check_pairs(&details.ports, sink);
        self.sizes(graph, outside, details, &mut federation);
        let edges = graph.connections.keys().map(|edge| &self.wiring.edges[*edge]);
        let delays: Vec<_> = edges.map(|edge| (edge.delay, edge.is_physical)).collect();
        let owners = wiring::federates(self.tree);
        details.inputs = table::inputs(self.tree, self.wiring, &owners, graph.connections.keys());
        details.rates = rates::rates(&graph.drafts, &graph.writers, &delays);
        details.drafts = graph.drafts.iter().map(|d| (d.path.clone(), d.origin)).collect();
        for instance in &self.tree.list {
            let Some(class) = self.classes.list.get(&instance.class) else { continue };
            for action in &class.actions {
                let name = qualified(&instance.path, &action.name.value);
                details.actions.insert(name, action.name.at);
            }
        }
        channels::fill(&mut federation, details);
        Some(federation)
    }

    fn federates(&self, details: &mut Details, sink: &mut Sink) -> Vec<Federate> {
        let mut federates: Vec<Federate> = Vec::new();
        let Some(class) = self.classes.list.get(&self.tree.list[0].class) else { return federates };
        let mut seen: BTreeMap<String, Origin> = BTreeMap::new();
        for ((child, ..), members) in class.children.iter().zip(&self.tree.list[0].children) {
            let wait = annotations::max_wait(&child.attributes, "maxwait", sink);
            for member in members {
                let instance = &self.tree.list[*member];
                let at = child.name.at;
                if let Some(first) = seen.insert(instance.path.clone(), at) {
                    let message = format!("two federates are called `{}`", instance.path);
                    let twice = Diagnostic::error(codes::DUPLICATE, message, at, "the second");
                    sink.push(twice.related(first, "the first").help("rename one of them"));
                }
                let given = details.sidecar.station(&instance.path, &instance.plain);
                let host = child.host.as_ref().and_then(|host| station(&host.value.name));
                let class = self.classes.list.get(&instance.class);
                let place = waits::of_federate(child, instance, class, self.given);
                details.waits.federates.push(place);
                federates.push(Federate {
                    name: instance.path.clone(),
                    station: given.map(|station| station.value.clone()).or(host),
                    maxwait: wait.or_else(|| waits::of_parameters(instance)),
                    origin: at,
                });
            }
        }
        federates
    }

    fn connections(
        &self,
        graph: &Graph,
        positions: &[usize],
        details: &mut Details,
        federation: &mut Federation,
        sink: &mut Sink,
    ) {
        let owners = wiring::federates(self.tree);
        let owner = |cell: usize| {
            let of = owners[self.tree.cells[cell].instance];
            FederateId(of.unwrap_or(0))
        };
        for (at, connection) in &graph.connections {
            let edge = &self.wiring.edges[*at];
            let attributes = edge.attributes();
            let mut writers: Vec<ReactionId> = graph.writers[connection.index()]
                .iter()
                .map(|draft| moved(positions, *draft))
                .collect();
            writers.sort_unstable();
            let mut wait = None;
            let mut place = None;
            for name in ["absent_after", "maxwait"] {
                wait = wait.or_else(|| annotations::max_wait(attributes, name, sink));
                place = place.or_else(|| waits::of_attribute(attributes, name));
            }
            if let (None, Some((time, at))) = (wait, graph.waits.get(connection)) {
                (wait, place) = (annotations::wait(*time), Some(*at));
            }
            details.waits.connections.push(place.filter(|_| wait.is_some()));
            let ports = [self.port_names(edge.from), self.port_names(edge.to)];
            let kind = self.kind(edge.from);
            federation.connections.push(Connection {
                name: String::new(),
                from: owner(edge.from),
                from_port: wiring::port_name(self.tree, self.classes, edge.from),
                to: owner(edge.to),
                to_port: wiring::port_name(self.tree, self.classes, edge.to),
                writers,
                after: edge.delay,
                physical: edge.is_physical,
                absent_after: wait,
                payload: kind.as_ref().map_or_else(|| "void".to_owned(), types::text),
                octets: None,
                interval: None,
                origin: edge.origin(),
            });
            details.ports.push(ports);
            details.notes.push(annotations::channel(attributes, sink));
        }
    }

    /// The type of a cell's port, with the instance's type arguments.
    fn kind(&self, cell: usize) -> Option<syntax::Type> {
        let of = self.tree.cells[cell];
        let instance = &self.tree.list[of.instance];
        let class = self.classes.list.get(&instance.class)?;
        let kind = class.ports[of.port].0.kind.as_ref()?;
        Some(instances::substitute(kind, &instance.types).value)
    }

    /// The sizes of all values; the compiler is asked once.
    fn sizes(
        &self,
        graph: &Graph,
        outside: &mut Outside<'_>,
        details: &mut Details,
        federation: &mut Federation,
    ) {
        let words = types::words(&details.target);
        let edges = graph.connections.keys().map(|edge| &self.wiring.edges[*edge]);
        let size = |edge: &wiring::Edge<'_>| match &edge.declared.serializer {
            // What a serializer makes of a value has no size of its own; this one copies it.
            Some(name) if name.value != "native" => Size::Variable,
            _ => types::size(self.kind(edge.from).as_ref(), words),
        };
        let mut sizes: Vec<Size> = edges.map(size).collect();
        let asked = sizes.iter().filter_map(|size| match size {
            Size::Ask(kind) => Some(kind.clone()),
            Size::Octets(_) | Size::Variable | Size::Unknown => None,
        });
        let types: Vec<String> = asked.collect::<BTreeSet<_>>().into_iter().collect();
        if !types.is_empty() {
            let question = SizeQuestion { types, preamble: self.preambles() };
            let found = (outside.sizes)(&question);
            let known: BTreeMap<String, Option<u32>> =
                question.types.into_iter().zip(found).collect();
            for size in &mut sizes {
                if let Size::Ask(kind) = size {
                    let octets = known.get(kind).copied().flatten();
                    *size = octets.map_or(Size::Unknown, Size::Octets);
                }
            }
        }
        for (connection, size) in federation.connections.iter_mut().zip(&sizes) {
            if let Size::Octets(octets) = size {
                connection.octets = Some(*octets);
            }
        }
        details.sizes = sizes;
    }

    /// The preambles of all files and reactors, each once.
    fn preambles(&self) -> String {
        let mut text = String::new();
        for unit in &self.units.list {
            let of_reactors = unit.tree.reactors.iter().flat_map(|reactor| &reactor.members);
            let of_reactors = of_reactors.filter_map(|member| match member {
                Member::Preamble(preamble) => Some(preamble),
                _ => None,
            });
            for preamble in unit.tree.preambles.iter().chain(of_reactors) {
                text.push_str(&preamble.code.value);
                text.push('\n');
            }
        }
        text
    }
}

/// A host's name as a station's; this machine is none in particular.
fn station(host: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0");
    (!is_here).then(|| host.chars().map(plain).collect())
}

fn moved(positions: &[usize], draft: usize) -> ReactionId {
    ReactionId(positions.get(draft).and_then(|at| u32::try_from(*at).ok()).unwrap_or(u32::MAX))
}

/// The reactions in their order, with causes that name them by it.
fn reactions_in_order(graph: &Graph, positions: &[usize]) -> Vec<Reaction> {
    let mut reactions: Vec<(usize, Reaction)> = Vec::new();
    for (draft, position) in graph.drafts.iter().zip(positions) {
        let name = draft.path.split_once('.').map_or(draft.path.as_str(), |(_, name)| name);
        let mut causes: Vec<Trigger> = Vec::new();
        for why in &draft.causes {
            let cause = match &why.cause {
                Trigger::Reaction { from, delay, physical } => {
                    let (delay, physical) = (*delay, *physical);
                    Trigger::Reaction { from: moved(positions, from.index()), delay, physical }
                }
                other => other.clone(),
            };
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let reaction = Reaction {
            federate: draft.federate,
            name: name.to_owned(),
            execution: draft.execution,
            deadline: draft.deadline,
            causes,
            origin: draft.origin,
        };
        reactions.push((*position, reaction));
    }
    reactions.sort_by_key(|(position, _)| *position);
    reactions.into_iter().map(|(_, reaction)| reaction).collect()
}

/// The JSON Schema of sidecars, for editors. Ends with a line feed.
pub fn sidecar_schema() -> String {
    schema_of::<sidecar::File>()
}
