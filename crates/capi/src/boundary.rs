//! What every entry has in common: statuses, the last error, and the boundary for panics.

use library::coordinator::client::SetupError;
use onbeat_runtime::channel_io::ChannelError;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of a call. Zero or more means success. Below zero the call did nothing, and
/// `onbeat_last_error` says why. Numbers are never reused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::enum_variant_names)] // one name space in C
pub enum onbeat_status {
    /// Done.
    OnbeatOk = 0,
    /// The run is over: clean up and exit.
    OnbeatStopped = 1,
    /// There is no message.
    OnbeatEmpty = 2,
    /// No message came in time.
    OnbeatTimedOut = 3,
    /// The channel's declared rate does not allow a message yet.
    OnbeatRateExceeded = 4,
    /// No listener is ready: nothing is reserved for the message.
    OnbeatNotReserved = 5,
    /// The interface is down or not there: the message was not sent, and counts as not written.
    OnbeatLinkDown = 6,
    /// An argument is not valid: a pointer is NULL, a text is not UTF-8, a flag is not known.
    OnbeatEArgument = -1,
    /// There is no run coordinator, or it is gone.
    OnbeatECoordinator = -2,
    /// The description does not allow it: an unknown channel, another size, another host.
    OnbeatERefused = -3,
    /// `onbeat_start` has not been called.
    OnbeatENotStarted = -4,
    /// The calling thread neither called `onbeat_open` nor comes from `onbeat_thread_create`.
    OnbeatEThread = -5,
    /// A defect of the library itself; please report it.
    OnbeatEInternal = -6,
    /// The interface cannot be used, is down, its queue is full, or a message is too long for it.
    OnbeatENetwork = -7,
    /// The calling process was forked from the one that opened this, which alone may use it.
    OnbeatEForked = -8,
    /// The system refuses what the call needs: a thread.
    OnbeatESystem = -9,
}

/// Every status with its meaning in a few words.
const MEANINGS: [(onbeat_status, &CStr); 16] = [
    (onbeat_status::OnbeatOk, c"done"),
    (onbeat_status::OnbeatStopped, c"the run is over"),
    (onbeat_status::OnbeatEmpty, c"there is no message"),
    (onbeat_status::OnbeatTimedOut, c"no message came in time"),
    (onbeat_status::OnbeatRateExceeded, c"the declared rate does not allow a message yet"),
    (onbeat_status::OnbeatNotReserved, c"nothing is reserved for the message"),
    (onbeat_status::OnbeatLinkDown, c"the interface is down or not there"),
    (onbeat_status::OnbeatEArgument, c"an argument is not valid"),
    (onbeat_status::OnbeatECoordinator, c"there is no run coordinator, or it is gone"),
    (onbeat_status::OnbeatERefused, c"the description does not allow it"),
    (onbeat_status::OnbeatENotStarted, c"the run has not been started"),
    (onbeat_status::OnbeatEThread, c"the calling thread does not take part in the run"),
    (onbeat_status::OnbeatEInternal, c"a defect of the library"),
    (onbeat_status::OnbeatENetwork, c"the interface cannot be used"),
    (onbeat_status::OnbeatEForked, c"the calling process was forked"),
    (onbeat_status::OnbeatESystem, c"the system refuses what the call needs"),
];

/// What a status means in a few words, of any number: of one that is no `onbeat_status` it says
/// that. Never NULL, valid for ever, the same for every call; `onbeat_last_error` says more of what
/// failed. Any thread may call it, and a signal handler. Never blocks, allocates nothing.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_strerror(status: c_int) -> *const c_char {
    let known = MEANINGS.iter().find(|(known, _)| *known as c_int == status);
    known.map_or(c"not a status of this library", |(_, meaning)| meaning).as_ptr()
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Why the last call on this thread that returned a negative status failed: a text of one line,
/// valid until the next call of this library on this thread. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_last_error() -> *const c_char {
    LAST_ERROR.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Why a call fails, inside.
pub(crate) enum Failure {
    /// Which argument, by its name in the header, and what is wrong with it.
    Argument(Cow<'static, str>),
    Setup(SetupError),
    ChannelError(ChannelError),
    /// What was asked of the system, and its answer.
    System(&'static str, std::io::Error),
}
impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}
impl From<ChannelError> for Failure {
    fn from(fault: ChannelError) -> Self {
        Self::ChannelError(fault)
    }
}

impl Failure {
    /// An argument that is refused.
    pub(crate) fn argument(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Argument(what.into())
    }

    /// A pointer that is NULL, by its name in the header.
    pub(crate) fn null(name: &str) -> Self {
        Self::argument(format!("`{name}` is NULL"))
    }

