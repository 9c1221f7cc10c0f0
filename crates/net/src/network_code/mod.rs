//! Stations of Network Code in a run: `onbeat_runtime::network_code` on hosts, and bridges that
//! pass its frames on (`docs/network-code.md`).
//!
//! # Model
//! A *host* with a program has a [`Station`](onbeat_runtime::network_code::station::Station) at its
//! port, without a stack in between. A station starts at an instant drawn from the seed, and again
//! when its node comes back from a failure. Its cycles count its node's clock from then on: the
//! clock's drift and wander, neither its offset nor its steps. A cycle begins at the first
//! nanosecond of true time that is in it. What happens within a cycle is an input of the next one.
//! Its frames are queued at its port when their first octet is to leave; a busy port delays them.
//!
//! The EtherType of a frame has come when its last octet is at the receiver's port, at the link's
//! rate, whose octets true time measures. What a fault costs does not come in part either, and no
//! frame comes with a wrong check sequence: no station counts *damaged* ones. A link is down for a
//! station while its own link is, or the node at its other end.
//!
//! A *bridge* floods frames of stations over the spanning tree that other flooded frames take, at
//! ports that are members of VLAN 1: without a tag, or with one of VLAN 0, they are in it. It
//! queues them its `forwarding` time after the last octet and does not cut through. All are of
//! traffic class 7 at each port: that of their tag, or what a bridge knows by their address.
//!
//! A bridge with a *dedicated path* announces each frame to its ports when its EtherType is in. The
//! frame begins at a fixed time after its first octet came, whatever else is at the port.
//!
//! Stations, what they want and their frames are in no plan: bounds do not count them.

mod application;
mod books;
mod carrier;
mod clock;
mod host;
mod log;
mod ports;
mod relay;
mod setup;

pub use application::{
    Application, ApplicationBuffers, GeneratedValues, NoApplication, generated_words,
};
pub use books::{
    EgressObserved, MessageListener, MessageObserved, NetworkCodeObserved, SpanExtremes,
    StationObserved,
};
pub use log::{StationContent, StationFrameSent, StationInput, StationLog};
pub use setup::{CarryingStation, ChannelEnd, SetupError, StationChannel, StationSetup, explain};

use self::books::SharedBooks;
use self::host::StationHost;
use crate::channel::channel_parameters;
use crate::engine::{Engine, Options, Output, Overfull};
use crate::participant::join_with;
use crate::simulate::DRAIN_LIMIT;
use onbeat_model::observed::Observed;
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::system::{Backend, NodeKind, System};
use onbeat_model::time::{NetTime, Span};

/// What a frame may wait at a port when all stations have stopped, before it counts as lost: more
/// than the longest frame takes at 10 Mbit/s.
const QUIET: Span = Span::from_ms(10);

/// How a run is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkCodeSettings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Stations start from the beginning of the run on, at the latest after this.
    pub start_within: Span,
    /// The run ends when a station is about to begin another round after so many, if at all.
    pub rounds: Option<u64>,
    /// It ends after so long at the latest.
    pub duration: Span,
    /// Whether each station keeps a log of all that it does, which takes as much memory.
    pub logs: bool,
}

/// Stations that take part in an engine.
#[derive(Debug)]
pub struct NetworkCode {
    books: SharedBooks,
    end: NetTime,
    /// Longer than a frame takes from one node to the next, and there to the queue.
    hop: Span,
}

impl NetworkCode {
    /// Lets stations take part, and all protocols that the description asks for. To be called
    /// before anything has happened in the engine.
    ///
    /// # Errors
    /// With all because of which the network cannot have these stations. None takes part then.
    ///
    /// # Panics
    /// As [`join_protocols`](crate::join_protocols), or when the duration is not positive.
    pub fn join(
        engine: &mut Engine,
        system: &System,
        plan: &Plan,
        stations: Vec<StationSetup>,
        settings: &NetworkCodeSettings,
    ) -> Result<Self, Vec<SetupError>> {
        assert!(settings.duration > Span::ZERO, "a run of {}", settings.duration);
        let books = SharedBooks::default();
        let end = NetTime::ZERO + settings.duration;
        books.open().end = end;
        let joining = setup::joining(system, plan, stations, settings, &books)?;
        join_with(engine, system, plan, (settings.seed, end + DRAIN_LIMIT), joining);
        let forwarding = system.nodes.iter().map(|node| match &node.kind {
            NodeKind::Bridge(bridge) => {
                bridge.forwarding.max(bridge.dedicated_path.map(|it| it.wait).unwrap_or_default())
            }
            NodeKind::Host(_) => Span::ZERO,
        });
        let wire = system.links.iter().map(|link| link.propagation).max().unwrap_or_default();
        let hop = wire + forwarding.max().unwrap_or_default() + QUIET;
        Ok(Self { books, end, hop })
    }

