//! gPTP on one node of an engine: the protocol, the node's own clock, and what notes time stamps.

use crate::gptp::NodeModel;
use crate::gptp::oscillator::{LocalClock, Stamper};
use crate::participant::{ClockAdjustment, Happened, Moment, Outgoing, Participant, Wants};
use crate::random::{Purpose, Stream};
use onbeat_model::system::NodeId;
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::gptp::{
    Action, ClockIdentity, Condition, DESTINATION, ETHERTYPE, Event, LinearClock, PtpInstance,
    ScaledNs, Settings, SystemIdentity, TimestampId,
};
use std::collections::BTreeMap;

/// All nodes start within this.
const START_WITHIN_NS: u64 = 1_000_000_000;

/// Octets of an Ethernet header.
const ETHERNET: usize = 14;

/// The most messages of a node whose departure may be unknown: what a full queue dropped is
/// forgotten.
const UNDER_WAY: usize = 1_024;

/// How often a synchronised clock's rate is looked at: whenever its oscillator's changes.
const LOOK: Span = crate::gptp::FREQUENCY_DRIFT_INTERVAL;

/// A node of gPTP in an engine.
#[derive(Debug)]
pub(crate) struct Instance {
    node: PtpInstance,
    clock: LocalClock,
    stamper: Stamper,
    random: Stream,
    send_delay: [Span; 2],
    /// By port: when the last message is queued.
    busy: Vec<NetTime>,
    /// Before its start it does nothing.
    starts: NetTime,
    /// From here on it does nothing.
    stops: NetTime,
    /// How long it had been there before the engine's epoch.
    before: Span,
    /// What the distributed time reads at the engine's epoch, if it is to steer the node's clock.
    epoch: Option<i64>,
    /// When the protocol wants its alarm.
    wakes: NetTime,
    /// When the clock is looked at next.
    look: NetTime,
    /// Its number among the nodes.
    number: u16,
    tokens: u64,
    timestamp_ids: BTreeMap<u64, Option<TimestampId>>,
    messages: u64,
    steered: Option<LinearClock>,
    largest_step: ScaledNs,
    rates_ppb: Option<[i64; 2]>,
}

/// The identity of a node's clock.
fn identity(index: usize) -> ClockIdentity {
    ClockIdentity((index as u64 + 1).to_be_bytes())
}

/// Whose it is: there are no more than [`super::NODES_MAX`].
pub(super) fn index(identity: ClockIdentity) -> u16 {
    u64::from_be_bytes(identity.0).wrapping_sub(1) as u16
}

impl Instance {
    pub(super) fn new(model: &NodeModel, index: usize, ports: usize, seed: u64) -> Self {
        let mut random = Stream::new(seed, Purpose::Synchronisation, index);
        let starts = NetTime::from_ns(random.below(START_WITHIN_NS) as i64);
        let mut clock = LocalClock::new(model.oscillator, seed, index);
        let mut settings = Settings::new(SystemIdentity::unknown(model.priority1, identity(index)));
        settings.mean_link_delay_threshold = model.mean_link_delay_threshold;
        settings.servo = model.servo;
        Self {
            node: PtpInstance::new(settings, ports, clock.read(starts)),
            clock,
            stamper: Stamper::new(model.stamps, seed, index),
            random,
            send_delay: model.send_delay,
            busy: vec![NetTime::ZERO; ports],
            starts,
            stops: NetTime::MAX,
            before: Span::ZERO,
            epoch: None,
            wakes: starts,
            look: NetTime::MAX,
            number: index as u16,
            tokens: 0,
            timestamp_ids: BTreeMap::new(),
            messages: 0,
            steered: None,
            largest_step: ScaledNs::ZERO,
            rates_ppb: None,
        }
    }

    /// It stops for good.
    pub(super) fn stop_at(&mut self, at: NetTime) {
        self.stops = self.stops.min(at);
    }

    /// Takes part in another engine, whose epoch is `before` after that of the last one. From now
    /// on it steers its node's clock, which reads zero when the distributed time is `epoch`.
    pub(super) fn go_on_in_run(&mut self, before: Span, epoch: i64) {
        let end = NetTime::ZERO + before;
        for busy in &mut self.busy {
            *busy = NetTime::ZERO + (*busy - end).max(Span::ZERO);
        }
        self.timestamp_ids.clear();
        self.wakes = self.wakes - before;
        (self.starts, self.before, self.epoch, self.look) =
            (NetTime::ZERO, before, Some(epoch), NetTime::ZERO);
    }

    /// What its own clock counts with, which knows nothing of epochs.
    fn own(&self, at: NetTime) -> NetTime {
        at + self.before
    }

    pub(super) fn runs(&self, now: NetTime) -> bool {
        self.starts <= now && now < self.stops
    }

    /// From when on it does nothing.
    pub(super) fn stopped(&self) -> NetTime {
        self.stops
    }

    pub(super) fn is_grandmaster(&self) -> bool {
        self.node.condition() == Condition::Grandmaster
    }

