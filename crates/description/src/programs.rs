//! Programs: commands, or C sources that a run compiles, their execution times and tasks.

use super::channels::Channels;
use super::fields::{Fields, NS, US, presence};
use super::names::{Alphabet, Names, check_name};
use super::nodes::Nodes;
use super::parse::Entry;
use super::{At, Sink, codes, limits, origin, raw, rest};
use crate::tasks;
use onbeat_model::binding::{Binding, Realisation, ValueType};
use onbeat_model::diagnostic::{Diagnostic, SourceFile};
use onbeat_model::execution_times::{self, InvalidRow};
use onbeat_model::graph::{Graph, Task};
use onbeat_model::system::{
    CpuBudget, NodeId, NodeKind, Program, ProgramSource, ProgramUser, ProgramVariation,
};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// What fetches files, and those that are shown when something is wrong in them.
pub(super) struct Files<'a> {
    pub(super) read: &'a mut dyn FnMut(&str) -> Result<String, String>,
    pub(super) sources: &'a mut Vec<SourceFile>,
}

/// What programs name.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) channels: &'a Channels,
    /// Names of channels.
    pub(super) names: &'a [&'a str],
}

/// All programs and their names.
pub(super) struct Programs {
    pub(super) list: Vec<Program>,
    names: Names<()>,
}

/// Checks all programs.
pub(super) fn check(
    entries: &[Entry<raw::Program>],
    known: Known<'_>,
    files: &mut Files<'_>,
    sink: &mut Sink,
) -> Programs {
    let mut names = Names::new("program");
    let list = entries.iter().filter_map(|entry| program(entry, known, &mut names, files, sink));
    Programs { list: list.collect(), names }
}

/// What a scenario says of programs.
pub(super) fn variations(
    fields: &mut Fields<'_, raw::Scenario>,
    nodes: &Nodes,
    programs: &Programs,
) -> Vec<ProgramVariation> {
    let (scenario, tables) = (fields.what.clone(), fields.entry.raw.program.as_ref());
    let mut seen = BTreeMap::new();
    let one = |entry: &At<raw::ScenarioProgram>| {
        let (raw, at) = (&entry.value, entry.at);
        let Some(name) = &raw.name else {
            let help = "add `name`, a program";
            fields.error(codes::MISSING_KEY, "a `program` without `name`", at, "here", help);
            return None;
        };
        programs.names.find(codes::UNKNOWN_PROGRAM, name, fields.sink)?;
        // One that has errors of its own is not there.
        let program = programs.list.iter().position(|program| program.name == name.value)?;
        if let Some(first) = seen.insert(program, name.at) {
            let message = format!("{scenario}: two tables of program `{}`", name.value);
            let twice = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the second");
            fields.sink.push(twice.help("keep one of them").related(first, "the first"));
        }
        fields.what = format!("{scenario}, program `{}`", name.value);
        let last = last_core(nodes, programs.list[program].host);
        let priority = priority(fields, &raw.priority);
        let cores = raw.cores.as_ref().map(|_| cores(fields, &raw.cores, last));
        let budget = [&raw.budget_us, &raw.budget_deadline_us, &raw.budget_period_us];
        let budget = self::budget(fields, budget);
        let policy = raw.policy.as_ref().map(|policy| policy.value);
        Some(ProgramVariation { program, policy, priority, cores, budget })
    };
    let found = tables.into_iter().flatten().filter_map(one).collect();
    fields.what = scenario;
    found
}

