//! Rates, sizes and addresses, and how a frame is counted on the wire.

use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rate in bits per second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// A rate of `mbps` million bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// The rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The time that `octets` take at this rate, rounded up to a whole nanosecond.
    ///
    /// # Panics
    /// When the rate is zero, or the result does not fit in a [`Span`].
    pub fn time_for(self, octets: Octets) -> Span {
        let bit_ns = u128::from(octets.get()) * 8 * 1_000_000_000;
        let ns = bit_ns.div_ceil(u128::from(self.0));
        Span::from_ns(i64::try_from(ns).expect("a transmission shorter than 292 years"))
    }
}
/// Prints with the largest decimal prefix that is exact to three digits: `1 Gb/s`, `5.632 Mb/s`.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "b/s"),
            1_000..1_000_000 => (1_000, "kb/s"),
            1_000_000..1_000_000_000 => (1_000_000, "Mb/s"),
            _ => (1_000_000_000, "Gb/s"),
        };
        let (whole, rest) = (self.0 / scale, self.0 % scale * 1_000 / scale);
        if rest == 0 {
            return write!(f, "{whole} {unit}");
        }
        let digits = format!("{rest:03}");
        write!(f, "{whole}.{} {unit}", digits.trim_end_matches('0'))
    }
}

/// A number of octets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Octets(u32);

impl Octets {
    /// `count` octets.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }
    /// How many octets.
    pub const fn get(self) -> u32 {
        self.0
    }
}
impl std::ops::Add for Octets {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// How frames are counted (IEEE 802.3 clauses 3 and 4; 802.1Q-2018 34.4 for what a reservation
/// counts). A *frame* runs from the destination address to the FCS; on the *wire* it is preceded
/// by preamble and start delimiter and followed by the inter-packet gap.
pub mod frame {
    use super::Octets;

    /// Preamble and start-of-frame delimiter.
    pub const PREAMBLE: Octets = Octets(8);
    /// Inter-packet gap.
    pub const GAP: Octets = Octets(12);
    /// Destination, source and EtherType.
    pub const HEADER: Octets = Octets(14);
    /// One 802.1Q tag.
    pub const TAG: Octets = Octets(4);
    /// One redundancy tag (R-TAG, 802.1CB-2017 7.8).
    pub const R_TAG: Octets = Octets(6);
    /// Frame check sequence.
    pub const FCS: Octets = Octets(4);
    /// The shortest untagged frame.
    pub const MIN_UNTAGGED: Octets = Octets(64);
    /// The shortest tagged frame.
    pub const MIN_TAGGED: Octets = Octets(68);
    /// The longest tagged frame: 1500 octets of MAC client data.
    pub const MAX_TAGGED: Octets = Octets(1522);
    /// The longest frame without a tag.
    pub const MAX_UNTAGGED: Octets = Octets(1518);
    /// The IEEE 1722 common stream header.
    pub const AVTP_HEADER: Octets = Octets(24);
    /// The most that one frame of a channel can carry: a longer message has several.
    pub const MAX_CHANNEL_PAYLOAD: Octets = Octets(1500 - 24);
    /// UDP and IPv4 headers without options.
    pub const UDP_IPV4: Octets = Octets(28);
    /// The most that one UDP datagram in one frame can carry.
    pub const MAX_UDP_PAYLOAD: Octets = Octets(1500 - 28);

    /// The tagged frame that carries `payload` octets of a channel.
    pub const fn of_channel(payload: Octets) -> Octets {
        let octets = payload.0 + AVTP_HEADER.0 + HEADER.0 + TAG.0 + FCS.0;
        if octets < MIN_TAGGED.0 { MIN_TAGGED } else { Octets(octets) }
    }

    /// The untagged frame that carries `payload` octets of UDP over IPv4.
    pub const fn of_udp(payload: Octets) -> Octets {
        let octets = payload.0 + UDP_IPV4.0 + HEADER.0 + FCS.0;
        if octets < MIN_UNTAGGED.0 { MIN_UNTAGGED } else { Octets(octets) }
    }

    /// The longest untagged frame of gPTP in a network of so many nodes: an Announce message with
    /// all of them in its path trace (802.1AS-2020 10.6.3), or a Follow_Up.
    pub const fn of_gptp(nodes: usize) -> Octets {
        let announce = 64 + 4 + 8 * if nodes < 180 { nodes as u32 } else { 180 };
        let message = if announce < 76 { 76 } else { announce };
        Octets(message + HEADER.0 + FCS.0)
    }

    /// What a frame occupies of the link: preamble, frame and gap.
    pub const fn on_wire(frame: Octets) -> Octets {
        Octets(PREAMBLE.0 + frame.0 + GAP.0)
    }
}

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether the group bit is set.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}
impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
/// The text was not six pairs of hexadecimal digits joined by `:`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected six pairs of hexadecimal digits, as in 01:00:5e:01:11:42")]
pub struct NotAMacAddress;

impl FromStr for MacAddress {
    type Err = NotAMacAddress;
    fn from_str(text: &str) -> Result<Self, NotAMacAddress> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(NotAMacAddress)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(NotAMacAddress);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| NotAMacAddress)?;
        }
        if parts.next().is_some() { Err(NotAMacAddress) } else { Ok(Self(octets)) }
    }
}

/// An IEEE 1722 stream identifier, unique in the network.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The stream that `#` and its number in decimal digits name, as in `#42`; no channel's name
    /// begins so.
    pub fn called(name: &str) -> Option<Self> {
        name.strip_prefix('#')?.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_of_8_octets_occupies_88_octets_of_the_wire() {
        // 8 payload + 24 AVTP + 18 tagged header + 4 FCS = 54 → minimum 68; + 8 preamble + 12 gap.
        let frame = frame::of_channel(Octets::new(8));
        assert_eq!(frame, Octets::new(68));
        assert_eq!(frame::on_wire(frame), Octets::new(88));
    }

    #[test]
    fn a_udp_datagram_of_1470_octets_takes_12_288_ns_of_a_gigabit_link() {
        // 1470 + 28 + 14 + 4 = 1516; + 20 = 1536 octets × 8 ns.
        let wire = frame::on_wire(frame::of_udp(Octets::new(1470)));
        assert_eq!(BitRate::from_mbps(1000).time_for(wire), Span::from_ns(12_288));
    }

    #[test]
    fn transmission_time_is_rounded_up() {
        // 1 octet at 3 b/s: 8/3 s = 2.666… s.
        let time = BitRate::from_bps(3).time_for(Octets::new(1));
        assert_eq!(time, Span::from_ns(2_666_666_667));
    }

    #[test]
    fn mac_addresses_read_back_what_they_print_and_refuse_the_rest() {
        let text = "01:00:5e:01:11:42";
        assert_eq!(text.parse::<MacAddress>().unwrap().to_string(), text);
        for bad in
            ["", "01:00:5e:01:11", "01:00:5e:01:11:42:00", "1:0:5e:1:11:42", "+1:00:5e:01:11:42"]
        {
            assert_eq!(bad.parse::<MacAddress>(), Err(NotAMacAddress), "{bad}");
        }
    }
}
