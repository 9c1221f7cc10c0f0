//! What the ends record, told while the run continues: what has been told survives this process.

use crate::coordinator::session::{Owner, Session};
use crate::coordinator::table::EndpointId;
use onbeat::clock::MonoTime;
use onbeat_model::record::{Ending, EndpointLog, Record, Role};
use onbeat_model::system::ChannelId;
use onbeat_model::time::Span;

/// How often it is told.
const AGAIN: Span = Span::from_s(1);

/// How much has been told.
#[derive(Debug, Default)]
pub(super) struct Told {
    at: Option<MonoTime>,
    /// Per channel and end: how many records.
    counts: Vec<Vec<usize>>,
}

impl Session<'_> {
    /// Tells what has been recorded since, if it is time to.
    pub(super) fn tell_recorded(&mut self) {
        let now = MonoTime::now();
        if self.options.recorded.is_none() || self.told.at.is_some_and(|at| now - at < AGAIN) {
            return;
        }
        self.told.at = Some(now);
        self.told.counts.resize_with(self.owners.len(), Vec::new);
        let mut ends = Vec::new();
        for channel in 0..self.owners.len() {
            let owners = self.owners[channel].len();
            self.told.counts[channel].resize(owners, 0);
            ends.extend((0..owners).map(|place| self.end_since(channel, place)));
        }
        let reason = "it was cut off; this is its recording until then".to_owned();
        let log = self.log(ends, Ending::Early { at: self.engine.now(), reason });
        if let Some(tell) = &mut self.options.recorded {
            tell(&log);
        }
    }

    /// What was recorded after so many records at an end and, before it was opened this time, at
    /// the same one.
    fn recorded_from(&self, end: EndpointId, from: usize) -> Vec<Record> {
        let end = &self.endpoints[end];
        let Some(before) = end.before else { return end.log.records_from(from) };
        let mut records = self.recorded_from(before, 0);
        records.extend(end.log.records());
        records.split_off(from.min(records.len()))
    }

    /// An end's records since the last time, but the very last one, which may still be amended.
    fn end_since(&mut self, channel: usize, place: usize) -> EndpointLog {
        let id = ChannelId(channel as u32);
        let declared = self.system.channel(id);
        let (role, node) = match place {
            0 => (Role::Talker, declared.talker),
            n => (Role::Listener, declared.listeners[n - 1]),
        };
        let from = self.told.counts[channel][place];
        let since = |records: &[Record]| records.get(from..).unwrap_or_default().to_vec();
        let mut records = match &self.owners[channel][place] {
            Owner::Nobody(_) | Owner::Elsewhere => Vec::new(),
            Owner::Talker(synthetic) => since(&synthetic.records),
            Owner::Listener(synthetic) => since(&synthetic.records),
            Owner::OnKernel(endpoint) => endpoint.recorded().records_from(from),
            Owner::Program(end) => self.recorded_from(*end, from),
        };
        records.pop();
        self.told.counts[channel][place] += records.len();
        EndpointLog { channel: id, role, node, records, unrecorded: 0, malformed: 0 }
    }
}
