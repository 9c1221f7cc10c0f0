//! No text makes the description's reader panic; what it accepts can be planned without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let manifest = |_: &str| Err("there is no other file".to_owned());
    let loaded = onbeat_model::description::load("system.toml", text, &mut { manifest });
    assert!(loaded.system.is_some() || !loaded.diagnostics.is_empty());
});
