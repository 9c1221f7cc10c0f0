//! Bandwidth: what a stream needs, what a port reserves, and when that is too much.

use crate::analysis::arrival::Arrival;
use crate::analysis::gates;
use crate::{asynchronous, srp};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{ChannelPlan, Plan, PortPlan};
use onbeat_model::port::{GateControl, QUEUES, Selection};
use onbeat_model::reservation::{self, DELTA_BANDWIDTH_PERCENT, MSRP_MARGIN};
use onbeat_model::system::{Channel, ChannelId, Class, Port, PortId, Routing, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};
use std::cmp::Reverse;
use std::collections::HashMap;

/// How many streams of an overloaded port an error names.
const NAMED_MAX: usize = 8;

/// One message per interval, its frames as they are on the wire (802.1Q-2018 34.4), rounded up.
pub(crate) fn true_rate(channel: &Channel) -> BitRate {
    let octets = u128::from(frame::on_wire(channel.frame()).get()) * u128::from(channel.frames());
    let bits = octets * 8;
    let interval_ns = channel.interval.as_ns() as u128;
    let bps = (bits * 1_000_000_000).div_ceil(interval_ns);
    BitRate::from_bps(u64::try_from(bps).expect("a frame each nanosecond fits"))
}

/// A channel's plan before its reservation, which it gets if it asks for one and they are made.
pub(crate) fn unreserved(
    channel: &Channel,
    paths: Vec<Vec<PortId>>,
    protected: bool,
) -> ChannelPlan {
    ChannelPlan {
        protected: protected && channel.reserve,
        paths,
        true_rate: true_rate(channel),
        reserved_rate: BitRate::default(),
        bounds: Vec::new(),
        launch: None,
        schedulers: Vec::new(),
        slot: None,
    }
}

/// Whole frames in each class measurement interval, at least one.
fn interval_frames(channel: &Channel, interval: Span) -> u64 {
    let frames = interval.as_ns() as u64 * u64::from(channel.frames());
    frames.div_ceil(channel.interval.as_ns() as u64).max(1)
}

/// What SRP's TSpec asks for: whole frames in each class measurement interval, at least one
/// (802.1Q-2018 34.3, 35.2.2.8.4). A channel's burst is not in it, nor that the fragments of a
/// message come at once: the shaper of the talker's own port spreads them at this rate, and the
/// bound counts how long that takes.
fn tspec_rate(channel: &Channel) -> BitRate {
    let interval = channel.class.measurement_interval().expect("an SR class");
    let frames = interval_frames(channel, interval);
    let frame = channel.frame();
    reservation::tspec_rate(frame, frames, interval, Octets::default())
}

/// What MSRP reserves: as many whole frames in each class measurement interval as take at least
/// `real` with an octet more for each.
fn msrp_rate(channel: &Channel, real: BitRate) -> BitRate {
    let interval = channel.class.measurement_interval().expect("an SR class");
    let frame = channel.frame();
    let rate = |frames| reservation::tspec_rate(frame, frames, interval, MSRP_MARGIN);
    let mut frames = interval_frames(channel, interval);
    frames = frames.max(reservation::interval_frames(real, frame, interval, MSRP_MARGIN));
    if rate(frames) < real {
        frames += 1;
    }
    rate(frames)
}

/// What a channel of class A or B reserves at each port of its tree.
pub(crate) fn reserved_rate(system: &System, channel: &Channel, tree: &[PortId]) -> BitRate {
    let real = tree.iter().map(|port| real_rate(system, channel, *port)).max();
    let real = real.unwrap_or_default();
    match srp::is_used(system) {
        true => msrp_rate(channel, real),
        false => real.max(tspec_rate(channel)),
    }
}

/// The idleSlopes that the description gives classes A and B at a port, in bits per second, and
/// what may be reserved there beside all idleSlopes of the description; negative if these are too
/// much.
pub(crate) fn limits(system: &System, port: PortId) -> ([Option<u64>; 2], i128) {
    let slope = |queue: usize| match system.port(port).settings.selection[queue] {
        Selection::CreditBased { idle_slope } => Some(idle_slope.as_bps()),
        _ => None,
    };
    let set: i128 = (0..QUEUES).filter_map(slope).map(i128::from).sum();
    let rate = i128::from(system.link_of(port).rate.as_bps());
    let left = rate * i128::from(percent(system, port)) / 100 - set;
    ([Class::A, Class::B].map(|class| slope(class.queue())), left)
}

