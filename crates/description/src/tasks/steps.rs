//! The steps of a task, one by one: what each does, and that it is one thing.

use super::parse::{Step as Written, Steps};
use super::raw::{self, NoDeadline, Rounds, Times, Units};
use super::{codes, limits};
use crate::At;
use crate::Sink;
use crate::codes as shared;
use crate::fields::{Fields, MS, NS, S, US, presence};
use crate::names::Names;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{Interval, PointKind};
use onbeat_model::time::Span;

/// A step that is right.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) what: Does,
    /// What it is called, if that is stated.
    pub(super) place: Option<String>,
    pub(super) at: Origin,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Does {
    Work(Interval),
    Point { kind: PointKind, period: i64, deadline: Option<i64> },
    Write { channel: usize, waits: bool },
    Read { channel: usize, waits: bool },
    Loop { rounds: Count, steps: Vec<Step> },
    Either(Vec<Vec<Step>>),
    Critical(Vec<Step>),
    Lock { resource: usize, steps: Vec<Step> },
    Start(usize),
    Skip,
    Gettime,
    Break,
}

/// How many iterations a loop has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Times(i64),
    Ever,
    Unknown,
}

/// What steps name.
pub(super) struct Checker<'a> {
    pub(super) channels: &'a Names<usize>,
    pub(super) tasks: &'a Names<usize>,
    /// Those that were named so far.
    pub(super) resources: &'a mut Vec<String>,
    pub(super) sink: &'a mut Sink,
}

/// Nanoseconds of the units, in the order of [`Units`].
const UNITS: [i64; 4] = [S, MS, US, NS];

/// Where one of a time's keys is.
fn stated<T>(keys: Units<'_, T>) -> Option<Origin> {
    keys.iter().find_map(|(_, value)| value.as_ref().map(|v| v.at))
}

