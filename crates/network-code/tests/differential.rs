//! Random programs with random inputs: the station that executes and the interpreter do the same,
//! instruction by instruction.
//!
//! `ONBEAT_NETWORK_CODE_PROGRAMS` says how many, `ONBEAT_NETWORK_CODE_SEED` from which seed on.

use crate::generator::{Dice, program};
use crate::inputs::{instant, values, variable};
use crate::pair::{Pair, Recorder, Stimulus, stimulate};
use onbeat_model::units::MacAddress;
use onbeat_network_code::interpreter::{Interpreter, StationRecord};
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, Condition, Instruction, MessageId, WordError,
};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::station::Station;
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry, Trap};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const PROGRAMS: u64 = 6_000;

fn source(dice: &mut Dice) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, if dice.percent(90) { 1 } else { 2 }])
}

fn frame(program: &StationProgram, dice: &mut Dice) -> Stimulus {
    let format = &program.messages[dice.below(program.messages.len() as u64) as usize];
    let id = if dice.percent(4) { MessageId(dice.word() as u8) } else { format.id };
    let words = if dice.percent(4) { format.words % 374 + 1 } else { format.words };
    Stimulus::Data(id, values(words, dice))
}

fn of_application(program: &StationProgram, dice: &mut Dice) -> Stimulus {
    match dice.below(4) {
        0 => Stimulus::Flag(dice.below(17) as u8, dice.percent(50)),
        1 => Stimulus::Link(dice.percent(50)),
        _ => {
            let index = dice.below(program.buffers.len() as u64 + 1);
            let words = program.buffers.get(index as usize).map_or(1, |buffer| buffer.words);
            let words = if dice.percent(3) { words + 1 } else { words };
            Stimulus::Write(BufferId(index as u8), values(words, dice))
        }
    }
}

/// Runs a program with inputs, and compares at each.
fn run(program: &StationProgram, dice: &mut Dice, end: u64) -> Pair {
    let mut pair = Pair::new(program);
    let (mut from, mut round) = (0, 0);
    // Behind a trap a few inputs suffice.
    let mut left = 2_000;
    while from < end && left > 0 {
        let at = instant(&pair.station, from, dice).min(end);
        pair.run(at);
        left = if pair.counters().traps > 0 { (left - 1).min(5) } else { left - 1 };
        // One link brings one frame at a time.
        match dice.below(5) {
            0 | 1 => {
                pair.give(at, Stimulus::Sync(round, source(dice)));
                round = round.wrapping_add(1);
            }
            2 | 3 => pair.give(at, frame(program, dice)),
            _ if dice.percent(10) => pair.give(at, Stimulus::Damaged),
            _ => {}
        }
        for _ in 0..dice.below(3) {
            pair.give(at, of_application(program, dice));
        }
        from = at + 1;
    }
    pair.run(end + 1);
    pair
}

/// Does something for each seed, and says which one it fails for.
fn for_seeds(programs: u64, mut test: impl FnMut(&StationProgram, &mut Dice, u64)) {
    let first = variable("ONBEAT_NETWORK_CODE_SEED", 0);
    for seed in first..first + programs {
        let mut dice = Dice::new(seed);
        let program = program(&mut dice);
        let end = 1_500 * u64::from(program.medium.octet_cycles.min(10)) + dice.below(1_500);
        let result = catch_unwind(AssertUnwindSafe(|| test(&program, &mut dice, end)));
        if let Err(panic) = result {
            eprintln!("ONBEAT_NETWORK_CODE_SEED={seed} ONBEAT_NETWORK_CODE_PROGRAMS=1");
            resume_unwind(panic);
        }
    }
}

/// How often something has been drawn and carried out, by its name.
type Coverage = BTreeMap<String, u64>;

fn word_error(error: WordError) -> &'static str {
    match error {
        WordError::Operation(_) => "word: operation",
        WordError::Guard(_) => "word: guard",
        WordError::Operand => "word: operand",
        WordError::Reserved => "word: reserved",
    }
}

fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Sends(_) => "sends".to_owned(),
        Outcome::Synchronised(round) => format!("synchronised {}", round.is_some()),
        Outcome::Trapped(Trap::Word(error)) => word_error(error).to_owned(),
        Outcome::Trapped(Trap::Message(_)) => "trap Message".to_owned(),
        Outcome::Trapped(trap) => format!("trap {trap:?}"),
        other => format!("{other:?}"),
    }
}

