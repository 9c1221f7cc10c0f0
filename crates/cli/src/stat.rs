//! The verb `stat`: counters of running programs.

mod prometheus;

use crate::arguments::StatArguments;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Context;
use comfy_table::{Cell, CellAlignment};
use onbeat::clock::{MonoTime, pause};
use onbeat::shared_log::{COUNTERS, Counters};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_report::grid::{grid, ruled};
use onbeat_run::inspect::{LiveEndpoint, Seen, Skipped, live_endpoints};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often `--watch` shows the counters.
const REFRESH: Span = Span::from_s(1);
/// How often it looks whether it is interrupted.
const LOOK_AGAIN: Span = Span::from_ms(50);
/// The most lines of what is not shown.
const SAID_MAX: usize = 100;
const HEADINGS: [&str; 12] = [
    "program", "pid", "channel", "end", "sent", "received", "lost", "late", "dup.", "rejected",
    "held", "breaks",
];
/// What is said when there is nothing to show.
pub(crate) const NONE: &str =
    "No running program with channels, or none that --pid and --channel select.";
/// From which column on there are numbers.
const NUMBERS: usize = 4;

/// Shows the counters once, each second, or to whoever asks.
pub(crate) fn stat(arguments: &StatArguments) -> anyhow::Result<Exit> {
    if let Some(at) = arguments.listen {
        return prometheus::serve(arguments, at);
    }
    let mut said = BTreeSet::new();
    if !arguments.watch {
        let seen = wanted(arguments.pid, arguments.channel.as_deref())?;
        say_skipped(&seen.skipped, &mut said);
        if arguments.prometheus {
            terminal::hand_on(&prometheus::document(&seen));
            return Ok(Exit::Fine);
        }
        terminal::print(match arguments.json {
            true => json(&seen.ends, &seen.skipped, None),
            false => table(&seen.ends, None),
        });
        return Ok(Exit::Fine);
    }
    let interrupted = interrupted()?;
    let mut before = None;
    while !interrupted.load(Ordering::Relaxed) {
        let now = MonoTime::now();
        let Seen { ends, skipped } = wanted(arguments.pid, arguments.channel.as_deref())?;
        say_skipped(&skipped, &mut said);
        let since = before.as_ref().map(|(then, ends)| Since { elapsed: now - *then, ends });
        let is_seen = match arguments.json {
            true => terminal::print_to_reader(&json(&ends, &skipped, since.as_ref())),
            false => terminal::refresh(&table(&ends, since.as_ref())),
        };
        if !is_seen? {
            break; // whoever looked has gone
        }
        before = Some((now, counters(&ends)));
        while MonoTime::now() < now + REFRESH && !interrupted.load(Ordering::Relaxed) {
            pause(LOOK_AGAIN);
        }
    }
    Ok(Exit::Fine)
}

/// Becomes true when this program is to end.
pub(crate) fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// Says what is not among the ends, once each.
pub(crate) fn say_skipped(skipped: &[Skipped], said: &mut BTreeSet<Skipped>) {
    for one in skipped {
        if said.len() < SAID_MAX && said.insert(one.clone()) {
            terminal::say(format_args!("onbeat: user {}: {}", one.uid, one.why));
        }
    }
}

/// The ends of one process, of one channel, or of all.
pub(crate) fn wanted(pid: Option<u32>, channel: Option<&str>) -> anyhow::Result<Seen> {
    let mut seen = live_endpoints().context("/proc")?;
    seen.ends.retain(|end| {
        pid.is_none_or(|pid| end.pid == pid)
            && channel.is_none_or(|name| end.identity.channel == name)
    });
    Ok(seen)
}

/// Which end of which process: several ends of one kind are told apart by their order.
pub(crate) type EndKey = (u32, u64, bool, usize);

pub(crate) fn keys(ends: &[LiveEndpoint]) -> Vec<EndKey> {
    let mut seen = HashMap::new();
    let keys = ends.iter().map(|end| {
        let talks = end.identity.role == Role::Talker;
        let (pid, stream) = (end.pid, end.identity.stream_id.0);
        let of_kind = seen.entry((pid, stream, talks)).or_insert(0);
        *of_kind += 1;
        (pid, stream, talks, *of_kind)
    });
    keys.collect()
}

pub(crate) fn counters(ends: &[LiveEndpoint]) -> HashMap<EndKey, Counters> {
    keys(ends).into_iter().zip(ends.iter().map(|end| end.counters)).collect()
}

/// What was shown last.
pub(crate) struct Since<'a> {
    pub(crate) elapsed: Span,
    pub(crate) ends: &'a HashMap<EndKey, Counters>,
}

