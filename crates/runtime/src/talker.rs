//! The writing end of a channel as a state machine: rate, sequence and frame.

use crate::wire::{self, Header, MAX_FRAME};
use onbeat_model::time::{LocalTime, Span};
use onbeat_model::units::{MacAddress, Octets, StreamId};

/// What both ends of a channel know of it from the shared description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelParameters {
    /// Where its frames go.
    pub destination: MacAddress,
    /// The talker's port.
    pub source: MacAddress,
    /// Which stream.
    pub stream_id: StreamId,
    /// VLAN identifier.
    pub vlan: u16,
    /// Priority code point.
    pub pcp: u8,
    /// The size of each message.
    pub size: Octets,
    /// The least mean time between two messages.
    pub interval: Span,
    /// By how much a message may come before its interval is over.
    pub tolerance: Span,
    /// Capture to wake-up.
    pub fixed_delay: Span,
}

/// The declared rate does not allow a message before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the channel's declared rate is exceeded")]
pub struct RateExceeded {
    /// The earliest instant at which a message is allowed.
    pub until: LocalTime,
}

/// The writing end of a channel.
#[derive(Debug)]
pub struct Talker {
    parameters: ChannelParameters,
    /// When the next message would be due if all came at the declared rate; `None` before the
    /// first. This is the theoretical arrival time of the generic cell rate algorithm (ITU-T
    /// I.371), so that a program that wakes late once need not write late for ever after.
    due: Option<LocalTime>,
    sequence: u64,
    frame: [u8; MAX_FRAME],
    length: usize,
}

impl Talker {
    /// An end that has not written yet.
    pub fn new(parameters: ChannelParameters) -> Self {
        Self { parameters, due: None, sequence: 0, frame: [0; MAX_FRAME], length: 0 }
    }

    /// What the description says of the channel.
    pub fn parameters(&self) -> &ChannelParameters {
        &self.parameters
    }

    /// Makes the frame of the next message, captured at `capture`; [`Talker::frame`] has it.
    /// Returns the message's number, from 0.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    pub fn write(
        &mut self,
        capture: LocalTime,
        value: &[u8],
        uncertain: bool,
    ) -> Result<u64, RateExceeded> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let due = self.due.unwrap_or(capture);
        let allowed = due - self.parameters.tolerance;
        if capture < allowed {
            return Err(RateExceeded { until: allowed });
        }
        self.due = Some(due.max(capture) + self.parameters.interval);
        let header = Header {
            destination: self.parameters.destination,
            source: self.parameters.source,
            vlan: self.parameters.vlan,
            pcp: self.parameters.pcp,
            sequence: self.sequence as u8,
            uncertain,
            stream_id: self.parameters.stream_id,
            timestamp: capture.as_ns() as u32,
        };
        self.length = wire::emit(&header, value, &mut self.frame);
        self.sequence += 1;
        Ok(self.sequence - 1)
    }

    /// The frame of the last message.
    pub fn frame(&self) -> &[u8] {
        &self.frame[..self.length]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn parameters() -> ChannelParameters {
        ChannelParameters {
            destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            stream_id: StreamId(42),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            interval: Span::from_ms(20),
            tolerance: Span::from_us(125),
            fixed_delay: Span::from_ms(2),
        }
    }

    #[test]
    fn a_message_before_its_time_is_refused_with_the_instant_at_which_it_is_allowed() {
        let mut talker = Talker::new(parameters());
        let at = LocalTime::from_ns;
        assert_eq!(talker.write(at(1_000), &[0; 8], false), Ok(0));
        let until = at(1_000 + 20_000_000 - 125_000);
        let early = until - Span::from_ns(1);
        assert_eq!(talker.write(early, &[0; 8], false), Err(RateExceeded { until }));
        assert_eq!(talker.write(until, &[0; 8], false), Ok(1));
    }

    #[test]
    fn one_late_message_does_not_make_the_next_ones_late() {
        let mut talker = Talker::new(parameters());
        let period = 20_000_000;
        for k in 0..100 {
            let late = if k % 7 == 3 { 16_000 } else { 1_000 };
            let at = LocalTime::from_ns(k * period + late);
            assert!(talker.write(at, &[0; 8], false).is_ok(), "message {k}");
        }
    }

    proptest! {
        /// The arrival curve that the plan's bounds rest on.
        #[test]
        fn no_window_holds_more_messages_than_the_interval_and_the_tolerance_allow(
            steps in proptest::collection::vec(0i64..30_000_000, 2..60),
        ) {
            let mut talker = Talker::new(parameters());
            let mut at = LocalTime::ZERO;
            let mut sent = Vec::new();
            for step in steps {
                at += Span::from_ns(step);
                if talker.write(at, &[0; 8], false).is_ok() {
                    sent.push(at.as_ns());
                }
            }
            for i in 0..sent.len() {
                for j in i + 1..sent.len() {
                    let least = (j - i) as i64 * 20_000_000 - 125_000;
                    prop_assert!(sent[j] - sent[i] >= least);
                }
            }
        }
    }
}
