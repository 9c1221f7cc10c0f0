//! Checked channels on the kernel's network: keys that are rotated while messages flow, talkers
//! without the key, and talkers that are not the one that the listener names.

#![allow(unsafe_code)]

mod common;

use common::{Hosts, declare, hosts, parameters};
use onbeat::context::{Context, Listener, Talker};
use onbeat::interface::InterfaceSettings;
use onbeat::keys::KeySource;
use onbeat::shared_log::Counters;
use onbeat_model::integrity::Integrity;
use onbeat_model::units::{MacAddress, Octets};
use onbeat_runtime::channel_io::{Reason, Timeout};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_testkit::{Need, not_run};
use std::ffi::CString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIZE: Octets = Octets::new(8);

/// Keys by their numbers in a file that only its owner can read.
fn keys(path: &Path, numbers: &[u8]) {
    let line = |number: &u8| format!("{number} {}\n", format!("{number:02x}").repeat(32));
    std::fs::write(path, numbers.iter().map(line).collect::<String>()).expect("a file of keys");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("its mode");
}

fn context(hosts: &mut Hosts, host: &str, key_file: Option<PathBuf>) -> Context {
    hosts.context_with(host, InterfaceSettings { key_file, ..InterfaceSettings::default() })
}

fn authenticated() -> ChannelParameters {
    ChannelParameters { integrity: Integrity::Authenticated, ..parameters(1, 1_000) }
}

fn talker(hosts: &mut Hosts, context: &Context, channel: ChannelParameters) -> Talker {
    declare(context, "c", channel);
    hosts.inside("talker", || context.open_talker("c", SIZE)).expect("a talker")
}

fn listener(hosts: &mut Hosts, context: &Context, channel: ChannelParameters) -> Listener {
    declare(context, "c", channel);
    hosts.inside("listener", || context.open_listener("c", SIZE)).expect("a listener")
}

/// Reads numbers, each one more than the one before, until the last one comes.
fn read_all(end: &mut Listener, last: u64) -> Counters {
    let (mut value, mut next) = ([0; 8], 0);
    while next <= last {
        end.read(&mut value, Timeout::Endless).expect("no fault").expect("a message");
        assert_eq!(u64::from_le_bytes(value), next);
        next += 1;
    }
    end.log().shared().counters()
}

