//! A reading end of a channel as a state machine: checks, capture time, loss, lateness.

use crate::channel_io::{Framing, Reason, Source};
use crate::fragment::{Assembly, Fragment, Whole};
use crate::integrity::{Guard, StreamKeys};
use crate::numbering::{Numbered, Numbering, Relation};
use crate::talker::ChannelParameters;
use crate::wire::{self, Pdu, STREAM_HEADER};
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{Span, SyncedTime};

/// Why a frame is not given to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Not a frame of this channel: counted.
    Rejected(Reason),
    /// The message was received before.
    Duplicate {
        /// Its capture time.
        capture: SyncedTime,
        /// Its number.
        sequence: u64,
    },
    /// A fragment was taken, or a copy of one: the message is not whole.
    Fragment,
}

/// A message that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// When the value was captured, by the talker's clock.
    pub capture: SyncedTime,
    /// Number of the message, by its talker's count.
    pub sequence: u64,
    /// Messages missing between the one before and this one: as many as the frames' numbers and the
    /// time between the captures tell.
    pub gap: u32,
    /// [`flag::LATE`], [`flag::UNCERTAIN`] and [`flag::EXPIRED`].
    pub flags: u32,
    /// See [`crate::wire::Header::instance`].
    pub instance: u8,
    /// See [`crate::wire::Header::meeting`].
    pub meeting: u32,
}

/// By what an end tells when a frame came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When the frame was there to be read.
    pub ready: SyncedTime,
    /// Now.
    pub now: SyncedTime,
    /// The end's clock is not known to be synchronised.
    pub uncertain: bool,
}

impl Reading {
    /// Of a frame that came just now, by a clock that is synchronised.
    pub fn at(now: SyncedTime) -> Self {
        Self { ready: now, now, uncertain: false }
    }
}

