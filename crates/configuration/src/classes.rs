//! Which priority belongs to which traffic class at a bridge's ports (802.1Q-2022 8.6.6).

use crate::Deployment;
use onbeat_model::plan::Plan;
use onbeat_model::port::QUEUES;
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, ChannelId, Class, NodeId, NodeKind, PortId, StreamIndex, System,
};
use onbeat_model::units::{Octets, frame};
use std::collections::BTreeSet;

/// For eight classes of which A and B are two (802.1Q-2022 Table 34-1).
const DEFAULT: [u8; 8] = [1, 0, 6, 7, 2, 3, 4, 5];
/// The class of priorities that would be in that of scheduled channels by default.
const BESIDE_SCHEDULED: u8 = 4;
/// The class of those that would be in that of asynchronous channels, or go before them.
const BESIDE_ASYNCHRONOUS: u8 = 3;

/// The channels and streams that leave each port, found once for all ports.
#[derive(Debug)]
pub(crate) struct Leaving {
    channels: Vec<Vec<ChannelId>>,
    streams: Vec<Vec<StreamIndex>>,
}

impl Leaving {
    pub(crate) fn of(system: &System, plan: &Plan) -> Self {
        let mut channels = vec![Vec::new(); system.ports.len()];
        for (id, planned) in (0..).map(ChannelId).zip(&plan.channels) {
            for port in planned.tree_ports() {
                channels[port.index()].push(id);
            }
        }
        let mut streams = vec![Vec::new(); system.ports.len()];
        for (id, planned) in (0..).map(StreamIndex).zip(&plan.streams) {
            let ports: BTreeSet<PortId> =
                planned.paths.iter().flatten().flatten().copied().collect();
            ports.iter().for_each(|port| streams[port.index()].push(id));
        }
        Self { channels, streams }
    }

    /// The channels that leave a port, in their order.
    pub(crate) fn channels(&self, port: PortId) -> &[ChannelId] {
        &self.channels[port.index()]
    }

    /// The streams.
    pub(crate) fn streams(&self, port: PortId) -> &[StreamIndex] {
        &self.streams[port.index()]
    }
}

/// What leaves a port, by the queue that the plan has it in.
#[derive(Default)]
pub(crate) struct Users {
    /// The priorities of its frames.
    pub(crate) pcps: [BTreeSet<u8>; QUEUES],
    /// The longest of them, on the wire; none where there are none.
    pub(crate) octets: [Option<Octets>; QUEUES],
}

impl Users {
    /// Those of a port: its channels and streams.
    pub(crate) fn of(all: &Deployment<'_>, port: PortId) -> Self {
        let Deployment { system, plan, leaving } = all;
        let node = system.port(port).node;
        let is_bridge = matches!(system.node(node).kind, NodeKind::Bridge(_));
        let may = |talker: NodeId| is_bridge || talker == node;
        // Frames of a channel have its priority even where nothing is reserved for it.
        let channels = leaving.channels(port).iter();
        let channels = channels.map(|id| (plan.channel(*id), system.channel(*id)));
        let channels =
            channels.filter(|(_, channel)| may(channel.talker)).map(|(planned, channel)| {
                let queue = channel.class.queue();
                let queue = if planned.protected { queue } else { BEST_EFFORT_QUEUE };
                (channel.pcp, queue, channel.frame())
            });
        let streams = leaving.streams(port).iter().map(|id| &system.streams[id.index()]);
        let streams = streams.filter(|stream| may(stream.talker));
        let streams =
            streams.map(|stream| (stream.pcp, stream.traffic_class.into(), stream.frame[1]));
        let mut users = Self::default();
        for (pcp, queue, octets) in channels.chain(streams) {
            users.pcps[queue].insert(pcp);
            users.octets[queue] = users.octets[queue].max(Some(frame::on_wire(octets)));
        }
        users
    }
}

/// The traffic classes of one port.
pub(crate) struct Classes {
    /// That of each priority.
    pub(crate) of_priority: [u8; 8],
    /// The priorities that traffic of more than one class has.
    pub(crate) torn: Vec<u8>,
}

impl Classes {
    /// Those with which all channels and streams that leave a port get into the queues that the
    /// plan has them in.
    pub(crate) fn of(all: &Deployment<'_>, port: PortId) -> Self {
        let mut used = [[false; QUEUES]; 8];
        for (queue, pcps) in Users::of(all, port).pcps.iter().enumerate() {
            for priority in pcps {
                used[usize::from(*priority)][queue] = true;
            }
        }
        let mut classes = Self { of_priority: DEFAULT, torn: Vec::new() };
        for (priority, queues) in (0..).zip(&used) {
            // The most urgent one: what must not wait does not.
            let Some(queue) = queues.iter().rposition(|used| *used) else { continue };
            classes.of_priority[usize::from(priority)] = queue as u8;
            if queues.iter().filter(|used| **used).count() > 1 {
                classes.torn.push(priority);
            }
        }
        // What is not planned, such as the frames of a bridge itself, is not in the windows of
        // scheduled channels, and neither beside asynchronous ones nor before them.
        let channels = || all.leaving.channels(port).iter().map(|id| all.plan.channel(*id));
        let mut keep_out = |from: usize, beside: u8| {
            for (class, queues) in classes.of_priority.iter_mut().zip(&used) {
                let queue = usize::from(*class);
                if (from..=Class::Scheduled.queue()).contains(&queue) && !queues[queue] {
                    *class = beside;
                }
            }
        };
        if channels().any(|planned| planned.launch.is_some()) {
            keep_out(Class::Scheduled.queue(), BESIDE_SCHEDULED);
        }
        if channels().any(|planned| !planned.schedulers.is_empty()) {
            keep_out(Class::Asynchronous.queue(), BESIDE_ASYNCHRONOUS);
        }
        classes
    }
}
