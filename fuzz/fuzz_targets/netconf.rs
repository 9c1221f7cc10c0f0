//! No text of a device makes the reader of its answers panic, and it reads what it writes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = onbeat_configuration::push::is_readable(text);
});