#[expect(clippy::disallowed_methods, reason = "the pace of programs, which is not measured")]
#[test]
fn keys_are_rotated_while_messages_flow_and_none_is_lost() {
    const LAST: u64 = 1_000;
    let Some(mut hosts) = hosts() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [ours, theirs] = ["talker", "listener"].map(|name| directory.path().join(name));
    keys(&ours, &[7]);
    keys(&theirs, &[7]);
    let talking = context(&mut hosts, "talker", Some(ours.clone()));
    let listening = context(&mut hosts, "listener", Some(theirs.clone()));
    let mut reader = listener(&mut hosts, &listening, authenticated());
    let mut writer = talker(&mut hosts, &talking, authenticated());
    let reading = std::thread::spawn(move || read_all(&mut reader, LAST));
    let writing = std::thread::spawn(move || {
        for number in 0..=LAST {
            writer.write(&number.to_le_bytes()).expect("written");
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for (context, path, numbers) in [
        (&listening, &theirs, &[7, 8][..]),
        (&talking, &ours, &[7, 8]),
        (&talking, &ours, &[8, 7]),
        (&listening, &theirs, &[8, 7]),
        (&listening, &theirs, &[8]),
        (&talking, &ours, &[8]),
    ] {
        std::thread::sleep(Duration::from_millis(100));
        keys(path, numbers);
        context.reload_keys().expect("keys");
    }
    writing.join().expect("the talker");
    let counters = reading.join().expect("the listener");
    // As late as they were.
    let Counters { late, latency_sum_ns, latency_worst_ns, .. } = counters;
    let measured = Counters { late, latency_sum_ns, latency_worst_ns, ..Counters::default() };
    assert_eq!(counters, Counters { received: LAST + 1, ..measured });
}

#[test]
fn without_the_key_nothing_is_read_and_the_talker_that_has_it_loses_nothing() {
    const LAST: u64 = 300;
    let Some(mut hosts) = hosts() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [ours, other] = ["keys", "other"].map(|name| directory.path().join(name));
    keys(&ours, &[7]);
    // The same number, another key.
    std::fs::write(&other, format!("7 {}\n", "66".repeat(32))).expect("a file of keys");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let talking = context(&mut hosts, "talker", Some(ours.clone()));
    let listening = context(&mut hosts, "listener", Some(ours));
    let forging = context(&mut hosts, "talker", Some(other));
    let mut reader = listener(&mut hosts, &listening, authenticated());
    let mut writer = talker(&mut hosts, &talking, authenticated());
    let mut forger = talker(&mut hosts, &forging, authenticated());
    let reading = std::thread::spawn(move || read_all(&mut reader, LAST));
    for number in 0..=LAST {
        forger.write(&[0x66; 8]).expect("written");
        writer.write(&number.to_le_bytes()).expect("written");
    }
    let counters = reading.join().expect("the listener");
    assert_eq!((counters.received, counters.lost, counters.duplicate), (LAST + 1, 0, 0));
    assert_eq!(counters.rejected[Reason::NotAuthentic as usize], LAST + 1);
    assert_eq!(counters.rejected_in_all(), LAST + 1);
}

#[test]
fn a_program_without_keys_opens_no_authenticated_channel() {
    let Some(mut hosts) = hosts() else { return };
    let context = context(&mut hosts, "listener", None);
    declare(&context, "c", authenticated());
    let refused =
        hosts.inside("listener", || context.open_listener("c", SIZE)).expect_err("no key");
    assert!(refused.to_string().contains("ONBEAT_KEY_FILE"), "{refused}");
}

#[test]
fn keys_are_read_from_the_kernels_keyrings() {
    let name = CString::new(format!("onbeat-test-{}", std::process::id())).expect("a name");
    let text = format!("3 {}\n", "a5".repeat(32));
    // SAFETY: two texts that end with a zero octet and octets of the length that is given, which
    // the kernel only reads; -2 is the process's own keyring.
    let added = unsafe {
        let (kind, payload) = (c"user".as_ptr(), text.as_ptr());
        libc::syscall(libc::SYS_add_key, kind, name.as_ptr(), payload, text.len(), -2)
    };
    if added < 0 {
        not_run(Need::Machine, format!("no keyring: {}", std::io::Error::last_os_error()));
        return;
    }
    let ring = KeySource::Ring(name).read().expect("the key");
    assert_eq!(ring.numbers().collect::<Vec<_>>(), [3]);
    let other = CString::new("onbeat-no-such-key").expect("a name");
    let why = KeySource::Ring(other).read().expect_err("no key");
    assert!(why.contains("onbeat-no-such-key") && why.contains("keyctl padd"), "{why}");
}

#[test]
fn a_listener_that_names_its_talker_reads_no_other_station() {
    let Some(mut hosts) = hosts() else { return };
    let listening = context(&mut hosts, "listener", None);
    let named = Some(MacAddress([2, 0, 0, 0, 0, 0x66]));
    let channel = ChannelParameters { talker_address: named, ..parameters(1, 1_000) };
    let mut reader = listener(&mut hosts, &listening, channel);
    let talking = context(&mut hosts, "talker", None);
    let mut writer = talker(&mut hosts, &talking, channel);
    for number in 0_u64..10 {
        writer.write(&number.to_le_bytes()).expect("written");
    }
    let soon = listening.now().expect("a time").local + onbeat_model::time::Span::from_ms(200);
    let got = reader.read(&mut [0; 8], Timeout::Until(soon)).expect("no fault");
    assert_eq!(got, None);
    let log = reader.log().shared();
    assert_eq!(log.counters().rejected[Reason::Talker as usize], 10);
    assert!(log.last_other_talker().is_some());
}
