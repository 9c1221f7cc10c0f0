//! What keeps the machine as it is while it is measured.

use onbeat_run::machine::Machine;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The processors' idle states, kept shallow for as long as this lives. A system looks better while
/// this is held than it is afterwards: whoever reports figures says so.
#[derive(Debug)]
pub struct CpuLatencyHeld {
    /// The kernel drops the request when it is closed.
    _file: File,
}

impl CpuLatencyHeld {
    /// Asks for no latency at all.
    ///
    /// # Errors
    /// What the system says; the file is the superuser's.
    pub fn hold(machine: &Machine) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(machine.path("/dev/cpu_dma_latency"))?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _file: file })
    }
}

/// Keeps all of the process in memory, what it has now and what it gets. Where there is a limit,
/// only what it has now: beyond it, what the process asks for later would be refused.
///
/// # Errors
/// What the system says: the limit of locked memory is often low.
pub fn lock_memory() -> io::Result<()> {
    use rustix::mm::{MlockAllFlags, mlockall};
    use rustix::process::{Resource, geteuid, getrlimit};
    let unlimited = geteuid().is_root() || getrlimit(Resource::Memlock).current.is_none();
    let later = if unlimited { MlockAllFlags::FUTURE } else { MlockAllFlags::empty() };
    mlockall(MlockAllFlags::CURRENT | later)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_for_no_latency_is_written_as_the_kernel_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        assert!(CpuLatencyHeld::hold(&machine).is_err());
        std::fs::create_dir(machine.path("/dev")).unwrap();
        std::fs::write(machine.path("/dev/cpu_dma_latency"), "").unwrap();
        let held = CpuLatencyHeld::hold(&machine).unwrap();
        assert_eq!(std::fs::read(machine.path("/dev/cpu_dma_latency")).unwrap(), [0; 4]);
        drop(held);
    }
}
