//! Channels over stations: their messages in data buffers.
//!
//! A buffer has what a frame of the channel has behind its EtherType: the data unit of IEEE 1722,
//! its octets in words of which the first one is the most significant, and zeros behind it.
//!
//! A program may write a little earlier than its interval, and then before the station has sent
//! what it wrote last. [`OutgoingMessages`] keeps that message until `create` has copied the one
//! before. A slot that comes before there is a new message carries the last one again, which
//! [`IncomingMessages`] drops. *Real-time*: nothing here allocates but what makes an end.

use crate::talker::ChannelParameters;
use crate::wire::{self, Frame, Header, MAX_FRAME, Pdu, STREAM_HEADER};

/// The words of a buffer that has messages of a channel; more than a frame of a station carries
/// ([`FRAME_WORDS`](super::timing::FRAME_WORDS)) if the channel cannot be carried so.
pub fn message_words(parameters: &ChannelParameters) -> u16 {
    let octets = STREAM_HEADER + parameters.stream_data_length().get() as usize;
    u16::try_from(octets.div_ceil(4)).unwrap_or(u16::MAX)
}

/// What becomes of a message that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingMessage {
    /// It is in the station's buffer as soon as the caller writes [`OutgoingMessages::words`].
    InBuffer,
    /// It waits until the one before it has been sent.
    Waits,
    /// The same, and the one that waited is lost.
    Replaces,
}

/// A talker's messages on the way to its station's output buffer. `T` goes with each message.
#[derive(Clone, Debug)]
pub struct OutgoingMessages<T> {
    words: Vec<u32>,
    waiting: Vec<u32>,
    /// What goes with the message in the buffer, and whether `create` has not copied it yet.
    of_buffer: Option<(T, bool)>,
    of_waiting: Option<T>,
}

impl<T: Copy> OutgoingMessages<T> {
    /// Of a channel of which nothing has been written.
    pub fn new(parameters: &ChannelParameters) -> Self {
        let words = vec![0; usize::from(message_words(parameters))];
        Self { waiting: words.clone(), words, of_buffer: None, of_waiting: None }
    }

    /// A program writes a frame of the channel. None if it is no such frame.
    pub fn write(&mut self, frame: &[u8], with: T) -> Option<OutgoingMessage> {
        let unit = frame.get(Frame::parse(frame).ok()?.header.unit_at()..)?;
        if !matches!(self.of_buffer, Some((_, true))) {
            into_words(unit, &mut self.words);
            self.of_buffer = Some((with, true));
            return Some(OutgoingMessage::InBuffer);
        }
        into_words(unit, &mut self.waiting);
        match self.of_waiting.replace(with) {
            None => Some(OutgoingMessage::Waits),
            Some(_) => Some(OutgoingMessage::Replaces),
        }
    }

    /// `create` has copied the buffer: what goes with the message in it, if there is any. Then the
    /// one that waited is in [`OutgoingMessages::words`], if one did.
    pub fn created(&mut self) -> Option<Created<T>> {
        let (with, _) = self.of_buffer?;
        let next = self.of_waiting.take();
        if next.is_some() {
            std::mem::swap(&mut self.words, &mut self.waiting);
        }
        self.of_buffer = Some(next.map_or((with, false), |next| (next, true)));
        Some(Created { with, has_next: next.is_some() })
    }

    /// What the buffer is to have.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}

/// What `create` has copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created<T> {
    /// What goes with the message.
    pub with: T,
    /// Whether the buffer is to have another message now.
    pub has_next: bool,
}

/// A listener's messages on their way from its station's input buffer.
#[derive(Clone, Debug)]
pub struct IncomingMessages {
    parameters: ChannelParameters,
    last: Vec<u32>,
    octets: Vec<u8>,
    frame: [u8; MAX_FRAME],
}

impl IncomingMessages {
    /// Of a channel of which nothing has been received.
    pub fn new(parameters: ChannelParameters) -> Self {
        let words = usize::from(message_words(&parameters));
        let (last, octets) = (vec![0; words], vec![0; words * 4]);
        Self { parameters, last, octets, frame: [0; MAX_FRAME] }
    }

    /// `receive` has copied these words. The frame that a bridge would have brought, from the
    /// destination address to its padding; none if it is the last message again, no data unit, or
    /// none of the channel.
    pub fn receive(&mut self, words: &[u32]) -> Option<&[u8]> {
        if words.len() != self.last.len() || words == self.last {
            return None;
        }
        self.last.copy_from_slice(words);
        for (octets, word) in self.octets.chunks_exact_mut(4).zip(words) {
            octets.copy_from_slice(&word.to_be_bytes());
        }
        let pdu = Pdu::parse(&self.octets).ok()?;
        let length = self.parameters.stream_data_length().get() as usize;
        if pdu.stream_id != self.parameters.stream_id || pdu.payload.len() != length {
            return None;
        }
        let header = Header {
            destination: self.parameters.destination,
            source: self.parameters.source,
            vlan: self.parameters.vlan,
            pcp: self.parameters.pcp,
            r_tag: None,
            number: pdu.number,
            instance: pdu.instance,
            uncertain: pdu.uncertain,
            stream_id: pdu.stream_id,
            timestamp: pdu.timestamp,
            meeting: pdu.meeting,
        };
        let length = wire::emit(&header, pdu.payload, &mut self.frame);
        Some(&self.frame[..length])
    }
}

