//! The operations of a network channel (Austad et al. 2023, Table 2 and sections 4.3.2, 4.3.3),
//! composed from [`Talker`], [`Listener`] and [`ChannelIo`].
//!
//! Each leaves one [`Record`] per message in the end's [`Log`] before it waits, so that a program
//! that dies in its sleep has left what happened until then.

use crate::batch::Batch;
use crate::channel_io::{
    ChannelError, ChannelIo, Grant, Instant, Log, Reason, Received, Timeout, Window,
};
use crate::expect::Expectation;
use crate::listener::{Dropped, Listener, Reading, record_of};
use crate::liveness::TalkerWatch;
use crate::meeting::Meeting;
use crate::talker::{Sent, Talker};
use crate::wire::MAX_FRAME;
use onbeat_model::limits::DURATION;
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::frame::MAX_CHANNEL_PAYLOAD;
use std::cell::Cell;
use std::sync::atomic::AtomicU32;

/// What a write gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The message is on its way.
    Sent {
        /// When the value was captured.
        capture: SyncedTime,
    },
    /// The declared rate does not allow it yet and the caller would not wait.
    RateExceeded {
        /// Until when a write that waits would do so.
        until: SyncedTime,
    },
    /// No listener is ready: nothing is reserved and the caller would not wait.
    NotReserved,
}

/// What a write that waited gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// When the value was captured.
    pub capture: SyncedTime,
    /// Target minus wake-up: negative is late.
    pub wakeup_error: Span,
}

/// What is known of a message that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageInfo {
    /// When the value was captured, by the talker's clock.
    pub capture: SyncedTime,
    /// From capture to receipt. A program that waits in a read or a select receives what has come
    /// by then when it continues; one that waits at the end's descriptor, when a call hands it
    /// over. What came while it did not wait, it received when it could have been read.
    pub latency: Span,
    /// When its last octet was at the host's port.
    pub arrived: SyncedTime,
    /// From capture to the call's return that hands the message over: now less capture.
    pub age: Span,
    /// Number of the message.
    pub sequence: u64,
    /// Messages lost between the one before and this one.
    pub gap: u32,
    /// See [`crate::wire::Header::instance`].
    pub instance: u8,
    /// See [`crate::wire::Header::meeting`].
    pub meeting: u32,
    /// [`flag`] bits.
    pub flags: u32,
    /// After `read_wait`: target minus wake-up, negative when it was late. Else zero.
    pub wakeup_error: Span,
}

/// The writing end of a channel with its I/O and its log.
#[derive(Debug)]
pub struct TalkerEndpoint<P, L> {
    pub(crate) talker: Talker,
    pub(crate) io: P,
    pub(crate) log: L,
    pub(crate) meeting: Meeting,
    /// Whether the declared rate holds the message that is to be written next.
    held: bool,
    pub(crate) batch: Batch,
    /// What it wrote at its last meeting.
    pub(crate) met_value: [u8; MAX_CHANNEL_PAYLOAD.get() as usize],
}

impl<P: ChannelIo, L: Log> TalkerEndpoint<P, L> {
    /// Puts an end together.
    pub fn new(talker: Talker, io: P, log: L) -> Self {
        let meeting = Meeting::new(talker.instance());
        let met_value = [0; MAX_CHANNEL_PAYLOAD.get() as usize];
        let batch = Batch::new(talker.parameters());
        Self { talker, io, log, meeting, held: false, batch, met_value }
    }

    /// The way to clock and network.
    pub fn io(&self) -> &P {
        &self.io
    }

    /// The same, to change how it waits.
    pub fn io_mut(&mut self) -> &mut P {
        &mut self.io
    }

    /// The state machine inside.
    pub fn talker(&self) -> &Talker {
        &self.talker
    }

    /// Where records and counts go.
    pub fn log(&self) -> &L {
        &self.log
    }

    /// Sends `value`, waiting while the declared rate is exceeded or a reservation is missing that
    /// the talker needs; returns the capture time.
    pub fn write(&mut self, value: &[u8]) -> Result<SyncedTime, ChannelError> {
        self.write_record(value).map(|record| record.capture.unwrap_or_default())
    }

    /// Sends `value` unless the declared rate is exceeded or a reservation is missing.
    pub fn try_write(&mut self, value: &[u8]) -> Result<Written, ChannelError> {
        if !self.is_granted() {
            return Ok(Written::NotReserved);
        }
        self.note_transmitted();
        self.rekey();
        let (now, uncertain) = self.io.begin_write()?;
        match self.talker.write(now.local, value, uncertain) {
            Err(exceeded) => {
                self.log.rate_exceeded();
                Ok(Written::RateExceeded { until: exceeded.until })
            }
            Ok(sent) => {
                let at = self.talker.launch();
                self.send_frames(value, at)?;
                self.note(sent, now);
                Ok(Written::Sent { capture: sent.capture })
            }
        }
    }

