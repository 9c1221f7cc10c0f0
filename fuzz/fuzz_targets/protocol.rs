//! No packet makes the coordinator's decoders panic, and what they accept is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::coordinator::protocol::{MAX_PACKET, Reply, Request};

fuzz_target!(|packet: &[u8]| {
    let mut again = [0; MAX_PACKET];
    if packet.len() > MAX_PACKET {
        return;
    }
    if let Ok(request) = Request::decode(packet) {
        let length = request.encode(&mut again);
        assert_eq!(Request::decode(&again[..length]), Ok(request));
    }
    if let Ok(reply) = Reply::decode(packet) {
        let length = reply.encode(&mut again);
        assert_eq!(Reply::decode(&again[..length]), Ok(reply));
    }
});
