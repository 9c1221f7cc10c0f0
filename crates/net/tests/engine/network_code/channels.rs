//! Channels that stations carry: what programs write and read, against what the stations' logs say
//! of their instructions and what is known of frames.

use super::{drift, network, program, settings};
use crate::network::Network;
use onbeat_model::integrity::Integrity;
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_net::network_code::{
    ChannelEnd, NetworkCode, NoApplication, StationChannel, StationLog, StationSetup,
};
use onbeat_net::{Engine, Output};
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::Frame;

/// The words of a message: 24 octets of header and 8 of its own.
const WORDS: i64 = 8;

fn talks(round_us: u64) -> String {
    format!(
        "station n0\nmedium 1 Gbit/s tagged\noutput c[8]\nmessage m = 1[8]\n\
         begin:\n future begin, {round_us} us\n sync master\n create c\n send m\n halt\n"
    )
}

fn listens(host: usize) -> String {
    format!(
        "station n{host}\nmedium 1 Gbit/s tagged\ninput c[8]\nmessage m = 1[8]\n\
         begin:\n sync slave, 5 ms\n future take, 50 us\n halt\ntake:\n receive m, c\n goto begin\n"
    )
}

fn parameters() -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([1, 0, 0x5e, 0, 0, 0]),
        source: MacAddress([2, 0, 0, 0, 0, 0]),
        stream_id: StreamId(7),
        vlan: 2,
        pcp: 3,
        replicated: false,
        size: Octets::new(8),
        integrity: Integrity::None,
        talker_address: None,
        interval: Span::from_us(1),
        launch: None,
        tolerance: Span::ZERO,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

/// The talker `n0`, and listeners `n1`, `n2`.
fn stations(round_us: u64) -> Vec<StationSetup> {
    let carries = |text: String, end| {
        let channel = StationChannel {
            channel: ChannelId(0),
            end,
            buffer: BufferId(0),
            parameters: parameters(),
        };
        let setup = StationSetup::new(program(&text), NoApplication);
        StationSetup { channels: vec![channel], ..setup }
    };
    vec![
        carries(talks(round_us), ChannelEnd::Talker),
        carries(listens(1), ChannelEnd::Listener(0)),
        carries(listens(2), ChannelEnd::Listener(1)),
    ]
}

/// A message that was delivered: to whom, which one, when its frame had arrived, and when it was
/// there.
type Delivery = (usize, u16, NetTime, NetTime);

struct Carried {
    delivered: Vec<Delivery>,
    unsent: u64,
    observed: onbeat_model::observed::Observed,
    logs: Vec<(usize, StationLog)>,
}

/// Programs on `n0` write at these instants.
fn carry(network: &mut Network, round_us: u64, writes: &[i64], until: Span) -> Carried {
    network.channel(NodeId(0), &[NodeId(1), NodeId(2)], None);
    let mut engine: Engine = network.engine(1, 0);
    let settings = settings(1, until);
    let joined = NetworkCode::join(
        &mut engine,
        &network.system,
        &network.plan,
        stations(round_us),
        &settings,
    );
    let joined = joined.unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut talker = Talker::new(parameters());
    let mut delivered = Vec::new();
    let mut advance = |engine: &mut Engine, to: NetTime| {
        while let Some(output) = engine.advance(to) {
            let Output::Delivered { listener, arrived, .. } = output else { continue };
            let frame = Frame::parse(engine.delivered_frame()).expect("a frame");
            delivered.push((listener, frame.header.number, arrived, engine.now()));
        }
    };
    for at in writes {
        advance(&mut engine, NetTime::from_ns(*at));
        talker.write(SyncedTime::from_ns(*at), &at.to_be_bytes(), false).expect("in time");
        assert_eq!(engine.send(ChannelId(0), talker.frame()), engine.now());
    }
    advance(&mut engine, NetTime::ZERO + until);
    joined.run(&mut engine, &mut |_| true).expect("room");
    let unsent = joined.observed(&engine).stations[0].unsent;
    Carried { delivered, unsent, observed: engine.observed(), logs: joined.take_logs() }
}