    /// Sends `value`, then waits until its capture time + D.
    pub fn write_wait(&mut self, value: &[u8]) -> Result<Waited, ChannelError> {
        let mut record = self.write_record(value)?;
        let capture = record.capture.unwrap_or_default();
        let target = capture + self.talker.parameters().fixed_delay;
        let wakeup_error = wait(&mut self.io, &mut self.log, &mut record, target)?;
        Ok(Waited { capture, wakeup_error })
    }

    /// Sends `value` so that it is captured and leaves at `at`, at most 30 days ahead, or as soon
    /// after that as it is past and the declared rate allows it; returns the capture time.
    pub fn write_at(&mut self, value: &[u8], at: SyncedTime) -> Result<SyncedTime, ChannelError> {
        self.note_transmitted();
        let (mut at, mut held) = (at, false);
        loop {
            self.reserved()?;
            self.rekey();
            let now = self.io.now()?.local;
            // Nobody means more; and no arithmetic on it overflows.
            at = at.min(now + DURATION);
            self.io.may_write(at.max(now))?;
            match self.talker.write_at(now, at, value, self.io.uncertain()) {
                Err(exceeded) => {
                    self.log.rate_exceeded();
                    held = true;
                    at = exceeded.until;
                }
                Ok(sent) => {
                    let at = self.talker.launch().unwrap_or(sent.capture);
                    self.send_frames(value, Some(at))?;
                    self.held = held;
                    self.note(sent, Instant { local: sent.capture, network: None });
                    return Ok(sent.capture);
                }
            }
        }
    }

    /// Sends the frames of the last message, which is `value`, now or at its launch time.
    #[inline]
    fn send_frames(&mut self, value: &[u8], at: Option<SyncedTime>) -> Result<(), ChannelError> {
        let first = self.send_frame(at);
        self.unless_kept(first)?;
        let mut sent = Ok(());
        while sent.is_ok() && self.talker.next_fragment(value) {
            sent = self.send_frame(at);
        }
        // What was on its way when the interface went is sent, and lost.
        sent.or_else(|fault| if fault == ChannelError::LinkDown { Ok(()) } else { Err(fault) })
    }

    #[inline]
    fn send_frame(&mut self, at: Option<SyncedTime>) -> Result<(), ChannelError> {
        match at {
            None => self.io.send(self.talker.frame()),
            Some(at) => self.io.launch(self.talker.frame(), at),
        }
    }

    /// A message that no interface took uses no number: readers would take it for lost.
    #[inline]
    pub(crate) fn unless_kept<T>(
        &mut self,
        sent: Result<T, ChannelError>,
    ) -> Result<T, ChannelError> {
        if matches!(sent, Err(ChannelError::LinkDown | ChannelError::TooLong)) {
            self.talker.take_back();
        }
        sent
    }

    /// Completes the records of earlier messages with what was noted of their frames since.
    #[inline]
    fn note_transmitted(&mut self) {
        let Some(last) = self.talker.last_sequence() else { return };
        while let Some(stamp) = self.io.transmitted(last) {
            self.log.transmitted(&stamp);
        }
    }

    /// Takes the stream's keys if they have changed.
    #[inline]
    pub(crate) fn rekey(&mut self) {
        if self.talker.is_keyed()
            && let Some(keys) = self.io.new_keys()
        {
            self.talker.set_keys(keys);
        }
    }

    #[inline]
    pub(crate) fn write_record(&mut self, value: &[u8]) -> Result<Record, ChannelError> {
        self.note_transmitted();
        loop {
            self.reserved()?;
            self.rekey();
            let (now, uncertain) = self.io.begin_write()?;
            match self.talker.write(now.local, value, uncertain) {
                Ok(sent) => {
                    let at = self.talker.launch();
                    self.send_frames(value, at)?;
                    return Ok(self.note(sent, now));
                }
                Err(exceeded) => self.sleep_for_rate(exceeded.until)?,
            }
        }
    }

    /// Whether the talker may send; its frames then have the tag that is reserved for them.
    #[inline]
    pub(crate) fn is_granted(&mut self) -> bool {
        match self.io.grant() {
            Grant::Unneeded => true,
            Grant::Held { vlan, pcp } => {
                self.talker.tag(vlan, pcp);
                true
            }
            Grant::Missing => false,
        }
    }

    /// Waits until the talker may send: the value is captured afterwards.
    #[inline]
    pub(crate) fn reserved(&mut self) -> Result<(), ChannelError> {
        while !self.is_granted() {
            self.io.await_grant(SyncedTime::MAX)?;
        }
        Ok(())
    }

    /// Waits while neither reservation nor declared rate allow a message; whether they did not.
    pub(crate) fn await_rate(&mut self) -> Result<bool, ChannelError> {
        if !self.is_granted() {
            self.reserved()?;
            return Ok(true);
        }
        let now = self.io.now()?.local;
        let Some(until) = self.talker.blocked_until(now) else { return Ok(false) };
        self.io.may_write(now)?;
        self.sleep_for_rate(until)?;
        Ok(true)
    }

