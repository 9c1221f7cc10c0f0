//! A program's channels on an interface, without a coordinator: what an engineer links into a
//! product.

use crate::clock::want_exact_timers;
use crate::context::{ANY_SIZE, EndpointIo, Listener, Talker};
use crate::coordinator::client::SetupError;
use crate::instrument::{Instruments, Watch};
use crate::interface::channel_io::Claim;
use crate::interface::precautions::{LatencyHeld, Precautions, lock_memory};
use crate::interface::presence::{Followed, LinkMonitor};
use crate::interface::srp::{self, Request, Reservation};
use crate::interface::table::{
    ChannelTable, TABLE_EXTENSION, TABLE_OCTETS, TableEndpoint, WrongTable,
};
use crate::interface::{
    ClockKind, Interface, InterfaceIo, InterfaceOptions, IpVersion, Limits, NetworkClock,
    PacketSocket, Synchronisation, Timebase, Transport, TransportKind, UdpSocket, XdpSocket,
    instance, launch, packet, station,
};
use crate::keys::{EndKeys, KeyStore};
use crate::recorder::Recorder;
use crate::regular;
use crate::selector::SOONER;
use crate::shared_log::{Board, Identity};
use onbeat_model::fragment::MESSAGE_MAX;
use onbeat_model::limits;
use onbeat_model::plan::ChannelPlan;
use onbeat_model::record::Role;
use onbeat_model::system::{Channel, ReservationMode};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel::{ListenerEndpoint, TalkerEndpoint};
use onbeat_runtime::channel_io::Limited;
use onbeat_runtime::launch::LaunchTimes;
use onbeat_runtime::talker::ChannelParameters;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// How AF_XDP works on its interface is told once.
static TOLD_XDP: Once = Once::new();

/// The most channels that a program declares.
pub const MAX_CHANNELS: usize = 4_096;

/// The furthest that the epoch may be from that of the network clock: 127 years.
const MAX_EPOCH: u64 = 4_000_000_000_000_000_000;

fn no_memory(error: std::io::Error) -> SetupError {
    SetupError::Refused(format!("no memory for counters: {error}"))
}

/// The environment variable that names the interface of a program outside of a run.
pub(crate) const INTERFACE: &str = "ONBEAT_INTERFACE";
/// The one that names the table of its host's channels.
const SYSTEM: &str = "ONBEAT_SYSTEM";
/// The one that chooses the transport.
const TRANSPORT: &str = "ONBEAT_TRANSPORT";
/// The one that says, in nanoseconds, by how much the clock may be wrong for a program to start.
const CLOCK_WITHIN: &str = "ONBEAT_CLOCK_WITHIN_NS";

/// How a program reaches the network.
#[derive(Clone, Debug)]
pub struct InterfaceSettings {
    /// The interface's name.
    pub name: String,
    /// How frames get there.
    pub transport: TransportKind,
    /// What else to do.
    pub options: InterfaceOptions,
    /// Which network time programs call zero, in nanoseconds.
    pub epoch: i64,
    /// Which clock is the host's copy of the network clock.
    pub clock: ClockKind,
    /// By how much that may be wrong before messages are marked uncertain (`tu`).
    pub clock_error: Span,
    /// Refuse to start while it may be wrong by more than that, or is unknown.
    pub clock_required: bool,
    /// Where ptp4l, if it runs, is asked how well the clock is synchronised.
    pub ptp4l: PathBuf,
    /// Its PTP domain.
    pub ptp_domain: u8,
    /// Where the delay log goes; the log of timed waits goes beside it
    /// ([`crate::instrument::waits_path`]).
    pub log: Option<PathBuf>,
    /// Write a marker into the kernel's trace for each message.
    pub trace: bool,
    /// Freeze the kernel's trace when a message's latency is longer.
    pub break_at: Option<Span>,
    /// Who reserves bandwidth for channels: with [`ReservationMode::Srp`] each end asks the
    /// reservation service of the interface, and a talker sends only while that has reserved.
    pub reservation: ReservationMode,
    /// The channels are carried by the station of the interface, whose service gives their ends.
    pub by_station: bool,
    /// A file of keys; else the environment says where keys are ([`crate::keys`]).
    pub key_file: Option<PathBuf>,
    /// What is done against delays of the program itself.
    pub precautions: Precautions,
}

