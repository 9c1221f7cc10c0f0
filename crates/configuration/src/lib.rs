//! From a plan to what management writes to the network's devices: instance data of the YANG
//! modules of IEEE 802.1Q (802.1Qcw-2023, 802.1Qdx-2024) for bridges, and of IEEE 802.1DC-2024 for
//! hosts, as JSON (RFC 7951) and XML (RFC 7950).
//!
//! For each port: its interface; for each traffic class how frames are selected, with the idleSlope
//! of credit-based shapers; the gate control list; for bridges also which priority belongs to which
//! class. For each bridge: its filtering database, with an entry for each channel and each VLAN;
//! the ATS schedulers of asynchronous channels, where duplicates of replicated ones are eliminated,
//! and how the frames of both are known.
//! Pure: the same plan gives the same text.
//!
//! For machines with Linux, [`Deployment::linux`] gives the same to iproute2 and systemd-networkd,
//! as far as these and the kernel can say it.
//!
//! The leaves `supported-list-max`, `supported-cycle-max` and `supported-interval-max`, which the
//! modules compare the rest with, say what the device of the description can do at most. Where that
//! is unknown they say what the plan needs; a device for which they are read-only refuses a plan
//! that needs more.

mod classes;
mod element;
mod filtering;
mod gates;
mod json;
mod linux;
mod module;
mod port;
pub mod push;
mod replication;
mod streams;
mod xml;

pub use linux::{
    Disciplines, Gates, LINUX, Linux, NETWORKD, Networkd, Numbering, Queue, Shaper, Traffic, Vlan,
    is_interface, is_linux,
};

use classes::Leaving;
use element::{Element, InstanceValue};
use module::Module;
use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeId, NodeKind, System};
use streams::Streams;

/// Instance data in both encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// As RFC 7951 has it. Ends with a line feed.
    pub json: String,
    /// As a NETCONF server takes it within `config` (RFC 6241 7.2): one element. Ends with a line
    /// feed.
    pub xml: String,
}

impl Instance {
    fn of(root: &Element) -> Self {
        Self { json: json::text(root), xml: xml::text(root) }
    }

    fn of_several(roots: &[Element]) -> Option<Self> {
        let any = !roots.is_empty();
        any.then(|| Self { json: json::texts(roots), xml: xml::config(roots) })
    }
}

/// What one bridge or host is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Which.
    pub node: NodeId,
    /// Its name, that of the node.
    pub name: String,
    /// Its interfaces: one element, `interfaces`, which is valid for itself.
    pub interfaces: Instance,
    /// A bridge's filtering database: one element, `bridges`. It is for `edit-config`, in which the
    /// leaves are missing that every bridge has already. None if nothing is to be said.
    pub filtering: Option<Instance>,
    /// A bridge's asynchronous and replicated channels: how it knows their frames, the ATS
    /// schedulers of the ones, and what it does with sequence numbers of the others. Several
    /// elements, in XML within `config`. None if it has none.
    pub streams: Option<Instance>,
    /// What the plan wants of the device and the configuration does not say, each for a person:
    /// names the port.
    pub unsaid: Vec<String>,
}

/// Why a port's gates cannot be configured so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inexpressible {
    /// A device has one administrative list (802.1Q-2022 12.29.1.2).
    #[error("{port} has {count} gate control lists one after another, and a device takes one")]
    SeveralLists {
        /// The port with its node's name.
        port: String,
        /// How many.
        count: usize,
    },
    /// AdminCycleTime is a rational number of seconds, of two 32-bit numbers (802.1Q-2022 12.29.1).
    #[error("the gates of {port} have a cycle of {ns} ns, which no AdminCycleTime expresses")]
    Cycle {
        /// The port with its node's name.
        port: String,
        /// The cycle in nanoseconds.
        ns: i64,
    },
}

/// A plan, to be told to devices.
#[derive(Debug)]
pub struct Deployment<'a> {
    pub(crate) system: &'a System,
    pub(crate) plan: &'a Plan,
    pub(crate) leaving: Leaving,
}

impl<'a> Deployment<'a> {
    /// That of a plan of `system`.
    pub fn new(system: &'a System, plan: &'a Plan) -> Self {
        Self { system, plan, leaving: Leaving::of(system, plan) }
    }

    /// The configuration of a bridge or a host; of hosts for those that are network systems of
    /// IEEE 802.1DC: others are set by commands.
    ///
    /// # Errors
    /// The first port whose gates no configuration expresses.
    pub fn device(&self, id: NodeId) -> Result<Device, Inexpressible> {
        device(self, id)
    }

    /// The lines for a bridge or a host with Linux.
    pub fn linux(&self, id: NodeId) -> Linux {
        linux::linux(self, id)
    }
}

fn device(all: &Deployment<'_>, id: NodeId) -> Result<Device, Inexpressible> {
    let system = all.system;
    let node = system.node(id);
    let streams = Streams::of(all, id);
    let mut unsaid = streams.unsaid;
    let interfaces = node.ports.iter().map(|port| {
        let interface = port::interface(all, *port, streams.said.contains(port))?;
        unsaid.extend(interface.unsaid);
        Ok(interface.fields)
    });
    let interfaces = InstanceValue::List(interfaces.collect::<Result<_, Inexpressible>>()?);
    let list = Element::new(Module::Interfaces, "interface", interfaces);
    let root = Element::new(Module::Interfaces, "interfaces", InstanceValue::Fields(vec![list]));
    let filtering = match node.kind {
        NodeKind::Bridge(_) => filtering::bridges(all, id),
        NodeKind::Host(_) => None,
    };
    let filtering = filtering.as_ref().map(Instance::of);
    let interfaces = Instance::of(&root);
    let streams = Instance::of_several(&streams.roots);
    Ok(Device { node: id, name: node.name.clone(), interfaces, filtering, streams, unsaid })
}
