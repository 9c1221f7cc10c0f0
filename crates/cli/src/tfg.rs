//! The verb `tfg`: what the time-flow graph of programs says of their timing.

use crate::arguments::TfgArguments;
use crate::build;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::write_files;
use crate::source::{self, Source};
use crate::terminal;
use crate::trust::Trust;
use anyhow::bail;
use onbeat_description::tasks;
use onbeat_model::codes::run as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::system::{Node, NodeKind, System};
use onbeat_model::timing::{Composability, Kept, TimingReport};
use onbeat_report::timing;
use onbeat_timing::tfg::{self, Limits};
use std::collections::BTreeMap;
use std::path::Path;

/// Makes the graph, computes its times and shows them.
pub(crate) fn tfg(arguments: &TfgArguments) -> anyhow::Result<Exit> {
    let subjects = &arguments.subject;
    let is_one = subjects.len() == 1 || subjects.iter().all(|file| is_source(file));
    if arguments.compose || !is_one {
        return compose(arguments);
    }
    run(&study_of(arguments)?.0, arguments)
}

/// Whether a file is C.
fn is_source(file: &Path) -> bool {
    build::are_sources(&[file.to_owned()])
}

/// Whether systems have the same times together as alone.
fn compose(arguments: &TfgArguments) -> anyhow::Result<Exit> {
    if arguments.html.is_some() || arguments.svg.is_some() || arguments.dot.is_some() {
        let text = "a graph is drawn of one system: leave out --html, --svg and --dot";
        bail!(WrongArgument(text.to_owned()))
    }
    let mut systems = Vec::new();
    let mut networks: Vec<(String, System)> = Vec::new();
    for subject in &arguments.subject {
        let one = TfgArguments { subject: vec![subject.clone()], ..arguments.clone() };
        let (study, network) = study_of(&one)?;
        let name = subject.display().to_string();
        networks.extend(network.map(|network| (name.clone(), network)));
        systems.push((name, study.graph));
    }
    let shared = shared_nodes(&networks)?;
    let composition = match tfg::compose(systems, &shared, limits(arguments)) {
        Ok(composition) => composition,
        Err(conflicts) => {
            let text = format!("described differently: {}", conflicts.join(", "));
            bail!(WrongArgument(text))
        }
    };
    if arguments.json {
        terminal::print_json(&timing::composition_json(&composition))?;
    } else {
        terminal::print(timing::composed(&composition));
    }
    Ok(match composition.kept() {
        Kept::Kept => Exit::Fine,
        Kept::Broken => Exit::Broken,
        Kept::NothingPromised | Kept::Unproven => Exit::Unproven,
    })
}

/// The nodes that several networks have in common. A host has one link: where two networks link
/// hosts of one name differently, these are two hosts.
fn shared_nodes(networks: &[(String, System)]) -> anyhow::Result<Vec<String>> {
    let mut nodes: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for (name, system) in networks {
        for node in &system.nodes {
            nodes.entry(&node.name).or_default().push((name, linked(system, node)));
        }
    }
    nodes.retain(|_, there| there.len() > 1);
    let collisions = nodes.iter().filter_map(|(node, there)| {
        let (first, link) = &there[0];
        let (other, otherwise) = there.iter().find(|(_, other)| other != link)?;
        Some(format!("node `{node}` is {link} in {first}, and {otherwise} in {other}"))
    });
    let collisions: Vec<String> = collisions.collect();
    if !collisions.is_empty() {
        let help = "nodes of one name are one node: rename those that are not";
        bail!(WrongArgument(format!("described differently: {}; {help}", collisions.join(", "))))
    }
    Ok(nodes.into_keys().map(str::to_owned).collect())
}

/// Where a host is linked; bridges of different networks may be parts of one.
fn linked(system: &System, node: &Node) -> String {
    match (&node.kind, node.ports.first()) {
        (NodeKind::Host(_), Some(port)) => {
            let peer = system.port(system.port(*port).peer).node;
            let (peer, link) = (&system.node(peer).name, system.link_of(*port));
            format!("a host linked to `{peer}` ({}, {})", link.rate, link.propagation)
        }
        (NodeKind::Host(_), None) => "a host without a link".to_owned(),
        (NodeKind::Bridge(_), _) => "a bridge".to_owned(),
    }
}

