//! Total flow analysis: the worst delay of each server from all that comes to it.
//!
//! The delays make jitter, jitter makes bursts, and bursts make delays: all are computed from each
//! other, server by server, until nothing changes.

use super::curve::{Bucket, Curve, ceil};
use super::{Bounds, DELAY_MAX, Departure, FifoNetwork, Flow, Hop, HopBound, Method, Server};
use onbeat_model::time::Span;
use std::collections::BTreeMap;

/// How often delays are recomputed from each other where servers wait for each other in a cycle.
const ITERATIONS_MAX: usize = 10_000;

/// A limit found by another method: the flow enters that hop with this curve or less.
pub(crate) struct Limit {
    pub(crate) flow: usize,
    pub(crate) hop: usize,
    pub(crate) bucket: Bucket,
}

/// A flow at a server: positions of the flow and of its hop.
pub(crate) type At = (usize, usize);

/// The flows at each server.
pub(crate) fn members(network: &FifoNetwork) -> Vec<Vec<At>> {
    let mut members = vec![Vec::new(); network.servers.len()];
    for (flow, of) in network.flows.iter().enumerate() {
        for (hop, at) in of.hops.iter().enumerate() {
            members[at.server].push((flow, hop));
        }
    }
    members
}

/// The servers in an order in which each comes after those that feed it, then those that are in a
/// cycle or behind one; and how many of the first kind there are.
pub(crate) fn order(network: &FifoNetwork) -> (Vec<usize>, usize) {
    let count = network.servers.len();
    let mut edges = vec![std::collections::BTreeSet::new(); count];
    for flow in &network.flows {
        for hop in &flow.hops {
            if let Some(up) = hop.upstream {
                edges[flow.hops[up].server].insert(hop.server);
            }
        }
    }
    let mut feeders = vec![0_usize; count];
    edges.iter().flatten().for_each(|to| feeders[*to] += 1);
    let mut ready: std::collections::BTreeSet<usize> =
        (0..count).filter(|s| feeders[*s] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(server) = ready.pop_first() {
        order.push(server);
        for to in &edges[server] {
            feeders[*to] -= 1;
            if feeders[*to] == 0 {
                ready.insert(*to);
            }
        }
    }
    let sorted = order.len();
    let mut seen = vec![false; count];
    order.iter().for_each(|s| seen[*s] = true);
    order.extend((0..count).filter(|s| !seen[*s]));
    (order, sorted)
}

/// All bounds, or none. `limits` hold besides what is computed here.
pub(crate) fn analyse(network: &FifoNetwork, limits: &[Limit]) -> Option<Bounds> {
    let members = members(network);
    let (order, sorted) = order(network);
    let mut limited: BTreeMap<At, Vec<Bucket>> = BTreeMap::new();
    for limit in limits {
        limited.entry((limit.flow, limit.hop)).or_default().push(limit.bucket);
    }
    let mut states: Vec<Vec<HopBound>> =
        network.flows.iter().map(|f| f.hops.iter().map(|_| start(&f.arrival)).collect()).collect();
    let mut backlog = vec![0; network.servers.len()];
    let mut visit = |server: usize, strict: Span, states: &mut Vec<Vec<HopBound>>| {
        let here = &members[server];
        if here.is_empty() {
            return Some(false);
        }
        for at in here {
            enter(network, *at, &limited, states)?;
        }
        let total = arrivals(network, here, states);
        let of = &network.servers[server];
        let excess = total.excess(of.rate)?;
        let largest = here.iter().map(|(f, _)| network.flows[*f].largest).max()?;
        backlog[server] = total.backlog(of.rate, of.latency)? + whole(of, largest);
        let mut grown = false;
        for (flow, hop) in here {
            let (wait, delay) = delays(of, excess, network.flows[*flow].smallest)?;
            let bound = &mut states[*flow][*hop];
            grown |= bound.delay < delay + strict;
            (bound.wait, bound.delay) = (wait + strict, delay + strict);
            if bound.delay > DELAY_MAX {
                return None;
            }
        }
        Some(grown)
    };
    for server in &order[..sorted] {
        visit(*server, Span::ZERO, &mut states)?;
    }
    // One nanosecond more wherever there is a cycle: the proof needs delays that are strictly
    // greater than what follows from them.
    let strict = Span::from_ns(1);
    for round in 0.. {
        let mut grown = false;
        for server in &order[sorted..] {
            grown |= visit(*server, strict, &mut states)?;
        }
        if !grown {
            break;
        }
        if round == ITERATIONS_MAX {
            return None;
        }
    }
    let mut bounds = Bounds { hops: states, backlog };
    totals(network, &mut bounds)?;
    Some(bounds)
}

/// What is known of a hop before anything was computed.
fn start(arrival: &Curve) -> HopBound {
    let none = Span::ZERO;
    let method = Method::TotalFlow;
    HopBound { arrival: arrival.clone(), wait: none, delay: none, total: none, method }
}

/// Computes what enters a server with one flow from what is known upstream.
fn enter(
    network: &FifoNetwork,
    (flow, hop): At,
    limited: &BTreeMap<At, Vec<Bucket>>,
    states: &mut [Vec<HopBound>],
) -> Option<()> {
    let of = &network.flows[flow];
    let at = &of.hops[hop];
    let mut arrival = match (&at.reshaped, at.upstream) {
        (Some(curve), _) => curve.clone(),
        (None, None) => of.arrival.delayed(at.latest - at.earliest)?,
        (None, Some(up)) => {
            let before = &states[flow][up];
            let jitter = before.delay - least(&network.servers[of.hops[up].server], of.smallest);
            before.arrival.delayed(jitter + at.latest - at.earliest)?
        }
    };
    for bucket in limited.get(&(flow, hop)).into_iter().flatten() {
        arrival = arrival.and(*bucket);
    }
    states[flow][hop].arrival = arrival;
    Some(())
}

/// The curve to which the source or the last regulator before `hop` holds a flow.
pub(crate) fn regulated<'a>(flow: &'a Flow, mut hop: &'a Hop) -> &'a Curve {
    loop {
        match (&hop.reshaped, hop.upstream) {
            (Some(curve), _) => return curve,
            (None, Some(up)) => hop = &flow.hops[up],
            (None, None) => return &flow.arrival,
        }
    }
}

/// The least time from entering a server to leaving it.
pub(crate) fn least(server: &Server, smallest: i128) -> Span {
    match (server.output, server.link_rate) {
        (Departure::Packets | Departure::Fragments, Some(line)) => {
            Span::from_ns(i64::try_from(smallest / i128::from(line.as_bps())).unwrap_or(0))
        }
        _ => Span::ZERO,
    }
}

/// What a server's output adds to an amount of which only whole packets count.
pub(crate) fn whole(server: &Server, largest: i128) -> i128 {
    if server.output == Departure::Bits { 0 } else { largest }
}

/// The longest wait and delay in a server into which `excess` more may come than it carries away.
fn delays(server: &Server, excess: i128, smallest: i128) -> Option<(Span, Span)> {
    let rate = i128::from(server.rate.as_bps());
    let after = |amount| span(ceil(amount, rate)).map(|s| server.latency + s);
    let all = after(excess)?;
    if server.output == Departure::Bits {
        return Some((all, all));
    }
    let wait = after(excess - smallest)?;
    let delay = match (server.output, server.link_rate) {
        (Departure::Packets, Some(line)) => wait + span(ceil(smallest, i128::from(line.as_bps())))?,
        _ => all,
    };
    Some((wait, delay.min(all)))
}

pub(crate) fn span(ns: i128) -> Option<Span> {
    let limit = i128::from(DELAY_MAX.as_ns());
    i64::try_from(ns).ok().filter(|ns| i128::from(*ns) <= limit).map(Span::from_ns)
}

/// The hop over whose line a flow comes to `hop` unchanged: not if a regulator is between.
pub(crate) fn over<'a>(hops: &'a [Hop], hop: &Hop) -> Option<&'a Hop> {
    if hop.reshaped.is_some() { None } else { hop.upstream.map(|up| &hops[up]) }
}

