//! Modelled traffic: when each stream releases its next frame, and how long it is.

use crate::random::{self, Purpose};
use onbeat_model::stream::{FaultKind, Source, Stream};
use onbeat_model::system::{Channel, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::{Octets, frame};

/// One frame to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// When, in true time.
    pub(crate) at: NetTime,
    /// Destination address to FCS.
    pub(crate) octets: u16,
    /// What the talker's clock then reads at least; none for a babble, which goes by no clock.
    pub(crate) reading: Option<SyncedTime>,
}

/// What releases the frames of a stream or of a modelled channel.
#[derive(Debug)]
pub(crate) struct FrameSource {
    /// The flow that its frames are of.
    pub(crate) flow: u32,
    schedule: Schedule,
    clock: ClockError,
    lengths: [u16; 2],
    random: random::Stream,
    /// The next frame of the schedule.
    own: Option<Release>,
    /// When the frame before that of the schedule was due.
    drawn: NetTime,
    /// When it babbles, in order of time, and when its next frame is then due.
    babbles: Vec<[NetTime; 2]>,
    babble_gap: Span,
    /// No frame is released from here on.
    end: NetTime,
}

/// So many of the longest gaps before the epoch are drawn, at the most, for a clock that is ahead.
const DRAWN_BEFORE: i64 = 1_000;

/// The times of a source, by its talker's clock.
#[derive(Debug)]
struct Schedule {
    source: Source,
    /// The instant of the next frame, without its jitter.
    next: SyncedTime,
    /// Frames since the first one, or since the beginning of the burst.
    count: u32,
    /// The reading at which the last frame was released.
    last: SyncedTime,
}

impl FrameSource {
    /// The source of stream number `index`, whose frames are of `flow`, up to `end`, without it.
    pub(crate) fn of_stream(
        system: &System,
        index: usize,
        flow: u32,
        seed: u64,
        end: NetTime,
    ) -> Self {
        let stream: &Stream = &system.streams[index];
        let talker = system.node(stream.talker);
        let rate = system.link_of(talker.ports[0]).rate;
        let mut babbles: Vec<_> = (system.faults.iter())
            .filter(|fault| fault.kind == FaultKind::Babble(index as u32))
            .map(|fault| [fault.from, fault.until])
            .collect();
        babbles.sort_unstable();
        babbles.reverse();
        let lengths = stream.frame.map(length);
        let mut source = Self {
            flow,
            schedule: Schedule::new(stream.source.clone(), stream.phase),
            clock: system.clock_of(stream.talker),
            lengths,
            random: random::Stream::new(seed, Purpose::Source, index),
            own: None,
            drawn: NetTime::ZERO,
            babbles,
            babble_gap: rate.time_for(frame::on_wire(stream.frame[1])),
            end,
        };
        source.begin();
        source
    }

    /// The source of a channel whose talker is modelled: one message each interval from `phase` on,
    /// whose fragments are released at once.
    pub(crate) fn of_channel(
        system: &System,
        channel: &Channel,
        phase: Span,
        flow: u32,
        end: NetTime,
    ) -> Self {
        let octets = length(channel.frame());
        let interval = channel.interval;
        let source = match channel.frames() {
            1 => Source::Periodic { interval, jitter: Span::ZERO },
            frames => Source::Bursty { interval, frames },
        };
        let mut source = Self {
            flow,
            schedule: Schedule::new(source, phase),
            clock: system.clock_of(channel.talker),
            lengths: [octets; 2],
            // Nothing of it is drawn.
            random: random::Stream::new(0, Purpose::Source, 0),
            own: None,
            drawn: NetTime::ZERO,
            babbles: Vec::new(),
            babble_gap: Span::ZERO,
            end,
        };
        source.begin();
        source
    }

    /// Passes over the instants that a clock that is ahead has passed before the epoch.
    fn begin(&mut self) {
        let start = self.clock.read(NetTime::ZERO);
        self.schedule.pass(start);
        let clock = self.clock.as_of(NetTime::ZERO);
        while let Some((reading, octets)) = self.frame() {
            if clock.read(clock.when(reading)) >= start {
                self.own = self.release(reading, octets).or_else(|| self.draw_next());
                break;
            }
        }
    }

    /// Draws the next frame of the schedule whose instant comes.
    fn draw_next(&mut self) -> Option<Release> {
        loop {
            let (reading, octets) = self.frame()?;
            if let Some(release) = self.release(reading, octets) {
                return Some(release);
            }
            // Passes at once over what else the clock stepped over.
            self.schedule.pass(self.clock.read(self.drawn));
        }
    }

    /// From now on the talker's clock is this one. Frames that are drawn keep their readings.
    pub(crate) fn set_clock(&mut self, clock: ClockError) {
        self.clock = clock;
    }

