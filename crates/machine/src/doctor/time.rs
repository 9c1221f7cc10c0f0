//! The clock's synchronisation: the daemons that keep it, how they are set, what they say.

use super::calls::{KernelClock, Ptp4l};
use super::evaluation::Evaluation;
use super::facts::{Fact, text};
use super::finding::{Area, Check, Need, State};
use super::nic;
use super::tasks::{self, Task};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// The daemons that keep the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemons {
    /// Those that run.
    pub running: Vec<Daemon>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// Its name: `ptp4l`.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Whether it has a real-time priority.
    pub real_time: bool,
    /// What is set by its configuration file and, after that, by its arguments, under the names
    /// of the file.
    pub settings: Vec<(String, String)>,
    /// Why its configuration could not be read.
    pub unread: Option<String>,
}

/// Those that matter, as the kernel cuts their names, with the name that they have.
const NAMES: [(&str, &str); 6] = [
    ("ptp4l", "ptp4l"),
    ("phc2sys", "phc2sys"),
    ("chronyd", "chronyd"),
    ("ntpd", "ntpd"),
    ("ntpsec", "ntpd"),
    ("systemd-timesyn", "systemd-timesyncd"),
];
/// Those that steer CLOCK_REALTIME by servers of the network time protocol.
const RIVALS: [&str; 3] = ["chronyd", "ntpd", "systemd-timesyncd"];

impl Daemons {
    pub(super) fn read(machine: &Machine, tasks: &[Task]) -> Self {
        let of_one = |task: &Task| {
            let (_, name) = NAMES.iter().find(|(short, _)| *short == task.name)?;
            let arguments = tasks::arguments(machine, task.pid);
            let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
            let mut daemon = Daemon {
                name: (*name).to_owned(),
                pid: task.pid,
                real_time: task.is_real_time(),
                ..Daemon::default()
            };
            if let Some(at) = words.iter().position(|word| *word == "-f")
                && let Some(path) = words.get(at + 1)
            {
                match text(machine, &absolute(machine, task.pid, path)) {
                    Fact::Known(text) => daemon.settings = settings(&text),
                    Fact::Unknown(why) => daemon.unread = Some(why),
                }
            }
            daemon.settings.extend(from_arguments(&words));
            Some(daemon)
        };
        let leaders = tasks.iter().filter(|task| task.tid == task.pid && !task.kernel);
        Self { running: leaders.filter_map(of_one).collect() }
    }

    fn named(&self, name: &str) -> Option<&Daemon> {
        self.running.iter().find(|daemon| daemon.name == name)
    }

    /// A setting of a daemon that runs.
    pub(super) fn setting(&self, daemon: &str, name: &str) -> Option<&str> {
        self.named(daemon)?.setting(name)
    }
}

impl Daemon {
    fn setting(&self, name: &str) -> Option<&str> {
        setting(&self.settings, name)
    }
}

/// The last word on a setting, whichever way it is spelt.
fn setting<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let is_it = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
    settings.iter().rfind(is_it).map(|(_, value)| value.as_str())
}

/// A daemon's file, which may be named relative to where it was started.
fn absolute(machine: &Machine, pid: u32, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let directory = std::fs::read_link(machine.path(&format!("/proc/{pid}/cwd")));
    directory.map_or_else(|_| format!("/{path}"), |d| format!("{}/{path}", d.display()))
}

/// The lines `name value` of a configuration file of linuxptp, of all its sections.
pub(super) fn settings(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.starts_with(['#', '[']))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// Arguments of ptp4l and phc2sys as settings: `--name=value`, and the short ones that matter.
fn from_arguments(words: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut set = |name: &str, value: &str| found.push((name.to_owned(), value.to_owned()));
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        match *word {
            "-S" => set("time_stamping", "software"),
            "-H" => set("time_stamping", "hardware"),
            "-P" => set("delay_mechanism", "P2P"),
            "-E" => set("delay_mechanism", "E2E"),
            _ => {
                let Some(long) = word.strip_prefix("--") else { continue };
                let (name, value) = long.split_once('=').unwrap_or((long, next));
                set(name, value);
            }
        }
    }
    found
}

/// With stamps of software the kernel's delays count as path: tens of microseconds, and hundreds
/// under load. A threshold below this makes ptp4l take its neighbour for one that cannot gPTP.
const SOFTWARE_PATH: Span = Span::from_us(100);
/// The least step that counts as never stepping while all goes well, in seconds.
const STEP_S: u64 = 1;
/// How far clocks may be apart where nothing else is said: the paper's σ is about 1 µs.
const OFFSET: Span = Span::from_us(10);

