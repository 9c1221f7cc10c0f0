//! A reading end of a channel as a state machine: checks, capture time, loss, lateness.

use crate::talker::ChannelParameters;
use crate::wire::Frame;
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{LocalTime, Span};

/// Why a frame is not given to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Not a frame of this channel, or of another size: counted.
    Malformed,
    /// The message was received before.
    Duplicate {
        /// Its capture time.
        capture: LocalTime,
        /// Its number.
        sequence: u64,
    },
}

/// A message that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// When the value was captured, by the talker's clock.
    pub capture: LocalTime,
    /// Number of the message, as far as the 8-bit sequence number tells: a gap of more than 255
    /// messages counts modulo 256.
    pub sequence: u64,
    /// Messages missing between the one before and this one.
    pub gap: u32,
    /// [`flag::LATE`] and [`flag::UNCERTAIN`].
    pub flags: u32,
}

/// The record of what became of a frame, without the times that only the caller knows; none of a
/// malformed frame, which is counted.
pub fn record_of(outcome: &Result<Accepted, Dropped>) -> Option<Record> {
    match *outcome {
        Err(Dropped::Malformed) => None,
        Err(Dropped::Duplicate { capture, sequence }) => Some(Record {
            capture: Some(capture),
            sequence,
            flags: flag::DUPLICATE,
            ..Record::default()
        }),
        Ok(Accepted { capture, sequence, gap, flags }) => {
            Some(Record { capture: Some(capture), sequence, gap, flags, ..Record::default() })
        }
    }
}

/// A reading end of a channel.
#[derive(Debug)]
pub struct Listener {
    parameters: ChannelParameters,
    last: Option<(LocalTime, u64)>,
    malformed: u64,
}

impl Listener {
    /// An end that has not read yet.
    pub fn new(parameters: ChannelParameters) -> Self {
        Self { parameters, last: None, malformed: 0 }
    }

    /// What the description says of the channel.
    pub fn parameters(&self) -> &ChannelParameters {
        &self.parameters
    }

    /// Frames dropped as [`Dropped::Malformed`].
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes a frame that the program has at `now`; copies the message into `value`.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    pub fn accept(
        &mut self,
        octets: &[u8],
        now: LocalTime,
        value: &mut [u8],
    ) -> Result<Accepted, Dropped> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let frame = match Frame::parse(octets) {
            Ok(frame) if self.is_mine(&frame) => frame,
            _ => {
                self.malformed += 1;
                return Err(Dropped::Malformed);
            }
        };
        let capture = rebuild(frame.header.timestamp, now);
        let (sequence, gap) = match self.last {
            None => (u64::from(frame.header.sequence), u32::from(frame.header.sequence)),
            Some((last_capture, last)) if capture <= last_capture => {
                let behind = (last as u8).wrapping_sub(frame.header.sequence);
                let sequence = last.saturating_sub(u64::from(behind));
                return Err(Dropped::Duplicate { capture, sequence });
            }
            Some((_, last)) => {
                let missing = frame.header.sequence.wrapping_sub(last as u8).wrapping_sub(1);
                (last + 1 + u64::from(missing), u32::from(missing))
            }
        };
        self.last = Some((capture, sequence));
        value.copy_from_slice(frame.payload);
        let late = now > capture + self.parameters.fixed_delay;
        let flags = if late { flag::LATE } else { 0 }
            | if frame.header.uncertain { flag::UNCERTAIN } else { 0 };
        Ok(Accepted { capture, sequence, gap, flags })
    }

    fn is_mine(&self, frame: &Frame<'_>) -> bool {
        frame.header.stream_id == self.parameters.stream_id
            && frame.payload.len() == self.parameters.size.get() as usize
    }
}

/// How far in the reader's future a capture time may lie because two clocks differ.
const FUTURE: Span = Span::from_s(1);

/// The instant from 3.29 s before `now` to 1 s after it whose lower 32 bits are `timestamp` (IEEE
/// 1722-2016 4.4.4.8): a message is hardly ever from the future, but may have waited in queues.
pub fn rebuild(timestamp: u32, now: LocalTime) -> LocalTime {
    let latest = now + FUTURE;
    let before = (latest.as_ns() as u32).wrapping_sub(timestamp);
    latest - Span::from_ns(i64::from(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talker::Talker;
    use crate::talker::tests::parameters;
    use proptest::prelude::*;

    fn frame_of(talker: &mut Talker, capture: LocalTime, value: u64) -> Vec<u8> {
        talker.write(capture, &value.to_le_bytes(), false).expect("within the rate");
        talker.frame().to_vec()
    }

    #[test]
    fn gaps_lateness_and_duplicates_are_told_across_the_wrap_of_the_sequence() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
        let mut value = [0; 8];
        for k in 0..600u64 {
            let capture = LocalTime::from_ns(k as i64 * 20_000_000);
            let frame = frame_of(&mut talker, capture, k);
            let lost = [5, 6, 7, 254, 255, 256].contains(&k);
            if lost {
                continue;
            }
            let late = k % 10 == 0;
            let latency = if late { 2_000_001 } else { 2_000_000 };
            let now = capture + Span::from_ns(latency);
            let got = listener.accept(&frame, now, &mut value).expect("accepted");
            let gap = if k == 8 || k == 257 { 3 } else { 0 };
            let flags = if late { flag::LATE } else { 0 };
            assert_eq!(got, Accepted { capture, sequence: k, gap, flags });
            assert_eq!(u64::from_le_bytes(value), k);
            let again = listener.accept(&frame, now, &mut value);
            assert_eq!(again, Err(Dropped::Duplicate { capture, sequence: k }));
        }
    }

    #[test]
    fn frames_of_another_stream_or_size_are_counted_and_dropped() {
        let mut other = parameters();
        other.stream_id.0 = 43;
        let mut longer = parameters();
        longer.size = onbeat_model::units::Octets::new(9);
        let mut listener = Listener::new(parameters());
        let mut value = [0; 8];
        let now = LocalTime::ZERO;
        let mut talker = Talker::new(other);
        talker.write(now, &[0; 8], false).unwrap();
        assert_eq!(listener.accept(talker.frame(), now, &mut value), Err(Dropped::Malformed));
        let mut talker = Talker::new(longer);
        talker.write(now, &[0; 9], false).unwrap();
        assert_eq!(listener.accept(talker.frame(), now, &mut value), Err(Dropped::Malformed));
        assert_eq!(listener.accept(&[0; 12], now, &mut value), Err(Dropped::Malformed));
        assert_eq!(listener.malformed(), 3);
    }

    proptest! {
        #[test]
        fn the_capture_time_is_rebuilt_across_the_wrap_and_from_the_near_future(
            capture in -5_000_000_000i64..50_000_000_000,
            age in -1_000_000_000i64..3_290_000_000,
        ) {
            let capture = LocalTime::from_ns(capture);
            let now = capture + Span::from_ns(age);
            prop_assert_eq!(rebuild(capture.as_ns() as u32, now), capture);
        }
    }
}
