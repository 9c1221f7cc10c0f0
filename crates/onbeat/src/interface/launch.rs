//! Whether an interface launches frames at the time that SO_TXTIME gives them.
//!
//! Only the queueing discipline `etf` holds a frame until its time (tc-etf(8)): as the interface's
//! root, or below `mq`, `mqprio` or `taprio`. All others send it at once; `taprio` alone waits
//! for a gate, not for the frame's time. `etf` drops a frame whose socket uses another clock or
//! another mode than it does: ours use CLOCK_TAI and the strict mode.

use crate::interface::Interface;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;

/// Room for one part of the answer; the kernel makes parts of at most 32 KiB.
const ANSWER_OCTETS: usize = 64 << 10;
/// The most parts of an answer that are read.
const MAX_PARTS: usize = 1_024;
/// TCA_ETF_PARMS of `linux/pkt_sched.h`: delta, clock and flags, 32 bits each.
const ETF_PARAMETERS: u16 = 1;
/// NLA_TYPE_MASK of `linux/netlink.h`: what is left of an attribute's kind without its flags.
const ATTRIBUTE_KIND: u16 = 0x3fff;
/// TC_ETF_DEADLINE_MODE_ON.
const ETF_DEADLINE_MODE: u32 = 1;

/// Octets of `struct nlmsghdr`, with which each message begins (`linux/netlink.h`).
const HEADER: usize = 16;
/// Octets of `struct tcmsg`, before a discipline's attributes (`linux/rtnetlink.h`).
const DISCIPLINE: usize = 20;

/// Asks the kernel, in the calling thread's network namespace. Not for real-time paths.
pub(super) fn is_honoured(interface: &Interface) -> io::Result<bool> {
    let kind = SocketType::RAW;
    // No protocol is protocol 0, NETLINK_ROUTE.
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut octets = vec![0; ANSWER_OCTETS];
    let mut honoured = false;
    for _ in 0..MAX_PARTS {
        let (received, _) = rustix::net::recv(&socket, &mut octets[..], RecvFlags::empty())?;
        match read_part(&octets[..received], interface.index)? {
            Part::More { launches } => honoured |= launches,
            Part::Last { launches } => return Ok(honoured | launches),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The question after all queueing disciplines: a header, and a `tcmsg` of zeros.
fn request() -> [u8; HEADER + DISCIPLINE] {
    let mut octets = [0; HEADER + DISCIPLINE];
    octets[..4].copy_from_slice(&((HEADER + DISCIPLINE) as u32).to_ne_bytes());
    octets[4..6].copy_from_slice(&libc::RTM_GETQDISC.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    octets[6..8].copy_from_slice(&flags.to_ne_bytes());
    octets
}

/// What one part of a dump of queueing disciplines says.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// There is another one.
    More { launches: bool },
    /// It is the last.
    Last { launches: bool },
}

/// Reads one part: whether a discipline in it launches frames of this interface.
fn read_part(mut octets: &[u8], index: u32) -> io::Result<Part> {
    let mut launches = false;
    while !octets.is_empty() {
        let length = word(octets, 0).ok_or(io::ErrorKind::InvalidData)? as usize;
        let kind = half(octets, 4).ok_or(io::ErrorKind::InvalidData)?;
        let body = octets.get(HEADER..length).ok_or(io::ErrorKind::InvalidData)?;
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(Part::Last { launches }),
            libc::NLMSG_ERROR => {
                let error = word(body, 0).ok_or(io::ErrorKind::InvalidData)?;
                return Err(io::Error::from_raw_os_error(error.cast_signed().wrapping_neg()));
            }
            _ if kind == libc::RTM_NEWQDISC => {
                launches |= word(body, 4) == Some(index) && is_ours(body);
            }
            _ => {}
        }
        // Each message begins at a multiple of four octets.
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Part::More { launches })
}

/// Whether a discipline is an `etf` that takes frames of our sockets.
fn is_ours(discipline: &[u8]) -> bool {
    let of = |kind| {
        let all = attributes(discipline.get(DISCIPLINE..).unwrap_or_default());
        all.filter(move |(found, _)| *found == kind).map(|(_, value)| value)
    };
    of(libc::TCA_KIND).any(|name| name == b"etf\0") && of(libc::TCA_OPTIONS).any(takes_ours)
}

fn takes_ours(options: &[u8]) -> bool {
    let parameters = attributes(options).find(|(kind, _)| *kind == ETF_PARAMETERS);
    parameters.is_some_and(|(_, value)| {
        word(value, 4) == Some(libc::CLOCK_TAI as u32)
            && word(value, 8).is_some_and(|flags| flags & ETF_DEADLINE_MODE == 0)
    })
}

/// Attributes with their kinds (`struct nlattr`), up to the first that is not whole.
fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(half(octets, 0)?), half(octets, 2)?);
        let value = octets.get(4..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & ATTRIBUTE_KIND, value))
    })
}

/// 32 bits of the machine's order at an offset.
fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

