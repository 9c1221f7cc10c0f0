//! All threads of the machine, as far as more than one area asks for them.

use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};

/// How a thread is scheduled (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    RoundRobin,
    /// SCHED_DEADLINE.
    Deadline,
    /// Anything without a real-time guarantee.
    Normal,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its name, at most 15 octets.
    pub name: String,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// How it is scheduled.
    pub policy: Policy,
    /// Its real-time priority, 1 to 99; 0 if it has none.
    pub priority: u8,
    /// The processor that it last ran on.
    pub cpu: u16,
    /// Page faults that needed the disk.
    pub major_faults: u64,
}

/// PF_KTHREAD of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Task {
    /// Reads `/proc/PID/task/TID/stat` (proc_pid_stat(5)).
    pub(super) fn parse(pid: u32, stat: &str) -> Option<Self> {
        // The name may hold anything, parentheses as well.
        let (tid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first one here is the third of the manual.
        let field = |number: usize| fields.get(number - 3).and_then(|f| f.parse::<u64>().ok());
        let policy = match field(41)? {
            1 => Policy::Fifo,
            2 => Policy::RoundRobin,
            6 => Policy::Deadline,
            _ => Policy::Normal,
        };
        Some(Self {
            pid,
            tid: tid.trim().parse().ok()?,
            name: name.to_owned(),
            kernel: field(9)? & KERNEL_THREAD != 0,
            policy,
            priority: field(40)?.min(99) as u8,
            cpu: u16::try_from(field(39)?).ok()?,
            major_faults: field(12)?,
        })
    }

    /// Whether it has a real-time guarantee.
    pub fn is_real_time(&self) -> bool {
        self.policy != Policy::Normal
    }
}

/// The threads of one process.
pub(super) fn of(machine: &Machine, pid: u32) -> Vec<Task> {
    let directory = format!("/proc/{pid}/task");
    let threads = machine.names(&directory).into_iter();
    threads
        .filter_map(|tid| machine.read(&format!("{directory}/{tid}/stat")).ok())
        .filter_map(|stat| Task::parse(pid, &stat))
        .collect()
}

/// All that can be seen; threads come and go while this looks.
pub(super) fn all(machine: &Machine) -> Vec<Task> {
    let processes = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    processes.flat_map(|pid| of(machine, pid)).collect()
}

/// The arguments that a process was started with.
pub(super) fn arguments(machine: &Machine, pid: u32) -> Vec<String> {
    let line = machine.read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_have_any_name() {
        let rest = "S 1 1 1 0 -1 4194560 5 0 7 0 0 0 0 0 -81 0 1 0 9 0 0 18446744073709551615 \
                    0 0 0 0 0 0 0 0 0 0 0 0 -1 3 80 1 0 0 0";
        let task = Task::parse(40, &format!("42 (a) b (c) {rest}")).unwrap();
        let expected = Task {
            pid: 40,
            tid: 42,
            name: "a) b (c".to_owned(),
            kernel: false,
            policy: Policy::Fifo,
            priority: 80,
            cpu: 3,
            major_faults: 7,
        };
        assert_eq!(task, expected);
        assert!(task.is_real_time());
        for wrong in ["", "42 (a", "42 (a) S 1", "x (a) S"] {
            assert_eq!(Task::parse(40, wrong), None);
        }
    }
}
