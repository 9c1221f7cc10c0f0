//! The reference interpreter: one station, cycle by cycle, as hardware does it. It has counters
//! that count, buffers that are filled and drained a word at a time, and an octet on the wire; it
//! computes no instant ahead. So it is another derivation of what
//! `onbeat_runtime::network_code::station` computes, and the two have to agree.
//!
//! A cycle is, in this order: its inputs, the transmitter, the countdown, the copies of words, and
//! at last the control, which sees all of these.

mod banks;
mod control;
mod transmitter;

use banks::Banks;
use control::Control;
use onbeat_model::units::MacAddress;
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{Address, BufferId, COUNTERS, FLAGS, MessageId};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::station::AccessError;
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use transmitter::Transmitter;

/// What a station has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationRecord {
    /// Its instructions, each when the next one is fetched.
    pub trace: Vec<TraceEntry>,
    /// Its frames, each when it has left.
    pub sent: Vec<SentFrame>,
}

/// A frame that has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// When the first octet of its preamble began.
    pub at: Cycles,
    /// What it carries.
    pub content: SentContent,
}

/// What a frame that has left carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentContent {
    /// Data.
    Data {
        /// As what.
        message: MessageId,
        /// Its words.
        words: Vec<u32>,
    },
    /// The beginning of a round.
    Sync {
        /// Which one.
        round: u32,
    },
}

/// One station. Inputs are those of the cycle that [`Interpreter::now`] says.
#[derive(Clone, Debug)]
pub struct Interpreter {
    program: StationProgram,
    now: u64,
    control: Control,
    /// The instruction that is carried out, which becomes an entry of the trace.
    current: Option<Current>,
    transmitter: Transmitter,
    send_buffer: SendBuffer,
    countdown: Option<Countdown>,
    /// The frame that began a round in this cycle.
    strobe: Option<Strobe>,
    /// Of which station is the round: none yet, itself, another.
    round_source: Option<Option<MacAddress>>,
    next_round: u32,
    data: Vec<Banks>,
    receivers: Vec<Receiver>,
    copy: Option<Copying>,
    counts: [u32; COUNTERS as usize],
    flags: u16,
    link_up: bool,
    rx_fresh: bool,
    sync_timeout: bool,
    overrun: bool,
    counters: StationCounters,
}

#[derive(Clone, Debug)]
struct Current {
    address: Address,
    issued: u64,
    /// None while a `sync slave` waits.
    outcome: Option<Outcome>,
}

/// Counts down by one in each cycle behind that of its `future`, and stays at 0.
#[derive(Clone, Debug)]
struct Countdown {
    left: u32,
    target: Address,
}

#[derive(Clone, Debug)]
struct Strobe {
    round: u32,
    source: MacAddress,
    /// Whether it is not of the station that began the round it came in.
    is_second_master: bool,
}

/// What comes is written to another bank than the one that is complete.
#[derive(Clone, Debug)]
struct Receiver {
    banks: Banks,
    is_fresh: bool,
}

/// A `receive`: a word in each cycle behind that of its issue.
#[derive(Clone, Debug)]
struct Copying {
    receiver: usize,
    buffer: usize,
    next: usize,
}

/// Filled with a word in each cycle behind that of `create`, drained by the transmitter.
#[derive(Clone, Debug)]
struct SendBuffer {
    words: Vec<u32>,
    /// What `create` has made and no `send` has taken: its length.
    created: Option<usize>,
    /// Words that are there of the last `create`.
    filled: usize,
    /// From which buffer, and how many, while it is filled.
    filling: Option<(usize, usize)>,
}

impl SendBuffer {
    /// A word for the transmitter.
    ///
    /// # Panics
    /// When it is not there yet, which the times of `create` and `send` exclude.
    fn drain(&self, index: usize) -> u32 {
        assert!(index < self.filled, "word {index} of {} is sent", self.filled);
        self.words[index]
    }
}

