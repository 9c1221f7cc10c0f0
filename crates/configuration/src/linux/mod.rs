//! What a machine with Linux is told: lines for `ip -batch`, `bridge -batch` and `tc -batch` of
//! iproute2. Ports are interfaces of their names.
//!
//! The hardware of a bridge forwards, so it has to carry out what the plan asks: its lines ask for
//! offload, and fail where there is none. Hosts do it in the kernel, as every interface can.

mod traffic;

pub use traffic::{Disciplines, Gates, Numbering, Queue, Shaper, Traffic, Vlan, is_interface};

use crate::Deployment;
use crate::classes::{Classes, Users};
use crate::filtering::Database;
use crate::port;
use crate::replication::Replicated;
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, NodeId, NodeKind, PortId};
use onbeat_model::units::MacAddress;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the first line of each file begins with, behind which its tool and its node are.
const HEADER: &str = "# Onbeat's plan for ";
/// The VLAN of frames without a tag: that of a Linux bridge unless told otherwise.
const UNTAGGED: u16 = 1;
/// The files of a node: how their names end.
pub const LINUX: [&str; 3] = [".ip", ".bridge", ".tc"];

/// What one machine with Linux is told, in the order in which it has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linux {
    /// For each of [`LINUX`] the lines for its tool; none if there is nothing to say.
    pub files: [Option<String>; 3],
    /// What the plan wants of the machine and the lines do not say, each for a person.
    pub unsaid: Vec<String>,
}

/// Whether a text is one of the files.
pub fn is_linux(text: &str) -> bool {
    text.starts_with(HEADER)
}

/// The lines for a bridge or a host.
pub(crate) fn linux(all: &Deployment<'_>, id: NodeId) -> Linux {
    let system = all.system;
    let node = system.node(id);
    let (mut ip, mut bridge, mut tc) = (Vec::new(), Vec::new(), Vec::new());
    let mut unsaid = Vec::new();
    let (named, unnamed): (Vec<PortId>, Vec<PortId>) =
        node.ports.iter().partition(|port| is_interface(&system.port(**port).name));
    unsaid.extend(unnamed.iter().map(|port| {
        format!("{}: no interface of Linux has such a name", system.port_label(*port))
    }));
    let is_bridge = matches!(node.kind, NodeKind::Bridge(_));
    if is_bridge {
        (ip, bridge) = forwarding(all, id, &named, &mut unsaid);
        let joined = Replicated::at(all, id);
        let joined = joined.iter().filter(|one| one.joins().next().is_some());
        unsaid.extend(joined.map(|one| {
            let (node, name) = (&node.name, &one.channel.name);
            format!("{node}: the kernel's bridge eliminates no duplicates of channel `{name}`")
        }));
    }
    for port in named {
        let interface = &system.port(port).name;
        let traffic = Traffic::of_port(all, port);
        for vlan in &traffic.vlans {
            ip.extend(lines(vlan.setup(interface)));
        }
        let label = system.port_label(port);
        match traffic.disciplines(traffic.needed()) {
            Ok(None) => {}
            Ok(Some(disciplines)) => tc.extend(lines(disciplines.commands(interface))),
            Err(why) => unsaid.push(format!("{label}: its queues are not set: {why}")),
        }
        unsaid.extend(port_unsaid(all, port, &traffic));
    }
    let file = |(extension, lines): (&str, Vec<String>)| {
        let tool = extension.trim_start_matches('.');
        let header = format!("{HEADER}`{}`: {tool} -batch\n", node.name);
        let text = lines.iter().fold(header, |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        });
        (!lines.is_empty()).then_some(text)
    };
    let [of_ip, of_bridge, of_tc] = LINUX;
    let files = [(of_ip, ip), (of_bridge, bridge), (of_tc, tc)].map(file);
    Linux { files, unsaid }
}

/// Commands as lines: without the name of the program.
fn lines(commands: Vec<Vec<String>>) -> impl Iterator<Item = String> {
    commands.into_iter().map(|words| words[1..].join(" "))
}

