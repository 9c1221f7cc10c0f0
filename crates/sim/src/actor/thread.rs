//! A thread of an actor that keeps to the rules, as far as its script does.

use super::log::digest;
use super::{ActorShared, dawdle, hang, process};
use crate::script::{ActorStep, name};
use onbeat::{
    ChannelError, Context, Instant, Listener, MessageInfo, Octets, SetupError, Span, SyncedTime,
    Talker, Timeout, Work, Written, rendezvous,
};
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::fmt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What threads wait for.
static WORD: AtomicU32 = AtomicU32::new(0);
/// How many values the program has written.
static VALUES: AtomicU64 = AtomicU64::new(0);

/// More messages than a queue holds.
const DRAIN_MAX: usize = 4_096;
/// So often in a row a talker writes at one instant.
const TWICE: usize = 3;

/// Why a thread ends its script.
enum Over {
    /// The run is over.
    Stopped,
    /// Its script says so.
    Exit(u8),
}

enum End {
    Talker(Box<Talker>),
    Listener(Box<Listener>),
}

struct Slot {
    channel: String,
    size: usize,
    end: End,
}

struct Thread {
    shared: Arc<ActorShared>,
    number: usize,
    context: Option<Context>,
    slots: BTreeMap<usize, Slot>,
    /// Those that it has started: their tickets and their handles, by script.
    started: BTreeMap<usize, (u32, JoinHandle<()>)>,
    /// Continues when the run is over.
    lingers: bool,
}

/// Acts as the main thread.
pub(super) fn main(shared: &Arc<ActorShared>) -> ExitCode {
    let mut thread = Thread::new(shared, 0, None);
    let code = match thread.run(&shared.scripts[0]) {
        Err(Over::Exit(code)) => code,
        Ok(()) | Err(Over::Stopped) => 0,
    };
    thread.say(format_args!("end {code}"));
    if thread.lingers {
        hang()
    }
    drop(thread.slots);
    // Threads that have not ended end with the process.
    std::process::exit(i32::from(code))
}

impl Thread {
    fn new(shared: &Arc<ActorShared>, number: usize, context: Option<Context>) -> Self {
        let (slots, started) = (BTreeMap::new(), BTreeMap::new());
        Self { shared: Arc::clone(shared), number, context, slots, started, lingers: false }
    }

    fn now(&self) -> Option<Instant> {
        self.context.as_ref()?.now().ok()
    }

    fn say(&self, what: fmt::Arguments<'_>) {
        self.shared.log.say(self.number, self.now(), what);
    }

