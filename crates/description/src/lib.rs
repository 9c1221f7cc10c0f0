//! The description: `system.toml` and what it names, read and checked into a [`System`].
//!
//! [`load`] reports everything that is wrong at once. It works in three steps: the text to tables
//! (`parse`, `raw`), with copies of those of groups (`group`); the manifest's entries merged in
//! (`channels`); the tables to a system (`nodes`, `topology`, `ports`, `channels`, `streams`,
//! `faults`, `programs`, `rest`). A key that is wrong is reported once and then left out; what
//! follows only from that is not reported.

mod alternatives;
mod at;
mod channels;
mod dedicated;
mod devices;
mod faults;
pub(crate) mod fields;
mod group;
pub mod import;
pub mod lf;
pub mod machines;
pub mod manifest;
pub(crate) mod names;
mod nodes;
pub(crate) mod parse;
mod paths;
mod ports;
mod programs;
mod raw;
mod references;
mod renamed;
pub(crate) mod rest;
mod sink;
mod source;
mod streams;
pub mod tasks;
mod tcp;
mod topology;
mod trace;
mod types;

pub use at::At;
pub(crate) use at::origin;
pub(crate) use names::shorten;
pub(crate) use onbeat_model::name::did_you_mean;
pub(crate) use sink::Sink;

use onbeat_model::codes::description as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, Severity, SourceFile};
use onbeat_model::limits;
use onbeat_model::system::System;
use std::collections::BTreeMap;

/// The version of the format that this release reads.
pub const FORMAT: i64 = 1;

/// What became of a description.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The system, if nothing is wrong; warnings do not count.
    pub system: Option<System>,
    /// What is wrong, in the order of the files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read: the description, then its manifest if it names one, then traces
    /// and execution times.
    pub sources: Vec<SourceFile>,
}

/// Reads and checks the description `text`, which came from `path`.
///
/// `read` fetches a file that the description names, by its path relative to the description's
/// directory, and says what went wrong if it cannot.
pub fn load(
    path: &str,
    text: &str,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Loaded {
    let mut sink = Sink::default();
    let mut sources = vec![SourceFile { path: path.to_owned(), text: text.to_owned() }];
    let mut system = check(text, read, &mut sources, &mut sink);
    if let Some(system) = system.as_mut().filter(|_| !sink.copies.is_empty()) {
        system.each_origin(&mut |origin| *origin = sink.copies.place(*origin).0);
    }
    let diagnostics = sink.into_sorted();
    let system = system.filter(|_| !has_error(&diagnostics));
    Loaded { system, diagnostics, sources }
}

/// The system as far as it could be made out; only to be used if the sink holds no error.
fn check(
    text: &str,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Vec<SourceFile>,
    sink: &mut Sink,
) -> Option<System> {
    if text.len() > limits::FILE_OCTETS {
        let message = format!("the description has more than {} octets", limits::FILE_OCTETS);
        let at = origin(0, 0..0);
        let help = "split the system";
        sink.push(Diagnostic::error(codes::FILE_TOO_LARGE, message, at, "here").help(help));
        return None;
    }
    let tables = parse::parse(text, sink)?;
    let manifest = &tables.head.raw.manifest;
    let manifest = manifest.as_ref().map(|path| read_manifest(path, read, sources, sink));
    let name = rest::system_name(&tables.head, sink);
    let routing = tables.head.raw.routing.as_ref().map(|it| it.value).unwrap_or_default();
    let idle_slopes = tables.head.raw.idle_slopes.as_ref().map(|it| it.value).unwrap_or_default();
    let mut nodes = nodes::check(&tables, sink);
    let (mut ports, links) = topology::check(&tables.links, &mut nodes, sink);
    let port_names = ports::PortNames::new(&nodes, &ports);
    ports::check(&tables.ports, &port_names, &nodes, &mut ports, &links, sink);
    dedicated::check(&nodes, &ports, &links, sink);
    let synchronisation = tables.synchronisation.as_ref();
    let synchronisation = synchronisation.and_then(|it| rest::synchronisation(it, &nodes, sink));
    let topology = paths::Topology { nodes: &nodes, ports: &ports };
    let mut types = types::Types::new(&mut *read);
    let channels = channels::check(&tables.channels, manifest, topology, &mut types, sink);
    let network = streams::Infrastructure { nodes: &nodes, ports: &ports, channels: &channels };
    let mut traces = trace::Traces::new(&mut *read, sources);
    let streams = streams::check(&tables.streams, &network, &mut traces, sink);
    let faults = faults::check(&tables.faults, &network, &port_names, &streams, sink);
    let mut files = programs::Files { read, sources };
    let described: Vec<&str> = channels.list.iter().map(|channel| channel.name.as_str()).collect();
    let known = programs::Known { nodes: &nodes, names: &described, channels: &channels };
    let programs = programs::check(&tables.programs, known, &mut files, sink);
    let noise = rest::noise(&tables.noise, &nodes, sink);
    let tcp = tcp::check(&tables.tcp, &nodes, &channels, sink);
    let chains = rest::chains(&tables.chains, &channels, sink);
    let alternatives = alternatives::check(&tables.alternatives, &channels, sink);
    let (run, scenarios) =
        rest::runs(tables.run.as_ref(), &tables.scenarios, (&nodes, &programs), sink);
    let subjects = references::Subjects {
        channels: &channels,
        tcp: &tcp.names,
        nodes: &nodes,
        scenarios: &scenarios,
    };
    let references = references::check(&tables.references, &subjects, sink);
    Some(System {
        name,
        nodes: nodes.list,
        ports,
        links,
        devices: nodes.devices,
        channels: channels.list,
        programs: programs.list,
        noise,
        tcp: tcp.list,
        routing,
        idle_slopes,
        synchronisation,
        streams: streams.list,
        faults,
        chains,
        alternatives,
        run,
        scenarios: scenarios.list,
        references,
    })
}

/// What a manifest holds.
struct Manifest {
    path: String,
    named_at: Origin,
    entries: Vec<crate::manifest::ManifestEntry>,
    /// Whether all of it could be read; if not, that has been reported.
    complete: bool,
    /// By channel, the struct that its messages are, and its octets.
    types: BTreeMap<String, (String, u32)>,
}

fn read_manifest(
    path: &At<String>,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Vec<SourceFile>,
    sink: &mut Sink,
) -> Manifest {
    let (entries, complete, types) = match read(&path.value) {
        Ok(text) => {
            let (entries, diagnostics) = crate::manifest::read(&text, 1);
            let types = crate::manifest::message_types(&text);
            sources.push(SourceFile { path: path.value.clone(), text });
            let complete = !has_error(&diagnostics);
            diagnostics.into_iter().for_each(|d| sink.push(d));
            (entries, complete, types)
        }
        Err(reason) => {
            let message = format!("the manifest {} cannot be read: {reason}", path.value);
            let help = "give a path relative to the directory of the description";
            let code = codes::MANIFEST_UNREADABLE;
            sink.push(Diagnostic::error(code, message, path.at, "named here").help(help));
            (Vec::new(), false, BTreeMap::new())
        }
    };
    Manifest { path: path.value.clone(), named_at: path.at, entries, complete, types }
}

fn has_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// The JSON Schema of the description, for editors. Ends with a line feed.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(raw::File);
    group::describe(&mut schema);
    renamed::describe(&mut schema);
    pretty(&schema)
}

pub(crate) fn schema_of<T: schemars::JsonSchema>() -> String {
    pretty(&schemars::schema_for!(T))
}

fn pretty(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