static TAI: Check = Check {
    id: "time.tai-offset",
    area: Area::Time,
    what: "offset of CLOCK_TAI",
    against: &[Need::Time],
    why: "Until a program sets its offset, CLOCK_TAI equals CLOCK_REALTIME: this machine's times \
          then differ by 37 s from other machines', and gates (taprio) and launch times (etf) are \
          at the wrong time.",
    fix: "Let ptp4l and phc2sys set it (utc_offset 37), or chronyd with `leapsectz right/UTC`.",
    reboot: false,
};
static SYNCHRONISED: Check = Check {
    id: "time.synchronised",
    area: Area::Time,
    what: "synchronisation of the kernel's clock",
    against: &[Need::Time],
    why: "The kernel reports that its clock runs free: no program adjusts it.",
    fix: "Run phc2sys, or ptp4l with software timestamping on this clock.",
    reboot: false,
};
static PTP4L: Check = Check {
    id: "time.ptp4l",
    area: Area::Time,
    what: "ptp4l",
    against: &[Need::Time],
    why: "It follows the network's clock. In a state other than SLAVE or MASTER it does not follow \
          yet, or no longer.",
    fix: "Start ptp4l on the interface; in a state such as LISTENING check domain, profile and \
          VLAN of the master.",
    reboot: false,
};
static OFFSET_NOW: Check = Check {
    id: "time.offset",
    area: Area::Time,
    what: "offset from the master",
    against: &[Need::Time],
    why: "A clock offset shortens the time budget of messages.",
    fix: "Wait until the clock has settled; otherwise check load, priority and timestamping of \
          ptp4l.",
    reboot: false,
};
static PHC2SYS: Check = Check {
    id: "time.phc2sys",
    area: Area::Time,
    what: "phc2sys",
    against: &[Need::Time],
    why: "With hardware timestamps ptp4l adjusts only the interface's clock: programs that read \
          CLOCK_REALTIME or CLOCK_TAI also need phc2sys.",
    fix: "phc2sys -a -r --transportSpecific=1, with a real-time priority.",
    reboot: false,
};
static RIVAL: Check = Check {
    id: "time.rival",
    area: Area::Time,
    what: "another daemon on this clock",
    against: &[Need::Time],
    why: "Two daemons that adjust one clock counteract each other: each takes the other's \
          correction for an error.",
    fix: "systemctl disable --now chronyd ntpd systemd-timesyncd, on all but the grandmaster.",
    reboot: false,
};
pub(super) static THRESHOLD: Check = Check {
    id: "time.path-threshold",
    area: Area::Time,
    what: "threshold of the link delay",
    against: &[Need::Time],
    why: "gPTP considers a neighbour incapable if its link delay exceeds neighborPropDelayThresh \
          (800 ns in the profile). With software timestamps the delay includes the kernel's, so no \
          port ever becomes SLAVE.",
    fix: "neighborPropDelayThresh 1000000 in ptp4l's configuration, or hardware timestamps.",
    reboot: false,
};
static STEP: Check = Check {
    id: "time.step",
    area: Area::Time,
    what: "steps of the clock",
    against: &[Need::Time],
    why: "If a clock steps, sleeps end early or late by the step; a running clock should only be \
          slewed.",
    fix: "step_threshold 1, or 0, for ptp4l and phc2sys.",
    reboot: false,
};
static PROFILE: Check = Check {
    id: "time.profile",
    area: Area::Time,
    what: "profile of phc2sys",
    against: &[Need::Time],
    why: "ptp4l answers only messages of its own profile: phc2sys with another profile waits for \
          it for ever.",
    fix: "Give phc2sys the same --transportSpecific as ptp4l has (1 for gPTP).",
    reboot: false,
};
static PRIORITY: Check = Check {
    id: "time.priority",
    area: Area::Time,
    what: "priority of the daemons",
    against: &[Need::Time],
    why: "Without a real-time priority, ptp4l and phc2sys take timestamps and adjust clocks late \
          under load.",
    fix: "chrt -f -p 30 PID: above all threads that are not real-time, below the programs.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 10] = [
    &TAI,
    &SYNCHRONISED,
    &PTP4L,
    &OFFSET_NOW,
    &PHC2SYS,
    &RIVAL,
    &THRESHOLD,
    &STEP,
    &PROFILE,
    &PRIORITY,
];

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) {
    if let Fact::Known(calls) = &evaluation.facts.calls {
        kernel_clock(evaluation, &calls.kernel_clock);
        ptp4l(evaluation, &calls.ptp4l);
    }
    let daemons = &evaluation.facts.time;
    let (ptp, phc) = (daemons.named("ptp4l"), daemons.named("phc2sys"));
    rival(evaluation, ptp, phc);
    if ptp.is_some_and(|ptp| stamps_in_hardware(&ptp.settings)) {
        let value = if phc.is_some() { "running" } else { "not running" };
        evaluation.require(&PHC2SYS, phc.is_some(), value, "running");
    }
    if let (Some(ptp), Some(phc)) = (ptp, phc) {
        let of = |daemon: &Daemon| daemon.setting("transportSpecific").map_or(0, number);
        let (ours, theirs) = (of(phc), of(ptp));
        let state = if ours == theirs { State::Ok } else { State::Blocks };
        evaluation.say(&PROFILE, state, ours, format!("{theirs}, as ptp4l has"));
    }
    for daemon in daemons.running.iter().filter(|daemon| !RIVALS.contains(&daemon.name.as_str())) {
        each(evaluation, daemon);
    }
}

