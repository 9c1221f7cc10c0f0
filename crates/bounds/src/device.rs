//! What the plan asks of devices that they cannot do (OB2018).

use crate::srp;
use onbeat_model::codes::plan as codes;
use onbeat_model::device::DeviceLimits;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, PortSettings, QUEUES, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, CONTROL_QUEUE, NodeId, NodeKind, PortId, System};
use onbeat_model::time::{NetTime, Span};
use std::collections::BTreeSet;

/// What is asked of a device, what it has instead, and what to do.
struct Excess {
    asks: String,
    has: String,
    help: &'static str,
}

fn excess(asks: impl Into<String>, has: impl Into<String>, help: &'static str) -> Excess {
    Excess { asks: asks.into(), has: has.into(), help }
}

/// One error for each limit of a device that a bridge or a port of the plan exceeds.
pub(crate) fn refusals(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    if system.devices.is_empty() {
        return Vec::new();
    }
    let used = used(system, plan);
    let mut errors = Vec::new();
    for (id, device) in &system.devices {
        let node = system.node(*id);
        let mut refuse = |subject: String, Excess { asks, has, help }: Excess| {
            let message = format!("{subject} {asks}, and device `{}` {has}", device.name);
            let error = Diagnostic::error(codes::DEVICE, message, device.origin, "this device");
            errors.push(error.help(format!("{help}, or use another device")));
        };
        let own = of_node(system, plan, *id, &device.limits);
        own.into_iter().for_each(|excess| refuse(format!("`{}`", node.name), excess));
        for port in &node.ports {
            let settings = &plan.ports[port.index()].settings;
            let described = &system.port(*port).settings;
            for excess in of_port(&device.limits, settings, described, used[port.index()]) {
                refuse(format!("port {}", system.port_label(*port)), excess);
            }
        }
    }
    errors
}

/// By port: bit q is set if frames leave by queue q, as far as the plan knows.
fn used(system: &System, plan: &Plan) -> Vec<u8> {
    let mut used = vec![0; system.ports.len()];
    let mut leave = |queue: usize, ports: &[PortId]| {
        ports.iter().for_each(|port| used[port.index()] |= 1 << queue);
    };
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        let ports = planned.tree_ports();
        if planned.protected {
            leave(channel.class.queue(), &ports);
        }
        // Reservations are made among best effort that no description knows.
        leave(BEST_EFFORT_QUEUE, &ports);
    }
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let paths = planned.paths.iter().flatten();
        paths.for_each(|path| leave(stream.traffic_class.into(), path));
    }
    let paths = plan.noise.iter().chain(plan.tcp.iter().flatten());
    paths.for_each(|path| leave(BEST_EFFORT_QUEUE, path));
    let all: Vec<PortId> = (0..system.ports.len() as u32).map(PortId).collect();
    if system.synchronisation.is_some_and(|it| it.in_run) {
        leave(BEST_EFFORT_QUEUE, &all);
    }
    if plan.protected && srp::is_used(system) {
        leave(CONTROL_QUEUE, &all);
    }
    used
}

fn of_node(system: &System, plan: &Plan, id: NodeId, limits: &DeviceLimits) -> Vec<Excess> {
    let mut found = Vec::new();
    let node = system.node(id);
    if let NodeKind::Bridge(bridge) = &node.kind
        && bridge.cut_through
        && limits.cut_through == Some(false)
    {
        found.push(excess("cuts through", "does not", "remove `cut_through`"));
    }
    if limits.elimination == Some(false) && paths_join(system, plan, id) {
        let help = "let the paths join at another bridge";
        found.push(excess("eliminates duplicates of replicated frames", "does not", help));
    }
    let gates = |port: &PortId| &plan.ports[port.index()].settings.gates;
    let entries: usize = node.ports.iter().flat_map(gates).map(|list| kept(list).len()).sum();
    if let Some(most) = limits.shared_list_max.filter(|most| entries > *most) {
        let asks = format!("has {entries} entries in the gate control lists of all its ports");
        let help = "use intervals that divide one another";
        found.push(excess(asks, format!("takes at most {most}"), help));
    }
    found
}

/// Whether frames of a channel or stream come to a port of a bridge by several ports.
fn paths_join(system: &System, plan: &Plan, id: NodeId) -> bool {
    let join = |paths: &[Vec<PortId>]| {
        let steps = paths.iter().flat_map(|path| path.windows(2)).map(|pair| (pair[1], pair[0]));
        let here: BTreeSet<_> = steps.filter(|(to, _)| system.port(*to).node == id).collect();
        here.iter().zip(here.iter().skip(1)).any(|(one, other)| one.0 == other.0)
    };
    plan.channels.iter().any(|planned| join(&planned.paths))
        || plan.streams.iter().flat_map(|planned| &planned.paths).any(|paths| join(paths))
}

