//! What the engine does for protocols on nodes, and for what goes by the clocks that they steer.

use super::{Engine, Output};
use crate::event::{Kind, MAX_INDEX};
use crate::frame::Frame;
use crate::participant::{
    CarriedMessage, ClockAdjustment, Happened, Joining, Member, Moment, NOBODY, Outgoing,
    Participant, Protocols, TOKEN, Wants, token_of, with_token,
};
use crate::payload::PayloadId;
use crate::route::{NextHop, Receiver};
use onbeat_model::observed::{ClockObserved, FlowObserved, Loss};
use onbeat_model::system::{ChannelId, NodeId, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::{Octets, frame};
use std::any::Any;

/// A wake or an alarm at a reading of a clock that a protocol may steer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTimer {
    node: NodeId,
    kind: Kind,
    /// What the clock must read; `None` if it did, and the wake-up delay is passing.
    reading: Option<SyncedTime>,
    /// From then on.
    delay: Span,
}

impl Engine {
    /// Lets protocols take part from the beginning of the run on, up to `until`, without it; to be
    /// called before anything has happened, and once. Nodes whose clocks `steer` names have them
    /// steered; of these it is observed what they do in a run of so long.
    ///
    /// # Panics
    /// When something has happened, a port is asked for that there is not, or a node has the same
    /// protocol twice.
    pub fn join(
        &mut self,
        system: &System,
        joining: Vec<Joining>,
        until: NetTime,
        steer: &[NodeId],
    ) {
        assert!(self.now == NetTime::ZERO && self.processed == 0 && self.protocols.is_none());
        assert!(joining.len() < MAX_INDEX);
        let mut protocols = Box::new(Protocols::new(system, until));
        let classes: Vec<_> = joining.iter().map(|j| usize::from(j.traffic_class)).collect();
        for joining in joining {
            assert!(protocols.member(joining.node, joining.ethertype).is_none(), "it is there");
            for channel in &joining.carries {
                let talker = self.routes.flows[channel.index()].talker;
                assert_eq!(talker, joining.node, "it carries what another node's programs write");
                self.carriers[channel.index()] = Some(protocols.members.len() as u32);
            }
            protocols.add(system, joining);
        }
        for (at, class) in classes.into_iter().enumerate() {
            let Member { node, ethertype, ports, .. } = &protocols.members[at];
            let ends = ports.iter().map(|port| {
                let peer = system.port(system.port(*port).peer).node;
                let heard = protocols.member(peer, *ethertype);
                (*port, NextHop::Neighbour(heard.map_or(NOBODY, |member| member as u32)))
            });
            let count = ports.len() as u32;
            let first = self.routes.add_protocol(*node, class, ends);
            protocols.members[at].hops = (first..first + count).collect();
        }
        assert!(protocols.held.len() < MAX_INDEX);
        self.probes.extend(&self.routes);
        self.sequences.resize(self.routes.flows.len(), 0);
        for node in steer {
            self.clocks.follow(system, *node, until - NetTime::ZERO);
        }
        self.metering = (system.streams.iter().enumerate())
            .filter(|(_, stream)| stream.policing.is_some())
            .map(|(at, stream)| {
                let port = system.node(stream.talker).ports[0];
                (self.channels + at, system.port(system.port(port).peer).node)
            })
            .collect();
        let count = protocols.members.len();
        self.protocols = Some(protocols);
        for member in 0..count {
            self.tell(member, Happened::Timer);
        }
        self.look_at_sources();
    }

    /// For protocols all links are wires of these lengths now, by port, that have no rate: nothing
    /// on them takes time beside it.
    pub(crate) fn set_ideal_wires(&mut self, lengths: Vec<Span>) {
        if let Some(protocols) = &mut self.protocols {
            (protocols.wires, protocols.ideal) = (lengths, true);
        }
    }

    /// Those that take part, in the order in which they joined, as what they are.
    pub fn participants<P: Participant>(&mut self) -> impl Iterator<Item = &mut P> {
        let members = self.protocols.iter_mut().flat_map(|protocols| &mut protocols.members);
        members.filter_map(|member| {
            let any: &mut dyn Any = member.participant.as_mut();
            any.downcast_mut()
        })
    }

    /// Those that take part, out of the engine; the run is over for them.
    pub(crate) fn take_participants(&mut self) -> Vec<(NodeId, Box<dyn Participant>)> {
        let members = self.protocols.take().into_iter().flat_map(|protocols| protocols.members);
        members.map(|member| (member.node, member.participant)).collect()
    }

    /// What a node's copy of the network clock is now: as described, or as a protocol steers it.
    pub fn clock_of(&self, node: NodeId) -> ClockError {
        self.clocks.get(node)
    }

    /// What a node's clock reads, or read, at an instant that is not to come.
    pub fn read_clock(&self, node: NodeId, at: NetTime) -> SyncedTime {
        self.clocks.read(node, at)
    }

