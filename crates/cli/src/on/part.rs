//! One machine's side of a run over several: `onbeat part`, which the command has copied there and
//! speaks with over its standard input and output.
//!
//! ```text
//! standard input ── reader ──→ clock, files
//!                     └ orders ──→ this thread: looks, runs ──→ writer ── standard output
//! ```
//! When the input ends or is silent, so does the run; whatever happens, the directory goes.

use super::clocks::{Moved, Reading};
use super::protocol::{self, CheckOrder, Order, RunOrder, Told, TuneOrder};
use super::time_error::{Measured, Sampler};
use super::tuned;
use crate::build;
use crate::chosen;
use crate::exit::Exit;
use crate::run;
use crate::source::Source;
use crate::trust::Trust;
use crate::tune::{Prepared, Tuned};
use anyhow::{Context, bail, ensure};
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{
    ClockKind, Interface, InterfaceOptions, InterfaceSettings, NetworkClock, Synchronisation,
};
use onbeat_machine::doctor::{Facts, Requirements, State, evaluate};
use onbeat_measure::records;
use onbeat_model::record::{Carrier, RunLog, TimeErrorSample};
use onbeat_model::system::{Backend, System, TimeMode};
use onbeat_model::time::{NetTime, Span};
use onbeat_run::coordinator::{self, NetworkKind, NoRun, Outcome, RunOptions, StartAt};
use onbeat_run::machine::Machine;
use onbeat_run::noise::port as noise_port;
use onbeat_run::process::{Kept, Reaper, adopt_orphans, end_orphans};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv6Addr, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// After so long without a word the command counts as gone.
const SILENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// For so long an interface may take to have its address, and so often it is looked for.
const ADDRESS_WITHIN: Span = Span::from_s(3);
const LOOK_AGAIN: Span = Span::from_ms(50);

/// Why nothing is begun on a machine.
const NO_KEEPER: &str =
    "the process that clears up if this one is killed (`onbeat keeper`) is gone";

/// Carries out the orders of the command that has made `directory`, until they end.
pub(crate) fn part(directory: &Path) -> anyhow::Result<Exit> {
    is_ours(directory)?;
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    reaper.guard(Kept::Path(directory)).context(NO_KEEPER)?;
    let interrupted = run::interrupt()?;
    let tell = Teller::start(&interrupted);
    tell.say(&Told::Hello { version: env!("CARGO_PKG_VERSION").to_owned() });
    let files = directory.join("system");
    DirBuilder::new().mode(0o700).create(&files)?;
    let orders = listen(&files, &tell, &interrupted);
    let mut member = None;
    let mut tuned = (None, None);
    for order in orders {
        let done = match order {
            Order::Check(order) => Member::new(&files, order).map(|(new, told)| {
                member = Some(new);
                tell.say(&told);
            }),
            Order::Tune(order) => {
                looked_at(&member).and_then(|member| member.tune(&order)).map(|(new, what)| {
                    tuned = (new, Some(what.clone()));
                    tell.say(&Told::Tuned { what });
                })
            }
            Order::Run(order) => looked_at(&member)
                .and_then(|member| member.run(&order, &tuned, &tell, &mut reaper, &interrupted)),
            Order::Restore => {
                let (in_force, _) = std::mem::take(&mut tuned);
                let note = in_force.and_then(|mut tuned| tuned.end());
                tell.say(&Told::Restored { note });
                Ok(())
            }
            Order::File { .. } | Order::Clock { .. } | Order::Alive | Order::Stop => Ok(()),
        };
        if let Err(error) = done {
            tell.say(&Told::Failed { why: format!("{error:#}") });
        }
    }
    Ok(Exit::Fine)
}

fn looked_at(member: &Option<Member>) -> anyhow::Result<&Member> {
    member.as_ref().context("something was ordered before the machine was looked at")
}

/// The directory goes in the end with all that is in it: it must be what was made for this.
fn is_ours(directory: &Path) -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let is_it = directory.is_absolute()
        && name.starts_with("onbeat.")
        && directory.join("onbeat").canonicalize().ok() == Some(own);
    ensure!(is_it, "`onbeat part` is what `onbeat run --on` starts on machines");
    Ok(())
}

/// What is told goes by way of a thread: a stream that takes nothing delays nothing else.
#[derive(Clone)]
pub(super) struct Teller(Sender<Vec<u8>>);

