//! What a task does, step by step, and what comes of it by the reference's rules: a direct reading
//! of docs/timed-c.md, which shares nothing with the compiler or its run time.

use crate::trace::Event;
use std::collections::BTreeSet;

/// Index of a variable.
pub(crate) type Variable = usize;

/// What a branch looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    /// `(v & mask) == value`
    Bits(Variable, i64, i64),
    /// `v < limit`
    Less(Variable, i64),
}

/// A deadline, or the variable that holds it in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    Constant(i64),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Soft,
    Firm,
    Hard,
}

/// A timing point.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) kind: Kind,
    pub(crate) period_ns: i64,
    pub(crate) deadline: Deadline,
    pub(crate) line: usize,
    /// Where it stands among the steps.
    pub(crate) at: usize,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `to = (from * times + plus) & 255`
    Set {
        to: Variable,
        from: Variable,
        times: i64,
        plus: i64,
    },
    Put(Variable, i64),
    Increment(Variable),
    /// Continues, or to a step if the condition does not hold.
    Unless(Condition, usize),
    Jump(usize),
    /// A loop begins; the first step that is executed again.
    Loop(usize),
    /// A declared execution time as a statement.
    Pass(i64),
    /// A call that takes time.
    Call(i64),
    Return,
    /// What the variable holds is printed.
    Note(Variable),
    /// A timing point; its overshoot is added to a variable.
    Point(usize, Option<Variable>),
    Gettime(Variable),
    Skip,
    Critical,
    /// A critical block is left, at its end or from its middle.
    Leave {
        is_end: bool,
    },
}

/// A task's program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) points: Vec<Point>,
    pub(crate) variables: Vec<i64>,
    pub(crate) keeps_phase: bool,
}

/// What may be the next timing point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Point(usize),
    End,
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) trace: Vec<Event>,
    pub(crate) notes: Vec<i64>,
}

/// What the compiler must say of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accepted,
    Refused(BTreeSet<&'static str>),
    /// The reference leaves open what happens.
    Open,
}

impl Program {
    fn successors(&self, at: usize) -> Vec<usize> {
        match self.steps[at] {
            Step::Return => vec![],
            Step::Jump(to) => vec![to],
            Step::Unless(_, to) => vec![at + 1, to],
            _ => vec![at + 1],
        }
    }

    /// The points that may be next, by step.
    fn next(&self) -> Vec<BTreeSet<Next>> {
        let mut next = vec![BTreeSet::new(); self.steps.len()];
        loop {
            let before = next.clone();
            for at in (0..self.steps.len()).rev() {
                next[at] = match self.steps[at] {
                    Step::Point(point, _) => BTreeSet::from([Next::Point(point)]),
                    Step::Return => BTreeSet::from([Next::End]),
                    // Control enters a `for` loop for certain whose rounds are constant.
                    Step::Put(n, from) => match self.steps.get(at + 1) {
                        Some(Step::Unless(Condition::Less(of, limit), _))
                            if *of == n && from < *limit =>
                        {
                            next[at + 2].clone()
                        }
                        _ => next[at + 1].clone(),
                    },
                    _ => self.successors(at).iter().flat_map(|to| next[*to].clone()).collect(),
                };
            }
            if before == next {
                return next;
            }
        }
    }

    fn is_firm(&self, next: &Next) -> bool {
        matches!(next, Next::Point(p) if self.points[*p].kind != Kind::Soft)
    }

    /// The firm and hard points among those that may be next, if they have one deadline.
    fn guard(&self, next: &BTreeSet<Next>) -> Result<Option<usize>, ()> {
        let mut firm: Vec<usize> = next
            .iter()
            .filter(|n| self.is_firm(n))
            .filter_map(|n| if let Next::Point(p) = n { Some(*p) } else { None })
            .collect();
        firm.sort_by_key(|p| self.points[*p].line);
        let one = firm.windows(2).all(|w| self.points[w[0]].deadline == self.points[w[1]].deadline);
        if one { Ok(firm.first().copied()) } else { Err(()) }
    }

    /// What the compiler has to say.
    pub(crate) fn verdict(&self) -> Verdict {
        let next = self.next();
        let is_many: Vec<bool> = next.iter().map(|n| self.guard(n).is_err()).collect();
        let mut codes = BTreeSet::new();
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Pass(_) if is_many[at] => return Verdict::Open,
                Step::Call(_) | Step::Note(_) if is_many[at] => {
                    codes.insert("OB4006");
                }
                Step::Skip
                    if next[at].len() != 1 || !matches!(next[at].first(), Some(Next::Point(_))) =>
                {
                    codes.insert("OB4009");
                }
                Step::Leave { is_end: true } if !next[at].iter().all(|n| self.is_firm(n)) => {
                    codes.insert("OB4005");
                }
                _ => {}
            }
            if is_many[at] && self.comes_back(at, &is_many) {
                codes.insert("OB4006");
            }
        }
        if codes.is_empty() { Verdict::Accepted } else { Verdict::Refused(codes) }
    }

    /// Whether a loop leads from a step to itself over such steps.
    fn comes_back(&self, from: usize, within: &[bool]) -> bool {
        let (mut open, mut seen) = (self.successors(from), BTreeSet::new());
        while let Some(at) = open.pop() {
            if at == from {
                return true;
            }
            if within[at] && seen.insert(at) {
                open.extend(self.successors(at));
            }
        }
        false
    }

    /// What it does until `end_ns`.
    pub(crate) fn run(&self, end_ns: i64) -> Outcome {
        let no_point: Vec<bool> =
            self.steps.iter().map(|s| !matches!(s, Step::Point(..))).collect();
        let busy = (0..self.steps.len()).map(|s| no_point[s] && self.comes_back(s, &no_point));
        let busy = busy.collect();
        let mut machine = Machine {
            program: self,
            next: self.next(),
            variables: self.variables.clone(),
            now: 0,
            origin: 0,
            critical: false,
            is_aborted: false,
            is_skipping: false,
            busy,
            outcome: Outcome::default(),
        };
        machine.tell("start", String::new(), 0);
        let mut at = Some(0);
        while let Some(now_at) = at
            && machine.now < end_ns
        {
            at = machine.step(now_at);
        }
        if at.is_none() {
            machine.tell("end", String::new(), 0);
        }
        machine.outcome.trace.retain(|event| event.time_ns < end_ns);
        machine.outcome
    }
}

