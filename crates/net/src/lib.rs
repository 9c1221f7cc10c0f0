//! The network engine: hosts, links, store-and-forward bridges, queues, shapers and noise on one
//! event heap. Pure and seeded: the same system, plan, options and calls give the same outputs,
//! to the nanosecond and the octet. [`Engine`] is all there is to call;
//! [`NoiseTimes`] is for noise on other networks than the engine's.
//!
//! # Time on the wire
//! A transmission that starts at *s* is eight octets of preamble, then the frame up to its FCS.
//! With *t(n)* the time of n octets at the link's rate, rounded up to a whole nanosecond:
//! the last octet leaves at *s + t(8 + frame)*; the port is free again at
//! *s + t(8 + frame + 12)*, after the gap; the frame *arrives* at *s + t(8 + frame)* + propagation.
//! A bridge queues it its `forwarding` time later at every egress port that the plan's tree has
//! there; a host's program has it `stack_rx` after the arrival. A program's frame is queued at its
//! host's port `stack_tx` after the program wrote it. Frames of one channel never overtake each
//! other in a stack: one that draws a shorter delay leaves with the one before it.
//!
//! # Queues and selection (802.1Q-2018 8.6.6 to 8.6.8)
//! Every port, of bridges and hosts alike, has eight queues. Protected channels use the queue of
//! their class, all else the best-effort queue. A free port sends the head of the highest queue
//! that may send; the queues of classes A and B have a credit-based shaper where the plan reserves
//! bandwidth for them. A queue refuses a frame (tail drop) that would take it over the node's
//! limit of frames, or of octets (destination address to FCS). The frame in transmission has left
//! its queue and does not count.
//!
//! # Simultaneous events
//! Events of one instant happen by kind, then by the index of what they concern, then in the order
//! in which they were asked for: deliveries (by channel and listener), wakes (by node), alarms,
//! frames leaving a talker's stack (by channel), noise (by source), frames queued by bridges (by
//! the sending port), and last the ports' choices (by port): each port chooses among all frames
//! that are there at that instant. What a caller does between two calls of [`Engine::advance`]
//! happens at [`Engine::now`], before what is still to come at that instant.
//!
//! # What is no event of its own
//! A frame's arrival time is certain once its transmission starts. So the arrival at a bridge and
//! the forwarding are one event; the arrival at a listener's host and its stack are one event
//! (`stack_rx` is drawn at the start of the last transmission; the host's one link keeps that
//! order); the arrival of noise at its destination is counted, for the time of the arrival,
//! without an event; and a port that ends a transmission with nothing waiting has no event.
//!
//! # Limits
//! 2²⁴ ports, channels, channel ends and noise sources, 2²⁴ frames with octets under way, 2³⁶
//! wakes and alarms in a run; a system within the description's own limits is far below. After
//! queues have grown to what the traffic needs, nothing is allocated but the load samples.

mod align;
mod engine;
mod event;
mod fault;
mod filter;
mod frame;
mod lane;
mod learning;
mod load;
mod noise;
mod payload;
mod port;
mod probe;
mod random;
mod recovery;
mod route;
mod shaper;
mod simulate;
mod source;
mod tap;

pub use engine::{Engine, Options, Output};
pub use frame::QUEUED_FRAME_SIZE;
pub use noise::NoiseTimes;
pub use onbeat_model::port::QUEUES;
pub use port::PortCounters;
pub use simulate::{Capture, DRAIN_LIMIT, Phases, Simulation, simulate, simulate_one};
pub use tap::{FlowRef, Transmission};
