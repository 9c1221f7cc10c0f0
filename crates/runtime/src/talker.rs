//! The writing end of a channel as a state machine: rate, sequence and frame.

use crate::fragment::Fragment;
use crate::integrity::{Epoch, Seal, Stamp, StreamKeys};
use crate::launch::LaunchTimes;
use crate::wire::{Header, MAX_FRAME, MIN_FRAME, R_TAG, STREAM_HEADER, TAGGED};
use onbeat_model::fragment::Fragments;
use onbeat_model::integrity::Integrity;
use onbeat_model::rate::{Pace, Rate};
use onbeat_model::time::{Span, SyncedTime};
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
    /// Its frames take several paths, and carry the number by which bridges eliminate duplicates
    /// (R-TAG, 802.1CB-2017 7.8).
    pub replicated: bool,
    /// The size of each message.
    pub size: Octets,
    /// What its frames carry behind the message.
    pub integrity: Integrity,
    /// Readers accept frames of this station only, if it is known. Datagrams do not say theirs.
    pub talker_address: Option<MacAddress>,
    /// The least mean time between two messages.
    pub interval: Span,
    /// When its frames leave, if it is scheduled and the talker's side keeps its launch times: an
    /// emulated network does that itself.
    pub launch: Option<LaunchTimes>,
    /// By how much a message may come before its interval is over.
    pub tolerance: Span,
    /// By how much less than an interval may be between a message that came late and the next one
    /// ([`onbeat_model::system::Channel::catch_up`]).
    pub catch_up: Span,
    /// Capture to wake-up.
    pub fixed_delay: Span,
    /// By how much the talker's clock may be ahead of a reader's while both are certain.
    pub clock_error: Span,
    /// The network's time, in nanoseconds, at the instant that the ends' clocks call zero: frames
    /// carry its lower 32 bits, programs count from their epoch.
    pub epoch: i64,
}

impl ChannelParameters {
    /// How its messages are divided among frames.
    #[inline]
    pub fn fragments(&self) -> Fragments {
        let r_tag = if self.replicated { Octets::new(R_TAG as u32) } else { Octets::default() };
        Fragments::of(self.size, self.integrity.trailer() + r_tag)
    }

    /// Octets of a message, or of a fragment with its header, and the trailer (stream_data_length,
    /// IEEE 1722-2016 4.4.4.10).
    #[inline]
    pub fn stream_data_length(&self) -> Octets {
        self.fragments().payload() + self.integrity.trailer()
    }

    /// What its talker keeps to.
    #[inline]
    pub fn rate(&self) -> Rate {
        let Self { interval, tolerance, catch_up, .. } = *self;
        Rate { interval, tolerance, catch_up }
    }

    /// Octets before the data unit of a tagged frame.
    #[inline]
    pub const fn unit_at(&self) -> usize {
        TAGGED + if self.replicated { R_TAG } else { 0 }
    }

    /// Octets of a tagged frame without its FCS.
    pub fn frame_octets(&self) -> usize {
        let data = self.stream_data_length().get() as usize;
        (self.unit_at() + STREAM_HEADER + data).max(MIN_FRAME)
    }
}

/// The declared rate does not allow a message before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the channel's declared rate is exceeded")]
pub struct RateExceeded {
    /// Until when a write that waits would do so: when the message is due, or as soon as the rate
    /// allows it where none catches up.
    pub until: SyncedTime,
}

/// A message whose first frame is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Its number, from 0.
    pub sequence: u64,
    /// When it was captured.
    pub capture: SyncedTime,
}

/// A clock that goes back by no more has not been set.
const SAME_INSTANT: Span = Span::from_us(10);

/// The writing end of a channel.
#[derive(Clone, Debug)]
pub struct Talker {
    parameters: ChannelParameters,
    progress: Progress,
    meeting: u32,
    instance: u8,
    seal: Seal,
    fragments: Fragments,
    /// The message whose frames are made, and what they say of it.
    making: Making,
    frame: [u8; MAX_FRAME],
    /// Octets of the frame; 0 if what is the same in all frames is not in it.
    length: usize,
}