struct Machine<'p> {
    program: &'p Program,
    next: Vec<BTreeSet<Next>>,
    variables: Vec<i64>,
    now: i64,
    origin: i64,
    critical: bool,
    is_aborted: bool,
    is_skipping: bool,
    /// Steps on loops without a timing point.
    busy: Vec<bool>,
    outcome: Outcome,
}

const MS: i64 = 1_000_000;

impl Machine<'_> {
    fn tell(&mut self, event: &str, place: String, value_ns: i64) {
        let task = self.program.name.clone();
        let time_ns = self.now;
        self.outcome.trace.push(Event { time_ns, task, event: event.to_owned(), place, value_ns });
    }

    fn holds(&self, condition: Condition) -> bool {
        match condition {
            Condition::Bits(v, mask, value) => self.variables[v] & mask == value,
            Condition::Less(v, limit) => self.variables[v] < limit,
        }
    }

    fn deadline(&self, point: usize) -> i64 {
        match self.program.points[point].deadline {
            Deadline::Constant(ns) => ns,
            Deadline::Variable(v) => self.variables[v] * MS,
        }
    }

    /// Something runs for so long; where control continues when it is aborted.
    fn pass(&mut self, at: usize, span: i64) -> Option<usize> {
        let end = self.now + span;
        if let Ok(Some(point)) = self.program.guard(&self.next[at])
            && !self.critical
        {
            let due = self.origin + self.deadline(point);
            if end > due {
                self.now = self.now.max(due);
                self.is_aborted = true;
                return Some(self.program.points[point].at);
            }
        }
        self.now = end;
        None
    }

    fn step(&mut self, at: usize) -> Option<usize> {
        let is_looked_at = match self.program.steps[at] {
            Step::Loop(first) => self.busy[first],
            Step::Pass(_) | Step::Call(_) | Step::Note(_) | Step::Leave { .. } => false,
            _ => self.busy[at],
        };
        if is_looked_at && let Some(to) = self.pass(at, 0) {
            return Some(to);
        }
        match self.program.steps[at].clone() {
            Step::Set { to, from, times, plus } => {
                self.variables[to] = (self.variables[from] * times + plus) & 255;
            }
            Step::Put(v, value) => self.variables[v] = value,
            Step::Increment(v) => self.variables[v] += 1,
            Step::Unless(condition, to) if !self.holds(condition) => return Some(to),
            Step::Unless(..) => {}
            Step::Jump(to) => return Some(to),
            Step::Pass(span) | Step::Call(span) => {
                if let Some(to) = self.pass(at, span) {
                    return Some(to);
                }
            }
            Step::Loop(_) => {}
            Step::Return => return None,
            Step::Note(v) => {
                if let Some(to) = self.pass(at, 0) {
                    return Some(to);
                }
                self.outcome.notes.push(self.variables[v]);
            }
            Step::Point(point, into) => self.point(point, into),
            Step::Gettime(v) => {
                self.origin = self.now;
                self.variables[v] = self.now / MS;
            }
            Step::Skip => {
                self.is_skipping = true;
                let Some(Next::Point(point)) = self.next[at].first() else { return None };
                return Some(self.program.points[*point].at);
            }
            Step::Critical => self.critical = true,
            Step::Leave { .. } => {
                self.critical = false;
                return self.pass(at, 0).or(Some(at + 1));
            }
        }
        Some(at + 1)
    }

    fn point(&mut self, index: usize, into: Option<Variable>) {
        let point = self.program.points[index].clone();
        let place = point.line.to_string();
        let release = self.origin + point.period_ns;
        let overshoot = (self.now - self.origin - self.deadline(index)).max(0);
        let is_aborted = std::mem::take(&mut self.is_aborted);
        self.tell(if is_aborted { "abort" } else { "arrive" }, place.clone(), overshoot);
        if std::mem::take(&mut self.is_skipping) {
            self.tell("skip", place, 0);
            self.origin = self.now;
            return;
        }
        if point.kind == Kind::Hard && (is_aborted || overshoot > 0) {
            self.tell("late", place.clone(), overshoot);
        }
        let late = self.now > release;
        self.now = self.now.max(release);
        self.origin = if late && !self.program.keeps_phase { self.now } else { release };
        self.tell("release", place, overshoot);
        if let Some(v) = into {
            self.variables[v] = (self.variables[v] + overshoot / MS) & 255;
        }
    }
}
