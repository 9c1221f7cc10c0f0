//! How long listeners had no message, where the description says how long they put up with that.

use crate::join::JoinedListener;
use crate::result::Silence;
use onbeat_model::record::{Ending, Record, RunLog, flag};
use onbeat_model::time::{Span, SyncedTime};

/// By the listener's clock: the arrivals of its messages, from the run's start to the end of what
/// talkers may write. A message exactly at the deadline is in time.
pub(crate) fn of_listener(
    log: &RunLog,
    listener: &JoinedListener<'_>,
    deadline: Option<Span>,
) -> Option<Silence> {
    let deadline = deadline?;
    listener.received()?;
    let arrival = |record: &Record| Some(record.transfer?.min(record.receive?));
    let messages = listener.end.records.iter().filter(|r| r.flags & flag::DUPLICATE == 0);
    let arrivals = messages.filter_map(arrival);
    let over = SyncedTime::ZERO + log.duration;
    let over = match &log.ending {
        Ending::Complete => over,
        Ending::Early { at, .. } => over.min(SyncedTime::from_ns(at.as_ns())),
    };
    let (mut missed, mut longest, mut from) = (0, Span::ZERO, SyncedTime::ZERO);
    let mut last = SyncedTime::ZERO;
    for arrival in arrivals.chain([over]) {
        let silent = arrival - last;
        missed += u64::from(silent > deadline);
        if silent > longest {
            (longest, from) = (silent, last);
        }
        last = last.max(arrival);
    }
    Some(Silence {
        deadline_ns: deadline.as_ns(),
        missed,
        longest_ns: longest.as_ns(),
        longest_from_ns: from.as_ns(),
    })
}

/// What a channel's verdict adds of listeners that missed their deadline.
pub(crate) fn said(host: &str, silence: &Silence) -> Option<String> {
    let Silence { deadline_ns, missed, longest_ns, longest_from_ns } = *silence;
    let [deadline, longest, from] = [deadline_ns, longest_ns, longest_from_ns].map(Span::from_ns);
    let times = if missed == 1 { "once".to_owned() } else { format!("{missed} times") };
    (missed > 0).then(|| {
        format!(
            "; `{host}` had no message within its deadline of {deadline} {times}, for {longest} at \
             most, from {from} on"
        )
    })
}