/// What the channels of one class need at one port, and the first of them.
#[derive(Clone, Copy, Default)]
struct Need {
    slope: BitRate,
    first: Option<ChannelId>,
}

/// Reserves for each protected channel at every port of its tree; fills in `reserved_rate`. A port
/// whose description gives the class's queue an idleSlope keeps it.
///
/// A talker whose clock runs fast may exceed the TSpec's rate when its interval is the class
/// measurement interval: it gets what it can really send, or its queue would grow for ever.
///
/// Channels of class asynchronous get schedulers in bridges, and the selection that these need.
///
/// `gates` are those of scheduled channels, by port. With the ports' settings comes OB2012 for each
/// that leaves too little.
pub(crate) fn reserve(
    system: &System,
    channels: &mut [ChannelPlan],
    mut gates: HashMap<PortId, GateControl>,
) -> (Vec<PortPlan>, Vec<Diagnostic>) {
    let mut unreserved = |(id, port): (PortId, &Port)| {
        let mut settings = port.settings.clone();
        settings.gates.extend(gates.remove(&id));
        PortPlan { settings, ..PortPlan::default() }
    };
    let mut ports: Vec<PortPlan> =
        (0..).map(PortId).zip(&system.ports).map(&mut unreserved).collect();
    let mut needs = vec![[Need::default(); 2]; ports.len()];
    let mut errors = Vec::new();
    let both = system.channels.iter().zip(channels);
    for (id, (channel, planned)) in (0..).map(ChannelId).zip(both) {
        if !planned.protected {
            continue;
        }
        if channel.class == Class::Scheduled {
            // Its windows are its reservation.
            planned.reserved_rate = planned.true_rate;
            continue;
        }
        if channel.class == Class::Asynchronous {
            errors.extend(shape(system, channel, planned, &mut ports));
            continue;
        }
        let tree = planned.tree_ports();
        planned.reserved_rate = reserved_rate(system, channel, &tree);
        for port in tree {
            let at = port.index();
            let (need, streams) = match channel.class {
                Class::A => (&mut needs[at][0], &mut ports[at].class_a_streams),
                Class::B => (&mut needs[at][1], &mut ports[at].class_b_streams),
                Class::Scheduled | Class::Asynchronous => unreachable!("passed over"),
            };
            need.slope = sum(need.slope, planned.reserved_rate);
            need.first.get_or_insert(id);
            *streams += 1;
        }
    }
    for (id, needs) in (0..).map(PortId).zip(needs) {
        for (class, need) in [Class::A, Class::B].into_iter().zip(needs) {
            let Some(first) = need.first else { continue };
            match ports[id.index()].settings.selection[class.queue()] {
                Selection::StrictPriority => {
                    let slope = through_gates(system, &ports[id.index()], id, class, need.slope);
                    ports[id.index()].set_idle_slope(class, slope);
                }
                Selection::CreditBased { idle_slope } if idle_slope >= need.slope => {}
                _ => errors.push(too_little(system, id, class, need.slope, first)),
            }
        }
    }
    (ports, errors)
}

/// Gives a channel of class asynchronous its schedulers, and the ports of its tree what it takes.
/// One error for each port whose queue the description shapes by credit.
fn shape(
    system: &System,
    channel: &Channel,
    planned: &mut ChannelPlan,
    ports: &mut [PortPlan],
) -> Vec<Diagnostic> {
    if channel.paths.is_replicated() {
        return vec![asynchronous::replicated(channel)];
    }
    planned.schedulers = asynchronous::schedulers(system, channel, &planned.paths);
    let of_talker = asynchronous::talker_rate(system, channel);
    planned.reserved_rate = of_talker;
    let mut errors = Vec::new();
    for port in planned.tree_ports() {
        let scheduler = planned.scheduler(port).copied();
        let rate = scheduler.map_or(of_talker, |scheduler| scheduler.bucket.rate);
        planned.reserved_rate = planned.reserved_rate.max(rate);
        let at = &mut ports[port.index()];
        at.asynchronous_streams += 1;
        at.asynchronous_rate = sum(at.asynchronous_rate, rate);
        match &mut at.settings.selection[channel.class.queue()] {
            Selection::CreditBased { .. } => {
                errors.push(asynchronous::shaped_by_credit(system, port, channel));
            }
            // What leaves its talker keeps to its rate already.
            selection if scheduler.is_some() => *selection = Selection::Asynchronous,
            _ => {}
        }
    }
    errors
}