impl Teller {
    fn start(interrupted: &Arc<AtomicBool>) -> Self {
        let (sender, receiver) = mpsc::channel::<Vec<u8>>();
        let interrupted = Arc::clone(interrupted);
        std::thread::spawn(move || {
            let mut output = io::stdout();
            for octets in receiver {
                if output.write_all(&octets).and_then(|()| output.flush()).is_err() {
                    interrupted.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        Self(sender)
    }

    pub(super) fn say(&self, told: &Told) {
        self.send(told, &[]);
    }

    fn send(&self, told: &Told, body: &[u8]) {
        // It is no longer heard: the run ends for that.
        let _ = self.0.send(protocol::encode(told, body));
    }
}

/// Standard input, which must not be silent.
struct Input;

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let input = rustix::stdio::stdin();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut ready, Some(&SILENCE)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => Ok(rustix::io::read(input, into)?),
            Err(error) => Err(error.into()),
        }
    }
}

/// Takes orders: what is quick at once, so that a run does not delay it. When they end, the run is
/// to end.
fn listen(files: &Path, tell: &Teller, interrupted: &Arc<AtomicBool>) -> Receiver<Order> {
    let (sender, receiver) = mpsc::channel();
    let (files, tell, interrupted) = (files.to_owned(), tell.clone(), Arc::clone(interrupted));
    std::thread::spawn(move || {
        let mut lacks = false;
        while let Ok(Some((order, body))) = protocol::next::<Order>(&mut Input) {
            match order {
                Order::Alive => tell.say(&Told::Alive),
                Order::Stop => interrupted.store(true, Ordering::Relaxed),
                Order::Clock { number } => {
                    let tai_ns = StartAt::In(Span::ZERO).network_ns();
                    tell.say(&Told::Clock { number, tai_ns });
                }
                Order::File { name, executable } => {
                    if let Err(error) = keep(&files, &name, executable, &body) {
                        tell.say(&Told::Failed { why: format!("{name}: {error}") });
                        lacks = true;
                    }
                }
                // Without all files it can do nothing, and what it would find is no news.
                Order::Check(_) if lacks => {}
                Order::Check(_) | Order::Tune(_) | Order::Run(_) | Order::Restore => {
                    if sender.send(order).is_err() {
                        break;
                    }
                }
            }
        }
        interrupted.store(true, Ordering::Relaxed);
    });
    receiver
}

/// Writes a file below a directory.
fn keep(files: &Path, name: &str, executable: bool, octets: &[u8]) -> io::Result<()> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other("a file has a place below the directory"));
    }
    let path = files.join(name);
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(octets)
}

/// A machine that has been looked at.
struct Member {
    source: Source,
    order: CheckOrder,
}

impl Member {
    /// Reads the description and looks at the machine.
    fn new(files: &Path, order: CheckOrder) -> anyhow::Result<(Self, Told)> {
        let mut source = Source::load(&files.join(&order.description), false, Trust::Runs)?;
        let built = source.system.programs.iter().map(|program| &program.name);
        let built: Vec<_> = built.map(|name| Self::built(&order.built, files, name)).collect();
        build::place(&mut source.system, &built);
        let interface = Interface::named(&order.interface)
            .with_context(|| format!("interface `{}`", order.interface))?;
        ensure!(
            interface.up,
            "interface `{0}` is down: `ip link set {0} up` starts it",
            order.interface
        );
        let (clock_error_ns, clock) = match synchronisation(&interface, order.ptp4l.as_ref())? {
            Synchronisation::Synchronised { error } => (Some(error.as_ns()), String::new()),
            Synchronisation::NotSynchronised { reasons } => {
                let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
                (None, reasons.join("; "))
            }
        };
        let this = Self { source, order };
        let address = this.link_local(&interface)?;
        let blocks = this.blocks()?;
        this.ports()?;
        for tune in &this.order.tunes {
            this.prepared(tune)?;
        }
        Ok((this, Told::Checked { clock_error_ns, clock, blocks, address }))
    }

