//! The description's network on the kernel's own stack: for every host and bridge a network
//! namespace, for every link a veth pair, in every bridge's namespace a Linux bridge of its ports.
//!
//! The namespaces have no names. They are held by this process's descriptors, by the programs that
//! run in them and by open sockets, and by nothing else: when the last of these is gone, however it
//! ended, the kernel removes namespaces, interfaces and bridges by itself.
//!
//! # What a host has
//! One interface, [`INTERFACE`], with the description's MAC address; the IPv4 address
//! [`ipv4_of`], 10.0.0.0/8 and the multicast groups reached through it; and the IPv6 link-local
//! address [`ipv6_of`], which is usable at once: duplicate address detection is off.
//!
//! # What differs from the description
//! The kernel sends as fast as it can: rates, propagation, forwarding times and queue limits are
//! not applied, nor are reservations. Bridges filter no VLANs and flood every group address; they
//! have learnt nothing yet when [`KernelNetwork::build`] returns. A system with a loop between
//! bridges is refused: there is no spanning tree protocol that would end the flooding.

pub(crate) mod faults;
mod netlink;

pub use netlink::Netlink;

use netlink::VethEnd;
use onbeat::clock::{MonoTime, pause};
use onbeat_model::system::{Link, Node, NodeId, NodeKind, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The name of a host's one interface inside its namespace.
pub const INTERFACE: &str = "eth0";
/// The name of the bridge in a bridge's namespace.
const BRIDGE: &str = "br0";
/// The index of the first interface after the loopback, which is 1: a host's interface, a bridge.
const FIRST: u32 = 2;
/// How long links may take to come up. They take milliseconds; a minute means never.
const READY_WITHIN: Span = Span::from_s(60);
/// How often it is looked whether they are.
const LOOK_AGAIN: Span = Span::from_ms(1);

/// Why there is no network of namespaces.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// The bridges form a loop.
    #[error(
        "the link {link} closes a loop of bridges: those of the kernel would send frames round for \
         ever; use the emulated network, or remove one link of the loop"
    )]
    Loop {
        /// Its ends, as `a.p1–b.p2`.
        link: String,
    },
    /// The system does not let this process make namespaces or interfaces.
    #[error(
        "network namespaces are not permitted here ({step} of {what}: {error}): run as root, or \
         with CAP_SYS_ADMIN and CAP_NET_ADMIN, or start it as `unshare -Ur onbeat …`"
    )]
    NotPermitted {
        /// What was being done.
        step: &'static str,
        /// For which node or link.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel was built without what is needed, or its module is not loaded.
    #[error("the kernel has no {feature} ({option}): {step} of {what}: {error}")]
    Unsupported {
        /// What is missing.
        feature: &'static str,
        /// The kernel's option for it.
        option: &'static str,
        /// What was being done.
        step: &'static str,
        /// For which node or link.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// Anything else.
    #[error("the network of namespaces cannot be set up: {step} of {what}: {error}")]
    Failed {
        /// What was being done.
        step: &'static str,
        /// For which node or link.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

/// What a step needs of the kernel, to say what is missing when it refuses.
#[derive(Clone, Copy)]
enum Needs {
    Namespaces,
    Veth,
    Bridge,
    Nothing,
}

/// The error of one step.
fn failed(needs: Needs, step: &'static str, what: &str, error: io::Error) -> NetnsError {
    let what = what.to_owned();
    let missing = match (needs, Errno::from_io_error(&error)) {
        (_, Some(Errno::PERM | Errno::ACCESS)) => {
            return NetnsError::NotPermitted { step, what, error };
        }
        (Needs::Namespaces, Some(Errno::INVAL)) => Some(("network namespaces", "CONFIG_NET_NS")),
        (Needs::Veth, Some(Errno::OPNOTSUPP)) => Some(("veth pairs", "CONFIG_VETH")),
        (Needs::Bridge, Some(Errno::OPNOTSUPP)) => Some(("bridges", "CONFIG_BRIDGE")),
        _ => None,
    };
    match missing {
        Some((feature, option)) => NetnsError::Unsupported { feature, option, step, what, error },
        None => NetnsError::Failed { step, what, error },
    }
}

/// A description's network in the kernel. It is there until this is dropped and all programs and
/// sockets in its namespaces have ended; the kernel then takes some milliseconds to remove it.
#[derive(Debug)]
pub struct KernelNetwork {
    /// One per node of the system.
    namespaces: Vec<OwnedFd>,
}

impl KernelNetwork {
    /// Lays out the network. When this returns, all links are up and all bridges forward. Takes
    /// some milliseconds per node; the calling thread stays in its own namespace.
    ///
    /// # Errors
    /// When the system's bridges form a loop, before anything is made; when the kernel refuses.
    pub fn build(system: &System) -> Result<Self, NetnsError> {
        if let Some(closing) = system.closes_loop() {
            let [a, b] = system.links[closing.index()].ports.map(|port| system.port_label(port));
            return Err(NetnsError::Loop { link: format!("{a}–{b}") });
        }
        // A thread of its own: unsharing moves the thread that does it.
        on_a_thread(|| {
            let builder = Builder::new(system)?;
            builder.connect()?;
            builder.wait_until_ready()?;
            Ok(Self { namespaces: builder.rooms.into_iter().map(|r| r.namespace).collect() })
        })
    }

    /// The namespace of a node, for [`enter`].
    pub fn namespace(&self, node: NodeId) -> BorrowedFd<'_> {
        self.namespaces[node.index()].as_fd()
    }

    /// The name of a host's interface inside its namespace.
    pub fn interface(&self, _host: NodeId) -> &str {
        INTERFACE
    }

    /// Calls `work` on a thread inside the namespace of a node, as for opening sockets there: a
    /// socket stays in the namespace that it was opened in.
    pub fn inside<T: Send>(
        &self,
        node: NodeId,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let namespace = self.namespace(node);
        on_a_thread(|| {
            enter(namespace)?;
            work()
        })
    }
}

/// Moves the calling thread into a network namespace. One system call; allocates nothing and takes
/// no lock, so that it may be called between fork and exec.
pub fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let network = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(namespace, network)?)
}

