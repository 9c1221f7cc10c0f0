//! Clocks with the real ptp4l over a veth pair between two network namespaces, free-running: this
//! machine's clock is not touched. Where something is missing, each test says so.
#![allow(unsafe_code)] // namespaces, and reading the kernel's clock

use onbeat::clock::{MonoTime, pause};
use onbeat::context::Context;
use onbeat::interface::{PortState, SYNC_RECEIPT_TIMEOUT, SyncAge, SyncWatch};
use onbeat_machine::timekeeping::{
    ClockScenario, Configuration, Reason, Report, Role, Settings, Stamping, SupervisionError,
    Supervisor, emulation, evaluate, gather, hardware_threshold, software_threshold,
};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use onbeat_run::netns::enter;
use onbeat_testkit::{Need, cable, not_run, run, within};
use rustix::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
/// No measurement between two hosts that read one clock is as wrong as this.
const LIMIT: Span = Span::from_s(1);

/// Two hosts on one cable; `None`, after one line that says why, where there is no such thing.
fn pair() -> Option<[OwnedFd; 2]> {
    let installed = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(program).exists())
    };
    if !installed("ptp4l") || !installed("setpriv") {
        not_run(Need::Tools, "ptp4l (linuxptp) or setpriv is not installed");
        return None;
    }
    cable().map_err(|error| not_run(Need::Namespaces, error)).ok()
}

fn settings(role: Role, socket: &Path) -> Settings {
    Settings {
        scenario: ClockScenario::Mbs,
        role,
        interfaces: vec!["eth0".to_owned()],
        stamping: Stamping::Software,
        domain: 0,
        threshold: software_threshold(),
        steers: false,
        socket: socket.display().to_string(),
    }
}

fn configuration(settings: Settings) -> Configuration {
    Configuration::new(settings).expect("right")
}

/// A supervised ptp4l in a host's namespace, on a thread that lives as long.
struct Supervised {
    reports: mpsc::Receiver<Report>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    pids: Vec<u32>,
}

impl Supervised {
    fn start(host: &OwnedFd, settings: Settings, directory: PathBuf) -> Self {
        let host = host.try_clone().expect("a descriptor");
        let (told, reports) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        let (started, pids) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            enter(host.as_fd()).expect("a namespace of ours");
            let mut supervisor = Supervisor::start(configuration(settings), &directory, LIMIT)
                .expect("ptp4l starts");
            started.send(supervisor.running()).expect("the test");
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                if told.send(supervisor.look().expect("a look")).is_err() {
                    return;
                }
                pause(Span::from_ms(100));
            }
        });
        let pids = pids.recv().expect("it starts");
        Self { reports, stop: Some(stop), thread: Some(thread), pids }
    }

    /// The first report for which that holds.
    fn until(&self, what: &str, holds: impl Fn(&Report) -> bool) -> Report {
        let begun = MonoTime::now();
        loop {
            let report = self.reports.recv().expect("its thread reports");
            if holds(&report) {
                return report;
            }
            assert!(MonoTime::now() - begun < LONG, "not {what}: {report:#?}");
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "its thread panicked");
        }
    }
}

/// What would differ if somebody had set or slewed the clock: frequency, the offset that is being
/// worked off, status, TAI offset, tick.
fn kernel_clock() -> [i64; 5] {
    // SAFETY: all zeros is a valid request: it changes nothing.
    let mut answer: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure.
    let state = unsafe { libc::adjtimex(&raw mut answer) };
    assert!(state >= 0, "adjtimex");
    [answer.freq, answer.offset, answer.status.into(), answer.tai.into(), answer.tick]
}

/// The capabilities that a program can ever have.
fn bounding_set(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    u64::from_str_radix(line.expect("CapBnd").trim(), 16).expect("a mask")
}

