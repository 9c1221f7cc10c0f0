//! What stands before and behind the user's text.

use super::construct::{Constructs, TimingPoint};
use super::net::OpenedEndpoint;
use super::program::Program;
use super::tasks;
use super::unit::{Function, Role, Unit};
use super::{Point, TaskPoints, bound};
use onbeat_model::graph::PointKind;
use onbeat_model::time::Span;
use std::collections::{HashMap, HashSet};

/// What is said of a task beside its points.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Of `aperiodic`, in nanoseconds.
    pub separation_ns: Option<i64>,
    /// The longest declared execution time of a segment, in nanoseconds.
    pub wcet_ns: i64,
}

/// A string as C writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut made = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => made.extend(['\\', char::from(byte)]),
            b' '..=b'~' if byte != b'?' => made.push(char::from(byte)),
            _ => made.push_str(&format!("\\{byte:03o}")),
        }
    }
    made + "\""
}

/// The names of places as traces have them: their lines; `12.2` for the second one in a line.
pub(super) fn place_names(unit: &Unit<'_>, places: &[usize]) -> Vec<String> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|p| places[*p]);
    let mut names = vec![String::new(); places.len()];
    let mut in_line: HashMap<(u16, usize), usize> = HashMap::new();
    for index in order {
        let (file, line) = unit.line(places[index]);
        let count = in_line.entry((file, line)).or_default();
        *count += 1;
        let mut name = line.to_string();
        if file != 0 {
            let path = unit.path(file);
            name = format!("{}:{line}", path.rsplit('/').next().unwrap_or(path));
        }
        if *count > 1 {
            name = format!("{name}.{count}");
        }
        names[index] = name;
    }
    names
}

/// The names of points.
pub(super) fn names(unit: &Unit<'_>, constructs: &Constructs<'_>) -> Vec<String> {
    let places: Vec<usize> = constructs.points.iter().map(|p| p.call.start_byte()).collect();
    place_names(unit, &places)
}

/// The tasks with their points.
pub(super) fn tasks(
    unit: &Unit<'_>,
    constructs: &Constructs<'_>,
    program: &Program<'_>,
    names: &[String],
) -> Vec<(usize, TaskPoints)> {
    let mut found = Vec::new();
    for (index, function) in unit.functions.iter().enumerate() {
        if function.role == Role::Plain {
            continue;
        }
        let reached = program.callees(HashSet::from([index]));
        let mut own: Vec<usize> = (0..constructs.points.len())
            .filter(|p| reached.contains(&constructs.points[*p].function))
            .collect();
        own.sort_by_key(|p| constructs.points[*p].call.start_byte());
        let points = own.into_iter().map(|p| {
            let point = &constructs.points[p];
            Point {
                name: format!("{}:{}", function.name, names[p]),
                kind: point.kind,
                period: point.period.constant_ns.map(Span::from_ns),
                deadline: constant_deadline(point).map(Span::from_ns),
            }
        });
        let task = TaskPoints { name: function.name.to_owned(), points: points.collect() };
        found.push((index, task));
    }
    found
}

fn constant_deadline(point: &TimingPoint<'_>) -> Option<i64> {
    match point.deadline {
        super::construct::Deadline::Same => point.period.constant_ns,
        super::construct::Deadline::None(_) => None,
        super::construct::Deadline::Length(length) => length.constant_ns,
    }
}

/// What stands before the first line.
pub(super) fn before(unit: &Unit<'_>, constructs: &Constructs<'_>) -> String {
    let mut text = String::from("#include <timedc.h>");
    // A program's own functions of these names are not ours.
    for name in ["cinit", "cwrite", "cread", "nelem"] {
        let is_local = unit.functions.iter().any(|f| f.variables.iter().any(|v| v.name == name));
        if unit.names.contains(name) || is_local {
            text.push_str(&format!("\n#undef {name}"));
        }
    }
    text.push_str(&bound::declarations(unit));
    if !constructs.points.is_empty() {
        let count = constructs.points.len();
        text.push_str(&format!("\nstatic const struct timedc_point timedc_points[{count}];"));
    }
    if unit.functions.iter().any(|f| f.role == Role::Main) {
        text.push_str("\nstatic const struct timedc_task timedc_task_main;");
    }
    text
}

