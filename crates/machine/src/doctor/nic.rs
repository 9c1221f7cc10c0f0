//! Network interfaces: what they can do, how they are set, and what the plan assumes of them.

use super::evaluation::Evaluation;
use super::facts::Fact;
use super::finding::{Area, Check, Need, State};
use super::qdiscs::Qdisc;
use crate::ethtool::Abilities;
use onbeat::interface;
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// The longest payload of its frames in octets.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is a VLAN interface.
    pub is_vlan: bool,
    /// What its driver says.
    #[serde(flatten)]
    pub abilities: Abilities,
}

impl Interface {
    /// All of the calling thread's network namespace, but for the loopback.
    pub(super) fn all() -> Vec<Self> {
        // Not /sys: it shows the namespace that it was mounted in.
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let names = table.lines().filter_map(|line| line.split_once(':')).map(|(n, _)| n.trim());
        let of_one = |name: &str| {
            let found = interface::Interface::named(name).ok()?;
            Some(Self {
                name: found.name,
                index: found.index,
                mtu: found.mtu,
                up: found.up,
                is_vlan: found.tags,
                abilities: Abilities::of(name),
            })
        };
        names.filter(|name| *name != "lo").filter_map(of_one).collect()
    }
}

/// A VLAN interface, as `/proc/net/vlan` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vlan {
    /// Its name.
    pub name: String,
    /// The interface below it.
    pub parent: String,
    /// Its number.
    pub id: u16,
    /// The priority code point of frames of each socket priority; 0 for those that are not named.
    pub egress: Vec<(u32, u8)>,
}

/// All VLAN interfaces.
pub(super) fn vlans(machine: &Machine) -> Vec<Vlan> {
    const PLACE: &str = "/proc/net/vlan";
    let names = machine.names(PLACE).into_iter().filter(|name| name != "config");
    names
        .filter_map(|name| Vlan::parse(&name, &machine.read(&format!("{PLACE}/{name}")).ok()?))
        .collect()
}

impl Vlan {
    fn parse(name: &str, text: &str) -> Option<Self> {
        let after = |key: &str| text.lines().find_map(|line| line.split_once(key).map(|p| p.1));
        let pair = |word: &str| {
            let (priority, code) = word.split_once(':')?;
            Some((priority.parse().ok()?, code.parse().ok()?))
        };
        Some(Self {
            name: name.to_owned(),
            parent: after("Device:").map(str::trim).unwrap_or_default().to_owned(),
            id: after("VID:")?.split_whitespace().next()?.parse().ok()?,
            egress: after("EGRESS priority mappings:")?
                .split_whitespace()
                .filter_map(pair)
                .collect(),
        })
    }
}

/// Drivers whose hardware is known to open gates (802.1Qbv) and to launch frames at their time, or
/// known to lack one of these. The kernel does not tell before one of them is set up.
const DRIVERS: [(&str, bool); 6] = [
    ("igc", true),
    ("igb", false),
    ("stmmac", true),
    ("st_gmac", true),
    ("fsl_enetc", true),
    ("am65-cpsw-nuss", false),
];

/// Interrupts for received frames may be delayed by this much, in µs.
const DELAY_US: u32 = 10;

