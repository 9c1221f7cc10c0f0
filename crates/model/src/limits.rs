//! The most that a description may ask for. Each limit is far above what the engines can use and
//! far below what would overflow: all times together stay under 2⁶³ nanoseconds.

use crate::time::{ClockError, Span};
use crate::units::frame;

/// Octets of `system.toml`.
pub const FILE_OCTETS: usize = 16 << 20;
/// Octets of a C manifest.
pub const MANIFEST_OCTETS: usize = 1 << 20;
/// Hosts and bridges.
pub const NODES: usize = 10_000;
/// Tables that say what devices can do.
pub const DEVICES: usize = 1_000;
/// Entries of gate control lists of a device, as these tables may state them.
pub const DEVICE_ENTRIES: i64 = 65_536;
/// The coarsest tick of a device, and its least entry.
pub const TICK: Span = Span::from_ms(1);
/// The longest delay of a program: sums of many are still told apart from for ever.
pub const PROGRAM_DELAY: Span = Span::from_ns(1 << 58);
/// Links. A tree has one less than nodes, a mesh has more.
pub const LINKS: usize = 10_000;
/// Channels.
pub const CHANNELS: usize = 100_000;
/// Streams.
pub const STREAMS: usize = 100_000;
/// Tables that say how ports send: one per end of a link.
pub const PORTS: usize = 2 * LINKS;
/// Entries of all gate control lists of one port together.
pub const GATE_ENTRIES: usize = 1_024;
/// Frames of all traces of one description together.
pub const TRACE_FRAMES: usize = 4_000_000;
/// Trace files that are read.
pub const TRACE_FILES: usize = 1_000;
/// Octets of all trace files together.
pub const TRACE_OCTETS: usize = 64 << 20;
/// C files that channels name for the structs of their messages.
pub const TYPE_FILES: usize = 100;
/// Octets of all of them together.
pub const TYPE_OCTETS: usize = 16 << 20;
/// Lines of one trace file that are wrong and told one by one.
pub const TRACE_ERRORS: usize = 32;
/// Flows of messages over TCP: each has two ports of its hosts.
pub const TCP_FLOWS: usize = 1_000;
/// Writes of a message over TCP.
pub const TCP_WRITES: usize = 16;
/// Octets of such a write.
pub const TCP_WRITE_OCTETS: i64 = 1 << 16;
/// The least time between two messages over TCP: what waits for its instant then fits in memory.
pub const TCP_INTERVAL: Span = Span::from_us(10);
/// Octets of a note on published figures.
pub const NOTE_OCTETS: usize = 400;
/// Programs, noise sources, chains and faults, each.
pub const OTHERS: usize = 10_000;
/// Scenarios and references, each.
pub const SCENARIOS: usize = 1_000;
/// Values of a histogram, listeners of a channel or stream, channels of a chain, words of a
/// command, names of one `[[port]]`.
pub const LIST: usize = 10_000;
/// Octets of a channel's name: the C manifest's `name[32]` less its final zero.
pub const CHANNEL_NAME_OCTETS: usize = 31;
/// Octets of any other name.
pub const NAME_OCTETS: usize = 63;
/// Messages of a channel that may come at once.
pub const BURST: i64 = 1_024;
/// Groups of one description, and of one group.
pub const GROUPS: usize = 1_000;
/// Groups in each other.
pub const GROUP_DEPTH: usize = 4;
/// How many times the tables of a group are there.
pub const GROUP_COUNT: i64 = 100_000;
/// Octets of all tables that groups make: as many as they would have if they were copied as they
/// are. It is room for 100,000 channels of 300 octets.
pub const GROUP_OCTETS: usize = 32 << 20;
/// Diagnostics that are kept; more are no help.
pub const DIAGNOSTICS: usize = 1_000;
/// Wrong keys of one table that are told one by one.
pub const KEY_ERRORS: usize = 32;

/// A run, an interval, an on-period.
pub const DURATION: Span = Span::from_s(30 * 24 * 3_600);
/// Any delay of a host, bridge, link or channel.
pub const DELAY: Span = Span::from_s(10);
/// A clock's offset, either way.
pub const CLOCK_OFFSET: Span = Span::from_s(3_600);
/// The largest step of a clock, either way.
pub const CLOCK_STEP: Span = Span::from_s(1);
/// How far a clock may wander either way: what the longest period leaves room for.
pub const WANDER: Span =
    Span::from_ns(DURATION.as_ns() / 4_000_000_000 * (ClockError::MAX_DRIFT_PPB as i64 - 1));
/// Time on the machine's clock that a program may compute.
pub const HANG_TIMEOUT: Span = Span::from_s(24 * 3_600);
/// What a dedicated path of a bridge waits at most.
pub const DEDICATED_WAIT: Span = Span::from_ms(1);
/// The most by which a station may be late.
pub const SLOT_ERROR: Span = Span::from_ms(10);
/// A link's rate: 1 Tb/s.
pub const LINK_BPS: i64 = 1_000_000_000_000;
/// Frames in one queue.
pub const QUEUE_FRAMES: i64 = 1_000_000;
/// Frames of one burst of a stream.
pub const BURST_FRAMES: i64 = 10_000;
/// Octets of a token bucket.
pub const BUCKET_OCTETS: i64 = 1 << 30;
/// Paths of one stream, and bridges on one path, each.
pub const PATHS: usize = 64;
/// Disjoint paths of one stream or channel.
pub const DISJOINT_PATHS: i64 = 8;
/// Sequence numbers back to which duplicates are recognised: a sequence number has 16 bits.
pub const HISTORY: i64 = 32_768;
/// The least of them: a queue that cannot hold the largest frame would never send one.
pub const QUEUE_OCTETS_LEAST: i64 = frame::MAX_TAGGED.get() as i64;
/// Octets in one queue, or in a bridge's buffer: 1 GiB.
pub const QUEUE_OCTETS: i64 = 1 << 30;
/// Weight of one value of a histogram.
pub const WEIGHT: i64 = 1_000_000_000;
/// The least memory that a run's programs may be limited to, in octets: one of them needs as much
/// to be there at all.
pub const MEMORY_MIN: i64 = 1 << 20;
/// The most, in octets.
pub const MEMORY_MAX: i64 = 1 << 50;
/// The most processes and threads that they may be limited to: Linux has no more.
pub const PROCESSES: i64 = 1 << 22;
/// The highest core.
pub const CORE: i64 = 1_023;
/// The shortest and the longest period of SCHED_DEADLINE that kernels take unless told otherwise
/// (`kernel.sched_deadline_period_min_us`, `…_max_us`), the latter rounded down.
pub const BUDGET_PERIOD_MIN: Span = Span::from_us(100);
/// See [`BUDGET_PERIOD_MIN`].
pub const BUDGET_PERIOD: Span = Span::from_s(4);
/// Values that a fifochannel has room for which realises an abstract channel.
pub const FIFO_VALUES: i64 = crate::binding::FIFO_VALUES_MAX as i64;
/// Where in a message of a mode the word begins that chooses among alternatives: a guard of a
/// station looks at the first 256 words of a buffer, of which 6 are before the message.
pub const ALTERNATIVES_OFFSET: i64 = 996;
/// Values by which alternatives are chosen: what a guard of a station compares a word with, as a
/// positive number.
pub const ALTERNATIVES_VALUE: i64 = (1 << 23) - 1;
