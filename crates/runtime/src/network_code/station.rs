//! A station that executes its program: a state machine without I/O.
//!
//! Instructions are issued at nominal instants, whenever [`Station::advance`] is called: a late
//! call shifts no later instruction. It only hands out transmissions late, which is counted.
//!
//! What comes is in the order of time: before an input of a cycle, `advance` up to the cycle before
//! it; then the inputs of the cycle; then `advance` to the cycle itself, whose instruction sees
//! them.
//!
//! *Real-time*: nothing here allocates but [`Station::new`], locks or blocks. Each call is bounded:
//! by [`INSTRUCTIONS_PER_ADVANCE`], and for each of these or each input by the words of one frame.

use super::counters::StationCounters;
use super::instruction::{
    Address, BufferId, BufferWord, COUNTERS, Condition, FLAGS, Guard, Instruction, MessageId,
    PROGRAM_WORDS, WordError,
};
use super::program::{BufferRole, StationProgram};
use super::timing::{Cycles, FRAME_WORDS, SEND_START, SYNC_RESUME, issue_cycles};
use super::trace::{Outcome, TraceEntry, Trap};
use onbeat_model::units::MacAddress;
use std::ops::Range;

/// Instructions that one call of [`Station::advance`] carries out at most. A program that never
/// waits has one in each few cycles, which no software keeps up with.
pub const INSTRUCTIONS_PER_ADVANCE: usize = 256;

/// Takes what a station does.
pub trait Observer {
    /// An instruction has been carried out.
    fn trace(&mut self, entry: TraceEntry);

    /// A frame is to be sent, the first octet of its preamble at `at`.
    fn transmit(&mut self, at: Cycles, transmission: Transmission<'_>);
}

/// What a station sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission<'a> {
    /// Data.
    Data {
        /// As what.
        message: MessageId,
        /// The words of the send buffer.
        words: &'a [u32],
    },
    /// The beginning of a round.
    Sync {
        /// Which one, from 0.
        round: u32,
    },
}

/// Why an application cannot have what it asks a station for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no such buffer.
    #[error("the station has no such buffer")]
    Buffer,
    /// `receive` writes the buffer.
    #[error("the buffer is an input of the application")]
    Input,
    /// The buffer has another length.
    #[error("the buffer has another length")]
    Length,
    /// There is no such flag.
    #[error("the station has no such flag")]
    Flag,
}

/// A station.
#[derive(Clone, Debug)]
pub struct Station {
    program: StationProgram,
    instructions: Vec<Result<Instruction, WordError>>,
    progress: Progress,
    /// The latest instant at which something was issued or timed out.
    carried_out: Option<Cycles>,
    /// A frame of the cycle in which a `sync slave` is about to be issued.
    at_hand: Option<SyncFrame>,
    buffers: Store,
    receive_buffers: Store,
    /// Of each receive buffer, whether no `receive` has copied its frame.
    fresh: Vec<bool>,
    send_buffer: [u32; FRAME_WORDS as usize],
    /// The words in the send buffer; none if it is empty.
    send_length: Option<u16>,
    /// When the last data frame has left, and when the gap behind the last frame is over.
    data_end: Cycles,
    gap_end: Cycles,
    countdown: Option<Countdown>,
    counts: [u32; COUNTERS as usize],
    flags: [bool; FLAGS as usize],
    link_up: bool,
    status: Status,
    next_round: u32,
    round_of: RoundOf,
    counters: StationCounters,
}

/// What a station does next.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// Issues the instruction at an address, at an instant or when the transmitter is free.
    Ready { address: usize, at: Cycles },
    /// Waits in a `sync slave`.
    Listening { address: usize, issued: Cycles, until: Cycles },
    /// Continues behind a `sync slave` whose frame came at `at`.
    Synchronised { address: usize, issued: Cycles, at: Cycles, round: u32 },
    /// Nothing.
    Stopped,
}

#[derive(Clone, Copy, Debug)]
struct SyncFrame {
    round: u32,
    source: MacAddress,
}

#[derive(Clone, Copy, Debug)]
struct Countdown {
    end: Cycles,
    target: Address,
}

/// What guards call by names.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    rx_fresh: bool,
    sync_timeout: bool,
    overrun: bool,
}

/// Whose frame began the current round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundOf {
    None,
    Own,
    Other(MacAddress),
}

