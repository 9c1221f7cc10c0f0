//! No text makes the reader of machines panic, and each machine that is found is a host's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_description::{load, machines::read};

/// Two hosts with a channel.
const SYSTEM: &str = "format = 1\nname = \"f\"\n[run]\nduration_s = 1\n[[host]]\nname = \"a\"\n\
    [[host]]\nname = \"b\"\n[[bridge]]\nname = \"s\"\n[[link]]\nends = [\"a\", \"s\"]\n\
    rate_mbps = 100\n[[link]]\nends = [\"s\", \"b\"]\nrate_mbps = 100\n[[channel]]\nname = \"c\"\n\
    destination = \"01:00:5e:00:00:01\"\nstream_id = 1\nclass = \"A\"\nsize_octets = 8\n\
    rate_hz = 1000\ntalker = \"a\"\nlisteners = [\"b\"]\n";

fuzz_target!(|text: &str| {
    let system = load("system.toml", SYSTEM, &mut |_| Err(String::new())).system;
    let system = system.expect("it is right");
    match read(text, &system) {
        Ok(machines) => {
            let hosts: Vec<_> = machines.list.iter().map(|machine| machine.host).collect();
            assert!(hosts.len() == 2 && hosts[0] != hosts[1]);
        }
        Err(wrong) => assert!(!wrong.is_empty()),
    }
});
