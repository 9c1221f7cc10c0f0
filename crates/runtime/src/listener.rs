//! A reading end of a channel as a state machine: checks, capture time, loss, lateness.

use crate::port::{Framing, Reason};
use crate::talker::ChannelParameters;
use crate::wire::{self, Pdu};
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{LocalTime, Span};

/// Why a frame is not given to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Not a frame of this channel: counted.
    Rejected(Reason),
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
    /// See [`crate::wire::Header::acknowledged`].
    pub acknowledged: u32,
}

/// The record of what became of a frame, without the times that only the caller knows; none of a
/// rejected frame, which is counted.
pub fn record_of(outcome: &Result<Accepted, Dropped>) -> Option<Record> {
    match *outcome {
        Err(Dropped::Rejected(_)) => None,
        Err(Dropped::Duplicate { capture, sequence }) => Some(Record {
            capture: Some(capture),
            sequence,
            flags: flag::DUPLICATE,
            ..Record::default()
        }),
        Ok(Accepted { capture, sequence, gap, flags, .. }) => {
            Some(Record { capture: Some(capture), sequence, gap, flags, ..Record::default() })
        }
    }
}

/// A reading end of a channel.
#[derive(Clone, Debug)]
pub struct Listener {
    parameters: ChannelParameters,
    last: Option<(LocalTime, u64)>,
    joins: bool,
    /// Capture times of the last messages, by sequence number: exact copies are told by them.
    history: [Option<LocalTime>; HISTORY],
    /// The last message that seemed old. The next one in order after it tells that the talker's
    /// clock was set, not that an old message came again (as RFC 3550 A.1 does it).
    suspect: Option<(u8, LocalTime)>,
}

/// As many as there are sequence numbers.
const HISTORY: usize = 256;

impl Listener {
    /// An end that is there from the talker's first message on.
    pub fn new(parameters: ChannelParameters) -> Self {
        Self { parameters, last: None, joins: false, history: [None; HISTORY], suspect: None }
    }

    /// An end whose talker may have been writing for long: what came before is not lost.
    pub fn joining(parameters: ChannelParameters) -> Self {
        Self { joins: true, ..Self::new(parameters) }
    }

    /// What the description says of the channel.
    pub fn parameters(&self) -> &ChannelParameters {
        &self.parameters
    }

