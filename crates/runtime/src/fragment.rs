//! Fragments of messages that are longer than a frame: what stands before each of them, and how a
//! reader puts them together.
//!
//! A channel's frames have numbers and capture times of their own, whatever they carry; so copies,
//! losses and old frames are known before this. Here only consecutive frames make a message.

use onbeat_model::fragment::{Fragments, HEADER};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::Octets;

/// What stands before a fragment, each number in two octets, the higher one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Which it is, from 0.
    pub index: u16,
    /// How many the message has.
    pub count: u16,
}

impl Fragment {
    /// Writes it and `part` of the message into `into`, with zeros behind it up to `octets`, and
    /// returns how long that is.
    ///
    /// # Panics
    /// When `part` is longer than `octets`, or `into` shorter than the result.
    pub fn emit(self, part: &[u8], octets: Octets, into: &mut [u8]) -> usize {
        let length = (HEADER + octets).get() as usize;
        let (header, rest) = into[..length].split_at_mut(HEADER.get() as usize);
        header[..2].copy_from_slice(&self.index.to_be_bytes());
        header[2..].copy_from_slice(&self.count.to_be_bytes());
        let (data, padding) = rest.split_at_mut(part.len());
        data.copy_from_slice(part);
        padding.fill(0);
        length
    }

    /// Reads it, and what follows it.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let ([a, b, c, d], part) = payload.split_first_chunk()?;
        let (index, count) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        (index < count).then_some((Self { index, count }, part))
    }
}

/// A message that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// When it was captured.
    pub(crate) capture: SyncedTime,
    /// Its number, by its talker's count.
    pub(crate) sequence: u64,
    /// Messages missing between the one before and this one.
    pub(crate) gap: u32,
}

/// Puts fragments together.
#[derive(Clone, Debug)]
pub(crate) struct Assembly {
    fragments: Fragments,
    /// Room for whole fragments; empty where there is one a message.
    octets: Box<[u8]>,
    /// The message of which the first fragments are here: its capture time, and how many these are.
    begun: Option<(SyncedTime, u16)>,
    /// Frames since the last whole message that are missing, or of no use as others are.
    missing: u64,
    /// The first message that begins is still to come: those before it are not lost.
    joins: bool,
}

impl Assembly {
    /// Allocates, and touches what it allocates.
    pub(crate) fn new(fragments: Fragments, joins: bool) -> Self {
        let octets = match fragments.count {
            1 => 0,
            count => (count * fragments.octets.get()) as usize,
        };
        let octets = vec![u8::MAX; octets].into_boxed_slice();
        Self { fragments, octets, begun: None, missing: 0, joins }
    }

    /// Whether messages have fragments.
    #[inline]
    pub(crate) fn is_needed(&self) -> bool {
        self.fragments.count > 1
    }

