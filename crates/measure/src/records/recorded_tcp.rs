//! Messages over TCP in a record file.

use super::{Error, Input};
use onbeat_model::tcp::{TcpMessage, TcpObserved};
use onbeat_model::time::SyncedTime;

/// The octets of a message, and the fewest of a flow.
const MESSAGE: usize = 4 * 8;
const FLOW_MIN: usize = 6 * 8 + 1 + 8;
/// Stands for an instant that was not.
const ABSENT: i64 = i64::MIN;

pub(super) fn put(put: &mut impl FnMut(&[u8]), flows: &[TcpObserved]) {
    put(&u32::try_from(flows.len()).expect("a system has fewer").to_le_bytes());
    for flow in flows {
        let TcpObserved { segments, retransmitted, timeouts, fast_retransmits, .. } = *flow;
        let counts = [
            flow.unrecorded,
            segments,
            retransmitted,
            timeouts,
            fast_retransmits,
            flow.acknowledgements,
        ];
        counts.iter().for_each(|count| put(&count.to_le_bytes()));
        put(&[u8::from(flow.failed)]);
        put(&(flow.messages.len() as u64).to_le_bytes());
        for message in &flow.messages {
            let instant = |at: Option<SyncedTime>| at.map_or(ABSENT, SyncedTime::as_ns);
            let TcpMessage { tag, capture, receive, handled } = *message;
            let times = [tag.as_ns(), capture.as_ns(), instant(receive), instant(handled)];
            times.iter().for_each(|ns| put(&ns.to_le_bytes()));
        }
    }
}

impl Input<'_> {
    pub(super) fn tcp(&mut self, may_be_none: bool) -> Result<Vec<TcpObserved>, Error> {
        let count = self.u32()?;
        let count = self.count(count.into(), FLOW_MIN)?;
        // Without any, the file would be of a version before.
        if count == 0 && !may_be_none {
            return Err(Error::Value("the number of TCP flows"));
        }
        (0..count).map(|_| self.flow()).collect()
    }

    fn flow(&mut self) -> Result<TcpObserved, Error> {
        // Fields are read in the order of the file.
        let mut flow = TcpObserved {
            unrecorded: self.u64()?,
            segments: self.u64()?,
            retransmitted: self.u64()?,
            timeouts: self.u64()?,
            fast_retransmits: self.u64()?,
            acknowledgements: self.u64()?,
            failed: self.flag("a TCP flow")?,
            messages: Vec::new(),
        };
        let count = self.u64()?;
        let count = self.count(count, MESSAGE)?;
        flow.messages = (0..count).map(|_| self.message()).collect::<Result<_, _>>()?;
        Ok(flow)
    }

    fn message(&mut self) -> Result<TcpMessage, Error> {
        let instant = |ns: i64| (ns != ABSENT).then(|| SyncedTime::from_ns(ns));
        Ok(TcpMessage {
            tag: SyncedTime::from_ns(self.i64()?),
            capture: SyncedTime::from_ns(self.i64()?),
            receive: instant(self.i64()?),
            handled: instant(self.i64()?),
        })
    }
}