    pub(crate) fn sleep_for_rate(&mut self, until: SyncedTime) -> Result<(), ChannelError> {
        self.log.rate_exceeded();
        let woke = self.io.sleep_until(until)?;
        if self.io.is_over(woke.local) {
            // Who wakes after the limit writes no more, though the rate allowed it before.
            return Err(ChannelError::TimedOut);
        }
        self.held = true;
        Ok(())
    }

    #[inline]
    pub(crate) fn note(&mut self, sent: Sent, at: Instant) -> Record {
        let record = Record {
            capture: Some(sent.capture),
            transfer: self.io.handed_over(),
            network: at.network,
            sequence: sent.sequence,
            flags: if std::mem::take(&mut self.held) { flag::HELD } else { 0 },
            ..Record::default()
        };
        self.log.push(&record);
        record
    }
}

/// A reading end of a channel with its I/O and its log.
#[derive(Debug)]
pub struct ListenerEndpoint<P, L> {
    pub(crate) listener: Listener,
    pub(crate) io: P,
    pub(crate) log: L,
    frame: [u8; MAX_FRAME],
    expectation: Option<Expectation>,
    last: Option<MessageInfo>,
    /// Messages lost since the last one that was handed over.
    unseen: u32,
    /// When the program last continued that had waited here, in a read or in a select.
    went_on: Cell<Option<Instant>>,
    /// Whether the program waits with the end's descriptor.
    watched: Cell<bool>,
    pub(crate) watch: Cell<TalkerWatch>,
    /// Counts how often a deadline becomes earlier than it was.
    pub(crate) sooner: Option<&'static AtomicU32>,
}

impl<P: ChannelIo, L: Log> ListenerEndpoint<P, L> {
    /// Puts an end together.
    pub fn new(listener: Listener, io: P, log: L) -> Self {
        let (went_on, watched) = (Cell::new(None), Cell::new(false));
        let (frame, expectation, last) = ([0; MAX_FRAME], None, None);
        let watch = Cell::new(TalkerWatch::new(None, SyncedTime::ZERO));
        Self {
            listener,
            io,
            log,
            frame,
            expectation,
            last,
            unseen: 0,
            went_on,
            watched,
            watch,
            sooner: None,
        }
    }

    /// A select that found nothing here when it began has ended at `at`: for what came until then
    /// the program waited.
    pub fn went_on(&self, at: Instant) {
        self.went_on.set(Some(at));
    }

    /// From now on the program waits with a descriptor, so that it is unknown when it continues: it
    /// receives a message when a call hands it over.
    pub fn watch(&self) {
        self.watched.set(true);
    }

    /// From now on expects a message every interval, and lets the I/O use that.
    pub fn follow_schedule(&mut self, early: Span, late: Span) {
        let interval = self.listener.parameters().interval;
        self.expectation = Some(Expectation::new(interval, early, late));
    }

    /// From now on no message is handed over that is older than `lifespan`, by this end's clock,
    /// if there is one: it is counted as received and as expired. Not less than the fixed delay,
    /// until when a message is in time.
    ///
    /// # Errors
    /// The fixed delay, of a shorter lifespan.
    pub fn set_lifespan(&mut self, lifespan: Option<Span>) -> Result<(), Span> {
        let least = self.listener.parameters().fixed_delay;
        if lifespan.is_some_and(|lifespan| lifespan < least) {
            return Err(least);
        }
        self.listener.set_lifespan(lifespan);
        Ok(())
    }

    /// The way to clock and network.
    pub fn io(&self) -> &P {
        &self.io
    }

    /// The same, to change how it waits.
    pub fn io_mut(&mut self) -> &mut P {
        &mut self.io
    }

    /// Where records and counts go.
    pub fn log(&self) -> &L {
        &self.log
    }

    /// The state machine inside.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Waits for a message as long as `patience` says.
    pub fn read(
        &mut self,
        value: &mut [u8],
        patience: Timeout,
    ) -> Result<Option<MessageInfo>, ChannelError> {
        let got = match patience {
            Timeout::Endless => Some(self.read_one(value)?),
            _ => self.read_record(value, patience)?,
        };
        got.map(|(_, info)| self.aged(info)).transpose()
    }

    /// Waits for a message, then until its capture time + D.
    pub fn read_wait(&mut self, value: &mut [u8]) -> Result<MessageInfo, ChannelError> {
        let (mut record, mut info) = self.read_one(value)?;
        let mut target = info.capture + self.listener.parameters().fixed_delay;
        if info.flags & flag::UNCERTAIN != 0 {
            // No message was captured after it was here, whatever an unsynchronised clock says.
            target = target.min(target + info.latency);
        }
        info.wakeup_error = wait(&mut self.io, &mut self.log, &mut record, target)?;
        info.flags = record.flags;
        info.age = target - info.wakeup_error - info.capture;
        Ok(info)
    }

