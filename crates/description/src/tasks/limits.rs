//! The most that a task model may have.

pub use onbeat_model::limits::{
    CHANNELS, CORE, DELAY, DURATION, FILE_OCTETS, LIST, NAME_OCTETS, OTHERS as CHAINS,
    OTHERS as TASKS,
};
use onbeat_model::time::Span;

/// Hosts.
pub const HOSTS: usize = 10_000;
/// Steps of all tasks together.
pub const STEPS: usize = 100_000;
/// Rounds of a counted loop.
pub const ROUNDS: i64 = 1_000_000_000;
/// Values that wait in a channel.
pub const CAPACITY: i64 = i32::MAX as i64;
/// What a host's clock reads when the system starts, either way.
pub const START: Span = Span::from_s(3_600);
