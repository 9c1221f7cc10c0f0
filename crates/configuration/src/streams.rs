//! Streams of a bridge: how it knows frames of asynchronous channels, and the ATS scheduler of each
//! (802.1Q-2022 12.31.2 to 12.31.6; 802.1CB-2017 9.1).

use crate::Deployment;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use onbeat_model::plan::{AtsScheduler, ChannelPlan};
use onbeat_model::port::{PortSettings, Selection};
use onbeat_model::system::{Channel, Class, NodeId, PortId};
use std::collections::{BTreeMap, BTreeSet};

/// The one stream gate: always open, as all frames of channels may pass.
const GATE: u32 = 1;

/// What one bridge is told of streams.
pub(crate) struct Streams {
    /// What it is told, if anything.
    pub(crate) roots: Vec<Element>,
    /// Ports of which all schedulers are said.
    pub(crate) said: BTreeSet<PortId>,
    /// What is not said.
    pub(crate) unsaid: Vec<String>,
}

/// A channel that has a scheduler, and its CommittedBurstSize in bits.
struct Scheduled<'a> {
    channel: &'a Channel,
    planned: &'a ChannelPlan,
    scheduler: AtsScheduler,
    burst_bits: u32,
}

impl Streams {
    /// Those of a bridge.
    pub(crate) fn of(all: &Deployment<'_>, id: NodeId) -> Self {
        let Deployment { system, plan, leaving } = all;
        let (mut scheduled, mut unsaid) = (Vec::new(), Vec::new());
        let (mut ports, mut torn) = (BTreeSet::new(), BTreeSet::new());
        for (channel, planned) in system.channels.iter().zip(&plan.channels) {
            let is_here = |it: &&AtsScheduler| system.port(it.port).node == id;
            let own: Vec<_> = planned.schedulers.iter().filter(is_here).copied().collect();
            ports.extend(own.iter().map(|scheduler| scheduler.port));
            let why = match own[..] {
                [] => continue,
                [scheduler] => match scheduler.bucket.burst.get().checked_mul(8) {
                    Some(burst_bits) => {
                        scheduled.push(Scheduled { channel, planned, scheduler, burst_bits });
                        continue;
                    }
                    None => "no CommittedBurstSize is so large",
                },
                _ => "it leaves by several ports, and a stream has one",
            };
            torn.extend(own.iter().map(|scheduler| scheduler.port));
            let (node, name) = (&system.node(id).name, &channel.name);
            unsaid.push(format!("{node}: channel `{name}` has no scheduler: {why}"));
        }
        // Of modelled streams a plan has no schedulers.
        let is_said = |port: &PortId| {
            let settings = &plan.ports[port.index()].settings;
            !torn.contains(port) && leaving.streams(*port).is_empty() && is_of_channels(settings)
        };
        let said = ports.into_iter().filter(is_said).collect();
        Self { roots: roots(all, id, &scheduled), said, unsaid }
    }
}

/// Whether only the queue of asynchronous channels has asynchronous shaping.
fn is_of_channels(settings: &PortSettings) -> bool {
    let own = Class::Asynchronous.queue();
    (0..).zip(&settings.selection).all(|(queue, of)| queue == own || *of != Selection::Asynchronous)
}

fn roots(all: &Deployment<'_>, id: NodeId, scheduled: &[Scheduled<'_>]) -> Vec<Element> {
    if scheduled.is_empty() {
        return Vec::new();
    }
    let mut residence: BTreeMap<(PortId, PortId), u32> = BTreeMap::new();
    for one in scheduled {
        let most = residence.entry(group(one)).or_default();
        *most = (*most).max(max_residence(one.planned));
    }
    let groups = (1..).zip(&residence).map(|(number, (group, most))| (*group, (number, *most)));
    let groups: BTreeMap<_, _> = groups.collect();
    let numbered = || (1..).zip(scheduled);
    let identities = numbered().map(|(handle, one)| identity(all, handle, one)).collect();
    let filters = numbered().map(|(handle, one)| filter(handle, one, groups[&group(one)]));
    let filters = InstanceValue::List(filters.collect());
    let gate = vec![
        ats("stream-gate-instance-id", InstanceValue::Number(GATE)),
        ats("gate-enable", InstanceValue::Flag(false)),
        ats("admin-gate-states", InstanceValue::Text("open".to_owned())),
        ats("admin-ipv", InstanceValue::Text("null".to_owned())),
    ];
    let gates = ats("stream-gate-instance-table", InstanceValue::List(vec![gate]));
    let filters = ats("stream-filter-instance-table", filters);
    let bridge = |name, value| Element::new(Module::Bridge, name, value);
    let name = || bridge("name", InstanceValue::Text(all.system.node(id).name.clone()));
    let component = vec![
        name(),
        ats("stream-gates", InstanceValue::Fields(vec![gates])),
        ats("stream-filters", InstanceValue::Fields(vec![filters])),
    ];
    let component = bridge("component", InstanceValue::List(vec![component]));
    let bridges = bridge("bridge", InstanceValue::List(vec![vec![name(), component]]));
    let identities = InstanceValue::List(identities);
    vec![
        bridge("bridges", InstanceValue::Fields(vec![bridges])),
        Element::new(Module::StreamIdentification, "stream-identity", identities),
    ]
}

