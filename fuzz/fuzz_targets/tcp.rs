//! No octets make the reader of TCP segments panic, also where their checksums are sound; a segment
//! survives its frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::units::MacAddress;
use onbeat_runtime::tcp::{Direction, MSS, TcpSegment};

/// Octets before the packet of IPv4.
const ETHERNET: usize = 14;

/// What is missing to a sum of 0xffff in ones' complement (RFC 1071).
fn missing(octets: &[u8]) -> [u8; 2] {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let sum: u64 = octets.chunks(2).map(word).sum();
    ((0xffff - sum % 0xffff) as u16).to_be_bytes()
}

/// The same frame with the length and the checksums that it should have, as far as they fit.
fn sound(octets: &[u8]) -> Option<Vec<u8>> {
    let mut frame = octets.to_vec();
    frame.get_mut(12..ETHERNET)?.copy_from_slice(&[8, 0]);
    let packet = &mut frame[ETHERNET..];
    let header = usize::from(*packet.first()? & 0x0f) * 4;
    if header < 20 || packet.len() < header + 2 {
        return None;
    }
    packet[0] = 0x40 | packet[0] & 0x0f;
    let length = u16::try_from(packet.len()).ok()?;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[9] = 6;
    packet[10..12].fill(0);
    let own = missing(&packet[..header]);
    packet[10..12].copy_from_slice(&own);
    // Where there is no room for the checksum, the source port makes the sum right.
    let segment = packet.len() - header;
    let at = header + if segment < 18 { 0 } else { 16 };
    packet[at..at + 2].fill(0);
    let [high, low] = (segment as u16).to_be_bytes();
    let own = missing(&[&packet[12..20], &[0, 6, high, low], &packet[header..]].concat());
    packet[at..at + 2].copy_from_slice(&own);
    Some(frame)
}

fuzz_target!(|octets: &[u8]| {
    for frame in [Some(octets.to_vec()), sound(octets)].into_iter().flatten() {
        let Some((ports, segment)) = TcpSegment::decode(&frame) else { continue };
        if segment.data.len() > MSS {
            continue;
        }
        let direction = Direction {
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            destination: MacAddress([2, 0, 0, 0, 0, 2]),
            addresses: [[10, 0, 0, 1], [10, 0, 0, 2]],
            ports,
        };
        let again = segment.encode(&direction);
        assert_eq!(TcpSegment::decode(&again), Some((ports, segment)));
    }
});
