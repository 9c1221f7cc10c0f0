//! Listeners on the talker's own host: what leaves by the interface, in the real kernel.

mod common;

use common::{Hosts, declare, hosts, parameters};
use onbeat::context::{Context, Listener, Talker};
use onbeat::interface::{
    InterfaceContext, InterfaceOptions, InterfaceSettings, Precautions, TransportKind,
};
use onbeat::shared_log::Counters;
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_run::netns::INTERFACE;
use onbeat_runtime::channel_io::Timeout;
use onbeat_runtime::talker::ChannelParameters;

const SIZE: Octets = Octets::new(8);
const MESSAGES: u64 = 200;

/// Lets a channel's listeners of this context hear the own host.
fn hear(context: &Context) {
    let Context::Interface(context) = context else { panic!("not on an interface") };
    context.hear_own_host("c").expect("declared");
}

fn settings(transport: TransportKind, options: InterfaceOptions) -> InterfaceSettings {
    InterfaceSettings { transport, options, ..InterfaceSettings::default() }
}

/// A program on the talker's host that declares the channel for it.
fn near(hosts: &mut Hosts, channel: ChannelParameters, settings: InterfaceSettings) -> Context {
    let context = hosts.context_with("talker", settings);
    declare(&context, "c", channel);
    hear(&context);
    context
}

fn talker(hosts: &mut Hosts, context: &Context) -> Talker {
    hosts.inside("talker", || context.open_talker("c", SIZE)).expect("a talker")
}

fn listener(hosts: &mut Hosts, host: &str, context: &Context) -> Listener {
    hosts.inside(host, || context.open_listener("c", SIZE)).expect("a listener")
}

/// Reads each message once, in order, and nothing behind the last one.
fn read_all(context: &Context, mut end: Listener) -> Counters {
    let mut value = [0; 8];
    for k in 0..MESSAGES {
        let until = context.now().expect("the time").local + Span::from_s(60);
        let info = end.read(&mut value, Timeout::Until(until)).expect("no fault");
        assert_eq!((u64::from_le_bytes(value), info.expect("a message").gap), (k, 0));
    }
    // What came a second time would be behind it.
    let until = Timeout::Until(context.now().expect("the time").local + Span::from_ms(50));
    assert_eq!(end.read(&mut value, until).expect("no fault"), None);
    end.log().shared().counters()
}

/// Of one program's talker: a listener of the same program, one of another, and one across the
/// network read the same.
fn delivers(channel: ChannelParameters, transport: TransportKind, options: InterfaceOptions) {
    let Some(mut hosts) = hosts() else { return };
    let of = || settings(transport, options);
    let own = near(&mut hosts, channel, of());
    let other = near(&mut hosts, channel, of());
    let remote = hosts.context_with("listener", of());
    declare(&remote, "c", channel);
    let readers = [("talker", &own), ("talker", &other), ("listener", &remote)];
    let readers =
        readers.map(|(host, context)| (context.clone(), listener(&mut hosts, host, context)));
    let mut writer = talker(&mut hosts, &own);
    let reading = readers.map(|(context, end)| std::thread::spawn(move || read_all(&context, end)));
    for k in 0..MESSAGES {
        writer.write(&k.to_le_bytes()).expect("written");
    }
    for counters in reading.map(|reading| reading.join().expect("a listener")) {
        assert_eq!((counters.received, counters.lost, counters.duplicate), (MESSAGES, 0, 0));
        assert_eq!(counters.rejected, [0; 10]);
    }
    assert_eq!(writer.log().shared().counters().sent, MESSAGES);
}

#[test]
fn what_leaves_is_read_once_on_the_own_host_and_across_the_network() {
    delivers(parameters(1, 1_000), TransportKind::Packet, InterfaceOptions::default());
}

#[test]
fn frames_without_a_tag_and_with_a_redundancy_tag_are_read_as_well() {
    let options = InterfaceOptions { untagged: true, ..InterfaceOptions::default() };
    delivers(parameters(1, 1_000), TransportKind::Packet, options);
    let replicated = ChannelParameters { replicated: true, ..parameters(1, 1_000) };
    delivers(replicated, TransportKind::Packet, InterfaceOptions::default());
}

#[test]
fn datagrams_are_read_on_the_own_host() {
    let options = InterfaceOptions::default();
    delivers(parameters(1, 1_000), TransportKind::Udp4, options);
    delivers(parameters(1, 1_000), TransportKind::Udp6, options);
}

/// The listener's stamp is the kernel's, of when the frame was given to the driver.
#[test]
fn what_leaves_has_a_stamp_and_wakes_who_selects() {
    let Some(mut hosts) = hosts() else { return };
    let options = InterfaceOptions { timestamps: true, ..InterfaceOptions::default() };
    let own = near(&mut hosts, parameters(1, 1_000), settings(TransportKind::Packet, options));
    let mut reader = listener(&mut hosts, "talker", &own);
    let mut writer = talker(&mut hosts, &own);
    assert_eq!(own.select(&[&reader], Timeout::None).expect("no fault"), None);
    let written = writer.write(&[7; 8]).expect("written");
    assert_eq!(own.select(&[&reader], Timeout::Endless).expect("no fault"), Some(0));
    // Long after it left, as far as the stamp is concerned.
    let later = own.now().expect("the time").local + Span::from_ms(1);
    own.sleep_until(later).expect("no fault");
    let mut value = [0; 8];
    let info = reader.read(&mut value, Timeout::Endless).expect("no fault").expect("a message");
    assert_eq!((value, info.capture), ([7; 8], written));
    assert!(info.arrived >= info.capture && info.arrived < later, "{info:?}");
    let known = own.liveness(&mut reader).expect("no fault");
    assert!(known.last_arrival.is_some_and(|at| at >= info.capture), "{known:?}");
}

