//! Streams of a bridge: how it knows frames of asynchronous and of replicated channels
//! (802.1CB-2017 9.1), and the ATS scheduler of each asynchronous one (802.1Q-2022 12.31.2 to
//! 12.31.6).

use crate::Deployment;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use crate::replication::{self, Replicated};
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
        unsaid.extend(replication::unsaid(all, id));
        Self { roots: roots(all, id, &scheduled), said, unsaid }
    }
}

/// Whether only the queue of asynchronous channels has asynchronous shaping.
fn is_of_channels(settings: &PortSettings) -> bool {
    let own = Class::Asynchronous.queue();
    (0..).zip(&settings.selection).all(|(queue, of)| queue == own || *of != Selection::Asynchronous)
}

/// All elements. They share one list of identities, in which the handles of asynchronous channels
/// come first.
fn roots(all: &Deployment<'_>, id: NodeId, scheduled: &[Scheduled<'_>]) -> Vec<Element> {
    let of_scheduled = (1..).zip(scheduled).map(|(handle, one)| {
        identity(all, handle, one.channel, std::iter::once(one.scheduler.group))
    });
    let mut identities: Vec<_> = of_scheduled.collect();
    let replicated = (1..).skip(scheduled.len()).zip(Replicated::at(all, id));
    let replicated: Vec<(u32, Replicated<'_>)> = replicated.collect();
    // Copies of a frame have one destination and VLAN, by whichever port they come in: they are of
    // one Stream, identified at several ports (802.1CB-2017 9.1.1.5). Handles of their own for
    // Member Streams (7.2) would serve Individual recovery (7.5) or splitting (7.7), and there is
    // neither.
    let of_replicated = replicated
        .iter()
        .map(|(handle, one)| identity(all, *handle, one.channel, one.enters().into_iter()));
    identities.extend(of_replicated);
    let mut roots = Vec::new();
    if !scheduled.is_empty() {
        roots.push(schedulers(all, id, scheduled));
    }
    if !identities.is_empty() {
        let identities = InstanceValue::List(identities);
        roots.push(Element::new(Module::StreamIdentification, "stream-identity", identities));
    }
    roots.extend(replication::frer(all, &replicated));
    roots
}

/// The stream filters, the stream gate and the schedulers of channels.
fn schedulers(all: &Deployment<'_>, id: NodeId, scheduled: &[Scheduled<'_>]) -> Element {
    let mut residence: BTreeMap<(PortId, PortId), u32> = BTreeMap::new();
    for one in scheduled {
        let most = residence.entry(group(one)).or_default();
        *most = (*most).max(max_residence(one.planned));
    }
    let groups = (1..).zip(&residence).map(|(number, (group, most))| (*group, (number, *most)));
    let groups: BTreeMap<_, _> = groups.collect();
    let filters =
        (1..).zip(scheduled).map(|(handle, one)| filter(handle, one, groups[&group(one)]));
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
    bridge("bridges", InstanceValue::Fields(vec![bridges]))
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

/// How the bridge knows a channel's frames as they come from links: null stream identification
/// (802.1CB-2017 6.4), out-facing (9.1.1.5).
fn identity(
    all: &Deployment<'_>,
    handle: u32,
    channel: &Channel,
    enters: impl Iterator<Item = PortId>,
) -> Vec<Element> {
    let field = |name, value| Element::new(Module::StreamIdentification, name, value);
    let text = |name, text: String| field(name, InstanceValue::Text(text));
    let number = |name, number| field(name, InstanceValue::Number(number));
    let input = enters.map(|port| all.system.port(port).name.clone());
    let input = InstanceValue::Leaves(input.collect());
    let address = channel.destination.to_string().replace(':', "-").to_uppercase();
    let known = vec![
        text("destination-mac", address),
        text("tagged", "tagged".to_owned()),
        number("vlan", channel.vlan.into()),
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
