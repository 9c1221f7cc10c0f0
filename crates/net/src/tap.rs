//! What a capture at some ports sees.

use crate::frame::Frame;
use onbeat_model::system::{ChannelId, NoiseId, PortId, StreamIndex};
use onbeat_model::time::{NetTime, SyncedTime};

/// One transmission at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its preamble starts.
    pub at: NetTime,
    /// The port that sends.
    pub port: PortId,
    /// Whose frame it is.
    pub flow: FlowRef,
    /// Its number among the frames of its flow, from 0, modulo 2³².
    pub sequence: u32,
    /// Destination address to FCS.
    pub octets: u16,
    /// When its program or source released it, in true time.
    pub released: NetTime,
    /// What its talker's copy of the network clock read then.
    pub captured: SyncedTime,
    /// A protocol's frame from its destination address on, without padding and FCS. Empty for
    /// others: the engine has no octets of theirs.
    pub data: Vec<u8>,
}

/// Whose frame a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowRef {
    /// A channel's.
    Channel(ChannelId),
    /// A stream's.
    Stream(StreamIndex),
    /// A noise source's.
    Noise(NoiseId),
    /// A protocol's.
    Protocol,
}

/// Keeps the transmissions at chosen ports until they are taken.
#[derive(Debug)]
pub(crate) struct Tap {
    /// Per port; empty while there is no tap.
    on: Vec<bool>,
    /// How many flows are channels, how many are channels or streams, and how many are these or
    /// noise. The others are of protocols.
    bounds: [u32; 3],
    seen: Vec<Transmission>,
}

impl Tap {
    pub(crate) fn new(channels: usize, streams: usize, noise: usize) -> Self {
        let bounds = [channels, channels + streams, channels + streams + noise];
        let bounds = bounds.map(|count| count as u32);
        Self { on: Vec::new(), bounds, seen: Vec::new() }
    }

    /// Taps these of `count` ports.
    pub(crate) fn add(&mut self, count: usize, ports: &[PortId]) {
        self.on.resize(count, false);
        for port in ports {
            self.on[port.index()] = true;
        }
    }

    /// Whether what a port sends is kept.
    pub(crate) fn is_on(&self, port: u32) -> bool {
        self.on.get(port as usize) == Some(&true)
    }

    /// Whose frames those of a flow are.
    pub(crate) fn flow(&self, flow: u32) -> FlowRef {
        let [streams, noise, protocols] = self.bounds;
        match flow {
            _ if flow < streams => FlowRef::Channel(ChannelId(flow)),
            _ if flow < noise => FlowRef::Stream(StreamIndex(flow - streams)),
            _ if flow < protocols => FlowRef::Noise(NoiseId(flow - noise)),
            _ => FlowRef::Protocol,
        }
    }

    /// The transmission of a frame starts.
    pub(crate) fn see(
        &mut self,
        now: NetTime,
        port: u32,
        (flow, data): (FlowRef, Vec<u8>),
        frame: &Frame,
        captured: SyncedTime,
    ) {
        let Frame { released, sequence, octets, .. } = *frame;
        self.seen.push(Transmission {
            at: now,
            port: PortId(port),
            flow,
            sequence,
            octets,
            released,
            captured,
            data,
        });
    }

    pub(crate) fn take(&mut self) -> Vec<Transmission> {
        std::mem::take(&mut self.seen)
    }
}
