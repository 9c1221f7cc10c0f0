//! No file makes the record file's reader panic, and what it accepts is written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_measure::records::{decode, encode};

fuzz_target!(|file: &[u8]| {
    if let Ok(log) = decode(file) {
        assert_eq!(decode(&encode(&log)).as_ref(), Ok(&log));
    }
});