    /// The fragment that a frame carries, if it is one of this channel's, with what is in it.
    pub(crate) fn part<'a>(&self, payload: &'a [u8]) -> Option<(Fragment, &'a [u8])> {
        let (fragment, part) = Fragment::parse(payload)?;
        let octets = self.fragments.octets.get() as usize;
        let is_ours = u32::from(fragment.count) == self.fragments.count && part.len() >= octets;
        is_ours.then(|| (fragment, &part[..octets]))
    }

    /// When the message of a fragment was captured, whose frame says `capture`, and its number by
    /// that of the frame.
    pub(crate) fn name(
        &self,
        fragment: Fragment,
        (capture, number): (SyncedTime, u64),
    ) -> (SyncedTime, u64) {
        let first = number.saturating_sub(u64::from(fragment.index));
        let capture = capture - Span::from_ns(fragment.index.into());
        (capture, first / u64::from(self.fragments.count))
    }

    /// The message that has become whole, and zeros.
    #[inline]
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Takes a fragment whose frame follows the last one, but for `gap` that are missing; the
    /// message, if it is whole.
    pub(crate) fn take(
        &mut self,
        (fragment, part): (Fragment, &[u8]),
        (capture, number): (SyncedTime, u64),
        gap: u32,
    ) -> Option<Whole> {
        let count = u64::from(self.fragments.count);
        let (captured, sequence) = self.name(fragment, (capture, number));
        self.missing += u64::from(gap);
        if self.joins && fragment.index > 0 {
            return None;
        }
        if std::mem::take(&mut self.joins) {
            self.missing = 0;
        }
        let follows = |(of, next)| gap == 0 && of == captured && next == fragment.index;
        if !self.begun.is_some_and(follows) {
            self.missing += self.begun.map_or(0, |(_, parts)| u64::from(parts));
            self.begun = (fragment.index == 0).then_some((captured, 0));
        }
        let Some((_, parts)) = &mut self.begun else {
            self.missing += 1;
            return None;
        };
        *parts += 1;
        let at = usize::from(fragment.index) * part.len();
        self.octets[at..at + part.len()].copy_from_slice(part);
        if fragment.index + 1 < fragment.count {
            return None;
        }
        self.begun = None;
        // What a talker that was started again had begun is not counted.
        let gap = u32::try_from(std::mem::take(&mut self.missing) / count).unwrap_or(u32::MAX);
        Some(Whole { capture: captured, sequence, gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel_io::{Framing, Reason};
    use crate::listener::{Accepted, Dropped, Listener, Reading};
    use crate::talker::tests::parameters;
    use crate::talker::{ChannelParameters, Talker};
    use onbeat_model::integrity::Integrity;
    use proptest::prelude::*;

    fn long(size: u32, integrity: Integrity) -> ChannelParameters {
        ChannelParameters { size: Octets::new(size), integrity, ..parameters() }
    }

    fn value(number: u64, size: u32) -> Vec<u8> {
        (0..u64::from(size)).map(|at| (number * 31 + at * 7) as u8).collect()
    }

    /// The frames of a message.
    fn frames(talker: &mut Talker, now: SyncedTime, value: &[u8]) -> Vec<Vec<u8>> {
        talker.write(now, value, false).expect("within the rate");
        let mut frames = vec![talker.frame().to_vec()];
        while talker.next_fragment(value) {
            frames.push(talker.frame().to_vec());
        }
        frames
    }

    fn accept(
        listener: &mut Listener,
        frame: &[u8],
        now: SyncedTime,
        value: &mut [u8],
    ) -> Result<Accepted, Dropped> {
        listener.accept(frame, Framing::Ethernet, Reading::at(now), value)
    }

    #[test]
    fn frames_are_of_one_length_and_numbered_on_across_messages() {
        let parameters = long(3_000, Integrity::None);
        let mut talker = Talker::new(parameters);
        for message in 0..100_u64 {
            let now = SyncedTime::from_ns(message as i64 * 20_000_000);
            let all = frames(&mut talker, now, &value(message, 3_000));
            assert_eq!(all.len(), 3);
            for (index, frame) in (0..).zip(&all) {
                assert_eq!(frame.len(), parameters.frame_octets());
                let frame = crate::wire::Frame::parse(frame).expect("a frame");
                assert_eq!(u64::from(frame.header.number), message * 3 + u64::from(index));
                let captured = parameters.epoch + now.as_ns() + i64::from(index);
                assert_eq!(frame.header.timestamp, captured as u32);
                let (fragment, part) = Fragment::parse(frame.payload).expect("a fragment");
                assert_eq!(fragment, Fragment { index, count: 3 });
                assert_eq!(part.len(), 1_000);
            }
        }
    }

    #[test]
    fn a_message_leaves_no_capture_time_of_its_frames_to_the_next_one() {
        let burst = Span::from_ms(100);
        let mut talker =
            Talker::new(ChannelParameters { tolerance: burst, ..long(3_000, Integrity::None) });
        let at = |ns: i64| SyncedTime::from_ns(1_000 + ns);
        let captures = [at(0), at(1), at(4)]
            .map(|now| talker.write(now, &[0; 3_000], false).expect("within the burst").capture);
        assert_eq!(captures, [at(0), at(3), at(6)]);
    }

    #[test]
    fn what_is_no_fragment_of_the_channel_is_rejected_and_changes_nothing() {
        let parameters = long(3_000, Integrity::None);
        let (mut talker, mut listener) = (Talker::new(parameters), Listener::new(parameters));
        let now = SyncedTime::ZERO;
        let good = frames(&mut talker, now, &value(0, 3_000));
        let mut into = vec![0; 3_000];
        for (place, octet) in [(42, 1), (43, 3), (43, 0xff), (44, 1), (45, 2), (45, 4)] {
            let mut bad = good[0].clone();
            bad[place] = octet;
            let got = accept(&mut listener, &bad, now, &mut into);
            assert_eq!(got, Err(Dropped::Rejected(Reason::Shape)), "{place}: {octet}");
        }
        let outcomes: Vec<_> =
            good.iter().map(|frame| accept(&mut listener, frame, now, &mut into)).collect();
        assert_eq!(outcomes[..2], [Err(Dropped::Fragment), Err(Dropped::Fragment)]);
        let got = outcomes[2].expect("the last one");
        assert_eq!((got.sequence, got.capture, got.gap), (0, now, 0));
        assert_eq!(into, value(0, 3_000));
    }

    #[test]
    fn losses_are_told_across_the_wrap_of_the_frames_numbers() {
        let parameters = long(60_000, Integrity::None);
        let count = parameters.fragments().count;
        let (mut talker, mut listener) = (Talker::new(parameters), Listener::new(parameters));
        let (mut into, mut missing) = (vec![0; 60_000], 0);
        // Frames' numbers wrap every 1,524 messages.
        for message in 0..5_000_u64 {
            let now = SyncedTime::from_ns(message as i64 * 20_000_000);
            if (100..103).contains(&message) || (150..4_900).contains(&message) {
                talker.write(now, &into, false).expect("within the rate");
                missing += 1;
                continue;
            }
            let all = frames(&mut talker, now, &value(message, 60_000));
            assert_eq!(all.len() as u32, count);
            let got = all.iter().filter_map(|f| accept(&mut listener, f, now, &mut into).ok());
            let got = got.last().expect("the last one");
            assert_eq!((got.sequence, got.gap), (message, missing));
            missing = 0;
        }
    }

    // Where their number is odd, the index tells the turn of the count.
    #[test]
    fn a_pause_of_as_long_as_the_frames_numbers_take_to_wrap_is_no_loss() {
        for (size, pause) in [65_536, 4_000, 6_500, 24_000].into_iter().flat_map(|size| {
            let intervals = 65_536 / i64::from(long(size, Integrity::None).fragments().count);
            (intervals - 5..intervals + 5).map(move |pause| (size, pause))
        }) {
            let parameters = long(size, Integrity::None);
            assert_eq!(parameters.fragments().count % 2, 1, "{size}");
            let (mut talker, mut listener) = (Talker::new(parameters), Listener::new(parameters));
            let mut into = vec![0; size as usize];
            for message in 0..6_u64 {
                let late = if message < 3 { 0 } else { pause };
                let now = SyncedTime::from_ns((message as i64 + late) * 20_000_000);
                let all = frames(&mut talker, now, &value(message, size));
                let got = all.iter().filter_map(|f| accept(&mut listener, f, now, &mut into).ok());
                let got = got.last().expect("the last one");
                assert_eq!((got.sequence, got.gap), (message, 0), "after {pause} intervals");
            }
        }
    }

    #[test]
    fn frames_that_come_late_again_or_in_another_order_cost_their_message_only() {
        for size in [4_000, 65_536] {
            let parameters = long(size, Integrity::None);
            let (mut talker, mut listener) = (Talker::new(parameters), Listener::new(parameters));
            let (mut into, mut old) = (vec![0; size as usize], Vec::new());
            let mut missing = 0;
            for message in 0..40_u64 {
                let now = SyncedTime::from_ns(message as i64 * 20_000_000);
                let mut all = frames(&mut talker, now, &value(message, size));
                let is_whole = message % 5 != 3;
                if message % 5 == 2 {
                    // An older message once more, before this one.
                    all = [&old, &all[..]].concat();
                } else if !is_whole {
                    all.rotate_right(1);
                } else if message % 5 == 4 {
                    all.extend_from_slice(&old);
                }
                if message % 5 == 0 {
                    old.clone_from(&all);
                }
                let got = all.iter().filter_map(|f| accept(&mut listener, f, now, &mut into).ok());
                let got: Vec<_> = got.map(|got| (got.sequence, got.gap)).collect();
                let wanted = is_whole.then_some((message, missing));
                assert_eq!(got, wanted.into_iter().collect::<Vec<_>>(), "{size}: {message}");
                missing = u32::from(!is_whole);
            }
        }
    }

    proptest! {
        #[test]
        fn a_message_is_read_if_all_its_frames_come_and_else_counted(
            size in 1_477_u32..20_000,
            integrity in prop::sample::select(vec![
                Integrity::None, Integrity::Crc, Integrity::Authenticated,
            ]),
            fate in prop::collection::vec(0_u8..12, 1..400),
            joins: bool,
        ) {
            let parameters = long(size, integrity);
            let mut talker = Talker::new(parameters);
            let mut listener = if joins {
                Listener::joining(parameters)
            } else {
                Listener::new(parameters)
            };
            let mut into = vec![0; size as usize];
            let (mut fate, mut number) = (fate.into_iter(), 0_u64);
            // A reader that joins knows of those that begin when it is there.
            let (mut last, mut begun, mut read) = (None, joins.then_some(u64::MAX), 0);
            while fate.len() > 0 {
                let now = SyncedTime::from_ns(number as i64 * 20_000_000);
                let sent = value(number, size);
                let mut is_whole = true;
                let mut got = None;
                for (index, frame) in frames(&mut talker, now, &sent).into_iter().enumerate() {
                    let lost = fate.as_slice().first() == Some(&0);
                    if index == 0 && !lost && begun == Some(u64::MAX) {
                        begun = Some(number);
                    }
                    match fate.next().unwrap_or(9) {
                        0 => is_whole = false,
                        again => for copy in 0..if again == 1 { 2 } else { 1 } {
                            let outcome = accept(&mut listener, &frame, now, &mut into);
                            match outcome {
                                Ok(accepted) => got = Some(accepted),
                                Err(Dropped::Fragment) => {}
                                Err(Dropped::Duplicate { capture, sequence }) => {
                                    prop_assert_eq!((capture, sequence, copy), (now, number, 1));
                                }
                                Err(other) => {
                                    let keyed = integrity == Integrity::Authenticated;
                                    prop_assert!(keyed && copy == 1, "{:?}", other);
                                }
                            }
                        },
                    }
                }
                prop_assert_eq!(got.is_some(), is_whole, "message {}", number);
                if let Some(got) = got {
                    let missing = last.map_or(number, |last| number - last - 1);
                    let missing = match begun.take() {
                        Some(begun) => number - begun,
                        None => missing,
                    };
                    prop_assert_eq!((got.sequence, got.capture), (number, now));
                    prop_assert_eq!(u64::from(got.gap), missing);
                    prop_assert_eq!(&into, &sent);
                    (last, read) = (Some(number), read + 1);
                }
                number += 1;
            }
            prop_assert!(read <= number);
        }
    }
}
