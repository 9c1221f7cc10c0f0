//! The host: four cores, two of them isolated, one interface; a program on core 2.

use crate::doctor::calls::{Calls, KernelClock, Ptp4l};
use crate::doctor::facts::{FACTS_FILE, Fact, Facts};
use crate::doctor::finding::{Finding, Need};
use crate::doctor::nic::Interface;
use crate::doctor::qdiscs::{Qdisc, Tried};
use crate::doctor::requirements::{Guarantee, GuaranteeKind, Program, Requirements};
use crate::ethtool::Abilities;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use onbeat_run::machine::{CpuList, Machine};
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;

/// Its files.
const FILES: &[(&str, &str)] = &[
    ("/proc/sys/kernel/osrelease", "6.12.8-rt"),
    ("/proc/version", "Linux version 6.12.8-rt #1 SMP PREEMPT_RT"),
    ("/sys/kernel/realtime", "1"),
    ("/proc/cmdline", "root=/dev/sda isolcpus=managed_irq,domain,2-3 irqaffinity=0-1"),
    ("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy"),
    ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000"),
    ("/sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000"),
    ("/sys/kernel/security/lockdown", "[none] integrity confidentiality"),
    ("/sys/kernel/tracing/current_tracer", "nop"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ("/proc/sys/kernel/numa_balancing", "0"),
    ("/proc/cpuinfo", "processor : 0\nflags : fpu tsc constant_tsc"),
    ("/proc/stat", "cpu  1000 0 1000 96000 0 0 0 0 0 0"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000"),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C6"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "170"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1"),
    ("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "0"),
    ("/sys/devices/system/cpu/smt/active", "0"),
    ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected"),
    ("/sys/devices/system/cpu/online", "0-3"),
    ("/sys/devices/system/cpu/isolated", "2-3"),
    ("/sys/devices/virtual/workqueue/cpumask", "3"),
    ("/proc/sys/kernel/watchdog", "1"),
    ("/proc/sys/kernel/watchdog_cpumask", "0-1"),
    (
        "/proc/interrupts",
        "      CPU0 CPU1 CPU2 CPU3\n  9: 4 0 0 0 IO-APIC 9-fasteoi acpi\n\
      120: 0 7 0 0 PCI-MSI 1-edge eth0-TxRx-0\n",
    ),
    ("/proc/irq/9/smp_affinity_list", "0-1"),
    ("/proc/irq/9/effective_affinity_list", "0"),
    ("/proc/irq/120/smp_affinity_list", "0-1"),
    ("/proc/irq/120/effective_affinity_list", "1"),
    ("/proc/irq/default_smp_affinity", "3"),
    (
        "/proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
    ),
    ("/proc/800/cgroup", "1:cpu:/\n0::/"),
    ("/proc/800/limits", LIMITS),
    (
        "/proc/800/status",
        "Name:\ttalker\nVmLck:\t  9000 kB\nVmRSS:\t  9000 kB\n\
      CapEff:\t000001ffffffffff\n",
    ),
    (
        "/proc/800/task/800/status",
        "Name:\ttalker\nCpus_allowed_list:\t2\n\
      voluntary_ctxt_switches:\t5000\nnonvoluntary_ctxt_switches:\t3\n",
    ),
    ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"),
    ("/proc/net/vlan/config", "Name | VLAN ID"),
    ("/proc/700/cmdline", "/usr/sbin/ptp4l\0-f\0/etc/linuxptp/gPTP.cfg\0-i\0eth0\0"),
    ("/proc/701/cmdline", "/usr/sbin/phc2sys\0-a\0-r\0--transportSpecific=1\0"),
    (
        "/etc/linuxptp/gPTP.cfg",
        "[global]\ntransportSpecific\t0x1\ndelay_mechanism P2P\n\
      neighborPropDelayThresh 800\nstep_threshold 1\n",
    ),
];

/// `/proc/PID/limits`.
const LIMITS: &str = "Limit  Soft Limit  Hard Limit  Units\n\
    Max locked memory  8388608  8388608  bytes\nMax realtime priority  0  0\n\
    Max realtime timeout  unlimited  unlimited  us\n";

/// A thread as `/proc/PID/task/TID/stat` has it.
#[derive(Clone)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) name: &'static str,
    pub(super) kernel: bool,
    /// SCHED_FIFO priority; 0 is SCHED_OTHER.
    pub(super) priority: u8,
    pub(super) cpu: u16,
    pub(super) major_faults: u64,
}

impl Thread {
    pub(super) fn new(pid: u32, name: &'static str, priority: u8, cpu: u16) -> Self {
        Self { pid, name, kernel: false, priority, cpu, major_faults: 0 }
    }

    fn stat(&self) -> String {
        let Self { pid, name, priority, cpu, major_faults, .. } = self;
        let flags = if self.kernel { 0x0020_0000 } else { 0 };
        let policy = u8::from(*priority > 0);
        let between = "0 ".repeat(25);
        format!(
            "{pid} ({name}) S 1 1 1 0 -1 {flags} 0 0 {major_faults} 0 {between}{cpu} \
             {priority} {policy} 0 0"
        )
    }
}

/// A machine, before it is looked at.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) files: BTreeMap<String, String>,
    pub(super) threads: Vec<Thread>,
    pub(super) calls: Calls,
    pub(super) requirements: Requirements,
}

impl Host {
    /// Tuned as the papers do, with what has been learnt since.
    pub(super) fn tuned() -> Self {
        let kernel = |pid, name, priority, cpu| Thread {
            kernel: true,
            ..Thread::new(pid, name, priority, cpu)
        };
        Self {
            files: FILES.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect(),
            threads: vec![
                Thread::new(1, "systemd", 0, 0),
                kernel(20, "migration/2", 99, 2),
                kernel(21, "irq/9-acpi", 50, 0),
                kernel(22, "irq/120-eth0-Tx", 50, 1),
                Thread::new(700, "ptp4l", 30, 0),
                Thread::new(701, "phc2sys", 30, 1),
                Thread::new(800, "talker", 80, 2),
            ],
            calls: calls(),
            requirements: requirements(),
        }
    }

    /// Some faults at once, and something that cannot be seen.
    pub(super) fn make_weak(&mut self) {
        self.write("/sys/kernel/realtime", "0");
        self.remove("/sys/kernel/debug/sched/fair_server/cpu0/runtime");
        self.write("/sys/devices/system/cpu/smt/active", "1");
        self.threads.push(Thread::new(650, "irqbalance", 0, 0));
        self.threads.push(Thread::new(702, "chronyd", 0, 0));
        self.calls.kernel_clock =
            Fact::Known(KernelClock { tai_offset_s: 0, unsynchronised: false });
        self.calls.tried.cbs = Fact::Known(false);
        self.interface().abilities.receive_delay_us = Some(50);
    }

    /// Writes one of its files.
    pub(super) fn write(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    /// Takes a file away.
    pub(super) fn remove(&mut self, path: &str) {
        assert!(self.files.remove(path).is_some(), "there is no {path}");
    }

    pub(super) fn interface(&mut self) -> &mut Interface {
        &mut self.calls.interfaces[0]
    }

    pub(super) fn thread(&mut self, name: &str) -> &mut Thread {
        self.threads.iter_mut().find(|thread| thread.name == name).expect("the thread")
    }

    /// As files below a root.
    pub(super) fn root(&self) -> TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let machine = Machine::below(root.path());
        let write = |path: &str, text: &str| {
            let path = machine.path(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        for (path, text) in &self.files {
            write(path, text);
        }
        for thread in &self.threads {
            write(&format!("/proc/{0}/task/{0}/stat", thread.pid), &thread.stat());
        }
        let mut facts = Facts::collect(&machine, None);
        assert!(facts.calls.known().is_none(), "system calls say nothing of it");
        facts.calls = Fact::Known(self.calls.clone());
        write(FACTS_FILE, &facts.to_json());
        root
    }

    /// All that is found on it.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let root = self.root();
        let facts = Facts::collect(&Machine::below(root.path()), Some(800));
        crate::doctor::evaluate(&facts, Some(&self.requirements))
    }
}

fn calls() -> Calls {
    let there = || Fact::Known(true);
    let mut map = [2; 16];
    map[..4].copy_from_slice(&[3, 3, 1, 0]);
    Calls {
        tried: Tried {
            vlan: there(),
            mqprio: there(),
            cbs: there(),
            etf: there(),
            taprio: there(),
        },
        reading_ns: 21,
        resolution_ns: 1,
        stall_ns: Fact::Known(0),
        watched_ms: 200,
        kernel_clock: Fact::Known(KernelClock { tai_offset_s: 37, unsynchronised: false }),
        ptp4l: Fact::Known(Ptp4l {
            state: "SLAVE".to_owned(),
            offset_ns: -80,
            has_grandmaster: true,
        }),
        interfaces: vec![Interface {
            name: "eth0".to_owned(),
            index: 2,
            mtu: 1_500,
            up: true,
            is_vlan: false,
            abilities: Abilities {
                driver: Some("igc".to_owned()),
                carrier: Some(true),
                speed_mbps: Some(1_000),
                hardware_stamps: Some(true),
                hardware_clock: Some(0),
                transmit_queues: Some(4),
                receive_delay_us: Some(0),
                receive_delay_adapts: Some(false),
                sleeps: Some(false),
            },
        }],
        qdiscs: Fact::Known(vec![Qdisc {
            interface: 2,
            kind: "mqprio".to_owned(),
            is_root: true,
            classes: Some(4),
            map: Some(map),
        }]),
    }
}

fn requirements() -> Requirements {
    let all = BTreeSet::from([Need::Wakeup, Need::Network, Need::Time]);
    let guarantee = |kind, name: &str, rests_on| Guarantee {
        kind,
        name: name.to_owned(),
        what: "at most 1ms".to_owned(),
        rests_on,
    };
    Requirements {
        system: "made-up".to_owned(),
        interface: Some("eth0".to_owned()),
        programs: vec![Program {
            name: "talker".to_owned(),
            priority: Some(80),
            cores: CpuList(BTreeSet::from([2])),
        }],
        guarantees: vec![
            guarantee(GuaranteeKind::Channel, "joints", all),
            guarantee(GuaranteeKind::Program, "talker", BTreeSet::from([Need::Wakeup])),
        ],
        wakeup_max: Some(Span::from_us(16)),
        rate: Some(BitRate::from_bps(1_000_000_000)),
        payload: Some(32),
        tags: BTreeSet::from([(2, 3)]),
        shaped: true,
        gated: false,
        clock_slack: Some(Span::from_us(500)),
    }
}
