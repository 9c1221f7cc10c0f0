//! Channel ends.

use crate::boundary::{Failure, entry, onbeat_status, shared, store, value};
use crate::context::onbeat;
use onbeat_host::context::{Listener, Talker};
use onbeat_model::time::{LocalTime, Span};
use onbeat_model::units::{Octets, frame};
use onbeat_runtime::channel::{MessageInfo, Written};
use onbeat_runtime::port::Patience;
use std::ffi::{CStr, c_char, c_void};

/// The writing end of a channel. Used by one thread at a time.
#[allow(non_camel_case_types)]
pub struct onbeat_talker {
    end: Talker,
}

/// A reading end of a channel. Used by one thread at a time.
#[allow(non_camel_case_types)]
pub struct onbeat_listener {
    end: Listener,
    context: onbeat,
    /// Takes the message until it is known to be one: C's memory changes only then.
    message: [u8; frame::MAX_CHANNEL_PAYLOAD.get() as usize],
}

/// What is known of a message that was read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types)]
pub struct onbeat_message {
    /// When the value was captured, by the talker's clock.
    pub capture_ns: i64,
    /// Receipt minus capture.
    pub latency_ns: i64,
    /// After `onbeat_read_wait`: target minus wake-up; negative when it woke after the target.
    pub wakeup_error_ns: i64,
    /// Number of the message, from 0.
    pub sequence: u64,
    /// Messages lost between the one before and this one.
    pub gap: u32,
    /// `ONBEAT_LATE` and `ONBEAT_UNCERTAIN`.
    pub flags: u32,
}

/// The message came later than capture + D.
pub const ONBEAT_LATE: u32 = 1;
/// The talker's clock was not synchronised.
pub const ONBEAT_UNCERTAIN: u32 = 4;

impl From<MessageInfo> for onbeat_message {
    fn from(info: MessageInfo) -> Self {
        Self {
            capture_ns: info.capture.as_ns(),
            latency_ns: info.latency.as_ns(),
            wakeup_error_ns: info.wakeup_error.as_ns(),
            sequence: info.sequence,
            gap: info.gap,
            flags: info.flags & (ONBEAT_LATE | ONBEAT_UNCERTAIN),
        }
    }
}

/// A channel's name and its message size from C.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero octet.
unsafe fn named<'a>(name: *const c_char, size: usize) -> Result<(&'a str, Octets), Failure> {
    if name.is_null() {
        return Err(Failure::Argument("`name` is NULL"));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let name = name.to_str().map_err(|_| Failure::Argument("`name` is not UTF-8"))?;
    // A size that does not fit is no channel's size; the fabric says so.
    Ok((name, Octets::new(u32::try_from(size).unwrap_or(u32::MAX))))
}

/// The `size` octets at `value`.
///
/// # Safety
/// `value` is NULL or valid for reading `size` octets.
unsafe fn octets<'a>(value: *const c_void, size: Octets) -> Result<&'a [u8], Failure> {
    if value.is_null() {
        return Err(Failure::Argument("`value` is NULL"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(value.cast(), size.get() as usize) })
}

/// Opens the writing end of the channel `name`, whose messages the program believes to have
/// `size` octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
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
    entry(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context) }?;
        // SAFETY: the caller's promise.
        let (name, size) = unsafe { named(name, size) }?;
        if out.is_null() {
            return Err(Failure::Argument("`out` is NULL"));
        }
        let end = context.0.open_talker(name, size)?;
        // SAFETY: the caller's promise.
        unsafe { store(out, Box::into_raw(Box::new(onbeat_talker { end }))) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Closes a writing end and frees it. NULL is allowed.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_close(talker: *mut onbeat_talker) {
    if !talker.is_null() {
        // SAFETY: the caller's promise; it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(talker) });
    }
}

/// Sends the message at `message`. Blocks only while the channel's declared rate is exceeded.
/// `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
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
    entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker) }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let capture = talker.end.write(message)?;
        // SAFETY: the caller's promise.
        unsafe { store(capture_ns, capture.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Like `onbeat_write`, but returns `ONBEAT_RATE_EXCEEDED` instead of blocking; `capture_ns` then
/// gets the instant from which on a message is allowed.
///
/// # Safety
/// As for `onbeat_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_try_write(
    talker: *mut onbeat_talker,
    message: *const c_void,
    capture_ns: *mut i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker) }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let (at, status) = match talker.end.try_write(message)? {
            Written::Sent { capture } => (capture, onbeat_status::OnbeatOk),
            Written::RateExceeded { until } => (until, onbeat_status::OnbeatRateExceeded),
        };
        // SAFETY: the caller's promise.
        unsafe { store(capture_ns, at.as_ns()) };
        Ok(status)
    })
}

