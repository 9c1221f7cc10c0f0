//! Timed C: constructs, control flow, guards, checks, translation (`docs/timed-c.md`).

mod bound;
mod busy;
mod channels;
mod check;
mod constant;
mod construct;
mod edits;
mod effort;
mod emit;
mod endpoints;
mod flow;
mod graph;
mod guard;
mod hold;
mod idle;
mod integer;
mod locks;
mod net;
mod output;
mod pointers;
mod prepare;
mod program;
mod rewrite;
mod schedule;
mod solve;
mod syntax;
mod tasks;
mod unit;
mod unread;
mod value;
mod work;

pub(crate) use idle::endless_loop;
pub(crate) use integer::Integer;
pub(crate) use locks::is_timed;

use crate::graph::UnitGraph;
use crate::source::{Edit, Expanded};
use onbeat_model::binding::Binding;
use onbeat_model::codes::timed_c as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity, SourceFile};
use onbeat_model::graph::PointKind;
use onbeat_model::time::Span;

/// What to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Tasks keep their phase unless they say otherwise.
    pub keep_phase: bool,
    /// Which system the C is for.
    pub target: Target,
    /// What the timing points of called functions count from.
    pub origin: Origin,
    /// What the program's abstract channels are.
    pub bindings: Vec<Binding>,
    /// The tasks that start, if not all do: starts of others do nothing.
    pub starts: Option<Vec<String>>,
}

impl Options {
    /// Whether a function starts, as far as it is a task.
    fn starts(&self, role: unit::Role, name: &str) -> bool {
        let listed = |list: &Vec<String>| list.iter().any(|task| task == name);
        role != unit::Role::Task || self.starts.as_ref().is_none_or(listed)
    }
}

/// What the first timing point of a called function counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The task's last timing point, wherever it stands.
    #[default]
    Task,
    /// The call; behind it the caller's points count from what they counted from before.
    Function,
}

/// Which system the C is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// POSIX threads on Linux: aborts come from a timer's signal.
    #[default]
    Posix,
    /// FreeRTOS: aborts are looked for at every statement and in every round of a loop.
    FreeRtos,
}

/// A translation unit, translated.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// What is wrong; with errors, the rest is of no use.
    pub diagnostics: Vec<Diagnostic>,
    /// Changes of the user's text.
    pub edits: Vec<Edit>,
    /// What stands before the first line of the main file, without a line end.
    pub before: String,
    /// What stands behind its last line.
    pub after: String,
    /// What the unit is made of.
    pub tasks: Vec<TaskPoints>,
    /// The abstract channels that it uses, of those that are bound.
    pub bound: Vec<String>,
    /// What it adds to the graph of its program.
    pub graph: UnitGraph,
}

/// The timing points of a task, or of `main` if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPoints {
    /// Its function's name.
    pub name: String,
    /// In the order of the text.
    pub points: Vec<Point>,
}

/// A timing point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// As measurements and traces name it: `task:line`.
    pub name: String,
    /// Soft, firm or hard.
    pub kind: PointKind,
    /// From the origin to the release, if it is constant.
    pub period: Option<Span>,
    /// From the origin to the deadline, if it is constant.
    pub deadline: Option<Span>,
}

/// Nesting that programs are read to; deeper ones are no hand's work.
const DEPTH_MAX: usize = 2_000;

/// The stack that such nesting needs.
const STACK_OCTETS: usize = 64 << 20;

/// Translates one unit. `files` are those that `expanded` was made of, the main one first.
pub fn translate(expanded: &Expanded, files: &[SourceFile], options: Options) -> Translation {
    std::thread::scope(|scope| {
        let work = || translate_here(expanded, files, options.clone());
        let thread = std::thread::Builder::new().stack_size(STACK_OCTETS).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(translation)) => translation,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => translate_here(expanded, files, options.clone()),
        }
    })
}

fn translate_here(expanded: &Expanded, files: &[SourceFile], options: Options) -> Translation {
    let prepared = prepare::prepare(&expanded.text);
    let mut parser = tree_sitter::Parser::new();
    // Fails only if the grammar and the library do not fit each other, which a test would show.
    let is_set = parser.set_language(&tree_sitter_c::LANGUAGE.into()).is_ok();
    let Some(tree) = parser.parse(&prepared.text, None).filter(|_| is_set) else {
        return Translation::default();
    };
    let root = tree.root_node();
    if syntax::depth(root) > DEPTH_MAX {
        let text = format!("the program is nested more than {DEPTH_MAX} deep");
        let at = expanded.origin(0..1);
        let help = "reduce the nesting";
        let deep = Diagnostic::error(codes::FORM, text, at, "in this file").help(help);
        return Translation { diagnostics: vec![deep], ..Translation::default() };
    }
    translate_unit(unit::Unit::new(expanded, files, options, &prepared, root))
}

