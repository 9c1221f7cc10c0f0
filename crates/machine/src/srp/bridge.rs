//! The bridge role: MSRP and MVRP of a bridge whose ports are interfaces of this machine. A Linux
//! bridge of the same interfaces forwards the frames; what is reserved is accounted here and told.

use super::{AT_ONCE, LINK_LOOK, SrpError, Stopwatch, failed, rate_of, seed, wait};
use onbeat::interface::{MRP_FRAME_MAX, MrpPdu, MrpSocket};
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::mrp::{MrpInput, MrpSettings, MrpTimers, Propagation, PropagationInput};
use onbeat_runtime::msrp::{
    BridgeAction, BridgeId, BridgeInput, Msrp, MsrpBridge, MsrpBridgeSettings, MsrpPort,
};
use onbeat_runtime::mvrp::Mvrp;
use rustix::event::{PollFd, PollFlags};
use std::collections::BTreeSet;

/// How long a frame takes through a bridge in software and over a link, beside waiting for others.
const THROUGH: Span = Span::from_us(50);
/// The priority of the bridge's identifier (802.1Q 14.2.5).
const BRIDGE_PRIORITY: [u8; 2] = [0x80, 0];
/// From one periodic transmission of MVRP to the next (10.7.5.23).
const PERIODIC: Span = Span::from_s(1);

/// Something that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// A port reserves so much for a class now.
    Reserved {
        /// The interface.
        interface: String,
        /// The class.
        class: Class,
        /// The rate: the port's idleSlope.
        rate: BitRate,
    },
    /// A stream is sent out of these interfaces now; of none, if it has lost its reservation.
    Forwarded {
        /// The stream.
        stream: StreamId,
        /// Where its frames go.
        destination: MacAddress,
        /// In which VLAN.
        vid: u16,
        /// The interfaces.
        interfaces: Vec<String>,
    },
    /// A link has failed, or works again.
    Link {
        /// The interface.
        interface: String,
        /// Whether it works.
        is_up: bool,
    },
}

/// The bridge.
#[derive(Debug)]
pub struct BridgeRole {
    watch: Stopwatch,
    ports: Vec<(MrpSocket, bool)>,
    msrp: MsrpBridge,
    mvrp: Propagation<Mvrp>,
    identifier: BridgeId,
    looks: NetTime,
    events: Vec<BridgeEvent>,
}

impl BridgeRole {
    /// Opens the interfaces; the bridge's identifier is the first one's address. `rate` is that of
    /// links whose driver does not say it.
    ///
    /// # Errors
    /// There are too few, one is named twice, is not there, or may not be used.
    pub fn open(interfaces: &[String], rate: Option<BitRate>) -> Result<Self, SrpError> {
        let different: BTreeSet<_> = interfaces.iter().collect();
        let is_count = (2..=onbeat_runtime::msrp::bridge::PORTS_MAX).contains(&interfaces.len());
        if !is_count || different.len() != interfaces.len() {
            return Err(SrpError::Ports);
        }
        let (mut ports, mut links) = (Vec::new(), Vec::new());
        for name in interfaces {
            let socket = MrpSocket::open(name).map_err(failed(name))?;
            links.push(MsrpPort::new(rate_of(name, rate)?, THROUGH));
            ports.push((socket, true));
        }
        let [a, b, c, d, e, f] = ports[0].0.interface().address.0;
        let [p, q] = BRIDGE_PRIORITY;
        let identifier = BridgeId([p, q, a, b, c, d, e, f]);
        let watch = Stopwatch::start();
        let (now, settings) = (watch.now(), MrpSettings::default());
        let timers = MrpTimers { periodic: Some(PERIODIC), ..settings.timers };
        let of_vlans = MrpSettings { timers, ..settings };
        Ok(Self {
            msrp: MsrpBridge::new(MsrpBridgeSettings::new(identifier), &links, seed(), now),
            mvrp: Propagation::new(of_vlans, ports.len(), seed(), now),
            watch,
            ports,
            identifier,
            looks: now,
            events: Vec::new(),
        })
    }

