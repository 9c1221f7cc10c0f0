//! No octets make the reader of the journal of settings panic, and no more changes are outstanding
//! than it has lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_machine::tune::{outstanding, parse};

fuzz_target!(|octets: &[u8]| {
    if let Ok(records) = parse(octets) {
        assert!(outstanding(&records).len() <= records.len());
    }
});