impl Since<'_> {
    /// By how much the counts of an end grew; none for an end that is new, or has begun again. A
    /// program may write anything there, so counts may also shrink.
    pub(crate) fn growth(&self, key: &EndKey, now: &Counters) -> Option<Counters> {
        now.since(self.ends.get(key)?)
    }
}

/// So many in this time are how many in a second, to the nearest, with a factor.
pub(crate) fn per_second(count: u64, elapsed: Span, factor: u64) -> Option<u64> {
    let elapsed = u128::try_from(elapsed.as_ns()).ok().filter(|ns| *ns > 0)?;
    let count = u128::from(count).checked_mul(u128::from(factor) * 1_000_000_000)?;
    u64::try_from((count + elapsed / 2) / elapsed).ok()
}

fn table(ends: &[LiveEndpoint], since: Option<&Since<'_>>) -> String {
    if ends.is_empty() {
        return NONE.to_owned();
    }
    let mut headings = HEADINGS.to_vec();
    if since.is_some() {
        headings.push("per second");
    }
    let mut grid = grid(&headings);
    let me = rustix::process::geteuid().as_raw();
    for (end, key) in ends.iter().zip(keys(ends)) {
        let Counters { sent, received, lost, late, duplicate, rate_exceeded, breaks, .. } =
            end.counters;
        let talks = end.identity.role == Role::Talker;
        let count = |n: u64, talker: bool| {
            if talks == talker { n.to_string() } else { "-".to_owned() }
        };
        let mut cells = vec![
            program(end, me),
            end.pid.to_string(),
            printable(&end.identity.channel),
            if talks { "talker" } else { "listener" }.to_owned(),
            count(sent, true),
            count(received, false),
            count(lost, false),
            count(late, false),
            count(duplicate, false),
            if talks { "-".to_owned() } else { rejected(end) },
            count(rate_exceeded, true),
            count(breaks, false),
        ];
        if let Some(since) = since {
            let of: fn(&Counters) -> u64 = if talks { |c| c.sent } else { |c| c.received };
            let more = since.growth(&key, &end.counters).map(|growth| of(&growth));
            let rate = more.and_then(|more| per_second(more, since.elapsed, 1));
            cells.push(rate.map_or("-".to_owned(), |rate| rate.to_string()));
        }
        grid.add_row(cells.into_iter().enumerate().map(|(column, text)| {
            let number = column >= NUMBERS || column == 1;
            let side = if number { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        }));
    }
    ruled(&grid)
}

/// The reasons for which frames were rejected, as their names are in JSON.
fn reasons(counters: &Counters) -> impl Iterator<Item = (&'static str, u64)> {
    let names = COUNTERS.iter().filter_map(|name| name.strip_prefix("rejected_"));
    names.zip(counters.rejected)
}

/// How many frames were rejected, and why.
fn rejected(end: &LiveEndpoint) -> String {
    let named = |name: &str| match (name, &end.other_talker) {
        ("talker", Some(from)) => format!("talker {from}"),
        _ => name.to_owned(),
    };
    let why = reasons(&end.counters).filter(|(_, n)| *n > 0);
    let why = why.map(|(name, n)| format!("{n} {}", named(name)));
    let why: Vec<_> = why.collect();
    if why.is_empty() { "0".to_owned() } else { why.join(", ") }
}

/// The program's name, and whose it is if it is another user's, who may call it anything.
pub(crate) fn program(end: &LiveEndpoint, me: u32) -> String {
    let name = printable(&end.program);
    if end.uid == me { name } else { format!("{name} (user {})", end.uid) }
}

/// A name that another program chose, without what would move a terminal's cursor.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn json(ends: &[LiveEndpoint], skipped: &[Skipped], since: Option<&Since<'_>>) -> String {
    let values = ends.iter().zip(keys(ends)).map(|(end, key)| {
        let mut value = endpoint(end);
        if let Some(since) = since {
            add_rates(&mut value, since.growth(&key, &end.counters), since.elapsed);
        }
        value
    });
    let ends: Vec<Value> = values.collect();
    json!({
        "format": "onbeat-stat",
        "version": 1,
        "endpoints": ends,
        // The old name of `endpoints`, which version 1 keeps.
        "ends": ends,
        "skipped": left_out(skipped),
    })
    .to_string()
}

/// How many frames were rejected for which reason, for machines.
pub(crate) fn rejected_by_reason(counters: &Counters) -> Value {
    Value::Object(reasons(counters).map(|(name, n)| (name.to_owned(), n.into())).collect())
}

