//! Channel ends.

use crate::boundary::{
    Failure, close, entry, entry_to, onbeat_status, quick_entry, shared, store, text, value, wanted,
};
use crate::context::onbeat;
use crate::reservation::onbeat_reservation;
use crate::sized::{self, first, onbeat_listener_counters_sized, onbeat_talker_counters_sized};
use library::context::{ANY_SIZE, Listener, Talker};
use library::coordinator::client::SetupError;
use library::interface::MAX_SELECT;
use library::shared_log::Counters;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_runtime::channel::{MessageInfo, Written};
use onbeat_runtime::channel_io::{Reason, Timeout};
use onbeat_runtime::meeting::rendezvous;
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;

/// The talker endpoint of a channel. Used by one thread at a time.
#[allow(non_camel_case_types)]
pub struct onbeat_talker {
    end: Talker,
}

/// A listener endpoint of a channel. Used by one thread at a time.
#[allow(non_camel_case_types)]
pub struct onbeat_listener {
    pub(crate) end: Listener,
    pub(crate) context: onbeat,
    /// Takes the message until it is known to be one: C's memory changes only then.
    message: Box<[u8]>,
    /// What was known of the last message.
    last: Option<onbeat_message>,
}

impl onbeat_talker {
    /// What has happened so far.
    pub(crate) fn counters(&self) -> Result<onbeat_counters, Failure> {
        self.end.io().inner().check_owner()?;
        Ok(self.end.log().shared().counters().into())
    }

    /// How its stream stands.
    pub(crate) fn reservation(&self) -> Result<onbeat_reservation, Failure> {
        let io = self.end.io().inner();
        io.check_owner()?;
        Ok(io.reservation().into())
    }
}

impl onbeat_listener {
    /// What has happened so far.
    pub(crate) fn counters(&self) -> Result<onbeat_counters, Failure> {
        self.end.io().inner().check_owner()?;
        Ok(self.end.log().shared().counters().into())
    }

    /// How its stream stands.
    pub(crate) fn reservation(&self) -> Result<onbeat_reservation, Failure> {
        let io = self.end.io().inner();
        io.check_owner()?;
        Ok(io.reservation().into())
    }

    /// What was known of the last message that was handed over.
    pub(crate) fn last(&self) -> Result<Option<onbeat_message>, Failure> {
        self.end.io().inner().check_owner()?;
        Ok(self.last)
    }

    /// Hands over the message that has been taken, and what is known of it.
    ///
    /// # Safety
    /// `message` is valid for writing the channel's size; `info` is NULL or valid for writing.
    unsafe fn hand_over(
        &mut self,
        message: *mut c_void,
        info: *mut onbeat_message,
        got: MessageInfo,
    ) {
        let size = self.end.listener().parameters().size.get() as usize;
        let got = got.into();
        self.last = Some(got);
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(self.message.as_ptr(), message.cast(), size);
            sized::give(info, first::MESSAGE, got);
        }
    }
}

/// Metadata of a received message. Later versions may add fields at the end of the structure, which
/// only `onbeat_listener_message` fills.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types)]
pub struct onbeat_message {
    /// Capture time of the value, by the talker's clock.
    pub capture_ns: i64,
    /// Receipt minus capture. A program that waits, in a read or in `onbeat_select`, receives what
    /// has come by then when it continues. What came while it did not wait, it received when it
    /// could first have been read. One that has taken the descriptor receives when a call hands
    /// over.
    pub latency_ns: i64,
    /// When the frame was at this host's port; on an interface without `ONBEAT_TIMESTAMPS`, when
    /// it was read.
    pub arrived_ns: i64,
    /// Now minus capture, at the return of the call that hands it over.
    pub age_ns: i64,
    /// After `onbeat_read_wait`: target minus wake-up; negative when it woke after the target.
    pub wakeup_error_ns: i64,
    /// Number of the message, from 0.
    pub sequence: u64,
    /// Messages lost between the one before and this one.
    pub gap: u32,
    /// `ONBEAT_LATE`, `ONBEAT_UNCERTAIN` and `ONBEAT_REPEATED`; later versions may set more.
    pub flags: u32,
}

/// The message came later than capture + D.
pub const ONBEAT_LATE: u32 = 1;
/// The talker's clock was not synchronised.
pub const ONBEAT_UNCERTAIN: u32 = 4;
/// The last message again, not a new one.
pub const ONBEAT_REPEATED: u32 = 64;

