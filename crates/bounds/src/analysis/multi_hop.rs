//! Multi-hop path analysis: a burst that one queue delays reaches the next one spread out.
//!
//! Total flow analysis counts a burst in every queue again. [`crate::fifo`] does better for queues
//! that serve in order, and has bounds in cycles where that has none.

use super::BILLION;
use super::flow::Analysis;
use super::network::SystemFlow;
use super::service::is_whole;
use crate::fifo::{self, Work};
use onbeat_model::plan::Backlog;
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::{BTreeMap, BTreeSet};

/// How much work goes into the paths of all queues together, in steps of [`Work`].
const WORK_MAX: u64 = 125_000_000;

/// Bounds over several hops, beside the delays of single queues.
#[derive(Default)]
pub(crate) struct MultiHop {
    /// Per flow and hop: from release to the last bit's leaving the port, with its gap.
    leaves: BTreeMap<(usize, usize), Span>,
    /// Per port and queue, what may wait at once.
    backlogs: BTreeMap<(usize, usize), Backlog>,
    /// The queues whose paths were not all looked at: that takes too long.
    pub(crate) cut_short: Vec<usize>,
}

impl MultiHop {
    /// What is known of each queue of the network by itself, all its ports together.
    pub(crate) fn new(analysis: &Analysis<'_>) -> Self {
        let mut multi_hop = Self::default();
        let flows = &analysis.network.flows;
        // Frames with windows of their own wait for nobody.
        let network = analysis.network;
        let is_in = |flow: &SystemFlow, queue| flow.queue == queue && !network.has_windows(flow);
        let used = (0..QUEUES).filter(|queue| flows.iter().any(|flow| is_in(flow, *queue)));
        let mut used: Vec<usize> = used.collect();
        let mut left = WORK_MAX;
        // All have the same share, and what others before leave of theirs.
        while let Some(queue) = used.pop() {
            let share = left / (used.len() as u64 + 1);
            let work = Work::new(share);
            multi_hop.add(analysis, queue, &work);
            left -= share - work.left();
            if work.is_short() {
                multi_hop.cut_short.push(queue);
            }
        }
        multi_hop
    }

    pub(crate) fn leaves(&self, f: usize, h: usize) -> Option<Span> {
        self.leaves.get(&(f, h)).copied()
    }

    pub(crate) fn backlog(&self, port: usize, queue: usize) -> Option<Backlog> {
        self.backlogs.get(&(port, queue)).copied()
    }

    fn add(&mut self, analysis: &Analysis<'_>, queue: usize, work: &Work) {
        let flows = &analysis.network.flows;
        let members: Vec<usize> = (0..flows.len()).filter(|f| flows[*f].queue == queue).collect();
        if members.is_empty() || !members.iter().all(|f| is_plain(analysis, &flows[*f])) {
            return;
        }
        let hops = || members.iter().flat_map(|f| &flows[*f].hops);
        let ports: BTreeSet<usize> = hops().map(|hop| hop.port.index()).collect();
        let ports: Vec<usize> =
            ports.into_iter().filter(|port| !is_clear(analysis, (*port, queue))).collect();
        let servers = ports.iter().map(|port| server(analysis, (*port, queue)));
        let Some(servers) = servers.collect::<Option<Vec<_>>>() else { return };
        let mut network = fifo::FifoNetwork { servers, flows: Vec::new() };
        let mut places = Vec::new();
        for &f in &members {
            let Some(parts) = parts(analysis, f, &ports) else { return };
            for (part, hops) in parts {
                places.push((f, hops));
                network.flows.push(part);
            }
        }
        let Ok(Some(bounds)) = network.bounds_within(work) else { return };
        for ((f, hops), bounds) in places.iter().zip(&bounds.hops) {
            for (h, hop) in hops.iter().zip(bounds) {
                self.leaves.insert((*f, *h), hop.total);
            }
        }
        for &f in &members {
            self.add_clear(analysis, f);
        }
        for (port, bits) in ports.iter().zip(&bounds.backlog) {
            let there = analysis.members[&(*port, queue)].iter();
            let shortest = there.map(|(f, _)| flows[*f].arrival.octets[0]).min();
            let shortest = shortest.unwrap_or_default();
            let octets = (bits / (8 * BILLION)) as u64;
            let frames = octets / u64::from(frame::on_wire(shortest).get());
            self.backlogs.insert((*port, queue), Backlog { frames, octets });
        }
    }

