//! What a plan asks of an interface, and the commands for `tc` and `ip` that make it: a shaper for
//! each reserved class (Austad et al. 2023, listing 14), gates, VLANs.

use crate::Deployment;
use crate::classes::{Classes, Users};

use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, QUEUES, Selection};
use onbeat_model::system::{BEST_EFFORT_QUEUE, Channel, Class, NodeId, NodeKind, PortId, System};
use onbeat_model::units::{BitRate, Octets, frame};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The number of our root discipline: what has it is ours.
const HANDLE: &str = "8b0:";
/// Priorities of sockets that `mqprio` and `taprio` map (linux/pkt_sched.h, TC_QOPT_BITMASK + 1).
const PRIORITIES: usize = 16;
/// The longest name of an interface (linux/if.h, IFNAMSIZ - 1).
const NAME_MAX: usize = 15;
/// The most classes that `mqprio` and `taprio` take (linux/pkt_sched.h, TC_QOPT_MAX_QUEUE), the
/// most queues of an interface and the most entries of a gate control list that are believed.
const CLASSES_MAX: usize = 16;
const QUEUES_MAX: u16 = 4_096;
const ENTRIES_MAX: usize = 4_096;
/// The most entries that `tc` has room for in the message to the kernel, which it limits to 1,024
/// octets (iproute2, q_taprio.c): it leaves out the others, and says only that some are too many.
const TC_ENTRIES_MAX: usize = 30;
/// The longest cycle that the kernel takes (net/sched/sch_taprio.c).
const CYCLE_MAX_NS: i64 = i32::MAX as i64;
/// What an entry must have time for at least (net/sched/sch_taprio.c): ETH_ZLEN.
const SHORTEST: Octets = Octets::new(60);

/// How long before a launch time the kernel wakes to hand the frame to the driver: more than a
/// kernel without real-time patches is late, mostly (tc-etf(8) has 300 µs in its example).
const ETF_DELTA_NS: u32 = 200_000;

/// Whether the kernel gives interfaces such a name (`dev_valid_name`), and no command takes it for
/// an option.
pub fn is_interface(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.starts_with('-')
        && name.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'/' && octet != b':')
}

/// How the interface numbers its traffic classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Only queues that have traffic of the plan have a class: the most urgent one is 0, and the
    /// last is for all else. Controllers of hosts send from queue 0 first.
    #[default]
    Compact,
    /// Eight, as 802.1Q numbers them; this is the class of each priority.
    Standard([u8; QUEUES]),
}

/// What goes through one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The link's rate.
    pub rate: BitRate,
    /// How classes are numbered.
    pub numbering: Numbering,
    /// The classes that have a queue of their own, the most urgent first.
    pub classes: Vec<Queue>,
    /// When queues are open.
    pub gates: Vec<GateControl>,
    /// The VLANs of its channels.
    pub vlans: Vec<Vlan>,
    /// Whether the interface's hardware does the shaping.
    pub offload: bool,
}

/// A class that has a queue of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The queue of the plan.
    pub queue: u8,
    /// The priority code points of its channels, which are their sockets' priorities.
    pub pcps: BTreeSet<u8>,
    /// What is reserved; zero if it has no shaper.
    pub idle_slope: BitRate,
    /// The longest of its frames on the wire, in octets.
    pub octets: u64,
    /// Whether the kernel launches its frames at their launch times.
    pub launches: bool,
}

/// A VLAN of the interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vlan {
    /// Its identifier.
    pub number: u16,
    /// The priority code points of its channels.
    pub pcps: BTreeSet<u8>,
}

impl Vlan {
    /// Its interface's name.
    pub fn name(&self, interface: &str) -> String {
        let number = format!(".{}", self.number);
        let most = NAME_MAX.saturating_sub(number.len());
        interface.chars().take(most).chain(number.chars()).collect()
    }

    /// The commands that make it.
    pub fn setup(&self, interface: &str) -> Vec<Vec<String>> {
        let name = self.name(interface);
        let number = self.number;
        let mut add = words(&format!(
            "ip link add link {interface} name {name} type vlan id {number} egress-qos-map"
        ));
        add.extend(self.pcps.iter().map(|pcp| format!("{pcp}:{pcp}")));
        vec![add, words(&format!("ip link set dev {name} up"))]
    }

