//! Random systems whose frames have windows to themselves, with too little room, just enough, or
//! more: one frame of play, or a few parts per million.

use crate::random::{Dice, add_link, add_node};
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::Plan;
use onbeat_model::port::{GateControl, GateEntry};
use onbeat_model::stream::{Source, Stream};
use onbeat_model::system::{Bridge, Delay, Host, NodeId, NodeKind, PortId, System};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{MacAddress, Octets, frame};
use std::collections::BTreeMap;

/// The class that has windows to itself.
const CLASS: u8 = 7;

const BILLION: i128 = 1_000_000_000;

/// Two or three bridges in a row, a host or two at each, windows at some ports.
pub(crate) fn system(seed: u64) -> System {
    let mut dice = Dice::new(seed);
    let mut system = System::empty("windows", Span::from_ms(dice.one(&[30, 30, 1_000])));
    let bridges = dice.between(1, 3) as usize;
    let hosts = dice.between(2, 4) as usize;
    let clocks = dice.one(&[0, 0, 2_000, 9_000, 200_000]);
    for at in 0..hosts {
        let mac = MacAddress([2, 0, 0, 0, 0, at as u8 + 1]);
        let stack_tx = match dice.below(3) {
            0 => Delay::Interval { min: Span::ZERO, max: Span::from_ns(dice.between(0, 60_000)) },
            _ => Delay::Zero,
        };
        let kind = NodeKind::Host(Host { mac, stack_tx, ..Host::default() });
        let clock = clock(&mut dice, clocks);
        add_node(&mut system, format!("h{at}"), kind, clock);
    }
    for at in 0..bridges {
        let forwarding = Span::from_ns(dice.between(0, 5_000));
        let kind = NodeKind::Bridge(Bridge { forwarding, ..Bridge::default() });
        let clock = clock(&mut dice, clocks);
        add_node(&mut system, format!("b{at}"), kind, clock);
    }
    let bridge = |at: usize| NodeId((hosts + at) as u32);
    let rate = dice.one(&[100_000_000, 1_000_000_000]);
    for host in 0..hosts {
        add_link(&mut system, NodeId(host as u32), bridge(host % bridges), rate);
    }
    (1..bridges).for_each(|at| add_link(&mut system, bridge(at - 1), bridge(at), rate));
    windows(&mut dice, &mut system, hosts as u64, rate);
    system
}

fn clock(dice: &mut Dice, most_ppb: i64) -> ClockError {
    let offset = if most_ppb > 0 && dice.chance(20) { dice.between(-3_000, 3_000) } else { 0 };
    let drift_ppb = dice.between(-most_ppb, most_ppb) as i32;
    ClockError { offset: Span::from_ns(offset), drift_ppb, ..ClockError::default() }
}

/// Streams and the windows that carry them, or nearly.
fn windows(dice: &mut Dice, system: &mut System, hosts: u64, rate: u64) {
    let sizes = [68, 300, 700, 1_522];
    let size = dice.one(&sizes);
    let alike = dice.chance(60);
    let count = dice.between(1, 4);
    let takes = |octets: u32| {
        let bits = i128::from(frame::on_wire(Octets::new(octets)).get()) * 8 * BILLION;
        (bits / i128::from(rate)) as i64
    };
    let longest = if alike { size } else { 1_522 };
    let room = takes(longest) * dice.between(1, 5);
    let spare = dice.one(&[0, 0, 1, -1, 1_000, 20_000]);
    let own = (room + spare).max(takes(longest));
    let cycle = own + dice.between(own / 2, 6 * own);
    let entries = vec![
        GateEntry { open: 0x7f, span: Span::from_ns(cycle - own) },
        GateEntry { open: 0x80, span: Span::from_ns(own) },
    ];
    let base = NetTime::from_ns(dice.one(&[0, 0, -777, -1_000_000]));
    let gates = GateControl { base, cycle: Span::from_ns(cycle), entries, length_aware: true };
    let all = dice.chance(50);
    for port in &mut system.ports {
        if all || dice.chance(50) {
            port.settings.gates = vec![gates.clone()];
        }
    }
    for at in 0..count {
        let octets = if alike { size } else { dice.one(&sizes) };
        let from = dice.below(hosts);
        let to = (from + 1 + dice.below(hosts - 1)) % hosts;
        let source = source(dice, cycle, (room / takes(octets)).max(1), count);
        let talker = NodeId(from as u32);
        let listeners = vec![NodeId(to as u32)];
        system.streams.push(stream(dice, at, talker, listeners, octets, source));
    }
    if dice.chance(50) {
        let interval = Span::from_ns(40 * takes(1_522));
        let source = Source::Periodic { interval, jitter: Span::ZERO };
        let mut other = stream(dice, count, NodeId(0), vec![NodeId(1)], 1_522, source);
        other.traffic_class = 3;
        system.streams.push(other);
    }
}

