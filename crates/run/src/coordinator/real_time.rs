//! Real time: the engine paced against the machine's clock.
//!
//! The engine computes when each frame moves; a frame is given to its reader when the machine's
//! clock has come that far. How far the machine fell behind is measured and reported, since no
//! promise of the network can cover it.

use crate::coordinator::network;
use crate::coordinator::network::NetworkKind;
use crate::coordinator::session::{Failure, GONE_PATIENCE, Owner, Session, State};
use crate::coordinator::table::{EndpointId, ThreadId};
use crate::coordinator::wakeup::Wakeup;
use onbeat::clock::{MonoTime, want_exact_timers};
use onbeat::coordinator::client::STAMP;
use onbeat::coordinator::protocol::{Base, Body, MAX_PACKET, Request, Start};
use onbeat::coordinator::socket;
use onbeat::interface::NetworkClock;
use onbeat_model::system::ChannelId;
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_net::Output;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, IoSlice};

/// From the last program's being ready to the common start.
const START_DELAY: Span = Span::from_ms(50);
/// With an event nearer than this the coordinator spins instead of sleeping: waking takes this
/// long.
const SPIN: Span = Span::from_us(60);
/// How often the coordinator looks whether it was interrupted and whether all programs are alive,
/// and shows progress.
const LOOK_AGAIN: Span = Span::from_ms(20);

/// How many frames are taken from a talker before others have their turn: as many as a reader's
/// queue holds.
const FRAMES_AT_ONCE: usize = 1_024;

/// What a descriptor that has something to say belongs to.
#[derive(Clone, Copy)]
enum Speaker {
    Thread(ThreadId),
    Endpoint(EndpointId),
}

/// Runs the session to its end in real time.
pub(super) fn run(session: &mut Session<'_>) -> Result<(), Failure> {
    want_exact_timers();
    set_up(session)?;
    let (start, base) = match session.carrier.kind {
        NetworkKind::Emulated | NetworkKind::Namespaces { .. } => {
            let start = MonoTime::now() + START_DELAY;
            (start, Base::Machine(start.as_ns()))
        }
        NetworkKind::Interface { epoch_ns, clock_offset, .. } => {
            let zero = network::tai_at(epoch_ns, clock_offset);
            let left = network::until(zero);
            if left <= Span::ZERO {
                let late = -left;
                return Err(Failure(format!(
                    "the programs were ready {late} after the start that was chosen: choose a \
                     later one with --start"
                )));
            }
            (MonoTime::now() + left, Base::Network(zero))
        }
    };
    let clock = network::clock(&session.carrier, start);
    session.begin(&clock, start)?;
    let mut held = Vec::new();
    await_reservations(session, &clock, &mut held)?;
    for thread in session.threads.positions() {
        if session.threads[thread].state == State::AtStart {
            session.threads[thread].state = State::Running;
            let clock = session.clock_of(thread);
            let (write_until, stop) = (session.write_until, session.stop);
            session.answer(thread, Body::Started(Start { base, clock, write_until, stop }))?;
        }
    }
    session.started = true;
    for channel in 0..session.owners.len() as u32 {
        session.set_synthetic_alarm(ChannelId(channel));
    }
    let mut look_again = None;
    loop {
        if session.engine.now() >= session.stop {
            break;
        }
        // The start may be a while away.
        let now = network_time(&clock);
        if look_again.is_none_or(|at| now >= at) {
            look_again = Some(now + LOOK_AGAIN);
            (session.options.progress)(session.engine.now());
            session.tell_recorded();
            session.check_interrupt()?;
            for program in session.members.positions() {
                session.look_after(program)?;
            }
        }
        let next = session.engine.next_event().unwrap_or(NetTime::MAX).min(session.stop);
        let left = next - network_time(&clock);
        let sleep = if left < SPIN { Span::ZERO } else { (left - SPIN).min(LOOK_AGAIN) };
        hear(session, &clock, &mut held, sleep)?;
    }
    stop(session)?;
    session.await_exits()
}

/// The common start waits for reservations that hosts and bridges make.
fn await_reservations(
    session: &mut Session<'_>,
    clock: &NetworkClock,
    held: &mut Vec<SentFrame>,
) -> Result<(), Failure> {
    while let Some(next) = session.engine.awaits_reservations(session.write_until) {
        let left = (next - network_time(clock)).clamp(Span::ZERO, LOOK_AGAIN);
        hear(session, clock, held, left)?;
        session.check_interrupt()?;
    }
    Ok(())
}