    /// What leaves the ports in which nothing waits, behind others.
    fn add_clear(&mut self, analysis: &Analysis<'_>, f: usize) {
        let flow = &analysis.network.flows[f];
        for (h, hop) in flow.hops.iter().enumerate() {
            let Some(from) = hop.from.first() else { continue };
            let Some(before) = self.leaves(f, from.hop) else { continue };
            let rate = analysis.link_rate(hop.port.index());
            let sent = rate.time_for(frame::on_wire(flow.arrival.octets[1]));
            let comes = before + behind(analysis, flow, from.hop, from.travel)[1];
            self.leaves.entry((f, h)).or_insert(comes + sent);
        }
    }
}

/// Whether nothing ever waits at a queue: that is known of it, and not by what is in or behind a
/// cycle; or all comes over one line that is no faster, in frames of one length, and nothing else
/// is there.
fn is_clear(analysis: &Analysis<'_>, place: (usize, usize)) -> bool {
    let members = &analysis.members[&place];
    let waits = members.iter().all(|&(f, h)| analysis.states[f][h].wait == Some(0));
    if waits && !analysis.cyclic.contains(&place) {
        return true;
    }
    let flows = &analysis.network.flows;
    let line = |&(f, h): &(usize, usize)| {
        let from = flows[f].hops[h].from.first()?;
        Some((flows[f].hops[from.hop].port.index(), flows[f].arrival.octets))
    };
    let lines: BTreeSet<_> = members.iter().map(line).collect();
    let mut lines = lines.into_iter();
    let (Some(Some((up, octets))), None) = (lines.next(), lines.next()) else { return false };
    let [line, here] = [up, place.0].map(|port| analysis.link_rate(port));
    // Where times are rounded, twice the rate makes up for it.
    let slower = match is_whole(line) && is_whole(here) {
        true => line <= here,
        false => line.as_bps().saturating_mul(2) <= here.as_bps(),
    };
    let idle = analysis.service(place).is_some_and(|service| service.is_idle());
    octets[0] == octets[1] && slower && idle
}

/// Whether a flow's queues serve in order, what they forward they have whole, and all is known.
fn is_plain(analysis: &Analysis<'_>, flow: &SystemFlow) -> bool {
    let plan = analysis.network.plan;
    let plain = flow.hops.iter().all(|hop| {
        let selection = plan.ports[hop.port.index()].settings.selection[flow.queue];
        !hop.cut_through && hop.from.len() < 2 && selection != Selection::Asynchronous
    });
    plain && !flow.babbles
}

/// The queue of a port as a server: a rate and a latency below what it is served.
fn server(analysis: &Analysis<'_>, place: (usize, usize)) -> Option<fifo::Server> {
    let service = analysis.service(place)?;
    let (mut rate, mut latency) = service.rate_latency()?;
    let line = analysis.link_rate(place.0);
    if !is_whole(line) {
        // What a port is served counts whole nanoseconds, the shorter its frames the more of them
        // are rounding; flows are in bits. The last frame's rounding is an addition.
        let there = analysis.members.get(&place).into_iter().flatten();
        let flows = there.map(|(f, _)| &analysis.network.flows[*f]);
        let shortest = bits(flows.map(|flow| flow.arrival.octets[0]).min()?);
        rate = rate * shortest / (shortest + i128::from(line.as_bps()));
        latency += 1;
    }
    let preemptable = analysis.network.plan.ports[place.0].settings.preemptable;
    let output = match preemptable >> place.1 & 1 {
        0 => fifo::Departure::Packets,
        _ => fifo::Departure::Fragments,
    };
    Some(fifo::Server {
        rate: BitRate::from_bps(u64::try_from(rate).ok()?),
        latency: Span::from_ns(i64::try_from(latency).ok()?),
        link_rate: Some(line),
        output,
    })
}