/// A share of what fits into the windows: half to a little too much.
fn source(dice: &mut Dice, cycle: i64, fit: i64, count: i64) -> Source {
    let batch = dice.between(1, 4).min(fit + 1);
    let whole = cycle * ((batch * count + fit - 1) / fit);
    let exact = cycle * batch * count / fit;
    let ppm = exact / 1_000_000;
    let near = exact + dice.one(&[0, 1, -1, ppm, -ppm, 100 * ppm, -100 * ppm]);
    let far = exact * dice.between(80, 200) / 100;
    let interval = Span::from_ns(dice.one(&[whole, whole, cycle, 2 * cycle, near, far]).max(1_000));
    let jitter = Span::from_ns(dice.one(&[0, 0, interval.as_ns() / 10]));
    match dice.below(6) {
        0 => Source::Sporadic { interval, mean: interval + Span::from_ns(cycle / 7) },
        _ if batch > 1 => Source::Bursty { interval, frames: batch as u32 },
        _ => Source::Periodic { interval, jitter },
    }
}

fn stream(
    dice: &mut Dice,
    at: i64,
    talker: NodeId,
    listeners: Vec<NodeId>,
    octets: u32,
    source: Source,
) -> Stream {
    Stream {
        name: format!("s{at}"),
        talker,
        paths: Default::default(),
        listeners,
        traffic_class: CLASS,
        vlan: 2,
        pcp: 3,
        frame: [Octets::new(octets); 2],
        source,
        phase: Span::from_ns(dice.one(&[0, dice_phase(at)])),
        regulator: None,
        policing: None,
        deadline: None,
        origin: Origin::default(),
    }
}

fn dice_phase(at: i64) -> i64 {
    37_123 * (at + 1)
}

/// The streams that pass a port whose windows carry less than what comes, by the sources and the
/// clocks alone: nothing of the analysis is in it.
pub(crate) fn overloaded(system: &System, plan: &Plan) -> Vec<usize> {
    let mut there: BTreeMap<PortId, Vec<usize>> = BTreeMap::new();
    for (id, planned) in plan.streams.iter().enumerate() {
        for port in planned.paths.iter().flatten().flatten() {
            there.entry(*port).or_default().push(id);
        }
    }
    let too_much = |(port, ids): (&PortId, &Vec<usize>)| {
        let [gates] = &system.port(*port).settings.gates[..] else { return Vec::new() };
        let own: Vec<usize> =
            ids.iter().copied().filter(|id| system.streams[*id].traffic_class == CLASS).collect();
        let rate = system.link_of(*port).rate;
        let takes = |id: usize| {
            let octets = frame::on_wire(system.streams[id].frame[1]);
            i128::from(rate.time_for(octets).as_ns())
        };
        let ppb = |node: NodeId| BILLION + i128::from(system.node(node).clock.drift_ppb);
        let gate_clock = ppb(system.port(*port).node);
        let window = i128::from(gates.entries[1].span.as_ns()) * BILLION / gate_clock + 1;
        let sizes: Vec<i128> = own.iter().map(|id| takes(*id)).collect();
        let Some(first) = sizes.first() else { return Vec::new() };
        let alike = sizes.iter().all(|size| size == first);
        let carried = if alike { window / first * first } else { window };
        // Both in parts of 10¹⁸ of the wire.
        let load = own.iter().map(|id| {
            let (interval, frames) = match &system.streams[*id].source {
                Source::Periodic { interval, .. } | Source::Sporadic { interval, .. } => {
                    (interval, 1)
                }
                Source::Bursty { interval, frames } => (interval, i128::from(*frames)),
                Source::Trace(_) => unreachable!("no traces here"),
            };
            let clock = ppb(system.streams[*id].talker);
            frames * takes(*id) * clock * BILLION / i128::from(interval.as_ns())
        });
        let cycle = i128::from(gates.cycle.as_ns());
        if load.sum::<i128>() > carried * gate_clock * BILLION / cycle + 1 {
            own
        } else {
            Vec::new()
        }
    };
    there.iter().flat_map(too_much).collect()
}
