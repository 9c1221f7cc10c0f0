//! How ports send: what `[[port]]` says of them, and how other tables name them.

use super::fields::{Fields, Key, NS, presence};
use super::nodes::Nodes;
use super::parse::Entry;
use super::{At, Sink, codes, limits, raw};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::port::{GateControl, GateEntry, PortSettings, Selection};
use onbeat_model::system::{Link, NodeId, NodeKind, Port, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use std::collections::BTreeMap;

/// The ports by node and name.
pub(super) struct PortNames {
    known: BTreeMap<(NodeId, String), PortId>,
    /// Whether every link could be read, so that a missing port really is missing.
    complete: bool,
}

impl PortNames {
    /// The names of all ports.
    pub(super) fn new(nodes: &Nodes, ports: &[Port]) -> Self {
        let named = (0..).map(PortId).zip(ports).map(|(id, p)| ((p.node, p.name.clone()), id));
        Self { known: named.collect(), complete: nodes.links_complete }
    }

    /// The port that `node.port` names, or the only one of a host; else a diagnostic.
    pub(super) fn find(&self, text: &At<String>, nodes: &Nodes, sink: &mut Sink) -> Option<PortId> {
        let (node, port) = match text.value.split_once('.') {
            Some((node, port)) => (node, Some(port)),
            None => (text.value.as_str(), None),
        };
        let id = nodes.names.find(codes::UNKNOWN_NODE, &text.with(node.to_owned()), sink)?;
        let is_host = matches!(nodes.list[id.index()].kind, NodeKind::Host(_));
        let found = match port {
            Some(port) => self.known.get(&(id, port.to_owned())).copied(),
            // A host without a link has been reported.
            None if is_host => return nodes.list[id.index()].ports.first().copied(),
            None => None,
        };
        if found.is_none() && self.complete {
            let last = (NodeId(id.0 + 1), String::new());
            let names = self.known.range((id, String::new())..last).map(|((_, n), _)| n.as_str());
            let place = (codes::UNKNOWN_PORT, text.at);
            let close = port.and_then(|port| sink.did_you_mean(place, port, names));
            let help = match close {
                Some(close) => format!("did you mean `{node}.{close}`?"),
                None => "name a port of the bridge, as in `sw1.p2`: those without a name are \
                         numbered in the order of the links"
                    .to_owned(),
            };
            let shown = super::shorten(&text.value);
            let message = format!("unknown port `{shown}`");
            sink.push(
                Diagnostic::error(codes::UNKNOWN_PORT, message, text.at, "not found").help(help),
            );
        }
        found
    }
}

/// Checks all `[[port]]` tables and gives the ports their settings.
pub(super) fn check(
    entries: &[Entry<raw::Port>],
    names: &PortNames,
    nodes: &Nodes,
    ports: &mut [Port],
    links: &[Link],
    sink: &mut Sink,
) {
    let mut set: BTreeMap<PortId, Origin> = BTreeMap::new();
    for entry in entries {
        let mut fields = Fields::new(entry, "port", &entry.raw.name, sink);
        let targets = targets(&mut fields, names, nodes);
        let settings = settings(&mut fields);
        for (id, at) in targets {
            let port = &mut ports[id.index()];
            let label = format!("{}.{}", nodes.list[port.node.index()].name, port.name);
            if let Some(first) = set.insert(id, at) {
                let message = format!("duplicate settings of port `{label}`");
                let twice = Diagnostic::error(codes::PORT_SET_TWICE, message, at, "the second")
                    .help("merge them into one [[port]]")
                    .related(first, "the first");
                fields.sink.push(twice);
                continue;
            }
            check_slopes(&mut fields, &label, &settings, &links[port.link.index()], at);
            port.settings = settings.clone();
        }
    }
}

/// The ports that the table is about, and where it names them.
fn targets(
    fields: &mut Fields<'_, raw::Port>,
    names: &PortNames,
    nodes: &Nodes,
) -> Vec<(PortId, Origin)> {
    let raw = &fields.entry.raw;
    let (one, many) = (presence(&raw.name), presence(&raw.names));
    fields.need_one(("name", &one), ("names", &many));
    fields.either(("name", &one), ("names", &many));
    if let Some(list) = &raw.names
        && !(1..=limits::LIST).contains(&list.value.len())
    {
        let text = format!("`names` has {} ports", list.value.len());
        let help = format!("name 1 to {} ports", limits::LIST);
        fields.error(codes::OUT_OF_RANGE, &text, list.at, "this list", &help);
        return Vec::new();
    }
    let all = raw.name.iter().chain(raw.names.iter().flat_map(|n| &n.value));
    all.filter_map(|text| Some((names.find(text, nodes, fields.sink)?, text.at))).collect()
}

fn settings(fields: &mut Fields<'_, raw::Port>) -> PortSettings {
    let raw = &fields.entry.raw;
    let mut settings = PortSettings::default();
    let (mbps, bps) = (presence(&raw.idle_slope_mbps), presence(&raw.idle_slope_bps));
    fields.either(("idle_slope_mbps", &mbps), ("idle_slope_bps", &bps));
    let slopes = [
        ("idle_slope_mbps", &raw.idle_slope_mbps, 1_000_000),
        ("idle_slope_bps", &raw.idle_slope_bps, 1),
    ];
    for (key, slopes, unit_bps) in slopes {
        for (queue, rate) in slopes.iter().flat_map(|s| &s.value) {
            if let Some((queue, idle_slope)) = slope(fields, key, queue, *rate, unit_bps) {
                settings.selection[queue] = Selection::CreditBased { idle_slope };
            }
        }
    }
    if let Some(list) = &raw.asynchronous {
        let queues = fields.queues("asynchronous", &list.value);
        for queue in (0..onbeat_model::port::QUEUES).filter(|q| queues & 1 << q != 0) {
            if settings.selection[queue] != Selection::StrictPriority {
                let text = format!("queue {queue} has an idleSlope and asynchronous shaping");
                let help = "keep one of them: a queue has one transmission selection algorithm";
                fields.error(codes::TWO_SHAPERS, &text, list.at, "this list", help);
            }
            settings.selection[queue] = Selection::Asynchronous;
        }
    }
    if let Some(list) = &raw.preemptable {
        settings.preemptable = fields.queues("preemptable", &list.value);
        if settings.preemptable == u8::MAX {
            let help = "remove the queues whose frames may interrupt the others";
            let text = "all queues are preemptable: no express queue is left";
            fields.error(codes::PREEMPTION, text, list.at, "this list", help);
        }
    }
    settings.vlans = vlans(fields);
    settings.gates = gates(fields);
    settings
}

fn slope(
    fields: &mut Fields<'_, raw::Port>,
    key: &'static str,
    queue: &str,
    rate: At<i64>,
    unit_bps: i64,
) -> Option<(usize, BitRate)> {
    let Some(queue) = queue.parse().ok().filter(|q| *q < onbeat_model::port::QUEUES) else {
        let text = format!("unknown queue `{}`", super::shorten(queue));
        let help = "use queues 0 to 7, as in idle_slope_mbps = { 7 = 100, 6 = 50 }";
        fields.error(codes::OUT_OF_RANGE, &text, rate.at, "its idleSlope", help);
        return None;
    };
    let rate = fields.int(codes::RATE, (key, &Some(rate)), 1..=limits::LINK_BPS / unit_bps)?;
    Some((queue, BitRate::from_bps((rate * unit_bps).unsigned_abs())))
}

fn check_slopes(
    fields: &mut Fields<'_, raw::Port>,
    label: &str,
    settings: &PortSettings,
    link: &Link,
    at: Origin,
) {
    let slopes = settings.selection.iter().map(|selection| match selection {
        Selection::CreditBased { idle_slope } => idle_slope.as_bps(),
        _ => 0,
    });
    let sum = BitRate::from_bps(slopes.sum());
    if sum > link.rate {
        let message = format!("port `{label}`: idle slopes of {sum} on a link of {}", link.rate);
        let beyond = Diagnostic::error(codes::IDLE_SLOPES, message, at, "this port")
            .help("reduce them: their sum may not exceed the rate of the link")
            .related(link.origin, "its link");
        fields.sink.push(beyond);
    }
}

fn vlans(fields: &mut Fields<'_, raw::Port>) -> Option<Vec<u16>> {
    let list = fields.entry.raw.vlans.as_ref()?;
    let ids = list.value.iter();
    let ids = ids.filter_map(|v| fields.int(codes::OUT_OF_RANGE, ("vlans", &Some(*v)), 1..=4_094));
    let mut ids: Vec<u16> = ids.map(|v| v as u16).collect();
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

fn gates(fields: &mut Fields<'_, raw::Port>) -> Vec<GateControl> {
    let Some(lists) = &fields.entry.raw.gates else { return Vec::new() };
    let entries = |l: &At<raw::Gates>| l.value.entries.as_ref().map_or(0, |e| e.value.len());
    let total: usize = lists.value.iter().map(entries).sum();
    if total > limits::GATE_ENTRIES {
        let text = format!("its gate control lists have {total} entries");
        let help = format!("use at most {}", limits::GATE_ENTRIES);
        fields.error(codes::GATES, &text, lists.at, "these lists", &help);
        return Vec::new();
    }
    let mut gates: Vec<GateControl> = Vec::new();
    for list in &lists.value {
        let Some(gate) = gate_control(fields, list) else { continue };
        if gates.last().is_some_and(|before| before.base >= gate.base) {
            let text = "the list starts no later than the previous one";
            let help =
                "order the lists by `base_time_ns`: each is in force until the next one starts";
            fields.error(codes::GATES, text, list.at, "this list", help);
        }
        gates.push(gate);
    }
    gates
}

fn gate_control(fields: &mut Fields<'_, raw::Port>, list: &At<raw::Gates>) -> Option<GateControl> {
    let At { value: raw, at } = list;
    let positive = Span::from_ns(1)..=limits::DURATION;
    let base: Key<'_> = ("base_time_ns", &raw.base_time_ns);
    let base = fields.time(codes::OUT_OF_RANGE, base, NS, Span::ZERO..=limits::DURATION);
    let cycle =
        fields.time(codes::DURATION, ("cycle_time_ns", &raw.cycle_time_ns), NS, positive.clone());
    let Some(raw_entries) = raw.entries.as_ref().filter(|e| !e.value.is_empty()) else {
        let help = "write entries = [{ open = [7], interval_ns = 50000 }, …]";
        fields.error(codes::GATES, "a gate control list has no entries", *at, "this list", help);
        return None;
    };
    let mut entries = Vec::with_capacity(raw_entries.value.len());
    for At { value: entry, at } in &raw_entries.value {
        let (Some(open), Some(_)) = (&entry.open, &entry.interval_ns) else {
            let help = "write { open = [7, 6], interval_ns = 50000 }; `open` may be empty";
            let text = "an entry of a gate control list needs `open` and `interval_ns`";
            fields.error(codes::MISSING_KEY, text, *at, "this entry", help);
            continue;
        };
        let span =
            fields.time(codes::DURATION, ("interval_ns", &entry.interval_ns), NS, positive.clone());
        let open = fields.queues("open", &open.value);
        entries.push(GateEntry { open, span: span.unwrap_or(Span::from_ns(1)) });
    }
    let sum: Span = entries.iter().map(|e| e.span).sum();
    Some(GateControl {
        base: NetTime::ZERO + base.unwrap_or_default(),
        cycle: cycle.unwrap_or(sum),
        entries,
        length_aware: raw.length_aware.as_ref().is_none_or(|l| l.value),
    })
}
