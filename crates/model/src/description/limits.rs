//! The most that a description may ask for. Each limit is far above what the engines can use and
//! far below what would overflow: all times together stay under 2⁶³ nanoseconds.

use crate::time::Span;

/// Octets of `system.toml`.
pub const FILE_OCTETS: usize = 16 << 20;
/// Octets of a C manifest.
pub const MANIFEST_OCTETS: usize = 1 << 20;
/// Hosts and bridges.
pub const NODES: usize = 10_000;
/// Links. A tree has one less than nodes.
pub const LINKS: usize = 10_000;
/// Channels.
pub const CHANNELS: usize = 100_000;
/// Programs, noise sources and chains, each.
pub const OTHERS: usize = 10_000;
/// Scenarios and references, each.
pub const SCENARIOS: usize = 1_000;
/// Values of a histogram, listeners of a channel, channels of a chain, words of a command.
pub const LIST: usize = 10_000;
/// Octets of a channel's name: the C manifest's `name[32]` less its final zero.
pub const CHANNEL_NAME_OCTETS: usize = 31;
/// Octets of any other name.
pub const NAME_OCTETS: usize = 63;
/// Messages of a channel that may come at once.
pub const BURST: i64 = 1_024;
/// Diagnostics that are kept; more help nobody.
pub const DIAGNOSTICS: usize = 1_000;
/// Wrong keys of one table that are told one by one.
pub const KEY_ERRORS: usize = 32;

/// A run, an interval, an on-period.
pub const DURATION: Span = Span::from_s(30 * 24 * 3_600);
/// Any delay of a host, bridge, link or channel.
pub const DELAY: Span = Span::from_s(10);
/// A clock's offset, either way.
pub const CLOCK_OFFSET: Span = Span::from_s(3_600);
/// Time on the machine's clock that a program may compute.
pub const HANG_TIMEOUT: Span = Span::from_s(24 * 3_600);
/// A link's rate: 1 Tb/s.
pub const LINK_BPS: i64 = 1_000_000_000_000;
/// Frames in one queue.
pub const QUEUE_FRAMES: i64 = 1_000_000;
/// Octets in one queue: 1 GiB.
pub const QUEUE_OCTETS: i64 = 1 << 30;
/// Weight of one value of a histogram.
pub const WEIGHT: i64 = 1_000_000_000;
/// The highest core.
pub const CORE: i64 = 1_023;