/// The lines of `ip` that make a bridge of ports, and those of `bridge` for its filtering database.
fn forwarding(
    all: &Deployment<'_>,
    id: NodeId,
    ports: &[PortId],
    unsaid: &mut Vec<String>,
) -> (Vec<String>, Vec<String>) {
    let Deployment { system, leaving, .. } = all;
    let node = system.node(id);
    let name = |port: &PortId| &*system.port(*port).name;
    let mut free = (0..).map(|number| format!("br{number}"));
    let own = free.find(|own| !ports.iter().any(|port| name(port) == own)).unwrap_or_default();
    // Frames without a tag stay in VLAN 1, of which all ports are members to begin with.
    let mut ip = vec![format!("link add name {own} type bridge vlan_filtering 1 mcast_snooping 1")];
    for port in ports {
        ip.push(format!("link set dev {} master {own}", name(port)));
    }
    ip.extend(ports.iter().map(|port| format!("link set dev {} up", name(port))));
    ip.push(format!("link set dev {own} up"));
    let mut bridge = Vec::new();
    if system.closes_loop().is_some() {
        let between = ports.iter().filter(|port| {
            let peer = system.port(system.port(**port).peer).node;
            matches!(system.node(peer).kind, NodeKind::Bridge(_))
        });
        let closed = "flood off mcast_flood off bcast_flood off";
        bridge.extend(between.map(|port| format!("link set dev {} {closed}", name(port))));
        unsaid.push(format!(
            "{}: its links make a loop, so only frames of known destinations leave to bridges",
            node.name
        ));
    }
    let mut database = Database::of(all, id);
    let streams = node.ports.iter().flat_map(|port| {
        leaving.streams(*port).iter().map(|stream| (system.streams[stream.index()].vlan, *port))
    });
    let mut streams = streams.peekable();
    if streams.peek().is_some() {
        unsaid.push(format!(
            "{}: streams have no destination, so nothing says where their frames leave",
            node.name
        ));
    }
    for (vlan, port) in streams {
        database.vlans.entry(vlan).or_default().insert(port);
    }
    for (vlan, port) in entering(all, ports) {
        // The kernel has one list of members for both directions.
        if database.vlans.entry(vlan).or_default().insert(port) {
            unsaid.push(format!(
                "{}: frames of VLAN {vlan} enter there, so they may leave as well",
                system.port_label(port)
            ));
        }
    }
    if database.vlans.contains_key(&UNTAGGED) {
        unsaid.push(format!(
            "{}: frames of VLAN {UNTAGGED} have tags, so frames without tags are dropped",
            node.name
        ));
    }
    let is_told = |port: &&PortId| ports.contains(port);
    for (vlan, members) in &database.vlans {
        let members = members.iter().filter(is_told);
        bridge.extend(members.map(|port| format!("vlan add dev {} vid {vlan}", name(port))));
    }
    for (vlan, address, leaves) in &database.entries {
        let told: Vec<&str> = leaves.iter().filter(is_told).map(name).collect();
        if told.len() > 1 && !address.is_multicast() {
            // A replicated channel to one station leaves by several where its paths part.
            unsaid.push(format!(
                "{}: frames to {address} in VLAN {vlan} leave by `{}` only: a static entry has one \
                 port",
                node.name, told[0]
            ));
        }
        bridge.extend(entry(&own, *vlan, *address, &told));
    }
    (ip, bridge)
}

/// The lines for where frames with an address leave. Those of a station leave by one port.
fn entry(own: &str, vlan: u16, address: MacAddress, leaves: &[&str]) -> Vec<String> {
    let count = if address.is_multicast() { leaves.len() } else { 1 };
    let line = |port: &&str| match address.is_multicast() {
        true => format!("mdb add dev {own} port {port} grp {address} permanent vid {vlan}"),
        false => format!("fdb replace {address} dev {port} master static vlan {vlan}"),
    };
    leaves.iter().take(count).map(line).collect()
}

/// The VLANs of the channels and streams that enter by ports, with these.
fn entering(all: &Deployment<'_>, ports: &[PortId]) -> BTreeSet<(u16, PortId)> {
    let Deployment { system, leaving, .. } = all;
    let of_port = |port: &PortId| {
        let (port, peer) = (*port, system.port(*port).peer);
        let channels = leaving.channels(peer).iter().map(|id| system.channel(*id).vlan);
        let streams = leaving.streams(peer).iter().map(|id| system.streams[id.index()].vlan);
        channels.chain(streams).map(move |vlan| (vlan, port)).collect::<Vec<_>>()
    };
    ports.iter().flat_map(of_port).collect()
}

/// What a port is to do that its lines do not say.
fn port_unsaid(all: &Deployment<'_>, id: PortId, traffic: &Traffic) -> Vec<String> {
    let Deployment { system, plan, .. } = all;
    let port = system.port(id);
    let settings = plan.ports.get(id.index()).map_or(&port.settings, |port| &port.settings);
    let label = system.port_label(id);
    let mut unsaid = port::unsaid(&label, settings, false);
    let mut say = |what: String| unsaid.push(format!("{label}: {what}"));
    for priority in Classes::of(all, id).torn {
        say(format!("frames of priority {priority} are to be of more than one class"));
    }
    let shaped = |queue: usize| matches!(settings.selection[queue], Selection::CreditBased { .. });
    let users = Users::of(all, id);
    let is_bridge = matches!(system.node(port.node).kind, NodeKind::Bridge(_));
    for queue in (0..BEST_EFFORT_QUEUE + 1).filter(|_| !is_bridge) {
        if shaped(queue) || (queue < BEST_EFFORT_QUEUE && !users.pcps[queue].is_empty()) {
            say(format!("queue {queue} is neither shaped nor behind best effort, but with it"));
        }
    }
    let lowest = (0..QUEUES).find(|queue| shaped(*queue));
    if let Some(lowest) = lowest {
        if !settings.gates.is_empty() {
            say(
                "whether the credit of a shaper grows while its gate is closed, the kernel leaves \
                 to the driver"
                    .to_owned(),
            );
        }
        let first = |queue: &usize| !shaped(*queue) && !users.pcps[*queue].is_empty();
        for queue in (lowest + 1..QUEUES).filter(first) {
            say(format!(
                "the most credit of shapers behind queue {queue} does not count its frames: they \
                 are not shaped"
            ));
        }
    }
    let shapers = traffic.classes.iter().map(|class| class.idle_slope.as_bps().div_ceil(1_000));
    if shapers.sum::<u64>() > traffic.rate.as_bps() / 1_000 {
        say("its idleSlopes, rounded up to kbit/s, are together more than its rate".to_owned());
    }
    if let Err(why) = traffic::launches(all, id) {
        say(why);
    }
    unsaid
}
