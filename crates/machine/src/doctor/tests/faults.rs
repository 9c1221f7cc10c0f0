//! The table: one fault each, and exactly what is found.

use super::host::{Host, Thread};
use super::wrong;
use crate::doctor::State::{Advice, Blocks, Unknown};
use crate::doctor::facts::{Fact, Facts};
use crate::doctor::{KernelClock, Ptp4l, State};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;

/// A fault, and what is found then, in order.
struct Fault {
    plant: fn(&mut Host),
    found: &'static [(&'static str, State)],
}

const fn fault(plant: fn(&mut Host), found: &'static [(&'static str, State)]) -> Fault {
    Fault { plant, found }
}

/// Plants each alone.
fn check(faults: &[Fault]) {
    for (number, fault) in faults.iter().enumerate() {
        let mut host = Host::tuned();
        (fault.plant)(&mut host);
        let found = host.findings();
        assert_eq!(wrong(&found), fault.found, "fault {number}: {found:#?}");
    }
}

#[test]
fn a_host_that_is_tuned_well_raises_no_alarm() {
    let findings = Host::tuned().findings();
    assert_eq!(wrong(&findings), [], "{findings:#?}");
    assert!(findings.len() > 50, "all has been looked at: {}", findings.len());
}

#[test]
fn faults_of_the_kernel_and_of_virtual_machines_are_found() {
    check(&[
        fault(|host| host.write("/sys/kernel/realtime", "0"), &[("kernel.realtime", Blocks)]),
        fault(
            |host| {
                // Who expects no more than that is not kept from it.
                host.requirements.wakeup_max = Some(Span::from_ms(10));
                host.write("/sys/kernel/realtime", "0");
                host.write("/sys/kernel/debug/sched/preempt", "none (voluntary) full lazy");
            },
            &[("kernel.realtime", Advice), ("kernel.preemption", Advice)],
        ),
        fault(
            |host| host.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality"),
            &[("kernel.lockdown", Advice)],
        ),
        fault(
            |host| host.write("/sys/kernel/tracing/current_tracer", "function"),
            &[("kernel.tracer", Advice)],
        ),
        fault(
            |host| {
                let always = "[always] madvise never";
                host.write("/sys/kernel/mm/transparent_hugepage/enabled", always);
            },
            &[("kernel.huge-pages", Advice)],
        ),
        fault(
            |host| host.write("/proc/sys/kernel/numa_balancing", "1"),
            &[("kernel.numa-balancing", Advice)],
        ),
        fault(|host| host.calls.tried.mqprio = Fact::Known(false), &[("kernel.mqprio", Blocks)]),
        fault(|host| host.calls.tried.cbs = Fact::Known(false), &[("kernel.cbs", Blocks)]),
        // Nothing here is scheduled, and ends tag by themselves.
        fault(
            |host| {
                host.calls.tried.etf = Fact::Known(false);
                host.calls.tried.vlan = Fact::Known(false);
            },
            &[],
        ),
        fault(
            |host| host.write("/proc/cpuinfo", "flags : fpu hypervisor tsc"),
            &[("virtualisation.hypervisor", Advice)],
        ),
        fault(|host| host.write("/.dockerenv", ""), &[("virtualisation.container", Advice)]),
        fault(
            |host| host.write("/proc/stat", "cpu  1000 0 1000 96000 0 0 0 2000 0 0"),
            &[("virtualisation.steal", Advice)],
        ),
        fault(
            |host| host.calls.stall_ns = Fact::Known(9_000_000),
            &[("virtualisation.stalls", Advice)],
        ),
    ]);
}

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

#[test]
fn faults_of_clocks_and_of_power_are_found() {
    check(&[
        fault(|host| host.write(CLOCK, "hpet"), &[("clocksource.source", Advice)]),
        fault(|host| host.write(CLOCK, "refined-jiffies"), &[("clocksource.source", Blocks)]),
        fault(|host| host.calls.reading_ns = 900, &[("clocksource.cost", Advice)]),
        fault(|host| host.calls.resolution_ns = 4_000_000, &[("clocksource.resolution", Blocks)]),
        fault(
            |host| {
                let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
                host.write(path, "powersave");
            },
            &[("power.governor", Advice)],
        ),
        fault(
            |host| host.write("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0"),
            &[("power.idle-states", Blocks)],
        ),
        // The same while somebody holds the latency down.
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0");
                host.write("/dev/cpu_dma_latency", "\0\0\0\0");
            },
            &[],
        ),
        fault(
            |host| host.write("/sys/devices/system/cpu/smt/active", "1"),
            &[("power.smt", Advice)],
        ),
        fault(
            |host| {
                let path = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
                host.write(path, "12");
            },
            &[("power.heat", Advice)],
        ),
    ]);
}

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const LIMITS: &str = "/proc/800/limits";
const STATUS: &str = "/proc/800/status";