/// What idleSlope a class must have so that `need` of it is left behind the port's gates.
fn through_gates(
    system: &System,
    planned: &PortPlan,
    id: PortId,
    class: Class,
    need: BitRate,
) -> BitRate {
    let clock = &system.node(system.port(id).node).clock;
    let slope = gates::slope_for(&planned.settings, class.queue(), clock, need.as_bps().into());
    BitRate::from_bps(u64::try_from(slope).unwrap_or(u64::MAX))
}

fn too_little(
    system: &System,
    port: PortId,
    class: Class,
    need: BitRate,
    first: ChannelId,
) -> Diagnostic {
    let queue = class.queue();
    let has = match system.port(port).settings.selection[queue] {
        Selection::CreditBased { idle_slope } => format!("has an idleSlope of {idle_slope}"),
        _ => "has asynchronous shaping".to_owned(),
    };
    let message = format!(
        "queue {queue} of port {} {has}, and the channels of class {class:?} need {need} there",
        system.port_label(port),
    );
    let origin = system.channel(first).origin;
    Diagnostic::error(codes::TOO_LITTLE, message, origin, "the first channel that needs it")
        .related(system.link_of(port).origin, "the port's link")
        .help("raise the idleSlope in the port's [[port]], or remove it: the plan then sets it")
}

/// What a talker may really send, as it occupies the wire of a port, rounded up.
fn real_rate(system: &System, channel: &Channel, port: PortId) -> BitRate {
    let arrival = Arrival::of_channel(system, channel);
    let rate = system.link_of(port).rate;
    let frame = Arrival::on_wire(rate, arrival.octets[1], Octets::default());
    BitRate::from_bps(u64::try_from(arrival.rate(frame)).expect("a frame each nanosecond fits"))
}

fn sum(a: BitRate, b: BitRate) -> BitRate {
    BitRate::from_bps(a.as_bps().saturating_add(b.as_bps()))
}

/// How much of a port's rate classes A, B and asynchronous may reserve together.
pub(crate) fn percent(system: &System, port: PortId) -> u32 {
    match (0..QUEUES).any(|queue| is_set(system, port, queue)) {
        true => 100,
        false => DELTA_BANDWIDTH_PERCENT.iter().sum(),
    }
}

/// Whether the description itself shapes a queue of the port by credit.
pub(crate) fn is_set(system: &System, port: PortId, queue: usize) -> bool {
    let selection = &system.port(port).settings.selection;
    matches!(selection[queue], Selection::CreditBased { .. })
}

/// One error for each stream that shares a queue with channels for which nothing but their own
/// reservation is there.
pub(crate) fn intruders(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let queue = usize::from(stream.traffic_class);
        let reserved = |port: &PortPlan| {
            (queue == Class::A.queue() && port.class_a_streams > 0)
                || (queue == Class::B.queue() && port.class_b_streams > 0)
        };
        let mut ports = planned.paths.iter().flatten().flatten();
        let shared = ports
            .find(|port| reserved(&plan.ports[port.index()]) && !is_set(system, **port, queue));
        if let Some(port) = shared {
            let message = format!(
                "stream `{}`: queue {queue} of port {} is reserved for channels",
                stream.name,
                system.port_label(*port),
            );
            let error =
                Diagnostic::error(codes::INTRUDER, message, stream.origin, "is in this queue")
                    .related(system.link_of(*port).origin, "the port's link")
                    .help(
                        "give the stream another `traffic_class`, or the port an idleSlope that is \
                     enough for both in a [[port]]",
                    );
            errors.push(error);
        }
    }
    errors
}