impl Default for InterfaceSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            transport: TransportKind::default(),
            options: InterfaceOptions::default(),
            epoch: 0,
            clock: ClockKind::Auto,
            clock_error: Span::from_us(1),
            clock_required: false,
            ptp4l: PathBuf::from("/var/run/ptp4l"),
            ptp_domain: 0,
            log: None,
            trace: false,
            break_at: None,
            reservation: ReservationMode::Plan,
            by_station: false,
            key_file: None,
            precautions: Precautions::default(),
        }
    }
}

/// A program's channels on an interface.
#[derive(Clone, Debug)]
pub struct InterfaceContext {
    base: Arc<Timebase>,
    settings: Arc<InterfaceSettings>,
    interface: Interface,
    /// Follows the interface; `None` where the ends are a station's, or the system refuses it.
    monitor: Option<Arc<LinkMonitor>>,
    board: Arc<Board>,
    instruments: Instruments,
    keys: Arc<KeyStore>,
    declared: Arc<Mutex<Vec<Declared>>>,
    /// Whether it was said who keeps launch times.
    told_launches: Arc<Once>,
    /// Held as long as a clone of the context lives.
    _latency: Option<Arc<LatencyHeld>>,
}

/// A channel; of a table, a host's end of one.
#[derive(Clone, Debug)]
struct Declared {
    name: String,
    parameters: ChannelParameters,
    /// The host and its end, if a table says so.
    end: Option<(Arc<str>, Role)>,
    /// Its listeners here receive what leaves by the interface, too.
    own_host: bool,
    open: Arc<OpenEnds>,
}

/// How many ends of a channel the program has open.
#[derive(Debug, Default)]
struct OpenEnds {
    talkers: AtomicU32,
    listeners: AtomicU32,
}

impl InterfaceContext {
    /// Opens the interface, starts the clock; says on standard error what is wrong with it.
    pub fn open(mut settings: InterfaceSettings) -> Result<Self, SetupError> {
        settings.precautions = settings.precautions.permitted()?;
        if settings.epoch.unsigned_abs() > MAX_EPOCH {
            return Err(SetupError::Refused(format!("the epoch is beyond ±{MAX_EPOCH} ns")));
        }
        let interface = Interface::named(&settings.name)
            .map_err(|error| SetupError::Interface { name: settings.name.clone(), error })?;
        if !interface.up {
            return Err(SetupError::Refused(format!("interface `{}` is down", interface.name)));
        }
        let told_launches = Once::new();
        if settings.options.launch_time {
            told_launches.call_once(|| warn_unless_launched(&interface));
        }
        let keys = KeyStore::open(settings.key_file.clone()).map_err(SetupError::Refused)?;
        want_exact_timers();
        let base = Arc::new(Timebase::default());
        let clock = NetworkClock::open(&interface, &settings)
            .map_err(|error| SetupError::Interface { name: interface.name.clone(), error })?;
        if settings.clock_required {
            refuse_unsynchronised(&interface.name, clock.synchronisation())?;
        }
        base.begin(clock, Limits::NONE);
        let monitor = if settings.by_station { None } else { follow(&interface) };
        let InterfaceSettings { log, trace, break_at, .. } = &settings;
        let watch = Watch { log: log.clone(), trace: *trace, break_at: *break_at };
        let instruments = Instruments::new(&watch, &base, settings.epoch)?;
        let board = Arc::new(Board::new().map_err(no_memory)?);
        Ok(Self {
            base,
            // Last: it is for what is there.
            _latency: settings.precautions.take(),
            settings: Arc::new(settings),
            interface,
            monitor,
            board,
            instruments,
            keys,
            declared: Arc::default(),
            told_launches: Arc::new(told_launches),
        })
    }

    /// Ends set-up: what was opened since is there without a page fault, too.
    pub(crate) fn lock_memory(&self) {
        if self.settings.precautions.lock_memory {
            lock_memory(true);
        }
    }