/// The IPv4 address of a host: 10.0.0.0 plus its number from 1 in the description; the prefix is
/// /8.
pub fn ipv4_of(host: NodeId) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + host.0)
}

/// The IPv6 link-local address of an interface (RFC 4291, appendix A): fe80:: and the MAC address
/// with ff:fe in its middle and the universal/local bit inverted.
pub fn ipv6_of(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from_octets([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// One node's namespace while the network is built.
struct Room {
    namespace: OwnedFd,
    netlink: Netlink,
}

struct Builder<'a> {
    system: &'a System,
    rooms: Vec<Room>,
    /// Whether the kernel has IPv6.
    ipv6: bool,
}

impl<'a> Builder<'a> {
    /// Makes a namespace per node, with the bridges. Leaves the thread in the last one.
    fn new(system: &'a System) -> Result<Self, NetnsError> {
        let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
        let mut builder = Self { system, rooms: Vec::new(), ipv6 };
        for node in &system.nodes {
            let room = room(&node.name)?;
            let attempt = |needs, step, result: io::Result<()>| {
                result.map_err(|error| failed(needs, step, &node.name, error))
            };
            attempt(Needs::Nothing, "starting the loopback", room.netlink.set_up(1))?;
            if matches!(node.kind, NodeKind::Bridge(_)) {
                let made = room.netlink.add_bridge(BRIDGE, FIRST);
                attempt(Needs::Bridge, "making the bridge", made)?;
                builder.quieten(&room, FIRST, node)?;
                let started = room.netlink.set_up(FIRST);
                attempt(Needs::Nothing, "starting the bridge", started)?;
            }
            builder.rooms.push(room);
        }
        Ok(builder)
    }

    /// Makes the links and brings everything up.
    fn connect(&self) -> Result<(), NetnsError> {
        for link in &self.system.links {
            let [a, b] = link.ports.map(|port| self.place(port));
            let home = &self.rooms[self.system.port(link.ports[0]).node.index()];
            let made = home.netlink.add_veth(&a, &b);
            let step = "making the veth pair";
            made.map_err(|e| failed(Needs::Veth, step, &self.link_label(link), e))?;
        }
        for (number, port) in self.system.ports.iter().enumerate() {
            let node = self.system.node(port.node);
            let index = interface_index(self.system, PortId(number as u32));
            let room = &self.rooms[port.node.index()];
            self.quieten(room, index, node)?;
            let attempt = |step, result: io::Result<()>| {
                result.map_err(|error| failed(Needs::Nothing, step, &node.name, error))
            };
            if matches!(node.kind, NodeKind::Bridge(_)) {
                attempt("adding a port to the bridge", room.netlink.set_master(index, FIRST))?;
            }
            attempt("starting an interface", room.netlink.set_up(index))?;
            if let NodeKind::Host(host) = &node.kind {
                let netlink = &room.netlink;
                attempt("setting the IPv4 address", netlink.add_ipv4(index, ipv4_of(port.node)))?;
                attempt("routing multicast", netlink.route_multicast(index))?;
                if self.ipv6 {
                    let added = netlink.add_ipv6(index, ipv6_of(host.mac));
                    attempt("setting the IPv6 address", added)?;
                }
            }
        }
        Ok(())
    }

    /// Linux reports a link's state from a work queue, some time after it has changed.
    fn wait_until_ready(&self) -> Result<(), NetnsError> {
        let deadline = MonoTime::now() + READY_WITHIN;
        for (number, port) in self.system.ports.iter().enumerate() {
            let node = self.system.node(port.node);
            let index = interface_index(self.system, PortId(number as u32));
            let step = "waiting for a link to come up";
            let fail = |error| failed(Needs::Nothing, step, &node.name, error);
            let bridged = matches!(node.kind, NodeKind::Bridge(_));
            while !self.rooms[port.node.index()].netlink.is_ready(index, bridged).map_err(fail)? {
                if MonoTime::now() > deadline {
                    return Err(fail(io::ErrorKind::TimedOut.into()));
                }
                pause(LOOK_AGAIN);
            }
        }
        Ok(())
    }

    /// No addresses of the kernel's own choice: they come with duplicate address detection.
    fn quieten(&self, room: &Room, index: u32, node: &Node) -> Result<(), NetnsError> {
        if !self.ipv6 {
            return Ok(());
        }
        let step = "turning off IPv6 autoconfiguration";
        let result = room.netlink.no_automatic_ipv6(index);
        result.map_err(|error| failed(Needs::Nothing, step, &node.name, error))
    }

    /// The interface of a port.
    fn place(&self, id: PortId) -> VethEnd<'_> {
        let node = self.system.port(id).node;
        let index = interface_index(self.system, id);
        let namespace = self.rooms[node.index()].namespace.as_fd();
        match &self.system.node(node).kind {
            NodeKind::Host(host) => {
                VethEnd { namespace, index, name: INTERFACE.to_owned(), mac: Some(host.mac) }
            }
            NodeKind::Bridge(_) => {
                VethEnd { namespace, index, name: format!("p{}", index - FIRST), mac: None }
            }
        }
    }

    fn link_label(&self, link: &Link) -> String {
        let [a, b] = link.ports.map(|port| self.system.port_label(port));
        format!("link {a}–{b}")
    }
}

/// The index of a port's interface in its namespace: the description decides it, so that nothing
/// has to be looked up.
fn interface_index(system: &System, id: PortId) -> u32 {
    let node = system.node(system.port(id).node);
    let position = node.ports.iter().position(|p| *p == id).expect("a port of its node") as u32;
    match node.kind {
        NodeKind::Host(_) => FIRST + position,
        NodeKind::Bridge(_) => FIRST + 1 + position, // the bridge itself comes first
    }
}

/// A new namespace, into which the calling thread moves.
fn room(node: &str) -> Result<Room, NetnsError> {
    let fail = |needs, step, error: io::Error| failed(needs, step, node, error);
    // SAFETY: only the network namespace is unshared, no file descriptor.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    unshared.map_err(|e| fail(Needs::Namespaces, "making the namespace", e.into()))?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty());
    let namespace =
        namespace.map_err(|e| fail(Needs::Nothing, "opening the namespace", e.into()))?;
    // Hosts would look for routers. Where /proc may not be written they send three such messages,
    // which nobody answers.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/accept_ra", "0");
    let netlink = Netlink::open().map_err(|e| fail(Needs::Nothing, "opening netlink", e))?;
    Ok(Room { namespace, netlink })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_number_and_the_mac_address_of_the_host() {
        assert_eq!(ipv4_of(NodeId(0)), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(ipv4_of(NodeId(9_999)), Ipv4Addr::new(10, 0, 39, 16));
        let mac = MacAddress([0x02, 0, 0, 0, 0x12, 0x34]);
        assert_eq!(ipv6_of(mac).to_string(), "fe80::ff:fe00:1234");
    }

    #[test]
    fn errors_say_what_to_do_or_what_is_missing() {
        let text = |needs, errno: Errno| {
            failed(needs, "making the namespace", "cat1", errno.into()).to_string()
        };
        assert!(text(Needs::Namespaces, Errno::PERM).contains("unshare -Ur onbeat"));
        assert!(text(Needs::Namespaces, Errno::INVAL).contains("CONFIG_NET_NS"));
        assert!(text(Needs::Veth, Errno::OPNOTSUPP).contains("CONFIG_VETH"));
        assert!(text(Needs::Bridge, Errno::OPNOTSUPP).contains("CONFIG_BRIDGE"));
        assert!(text(Needs::Nothing, Errno::MFILE).contains("making the namespace of cat1"));
    }
}
