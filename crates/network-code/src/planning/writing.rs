//! The text of each station's program, from which it is assembled.

use super::carried::HYPER_ROUND;
use super::latency::message;
use super::repetition::{Repetition, repetitions};
use super::round::{Bus, CYCLE};
use super::slots::{BusSchedule, channel_id};
use super::timetable::{ActionKind, BEGIN, BRANCH, FUTURE, RoundActions, Timetable};
use super::{BusStation, codes};
use crate::assembly::{AssemblyOptions, assemble};
use crate::disassembly::time;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::limits::NAME_OCTETS;
use onbeat_model::system::{ChannelId, System};
use onbeat_model::time::Span;
use onbeat_runtime::network_code::instruction::{BufferId, PROGRAM_WORDS};
use onbeat_runtime::network_code::program::is_name;
use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};

/// What the text of a planned program begins with.
pub const PLANNED: &str = "# Planned by onbeat: ";

/// The message and the buffers that have to do with hyper-rounds.
const HYPER_ROUND_NAME: &str = "hyper_round";

/// The programs of all stations.
///
/// # Errors
/// Those that are too long.
pub(super) fn stations(
    bus: &Bus<'_>,
    schedule: &BusSchedule,
    timetables: &[Timetable],
) -> Result<Vec<BusStation>, Vec<Diagnostic>> {
    let names = names(bus.system);
    let mut stations = Vec::new();
    let mut errors = Vec::new();
    for (station, timetable) in timetables.iter().enumerate() {
        let mut writer = Writer {
            bus,
            schedule,
            timetable,
            station,
            names: &names,
            text: String::new(),
            instructions: 0,
        };
        let buffers = writer.declarations();
        match station == bus.tree.master {
            true => writer.master(),
            false => writer.slave(),
        }
        if writer.instructions > PROGRAM_WORDS {
            errors.push(too_long(bus, station, writer.instructions));
            continue;
        }
        let node = bus.tree.stations[station];
        let source = format!("{}.nc", bus.system.node(node).name);
        let assembly = assemble(&source, &writer.text, AssemblyOptions::default());
        let program = assembly.program.unwrap_or_else(|| {
            panic!("what is planned assembles: {:?}\n{}", assembly.diagnostics, writer.text)
        });
        stations.push(BusStation { node, program, text: writer.text, buffers });
    }
    if errors.is_empty() { Ok(stations) } else { Err(errors) }
}

fn too_long(bus: &Bus<'_>, station: usize, instructions: usize) -> Diagnostic {
    let node = bus.system.node(bus.tree.stations[station]);
    let message = format!(
        "the program of `{}` would have {instructions} instructions, and a station holds \
         {PROGRAM_WORDS}",
        node.name
    );
    let help = "use intervals that divide one another, or give the host fewer channels";
    Diagnostic::error(codes::PROGRAM, message, node.origin, "has so many").help(help)
}

/// What each channel is called in programs: its name, as far as the language has such names.
fn names(system: &System) -> Vec<String> {
    let mut taken = BTreeMap::from([(HYPER_ROUND_NAME.to_owned(), ())]);
    let mut names = Vec::new();
    for channel in &system.channels {
        let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = channel.name.chars().map(allowed).collect();
        if !is_name(&name) {
            name.insert(0, '_');
        }
        name.truncate(NAME_OCTETS - 4);
        let first = name.clone();
        let mut number = 1;
        while taken.insert(name.clone(), ()).is_some() {
            number += 1;
            name = format!("{first}_{number}");
        }
        names.push(name);
    }
    names
}

