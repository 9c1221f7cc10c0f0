//! The filtering database of a bridge: where frames of each channel leave, and which VLANs leave by
//! which ports.

use crate::Deployment;
use crate::element::{Element, InstanceValue};
use crate::module::Module;
use onbeat_model::system::{ChannelId, NodeId, PortId};
use onbeat_model::units::MacAddress;
use std::collections::{BTreeMap, BTreeSet};

/// What a bridge's filtering database says (802.1Q-2022 8.8).
#[derive(Debug, Default)]
pub(crate) struct Database {
    /// The channels' entries: VLAN, destination, and where frames leave.
    pub(crate) entries: Vec<(u16, MacAddress, BTreeSet<PortId>)>,
    /// The ports at which frames of each VLAN leave.
    pub(crate) vlans: BTreeMap<u16, BTreeSet<PortId>>,
}

impl Database {
    /// That of a bridge.
    pub(crate) fn of(all: &Deployment<'_>, id: NodeId) -> Self {
        let Deployment { system, leaving, .. } = all;
        let mut by_channel: BTreeMap<ChannelId, BTreeSet<PortId>> = BTreeMap::new();
        for port in &system.node(id).ports {
            for channel in leaving.channels(*port) {
                by_channel.entry(*channel).or_default().insert(*port);
            }
        }
        let entry = |(channel, leaves)| {
            let channel = system.channel(channel);
            (channel.vlan, channel.destination, leaves)
        };
        let entries: Vec<_> = by_channel.into_iter().map(entry).collect();
        let ports = system.node(id).ports.iter();
        let settings = || ports.clone().map(|port| (*port, &system.port(*port).settings.vlans));
        let mut vlans: BTreeSet<u16> = entries.iter().map(|(vlan, ..)| *vlan).collect();
        vlans.extend(settings().filter_map(|(_, vlans)| vlans.as_ref()).flatten());
        let members = |vlan: u16| {
            let is_member =
                |of: &Option<Vec<u16>>| of.as_ref().is_none_or(|vlans| vlans.contains(&vlan));
            settings().filter(|(_, of)| is_member(of)).map(|(port, _)| port).collect()
        };
        Self { entries, vlans: vlans.into_iter().map(|vlan| (vlan, members(vlan))).collect() }
    }
}

/// The database of a bridge (802.1Q-2022 12.7), if anything is to be said of it. Ports are numbered
/// from 1 in their order; each VLAN has the database of its number (independent learning, 8.8.8).
pub(crate) fn bridges(all: &Deployment<'_>, id: NodeId) -> Option<Element> {
    let system = all.system;
    let ports = &system.node(id).ports;
    let said = Database::of(all, id);
    let entries = said.entries.into_iter().map(|(vlan, destination, leaves)| {
        let address = destination.to_string().replace(':', "-").to_uppercase();
        let of_port = |port: &PortId| {
            let element = if leaves.contains(port) { "forward" } else { "filter" };
            let element = field("control-element", InstanceValue::Text(element.to_owned()));
            field("static-filtering-entries", InstanceValue::Fields(vec![element]))
        };
        entry(vlan, Some(address), ports, &of_port)
    });
    let entries: Vec<_> = entries.collect();
    let registrations = said.vlans.into_iter().map(|(vlan, members)| {
        let of_port = |port: &PortId| {
            let is_member = members.contains(port);
            let control = if is_member { "fixed-new-ignored" } else { "forbidden" };
            let text = |name, text: &str| field(name, InstanceValue::Text(text.to_owned()));
            let mut fields = vec![text("registrar-admin-control", control)];
            fields.extend(is_member.then(|| text("vlan-transmitted", "tagged")));
            field("static-vlan-registration-entries", InstanceValue::Fields(fields))
        };
        entry(vlan, None, ports, &of_port)
    });
    let registrations: Vec<_> = registrations.collect();
    if registrations.is_empty() {
        return None;
    }
    let mut database = Vec::new();
    if !entries.is_empty() {
        database.push(field("filtering-entry", InstanceValue::List(entries)));
    }
    database.push(field("vlan-registration-entry", InstanceValue::List(registrations)));
    let name = || field("name", InstanceValue::Text(system.node(id).name.clone()));
    let database = field("filtering-database", InstanceValue::Fields(database));
    let component = field("component", InstanceValue::List(vec![vec![name(), database]]));
    let bridge = field("bridge", InstanceValue::List(vec![vec![name(), component]]));
    Some(field("bridges", InstanceValue::Fields(vec![bridge])))
}

fn field(name: &'static str, value: InstanceValue) -> Element {
    Element::new(Module::Bridge, name, value)
}

/// An entry for a VLAN, and for an address in it, with something for each port.
fn entry(
    vlan: u16,
    address: Option<String>,
    ports: &[PortId],
    of_port: &dyn Fn(&PortId) -> Element,
) -> Vec<Element> {
    let port_map = (1..).zip(ports).map(|(number, port)| {
        vec![field("port-ref", InstanceValue::Number(number)), of_port(port)]
    });
    let text = |name, text: String| field(name, InstanceValue::Text(text));
    let mut entry = vec![
        field("database-id", InstanceValue::Number(vlan.into())),
        text("vids", vlan.to_string()),
    ];
    entry.extend(address.map(|address| text("address", address)));
    entry.push(text("entry-type", "static".to_owned()));
    entry.push(field("port-map", InstanceValue::List(port_map.collect())));
    entry
}
