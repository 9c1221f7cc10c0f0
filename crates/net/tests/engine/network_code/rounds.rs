//! Rounds of a master and its slaves.

use super::{
    Idle, addresses, drift, generated, listener, master, network, program, run, settings, setup,
    slave, team,
};
use onbeat_model::system::NodeId;
use onbeat_model::time::{NetTime, Span};
use onbeat_net::network_code::{
    NetworkCodeSettings, SpanExtremes, StationContent, StationInput, generated_words,
};
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};
use onbeat_runtime::network_code::timing::Cycles;
use std::collections::BTreeMap;

fn exactly(ns: i64) -> Option<SpanExtremes> {
    Some(SpanExtremes { min: Span::from_ns(ns), max: Span::from_ns(ns) })
}

/// From the first octet of the preamble to the last octet at the receiver, over one bridge at 1
/// Gbit/s: twice 72 octets and a link of 50 ns, and 1 µs in the bridge.
const OVER_ONE: i64 = 2 * (72 * 8 + 50) + 1_000;
/// One bridge more.
const HOP: i64 = 72 * 8 + 50 + 1_000;

#[test]
fn frames_leave_and_come_at_the_instants_of_the_definition() {
    let network = network(3, 1, 1_000);
    let seen = run(&network, generated(&network, &team(2), 1), settings(1, Span::from_us(150)));
    let master = &seen.logs[0].1;
    // `future` takes 2 cycles, and 6 pass before the preamble. EtherType: 22 octets and 1 cycle.
    // `create` 2 and `send` 6 more; but the round's frame has 72 octets and a gap of 12.
    assert_eq!(master.sent[0].at, Cycles(8));
    assert_eq!(master.sent[1].at, Cycles(8 + 84));
    let slave = &seen.logs[1].1;
    // 64 ns, and on the way all but the last octets of the second frame, of which there are 22.
    let ethertype = 64 + OVER_ONE - (72 - 22) * 8;
    let cycle = ethertype.div_euclid(8) as u64 + 1;
    let sync = slave.inputs.iter().find(|(_, input)| matches!(input, StationInput::Sync(..)));
    assert_eq!(sync.map(|(at, _)| *at), Some(Cycles(cycle)), "{ethertype} ns is within a cycle");
    // 1 cycle later the branch, 3 later the `future`, 20 µs later `receive` of 2 words, `create`,
    // `send`, which is 6 cycles before its frame.
    let create = cycle + 1 + 3 + 2_500 + 4;
    assert_eq!(slave.sent[0].at, Cycles(create + 2 + 6));
    // Its frame is at the master at once after that; the master takes it 180 µs after its `future`.
    let m1 = listener(&seen.observed, 1, 0);
    assert_eq!((m1.sent, m1.arrived, m1.received, m1.wire), (1, 1, 0, exactly(OVER_ONE)));
    // The slave takes the setpoint at its slot. 744 ns after the start: 8 + 22 + 1 + 2 … cycles.
    let created = (8 + 22 + 1) * 8;
    let taken = (create as i64 - 4) * 8;
    assert_eq!(listener(&seen.observed, 0, 1).latency, exactly(taken - created));
}

#[test]
fn over_one_bridge_or_two_each_message_comes_and_none_collides() {
    for (bridges, hops) in [(1, [0, 0, 0]), (2, [1, 0, 1])] {
        let network = network(4, bridges, 1_000);
        let stations = generated(&network, &team(3), 1);
        let limits = NetworkCodeSettings { rounds: Some(50), ..settings(1, Span::from_ms(50)) };
        let observed = run(&network, stations, limits).observed;
        assert_eq!(observed.duration, Span::from_us(50 * 200) + Span::from_ns(16));
        for (number, station) in observed.stations.iter().enumerate() {
            let counters = station.counters;
            let rounds = if number == 0 { counters.rounds_begun } else { counters.rounds_seen };
            assert_eq!((rounds, counters.data_sent, counters.sync_timeouts), (50, 50, 0));
            assert_eq!((counters.syncs_discarded, counters.overruns, counters.traps), (0, 0, 0));
        }
        for (slave, hop) in (1..).zip(hops) {
            let setpoint = listener(&observed, 0, slave);
            let value = listener(&observed, slave as u8, 0);
            let wire = exactly(OVER_ONE + hop * HOP);
            for row in [setpoint, value] {
                assert_eq!((row.sent, row.arrived, row.received), (50, 50, 50), "{row:?}");
                assert_eq!((row.overwritten, row.lost(), row.wire), (0, 0, wire));
            }
        }
        assert_eq!((observed.collisions(), observed.lost(), observed.overwritten()), (0, 0, 0));
        assert!(observed.ports.iter().all(|port| port.waits == 0), "{:?}", observed.ports);
    }
}

