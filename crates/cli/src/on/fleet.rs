//! The machines of a run while it lasts: a process that leads to each, and what they say in the
//! order in which it comes.

use super::protocol::{self, Order, Told};
use super::reach;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat::clock::{MonoTime, pause};
use onbeat_description::machines::HostMachine;
use onbeat_model::system::System;
use onbeat_model::time::Span;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often machines are told that the command is there.
const ALIVE: Span = Span::from_s(1);
/// A machine that says nothing for so long during a run is lost: it answers each time that it is
/// told that the command is there.
const SILENCE: Span = Span::from_s(10);
/// How long machines have to clear up in the end.
const PATIENCE: Span = Span::from_s(10);
/// How long what leads to a machine has to end by itself when nothing more comes of it.
const LAST_WORDS: Span = Span::from_s(1);
/// What a login may print before the greeting.
const GREETING_OCTETS: u64 = 1 << 16;
/// The most of a line of standard error.
const LINE_OCTETS: u64 = 1 << 14;

/// What a clock is said to be that was not: what is wrong with it after that is news.
const SYNCHRONISED: &str = ": the clock is synchronised to within ";
/// The most lines about an interface that are known.
const KNOWN_LINES: usize = 64;

/// What comes of a machine.
pub(super) enum Event {
    /// A shell is there, on a machine of this architecture.
    Greeted { architecture: String },
    /// What the part there says.
    Told(Told, Vec<u8>),
    /// Nothing more comes, and why.
    Ended(String),
}

/// The machines.
pub(super) struct Fleet<'a> {
    members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    told_alive: MonoTime,
    interrupted: &'a AtomicBool,
}

struct Member {
    name: String,
    child: Child,
    orders: Option<Sender<Vec<u8>>>,
    /// When it was last heard, in nanoseconds of the monotonic clock.
    heard: Arc<AtomicI64>,
    /// What it last said on standard error, and when.
    last_words: Arc<Mutex<(String, MonoTime)>>,
    /// Shows it.
    errors: Option<JoinHandle<()>>,
    /// Whether the part speaks there.
    speaks: bool,
    /// Whether it has to be heard now and then.
    is_watched: bool,
    /// Nothing was heard for too long.
    silent: bool,
    ended: bool,
}

impl<'a> Fleet<'a> {
    /// Begins to reach all machines.
    pub(super) fn reach(
        system: &System,
        machines: &[HostMachine],
        interrupted: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let (sender, events) = mpsc::channel();
        let mut fleet =
            Self { members: Vec::new(), events, told_alive: MonoTime::now(), interrupted };
        for (at, machine) in machines.iter().enumerate() {
            let host = &system.node(machine.host).name;
            let name = format!("machine of host `{host}` ({})", reach::place(&machine.access));
            let mut command = reach::command(machine);
            // Its own group: the terminal's signals are for this command.
            let child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
                .with_context(|| format!("{name}: {}", command.get_program().display()))?;
            fleet.members.push(Member::new(name, (host, &machine.interface), child, at, &sender));
        }
        Ok(fleet)
    }

    /// What a machine is called.
    pub(super) fn name(&self, member: usize) -> &str {
        &self.members[member].name
    }

    /// Whether the part on a machine can be told something.
    pub(super) fn speaks(&self, member: usize) -> bool {
        self.members[member].speaks
    }

    /// Tells a machine something. If it is gone, that comes as an event.
    pub(super) fn tell(&self, member: usize, order: &Order, body: &[u8]) {
        self.send(member, protocol::encode(order, body));
    }

    /// Tells all of them the same.
    pub(super) fn tell_all(&self, order: &Order) {
        (0..self.members.len()).for_each(|member| self.tell(member, order, &[]));
    }

    /// Sends octets as they are: what is said to a shell.
    pub(super) fn send(&self, member: usize, octets: Vec<u8>) {
        if let Some(orders) = &self.members[member].orders {
            let _ = orders.send(octets);
        }
    }

    /// From now on, or no longer, a machine that says nothing is lost.
    pub(super) fn watch(&mut self, watched: bool) {
        let now = MonoTime::now().as_ns();
        for member in &mut self.members {
            member.is_watched = watched;
            member.heard.store(now, Ordering::Relaxed);
        }
    }

