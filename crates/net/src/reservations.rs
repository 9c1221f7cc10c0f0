//! What a protocol has reserved, channel by channel, as the engine sees it.

use crate::route::Routes;
use onbeat_model::plan::Plan;
use onbeat_model::reservation::{
    ListenerReservation, RESERVATION_WAIT, ReservationObserved, ReservationStatus,
    ReservationsObserved,
};
use onbeat_model::system::{ChannelId, NodeId, PortId, System};
use onbeat_model::time::{NetTime, Span};

/// If some reservation failed, talkers begin when nothing has changed for so long: what is refused
/// first may yet be reserved instead of something else.
const SETTLING: Span = Span::from_s(1);

/// All reservations of a run.
#[derive(Debug)]
pub(crate) struct Reservations {
    /// Per channel: the ports by which its frames leave, and their hops there.
    hops: Vec<Vec<(PortId, u32)>>,
    /// Per channel; none if it has no reservation.
    channels: Vec<Option<ChannelReservation>>,
    /// Channels of which not all is decided.
    undecided: usize,
    /// When talkers began.
    begun: Option<NetTime>,
    /// When something changed last.
    changed: NetTime,
}

/// The reservation of one channel.
#[derive(Debug)]
struct ChannelReservation {
    status: ReservationStatus,
    listeners: Vec<ListenerEntry>,
    worst_case: Option<Span>,
    lost: u32,
    is_complete: bool,
    is_decided: bool,
}

/// How it stands at one listener.
#[derive(Debug)]
struct ListenerEntry {
    status: ListenerReservation,
    /// It is on the talker's own host, which asks for nothing: it gets what others asked for.
    is_own: bool,
    /// The ports of its path.
    path: Vec<PortId>,
    ready: Option<Span>,
}

impl Reservations {
    /// Nothing is reserved: closes the hops of all protected channels.
    pub(crate) fn new(system: &System, plan: &Plan, routes: &mut Routes) -> Self {
        let is_protected =
            |flow: u32| plan.channels.get(flow as usize).is_some_and(|c| c.protected);
        let mut hops = vec![Vec::new(); plan.channels.len()];
        for (at, hop) in routes.hops.iter_mut().enumerate().filter(|(_, h)| is_protected(h.flow)) {
            hop.is_closed = true;
            hops[hop.flow as usize].push((PortId(hop.port), at as u32));
        }
        let channel = |id: ChannelId| {
            let (channel, planned) = (system.channel(id), plan.channel(id));
            let listener = |(path, host): (&Vec<PortId>, &NodeId)| ListenerEntry {
                status: match *host == channel.talker {
                    true => ListenerReservation::Ready,
                    false => ListenerReservation::NoTalker,
                },
                is_own: *host == channel.talker,
                path: path.clone(),
                ready: None,
            };
            planned.protected.then(|| ChannelReservation {
                status: ReservationStatus::Advertised,
                listeners: planned.paths.iter().zip(&channel.listeners).map(listener).collect(),
                worst_case: crate::srp::worst_case(system, plan, id),
                lost: 0,
                is_complete: false,
                is_decided: false,
            })
        };
        let channels: Vec<_> =
            (0..plan.channels.len() as u32).map(ChannelId).map(channel).collect();
        let undecided = channels.iter().flatten().count();
        let begun = (undecided == 0).then_some(NetTime::ZERO);
        Self { hops, channels, undecided, begun, changed: NetTime::ZERO }
    }

    /// The ports by which a channel's frames leave, and their hops there.
    pub(crate) fn hops(&self, channel: ChannelId) -> &[(PortId, u32)] {
        &self.hops[channel.index()]
    }

    /// A talker is told how its stream stands.
    pub(crate) fn set_status(&mut self, channel: ChannelId, status: ReservationStatus) {
        if let Some(entry) = &mut self.channels[channel.index()] {
            entry.status = status;
        }
    }

    /// A listener is told how a stream stands.
    pub(crate) fn set_listener(
        &mut self,
        channel: ChannelId,
        listener: usize,
        status: ListenerReservation,
    ) {
        if let Some(entry) = &mut self.channels[channel.index()] {
            entry.listeners[listener].status = status;
        }
    }

    /// Looks again at a channel of which something changed now.
    pub(crate) fn look_at(&mut self, now: NetTime, channel: ChannelId, routes: &Routes) {
        // What begins by now does so whatever changes now.
        self.have_begun(now);
        let Some(entry) = &mut self.channels[channel.index()] else { return };
        let (mut is_complete, mut is_decided) = (true, true);
        let mut is_any_ready = false;
        for listener in &mut entry.listeners {
            let is_open = |port: &PortId| {
                let hop = self.hops[channel.index()].iter().find(|(own, _)| own == port);
                hop.is_some_and(|(_, hop)| !routes.hops[*hop as usize].is_closed)
            };
            let is_ready = listener.status == ListenerReservation::Ready;
            let gets_it = is_ready && listener.path.iter().all(is_open);
            let failed = matches!(listener.status, ListenerReservation::Failed(..));
            if gets_it {
                listener.ready.get_or_insert(now - NetTime::ZERO);
            }
            is_any_ready |= gets_it;
            is_complete &= gets_it;
            is_decided &= gets_it || failed || listener.is_own;
        }
        let answered = match entry.status {
            ReservationStatus::Advertised => false,
            ReservationStatus::Ready | ReservationStatus::ReadyFailed => is_any_ready,
            ReservationStatus::AskingFailed => !is_any_ready,
        };
        is_decided &= answered;
        entry.lost += u32::from(entry.is_complete && !is_complete);
        entry.is_complete = is_complete;
        if entry.is_decided != is_decided {
            entry.is_decided = is_decided;
            match is_decided {
                true => self.undecided -= 1,
                false => self.undecided += 1,
            }
        }
        self.changed = now;
        if self.undecided == 0 && self.channels.iter().flatten().all(|entry| entry.is_complete) {
            self.begun.get_or_insert(now);
        }
    }

    /// When talkers begin if nothing changes any more.
    pub(crate) fn begin_at(&self) -> NetTime {
        let latest = NetTime::ZERO + RESERVATION_WAIT;
        let settled = if self.undecided == 0 { self.changed + SETTLING } else { latest };
        self.begun.unwrap_or(settled.min(latest))
    }

    /// Whether talkers may begin: all is decided, or the wait is over.
    pub(crate) fn have_begun(&mut self, now: NetTime) -> bool {
        let begins = self.begin_at();
        if begins <= now {
            self.begun = Some(begins);
        }
        self.begun.is_some()
    }

    /// Whether a flow is a channel with a reservation, or none.
    pub(crate) fn includes(&self, flow: u32) -> bool {
        self.channels.get(flow as usize).is_some_and(Option::is_some)
    }

    /// How all of them went up to now.
    pub(crate) fn observed(&self, now: NetTime) -> ReservationsObserved {
        let observe = |(id, entry): (ChannelId, &Option<ChannelReservation>)| {
            let entry = entry.as_ref()?;
            Some(ReservationObserved {
                channel: id,
                status: entry.status,
                listeners: entry.listeners.iter().map(|l| (l.status, l.ready)).collect(),
                worst_case: entry.worst_case,
                lost: entry.lost,
                is_complete: entry.is_complete,
            })
        };
        let channels = (0..).map(ChannelId).zip(&self.channels).filter_map(observe).collect();
        let begun = Some(self.begin_at()).filter(|begins| *begins <= now);
        ReservationsObserved { begun, channels }
    }
}
