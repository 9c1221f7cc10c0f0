//! Virtual time: the engine's clock stands still while a program computes.
//!
//! One thread executes at a time, in an order that the description and the engine fix: programs in
//! the order of the description at the start, then each thread when its sleep or its frame is due.
//! It executes until it asks for something that takes time; when all threads wait, the engine
//! advances to the next event. So whatever programs share, they find it in the same state in every
//! run, and how fast the machine is never shows.

use crate::coordinator::endpoint::Arrival;
use crate::coordinator::processors::HostProcessors;
use crate::coordinator::requests::Requests;
use crate::coordinator::session::{Failure, GONE_PATIENCE, Owner, Session, State, Thread};
use crate::coordinator::table::{EndpointId, ProgramId, ThreadId};
use crate::coordinator::wakeup::Wakeup;
use crate::notices::Notices;
use onbeat::clock::clamp_to_run;
use onbeat::coordinator::protocol::{
    Base, Body, EndpointNumbers, MAX_PACKET, Request, Start, Work,
};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_net::Output;
use onbeat_runtime::channel_io::Timeout;
use std::collections::VecDeque;

/// How far the engine goes at most before progress is shown and an interrupt is seen.
const SLICE: Span = Span::from_ms(100);

/// What a thread is told when it continues.
enum Wake {
    Done,
    Frame(Arrival),
    /// The end at this position of those selected from has a frame.
    Ready(usize),
    Empty,
    Started,
}

struct Scheduler<'a, 's> {
    session: &'a mut Session<'s>,
    /// Threads that continue next, in order.
    ready: VecDeque<(ThreadId, Wake)>,
    /// Threads that are parked, in the order in which they began to wait.
    parked: Vec<ThreadId>,
    /// Those that threads share, host by host.
    processors: HostProcessors,
    /// Whether the run is over, so that every request is answered with that.
    over: bool,
}

/// Runs the session to its end in virtual time.
pub(super) fn run(session: &mut Session<'_>) -> Result<(), Failure> {
    let processors = HostProcessors::new(session.system);
    let mut scheduler =
        Scheduler { processors, session, ready: VecDeque::new(), parked: Vec::new(), over: false };
    scheduler.session.processor.stay();
    scheduler.set_up()?;
    scheduler.advance()?;
    scheduler.stop()
}

/// Whether no thread waits for an answer to a request.
fn is_unanswered(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::Bye
            | Request::Close(_)
            | Request::Send(..)
            | Request::Took(..)
            | Request::Unpark(_)
    )
}

