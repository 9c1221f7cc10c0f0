//! A counterexample as a picture: for text, and as data that others draw.

use super::ProofCounterexample;
use super::network::NetworkModel;
use super::replay::{ReplayFrame, ReplayIncident, ReplayStep};
use onbeat_runtime::network_code::instruction::Instruction;
use std::fmt::Write;

/// The widest line of text.
pub const TIMELINE_COLUMNS: usize = 100;
/// Columns of names.
const NAME_COLUMNS: usize = 18;
/// Instructions that the text lists for each station.
const STEPS_LISTED: usize = 24;

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// From when, in ns from the start of the replay.
    pub from_ns: i64,
    /// Until when.
    pub to_ns: i64,
    /// Rows in order: each station, then each resource that is named.
    pub rows: Vec<TimelineRow>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRow {
    /// A station or a resource.
    pub name: String,
    /// What is on it.
    pub marks: Vec<TimelineMark>,
}

/// An instruction or a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineMark {
    /// When it begins.
    pub begin_ns: i64,
    /// When it ends: the same of an instruction.
    pub end_ns: i64,
    /// One character.
    pub symbol: char,
    /// What it is.
    pub label: String,
    /// Whether the counterexample is about it.
    pub is_named: bool,
}

/// The picture of a counterexample.
pub fn timeline(network: &NetworkModel, example: &ProofCounterexample) -> Timeline {
    let (from_ns, to_ns) = window(example);
    let mut rows: Vec<TimelineRow> = network
        .stations
        .iter()
        .map(|station| TimelineRow { name: station.program.station.clone(), marks: Vec::new() })
        .collect();
    for step in &example.steps {
        let at = step.issued.floor_ns();
        if !(from_ns..=to_ns).contains(&at) {
            continue;
        }
        let program = &network.stations[step.station].program;
        let word = program.words.get(step.address).copied().unwrap_or(0);
        let (symbol, name) = named(word);
        let taken = match step.taken {
            Some(true) => ", taken",
            Some(false) => ", not taken",
            None => "",
        };
        let line = match program.lines.get(step.address) {
            Some(line) if *line > 0 => format!(" line {line}"),
            _ => String::new(),
        };
        let (address, offset) = (step.address, step.offset);
        let label = format!("{address:>4}{line} {name} at {offset} cycles{taken}");
        let mark = TimelineMark { begin_ns: at, end_ns: at, symbol, label, is_named: false };
        rows[step.station].marks.push(mark);
    }
    let named = match example.incident {
        ReplayIncident::Overlap { resource, first, second } => Some((resource, [first, second])),
        _ => None,
    };
    if let Some((resource, pair)) = named {
        for index in pair {
            rows.push(frame_row(network, example, resource, index));
        }
    }
    Timeline { from_ns, to_ns, rows }
}

fn frame_row(
    network: &NetworkModel,
    example: &ProofCounterexample,
    resource: usize,
    index: usize,
) -> TimelineRow {
    let frame = &example.frames[index];
    let station = &network.stations[frame.station].program.station;
    let label = match frame.message {
        Some(message) => format!("message {} of `{station}`", message.0),
        None => format!("beginning of a round of `{station}`"),
    };
    let mark = TimelineMark {
        begin_ns: frame.begin.floor_ns(),
        end_ns: frame.end.ceil_ns(),
        symbol: '=',
        label,
        is_named: true,
    };
    TimelineRow { name: network.resources[resource].name.clone(), marks: vec![mark] }
}

/// What is shown: from the instructions that send what overlaps to its end, else the last rounds.
fn window(example: &ProofCounterexample) -> (i64, i64) {
    if let ReplayIncident::Overlap { first, second, .. } = example.incident {
        let pair = [&example.frames[first], &example.frames[second]];
        let sends = |step: &&ReplayStep| {
            let sends = |frame: &&ReplayFrame| {
                (frame.station, frame.round, frame.address)
                    == (step.station, step.round, step.address)
            };
            pair.iter().any(sends)
        };
        let issued = example.steps.iter().filter(sends).map(|step| step.issued.floor_ns());
        let begun = pair.iter().map(|frame| frame.begin.floor_ns());
        let from = issued.chain(begun).min().unwrap_or(0);
        let to = pair.iter().map(|frame| frame.end.ceil_ns()).max().unwrap_or(0);
        let around = (to - from).max(1);
        return (from - around / 4, to + around / 8);
    }
    let issued = || example.steps.iter().map(|step| step.issued.floor_ns());
    (issued().min().unwrap_or(0), issued().max().unwrap_or(0))
}

fn named(word: u64) -> (char, &'static str) {
    match Instruction::decode(word) {
        Ok(Instruction::Nop) => ('n', "nop"),
        Ok(Instruction::Create { .. }) => ('c', "create"),
        Ok(Instruction::Send { .. }) => ('s', "send"),
        Ok(Instruction::Receive { .. }) => ('r', "receive"),
        Ok(Instruction::Future { .. }) => ('f', "future"),
        Ok(Instruction::Halt) => ('h', "halt"),
        Ok(Instruction::SyncMaster) => ('M', "sync master"),
        Ok(Instruction::SyncSlave { .. }) => ('S', "sync slave"),
        Ok(Instruction::Branch { .. }) => ('b', "branch"),
        Err(_) => ('?', "no instruction"),
    }
}

impl Timeline {
    /// The picture in text, no line longer than [`TIMELINE_COLUMNS`]: a row for each station with a
    /// letter for each instruction, a row for each frame that overlaps, then both in words.
    pub fn text(&self) -> String {
        let columns = TIMELINE_COLUMNS - NAME_COLUMNS - 2;
        let width = (self.to_ns - self.from_ns).max(1) as i128;
        let column = |ns: i64| {
            let at = i128::from(ns - self.from_ns) * (columns as i128 - 1) / width;
            at.clamp(0, columns as i128 - 1) as usize
        };
        let mut text = format!("{} ns to {} ns\n", self.from_ns, self.to_ns);
        for row in &self.rows {
            let mut cells = vec!['.'; columns];
            for mark in &row.marks {
                let (begin, end) = (column(mark.begin_ns), column(mark.end_ns));
                cells[begin..=end.max(begin)].fill(mark.symbol);
            }
            let line: String = cells.into_iter().collect();
            let _ = writeln!(text, "{:<NAME_COLUMNS$}|{line}|", cut(&row.name, NAME_COLUMNS));
        }
        for row in &self.rows {
            let skipped = row.marks.len().saturating_sub(STEPS_LISTED);
            for mark in &row.marks[skipped..] {
                let when = match mark.is_named {
                    true => format!("{}..{}", mark.begin_ns, mark.end_ns),
                    false => mark.begin_ns.to_string(),
                };
                let line = format!("{}: {when} ns: {}", cut(&row.name, NAME_COLUMNS), mark.label);
                let _ = writeln!(text, "{}", cut(&line, TIMELINE_COLUMNS));
            }
        }
        text
    }
}

/// At most so many characters.
fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}
