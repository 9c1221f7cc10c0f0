//! A program's channels on an interface, without a fabric: what an engineer links into a product.

use crate::clock::want_exact_timers;
use crate::context::{EndPort, Listener, Talker};
use crate::fabric::client::SetupError;
use crate::link::{
    Interface, Limits, LinkOptions, LinkPort, NetworkClock, PacketSocket, Timebase, Transport,
    TransportKind, XdpSocket,
};
use crate::recorder::Recorder;
use crate::shared_log::{Board, Identity};
use onbeat_model::record::Role;
use onbeat_model::system::Channel;
use onbeat_model::units::{Octets, frame};
use onbeat_runtime::channel::{ListenerEnd, TalkerEnd};
use onbeat_runtime::talker::ChannelParameters;
use std::sync::{Arc, Mutex, PoisonError};

/// The most channels that a program declares.
pub(crate) const MAX_CHANNELS: usize = 4_096;

/// How a program reaches the network.
#[derive(Clone, Debug, Default)]
pub struct InterfaceSettings {
    /// The interface's name.
    pub name: String,
    /// How frames get there.
    pub transport: TransportKind,
    /// What else to do.
    pub options: LinkOptions,
    /// Which network time programs call zero, in nanoseconds.
    pub epoch: i64,
}

/// A program's channels on an interface.
#[derive(Clone, Debug)]
pub struct Context {
    base: Arc<Timebase>,
    settings: Arc<InterfaceSettings>,
    interface: Interface,
    board: Arc<Board>,
    declared: Arc<Mutex<Vec<Declared>>>,
}

#[derive(Clone, Debug)]
struct Declared {
    name: String,
    parameters: ChannelParameters,
    talks: bool,
}

impl Context {
    /// Opens the interface, starts the clock.
    pub fn open(settings: InterfaceSettings) -> Result<Self, SetupError> {
        let interface = Interface::named(&settings.name)
            .map_err(|error| SetupError::Interface { name: settings.name.clone(), error })?;
        if !interface.up {
            return Err(SetupError::Refused(format!("interface `{}` is down", interface.name)));
        }
        want_exact_timers();
        let base = Arc::new(Timebase::default());
        base.begin(NetworkClock::Tai { epoch: settings.epoch }, Limits::NONE);
        Ok(Self {
            base,
            settings: Arc::new(settings),
            interface,
            board: Arc::new(Board::new()?),
            declared: Arc::default(),
        })
    }

    /// Makes a channel known. What both ends must agree on is checked here as far as one end can.
    pub fn declare(&self, name: &str, parameters: ChannelParameters) -> Result<(), SetupError> {
        let refuse = |why: String| Err(SetupError::Refused(format!("channel `{name}`: {why}")));
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = frame::MAX_CHANNEL_PAYLOAD.get();
        let size = parameters.size.get();
        if size == 0 || size > longest {
            return refuse(format!("a message of {size} octets; it may have 1 to {longest}"));
        }
        if parameters.stream_id.0 == 0 {
            return refuse("stream identifier 0 names no stream".to_owned());
        }
        if parameters.destination.0 == [0; 6] {
            return refuse("its destination is 00:00:00:00:00:00".to_owned());
        }
        if parameters.interval.as_ns() <= 0 {
            return refuse("its interval must be longer than nothing".to_owned());
        }
        if parameters.fixed_delay.as_ns() < 0 {
            return refuse("its fixed delay is negative".to_owned());
        }
        for other in declared.iter() {
            if other.name == name {
                return refuse("another channel has this name".to_owned());
            }
            if other.parameters.stream_id == parameters.stream_id {
                return refuse(format!("channel `{}` has the same stream id", other.name));
            }
        }
        if declared.len() >= MAX_CHANNELS {
            return refuse(format!("there are {MAX_CHANNELS} channels already"));
        }
        let parameters = ChannelParameters {
            source: self.interface.address,
            epoch: self.settings.epoch as u32,
            ..parameters
        };
        declared.push(Declared { name: name.to_owned(), parameters, talks: false });
        Ok(())
    }

