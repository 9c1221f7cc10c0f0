//! Whether a simulated station did what the interpreter does with the same inputs.

use super::case::{Action, Arrival, Burst, Case, check_sequence};
use super::simulator::{Event, Run};
use onbeat_network_code::hardware::TRAPS;
use onbeat_network_code::interpreter::{Interpreter, SentContent, SentFrame, StationRecord};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, Condition, FLAGS, Instruction, WordError,
};
use onbeat_runtime::network_code::timing::{Cycles, SEND_START};
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry, Trap};
use onbeat_runtime::network_code::wire::{FrameContent, StationFrame, VlanTag};
use std::collections::BTreeMap;
use std::fmt;

/// Bits of an issue's outcome: see `trace_outcome` and `trace_receive` of `nc_station.v`.
const REPLACED: u32 = 1;
const OVERRUN: u32 = 1 << 1;
const RECEIVED: u32 = 1 << 4;
/// The tag of a tagged station's frames.
const TAG: VlanTag = VlanTag { vlan: 0, pcp: 7 };

/// How often something has been drawn and carried out, by its name.
#[derive(Debug, Default)]
pub(super) struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    fn note(&mut self, name: impl Into<String>) {
        self.add(name, 1);
    }

    fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.0.entry(name.into()).or_default() += count;
    }

    /// What was compared, with no difference.
    pub(super) fn json(&self, first: u64, programs: u64) -> String {
        let rows: Vec<_> =
            self.0.iter().map(|(name, count)| format!("    \"{name}\": {count}")).collect();
        let rows = rows.join(",\n");
        let seeds = format!("\"first_seed\": {first},\n  \"programs\": {programs}");
        format!("{{\n  {seeds},\n  \"differences\": 0,\n  \"compared\": {{\n{rows}\n  }}\n}}\n")
    }

    /// What the generator has to draw and has not.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut wanted: Vec<String> = [
            "Nop",
            "Create",
            "Send",
            "Receive",
            "Future",
            "Halt",
            "SyncMaster",
            "SyncSlave",
            "Always",
            "Count",
            "Fresh",
            "Received",
            "SyncTimeout",
            "Overrun",
            "Flag",
            "Transmitting",
            "LinkUp",
            "Immediate",
            "Words",
            "taken true",
            "taken false",
            "replaced",
            "halt late",
            "round taken",
            "timeout",
            "copied",
            "nothing to copy",
            "waits",
            "frame of data",
            "frame of a round",
            "tagged frame",
            "write",
            "write refused",
            "read",
            "read refused",
            "flags",
            "link",
            "best effort",
        ]
        .map(str::to_owned)
        .into();
        wanted.extend(TRAPS.iter().skip(1).map(|trap| format!("trap {trap}")));
        wanted.extend((0..16).map(|counter| format!("counter {counter}")));
        wanted.into_iter().filter(|name| !self.0.contains_key(name)).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

fn trap_name(trap: Trap) -> &'static str {
    match trap {
        Trap::Word(WordError::Operation(_)) => "OPERATION",
        Trap::Word(WordError::Guard(_)) => "GUARD",
        Trap::Word(WordError::Operand) => "OPERAND",
        Trap::Word(WordError::Reserved) => "RESERVED",
        Trap::End => "END",
        Trap::NoFuture => "NO_FUTURE",
        Trap::Buffer => "BUFFER",
        Trap::Message(_) => "MESSAGE",
        Trap::NothingCreated => "NOTHING_CREATED",
        Trap::Length => "LENGTH",
        Trap::Index => "INDEX",
    }
}

/// An instruction as both can say it: where, when, until when, and what came of it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    address: Address,
    issued: u64,
    next: u64,
    outcome: Came,
}

