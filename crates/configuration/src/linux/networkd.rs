//! The same for systemd-networkd, which makes it at each boot: what it has keys for (version 252).
//!
//! A file `.netdev` makes a device, a file `.network` sets an interface. Nothing in them waits for
//! an address, so that no boot waits for one.

use super::{Forwarding, HEADER, Vlan, is_interface};
use std::fmt::Write;

/// What the name of the directory of a node's files has behind the node's name.
pub const NETWORKD: &str = ".networkd";
/// What each file's name begins with: before those of most users, of which networkd would otherwise
/// take the first one that matches.
const FIRST: &str = "10-onbeat-";

/// The files of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networkd {
    /// Their names and texts.
    pub files: Vec<(String, String)>,
    /// What they do not say of what the lines for `ip`, `bridge` and `tc` do, for a person.
    pub unsaid: Vec<String>,
}

/// Whether networkd takes it for the name of one interface: not for a number (`ifname_valid_full`)
/// nor for a pattern.
fn is_networkd_name(name: &str) -> bool {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    let is_digit = |octet: u8| octet.is_ascii_hexdigit() || b"xXoO".contains(&octet);
    let is_number = name.starts_with(|first: char| first.is_ascii_digit());
    is_interface(name)
        && name.bytes().all(is_plain)
        && !(is_number && name.bytes().all(is_digit))
        && name != "all"
        && name != "default"
}

impl Networkd {
    /// Those of a host: a device for each VLAN of its interfaces.
    pub(super) fn of_host(node: &str, interfaces: &[(&str, Vec<Vlan>)]) -> Self {
        let mut made = Self::default();
        for (interface, vlans) in interfaces.iter().filter(|(_, vlans)| !vlans.is_empty()) {
            if made.refuses(node, interface) {
                continue;
            }
            let names: Vec<String> = vlans.iter().map(|vlan| vlan.name(interface)).collect();
            let keys: String = names.iter().map(|name| format!("VLAN={name}\n")).collect();
            made.network(node, interface, &keys, "");
            for (vlan, name) in vlans.iter().zip(&names) {
                let maps = vlan.pcps.iter().map(|pcp| format!("{pcp}-{pcp}"));
                let maps = maps.collect::<Vec<_>>().join(" ");
                let keys = format!("[VLAN]\nId={}\nEgressQOSMaps={maps}\n", vlan.number);
                made.netdev(node, name, "vlan", &keys);
                made.network(node, name, "", "");
            }
        }
        made
    }

    /// Those of a bridge: the device, its ports, and their VLANs.
    pub(super) fn of_bridge(node: &str, forwarding: &Forwarding<'_>) -> Self {
        let mut made = Self::default();
        let own = &forwarding.name;
        let keys = "[Bridge]\nVLANFiltering=yes\nMulticastSnooping=yes\n";
        made.netdev(node, own, "bridge", keys);
        made.network(node, own, "", "");
        for port in &forwarding.ports {
            if made.refuses(node, port) {
                continue;
            }
            let mut more = String::new();
            if forwarding.closed.contains(port) {
                more += "\n[Bridge]\nUnicastFlood=no\nMulticastFlood=no\n";
            }
            for (vlan, _) in forwarding.members.iter().filter(|(_, member)| member == port) {
                let _ = write!(more, "\n[BridgeVLAN]\nVLAN={vlan}\n");
            }
            made.network(node, port, &format!("Bridge={own}\n"), &more);
        }
        made
    }

    /// Says what these files leave to lines for `bridge` and `tc`. A [BridgeFDB] is none: networkd
    /// makes its entries permanent, and such frames the bridge takes for itself.
    pub(super) fn say_rest(&mut self, node: &str, forwarding: &Forwarding<'_>, has_queues: bool) {
        let has = |multicast| {
            let mut entries = forwarding.entries.iter();
            entries.any(|(_, address, leaves)| {
                address.is_multicast() == multicast && !leaves.is_empty()
            })
        };
        let of_bridge = [
            (has(true), "multicast entries"),
            (has(false), "static entries"),
            (!forwarding.closed.is_empty(), "`bcast_flood`"),
        ];
        let all = of_bridge.into_iter().chain([(has_queues, "queues")]);
        let all: Vec<&str> = all.filter_map(|(is, what)| is.then_some(what)).collect();
        let files = [(of_bridge.iter().any(|(is, _)| *is), "bridge"), (has_queues, "tc")];
        let files = files.iter().filter(|(is, _)| *is);
        let files: Vec<String> = files.map(|(_, tool)| format!("`{node}.{tool}`")).collect();
        if !all.is_empty() {
            self.unsaid.push(format!(
                "{node}: systemd-networkd cannot be told {}: apply {} at each boot",
                all.join(", "),
                files.join(" and ")
            ));
        }
    }

    /// Says if there can be no files for an interface.
    fn refuses(&mut self, node: &str, interface: &str) -> bool {
        let refuses = !is_networkd_name(interface);
        if refuses {
            self.unsaid
                .push(format!("{node}.{interface}: systemd-networkd takes no interface so named"));
        }
        refuses
    }

    fn netdev(&mut self, node: &str, name: &str, kind: &str, keys: &str) {
        let keys = format!("[NetDev]\nName={name}\nKind={kind}\n\n{keys}");
        self.file(node, &format!("{name}.netdev"), &keys);
    }

    /// An interface is up, without addresses; keys of `[Network]`, and what follows that section.
    fn network(&mut self, node: &str, name: &str, keys: &str, more: &str) {
        let begin = format!("[Match]\nName={name}\n\n[Link]\nRequiredForOnline=no\n");
        let keys = format!("{begin}\n[Network]\nLinkLocalAddressing=no\n{keys}{more}");
        self.file(node, &format!("{name}.network"), &keys);
    }

    fn file(&mut self, node: &str, name: &str, keys: &str) {
        let text = format!("{HEADER}`{node}`: systemd-networkd\n\n{keys}");
        self.files.push((format!("{FIRST}{name}"), text));
    }
}
