//! Random systems with random programs: in the engine, stations do what the reference interpreter
//! does with the same inputs, instruction by instruction.
//!
//! `ONBEAT_NETWORK_CODE_SYSTEMS` says how many, `ONBEAT_NETWORK_CODE_SEED` from which seed on.

use super::{addresses, run, settings};
use crate::generator::{Dice, program};
use crate::network::{Network, NoiseSpec};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{LinkId, NodeId, NodeKind};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_net::network_code::{
    Application, ApplicationBuffers, NetworkCodeSettings, StationContent, StationInput, StationLog,
    StationSetup,
};
use onbeat_network_code::interpreter::{Interpreter, SentContent, StationRecord};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{BufferId, Condition, Instruction, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::timing::Medium;
use onbeat_runtime::network_code::trace::Outcome;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const SYSTEMS: u64 = 400;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Writes and sets flags at random instants.
struct Random {
    dice: Dice,
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}

impl Application for Random {
    fn act(&mut self, now: NetTime, buffers: &mut ApplicationBuffers<'_>) -> NetTime {
        let dice = &mut self.dice;
        for index in 0..buffers.program().buffers.len() {
            if dice.percent(50) {
                let words = buffers.program().buffers[index].words;
                let words: Vec<u32> = (0..words).map(|_| dice.below(3) as u32).collect();
                // An input is none of its own, and refused.
                let _ = buffers.write(BufferId(index as u8), &words);
            }
        }
        buffers.set_flag(dice.below(16) as u8, dice.percent(50)).expect("a flag");
        now + Span::from_ns(1 + dice.below(9_000) as i64)
    }
}

/// Messages have the numbers 1, 2 … in all programs of a system, so that stations know each
/// other's.
fn renumber(program: &mut StationProgram) {
    let known: Vec<MessageId> = program.messages.iter().map(|message| message.id).collect();
    let number = |id: MessageId| {
        let at = known.iter().position(|known| *known == id);
        at.map_or(id, |at| MessageId(at as u8 + 1))
    };
    for (at, message) in program.messages.iter_mut().enumerate() {
        message.id = MessageId(at as u8 + 1);
    }
    for word in &mut program.words {
        let Ok(mut instruction) = Instruction::decode(*word) else { continue };
        match &mut instruction {
            Instruction::Send { message } | Instruction::Receive { message, .. } => {
                *message = number(*message);
            }
            Instruction::Branch { guard, .. } => {
                if let Condition::Fresh(message) = &mut guard.condition {
                    *message = number(*message);
                }
            }
            _ => {}
        }
        *word = instruction.encode();
    }
}

/// Hosts at a tree of bridges, or a ring, with clocks, noise and faults that are random.
fn system(dice: &mut Dice, octet_cycles: u32) -> Network {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..2 + dice.below(4)).map(|_| network.host()).collect();
    let bridges: Vec<NodeId> =
        (0..1 + dice.below(3)).map(|_| network.bridge(dice.below(3_000) as i64)).collect();
    let mbps = 1_000 / u64::from(octet_cycles);
    for host in &hosts {
        let bridge = dice.of(&bridges);
        network.link(*host, bridge, mbps, dice.below(500) as i64);
        network.system.nodes[host.index()].clock = ClockError {
            offset: Span::from_ns(dice.below(2_000) as i64 - 1_000),
            drift_ppb: dice.below(200_001) as i32 - 100_000,
            wander: Span::from_ns(dice.below(50) as i64),
            wander_period: Span::from_us(1 + dice.below(900) as i64) * 1_000,
            ..ClockError::default()
        };
    }
    for at in 1..bridges.len() {
        network.link(bridges[dice.below(at as u64) as usize], bridges[at], mbps, 50);
    }
    if dice.percent(50) {
        let spec = NoiseSpec {
            payload: 100 + dice.below(1_300) as u32,
            interval: 20_000 + dice.below(40_000) as i64,
            jitter: true,
            start: 0,
            on: 1 << 40,
            off: 0,
        };
        network.noise(hosts[0], hosts[1], spec);
    }
    if bridges.len() == 3 && dice.percent(50) {
        network.link(bridges[0], bridges[2], mbps, 50);
    }
    for _ in 0..dice.below(3) {
        let from = dice.below(100_000 * u64::from(octet_cycles)) as i64;
        let until = from + 1 + dice.below(50_000 * u64::from(octet_cycles)) as i64;
        let node = NodeId(dice.below(network.system.nodes.len() as u64) as u32);
        let link = LinkId(dice.below(network.system.links.len() as u64) as u32);
        let kind = match dice.below(3) {
            0 => FaultKind::NodeDown(node),
            1 => FaultKind::LinkDown(link),
            _ => FaultKind::FrameErrors { link, per_billion: 300_000_000 },
        };
        network.fault(kind, from, until);
    }
    addresses(&mut network);
    network
}

fn stations(network: &Network, dice: &mut Dice, medium: Medium) -> Vec<StationSetup> {
    let mut stations = Vec::new();
    for node in &network.system.nodes {
        let NodeKind::Host(_) = node.kind else { continue };
        let station = node.name.clone();
        let mut program = program(dice);
        renumber(&mut program);
        (program.station, program.medium) = (station, medium);
        let application = Random { dice: Dice::new(dice.word()) };
        stations.push(StationSetup::new(program, application));
    }
    stations
}

