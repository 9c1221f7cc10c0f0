//! No text makes the layout of a C struct panic, and each field is within its struct, behind the
//! one before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_description::manifest::{layout_of, layout_of_channel};

fuzz_target!(|input: (&str, &str)| {
    let (text, name) = input;
    let name = if name.is_empty() { "s" } else { name };
    let _ = layout_of_channel(text, name);
    let Ok(layout) = layout_of(text, name) else { return };
    let mut end = 0;
    for field in &layout.fields {
        assert!(field.offset >= end);
        end = field.offset + field.holds.octets();
    }
    assert!(end <= layout.octets);
});