/// 16 bits of the machine's order at an offset.
fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kernel answered about two interfaces: 2 has `pfifo`, 3 has `mq` over two
    /// `pfifo_fast`.
    const RECORDED: &str = "\
        9c0000002400020001000000fd230000000000000200000000000480ffffffff030000000a00010070666966\
        6f00000008000200e803000005000c000000000030000700140001005a000000000000000100000000000000\
        1800030000000000000000000000000000000000000000002c0003005a000000000000000100000000000000\
        000000000000000000000000000000000000000000000000900000002400020001000000fd23000000000000\
        0300000000000380ffffffff01000000070001006d71000005000c00000000003000070014000100b4000000\
        0000000002000000000000001800030000000000000000000000000000000000000000002c000300b4000000\
        000000000200000000000000000000000000000000000000000000000000000000000000b000000024000200\
        01000000fd23000000000000030000000000000002000380010000000f000100706669666f5f666173740000\
        18000200030000000102020201020000010101010101010105000c0000000000300007001400010000000000\
        0000000000000000000000001800030000000000000000000000000000000000000000002c00030000000000\
        000000000000000000000000000000000000000000000000000000000000000000000000b000000024000200\
        01000000fd23000000000000030000000000000001000380010000000f000100706669666f5f666173740000\
        18000200030000000102020201020000010101010101010105000c00000000003000070014000100b4000000\
        0000000002000000000000001800030000000000000000000000000000000000000000002c000300b4000000\
        000000000200000000000000000000000000000000000000000000000000000000000000";

    const ROOT: u32 = u32::MAX;

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let octet = |pair: &[u8; 2]| {
            let text = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(text, 16).expect("digits")
        };
        digits.as_chunks::<2>().0.iter().map(octet).collect()
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut octets = (4 + value.len() as u16).to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend(value);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    /// A discipline as the kernel describes it: RTM_NEWQDISC, TCA_KIND and TCA_OPTIONS.
    fn discipline(index: u32, parent: u32, kind: &str, options: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 4];
        body.extend([index, 0x8001_0000, parent, 2].iter().flat_map(|w| w.to_ne_bytes()));
        body.extend(attribute(1, format!("{kind}\0").as_bytes()));
        body.extend(attribute(2, options));
        message(36, &body)
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut octets = (16 + body.len() as u32).to_ne_bytes().to_vec();
        octets.extend([kind, 2].iter().flat_map(|h| h.to_ne_bytes()));
        octets.extend([1_u32, 1].iter().flat_map(|w| w.to_ne_bytes()));
        octets.extend(body);
        octets
    }

    fn etf(clock: i32, flags: u32) -> Vec<u8> {
        let words = [200_000, clock as u32, flags];
        attribute(ETF_PARAMETERS, &words.map(u32::to_ne_bytes).concat())
    }

    #[test]
    fn other_disciplines_launch_nothing_as_a_recorded_answer_shows() {
        let recorded = octets(RECORDED);
        for index in [2, 3] {
            let part = read_part(&recorded, index).expect("a kernel's answer");
            assert_eq!(part, Part::More { launches: false });
        }
        let taprio = discipline(3, ROOT, "taprio", &[]);
        assert_eq!(read_part(&taprio, 3).expect("well-formed"), Part::More { launches: false });
    }

    #[test]
    fn etf_launches_at_the_root_or_below_on_our_clock_and_in_our_mode_only() {
        let tai = libc::CLOCK_TAI;
        let done = message(3, &0_i32.to_ne_bytes());
        for (index, parent, clock, flags, launches) in [
            (3, ROOT, tai, 0, true),
            (3, 0x8001_0001, tai, 2, true), // offloaded, below mqprio
            (3, ROOT, libc::CLOCK_REALTIME, 0, false),
            (3, ROOT, tai, ETF_DEADLINE_MODE, false),
            (2, ROOT, tai, 0, false),
        ] {
            let found = discipline(index, parent, "etf", &etf(clock, flags));
            let answer = [octets(RECORDED), found, done.clone()].concat();
            assert_eq!(read_part(&answer, 3).expect("well-formed"), Part::Last { launches });
        }
        let nameless = discipline(3, ROOT, "etf", &[]);
        assert_eq!(read_part(&nameless, 3).expect("well-formed"), Part::More { launches: false });
    }

    #[test]
    fn an_error_is_the_kernels_and_half_a_message_is_nonsense() {
        let refused = message(2, &(-libc::EPERM).to_ne_bytes());
        let error = read_part(&refused, 3).expect_err("an error");
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        let whole = discipline(3, ROOT, "etf", &etf(libc::CLOCK_TAI, 0));
        for cut in 1..whole.len() {
            assert!(read_part(&whole[..cut], 3).is_err(), "{cut} octets");
        }
        let mut zero = whole;
        zero[..4].fill(0);
        assert!(read_part(&zero, 3).is_err(), "it would never end");
    }

    #[test]
    fn the_kernel_answers_about_the_loopback() {
        let loopback = Interface::named("lo").expect("every namespace has it");
        assert!(!is_honoured(&loopback).expect("an answer"));
    }

    proptest::proptest! {
        #[test]
        fn no_octets_make_the_reader_panic(
            octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            cut in 0usize..800, at in 0usize..800, value: u8,
        ) {
            let _ = read_part(&octets, 3);
            let mut mutated = [super::tests::octets(RECORDED), etf(11, 0)].concat();
            let at = at % mutated.len();
            mutated[at] = value;
            mutated.truncate(cut);
            let _ = read_part(&mutated, 3);
        }
    }
}
