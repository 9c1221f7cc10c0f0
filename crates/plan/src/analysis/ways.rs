//! Bounds over whole ways: bursts that are held up in one queue come to the next ones spread out.
//!
//! Total flow analysis counts a burst in every queue anew. [`crate::fifo`] does better for queues
//! that serve in order, and has bounds in circles where that has none.

use super::BILLION;
use super::flow::Analysis;
use super::network::Flow;
use super::service::is_whole;
use crate::fifo;
use onbeat_model::plan::Backlog;
use onbeat_model::port::{QUEUES, Selection};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};
use std::collections::BTreeMap;

/// What is known beside the delays of single queues.
#[derive(Default)]
pub(crate) struct Ways {
    /// Per flow and hop: from release to the last bit's leaving the port, with its gap.
    leaves: BTreeMap<(usize, usize), Span>,
    /// Per port and queue, what may wait at once.
    backlogs: BTreeMap<(usize, usize), Backlog>,
}

impl Ways {
    /// What is known of each queue of the network by itself, all its ports together.
    pub(crate) fn new(analysis: &Analysis<'_>) -> Self {
        let mut ways = Self::default();
        (0..QUEUES).for_each(|queue| ways.add(analysis, queue));
        ways
    }

    pub(crate) fn leaves(&self, f: usize, h: usize) -> Option<Span> {
        self.leaves.get(&(f, h)).copied()
    }

    pub(crate) fn backlog(&self, port: usize, queue: usize) -> Option<Backlog> {
        self.backlogs.get(&(port, queue)).copied()
    }

    fn add(&mut self, analysis: &Analysis<'_>, queue: usize) {
        let flows = &analysis.network.flows;
        let members: Vec<usize> = (0..flows.len()).filter(|f| flows[*f].queue == queue).collect();
        if members.is_empty() || !members.iter().all(|f| is_plain(analysis, &flows[*f])) {
            return;
        }
        let mut ports: Vec<usize> = Vec::new();
        let hops = || members.iter().flat_map(|f| &flows[*f].hops);
        hops().for_each(|hop| ports.push(hop.port.index()));
        ports.sort_unstable();
        ports.dedup();
        let servers = ports.iter().map(|port| server(analysis, (*port, queue)));
        let Some(servers) = servers.collect::<Option<Vec<_>>>() else { return };
        let of = |f: &usize| flow(analysis, &flows[*f], &ports);
        let Some(flows_there) = members.iter().map(of).collect::<Option<Vec<_>>>() else { return };
        let network = fifo::Network { servers, flows: flows_there };
        let Ok(Some(bounds)) = network.bounds() else { return };
        for (f, hops) in members.iter().zip(&bounds.hops) {
            for (h, hop) in hops.iter().enumerate() {
                self.leaves.insert((*f, h), hop.total);
            }
        }
        for (port, bits) in ports.iter().zip(&bounds.backlog) {
            let there = members
                .iter()
                .filter(|f| flows[**f].hops.iter().any(|hop| hop.port.index() == *port));
            let shortest = there.map(|f| flows[*f].arrival.octets[0]).min().unwrap_or_default();
            let octets = (bits / (8 * BILLION)) as u64;
            let frames = octets / u64::from(frame::on_wire(shortest).get());
            self.backlogs.insert((*port, queue), Backlog { frames, octets });
        }
    }
}

/// Whether a flow's queues serve in order, what they forward they have whole, and all is known.
fn is_plain(analysis: &Analysis<'_>, flow: &Flow) -> bool {
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
        0 => fifo::Output::Packets,
        _ => fifo::Output::Fragments,
    };
    Some(fifo::Server {
        rate: BitRate::from_bps(u64::try_from(rate).ok()?),
        latency: Span::from_ns(i64::try_from(latency).ok()?),
        line: Some(line),
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

/// A flow in numbers: bits, which are the same on every line. Where times are rounded, last octets
/// may come a nanosecond closer together than their line lets them: that counts as part of the
/// longest frame.
fn flow(analysis: &Analysis<'_>, flow: &Flow, ports: &[usize]) -> Option<fifo::Flow> {
    let [smallest, longest] = flow.arrival.octets.map(bits);
    let rates = flow.hops.iter().map(|hop| analysis.link_rate(hop.port.index()));
    let rounded = rates.filter(|rate| !is_whole(*rate)).max();
    let largest = longest + rounded.map_or(0, |rate| i128::from(rate.as_bps()));
    let buckets = flow.arrival.buckets(largest).into_iter().map(|(burst, rate)| {
        let rate = BitRate::from_bps(u64::try_from(rate).ok()?);
        Some(fifo::Bucket { burst, rate })
    });
    let hops = flow.hops.iter().map(|hop| {
        let server = ports.binary_search(&hop.port.index()).ok()?;
        let Some(from) = hop.from.first() else {
            let [earliest, latest] = flow.stack;
            return Some(fifo::Hop { server, upstream: None, earliest, latest, reshaped: None });
        };
        // Behind the last octet only propagation and forwarding remain; a server has sent the gap
        // as well.
        let rate = analysis.link_rate(flow.hops[from.hop].port.index());
        let sent = rate.time_for(frame::PREAMBLE + flow.arrival.octets[1]);
        let after = (from.travel[1] - sent - gap(rate, flow.arrival.octets)).max(Span::ZERO);
        let upstream = Some(from.hop);
        Some(fifo::Hop { server, upstream, earliest: after, latest: after, reshaped: None })
    });
    let arrival = fifo::Curve::new(buckets.collect::<Option<Vec<_>>>()?);
    Some(fifo::Flow { arrival, smallest, largest, hops: hops.collect::<Option<Vec<_>>>()? })
}