/// Counters of a channel endpoint. Later versions may add counters at the end of the structure,
/// which only calls that take its size fill.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types)]
pub struct onbeat_counters {
    /// Messages written.
    pub sent: u64,
    /// Messages received, each once: read, skipped by `onbeat_read_latest`, or expired.
    pub received: u64,
    /// Messages missing by sequence number.
    pub lost: u64,
    /// Messages that came after capture + D.
    pub late: u64,
    /// Copies of earlier messages.
    pub duplicate: u64,
    /// Writes that the declared rate did not allow at once.
    pub rate_exceeded: u64,
    /// Frames that were truncated, of another type, version or length.
    pub rejected_shape: u64,
    /// Frames of another stream, or to another address.
    pub rejected_stream: u64,
    /// Frames whose message has another size.
    pub rejected_size: u64,
    /// Messages of a second talker; `onbeat stat` names it.
    pub rejected_talker: u64,
    /// Messages with a capture time later than the clocks allow.
    pub rejected_future: u64,
    /// Messages whose CRC does not fit.
    pub rejected_damaged: u64,
    /// Messages whose tag does not fit: of somebody without the key, or repeated after 4 s.
    pub rejected_not_authentic: u64,
    /// Messages that name a key which this end does not have.
    pub rejected_unknown_key: u64,
    /// Authentic messages that were repeated.
    pub rejected_replayed: u64,
    /// Authentic messages of before this end was opened, or of an earlier start of the talker.
    pub rejected_stale: u64,
    /// Of the received messages, those that were older than the endpoint's lifespan and not handed
    /// over.
    pub expired: u64,
}

impl From<Counters> for onbeat_counters {
    fn from(counted: Counters) -> Self {
        let Counters { sent, received, lost, late, duplicate, rate_exceeded, .. } = counted;
        let Counters { expired, .. } = counted;
        let rejected = |reason: Reason| counted.rejected[reason as usize];
        Self {
            sent,
            received,
            lost,
            late,
            duplicate,
            rate_exceeded,
            rejected_shape: rejected(Reason::Shape),
            rejected_stream: rejected(Reason::Stream),
            rejected_size: rejected(Reason::Size),
            rejected_talker: rejected(Reason::Talker),
            rejected_future: rejected(Reason::Future),
            rejected_damaged: rejected(Reason::Damaged),
            rejected_not_authentic: rejected(Reason::NotAuthentic),
            rejected_unknown_key: rejected(Reason::UnknownKey),
            rejected_replayed: rejected(Reason::Replayed),
            rejected_stale: rejected(Reason::Stale),
            expired,
        }
    }
}

impl From<MessageInfo> for onbeat_message {
    fn from(info: MessageInfo) -> Self {
        Self {
            capture_ns: info.capture.as_ns(),
            latency_ns: info.latency.as_ns(),
            arrived_ns: info.arrived.as_ns(),
            age_ns: info.age.as_ns(),
            wakeup_error_ns: info.wakeup_error.as_ns(),
            sequence: info.sequence,
            gap: info.gap,
            flags: info.flags & (ONBEAT_LATE | ONBEAT_UNCERTAIN | ONBEAT_REPEATED),
        }
    }
}

/// A channel's name and its message size from C.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero octet.
unsafe fn named<'a>(name: *const c_char, size: usize) -> Result<(&'a str, Octets), Failure> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "name") }?;
    // A size that does not fit is no channel's size; the run says so. No program asks for any
    // size: its variables have one.
    let size = u32::try_from(size).unwrap_or(u32::MAX).min(ANY_SIZE.get() - 1);
    Ok((name, Octets::new(size)))
}

/// The `size` octets at `message`.
///
/// # Safety
/// `message` is NULL or valid for reading `size` octets.
unsafe fn octets<'a>(message: *const c_void, size: Octets) -> Result<&'a [u8], Failure> {
    wanted(message, "message")?;
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(message.cast(), size.get() as usize) })
}

