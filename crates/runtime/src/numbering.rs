//! Which talker a message is of, and how many messages are missing before it.
//!
//! A message is here what a frame carries, be it a fragment of a longer one.
//!
//! A frame's number wraps, so it tells how many are missing only together with the time that has
//! passed between two captures: the declared rate allows so many messages in it and no more. What
//! cannot be is never called a loss.

use crate::channel_io::{Framing, Source};
use crate::integrity::Verified;
use crate::talker::ChannelParameters;
use crate::wire::Pdu;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::MacAddress;

/// Which start of which talker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    source: Source,
    /// See [`crate::wire::Header::instance`].
    instance: u8,
}

/// A message's number as far as its frame tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    identity: Identity,
    number: u64,
    /// It is known modulo this.
    modulus: u64,
    capture: SyncedTime,
    heard: SyncedTime,
    /// Which fragment of its message it carries, where messages have several.
    index: u16,
}

impl Numbered {
    pub(crate) fn new(
        pdu: &Pdu<'_>,
        source: Source,
        (framing, verified): (Framing, &Verified),
        [capture, heard]: [SyncedTime; 2],
        index: u16,
    ) -> Self {
        // Who has the key is the talker, whatever a frame says of its sender.
        let source = if verified.is_authentic { ANYWHERE } else { source };
        let identity = Identity { source, instance: pdu.instance };
        let (low, modulus) =
            if pdu.instance == 0 { (pdu.number & 0xff, 1 << 8) } else { (pdu.number, 1 << 16) };
        // A sender of several streams counts their datagrams together: that is no message's number.
        let (number, modulus) = match framing {
            _ if let Some(counter) = verified.counter => counter,
            Framing::Datagram { number, .. } if u64::from(number) % modulus == u64::from(low) => {
                (u64::from(number), 1 << 32)
            }
            _ => (u64::from(low), modulus),
        };
        Self { identity, number, modulus, capture, heard, index }
    }
}

/// Where an authentic message comes from.
const ANYWHERE: Source = Source::Station(MacAddress([0; 6]));

/// What a message's talker is to the one that is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// There was none before.
    First,
    /// It is the same.
    Same,
    /// It is the same, started again.
    Restarted,
    /// It is another one, and the one before has fallen silent.
    Successor,
    /// It is another one beside it.
    Other,
}

/// After so many intervals, its burst and D without a message, a talker has fallen silent.
const SILENCE: i64 = 3;
/// So many earlier talkers are remembered: one that returns is none that was started again.
const FORMER: usize = 4;
/// A count is believed that differs from what the time makes of it by one part in so many.
const STEADY: u64 = 1_024;

/// Follows one talker.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// Of frames, of which each message may have several.
    interval: Span,
    frames: u32,
    /// Whether messages have a pace.
    is_paced: bool,
    /// By how much messages may come before their time, after a late one too.
    early: Span,
    silence: Span,
    joins: bool,
    last: Option<(Numbered, u64)>,
    /// By capture time, and when it was heard: the last that came of the talker, whether its
    /// message was taken or not.
    sign: [SyncedTime; 2],
    former: [Option<Identity>; FORMER],
    /// Where in `former` the next one goes.
    oldest: usize,
}

impl Numbering {
    pub(crate) fn new(parameters: &ChannelParameters, joins: bool) -> Self {
        let ChannelParameters { interval, tolerance, catch_up, fixed_delay, .. } = *parameters;
        let silence = interval * SILENCE + tolerance + fixed_delay;
        let is_paced = tolerance < interval;
        let frames = parameters.fragments().count;
        let of_frames = Span::from_ns((interval.as_ns() / i64::from(frames)).max(1));
        let former = [None; FORMER];
        let sign = [SyncedTime::ZERO; 2];
        // The frames of a message come together.
        let early = tolerance + catch_up + (interval - of_frames).max(Span::ZERO);
        Self {
            interval: of_frames,
            frames,
            is_paced,
            early,
            silence,
            joins,
            last: None,
            sign,
            former,
            oldest: 0,
        }
    }

    /// When the last message was captured.
    pub(crate) fn last_capture(&self) -> Option<SyncedTime> {
        self.last.map(|(message, _)| message.capture)
    }

    /// Whether it is counted behind the last one, as a late or repeated one is not.
    pub(crate) fn is_ahead(&self, message: &Numbered) -> bool {
        let ahead = |last: u64| message.number.wrapping_sub(last + 1) % message.modulus;
        self.last.is_none_or(|(_, last)| ahead(last) < message.modulus / 2)
    }

    /// The number of an old message, or a copy.
    pub(crate) fn number_of(&self, old: &Numbered) -> u64 {
        let last = self.last.map_or(0, |(_, sequence)| sequence);
        last.saturating_sub(last.wrapping_sub(old.number) % old.modulus)
    }

