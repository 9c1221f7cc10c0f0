//! Noise on a real network: a generator of UDP datagrams and a sink that counts them.
//!
//! The generator sends at the instants of `NoiseTimes` of the engine, as noise does on the emulated
//! network and on one of namespaces (`onbeat_run::netns`). Here it sends in batches of one
//! system call (sendmmsg), on as many threads as are asked for. It refuses a way out that carries a
//! default route unless it is forced to: that is how the machine's user, and others, reach the rest
//! of the world.

mod guard;
mod sender;
mod sink;

pub use guard::{Carrier, carrier_of};
pub use sender::{Sender, Sending, Sent};
pub use sink::{Received, Receiving, Sink};

use onbeat_model::units::{BitRate, Octets, frame};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The port that noise goes to unless another one is asked for; it has no registered use.
pub const PORT: u16 = 41_470;
/// Where noise goes to that has an interface and no address: a group of the organisation-local
/// scope (RFC 2365); it never leaves the link, since its time to live is 1.
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 79, 78);
/// The shortest payload: what the sink tells lost datagrams by.
pub const SIZE_MIN: u32 = STAMP as u32;
/// The longest: an Ethernet jumbo frame's.
pub const SIZE_MAX: u32 = 9_000 - 28;
/// The highest rate that is asked for.
pub const RATE_MAX: BitRate = BitRate::from_mbps(400_000);
/// The most threads of a generator.
pub const THREADS_MAX: u16 = 64;

/// The most datagrams of one system call.
const BATCH: usize = 64;
/// What each datagram begins with: [`MAGIC`], which generator thread, and its number there.
const STAMP: usize = 16;
const MAGIC: [u8; 4] = *b"ONBN";
/// By how much the header of IPv6 is longer than that of IPv4.
const IPV6_MORE: u32 = 20;

/// Why there is no noise.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// The machine's default route would suffer.
    #[error(
        "{0}: noise there cuts this machine off; choose another interface, or add --force if \
         that is what you want"
    )]
    DefaultRoute(Carrier),
    /// There is no such interface, or it cannot be used.
    #[error("interface `{name}`: {error}")]
    Interface {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// No way to where it is to go.
    #[error("{to}: {error}; noise needs a route there, or an interface")]
    NoWay {
        /// Its address.
        to: IpAddr,
        /// What the system said.
        error: io::Error,
    },
    /// A datagram would need several frames.
    #[error("datagrams of {size} octets do not fit a frame there: at most {most}")]
    TooLong {
        /// Octets asked for.
        size: u32,
        /// Octets that fit.
        most: u32,
    },
    /// A socket or thread was refused.
    #[error("{step}: {error}")]
    System {
        /// What was being done.
        step: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// The error of one step.
fn failed(step: &'static str) -> impl Fn(io::Error) -> NoiseError {
    move |error| NoiseError::System { step, error }
}

/// What a datagram's frame occupies of the wire: with headers, check sequence, preamble and gap.
pub fn wire_octets(payload: Octets, v6: bool) -> Octets {
    let more = if v6 { IPV6_MORE } else { 0 };
    frame::on_wire(frame::of_udp(Octets::new(payload.get() + more)))
}

/// The first octets of a datagram.
fn stamp(stream: u32, number: u64) -> [u8; STAMP] {
    let mut octets = [0; STAMP];
    octets[..4].copy_from_slice(&MAGIC);
    octets[4..8].copy_from_slice(&stream.to_be_bytes());
    octets[8..].copy_from_slice(&number.to_be_bytes());
    octets
}

/// The stream and the number of a datagram of ours.
fn read_stamp(octets: &[u8; STAMP]) -> Option<(u32, u64)> {
    let (magic, rest) = octets.split_first_chunk::<4>()?;
    let (stream, rest) = rest.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    (*magic == MAGIC).then(|| (u32::from_be_bytes(*stream), u64::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_says_which_it_is_and_others_do_not() {
        assert_eq!(read_stamp(&stamp(7, 1 << 40)), Some((7, 1 << 40)));
        assert_eq!(read_stamp(&[0; STAMP]), None);
    }

    #[test]
    fn the_wire_carries_66_octets_more_than_the_payload_and_86_with_ipv6() {
        assert_eq!(wire_octets(Octets::new(1_470), false), Octets::new(1_536));
        assert_eq!(wire_octets(Octets::new(1_470), true), Octets::new(1_556));
        assert_eq!(wire_octets(Octets::new(16), false), Octets::new(84), "the shortest frame");
    }
}
