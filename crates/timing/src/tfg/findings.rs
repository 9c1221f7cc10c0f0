//! What a user should know of a system's timing, as warnings.

use onbeat_model::codes::timing as codes;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin, Severity};
use onbeat_model::graph::{Graph, PointKind};
use onbeat_model::system::System;
use onbeat_model::time::Span;
use onbeat_model::timing::{
    Cause, CauseKind, Chain, Component, Composability, Course, Hazard, Miss, Schedule, Timing,
    TimingReport,
};
use std::collections::BTreeMap;

/// What to warn of. `system` is the description, if there is one: then the deadlines of its chains
/// are left to [`crate::warnings`].
pub fn findings(study: &TimingReport, system: Option<&System>) -> Vec<Diagnostic> {
    let finder = Finder { study, system };
    let mut found = finder.culprits();
    found.extend(finder.unproven());
    found.extend(finder.misses());
    found.extend(study.chains.iter().flat_map(|chain| finder.chain(chain)));
    found.extend(study.schedules.iter().flat_map(|schedule| finder.schedule(schedule)));
    found.extend(finder.troubles());
    found
}

struct Finder<'a> {
    study: &'a TimingReport,
    system: Option<&'a System>,
}

impl Finder<'_> {
    fn graph(&self) -> &Graph {
        &self.study.graph
    }

    fn warning(
        &self,
        code: Code,
        message: String,
        at: Option<(Origin, &str)>,
        help: &str,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            code,
            message,
            at: at.map(|(origin, label)| (origin, label.to_owned())),
            related: Vec::new(),
            help: help.to_owned(),
        }
    }

    fn channel(&self, channel: usize) -> (&str, Option<Origin>) {
        let name = self.graph().channels[channel].name.as_str();
        let found = self.system.and_then(|s| s.channels.iter().find(|c| c.name == name));
        (name, found.map(|c| c.origin))
    }

    fn program(&self, task: usize) -> Option<Origin> {
        let name = &self.graph().tasks[task].program;
        let programs = self.system.into_iter().flat_map(|s| &s.programs);
        programs.into_iter().find(|p| p.name == *name).map(|p| p.origin)
    }

    fn place(&self, timing: &Timing, row: usize) -> String {
        let row = &timing.rows[row];
        self.graph().tasks[row.task].label(row.node)
    }

    /// A path, as `sensor.c:5 → status → controller.c:12`.
    fn path(&self, timing: &Timing, path: &[usize]) -> String {
        let places = path.iter().map(|row| self.place(timing, *row));
        let mut places: Vec<String> = places.collect();
        places.dedup();
        shortened(places).join(" → ")
    }

    fn culprits(&self) -> Vec<Diagnostic> {
        let (program, platform) = (&self.study.program, &self.study.platform);
        let told = |culprit: &Cause, timing: &Timing| {
            let row = &timing.rows[culprit.row];
            (culprit.kind.clone(), row.task, row.node)
        };
        let known: Vec<_> = program.causes.iter().map(|c| told(c, program)).collect();
        let more = platform.causes.iter().filter(|c| !known.contains(&told(c, platform)));
        let all = program.causes.iter().map(|c| (c, program)).chain(more.map(|c| (c, platform)));
        all.map(|(culprit, timing)| self.culprit(culprit, timing)).collect()
    }

    fn culprit(&self, culprit: &Cause, timing: &Timing) -> Diagnostic {
        let row = &timing.rows[culprit.row];
        let (place, program) = (self.place(timing, culprit.row), self.program(row.task));
        let at_program = program.map(|origin| (origin, "this program"));
        let of_channel = |channel| {
            let (name, origin) = self.channel(channel);
            (name, origin.map(|origin| (origin, "this channel")))
        };
        let (reason, at, help) = match culprit.kind {
            CauseKind::BestEffort { channel } => {
                let (name, at) = of_channel(channel);
                let help = "reserve for the channel, or read it outside of timed code";
                (
                    format!("the latency of channel `{name}`, read at {place}, has no bound"),
                    at,
                    help,
                )
            }
            CauseKind::Unsent { channel } => {
                let (name, at) = of_channel(channel);
                let help = "write the message on every path, or do not wait for it";
                let reason = format!("{place} reads `{name}`, which some executions never write");
                (reason, at, help)
            }
            CauseKind::Shared { channel } => {
                let (name, at) = of_channel(channel);
                let help = "give each reader a separate channel";
                (format!("several tasks take messages from `{name}`, one at {place}"), at, help)
            }
            CauseKind::Loop => {
                let help = "bound the iterations of the loop, or add a firm point after it";
                (
                    format!("the number of iterations of the loop at {place} is unknown"),
                    at_program,
                    help,
                )
            }
            CauseKind::Delay => {
                let help = "write a delay that does not depend on data";
                (format!("the delay at {place} is unknown"), at_program, help)
            }
            CauseKind::Processor => {
                let help = "give the task another CPU, or a higher priority";
                (format!("the time of the code at {place} has no bound"), at_program, help)
            }
            CauseKind::Locks { cycle } => return self.locks(cycle, at_program),
        };
        let message = format!("`{}` is not composable: {reason}", self.study.name);
        let path = self.path(timing, &culprit.path);
        let help = match path.is_empty() {
            true => help.to_owned(),
            false => format!("{help}; the path without a bound is {path}"),
        };
        self.warning(codes::NOT_COMPOSABLE, message, at, &help)
    }

    /// Components of which nothing is proven beyond some rounds, where that is all that is wrong.
    fn unproven(&self) -> Vec<Diagnostic> {
        let Composability::Unproven { .. } = self.study.program.verdict() else {
            return Vec::new();
        };
        let one = |component: &Component| {
            let Course::Open { rounds, why } = component.course else { return None };
            let name = |task: &usize| format!("`{}`", self.graph().tasks[*task].name);
            let tasks: Vec<String> = component.tasks.iter().map(name).collect();
            let message = format!(
                "the times of {} are proven for {rounds} iterations, not beyond: {}",
                tasks.join(", "),
                why.words(self.graph())
            );
            let program = component.tasks.first().and_then(|task| self.program(*task));
            let at = program.map(|origin| (origin, "this program"));
            let help = "see the times of `onbeat tfg`; write periodic code, and read as often as \
                        is written";
            Some(self.warning(codes::UNPROVEN, message, at, help))
        };
        self.study.program.components.iter().filter_map(one).collect()
    }

    /// Tasks that may wait for each other's locks for ever.
    fn locks(&self, cycle: usize, at: Option<(Origin, &str)>) -> Diagnostic {
        let cycle = &self.study.lock_cycles[cycle];
        let (way, places) = (cycle.path(self.graph()), cycle.places(self.graph()));
        let message = format!("tasks may deadlock on each other's locks: {way}, at {places}");
        let help = "lock shared mutexes in the same order in all tasks";
        self.warning(codes::LOCKS, message, at, help)
    }

    /// Firm and hard points that may be late, each once. A soft point says itself when it is.
    fn misses(&self) -> Vec<Diagnostic> {
        let timing = &self.study.platform;
        let mut worst: BTreeMap<(usize, usize), &Miss> = BTreeMap::new();
        for miss in timing.misses.iter().filter(|miss| miss.kind != PointKind::Soft) {
            let row = &timing.rows[miss.row];
            let known = worst.entry((row.task, row.node)).or_insert(miss);
            let is_worse = |a: Option<Span>, b: Option<Span>| match (a, b) {
                (_, None) => false,
                (None, _) => true,
                (Some(a), Some(b)) => a > b,
            };
            if is_worse(miss.by, known.by) {
                *known = miss;
            }
        }
        let one = |((task, _), miss): ((usize, usize), &Miss)| {
            let kind = if miss.kind == PointKind::Hard { "hard" } else { "firm" };
            let place = self.place(timing, miss.row);
            let by = match miss.by {
                Some(by) => format!("{by} longer than that"),
                None => "any time".to_owned(),
            };
            let how = if miss.is_certain { "misses" } else { "may miss" };
            let message = format!(
                "the {kind} point {place} {how} its deadline: the code before it may take {by}"
            );
            let at = self.program(task).map(|origin| (origin, "this program"));
            let path = self.path(timing, &miss.path);
            let help = format!("shorten the work on the path {path}, or lengthen the deadline");
            self.warning(codes::MAY_BE_LATE, message, at, &help)
        };
        worst.into_iter().map(one).collect()
    }

    fn chain(&self, chain: &Chain) -> Vec<Diagnostic> {
        let origin = self.system.and_then(|s| s.chains.iter().find(|c| c.name == chain.name));
        let at = origin.map(|c| (c.origin, "this chain"));
        let latency = chain.time.latency.and_then(|latency| latency.hi);
        // The plan warns of what it has a bound for.
        let deadline = chain.deadline.filter(|_| self.system.is_none() || latency.is_none());
        let asked = [
            ("may take", deadline, latency),
            ("may show data that are as old as", chain.age, chain.time.age),
            ("may react only after", chain.reaction, chain.time.reaction),
        ];
        let too_long = asked.into_iter().filter_map(|(what, asked, known)| {
            let asked = asked?;
            let how = match known {
                None => format!("{what} any time"),
                Some(known) if known > asked => format!("{what} {known}"),
                Some(_) => return None,
            };
            let message = format!("chain `{}` {how}; the limit is {asked}", chain.name);
            let terms = chain.time.terms.iter().max_by_key(|term| term.span);
            let help = match terms {
                Some(term) => format!("its largest term is {} {}", term.span, term.what),
                None => "see `onbeat tfg` for the part without a bound".to_owned(),
            };
            Some(self.warning(codes::CHAIN, message, at, &help))
        });
        too_long.collect()
    }

    fn schedule(&self, schedule: &Schedule) -> Vec<Diagnostic> {
        let host = &self.graph().hosts[schedule.host].name;
        let late = schedule.tasks.iter().filter(|task| !task.is_met()).map(|task| {
            let name = &self.graph().tasks[task.task].name;
            let deadline = task.deadline.unwrap_or_default();
            let took = match task.slack {
                Some(slack) => format!("may take {}", deadline - slack),
                None => "may take any time".to_owned(),
            };
            let message = format!(
                "task `{name}` {took} on CPU {} of `{host}`, with a deadline of {deadline}",
                schedule.core
            );
            let node = self.system.and_then(|s| s.nodes.iter().find(|n| n.name == *host));
            let at = node.map(|node| (node.origin, "its tasks share this"));
            let help = "shorten the work of its tasks, change priorities, or add a CPU";
            self.warning(codes::NOT_SCHEDULABLE, message, at, help)
        });
        late.collect()
    }

    fn troubles(&self) -> Vec<Diagnostic> {
        let timing = &self.study.platform;
        let mut full = Vec::new();
        let mut found = Vec::new();
        for trouble in &timing.hazards {
            match trouble {
                Hazard::Overflow { channel, .. } if full.contains(channel) => {}
                Hazard::Overflow { row, channel } => {
                    full.push(*channel);
                    let (name, at) = self.channel(*channel);
                    let place = self.place(timing, *row);
                    let message = format!("channel `{name}` may be full when {place} writes to it");
                    let at = at.map(|origin| (origin, "this channel"));
                    let help = "read it as often as it is written, or enlarge it";
                    found.push(self.warning(codes::OVERFLOW, message, at, help));
                }
                Hazard::Deadlock { rows } => {
                    let places: Vec<_> = rows.iter().map(|row| self.place(timing, *row)).collect();
                    let message = format!("tasks wait for each other: {}", places.join(", "));
                    let task = rows.first().map(|row| timing.rows[*row].task);
                    let at = task.and_then(|task| self.program(task));
                    let at = at.map(|origin| (origin, "this program"));
                    let help = "let one of them write before it reads";
                    found.push(self.warning(codes::DEADLOCK, message, at, help));
                }
            }
        }
        found
    }
}

/// How many places of a path are said at its begin and at its end.
const PLACES_MAX: usize = 12;

/// The begin and the end of a long path, with how many places are between them.
fn shortened(mut places: Vec<String>) -> Vec<String> {
    if let Some(more) = places.len().checked_sub(2 * PLACES_MAX + 1) {
        let between = PLACES_MAX..=PLACES_MAX + more;
        places.splice(between, [format!("({} more)", more + 1)]);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{PLACES_MAX, shortened};

    #[test]
    fn of_a_long_path_the_begin_and_the_end_are_said() {
        let path = |count: usize| (0..count).map(|place| place.to_string()).collect::<Vec<_>>();
        assert_eq!(shortened(path(2 * PLACES_MAX)), path(2 * PLACES_MAX));
        let said = shortened(path(1_000));
        assert_eq!(said.len(), 2 * PLACES_MAX + 1);
        assert_eq!(said[PLACES_MAX - 1..=PLACES_MAX + 1], ["11", "(976 more)", "988"]);
        assert_eq!(shortened(path(2 * PLACES_MAX + 1))[PLACES_MAX], "(1 more)");
    }
}
