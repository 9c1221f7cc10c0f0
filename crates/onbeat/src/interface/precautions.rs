//! What keeps a program's waits short outside of a run: its memory stays in memory, and no
//! processor is in an idle state that it leaves late. A right that the program lacks is no failure.

use crate::coordinator::client::SetupError;
use crate::environment;
use crate::fork::process;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

/// The environment variable that has memory as it is, if it is 0.
const LOCK_MEMORY: &str = "ONBEAT_LOCK_MEMORY";
/// The one that has idle states as they are, if it is 0.
const HOLD_CPU_LATENCY: &str = "ONBEAT_HOLD_CPU_LATENCY";

/// What a process writes into its wish for a CPU latency to have none: the kernel's default, in µs.
const NO_WISH: i32 = 2_000_000_000;

/// What is done for a program while it has an interface open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precautions {
    /// Lock the program's memory, also for after the interface is closed: what it has when the
    /// interface is opened, and again when it is started, is there without a page fault. What it
    /// gets afterwards is locked as it is touched, so that stacks and reserves cost no memory. The
    /// latter only if RLIMIT_MEMLOCK is unlimited: beyond a limit the kernel would refuse memory
    /// to the program. A program that has locked all of its future memory itself keeps that.
    pub lock_memory: bool,
    /// The device in which to wish for a CPU latency of 0, once per process, until its last
    /// interface is closed; `None` has idle states as they are.
    pub cpu_latency: Option<PathBuf>,
}

impl Precautions {
    /// None at all: for programs that look on.
    pub const NONE: Self = Self { lock_memory: false, cpu_latency: None };

    /// Those of them that the environment does not forbid.
    pub(super) fn permitted(&self) -> Result<Self, SetupError> {
        let permits = |name: &str| match environment::var_os(name) {
            None => Ok(true),
            Some(value) if value == "1" => Ok(true),
            Some(value) if value == "0" => Ok(false),
            Some(_) => Err(SetupError::Refused(format!("{name} is 0 or 1"))),
        };
        let (memory, latency) = (permits(LOCK_MEMORY)?, permits(HOLD_CPU_LATENCY)?);
        Ok(Self {
            lock_memory: self.lock_memory && memory,
            cpu_latency: self.cpu_latency.clone().filter(|_| latency),
        })
    }

    /// Takes them; the CPU latency is held as long as the value lives. Allocates.
    pub(super) fn take(&self) -> Option<Arc<LatencyHeld>> {
        if self.lock_memory {
            lock_memory(true);
        }
        LatencyHeld::hold(self.cpu_latency.as_deref()?).ok()
    }
}

impl Default for Precautions {
    fn default() -> Self {
        Self { lock_memory: true, cpu_latency: Some(PathBuf::from("/dev/cpu_dma_latency")) }
    }
}

/// Which precautions this process has taken, and was allowed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The memory that it had is locked.
    pub memory: bool,
    /// Memory that it gets from now on is, too.
    pub later_memory: bool,
    /// A CPU latency of 0 is wished for.
    pub cpu_latency: bool,
}

impl Taken {
    /// As it is now. Takes a lock.
    pub fn now() -> Self {
        let locked = LOCKED.load(Ordering::Relaxed);
        Self {
            memory: locked != NOTHING,
            later_memory: locked == ALL,
            cpu_latency: LatencyHeld::get(&held()).is_some(),
        }
    }
}

const NOTHING: u8 = 0;
const PRESENT: u8 = 1;
const ALL: u8 = 2;
/// What of this process's memory was locked here last.
static LOCKED: AtomicU8 = AtomicU8::new(NOTHING);
/// What is not locked is told once.
static TOLD: Once = Once::new();

/// Locks what the process has now; with `later`, and without a limit, also what it gets. Says on
/// standard error, once, if the system refuses it. May block for long: all becomes resident.
pub(crate) fn lock_memory(later: bool) {
    let limit = getrlimit(Resource::Memlock).current;
    // A right to exceed the limit does not suffice: programs give rights up after set-up.
    let locked = lock(later && limit.is_none());
    let state = match locked {
        Err(_) => NOTHING,
        Ok(false) => PRESENT,
        Ok(true) => ALL,
    };
    LOCKED.store(state, Ordering::Relaxed);
    let Err(error) = locked else { return };
    let why = match limit {
        None => String::new(),
        Some(octets) => {
            format!(": RLIMIT_MEMLOCK is {octets} octets, and CAP_IPC_LOCK is missing")
        }
    };
    TOLD.call_once(|| {
        eprintln!(
            "onbeat: memory is not locked ({error}), page faults may delay this program{why}"
        );
    });
}

