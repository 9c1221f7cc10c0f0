//! What a system asks of the machine: taken from its description and plan.

use super::finding::Need;
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::system::{Class, Host, Node, NodeId, NodeKind, System};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use onbeat_run::machine::CpuList;
use std::collections::BTreeSet;

/// Octets before a channel's payload in a frame, behind the Ethernet header and tag: IEEE 1722's
/// common header of a stream (1722-2016 4.4.4).
const STREAM_HEADER: u32 = 24;

/// What a guarantee is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuaranteeKind {
    /// A channel's latency.
    Channel,
    /// A chain's deadline.
    Chain,
    /// A program's timing points.
    Program,
}

/// One guarantee of the description that concerns this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// What it is about.
    pub kind: GuaranteeKind,
    /// The name of that.
    pub name: String,
    /// What is guaranteed, for a person.
    pub what: String,
    /// What it rests on here.
    pub rests_on: BTreeSet<Need>,
}

/// A program that is to run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its SCHED_FIFO priority.
    pub priority: Option<u8>,
    /// The cores that it may use; none: any.
    pub cores: CpuList,
}

/// What is asked of one machine. Without a system: nothing in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The system's name; empty if there is none.
    pub system: String,
    /// The interface that channels are to use.
    pub interface: Option<String>,
    /// The programs that are to run here.
    pub programs: Vec<Program>,
    /// What is guaranteed.
    pub guarantees: Vec<Guarantee>,
    /// The latest wake-up that the description counts on, where it says one.
    pub wakeup_max: Option<Span>,
    /// The rate of the machine's link.
    pub rate: Option<BitRate>,
    /// The longest payload of the machine's frames, in octets.
    pub payload: Option<u32>,
    /// VLAN and priority code point of the channels that are written here.
    pub tags: BTreeSet<(u16, u8)>,
    /// Whether classes A or B leave here with reservations.
    pub shaped: bool,
    /// Whether scheduled traffic leaves here.
    pub gated: bool,
    /// By how much the machine's clock may be off before a channel comes after its fixed delay.
    pub clock_slack: Option<Span>,
}

/// A host that the system does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no host `{0}`: it has {1}")]
pub struct NoSuchHost(pub String, pub String);

impl Requirements {
    /// What a system asks of the machine that runs all of it on the emulated network.
    pub fn of_all(system: &System, plan: &Plan) -> Self {
        let mut requirements = Self { system: system.name.clone(), ..Self::default() };
        for (at, _) in hosts(system) {
            requirements.add_programs(system, at);
        }
        requirements.guarantee(system, plan, None);
        requirements
    }

