//! What a listener endpoint can tell of its talker.

use crate::boundary::{Failure, entry, onbeat_status, value};
use crate::channel::onbeat_listener;
use crate::sized::give;
use library::{Liveness, Span, SyncedTime, condition};

/// A message of the channel's talker has come.
pub const ONBEAT_MATCHED: u32 = 1;
/// No message has come for longer than the endpoint's deadline.
pub const ONBEAT_DEADLINE_MISSED: u32 = 2;
/// The talker's clock, by its last message, or this host's is not known to be synchronised.
pub const ONBEAT_OUT_OF_SYNC: u32 = 4;
/// Only in `changed`: the talker was started again, or another one has taken its place.
pub const ONBEAT_RESTARTED: u32 = 8;
/// Only in `changed`: messages of a second talker were rejected; `onbeat stat` names it.
pub const ONBEAT_SECOND_TALKER: u32 = 16;

const _: () = assert!(
    ONBEAT_MATCHED == condition::MATCHED
        && ONBEAT_DEADLINE_MISSED == condition::DEADLINE_MISSED
        && ONBEAT_OUT_OF_SYNC == condition::OUT_OF_SYNC
        && ONBEAT_RESTARTED == condition::RESTARTED
        && ONBEAT_SECOND_TALKER == condition::SECOND_TALKER
);

/// What a listener endpoint knows of its talker, by the messages that were read. Later versions may
/// add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types)]
pub struct onbeat_liveness {
    /// What is so now: `ONBEAT_MATCHED` and the others, or-ed; later versions may set more.
    pub state: u32,
    /// What began or ended since the last call, perhaps both; of the same bits.
    pub changed: u32,
    /// How often no message came for longer than the deadline.
    pub deadline_missed: u64,
    /// How often the talker was started again or replaced.
    pub restarts: u64,
    /// Messages of a second talker, all rejected.
    pub second_talker: u64,
    /// When the last message came; INT64_MIN before the first.
    pub last_arrival_ns: i64,
}

impl From<Liveness> for onbeat_liveness {
    fn from(liveness: Liveness) -> Self {
        let Liveness { state, changed, deadline_missed, restarts, second_talker, last_arrival } =
            liveness;
        let last_arrival_ns = last_arrival.map_or(i64::MIN, SyncedTime::as_ns);
        Self { state, changed, deadline_missed, restarts, second_talker, last_arrival_ns }
    }
}

/// Sets the longest time between two messages at an endpoint; 0: any. It counts from now until the
/// next message, before `onbeat_start` from that. When it is missed, `onbeat_select` returns the
/// endpoint, once, also without a message to read; reads wait on. In a run an endpoint begins with
/// the `deadline_us` of its channel. Never blocks, allocates nothing.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_deadline(
    listener: *mut onbeat_listener,
    deadline_ns: i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener, "listener") }?;
        if deadline_ns < 0 {
            return Err(Failure::argument(format!(
                "`deadline_ns` is {deadline_ns}: give 0 or more"
            )));
        }
        let deadline = (deadline_ns > 0).then(|| Span::from_ns(deadline_ns));
        listener.end.set_deadline(deadline)?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Sets the age above which messages are not handed over at an endpoint, by this host's clock when
/// a call comes for them: they are counted as received and `expired`, and the call looks further.
/// 0: any age; else not less than the channel's fixed delay, until when a message is in time. In a
/// run an endpoint begins with the `lifespan_us` of its channel. Never blocks, allocates nothing.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_lifespan(
    listener: *mut onbeat_listener,
    lifespan_ns: i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener, "listener") }?;
        listener.end.io().inner().check_owner()?;
        let lifespan = (lifespan_ns != 0).then(|| Span::from_ns(lifespan_ns));
        listener.end.set_lifespan(lifespan).map_err(|least| {
            Failure::argument(format!(
                "`lifespan_ns` is {lifespan_ns}: give 0, or at least {}, the fixed delay",
                least.as_ns()
            ))
        })?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// What an endpoint knows of its talker; `out` may be NULL. A message counts once it is read.
/// `size` is `sizeof(struct onbeat_liveness)` by the header that the program was compiled with.
/// Never waits for a message, allocates nothing; one system call where a deadline is over.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `out` is NULL or valid for writing
/// `size` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_liveness(
    listener: *mut onbeat_listener,
    size: usize,
    out: *mut onbeat_liveness,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener, "listener") }?;
        let liveness = listener.context.0.liveness(&mut listener.end)?;
        // SAFETY: the caller's promise.
        unsafe { give(out, size, liveness.into()) };
        Ok(onbeat_status::OnbeatOk)
    })
}
