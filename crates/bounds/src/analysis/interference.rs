//! What comes to a queue, and what interferes there: from the settings of its port to its service.

use super::arrival::{Arrival, clock_rate, in_true_time};
use super::curve::Curve;
use super::flow::{Analysis, INTERRUPTION, QueueId, UNINTERRUPTIBLE};
use super::gates::{self, Accrual, Availability, Losses};
use super::service::{Service, is_whole, rounded_up};
use super::{BILLION, div_ceil};
use onbeat_model::port::{GateControl, PortSettings, QUEUES, Selection};
use onbeat_model::system::PortId;
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::BTreeMap;

/// The flows that come to a queue over one line.
#[derive(Default)]
struct Group {
    curves: Vec<Curve>,
    longest: i128,
    swells: Swells,
    /// Whether any of them is cut through, and whether any is stored.
    cut: bool,
    stored: bool,
}

/// By how much amounts are larger here than their octets, in 10⁻⁹.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Swells(i128);

impl Swells {
    fn of(self, amount: i128) -> i128 {
        amount + div_ceil(amount * self.0, BILLION)
    }
}

impl Analysis<'_> {
    fn settings(&self, port: usize) -> &PortSettings {
        &self.network.plan.ports[port].settings
    }

    pub(super) fn link_rate(&self, port: usize) -> BitRate {
        self.network.system.link_of(PortId(port as u32)).rate
    }

    /// What a flow's shortest (0) or longest (1) frame occupies of a port's wire.
    pub(super) fn frame_at(&self, f: usize, port: usize, which: usize, extra: Octets) -> i128 {
        let octets = self.network.flows[f].arrival.octets[which];
        let rate = self.link_rate(port);
        // The frame and both fragments of the other take whole nanoseconds each.
        let rounded = extra != Octets::default() && !is_whole(rate);
        let rounding = if rounded { 2 * i128::from(rate.as_bps()) } else { 0 };
        Arrival::on_wire(rate, octets, extra) + rounding
    }

    /// What each frame of a queue may cost its port beside itself: the interruption of another.
    fn extra(&self, (port, queue): QueueId) -> Octets {
        let preemptable = self.settings(port).preemptable;
        let interrupts = preemptable != 0 && preemptable >> queue & 1 == 0;
        if interrupts { INTERRUPTION } else { Octets::default() }
    }

    /// What comes to a queue and is eligible, in windows that are longer by `shift`. None: there
    /// is no limit.
    pub(super) fn arrivals(&self, place: QueueId, shift: i128, extra: Octets) -> Option<Curve> {
        let members = self.members.get(&place).map_or(&[][..], Vec::as_slice);
        self.arrivals_of(members, place, shift, extra)
    }

    /// The same of some of those that come there.
    pub(super) fn arrivals_of(
        &self,
        members: &[(usize, usize)],
        place: QueueId,
        shift: i128,
        extra: Octets,
    ) -> Option<Curve> {
        if self.network.unlimited[place.0][place.1] {
            return None;
        }
        let mut groups: BTreeMap<Option<usize>, Group> = BTreeMap::new();
        for &(f, h) in members {
            let flow = &self.network.flows[f];
            let upstream = match &flow.hops[h].from[..] {
                [from] if !self.is_asynchronous(place) => Some(flow.hops[from.hop].port.index()),
                _ => None,
            };
            let group = groups.entry(upstream).or_default();
            let cut = matches!(&flow.hops[h].from[..], [from] if flow.hops[from.hop].cut_through);
            group.cut |= cut;
            group.stored |= !cut;
            group.longest = group.longest.max(self.frame_at(f, place.0, 1, extra));
            group.swells = group.swells.max(self.swells(f, place.0, extra));
            group.curves.push(self.curve_of(f, h, shift, extra)?);
        }
        let shaped = groups.iter().map(|(upstream, group)| match upstream {
            Some(upstream) => self.input_link(place, *upstream, shift, group),
            None => Curve::sum(group.curves.iter()),
        });
        Some(Curve::sum(shaped.collect::<Vec<_>>().iter()))
    }

    /// By how much a flow's frames occupy more of a port's wire than their octets, as times are
    /// whole nanoseconds and each may cost `extra`: the shortest ones the most.
    fn swells(&self, f: usize, port: usize, extra: Octets) -> Swells {
        let shortest = self.network.flows[f].arrival.octets[0];
        let octets = i128::from(frame::on_wire(shortest).get()) * 8 * BILLION;
        let here = self.frame_at(f, port, 0, extra);
        Swells(div_ceil((here - octets) * BILLION, octets))
    }

    /// One flow at one hop.
    fn curve_of(&self, f: usize, h: usize, shift: i128, extra: Octets) -> Option<Curve> {
        let flow = &self.network.flows[f];
        let state = self.states[f][h];
        let port = flow.hops[h].port.index();
        let frame = self.frame_at(f, port, 1, extra);
        if flow.babbles && h == 0 {
            return None;
        }
        let late = state.late?;
        let jitter = late - state.early + shift;
        let mut curve = if self.cyclic.contains(&(port, flow.queue)) {
            // Only what is concave in the jitter may grow from itself ('docs/bounds.md').
            let (burst, rate) = flow.arrival.bucket(frame, jitter);
            Curve::affine(burst, rate)
        } else {
            flow.arrival.curve(frame, jitter)
        };
        let swells = self.swells(f, port, extra);
        if let Some(meter) = flow.meter.filter(|_| h > 0) {
            // It stands where the first bridge receives, so its clock is that of its next ports.
            let first = flow.hops.iter().find(|hop| !hop.from.is_empty()).map(|hop| hop.port);
            let first = first.unwrap_or(flow.hops[h].port);
            let (burst, rate) = in_true_time(self.network.system, meter, first, true);
            curve = curve.min_affine(swells.of(burst + rate * jitter), swells.of(rate));
        }
        // The last regulator on the path, and by how much delays since may differ.
        let mut at = Some(h);
        while let Some(k) = at {
            let regulated = (flow.hops[k].port.index(), flow.queue);
            if let Some(bucket) = flow.hops[k].regulator.filter(|_| self.is_asynchronous(regulated))
            {
                let then = self.states[f][k];
                let since = (late - then.late?) - (state.early - then.early);
                let (burst, rate) =
                    in_true_time(self.network.system, bucket, flow.hops[k].port, true);
                let later = since.max(0) + shift;
                return Some(curve.min_affine(swells.of(burst + rate * later), swells.of(rate)));
            }
            at = match &flow.hops[k].from[..] {
                [from] => Some(from.hop),
                _ => None,
            };
        }
        Some(curve)
    }

    /// What comes over one line comes no faster than it carries, nor than the credit of the shaper
    /// at its other end allows.
    fn input_link(&self, place: QueueId, up: usize, shift: i128, group: &Group) -> Curve {
        let Group { curves, longest, swells, .. } = group;
        let line = i128::from(self.link_rate(up).as_bps());
        let rate = swells.of(line);
        // Last octets may be a rounded nanosecond closer together than starts.
        let shift = shift + i128::from(!is_whole(self.link_rate(up)));
        // One that is cut through comes closer to a stored one before it than the line lets it.
        let burst = if group.cut && group.stored { 2 * longest } else { *longest };
        let shaped = Curve::sum(curves.iter()).min_affine(burst + rate * shift, rate);
        let up = (up, place.1);
        let (Some(Some(accrual)), Some(credit)) = (self.accrual(up), self.credit.get(&up)) else {
            return shaped;
        };
        let (slope, more) = accrual.most;
        let (slope, credit) = (swells.of(slope), swells.of(*credit + more));
        // From start to start credit pays; two ends may be closer by a transmission time.
        let closer = div_ceil(*longest, line);
        shaped.min_affine(credit + longest + slope * (closer + shift), slope)
    }

    /// What a queue is served. None: there is no limit to how long it may wait.
    pub(crate) fn service(&self, place: QueueId) -> Option<Service> {
        let (port, queue) = place;
        if self.network.unlimited[port][queue] {
            return None;
        }
        let settings = self.settings(port);
        let express = settings.preemptable >> queue & 1 == 0;
        let gated = !settings.gates.is_empty();
        let shaped = matches!(settings.selection[queue], Selection::CreditBased { .. });
        if !express && (shaped || self.may_be_stuck(settings)) {
            return None;
        }
        let beside = self.beside(place);
        let higher = self.network.goes_first(port, queue);
        let (first, lower) = (higher & beside, !(higher | 1 << queue) & beside);
        let low = self.longest_of(port, lower, express);
        let own = self.wire(port, self.network.longest[port][queue]);
        let (mut ahead, mut credits, mut slopes) = (Vec::new(), 0, 0);
        for other in (0..QUEUES).filter(|other| first >> other & 1 == 1) {
            let there = (port, other);
            match settings.selection[other] {
                Selection::CreditBased { idle_slope } if !gated && express && other > queue => {
                    let slope = rounded_up(idle_slope.as_bps().into(), self.link_rate(port));
                    let frame = self.wire(port, self.network.longest[port][other]);
                    let rate = i128::from(self.link_rate(port).as_bps());
                    if frame > 0 {
                        slopes += slope;
                        let real = i128::from(idle_slope.as_bps());
                        credits += div_ceil(frame * (rate - real).max(0), rate);
                    }
                }
                _ => {
                    // What waited there when this queue's backlog began goes first as well.
                    let by_credit =
                        matches!(settings.selection[other], Selection::CreditBased { .. });
                    let waited = shaped || gated || by_credit || other < queue;
                    let shift = if waited { self.longest_stay(there)? } else { 0 };
                    ahead.push(self.arrivals(there, shift, self.extra(there))?);
                }
            }
        }
        let mut ahead = Curve::sum(ahead.iter());
        let rate = i128::from(self.link_rate(port).as_bps());
        let mut blocking = low;
        if slopes > 0 {
            let (burst, others) = ahead.bucket();
            let left = rate - others;
            let gathered = (low.max(own) + burst) * slopes;
            blocking = blocking.max(div_ceil(gathered, Some(left).filter(|left| *left > 0)?));
        }
        blocking += credits;
        ahead = Curve::sum([&ahead, &Curve::affine(0, slopes)].into_iter());
        let (capacity, own_slope) = self.capacity(place, first, low, own)?;
        let interrupted = !express;
        Some(Service {
            capacity,
            blocking,
            ahead,
            shaped: own_slope,
            gated,
            interrupted,
            wire: rate,
        })
    }

    /// The queues whose frames may be on the wire while a queue's gate is open: none that never
    /// has its own open then, if frames end before their gates close.
    pub(super) fn beside(&self, place: QueueId) -> u8 {
        let (port, queue) = place;
        // In windows of its own nothing interferes, unless they begin late.
        if self.own_windows(place).is_some_and(|list| self.first_cycle(port, list) <= 0) {
            return 0;
        }
        let settings = self.settings(port);
        match &settings.gates[..] {
            // What is left of an interrupted frame may come after its gate closed.
            _ if settings.preemptable != 0 => u8::MAX,
            [list] if list.length_aware && self.first_cycle(port, list) <= 0 => {
                gates::open_with(list, queue)
            }
            _ => u8::MAX,
        }
    }

    /// Whether an interrupted frame may have to wait for a gate while others of the preemptable
    /// ones, which must not overtake it, could go.
    pub(super) fn may_be_stuck(&self, settings: &PortSettings) -> bool {
        let preemptable = (0..QUEUES).filter(|q| settings.preemptable >> q & 1 == 1);
        preemptable.into_iter().any(|q| !gates::always_open(settings, q))
    }

    fn wire(&self, port: usize, octets: Octets) -> i128 {
        match octets.get() {
            0 => 0,
            _ => Arrival::on_wire(self.link_rate(port), octets, Octets::default()),
        }
    }

    /// What the longest frame of some queues keeps the wire for, if it may be interrupted or not.
    fn longest_of(&self, port: usize, queues: u8, interrupts: bool) -> i128 {
        let preemptable = self.settings(port).preemptable;
        let whole = i128::from(self.link_rate(port).as_bps())
            * i128::from(self.link_rate(port).time_for(UNINTERRUPTIBLE).as_ns());
        let each = (0..QUEUES).filter(|q| queues >> q & 1 == 1).map(|q| {
            let frame = self.wire(port, self.network.longest[port][q]);
            let cut = interrupts && preemptable >> q & 1 == 1;
            if cut { frame.min(whole) } else { frame }
        });
        each.max().unwrap_or(0)
    }

    /// The longest that a frame is in a queue before its transmission starts.
    fn longest_stay(&self, place: QueueId) -> Option<i128> {
        let members = self.members.get(&place).map_or(&[][..], Vec::as_slice);
        members.iter().map(|&(f, h)| self.states[f][h].wait).try_fold(0, |a, b| Some(a.max(b?)))
    }

    /// The wire that is there for a queue, and what its credit allows.
    #[expect(clippy::type_complexity, reason = "two rates with their latencies")]
    fn capacity(
        &self,
        (port, queue): QueueId,
        first: u8,
        low: i128,
        own: i128,
    ) -> Option<((i128, i128), Option<(i128, i128)>)> {
        let settings = self.settings(port);
        let system = self.network.system;
        let clock = &system.node(system.ports[port].node).clock;
        let rate = i128::from(self.link_rate(port).as_bps());
        // Frames take true time, windows are kept by the clock.
        let (clock_rate, apart) = clock_rate(clock);
        let time = |amount: i128| {
            if amount == 0 {
                0
            } else {
                div_ceil(div_ceil(amount, rate) * clock_rate, BILLION) + apart
            }
        };
        let others = !(1u8 << queue);
        let longest_other = self.longest_of(port, others, false);
        let part = self.own_windows((port, queue)).and_then(|_| self.parts((port, queue)));
        let part = part.map(|(part, _)| (part, clock_rate));
        let losses = |list: &GateControl| {
            let change = time(longest_other) + time(own);
            // Others may start what is still on the wire when the first cycle begins.
            let late = self.first_cycle(port, list) > 0 && longest_other > 0 && part.is_some();
            let begin = if late { change } else { 0 };
            if list.length_aware {
                let overhangs = gates::overhangs(list, queue, others & !first);
                Losses {
                    start: if overhangs { time(low) } else { 0 },
                    end: time(own),
                    change,
                    begin,
                    part,
                }
            } else {
                let end = i128::from(apart > 0);
                Losses { start: time(longest_other), end, change, begin, part: None }
            }
        };
        let usable = Availability::new(&settings.gates, queue, clock, losses)?;
        let capacity = (rate * usable.open / usable.cycle, usable.latency);
        let slope = match self.accrual((port, queue)) {
            None => None,
            Some(accrual) => Some(accrual?.least),
        };
        Some((capacity, slope))
    }

    /// What idleSlope gives to a queue that has one. Some(None): nothing, perhaps never.
    pub(super) fn accrual(&self, (port, queue): QueueId) -> Option<Option<Accrual>> {
        let settings = self.settings(port);
        let Selection::CreditBased { idle_slope } = settings.selection[queue] else {
            return None;
        };
        let system = self.network.system;
        let clock = &system.node(system.ports[port].node).clock;
        let [slope, wire] = [idle_slope, self.link_rate(port)].map(|rate| rate.as_bps().into());
        Some(Accrual::new(settings, queue, clock, slope, wire))
    }
}
