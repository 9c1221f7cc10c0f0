//! The control: fetches, issues, waits.

use super::{Copying, Countdown, Current, Interpreter, StationRecord};
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, PROGRAM_WORDS,
};
use onbeat_runtime::network_code::program::BufferRole;
use onbeat_runtime::network_code::timing::{Cycles, SEND_START, SYNC_RESUME, issue_cycles};
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry, Trap};

/// What the control does in a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    /// Fetches an instruction, and issues it if it may.
    Fetch { pc: usize },
    /// Has one that waits for the transmitter.
    Stalled { pc: usize, instruction: Instruction },
    /// Counts cycles until it fetches, in that in which it comes to 0.
    Busy { pc: usize, left: u32 },
    /// Waits for the countdown.
    Halting,
    /// Waits for the beginning of a round as a slave.
    Listening { pc: usize, left: u32 },
    /// Waits for the EtherType of its own frame.
    Announcing { pc: usize },
    /// Has stopped for good.
    Stopped,
}

impl Interpreter {
    pub(super) fn control(&mut self, record: &mut StationRecord) {
        match self.control {
            Control::Fetch { pc } => self.fetch(pc, record),
            Control::Stalled { pc, instruction } => self.issue(pc, instruction, record),
            Control::Busy { pc, left: 1 } => self.fetch(pc, record),
            Control::Busy { pc, left } => self.control = Control::Busy { pc, left: left - 1 },
            Control::Halting => {
                let ended = self.countdown.take_if(|countdown| countdown.left == 0);
                if let Some(Countdown { target, .. }) = ended {
                    self.fetch(target.index(), record);
                }
            }
            Control::Listening { pc, left } => match self.take_strobe() {
                Some(round) => self.conclude_sync(pc, round),
                None if left == 1 => {
                    self.time_out();
                    self.fetch(pc, record);
                }
                None => self.control = Control::Listening { pc, left: left - 1 },
            },
            Control::Announcing { pc } => {
                if self.transmitter.has_sent_ethertype() {
                    self.control = Control::Busy { pc, left: SYNC_RESUME.0 as u32 };
                }
            }
            Control::Stopped => {}
        }
    }

    fn fetch(&mut self, pc: usize, record: &mut StationRecord) {
        if let Some(Current { address, issued, outcome }) = self.current.take() {
            let outcome = outcome.expect("what came of an instruction that is carried out");
            let (issued, next) = (Cycles(issued), Cycles(self.now));
            record.trace.push(TraceEntry { address, issued, next, outcome });
        }
        let word = self.program.words.get(pc).copied();
        match word.ok_or(Trap::End).map(Instruction::decode) {
            Ok(Ok(instruction)) => self.issue(pc, instruction, record),
            Ok(Err(error)) => self.trap(pc, Trap::Word(error), record),
            Err(trap) => self.trap(pc, trap, record),
        }
    }

    fn trap(&mut self, pc: usize, trap: Trap, record: &mut StationRecord) {
        self.control = Control::Stopped;
        self.counters.traps += 1;
        let (address, now) = (address(pc), Cycles(self.now));
        let outcome = Outcome::Trapped(trap);
        record.trace.push(TraceEntry { address, issued: now, next: now, outcome });
    }

    fn issue(&mut self, pc: usize, instruction: Instruction, record: &mut StationRecord) {
        let may_issue = match instruction {
            Instruction::Create { .. } => !self.transmitter.has_data(),
            Instruction::Send { .. } | Instruction::SyncMaster => self.transmitter.may_send(),
            _ => true,
        };
        if !may_issue {
            self.control = Control::Stalled { pc, instruction };
            return;
        }
        match self.effect(pc, instruction) {
            Ok(outcome) => {
                self.current = Some(Current { address: address(pc), issued: self.now, outcome });
            }
            Err(trap) => self.trap(pc, trap, record),
        }
    }

    /// What an instruction does in the cycle of its issue, and how the control continues.
    fn effect(&mut self, pc: usize, instruction: Instruction) -> Result<Option<Outcome>, Trap> {
        let next = pc + 1;
        let (mut then, mut words) = (next, 0);
        let outcome = match instruction {
            Instruction::Nop => Outcome::Done,
            Instruction::Create { buffer } => self.create(buffer)?,
            Instruction::Send { message } => self.send(message)?,
            Instruction::Receive { message, buffer } => {
                words = self.receive(message, buffer)?;
                Outcome::Received(self.rx_fresh)
            }
            Instruction::Future { target, delay } => {
                let countdown = Countdown { left: delay, target };
                match self.countdown.replace(countdown) {
                    None => Outcome::Done,
                    Some(_) => {
                        self.note_overrun();
                        Outcome::Replaced
                    }
                }
            }
            Instruction::Halt => {
                let Countdown { left, target } = self.countdown.clone().ok_or(Trap::NoFuture)?;
                if left > 0 {
                    self.control = Control::Halting;
                    return Ok(Some(Outcome::Halted { overrun: false }));
                }
                self.countdown = None;
                self.note_overrun();
                then = target.index();
                Outcome::Halted { overrun: true }
            }
            Instruction::SyncMaster => {
                let at = self.begin_round();
                self.control = Control::Announcing { pc: next };
                return Ok(Some(at));
            }
            Instruction::SyncSlave { timeout } => match self.take_strobe() {
                Some(round) => Outcome::Synchronised(Some(round)),
                None if timeout > 0 => {
                    self.control = Control::Listening { pc: next, left: timeout };
                    return Ok(None);
                }
                None => {
                    self.sync_timeout = true;
                    self.counters.sync_timeouts += 1;
                    Outcome::Synchronised(None)
                }
            },
            Instruction::Branch { guard, target } => {
                let is_true = self.is_true(guard)?;
                if is_true {
                    then = target.index();
                }
                Outcome::Branched(is_true)
            }
        };
        let left = issue_cycles(instruction, words).0 as u32;
        self.control = Control::Busy { pc: then, left };
        Ok(Some(outcome))
    }

