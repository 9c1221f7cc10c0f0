//! Dedicated paths of bridges beside the switch in Verilog: random networks of one to four switches
//! with frames of stations that meet or do not, and best effort of any load. `recorded.txt` has
//! what the hardware did; a test of the long run repeats that, and further networks.
//!
//! `ONBEAT_HARDWARE_NETWORKS` says how many networks the hardware is to be asked for, from seed
//! `ONBEAT_HARDWARE_SEED` on; `ONBEAT_UPDATE` that the record is written, and
//! `ONBEAT_HARDWARE_RESULT` which file gets what was compared.

mod bench;
mod case;
mod compare;
mod model;
mod outcome;
mod shrink;

use case::Case;
use compare::{Coverage, compare};
use outcome::Outcome;
use std::path::Path;

/// Networks in the record, from seed 0 on.
const RECORDED: u64 = 48;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// What the engine's ports did, without those of hosts: they send what the case says.
fn model(case: &Case) -> Outcome {
    let mut outcome = model::run(case);
    outcome.wires.retain(|(node, _), _| *node >= case.hosts());
    outcome
}

#[test]
fn switches_do_in_each_cycle_what_the_hardware_did() {
    let recorded = Outcome::read(include_str!("recorded.txt"));
    assert_eq!(recorded.len() as u64, RECORDED);
    let mut coverage = Coverage::default();
    for (seed, hardware) in recorded {
        let case = Case::draw(seed);
        if let Err(difference) = compare(&case, &hardware, &model(&case), &mut coverage) {
            panic!("seed {seed}: {difference}\n{case}");
        }
    }
    eprintln!("{coverage}");
    assert_eq!(coverage.missing(), Vec::<String>::new(), "never drawn");
}

#[test]
fn the_hardware_does_what_is_recorded_and_what_the_engine_does() {
    let Some(networks) = variable("ONBEAT_HARDWARE_NETWORKS") else { return };
    let first = variable("ONBEAT_HARDWARE_SEED").unwrap_or(0);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bench = root.join("../../target/hardware/bench");
    let recorded = Outcome::read(include_str!("recorded.txt"));
    let updates = std::env::var_os("ONBEAT_UPDATE").is_some();
    let mut coverage = Coverage::default();
    let mut text = String::new();
    for seed in first..first + networks {
        let case = Case::draw(seed);
        let hardware = bench::run(&case, &bench);
        if seed < RECORDED {
            hardware.write(seed, &mut text);
        }
        let of_seed = recorded.iter().find(|(of, _)| *of == seed).filter(|_| !updates);
        if let Some(difference) = of_seed.and_then(|(_, before)| hardware.difference(before)) {
            panic!("seed {seed}: not what is recorded (ONBEAT_UPDATE=1 records it): {difference}");
        }
        if let Err(difference) = compare(&case, &hardware, &model(&case), &mut coverage) {
            let (case, difference) = shrink::shrink(case, difference, &bench);
            panic!("ONBEAT_HARDWARE_SEED={seed} ONBEAT_HARDWARE_NETWORKS=1: {difference}\n{case}");
        }
    }
    eprintln!("{networks} networks from seed {first}: {coverage}");
    if updates && first == 0 && networks >= RECORDED {
        let path = root.join("tests/engine/hardware/recorded.txt");
        std::fs::write(path, text).expect("the record is written");
    }
    if let Some(path) = std::env::var_os("ONBEAT_HARDWARE_RESULT") {
        std::fs::write(&path, coverage.json(first)).expect("the result is written");
    }
    if networks >= RECORDED {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "never drawn");
    }
}
