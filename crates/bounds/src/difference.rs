//! What changes from one plan to the next: what an operator reads before devices are told of it.

use crate::document::{
    ChannelDocument, ListenerDocument, PlanDocument, PortDocument, StreamListenerDocument,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// From one plan to another. A field may be added under the same `version`; none is removed,
/// renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    /// Always `onbeat-plan-difference`.
    pub format: &'static str,
    /// Which contract: 1.
    pub version: u32,
    /// The name of the later plan's system.
    pub system: String,
    /// Channels, then streams, ports, noise sources and chains; each in the order of the later
    /// plan, and behind them those that are gone.
    pub items: Vec<ItemDifference>,
    /// How many channels, streams, ports, noise sources and chains are in both plans and the same.
    pub unchanged: usize,
    /// The nodes that are told something else: of gates, shapers, preemption or VLANs of a port of
    /// theirs; of the addresses, VLANs and priorities of what leaves there; of the channels that
    /// they talk or listen to. Sorted.
    pub nodes: Vec<String>,
}

/// Something that is not the same in both plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemDifference {
    /// `channel`, `stream`, `port`, `noise` or `chain`.
    pub kind: &'static str,
    /// Its name; of a port `node.port`.
    pub name: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// What has changed of it; empty unless it is `changed`.
    pub fields: Vec<FieldDifference>,
}

/// A property that is not the same in both plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDifference {
    /// Which, for a person: `bound to arm`, `path to arm`, `gates`.
    pub what: String,
    /// What it was, in full and with its unit; null if it was not there.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

/// The properties of an item, each with what it is for a person. What is not said there in full
/// (the entries of gate control lists) is behind it.
type Properties = Vec<(String, Option<String>, String)>;