#[derive(Debug, PartialEq, Eq)]
enum Came {
    Done,
    Replaced,
    Sends,
    Received(bool),
    Halted(bool),
    Synchronised(bool),
    Branched(bool),
    Trapped(&'static str),
}

fn of_interpreter(entry: &TraceEntry) -> Step {
    let outcome = match entry.outcome {
        Outcome::Done => Came::Done,
        Outcome::Replaced => Came::Replaced,
        Outcome::Sends(at) => {
            assert_eq!(at, entry.issued + SEND_START);
            Came::Sends
        }
        Outcome::Received(is_there) => Came::Received(is_there),
        Outcome::Halted { overrun } => Came::Halted(overrun),
        Outcome::Synchronised(round) => Came::Synchronised(round.is_some()),
        Outcome::Branched(is_true) => Came::Branched(is_true),
        Outcome::Trapped(trap) => Came::Trapped(trap_name(trap)),
    };
    let (issued, next) = (entry.issued.0, entry.next.0);
    Step { address: entry.address, issued, next, outcome }
}

/// What the simulation showed of instructions, each when the next one is fetched.
fn of_simulation(case: &Case, run: &Run) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut current: Option<Step> = None;
    // An issue is shown a cycle later, behind a fetch of that cycle: the order is that of cycles.
    let mut events: Vec<(u64, u8, Event)> = Vec::new();
    for (at, event) in run {
        let order = match event {
            Event::Fetch => 0,
            Event::Issue { .. } => 1,
            Event::Branch(_) | Event::Round => 2,
            _ => continue,
        };
        events.push((*at, order, *event));
    }
    events.sort_by_key(|(at, order, _)| (*at, *order));
    for (at, _, event) in events {
        match event {
            Event::Fetch => {
                if let Some(step) = current.take() {
                    steps.push(Step { next: at, ..step });
                }
            }
            Event::Issue { address, trap, outcome } => {
                let step = issued(case, at, address, trap, outcome)?;
                match step.outcome {
                    Came::Trapped(_) => steps.push(step),
                    _ => current = Some(step),
                }
            }
            Event::Branch(is_true) => {
                if let Some(step) = &mut current {
                    step.outcome = Came::Branched(is_true);
                }
            }
            Event::Round => {
                if let Some(step) = &mut current {
                    step.outcome = Came::Synchronised(true);
                }
            }
            _ => {}
        }
    }
    Ok(steps)
}

fn issued(case: &Case, at: u64, address: u32, trap: usize, outcome: u32) -> Result<Step, String> {
    let at_end = address as usize >= case.program.words.len();
    let address = Address::new(address as usize).ok_or("an address behind all programs")?;
    let step = |outcome| Step { address, issued: at, next: at, outcome };
    if trap != 0 {
        return Ok(step(Came::Trapped(TRAPS[trap])));
    }
    let word = case.program.word(address).filter(|_| !at_end).map(Instruction::decode);
    let Some(Ok(instruction)) = word else {
        return Err(format!("cycle {at}: it issues what is no instruction, at {address:?}"));
    };
    Ok(step(match instruction {
        Instruction::Future { .. } if outcome & REPLACED != 0 => Came::Replaced,
        Instruction::Nop | Instruction::Create { .. } | Instruction::Future { .. } => Came::Done,
        Instruction::Send { .. } | Instruction::SyncMaster => Came::Sends,
        Instruction::Receive { .. } => Came::Received(outcome & RECEIVED != 0),
        Instruction::Halt => Came::Halted(outcome & OVERRUN != 0),
        // Unless it takes a frame before the next fetch.
        Instruction::SyncSlave { .. } => Came::Synchronised(false),
        Instruction::Branch { .. } => Came::Branched(false),
    }))
}

/// The frames on the pins, each as it begins.
fn sent(case: &Case, run: &Run) -> Result<Vec<SentFrame>, String> {
    let mut frames = Vec::new();
    let mut best_effort = case.best_effort.iter();
    let (mut begun, mut octets) = (0, Vec::new());
    for (at, event) in run {
        match event {
            Event::Octet { error: true, .. } => return Err(format!("cycle {at}: TX_ER")),
            Event::Octet { octet, .. } => {
                if octets.is_empty() {
                    begun = *at;
                }
                octets.push(*octet);
            }
            Event::Idle => {
                let content = checked(begun, &octets)?;
                // Frames of the host are in between, in their order.
                if content[12..14] == [0x08, 0x00] {
                    if best_effort.next().map(|(_, given)| &given[..]) != Some(content) {
                        return Err(format!("cycle {begun}: other best effort than given"));
                    }
                } else {
                    frames.push(frame(case, begun, content)?);
                }
                octets.clear();
            }
            _ => {}
        }
    }
    Ok(frames)
}

/// A frame on the pins, without preamble and check sequence.
fn checked(begun: u64, octets: &[u8]) -> Result<&[u8], String> {
    let error = |what: &str| format!("the frame of cycle {begun}: {what}: {octets:02x?}");
    let Some((preamble, frame)) = octets.split_at_checked(8) else {
        return Err(error("no preamble"));
    };
    if preamble != [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5] {
        return Err(error("another preamble"));
    }
    if frame.len() < 64 {
        return Err(error("too short"));
    }
    let (content, check) = frame.split_at(frame.len() - 4);
    if check != check_sequence(content) {
        return Err(error("another check sequence"));
    }
    Ok(content)
}

