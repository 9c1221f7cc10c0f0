//! Several messages of one talker, handed to the network in as few calls as it takes. Each of them
//! is what it would be alone: its number, its record, and what the declared rate says of it.

use crate::channel::{TalkerEndpoint, Written};
use crate::channel_io::{ChannelError, ChannelIo, Instant, Log};
use crate::talker::{ChannelParameters, Progress, Sent};
use arrayvec::ArrayVec;
use onbeat_model::time::SyncedTime;

/// The most frames that are handed over in one call.
pub const AT_ONCE: usize = 16;

/// The most memory for them at each talker, in octets; there is room for one frame in any case.
const ROOM: usize = 8_192;

/// What a write of several messages gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenMany {
    /// How many are on their way: the first ones.
    pub count: usize,
    /// What a write of the last one gave back if all are, else one of the first that is not.
    pub outcome: Result<Written, ChannelError>,
}

/// Memory for frames that are handed over together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// As many as there is room for, one after the other.
    frames: Box<[u8]>,
    /// Octets of each.
    length: usize,
    /// How many have what is the same in all frames, with this tag.
    made: usize,
    tag: (u16, u8),
}

impl Batch {
    /// For the frames of a channel. Allocates, and touches what it allocates.
    pub(crate) fn new(parameters: &ChannelParameters) -> Self {
        let length = parameters.frame_octets();
        let frames = (ROOM / length).clamp(1, AT_ONCE);
        let frames = vec![u8::MAX; frames * length].into_boxed_slice();
        Self { frames, length, made: 0, tag: (parameters.vlan, parameters.pcp) }
    }
}

/// Messages whose frames are made, and what each left for the next one.
type Made = ArrayVec<(Sent, Progress), AT_ONCE>;

impl<P: ChannelIo, L: Log> TalkerEndpoint<P, L> {
    /// Sends the messages that follow each other in `values`, as that many
    /// [`TalkerEndpoint::write`] would, waiting for the declared rate before each that it holds.
    /// Stops at the first that is not sent. `captured` is told the position and the capture time of
    /// each that is; those of one call to the network are captured a nanosecond after each other.
    /// Real-time: allocates nothing.
    ///
    /// # Panics
    /// When `values` is empty, or no multiple of the channel's size.
    pub fn write_many(
        &mut self,
        values: &[u8],
        captured: impl FnMut(usize, SyncedTime),
    ) -> WrittenMany {
        self.write_all(values, true, captured)
    }

    /// The same as that many [`TalkerEndpoint::try_write`], which wait for nothing.
    ///
    /// # Panics
    /// As [`TalkerEndpoint::write_many`].
    pub fn try_write_many(
        &mut self,
        values: &[u8],
        captured: impl FnMut(usize, SyncedTime),
    ) -> WrittenMany {
        self.write_all(values, false, captured)
    }

    fn write_all(
        &mut self,
        values: &[u8],
        waits: bool,
        mut captured: impl FnMut(usize, SyncedTime),
    ) -> WrittenMany {
        let size = self.talker.parameters().size.get() as usize;
        let whole = !values.is_empty() && values.len().is_multiple_of(size);
        assert!(whole, "{} octets are no messages of {size}", values.len());
        let mut count = 0;
        loop {
            let rest = &values[count * size..];
            let (more, outcome) = self.write_some(rest, waits, |n, at| captured(count + n, at));
            count += more;
            let is_sent = matches!(outcome, Ok(Written::Sent { .. }));
            if !is_sent || count * size == values.len() {
                return WrittenMany { count, outcome };
            }
        }
    }

    /// Sends the first messages of `values` in one call to the network: how many, and what a write
    /// of the last of them gives back, or of the one behind them that was not sent.
    fn write_some(
        &mut self,
        values: &[u8],
        waits: bool,
        mut captured: impl FnMut(usize, SyncedTime),
    ) -> (usize, Result<Written, ChannelError>) {
        let size = self.talker.parameters().size.get() as usize;
        let parameters = self.talker.parameters();
        let is_alone = parameters.launch.is_some() || parameters.fragments().count > 1;
        if is_alone || self.io.at_once() < 2 || values.len() == size {
            let outcome = if waits {
                self.write(&values[..size]).map(|capture| Written::Sent { capture })
            } else {
                self.try_write(&values[..size])
            };
            let Ok(Written::Sent { capture }) = outcome else { return (0, outcome) };
            captured(0, capture);
            return (1, outcome);
        }
        let mut made = Made::new();
        let now = match self.make(values, waits, &mut made) {
            Ok(Ok(now)) => now,
            Ok(Err(refused)) => return (0, Ok(refused)),
            Err(fault) => return (0, Err(fault)),
        };
        let Batch { frames, length, .. } = &self.batch;
        let (taken, sent) = self.io.send_many(&frames[..made.len() * length], *length);
        for (at, (sent, _)) in made[..taken].iter().enumerate() {
            self.note(*sent, now);
            captured(at, sent.capture);
        }
        let outcome = sent.map(|()| Written::Sent { capture: made[taken - 1].0.capture });
        if outcome.is_err() {
            // Those behind it were not written at all.
            self.talker.go_back(made[taken].1);
        }
        (taken, self.unless_kept(outcome))
    }

