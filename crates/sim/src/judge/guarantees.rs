//! No latency is below physics, and none is above a bound where nothing broke its premises.

use super::{Case, list, text};
use crate::system::DrawnChannel;
use serde_json::Value;
use std::collections::BTreeMap;

/// Octets of a frame of a channel beside its message: headers, check sequence.
const HEADERS: i64 = 42 + 4;
/// What a frame carries of a message and its trailer, if the message has one frame; and the most
/// that each of several carries of it.
const ONE_FRAME: i64 = 1_476;
const FRAGMENT: i64 = 1_420;
/// The shortest frame.
const FRAME_MIN: i64 = 64 + 4;

impl Case<'_> {
    pub(super) fn guarantees(&mut self) {
        let run = self.run;
        let results = list(&run["channels"]);
        for (channel, result) in self.system.channels().iter().zip(results) {
            self.physics(channel);
            let undisturbed = self.is_undisturbed(result);
            let late_end = channel.listeners.iter().any(|host| !self.was_open(channel, host));
            let is_broken = result["verdict"] == "broken";
            if undisturbed && !late_end && is_broken {
                let why = text(&result["verdict_reason"]);
                self.find("guarantee", format!("{} is broken: {why}", channel.name));
            }
            for listener in list(&result["listeners"]) {
                self.bound(channel, listener, result, undisturbed);
            }
        }
        for chain in list(&run["chains"]) {
            self.chain(chain, results);
        }
    }

    /// Between two channels of a chain a program may keep a value for as long as it likes: of one
    /// channel alone the bound holds.
    fn chain(&mut self, chain: &Value, results: &[Value]) {
        let [channel] = list(&chain["channels"]) else { return };
        let whole = |one: &Value| self.is_undisturbed(one) && is_planned(one) && is_planned(chain);
        let whole = results.iter().any(|one| one["name"] == *channel && whole(one));
        let most = chain["latency_ns"]["max"].as_i64().zip(chain["bound_ns"].as_i64());
        if let Some((most, bound)) = most.filter(|(most, bound)| whole && most > bound) {
            let name = text(&chain["name"]);
            self.find("guarantee", format!("chain {name} took {most} ns of {bound}"));
        }
    }

    /// Whether a listener's end was there from the start: somebody opened it before it, or there is
    /// no program.
    pub(super) fn was_open(&self, channel: &DrawnChannel, host: &str) -> bool {
        let mut programs = self.system.description.list("program").iter();
        let without = !programs.any(|program| program["host"] == *host);
        let opened = |name: &str| {
            let openings = self.logs.get(name)?.openings.get(&(false, channel.name.clone()))?;
            openings.first()
        };
        let first = self.actors_on(host).find_map(opened);
        without || first.is_some_and(|opening| opening.from.is_none())
    }

    fn bound(
        &mut self,
        channel: &DrawnChannel,
        listener: &Value,
        result: &Value,
        undisturbed: bool,
    ) {
        let most = listener["latency_ns"]["max"].as_i64();
        let Some((most, bound)) = most.zip(listener["bound_ns"].as_i64()) else { return };
        if most <= bound {
            return;
        }
        let place = format!("{} at {}", channel.name, text(&listener["host"]));
        let is_planned = is_planned(result);
        if undisturbed && is_planned {
            self.find("guarantee", format!("{place} took {most} ns of {bound}"));
        }
        let excused = (self.clocks_jump() || !is_planned) && result["verdict"] == "not judged";
        if result["verdict"] != "broken" && !excused {
            let verdict = text(&result["verdict"]);
            self.find("books", format!("{place} took {most} ns of {bound}, and is {verdict}"));
        }
    }

    /// A frame needs the time of the wires, and every bridge that stores it that of its length.
    fn physics(&mut self, channel: &DrawnChannel) {
        let hosts = self.system.description.list("host");
        let exact = |host: &str| {
            hosts.iter().any(|table| table["name"] == *host && table["clock"].is_null())
        };
        let kept = self.system.description.root.contains_key("synchronisation");
        if kept || self.clocks_jump() || !exact(&channel.talker) || self.is_rogue(&channel.talker) {
            return;
        }
        // The last of several frames needs no less than the first.
        let (size, trailer) = (i64::from(channel.size), i64::from(channel.trailer));
        let frames = if size + trailer > ONE_FRAME { size / FRAGMENT + 1 } else { 1 };
        let octets = (size / frames + trailer + HEADERS).max(FRAME_MIN);
        let wires = Wires::new(self.system);
        let least = wires.least(&channel.talker, octets);
        let mut found = Vec::new();
        let plain = |host: &&String| exact(host) && !self.is_rogue(host);
        for listener in channel.listeners.iter().filter(plain) {
            let Some(least) = least.get(listener.as_str()) else { continue };
            let rows = self.rows.iter();
            let mut rows = rows.filter(|r| r.channel == channel.name && r.listener == *listener);
            let early = rows.find(|row| row.latency.is_some_and(|latency| latency < *least));
            found.extend(early.map(|row| {
                let latency = row.latency.unwrap_or(0);
                format!("{} at {listener} took {latency} ns, at least {least}", channel.name)
            }));
        }
        found.into_iter().for_each(|what| self.find("guarantee", what));
    }
}

