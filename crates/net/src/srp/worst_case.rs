//! How long a reservation may take by the protocol's timers; `docs/reservation.md` derives it.

use onbeat_model::plan::Plan;
use onbeat_model::system::{CONTROL_QUEUE, ChannelId, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::frame;
use onbeat_runtime::mrp::MrpTimers;

/// Attributes that certainly fit in one opportunity to transmit: 16 PDUs of 1,500 octets with at
/// most 41 for each attribute, and what the messages of a PDU have beside.
const ATTRIBUTES_AT_ONCE: usize = 16 * (1_500 - 40) / 41;
/// How many of the longest frames are sent at most before a PDU has left its port: 32 PDUs of both
/// protocols, one frame that had started, and what classes A and B may send at once, behind which
/// a quarter of the port's rate is left.
const FRAMES_BEFORE: i64 = 4 * 50;

/// The longest from a channel's Talker Advertise to all listeners' being able to get it, if all
/// nodes begin at once, no frame is lost and every stream fits. None if other traffic may hold up
/// PDUs for longer than is counted here.
pub(crate) fn worst_case(system: &System, plan: &Plan, id: ChannelId) -> Option<Span> {
    let is_above = |class: u8| usize::from(class) >= CONTROL_QUEUE;
    if system.streams.iter().any(|stream| is_above(stream.traffic_class))
        || plan.ports.iter().any(|port| !port.settings.gates.is_empty())
        || !system.faults.is_empty()
    {
        return None;
    }
    let streams = plan.channels.iter().filter(|channel| channel.protected).count();
    let opportunities = (2 * streams + 2).div_ceil(ATTRIBUTES_AT_ONCE) as i64;
    // The most that a request to transmit waits: three opportunities have just been (10.7.4.1).
    let join = MrpTimers::default().join;
    let wait = Span::from_ns(join.as_ns() + join.as_ns() / 2) * opportunities;
    let link = |port: &PortId| {
        let link = system.link_of(*port);
        let frame = link.rate.time_for(frame::on_wire(frame::MAX_TAGGED));
        frame * FRAMES_BEFORE + link.propagation
    };
    let path = |path: &Vec<PortId>| {
        let links: Span = path.iter().map(link).sum();
        // There, the listener's VLAN, and back.
        wait * (2 * path.len() as i64 + 1) + links * 2
    };
    plan.channel(id).paths.iter().map(path).max()
}
