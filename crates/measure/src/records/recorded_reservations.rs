//! Reservations by protocol in a record file.

use super::{Error, Input};
use onbeat_model::reservation::{
    FailureCode, ListenerReservation, ReservationObserved, ReservationStatus, ReservationsObserved,
};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{NetTime, Span};

/// The fewest octets of a channel and of a listener.
const CHANNEL_MIN: usize = 4 + 1 + 1 + 4 + 1 + 4;
const LISTENER_MIN: usize = 1 + 1;

pub(super) fn put(put: &mut impl FnMut(&[u8]), observed: &ReservationsObserved) {
    let count = |count: usize| u32::try_from(count).expect("a system has fewer").to_le_bytes();
    put_time(put, observed.begun.map(NetTime::as_ns));
    put(&count(observed.channels.len()));
    for channel in &observed.channels {
        put(&channel.channel.0.to_le_bytes());
        let status = ReservationStatus::ALL.iter().position(|one| *one == channel.status);
        put(&[status.expect("all are in the list") as u8]);
        put_time(put, channel.worst_case.map(Span::as_ns));
        put(&channel.lost.to_le_bytes());
        put(&[u8::from(channel.is_complete)]);
        put(&count(channel.listeners.len()));
        for (status, ready) in &channel.listeners {
            match status {
                ListenerReservation::NoTalker => put(&[0]),
                ListenerReservation::Advertised => put(&[1]),
                ListenerReservation::Ready => put(&[2]),
                ListenerReservation::Failed(code, node) => {
                    put(&[3, code.0, u8::from(node.is_some())]);
                    node.iter().for_each(|node| put(&node.0.to_le_bytes()));
                }
            }
            put_time(put, ready.map(Span::as_ns));
        }
    }
}

fn put_time(put: &mut impl FnMut(&[u8]), ns: Option<i64>) {
    put(&[u8::from(ns.is_some())]);
    ns.iter().for_each(|ns| put(&ns.to_le_bytes()));
}

const DAMAGED: Error = Error::Value("a reservation");

impl Input<'_> {
    pub(super) fn reservations(&mut self) -> Result<ReservationsObserved, Error> {
        let begun = self.instant()?.map(NetTime::from_ns);
        let count = self.u32()?;
        let count = self.count(count.into(), CHANNEL_MIN)?;
        let channels = (0..count).map(|_| self.reservation()).collect::<Result<_, _>>()?;
        Ok(ReservationsObserved { begun, channels })
    }

    fn reservation(&mut self) -> Result<ReservationObserved, Error> {
        let channel = ChannelId(self.u32()?);
        let [status] = self.octets()?;
        let status = ReservationStatus::ALL.get(usize::from(status)).ok_or(DAMAGED)?;
        let worst_case = self.instant()?.map(Span::from_ns);
        let lost = self.u32()?;
        let is_complete = self.flag("a reservation")?;
        let count = self.u32()?;
        let count = self.count(count.into(), LISTENER_MIN)?;
        let listeners = (0..count).map(|_| self.listener()).collect::<Result<_, _>>()?;
        Ok(ReservationObserved {
            channel,
            status: *status,
            listeners,
            worst_case,
            lost,
            is_complete,
        })
    }

    fn listener(&mut self) -> Result<(ListenerReservation, Option<Span>), Error> {
        let [status] = self.octets()?;
        let status = match status {
            0 => ListenerReservation::NoTalker,
            1 => ListenerReservation::Advertised,
            2 => ListenerReservation::Ready,
            3 => {
                let [code] = self.octets()?;
                let node = match self.flag("a reservation")? {
                    true => Some(NodeId(self.u32()?)),
                    false => None,
                };
                ListenerReservation::Failed(FailureCode(code), node)
            }
            _ => return Err(DAMAGED),
        };
        Ok((status, self.instant()?.map(Span::from_ns)))
    }

    /// A time that is not negative, if there is one.
    fn instant(&mut self) -> Result<Option<i64>, Error> {
        if !self.flag("a reservation")? {
            return Ok(None);
        }
        let ns = self.i64()?;
        if ns < 0 { Err(DAMAGED) } else { Ok(Some(ns)) }
    }
}
