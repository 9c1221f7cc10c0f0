//! The kernel's threads, from `/proc/PID/stat`.

use onbeat_run::machine::{CpuList, Machine};

/// `PF_KTHREAD` of linux/sched.h: a thread of the kernel's own. Programs may call themselves what
/// they like.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What `/proc/PID/stat` says of a task (proc_pid_stat(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Its number.
    pub(super) number: u32,
    /// Its name, at most 15 characters.
    pub(super) name: String,
    /// Whether it is a thread of the kernel.
    pub(super) kernel: bool,
    /// Which one started it.
    pub(super) parent: u32,
    /// When it started, in ticks since boot.
    pub(super) start: u64,
    /// Its policy and priority: `fifo:50`.
    pub(super) scheduling: String,
}

/// The line of a task. The name stands in parentheses and may itself have any character.
pub(super) fn parse(stat: &str) -> Option<Task> {
    let (number, rest) = stat.trim().split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    // The first of these is field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (priority, policy) = (field(40)?, field(41)?);
    let scheduling = match policy {
        0 => "other".to_owned(),
        1 => format!("fifo:{priority}"),
        2 => format!("rr:{priority}"),
        other => format!("policy-{other}"),
    };
    Some(Task {
        number: number.parse().ok()?,
        name: name.to_owned(),
        kernel: field(9)? & KERNEL_THREAD != 0,
        parent: u32::try_from(field(4)?).ok()?,
        start: field(22)?,
        scheduling,
    })
}

/// One task, if it is there.
pub(super) fn task(machine: &Machine, number: u32) -> Option<Task> {
    parse(&machine.read(&format!("/proc/{number}/stat")).ok()?)
}

/// All processes, and the threads of the kernel, which are processes of one thread; in the order of
/// their numbers.
pub(super) fn all(machine: &Machine) -> Vec<Task> {
    let numbers = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    numbers.filter_map(|number| task(machine, number)).collect()
}

/// The kernel's threads whose names begin so.
pub(super) fn kernel_threads(machine: &Machine, prefix: &str) -> Vec<Task> {
    let mut tasks = all(machine);
    tasks.retain(|task| task.kernel && task.name.starts_with(prefix));
    tasks
}

/// The processors that a task may use.
pub(super) fn allowed(machine: &Machine, number: u32) -> Option<CpuList> {
    let status = machine.read(&format!("/proc/{number}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    line.parse().ok()
}

/// A scheduling as it is asked for: policy (`SCHED_…`) and priority.
pub(super) fn policy(text: &str) -> Option<(i32, i32)> {
    let number = |text: &str| text.parse().ok().filter(|priority| (1..=99).contains(priority));
    match text.split_once(':') {
        None if text == "other" => Some((libc::SCHED_OTHER, 0)),
        Some(("fifo", priority)) => Some((libc::SCHED_FIFO, number(priority)?)),
        Some(("rr", priority)) => Some((libc::SCHED_RR, number(priority)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "50 (irq/24-ACPI:Ged) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 39 0 0 \
                        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 0 50 1 0 0 0 0 0";

    #[test]
    fn a_line_is_read_whatever_the_name_is() {
        let task = parse(LINE).expect("a task");
        assert_eq!((task.number, task.name.as_str(), task.kernel), (50, "irq/24-ACPI:Ged", true));
        assert_eq!((task.start, task.scheduling.as_str()), (39, "fifo:50"));
        let odd = parse(&LINE.replace("irq/24-ACPI:Ged", "a) S (b")).expect("a task");
        assert_eq!(odd.name, "a) S (b");
        for cut in 0..LINE.len() - 15 {
            assert!(parse(&LINE[..cut]).is_none_or(|t| t.number == 50), "{cut}");
        }
    }

    #[test]
    fn schedulings_are_what_the_kernel_takes() {
        assert_eq!(policy("other"), Some((0, 0)));
        assert_eq!(policy("fifo:99"), Some((1, 99)));
        assert_eq!(policy("rr:1"), Some((2, 1)));
        for bad in ["fifo", "fifo:0", "fifo:100", "policy-6", "batch:1", ""] {
            assert_eq!(policy(bad), None, "{bad}");
        }
    }
}