/// Has the interpreter do what a log says, and compares.
fn compare(program: &StationProgram, log: &StationLog) -> StationCounters {
    let mut interpreter = Interpreter::new(program.clone());
    let mut record = StationRecord::default();
    for (at, input) in &log.inputs {
        assert!(*at >= interpreter.now(), "inputs are in the order of time");
        interpreter.run(*at, &mut record);
        match input {
            StationInput::Data(message, words) => interpreter.data_received(*message, words),
            StationInput::Sync(round, source) => interpreter.sync_received(*round, *source),
            StationInput::Write(buffer, words) => {
                interpreter.write(*buffer, words).expect("an output");
            }
            StationInput::Flag(flag, is_set) => {
                interpreter.set_flag(*flag, *is_set).expect("a flag");
            }
            StationInput::Link(is_up) => interpreter.link(*is_up),
        }
    }
    interpreter.run(log.end, &mut record);
    // The interpreter has an entry when the next instruction is fetched, and a frame when it has
    // left: the last ones may be missing.
    let done = record.trace.len();
    assert_eq!(record.trace, log.trace[..done]);
    match (&log.trace[done..], interpreter.current()) {
        ([], None) => {}
        ([], Some((.., outcome))) => {
            let waits = matches!(outcome, None | Some(Outcome::Synchronised(Some(_))));
            assert!(waits, "{outcome:?} is missing");
        }
        ([entry], current) => {
            assert_eq!(current, Some((entry.address, entry.issued, Some(entry.outcome))));
        }
        (rest, _) => panic!("{rest:?} have not been interpreted"),
    }
    let left = record.sent.len();
    for (sent, interpreted) in log.sent.iter().zip(&record.sent) {
        let content = match interpreted.content.clone() {
            SentContent::Data { message, words } => StationContent::Data(message, words),
            SentContent::Sync { round } => StationContent::Round(round),
        };
        assert_eq!((sent.at, &sent.content), (interpreted.at, &content));
    }
    assert!(left <= log.sent.len() && log.sent.len() <= left + 1);
    *interpreter.counters()
}

fn check(dice: &mut Dice, seen: &mut BTreeMap<&'static str, u64>) {
    let octet_cycles = if dice.percent(80) { 1 } else { 10 };
    let medium = Medium { octet_cycles, tagged: dice.percent(50) };
    let network = system(dice, octet_cycles);
    let stations = stations(&network, dice, medium);
    let programs: Vec<_> = stations.iter().map(|station| station.program.clone()).collect();
    let settings = NetworkCodeSettings {
        start_within: Span::from_us(dice.below(20) as i64),
        ..settings(dice.word(), Span::from_us(150 * i64::from(octet_cycles)))
    };
    let result = run(&network, stations, settings);
    let mut sums = vec![StationCounters::default(); programs.len()];
    let mut starts = vec![0; programs.len()];
    for (station, log) in &result.logs {
        sums[*station] += compare(&programs[*station], log);
        starts[*station] += 1;
        *seen.entry("instructions").or_default() += log.trace.len() as u64;
    }
    for ((observed, sum), starts) in result.observed.stations.iter().zip(sums).zip(starts) {
        assert_eq!(observed.counters, sum);
        assert_eq!(observed.starts, starts);
        for (what, count) in [
            ("starts", starts),
            ("rounds", sum.rounds_seen),
            ("received", sum.data_received),
            ("wrong length", sum.data_wrong_length),
            ("unknown", sum.data_unknown),
            ("overwritten", sum.data_overwritten),
            ("timeouts", sum.sync_timeouts),
            ("second masters", sum.second_masters),
            ("overruns", sum.overruns),
            ("traps", sum.traps),
        ] {
            *seen.entry(what).or_default() += count;
        }
    }
    for port in &result.observed.ports {
        *seen.entry("collisions").or_default() += port.collisions;
        *seen.entry("waits").or_default() += port.waits;
    }
    *seen.entry("lost").or_default() += result.observed.lost();
    *seen.entry("systems").or_default() += 1;
    super::counts::compare(&network, &programs, &result);
}

#[test]
fn stations_in_random_systems_do_what_the_interpreter_does() {
    let first = variable("ONBEAT_NETWORK_CODE_SEED", 0);
    let systems = variable("ONBEAT_NETWORK_CODE_SYSTEMS", SYSTEMS);
    let mut seen = BTreeMap::new();
    for seed in first..first + systems {
        let mut dice = Dice::new(seed);
        let result = catch_unwind(AssertUnwindSafe(|| check(&mut dice, &mut seen)));
        if let Err(panic) = result {
            eprintln!("ONBEAT_NETWORK_CODE_SEED={seed} ONBEAT_NETWORK_CODE_SYSTEMS=1");
            resume_unwind(panic);
        }
    }
    eprintln!("{seen:#?}");
    // A seed that is looked at alone sees little.
    if systems >= SYSTEMS {
        assert_eq!(seen.len(), 15);
        assert!(seen.values().all(|count| *count >= 10), "{seen:#?}");
        assert!(seen["starts"] > 3 * systems, "some more than once");
    }
}