    /// Opens the interface that the environment names, with the channels of the table that it
    /// names ([`InterfaceContext::with_table`]).
    pub(crate) fn from_environment(
        interface: &OsStr,
        precautions: Precautions,
    ) -> Result<Self, SetupError> {
        let refuse = |why: String| SetupError::Refused(why);
        let name = interface.to_str().ok_or_else(|| refuse(format!("{INTERFACE} is not UTF-8")))?;
        let transport = match crate::environment::var(TRANSPORT) {
            Err(_) => TransportKind::default(),
            Ok(name) => TransportKind::named(&name)
                .ok_or_else(|| refuse(format!("{TRANSPORT} is packet, xdp, udp4 or udp6")))?,
        };
        let file = crate::environment::var_os(SYSTEM).ok_or_else(|| {
            refuse(format!("{SYSTEM} must name the table of this host's channels"))
        })?;
        let table =
            read_table(Path::new(&file)).map_err(|why| refuse(format!("{SYSTEM}: {why}")))?;
        Self::of_host(name, table, transport, precautions)
    }

    /// Opens an interface with the channels of a host's table. Its epoch is the next full second
    /// of network time. How wrong the clock may be is the environment's to say.
    pub fn with_table(
        name: &str,
        table: &Path,
        transport: TransportKind,
        precautions: Precautions,
    ) -> Result<Self, SetupError> {
        let table = read_table(table).map_err(SetupError::Refused)?;
        Self::of_host(name, table, transport, precautions)
    }

    fn of_host(
        name: &str,
        table: ChannelTable,
        transport: TransportKind,
        precautions: Precautions,
    ) -> Result<Self, SetupError> {
        let refuse = |why: String| SetupError::Refused(why);
        let now = NetworkClock::Tai { epoch: 0, watch: None }.now().as_ns();
        let epoch = (now.div_euclid(SECOND) + 1) * SECOND;
        let mut settings = InterfaceSettings {
            name: name.to_owned(),
            transport,
            epoch,
            precautions,
            ..InterfaceSettings::default()
        };
        if let Ok(text) = crate::environment::var(CLOCK_WITHIN) {
            settings.clock_error = clock_within(&text).map_err(refuse)?;
            settings.clock_required = true;
        }
        settings.reservation = table.reservation;
        settings.by_station = table.slot_error.is_some();
        if settings.by_station && transport != TransportKind::Packet {
            let why = "the station of this host sends frames itself";
            return Err(refuse(format!("{TRANSPORT} is for hosts without one: {why}")));
        }
        let context = Self::open(settings)?;
        let host: Arc<str> = table.host.into();
        for TableEndpoint { name, role, parameters, .. } in &table.ends {
            context.declare_for(name, *parameters, Some((Arc::clone(&host), *role)))?;
        }
        Ok(context)
    }

    /// Makes a channel known. What both ends must agree on is checked here as far as one end can.
    pub fn declare(&self, name: &str, parameters: ChannelParameters) -> Result<(), SetupError> {
        self.declare_for(name, parameters, None)
    }

    /// The same; a table says whose the one end is that may be opened.
    fn declare_for(
        &self,
        name: &str,
        parameters: ChannelParameters,
        end: Option<(Arc<str>, Role)>,
    ) -> Result<(), SetupError> {
        self.base.check_owner()?;
        let refuse = |why: String| Err(SetupError::Refused(format!("channel `{name}`: {why}")));
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(why) = check(name, &parameters) {
            return refuse(why);
        }
        let mut open = Arc::default();
        let mut own_host = false;
        for other in &mut *declared {
            let is_other_end = other.end.as_ref().zip(end.as_ref()).is_some_and(|(a, b)| a != b);
            if is_other_end && other.name == name && is_same(&other.parameters, &parameters) {
                (own_host, other.own_host) = (true, true);
                open = Arc::clone(&other.open);
            } else if other.name == name {
                return refuse("another channel has this name".to_owned());
            } else if other.parameters.stream_id == parameters.stream_id {
                return refuse(format!("channel `{}` has the same stream id", other.name));
            }
        }
        if declared.len() >= MAX_CHANNELS {
            return refuse(format!("there are {MAX_CHANNELS} channels already"));
        }
        let parameters = ChannelParameters {
            // A station's slots say who talks, not addresses.
            talker_address: parameters.talker_address.filter(|_| !self.settings.by_station),
            source: self.interface.address,
            epoch: self.settings.epoch,
            // A synchronised talker's may be as wrong as this one's.
            clock_error: self.settings.clock_error * 2,
            ..parameters
        };
        declared.push(Declared { name: name.to_owned(), parameters, end, own_host, open });
        Ok(())
    }

