//! No text makes the reader of key files panic, and what is read is not printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::units::{MacAddress, StreamId};
use onbeat_runtime::integrity::{KEYS_MAX, KeyRing};

fuzz_target!(|text: &str| {
    if let Ok(ring) = text.parse::<KeyRing>() {
        assert!((1..=KEYS_MAX).contains(&ring.numbers().count()));
        let shown = format!("{ring:?} {:?}", ring.of_stream(StreamId(1), MacAddress([1; 6])));
        assert!(shown.len() < 100, "{shown}");
    }
});