impl Interpreter {
    /// A station at cycle 0. Its link is down, its flags are not set.
    ///
    /// # Panics
    /// When the program exceeds a limit ([`StationProgram::keeps_limits`]).
    pub fn new(program: StationProgram) -> Self {
        assert!(program.keeps_limits(), "the program of {} exceeds a limit", program.station);
        let receiver = |words| Receiver { banks: Banks::new(words), is_fresh: false };
        let longest = program.buffers.iter().map(|buffer| usize::from(buffer.words)).max();
        Self {
            now: 0,
            control: Control::Fetch { pc: 0 },
            current: None,
            transmitter: Transmitter::new(program.medium),
            send_buffer: SendBuffer {
                words: vec![0; longest.unwrap_or(0)],
                created: None,
                filled: 0,
                filling: None,
            },
            countdown: None,
            strobe: None,
            round_source: None,
            next_round: 0,
            data: program.buffers.iter().map(|buffer| Banks::new(buffer.words)).collect(),
            receivers: program.messages.iter().map(|message| receiver(message.words)).collect(),
            copy: None,
            counts: [0; COUNTERS as usize],
            flags: 0,
            link_up: false,
            rx_fresh: false,
            sync_timeout: false,
            overrun: false,
            counters: StationCounters::default(),
            program,
        }
    }

    /// The cycle that is carried out next.
    pub fn now(&self) -> Cycles {
        Cycles(self.now)
    }

    /// What it has counted.
    pub fn counters(&self) -> &StationCounters {
        &self.counters
    }

    /// The instruction that is carried out: its address, when it was issued and, unless it waits
    /// for the beginning of a round, what came of it.
    pub fn current(&self) -> Option<(Address, Cycles, Option<Outcome>)> {
        let current = self.current.as_ref()?;
        Some((current.address, Cycles(current.issued), current.outcome))
    }

    /// A data frame is received.
    pub fn data_received(&mut self, message: MessageId, words: &[u32]) {
        let format = self.program.messages.iter().position(|format| format.id == message);
        let Some(receiver) = format.and_then(|index| self.receivers.get_mut(index)) else {
            self.counters.data_unknown += 1;
            return;
        };
        if words.len() != receiver.banks.latest().len() {
            self.counters.data_wrong_length += 1;
            return;
        }
        receiver.banks.write(words);
        self.counters.data_received += 1;
        if receiver.is_fresh {
            self.counters.data_overwritten += 1;
        }
        receiver.is_fresh = true;
    }

    /// The EtherType of a frame that begins a round has come. There is at most one in a cycle; the
    /// first is it.
    pub fn sync_received(&mut self, round: u32, source: MacAddress) {
        let is_second_master = self.round_source.is_some_and(|of| of != Some(source));
        let strobe = Strobe { round, source, is_second_master };
        if self.strobe.is_some() {
            self.discard(&strobe);
        } else {
            self.strobe = Some(strobe);
        }
    }

    /// A frame has come whose check sequence is wrong.
    pub fn damaged(&mut self) {
        self.counters.damaged += 1;
    }

    /// The application writes a buffer.
    ///
    /// # Errors
    /// When there is no such buffer, it is not the application's to write, or it has another
    /// length.
    pub fn write(&mut self, buffer: BufferId, words: &[u32]) -> Result<(), AccessError> {
        let banks = self.data.get_mut(usize::from(buffer.0)).ok_or(AccessError::Buffer)?;
        match self.program.buffers[usize::from(buffer.0)].role {
            BufferRole::Input => Err(AccessError::Input),
            BufferRole::Output if words.len() != banks.latest().len() => Err(AccessError::Length),
            BufferRole::Output => {
                banks.write(words);
                Ok(())
            }
        }
    }

    /// The application reads a buffer. What `receive` is still copying is read where it is from.
    ///
    /// # Errors
    /// When there is no such buffer.
    pub fn read(&self, buffer: BufferId) -> Result<&[u32], AccessError> {
        let index = usize::from(buffer.0);
        match &self.copy {
            Some(copy) if copy.buffer == index => Ok(self.receivers[copy.receiver].banks.pinned()),
            _ => self.data.get(index).map(Banks::latest).ok_or(AccessError::Buffer),
        }
    }

