//! One run's programs, threads and channel endpoints, as both kinds of time need them.

use crate::coordinator::drain::{drain, max_drain};
use crate::coordinator::endpoint::{Deliveries, Endpoint, capacity};
use crate::coordinator::handshake::Connection;
use crate::coordinator::network::Carrier;
use crate::coordinator::one_processor::OneProcessor;
use crate::coordinator::requests::Requests;
use crate::coordinator::station_on_kernel::{StationOnKernel, StationPart};
use crate::coordinator::synthetic::{SyntheticListener, SyntheticTalker};
use crate::coordinator::synthetic_on_kernel::SyntheticOnKernel;
use crate::coordinator::table::{EndpointId, ProgramId, Table, ThreadId};
use crate::coordinator::told::Told;
use crate::coordinator::wakeup::Wakeup;
use crate::coordinator::{NoRun, RunOptions};
use crate::netns::faults::LinkFaults;
use crate::noise::{NoiseOptions, NoiseTraffic};
use crate::notices::Notices;
use crate::process::Running;
use crate::standing;
use onbeat::ANY_SIZE;
use onbeat::clock::MonoTime;
use onbeat::clock::{clamp_to_run, pause};
use onbeat::coordinator::client::STAMP;
use onbeat::coordinator::mailbox::Mailbox;
use onbeat::coordinator::protocol::{Body, ProtocolViolation, Request};
use onbeat::coordinator::socket;
use onbeat::coordinator::socket_queue::SocketQueue;
use onbeat::interface::{InterfaceSettings, Limits, NetworkClock, StationDoor, StationEndpoint};
use onbeat::interface::{launch_times, parameters_of};
use onbeat::shared_log::{self, SharedLog};
use onbeat_model::plan::{ChannelPlan, Plan};
use onbeat_model::record::Role;
use onbeat_model::system::{Channel, ChannelId, Node, NodeId, NodeKind, Program, System, TimeMode};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets};
use onbeat_net::network_code::{ChannelEnd, NetworkCode, NetworkCodeSettings, StationChannel};
use onbeat_net::{Engine, Options, Overfull};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::Frame;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most threads that all programs of a run may have at one time.
const MAX_THREADS: usize = 4_096;
/// The most channel endpoints that programs may open.
const MAX_ENDPOINTS: usize = 65_536;
/// How long the master of stations waits until the others wait for it.
const BEFORE_MASTER: Span = Span::from_ms(5);
/// By how much a message may count as captured later than it was, as one of a burst.
const BURST: Span = Span::from_us(1);
/// The least width of a sample of the interfering load.
const LOAD_BIN: Span = Span::from_ms(500);
/// The most samples of the interfering load that a run keeps.
const MAX_LOAD_SAMPLES: i64 = 1 << 20;
/// How long a program may take to exit once the run is over and its channels say so.
const EXIT_PATIENCE: Span = Span::from_s(10);
/// How often a wait for a program looks whether the run was interrupted.
pub(super) const LOOK_AGAIN: Span = Span::from_ms(100);
/// How long after its last connection closed a program may take to exit.
pub(super) const GONE_PATIENCE: Span = Span::from_s(1);

/// Why a run ends before its time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failure(pub(super) String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(format!("the run coordinator failed: {error}"))
    }
}

/// A program of the run.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) running: Running,
    /// The socket on which it is to say Hello.
    pub(super) door: Option<OwnedFd>,
    /// Its main thread.
    pub(super) main: ThreadId,
    /// Why an end was refused to it last.
    refused: Option<String>,
    /// Virtual time.
    pub(super) requests: Requests,
    /// Virtual time: its ends that have frames which it has not read.
    pub(super) unread: BTreeSet<EndpointId>,
    /// Virtual time: what it takes from elsewhere, where that is noticed.
    pub(super) notices: Option<Notices>,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not begun yet.
    Expected,
    /// It has begun and waits for its turn.
    Connected,
    /// It waits for the common start.
    AtStart,
    /// It may execute, or is about to.
    Running,
    /// It waits for an alarm.
    Sleeping,
    /// It waits for an alarm at which [`Thread::launch`] leaves.
    Launching,
    /// It shares a processor with others, and perhaps waits for an alarm that ends its work.
    Working,
    /// Its work was cut short, or will be at its alarm.
    CutShort,
    /// It waits for a frame on an end, and perhaps for an alarm.
    Reading(EndpointId),
    /// It waits for a frame on one of [`Thread::selected`], and perhaps for an alarm.
    Selecting,
    /// It waits for being woken by another thread, and perhaps for an alarm.
    Parked(u64),
    /// It waits for another thread's end.
    Joining(ThreadId),
    /// It has ended.
    Done,
}