    /// Whether there is such a VLAN.
    pub fn is_sound(&self) -> bool {
        (1..=4_094).contains(&self.number) && self.pcps.iter().all(|pcp| *pcp <= 7)
    }
}

/// Queueing disciplines: numbers only, so that a journal can hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disciplines {
    /// The class of each priority of a socket; the last class is for all else.
    pub map: Vec<u8>,
    /// From how many queues the interface sends: each class has one, the last has the others.
    pub queues: u16,
    /// When the classes' gates are open.
    pub gates: Option<Gates>,
    /// The classes that have a shaper.
    pub shapers: Vec<Shaper>,
    /// Whether the interface's hardware does it.
    pub offload: bool,
    /// How many classes there are at least: those of the map always are. No tune sets it.
    #[serde(skip)]
    pub classes: u8,
    /// The classes whose frames `etf` holds until their launch times. No tune sets it.
    #[serde(skip)]
    pub launches: Vec<u8>,
}

/// A gate control list, by classes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// When a cycle begins.
    pub base_ns: i64,
    /// How long it is.
    pub cycle_ns: i64,
    /// Which classes are open, as a mask, and for how many nanoseconds.
    pub entries: Vec<(u32, i64)>,
}

/// A credit-based shaper as `tc-cbs` wants it: kilobits per second and octets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// The class.
    pub class: u8,
    /// By how much credit grows while the class waits.
    pub idle_slope_kbps: u64,
    /// By how much it shrinks while the class sends.
    pub send_slope_kbps: u64,
    /// The most credit.
    pub high_octets: u64,
    /// The most debt.
    pub low_octets: u64,
}

impl Disciplines {
    /// As [`super::Target::Qdiscs`] has them.
    pub fn value(&self) -> String {
        let mut value = format!("{} {HANDLE}", self.kind());
        for shaper in &self.shapers {
            value.push_str(&format!(",cbs 8b{}:", shaper.class + 1));
        }
        value
    }

    /// The commands that make them.
    pub fn commands(&self, interface: &str) -> Vec<Vec<String>> {
        let mut commands = vec![self.root(interface)];
        commands.extend(self.shapers.iter().map(|shaper| {
            let Shaper { class, idle_slope_kbps, send_slope_kbps, high_octets, low_octets } =
                shaper;
            let at = class + 1;
            words(&format!(
                "tc qdisc replace dev {interface} parent {HANDLE}{at} handle 8b{at}: cbs idleslope \
                 {idle_slope_kbps} sendslope -{send_slope_kbps} hicredit {high_octets} locredit \
                 -{low_octets} offload {}",
                u8::from(self.offload)
            ))
        }));
        commands.extend(self.launches.iter().map(|class| {
            let at = class + 1;
            words(&format!(
                "tc qdisc replace dev {interface} parent {HANDLE}{at} handle 8b{at}: etf clockid \
                 CLOCK_TAI delta {ETF_DELTA_NS}"
            ))
        }));
        commands
    }