/// Opens the talker endpoint of the channel `name`, or of that whose stream's number is behind a
/// `#`, such as `#42`, in decimal digits; the program expects messages of `size`
/// octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `name` is NULL or ends with a zero octet; `out`
/// is NULL or valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_open(
    context: *mut onbeat,
    name: *const c_char,
    size: usize,
    out: *mut *mut onbeat_talker,
) -> onbeat_status {
    let made = || {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        // SAFETY: the caller's promise.
        let (name, size) = unsafe { named(name, size) }?;
        wanted(out, "out")?;
        let end = context.0.open_talker(name, size)?;
        // SAFETY: the caller's promise.
        unsafe { store(out, Box::into_raw(Box::new(onbeat_talker { end }))) };
        Ok(onbeat_status::OnbeatOk)
    };
    // SAFETY: the caller's promise.
    unsafe { entry_to(out, made) }
}

/// Closes a talker endpoint and frees it. NULL is allowed.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_close(talker: *mut onbeat_talker) {
    // SAFETY: the caller's promise; it was made by `Box::into_raw`.
    unsafe { close(talker) }
}

/// Sends the message at `message`. Blocks only while the channel's declared rate is exceeded and,
/// with `ONBEAT_RESERVE`, while bandwidth is reserved for no listener. `ONBEAT_LINK_DOWN`, of all
/// calls that write: the interface is down or not there, the message counts as not written, and the
/// rate holds as if it were. `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`; `message` is NULL or valid for reading the
/// channel's size; `capture_ns` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_write(
    talker: *mut onbeat_talker,
    message: *const c_void,
    capture_ns: *mut i64,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let capture = talker.end.write(message)?;
        // SAFETY: the caller's promise.
        unsafe { store(capture_ns, capture.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Like `onbeat_write`, but returns `ONBEAT_RATE_EXCEEDED` instead of blocking; `capture_ns` then
/// gets the instant until which `onbeat_write` would wait. May return `ONBEAT_NOT_RESERVED`.
///
/// # Safety
/// As for `onbeat_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_try_write(
    talker: *mut onbeat_talker,
    message: *const c_void,
    capture_ns: *mut i64,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let (at, status) = match talker.end.try_write(message)? {
            Written::NotReserved => return Ok(onbeat_status::OnbeatNotReserved),
            Written::Sent { capture } => (capture, onbeat_status::OnbeatOk),
            Written::RateExceeded { until } => (until, onbeat_status::OnbeatRateExceeded),
        };
        // SAFETY: the caller's promise.
        unsafe { store(capture_ns, at.as_ns()) };
        Ok(status)
    })
}

/// Sends the `count` messages at `messages`, which follow each other without a gap, as that many
/// `onbeat_write` would, with a system call for up to 16 of them: waits while the declared rate
/// holds one, and ends at the first that is not sent, with what `onbeat_write` returns of that.
/// `written`, if not NULL, gets how many were sent, `capture_ns`, if not NULL, their capture times:
/// those of one system call follow each other by a nanosecond. Where a message is handed over
/// otherwise, as in virtual time, it is a loop. Allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`; `messages` is NULL or valid for reading
/// `count` times the channel's size; `written` is NULL or valid for writing; `capture_ns` is NULL
/// or valid for writing `count` times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_write_many(
    talker: *mut onbeat_talker,
    messages: *const c_void,
    count: usize,
    written: *mut usize,
    capture_ns: *mut i64,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { write_many(talker, messages, count, true, written, capture_ns) }
}

/// Like `onbeat_write_many`, but as that many `onbeat_try_write`: ends at the first message that
/// would have to wait, with `ONBEAT_RATE_EXCEEDED`; the capture time behind those of the messages
/// that were sent is then the instant until which `onbeat_write` would wait. May return
/// `ONBEAT_NOT_RESERVED`.
///
/// # Safety
/// As for `onbeat_write_many`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_try_write_many(
    talker: *mut onbeat_talker,
    messages: *const c_void,
    count: usize,
    written: *mut usize,
    capture_ns: *mut i64,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { write_many(talker, messages, count, false, written, capture_ns) }
}