#[test]
fn faults_of_limits_and_permissions_are_found() {
    check(&[
        fault(|host| host.write(RUNTIME, "0"), &[("throttling.rt-runtime", Blocks)]),
        fault(|host| host.write(RUNTIME, "500000"), &[("throttling.rt-runtime", Advice)]),
        // The switch of old: the fair server does not care.
        fault(|host| host.write(RUNTIME, "-1"), &[("throttling.fair-server", Advice)]),
        fault(
            |host| {
                host.write(RUNTIME, "-1");
                host.write("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "0");
            },
            &[],
        ),
        // Before 6.12 it had the effect.
        fault(
            |host| {
                host.write(RUNTIME, "-1");
                host.write("/proc/sys/kernel/osrelease", "6.6.9-rt");
            },
            &[],
        ),
        fault(
            |host| {
                host.write("/proc/800/cgroup", "1:cpu:/robots\n0::/");
                host.write("/sys/fs/cgroup/cpu/robots/cpu.rt_runtime_us", "0");
            },
            &[("throttling.group", Blocks)],
        ),
        fault(
            |host| {
                host.write("/proc/800/cgroup", "1:cpu:/\n0::/system.slice/arm");
                let path = "/sys/fs/cgroup/unified/system.slice/cpu.max";
                host.write(path, "200000 100000");
            },
            &[("throttling.quota", Advice)],
        ),
        // Without capabilities limits count: real-time priority 0, 8 MiB of locked memory.
        fault(
            |host| {
                let status = host.files[STATUS].replace("000001ffffffffff", "0000000000002000");
                host.write(STATUS, &status);
            },
            &[("throttling.priority", Blocks), ("throttling.memlock", Advice)],
        ),
        fault(
            |host| {
                let status = host.files[STATUS].replace("000001ffffffffff", "0000000000804000");
                host.write(STATUS, &status);
            },
            &[("throttling.raw-sockets", Blocks)],
        ),
        fault(
            |host| {
                let limits = host.files[LIMITS].replace("timeout  unlimited", "timeout  200000");
                host.write(LIMITS, &limits);
            },
            &[("throttling.rttime", Advice)],
        ),
    ]);
}

#[test]
fn faults_of_isolation_are_found() {
    check(&[
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/isolated", "");
                host.write("/proc/cmdline", "root=/dev/sda");
            },
            &[("isolation.cores", Advice)],
        ),
        fault(|host| host.write("/proc/cmdline", "isolcpus=2-3,7"), &[("isolation.asked", Advice)]),
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/online", "0-1,3");
            },
            &[("isolation.online", Blocks)],
        ),
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/online", "2-3");
            },
            &[("isolation.housekeeping", Advice)],
        ),
        fault(
            |host| host.threads.push(Thread::new(901, "backup", 0, 3)),
            &[("isolation.others", Advice)],
        ),
        fault(
            |host| host.write("/sys/devices/virtual/workqueue/cpumask", "f"),
            &[("isolation.workqueues", Advice)],
        ),
        fault(
            |host| host.write("/proc/sys/kernel/watchdog_cpumask", "0-3"),
            &[("isolation.watchdog", Advice)],
        ),
        // A partition of cgroup v2, and an exclusive cpuset, isolate as well.
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/isolated", "");
                host.write("/proc/cmdline", "root=/dev/sda");
                host.write("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3");
            },
            &[],
        ),
        fault(
            |host| {
                host.write("/sys/devices/system/cpu/isolated", "");
                host.write("/proc/cmdline", "root=/dev/sda");
                host.write("/sys/fs/cgroup/cpuset/user/cpuset.cpu_exclusive", "1");
                host.write("/sys/fs/cgroup/cpuset/user/cpuset.cpus", "2-3");
            },
            &[],
        ),
    ]);
}