    fn create(&mut self, BufferId(index): BufferId) -> Result<Outcome, Trap> {
        let index = usize::from(index);
        let length = self.data.get(index).ok_or(Trap::Buffer)?.latest().len();
        // One that is still being filled is not needed any more.
        if let Some((earlier, _)) = self.send_buffer.filling {
            self.data[earlier].unpin();
        }
        self.data[index].pin();
        self.send_buffer.filling = Some((index, length));
        self.send_buffer.filled = 0;
        self.send_buffer.created = Some(length);
        Ok(Outcome::Done)
    }

    fn send(&mut self, message: MessageId) -> Result<Outcome, Trap> {
        let index = self.receiver(message)?;
        let length = self.send_buffer.created.ok_or(Trap::NothingCreated)?;
        if length != usize::from(self.program.messages[index].words) {
            return Err(Trap::Length);
        }
        self.send_buffer.created = None;
        self.transmitter.send_data(message, length);
        self.counters.data_sent += 1;
        Ok(self.sends())
    }

    fn begin_round(&mut self) -> Outcome {
        self.transmitter.send_sync(self.next_round);
        self.next_round = self.next_round.wrapping_add(1);
        self.round_source = Some(None);
        self.counters.rounds_begun += 1;
        self.sends()
    }

    fn sends(&self) -> Outcome {
        Outcome::Sends(Cycles(self.now) + SEND_START)
    }

    /// Begins to copy a frame if there is one, and gives the message's words.
    fn receive(&mut self, message: MessageId, buffer: BufferId) -> Result<u16, Trap> {
        let receiver = self.receiver(message)?;
        let index = usize::from(buffer.0);
        let format = self.program.buffers.get(index).ok_or(Trap::Buffer)?;
        if format.role != BufferRole::Input {
            return Err(Trap::Buffer);
        }
        let words = self.program.messages[receiver].words;
        if format.words != words {
            return Err(Trap::Length);
        }
        self.rx_fresh = self.receivers[receiver].is_fresh;
        if self.rx_fresh {
            self.receivers[receiver].is_fresh = false;
            self.receivers[receiver].banks.pin();
            self.copy = Some(Copying { receiver, buffer: index, next: 0 });
        }
        Ok(words)
    }

    fn receiver(&self, message: MessageId) -> Result<usize, Trap> {
        let mut formats = self.program.messages.iter();
        formats.position(|format| format.id == message).ok_or(Trap::Message(message))
    }

    fn note_overrun(&mut self) {
        self.overrun = true;
        self.counters.overruns += 1;
    }

    /// Takes the frame of this cycle, if one has come that begins a round: which round.
    fn take_strobe(&mut self) -> Option<u32> {
        let strobe = self.strobe.take()?;
        self.round_source = Some(Some(strobe.source));
        self.sync_timeout = false;
        self.counters.rounds_seen += 1;
        Some(strobe.round)
    }

    /// A `sync slave` has what it waited for.
    fn conclude_sync(&mut self, pc: usize, round: u32) {
        self.set_outcome(Outcome::Synchronised(Some(round)));
        self.control = Control::Busy { pc, left: SYNC_RESUME.0 as u32 };
    }

    fn time_out(&mut self) {
        self.sync_timeout = true;
        self.counters.sync_timeouts += 1;
        self.set_outcome(Outcome::Synchronised(None));
    }

    fn set_outcome(&mut self, outcome: Outcome) {
        let current = self.current.as_mut().expect("a `sync slave` that waits");
        current.outcome = Some(outcome);
    }

    fn is_true(&mut self, Guard { negated, condition }: Guard) -> Result<bool, Trap> {
        let holds = match condition {
            Condition::Always => true,
            Condition::Count { counter, every } => self.count(counter, every),
            Condition::Fresh(message) => self.receivers[self.receiver(message)?].is_fresh,
            Condition::Received => self.rx_fresh,
            Condition::SyncTimeout => self.sync_timeout,
            Condition::Overrun => {
                let was_set = self.overrun;
                self.overrun = false;
                was_set
            }
            Condition::Flag(flag) => self.flags >> flag & 1 == 1,
            Condition::Transmitting => self.transmitter.is_busy(),
            Condition::LinkUp => self.link_up,
            Condition::Immediate { word, relation, value } => {
                relation.holds(self.word(word)?, value as u32)
            }
            Condition::Words { left, relation, right } => {
                let left = self.word(left)?;
                relation.holds(left, self.word(right)?)
            }
        };
        Ok(if negated { !holds } else { holds })
    }

    fn count(&mut self, counter: u8, every: u32) -> bool {
        let count = self.counts[usize::from(counter)] + 1;
        let is_true = count >= every;
        self.counts[usize::from(counter)] = if is_true { 0 } else { count };
        is_true
    }

    fn word(&self, BufferWord { buffer, index }: BufferWord) -> Result<u32, Trap> {
        let words = self.data.get(usize::from(buffer.0)).ok_or(Trap::Buffer)?.latest();
        words.get(usize::from(index)).copied().ok_or(Trap::Index)
    }
}

/// A program of all addresses ends behind the last one, which then stands for that.
fn address(pc: usize) -> Address {
    Address::new(pc.min(PROGRAM_WORDS - 1)).expect("an address within the program")
}