static THERE: Check = Check {
    id: "nic.interface",
    area: Area::Nic,
    what: "interface",
    against: &[Need::Network, Need::Time],
    why: "Channels use it: without it, or without a link, no frames pass.",
    fix: "ip link set IFACE up; check the cable and the name.",
    reboot: false,
};
static SPEED: Check = Check {
    id: "nic.speed",
    area: Area::Nic,
    what: "rate of the link",
    against: &[Need::Network],
    why: "The plan's bounds assume the link rate of the description; at a lower rate frames take \
          longer and reservations do not fit.",
    fix: "Check cable, bridge and autonegotiation (`ethtool IFACE`), or correct rate_mbps.",
    reboot: false,
};
static MTU: Check = Check {
    id: "nic.mtu",
    area: Area::Nic,
    what: "longest frame",
    against: &[Need::Network],
    why: "A channel whose frames do not fit is refused.",
    fix: "ip link set IFACE mtu 1500",
    reboot: false,
};
static STAMPS: Check = Check {
    id: "nic.stamps",
    area: Area::Nic,
    what: "hardware timestamps",
    against: &[Need::Time],
    why: "Software timestamps include kernel delays: clocks agree to tens of microseconds instead \
          of tens of nanoseconds.",
    fix: "Use an interface with a PTP hardware clock, such as I210, I225, I226.",
    reboot: false,
};
static QUEUES: Check = Check {
    id: "nic.queues",
    area: Area::Nic,
    what: "transmit queues",
    against: &[Need::Network],
    why: "Each class needs its own queue; in a common queue reserved frames wait behind others.",
    fix: "ethtool -L IFACE combined 4, or another interface.",
    reboot: false,
};
static COALESCING: Check = Check {
    id: "nic.coalescing",
    area: Area::Nic,
    what: "interrupt coalescing",
    against: &[Need::Wakeup, Need::Network],
    why: "The interface delays the interrupt of a received frame by up to this time.",
    fix: "ethtool -C IFACE adaptive-rx off rx-usecs 0",
    reboot: false,
};
static SLEEPS: Check = Check {
    id: "nic.eee",
    area: Area::Nic,
    what: "energy-efficient Ethernet",
    against: &[Need::Network],
    why: "A link that sleeps between frames takes 16 µs at 1 Gb/s, 30 µs at 100 Mb/s to wake \
          (802.3 clause 78), which delays each frame after a pause.",
    fix: "ethtool --set-eee IFACE eee off",
    reboot: false,
};
static GATING: Check = Check {
    id: "nic.gates",
    area: Area::Nic,
    what: "gates and launch times in hardware",
    against: &[Need::Network],
    why: "Gates that the kernel opens are late by its wake-up delay; hardware gates are not.",
    fix: "Use an interface whose driver offers taprio and etf, such as I225 and I226 (igc).",
    reboot: false,
};
static PRIORITIES: Check = Check {
    id: "nic.priority-map",
    area: Area::Nic,
    what: "traffic classes of priorities",
    against: &[Need::Network],
    why: "A map has 16 entries. Omitted entries are class 0, often the highest: best-effort frames \
          of these priorities then share a class with reserved frames. A channel whose priority \
          has the class of priority 0 is not protected.",
    fix: "Give all 16 entries: map 3 3 1 0 2 2 2 2 2 2 2 2 2 2 2 2.",
    reboot: false,
};
static QDISC: Check = Check {
    id: "nic.qdisc",
    area: Area::Nic,
    what: "queueing discipline",
    against: &[Need::Network],
    why: "mqprio with cbs, or taprio, shapes reserved classes, at the talker too. Without them its \
          frames leave through one queue, as fast as they come.",
    fix: "tc qdisc replace dev IFACE root handle 100: mqprio …, and cbs below it.",
    reboot: false,
};
static EGRESS: Check = Check {
    id: "nic.vlan-priorities",
    area: Area::Nic,
    what: "priorities of the VLAN interface",
    against: &[Need::Network],
    why: "A VLAN interface writes the priority of its map into the tag, and 0 for unmapped \
          priorities: bridges then treat the frames as best effort.",
    fix: "ip link set VLAN type vlan egress-qos-map 2:2 3:3",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 11] = [
    &THERE,
    &SPEED,
    &MTU,
    &STAMPS,
    &QUEUES,
    &COALESCING,
    &SLEEPS,
    &GATING,
    &PRIORITIES,
    &QDISC,
    &EGRESS,
];

/// The interface that is required; without a requirement, the one in use.
fn chosen<'a>(interfaces: &'a [Interface], wanted: Option<&str>) -> Vec<&'a Interface> {
    let is_it = |interface: &&Interface| match wanted {
        Some(name) => interface.name == name,
        None => interface.up && !interface.is_vlan && interface.abilities.carrier != Some(false),
    };
    interfaces.iter().filter(is_it).collect()
}