fn program(
    entry: &Entry<raw::Program>,
    known: Known<'_>,
    names: &mut Names<()>,
    files: &mut Files<'_>,
    sink: &mut Sink,
) -> Option<Program> {
    let raw = &entry.raw;
    let mut fields = Fields::new(entry, "program", &raw.name, sink);
    let name = rest::named(&mut fields, "program", &raw.name, names, ());
    let host = rest::host(&mut fields, "host", &raw.host, known.nodes);
    let code = code(&mut fields, files);
    let deployed = deployment(&mut fields, host, known.channels);
    let priority = priority(&mut fields, &raw.priority);
    let most = host.map_or(limits::CORE, |host| last_core(known.nodes, host));
    let cores = cores(&mut fields, &raw.cores, most);
    let budget = [&raw.budget_us, &raw.budget_deadline_us, &raw.budget_period_us];
    let budget = self::budget(&mut fields, budget);
    let work = ("work_max_ns", &raw.work_max_ns);
    let work = fields.time(codes::OUT_OF_RANGE, work, NS, Span::ZERO..=limits::DELAY);
    if let Some(path) = &raw.execution_times {
        check_execution_times(&mut fields, path, files);
    }
    let tasks = raw.tasks.as_ref();
    let tasks = tasks.and_then(|path| read_tasks(&mut fields, path, known.names, files));
    let beyond = |task: &&Task| task.cores.iter().any(|core| i64::from(*core) > most);
    let beyond = tasks.iter().flat_map(|graph| &graph.tasks).find(beyond);
    if let (Some(task), Some(path)) = (beyond, &raw.tasks) {
        let text = format!("task `{}` uses CPUs that its host does not have", task.name);
        let help = format!("use 0 to {most} in `cores`");
        fields.error(codes::OUT_OF_RANGE, &text, path.at, "in this file", &help);
    }
    let (command, mut source) = code?;
    if let Some(source) = &mut source {
        source.flags.extend(deployed?);
    }
    Some(Program {
        name,
        host: host?,
        command,
        source,
        execution_times: raw.execution_times.as_ref().map(|path| path.value.clone()),
        tasks,
        joins: raw.joins.as_ref().is_none_or(|joins| joins.value),
        user: raw
            .user
            .as_ref()
            .map(|user| ProgramUser { name: user.value.clone(), origin: user.at }),
        policy: raw.policy.as_ref().map(|policy| policy.value),
        priority,
        cores,
        budget,
        work_max: work.unwrap_or_default(),
        origin: raw.name.as_ref().map_or(entry.at, |n| n.at),
    })
}

/// Its real-time priority.
fn priority<R>(fields: &mut Fields<'_, R>, value: &Option<At<i64>>) -> Option<u8> {
    fields.int(codes::PRIORITY, ("priority", value), 1..=99).map(|priority| priority as u8)
}

/// The last CPU that programs of a host may use.
fn last_core(nodes: &Nodes, host: NodeId) -> i64 {
    match &nodes.list[host.index()].kind {
        NodeKind::Host(host) => host.cores.map_or(limits::CORE, |cores| i64::from(cores) - 1),
        NodeKind::Bridge(_) => limits::CORE,
    }
}

/// The CPUs that it may use.
fn cores<R>(fields: &mut Fields<'_, R>, value: &Option<At<Vec<At<i64>>>>, last: i64) -> Vec<u16> {
    let given = value.iter().flat_map(|cores| &cores.value);
    let one = |core: &At<i64>| fields.int(codes::OUT_OF_RANGE, ("cores", &Some(*core)), 0..=last);
    given.filter_map(one).map(|core| core as u16).collect()
}

/// How much of a processor it needs: `budget_us`, `budget_deadline_us` and `budget_period_us`.
fn budget<R>(
    fields: &mut Fields<'_, R>,
    [runtime, deadline, period]: [&Option<At<i64>>; 3],
) -> Option<CpuBudget> {
    if [runtime, deadline, period].iter().all(|key| key.is_none()) {
        return None;
    }
    let deadline = ("budget_deadline_us", deadline);
    fields.need("budget_us", runtime);
    fields.need("budget_period_us", period);
    let code = codes::OUT_OF_RANGE;
    let range = limits::BUDGET_PERIOD_MIN..=limits::BUDGET_PERIOD;
    let period = fields.time(code, ("budget_period_us", period), US, range);
    let range = Span::from_us(2)..=period.unwrap_or(limits::BUDGET_PERIOD);
    let deadline = fields.time(code, deadline, US, range).or(period);
    let range = Span::from_us(2)..=deadline.unwrap_or(limits::BUDGET_PERIOD);
    let runtime = fields.time(code, ("budget_us", runtime), US, range);
    Some(CpuBudget { runtime: runtime?, deadline: deadline?, period: period? })
}

/// What to execute, and what it is compiled from if it is to be compiled.
fn code(
    fields: &mut Fields<'_, raw::Program>,
    files: &mut Files<'_>,
) -> Option<(Vec<String>, Option<ProgramSource>)> {
    let raw = &fields.entry.raw;
    let (command, source) = (presence(&raw.command), presence(&raw.source));
    let (command, source) = (("command", &command), ("source", &source));
    fields.need_one(command, source);
    if fields.either(command, source)? == 1 {
        let (arguments, source) = self::source(fields, files)?;
        return Some((arguments, Some(source)));
    }
    let for_sources = [
        ("cflags", presence(&raw.cflags)),
        ("arguments", presence(&raw.arguments)),
        ("channels", presence(&raw.channels)),
        ("starts", presence(&raw.starts)),
    ];
    for (key, given) in for_sources {
        if let Some(given) = given {
            let text = format!("`{key}` is given without `source`");
            let help = "write arguments into `command`; the other keys are for sources";
            fields.error(codes::PROGRAM_SOURCE, &text, given.at, "this key", help);
        }
    }
    self::command(fields).map(|command| (command, None))
}