/// Network time now.
fn network_time(clock: &NetworkClock) -> NetTime {
    // This copy of the clock has no error.
    ClockError::default().when(clock.now())
}

/// Tells every thread that the run is over: on its connection and at its ends.
fn stop(session: &mut Session<'_>) -> Result<(), Failure> {
    for thread in session.threads.positions() {
        session.answer(thread, Body::Stopped)?;
    }
    for own in session.endpoints.iter().filter_map(|end| end.own.as_ref()) {
        socket::end(own);
    }
    Ok(())
}

/// Lets every program open its channels, up to the common start.
fn set_up(session: &mut Session<'_>) -> Result<(), Failure> {
    for thread in session.threads.positions() {
        session.await_thread(thread)?;
        if session.threads[thread].state == State::Done {
            continue;
        }
        session.threads[thread].state = State::Running;
        session.answer(thread, Body::Done)?;
        while session.threads[thread].state == State::Running {
            let mut packet = [0; MAX_PACKET];
            match session.listen_to(thread, &mut packet)? {
                None => session.departed(thread, GONE_PATIENCE)?,
                Some(length) => serve(session, thread, &packet[..length])?,
            }
        }
    }
    Ok(())
}

/// Lets the engine do all that is due by an instant, and gives out what it delivers.
fn advance(session: &mut Session<'_>, clock: &NetworkClock, until: NetTime) -> Result<(), Failure> {
    if until < NetTime::ZERO {
        return Ok(()); // the start is still to come
    }
    let limit = until.min(session.stop).max(session.engine.now());
    while let Some(output) = session.engine.advance(limit) {
        match output {
            Output::Overfull(full) => return Err(session.overfull(&full)),
            Output::Woke { token } => {
                // Here threads sleep by the machine's clock, and have processors of their own.
                if let Wakeup::Talker(channel) = token.into() {
                    session.write_synthetic(channel);
                }
            }
            Output::Delivered { channel, listener, arrived } => {
                session.lag_max = session.lag_max.max(network_time(clock) - arrived);
                deliver(session, channel, listener, arrived)?;
            }
        }
    }
    Ok(())
}

fn deliver(
    session: &mut Session<'_>,
    channel: ChannelId,
    listener: usize,
    arrived: NetTime,
) -> Result<(), Failure> {
    let now = session.engine.now();
    let frame = session.engine.delivered_frame();
    match &mut session.owners[channel.index()][1 + listener] {
        Owner::Program(end) => {
            let end = &mut session.endpoints[*end];
            end.delivered.add(arrived, now, frame);
            let (Some(own), Some(queue)) = (&end.own, &end.queue) else { return Ok(()) };
            // From then on it can be read: no stack is in the way, but a station may have been.
            let stamp = now.as_ns().to_le_bytes();
            let mut dropped = Vec::new();
            let gone = |packet: &[u8]| dropped.push(packet.get(STAMP..).unwrap_or(&[]).to_vec());
            let parts = [IoSlice::new(&stamp), IoSlice::new(frame)];
            if queue.push(own, &parts, gone).is_err() {
                // The reader has closed its end or died: its connection says which.
                end.close();
            }
            dropped.iter().for_each(|frame| end.delivered.overflow(frame));
        }
        Owner::Listener(synthetic) => {
            let node = session.system.channel(channel).listeners[listener];
            let times = [arrived, now].map(|at| session.engine.read_clock(node, at));
            synthetic.read(frame, times, now);
        }
        Owner::Nobody(delivered) => delivered.add(arrived, now, frame),
        Owner::Talker(_) | Owner::OnKernel(_) | Owner::Elsewhere => {}
    }
    Ok(())
}