    /// What `doctor` finds that keeps the machine from what the system promises in some scenario.
    fn blocks(&self) -> anyhow::Result<Vec<String>> {
        let Self { source, order } = self;
        let plan = source.plan_without_bounds(&source.system, false)?;
        let facts = Facts::collect(&Machine::this(), None);
        let mut blocks = Vec::new();
        for scenario in &order.scenarios {
            let system = self.in_scenario(scenario)?;
            let mut wanted = Requirements::of_host(&system, &plan, &order.host)?;
            wanted.interface = Some(order.interface.clone());
            let findings = evaluate(&facts, Some(&wanted));
            let found = findings.iter().filter(|finding| finding.state == State::Blocks);
            for name in found.map(|finding| finding.name()) {
                if !blocks.contains(&name) {
                    blocks.push(name);
                }
            }
        }
        Ok(blocks)
    }

    /// The address that noise goes from, or to. An interface that came up just now has none yet: it
    /// is waited for where there is noise.
    fn link_local(&self, interface: &Interface) -> anyhow::Result<Option<Ipv6Addr>> {
        let system = &self.source.system;
        let host = chosen::host_named(system, &self.order.host)?;
        let is_needed = system.noise.iter().any(|noise| [noise.from, noise.to].contains(&host));
        let until = MonoTime::now() + ADDRESS_WITHIN;
        loop {
            let address = interface.link_local();
            if address.is_some() || !is_needed || MonoTime::now() >= until {
                return Ok(address);
            }
            pause(LOOK_AGAIN);
        }
    }