/// Whether channels have an interface's clock, and nothing needs CLOCK_TAI, as gates and launch
/// times do.
pub(super) fn has_own_clock(evaluation: &Evaluation<'_>) -> bool {
    let Fact::Known(calls) = &evaluation.facts.calls else { return false };
    let interfaces = chosen(&calls.interfaces, evaluation.requirements.interface.as_deref());
    let all = interfaces.iter().all(|interface| interface.abilities.has_clock());
    all && !interfaces.is_empty() && !evaluation.requirements.gated
}

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    let wanted = evaluation.requirements.interface.as_deref();
    let calls = match &evaluation.facts.calls {
        Fact::Known(calls) => calls,
        Fact::Unknown(why) => return evaluation.unknown(&THERE, why, "up, with a link"),
    };
    let interfaces = chosen(&calls.interfaces, wanted);
    if interfaces.is_empty()
        && let Some(name) = wanted
    {
        return evaluation.say_of(name, &THERE, State::Blocks, "there is none", "up, with a link");
    }
    for interface in interfaces {
        link_of(evaluation, interface);
        abilities(evaluation, interface);
        let qdiscs = calls.qdiscs.known().map(Vec::as_slice).unwrap_or_default();
        classes(evaluation, interface, qdiscs);
        vlan(evaluation, interface);
    }
}

fn link_of(evaluation: &mut Evaluation<'_>, interface: &Interface) {
    let Interface { name, mtu, up, abilities, .. } = interface;
    let (state, value) = match (up, abilities.carrier) {
        (false, _) => (State::Blocks, "down"),
        (true, Some(false)) => (State::Blocks, "up, without a link"),
        (true, _) => (State::Ok, "up, with a link"),
    };
    evaluation.say_of(name, &THERE, state, value, "up, with a link");
    if let Some(rate) = evaluation.requirements.rate {
        let wanted = rate.to_string();
        match abilities.speed_mbps {
            Some(mbps) => {
                let right = u64::from(mbps) * 1_000_000 >= rate.as_bps();
                let state = if right { State::Ok } else { State::Blocks };
                evaluation.say_of(name, &SPEED, state, format!("{mbps} Mb/s"), wanted);
            }
            None => evaluation.say_of(name, &SPEED, State::Unknown, "the driver says none", wanted),
        }
    }
    if let Some(payload) = evaluation.requirements.payload {
        let state = if *mtu >= payload { State::Ok } else { State::Blocks };
        evaluation.say_of(name, &MTU, state, mtu, format!("{payload} at least"));
    }
}

fn abilities(evaluation: &mut Evaluation<'_>, interface: &Interface) {
    let Interface { name, abilities, .. } = interface;
    let advise = |right: bool| if right { State::Ok } else { State::Advice };
    let stamps = abilities.has_clock();
    let value = match abilities.hardware_clock.filter(|_| stamps) {
        Some(clock) => format!("/dev/ptp{clock}"),
        None => "software only".to_owned(),
    };
    evaluation.say_of(name, &STAMPS, advise(stamps), value, "both ways, with a clock");
    // One for each class that is reserved, and one for the rest.
    let least = if evaluation.requirements.shaped { 3 } else { 1 };
    if let Some(queues) = abilities.transmit_queues {
        let state = if queues >= least { State::Ok } else { State::Blocks };
        evaluation.say_of(name, &QUEUES, state, queues, format!("{least} at least"));
    }
    if let Some(delay) = abilities.receive_delay_us {
        let adapts = abilities.receive_delay_adapts == Some(true);
        let value = format!("{delay} µs{}", if adapts { ", and as the driver likes" } else { "" });
        let wanted = format!("at most {DELAY_US} µs, fixed");
        evaluation.say_of(name, &COALESCING, advise(delay <= DELAY_US && !adapts), value, wanted);
    }
    if let Some(sleeps) = abilities.sleeps {
        let value = if sleeps { "on" } else { "off" };
        evaluation.say_of(name, &SLEEPS, advise(!sleeps), value, "off");
    }
    if evaluation.requirements.gated {
        let driver = abilities.driver.as_deref().unwrap_or("unknown");
        let wanted = "a driver that has both";
        match DRIVERS.iter().find(|(known, _)| *known == driver) {
            Some((_, can)) => evaluation.say_of(name, &GATING, advise(*can), driver, wanted),
            None => {
                let why = format!("the driver {driver} does not say before they are set up");
                evaluation.say_of(name, &GATING, State::Unknown, why, wanted);
            }
        }
    }
}

