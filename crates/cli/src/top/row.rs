//! An end in the table: its counts, by how much they grew, and where that puts it.

use super::SortBy;
use crate::stat::{EndKey, per_second, printable, program, worst_latency};
use crate::terminal::harmless;
use onbeat::shared_log::Counters;
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_run::inspect::LiveEndpoint;
use std::cmp::Ordering;

/// What does not apply, or is not known.
const NOTHING: &str = "-";

/// An end at two moments.
pub(super) struct Row {
    pub(super) key: EndKey,
    pub(super) end: LiveEndpoint,
    /// By how much its counts grew in the interval; none of one that is new, or has begun again.
    pub(super) growth: Option<Counters>,
    /// Its counts since it was opened, or since the totals were reset.
    pub(super) total: Counters,
    /// How long the interval was.
    pub(super) elapsed: Option<Span>,
}

/// The table's headings; of those from [`NUMBERS`] on, and the second, numbers follow.
pub(super) const HEADINGS: [&str; 15] = [
    "program", "pid", "channel", "end", "msg/s", "decl/s", "messages", "mean", "worst", "lost",
    "late", "rej.", "held", "dup.", "breaks",
];
pub(super) const NUMBERS: usize = 4;
/// Columns that have names, which may be shortened, and the one of which an initial is enough.
pub(super) const NAMES: [usize; 2] = [0, 2];
pub(super) const END: usize = 3;

/// What makes the table narrower.
pub(super) enum Step {
    /// One space between columns instead of two.
    Gap,
    /// Without this column.
    Drop(usize),
    /// T and L instead of talker and listener.
    Initial,
    /// Names of so many columns of the terminal.
    Shorten(usize),
}

/// These, one after the other, as long as the table is too wide.
pub(super) const STEPS: [Step; 15] = [
    Step::Gap,
    Step::Drop(14),
    Step::Drop(13),
    Step::Drop(6),
    Step::Initial,
    Step::Shorten(12),
    Step::Drop(5),
    Step::Drop(1),
    Step::Drop(8),
    Step::Shorten(8),
    Step::Drop(7),
    Step::Drop(12),
    Step::Drop(11),
    Step::Drop(END),
    Step::Drop(10),
];

/// A text of somebody else's, as one line that cannot steer the terminal.
pub(super) fn cleaned(text: &str) -> String {
    harmless(&printable(text)).into_owned()
}

/// A number with so many decimals, of so many of its smallest places.
fn fixed(number: impl Into<u128>, decimals: u32) -> String {
    let (number, places) = (number.into(), 10_u128.pow(decimals));
    if decimals == 0 {
        return number.to_string();
    }
    format!("{}.{:0width$}", number / places, number % places, width = decimals as usize)
}

/// A number of messages in this time as one a second, with three digits: `1000`, `49.9`, `0.25`.
pub(super) fn rate(count: u64, elapsed: Span) -> String {
    for decimals in [2, 1, 0] {
        match per_second(count, elapsed, 10_u64.pow(decimals)) {
            Some(0) if count > 0 => return "<0.01".to_owned(),
            Some(0) => return "0".to_owned(),
            Some(number) if number < 1_000 || decimals == 0 => return fixed(number, decimals),
            _ => {}
        }
    }
    NOTHING.to_owned()
}

