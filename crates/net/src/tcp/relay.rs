//! Bridges, as far as frames of TCP are concerned.

use crate::participant::{Happened, Moment, Outgoing, Participant, Wants};
use onbeat_model::system::NodeKind;
use onbeat_model::time::{NetTime, Span};
use std::collections::BTreeMap;

/// Where the destination port is in a frame without options.
const DESTINATION: usize = 14 + 20 + 2;

/// Passes frames on by their destination ports, which tell flows and directions apart.
#[derive(Debug)]
pub(super) struct Relay {
    forwarding: Span,
    ways: BTreeMap<u16, usize>,
}

impl Relay {
    pub(super) fn new(kind: &NodeKind) -> Self {
        let forwarding = match kind {
            NodeKind::Bridge(bridge) => bridge.forwarding,
            NodeKind::Host(_) => Span::ZERO,
        };
        Self { forwarding, ways: BTreeMap::new() }
    }

    /// Frames to this TCP port leave by that port of the node.
    pub(super) fn add(&mut self, destination: u16, port: usize) {
        self.ways.insert(destination, port);
    }
}

impl Participant for Relay {
    fn handle(&mut self, _: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let Happened::Received { octets, .. } = happened else { return };
        let destination = octets.get(DESTINATION..).and_then(<[u8]>::first_chunk);
        let way = destination.and_then(|port| self.ways.get(&u16::from_be_bytes(*port)));
        if let Some(port) = way {
            let after = self.forwarding;
            wants.send(Outgoing { port: *port, octets: octets.to_vec(), after, token: None });
        }
    }

    fn next(&self) -> NetTime {
        NetTime::MAX
    }
}
