//! What a machine with Linux is told: lines for `ip -batch`, `bridge -batch` and `tc -batch` of
//! iproute2, and files of systemd-networkd. Ports are interfaces of their names.
//!
//! The hardware of a bridge forwards, so it has to carry out what the plan asks: its lines ask for
//! offload, and fail where there is none. Hosts do it in the kernel, as every interface can.

mod networkd;
mod traffic;

pub use networkd::{NETWORKD, Networkd};
pub use traffic::{Disciplines, Gates, Numbering, Queue, Shaper, Traffic, Vlan, is_interface};

use crate::Deployment;
use crate::classes::{Classes, Users};
use crate::filtering::Database;
use crate::port;
use crate::replication::Replicated;
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, NodeId, NodeKind, PortId, System};
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
    /// The same for systemd-networkd, as far as it can be told.
    pub networkd: Networkd,
    /// What the plan wants of the machine and the lines do not say, each for a person.
    pub unsaid: Vec<String>,
}

/// What a bridge does with frames: what its lines for `ip` and `bridge` say.
#[derive(Debug, Default)]
struct Forwarding<'a> {
    /// The device.
    name: String,
    ports: Vec<&'a str>,
    /// The ports that flood nothing.
    closed: Vec<&'a str>,
    /// The VLANs of ports.
    members: Vec<(u16, &'a str)>,
    /// Where frames with an address leave.
    entries: Vec<(u16, MacAddress, Vec<&'a str>)>,
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
    let mut forwards = Forwarding::default();
    if is_bridge {
        forwards = forwarding(all, id, &named, &mut unsaid);
        (ip, bridge) = (forwards.ip(), forwards.bridge());
        unsaid.extend(duplicates(all, id));
    }
    let mut interfaces = Vec::new();
    for port in named {
        let interface = &*system.port(port).name;
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
        interfaces.push((interface, traffic.vlans));
    }
    let mut networkd = match is_bridge {
        true => Networkd::of_bridge(&node.name, &forwards),
        false => Networkd::of_host(&node.name, &interfaces),
    };
    networkd.say_rest(&node.name, &forwards, !tc.is_empty());
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
    Linux { files, networkd, unsaid }
}

/// Commands as lines: without the name of the program.
fn lines(commands: Vec<Vec<String>>) -> impl Iterator<Item = String> {
    commands.into_iter().map(|words| words[1..].join(" "))
}

/// The replicated channels whose duplicates a bridge would have to eliminate, for a person.
fn duplicates(all: &Deployment<'_>, id: NodeId) -> Vec<String> {
    let node = &all.system.node(id).name;
    let joined = Replicated::at(all, id);
    let joined = joined.iter().filter(|one| one.joins().next().is_some());
    let say = |channel: &str| {
        format!("{node}: the kernel's bridge eliminates no duplicates of channel `{channel}`")
    };
    joined.map(|one| say(&one.channel.name)).collect()
}

impl Forwarding<'_> {
    /// The lines of `ip` that make the bridge of its ports.
    fn ip(&self) -> Vec<String> {
        let own = &self.name;
        // Frames without a tag stay in VLAN 1, of which all ports are members to begin with.
        let add = format!("link add name {own} type bridge vlan_filtering 1 mcast_snooping 1");
        let masters = self.ports.iter().map(|port| format!("link set dev {port} master {own}"));
        let up =
            self.ports.iter().copied().chain([&**own]).map(|dev| format!("link set dev {dev} up"));
        [add].into_iter().chain(masters).chain(up).collect()
    }

    /// The lines of `bridge` for its filtering database.
    fn bridge(&self) -> Vec<String> {
        let closed = "flood off mcast_flood off bcast_flood off";
        let closed = self.closed.iter().map(|port| format!("link set dev {port} {closed}"));
        let members = self.members.iter();
        let members = members.map(|(vlan, port)| format!("vlan add dev {port} vid {vlan}"));
        let entries = self.entries.iter();
        let entries = entries.flat_map(|(vlan, to, leaves)| entry(&self.name, *vlan, *to, leaves));
        closed.chain(members).chain(entries).collect()
    }
}

/// What a bridge of ports does with frames.
fn forwarding<'a>(
    all: &Deployment<'a>,
    id: NodeId,
    ports: &[PortId],
    unsaid: &mut Vec<String>,
) -> Forwarding<'a> {
    let Deployment { system, leaving, .. } = all;
    let system: &'a System = system;
    let node = system.node(id);
    let name = |port: &PortId| &*system.port(*port).name;
    let mut free = (0..).map(|number| format!("br{number}"));
    let own = free.find(|own| !ports.iter().any(|port| name(port) == own)).unwrap_or_default();
    let mut closed = Vec::new();
    if system.closes_loop().is_some() {
        let between = ports.iter().filter(|port| {
            let peer = system.port(system.port(**port).peer).node;
            matches!(system.node(peer).kind, NodeKind::Bridge(_))
        });
        closed.extend(between.map(name));
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
    let members = database.vlans.iter().flat_map(|(vlan, members)| {
        members.iter().filter(is_told).map(move |port| (*vlan, name(port)))
    });
    let members = members.collect();
    let mut entries = Vec::new();
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
        entries.push((*vlan, *address, told));
    }
    Forwarding { name: own, ports: ports.iter().map(name).collect(), closed, members, entries }
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