/// A thread of a program.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) program: ProgramId,
    pub(super) socket: Option<OwnedFd>,
    /// In virtual time, what packets are in instead.
    pub(super) memory: Option<Mailbox>,
    pub(super) state: State,
    /// Counts its alarms, so that one which no longer matters is known.
    pub(super) alarms: u32,
    /// The ends that it selects from.
    pub(super) selected: Vec<EndpointId>,
    /// The end and the frame that it launches.
    pub(super) launch: (u32, Vec<u8>),
    /// What its program knows it by, once it has begun.
    pub(super) tid: u32,
}

impl Thread {
    fn new(program: ProgramId, state: State) -> Self {
        let (selected, launch) = (Vec::new(), (0, Vec::new()));
        Self { program, socket: None, memory: None, state, alarms: 0, selected, launch, tid: 0 }
    }
}

/// Who has an end of a channel.
#[derive(Debug)]
pub(super) enum Owner {
    /// No program has opened it. Of a listener in an emulation, what has been delivered there.
    Nobody(Deliveries),
    /// `Session::endpoints` at this position.
    Program(EndpointId),
    /// There is no program on its host.
    Talker(Box<SyntheticTalker>),
    /// The same for a listener.
    Listener(Box<SyntheticListener>),
    /// The same for either on a network of the kernel.
    OnKernel(Box<SyntheticOnKernel>),
    /// Its host is another machine.
    Elsewhere,
}