/// What is judged of every ptp4l and phc2sys, also where several run.
fn each(evaluation: &mut Evaluation<'_>, daemon: &Daemon) {
    let running = evaluation.facts.time.running.iter();
    let alone = running.filter(|other| other.name == daemon.name).count() == 1;
    let name = match alone {
        true => daemon.name.clone(),
        false => format!("{} {}", daemon.name, daemon.pid),
    };
    let value = if daemon.real_time { "real-time" } else { "normal" };
    let state = if daemon.real_time { State::Ok } else { State::Advice };
    evaluation.say_of(&name, &PRIORITY, state, value, "real-time");
    if let Some(why) = &daemon.unread {
        return evaluation.say_of(&name, &THRESHOLD, State::Unknown, why, "a configuration");
    }
    step(evaluation, &name, daemon);
    if daemon.name == "ptp4l" {
        threshold(evaluation, &name, &daemon.settings);
    }
}

/// `1` and `0x1` are the same profile; what is neither is none.
fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or(u32::MAX),
        None => text.parse().unwrap_or(u32::MAX),
    }
}

fn stamps_in_hardware(settings: &[(String, String)]) -> bool {
    !setting(settings, "time_stamping").is_some_and(|kind| kind.eq_ignore_ascii_case("software"))
}

/// What is wrong with the system's clock blocks channels that use it; those on an interface with a
/// clock of its own use that.
fn on_the_systems_clock(evaluation: &Evaluation<'_>) -> State {
    if nic::has_own_clock(evaluation) { State::Advice } else { State::Blocks }
}

fn kernel_clock(evaluation: &mut Evaluation<'_>, clock: &Fact<KernelClock>) {
    let clock = match clock {
        Fact::Known(clock) => clock,
        Fact::Unknown(why) => return evaluation.unknown(&TAI, why, "37 s"),
    };
    let wrong = on_the_systems_clock(evaluation);
    let state = if clock.tai_offset_s == 0 { wrong } else { State::Ok };
    evaluation.say(&TAI, state, format!("{} s", clock.tai_offset_s), "37 s");
    let (state, value) = match clock.unsynchronised {
        true => (wrong, "running free"),
        false => (State::Ok, "synchronised"),
    };
    evaluation.say(&SYNCHRONISED, state, value, "synchronised");
}

/// A daemon of NTP may keep the system's clock instead, to about a millisecond.
fn without_ptp4l(evaluation: &Evaluation<'_>) -> (State, String) {
    let other = RIVALS.iter().find(|name| evaluation.facts.time.named(name).is_some());
    let clock = evaluation.facts.calls.known().and_then(|calls| calls.kernel_clock.known());
    let is_kept = clock.is_some_and(|clock| !clock.unsynchronised);
    match other.filter(|_| is_kept && !nic::has_own_clock(evaluation)) {
        Some(name) => (State::Advice, format!("not running; {name} keeps the clock")),
        None => (State::Blocks, "not running".to_owned()),
    }
}