/// One error for each channel with a reservation at a bridge to which all but frames of stations
/// are best effort.
pub(crate) fn over_dedicated(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        let mut nodes = planned.paths.iter().flatten().map(|port| system.port(*port).node);
        let found = nodes.find(|node| system.node(*node).dedicated_path().is_some());
        if let Some(node) = found.map(|node| system.node(node)).filter(|_| planned.protected) {
            let message = format!(
                "channel `{}`: it is best effort to `{}`, which has a dedicated path for stations",
                channel.name, node.name
            );
            let error =
                Diagnostic::error(codes::OVER_DEDICATED, message, channel.origin, "is reserved")
                    .related(node.origin, "the bridge")
                    .help(
                        "set `reserve = false`, or let stations carry it: `--backend network-code`",
                    );
            errors.push(error);
        }
    }
    errors
}

/// Each port where classes A, B and asynchronous together reserve more than 75 % of its rate
/// (802.1Q-2018 34.3.1's recommended delta bandwidths), with what they reserve and the percentage
/// that they may. The standard has no limit for asynchronous shaping: it takes of the same share,
/// so that best effort keeps its own. Where the description sets an idleSlope itself, all queues
/// together may have the whole rate.
pub(crate) fn overloaded(
    system: &System,
    plan: &Plan,
) -> impl Iterator<Item = (PortId, BitRate, u32)> {
    (0..).map(PortId).zip(&plan.ports).filter_map(|(id, port)| {
        if port.class_a_streams + port.class_b_streams + port.asynchronous_streams == 0 {
            return None;
        }
        let slopes = port.settings.selection.iter().map(|selection| match selection {
            Selection::CreditBased { idle_slope } => *idle_slope,
            _ => BitRate::default(),
        });
        let reserved = slopes.fold(port.asynchronous_rate, sum);
        let percent = percent(system, id);
        let is_within = reservation::is_within(reserved, system.link_of(id).rate, percent);
        (!is_within).then_some((id, reserved, percent))
    })
}

/// One error for each port where too much is reserved.
pub(crate) fn overloads(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    overloaded(system, plan)
        .map(|(id, reserved, percent)| overload(system, plan, id, reserved, percent))
        .collect()
}

fn overload(
    system: &System,
    plan: &Plan,
    port: PortId,
    reserved: BitRate,
    percent: u32,
) -> Diagnostic {
    let mut streams: Vec<_> = (0..system.channels.len() as u32)
        .map(ChannelId)
        .filter(|id| plan.channel(*id).protected && system.channel(*id).class != Class::Scheduled)
        .filter(|id| plan.channel(*id).paths.iter().flatten().any(|p| *p == port))
        .collect();
    streams.sort_by_key(|id| (Reverse(plan.channel(*id).reserved_rate), *id));
    let mut list: Vec<_> = streams
        .iter()
        .take(NAMED_MAX)
        .map(|id| format!("`{}` {}", system.channel(*id).name, plan.channel(*id).reserved_rate))
        .collect();
    if streams.len() > NAMED_MAX {
        list.push(format!("{} more", streams.len() - NAMED_MAX));
    }
    let rate = system.link_of(port).rate;
    let limit = BitRate::from_bps((u128::from(rate.as_bps()) * u128::from(percent) / 100) as u64);
    let message = format!(
        "port {} would reserve {reserved} of its {rate}, more than the limit of {limit} \
         ({percent} %): {}",
        system.port_label(port),
        list.join(", "),
    );
    let largest = system.channel(streams[0]).origin;
    let mut error =
        Diagnostic::error(codes::OVERLOADED, message, largest, "the largest reservation here")
            .related(system.link_of(port).origin, "the overloaded link")
            .help(match system.routing {
                Routing::Shortest => {
                    "let channels take other paths (`routing = \"load-aware\"`), lower the size or \
                     the rate of the largest, use a faster link, or set `reserve = false` where \
                     best effort will do"
                }
                Routing::LoadAware => {
                    "no other paths were found: lower the size or the rate of the largest, use a \
                     faster link, or set `reserve = false` where best effort will do"
                }
            });
    for stream in streams.iter().skip(1).take(NAMED_MAX - 1) {
        error = error.related(system.channel(*stream).origin, "also reserved here");
    }
    error
}