impl Scheduler<'_, '_> {
    /// Lets every program open its channels, up to the common start.
    fn set_up(&mut self) -> Result<(), Failure> {
        for thread in self.session.threads.positions() {
            self.go_on(thread, Wake::Done)?;
        }
        for thread in self.session.threads.positions() {
            if self.session.threads[thread].state == State::AtStart {
                self.ready.push_back((thread, Wake::Started));
            }
        }
        // The common start waits for reservations that hosts and bridges make.
        self.session.engine.await_reservations(self.session.write_until);
        self.session.started = true;
        for channel in 0..self.session.owners.len() as u32 {
            self.session.set_synthetic_alarm(ChannelId(channel));
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), Failure> {
        loop {
            while let Some((thread, wake)) = self.ready.pop_front() {
                self.go_on(thread, wake)?;
            }
            let before = self.session.engine.now();
            let limit = (before + SLICE).min(self.session.stop);
            let output = self.session.engine.advance(limit);
            let now = self.session.engine.now();
            if now > before {
                self.session
                    .members
                    .iter_mut()
                    .for_each(|member| member.requests = Requests::default());
                (self.session.options.progress)(now);
                self.session.tell_recorded();
                self.session.check_interrupt()?;
            }
            match output {
                None if limit == self.session.stop => return Ok(()),
                None => {}
                Some(Output::Overfull(full)) => return Err(self.session.overfull(&full)),
                Some(Output::Woke { token }) => match token.into() {
                    Wakeup::Talker(channel) => self.session.write_synthetic(channel),
                    Wakeup::Processors(host) => self.worked(host),
                    Wakeup::Thread { thread, alarm } => self.alarm(thread, alarm)?,
                },
                Some(Output::Delivered { channel, listener, arrived }) => {
                    self.deliver(channel, listener, arrived);
                }
            }
        }
    }

    /// Tells every thread that the run is over and lets it clean up.
    fn stop(&mut self) -> Result<(), Failure> {
        self.over = true;
        self.session.processor.leave();
        self.session.members.iter().filter_map(|it| it.notices.as_ref()).for_each(Notices::over);
        // All are told first: one may wait for another by other means than ours.
        for thread in self.session.threads.positions() {
            let state = &mut self.session.threads[thread].state;
            if *state != State::Done && *state != State::Expected {
                *state = State::Running;
            }
            self.session.answer(thread, Body::Stopped)?;
        }
        for thread in self.session.threads.positions() {
            while self.session.threads[thread].state == State::Running {
                self.serve(thread)?;
            }
        }
        self.session.await_exits()
    }

    /// An alarm of a thread has come: of this number, which need not be its latest.
    fn alarm(&mut self, thread: ThreadId, alarm: u32) -> Result<(), Failure> {
        let found = &self.session.threads[thread];
        if found.alarms != alarm {
            return Ok(());
        }
        match found.state {
            State::Sleeping => self.ready.push_back((thread, Wake::Done)),
            State::Launching => self.launched(thread)?,
            State::Working => self.cut_short(thread),
            State::Reading(_) | State::Selecting | State::CutShort => {
                self.ready.push_back((thread, Wake::Empty));
            }
            State::Parked(_) => {
                self.parked.retain(|other| *other != thread);
                self.waits_no_more(thread);
                self.ready.push_back((thread, Wake::Empty));
            }
            _ => {}
        }
        Ok(())
    }

    fn deliver(&mut self, channel: ChannelId, listener: usize, arrived: NetTime) {
        let now = self.session.engine.now();
        match &mut self.session.owners[channel.index()][1 + listener] {
            Owner::Program(end) => {
                let end = *end;
                let reader = self.session.threads.position(|t| t.state == State::Reading(end));
                let octets = self.session.engine.delivered_frame().to_vec();
                let arrival = Arrival { arrived, ready: now, octets };
                let Some(thread) = reader else {
                    self.session.keep(end, arrival);
                    self.wake_selectors(end);
                    return;
                };
                self.session.endpoints[end].delivered.add(arrived, now, &arrival.octets);
                self.cancel_alarm(thread);
                self.session.threads[thread].state = State::Running;
                self.ready.push_back((thread, Wake::Frame(arrival)));
            }
            Owner::Listener(synthetic) => {
                let node = self.session.system.channel(channel).listeners[listener];
                let engine = &self.session.engine;
                let times = [arrived, now].map(|at| engine.read_clock(node, at));
                synthetic.read(engine.delivered_frame(), times, now);
            }
            Owner::Nobody(delivered) => {
                delivered.add(arrived, now, self.session.engine.delivered_frame());
            }
            Owner::Talker(_) | Owner::OnKernel(_) | Owner::Elsewhere => {}
        }
    }

    /// Tells every thread that waits for one of several ends, this one among them.
    fn wake_selectors(&mut self, end: EndpointId) {
        for thread in self.session.threads.positions() {
            let found = &self.session.threads[thread];
            let selecting = found.state == State::Selecting;
            let at = found.selected.iter().position(|e| selecting && *e == end);
            if let Some(at) = at {
                self.cancel_alarm(thread);
                self.session.threads[thread].state = State::Running;
                self.ready.push_back((thread, Wake::Ready(at)));
            }
        }
    }

    fn set_alarm(&mut self, thread: ThreadId) -> u64 {
        let found = &mut self.session.threads[thread];
        found.alarms = found.alarms.wrapping_add(1);
        self.latest_alarm(thread)
    }

    /// The engine's token of the latest alarm of a thread.
    fn latest_alarm(&self, thread: ThreadId) -> u64 {
        let alarm = self.session.threads[thread].alarms;
        Wakeup::Thread { thread, alarm }.into()
    }

    fn cancel_alarm(&mut self, thread: ThreadId) {
        self.session.engine.cancel(self.latest_alarm(thread));
        self.session.threads[thread].alarms = self.session.threads[thread].alarms.wrapping_add(1);
    }

    /// Tells a thread what it waited for, then serves it until it waits again.
    fn go_on(&mut self, thread: ThreadId, wake: Wake) -> Result<(), Failure> {
        self.session.await_thread(thread)?;
        if self.session.threads[thread].state == State::Done {
            self.drop_work();
            self.release_joiners(thread);
            return Ok(()); // it could not be created, or its program has ended since
        }
        self.session.threads[thread].state = State::Running;
        self.session.date_notices(thread);
        match wake {
            Wake::Done => self.session.answer(thread, Body::Done)?,
            Wake::Ready(at) => self.session.answer(thread, Body::Ready(at as u32))?,
            Wake::Empty => self.session.answer(thread, Body::Empty)?,
            Wake::Frame(arrival) => self.answer_frame(thread, &arrival)?,
            Wake::Started => {
                let clock = self.session.clock_of(thread);
                let (write_until, stop) = (self.session.write_until, self.session.stop);
                let start = Start { base: Base::Virtual, clock, write_until, stop };
                self.session.answer(thread, Body::Started(start))?;
            }
        }
        while self.session.threads[thread].state == State::Running {
            self.serve(thread)?;
        }
        Ok(())
    }

    /// A thread leaves the run. After the end of the run all programs clean up side by side.
    fn leave(&mut self, thread: ThreadId) -> Result<(), Failure> {
        self.session.done(thread);
        let program = self.session.threads[thread].program;
        if self.session.members[program].main == thread && !self.over {
            self.session.await_exit(program)?;
            self.drop_work();
        }
        self.release_joiners(thread);
        Ok(())
    }

    fn answer_frame(&mut self, thread: ThreadId, arrival: &Arrival) -> Result<(), Failure> {
        // A queue holds only so many: who takes messages from it comes to an end.
        let program = self.session.threads[thread].program;
        self.session.members[program].requests = Requests::default();
        let body = self.session.frame(self.host_of(thread), arrival);
        self.session.answer(thread, body)
    }

    /// Serves one request.
    fn serve(&mut self, thread: ThreadId) -> Result<(), Failure> {
        let mut packet = [0; MAX_PACKET];
        let Some(length) = self.session.listen_to(thread, &mut packet)? else {
            self.session.departed(thread, GONE_PATIENCE)?;
            self.drop_work();
            self.release_joiners(thread);
            return Ok(());
        };
        let program = self.session.threads[thread].program;
        let request = self.session.decode(thread, &packet[..length])?;
        if !self.session.members[program].requests.count(&request) {
            let what = "calls Onbeat endlessly without letting time pass";
            return Err(self.session.protocol_violation(thread, what));
        }
        if !self.over {
            self.session.note(thread, &request, &packet[..length]);
        }
        if self.over && !is_unanswered(&request) {
            self.session.answer(thread, Body::Stopped)?;
            return Ok(());
        }
        match request {
            Request::Hello(_) | Request::Begin(_) | Request::BeginInMemory(_) => {
                Err(self.session.protocol_violation(thread, "greets twice"))
            }
            Request::Open { role, size, name } => self.session.open(thread, role, size, name),
            Request::Send(end, frame) => self.session.send(program, end, frame),
            Request::Start => {
                self.session.threads[thread].state = State::AtStart;
                Ok(())
            }
            Request::Sleep(until) => {
                let at = self.session.when(thread, until);
                self.sleep(thread, at, Some(self.session.in_run(thread, until)));
                Ok(())
            }
            Request::Launch(end, at, frame) => self.launch(thread, end, at, frame),
            Request::Work(work) => {
                self.work(thread, work);
                Ok(())
            }
            Request::Receive(end, patience) => self.receive(thread, end, patience),
            Request::Select(ends, patience) => self.select(thread, ends, patience),
            Request::Took(end, _) => self.took(thread, end),
            Request::Close(end) => self.session.close(thread, end),
            Request::Announce => {
                let ticket = self.session.announce(thread)?;
                self.ready.push_back((ticket, Wake::Done));
                Ok(())
            }
            Request::Join(ticket) => self.join(thread, ThreadId(ticket)),
            Request::Park { key, patience, holder } => self.park(thread, key, patience, holder),
            Request::Unpark(key) => {
                self.unpark(program, key);
                Ok(())
            }
            Request::Yield => self.session.answer_without_offers(thread, Body::Done),
            Request::Bye => self.leave(thread),
        }
    }
}

impl Scheduler<'_, '_> {
    /// Lets a thread continue at `at`; if it sleeps until its clock reads `until`, which it does
    /// then as it is now, after the wake-up delay.
    fn sleep(&mut self, thread: ThreadId, at: NetTime, until: Option<SyncedTime>) {
        if at <= self.session.engine.now() {
            self.ready.push_back((thread, Wake::Done));
            self.session.threads[thread].state = State::Sleeping;
            return;
        }
        let token = self.set_alarm(thread);
        self.session.threads[thread].state = State::Sleeping;
        let host = self.host_of(thread);
        match until {
            Some(until) => self.session.engine.wake_when(host, until, token),
            None => self.session.engine.alarm(at, token),
        }
    }