fn of_port(
    limits: &DeviceLimits,
    settings: &PortSettings,
    described: &PortSettings,
    used: u8,
) -> Vec<Excess> {
    let mut found = Vec::new();
    let mut check = |wrong: bool, excess: Excess| found.extend(wrong.then_some(excess));
    let is_credit = |selection: &&Selection| matches!(selection, Selection::CreditBased { .. });
    let credit = settings.selection.iter().filter(is_credit).count();
    if let Some(most) = limits.credit_based {
        let asks = format!("has {credit} credit-based shapers");
        let has = format!("has at most {most}");
        check(credit > most.into(), excess(asks, has, "shape fewer queues"));
    }
    let shaped = (0..QUEUES).filter(|at| settings.selection[*at] != Selection::StrictPriority);
    let classes = shaped.fold(used, |all, queue| all | 1 << queue).count_ones();
    if let Some(most) = limits.traffic_classes {
        let asks = format!("uses {classes} traffic classes");
        let has = format!("has at most {most}");
        check(classes > most.into(), excess(asks, has, "use fewer traffic classes there"));
    }
    let is_asynchronous = |of: &PortSettings| of.selection.contains(&Selection::Asynchronous);
    let help = match is_asynchronous(described) {
        true => "remove `asynchronous` of the [[port]]",
        false => "give channels of class asynchronous that leave there class A or B",
    };
    check(
        limits.asynchronous == Some(false) && is_asynchronous(settings),
        excess("has asynchronous shaping", "has none", help),
    );
    check(
        limits.preemption == Some(false) && settings.preemptable != 0,
        excess("has preemptable queues", "has none", "remove `preemptable` of the [[port]]"),
    );
    let lacks_gates = limits.gates == Some(false) && !settings.gates.is_empty();
    check(lacks_gates, excess("has gates", "has none", "remove `gates` of the [[port]]"));
    if !lacks_gates {
        found.extend(settings.gates.iter().flat_map(|list| of_list(limits, list)));
    }
    found
}

/// The entries that begin before the cycle ends: no other has an effect.
fn kept(list: &GateControl) -> Vec<(u8, Span)> {
    let mut begins = Span::ZERO;
    let mut kept = Vec::with_capacity(list.entries.len());
    for entry in &list.entries {
        if begins < list.cycle {
            kept.push((entry.open, entry.span));
        }
        begins += entry.span;
    }
    kept
}

fn of_list(limits: &DeviceLimits, list: &GateControl) -> Vec<Excess> {
    let mut found = Vec::new();
    let entries = kept(list);
    if let Some(most) = limits.list_max.filter(|most| entries.len() > *most) {
        let asks = format!("has a gate control list of {} entries", entries.len());
        found.push(excess(asks, format!("takes at most {most}"), "use fewer entries"));
    }
    if let Some(most) = limits.cycle_max.filter(|most| list.cycle > *most) {
        let asks = format!("has gates with a cycle of {}", exactly(list.cycle));
        let has = format!("takes at most {}", exactly(most));
        found.push(excess(asks, has, "use a shorter cycle"));
    }
    let spans = || entries.iter().map(|(_, span)| *span);
    if let (Some(most), Some(longest)) = (limits.interval_max, spans().max())
        && longest > most
    {
        let asks = format!("has an entry of {} in its gate control list", exactly(longest));
        let help = "write several entries of the same state";
        found.push(excess(asks, format!("takes at most {}", exactly(most)), help));
    }
    if let (Some(least), Some(shortest)) = (limits.interval_min, spans().min())
        && shortest < least
    {
        let asks = format!("has an entry of {} in its gate control list", exactly(shortest));
        let has = format!("takes at least {}", exactly(least));
        found.push(excess(asks, has, "use longer entries"));
    }
    let mut times = spans().chain([list.cycle, list.base - NetTime::ZERO]);
    if let Some(tick) = limits.tick
        && let Some(odd) = times.find(|time| time.as_ns() % tick.as_ns() != 0)
    {
        let asks = format!("has a time of {} in its gate control list", exactly(odd));
        let help = "use multiples of the tick for base time, cycle and entries";
        found.push(excess(asks, format!("has a tick of {}", exactly(tick)), help));
    }
    let openings = (0..QUEUES).map(|queue| openings(&entries, queue)).max().unwrap_or_default();
    if let Some(most) = limits.openings_max.filter(|most| openings > *most) {
        let asks = format!("opens a gate {openings} times in a cycle");
        let has = format!("can at most {most} times");
        found.push(excess(asks, has, "open each gate less often in a cycle"));
    }
    if limits.length_aware.is_some_and(|aware| aware != list.length_aware) {
        let [asks, has] = match list.length_aware {
            true => ["has gates that are length-aware", "has others"],
            false => ["has gates that are not length-aware", "has others"],
        };
        found.push(excess(asks, has, "set `length_aware` of the gates as the device has it"));
    }
    found
}

/// Not rounded, as times elsewhere are: a nanosecond may be too much.
fn exactly(span: Span) -> String {
    format!("{} ns", span.as_ns())
}

/// How often a gate opens in a cycle: at its begin, too, as drivers count.
fn openings(entries: &[(u8, Span)], queue: usize) -> usize {
    let open = || entries.iter().map(|(open, _)| open >> queue & 1 == 1);
    let before = [false].into_iter().chain(open());
    before.zip(open()).filter(|(before, now)| !before && *now).count()
}