    /// Finds that the ports are free that noise comes to.
    fn ports(&self) -> anyhow::Result<()> {
        for scenario in &self.order.scenarios {
            let system = self.in_scenario(scenario)?;
            let host = chosen::host_named(&system, &self.order.host)?;
            for (index, noise) in system.noise.iter().enumerate() {
                let is_sent = self.order.hosts.contains(&system.node(noise.from).name);
                if noise.to != host || !system.run.noise || !is_sent {
                    continue;
                }
                let port = noise_port(index);
                UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).with_context(|| {
                    format!(
                        "UDP port {port}, which noise `{}` comes to, is not free: `ss -ulpn sport \
                         = :{port}` shows whose it is; end that program, or run without `noise`",
                        noise.name
                    )
                })?;
            }
        }
        Ok(())
    }

    /// What a profile takes here.
    fn prepared(&self, order: &TuneOrder) -> anyhow::Result<Prepared> {
        let system = self.in_scenario(&order.scenario)?;
        let host = chosen::host_named(&system, &self.order.host)?;
        tuned::prepared(order, &system, host, &self.order.interface)
    }

    /// Sets a profile. What was set, for a person.
    fn tune(&self, order: &TuneOrder) -> anyhow::Result<(Option<Tuned>, String)> {
        self.prepared(order)?.apply(Span::from_ns(order.most_ns), false)
    }

    /// Where a program is that was compiled.
    fn built(built: &BTreeMap<String, String>, files: &Path, name: &str) -> Option<String> {
        let place: PathBuf = files.join(built.get(name)?);
        Some(place.to_string_lossy().into_owned())
    }

    /// The system in a scenario; an empty name is none.
    fn in_scenario(&self, name: &str) -> anyhow::Result<System> {
        let system = &self.source.system;
        match name {
            "" => Ok(system.clone()),
            name => Ok(system.in_scenario(chosen::scenario(system, name)?)),
        }
    }

    /// The system with the settings of a run.
    fn system_of(&self, order: &RunOrder) -> anyhow::Result<System> {
        let mut system = self.in_scenario(&order.scenario)?;
        system.run.time = TimeMode::Real;
        system.run.duration = Span::from_ns(order.duration_ns);
        system.run.seed = order.seed;
        system.run.backend = order.backend;
        match order.backend {
            Backend::Bridges => system.run.protected = false,
            Backend::NetworkCode => system.run = chosen::with_slot_errors(system.run),
        }
        Ok(system)
    }

    /// Where to ask for the errors of the machine's clock, and for how long.
    fn measured(&self, order: &RunOrder) -> Measured {
        Measured {
            interface: self.order.interface.clone(),
            ptp4l: self.order.ptp4l.clone(),
            zero_ns: order.epoch_ns.saturating_sub(order.clock_offset_ns),
            duration: Span::from_ns(order.duration_ns),
        }
    }

    /// The interface that carries the host's channels.
    fn network(&self, system: &System, order: &RunOrder) -> anyhow::Result<NetworkKind> {
        let CheckOrder { host, interface, transport, .. } = &self.order;
        let options = InterfaceOptions {
            follow_schedule: order.poll_expected,
            sent_stamps: order.stamps,
            ..InterfaceOptions::default()
        };
        let noise = order.noise.iter().filter(|(_, at)| at.is_unicast_link_local());
        let noise = noise.map(|(host, at)| Ok((chosen::host_named(system, host)?, *at)));
        Ok(NetworkKind::Interface {
            host: chosen::host_named(system, host)?,
            name: interface.clone(),
            transport: *transport,
            options,
            epoch_ns: order.epoch_ns,
            clock_offset: Span::from_ns(order.clock_offset_ns),
            clock_spread: Span::from_ns(order.clock_spread_ns),
            noise: noise.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Runs the host's programs and tells what was recorded. With what is in force, and its line.
    fn run(
        &self,
        order: &RunOrder,
        (tuned, set): &(Option<Tuned>, Option<String>),
        tell: &Teller,
        reaper: &mut Reaper,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<()> {
        let system = self.system_of(order)?;
        // What it knows already: it answers by being there.
        reaper.guard(Kept::Path(&self.source.directory)).context(NO_KEEPER)?;
        let (plan, _) = self.source.plan_to_run(&system, system.run.protected)?;
        let stations = self.source.stations(&system)?;
        let mut shown = None;
        let mut clock = Moved::default();
        clock.note(read_clock());
        let mut progress = |now: NetTime| {
            let tenth = now.as_ns() / 100_000_000;
            if shown.replace(tenth) != Some(tenth) {
                clock.note(read_clock());
                tell.say(&Told::Progress { ns: now.as_ns() });
            }
        };
        let sampler = Sampler::start(self.measured(order));
        let mut sampled = 0;
        let mut recorded = |log: &RunLog| {
            let new = sampler.samples_from(sampled);
            sampled += new.len();
            let log = with_machine(log.clone(), set, new);
            tell.send(&Told::Recorded, &records::recording_part(&log));
        };
        let network = self.network(&system, order)?;
        let options = RunOptions {
            proposed: Vec::new(),
            scenario: order.scenario.clone(),
            settings: system.run,
            network,
            stations,
            directory: &self.source.directory,
            progress: &mut progress,
            recorded: Some(&mut recorded),
            interrupted,
            trace: order.trace,
            break_at: order.break_ns.map(Span::from_ns),
            task_trace: None,
            calls: None,
            reaper: Some(&mut *reaper),
            isolated: tuned.as_ref().and_then(Tuned::isolated),
        };
        // Only now: what holds settings until they are taken back is none of the programs'.
        adopt_orphans(true);
        let outcome = coordinator::run(&system, &plan, options);
        let samples = sampler.samples_from(0);
        drop(sampler);
        let left = end_orphans(reaper.number());
        adopt_orphans(false);
        let Outcome { log, mut notes, .. } = match outcome {
            Ok(outcome) => outcome,
            Err(NoRun::Description(found)) => bail!("{}", found.message),
            Err(error) => return Err(error.into()),
        };
        if !left.is_empty() {
            notes.push(format!(
                "processes {left:?}, which the programs left behind, could not be ended"
            ));
        }
        clock.note(read_clock());
        let log = with_machine(log, set, samples);
        tell.send(&Told::Done { notes, set_ns: clock.by() }, &records::encode(&log));
        Ok(())
    }
}

/// A log with what was set on its machine, and measured of the machine's clock.
fn with_machine(mut log: RunLog, set: &Option<String>, samples: Vec<TimeErrorSample>) -> RunLog {
    if let Carrier::Interfaces { parts, .. } = &mut log.network
        && let [part] = &mut parts[..]
    {
        part.tuned.clone_from(set);
        part.time_errors = samples;
    }
    log
}

/// Reads CLOCK_TAI beside the clock that is never set.
fn read_clock() -> Reading {
    let now = || MonoTime::now().as_ns();
    Reading { asked: now(), read: StartAt::In(Span::ZERO).network_ns(), answered: now() }
}

/// What the machine says of its clock.
fn synchronisation(
    interface: &Interface,
    ptp4l: Option<&String>,
) -> anyhow::Result<Synchronisation> {
    let mut settings = InterfaceSettings { clock: ClockKind::Tai, ..InterfaceSettings::default() };
    if let Some(socket) = ptp4l {
        settings.ptp4l = PathBuf::from(socket);
    }
    let clock = NetworkClock::open(interface, &settings)?;
    clock.synchronisation().context("the clock is not watched")
}