/// The record of what became of a frame, without the times that only the caller knows; none of a
/// rejected frame, which is counted, nor of a fragment before the last.
pub fn record_of(outcome: &Result<Accepted, Dropped>) -> Option<Record> {
    match *outcome {
        Err(Dropped::Rejected(_) | Dropped::Fragment) => None,
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
    /// The longest age at which a message is handed over.
    lifespan: Option<Span>,
    guard: Guard,
    numbering: Numbering,
    assembly: Assembly,
    other_talker: Option<Source>,
    /// Capture times of the last messages, by sequence number: exact copies are told by them.
    history: [Option<SyncedTime>; HISTORY],
    /// The last message that seemed old. The next one in order after it tells that the talker's
    /// clock was set, not that an old message was repeated (as RFC 3550 A.1 does it).
    suspect: Option<(u8, SyncedTime)>,
}

/// A data unit as fields and as octets, and whence it comes.
type Mine<'a> = (Pdu<'a>, &'a [u8], Source);

/// As many as there are sequence numbers.
const HISTORY: usize = 256;

impl Listener {
    /// An end that is there from the talker's first message on, in an emulation.
    pub fn new(parameters: ChannelParameters) -> Self {
        let guard = Guard::of_runs(&parameters);
        let numbering = Numbering::new(&parameters, false);
        let assembly = Assembly::new(parameters.fragments(), false);
        let history = [None; HISTORY];
        Self {
            parameters,
            lifespan: None,
            guard,
            numbering,
            assembly,
            other_talker: None,
            history,
            suspect: None,
        }
    }

    /// The same with this guard, of the channel's integrity, instead of an emulation's.
    pub fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// An end whose talker may have been writing for long: what came before is not lost.
    pub fn joining(parameters: ChannelParameters) -> Self {
        let numbering = Numbering::new(&parameters, true);
        let assembly = Assembly::new(parameters.fragments(), true);
        Self { numbering, assembly, ..Self::new(parameters) }
    }

    /// Whether the channel's messages are authenticated.
    #[inline]
    pub fn is_keyed(&self) -> bool {
        self.guard.is_keyed()
    }

    /// From now on messages are accepted that these keys authenticate.
    pub fn set_keys(&mut self, keys: StreamKeys) {
        self.guard.set_keys(keys);
    }

    /// From now on messages expire that are older.
    pub fn set_lifespan(&mut self, lifespan: Option<Span>) {
        self.lifespan = lifespan;
    }

    /// Whether a message of this age has expired.
    #[inline]
    pub fn is_expired(&self, age: Span) -> bool {
        self.lifespan.is_some_and(|lifespan| age > lifespan)
    }

    /// What the description says of the channel.
    pub fn parameters(&self) -> &ChannelParameters {
        &self.parameters
    }

    /// Where the last message came from that was rejected as [`Reason::Talker`].
    pub fn other_talker(&self) -> Option<&Source> {
        self.other_talker.as_ref()
    }

    /// Takes a frame that came as `reading` says; copies the message into `value`, if it is whole
    /// now and has not expired. Allocates nothing.
    ///
    /// # Panics
    /// When `value` is not of the channel's size.
    pub fn accept(
        &mut self,
        octets: &[u8],
        framing: Framing,
        reading: Reading,
        value: &mut [u8],
    ) -> Result<Accepted, Dropped> {
        assert_eq!(value.len(), self.parameters.size.get() as usize, "a message of another size");
        let (pdu, unit, source) = self.mine(octets, framing).map_err(Dropped::Rejected)?;
        if !self.is_of_talker(source) {
            self.other_talker = Some(source);
            return Err(Dropped::Rejected(Reason::Talker));
        }
        let fragment = match self.assembly.is_needed() {
            false => None,
            true => Some(self.assembly.part(pdu.payload).ok_or(Dropped::Rejected(Reason::Shape))?),
        };
        let ready = reading.ready;
        let capture = rebuild(pdu.timestamp.wrapping_sub(self.parameters.epoch as u32), ready);
        let checked = self.guard.check(unit, &self.parameters, [capture, reading.now]);
        let verified = checked.map_err(Dropped::Rejected)?;
        let uncertain = pdu.uncertain || reading.uncertain;
        let index = fragment.map_or(0, |(fragment, _)| fragment.index);
        let message = Numbered::new(&pdu, source, (framing, &verified), [capture, ready], index);
        let slot = usize::from(pdu.number as u8);
        if self.history[slot] == Some(capture) {
            self.guard.pass(&verified);
            return Err(self.duplicate(&message, fragment, capture));
        }
        // How far clocks may be apart is known of synchronised ones only.
        if !uncertain && capture > reading.now.max(ready) + self.parameters.clock_error {
            self.numbering.pass_over(&message);
            return Err(Dropped::Rejected(Reason::Future));
        }
        let relation = self.numbering.relation(&message);
        if relation == Relation::Other {
            self.other_talker = Some(source);
            return Err(Dropped::Rejected(Reason::Talker));
        }
        self.guard.pass(&verified);
        // Of frames that come together, two late ones in a row are no clock that was set back.
        let in_fragments = fragment.is_some() && relation == Relation::Same;
        let may_be_set = !in_fragments || self.numbering.is_ahead(&message);
        if !self.is_new(pdu.number as u8, capture, may_be_set) {
            return Err(self.duplicate(&message, fragment, capture));
        }
        let (number, gap) = self.numbering.follow(message, relation);
        self.suspect = None;
        self.history[slot] = Some(capture);
        let whole = match fragment {
            None => Some(Whole { capture, sequence: number, gap }),
            Some(fragment) => self.assembly.take(fragment, (capture, number), gap),
        };
        let Whole { capture, sequence, gap } = whole.ok_or(Dropped::Fragment)?;
        let late = ready > capture + self.parameters.fixed_delay;
        let mut flags =
            if late { flag::LATE } else { 0 } | if uncertain { flag::UNCERTAIN } else { 0 };
        if self.is_expired(reading.now - capture) {
            flags |= flag::EXPIRED;
        } else {
            let octets = if fragment.is_some() { self.assembly.octets() } else { pdu.payload };
            value.copy_from_slice(&octets[..value.len()]);
        }
        let Pdu { instance, meeting, .. } = pdu;
        Ok(Accepted { capture, sequence, gap, flags, instance, meeting })
    }

    /// A copy of a message, or of one of its fragments: the last one stands for the message.
    fn duplicate(
        &self,
        message: &Numbered,
        fragment: Option<(Fragment, &[u8])>,
        capture: SyncedTime,
    ) -> Dropped {
        let sequence = self.numbering.number_of(message);
        let Some((fragment, _)) = fragment else { return Dropped::Duplicate { capture, sequence } };
        if fragment.index + 1 < fragment.count {
            return Dropped::Fragment;
        }
        let (capture, sequence) = self.assembly.name(fragment, (capture, sequence));
        Dropped::Duplicate { capture, sequence }
    }

    /// Whether a message that is no copy is not older than the last one, or is as the clock was set
    /// that it was captured by, which may be.
    fn is_new(&mut self, number: u8, capture: SyncedTime, may_be_set: bool) -> bool {
        if self.numbering.last_capture().is_none_or(|last| capture > last) {
            return true;
        }
        let follows =
            |(before, when): (u8, SyncedTime)| before.wrapping_add(1) == number && when < capture;
        if may_be_set && self.suspect.is_some_and(follows) {
            return true;
        }
        self.suspect = Some((number, capture));
        false
    }

    /// Whether frames from there are taken at all.
    #[inline]
    fn is_of_talker(&self, source: Source) -> bool {
        match (self.parameters.talker_address, source) {
            (Some(talker), Source::Station(station)) => talker == station,
            _ => true,
        }
    }

    /// The data unit of a frame of this channel, as fields and as octets, and whence it comes.
    fn mine<'a>(&self, octets: &'a [u8], framing: Framing) -> Result<Mine<'a>, Reason> {
        let (octets, source) = match framing {
            Framing::Datagram { from, .. } => (octets, Source::Socket(from)),
            Framing::Ethernet => {
                let (ethernet, pdu) = wire::unwrap(octets).map_err(|_| Reason::Shape)?;
                if ethernet.destination != self.parameters.destination {
                    return Err(Reason::Stream);
                }
                (pdu, Source::Station(ethernet.source))
            }
        };
        let pdu = Pdu::parse(octets).map_err(|_| Reason::Shape)?;
        if pdu.stream_id != self.parameters.stream_id {
            Err(Reason::Stream)
        } else if pdu.payload.len() != self.parameters.stream_data_length().get() as usize {
            Err(Reason::Size)
        } else {
            Ok((pdu, &octets[..STREAM_HEADER + pdu.payload.len()], source))
        }
    }
}

