//! A task model: what programs do, for those who only model, read and checked into a
//! [`Graph`]. `docs/tasks.md` has the format.
//!
//! Everything that is wrong is reported at once, in two steps: what each table and step says
//! (`parse`, `channels`, `steps`), and, when that is right, where control goes (`flow`, `guard`)
//! and what is at the ends of the channels (`ends`).

mod channels;
mod endpoints;
mod flow;
mod guard;
pub mod limits;
mod parse;
mod raw;
mod steps;

use crate::codes as shared;
use crate::fields::{Fields, US};
use crate::names::{Alphabet, Names, check_name};
use crate::{At, Sink, origin, schema_of};
use onbeat_model::codes::tasks as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{Graph, NodeKind, Policy, Task, TaskNode};
use onbeat_model::time::Span;
use onbeat_model::timing;

/// What documents the format.
const DOCUMENT: &str = "docs/tasks.md";

/// A task model that was read and found right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskModel {
    /// What the tasks are called together.
    pub name: String,
    /// The tasks, and what is between them.
    pub graph: Graph,
    /// What is asked of channels one after the other.
    pub chains: Vec<timing::Chain>,
}

/// Whether a text is a task model rather than a description, right or wrong: it has tasks, and
/// says of no run.
pub fn is_tasks(text: &str) -> bool {
    let has = |head: &str| text.lines().any(|line| line.trim_start().starts_with(head));
    has("[[task]]") && !has("[run]")
}

/// Reads a task model. `file` is what it is called. Places of diagnostics are in file 0.
///
/// # Errors
/// All that is wrong, in the order of the lines.
pub fn read(text: &str, file: &str) -> Result<TaskModel, Vec<Diagnostic>> {
    let mut sink = Sink::of(DOCUMENT);
    let found = check(text, file, None, &mut sink);
    finish(found, sink)
}

/// Reads the task model of a program in a description with the channels `described`: what the
/// program does that they are written and read by. It has no hosts and no chains; its channels
/// without a kind are the description's.
///
/// # Errors
/// All that is wrong, in the order of the lines.
pub fn read_program(
    text: &str,
    file: &str,
    described: &[&str],
) -> Result<TaskModel, Vec<Diagnostic>> {
    let mut sink = Sink::of(DOCUMENT);
    let found = check(text, file, Some(described), &mut sink);
    finish(found, sink)
}

fn finish(found: Option<TaskModel>, sink: Sink) -> Result<TaskModel, Vec<Diagnostic>> {
    let wrong = sink.into_sorted();
    match found {
        Some(file) if wrong.is_empty() => Ok(file),
        _ => Err(wrong),
    }
}

/// The JSON Schema of the format, for editors. Ends with a line feed.
pub fn schema() -> String {
    schema_of::<raw::File>()
}

/// A task whose steps are right, as far as each can be by itself.
struct Checked {
    task: Task,
    steps: Vec<steps::Step>,
    at: Origin,
}

fn check(text: &str, file: &str, described: Option<&[&str]>, sink: &mut Sink) -> Option<TaskModel> {
    if text.len() > limits::FILE_OCTETS {
        let message = format!("the task model has more than {} octets", limits::FILE_OCTETS);
        let help = "split the task model";
        let large = Diagnostic::error(shared::FILE_TOO_LARGE, message, origin(0, 0..0), "here");
        sink.push(large.help(help));
        return None;
    }
    let tables = parse::parse(text, sink)?;
    let name = name(&tables, sink);
    if described.is_some() {
        channels::only_in_descriptions(&tables, sink);
    }
    let (hosts, host_names) = channels::hosts(&tables.hosts, sink);
    let mut channels = channels::channels(&tables.channels, described, sink);
    let mut resources = Vec::new();
    let mut names = Names::new("task");
    for (id, table) in tables.tasks.iter().enumerate() {
        match &table.entry.raw.name {
            Some(name) => names.add(name, id, sink),
            None => names.incomplete(),
        }
    }
    let checked: Vec<Checked> = tables
        .tasks
        .iter()
        .map(|table| {
            let task = task(table, file, &hosts, &host_names, sink);
            let of = steps::Checker {
                channels: &channels.names,
                tasks: &names,
                resources: &mut resources,
                sink,
            };
            let steps = table.steps.as_ref().map(|list| { of }.steps(list)).unwrap_or_default();
            let at = table.entry.raw.name.as_ref().map_or(table.entry.at, |name| name.at);
            Checked { task, steps, at }
        })
        .collect();
    let chains = channels::chains(&tables.chains, &channels.names, sink);
    if !sink.is_empty() {
        return None;
    }
    let tasks = flows(checked, text, sink);
    endpoints::check(&hosts, &mut channels, &tasks, &chains, sink);
    let tasks = tasks.into_iter().map(|whole| whole.task).collect();
    let graph = Graph { hosts, channels: channels.list, resources, tasks, ..Graph::default() };
    let chains = chains.into_iter().map(|chain| chain.value).collect();
    Some(TaskModel { name, graph, chains })
}

fn name(tables: &parse::Tables, sink: &mut Sink) -> String {
    let mut fields = Fields::new(&tables.head, "task model", &None, sink);
    fields.need("format", &tables.head.raw.format);
    let name = fields.need("name", &tables.head.raw.name);
    if tables.tasks.is_empty() {
        let help = "add [[task]] with `name` and `steps`";
        let text = "there is no [[task]] table";
        fields.error(shared::MISSING_KEY, text, origin(0, 0..0), "here", help);
    }
    let Some(name) = name else { return String::new() };
    check_name(&name, "the file", Alphabet::Plain, limits::NAME_OCTETS, sink);
    name.value
}