    /// The next event until an instant; nothing if none comes.
    pub(super) fn next(&mut self, until: MonoTime) -> Option<(usize, Event)> {
        loop {
            if let Some(silent) = self.look_after() {
                return Some((silent, self.note(silent, Event::Ended(String::new()))));
            }
            let left = (until - MonoTime::now()).clamp(Span::ZERO, ALIVE);
            let left = Duration::from_nanos(left.as_ns().unsigned_abs());
            match self.events.recv_timeout(left) {
                // What a lost machine may still say is not about why it was lost.
                Ok((member, _)) if self.members[member].ended => {}
                Ok((member, event)) => return Some((member, self.note(member, event))),
                Err(RecvTimeoutError::Timeout) if MonoTime::now() < until => {}
                Err(_) => return None,
            }
        }
    }

    /// The next thing that a machine tells while all is well, within some time.
    ///
    /// # Errors
    /// When a machine ends or cannot do what was asked, time is over, or the user interrupts.
    pub(super) fn expect(
        &mut self,
        within: Span,
        what: &dyn Fn(&Self) -> String,
    ) -> anyhow::Result<(usize, Event)> {
        let until = MonoTime::now() + within;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let step = until.min(MonoTime::now() + ALIVE);
            match self.next(step) {
                Some((member, Event::Ended(why))) => bail!("{}: {why}", self.name(member)),
                Some((member, Event::Told(Told::Failed { why }, _))) => {
                    bail!("{}: {why}", self.name(member))
                }
                Some(event) => return Ok(event),
                None if MonoTime::now() < until => {}
                None => bail!("{} within {within}", what(self)),
            }
        }
    }

    fn note(&mut self, at: usize, event: Event) -> Event {
        let member = &mut self.members[at];
        match event {
            Event::Told(Told::Hello { .. }, _) => member.speaks = true,
            Event::Ended(why) => return Event::Ended(member.end(&why)),
            Event::Greeted { .. } | Event::Told(..) => {}
        }
        event
    }

    /// Says now and then that the command is there, and ends what is silent: one that is so now.
    fn look_after(&mut self) -> Option<usize> {
        let now = MonoTime::now();
        if now - self.told_alive >= ALIVE {
            self.told_alive = now;
            for at in 0..self.members.len() {
                if self.members[at].speaks {
                    self.tell(at, &Order::Alive, &[]);
                }
            }
        }
        let is_silent = |member: &Member| {
            let heard = MonoTime::from_ns(member.heard.load(Ordering::Relaxed));
            member.is_watched && !member.ended && now - heard > SILENCE
        };
        let silent = self.members.iter().position(is_silent)?;
        self.members[silent].silent = true;
        let _ = self.members[silent].child.kill();
        Some(silent)
    }
}

impl Drop for Fleet<'_> {
    /// Machines clear up when their input ends; what leads to them ends with that.
    fn drop(&mut self) {
        self.members.iter_mut().for_each(|member| member.orders = None);
        let until = MonoTime::now() + PATIENCE;
        for member in &mut self.members {
            loop {
                match member.child.try_wait() {
                    Ok(None) if MonoTime::now() < until => pause(Span::from_ms(5)),
                    Ok(None) => {
                        terminal::say(format_args!(
                            "onbeat: {}: it does not end: a directory may be left there",
                            member.name
                        ));
                        let _ = member.child.kill();
                        let _ = member.child.wait();
                        break;
                    }
                    Ok(Some(_)) | Err(_) => break,
                }
            }
        }
    }
}

impl Member {
    fn new(
        name: String,
        (host, interface): (&str, &str),
        mut child: Child,
        at: usize,
        events: &Sender<(usize, Event)>,
    ) -> Self {
        let (orders, to_send) = mpsc::channel::<Vec<u8>>();
        let heard = Arc::new(AtomicI64::new(MonoTime::now().as_ns()));
        let last_words = Arc::new(Mutex::new((String::new(), MonoTime::from_ns(0))));
        if let Some(mut input) = child.stdin.take() {
            std::thread::spawn(move || {
                // Its output says when it is gone.
                to_send.into_iter().try_for_each(|octets| input.write_all(&octets))
            });
        }
        let errors = child.stderr.take().map(|errors| {
            let (host, last) = (host.to_owned(), Arc::clone(&last_words));
            let about = format!("onbeat: {interface}: ");
            std::thread::spawn(move || say_lines(errors, &host, &about, &last))
        });
        if let Some(output) = child.stdout.take() {
            let output = BufReader::new(Heard { output, heard: Arc::clone(&heard) });
            let events = events.clone();
            std::thread::spawn(move || listen(output, at, &events));
        }
        Self {
            name,
            child,
            orders: Some(orders),
            heard,
            last_words,
            errors,
            speaks: false,
            is_watched: false,
            silent: false,
            ended: false,
        }
    }