#[test]
fn faults_of_interrupts_are_found() {
    check(&[
        fault(
            |host| {
                host.write("/proc/irq/9/smp_affinity_list", "0-3");
                host.write("/proc/irq/9/effective_affinity_list", "2");
            },
            &[("interrupts.isolated", Advice)],
        ),
        // Sent to 0, and it comes at 1.
        fault(
            |host| host.write("/proc/irq/120/smp_affinity_list", "0"),
            &[("interrupts.effective", Advice)],
        ),
        fault(
            |host| host.write("/proc/irq/default_smp_affinity", "f"),
            &[("interrupts.default", Advice)],
        ),
        fault(
            |host| host.threads.push(Thread::new(650, "irqbalance", 0, 0)),
            &[("interrupts.irqbalance", Advice)],
        ),
        fault(|host| host.thread("irq/9-acpi").priority = 90, &[("interrupts.threads", Advice)]),
        // The interface's own interrupt brings what the program waits for.
        fault(|host| host.thread("irq/120-eth0-Tx").priority = 90, &[]),
        fault(
            |host| {
                let napi = Thread { kernel: true, ..Thread::new(30, "napi/eth0-1", 0, 1) };
                host.threads.push(napi);
            },
            &[("interrupts.napi", Advice)],
        ),
    ]);
}

/// The classes that priorities have on the interface.
fn map(host: &mut Host) -> &mut [u8; 16] {
    let Fact::Known(qdiscs) = &mut host.calls.qdiscs else { panic!("they are known") };
    qdiscs[0].map.as_mut().expect("a map")
}

#[test]
fn faults_of_interfaces_are_found() {
    check(&[
        fault(|host| host.interface().up = false, &[("nic.interface", Blocks)]),
        fault(
            |host| host.interface().abilities.carrier = Some(false),
            &[("nic.interface", Blocks)],
        ),
        fault(|host| host.interface().name = "enp2s0".into(), &[("nic.interface", Blocks)]),
        fault(|host| host.interface().abilities.speed_mbps = Some(100), &[("nic.speed", Blocks)]),
        fault(|host| host.interface().abilities.speed_mbps = None, &[("nic.speed", Unknown)]),
        fault(|host| host.requirements.payload = Some(4_000), &[("nic.mtu", Blocks)]),
        fault(|host| host.interface().abilities.hardware_clock = None, &[("nic.stamps", Advice)]),
        fault(
            |host| host.interface().abilities.transmit_queues = Some(1),
            &[("nic.queues", Blocks)],
        ),
        fault(
            |host| host.interface().abilities.receive_delay_us = Some(50),
            &[("nic.coalescing", Advice)],
        ),
        fault(
            |host| host.interface().abilities.receive_delay_adapts = Some(true),
            &[("nic.coalescing", Advice)],
        ),
        fault(|host| host.interface().abilities.sleeps = Some(true), &[("nic.eee", Advice)]),
        // The map of the paper's Listing 14: 14 entries of 16.
        fault(|host| map(host)[14..].fill(0), &[("nic.priority-map", Blocks)]),
        // Priority 3, the channel's, with those of best effort.
        fault(|host| map(host)[3] = 3, &[("nic.priority-map", Blocks)]),
        fault(|host| host.calls.qdiscs = Fact::Known(Vec::new()), &[("nic.qdisc", Blocks)]),
        fault(
            |host| {
                let text = "eth0.2 VID: 2\nDevice: eth0\nEGRESS priority mappings: 2:2 ";
                host.write("/proc/net/vlan/eth0.2", text);
            },
            &[("nic.vlan-priorities", Blocks)],
        ),
        fault(|host| host.requirements.gated = true, &[("nic.qdisc", Blocks)]),
        fault(
            |host| {
                host.requirements.gated = true;
                let Fact::Known(qdiscs) = &mut host.calls.qdiscs else { panic!("known") };
                qdiscs[0].kind = "taprio".into();
                host.interface().abilities.driver = Some("igb".into());
            },
            &[("nic.gates", Advice)],
        ),
    ]);
}

const GPTP: &str = "/etc/linuxptp/gPTP.cfg";

/// Puts something into ptp4l's configuration.
fn set(host: &mut Host, setting: &str) {
    let text = format!("{}{setting}\n", host.files[GPTP]);
    host.write(GPTP, &text);
}

fn ptp4l(state: &str, offset_ns: i64) -> Fact<Ptp4l> {
    Fact::Known(Ptp4l { state: state.to_owned(), offset_ns, has_grandmaster: true })
}

