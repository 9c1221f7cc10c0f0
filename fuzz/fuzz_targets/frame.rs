//! No octets make the frame parser panic, and a frame that is accepted is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_runtime::wire::{Frame, MAX_FRAME, emit};

fuzz_target!(|octets: &[u8]| {
    if let Ok(frame) = Frame::parse(octets) {
        let mut again = [0; MAX_FRAME];
        let length = emit(&frame.header, frame.payload, &mut again);
        assert_eq!(Frame::parse(&again[..length]), Ok(frame));
    }
});