#[test]
fn supervised_clocks_are_measured_and_this_machines_is_not_touched() {
    let Some(hosts) = pair() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [first, second] = ["master", "slave"].map(|name| directory.path().join(name));
    let sockets = [first.join("s"), second.join("s")];
    let before = kernel_clock();
    let master = Supervised::start(&hosts[0], settings(Role::Master, &sockets[0]), first.clone());
    let slave = Supervised::start(&hosts[1], settings(Role::Slave, &sockets[1]), second.clone());
    for pid in master.pids.iter().chain(&slave.pids) {
        assert_eq!(bounding_set(*pid) >> 25 & 1, 0, "CAP_SYS_TIME");
    }
    let follows = |report: &Report| {
        let survey = report.facts.survey.as_ref();
        let is_behind = survey.is_some_and(|it| it.has_grandmaster && it.steps_removed == 1);
        report.status.in_sync() && is_behind
    };
    let report = slave.until("in sync", follows);
    let leads = master.until("in sync", |report| report.status.in_sync());
    let leader = leads.facts.survey.expect("in sync");
    assert_eq!(leader.grandmaster, leader.identity);
    let survey = report.facts.survey.expect("it follows");
    assert_eq!(survey.grandmaster, leader.identity);
    assert_eq!((survey.steps_removed, survey.profile, survey.utc_offset), (1, 1, 37));
    let port = survey.deciding().expect("a port");
    assert_eq!(port.state, PortState::Uncalibrated, "free-running");
    assert_eq!(port.capable, Some((software_threshold(), true)));
    assert!(port.peer_to_peer && port.peer_delay != Span::ZERO, "{port:?}");
    assert!(port.came.is_some_and(|(announces, answers)| announces > 0 && answers > 0));
    // Killed, it is started again.
    let killed = slave.pids[0];
    run(&format!("kill -9 {killed}")).expect("ours");
    slave.until("said to have ended", |r| r.notes.iter().any(|n| n.contains("ptp4l ended")));
    slave.until("started again", |r| r.notes.iter().any(|n| n.contains("is started")));
    slave.until("in sync again", follows);
    drop((master, slave));
    assert_eq!(kernel_clock(), before, "frequency, offset, status, TAI offset, tick");
    assert!(!sockets[0].exists() && !sockets[1].exists());
    let history = std::fs::read_to_string(second.join("clock.csv")).expect("a history");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let known: Vec<_> = history.lines().skip(1).map(cells).filter(|c| c[6] == "1").collect();
    assert!(known.iter().any(|c| c[1] == "UNCALIBRATED" && c[4] == leader.identity.to_string()));
}

#[test]
fn a_slave_whose_master_is_gone_is_out_of_sync_and_stays_a_slave() {
    let Some(hosts) = pair() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [first, second] = ["master", "slave"].map(|name| directory.path().join(name));
    let sockets = [first.join("s"), second.join("s")];
    let master = Supervised::start(&hosts[0], settings(Role::Master, &sockets[0]), first);
    let slave = Supervised::start(&hosts[1], settings(Role::Slave, &sockets[1]), second.clone());
    let report = slave.until("in sync", |report| report.status.in_sync());
    let interval = report.facts.survey.as_ref().expect("it follows").sync.interval;
    assert_eq!(interval, Span::from_ms(125));
    drop(master);
    // Every verdict that it is in sync rests on a Sync that is three intervals old at most.
    let three = interval * SYNC_RECEIPT_TIMEOUT;
    let recent = |report: &Report| matches!(report.facts.sync, SyncAge::AtMost(a) if a <= three);
    slave.until("out of sync", |report| {
        assert!(!report.status.in_sync() || recent(report), "{report:#?}");
        !report.status.in_sync()
    });
    let state = |report: &Report| {
        report.facts.survey.as_ref().and_then(|survey| Some(survey.deciding()?.state))
    };
    slave.until("waiting for a master", |report| {
        assert!(!report.status.in_sync(), "in sync with nobody: {report:#?}");
        state(report) == Some(PortState::Listening)
    });
    // Longer than a clock that may lead waits before it does.
    for _ in 0..60 {
        let report = slave.reports.recv().expect("its thread reports");
        assert!(!report.status.in_sync(), "in sync with nobody: {report:#?}");
        assert_ne!(state(&report), Some(PortState::Master), "a slave leads: {report:#?}");
    }
    drop(slave);
    let history = std::fs::read_to_string(second.join("clock.csv")).expect("a history");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let in_sync: Vec<_> = history.lines().map(cells).filter(|cells| cells[6] == "1").collect();
    assert!(!in_sync.is_empty(), "{history}");
    for cells in in_sync {
        let age: i64 = cells[7].parse().expect("how old the last Sync is");
        assert!(age <= three.as_ns(), "{cells:?}");
    }
}