    /// Takes the newest message there is and drops those before it: a reader that has fallen
    /// behind has caught up at once. When there is no new one `value` stays as it is, which was
    /// the last one, and the flags say [`flag::REPEATED`]; `None` when there never was one, or that
    /// has expired. A run that ends meanwhile costs nothing that was taken before.
    pub fn read_latest(&mut self, value: &mut [u8]) -> Result<Option<MessageInfo>, ChannelError> {
        let mut newest = None;
        for _ in 0..MAX_BACKLOG {
            match self.read_record(value, Timeout::None) {
                Ok(Some((_, info))) => newest = Some(info),
                Ok(None) => break,
                Err(_) if newest.is_some() => break,
                Err(fault) => return Err(fault),
            }
        }
        let repeated =
            |info: MessageInfo| MessageInfo { flags: info.flags | flag::REPEATED, gap: 0, ..info };
        let known = newest.or_else(|| self.last.map(repeated));
        let known = known.map(|info| self.aged(info)).transpose()?;
        Ok(known.filter(|info| newest.is_some() || !self.listener.is_expired(info.age)))
    }

    /// What is known of a message that is handed over now.
    #[inline]
    fn aged(&mut self, info: MessageInfo) -> Result<MessageInfo, ChannelError> {
        Ok(MessageInfo { age: self.io.now()?.local - info.capture, ..info })
    }

    /// When the program received a frame, and whether it came later than it could have.
    #[inline]
    fn receipt(&mut self, received: &Received) -> Result<(Instant, bool), ChannelError> {
        if !received.waited {
            self.went_on.set(Some(received.ready));
            return Ok((received.ready, false));
        }
        let came = received.ready;
        let went_on = self.went_on.get().filter(|went_on| went_on.order() >= came.order());
        if !self.watched.get() && went_on.is_none() {
            return Ok((came, true));
        }
        let now = self.io.now()?;
        if self.watched.get() {
            return Ok((now, false));
        }
        // It would be later than now only if the clock was set back since.
        let went_on = went_on.filter(|went_on| went_on.order() <= now.order());
        Ok(went_on.map_or((came, true), |went_on| (went_on, false)))
    }

    /// Waits for a message.
    fn read_one(&mut self, value: &mut [u8]) -> Result<(Record, MessageInfo), ChannelError> {
        loop {
            // An endless receive gives a message or a fault.
            if let Some(got) = self.read_record(value, Timeout::Endless)? {
                return Ok(got);
            }
        }
    }

    #[cold]
    fn reject(&mut self, reason: Reason) {
        self.log.reject(reason, 1);
        if reason == Reason::Talker {
            self.watch.get_mut().rejected_talker();
        }
        if let Some(from) = self.listener.other_talker().filter(|_| reason == Reason::Talker) {
            self.log.other_talker(from);
        }
    }

    /// Counts what was dropped on the way here; whether there was any.
    #[inline]
    fn count_dropped(&mut self) -> bool {
        let mut any = false;
        for reason in [Reason::Shape, Reason::Size] {
            let count = self.io.dropped(reason);
            if count > 0 {
                self.log.reject(reason, count);
                any = true;
            }
        }
        any
    }

    /// When a message is expected, for whoever waits for one.
    fn expected(&mut self, patience: Timeout) -> Result<Option<Window>, ChannelError> {
        match &self.expectation {
            Some(expectation) if patience != Timeout::None => {
                Ok(expectation.window(self.io.now()?.local))
            }
            _ => Ok(None),
        }
    }

    fn renew_keys(&mut self) {
        if self.listener.is_keyed()
            && let Some(keys) = self.io.new_keys()
        {
            self.listener.set_keys(keys);
        }
    }