/// What a task's table says beside its steps.
fn task(
    table: &parse::Task,
    file: &str,
    hosts: &[onbeat_model::graph::Host],
    names: &Names<usize>,
    sink: &mut Sink,
) -> Task {
    let (entry, raw) = (&table.entry, &table.entry.raw);
    let mut fields = Fields::new(entry, "task", &raw.name, sink);
    let name = fields.need("name", &raw.name);
    if let Some(name) = &name {
        check_name(name, "a task", Alphabet::Plain, limits::NAME_OCTETS, fields.sink);
    }
    if table.steps.as_ref().is_none_or(|steps| steps.list.is_empty()) && !entry.is_broken("steps")
        || table.steps.as_ref().is_some_and(|steps| steps.list.is_empty())
    {
        let help = "add steps = [ … ]";
        fields.error(shared::MISSING_KEY, "it has no steps", entry.at, "this task", help);
    }
    let host = match &raw.host {
        Some(host) => names.find(shared::UNKNOWN_NODE, host, fields.sink),
        None if hosts.len() == 1 => Some(0),
        None => fields.need("host", &raw.host).and(None),
    };
    let priority = fields.int(shared::PRIORITY, ("priority", &raw.priority), 1..=99);
    let host = host.unwrap_or(0);
    let most =
        hosts.get(host).and_then(|host| host.cores).map_or(limits::CORE, |n| i64::from(n) - 1);
    let cores = raw.cores.iter().flat_map(|cores| &cores.value);
    let cores: Vec<u16> = cores
        .filter_map(|core| fields.int(shared::OUT_OF_RANGE, ("cores", &Some(*core)), 0..=most))
        .map(|core| core as u16)
        .collect();
    let separation = ("separation_us", &raw.separation_us);
    let range = Span::from_us(1)..=limits::DURATION;
    let separation = fields.time(shared::OUT_OF_RANGE, separation, US, range);
    Task {
        name: name.map_or_else(String::new, |name| name.value),
        host,
        file: file.to_owned(),
        keeps_phase: raw.keep_phase.as_ref().is_some_and(|keeps| keeps.value),
        policy: raw.policy.map_or_else(Policy::default, |policy| policy.value),
        priority: priority.map(|priority| priority as u8),
        cores,
        separation,
        ..Task::default()
    }
}

/// A task and where each of its nodes stands.
struct Whole {
    task: Task,
    origins: Vec<Origin>,
}

impl Whole {
    /// Its nodes and where they stand.
    fn nodes(&self) -> impl Iterator<Item = (&TaskNode, Origin)> {
        self.task.nodes.iter().zip(self.origins.iter().copied())
    }
}

/// The tasks with their control flows, each started once.
fn flows(checked: Vec<Checked>, text: &str, sink: &mut Sink) -> Vec<Whole> {
    let lines = flow::Lines::new(text);
    let places: Vec<At<String>> =
        checked.iter().map(|c| At { value: c.task.name.clone(), at: c.at }).collect();
    let mut all = Vec::with_capacity(checked.len());
    for Checked { mut task, steps, at } in checked {
        let mut flow = flow::Builder::new(&lines, sink).build(&steps, at);
        guard::guard(&mut flow, sink);
        (task.nodes, task.registers) = (flow.nodes, flow.registers);
        all.push(Whole { task, origins: flow.origins });
    }
    let is_first = starts(&all, &places, sink);
    for (whole, is_first) in all.iter_mut().zip(is_first) {
        whole.task.is_first = is_first;
    }
    all
}

/// Which tasks begin when the program does: those that no other starts. Each begins once.
fn starts(all: &[Whole], places: &[At<String>], sink: &mut Sink) -> Vec<bool> {
    let mut starter: Vec<Option<(usize, Origin)>> = vec![None; all.len()];
    for (by, whole) in all.iter().enumerate() {
        for (at, (node, origin)) in whole.nodes().enumerate() {
            let NodeKind::Run { task } = node.kind else { continue };
            let name = &places[task].value;
            if let Some((_, first)) = starter[task].replace((by, origin)) {
                let message = format!("task `{name}` is started twice");
                let twice = Diagnostic::error(codes::START, message, origin, "the second time")
                    .help("write two tasks with different names")
                    .related(first, "the first time");
                sink.push(twice);
            } else if endpoints::is_on_cycle(&whole.task.nodes, at) {
                let message = format!("task `{name}` is started in a loop");
                let again = Diagnostic::error(codes::START, message, origin, "in this loop");
                sink.push(again.help("start it before the loop, and let it wait for messages"));
            }
        }
    }
    // Whoever is started by a task that never begins never begins.
    for (task, place) in places.iter().enumerate() {
        let mut at = task;
        let way = (0..all.len()).find(|_| match starter[at] {
            Some((by, _)) => {
                at = by;
                at == task
            }
            None => true,
        });
        if starter[task].is_some() && (way.is_none() || at == task) {
            let message = format!("task `{}` never begins", place.value);
            let never = Diagnostic::error(codes::START, message, place.at, "this task");
            sink.push(
                never.help(
                    "start it from a task that begins by itself, or remove the `start` steps",
                ),
            );
        }
    }
    starter.iter().map(Option::is_none).collect()
}