    fn run(&mut self, steps: &[ActorStep]) -> Result<(), Over> {
        for step in steps {
            match self.step(step) {
                Err(Over::Stopped) if self.lingers => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// What a call gave, if it did; what it should not have given is written down.
    fn outcome<T>(
        &self,
        step: &ActorStep,
        got: Result<T, ChannelError>,
    ) -> Result<Option<T>, Over> {
        match got {
            Ok(value) => Ok(Some(value)),
            Err(ChannelError::Stopped) => {
                self.say(format_args!("stopped {}", name(step)));
                Err(Over::Stopped)
            }
            Err(ChannelError::TimedOut) => {
                self.say(format_args!("timed-out {}", name(step)));
                Ok(None)
            }
            Err(other) => {
                self.say(format_args!("error {} {other}", name(step)));
                Ok(None)
            }
        }
    }

    fn set_up<T>(&self, step: &ActorStep, got: Result<T, SetupError>) -> Result<Option<T>, Over> {
        match got {
            Ok(value) => Ok(Some(value)),
            Err(SetupError::ChannelError(fault)) => self.outcome(step, Err(fault)),
            Err(SetupError::Refused(why)) => {
                self.say(format_args!("refused {why}"));
                Ok(None)
            }
            Err(other) => {
                self.say(format_args!("error {} {other}", name(step)));
                Ok(None)
            }
        }
    }

    fn context(&self) -> &Context {
        self.context.as_ref().expect("a script joins first")
    }

    fn local(&self) -> SyncedTime {
        self.now().map(|now| now.local).unwrap_or(SyncedTime::ZERO)
    }

    fn step(&mut self, step: &ActorStep) -> Result<(), Over> {
        match step {
            ActorStep::Join => {
                let joined = self.set_up(step, Context::join())?;
                self.context = joined;
                if self.context.is_none() { Err(Over::Exit(9)) } else { Ok(()) }
            }
            ActorStep::OpenTalker { slot, channel, size } => {
                self.open(step, (*slot, true), channel, *size)
            }
            ActorStep::OpenListener { slot, channel, size } => {
                self.open(step, (*slot, false), channel, *size)
            }
            ActorStep::OpenWrong { talker, channel, size } => {
                self.open(step, (usize::MAX, *talker), channel, *size)
            }
            ActorStep::Start => {
                self.set_up(step, self.context().start())?;
                self.say(format_args!("started"));
                Ok(())
            }
            ActorStep::Write { .. }
            | ActorStep::TryWrite { .. }
            | ActorStep::WriteTwice { .. }
            | ActorStep::WriteWait { .. }
            | ActorStep::WriteAt { .. } => self.write(step),
            ActorStep::Read { .. }
            | ActorStep::ReadFor { .. }
            | ActorStep::TryRead { .. }
            | ActorStep::Drain { .. }
            | ActorStep::ReadLatest { .. }
            | ActorStep::ReadWait { .. } => self.read(step),
            ActorStep::Select { slots, ns } => self.select(step, slots, *ns),
            ActorStep::Rendezvous { talker, listener, ns } => {
                self.meet(step, [*talker, *listener], *ns)
            }
            ActorStep::Repeat { times, steps } => (0..*times).try_for_each(|_| self.run(steps)),
            ActorStep::Sleep { .. }
            | ActorStep::SleepTo { .. }
            | ActorStep::Work { .. }
            | ActorStep::WorkUntil { .. }
            | ActorStep::Await { .. }
            | ActorStep::Wake
            | ActorStep::Limit { .. }
            | ActorStep::Close { .. }
            | ActorStep::Pester { .. } => self.pass(step),
            ActorStep::Spawn { script } => self.spawn(step, *script),
            ActorStep::JoinThread { script } => self.join(step, *script),
            ActorStep::Dawdle { .. }
            | ActorStep::Say { .. }
            | ActorStep::Child
            | ActorStep::Fork => self.machine(step),
            _ => self.last(step),
        }
    }

    fn open(
        &mut self,
        step: &ActorStep,
        (slot, talker): (usize, bool),
        channel: &str,
        size: u32,
    ) -> Result<(), Over> {
        let octets = Octets::new(size);
        let end = match talker {
            true => self.context().open_talker(channel, octets).map(|t| End::Talker(Box::new(t))),
            false => {
                self.context().open_listener(channel, octets).map(|l| End::Listener(Box::new(l)))
            }
        };
        let wrong = matches!(step, ActorStep::OpenWrong { .. });
        let refused = matches!(end, Err(SetupError::Refused(_)));
        let stopped = matches!(end, Err(SetupError::ChannelError(ChannelError::Stopped)));
        if wrong != refused && !stopped {
            let why = end.as_ref().err().map(ToString::to_string);
            self.say(format_args!("error open {channel} {why:?}"));
        }
        if let Some(end) = self.set_up(step, end)? {
            let kind = if talker { "talker" } else { "listener" };
            self.say(format_args!("opened {kind} {channel}"));
            let (channel, size) = (channel.to_owned(), size as usize);
            self.slots.insert(slot, Slot { channel, size, end });
        }
        Ok(())
    }

    /// The next value: no two of a program are alike, as far as they have room for that.
    fn value(size: usize) -> Vec<u8> {
        let number = VALUES.fetch_add(1, Ordering::Relaxed) + 1;
        let octets = number.to_le_bytes();
        (0..size).map(|at| octets.get(at).copied().unwrap_or(octets[0] ^ at as u8)).collect()
    }

    fn write(&mut self, step: &ActorStep) -> Result<(), Over> {
        let (ActorStep::Write { slot }
        | ActorStep::TryWrite { slot }
        | ActorStep::WriteTwice { slot }
        | ActorStep::WriteWait { slot }
        | ActorStep::WriteAt { slot, .. }) = step
        else {
            return Ok(());
        };
        let count = if matches!(step, ActorStep::WriteTwice { .. }) { TWICE } else { 1 };
        for _ in 0..count {
            let local = self.local();
            let Some(Slot { channel, size, end: End::Talker(talker) }) = self.slots.get_mut(slot)
            else {
                return Ok(());
            };
            let (value, channel) = (Self::value(*size), channel.clone());
            if matches!(step, ActorStep::WriteWait { .. }) {
                // Whoever is killed while it waits has written.
                let now = self.context.as_ref().and_then(|context| context.now().ok());
                self.shared.log.say(self.number, now, format_args!("unsure {channel}"));
            }
            let got = match step {
                ActorStep::Write { .. } => talker.write(&value).map(Some),
                ActorStep::WriteWait { .. } => talker.write_wait(&value).map(|w| Some(w.capture)),
                ActorStep::WriteAt { ahead_ns, .. } => {
                    talker.write_at(&value, local + Span::from_ns(*ahead_ns)).map(Some)
                }
                _ => talker.try_write(&value).map(|written| match written {
                    Written::Sent { capture } => Some(capture),
                    Written::RateExceeded { .. } | Written::NotReserved => None,
                }),
            };
            match self.outcome(step, got)? {
                Some(Some(capture)) => {
                    let (capture, value) = (capture.as_ns(), digest(&value));
                    let sure =
                        if matches!(step, ActorStep::WriteWait { .. }) { " sure" } else { "" };
                    self.say(format_args!("wrote {channel} {capture} {value:x}{sure}"));
                }
                Some(None) => self.say(format_args!("exceeded {channel}")),
                None => {}
            }
        }
        Ok(())
    }

    fn note(&self, channel: &str, how: &str, info: &MessageInfo, value: &[u8]) {
        let (capture, latency) = (info.capture.as_ns(), info.latency.as_ns());
        let (arrived, age) = (info.arrived.as_ns(), info.age.as_ns());
        let (sequence, gap, flags, value) = (info.sequence, info.gap, info.flags, digest(value));
        self.say(format_args!(
            "read {channel} {capture} {value:x} {latency} {arrived} {age} {sequence} {gap} {flags} \
             {how}"
        ));
    }

    fn read(&mut self, step: &ActorStep) -> Result<(), Over> {
        let (ActorStep::Read { slot }
        | ActorStep::ReadFor { slot, .. }
        | ActorStep::TryRead { slot }
        | ActorStep::Drain { slot }
        | ActorStep::ReadLatest { slot }
        | ActorStep::ReadWait { slot }) = step
        else {
            return Ok(());
        };
        let count = if matches!(step, ActorStep::Drain { .. }) { DRAIN_MAX } else { 1 };
        for _ in 0..count {
            let local = self.local();
            let Some(Slot { channel, size, end: End::Listener(listener) }) =
                self.slots.get_mut(slot)
            else {
                return Ok(());
            };
            let (mut value, channel) = (vec![0; *size], channel.clone());
            let got = match step {
                ActorStep::Read { .. } => listener.read(&mut value, Timeout::Endless),
                ActorStep::ReadFor { ns, .. } => {
                    listener.read(&mut value, Timeout::Until(local + Span::from_ns(*ns)))
                }
                ActorStep::ReadLatest { .. } => listener.read_latest(&mut value),
                ActorStep::ReadWait { .. } => listener.read_wait(&mut value).map(Some),
                _ => listener.read(&mut value, Timeout::None),
            };
            if matches!(step, ActorStep::ReadWait { .. }) && got.is_err() {
                self.say(format_args!("unread {channel}"));
            }
            let Some(Some(info)) = self.outcome(step, got)? else {
                self.say(format_args!("empty {channel}"));
                return Ok(());
            };
            self.note(&channel, &name(step), &info, &value);
        }
        Ok(())
    }

    fn select(&mut self, step: &ActorStep, slots: &[usize], ns: i64) -> Result<(), Over> {
        let ends = slots.iter().filter_map(|slot| match self.slots.get(slot) {
            Some(Slot { end: End::Listener(listener), .. }) => Some(&**listener),
            _ => None,
        });
        let ends: Vec<&Listener> = ends.collect();
        let until = Timeout::Until(self.local() + Span::from_ns(ns));
        let got = self.context().select(&ends, until);
        let got = self.outcome(step, got)?.flatten();
        self.say(format_args!("selected {got:?}"));
        Ok(())
    }

    fn meet(&mut self, step: &ActorStep, slots: [usize; 2], ns: i64) -> Result<(), Over> {
        let until = self.local() + Span::from_ns(ns);
        let (Some(mut talker), Some(mut listener)) =
            (self.slots.remove(&slots[0]), self.slots.remove(&slots[1]))
        else {
            return Ok(());
        };
        let mut got = Ok(None);
        let mut received = vec![0; listener.size];
        if let (End::Talker(talks), End::Listener(hears)) = (&mut talker.end, &mut listener.end) {
            talks.io_mut().limit(until);
            hears.io_mut().limit(until);
            let value = Self::value(talker.size);
            // How many messages it takes, only the library knows.
            self.say(format_args!("meets {} {}", talker.channel, listener.channel));
            got = rendezvous(talks, &value, hears, &mut received).map(Some);
            talks.io_mut().limit(SyncedTime::MAX);
            hears.io_mut().limit(SyncedTime::MAX);
        }
        self.slots.extend(slots.into_iter().zip([talker, listener]));
        if let Some(Some(info)) = self.outcome(step, got)? {
            self.say(format_args!("met {} {}", info.capture.as_ns(), digest(&received)));
        }
        Ok(())
    }

    /// What lets time pass, or might.
    fn pass(&mut self, step: &ActorStep) -> Result<(), Over> {
        let local = self.local();
        match step {
            ActorStep::Sleep { .. } | ActorStep::SleepTo { .. } => {
                let target = match step {
                    ActorStep::Sleep { ns } => local + Span::from_ns(*ns),
                    ActorStep::SleepTo { ns } => SyncedTime::from_ns(*ns),
                    _ => local,
                };
                let woke = self.context().sleep_until(target);
                if self.outcome(step, woke)?.is_some() {
                    self.say(format_args!("woke {}", target.as_ns()));
                }
            }
            ActorStep::Work { ns } => {
                let before = self.now().and_then(|now| now.network);
                let done = self.context().work(Span::from_ns(*ns));
                if let (Some(()), Some(before)) = (self.outcome(step, done)?, before) {
                    self.say(format_args!("worked {ns} {}", before.as_ns()));
                }
            }
            ActorStep::WorkUntil { ns, limit_ns, priority } => {
                let until = local + Span::from_ns(*limit_ns);
                let work = Work { until, priority: *priority, ..Work::of(Span::from_ns(*ns)) };
                let done = self.context().work_until(work);
                let done = self.outcome(step, done)?;
                self.say(format_args!("work {done:?}"));
            }
            ActorStep::Await { ns } => {
                let value = WORD.load(Ordering::Acquire);
                let until = Timeout::Until(local + Span::from_ns(*ns));
                let woken = self.context().wait(&WORD, value, until);
                let woken = self.outcome(step, woken)?;
                self.say(format_args!("awaited {woken:?}"));
            }
            ActorStep::Wake => {
                WORD.fetch_add(1, Ordering::AcqRel);
                let woken = self.context().wake(&WORD);
                self.outcome(step, woken)?;
            }
            ActorStep::Limit { slot, ns } => {
                let until = local + Span::from_ns(*ns);
                match self.slots.get_mut(slot).map(|slot| &mut slot.end) {
                    Some(End::Talker(talker)) => talker.io_mut().limit(until),
                    Some(End::Listener(listener)) => listener.io_mut().limit(until),
                    None => {}
                }
            }
            ActorStep::Close { slot } => {
                if let Some(Slot { channel, end, .. }) = self.slots.remove(slot) {
                    let kind = if matches!(end, End::Talker(_)) { "talker" } else { "listener" };
                    drop(end);
                    self.say(format_args!("closed {kind} {channel}"));
                }
            }
            ActorStep::Pester { count } => {
                for _ in 0..*count {
                    let asked = self.context().select(&[], Timeout::None);
                    self.outcome(step, asked)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn spawn(&mut self, step: &ActorStep, script: usize) -> Result<(), Over> {
        let announced = self.context().announce();
        let Some(Some(ticket)) = self.outcome(step, announced)? else { return Ok(()) };
        let number = ticket.number();
        let (shared, context) = (Arc::clone(&self.shared), self.context.clone());
        let handle = std::thread::spawn(move || {
            let mut thread = Thread::new(&shared, script, context);
            match ticket.begin() {
                Ok(()) => {
                    thread.say(format_args!("begun"));
                    let steps = &shared.scripts[script];
                    if let Err(Over::Exit(code)) = thread.run(steps) {
                        thread.say(format_args!("end {code}"));
                        std::process::exit(i32::from(code));
                    }
                    thread.say(format_args!("ended"));
                }
                Err(SetupError::ChannelError(ChannelError::Stopped)) => {}
                Err(error) => thread.say(format_args!("error begin {error}")),
            }
        });
        self.started.insert(script, (number, handle));
        Ok(())
    }

    fn join(&mut self, step: &ActorStep, script: usize) -> Result<(), Over> {
        let Some((ticket, handle)) = self.started.remove(&script) else { return Ok(()) };
        let waited = self.context().wait_for(ticket);
        self.outcome(step, waited)?;
        let sound = handle.join().is_ok();
        self.say(format_args!("joined {script} {sound}"));
        Ok(())
    }

    /// What has nothing to do with the run.
    fn machine(&mut self, step: &ActorStep) -> Result<(), Over> {
        match step {
            ActorStep::Dawdle { ms } => dawdle(*ms),
            ActorStep::Say { lines } => {
                for line in 0..*lines {
                    println!("an actor says line {line}");
                    eprintln!("\u{1b}[31man actor complains in red: panicked? no {line}\u{1b}[0m");
                }
            }
            ActorStep::Child => {
                // In a session of its own, so that no signal to the program's group reaches it.
                let started = Command::new("setsid").args(["sleep", "1000"]).spawn();
                self.say(format_args!("child {}", started.is_ok()));
            }
            ActorStep::Fork => {
                let used = process::forked(|| self.use_as_child());
                self.say(format_args!("forked {used}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// A forked child uses all that its parent opened; 0 if each call refused it.
    fn use_as_child(&self) -> u8 {
        let refused = |got: Option<ChannelError>| got == Some(ChannelError::Forked);
        let context = self.context();
        let now = refused(context.now().err());
        let sleep = refused(context.sleep_until(self.local()).err());
        u8::from(!(now && sleep))
    }

    /// How a program comes to its end.
    fn last(&mut self, step: &ActorStep) -> Result<(), Over> {
        match step {
            ActorStep::Leave { ms } => {
                self.say(format_args!("leaves"));
                self.slots.clear();
                self.context().leave();
                dawdle(*ms);
                Err(Over::Exit(0))
            }
            ActorStep::Exit { code } => {
                if *code != 0 {
                    self.say(format_args!("fatal exit {code}"));
                }
                std::process::exit(*code)
            }
            ActorStep::Die { signal } => {
                self.say(format_args!("fatal die {signal}"));
                let signal = Signal::from_named_raw(*signal).unwrap_or(Signal::KILL);
                loop {
                    // The first SIGSEGV only takes the runtime's handler away.
                    let _ = kill_process(getpid(), signal);
                    dawdle(1);
                }
            }
            ActorStep::Hang => {
                self.say(format_args!("fatal hang"));
                hang()
            }
            ActorStep::Livelock => {
                self.say(format_args!("fatal livelock"));
                loop {
                    let asked = self.context().select(&[], Timeout::None);
                    self.outcome(step, asked)?;
                }
            }
            ActorStep::Linger => {
                self.lingers = true;
                self.say(format_args!("fatal linger"));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
