//! One run's programs, threads and channel ends, as both kinds of time need them.

use crate::clock::MonoTime;
use crate::fabric::modelled::{ModelledListener, ModelledTalker};
use crate::fabric::protocol::{Body, MAX_PACKET, Nonsense, Reply, Request, Token, VERSION};
use crate::fabric::{RunOptions, socket};
use crate::process::Running;
use crate::shared_log::{self, SharedLog};
use onbeat_model::plan::Plan;
use onbeat_model::record::{EndLog, Ending, Record, Role, RunLog, flag};
use onbeat_model::system::{ChannelId, NodeId, NodeKind, System, TimeMode};
use onbeat_model::time::{ClockError, LocalTime, NetTime, Span};
use onbeat_model::units::{MacAddress, Octets};
use onbeat_net::{Engine, Options};
use onbeat_runtime::listener::rebuild;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{Frame, Header};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Marks the engine's tokens that belong to modelled talkers; the others are threads' alarms.
const MODELLED: u64 = 1 << 63;
/// How often a wait for a program looks whether the run was interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The most threads that all programs of a run may have together.
const MAX_THREADS: usize = 4_096;
/// The most channel ends that programs may open.
const MAX_ENDS: usize = 65_536;
/// The most frames that wait at an end for their reader.
const MAX_INBOX: usize = 1_024;
/// The width of a sample of the interfering load.
const LOAD_BIN: Span = Span::from_ms(500);
/// How long a program may take to exit once the run is over and its channels say so.
const EXIT_PATIENCE: Span = Span::from_s(10);
/// How long after its last connection closed a program may take to exit.
const GONE_PATIENCE: Span = Span::from_s(1);

/// Why a run ends before its time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failure(pub(super) String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(format!("the fabric itself failed: {error}"))
    }
}

/// A program of the run.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) running: Running,
    token: Token,
    /// Its main thread.
    main: usize,
    /// Why an end was refused to it last.
    refused: Option<String>,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not connected yet.
    Expected,
    /// It has connected and waits to be let go on.
    Connected,
    /// It waits for the common start.
    AtStart,
    /// It may go on, or is about to.
    Running,
    /// It waits for an alarm.
    Sleeping,
    /// It waits for a frame on an end, and perhaps for an alarm.
    Reading(usize),
    /// It waits for another thread's end.
    Joining(usize),
    /// It has ended.
    Done,
}

/// A thread of a program.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) program: usize,
    pub(super) socket: Option<OwnedFd>,
    pub(super) state: State,
    /// Counts its alarms, so that one which no longer matters is known.
    pub(super) alarms: u32,
}

/// A channel end that a program has opened.
#[derive(Debug)]
pub(super) struct End {
    pub(super) channel: ChannelId,
    role: Role,
    pub(super) node: NodeId,
    pub(super) program: usize,
    log: SharedLog,
    parameters: ChannelParameters,
    /// Talker: when each frame was queued at the port.
    pub(super) transfers: Vec<NetTime>,
    /// Listener: what was delivered, one entry a frame.
    delivered: Vec<Delivered>,
    /// Listener, virtual time: delivered frames that nobody has read yet.
    pub(super) inbox: VecDeque<Arrival>,
    /// Real time: the end's own socket.
    pub(super) own: Option<OwnedFd>,
    /// Frames that found the inbox or the socket full.
    pub(super) overrun: u64,
}

/// A frame on its way from the engine to a program.
#[derive(Debug)]
pub(super) struct Arrival {
    /// When it arrived at the host's port.
    pub(super) arrived: NetTime,
    /// When it was there to be read.
    pub(super) ready: NetTime,
    pub(super) octets: Vec<u8>,
}

/// What the fabric remembers of a frame that it delivered.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    arrived: NetTime,
    ready: NetTime,
    /// Lower 32 bits of the capture time.
    timestamp: u32,
    sequence: u8,
}

