//! What a system and its plan say about a federation: stations are hosts, and connections the
//! channels of the same names.

use super::{Delivery, Environment, Station};
use onbeat_model::federation::{Connection, Federation};
use onbeat_model::plan::Plan;
use onbeat_model::system::{Channel, ChannelId, NodeKind, System};
use onbeat_model::time::{NetTime, Span};

impl Environment {
    /// The environment of a federation in a system.
    ///
    /// A channel's messages are read after its fixed delay, by the reader's clock. Where its bound,
    /// or the reader's clock, may be beyond that, they are read when they come, or then. Without a
    /// reservation its latency is not known. What a message takes between two federates of one
    /// station is no channel's: at most `local`, if that is known. If a protocol steers the clocks
    /// in the run, their errors are not known.
    ///
    /// # Panics
    /// When the plan is another system's.
    pub fn of(
        federation: &Federation,
        system: &System,
        plan: &Plan,
        local: Option<Span>,
        handlers_set: bool,
    ) -> Self {
        let until = Self::clocks_until(system);
        let is_steered = system.synchronisation.as_ref().is_some_and(|one| one.in_run);
        let stations = system.nodes.iter().filter_map(|node| {
            let NodeKind::Host(host) = &node.kind else { return None };
            Some(Station {
                name: node.name.clone(),
                clock_error: (!is_steered).then(|| node.clock.max_abs(until)),
                cores: host.cores,
                wakeup: host.wakeup.max(),
            })
        });
        let delivery = |connection: &Connection| {
            let station = |id: usize| federation.federates[id].station.as_deref();
            let from = station(connection.from.index())?;
            let to = station(connection.to.index())?;
            if from == to {
                return local.map(|max| Delivery::Between { min: Span::ZERO, max });
            }
            let mut channels = (0..).map(ChannelId).zip(&system.channels);
            let (id, channel) = channels.find(|(_, one)| one.name == connection.name)?;
            over(system, plan, id, channel, to, until)
        };
        Self {
            stations: stations.collect(),
            deliveries: federation.connections.iter().map(delivery).collect(),
            handlers_set,
        }
    }

    /// Up to when it counts the errors of clocks: the end of the longest run.
    pub fn clocks_until(system: &System) -> NetTime {
        let scenarios = system.scenarios.iter().map(|scenario| scenario.run.duration);
        NetTime::ZERO + scenarios.fold(system.run.duration, Span::max)
    }
}

/// What a channel's messages take to a host.
fn over(
    system: &System,
    plan: &Plan,
    id: ChannelId,
    channel: &Channel,
    to: &str,
    until: NetTime,
) -> Option<Delivery> {
    let mut listeners = channel.listeners.iter().enumerate();
    let (at, listener) = listeners.find(|(_, one)| system.node(**one).name == to)?;
    let bound = plan.channel(id).bounds.get(at)?;
    let error = |node| system.clock_wrong(node, until);
    let (writer, reader) = (error(channel.talker), error(*listener));
    // The capture is what the writer's clock reads, and the reader's clock says when to read. One
    // that is far ahead reads that before the message is there.
    if bound.total() + reader <= channel.fixed_delay + writer {
        return Some(Delivery::Fixed(channel.fixed_delay));
    }
    let held = channel.fixed_delay + writer + reader;
    Some(Delivery::Between { min: bound.best, max: bound.total().max(held) })
}
