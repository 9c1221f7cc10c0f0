//! Bridges, as far as frames of stations are concerned.

use super::books::SharedBooks;
use crate::participant::{DedicatedAction, Happened, Moment, Outgoing, Participant, Wants};
use crate::port::time_for;
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::system::PortId;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::VecDeque;

/// Sends each frame out of all ports of the tree but that by which it came.
#[derive(Debug)]
pub(super) struct StationRelay {
    pub(super) forwarding: Span,
    /// Of each port of the node: which one it is, if such frames leave by it.
    pub(super) ports: Vec<Option<PortId>>,
    pub(super) books: SharedBooks,
}

impl Participant for StationRelay {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let mut books = self.books.open();
        match happened {
            Happened::Received { port: entry, token: Some(token), octets, .. } => {
                let (after, since) = (self.forwarding, moment.now + self.forwarding);
                for (port, leaves) in self.ports.iter().enumerate() {
                    let Some(id) = leaves.filter(|_| port != entry) else { continue };
                    books.port(id).queue(token, since, octets.len());
                    let octets = octets.to_vec();
                    wants.send(Outgoing { port, octets, after, token: Some(token) });
                }
            }
            Happened::Sent { port, token, at } => {
                if let Some(Some(id)) = self.ports.get(port) {
                    books.port(*id).leave(token, at);
                }
            }
            Happened::Received { .. }
            | Happened::Header { .. }
            | Happened::Timer
            | Happened::Written { .. } => {}
        }
    }

    fn next(&self) -> NetTime {
        NetTime::MAX
    }
}

/// A bridge whose dedicated path they take. It has one writer at a time: a frame that would begin
/// while that of another port is on it, or an octet behind it, is dropped; no port is warned.
/// Of frames at one instant that of the first port passes.
#[derive(Debug)]
pub(super) struct DedicatedRelay {
    path: DedicatedPath,
    /// Of all links.
    rate: BitRate,
    ports: Vec<Option<PortId>>,
    books: SharedBooks,
    /// What is announced, in the order in which it begins.
    announced: VecDeque<AnnouncedFrame>,
    /// By which port the last frame came, and when its last octet is out.
    last: Option<(usize, NetTime)>,
}

#[derive(Debug)]
struct AnnouncedFrame {
    entry: usize,
    since: NetTime,
    start: NetTime,
    octets: Vec<u8>,
    token: u64,
}

impl DedicatedRelay {
    pub(super) fn new(
        path: DedicatedPath,
        rate: BitRate,
        ports: Vec<Option<PortId>>,
        books: SharedBooks,
    ) -> Self {
        Self { path, rate, ports, books, announced: VecDeque::new(), last: None }
    }

    /// The ports by which a frame leaves that came by `entry`.
    fn leaves(&self, entry: usize) -> impl Iterator<Item = (usize, PortId)> {
        let ports = self.ports.iter().enumerate().filter(move |(port, _)| *port != entry);
        ports.filter_map(|(port, id)| Some((port, (*id)?)))
    }

    /// A frame has come as far as is needed to know that it is a station's: it has the path, or is
    /// dropped.
    fn warn(&mut self, now: NetTime, entry: usize, octets: &[u8], token: u64, wants: &mut Wants) {
        let first = now - time_for(self.rate, DedicatedPath::WARNING);
        let start = first + self.path.start(self.rate);
        let octet = time_for(self.rate, Octets::new(1));
        if self.last.is_some_and(|(port, end)| port != entry && start < end + octet) {
            wants.dedicated.push(DedicatedAction::Collide { port: entry });
            if let Some(id) = self.ports[entry] {
                self.books.open().port(id).observed.dropped += 1;
            }
            return;
        }
        let length = (Octets::new(octets.len() as u32) + frame::FCS).max(frame::MIN_UNTAGGED);
        self.last = Some((entry, start + time_for(self.rate, frame::PREAMBLE + length)));
        let announce = |(port, _)| DedicatedAction::Announce { port, start };
        wants.dedicated.extend(self.leaves(entry).map(announce));
        let octets = octets.to_vec();
        self.announced.push_back(AnnouncedFrame { entry, since: now, start, octets, token });
    }

    /// An announced frame begins.
    fn begin(&mut self, announced: &AnnouncedFrame, wants: &mut Wants) {
        let AnnouncedFrame { entry, since, start, octets, token } = announced;
        let (start, since, token) = (*start, *since, *token);
        let books = self.books.clone();
        let mut books = books.open();
        for (port, id) in self.leaves(*entry) {
            books.port(id).queue(token, start, octets.len());
            let octets = octets.clone();
            wants.dedicated.push(DedicatedAction::Begin { port, since, octets, token });
        }
    }
}

impl Participant for DedicatedRelay {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        match happened {
            Happened::Header { port: entry, token: Some(token), octets } => {
                self.warn(moment.now, entry, octets, token, wants);
            }
            Happened::Timer => {
                while let Some(due) = self.announced.pop_front_if(|it| it.start <= moment.now) {
                    self.begin(&due, wants);
                }
            }
            Happened::Sent { port, token, at } => {
                if let Some(Some(id)) = self.ports.get(port) {
                    self.books.open().port(*id).leave(token, at);
                }
            }
            Happened::Header { .. } | Happened::Received { .. } | Happened::Written { .. } => {}
        }
    }

    fn next(&self) -> NetTime {
        self.announced.front().map_or(NetTime::MAX, |next| next.start)
    }

    fn header(&self) -> Option<Octets> {
        Some(Octets::new(DedicatedPath::WARNING.get() - frame::PREAMBLE.get()))
    }
}
