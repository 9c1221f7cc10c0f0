//! Which version of the library a program has; the header says for which one it was compiled.

use std::ffi::{CStr, c_char};

/// The version as Cargo knows it, with a zero octet at its end.
const TEXT: &CStr = {
    let octets = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    match CStr::from_bytes_with_nul(octets) {
        Ok(text) => text,
        Err(_) => panic!("a version has no zero octet"),
    }
};

/// As `ONBEAT_VERSION_NUMBER` does it.
const NUMBER: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
    | below_256(number(env!("CARGO_PKG_VERSION_MINOR"))) << 8
    | below_256(number(env!("CARGO_PKG_VERSION_PATCH")));

const fn number(digits: &str) -> u32 {
    match u32::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a part of the version is not a number"),
    }
}

const fn below_256(number: u32) -> u32 {
    assert!(number < 256, "a part of the version has no room in its octet");
    number
}

/// The library's version as `ONBEAT_VERSION_NUMBER` makes it, where `ONBEAT_VERSION` is that of the
/// header: a program that needs what came with a version asks both. Never blocks, allocates
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_version() -> u32 {
    NUMBER
}

/// The library's version as a text, `MAJOR.MINOR.PATCH`; the header's is `ONBEAT_VERSION_TEXT`.
/// Never NULL, valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_version_text() -> *const c_char {
    TEXT.as_ptr()
}