/// The bucket of an input link: how fast the flows of `members` may come over the link of the
/// server `from`, if that link has a rate.
pub(crate) fn input_link(network: &FifoNetwork, from: usize, members: &[At]) -> Option<Bucket> {
    let server = &network.servers[from];
    let rate = server.link_rate?;
    let hop = |(f, h): &At| &network.flows[*f].hops[*h];
    let last = members.iter().map(|at| hop(at).latest).max()?;
    let first = members.iter().map(|at| hop(at).earliest).min()?;
    let largest = members.iter().map(|(f, _)| network.flows[*f].largest).max()?;
    Some(Bucket { burst: whole(server, largest), rate }.delayed(last - first))
}

/// The flows of a server by the line over which they come.
pub(crate) fn groups(network: &FifoNetwork, here: &[At]) -> BTreeMap<Option<usize>, Vec<At>> {
    let mut groups: BTreeMap<Option<usize>, Vec<At>> = BTreeMap::new();
    for (flow, hop) in here {
        let hops = &network.flows[*flow].hops;
        let from = over(hops, &hops[*hop]).map(|up| up.server);
        groups.entry(from).or_default().push((*flow, *hop));
    }
    groups
}

/// All that comes to a server.
fn arrivals(network: &FifoNetwork, here: &[At], states: &[Vec<HopBound>]) -> Curve {
    let groups = groups(network, here);
    let sums: Vec<Curve> = groups
        .iter()
        .map(|(from, group)| {
            let sum = Curve::sum(group.iter().map(|(f, h)| &states[*f][*h].arrival));
            match from.and_then(|from| input_link(network, from, group)) {
                Some(line) => sum.and(line),
                None => sum,
            }
        })
        .collect();
    Curve::sum(&sums)
}

/// Sets each hop's bound from the source as the sum of the delays before it.
pub(crate) fn totals(network: &FifoNetwork, bounds: &mut Bounds) -> Option<()> {
    for (flow, hops) in network.flows.iter().zip(&mut bounds.hops) {
        for (index, hop) in flow.hops.iter().enumerate() {
            let before = hop.upstream.map_or(Span::ZERO, |up| hops[up].total);
            let total = before + hop.latest + hops[index].delay;
            hops[index].total = span(i128::from(total.as_ns()))?;
        }
    }
    Some(())
}
