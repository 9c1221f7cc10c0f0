//! Loops in which no time passes and that do not end, or not before somebody else ends them:
//! virtual time would stand still in them. In virtual time, and in the graph, a round of such a
//! loop takes [`ROUND_NS`].

use super::construct::Constructs;
use super::flow::{Flow, StepKind};
use super::program::Program;
use super::unit::Unit;
use super::work::Work;
use super::{bound, codes};
use onbeat_model::binding::Realisation;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use std::collections::HashSet;
use std::ops::Range;
use tree_sitter::Node;

/// What an iteration takes by default: short beside periods, long beside the work of a run that
/// continues like this.
pub(super) const ROUND_NS: i64 = 100_000;

/// Functions of libraries that may wait, and so let time pass, by the beginnings of their names.
const WAITING: [&str; 27] = [
    "accept",
    "chan_",
    "clock_nanosleep",
    "cnd_",
    "connect",
    "cread",
    "epoll_",
    "flock",
    "mtx_",
    "msgrcv",
    "nanosleep",
    "onbeat_",
    "pause",
    "pdu_",
    "poll",
    "ppoll",
    "pselect",
    "pt_",
    "pthread_",
    "read",
    "recv",
    "select",
    "sem_",
    "sig",
    "sleep",
    "usleep",
    "wait",
];

/// A loop, and the step at which a round of it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle<'t> {
    pub node: Node<'t>,
    pub again: usize,
}

impl Idle<'_> {
    /// Where its `while`, `do` or `for` stands.
    pub(super) fn keyword(self) -> Range<usize> {
        self.node.child(0).unwrap_or(self.node).byte_range()
    }
}

/// The loops of each function, and what is said of them.
pub(super) fn find<'t>(
    unit: &Unit<'t>,
    constructs: &Constructs<'t>,
    program: &Program<'t>,
    flows: &[Flow<'t>],
    work: &Work<'t>,
) -> (Vec<Vec<Idle<'t>>>, Vec<Diagnostic>) {
    // Functions in which time may pass, themselves or in what they call.
    let own = (0..flows.len()).filter(|f| {
        let steps = 0..flows[*f].steps.len();
        let passes = |at| passes(unit, constructs, program, (&flows[*f], *f), work, at);
        work.of_function(unit.functions[*f].name).is_some() || steps.into_iter().any(passes)
    });
    let timed = program.callers(own.collect::<HashSet<usize>>());
    let (mut found, mut diagnostics) = (Vec::new(), Vec::new());
    for (index, flow) in flows.iter().enumerate() {
        let is_timed = |at: &usize| {
            let callee = match flow.steps[*at].kind {
                StepKind::Call(call) => program.callee(call),
                _ => None,
            };
            passes(unit, constructs, program, (flow, index), work, *at)
                || callee.is_some_and(|f| timed.contains(&f))
        };
        let mut idle = Vec::new();
        for endless in &flow.endless {
            if !endless.steps.iter().any(is_timed) {
                idle.push(Idle { node: endless.node, again: endless.again });
            }
        }
        for (node, again) in flow.busy.iter().copied() {
            let range = node.byte_range();
            let inside = |at: &usize| range.contains(&flow.steps[*at].place.start);
            if !(0..flow.steps.len()).filter(inside).any(|at| is_timed(&at)) {
                idle.push(Idle { node, again });
            }
        }
        diagnostics.extend(idle.iter().map(|one| endless_loop(unit.at(one.keyword()))));
        found.push(idle);
    }
    (found, diagnostics)
}

/// Whether time may pass at a step, as far as the unit knows.
fn passes<'t>(
    unit: &Unit<'t>,
    constructs: &Constructs<'t>,
    program: &Program<'t>,
    (flow, index): (&Flow<'t>, usize),
    work: &Work<'t>,
    at: usize,
) -> bool {
    match flow.steps[at].kind {
        StepKind::Point(point) => constructs.points[point].period.constant_ns != Some(0),
        StepKind::Skip(_) => true,
        StepKind::Slot(_) | StepKind::Inner(_) => work.at_step(flow, at).is_some(),
        StepKind::Call(call) => {
            let name = unit.callee(call).unwrap_or("");
            if let Some(moves) = bound::of(unit, &unit.functions[index], call) {
                // A write of a network channel waits when its rate does not allow it yet.
                let binding = moves.binding.map(|at| &unit.options.bindings[at].to);
                return !moves.is_write || !matches!(binding, Some(Realisation::Fifo(_)));
            }
            // Through a pointer, or in another file of the program, anything may happen.
            let is_foreign = name.is_empty() || unit.names.contains(name);
            program.callee(call).is_none()
                && (is_foreign || WAITING.iter().any(|wait| name.starts_with(wait)))
        }
        _ => false,
    }
}

/// What is said of a loop that stands there.
pub(crate) fn endless_loop(at: Origin) -> Diagnostic {
    let round = ROUND_NS / 1_000;
    let text = format!("no time passes in this loop: the run charges {round} us per iteration");
    let help = "state what it takes: `__attribute__((exectime(bcet, wcet, us)));` in the loop, or \
                before the definition of a function that it calls";
    let label = "virtual time would stand still";
    Diagnostic::error(codes::ENDLESS, text, at, label).help(help).warning()
}
