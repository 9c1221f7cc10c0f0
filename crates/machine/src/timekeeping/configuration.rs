//! What ptp4l and phc2sys are told: pure functions from settings to text.
//!
//! The profile is gPTP as linuxptp's own file of that name has it (IEEE 802.1AS). What is added is
//! from table 1 of the paper, or stands there with its reason.

use onbeat::interface::GRANDMASTER;
use onbeat_model::time::Span;
use std::fmt::Write;
use std::path::Path;

/// Where ptp4l listens for its supervisors unless told otherwise; channels look there, too.
pub const SOCKET: &str = "/var/run/ptp4l";
/// The SCHED_FIFO priority of both programs: above what is not real-time, below applications.
pub const PRIORITY: u8 = 30;

/// How a ptp4l.cfg of ours begins.
pub const FIRST_WORDS: &str = "# ptp4l of ";
/// The most interfaces of one ptp4l.
const INTERFACES_MAX: usize = 64;
/// SO_PRIORITY of gPTP's messages: above best effort in the usual maps.
const SOCKET_PRIORITY: u8 = 4;
/// priority1 of 802.1AS-2020 table 8-1: of bridges; of what cannot be grandmaster. A host that is
/// to be grandmaster must go before the bridges.
const PRIORITY1_BRIDGE: u8 = 246;
const PRIORITY1_NEVER: u8 = 255;
const PRIORITY1_HOST: u8 = 100;

/// The longest delay to a neighbour with time stamps of the hardware: gPTP's 800 ns.
pub const fn hardware_threshold() -> Span {
    Span::from_ns(800)
}

/// The same with time stamps of the kernel: a measured delay then has the time in it that two
/// hosts take to come to their stamps, microseconds usually and milliseconds under load.
pub const fn software_threshold() -> Span {
    Span::from_ms(20)
}

/// Who gives the time (the paper's table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockScenario {
    /// Slave, master, slave: a bridge is the grandmaster.
    Sms,
    /// Master, bridge, slave: a host is.
    Mbs,
}

/// What this node is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The grandmaster.
    Master,
    /// It follows.
    Slave,
}

/// Who notes when a message goes or comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamping {
    /// The interface.
    Hardware,
    /// The kernel.
    Software,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who gives the time.
    pub scenario: ClockScenario,
    /// What this node is.
    pub role: Role,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Who stamps.
    pub stamping: Stamping,
    /// The domain; gPTP's is 0.
    pub domain: u8,
    /// The longest delay to a neighbour.
    pub threshold: Span,
    /// Whether clocks are set to the network's time. In emulation they are not: ptp4l only
    /// measures.
    pub steers: bool,
    /// Where ptp4l listens for supervisors.
    pub socket: String,
}

/// Settings that no configuration can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No interface, or too many.
    #[error("ptp4l takes 1 to {INTERFACES_MAX} interfaces, not {0}")]
    Interfaces(usize),
    /// A name that an interface cannot have.
    #[error("`{0}` is no name of an interface")]
    Name(String),
    /// One interface that is named twice.
    #[error("the interface `{0}` is named twice: it is one port")]
    Twice(String),
    /// A path that does not fit a socket's address.
    #[error("the path of ptp4l's socket, {0}, must have 1 to 107 plain characters")]
    Socket(String),
    /// A threshold that ptp4l cannot be told.
    #[error("the longest delay to a neighbour must be from 1 ns to 4 s, not {0}")]
    Threshold(Span),
    /// A domain beyond 127.
    #[error("the domain must be 0 to 127, not {0}")]
    Domain(u8),
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// Checked settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration(Settings);

