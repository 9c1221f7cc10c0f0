//! A PTP Instance: its ports, its timers, and what happens when.

use crate::gptp::announce::ReceivedAnnounce;
use crate::gptp::best_master::{
    PortState, PortStateDecision, PortView, SystemIdentity, decide_port_states,
};
use crate::gptp::message::{Body, Header, Message, PortIdentity, Timestamp};
use crate::gptp::peer_delay::{LinkState, PeerDelay};
use crate::gptp::servo::{LinearClock, Servo, ServoSettings};
use crate::gptp::sync::{SyncIn, SyncOut};
use crate::gptp::time::{LocalClockTime, PtpTime, ScaledNs, log_interval};
use onbeat_model::time::Span;

/// Intervals without the message that is expected, until the other end counts as silent
/// (10.7.3.1, announceReceiptTimeout; 10.7.3.2, syncReceiptTimeout).
pub(super) const RECEIPT_TIMEOUT: i64 = 3;

/// The most ports of a node.
pub const MAX_PORTS: usize = 1_024;

/// The most actions that one event leads to, for each port: a Pdelay_Req, an Announce, a Sync with
/// another's time and one with the node's own. [`ACTIONS_BESIDES`] come to that.
pub const ACTIONS_PER_PORT: usize = 4;

/// An answer or a Follow_Up, and the clock adjusted by a Follow_Up, by holding, and by being
/// grandmaster.
pub const ACTIONS_BESIDES: usize = 4;

/// What a node is told at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its identity and how good a grandmaster it would be.
    pub system: SystemIdentity,
    /// domainNumber.
    pub domain: u8,
    /// The logarithm to base 2 of the time between two Announce messages, in seconds, −7 to 7.
    pub log_announce_interval: i8,
    /// The same for Sync, if this node is grandmaster; relays pass on what comes.
    pub log_sync_interval: i8,
    /// The same for measurements of the link delay.
    pub log_pdelay_interval: i8,
    /// meanLinkDelayThresh (14.10.9): what is longer is no link. 800 ns is for copper with hardware
    /// time stamps (table 11-1); software time stamps need some milliseconds.
    pub mean_link_delay_threshold: Span,
    /// How fast the clock follows.
    pub servo: ServoSettings,
    /// How far the time that it distributes as grandmaster is ahead of its own clock:
    /// [`UTC_OFFSET_S`](crate::gptp::UTC_OFFSET_S) for a clock that shows UTC, as gPTP has TAI.
    pub ahead: Span,
}

impl Settings {
    /// The standard's defaults (10.7.2, 11.5.2): Announce messages and link delays each second,
    /// Sync eight times a second.
    pub fn new(system: SystemIdentity) -> Self {
        Self {
            system,
            domain: 0,
            log_announce_interval: 0,
            log_sync_interval: -3,
            log_pdelay_interval: 0,
            mean_link_delay_threshold: Span::from_ns(800),
            servo: ServoSettings::default(),
            ahead: Span::ZERO,
        }
    }
}

/// The right to say when a message has left: given with the message, taken back with the time
/// stamp. It cannot be copied, so no message has two.
///
/// ```compile_fail
/// # use onbeat_runtime::gptp::{Event, LocalClockTime, PtpInstance, TimestampId};
/// fn twice(node: &mut PtpInstance, port: usize, timestamp_id: TimestampId, at: LocalClockTime) {
///     node.handle(at, Event::Sent { port, timestamp_id, stamp: at });
///     node.handle(at, Event::Sent { port, timestamp_id, stamp: at });
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct TimestampId(pub(super) Departure);

/// Which message's time stamp is meant, by its sequenceId.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// A Sync.
    Sync(u16),
    /// A Pdelay_Req.
    Request(u16),
    /// A Pdelay_Resp.
    Response(u16),
}

/// What happens to a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It is [`PtpInstance::next_timeout`], or later, or earlier: only what is due is done.
    Timeout,
    /// A message came, without its Ethernet header.
    Received {
        /// The port's index, from 0.
        port: usize,
        /// Its octets.
        octets: &'a [u8],
        /// When its first bit after the preamble came (8.4.3); messages that are events are
        /// dropped without.
        stamp: Option<LocalClockTime>,
    },
    /// A message of [`Action::Send`] with a timestamp_id has left.
    Sent {
        /// The port's index, from 0.
        port: usize,
        /// Which message.
        timestamp_id: TimestampId,
        /// When.
        stamp: LocalClockTime,
    },
}

/// What a node wants done, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this now, to [`DESTINATION`](crate::gptp::DESTINATION).
    Send {
        /// The port's index, from 0.
        port: usize,
        /// The message, without an Ethernet header.
        octets: Vec<u8>,
        /// If there is one, the time stamp of its departure is wanted: [`Event::Sent`].
        timestamp_id: Option<TimestampId>,
    },
    /// The synchronised clock follows this linear model from now on.
    AdjustClock(LinearClock),
}

