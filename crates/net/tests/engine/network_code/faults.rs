//! What goes wrong: it is seen, counted and survived.

use super::{Idle, drift, generated, listener, network, run, settings, setup, slave, team};
use crate::network::NoiseSpec;
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{LinkId, NodeId};
use onbeat_model::time::Span;
use onbeat_net::network_code::{NetworkCodeObserved, NetworkCodeSettings, StationSetup};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::trace::{Outcome, Trap};

const US: i64 = 1_000;

fn rounds(rounds: u64) -> NetworkCodeSettings {
    NetworkCodeSettings { rounds: Some(rounds), ..settings(1, Span::from_s(1)) }
}

fn counters(observed: &NetworkCodeObserved, station: usize) -> &StationCounters {
    &observed.stations[station].counters
}

/// Rounds of 200 µs whose beginnings are waited for by 250 µs.
fn impatient(slaves: usize) -> Vec<String> {
    team(slaves).into_iter().map(|text| text.replace("10 ms", "250 us")).collect()
}

#[test]
fn a_link_that_is_down_costs_beginnings_of_rounds_and_the_slave_is_there_again() {
    let mut network = network(4, 2, 1_000);
    // Rounds 10 to 12 begin at 2,000, 2,200 and 2,400 µs and reach slave 1 some µs later. The frame
    // of the slave is in its slot, 20 µs later.
    network.fault(FaultKind::LinkDown(LinkId(1)), 1_900 * US, 2_500 * US);
    let observed = run(&network, generated(&network, &impatient(3), 1), rounds(40)).observed;
    let slave = counters(&observed, 1);
    assert_eq!((slave.rounds_seen, slave.data_sent), (37, 37));
    // The last round that it saw began at 1,800 µs. From its slot at 1,822 it waits for 250 µs
    // each, the third time until 2,572.
    assert_eq!((slave.sync_timeouts, slave.syncs_discarded), (3, 0));
    let setpoint = listener(&observed, 0, 1);
    assert_eq!((setpoint.sent, setpoint.arrived, setpoint.lost()), (40, 37, 3));
    // It sends nothing meanwhile, so nothing of it is lost.
    let value = listener(&observed, 1, 0);
    assert_eq!((value.sent, value.received, value.lost()), (37, 37, 0));
    for other in [2, 3] {
        let counters = counters(&observed, other);
        assert_eq!((counters.rounds_seen, counters.sync_timeouts), (40, 0));
        assert_eq!(listener(&observed, 0, other).lost(), 0);
    }
    assert_eq!((observed.lost(), observed.collisions()), (3, 0));
}

#[test]
fn frames_that_errors_cost_are_lost_messages_and_missed_rounds() {
    let mut network = network(3, 1, 1_000);
    let kind = FaultKind::FrameErrors { link: LinkId(2), per_billion: 100_000_000 };
    network.fault(kind, 0, 1_000_000 * US);
    let observed = run(&network, generated(&network, &impatient(2), 1), rounds(500)).observed;
    let (healthy, slave) = (counters(&observed, 1), counters(&observed, 2));
    assert_eq!((healthy.rounds_seen, healthy.sync_timeouts), (500, 0));
    // One in ten frames each way.
    let missed = 500 - slave.rounds_seen;
    assert!((25..75).contains(&missed), "{missed}");
    assert!(slave.sync_timeouts > 0 && slave.sync_timeouts <= missed);
    let (setpoint, value) = (listener(&observed, 0, 2), listener(&observed, 2, 0));
    assert!((25..75).contains(&setpoint.lost()), "{setpoint:?}");
    assert!((25..75).contains(&value.lost()), "{value:?}");
    assert_eq!(value.sent, slave.data_sent);
    assert_eq!(slave.data_sent, slave.rounds_seen);
    assert_eq!(slave.damaged, 0, "they do not come at all");
    assert_eq!(listener(&observed, 0, 1).lost(), 0);
    assert_eq!(observed.lost(), setpoint.lost() + value.lost());
}

#[test]
fn a_station_that_was_off_starts_again_from_the_beginning() {
    let mut network = network(3, 1, 1_000);
    network.fault(FaultKind::NodeDown(NodeId(2)), 1_050 * US, 3_050 * US);
    let seen = run(&network, generated(&network, &team(2), 1), rounds(40));
    let observed = &seen.observed;
    assert_eq!(observed.stations.iter().map(|it| it.starts).collect::<Vec<_>>(), [1, 1, 2]);
    // Rounds 6 to 15 begin while it is off: at 1,200, 1,400, … 3,000 µs.
    let slave = counters(observed, 2);
    assert_eq!((slave.rounds_seen, slave.data_sent, slave.sync_timeouts), (30, 30, 0));
    let setpoint = listener(observed, 0, 2);
    assert_eq!((setpoint.sent, setpoint.received, setpoint.lost()), (40, 30, 10));
    let logs = seen.logs.iter().filter(|(station, _)| *station == 2);
    let firsts: Vec<_> = logs.map(|(_, log)| (log.trace[0].issued.0, log.sent.len())).collect();
    assert_eq!(firsts, [(0, 6), (0, 24)], "its cycles count from its start");
    assert_eq!(counters(observed, 1).rounds_seen, 40);
    assert_eq!(observed.lost(), 10);
}