/// Writes one program.
struct Writer<'a> {
    bus: &'a Bus<'a>,
    schedule: &'a BusSchedule,
    timetable: &'a Timetable,
    station: usize,
    names: &'a [String],
    text: String,
    instructions: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: Arguments<'_>) {
        let _ = writeln!(self.text, "{line}");
    }

    fn instruction(&mut self, instruction: Arguments<'_>) {
        self.instructions += 1;
        self.line(format_args!("    {instruction}"));
    }

    fn future(&mut self, label: &str, cycles: i64) {
        // A round is far shorter than the longest delay.
        let delay = time(u32::try_from(cycles).unwrap_or(u32::MAX));
        self.instruction(format_args!("future {label}, {delay}"));
    }

    /// Everything before the instructions, and the buffers of channels.
    fn declarations(&mut self) -> Vec<(ChannelId, BufferId)> {
        let node = self.bus.system.node(self.bus.tree.stations[self.station]);
        let round = Span::from_ns(self.schedule.round_ns());
        let rounds = match self.schedule.rounds {
            1 => String::new(),
            rounds => format!(", {rounds} of them until all repeats"),
        };
        let slots = "Slots are from its beginning on.";
        self.line(format_args!("{PLANNED}a round takes {round}{rounds}. {slots}"));
        match is_name(&node.name) {
            true => self.line(format_args!("station {}", node.name)),
            false => self.line(format_args!("station \"{}\"", node.name)),
        }
        let rate = match self.bus.tree.medium.octet_cycles {
            1 => "1 Gbit/s",
            10 => "100 Mbit/s",
            _ => "10 Mbit/s",
        };
        self.line(format_args!("medium {rate} tagged\n"));
        let mut buffers = Vec::new();
        let mut messages = Vec::new();
        let is_master = self.station == self.bus.tree.master;
        if self.schedule.rounds > 1 {
            let role = if is_master { "output" } else { "input" };
            self.line(format_args!("{role} {HYPER_ROUND_NAME}[1]"));
            messages.push((HYPER_ROUND_NAME, HYPER_ROUND, 1));
        }
        for (channel, name) in self.names.iter().enumerate() {
            let role = match self.bus.senders[channel] == self.station {
                true => "output",
                false if self.bus.listeners[channel].contains(&self.station) => "input",
                false => continue,
            };
            let words = self.bus.frames[channel].words;
            buffers.push(channel);
            messages.push((name, message(channel), words));
            self.line(format_args!("{role} {name}[{words}]"));
        }
        for (name, id, words) in messages {
            self.line(format_args!("message {name} = {}[{words}]", id.0));
        }
        if !self.text.ends_with("\n\n") {
            self.line(format_args!(""));
        }
        let first = usize::from(self.schedule.rounds > 1);
        let id = |(at, channel): (usize, &usize)| {
            let id = u8::try_from(first + at).unwrap_or(u8::MAX);
            (channel_id(*channel), BufferId(id))
        };
        buffers.iter().enumerate().map(id).collect()
    }

    /// The action at an offset, whose `future`, if it has one, was before. Labels begin with that
    /// of the action.
    fn action(&mut self, label: &str, kind: ActionKind) {
        match kind {
            ActionKind::HyperRound => {
                self.instruction(format_args!("create {HYPER_ROUND_NAME}"));
                self.instruction(format_args!("send {HYPER_ROUND_NAME}"));
            }
            ActionKind::Send(channel) => {
                let (name, slot) = (&self.names[channel], &self.schedule.slots[channel]);
                let [start, end] = [slot.start, slot.end].map(|at| Span::from_ns(at * CYCLE));
                self.instruction(format_args!("create {name}  # its slot: {start} to {end}"));
                self.instruction(format_args!("send {name}"));
            }
            ActionKind::Receive(channel) => {
                let name = &self.names[channel];
                let sender = self.bus.tree.stations[self.bus.senders[channel]];
                let sender = &self.bus.system.node(sender).name;
                self.instruction(format_args!("receive {name}, {name}  # from {sender}"));
            }
            ActionKind::Discard(channel) => {
                let name = &self.names[channel];
                let why = "it may be of an earlier round";
                self.instruction(format_args!("receive {name}, {name}  # {why}"));
            }
            ActionKind::Alternatives { shared, .. } => self.alternatives(label, shared),
        }
    }

    /// Receives a mode. At most one of the station's own alternatives is sent.
    fn alternatives(&mut self, label: &str, shared: usize) {
        let bus = self.bus;
        let slot = &bus.shared[shared];
        let own = slot.own(bus, self.station);
        self.action(label, ActionKind::Receive(slot.mode));
        self.instruction(format_args!("branch not received, {label}_{}", own.len()));
        for (at, (channel, value)) in own.into_iter().enumerate() {
            let (mode, word) = (&self.names[slot.mode], slot.word);
            let next = at + 1;
            self.instruction(format_args!("branch not {mode}[{word}] == {value}, {label}_{next}"));
            self.action(label, ActionKind::Send(channel));
            self.line(format_args!("{label}_{next}:"));
        }
    }

    fn repetitions(&self) -> Vec<Repetition> {
        let mut known: BTreeMap<&RoundActions, usize> = BTreeMap::new();
        let rounds = self.timetable.rounds.iter().map(|round| {
            let next = known.len();
            *known.entry(round).or_insert(next)
        });
        repetitions(&rounds.collect::<Vec<_>>())
    }

    fn slave(&mut self) {
        let timetable = self.timetable;
        let all = self.repetitions();
        let start = match timetable.look {
            None => {
                self.line(format_args!("begin:"));
                self.synchronise(timetable.rounds[0].timeout, "begin");
                self.slave_round(0, BRANCH);
                "begin"
            }
            Some(look) => {
                self.search(look, all.iter().any(|it| it.times > 1));
                self.slave_round(0, look + 2 + 1 + BRANCH);
                "search"
            }
        };
        for repetition in &all[1..] {
            for round in repetition.first..repetition.first + repetition.length {
                if repetition.times > 1 && round == repetition.first {
                    self.line(format_args!("round_{round}:"));
                }
                self.synchronise(timetable.rounds[round].timeout, start);
                self.slave_round(round, BRANCH);
            }
            self.repeat(repetition);
        }
        self.instruction(format_args!("goto {start}"));
    }

    fn synchronise(&mut self, timeout: i64, otherwise: &str) {
        let timeout = time(u32::try_from(timeout).unwrap_or(u32::MAX));
        self.instruction(format_args!("sync slave, {timeout}"));
        self.instruction(format_args!("branch sync_timeout, {otherwise}"));
    }

    /// Waits for the beginning of a hyper-round: nothing is sent before.
    fn search(&mut self, look: i64, is_counting: bool) {
        self.line(format_args!("search:"));
        self.synchronise(2 * self.schedule.round, "search");
        self.future("look", look - BRANCH);
        let name = HYPER_ROUND_NAME;
        self.instruction(format_args!("receive {name}, {name}  # it may be of an earlier round"));
        if is_counting {
            self.instruction(format_args!("branch count(0, 1), counted"));
            self.line(format_args!("counted:"));
        }
        self.instruction(format_args!("halt"));
        self.line(format_args!("look:"));
        self.instruction(format_args!("receive {name}, {name}"));
        self.instruction(format_args!("branch not received, search"));
    }

    fn repeat(&mut self, repetition: &Repetition) {
        if repetition.times > 1 {
            let (times, first) = (repetition.times, repetition.first);
            self.instruction(format_args!("branch not count(0, {times}), round_{first}"));
        }
    }

    /// The actions of a slave's round, from an offset on.
    fn slave_round(&mut self, round: usize, from: i64) {
        let actions = &self.timetable.rounds[round].actions;
        let last = actions.len().saturating_sub(1);
        // Behind the last one there is nothing to wait for.
        let start = |index: usize| actions[index].at - if index == last { 0 } else { FUTURE };
        for (index, action) in actions.iter().enumerate() {
            let label = format!("r{round}_{index}");
            if index == 0 {
                self.future(&label, start(0) - from);
                self.instruction(format_args!("halt"));
            }
            self.line(format_args!("{label}:"));
            if index != last {
                self.future(&format!("r{round}_{}", index + 1), start(index + 1) - start(index));
            }
            self.action(&label, action.kind);
            if index != last {
                self.instruction(format_args!("halt"));
            }
        }
    }

    fn master(&mut self) {
        let all = self.repetitions();
        for (index, repetition) in all.iter().enumerate() {
            let behind = repetition.first + repetition.length;
            for round in repetition.first..behind {
                // What follows a repetition is issued behind its `branch`.
                let next = match (round + 1 == behind, repetition.times > 1) {
                    (true, true) => (format!("repeat_{}", repetition.first), BRANCH),
                    (true, false) => match all.get(index + 1) {
                        Some(next) => (format!("round_{}", next.first), 0),
                        None => ("round_0".to_owned(), 0),
                    },
                    (false, _) => (format!("round_{}", round + 1), 0),
                };
                let is_named = round > repetition.first || index == 0 || all[index - 1].times == 1;
                self.master_round(round, is_named || repetition.times > 1, next);
            }
            if repetition.times > 1 {
                self.line(format_args!("repeat_{}:", repetition.first));
                self.repeat(repetition);
            }
        }
    }

    /// The master's round, in which each `future` follows when the last one ends.
    fn master_round(&mut self, round: usize, is_named: bool, (next, branch): (String, i64)) {
        let actions = &self.timetable.rounds[round].actions;
        let end = self.schedule.round + BEGIN - branch;
        let start = |index: usize| actions.get(index).map_or(end, |action| action.at - FUTURE);
        let label = |index: usize| match index < actions.len() {
            true => format!("r{round}_{index}"),
            false => next.clone(),
        };
        if is_named {
            self.line(format_args!("round_{round}:"));
        }
        self.future(&label(0), start(0) - BEGIN);
        self.instruction(format_args!("sync master"));
        self.instruction(format_args!("halt"));
        for (index, action) in actions.iter().enumerate() {
            self.line(format_args!("{}:", label(index)));
            self.future(&label(index + 1), start(index + 1) - start(index));
            self.action(&label(index), action.kind);
            self.instruction(format_args!("halt"));
        }
    }
}