impl Checker<'_> {
    /// The steps of which nothing is wrong.
    pub(super) fn steps(&mut self, written: &Steps) -> Vec<Step> {
        written.list.iter().filter_map(|step| self.step(step)).collect()
    }

    fn step(&mut self, written: &Written) -> Option<Step> {
        let place = self.place(&written.entry.raw.at);
        let what = self.what(written);
        Some(Step { what: what?, place, at: written.entry.at })
    }

    fn place(&mut self, place: &Option<At<raw::StepName>>) -> Option<String> {
        let At { value: raw::StepName(name), at } = place.as_ref()?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        if !name.is_empty() && name.len() <= limits::NAME_OCTETS && name.chars().all(allowed) {
            return Some(name.clone());
        }
        let message = "`at` is not a place";
        let help =
            format!("use 1 to {} letters, digits, `-`, `_`, `.`, `:` and `/`", limits::NAME_OCTETS);
        let wrong = Diagnostic::error(shared::BAD_NAME, message, *at, "this place").help(help);
        self.sink.push(wrong);
        None
    }

    /// The keys that say what the step does, of which there must be one.
    fn deeds(written: &Written) -> Vec<(&'static str, Origin)> {
        let raw = &written.entry.raw;
        let of = |key, at: Option<Origin>| at.map(|at| (key, at));
        let all = [
            of("work", stated(raw.work())),
            of("soft", stated(raw.soft())),
            of("firm", stated(raw.firm())),
            of("hard", stated(raw.hard())),
            of("write", raw.write.as_ref().map(|k| k.at)),
            of("read", raw.read.as_ref().map(|k| k.at)),
            of("loop", raw.rounds.as_ref().map(|k| k.at)),
            of("lock", raw.lock.as_ref().map(|k| k.at)),
            of("either", written.either.as_ref().map(|(_, at)| *at)),
            of("critical", written.critical.as_ref().map(|steps| steps.at)),
            of("start", raw.start.as_ref().map(|k| k.at)),
            of("skip", raw.skip.as_ref().map(|k| k.at)),
            of("gettime", raw.gettime.as_ref().map(|k| k.at)),
            of("break", raw.leave.as_ref().map(|k| k.at)),
        ];
        all.into_iter().flatten().collect()
    }

    fn what(&mut self, written: &Written) -> Option<Does> {
        let deeds = Self::deeds(written);
        let Some(&(first, first_at)) = deeds.first() else {
            if !written.entry.is_hopeless() {
                let help = "use one of `work_us`, `soft_ms`, `firm_ms`, `hard_ms` (with any \
                            unit), `write`, `read`, `loop`, `either`, `critical`, `lock`, \
                            `start`, `skip`, `gettime` and `break`";
                self.wrong("this step does nothing", written.entry.at, help);
            }
            return None;
        };
        if let Some((second, at)) = deeds.get(1) {
            let message = format!("this step is both `{first}` and `{second}`");
            let both = Diagnostic::error(codes::STEP, message, *at, "this key")
                .help("write two steps, { … }, { … }")
                .related(first_at, "and this one");
            self.sink.push(both);
            return None;
        }
        self.strangers(written, first);
        let raw = &written.entry.raw;
        let inner = |this: &mut Self| {
            if written.steps.is_none() && !written.entry.is_broken("steps") {
                let message = format!("`{first}` has no `steps`");
                this.wrong(&message, first_at, "add steps = [ … ] to it");
            }
            this.some(written.steps.as_ref()?)
        };
        match first {
            "work" => self.work(written),
            "soft" | "firm" | "hard" => self.point(written, first),
            "write" | "read" => self.end(raw, first),
            "loop" => {
                let rounds = self.rounds(written);
                Some(Does::Loop { steps: inner(self)?, rounds: rounds? })
            }
            "lock" => {
                let resource = self.resource(raw.lock.as_ref()?);
                Some(Does::Lock { steps: inner(self)?, resource: resource? })
            }
            "either" => self.either(written),
            "critical" => self.some(written.critical.as_ref()?).map(Does::Critical),
            "start" => {
                let name = raw.start.as_ref()?;
                self.tasks.find(codes::UNKNOWN_TASK, name, self.sink).map(Does::Start)
            }
            "skip" => self.alone(first, &raw.skip, Does::Skip),
            "gettime" => self.alone(first, &raw.gettime, Does::Gettime),
            _ => self.alone(first, &raw.leave, Does::Break),
        }
    }

    /// Steps of which there must be one.
    fn some(&mut self, written: &Steps) -> Option<Vec<Step>> {
        if written.list.is_empty() {
            self.wrong("it has no steps", written.at, "add steps");
            return None;
        }
        Some(self.steps(written))
    }

    fn wrong(&mut self, message: &str, at: Origin, help: &str) {
        self.sink.push(Diagnostic::error(codes::STEP, message, at, "here").help(help));
    }

    /// Reports keys that belong to other steps.
    fn strangers(&mut self, written: &Written, deed: &str) {
        let raw = &written.entry.raw;
        let deadline = stated(raw.deadline()).or(raw.deadline.as_ref().map(|d| d.at));
        let steps = written.steps.as_ref().map(|steps| steps.at);
        let wait = raw.wait.as_ref().map(|w| w.at);
        for (key, at, of) in [
            ("deadline", deadline, &["soft", "firm", "hard"][..]),
            ("steps", steps, &["loop", "lock"]),
            ("wait", wait, &["write", "read"]),
        ] {
            if let Some(at) = at.filter(|_| !of.contains(&deed)) {
                let message = format!("`{deed}` has no key `{key}`");
                let help = format!("remove it: `{key}` belongs to `{}`", of.join("`, `"));
                let stranger = Diagnostic::error(codes::STEP, message, at, "this key");
                self.sink.push(stranger.help(help));
            }
        }
    }

    fn alone(&mut self, key: &str, value: &Option<At<bool>>, does: Does) -> Option<Does> {
        let value = value.as_ref()?;
        if !value.value {
            let message = format!("`{key} = false` does nothing");
            let help = format!("write `{key} = true`, or remove the step");
            self.wrong(&message, value.at, &help);
            return None;
        }
        Some(does)
    }

    /// What a duration is whose keys are these.
    fn time(&mut self, written: &Written, keys: Units<'_, i64>) -> Option<Span> {
        let mut fields = Fields::new(&written.entry, "step", &None, self.sink);
        let mut given = keys.into_iter().zip(UNITS).filter(|((_, value), _)| value.is_some());
        let (key, unit) = given.next()?;
        if let Some((other, _)) = given.next() {
            fields.either(key, other);
            return None;
        }
        fields.time(shared::OUT_OF_RANGE, key, unit, Span::ZERO..=limits::DURATION)
    }

    fn work(&mut self, written: &Written) -> Option<Does> {
        let keys = written.entry.raw.work();
        let cases = [|t: &Times| t.0, |t: &Times| t.1].map(|case| {
            keys.map(|(key, value)| (key, value.as_ref().map(|v| v.with(case(&v.value)))))
        });
        let [lo, hi] = &cases;
        let lo = self.time(written, lo.each_ref().map(|(key, value)| (*key, value)))?;
        let hi = self.time(written, hi.each_ref().map(|(key, value)| (*key, value)))?;
        if lo > hi {
            let at = written.entry.at;
            let message = format!("the best case {lo} is above the worst case {hi}");
            let wrong = Diagnostic::error(shared::MIN_ABOVE_MAX, message, at, "this step");
            self.sink.push(wrong.help("write the best case first, as in [100, 200]"));
            return None;
        }
        Some(Does::Work(Interval::between(lo, hi)))
    }

    fn point(&mut self, written: &Written, kind: &str) -> Option<Does> {
        let raw = &written.entry.raw;
        let (kind, keys) = match kind {
            "soft" => (PointKind::Soft, raw.soft()),
            "firm" => (PointKind::Firm, raw.firm()),
            _ => (PointKind::Hard, raw.hard()),
        };
        let period = self.time(written, keys)?;
        let keys = raw.deadline();
        let stated = keys.iter().find_map(|(key, value)| value.map(|v| (*key, v.at)));
        if let (Some(none), Some((key, _))) = (&raw.deadline, stated) {
            let mut fields = Fields::new(&written.entry, "step", &None, self.sink);
            let value = keys.iter().find_map(|(_, value)| **value);
            fields.either(("deadline", &presence(&Some(none.with(())))), (key, &value));
        }
        let deadline = match &raw.deadline {
            Some(At { value: NoDeadline::None, .. }) => None,
            None if stated.is_some() => Some(self.time(written, keys)?),
            None => Some(period),
        };
        if let (Some(deadline), Some((_, at))) = (deadline.filter(|d| *d > period), stated) {
            let message = format!("the deadline {deadline} is after the release at {period}");
            let wrong = Diagnostic::error(shared::MIN_ABOVE_MAX, message, at, "this deadline");
            self.sink.push(wrong.help("use at most the period as the deadline of a point"));
            return None;
        }
        Some(Does::Point { kind, period: period.as_ns(), deadline: deadline.map(Span::as_ns) })
    }

    fn end(&mut self, raw: &raw::Step, key: &str) -> Option<Does> {
        let waits = raw.wait.as_ref().is_some_and(|wait| wait.value);
        let name = if key == "write" { &raw.write } else { &raw.read };
        let found = self.channels.find(shared::UNKNOWN_CHANNEL, name.as_ref()?, self.sink);
        let channel = found?;
        Some(match key {
            "write" => Does::Write { channel, waits },
            _ => Does::Read { channel, waits },
        })
    }

    fn rounds(&mut self, written: &Written) -> Option<Count> {
        let At { value, at } = written.entry.raw.rounds?;
        match value {
            Rounds::Ever => Some(Count::Ever),
            Rounds::Unknown => Some(Count::Unknown),
            Rounds::Times(times) => {
                let mut fields = Fields::new(&written.entry, "step", &None, self.sink);
                let key = ("loop", &Some(At { value: times, at }));
                let times = fields.int(shared::OUT_OF_RANGE, key, 1..=limits::ROUNDS);
                times.map(Count::Times)
            }
        }
    }

    fn resource(&mut self, name: &At<String>) -> Option<usize> {
        use crate::names::{Alphabet, check_name};
        let right = check_name(name, "a resource", Alphabet::Plain, limits::NAME_OCTETS, self.sink);
        let known = self.resources.iter().position(|resource| *resource == name.value);
        let new = || {
            self.resources.push(name.value.clone());
            self.resources.len() - 1
        };
        right.then(|| known.unwrap_or_else(new))
    }

    fn either(&mut self, written: &Written) -> Option<Does> {
        let (ways, at) = written.either.as_ref()?;
        if ways.len() < 2 {
            let help = "write each branch as a list, as in [[{ work_us = 5 }], []]";
            self.wrong("`either` has fewer than two branches", *at, help);
            return None;
        }
        Some(Does::Either(ways.iter().map(|way| self.steps(way)).collect()))
    }
}