    /// Whose a message is.
    pub(crate) fn relation(&self, message: &Numbered) -> Relation {
        let Some((last, _)) = &self.last else { return Relation::First };
        let (this, before) = (message.identity, last.identity);
        if this == before {
            return Relation::Same;
        }
        let another_start = this.instance != 0 && this.instance != before.instance;
        let is_former = self.former.contains(&Some(this));
        if another_start && this.source.is_host_of(&before.source) && !is_former {
            return Relation::Restarted;
        }
        let [capture, heard] = self.sign;
        // By the reader's clock. Where that is told late, as messages are read together, captures
        // close to each other contradict.
        let apart = (message.capture - capture).abs();
        let silent = message.heard - heard > self.silence && apart > self.silence;
        if silent { Relation::Successor } else { Relation::Other }
    }

    /// Goes by a message from the future, which is not taken. Who sends such is not silent.
    pub(crate) fn pass_over(&mut self, message: &Numbered) {
        if matches!(self.relation(message), Relation::Same | Relation::Restarted) {
            self.sign = [message.heard; 2];
        }
    }

    /// Goes by a message: its number, and how many are missing before it.
    pub(crate) fn follow(&mut self, message: Numbered, relation: Relation) -> (u64, u32) {
        let number = message.number;
        let (sequence, gap) = match self.last {
            None if self.joins => (number, 0),
            None => (number, number),
            Some((last, sequence)) => {
                let elapsed = message.capture - last.capture;
                match relation {
                    Relation::Same => {
                        let missing = number.wrapping_sub(sequence + 1) % message.modulus;
                        let known_start = message.identity.instance != 0;
                        let step = [last.index, message.index];
                        let missing = self.aligned(missing, message.modulus, step);
                        match self.missing(missing, (message.modulus, known_start), elapsed, step) {
                            Some(missing) => (sequence + 1 + missing, missing),
                            // Two starts in a row may have the same instance by chance.
                            None => (number, self.since_start(number, elapsed)),
                        }
                    }
                    Relation::Restarted => (number, self.since_start(number, elapsed)),
                    _ => (number, 0),
                }
            }
        };
        if !matches!(relation, Relation::First | Relation::Same) {
            self.former[self.oldest] = self.last.map(|(last, _)| last.identity);
            self.oldest = (self.oldest + 1) % FORMER;
        }
        self.sign = [message.capture, message.heard];
        self.last = Some((message, sequence));
        (sequence, u32::try_from(gap).unwrap_or(u32::MAX))
    }

    /// How many messages are missing before the first that comes of a start, which began to count
    /// after the last message of the start before.
    fn since_start(&self, number: u64, elapsed: Span) -> u64 {
        if number < self.most(elapsed) { number } else { 0 }
    }

    /// The most messages that the declared rate allows in `elapsed` after one.
    fn most(&self, elapsed: Span) -> u64 {
        let allowed = (elapsed + self.early).as_ns().max(0) / self.interval.as_ns();
        allowed.unsigned_abs() + 1
    }

    /// How many are missing at least, of which it is known modulo `modulus` that these are
    /// `missing`: as many as lead from one fragment to the other.
    fn aligned(&self, missing: u64, modulus: u64, step: [u16; 2]) -> u64 {
        if self.frames == 1 {
            return missing;
        }
        let turns = 0..u64::from(self.frames);
        let mut all = turns.map(|turns| missing + turns * modulus);
        all.find(|missing| self.leads(*missing, step)).unwrap_or(missing)
    }

    /// Whether so many missing frames are between two that carry these fragments.
    fn leads(&self, missing: u64, [from, to]: [u16; 2]) -> bool {
        let frames = u64::from(self.frames);
        frames == 1 || (u64::from(from) + missing + 1) % frames == u64::from(to) % frames
    }

    /// How many messages are missing, of which it is known modulo `modulus` that these are
    /// `missing`; `None` where the time cannot have seen so many, so that this is not the talker's
    /// count: it was started again, or its clock was set. `known_start`: it says which start of the
    /// talker it is of.
    fn missing(
        &self,
        missing: u64,
        (modulus, known_start): (u64, bool),
        elapsed: Span,
        step: [u16; 2],
    ) -> Option<u64> {
        let (count, most) = (missing + 1, self.most(elapsed));
        if count > most {
            // The very next one is no gap, whatever its time. Nor does a clock that was set back
            // make another count of that of a start which tells itself.
            let set_back = elapsed < Span::ZERO && known_start;
            return (missing == 0 || set_back).then_some(missing);
        }
        // Sporadic traffic has no pace by which to tell the turns of the count.
        if !self.is_paced {
            return Some(missing);
        }
        let interval = self.interval.as_ns().unsigned_abs();
        let expected = (elapsed.as_ns().unsigned_abs() + interval / 2) / interval;
        let turns = (expected.saturating_sub(count) + modulus / 2) / modulus;
        let turned = count + turns * modulus;
        // After so long a time that most counts would do, none is told.
        let near = u64::from(self.frames) + expected / STEADY;
        let told = near <= modulus / 16;
        let steady = told && turned.abs_diff(expected) <= near && turned <= most;
        let steady = steady && self.leads(turned - 1, step);
        Some(if steady { turned - 1 } else { missing })
    }
}