/// A data unit in words: what it is too short for is 0, what is behind them is padding.
fn into_words(unit: &[u8], words: &mut [u32]) {
    for (at, word) in words.iter_mut().enumerate() {
        let octet = |place: usize| unit.get(4 * at + place).copied().unwrap_or(0);
        *word = u32::from_be_bytes([octet(0), octet(1), octet(2), octet(3)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talker::Talker;
    use crate::talker::tests::parameters;
    use onbeat_model::time::SyncedTime;
    use onbeat_model::units::Octets;
    use proptest::prelude::*;

    /// Frames of a channel of messages of `size` octets.
    fn frames(size: u32, count: u8) -> (ChannelParameters, Vec<Vec<u8>>) {
        let parameters = ChannelParameters { size: Octets::new(size), ..parameters() };
        let mut talker = Talker::new(parameters);
        let frame = |n: u8| {
            let at = SyncedTime::from_ns(parameters.interval.as_ns() * i64::from(n));
            talker.write(at, &vec![n; size as usize], false).expect("in time");
            talker.frame().to_vec()
        };
        let all = (0..count).map(frame).collect();
        (parameters, all)
    }

    #[test]
    fn one_message_waits_until_the_one_before_was_copied() {
        let (parameters, frames) = frames(8, 4);
        let mut out = OutgoingMessages::new(&parameters);
        assert_eq!(out.created(), None);
        assert_eq!(out.write(&frames[0], 0), Some(OutgoingMessage::InBuffer));
        let first = out.words().to_vec();
        assert_eq!(out.write(&frames[1], 1), Some(OutgoingMessage::Waits));
        assert_eq!(out.write(&frames[2], 2), Some(OutgoingMessage::Replaces));
        assert_eq!(out.words(), first);
        assert_eq!(out.created(), Some(Created { with: 0, has_next: true }));
        assert_ne!(out.words(), first);
        assert_eq!(out.created(), Some(Created { with: 2, has_next: false }));
        // The slot came again before there was a message.
        assert_eq!(out.created(), Some(Created { with: 2, has_next: false }));
        assert_eq!(out.write(&frames[3], 3), Some(OutgoingMessage::InBuffer));
        assert_eq!(out.write(&frames[0][..30], 4), None);
    }

    #[test]
    fn what_comes_again_is_no_message_and_neither_is_an_empty_buffer() {
        let (parameters, frames) = frames(8, 2);
        let mut out = OutgoingMessages::new(&parameters);
        let mut incoming = IncomingMessages::new(parameters);
        assert_eq!(incoming.receive(out.words()), None);
        out.write(&frames[0], ());
        assert_eq!(incoming.receive(out.words()), Some(&frames[0][..]));
        assert_eq!(incoming.receive(out.words()), None);
        assert_eq!(incoming.receive(&out.words()[1..]), None);
        out.created();
        out.write(&frames[1], ());
        assert_eq!(incoming.receive(out.words()), Some(&frames[1][..]));
    }

    proptest! {
        #[test]
        fn a_frame_comes_as_it_was_written(size in 1u32..=1_470) {
            let (parameters, frames) = frames(size, 2);
            let mut out = OutgoingMessages::new(&parameters);
            let mut incoming = IncomingMessages::new(parameters);
            for frame in &frames {
                out.write(frame, ());
                prop_assert_eq!(incoming.receive(out.words()), Some(&frame[..]));
                out.created();
            }
        }

        #[test]
        fn any_words_are_a_frame_of_the_channel_or_none(
            words in proptest::collection::vec(any::<u32>(), 0..20),
            is_unit in any::<bool>(),
        ) {
            let (parameters, frames) = frames(8, 1);
            let mut incoming = IncomingMessages::new(parameters);
            let mut words = words;
            if is_unit {
                let mut out = OutgoingMessages::new(&parameters);
                out.write(&frames[0], ());
                for (at, word) in out.words().iter().enumerate() {
                    // All but the message's words, and one of those that were drawn.
                    if at < words.len() && at != 3 { words[at] = *word; }
                }
                words.truncate(out.words().len());
            }
            if let Some(frame) = incoming.receive(&words) {
                prop_assert!(Frame::parse(frame).is_ok_and(|found| found.payload.len() == 8));
            }
        }
    }
}