    /// Says that a declared channel's talker is on this host, perhaps this program: listeners here
    /// that are opened from now on receive what leaves by the interface, too.
    /// Of a table that has both ends this is known.
    pub fn hear_own_host(&self, name: &str) -> Result<(), SetupError> {
        self.base.check_owner()?;
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = declared.iter_mut().find(|d| d.name == name) else {
            let why = format!("channel `{name}`: it is not declared");
            return Err(SetupError::Refused(why));
        };
        found.own_host = true;
        Ok(())
    }

    /// Names the address that a channel's talker sends from: listeners that are opened from now on
    /// take the frames of that station only, and count those of others.
    pub fn name_talker(&self, name: &str, talker: MacAddress) -> Result<(), SetupError> {
        self.base.check_owner()?;
        let refuse = |why: &str| Err(SetupError::Refused(format!("channel `{name}`: {why}")));
        if talker.is_multicast() || talker == MacAddress::default() {
            return refuse(&format!("{talker} is no station's address"));
        }
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Some(talker).filter(|_| !self.settings.by_station);
        let mut is_declared = false;
        for found in declared.iter_mut().filter(|d| d.name == name) {
            found.parameters.talker_address = address;
            is_declared = true;
        }
        if is_declared { Ok(()) } else { refuse("it is not declared") }
    }

    fn find(&self, name: &str, size: Octets, role: Role) -> Result<Declared, SetupError> {
        self.base.check_owner()?;
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |d: &&Declared| d.end.as_ref().is_none_or(|(_, own)| *own == role);
        let mut named = declared.iter().filter(|d| is_called(d, name));
        let Some(found) = named.clone().find(is_its).or(named.next()) else {
            let mut known: Vec<_> = declared.iter().map(|d| d.name.as_str()).collect();
            known.dedup();
            let known = known.join(", ");
            let why = format!("there is no channel `{name}`; there are: {known}");
            return Err(SetupError::Refused(why));
        };
        if size != found.parameters.size && size != ANY_SIZE {
            return Err(SetupError::Refused(format!(
                "channel `{name}` carries messages of {} octets, not of {}",
                found.parameters.size.get(),
                size.get()
            )));
        }
        if let Some((host, own)) = &found.end
            && *own != role
        {
            let end = if role == Role::Talker { "talker" } else { "listener" };
            return Err(SetupError::Refused(format!("host `{host}` is not a {end} of `{name}`")));
        }
        Ok(found.clone())
    }

    /// Opens the writing end of a channel for messages of `size` octets.
    pub fn open_talker(&self, name: &str, size: Octets) -> Result<Talker, SetupError> {
        let found = self.find(name, size, Role::Talker)?;
        let (name, parameters) = (found.name.as_str(), found.parameters);
        let claim = self.claim(&found, Role::Talker)?;
        let keys = self.keys_of(name, &parameters)?;
        let seal = EndKeys::seal(keys.as_ref(), parameters.integrity);
        let seal = seal.map_err(SetupError::Refused)?;
        let io = self.io(&found, Role::Talker, keys, claim)?;
        let recorder = self.recorder(name, &parameters, Role::Talker)?;
        let talker = onbeat_runtime::talker::Talker::of_instance(parameters, instance());
        let talker = talker.sealed(seal);
        Ok(TalkerEndpoint::new(talker, io, recorder))
    }

    /// Opens a reading end of a channel for messages of `size` octets.
    pub fn open_listener(&self, name: &str, size: Octets) -> Result<Listener, SetupError> {
        let found = self.find(name, size, Role::Listener)?;
        let (name, parameters) = (found.name.as_str(), found.parameters);
        let claim = self.claim(&found, Role::Listener)?;
        let keys = self.keys_of(name, &parameters)?;
        let since = self.base.instant()?.local;
        let guard = EndKeys::guard(keys.as_ref(), parameters.integrity, since);
        let io = self.io(&found, Role::Listener, keys, claim)?;
        let recorder = self.recorder(name, &parameters, Role::Listener)?;
        let listener = onbeat_runtime::listener::Listener::joining(parameters).guarded(guard);
        let mut end = ListenerEndpoint::new(listener, io, recorder);
        end.count_sooner(&SOONER);
        if self.settings.options.follow_schedule {
            follow_schedule(&mut end);
        }
        Ok(end)
    }