/// One run.
pub(super) struct Session<'a> {
    pub(super) system: &'a System,
    pub(super) options: RunOptions<'a>,
    pub(super) carrier: Carrier,
    /// Those that this run starts.
    pub(super) programs: Table<ProgramId, &'a Program>,
    pub(super) engine: Engine,
    pub(super) members: Table<ProgramId, Member>,
    pub(super) threads: Table<ThreadId, Thread>,
    pub(super) endpoints: Table<EndpointId, Endpoint>,
    /// Per channel: its talker, then its listeners.
    pub(super) owners: Vec<Vec<Owner>>,
    /// Whether the common start has been.
    pub(super) started: bool,
    pub(super) write_until: NetTime,
    pub(super) stop: NetTime,
    pub(super) lag_max: Span,
    pub(super) told: Told,
    /// Where all threads are in virtual time.
    pub(super) processor: OneProcessor,
    plan: &'a Plan,
    /// Those that carry the channels on the emulated network, if any do.
    pub(super) stations: Option<NetworkCode>,
    /// The same on a network of the kernel.
    pub(super) stations_on_kernel: Vec<StationOnKernel>,
    /// The description's noise on a network of the kernel.
    pub(super) noise: Option<NoiseTraffic>,
    /// The described faults of links and nodes, on a network of namespaces.
    pub(super) faults: io::Result<LinkFaults>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        system: &'a System,
        plan: &'a Plan,
        options: RunOptions<'a>,
        carrier: Carrier,
    ) -> Result<Self, NoRun> {
        let write_until = NetTime::ZERO + options.settings.duration;
        let slots = plan.channels.iter().filter(|planned| planned.slot.is_some());
        let delays = system.channels.iter().map(|c| c.fixed_delay);
        let slowest = delays.chain(slots.filter_map(ChannelPlan::bound)).max().unwrap_or_default();
        // Messages written last are still to arrive, some as late as promised: bursts behind
        // shapers, what waits for gates. Their readers are to wake.
        let tail = match system.channels.is_empty() {
            true => Span::ZERO,
            false => {
                let most = max_drain(options.settings.time);
                let promised = plan.channels.iter().filter_map(ChannelPlan::bound);
                let waits = promised.map(|bound| bound.min(most)).max().unwrap_or_default();
                waits.max(slowest * 2) + Span::from_ms(10) + drain(system, plan, most)
            }
        };
        let stop = write_until + tail;
        let engine = Engine::new(
            system,
            plan,
            Options {
                seed: options.settings.seed,
                host_delays: options.settings.time == TimeMode::Virtual,
                load_bin: load_bin(system, options.settings.duration),
                // On other networks the engine only keeps the time.
                noise_until: match carrier.is_emulated() && options.settings.noise {
                    true => write_until,
                    false => NetTime::ZERO,
                },
                traffic_until: if carrier.is_emulated() { write_until } else { NetTime::ZERO },
                model_channels: false,
            },
        );
        let takes_part = |program: &&Program| {
            carrier.includes(program.host) && (program.joins || options.settings.companions)
        };
        let programs = system.programs.iter().filter(takes_part).collect();
        let mut session = Self {
            system,
            plan,
            options,
            carrier,
            programs,
            stations: None,
            stations_on_kernel: Vec::new(),
            noise: None,
            faults: Ok(LinkFaults::default()),
            engine,
            members: Table::default(),
            threads: Table::default(),
            endpoints: Table::default(),
            owners: Vec::new(),
            started: false,
            write_until,
            stop,
            lag_max: Span::ZERO,
            told: Told::default(),
            processor: OneProcessor::any(),
        };
        if session.carrier.is_emulated() {
            session.join_protocols()?;
        }
        session.owners = (0..system.channels.len()).map(|c| session.owners_of(c)).collect();
        Ok(session)
    }

    /// Lets protocols take part, or stations.
    fn join_protocols(&mut self) -> Result<(), NoRun> {
        let Self { system, plan, .. } = *self;
        let settings = self.options.settings;
        if self.options.stations.is_empty() {
            let join = match settings.time {
                TimeMode::Virtual => onbeat_net::join_protocols,
                TimeMode::Real => onbeat_net::join_reservation,
            };
            join(&mut self.engine, system, plan, settings.seed, self.write_until);
            return Ok(());
        }
        let parameters = |channel| self.parameters(channel);
        let stations = self.options.stations.iter();
        let stations = stations.map(|station| station.setup(system, &parameters)).collect();
        let settings = NetworkCodeSettings {
            seed: settings.seed,
            start_within: Span::ZERO,
            rounds: None,
            duration: self.stop - NetTime::ZERO,
            logs: false,
        };
        let joined = NetworkCode::join(&mut self.engine, system, plan, stations, &settings);
        self.stations = Some(joined.map_err(NoRun::Stations)?);
        Ok(())
    }

    fn owners_of(&self, channel: usize) -> Vec<Owner> {
        let id = ChannelId(channel as u32);
        let declared = self.system.channel(id);
        if !self.carrier.is_emulated() {
            let nodes = std::iter::once(&declared.talker).chain(&declared.listeners);
            // A host without a program gets a synthetic endpoint.
            let owner = |node: &NodeId| match self.carrier.includes(*node) {
                true => Owner::Nobody(Deliveries::default()),
                false => Owner::Elsewhere,
            };
            return nodes.map(owner).collect();
        }
        let parameters = self.parameters(id);
        let talker = if self.system.has_program(declared.talker) {
            Owner::Nobody(Deliveries::default())
        } else {
            let clock = self.engine.clock_of(declared.talker);
            let phase = self.plan.phase(self.system, id);
            Owner::Talker(Box::new(SyntheticTalker::new(declared, phase, clock, parameters)))
        };
        let listeners = declared.listeners.iter().map(|node| {
            if self.system.has_program(*node) {
                return Owner::Nobody(Deliveries::default());
            }
            Owner::Listener(Box::new(SyntheticListener::new(parameters)))
        });
        std::iter::once(talker).chain(listeners).collect()
    }

    pub(super) fn parameters(&self, id: ChannelId) -> ChannelParameters {
        let channel = self.system.channel(id);
        ChannelParameters {
            source: self.source(channel.talker),
            // Without a reservation a bridge at the edge of the SRP domain would remap the
            // priority anyway (802.1Q 6.9.4). Other bridges may honour it.
            pcp: match self.carrier.is_emulated() && !self.plan.channel(id).protected {
                true => 0,
                false => channel.pcp,
            },
            clock_error: self.clock_error(channel),
            // The engine keeps those of an emulation.
            launch: match self.carrier.is_emulated() {
                true => None,
                false => launch_times(channel, self.plan.channel(id)),
            },
            epoch: self.carrier.epoch_ns(),
            // A message that comes late has missed its slot.
            catch_up: match self.options.stations.is_empty() {
                true => channel.catch_up(),
                false => Span::ZERO,
            },
            // In an emulation the talker's host has another address than the real one.
            talker_address: match self.options.stations.is_empty() || self.carrier.is_emulated() {
                true => channel.talker_address.map(|named| {
                    if self.carrier.is_interface() { named } else { self.source(channel.talker) }
                }),
                // Slots say who talks, not addresses.
                false => None,
            },
            ..parameters_of(channel)
        }
    }

    /// By how much a channel's talker's clock may be ahead of a listener's in this run.
    fn clock_error(&self, channel: &Channel) -> Span {
        if !self.carrier.describes_clocks() {
            // Synchronised ones may be as wrong as that, each.
            return InterfaceSettings::default().clock_error * 2 + self.carrier.clock_spread();
        }
        // Clocks that gPTP keeps in the run may come apart when something fails; by no more, as
        // oscillators are within 100 ppm and servos within 500.
        let kept = self.system.synchronisation.is_some_and(|it| it.in_run);
        let apart = if kept { self.stop.as_ns() / 1_000 } else { 0 };
        let most = |node: &NodeId| self.system.clock_wrong(*node, self.stop) + Span::from_ns(apart);
        let listeners = channel.listeners.iter().map(most).max().unwrap_or_default();
        most(&channel.talker) + listeners + BURST
    }

    /// The address that a host's frames come from; where it is not known, the description's.
    fn source(&self, talker: NodeId) -> MacAddress {
        let own = self.carrier.address().filter(|_| self.carrier.includes(talker));
        own.unwrap_or_else(|| host_address(self.system, talker))
    }

    /// The ends of all channels, open or not.
    fn count_of_endpoints(&self) -> usize {
        self.system.channels.iter().map(|channel| 1 + channel.listeners.len()).sum()
    }

    /// Opens the stations that carry the channels on a network of the kernel.
    pub(super) fn open_stations_on_kernel(&mut self) -> Result<(), NoRun> {
        let Some(attachment) = self.carrier.attachment() else { return Ok(()) };
        let stations = &self.options.stations;
        let duration = self.options.settings.duration;
        let ends = self.count_of_endpoints();
        let rooms = |id: u32| capacity(&self.parameters(ChannelId(id)), duration, ends) as usize;
        let room = (0..self.system.channels.len() as u32).map(rooms).max().unwrap_or(0);
        // Processors that programs need, too.
        let spare = std::thread::available_parallelism().map_or(1, |all| all.get().max(2) - 1);
        let early = Span::from_us(100 * spare as i64 / stations.len().max(1) as i64);
        for station in stations {
            let parameters = |channel| self.parameters(channel);
            let setup = station.setup(self.system, &parameters);
            let is_its = |node: &Node| node.name == station.program.station;
            let node = self.system.nodes.iter().position(is_its).unwrap_or_default();
            let node = NodeId(node as u32);
            if !self.carrier.includes(node) {
                continue;
            }
            let end = |channel: &StationChannel| {
                let role = match channel.end {
                    ChannelEnd::Talker => Role::Talker,
                    ChannelEnd::Listener(_) => Role::Listener,
                };
                let StationChannel { buffer, parameters, .. } = *channel;
                (channel.channel, StationEndpoint { buffer, role, parameters })
            };
            let part = StationPart {
                node,
                program: &station.program,
                ends: setup.channels.iter().map(end).collect(),
                late_limit: self.options.settings.slot_error,
                deliveries: room,
                early,
            };
            let namespace = self.carrier.namespace(node);
            let opened = StationOnKernel::open(&part, attachment.interface, namespace);
            self.stations_on_kernel.push(opened.map_err(|error| {
                let host = station.program.station.clone();
                NoRun::Station { host, error }
            })?);
        }
        Ok(())
    }

    /// The door of a host's end to its station, if one carries the channel.
    fn door(&self, node: NodeId, channel: ChannelId, role: Role) -> Option<Arc<StationDoor>> {
        let station = self.stations_on_kernel.iter().find(|station| station.node() == node)?;
        station.door(channel, role).cloned()
    }

    /// Opens the ends of hosts without programs on a network of the kernel.
    pub(super) fn open_synthetic_on_kernel(&mut self) -> Result<(), NoRun> {
        for (id, channel) in (0..).map(ChannelId).zip(&self.system.channels) {
            let parameters = self.parameters(id);
            let capacity =
                capacity(&parameters, self.options.settings.duration, self.count_of_endpoints());
            let nodes = std::iter::once(&channel.talker).chain(&channel.listeners);
            for (place, node) in nodes.enumerate() {
                if self.system.has_program(*node) || !self.carrier.includes(*node) {
                    continue;
                }
                let Some(attachment) = self.carrier.attachment_of(channel, *node) else { break };
                let role = if place == 0 { Role::Talker } else { Role::Listener };
                let way = match self.door(*node, id, role) {
                    Some(door) => Some(door.open()?.try_clone_to_owned()?),
                    None => {
                        let namespace = self.carrier.namespace(*node);
                        namespace.map(|n| n.try_clone_to_owned()).transpose()?
                    }
                };
                let part = (parameters, self.plan.phase(self.system, id));
                let endpoint = SyntheticOnKernel::open(role, part, capacity, attachment, way);
                let endpoint = endpoint.map_err(|error| NoRun::SyntheticOnKernel {
                    host: self.system.node(*node).name.clone(),
                    error,
                })?;
                self.owners[id.index()][place] = Owner::OnKernel(Box::new(endpoint));
            }
        }
        Ok(())
    }

    /// Lets stations begin on a network of the kernel: all are to hear the master's first round.
    fn begin_stations(&mut self, start: MonoTime) -> Result<(), Failure> {
        let stations = &mut self.stations_on_kernel;
        stations.sort_by_key(StationOnKernel::is_master);
        for station in stations {
            if station.is_master() {
                pause(BEFORE_MASTER);
            }
            station.begin(start)?;
        }
        Ok(())
    }

    /// Lets everything begin that is not a program, on a network of the kernel.
    pub(super) fn begin(&mut self, clock: &NetworkClock, start: MonoTime) -> Result<(), Failure> {
        self.begin_stations(start)?;
        for (channel, owners) in self.system.channels.iter().zip(&mut self.owners) {
            let nodes = std::iter::once(&channel.talker).chain(&channel.listeners);
            for (node, owner) in nodes.zip(owners) {
                let Owner::OnKernel(endpoint) = owner else { continue };
                let error = clock_error(self.system, &self.carrier, *node);
                let limits = Limits { write_until: self.write_until, stop: self.stop };
                endpoint.begin(clock.with_error(error), limits)?;
            }
        }
        if let Some(network) = self.carrier.namespaces() {
            self.faults = LinkFaults::begin(network, self.system, start);
        }
        let settings = &self.options.settings;
        if let Some(network) = self.carrier.noise().filter(|_| settings.noise) {
            let options = NoiseOptions {
                seed: settings.seed,
                start,
                until: self.write_until,
                load_bin: load_bin(self.system, settings.duration),
            };
            let noise = NoiseTraffic::start(network, self.system, options);
            self.noise = Some(noise.map_err(|error| Failure(error.to_string()))?);
        }
        Ok(())
    }

    /// Takes a program that has been started into the run.
    pub(super) fn admit(&mut self, running: Running, door: OwnedFd, notices: Option<Notices>) {
        let (program, main) = (self.members.next(), self.threads.next());
        let joins = self.programs[program].joins;
        let door = Some(door).filter(|_| joins);
        self.members.push(Member {
            running,
            door,
            main,
            refused: None,
            requests: Requests::default(),
            unread: BTreeSet::new(),
            notices,
        });
        // Nobody waits for one that does not join.
        let state = if joins { State::Expected } else { State::Done };
        self.threads.push(Thread::new(program, state));
    }

    pub(super) fn program_name(&self, program: ProgramId) -> &'a str {
        &self.programs[program].name
    }

    /// The failure of a run by what a program did.
    pub(super) fn program_error(
        &self,
        program: ProgramId,
        what: impl std::fmt::Display,
    ) -> Failure {
        Failure(format!("program `{}` {what}", self.program_name(program)))
    }

    /// The failure of a run by a message that violates the protocol.
    pub(super) fn protocol_violation(&self, thread: ThreadId, what: &str) -> Failure {
        self.program_error(
            self.threads[thread].program,
            format!("violates the protocol: it {what}"),
        )
    }

    /// The clock of a thread's host.
    pub(super) fn clock_of(&self, thread: ThreadId) -> ClockError {
        let host = self.programs[self.threads[thread].program].host;
        match self.carrier.is_emulated() {
            true => self.engine.clock_of(host),
            false => clock_error(self.system, &self.carrier, host),
        }
    }

    /// What a node's clock reads, or read.
    pub(super) fn read_clock(&self, node: NodeId, at: NetTime) -> SyncedTime {
        match self.carrier.is_emulated() {
            true => self.engine.read_clock(node, at),
            false => clock_error(self.system, &self.carrier, node).read(at),
        }
    }

    /// The node of a thread.
    pub(super) fn host_of(&self, thread: ThreadId) -> NodeId {
        self.programs[self.threads[thread].program].host
    }

    /// When a thread's clock reads `reading` from now on; a reading that lies beyond the run is as
    /// good as one just after its end.
    pub(super) fn when(&self, thread: ThreadId, reading: SyncedTime) -> NetTime {
        self.clock_of(thread).when_from(self.engine.now(), self.in_run(thread, reading))
    }

    /// A reading of a thread's clock, if it lies beyond the run one just after its end.
    pub(super) fn in_run(&self, thread: ThreadId, reading: SyncedTime) -> SyncedTime {
        clamp_to_run(reading, &self.clock_of(thread), self.stop)
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Failure> {
        if self.options.interrupted.load(Ordering::Relaxed) {
            return Err(Failure("the run was interrupted".to_owned()));
        }
        Ok(())
    }

    /// The engine can go no further.
    pub(super) fn overfull(&self, full: &Overfull) -> Failure {
        Failure(full.explain(self.system))
    }

    pub(super) fn hung(&self, program: ProgramId, what: &str) -> Failure {
        let patience = self.options.settings.hang_timeout;
        let waits = |tid: u32| {
            let is_it = |thread: &Thread| {
                let idle = [State::Expected, State::Running, State::Done].contains(&thread.state);
                thread.program == program && thread.tid == tid && !idle
            };
            self.threads.position(is_it).is_some()
        };
        let standing = standing::of(self.members[program].running.group(), waits);
        let standing = if standing.is_empty() { standing } else { format!(" ({standing})") };
        self.program_error(program, format!("hangs: it {what} for {patience}{standing}"))
    }

    /// A thread that is about to be created, by one that is answered with its ticket.
    pub(super) fn announce(&mut self, by: ThreadId) -> Result<ThreadId, Failure> {
        let live = self.threads.iter().filter(|t| t.state != State::Done).count();
        if live >= MAX_THREADS {
            return Err(self.protocol_violation(by, "creates more threads than a run may have"));
        }
        let connection = Connection::new(self.options.settings.time)?;
        let ticket = self.threads.next();
        let mut thread = Thread::new(self.threads[by].program, State::Expected);
        let theirs = connection.theirs;
        (thread.socket, thread.memory) = (Some(connection.socket), connection.memory);
        self.threads.push(thread);
        let with: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        self.answer_with(by, Body::Ticket(ticket.0), &with)?;
        Ok(ticket)
    }

    /// A thread's connection is closed: it has ended, and its program may do so within `patience`.
    pub(super) fn departed(&mut self, thread: ThreadId, patience: Span) -> Result<(), Failure> {
        self.done(thread);
        let program = self.threads[thread].program;
        self.members[program].running.ended_within(patience);
        self.look_after(program)
    }

    /// Virtual time: a program's main thread has left the run. Until the program has exited nothing
    /// else continues, and how it exits counts.
    pub(super) fn await_exit(&mut self, program: ProgramId) -> Result<(), Failure> {
        let until = MonoTime::now() + self.options.settings.hang_timeout;
        while self.members[program].running.ended_within(LOOK_AGAIN).is_none() {
            self.check_interrupt()?;
            if MonoTime::now() > until {
                return Err(self.hung(program, "has left the run, but not exited"));
            }
        }
        self.look_after(program)
    }

    /// A thread has ended.
    pub(super) fn done(&mut self, thread: ThreadId) {
        self.threads[thread].state = State::Done;
        self.threads[thread].socket = None;
        self.threads[thread].memory = None;
        let program = self.threads[thread].program;
        let mut own = self.threads.iter().filter(|thread| thread.program == program);
        if own.all(|thread| thread.state == State::Done) {
            let now = self.engine.now();
            let ends = self.endpoints.iter_mut().filter(|end| end.program == program);
            ends.for_each(|end| end.leave(now));
        }
    }

    /// A program closes one of its ends.
    pub(super) fn close(&mut self, thread: ThreadId, end: u32) -> Result<(), Failure> {
        let program = self.threads[thread].program;
        let id = EndpointId(end);
        let Some(end) = self.endpoints.get_mut(id).filter(|end| end.program == program) else {
            return Err(self.protocol_violation(thread, "closes an endpoint of another program"));
        };
        end.close();
        self.members[program].unread.remove(&id);
        Ok(())
    }

    /// All threads of a program have ended.
    pub(super) fn all_done(&mut self, program: ProgramId) {
        for thread in self.threads.positions() {
            if self.threads[thread].program == program {
                self.done(thread);
            }
        }
    }

    /// Looks whether a program has ended, and how.
    pub(super) fn look_after(&mut self, program: ProgramId) -> Result<(), Failure> {
        match self.members[program].running.ended() {
            Some(status) if !status.success() => {
                let why = self.members[program].refused.as_ref();
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                Err(self
                    .program_error(program, format!("ended before the run did ({status}){why}")))
            }
            Some(_) => {
                self.all_done(program);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Opens an end for a thread and answers it.
    pub(super) fn open(
        &mut self,
        thread: ThreadId,
        role: Role,
        size: Octets,
        name: &str,
    ) -> Result<(), Failure> {
        match self.may_open(thread, role, size, name) {
            Err(why) => {
                self.answer(thread, Body::Refused(&why))?;
                let program = self.threads[thread].program;
                self.members[program].refused = Some(why);
                Ok(())
            }
            Ok((channel, listener)) => self.grant(thread, role, channel, listener),
        }
    }

    /// Which channel and which of its listeners, or why not.
    fn may_open(
        &self,
        thread: ThreadId,
        role: Role,
        size: Octets,
        name: &str,
    ) -> Result<(ChannelId, usize), String> {
        let program = self.programs[self.threads[thread].program];
        let host = &self.system.node(program.host).name;
        let id = self.system.channel_named(name).ok_or_else(|| {
            let known: Vec<_> = self.system.channels.iter().map(|c| c.name.as_str()).collect();
            format!("the description has no channel `{name}`; it has: {}", known.join(", "))
        })?;
        let channel = self.system.channel(id);
        if size != channel.size && size != ANY_SIZE {
            return Err(format!(
                "channel `{name}` carries messages of {} octets, program `{}` opens it for {}",
                channel.size.get(),
                program.name,
                size.get()
            ));
        }
        let place = match role {
            Role::Talker => (channel.talker == program.host).then_some(0),
            Role::Listener => channel.listeners.iter().position(|l| *l == program.host),
        };
        let end = if role == Role::Talker { "talker" } else { "listener" };
        let listener = place.ok_or_else(|| {
            format!("host `{host}`, where `{}` runs, is not a {end} of `{name}`", program.name)
        })?;
        let owner = if role == Role::Talker { 0 } else { 1 + listener };
        match &self.owners[id.index()][owner] {
            Owner::Program(other) if !self.endpoints[*other].closed => Err(format!(
                "the {end} of `{name}` on host `{host}` is opened by `{}` already",
                self.program_name(self.endpoints[*other].program)
            )),
            _ if self.endpoints.len() >= MAX_ENDPOINTS => {
                Err("too many channel endpoints are open".to_owned())
            }
            _ => Ok((id, listener)),
        }
    }

    fn grant(
        &mut self,
        thread: ThreadId,
        role: Role,
        channel: ChannelId,
        listener: usize,
    ) -> Result<(), Failure> {
        let parameters = self.parameters(channel);
        let capacity =
            capacity(&parameters, self.options.settings.duration, self.count_of_endpoints());
        let memory = shared_log::create(capacity)?;
        let log = SharedLog::of_end(&memory, capacity, self.system.channel(channel), role)?;
        let program = self.threads[thread].program;
        let node = self.programs[program].host;
        let own = match self.options.settings.time {
            TimeMode::Real if self.carrier.is_emulated() => Some(socket::pair()?),
            TimeMode::Real | TimeMode::Virtual => None,
        };
        let queue = match &own {
            Some((theirs, ours)) if role == Role::Listener => {
                Some(SocketQueue::new(ours, theirs.as_fd(), STAMP + parameters.frame_octets())?)
            }
            _ => None,
        };
        let end = self.endpoints.next();
        let owner = if role == Role::Talker { 0 } else { 1 + listener };
        let before = match &self.owners[channel.index()][owner] {
            Owner::Program(before) => Some(*before),
            _ => None,
        };
        let start = before.map_or(1, |before| self.endpoints[before].start + 1);
        // One that wrote nothing continues where the one before it ended.
        let mut starts = std::iter::successors(before, |at| self.endpoints[*at].before);
        let last = starts.find_map(|at| self.endpoints[at].last_capture());
        let attachment = self.carrier.attachment_of(self.system.channel(channel), node);
        let Channel { deadline, lifespan, .. } = *self.system.channel(channel);
        let [deadline, lifespan] =
            [deadline, lifespan].map(|span| span.filter(|_| role == Role::Listener));
        let body = Body::Opened {
            end: end.0,
            start,
            last,
            deadline,
            lifespan,
            capacity,
            parameters,
            attachment,
        };
        let mut with = vec![memory.as_fd()];
        with.extend(own.iter().map(|(theirs, _)| theirs.as_fd()));
        let door = self.door(node, channel, role);
        match &door {
            Some(door) => with.push(door.open()?),
            None => with.extend(self.carrier.namespace(node)),
        }
        self.answer_with(thread, body, &with)?;
        let whose = (channel, role, node, program);
        let own = own.map(|(_, ours)| ours);
        let mut opened = Endpoint::new(whose, parameters, (log, memory), capacity, own, queue);
        (opened.start, opened.before, opened.door) = (start, before, door);
        opened.late = self.started;
        let owner = &mut self.owners[channel.index()][owner];
        if let Owner::Nobody(delivered) = std::mem::replace(owner, Owner::Program(end)) {
            opened.delivered = delivered;
        }
        self.endpoints.push(opened);
        Ok(())
    }

    /// Puts a frame that a program handed in on the network, if it is one of that end's.
    pub(super) fn send(
        &mut self,
        program: ProgramId,
        end: u32,
        frame: &[u8],
    ) -> Result<(), Failure> {
        let known = self.endpoints.get(EndpointId(end)).is_some_and(|e| {
            e.program == program
                && e.role == Role::Talker
                && Frame::parse(frame).is_ok_and(|f| {
                    f.header.stream_id == e.parameters.stream_id
                        && f.payload.len() == e.parameters.stream_data_length().get() as usize
                        && f.header.r_tag.is_some() == e.parameters.replicated
                        && frame.len() == e.parameters.frame_octets()
                })
        });
        if !known {
            let what = "violates the protocol: it sends a frame of another channel";
            return Err(self.program_error(program, what));
        }
        // The program's side has refused what is written too late; what it let through just before
        // may come a little later in real time.
        if self.engine.now() < self.stop {
            let channel = self.endpoints[EndpointId(end)].channel;
            let queued = self.engine.send(channel, frame);
            self.endpoints[EndpointId(end)].queued(queued);
        }
        Ok(())
    }

    /// Sets the alarm at which a synthetic talker writes next.
    pub(super) fn set_synthetic_alarm(&mut self, channel: ChannelId) {
        let now = self.engine.now();
        let node = self.system.channel(channel).talker;
        if let Owner::Talker(talker) = &mut self.owners[channel.index()][0] {
            let (next, reading) = talker.next(now, &self.engine.clock_of(node));
            if next < self.write_until {
                self.engine.alarm_when(node, reading, Wakeup::Talker(channel).into());
            }
        }
    }

    /// Lets the synthetic talker of a channel, whose alarm came, write its message.
    pub(super) fn write_synthetic(&mut self, channel: ChannelId) {
        let now = self.engine.now();
        let clock = self.engine.clock_of(self.system.channel(channel).talker);
        if let Owner::Talker(talker) = &mut self.owners[channel.index()][0]
            && let Some(frame) = talker.write(now, clock.read(now))
        {
            let queued = self.engine.send(channel, frame);
            talker.queued(clock.read(queued));
            while let Some(frame) = talker.next_frame() {
                self.engine.send(channel, frame);
            }
        }
        self.set_synthetic_alarm(channel);
    }

    /// The end on which a thread wants to receive.
    pub(super) fn reading_end(&self, thread: ThreadId, end: u32) -> Result<EndpointId, Failure> {
        let program = self.threads[thread].program;
        match self.endpoints.get(EndpointId(end)) {
            Some(e) if e.program == program && e.role == Role::Listener => Ok(EndpointId(end)),
            _ => Err(self.protocol_violation(thread, "reads from an endpoint of another program")),
        }
    }

    /// Keeps what a thread asks for, where that is wanted.
    pub(super) fn note(&mut self, thread: ThreadId, request: &Request<'_>, packet: &[u8]) {
        let Some(calls) = &mut self.options.calls else { return };
        let (threads, programs) = (&self.threads, &self.programs);
        let name = |thread| programs[threads[thread].program].name.as_str();
        calls.note((self.engine.now(), thread), (request, packet), name);
    }

    pub(super) fn decode<'p>(
        &self,
        thread: ThreadId,
        packet: &'p [u8],
    ) -> Result<Request<'p>, Failure> {
        Request::decode(packet).map_err(|ProtocolViolation| {
            self.protocol_violation(thread, "sends a message that the protocol does not have")
        })
    }

    /// Waits for every program's exit; those that will not are reported and killed. Those that
    /// did not join are killed without a word, unless they failed before.
    pub(super) fn await_exits(&mut self) -> Result<(), Failure> {
        for program in self.members.positions() {
            self.check_interrupt()?;
            if !self.programs[program].joins {
                self.look_after(program)?;
                continue;
            }
            match self.members[program].running.ended_within(EXIT_PATIENCE) {
                Some(status) if status.success() => {}
                Some(status) => {
                    return Err(
                        self.program_error(program, format!("ended with {status} after the run"))
                    );
                }
                None => {
                    let what = format!("hangs: it did not exit within {EXIT_PATIENCE} of the end");
                    return Err(self.program_error(program, what));
                }
            }
        }
        Ok(())
    }
}

/// The width of a sample of the interfering load, so that all sources' samples stay few.
fn load_bin(system: &System, duration: Span) -> Span {
    let sources = system.noise.len().max(1) as i64;
    LOAD_BIN.max(Span::from_ns(duration.as_ns() / (MAX_LOAD_SAMPLES / sources).max(1)))
}

/// The error of a node's clock; on an interface, hosts have the machine's network clock.
pub(super) fn clock_error(system: &System, carrier: &Carrier, node: NodeId) -> ClockError {
    if carrier.describes_clocks() { system.clock_of(node) } else { ClockError::default() }
}

/// The address of a host's port.
fn host_address(system: &System, node: NodeId) -> MacAddress {
    match &system.node(node).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => MacAddress::default(),
    }
}