#[test]
fn the_reason_for_no_sync_is_named() {
    let Some(hosts) = pair() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [first, second] = ["master", "slave"].map(|name| directory.path().join(name));
    let sockets = [first.join("s"), second.join("s")];
    let master = Supervised::start(&hosts[0], settings(Role::Master, &sockets[0]), first);
    // A threshold that is too low for time stamps of software.
    let low = Settings { threshold: Span::from_ns(1), ..settings(Role::Slave, &sockets[1]) };
    let slave = Supervised::start(&hosts[1], low, second.clone());
    let named = slave.until("told of the threshold", |report| {
        report.status.reasons.iter().any(|reason| matches!(reason, Reason::Threshold { .. }))
    });
    let says =
        |report: &Report, reason: fn(&Reason) -> bool| report.status.reasons.iter().any(reason);
    assert!(!named.status.in_sync());
    drop(slave);
    // Another domain than the master's.
    let other = Settings { domain: 5, ..settings(Role::Slave, &sockets[1]) };
    let slave = Supervised::start(&hosts[1], other, second);
    slave.until("told of the foreign master", |report| {
        says(report, |reason| *reason == Reason::Foreign { profile: 1, domain: 0, wanted: 5 })
    });
    // Asked in the wrong domain, it is found in its own.
    let machine = Machine::this();
    let look = |socket: &Path, domain| {
        let interfaces = ["eth0".to_owned()];
        let facts = within(&hosts[1], || {
            gather(&machine, &interfaces, socket, domain, false, &mut SyncWatch::default())
        });
        evaluate(&facts.expect("a look"), LIMIT).reasons
    };
    let elsewhere = Reason::Elsewhere { profile: 1, domain: 5, wanted: 0 };
    assert_eq!(look(&sockets[1], 0), [elsewhere]);
    assert_eq!(look(&directory.path().join("nobody"), 0), [Reason::NoPtp4l]);
    within(&hosts[0], || run("ip link set eth0 down")).expect("ours");
    slave.until("told of the link", |report| {
        says(report, |reason| matches!(reason, Reason::LinkDown(_)))
    });
    drop((master, slave));
}

#[test]
fn the_machines_clock_is_not_steered_from_another_namespace() {
    let Some(hosts) = pair() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let steers =
        Settings { steers: true, ..settings(Role::Slave, &directory.path().join("socket")) };
    let interfaces = steers.interfaces.clone();
    let out = directory.path().join("out");
    within(&hosts[0], || {
        // Which of the reasons it is depends on what may be looked at.
        assert!(emulation(&Machine::this(), &interfaces).is_some());
        let refused = Supervisor::start(configuration(steers), &out, LIMIT);
        assert!(matches!(refused, Err(SupervisionError::Emulated(_))), "{refused:?}");
    });
    assert!(!out.exists(), "nothing is written");
}

/// A ptp4l of ours that may not set clocks, ended with the test.
struct Ptp4l(Child);

