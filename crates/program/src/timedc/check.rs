//! Checks of control flow.

use super::construct::{Constructs, Deadline};
use super::flow::{Flow, StepKind};
use super::guard::{Guard, Guards, Next, locals};
use super::program::Program;
use super::solve::{backward, cyclic, forward, reachable};
use super::syntax::children;
use super::unit::{Role, Unit};
use super::{bound, codes};
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::graph::PointKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use tree_sitter::Node;

/// All that the checks look at.
pub(super) struct Checker<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub constructs: &'u Constructs<'t>,
    pub program: &'u Program<'t>,
    pub flows: &'u [Flow<'t>],
    pub guards: &'u [Guards],
    /// Functions in which something is called that cannot be aborted, there or in what they call.
    pub risky: HashSet<usize>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Calls that leave a process in disorder when they are aborted, or later.
const NEVER_ABORTED: [&str; 17] = [
    "fork",
    "vfork",
    "pthread_create",
    "pthread_exit",
    "thrd_create",
    "thrd_exit",
    "setjmp",
    "_setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "alloca",
    "__builtin_alloca",
    "__builtin_setjmp",
    "__builtin_longjmp",
];

/// Reads of network channels that may wait.
const READS: [&str; 4] = ["chan_read", "chan_read_wait", "pdu_read", "pdu_read_wait"];

