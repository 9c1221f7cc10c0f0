//! Which interfaces carry a default route, directly or below another one.
//!
//! Interfaces that hang together count as one: a VLAN interface sends by the one below it, a
//! bridge's or bond's member is the way of the bridge. Noise on any of them is noise on all.

use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use onbeat_run::netns::Netlink;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// The longest prefix that counts as a default route: some programs lay two halves of the address
/// space over it.
const DEFAULT_PREFIX: u8 = 1;

/// The interface that carries a default route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The interface that was asked about.
    pub asked: String,
    /// The one that the route names: the same, or one that it hangs together with.
    pub carrier: String,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, carrier } = self;
        if asked == carrier {
            return write!(f, "interface `{asked}` carries a default route");
        }
        write!(
            f,
            "interface `{asked}` hangs together with `{carrier}`, which carries a default route"
        )
    }
}

/// An interface and those that it stands on or belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NetDevice {
    index: u32,
    name: String,
    below: Vec<u32>,
}

/// Asks the kernel, in the calling thread's network namespace, whether noise on the interface of
/// this number would be noise on a default route.
pub fn carrier_of(index: u32) -> io::Result<Option<Carrier>> {
    let netlink = Netlink::open()?;
    let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let routes = netlink.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
    let nodes: Vec<NetDevice> = links.iter().filter_map(node).collect();
    let defaults: BTreeSet<u32> = routes.iter().flat_map(default_ways).collect();
    Ok(evaluate(index, &nodes, &defaults))
}

/// The interface by which the kernel would send to an address.
pub(super) fn way_to(to: IpAddr) -> io::Result<u32> {
    let mut message = RouteMessage::default();
    let (family, destination, length) = match to {
        IpAddr::V4(v4) => (AddressFamily::Inet, RouteAddress::Inet(v4), 32),
        IpAddr::V6(v6) => (AddressFamily::Inet6, RouteAddress::Inet6(v6), 128),
    };
    message.header.address_family = family;
    message.header.destination_prefix_length = length;
    message.attributes.push(RouteAttribute::Destination(destination));
    let netlink = Netlink::open()?;
    match netlink.get(RouteNetlinkMessage::GetRoute(message))? {
        RouteNetlinkMessage::NewRoute(route) => {
            ways(&route).first().copied().ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn node(message: &RouteNetlinkMessage) -> Option<NetDevice> {
    let RouteNetlinkMessage::NewLink(link) = message else { return None };
    let index = link.header.index;
    let mut node = NetDevice { index, name: index.to_string(), below: Vec::new() };
    // The number of what is in another namespace means something there only.
    let elsewhere = link.attributes.iter().any(|a| matches!(a, LinkAttribute::LinkNetNsId(_)));
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => node.name.clone_from(name),
            LinkAttribute::Link(other) if !elsewhere => node.below.push(*other),
            LinkAttribute::Controller(other) => node.below.push(*other),
            _ => {}
        }
    }
    Some(node)
}

/// The interfaces of a default route; of other routes none.
fn default_ways(message: &RouteNetlinkMessage) -> Vec<u32> {
    let RouteNetlinkMessage::NewRoute(route) = message else { return Vec::new() };
    let RouteHeader { kind, destination_prefix_length, .. } = route.header;
    if kind != RouteType::Unicast || destination_prefix_length > DEFAULT_PREFIX {
        return Vec::new();
    }
    ways(route)
}

/// The interfaces that a route leaves by.
fn ways(route: &RouteMessage) -> Vec<u32> {
    let mut ways = Vec::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => ways.push(*index),
            RouteAttribute::MultiPath(hops) => ways.extend(hops.iter().map(|h| h.interface_index)),
            _ => {}
        }
    }
    ways
}

/// Follows what hangs together with `index`, whichever way round.
fn evaluate(index: u32, nodes: &[NetDevice], defaults: &BTreeSet<u32>) -> Option<Carrier> {
    let mut seen = BTreeSet::from([index]);
    loop {
        let joined = |node: &&NetDevice| {
            seen.contains(&node.index) || node.below.iter().any(|other| seen.contains(other))
        };
        let more: BTreeSet<u32> = nodes
            .iter()
            .filter(joined)
            .flat_map(|node| node.below.iter().copied().chain([node.index]))
            .collect();
        let before = seen.len();
        seen.extend(more);
        if seen.len() == before {
            break;
        }
    }
    let name = |index: u32| {
        let found = nodes.iter().find(|node| node.index == index);
        found.map_or_else(|| index.to_string(), |node| node.name.clone())
    };
    // Itself first: that is the plainest thing to say.
    let itself = defaults.contains(&index).then_some(index);
    let carrier = itself.or_else(|| seen.intersection(defaults).next().copied())?;
    Some(Carrier { asked: name(index), carrier: name(carrier) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u32, name: &str, below: &[u32]) -> NetDevice {
        NetDevice { index, name: name.to_owned(), below: below.to_vec() }
    }

    #[test]
    fn what_stands_on_or_belongs_to_a_carrier_is_one_and_others_are_not() {
        let nodes = [
            node(1, "lo", &[]),
            node(2, "eth0", &[5]),
            node(3, "eth1", &[]),
            node(4, "eth0.10", &[2]),
            node(5, "br0", &[]),
            node(6, "tap", &[5]),
            node(7, "eth1.20", &[3]),
        ];
        let defaults = BTreeSet::from([5]);
        for (index, carried) in
            [(1, false), (2, true), (3, false), (4, true), (5, true), (6, true), (7, false)]
        {
            let found = evaluate(index, &nodes, &defaults);
            assert_eq!(found.is_some(), carried, "{index}: {found:?}");
        }
        let text = evaluate(6, &nodes, &defaults).map(|c| c.to_string());
        let text = text.expect("a carrier");
        assert_eq!(
            text,
            "interface `tap` hangs together with `br0`, which carries a default route"
        );
        let itself = evaluate(5, &nodes, &defaults).expect("a carrier");
        assert_eq!(itself.to_string(), "interface `br0` carries a default route");
    }

    #[test]
    fn default_routes_are_those_to_everywhere_also_in_halves_and_over_several_ways() {
        let route = |kind, length, attributes: Vec<RouteAttribute>| {
            let mut message = RouteMessage::default();
            message.header.kind = kind;
            message.header.destination_prefix_length = length;
            message.attributes = attributes;
            default_ways(&RouteNetlinkMessage::NewRoute(message))
        };
        let oif = || vec![RouteAttribute::Oif(3)];
        assert_eq!(route(RouteType::Unicast, 0, oif()), [3]);
        assert_eq!(route(RouteType::Unicast, 1, oif()), [3]);
        assert!(route(RouteType::Unicast, 8, oif()).is_empty());
        assert!(route(RouteType::Unreachable, 0, oif()).is_empty(), "IPv6 has one at lo");
    }

    #[test]
    fn the_kernel_answers_and_the_loopback_carries_none() {
        let loopback = onbeat::interface::Interface::named("lo").expect("every namespace has it");
        assert_eq!(carrier_of(loopback.index).expect("an answer"), None);
    }
}
