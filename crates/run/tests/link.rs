//! Channels over the kernel's network stack: two hosts, two bridges, no coordinator.

mod common;

use common::{Hosts, declare, hosts, parameters};
use onbeat::context::{self, Context};
use onbeat::interface::{
    Interface, InterfaceOptions, InterfaceSettings, PacketSocket, TransportKind,
};
use onbeat_model::record::flag;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets};
use onbeat_runtime::channel::Written;
use onbeat_runtime::channel_io::{ChannelError, ChannelIo, Timeout};
use onbeat_runtime::launch::LaunchTimes;
use onbeat_runtime::meeting::rendezvous;
use onbeat_runtime::queue::CAPACITY;
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::MIN_FRAME;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const SIZE: Octets = Octets::new(8);

/// Both ends of a channel between the two hosts.
fn open(
    hosts: &mut Hosts,
    talker: &Context,
    listener: &Context,
    channel: ChannelParameters,
) -> (context::Talker, context::Listener) {
    declare(talker, "c", channel);
    declare(listener, "c", channel);
    let reader = hosts.inside("listener", || listener.open_listener("c", SIZE)).expect("read");
    let writer = hosts.inside("talker", || talker.open_talker("c", SIZE)).expect("write");
    (writer, reader)
}

#[test]
fn messages_cross_the_network_in_order_and_whole() {
    let Some(mut hosts) = hosts() else { return };
    let channel = parameters(1, 1_000);
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    let (mut writer, mut reader) = open(&mut hosts, &talker, &listener, channel);
    let counting = std::thread::spawn(move || {
        let mut value = [0; 8];
        for k in 0..1_000u64 {
            let info = reader.read(&mut value, Timeout::Endless).expect("no fault");
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
    assert_eq!(counters.rejected, [0; 10]);
    assert_eq!(writer.log().shared().counters().sent, 1_000);
}

#[test]
fn a_stopped_reader_returns_soon() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("listener");
    declare(&context, "c", parameters(1, 1_000));
    let mut reader = hosts.inside("listener", || context.open_listener("c", SIZE)).expect("read");
    let waiting =
        std::thread::spawn(move || reader.read(&mut [0; 8], Timeout::Endless).map(|_| ()));
    context.stop();
    assert_eq!(waiting.join().expect("the reader"), Err(ChannelError::Stopped));
}

#[test]
fn a_reader_heeds_a_stop_however_many_messages_come() {
    let Some(mut hosts) = hosts() else { return };
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    let (mut writer, mut reader) = open(&mut hosts, &talker, &listener, parameters(1, 1_000));
    for k in 0..100u64 {
        writer.write(&k.to_le_bytes()).expect("written");
    }
    reader.read(&mut [0; 8], Timeout::Endless).expect("no fault").expect("a message");
    listener.stop();
    assert_eq!(reader.read(&mut [0; 8], Timeout::Endless), Err(ChannelError::Stopped));
    assert_eq!(reader.read(&mut [0; 8], Timeout::None), Err(ChannelError::Stopped));
}

#[test]
fn a_reader_that_follows_its_schedule_has_an_early_message_at_once() {
    let Some(mut hosts) = hosts() else { return };
    // A second apart by declaration: who waited for the window would wait for most of it.
    let channel = parameters(1, 1_000_000);
    let options = InterfaceOptions { follow_schedule: true, ..InterfaceOptions::default() };
    let settings = InterfaceSettings { options, ..InterfaceSettings::default() };
    let talker = hosts.context("talker");
    let listener = hosts.context_with("listener", settings);
    let (mut writer, mut reader) = open(&mut hosts, &talker, &listener, channel);
    let began = listener.now().expect("the time").local;
    for k in 0..20u64 {
        writer.write(&k.to_le_bytes()).expect("written");
        reader.read(&mut [0; 8], Timeout::Endless).expect("no fault").expect("a message");
    }
    let took = listener.now().expect("the time").local - began;
    assert!(took < Span::from_s(15), "{took} for 20 messages that were there at once");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a head start on the machine's clock, not measured")]
fn whichever_side_begins_first_every_round_is_a_meeting() {
    for head_start_ms in [0, 100, 300, 900] {
        let Some(mut hosts) = hosts() else { return };
        let (left, right) = (hosts.context("talker"), hosts.context("listener"));
        let (forth, back) = (parameters(1, 2_500), parameters(2, 2_500));
        for context in [&left, &right] {
            declare(context, "forth", forth);
            declare(context, "back", back);
        }
        let mut side = |host: &'static str, context: &Context, to: &str, from: &str| {
            let reader = hosts.inside(host, || context.open_listener(from, SIZE)).expect("read");
            let writer = hosts.inside(host, || context.open_talker(to, SIZE)).expect("write");
            (writer, reader)
        };
        let first = side("talker", &left, "forth", "back");
        let late = (side("listener", &right, "back", "forth"), head_start_ms);
        let done = AtomicU32::new(0);
        let meet =
            |((mut writer, mut reader), pause): ((context::Talker, context::Listener), u64)| {
                std::thread::sleep(std::time::Duration::from_millis(pause));
                for round in 0..100u64 {
                    let mut other = [0; 8];
                    rendezvous(&mut writer, &round.to_le_bytes(), &mut reader, &mut other)
                        .expect("a meeting");
                    assert_eq!(u64::from_le_bytes(other), round, "head start {head_start_ms} ms");
                }
                done.fetch_add(1, Ordering::AcqRel);
                // To whom the last message came late needs the other one's word once more.
                while done.load(Ordering::Acquire) < 2 {
                    let soon = writer.io_mut().now().expect("the time").local + Span::from_ms(20);
                    writer.io_mut().limit(soon);
                    reader.io_mut().limit(soon);
                    let over = rendezvous(&mut writer, &[0xff; 8], &mut reader, &mut [0; 8]);
                    assert!(matches!(over, Ok(_) | Err(ChannelError::TimedOut)), "{over:?}");
                }
            };
        std::thread::scope(|scope| {
            scope.spawn(move || meet((first, 0)));
            scope.spawn(move || meet(late));
        });
    }
}

/// Where a message of the channel must not be as it is, and what that is counted as.
const MALFORMED: [(usize, usize); 3] = [(18, 0), (19, 0), (39, 2)];

#[test]
fn every_malformed_frame_is_counted_though_nothing_else_comes() {
    for transport in [TransportKind::Packet, TransportKind::Xdp] {
        let Some(mut hosts) = hosts() else { return };
        let channel = parameters(1, 1_000);
        let settings = InterfaceSettings { transport, ..InterfaceSettings::default() };
        let listener = hosts.context_with("listener", settings);
        declare(&listener, "c", channel);
        let reader = hosts.inside("listener", || listener.open_listener("c", SIZE));
        let mut reader = match reader {
            Err(_) if transport == TransportKind::Xdp => continue,
            reader => reader.expect("read"),
        };
        let mut sender = hosts.inside("talker", || {
            let interface = Interface::named("eth0").expect("the interface");
            PacketSocket::talker(&interface, &channel, &InterfaceOptions::default())
                .expect("a socket")
        });
        let mut good = Talker::new(ChannelParameters { source: MacAddress([2; 6]), ..channel });
        good.write(SyncedTime::ZERO, &[7; 8], false).expect("the first");
        let mut wanted = [0; 10];
        for k in 0..45 {
            // AF_XDP leaves frames of another subtype to the kernel.
            let from = usize::from(transport == TransportKind::Xdp);
            let (at, reason) = MALFORMED[from + k % (MALFORMED.len() - from)];
            let mut frame = good.frame().to_vec();
            frame[at] ^= 0x10;
            sender.send(&frame, None).expect("sent");
            wanted[reason] += 1;
        }
        // A reader that waits counts them within a tenth of a second.
        let now = listener.now().expect("the time").local;
        let patience = Timeout::Until(now + Span::from_ms(400));
        assert_eq!(reader.read(&mut [0; 8], patience), Ok(None));
        let counters = reader.log().shared().counters();
        assert_eq!((counters.rejected, counters.received), (wanted, 0), "{transport:?}");
    }
}

#[test]
fn of_the_copies_of_a_replicated_message_one_is_read_on_every_transport() {
    let transports =
        [TransportKind::Packet, TransportKind::Xdp, TransportKind::Udp4, TransportKind::Udp6];
    for transport in transports {
        let Some(mut hosts) = hosts() else { return };
        let channel = ChannelParameters { replicated: true, ..parameters(1, 1_000) };
        let settings = InterfaceSettings { transport, ..InterfaceSettings::default() };
        let listener = hosts.context_with("listener", settings.clone());
        declare(&listener, "c", channel);
        let reader = hosts.inside("listener", || listener.open_listener("c", SIZE));
        let mut reader = match reader {
            Err(_) if transport == TransportKind::Xdp => continue,
            reader => reader.expect("read"),
        };
        let mut value = [0; 8];
        let mut read = |k: u64| {
            let info = reader.read(&mut value, Timeout::Endless).expect("no fault");
            assert_eq!((u64::from_le_bytes(value), info.expect("a message").gap), (k, 0));
        };
        if matches!(transport, TransportKind::Udp4 | TransportKind::Udp6) {
            // Datagrams have no tag: no bridge is to copy them.
            let talker = hosts.context_with("talker", settings);
            declare(&talker, "c", channel);
            let mut writer =
                hosts.inside("talker", || talker.open_talker("c", SIZE)).expect("write");
            for k in 0..20u64 {
                writer.write(&k.to_le_bytes()).expect("written");
                read(k);
            }
            continue;
        }
        let mut sender = hosts.inside("talker", || {
            let interface = Interface::named("eth0").expect("the interface");
            PacketSocket::talker(&interface, &channel, &InterfaceOptions::default())
                .expect("a socket")
        });
        let source = MacAddress([2, 0, 0, 0, 0, 9]);
        let mut talker = Talker::new(ChannelParameters { source, ..channel });
        let mut late: Option<Vec<u8>> = None;
        for k in 0..20u64 {
            let now = listener.now().expect("the time").local;
            talker.write(now, &k.to_le_bytes(), false).expect("within the rate");
            assert_eq!(talker.frame()[16..22], [0xf1, 0xc1, 0, 0, 0, k as u8], "the tag");
            sender.send(talker.frame(), None).expect("sent");
            read(k);
            // A copy at once, and one after the next message.
            sender.send(talker.frame(), None).expect("sent");
            if let Some(late) = late.replace(talker.frame().to_vec()) {
                sender.send(&late, None).expect("sent");
            }
            // The edge of the network may have taken the tag off; only AF_XDP takes that.
            let bare = [&talker.frame()[..16], &talker.frame()[22..]].concat();
            sender.send(&bare, None).expect("sent");
        }
        let now = listener.now().expect("the time").local;
        let patience = Timeout::Until(now + Span::from_ms(400));
        assert_eq!(reader.read(&mut [0; 8], patience), Ok(None));
        let counters = reader.log().shared().counters();
        let copies = if transport == TransportKind::Xdp { 59 } else { 39 };
        assert_eq!((counters.received, counters.duplicate, counters.lost), (20, copies, 0));
        assert_eq!(counters.rejected, [0; 10], "{transport:?}");
    }
}

#[test]
fn frames_of_a_scheduled_channel_leave_at_its_launch_times_one_at_each() {
    for transport in [TransportKind::Packet, TransportKind::Xdp, TransportKind::Udp4] {
        let Some(mut hosts) = hosts() else { return };
        let launch = LaunchTimes { at: Span::from_us(700), lead: Span::from_us(200) };
        let interval = Span::from_ms(5);
        let channel = ChannelParameters { launch: Some(launch), ..parameters(1, 5_000) };
        let options = InterfaceOptions { timestamps: true, ..InterfaceOptions::default() };
        // The launch times are those of the network's time, not of the programs'.
        let epoch = 1_234_567;
        let settings = InterfaceSettings { transport, options, epoch, ..Default::default() };
        let listener = hosts.context_with("listener", settings.clone());
        let talker = hosts.context_with("talker", settings);
        for context in [&talker, &listener] {
            declare(context, "c", channel);
        }
        let reader = hosts.inside("listener", || listener.open_listener("c", SIZE));
        let (mut writer, mut reader) = match reader {
            Err(_) if transport == TransportKind::Xdp => continue,
            reader => {
                let writer = hosts.inside("talker", || talker.open_talker("c", SIZE));
                (writer.expect("write"), reader.expect("read"))
            }
        };
        let mut launches = Vec::new();
        for k in 0..12u64 {
            let before = talker.now().expect("the time").local;
            let capture = match k % 3 {
                0 => writer.write(&k.to_le_bytes()).expect("written"),
                1 => match writer.try_write(&k.to_le_bytes()).expect("written") {
                    Written::Sent { capture } => capture,
                    other => panic!("{other:?}"),
                },
                _ => writer.write_at(&k.to_le_bytes(), before + Span::from_ms(7)).expect("written"),
            };
            let last = launches.last().copied();
            let at = launch.next(interval, epoch + capture.as_ns(), last);
            launches.push(at);
            // Nothing here holds frames: the writer did.
            let after = talker.now().expect("the time").local;
            assert!(epoch + after.as_ns() >= at, "{transport:?}: it returned before {at}");
            assert_eq!((at - launch.at.as_ns()).rem_euclid(interval.as_ns()), 0);
            let mut value = [0; 8];
            let info = reader.read(&mut value, Timeout::Endless).expect("no fault");
            let info = info.expect("a message");
            assert_eq!((u64::from_le_bytes(value), info.capture), (k, capture));
            assert!(epoch + info.arrived.as_ns() >= at, "{transport:?}: it came before {at}");
        }
    }
}

#[test]
fn a_socket_holds_more_than_the_queue_of_an_emulated_engine_whatever_the_size() {
    let Some(mut hosts) = hosts() else { return };
    let size = Octets::new(1_476);
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    for context in [&talker, &listener] {
        declare(context, "c", ChannelParameters { size, ..parameters(1, 1_000) });
    }
    let mut reader = hosts.inside("listener", || listener.open_listener("c", size)).expect("read");
    let mut writer = hosts.inside("talker", || talker.open_talker("c", size)).expect("write");
    let mut value = [0; 1_476];
    for k in 0..CAPACITY as u64 {
        value[..8].copy_from_slice(&k.to_le_bytes());
        writer.write(&value).expect("written");
        // The queue between two interfaces holds a thousand.
        if k % 256 == 255 {
            onbeat::clock::pause(Span::from_ms(20));
        }
    }
    for k in 0..CAPACITY as u64 {
        let info = reader.read(&mut value, Timeout::Endless).expect("no fault");
        let info = info.expect("a message");
        assert_eq!((&value[..8], info.gap), (&k.to_le_bytes()[..], 0));
    }
}

#[test]
fn a_talker_that_was_closed_may_be_opened_again() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("talker");
    declare(&context, "c", parameters(1, 1_000));
    for _ in 0..3 {
        let talker = hosts.inside("talker", || context.open_talker("c", SIZE));
        drop(talker.expect("it is free"));
    }
}

#[test]
fn numbers_that_arithmetic_could_not_bear_are_refused() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("talker");
    let Context::Interface(link) = &context else { panic!("not on an interface") };
    let good = parameters(1, 1_000);
    let most = Span::MAX;
    for bad in [
        ChannelParameters { interval: most, ..good },
        ChannelParameters { tolerance: most, ..good },
        ChannelParameters { fixed_delay: most, ..good },
        ChannelParameters { fixed_delay: Span::from_ns(-1), ..good },
        ChannelParameters { vlan: 4_095, ..good },
        ChannelParameters { pcp: 8, ..good },
    ] {
        assert!(link.declare("c", bad).is_err(), "{bad:?}");
    }
    assert!(link.declare("", good).is_err());
    assert!(link.declare(&"x".repeat(32), good).is_err());
    link.declare("c", good).expect("the good one");
    let mut writer = hosts.inside("talker", || context.open_talker("c", SIZE)).expect("write");
    context.stop();
    // The furthest instant is no reason to panic.
    let far = writer.write_at(&[0; 8], SyncedTime::from_ns(i64::MAX));
    assert_eq!(far, Err(ChannelError::Stopped));
}

