//! What each instruction does.

use super::{
    Activity, Attoseconds, GuardPlace, Player, ReplayIncident, ReplayStep, ReplayWorld, SEND_START,
    Trap,
};
use onbeat_runtime::network_code::instruction::{BufferId, Instruction, MessageId};
use onbeat_runtime::network_code::program::BufferRole;
use onbeat_runtime::network_code::timing::{Cycles, issue_cycles};

impl<W: ReplayWorld> Player<'_, W> {
    /// Carries out the next instruction of a station.
    pub(super) fn execute(&mut self, station: usize) {
        let address = self.machines[station].at;
        let Some(Some(instruction)) = self.codes[station].get(address).copied() else {
            return self.trap(station, Trap::End);
        };
        let issued = self.issue(station, instruction);
        if issued > self.machines[station].now {
            // It waits for the transmitter: what others do until then comes first.
            let machine = &mut self.machines[station];
            let is_late = machine.countdown.is_some_and(|(end, _)| end <= issued);
            machine.now = issued;
            if is_late && matches!(instruction, Instruction::Create { .. }) {
                self.incident(ReplayIncident::Stalled { station, address });
            }
            return;
        }
        self.note(station, address);
        let mut cycles = issue_cycles(instruction, 0);
        match instruction {
            Instruction::Nop => {}
            Instruction::Create { buffer } => self.create(station, buffer),
            Instruction::Send { message } => {
                if let Err(trap) = self.send(station, message) {
                    return self.trap(station, trap);
                }
            }
            Instruction::Receive { message, buffer } => {
                let words = self.network.stations[station].program.buffer(buffer);
                cycles = issue_cycles(instruction, words.map_or(0, |buffer| buffer.words));
                self.receive(station, message, buffer);
            }
            Instruction::Future { target, delay } => {
                let machine = &mut self.machines[station];
                let end = issued + machine.cycles(Cycles(delay.into()));
                if machine.countdown.replace((end, target.index())).is_some() {
                    machine.overrun = true;
                    self.incident(ReplayIncident::Replaced { station, address });
                }
            }
            Instruction::Halt => return self.halt(station),
            Instruction::SyncMaster => return self.begin_round(station, issued),
            Instruction::SyncSlave { timeout } => {
                let machine = &mut self.machines[station];
                let until = issued + machine.cycles(Cycles(timeout.into()));
                let is_first = !machine.is_synchronised && !machine.timeout;
                machine.activity = Activity::Waits { until: (!is_first).then_some(until) };
                machine.at += 1;
                return;
            }
            Instruction::Branch { guard, target } => {
                let is_true = self.condition(station, guard);
                let is_taken = is_true != guard.negated;
                if let Some(step) = self.replay.steps.last_mut() {
                    step.taken = Some(is_taken);
                }
                let machine = &mut self.machines[station];
                machine.now += machine.cycles(cycles);
                machine.at = if is_taken { target.index() } else { address + 1 };
                return;
            }
        }
        let machine = &mut self.machines[station];
        machine.now += machine.cycles(cycles);
        machine.at += 1;
    }

    /// When an instruction is issued that is due now.
    fn issue(&self, station: usize, instruction: Instruction) -> Attoseconds {
        let machine = &self.machines[station];
        match instruction {
            Instruction::Create { .. } => machine.now.max(machine.data_end),
            Instruction::Send { .. } | Instruction::SyncMaster => {
                machine.now.max(machine.gap_end - machine.cycles(SEND_START))
            }
            _ => machine.now,
        }
    }

    pub(super) fn incident(&mut self, incident: ReplayIncident) {
        self.replay.incidents.push(incident);
    }

    fn note(&mut self, station: usize, address: usize) {
        if !self.limits.keeps_steps {
            return;
        }
        let machine = &self.machines[station];
        self.replay.steps.push(ReplayStep {
            station,
            round: machine.round,
            address,
            issued: machine.now,
            offset: (machine.now - machine.began).0.div_euclid(machine.cycle.0) as i64,
            taken: None,
        });
    }

    fn trap(&mut self, station: usize, trap: Trap) {
        let machine = &mut self.machines[station];
        machine.activity = Activity::Stopped;
        let address = machine.at;
        self.incident(ReplayIncident::Trapped { station, address, trap: trap.into() });
    }

    fn create(&mut self, station: usize, buffer: BufferId) {
        let Some(of) = self.network.stations[station].program.buffer(buffer) else { return };
        let address = self.machines[station].at;
        let (is_written, words) = self.machines[station].buffers[usize::from(buffer.0)].clone();
        let words = match of.role {
            BufferRole::Output => {
                let values = (0..usize::from(of.words)).map(|index| {
                    let value = self.world.written(station, buffer.0, index);
                    vec![value.map_or((0, u32::MAX), |value| (value, value))]
                });
                let first = self.words.len();
                self.words.extend(values);
                (first..self.words.len()).collect()
            }
            BufferRole::Input => words,
        };
        if of.role == BufferRole::Input && !is_written {
            self.incident(ReplayIncident::Unwritten { station, address });
        }
        self.machines[station].created = Some(words);
    }

    fn send(&mut self, station: usize, message: MessageId) -> Result<(), Trap> {
        let program = &self.network.stations[station].program;
        let format = program.message(message).ok_or(Trap::Message(message))?;
        let machine = &mut self.machines[station];
        let words = machine.created.take().ok_or(Trap::NothingCreated)?;
        if words.len() != usize::from(format.words) {
            return Err(Trap::Length);
        }
        let begin = machine.now + machine.cycles(SEND_START);
        machine.data_end = begin + machine.cycles(program.medium.frame_cycles(format.words));
        machine.gap_end = machine.data_end + machine.cycles(program.medium.gap_cycles());
        let (address, is_synchronised) = (machine.at, machine.is_synchronised);
        if !is_synchronised {
            self.incident(ReplayIncident::Unsynchronised { station, address });
        }
        let round = self.machines[station].round;
        for (index, word) in words.iter().enumerate() {
            let may = &mut self.words[*word];
            if let Some(value) = self.world.sent(message, round, index)
                && may.iter().any(|range| (range.0..=range.1).contains(&value))
            {
                *may = vec![(value, value)];
            }
        }
        self.transmit(station, Some((message, words)), address, begin);
        Ok(())
    }

    /// Takes what has come by now into the receive buffer.
    pub(super) fn take(&mut self, station: usize, message: MessageId) {
        let machine = &mut self.machines[station];
        let buffer = &mut machine.receive[usize::from(message.0)];
        buffer.due.sort_by_key(|(at, _)| *at);
        let mut is_lost = false;
        while buffer.due.first().is_some_and(|(at, _)| *at <= machine.now) {
            buffer.words = buffer.due.remove(0).1;
            is_lost |= buffer.pending;
            buffer.pending = true;
        }
        if is_lost {
            self.incident(ReplayIncident::Lost { station, message });
        }
    }

    fn receive(&mut self, station: usize, message: MessageId, buffer: BufferId) {
        self.take(station, message);
        let machine = &mut self.machines[station];
        let from = &mut machine.receive[usize::from(message.0)];
        machine.received = std::mem::take(&mut from.pending);
        let address = machine.at;
        if machine.received {
            machine.buffers[usize::from(buffer.0)] = (true, from.words.clone());
        } else {
            self.incident(ReplayIncident::Empty { station, address });
        }
    }

    fn halt(&mut self, station: usize) {
        let machine = &mut self.machines[station];
        let address = machine.at;
        let Some((end, label)) = machine.countdown.take() else {
            return self.trap(station, Trap::NoFuture);
        };
        let is_late = end <= machine.now;
        machine.overrun |= is_late;
        machine.now = end.max(machine.now + machine.cycle);
        machine.at = label;
        if is_late {
            self.incident(ReplayIncident::Overrun { station, address });
        }
    }

    /// Which guard a branch evaluates.
    pub(super) fn place(&self, station: usize, negated: bool) -> GuardPlace {
        let machine = &self.machines[station];
        GuardPlace { station, round: machine.round, address: machine.at, negated }
    }
}