impl<'t> Checker<'_, 't> {
    pub(super) fn run(&mut self) {
        self.criticals();
        self.task_counts();
        self.called_points();
        for function in 0..self.flows.len() {
            self.assignments(function);
            self.guarded_calls(function);
            self.blocks(function);
        }
    }

    /// `critical` has a block.
    fn blocks(&mut self, function: usize) {
        let subject = &self.unit.functions[function];
        for index in 0..self.flows[function].statements.len() {
            let statement = self.flows[function].statements[index];
            let Some(word) = children(statement).first().copied() else { continue };
            let is_word = matches!(word.kind(), "identifier" | "type_identifier")
                && self.unit.words(word) == "critical"
                && !self.unit.names.contains("critical")
                && self.unit.resolve(subject, "critical", word.start_byte()).is_none();
            if is_word && matches!(statement.kind(), "expression_statement" | "declaration") {
                let help = "write `critical { … }`";
                let text = "`critical` has no block";
                self.error(codes::FORM, word.byte_range(), text, "here", help);
            }
        }
    }

    fn error(&mut self, code: Code, at: Range<usize>, text: &str, label: &str, help: &str) {
        let at = self.unit.at(at);
        self.diagnostics.push(Diagnostic::error(code, text, at, label).help(help));
    }

    fn is_firm(&self, next: &Next) -> bool {
        matches!(next, Next::Point(p) if self.constructs.points[*p].kind != PointKind::Soft)
    }

    /// Behind a critical block a firm or hard point comes on every way.
    fn criticals(&mut self) {
        // Functions behind all of whose calls a firm or hard point comes; of those that other
        // units may call nobody knows.
        let mut followed: HashSet<usize> = HashSet::new();
        for (index, function) in self.unit.functions.iter().enumerate() {
            let is_called = self.program.sites.iter().any(|s| s.callee == index && !s.starts);
            if function.role == Role::Plain && (is_called || !function.is_static) {
                followed.insert(index);
            }
        }
        loop {
            let before = followed.len();
            for site in self.program.sites.iter().filter(|s| !s.starts) {
                let steps = &self.flows[site.caller].steps;
                let Some(at) = steps.iter().position(|s| s.kind == StepKind::Call(site.call))
                else {
                    continue;
                };
                let mut behind = steps[at].next.iter();
                if !behind.all(|n| self.leads_to_firm(site.caller, *n, &followed)) {
                    followed.remove(&site.callee);
                }
            }
            if followed.len() == before {
                break;
            }
        }
        for function in 0..self.flows.len() {
            let flow = &self.flows[function];
            let ends = flow.steps.iter().enumerate().filter_map(|(n, s)| match s.kind {
                StepKind::CriticalEnd(node) => Some((n, node)),
                _ => None,
            });
            for (at, node) in ends.collect::<Vec<_>>() {
                if !self.leads_to_firm(function, at, &followed)
                    && self.guards[function].assigned[at].is_some()
                {
                    let help = "add a firm or hard timing point after it, or remove `critical`";
                    let text = "no firm or hard timing point follows the critical block";
                    let at = node.start_byte()..node.start_byte() + 8;
                    self.error(codes::CRITICAL, at, text, "nothing to wait for", help);
                }
            }
        }
    }

    fn leads_to_firm(&self, function: usize, step: usize, followed: &HashSet<usize>) -> bool {
        let next = &self.guards[function].next[step];
        let is_firm = |next: &Next| match next {
            // The called function's first point is not known to be soft.
            Next::Called => true,
            Next::End => followed.contains(&function),
            Next::Point(_) => self.is_firm(next),
        };
        !next.is_empty() && next.iter().all(is_firm)
    }

    /// Where `skipdelay` goes: the point that is next on every way.
    pub(super) fn skips(&mut self, function: usize) -> BTreeMap<usize, usize> {
        let mut found = BTreeMap::new();
        for (at, step) in self.flows[function].steps.iter().enumerate() {
            let StepKind::Skip(node) = step.kind else { continue };
            let next: Vec<Next> = self.guards[function].next[at].iter().copied().collect();
            if let [Next::Point(point)] = next[..] {
                found.insert(node.id(), point);
                continue;
            }
            let (text, help) = match next.len() {
                0 | 1 => ("no timing point follows `skipdelay` here", "put one behind it"),
                _ => (
                    "`skipdelay` has no single timing point to go to",
                    "put it where one timing point is next on every path",
                ),
            };
            let at = self.unit.at(node.byte_range());
            let mut wrong = Diagnostic::error(codes::SKIP, text, at, "no single target").help(help);
            for point in &next {
                wrong = match point {
                    Next::Point(p) => {
                        let call = self.constructs.points[*p].call;
                        wrong.related(self.unit.at(call.byte_range()), "this may be next")
                    }
                    Next::Called | Next::End => {
                        let body = self.unit.functions[function].body;
                        let end = body.end_byte().saturating_sub(1)..body.end_byte();
                        let label = match point {
                            Next::End => "the function may end before",
                            _ => "or a point in a called function",
                        };
                        wrong.related(self.unit.at(end), label)
                    }
                };
            }
            self.diagnostics.push(wrong);
        }
        found
    }

    /// Variables in timing arguments have values.
    fn assignments(&mut self, function: usize) {
        let (flow, guards) = (&self.flows[function], &self.guards[function]);
        let subject = &self.unit.functions[function];
        let mut told = BTreeSet::new();
        for (at, step) in flow.steps.iter().enumerate() {
            let StepKind::Point(index) = step.kind else { continue };
            let Some(assigned) = &guards.assigned[at] else { continue };
            let point = &self.constructs.points[index];
            let mut arguments = vec![point.period.node];
            if let Deadline::Length(length) = point.deadline {
                arguments.push(length.node);
            }
            for argument in arguments {
                for variable in locals(self.unit, subject, argument) {
                    let known = &subject.variables[variable];
                    if known.is_static || known.is_parameter {
                        continue;
                    }
                    let early = self.early(function, index, variable);
                    if (assigned.contains(&variable) && early.is_none())
                        || !told.insert((argument.id(), variable))
                    {
                        continue;
                    }
                    let text = match early {
                        Some(_) if assigned.contains(&variable) => format!(
                            "after an abort `{}` may have no value at this point",
                            known.name
                        ),
                        _ => format!("`{}` may have no value here", known.name),
                    };
                    let at = self.unit.at(argument.byte_range());
                    let mut found = Diagnostic::error(codes::UNASSIGNED, text, at, "used here")
                        .help("initialise it in its declaration")
                        .related(self.unit.at(known.place.clone()), "declared here");
                    if let Some(early) = early.filter(|_| assigned.contains(&variable)) {
                        found =
                            found.related(self.unit.at(early), "an abort may come here already");
                    }
                    self.diagnostics.push(found);
                }
            }
        }
    }

    /// Code from which control may go to the point although the variable has no value yet.
    fn early(&self, function: usize, point: usize, variable: usize) -> Option<Range<usize>> {
        let (flow, guards) = (&self.flows[function], &self.guards[function]);
        let found = flow.steps.iter().enumerate().find(|(at, step)| {
            let comes = match step.kind {
                StepKind::Call(_) | StepKind::Start(_) => guards.at[*at] == Guard::Of(point),
                StepKind::Skip(_) => guards.next[*at] == BTreeSet::from([Next::Point(point)]),
                _ => false,
            };
            comes && guards.assigned[*at].as_ref().is_some_and(|a| !a.contains(&variable))
        });
        found.map(|(_, step)| step.place.clone())
    }

    /// Tasks are started once by each place that starts them.
    fn task_counts(&mut self) {
        let loops: Vec<HashSet<usize>> = self
            .flows
            .iter()
            .map(|flow| {
                let live = reachable(&flow.steps);
                cyclic(&flow.steps, |n| live.contains(&n))
            })
            .collect();
        let in_loop = |caller: usize, call: Node<'t>| {
            let mut steps = self.flows[caller].steps.iter().enumerate();
            steps.any(|(n, s)| {
                matches!(s.kind, StepKind::Call(c) | StepKind::Start(c) if c == call)
                    && loops[caller].contains(&n)
            })
        };
        let starting: HashSet<usize> =
            self.program.sites.iter().filter(|s| s.starts).map(|s| s.caller).collect();
        let starters = self.program.callers(starting);
        let mut found = Vec::new();
        for site in &self.program.sites {
            let name = self.unit.functions[site.callee].name;
            let text = match () {
                () if site.starts && in_loop(site.caller, site.call) => {
                    format!("the task `{name}` is started in a loop")
                }
                () if site.starts && self.comes_back(site.callee, site.caller) => {
                    format!("the task `{name}` is started by itself")
                }
                () if !site.starts
                    && starters.contains(&site.callee)
                    && (in_loop(site.caller, site.call)
                        || self.comes_back(site.callee, site.caller)) =>
                {
                    format!("`{name}`, which starts tasks, is called in a loop")
                }
                () => continue,
            };
            found.push((site.call, text));
        }
        // A prototype's task is not a function of this unit.
        for (caller, flow) in self.flows.iter().enumerate() {
            for step in &flow.steps {
                if let StepKind::Start(call) = step.kind
                    && !self.program.by_call.contains_key(&call.id())
                    && in_loop(caller, call)
                {
                    let name = self.unit.callee(call).unwrap_or("");
                    found.push((call, format!("the task `{name}` is started in a loop")));
                }
            }
        }
        let help =
            "write one call for each task: their number must be known before the program runs";
        for (call, text) in found {
            let label = "the number of tasks is unknown";
            self.error(codes::TASK_COUNT, call.byte_range(), &text, label, help);
        }
    }

    /// Whether a function calls, or starts, another one, directly or not.
    fn comes_back(&self, from: usize, to: usize) -> bool {
        let mut seen = HashSet::from([from]);
        let mut open = vec![from];
        while let Some(now) = open.pop() {
            if now == to {
                return true;
            }
            for site in self.program.sites.iter().filter(|s| s.caller == now) {
                if seen.insert(site.callee) {
                    open.push(site.callee);
                }
            }
        }
        false
    }

    /// A firm or hard point of a called function cannot end a segment that its caller began.
    fn called_points(&mut self) {
        if self.unit.options.origin == super::Origin::Function {
            // A called function's segment begins where it does.
            return;
        }
        // Which functions' first points are firm or hard, and whether code follows their last one.
        let mut first: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.flows.len()];
        let mut trails = vec![false; self.flows.len()];
        let order = self.program.callees_first(self.flows.len());
        loop {
            let before = (first.clone(), trails.clone());
            for function in order.iter().copied() {
                first[function] = self.first_points(function, &first);
                let ages = self.ages(function, &trails);
                trails[function] = ages[self.flows[function].exit] == Some(true);
            }
            if before == (first.clone(), trails.clone()) {
                break;
            }
        }
        for function in 0..self.flows.len() {
            let ages = self.ages(function, &trails);
            for (at, step) in self.flows[function].steps.iter().enumerate() {
                let StepKind::Call(call) = step.kind else { continue };
                let Some(callee) = self.program.callee(call) else { continue };
                let Some(point) = first[callee].first().filter(|_| ages[at] == Some(true)) else {
                    continue;
                };
                let name = self.unit.functions[callee].name;
                let text = format!(
                    "`{name}` would end at its timing point a segment that began before the call"
                );
                let point = self.constructs.points[*point].call;
                let at = self.unit.at(call.byte_range());
                let found = Diagnostic::error(codes::CONTINUE, text, at, "called in a segment")
                    .help("call it right after a timing point, or give the delay in this function")
                    .related(self.unit.at(point.byte_range()), "its first timing point");
                self.diagnostics.push(found);
            }
        }
    }

    fn first_points(&self, function: usize, first: &[BTreeSet<usize>]) -> BTreeSet<usize> {
        let steps = &self.flows[function].steps;
        let all = backward(
            steps,
            |all, more: &BTreeSet<usize>| all.extend(more.iter().copied()),
            |node, behind| match steps[node].kind {
                StepKind::Point(p) => {
                    let point = &self.constructs.points[p];
                    point.guard().map(|_| p).into_iter().collect()
                }
                StepKind::Call(call) if self.program.has_points(call) => {
                    self.program.callee(call).map(|f| first[f].clone()).unwrap_or_default()
                }
                _ => behind,
            },
        );
        all[0].clone()
    }

    /// Whether calls may have been made since the last timing point, or the function's beginning.
    fn ages(&self, function: usize, trails: &[bool]) -> Vec<Option<bool>> {
        let steps = &self.flows[function].steps;
        forward(
            steps,
            false,
            |all, more| *all |= *more,
            |node, before| match steps[node].kind {
                StepKind::Point(_) => false,
                StepKind::Call(call) if self.program.has_points(call) => {
                    self.program.callee(call).is_some_and(|f| trails[f])
                }
                StepKind::Call(_) => true,
                _ => *before,
            },
        )
    }

    /// Calls in guarded code that must not be aborted, and reads that may be.
    fn guarded_calls(&mut self, function: usize) {
        let (flow, guards) = (&self.flows[function], &self.guards[function]);
        let mut found = Vec::new();
        for (at, step) in flow.steps.iter().enumerate() {
            let (StepKind::Call(call), Guard::Of(point)) = (step.kind, guards.at[at]) else {
                continue;
            };
            if step.in_critical || guards.assigned[at].is_none() {
                continue;
            }
            let name = self.unit.callee(call).unwrap_or("");
            let subject = &self.unit.functions[function];
            let reads = bound::reads_network(self.unit, subject, call);
            if NEVER_ABORTED.contains(&name) {
                found.push((call, call, point));
            } else if reads.unwrap_or(READS.contains(&name)) {
                self.read(call, point);
            } else if let Some(callee) = self.program.callee(call) {
                for inner in self.never_aborted_in(callee) {
                    found.push((inner, call, point));
                }
            }
        }
        let mut told = HashSet::new();
        for (inner, outer, point) in found {
            if !told.insert(inner.id()) {
                continue;
            }
            let name = self.unit.callee(inner).unwrap_or("");
            let text = format!("`{name}` cannot be aborted");
            let at = self.unit.at(inner.byte_range());
            let mut wrong = Diagnostic::error(codes::CALL, text, at, "in guarded code")
                .help("move it into `critical { … }`, or where no firm or hard point follows");
            if inner != outer {
                wrong = wrong.related(self.unit.at(outer.byte_range()), "called from here");
            }
            let point = self.constructs.points[point].call;
            wrong = wrong.related(self.unit.at(point.byte_range()), "the abort goes here");
            self.diagnostics.push(wrong);
        }
    }

    /// Calls that must not be aborted, in a function and all that it calls.
    fn never_aborted_in(&self, function: usize) -> Vec<Node<'t>> {
        if !self.risky.contains(&function) {
            return Vec::new();
        }
        let mut all: Vec<usize> =
            self.program.callees(HashSet::from([function])).into_iter().collect();
        all.sort_unstable();
        let steps = all.into_iter().flat_map(|f| self.flows[f].steps.iter());
        steps
            .filter_map(|s| match s.kind {
                StepKind::Call(call) if !s.in_critical => {
                    let name = self.unit.callee(call).unwrap_or("");
                    NEVER_ABORTED.contains(&name).then_some(call)
                }
                _ => None,
            })
            .collect()
    }

    fn read(&mut self, call: Node<'t>, point: usize) {
        let point = self.constructs.points[point].call;
        let text = "a read that may wait comes before a firm or hard timing point";
        let at = self.unit.at(call.byte_range());
        let found = Diagnostic::error(codes::BLOCKING, text, at, "aborted if no message comes")
            .help("read after a soft point, or check `timedc_aborted()` before using the value")
            .related(self.unit.at(point.byte_range()), "by this point's deadline")
            .warning();
        self.diagnostics.push(found);
    }
}

/// Functions in which something is called that cannot be aborted, there or in what they call.
pub(super) fn risky(unit: &Unit<'_>, program: &Program<'_>, flows: &[Flow<'_>]) -> HashSet<usize> {
    let is_risky = |what: &StepKind<'_>| match what {
        StepKind::Call(call) => NEVER_ABORTED.contains(&unit.callee(*call).unwrap_or("")),
        _ => false,
    };
    let own = (0..flows.len()).filter(|f| flows[*f].steps.iter().any(|s| is_risky(&s.kind)));
    program.callers(own.collect())
}