#[test]
fn faults_of_synchronisation_are_found() {
    check(&[
        fault(
            |host| {
                let clock = KernelClock { tai_offset_s: 0, unsynchronised: false };
                host.calls.kernel_clock = Fact::Known(clock);
            },
            &[("time.tai-offset", Advice)],
        ),
        // Without a clock of the interface's own, channels use CLOCK_TAI.
        fault(
            |host| {
                let clock = KernelClock { tai_offset_s: 0, unsynchronised: true };
                host.calls.kernel_clock = Fact::Known(clock);
                host.interface().abilities.hardware_clock = None;
            },
            &[("nic.stamps", Advice), ("time.tai-offset", Blocks), ("time.synchronised", Blocks)],
        ),
        fault(
            |host| {
                let clock = KernelClock { tai_offset_s: 37, unsynchronised: true };
                host.calls.kernel_clock = Fact::Known(clock);
            },
            &[("time.synchronised", Advice)],
        ),
        fault(|host| host.calls.ptp4l = ptp4l("LISTENING", 0), &[("time.ptp4l", Blocks)]),
        fault(|host| host.calls.ptp4l = ptp4l("SLAVE", 40_000), &[("time.offset", Advice)]),
        fault(|host| host.calls.ptp4l = ptp4l("SLAVE", -900_000), &[("time.offset", Blocks)]),
        fault(
            |host| host.threads.retain(|thread| thread.name != "phc2sys"),
            &[("time.phc2sys", Advice)],
        ),
        fault(
            |host| host.threads.push(Thread::new(702, "chronyd", 0, 0)),
            &[("time.rival", Advice)],
        ),
        fault(
            |host| host.threads.push(Thread::new(702, "systemd-timesyn", 0, 0)),
            &[("time.rival", Advice)],
        ),
        fault(|host| host.threads.push(Thread::new(702, "ntpd", 0, 0)), &[("time.rival", Advice)]),
        fault(
            |host| {
                host.interface().abilities.hardware_clock = None;
                host.threads.push(Thread::new(702, "chronyd", 0, 0));
            },
            &[("nic.stamps", Advice), ("time.rival", Blocks)],
        ),
        // A daemon of NTP alone keeps the system's clock, in its own way.
        fault(
            |host| {
                host.threads.retain(|thread| !["phc2sys", "ptp4l"].contains(&thread.name));
                host.threads.push(Thread::new(702, "chronyd", 0, 0));
                host.interface().abilities.hardware_clock = None;
                host.calls.ptp4l = Fact::Unknown("there is no /var/run/ptp4l".to_owned());
            },
            &[("nic.stamps", Advice), ("time.ptp4l", Advice)],
        ),
    ]);
}

#[test]
fn faults_of_daemons_that_keep_the_time_are_found() {
    check(&[
        fault(|host| set(host, "time_stamping software"), &[("time.path-threshold", Blocks)]),
        fault(
            |host| {
                set(host, "time_stamping software");
                set(host, "neighborPropDelayThresh 1000000");
            },
            &[],
        ),
        // The same from the command line.
        fault(
            |host| {
                let line = format!("{}-S\0", host.files["/proc/700/cmdline"]);
                host.write("/proc/700/cmdline", &line);
            },
            &[("time.path-threshold", Blocks)],
        ),
        fault(|host| set(host, "step_threshold 0.00002"), &[("time.step", Advice)]),
        fault(
            |host| host.write("/proc/701/cmdline", "/usr/sbin/phc2sys\0-a\0-r\0"),
            &[("time.profile", Blocks)],
        ),
        fault(|host| host.thread("ptp4l").priority = 0, &[("time.priority", Advice)]),
        fault(
            |host| host.remove(GPTP),
            &[("time.profile", Blocks), ("time.path-threshold", Unknown)],
        ),
    ]);
}

const TALKER: &str = "/proc/800/task/800/status";

#[test]
fn faults_of_a_process_are_found() {
    check(&[
        fault(|host| host.thread("talker").priority = 0, &[("process.policy", Blocks)]),
        fault(
            |host| {
                let status = host.files[TALKER].replace("list:\t2", "list:\t0-3");
                host.write(TALKER, &status);
            },
            &[("process.affinity", Advice)],
        ),
        fault(
            |host| {
                let status = host.files[STATUS].replace("VmLck:\t  9000", "VmLck:\t  0");
                host.write(STATUS, &status);
            },
            &[("process.locked", Advice)],
        ),
        fault(|host| host.thread("talker").major_faults = 4, &[("process.faults", Advice)]),
        fault(
            |host| {
                let status = host.files[TALKER].replace("switches:\t3\n", "switches:\t900\n");
                host.write(TALKER, &status);
            },
            &[("process.switches", Advice)],
        ),
    ]);
}

#[test]
fn what_cannot_be_seen_is_unknown_and_says_why() {
    let mut host = Host::tuned();
    host.files.retain(|path, _| !path.starts_with("/sys/kernel/debug"));
    let found = host.findings();
    assert_eq!(wrong(&found), [("throttling.fair-server", Unknown)]);
    let unknown = found.iter().find(|finding| finding.state == Unknown).unwrap();
    assert!(unknown.value.contains("mount debugfs"), "{}", unknown.value);
}

