//! The machine's settings as files: `/proc`, `/sys`, `/dev`, below a root that tests put elsewhere.
//! Reading changes nothing; only `tune` writes, through its journal.

mod cpus;

pub use cpus::{CpuList, NotCpus};

use crate::regular;
use std::io;
use std::path::{Path, PathBuf};

/// The most of a file of the machine.
const FILE_OCTETS: u64 = 16 << 20;

/// Where the machine's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// A machine whose files are below a directory: a made-up one, or a copy.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether the kernel that runs this is the one that the files are of: only then system calls
    /// say something about the machine.
    pub fn is_this(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a file of the machine is; `path` is absolute: `/proc/cmdline`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without white space at its ends.
    pub fn read(&self, path: &str) -> io::Result<String> {
        self.document(path).map(|text| text.trim().to_owned())
    }

    /// A file's text as it is.
    pub fn document(&self, path: &str) -> io::Result<String> {
        regular::text(&self.path(path), FILE_OCTETS)
    }

    /// A file that holds one number.
    pub fn number(&self, path: &str) -> io::Result<i64> {
        let text = self.read(path)?;
        text.parse().map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{path}: `{text}` is not a number"))
        })
    }

    /// A file that holds a list of processors.
    pub fn cpus(&self, path: &str) -> io::Result<CpuList> {
        let text = self.read(path)?;
        text.parse().map_err(|error: NotCpus| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}"))
        })
    }

    /// Whether there is such a file or directory.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The names in a directory, sorted, numbers by their value; none where there is no such
    /// directory.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| (name.parse().unwrap_or(u64::MAX), name.clone()));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_root_is_that_machine() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        std::fs::create_dir_all(machine.path("/proc/irq/9")).unwrap();
        std::fs::create_dir_all(machine.path("/proc/irq/10")).unwrap();
        std::fs::write(machine.path("/proc/irq/9/smp_affinity_list"), "0,2-3\n").unwrap();
        std::fs::write(machine.path("/proc/value"), "-1\n").unwrap();
        assert_eq!(machine.names("/proc/irq"), ["9", "10"]);
        assert_eq!(machine.number("/proc/value").unwrap(), -1);
        let cpus = machine.cpus("/proc/irq/9/smp_affinity_list").unwrap();
        assert_eq!(cpus.to_string(), "0,2-3");
        assert!(machine.number("/proc/irq/9/smp_affinity_list").is_err());
        assert!(!machine.has("/proc/cmdline") && !machine.is_this());
        assert!(machine.names("/nowhere").is_empty());
    }
}