/// The cycles in which a station has issued the instruction on this line of its text.
fn issued(logs: &[(usize, StationLog)], station: usize, address: usize) -> Vec<i64> {
    let (_, log) = logs.iter().find(|(of, _)| *of == station).expect("a log");
    let of =
        |entry: &&onbeat_runtime::network_code::trace::TraceEntry| entry.address.index() == address;
    log.trace.iter().filter(of).map(|entry| entry.issued.0 as i64 * 8).collect()
}

#[test]
fn a_message_waits_for_create_and_is_there_when_receive_is_done() {
    let mut network = network(3, 1, 1_000);
    let writes = [100_000, 2_400_000, 2_500_000, 7_100_000];
    let seen = carry(&mut network, 1_000, &writes, Span::from_ms(10));
    assert_eq!(seen.unsent, 0);
    // By hand: without clock errors, cycles are 8 ns of true time from 0 on. `create` is the third
    // instruction of the talker, `receive` the fourth of a listener.
    let creates = issued(&seen.logs, 0, 2);
    for listener in [0, 1] {
        let receives = issued(&seen.logs, 1 + listener, 3);
        let got: Vec<_> = seen.delivered.iter().filter(|d| d.0 == listener).collect();
        // The third message waits until the second one was copied, a round later.
        let after = [writes[0], writes[1], creates[3] + 1, writes[3]];
        assert_eq!(got.iter().map(|d| d.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
        for (delivery, from) in got.iter().zip(after) {
            let created = *creates.iter().find(|at| **at >= from).expect("a slot");
            // A tagged frame has 68 octets at least, 8 of preamble before it, 12 of gap behind it.
            // The one that begins the round leaves 6 cycles after its issue, and lets `create`
            // be issued a cycle after its 26th octet. The message follows its gap.
            let begins = created - (6 + 26 + 1) * 8 + (6 + 8 + 68 + 12) * 8;
            let arrived = begins + 2 * (8 + 68) * 8 + 2 * 50 + 1_000;
            let received = *receives.iter().find(|at| **at >= arrived).expect("a receive");
            assert_eq!(delivery.2.as_ns(), arrived, "{delivery:?}");
            assert_eq!(delivery.3.as_ns(), received + (2 + WORDS) * 8, "{delivery:?}");
        }
    }
    let [flow] = &seen.observed.channels[..] else { panic!("one channel") };
    assert_eq!(flow.released, 4);
    let latencies: Vec<_> = seen.delivered.iter().map(|d| (d.0, d.1, d.3)).collect();
    for (listener, books) in flow.listeners.iter().enumerate() {
        let own = latencies.iter().filter(|d| d.0 == listener);
        let own = own.map(|d| d.2.as_ns() - writes[usize::from(d.1)]);
        assert_eq!(books.frames, 4);
        assert_eq!(books.max.map(Span::as_ns), own.max());
    }
}

#[test]
fn each_message_comes_once_though_slots_come_more_often_or_clocks_differ() {
    for (ppm, round_us) in [(0, 250), (-100, 999), (100, 999)] {
        let mut network = network(3, 2, 1_000);
        drift(&mut network, 0, ppm);
        drift(&mut network, 2, -ppm);
        // Every millisecond, some early by up to an eighth of that.
        let early = |n: i64| n * 7_919 % 125_000;
        let writes: Vec<_> = (1..3_000).map(|n| n * 1_000_000 - early(n)).collect();
        let seen = carry(&mut network, round_us, &writes, Span::from_ms(3_020));
        assert_eq!(seen.unsent, 0, "{ppm} ppm");
        for listener in [0, 1] {
            let got = seen.delivered.iter().filter(|d| d.0 == listener).map(|d| usize::from(d.1));
            assert!(got.eq(0..writes.len()), "{ppm} ppm");
        }
    }
}

#[test]
fn what_is_written_faster_than_slots_come_is_counted() {
    let mut network = network(3, 1, 1_000);
    let writes: Vec<_> = (1..1_000).map(|n| n * 300_000).collect();
    let seen = carry(&mut network, 1_000, &writes, Span::from_ms(310));
    for listener in [0, 1] {
        let got: Vec<_> = seen.delivered.iter().filter(|d| d.0 == listener).map(|d| d.1).collect();
        assert!(got.is_sorted_by(|a, b| a < b), "in order, each once");
        assert_eq!(got.len() as u64 + seen.unsent, writes.len() as u64);
        assert_eq!(got.last().map(|n| usize::from(*n)), Some(writes.len() - 1), "the newest");
    }
}