    /// A frame leaves when the thread's clock reads `at`, as from a kernel that launches frames at
    /// their time: whose message it is has captured it for then. The thread continues after the
    /// wake-up delay.
    fn launch(
        &mut self,
        thread: ThreadId,
        end: u32,
        at: SyncedTime,
        frame: &[u8],
    ) -> Result<(), Failure> {
        if self.session.when(thread, at) <= self.session.engine.now() {
            self.session.send(self.session.threads[thread].program, end, frame)?;
            return self.session.answer(thread, Body::Done);
        }
        let (token, at) = (self.set_alarm(thread), self.session.in_run(thread, at));
        self.session.threads[thread].launch = (end, frame.to_vec());
        self.session.threads[thread].state = State::Launching;
        self.session.engine.alarm_when(self.host_of(thread), at, token);
        Ok(())
    }

    /// The instant has come for which a thread wrote a message.
    fn launched(&mut self, thread: ThreadId) -> Result<(), Failure> {
        let (end, frame) = std::mem::take(&mut self.session.threads[thread].launch);
        self.session.send(self.session.threads[thread].program, end, &frame)?;
        let (now, token) = (self.session.engine.now(), self.set_alarm(thread));
        self.session.threads[thread].state = State::Sleeping;
        self.session.engine.wake_at(self.host_of(thread), now, token);
        Ok(())
    }

