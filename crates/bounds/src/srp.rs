//! What the stream reservation protocol cannot do of what a description asks for.

use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::reservation::{
    BRIDGE_PORTS_MAX, BRIDGE_STREAMS_MAX, MSRP_MARGIN, STATION_STREAMS_MAX, interval_frames,
};
use onbeat_model::system::{
    Channel, ChannelId, Class, NodeId, NodeKind, PortId, ReservationMode, System,
};
use std::collections::{BTreeMap, BTreeSet};

/// Whether hosts and bridges reserve.
pub(crate) fn is_used(system: &System) -> bool {
    system.run.reservation == ReservationMode::Srp
}

/// One error for each hindrance.
pub(crate) fn hindrances(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    if !is_used(system) {
        return Vec::new();
    }
    let ids = (0..system.channels.len() as u32).map(ChannelId);
    let protected: Vec<_> = ids.filter(|id| plan.channel(*id).protected).collect();
    let mut errors = classes(system, &protected);
    errors.extend(protected.iter().filter_map(|id| too_frequent(system, plan, *id)));
    errors.extend(ports(system, plan, &protected));
    errors.extend(tables(system, plan, &protected));
    errors
}

fn hindrance(text: String, origin: Origin, help: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_BY_PROTOCOL, text, origin, "is reserved by protocol").help(help)
}

/// A port has one priority and one VLAN for each class (802.1Q-2018 35.2.2.9), and tells classes
/// apart by their priorities.
fn classes(system: &System, protected: &[ChannelId]) -> Vec<Diagnostic> {
    let channels = || protected.iter().map(|id| system.channel(*id));
    let mut errors = Vec::new();
    let first = [Class::A, Class::B].map(|class| channels().find(|c| c.class == class));
    for channel in channels() {
        if channel.paths.is_replicated() {
            let text = format!(
                "channel `{}` is replicated: the protocol reserves one path per listener",
                channel.name,
            );
            let help = "let the plan reserve (`reservation = \"plan\"`), or remove `paths` and \
                        `disjoint_paths`";
            errors.push(hindrance(text, channel.origin, help));
        }
        if channel.listeners == [channel.talker] {
            let text = format!(
                "channel `{}` has no other listener than its talker: nobody asks for a reservation",
                channel.name,
            );
            let help = "add a listener, or let the plan reserve (`reservation = \"plan\"`)";
            errors.push(hindrance(text, channel.origin, help));
        }
        if channel.class == Class::Asynchronous {
            let text = format!(
                "channel `{}` is of class asynchronous: the protocol reserves for classes A and B",
                channel.name,
            );
            let help = "use class A or B, or let the plan reserve (`reservation = \"plan\"`)";
            errors.push(hindrance(text, channel.origin, help));
            continue;
        }
        let first = first[usize::from(channel.class != Class::A)];
        let says = |c: &Channel| (c.pcp, c.vlan);
        let Some(other) = first.filter(|first| says(first) != says(channel)) else { continue };
        let text = format!(
            "channel `{}` has priority {} and VLAN {}, `{}` has priority {} and VLAN {}: the \
             protocol has one of each for class {:?}",
            channel.name,
            channel.pcp,
            channel.vlan,
            other.name,
            other.pcp,
            other.vlan,
            channel.class,
        );
        let help = "give all channels of the class the same `pcp` and `vlan`";
        let error = hindrance(text, channel.origin, help);
        errors.push(error.related(other.origin, "the first channel of the class"));
    }
    if let [Some(a), Some(b)] = first
        && a.pcp == b.pcp
    {
        let text = format!(
            "channels `{}` of class A and `{}` of class B have priority {}: the protocol tells \
             classes apart by it",
            a.name, b.name, a.pcp,
        );
        let error = hindrance(text, b.origin, "give the classes different `pcp`");
        errors.push(error.related(a.origin, "the channel of class A"));
    }
    errors
}

/// MaxIntervalFrames has 16 bits.
fn too_frequent(system: &System, plan: &Plan, id: ChannelId) -> Option<Diagnostic> {
    let channel = system.channel(id);
    let interval = channel.class.measurement_interval()?;
    let frame = channel.frame();
    let frames = interval_frames(plan.channel(id).reserved_rate, frame, interval, MSRP_MARGIN);
    let text = format!(
        "channel `{}` needs {frames} frames in {interval}: the protocol can say up to {}",
        channel.name,
        u16::MAX,
    );
    let help = "lengthen the interval of its messages, or set `reserve = false`";
    (frames > u64::from(u16::MAX)).then(|| hindrance(text, channel.origin, help))
}

/// Ports that a channel leaves by and whose shapers or gates the description sets itself.
fn ports(system: &System, plan: &Plan, protected: &[ChannelId]) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for id in protected {
        for port in plan.channel(*id).tree_ports() {
            let settings = &system.port(port).settings;
            let is_set = settings.selection.iter().any(|s| *s != Selection::StrictPriority);
            if (!is_set && settings.gates.is_empty()) || !seen.insert(port) {
                continue;
            }
            let channel = system.channel(*id);
            let has = if is_set { "shapers" } else { "gates" };
            let text = format!(
                "port {} has {has} of the description, and channel `{}` leaves by it: the protocol \
                 sets the shapers itself, and knows no gates",
                system.port_label(port),
                channel.name,
            );
            let help = "remove the [[port]]'s shapers and gates, or let the plan reserve \
                        (`reservation = \"plan\"`)";
            let error = hindrance(text, channel.origin, help);
            errors.push(error.related(system.link_of(port).origin, "the port's link"));
        }
    }
    errors
}

/// Nodes that would need larger tables.
fn tables(system: &System, plan: &Plan, protected: &[ChannelId]) -> Vec<Diagnostic> {
    let mut counts: BTreeMap<NodeId, [usize; 3]> = BTreeMap::new();
    for id in protected {
        let channel = system.channel(*id);
        counts.entry(channel.talker).or_default()[0] += 1;
        for listener in channel.listeners.iter().filter(|to| **to != channel.talker) {
            counts.entry(*listener).or_default()[1] += 1;
        }
        let ends = |port: PortId| [port, system.port(port).peer].map(|end| system.port(end).node);
        let nodes: BTreeSet<_> =
            plan.channel(*id).tree_ports().into_iter().flat_map(ends).collect();
        for node in nodes {
            counts.entry(node).or_default()[2] += 1;
        }
    }
    let mut errors = Vec::new();
    for (id, [talks, listens, passes]) in counts {
        let node = system.node(id);
        let (has, most, what) = match &node.kind {
            NodeKind::Host(_) => (talks.max(listens), STATION_STREAMS_MAX, "streams of one kind"),
            NodeKind::Bridge(_) if node.ports.len() > BRIDGE_PORTS_MAX => {
                (node.ports.len(), BRIDGE_PORTS_MAX, "ports")
            }
            NodeKind::Bridge(_) => (passes, BRIDGE_STREAMS_MAX, "streams"),
        };
        if has > most {
            let text =
                format!("`{}` has {has} {what}: the protocol takes {most} at most", node.name);
            let help = "spread the channels over more hosts or bridges, or set `reserve = false`";
            errors.push(hindrance(text, node.origin, help));
        }
    }
    errors
}