/// Buffers behind each other.
#[derive(Clone, Debug)]
struct Store {
    ranges: Vec<Range<usize>>,
    words: Vec<u32>,
}

impl Store {
    fn new(lengths: impl Iterator<Item = u16>) -> Self {
        let mut end = 0;
        let mut next = |words: u16| {
            let start = end;
            end += usize::from(words);
            start..end
        };
        let ranges: Vec<_> = lengths.map(&mut next).collect();
        Self { ranges, words: vec![0; end] }
    }

    fn get(&self, index: usize) -> Option<&[u32]> {
        self.ranges.get(index).map(|range| &self.words[range.clone()])
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut [u32]> {
        self.ranges.get(index).map(|range| &mut self.words[range.clone()])
    }
}

/// What issuing an instruction comes to.
enum Issued {
    /// It is done, and the next one is at this address and not issued before this instant.
    Done(Outcome, usize, Cycles),
    /// It waits for a frame until then.
    Listening(Cycles),
}

impl Station {
    /// A station whose first instruction is issued at 0. Its link is down, its flags are not set.
    ///
    /// # Panics
    /// When the program exceeds a limit ([`StationProgram::keeps_limits`]).
    pub fn new(program: StationProgram) -> Self {
        assert!(program.keeps_limits(), "the program of {} exceeds a limit", program.station);
        Self {
            instructions: program.words.iter().map(|&word| Instruction::decode(word)).collect(),
            progress: Progress::Ready { address: 0, at: Cycles(0) },
            carried_out: None,
            at_hand: None,
            buffers: Store::new(program.buffers.iter().map(|buffer| buffer.words)),
            receive_buffers: Store::new(program.messages.iter().map(|message| message.words)),
            fresh: vec![false; program.messages.len()],
            send_buffer: [0; FRAME_WORDS as usize],
            send_length: None,
            data_end: Cycles(0),
            gap_end: Cycles(0),
            countdown: None,
            counts: [0; COUNTERS as usize],
            flags: [false; FLAGS as usize],
            link_up: false,
            status: Status::default(),
            next_round: 0,
            round_of: RoundOf::None,
            counters: StationCounters::default(),
            program,
        }
    }

    /// The program that it executes.
    pub fn program(&self) -> &StationProgram {
        &self.program
    }

    /// When it wants [`Station::advance`] at the latest; [`Cycles::NEVER`] when it has stopped.
    pub fn next(&self) -> Cycles {
        match self.progress {
            Progress::Ready { address, at } => at.max(self.transmitter_free(address)),
            Progress::Listening { until, .. } => until,
            Progress::Synchronised { at, .. } => at + SYNC_RESUME,
            Progress::Stopped => Cycles::NEVER,
        }
    }

    /// Whether it waits for a frame that begins a round.
    pub fn waits_for_round(&self) -> bool {
        matches!(self.progress, Progress::Listening { .. })
    }

    /// Carries out what is issued up to now: all of it, or [`INSTRUCTIONS_PER_ADVANCE`], after
    /// which [`Station::next`] is not after `now` and wants another call.
    pub fn advance(&mut self, now: Cycles, observer: &mut impl Observer) {
        for _ in 0..INSTRUCTIONS_PER_ADVANCE {
            if !self.step(now, observer) {
                return;
            }
        }
    }

    /// The same of the next instruction alone; false if none is issued up to now. Who does
    /// something between two instructions calls this.
    pub fn step(&mut self, now: Cycles, observer: &mut impl Observer) -> bool {
        let at = self.next();
        let is_due = at <= now && !matches!(self.progress, Progress::Stopped);
        if is_due {
            self.carry_out(at, now, observer);
        }
        is_due
    }

    /// A data frame has been received at an instant, [`super::timing::RECEIVE_STORE`] after its
    /// last octet.
    pub fn data_received(
        &mut self,
        at: Cycles,
        message: MessageId,
        words: impl ExactSizeIterator<Item = u32>,
    ) {
        self.note_order(at);
        let Some(index) = self.message(message) else {
            self.counters.data_unknown += 1;
            return;
        };
        let into = self.receive_buffers.get_mut(index).unwrap_or_default();
        if words.len() != into.len() {
            self.counters.data_wrong_length += 1;
            return;
        }
        for (to, word) in into.iter_mut().zip(words) {
            *to = word;
        }
        self.counters.data_received += 1;
        self.counters.data_overwritten += u64::from(self.fresh[index]);
        self.fresh[index] = true;
    }

