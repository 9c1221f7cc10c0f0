//! The command's side of a run on several machines: all are made ready, start at one instant, and
//! are heard until the last one has told its records. What fails, fails by name, and ends the run
//! everywhere; what was recorded until then is kept.

use super::clocks::{self, Ahead, Clock, Reading};
use super::fleet::{Event, Fleet};
use super::protocol::{CheckOrder, Order, RunOrder, Told, TuneOrder};
use super::tuned;
use crate::arguments::RunArguments;
use crate::build;
use crate::chosen::{self, WrongArgument};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Kind, Output};
use crate::perfetto::TraceFile;
use crate::recording::{self, Recording};
use crate::run::{self as runs, Measured, Wanted};
use crate::source::{self, Source};
use crate::terminal;
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use onbeat::clock::MonoTime;
use onbeat_description::machines::{self, HostMachine, Machines};
use onbeat_measure::records;
use onbeat_model::diagnostic::SourceFile;
use onbeat_model::record::{Carrier, Ending, RunLog};
use onbeat_model::system::{NodeId, TuneProfile};
use onbeat_model::time::{NetTime, Span};
use onbeat_run::coordinator::{NetworkKind, StartAt};
use onbeat_run::process::Reaper;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a machine may take to answer, to take the command, and to look at itself.
const SET_UP: Span = Span::from_s(120);
/// How long a reading of its clock may take.
const READING: Span = Span::from_s(10);
/// How long settings of a machine stay beyond what a run is to take.
const TUNED_BEYOND: Span = Span::from_s(600);
/// How many readings are taken of each clock.
const READINGS: u32 = 16;
/// How long machines have to tell their records when a run is ended.
const LAST_WORDS: Span = Span::from_s(60);
/// Where programs that were compiled are, in the directory of the description on a machine.
const BUILT: &str = ".onbeat-built";
/// Where commands for other architectures are, from the directory of this one.
const RUNNERS: &str = "../lib/onbeat/runners";

/// Runs a system on its machines, measures it and writes the report.
pub(crate) fn run(arguments: &RunArguments, file: &Path) -> anyhow::Result<Exit> {
    let source = runs::load(arguments)?;
    let machines = read(file, &source, arguments.json)?;
    let network = stand_in(&machines.list, arguments)?;
    let wanted = runs::wanted(&source, arguments, &network)?;
    let target = output::place(&source.directory, "out", arguments.out.as_deref())?;
    let built = build::compile(&source, None, &target)?;
    let interrupted = runs::interrupt()?;
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    // First, so that nobody waits for a run whose results have no place.
    let trace = arguments.perfetto.file();
    let trace = TraceFile::begin(trace, &target, arguments.sync, &mut reaper)?;
    let output = Output::begin(&target, Kind::Run, &mut reaper)?.durable(arguments.sync);
    recording::announce(wanted.iter().map(|wanted| &wanted.system), &target);
    let fleet = Fleet::reach(&source.system, &machines.list, &interrupted)?;
    let recordings = machines.list.iter().map(|machine| {
        let host = &source.system.node(machine.host).name;
        Recording::of_part(&target, host)
    });
    let recordings = recordings.collect::<anyhow::Result<Vec<_>>>()?;
    let ahead = vec![None; machines.list.len()];
    let set_ns = vec![None; machines.list.len()];
    let addresses = vec![None; machines.list.len()];
    let built_for = vec![None; machines.list.len()];
    let mut several = Several {
        source: &source,
        machines: &machines,
        fleet,
        recordings,
        ahead,
        set_ns,
        addresses,
        built_for,
    };
    match several.set_up(file, &built, &wanted, arguments.stamps) {
        Err(_) if interrupted.load(Ordering::Relaxed) => {
            terminal::say("onbeat: interrupted: nothing was run");
            return Ok(Exit::Interrupted);
        }
        done => done?,
    }
    let (mut done, mut failed) = (Vec::new(), None);
    for wanted in &wanted {
        match several.one(wanted, arguments, &interrupted) {
            Err(_) if interrupted.load(Ordering::Relaxed) && done.is_empty() => {
                terminal::say("onbeat: interrupted: nothing was run");
                return Ok(Exit::Interrupted);
            }
            Err(_) if interrupted.load(Ordering::Relaxed) => break,
            Err(error) if !done.is_empty() => {
                failed = Some((&wanted.scenario, error));
                break;
            }
            run => done.push(run?),
        }
        let is_early = |run: &Measured| matches!(run.1.ending, Ending::Early { .. });
        if interrupted.load(Ordering::Relaxed) || done.last().is_some_and(is_early) {
            break;
        }
    }
    let Several { fleet, recordings, .. } = several;
    drop(fleet);
    let results = runs::write(&source, &done, output, trace)?;
    recordings.into_iter().for_each(Recording::done);
    if let Some((scenario, error)) = failed {
        return runs::not_run(scenario, error, &target);
    }
    let scenarios: Vec<String> = wanted.iter().map(|wanted| wanted.scenario.clone()).collect();
    runs::name_left_out(&scenarios[done.len()..]);
    runs::show(&source.system, &results, &target, arguments.json);
    Ok(runs::exit_of(&results, interrupted.load(Ordering::Relaxed)))
}