    /// The program's keys.
    pub(crate) fn keys(&self) -> &KeyStore {
        &self.keys
    }

    fn keys_of(
        &self,
        name: &str,
        parameters: &ChannelParameters,
    ) -> Result<Option<EndKeys>, SetupError> {
        let keys = self.keys.of_end(parameters);
        keys.map_err(|why| SetupError::Refused(format!("channel `{name}`: {why}")))
    }

    /// An end's right to be open beside the others of the program.
    fn claim(&self, found: &Declared, role: Role) -> Result<Claim, SetupError> {
        let Declared { name, open, own_host, .. } = found;
        let (own, other) = match role {
            Role::Talker => (&open.talkers, &open.listeners),
            Role::Listener => (&open.listeners, &open.talkers),
        };
        let before = own.fetch_add(1, Ordering::AcqRel);
        let claim = Box::new(OpenEnd { open: Arc::clone(open), role });
        if role == Role::Talker && before > 0 {
            let why = format!("this program writes to channel `{name}` already");
            return Err(SetupError::Refused(why));
        }
        let comes_back = *own_host
            || self.interface.loopback
            || matches!(self.settings.transport, TransportKind::Udp4 | TransportKind::Udp6);
        if !comes_back && other.load(Ordering::Acquire) > 0 {
            return Err(SetupError::Refused(format!(
                "this program has the other end of channel `{name}`, and what leaves by the \
                 interface does not come back: declare it for its own host, too (ONBEAT_OWN_HOST)"
            )));
        }
        Ok(claim)
    }

    fn io(
        &self,
        found: &Declared,
        role: Role,
        keys: Option<EndKeys>,
        claim: Claim,
    ) -> Result<Limited<EndpointIo>, SetupError> {
        let Declared { name, parameters, own_host, .. } = found;
        let mut settings = self.settings.as_ref().clone();
        settings.options.longest = self.longest();
        settings.options.own_host = *own_host;
        if role == Role::Talker && parameters.launch.is_some() {
            settings.options.launch_time = true;
            self.told_launches.call_once(|| warn_unless_launched(&self.interface));
        }
        // It may have been replaced since.
        let known = &self.interface.name;
        let interface = Interface::named(known)
            .map_err(|error| SetupError::Interface { name: known.clone(), error })?;
        let wire = match settings.by_station {
            true if *own_host && role == Role::Listener => {
                let why = "the station of this host gives its ends what comes, not what it sends";
                return Err(SetupError::Refused(format!("channel `{name}`: {why}")));
            }
            true => self.station_end(name, parameters, role)?,
            false => attach(&interface, &settings, parameters, role)?,
        };
        if let Some((monitor, anchor)) = self.monitor.as_ref().zip(wire.anchor()) {
            monitor.follow(Followed {
                anchor,
                link: wire.link(),
                transport: settings.transport,
                role,
                channel: *parameters,
                options: settings.options,
                attached: interface.index,
            });
        }
        if let Transport::Xdp(socket) = &wire {
            TOLD_XDP.call_once(|| eprintln!("onbeat: {}", socket.note()));
        }
        let mut io = InterfaceIo::claiming(Arc::clone(&self.base), wire, Some(claim)).keyed(keys);
        io = io.in_frames(parameters.fragments().count).followed_by(self.monitor.clone());
        if self.settings.reservation == ReservationMode::Srp {
            let reservation = self.reserve(parameters, role).map_err(|why| {
                SetupError::Refused(format!("channel `{name}` cannot be reserved: {why}"))
            })?;
            io.reserve(reservation, parameters.pcp, self.settings.options);
        }
        Ok(Limited::new(EndpointIo::Interface(Box::new(io))))
    }

    /// How many frames the longest message has that is declared.
    fn longest(&self) -> u32 {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.iter().map(|one| one.parameters.fragments().count).max().unwrap_or(1)
    }