/// By how much a port is busy longer than until the last octet of a frame, at least.
pub(super) fn gap(rate: BitRate, octets: [Octets; 2]) -> Span {
    let [short, long] = octets.map(|octets| {
        rate.time_for(frame::on_wire(octets)) - rate.time_for(frame::PREAMBLE + octets)
    });
    // Times are rounded up: between these lengths it is no more than a nanosecond shorter.
    if short == long && octets[0] == octets[1] { short } else { short.min(long) - Span::from_ns(1) }
}

/// What a frame occupies of a wire, in nanobits, without any rounding.
fn bits(octets: Octets) -> i128 {
    i128::from(frame::on_wire(octets).get()) * 8 * BILLION
}

/// From the end of a transmission, with its gap, to the next queue.
fn behind(analysis: &Analysis<'_>, flow: &SystemFlow, hop: usize, travel: [Span; 2]) -> [Span; 2] {
    // Behind the last octet only propagation and forwarding remain.
    let rate = analysis.link_rate(flow.hops[hop].port.index());
    let sent = rate.time_for(frame::PREAMBLE + flow.arrival.octets[1]);
    [(travel[1] - sent - gap(rate, flow.arrival.octets)).max(Span::ZERO); 2]
}

/// A part of a flow and the place of a server on its path.
type Served = (usize, usize);

/// A flow in numbers: bits, which are the same on every line. Where times are rounded, last octets
/// may come a nanosecond closer together than their line lets them: that counts as part of the
/// longest frame. It has a part for each of its paths on which anything may wait, and that has none
/// before it; with each part the places of its hops.
fn parts(
    analysis: &Analysis<'_>,
    f: usize,
    ports: &[usize],
) -> Option<Vec<(fifo::Flow, Vec<usize>)>> {
    let flow = &analysis.network.flows[f];
    let [smallest, longest] = flow.arrival.octets.map(bits);
    let served = flow.hops.iter().map(|hop| hop.port.index()).filter(|port| ports.contains(port));
    let rates = served.map(|port| analysis.link_rate(port));
    let rounded = rates.filter(|rate| !is_whole(*rate)).max();
    let largest = longest + rounded.map_or(0, |rate| i128::from(rate.as_bps()));
    let buckets = flow.arrival.buckets(largest).into_iter().map(|(burst, rate)| {
        let rate = BitRate::from_bps(u64::try_from(rate).ok()?);
        Some(fifo::Bucket { burst, rate })
    });
    let arrival = fifo::Curve::new(buckets.collect::<Option<Vec<_>>>()?);
    let mut parts: Vec<(fifo::Flow, Vec<usize>)> = Vec::new();
    // Per hop: the part and place of the last server on the path, and the time from there to the
    // end of the queue behind; from release if there is none.
    let mut ahead: Vec<(Option<Served>, [Span; 2])> = Vec::new();
    for (h, hop) in flow.hops.iter().enumerate() {
        let (server_before, since) = match hop.from.first() {
            None => (None, flow.stack),
            Some(from) => {
                let (before, since) = ahead[from.hop];
                match before {
                    Some((part, at)) if parts[part].1[at] == from.hop => {
                        (before, behind(analysis, flow, from.hop, from.travel))
                    }
                    _ => (before, [since[0] + from.travel[0], since[1] + from.travel[1]]),
                }
            }
        };
        let Ok(server) = ports.binary_search(&hop.port.index()) else {
            ahead.push((server_before, since));
            continue;
        };
        let part = server_before.map_or(parts.len(), |(part, _)| part);
        if server_before.is_none() {
            let (arrival, hops) = (arrival.clone(), Vec::new());
            parts.push((fifo::Flow { arrival, smallest, largest, hops }, Vec::new()));
        }
        let (whole, places) = &mut parts[part];
        let upstream = server_before.map(|(_, at)| at);
        let [earliest, latest] = since;
        whole.hops.push(fifo::Hop { server, upstream, earliest, latest, reshaped: None });
        places.push(h);
        ahead.push((Some((part, places.len() - 1)), [Span::ZERO; 2]));
    }
    Some(parts)
}