    /// Lets a thread compute: with a processor to itself, or with its share of those of its host.
    fn work(&mut self, thread: ThreadId, work: Work) {
        let now = self.session.engine.now();
        let clock = self.session.clock_of(thread);
        let left = self.session.stop - now + Span::from_ns(1);
        let span = work.span.clamp(Span::ZERO, left);
        let until = clamp_to_run(work.until, &clock, self.session.stop);
        let host = self.host_of(thread);
        if !self.processors.are_shared(host) {
            match now + span <= clock.when_near(now, until) {
                true => self.sleep(thread, now + span, None),
                false => self.be_cut_short(thread, until),
            }
            return;
        }
        let limit = clock.when_near(now, until);
        if limit <= now {
            self.be_cut_short(thread, until);
            return;
        }
        let program = self.session.programs[self.session.threads[thread].program];
        self.processors.start(&mut self.session.engine, program, thread, Work { span, ..work });
        let token = self.set_alarm(thread);
        self.session.threads[thread].state = State::Working;
        self.session.engine.alarm_when(host, until, token);
    }

    /// Work on processors of a host is done.
    fn worked(&mut self, host: NodeId) {
        for thread in self.processors.done(&mut self.session.engine, host) {
            self.cancel_alarm(thread);
            self.ready.push_back((thread, Wake::Done));
        }
    }

    /// The limit of a thread's work has come. What is done at this very instant is done.
    fn cut_short(&mut self, thread: ThreadId) {
        let host = self.host_of(thread);
        let left = self.processors.cancel(&mut self.session.engine, host, thread);
        match left {
            Span::ZERO => self.ready.push_back((thread, Wake::Done)),
            _ => {
                let now = self.session.engine.now();
                let token = self.set_alarm(thread);
                self.session.threads[thread].state = State::CutShort;
                self.session.engine.wake_at(host, now, token);
            }
        }
    }

    /// Wakes a thread at `until`, its work not done: also one whose work begins at that very
    /// instant. Who comes later does not begin.
    fn be_cut_short(&mut self, thread: ThreadId, until: SyncedTime) {
        let clock = self.session.clock_of(thread);
        self.session.threads[thread].state = State::CutShort;
        if until < clock.read(self.session.engine.now()) {
            self.ready.push_back((thread, Wake::Empty));
            return;
        }
        let (host, token) = (self.host_of(thread), self.set_alarm(thread));
        self.session.engine.wake_when(host, until, token);
    }

    fn host_of(&self, thread: ThreadId) -> NodeId {
        self.session.host_of(thread)
    }

    /// Those whose threads have ended need no processor any more.
    fn drop_work(&mut self) {
        for thread in self.session.threads.positions() {
            if self.session.threads[thread].state == State::Done {
                let host = self.host_of(thread);
                self.processors.cancel(&mut self.session.engine, host, thread);
                self.waits_no_more(thread);
            }
        }
    }