    /// Takes a frame that the program has at `now`; copies the message into `value`.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    pub fn accept(
        &mut self,
        octets: &[u8],
        framing: Framing,
        now: LocalTime,
        value: &mut [u8],
    ) -> Result<Accepted, Dropped> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let pdu = self.mine(octets, framing).map_err(Dropped::Rejected)?;
        let capture = rebuild(pdu.timestamp.wrapping_sub(self.parameters.epoch), now);
        let (sequence, gap) = match self.last {
            None => {
                let missing = if self.joins { 0 } else { u32::from(pdu.sequence) };
                (u64::from(pdu.sequence), missing)
            }
            Some((last_capture, last)) => {
                if !self.is_new(pdu.sequence, capture, last_capture) {
                    let behind = (last as u8).wrapping_sub(pdu.sequence);
                    let sequence = last.saturating_sub(u64::from(behind));
                    return Err(Dropped::Duplicate { capture, sequence });
                }
                let missing = pdu.sequence.wrapping_sub(last as u8).wrapping_sub(1);
                (last + 1 + u64::from(missing), u32::from(missing))
            }
        };
        self.suspect = None;
        self.history[usize::from(pdu.sequence)] = Some(capture);
        self.last = Some((capture, sequence));
        value.copy_from_slice(pdu.payload);
        let late = now > capture + self.parameters.fixed_delay;
        let flags =
            if late { flag::LATE } else { 0 } | if pdu.uncertain { flag::UNCERTAIN } else { 0 };
        Ok(Accepted { capture, sequence, gap, flags, acknowledged: pdu.acknowledged })
    }

    /// Whether a message is not one that was here before.
    fn is_new(&mut self, number: u8, capture: LocalTime, last_capture: LocalTime) -> bool {
        if self.history[usize::from(number)] == Some(capture) {
            return false;
        }
        if capture > last_capture {
            return true;
        }
        let follows =
            |(before, when): (u8, LocalTime)| before.wrapping_add(1) == number && when < capture;
        if self.suspect.is_some_and(follows) {
            return true;
        }
        self.suspect = Some((number, capture));
        false
    }

    /// The data unit of a frame of this channel.
    fn mine<'a>(&self, octets: &'a [u8], framing: Framing) -> Result<Pdu<'a>, Reason> {
        let octets = match framing {
            Framing::Datagram => octets,
            Framing::Ethernet => {
                let (destination, pdu) = wire::unwrap(octets).map_err(|_| Reason::Shape)?;
                if destination != self.parameters.destination {
                    return Err(Reason::Stream);
                }
                pdu
            }
        };
        let pdu = Pdu::parse(octets).map_err(|_| Reason::Shape)?;
        if pdu.stream_id != self.parameters.stream_id {
            Err(Reason::Stream)
        } else if pdu.payload.len() != self.parameters.size.get() as usize {
            Err(Reason::Size)
        } else {
            Ok(pdu)
        }
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

    fn accept(
        listener: &mut Listener,
        frame: &[u8],
        now: LocalTime,
    ) -> Result<(Accepted, u64), Dropped> {
        let mut value = [0; 8];
        let got = listener.accept(frame, Framing::Ethernet, now, &mut value)?;
        Ok((got, u64::from_le_bytes(value)))
    }

    #[test]
    fn gaps_lateness_and_duplicates_are_told_across_the_wrap_of_the_sequence() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
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
            let gap = if k == 8 || k == 257 { 3 } else { 0 };
            let flags = if late { flag::LATE } else { 0 };
            let expected = Accepted { capture, sequence: k, gap, flags, acknowledged: 0 };
            assert_eq!(accept(&mut listener, &frame, now), Ok((expected, k)));
            let again = accept(&mut listener, &frame, now);
            assert_eq!(again, Err(Dropped::Duplicate { capture, sequence: k }));
        }
    }

    #[test]
    fn a_day_of_messages_keeps_its_capture_times_across_every_wrap_of_the_timestamp() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
        let per_day = 24 * 3_600 * 50;
        for k in 0..per_day {
            let capture = LocalTime::from_ns(k * 20_000_000 + k % 1_000);
            let frame = frame_of(&mut talker, capture, k as u64);
            let now = capture + Span::from_ns(57_000 - k % 100_000);
            let (got, value) = accept(&mut listener, &frame, now).expect("accepted");
            assert_eq!((got.capture, got.gap, value), (capture, 0, k as u64));
        }
    }

    #[test]
    fn a_clock_that_is_set_back_costs_a_listener_one_message() {
        for step_ns in [1_000_000, 1_000_000_000, 3_600_000_000_000i64] {
            let free = ChannelParameters { tolerance: Span::from_s(60), ..parameters() };
            let (mut talker, mut listener) = (Talker::new(free), Listener::new(free));
            let at = |ns| LocalTime::from_ns(7_200_000_000_000 + ns);
            for k in 0..50 {
                let frame = frame_of(&mut talker, at(k * 20_000_000), k as u64);
                accept(&mut listener, &frame, at(k * 20_000_000 + 50_000)).expect("before");
            }
            // The talker's alone, or both: the reader's own clock does not matter.
            for own in [0, step_ns] {
                let mut listener = listener.clone();
                let mut talker = talker.clone();
                let mut got = 0;
                for k in 50..60 {
                    let now = k * 20_000_000;
                    let frame = frame_of(&mut talker, at(now - step_ns - 20_000_000), k as u64);
                    got += u32::from(accept(&mut listener, &frame, at(now - own)).is_ok());
                }
                assert!(got >= 9, "{got} of 10 after a step of {step_ns}");
            }
        }
    }

    #[test]
    fn old_copies_one_by_one_or_in_a_row_are_never_taken_for_new_messages() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
        let at = |k: i64| LocalTime::from_ns(k * 20_000_000);
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for k in 0..300 {
            let frame = frame_of(&mut talker, at(k), k as u64);
            accept(&mut listener, &frame, at(k)).expect("new");
            for back in [1, 2, 100, 250, 255] {
                let Some(old) = frames.len().checked_sub(back) else { continue };
                let got = accept(&mut listener, &frames[old], at(k));
                assert!(matches!(got, Err(Dropped::Duplicate { .. })), "{k} - {back}: {got:?}");
            }
            frames.push(frame);
        }
    }

    #[test]
    fn one_stale_frame_makes_no_reader_deaf() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
        let at = LocalTime::from_ns;
        let stale = frame_of(&mut talker, at(0), 0);
        for k in 1..200 {
            let frame = frame_of(&mut talker, at(k * 20_000_000), k as u64);
            accept(&mut listener, &frame, at(k * 20_000_000)).expect("before");
        }
        // Four seconds old, it seems to come from 0.3 s ahead.
        accept(&mut listener, &stale, at(4_000_000_000)).expect("it cannot be told");
        let mut lost = 0;
        for k in 201..250 {
            let frame = frame_of(&mut talker, at(k * 20_000_000), k as u64);
            lost += u32::from(accept(&mut listener, &frame, at(k * 20_000_000)).is_err());
        }
        assert!(lost <= 1, "{lost} messages lost");
    }

    #[test]
    fn frames_that_are_not_the_channels_are_rejected_each_for_its_reason() {
        let mut other = parameters();
        other.stream_id.0 = 43;
        let mut elsewhere = parameters();
        elsewhere.destination.0[5] = 1;
        let mut longer = parameters();
        longer.size = onbeat_model::units::Octets::new(9);
        let mut listener = Listener::new(parameters());
        let now = LocalTime::ZERO;
        for (foreign, reason) in
            [(other, Reason::Stream), (elsewhere, Reason::Stream), (longer, Reason::Size)]
        {
            let mut talker = Talker::new(foreign);
            let value = vec![0; foreign.size.get() as usize];
            talker.write(now, &value, false).unwrap();
            let got = accept(&mut listener, talker.frame(), now);
            assert_eq!(got, Err(Dropped::Rejected(reason)));
        }
        let got = accept(&mut listener, &[0; 12], now);
        assert_eq!(got, Err(Dropped::Rejected(Reason::Shape)));
    }

    #[test]
    fn untagged_frames_and_datagrams_are_the_same_message() {
        let now = LocalTime::ZERO;
        let frame = frame_of(&mut Talker::new(parameters()), now, 7);
        let untagged = [&frame[..12], &frame[16..]].concat();
        for (octets, framing) in [
            (&frame[..], Framing::Ethernet),
            (&untagged[..], Framing::Ethernet),
            (&frame[18..], Framing::Datagram),
        ] {
            let mut value = [0; 8];
            let got = Listener::new(parameters()).accept(octets, framing, now, &mut value);
            assert!(got.is_ok() && u64::from_le_bytes(value) == 7, "{got:?}");
        }
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
