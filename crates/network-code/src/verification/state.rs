//! What a station is in between two instructions of a round, as far as later ones depend on it.

use super::values::{Facts, WordSource};
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};

/// Rounds after which a word counts as any word.
const AGE_MAX: u8 = 2;

/// A station in a round. Offsets are cycles from its first instruction in the round.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PathState {
    /// When the next instruction is issued.
    pub(super) offset: i64,
    /// Which.
    pub(super) at: usize,
    /// The countdown's end and label.
    pub(super) countdown: Option<(i64, usize)>,
    /// Until when the last data frame is on the wire: `create` waits for it.
    pub(super) data_end: i64,
    /// Until when the transmitter is busy, with the gap.
    pub(super) gap_end: i64,
    /// What the send buffer has.
    pub(super) created: Option<CreatedBuffer>,
    /// OVERRUN.
    pub(super) overrun: bool,
    /// SYNC_TIMEOUT.
    pub(super) timeout: bool,
    /// RX_FRESH, where a guard looks at it.
    pub(super) received: bool,
    /// The counters in use.
    pub(super) counters: Vec<u32>,
    /// Input buffers in use.
    pub(super) buffers: Vec<InputState>,
    /// Receive buffers in use.
    pub(super) messages: Vec<MessageState>,
    /// Which guards were true.
    pub(super) facts: Facts,
}

/// What a send buffer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CreatedBuffer {
    pub(super) words: u16,
    /// The input buffer that it is a copy of, while that is not written.
    pub(super) from: Option<u8>,
}

/// An input buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InputState {
    /// Whether a frame has been copied into it.
    pub(super) written: bool,
    /// Of which message and age, where that is one value for all stations.
    pub(super) value: Option<(MessageId, u8)>,
}

/// A receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MessageState {
    /// Whether it has a frame that is not copied.
    pub(super) pending: bool,
    /// The age of that frame, where its words are one value for all stations.
    pub(super) age: Option<u8>,
    /// How many arrivals of the round are past.
    pub(super) past: usize,
}

impl PathState {
    /// The state at the beginning of a round, `shift` cycles later than the last one's. What was
    /// learnt of words is dropped: later guards are then taken as free.
    pub(super) fn next_round(&mut self, shift: i64) {
        self.offset = 0;
        let rest = |end: i64| (end - shift).max(0);
        self.countdown = self.countdown.map(|(end, label)| (end - shift, label));
        self.data_end = rest(self.data_end);
        self.gap_end = rest(self.gap_end);
        self.facts = Facts::default();
        let older = |age: u8| Some(age + 1).filter(|age| *age <= AGE_MAX);
        for buffer in &mut self.buffers {
            let aged = |(message, age)| older(age).map(|age| (message, age));
            buffer.value = buffer.value.and_then(aged);
        }
        for message in &mut self.messages {
            message.age = message.age.and_then(older);
            message.past = 0;
        }
    }

    /// Where the words of an input buffer are from.
    pub(super) fn source(&self, buffer: BufferId, tracked: usize) -> WordSource {
        match self.buffers[tracked].value {
            Some((message, age)) => WordSource::Value { message, age },
            None => WordSource::Local { buffer: buffer.0 },
        }
    }
}