/// # Safety
/// As for `onbeat_write_many`.
unsafe fn write_many(
    talker: *mut onbeat_talker,
    messages: *const c_void,
    count: usize,
    waits: bool,
    written: *mut usize,
    capture_ns: *mut i64,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        unsafe { store(written, 0) };
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        wanted(messages, "messages")?;
        let size = talker.end.talker().parameters().size.get();
        let octets_in_all = u32::try_from(count).ok().and_then(|count| count.checked_mul(size));
        let Some(octets_in_all) = octets_in_all.filter(|octets| *octets > 0) else {
            return Err(Failure::argument(format!("`count` is {count}: no array has that many")));
        };
        // SAFETY: the caller's promise.
        let messages = unsafe { octets(messages, Octets::new(octets_in_all)) }?;
        let captured = |at: usize, capture: SyncedTime| {
            if !capture_ns.is_null() {
                // SAFETY: the caller's promise: there is one place for each message.
                unsafe { capture_ns.add(at).write(capture.as_ns()) };
            }
        };
        let sent = match waits {
            true => talker.end.write_many(messages, captured),
            false => talker.end.try_write_many(messages, captured),
        };
        // SAFETY: the caller's promise.
        unsafe { store(written, sent.count) };
        Ok(match sent.outcome? {
            Written::Sent { .. } => onbeat_status::OnbeatOk,
            Written::NotReserved => onbeat_status::OnbeatNotReserved,
            Written::RateExceeded { until } => {
                // It is of a message that was not sent: there is a place for it.
                captured(sent.count, until);
                onbeat_status::OnbeatRateExceeded
            }
        })
    })
}

/// Sends the message, then waits until its capture time + D, the instant at which the readers that
/// wait with `onbeat_read_wait` continue as well. `capture_ns` and `wakeup_error_ns`, if not NULL,
/// get the capture time, and target minus wake-up: negative when it woke after the target.
/// Allocates nothing.
///
/// # Safety
/// As for `onbeat_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_write_wait(
    talker: *mut onbeat_talker,
    message: *const c_void,
    capture_ns: *mut i64,
    wakeup_error_ns: *mut i64,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let waited = talker.end.write_wait(message)?;
        // SAFETY: the caller's promise.
        unsafe {
            store(capture_ns, waited.capture.as_ns());
            store(wakeup_error_ns, waited.wakeup_error.as_ns());
        }
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Sends the message so that it is captured and leaves at `at_ns`: launched by the kernel where the
/// interface has such a queueing discipline and `ONBEAT_LAUNCH_TIME` asks for it, else after
/// sleeping until then; later when the declared rate asks for it, now when `at_ns` has passed.
/// `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
///
/// # Safety
/// As for `onbeat_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_write_at(
    talker: *mut onbeat_talker,
    message: *const c_void,
    at_ns: i64,
    capture_ns: *mut i64,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let capture = talker.end.write_at(message, SyncedTime::from_ns(at_ns))?;
        // SAFETY: the caller's promise.
        unsafe { store(capture_ns, capture.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// From now on calls that wait at this endpoint return `ONBEAT_TIMED_OUT` when this host's copy of
/// the network clock reads `until_ns`; `INT64_MAX` is without a limit. A message that was written
/// before stays written, and `onbeat_write_at` waits for its instant all the same. Never blocks,
/// allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_limit(
    talker: *mut onbeat_talker,
    until_ns: i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker, "talker") }?;
        talker.end.io().inner().check_owner()?;
        talker.end.io_mut().limit(SyncedTime::from_ns(until_ns));
        Ok(onbeat_status::OnbeatOk)
    })
}

/// The same for a listener endpoint. A message that was taken before stays taken.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_limit(
    listener: *mut onbeat_listener,
    until_ns: i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener, "listener") }?;
        listener.end.io().inner().check_owner()?;
        listener.end.io_mut().limit(SyncedTime::from_ns(until_ns));
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Counters of a talker endpoint, those of version 0.1: `onbeat_talker_counters_sized` gives all.
/// Never blocks, allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`; `out` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_counters(
    talker: *const onbeat_talker,
    out: *mut onbeat_counters,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { onbeat_talker_counters_sized(talker, first::COUNTERS, out) }
}

/// The same for a listener endpoint: `onbeat_listener_counters_sized` gives all.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `out` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_counters(
    listener: *const onbeat_listener,
    out: *mut onbeat_counters,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { onbeat_listener_counters_sized(listener, first::COUNTERS, out) }
}

