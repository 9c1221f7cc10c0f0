//! What a program of C files does in time, without compiling it.

use super::Driver;
use super::arguments::Wanted;
use super::freertos::Recipe;
use super::places::Places;
use super::unit::Stop;
use crate::run::interrupt;
use anyhow::bail;
use onbeat_model::diagnostic::{Diagnostic, Severity, SourceFile};
use onbeat_program::graph::{Linked, link};
use onbeat_program::timedc::Target;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What was found out of a program's sources.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its graph; empty if something is wrong.
    pub(crate) linked: Linked,
    /// The files that were read.
    pub(crate) files: Vec<SourceFile>,
    /// Errors of Timed C, and why the program cannot be followed, at places of these files.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads the C files of a program, named relative to a directory, as `onbeat cc` would with these
/// further arguments.
pub(crate) fn graph(
    files: &[String],
    flags: &[String],
    directory: &Path,
    program: &str,
) -> anyhow::Result<Found> {
    let places = Places::find()?;
    let stop = interrupt()?;
    found(files, flags, directory, program, places, stop)
}

fn found(
    files: &[String],
    flags: &[String],
    directory: &Path,
    program: &str,
    places: Places,
    interrupted: Arc<AtomicBool>,
) -> anyhow::Result<Found> {
    let words: Vec<OsString> = files.iter().chain(flags).map(OsString::from).collect();
    let mut wanted = Wanted::parse(&words)?;
    wanted.dependencies.clear();
    let recipe = match wanted.options.target {
        Target::FreeRtos => Recipe::read(places.freertos()?)?,
        Target::Posix => Recipe::default(),
    };
    let directory_for_nothing = tempfile::Builder::new().prefix("onbeat-graph-").tempdir()?;
    let driver = Driver {
        wanted,
        places,
        base: directory.to_owned(),
        recipe,
        directory: directory_for_nothing,
        interrupted,
    };
    let mut read = Vec::new();
    for (number, path) in driver.wanted.sources().into_iter().enumerate() {
        match driver.read(path, number) {
            Ok(unit) => read.push(unit),
            Err(Stop::Compiler) => bail!("{} cannot be read", path.display()),
            Err(Stop::Other(error)) => return Err(error),
        }
    }
    let (files, mut diagnostics) = Driver::joined(&read);
    diagnostics.retain(|found| found.severity == Severity::Error);
    if !diagnostics.is_empty() {
        return Ok(Found { linked: Linked::default(), files, diagnostics });
    }
    let units: Vec<_> = read.into_iter().map(|unit| unit.graph).collect();
    let linked = link(&units, program);
    diagnostics.clone_from(&linked.diagnostics);
    Ok(Found { linked, files, diagnostics })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::graph::{Graph, Node, What};
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// A conformance case: its further files and flags, and what its trace has of places: task,
    /// event, place.
    fn stated(text: &str) -> (Vec<String>, Vec<String>, BTreeSet<[String; 3]>) {
        let (mut files, mut flags, mut events) = (Vec::new(), Vec::new(), BTreeSet::new());
        for line in text.lines() {
            let Some((key, value)) = line.strip_prefix(" * ").and_then(|l| l.split_once(':'))
            else {
                continue;
            };
            let words = || value.split_whitespace().map(str::to_owned);
            match key {
                "files" => files.extend(words()),
                "cc" => flags.extend(words()),
                "trace" => {
                    let task = words().nth(1).expect("a task");
                    let all = value.split_once(&format!(" {task} ")).expect("events").1;
                    for event in all.split(',') {
                        let mut words = event.rsplit('*').next().unwrap_or("").split_whitespace();
                        let mut word = || words.next().unwrap_or("").to_owned();
                        let (event, place) = (word(), word());
                        events.insert([task.clone(), event, place]);
                    }
                }
                _ => {}
            }
        }
        (files, flags, events)
    }

    /// A label's line: `@p+2`, `@p.2`; of another file left out.
    fn line(text: &str, label: &str) -> Option<String> {
        let label = label.strip_prefix('@')?;
        let end = label.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(label.len());
        let (name, rest) = label.split_at(end);
        let is_it = |l: &str| {
            let after = l.split_once(&format!("@{name}")).map(|(_, after)| after);
            let is_end = |a: &str| !a.starts_with(|c: char| c.is_ascii_lowercase());
            after.is_some_and(is_end) && !l.starts_with(" * ")
        };
        let at = 1 + text.lines().position(is_it)?;
        match rest.strip_prefix('+') {
            Some(more) => {
                let end = more.find(|c: char| !c.is_ascii_digit()).unwrap_or(more.len());
                let (more, rest) = more.split_at(end);
                Some(format!("{}{rest}", at + more.parse::<usize>().expect("a number")))
            }
            None => Some(format!("{at}{rest}")),
        }
    }

    /// Whether the graph has a node for an event.
    fn has(graph: &Graph, text: &str, [task, event, place]: &[String; 3]) -> bool {
        let is_it = |node: &Node| match (event.as_str(), &node.what) {
            ("start", What::Start) | ("end", What::End) => true,
            ("write" | "full", What::Write { channel, .. })
            | ("read", What::Read { channel, .. }) => {
                let name = &graph.channels[*channel].name;
                name == place || name.strip_prefix("case.") == Some(place)
            }
            ("arrive" | "abort" | "late" | "release" | "skip", What::Point { .. }) => {
                line(text, place).is_none_or(|line| line == node.place)
            }
            _ => false,
        };
        let is_task = |t: &&onbeat_model::graph::Task| t.name.split('#').next() == Some(task);
        graph.tasks.iter().filter(is_task).any(|t| t.nodes.iter().any(is_it))
    }

    /// Programs that cannot be followed.
    const LOST: &[&str] = &[
        "fifo_init_empties",
        "fifo_of_1024",
        "firm_aborts_nested_user_functions",
        "firm_tasks_abort_only_themselves",
        "pointers_to_functions",
        "recursion",
    ];

    #[test]
    fn whatever_conformance_programs_do_has_a_node() {
        let mut cases: Vec<PathBuf> = Vec::new();
        for kind in ["accepted", "warned"] {
            let directory = root().join("conformance/timedc").join(kind);
            let entries = directory.read_dir().expect("cases");
            cases.extend(entries.map(|e| e.expect("an entry").path()));
        }
        cases.retain(|path| path.extension().is_some_and(|e| e == "c"));
        cases.sort();
        assert!(cases.len() > 100);
        let (mut wrong, mut lost) = (Vec::new(), Vec::new());
        for path in cases {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            let (mut files, flags, events) = stated(&text);
            files.insert(0, format!("{name}.c"));
            let directory = path.parent().expect("a directory");
            let stop = Arc::new(AtomicBool::new(false));
            let places = Places::tree(root().canonicalize().expect("a tree"));
            let made = found(&files, &flags, directory, "case", places, stop).expect("readable");
            if !made.diagnostics.is_empty() {
                lost.push(name);
                continue;
            }
            // An lvchannel is a shared variable.
            let is_latest = |place: &str| {
                let is_in = |word: &str| made.files.iter().any(|f| f.text.contains(word));
                is_in(&format!("lvchannel({place}")) || is_in(&format!("lvchannel {place}"))
            };
            let graph = &made.linked.graph;
            let is_missing = |e: &&[String; 3]| !is_latest(&e[2]) && !has(graph, &text, e);
            for event in events.iter().filter(is_missing) {
                wrong.push(format!("{name}: no node of {event:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(lost, LOST);
    }
}
