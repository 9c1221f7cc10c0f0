//! Several messages in one call, over the kernel's network stack: they are what they are alone.

mod common;

use common::{Hosts, declare, hosts, parameters};
use onbeat::context::{Context, Talker};
use onbeat::interface::{
    Interface, InterfaceOptions, InterfaceSettings, PacketSocket, TransportKind,
};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_run::netns::INTERFACE;
use onbeat_runtime::batch::WrittenMany;
use onbeat_runtime::channel::Written;
use onbeat_runtime::channel_io::{ChannelError, Timeout};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{self, Pdu};

const SIZE: Octets = Octets::new(8);

/// The messages of these numbers, one after the other.
fn values(numbers: std::ops::Range<u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// Programs on the two hosts, with a channel.
fn programs(
    hosts: &mut Hosts,
    transport: TransportKind,
    channel: ChannelParameters,
) -> [Context; 2] {
    ["talker", "listener"].map(|host| {
        let settings = InterfaceSettings { transport, ..InterfaceSettings::default() };
        let context = hosts.context_with(host, settings);
        declare(&context, "c", channel);
        context
    })
}

fn talker(hosts: &mut Hosts, context: &Context) -> Talker {
    hosts.inside("talker", || context.open_talker("c", SIZE)).expect("a talker")
}

#[test]
fn messages_in_one_call_come_as_those_in_many_calls_do() {
    for transport in [TransportKind::Packet, TransportKind::Udp4, TransportKind::Udp6] {
        let Some(mut hosts) = hosts() else { return };
        let [left, right] = programs(&mut hosts, transport, parameters(1, 1_000));
        let mut reader = hosts.inside("listener", || right.open_listener("c", SIZE)).expect("read");
        let mut writer = talker(&mut hosts, &left);
        let mut captures = Vec::new();
        for first in [0, 50, 100] {
            for k in first..first + 10u64 {
                captures.push(writer.write(&k.to_le_bytes()).expect("written"));
            }
            let many = values(first + 10..first + 50);
            let written = writer.write_many(&many, |at, capture| {
                assert_eq!(captures.len() as u64, first + 10 + at as u64);
                captures.push(capture);
            });
            let capture = *captures.last().expect("the last one");
            assert_eq!(written, WrittenMany { count: 40, outcome: Ok(Written::Sent { capture }) });
        }
        for (k, capture) in captures.iter().enumerate() {
            let mut value = [0; 8];
            let info = reader.read(&mut value, Timeout::Endless).expect("no fault").expect("one");
            assert_eq!((u64::from_le_bytes(value), info.gap), (k as u64, 0));
            assert_eq!((info.sequence, info.capture), (k as u64, *capture), "{transport:?}");
        }
        assert!(captures.is_sorted_by(|one, next| one < next));
        let counters = reader.log().shared().counters();
        assert_eq!((counters.received, counters.lost, counters.duplicate), (150, 0, 0));
        assert_eq!((counters.rejected_in_all(), writer.log().shared().counters().sent), (0, 150));
    }
}

/// What a frame says beside its number, its times and its message; and its length.
fn constant(frame: &[u8]) -> (Vec<u8>, usize, usize) {
    let (_, unit) = wire::unwrap(frame).expect("a frame of a channel");
    let pdu = Pdu::parse(unit).expect("its data unit");
    let mut headers = frame[..frame.len() - unit.len()].to_vec();
    headers.extend_from_slice(&unit[4..12]);
    headers.extend([unit[0], unit[1], unit[3], pdu.instance]);
    (headers, frame.len(), pdu.payload.len())
}

#[test]
fn their_frames_have_the_same_octets_around_the_messages() {
    for untagged in [false, true] {
        let Some(mut hosts) = hosts() else { return };
        let channel = parameters(1, 1_000);
        let options = InterfaceOptions { untagged, ..InterfaceOptions::default() };
        let settings = InterfaceSettings { options, ..InterfaceSettings::default() };
        let left = hosts.context_with("talker", settings);
        declare(&left, "c", channel);
        let mut writer = talker(&mut hosts, &left);
        let mut wire = hosts
            .inside("listener", || {
                PacketSocket::listener(&Interface::named(INTERFACE)?, &channel, &options)
            })
            .expect("a socket");
        writer.write(&[7; 8]).expect("written");
        assert_eq!(writer.write_many(&values(0..20), |_, _| {}).count, 20);
        writer.write(&[7; 8]).expect("written");
        let mut frames = Vec::new();
        while frames.len() < 22 {
            let mut room = [0; 1_600];
            if let Some(arrival) = wire.receive(&mut room).expect("a frame") {
                frames.push(room[..arrival.length].to_vec());
            }
        }
        for frame in &frames {
            assert_eq!(constant(frame), constant(&frames[0]));
        }
    }
}

#[test]
fn the_rate_holds_the_first_message_that_it_would_hold_alone() {
    let Some(mut hosts) = hosts() else { return };
    // Five at once, and then one each hour.
    let interval = Span::from_s(3_600);
    let tolerance = interval * 4;
    let channel = ChannelParameters { interval, tolerance, ..parameters(1, 1_000) };
    let [left, _] = programs(&mut hosts, TransportKind::Packet, channel);
    let mut writer = talker(&mut hosts, &left);
    let mut first = None;
    let written = writer.try_write_many(&values(0..9), |_, at| {
        first.get_or_insert(at);
    });
    let until = first.expect("a message") + interval;
    let outcome = Ok(Written::RateExceeded { until });
    assert_eq!(written, WrittenMany { count: 5, outcome });
    let counters = writer.log().shared().counters();
    assert_eq!((counters.sent, counters.rate_exceeded), (5, 1));
    // One that would wait beyond its limit.
    writer.io_mut().limit(until - Span::from_s(3_599));
    let written = writer.write_many(&values(0..2), |_, _| {});
    assert_eq!(written, WrittenMany { count: 0, outcome: Err(ChannelError::TimedOut) });
}

#[test]
fn what_a_full_queue_does_not_take_is_not_written_and_the_next_number_is_known() {
    let Some(mut hosts) = hosts() else { return };
    let [left, right] = programs(&mut hosts, TransportKind::Packet, parameters(1, 1_000));
    let mut reader = hosts.inside("listener", || right.open_listener("c", SIZE)).expect("read");
    let mut writer = talker(&mut hosts, &left);
    let mut tc = |arguments: &str| {
        let command = format!("tc qdisc {arguments}");
        hosts.inside("talker", || onbeat_testkit::run(&command)).expect("tc of iproute2");
    };
    tc(&format!("add dev {INTERFACE} root tbf rate 8bit burst 100 limit 300"));
    let written = writer.write_many(&values(0..16), |_, _| {});
    assert_eq!(written.outcome, Err(ChannelError::QueueFull));
    assert!((1..16).contains(&written.count), "{written:?}");
    let count = written.count as u64;
    assert_eq!(writer.log().shared().counters().sent, count);
    // As one alone: the message that got lost has a number, those behind it have none.
    assert_eq!(writer.write(&[0; 8]), Err(ChannelError::QueueFull));
    tc(&format!("del dev {INTERFACE} root"));
    assert_eq!(writer.write_many(&values(50..70), |_, _| {}).count, 20);
    let mut last = None;
    for _ in 0..100 {
        let mut value = [0; 8];
        let info = reader.read(&mut value, Timeout::Endless).expect("no fault").expect("one");
        let value = u64::from_le_bytes(value);
        assert_eq!(info.sequence, if value < 50 { value } else { count + 2 + (value - 50) });
        last = Some(value);
        if value == 69 {
            break;
        }
    }
    assert_eq!(last, Some(69));
}

#[test]
fn an_interface_that_is_down_takes_none_and_no_number_is_used() {
    for transport in [TransportKind::Packet, TransportKind::Udp4] {
        let Some(mut hosts) = hosts() else { return };
        let [left, right] = programs(&mut hosts, transport, parameters(1, 1_000));
        let mut reader = hosts.inside("listener", || right.open_listener("c", SIZE)).expect("read");
        let mut writer = talker(&mut hosts, &left);
        assert_eq!(writer.write_many(&values(0..5), |_, _| {}).count, 5);
        let mut ip = |state: &str| {
            let command = format!("ip link set {INTERFACE} {state}");
            hosts.inside("talker", || onbeat_testkit::run(&command)).expect("ip of iproute2");
        };
        ip("down");
        let written = writer.write_many(&values(5..25), |_, _| {});
        assert_eq!(written, WrittenMany { count: 0, outcome: Err(ChannelError::LinkDown) });
        ip("up");
        // What is written at first may get lost behind the interface; whatever comes has the
        // number that it would have without those that were not written.
        let (mut next, mut came) = (5, 0);
        while came <= 5 {
            let more = values(next..next + 3);
            next += writer.write_many(&more, |_, _| {}).count as u64;
            let soon = right.now().expect("the time").local + Span::from_ms(20);
            let mut value = [0; 8];
            while let Some(info) = reader.read(&mut value, Timeout::Until(soon)).expect("no fault")
            {
                came = u64::from_le_bytes(value);
                assert_eq!(info.sequence, came, "{transport:?}");
            }
        }
    }
}
