//! Applications of stations in the engine: what they may do to a station, and one that writes
//! values that can be recognised.

use crate::random::{Purpose, Stream};
use onbeat_model::system::NodeId;
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::station::{AccessError, Station};
use std::fmt;

use super::log::StationInput;

/// The application of a station. It is called at instants of true time, and takes none.
pub trait Application: fmt::Debug + Send {
    /// Called when the station starts, also when it does so again after a failure, and at the
    /// instant that the last call gave. Gives the next one, which is later; the end of time: never.
    fn act(&mut self, now: NetTime, buffers: &mut ApplicationBuffers<'_>) -> NetTime;
}

/// What an application has of its station.
#[derive(Debug)]
pub struct ApplicationBuffers<'a> {
    pub(super) station: &'a mut Station,
    /// What it does, for the log of the station.
    pub(super) done: &'a mut Vec<StationInput>,
}

impl ApplicationBuffers<'_> {
    /// The program of the station.
    pub fn program(&self) -> &StationProgram {
        self.station.program()
    }

    /// Writes a buffer.
    ///
    /// # Errors
    /// As [`Station::write`].
    pub fn write(&mut self, buffer: BufferId, words: &[u32]) -> Result<(), AccessError> {
        self.station.write(buffer, words)?;
        self.done.push(StationInput::Write(buffer, words.to_vec()));
        Ok(())
    }

    /// Reads a buffer.
    ///
    /// # Errors
    /// As [`Station::read`].
    pub fn read(&self, buffer: BufferId) -> Result<&[u32], AccessError> {
        self.station.read(buffer)
    }

    /// Sets a flag, or clears it.
    ///
    /// # Errors
    /// As [`Station::set_flag`].
    pub fn set_flag(&mut self, flag: u8, is_set: bool) -> Result<(), AccessError> {
        self.station.set_flag(flag, is_set)?;
        self.done.push(StationInput::Flag(flag, is_set));
        Ok(())
    }
}

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApplication;

impl Application for NoApplication {
    fn act(&mut self, _now: NetTime, _buffers: &mut ApplicationBuffers<'_>) -> NetTime {
        NetTime::MAX
    }
}

/// Writes all output buffers of its station at its start, and then periodically. The first word of
/// each is how often that has happened since then, from 1; the others are those of
/// [`generated_words`]. It reads nothing and sets no flag.
#[derive(Debug)]
pub struct GeneratedValues {
    seed: u64,
    node: NodeId,
    every: Span,
    count: u32,
    /// When it writes next; none before the station has started.
    next: Option<NetTime>,
    words: Vec<u32>,
}

impl GeneratedValues {
    /// Of the station on a node, with this period.
    ///
    /// # Panics
    /// When the period is not positive.
    pub fn new(seed: u64, node: NodeId, every: Span) -> Self {
        assert!(every > Span::ZERO, "a period of {every}");
        Self { seed, node, every, count: 0, next: None, words: Vec::new() }
    }
}

impl Application for GeneratedValues {
    fn act(&mut self, now: NetTime, buffers: &mut ApplicationBuffers<'_>) -> NetTime {
        // Called at another instant, the station has started again.
        self.count = if self.next == Some(now) { self.count.wrapping_add(1) } else { 1 };
        for index in 0..buffers.program().buffers.len() {
            let buffer = &buffers.program().buffers[index];
            if buffer.role == BufferRole::Output {
                let (id, length) = (BufferId(index as u8), buffer.words);
                self.words.clear();
                self.words.extend(generated_words(self.seed, self.node, id, self.count, length));
                buffers.write(id, &self.words).expect("an output of this length");
            }
        }
        let next = now + self.every;
        self.next = Some(next);
        next
    }
}

/// What [`GeneratedValues`] writes: the count, and as many further words as the buffer has, from a
/// random stream of their own for each node, buffer and count.
pub fn generated_words(
    seed: u64,
    node: NodeId,
    buffer: BufferId,
    count: u32,
    length: u16,
) -> impl Iterator<Item = u32> {
    let index = (u64::from(count) << 8 | u64::from(buffer.0)) as usize;
    let mut stream = Stream::new(seed ^ u64::from(node.0), Purpose::NetworkCodeValues, index);
    let word = move |at| if at == 0 { count } else { stream.below(1 << 32) as u32 };
    (0..length).map(word)
}
