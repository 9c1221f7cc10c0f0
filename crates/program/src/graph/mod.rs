//! The time-flow graph of a program, from what its units do (`docs/time-flow-graphs.md`).

mod hold;
mod inline;
mod nodes;
mod slice;
mod times;
pub(crate) mod unit;

pub use times::apply_times;
pub use unit::UnitGraph;

use inline::Linker;
use onbeat_model::codes::timing;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{Graph, Host};

/// The graph of a program.
#[derive(Clone, Debug, Default)]
pub struct Linked {
    /// Its tasks; none if it cannot be followed.
    pub graph: Graph,
    /// Why it cannot. Files are counted through all units, in their order.
    pub diagnostics: Vec<Diagnostic>,
    /// What is not known for certain though it can be followed; files are counted alike.
    pub warnings: Vec<Diagnostic>,
    /// What files of execution times may name.
    pub places: Places,
}

/// The tasks and timing points of a program, those too that control never comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Functions that are tasks, and `main`.
    pub tasks: Vec<String>,
    /// Points as traces have them, in the order of the units and of their text.
    pub points: Vec<String>,
}

/// Makes the graph of a program of all its units. Without a `main`, as in a part of a program, all
/// tasks begin at once that no other one starts.
pub fn link(units: &[UnitGraph], program: &str) -> Linked {
    let host = Host { name: program.to_owned(), ..Host::default() };
    let graph = Graph { hosts: vec![host], ..Graph::default() };
    let mut linker = Linker::new(units, program, graph);
    linker.run();
    // What was not understood may be anything.
    let unread = units.iter().enumerate().filter_map(|(unit, made)| {
        let (what, origin) = made.unread.as_ref()?;
        let text = format!("the C of {what} is not understood here");
        let help = "correct it if the C compiler refuses it; else write it without this extension \
                    of C";
        Some(lost(&text, linker.origin(unit, *origin), "from here", help))
    });
    let unread: Vec<Diagnostic> = unread.collect();
    let mut warnings = linker.warnings;
    warnings.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
    warnings.dedup();
    let mut diagnostics = linker.diagnostics;
    diagnostics.extend(unread);
    diagnostics.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
    diagnostics.dedup();
    let graph = if diagnostics.is_empty() { linker.graph } else { Graph::default() };
    let tasks = units.iter().flat_map(|u| &u.functions).filter(|f| f.is_task || f.name == "main");
    let places = Places {
        tasks: tasks.map(|f| f.name.clone()).collect(),
        points: units.iter().flat_map(|u| u.points.iter().cloned()).collect(),
    };
    Linked { graph, diagnostics, warnings, places }
}

/// Whether a call that no file of the program defines is of the paper's abstract channel.
fn is_abstract(call: &unit::Call) -> bool {
    call.name == "chan_write" || call.name == "chan_read" && call.arguments.is_empty()
}

/// That it is declared says nothing of what its channel is.
fn unbound(call: &unit::Call, at: Origin) -> Diagnostic {
    let text = format!("the channel of `{}` is unknown", call.name);
    let help = "bind `chan` (`channels` in the description, or `--bind chan=fifo`), or give \
                `onbeat tfg` the file that defines the function";
    lost(&text, at, "not defined in the program", help)
}

/// What the analysis takes for the worst, because it is unknown.
fn doubt(text: &str, at: Origin, help: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(timing::DOUBT, text.to_owned(), at, "here");
    diagnostic.help(help).warning()
}

/// A reason why a program is not analysed.
fn lost(text: &str, at: Origin, label: &str, help: &str) -> Diagnostic {
    let text = format!("{text}: the program's timing is not analysed");
    Diagnostic::error(timing::FOLLOW, text, at, label).help(help).warning()
}