    fn find(&self, name: &str, size: Octets, role: Role) -> Result<ChannelParameters, SetupError> {
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = declared.iter_mut().find(|d| d.name == name) else {
            let known: Vec<_> = declared.iter().map(|d| d.name.as_str()).collect();
            let known = known.join(", ");
            let why = format!("there is no channel `{name}`; there are: {known}");
            return Err(SetupError::Refused(why));
        };
        if size != found.parameters.size {
            return Err(SetupError::Refused(format!(
                "channel `{name}` carries messages of {} octets, not of {}",
                found.parameters.size.get(),
                size.get()
            )));
        }
        if role == Role::Talker && std::mem::replace(&mut found.talks, true) {
            let why = format!("this program writes to channel `{name}` already");
            return Err(SetupError::Refused(why));
        }
        Ok(found.parameters)
    }

    /// Opens the writing end of a channel for messages of `size` octets.
    pub fn open_talker(&self, name: &str, size: Octets) -> Result<Talker, SetupError> {
        let parameters = self.find(name, size, Role::Talker)?;
        let port = self.port(&parameters, Role::Talker)?;
        let recorder = self.recorder(name, &parameters, Role::Talker)?;
        Ok(TalkerEnd::new(onbeat_runtime::talker::Talker::new(parameters), port, recorder))
    }

    /// Opens a reading end of a channel for messages of `size` octets.
    pub fn open_listener(&self, name: &str, size: Octets) -> Result<Listener, SetupError> {
        let parameters = self.find(name, size, Role::Listener)?;
        let port = self.port(&parameters, Role::Listener)?;
        let recorder = self.recorder(name, &parameters, Role::Listener)?;
        let listener = onbeat_runtime::listener::Listener::joining(parameters);
        let mut end = ListenerEnd::new(listener, port, recorder);
        if self.settings.options.follow_schedule {
            follow_schedule(&mut end);
        }
        Ok(end)
    }

    fn port(&self, parameters: &ChannelParameters, role: Role) -> Result<EndPort, SetupError> {
        let wire = attach(&self.interface, &self.settings, parameters, role)?;
        Ok(EndPort::Link(LinkPort::new(Arc::clone(&self.base), wire)))
    }

    fn recorder(
        &self,
        name: &str,
        parameters: &ChannelParameters,
        role: Role,
    ) -> Result<Recorder, SetupError> {
        let mut log = self.board.end()?;
        let stream_id = parameters.stream_id;
        log.introduce(&Identity { channel: name.to_owned(), stream_id, role });
        Ok(Recorder::new(log))
    }

    /// The clock, and when it is over.
    pub fn base(&self) -> &Timebase {
        &self.base
    }
}

/// What a channel of a description is to its ends, on an interface without reservations.
pub fn parameters_of(channel: &Channel) -> ChannelParameters {
    ChannelParameters {
        destination: channel.destination,
        source: onbeat_model::units::MacAddress::default(),
        stream_id: channel.stream_id,
        vlan: channel.vlan,
        pcp: channel.pcp,
        size: channel.size,
        interval: channel.interval,
        tolerance: channel.tolerance(),
        fixed_delay: channel.fixed_delay,
        epoch: 0,
    }
}

/// By how much a reader that follows its schedule is there before a message is due, and how long
/// after that it goes on polling.
const EARLY: onbeat_model::time::Span = onbeat_model::time::Span::from_us(40);
const LATE: onbeat_model::time::Span = onbeat_model::time::Span::from_us(120);

/// Lets a reader sleep to shortly before its messages are due.
pub(crate) fn follow_schedule(end: &mut Listener) {
    end.follow_schedule(EARLY, LATE);
}

/// Makes an end's way to an interface.
pub(crate) fn attach(
    interface: &Interface,
    settings: &InterfaceSettings,
    parameters: &ChannelParameters,
    role: Role,
) -> Result<Transport, SetupError> {
    let InterfaceSettings { transport, options, .. } = settings;
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
        (TransportKind::Udp4 | TransportKind::Udp6, _) => {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    };
    made.map_err(|error| SetupError::Interface { name: interface.name.clone(), error })
}
