//! What takes how long, in cycles of a station's clock: one table for assembler, verifier,
//! interpreter and executor. It is part of the definition of an instruction, not a measurement.

use super::instruction::Instruction;
use onbeat_model::units::{Octets, frame};
use std::ops::{Add, AddAssign, Sub};

/// Instants since a station was started and durations, in cycles of the station's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

impl Cycles {
    /// The end of time.
    pub const NEVER: Self = Self(u64::MAX);
}

impl Add for Cycles {
    type Output = Self;

    /// At most [`Cycles::NEVER`].
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cycles {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Cycles {
    type Output = Self;

    /// At least none.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The nanoseconds of a cycle: the clock of an interface of 1 Gbit/s, which sends an octet in each.
pub const CYCLE_NS: u32 = 8;

/// From the issue of a sending instruction to the first octet of the preamble.
pub const SEND_START: Cycles = Cycles(6);
/// From the last octet of a frame to its being received.
pub const RECEIVE_STORE: Cycles = Cycles(8);
/// From the last octet of the EtherType of a frame that begins a round to the issue of the next
/// instruction, at its sender and at its receivers.
pub const SYNC_RESUME: Cycles = Cycles(1);

/// Octets of a data frame before its data, from the EtherType on: flags, identifier, length.
pub const DATA_HEADER: Octets = Octets::new(4);
/// Words that a frame carries at most: 1,496 of its 1,500 octets.
pub const FRAME_WORDS: u16 = 374;

/// From the issue of an instruction to that of the next one, where it waits for nothing. `words` is
/// the length of the buffer that a `receive` writes; it counts whether or not a frame is there.
///
/// Some instructions wait, and then take longer: [`Instruction::Halt`] for its countdown,
/// [`Instruction::SyncMaster`] for the EtherType of its own frame, [`Instruction::SyncSlave`] for
/// another's, [`Instruction::Send`], [`Instruction::SyncMaster`] and [`Instruction::Create`] for
/// the transmitter.
pub fn issue_cycles(instruction: Instruction, words: u16) -> Cycles {
    Cycles(match instruction {
        Instruction::Nop | Instruction::Halt => 1,
        Instruction::SyncMaster | Instruction::SyncSlave { .. } => 1,
        Instruction::Create { .. } | Instruction::Send { .. } | Instruction::Future { .. } => 2,
        Instruction::Receive { .. } => 2 + u64::from(words),
        Instruction::Branch { .. } => 3,
    })
}

/// What a station's frames are sent over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    /// Cycles of an octet: 1 at 1 Gbit/s, 10 at 100 Mbit/s, 100 at 10 Mbit/s.
    pub octet_cycles: u32,
    /// Whether frames have a VLAN tag, by which bridges know their priority.
    pub tagged: bool,
}

impl Medium {
    /// Untagged, at 1 Gbit/s.
    pub const GIGABIT: Self = Self { octet_cycles: 1, tagged: false };

    fn cycles(self, octets: Octets) -> Cycles {
        Cycles(u64::from(octets.get()) * u64::from(self.octet_cycles))
    }

    /// From the first octet of the preamble to the last of the frame check sequence of a frame with
    /// `words` words of data; one that begins a round has one word.
    pub fn frame_cycles(self, words: u16) -> Cycles {
        let header = if self.tagged { frame::HEADER + frame::TAG } else { frame::HEADER };
        let shortest = if self.tagged { frame::MIN_TAGGED } else { frame::MIN_UNTAGGED };
        let octets = header + DATA_HEADER + Octets::new(4 * u32::from(words)) + frame::FCS;
        self.cycles(frame::PREAMBLE + octets.max(shortest))
    }

    /// Behind a frame, until the next one may begin.
    pub fn gap_cycles(self) -> Cycles {
        self.cycles(frame::GAP)
    }

    /// From the first octet of the preamble to the last of the EtherType, which is the reference
    /// point of a frame that begins a round.
    pub fn ethertype_cycles(self) -> Cycles {
        let header = if self.tagged { frame::HEADER + frame::TAG } else { frame::HEADER };
        self.cycles(frame::PREAMBLE + header)
    }
}
