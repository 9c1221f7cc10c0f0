//! What of the paper's scenarios (Table 2) a machine is set up for as it stands.

use super::Isolated;
use onbeat::interface::{PortState, PtpStatus};
use onbeat_run::machine::Machine;

/// How processors are kept free for real-time threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Not at all.
    None,
    /// By the kernel's command line, as TuneD's profiles do.
    Tuned,
    /// By processor sets made at run time.
    Cpuset,
}

/// Who gives the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The bridge; both nodes follow.
    Sms,
    /// One of the nodes; the other follows, through the bridge.
    Mbs,
}

/// Which of the nodes this machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It follows.
    Slave,
    /// It gives the time.
    Master,
}

/// Something that a scenario has and the machine has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What, and how it can be had.
    pub what: String,
    /// Whether nothing of the scenario can be measured; otherwise what does not need it can.
    pub blocks: bool,
}

impl Unmet {
    fn new(blocks: bool, what: impl Into<String>) -> Self {
        Self { what: what.into(), blocks }
    }
}

/// What a scenario lacks on this machine as it stands: `ptp` is what ptp4l says, if it answers;
/// `said` who gives the time, which a node that follows cannot see; `output` whether test 4 has an
/// output, whose edges another node's are compared with; `refused` why the isolation could not be
/// made, if that was tried.
pub fn unmet(
    machine: &Machine,
    ptp: Option<PtpStatus>,
    said: Option<Mode>,
    output: bool,
    refused: Option<&str>,
    (isolation, mode, role): (Isolation, Mode, Role),
) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    unmet.extend(match refused {
        Some(why) => Some(Unmet::new(true, why)),
        None => isolation_unmet(machine, isolation),
    });
    unmet.extend(clock_unmet(machine, ptp, said, mode, role));
    if !output {
        let what = "no output (--gpio): test 4 is two processes on this machine, not two nodes";
        unmet.push(Unmet::new(false, what));
    }
    unmet
}

fn isolation_unmet(machine: &Machine, isolation: Isolation) -> Option<Unmet> {
    let found = Isolated::of(machine);
    let (at_boot, sets) = (&found.at_boot, &found.sets);
    let blocks = |what: String| Some(Unmet::new(true, what));
    match isolation {
        Isolation::None if !at_boot.is_empty() => blocks(format!(
            "processors {at_boot} are isolated by the kernel's command line: boot without \
             isolcpus and nohz_full"
        )),
        Isolation::None if !sets.is_empty() => {
            let sets = sets.keys().cloned().collect::<Vec<_>>().join(", ");
            blocks(format!("a processor set isolates: {sets}; undo it (onbeat tune)"))
        }
        Isolation::Tuned if at_boot.is_empty() => blocks(
            "no processor is isolated by the kernel's command line (nohz_full, isolcpus): TuneD's \
             profile cpu-partitioning does it, with a reboot"
                .into(),
        ),
        Isolation::Cpuset if !at_boot.is_empty() => {
            blocks("processors are isolated by the kernel's command line already".into())
        }
        Isolation::Cpuset if sets.is_empty() => {
            blocks("no processor set isolates any processor: onbeat tune makes one".into())
        }
        Isolation::None => None,
        // What is below a root has no processors of this machine.
        Isolation::Tuned | Isolation::Cpuset if !machine.is_this() => None,
        // Whether this process may run there is not known before it tries; it is back at once.
        Isolation::Tuned | Isolation::Cpuset => found.enter(machine).err().and_then(|error| {
            let cpus = found.cpus();
            blocks(format!("processors {cpus} are isolated, and cannot be measured on: {error}"))
        }),
    }
}