    /// The bridge's identifier: talkers that it refuses are told.
    pub fn identifier(&self) -> BridgeId {
        self.identifier
    }

    /// The state machines of MSRP.
    pub fn msrp(&self) -> &MsrpBridge {
        &self.msrp
    }

    /// Waits for something to do, at most for `patience`, and does it; gives what has changed.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn step(&mut self, patience: Span) -> Result<Vec<BridgeEvent>, SrpError> {
        let next = self.msrp.next().min(self.mvrp.next()).min(self.looks);
        {
            let fds = self.ports.iter().map(|(socket, _)| PollFd::new(socket, PollFlags::IN));
            let mut set: Vec<_> = fds.collect();
            wait(&mut set, (next - self.watch.now()).min(patience));
        }
        for port in 0..self.ports.len() {
            self.receive(port)?;
        }
        self.look_at_links()?;
        self.drive_msrp(BridgeInput::Timeout);
        self.drive_mvrp(PropagationInput::Timeout);
        Ok(std::mem::take(&mut self.events))
    }

    fn receive(&mut self, port: usize) -> Result<(), SrpError> {
        for _ in 0..AT_ONCE {
            let mut frame = [0; MRP_FRAME_MAX];
            let socket = &self.ports[port].0;
            let got = socket.try_receive(&mut frame);
            match got.map_err(failed(&socket.interface().name))? {
                Some(MrpPdu::Msrp(octets)) => {
                    self.drive_msrp(BridgeInput::Received { port, octets });
                }
                Some(MrpPdu::Mvrp(octets)) => {
                    self.drive_mvrp(PropagationInput::Port(port, MrpInput::Received(octets)));
                }
                Some(MrpPdu::Other) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn look_at_links(&mut self) -> Result<(), SrpError> {
        let now = self.watch.now();
        if now < self.looks {
            return Ok(());
        }
        self.looks = now + LINK_LOOK;
        for port in 0..self.ports.len() {
            let (socket, was_up) = &self.ports[port];
            let interface = socket.interface().name.clone();
            let is_up = socket.is_up().map_err(failed(&interface))?;
            if is_up == *was_up {
                continue;
            }
            self.ports[port].1 = is_up;
            let (msrp, mvrp) = match is_up {
                true => (BridgeInput::LinkUp(port), MrpInput::LinkUp),
                false => (BridgeInput::LinkDown(port), MrpInput::LinkDown),
            };
            self.drive_msrp(msrp);
            self.drive_mvrp(PropagationInput::Port(port, mvrp));
            self.events.push(BridgeEvent::Link { interface, is_up });
        }
        Ok(())
    }

    fn name(&self, port: usize) -> String {
        self.ports[port].0.interface().name.clone()
    }

    fn drive_msrp(&mut self, input: BridgeInput<'_>) {
        let actions = self.msrp.handle(self.watch.now(), input);
        for action in actions {
            match action {
                BridgeAction::Send { port, octets } => self.ports[port].0.send::<Msrp>(&octets),
                BridgeAction::SetIdleSlope { port, class, rate } => {
                    let interface = self.name(port);
                    self.events.push(BridgeEvent::Reserved { interface, class, rate });
                }
                BridgeAction::SetPorts { stream, destination, vid, ports } => {
                    let interfaces = ports.into_iter().map(|port| self.name(port)).collect();
                    self.events.push(BridgeEvent::Forwarded {
                        stream,
                        destination,
                        vid,
                        interfaces,
                    });
                }
            }
        }
    }

    fn drive_mvrp(&mut self, input: PropagationInput<'_, Mvrp>) {
        for (port, pdu) in self.mvrp.handle(self.watch.now(), input) {
            self.ports[port].0.send::<Mvrp>(&pdu);
        }
    }
}