    /// The EtherType of a frame that begins a round has come at an instant; what is behind it says
    /// which round.
    pub fn sync_received(&mut self, at: Cycles, round: u32, source: MacAddress) {
        self.note_order(at);
        let frame = SyncFrame { round, source };
        match self.progress {
            Progress::Listening { address, issued, until } if (issued..=until).contains(&at) => {
                self.take_round(frame);
                self.progress = Progress::Synchronised { address, issued, at, round };
            }
            _ if self.is_about_to_listen(at) && self.at_hand.is_none() => {
                self.at_hand = Some(frame);
            }
            _ => {
                self.counters.syncs_discarded += 1;
                let is_other = ![RoundOf::None, RoundOf::Other(source)].contains(&self.round_of);
                self.counters.second_masters += u64::from(is_other);
            }
        }
    }

    /// A frame has come whose check sequence is wrong. It is counted only.
    pub fn damaged(&mut self) {
        self.counters.damaged += 1;
    }

    /// The application writes a buffer.
    ///
    /// # Errors
    /// When there is no such buffer, it is not the application's to write, or it has another
    /// length.
    pub fn write(&mut self, buffer: BufferId, words: &[u32]) -> Result<(), AccessError> {
        let role = self.program.buffer(buffer).ok_or(AccessError::Buffer)?.role;
        let into = self.buffers.get_mut(usize::from(buffer.0)).ok_or(AccessError::Buffer)?;
        if role == BufferRole::Input {
            return Err(AccessError::Input);
        }
        if words.len() != into.len() {
            return Err(AccessError::Length);
        }
        into.copy_from_slice(words);
        Ok(())
    }

    /// The application reads a buffer, whoever writes it. What a `receive` copies is there from its
    /// issue on.
    ///
    /// # Errors
    /// When there is no such buffer.
    pub fn read(&self, buffer: BufferId) -> Result<&[u32], AccessError> {
        self.buffers.get(usize::from(buffer.0)).ok_or(AccessError::Buffer)
    }

    /// The application sets a flag, or clears it.
    ///
    /// # Errors
    /// When there is no such flag.
    pub fn set_flag(&mut self, flag: u8, is_set: bool) -> Result<(), AccessError> {
        *self.flags.get_mut(usize::from(flag)).ok_or(AccessError::Flag)? = is_set;
        Ok(())
    }

    /// The link has come up or gone down.
    pub fn link(&mut self, is_up: bool) {
        self.link_up = is_up;
    }

    /// What has been counted up to now.
    pub fn counters(&self) -> &StationCounters {
        &self.counters
    }

    fn message(&self, id: MessageId) -> Option<usize> {
        self.program.messages.binary_search_by_key(&id, |message| message.id).ok()
    }

    /// From when on the instruction at an address need not wait for the transmitter.
    fn transmitter_free(&self, address: usize) -> Cycles {
        match self.instructions.get(address) {
            Some(Ok(Instruction::Create { .. })) => self.data_end,
            Some(Ok(Instruction::Send { .. } | Instruction::SyncMaster)) => {
                self.gap_end - SEND_START
            }
            _ => Cycles(0),
        }
    }

    /// Whether a `sync slave` is issued at that instant.
    fn is_about_to_listen(&self, at: Cycles) -> bool {
        let address = match self.progress {
            Progress::Ready { address, .. } => address,
            Progress::Synchronised { address, .. } => address + 1,
            Progress::Listening { .. } | Progress::Stopped => return false,
        };
        let instruction = self.instructions.get(address);
        self.next() == at && matches!(instruction, Some(Ok(Instruction::SyncSlave { .. })))
    }

    /// Counts a frame that was handed over out of the order of time.
    fn note_order(&mut self, at: Cycles) {
        self.counters.inputs_late += u64::from(self.carried_out >= Some(at));
        self.counters.inputs_early += u64::from(self.next() < at);
    }