fn classes(evaluation: &mut Evaluation<'_>, interface: &Interface, qdiscs: &[Qdisc]) {
    let name = &interface.name;
    let root = qdiscs.iter().find(|q| q.is_root && q.interface == interface.index);
    let kind = root.map_or("none", |qdisc| qdisc.kind.as_str());
    if evaluation.requirements.shaped || evaluation.requirements.gated {
        let right = kind == "taprio" || kind == "mqprio" && !evaluation.requirements.gated;
        let wanted = if evaluation.requirements.gated { "taprio" } else { "mqprio or taprio" };
        let state = if right { State::Ok } else { State::Blocks };
        evaluation.say_of(name, &QDISC, state, kind, wanted);
    }
    let Some(map) = root.and_then(|qdisc| qdisc.map) else { return };
    let value = map.map(|class| class.to_string()).join(" ");
    let shared =
        evaluation.requirements.tags.iter().find(|(_, code)| map[usize::from(*code & 7)] == map[0]);
    let (state, wanted) = match shared {
        Some((_, code)) => {
            (State::Blocks, format!("priority {code} in another class than priority 0"))
        }
        None if is_cut(&map) => (State::Blocks, "16 entries: the last two look left out".into()),
        None => (State::Ok, "16 entries".to_owned()),
    };
    evaluation.say_of(name, &PRIORITIES, state, value, wanted);
}

/// Whether the last entries are 0, which no other of best effort is: they were left out.
fn is_cut(map: &[u8; 16]) -> bool {
    map[15] == 0 && map[0] != 0 && map[4..12].iter().all(|class| *class != 0)
}

fn vlan(evaluation: &mut Evaluation<'_>, interface: &Interface) {
    for (id, code) in &evaluation.requirements.tags {
        let vlans = evaluation.facts.vlans.iter();
        let found = vlans
            .filter(|v| v.id == *id && (v.parent == interface.name || v.name == interface.name));
        for vlan in found.collect::<Vec<_>>() {
            let right = vlan.egress.contains(&(u32::from(*code), *code));
            let egress = vlan.egress.iter().map(|(from, to)| format!("{from}:{to}"));
            let value = egress.collect::<Vec<_>>().join(" ");
            let value = if value.is_empty() { "none".to_owned() } else { value };
            let state = if right { State::Ok } else { State::Blocks };
            evaluation.say_of(&vlan.name, &EGRESS, state, value, format!("{code}:{code}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_interface_says_its_parent_number_and_map() {
        let text = "eth0.2  VID: 2\t REORDER_HDR: 1  dev->priv_flags: 1021\n\
                    Device: eth0\nINGRESS priority mappings: 0:0  1:0\n\
                    EGRESS priority mappings: 2:2 3:3 ";
        let vlan = Vlan::parse("eth0.2", text).unwrap();
        assert_eq!((vlan.parent.as_str(), vlan.id), ("eth0", 2));
        assert_eq!(vlan.egress, [(2, 2), (3, 3)]);
        assert_eq!(Vlan::parse("eth0.2", ""), None);
    }

    #[test]
    fn a_map_of_14_entries_is_told_from_whole_ones() {
        let mut map = [3, 3, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0];
        assert!(is_cut(&map));
        (map[14], map[15]) = (2, 2);
        assert!(!is_cut(&map));
        // The kernel's own when none is given, and one whose best effort is class 0.
        assert!(!is_cut(&[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 1, 3, 3, 3, 3]));
        assert!(!is_cut(&[0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    }
}
