//! What a tune sets, and to what: a closed set. A journal is read by the superuser, who acts on it;
//! it is believed only as far as a tune can have written it.

use super::target::{Bound, Form, Target, Value};
use super::threads;
use super::{boot, resume};
use crate::coalescing::Coalescing;
use onbeat_configuration::is_interface;
use onbeat_run::machine::CpuList;

/// The most tasks that are bound to processors.
const BOUND_MAX: usize = 1 << 20;
/// The longest value of one line.
const VALUE_MAX: usize = 1_024;
/// The longest text for people.
const TEXT_MAX: usize = 4_096;
/// Where control groups are, of either version.
const GROUPS: &str = "/sys/fs/cgroup";
/// Our sets.
const SETS: [&str; 2] = ["onbeat", "onbeat-everything"];

/// What a file holds.
#[derive(Clone, Copy)]
enum Holds {
    Number,
    Cpus,
    Mask,
    Governor,
}

impl Target {
    /// Whether a tune may have changed this from `old` to `new`.
    pub(super) fn admit(&self, old: &Value, new: &Value) -> Result<(), String> {
        let place = self.place();
        if !self.is_known() {
            return Err(format!("`{}` is nothing that a tune sets", plain(&place)));
        }
        for value in [old, new] {
            if matches!(self, Self::Document { .. }) && !self.takes(old) {
                return Err(format!("{place}: another program's is there"));
            }
            if !self.takes(value) {
                let value = value.as_deref().unwrap_or("nothing");
                let value: String = plain(value).chars().take(60).collect();
                return Err(format!("`{value}` is no value of {place}"));
            }
        }
        match self {
            // What somebody else has made is not replaced: it could not be given back.
            Self::Document { path } if resume::is_known(path) && old.is_some() => {
                Err(format!("{place}: a command is there that another campaign wrote"))
            }
            Self::Qdiscs { .. } | Self::Vlan { .. } if old.is_some() => {
                Err(format!("{place}: another program's is there"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it is one of the places.
    fn is_known(&self) -> bool {
        let set = |path: &str| {
            path.rsplit_once('/').is_some_and(|(above, set)| is_group(above) && SETS.contains(&set))
        };
        match self {
            Self::File { path, form } => matches!(
                (holds(path), form),
                (Some(Holds::Cpus), Form::List)
                    | (Some(Holds::Mask), Form::Mask)
                    | (Some(Holds::Number | Holds::Governor), Form::Text)
            ),
            Self::Document { path } => path == boot::DOCUMENT || resume::is_known(path),
            Self::Controller { group, name } => is_group(group) && name == "cpuset",
            Self::Group { path } => set(path),
            Self::Tasks { from, to, bound } => {
                let known = |one: &Bound| is_cpus(&one.cpus) && one.task > 0;
                let above = to.rsplit_once('/').map(|(above, _)| above);
                set(to) && above == Some(from) && bound.len() < BOUND_MAX && bound.iter().all(known)
            }
            Self::Coalescing { interface } => is_interface(interface),
            Self::Threads { prefix } => {
                let inner = prefix.strip_suffix('-').and_then(|prefix| prefix.split_once('/'));
                match inner {
                    Some(("irq", number)) => is_number(number),
                    Some(("napi", interface)) => is_interface(interface),
                    _ => false,
                }
            }
            Self::Latency | Self::Priority1 => true,
            Self::Qdiscs { interface, made } => is_interface(interface) && made.is_sound(),
            Self::Vlan { interface, vlan } => is_interface(interface) && vlan.is_sound(),
        }
    }

    /// Whether it may have such a value; none is no value, or a thing that is not there.
    fn takes(&self, value: &Value) -> bool {
        let Some(text) = value else { return true };
        let is = |word: &str| text == word;
        match self {
            Self::File { path, .. } => holds(path).is_some_and(|holds| is_held(holds, text)),
            Self::Document { path } if resume::is_known(path) => resume::is_ours(path, text),
            Self::Document { .. } => boot::is_ours(text),
            Self::Controller { .. } => is("on"),
            Self::Tasks { .. } => is("moved"),
            Self::Vlan { .. } => is("vlan"),
            Self::Group { .. } => text.lines().all(is_group_setting),
            Self::Coalescing { .. } => text.parse::<Coalescing>().is_ok(),
            Self::Threads { .. } => text.len() <= VALUE_MAX && text.split(',').all(is_scheduling),
            Self::Priority1 => text.parse::<u8>().is_ok_and(|value| value.to_string() == *text),
            Self::Latency => text.parse::<i32>().is_ok_and(|microseconds| microseconds >= 0),
            Self::Qdiscs { .. } => text.len() <= VALUE_MAX && text.split(',').all(is_discipline),
        }
    }

    /// Whether it may have been read back as this: the kernel writes some things in its own way.
    pub(super) fn admit_after(&self, after: &Value) -> Result<(), String> {
        match self.takes(after) {
            true => Ok(()),
            false => Err(format!("what was read back is no value of {}", self.place())),
        }
    }
}

/// What a file of `/proc` or `/sys` holds; none: a tune does not set it.
fn holds(path: &str) -> Option<Holds> {
    match path {
        "/proc/sys/kernel/numa_balancing"
        | "/proc/sys/kernel/nmi_watchdog"
        | "/proc/sys/vm/stat_interval" => return Some(Holds::Number),
        "/proc/irq/default_smp_affinity"
        | "/sys/devices/virtual/workqueue/cpumask"
        | "/sys/bus/workqueue/devices/writeback/cpumask" => return Some(Holds::Mask),
        _ => {}
    }
    let (directory, file) = path.rsplit_once('/')?;
    if file == "cpuset.sched_load_balance" && is_group(directory) {
        return Some(Holds::Number);
    }
    let (above, name) = directory.rsplit_once('/')?;
    match (above, file) {
        ("/proc/irq", "smp_affinity_list") if is_number(name) => Some(Holds::Cpus),
        ("/sys/devices/system/cpu/cpufreq", "scaling_governor") => {
            is_number(name.strip_prefix("policy")?).then_some(Holds::Governor)
        }
        ("/sys/class/net", "napi_defer_hard_irqs" | "gro_flush_timeout" | "threaded") => {
            is_interface(name).then_some(Holds::Number)
        }
        _ => None,
    }
}

/// Whether a path is that of a control group.
fn is_group(path: &str) -> bool {
    let inner = path.strip_prefix(GROUPS);
    inner.is_some_and(|inner| {
        let mut names = inner.split('/');
        names.next() == Some("") && names.all(|name| !matches!(name, "" | "." | ".."))
    })
}

fn is_held(holds: Holds, text: &str) -> bool {
    match holds {
        Holds::Number => is_number(text),
        Holds::Cpus => is_cpus(text),
        Holds::Mask => text.len() <= VALUE_MAX && CpuList::from_mask(text).is_ok(),
        Holds::Governor => {
            let letter = |octet: u8| octet.is_ascii_lowercase() || octet == b'_';
            (1..=32).contains(&text.len()) && text.bytes().all(letter)
        }
    }
}

fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit())
}

fn is_cpus(text: &str) -> bool {
    let part = |octet: u8| octet.is_ascii_digit() || octet == b',' || octet == b'-';
    text.len() <= VALUE_MAX && text.bytes().all(part) && text.parse::<CpuList>().is_ok()
}

fn is_group_setting(line: &str) -> bool {
    match line.split_once('=') {
        Some(("cpuset.cpus" | "cpuset.mems", list)) => is_cpus(list),
        Some(("cpuset.cpus.partition", kind)) => matches!(kind, "isolated" | "root" | "member"),
        Some(("cpuset.sched_load_balance", on)) => is_number(on),
        _ => false,
    }
}

/// A policy that can be set, or one that is only said.
fn is_scheduling(text: &str) -> bool {
    threads::policy(text).is_some() || text.strip_prefix("policy-").is_some_and(is_number)
}

/// `cbs 8b1:`
fn is_discipline(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|o| o.is_ascii_alphanumeric() || o == b'_')
    };
    let handle = |text: &str| text.strip_suffix(':').is_some_and(word);
    text.split_once(' ').is_some_and(|(kind, number)| word(kind) && handle(number))
}

/// A text for people on one line: what would move a terminal's cursor is replaced.
pub(super) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(TEXT_MAX).map(shown).collect()
}

