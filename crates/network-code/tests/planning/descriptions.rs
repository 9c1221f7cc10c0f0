//! Descriptions for tests.

use onbeat_model::system::System;
use std::fmt::Write;

/// The beginning of each.
pub(super) const BEGIN: &str = "format = 1\nname = \"test\"\n\n[run]\nduration_s = 1\n\n";

/// The system of a description that is right.
pub(super) fn system(text: &str) -> System {
    let mut read = |path: &str| Err(format!("no {path}"));
    let loaded = onbeat_description::load("system.toml", text, &mut read);
    loaded.system.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.diagnostics))
}

/// Tables of hosts.
pub(super) fn hosts(text: &mut String, names: &[&str]) {
    for name in names {
        let _ = writeln!(text, "[[host]]\nname = \"{name}\"\n");
    }
}

pub(super) fn bridge(text: &mut String, name: &str, forwarding_ns: i64) {
    let _ = writeln!(text, "[[bridge]]\nname = \"{name}\"\nforwarding_ns = {forwarding_ns}\n");
}

pub(super) fn link(text: &mut String, ends: [&str; 2], mbps: i64, propagation_ns: i64) {
    let [one, other] = ends;
    let _ = writeln!(
        text,
        "[[link]]\nends = [\"{one}\", \"{other}\"]\nrate_mbps = {mbps}\n\
         propagation_ns = {propagation_ns}\n"
    );
}

/// A channel, the number-th.
pub(super) fn channel(
    text: &mut String,
    number: usize,
    name: &str,
    octets: usize,
    interval_ns: i64,
    talker: &str,
    listeners: &[&str],
) {
    let _ = writeln!(
        text,
        "[[channel]]\nname = \"{name}\"\ndestination = \"01:00:5e:00:{:02x}:{:02x}\"\n\
         stream_id = {}\nclass = \"A\"\nsize_octets = {octets}\ninterval_ns = {interval_ns}\n\
         talker = \"{talker}\"\nlisteners = {listeners:?}\n",
        number / 256,
        number % 256,
        number + 1,
    );
}

pub(super) fn noise(text: &mut String, from: &str, to: &str, octets: i64) {
    let _ = writeln!(
        text,
        "[[noise]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
         size_octets = {octets}\nrate_mbps = 1\n"
    );
}
