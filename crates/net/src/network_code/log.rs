//! What happened to a station and what it did, for whoever compares it with another one.

use onbeat_model::units::MacAddress;
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::TraceEntry;

/// What happened to a station in one of its cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationInput {
    /// A data frame was received.
    Data(MessageId, Vec<u32>),
    /// The EtherType of a frame that begins a round had come.
    Sync(u32, MacAddress),
    /// Its application wrote a buffer.
    Write(BufferId, Vec<u32>),
    /// Its application set a flag, or cleared it.
    Flag(u8, bool),
    /// Its link came up or went down.
    Link(bool),
}

/// A frame that a station handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationFrameSent {
    /// The cycle of the first octet of its preamble.
    pub at: Cycles,
    /// What it carries.
    pub content: StationContent,
}

/// What a frame that a station handed out carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationContent {
    /// A message with its words.
    Data(MessageId, Vec<u32>),
    /// The beginning of this round.
    Round(u32),
}

/// One start of a station, up to its failure or the end of the run. Cycles count from that start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationLog {
    /// What happened to it, in the order in which it was told.
    pub inputs: Vec<(Cycles, StationInput)>,
    /// Its instructions.
    pub trace: Vec<TraceEntry>,
    /// Its frames.
    pub sent: Vec<StationFrameSent>,
    /// The first cycle that was not carried out.
    pub end: Cycles,
}