    /// Asks the service of the interface's station for an end.
    fn station_end(
        &self,
        name: &str,
        parameters: &ChannelParameters,
        role: Role,
    ) -> Result<Transport, SetupError> {
        let interface = &self.interface.name;
        let end = station::connect(interface, role, parameters.stream_id, parameters.size);
        end.map(Transport::Station).map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => format!(
                    "no station runs on `{interface}`: `onbeat nc run HOST.ncb --interface \
                     {interface} --table HOST.{TABLE_EXTENSION}` is one"
                ),
                _ => error.to_string(),
            };
            SetupError::Refused(format!("channel `{name}`: {why}"))
        })
    }

    /// Asks for the reservation of a channel's stream.
    fn reserve(&self, parameters: &ChannelParameters, role: Role) -> Result<Reservation, String> {
        let InterfaceSettings { transport, options, .. } = &*self.settings;
        if matches!(transport, TransportKind::Udp4 | TransportKind::Udp6) {
            return Err("datagrams are not frames of its stream: use packet or xdp".to_owned());
        }
        if options.untagged {
            return Err("the reservation says the tag of its frames: let them be tagged".to_owned());
        }
        let mut offer = srp::offer_of(parameters).ok_or_else(|| {
            format!("priority {} is that of no SR class: A has 3, B has 2", parameters.pcp)
        })?;
        // The link is that of the interface below, and the tag not ours to choose.
        let below = self.interface.vlan();
        let interface = below.as_ref().map_or(&self.interface.name, |(name, _)| name);
        let vlan = below.as_ref().map(|(_, vlan)| *vlan);
        offer.vid = vlan.unwrap_or(offer.vid);
        let request = match role {
            Role::Talker => Request::Advertise(offer),
            Role::Listener => Request::Listen(parameters.stream_id),
        };
        Reservation::open(interface, request, vlan)
    }

    fn recorder(
        &self,
        name: &str,
        parameters: &ChannelParameters,
        role: Role,
    ) -> Result<Recorder, SetupError> {
        let mut log = self.board.end().map_err(no_memory)?;
        let stream_id = parameters.stream_id;
        let identity = Identity { channel: name.to_owned(), stream_id, role };
        log.introduce(&identity);
        log.declare(parameters.interval);
        let probe = self.instruments.probe(&identity, parameters.size.get());
        Ok(Recorder::with(log, probe).telling())
    }

    /// The clock, and when it is over.
    pub fn base(&self) -> &Timebase {
        &self.base
    }
}

/// Follows an interface, unless the system refuses what that needs: its ends work without.
fn follow(interface: &Interface) -> Option<Arc<LinkMonitor>> {
    let name = &interface.name;
    let monitor = LinkMonitor::start(name).map(Arc::new);
    monitor
        .inspect_err(|error| {
            eprintln!("onbeat: {name}: it is not followed if it vanishes: {error}")
        })
        .ok()
}

/// What every number of a channel must keep to, so that no arithmetic on it can overflow.
pub(crate) fn check(name: &str, parameters: &ChannelParameters) -> Result<(), String> {
    let within = |what: &str, value: Span, least: Span, most: Span| {
        let fine = (least..=most).contains(&value);
        fine.then_some(()).ok_or_else(|| format!("its {what} must be from {least} to {most}"))
    };
    let size = parameters.size.get();
    if name.is_empty() || name.len() > limits::CHANNEL_NAME_OCTETS {
        return Err(format!("its name must have 1 to {} octets", limits::CHANNEL_NAME_OCTETS));
    }
    if size == 0 || size > MESSAGE_MAX.get() {
        return Err(format!("a message of {size} octets; it may have 1 to {}", MESSAGE_MAX.get()));
    }
    if parameters.fragments().count > 1 && (parameters.launch.is_some() || parameters.replicated) {
        let what = if parameters.replicated { "a replicated" } else { "a scheduled" };
        return Err(format!("a message of {size} octets; one of {what} channel has one frame"));
    }
    if parameters.stream_id.0 == 0 {
        return Err("stream identifier 0 names no stream".to_owned());
    }
    if parameters.destination.0 == [0; 6] {
        return Err("its destination is 00:00:00:00:00:00".to_owned());
    }
    if parameters.talker_address.is_some_and(MacAddress::is_multicast) {
        return Err("its talker's address is a group's".to_owned());
    }
    if parameters.vlan > 4_094 || parameters.pcp > 7 {
        return Err("its VLAN identifier must be at most 4094, its priority at most 7".to_owned());
    }
    within("interval", parameters.interval, Span::from_ns(1), limits::DURATION)?;
    if let Some(LaunchTimes { at, lead }) = parameters.launch {
        let most = parameters.interval - Span::from_ns(1);
        within("launch time", at, Span::ZERO, most)?;
        within("lead before its launch time", lead, Span::ZERO, most)?;
    }
    within("burst", parameters.tolerance, Span::ZERO, limits::DURATION)?;
    within("catching up", parameters.catch_up, Span::ZERO, parameters.interval * 2)?;
    within("fixed delay", parameters.fixed_delay, Span::ZERO, limits::DURATION)
}

