//! Forwarding, computed once from the plan: one hop per flow and egress port.

use crate::event::MAX_INDEX;
use onbeat_model::plan::Plan;
use onbeat_model::system::{BEST_EFFORT_QUEUE, ChannelId, NodeId, NoiseId, PortId, System};

/// What a frame does at one egress port, and after it. A queued frame knows its hop, and by it its
/// flow and its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// The port that sends the frame.
    pub(crate) port: u32,
    /// The queue of the port.
    pub(crate) queue: u8,
    /// What happens at the other end of the link.
    pub(crate) then: Then,
}

/// What happens to a frame at the other end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// A bridge queues a copy for each of `count` hops from `first` on.
    Forward { first: u32, count: u32 },
    /// A channel's listener gets it; its place in [`Routes::ends`].
    Listener(u32),
    /// The frame of this noise source has reached its destination.
    Sink(u32),
}

/// The receiving end of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) channel: ChannelId,
    /// The place in the channel's list of listeners.
    pub(crate) listener: usize,
    pub(crate) host: NodeId,
}

/// The forwarding tables of all bridges and hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The hops of one flow that follow the same hop stand together.
    pub(crate) hops: Vec<Hop>,
    /// Per channel: its first hop.
    pub(crate) channels: Vec<u32>,
    /// Per noise source: its first hop.
    pub(crate) noise: Vec<u32>,
    /// All receiving ends, in the order of the channels and their listeners.
    pub(crate) ends: Vec<End>,
}

impl Routes {
    /// # Panics
    /// When a path of the plan is not a walk from talker to listener, or the paths of one channel
    /// are no tree: the plan is wrong, not the user's input.
    pub(crate) fn new(system: &System, plan: &Plan) -> Self {
        assert_eq!(plan.channels.len(), system.channels.len());
        assert_eq!(plan.noise.len(), system.noise.len());
        let mut routes =
            Self { hops: Vec::new(), channels: Vec::new(), noise: Vec::new(), ends: Vec::new() };
        for (at, (channel, planned)) in system.channels.iter().zip(&plan.channels).enumerate() {
            let first_end = routes.ends.len();
            assert_eq!(planned.paths.len(), channel.listeners.len());
            for (listener, (host, path)) in channel.listeners.iter().zip(&planned.paths).enumerate()
            {
                assert_walk(system, path, channel.talker, *host);
                routes.ends.push(End { channel: ChannelId(at as u32), listener, host: *host });
            }
            let queue = if planned.protected { channel.class.queue() } else { BEST_EFFORT_QUEUE };
            let root = routes.add_tree(queue as u8, &planned.paths, |listener| {
                Then::Listener((first_end + listener) as u32)
            });
            routes.channels.push(root);
        }
        for (at, noise) in system.noise.iter().enumerate() {
            let path = plan.noise(NoiseId(at as u32));
            assert_walk(system, path, noise.from, noise.to);
            let paths = [path.to_vec()];
            let root = routes.add_tree(BEST_EFFORT_QUEUE as u8, &paths, |_| Then::Sink(at as u32));
            routes.noise.push(root);
        }
        assert!(routes.ends.len() < MAX_INDEX && routes.hops.len() < u32::MAX as usize);
        routes
    }

    /// Adds the hops of one flow level by level and returns the first. `last(i)` is what happens
    /// after the end of path i.
    fn add_tree(&mut self, queue: u8, paths: &[Vec<PortId>], last: impl Fn(usize) -> Then) -> u32 {
        let root = self.hops.len();
        // Per hop of this flow: the paths over it, and the position of its port in them.
        let mut branches: Vec<(Vec<usize>, usize)> = Vec::new();
        let everyone: Vec<usize> = (0..paths.len()).collect();
        self.add_level(queue, paths, &everyone, 0, &mut branches);
        assert_eq!(self.hops.len(), root + 1, "a talker has one port");
        let mut at = 0;
        while at < branches.len() {
            let (over, depth) = branches[at].clone();
            let first = self.hops.len() as u32;
            self.hops[root + at].then = match over[..] {
                [path] if paths[path].len() == depth + 1 => last(path),
                _ => {
                    self.add_level(queue, paths, &over, depth + 1, &mut branches);
                    Then::Forward { first, count: self.hops.len() as u32 - first }
                }
            };
            at += 1;
        }
        root as u32
    }

    /// Adds a hop for each port that the paths `over` have at `depth`.
    fn add_level(
        &mut self,
        queue: u8,
        paths: &[Vec<PortId>],
        over: &[usize],
        depth: usize,
        branches: &mut Vec<(Vec<usize>, usize)>,
    ) {
        let first = branches.len();
        for path in over {
            let port = paths[*path][depth].0;
            let level = &self.hops[self.hops.len() - (branches.len() - first)..];
            match level.iter().position(|hop| hop.port == port) {
                Some(known) => branches[first + known].0.push(*path),
                None => {
                    self.hops.push(Hop { port, queue, then: Then::Sink(0) });
                    branches.push((vec![*path], depth));
                }
            }
        }
    }
}

/// Asserts that a path leads from port to port along the links.
fn assert_walk(system: &System, path: &[PortId], from: NodeId, to: NodeId) {
    let mut node = from;
    for port in path {
        assert_eq!(system.port(*port).node, node, "{} is not on the way", system.port_label(*port));
        node = system.port(system.port(*port).peer).node;
    }
    assert!(!path.is_empty() && node == to, "a path ends at {}", system.node(node).name);
}