fn frame(case: &Case, begun: u64, content: &[u8]) -> Result<SentFrame, String> {
    let error = |what: &str| format!("the frame of cycle {begun}: {what}: {content:02x?}");
    if case.program.medium.tagged && content.len() < 64 {
        return Err(error("too short"));
    }
    let parsed = StationFrame::parse(content).map_err(|why| error(&why.to_string()))?;
    if parsed.source != case.source || parsed.tag != case.program.medium.tagged.then_some(TAG) {
        return Err(error("another source or tag"));
    }
    let content = match parsed.content {
        FrameContent::Data { message, words } => {
            SentContent::Data { message, words: words.iter().collect() }
        }
        FrameContent::Round(round) => SentContent::Sync { round },
    };
    Ok(SentFrame { at: Cycles(begun), content })
}

/// What happens to the interpreter, in its order.
#[derive(Debug)]
enum Input<'a> {
    Arrival(Arrival),
    Write(BufferId, &'a [u32]),
    Flags(u16),
    Link(bool),
    Read { buffer: BufferId, index: usize, value: u32 },
}

fn inputs<'a>(case: &'a Case, run: &Run) -> Vec<(u64, Input<'a>)> {
    let arrivals = case.bursts.iter().flat_map(Burst::arrivals);
    let mut inputs: Vec<_> = arrivals.map(|(at, it)| (at, Input::Arrival(it))).collect();
    for (at, event) in run {
        let input = match event {
            Event::Commit(action) => match &case.actions[*action].1 {
                Action::Write(buffer, words) => Input::Write(*buffer, words),
                other => panic!("{other:?} completes nothing"),
            },
            Event::Flags(flags) => Input::Flags(*flags),
            Event::Link(is_up) => Input::Link(*is_up),
            Event::Read { buffer, index, value } => {
                Input::Read { buffer: BufferId(*buffer), index: *index, value: *value }
            }
            _ => continue,
        };
        inputs.push((*at, input));
    }
    // What is read is what is there behind all inputs of its cycle.
    inputs.sort_by_key(|(at, input)| (*at, matches!(input, Input::Read { .. })));
    inputs.retain(|(at, _)| *at < case.cycles);
    inputs
}

/// Runs the interpreter with what the simulated station was given, as it was given.
fn interpret(case: &Case, run: &Run) -> Result<(Interpreter, StationRecord), String> {
    let mut interpreter = Interpreter::new(case.program.clone());
    let mut record = StationRecord::default();
    for (at, input) in inputs(case, run) {
        interpreter.run(Cycles(at), &mut record);
        match input {
            Input::Arrival(Arrival::Round(round, source)) => {
                interpreter.sync_received(round, source);
            }
            Input::Arrival(Arrival::Data(message, words)) => {
                interpreter.data_received(message, &words);
            }
            Input::Arrival(Arrival::Damaged) => interpreter.damaged(),
            Input::Write(buffer, words) => {
                let taken = interpreter.write(buffer, words);
                taken.map_err(|error| format!("cycle {at}: {buffer:?} is written: {error}"))?;
            }
            Input::Flags(flags) => {
                for flag in 0..FLAGS {
                    let set = interpreter.set_flag(flag, flags >> flag & 1 == 1);
                    set.map_err(|error| error.to_string())?;
                }
            }
            Input::Link(is_up) => interpreter.link(is_up),
            Input::Read { buffer, index, value } => {
                let words = interpreter.read(buffer).map_err(|error| error.to_string())?;
                if words.get(index) != Some(&value) {
                    let there = words.get(index);
                    return Err(format!(
                        "cycle {at}: {buffer:?}[{index}] is read as {value:#x}, not {there:x?}"
                    ));
                }
            }
        }
    }
    interpreter.run(Cycles(case.cycles), &mut record);
    Ok((interpreter, record))
}

/// Compares, and says what is different first.
pub(super) fn compare(case: &Case, run: &Run, coverage: &mut Coverage) -> Result<(), String> {
    let (interpreter, record) = interpret(case, run)?;
    let expected: Vec<_> = record.trace.iter().map(of_interpreter).collect();
    same("instruction", &of_simulation(case, run)?, &expected)?;
    same("frame", &sent(case, run)?, &record.sent)?;
    strobes(case, run)?;
    refusals(case, run)?;
    counters(run, interpreter.counters(), coverage)?;
    coverage.add("cycles", case.cycles);
    coverage.add("instructions", record.trace.len() as u64);
    coverage.add("frames sent", record.sent.len() as u64);
    note(case, run, &record, coverage);
    Ok(())
}

fn same<T: fmt::Debug + PartialEq>(what: &str, found: &[T], expected: &[T]) -> Result<(), String> {
    let same = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
    if found.len() == expected.len() && same == found.len() {
        return Ok(());
    }
    let from = same.saturating_sub(2);
    let shown = |all: &[T]| format!("{:#?}", all.iter().skip(from).take(5).collect::<Vec<_>>());
    let (hardware, interpreter) = (shown(found), shown(expected));
    Err(format!("{what} {same}: the hardware has {hardware}, the interpreter {interpreter}"))
}