/// What the frames of one message have in common, and which of them is made.
#[derive(Clone, Copy, Debug, Default)]
struct Making {
    sent: Sent,
    uncertain: bool,
    meeting: u32,
    index: u32,
}

/// What the messages before the next one leave for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pace: Pace,
    /// The capture time of the last message.
    last: Option<SyncedTime>,
    /// When something was written last, or not allowed.
    now: Option<SyncedTime>,
    sequence: u64,
    /// The last launch time, by the network's time.
    launched: Option<i64>,
}

impl Talker {
    /// An end that has not written yet, of a talker that is started once, in an emulation.
    pub fn new(parameters: ChannelParameters) -> Self {
        Self::of_instance(parameters, 1)
    }

    /// The same of a talker that may be started again: its readers tell its starts apart by
    /// `instance`, if that is another one each time and not 0.
    pub fn of_instance(parameters: ChannelParameters, instance: u8) -> Self {
        Self {
            parameters,
            instance,
            seal: Seal::of_runs(&parameters, Epoch(u64::from(instance))),
            progress: Progress::default(),
            meeting: 0,
            fragments: parameters.fragments(),
            making: Making::default(),
            frame: [0; MAX_FRAME],
            length: 0,
        }
    }

    /// The number of the message that was written last.
    #[inline]
    pub fn last_sequence(&self) -> Option<u64> {
        self.progress.sequence.checked_sub(1)
    }

    /// Continues where this host's talker was closed that captured its last message at `last`: the
    /// declared rate holds across its starts.
    pub fn go_on(&mut self, last: SyncedTime) {
        self.progress.pace = Pace::after_restart(last, &self.parameters.rate());
        (self.progress.last, self.progress.now) = (Some(last), Some(last));
    }

    /// The same with this seal, of the channel's integrity, instead of an emulation's.
    pub fn sealed(self, seal: Seal) -> Self {
        Self { seal, ..self }
    }

    /// What the description says of the channel.
    pub fn parameters(&self) -> &ChannelParameters {
        &self.parameters
    }

    /// The tag of all further frames, which a reservation says.
    #[inline]
    pub fn tag(&mut self, vlan: u16, pcp: u8) {
        if (self.parameters.vlan, self.parameters.pcp) != (vlan, pcp) {
            (self.parameters.vlan, self.parameters.pcp) = (vlan, pcp);
            self.length = 0;
        }
    }