#[test]
fn what_is_declared_wrong_or_opened_wrong_is_refused_with_the_reason() {
    let Some(mut hosts) = hosts() else { return };
    let context = hosts.context("talker");
    declare(&context, "c", parameters(1, 1_000));
    let refused = |result: Result<(), _>, why: &str| {
        let error: onbeat::coordinator::client::SetupError = result.expect_err("refused");
        assert!(error.to_string().contains(why), "{error}");
    };
    let Context::Interface(link) = &context else { panic!("not on an interface") };
    refused(link.declare("c", parameters(2, 1_000)), "has this name");
    refused(link.declare("d", parameters(1, 1_000)), "same stream id");
    refused(link.declare("d", parameters(0, 1_000)), "identifier 0");
    refused(link.declare("d", parameters(3, 0)), "interval");
    let mut bad = parameters(3, 1_000);
    bad.destination.0 = [0; 6];
    refused(link.declare("d", bad), "00:00:00:00:00:00");
    bad = parameters(3, 1_000);
    bad.size = Octets::new(65_537);
    refused(link.declare("d", bad), "65537");
    refused(context.open_talker("e", SIZE).map(|_| ()), "there is no channel `e`");
    refused(context.open_talker("c", Octets::new(9)).map(|_| ()), "8 octets, not of 9");
    let _first = hosts.inside("talker", || context.open_talker("c", SIZE)).expect("opened");
    refused(context.open_talker("c", SIZE).map(|_| ()), "writes to channel `c` already");
}