/// Sends the message, then waits until its capture time + D, the instant at which the readers that
/// wait with `onbeat_read_wait` continue as well. `wakeup_error_ns`, if not NULL, gets target minus
/// wake-up: negative when it woke after the target. Allocates nothing.
///
/// # Safety
/// As for `onbeat_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_write_wait(
    talker: *mut onbeat_talker,
    message: *const c_void,
    wakeup_error_ns: *mut i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let talker = unsafe { value(talker) }?;
        // SAFETY: the caller's promise.
        let message = unsafe { octets(message, talker.end.talker().parameters().size) }?;
        let error = talker.end.write_wait(message)?;
        // SAFETY: the caller's promise.
        unsafe { store(wakeup_error_ns, error.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Opens a reading end of the channel `name`, whose messages the program believes to have `size`
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
    entry(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context) }?;
        // SAFETY: the caller's promise.
        let (name, size) = unsafe { named(name, size) }?;
        if out.is_null() {
            return Err(Failure::Argument("`out` is NULL"));
        }
        let end = context.0.open_listener(name, size)?;
        let context = onbeat(context.0.clone());
        let message = [0; frame::MAX_CHANNEL_PAYLOAD.get() as usize];
        // SAFETY: the caller's promise.
        unsafe { store(out, Box::into_raw(Box::new(onbeat_listener { end, context, message }))) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Closes a reading end and frees it. NULL is allowed.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_close(listener: *mut onbeat_listener) {
    if !listener.is_null() {
        // SAFETY: the caller's promise; it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(listener) });
    }
}

/// Waits for a message. `info`, if not NULL, gets what is known of it. Allocates nothing.
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
        read(listener, message, info, Wait::For(Patience::Endless), onbeat_status::OnbeatEmpty)
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

/// Takes a message if there is one, else returns `ONBEAT_EMPTY` and leaves `message` as it is.
/// Never blocks, allocates nothing.
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
    unsafe { read(listener, message, info, Wait::For(Patience::None), onbeat_status::OnbeatEmpty) }
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
    For(Patience),
    ForAtMost(Span),
    UntilCapturePlusD,
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
    entry(|| {
        // SAFETY: the caller's promise.
        let listener = unsafe { value(listener) }?;
        if message.is_null() {
            return Err(Failure::Argument("`message` is NULL"));
        }
        let size = listener.end.listener().parameters().size.get() as usize;
        let value = &mut listener.message[..size];
        let got = match wait {
            Wait::UntilCapturePlusD => Some(listener.end.read_wait(value)?),
            Wait::For(patience) => listener.end.read(value, patience)?,
            Wait::ForAtMost(span) => {
                let now = listener.context.0.now()?.local.as_ns();
                let until = LocalTime::from_ns(now.saturating_add(span.as_ns().max(0)));
                listener.end.read(value, Patience::Until(until))?
            }
        };
        let Some(got) = got else { return Ok(none) };
        // SAFETY: the caller's promise; `message` is not NULL and has the channel's size.
        unsafe {
            std::ptr::copy_nonoverlapping(value.as_ptr(), message.cast(), size);
            store(info, got.into());
        }
        Ok(onbeat_status::OnbeatOk)
    })
}