/// A frame on the loopback leaves and comes in: it is read once with the choice and without.
#[test]
fn on_the_loopback_messages_are_read_once_in_any_case() {
    let Some(mut hosts) = hosts() else { return };
    for hears in [false, true] {
        let channel = parameters(1, 1_000);
        let settings = InterfaceSettings { name: "lo".to_owned(), ..Default::default() };
        let context = hosts.inside("talker", || {
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(up.expect("ip").success());
            InterfaceContext::open(settings)
        });
        let context = Context::Interface(context.expect("the loopback"));
        declare(&context, "c", channel);
        if hears {
            hear(&context);
        }
        let reader = listener(&mut hosts, "talker", &context);
        let mut writer = talker(&mut hosts, &context);
        let here = context.clone();
        let reading = std::thread::spawn(move || read_all(&here, reader));
        for k in 0..MESSAGES {
            writer.write(&k.to_le_bytes()).expect("written");
        }
        assert_eq!(reading.join().expect("the listener").duplicate, 0);
    }
}

#[test]
fn what_cannot_be_heard_on_the_own_host_is_refused() {
    let Some(mut hosts) = hosts() else { return };
    let refused = |hosts: &mut Hosts, context: &Context, talks: bool| {
        hosts
            .inside("talker", || match talks {
                true => context.open_talker("c", SIZE).map(drop),
                false => context.open_listener("c", SIZE).map(drop),
            })
            .expect_err("refused")
            .to_string()
    };
    // Without the choice, whichever end is first.
    for talks in [false, true] {
        let context = hosts.context("talker");
        declare(&context, "c", parameters(1, 1_000));
        let first: Box<dyn std::any::Any> = match talks {
            true => Box::new(listener(&mut hosts, "talker", &context)),
            false => Box::new(talker(&mut hosts, &context)),
        };
        let said = refused(&mut hosts, &context, talks);
        assert!(said.contains("ONBEAT_OWN_HOST"), "{said}");
        drop(first);
        // As before, one end at a time is no matter.
        drop(talker(&mut hosts, &context));
        drop(listener(&mut hosts, "talker", &context));
    }
    let options = InterfaceOptions::default();
    let context = near(&mut hosts, parameters(1, 1_000), settings(TransportKind::Xdp, options));
    for talks in [false, true] {
        let said = refused(&mut hosts, &context, talks);
        assert!(said.contains("AF_XDP passes the kernel by"), "{said}");
    }
}

/// A table says of one host both ends of a channel; other programs read as if there were one.
#[test]
fn a_table_with_both_ends_of_a_channel_is_that_of_the_own_host() {
    let Some(mut hosts) = hosts() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("talker.channels");
    let row = "c 01:00:5e:01:00:01 0x0000000000000001 2 3 8 1000000 1000000000 2000000";
    let table = |rows: &str, ends: u32| {
        format!("onbeat-channels 1\nsystem s\nhost talker\n{rows}end {ends}\n")
    };
    let both = format!("talker {row}\nlistener {row}\n");
    let open = |hosts: &mut Hosts, text: String| {
        std::fs::write(&path, text).expect("a table");
        let (kind, precautions) = (TransportKind::Packet, Precautions::default());
        let what = || InterfaceContext::with_table(INTERFACE, &path, kind, precautions);
        hosts.inside("talker", what)
    };
    let context = Context::Interface(open(&mut hosts, table(&both, 2)).expect("a context"));
    context.start().expect("its epoch");
    let reader = listener(&mut hosts, "talker", &context);
    // By its number, too.
    let writer = hosts.inside("talker", || context.open_talker("#1", SIZE));
    let mut writer = writer.expect("a talker");
    for k in 0..MESSAGES {
        writer.write(&k.to_le_bytes()).expect("written");
    }
    assert_eq!(read_all(&context, reader).received, MESSAGES);
    for (second, why) in [
        (row.replace("0001 2 3", "0002 2 3"), "another channel has this name"),
        (row.replace(" 8 ", " 9 "), "another channel has this name"),
        (row.replace("c ", "d "), "channel `c` has the same stream id"),
    ] {
        let rows = format!("talker {row}\nlistener {second}\n");
        let said = open(&mut hosts, table(&rows, 2)).expect_err(&second).to_string();
        assert!(said.contains(why), "{said}");
    }
    let rows = format!("talker {row}\ntalker {row}\n");
    let said = open(&mut hosts, table(&rows, 2)).expect_err("twice").to_string();
    assert!(said.contains("another channel has this name"), "{said}");
}