    /// Makes the frame of the next message, captured at `now`; [`Talker::frame`] has it, or that of
    /// the first fragment, and [`Talker::next_fragment`] makes the others. No two messages have the
    /// same capture time, which is what names them: one of a burst, at an instant that is taken,
    /// counts as captured a nanosecond later; behind one in fragments, so many nanoseconds.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    pub fn write(
        &mut self,
        now: SyncedTime,
        value: &[u8],
        uncertain: bool,
    ) -> Result<Sent, RateExceeded> {
        self.write_at(now, now, value, uncertain)
    }

    /// The same for a message that will be captured at `at`, not before `now`.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    #[inline]
    pub fn write_at(
        &mut self,
        now: SyncedTime,
        at: SyncedTime,
        value: &[u8],
        uncertain: bool,
    ) -> Result<Sent, RateExceeded> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let sent = self.next(now, at)?;
        if self.fragments.count > 1 {
            let meeting = std::mem::take(&mut self.meeting);
            self.making = Making { sent, uncertain, meeting, index: 0 };
            self.make_fragment(value);
            return Ok(sent);
        }
        let (header, stamp) = self.header(&sent, uncertain);
        self.length = self.seal.renew(&header, value, stamp, &mut self.frame, self.length);
        Ok(sent)
    }

    /// Makes the frame of the next fragment of the message that was written last, which is `value`;
    /// whether there is one.
    #[inline]
    pub fn next_fragment(&mut self, value: &[u8]) -> bool {
        let is_more = self.making.index + 1 < self.fragments.count;
        if is_more {
            self.making.index += 1;
            self.make_fragment(value);
        }
        is_more
    }

    /// Each frame of a message has its own number and capture time, a nanosecond after the one
    /// before, as one of a burst.
    fn make_fragment(&mut self, value: &[u8]) {
        let Making { sent, uncertain, meeting, index } = self.making;
        let at = (index * self.fragments.octets.get()) as usize;
        let end = value.len().min(at + self.fragments.octets.get() as usize);
        let mut payload = [0; MAX_FRAME];
        let fragment = Fragment { index: index as u16, count: self.fragments.count as u16 };
        let length = fragment.emit(&value[at..end], self.fragments.octets, &mut payload);
        let frame = Sent {
            sequence: sent.sequence * u64::from(self.fragments.count) + u64::from(index),
            capture: sent.capture + Span::from_ns(index.into()),
        };
        self.meeting = meeting;
        let (header, stamp) = self.header(&frame, uncertain);
        let payload = &payload[..length];
        self.length = self.seal.renew(&header, payload, stamp, &mut self.frame, self.length);
    }

    /// [`Talker::write`] into another frame than the talker's own: that is of the channel's length,
    /// and `is_made` if it has had a message of this talker since the tag was changed last. Not for
    /// messages in fragments.
    pub(crate) fn write_into(
        &mut self,
        now: SyncedTime,
        value: &[u8],
        uncertain: bool,
        frame: &mut [u8],
        is_made: bool,
    ) -> Result<Sent, RateExceeded> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let sent = self.next(now, now)?;
        let (header, stamp) = self.header(&sent, uncertain);
        let made = if is_made { frame.len() } else { 0 };
        self.seal.renew(&header, value, stamp, frame, made);
        Ok(sent)
    }

    /// Counts the next message, if the rate allows it.
    #[inline]
    fn next(&mut self, now: SyncedTime, at: SyncedTime) -> Result<Sent, RateExceeded> {
        let progress = &mut self.progress;
        if progress.now.is_some_and(|before| now < before - SAME_INSTANT) {
            // The clock was set back: what was counted by it means nothing any more.
            (progress.pace, progress.last, progress.launched) = (Pace::default(), None, None);
        }
        progress.now = Some(now);
        let at = at.max(now);
        let rate = self.parameters.rate();
        if let Some(until) = progress.pace.held_until(at, &rate) {
            return Err(RateExceeded { until });
        }
        progress.pace.sent(at, &rate);
        let capture = progress.last.map_or(at, |last| at.max(last + Span::from_ns(1)));
        let fragments = i64::from(self.fragments.count);
        progress.last = Some(capture + Span::from_ns(fragments - 1));
        progress.sequence += 1;
        Ok(Sent { sequence: progress.sequence - 1, capture })
    }

    /// What is said of it before the message, and behind that.
    #[inline]
    fn header(&mut self, sent: &Sent, uncertain: bool) -> (Header, Stamp) {
        let captured = self.parameters.epoch.wrapping_add(sent.capture.as_ns());
        let header = Header {
            destination: self.parameters.destination,
            source: self.parameters.source,
            vlan: self.parameters.vlan,
            pcp: self.parameters.pcp,
            r_tag: self.parameters.replicated.then_some(sent.sequence as u16),
            number: sent.sequence as u16,
            instance: self.instance,
            uncertain,
            stream_id: self.parameters.stream_id,
            timestamp: captured as u32,
            meeting: std::mem::take(&mut self.meeting),
        };
        (header, Stamp { capture_ns: captured, counter: sent.sequence })
    }

    /// What the messages up to now leave for the next one.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// The messages after those that left this were not written at all.
    pub(crate) fn go_back(&mut self, to: Progress) {
        self.progress = to;
    }

    /// The last message was not sent at all: the next one has its number. The declared rate holds
    /// as if it had been.
    pub(crate) fn take_back(&mut self) {
        self.progress.sequence -= 1;
    }

    /// When the last message's frame leaves; none if at once. Each launch time is given once.
    #[inline]
    pub fn launch(&mut self) -> Option<SyncedTime> {
        let ChannelParameters { launch, interval, epoch, .. } = self.parameters;
        let capture = self.progress.last?;
        let now = epoch.saturating_add(capture.as_ns());
        let at = launch?.next(interval, now, self.progress.launched);
        self.progress.launched = Some(at);
        Some(SyncedTime::from_ns(at.saturating_sub(epoch)))
    }

    /// Until when the declared rate allows no message, if it allows none at `now`.
    pub fn blocked_until(&self, now: SyncedTime) -> Option<SyncedTime> {
        let is_set_back = self.progress.now.is_some_and(|before| now < before - SAME_INSTANT);
        self.progress.pace.held_until(now, &self.parameters.rate()).filter(|_| !is_set_back)
    }

    /// Lets the next message say this of a meeting ([`crate::meeting::Word`]).
    pub fn say(&mut self, word: u32) {
        self.meeting = word;
    }

    /// Whether the channel's messages are authenticated.
    #[inline]
    pub fn is_keyed(&self) -> bool {
        self.seal.is_keyed()
    }

    /// From now on messages are authenticated by these keys.
    pub fn set_keys(&mut self, keys: StreamKeys) {
        self.seal.set_keys(keys);
    }

    /// What tells this start of the talker from others.
    pub fn instance(&self) -> u8 {
        self.instance
    }

    /// The frame of the last message.
    #[inline]
    pub fn frame(&self) -> &[u8] {
        &self.frame[..self.length]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_declared_rate_holds_across_the_starts_of_a_talker() {
        let at = SyncedTime::from_ns;
        let mut before = Talker::new(parameters());
        let first = before.write(at(0), &[1; 8], false).expect("the first");
        let mut after = Talker::of_instance(parameters(), 2);
        after.go_on(first.capture);
        let until = at(0) + parameters().interval;
        assert_eq!(after.write(at(7), &[2; 8], false), Err(RateExceeded { until }));
        let next = after.write(until, &[2; 8], false).expect("an interval later");
        assert_eq!((next.sequence, next.capture), (0, until));
    }

    pub(crate) fn parameters() -> ChannelParameters {
        ChannelParameters {
            destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            stream_id: StreamId(42),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            integrity: Integrity::None,
            replicated: false,
            launch: None,
            talker_address: None,
            interval: Span::from_ms(20),
            tolerance: Span::from_us(125),
            catch_up: Span::ZERO,
            fixed_delay: Span::from_ms(2),
            clock_error: Span::from_us(50),
            epoch: 0xffff_0000,
        }
    }

    #[test]
    fn a_message_before_its_time_is_refused_with_the_instant_at_which_it_is_allowed() {
        let mut talker = Talker::new(parameters());
        let at = SyncedTime::from_ns;
        assert_eq!(talker.write(at(1_000), &[0; 8], false).map(|s| s.sequence), Ok(0));
        let until = at(1_000 + 20_000_000 - 125_000);
        let early = until - Span::from_ns(1);
        assert_eq!(talker.write(early, &[0; 8], false), Err(RateExceeded { until }));
        let sent = Sent { sequence: 1, capture: until };
        assert_eq!(talker.write(until, &[0; 8], false), Ok(sent));
    }

    #[test]
    fn one_late_message_does_not_make_the_next_ones_late() {
        let mut talker = Talker::new(parameters());
        let period = 20_000_000;
        for k in 0..100 {
            let late = if k % 7 == 3 { 16_000 } else { 1_000 };
            let at = SyncedTime::from_ns(k * period + late);
            assert!(talker.write(at, &[0; 8], false).is_ok(), "message {k}");
        }
    }

    #[test]
    fn a_burst_at_one_instant_has_as_many_capture_times_as_messages() {
        let burst = 5;
        let tolerance = Span::from_ms(20) * (burst - 1);
        let mut talker = Talker::new(ChannelParameters { tolerance, ..parameters() });
        let now = SyncedTime::from_ns(1_000_000);
        for k in 0..burst {
            let capture = now + Span::from_ns(k);
            assert_eq!(talker.write(now, &[0; 8], false).map(|s| s.capture), Ok(capture));
        }
        assert!(talker.write(now, &[0; 8], false).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_silence_the_talker() {
        let mut talker = Talker::new(parameters());
        let at = SyncedTime::from_ns;
        talker.write(at(37_000_000_000), &[0; 8], false).expect("the first");
        let sent = talker.write(at(5_000), &[0; 8], false).expect("after the step");
        assert_eq!(sent, Sent { sequence: 1, capture: at(5_000) });
        assert!(talker.write(at(6_000 + 1_000_000), &[0; 8], false).is_err(), "rate still holds");
    }

    #[test]
    fn a_message_for_later_does_not_lift_the_rate_for_those_before_it() {
        let mut talker = Talker::new(parameters());
        let at = SyncedTime::from_ns;
        let later = at(300_000_000);
        talker.write_at(at(0), later, &[0; 8], false).expect("the first");
        let until = later + Span::from_ms(20) - Span::from_us(125);
        assert_eq!(talker.write(at(5_000), &[0; 8], false), Err(RateExceeded { until }));
    }

    /// A program that sleeps to its periods and stalls once: its period's number and the capture of
    /// each of its messages, of which the one of period 3 is written late.
    fn stalled(late_ns: i64, catch_up: Span) -> Vec<i64> {
        let mut talker = Talker::new(ChannelParameters { catch_up, ..parameters() });
        let mut now = SyncedTime::ZERO;
        let captures = (0..12).map(|k| {
            let late = if k == 3 { late_ns } else { 0 };
            now = now.max(SyncedTime::from_ns(k * 20_000_000)) + Span::from_ns(late);
            while let Err(held) = talker.write(now, &[0; 8], false) {
                now = held.until;
            }
            now.as_ns()
        });
        captures.collect()
    }

    #[test]
    fn a_talker_that_stalled_is_back_in_phase_within_two_periods() {
        let (period, interval) = (20_000_000, Span::from_ms(20));
        for late in (0..200_000_000).step_by(1_234_567) {
            let captures = stalled(late, interval);
            assert_eq!(captures[3], 3 * period + late);
            for (k, capture) in captures.iter().enumerate() {
                let is_back = *capture >= captures[3] + 2 * period;
                assert!(!is_back || capture % period == 0, "{late}: {k} at {capture}");
            }
            if late <= period {
                assert_eq!(captures[5..], [5, 6, 7, 8, 9, 10, 11].map(|k| k * period), "{late}");
            }
        }
        let whole = stalled(3 * period, interval).iter().map(|at| at / period).collect::<Vec<_>>();
        assert_eq!(whole, [0, 1, 2, 6, 6, 7, 8, 9, 10, 11, 12, 13], "one of three is made up for");
        assert_eq!(stalled(900_000, Span::ZERO)[11], 11 * period + 900_000 - 125_000);
    }

    #[test]
    fn nothing_catches_up_that_was_not_late() {
        let catch_up = Span::from_ms(20);
        let mut talker = Talker::new(ChannelParameters { catch_up, ..parameters() });
        let mut now = SyncedTime::from_ns(7);
        for k in 0..10 {
            while let Err(held) = talker.write(now, &[0; 8], false) {
                now = held.until;
            }
            assert_eq!(now.as_ns(), 7 + k * 20_000_000);
        }
    }

    proptest! {
        /// The arrival curve that the plan's bounds rest on.
        #[test]
        fn no_window_holds_more_messages_than_the_interval_and_the_tolerance_allow(
            steps in proptest::collection::vec(0i64..30_000_000, 2..60),
            catch_up in proptest::sample::select(vec![0, 20_000_000]),
        ) {
            let parameters = parameters();
            let catch_up = Span::from_ns(catch_up);
            let mut talker = Talker::new(ChannelParameters { catch_up, ..parameters });
            let mut at = SyncedTime::ZERO;
            let mut sent = Vec::new();
            for step in steps {
                at += Span::from_ns(step);
                if talker.write(at, &[0; 8], false).is_ok() {
                    sent.push(at.as_ns());
                }
            }
            for i in 0..sent.len() {
                for j in i + 1..sent.len() {
                    let early = (parameters.tolerance + catch_up).as_ns();
                    let least = (j - i) as i64 * 20_000_000 - early;
                    prop_assert!(sent[j] - sent[i] >= least);
                }
            }
        }
    }
}
