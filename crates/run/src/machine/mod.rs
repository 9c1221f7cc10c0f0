//! The machine's settings as files: `/proc`, `/sys`, `/dev`, below a root that tests put elsewhere.
//! Reading changes nothing; only `tune` writes, through its journal.

mod cpus;

pub use cpus::{CpuList, NotCpus};

use onbeat::regular;
use rustix::fs::{Dir, DirEntry, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
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

    /// A machine whose files are below a directory: a fake one, or a copy.
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
        regular::utf8(regular::all(self.open(path)?, FILE_OCTETS)?)
    }

    /// Opens a regular file to be read.
    pub fn open(&self, path: &str) -> io::Result<File> {
        match self.is_this() {
            true => regular::open(&self.path(path)),
            false => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
                regular::only(self.below_root(path, flags)?.into())
            }
        }
    }

    /// Opens something of a machine that a user has invented: links lead nowhere but below its
    /// root, or they would show other files of this machine.
    fn below_root(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, directory, Mode::empty())?;
        let path = match path.trim_start_matches('/') {
            "" => ".",
            path => path,
        };
        let flags = flags | OFlags::CLOEXEC;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root, path, flags, Mode::empty(), within)
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
        match self.is_this() {
            true => self.path(path).exists(),
            false => self.below_root(path, OFlags::PATH).is_ok(),
        }
    }

    /// The names in a directory, sorted, numbers by their value; none where there is no such
    /// directory.
    pub fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = match self.is_this() {
            true => {
                let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            false => {
                let place = self.below_root(path, OFlags::RDONLY | OFlags::DIRECTORY);
                let entries = place.and_then(Dir::read_from).into_iter().flatten().flatten();
                let name = |entry: DirEntry| entry.file_name().to_str().map(str::to_owned).ok();
                entries.filter_map(name).filter(|name| name != "." && name != "..").collect()
            }
        };
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

    #[test]
    fn links_of_a_made_up_machine_do_not_leave_it() {
        let [directory, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
        let machine = Machine::below(directory.path());
        std::fs::create_dir_all(machine.path("/proc/sys")).unwrap();
        std::fs::write(machine.path("/proc/value"), "1").unwrap();
        let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, machine.path(at)).unwrap();
        link(&outside.path().join("secret"), "/proc/absolute");
        let up = Path::new("../").iter().cycle().take(12).collect::<PathBuf>();
        link(&up.join(outside.path().strip_prefix("/").unwrap()), "/proc/relative");
        link(Path::new("/proc/value"), "/proc/own");
        assert_eq!(machine.number("/proc/own").unwrap(), 1);
        assert!(machine.has("/proc/own") && machine.has("/proc/sys") && machine.has("/"));
        assert!(machine.read("/proc/absolute").is_err() && !machine.has("/proc/absolute"));
        assert!(machine.names("/proc/relative").is_empty());
        assert_eq!(machine.names("/proc"), ["absolute", "own", "relative", "sys", "value"]);
    }
}