    pub(super) fn protocol(&self) -> &PtpInstance {
        &self.node
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// What the synchronised clock reads, if it was ever set.
    pub(super) fn read(&mut self, now: NetTime) -> Option<SyncedTime> {
        let reading = self.clock.read(self.own(now));
        self.node.read(reading).map(|reading| SyncedTime::from_ns(reading.as_ns()))
    }

    /// The largest step of its clock after it was set, and its rates.
    pub(super) fn noted(&self) -> (Span, Option<[i64; 2]>) {
        (-(-self.largest_step).span(), self.rates_ppb)
    }

    fn pass(&mut self, now: NetTime, event: Event<'_>, wants: &mut Wants) {
        if !self.runs(now) {
            return;
        }
        let reading = self.clock.read(self.own(now));
        for action in self.node.handle(reading, event) {
            match action {
                Action::AdjustClock(line) => {
                    self.note(line);
                    // The clock has changed: it is looked at now.
                    self.look = self.look.min(now);
                }
                Action::Send { port, octets, timestamp_id } => {
                    let frame = self.frame(now, port, &octets, timestamp_id);
                    wants.send(frame);
                }
            }
        }
        let alarm = self.clock.when(self.node.next_timeout()) - self.before;
        self.wakes = self.wakes.min(alarm.max(now + Span::from_ns(1)));
    }

    fn frame(
        &mut self,
        now: NetTime,
        port: usize,
        message: &[u8],
        timestamp_id: Option<TimestampId>,
    ) -> Outgoing {
        let [shortest, longest] = self.send_delay;
        let spread = (longest - shortest).as_ns() as u64 + 1;
        let stay = shortest + Span::from_ns(self.random.below(spread) as i64);
        let at = (now + stay).max(self.busy[port] + Span::from_ns(1));
        self.busy[port] = at;
        if self.timestamp_ids.len() == UNDER_WAY {
            self.timestamp_ids.pop_first();
        }
        self.tokens += 1;
        self.timestamp_ids.insert(self.tokens, timestamp_id);
        let mut octets = Vec::with_capacity(ETHERNET + message.len());
        octets.extend_from_slice(&DESTINATION);
        // Locally administered, one for each node; nobody looks at it.
        let number = self.number.to_be_bytes();
        octets.extend_from_slice(&[0x02, 0, 0, 0, number[0], number[1]]);
        octets.extend_from_slice(&ETHERTYPE.to_be_bytes());
        octets.extend_from_slice(message);
        Outgoing { port, octets, after: at - now, token: Some(self.tokens) }
    }

    /// Keeps what a new line does to the clock.
    fn note(&mut self, line: LinearClock) {
        if let Some(before) = self.steered {
            let step = (line.reading - before.read(line.from)).abs();
            self.largest_step = self.largest_step.max(step);
        }
        let ppb = line.rate.ppb();
        let [low, high] = self.rates_ppb.unwrap_or([ppb, ppb]);
        self.rates_ppb = Some([low.min(ppb), high.max(ppb)]);
        self.steered = Some(line);
    }

    /// Steers the node's clock, if that is asked for and it is to be looked at.
    fn look(&mut self, moment: &Moment, wants: &mut Wants) {
        let (Some(epoch), Some(line)) = (self.epoch, self.node.clock().copied()) else { return };
        if self.look > moment.now {
            return;
        }
        let interval = LOOK.as_ns();
        self.look = NetTime::from_ns((moment.now.as_ns() / interval + 1) * interval);
        let own = self.own(moment.now);
        let reading = line.read(self.clock.read(own)).as_ns() - epoch;
        let rate = self.clock.rate().then(line.rate).ppb();
        let most = i64::from(ClockError::MAX_DRIFT_PPB);
        let drift_ppb = rate.clamp(-most, most) as i32;
        // Both roundings are downwards: at its next look it is not ahead, and never goes back.
        let offset = Span::from_ns(reading - moment.now.as_ns());
        let clock = ClockError { offset, drift_ppb, since: moment.now, ..ClockError::default() };
        let source = index(self.node.grandmaster().identity);
        wants.adjust_clock(ClockAdjustment { clock, source: Some(NodeId(source.into())) });
    }
}

impl Participant for Instance {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let now = moment.now;
        match happened {
            Happened::Timer if self.wakes <= now && self.runs(now) => {
                self.wakes = NetTime::MAX;
                self.pass(now, Event::Timeout, wants);
            }
            Happened::Timer | Happened::Header { .. } => {}
            Happened::Received { port, octets, at, .. } => {
                let own = self.own(at);
                let stamp = Some(self.stamper.received(&mut self.clock, own));
                let octets = octets.get(ETHERNET..).unwrap_or_default();
                self.pass(now, Event::Received { port, octets, stamp }, wants);
            }
            Happened::Sent { port, token, at } if self.runs(now) => {
                self.messages += 1;
                let own = self.own(at);
                let stamp = self.stamper.sent(&mut self.clock, own);
                if let Some(Some(timestamp_id)) = self.timestamp_ids.remove(&token) {
                    self.pass(now, Event::Sent { port, timestamp_id, stamp }, wants);
                }
            }
            Happened::Sent { .. } | Happened::Written { .. } => {}
        }
        self.look(moment, wants);
    }

    fn next(&self) -> NetTime {
        let look = if self.epoch.is_some() { self.look } else { NetTime::MAX };
        let next = self.wakes.min(look);
        if next < self.stops { next } else { NetTime::MAX }
    }
}