/// Waits for at most `patience` for something that programs say, and acts on it, when the network
/// has done all that is due by now. Frames that were sent later are held back.
fn hear(
    session: &mut Session<'_>,
    clock: &NetworkClock,
    held: &mut Vec<SentFrame>,
    patience: Span,
) -> Result<(), Failure> {
    let (mut speakers, mut set) = (Vec::new(), Vec::new());
    for (at, thread) in session.threads.positions().zip(session.threads.iter()) {
        if let Some(socket) = &thread.socket {
            speakers.push(Speaker::Thread(at));
            set.push(PollFd::new(socket, PollFlags::IN));
        }
    }
    for (at, end) in session.endpoints.positions().zip(session.endpoints.iter()) {
        if let Some(own) = &end.own {
            speakers.push(Speaker::Endpoint(at));
            set.push(PollFd::new(own, PollFlags::IN));
        }
    }
    let look = |set: &mut Vec<PollFd<'_>>, patience: Span| match poll(
        set,
        onbeat::clock::timeout(patience).as_ref(),
    ) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::from(error)),
    };
    if patience > Span::ZERO && held.is_empty() {
        look(&mut set, patience)?;
    }
    // However late this is, each frame is on the network when its program sent it: what was sent
    // before this instant is there now, and what several programs sent did not come at once.
    let now = network_time(clock);
    look(&mut set, Span::ZERO)?;
    let ready = set.iter().zip(speakers).filter(|(fd, _)| !fd.revents().is_empty());
    let ready: Vec<Speaker> = ready.map(|(_, speaker)| speaker).collect();
    for speaker in &ready {
        if let Speaker::Endpoint(end) = speaker {
            receive_from_endpoint(session, clock, *end, held);
        }
    }
    // What was sent behind it has others before it that nobody has looked for yet.
    held.sort_by_key(|frame| frame.at);
    let count = held.partition_point(|frame| frame.at <= now);
    for SentFrame { end, at, octets } in held.drain(..count) {
        advance(session, clock, at)?;
        let program = session.endpoints[end].program;
        session.send(program, end.0, &octets)?;
        session.lag_max = session.lag_max.max(session.engine.now() - at);
    }
    advance(session, clock, now)?;
    let mut packet = [0; MAX_PACKET];
    for speaker in ready {
        if let Speaker::Thread(thread) = speaker {
            match session.listen_to(thread, &mut packet)? {
                None => session.departed(thread, Span::ZERO)?,
                Some(length) => serve(session, thread, &packet[..length])?,
            }
        }
    }
    Ok(())
}

/// A frame that a talker's end has sent.
struct SentFrame {
    end: EndpointId,
    /// When, in network time.
    at: NetTime,
    octets: Vec<u8>,
}

/// Takes all that a talker has sent through its own socket.
fn receive_from_endpoint(
    session: &mut Session<'_>,
    clock: &NetworkClock,
    end: EndpointId,
    sent: &mut Vec<SentFrame>,
) {
    let mut packet = [0; MAX_PACKET];
    // More than these have come since: others have their turn.
    for _ in 0..FRAMES_AT_ONCE {
        let Some(own) = &session.endpoints[end].own else { return };
        let length = match socket::try_receive(own, &mut packet) {
            Ok(Some(length)) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(None) | Err(_) => {
                session.endpoints[end].own = None;
                session.endpoints[end].close();
                return;
            }
        };
        let stamped = packet[..length].split_first_chunk::<STAMP>();
        let (stamp, frame) = stamped.unwrap_or((&[0; 8], &[]));
        // Nobody sends anything in the future.
        let latest = network_time(clock).max(NetTime::ZERO);
        let at = NetTime::from_ns(i64::from_le_bytes(*stamp)).clamp(NetTime::ZERO, latest);
        sent.push(SentFrame { end, at, octets: frame.to_vec() });
    }
}

/// Serves what a thread asks through its own connection: set-up and the making of threads.
fn serve(session: &mut Session<'_>, thread: ThreadId, packet: &[u8]) -> Result<(), Failure> {
    if session.threads[thread].state == State::Expected {
        session.begun(thread, packet)?;
        session.threads[thread].state = State::Running;
        return session.answer(thread, Body::Done);
    }
    match session.decode(thread, packet)? {
        Request::Open { role, size, name } => session.open(thread, role, size, name),
        Request::Start if !session.started => {
            session.threads[thread].state = State::AtStart;
            Ok(())
        }
        Request::Announce => session.announce(thread).map(|_| ()),
        Request::Close(end) => session.close(thread, end),
        Request::Bye => {
            session.done(thread);
            Ok(())
        }
        _ => Err(session
            .protocol_violation(thread, "asks in real time for an operation of virtual time")),
    }
}
