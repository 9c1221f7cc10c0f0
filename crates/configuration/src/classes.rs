//! Which priority belongs to which traffic class at a bridge's ports (802.1Q-2022 8.6.6).

use onbeat_model::plan::Plan;
use onbeat_model::port::QUEUES;
use onbeat_model::system::{BEST_EFFORT_QUEUE, ChannelId, PortId, StreamIndex, System};

/// For eight classes of which A and B are two (802.1Q-2022 Table 34-1).
const DEFAULT: [u8; 8] = [1, 0, 6, 7, 2, 3, 4, 5];

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
    pub(crate) fn of(system: &System, plan: &Plan, port: PortId) -> Self {
        // Frames of a channel have its priority even where nothing is reserved for it.
        let channels = (0..).map(ChannelId).zip(&system.channels);
        let channels = channels.map(|(id, channel)| (plan.channel(id), channel));
        let channels = channels
            .filter(|(planned, _)| planned.paths.iter().flatten().any(|at| *at == port))
            .map(|(planned, channel)| {
                let queue = channel.class.queue();
                (channel.pcp, if planned.protected { queue } else { BEST_EFFORT_QUEUE })
            });
        let streams = (0..).map(StreamIndex).zip(&system.streams).filter(|(id, _)| {
            plan.stream(*id).paths.iter().flatten().flatten().any(|at| *at == port)
        });
        let streams = streams.map(|(_, stream)| (stream.pcp, stream.traffic_class.into()));
        let mut used = [[false; QUEUES]; 8];
        for (priority, queue) in channels.chain(streams) {
            used[usize::from(priority)][queue] = true;
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
        classes
    }
}
