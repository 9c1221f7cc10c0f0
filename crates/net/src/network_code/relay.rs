//! Bridges, as far as frames of stations are concerned.

use super::books::SharedBooks;
use crate::participant::{Happened, Moment, Outgoing, Participant, Wants};
use onbeat_model::system::PortId;
use onbeat_model::time::{NetTime, Span};

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