/// The plan's group of schedulers.
fn group(of: &Scheduled<'_>) -> (PortId, PortId) {
    (of.scheduler.group, of.scheduler.port)
}

/// A time in nanoseconds for which no frame of a channel that keeps to its rate stays in a bridge:
/// twice its bound from talker to listener, so that it holds by every clock.
fn max_residence(planned: &ChannelPlan) -> u32 {
    let twice = planned.bound().and_then(|bound| bound.as_ns().checked_mul(2));
    twice.and_then(|ns| u32::try_from(ns).ok()).unwrap_or(u32::MAX)
}

/// How the bridge knows a channel's frames: null stream identification (802.1CB-2017 6.4).
fn identity(all: &Deployment<'_>, handle: u32, one: &Scheduled<'_>) -> Vec<Element> {
    let field = |name, value| Element::new(Module::StreamIdentification, name, value);
    let text = |name, text: String| field(name, InstanceValue::Text(text));
    let number = |name, number| field(name, InstanceValue::Number(number));
    let input = InstanceValue::Leaves(vec![all.system.port(one.scheduler.group).name.clone()]);
    let address = one.channel.destination.to_string().replace(':', "-").to_uppercase();
    let known = vec![
        text("destination-mac", address),
        text("tagged", "tagged".to_owned()),
        number("vlan", one.channel.vlan.into()),
    ];
    vec![
        number("index", handle),
        number("handle", handle),
        field("out-facing", InstanceValue::Fields(vec![field("input-port", input)])),
        field("null-stream-identification", InstanceValue::Fields(known)),
    ]
}

/// The stream filter of a channel with its scheduler. The module has the tables of schedulers and
/// of groups within each filter: a group is in those of all its schedulers, by the same number.
fn filter(handle: u32, one: &Scheduled<'_>, (group, residence): (u32, u32)) -> Vec<Element> {
    let number = |name, number| ats(name, InstanceValue::Number(number));
    let scheduler = vec![
        number("scheduler-instance-id", handle),
        ats("committed-information-rate", InstanceValue::Large(one.scheduler.bucket.rate.as_bps())),
        number("committed-burst-size", one.burst_bits),
        number("scheduler-group-ref", group),
    ];
    let group =
        vec![number("scheduler-group-instance-id", group), number("max-residence-time", residence)];
    let table = |name, table, entry| {
        let table = ats(table, InstanceValue::List(vec![entry]));
        ats(name, InstanceValue::Fields(vec![table]))
    };
    let reference =
        vec![number("scheduler-ref", handle), ats("scheduler-enable", InstanceValue::Flag(true))];
    vec![
        number("stream-filter-instance-id", handle),
        number("stream-handle", handle),
        ats("priority-spec", InstanceValue::Text("wildcard".to_owned())),
        // Any size: the scheduler counts octets.
        number("max-sdu-size", 0),
        number("stream-gate-ref", GATE),
        table("schedulers", "scheduler-instance-table", scheduler),
        table("scheduler-groups", "scheduler-group-instance-table", group),
        ats("scheduler", InstanceValue::Fields(reference)),
    ]
}

fn ats(name: &'static str, value: InstanceValue) -> Element {
    Element::new(Module::BridgeSchedulers, name, value)
}
