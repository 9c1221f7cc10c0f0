//! `onbeat run --verify`: whether a second run was the same, and what programs took from elsewhere
//! than the library, by which it may come that it was not.

use crate::elf::Elf;
use crate::input;
use crate::run::Executed;
use crate::terminal;
use onbeat_measure::{Verification, records};
use onbeat_model::outside::{OutsideCall, OutsideKind, ProgramOutside};
use onbeat_model::record::{Ending, RunLog};
use onbeat_model::time::Span;
use onbeat_run::coordinator::Calls;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most places of a program that are shown; the results have all.
const MOST: usize = 16;

/// What is in whatever has the library inside, or is linked with it. An interpreter and other
/// libraries also call for themselves; before a program joins, that is left out.
const LIBRARY: [&[u8]; 2] = [b"ONBEAT_COORDINATOR", b"libonbeat.so"];

/// What a run and its repetition, if there was one, show; says so.
pub(crate) fn verified(
    scenario: &str,
    (first, mut outside, again): (&RunLog, Vec<ProgramOutside>, Option<anyhow::Result<Executed>>),
    calls: &Calls,
    directory: &Path,
) -> Verification {
    let run = if scenario.is_empty() { "the run" } else { scenario };
    let is_repeated = again.is_some();
    let mut difference = None;
    match again {
        None => {}
        Some(Ok((second, more))) => {
            difference = difference_of(first, &second, calls);
            outside = both(outside, more);
            say_difference(run, &second, difference.as_deref(), calls);
        }
        Some(Err(error)) => {
            let why = format!("could not be executed again: {error:#}");
            terminal::say(format_args!("onbeat: {run} {why}"));
            difference = Some(why);
        }
    }
    Files::of(directory).name(&mut outside);
    let is_same = is_repeated.then_some(difference.is_none());
    say_outside(&outside, is_same);
    Verification { is_same, difference, programs: outside }
}

/// What two runs should have in common: all but the words about how a program hung.
fn comparable(log: &RunLog) -> Vec<u8> {
    let mut log = log.clone();
    if let Ending::Early { reason, .. } = &mut log.ending {
        reason.clear();
    }
    records::encode(&log)
}

fn difference_of(first: &RunLog, second: &RunLog, calls: &Calls) -> Option<String> {
    calls.difference().or_else(|| {
        let differ = comparable(first) != comparable(second);
        differ.then(|| "left other records, although its programs made the same calls".to_owned())
    })
}

fn say_difference(run: &str, second: &RunLog, difference: Option<&str>, calls: &Calls) {
    let Some(difference) = difference else {
        let (count, more) = calls.count();
        let least = if more { "more than " } else { "" };
        terminal::say(format_args!(
            "onbeat: {run} was executed twice: {least}{count} calls of its programs, the same \
             both times"
        ));
        return;
    };
    if let Ending::Early { reason, .. } = &second.ending {
        terminal::say(format_args!(
            "onbeat: the second time {run} ended before its time: {reason}"
        ));
    }
    terminal::say(format_args!(
        "onbeat: {run} is not deterministic: the second time it {difference}\n(what programs \
         must not do in virtual time: docs/engines.md)"
    ));
}

/// What was noticed in one run or the other.
fn both(mut first: Vec<ProgramOutside>, second: Vec<ProgramOutside>) -> Vec<ProgramOutside> {
    let place = |it: &OutsideCall| (it.in_run, it.function.clone(), it.object.clone(), it.offset);
    for (first, second) in first.iter_mut().zip(second) {
        first.left_out = first.left_out.max(second.left_out);
        match (&mut first.calls, second.calls) {
            (Some(calls), Some(more)) => {
                let known: Vec<_> = calls.iter().map(place).collect();
                calls.extend(more.into_iter().filter(|it| !known.contains(&place(it))));
                calls.sort_by_key(|call| (call.in_run, call.first_ns));
            }
            // Known of one run only is not known.
            (calls, None) => {
                (*calls, first.unknown) = (None, first.unknown.take().or(second.unknown))
            }
            (None, _) => {}
        }
    }
    first
}

/// The files that calls were made from.
struct Files {
    directory: PathBuf,
    found: BTreeMap<String, Called>,
}

/// One of them.
struct Called {
    octets: Vec<u8>,
    has_library: bool,
}