/// What is different in `after`.
pub fn difference(before: &PlanDocument, after: &PlanDocument) -> PlanDifference {
    let [old, new] = [before, after].map(items);
    let mut unchanged = 0;
    let mut all = Vec::new();
    for kind in KINDS {
        let of_kind = |items: &[(&'static str, String, Properties)]| {
            let items = items.iter().filter(|item| item.0 == kind);
            items
                .map(|(_, name, properties)| (name.clone(), properties.clone()))
                .collect::<Vec<_>>()
        };
        let [old, new] = [&old, &new].map(|items| of_kind(items));
        let was: BTreeMap<&String, &Properties> = old.iter().map(|(name, it)| (name, it)).collect();
        let is: BTreeSet<&String> = new.iter().map(|(name, _)| name).collect();
        let mut add = |name: &String, change, fields| {
            all.push(ItemDifference { kind, name: name.clone(), change, fields });
        };
        for (name, properties) in &new {
            let Some(before) = was.get(name) else {
                add(name, "added", Vec::new());
                continue;
            };
            match fields(before, properties) {
                fields if fields.is_empty() => unchanged += 1,
                fields => add(name, "changed", fields),
            }
        }
        for (name, _) in old.iter().filter(|(name, _)| !is.contains(name)) {
            add(name, "removed", Vec::new());
        }
    }
    PlanDifference {
        format: "onbeat-plan-difference",
        version: 1,
        system: after.system.clone(),
        items: all,
        unchanged,
        nodes: nodes(before, after),
    }
}

const KINDS: [&str; 5] = ["channel", "stream", "port", "noise", "chain"];

fn fields(before: &Properties, after: &Properties) -> Vec<FieldDifference> {
    let was: BTreeMap<&String, _> =
        before.iter().map(|(what, shown, all)| (what, (shown, all))).collect();
    let is: BTreeSet<&String> = after.iter().map(|(what, ..)| what).collect();
    let mut found = Vec::new();
    for (what, shown, all) in after {
        match was.get(what) {
            Some((before, same)) if *same == all && *before == shown => {}
            old => {
                let before = old.and_then(|(before, _)| (*before).clone());
                let is_alike = old.is_some() && before == *shown;
                let after = shown.as_ref().map(|shown| match is_alike {
                    true => format!("{shown}, with other entries"),
                    false => shown.clone(),
                });
                found.push(FieldDifference { what: what.clone(), before, after });
            }
        }
    }
    let gone = before.iter().filter(|(what, ..)| !is.contains(what));
    found.extend(gone.map(|(what, shown, _)| FieldDifference {
        what: what.clone(),
        before: shown.clone(),
        after: None,
    }));
    found
}

/// In full, as what differs by a nanosecond is different.
fn time(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let (whole, rest) = (ns / 1_000, ns % 1_000);
    match rest {
        0 => format!("{sign}{whole} µs"),
        _ => format!("{sign}{whole}.{rest:03} µs"),
    }
}

/// In full.
fn rate(bps: u64) -> String {
    format!("{bps} bit/s")
}

/// Everything that has a name.
fn items(plan: &PlanDocument) -> Vec<(&'static str, String, Properties)> {
    let plain = |what: &str, shown: Option<String>| (what.to_owned(), shown, String::new());
    let mut items = Vec::new();
    for channel in &plan.channels {
        let mut properties = vec![
            plain("class", Some(format!("{:?}", channel.class))),
            plain("protected", Some(channel.protected.to_string())),
            plain("destination", channel.destination.clone()),
            plain("VLAN", channel.vlan.map(|vlan| vlan.to_string())),
            plain("priority", channel.pcp.map(|pcp| pcp.to_string())),
            plain("true rate", Some(rate(channel.true_rate_bps))),
            plain("reserved rate", Some(rate(channel.reserved_rate_bps))),
            plain("burst", Some(channel.burst_messages.to_string())),
            plain("frames per message", Some(channel.frames_per_message.to_string())),
            plain("fixed delay", Some(time(channel.fixed_delay_ns))),
        ];
        if let Some(launch) = &channel.launch {
            properties.push(plain("launch time", Some(time(launch.at_ns))));
            properties.push(plain("write by", Some(time(launch.write_ns))));
            properties.extend(launch.windows.iter().map(|window| {
                let shown = format!("{} for {}", time(window.start_ns), time(window.span_ns));
                plain(&format!("window at {}", window.port), Some(shown))
            }));
        }
        properties.extend(channel.schedulers.iter().map(|at| {
            let shown = format!("{}, burst {} octets", rate(at.rate_bps), at.burst_octets);
            plain(&format!("scheduler at {}", at.port), Some(shown))
        }));
        properties.extend(channel.listeners.iter().flat_map(|to: &ListenerDocument| {
            let host = &to.host;
            [
                plain(&format!("path to {host}"), Some(joined(paths(to)))),
                plain(&format!("bound to {host}"), to.bound_ns.map(time)),
                plain(&format!("best case to {host}"), to.best_ns.map(time)),
            ]
        }));
        items.push((KINDS[0], channel.name.clone(), properties));
    }
    for stream in &plan.streams {
        let mut properties = vec![
            plain("traffic class", Some(stream.traffic_class.to_string())),
            plain("VLAN", Some(stream.vlan.to_string())),
            plain("priority", Some(stream.pcp.to_string())),
            plain("deadline", stream.deadline_ns.map(time)),
        ];
        properties.extend(stream.listeners.iter().flat_map(|to: &StreamListenerDocument| {
            let host = &to.host;
            [
                plain(&format!("paths to {host}"), Some(joined(to.paths.iter()))),
                plain(&format!("bound to {host}"), to.bound_ns.map(time)),
                plain(&format!("best case to {host}"), to.best_ns.map(time)),
            ]
        }));
        items.push((KINDS[1], stream.name.clone(), properties));
    }
    items.extend(plan.ports.iter().map(|port| {
        let mut properties = vec![plain("rate", Some(rate(port.rate_bps)))];
        properties.extend(settings(port));
        (KINDS[2], port.port.clone(), properties)
    }));
    items.extend(plan.noise.iter().map(|noise| {
        (KINDS[3], noise.name.clone(), vec![plain("path", Some(noise.path.join(" ")))])
    }));
    items.extend(plan.chains.iter().map(|chain| {
        let properties = vec![
            plain("deadline", Some(time(chain.deadline_ns))),
            plain("bound", chain.bound_ns.map(time)),
        ];
        (KINDS[4], chain.name.clone(), properties)
    }));
    items
}

/// What the port of a device is told.
fn settings(port: &PortDocument) -> Properties {
    let mut properties: Properties = Vec::new();
    for queue in &port.queues {
        let slope = queue.idle_slope_bps.map(|bps| format!(", idleSlope {}", rate(bps)));
        let preempted = if queue.preemptable { ", preemptable" } else { "" };
        let shown = format!("{}{}{preempted}", queue.selection, slope.unwrap_or_default());
        properties.push((format!("queue {}", queue.queue), Some(shown), String::new()));
    }
    let lists = port.gates.iter().map(|list| {
        let whole = if list.length_aware { "" } else { ", not length-aware" };
        format!(
            "{} entries in {} from {}{whole}",
            list.entries.len(),
            time(list.cycle_ns),
            time(list.base_ns)
        )
    });
    let lists: Vec<String> = lists.collect();
    let shown = (!lists.is_empty()).then(|| lists.join(", "));
    properties.push(("gates".to_owned(), shown, format!("{:?}", port.gates)));
    let vlans = port.vlans.as_ref().map(|vlans| format!("{vlans:?}"));
    properties.push(("VLANs".to_owned(), vlans, String::new()));
    properties
}

/// The nodes whose configuration is another one.
fn nodes(before: &PlanDocument, after: &PlanDocument) -> Vec<String> {
    let [old, new] = [before, after].map(told);
    let labels: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let changed = labels.into_iter().filter(|label| old.get(label) != new.get(label));
    let nodes: BTreeSet<&str> =
        changed.map(|label| label.split_once('.').map_or(label, |(node, _)| node)).collect();
    nodes.into_iter().map(str::to_owned).collect()
}

/// The paths to a listener: all those of a replicated channel, else the one.
fn paths(to: &ListenerDocument) -> impl Iterator<Item = &Vec<String>> {
    let only = to.paths.is_empty().then_some(&to.path);
    to.paths.iter().chain(only)
}

/// Paths for a person.
fn joined<'a>(paths: impl Iterator<Item = &'a Vec<String>>) -> String {
    let paths: Vec<String> = paths.map(|path| path.join(" ")).collect();
    paths.join(", ")
}