    /// What was seen of the clocks that protocols steer, in the order of the nodes.
    pub fn clocks_observed(&self) -> Vec<ClockObserved> {
        self.clocks.observed(self.now)
    }

    /// As [`Engine::wake_at`], when the node's clock reads this from now on.
    pub fn wake_when(&mut self, node: NodeId, reading: SyncedTime, token: u64) {
        let delay = self.delays[node.index()].wakeup.draw();
        self.set_local(LocalTimer { node, kind: Kind::Wake, reading: Some(reading), delay }, token);
    }

    /// As [`Engine::alarm`], when the node's clock reads this from now on.
    pub fn alarm_when(&mut self, node: NodeId, reading: SyncedTime, token: u64) {
        let timer =
            LocalTimer { node, kind: Kind::Alarm, reading: Some(reading), delay: Span::ZERO };
        self.set_local(timer, token);
    }

    fn set_local(&mut self, timer: LocalTimer, token: u64) {
        let LocalTimer { node, kind, reading, delay } = timer;
        let at = match reading {
            Some(reading) => self.clocks.get(node).when_from(self.now, reading).max(self.now),
            None => self.now,
        };
        let index = if kind == Kind::Wake { node.0 } else { 0 };
        if !self.clocks.is_steered(node) || reading.is_none() {
            return self.events.push_timer(at + delay, kind, index, token);
        }
        let look = self.clocks.look_at(node, self.now, at);
        self.local_timers.insert(token, timer);
        self.events.push_timer(look, kind, index, token);
    }

    /// A wake or an alarm goes off, unless the clock that it goes by does not read enough yet.
    pub(super) fn go_off(&mut self, token: u64) -> Option<Output> {
        let Some(timer) = self.local_timers.remove(&token) else {
            return Some(Output::Woke { token });
        };
        let reading = timer.reading.filter(|r| self.clocks.get(timer.node).read(self.now) < *r);
        if reading.is_none() && timer.delay == Span::ZERO {
            return Some(Output::Woke { token });
        }
        self.set_local(LocalTimer { reading, ..timer }, token);
        None
    }

    /// The sources of talkers whose clocks are steered, which were asked when they are due by the
    /// clocks as described.
    fn look_at_sources(&mut self) {
        self.source_looks = vec![NetTime::MAX; self.sources.len()];
        for index in 0..self.sources.len() as u32 {
            if self.clocks.is_steered(self.talker_of(index)) {
                self.push_source(index);
            } else {
                self.source_looks[index as usize] = self.sources[index as usize].1.at;
            }
        }
    }

    fn talker_of(&self, source: u32) -> NodeId {
        let flow = self.sources[source as usize].0.flow;
        self.routes.flows[flow as usize].talker
    }

    /// Schedules the frame of a source that is due next.
    pub(super) fn push_source(&mut self, index: u32) {
        let due = self.sources[index as usize].1;
        if self.source_looks.is_empty() {
            return self.events.push(due.at, Kind::Source, index);
        }
        let talker = self.talker_of(index);
        let at = match due.reading.filter(|_| self.clocks.is_steered(talker)) {
            None => due.at,
            Some(reading) => {
                let at = self.clocks.get(talker).when_from(self.now, reading);
                self.clocks.look_at(talker, self.now, at)
            }
        };
        let at = at.max(self.now);
        self.source_looks[index as usize] = at;
        self.events.push(at, Kind::Source, index);
    }

    /// Whether the frame of a source is due now: its event may be out of date, or its talker's
    /// clock not as far as it was expected to be.
    pub(super) fn is_source_due(&mut self, index: u32) -> bool {
        let Some(look) = self.source_looks.get(index as usize) else { return true };
        if *look != self.now {
            return false;
        }
        let (clock, due) = (self.clocks.get(self.talker_of(index)), self.sources[index as usize].1);
        if due.reading.is_some_and(|reading| clock.read(self.now) < reading) {
            self.push_source(index);
            return false;
        }
        true
    }