#[test]
fn the_newest_of_a_backlog_is_read_at_once_and_its_age_told() {
    let Some(mut hosts) = hosts() else { return };
    let channel = parameters(1, 1_000);
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    let (mut writer, mut reader) = open(&mut hosts, &talker, &listener, channel);
    let mut value = [0; 8];
    assert_eq!(reader.read_latest(&mut value), Ok(None));
    for k in 0..500u64 {
        writer.write(&k.to_le_bytes()).expect("written");
    }
    let found = listener.select(&[&reader], Timeout::Endless).expect("no fault");
    assert_eq!(found, Some(0));
    // The last one may still be in flight when the first is there.
    while u64::from_le_bytes(value) < 499 {
        let info = reader.read_latest(&mut value).expect("no fault").expect("a message");
        assert!(info.age >= info.latency, "{info:?}");
    }
    let again = reader.read_latest(&mut value).expect("no fault").expect("the same");
    assert_eq!((again.flags & flag::REPEATED, again.sequence & 0xff), (flag::REPEATED, 499 & 0xff));
    let counters = reader.log().shared().counters();
    assert_eq!((counters.received, counters.lost), (500, 0));
}

#[test]
fn a_thousand_channels_in_one_process_and_those_unread_hold_up_no_other() {
    const CHANNELS: u64 = 1_000;
    let Some(mut hosts) = hosts() else { return };
    let talker = hosts.context("talker");
    // What waits for long needs the kernel's stamp to be told when it was captured.
    let options = InterfaceOptions { timestamps: true, ..InterfaceOptions::default() };
    let settings = InterfaceSettings { options, ..InterfaceSettings::default() };
    let listener = hosts.context_with("listener", settings);
    let resident = resident_octets();
    let open_all = |hosts: &mut Hosts| {
        let mut ends = Vec::new();
        for k in 1..=CHANNELS {
            let name = format!("c{k}");
            declare(&listener, &name, parameters(k, 1_000));
            declare(&talker, &name, parameters(k, 1_000));
            let end = hosts.inside("listener", || listener.open_listener(&name, SIZE));
            ends.push(end.expect("read"));
        }
        ends
    };
    let mut readers = open_all(&mut hosts);
    let per_channel = (resident_octets() - resident) / CHANNELS;
    assert!(per_channel <= 64 << 10, "{per_channel} octets a channel");
    let mut writers: Vec<_> = (1..=CHANNELS)
        .map(|k| hosts.inside("talker", || talker.open_talker(&format!("c{k}"), SIZE)))
        .collect::<Result<_, _>>()
        .expect("write");
    // Nobody reads any channel but the last, which has all of its own. It is read after every
    // hundred messages, since the kernel's queue between two interfaces holds a thousand.
    let last = CHANNELS as usize - 1;
    let (mut written, mut value) = (0u64, [0; 8]);
    for round in 0..50u64 {
        for some in 0..10 {
            for writer in &mut writers[some * 100..(some * 100 + 100).min(last)] {
                writer.write(&round.to_le_bytes()).expect("written");
            }
            writers[last].write(&written.to_le_bytes()).expect("written");
            readers[last].read(&mut value, Timeout::Endless).expect("no fault").expect("read");
            assert_eq!(u64::from_le_bytes(value), written);
            written += 1;
        }
    }
    // And one that was not read has kept what was written, in order.
    for round in 0..50u64 {
        readers[0].read(&mut value, Timeout::Endless).expect("no fault").expect("a message");
        assert_eq!(u64::from_le_bytes(value), round);
    }
    let all: Vec<_> = readers.iter().skip(1).take(200).collect();
    assert_eq!(listener.select(&all, Timeout::None), Ok(Some(0)));
    // The kernel takes a while for each socket of this kind that is closed, but not one after the
    // other if it need not.
    std::thread::scope(|scope| {
        while !readers.is_empty() {
            let some = readers.split_off(readers.len() - readers.len().min(16));
            let others = writers.split_off(writers.len() - writers.len().min(16));
            scope.spawn(move || drop((some, others)));
        }
    });
}