    /// The application sets a flag, or clears it.
    ///
    /// # Errors
    /// When there is no such flag.
    pub fn set_flag(&mut self, flag: u8, is_set: bool) -> Result<(), AccessError> {
        if flag >= FLAGS {
            return Err(AccessError::Flag);
        }
        self.flags = self.flags & !(1 << flag) | u16::from(is_set) << flag;
        Ok(())
    }

    /// The link has come up or gone down.
    pub fn link(&mut self, is_up: bool) {
        self.link_up = is_up;
    }

    /// Carries out one cycle.
    pub fn cycle(&mut self, record: &mut StationRecord) {
        if let Some(frame) = self.transmitter.cycle(self.now, &self.send_buffer) {
            record.sent.push(frame);
        }
        if let Some(countdown) = &mut self.countdown {
            countdown.left = countdown.left.saturating_sub(1);
        }
        self.copy_words();
        self.control(record);
        if let Some(strobe) = self.strobe.take() {
            self.discard(&strobe);
        }
        self.now += 1;
    }

    /// Carries out the cycles before `until`. Those in which nothing but counters changes it does
    /// at once.
    pub fn run(&mut self, until: Cycles, record: &mut StationRecord) {
        while self.now < until.0 {
            match self.quiet_cycles().min(until.0 - self.now) {
                0 => self.cycle(record),
                cycles => self.skip(cycles),
            }
        }
    }

    /// One word of each copy.
    fn copy_words(&mut self) {
        if let Some((buffer, length)) = self.send_buffer.filling {
            let next = self.send_buffer.filled;
            self.send_buffer.words[next] = self.data[buffer].pinned()[next];
            self.send_buffer.filled = next + 1;
            if next + 1 == length {
                self.send_buffer.filling = None;
                self.data[buffer].unpin();
            }
        }
        if let Some(copy) = &mut self.copy {
            let receiver = &mut self.receivers[copy.receiver];
            let word = receiver.banks.pinned()[copy.next];
            self.data[copy.buffer].put(copy.next, word);
            copy.next += 1;
            if copy.next == receiver.banks.latest().len() {
                receiver.banks.unpin();
                self.copy = None;
            }
        }
    }

    fn discard(&mut self, strobe: &Strobe) {
        self.counters.syncs_discarded += 1;
        if strobe.is_second_master {
            self.counters.second_masters += 1;
        }
    }

    /// In how many cycles from now on no more happens than that counters count.
    fn quiet_cycles(&self) -> u64 {
        let is_copying = self.send_buffer.filling.is_some() || self.copy.is_some();
        if is_copying || self.strobe.is_some() {
            return 0;
        }
        let control = match self.control {
            Control::Fetch { .. } | Control::Stalled { .. } | Control::Announcing { .. } => 0,
            // The cycle in which a counter comes to 0 is one in which something happens.
            Control::Busy { left, .. } | Control::Listening { left, .. } => u64::from(left) - 1,
            Control::Halting => self.countdown.as_ref().map_or(0, |c| u64::from(c.left) - 1),
            Control::Stopped => u64::MAX,
        };
        control.min(self.transmitter.quiet_cycles())
    }

    /// As many cycles as [`Interpreter::quiet_cycles`] says, or fewer.
    fn skip(&mut self, cycles: u64) {
        // Whatever counts down by more than it has stays at 0, and nothing but a countdown does.
        let cycles_32 = u32::try_from(cycles).unwrap_or(u32::MAX);
        if let Some(countdown) = &mut self.countdown {
            countdown.left = countdown.left.saturating_sub(cycles_32);
        }
        if let Control::Busy { left, .. } | Control::Listening { left, .. } = &mut self.control {
            *left -= cycles_32;
        }
        self.transmitter.skip(cycles);
        self.now += cycles;
    }
}