    /// The frame of an instant, unless the clock steps over that.
    fn release(&mut self, reading: SyncedTime, octets: u16) -> Option<Release> {
        let at = self.clock.when_from(self.drawn, reading);
        self.drawn = at;
        (!self.clock.steps_over(reading, at)).then_some(Release {
            at,
            octets,
            reading: Some(reading),
        })
    }

    /// The instant of the next frame of the schedule, and its length.
    fn frame(&mut self) -> Option<(SyncedTime, u16)> {
        let (reading, given) = self.schedule.next(&mut self.random)?;
        let [least, most] = self.lengths;
        let octets = match given {
            Some(octets) => octets,
            None if least == most => least,
            None => least + self.random.below(u64::from(most - least) + 1) as u16,
        };
        Some((reading, octets))
    }

    /// The next frame, if ever. To be asked once per frame.
    pub(crate) fn next(&mut self) -> Option<Release> {
        let release = match self.babbles.is_empty() {
            true => self.own_next(),
            false => self.next_or_babble(),
        };
        release.filter(|release| release.at < self.end)
    }

    fn own_next(&mut self) -> Option<Release> {
        let release = self.own?;
        self.own = self.draw_next();
        Some(release)
    }

    /// The next frame when some babble is still to come or in progress: a frame of its own that is
    /// due before it, else one of the babble, in which its own frames are left out.
    fn next_or_babble(&mut self) -> Option<Release> {
        while let Some([from, until]) = self.babbles.last().copied() {
            if self.own.is_some_and(|own| own.at < from) {
                return self.own_next();
            }
            if from < until {
                let next = from + self.babble_gap;
                self.babbles.last_mut()?[0] = next;
                while self.own.is_some_and(|own| own.at < next.min(until)) {
                    self.own = self.draw_next();
                }
                return Some(Release { at: from, octets: self.lengths[1], reading: None });
            }
            while self.own.is_some_and(|own| own.at < until) {
                self.own = self.draw_next();
            }
            self.babbles.pop();
            if let Some(overlapping) = self.babbles.last_mut() {
                overlapping[0] = overlapping[0].max(from);
            }
        }
        self.own_next()
    }
}

fn length(octets: Octets) -> u16 {
    assert!(octets <= frame::MAX_TAGGED, "a frame of {} octets", octets.get());
    octets.get() as u16
}

impl Schedule {
    fn new(source: Source, phase: Span) -> Self {
        match &source {
            Source::Periodic { interval, .. } | Source::Bursty { interval, .. } => {
                assert!(*interval > Span::ZERO, "a source without an interval");
            }
            Source::Sporadic { interval, mean } => {
                assert!(*interval <= *mean && *mean > Span::ZERO, "a mean below the least");
            }
            Source::Trace(_) => {}
        }
        let next = SyncedTime::ZERO + phase;
        Self { source, next, count: 0, last: next }
    }

    /// Passes at once over the regular instants before `start`, with what was left of a burst, and
    /// over most of those that are drawn: whatever the gaps before, those after it are as likely.
    fn pass(&mut self, start: SyncedTime) {
        match &self.source {
            Source::Periodic { interval, .. } | Source::Bursty { interval, .. } => {
                let passed = (start - self.next).as_ns().max(0);
                if passed > 0 {
                    self.count = 0;
                }
                self.next += *interval * ((passed + interval.as_ns() - 1) / interval.as_ns());
            }
            Source::Sporadic { interval, mean } => {
                let longest = *mean * 2 - *interval;
                self.next = self.next.max(start - longest * DRAWN_BEFORE);
            }
            Source::Trace(_) => {}
        }
    }

    /// The reading at which the next frame is released, and its length if the source says so.
    fn next(&mut self, random: &mut random::Stream) -> Option<(SyncedTime, Option<u16>)> {
        let mut below = |span: Span| Span::from_ns(random.below(span.as_ns() as u64 + 1) as i64);
        let (at, octets) = match &self.source {
            Source::Periodic { interval, jitter } => {
                let late = if *jitter > Span::ZERO { below(*jitter) } else { Span::ZERO };
                let at = self.next + late;
                self.next += *interval;
                (at, None)
            }
            Source::Sporadic { interval, mean } => {
                let at = self.next;
                self.next += *interval + below((*mean - *interval) * 2);
                (at, None)
            }
            Source::Bursty { interval, frames } => {
                let at = self.next;
                self.count += 1;
                if self.count == *frames {
                    self.count = 0;
                    self.next += *interval;
                }
                (at, None)
            }
            Source::Trace(frames) => {
                let (after, octets) = *frames.get(self.count as usize)?;
                self.count += 1;
                (self.next + after, Some(length(octets)))
            }
        };
        // Frames leave a talker in order, however late the one before was.
        self.last = self.last.max(at);
        Some((self.last, octets))
    }
}