/// What this process has of the machine's memory.
fn resident_octets() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

#[test]
fn a_million_hostile_frames_beside_a_live_channel_cost_it_no_message() {
    let Some(mut hosts) = hosts() else { return };
    let channel = parameters(1, 1_000);
    let (talker, listener) = (hosts.context("talker"), hosts.context("listener"));
    let (mut writer, mut reader) = open(&mut hosts, &talker, &listener, channel);
    let mut hostile = hosts.inside("talker", || {
        let interface = Interface::named("eth0").expect("the interface");
        PacketSocket::talker(&interface, &channel, &InterfaceOptions::default()).expect("a socket")
    });
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let reading = std::thread::spawn(move || {
        let mut expected = 0u64;
        loop {
            let mut value = [0; 8];
            let now = listener.now().expect("the time").local;
            let patience = Timeout::Until(now + Span::from_ms(20));
            match reader.read(&mut value, patience).expect("no fault") {
                Some(info) => {
                    assert_eq!((u64::from_le_bytes(value), info.gap), (expected, 0), "{info:?}");
                    expected += 1;
                }
                None if stopped.load(Ordering::Acquire) => break,
                None => {}
            }
        }
        (expected, reader.log().shared().counters())
    });
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut good = Talker::new(ChannelParameters { source: MacAddress([2; 6]), ..channel });
    good.write(SyncedTime::ZERO, &[7; 8], false).expect("the first");
    let mut sent = 0u64;
    for k in 0..1_000_000u64 {
        if k % 500 == 0 {
            writer.write(&sent.to_le_bytes()).expect("written");
            sent += 1;
        }
        let mut frame = [0; MIN_FRAME];
        frame.copy_from_slice(good.frame());
        let length = random.spoil(&mut frame);
        // A frame that the interface itself refuses is no attack.
        let _ = hostile.send(&frame[..length], None);
    }
    stop.store(true, Ordering::Release);
    let (received, counters) = reading.join().expect("the reader");
    assert_eq!((received, counters.lost), (sent, 0), "{counters:?}");
    assert!(counters.rejected.iter().sum::<u64>() > 0, "some are counted: {counters:?}");
}

/// A small generator of numbers, for frames that no program should send.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Makes a message something else; returns how much of the frame is sent.
    fn spoil(&mut self, frame: &mut [u8; MIN_FRAME]) -> usize {
        match self.next() % 5 {
            0 => frame[18] = 2,                                          // another subtype
            1 => frame[19] ^= 0x10,                                      // another version
            2 => frame[38..40].copy_from_slice(&1_000u16.to_be_bytes()), // longer than it is
            3 => frame[29] ^= 1 + (self.next() % 255) as u8,             // another stream
            _ => {
                for octet in &mut frame[12..] {
                    *octet = self.next() as u8;
                }
                return 18 + (self.next() % 46) as usize; // anything, cut anywhere
            }
        }
        MIN_FRAME
    }
}