    /// Lets stations carry the channels that an engine models, up to when the last message that is
    /// written before an instant is there by its bound. When that is over, with some time for
    /// frames that are late.
    pub(crate) fn carry(
        engine: &mut Engine,
        system: &System,
        plan: &Plan,
        stations: &[CarryingStation],
        (seed, end): (u64, NetTime),
    ) -> Result<NetTime, Vec<SetupError>> {
        let worst = plan.channels.iter().filter_map(ChannelPlan::bound).max().unwrap_or_default();
        let duration = end - NetTime::ZERO + worst + QUIET;
        let parameters = |channel| channel_parameters(system, system.channel(channel));
        let setups = stations.iter().map(|station| station.setup(system, &parameters)).collect();
        let settings = NetworkCodeSettings {
            seed,
            start_within: Span::ZERO,
            rounds: None,
            duration,
            logs: false,
        };
        Self::join(engine, system, plan, setups, &settings)?;
        Ok(NetTime::ZERO + duration + QUIET)
    }

    /// Has the stations run up to the end, and what is in flight then arrive. `progress` is told
    /// the time now and then, and says whether to continue.
    ///
    /// # Errors
    /// When more frames wait than an engine keeps.
    pub fn run(
        &self,
        engine: &mut Engine,
        progress: &mut dyn FnMut(NetTime) -> bool,
    ) -> Result<(), Overfull> {
        let step = Span::from_ms(1);
        while engine.now() < self.books.open().end {
            advance(engine, (engine.now() + step).min(self.end))?;
            if !progress(engine.now()) {
                let mut books = self.books.open();
                books.end = books.end.min(engine.now());
            }
        }
        let last = engine.now() + DRAIN_LIMIT;
        let mut moves = None;
        // Nothing has moved for longer than a frame takes anywhere: none is in flight.
        while engine.now() < last && moves != Some(self.books.open().moves) {
            moves = Some(self.books.open().moves);
            advance(engine, (engine.now() + self.hop).min(last))?;
        }
        let end = self.books.open().end;
        engine.participants::<StationHost>().for_each(|host| host.finish(end));
        Ok(())
    }

    /// What has been seen up to now; after [`NetworkCode::run`], of the whole run.
    pub fn observed(&self, engine: &Engine) -> NetworkCodeObserved {
        self.books.open().observed(engine.now())
    }

    /// The logs of a run that is over, in the order in which they were completed: each with the
    /// number of its station.
    pub fn take_logs(&self) -> Vec<(usize, StationLog)> {
        std::mem::take(&mut self.books.open().logs)
    }
}

fn advance(engine: &mut Engine, until: NetTime) -> Result<(), Overfull> {
    loop {
        match engine.advance(until) {
            None => return Ok(()),
            Some(Output::Overfull(overfull)) => return Err(overfull),
            Some(_) => {}
        }
    }
}

/// Why there is nothing to be seen of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkCodeError {
    /// The network cannot have these stations.
    Setup(Vec<SetupError>),
    /// More frames wait than an engine keeps.
    Overfull(Overfull),
}

impl NetworkCodeError {
    /// What a user is told, with names of a system.
    pub fn explain(&self, system: &System) -> String {
        match self {
            Self::Setup(errors) => explain(errors),
            Self::Overfull(overfull) => overfull.explain(system),
        }
    }
}

/// Simulates stations, with the traffic and the faults of a system: what became of the stations,
/// and of all else.
///
/// # Errors
/// When the network cannot have these stations, or more frames wait than an engine keeps.
///
/// # Panics
/// As [`Engine::new`] and [`NetworkCode::join`].
pub fn simulate(
    system: &System,
    plan: &Plan,
    stations: Vec<StationSetup>,
    settings: &NetworkCodeSettings,
    progress: &mut dyn FnMut(NetTime) -> bool,
) -> Result<(NetworkCodeObserved, Observed), NetworkCodeError> {
    let end = NetTime::ZERO + settings.duration;
    let options = Options {
        seed: settings.seed,
        host_delays: true,
        load_bin: settings.duration,
        noise_until: if system.run.noise { end } else { NetTime::ZERO },
        traffic_until: end,
        // Else the programs carry them.
        model_channels: system.run.backend == Backend::Bridges,
    };
    let mut engine = Engine::new(system, plan, options);
    let stations = NetworkCode::join(&mut engine, system, plan, stations, settings);
    let stations = stations.map_err(NetworkCodeError::Setup)?;
    stations.run(&mut engine, progress).map_err(NetworkCodeError::Overfull)?;
    Ok((stations.observed(&engine), engine.observed()))
}
