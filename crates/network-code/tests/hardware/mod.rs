//! The station in Verilog: it is told the language by a table that is made of the language's own,
//! and does in each cycle what the interpreter does.
//!
//! `ONBEAT_HARDWARE_PROGRAMS` says how many random programs, `ONBEAT_HARDWARE_SEED` from which seed
//! on, `ONBEAT_HARDWARE_RESULT` which file gets what was compared.

mod case;
mod compare;
mod shrink;
mod simulator;

use crate::generator::Dice;
use crate::inputs::variable;
use case::Case;
use compare::{Coverage, compare};
use onbeat_testkit::root;
use simulator::{Simulator, build};

/// Programs that `make test` runs. `make hardware` runs 100,000.
const PROGRAMS: u64 = 1_500;

#[test]
fn the_table_of_the_hardware_is_the_languages() {
    let path = root().join("rtl/station/nc_table.vh");
    let header = onbeat_network_code::hardware::header();
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        std::fs::write(&path, &header).expect("the table is written");
    }
    let found = std::fs::read_to_string(&path).expect("rtl/station/nc_table.vh");
    assert!(found == header, "nc_table.vh is not of the language's tables: set ONBEAT_UPDATE=1");
}

#[test]
fn random_programs_do_in_each_cycle_what_the_interpreter_does() {
    let Some(path) = build("lockstep") else { return };
    let first = variable("ONBEAT_HARDWARE_SEED", 0);
    let programs = variable("ONBEAT_HARDWARE_PROGRAMS", PROGRAMS);
    let mut simulator = Simulator::start(&path);
    let mut coverage = Coverage::default();
    for seed in first..first + programs {
        let case = Case::draw(&mut Dice::new(seed));
        let run = simulator.run(&case);
        if let Err(difference) = compare(&case, &run, &mut coverage) {
            let (case, difference) = shrink::shrink(case, difference, &mut simulator);
            panic!("ONBEAT_HARDWARE_SEED={seed} ONBEAT_HARDWARE_PROGRAMS=1: {difference}\n{case}");
        }
    }
    eprintln!("{programs} programs from seed {first}: {coverage}");
    if let Some(path) = std::env::var_os("ONBEAT_HARDWARE_RESULT") {
        let result = coverage.json(first, programs);
        std::fs::write(&path, result).expect("the result is written");
    }
    if programs >= PROGRAMS {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "never drawn");
    }
}
