//! No text makes the description's reader panic, nor the file, manifest or trace, that it names:
//! what follows the first octet 0 is that file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (text, other) = text.split_once('\0').unwrap_or((text, ""));
    let file = |_: &str| match other {
        "" => Err("there is no other file".to_owned()),
        other => Ok(other.to_owned()),
    };
    let loaded = onbeat_description::load("system.toml", text, &mut { file });
    assert!(loaded.system.is_some() || !loaded.diagnostics.is_empty());
});
