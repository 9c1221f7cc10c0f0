//! What can be set.

use onbeat_configuration::{Disciplines, Vlan};
use onbeat_run::machine::CpuList;
use serde::{Deserialize, Serialize};

/// Where ptp4l answers, and the domain of gPTP.
pub const PTP4L: (&str, u8) = ("/var/run/ptp4l", 0);

/// A target's value as text; none: it is not there, or as the kernel has it by itself.
pub type Value = Option<String>;

/// How the text of a file is compared: the kernel writes some values in another form than it reads
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As it is, without white space at its ends.
    Text,
    /// A list of processors, `0,2-3`.
    List,
    /// A mask of processors in hexadecimal.
    Mask,
}

/// A task that was bound to some of the processors that its set has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Its number.
    pub task: u32,
    /// When it started, in ticks since boot: tells it from a later one of the same number.
    pub start: u64,
    /// The processors.
    pub cpus: String,
}

/// One thing that can be set, and set back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A setting of the kernel in a file below `/proc` or `/sys`.
    File {
        /// Its path.
        path: String,
        /// How its text is compared.
        form: Form,
    },
    /// A file on disk: the only target that is still there after a reboot.
    Document {
        /// Its path.
        path: String,
    },
    /// Whether the groups below a group have a controller (`cgroup.subtree_control`); the value is
    /// `on` or none.
    Controller {
        /// The directory of the upper group.
        group: String,
        /// The controller's name.
        name: String,
    },
    /// A control group; the value is its settings in the order in which they are written, one
    /// `file=value` a line.
    Group {
        /// Its directory.
        path: String,
    },
    /// The tasks of a set of cgroup v1; the value is `moved` if there are any in `to`.
    Tasks {
        /// The set's directory.
        from: String,
        /// The directory of the set that they go to.
        to: String,
        /// Those that get their processors back when they return.
        bound: Vec<Bound>,
    },
    /// Interrupt coalescing of an interface: `rx-usecs 3 rx-frames 0 …`.
    Coalescing {
        /// The interface.
        interface: String,
    },
    /// The scheduling of the kernel's threads whose names begin so: `fifo:50`, of several with
    /// different values one after the other, with commas, in the order of their numbers.
    Threads {
        /// The beginning, as in `irq/24-`.
        prefix: String,
    },
    /// The latency in microseconds to which a process of ours holds the processors' idle states;
    /// none: there is no such process.
    Latency,
    /// priority1 of the ptp4l that answers at [`PTP4L`]; none: there is none.
    Priority1,
    /// The queueing disciplines of an interface: `mqprio 8b0:, cbs 8b1:`; none: the kernel's own.
    Qdiscs {
        /// The interface.
        interface: String,
        /// What is made.
        made: Disciplines,
    },
    /// An interface for one VLAN; the value is `vlan`.
    Vlan {
        /// The interface that it is on.
        interface: String,
        /// Which.
        vlan: Vlan,
    },
}

impl Target {
    /// A file that is compared as text.
    pub fn text(path: impl Into<String>) -> Self {
        Self::File { path: path.into(), form: Form::Text }
    }

    /// Where it is, for a person.
    pub fn place(&self) -> String {
        match self {
            Self::File { path, .. } | Self::Document { path } | Self::Group { path } => {
                path.clone()
            }
            Self::Controller { group, name } => format!("{group}/cgroup.subtree_control {name}"),
            Self::Tasks { from, to, .. } => format!("tasks of {from} to {to}"),
            Self::Coalescing { interface } => format!("coalescing of {interface}"),
            Self::Threads { prefix } => format!("threads {prefix}*"),
            Self::Latency => "/dev/cpu_dma_latency".to_owned(),
            Self::Priority1 => "priority1 of ptp4l".to_owned(),
            Self::Qdiscs { interface, .. } => format!("queueing disciplines of {interface}"),
            Self::Vlan { interface, vlan } => format!("interface {}", vlan.name(interface)),
        }
    }

    /// Whether what is set is still there after a reboot.
    pub fn survives_reboot(&self) -> bool {
        matches!(self, Self::Document { .. })
    }

    /// Whether two values are the same setting.
    pub fn same(&self, one: &Value, other: &Value) -> bool {
        let (Some(a), Some(b)) = (one, other) else { return one == other };
        let cpus = |read: fn(&str) -> Option<CpuList>| match (read(a), read(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a.trim() == b.trim(),
        };
        match self {
            Self::File { form: Form::List, .. } => cpus(|text| text.parse().ok()),
            Self::File { form: Form::Mask, .. } => cpus(|text| CpuList::from_mask(text).ok()),
            Self::File { form: Form::Text, .. } => a.trim() == b.trim(),
            _ => a == b,
        }
    }

    /// Whether what is there now is what we made, perhaps halfway: then it may be taken back.
    /// `after` is what was read back after the change, if it came to that.
    pub fn is_ours(&self, now: &Value, new: &Value, after: &Value) -> bool {
        let first = |value: &Value| {
            value.as_deref().and_then(|text| text.split(',').next()).map(str::to_owned)
        };
        match self {
            // Made by us, of several steps: whatever is in it, it was not there before.
            Self::Group { .. } | Self::Tasks { .. } | Self::Controller { .. } => now.is_some(),
            // The disciplines below the root come one by one.
            Self::Qdiscs { .. } => now.is_some() && first(now) == first(new),
            // The threads come and go with the driver, and are set one by one.
            Self::Threads { .. } => {
                let wanted = new.as_deref().unwrap_or_default();
                now.as_deref().is_some_and(|now| now.split(',').any(|one| one == wanted))
            }
            _ => self.same(now, new) || (after.is_some() && self.same(now, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_the_kernel_writes_them() {
        let some = |text: &str| Some(text.to_owned());
        let file = |form| Target::File { path: "/proc/x".to_owned(), form };
        assert!(file(Form::Mask).same(&some("00000003"), &some("3\n")));
        assert!(file(Form::Mask).same(&some("00,00000003"), &some("3")));
        assert!(file(Form::List).same(&some("0-1"), &some("0,1")));
        assert!(!file(Form::List).same(&some("0-1"), &some("0")));
        assert!(!file(Form::Text).same(&some("1"), &some("01")));
        assert!(!file(Form::Text).same(&None, &some("")));
        assert!(file(Form::List).same(&some("?"), &some("?")));
    }

    #[test]
    fn what_is_half_made_is_ours_and_what_others_made_is_not() {
        let some = |text: &str| Some(text.to_owned());
        let qdiscs = Target::Qdiscs { interface: "eth0".to_owned(), made: Disciplines::default() };
        let new = some("mqprio 8b0:,cbs 8b1:");
        assert!(qdiscs.is_ours(&some("mqprio 8b0:"), &new, &None));
        assert!(!qdiscs.is_ours(&some("fq 1:"), &new, &None));
        assert!(!qdiscs.is_ours(&None, &new, &None));
        let threads = Target::Threads { prefix: "irq/1-".to_owned() };
        assert!(threads.is_ours(&some("fifo:81,fifo:50"), &some("fifo:81"), &None));
        assert!(!threads.is_ours(&some("fifo:7"), &some("fifo:81"), &None));
        let file = Target::text("/proc/x");
        assert!(file.is_ours(&some("1"), &some("0"), &some("1")));
        assert!(!file.is_ours(&some("2"), &some("0"), &some("1")));
    }
}
