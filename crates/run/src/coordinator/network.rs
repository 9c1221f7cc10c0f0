//! What carries the frames of a run: the engine, or the kernel.
//!
//! On a network of the kernel no frame passes the coordinator. It starts the programs, tells each
//! end which interface it has, keeps the time of the run and gathers the records; programs use
//! their interfaces themselves.

use crate::netns::{self, NetnsError};
use crate::noise::NoiseNetwork;
use onbeat::clock::MonoTime;
use onbeat::coordinator::protocol::Attachment;
use onbeat::interface::{Interface, InterfaceOptions, NetworkClock, TransportKind, begin_stamping};
use onbeat_model::record;
use onbeat_model::system::{Channel, NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use rustix::fd::BorrowedFd;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;

/// Which network a run has.
#[derive(Clone, Debug, Default)]
pub enum NetworkKind {
    /// The network engine.
    #[default]
    Emulated,
    /// The description's network, made of the kernel's namespaces, links and bridges. All hosts
    /// are on this machine and read one clock.
    Namespaces {
        /// How frames get there.
        transport: TransportKind,
        /// What else the ends do.
        options: InterfaceOptions,
    },
    /// An interface of this machine, which is one of the description's hosts. Only that host's
    /// programs run.
    Interface {
        /// Which host.
        host: NodeId,
        /// The interface's name.
        name: String,
        /// How frames get there.
        transport: TransportKind,
        /// What else the ends do.
        options: InterfaceOptions,
        /// What the network clock (CLOCK_TAI) reads at the instant that the run calls zero, in
        /// nanoseconds.
        epoch_ns: i64,
        /// By how much the host's clock is ahead of CLOCK_TAI, to try clocks that are apart.
        clock_offset: Span,
        /// By how much such offsets of the hosts differ at most.
        clock_spread: Span,
        /// The addresses of the hosts between which noise is sent; without them there is none.
        noise: BTreeMap<NodeId, Ipv6Addr>,
    },
}

/// Why there is no such network.
#[derive(Debug, thiserror::Error)]
pub enum NoNetwork {
    /// The namespaces.
    #[error(transparent)]
    Namespaces(#[from] NetnsError),
    /// The interface.
    #[error("interface `{name}`: {error}")]
    Interface {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// The interface is not up.
    #[error("interface `{0}` is down: `ip link set {0} up` starts it")]
    Down(String),
    /// The start of the run is over.
    #[error("the run was to start {0} ago: all hosts need the same start, in the future")]
    Past(Span),
}

/// The network of a run, ready to be used.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) kind: NetworkKind,
    namespaces: Option<netns::KernelNetwork>,
    /// The host's interface, on one.
    interface: Option<Interface>,
    /// Whether stations of hosts carry the channels.
    by_stations: bool,
}

impl Carrier {
    /// Makes or looks up the network.
    pub(super) fn new(
        kind: NetworkKind,
        system: &System,
        by_stations: bool,
    ) -> Result<Self, NoNetwork> {
        let (mut namespaces, mut used) = (None, None);
        match &kind {
            NetworkKind::Emulated => {}
            NetworkKind::Namespaces { .. } => {
                namespaces = Some(netns::KernelNetwork::build(system)?);
                // Or what comes first would have come when it was read. Not longer: the kernel may
                // do it and the machine not tell.
                begin_stamping(Span::from_s(1));
            }
            NetworkKind::Interface { name, epoch_ns, clock_offset, .. } => {
                let interface = Interface::named(name)
                    .map_err(|error| NoNetwork::Interface { name: name.clone(), error })?;
                if !interface.up {
                    return Err(NoNetwork::Down(name.clone()));
                }
                let past = -until(tai_at(*epoch_ns, *clock_offset));
                if past >= Span::ZERO {
                    return Err(NoNetwork::Past(past));
                }
                used = Some(interface);
            }
        }
        Ok(Self { kind, namespaces, interface: used, by_stations })
    }

    /// Whether the engine carries the frames.
    pub(super) fn is_emulated(&self) -> bool {
        matches!(self.kind, NetworkKind::Emulated)
    }

    /// Whether frames go through an interface of this machine, where others may be.
    pub(super) fn is_interface(&self) -> bool {
        matches!(self.kind, NetworkKind::Interface { .. })
    }

    /// Whether the ends on a host take part.
    pub(super) fn includes(&self, node: NodeId) -> bool {
        self.recorded().includes(node)
    }

    /// Whether hosts have the clocks of the description, and not the machine's network clock.
    pub(super) fn describes_clocks(&self) -> bool {
        !matches!(self.kind, NetworkKind::Interface { .. })
    }

    /// By how much hosts' clocks are apart on purpose.
    pub(super) fn clock_spread(&self) -> Span {
        match self.kind {
            NetworkKind::Interface { clock_spread, .. } => clock_spread,
            NetworkKind::Emulated | NetworkKind::Namespaces { .. } => Span::ZERO,
        }
    }

    /// The network's time at the run's zero.
    pub(super) fn epoch_ns(&self) -> i64 {
        match self.kind {
            NetworkKind::Interface { epoch_ns, .. } => epoch_ns,
            NetworkKind::Emulated | NetworkKind::Namespaces { .. } => 0,
        }
    }

    /// The address of the host's own interface, if it is not the description's.
    pub(super) fn address(&self) -> Option<MacAddress> {
        self.interface.as_ref().map(|interface| interface.address)
    }

    /// The interface of every end that takes part; none on the emulated network.
    pub(super) fn attachment(&self) -> Option<Attachment<'_>> {
        // The records tell when each frame was at the port.
        let (transport, options, interface) = match &self.kind {
            NetworkKind::Emulated => return None,
            NetworkKind::Namespaces { transport, options } => {
                (*transport, *options, netns::INTERFACE)
            }
            NetworkKind::Interface { name, transport, options, .. } => {
                (*transport, *options, name.as_str())
            }
        };
        Some(Attachment {
            transport,
            options: InterfaceOptions { timestamps: true, ..options },
            interface,
            by_station: self.by_stations,
            is_shared: self.is_interface(),
        })
    }

    /// The same of a host's ends of a channel.
    pub(super) fn attachment_of(&self, channel: &Channel, host: NodeId) -> Option<Attachment<'_>> {
        let mut attachment = self.attachment()?;
        let is_talker = channel.talker == host;
        attachment.options.own_host = is_talker && channel.listeners.contains(&host);
        Some(attachment)
    }

    /// Where the description's noise is sent; not in an emulation.
    pub(super) fn noise(&self) -> Option<NoiseNetwork<'_>> {
        match &self.kind {
            NetworkKind::Emulated => None,
            NetworkKind::Namespaces { .. } => {
                self.namespaces.as_ref().map(NoiseNetwork::Namespaces)
            }
            NetworkKind::Interface { host, noise, .. } => {
                let (host, index) = (*host, self.interface.as_ref()?.index);
                Some(NoiseNetwork::Interface { host, index, addresses: noise })
            }
        }
    }

    /// The network of namespaces.
    pub(super) fn namespaces(&self) -> Option<&netns::KernelNetwork> {
        self.namespaces.as_ref()
    }

    /// The namespace of a host's interface, if it is not this process's.
    pub(super) fn namespace(&self, node: NodeId) -> Option<BorrowedFd<'_>> {
        Some(self.namespaces.as_ref()?.namespace(node))
    }

    /// What the records say of it.
    pub(super) fn recorded(&self) -> record::Carrier {
        match &self.kind {
            NetworkKind::Emulated => record::Carrier::Emulated,
            NetworkKind::Namespaces { transport, .. } => {
                record::Carrier::Namespaces { transport: *transport }
            }
            NetworkKind::Interface { host, name, transport, epoch_ns, .. } => {
                let (host, transport) = (*host, *transport);
                let part = record::InterfacePart {
                    host,
                    name: name.clone(),
                    transport,
                    cut_off: false,
                    ahead: None,
                    tuned: None,
                    time_errors: Vec::new(),
                };
                record::Carrier::Interfaces { parts: vec![part], epoch_ns: *epoch_ns }
            }
        }
    }
}

