//! Segments as octets: Ethernet II, IPv4 (RFC 791) and TCP (RFC 9293 3.1), without options.

use onbeat_model::units::MacAddress;

/// The EtherType of IPv4.
pub const ETHERTYPE: u16 = 0x0800;
/// Octets of a frame before the data of its segment.
pub const HEADERS: usize = ETHERNET + IPV4 + TCP;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 20;
/// IPv4's number of TCP.
const PROTOCOL: u8 = 6;
/// Hops that a packet may take; none are taken within one network.
const TIME_TO_LIVE: u8 = 64;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// From whom to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// The sending host.
    pub source: MacAddress,
    /// The receiving host.
    pub destination: MacAddress,
    /// Their IPv4 addresses, in the same order.
    pub addresses: [[u8; 4]; 2],
    /// Their TCP ports.
    pub ports: [u16; 2],
}

/// What a segment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// The number of its first octet.
    pub sequence: u32,
    /// The number of the octet that its sender expects next.
    pub acknowledgement: u32,
    /// How many octets its sender takes from there on.
    pub window: u16,
    /// Whether it ends with the last octet that was written (PSH).
    pub push: bool,
    /// The data; an acknowledgement has none.
    pub data: Vec<u8>,
}

impl TcpSegment {
    /// The frame from the destination address to the end of the data.
    ///
    /// # Panics
    /// If it has more than [`MSS`](super::MSS) octets of data.
    pub fn encode(&self, direction: &Direction) -> Vec<u8> {
        assert!(self.data.len() <= super::MSS, "{} octets in a segment", self.data.len());
        let length = (IPV4 + TCP + self.data.len()) as u16;
        let mut frame = Vec::with_capacity(HEADERS + self.data.len());
        frame.extend(direction.destination.0);
        frame.extend(direction.source.0);
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.extend([0x45, 0]);
        frame.extend(length.to_be_bytes());
        // No identification; do not fragment.
        frame.extend([0, 0, 0x40, 0, TIME_TO_LIVE, PROTOCOL, 0, 0]);
        direction.addresses.iter().for_each(|address| frame.extend(address));
        direction.ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(self.acknowledgement.to_be_bytes());
        frame.extend([(TCP as u8 / 4) << 4, if self.push { ACK | PSH } else { ACK }]);
        frame.extend(self.window.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(&self.data);
        let header = checksum(&[&frame[ETHERNET..][..IPV4]]);
        frame[ETHERNET + 10..][..2].copy_from_slice(&header.to_be_bytes());
        let segment = checksum(&[&pseudo(&frame[ETHERNET..]), &frame[ETHERNET + IPV4..]]);
        frame[ETHERNET + IPV4 + 16..][..2].copy_from_slice(&segment.to_be_bytes());
        frame
    }

    /// The ports and the segment of a frame; `None` if it is no whole TCP segment over IPv4 with an
    /// acknowledgement and sound checksums. Padding behind it does no harm; options are skipped.
    pub fn decode(frame: &[u8]) -> Option<([u16; 2], Self)> {
        let packet = frame.get(ETHERNET..)?;
        packet.get(..IPV4)?;
        let two = |octets: &[u8], at: usize| {
            octets.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
        };
        let four = |octets: &[u8], at: usize| {
            octets.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
        };
        let is_ipv4 = two(frame, 12)? == ETHERTYPE && packet[0] >> 4 == 4;
        let header = usize::from(packet[0] & 0x0f) * 4;
        let packet = packet.get(..usize::from(two(packet, 2)?))?;
        let tcp = packet.get(header.max(IPV4)..)?;
        tcp.get(..TCP)?;
        let options = usize::from(tcp[12] >> 4) * 4;
        let sound = is_ipv4
            && header >= IPV4
            && packet[9] == PROTOCOL
            && checksum(&[&packet[..header]]) == 0
            && checksum(&[&pseudo(packet), tcp]) == 0
            && options >= TCP
            && tcp[13] & ACK != 0;
        let data = tcp.get(options..).filter(|_| sound)?;
        let segment = Self {
            sequence: four(tcp, 4)?,
            acknowledgement: four(tcp, 8)?,
            window: two(tcp, 14)?,
            push: tcp[13] & PSH != 0,
            data: data.to_vec(),
        };
        Some(([two(tcp, 0)?, two(tcp, 2)?], segment))
    }
}

/// What the checksum of a segment covers beside it (RFC 9293 3.1), from the packet that it is in.
fn pseudo(packet: &[u8]) -> [u8; 12] {
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&packet[12..20]);
    pseudo[9] = PROTOCOL;
    let header = usize::from(packet[0] & 0x0f) * 4;
    let length = (packet.len() - header) as u16;
    pseudo[10..].copy_from_slice(&length.to_be_bytes());
    pseudo
}

/// The Internet checksum (RFC 1071) of parts; all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