fn ptp4l(evaluation: &mut Evaluation<'_>, answer: &Fact<Ptp4l>) {
    let wanted = "SLAVE, or MASTER as the grandmaster";
    let status = match answer {
        Fact::Known(status) => status,
        // One that runs and cannot be asked may be as it should be.
        Fact::Unknown(why) if evaluation.facts.time.named("ptp4l").is_some() => {
            return evaluation.unknown(&PTP4L, why, wanted);
        }
        Fact::Unknown(_) => {
            let (state, value) = without_ptp4l(evaluation);
            return evaluation.say(&PTP4L, state, value, wanted);
        }
    };
    let right = match status.state.as_str() {
        "SLAVE" => true,
        "MASTER" => !status.has_grandmaster,
        _ => false,
    };
    let state = if right { State::Ok } else { State::Blocks };
    evaluation.say(&PTP4L, state, &status.state, wanted);
    let offset = Span::from_ns(status.offset_ns).abs();
    let slack = evaluation.requirements.clock_slack;
    let state = match () {
        () if offset <= OFFSET => State::Ok,
        () if slack.is_some_and(|slack| offset > slack) => State::Blocks,
        () => State::Advice,
    };
    let slack = slack.map_or(String::new(), |slack| format!("; channels have {slack} to spare"));
    evaluation.say(&OFFSET_NOW, state, offset, format!("at most {OFFSET}{slack}"));
}

fn rival(evaluation: &mut Evaluation<'_>, ptp: Option<&Daemon>, phc: Option<&Daemon>) {
    let daemons = &evaluation.facts.time;
    let rival = RIVALS.iter().find_map(|name| daemons.named(name));
    // ptp4l itself steers the system's clock where it has no other.
    let steers = phc.or_else(|| ptp.filter(|ptp| !stamps_in_hardware(&ptp.settings)));
    let (state, value) = match (rival, steers) {
        (None, _) => (State::Ok, "none".to_owned()),
        (Some(rival), None) => (State::Ok, format!("{} alone", rival.name)),
        (Some(rival), Some(steers)) => {
            let value = format!("{} (pid {}) beside {}", rival.name, rival.pid, steers.name);
            (on_the_systems_clock(evaluation), value)
        }
    };
    evaluation.say(&RIVAL, state, value, "one only");
}

/// Judges a configuration of ptp4l; `place` is whose, or where it stands.
pub(super) fn threshold(
    evaluation: &mut Evaluation<'_>,
    place: &str,
    settings: &[(String, String)],
) {
    let mechanism = setting(settings, "delay_mechanism").unwrap_or("E2E");
    if stamps_in_hardware(settings) || mechanism.eq_ignore_ascii_case("E2E") {
        return;
    }
    // linuxptp's own default is 20 ms.
    let threshold = setting(settings, "neighborPropDelayThresh");
    let ns = threshold.and_then(|text| text.parse().ok()).unwrap_or(20_000_000);
    let state = if ns >= SOFTWARE_PATH.as_ns() { State::Ok } else { State::Blocks };
    let value = format!("{} with software timestamps", Span::from_ns(ns));
    let wanted = format!("{SOFTWARE_PATH} at least");
    evaluation.say_of(place, &THRESHOLD, state, value, wanted);
}

fn step(evaluation: &mut Evaluation<'_>, name: &str, daemon: &Daemon) {
    // The default, 0, is never but for the first time.
    let text = daemon.setting("step_threshold").unwrap_or("0");
    let seconds = text.split('.').next().and_then(|whole| whole.parse::<u64>().ok());
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    let right = is_zero || seconds.is_some_and(|seconds| seconds >= STEP_S);
    let state = if right { State::Ok } else { State::Advice };
    let value = if right { format!("from {text} s") } else { format!("from {text} s on") };
    evaluation.say_of(name, &STEP, state, value, "never (0), or from 1 s on");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_count_after_the_file() {
        let mut all = settings("[global]\n# gPTP\ntransportSpecific\t0x1\nstep_threshold 1\n");
        all.extend(from_arguments(&["-i", "eth0", "-S", "--step_threshold=0.1"]));
        assert_eq!(setting(&all, "transportSpecific"), Some("0x1"));
        assert_eq!(setting(&all, "step_threshold"), Some("0.1"));
        assert!(!stamps_in_hardware(&all));
        assert!(stamps_in_hardware(&[]));
        assert_eq!((number("0x1"), number("1"), number("x")), (1, 1, u32::MAX));
    }
}
