//! Why a flow has no bound: the first queue on its path where its frames may wait without end, and
//! what is wrong there, or at the queue that this one depends on.

use super::flow::{Analysis, QueueId};
use super::network::Owner;
use onbeat_model::plan::{Cause, Unbounded};
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::system::{CONTROL_QUEUE, NodeKind, PortId};
use onbeat_model::units::{BitRate, Octets};
use std::collections::BTreeSet;

impl Analysis<'_> {
    /// Why a flow has no bound behind one of its hops.
    pub(super) fn reason(&self, f: usize, h: usize) -> Unbounded {
        self.unbounded(f, h, &mut BTreeSet::new())
    }

    fn unbounded(&self, f: usize, h: usize, seen: &mut BTreeSet<QueueId>) -> Unbounded {
        let flow = &self.network.flows[f];
        let h = self.first_without(f, h);
        let place = (flow.hops[h].port.index(), flow.queue);
        if !seen.insert(place) {
            return self.cyclic_dependency(place);
        }
        if let Some(reason) = self.no_limit_of(place, seen) {
            return reason;
        }
        if self.states[f][h].late.is_none() {
            return self.held_for_ever(f, h, seen);
        }
        let Some(service) = self.service(place) else { return self.not_served(place, seen) };
        let comes = self.arrivals(place, 0, Octets::default()).map_or(0, |curve| curve.rate());
        if comes > service.rate() {
            return self.overload(place, comes, service.rate());
        }
        self.diverges(place)
    }

    /// The first hop on the paths to `h` at which a flow has no longest delay.
    fn first_without(&self, f: usize, h: usize) -> usize {
        let hops = &self.network.flows[f].hops;
        let mut before = BTreeSet::from([h]);
        for at in (0..=h).rev() {
            if before.contains(&at) {
                before.extend(hops[at].from.iter().map(|from| from.hop));
            }
        }
        let lacks = |at: &usize| {
            let state = self.states[f][*at];
            state.late.is_none() || state.wait.is_none()
        };
        before.into_iter().find(lacks).unwrap_or(h)
    }

    /// Why there is no limit to what comes to a queue, if there is none.
    fn no_limit_of(&self, place: QueueId, seen: &mut BTreeSet<QueueId>) -> Option<Unbounded> {
        let (port, queue) = place;
        if self.network.unlimited[port][queue] {
            let node = self.network.system.port(PortId(port as u32)).node;
            if self.network.system.node(node).dedicated_path().is_some() {
                let port = self.network.system.port_label(PortId(port as u32));
                let why = format!(
                    "all but frames of stations is best effort at {port}, which a dedicated path \
                     interrupts at any time"
                );
                return Some(at(Cause::UnlimitedTraffic, place, why));
            }
            let what = match queue {
                CONTROL_QUEUE => "frames of the reservation protocol".to_owned(),
                _ => self.unlimited_traffic(port),
            };
            let why = format!("{} also holds {what}, which nothing limits", self.label(place));
            return Some(at(Cause::UnlimitedTraffic, place, why));
        }
        let members = self.members.get(&place).map_or(&[][..], Vec::as_slice);
        let babbles = |f: &usize| {
            let flow = &self.network.flows[*f];
            flow.babbles && (flow.meter.is_none() || flow.hops[0].port.index() == port)
        };
        if let Some(f) = members.iter().map(|(f, _)| *f).find(babbles) {
            let name = self.name(f);
            let why = format!("`{name}` babbles in {}, and no meter holds it", self.label(place));
            return Some(at(Cause::Babbling, place, why));
        }
        let lost = members.iter().find(|(f, h)| self.states[*f][*h].late.is_none());
        let (f, h) = lost?;
        let hop = &self.network.flows[*f].hops[*h];
        let upstream = hop.from.iter().find(|from| self.states[*f][from.hop].wait.is_none())?;
        Some(self.unbounded(*f, upstream.hop, seen))
    }

    /// Why frames that have a longest delay to a port have none until they are eligible there.
    fn held_for_ever(&self, f: usize, h: usize, seen: &mut BTreeSet<QueueId>) -> Unbounded {
        let flow = &self.network.flows[f];
        let place = (flow.hops[h].port.index(), flow.queue);
        if flow.hops[h].regulator.is_none() || !self.is_asynchronous(place) {
            return self.diverges(place);
        }
        for (g, k) in self.group(place, f, h) {
            let hop = &self.network.flows[g].hops[k];
            if let Some(from) = hop.from.iter().find(|from| self.states[g][from.hop].wait.is_none())
            {
                return self.unbounded(g, from.hop, seen);
            }
        }
        let why = format!(
            "the regulators of {} may hold frames without end: the streams do not come in the \
             shape to which they restore them, by a clock of the same rate",
            self.label(place)
        );
        at(Cause::Regulator, place, why)
    }

    /// Why a queue may never be served.
    fn not_served(&self, place: QueueId, seen: &mut BTreeSet<QueueId>) -> Unbounded {
        let (port, queue) = place;
        let settings = &self.network.plan.ports[port].settings;
        if settings.preemptable >> queue & 1 == 1 {
            let by_credit = matches!(settings.selection[queue], Selection::CreditBased { .. });
            if by_credit || self.may_be_stuck(settings) {
                let with = if by_credit { "a credit-based shaper" } else { "gates" };
                let why = format!("{} is preemptable and behind {with}", self.label(place));
                return at(Cause::Preemption, place, why);
            }
        }
        let first = self.network.goes_first(port, queue) & self.beside(place);
        for other in (0..QUEUES).rev().filter(|other| first >> other & 1 == 1) {
            let there = (port, other);
            if let Some(reason) = self.no_limit_of(there, seen) {
                let own = self.label(place);
                let why = format!("{own} waits for others: {}", reason.why);
                return Unbounded { why, ..reason };
            }
            let members = self.members.get(&there).map_or(&[][..], Vec::as_slice);
            if let Some((f, h)) = members.iter().find(|(f, h)| self.states[*f][*h].wait.is_none()) {
                return self.unbounded(*f, *h, seen);
            }
        }
        if settings.gates.is_empty() {
            let why = format!("what goes before {} leaves it nothing", self.label(place));
            return at(Cause::Overload, place, why);
        }
        let octets = self.network.longest[port][queue].get();
        let why = format!(
            "the gate of {} has no window in which a frame of {octets} octets surely fits",
            self.label(place)
        );
        at(Cause::ShortWindows, place, why)
    }

    fn overload(&self, place: QueueId, comes: i128, served: i128) -> Unbounded {
        let rate = |bps: i128| BitRate::from_bps(u64::try_from(bps.max(0)).unwrap_or(u64::MAX));
        let why = format!(
            "{} may get {}, and no more than {} of service is certain",
            self.label(place),
            rate(comes),
            rate(served)
        );
        at(Cause::Overload, place, why)
    }

    fn diverges(&self, place: QueueId) -> Unbounded {
        if self.cyclic.contains(&place) {
            return self.cyclic_dependency(place);
        }
        let why = format!("frames may take longer than an hour to leave {}", self.label(place));
        at(Cause::TooLong, place, why)
    }

    fn cyclic_dependency(&self, place: QueueId) -> Unbounded {
        let why = format!(
            "delays do not settle at {}, which waits for itself around a circle of links",
            self.label(place)
        );
        at(Cause::Circle, place, why)
    }

    /// What there is in the best-effort queue of a port, for a person.
    fn unlimited_traffic(&self, port: usize) -> String {
        let (system, plan) = (self.network.system, self.network.plan);
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        let floods = system.nodes.iter().any(|node| learns(&node.kind));
        let passes = |path: &[PortId]| floods || path.iter().any(|at| at.index() == port);
        let mut noise = system.noise.iter().zip(&plan.noise).filter(|(_, path)| passes(path));
        let crosses = |paths: &[Vec<PortId>; 2]| paths.iter().flatten().any(|p| p.index() == port);
        let mut tcp = system.tcp.iter().zip(&plan.tcp).filter(|(_, paths)| crosses(paths));
        match noise.next() {
            Some((noise, _)) => format!("noise `{}`", noise.name),
            None if floods => "best effort that bridges flood".to_owned(),
            None if let Some((flow, _)) = tcp.next() => format!("TCP flow `{}`", flow.name),
            None => "best effort that the description does not know".to_owned(),
        }
    }

    fn label(&self, (port, queue): QueueId) -> String {
        format!("queue {queue} of {}", self.network.system.port_label(PortId(port as u32)))
    }

    fn name(&self, f: usize) -> &str {
        let system = self.network.system;
        match self.network.flows[f].owner {
            Owner::Channel(id) => &system.channel(id).name,
            Owner::Stream(id) => &system.streams[id.index()].name,
        }
    }
}

fn at(cause: Cause, (port, queue): QueueId, why: String) -> Unbounded {
    Unbounded { cause, port: PortId(port as u32), queue: queue as u8, why }
}