/// When a run on several machines starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// The next full minute of network time that is at least [`NOTICE`] away, so that hosts whose
    /// runs are started within one minute agree.
    NextMinute,
    /// So long from now.
    In(Span),
    /// An instant of UTC, in nanoseconds since 1970.
    Utc(i64),
}

/// The least time from choosing a start to the start.
pub const NOTICE: Span = Span::from_s(2);

impl StartAt {
    /// What CLOCK_TAI reads then, in nanoseconds. Where nothing has told the kernel how far TAI is
    /// ahead of UTC, that clock reads UTC.
    pub fn network_ns(self) -> i64 {
        let (tai, utc) = now();
        match self {
            Self::NextMinute => next_minute(tai),
            Self::In(span) => tai.saturating_add(span.as_ns()),
            Self::Utc(at) => at.saturating_add(tai_offset(tai, utc)),
        }
    }
}

/// The instant of UTC, in nanoseconds since 1970, at which CLOCK_TAI reads `network_ns`.
pub fn utc_of(network_ns: i64) -> i64 {
    let (tai, utc) = now();
    network_ns.saturating_sub(tai_offset(tai, utc))
}

/// How far from now CLOCK_TAI reads `network_ns`.
pub fn until(network_ns: i64) -> Span {
    Span::from_ns(network_ns.saturating_sub(now().0))
}