    pub(crate) fn read_record(
        &mut self,
        value: &mut [u8],
        patience: Timeout,
    ) -> Result<Option<(Record, MessageInfo)>, ChannelError> {
        // When the program continued for a frame that was no message: it waits since before that.
        let mut since: Option<Instant> = None;
        for _ in 0..MAX_BACKLOG {
            let window = self.expected(patience)?;
            let received = self.io.receive(&mut self.frame, patience, window);
            let counted = self.count_dropped();
            let Some(mut received) = received? else {
                // It was only to count them that the wait has ended.
                if counted && patience != Timeout::None {
                    continue;
                }
                return Ok(None);
            };
            let waits = since.is_some_and(|since| since.order() <= received.ready.order());
            if received.waited && waits {
                received = Received { ready: self.io.now()?, waited: false, ..received };
            }
            if !received.waited {
                since = Some(since.unwrap_or(received.ready));
            }
            self.renew_keys();
            let (ready, waited) = self.receipt(&received)?;
            let octets = &self.frame[..received.length];
            let (ready_at, uncertain) = (ready.local, self.io.uncertain());
            let now = if received.waited { self.io.now()?.local } else { ready_at };
            let reading = Reading { ready: ready_at, now, uncertain };
            let outcome = self.listener.accept(octets, received.framing, reading, value);
            let Some(mut record) = record_of(&outcome) else {
                if let Err(Dropped::Rejected(reason)) = outcome {
                    self.reject(reason);
                }
                continue;
            };
            record.transfer = Some(received.arrived);
            record.receive = Some(ready.local);
            record.network = ready.network;
            record.flags |= if waited { flag::WAITED } else { 0 };
            self.log.push(&record);
            let Ok(accepted) = outcome else { continue };
            let came = received.arrived.min(ready.local);
            let is_uncertain = accepted.flags & flag::UNCERTAIN != 0;
            let by_then = received.waited && !received.stamped;
            self.notice(|watch| watch.came(came, by_then, accepted.instance, is_uncertain));
            // When a message came that had waited is not known well enough.
            if let Some(expectation) = self.expectation.as_mut().filter(|_| !received.waited) {
                expectation.came(received.arrived);
            }
            self.unseen = self.unseen.saturating_add(accepted.gap);
            if accepted.flags & flag::EXPIRED != 0 {
                continue;
            }
            let latency = ready.local - accepted.capture;
            let info = MessageInfo {
                capture: accepted.capture,
                latency,
                arrived: received.arrived,
                age: latency,
                sequence: accepted.sequence,
                gap: std::mem::take(&mut self.unseen),
                instance: accepted.instance,
                meeting: accepted.meeting,
                flags: accepted.flags,
                wakeup_error: Span::ZERO,
            };
            self.last = Some(info);
            return Ok(Some((record, info)));
        }
        // Frames that are no messages come as fast as they are read: whoever waits asks again.
        Ok(None)
    }
}

/// More frames than any queue holds; so many that are no messages end a read.
pub(crate) const MAX_BACKLOG: usize = 1 << 14;

