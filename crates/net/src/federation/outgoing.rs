//! The channel of a connection: what waits at its sender, and what is in the network.

use super::Skeleton;
use super::chain::Instance;
use crate::channel::channel_parameters;
use crate::engine::Engine;
use onbeat_model::federation::{Connection, Tag};
use onbeat_model::system::ChannelId;
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_runtime::federate::wire::{Content, FederateMessage, HEADER};
use onbeat_runtime::talker::{ChannelParameters, Talker};
use onbeat_runtime::wire::{Pdu, unwrap};
use std::collections::VecDeque;

/// So many messages wait at a sender; with more of them a run ends.
pub(super) const HELD_MAX: usize = 1 << 16;

/// A message between two federates.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) tag: Tag,
    /// When its federate sent it.
    pub(super) sent: NetTime,
    /// When the channel took it, also by the sender's clock.
    pub(super) captured: (NetTime, SyncedTime),
    /// By how much it came later than its capture and the channel's fixed delay.
    pub(super) lateness: Span,
    pub(super) is_held: bool,
    pub(super) because: Vec<Instance>,
}

/// The sending end of a channel, and its frames in the network.
#[derive(Debug)]
pub(super) struct Outgoing {
    id: ChannelId,
    talker: Talker,
    /// The message's place for the header and the value, as long as the channel's.
    octets: Vec<u8>,
    port: u16,
    reader: u16,
    is_physical: bool,
    pub(super) fixed_delay: Span,
    pub(super) held: VecDeque<Message>,
    /// Whether somebody looks when the rate allows the next one.
    pub(super) is_waiting: bool,
    /// With the numbers of their frames, in order.
    in_network: VecDeque<(u16, Message)>,
}

impl Outgoing {
    /// The sending end of a connection that has a channel. `port` is the number of the reader's
    /// port.
    pub(super) fn new(
        subject: &Skeleton<'_>,
        id: ChannelId,
        connection: &Connection,
        port: usize,
    ) -> Self {
        let channel = subject.system.channel(id);
        Self {
            id,
            // Bounds of connections rest on the declared rate alone.
            talker: Talker::new(ChannelParameters {
                catch_up: Span::ZERO,
                ..channel_parameters(subject.system, channel)
            }),
            octets: vec![0; channel.size.get() as usize],
            // The numbers of ports and federates are short: the figures do not depend on them.
            port: port as u16,
            reader: connection.to.0 as u16,
            is_physical: connection.physical,
            fixed_delay: channel.fixed_delay,
            held: VecDeque::new(),
            is_waiting: false,
            in_network: VecDeque::new(),
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Gives the engine what waits, as far as the declared rate allows it when the sender's clock
    /// reads `now`; returns what it must read for the next one.
    pub(super) fn send(&mut self, engine: &mut Engine, now: SyncedTime) -> Option<SyncedTime> {
        while let Some(message) = self.held.front_mut() {
            // The value is of no interest: what is behind the header stays zero.
            let room = self.octets.len().saturating_sub(HEADER);
            let value = vec![0; room];
            let content = match self.is_physical {
                true => Content::Physical(&value),
                false => Content::Tagged(message.tag, &value),
            };
            let whole = FederateMessage { port: self.port, federate: self.reader, content };
            if whole.octets() <= self.octets.len() {
                whole.emit(&mut self.octets);
            }
            match self.talker.write(now, &self.octets, false) {
                Err(exceeded) => {
                    message.is_held = true;
                    return Some(exceeded.until);
                }
                Ok(sent) => {
                    message.captured = (engine.now(), sent.capture);
                    engine.send(self.id, self.talker.frame());
                    let message = self.held.pop_front()?;
                    self.in_network.push_back((sent.sequence as u16, message));
                }
            }
        }
        None
    }

    /// The message of a frame that is at the reader's host, and how many before it did not come.
    /// None of a frame that is none of those in the network.
    pub(super) fn arrive(&mut self, frame: &[u8]) -> Option<(Message, u64)> {
        let (_, octets) = unwrap(frame).ok()?;
        let pdu = Pdu::parse(octets).ok()?;
        let at = self.in_network.iter().position(|(number, _)| *number == pdu.number)?;
        let (_, mut message) = self.in_network.drain(..=at).next_back()?;
        if let Ok((FederateMessage { content: Content::Tagged(tag, _), .. }, _)) =
            FederateMessage::parse(pdu.payload)
        {
            message.tag = tag;
        }
        Some((message, at as u64))
    }

    /// How many frames did not come, if none is in the network any more.
    pub(super) fn missing(&self) -> u64 {
        self.in_network.len() as u64
    }
}