/// What CLOCK_TAI reads when a clock that is ahead of it reads `network_ns`.
pub(super) fn tai_at(network_ns: i64, ahead: Span) -> i64 {
    network_ns.saturating_sub(ahead.as_ns())
}

const SECOND: i64 = Span::from_s(1).as_ns();

/// CLOCK_TAI and UTC now.
fn now() -> (i64, i64) {
    let tai = NetworkClock::Tai { epoch: 0, watch: None }.now().as_ns();
    let utc = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    (tai, utc.tv_sec * SECOND + utc.tv_nsec)
}

/// The whole seconds by which TAI is ahead of UTC, in nanoseconds, from two readings that follow
/// each other.
fn tai_offset(tai: i64, utc: i64) -> i64 {
    (tai - utc + SECOND / 2).div_euclid(SECOND) * SECOND
}

fn next_minute(now: i64) -> i64 {
    const MINUTE: i64 = 60 * SECOND;
    let soonest = now + NOTICE.as_ns();
    (soonest + MINUTE - 1).div_euclid(MINUTE) * MINUTE
}

/// The clock that a run on a network goes by.
pub(super) fn clock(carrier: &Carrier, start: MonoTime) -> NetworkClock {
    match carrier.kind {
        NetworkKind::Interface { epoch_ns, clock_offset, .. } => {
            NetworkClock::Tai { epoch: tai_at(epoch_ns, clock_offset), watch: None }
        }
        NetworkKind::Emulated | NetworkKind::Namespaces { .. } => {
            NetworkClock::Emulated(onbeat::clock::EmulatedClock {
                start,
                error: Default::default(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_started_within_one_minute_choose_the_same_start() {
        let s = |s: i64| s * SECOND;
        assert_eq!(next_minute(s(60) - s(2)), s(60));
        assert_eq!(next_minute(s(60) - s(2) + 1), s(120));
        assert_eq!(next_minute(s(60)), s(120));
        assert_eq!(next_minute(s(117)), s(120));
    }

    #[test]
    fn utc_and_tai_differ_by_whole_seconds() {
        assert_eq!(tai_offset(37 * SECOND + 900, 0), 37 * SECOND);
        assert_eq!(tai_offset(37 * SECOND - 900, 0), 37 * SECOND);
        assert_eq!(tai_offset(5, 5), 0);
        let at = StartAt::Utc(1_700_000_000 * SECOND).network_ns();
        assert_eq!(utc_of(at), 1_700_000_000 * SECOND);
    }
}
