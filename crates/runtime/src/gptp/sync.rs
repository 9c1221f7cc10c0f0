//! The transport of time (802.1AS-2020 10.2 and 11.2.14, 11.2.15): Sync and Follow_Up come in at
//! one port, set the clock, and are relayed at others with the time that they spent here.

use crate::gptp::best_master::PortState;
use crate::gptp::instance::{
    Action, Departure, PtpInstance, RECEIPT_TIMEOUT, TimestampId, correction,
};
use crate::gptp::message::{Body, FollowUpInformation, Header, PortIdentity, Timestamp};
use crate::gptp::servo::Measurement;
use crate::gptp::time::{LocalClockTime, RateOffset, ScaledNs, log_interval};

/// What a port has received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SyncIn {
    /// The last Sync, while its Follow_Up is expected.
    sync: Option<ReceivedSync>,
    /// When the time is no longer received. Only who has sent time is expected to continue: a
    /// grandmaster announces itself before it sends any.
    pub(super) expires: Option<LocalClockTime>,
}

#[derive(Clone, Copy, Debug)]
struct ReceivedSync {
    source: PortIdentity,
    sequence: u16,
    correction: ScaledNs,
    at: LocalClockTime,
}

/// What a port has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SyncOut {
    sequence: u16,
    /// What the Sync that waits for its time stamp is about; `None` inside: this node's own time.
    waiting: Option<Option<Upstream>>,
}

/// The grandmaster's time as it was received (10.2.2.2, PortSyncSync).
#[derive(Clone, Copy, Debug)]
pub(super) struct Upstream {
    origin: Timestamp,
    /// What has passed since the origin when the neighbour sent it.
    correction: ScaledNs,
    /// When the neighbour sent it, by this node's own clock (upstreamTxTime).
    sent: LocalClockTime,
    /// How much faster the grandmaster's clock runs than this node's own.
    rate: RateOffset,
    log_interval: i8,
    information: FollowUpInformation,
}

impl PtpInstance {
    /// Takes a Sync from the master of this link.
    pub(super) fn take_sync(
        &mut self,
        port: usize,
        header: &Header,
        stamp: LocalClockTime,
    ) -> Option<()> {
        let port = &mut self.ports[port];
        let master = port.announced.as_ref()?.vector.source;
        if port.state != PortState::SlavePort || header.source != master {
            return None;
        }
        let (source, sequence) = (header.source, header.sequence);
        let correction = correction(header);
        port.sync_in.sync = Some(ReceivedSync { source, sequence, correction, at: stamp });
        Some(())
    }

    /// Takes the Follow_Up of a Sync: the clock follows it, and other ports pass it on.
    pub(super) fn take_follow_up(
        &mut self,
        now: LocalClockTime,
        index: usize,
        header: &Header,
        origin: Timestamp,
        information: Option<FollowUpInformation>,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let port = &mut self.ports[index];
        let link = port.peer.link()?;
        let (source, sequence) = (header.source, header.sequence);
        let interval = log_interval(header.log_interval)?;
        let sync = port.sync_in.sync.take_if(|s| (s.source, s.sequence) == (source, sequence))?;
        port.sync_in.expires = Some(now + ScaledNs::from(interval * RECEIPT_TIMEOUT));
        let information = information.unwrap_or_default();
        let upstream = Upstream {
            origin,
            correction: sync.correction + correction(header),
            sent: sync.at - link.delay.before_rate(link.rate),
            rate: RateOffset::from_scaled(information.rate.into()).then(link.rate),
            log_interval: header.log_interval,
            information,
        };
        let grandmaster = upstream.origin.instant()? + upstream.passed(sync.at);
        let measured = Measurement { at: sync.at, grandmaster, rate: upstream.rate, interval };
        out.push(Action::AdjustClock(self.servo.follow(now, &measured)));
        self.send_syncs(Some(upstream), out);
        Some(())
    }

    /// Sends Sync at all ports that lead away from the grandmaster.
    pub(super) fn send_syncs(&mut self, upstream: Option<Upstream>, out: &mut Vec<Action>) {
        let own = self.settings.log_sync_interval;
        let log = upstream.map_or(own, |upstream| upstream.log_interval);
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            if port.state != PortState::MasterPort {
                continue;
            }
            port.sync_out.sequence = port.sync_out.sequence.wrapping_add(1);
            port.sync_out.waiting = Some(upstream);
            let sequence = port.sync_out.sequence;
            let timestamp_id = Some(TimestampId(Departure::Sync(sequence)));
            out.push(self.message(index, sequence, log, ScaledNs::ZERO, Body::Sync, timestamp_id));
        }
    }

    /// Sends the Follow_Up of a Sync that left at `stamp` (11.2.15).
    pub(super) fn follow_up(
        &mut self,
        index: usize,
        sequence: u16,
        stamp: LocalClockTime,
        out: &mut Vec<Action>,
    ) {
        let sync_out = &mut self.ports[index].sync_out;
        if sync_out.sequence != sequence {
            return;
        }
        let Some(upstream) = sync_out.waiting.take() else { return };
        let own = || {
            let clock = self.servo.clock()?;
            let (origin, fraction) = Timestamp::of_ptp(clock.read(stamp))?;
            let information = FollowUpInformation::default().with_rate(clock.rate);
            Some((self.settings.log_sync_interval, origin, fraction, information))
        };
        let relayed = |upstream: Upstream| {
            let information = upstream.information.with_rate(upstream.rate);
            (upstream.log_interval, upstream.origin, upstream.passed(stamp), information)
        };
        let Some((log, origin, correction, information)) =
            upstream.map_or_else(own, |u| Some(relayed(u)))
        else {
            return;
        };
        let body = Body::FollowUp { origin, information: Some(information) };
        out.push(self.message(index, sequence, log, correction, body, None));
    }
}

impl Upstream {
    /// What has passed of the grandmaster's time between the origin and an instant of this node's
    /// own clock.
    fn passed(&self, at: LocalClockTime) -> ScaledNs {
        self.correction + (at - self.sent).at_rate(self.rate)
    }
}
