//! What a program of C files does in time, without compiling it.

use super::arguments::Wanted;
use super::freertos::Recipe;
use super::places::Places;
use super::unit::Stop;
use super::{Driver, foreign};
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
    /// Errors of Timed C, why the program cannot be followed, and what of it is not known for
    /// certain, at places of these files.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Whether it can be followed.
    pub(crate) is_followed: bool,
}

/// Reads the C files of a program, named relative to a directory, as `onbeat cc` would with these
/// further arguments. What could execute or write something is only done for whom the user trusts.
pub(crate) fn graph(
    files: &[String],
    flags: &[String],
    directory: &Path,
    program: &str,
    is_trusted: bool,
) -> anyhow::Result<Found> {
    if let Some(word) = foreign::refused(files, flags, directory).filter(|_| !is_trusted) {
        bail!("`{word}` is not passed to the compiler for a description that is not trusted");
    }
    let places = Places::find()?;
    let stop = interrupt()?;
    found([files, flags], (directory, is_trusted), program, places, stop)
}

fn found(
    [files, flags]: [&[String]; 2],
    (directory, is_trusted): (&Path, bool),
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
        is_trusted,
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
        let linked = Linked::default();
        return Ok(Found { linked, files, diagnostics, is_followed: false });
    }
    driver.check_deployment(&read)?;
    let units: Vec<_> = read.into_iter().map(|unit| unit.graph).collect();
    let linked = link(&units, program);
    diagnostics.clone_from(&linked.diagnostics);
    let is_followed = diagnostics.is_empty();
    diagnostics.extend(linked.warnings.iter().cloned());
    Ok(Found { linked, files, diagnostics, is_followed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::graph::{Graph, NodeKind, Task, TaskNode};
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// What a task does: at an instant, an event, a place.
    type Event = (i64, String, String);

    /// A conformance case: its further files and flags, and its trace by task.
    #[derive(Default)]
    struct Case {
        files: Vec<String>,
        flags: Vec<String>,
        events: BTreeMap<String, Vec<Event>>,
    }

    fn nanoseconds(text: &str) -> i64 {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let scale = match &text[end..] {
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" => 1_000,
            _ => 1,
        };
        text[..end].parse::<i64>().expect("a number") * scale
    }

    /// `10ms`, or `10ms..50ms/10ms`.
    fn instants(text: &str) -> Vec<i64> {
        let Some((first, rest)) = text.split_once("..") else { return vec![nanoseconds(text)] };
        let (last, step) = rest.split_once('/').expect("a step");
        let (last, step) = (nanoseconds(last), nanoseconds(step));
        (nanoseconds(first)..=last).step_by(step as usize).collect()
    }

    fn stated(text: &str) -> Case {
        let mut case = Case::default();
        for line in text.lines() {
            let Some((key, value)) = line.strip_prefix(" * ").and_then(|l| l.split_once(':'))
            else {
                continue;
            };
            let words = || value.split_whitespace().map(str::to_owned);
            match key {
                "files" => case.files.extend(words()),
                "cc" => case.flags.extend(words()),
                "trace" => {
                    let [at, task] = [0, 1].map(|n| words().nth(n).expect("an instant and a task"));
                    let all = value.split_once(&format!(" {task} ")).expect("events").1;
                    let events = case.events.entry(task).or_default();
                    for at in instants(&at) {
                        for event in all.split(',') {
                            let (count, event) = event.split_once('*').unwrap_or(("1", event));
                            let mut words = event.split_whitespace();
                            let mut word = || words.next().unwrap_or("").to_owned();
                            let event = (at, word(), word());
                            let count = count.trim().parse().expect("a number");
                            events.extend(std::iter::repeat_n(event, count));
                        }
                    }
                }
                _ => {}
            }
        }
        case.events.values_mut().for_each(|events| events.sort_by_key(|(at, ..)| *at));
        case
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

    /// Where a task may be, and what its registers have.
    type State = (usize, Vec<Option<i64>>);

    /// Where a task may be next, and whether it passes the node without an event.
    fn onwards(task: &Task, (at, registers): &State, open: &mut Vec<State>) {
        let node = &task.nodes[*at];
        let mut after = registers.clone();
        match &node.kind {
            NodeKind::Set { register, value } => {
                after[usize::from(*register)] = value.value(registers)
            }
            NodeKind::Branch(condition) => {
                if let Some(value) = condition.value(registers) {
                    open.push((node.next[usize::from(value == 0)], after));
                    return;
                }
            }
            _ => {}
        }
        open.extend(node.next.iter().map(|next| (*next, after.clone())));
    }

    /// All states that are come to without an event, and those after an abort.
    fn closure(task: &Task, mut open: Vec<State>) -> BTreeSet<State> {
        let mut seen = BTreeSet::new();
        while let Some(state) = open.pop() {
            assert!(seen.len() < 10_000, "{} does not come to an event", task.name);
            if !seen.insert(state.clone()) {
                continue;
            }
            let node = &task.nodes[state.0];
            open.extend(node.guard.map(|point| (point, state.1.clone())));
            let is_event = matches!(
                node.kind,
                NodeKind::Point { .. }
                    | NodeKind::Write { .. }
                    | NodeKind::Read { .. }
                    | NodeKind::End
            );
            if !is_event {
                onwards(task, &state, &mut open);
            }
        }
        seen
    }

    /// Walks through a task's graph as its trace states; the event for which there is no way.
    fn walk<'e>(graph: &Graph, task: &Task, text: &str, events: &'e [Event]) -> Option<&'e Event> {
        let mut now = closure(task, vec![(0, vec![None; usize::from(task.registers)])]);
        for event in events {
            let (_, what, place) = event;
            let is_channel = |channel: usize| {
                let name = &graph.channels[channel].name;
                name == place || name.strip_prefix("case.") == Some(place)
            };
            let is_place =
                |node: &TaskNode| line(text, place).is_none_or(|line| line == node.place);
            let mut open = Vec::new();
            for state in &now {
                let node = &task.nodes[state.0];
                match (what.as_str(), &node.kind) {
                    ("start" | "late", _) => open.push(state.clone()),
                    ("end", NodeKind::End) => open.push(state.clone()),
                    ("write" | "full", NodeKind::Write { channel, .. })
                    | ("read", NodeKind::Read { channel, .. })
                        if is_channel(*channel) =>
                    {
                        onwards(task, state, &mut open);
                    }
                    ("arrive" | "abort", NodeKind::Point { .. })
                    | ("reach", NodeKind::Write { .. } | NodeKind::Read { .. })
                        if is_place(node) =>
                    {
                        open.push(state.clone());
                    }
                    ("release" | "skip", NodeKind::Point { .. }) if is_place(node) => {
                        onwards(task, state, &mut open);
                    }
                    _ => {}
                }
            }
            if open.is_empty() {
                return Some(event);
            }
            now = closure(task, open);
        }
        None
    }

    /// Programs that cannot be followed.
    const LOST: &[&str] = &[
        "fifo_init_empties",
        "fifo_of_1024",
        "firm_aborts_nested_user_functions",
        "firm_tasks_abort_only_themselves",
        "gnu_c",
        "origin_of_a_function",
        "pointers_to_functions",
        "recursion",
    ];

    #[test]
    fn whatever_conformance_programs_do_is_a_way_through_their_graphs() {
        let mut cases: Vec<PathBuf> = Vec::new();
        for kind in ["accepted", "warned"] {
            let directory = root().join("conformance/timedc").join(kind);
            let entries = directory.read_dir().expect("cases");
            cases.extend(entries.map(|e| e.expect("an entry").path()));
        }
        cases.retain(|path| path.extension().is_some_and(|e| e == "c"));
        cases.sort();
        assert!(cases.len() > 100);
        let (mut wrong, mut lost, mut walked) = (Vec::new(), Vec::new(), 0);
        for path in cases {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            let mut case = stated(&text);
            case.files.insert(0, format!("{name}.c"));
            let directory = path.parent().expect("a directory");
            let stop = Arc::new(AtomicBool::new(false));
            let places = Places::tree(root().canonicalize().expect("a tree"));
            let made = found([&case.files, &case.flags], (directory, true), "case", places, stop);
            let made = made.expect("readable");
            if !made.is_followed {
                lost.push(name);
                continue;
            }
            // An lvchannel is a shared variable.
            let is_latest = |(_, _, place): &Event| {
                let is_in = |word: &str| made.files.iter().any(|f| f.text.contains(word));
                is_in(&format!("lvchannel({place}")) || is_in(&format!("lvchannel {place}"))
            };
            let graph = &made.linked.graph;
            for (task, events) in &mut case.events {
                events.retain(|event| !is_latest(event));
                // Of what is started more than once the trace does not say which does what.
                if graph.tasks.iter().any(|t| t.name == format!("{task}#2")) {
                    continue;
                }
                let known = graph.tasks.iter().find(|t| t.name == *task);
                let known = known.unwrap_or_else(|| panic!("{name}: no task {task}"));
                walked += 1;
                if let Some(event) = walk(graph, known, &text, events) {
                    wrong.push(format!("{name}: {task} has no way to {event:?}"));
                }
            }
        }
        assert!(walked > 200, "{walked}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(lost, LOST);
    }
}