#[test]
fn what_is_received_is_what_was_written_last_before_the_create() {
    let network = network(3, 1, 1_000);
    let seed = 5;
    let seen = run(&network, generated(&network, &team(2), seed), settings(seed, Span::from_ms(2)));
    let slave = &seen.logs[2].1;
    let mut last = Vec::new();
    let mut writes = slave.inputs.iter().peekable();
    for (frame, entry) in slave.sent.iter().zip(
        // `create` is the sixth instruction.
        slave.trace.iter().filter(|entry| entry.address.index() == 5),
    ) {
        while let Some((_, input)) = writes.next_if(|(at, _)| *at <= entry.issued) {
            if let StationInput::Write(BufferId(0), words) = input {
                last = words.clone();
            }
        }
        assert_eq!(frame.content, StationContent::Data(MessageId(2), last.clone()));
        let expected: Vec<u32> =
            generated_words(seed, NodeId(2), BufferId(0), last[0], 3).collect();
        assert_eq!(last, expected);
    }
    assert_eq!(slave.sent.len(), 10);
    let counts: Vec<u32> = slave.sent.iter().map(first_word).collect();
    assert!(counts.is_sorted_by(|one, next| *next == one + 20), "each 200 µs: {counts:?}");
    let inputs = seen.logs[0].1.inputs.iter();
    let heard = inputs.filter_map(|(_, input)| match input {
        StationInput::Data(MessageId(2), words) => Some(words[0]),
        _ => None,
    });
    assert_eq!(heard.collect::<Vec<_>>(), counts);
}

fn first_word(frame: &onbeat_net::network_code::StationFrameSent) -> u32 {
    match &frame.content {
        StationContent::Data(_, words) => words[0],
        StationContent::Round(_) => panic!("a slave"),
    }
}

#[test]
fn equal_seeds_are_equal_runs_and_stations_start_within_their_limit() {
    let mut network = network(4, 2, 1_000);
    for (host, ppm) in [100, -100, 37, -3].into_iter().enumerate() {
        drift(&mut network, host, ppm);
    }
    let within = Span::from_us(700);
    let of = |seed| {
        let settings =
            NetworkCodeSettings { start_within: within, ..settings(seed, Span::from_ms(3)) };
        run(&network, generated(&network, &team(3), seed), settings)
    };
    let (one, same, other) = (of(7), of(7), of(8));
    assert_eq!(one, same);
    assert_ne!(one.sent, other.sent);
    for seen in [&one, &other] {
        let starts = seen.observed.stations.iter().map(|station| station.start);
        let mut starts: Vec<NetTime> = starts.collect();
        assert!(starts.iter().all(|at| *at <= NetTime::ZERO + within), "{starts:?}");
        starts.sort();
        starts.dedup();
        assert_eq!(starts.len(), 4);
    }
}

#[test]
fn in_a_ring_each_frame_comes_once_over_the_tree() {
    let mut network = network(4, 3, 1_000);
    // The bridges are the nodes behind the hosts: the last one closes a ring with the first.
    network.link(NodeId(6), NodeId(4), 1_000, 50);
    addresses(&mut network);
    let limits = NetworkCodeSettings { rounds: Some(20), ..settings(1, Span::from_ms(50)) };
    let seen = run(&network, generated(&network, &team(3), 1), limits);
    assert_eq!((seen.observed.lost(), seen.observed.collisions()), (0, 0));
    for station in &seen.observed.stations[1..] {
        assert_eq!(station.counters.data_received, 20, "setpoints alone are known to it");
        assert_eq!((station.counters.rounds_seen, station.counters.data_unknown), (20, 40));
    }
}

#[test]
fn slower_media_with_tags_take_longer_and_lose_nothing() {
    for (mbps, medium, octet) in [(100, "100 Mbit/s", 80), (10, "10 Mbit/s", 800)] {
        let network = network(3, 1, mbps);
        let medium = format!("{medium} tagged");
        let texts = [master(2, &medium, 2_000), slave(1, &medium, 500), slave(2, &medium, 1_000)];
        let limits = NetworkCodeSettings { rounds: Some(20), ..settings(3, Span::from_ms(90)) };
        let observed = run(&network, generated(&network, &texts, 3), limits).observed;
        assert_eq!((observed.lost(), observed.collisions(), observed.overwritten()), (0, 0, 0));
        let value = listener(&observed, 1, 0);
        // With a tag the shortest frame has 68 octets.
        assert_eq!(value.wire, exactly(2 * (76 * octet + 50) + 1_000));
        assert_eq!((value.sent, value.received), (20, 20));
    }
}