    fn take_round(&mut self, frame: SyncFrame) {
        self.counters.rounds_seen += 1;
        self.round_of = RoundOf::Other(frame.source);
        self.status.sync_timeout = false;
    }
}

/// Carrying out.
impl Station {
    /// What is due at `at`, which is [`Station::next`].
    fn carry_out(&mut self, at: Cycles, now: Cycles, observer: &mut impl Observer) {
        match self.progress {
            Progress::Ready { address, .. } => {
                self.carried_out = Some(at);
                match self.issue(address, at, now, observer) {
                    Ok(Issued::Done(outcome, target, next)) => {
                        observer.trace(entry(address, at, next, outcome));
                        self.progress = Progress::Ready { address: target, at: next };
                    }
                    Ok(Issued::Listening(until)) => {
                        self.progress = Progress::Listening { address, issued: at, until };
                    }
                    Err(trap) => {
                        self.counters.traps += 1;
                        observer.trace(entry(address, at, at, Outcome::Trapped(trap)));
                        self.progress = Progress::Stopped;
                    }
                }
            }
            Progress::Listening { address, issued, until } => {
                self.carried_out = Some(until);
                observer.trace(entry(address, issued, until, self.time_out()));
                self.progress = Progress::Ready { address: address + 1, at: until };
            }
            Progress::Synchronised { address, issued, round, .. } => {
                observer.trace(entry(address, issued, at, Outcome::Synchronised(Some(round))));
                self.progress = Progress::Ready { address: address + 1, at };
            }
            Progress::Stopped => {}
        }
    }

    fn issue(
        &mut self,
        address: usize,
        issued: Cycles,
        now: Cycles,
        observer: &mut impl Observer,
    ) -> Result<Issued, Trap> {
        let instruction = *self.instructions.get(address).ok_or(Trap::End)?;
        let instruction = instruction.map_err(Trap::Word)?;
        let mut then = (address + 1, issued + issue_cycles(instruction, 0));
        let outcome = match instruction {
            Instruction::Nop => Outcome::Done,
            Instruction::Create { buffer } => self.create(buffer)?,
            Instruction::Send { message } => {
                self.send(message, issued + SEND_START, now, observer)?
            }
            Instruction::Receive { message, buffer } => {
                let (is_fresh, words) = self.receive(message, buffer)?;
                then.1 = issued + issue_cycles(instruction, words);
                Outcome::Received(is_fresh)
            }
            Instruction::Future { target, delay } => self.start_countdown(issued, target, delay),
            Instruction::Halt => {
                let Countdown { end, target } = self.countdown.take().ok_or(Trap::NoFuture)?;
                let overrun = end <= issued;
                self.set_overrun(overrun);
                then = (target.index(), end.max(then.1));
                Outcome::Halted { overrun }
            }
            Instruction::SyncMaster => {
                let start = issued + SEND_START;
                then.1 = start + self.program.medium.ethertype_cycles() + SYNC_RESUME;
                self.begin_round(start, now, observer)
            }
            Instruction::SyncSlave { timeout } => match self.at_hand.take() {
                Some(frame) => {
                    self.take_round(frame);
                    then.1 = issued + SYNC_RESUME;
                    Outcome::Synchronised(Some(frame.round))
                }
                None if timeout == 0 => self.time_out(),
                None => return Ok(Issued::Listening(issued + Cycles(timeout.into()))),
            },
            Instruction::Branch { guard, target } => {
                let is_true = self.evaluate(guard, issued)?;
                then.0 = if is_true { target.index() } else { then.0 };
                Outcome::Branched(is_true)
            }
        };
        Ok(Issued::Done(outcome, then.0, then.1))
    }

    fn create(&mut self, buffer: BufferId) -> Result<Outcome, Trap> {
        let from = self.buffers.get(usize::from(buffer.0)).ok_or(Trap::Buffer)?;
        self.send_buffer[..from.len()].copy_from_slice(from);
        self.send_length = Some(from.len() as u16);
        Ok(Outcome::Done)
    }

    fn send(
        &mut self,
        message: MessageId,
        start: Cycles,
        now: Cycles,
        observer: &mut impl Observer,
    ) -> Result<Outcome, Trap> {
        let format = self.program.message(message).ok_or(Trap::Message(message))?;
        let length = self.send_length.ok_or(Trap::NothingCreated)?;
        if length != format.words {
            return Err(Trap::Length);
        }
        self.send_length = None;
        self.counters.data_sent += 1;
        self.data_end = self.occupy(start, length, now);
        let words = &self.send_buffer[..usize::from(length)];
        observer.transmit(start, Transmission::Data { message, words });
        Ok(Outcome::Sends(start))
    }