    fn receive(&mut self, thread: ThreadId, end: u32, patience: Timeout) -> Result<(), Failure> {
        let end = self.session.reading_end(thread, end)?;
        if let Some(arrival) = self.session.take(end) {
            return self.answer_frame(thread, &arrival);
        }
        self.wait(thread, State::Reading(end), patience)
    }

    /// A thread has read what it was offered.
    fn took(&mut self, thread: ThreadId, end: u32) -> Result<(), Failure> {
        let end = self.session.reading_end(thread, end)?;
        if self.session.take(end).is_none() {
            return Err(self.session.protocol_violation(thread, "takes what it was not offered"));
        }
        let program = self.session.threads[thread].program;
        self.session.members[program].requests = Requests::default();
        Ok(())
    }

    fn select(
        &mut self,
        thread: ThreadId,
        ends: EndpointNumbers<'_>,
        patience: Timeout,
    ) -> Result<(), Failure> {
        let ends = ends.numbers().map(|end| self.session.reading_end(thread, end));
        let ends = ends.collect::<Result<Vec<EndpointId>, Failure>>()?;
        if let Some(at) = ends.iter().position(|e| !self.session.endpoints[*e].inbox.is_empty()) {
            self.session.answer(thread, Body::Ready(at as u32))?;
            return Ok(());
        }
        self.session.threads[thread].selected = ends;
        self.wait(thread, State::Selecting, patience)
    }

    /// Makes a thread wait for a frame, or tells it at once that it will not.
    fn wait(&mut self, thread: ThreadId, state: State, patience: Timeout) -> Result<(), Failure> {
        let until = match patience {
            Timeout::None => None,
            Timeout::Until(until) => Some(until),
            Timeout::Endless => {
                self.session.threads[thread].state = state;
                return Ok(());
            }
        };
        match until {
            Some(until) if self.session.when(thread, until) > self.session.engine.now() => {
                let token = self.set_alarm(thread);
                self.session.threads[thread].state = state;
                let (host, until) = (self.host_of(thread), self.session.in_run(thread, until));
                self.session.engine.alarm_when(host, until, token);
            }
            _ => self.session.answer(thread, Body::Empty)?,
        }
        Ok(())
    }

    /// Lets the threads of a program continue that wait for a key.
    fn unpark(&mut self, program: ProgramId, key: u64) {
        for thread in std::mem::take(&mut self.parked) {
            let found = &self.session.threads[thread];
            if found.state != State::Parked(key) || found.program != program {
                self.parked.push(thread);
                continue;
            }
            self.cancel_alarm(thread);
            self.waits_no_more(thread);
            self.session.threads[thread].state = State::Running;
            self.ready.push_back((thread, Wake::Done));
        }
    }

    /// Makes a thread wait for a key, and who has what it waits for as urgent as it is.
    fn park(
        &mut self,
        thread: ThreadId,
        key: u64,
        patience: Timeout,
        holder: u32,
    ) -> Result<(), Failure> {
        self.wait(thread, State::Parked(key), patience)?;
        if self.session.threads[thread].state != State::Parked(key) {
            return Ok(());
        }
        self.parked.push(thread);
        let program = self.session.threads[thread].program;
        let is_it = |t: &Thread| {
            holder != 0 && t.program == program && t.tid == holder && t.state != State::Done
        };
        if let Some(holder) = self.session.threads.position(is_it) {
            let host = self.host_of(thread);
            self.processors.wait_for(&mut self.session.engine, host, thread, holder);
        }
        Ok(())
    }

    fn waits_no_more(&mut self, thread: ThreadId) {
        let host = self.host_of(thread);
        self.processors.waits_no_more(&mut self.session.engine, host, thread);
    }

    fn join(&mut self, thread: ThreadId, other: ThreadId) -> Result<(), Failure> {
        let program = self.session.threads[thread].program;
        match self.session.threads.get(other) {
            Some(found) if found.program == program && other != thread => {
                if found.state == State::Done {
                    self.session.answer(thread, Body::Done)?;
                } else {
                    self.session.threads[thread].state = State::Joining(other);
                }
                Ok(())
            }
            _ => Err(self
                .session
                .protocol_violation(thread, "waits for a thread that it does not have")),
        }
    }

    fn release_joiners(&mut self, ended: ThreadId) {
        for thread in self.session.threads.positions() {
            if self.session.threads[thread].state == State::Joining(ended) {
                self.ready.push_back((thread, Wake::Done));
            }
        }
    }
}