impl Drop for Ptp4l {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ptp4l_reads_every_configuration() {
    let Some(hosts) = pair() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let mut started = Vec::new();
    for scenario in [ClockScenario::Sms, ClockScenario::Mbs] {
        for role in [Role::Master, Role::Slave] {
            for (stamping, threshold) in [
                (Stamping::Software, software_threshold()),
                (Stamping::Hardware, hardware_threshold()),
            ] {
                let name = directory.path().join(started.len().to_string());
                std::fs::create_dir(&name).expect("a directory");
                let socket = name.join("s").display().to_string();
                let settings = Settings {
                    scenario,
                    stamping,
                    threshold,
                    steers: true,
                    socket,
                    ..settings(role, &name)
                };
                let configuration = configuration(settings);
                let file = name.join("ptp4l.cfg");
                std::fs::write(&file, configuration.ptp4l()).expect("written");
                let log = std::fs::File::create(name.join("log")).expect("a log");
                let mut command = Command::new("setpriv");
                command.args(["--bounding-set", "-sys_time", "ptp4l"]);
                command.args(configuration.ptp4l_words(&name)).stdin(Stdio::null());
                command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
                command.stdout(log.try_clone().expect("a log")).stderr(log);
                let child = within(&hosts[0], || command.spawn()).expect("setpriv");
                started.push((stamping, name.join("log"), Ptp4l(child)));
            }
        }
    }
    for (stamping, log, _running) in &started {
        // The interface has no hardware clock, which ptp4l finds out behind its configuration.
        let said = match stamping {
            Stamping::Software => "INITIALIZING to LISTENING",
            Stamping::Hardware => "does not support requested timestamping mode",
        };
        let begun = MonoTime::now();
        loop {
            let text = std::fs::read_to_string(log).expect("a log");
            if text.contains(said) {
                break;
            }
            assert!(!text.contains("failed to parse"), "{text}");
            assert!(MonoTime::now() - begun < LONG, "{stamping:?}: {text}");
            pause(Span::from_ms(20));
        }
    }
}

/// Tells this test program, started by itself, to join.
const JOINS: &str = "ONBEAT_TEST_JOINS";

#[test]
fn a_program_refuses_to_start_out_of_sync_if_it_is_told_to() {
    let name = "a_program_refuses_to_start_out_of_sync_if_it_is_told_to";
    if std::env::var_os(JOINS).is_some() {
        match Context::join() {
            Ok(_) => eprintln!("joined"),
            Err(error) => eprintln!("refused: {error}"),
        }
        return;
    }
    if !onbeat::interface::Interface::named("lo").is_ok_and(|interface| interface.up) {
        not_run(Need::Machine, "interface lo is down");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let table = directory.path().join("host.channels");
    std::fs::write(&table, "onbeat-channels 1\nsystem test\nhost host\nend 0\n").expect("written");
    let join = |within: Option<&str>| {
        let this = std::env::current_exe().expect("this test");
        let mut command = Command::new(this);
        command.args(["--exact", name, "--nocapture"]).env(JOINS, "1");
        command.env("ONBEAT_INTERFACE", "lo").env("ONBEAT_TRANSPORT", "udp4");
        command.env("ONBEAT_SYSTEM", &table);
        command.env_remove("ONBEAT_CLOCK_WITHIN_NS").env_remove("ONBEAT_COORDINATOR");
        command.envs(within.map(|within| ("ONBEAT_CLOCK_WITHIN_NS", within)));
        let output = command.output().expect("this test again");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(join(None).contains("joined"), "{}", join(None));
    // No clock of a machine without a hardware clock is known to be this good.
    let refused = join(Some("1"));
    let expected = "refused: interface `lo`: its clock is not on the network's time: ";
    assert!(refused.contains(expected) && refused.contains("onbeat clock status"), "{refused}");
    let wrong = join(Some("1us"));
    assert!(wrong.contains("refused: ONBEAT_CLOCK_WITHIN_NS is a whole number"), "{wrong}");
}