/// Meets the program at the other end of two channels in opposite directions: sends `message` on
/// one, reads the other's into `received`, and continues at the later of the two capture times + D
/// (the longer one), which is the same instant of network time on both sides. `info`, if not NULL,
/// gets what is known of the received message; its `wakeup_error_ns` is that of this meeting.
/// `ONBEAT_LATE` is among its flags when the other side has continued already because a message was
/// lost. Ends at the earlier limit of both ends with `ONBEAT_TIMED_OUT`. Channels whose messages
/// are longer than a frame, and two ends of one channel, are refused with `ONBEAT_E_ARGUMENT`.
/// Allocates nothing.
///
/// # Safety
/// As for `onbeat_write` and `onbeat_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_rendezvous(
    talker: *mut onbeat_talker,
    message: *const c_void,
    listener: *mut onbeat_listener,
    received: *mut c_void,
    info: *mut onbeat_message,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let (talker, listener) =
            unsafe { (value(talker, "talker")?, value(listener, "listener")?) };
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        wanted(received, "received")?;
        let size = listener.end.listener().parameters().size.get() as usize;
        let value = &mut listener.message[..size];
        let got = rendezvous(&mut talker.end, message, &mut listener.end, value)?;
        // SAFETY: the caller's promise; `received` is not NULL and has the channel's size.
        unsafe { listener.hand_over(received, info, got) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Waits until one of `count` listener endpoints has something to read, at most `timeout_ns`, or
/// for ever if that is negative; `index` gets the position of the first that has.
/// `ONBEAT_TIMED_OUT` when none had in time. At most 256 ends in a run in virtual time, else 1024.
/// An end that has missed its deadline counts as well, once, though there is nothing to read. What
/// was there may turn out to be a frame that is not given to programs: read it with
/// `onbeat_try_read`. Allocates nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open` or `onbeat_open_interface`; `listeners` is NULL or
/// an array of `count` pointers, each NULL or from `onbeat_listener_open` of that context; `index`
/// is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_select(
    context: *mut onbeat,
    listeners: *const *const onbeat_listener,
    count: usize,
    timeout_ns: i64,
    index: *mut usize,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let context = &unsafe { shared(context, "context") }?.0;
        wanted(listeners, "listeners")?;
        if count == 0 {
            return Err(Failure::argument("`count` is 0: there is nothing to wait for"));
        }
        let most = context.max_select()?;
        if count > most {
            return Err(Failure::argument(format!("`count` is {count}, more than {most}")));
        }
        let mut ends = arrayvec::ArrayVec::<&Listener, MAX_SELECT>::new();
        for at in 0..count {
            // SAFETY: the caller's promise: there are `count` of them.
            let listener = unsafe { (*listeners.add(at)).as_ref() };
            let null = || Failure::null(&format!("listeners[{at}]"));
            ends.push(&listener.ok_or_else(null)?.end);
        }
        let patience = if timeout_ns < 0 {
            Timeout::Endless
        } else {
            let now = context.now()?.local.as_ns();
            Timeout::Until(SyncedTime::from_ns(now.saturating_add(timeout_ns)))
        };
        let Some(found) = context.select(&ends, patience)? else {
            return Ok(onbeat_status::OnbeatTimedOut);
        };
        // SAFETY: the caller's promise.
        unsafe { store(index, found) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// A file descriptor that is readable (POLLIN) when there may be a message, for event loops; read
/// with `onbeat_try_read` until it says `ONBEAT_EMPTY`. From now on the end's messages are received
/// when a call hands them over. It belongs to the listener: do not close or read it.
/// `ONBEAT_E_REFUSED` in virtual time, which passes only in calls of this library: use
/// `onbeat_select`.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `descriptor` is NULL or valid for
/// writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_descriptor(
    listener: *const onbeat_listener,
    descriptor: *mut c_int,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { shared(listener, "listener") }?;
        let io = listener.end.io().inner();
        io.check_owner()?;
        let Some(found) = io.descriptor() else {
            return Err(Failure::Setup(SetupError::Refused(
                "virtual time passes only in calls of this library: use onbeat_select".to_owned(),
            )));
        };
        listener.end.watch();
        // SAFETY: the caller's promise.
        unsafe { store(descriptor, found.as_raw_fd()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Opens a listener endpoint of the channel `name`, or of that whose stream's number is behind a
/// `#`, such as `#42`, in decimal digits; the program expects messages of `size`
/// octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
///
/// # Safety
/// As for `onbeat_talker_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_open(
    context: *mut onbeat,
    name: *const c_char,
    size: usize,
    out: *mut *mut onbeat_listener,
) -> onbeat_status {
    let made = || {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        // SAFETY: the caller's promise.
        let (name, size) = unsafe { named(name, size) }?;
        wanted(out, "out")?;
        let end = context.0.open_listener(name, size)?;
        let context = onbeat(context.0.clone());
        let size = end.listener().parameters().size.get() as usize;
        let message = vec![u8::MAX; size].into_boxed_slice();
        let listener = onbeat_listener { end, context, message, last: None };
        // SAFETY: the caller's promise.
        unsafe { store(out, Box::into_raw(Box::new(listener))) };
        Ok(onbeat_status::OnbeatOk)
    };
    // SAFETY: the caller's promise.
    unsafe { entry_to(out, made) }
}

/// Closes a listener endpoint and frees it. NULL is allowed.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_close(listener: *mut onbeat_listener) {
    // SAFETY: the caller's promise; it was made by `Box::into_raw`.
    unsafe { close(listener) }
}

/// Waits for a message. `info`, if not NULL, gets its metadata. Allocates nothing.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `message` is NULL or valid for writing
/// the channel's size; `info` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_read(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    info: *mut onbeat_message,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe {
        read(listener, message, info, Wait::For(Timeout::Endless), onbeat_status::OnbeatEmpty)
    }
}