    fn kind(&self) -> &'static str {
        if self.gates.is_some() { "taprio" } else { "mqprio" }
    }

    /// The last class, which has the queues that no other has.
    fn last(&self) -> u8 {
        let of_map = self.map.iter().copied().max().unwrap_or_default();
        of_map.max(self.classes.saturating_sub(1))
    }

    /// The root: each class has the queue of its number.
    fn root(&self, interface: &str) -> Vec<String> {
        let last = self.last();
        let map: Vec<String> = self.map.iter().map(ToString::to_string).collect();
        let mut own: Vec<String> = (0..last).map(|queue| format!("1@{queue}")).collect();
        own.push(format!("{}@{last}", self.queues.saturating_sub(last.into())));
        let mut root = words(&format!(
            "tc qdisc replace dev {interface} root handle {HANDLE} {} num_tc {} map {} queues {}",
            self.kind(),
            u32::from(last) + 1,
            map.join(" "),
            own.join(" ")
        ));
        let Some(gates) = &self.gates else {
            root.extend(words("hw 0"));
            return root;
        };
        root.extend(words(&format!("base-time {} cycle-time {}", gates.base_ns, gates.cycle_ns)));
        for (open, span_ns) in &gates.entries {
            root.extend(words(&format!("sched-entry S {open:02x} {span_ns}")));
        }
        root.extend(words(if self.offload { "flags 0x2" } else { "clockid CLOCK_TAI" }));
        root
    }

    /// Whether they can be made, as far as that is no matter of the interface.
    pub fn is_sound(&self) -> bool {
        let last = self.last();
        let gates = self.gates.as_ref().is_none_or(|gates| {
            let entries = gates.entries.iter().all(|(_, span_ns)| *span_ns >= 0);
            gates.base_ns >= 0
                && gates.cycle_ns > 0
                && gates.entries.len() <= ENTRIES_MAX
                && entries
        });
        let shapers = self.shapers.iter().all(|shaper| shaper.class < last);
        let classes = usize::from(last) < CLASSES_MAX && self.shapers.len() <= usize::from(last);
        let queues = u16::from(last) < self.queues && self.queues <= QUEUES_MAX;
        self.map.len() == PRIORITIES && classes && queues && gates && shapers
    }
}

impl Traffic {
    /// What the plan asks of a host whose programs write its channels.
    pub fn of(system: &System, plan: &Plan, host: NodeId, offload: bool) -> Self {
        let node = system.node(host);
        let (NodeKind::Host(_), Some(port)) = (&node.kind, node.ports.first()) else {
            return Self::default();
        };
        let planned = plan.ports.get(port.index()).cloned().unwrap_or_default();
        let mut classes = Vec::new();
        for class in [Class::A, Class::B, Class::Scheduled, Class::Asynchronous] {
            let channels: Vec<_> = system
                .channels
                .iter()
                .filter(|c| c.talker == host && c.class == class && c.reserve && plan.protected)
                .collect();
            if channels.is_empty() {
                continue;
            }
            let octets = channels.iter().map(|c| u64::from(frame::on_wire(c.frame()).get())).max();
            classes.push(Queue {
                queue: class.queue() as u8,
                pcps: channels.iter().map(|channel| channel.pcp).collect(),
                idle_slope: planned.idle_slope(class),
                octets: octets.unwrap_or_default(),
                launches: false,
            });
        }
        Self {
            rate: system.link_of(*port).rate,
            numbering: Numbering::Compact,
            classes,
            gates: planned.settings.gates,
            vlans: vlans(system, host),
            offload,
        }
    }

    /// What the plan asks of a port, whoever sends there: the queues of its channels and streams,
    /// and those with a shaper. Those of a host that go behind best effort are with it.
    pub(crate) fn of_port(all: &Deployment<'_>, id: PortId) -> Self {
        let Deployment { system, plan, .. } = all;
        let port = system.port(id);
        let settings = plan.ports.get(id.index()).map_or(&port.settings, |port| &port.settings);
        let users = Users::of(all, id);
        let is_bridge = matches!(system.node(port.node).kind, NodeKind::Bridge(_));
        let classes = (0..QUEUES).rev().filter_map(|queue| {
            let (pcps, longest) = (&users.pcps[queue], users.octets[queue]);
            let idle_slope = match settings.selection[queue] {
                Selection::CreditBased { idle_slope } => idle_slope,
                _ => BitRate::default(),
            };
            let planned = !pcps.is_empty() || idle_slope.as_bps() > 0;
            (is_bridge || (planned && queue > BEST_EFFORT_QUEUE)).then(|| Queue {
                queue: queue as u8,
                pcps: pcps.clone(),
                idle_slope,
                // Where nothing is known to be sent, anything may be.
                octets: u64::from(longest.unwrap_or(frame::on_wire(frame::MAX_TAGGED)).get()),
                launches: queue == Class::Scheduled.queue() && launches(all, id) == Ok(true),
            })
        });
        let classes = classes.collect();
        let (numbering, vlans) = match is_bridge {
            true => {
                let classes = Classes::of(all, id).of_priority;
                (Numbering::Standard(classes), Vec::new())
            }
            false => (Numbering::Compact, vlans(system, port.node)),
        };
        let (rate, gates) = (system.link_of(id).rate, settings.gates.clone());
        Self { rate, numbering, classes, gates, vlans, offload: is_bridge }
    }