impl Configuration {
    /// Checks settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let count = settings.interfaces.len();
        if !(1..=INTERFACES_MAX).contains(&count) {
            return Err(SettingsError::Interfaces(count));
        }
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '[' | ']' | '#');
        for (number, name) in settings.interfaces.iter().enumerate() {
            if settings.interfaces[..number].contains(name) {
                return Err(SettingsError::Twice(name.clone()));
            }
            if name.is_empty() || name.len() > 15 || !name.chars().all(plain) {
                return Err(SettingsError::Name(name.clone()));
            }
        }
        let socket = &settings.socket;
        if !(1..=107).contains(&socket.len()) || !socket.chars().all(|c| c.is_ascii_graphic()) {
            return Err(SettingsError::Socket(socket.clone()));
        }
        if settings.threshold <= Span::ZERO || settings.threshold > Span::from_s(4) {
            return Err(SettingsError::Threshold(settings.threshold));
        }
        if settings.domain > 127 {
            return Err(SettingsError::Domain(settings.domain));
        }
        Ok(Self(settings))
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0
    }

    /// The text of ptp4l.cfg.
    pub fn ptp4l(&self) -> String {
        let settings = &self.0;
        let priority1 = match (settings.role, settings.scenario) {
            (Role::Slave, _) => PRIORITY1_NEVER,
            (Role::Master, ClockScenario::Sms) => PRIORITY1_BRIDGE,
            (Role::Master, ClockScenario::Mbs) => PRIORITY1_HOST,
        };
        let stamping = match settings.stamping {
            Stamping::Hardware => "hardware",
            Stamping::Software => "software",
        };
        let mut text = format!("{FIRST_WORDS}{}.\n[global]\n", self.described());
        let mut say = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{name:<24} {value}");
        };
        match (settings.role, settings.interfaces.len()) {
            (Role::Master, _) => say("userDescription", &GRANDMASTER),
            // Without slaveOnly a port that hears nobody leads, whatever gmCapable is.
            (Role::Slave, 1) => say("slaveOnly", &1),
            // A bridge's other ports lead, by its master's time.
            (Role::Slave, _) => say("gmCapable", &0),
        }
        say("priority1", &priority1);
        say("priority2", &248);
        say("domainNumber", &settings.domain);
        say("logAnnounceInterval", &0);
        say("logSyncInterval", &-3);
        say("syncReceiptTimeout", &3);
        say("neighborPropDelayThresh", &settings.threshold.as_ns());
        say("min_neighbor_prop_delay", &-20_000_000);
        say("assume_two_step", &1);
        say("path_trace_enabled", &1);
        say("follow_up_info", &1);
        say("transportSpecific", &"0x1");
        say("ptp_dst_mac", &"01:80:C2:00:00:0E");
        say("network_transport", &"L2");
        say("delay_mechanism", &"P2P");
        say("time_stamping", &stamping);
        say("socket_priority", &SOCKET_PRIORITY);
        // Clocks are slewed, never stepped, once they have been set at the start.
        say("step_threshold", &"0.0");
        say("first_step_threshold", &if settings.steers { "0.00002" } else { "0.0" });
        say("free_running", &u8::from(!settings.steers));
        say("uds_address", &settings.socket);
        say("use_syslog", &0);
        say("verbose", &1);
        say("summary_interval", &6);
        if settings.interfaces.len() > 1 {
            // Ports of several devices are one bridge.
            say("boundary_clock_jbod", &1);
        }
        for interface in &settings.interfaces {
            let _ = writeln!(text, "\n[{interface}]");
        }
        text
    }

    /// What follows `ptp4l` on its command line.
    pub fn ptp4l_words(&self, directory: &Path) -> Vec<String> {
        vec!["-f".to_owned(), directory.join("ptp4l.cfg").display().to_string()]
    }

    /// What follows `phc2sys` on its command line; `None` where it has nothing to do: with the
    /// kernel's stamps ptp4l keeps the system's clock itself.
    pub fn phc2sys_words(&self) -> Option<Vec<String>> {
        let settings = &self.0;
        if !settings.steers || settings.stamping == Stamping::Software {
            return None;
        }
        // Of a grandmaster the system's clock is the source: what it shows is the network's time.
        let system: &[&str] = if settings.role == Role::Master { &["-r", "-r"] } else { &["-r"] };
        let domain = settings.domain.to_string();
        let rest = ["-n", &domain, "-z", &settings.socket];
        let last = ["--transportSpecific=1", "--step_threshold=0.0", "-m", "-q"];
        let words = [&["-a"][..], system, &rest, &last].concat();
        Some(words.into_iter().map(str::to_owned).collect())
    }

    /// All files, for a directory that will be found under this path.
    pub fn files(&self, directory: &Path) -> Vec<File> {
        let ptp4l = self.ptp4l_words(directory).join(" ");
        let phc2sys = self.phc2sys_words().map(|words| words.join(" "));
        let mut commands = format!("# {}\n", self.described());
        let mut files = vec![File { name: "ptp4l.cfg", text: self.ptp4l() }];
        let mut say = |program: &str, words: &str, name, after: &str| {
            let _ = writeln!(commands, "chrt --fifo {PRIORITY} {program} {words}");
            files.push(File { name, text: self.unit(program, words, after) });
        };
        say("ptp4l", &ptp4l, "onbeat-ptp4l.service", "network.target");
        if let Some(words) = phc2sys {
            say("phc2sys", &words, "onbeat-phc2sys.service", "onbeat-ptp4l.service");
        }
        files.push(File { name: "commands.txt", text: commands });
        files
    }

    /// A systemd unit.
    fn unit(&self, program: &str, words: &str, after: &str) -> String {
        // What else may keep a grandmaster's clock does so rightly.
        let needs = match program {
            "phc2sys" => "BindsTo=onbeat-ptp4l.service\n",
            _ if self.0.steers && self.0.role == Role::Slave => {
                "Conflicts=chrony.service ntpsec.service systemd-timesyncd.service\n"
            }
            _ => "",
        };
        format!(
            "[Unit]\nDescription={program} of {}\nAfter={after}\n{needs}\n\
             [Service]\nExecStart=/usr/sbin/{program} {words}\n\
             CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={PRIORITY}\nLimitMEMLOCK=infinity\n\
             Restart=on-failure\nRestartSec=1\n\n\
             [Install]\nWantedBy=multi-user.target\n",
            self.described()
        )
    }

    fn described(&self) -> String {
        let settings = &self.0;
        let scenario = match settings.scenario {
            ClockScenario::Sms => "SMS (a bridge is the grandmaster)",
            ClockScenario::Mbs => "MBS (a host is the grandmaster)",
        };
        let role = match settings.role {
            Role::Master => "grandmaster",
            Role::Slave => "slave",
        };
        let stamping = match settings.stamping {
            Stamping::Hardware => "hardware",
            Stamping::Software => "software",
        };
        let free = if settings.steers { "" } else { ", free-running" };
        format!("{scenario}: {role}, {stamping} time stamps{free}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(scenario: ClockScenario, role: Role, stamping: Stamping, steers: bool) -> Settings {
        Settings {
            scenario,
            role,
            interfaces: vec!["eth0".to_owned()],
            stamping,
            domain: 0,
            threshold: match stamping {
                Stamping::Hardware => hardware_threshold(),
                Stamping::Software => software_threshold(),
            },
            steers,
            socket: SOCKET.to_owned(),
        }
    }

    /// All files of a configuration as one text.
    fn all(settings: Settings) -> String {
        let configuration = Configuration::new(settings).expect("right");
        let files = configuration.files(Path::new("/etc/onbeat"));
        files.iter().map(|file| format!("==> {}\n{}", file.name, file.text)).collect()
    }

    #[test]
    fn the_files_are_the_golden_ones() {
        let (hard, soft) = (Stamping::Hardware, Stamping::Software);
        let mut bridge = settings(ClockScenario::Sms, Role::Master, hard, true);
        bridge.interfaces = vec!["swp0".to_owned(), "swp1".to_owned()];
        let mut drifted = Vec::new();
        for (found, golden) in [
            (all(bridge), include_str!("golden/sms-master.txt")),
            (
                all(settings(ClockScenario::Sms, Role::Slave, hard, true)),
                include_str!("golden/sms-slave.txt"),
            ),
            (
                all(settings(ClockScenario::Mbs, Role::Master, hard, true)),
                include_str!("golden/mbs-master.txt"),
            ),
            (
                all(settings(ClockScenario::Mbs, Role::Slave, soft, true)),
                include_str!("golden/mbs-slave-software.txt"),
            ),
            (
                all(settings(ClockScenario::Mbs, Role::Slave, soft, false)),
                include_str!("golden/mbs-slave-free.txt"),
            ),
        ] {
            if found != golden {
                drifted.push(found);
            }
        }
        assert!(drifted.is_empty(), "they are now:\n{}", drifted.join("=====\n"));
    }

    #[test]
    fn what_ptp4l_would_misread_is_refused() {
        let right = settings(ClockScenario::Mbs, Role::Slave, Stamping::Software, false);
        let with = |change: fn(&mut Settings)| {
            let mut settings = right.clone();
            change(&mut settings);
            Configuration::new(settings).map(drop).expect_err("wrong").to_string()
        };
        assert!(with(|s| s.interfaces.clear()).contains("not 0"));
        assert!(with(|s| s.interfaces = vec!["a]\n[b".to_owned()]).contains("no name"));
        let twice = |s: &mut Settings| s.interfaces = vec!["eth0".to_owned(); 2];
        assert!(with(twice).contains("twice"));
        assert!(with(|s| s.socket = "x".repeat(108)).contains("107"));
        assert!(with(|s| s.threshold = Span::ZERO).contains("4 s"));
        assert!(with(|s| s.domain = 128).contains("127"));
    }
}
