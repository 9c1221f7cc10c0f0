//! Frames of stations on the dedicated paths of bridges: the relay there says when they begin.

use super::Engine;
use crate::frame::Frame;
use crate::participant::{DedicatedAction, with_token};
use crate::port::Dedicated;
use onbeat_model::observed::Loss;
use onbeat_model::time::NetTime;
use onbeat_model::units::frame;

impl Engine {
    /// Does what a participant wants at one of its ports.
    pub(super) fn dedicate(&mut self, member: usize, action: DedicatedAction) {
        let Some(protocols) = &self.protocols else { return };
        let until = protocols.until;
        let member = &protocols.members[member];
        let port_of = |number: usize| member.ports[number].0;
        match action {
            DedicatedAction::Announce { port, start } => self.announce(port_of(port), start),
            DedicatedAction::Collide { port } => {
                let port = port_of(port);
                self.ports[port as usize].count_collision();
            }
            DedicatedAction::Begin { port, since, octets, token } => {
                let (port, hop) = (port_of(port), member.hops[port]);
                if self.now >= until {
                    return self.withdraw(port, self.now);
                }
                let flow = self.routes.hops[hop as usize].flow;
                let length = octets.len() as u32 + frame::FCS.get();
                let length = length.max(frame::MIN_UNTAGGED.get()) as u16;
                let payload = self.payloads.hold(&with_token(&octets, Some(token)));
                let frame = Frame { hop, ..self.release(flow, length, payload) };
                self.begin_dedicated(port, since, frame);
            }
        }
    }

    /// A port is warned. What it would lose to that is lost now.
    fn announce(&mut self, index: u32, start: NetTime) {
        let port = &mut self.ports[index as usize];
        let buffer = &mut self.buffers[port.node.index()];
        if let Some(frame) = port.announce(self.now, start, buffer) {
            self.probes.lose(&self.routes, frame.hop, Loss::Aborted);
            self.payloads.release(frame.payload);
        }
        self.select_when_free(index);
    }

    fn withdraw(&mut self, index: u32, start: NetTime) {
        self.ports[index as usize].withdraw(start);
        self.select_when_free(index);
    }

    /// What waits at a port is looked at when the port is free.
    fn select_when_free(&mut self, index: u32) {
        let port = &self.ports[index as usize];
        let at = if port.any_waiting() { port.free_at.max(self.now) } else { NetTime::MAX };
        self.select_at(index, at);
    }

    fn begin_dedicated(&mut self, index: u32, since: NetTime, frame: Frame) {
        let port = &mut self.ports[index as usize];
        let node = port.node;
        if self.faults.as_ref().is_some_and(|it| it.holder_fails(node, since, self.now)) {
            self.withdraw(index, self.now);
            return self.swallow(frame);
        }
        match port.dedicate(self.now, frame, &mut self.buffers[node.index()]) {
            Dedicated::Starts => {
                self.see(index, &frame);
                self.launch(index, frame, self.now, self.now);
            }
            Dedicated::Waits => {}
            Dedicated::Refused => {
                self.probes.lose(&self.routes, frame.hop, Loss::Overflowed);
                self.payloads.release(frame.payload);
            }
        }
        self.select_when_free(index);
    }
}