    /// The disciplines for an interface that sends from so many queues; none if the plan asks for
    /// none; an error says why there can be none.
    pub fn disciplines(&self, queues: usize) -> Result<Option<Disciplines>, String> {
        if self.classes.is_empty() && self.gates.is_empty() {
            return Ok(None);
        }
        let needed = self.needed();
        if queues < needed {
            let plural = if queues == 1 { "queue" } else { "queues" };
            return Err(format!(
                "it sends from {queues} {plural}, and the plan needs {needed}: nothing of the plan \
                 is shaped"
            ));
        }
        let gates = match &self.gates[..] {
            [] => None,
            [gates] => Some(self.schedule(gates)?),
            _ => return Err("a port with several gate control lists cannot be set".to_owned()),
        };
        let (map, classes) = match &self.numbering {
            Numbering::Compact => (self.map()?, 0),
            // Sockets may have priorities beyond those of frames: they get what 0 gets.
            Numbering::Standard(of) => {
                let map = (0..PRIORITIES).map(|priority| of.get(priority).copied());
                (map.map(|class| class.unwrap_or(of[0])).collect(), QUEUES as u8)
            }
        };
        let queues = u16::try_from(queues).unwrap_or(u16::MAX).min(QUEUES_MAX);
        let shaped = self.classes.iter().enumerate().filter(|(_, q)| q.idle_slope.as_bps() > 0);
        let shapers = shaped.map(|(at, _)| self.shaper(at)).collect();
        let launches = self.classes.iter().enumerate().filter(|(_, queue)| queue.launches);
        let launches = launches.map(|(at, _)| self.number(at)).collect();
        let offload = self.offload;
        Ok(Some(Disciplines { map, queues, gates, shapers, offload, classes, launches }))
    }

    /// From how many queues the interface has to send.
    pub fn needed(&self) -> usize {
        match self.numbering {
            Numbering::Compact => self.classes.len() + 1,
            Numbering::Standard(_) => QUEUES,
        }
    }

    /// The number of a class, by its place.
    fn number(&self, at: usize) -> u8 {
        match self.numbering {
            Numbering::Compact => at as u8,
            Numbering::Standard(_) => self.classes[at].queue,
        }
    }

    /// The class of each priority; what is in none has the last.
    fn map(&self) -> Result<Vec<u8>, String> {
        let last = self.classes.len();
        let mut map = [None; PRIORITIES];
        for (class, queue) in self.classes.iter().enumerate() {
            for pcp in &queue.pcps {
                match map[usize::from(*pcp) % PRIORITIES].replace(class) {
                    None => {}
                    Some(_) => {
                        return Err(format!("two classes have priority code point {pcp}"));
                    }
                }
            }
        }
        Ok(map.iter().map(|class| class.unwrap_or(last) as u8).collect())
    }

    /// The gates as `taprio` takes them. Its entries are as long as its cycle: of a list that ends
    /// before, the last state stays; what would begin after the cycle never comes.
    fn schedule(&self, gates: &GateControl) -> Result<Gates, String> {
        let (base_ns, cycle_ns) = (gates.base_from_epoch().as_ns(), gates.cycle.as_ns());
        if !(1..=CYCLE_MAX_NS).contains(&cycle_ns) {
            let most = CYCLE_MAX_NS;
            return Err(format!("`taprio` takes cycles of up to {most} ns, not of {cycle_ns}"));
        }
        let mut entries = Vec::new();
        let mut left = cycle_ns;
        for entry in &gates.entries {
            let ns = entry.span.as_ns().clamp(0, left);
            if ns > 0 {
                entries.push((self.open(entry.open), ns));
            }
            left -= ns;
        }
        if let Some((_, ns)) = entries.last_mut() {
            *ns += left;
        }
        let shortest = self.rate.time_for(SHORTEST).as_ns();
        if let Some((_, ns)) = entries.iter().find(|(_, ns)| *ns < shortest) {
            return Err(format!(
                "an entry of its gate control list takes {ns} ns, and `taprio` takes none shorter \
                 than {shortest} ns at its rate"
            ));
        }
        if entries.len() > TC_ENTRIES_MAX {
            let count = entries.len();
            return Err(format!(
                "its gate control list has {count} entries, and `tc` passes on {TC_ENTRIES_MAX}"
            ));
        }
        Ok(Gates { base_ns, cycle_ns, entries })
    }

