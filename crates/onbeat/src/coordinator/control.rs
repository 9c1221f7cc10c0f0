//! A thread's connection to the coordinator: what it asks, and how it waits for the answer.

use crate::coordinator::client::SetupError;
use crate::coordinator::mailbox::Mailbox;
use crate::coordinator::protocol::{Body, MAX_PACKET, Reply, Request};
use crate::coordinator::socket;
use onbeat_model::time::Span;
use onbeat_runtime::channel_io::{ChannelError, Instant, Timeout};
use rustix::fd::OwnedFd;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use std::io::IoSlice;
use std::sync::Arc;

/// How often a thread that waits for an answer looks whether the coordinator is gone.
const LOOK_AGAIN: Span = Span::from_ms(500);

/// What a thread and the coordinator have in common.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) socket: Arc<OwnedFd>,
    /// In virtual time, what packets are in.
    pub(super) memory: Option<Arc<Mailbox>>,
}

/// A thread's own connection to the coordinator.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) connection: Connection,
    /// How many answers were heard in the memory.
    heard: u32,
    /// Which frames were taken of those offered with the last one, a bit each.
    taken: u8,
    /// The process whose it is.
    owner: u32,
    pub(super) processor: OnProcessor,
    /// The time of the last answer.
    pub(super) now: Instant,
    /// Whether the run is over.
    pub(super) stopped: bool,
    pub(super) packet: [u8; MAX_PACKET],
}

impl Control {
    pub(super) fn over(connection: Connection) -> Self {
        let (owner, packet) = (crate::fork::process(), [0; MAX_PACKET]);
        let (now, processor) = (Instant::default(), OnProcessor::default());
        Self { connection, heard: 0, taken: 0, owner, processor, now, stopped: false, packet }
    }

    /// Makes the calling thread the one whose connection this is; returns when it may continue.
    /// A thread's processor is that of its creator, by whom it inherits it.
    pub(super) fn begin(
        connection: Connection,
        processor: OnProcessor,
    ) -> Result<Self, SetupError> {
        let mut control = Self { processor, ..Self::over(connection) };
        let tid = gettid().as_raw_nonzero().get().unsigned_abs();
        let request = match &control.connection.memory {
            Some(_) => Request::BeginInMemory(tid),
            None => Request::Begin(tid),
        };
        // The only one that is on the socket in either case.
        let length = request.encode(&mut control.packet);
        socket::send(&control.connection.socket, &[IoSlice::new(&control.packet[..length])])?;
        match control.hear()? {
            Body::Done => Ok(control),
            Body::Refused(why) => Err(SetupError::Refused(why.to_owned())),
            _ => Err(SetupError::ProtocolViolation),
        }
    }

    /// Refuses a forked child: it has its parent's connections, but no part in the run.
    fn check_owner(&self) -> Result<(), ChannelError> {
        match crate::fork::process() == self.owner {
            true => Ok(()),
            false => Err(ChannelError::Forked),
        }
    }

    fn is_full(&self) -> bool {
        self.connection.memory.as_ref().is_some_and(|memory| !memory.has_room())
    }

    /// Has the coordinator take what is in the memory, if it is full.
    fn make_room(&mut self) -> Result<(), ChannelError> {
        if self.is_full() {
            // Nothing changes by it but the room: what was offered is still what waits.
            let taken = self.taken;
            self.connection.send(&Request::Yield, &mut self.packet)?;
            self.hear()?;
            self.taken = taken;
        }
        Ok(())
    }

    /// Sends a request that is not answered.
    pub(super) fn tell(&mut self, request: &Request<'_>) -> Result<(), ChannelError> {
        self.check_owner()?;
        // After the end nobody waits for it, and there may be no room.
        if self.connection.memory.is_some() && *request != Request::Bye {
            if self.stopped {
                return Err(ChannelError::Stopped);
            }
            self.make_room()?;
        }
        self.connection.send(request, &mut self.packet)
    }