/// What stands behind the last line. A plain unit has nothing of Timed C but a `main`: a program of
/// such units only is C, which the run time leaves alone.
pub(super) fn after(
    unit: &Unit<'_>,
    constructs: &Constructs<'_>,
    names: &[String],
    tasks: &[(usize, TaskPoints)],
    figures: &[Figures],
    nets: &[OpenedEndpoint],
    is_plain: bool,
) -> String {
    let mut text = points(unit, constructs, names);
    for (index, task) in tasks {
        let function = &unit.functions[*index];
        let line = task_definition(unit, function, task, &figures[*index]);
        text.push_str(&line);
    }
    let nets: Vec<String> = nets.iter().map(opened).chain(bound::ends(unit)).collect();
    if tasks.is_empty() && nets.is_empty() && names.is_empty() {
        return text;
    }
    let list =
        |found: Vec<String>| if found.is_empty() { "0".to_owned() } else { found.join(", ") };
    let all = tasks.iter().map(|(_, t)| format!("&timedc_task_{}", t.name)).collect();
    text.push_str(&format!(
        "static const struct timedc_task *const timedc_tasks[] = {{{}}};\n",
        list(all)
    ));
    let is_plain = is_plain && tasks.iter().all(|(f, _)| unit.functions[*f].role == Role::Main);
    let has_nets = if nets.is_empty() { "0" } else { "timedc_nets" };
    let has_points = if names.is_empty() { "0" } else { "timedc_points" };
    if !nets.is_empty() {
        let all = nets.join(",\n\t");
        text.push_str(&format!(
            "static const struct timedc_net timedc_nets[] = {{\n\t{all},\n}};\n"
        ));
    }
    text.push_str(&format!(
        "static struct timedc_unit timedc_unit = {{timedc_tasks, {}, {has_nets}, {}, {}, {}, \
         {has_points}, {}, 0}};\n\
         __attribute__((constructor)) static void timedc_begin(void)\n\
         {{\n\ttimedc_register(&timedc_unit);\n}}\n",
        tasks.len(),
        nets.len(),
        u8::from(unit.options.keep_phase),
        u8::from(is_plain),
        names.len()
    ));
    text
}

/// An end of a network channel, as the run time opens it.
fn opened(end: &OpenedEndpoint) -> String {
    format!(
        "{{{}, {}, {}, {array}, (int)(sizeof({array}) / sizeof({array}[0])), 0}}",
        quoted(&end.name),
        u8::from(end.is_talker),
        u8::from(end.is_first_generation),
        array = end.array
    )
}

fn points(unit: &Unit<'_>, constructs: &Constructs<'_>, names: &[String]) -> String {
    if constructs.points.is_empty() {
        return String::new();
    }
    let count = constructs.points.len();
    let mut text = format!("static const struct timedc_point timedc_points[{count}] = {{\n");
    for (point, name) in constructs.points.iter().zip(names) {
        let (file, line) = unit.line(point.call.start_byte());
        let kind = match point.kind {
            PointKind::Soft => "TIMEDC_SOFT",
            PointKind::Firm => "TIMEDC_FIRM",
            PointKind::Hard => "TIMEDC_HARD",
        };
        text.push_str(&format!(
            "\t{{{}, {}, {}, {line}, {kind}, {}}},\n",
            quoted(name),
            quoted(unit.functions[point.function].name),
            quoted(unit.path(file)),
            point.unit.0
        ));
    }
    text + "};\n"
}

fn task_definition(
    unit: &Unit<'_>,
    function: &Function<'_>,
    task: &TaskPoints,
    figures: &Figures,
) -> String {
    let (file, line) = unit.line(function.definition.start_byte());
    let head = format!("{}, {}, {line}", quoted(function.name), quoted(unit.path(file)));
    // The order of priorities is that of the tasks that start.
    let starts = unit.options.starts(function.role, function.name);
    let (period, deadline) = if starts { shortest(task, figures) } else { (0, 0) };
    let tail = format!("{period}, {deadline}, {}", figures.wcet_ns);
    match function.role {
        Role::Task => tasks::definition(unit, function, &head, &tail),
        _ => format!(
            "static const struct timedc_task timedc_task_main = {{{head}, 0, 0, {tail}}};\n"
        ),
    }
}

/// The shortest constant period and deadline in nanoseconds, 0 if there is none.
pub(super) fn shortest(task: &TaskPoints, figures: &Figures) -> (i64, i64) {
    let periods = task.points.iter().filter_map(|p| p.period).map(Span::as_ns);
    let deadlines = task.points.iter().filter_map(|p| p.deadline).map(Span::as_ns);
    let period = periods.chain(figures.separation_ns).filter(|ns| *ns > 0).min();
    (period.unwrap_or(0), deadlines.filter(|ns| *ns > 0).min().unwrap_or(0))
}