    /// Tells a participant what has happened, and does what it wants.
    fn tell(&mut self, member: usize, happened: Happened<'_>) {
        let Some(mut protocols) = self.protocols.take() else { return };
        let Protocols { members, wants, until, .. } = &mut *protocols;
        let at = &mut members[member];
        let moment = Moment { now: self.now, clock: self.clocks.get(at.node) };
        let is_timer = matches!(happened, Happened::Timer) && at.due == self.now;
        at.participant.handle(&moment, happened, wants);
        // What wants its timer for ever at one instant would let no time pass.
        let earliest = if is_timer { self.now + Span::from_ns(1) } else { self.now };
        let next = at.participant.next().max(earliest);
        let next = if next < *until { next } else { NetTime::MAX };
        if next != at.due && next < NetTime::MAX {
            self.events.push(next, Kind::Timer, member as u32);
        }
        at.due = next;
        let node = at.node;
        let Wants { frames, adjustment, reservations, messages, lost, dedicated } =
            std::mem::take(wants);
        for frame in frames {
            self.emit(&mut protocols, member, frame);
        }
        self.protocols = Some(protocols);
        dedicated.into_iter().for_each(|action| self.dedicate(member, action));
        messages.into_iter().for_each(|message| self.bring(message));
        for channel in lost {
            let root = self.routes.flows[channel.index()].root;
            self.probes.lose(&self.routes, root, Loss::Overflowed);
        }
        if let Some(adjustment) = adjustment {
            self.adjust_clock(node, adjustment);
        }
        for change in reservations {
            self.change_reservation(node, change);
        }
    }

    /// A program hands a frame to the participant that carries its channel.
    pub(super) fn hand_over(&mut self, member: u32, channel: ChannelId, octets: &[u8]) {
        self.probes.flows[channel.index()].released += 1;
        self.tell(member as usize, Happened::Written { channel, octets });
    }

    /// A participant has a message for a listener.
    fn bring(&mut self, message: CarriedMessage) {
        let is_its =
            |end: &Receiver| end.flow == message.channel.0 && end.listener == message.listener;
        let Some(end) = self.routes.receivers.iter().position(is_its) else { return };
        let flow = &self.routes.flows[message.channel.index()];
        let next = &mut self.sequences[message.channel.index()];
        let sequence = *next;
        *next = next.wrapping_add(1);
        let payload = match self.model_channels {
            true => PayloadId::NONE,
            false => self.payloads.hold(&message.octets),
        };
        let octets = message.octets.len() as u16;
        let frame = Frame { released: message.written, hop: flow.root, payload, sequence, octets };
        let at = self.now + message.after.max(Span::ZERO);
        if self.model_channels {
            return self.probes.receive(&self.routes, end as u32, &frame, at);
        }
        let (at, head) = self.listeners[end].push(at, (frame, message.arrived));
        if head {
            self.events.push(at, Kind::Deliver, end as u32);
        }
    }

    /// What is lost of channels that participants carry: what has neither come nor was given up at
    /// the talker was lost on the way, or is there still.
    pub(super) fn count_carried(&self, flows: &mut [FlowObserved]) {
        let carried = flows.iter_mut().zip(&self.carriers).filter(|(_, by)| by.is_some());
        for (flow, _) in carried {
            for listener in &mut flow.listeners {
                let gone = listener.frames + listener.lost.total();
                let missing = flow.released.saturating_sub(gone);
                listener.lost.faulted += missing;
                flow.faulted += missing;
            }
        }
    }

    /// A participant wants a frame sent.
    fn emit(&mut self, protocols: &mut Protocols, member: usize, frame: Outgoing) {
        let at = self.now + frame.after.max(Span::ZERO);
        if at >= protocols.until {
            return;
        }
        let from = &protocols.members[member];
        let (port, hop) = (from.ports[frame.port], from.hops[frame.port]);
        let held = (hop, frame.octets, frame.token);
        let lane = protocols.lane(member, port);
        let (at, head) = protocols.held[lane as usize].push(at, held);
        if head {
            self.events.push(at, Kind::Emit, lane);
        }
    }