/// Where the machines are.
fn read(file: &Path, source: &Source, json: bool) -> anyhow::Result<Machines> {
    let text = source::read(file).map_err(anyhow::Error::msg)?;
    let found = machines::read(&text, &source.system);
    let files = || [SourceFile { path: file.display().to_string(), text: text.clone() }];
    Ok(found.map_err(|errors| source::wrong(Some(&source.system.name), &files(), &errors, json))?)
}

/// The network of the first machine, for what plans and checks of all of them have in common.
fn stand_in(machines: &[HostMachine], arguments: &RunArguments) -> anyhow::Result<NetworkKind> {
    let Some(first) = machines.first() else {
        bail!(WrongArgument("no host of the description has channels or programs".to_owned()));
    };
    // The one that stations do not take, if there is one.
    let odd = machines.iter().find(|machine| machine.transport != first.transport);
    let HostMachine { host, interface, transport, .. } = odd.unwrap_or(first);
    let options = chosen::options(arguments);
    let xdp = machines
        .iter()
        .find(|machine| machine.transport == onbeat_model::system::TransportKind::Xdp);
    chosen::stamped(xdp.unwrap_or(first).transport, arguments);
    let (host, name, transport) = (*host, interface.clone(), *transport);
    Ok(NetworkKind::Interface {
        host,
        name,
        transport,
        options,
        epoch_ns: 0,
        clock_offset: Span::ZERO,
        clock_spread: Span::ZERO,
        noise: BTreeMap::new(),
    })
}

/// The machines of a run, and what they have recorded.
struct Several<'a> {
    source: &'a Source,
    machines: &'a Machines,
    fleet: Fleet<'a>,
    /// One for each machine.
    recordings: Vec<Recording>,
    /// What each machine's clock showed when it was last read.
    ahead: Vec<Option<Ahead>>,
    /// By how much its clock was set during the last run, at least and at most.
    set_ns: Vec<Option<(i64, i64)>>,
    /// The link-local address of each machine's interface.
    addresses: Vec<Option<Ipv6Addr>>,
    /// Which architecture its command is built for.
    built_for: Vec<Option<Architecture>>,
}

/// What has become of a machine's part of a run.
enum Part {
    Runs,
    Done(Box<RunLog>),
    /// It is over without all records.
    Lost,
}