/// The guards of all functions.
fn guards<'t>(
    unit: &unit::Unit<'t>,
    constructs: &construct::Constructs<'t>,
    program: &program::Program<'t>,
    flows: &[flow::Flow<'t>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<guard::Guards> {
    let mut found = Vec::new();
    for (function, flow) in unit.functions.iter().zip(flows) {
        let is_end = |v: &usize| net::opens(unit, &function.variables[*v]);
        let ends = (0..function.variables.len()).filter(is_end).collect();
        let mut finder = guard::Finder {
            unit,
            constructs,
            program,
            function,
            flow,
            ends,
            diagnostics: Vec::new(),
        };
        found.push(finder.find());
        diagnostics.append(&mut finder.diagnostics);
    }
    found
}

/// Writes what becomes of all functions.
fn emit(
    found: &graph::Extractor<'_, '_>,
    edits: &mut edits::Edits,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (index, function) in found.unit.functions.iter().enumerate() {
        let mut emitter = emit::Emitter {
            unit: found.unit,
            constructs: found.constructs,
            function,
            flow: &found.flows[index],
            guards: &found.guards[index],
            skips: &found.skips[index],
            edits: &mut *edits,
            diagnostics: Vec::new(),
            braced: std::collections::BTreeSet::new(),
            work: found.work.statement(function.name),
            idle: &found.idle[index],
        };
        emitter.calls(&found.constructs.order[index]);
        emitter.run();
        diagnostics.append(&mut emitter.diagnostics);
    }
}

fn translate_unit(mut unit: unit::Unit<'_>) -> Translation {
    let mut edits = edits::Edits::default();
    let constructs = construct::read(&mut unit);
    let work = work::read(&mut unit, &mut edits);
    channels::edit(&mut unit, &mut edits);
    let nets = net::read(&mut unit, &mut edits);
    let bound = bound::used(&unit);
    let is_plain =
        edits.is_empty() && nets.is_empty() && bound.is_empty() && constructs.calls.is_empty();
    let program = program::read(&unit, &constructs);
    let build = |function| flow::build(&unit, &constructs, &program, function);
    let flows: Vec<flow::Flow<'_>> = (0..unit.functions.len()).map(build).collect();
    let mut diagnostics = std::mem::take(&mut unit.diagnostics);
    diagnostics.extend(tasks::check(&unit));
    diagnostics.extend(channels::check_writers(&unit, &program));
    diagnostics.extend(bound::check(&unit, &program));
    let guards = guards(&unit, &constructs, &program, &flows, &mut diagnostics);
    let mut checker = check::Checker {
        unit: &unit,
        constructs: &constructs,
        program: &program,
        flows: &flows,
        guards: &guards,
        risky: check::risky(&unit, &program, &flows),
        diagnostics: Vec::new(),
    };
    checker.run();
    let (idle, slow) = idle::find(&unit, &constructs, &program, &flows, &work);
    let skips: Vec<_> = (0..flows.len()).map(|f| checker.skips(f)).collect();
    diagnostics.append(&mut checker.diagnostics);
    // What is wrong may be the timing point that a loop seems not to have.
    if diagnostics.iter().all(|found| found.severity != Severity::Error) {
        diagnostics.extend(slow);
    }
    let names = output::names(&unit, &constructs);
    let found = graph::Extractor {
        unit: &unit,
        constructs: &constructs,
        program: &program,
        work: &work,
        names: &names,
        flows: &flows,
        guards: &guards,
        skips: &skips,
        idle: &idle,
    };
    emit(&found, &mut edits, &mut diagnostics);
    bound::edit(&unit, &mut edits);
    pointers::edit(&unit, &mut edits);
    endpoints::edit(&unit, &endpoints::read(&unit), &mut edits);
    for call in &constructs.unevaluated {
        edits.replace(call.byte_range(), "0L");
    }
    tasks::edit(&unit, &mut edits);
    let figures = work::figures(&unit, &constructs, &program, &flows, &work);
    let tasks = output::tasks(&unit, &constructs, &program, &names);
    diagnostics.extend(schedule::check(&unit, &constructs, &program, &tasks, &figures));
    let graph = found.read();
    let bound = bound.into_iter().map(|at| unit.options.bindings[at].name.clone()).collect();
    diagnostics.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
    Translation {
        before: output::before(&unit, &constructs),
        after: output::after(&unit, &constructs, &names, &tasks, &figures, &nets, is_plain),
        tasks: tasks.into_iter().map(|(_, task)| task).collect(),
        edits: edits.finish(),
        diagnostics,
        bound,
        graph,
    }
}
