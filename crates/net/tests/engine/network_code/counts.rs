//! What the books say, counted otherwise: from what ports sent and what stations logged.

use super::{Seen, drift, generated, network, on_wire, run, settings, station_of, team};
use crate::network::{Network, NoiseSpec};
use onbeat_model::system::{NodeId, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::Transmission;
use onbeat_net::network_code::{EgressObserved, StationContent, StationInput, StationLog};
use onbeat_runtime::network_code::instruction::{Instruction, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles};
use onbeat_runtime::network_code::trace::Outcome;
use std::collections::BTreeMap;

/// When the gap behind a transmission is over.
fn end(network: &Network, sent: &Transmission) -> NetTime {
    // Ports know the length with the check sequence.
    let octets = on_wire(usize::from(sent.octets) - 4);
    sent.at + network.system.link_of(sent.port).rate.time_for(octets)
}

/// What a port did, from all pairs of its transmissions.
fn port(network: &Network, sent: &[&Transmission]) -> EgressObserved {
    let port = sent[0].port;
    let wait_max = Span::ZERO;
    let (frames, collisions, waits, dropped) = (0, 0, 0, 0);
    let mut count = EgressObserved { port, frames, collisions, waits, wait_max, dropped };
    for (at, frame) in sent.iter().enumerate() {
        let Some(station) = station_of(frame) else { continue };
        let before = &sent[..at];
        let is_other = |other: &&&Transmission| {
            let other_station = station_of(other);
            other_station.is_some_and(|other| other != station)
        };
        let queued = frame.released;
        let collides = before.iter().filter(is_other).any(|other| end(network, other) > queued);
        let of_stations = before.iter().filter(|other| station_of(other).is_some());
        let free = of_stations.map(|other| end(network, other)).max().unwrap_or(queued);
        let free = free.max(queued);
        let others = before.iter().filter(|other| station_of(other).is_none());
        let is_held = others.map(|other| end(network, other)).any(|end| end > free);
        count.frames += 1;
        count.collisions += u64::from(collides);
        count.waits += u64::from(is_held);
        count.wait_max = count.wait_max.max(frame.at - queued);
    }
    count
}

/// Messages that a listener's log says it received, and that were overwritten before.
fn taken(program: &StationProgram, log: &StationLog) -> BTreeMap<MessageId, [u64; 2]> {
    let mut counts = BTreeMap::<_, [u64; 2]>::new();
    for format in &program.messages {
        // An input is there for an instruction of its cycle.
        let mut events: Vec<(Cycles, bool)> = Vec::new();
        for (at, input) in &log.inputs {
            if let StationInput::Data(id, words) = input
                && (*id, words.len()) == (format.id, usize::from(format.words))
            {
                events.push((*at, false));
            }
        }
        for entry in &log.trace {
            let instruction = program.word(entry.address).map(Instruction::decode);
            if let (Some(Ok(Instruction::Receive { message, .. })), Outcome::Received(_)) =
                (instruction, entry.outcome)
                && message == format.id
            {
                events.push((entry.issued, true));
            }
        }
        events.sort();
        let [received, overwritten] = counts.entry(format.id).or_default();
        let mut is_fresh = false;
        for (_, is_receive) in events {
            *received += u64::from(is_receive && is_fresh);
            *overwritten += u64::from(!is_receive && is_fresh);
            is_fresh = !is_receive;
        }
    }
    counts
}

/// Frames of a message of other stations that were queued at their hosts when a host's station was
/// to have started, or later; and those of them that its last port sent.
fn on_the_way(
    network: &Network,
    seen: &Seen,
    (host, start): (NodeId, NetTime),
    message: MessageId,
) -> [u64; 2] {
    let own = network.system.node(host).ports[0];
    let last = network.system.port(own).peer;
    let is_it = |sent: &&&Transmission| {
        let header = if sent.data[12..14] == [0x81, 0] { 18 } else { 14 };
        sent.data[header - 2..header] == [0x88, 0xb5] && sent.data[header + 1] == message.0
    };
    let of_stations: Vec<_> = seen.sent.iter().filter(|sent| station_of(sent).is_some()).collect();
    let mut counts = [0; 2];
    for (number, station) in seen.observed.stations.iter().enumerate() {
        let port = network.system.node(station.node).ports[0];
        let address = network.system.node(station.node).name[1..].parse::<u8>().expect("a number");
        let left: Vec<NetTime> = (of_stations.iter().filter(|sent| sent.port == port))
            .filter(is_it)
            .map(|sent| sent.released)
            .collect();
        let came = of_stations.iter().filter(|sent| sent.port == last).filter(is_it);
        let came = came.filter(|sent| station_of(sent) == Some(address)).count();
        if station.node == host {
            assert_eq!(came, 0, "{number}: its own frame comes back");
            continue;
        }
        // They keep their order, and none is lost but in a queue, which has room here.
        assert_eq!(came, left.len());
        let since = left.iter().filter(|at| **at >= start).count() as u64;
        counts[0] += since;
        counts[1] += since;
    }
    counts
}

/// Compares the books of a run with its transmissions and logs.
pub(super) fn compare(network: &Network, programs: &[StationProgram], seen: &Seen) {
    let mut by_port = BTreeMap::<PortId, Vec<&Transmission>>::new();
    for sent in &seen.sent {
        by_port.entry(sent.port).or_default().push(sent);
    }
    let ports = by_port.values().map(|sent| port(network, sent)).filter(|port| port.frames > 0);
    let expected: Vec<EgressObserved> = ports.collect();
    assert_eq!(seen.observed.ports, expected);
    for message in &seen.observed.messages {
        let sent_by = |number: usize| {
            let logs = seen.logs.iter().filter(|(station, _)| *station == number);
            let frames = logs.flat_map(|(_, log)| &log.sent);
            let is_it = |content: &StationContent| match content {
                StationContent::Data(id, _) => *id == message.id,
                StationContent::Round(_) => false,
            };
            frames.filter(|frame| is_it(&frame.content)).count() as u64
        };
        let sent: Vec<u64> = (0..programs.len()).map(sent_by).collect();
        assert_eq!(message.sent, sent.iter().sum::<u64>());
        for listener in &message.listeners {
            let name = &network.system.node(listener.node).name;
            let number = programs.iter().position(|program| program.station == *name);
            let number = number.expect("a station");
            assert!(listener.sent <= message.sent - sent[number]);
            let mut counts = [0; 2];
            for (_, log) in seen.logs.iter().filter(|(station, _)| *station == number) {
                let of_log = taken(&programs[number], log);
                let [received, overwritten] = of_log[&message.id];
                counts[0] += received;
                counts[1] += overwritten;
            }
            // Those of frames that were sent before its start are in no book.
            assert!(listener.received <= counts[0] && listener.overwritten <= counts[1]);
            if listener.start == NetTime::ZERO {
                assert_eq!([listener.received, listener.overwritten], counts, "{message:?}");
            }
            if network.system.faults.is_empty() {
                let arrived =
                    on_the_way(network, seen, (listener.node, listener.start), message.id);
                assert_eq!([listener.sent, listener.arrived], arrived);
            }
            assert!(listener.arrived <= listener.sent);
            assert!(listener.received + listener.overwritten <= listener.arrived);
        }
    }
}

/// Noise from a host to the master's, whose frames are as long as they may be.
fn with_noise(network: &mut Network, from: NodeId) {
    let spec =
        NoiseSpec { payload: 1_472, interval: 31_000, jitter: true, start: 0, on: 1 << 40, off: 0 };
    network.noise(from, NodeId(0), spec);
}

#[test]
fn frames_that_wait_behind_others_or_collide_are_those_that_ports_show() {
    let mut network = network(4, 2, 1_000);
    with_noise(&mut network, NodeId(2));
    // Two slaves want the same slot.
    let mut texts = team(3);
    texts[3] = texts[3].replace("60 us", "20 us");
    let programs: Vec<_> = texts.iter().map(|text| super::program(text)).collect();
    let seen = run(&network, generated(&network, &texts, 2), settings(2, Span::from_ms(20)));
    compare(&network, &programs, &seen);
    let sum = |of: fn(&EgressObserved) -> u64| seen.observed.ports.iter().map(of).sum::<u64>();
    let rounds = seen.observed.stations[0].counters.rounds_begun;
    // Slaves 1 and 3 are at the same bridge: one of their frames waits for the other in each round,
    // and at the master's port some do so again.
    let between = seen.observed.ports.iter().find(|port| port.port == PortId(9));
    assert_eq!(between.map(|port| port.collisions), Some(rounds), "{:?}", seen.observed.ports);
    assert!(sum(|port| port.collisions) > rounds, "{:?}", seen.observed.ports);
    assert!(sum(|port| port.waits) > rounds / 10, "{:?}", seen.observed.ports);
    assert_eq!(seen.observed.lost(), 0, "they come nevertheless");
    // The longest frame and one of a station may be before one.
    let longest = Span::from_ns((1_538 + 84) * 8);
    assert!(seen.observed.ports.iter().all(|port| port.wait_max < longest));
}

#[test]
fn latencies_are_those_of_the_logs() {
    let mut network = network(4, 2, 1_000);
    with_noise(&mut network, NodeId(1));
    for (host, ppm) in [40, -70, 100, -100].into_iter().enumerate() {
        drift(&mut network, host, ppm);
    }
    let (texts, duration) = (team(3), Span::from_ms(20));
    let seen = run(&network, generated(&network, &texts, 2), settings(2, duration));
    let programs: Vec<_> = texts.iter().map(|text| super::program(text)).collect();
    // True time of a cycle by the definition of drift, to the nanosecond above.
    let true_ns = |station: usize, cycle: Cycles| {
        let drift = i128::from(network.system.nodes[station].clock.drift_ppb);
        let own = i128::from(cycle.0) * i128::from(CYCLE_NS) * 1_000_000_000;
        (own + 999_999_999 + drift).div_euclid(1_000_000_000 + drift) as i64
    };
    for slave in 1..4 {
        let (sender, master) = (&seen.logs[slave].1, &seen.logs[0].1);
        let creates: BTreeMap<Vec<u32>, Cycles> = sender
            .trace
            .iter()
            .filter(|entry| entry.address.index() == 5)
            .zip(&sender.sent)
            .filter_map(|(entry, frame)| match &frame.content {
                StationContent::Data(_, words) => Some((words.clone(), entry.issued)),
                StationContent::Round(_) => None,
            })
            .collect();
        // Each frame is received before the next one comes: the master's `receive` in order.
        let heard = master.inputs.iter().filter_map(|(_, input)| match input {
            StationInput::Data(MessageId(id), words) if usize::from(*id) == slave => Some(words),
            _ => None,
        });
        let receives = master.trace.iter().filter(|entry| {
            let word = programs[0].word(entry.address).map(Instruction::decode);
            let is_it = |message: MessageId| usize::from(message.0) == slave;
            matches!(word, Some(Ok(Instruction::Receive { message, .. })) if is_it(message))
                && entry.outcome == Outcome::Received(true)
        });
        let latencies = heard.zip(receives).map(|(words, entry)| {
            let created = creates.get(words).expect("it was sent");
            true_ns(0, entry.issued) - true_ns(slave, *created)
        });
        let latencies: Vec<i64> = latencies.collect();
        assert!(latencies.len() > 90, "{}", latencies.len());
        let row = super::listener(&seen.observed, slave as u8, 0).latency.expect("messages");
        let least = latencies.iter().min().copied();
        let most = latencies.iter().max().copied();
        assert_eq!((Some(row.min.as_ns()), Some(row.max.as_ns())), (least, most));
        assert!(most > least, "clocks drift");
    }
}