/// Sleeps until `target` and completes the record that was pushed last.
pub(crate) fn wait<P: ChannelIo, L: Log>(
    io: &mut P,
    log: &mut L,
    record: &mut Record,
    target: SyncedTime,
) -> Result<Span, ChannelError> {
    if io.now()?.local > target {
        record.flags |= flag::OVERSLEPT;
    }
    record.wake_target = Some(target);
    let woke = io.sleep_until(target)?;
    record.wake = Some(woke.local);
    record.network = woke.network;
    log.amend(record);
    Ok(target - woke.local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel_io::{Framing, Limited, Received, Source, Window};
    use crate::talker::tests::parameters;
    use onbeat_model::time::NetTime;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    /// A wire with a clock that only moves when somebody waits.
    #[derive(Default)]
    struct Wire {
        now: i64,
        latency: i64,
        /// By how much whoever slept wakes late.
        overshoot: i64,
        frames: VecDeque<(i64, Vec<u8>)>,
        /// From when on which tag is reserved, if a reservation is needed.
        grant: Option<(i64, u16, u8)>,
        /// How late a program continues for what it waited for.
        held_up: i64,
    }
    struct TestIo(Rc<RefCell<Wire>>);
    impl ChannelIo for TestIo {
        fn now(&mut self) -> Result<Instant, ChannelError> {
            let now = self.0.borrow().now;
            Ok(Instant { local: SyncedTime::from_ns(now), network: Some(NetTime::from_ns(now)) })
        }
        fn uncertain(&self) -> bool {
            false
        }
        fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
            let mut wire = self.0.borrow_mut();
            if target.as_ns() > wire.now {
                wire.now = target.as_ns() + wire.overshoot;
            }
            drop(wire);
            self.now()
        }
        fn grant(&mut self) -> Grant {
            let wire = self.0.borrow();
            match wire.grant {
                None => Grant::Unneeded,
                Some((from, vlan, pcp)) if from <= wire.now => Grant::Held { vlan, pcp },
                Some(_) => Grant::Missing,
            }
        }
        fn await_grant(&mut self, until: SyncedTime) -> Result<(), ChannelError> {
            let mut wire = self.0.borrow_mut();
            let from = wire.grant.map_or(0, |(from, ..)| from);
            wire.now = wire.now.max(from.min(until.as_ns()));
            Ok(())
        }
        fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
            let mut wire = self.0.borrow_mut();
            let at = wire.now + wire.latency;
            wire.frames.push_back((at, frame.to_vec()));
            Ok(())
        }
        fn receive(
            &mut self,
            into: &mut [u8],
            patience: Timeout,
            _: Option<Window>,
        ) -> Result<Option<Received>, ChannelError> {
            let mut wire = self.0.borrow_mut();
            let Some((at, frame)) = wire.frames.pop_front() else {
                return if patience == Timeout::Endless {
                    Err(ChannelError::Stopped)
                } else {
                    Ok(None)
                };
            };
            let waited = at < wire.now;
            let held_up = if waited { 0 } else { wire.held_up };
            wire.now = wire.now.max(at) + held_up;
            into[..frame.len()].copy_from_slice(&frame);
            let arrived = SyncedTime::from_ns(at);
            let ready = Instant { local: arrived, network: None };
            let (length, framing) = (frame.len(), Framing::Ethernet);
            Ok(Some(Received { length, framing, arrived, stamped: true, ready, waited }))
        }
    }
    #[derive(Clone, Default)]
    struct TestLog(Rc<RefCell<Vec<Record>>>);
    impl Log for TestLog {
        fn push(&mut self, record: &Record) {
            self.0.borrow_mut().push(*record);
        }
        fn amend(&mut self, record: &Record) {
            *self.0.borrow_mut().last_mut().expect("a record to amend") = *record;
        }
        fn reject(&mut self, _: Reason, _: u64) {}
        fn other_talker(&mut self, _: &Source) {}
        fn rate_exceeded(&mut self) {}
    }

    #[test]
    fn both_ends_wake_at_capture_plus_the_fixed_delay() {
        let wire = Rc::new(RefCell::new(Wire { latency: 57_000, ..Wire::default() }));
        let (sent, got) = (TestLog::default(), TestLog::default());
        let io = || TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), sent.clone());
        let mut listener = ListenerEndpoint::new(Listener::new(parameters()), io(), got.clone());
        let waited = Waited { capture: SyncedTime::ZERO, wakeup_error: Span::ZERO };
        assert_eq!(talker.write_wait(&7u64.to_le_bytes()), Ok(waited));
        wire.borrow_mut().now = 0; // the listener lives on another host: its time is its own
        let mut value = [0; 8];
        let info = listener.read_wait(&mut value).expect("a message");
        assert_eq!(u64::from_le_bytes(value), 7);
        assert_eq!((info.latency, info.wakeup_error), (Span::from_us(57), Span::ZERO));
        let target = Some(SyncedTime::from_ns(2_000_000));
        assert_eq!(sent.0.borrow()[0].wake, target);
        assert_eq!(got.0.borrow()[0].wake, target);
    }

    #[test]
    fn a_talker_waits_for_its_reservation_and_captures_and_tags_afterwards() {
        let grant = Some((5_000_000, 7, 4));
        let wire = Rc::new(RefCell::new(Wire { grant, ..Wire::default() }));
        let io = || Limited::new(TestIo(Rc::clone(&wire)));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), TestLog::default());
        assert_eq!(talker.try_write(&[0; 8]), Ok(Written::NotReserved));
        talker.io_mut().limit(SyncedTime::from_ns(1_000_000));
        assert_eq!(talker.write(&[0; 8]), Err(ChannelError::TimedOut));
        assert_eq!(talker.write_at(&[0; 8], SyncedTime::ZERO), Err(ChannelError::TimedOut));
        assert!(wire.borrow().frames.is_empty());
        talker.io_mut().limit(SyncedTime::MAX);
        assert_eq!(talker.write(&[0; 8]), Ok(SyncedTime::from_ns(5_000_000)));
        let (_, frame) = wire.borrow_mut().frames.pop_front().expect("a frame");
        assert_eq!(frame[12..16], [0x81, 0, 4 << 5, 7], "PCP and VLAN are the reservation's");
        // The last listener leaves: the next write waits again.
        wire.borrow_mut().grant = Some((90_000_000, 7, 4));
        assert_eq!(talker.write(&[0; 8]), Ok(SyncedTime::from_ns(90_000_000)));
    }

    #[test]
    fn no_wait_at_an_end_lasts_beyond_its_limit() {
        let wire = Rc::new(RefCell::new(Wire { latency: 57_000, ..Wire::default() }));
        let io = || Limited::new(TestIo(Rc::clone(&wire)));
        let (sent, got) = (TestLog::default(), TestLog::default());
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), sent.clone());
        let mut listener = ListenerEndpoint::new(Listener::new(parameters()), io(), got.clone());
        let limit = SyncedTime::from_ns(1_000_000);
        talker.io_mut().limit(limit);
        listener.io_mut().limit(limit);
        // D is 2 ms: the message is written and taken, the wait for capture + D ends.
        assert_eq!(talker.write_wait(&[0; 8]), Err(ChannelError::TimedOut));
        assert_eq!(wire.borrow().now, 1_000_000);
        wire.borrow_mut().now = 0;
        assert_eq!(listener.read_wait(&mut [0; 8]), Err(ChannelError::TimedOut));
        assert_eq!(wire.borrow().now, 1_000_000);
        assert_eq!((sent.0.borrow().len(), got.0.borrow().len()), (1, 1));
        // The rate, 50 a second, allows the next one later.
        assert_eq!(talker.write(&[0; 8]), Err(ChannelError::TimedOut));
        assert_eq!(listener.read(&mut [0; 8], Timeout::Endless), Err(ChannelError::TimedOut));
        let late = Timeout::Until(SyncedTime::MAX);
        assert_eq!(listener.read(&mut [0; 8], late), Err(ChannelError::TimedOut));
        assert_eq!(listener.read(&mut [0; 8], Timeout::Until(limit)), Ok(None));
        assert_eq!(listener.read(&mut [0; 8], Timeout::None), Ok(None));
        talker.io_mut().limit(SyncedTime::MAX);
        assert_eq!(talker.write(&[0; 8]), Ok(SyncedTime::from_ns(20_000_000 - 125_000)));
    }

    #[test]
    fn a_write_that_wakes_after_its_limit_sends_nothing() {
        let wire = Rc::new(RefCell::new(Wire { overshoot: 8_000, ..Wire::default() }));
        let io = Limited::new(TestIo(Rc::clone(&wire)));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io, TestLog::default());
        talker.write(&[0; 8]).unwrap();
        let allowed = SyncedTime::from_ns(20_000_000 - 125_000);
        talker.io_mut().limit(allowed + Span::from_us(7));
        assert_eq!(talker.write(&[0; 8]), Err(ChannelError::TimedOut));
        assert_eq!(wire.borrow().frames.len(), 1);
        talker.io_mut().limit(allowed + Span::from_us(8));
        assert_eq!(talker.write(&[0; 8]), Ok(allowed + Span::from_us(8)));
    }

    #[test]
    fn a_write_waits_for_its_rate_and_a_try_write_says_so() {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let io = TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io, TestLog::default());
        talker.write(&[0; 8]).unwrap();
        let until = SyncedTime::from_ns(20_000_000 - 125_000);
        assert_eq!(talker.try_write(&[0; 8]), Ok(Written::RateExceeded { until }));
        assert_eq!(talker.write(&[0; 8]), Ok(until));
    }

    #[test]
    fn a_message_after_capture_plus_d_is_delivered_late_and_its_wait_overslept() {
        let wire = Rc::new(RefCell::new(Wire { latency: 2_500_000, ..Wire::default() }));
        let io = || TestIo(Rc::clone(&wire));
        let log = TestLog::default();
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), TestLog::default());
        let mut listener = ListenerEndpoint::new(Listener::new(parameters()), io(), log.clone());
        talker.write(&[0; 8]).unwrap();
        let info = listener.read_wait(&mut [0; 8]).expect("a message");
        assert_eq!(info.flags, flag::LATE | flag::OVERSLEPT);
        assert_eq!(info.wakeup_error, Span::from_us(-500));
        assert_eq!(log.0.borrow()[0].flags, flag::LATE | flag::OVERSLEPT);
    }

    #[test]
    fn the_latest_message_is_read_at_once_and_again_with_its_age() {
        let wire = Rc::new(RefCell::new(Wire { latency: 50_000, ..Wire::default() }));
        let io = || TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), TestLog::default());
        let log = TestLog::default();
        let mut listener = ListenerEndpoint::new(Listener::new(parameters()), io(), log.clone());
        let mut value = [0; 8];
        assert_eq!(listener.read_latest(&mut value), Ok(None));
        for k in 0..5u64 {
            talker.write(&k.to_le_bytes()).expect("written");
        }
        let newest = listener.read_latest(&mut value).expect("no fault").expect("a message");
        assert_eq!((u64::from_le_bytes(value), newest.sequence, newest.gap), (4, 4, 0));
        assert_eq!((newest.age, newest.flags), (Span::from_us(50), 0));
        wire.borrow_mut().now += 1_000_000;
        let again = listener.read_latest(&mut value).expect("no fault").expect("a message");
        assert_eq!((again.age, again.flags), (Span::from_us(1_050), flag::REPEATED));
        assert_eq!(u64::from_le_bytes(value), 4);
        assert_eq!(log.0.borrow().len(), 5, "none is missing from the records");
    }

    /// What a reader has of a message that arrived 50 µs after its capture, and of a second one,
    /// when it comes `late` µs after the first arrived, and `prepare` tells how it waited.
    fn received(
        late: i64,
        prepare: impl Fn(&ListenerEndpoint<TestIo, TestLog>),
    ) -> [MessageInfo; 2] {
        let wire = Rc::new(RefCell::new(Wire { latency: 50_000, ..Wire::default() }));
        let io = || TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), TestLog::default());
        let log = TestLog::default();
        let mut listener = ListenerEndpoint::new(Listener::new(parameters()), io(), log.clone());
        talker.write(&[0; 8]).expect("written");
        talker.write(&[0; 8]).expect("written");
        wire.borrow_mut().now += 50_000 + late * 1_000;
        prepare(&listener);
        let mut read = || listener.read(&mut [0; 8], Timeout::None).unwrap().expect("there");
        [read(), read()]
    }

    #[test]
    fn latency_ends_when_a_waiting_program_goes_on_and_age_when_it_is_given_the_message() {
        let us = Span::from_us;
        // The first was captured at 0, the second one interval less the tolerance later.
        let apart = 20_000 - 125;
        let [first, second] = received(7, |_| {});
        assert_eq!((first.latency, first.age), (us(50), us(apart + 57)), "it came later");
        assert_eq!((second.latency, second.age), (us(50), us(57)));
        let woke = |at: i64| {
            let local = SyncedTime::from_ns((apart + at) * 1_000);
            move |end: &ListenerEndpoint<TestIo, TestLog>| {
                end.went_on(Instant { local, network: None })
            }
        };
        let [first, second] = received(7, woke(53));
        assert_eq!((first.latency, first.age), (us(apart + 53), us(apart + 57)), "it waited");
        assert_eq!((second.latency, second.age), (us(53), us(57)), "for both");
        let [first, second] = received(7, woke(40));
        assert_eq!((first.latency, first.age), (us(apart + 40), us(apart + 57)), "it waited");
        assert_eq!((second.latency, second.age), (us(50), us(57)), "for the first one only");
        let [first, _] = received(7, woke(1_000));
        assert_eq!(first.latency, us(50), "a wait that will end later: the clock was set back");
        let [first, second] = received(7, ListenerEndpoint::watch);
        assert_eq!((first.latency, first.age), (us(apart + 57), us(apart + 57)), "who knows when");
        assert_eq!((second.latency, second.age), (us(57), us(57)));
    }

    #[test]
    fn a_program_that_waited_for_another_ones_frame_still_waits_for_the_next_one() {
        let wire = Rc::new(RefCell::new(Wire { latency: 50_000, ..Wire::default() }));
        let io = || TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), TestLog::default());
        let mut listener =
            ListenerEndpoint::new(Listener::new(parameters()), io(), TestLog::default());
        talker.write(&[0; 8]).expect("written");
        {
            let mut wire = wire.borrow_mut();
            wire.frames.push_front((48_000, vec![0; 60]));
            wire.held_up = 5_000;
        }
        let until = Timeout::Until(SyncedTime::MAX);
        let info = listener.read(&mut [0; 8], until).unwrap().expect("there");
        assert_eq!(info.arrived, SyncedTime::from_ns(50_000));
        assert_eq!(info.latency, Span::from_us(53), "5 µs behind the other frame");
    }

    /// The I/O of a run that is over: nothing may be written, and what is there is not given.
    struct Over(TestIo);
    impl ChannelIo for Over {
        fn now(&mut self) -> Result<Instant, ChannelError> {
            self.0.now()
        }
        fn uncertain(&self) -> bool {
            false
        }
        fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
            self.0.sleep_until(target)
        }
        fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
            if at < SyncedTime::from_ns(1_000) { Ok(()) } else { Err(ChannelError::Stopped) }
        }
        fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
            self.0.send(frame)
        }
        fn receive(
            &mut self,
            into: &mut [u8],
            patience: Timeout,
            window: Option<Window>,
        ) -> Result<Option<Received>, ChannelError> {
            let over = self.0.0.borrow().now >= 2_000;
            if over { Err(ChannelError::Stopped) } else { self.0.receive(into, patience, window) }
        }
    }

    #[test]
    fn a_refused_write_has_no_effect_and_what_was_taken_before_the_stop_is_given() {
        let wire = Rc::new(RefCell::new(Wire { latency: 2_000, ..Wire::default() }));
        let io = || Over(TestIo(Rc::clone(&wire)));
        let log = TestLog::default();
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io(), log.clone());
        let mut listener =
            ListenerEndpoint::new(Listener::new(parameters()), io(), TestLog::default());
        talker.write(&[0; 8]).expect("written");
        wire.borrow_mut().now = 1_000;
        let before = talker.talker().clone();
        assert_eq!(talker.try_write(&[0; 8]), Err(ChannelError::Stopped));
        assert_eq!(talker.write(&[0; 8]), Err(ChannelError::Stopped));
        assert_eq!(talker.write_wait(&[0; 8]), Err(ChannelError::Stopped));
        assert_eq!(talker.write_at(&[0; 8], SyncedTime::ZERO), Err(ChannelError::Stopped));
        assert_eq!(format!("{:?}", talker.talker()), format!("{before:?}"));
        assert_eq!((log.0.borrow().len(), wire.borrow().now), (1, 1_000), "nothing was waited for");
        // The run ends while the newest message is looked for.
        let newest = listener.read_latest(&mut [0; 8]).expect("no fault").expect("a message");
        assert_eq!((newest.sequence, wire.borrow().now), (0, 2_000));
        assert_eq!(listener.read_latest(&mut [0; 8]), Err(ChannelError::Stopped));
    }

    #[test]
    fn a_message_written_for_an_instant_is_captured_and_leaves_then() {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let io = TestIo(Rc::clone(&wire));
        let mut talker = TalkerEndpoint::new(Talker::new(parameters()), io, TestLog::default());
        let at = SyncedTime::from_ns(5_000_000);
        assert_eq!(talker.write_at(&[0; 8], at), Ok(at));
        assert_eq!(wire.borrow().frames[0].0, 5_000_000);
        // Before its rate allows it: then.
        let allowed = SyncedTime::from_ns(25_000_000 - 125_000);
        assert_eq!(talker.write_at(&[0; 8], at), Ok(allowed));
        // In the past: now.
        wire.borrow_mut().now = 90_000_000;
        assert_eq!(talker.write_at(&[0; 8], at), Ok(SyncedTime::from_ns(90_000_000)));
    }
}