    /// Asks for a frame, or takes one that was offered.
    pub(super) fn receive(
        &mut self,
        end: u32,
        patience: Timeout,
    ) -> Result<Body<'_>, ChannelError> {
        let offered = |memory: &Arc<Mailbox>| memory.offered(end, self.taken);
        let offered = self.connection.memory.as_ref().and_then(offered).filter(|_| !self.stopped);
        let Some(at) = offered else {
            return self.ask(&Request::Receive(end, patience));
        };
        self.tell(&Request::Took(end, patience))?;
        self.taken |= 1 << at;
        let Some(memory) = &self.connection.memory else {
            return Err(ChannelError::Disconnected);
        };
        let length = memory.read_offer(at, &mut self.packet);
        let reply = Reply::decode(&self.packet[..length]);
        reply.map(|reply| reply.body).map_err(|_| ChannelError::Disconnected)
    }

    /// Asks for what is answered with descriptors: the answer and these.
    pub(super) fn ask_for_descriptors(
        &mut self,
        request: &Request<'_>,
    ) -> Result<(Body<'_>, Vec<OwnedFd>), SetupError> {
        if self.stopped {
            return Err(ChannelError::Stopped.into());
        }
        self.tell(request)?;
        let mut with = Vec::new();
        let mut length = self.await_answer()?;
        if length == 0 {
            let got = socket::receive_with(&self.connection.socket, &mut self.packet)?;
            (length, with) = got.ok_or(ChannelError::Disconnected)?;
        }
        let reply =
            Reply::decode(&self.packet[..length]).map_err(|_| SetupError::ProtocolViolation)?;
        match reply.body {
            Body::Refused(why) => Err(SetupError::Refused(why.to_owned())),
            Body::Stopped => {
                self.stopped = true;
                Err(ChannelError::Stopped.into())
            }
            body => Ok((body, with)),
        }
    }

    /// Asks for what is answered with the ticket of a thread, and its connection.
    pub(super) fn ask_for_ticket(
        &mut self,
        request: &Request<'_>,
    ) -> Result<(u32, Connection), SetupError> {
        let (body, with) = self.ask_for_descriptors(request)?;
        let (Body::Ticket(ticket), mut with) = (body, with.into_iter()) else {
            return Err(SetupError::ProtocolViolation);
        };
        let socket = Arc::new(with.next().ok_or(SetupError::ProtocolViolation)?);
        let memory = with.next().map(|memory| Mailbox::map(&memory)).transpose()?.map(Arc::new);
        Ok((ticket, Connection { socket, memory }))
    }

    /// Sends a request and waits for its answer. Real-time: allocates nothing.
    pub(super) fn ask(&mut self, request: &Request<'_>) -> Result<Body<'_>, ChannelError> {
        if self.stopped {
            return Err(ChannelError::Stopped);
        }
        self.tell(request)?;
        self.hear()
    }

    /// Waits for an answer, whose octets are then in `packet`; its length, 0 if it is to come on
    /// the socket, with descriptors.
    fn await_answer(&mut self) -> Result<usize, ChannelError> {
        let Some(memory) = &self.connection.memory else {
            return Ok(0);
        };
        memory.call();
        loop {
            if let Some(length) = memory.hear(self.heard, &mut self.packet, LOOK_AGAIN) {
                self.heard = self.heard.wrapping_add(1);
                self.taken = 0;
                self.processor.follow(memory.processor());
                return Ok(length);
            }
            if socket::is_gone(&self.connection.socket) {
                return Err(ChannelError::Disconnected);
            }
        }
    }

    /// Waits for an answer, and keeps its time.
    fn hear(&mut self) -> Result<Body<'_>, ChannelError> {
        let mut length = self.await_answer()?;
        if length == 0 {
            let got = socket::receive(&self.connection.socket, &mut self.packet);
            length =
                got.map_err(|_| ChannelError::Disconnected)?.ok_or(ChannelError::Disconnected)?;
        }
        let reply =
            Reply::decode(&self.packet[..length]).map_err(|_| ChannelError::Disconnected)?;
        self.now = Instant { local: reply.local, network: Some(reply.network) };
        if reply.body == Body::Stopped {
            self.stopped = true;
            return Err(ChannelError::Stopped);
        }
        Ok(reply.body)
    }
}

impl Connection {
    /// Sends a request. One that is answered is seen when the thread waits for the answer.
    pub(super) fn send(
        &self,
        request: &Request<'_>,
        packet: &mut [u8; MAX_PACKET],
    ) -> Result<(), ChannelError> {
        let length = request.encode(packet);
        let Some(memory) = &self.memory else {
            let parts = [IoSlice::new(&packet[..length])];
            return socket::send(&self.socket, &parts).map_err(|_| ChannelError::Disconnected);
        };
        memory.post(&packet[..length]);
        if *request == Request::Bye {
            memory.call();
        }
        Ok(())
    }
}

/// Where a thread executes in virtual time, in which one thread of the run does at a time: a
/// hand-over to one on another processor takes several times as long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnProcessor {
    /// The one that it was last told.
    at: Option<usize>,
    /// Where it might be before, and where it was put.
    masks: Option<(CpuSet, CpuSet)>,
}

impl OnProcessor {
    /// Moves the calling thread to where the run's threads are, or lets it be where it might be. A
    /// thread that has said itself where it wants to be stays there.
    pub(super) fn follow(&mut self, to: Option<usize>) {
        if to == self.at {
            return;
        }
        self.at = to;
        // Who may not ask, or say so below, is slower.
        let Ok(now) = sched_getaffinity(None) else { return };
        let before = match self.masks {
            None => now,
            Some((before, set)) if set == now => before,
            Some(_) => return,
        };
        let set = match to {
            Some(at) if at < CpuSet::MAX_CPU && before.is_set(at) => {
                let mut one = CpuSet::new();
                one.set(at);
                one
            }
            _ => before,
        };
        if sched_setaffinity(None, &set).is_ok() {
            self.masks = Some((before, set));
        }
    }
}