/// Per port what its device is told of it: its settings, and the traffic that leaves there; per
/// host the channels that it talks and listens to.
fn told(plan: &PlanDocument) -> BTreeMap<&str, (Properties, BTreeSet<String>)> {
    let mut told: BTreeMap<&str, (Properties, BTreeSet<String>)> = BTreeMap::new();
    for port in &plan.ports {
        told.insert(&port.port, (settings(port), BTreeSet::new()));
    }
    for channel in &plan.channels {
        let ChannelDocument { name, class, protected, destination, vlan, pcp, .. } = channel;
        let what = format!("{name} {class:?} {protected} {destination:?} {vlan:?} {pcp:?}");
        // Hosts are told how large and how frequent messages are, the talker when to write.
        let (rate, delay) = (channel.true_rate_bps, channel.fixed_delay_ns);
        // Frames of replicated channels have another header.
        let is_replicated = channel.listeners.iter().any(|to| !to.paths.is_empty());
        let to_listener = format!("{what} {rate} {delay} {is_replicated}");
        let to_talker = format!("{to_listener} {:?}", channel.launch);
        for to in &channel.listeners {
            for label in paths(to).flatten() {
                told.entry(label).or_default().1.insert(what.clone());
            }
            // Of replicated channels bridges know by which ports they come in.
            for step in to.paths.iter().flat_map(|path| path.windows(2)) {
                let from = format!("{what} from {}", step[0]);
                told.entry(&step[1]).or_default().1.insert(from);
            }
            told.entry(&to.host).or_default().1.insert(to_listener.clone());
            if let Some(first) = to.path.first() {
                told.entry(first).or_default().1.insert(to_talker.clone());
            }
        }
    }
    for channel in &plan.channels {
        for at in &channel.schedulers {
            let what = format!("{} {at:?}", channel.name);
            told.entry(&at.port).or_default().1.insert(what);
        }
    }
    for stream in &plan.streams {
        let what = format!("{} {} {}", stream.name, stream.traffic_class, stream.pcp);
        for label in stream.listeners.iter().flat_map(|to| to.paths.iter().flatten()) {
            told.entry(label).or_default().1.insert(what.clone());
        }
    }
    told
}
