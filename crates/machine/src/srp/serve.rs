//! The service's loop: sockets and the clock around [`SrpHost`].

use super::host::{ClientId, HostAction, HostInput, OwnPort, SrpHost};
use super::{AT_ONCE, LINK_LOOK, SrpError, Stopwatch, failed, rate_of, seed, wait};
use onbeat::interface::srp::protocol::MESSAGE_MAX;
use onbeat::interface::srp::{Answer, Refusal, mrpd_answers, say, service_name};
use onbeat::interface::{ChannelTable, MRP_FRAME_MAX, MrpPdu, MrpSocket};
use onbeat::interface::{ServiceConnection, ServiceSocket};
use onbeat_model::record::Role;
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::BitRate;
use onbeat_runtime::msrp::{Msrp, StationSettings, stream_rate};
use onbeat_runtime::mvrp::Mvrp;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{FromRawFd, OwnedFd};
use std::collections::BTreeMap;
use std::io;

/// The most connections: those with a stream, and those that only ask.
const CONNECTIONS_MAX: usize = super::host::CLIENTS_MAX + 64;
/// How long what is withdrawn at the end has to be said.
const FAREWELL: Span = Span::from_ms(700);
/// The first descriptor that a service manager hands over (sd_listen_fds(3)).
const HANDED_OVER: i32 = 3;

/// How a service works.
#[derive(Clone, Debug, Default)]
pub struct ServeSettings {
    /// The interface's name.
    pub interface: String,
    /// The rate of its link, if the driver does not say.
    pub rate: Option<BitRate>,
    /// The table of the host's channels: its talkers' bandwidth is the port's share.
    pub table: Option<ChannelTable>,
    /// Users, beside the superuser and the service's own, that it serves.
    pub users: Vec<u32>,
}

/// A service on an interface.
#[derive(Debug)]
pub struct SrpService {
    watch: Stopwatch,
    host: SrpHost,
    link: MrpSocket,
    is_up: bool,
    /// When the link is looked at again.
    looks: NetTime,
    socket: ServiceSocket,
    users: Vec<u32>,
    connections: BTreeMap<ClientId, ServiceConnection>,
    next_client: u64,
}