impl End {
    /// Remembers that a frame was delivered.
    pub(super) fn note(&mut self, arrived: NetTime, ready: NetTime, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            let Header { timestamp, sequence, .. } = frame.header;
            self.delivered.push(Delivered { arrived, ready, timestamp, sequence });
        }
    }

    /// Remembers that a frame was delivered.
    pub(super) fn deliver(&mut self, arrival: &Arrival) {
        self.note(arrival.arrived, arrival.ready, &arrival.octets);
    }

    /// Keeps a frame for a reader to come.
    pub(super) fn keep(&mut self, arrival: Arrival) {
        if self.inbox.len() >= MAX_INBOX {
            self.overrun += 1;
        } else {
            self.deliver(&arrival);
            self.inbox.push_back(arrival);
        }
    }

    /// Records of the frames that were delivered after the last one of which the program left a
    /// record: the run ended before it read them.
    fn unread(&self, handled: u64, clock: ClockError) -> impl Iterator<Item = Record> {
        let handled = usize::try_from(handled).unwrap_or(usize::MAX).min(self.delivered.len());
        self.delivered[handled..].iter().map(move |frame| {
            let ready = clock.read(frame.ready);
            let capture = rebuild(frame.timestamp, ready);
            let late = ready > capture + self.parameters.fixed_delay;
            Record {
                capture: Some(capture),
                transfer: Some(clock.read(frame.arrived)),
                receive: Some(ready),
                network: Some(frame.ready),
                sequence: u64::from(frame.sequence),
                flags: flag::UNREAD | if late { flag::LATE } else { 0 },
                ..Record::default()
            }
        })
    }
}

/// Who has an end of a channel.
#[derive(Debug)]
pub(super) enum Owner {
    /// No program has opened it.
    Nobody,
    /// `Session::ends` at this position.
    Program(usize),
    /// There is no program on its host.
    Talker(Box<ModelledTalker>),
    /// The same for a listener.
    Listener(ModelledListener),
}

