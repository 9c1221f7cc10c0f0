//! Whether a schedule keeps the rules of `Placed`. It lays everything down over a hyperperiod and
//! shares nothing with the synthesis but its types.

use onbeat_bounds::synthesis::{
    GateList, Network, Obstacle, PeriodicFlow, Placed, Refusal, Waiting,
};
use std::collections::BTreeMap;

/// What is laid down over one hyperperiod: begin, end, whose.
type Laid = Vec<(i128, i128, String)>;

fn ns(span: onbeat_model::time::Span) -> i128 {
    span.as_ns().into()
}

fn common(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// By port, the time after which all windows there repeat.
fn cycles(flows: &[PeriodicFlow]) -> BTreeMap<usize, i128> {
    let mut cycles = BTreeMap::new();
    for flow in flows {
        for hop in &flow.hops {
            let cycle = cycles.entry(hop.port).or_insert(1);
            *cycle = common(*cycle, ns(flow.period));
        }
    }
    cycles
}

fn window(network: &Network, hop: &onbeat_bounds::synthesis::FlowHop) -> i128 {
    let tick = ns(network.ports[hop.port].tick);
    let mut window = 0;
    while window < ns(hop.occupies) {
        let lacks = ns(hop.occupies) - window;
        window += if lacks > 1_000 * tick { lacks / tick * tick } else { tick };
    }
    window
}

/// Lays an interval down in each period of a cycle; what reaches beyond its end continues at
/// its begin.
fn lay(laid: &mut Laid, (begin, length): (i128, i128), period: i128, cycle: i128, whose: &str) {
    let mut at = begin % period;
    if at < 0 {
        at += period;
    }
    while at < cycle {
        let end = at + length;
        laid.push((at, end.min(cycle), whose.to_owned()));
        if end > cycle {
            laid.push((0, end - cycle, whose.to_owned()));
        }
        at += period;
    }
}

/// Two that overlap, if any do.
fn overlap(laid: &mut Laid) -> Option<String> {
    laid.sort();
    let mut last: Option<&(i128, i128, String)> = None;
    for one in laid.iter() {
        if let Some(before) = last.filter(|before| before.1 > one.0) {
            return Some(format!("{before:?} and {one:?}"));
        }
        last = Some(one);
    }
    None
}

/// From when to when a frame is queued at a hop.
fn queued(network: &Network, flow: &PeriodicFlow, placed: &Placed, hop: usize) -> [i128; 2] {
    let this = &flow.hops[hop];
    if this.after.is_none() {
        return flow.ready.map(|ready| ns(placed.release) + ns(ready));
    }
    // By each way: with all others gone, it is the only one.
    let by = ways(flow, hop).into_iter().map(|before| {
        let (from, own) = (&network.ports[flow.hops[before].port], &network.ports[this.port]);
        let left = ns(placed.starts[before]) + ns(flow.hops[before].sent);
        let apart = ns(from.clock_error) + ns(own.clock_error);
        [left + ns(from.latency[0]) - apart, left + ns(from.latency[1]) + apart]
    });
    let by: Vec<_> = by.collect();
    let early = by.iter().map(|by| by[0]).min().expect("a way");
    let late = by.iter().map(|by| by[1]).max().expect("a way");
    [early, late]
}

/// All hops right before one.
fn ways(flow: &PeriodicFlow, hop: usize) -> Vec<usize> {
    let others = flow.joins.iter().filter(|join| join.hop == hop).map(|join| join.before);
    flow.hops[hop].after.into_iter().chain(others).collect()
}

/// Rules 1, 2, 3 and 6 of one flow.
fn alone(
    network: &Network,
    flow: &PeriodicFlow,
    placed: &Placed,
    waiting: Waiting,
) -> Result<(), String> {
    let least = flow.hops.iter().map(|hop| network.ports[hop.port].queues).min().unwrap_or(0);
    if placed.queue >= least {
        return Err(format!("rule 5: queue {} of {least}", placed.queue));
    }
    if !(0..ns(flow.period)).contains(&ns(placed.release)) {
        return Err(format!("rule 2: released at {}", placed.release));
    }
    if flow.release.is_some_and(|release| release != placed.release) {
        return Err(format!("rule 2: released at {}", placed.release));
    }
    for (at, hop) in flow.hops.iter().enumerate() {
        let (port, start) = (&network.ports[hop.port], ns(placed.starts[at]));
        let tick = ns(port.tick);
        if start % tick != 0 || ns(flow.period) % tick != 0 {
            return Err(format!("rule 1: hop {at} starts at {start} in {}", flow.period));
        }
        let [_, late] = queued(network, flow, placed, at);
        let rule = if hop.after.is_none() { 2 } else { 3 };
        if start < late {
            return Err(format!("rule {rule}: hop {at} starts at {start}, queued at {late}"));
        }
        if waiting == Waiting::None && start - late >= tick {
            return Err(format!("rule {rule}: hop {at} waits from {late} to {start}"));
        }
        if (0..flow.hops.len()).any(|other| ways(flow, other).contains(&at)) {
            continue;
        }
        let error = ns(port.clock_error);
        let talker = ns(network.ports[flow.hops[0].port].clock_error);
        let late = start + ns(hop.sent) + ns(port.latency[1]) + error + talker;
        if late - ns(placed.release) > ns(flow.deadline) {
            return Err(format!("rule 6: received at {late}, released at {}", placed.release));
        }
        let varies = ns(port.latency[1]) - ns(port.latency[0]) + 2 * error;
        if flow.jitter.is_some_and(|jitter| varies > ns(jitter)) {
            return Err(format!("rule 6: receipts vary by {varies}"));
        }
    }
    Ok(())
}

/// Whether a schedule keeps all rules but that of the gate control lists' length.
pub(crate) fn check(
    network: &Network,
    flows: &[PeriodicFlow],
    placed: &[Placed],
    waiting: Waiting,
) -> Result<(), String> {
    if flows.len() != placed.len() {
        return Err(format!("{} of {} flows are placed", placed.len(), flows.len()));
    }
    let cycles = cycles(flows);
    let mut windows: BTreeMap<usize, Laid> = BTreeMap::new();
    let mut queues: BTreeMap<(usize, u8), Laid> = BTreeMap::new();
    for (number, (flow, placed)) in flows.iter().zip(placed).enumerate() {
        alone(network, flow, placed, waiting).map_err(|why| format!("flow {number}: {why}"))?;
        for (at, hop) in flow.hops.iter().enumerate() {
            let (period, cycle) = (ns(flow.period), cycles[&hop.port]);
            let (start, window) = (ns(placed.starts[at]), window(network, hop));
            let whose = format!("flow {number}");
            lay(windows.entry(hop.port).or_default(), (start, window), period, cycle, &whose);
            let [early, _] = queued(network, flow, placed, at);
            let length = start + window - early;
            if length > period {
                return Err(format!("rule 5: {whose} meets itself at port {}", hop.port));
            }
            let queue = queues.entry((hop.port, placed.queue)).or_default();
            lay(queue, (early, length), period, cycle, &whose);
        }
    }
    for (port, laid) in &mut windows {
        if let Some(both) = overlap(laid) {
            return Err(format!("rule 4: at port {port} {both}"));
        }
    }
    for (place, laid) in &mut queues {
        if let Some(both) = overlap(laid) {
            return Err(format!("rule 5: in port and queue {place:?} {both}"));
        }
    }
    Ok(())
}

/// Whether a gate control list opens the windows of a port, and nothing else.
pub(crate) fn check_gates(
    network: &Network,
    flows: &[PeriodicFlow],
    placed: &[Placed],
    port: usize,
    list: Option<&GateList>,
) -> Result<(), String> {
    let cycles = cycles(flows);
    let Some(cycle) = cycles.get(&port) else {
        return list.map_or(Ok(()), |_| Err(format!("port {port} has gates for nobody")));
    };
    let list = list.ok_or(format!("port {port} has no gates"))?;
    let spans: i128 = list.entries.iter().map(|entry| ns(entry.span)).sum();
    if ns(list.cycle) != *cycle || spans != *cycle {
        return Err(format!("rule 7: port {port}: {} and {spans} of {cycle}", list.cycle));
    }
    if list.entries.len() > network.ports[port].entries_max {
        return Err(format!("rule 7: port {port}: {} entries", list.entries.len()));
    }
    let tick = ns(network.ports[port].tick);
    if list.entries.iter().any(|entry| ns(entry.span) <= 0 || ns(entry.span) % tick != 0) {
        return Err(format!("rule 7: port {port}: an entry is no multiple of {tick}"));
    }
    if list.entries.windows(2).any(|pair| pair[0].queue == pair[1].queue) {
        return Err(format!("rule 7: port {port}: neighbours are equal"));
    }
    let mut wanted: Laid = Vec::new();
    for (flow, placed) in flows.iter().zip(placed) {
        for (hop, start) in flow.hops.iter().zip(&placed.starts).filter(|(hop, _)| hop.port == port)
        {
            let window = (ns(*start), window(network, hop));
            lay(&mut wanted, window, ns(flow.period), *cycle, &placed.queue.to_string());
        }
    }
    wanted.sort();
    let mut joined: Laid = Vec::new();
    for (begin, end, queue) in wanted {
        match joined.last_mut() {
            Some(last) if last.1 == begin && last.2 == queue => last.1 = end,
            _ => joined.push((begin, end, queue)),
        }
    }
    let mut at = 0;
    let mut open: Laid = Vec::new();
    for entry in &list.entries {
        if let Some(queue) = entry.queue {
            open.push((at, at + ns(entry.span), queue.to_string()));
        }
        at += ns(entry.span);
    }
    if open == joined { Ok(()) } else { Err(format!("rule 7: port {port}: {open:?}, {joined:?}")) }
}

/// Whether what is said to be proven is so, by a count of its own.
pub(crate) fn confirm(
    network: &Network,
    flows: &[PeriodicFlow],
    refusal: &Refusal,
) -> Result<(), String> {
    let flow = &flows[refusal.flow];
    let is_so = match &refusal.why {
        Obstacle::Path { hop, .. } => {
            // At no time can it be there earlier than if nothing else exists and ticks are short.
            let error = |hop: usize| ns(network.ports[flow.hops[hop].port].clock_error);
            let leaves = |hop: usize, at: i128| {
                let port = &network.ports[flow.hops[hop].port];
                at + ns(flow.hops[hop].sent) + ns(port.latency[1]) + error(hop)
            };
            let mut queued: Vec<i128> = Vec::new();
            for at in 0..=*hop {
                let by = ways(flow, at).into_iter().map(|from| leaves(from, queued[from]));
                let by = by.map(|left| left + error(at));
                queued.push(by.max().unwrap_or(ns(flow.ready[1])));
            }
            leaves(*hop, queued[*hop]) + error(0) > ns(flow.deadline)
        }
        Obstacle::Jitter { hop, .. } => {
            let port = &network.ports[flow.hops[*hop].port];
            let varies = ns(port.latency[1]) - ns(port.latency[0]) + 2 * ns(port.clock_error);
            flow.jitter.is_some_and(|jitter| varies > ns(jitter))
        }
        Obstacle::Tick { hop } => {
            let tick = ns(network.ports[flow.hops[*hop].port].tick);
            common(ns(flow.period), tick) != ns(flow.period)
        }
        Obstacle::Period { hop } => {
            let free = Placed {
                release: onbeat_model::time::Span::ZERO,
                queue: 0,
                starts: vec![onbeat_model::time::Span::ZERO; flow.hops.len()],
            };
            let [early, late] = queued(network, flow, &free, *hop);
            window(network, &flow.hops[*hop]) + late - early > ns(flow.period)
        }
        Obstacle::Overload { port, .. } => {
            let cycle = cycles(flows)[port];
            let hops = flows.iter().flat_map(|flow| flow.hops.iter().map(move |hop| (flow, hop)));
            let there = hops.filter(|(_, hop)| hop.port == *port);
            let takes = there.map(|(flow, hop)| window(network, hop) * (cycle / ns(flow.period)));
            takes.sum::<i128>() > cycle
        }
        Obstacle::Pair { port, other } => {
            let of = |flow: usize| {
                let hop =
                    flows[flow].hops.iter().find(|hop| hop.port == *port).expect("it is there");
                (window(network, hop), ns(flows[flow].period))
            };
            let ((one, a), (two, b)) = (of(refusal.flow), of(*other));
            let divisor = a * b / common(a, b);
            one + two > divisor
        }
        Obstacle::Occupied { .. } | Obstacle::Entries { .. } => false,
    };
    if is_so { Ok(()) } else { Err(format!("not proven: {refusal:?}")) }
}
