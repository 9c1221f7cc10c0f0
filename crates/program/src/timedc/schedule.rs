//! Whether the declared execution times leave a schedule, on one processor.

use super::TaskPoints;
use super::codes;
use super::construct::{Construct, Constructs};
use super::output::{Figures, shortest};
use super::program::Program;
use super::unit::Unit;
use onbeat_model::diagnostic::Diagnostic;
use tree_sitter::Node;

/// A task with a policy and all figures.
struct Load<'t> {
    name: &'t str,
    place: Node<'t>,
    is_edf: bool,
    /// What the order of fixed priorities goes by.
    rank_ns: i64,
    period_ns: i64,
    deadline_ns: i64,
    wcet_ns: i64,
}

/// Rounds after which a response time that still grows is taken as too long.
const ROUNDS_MAX: usize = 10_000;

/// The parts of a processor that utilisation is counted in.
const WHOLE: i128 = 1 << 40;

/// Warns of tasks that may miss their deadlines. Fixed priorities: the response times of the first
/// jobs when all are released together. EDF: the demand up to the tasks' deadlines.
pub(super) fn check(
    unit: &Unit<'_>,
    constructs: &Constructs<'_>,
    program: &Program<'_>,
    tasks: &[(usize, TaskPoints)],
    figures: &[Figures],
) -> Vec<Diagnostic> {
    let mut loads = Vec::new();
    for (function, task) in tasks {
        if !unit.options.starts(unit.functions[*function].role, &task.name) {
            continue;
        }
        let starts = program.sites.iter().filter(|s| s.starts && s.callee == *function).count();
        let Some((policy, place)) = policy(constructs, *function) else { continue };
        let (period_ns, deadline_ns) = shortest(task, &figures[*function]);
        let (wcet_ns, name) = (figures[*function].wcet_ns, unit.functions[*function].name);
        if wcet_ns == 0 || period_ns == 0 {
            continue;
        }
        let deadline_ns = if deadline_ns == 0 { period_ns } else { deadline_ns };
        let rank_ns = if policy.ends_with("RM") { period_ns } else { deadline_ns };
        let is_edf = policy == "TIMEDC_EDF";
        for _ in 0..starts.max(1) {
            loads.push(Load { name, place, is_edf, rank_ns, period_ns, deadline_ns, wcet_ns });
        }
    }
    loads.sort_by_key(|l| (l.is_edf, l.rank_ns));
    let share = |l: &Load<'_>| i128::from(l.wcet_ns) * WHOLE / i128::from(l.period_ns);
    let is_full = loads.iter().map(share).sum::<i128>() > WHOLE;
    let late = (0..loads.len()).filter(|index| is_late(&loads, *index));
    let mut told: Vec<usize> = late.collect();
    if told.is_empty() && is_full {
        told.push(loads.len() - 1);
    }
    told.dedup_by_key(|index| loads[*index].place.id());
    told.into_iter().map(|index| warning(unit, &loads[index])).collect()
}

fn policy<'t>(constructs: &Constructs<'t>, function: usize) -> Option<(&'static str, Node<'t>)> {
    constructs.order[function].iter().find_map(|id| match constructs.calls.get(id) {
        Some((call, Construct::Policy(policy, _))) => Some((*policy, *call)),
        _ => None,
    })
}

fn is_late(loads: &[Load<'_>], index: usize) -> bool {
    let load = &loads[index];
    let deadline = i128::from(load.deadline_ns);
    let others = loads[..index].iter();
    if load.is_edf {
        let jobs = |l: &&Load<'_>| l.is_edf && l.deadline_ns <= load.deadline_ns;
        let demand = |l: &Load<'_>| {
            let later = i128::from(load.deadline_ns - l.deadline_ns) / i128::from(l.period_ns);
            (later + 1) * i128::from(l.wcet_ns)
        };
        return loads.iter().filter(jobs).map(demand).sum::<i128>() > deadline;
    }
    let mut response = i128::from(load.wcet_ns);
    for _ in 0..ROUNDS_MAX {
        let disturbed = |l: &Load<'_>| {
            let jobs = (response + i128::from(l.period_ns) - 1) / i128::from(l.period_ns);
            jobs * i128::from(l.wcet_ns)
        };
        let next = i128::from(load.wcet_ns) + others.clone().map(disturbed).sum::<i128>();
        if next > deadline {
            return true;
        }
        if next == response {
            return false;
        }
        response = next;
    }
    true
}

fn warning(unit: &Unit<'_>, load: &Load<'_>) -> Diagnostic {
    let text = format!("the task `{}` may miss its deadline on one processor", load.name);
    let at = unit.at(load.place.byte_range());
    let help = format!(
        "it may work {} us in every {} us, with a deadline of {} us: shorten the work of the \
         tasks, or lengthen their periods",
        load.wcet_ns / 1_000,
        load.period_ns / 1_000,
        load.deadline_ns / 1_000
    );
    Diagnostic::error(codes::UNSCHEDULABLE, text, at, "under this policy").help(help).warning()
}