/// Whether two ends are of one channel.
fn is_same(one: &ChannelParameters, other: &ChannelParameters) -> bool {
    let of = |p: &ChannelParameters| {
        (p.stream_id, p.destination, p.vlan, p.pcp, p.size, p.integrity, p.replicated, p.interval)
    };
    of(one) == of(other)
}

/// Whether a program means this channel by a name, or by `#` and its stream's number.
fn is_called(declared: &Declared, name: &str) -> bool {
    declared.name == name || StreamId::called(name) == Some(declared.parameters.stream_id)
}

/// One of the open ends of a channel; gone with its value.
#[derive(Debug)]
struct OpenEnd {
    open: Arc<OpenEnds>,
    role: Role,
}

impl Drop for OpenEnd {
    fn drop(&mut self) {
        let count = match self.role {
            Role::Talker => &self.open.talkers,
            Role::Listener => &self.open.listeners,
        };
        count.fetch_sub(1, Ordering::AcqRel);
    }
}

const SECOND: i64 = 1_000_000_000;

/// Reads [`CLOCK_WITHIN`].
fn clock_within(text: &str) -> Result<Span, String> {
    let ns = text.parse().ok().filter(|ns| (1..=limits::DURATION.as_ns()).contains(ns));
    ns.map(Span::from_ns).ok_or_else(|| {
        format!("{CLOCK_WITHIN} is a whole number of nanoseconds above 0, not `{text}`")
    })
}

