//! Stream reservation on this machine's interfaces: the service that programs of a host ask
//! ([`serve`]), and the bridge role ([`bridge`]).

pub mod bridge;
pub mod host;
pub mod serve;

#[cfg(test)]
mod tests;

pub use bridge::{BridgeEvent, BridgeRole};
pub use host::{ClientId, HostAction, HostInput, OwnPort, SrpHost};
pub use serve::{ServeSettings, SrpService};

use onbeat::clock::{MonoTime, timeout};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use rustix::event::{PollFd, poll};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

/// How often a link is looked at.
const LINK_LOOK: Span = Span::from_ms(100);
/// How many frames are taken from a socket before others get their turn.
const AT_ONCE: usize = 64;

/// Why stream reservation does not work on an interface.
#[derive(Debug, thiserror::Error)]
pub enum SrpError {
    /// An interface cannot be used.
    #[error("interface `{interface}`: {error}")]
    Interface {
        /// Its name.
        interface: String,
        /// What the system said.
        error: io::Error,
    },
    /// The driver does not say how fast a link is.
    #[error("interface `{0}`: its driver does not tell the rate of the link: give it with --rate")]
    Rate(String),
    /// Another service has the interface.
    #[error("interface `{0}` has a reservation service already: `onbeat srp status` asks it")]
    Taken(String),
    /// mrpd has the interface.
    #[error(
        "mrpd runs on this host and reserves for its programs: stop it first, or leave the \
         reservations to it (docs/reservation.md)"
    )]
    Mrpd,
    /// What was given is no port of a bridge.
    #[error("a bridge has 2 to 1,024 ports, each once")]
    Ports,
    /// Something else.
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn failed(interface: &str) -> impl Fn(io::Error) -> SrpError {
    move |error| SrpError::Interface { interface: interface.to_owned(), error }
}

/// The rate of an interface's link, unless one is given.
fn rate_of(interface: &str, given: Option<BitRate>) -> Result<BitRate, SrpError> {
    let known = || {
        let speed = crate::ethtool::Abilities::of(interface).speed_mbps?;
        Some(BitRate::from_mbps(speed.into()))
    };
    given.or_else(known).ok_or_else(|| SrpError::Rate(interface.to_owned()))
}

/// Instants of the machine's clock, since the beginning, as those of the protocols.
#[derive(Clone, Copy, Debug)]
struct Stopwatch(MonoTime);

impl Stopwatch {
    fn start() -> Self {
        Self(MonoTime::now())
    }

    fn now(self) -> NetTime {
        NetTime::ZERO + (MonoTime::now() - self.0)
    }
}

/// A seed for timers: stations that are switched on together are to speak one after the other.
fn seed() -> u64 {
    // The standard library's one source of randomness.
    RandomState::new().build_hasher().finish()
}

/// Waits until something can be read, at most until `due`.
fn wait(set: &mut [PollFd<'_>], due: Span) {
    // Rounded up: who wakes too soon would only wait again.
    let due = due.max(Span::ZERO) + Span::from_us(1);
    // Interrupted is as good: the caller's loop looks again.
    let _ = poll(set, timeout(due).as_ref());
}
