//! The network engine: hosts, links, bridges, queues, gates, shapers, preemption, streams, noise
//! and faults on one event heap. Pure and seeded: the same system, plan, options and calls give
//! the same outputs, to the nanosecond and the octet. [`Engine`] is all there is to call for
//! programs on a network, [`simulate`] for modelled traffic alone; [`NoiseTimes`] is for noise on
//! other networks than the engine's.
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
//! A *cut-through* bridge queues it its `forwarding` time after the addresses, tag and EtherType
//! are in, at *s + t(8 + 18)* + propagation, if no port that it leaves by is faster than the one
//! that sent it, and that one's queue is not preemptable. A multicast that must be stored for one
//! of its ports is stored for all. A busy port queues it as any other frame.
//!
//! # Queues and selection (802.1Q-2022 8.6.6 to 8.6.8)
//! Every port, of bridges and hosts alike, has eight queues. Protected channels use the queue of
//! their class, all else the best-effort queue. A free port sends the head of the highest queue
//! that may send: by its algorithm (strict priority, credit-based or asynchronous shaping), then by
//! its gate. A queue refuses a frame (tail drop) that would take it over the node's limit of
//! frames, or of octets (destination address to FCS), or the queues of all ports of a bridge
//! together over its shared buffer. The frame in transmission has left its queue and does not
//! count, nor does the rest of an interrupted one.
//!
//! **Gates** (8.6.8.4) follow the node's own clock. The cycles of a list start at its base plus
//! whole cycles; one whose base is past at the epoch is in the midst of a cycle there. Before the
//! first base all gates are open. Each list is in force until the next one's base, which may cut a
//! cycle. Entries that leave a gate open are one window, across the ends of cycles and lists. If
//! the list that closes a gate is length-aware, a frame starts only if its gap ends by then;
//! otherwise what has started continues.
//!
//! **The credit-based shaper** (8.6.8.2) gets its idleSlope as given while its gate is open, in a
//! guard band too. While the gate is closed credit stands still, but the positive credit of an
//! empty queue is lost as ever. A frame that continues beyond the closing pays for all its bits.
//!
//! **Asynchronous shaping** (8.6.8.5, 8.6.11): a frame gets its eligibility time when it is queued,
//! not before its arrival, nor the last one of its group (the streams that come in by the same port
//! for the same queue), nor before its stream's bucket, which runs by the node's clock, holds its
//! octets on the wire. The queue is in the order of these times, then of arrival. A frame without
//! a bucket is eligible at once. There is no maximum residence time.
//!
//! **Preemption** (802.1Q-2022 6.7.2, 802.3-2018 99): a free port looks first at the express
//! queues, then at the rest of an interrupted frame, then at the preemptable queues, each group by
//! priority. An express frame that may be sent while a preemptable one is on the wire cuts it at
//! the end of the octet that is going out, or when the fragment has 60 octets after its preamble,
//! if at least 64 are left; it starts after 4 octets of check and the gap, unless its gate would
//! close too early, and then it does not cut. The rest has a preamble of its own: 24 octets more
//! per cut. It continues when no express frame may be sent and its gate is open (length-aware: for
//! all of it); it needs no credit. A credit-based queue pays for what its fragments take of the
//! wire and gains while it is interrupted.
//!
//! **A dedicated path** (`docs/network-code.md`): at each port of such a bridge all but frames of
//! stations is of the best-effort queue. Its transmission may be aborted, and is certain only at
//! its end. An aborted frame is the first of its queue again, above any limit, or counts as
//! aborted.
//!
//! # Sources
//! A stream releases a frame when its talker's clock reads the instant of its source, plus its
//! phase; instants that a clock that is ahead has passed at the epoch are left out. What is drawn
//! (jitter, gaps, lengths) comes from a random stream of its own per source. Frames of one source
//! keep their order: one with less jitter than the one before it is released with that one, which
//! is still within its own jitter. A modelled channel ([`Options::model_channels`]) is a periodic
//! stream of its longest message. Released frames pass `stack_tx` like those of programs.
//!
//! # Filtering and policing (802.1Qci; 802.1Q-2022 8.6.5.2)
//! A stream's filter is at the first bridge, when its frame would be queued there, once for all
//! copies that are then made of it. A frame passes if it is not longer than the filter's longest
//! and the meter has tokens for all of its time on the wire. The meter is full at the epoch and
//! fills by the bridge's clock, exact to 10⁻⁹ bit. A filter that blocks never opens again. A bridge
//! that cuts through stores what it filters, and what it may flood.
//!
//! # Replication and elimination (802.1CB)
//! A bridge queues a copy at every port at which a path of the stream continues. Where ways come
//! together at one egress port, the first copy of each number passes, by the vector recovery
//! algorithm (802.1CB-2017 7.4.3.4); the others count as duplicates, what is further from the
//! newest number than the history as rogue. Without an accepted frame for 1 s it takes any number.
//! There is no recovery of single ways, and no latent error detection.
//!
//! # Learning (802.1Q-2022 8.7) and VLANs
//! If any bridge learns, best-effort unicast (noise, and channels without reservation to one
//! host's address) follows a spanning tree of the bridges instead of the plan's path: the root is
//! the bridge with the lowest index, the others join by the fewest links. A bridge that learns
//! floods such a frame to all other ports of the tree until it has heard the destination on the
//! tree; what it has heard it forgets after 300 s. A flood leaves only at members of the frame's
//! VLAN, 1 for noise. Bridges that do not learn know all hosts. All else follows the plan, whose
//! paths must be within their VLAN. Copies at hosts for which they are not count nowhere. The tree
//! does not change when a link fails.
//!
//! # Faults
//! All faults are known beforehand, so the fate of a frame is certain when its transmission
//! starts; a run without faults does nothing for them. A fault lasts from its first instant to its
//! last, without that.
//! - *Link down*: lost is what is on the link, from the start of the preamble to the arrival of
//!   the last octet, at any instant of it. The ports at its ends continue sending. A frame that is
//!   cut through and damaged behind is lost as a whole.
//! - *Node down*: lost is what its queues hold at the first instant, what it is sending, receiving
//!   or forwarding at any instant, and what is in a host's stacks. A host's streams and noise
//!   release nothing; what its programs send is lost.
//! - *Frame errors*: drawn for each frame whose transmission starts meanwhile, from a random stream
//!   of its own per direction.
//! - *Babble*: the stream releases its longest frame at the first instant and again whenever one
//!   has left its talker's wire. Frames of its source that are due meanwhile are left out.
//!
//! # Protocols
//! A protocol takes part on nodes as a [`Participant`] ([`Engine::join`]): it has timers, sends and
//! hears frames of one EtherType between neighbours, learns when they left and came (if it likes,
//! also when their headers did), and may steer the clock of its node. Its frames wait in the queue
//! of its traffic class and may overflow, be preempted and be lost as others; they count in the
//! port's counters and nowhere else, and a tap keeps their octets. From the instant at which a
//! clock is steered, all that goes by it does so again: gates, sources, meters, buckets, and what
//! sleeps until it reads something ([`Engine::wake_when`]). Frames that wait behind asynchronous
//! shaping keep their eligibility times. [`gptp`], [`tcp`], [`srp`] and [`network_code`] are such
//! protocols; [`join_protocols`] lets those take part that a description asks for,
//! [`network_code::NetworkCode`] stations.
//!
//! # Federations
//! [`federation`] executes a federation of Lingua Franca on an engine that it makes.
//!
//! # Probes
//! [`Engine::observed`] has what became of the frames of every channel and stream. Latencies are
//! from release (or [`Engine::send`]) to receipt, after `stack_rx`, in true time. A frame that
//! reaches a full queue, a filter or a fault counts there, once per copy; so, with one listener,
//! frames released are those received, policed, overflowed, faulted, aborted and in flight. With
//! ways, each replication adds a copy, and eliminated ones count as duplicates or rogue.
//!
//! # Simultaneous events
//! Events of one instant happen by kind, then by the index of what they concern, then in the order
//! in which they were asked for: nodes that fail, ends of preemptable frames (by port), headers
//! that protocols hear, then frames that they hear, then those that have left for them (by port),
//! timers of protocols, deliveries (by channel and listener), wakes (by node), alarms, sources of
//! channels and streams that release (by channel, then stream), frames leaving a talker's stack (by
//! channel, then stream), noise (by source), frames of protocols that are queued (by protocol of
//! the node, then port), frames queued by bridges (by the sending port), and last the ports'
//! choices (by port): each port chooses among all frames that are there at that instant. A released
//! frame with no stack to pass is queued with its release. What a caller does between two calls of
//! [`Engine::advance`] happens at [`Engine::now`], before what is still to come at that instant.
//!
//! # What is no event of its own
//! A frame's arrival time is certain once its transmission starts, unless it is preemptable: only
//! then its last octet is an event. So the arrival at a bridge and the forwarding are one event;
//! the arrival at a listener's host and its stack are one event (`stack_rx` is drawn at the start
//! of the last transmission, or at the end of a preemptable one; the host's one link keeps that
//! order); the arrival of noise at its destination, and of a frame that no program reads at its
//! listener, is counted, for the time of the arrival, without an event; a port that ends a
//! transmission with nothing waiting has no event; and a gate that opens has one only for a frame
//! that then may start.
//!
//! # Limits
//! 2²⁴ ports, channels with streams, receiving ends, sources and noise sources, 2²⁴ frames with
//! octets in flight, 2³⁶ wakes and alarms in a run, histories of 2¹⁶ − 1 frames; a system within
//! the description's own limits is far below. Sequence numbers count modulo 2³². After queues have
//! grown to what the traffic needs, nothing is allocated but load samples, what a tap keeps, and
//! entries for hosts newly heard.

mod align;
mod buffer;
mod channel;
mod clocks;
mod delay_line;
mod engine;
mod event;
mod fault;
pub mod federation;
mod filter;
mod frame;
mod gate;
pub mod gptp;
mod launch;
mod learning;
mod links;
mod load;
pub mod network_code;
mod noise;
mod participant;
mod payload;
mod port;
mod preemption;
mod probe;
mod random;
mod recovery;
mod reservations;
mod route;
mod shaper;
mod simulate;
mod source;
pub mod srp;
mod tap;
pub mod tcp;

pub use engine::{Engine, FRAMES_MAX, OCTETS_MAX, Options, Output, Overfull};
pub use noise::NoiseTimes;
pub use onbeat_model::port::QUEUES;
pub use participant::{
    CarriedMessage, ClockAdjustment, Happened, Joining, Moment, Outgoing, Participant, Wants,
    join_protocols, join_reservation,
};
pub use port::{PortCounters, QUEUED_FRAME_SIZE};
pub use simulate::{
    Capture, DRAIN_LIMIT, Phases, Simulation, simulate, simulate_one, simulate_over,
};
pub use tap::{FlowRef, Transmission};