fn command(fields: &mut Fields<'_, raw::Program>) -> Option<Vec<String>> {
    let words = fields.entry.raw.command.clone()?;
    let first = words.value.first().map_or("", |w| w.value.as_str());
    if first.is_empty() || has_nul(&words.value) || words.value.len() > limits::LIST {
        let help = "name the file to execute first, as in [\"build/talker\"]";
        let text = "`command` names no program";
        fields.error(codes::EMPTY_COMMAND, text, words.at, "this command", help);
        return None;
    }
    Some(words.value.into_iter().map(|w| w.value).collect())
}

fn has_nul(words: &[At<String>]) -> bool {
    words.iter().any(|word| word.value.contains('\0'))
}

/// The sources, which must be there; before them the command with a place for what they become.
fn source(
    fields: &mut Fields<'_, raw::Program>,
    files: &mut Files<'_>,
) -> Option<(Vec<String>, ProgramSource)> {
    let raw = &fields.entry.raw;
    let list = raw.source.as_ref()?;
    let code = codes::PROGRAM_SOURCE;
    if list.value.is_empty() || list.value.len() > limits::LIST {
        let help = "name the program's C files, as in [\"talker.c\", \"main.c\"]";
        fields.error(code, "`source` names no files", list.at, "this list", help);
        return None;
    }
    let mut right = true;
    for file in &list.value {
        let problem = match file.value.ends_with(".c") {
            true => (files.read)(&file.value).err().map(|why| format!("cannot be read: {why}")),
            false => Some("is not a C file: its name does not end in .c".to_owned()),
        };
        if let Some(problem) = problem {
            let text = format!("the source {} {problem}", file.value);
            let help = "give a path relative to the directory of the description";
            fields.error(code, &text, file.at, "named here", help);
            right = false;
        }
    }
    for words in [&raw.cflags, &raw.arguments].into_iter().flatten() {
        if has_nul(&words.value) || words.value.len() > limits::LIST {
            let help = "remove zero octets, and use at most 10,000 words";
            fields.error(
                code,
                "the words cannot be passed to the compiler",
                words.at,
                "here",
                help,
            );
            right = false;
        }
    }
    let texts = |list: &Option<At<Vec<At<String>>>>| -> Vec<String> {
        list.iter().flat_map(|list| &list.value).map(|word| word.value.clone()).collect()
    };
    let command = std::iter::once(String::new()).chain(texts(&raw.arguments)).collect();
    right.then(|| (command, ProgramSource { files: texts(&raw.source), flags: texts(&raw.cflags) }))
}

/// What is said to the compiler of abstract channels and of the tasks that start.
fn deployment(
    fields: &mut Fields<'_, raw::Program>,
    host: Option<NodeId>,
    channels: &Channels,
) -> Option<Vec<String>> {
    let raw = &fields.entry.raw;
    let (mut flags, mut right) = (Vec::new(), true);
    let mut names: Names<()> = Names::new("abstract channel");
    for bound in raw.channels.iter().flat_map(|list| &list.value) {
        match binding(fields, bound, &mut names, host, channels) {
            Some(binding) => flags.push(format!("--bind={binding}")),
            None => right = false,
        }
    }
    for task in raw.starts.iter().flat_map(|list| &list.value) {
        let most = limits::NAME_OCTETS;
        right &= check_name(task, "a task", Alphabet::C, most, fields.sink);
    }
    if let Some(list) = &raw.starts {
        let names: Vec<&str> = list.value.iter().map(|task| task.value.as_str()).collect();
        flags.push(format!("--starts={}", names.join(",")));
    }
    right.then_some(flags)
}

/// What an abstract channel is.
fn binding(
    fields: &mut Fields<'_, raw::Program>,
    bound: &At<raw::Bound>,
    names: &mut Names<()>,
    host: Option<NodeId>,
    channels: &Channels,
) -> Option<Binding> {
    let At { value: raw, at } = bound;
    let is_one = raw.fifo.is_some() != raw.channel.is_some();
    let Some(name) = raw.name.as_ref().filter(|_| is_one) else {
        let text = "a binding needs `name`, and either `fifo` or `channel`";
        let help =
            "write { name = \"chan\", fifo = 1024 } or { name = \"chan\", channel = \"speed\" }";
        fields.error(codes::BINDING, text, *at, "this table", help);
        return None;
    };
    let most = limits::CHANNEL_NAME_OCTETS;
    if !check_name(name, "an abstract channel", Alphabet::C, most, fields.sink) {
        return None;
    }
    names.add(name, (), fields.sink);
    let value = raw.kind.as_ref().map_or(ValueType::Int, |kind| kind.value);
    let to = match &raw.channel {
        None => {
            let range = 1..=limits::FIFO_VALUES;
            let count = fields.int(codes::OUT_OF_RANGE, ("fifo", &raw.fifo), range)?;
            Realisation::Fifo(u32::try_from(count).ok()?)
        }
        Some(channel) => network(fields, channel, value, host, channels)?,
    };
    Some(Binding { name: name.value.clone(), to, value })
}