#[test]
fn what_nobody_counts_is_not_zero_and_what_nobody_lists_is_not_none() {
    check(&[
        fault(
            |host| {
                let path = "/sys/devices/system/cpu/vulnerabilities/spectre_v2";
                host.write(path, "Mitigation: Retpolines");
            },
            &[("kernel.mitigations", Advice)],
        ),
        fault(
            |host| host.remove("/sys/devices/system/cpu/vulnerabilities/meltdown"),
            &[("kernel.mitigations", Unknown)],
        ),
        fault(
            |host| host.remove("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"),
            &[("power.heat", Unknown)],
        ),
        fault(|host| host.remove("/sys/devices/system/cpu/smt/active"), &[("power.smt", Unknown)]),
        fault(
            |host| host.files.retain(|path, _| !path.contains("/cpuidle/")),
            &[("power.idle-states", Unknown)],
        ),
    ]);
}

/// The preemption of a kernel without PREEMPT_RT and without debugfs.
fn preemption(version: &str, config: Option<&str>, command_line: &str) -> Result<String, String> {
    let mut host = Host::tuned();
    host.write("/sys/kernel/realtime", "0");
    host.remove("/sys/kernel/debug/sched/preempt");
    host.write("/proc/version", &format!("Linux version 6.12.8 #1 SMP {version}"));
    host.write("/proc/cmdline", command_line);
    if let Some(config) = config {
        host.write("/boot/config-6.12.8-rt", config);
    }
    let root = host.root();
    match Facts::collect(&Machine::below(root.path()), None).kernel.preemption {
        Fact::Known(mode) => Ok(mode),
        Fact::Unknown(why) => Err(why),
    }
}

#[test]
fn without_debugfs_the_preemption_is_known_from_how_the_kernel_was_built_and_started() {
    let dynamic = "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
    let fixed = "CONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT_DYNAMIC is not set\n";
    for (version, config, line, mode) in [
        ("PREEMPT_DYNAMIC", Some(dynamic), "quiet", "none"),
        ("PREEMPT_DYNAMIC", Some(dynamic), "preempt=none preempt=full", "full"),
        ("PREEMPT_DYNAMIC", None, "preempt=lazy", "lazy"),
        // A kernel that cannot be told is not what it is told.
        ("", Some(fixed), "preempt=full", "voluntary"),
        ("PREEMPT", None, "preempt=none", "full"),
        ("", None, "", "none or voluntary"),
    ] {
        let found = preemption(version, config, line);
        assert_eq!(found.as_deref(), Ok(mode), "{version} {config:?} {line}");
    }
    let why = preemption("PREEMPT_DYNAMIC", None, "quiet").expect_err("nothing says it");
    assert!(why.contains("debugfs") && why.contains("/proc/config.gz"), "{why}");
}

#[test]
fn no_advice_is_given_that_the_kernel_cannot_follow() {
    let fixes = |config: &str, more: &dyn Fn(&mut Host)| {
        let mut host = Host::tuned();
        host.write("/sys/kernel/realtime", "0");
        host.write("/sys/kernel/debug/sched/preempt", "none (voluntary) full");
        host.write("/boot/config-6.12.8-rt", config);
        host.write("/sys/devices/system/cpu/isolated", "");
        host.write("/proc/cmdline", "quiet");
        host.calls.tried.cbs = Fact::Known(false);
        more(&mut host);
        let findings = host.findings();
        move |check: &str| {
            let found = findings.iter().find(|finding| finding.check.id == check);
            found.map_or(String::new(), |finding| finding.fix.clone())
        }
    };
    let all = "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_NET_SCH_CBS=m\nCONFIG_CPU_ISOLATION=y\n";
    let able = fixes(all, &|host| {
        host.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io");
    });
    assert!(able("kernel.preemption").contains("`preempt=full`"));
    assert!(able("kernel.cbs").contains("Load the module sch_cbs"));
    assert!(able("isolation.cores").contains("partition of cgroup v2"));
    let unable = fixes("CONFIG_PREEMPT_VOLUNTARY=y\n", &|host| {
        host.write("/sys/fs/cgroup/unified/cgroup.controllers", "cpu io");
        host.write("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3");
    });
    assert!(unable("kernel.preemption").contains("has no effect"));
    assert!(unable("kernel.cbs").contains("built without"), "{}", unable("kernel.cbs"));
    let cores = unable("isolation.cores");
    assert!(cores.starts_with("Make an exclusive set of cgroup v1"), "{cores}");
    assert!(!cores.contains("isolcpus") && !cores.contains("v2"), "{cores}");
}