    /// The classes whose queues are open.
    fn open(&self, queues: u8) -> u32 {
        let is_open = |queue: usize| queues & (1 << queue) != 0;
        let own = self.classes.iter().enumerate();
        let own = own.filter(|(_, class)| is_open(class.queue.into()));
        let own: u32 = own.map(|(at, _)| 1 << self.number(at)).sum();
        match self.numbering {
            Numbering::Compact if is_open(BEST_EFFORT_QUEUE) => own | 1 << self.classes.len(),
            _ => own,
        }
    }

    /// A credit-based shaper; credits as in 802.1Q-2018 Annex L, rounded away from zero.
    fn shaper(&self, at: usize) -> Shaper {
        let rate = u128::from(self.rate.as_bps().max(1));
        let queue = &self.classes[at];
        let slope = u128::from(queue.idle_slope.as_bps()).min(rate);
        let higher = self.classes[..at].iter().filter(|class| class.idle_slope.as_bps() > 0);
        let slopes: u128 = higher.clone().map(|class| u128::from(class.idle_slope.as_bps())).sum();
        let longest = u128::from(frame::on_wire(frame::MAX_TAGGED).get());
        // The longest frame that is in transmission, while the higher classes fill up, and one of
        // theirs.
        let mut waits = (longest * rate).div_ceil(rate.saturating_sub(slopes).max(1));
        waits += higher.map(|class| u128::from(class.octets)).sum::<u128>();
        let high = (waits * slope).div_ceil(rate);
        let low = (u128::from(queue.octets) * (rate - slope)).div_ceil(rate);
        let (slope, rate) = (slope.div_ceil(1_000), rate / 1_000);
        let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Shaper {
            class: self.number(at),
            idle_slope_kbps: whole(slope),
            send_slope_kbps: whole(rate.saturating_sub(slope)),
            high_octets: whole(high),
            low_octets: whole(low),
        }
    }
}

/// Whether frames leave a host's port at launch times that no gates keep: its programs give them
/// with each frame. Or why the kernel cannot keep them there: it drops frames without one.
pub(super) fn launches(all: &Deployment<'_>, id: PortId) -> Result<bool, String> {
    let Deployment { system, plan, .. } = all;
    let node = system.port(id).node;
    let has_gates = plan.ports.get(id.index()).is_some_and(|port| !port.settings.gates.is_empty());
    let own = || system.channels.iter().zip(&plan.channels).filter(|(own, _)| own.talker == node);
    let launched = || own().filter(|(_, planned)| planned.launch.is_some());
    let shares = |channel: &Channel| launched().any(|(own, _)| own.pcp == channel.pcp);
    let mut others = own().filter(|(_, planned)| planned.launch.is_none());
    match others.find(|(channel, _)| shares(channel)) {
        _ if has_gates => Ok(false),
        None => Ok(launched().next().is_some()),
        Some((other, _)) => Err(format!(
            "launch times are not kept by `etf`: channel `{}` has the same priority and none",
            other.name
        )),
    }
}

