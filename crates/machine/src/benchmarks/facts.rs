//! On what kind of machine it was measured.

use super::Isolated;
use onbeat_run::machine::{CpuList, Machine};

/// What a reader of figures has to know of the machine. What it does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Whether it is fully preemptible (PREEMPT_RT).
    pub is_real_time: bool,
    /// The processor's name.
    pub cpu: Option<String>,
    /// The processors that are in use.
    pub online: CpuList,
    /// Those that are kept free for real-time threads, by the command line or a processor set.
    pub isolated: CpuList,
    /// Those without a tick while one thread runs.
    pub no_tick: CpuList,
    /// Whether a hypervisor is below.
    pub is_virtual: bool,
    /// What the kernel reads time from.
    pub clock_source: Option<String>,
    /// How the processors' frequency is chosen; `None`: the machine does not let the kernel.
    pub governor: Option<String>,
    /// How idle processors are put to sleep.
    pub idle_driver: Option<String>,
    /// What real-time threads may take of each second, in µs; -1: all of it.
    pub throttle_us: Option<i64>,
}

impl Facts {
    /// Looks at a machine; changes nothing.
    pub fn of(machine: &Machine) -> Self {
        let text =
            |path: &str| machine.read(path).ok().filter(|text| !text.is_empty() && text != "none");
        let cpus = |path: &str| machine.cpus(path).unwrap_or_default();
        let info = machine.read("/proc/cpuinfo").unwrap_or_default();
        let version = machine.read("/proc/version").unwrap_or_default();
        let field = |names: &[&str]| {
            let fields = info.lines().filter_map(|line| line.split_once(':'));
            let found = fields.map(|(name, value)| (name.trim(), value.trim()));
            found.filter(|(name, _)| names.contains(name)).map(|(_, value)| value.to_owned()).next()
        };
        let hypervisor = |flags: String| flags.split(' ').any(|flag| flag == "hypervisor");
        let cpu = "/sys/devices/system/cpu";
        Self {
            kernel: text("/proc/sys/kernel/osrelease"),
            is_real_time: version.contains("PREEMPT_RT")
                || text("/sys/kernel/realtime").as_deref() == Some("1"),
            cpu: field(&["model name", "Hardware", "uarch"]),
            online: cpus(&format!("{cpu}/online")),
            isolated: CpuList(
                [cpus(&format!("{cpu}/isolated")), Isolated::of(machine).cpus()]
                    .into_iter()
                    .flat_map(|cpus| cpus.0)
                    .collect(),
            ),
            no_tick: cpus(&format!("{cpu}/nohz_full")),
            is_virtual: field(&["flags"]).is_some_and(hypervisor)
                || machine.has("/sys/hypervisor/type"),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: text(&format!("{cpu}/cpu0/cpufreq/scaling_governor")),
            idle_driver: text(&format!("{cpu}/cpuidle/current_driver")),
            throttle_us: machine.number("/proc/sys/kernel/sched_rt_runtime_us").ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_by_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        assert_eq!(Facts::of(&machine), Facts::default());
        let write = |path: &str, text: &str| {
            let path = machine.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Atom E3845\nflags\t: fpu hypervisor\n",
        );
        write("/proc/version", "Linux version 6.12 #1 SMP PREEMPT_RT\n");
        write("/proc/sys/kernel/osrelease", "6.12.1-rt\n");
        write("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        write("/sys/devices/system/cpu/online", "0-3\n");
        write("/sys/devices/system/cpu/isolated", "3\n");
        write("/sys/devices/system/cpu/cpuidle/current_driver", "none\n");
        write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        let facts = Facts::of(&machine);
        assert!(facts.is_real_time && facts.is_virtual);
        assert_eq!(facts.cpu.as_deref(), Some("Atom E3845"));
        assert_eq!(facts.kernel.as_deref(), Some("6.12.1-rt"));
        assert_eq!(
            (facts.online.to_string(), facts.isolated.to_string()),
            ("0-3".into(), "3".into())
        );
        assert_eq!((facts.throttle_us, facts.idle_driver), (Some(-1), None));
        assert_eq!(facts.governor.as_deref(), Some("performance"));
    }
}
