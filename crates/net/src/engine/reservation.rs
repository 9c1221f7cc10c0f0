//! What the engine does for a protocol that reserves.

use super::Engine;
use crate::frame::Frame;
use crate::reservations::Reservations;
use crate::srp::Change;
use onbeat_model::observed::Loss;
use onbeat_model::plan::Plan;
use onbeat_model::reservation::{RESERVATION_WAIT, ReservationsObserved};
use onbeat_model::system::{Class, NodeId, PortId, System};
use onbeat_model::time::NetTime;
use onbeat_model::units::BitRate;

impl Engine {
    /// Nothing is reserved from now on but what a protocol says: protected channels leave no port,
    /// and the queues of classes A and B have no idleSlope where the plan reserved one.
    pub(crate) fn reserve_by_protocol(&mut self, system: &System, plan: &Plan) {
        for (port, planned) in plan.ports.iter().enumerate() {
            let reserves = planned.class_a_streams + planned.class_b_streams > 0;
            for class in [Class::A, Class::B] {
                if reserves && planned.idle_slope(class) > BitRate::default() {
                    self.set_idle_slope(port, class.queue(), BitRate::default());
                }
            }
        }
        self.reservations = Some(Box::new(Reservations::new(system, plan, &mut self.routes)));
    }

    /// How reservations went that a protocol made; none if none did.
    pub fn reservations_observed(&self) -> Option<ReservationsObserved> {
        self.reservations.as_ref().map(|reservations| reservations.observed(self.now))
    }

    /// What the credit-based shaper of a queue has now; nothing if there is none.
    pub fn idle_slope(&self, port: PortId, queue: usize) -> BitRate {
        self.ports[port.index()].idle_slope(queue)
    }

    /// Lets the network continue until it is decided for each reservation by protocol whether it is
    /// to be had, but not beyond [`RESERVATION_WAIT`] or `limit`. Returns at once if no protocol
    /// reserves. Outputs meanwhile are lost: to be called before programs have begun.
    pub fn await_reservations(&mut self, limit: NetTime) {
        while let Some(next) = self.awaits_reservations(limit) {
            self.advance(next);
        }
    }

    /// While [`Engine::await_reservations`] would wait: until when to advance next.
    pub fn awaits_reservations(&mut self, limit: NetTime) -> Option<NetTime> {
        let limit = limit.min(NetTime::ZERO + RESERVATION_WAIT);
        if self.have_begun() || limit <= self.now {
            return None;
        }
        let begins = self.reservations.as_ref().map_or(limit, |all| all.begin_at());
        Some(self.next_event().unwrap_or(limit).min(begins).min(limit))
    }

    fn have_begun(&mut self) -> bool {
        let now = self.now;
        self.reservations.as_mut().is_none_or(|reservations| reservations.have_begun(now))
    }

    /// Whether the talker of a flow does not send yet, because reservations are undecided.
    pub(super) fn waits_for_reservations(&mut self, flow: u32) -> bool {
        self.reservations.as_ref().is_some_and(|all| all.includes(flow)) && !self.have_begun()
    }

    /// A frame has no reservation at the port that it would leave by.
    pub(super) fn refuse(&mut self, frame: Frame) {
        self.lose_unsent(frame, Loss::Policed);
    }

    fn set_idle_slope(&mut self, port: usize, queue: usize, rate: BitRate) {
        let mut lost = Vec::new();
        let at = &mut self.ports[port];
        let buffer = &mut self.buffers[at.node.index()];
        let chooses = at.set_idle_slope(self.now, queue, rate, (buffer, &mut lost));
        match at.free_at <= self.now {
            _ if !chooses => at.select_at = NetTime::MAX,
            true => self.select_at(port as u32, self.now),
            false => {}
        }
        lost.into_iter().for_each(|frame| self.refuse(frame));
    }

    /// The protocol on a node has decided something.
    pub(super) fn change_reservation(&mut self, node: NodeId, change: Change) {
        let Some(mut reservations) = self.reservations.take() else { return };
        let channel = match change {
            Change::IdleSlope { port, queue, rate } => {
                self.set_idle_slope(port.index(), queue, rate);
                None
            }
            Change::Ports { channel, ports } => {
                for (port, hop) in reservations.hops(channel) {
                    if self.ports[port.index()].node == node {
                        self.routes.hops[*hop as usize].is_closed = !ports.contains(port);
                    }
                }
                Some(channel)
            }
            Change::Talker { channel, status } => {
                reservations.set_status(channel, status);
                Some(channel)
            }
            Change::Listener { channel, listener, status } => {
                reservations.set_listener(channel, listener, status);
                Some(channel)
            }
        };
        if let Some(channel) = channel {
            reservations.look_at(self.now, channel, &self.routes);
        }
        self.reservations = Some(reservations);
    }
}
