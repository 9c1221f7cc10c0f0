//! A digital output, through the kernel's character device: what libgpiod uses, without it.

use super::{Clock, ns, read};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use rustix::ioctl::opcode;
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which output: a chip and a line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioLine {
    /// `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// The line's number on it.
    pub line: u32,
}

/// A text that is no line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a line such as /dev/gpiochip0:17")]
pub struct NoLine(String);

impl FromStr for GpioLine {
    type Err = NoLine;

    fn from_str(text: &str) -> Result<Self, NoLine> {
        let wrong = || NoLine(text.to_owned());
        let (chip, line) = text.rsplit_once(':').ok_or_else(wrong)?;
        let line = line.parse().map_err(|_| wrong())?;
        if !chip.starts_with('/') {
            return Err(wrong());
        }
        Ok(Self { chip: chip.into(), line })
    }
}

impl std::fmt::Display for GpioLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.chip.display(), self.line)
    }
}

/// `struct gpio_v2_line_request` of `linux/gpio.h`: octets, and where in them what is used stands.
#[repr(C, align(8))]
struct Request([u8; 592]);

/// Where `offsets[0]`, `consumer`, `config.flags`, `num_lines` and `fd` begin.
const OFFSETS: usize = 0;
const CONSUMER: usize = 256;
const FLAGS: usize = 288;
const NUM_LINES: usize = 560;
const FD: usize = 588;
const FLAG_OUTPUT: u64 = 1 << 3;

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct Values {
    bits: u64,
    mask: u64,
}

const GET_LINE: libc::c_ulong = opcode::read_write::<Request>(0xB4, 0x07) as libc::c_ulong;
const SET_VALUES: libc::c_ulong = opcode::read_write::<Values>(0xB4, 0x0F) as libc::c_ulong;

/// An output that is ours until this goes.
#[derive(Debug)]
pub struct GpioOutput(OwnedFd);

impl GpioOutput {
    /// Asks for a line as an output, low.
    ///
    /// # Errors
    /// What the system says: there is no such chip or line, another has it, or it is not allowed.
    pub fn request(line: &GpioLine) -> io::Result<Self> {
        let chip = OpenOptions::new().read(true).write(true).open(&line.chip)?;
        let mut request = Request([0; 592]);
        let mut put = |at: usize, octets: &[u8]| {
            request.0[at..at + octets.len()].copy_from_slice(octets);
        };
        put(OFFSETS, &line.line.to_ne_bytes());
        put(CONSUMER, b"onbeat");
        put(FLAGS, &FLAG_OUTPUT.to_ne_bytes());
        put(NUM_LINES, &1_u32.to_ne_bytes());
        // SAFETY: the kernel reads and writes a structure of this size, which `request` is.
        let done = unsafe { libc::ioctl(chip.as_raw_fd(), GET_LINE as _, &mut request) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = [0, 1, 2, 3].map(|octet| request.0[FD + octet]);
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(RawFd::from_ne_bytes(fd)) }))
    }

    /// Sets it high or low. Real-time: one system call.
    ///
    /// # Errors
    /// What the system says.
    pub fn set(&self, high: bool) -> io::Result<()> {
        let mut values = Values { bits: u64::from(high), mask: 1 };
        // SAFETY: the kernel reads a structure of this size, which `values` is.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SET_VALUES as _, &mut values) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What an output costs: of each sample, the time from before a pulse up to after it is down.
    /// Returns how many samples there are, fewer than there is room for if `stop` was set.
    ///
    /// # Errors
    /// That of the first pulse that fails.
    pub fn pulses(&self, samples: &mut [i64], stop: &AtomicBool) -> io::Result<usize> {
        let clock = Clock::Local.number();
        for (done, sample) in samples.iter_mut().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(done);
            }
            let first = read(clock);
            self.set(true)?;
            self.set(false)?;
            let second = read(clock);
            *sample = ns(second) - ns(first);
        }
        Ok(samples.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let line: GpioLine = "/dev/gpiochip0:17".parse().unwrap();
        assert_eq!((line.chip.to_str(), line.line), (Some("/dev/gpiochip0"), 17));
        assert_eq!(line.to_string(), "/dev/gpiochip0:17");
        for wrong in ["", "17", "/dev/gpiochip0", "/dev/gpiochip0:", "/dev/x:-1", "gpiochip0:1"] {
            assert!(wrong.parse::<GpioLine>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_chip_is_refused_by_the_system() {
        let line = |chip: &str| GpioLine { chip: chip.into(), line: 0 };
        assert!(GpioOutput::request(&line("/nowhere")).is_err());
        let error = GpioOutput::request(&line("/dev/null")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    /// The system's header says the same of the structures as this file.
    #[test]
    fn the_structures_are_those_of_the_kernels_header() {
        const SOURCE: &str = "#include <stdio.h>\n#include <stddef.h>\n#include <linux/gpio.h>\n\
            #define AT(f) offsetof(struct gpio_v2_line_request, f)\n\
            int main(void) { printf(\"%zu %zu %zu %zu %zu %zu %zu %lu %lu %llu\",\
            sizeof(struct gpio_v2_line_request), sizeof(struct gpio_v2_line_values), AT(offsets),\
            AT(consumer), AT(config.flags), AT(num_lines), AT(fd),\
            (unsigned long)GPIO_V2_GET_LINE_IOCTL, (unsigned long)GPIO_V2_LINE_SET_VALUES_IOCTL,\
            (unsigned long long)GPIO_V2_LINE_FLAG_OUTPUT); return 0; }\n";
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("gpio.c"), directory.path().join("gpio"));
        std::fs::write(&source, SOURCE).unwrap();
        let made = Command::new("cc").arg(&source).arg("-o").arg(&program).output();
        let made = made.expect("a C compiler: scripts/needs cc");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let ours = [
            size_of::<Request>() as u64,
            size_of::<Values>() as u64,
            OFFSETS as u64,
            CONSUMER as u64,
            FLAGS as u64,
            NUM_LINES as u64,
            FD as u64,
            GET_LINE,
            SET_VALUES,
            FLAG_OUTPUT,
        ];
        assert_eq!(said, ours.map(|number| number.to_string()).join(" "));
    }
}