fn limits(arguments: &TfgArguments) -> Limits {
    Limits { rounds: arguments.iterations, until: arguments.until, ..Limits::default() }
}

/// Writes what is asked for and shows the rest.
fn run(study: &TimingReport, arguments: &TfgArguments) -> anyhow::Result<Exit> {
    let level = arguments.level.into();
    let is_printed = arguments.dot.as_deref() == Some(Path::new("-"));
    let mut files = Vec::new();
    if let Some(path) = &arguments.html {
        files.push((path.as_path(), timing::html(study)));
    }
    if let Some(path) = &arguments.svg {
        files.push((path.as_path(), timing::svg(study, level)));
    }
    if let Some(path) = arguments.dot.as_deref().filter(|_| !is_printed) {
        files.push((path, timing::dot(study)));
    }
    write_files(&files)?;
    if arguments.json {
        terminal::print_json(&timing::document(study))?;
    } else if is_printed {
        terminal::print(timing::dot(study).trim_end());
    } else {
        terminal::print(timing::table(study, level, arguments.iterations));
    }
    Ok(match study.program.verdict() {
        Composability::Composable | Composability::NotComposable => Exit::Fine,
        Composability::Unproven { .. } => Exit::Unproven,
    })
}

/// The study of what is asked for: a description, a task model, or the C files of a program;
/// and the system whose network was planned for it, if it has one.
fn study_of(arguments: &TfgArguments) -> anyhow::Result<(TimingReport, Option<System>)> {
    let limits = limits(arguments);
    let source = match &arguments.subject[..] {
        files if build::are_sources(files) => {
            let system = build::system_of(files, arguments.origin, &arguments.bind)?;
            Source::without_description(system, arguments.json)
        }
        _ if arguments.origin.is_some() => bail!(WrongArgument(build::ORIGIN.to_owned())),
        _ if !arguments.bind.is_empty() => bail!(WrongArgument(build::BIND.to_owned())),
        [subject] => match file_of_tasks(subject, arguments.json)? {
            Some(tasks) => {
                let study = tfg::analyse(&tasks.name, tasks.graph, tasks.chains, limits, None);
                return Ok((study, None));
            }
            None => Source::load(subject, arguments.json, Trust::by(arguments.trust))?,
        },
        _ => {
            let text = "give one description, one task model, or C files";
            bail!(WrongArgument(text.to_owned()))
        }
    };
    let protected = source.system.run.protected && !arguments.unprotected;
    let source = source.only_planned();
    let (_, study) = source.plan_and_study(&source.system, protected, limits)?;
    source.show_programs()?;
    match study {
        Some(study) => {
            let has_network = !source.system.channels.is_empty();
            Ok((study, has_network.then_some(source.system)))
        }
        None => {
            let text = format!("{}: nothing is known of what its programs do", source.system.name);
            let nowhere = Diagnostic::error(codes::NOT_ANALYSED, text, Origin::default(), "");
            let nowhere = Diagnostic { at: None, ..nowhere };
            Err(source.wrong(&[nowhere.help("give programs `source` or `tasks`")]).into())
        }
    }
}

/// A task model, if it is one: it has tasks, and no run.
fn file_of_tasks(path: &Path, json: bool) -> anyhow::Result<Option<tasks::TaskModel>> {
    if path.is_dir() {
        return Ok(None);
    }
    let text = source::read(path).map_err(anyhow::Error::msg)?;
    if !tasks::is_tasks(&text) {
        return Ok(None);
    }
    let shown = path.display().to_string();
    match tasks::read(&text, &shown) {
        Ok(tasks) => Ok(Some(tasks)),
        Err(errors) => {
            let file = SourceFile { path: shown, text };
            Err(source::wrong(None, &[file], &errors, json).into())
        }
    }
}
