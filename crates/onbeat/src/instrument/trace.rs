//! Markers in the kernel's trace, and freezing it.

use crate::instrument::{WatchError, latency};
use arrayvec::ArrayString;
use onbeat_model::record::{Record, Role};
use onbeat_model::time::Span;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the trace's files are: by itself, or as a part of debugfs.
const DIRECTORIES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The longest marker: a name and four numbers fit.
const MAX_LINE: usize = 160;
/// As much of a channel's name as a marker has.
const MAX_NAME: usize = 32;

/// The kernel's trace, for all ends of a program.
#[derive(Debug)]
pub struct Trace {
    marker: OwnedFd,
    switch: OwnedFd,
    markers: bool,
    break_at: Option<Span>,
    frozen: AtomicBool,
    why: OnceLock<Break>,
}

/// Why the trace was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) channel: ArrayString<MAX_NAME>,
    pub(super) sequence: u64,
    pub(super) latency: Span,
    /// Whether the kernel took it.
    pub(super) done: bool,
}

impl Trace {
    /// Opens the trace: with `markers`, each message leaves one; a latency longer than `break_at`
    /// freezes it.
    pub fn open(markers: bool, break_at: Option<Span>) -> Result<Self, WatchError> {
        let there = DIRECTORIES.iter().find(|d| Path::new(d).join("trace_marker").exists());
        Self::open_in(Path::new(there.unwrap_or(&DIRECTORIES[0])), markers, break_at)
    }

    /// The same for the files in `directory`, perhaps an instance of the trace.
    pub(super) fn open_in(
        directory: &Path,
        markers: bool,
        break_at: Option<Span>,
    ) -> Result<Self, WatchError> {
        let open = |name: &str| {
            let path = directory.join(name);
            let opened = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            opened.map_err(|error| WatchError::Trace { path, error: error.into() })
        };
        let (marker, switch) = (open("trace_marker")?, open("tracing_on")?);
        let (frozen, why) = (AtomicBool::new(false), OnceLock::new());
        Ok(Self { marker, switch, markers, break_at, frozen, why })
    }

    /// Why it was frozen, if it was.
    pub(super) fn broken(&self) -> Option<&Break> {
        self.why.get()
    }

    fn mark(&self, line: &str) {
        // A trace that is switched off takes no markers; it is not for the program to mind.
        let _ = rustix::io::write(&self.marker, line.as_bytes());
    }
}

/// One end's part of it.
#[derive(Debug)]
pub(super) struct Tracer {
    trace: std::sync::Arc<Trace>,
    name: ArrayString<MAX_NAME>,
}

impl Tracer {
    pub(super) fn new(trace: std::sync::Arc<Trace>, channel: &str) -> Self {
        let mut name = ArrayString::new();
        for character in channel.chars() {
            if name.try_push(character).is_err() {
                break;
            }
        }
        Self { trace, name }
    }

    /// Marks a message; whether its latency was too long. Then, for the first one of the program,
    /// the trace is frozen. Real-time: allocates nothing; a system call per marker, two to freeze.
    pub(super) fn push(&mut self, record: &Record, role: Role) -> bool {
        let latency = latency(record, role);
        if self.trace.markers {
            let line = self.line(record, role, latency);
            self.trace.mark(&line);
        }
        let (Some(latency), Some(most)) = (latency, self.trace.break_at) else { return false };
        if latency <= most {
            return false;
        }
        if !self.trace.frozen.swap(true, Ordering::Relaxed) {
            self.freeze(record, latency, most);
        }
        true
    }

    fn line(&self, record: &Record, role: Role, latency: Option<Span>) -> ArrayString<MAX_LINE> {
        let mut line = ArrayString::new();
        let what = if role == Role::Talker { "tx" } else { "rx" };
        let capture = record.capture.unwrap_or_default().as_ns();
        let (name, sequence) = (&self.name, record.sequence);
        // All of it fits; were it not to, the marker would end early.
        let _ = write!(line, "onbeat {what} {name} seq={sequence} cap={capture}");
        if let Some(latency) = latency {
            let _ = write!(line, " latency={}", latency.as_ns());
        }
        line
    }

    fn freeze(&self, record: &Record, latency: Span, most: Span) {
        let mut line = ArrayString::<MAX_LINE>::new();
        let (name, sequence) = (&self.name, record.sequence);
        let (long, most) = (latency.as_ns(), most.as_ns());
        let _ = write!(line, "onbeat break {name} seq={sequence} latency={long} break={most}");
        self.trace.mark(&line);
        let done = rustix::io::write(&self.trace.switch, b"0").is_ok();
        // Only the thread that has set `frozen` comes here: nobody else sets it.
        let _ = self.trace.why.set(Break { channel: self.name, sequence, latency, done });
    }
}
