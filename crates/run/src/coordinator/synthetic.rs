//! Synthetic endpoints, on hosts without programs: a talker that writes on time, a listener that
//! reads at once.

use onbeat_model::record::Record;
use onbeat_model::system::Channel;
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::listener::{Dropped, Listener, Reading, record_of};
use onbeat_runtime::talker::{ChannelParameters, Talker};

/// A synthetic talker.
#[derive(Debug)]
pub(super) struct SyntheticTalker {
    talker: Talker,
    next: SyncedTime,
    value: Vec<u8>,
    pub(super) records: Vec<Record>,
}

impl SyntheticTalker {
    /// With when it first writes, and what its host's clock is at the epoch.
    pub(super) fn new(
        declared: &Channel,
        phase: Span,
        clock: ClockError,
        parameters: ChannelParameters,
    ) -> Self {
        // A clock that is ahead has passed the first instants before the run begins.
        let passed = clock.read(NetTime::ZERO) - (SyncedTime::ZERO + phase);
        let interval = declared.interval.as_ns();
        let skipped = (passed.as_ns().max(0) + interval - 1) / interval;
        Self {
            talker: Talker::new(parameters),
            next: SyncedTime::ZERO + phase + declared.interval * skipped,
            value: vec![0; declared.size.get() as usize],
            records: Vec::new(),
        }
    }

    /// When it writes next, from `now` on, and by its clock. What that steps over, and what was due
    /// before, is left out.
    pub(super) fn next(&mut self, now: NetTime, clock: &ClockError) -> (NetTime, SyncedTime) {
        let interval = self.talker.parameters().interval;
        let late = (clock.read(now) - self.next).as_ns().max(0);
        self.next += interval * ((late + interval.as_ns() - 1) / interval.as_ns());
        loop {
            let at = clock.when_from(now, self.next);
            if !clock.steps_over(self.next, at) {
                return (at, self.next);
            }
            let passed = (clock.read(at) - self.next).as_ns().max(1);
            self.next += interval * ((passed + interval.as_ns() - 1) / interval.as_ns());
        }
    }

    /// Writes the message that is due at `now`, when its clock reads `capture`, its number as its
    /// value; returns its first frame, unless the channel's rate does not allow one.
    pub(super) fn write(&mut self, now: NetTime, capture: SyncedTime) -> Option<&[u8]> {
        let number = (self.records.len() as u64).to_le_bytes();
        let shown = number.len().min(self.value.len());
        self.value[..shown].copy_from_slice(&number[..shown]);
        self.next += self.talker.parameters().interval;
        let sent = self.talker.write(capture, &self.value, false).ok()?;
        let (sequence, network, capture) = (sent.sequence, Some(now), Some(sent.capture));
        self.records.push(Record { capture, network, sequence, ..Record::default() });
        Some(self.talker.frame())
    }

    /// The next frame of the message written last.
    pub(super) fn next_frame(&mut self) -> Option<&[u8]> {
        self.talker.next_fragment(&self.value).then(|| self.talker.frame())
    }

    /// The message written last was queued at the port when its clock read `at`.
    pub(super) fn queued(&mut self, at: SyncedTime) {
        if let Some(record) = self.records.last_mut() {
            record.transfer = Some(at);
        }
    }
}

/// A synthetic listener.
#[derive(Debug)]
pub(super) struct SyntheticListener {
    listener: Listener,
    value: Vec<u8>,
    pub(super) records: Vec<Record>,
    malformed: u64,
}

impl SyntheticListener {
    pub(super) fn new(parameters: ChannelParameters) -> Self {
        let value = vec![0; parameters.size.get() as usize];
        let (listener, records) = (Listener::new(parameters), Vec::new());
        Self { listener, value, records, malformed: 0 }
    }

    /// Reads a frame at `now` that arrived at the port, when its clock reads `receive` and read
    /// `arrived`.
    pub(super) fn read(&mut self, frame: &[u8], [arrived, receive]: [SyncedTime; 2], now: NetTime) {
        let reading = Reading::at(receive);
        let outcome = self.listener.accept(frame, Framing::Ethernet, reading, &mut self.value);
        let Some(mut record) = record_of(&outcome) else {
            self.malformed += u64::from(matches!(outcome, Err(Dropped::Rejected(_))));
            return;
        };
        record.transfer = Some(arrived);
        record.receive = Some(receive);
        record.network = Some(now);
        self.records.push(record);
    }

    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }
}
