//! No octets make the reader of gPTP's messages panic, what it takes is written back the same, and
//! a node that gets any sequence of them continues, with a clock that never goes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_runtime::gptp::{
    ClockIdentity, Event, LocalClockTime, Message, PtpInstance, ScaledNs, Settings, SystemIdentity,
};

fuzz_target!(|octets: &[u8]| {
    if let Ok(message) = Message::parse(octets) {
        let mut again = Vec::new();
        message.emit(&mut again);
        assert_eq!(Message::parse(&again), Ok(message));
    }
    let settings = Settings::new(SystemIdentity::unknown(246, ClockIdentity([1; 8])));
    let mut now = LocalClockTime::from_ns(0);
    let mut node = PtpInstance::new(settings, 2, now);
    let mut read = None;
    // Each piece: how much later it comes, and its octets.
    for piece in octets.chunks(78) {
        let Some((later, octets)) = piece.split_first_chunk::<2>() else { break };
        now = now + ScaledNs::from_ns(i64::from(u16::from_le_bytes(*later)) * 100_000);
        node.handle(now, Event::Received { port: 1, octets, stamp: Some(now) });
        let reading = node.read(now);
        assert!(reading >= read);
        read = reading;
    }
});