#[test]
fn of_a_master_that_was_off_slaves_miss_rounds_only() {
    let mut network = network(3, 1, 1_000);
    network.fault(FaultKind::NodeDown(NodeId(0)), 1_050 * US, 3_050 * US);
    let settings = settings(1, Span::from_us(4_040));
    let observed = run(&network, generated(&network, &impatient(2), 1), settings).observed;
    // From 0 and from 3,050 µs on; rounds are numbered from 0 again.
    assert_eq!(counters(&observed, 0).rounds_begun, 6 + 5);
    for slave in [1, 2] {
        let counters = counters(&observed, slave);
        assert_eq!((counters.rounds_seen, counters.data_sent), (11, 11));
        // 250 µs each from the slot of the sixth round on, which was at 1,022 or 1,042 µs.
        assert_eq!(counters.sync_timeouts, 8);
    }
    // What the slaves sent before the failure came while it was on.
    let value = listener(&observed, 1, 0);
    assert_eq!((value.sent, value.arrived), (11, 11));
    // What it had not taken in its sixth round, it has forgotten.
    assert_eq!((value.received, value.overwritten), (10, 0));
    assert_eq!(observed.lost(), 0);
}

#[test]
fn a_beginning_that_comes_after_the_timeout_is_discarded() {
    let network = network(2, 1, 1_000);
    // The slave waits for 150 µs, does something else for 100, and waits again.
    let late = "station n1\nbegin:\n    sync slave, 150 us\n    branch sync_timeout, late\n    \
                goto begin\n\
                late:\n    future begin, 100 us\n    halt\n";
    let mut stations = generated(&network, &team(0), 1);
    stations.push(setup(late, Idle));
    let observed = run(&network, stations, settings(1, Span::from_us(2_050))).observed;
    // Rounds begin at 0, 200, … 2,000 µs. At 1.8 µs it sees the first one; at 152 it gives up, and
    // the second one comes before 252. The third one it sees at 402; and so on.
    let (master, slave) = (counters(&observed, 0), counters(&observed, 1));
    assert_eq!(master.rounds_begun, 11);
    assert_eq!((slave.rounds_seen, slave.sync_timeouts, slave.syncs_discarded), (6, 5, 5));
    assert_eq!(slave.second_masters, 0);
}

#[test]
fn a_beginning_that_noise_delays_moves_the_slot_by_as_much() {
    let mut network = network(3, 1, 1_000);
    // One frame of 1,538 octets with its gap, which begins 50 ns before the second round does.
    let start = 200 * US + 64 - 50;
    let spec =
        NoiseSpec { payload: 1_472, interval: 1 << 40, jitter: false, start, on: 1 << 40, off: 0 };
    network.noise(NodeId(0), NodeId(2), spec);
    let seen = run(&network, generated(&network, &team(2), 1), settings(1, Span::from_us(390)));
    let sent_at = |station: usize, number: usize| seen.logs[station].1.sent[number].at.0;
    // 12,304 ns less 50: slave 1 is by so much later in the second round. The bridge has another
    // port for it than for the noise.
    let moved = sent_at(1, 1) - sent_at(1, 0) - 200 * 125;
    assert_eq!(moved, (1_538 * 8 - 50_u64).div_ceil(8));
    // The beginning follows the noise to slave 2's port, where it waits for it once more.
    assert!(sent_at(2, 1) - sent_at(2, 0) - 200 * 125 > moved);
    let ports = &seen.observed.ports;
    assert_eq!((ports[0].waits, ports[0].collisions), (1, 0));
    assert_eq!(ports[0].wait_max, Span::from_ns(1_538 * 8 - 50));
    assert_eq!(seen.observed.lost(), 0);
}

#[test]
fn a_second_master_is_counted_and_survived() {
    let network = network(4, 2, 1_000);
    let mut texts = team(2);
    // The other one begins rounds of 210 µs.
    texts.push("station n3\nbegin:\n future begin, 210 us\n sync master\n halt\n".to_owned());
    let observed = run(&network, generated(&network, &texts, 1), rounds(200)).observed;
    let second = counters(&observed, 3);
    assert!((190..=191).contains(&second.rounds_begun), "{second:?}");
    assert_eq!(second.second_masters, 200, "the first one's, and it waits for none");
    for slave in [1, 2] {
        let counters = counters(&observed, slave);
        let all = counters.rounds_seen + counters.syncs_discarded;
        assert!((389..=391).contains(&all), "each beginning: {counters:?}");
        // One that comes while the slave is in its slot.
        assert!(counters.second_masters > 10 && counters.traps == 0, "{counters:?}");
        assert!(counters.second_masters <= counters.syncs_discarded);
    }
    assert_eq!(counters(&observed, 0).second_masters, second.rounds_begun);
    // Both begin at once at the first, and each 20th round of the second: their frames meet.
    assert!(observed.collisions() > 10, "{:?}", observed.ports);
}

