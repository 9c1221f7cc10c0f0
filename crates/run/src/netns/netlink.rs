//! The few requests of rtnetlink that a network of namespaces needs. One request at a time, each
//! waits for its answer.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BridgePortState, BridgeStpState, In6AddrGenMode, InfoBridge,
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage, State,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use onbeat_model::units::MacAddress;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of the longest answer: one interface's description has about two thousand.
const ANSWER_OCTETS: usize = 32 << 10;
/// The most parts of the answer to a question after all interfaces or routes.
const MAX_PARTS: usize = 65_536;
/// The limit of a bridge's patience with a station that is silent, in hundredths of a second: a
/// host that only receives must not be forgotten, or what is for it is flooded to all.
const AGEING_CS: u32 = 1 << 30;

/// Where an end of a veth pair is.
pub(super) struct VethEnd<'a> {
    pub(super) namespace: BorrowedFd<'a>,
    /// The interface's index there.
    pub(super) index: u32,
    pub(super) name: String,
    /// Its address; random if none.
    pub(super) mac: Option<MacAddress>,
}

impl VethEnd<'_> {
    fn message(&self) -> LinkMessage {
        let mut message = link(self.index);
        message.attributes.push(LinkAttribute::IfName(self.name.clone()));
        message.attributes.extend(self.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
        message
    }
}

/// A socket to the part of the kernel that configures the network namespace that it was opened in.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens one in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        let (family, kind) = (rustix::net::AddressFamily::NETLINK, SocketType::RAW);
        // No protocol is protocol 0, NETLINK_ROUTE.
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok(Self(socket))
    }

    /// A bridge that forwards at once and floods all groups: no spanning tree, no snooping. VLAN
    /// filtering is off by itself; a kernel without it refuses to be told.
    pub(super) fn add_bridge(&self, name: &str, index: u32) -> io::Result<()> {
        let data = vec![
            InfoBridge::StpState(BridgeStpState::Disabled),
            InfoBridge::ForwardDelay(0),
            InfoBridge::AgeingTime(AGEING_CS),
            InfoBridge::MulticastSnooping(false),
        ];
        let mut message = link(index);
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Bridge),
            LinkInfo::Data(InfoData::Bridge(data)),
        ]));
        self.make(RouteNetlinkMessage::NewLink(message))
    }

    /// A veth pair; `near` is in this socket's namespace.
    pub(super) fn add_veth(&self, near: &VethEnd<'_>, far: &VethEnd<'_>) -> io::Result<()> {
        let mut peer = far.message();
        peer.attributes.push(LinkAttribute::NetNsFd(far.namespace.as_raw_fd()));
        let mut message = near.message();
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.make(RouteNetlinkMessage::NewLink(message))
    }

    /// Makes an interface a port of a bridge.
    pub(super) fn set_master(&self, index: u32, bridge: u32) -> io::Result<()> {
        let mut message = link(index);
        message.attributes.push(LinkAttribute::Controller(bridge));
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    /// The kernel gives the interface no IPv6 address by itself.
    pub(super) fn no_automatic_ipv6(&self, index: u32) -> io::Result<()> {
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let mut message = link(index);
        let specific = vec![AfSpecUnspec::Inet6(vec![mode])];
        message.attributes.push(LinkAttribute::AfSpecUnspec(specific));
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    pub(super) fn set_up(&self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message))
    }

    pub(super) fn add_ipv4(&self, index: u32, address: Ipv4Addr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = 8;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
        ];
        self.make(RouteNetlinkMessage::NewAddress(message))
    }

    /// An IPv6 link-local address that is usable at once.
    pub(super) fn add_ipv6(&self, index: u32, address: Ipv6Addr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet6;
        message.header.prefix_len = 64;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.scope = AddressScope::Link;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Address(IpAddr::V6(address))];
        self.make(RouteNetlinkMessage::NewAddress(message))
    }

    /// IPv4 multicast goes out of the interface. IPv6 needs no such route: the kernel adds it.
    pub(super) fn route_multicast(&self, index: u32) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = 4;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        let groups = RouteAddress::Inet(Ipv4Addr::new(224, 0, 0, 0));
        message.attributes = vec![RouteAttribute::Destination(groups), RouteAttribute::Oif(index)];
        self.make(RouteNetlinkMessage::NewRoute(message))
    }

    /// Whether an interface carries frames and, if it is a bridge's port, forwards them.
    pub(super) fn is_ready(&self, index: u32, bridged: bool) -> io::Result<bool> {
        let request = RouteNetlinkMessage::GetLink(link(index));
        let answer = self.ask(request, NLM_F_REQUEST)?;
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = answer else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let up = link.attributes.contains(&LinkAttribute::OperState(State::Up));
        let forwarding = InfoBridgePort::State(BridgePortState::Forwarding);
        let forwards = link.attributes.iter().any(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => infos.iter().any(|info| {
                matches!(info, LinkInfo::PortData(InfoPortData::BridgePort(port))
                    if port.contains(&forwarding))
            }),
            _ => false,
        });
        Ok(up && (forwards || !bridged))
    }

    /// Asks for something new.
    fn make(&self, request: RouteNetlinkMessage) -> io::Result<()> {
        let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.ask(request, flags).map(drop)
    }

    /// Asks for a change of something that is there.
    fn change(&self, request: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(request, NLM_F_REQUEST | NLM_F_ACK).map(drop)
    }

    /// Asks for one thing.
    ///
    /// # Errors
    /// The kernel's, or an answer that is none.
    pub fn get(&self, request: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        match self.ask(request, NLM_F_REQUEST)? {
            NetlinkPayload::InnerMessage(message) => Ok(message),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Asks for all interfaces or routes.
    ///
    /// # Errors
    /// The kernel's, or an answer that is none.
    pub fn dump(&self, request: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(request, NLM_F_REQUEST | NLM_F_DUMP)?;
        let (mut octets, mut all) = (vec![0; ANSWER_OCTETS], Vec::new());
        for _ in 0..MAX_PARTS {
            let (received, _) = rustix::net::recv(&self.0, &mut octets[..], RecvFlags::empty())?;
            let mut rest = &octets[..received];
            while rest.len() >= 4 {
                let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                let one = rest.get(..length).filter(|one| one.len() >= 16);
                let one = one.ok_or(io::ErrorKind::InvalidData)?;
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                let read = NetlinkMessage::<RouteNetlinkMessage>::deserialize(one);
                match read.map(|message| message.payload) {
                    Ok(NetlinkPayload::Done(_)) => return Ok(all),
                    Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                    Ok(NetlinkPayload::InnerMessage(message)) => all.push(message),
                    Ok(_) => {}
                    Err(error) => {
                        let why = error.to_string();
                        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                    }
                }
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn send(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut request = NetlinkMessage::from(request);
        request.header.flags = flags;
        request.finalize();
        let mut octets = vec![0; request.buffer_len()];
        request.serialize(&mut octets);
        rustix::net::send(&self.0, &octets, SendFlags::empty())?;
        Ok(())
    }

    fn ask(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.send(request, flags)?;
        let mut octets = vec![0; ANSWER_OCTETS];
        let (received, _) = rustix::net::recv(&self.0, &mut octets[..], RecvFlags::empty())?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&octets[..received])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            payload => Ok(payload),
        }
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}
