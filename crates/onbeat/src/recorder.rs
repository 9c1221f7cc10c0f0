//! Where a channel end's records and counts go.

use crate::instrument::Probe;
use crate::shared_log::SharedLog;
use onbeat_model::record::Record;
use onbeat_runtime::channel_io::{Log, Reason, Source, TransmitStamp};

/// A channel end's records and counts. Without a [`Probe`], which is all that can be switched on
/// for an end, each record costs the comparison of one pointer with nothing.
#[derive(Debug)]
pub struct Recorder {
    shared: SharedLog,
    probe: Option<Box<Probe>>,
    /// Says at its end what a run would.
    tells: bool,
}

impl Recorder {
    /// Records into shared memory.
    pub fn new(shared: SharedLog) -> Self {
        Self { shared, probe: None, tells: false }
    }

    /// The same, and looks at each record with `probe`.
    pub fn with(shared: SharedLog, probe: Option<Box<Probe>>) -> Self {
        Self { shared, probe, tells: false }
    }

    /// The same for an end without a run: when it is closed, it says on standard error if the
    /// channel had another talker.
    pub(crate) fn telling(mut self) -> Self {
        self.tells = true;
        self
    }

    /// The memory.
    pub fn shared(&self) -> &SharedLog {
        &self.shared
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let others = self.shared.counters().rejected[Reason::Talker as usize];
        if self.tells && others > 0 {
            let channel = self.shared.identity().channel;
            let from = self.shared.last_other_talker();
            let from = from.map_or("an unknown address".to_owned(), |from| from.to_string());
            eprintln!(
                "onbeat: channel `{channel}` has another talker, {from}: {others} of its messages \
                 were dropped"
            );
        }
    }
}

impl Log for Recorder {
    #[inline]
    fn push(&mut self, record: &Record) {
        self.shared.push(record);
        if let Some(probe) = &mut self.probe {
            probe.push(record, &mut self.shared);
        }
    }

    fn amend(&mut self, record: &Record) {
        self.shared.amend(record);
        if let Some(probe) = &mut self.probe {
            probe.amend(record);
        }
    }

    fn transmitted(&mut self, stamp: &TransmitStamp) {
        self.shared.transmitted(stamp);
    }

    fn reject(&mut self, reason: Reason, count: u64) {
        self.shared.reject(reason, count);
    }

    fn other_talker(&mut self, from: &Source) {
        self.shared.other_talker(from);
    }

    fn rate_exceeded(&mut self) {
        self.shared.rate_exceeded();
    }
}
