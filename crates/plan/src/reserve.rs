//! Bandwidth: what a stream needs, what a port reserves, and when that is too much.

use crate::analysis::arrival::Arrival;
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::plan::{ChannelPlan, Plan, PortPlan};
use onbeat_model::system::{Channel, ChannelId, Class, Port, PortId, System};
use onbeat_model::units::{BitRate, Octets, frame};
use std::cmp::Reverse;

const OVERLOADED: Code = Code("OB2001");

/// How many streams of an overloaded port an error names.
const NAMED_MAX: usize = 8;

/// One frame per interval, as it is on the wire (802.1Q-2018 34.4), rounded up.
pub(crate) fn true_rate(channel: &Channel) -> BitRate {
    let bits = u128::from(frame::on_wire(frame::of_channel(channel.size)).get()) * 8;
    let interval_ns = channel.interval.as_ns() as u128;
    let bps = (bits * 1_000_000_000).div_ceil(interval_ns);
    BitRate::from_bps(u64::try_from(bps).expect("a frame each nanosecond fits"))
}

/// What SRP's TSpec asks for: whole frames in each class measurement interval, at least one
/// (802.1Q-2018 34.3, 35.2.2.8.4). A channel's burst is not in it: the shaper of the talker's own
/// port spreads a burst at this rate, and the bound counts how long that takes.
fn tspec_rate(channel: &Channel) -> BitRate {
    let interval = channel.class.measurement_interval().expect("an SR class");
    let (interval_ns, period_ns) = (interval.as_ns() as u64, channel.interval.as_ns() as u64);
    let frames = interval_ns.div_ceil(period_ns).max(1);
    let octets = u64::from(frame::on_wire(frame::of_channel(channel.size)).get());
    // Both measurement intervals divide a second: no remainder.
    BitRate::from_bps(frames * octets * 8 * (1_000_000_000 / interval_ns))
}

/// Reserves for each protected channel at every port of its tree; fills in `reserved_rate`.
///
/// A talker whose clock runs fast may exceed the TSpec's rate when its interval is the class
/// measurement interval: it gets what it can really send, or its queue would grow for ever.
pub(crate) fn reserve(system: &System, channels: &mut [ChannelPlan]) -> Vec<PortPlan> {
    let unreserved =
        |port: &Port| PortPlan { settings: port.settings.clone(), ..PortPlan::default() };
    let mut ports: Vec<PortPlan> = system.ports.iter().map(unreserved).collect();
    for (channel, planned) in system.channels.iter().zip(channels) {
        if !planned.protected {
            continue;
        }
        let tree = planned.tree_ports();
        let real = tree.iter().map(|port| real_rate(system, channel, *port)).max();
        planned.reserved_rate = real.unwrap_or_default().max(tspec_rate(channel));
        for port in tree {
            let port = &mut ports[port.index()];
            let slope = sum(port.idle_slope(channel.class), planned.reserved_rate);
            port.set_idle_slope(channel.class, slope);
            *match channel.class {
                Class::A => &mut port.class_a_streams,
                Class::B => &mut port.class_b_streams,
                Class::Scheduled => unreachable!("a scheduled channel is never protected here"),
            } += 1;
        }
    }
    ports
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

/// One error for each port where both classes together reserve more than 75 % of the port's rate
/// (802.1Q-2018 34.3.1's recommended delta bandwidths).
pub(crate) fn overloads(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (id, port) in (0..).map(PortId).zip(&plan.ports) {
        let reserved = sum(port.idle_slope(Class::A), port.idle_slope(Class::B));
        let rate = system.link_of(id).rate;
        if u128::from(reserved.as_bps()) * 4 > u128::from(rate.as_bps()) * 3 {
            errors.push(overload(system, plan, id, reserved));
        }
    }
    errors
}

fn overload(system: &System, plan: &Plan, port: PortId, reserved: BitRate) -> Diagnostic {
    let mut streams: Vec<_> = (0..system.channels.len() as u32)
        .map(ChannelId)
        .filter(|id| plan.channel(*id).protected)
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
    let limit = BitRate::from_bps((u128::from(rate.as_bps()) * 3 / 4) as u64);
    let message = format!(
        "port {} would reserve {reserved} of its {rate}, more than the limit of {limit} (75 %): {}",
        system.port_label(port),
        list.join(", "),
    );
    let largest = system.channel(streams[0]).origin;
    let mut error = Diagnostic::error(OVERLOADED, message, largest, "the largest reservation here")
        .related(system.link_of(port).origin, "the link that is overloaded")
        .help(
            "lower the size or the rate of the largest streams, use a faster link, or set \
             `reserve = false` where best effort will do",
        );
    for stream in streams.iter().skip(1).take(NAMED_MAX - 1) {
        error = error.related(system.channel(*stream).origin, "also reserved here");
    }
    error
}