    fn begin_round(&mut self, start: Cycles, now: Cycles, observer: &mut impl Observer) -> Outcome {
        let round = self.next_round;
        self.next_round = round.wrapping_add(1);
        self.round_of = RoundOf::Own;
        self.counters.rounds_begun += 1;
        self.occupy(start, 1, now);
        observer.transmit(start, Transmission::Sync { round });
        Outcome::Sends(start)
    }

    /// Has the transmitter send a frame, and gives when it has left.
    fn occupy(&mut self, start: Cycles, words: u16, now: Cycles) -> Cycles {
        let end = start + self.program.medium.frame_cycles(words);
        self.gap_end = end + self.program.medium.gap_cycles();
        if now > start {
            let lateness = (now - start).0;
            self.counters.transmissions_late += 1;
            self.counters.lateness_max = self.counters.lateness_max.max(lateness);
            self.counters.lateness_sum = self.counters.lateness_sum.saturating_add(lateness);
        }
        end
    }

    /// Whether there was a frame, and the words of the message.
    fn receive(&mut self, message: MessageId, buffer: BufferId) -> Result<(bool, u16), Trap> {
        let index = self.message(message).ok_or(Trap::Message(message))?;
        let role = self.program.buffer(buffer).ok_or(Trap::Buffer)?.role;
        if role == BufferRole::Output {
            return Err(Trap::Buffer);
        }
        let into = self.buffers.get_mut(usize::from(buffer.0)).ok_or(Trap::Buffer)?;
        let from = self.receive_buffers.get(index).unwrap_or_default();
        if from.len() != into.len() {
            return Err(Trap::Length);
        }
        let is_fresh = std::mem::take(&mut self.fresh[index]);
        if is_fresh {
            into.copy_from_slice(from);
        }
        self.status.rx_fresh = is_fresh;
        Ok((is_fresh, from.len() as u16))
    }

    fn start_countdown(&mut self, issued: Cycles, target: Address, delay: u32) -> Outcome {
        let end = issued + Cycles(delay.into());
        let is_replaced = self.countdown.replace(Countdown { end, target }).is_some();
        self.set_overrun(is_replaced);
        if is_replaced { Outcome::Replaced } else { Outcome::Done }
    }

    fn set_overrun(&mut self, is_one: bool) {
        self.status.overrun |= is_one;
        self.counters.overruns += u64::from(is_one);
    }

    fn time_out(&mut self) -> Outcome {
        self.status.sync_timeout = true;
        self.counters.sync_timeouts += 1;
        Outcome::Synchronised(None)
    }

    fn evaluate(&mut self, guard: Guard, issued: Cycles) -> Result<bool, Trap> {
        let is_true = match guard.condition {
            Condition::Always => true,
            Condition::Count { counter, every } => {
                let count = &mut self.counts[usize::from(counter)];
                *count += 1;
                let is_true = *count >= every;
                *count = if is_true { 0 } else { *count };
                is_true
            }
            Condition::Fresh(message) => {
                self.fresh[self.message(message).ok_or(Trap::Message(message))?]
            }
            Condition::Received => self.status.rx_fresh,
            Condition::SyncTimeout => self.status.sync_timeout,
            Condition::Overrun => std::mem::take(&mut self.status.overrun),
            Condition::Flag(flag) => self.flags[usize::from(flag)],
            Condition::Transmitting => issued < self.gap_end,
            Condition::LinkUp => self.link_up,
            Condition::Immediate { word, relation, value } => {
                relation.holds(self.word(word)?, value as u32)
            }
            Condition::Words { left, relation, right } => {
                relation.holds(self.word(left)?, self.word(right)?)
            }
        };
        Ok(is_true != guard.negated)
    }

    fn word(&self, word: BufferWord) -> Result<u32, Trap> {
        let words = self.buffers.get(usize::from(word.buffer.0)).ok_or(Trap::Buffer)?;
        words.get(usize::from(word.index)).copied().ok_or(Trap::Index)
    }
}

/// Behind the last address that there is, the last one stands for it.
fn entry(address: usize, issued: Cycles, next: Cycles, outcome: Outcome) -> TraceEntry {
    let address = Address::new(address.min(PROGRAM_WORDS - 1)).expect("an address of a program");
    TraceEntry { address, issued, next, outcome }
}
