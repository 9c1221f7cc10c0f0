//! What threads ask, and what they are answered: in virtual time in memory that both sides share,
//! in real time over sockets.

use crate::coordinator::endpoint::Arrival;
use crate::coordinator::session::{Failure, LOOK_AGAIN, Session, State, Thread};
use crate::coordinator::table::{EndpointId, ThreadId};
use onbeat::clock::MonoTime;
use onbeat::coordinator::mailbox::Mailbox;
use onbeat::coordinator::protocol::{Body, MAX_PACKET, Reply};
use onbeat::coordinator::socket;
use onbeat_model::system::NodeId;
use onbeat_model::time::Span;
use rustix::fd::BorrowedFd;
use std::io;

/// How soon a wait for a request looks first whether its program has ended.
const SOON: Span = Span::from_ms(2);

impl Session<'_> {
    /// Answers a thread. One that is gone is found out when it is listened to.
    pub(super) fn answer(&mut self, thread: ThreadId, body: Body<'_>) -> Result<(), Failure> {
        self.answer_with(thread, body, &[])
    }

    /// The same, but what waits for the program is not offered again.
    pub(super) fn answer_without_offers(
        &self,
        thread: ThreadId,
        body: Body<'_>,
    ) -> Result<(), Failure> {
        self.reply(thread, body, &[], false)
    }

    /// The same, with descriptors.
    pub(super) fn answer_with(
        &self,
        thread: ThreadId,
        body: Body<'_>,
        with: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        self.reply(thread, body, with, true)
    }

    fn reply(
        &self,
        thread: ThreadId,
        body: Body<'_>,
        with: &[BorrowedFd<'_>],
        offers: bool,
    ) -> Result<(), Failure> {
        let network = self.engine.now();
        let reply = Reply { local: self.clock_of(thread).read(network), network, body };
        let mut packet = [0; MAX_PACKET];
        let length = reply.encode(&mut packet);
        let Thread { socket, memory, state, .. } = &self.threads[thread];
        let Some(socket) = socket else { return Ok(()) };
        // One that has not begun has not said yet which of the two it uses.
        if memory.is_none() || !with.is_empty() || *state == State::Expected {
            match socket::try_send_with(socket, &packet[..length], with) {
                // A program that follows the protocol has at most one answer in flight.
                Ok(false) => return Err(self.protocol_violation(thread, "does not read replies")),
                // It would wait for them for ever.
                Err(error) if !with.is_empty() && !socket::is_gone(socket) => {
                    return Err(error.into());
                }
                Ok(true) | Err(_) => {}
            }
        }
        if let Some(memory) = memory {
            memory.set_processor(self.processor.number());
            if offers {
                self.offer(thread, memory);
            }
            memory.answer(if with.is_empty() { &packet[..length] } else { &[] });
        }
        Ok(())
    }

    /// Offers a thread the frames that wait at ends of its program.
    fn offer(&self, thread: ThreadId, memory: &Mailbox) {
        let network = self.engine.now();
        let (node, local) = (self.host_of(thread), self.clock_of(thread).read(network));
        let unread = self.members[self.threads[thread].program].unread.iter();
        let frames = unread.flat_map(|id| {
            self.endpoints[*id].offered().map(move |arrival: &Arrival| (id.0, arrival))
        });
        memory.offer(frames, |arrival, packet| {
            Reply { local, network, body: self.frame(node, arrival) }.encode(packet)
        });
    }

    /// How a program is told of a frame.
    pub(super) fn frame<'f>(&self, node: NodeId, arrival: &'f Arrival) -> Body<'f> {
        let [arrived, ready_local] =
            [arrival.arrived, arrival.ready].map(|at| self.read_clock(node, at));
        Body::Frame { arrived, ready_local, ready: arrival.ready, octets: &arrival.octets }
    }

    /// Keeps a frame at an end for its program.
    pub(super) fn keep(&mut self, end: EndpointId, arrival: Arrival) {
        self.endpoints[end].keep(arrival);
        if !self.endpoints[end].closed {
            self.members[self.endpoints[end].program].unread.insert(end);
        }
    }

    /// A program takes the oldest frame that waits at one of its ends.
    pub(super) fn take(&mut self, end: EndpointId) -> Option<Arrival> {
        let endpoint = &mut self.endpoints[end];
        let arrival = endpoint.take();
        if endpoint.inbox.is_empty() {
            let program = endpoint.program;
            self.members[program].unread.remove(&end);
        }
        arrival
    }

    /// Waits for a thread's next request, which is then in `packet`; `None` when its connection is
    /// closed.
    pub(super) fn listen_to(
        &mut self,
        thread: ThreadId,
        packet: &mut [u8; MAX_PACKET],
    ) -> Result<Option<usize>, Failure> {
        let mut until = None;
        let mut patience = SOON;
        loop {
            let Thread { socket, memory, program, .. } = &self.threads[thread];
            let (Some(socket), program) = (socket, *program) else { return Ok(None) };
            let mut is_gone = false;
            match memory {
                None => match socket::receive(socket, packet) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    other => return Ok(other?),
                },
                Some(memory) => {
                    let from = MonoTime::now();
                    let length = memory.take(packet, patience);
                    self.processor.waited(from, MonoTime::now());
                    if length.is_some() {
                        return Ok(length);
                    }
                    is_gone = socket::is_gone(socket);
                    patience = (patience * 2).min(LOOK_AGAIN);
                }
            }
            // Somebody else may hold its connection open: a process that it has forked.
            if is_gone || self.members[program].running.ended().is_some() {
                // What it asked for before comes first.
                let memory = &self.threads[thread].memory;
                return Ok(memory.as_ref().and_then(|memory| memory.take(packet, Span::ZERO)));
            }
            self.check_interrupt()?;
            let now = MonoTime::now();
            if now > *until.get_or_insert(now + self.options.settings.hang_timeout) {
                let what = "has not called Onbeat";
                return Err(self.hung(program, what));
            }
        }
    }
}
