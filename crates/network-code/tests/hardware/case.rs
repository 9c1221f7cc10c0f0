//! What a simulation is given: a program, octets on the pins, and an application.

use crate::generator::{Dice, program};
use crate::inputs::{instant, values};
use crate::pair::Recorder;
use onbeat_model::units::MacAddress;
use onbeat_runtime::network_code::instruction::{BufferId, Instruction, MessageId};
use onbeat_runtime::network_code::program::{Buffer, BufferRole, StationProgram};
use onbeat_runtime::network_code::station::Station;
use onbeat_runtime::network_code::timing::{Cycles, Medium};
use onbeat_runtime::network_code::wire::{
    ETHERTYPE_ROUND, FRAME_MAX, FrameContent, GROUP, StationFrame, VlanTag, emit_data, emit_round,
};
use std::fmt;

/// From the pins to the station's stream: `rtl/mac/elastic_fifo.v`, with clocks that are alike.
const ELASTIC: u64 = 5;
/// Words of half of each memory: `ADDRESS` of `rtl/station/nc_station.v`.
const HALF: u32 = 1 << 11;
const START: u8 = 0xd5;
const PREAMBLE: u8 = 0x55;

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) program: StationProgram,
    pub(super) source: MacAddress,
    pub(super) cycles: u64,
    pub(super) bursts: Vec<Burst>,
    /// Frames of the station's host, without their check sequence, each not before a cycle.
    pub(super) best_effort: Vec<(u64, Vec<u8>)>,
    /// Each not before a cycle, and behind the one before it.
    pub(super) actions: Vec<(u64, Action)>,
}

/// Octets with `rx_dv`, preamble and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) at: u64,
    pub(super) octets: Vec<u8>,
    /// The octet that comes with `rx_er`.
    pub(super) error: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Write(BufferId, Vec<u32>),
    Flags(u16),
    Link(bool),
    Read(BufferId, Vec<u32>),
}

/// What a burst is to a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Round(u32, MacAddress),
    Data(MessageId, Vec<u32>),
    Damaged,
}