    fn status(&self) -> onbeat_status {
        match self {
            Self::Argument(_) => onbeat_status::OnbeatEArgument,
            Self::Setup(SetupError::Refused(_)) => onbeat_status::OnbeatERefused,
            Self::Setup(SetupError::ChannelError(fault)) | Self::ChannelError(fault) => match fault
            {
                ChannelError::Stopped => onbeat_status::OnbeatStopped,
                ChannelError::Disconnected => onbeat_status::OnbeatECoordinator,
                ChannelError::Network | ChannelError::QueueFull | ChannelError::TooLong => {
                    onbeat_status::OnbeatENetwork
                }
                ChannelError::LinkDown => onbeat_status::OnbeatLinkDown,
                ChannelError::Forked => onbeat_status::OnbeatEForked,
                ChannelError::NotStarted => onbeat_status::OnbeatENotStarted,
                ChannelError::TimedOut => onbeat_status::OnbeatTimedOut,
                ChannelError::UnknownThread => onbeat_status::OnbeatEThread,
                ChannelError::InFragments | ChannelError::OneChannel => {
                    onbeat_status::OnbeatEArgument
                }
            },
            Self::Setup(SetupError::Interface { .. }) => onbeat_status::OnbeatENetwork,
            Self::Setup(_) => onbeat_status::OnbeatECoordinator,
            Self::System(..) => onbeat_status::OnbeatESystem,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Argument(what) => what.clone().into_owned(),
            Self::Setup(error) => error.to_string(),
            Self::ChannelError(fault) => fault.to_string(),
            Self::System(call, error) => format!("{call}: {error}"),
        }
    }
}

fn set_last_error(text: String) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no last error any more.
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
}

unsafe extern "C" {
    /// POSIX.1-2024; `libc` does not have it.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// In glibc and in musl.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// While it is there, the calling thread is not cancelled: nothing here could be cleared up.
struct NotCancelled(c_int);

impl NotCancelled {
    fn from_now_on() -> Self {
        let mut before = 0;
        // SAFETY: the place for the answer is valid.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for NotCancelled {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: the place for the answer is valid.
        unsafe { pthread_setcancelstate(self.0, &raw mut disabled) };
    }
}

/// Frees what a pointer that the program had stands for, if it is not NULL.
///
/// # Safety
/// It comes from `Box::into_raw` and is not used again.
pub(crate) unsafe fn close<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // To close a descriptor is a cancellation point.
        let _not_cancelled = NotCancelled::from_now_on();
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// Runs an entry's body; turns failures and panics into statuses. Real-time: allocates only when
/// the status is negative.
pub(crate) fn entry(body: impl FnOnce() -> Result<onbeat_status, Failure>) -> onbeat_status {
    let _not_cancelled = NotCancelled::from_now_on();
    quick_entry(body)
}

/// The same for calls that each message makes, whose body has no cancellation point: a third of
/// what a write costs beside its system call would be to disable cancellation and enable it again.
#[inline]
pub(crate) fn quick_entry(body: impl FnOnce() -> Result<onbeat_status, Failure>) -> onbeat_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            let status = failure.status();
            if (status as i32) < 0 {
                set_last_error(failure.text());
            }
            status
        }
        Err(_) => {
            set_last_error("a defect of the library; its message is on standard error".to_owned());
            onbeat_status::OnbeatEInternal
        }
    }
}

/// The value behind a pointer from C, which the header calls `name`.
///
/// # Safety
/// `pointer` is NULL, or points to a `T` that this library made and that is not in use elsewhere.
pub(crate) unsafe fn value<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(name))
}

/// The value behind a pointer from C that several threads may use at once; the header calls it
/// `name`.
///
/// # Safety
/// `pointer` is NULL, or points to a `T` that this library made and that is not freed meanwhile.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(name))
}

/// Refuses a pointer that is NULL; the header calls it `name`.
pub(crate) fn wanted<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(Failure::null(name)) } else { Ok(()) }
}

/// [`entry`] of a function that makes something: when the run is over there is none, and the
/// status is no failure, so `out` gets NULL.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn entry_to<T>(
    out: *mut *mut T,
    body: impl FnOnce() -> Result<onbeat_status, Failure>,
) -> onbeat_status {
    let status = entry(body);
    if status == onbeat_status::OnbeatStopped {
        // SAFETY: the caller's promise.
        unsafe { store(out, std::ptr::null_mut()) };
    }
    status
}

/// A text from C, which the header calls `name`.
///
/// # Safety
/// `pointer` is NULL or ends with a zero octet.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    wanted(pointer, name)?;
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::argument(format!("`{name}` is not UTF-8")))
}

/// Stores a result where C wants it, if it does.
///
/// # Safety
/// `place` is NULL or valid for writing a `T`.
pub(crate) unsafe fn store<T>(place: *mut T, result: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(result) };
    }
}