/// The VLANs of what a host sends and receives.
fn vlans(system: &System, host: NodeId) -> Vec<Vlan> {
    let mut vlans: BTreeMap<u16, BTreeSet<u8>> = BTreeMap::new();
    for channel in &system.channels {
        if channel.talker == host || channel.listeners.contains(&host) {
            vlans.entry(channel.vlan).or_default().insert(channel.pcp);
        }
    }
    vlans.into_iter().map(|(number, pcps)| Vlan { number, pcps }).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::port::GateEntry;
    use onbeat_model::time::{NetTime, Span};

    fn queue(class: Class, pcp: u8, mbps: u64, octets: u64) -> Queue {
        let (queue, idle_slope) = (class.queue() as u8, BitRate::from_mbps(mbps));
        Queue { queue, pcps: BTreeSet::from([pcp]), idle_slope, octets, launches: false }
    }

    fn two() -> Traffic {
        Traffic {
            rate: BitRate::from_mbps(1_000),
            classes: vec![queue(Class::A, 3, 20, 90), queue(Class::B, 2, 10, 200)],
            ..Traffic::default()
        }
    }

    fn lines(setup: &[Vec<String>]) -> Vec<String> {
        setup.iter().map(|command| command.join(" ")).collect()
    }

    #[test]
    fn classes_get_queues_and_shapers_and_all_priorities_a_class() {
        let made = two().disciplines(4).unwrap().unwrap();
        assert!(made.is_sound());
        assert_eq!(made.value(), "mqprio 8b0:,cbs 8b1:,cbs 8b2:");
        let [root, a, b] = &lines(&made.commands("eth0"))[..] else { panic!("{made:?}") };
        let map = "num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 hw 0";
        assert_eq!(*root, format!("tc qdisc replace dev eth0 root handle 8b0: mqprio {map}"));
        // 1,542 octets at 2 % of the rate; 90 octets at 98 %.
        let shaper = "cbs idleslope 20000 sendslope -980000 hicredit 31 locredit -89 offload 0";
        assert_eq!(*a, format!("tc qdisc replace dev eth0 parent 8b0:1 handle 8b1: {shaper}"));
        // (1,542 / 0.98 + 90) octets at 1 %.
        let shaper = "cbs idleslope 10000 sendslope -990000 hicredit 17 locredit -198 offload 0";
        assert_eq!(*b, format!("tc qdisc replace dev eth0 parent 8b0:2 handle 8b2: {shaper}"));
    }

    #[test]
    fn gates_of_the_plan_are_those_of_its_classes() {
        let entry = |open, us| GateEntry { open, span: Span::from_us(us) };
        let gates = GateControl {
            base: NetTime::from_ns(7),
            cycle: Span::from_us(500),
            entries: vec![entry(1 << 7, 100), entry(1 << 6 | 1 << 1, 400)],
            length_aware: true,
        };
        let mut traffic = two();
        traffic.gates = vec![gates.clone()];
        let made = traffic.disciplines(3).unwrap().unwrap();
        assert!(made.is_sound() && made.value().starts_with("taprio 8b0:,"));
        let end = "base-time 7 cycle-time 500000 sched-entry S 01 100000 sched-entry S 06 400000 \
                   clockid CLOCK_TAI";
        assert!(lines(&made.commands("eth0"))[0].ends_with(end), "{made:?}");
        traffic.gates.push(gates);
        assert!(traffic.disciplines(3).is_err());
    }

    #[test]
    fn what_cannot_be_had_says_why() {
        assert_eq!(Traffic::default().disciplines(1), Ok(None));
        assert!(two().disciplines(1).unwrap_err().contains("1 queue, and the plan needs 3"));
        let mut same = two();
        same.classes[1].pcps = BTreeSet::from([3]);
        assert!(same.disciplines(3).unwrap_err().contains("code point 3"));
    }

    #[test]
    fn a_vlan_has_a_name_that_the_kernel_takes() {
        let vlan = Vlan { number: 2, pcps: BTreeSet::from([2, 3]) };
        let add = "ip link add link enp2s0 name enp2s0.2 type vlan id 2 egress-qos-map 2:2 3:3";
        assert_eq!(lines(&vlan.setup("enp2s0")), [add, "ip link set dev enp2s0.2 up"]);
        let long = Vlan { number: 4_094, ..vlan }.name("enx0123456789ab");
        assert_eq!(long, "enx0123456.4094");
    }
}
