//! No octets make the reader of the reservation service's messages panic, what it takes is written
//! back the same, and a service that gets any requests and PDUs in any order continues.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::interface::srp::{Answer, Request};
use onbeat_machine::srp::{ClientId, HostInput, OwnPort, SrpHost};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress};
use onbeat_runtime::msrp::StationSettings;

fuzz_target!(|octets: &[u8]| {
    if let Ok(request) = Request::parse(octets) {
        assert_eq!(request.to_octets(), octets);
    }
    if let Ok(answer) = Answer::parse(octets) {
        assert_eq!(answer.to_octets(), octets);
    }
    let port = OwnPort::new(MacAddress([2, 0, 0, 0, 0, 1]), BitRate::from_mbps(100));
    let mut now = NetTime::ZERO;
    let mut host = SrpHost::new(port, StationSettings::default(), 1, now);
    // Each piece: how much later it comes, what it is, and its octets.
    for piece in octets.chunks(64) {
        let Some(([later, kind], octets)) = piece.split_first_chunk::<2>() else { break };
        now += Span::from_ms(i64::from(*later) * 16);
        let client = ClientId(u64::from(kind >> 3));
        let input = match kind & 7 {
            0 => HostInput::Msrp(octets),
            1 => HostInput::Mvrp(octets),
            2 => HostInput::LinkDown,
            3 => HostInput::LinkUp,
            4 => HostInput::Gone(client),
            5 => HostInput::Timeout,
            _ => HostInput::Request(client, 1, octets),
        };
        host.handle(now, input);
        if host.next() <= now {
            host.handle(now, HostInput::Timeout);
        }
    }
});
