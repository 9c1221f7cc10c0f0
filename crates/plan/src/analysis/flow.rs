//! How long the frames of each stream wait at each port: total flow analysis.

use super::arrival::Arrival;
use super::div_ceil;
use super::service::Service;
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, Class, NodeKind, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};

const UNBOUNDED: Code = Code("OB2004");

/// A wait or jitter beyond this is no bound that anybody could use.
const WAIT_MAX: Span = Span::from_s(3_600);

/// How often waits are recomputed from each other. Where no two ports wait for each other, as in
/// any tree, as many rounds as the longest path has ports suffice, and one to see it.
const ROUNDS_MAX: usize = 10_000;

/// A protected stream on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Whose.
    pub(crate) channel: ChannelId,
    /// In which class.
    pub(crate) class: Class,
    /// One per port of its tree, the talker's first.
    pub(crate) hops: Vec<Hop>,
}

impl Flow {
    /// What happens to it at `port`, which must be one of its tree.
    pub(crate) fn hop(&self, port: PortId) -> &Hop {
        self.hops.iter().find(|h| h.port == port).expect("a port of the tree")
    }
}

/// One stream at one port.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Where it leaves.
    pub(crate) port: PortId,
    /// Position in [`Flow::hops`] of the port before; none at the talker.
    upstream: Option<usize>,
    /// What it brings.
    pub(crate) arrival: Arrival,
    /// By how much the delays before this port differ.
    pub(crate) jitter: Span,
    /// From being queued to the start of its transmission, at most.
    pub(crate) wait: Span,
}

/// Computes every wait and jitter of the protected streams of an admitted plan.
///
/// Waits make jitter, jitter makes bursts, and bursts make waits at the next port: all are
/// recomputed until nothing changes. Where ports wait for each other in a circle, the result is
/// still a bound (Thomas, Le Boudec and Mifdaoui 2019) if there is one.
///
/// # Errors
/// OB2004 for each stream that waits beyond [`WAIT_MAX`] or whose wait still grows after
/// [`ROUNDS_MAX`] rounds.
pub(crate) fn analyse(system: &System, plan: &Plan) -> Result<Vec<Flow>, Vec<Diagnostic>> {
    let mut flows = flows(system, plan);
    let largest_a = largest_a(system, &flows);
    for _ in 0..ROUNDS_MAX {
        let bursts = bursts(&flows, system.ports.len());
        let mut grown = false;
        let mut useless = Vec::new();
        for flow in &mut flows {
            let class = flow.class;
            for at in 0..flow.hops.len() {
                let upstream = flow.hops[at].upstream.map(|up| &flow.hops[up]);
                let jitter = upstream.map(|before| before.jitter + before.wait);
                let hop = &mut flow.hops[at];
                hop.jitter = jitter.unwrap_or(hop.jitter);
                let port = hop.port.index();
                let rate = system.link_of(hop.port).rate;
                let service = Service::new(class, rate, &plan.ports[port], largest_a[port]);
                let before = bursts[port][class_index(class)] - hop.arrival.frame;
                let wait =
                    service.and_then(|s| wait(&s, before)).filter(|_| hop.jitter <= WAIT_MAX);
                let Some(wait) = wait else {
                    useless.push(unbounded(system, flow.channel));
                    break;
                };
                grown |= hop.wait != wait;
                hop.wait = wait;
            }
        }
        if !useless.is_empty() {
            return Err(useless);
        }
        if !grown {
            return Ok(flows);
        }
    }
    Err(flows.iter().map(|flow| unbounded(system, flow.channel)).collect())
}

fn flows(system: &System, plan: &Plan) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (id, channel) in (0..).map(ChannelId).zip(&system.channels) {
        let planned = plan.channel(id);
        if !planned.protected {
            continue;
        }
        let NodeKind::Host(talker) = &system.node(channel.talker).kind else {
            unreachable!("a talker is a host");
        };
        let mut hops: Vec<Hop> = Vec::new();
        for path in &planned.paths {
            let mut upstream = None;
            for &port in path {
                let known = hops.iter().position(|h| h.port == port);
                let at = known.unwrap_or(hops.len());
                if known.is_none() {
                    hops.push(Hop {
                        port,
                        upstream,
                        arrival: Arrival::new(system, channel, port),
                        jitter: talker.stack_tx.max() - talker.stack_tx.min(),
                        wait: Span::ZERO,
                    });
                }
                upstream = Some(at);
            }
        }
        flows.push(Flow { channel: id, class: channel.class, hops });
    }
    flows
}

/// Per port: what the largest class A frame that leaves there occupies of the wire.
fn largest_a(system: &System, flows: &[Flow]) -> Vec<Octets> {
    let mut largest = vec![Octets::default(); system.ports.len()];
    for flow in flows.iter().filter(|f| f.class == Class::A) {
        let wire = frame::on_wire(frame::of_channel(system.channel(flow.channel).size));
        for hop in &flow.hops {
            let port = &mut largest[hop.port.index()];
            *port = wire.max(*port);
        }
    }
    largest
}

/// Per port and class: all bursts together, in nanobits.
fn bursts(flows: &[Flow], ports: usize) -> Vec<[i128; 2]> {
    let mut bursts = vec![[0; 2]; ports];
    for flow in flows {
        for hop in &flow.hops {
            bursts[hop.port.index()][class_index(flow.class)] += hop.arrival.burst(hop.jitter);
        }
    }
    bursts
}

fn class_index(class: Class) -> usize {
    usize::from(class != Class::A)
}

/// The longest wait behind `before` nanobits, if it is a useful bound.
fn wait(service: &Service, before: i128) -> Option<Span> {
    let queued = i64::try_from(div_ceil(before, service.slope)).ok()?;
    let wait = Span::from_ns(service.latency.as_ns().checked_add(queued)?);
    (wait <= WAIT_MAX).then_some(wait)
}

fn unbounded(system: &System, id: ChannelId) -> Diagnostic {
    let channel = system.channel(id);
    let message = format!("no useful bound exists for protected channel `{}`", channel.name);
    Diagnostic::error(UNBOUNDED, message, channel.origin, "may wait longer than an hour").help(
        "lower the jitter of the talkers' `stack_tx` or `burst_messages`, use faster links, or \
         route so that streams do not wait for each other in a circle",
    )
}