/// What a scenario lacks of its clock and of this machine's part in it, as in [`unmet`].
pub fn clock_unmet(
    machine: &Machine,
    ptp: Option<PtpStatus>,
    said: Option<Mode>,
    mode: Mode,
    role: Role,
) -> Option<Unmet> {
    let Some(ptp) = ptp else {
        let clock = match machine.names("/sys/class/ptp").is_empty() {
            true => "there is no PTP hardware clock, and ptp4l does not answer",
            false => "ptp4l does not answer",
        };
        let what = "the global clock is this machine's own, synchronised with nothing";
        return Some(Unmet::new(false, format!("{clock}: {what}")));
    };
    let is = match ptp.state {
        PortState::Slave => Role::Slave,
        PortState::Master => Role::Master,
        _ => {
            return Some(Unmet::new(
                true,
                "ptp4l neither follows a master nor is one: look at its log",
            ));
        }
    };
    match (role, is) {
        (Role::Slave, Role::Master) => Some(Unmet::new(
            true,
            "this machine is the grandmaster: the scenario has it follow one",
        )),
        (Role::Master, Role::Slave) => {
            Some(Unmet::new(true, "this machine follows a master: the scenario has it be one"))
        }
        (Role::Slave, Role::Slave) if said != Some(mode) => Some(Unmet::new(
            true,
            match said {
                None => "state the grandmaster with --sync: sms (the bridge) or mbs (a node)",
                Some(_) => "the grandmaster is another one, as --sync says",
            },
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::allowed_cpus;
    use super::*;
    use onbeat::interface::SyncSeen;
    use onbeat_model::time::Span;

    struct Fake {
        _directory: tempfile::TempDir,
        machine: Machine,
    }

    impl Fake {
        fn with(files: &[(&str, &str)]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let machine = Machine::below(directory.path());
            for (path, text) in files {
                let path = machine.path(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self { _directory: directory, machine }
        }

        fn blocked(&self, isolation: Isolation) -> bool {
            isolation_unmet(&self.machine, isolation).is_some()
        }
    }

    #[test]
    fn each_isolation_is_there_on_a_machine_that_is_set_up_for_it_and_only_there() {
        // One that this process may run on, and more that are there.
        let cpu = allowed_cpus().unwrap().0.last().unwrap().to_string();
        let all = ("/sys/devices/system/cpu/online", "0-1023\n");
        let version_2 = [
            all,
            ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n"),
            ("/sys/fs/cgroup/rt/cpuset.cpus", &cpu),
        ];
        let version_1 = [
            all,
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpu_exclusive", "1\n"),
            ("/sys/fs/cgroup/cpuset/rt/cpuset.cpus", &cpu),
        ];
        let boot = format!("root=/dev/sda1 isolcpus=managed_irq,{cpu}\n");
        let tuned = format!("root=/dev/sda1 nohz_full={cpu} rcu_nocbs={cpu}\n");
        let plain = [
            all,
            ("/proc/cmdline", "root=/dev/sda1\n"),
            // The root of version 1 is always exclusive.
            ("/sys/fs/cgroup/cpuset/cpuset.cpu_exclusive", "1\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-1023\n"),
            ("/sys/fs/cgroup/system.slice/cpuset.cpus.partition", "member\n"),
            ("/sys/fs/cgroup/cpuset/docker/cpuset.cpu_exclusive", "0\n"),
        ];
        let kinds = [Isolation::None, Isolation::Tuned, Isolation::Cpuset];
        for (files, right) in [
            (&plain[..], Isolation::None),
            (&version_2, Isolation::Cpuset),
            (&version_1, Isolation::Cpuset),
            (&[("/proc/cmdline", &boot)], Isolation::Tuned),
            (&[("/proc/cmdline", &tuned)], Isolation::Tuned),
        ] {
            let fake = Fake::with(files);
            for kind in kinds {
                assert_eq!(fake.blocked(kind), kind != right, "{kind:?} {files:?}");
            }
        }
    }

    #[test]
    fn without_ptp_only_the_clock_is_missing_and_with_it_the_role_must_fit() {
        let fake = Fake::with(&[]);
        let ptp = |state| {
            Some(PtpStatus {
                state,
                offset: Span::ZERO,
                has_grandmaster: true,
                appointed: false,
                sync: SyncSeen::default(),
            })
        };
        let blocks = |ptp, said, mode, role| {
            clock_unmet(&fake.machine, ptp, said, mode, role).map(|unmet| unmet.blocks)
        };
        assert_eq!(blocks(None, None, Mode::Sms, Role::Slave), Some(false));
        let slave = ptp(PortState::Slave);
        assert_eq!(blocks(slave, None, Mode::Sms, Role::Slave), Some(true));
        assert_eq!(blocks(slave, Some(Mode::Sms), Mode::Sms, Role::Slave), None);
        assert_eq!(blocks(slave, Some(Mode::Sms), Mode::Mbs, Role::Slave), Some(true));
        assert_eq!(blocks(slave, Some(Mode::Mbs), Mode::Mbs, Role::Master), Some(true));
        let master = ptp(PortState::Master);
        assert_eq!(blocks(master, None, Mode::Mbs, Role::Master), None);
        assert_eq!(blocks(master, Some(Mode::Mbs), Mode::Mbs, Role::Slave), Some(true));
        let faulty = ptp(PortState::Faulty);
        assert_eq!(blocks(faulty, Some(Mode::Sms), Mode::Sms, Role::Slave), Some(true));
        let kinds = (Isolation::None, Mode::Sms, Role::Slave);
        let all = unmet(&fake.machine, None, None, false, None, kinds);
        assert!(all.iter().all(|unmet| !unmet.blocks) && all.len() == 2, "{all:?}");
        assert_eq!(unmet(&fake.machine, slave, Some(Mode::Sms), true, None, kinds), []);
        let refused = unmet(&fake.machine, slave, Some(Mode::Sms), true, Some("no"), kinds);
        assert_eq!(refused, [Unmet::new(true, "no")]);
    }
}