/// How a node's clock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It was never set.
    Unset,
    /// It is the grandmaster's.
    Grandmaster,
    /// It follows the grandmaster behind this port.
    Slave(usize),
    /// There is no grandmaster (any more): it continues at the last one's rate.
    Holdover,
}

/// One port.
#[derive(Debug)]
pub(super) struct InstancePort {
    pub(super) identity: PortIdentity,
    pub(super) state: PortState,
    pub(super) peer: PeerDelay,
    request_due: LocalClockTime,
    /// Whose Pdelay_Resp waits for its time stamp.
    response_out: Option<(u16, PortIdentity)>,
    pub(super) announced: Option<ReceivedAnnounce>,
    pub(super) announce_due: LocalClockTime,
    pub(super) announce_sequence: u16,
    pub(super) sync_in: SyncIn,
    pub(super) sync_out: SyncOut,
}

/// A PTP Instance (802.1AS-2020 7.3).
#[derive(Debug)]
pub struct PtpInstance {
    pub(super) settings: Settings,
    pub(super) ports: Vec<InstancePort>,
    pub(super) servo: Servo,
    pub(super) decision: PortStateDecision,
    /// Since when no better clock is known.
    pub(super) alone_since: LocalClockTime,
    pub(super) sync_due: LocalClockTime,
    pub(super) ignored: u64,
}

impl PtpInstance {
    /// A node that starts now. It asks its neighbours at once.
    ///
    /// # Panics
    /// When there are no ports or more than [`MAX_PORTS`], or an interval is not one of the
    /// standard's.
    pub fn new(settings: Settings, ports: usize, now: LocalClockTime) -> Self {
        assert!((1..=MAX_PORTS).contains(&ports), "{ports} ports");
        let identity = settings.system.identity;
        let port = |index: usize| InstancePort {
            identity: PortIdentity { clock: identity, port: index as u16 + 1 },
            state: PortState::DisabledPort,
            peer: PeerDelay::new(settings.mean_link_delay_threshold),
            request_due: now,
            response_out: None,
            announced: None,
            announce_due: now,
            announce_sequence: 0,
            sync_in: SyncIn::default(),
            sync_out: SyncOut::default(),
        };
        let decision = decide_port_states(&settings.system, &[]);
        let node = Self {
            settings,
            ports: (0..ports).map(port).collect(),
            servo: Servo::new(settings.servo),
            decision,
            alone_since: now,
            sync_due: now,
            ignored: 0,
        };
        let Settings { log_announce_interval, log_sync_interval, log_pdelay_interval, .. } =
            settings;
        for log in [log_announce_interval, log_sync_interval, log_pdelay_interval] {
            node.interval(log);
        }
        node
    }

