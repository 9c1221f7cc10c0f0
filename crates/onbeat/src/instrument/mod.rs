//! What can be switched on to watch a program's channels: the delay log, markers in the kernel's
//! trace, and freezing that trace when a latency is too long.
//!
//! ```text
//! Recorder ── Probe ┬─ Tap ── ring ── Scribe (one thread a program) ── files
//!                   └─ Tracer ── trace_marker, tracing_on
//! ```

mod delay_log;
mod scribe;
mod trace;

pub use delay_log::{TIMES_COLUMNS, WAITS_COLUMNS, waits_path};
pub(crate) use scribe::step_back;
pub use trace::Trace;

use crate::interface::Timebase;
use crate::shared_log::{Identity, SharedLog};
use delay_log::Stream;
use onbeat_model::record::{Record, Role, flag};
use onbeat_model::time::Span;
use scribe::{Scribe, Tap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use trace::Tracer;

/// A program that is not on an interface writes trace markers when this is `1`.
pub const TRACE: &str = "ONBEAT_KERNEL_TRACE";
/// It freezes the kernel's trace when a latency is longer than this, in microseconds.
pub const BREAK_US: &str = "ONBEAT_BREAK_US";

/// What to switch on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Write the delay log here, and beside it the log of timed waits.
    pub log: Option<PathBuf>,
    /// Write a marker into the kernel's trace for each message.
    pub trace: bool,
    /// Freeze the kernel's trace when a message's latency is longer.
    pub break_at: Option<Span>,
}

/// Why something cannot be switched on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A log cannot be written.
    #[error("the delay log {}: {error}", path.display())]
    Log {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel's trace cannot be written.
    #[error(
        "the kernel's trace: {}: {error} (as root, `mount -t tracefs nodev /sys/kernel/tracing` \
         puts it there, and programs need the right to write to it)", path.display()
    )]
    Trace {
        /// The file that cannot be opened.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The thread that writes logs cannot be started.
    #[error("the thread that writes the delay log: {0}")]
    Thread(io::Error),
    /// A variable of the environment has another form.
    #[error("{BREAK_US} is no whole number of microseconds above 0")]
    Environment,
}

impl Watch {
    /// What the environment asks for.
    pub fn from_environment() -> Result<Self, WatchError> {
        let trace = crate::environment::var_os(TRACE).is_some_and(|value| value == "1");
        let Some(text) = crate::environment::var_os(BREAK_US) else {
            return Ok(Self { trace, ..Self::default() });
        };
        let micros: Option<i64> = text.to_str().and_then(|text| text.parse().ok());
        let span = micros.filter(|us| *us > 0).and_then(|us| us.checked_mul(1_000));
        let break_at = Some(Span::from_ns(span.ok_or(WatchError::Environment)?));
        Ok(Self { trace, break_at, log: None })
    }
}

/// What is switched on for a program. When its last copy and the last of its ends are gone, all
/// that was logged is in the files.
#[derive(Clone, Debug, Default)]
pub struct Instruments {
    trace: Option<Arc<Trace>>,
    scribe: Option<Arc<Scribe>>,
    logs: bool,
}

impl Instruments {
    /// Switches on what is wanted. Network time is `base`'s and `epoch` nanoseconds.
    pub fn new(watch: &Watch, base: &Arc<Timebase>, epoch: i64) -> Result<Self, WatchError> {
        let mut trace = None;
        if watch.trace || watch.break_at.is_some() {
            trace = Some(Arc::new(Trace::open(watch.trace, watch.break_at)?));
        }
        Self::with_trace(watch, trace, base, epoch)
    }

    fn with_trace(
        watch: &Watch,
        trace: Option<Arc<Trace>>,
        base: &Arc<Timebase>,
        epoch: i64,
    ) -> Result<Self, WatchError> {
        let log = watch.log.as_deref();
        let files = log.map(|path| delay_log::Files::create(path, Arc::clone(base), epoch));
        let files = files.transpose()?;
        let logs = files.is_some();
        let mut scribe = None;
        if logs || watch.break_at.is_some() {
            let started = Scribe::start(files, trace.clone()).map_err(WatchError::Thread)?;
            scribe = Some(Arc::new(started));
        }
        Ok(Self { trace, scribe, logs })
    }

    /// What looks at the records of an end with messages of `size` octets; `None` when nothing is
    /// switched on.
    pub fn probe(&self, identity: &Identity, size: u32) -> Option<Box<Probe>> {
        let role = identity.role;
        let tap = self
            .scribe
            .as_ref()
            .filter(|_| self.logs)
            .map(|scribe| Scribe::tap(scribe, Stream { id: identity.stream_id, size, role }));
        let tracer = self.trace.as_ref().map(|t| Tracer::new(Arc::clone(t), &identity.channel));
        (tap.is_some() || tracer.is_some()).then(|| Box::new(Probe { role, tap, tracer }))
    }
}

/// What looks at the records of one end.
#[derive(Debug)]
pub struct Probe {
    role: Role,
    tap: Option<Tap>,
    tracer: Option<Tracer>,
}

impl Probe {
    /// Looks at a new record. Real-time: allocates nothing, does not block; at most three system
    /// calls, each a write to the kernel's trace.
    pub fn push(&mut self, record: &Record, counts: &mut SharedLog) {
        if let Some(tracer) = &mut self.tracer
            && tracer.push(record, self.role)
        {
            counts.broke();
        }
        if let Some(tap) = &mut self.tap
            && !tap.push(record)
        {
            counts.unrecorded();
        }
    }

    /// The last record has changed. Real-time: bounded.
    pub fn amend(&mut self, record: &Record) {
        if let Some(tap) = &mut self.tap {
            tap.amend(record);
        }
    }
}

/// From capture to the message's being there, for one that was received and is no copy.
fn latency(record: &Record, role: Role) -> Option<Span> {
    let received = role == Role::Listener && record.flags & flag::DUPLICATE == 0;
    Some(record.receive.filter(|_| received)? - record.capture?)
}

#[cfg(test)]
mod tests;