fn condition(condition: Condition) -> String {
    match condition {
        Condition::Immediate { relation, .. } => format!("immediate {relation:?}"),
        Condition::Words { relation, .. } => format!("words {relation:?}"),
        other => {
            let name = format!("{other:?}");
            name.split(['(', ' ']).next().unwrap_or_default().to_owned()
        }
    }
}

fn instruction(instruction: Instruction) -> String {
    let name = format!("{instruction:?}");
    name.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn note(coverage: &mut Coverage, name: String) {
    *coverage.entry(name).or_default() += 1;
}

fn note_entry(coverage: &mut Coverage, program: &StationProgram, entry: &TraceEntry) {
    note(coverage, outcome(entry.outcome));
    let decoded = program.word(entry.address).map(Instruction::decode);
    let (Some(Ok(found)), false) = (decoded, matches!(entry.outcome, Outcome::Trapped(_))) else {
        return;
    };
    note(coverage, instruction(found));
    if let (Instruction::Branch { guard, .. }, Outcome::Branched(is_true)) = (found, entry.outcome)
    {
        let not = if guard.negated { "not " } else { "" };
        note(coverage, format!("{not}{} {is_true}", condition(guard.condition)));
    }
    if let Instruction::SyncSlave { timeout } = found {
        let waited = (entry.next - entry.issued).0;
        let is_zero = if timeout == 0 { " of 0" } else { "" };
        match entry.outcome {
            Outcome::Synchronised(None) => note(coverage, format!("timeout{is_zero}")),
            _ if waited == 1 => note(coverage, format!("sync at its issue{is_zero}")),
            _ if waited == u64::from(timeout) + 1 => note(coverage, "sync at its timeout".into()),
            _ => {}
        }
    }
}

/// What waited for the transmitter: issued after the instruction before it had its next.
fn note_waits(coverage: &mut Coverage, program: &StationProgram, trace: &[TraceEntry]) {
    for pair in trace.windows(2) {
        if let (Some(Ok(found)), true) =
            (program.word(pair[1].address).map(Instruction::decode), pair[1].issued > pair[0].next)
        {
            note(coverage, format!("{} waits", instruction(found)));
        }
    }
}

fn note_counters(coverage: &mut Coverage, pair: &Pair) {
    let counters = pair.counters();
    for (name, count) in [
        ("data_received", counters.data_received),
        ("data_unknown", counters.data_unknown),
        ("data_wrong_length", counters.data_wrong_length),
        ("data_overwritten", counters.data_overwritten),
        ("damaged", counters.damaged),
        ("syncs_discarded", counters.syncs_discarded),
        ("second_masters", counters.second_masters),
        ("overruns", counters.overruns),
    ] {
        *coverage.entry(name.to_owned()).or_default() += count;
    }
    assert_eq!(
        (counters.transmissions_late, counters.lateness_max, counters.lateness_sum),
        (0, 0, 0)
    );
    assert_eq!((counters.inputs_late, counters.inputs_early), (0, 0));
}

/// Everything that the generator has to draw.
fn wanted() -> Vec<String> {
    let mut wanted: Vec<String> = [
        "Nop",
        "Create",
        "Send",
        "Receive",
        "Future",
        "Halt",
        "SyncMaster",
        "SyncSlave",
        "Branch",
        "Done",
        "Replaced",
        "sends",
        "Received(true)",
        "Received(false)",
        "Halted { overrun: false }",
        "Halted { overrun: true }",
        "synchronised true",
        "synchronised false",
        "Branched(true)",
        "Branched(false)",
        "word: operation",
        "word: guard",
        "word: operand",
        "word: reserved",
        "trap End",
        "trap NoFuture",
        "trap Buffer",
        "trap Message",
        "trap NothingCreated",
        "trap Length",
        "trap Index",
        "timeout",
        "timeout of 0",
        "sync at its issue",
        "sync at its issue of 0",
        "sync at its timeout",
        "Create waits",
        "Send waits",
        "SyncMaster waits",
        "data_received",
        "data_unknown",
        "data_wrong_length",
        "data_overwritten",
        "damaged",
        "syncs_discarded",
        "second_masters",
        "overruns",
        "Always true",
        "not Always false",
    ]
    .map(str::to_owned)
    .into();
    let relations = ["Equal", "Less", "AtMost", "Below", "NotAbove"];
    let compared = |kind: &str| relations.map(|relation| format!("{kind} {relation}"));
    let named =
        ["Count", "Fresh", "Received", "SyncTimeout", "Overrun", "Flag", "Transmitting", "LinkUp"];
    let conditions = named.map(str::to_owned).into_iter();
    for condition in conditions.chain(compared("immediate")).chain(compared("words")) {
        for (not, is_true) in [("", true), ("", false), ("not ", true), ("not ", false)] {
            wanted.push(format!("{not}{condition} {is_true}"));
        }
    }
    wanted
}

#[test]
fn random_programs_do_the_same_in_both_and_draw_everything_that_there_is() {
    let programs = variable("ONBEAT_NETWORK_CODE_PROGRAMS", PROGRAMS);
    let (mut coverage, mut instructions) = (Coverage::new(), 0);
    for_seeds(programs, |program, dice, end| {
        let pair = run(program, dice, end);
        instructions += pair.executed.0.trace.len();
        for entry in &pair.executed.0.trace {
            note_entry(&mut coverage, program, entry);
        }
        note_waits(&mut coverage, program, &pair.executed.0.trace);
        note_counters(&mut coverage, &pair);
    });
    eprintln!("{programs} programs, {instructions} instructions, drawn: {coverage:#?}");
    // A seed that is looked at alone draws little.
    if programs >= PROGRAMS {
        let is_missing = |name: &String| coverage.get(name).is_none_or(|count| *count == 0);
        let missing: Vec<_> = wanted().into_iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }
}

#[test]
fn cycles_that_are_skipped_are_like_those_that_are_counted() {
    for_seeds(300, |program, dice, end| {
        let pair = run(program, dice, end);
        let mut plain = Interpreter::new(program.clone());
        let mut record = StationRecord::default();
        let mut stimuli = pair.stimuli.iter().peekable();
        while plain.now() < pair.interpreter.now() {
            while let Some((_, given)) = stimuli.next_if(|(at, _)| Cycles(*at) == plain.now()) {
                stimulate(&mut plain, given);
            }
            plain.cycle(&mut record);
        }
        assert_eq!(stimuli.next(), None);
        assert_eq!(record, pair.interpreted);
        assert_eq!(plain.counters(), pair.interpreter.counters());
        assert_eq!(plain.current(), pair.interpreter.current());
    });
}

/// All that a station does without inputs up to `end`, called at the instants that `late` gives for
/// those that it wants.
fn alone(
    program: &StationProgram,
    end: Cycles,
    mut late: impl FnMut(Cycles) -> Cycles,
) -> Recorder {
    let mut station = Station::new(program.clone());
    let mut recorder = Recorder::default();
    while station.next() <= end {
        let now = late(station.next());
        // What is due after the end does not count.
        station.advance(now.min(end), &mut recorder);
    }
    recorder
}

#[test]
fn a_late_call_shifts_nothing() {
    for_seeds(300, |program, dice, end| {
        let end = Cycles(end);
        let on_time = alone(program, end, |next| next);
        let late = alone(program, end, |next| next + Cycles(dice.below(500)));
        assert_eq!(on_time.0, late.0);
        let at_the_end = alone(program, end, |_| end);
        assert_eq!(on_time.0, at_the_end.0);
    });
}

#[test]
fn a_buffer_that_receive_writes_is_no_applications_and_others_are_read_as_written() {
    for_seeds(50, |program, dice, _| {
        let mut station = Station::new(program.clone());
        for (index, buffer) in (0..).zip(&program.buffers) {
            let words = values(buffer.words, dice);
            let is_written = station.write(BufferId(index), &words).is_ok();
            assert_eq!(is_written, buffer.role == BufferRole::Output);
            let expected = if is_written { words } else { vec![0; usize::from(buffer.words)] };
            assert_eq!(station.read(BufferId(index)), Ok(&expected[..]));
        }
        assert_eq!(Address::new(0).and_then(|first| program.word(first)), Some(program.words[0]));
    });
}
