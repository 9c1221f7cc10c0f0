//! Channels that a station carries: from programs into its output buffers, and from its input
//! buffers to programs.

use super::setup::{ChannelEnd, StationChannel};
use onbeat_model::system::ChannelId;
use onbeat_model::time::NetTime;
use onbeat_runtime::network_code::channel::{IncomingMessages, OutgoingMessage, OutgoingMessages};
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Header, MAX_FRAME, emit};

impl CarriedTalker {
    /// The frame of a message that no program has written, and that is like no other.
    fn model(&mut self) -> Vec<u8> {
        let ChannelParameters { destination, source, stream_id, vlan, pcp, .. } =
            self.of.parameters;
        self.modelled = self.modelled.wrapping_add(1);
        let header = Header {
            destination,
            source,
            vlan,
            pcp,
            r_tag: None,
            number: self.modelled as u16,
            instance: 1,
            uncertain: false,
            stream_id,
            timestamp: self.modelled,
            meeting: 0,
        };
        let data = vec![0; self.of.parameters.stream_data_length().get() as usize];
        let mut frame = vec![0; MAX_FRAME];
        let length = emit(&header, &data, &mut frame);
        frame.truncate(length);
        frame
    }
}

/// The channels of a station.
#[derive(Debug, Default)]
pub(super) struct Carrier {
    talkers: Vec<CarriedTalker>,
    listeners: Vec<CarriedListener>,
}

#[derive(Debug)]
struct CarriedTalker {
    of: StationChannel,
    /// Each with when it was written.
    messages: OutgoingMessages<NetTime>,
    /// How many the engine has modelled.
    modelled: u32,
}

#[derive(Debug)]
struct CarriedListener {
    of: StationChannel,
    /// Its place among the channel's listeners.
    listener: usize,
    messages: IncomingMessages,
}

/// A message that has come.
#[derive(Debug)]
pub(super) struct IncomingFrame<'a> {
    pub(super) channel: ChannelId,
    pub(super) listener: usize,
    pub(super) octets: &'a [u8],
}

impl Carrier {
    pub(super) fn new(channels: &[StationChannel]) -> Self {
        let mut carrier = Self::default();
        for of in channels.iter().copied() {
            match of.end {
                ChannelEnd::Talker => {
                    let messages = OutgoingMessages::new(&of.parameters);
                    carrier.talkers.push(CarriedTalker { of, messages, modelled: 0 });
                }
                ChannelEnd::Listener(listener) => {
                    let messages = IncomingMessages::new(of.parameters);
                    carrier.listeners.push(CarriedListener { of, listener, messages });
                }
            }
        }
        carrier
    }

    /// The channels that its programs write.
    pub(super) fn written(&self) -> Vec<ChannelId> {
        self.talkers.iter().map(|talker| talker.of.channel).collect()
    }

    /// What was written is in no buffer any more.
    pub(super) fn restart(&mut self) {
        for talker in &mut self.talkers {
            talker.messages = OutgoingMessages::new(&talker.of.parameters);
        }
    }

    /// A program writes a frame: the buffer and its words if it goes there, and whether a message
    /// is lost by it.
    pub(super) fn write(
        &mut self,
        now: NetTime,
        channel: ChannelId,
        octets: &[u8],
    ) -> (Option<(BufferId, &[u32])>, bool) {
        let Some(talker) = self.talkers.iter_mut().find(|it| it.of.channel == channel) else {
            return (None, true);
        };
        let modelled = octets.is_empty().then(|| talker.model());
        match talker.messages.write(modelled.as_deref().unwrap_or(octets), now) {
            Some(OutgoingMessage::InBuffer) => {
                (Some((talker.of.buffer, talker.messages.words())), false)
            }
            Some(OutgoingMessage::Waits) => (None, false),
            Some(OutgoingMessage::Replaces) | None => (None, true),
        }
    }

    /// `create` has copied a buffer: when its message was written, and what the buffer is to have
    /// now, if that is another one.
    pub(super) fn created(&mut self, buffer: BufferId) -> Option<(NetTime, Option<&[u32]>)> {
        let talker = self.talkers.iter_mut().find(|it| it.of.buffer == buffer)?;
        let created = talker.messages.created()?;
        Some((created.with, created.has_next.then(|| talker.messages.words())))
    }

    /// `receive` has copied words into a buffer: a message, if they are one, and it is new.
    pub(super) fn received(
        &mut self,
        buffer: BufferId,
        words: &[u32],
    ) -> Option<IncomingFrame<'_>> {
        let end = self.listeners.iter_mut().find(|it| it.of.buffer == buffer)?;
        let octets = end.messages.receive(words)?;
        Some(IncomingFrame { channel: end.of.channel, listener: end.listener, octets })
    }
}