    /// Does what an event asks for: at most [`ACTIONS_PER_PORT`] for each port and
    /// [`ACTIONS_BESIDES`]. Allocates; takes time linear in the ports and the octets.
    ///
    /// # Panics
    /// When the event names a port that the node does not have.
    pub fn handle(&mut self, now: LocalClockTime, event: Event<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Timeout => {}
            Event::Received { port, octets, stamp } => {
                if self.receive(now, port, octets, stamp, &mut out).is_none() {
                    self.ignored += 1;
                }
            }
            Event::Sent { port, timestamp_id, stamp } => {
                self.sent(port, timestamp_id, stamp, &mut out)
            }
        }
        self.do_what_is_due(now, &mut out);
        assert!(out.len() <= self.ports.len() * ACTIONS_PER_PORT + ACTIONS_BESIDES, "{out:?}");
        out
    }

    /// When the node wants [`Event::Timeout`] at the latest.
    pub fn next_timeout(&self) -> LocalClockTime {
        let of_port = |port: &InstancePort| {
            let announce = (port.state == PortState::MasterPort).then_some(port.announce_due);
            let expiry = port.announced.as_ref().map(|announced| announced.expires);
            [Some(port.request_due), announce, expiry, port.sync_in.expires]
        };
        let ports = self.ports.iter().flat_map(of_port).flatten();
        let own = self.is_grandmaster().then(|| match self.servo.clock() {
            Some(_) => self.sync_due,
            None => self.alone_since + self.announce_timeout(),
        });
        // There is at least one port.
        ports.chain(own).min().unwrap_or(self.sync_due)
    }

    /// The synchronised clock, if it was ever set.
    pub fn clock(&self) -> Option<&LinearClock> {
        self.servo.clock()
    }

    /// What the synchronised clock reads at an instant of the node's own, rounded towards −∞.
    pub fn read(&self, at: LocalClockTime) -> Option<PtpTime> {
        self.servo.clock().map(|clock| clock.read(at))
    }

    /// How the clock stands.
    pub fn condition(&self) -> Condition {
        match self.decision.slave {
            Some(port) if self.ports[port].sync_in.expires.is_some() => Condition::Slave(port),
            _ if self.servo.clock().is_none() => Condition::Unset,
            None if self.is_grandmaster() => Condition::Grandmaster,
            _ => Condition::Holdover,
        }
    }

    /// Who is or would be grandmaster, as far as this node knows.
    pub fn grandmaster(&self) -> SystemIdentity {
        self.decision.root
    }

    /// Links between this node and the grandmaster.
    pub fn steps_removed(&self) -> u16 {
        self.decision.steps_removed
    }

    /// How far the grandmaster was ahead at the last measurement, rounded towards −∞.
    pub fn last_offset(&self) -> Option<Span> {
        self.servo.last_offset().map(ScaledNs::span)
    }

    /// The state of a port.
    ///
    /// # Panics
    /// When there is no such port; so the next one.
    pub fn port_state(&self, port: usize) -> PortState {
        self.ports[port].state
    }

    /// What is known of a port's link.
    pub fn link(&self, port: usize) -> Option<LinkState> {
        self.ports[port].peer.link()
    }

    /// Messages that were no messages, not for this node, or not expected.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Whether this node is the best clock that it knows of, and one that may be grandmaster.
    pub(super) fn is_grandmaster(&self) -> bool {
        self.decision.slave.is_none() && self.settings.system.is_gm_capable()
    }

    /// How long a better clock has to announce itself (announceReceiptTimeout).
    fn announce_timeout(&self) -> ScaledNs {
        (self.interval(self.settings.log_announce_interval) * RECEIPT_TIMEOUT).into()
    }

    pub(super) fn interval(&self, log: i8) -> Span {
        log_interval(log).unwrap_or_else(|| panic!("an interval of 2^{log} s"))
    }

    fn receive(
        &mut self,
        now: LocalClockTime,
        port: usize,
        octets: &[u8],
        stamp: Option<LocalClockTime>,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let message = Message::parse(octets).ok()?;
        let header = message.header;
        let own = self.settings.system.identity;
        if header.domain != self.settings.domain || header.source.clock == own {
            return None;
        }
        let mine = self.ports[port].identity;
        match message.body {
            Body::PdelayRequest => self.answer(port, &header, stamp?, out),
            Body::PdelayResponse { received, requester } if requester == mine => {
                // With its sign as in IEEE 1588-2019 11.4.2: the link delay loses the correction.
                let received = received.instant()? - correction(&header);
                self.ports[port].peer.response(header.sequence, header.source, received, stamp?);
                Some(())
            }
            Body::PdelayResponseFollowUp { origin, requester } if requester == mine => {
                let origin = origin.instant()? + correction(&header);
                self.ports[port].peer.follow_up(header.sequence, header.source, origin);
                Some(())
            }
            Body::Announce(announce) => self.receive_announce(now, port, &header, announce),
            Body::Sync => self.take_sync(port, &header, stamp?),
            Body::FollowUp { origin, information } => {
                self.take_follow_up(now, port, &header, origin, information, out)
            }
            _ => None,
        }
    }

    /// Answers a neighbour's request (11.2.20, MDPdelayResp).
    fn answer(
        &mut self,
        port: usize,
        header: &Header,
        stamp: LocalClockTime,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let (sequence, requester) = (header.sequence, header.source);
        let body = Body::PdelayResponse { received: Timestamp::of_free(stamp)?, requester };
        self.ports[port].response_out = Some((sequence, requester));
        let timestamp_id = Some(TimestampId(Departure::Response(sequence)));
        out.push(self.message(port, sequence, 127, ScaledNs::ZERO, body, timestamp_id));
        Some(())
    }

    fn sent(
        &mut self,
        port: usize,
        timestamp_id: TimestampId,
        stamp: LocalClockTime,
        out: &mut Vec<Action>,
    ) {
        match timestamp_id.0 {
            Departure::Request(sequence) => self.ports[port].peer.sent(sequence, stamp),
            Departure::Sync(sequence) => self.follow_up(port, sequence, stamp, out),
            Departure::Response(sequence) => {
                let waiting = self.ports[port].response_out.take_if(|(s, _)| *s == sequence);
                if let (Some((_, requester)), Some(origin)) = (waiting, Timestamp::of_free(stamp)) {
                    let body = Body::PdelayResponseFollowUp { origin, requester };
                    out.push(self.message(port, sequence, 127, ScaledNs::ZERO, body, None));
                }
            }
        }
    }

    /// A message of a port.
    pub(super) fn message(
        &self,
        port: usize,
        sequence: u16,
        log_interval: i8,
        correction: ScaledNs,
        body: Body,
        timestamp_id: Option<TimestampId>,
    ) -> Action {
        let source = self.ports[port].identity;
        // The largest value says that it is too large (10.6.2.2.9).
        let correction = correction.scaled().clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let domain = self.settings.domain;
        let header = Header { domain, correction, source, sequence, log_interval };
        let mut octets = Vec::new();
        Message { header, body }.emit(&mut octets);
        Action::Send { port, octets, timestamp_id }
    }

    fn do_what_is_due(&mut self, now: LocalClockTime, out: &mut Vec<Action>) {
        let mut changed = false;
        for index in 0..self.ports.len() {
            self.ask_if_due(now, index, out);
            changed |= self.forget_what_is_too_old(now, index);
        }
        if changed {
            self.update_port_states(now, false);
        }
        self.act_as_grandmaster(now, out);
        for index in 0..self.ports.len() {
            let port = &self.ports[index];
            if port.state == PortState::MasterPort && port.announce_due <= now {
                self.announce(now, index, out);
            }
        }
    }

    /// Begins an exchange that measures the link (11.2.19).
    fn ask_if_due(&mut self, now: LocalClockTime, index: usize, out: &mut Vec<Action>) {
        let log = self.settings.log_pdelay_interval;
        let interval = self.interval(log);
        let port = &mut self.ports[index];
        if port.request_due > now {
            return;
        }
        port.request_due = next(port.request_due, interval, now);
        let sequence = port.peer.begin();
        let timestamp_id = Some(TimestampId(Departure::Request(sequence)));
        out.push(self.message(
            index,
            sequence,
            log,
            ScaledNs::ZERO,
            Body::PdelayRequest,
            timestamp_id,
        ));
    }

    /// Whether the decision of the grandmaster may be another one now.
    fn forget_what_is_too_old(&mut self, now: LocalClockTime, index: usize) -> bool {
        let port = &mut self.ports[index];
        let capable = port.peer.capable();
        let silent = port.sync_in.expires.is_some_and(|at| at <= now);
        if silent
            || port.announced.as_ref().is_some_and(|announced| announced.expires <= now)
            || !capable
        {
            let had = port.announced.take().is_some();
            port.sync_in = SyncIn::default();
            return had || capable != (port.state != PortState::DisabledPort);
        }
        port.state == PortState::DisabledPort
    }

    /// Chooses the grandmaster and the ports' states from the Announce messages received. `way`:
    /// whether the clocks on the way to the grandmaster may be others than before.
    pub(super) fn update_port_states(&mut self, now: LocalClockTime, way: bool) {
        let views: Vec<_> = self.ports.iter().map(InstancePort::view).collect();
        let decision = decide_port_states(&self.settings.system, &views);
        let news = way
            || decision.slave != self.decision.slave
            || (decision.root, decision.steps_removed)
                != (self.decision.root, self.decision.steps_removed);
        if decision.slave.is_none() && self.decision.slave.is_some() {
            self.alone_since = now;
            self.sync_due = now;
        }
        for (port, state) in self.ports.iter_mut().zip(&decision.states) {
            if *state == PortState::MasterPort && (news || port.state != PortState::MasterPort) {
                port.announce_due = now;
            }
            if *state != PortState::SlavePort {
                port.sync_in = SyncIn::default();
            }
            port.state = *state;
        }
        self.decision = decision;
    }

    /// The grandmaster's own part: sets its clock when it has waited long enough for a better one,
    /// and sends the time. Without a grandmaster: holds the rate.
    fn act_as_grandmaster(&mut self, now: LocalClockTime, out: &mut Vec<Action>) {
        if !matches!(self.condition(), Condition::Slave(_)) {
            out.extend(self.servo.hold(now).map(Action::AdjustClock));
        }
        if !self.is_grandmaster() {
            return;
        }
        if self.servo.clock().is_none() && self.alone_since + self.announce_timeout() <= now {
            out.extend(
                self.servo.set_free(now, self.settings.ahead.into()).map(Action::AdjustClock),
            );
        }
        if self.servo.clock().is_some() && self.sync_due <= now {
            let log = self.settings.log_sync_interval;
            self.sync_due = next(self.sync_due, self.interval(log), now);
            self.send_syncs(None, out);
        }
    }
}

impl InstancePort {
    fn view(&self) -> PortView {
        let announced = self.announced.as_ref().map(|announced| announced.vector);
        PortView { capable: self.peer.capable(), announced }
    }
}

/// A message's correction.
pub(super) fn correction(header: &Header) -> ScaledNs {
    ScaledNs::from_scaled(header.correction.into())
}

/// The next of instants that are `interval` apart; what was missed is left out.
pub(super) fn next(due: LocalClockTime, interval: Span, now: LocalClockTime) -> LocalClockTime {
    let next = due + interval.into();
    if next > now { next } else { now + interval.into() }
}
