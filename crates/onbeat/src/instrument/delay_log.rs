//! The delay log: one line per message and end, in the columns of the first generation's library,
//! so that existing tools that read them keep working. docs/channels.md says what they mean.

use crate::instrument::WatchError;
use crate::interface::Timebase;
use onbeat_model::record::{Record, Role};
use onbeat_model::time::SyncedTime;
use onbeat_model::units::StreamId;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first line of the delay log.
pub const TIMES_COLUMNS: &str =
    "stream_id,sz,seqnr,avtp_ns,cap_ptp_ns,send_ptp_ns,tx_ns,rx_ns,recv_ptp_ns";
/// The first line of the log of timed waits.
pub const WAITS_COLUMNS: &str = "ptp_target,cpu_target,cpu_actual";

/// Where the log of timed waits is that belongs to a delay log.
pub fn waits_path(log: &Path) -> PathBuf {
    let mut path = OsString::from(log);
    path.push("_d");
    path.into()
}

/// Whose records they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    /// Octets of a message.
    pub(super) size: u32,
    pub(super) role: Role,
}

/// The two files.
#[derive(Debug)]
pub(super) struct Files {
    times: BufWriter<File>,
    waits: BufWriter<File>,
    path: PathBuf,
    base: Arc<Timebase>,
    epoch: i64,
}

impl Files {
    /// Begins both again.
    pub(super) fn create(path: &Path, base: Arc<Timebase>, epoch: i64) -> Result<Self, WatchError> {
        let begin = |path: &Path, columns: &str| {
            let begun = File::create(path).and_then(|file| {
                let mut file = BufWriter::new(file);
                writeln!(file, "{columns}")?;
                file.flush()?;
                Ok(file)
            });
            begun.map_err(|error| WatchError::Log { path: path.to_owned(), error })
        };
        let times = begin(path, TIMES_COLUMNS)?;
        let waits = begin(&waits_path(path), WAITS_COLUMNS)?;
        Ok(Self { times, waits, path: path.to_owned(), base, epoch })
    }

    /// The delay log's.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record.
    pub(super) fn write(&mut self, stream: Stream, record: &Record) -> io::Result<()> {
        times_line(&mut self.times, stream, record, self.epoch)?;
        if let (Some(target), Some(woke)) = (record.wake_target, record.wake) {
            let clock = self.base.clock().map_err(io::Error::other)?;
            let [due, actual] = [target, woke].map(|at| clock.tai(at).max(0));
            writeln!(self.waits, "{},{due},{actual}", absolute(Some(target), self.epoch))?;
        }
        Ok(())
    }

    /// Hands everything to the system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.times.flush()?;
        self.waits.flush()
    }
}

/// A reading as network time, 0 when there is none: these columns are numbers without a sign.
fn absolute(reading: Option<SyncedTime>, epoch: i64) -> i64 {
    reading.map_or(0, |at| at.as_ns().saturating_add(epoch).max(0))
}

/// Writes a line of the delay log.
pub(super) fn times_line(
    into: &mut impl Write,
    stream: Stream,
    record: &Record,
    epoch: i64,
) -> io::Result<()> {
    let at = |reading| absolute(reading, epoch);
    let (sent, arrived) = match stream.role {
        Role::Talker => (record.transfer.or(record.capture), None),
        Role::Listener => (None, record.transfer),
    };
    let (id, size, number) = (stream.id.0, stream.size, record.sequence as u8);
    let capture = at(record.capture);
    let timestamp = capture as u32;
    let (sent, arrived, received) = (at(sent), at(arrived), at(record.receive));
    writeln!(into, "{id},{size},{number},{timestamp},{capture},{sent},0,{arrived},{received}")
}