    /// The head of a delay line of a protocol's frames is queued at its port.
    pub(super) fn emit_next(&mut self, lane: u32) {
        let Some(protocols) = &mut self.protocols else { return };
        let ((hop, octets, token), next) = protocols.held[lane as usize].pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Emit, lane);
        }
        let flow = self.routes.hops[hop as usize].flow;
        let length = (octets.len() as u32 + frame::FCS.get()).max(frame::MIN_UNTAGGED.get());
        let payload = self.payloads.hold(&with_token(&octets, token));
        let frame = Frame { hop, ..self.release(flow, length as u16, payload) };
        if self.is_down(self.routes.flows[flow as usize].talker) {
            return self.swallow(frame);
        }
        self.queue(frame);
    }

    /// It is certain when the last octet of a frame of a protocol is out. It started at `begun`.
    pub(super) fn launch_to_neighbour(&mut self, from: u32, frame: Frame, begun: NetTime) {
        let Some(protocols) = &self.protocols else { return };
        let sender = &self.ports[from as usize];
        let wire = protocols.wires[from as usize];
        let (stamp, out) = match protocols.ideal {
            true => (begun, begun),
            false => {
                let preamble = sender.time_for(frame::PREAMBLE);
                let whole = frame::PREAMBLE + Octets::new(frame.octets.into());
                // The last octet of one that was interrupted is out now.
                let out = (begun + sender.time_for(whole)).max(self.now);
                (begun + preamble, out)
            }
        };
        let header = match self.routes.hops[frame.hop as usize].next {
            NextHop::Neighbour(at) if at != NOBODY => protocols.members[at as usize].header,
            _ => None,
        };
        let header = header.map(|octets| (stamp + sender.time_for(octets)).min(out));
        let token = token_of(self.payloads.get(frame.payload));
        let is_lost = self.loses(from, &frame, begun, out + wire);
        let Some(protocols) = &mut self.protocols else { return };
        let lanes = &mut protocols.ports[from as usize];
        if let Some(token) = token {
            let (at, head) = lanes.sent.push(out, (frame.hop, token, stamp));
            if head {
                self.events.push(at, Kind::Sent, from);
            }
        }
        if is_lost {
            return self.swallow(frame);
        }
        if matches!(self.routes.hops[frame.hop as usize].next, NextHop::Neighbour(NOBODY)) {
            return self.payloads.release(frame.payload);
        }
        let (at, head) = lanes.heard.push(out + wire, (frame, stamp + wire));
        if head {
            self.events.push(at, Kind::Hear, from);
        }
        if let Some(at) = header {
            self.payloads.share(frame.payload, 1);
            // That of one that was interrupted is told when it is certain that it comes.
            let (at, head) = lanes.headers.push((at + wire).max(self.now), frame);
            if head {
                self.events.push(at, Kind::Header, from);
            }
        }
    }

    /// A frame of a protocol has left a port.
    pub(super) fn has_left(&mut self, port: u32) {
        let Some(protocols) = &mut self.protocols else { return };
        let ((hop, token, at), next) = protocols.ports[port as usize].sent.pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Sent, port);
        }
        let is_its = |member: &Member| member.hops.contains(&hop);
        let Some(member) = protocols.members.iter().position(is_its) else { return };
        let hops = &protocols.members[member].hops;
        let number = hops.iter().position(|own| *own == hop).unwrap_or_default();
        self.tell(member, Happened::Sent { port: number, token, at });
    }

    /// A neighbour has the header of a frame that a port sends.
    pub(super) fn hear_header(&mut self, from: u32) {
        let Some(protocols) = &mut self.protocols else { return };
        let (frame, next) = protocols.ports[from as usize].headers.pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Header, from);
        }
        self.tell_heard(from, frame, None);
    }

    /// A neighbour has the frame that is first on the wire of a port.
    pub(super) fn hear(&mut self, from: u32) {
        let Some(protocols) = &mut self.protocols else { return };
        let ((frame, stamp), next) = protocols.ports[from as usize].heard.pop();
        if let Some(at) = next {
            self.events.push(at, Kind::Hear, from);
        }
        self.tell_heard(from, frame, Some(stamp));
    }

    /// Tells the participant at the other end of a frame: of all of it, with its stamp, or of its
    /// header.
    fn tell_heard(&mut self, from: u32, frame: Frame, stamp: Option<NetTime>) {
        let Some(protocols) = &mut self.protocols else { return };
        let mut heard = std::mem::take(&mut protocols.heard);
        heard.clear();
        let octets = self.payloads.get(frame.payload);
        let token = token_of(octets);
        heard.extend_from_slice(&octets[TOKEN..]);
        self.payloads.release(frame.payload);
        let member = match self.routes.hops[frame.hop as usize].next {
            NextHop::Neighbour(member) => member as usize,
            _ => unreachable!("only frames for neighbours are here"),
        };
        let port = protocols.members[member].port(protocols.peers[from as usize]);
        let octets = &heard[..];
        self.tell(
            member,
            match stamp {
                Some(at) => Happened::Received { port, token, octets, at },
                None => Happened::Header { port, token, octets },
            },
        );
        if let Some(protocols) = &mut self.protocols {
            protocols.heard = heard;
        }
    }

    /// The timer of a participant goes off, unless it was set again.
    pub(super) fn timer(&mut self, member: u32) {
        let due = self.protocols.as_ref().map(|p| p.members[member as usize].due);
        if due == Some(self.now) {
            self.tell(member as usize, Happened::Timer);
        }
    }

    /// A node's clock is another one from now on, and with it all that goes by it.
    fn adjust_clock(&mut self, node: NodeId, adjustment: ClockAdjustment) {
        if !self.clocks.is_steered(node) {
            return;
        }
        let clock = self.clocks.adjust(self.now, node, adjustment);
        for (flow, at) in &self.metering {
            if let Some(filter) = self.filters[*flow].as_mut().filter(|_| *at == node) {
                filter.set_clock(clock);
            }
        }
        for index in 0..self.sources.len() {
            if self.talker_of(index as u32) == node {
                self.sources[index].0.set_clock(clock);
            }
        }
        for port in 0..self.ports.len() {
            if self.ports[port].node == node && self.ports[port].set_clock(clock) {
                self.select_at(port as u32, self.now);
            }
        }
    }
}