/// Whether the memory of the future is locked as well afterwards.
fn lock(all: bool) -> io::Result<bool> {
    if future_is_resident() {
        lock_all(libc::MCL_CURRENT | libc::MCL_FUTURE)?;
        return Ok(true);
    }
    lock_all(libc::MCL_CURRENT)?;
    if all {
        // By itself: together with MCL_CURRENT, MCL_ONFAULT would be for that, too.
        lock_all(libc::MCL_FUTURE | libc::MCL_ONFAULT)?;
    }
    Ok(all)
}

/// mlockall(2) of the C library, which sanitizers replace: their shadow memory has no end.
fn lock_all(flags: i32) -> io::Result<()> {
    // SAFETY: the call has no effect on what memory contains.
    if unsafe { libc::mlockall(flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether new memory is resident at once, because the program has locked all that it gets.
fn future_is_resident() -> bool {
    let (length, access) = (rustix::param::page_size(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE) };
    let page = match page {
        Ok(page) => page,
        // As much as may be is locked, because all was to be.
        Err(error) => return error == Errno::AGAIN,
    };
    let mut resident = 0;
    // SAFETY: the page is mapped, and the answer for it has one octet.
    let got = unsafe { libc::mincore(page, length, &raw mut resident) };
    // SAFETY: the mapping is the one made above, and nothing refers to it.
    let _ = unsafe { munmap(page, length) };
    got == 0 && resident & 1 != 0
}

/// The process's wish for a CPU latency of 0. The kernel forgets it with the descriptor.
#[derive(Debug)]
pub(super) struct LatencyHeld {
    device: File,
    /// A forked child inherits the descriptor, but neither shares nor withdraws the wish.
    process: u32,
}

static HELD: Mutex<Weak<LatencyHeld>> = Mutex::new(Weak::new());

fn held() -> std::sync::MutexGuard<'static, Weak<LatencyHeld>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LatencyHeld {
    fn get(held: &Weak<Self>) -> Option<Arc<Self>> {
        held.upgrade().filter(|there| there.process == process())
    }

    fn hold(path: &Path) -> io::Result<Arc<Self>> {
        let mut held = held();
        if let Some(there) = Self::get(&held) {
            return Ok(there);
        }
        let mut device = OpenOptions::new().write(true).open(path)?;
        device.write_all(&0_i32.to_ne_bytes())?;
        let made = Arc::new(Self { device, process: process() });
        *held = Arc::downgrade(&made);
        Ok(made)
    }
}

impl Drop for LatencyHeld {
    fn drop(&mut self) {
        // Where a child has the descriptor still, closing it here does not end the wish.
        if self.process == process() {
            let _ = self.device.write_at(&NO_WISH.to_ne_bytes(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAYS: &str = "ONBEAT_TEST_LOCKS_ALL_MEMORY";
    const LATER: usize = 1 << 20;

    /// The locked memory of this process, in KiB.
    fn locked() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").expect("a process");
        let line = text.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a figure");
        line.trim().trim_end_matches(" kB").parse().expect("KiB")
    }

    #[test]
    fn memory_of_the_future_is_locked_but_resident_only_when_it_is_touched() {
        if environment::var_os(PLAYS).is_none() {
            // All memory of a process is locked: of one that is there for this alone.
            let name = "memory_of_the_future_is_locked_but_resident_only_when_it_is_touched";
            let test = format!("interface::precautions::tests::{name}");
            let this = std::env::current_exe().expect("this test");
            let mut again = std::process::Command::new(this);
            let again = again.args(["--exact", &test, "--nocapture"]).env(PLAYS, "1");
            let output = again.output().expect("this test again");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        match lock(true) {
            // Where the limit is low and there is no right to exceed it.
            Err(error) => return eprintln!("memory is not locked here: {error}"),
            Ok(all) => assert!(all && !future_is_resident()),
        }
        let before = locked();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let place =
            unsafe { mmap_anonymous(std::ptr::null_mut(), LATER, access, MapFlags::PRIVATE) };
        let place = place.expect("memory").cast::<u8>();
        let resident = || {
            let mut pages = vec![0_u8; LATER / rustix::param::page_size()];
            // SAFETY: the memory is mapped; there is an octet for each of its pages.
            unsafe { assert_eq!(libc::mincore(place.cast(), LATER, pages.as_mut_ptr()), 0) };
            pages.iter().filter(|page| **page & 1 != 0).count()
        };
        assert!(locked() >= before + LATER / 1024);
        assert_eq!(resident(), 0);
        // SAFETY: the first octet of the mapping.
        unsafe { place.write_volatile(1) };
        assert!(resident() > 0);
        // Again, as at the start: what came since is resident, and what comes is not.
        assert!(lock(true).expect("as before") && !future_is_resident());
        assert_eq!(resident() * rustix::param::page_size(), LATER);
    }
}