    /// What it asks of the machine that is one of its hosts, on a real network.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn of_host(system: &System, plan: &Plan, host: &str) -> Result<Self, NoSuchHost> {
        let Some((at, _)) = hosts(system).find(|(at, _)| system.node(*at).name == host) else {
            let names: Vec<_> =
                hosts(system).map(|(at, _)| system.node(at).name.as_str()).collect();
            return Err(NoSuchHost(host.to_owned(), names.join(", ")));
        };
        let mut requirements = Self { system: system.name.clone(), ..Self::default() };
        requirements.add_programs(system, at);
        requirements.add_network(system, plan, at);
        requirements.guarantee(system, plan, Some(at));
        Ok(requirements)
    }

    /// Whether there is no system: what is good in general is then advised.
    pub fn is_general(&self) -> bool {
        self.system.is_empty()
    }

    /// Whether some guarantee rests on this.
    pub(super) fn rests_on(&self, need: Need) -> bool {
        self.guarantees.iter().any(|guarantee| guarantee.rests_on.contains(&need))
    }

    /// The cores that programs ask for by number.
    pub(super) fn cores(&self) -> CpuList {
        let all = self.programs.iter().flat_map(|program| program.cores.0.iter().copied());
        CpuList(all.collect())
    }

    /// The highest priority of any program.
    pub(super) fn priority(&self) -> Option<u8> {
        self.programs.iter().filter_map(|program| program.priority).max()
    }

    fn add_programs(&mut self, system: &System, at: NodeId) {
        self.programs.extend(system.programs_on(at).map(|program| Program {
            name: program.name.clone(),
            priority: program.priority,
            cores: CpuList(program.cores.iter().copied().collect()),
        }));
        if let NodeKind::Host(Host { wakeup, .. }) = &system.node(at).kind
            && system.has_program(at)
            && wakeup.max() > Span::ZERO
        {
            let least = self.wakeup_max.unwrap_or(wakeup.max());
            self.wakeup_max = Some(least.min(wakeup.max()));
        }
    }

    fn add_network(&mut self, system: &System, plan: &Plan, at: NodeId) {
        let Some(port) = system.node(at).ports.first() else { return };
        self.rate = Some(system.link_of(*port).rate);
        let here = |node: &NodeId| *node == at;
        for channel in &system.channels {
            let talks = here(&channel.talker);
            if talks || channel.listeners.iter().any(here) {
                let payload = channel.stream_data_length().get() + STREAM_HEADER;
                self.payload = Some(self.payload.unwrap_or(0).max(payload));
            }
            if talks {
                self.tags.insert((channel.vlan, channel.pcp));
            }
        }
        let settings = &plan.ports[port.index()].settings;
        self.shaped = settings.selection.iter().any(|s| matches!(s, Selection::CreditBased { .. }));
        let scheduled = |channel: &onbeat_model::system::Channel| {
            channel.class == Class::Scheduled && here(&channel.talker)
        };
        self.gated = !settings.gates.is_empty() || system.channels.iter().any(scheduled);
    }

    fn guarantee(&mut self, system: &System, plan: &Plan, at: Option<NodeId>) {
        let is_here = |node: NodeId| at.is_none_or(|host| host == node);
        let mut needs_of = Vec::new();
        for (channel, planned) in system.channels.iter().zip(&plan.channels) {
            let listens = channel.listeners.iter().any(|node| is_here(*node));
            let mut rests_on = BTreeSet::new();
            if listens || is_here(channel.talker) {
                rests_on.insert(Need::Wakeup);
            }
            // One machine has one clock, and an emulated network is its own.
            if at.is_some() && !rests_on.is_empty() {
                rests_on.insert(Need::Time);
                rests_on.extend((planned.protected).then_some(Need::Network));
            }
            needs_of.push(rests_on.clone());
            let Some(bound) = planned.bound().filter(|_| !rests_on.is_empty()) else { continue };
            let slack = channel.fixed_delay - bound;
            self.clock_slack = Some(self.clock_slack.map_or(slack, |least| least.min(slack)));
            let (kind, name) = (GuaranteeKind::Channel, channel.name.clone());
            let what = format!("at most {bound}, continues after {}", channel.fixed_delay);
            self.guarantees.push(Guarantee { kind, name, what, rests_on });
        }
        for (chain, bound) in system.chains.iter().zip(&plan.chains) {
            let all = chain.channels.iter().flat_map(|id| needs_of[id.index()].iter().copied());
            let rests_on: BTreeSet<Need> = all.collect();
            if bound.is_some() && !rests_on.is_empty() {
                let (kind, name) = (GuaranteeKind::Chain, chain.name.clone());
                let what = format!("deadline {}", chain.deadline);
                self.guarantees.push(Guarantee { kind, name, what, rests_on });
            }
        }
        for program in system.programs.iter().filter(|program| is_here(program.host)) {
            let what = match program.priority {
                Some(priority) => format!("its timing points, at priority {priority}"),
                None => "its timing points".to_owned(),
            };
            let (kind, name) = (GuaranteeKind::Program, program.name.clone());
            let rests_on = BTreeSet::from([Need::Wakeup]);
            self.guarantees.push(Guarantee { kind, name, what, rests_on });
        }
    }
}

fn hosts(system: &System) -> impl Iterator<Item = (NodeId, &Node)> {
    let all = (0..).map(NodeId).zip(&system.nodes);
    all.filter(|(_, node)| matches!(node.kind, NodeKind::Host(_)))
}
