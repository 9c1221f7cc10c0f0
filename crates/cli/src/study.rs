//! The timing of a system's programs: their graphs, put together and studied.

use crate::cc::{self, Found};
use onbeat_model::codes;
use onbeat_model::diagnostic::{Diagnostic, Origin, Severity, SourceFile};
use onbeat_model::execution_times;
use onbeat_model::graph::Graph;
use onbeat_model::plan::Plan;
use onbeat_model::system::{Chain, NodeId, Program, System};
use onbeat_model::timing::TimingReport;
use onbeat_program::graph::apply_times;
use onbeat_timing::tfg::{self, Limits};
use std::path::Path;

/// The graphs of a system's programs.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// Each with its program's position in the system.
    all: Vec<(usize, Graph)>,
    /// The C files that were read.
    pub(crate) files: Vec<SourceFile>,
    /// What is wrong in these files.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The programs that could not be read, at their places in the description.
    pub(crate) unread: Vec<Diagnostic>,
}

/// Reads the programs whose sources or tasks are known. What cannot be read is said, and left out.
pub(crate) fn graphs(system: &System, directory: &Path, is_trusted: bool) -> Graphs {
    let mut found = Graphs::default();
    let read = read(&system.programs, directory, is_trusted);
    for ((at, program), read) in system.programs.iter().enumerate().zip(read) {
        found.all.extend(program.tasks.clone().map(|tasks| (at, tasks)));
        match read {
            None => {}
            Some(Err(error)) => {
                let name = &program.name;
                let text = format!("the timing of program `{name}` is not analysed: {error:#}");
                let help = "use `--trust` to pass all `cflags` of the directory's descriptions on, \
                            and to let them name files elsewhere, from now on; see SECURITY.md";
                let unread = Diagnostic::error(
                    codes::run::NOT_ANALYSED,
                    text,
                    program.origin,
                    "this program",
                );
                let unread = if is_trusted { unread } else { unread.help(help) };
                found.unread.push(unread.warning());
            }
            Some(Ok(mut one)) => {
                // A program that cannot be followed has told why.
                let is_followed = one.is_followed;
                if let Some(path) = &program.execution_times {
                    declare(&mut one, path, directory);
                }
                if is_followed {
                    found.all.push((at, one.linked.graph));
                }
                let before = u16::try_from(found.files.len()).unwrap_or(u16::MAX);
                found.files.extend(one.files);
                found.diagnostics.extend(one.diagnostics.into_iter().map(|d| moved(d, before)));
            }
        }
    }
    found
}

/// Reads the programs that have sources, on all processors: most of it is the preprocessor's.
fn read(
    programs: &[Program],
    directory: &Path,
    is_trusted: bool,
) -> Vec<Option<anyhow::Result<Found>>> {
    let one = |program: &Program| {
        let source = program.source.as_ref()?;
        Some(cc::graph(&source.files, &source.flags, directory, &program.name, is_trusted))
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let share = programs.len().div_ceil(processors).max(1);
    std::thread::scope(|scope| {
        let shares = programs.chunks(share);
        let readers: Vec<_> =
            shares.map(|share| scope.spawn(|| share.iter().map(one).collect::<Vec<_>>())).collect();
        let joined = readers.into_iter().map(|reader| reader.join());
        joined.flat_map(|read| read.unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    })
}

/// Gives a program's segments the execution times of a file that the description's check has read.
fn declare(found: &mut Found, path: &str, directory: &Path) {
    let Ok(text) = crate::source::read(&directory.join(path)) else { return };
    let Ok(rows) = execution_times::read(&text, path) else { return };
    let linked = &mut found.linked;
    let file = u16::try_from(found.files.len()).unwrap_or(u16::MAX);
    for (line, problem) in apply_times(&mut linked.graph, &linked.places, &rows) {
        let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let length = text[start..].lines().next().map_or(0, str::len);
        let [start, end] = [start, start + length].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let help = "write a node as task:line of a timing point, task:start or task:end";
        let at = Origin { file, start, end };
        let wrong =
            Diagnostic::error(codes::description::EXECUTION_TIMES, problem, at, "this line");
        found.diagnostics.push(wrong.help(help).warning());
    }
    found.files.push(SourceFile { path: path.to_owned(), text });
}

/// The same, about files that stand so many places later.
pub(crate) fn moved(mut diagnostic: Diagnostic, by: u16) -> Diagnostic {
    let at = diagnostic.at.iter_mut().chain(&mut diagnostic.related);
    at.for_each(|(origin, _)| origin.file = origin.file.saturating_add(by));
    diagnostic
}

/// The study of a system whose programs' graphs are known; none if none is.
pub(crate) fn study(
    system: &System,
    plan: &Plan,
    graphs: &Graphs,
    limits: Limits,
) -> Result<Option<TimingReport>, Vec<Diagnostic>> {
    let is_wrong = graphs.diagnostics.iter().any(|d| d.severity == Severity::Error);
    if graphs.all.is_empty() || is_wrong {
        return Ok(None);
    }
    let (graph, chains) = tfg::system_graph(system, plan, &graphs.all)?;
    Ok(Some(tfg::analyse(&system.name, graph, chains, limits, Some((system, plan)))))
}

/// Gives the chains whose programs are all known the bounds of the study: it knows when they read
/// and write, which the plan can only suppose.
pub(crate) fn promise(system: &System, graphs: &Graphs, study: &TimingReport, plan: &mut Plan) {
    let is_known = |program: &Program| {
        let mut known = graphs.all.iter().map(|(at, _)| &system.programs[*at].name);
        known.any(|name| *name == program.name)
    };
    let host_is_known =
        |host: NodeId| system.programs.iter().filter(|p| p.host == host && p.joins).all(is_known);
    let chain_is_known = |chain: &Chain| {
        let channels = chain.channels.iter().map(|id| system.channel(*id));
        let last = chain.channels.last().map(|id| system.channel(*id));
        let ends = last.into_iter().flat_map(|channel| channel.listeners.iter().copied());
        channels.map(|channel| channel.talker).chain(ends).all(host_is_known)
    };
    for (chain, bound) in system.chains.iter().zip(&mut plan.chains) {
        let studied = study.chains.iter().find(|c| c.name == chain.name);
        if let Some(studied) = studied.filter(|_| chain_is_known(chain)) {
            *bound = studied.time.latency.and_then(|latency| latency.hi);
        }
    }
}