/// One run.
pub(super) struct Session<'a> {
    pub(super) system: &'a System,
    pub(super) options: RunOptions<'a>,
    pub(super) engine: Engine,
    pub(super) members: Vec<Member>,
    pub(super) threads: Vec<Thread>,
    pub(super) ends: Vec<End>,
    /// Per channel: its talker, then its listeners.
    pub(super) owners: Vec<Vec<Owner>>,
    pub(super) listener: OwnedFd,
    pub(super) write_until: NetTime,
    pub(super) stop: NetTime,
    pub(super) lag_max: Span,
    pub(super) packet: Box<[u8; MAX_PACKET]>,
    plan: &'a Plan,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        system: &'a System,
        plan: &'a Plan,
        options: RunOptions<'a>,
        listener: OwnedFd,
    ) -> Self {
        let write_until = NetTime::ZERO + options.settings.duration;
        let slowest = system.channels.iter().map(|c| c.fixed_delay).max().unwrap_or_default();
        // Messages written last are still to arrive, and their readers to wake.
        let stop = write_until + slowest * 2 + Span::from_ms(10);
        let engine = Engine::new(
            system,
            plan,
            Options {
                seed: options.settings.seed,
                host_delays: options.settings.time == TimeMode::Virtual,
                load_bin: LOAD_BIN,
                noise_until: write_until,
            },
        );
        let mut session = Self {
            system,
            plan,
            options,
            engine,
            members: Vec::new(),
            threads: Vec::new(),
            ends: Vec::new(),
            owners: Vec::new(),
            listener,
            write_until,
            stop,
            lag_max: Span::ZERO,
            packet: Box::new([0; MAX_PACKET]),
        };
        session.owners = (0..system.channels.len()).map(|c| session.owners_of(c)).collect();
        session
    }

    fn owners_of(&self, channel: usize) -> Vec<Owner> {
        let id = ChannelId(channel as u32);
        let declared = self.system.channel(id);
        let parameters = self.parameters(id);
        let talker = if self.system.has_program(declared.talker) {
            Owner::Nobody
        } else {
            Owner::Talker(Box::new(ModelledTalker::new(self.system, id, parameters)))
        };
        let listeners = declared.listeners.iter().map(|node| {
            if self.system.has_program(*node) {
                return Owner::Nobody;
            }
            let clock = self.system.node(*node).clock;
            Owner::Listener(ModelledListener::new(clock, parameters))
        });
        std::iter::once(talker).chain(listeners).collect()
    }

    fn parameters(&self, id: ChannelId) -> ChannelParameters {
        let channel = self.system.channel(id);
        ChannelParameters {
            destination: channel.destination,
            source: host_address(self.system, channel.talker),
            stream_id: channel.stream_id,
            vlan: channel.vlan,
            // Without a reservation a bridge at the edge of the SRP domain would remap the
            // priority anyway (802.1Q 6.9.4).
            pcp: if self.plan.channel(id).protected { channel.pcp } else { 0 },
            size: channel.size,
            interval: channel.interval,
            tolerance: channel.tolerance(),
            fixed_delay: channel.fixed_delay,
        }
    }

    /// Takes a program that has been started into the run.
    pub(super) fn admit(&mut self, running: Running, token: Token) {
        let (program, main) = (self.members.len(), self.threads.len());
        self.members.push(Member { running, token, main, refused: None });
        let state = State::Expected;
        self.threads.push(Thread { program, socket: None, state, alarms: 0 });
    }

    pub(super) fn program_name(&self, program: usize) -> &'a str {
        &self.system.programs[program].name
    }

    fn blame(&self, program: usize, what: impl std::fmt::Display) -> Failure {
        Failure(format!("program `{}` {what}", self.program_name(program)))
    }

    pub(super) fn nonsense(&self, thread: usize, what: &str) -> Failure {
        self.blame(self.threads[thread].program, format!("talks nonsense: it {what}"))
    }

    /// The clock of a thread's host.
    pub(super) fn clock_of(&self, thread: usize) -> ClockError {
        let host = self.system.programs[self.threads[thread].program].host;
        self.system.node(host).clock
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Failure> {
        if self.options.interrupted.load(Ordering::Relaxed) {
            return Err(Failure("the run was interrupted".to_owned()));
        }
        Ok(())
    }

    /// Waits until a thread has connected.
    pub(super) fn await_thread(&mut self, thread: usize) -> Result<(), Failure> {
        let until = MonoTime::now() + self.options.settings.hang_timeout;
        while self.threads[thread].socket.is_none() {
            self.check_interrupt()?;
            let program = self.threads[thread].program;
            if let Some(status) = self.members[program].running.ended() {
                return Err(self.blame(program, format!("ended ({status}) before it began")));
            }
            if MonoTime::now() > until {
                return Err(self.hung(program, "has not called onbeat_open"));
            }
            if socket::readable(&self.listener, Span::from_ms(20))? {
                self.accept()?;
            }
        }
        Ok(())
    }

    fn hung(&self, program: usize, what: &str) -> Failure {
        let patience = self.options.settings.hang_timeout;
        self.blame(program, format!("hangs: it {what} for {patience}"))
    }

    /// Takes one connection. One that does not prove that it belongs to the run is refused.
    pub(super) fn accept(&mut self) -> Result<Option<usize>, Failure> {
        let Ok(connection) = socket::accept(&self.listener) else { return Ok(None) };
        set_socket_timeout(&connection, Timeout::Recv, Some(LOOK_AGAIN))
            .map_err(io::Error::from)?;
        let mut packet = [0; MAX_PACKET];
        let Ok(Some(length)) = socket::receive(&connection, &mut packet) else { return Ok(None) };
        let refused = match Request::decode(&packet[..length]) {
            Ok(Request::Hello { version, .. }) if version != VERSION => {
                "this program was built against another version of Onbeat: build it again"
            }
            Ok(Request::Hello { token, ticket, .. }) => match self.thread_for(token, ticket) {
                Some(thread) => {
                    self.threads[thread].socket = Some(connection);
                    self.threads[thread].state = State::Connected;
                    return Ok(Some(thread));
                }
                None => "the fabric expects no such program or thread",
            },
            _ => "the first message must be a greeting",
        };
        let (local, network, body) = (LocalTime::ZERO, NetTime::ZERO, Body::Refused(refused));
        let length = Reply { local, network, body }.encode(&mut packet);
        // A stranger that does not wait for its refusal does not need it.
        let _ = socket::try_send(&connection, &[io::IoSlice::new(&packet[..length])]);
        Ok(None)
    }

    fn thread_for(&self, token: Token, ticket: Option<u32>) -> Option<usize> {
        let program = self.members.iter().position(|m| m.token == token)?;
        let thread = match ticket {
            None => self.members[program].main,
            Some(ticket) => ticket as usize,
        };
        let found = self.threads.get(thread)?;
        (found.program == program && found.state == State::Expected).then_some(thread)
    }

    /// A thread that is about to be created.
    pub(super) fn announce(&mut self, by: usize) -> Result<usize, Failure> {
        if self.threads.len() >= MAX_THREADS {
            return Err(self.nonsense(by, "creates more threads than a run may have"));
        }
        let program = self.threads[by].program;
        let state = State::Expected;
        self.threads.push(Thread { program, socket: None, state, alarms: 0 });
        Ok(self.threads.len() - 1)
    }

    /// Answers a thread. One that is gone is found out when it is listened to.
    pub(super) fn answer(&mut self, thread: usize, body: Body<'_>) {
        self.answer_with(thread, body, &[]);
    }

    pub(super) fn answer_with(&mut self, thread: usize, body: Body<'_>, with: &[BorrowedFd<'_>]) {
        let network = self.engine.now();
        let reply = Reply { local: self.clock_of(thread).read(network), network, body };
        let mut packet = [0; MAX_PACKET];
        let length = reply.encode(&mut packet);
        if let Some(socket) = &self.threads[thread].socket {
            let _ = if with.is_empty() {
                socket::send(socket, &[io::IoSlice::new(&packet[..length])])
            } else {
                socket::send_with(socket, &packet[..length], with)
            };
        }
    }

    /// Waits for a thread's next request, which is then in `self.packet`; `None` when its
    /// connection is closed.
    pub(super) fn listen_to(&mut self, thread: usize) -> Result<Option<usize>, Failure> {
        let mut until = None;
        loop {
            let Some(socket) = &self.threads[thread].socket else { return Ok(None) };
            match socket::receive(socket, &mut self.packet[..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Ok(other?),
            }
            self.check_interrupt()?;
            let now = MonoTime::now();
            if now > *until.get_or_insert(now + self.options.settings.hang_timeout) {
                let what = "has computed without calling Onbeat";
                return Err(self.hung(self.threads[thread].program, what));
            }
        }
    }

    /// A thread's connection is closed: it has ended, and perhaps its program has.
    pub(super) fn departed(&mut self, thread: usize) -> Result<(), Failure> {
        self.threads[thread].state = State::Done;
        self.threads[thread].socket = None;
        let program = self.threads[thread].program;
        match self.members[program].running.ended_within(GONE_PATIENCE) {
            Some(status) if !status.success() => {
                let why = self.members[program].refused.as_ref();
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                Err(self.blame(program, format!("ended before the run did ({status}){why}")))
            }
            Some(_) => {
                for other in &mut self.threads {
                    if other.program == program {
                        other.state = State::Done;
                        other.socket = None;
                    }
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Opens an end for a thread and answers it.
    pub(super) fn open(
        &mut self,
        thread: usize,
        role: Role,
        size: Octets,
        name: &str,
    ) -> Result<(), Failure> {
        match self.may_open(thread, role, size, name) {
            Err(why) => {
                self.answer(thread, Body::Refused(&why));
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
        thread: usize,
        role: Role,
        size: Octets,
        name: &str,
    ) -> Result<(ChannelId, usize), String> {
        let program = &self.system.programs[self.threads[thread].program];
        let host = &self.system.node(program.host).name;
        let id = self.system.channel_named(name).ok_or_else(|| {
            let known: Vec<_> = self.system.channels.iter().map(|c| c.name.as_str()).collect();
            format!("the description has no channel `{name}`; it has: {}", known.join(", "))
        })?;
        let channel = self.system.channel(id);
        if size != channel.size {
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
            format!("host `{host}`, where `{}` runs, is no {end} of `{name}`", program.name)
        })?;
        let owner = if role == Role::Talker { 0 } else { 1 + listener };
        match &self.owners[id.index()][owner] {
            Owner::Program(other) => Err(format!(
                "the {end} of `{name}` on host `{host}` is opened by `{}` already",
                self.program_name(self.ends[*other].program)
            )),
            _ if self.ends.len() >= MAX_ENDS => Err("too many channel ends are open".to_owned()),
            _ => Ok((id, listener)),
        }
    }

    fn grant(
        &mut self,
        thread: usize,
        role: Role,
        channel: ChannelId,
        listener: usize,
    ) -> Result<(), Failure> {
        let parameters = self.parameters(channel);
        let capacity = capacity(&parameters, self.options.settings.duration);
        let memory = shared_log::create(capacity)?;
        let log = SharedLog::map(&memory, capacity)?;
        let own = match self.options.settings.time {
            TimeMode::Virtual => None,
            TimeMode::Real => Some(socket::pair()?),
        };
        let end = self.ends.len();
        let body = Body::Opened { end: end as u32, capacity, parameters };
        let mut with = vec![memory.as_fd()];
        with.extend(own.iter().map(|(theirs, _)| theirs.as_fd()));
        self.answer_with(thread, body, &with);
        let program = self.threads[thread].program;
        let reserve = if role == Role::Talker { capacity as usize } else { 0 };
        self.ends.push(End {
            channel,
            role,
            node: self.system.programs[program].host,
            program,
            log,
            parameters,
            transfers: Vec::with_capacity(reserve),
            delivered: Vec::with_capacity(capacity as usize - reserve),
            inbox: VecDeque::new(),
            own: own.map(|(_, ours)| ours),
            overrun: 0,
        });
        let owner = if role == Role::Talker { 0 } else { 1 + listener };
        self.owners[channel.index()][owner] = Owner::Program(end);
        Ok(())
    }

    /// Puts a frame that a program handed in on the network, if it is one of that end's.
    pub(super) fn send(&mut self, program: usize, end: u32, frame: &[u8]) -> Result<(), Failure> {
        let known = self.ends.get(end as usize).is_some_and(|e| {
            e.program == program
                && e.role == Role::Talker
                && Frame::parse(frame).is_ok_and(|f| {
                    f.header.stream_id == e.parameters.stream_id
                        && f.payload.len() == e.parameters.size.get() as usize
                })
        });
        if !known {
            let what = "talks nonsense: it sends a frame that is not of its channel";
            return Err(self.blame(program, what));
        }
        // The program's side has refused what is written too late; what it let through just before
        // may come a little later in real time.
        if self.engine.now() < self.stop {
            let channel = self.ends[end as usize].channel;
            let queued = self.engine.send(channel, frame);
            self.ends[end as usize].transfers.push(queued);
        }
        Ok(())
    }

    /// Sets the alarm at which a modelled talker writes next.
    pub(super) fn set_modelled_alarm(&mut self, channel: usize) {
        if let Owner::Talker(talker) = &self.owners[channel][0] {
            let next = talker.next();
            if next < self.write_until {
                self.engine.alarm(next, MODELLED | channel as u64);
            }
        }
    }

    /// Lets the modelled talker whose alarm came write its message. False: the alarm was not one
    /// of a modelled talker.
    pub(super) fn modelled_talker(&mut self, token: u64) -> bool {
        if token & MODELLED == 0 {
            return false;
        }
        let channel = (token & !MODELLED) as usize;
        let now = self.engine.now();
        if let Owner::Talker(talker) = &mut self.owners[channel][0] {
            let queued = self.engine.send(ChannelId(channel as u32), talker.write(now));
            talker.queued(queued);
        }
        self.set_modelled_alarm(channel);
        true
    }

    /// The end on which a thread wants to receive.
    pub(super) fn reading_end(&self, thread: usize, end: u32) -> Result<usize, Failure> {
        let program = self.threads[thread].program;
        match self.ends.get(end as usize) {
            Some(e) if e.program == program && e.role == Role::Listener => Ok(end as usize),
            _ => Err(self.nonsense(thread, "reads from an end that is not its own")),
        }
    }

    pub(super) fn decode<'p>(
        &self,
        thread: usize,
        packet: &'p [u8],
    ) -> Result<Request<'p>, Failure> {
        Request::decode(packet)
            .map_err(|Nonsense| self.nonsense(thread, "sent a message that is not of the protocol"))
    }

    /// Waits for every program's exit; those that will not are reported and killed.
    pub(super) fn await_exits(&mut self) -> Result<(), Failure> {
        for program in 0..self.members.len() {
            match self.members[program].running.ended_within(EXIT_PATIENCE) {
                Some(status) if status.success() => {}
                Some(status) => {
                    return Err(self.blame(program, format!("ended with {status} after the run")));
                }
                None => {
                    let what = format!("hangs: it did not exit within {EXIT_PATIENCE} of the end");
                    return Err(self.blame(program, what));
                }
            }
        }
        Ok(())
    }

    /// Gathers what was recorded. Kills what still runs.
    pub(super) fn finish(mut self, ending: Ending) -> (RunLog, Vec<String>) {
        self.members.clear();
        let mut notes = Vec::new();
        let owners = std::mem::take(&mut self.owners);
        let mut ends = Vec::new();
        for (channel, owners) in owners.into_iter().enumerate() {
            for (place, owner) in owners.into_iter().enumerate() {
                ends.push(self.end_log(ChannelId(channel as u32), place, owner, &mut notes));
            }
        }
        let settings = &self.options.settings;
        let real = settings.time == TimeMode::Real;
        let log = RunLog {
            scenario: self.options.scenario.clone(),
            seed: settings.seed,
            time: settings.time,
            duration: settings.duration,
            protected: settings.protected,
            ends,
            load: self.engine.load().to_vec(),
            ending,
            lag_max: real.then_some(self.lag_max),
        };
        (log, notes)
    }

    fn end_log(
        &self,
        channel: ChannelId,
        place: usize,
        owner: Owner,
        notes: &mut Vec<String>,
    ) -> EndLog {
        let declared = self.system.channel(channel);
        let (role, node) = match place {
            0 => (Role::Talker, declared.talker),
            n => (Role::Listener, declared.listeners[n - 1]),
        };
        let host = &self.system.node(node).name;
        let (records, unrecorded, malformed) = match owner {
            Owner::Nobody => {
                let end = if place == 0 { "talker" } else { "listener" };
                let name = &declared.name;
                notes.push(format!(
                    "no program on host `{host}` opened the {end} of channel `{name}`"
                ));
                (Vec::new(), 0, 0)
            }
            Owner::Talker(modelled) => (modelled.records, 0, 0),
            Owner::Listener(modelled) => {
                let malformed = modelled.malformed();
                (modelled.records, 0, malformed)
            }
            Owner::Program(end) => {
                let end = &self.ends[end];
                if end.overrun > 0 {
                    notes.push(format!(
                        "{} frames of channel `{}` were lost on host `{host}`: nobody read them",
                        end.overrun, declared.name
                    ));
                }
                let (mut records, unrecorded, malformed) = end.log.collect();
                let clock = self.system.node(node).clock;
                for (record, queued) in records.iter_mut().zip(&end.transfers) {
                    record.transfer = Some(clock.read(*queued));
                }
                let handled = records.len() as u64 + unrecorded + malformed;
                records.extend(end.unread(handled, clock));
                (records, unrecorded, malformed)
            }
        };
        EndLog { channel, role, node, records, unrecorded, malformed }
    }
}

/// How many records an end needs for a run: twice what the declared rate allows, and some.
fn capacity(parameters: &ChannelParameters, duration: Span) -> u32 {
    let messages = duration.as_ns() / parameters.interval.as_ns().max(1);
    let wanted = messages.saturating_mul(2).saturating_add(1_024);
    u32::try_from(wanted).unwrap_or(u32::MAX).min(shared_log::MAX_CAPACITY)
}

/// The address of a host's port.
fn host_address(system: &System, node: NodeId) -> MacAddress {
    match &system.node(node).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => MacAddress::default(),
    }
}