impl Called {
    /// One that is gone has no names.
    fn read(path: &str) -> Self {
        let octets = input::read(Path::new(path), input::PROGRAM_OCTETS).unwrap_or_default();
        let is_in = |name: &&[u8]| {
            octets.windows(name.len()).any(|part| part[0] == name[0] && part == *name)
        };
        let has_library = LIBRARY.iter().any(is_in);
        Self { octets, has_library }
    }
}

impl Files {
    fn of(directory: &Path) -> Self {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        Self { directory, found: BTreeMap::new() }
    }

    /// Names where calls are, and leaves out those that are not the program's.
    fn name(&mut self, programs: &mut [ProgramOutside]) {
        for calls in programs.iter_mut().filter_map(|program| program.calls.as_mut()) {
            calls.retain_mut(|call| {
                let read = || Called::read(&call.object);
                let called = self.found.entry(call.object.clone()).or_insert_with(read);
                if let Some(elf) = Elf::read(&called.octets) {
                    call.offset = elf.address(call.offset).unwrap_or(call.offset);
                    call.symbol = elf.symbol(call.offset);
                }
                call.own = called.has_library;
                let below = Path::new(&call.object).strip_prefix(&self.directory);
                if let Ok(below) = below.map(|below| below.display().to_string()) {
                    call.object = below;
                }
                call.in_run || call.own
            });
        }
    }
}

fn say_outside(programs: &[ProgramOutside], is_same: Option<bool>) {
    let is_known = |program: &ProgramOutside| program.unknown.is_none();
    let is_clean = |program: &ProgramOutside| {
        program.calls.as_ref().is_some_and(Vec::is_empty) && program.left_out == 0
    };
    if !programs.is_empty() && programs.iter().all(is_clean) {
        terminal::say("onbeat: nothing was noticed that programs take from elsewhere");
        return;
    }
    for program in programs.iter().filter(|program| !is_clean(program) && is_known(program)) {
        let what = match is_same {
            Some(false) => "the probable cause: program",
            _ => "noticed: program",
        };
        let name = &program.program;
        terminal::say(format_args!("onbeat: {what} `{name}` takes from elsewhere than Onbeat"));
        let calls = program.calls.iter().flatten();
        for call in calls.clone().take(MOST) {
            terminal::say(format_args!("  {}", line(call)));
        }
        let more = calls.count().saturating_sub(MOST);
        if more > 0 {
            terminal::say(format_args!("  and at {more} places more, which the results have"));
        }
        if program.left_out > 0 {
            terminal::say(format_args!("  and {} calls at other places", program.left_out));
        }
    }
    for (name, why) in
        programs.iter().filter_map(|it| it.unknown.as_ref().map(|u| (&it.program, u)))
    {
        terminal::say(format_args!(
            "onbeat: what program `{name}` takes from elsewhere is unknown: {why}"
        ));
    }
}

/// A call, for a person.
fn line(call: &OutsideCall) -> String {
    let what = match call.kind {
        OutsideKind::Clock => "the machine's clock",
        OutsideKind::Wait => "a wait in the machine's time",
        OutsideKind::Randomness => "the machine's randomness",
        OutsideKind::Thread => "a thread that does not join the run",
        OutsideKind::Process => "another process",
    };
    let count = match call.calls {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let when = match call.first_ns {
        _ if !call.in_run => ", before onbeat_open".to_owned(),
        None => ", before the start".to_owned(),
        Some(first) if call.calls == 1 => format!(", at {}", Span::from_ns(first)),
        Some(first) => format!(", first at {}", Span::from_ns(first)),
    };
    let thread = match call.thread {
        Some(thread) => format!(" (thread {thread})"),
        None if call.in_run => " (a thread that is not the run's)".to_owned(),
        None => String::new(),
    };
    let symbol = call.symbol.as_ref().map(|symbol| format!("{symbol} in ")).unwrap_or_default();
    let perhaps = if call.own { "" } else { ", perhaps for itself" };
    let object = if call.object.is_empty() { "no file" } else { &call.object };
    let (function, offset) = (&call.function, call.offset);
    format!(
        "{what}: {function} {count}{when}{thread}, from {symbol}{object} ({offset:#x}){perhaps}"
    )
}