impl Several<'_> {
    /// Makes all machines ready: each has the command and its files, was looked at, and reads the
    /// same time.
    fn set_up(
        &mut self,
        file: &Path,
        built: &[Option<String>],
        wanted: &[Wanted],
        stamps: bool,
    ) -> anyhow::Result<()> {
        let bar = ProgressBar::new_spinner().with_message("preparing the machines");
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        self.greet(file)?;
        for (at, machine) in self.machines.list.iter().enumerate() {
            self.send_files(at, machine, built)?;
        }
        let own = self.check(wanted)?;
        let clocks = self.clocks(own)?;
        self.ahead = clocks.iter().map(|clock| Some(clock.ahead)).collect();
        bar.finish_and_clear();
        if let Err(why) = clocks::are_together(&clocks, self.machines.clock_error) {
            bail!("{why}");
        }
        if let Some(apart) = clocks::stamps_apart(&clocks).filter(|_| stamps) {
            terminal::say(format_args!("onbeat: {apart}"));
        }
        Ok(())
    }

    /// Waits until the part speaks on each machine.
    fn greet(&mut self, file: &Path) -> anyhow::Result<()> {
        let mut silent: BTreeSet<usize> = (0..self.machines.list.len()).collect();
        while !silent.is_empty() {
            let of = |fleet: &Fleet<'_>| {
                let first = silent.first().map_or("", |at| fleet.name(*at));
                format!("the {first} does not answer")
            };
            let (at, event) = self.fleet.expect(SET_UP, &of)?;
            match event {
                Event::Greeted { architecture } => {
                    let machine = &self.machines.list[at];
                    let path = runner(file, machine, &architecture, self.fleet.name(at))?;
                    let octets =
                        input::read(&path, input::PROGRAM_OCTETS).map_err(anyhow::Error::msg)?;
                    self.built_for[at] = built_for(&octets);
                    self.fleet.send(at, format!("{}\n", octets.len()).into_bytes());
                    self.fleet.send(at, octets);
                }
                Event::Told(Told::Hello { version, .. }, _) => {
                    let own = env!("CARGO_PKG_VERSION");
                    if version != own {
                        let name = self.fleet.name(at);
                        bail!("{name}: its runner is of version {version}, this is {own}");
                    }
                    silent.remove(&at);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Copies what the programs of a machine need.
    fn send_files(
        &self,
        at: usize,
        machine: &HostMachine,
        built: &[Option<String>],
    ) -> anyhow::Result<()> {
        let system = &self.source.system;
        let here = |name: &str| self.source.directory.join(name);
        let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
        for name in self.source.named() {
            files.insert(name.clone(), here(name));
        }
        for name in &machine.files {
            if !here(name).is_file() {
                bail!("{}: `files` names {name}, which is no file", self.fleet.name(at));
            }
            files.insert(name.clone(), here(name));
        }
        for (program, built) in system.programs.iter().zip(built) {
            if program.host != machine.host {
                continue;
            }
            if let Some(built) = built {
                files.insert(format!("{BUILT}/{}", program.name), PathBuf::from(built));
            }
            let words = program.command.iter().skip(usize::from(built.is_some()));
            for word in words.filter(|word| here(word).is_file() && !word.starts_with('/')) {
                files.insert(word.clone(), here(word));
            }
        }
        for (name, path) in files {
            let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
            let is_below = Path::new(&name).components().all(|part| {
                matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
            });
            if !is_below {
                bail!(
                    "{name} is outside of the directory of the description: machines get only \
                     what is below it"
                );
            }
            let octets = input::read(&path, input::PROGRAM_OCTETS).map_err(anyhow::Error::msg)?;
            let mode = path.metadata().with_context(|| path.display().to_string())?.permissions();
            let executable = mode.mode() & 0o111 != 0;
            let of = built_for(&octets).filter(|_| executable);
            if let (Some(of), Some(there)) = (of, self.built_for[at])
                && of != there
            {
                bail!(
                    "{}: {} is built for another architecture than this machine's",
                    self.fleet.name(at),
                    path.display()
                );
            }
            self.fleet.tell(at, &Order::File { name, executable }, &octets);
        }
        Ok(())
    }

    /// Lets each machine look at itself. Returns what each says of its clock.
    fn check(&mut self, wanted: &[Wanted]) -> anyhow::Result<Vec<Result<Span, String>>> {
        let system = &self.source.system;
        let tunes = wanted.iter().filter(|wanted| wanted.system.run.tune != TuneProfile::Off);
        let sources = system.programs.iter().filter(|program| program.source.is_some());
        let built = sources.map(|p| (p.name.clone(), format!("{BUILT}/{}", p.name)));
        let built: BTreeMap<_, _> = built.collect();
        let hosts = self.machines.list.iter().map(|other| system.node(other.host).name.clone());
        let hosts: Vec<String> = hosts.collect();
        for (at, machine) in self.machines.list.iter().enumerate() {
            let order = CheckOrder {
                description: self.source.named()[0].clone(),
                host: system.node(machine.host).name.clone(),
                interface: machine.interface.clone(),
                transport: machine.transport,
                ptp4l: machine.ptp4l.clone(),
                built: built.clone(),
                scenarios: wanted.iter().map(|wanted| wanted.scenario.clone()).collect(),
                hosts: hosts.clone(),
                tunes: tunes.clone().map(|wanted| self.tune_order(machine, wanted)).collect(),
            };
            self.fleet.tell(at, &Order::Check(order), &[]);
        }
        let mut own: Vec<Option<Result<Span, String>>> = vec![None; self.machines.list.len()];
        while let Some(waits) = own.iter().position(Option::is_none) {
            let of =
                |fleet: &Fleet<'_>| format!("the {} has not looked at itself", fleet.name(waits));
            let (at, event) = self.fleet.expect(SET_UP, &of)?;
            if let Event::Told(Told::Checked { clock_error_ns, clock, blocks, address }, _) = event
            {
                self.addresses[at] = address.filter(Ipv6Addr::is_unicast_link_local);
                if !blocks.is_empty() {
                    let host = &system.node(self.machines.list[at].host).name;
                    terminal::say(format_args!(
                        "{host}: `onbeat doctor` finds what keeps it from what the system \
                         promises: {}",
                        blocks.join(", ")
                    ));
                }
                own[at] = Some(clock_error_ns.map(Span::from_ns).ok_or(clock));
            }
        }
        Ok(own.into_iter().flatten().collect())
    }

    /// Reads all clocks.
    fn clocks(&mut self, own: Vec<Result<Span, String>>) -> anyhow::Result<Vec<Clock>> {
        let mut clocks = Vec::new();
        for (at, own) in own.into_iter().enumerate() {
            let name = self.fleet.name(at).to_owned();
            let Some(ahead) = self.ahead(at)? else {
                bail!("{name}: its clock, or this machine's, is being set");
            };
            clocks.push(Clock { name, ahead, own });
        }
        Ok(clocks)
    }

    /// By how much a machine's clock is ahead; nothing if one of the two is being set.
    fn ahead(&mut self, at: usize) -> anyhow::Result<Option<Ahead>> {
        let readings = (0..READINGS).map(|number| self.reading(at, number));
        Ok(Ahead::of(&readings.collect::<anyhow::Result<Vec<_>>>()?))
    }

    /// Marks in each machine's part what its clock showed before the run and after it.
    fn read_again(&mut self, logs: &mut [Option<RunLog>]) {
        for (at, log) in logs.iter_mut().enumerate() {
            let before = self.ahead[at];
            // A machine that is gone, or has failed, has none: what its clock did is not known.
            self.ahead[at] = match self.fleet.speaks(at) {
                true => self.ahead(at).ok().flatten(),
                false => None,
            };
            let (Some(before), Some(after)) = (before, self.ahead[at]) else { continue };
            let meanwhile = before.and_then(self.set_ns[at].take());
            if let Some(Carrier::Interfaces { parts, .. }) = log.as_mut().map(|it| &mut it.network)
            {
                let ahead = Some(meanwhile.recorded().either(after.recorded()));
                parts.iter_mut().for_each(|part| part.ahead = ahead);
            }
        }
    }

    fn reading(&mut self, at: usize, wanted: u32) -> anyhow::Result<Reading> {
        let now = || StartAt::In(Span::ZERO).network_ns();
        let asked = now();
        self.fleet.tell(at, &Order::Clock { number: wanted }, &[]);
        loop {
            let of = |fleet: &Fleet<'_>| format!("the {} does not read its clock", fleet.name(at));
            let event = self.fleet.expect(READING, &of)?;
            let answered = now();
            match event {
                (by, Event::Told(Told::Clock { number, tai_ns }, _))
                    if by == at && number == wanted =>
                {
                    let ahead = self.machines.list[at].clock_offset.as_ns();
                    let read = tai_ns.saturating_add(ahead);
                    return Ok(Reading { asked, read, answered });
                }
                _ => {}
            }
        }
    }

    /// What is set on a machine for a run.
    fn tune_order(&self, machine: &HostMachine, wanted: &Wanted) -> TuneOrder {
        let settings = wanted.system.run;
        let takes = self.machines.start_in + settings.duration + settings.hang_timeout;
        TuneOrder {
            scenario: wanted.scenario.clone(),
            profile: settings.tune,
            cores: machine.tune_cores.clone(),
            force: machine.tune_force,
            root: machine.tune_root.clone(),
            most_ns: (takes + TUNED_BEYOND).as_ns(),
        }
    }

    /// Sets on all machines what a run asks for. What was set on each; nothing where nothing is
    /// asked for.
    fn tune(&mut self, wanted: &Wanted) -> anyhow::Result<Vec<Option<String>>> {
        let mut set = vec![None; self.machines.list.len()];
        if tuned::profile(wanted.system.run.tune).is_none() {
            return Ok(set);
        }
        for (at, machine) in self.machines.list.iter().enumerate() {
            self.fleet.tell(at, &Order::Tune(self.tune_order(machine, wanted)), &[]);
        }
        while let Some(waits) = set.iter().position(Option::is_none) {
            let of = |fleet: &Fleet<'_>| format!("the {} is not tuned", fleet.name(waits));
            if let (at, Event::Told(Told::Tuned { what }, _)) = self.fleet.expect(SET_UP, &of)? {
                let host = &self.source.system.node(self.machines.list[at].host).name;
                terminal::say(format_args!("{host}: tuned: {what}"));
                set[at] = Some(what);
            }
        }
        Ok(set)
    }

    /// Lets the machines take back what was set. One that is gone does so by itself.
    fn restore(&mut self, set: &[Option<String>]) {
        let is_tuned = |at: &usize| set[*at].is_some() && self.fleet.speaks(*at);
        let mut waits: BTreeSet<usize> = (0..set.len()).filter(is_tuned).collect();
        waits.iter().for_each(|at| self.fleet.tell(*at, &Order::Restore, &[]));
        let until = MonoTime::now() + SET_UP;
        while !waits.is_empty() && MonoTime::now() < until {
            match self.fleet.next(until) {
                Some((at, Event::Told(Told::Restored { note }, _))) => {
                    let host = &self.source.system.node(self.machines.list[at].host).name;
                    if let Some(note) = note {
                        terminal::say(format_args!("{host}: {note}"));
                    }
                    waits.remove(&at);
                }
                Some((at, Event::Ended(_))) => _ = waits.remove(&at),
                _ => {}
            }
        }
        for at in waits {
            let name = self.fleet.name(at);
            terminal::say(format_args!("onbeat: the {name} does not say that it is as before"));
        }
    }

    /// One run.
    fn one(
        &mut self,
        wanted: &Wanted,
        arguments: &RunArguments,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Measured> {
        let settings = wanted.system.run;
        let set = self.tune(wanted)?;
        let start = StartAt::In(self.machines.start_in).network_ns();
        chosen::announce(start);
        runs::modelled(wanted);
        runs::unapplied(wanted);
        // What the machines' clocks read then: this one may read anything else.
        let ahead = self.ahead.iter().flatten().map(|ahead| ahead.most).max().unwrap_or(0);
        let epoch_ns = start.saturating_add(ahead);
        let noise = self.noise(wanted);
        let offsets = || self.machines.list.iter().map(|machine| machine.clock_offset.as_ns());
        let spread = offsets().max().unwrap_or(0) - offsets().min().unwrap_or(0);
        let order = |machine: &HostMachine| RunOrder {
            scenario: wanted.scenario.clone(),
            duration_ns: settings.duration.as_ns(),
            seed: settings.seed,
            backend: settings.backend,
            poll_expected: arguments.poll_expected,
            stamps: arguments.stamps,
            trace: arguments.trace,
            break_ns: arguments.break_us.map(Span::as_ns),
            epoch_ns,
            clock_offset_ns: machine.clock_offset.as_ns(),
            clock_spread_ns: spread,
            noise: noise.clone(),
        };
        for (at, machine) in self.machines.list.iter().enumerate() {
            self.fleet.tell(at, &Order::Run(order(machine)), &[]);
        }
        let bar = runs::progress_bar(&wanted.scenario, settings);
        let (mut logs, why) = self.hear(&bar, interrupted);
        bar.finish_and_clear();
        self.read_again(&mut logs);
        self.restore(&set);
        let Some(log) = self.joined(logs)? else {
            bail!("{}", why.unwrap_or_else(|| "nothing was recorded".to_owned()));
        };
        let log = ended(log, why);
        let run = runs::evaluated(self.source, log)?;
        crate::join::apart(&run.2);
        Ok(run)
    }

    /// The addresses of hosts that noise is sent between; says which noise is not sent.
    fn noise(&self, wanted: &Wanted) -> BTreeMap<String, Ipv6Addr> {
        let (system, members) = (&wanted.system, self.machines.list.iter().zip(&self.addresses));
        let name = |node: NodeId| system.node(node).name.clone();
        let addresses: BTreeMap<_, _> = members
            .filter_map(|(machine, address)| Some((name(machine.host), (*address)?)))
            .collect();
        let lacks = |node: NodeId| !addresses.contains_key(&name(node));
        for noise in system.noise.iter().filter(|_| system.run.noise) {
            if let Some(host) = [noise.from, noise.to].into_iter().find(|host| lacks(*host)) {
                let is_there = self.machines.list.iter().any(|machine| machine.host == host);
                let lack = if is_there { "link-local IPv6 address" } else { "machine" };
                terminal::say(format_args!(
                    "onbeat: noise `{}` is not sent: host `{}` has no {lack}",
                    noise.name,
                    name(host)
                ));
            }
        }
        addresses
    }

    /// Hears all machines until each has told its records or is lost, and why the run ended early,
    /// if it did.
    fn hear(
        &mut self,
        bar: &ProgressBar,
        interrupted: &AtomicBool,
    ) -> (Vec<Option<RunLog>>, Option<String>) {
        let count = self.machines.list.len();
        let mut parts: Vec<Part> = (0..count).map(|_| Part::Runs).collect();
        let mut recorded: Vec<Vec<u8>> = vec![Vec::new(); count];
        let mut progress = vec![0; count];
        let mut why: Option<String> = None;
        let mut until: Option<MonoTime> = None;
        self.fleet.watch(true);
        while parts.iter().any(|part| matches!(part, Part::Runs)) {
            if interrupted.load(Ordering::Relaxed) && why.is_none() {
                why = Some("the run was interrupted".to_owned());
            }
            if why.is_some() && until.is_none() {
                until = Some(MonoTime::now() + LAST_WORDS);
                self.fleet.tell_all(&Order::Stop);
            }
            if until.is_some_and(|until| MonoTime::now() > until) {
                break;
            }
            let Some((at, event)) = self.fleet.next(MonoTime::now() + Span::from_ms(100)) else {
                continue;
            };
            let failed = match event {
                Event::Told(Told::Progress { ns }, _) => {
                    progress[at] = ns.max(0);
                    let least = progress.iter().min().copied().unwrap_or(0);
                    bar.set_position(least.unsigned_abs() / 1_000_000);
                    None
                }
                Event::Told(Told::Recorded, octets) => {
                    self.recordings[at].extend(&octets);
                    recorded[at].extend(octets);
                    None
                }
                Event::Told(Told::Done { notes, set_ns }, octets) => {
                    self.set_ns[at] = set_ns;
                    match self.done(at, &notes, &octets) {
                        Err(error) => Some(format!("{error:#}")),
                        Ok(log) => {
                            let early = early(&log);
                            parts[at] = Part::Done(Box::new(log));
                            early
                        }
                    }
                }
                // What it has recorded is here already.
                Event::Ended(_) if matches!(parts[at], Part::Done(_)) => None,
                Event::Told(Told::Failed { why }, _) | Event::Ended(why) => Some(why),
                Event::Greeted { .. } | Event::Told(..) => None,
            };
            if let Some(failed) = failed {
                if matches!(parts[at], Part::Runs) {
                    parts[at] = Part::Lost;
                }
                why.get_or_insert_with(|| format!("{}: {failed}", self.fleet.name(at)));
            }
        }
        self.fleet.watch(false);
        let logs = parts.into_iter().zip(recorded).map(|(part, recorded)| match part {
            Part::Done(log) => Some(*log),
            Part::Runs | Part::Lost => {
                let mut log = records::recover(&recorded).ok()?.pop()?;
                crate::join::cut_off(&mut log);
                Some(log)
            }
        });
        (logs.collect(), why)
    }

    /// The records of a machine whose part is over, and what it says of it.
    fn done(&self, at: usize, notes: &[String], octets: &[u8]) -> anyhow::Result<RunLog> {
        let host = &self.source.system.node(self.machines.list[at].host).name;
        if let Some((least, most)) = self.set_ns[at] {
            terminal::say(format_args!(
                "{host}: its clock was set during the run, by {} to {}: latencies from and to it \
                 are known only as far as that",
                Span::from_ns(least),
                Span::from_ns(most)
            ));
        }
        for note in notes {
            terminal::say(format_args!("{host}: {note}"));
        }
        Ok(records::decode(octets)?)
    }

    /// The parts as one, if there is any.
    fn joined(&self, logs: Vec<Option<RunLog>>) -> anyhow::Result<Option<RunLog>> {
        let (logs, members): (Vec<_>, Vec<_>) =
            logs.into_iter().enumerate().filter_map(|(at, log)| Some((log?, at))).unzip();
        if logs.is_empty() {
            return Ok(None);
        }
        let log = onbeat_measure::merge(&self.source.system, logs).map_err(|error| {
            anyhow::anyhow!("{}: {}", self.fleet.name(members[error.part]), error.why)
        })?;
        crate::join::missing(&self.source.system, &log);
        Ok(Some(log))
    }
}

/// Class and order of octets, and processor, of an ELF file.
type Architecture = ([u8; 2], [u8; 2]);

/// What a file is built for; nothing if it is no ELF file.
fn built_for(file: &[u8]) -> Option<Architecture> {
    let header = file.first_chunk::<20>().filter(|header| header.starts_with(b"\x7fELF"))?;
    Some(([header[4], header[5]], [header[18], header[19]]))
}

/// Why a part ended early, if it did.
fn early(log: &RunLog) -> Option<String> {
    match &log.ending {
        Ending::Complete => None,
        Ending::Early { reason, .. } => Some(reason.clone()),
    }
}

/// A run that ended early, for the reason that comes before all that follow from it.
fn ended(mut log: RunLog, why: Option<String>) -> RunLog {
    if let Some(reason) = why {
        let at = match log.ending {
            Ending::Early { at, .. } => at,
            Ending::Complete => NetTime::ZERO + log.duration,
        };
        log.ending = Ending::Early { at, reason };
    }
    log
}

/// The command that goes to a machine of an architecture.
fn runner(
    file: &Path,
    machine: &HostMachine,
    architecture: &str,
    name: &str,
) -> anyhow::Result<PathBuf> {
    if let Some(runner) = &machine.runner {
        return Ok(file.parent().unwrap_or(Path::new("")).join(runner));
    }
    let own = std::env::current_exe()?;
    let known = own.parent().unwrap_or(Path::new("/")).join(RUNNERS).join(architecture);
    let known = known.join("onbeat");
    if known.is_file() {
        return Ok(known);
    }
    if architecture == std::env::consts::ARCH {
        return Ok(own);
    }
    bail!(
        "{name}: it is {architecture}, and there is no {}: name a command for it with `runner` \
         (docs/machines.md)",
        known.display()
    )
}