/// Two stations whose messages are exclusive: which one sends, a word of the master says.
fn exclusive(number: usize, relation: &str) -> String {
    format!(
        "station n{number}\noutput value[3]\ninput setpoint[2]\nmessage setpoint = 0[2]\n\
         message m1 = 1[3]\n\
         begin:\n    sync slave, 10 ms\n    branch sync_timeout, begin\n    \
         future slot, 20 us\n    halt\n\
         slot:\n    receive setpoint, setpoint\n    \
         branch not setpoint[1] {relation} 0, begin\n    create value\n    \
         send m1\n    goto begin\n",
    )
}

#[test]
fn of_two_stations_in_a_conditional_slot_at_most_one_sends_in_a_round() {
    let mut network = network(3, 1, 1_000);
    drift(&mut network, 1, 100);
    drift(&mut network, 2, -100);
    let texts = [master(1, "1 Gbit/s", 100), exclusive(1, "<"), exclusive(2, ">=")];
    let rounds = 400;
    let limits = NetworkCodeSettings { rounds: Some(rounds), ..settings(9, Span::from_s(1)) };
    let seen = run(&network, generated(&network, &texts, 9), limits);
    // By the master's frames: which round a frame of the shared message came in.
    let mut by_round = BTreeMap::<u64, u32>::new();
    let mut senders = [0; 2];
    let at_master = network.system.port(network.system.nodes[0].ports[0]).peer;
    for sent in seen.sent.iter().filter(|sent| sent.port == at_master) {
        *by_round.entry(sent.at.as_ns() as u64 / 100_000).or_default() += 1;
        senders[usize::from(sent.data[11]) - 1] += 1;
    }
    assert!(by_round.values().all(|count| *count == 1), "{by_round:?}");
    assert_eq!(by_round.len() as u64, rounds, "one of the two always");
    assert!(senders.iter().all(|count| *count > 150), "{senders:?}");
    assert_eq!((seen.observed.lost(), seen.observed.collisions()), (0, 0));
    let row = listener(&seen.observed, 1, 0);
    assert_eq!((row.sent, row.received), (rounds, rounds));
}

/// `ONBEAT_NETWORK_CODE_ROUNDS` says how many.
#[test]
fn clocks_that_are_wrong_by_100_ppm_cost_no_message_in_many_rounds() {
    let rounds = std::env::var("ONBEAT_NETWORK_CODE_ROUNDS");
    let rounds = rounds.map_or(3_000, |rounds| rounds.parse().expect("a number"));
    let mut network = network(4, 2, 1_000);
    for (host, ppm) in [100, -100, 100, -100].into_iter().enumerate() {
        drift(&mut network, host, ppm);
    }
    let limits = NetworkCodeSettings {
        start_within: Span::from_us(200),
        rounds: Some(rounds),
        logs: false,
        ..settings(4, Span::from_us(200 * (rounds as i64 + 3)))
    };
    let mut engine = network.engine(4, limits.duration.as_ns());
    let stations = generated(&network, &team(3), 4);
    let stations = onbeat_net::network_code::NetworkCode::join(
        &mut engine,
        &network.system,
        &network.plan,
        stations,
        &limits,
    )
    .expect("a sound network");
    stations.run(&mut engine, &mut |_| true).expect("room");
    let observed = stations.observed(&engine);
    eprintln!("{rounds} rounds, {} events", engine.events());
    assert_eq!((observed.lost(), observed.collisions(), observed.overwritten()), (0, 0, 0));
    for station in &observed.stations {
        let counters = station.counters;
        assert_eq!((counters.sync_timeouts, counters.overruns, counters.traps), (0, 0, 0));
        // Who starts after the first beginning of a round does not see that.
        let seen = counters.rounds_begun + counters.rounds_seen;
        assert!((rounds - 1..=rounds).contains(&seen), "{counters:?}");
        assert_eq!(counters.data_sent, seen);
    }
    for slave in 1..4 {
        let value = listener(&observed, slave as u8, 0);
        assert_eq!((value.received, value.arrived), (value.sent, value.sent), "{value:?}");
        assert!(value.sent >= rounds - 1);
    }
}

#[test]
fn a_master_alone_keeps_its_own_time() {
    let mut network = network(1, 1, 1_000);
    drift(&mut network, 0, -100);
    let text = "station n0\nbegin:\n future begin, 1 ms\n sync master\n halt\n";
    let seen = run(&network, vec![setup(text, Idle)], settings(1, Span::from_ms(101)));
    assert_eq!(program(text).words.len(), 3);
    // It is slow: a round of 1 ms takes 100 ns more, rounded up, and 8 cycles before the first.
    let starts: Vec<i64> = seen.sent.iter().map(|sent| sent.at.as_ns()).collect();
    assert_eq!(starts.len(), 101);
    for (round, at) in (0i128..).zip(starts) {
        let own = round * 1_000_000 + 64;
        // The reading is rounded down, so the instant is rounded up.
        let expected = (own * 10_000 + 9_998) / 9_999;
        assert_eq!(i128::from(at), expected, "{round}");
    }
}