/// Sends the longest frames, one behind the other: 1,538 octets with preamble and gap.
const BABBLE: &str = "station n3\noutput noise[374]\nmessage noise = 9[374]\n\
                      begin:\n    future begin, 1538 cycles\n    create noise\n    send noise\n    \
                      halt\n";

#[test]
fn a_babbling_station_collides_with_all_and_stops_none() {
    let network = network(4, 2, 1_000);
    let mut texts = team(2);
    texts.push(BABBLE.to_owned());
    let seen = run(&network, generated(&network, &texts, 1), rounds(50));
    let observed = &seen.observed;
    let babble = counters(observed, 3);
    let frames = 50_u64 * 200_000 / (1_538 * 8) + 1;
    assert_eq!(babble.data_sent, frames);
    assert!(observed.collisions() > 50, "{:?}", observed.ports);
    // It leaves 0 of each wire to others: what they send waits behind more and more of it, and
    // comes. The queues of the test have room.
    for (station, slave) in [(1, counters(observed, 1)), (2, counters(observed, 2))] {
        assert!(slave.rounds_seen > 10 && slave.traps == 0, "{slave:?}");
        assert!(slave.data_unknown > 400, "{station} hears it: {slave:?}");
    }
    assert_eq!(counters(observed, 0).rounds_begun, 50);
    let setpoint = listener(observed, 0, 1);
    assert!(setpoint.latency.expect("messages").max > Span::from_us(12), "{setpoint:?}");
}

#[test]
fn a_queue_that_a_babbling_station_fills_loses_messages() {
    let mut network = network(4, 2, 1_000);
    // Both bridges have room for three frames at each port.
    for bridge in [4, 5] {
        network.limits(NodeId(bridge), 3, u32::MAX);
    }
    let mut texts = team(2);
    texts.push(BABBLE.to_owned());
    let observed = run(&network, generated(&network, &texts, 1), rounds(200)).observed;
    assert!(observed.lost() > 0, "{:?}", observed.messages);
    for message in &observed.messages {
        for listener in &message.listeners {
            assert!(listener.arrived <= listener.sent && listener.received <= listener.arrived);
        }
    }
    assert_eq!(counters(&observed, 0).rounds_begun, 200);
}

#[test]
fn a_trap_stops_one_station_and_is_told() {
    let network = network(3, 1, 1_000);
    let mut stations = generated(&network, &team(2), 1);
    // It receives into the buffer that its application writes: what no assembler lets through.
    let mut wrong = super::program(&slave(2, "1 Gbit/s", 40));
    let receive = onbeat_runtime::network_code::instruction::Instruction::Receive {
        message: onbeat_runtime::network_code::instruction::MessageId(0),
        buffer: onbeat_runtime::network_code::instruction::BufferId(0),
    };
    wrong.words[4] = receive.encode();
    stations[2] = StationSetup::new(wrong, Idle);
    let observed = run(&network, stations, rounds(20)).observed;
    let trapped = &observed.stations[2];
    assert_eq!((trapped.counters.traps, trapped.counters.data_sent), (1, 0));
    let trap = trapped.trap.expect("a trap");
    assert_eq!((trap.address.index(), trap.outcome), (4, Outcome::Trapped(Trap::Buffer)));
    assert_eq!(counters(&observed, 1).data_sent, 20);
    assert_eq!(observed.stations[1].trap, None);
}

#[test]
fn an_oscillator_that_is_too_fast_for_its_slot_collides_in_the_end() {
    let mut network = network(3, 1, 1_000);
    // Slaves that keep no master: each sends each millisecond of its own, half of it apart.
    for (host, ppm) in [(1, 200), (2, -200)] {
        drift(&mut network, host, ppm);
    }
    let free = |number: usize, first: u64| {
        format!(
            "station n{number}\noutput value[3]\nmessage m{number} = {number}[3]\n    \
             future begin, {first} us\n    halt\nbegin:\n    future begin, 1 ms\n    \
             create value\n    send m{number}\n    halt\n"
        )
    };
    let texts = [team(2)[0].clone(), free(1, 500), free(2, 100)];
    let of =
        |ms| run(&network, generated(&network, &texts, 1), settings(1, Span::from_ms(ms))).observed;
    let slaves = |observed: &NetworkCodeObserved| {
        let at_master = observed.ports.iter().find(|port| port.port.0 == 1);
        at_master.expect("frames").collisions
    };
    // 400 µs pass in 1,000 rounds, by 400 ns each; a frame with its gap is on the wire for 672.
    assert_eq!(slaves(&of(990)), 0);
    let met = slaves(&of(1_100));
    assert!((2..=4).contains(&met), "{met}");
}