impl SrpService {
    /// Opens the interface, and takes the name of its service.
    ///
    /// # Errors
    /// There is no such interface, it may not be used, or another service has it.
    pub fn open(settings: &ServeSettings) -> Result<Self, SrpError> {
        let ServeSettings { interface, rate, table, users } = settings;
        let socket = match handed_over() {
            Some(socket) => ServiceSocket::inherited(socket).map_err(failed(interface))?,
            None => ServiceSocket::open(&service_name(interface)).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::AddrInUse => SrpError::Taken(interface.clone()),
                    _ => failed(interface)(error),
                }
            })?,
        };
        if mrpd_answers() {
            return Err(SrpError::Mrpd);
        }
        let link = MrpSocket::open(interface).map_err(failed(interface))?;
        let rate = rate_of(interface, *rate)?;
        let mut port = OwnPort::new(link.interface().address, rate);
        if let Some(table) = table {
            port.share = share_of(table);
        }
        let watch = Stopwatch::start();
        let mut host = SrpHost::new(port, StationSettings::default(), seed(), watch.now());
        let is_up = link.is_up().map_err(failed(interface))?;
        if !is_up {
            host.handle(watch.now(), HostInput::LinkDown);
        }
        let mut users = users.clone();
        users.extend([0, rustix::process::geteuid().as_raw()]);
        Ok(Self {
            watch,
            host,
            link,
            is_up,
            looks: watch.now() + LINK_LOOK,
            socket,
            users,
            connections: BTreeMap::new(),
            next_client: 0,
        })
    }

    /// The participant inside.
    pub fn host(&self) -> &SrpHost {
        &self.host
    }

    /// Waits for something to do, at most for `patience`, and does it.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn step(&mut self, patience: Span) -> Result<(), SrpError> {
        let due = (self.host.next().min(self.looks) - self.watch.now()).min(patience);
        let ready: Vec<bool> = {
            let mut set = vec![
                PollFd::new(&self.link, PollFlags::IN),
                PollFd::new(&self.socket, PollFlags::IN),
            ];
            set.extend(self.connections.values().map(|taken| PollFd::new(taken, PollFlags::IN)));
            wait(&mut set, due);
            set.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let spoke: Vec<_> = self
            .connections
            .keys()
            .zip(&ready[2..])
            .filter(|(_, r)| **r)
            .map(|(c, _)| *c)
            .collect();
        for client in spoke {
            self.hear(client);
        }
        if ready[1] {
            self.take_clients();
        }
        self.receive()?;
        self.look_at_link()?;
        if self.host.next() <= self.watch.now() {
            self.handle(HostInput::Timeout);
        }
        Ok(())
    }

    /// Withdraws everything, and says so on the link.
    pub fn close(mut self) {
        for client in std::mem::take(&mut self.connections).into_keys() {
            self.handle(HostInput::Gone(client));
        }
        let until = self.watch.now() + FAREWELL;
        while self.watch.now() < until && self.step(until - self.watch.now()).is_ok() {}
    }

    fn handle(&mut self, input: HostInput<'_>) {
        let actions = self.host.handle(self.watch.now(), input);
        for action in actions {
            match action {
                HostAction::SendMsrp(pdu) => self.link.send::<Msrp>(&pdu),
                HostAction::SendMvrp(pdu) => self.link.send::<Mvrp>(&pdu),
                HostAction::Say(client, answer) => {
                    let is_said = self.connections.get(&client).is_none_or(|c| say(c, answer));
                    if !is_said {
                        // Who does not read has gone, or is stopped: it may not hold what it has.
                        self.drop_client(client);
                    }
                }
                HostAction::Close(client) => self.drop_client(client),
            }
        }
    }

    fn drop_client(&mut self, client: ClientId) {
        if self.connections.remove(&client).is_some() {
            self.handle(HostInput::Gone(client));
        }
    }

    fn take_clients(&mut self) {
        for _ in 0..AT_ONCE {
            // Out of descriptors is as good as none: those that have some go on.
            let Ok(Some(taken)) = self.socket.take() else { return };
            if !self.users.contains(&taken.user) {
                say(&taken, Answer::Refused(Refusal::NotPermitted));
            } else if self.connections.len() >= CONNECTIONS_MAX {
                say(&taken, Answer::Refused(Refusal::Full));
            } else {
                self.connections.insert(ClientId(self.next_client), taken);
                self.next_client += 1;
            }
        }
    }

    fn hear(&mut self, client: ClientId) {
        let mut octets = [0; MESSAGE_MAX + 1];
        let Some(taken) = self.connections.get(&client) else { return };
        let process = taken.process;
        match taken.receive(&mut octets) {
            Ok(Some(length)) => {
                self.handle(HostInput::Request(client, process, &octets[..length]));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => self.drop_client(client),
        }
    }

    fn receive(&mut self) -> Result<(), SrpError> {
        for _ in 0..AT_ONCE {
            let mut frame = [0; MRP_FRAME_MAX];
            let got = self.link.try_receive(&mut frame);
            match got.map_err(failed(&self.link.interface().name))? {
                Some(MrpPdu::Msrp(pdu)) => self.handle(HostInput::Msrp(pdu)),
                Some(MrpPdu::Mvrp(pdu)) => self.handle(HostInput::Mvrp(pdu)),
                Some(MrpPdu::Other) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn look_at_link(&mut self) -> Result<(), SrpError> {
        let now = self.watch.now();
        if now < self.looks {
            return Ok(());
        }
        self.looks = now + LINK_LOOK;
        let is_up = self.link.is_up().map_err(failed(&self.link.interface().name))?;
        if is_up != self.is_up {
            self.is_up = is_up;
            self.handle(if is_up { HostInput::LinkUp } else { HostInput::LinkDown });
        }
        Ok(())
    }
}

/// What the talkers of a table have together, by class.
fn share_of(table: &ChannelTable) -> [BitRate; 2] {
    let mut share = [0_u64; 2];
    for end in table.ends.iter().filter(|end| end.role == Role::Talker) {
        if let Some(offer) = onbeat::interface::srp::offer_of(&end.parameters) {
            let own = &mut share[usize::from(offer.class != Class::A)];
            *own = own.saturating_add(stream_rate(offer.class, offer.tspec).as_bps());
        }
    }
    share.map(BitRate::from_bps)
}

/// The socket that a service manager has opened for this process, which it starts when a program
/// asks: `LISTEN_PID` and `LISTEN_FDS` say so (sd_listen_fds(3)).
fn handed_over() -> Option<OwnedFd> {
    let is = |name: &str, value: &str| onbeat::environment::var(name).is_ok_and(|v| v == value);
    if !is("LISTEN_PID", &std::process::id().to_string()) || !is("LISTEN_FDS", "1") {
        return None;
    }
    // SAFETY: the service manager says that the descriptor is open and this process's.
    Some(unsafe { OwnedFd::from_raw_fd(HANDED_OVER) })
}