/// The check sequence of a frame (IEEE 802.3), as its octets are sent.
pub(super) fn check_sequence(octets: &[u8]) -> [u8; 4] {
    let mut register = u32::MAX;
    for octet in octets {
        register ^= u32::from(*octet);
        for _ in 0..8 {
            register = register >> 1 ^ if register & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    (!register).to_le_bytes()
}

impl Burst {
    /// When what comes with it comes, after the definition: an EtherType when its last octet is
    /// over, a frame eight cycles after that of the check sequence.
    pub(super) fn arrivals(&self) -> Vec<(u64, Arrival)> {
        let Some(start) = self.octets.iter().position(|octet| *octet != PREAMBLE) else {
            return Vec::new();
        };
        if self.octets[start] != START {
            return Vec::new();
        }
        let frame = &self.octets[start + 1..];
        let over = |index: usize| self.at + (start + 1 + index) as u64 + ELASTIC + 1;
        let mut arrivals = Vec::new();
        let two = |at: usize| frame.get(at..at + 2).map_or(0, |o| u16::from_be_bytes([o[0], o[1]]));
        let type_at = if two(12) == 0x8100 { 16 } else { 12 };
        if frame.starts_with(&GROUP.0) && two(type_at) == ETHERTYPE_ROUND {
            let round = frame.get(type_at + 6..type_at + 10).unwrap_or(&[0; 4]);
            let round = u32::from_be_bytes(round.try_into().expect("four octets"));
            let source = MacAddress(frame[6..12].try_into().expect("six octets"));
            arrivals.push((over(type_at + 1), Arrival::Round(round, source)));
        }
        let complete = over(frame.len()) - 1 + 8;
        let (content, check) = frame.split_at(frame.len().saturating_sub(4));
        let is_whole = check == check_sequence(content) && frame.len() >= 4;
        if self.error.is_some() || !is_whole {
            arrivals.push((complete, Arrival::Damaged));
        } else if (64..=FRAME_MAX + 4).contains(&frame.len())
            && let Ok(parsed) = StationFrame::parse(content)
            && let FrameContent::Data { message, words } = parsed.content
        {
            arrivals.push((complete, Arrival::Data(message, words.iter().collect())));
        }
        arrivals
    }
}

impl Case {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        loop {
            let mut program = program(dice);
            program.medium = Medium { octet_cycles: 1, ..program.medium };
            let source = MacAddress([2, 0, 0, 0, 0, 9]);
            let cycles = 1_500 + dice.below(1_500);
            let mut case = Self {
                program,
                source,
                cycles,
                bursts: Vec::new(),
                best_effort: Vec::new(),
                actions: Vec::new(),
            };
            // Few programs have so many long buffers.
            if case.buffer_rows().1 > HALF || case.message_rows().1 > HALF {
                continue;
            }
            case.plan(dice);
            for _ in 0..dice.below(4) {
                let octets = (0..60 + dice.below(100)).map(|_| dice.word() as u8);
                // Of another EtherType.
                let mut octets: Vec<u8> = octets.collect();
                octets[12..14].copy_from_slice(&[0x08, 0x00]);
                case.best_effort.push((dice.below(case.cycles), octets));
            }
            case.best_effort.sort();
            return case;
        }
    }

    /// Rows of the table of buffers, and the words that they take of each half of the memory.
    pub(super) fn buffer_rows(&self) -> (Vec<u32>, u32) {
        let mut next = 0;
        let row = |buffer: &Buffer| {
            let (words, first) = (u32::from(buffer.words), next);
            next += words;
            u32::from(buffer.role == BufferRole::Input) << 21 | words << 12 | first
        };
        let rows = self.program.buffers.iter().map(row).collect();
        (rows, next)
    }

    /// Identifiers and rows of the messages, and the words that they take of each half.
    pub(super) fn message_rows(&self) -> (Vec<[u32; 2]>, u32) {
        let mut next = 0;
        let mut rows = Vec::new();
        for message in &self.program.messages {
            let words = u32::from(message.words);
            rows.push([u32::from(message.id.0), 1 << 21 | words << 12 | next]);
            next += words;
        }
        (rows, next)
    }

    /// Draws what happens, often just when the station does something. What the application does
    /// is later than planned, as its bus has one word in some cycles.
    fn plan(&mut self, dice: &mut Dice) {
        let mut station = Station::new(self.program.clone());
        let mut recorder = Recorder::default();
        let (mut from, mut pins_free, mut round) = (0, 0, 0);
        while from < self.cycles && self.bursts.len() + self.actions.len() < 300 {
            let at = instant(&station, from, dice).min(self.cycles);
            while station.next() < Cycles(at) {
                station.advance(station.next(), &mut recorder);
            }
            if dice.percent(70) {
                let burst = self.burst(at, pins_free, &mut round, dice);
                pins_free = burst.at + burst.octets.len() as u64 + gap(dice);
                for (at, arrival) in burst.arrivals() {
                    while station.next() < Cycles(at) {
                        station.advance(station.next(), &mut recorder);
                    }
                    match arrival {
                        Arrival::Round(round, source) => {
                            station.sync_received(Cycles(at), round, source);
                        }
                        Arrival::Data(message, words) => {
                            station.data_received(Cycles(at), message, words.into_iter());
                        }
                        Arrival::Damaged => station.damaged(),
                    }
                    from = from.max(at);
                }
                self.bursts.push(burst);
            }
            for _ in 0..dice.below(3) {
                let action = self.action(dice);
                match &action {
                    // As if it were there at once.
                    Action::Write(buffer, words) => {
                        let _ = station.write(*buffer, words);
                    }
                    Action::Flags(flags) => {
                        for flag in 0..16 {
                            let _ = station.set_flag(flag, flags >> flag & 1 == 1);
                        }
                    }
                    Action::Link(is_up) => station.link(*is_up),
                    Action::Read(..) => {}
                }
                self.actions.push((at.saturating_sub(dice.below(6)), action));
            }
            from = from.max(at) + 1;
        }
        self.end();
    }

    /// Nothing arrives in the cycles around the end, and all is read there.
    fn end(&mut self) {
        let arrivals = self.bursts.iter().flat_map(Burst::arrivals);
        let instants: Vec<u64> = arrivals.map(|(at, _)| at).collect();
        while instants.iter().any(|at| at.abs_diff(self.cycles) < 4) {
            self.cycles += 5;
        }
        for (index, buffer) in (0..).zip(&self.program.buffers) {
            let indices = (0..u32::from(buffer.words)).step_by(usize::from(buffer.words / 8 + 1));
            let at = self.cycles.saturating_sub(400);
            self.actions.push((at, Action::Read(BufferId(index), indices.collect())));
        }
    }

    /// A burst that has its effect at an instant, or later if the pins are not free before.
    fn burst(&self, at: u64, pins_free: u64, round: &mut u32, dice: &mut Dice) -> Burst {
        let tag = dice
            .percent(40)
            .then(|| VlanTag { vlan: dice.below(4_096) as u16, pcp: dice.below(8) as u8 });
        let source = MacAddress([2, 0, 0, 0, 0, if dice.percent(90) { 1 } else { 2 }]);
        let mut octets = vec![0; FRAME_MAX];
        let is_round = dice.percent(45);
        let length = if is_round {
            let number = if dice.percent(5) { dice.word() as u32 } else { *round };
            *round = round.wrapping_add(1);
            emit_round(source, tag, number, &mut octets)
        } else {
            let format = &self.program.messages;
            let format = &format[dice.below(format.len() as u64) as usize];
            let id = if dice.percent(4) { MessageId(dice.word() as u8) } else { format.id };
            let words = if dice.percent(4) { format.words % 374 + 1 } else { format.words };
            emit_data(source, tag, id, &values(words, dice), &mut octets)
        };
        octets.truncate(length);
        if dice.percent(12) {
            distort(&mut octets, dice);
        }
        let mut check = check_sequence(&octets);
        if dice.percent(4) {
            check[dice.below(4) as usize] ^= 1 << dice.below(8);
        }
        octets.extend(check);
        // A fragment now and then: what comes of a collision.
        if dice.percent(3) {
            octets.truncate(dice.below(octets.len() as u64) as usize + 1);
        }
        let preamble = if dice.percent(85) { 7 } else { dice.below(20) as usize };
        let mut burst = vec![PREAMBLE; preamble];
        burst.push(START);
        if dice.percent(2) {
            burst[dice.below(preamble as u64 + 1) as usize] = dice.word() as u8;
        }
        burst.extend(octets);
        let error = dice.percent(3).then(|| dice.below(burst.len() as u64) as usize);
        let mut burst = Burst { at: 0, octets: burst, error };
        let effect = burst.arrivals().first().map_or(0, |(after, _)| *after);
        burst.at = at.saturating_sub(effect).max(pins_free);
        burst
    }

    fn action(&self, dice: &mut Dice) -> Action {
        match dice.below(8) {
            0 | 1 => Action::Flags(dice.word() as u16),
            2 => Action::Link(dice.percent(50)),
            kind => {
                // Now and then one that there is not.
                let index = dice.below(self.program.buffers.len() as u64 + 1);
                let buffer = self.program.buffers.get(index as usize);
                let words = buffer.map_or(1, |buffer| buffer.words);
                let id = BufferId(index as u8);
                if kind < 7 {
                    return Action::Write(id, values(words, dice));
                }
                Action::Read(id, vec![dice.below(u64::from(words)) as u32])
            }
        }
    }
}

fn gap(dice: &mut Dice) -> u64 {
    if dice.percent(80) { 12 } else { 1 + dice.below(40) }
}

/// Makes something else of a frame without its check sequence, mostly of its headers.
fn distort(octets: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(6) {
        0 => {
            let at = dice.below(octets.len().min(26) as u64) as usize;
            octets[at] ^= 1 << dice.below(8);
        }
        1 => {
            let at = 12 + dice.below(12) as usize;
            octets[at] = dice.word() as u8;
        }
        // Its length, of words or of octets.
        2 => {
            let at = if octets[12] == 0x81 { 20 } else { 16 };
            octets[at] = dice.below(3) as u8;
            octets[at + 1] = dice.word() as u8;
        }
        3 => octets.truncate(dice.below(octets.len() as u64) as usize + 1),
        4 => octets.extend(std::iter::repeat_n(0xa5, dice.below(60) as usize)),
        _ => octets.extend(std::iter::repeat_n(0x5a, 1_450 + dice.below(120) as usize)),
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} cycles, {:?}", self.cycles, self.program.medium)?;
        for buffer in &self.program.buffers {
            writeln!(f, "  {:?} {}[{}]", buffer.role, buffer.name, buffer.words)?;
        }
        for message in &self.program.messages {
            writeln!(f, "  message {}[{}]", message.id.0, message.words)?;
        }
        for (address, word) in self.program.words.iter().enumerate() {
            writeln!(f, "  {address:3} {:?}", Instruction::decode(*word))?;
        }
        for burst in &self.bursts {
            writeln!(f, "  pins at {}: {:02x?} {:?}", burst.at, burst.octets, burst.error)?;
            writeln!(f, "    {:?}", burst.arrivals())?;
        }
        for (at, octets) in &self.best_effort {
            writeln!(f, "  best effort at {at}: {} octets", octets.len())?;
        }
        for (at, action) in &self.actions {
            writeln!(f, "  application at {at}: {action:?}")?;
        }
        Ok(())
    }
}