/// Whether talkers did what bounds count with: none was late and caught up, or out of its phase.
fn is_planned(result: &Value) -> bool {
    let reason = text(&result["verdict_reason"]);
    let what = [
        " was late and caught up, ",
        " caught up after one that was late",
        " after its phase, and its jitter is ",
    ];
    !what.iter().any(|what| reason.contains(what))
}

/// The links of a description, as far as physics is concerned.
struct Wires {
    /// Two nodes, a rate, and a propagation time.
    links: Vec<(String, String, i64, i64)>,
    /// Bridges that send before they have received all.
    cut_through: Vec<String>,
}

impl Wires {
    fn new(system: &crate::system::DrawnSystem) -> Self {
        let node = |end: &Value| {
            let end = text(end);
            end.split_once('.').map_or(end, |(node, _)| node).to_owned()
        };
        let links = system.description.list("link").iter().filter_map(|link| {
            let [one, other] = list(&link["ends"]) else { return None };
            let mbps = link["rate_mbps"].as_i64().map(|mbps| mbps * 1_000_000);
            let rate = mbps.or(link["rate_bps"].as_i64())?;
            let propagation = link["propagation_ns"].as_i64().unwrap_or(0);
            Some((node(one), node(other), rate, propagation))
        });
        let bridges = system.description.list("bridge").iter();
        let cut = bridges.filter(|b| b["cut_through"] == true).map(|b| text(&b["name"]).to_owned());
        Self { links: links.collect(), cut_through: cut.collect() }
    }

    /// The least time to every node, in nanoseconds: Bellman and Ford.
    fn least(&self, from: &str, octets: i64) -> BTreeMap<&str, i64> {
        let mut least: BTreeMap<&str, i64> = BTreeMap::new();
        let names = self.links.iter().flat_map(|(one, other, ..)| [one.as_str(), other.as_str()]);
        let Some(own) = names.clone().find(|name| *name == from) else { return least };
        least.insert(own, 0);
        for _ in names {
            for (one, other, rate, propagation) in &self.links {
                for (a, b) in [(one.as_str(), other.as_str()), (other.as_str(), one.as_str())] {
                    let Some(so_far) = least.get(a).copied() else { continue };
                    let wire = i128::from(octets) * 8_000_000_000 / i128::from((*rate).max(1));
                    let stored = !self.cut_through.iter().any(|bridge| bridge == a);
                    let wire = if stored { wire as i64 } else { 0 };
                    let there = so_far.saturating_add(wire).saturating_add(*propagation);
                    let known = least.entry(b).or_insert(there);
                    *known = (*known).min(there);
                }
            }
        }
        least
    }
}