/// An end and its counters for machines.
pub(crate) fn endpoint(end: &LiveEndpoint) -> Value {
    let counters = &end.counters;
    let talks = end.identity.role == Role::Talker;
    json!({
        "program": end.program,
        "pid": end.pid,
        "uid": end.uid,
        "channel": end.identity.channel,
        "stream_id": end.identity.stream_id.0,
        "end": if talks { "talker" } else { "listener" },
        "interval_ns": end.interval.map(Span::as_ns),
        "sent": counters.sent,
        "received": counters.received,
        "latency_worst_ns": worst_latency(end).map(Span::as_ns),
        "lost": counters.lost,
        "late": counters.late,
        "expired": counters.expired,
        "duplicate": counters.duplicate,
        "rejected": rejected_by_reason(counters),
        "other_talker": end.other_talker.map(|from| from.to_string()),
        "rate_exceeded": counters.rate_exceeded,
        "unrecorded": counters.unrecorded,
        "breaks": counters.breaks,
    })
}

/// Adds how many messages a second an end had in this time; null for one that is new.
pub(crate) fn add_rates(value: &mut Value, growth: Option<Counters>, elapsed: Span) {
    let rate = |of: fn(&Counters) -> u64| {
        json!(growth.and_then(|growth| per_second(of(&growth), elapsed, 1)))
    };
    value["sent_per_s"] = rate(|c| c.sent);
    value["received_per_s"] = rate(|c| c.received);
}

/// The largest latency since the end was opened, if there was a message and its program counts
/// latencies.
pub(crate) fn worst_latency(end: &LiveEndpoint) -> Option<Span> {
    let is_known = end.interval.is_some() && end.counters.received > 0;
    is_known.then_some(Span::from_ns(end.counters.latency_worst_ns))
}

/// What was not looked at, for machines.
pub(crate) fn left_out(skipped: &[Skipped]) -> Vec<Value> {
    skipped.iter().map(|one| json!({ "uid": one.uid, "why": one.why })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::shared_log::Identity;
    use onbeat_model::units::{MacAddress, StreamId};
    use onbeat_runtime::channel_io::Source;

    fn end(channel: &str, role: Role, counters: Counters) -> LiveEndpoint {
        let identity = Identity { channel: channel.to_owned(), stream_id: StreamId(7), role };
        let other_talker = Some(Source::Station(MacAddress([2, 0, 0, 0, 0, 7])));
        let uid = rustix::process::geteuid().as_raw();
        let (program, interval) = ("arm".to_owned(), None);
        LiveEndpoint { pid: 42, uid, program, identity, counters, interval, other_talker }
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        let text = table(&[end("a\x1b[2Jb\n", Role::Talker, Counters::default())], None);
        assert!(text.contains("a\u{fffd}[2Jb\u{fffd}"), "{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn each_end_shows_what_can_happen_at_it() {
        let talker = Counters { sent: 5, rate_exceeded: 2, ..Counters::default() };
        let listener =
            Counters { received: 4, lost: 1, rejected: [3, 0, 1, 5, 2, 0, 4, 0, 0, 0], ..talker };
        let ends = [end("c", Role::Talker, talker), end("c", Role::Listener, listener)];
        let text = table(&ends, None);
        let words: Vec<Vec<_>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0].join(" "), "arm 42 c talker 5 - - - - - 2 -");
        let rejected = "3 shape, 1 size, 5 talker 02:00:00:00:00:07, 2 future, 4 not_authentic";
        assert_eq!(words[1].join(" "), format!("arm 42 c listener - 4 1 0 0 {rejected} - 0"));
        let document: Value = serde_json::from_str(&json(&ends, &[], None)).expect("JSON");
        assert_eq!(document["ends"], document["endpoints"], "the old name");
        let end = &document["endpoints"][1];
        assert_eq!(
            (&end["rejected"]["talker"], &end["rejected"]["future"]),
            (&json!(5), &json!(2))
        );
        assert_eq!(end["other_talker"], "02:00:00:00:00:07");
    }

    #[test]
    fn rates_are_per_second_and_none_where_a_count_shrank() {
        let count = |received| Counters { received, ..Counters::default() };
        let then = counters(&[end("c", Role::Listener, count(100))]);
        let since = Since { elapsed: Span::from_ms(500), ends: &then };
        let key = (42, 7, false, 1);
        let rate = |key, now| {
            let growth = since.growth(key, &now);
            growth.and_then(|growth| per_second(growth.received, since.elapsed, 1))
        };
        assert_eq!(rate(&key, count(350)), Some(500));
        assert_eq!(rate(&key, count(99)), None);
        assert_eq!(rate(&key, Counters { breaks: 1, ..count(99) }), None);
        assert_eq!(rate(&(42, 7, false, 2), count(350)), None);
        assert_eq!(rate(&key, count(u64::MAX)), None);
    }
}
