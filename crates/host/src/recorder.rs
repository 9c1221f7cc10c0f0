//! Where a channel end's records and counts go.

use crate::shared_log::SharedLog;
use onbeat_model::record::Record;
use onbeat_runtime::port::{Log, Reason};

/// A channel end's records and counts.
#[derive(Debug)]
pub struct Recorder {
    shared: SharedLog,
}

impl Recorder {
    /// Records into shared memory.
    pub fn new(shared: SharedLog) -> Self {
        Self { shared }
    }

    /// The memory.
    pub fn shared(&self) -> &SharedLog {
        &self.shared
    }
}

impl Log for Recorder {
    fn push(&mut self, record: &Record) {
        self.shared.push(record);
    }

    fn amend(&mut self, record: &Record) {
        self.shared.amend(record);
    }

    fn reject(&mut self, reason: Reason) {
        self.shared.reject(reason);
    }

    fn rate_exceeded(&mut self) {
        self.shared.rate_exceeded();
    }
}
