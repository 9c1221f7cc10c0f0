//! The books: what programs say they wrote and read, the messages of `messages.csv` and the figures
//! of the results are three accounts of the same messages.

use super::log::ReadMessage;
use super::{Case, Row, list, text};
use crate::system::{DrawnChannel, LONG};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Frames that a reader's queue holds (docs/channels.md).
const QUEUE: usize = 1_024;
/// A frame tells waits up to so many nanoseconds. After more its message seems to come from the
/// future, and is dropped (docs/results.md).
const TOLD_NS: i64 = 3_290_000_000;
/// Flags of a message (onbeat.h): late, and given before.
const LATE: u32 = 1;
const REPEATED: u32 = 64;

impl Case<'_> {
    pub(super) fn books(&mut self) {
        let results = list(&self.run["channels"]);
        let channels = self.system.channels();
        if results.len() != channels.len() {
            self.find("books", format!("{} of {} channels", results.len(), channels.len()));
            return;
        }
        for (channel, result) in channels.iter().zip(results) {
            // After its memory is full an end counts and records no more.
            if result["unrecorded"] != 0 {
                continue;
            }
            self.figures(channel, result);
            self.written(channel);
            for listener in &channel.listeners {
                self.read(channel, listener);
                self.lost(channel, listener, result);
            }
        }
    }

    fn rows_of(&self, channel: &str, listener: &str) -> Vec<Row> {
        let is_it = |row: &&Row| row.channel == channel && row.listener == listener;
        self.rows.iter().filter(is_it).cloned().collect()
    }

    /// The results count what the messages say.
    fn figures(&mut self, channel: &DrawnChannel, result: &Value) {
        let mut sums = [0; 4];
        let mut latencies: Vec<i64> = Vec::new();
        for (place, listener) in channel.listeners.iter().enumerate() {
            let rows = self.rows_of(&channel.name, listener);
            let count =
                |what: &dyn Fn(&Row) -> bool| rows.iter().filter(|r| what(r)).count() as u64;
            let counted = [
                ("received", count(&|row| row.receive.is_some() && !row.duplicate)),
                ("lost", count(&|row| row.lost)),
                ("late", count(&|row| row.late)),
                ("duplicated", count(&|row| row.duplicate)),
            ];
            let own = &list(&result["listeners"])[place];
            for ((key, counted), sum) in counted.into_iter().zip(&mut sums) {
                *sum += counted;
                self.equal(&format!("{} at {listener}: {key}", channel.name), &own[key], counted);
            }
            let mine: Vec<i64> = rows.iter().filter_map(|row| row.latency).collect();
            self.extremes(&format!("{} at {listener}", channel.name), &own["latency_ns"], &mine);
            latencies.extend(mine);
            let sent = count(&|row| !row.duplicate && (row.send.is_some() || row.lost));
            let strangers = count(&|row| !row.duplicate && row.send.is_none() && !row.lost);
            if strangers == 0 {
                self.equal(&format!("{}: sent", channel.name), &result["sent"], sent);
            } else if !self.is_rogue(&channel.talker) {
                let what = format!("{} messages of {} without a talker", strangers, channel.name);
                self.find("books", what);
            }
            let overflowed = count(&|row| row.lost && row.arrive.is_some() && !waited_long(row));
            let said = own["overflowed"].as_u64().unwrap_or(u64::MAX);
            if said > overflowed || said < overflowed && !self.clocks_jump() {
                let what = format!("{} at {listener}: {said} overflowed", channel.name);
                self.find("books", format!("{what}, {overflowed} arrived and are lost"));
            }
        }
        for (key, sum) in ["received", "lost", "late", "duplicated"].into_iter().zip(sums) {
            self.equal(&format!("{}: {key}", channel.name), &result[key], sum);
        }
        self.extremes(&channel.name, &result["latency_ns"], &latencies);
    }

    fn equal(&mut self, what: &str, said: &Value, counted: u64) {
        if said.as_u64() != Some(counted) {
            self.find("books", format!("{what} is {said}, the messages are {counted}"));
        }
    }

    fn extremes(&mut self, what: &str, said: &Value, latencies: &[i64]) {
        let ends = [latencies.iter().min(), latencies.iter().max()];
        for (key, counted) in ["min", "max"].into_iter().zip(ends) {
            if said[key].as_i64() != counted.copied() {
                let what = format!("{what}: latency {key} {}", said[key]);
                self.find("books", format!("{what}, of the messages {counted:?}"));
            }
        }
    }

    /// What a talker's program wrote is what was recorded as written.
    fn written(&mut self, channel: &DrawnChannel) {
        let Some(first) = channel.listeners.first() else { return };
        let rows = self.rows_of(&channel.name, first);
        let recorded: Vec<i64> =
            rows.iter().filter(|row| !row.duplicate).map(|row| row.capture).collect();
        if self.is_rogue(&channel.talker) {
            return;
        }
        if self.actors_on(&channel.talker).next().is_none() {
            return self.modelled(channel, &recorded);
        }
        let logs = self.actors_on(&channel.talker).filter_map(|name| self.logs.get(name));
        let logs: Vec<_> = logs.collect();
        let wrote: Vec<i64> = logs
            .iter()
            .flat_map(|log| log.wrote.get(&channel.name).into_iter().flatten())
            .map(|(capture, _)| *capture)
            .collect();
        let unsure: usize = logs.iter().filter_map(|log| log.unsure.get(&channel.name)).sum();
        let meets = logs.iter().any(|log| log.meets.contains(&channel.name));
        let missing = surplus(&wrote, &recorded);
        if let Some(capture) = missing.first() {
            let what = format!(
                "{}: {} written messages, as at {capture}, are not recorded",
                channel.name,
                missing.len()
            );
            self.find("books", what);
        }
        let strange = surplus(&recorded, &wrote);
        if strange.len() > unsure && !meets {
            let what = format!(
                "{}: {} recorded messages, as at {}, were not written",
                channel.name,
                strange.len(),
                strange[0]
            );
            self.find("books", what);
        }
        if !self.clocks_jump() {
            self.rate(channel, recorded);
        }
    }

    /// A talker without a program writes every interval.
    fn modelled(&mut self, channel: &DrawnChannel, recorded: &[i64]) {
        let host = self.system.description.list("host").iter();
        let host = host.into_iter().find(|host| host["name"] == *channel.talker);
        let plain = host.is_some_and(|host| host["clock"].is_null()) && !self.clocks_jump();
        let has_program = self.system.description.list("program").iter();
        let mut has_program = has_program.into_iter().filter(|p| p["host"] == *channel.talker);
        // By protocol nothing is sent before there are reservations, and a scheduled channel
        // begins when its plan says.
        let mut tables = self.system.description.list("channel").iter();
        let begins_late = !self.run["reservations"].is_null()
            || tables.any(|it| it["name"] == *channel.name && it["class"] == "scheduled");
        let synchronised = self.system.description.root.contains_key("synchronisation");
        if !plain
            || begins_late
            || synchronised
            || has_program.next().is_some()
            || !self.is_complete()
        {
            return;
        }
        let [duration, phase, interval] =
            [self.system.duration_ns, channel.phase_ns, channel.interval_ns].map(i128::from);
        let wanted = (duration - phase + interval - 1).div_euclid(interval).max(0);
        if recorded.len() as i128 != wanted {
            let what = format!(
                "{}: {} messages of a synthetic talker, {wanted} are due",
                channel.name,
                recorded.len()
            );
            self.find("books", what);
        }
    }

    /// The generic cell rate algorithm, over all messages of a channel at once.
    fn rate(&mut self, channel: &DrawnChannel, mut captures: Vec<i64>) {
        captures.sort_unstable();
        let eighth = (channel.interval_ns / 8).min(125_000);
        let tables = self.system.description.list("channel").iter();
        let mut described = tables.into_iter().filter(|it| it["name"] == *channel.name);
        // A talker of a channel of classes A and B catches up. So may one whose class the plan
        // chooses, or a manifest says.
        let never = described.any(|it| it["class"] == "scheduled" || it["class"] == "asynchronous");
        let catches_up = channel.burst == 1 && !never;
        let catch_up = if catches_up { channel.interval_ns + eighth } else { 0 };
        let tolerance = eighth + (channel.burst - 1) * channel.interval_ns + catch_up;
        let excess = excess(&captures, channel.interval_ns) - i128::from(tolerance);
        if excess > captures.len() as i128 {
            self.find("rate", format!("{} is {excess} ns ahead of its rate", channel.name));
        }
    }

    /// What a listener's programs read is what was recorded as received, and in order.
    fn read(&mut self, channel: &DrawnChannel, listener: &str) {
        if self.is_rogue(listener) {
            return;
        }
        let rows = self.rows_of(&channel.name, listener);
        // Of one that waited too long the program gets another capture time.
        let untold = self.clocks_jump() || rows.iter().any(waited_long);
        let names: Vec<&str> = self.actors_on(listener).collect();
        let reads = |case: &Self, name: &str| -> Vec<ReadMessage> {
            let Some(log) = case.logs.get(name) else { return Vec::new() };
            let own = log.reads.iter().filter(|r| r.channel == channel.name);
            own.filter(|r| r.flags & REPEATED == 0).cloned().collect()
        };
        let all: Vec<(String, Vec<ReadMessage>)> =
            names.iter().map(|name| ((*name).to_owned(), reads(self, name))).collect();
        for (name, reads) in all {
            self.values(channel, &reads);
            if untold {
                continue;
            }
            self.each_read(channel, &name, &rows, &reads);
            self.unread(channel, &name, &rows, &reads);
        }
    }

    /// Each value is the one that was written with that capture time.
    fn values(&mut self, channel: &DrawnChannel, reads: &[ReadMessage]) {
        let logs = self.actors_on(&channel.talker).filter_map(|name| self.logs.get(name));
        let logs: Vec<_> = logs.collect();
        let known = !logs.is_empty() && !self.is_rogue(&channel.talker) && !self.clocks_jump();
        if !known || logs.iter().any(|log| log.meets.contains(&channel.name)) {
            return;
        }
        let wrote = logs.iter().flat_map(|log| log.wrote.get(&channel.name).into_iter().flatten());
        let wrote: BTreeMap<i64, &str> = wrote.map(|(at, value)| (*at, value.as_str())).collect();
        let wrong = reads
            .iter()
            .find(|read| wrote.get(&read.capture).is_some_and(|value| *value != read.value));
        if let Some(read) = wrong {
            let what = format!(
                "{}: another value was read than was written at {}",
                channel.name, read.capture
            );
            self.find("books", what);
        }
    }

    fn each_read(
        &mut self,
        channel: &DrawnChannel,
        name: &str,
        rows: &[Row],
        reads: &[ReadMessage],
    ) {
        let received = rows.iter().filter(|row| !row.duplicate && row.receive.is_some());
        let received: BTreeMap<i64, &Row> = received.map(|row| (row.capture, row)).collect();
        let mut found = Vec::new();
        let mut last: Option<&ReadMessage> = None;
        for read in reads {
            let at = format!("{} at {name}, captured at {}", channel.name, read.capture);
            match received.get(&read.capture) {
                None => found.push(("books", format!("{at}: read and not recorded"))),
                Some(row) => {
                    let own = (
                        Some(read.capture + read.latency),
                        Some(read.arrived),
                        read.flags & LATE != 0,
                    );
                    let recorded = (row.receive, row.arrive, row.late);
                    if own != recorded {
                        let what = format!("{at}: read as {own:?}, recorded as {recorded:?}");
                        found.push(("books", what));
                    }
                }
            }
            if read.age < read.latency {
                found.push(("time", format!("{at}: {} old after {}", read.age, read.latency)));
            }
            let turned =
                |last: &&ReadMessage| last.opening == read.opening && last.capture >= read.capture;
            // Numbers of one that sends without end, nonsense or not, come round while it is read.
            let is_honest = !self.is_rogue(&channel.talker);
            if let Some(last) = last.filter(turned).filter(|_| is_honest) {
                found.push(("order", format!("{at}: read after {} by {}", last.capture, read.how)));
            }
            last = Some(read);
        }
        found.truncate(3);
        found.into_iter().for_each(|(invariant, what)| self.find(invariant, what));
    }

    /// A message that was received and that no program read came after the last read: what
    /// came before another that was read was read, too.
    fn unread(&mut self, channel: &DrawnChannel, name: &str, rows: &[Row], reads: &[ReadMessage]) {
        let Some(log) = self.logs.get(name) else { return };
        let Some(openings) = log.openings.get(&(false, channel.name.clone())) else { return };
        let read: BTreeSet<i64> = reads.iter().map(|read| read.capture).collect();
        let mut found = Vec::new();
        for (number, opening) in openings.iter().enumerate() {
            let mine = reads.iter().filter(|read| read.opening == number);
            let newest = mine.map(|read| read.capture).max();
            let (Some(newest), false) = (newest, opening.takes_more) else { continue };
            let from = opening.from.map_or(i64::MIN, |(local, _)| local);
            let skipped = rows.iter().find(|row| {
                let in_it = row.capture < newest && row.receive.is_some_and(|at| at > from);
                in_it && !row.duplicate && !row.lost && !read.contains(&row.capture)
            });
            found.extend(skipped.map(|row| row.capture));
        }
        for capture in found {
            let what = format!("{} at {name}: {capture} waited and was not given", channel.name);
            self.find("books", what);
        }
    }

    /// A message that is lost has a cause that the description or the programs give it.
    fn lost(&mut self, channel: &DrawnChannel, listener: &str, result: &Value) {
        let rows = self.rows_of(&channel.name, listener);
        if self.is_rogue(listener) || self.is_rogue(&channel.talker) || self.clocks_jump() {
            return;
        }
        let arrivals: Vec<i64> = rows.iter().filter_map(|row| row.arrive).collect();
        let arrived = |row: &&Row| row.lost && row.arrive.is_some() && !waited_long(row);
        // Of longer messages a queue also holds fragments of some that never arrive.
        let overflowed = rows.iter().filter(arrived).filter(|_| channel.size < LONG);
        let early = overflowed.clone().find(|row| {
            let after = arrivals.iter().filter(|at| Some(**at) > row.arrive).count();
            after < QUEUE
        });
        if let Some(row) = early {
            let what = format!(
                "{} at {listener}: lost as overflowed at {}, with less than {QUEUE} \
                after it",
                channel.name, row.capture
            );
            self.find("books", what);
        }
        let in_network = rows.iter().filter(|row| row.lost && row.arrive.is_none()).count();
        if in_network > 0 && self.is_undisturbed(result) && self.was_open(channel, listener) {
            let what = format!(
                "{} at {listener}: {in_network} messages are lost without a cause: {}",
                channel.name,
                text(&result["verdict_reason"])
            );
            self.find("books", what);
        }
    }

    /// Whether nothing was there that may cost a protected channel a message.
    pub(super) fn is_undisturbed(&self, result: &Value) -> bool {
        let plain = self.system.description.list("fault").is_empty() && !self.system.has_rogue();
        plain && result["protected"] == true && self.is_complete() && !self.clocks_jump()
    }
}

/// Whether a message waited for longer than its frame can tell.
fn waited_long(row: &Row) -> bool {
    row.arrive.is_some_and(|at| at.saturating_sub(row.capture) > TOLD_NS)
}

/// Those of the first list that the second lacks, each as often as it does.
fn surplus(of: &[i64], others: &[i64]) -> Vec<i64> {
    let mut left: BTreeMap<i64, usize> = BTreeMap::new();
    others.iter().for_each(|other| *left.entry(*other).or_default() += 1);
    let is_more = |at: &&i64| match left.get_mut(at) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    of.iter().filter(is_more).copied().collect()
}

/// By how much messages come at most before an interval for each has passed since some message
/// before them.
fn excess(captures: &[i64], interval: i64) -> i128 {
    let (mut latest, mut most) = (i128::MAX, 0);
    for (number, capture) in captures.iter().enumerate() {
        let line = number as i128 * i128::from(interval) - i128::from(*capture);
        // The message before from which it is the furthest ahead has the least of this.
        latest = latest.min(line);
        most = most.max(line - latest);
    }
    most
}
