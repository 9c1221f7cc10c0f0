//! No text makes the C manifest's reader panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = onbeat_description::manifest::read(text, 0);
});