    /// Makes the frames of the first messages of `values`, as many as one call takes and the
    /// declared rate allows now: at least one, captured at the instant that is returned, or says
    /// why there is none.
    fn make(
        &mut self,
        values: &[u8],
        waits: bool,
        made: &mut Made,
    ) -> Result<Result<Instant, Written>, ChannelError> {
        loop {
            if waits {
                self.reserved()?;
            } else if !self.is_granted() {
                return Ok(Err(Written::NotReserved));
            }
            self.rekey();
            let (now, uncertain) = self.io.begin_write()?;
            let held = self.fill(values, now.local, uncertain, made);
            let Some(until) = held.filter(|_| made.is_empty()) else { return Ok(Ok(now)) };
            if !waits {
                self.log.rate_exceeded();
                return Ok(Err(Written::RateExceeded { until }));
            }
            self.sleep_for_rate(until)?;
        }
    }

    /// Fills the batch; until when the rate holds the message behind those that it allows, if it
    /// does.
    fn fill(
        &mut self,
        values: &[u8],
        now: SyncedTime,
        uncertain: bool,
        made: &mut Made,
    ) -> Option<SyncedTime> {
        let ChannelParameters { vlan, pcp, size, .. } = *self.talker.parameters();
        let Batch { frames, length, made: known, tag } = &mut self.batch;
        if *tag != (vlan, pcp) {
            (*tag, *known) = ((vlan, pcp), 0);
        }
        let values = values.chunks_exact(size.get() as usize);
        let frames = frames.chunks_exact_mut(*length).take(self.io.at_once());
        for (value, frame) in values.zip(frames).take(AT_ONCE) {
            let is_made = made.len() < *known;
            match self.talker.write_into(now, value, uncertain, frame, is_made) {
                Err(exceeded) => return Some(exceeded.until),
                Ok(sent) => made.push((sent, self.talker.progress())),
            }
            *known = made.len().max(*known);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel_io::{Reason, Received, Source, Timeout, Window};
    use crate::talker::Talker;
    use crate::talker::tests::parameters;
    use onbeat_model::integrity::Integrity;
    use onbeat_model::record::Record;
    use onbeat_model::time::Span;
    use proptest::prelude::*;

    /// A network that refuses some frames, and a clock that only sleeping moves.
    struct Network {
        now: SyncedTime,
        at_once: usize,
        /// What is said of each frame that is handed over, as long as there is something.
        answers: Vec<Result<(), ChannelError>>,
        taken: Vec<Vec<u8>>,
        calls: usize,
    }

    impl ChannelIo for Network {
        fn now(&mut self) -> Result<Instant, ChannelError> {
            Ok(Instant { local: self.now, network: None })
        }
        fn uncertain(&self) -> bool {
            false
        }
        fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
            self.now = self.now.max(target);
            self.now()
        }
        fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
            let answer = if self.answers.is_empty() { Ok(()) } else { self.answers.remove(0) };
            self.calls += 1;
            answer.map(|()| self.taken.push(frame.to_vec()))
        }
        fn at_once(&self) -> usize {
            self.at_once
        }
        fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, Result<(), ChannelError>) {
            let before = self.calls;
            let mut all = frames.chunks_exact(length);
            assert!(all.len() <= self.at_once && all.remainder().is_empty());
            let fault = all.find_map(|frame| self.send(frame).err());
            let taken = self.calls - before - usize::from(fault.is_some());
            self.calls = before + 1;
            (taken, fault.map_or(Ok(()), Err))
        }
        fn receive(
            &mut self,
            _: &mut [u8],
            _: Timeout,
            _: Option<Window>,
        ) -> Result<Option<Received>, ChannelError> {
            Ok(None)
        }
    }

    #[derive(Default)]
    struct Records(Vec<Record>, u64);

    impl Log for Records {
        fn push(&mut self, record: &Record) {
            self.0.push(*record);
        }
        fn amend(&mut self, _: &Record) {}
        fn reject(&mut self, _: Reason, _: u64) {}
        fn other_talker(&mut self, _: &Source) {}
        fn rate_exceeded(&mut self) {
            self.1 += 1;
        }
    }

    type End = TalkerEndpoint<Network, Records>;

    fn end(
        channel: ChannelParameters,
        at_once: usize,
        answers: &[Result<(), ChannelError>],
    ) -> End {
        let now = SyncedTime::from_ns(1_000_000);
        let (answers, taken) = (answers.to_vec(), Vec::new());
        let network = Network { now, at_once, answers, taken, calls: 0 };
        TalkerEndpoint::new(Talker::new(channel), network, Records::default())
    }

    /// A channel that lets so many messages be written at one instant.
    fn bursts(messages: i64) -> ChannelParameters {
        let parameters = parameters();
        ChannelParameters { tolerance: parameters.interval * (messages - 1), ..parameters }
    }

    /// What is written one by one, as the library's user would.
    fn one_by_one(
        end: &mut End,
        values: &[[u8; 8]],
        waits: bool,
    ) -> (WrittenMany, Vec<SyncedTime>) {
        let mut captures = Vec::new();
        let mut last = Ok(Written::NotReserved);
        for value in values {
            last = match waits {
                true => end.write(value).map(|capture| Written::Sent { capture }),
                false => end.try_write(value),
            };
            let Ok(Written::Sent { capture }) = last else { break };
            captures.push(capture);
        }
        (WrittenMany { count: captures.len(), outcome: last }, captures)
    }

    #[test]
    fn as_many_as_a_call_takes_are_handed_over_in_one() {
        let mut talker = end(bursts(40), AT_ONCE, &[]);
        let values = [[7; 8]; 40];
        let written = talker.write_many(values.as_flattened(), |_, _| {});
        assert_eq!(written.count, 40);
        assert_eq!((talker.io().calls, talker.io().taken.len()), (3, 40));
    }

    // A message that had begun to leave is sent, and lost; one that had not is not written.
    #[test]
    fn an_interface_that_goes_within_a_message_in_fragments_costs_one_that_counts_as_sent() {
        let size = onbeat_model::units::Octets::new(4_000);
        let gone = || Err(ChannelError::LinkDown);
        let answers = [Ok(()), gone(), gone(), Ok(()), Ok(()), Ok(())];
        let mut talker = end(ChannelParameters { size, ..bursts(9) }, AT_ONCE, &answers);
        let value = [7; 4_000];
        assert!(talker.write(&value).is_ok());
        assert_eq!(talker.write(&value), Err(ChannelError::LinkDown));
        assert!(talker.write(&value).is_ok());
        let records = &talker.log().0;
        assert_eq!(records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [0, 1]);
        let numbers = talker.io().taken.iter().map(|frame| frame[20]);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 3, 4, 5]);
    }

    #[test]
    fn a_new_tag_is_in_all_frames_behind_it() {
        let mut talker = end(bursts(40), AT_ONCE, &[]);
        let values = [[7; 8]; 3];
        talker.write_many(values.as_flattened(), |_, _| {});
        talker.talker.tag(9, 2);
        talker.write_many(values.as_flattened(), |_, _| {});
        let tags = talker.io().taken.iter().map(|frame| frame[15]);
        assert_eq!(tags.collect::<Vec<_>>(), [2, 2, 2, 9, 9, 9]);
    }

    #[test]
    fn memory_for_long_frames_has_its_limit() {
        let size = onbeat_model::units::Octets::new(1_470);
        let batch = Batch::new(&ChannelParameters { size, ..parameters() });
        assert_eq!((batch.length, batch.frames.len() / batch.length), (1_512, 5));
    }

    fn answer() -> impl Strategy<Value = Result<(), ChannelError>> {
        prop_oneof![
            6 => Just(Ok(())),
            1 => Just(Err(ChannelError::LinkDown)),
            1 => Just(Err(ChannelError::QueueFull)),
            1 => Just(Err(ChannelError::TooLong)),
        ]
    }

    proptest! {
        /// Frames, records, counts, captures, what is said, and what the next messages are.
        #[test]
        fn many_at_once_are_what_they_are_one_by_one(
            rounds in proptest::collection::vec(
                (1usize..40, 0i64..90_000_000, any::<bool>()), 1..5,
            ),
            burst in 1i64..30, at_once in 1..=AT_ONCE,
            answers in proptest::collection::vec(answer(), 0..60),
            catches_up: bool, replicated: bool,
            integrity in proptest::sample::select(vec![
                Integrity::None, Integrity::Crc, Integrity::Authenticated,
            ]),
        ) {
            let catch_up = if catches_up { parameters().interval } else { Span::ZERO };
            let channel = ChannelParameters { catch_up, replicated, integrity, ..bursts(burst) };
            let mut alone = end(channel, 1, &answers);
            let mut together = end(channel, at_once, &answers);
            for (count, pause, waits) in rounds {
                let value = |n: usize| [n as u8; 8];
                let values: Vec<[u8; 8]> = (0..count).map(value).collect();
                let (expected, at) = one_by_one(&mut alone, &values, waits);
                let mut captures = Vec::new();
                let captured = |n: usize, capture| {
                    assert_eq!(n, captures.len());
                    captures.push(capture);
                };
                let octets = values.as_flattened();
                let got = match waits {
                    true => together.write_many(octets, captured),
                    false => together.try_write_many(octets, captured),
                };
                prop_assert_eq!((got, captures), (expected, at));
                prop_assert_eq!(&together.io.taken, &alone.io.taken);
                prop_assert_eq!(&together.log.0, &alone.log.0);
                prop_assert_eq!(together.log.1, alone.log.1);
                prop_assert_eq!(together.io.now, alone.io.now);
                for end in [&mut alone, &mut together] {
                    end.io.now += Span::from_ns(pause);
                }
            }
        }
    }
}