/// How far in the reader's future a capture time may lie because two clocks differ.
const FUTURE: Span = Span::from_s(1);

/// The instant from 3.29 s before `now` to 1 s after it whose lower 32 bits are `timestamp` (IEEE
/// 1722-2016 4.4.4.8): a message is hardly ever from the future, but may have waited in queues.
pub fn rebuild(timestamp: u32, now: SyncedTime) -> SyncedTime {
    let latest = now + FUTURE;
    let before = (latest.as_ns() as u32).wrapping_sub(timestamp);
    latest - Span::from_ns(i64::from(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talker::Talker;
    use crate::talker::tests::parameters;
    use onbeat_model::units::Octets;
    use proptest::prelude::*;

    fn frame_of(talker: &mut Talker, capture: SyncedTime, value: u64) -> Vec<u8> {
        talker.write(capture, &value.to_le_bytes(), false).expect("within the rate");
        talker.frame().to_vec()
    }

    fn datagram(port: u16, number: u32) -> Framing {
        Framing::Datagram { from: ([10, 0, 0, 1], port).into(), number }
    }

    fn accept(
        listener: &mut Listener,
        frame: &[u8],
        now: SyncedTime,
    ) -> Result<(Accepted, u64), Dropped> {
        let mut value = [0; 8];
        let reading = Reading::at(now);
        let got = listener.accept(frame, Framing::Ethernet, reading, &mut value)?;
        Ok((got, u64::from_le_bytes(value)))
    }

    #[test]
    fn a_message_expires_when_it_is_older_than_the_lifespan_and_leaves_the_variable_alone() {
        let size = Octets::new(3_000);
        for (parameters, octets) in
            [(parameters(), 8), (ChannelParameters { size, ..parameters() }, 3_000)]
        {
            let mut talker = Talker::new(parameters);
            let mut listener = Listener::new(parameters);
            let lifespan = Span::from_ms(5);
            listener.set_lifespan(Some(lifespan));
            let (mut value, mut held) = (vec![0; octets], 0_u8);
            for (number, age) in [(1_u8, 5_000_000), (2, 5_000_001), (3, 4_000_000), (4, 9_000_000)]
            {
                let capture = SyncedTime::from_ns(i64::from(number) * 20_000_000);
                let message = vec![number; octets];
                talker.write(capture, &message, false).expect("within the rate");
                let mut frames = vec![talker.frame().to_vec()];
                while talker.next_fragment(&message) {
                    frames.push(talker.frame().to_vec());
                }
                // It was there to be read long before a call came for it.
                let now = capture + Span::from_ns(age);
                let reading = Reading { ready: capture + Span::from_us(90), now, uncertain: false };
                let mut outcome = Err(Dropped::Fragment);
                for frame in &frames {
                    outcome = listener.accept(frame, Framing::Ethernet, reading, &mut value);
                }
                let accepted = outcome.expect("a whole message");
                let is_old = Span::from_ns(age) > lifespan;
                assert_eq!(accepted.flags, if is_old { flag::EXPIRED } else { 0 }, "{number}");
                assert_eq!((accepted.capture, accepted.gap), (capture, 0));
                held = if is_old { held } else { number };
                assert_eq!(value, vec![held; octets], "{number}");
            }
        }
    }

    #[test]
    fn gaps_lateness_and_duplicates_are_told_across_the_wrap_of_the_sequence() {
        let (mut talker, mut listener) = (Talker::new(parameters()), Listener::new(parameters()));
        for k in 0..600u64 {
            let capture = SyncedTime::from_ns(k as i64 * 20_000_000);
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
            let (instance, meeting) = (1, 0);
            let expected = Accepted { capture, sequence: k, gap, flags, instance, meeting };
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
            let capture = SyncedTime::from_ns(k * 20_000_000 + k % 1_000);
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
            let at = |ns| SyncedTime::from_ns(7_200_000_000_000 + ns);
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
        let at = |k: i64| SyncedTime::from_ns(k * 20_000_000);
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
        let at = SyncedTime::from_ns;
        let stale = frame_of(&mut talker, at(0), 0);
        for k in 1..200 {
            let frame = frame_of(&mut talker, at(k * 20_000_000), k as u64);
            accept(&mut listener, &frame, at(k * 20_000_000)).expect("before");
        }
        // Four seconds old, it seems to come from 0.3 s ahead.
        let got = accept(&mut listener, &stale, at(4_000_000_000));
        assert_eq!(got, Err(Dropped::Rejected(Reason::Future)));
        // Of clocks that are not synchronised it cannot be told.
        let reading = Reading { uncertain: true, ..Reading::at(at(4_000_000_000)) };
        let got = listener.accept(&stale, Framing::Ethernet, reading, &mut [0; 8]);
        assert_eq!(got.map(|accepted| accepted.flags), Ok(flag::UNCERTAIN));
        let mut lost = 0;
        for k in 201..250 {
            let frame = frame_of(&mut talker, at(k * 20_000_000), k as u64);
            lost += u32::from(accept(&mut listener, &frame, at(k * 20_000_000)).is_err());
        }
        assert!(lost <= 1, "{lost} messages lost");
    }

    #[test]
    fn a_capture_later_than_clocks_may_differ_is_rejected_across_the_wrap() {
        // Frames carry an epoch of 0xffff_0000: their time stamps wrap 65,536 ns after zero.
        for capture in [0, 60_000, 70_000, 4_294_900_000, 4_294_960_000] {
            let (mut talker, listener) = (Talker::new(parameters()), Listener::new(parameters()));
            let capture = SyncedTime::from_ns(capture);
            let frame = frame_of(&mut talker, capture, 7);
            let error = parameters().clock_error;
            for (ahead, fine) in [(0, true), (1, false), (950_000_000, false)] {
                let now = capture - error - Span::from_ns(ahead);
                let got = accept(&mut listener.clone(), &frame, now);
                assert_eq!(got.is_ok(), fine, "{ahead} ns beyond the clocks' errors: {got:?}");
                assert!(fine || got == Err(Dropped::Rejected(Reason::Future)));
                // By an uncertain clock it is what it says, and is marked.
                let reading = Reading { uncertain: true, ..Reading::at(now) };
                let got = listener.clone().accept(&frame, Framing::Ethernet, reading, &mut [0; 8]);
                let got = got.expect("accepted");
                assert_eq!((got.capture, got.flags), (capture, flag::UNCERTAIN));
            }
            // One that came before and was read later was not captured in the future.
            let ready = capture - Span::from_us(5);
            let reading = Reading { ready, now: capture, uncertain: false };
            assert!(
                listener.clone().accept(&frame, Framing::Ethernet, reading, &mut [0; 8]).is_ok()
            );
        }
    }

    /// What an end that hears `heard` of the frames counts as lost.
    fn lost(listener: &mut Listener, frames: &[Sent], heard: impl Fn(usize) -> bool) -> u64 {
        let mut lost = 0;
        for (k, (capture, octets, framing)) in frames.iter().enumerate().filter(|(k, _)| heard(*k))
        {
            let reading = Reading::at(*capture + Span::from_us(50));
            let got = listener.accept(octets, *framing, reading, &mut [0; 8]);
            lost += u64::from(got.unwrap_or_else(|why| panic!("{k}: {why:?}")).gap);
        }
        lost
    }

    /// When it was captured, its octets, and how they come.
    type Sent = (SyncedTime, Vec<u8>, Framing);

    /// What a talker sends at these times.
    fn sent(talker: &mut Talker, times: impl Iterator<Item = i64>, udp: bool) -> Vec<Sent> {
        let one = |(number, ns): (usize, i64)| {
            let capture = SyncedTime::from_ns(ns);
            let frame = frame_of(talker, capture, number as u64);
            match udp {
                true => (capture, frame[18..].to_vec(), datagram(4_000, number as u32)),
                false => (capture, frame, Framing::Ethernet),
            }
        };
        times.enumerate().map(one).collect()
    }

    #[test]
    fn as_many_are_lost_as_were_however_many_in_a_row() {
        let every = |k: i64| k * 20_000_000 + k % 7 * 1_000;
        // An older talker says eight bits, a datagram 32.
        for (instance, udp) in [(0, false), (9, false), (0, true), (9, true)] {
            let mut talker = Talker::of_instance(parameters(), instance);
            let frames = sent(&mut talker, (0..70_000).map(every), udp);
            for away in [1, 2, 255, 256, 257, 1_000, 10_000, 60_000, 65_535, 65_536, 66_000] {
                if away > 10_000 && instance == 0 && !udp {
                    continue; // eight bits do not tell so many from a pause
                }
                let mut listener = Listener::new(parameters());
                let heard = |k| k < 100 || k >= 100 + away;
                let heard = |k| heard(k) && k < 100 + away + 50;
                let got = lost(&mut listener, &frames, heard);
                assert_eq!(got, away as u64, "instance {instance}, udp {udp}");
            }
        }
    }

    #[test]
    fn a_pause_is_no_loss() {
        for (instance, udp) in [(0, false), (9, false), (9, true)] {
            for pause in [50, 1_000, 3_333, 200_000] {
                // 20 messages, then nothing for so many intervals, and again.
                let times = (0..200).map(|k| (k + k / 20 * pause) * 20_000_000);
                let mut talker = Talker::of_instance(parameters(), instance);
                let frames = sent(&mut talker, times, udp);
                let got = lost(&mut Listener::new(parameters()), &frames, |_| true);
                assert_eq!(got, 0, "instance {instance}, udp {udp}, {pause} intervals");
            }
        }
    }

    #[test]
    fn a_talker_that_is_started_again_has_lost_what_is_missing_of_its_new_count() {
        let mut listener = Listener::new(parameters());
        let mut total = 0;
        for start in 0..10i64 {
            let begins = start * 60_000_000_000;
            // Pairs have the same instance, as happens once in 255 times.
            let mut talker = Talker::of_instance(parameters(), start as u8 / 2 + 1);
            let frames = sent(&mut talker, (0..37).map(|k| begins + k * 20_000_000), false);
            // The second of each start is lost, and the first of every other.
            let heard = |k: usize| k != 1 && (k != 0 || start % 2 == 0);
            total += lost(&mut listener, &frames, heard);
        }
        assert_eq!(total, 5 + 5 * 2);
    }

    #[test]
    fn a_second_talker_is_named_and_costs_nothing() {
        let elsewhere =
            ChannelParameters { source: onbeat_model::units::MacAddress([4; 6]), ..parameters() };
        for (other, name) in [(elsewhere, elsewhere.source), (parameters(), parameters().source)] {
            let mut listener = Listener::new(parameters());
            let (mut one, mut two) =
                (Talker::of_instance(parameters(), 3), Talker::of_instance(other, 4));
            let (mut lost, mut others, mut values) = (0, 0, Vec::new());
            for k in 0..2_000i64 {
                for (talker, ns) in [(&mut one, 0), (&mut two, 7_000_000)] {
                    let now = SyncedTime::from_ns(k * 20_000_000 + ns);
                    let value = k as u64 * 2 + u64::from(ns != 0);
                    match accept(&mut listener, &frame_of(talker, now, value), now) {
                        Ok((got, value)) => {
                            lost += got.gap;
                            values.push(value % 2);
                        }
                        Err(dropped) => {
                            assert_eq!(dropped, Dropped::Rejected(Reason::Talker));
                            others += 1;
                        }
                    }
                }
            }
            // Which one it is cannot be told at first, where the second is on the same host.
            assert!(values[1..].iter().all(|value| *value == values[1]), "{values:?}");
            assert_eq!((lost, others + values.len()), (0, 4_000));
            assert_eq!(listener.other_talker(), Some(&Source::Station(name)));
        }
    }

    #[test]
    fn another_host_may_take_over_from_a_talker_that_has_fallen_silent() {
        let mut listener = Listener::new(parameters());
        let mut one = Talker::of_instance(parameters(), 3);
        let source = onbeat_model::units::MacAddress([4; 6]);
        let mut two = Talker::of_instance(ChannelParameters { source, ..parameters() }, 3);
        let at = |k: i64| SyncedTime::from_ns(k * 20_000_000);
        for k in 0..10 {
            accept(&mut listener, &frame_of(&mut one, at(k), 1), at(k)).expect("the first");
        }
        let outcome: Vec<_> =
            (10..30).map(|k| accept(&mut listener, &frame_of(&mut two, at(k), 2), at(k))).collect();
        let (before, after) = outcome.split_at(3);
        assert!(before.iter().all(|got| *got == Err(Dropped::Rejected(Reason::Talker))));
        for (k, got) in after.iter().enumerate() {
            let (accepted, value) = got.as_ref().expect("the second");
            assert_eq!((accepted.gap, accepted.sequence, *value), (0, k as u64 + 3, 2));
        }
    }

    #[test]
    fn a_talker_whose_clock_steps_is_not_silent() {
        let source = onbeat_model::units::MacAddress([4; 6]);
        for step_ns in [-900_000_000, -400_000_000, 400_000_000, 900_000_000] {
            let mut listener = Listener::new(parameters());
            let mut one = Talker::of_instance(parameters(), 3);
            let other = ChannelParameters { source, ..parameters() };
            let mut two = Talker::of_instance(other, 3);
            let mut taken = 0;
            for k in 0..100_i64 {
                let now = SyncedTime::from_ns(k * 20_000_000);
                let is_off = (20..60).contains(&k);
                let captured = now + Span::from_ns(if is_off { step_ns } else { 0 });
                let own = accept(&mut listener, &frame_of(&mut one, captured, 1), now);
                taken += usize::from(own.is_ok());
                let then = now + Span::from_ms(7);
                let got = accept(&mut listener, &frame_of(&mut two, then, 2), then);
                assert_eq!(got, Err(Dropped::Rejected(Reason::Talker)), "at {k}, {step_ns} ns");
            }
            // From the future, or one at the step back.
            assert_eq!(taken, if step_ns > 0 { 60 } else { 99 }, "{step_ns} ns");
        }
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
        let now = SyncedTime::ZERO;
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
        let now = SyncedTime::ZERO;
        let frame = frame_of(&mut Talker::new(parameters()), now, 7);
        let untagged = [&frame[..12], &frame[16..]].concat();
        for (octets, framing) in [
            (&frame[..], Framing::Ethernet),
            (&untagged[..], Framing::Ethernet),
            (&frame[18..], datagram(4_000, 0)),
        ] {
            let mut value = [0; 8];
            let reading = Reading::at(now);
            let got = Listener::new(parameters()).accept(octets, framing, reading, &mut value);
            assert!(got.is_ok() && u64::from_le_bytes(value) == 7, "{got:?}");
        }
    }

    proptest! {
        #[test]
        fn the_capture_time_is_rebuilt_across_the_wrap_and_from_the_near_future(
            capture in -5_000_000_000i64..50_000_000_000,
            age in -1_000_000_000i64..3_290_000_000,
        ) {
            let capture = SyncedTime::from_ns(capture);
            let now = capture + Span::from_ns(age);
            prop_assert_eq!(rebuild(capture.as_ns() as u32, now), capture);
        }
    }
}