    /// Nothing more comes: why, as far as can be known.
    fn end(&mut self, why: &str) -> String {
        self.ended = true;
        self.speaks = false;
        if self.silent {
            return format!("nothing was heard of it for {SILENCE}");
        }
        self.orders = None;
        // What leads there ends by itself, and may say why.
        let until = MonoTime::now() + LAST_WORDS;
        let mut status = None;
        while status.is_none() && MonoTime::now() < until {
            status = self.child.try_wait().ok().flatten();
            pause(Span::from_ms(2));
        }
        let _ = self.child.kill();
        let status = status.or_else(|| self.child.wait().ok());
        while self.errors.as_ref().is_some_and(|thread| !thread.is_finished())
            && MonoTime::now() < until
        {
            pause(Span::from_ms(2));
        }
        let (last, at) = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // What came before other news is not about the end.
        if !last.is_empty() && at.as_ns() >= self.heard.load(Ordering::Relaxed) {
            return last;
        }
        match status.filter(|status| !status.success() && status.code().is_some()) {
            Some(status) => format!("{why} ({status})"),
            None => why.to_owned(),
        }
    }
}

/// Output that notes when something comes.
struct Heard<R> {
    output: R,
    heard: Arc<AtomicI64>,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.output.read(into)?;
        if count > 0 {
            self.heard.store(MonoTime::now().as_ns(), Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// Passes on what a machine says, until it ends.
fn listen(mut output: impl BufRead, at: usize, events: &Sender<(usize, Event)>) {
    let why = match greeting(&mut output) {
        Err(why) => why,
        Ok(greeted) => {
            let mut open = events.send((at, greeted)).is_ok();
            loop {
                match protocol::next::<Told>(&mut output) {
                    Ok(Some((told, body))) if open => {
                        open = events.send((at, Event::Told(told, body))).is_ok();
                    }
                    Ok(Some(_)) => return,
                    Ok(None) => break "the connection ended".to_owned(),
                    Err(error) => break format!("the connection broke: {error}"),
                }
            }
        }
    };
    let _ = events.send((at, Event::Ended(why)));
}

/// The first line of a machine.
fn greeting(output: &mut impl BufRead) -> Result<Event, String> {
    let mut left = GREETING_OCTETS;
    loop {
        let mut line = Vec::new();
        let read = output.take(left).read_until(b'\n', &mut line);
        match read.map_err(|error| error.to_string())? {
            0 if left == 0 => return Err("no shell answers there".to_owned()),
            0 => return Err("the connection ended before anything was begun".to_owned()),
            octets => left -= octets as u64,
        }
        if let Some((architecture, _)) = reach::greeted(&String::from_utf8_lossy(&line)) {
            return Ok(Event::Greeted { architecture: architecture.to_owned() });
        }
    }
}

/// Shows what comes on standard error, with the host before it. What begins with `about` is said
/// by each program that looks at the interface and its clock: once is enough, until it changes.
fn say_lines(errors: impl Read, host: &str, about: &str, last: &Mutex<(String, MonoTime)>) {
    let mut known = BTreeSet::new();
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(LINE_OCTETS).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = String::from_utf8_lossy(&line);
                if line.contains(SYNCHRONISED) {
                    known.clear();
                }
                let is_known = line.starts_with(about)
                    && known.len() < KNOWN_LINES
                    && !known.insert(line.to_string());
                if !is_known {
                    terminal::say(format_args!("{host}: {}", line.trim_end()));
                }
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = (line.trim_end().to_owned(), MonoTime::now());
            }
        }
    }
}