/// Whether a text is as [`plain`] leaves it.
pub(super) fn is_plain(text: &str) -> bool {
    text.len() <= 4 * TEXT_MAX && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_configuration::{Disciplines, Shaper, Vlan};
    use std::collections::BTreeSet;

    fn some(text: &str) -> Value {
        Some(text.to_owned())
    }

    fn file(path: &str, form: Form) -> Target {
        Target::File { path: path.to_owned(), form }
    }

    #[test]
    fn what_a_tune_sets_is_admitted() {
        let made = Disciplines { map: vec![1; 16], queues: 4, ..Disciplines::default() };
        let value = made.value();
        let interface = || "eth0".to_owned();
        let vlan = Vlan { number: 2, pcps: BTreeSet::from([3]) };
        for (target, old, new) in [
            (Target::text("/proc/sys/vm/stat_interval"), some("1"), some("10")),
            (file("/proc/irq/24/smp_affinity_list", Form::List), some("0-3"), some("0,2")),
            (file("/proc/irq/default_smp_affinity", Form::Mask), some("ff,0000000f"), some("3")),
            (
                Target::text("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor"),
                some("schedutil"),
                some("performance"),
            ),
            (Target::text("/sys/class/net/enp2s0.7/threaded"), some("0"), some("1")),
            (Target::Latency, None, some("0")),
            (Target::Coalescing { interface: interface() }, None, None),
            (
                Target::Threads { prefix: "irq/24-".to_owned() },
                some("fifo:50,policy-6"),
                some("fifo:81"),
            ),
            (Target::Qdiscs { interface: interface(), made }, None, Some(value)),
            (Target::Vlan { interface: interface(), vlan }, None, some("vlan")),
        ] {
            assert_eq!(target.admit(&old, &new), Ok(()), "{target:?}");
        }
    }

    #[test]
    fn what_no_tune_sets_is_not() {
        let text = |path: &str| file(path, Form::Text);
        let group = |path: &str| Target::Group { path: path.to_owned() };
        let threads = |prefix: &str| Target::Threads { prefix: prefix.to_owned() };
        let interfaces =
            ["", ".", "..", "a/b", "a b", "-batch", "eth0\n", "aaaaaaaaaaaaaaaa", "a:1"];
        let mut targets: Vec<Target> =
            interfaces.map(|name| Target::Coalescing { interface: name.to_owned() }).into();
        targets.extend(interfaces.map(|name| text(&format!("/sys/class/net/{name}/threaded"))));
        targets.extend([
            text("/etc/shadow"),
            text("/proc/sys/kernel/core_pattern"),
            text("/proc/sys/kernel/../kernel/core_pattern"),
            text("/proc/sys/vm/../vm/stat_interval"),
            text("/proc/irq/../../etc/x/smp_affinity_list"),
            file("/proc/irq/24/smp_affinity_list", Form::Text),
            text("proc/sys/vm/stat_interval"),
            Target::Document { path: "/etc/cron.d/x".to_owned() },
            Target::Controller { group: "/sys/fs/cgroup".to_owned(), name: "devices".to_owned() },
            group("/sys/fs/cgroup"),
            group("/sys/fs/cgroup/system.slice"),
            group("/tmp/onbeat"),
            group("/sys/fs/cgroupx/onbeat"),
            group("/sys/fs/cgroup//onbeat"),
            text("/sys/fs/cgroup/../x/cpuset.sched_load_balance"),
            text("/sys/fs/cgroup/x/release_agent"),
            group("/sys/fs/cgroup/../../../tmp/onbeat"),
            threads(""),
            threads("ssh"),
            threads("irq/-"),
            threads("irq/x-"),
        ]);
        for target in targets {
            assert!(target.admit(&None, &None).is_err(), "{target:?}");
        }
    }

    #[test]
    fn values_are_of_their_kind() {
        let bad = |target: Target, value: &str| {
            let wrong = target.admit(&None, &some(value));
            assert!(wrong.is_err(), "{target:?} {value:?}");
            assert!(!wrong.unwrap_err().contains(char::is_control));
        };
        for value in ["", "x", "1 2", "1\n/bin/sh", "-1", "\u{1b}[2J", "123456789012345678901"] {
            bad(Target::text("/proc/sys/vm/stat_interval"), value);
        }
        bad(Target::text("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"), "a b");
        bad(Target::Document { path: boot::DOCUMENT.to_owned() }, "rm -rf /");
        bad(Target::Group { path: "/sys/fs/cgroup/onbeat".to_owned() }, "../../x=1");
        bad(Target::Group { path: "/sys/fs/cgroup/onbeat".to_owned() }, "cgroup.procs=1");
        bad(Target::Latency, "-1");
        for value in ["256", "-1", "07", ""] {
            bad(Target::Priority1, value);
        }
        bad(Target::Threads { prefix: "irq/1-".to_owned() }, "deadline:1");
    }

    #[test]
    fn what_continues_after_a_reboot_can_be_removed_and_not_written() {
        let changes = resume::resume(&["/usr/bin/onbeat".to_owned()], "/".as_ref()).unwrap();
        for change in changes {
            let (target, text) = (change.target, change.new);
            assert_eq!(target.admit(&None, &text), Ok(()));
            assert!(target.admit(&text, &None).is_err() && target.admit(&text, &text).is_err());
            assert!(target.admit(&None, &some("[Service]\nExecStart=/bin/sh\n")).is_err());
        }
        assert_eq!(Target::Priority1.admit(&some("246"), &some("255")), Ok(()));
    }

    #[test]
    fn disciplines_and_vlans_are_numbers_that_can_be() {
        let interface = || "eth0".to_owned();
        let sound = Disciplines { map: vec![1; 16], queues: 4, ..Disciplines::default() };
        let shaper = Shaper {
            class: 1,
            idle_slope_kbps: 1,
            send_slope_kbps: 1,
            high_octets: 1,
            low_octets: 1,
        };
        for made in [
            Disciplines { map: vec![1; 15], ..sound.clone() },
            Disciplines { map: vec![200; 16], ..sound.clone() },
            Disciplines { queues: 1, ..sound.clone() },
            Disciplines { shapers: vec![shaper], ..sound.clone() },
        ] {
            let target = Target::Qdiscs { interface: interface(), made };
            assert!(target.admit(&None, &None).is_err(), "{target:?}");
        }
        let theirs = Target::Qdiscs { interface: interface(), made: sound };
        assert!(theirs.admit(&some("fq 1:"), &None).is_err(), "it could not be given back");
        for (number, pcp) in [(0, 0), (4_095, 0), (1, 8)] {
            let vlan = Vlan { number, pcps: BTreeSet::from([pcp]) };
            let target = Target::Vlan { interface: interface(), vlan };
            assert!(target.admit(&None, &None).is_err(), "{target:?}");
        }
    }
}