/// What begins a round is there in the cycle of the definition.
fn strobes(case: &Case, run: &Run) -> Result<(), String> {
    let strobe = |(at, event): &(u64, Event)| (*event == Event::Strobe).then_some(*at);
    let found: Vec<_> = run.iter().filter_map(strobe).collect();
    let arrivals = case.bursts.iter().flat_map(Burst::arrivals);
    let is_round = |(_, arrival): &(u64, Arrival)| matches!(arrival, Arrival::Round(..));
    let expected: Vec<_> = arrivals.filter(is_round).map(|(at, _)| at).collect();
    let expected: Vec<_> = expected.into_iter().filter(|at| *at < case.cycles).collect();
    same("beginning of a round", &found, &expected)
}

/// What is refused is what an application may not do.
fn refusals(case: &Case, run: &Run) -> Result<(), String> {
    for (at, event) in run {
        let Event::Refused(action) = event else { continue };
        let format = match &case.actions[*action].1 {
            Action::Write(buffer, _) | Action::Read(buffer, _) => case.program.buffer(*buffer),
            _ => None,
        };
        let may_be = match &case.actions[*action].1 {
            Action::Write(..) => format.is_none_or(|format| {
                format.role == onbeat_runtime::network_code::program::BufferRole::Input
            }),
            Action::Read(..) => format.is_none(),
            _ => false,
        };
        if !may_be {
            return Err(format!("cycle {at}: {:?} is refused", case.actions[*action]));
        }
    }
    Ok(())
}

fn counters(run: &Run, counters: &StationCounters, coverage: &mut Coverage) -> Result<(), String> {
    let expected = [
        counters.rounds_begun,
        counters.rounds_seen,
        counters.data_sent,
        counters.data_received,
        counters.data_unknown,
        counters.data_wrong_length,
        counters.data_overwritten,
        counters.damaged,
        counters.syncs_discarded,
        counters.second_masters,
        counters.sync_timeouts,
        counters.overruns,
        counters.traps,
    ];
    for (_, event) in run {
        let Event::Counter { index, value } = *event else { continue };
        if value > 0 {
            coverage.note(format!("counter {index}"));
        }
        if let Some(expected) = expected.get(index as usize)
            && *expected != u64::from(value)
        {
            return Err(format!("counter {index} is {value}, the interpreter's {expected}"));
        }
    }
    Ok(())
}

fn note(case: &Case, run: &Run, record: &StationRecord, coverage: &mut Coverage) {
    let first_word = |debug: String| debug.split([' ', '(', '{']).next().unwrap_or("").to_owned();
    for entry in &record.trace {
        match entry.outcome {
            Outcome::Trapped(trap) => {
                coverage.note(format!("trap {}", trap_name(trap)));
                continue;
            }
            Outcome::Replaced => coverage.note("replaced"),
            Outcome::Halted { overrun: true } => coverage.note("halt late"),
            Outcome::Synchronised(round) => {
                coverage.note(if round.is_some() { "round taken" } else { "timeout" });
            }
            Outcome::Received(true) => coverage.note("copied"),
            Outcome::Received(false) => coverage.note("nothing to copy"),
            Outcome::Branched(is_true) => coverage.note(format!("taken {is_true}")),
            _ => {}
        }
        let Some(Ok(instruction)) = case.program.word(entry.address).map(Instruction::decode)
        else {
            continue;
        };
        match instruction {
            Instruction::Branch { guard, .. } => {
                let condition: Condition = guard.condition;
                coverage.note(first_word(format!("{condition:?}")));
            }
            other => coverage.note(first_word(format!("{other:?}"))),
        }
    }
    if record.trace.windows(2).any(|pair| pair[1].issued > pair[0].next) {
        coverage.note("waits");
    }
    for frame in &record.sent {
        coverage.note(match frame.content {
            SentContent::Data { .. } => "frame of data",
            SentContent::Sync { .. } => "frame of a round",
        });
        if case.program.medium.tagged {
            coverage.note("tagged frame");
        }
    }
    let is_best = |event: &Event| matches!(event, Event::Counter { index: 18, value: 1.. });
    if run.iter().any(|(_, event)| is_best(event)) {
        coverage.note("best effort");
    }
    for (_, event) in run {
        match event {
            Event::Commit(_) => coverage.note("write"),
            Event::Flags(_) => coverage.note("flags"),
            Event::Link(_) => coverage.note("link"),
            Event::Read { .. } => coverage.note("read"),
            Event::Refused(action) => coverage.note(match case.actions[*action].1 {
                Action::Write(..) => "write refused",
                _ => "read refused",
            }),
            _ => {}
        }
    }
}
