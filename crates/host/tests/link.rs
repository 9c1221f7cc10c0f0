//! Channels over the kernel's network stack: two hosts, two bridges, no fabric.

mod common;

use common::{declare, hosts, parameters};
use onbeat_host::context::Context;
use onbeat_model::units::Octets;
use onbeat_runtime::port::{Fault, Patience};

const SIZE: Octets = Octets::new(8);

#[test]
fn messages_cross_the_network_in_order_and_whole() {
    let Some(mut hosts) = hosts() else { return };
    let channel = parameters(1, 1_000);
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    declare(&talker, "c", channel);
    declare(&listener, "c", channel);
    let mut reader = hosts.inside("listener", || listener.open_listener("c", SIZE)).expect("read");
    let mut writer = hosts.inside("talker", || talker.open_talker("c", SIZE)).expect("write");
    let counting = std::thread::spawn(move || {
        let mut value = [0; 8];
        for k in 0..1_000u64 {
            let info = reader.read(&mut value, Patience::Endless).expect("no fault");
            let info = info.expect("a message");
            assert_eq!((u64::from_le_bytes(value), info.gap), (k, 0));
            assert!(info.latency.as_ns() > 0, "{info:?}");
        }
        reader.log().shared().counters()
    });
    for k in 0..1_000u64 {
        writer.write(&k.to_le_bytes()).expect("written");
    }
    let counters = counting.join().expect("the reader");
    assert_eq!((counters.received, counters.lost, counters.duplicate), (1_000, 0, 0));
    assert_eq!(counters.rejected, [0; 3]);
    assert_eq!(writer.log().shared().counters().sent, 1_000);
}

#[test]
fn a_stopped_reader_returns_soon() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("listener");
    declare(&context, "c", parameters(1, 1_000));
    let mut reader = hosts.inside("listener", || context.open_listener("c", SIZE)).expect("read");
    let waiting =
        std::thread::spawn(move || reader.read(&mut [0; 8], Patience::Endless).map(|_| ()));
    context.stop();
    assert_eq!(waiting.join().expect("the reader"), Err(Fault::Stopped));
}

#[test]
fn what_is_declared_wrong_or_opened_wrong_is_refused_with_the_reason() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("talker");
    declare(&context, "c", parameters(1, 1_000));
    let refused = |result: Result<(), _>, why: &str| {
        let error: onbeat_host::fabric::client::SetupError = result.expect_err("refused");
        assert!(error.to_string().contains(why), "{error}");
    };
    let Context::Link(link) = &context else { panic!("not on an interface") };
    refused(link.declare("c", parameters(2, 1_000)), "has this name");
    refused(link.declare("d", parameters(1, 1_000)), "same stream id");
    refused(link.declare("d", parameters(0, 1_000)), "identifier 0");
    refused(link.declare("d", parameters(3, 0)), "interval");
    let mut bad = parameters(3, 1_000);
    bad.destination.0 = [0; 6];
    refused(link.declare("d", bad), "00:00:00:00:00:00");
    bad = parameters(3, 1_000);
    bad.size = Octets::new(1_477);
    refused(link.declare("d", bad), "1477");
    refused(context.open_talker("e", SIZE).map(|_| ()), "there is no channel `e`");
    refused(context.open_talker("c", Octets::new(9)).map(|_| ()), "8 octets, not of 9");
    let _first = hosts.inside("talker", || context.open_talker("c", SIZE)).expect("opened");
    refused(context.open_talker("c", SIZE).map(|_| ()), "writes to channel `c` already");
}