/// The network channel that an abstract one is: the host is an end of it, and values fit.
fn network(
    fields: &mut Fields<'_, raw::Program>,
    channel: &At<String>,
    value: ValueType,
    host: Option<NodeId>,
    channels: &Channels,
) -> Option<Realisation> {
    let id = channels.names.find(codes::UNKNOWN_CHANNEL, channel, fields.sink)?;
    let known = &channels.list[id.index()];
    let is_end = |host| known.talker == host || known.listeners.contains(&host);
    let (size, octets) = (known.size.get(), value.octets());
    let wrong = if !channels.ends_known[id.index()] {
        // What is wrong with the channel has been said.
        None
    } else if !host.is_none_or(is_end) {
        let help = "run the program on the channel's talker or on a listener";
        Some((format!("its host has no endpoint of `{}`", channel.value), help))
    } else if size != octets {
        let (name, channel) = (value.name(), &channel.value);
        let text =
            format!("a value of type {name} has {octets} octets, a message of `{channel}` {size}");
        Some((text, "set `size_octets` to the size of a value, or use another `type`"))
    } else {
        return Some(Realisation::Network(channel.value.clone()));
    };
    if let Some((text, help)) = wrong {
        fields.error(codes::BINDING, &text, channel.at, "this channel", help);
    }
    None
}

/// What the program's task model says.
fn read_tasks(
    fields: &mut Fields<'_, raw::Program>,
    path: &At<String>,
    channels: &[&str],
    files: &mut Files<'_>,
) -> Option<Graph> {
    let code = codes::PROGRAM_TASKS;
    if fields.entry.raw.source.is_some() {
        let help = "remove it: Onbeat derives the tasks from the source";
        fields.error(code, "`tasks` is given beside `source`", path.at, "this key", help);
        return None;
    }
    let text = match (files.read)(&path.value) {
        Ok(text) => text,
        Err(reason) => {
            let text = format!("the task model cannot be read: {reason}");
            let help = "give a path relative to the directory of the description";
            fields.error(code, &text, path.at, "named here", help);
            return None;
        }
    };
    let number = u16::try_from(files.sources.len()).expect("files are limited to far fewer");
    let found = tasks::read_program(&text, &path.value, channels);
    files.sources.push(SourceFile { path: path.value.clone(), text });
    match found {
        Ok(file) => Some(file.graph),
        Err(wrong) => {
            for mut diagnostic in wrong {
                let places = diagnostic.at.iter_mut().chain(&mut diagnostic.related);
                places.for_each(|(at, _)| at.file = number);
                fields.sink.push(diagnostic.related(path.at, "the program that does this"));
            }
            None
        }
    }
}

/// Checks a file of execution times. It is the program that uses it.
fn check_execution_times(
    fields: &mut Fields<'_, raw::Program>,
    path: &At<String>,
    files: &mut Files<'_>,
) {
    let code = codes::EXECUTION_TIMES;
    let text = match (files.read)(&path.value) {
        Ok(text) => text,
        Err(reason) => {
            let text = format!("the execution times cannot be read: {reason}");
            let help = "give a path relative to the directory of the description";
            return fields.error(code, &text, path.at, "named here", help);
        }
    };
    let number = u16::try_from(files.sources.len()).expect("files are limited to far fewer");
    let wrong = execution_times::read(&text, &path.value).err().unwrap_or_default();
    for InvalidRow { line, problem, .. } in wrong.into_iter().take(limits::TRACE_ERRORS) {
        let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let length = text[start..].lines().next().map_or(0, |line| line.trim_end().len());
        let at = origin(number, start..start + length);
        let message = format!("{}: {problem}", fields.what);
        let found = Diagnostic::error(code, message, at, "this line")
            .help("write SRC,BCET,WCET,JITTER,ABORT,DST, as in sense:start,2000,5000,0,0,sense:16")
            .related(path.at, "the program whose times these are");
        fields.sink.push(found);
    }
    files.sources.push(SourceFile { path: path.value.clone(), text });
}