/// A latency with four digits and its unit: `80.86µs`.
pub(super) fn short(span: Span) -> String {
    let (ns, sign) =
        (u128::from(span.as_ns().unsigned_abs()), if span < Span::ZERO { "-" } else { "" });
    if ns < 1_000 {
        return format!("{sign}{ns}ns");
    }
    for (unit_ns, unit) in [(1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")] {
        for decimals in [3, 2, 1] {
            let number = (ns * 10_u128.pow(decimals) + unit_ns / 2) / unit_ns;
            if number < 10_000 {
                return format!("{sign}{}{unit}", fixed(number, decimals));
            }
        }
    }
    format!("{sign}{}s", ns / 1_000_000_000)
}

/// How many messages did not come, or not as they should; and how many only waited to be sent.
fn wrong(counters: &Counters) -> (u64, u64) {
    let others = [counters.lost, counters.late, counters.expired, counters.breaks];
    let all = others.into_iter().fold(counters.rejected_in_all(), u64::saturating_add);
    (all, counters.rate_exceeded)
}

impl Row {
    pub(super) fn talks(&self) -> bool {
        self.end.identity.role == Role::Talker
    }

    /// Messages that went through the end.
    fn messages(&self, counters: &Counters) -> u64 {
        if self.talks() { counters.sent } else { counters.received }
    }

    /// What went wrong in the interval, as [`wrong`] counts it.
    fn wrong_now(&self) -> (u64, u64) {
        self.growth.as_ref().map_or((0, 0), wrong)
    }

    /// Whether something goes wrong now.
    pub(super) fn has_problem(&self) -> bool {
        self.wrong_now() != (0, 0) || self.is_silent()
    }

    /// Whether it had messages before and none in the interval, though that has at least two of the
    /// channel's.
    pub(super) fn is_silent(&self) -> bool {
        let (Some(growth), Some(elapsed)) = (&self.growth, self.elapsed) else { return false };
        let is_long = self.end.interval.is_some_and(|span| span.as_ns() <= elapsed.as_ns() / 2);
        is_long && self.messages(growth) == 0 && self.messages(&self.end.counters) > 0
    }

    /// The mean latency of the interval's messages, to the nearest nanosecond.
    pub(super) fn mean_latency(&self) -> Option<Span> {
        let growth = self.growth.filter(|growth| growth.received > 0 && !self.talks())?;
        self.end.interval?;
        let (sum, count) = (i128::from(growth.latency_sum_ns), i128::from(growth.received));
        i64::try_from((2 * sum + count).div_euclid(2 * count)).ok().map(Span::from_ns)
    }

    pub(super) fn worst_latency(&self) -> Option<Span> {
        worst_latency(&self.end).filter(|_| !self.talks())
    }

    /// The texts below [`HEADINGS`]; `me` is the user to whom programs are shown.
    pub(super) fn cells(&self, me: u32) -> [String; HEADINGS.len()] {
        let nothing = || NOTHING.to_owned();
        let span = |span: Option<Span>| span.map_or_else(nothing, short);
        let messages = |growth: &Counters| self.elapsed.map(|t| rate(self.messages(growth), t));
        // At which end, how many in all, and how many more.
        let count = |talks: bool, of: fn(&Counters) -> u64| {
            let total = of(&self.total);
            match (self.growth.as_ref().map(of), self.elapsed) {
                _ if talks != self.talks() => nothing(),
                (Some(more @ 1..), Some(elapsed)) => format!("{total} +{}/s", rate(more, elapsed)),
                _ => total.to_string(),
            }
        };
        [
            harmless(&program(&self.end, me)).into_owned(),
            self.end.pid.to_string(),
            cleaned(&self.end.identity.channel),
            if self.talks() { "talker" } else { "listener" }.to_owned(),
            self.growth.as_ref().and_then(messages).unwrap_or_else(nothing),
            self.end.interval.map_or_else(nothing, |interval| rate(1, interval)),
            self.messages(&self.total).to_string(),
            span(self.mean_latency()),
            span(self.worst_latency()),
            count(false, |c| c.lost),
            count(false, |c| c.late),
            count(false, Counters::rejected_in_all),
            count(true, |c| c.rate_exceeded),
            count(false, |c| c.duplicate),
            count(false, |c| c.breaks),
        ]
    }

    /// Which of two comes first.
    pub(super) fn compare(&self, other: &Self, by: SortBy) -> Ordering {
        // The larger one first; what is not known comes last.
        let most = |of: &dyn Fn(&Self) -> (Option<i128>, i128)| of(other).cmp(&of(self));
        let count = |of: fn(&Counters) -> u64| {
            most(&|row| (row.growth.map(|growth| of(&growth).into()), of(&row.total).into()))
        };
        let latency = |span: Option<Span>| span.map(|span| i128::from(span.as_ns()));
        let name = |row: &Self| row.end.program.clone();
        let channel = |row: &Self| row.end.identity.channel.clone();
        let first = match by {
            SortBy::Problems => {
                let place = |row: &Self| {
                    let ((wrong_now, held_now), is_silent) = (row.wrong_now(), row.is_silent());
                    (wrong_now, is_silent, held_now, wrong(&row.total))
                };
                place(other).cmp(&place(self))
            }
            SortBy::Rate => most(&|row| (row.growth.map(|growth| row.messages(&growth).into()), 0)),
            SortBy::Latency => most(&|row| (latency(row.mean_latency()), 0))
                .then_with(|| most(&|row| (latency(row.worst_latency()), 0))),
            SortBy::Lost => count(|c| c.lost),
            SortBy::Rejected => count(Counters::rejected_in_all),
            SortBy::Held => count(|c| c.rate_exceeded),
            SortBy::Program => name(self).cmp(&name(other)),
            SortBy::Pid => self.end.pid.cmp(&other.end.pid),
            SortBy::Channel => channel(self).cmp(&channel(other)),
        };
        first
            .then_with(|| name(self).cmp(&name(other)))
            .then_with(|| self.end.pid.cmp(&other.end.pid))
            .then_with(|| channel(self).cmp(&channel(other)))
            .then_with(|| self.end.identity.role.cmp(&other.end.identity.role))
    }
}