/// A program that needs the network's time does not start without it.
fn refuse_unsynchronised(name: &str, verdict: Option<Synchronisation>) -> Result<(), SetupError> {
    let why = match verdict {
        Some(Synchronisation::Synchronised { .. }) => return Ok(()),
        Some(Synchronisation::NotSynchronised { reasons }) => {
            reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        None => "nothing monitors its clock".to_owned(),
    };
    Err(SetupError::Refused(format!(
        "interface `{name}`: its clock is not on the network's time: {why}; `onbeat clock status` \
         says more"
    )))
}

/// Reads the table of the host's channels at `path`, or says what is wrong with it.
fn read_table(path: &Path) -> Result<ChannelTable, String> {
    let shown = path.display();
    let text: String = match regular::read(path, TABLE_OCTETS) {
        Ok(octets) => String::from_utf8(octets).unwrap_or_default(),
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => String::new(),
        Err(error) => return Err(format!("{shown}: {error}")),
    };
    text.parse().map_err(|wrong| match wrong {
        WrongTable::Other => format!(
            "{shown}: {wrong}: `onbeat plan SYSTEM --deploy DIRECTORY` makes one of each \
             host, DIRECTORY/HOST.{TABLE_EXTENSION}"
        ),
        _ => format!("{shown}: {wrong}"),
    })
}

/// Tells the user, once, who keeps the launch times: the program itself, less exactly.
fn warn_unless_launched(interface: &Interface) {
    let name = &interface.name;
    let why = match launch::is_honoured(interface) {
        Ok(true) => return,
        Ok(false) => "no etf queueing discipline on CLOCK_TAI (see tc-etf)".to_owned(),
        Err(error) => format!("its queueing disciplines are not known ({error})"),
    };
    eprintln!("onbeat: {name}: {why}: launch times are kept by software");
}

/// What a channel of a description is to its ends, on an interface without reservations.
pub fn parameters_of(channel: &Channel) -> ChannelParameters {
    ChannelParameters {
        destination: channel.destination,
        source: onbeat_model::units::MacAddress::default(),
        stream_id: channel.stream_id,
        vlan: channel.vlan,
        pcp: channel.pcp,
        replicated: channel.paths.is_replicated(),
        size: channel.size,
        integrity: channel.integrity,
        talker_address: channel.talker_address,
        launch: None,
        interval: channel.interval,
        tolerance: channel.tolerance(),
        catch_up: channel.catch_up(),
        fixed_delay: channel.fixed_delay,
        clock_error: Span::ZERO,
        epoch: 0,
    }
}

/// When the frames of a channel leave, if the plan gives them launch times.
pub fn launch_times(channel: &Channel, planned: &ChannelPlan) -> Option<LaunchTimes> {
    let launch = planned.launch.as_ref()?;
    let lead = (launch.at - launch.write).as_ns().rem_euclid(channel.interval.as_ns());
    Some(LaunchTimes { at: launch.at, lead: Span::from_ns(lead) })
}

/// By how much a reader that follows its schedule is there before a message is due, and how long
/// after that it continues polling.
const EARLY: Span = Span::from_us(40);
const LATE: Span = Span::from_us(120);

/// Lets a reader sleep to shortly before its messages are due.
pub fn follow_schedule(end: &mut Listener) {
    end.follow_schedule(EARLY, LATE);
}

/// Makes an end's way to an interface.
pub(crate) fn attach(
    interface: &Interface,
    settings: &InterfaceSettings,
    parameters: &ChannelParameters,
    role: Role,
) -> Result<Transport, SetupError> {
    let InterfaceSettings { transport, .. } = settings;
    let untagged = settings.options.untagged || interface.tags;
    let options = &InterfaceOptions { untagged, ..settings.options };
    let refused = |error| SetupError::Interface { name: interface.name.clone(), error };
    if options.own_host && *transport == TransportKind::Xdp {
        return Err(SetupError::Refused(
            "what leaves by AF_XDP passes the kernel by, so that listeners on the talker's own \
             host do not get it: use packet or udp"
                .to_owned(),
        ));
    }
    if matches!(transport, TransportKind::Packet | TransportKind::Xdp) {
        packet::fits(interface, parameters).map_err(refused)?;
    }
    let made = match (transport, role) {
        (TransportKind::Packet, Role::Talker) => {
            PacketSocket::talker(interface, parameters, options).map(Transport::Packet)
        }
        (TransportKind::Packet, Role::Listener) => {
            PacketSocket::listener(interface, parameters, options).map(Transport::Packet)
        }
        (TransportKind::Xdp, Role::Talker) => {
            XdpSocket::talker(interface, parameters, options).map(Box::new).map(Transport::Xdp)
        }
        (TransportKind::Xdp, Role::Listener) => {
            XdpSocket::listener(interface, parameters, options).map(Box::new).map(Transport::Xdp)
        }
        (TransportKind::Udp4, role) => {
            udp(interface, parameters, options, IpVersion::V4, role).map(Transport::Udp)
        }
        (TransportKind::Udp6, role) => {
            udp(interface, parameters, options, IpVersion::V6, role).map(Transport::Udp)
        }
    };
    made.map_err(refused)
}

fn udp(
    interface: &Interface,
    parameters: &ChannelParameters,
    options: &InterfaceOptions,
    version: IpVersion,
    role: Role,
) -> std::io::Result<UdpSocket> {
    match role {
        Role::Talker => UdpSocket::talker(interface, parameters, options, version),
        Role::Listener => UdpSocket::listener(interface, parameters, options, version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Finding;

    #[test]
    fn a_program_starts_with_a_clock_that_is_good_enough_only() {
        let good = Synchronisation::Synchronised { error: Span::from_ns(300) };
        assert!(refuse_unsynchronised("eth0", Some(good)).is_ok());
        let reasons = vec![Finding::NoTaiOffset, Finding::NoPtp4l];
        let bad = Synchronisation::NotSynchronised { reasons };
        let error = refuse_unsynchronised("eth0", Some(bad)).expect_err("not synchronised");
        let said = error.to_string();
        let expected = ["`eth0`", "no leap-second offset", "ptp4l does not answer"];
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(refuse_unsynchronised("eth0", None).is_err());
    }

    #[test]
    fn how_wrong_a_clock_may_be_is_a_whole_number_above_zero() {
        assert_eq!(clock_within("1000"), Ok(Span::from_us(1)));
        for bad in ["", "0", "-1", "1us", "9223372036854775807"] {
            assert!(clock_within(bad).is_err_and(|e| e.contains(CLOCK_WITHIN)), "{bad}");
        }
    }
}