/// Waits for a message, then until its capture time + D, the instant at which the talker that
/// waits with `onbeat_write_wait` continues as well. At once when that has passed: the message is
/// late. Allocates nothing.
///
/// # Safety
/// As for `onbeat_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_read_wait(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    info: *mut onbeat_message,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { read(listener, message, info, Wait::UntilCapturePlusD, onbeat_status::OnbeatEmpty) }
}

/// Takes a message if there is one, else returns `ONBEAT_EMPTY` and leaves `message` as it is. In a
/// run on the emulated network at most 1024 wait: when one more comes the oldest is lost. Never
/// blocks, allocates nothing.
///
/// # Safety
/// As for `onbeat_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_try_read(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    info: *mut onbeat_message,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { read(listener, message, info, Wait::For(Timeout::None), onbeat_status::OnbeatEmpty) }
}

/// Takes the newest message there is, and drops those before it, so that a reader which has fallen
/// behind has caught up at once. When there is no new one, gives the last one again, with
/// `ONBEAT_REPEATED`; `ONBEAT_EMPTY` when there never was one. `info`'s `age_ns` says how old it
/// is. Never blocks, allocates nothing.
///
/// # Safety
/// As for `onbeat_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_read_latest(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    info: *mut onbeat_message,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { read(listener, message, info, Wait::Latest, onbeat_status::OnbeatEmpty) }
}

/// Waits for a message for at most `timeout_ns`; returns `ONBEAT_TIMED_OUT` when none came.
/// Allocates nothing.
///
/// # Safety
/// As for `onbeat_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_read_timeout(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    timeout_ns: i64,
    info: *mut onbeat_message,
) -> onbeat_status {
    let wait = Wait::ForAtMost(Span::from_ns(timeout_ns));
    // SAFETY: the caller's promise.
    unsafe { read(listener, message, info, wait, onbeat_status::OnbeatTimedOut) }
}

/// How a read waits.
enum Wait {
    For(Timeout),
    ForAtMost(Span),
    UntilCapturePlusD,
    Latest,
}

/// # Safety
/// As for `onbeat_read`.
unsafe fn read(
    listener: *mut onbeat_listener,
    message: *mut c_void,
    info: *mut onbeat_message,
    wait: Wait,
    none: onbeat_status,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener, "listener") }?;
        wanted(message, "message")?;
        let size = listener.end.listener().parameters().size.get() as usize;
        let value = &mut listener.message[..size];
        let got = match wait {
            Wait::UntilCapturePlusD => Some(listener.end.read_wait(value)?),
            Wait::Latest => listener.end.read_latest(value)?,
            Wait::For(patience) => listener.end.read(value, patience)?,
            Wait::ForAtMost(span) => {
                let now = listener.context.0.now()?.local.as_ns();
                let until = SyncedTime::from_ns(now.saturating_add(span.as_ns().max(0)));
                listener.end.read(value, Timeout::Until(until))?
            }
        };
        let Some(got) = got else { return Ok(none) };
        // SAFETY: the caller's promise; `message` is not NULL and has the channel's size.
        unsafe { listener.hand_over(message, info, got) };
        Ok(onbeat_status::OnbeatOk)
    })
}
