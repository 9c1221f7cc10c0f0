//! Replicated channels at a bridge (802.1CB-2017): how it knows their frames, and what it does with
//! the sequence numbers in them.
//!
//! Each frame passes these functions. Out-facing ones are on the link's side of a port, in-facing
//! ones on that of the bridge's forwarding (9.1.1.2 to 9.1.1.5):
//!
//! ```text
//! link ─→ out-facing: identified (6.4), number decoded (7.6) ─→ filtering database
//!      ─→ in-facing: duplicates eliminated (7.4.2) ─→ out-facing: number encoded (7.6) ─→ link
//! ```
//!
//! Where no paths join, the number is encoded as it was decoded: counters of these functions say
//! how far copies come (9.2, 10.8). Stream handle and number stay with the frame in between (6.1).
//! A copy for each port at which paths part comes from the filtering database, so no stream is
//! split (7.7). The talker numbers its frames itself, so none is generated (7.4.1).

use crate::Deployment;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use onbeat_model::system::{Channel, NodeId, NodeKind, PortId, System};
use std::collections::{BTreeMap, BTreeSet};

/// frerSeqRcvyResetMSec: after so many milliseconds without an accepted frame any number is taken.
/// The one of emulated bridges.
const RESET_MS: u32 = 1_000;

/// A replicated channel at a bridge that its paths cross.
pub(crate) struct Replicated<'a> {
    pub(crate) channel: &'a Channel,
    /// For each port by which it leaves, those by which it may have come in.
    leaves: BTreeMap<PortId, BTreeSet<PortId>>,
}

impl<'a> Replicated<'a> {
    /// Those at a bridge, in their order. A host's library itself numbers frames and recognises
    /// duplicates.
    pub(crate) fn at(all: &Deployment<'a>, id: NodeId) -> Vec<Self> {
        let Deployment { system, plan, .. } = all;
        if system.device_limits(id).elimination == Some(false) {
            // No paths join at such a device. It cannot be told, and need not be: a bridge that
            // knows no R-TAG forwards it with the rest of the frame.
            return Vec::new();
        }
        let channels = system.channels.iter().zip(&plan.channels);
        let channels = channels.filter(|(channel, _)| channel.paths.is_replicated());
        let here = channels
            .map(|(channel, planned)| Self { channel, leaves: steps(system, id, &planned.paths) });
        here.filter(|one| !one.leaves.is_empty()).collect()
    }

    /// The ports by which it comes in.
    pub(crate) fn enters(&self) -> BTreeSet<PortId> {
        self.leaves.values().flatten().copied().collect()
    }

    /// The ports at which duplicates come together.
    pub(crate) fn joins(&self) -> impl Iterator<Item = PortId> {
        self.leaves.iter().filter(|(_, from)| from.len() > 1).map(|(port, _)| *port)
    }
}

/// For each port by which paths leave a node, the ports of the node by which they come in.
fn steps(system: &System, id: NodeId, paths: &[Vec<PortId>]) -> BTreeMap<PortId, BTreeSet<PortId>> {
    let mut leaves: BTreeMap<PortId, BTreeSet<PortId>> = BTreeMap::new();
    for pair in paths.iter().flat_map(|path| path.windows(2)) {
        if system.port(pair[1]).node == id {
            leaves.entry(pair[1]).or_default().insert(system.port(pair[0]).peer);
        }
    }
    leaves
}

/// What is not said: a stream has no destination, by which a bridge would know its frames.
pub(crate) fn unsaid(all: &Deployment<'_>, id: NodeId) -> Vec<String> {
    let Deployment { system, plan, .. } = all;
    let is_bridge = matches!(system.node(id).kind, NodeKind::Bridge(_));
    let streams = system.streams.iter().zip(&plan.streams).filter(|_| is_bridge);
    let here = streams.filter(|(_, planned)| {
        let mut replicated = planned.paths.iter().filter(|paths| paths.len() > 1);
        replicated.any(|paths| !steps(system, id, paths).is_empty())
    });
    let line = |name: &str| {
        format!("stream `{name}` is replicated, which bridges are not told: it has no destination")
    };
    here.map(|(stream, _)| line(&stream.name)).collect()
}

/// What a bridge does with the numbers of channels, each with its handle; nothing without any.
pub(crate) fn frer(all: &Deployment<'_>, replicated: &[(u32, Replicated<'_>)]) -> Option<Element> {
    let mut recoveries = Vec::new();
    for (handle, one) in replicated {
        // An entry for each port. Entries may have several, each with a function of its own
        // (10.4.1.2), but of an Individual recovery function all ports would share one.
        recoveries.extend(one.joins().map(|port| (*handle, one.channel, port)));
    }
    let recoveries = (1..).zip(recoveries).map(|(index, (handle, channel, port))| {
        recovery(index, handle, channel.paths.history, all.system.port(port).name.clone())
    });
    let recoveries: Vec<_> = recoveries.collect();
    let mut tables = Vec::new();
    if !recoveries.is_empty() {
        tables.push(field("sequence-recovery", InstanceValue::List(recoveries)));
    }
    let identifications = identifications(all.system, replicated);
    if !identifications.is_empty() {
        tables.push(field("sequence-identification", InstanceValue::List(identifications)));
    }
    (!tables.is_empty()).then(|| field("frer", InstanceValue::Fields(tables)))
}

/// A Sequence recovery function at an egress port. In-facing: frames come to it from the bridge's
/// forwarding (10.4.1.3), from whichever port they came in.
fn recovery(index: u32, handle: u32, history: u32, port: String) -> Vec<Element> {
    let number = |name, number| field(name, InstanceValue::Number(number));
    let flag = |name, flag| field(name, InstanceValue::Flag(flag));
    vec![
        number("index", index),
        field("stream", InstanceValue::Numbers(vec![handle])),
        field("port", InstanceValue::Leaves(vec![port])),
        flag("direction-out-facing", false),
        choice("algorithm", "vector"),
        // Descriptions have 2 at least, as the module does.
        number("history-length", history),
        number("reset-timeout", RESET_MS),
        flag("take-no-sequence", false),
        flag("individual-recovery", false),
        flag("latent-error-detection", false),
    ]
}

/// A Sequence encode/decode function at each port (10.5): where frames leave it is active and puts
/// the R-TAG into them again; where they only come in it is passive and takes the number.
fn identifications(system: &System, replicated: &[(u32, Replicated<'_>)]) -> Vec<Vec<Element>> {
    let mut ports: BTreeMap<PortId, (BTreeSet<u32>, bool)> = BTreeMap::new();
    for (handle, one) in replicated {
        for port in one.enters() {
            ports.entry(port).or_default().0.insert(*handle);
        }
        for port in one.leaves.keys() {
            let (handles, is_active) = ports.entry(*port).or_default();
            handles.insert(*handle);
            *is_active = true;
        }
    }
    let entry = |(port, (handles, is_active)): (PortId, (BTreeSet<u32>, bool))| {
        vec![
            field("port", InstanceValue::Text(system.port(port).name.clone())),
            field("direction-out-facing", InstanceValue::Flag(true)),
            field("stream", InstanceValue::Numbers(handles.into_iter().collect())),
            field("active", InstanceValue::Flag(is_active)),
            choice("encapsulation", "r-tag"),
        ]
    };
    ports.into_iter().map(entry).collect()
}

/// A container with a case that has no parameters.
fn choice(name: &'static str, case: &'static str) -> Element {
    field(name, InstanceValue::Fields(vec![field(case, InstanceValue::Fields(Vec::new()))]))
}

fn field(name: &'static str, value: InstanceValue) -> Element {
    Element::new(Module::Replication, name, value)
}
