//! Joining a run, time, and threads.

use crate::boundary::{Failure, entry, entry_to, onbeat_status, shared, store, wanted};
use library::clock::MonoTime;
use library::context::Context;
use library::coordinator::client::{AnnouncedThread, SetupError};
use library::coordinator::protocol::Work;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_runtime::channel_io::Timeout;
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError};

/// A program's membership in a run. Any of its threads may use it.
#[allow(non_camel_case_types)]
pub struct onbeat(pub(crate) Context);

/// A thread that takes part in a run.
#[allow(non_camel_case_types)]
pub struct onbeat_thread {
    context: Context,
    ticket: Option<u32>,
    thread: libc::pthread_t,
}

/// The body of a thread.
#[allow(non_camel_case_types)]
pub type onbeat_thread_body =
    Option<unsafe extern "C-unwind" fn(argument: *mut c_void) -> *mut c_void>;

/// A body that there is.
type Body = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The stack of a thread in octets: where memory is locked, all of it is.
const STACK: usize = 2 << 20;

/// What a thread begins with.
struct Beginning {
    ticket: Option<AnnouncedThread>,
    body: Body,
    argument: *mut c_void,
}

/// A thread's first function. An exception that the body does not catch, pthread_exit() and a
/// cancellation go by way of it: nothing in it needs clearing up. However it ends, it has arranged
/// that the run hears of it ([`AnnouncedThread::begin`]).
extern "C-unwind" fn begin(beginning: *mut c_void) -> *mut c_void {
    match take_part(beginning) {
        // SAFETY: the promise of `onbeat_thread_create`'s caller.
        Some((body, argument)) => unsafe { body(argument) },
        None => std::ptr::null_mut(),
    }
}

/// Makes the calling thread one of the run's, unless that is over.
fn take_part(beginning: *mut c_void) -> Option<(Body, *mut c_void)> {
    // SAFETY: `onbeat_thread_create` made it by `Box::into_raw`, for this thread alone.
    let beginning = unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    let Beginning { ticket, body, argument } = *beginning;
    let mut begun = false;
    entry(|| {
        begun = ticket.is_none_or(|ticket| ticket.begin().is_ok());
        Ok(onbeat_status::OnbeatOk)
    });
    begun.then_some((body, argument))
}

/// Starts a thread of the system's.
fn start(beginning: Box<Beginning>) -> Result<libc::pthread_t, Failure> {
    let mut thread = 0;
    let mut attributes = std::mem::MaybeUninit::uninit();
    let beginning = Box::into_raw(beginning);
    // SAFETY: the attributes are made before they are used, and unmade once; the thread takes what
    // it begins with, if it is made; functions of the two ABIs are called alike, and what unwinds
    // through the thread's first one comes to the C library's, which expects it.
    let failed = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        let made = libc::pthread_create(
            &raw mut thread,
            attributes.as_ptr(),
            std::mem::transmute::<Body, extern "C" fn(*mut c_void) -> *mut c_void>(begin),
            beginning.cast(),
        );
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        made
    };
    if failed == 0 {
        return Ok(thread);
    }
    // SAFETY: there is no thread that took it. Without its ticket the run does not expect one.
    drop(unsafe { Box::from_raw(beginning) });
    Err(Failure::System("pthread_create", std::io::Error::from_raw_os_error(failed)))
}

/// Joins the run that the environment names; `onbeat run` sets it. The calling thread becomes the
/// program's main thread, and the one that opens channels.
///
/// Blocks until the run coordinator answers. Allocates.
///
/// # Safety
/// `out` is NULL or valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_open(out: *mut *mut onbeat) -> onbeat_status {
    entry(|| {
        wanted(out, "out")?;
        let context = Box::new(onbeat(Context::join()?));
        // SAFETY: the caller's promise; not NULL.
        unsafe { store(out, Box::into_raw(context)) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Ends set-up. Waits until every program of the system has come this far; returns at the common
/// start, which is the epoch of the network clock. After it, reading, writing and sleeping
/// allocate nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_start(context: *mut onbeat) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { shared(context, "context") }?.0.start()?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Leaves the run and frees `context`; its endpoints must be closed before. In virtual time the
/// rest of the run continues when the program has exited. NULL is allowed.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_close(context: *mut onbeat) {
    entry(|| {
        if !context.is_null() {
            // SAFETY: the caller's promise; it was made by `Box::into_raw`.
            let context = unsafe { Box::from_raw(context) };
            context.0.leave();
        }
        Ok(onbeat_status::OnbeatOk)
    });
}

/// What this host's copy of the network clock reads. Never blocks; in virtual time it does not
/// continue until the program waits for something, so do not wait for it in a loop.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `now_ns` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_now(context: *mut onbeat, now_ns: *mut i64) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let now = unsafe { shared(context, "context") }?.0.now()?;
        // SAFETY: the caller's promise.
        unsafe { store(now_ns, now.local.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Sleeps until this host's copy of the network clock reads `until_ns` or later; at once when it
/// does already. `woke_ns`, if not NULL, gets what it read then.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `woke_ns` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_sleep_until(
    context: *mut onbeat,
    until_ns: i64,
    woke_ns: *mut i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let woke =
            unsafe { shared(context, "context") }?.0.sleep_until(SyncedTime::from_ns(until_ns))?;
        // SAFETY: the caller's promise.
        unsafe { store(woke_ns, woke.local.as_ns()) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Declares that the work since the last call takes `work_ns`. In virtual time, where work takes no
/// time by itself, that time passes now, and longer where the description says how many processors
/// (`cores`) the host's programs share; in real time nothing happens. `ONBEAT_STOPPED` when the run
/// is over.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_work(context: *mut onbeat, work_ns: i64) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { shared(context, "context") }?.0.work(Span::from_ns(work_ns))?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// The same, with a limit: when this host's copy of the network clock reads `until_ns` the work is
/// given up, with `ONBEAT_TIMED_OUT`; `INT64_MAX` is never. Work that is done just then is done. On
/// processors that are shared it is as urgent as `priority` says, 1 to 99, the greater the more
/// urgent, 0 for that of the program in the description; or, before all priorities, the earlier
/// `deadline_ns` is, an absolute deadline by the same clock; `INT64_MAX` is none.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_work_until(
    context: *mut onbeat,
    work_ns: i64,
    until_ns: i64,
    priority: i32,
    deadline_ns: i64,
) -> onbeat_status {
    entry(|| {
        let priority = u8::try_from(priority).ok().filter(|priority| *priority <= 99);
        let work = Work {
            span: Span::from_ns(work_ns),
            until: SyncedTime::from_ns(until_ns),
            priority: priority.ok_or(Failure::argument("`priority` is not 0 to 99"))?,
            deadline: SyncedTime::from_ns(deadline_ns),
        };
        // SAFETY: the caller's promise.
        Ok(match unsafe { shared(context, "context") }?.0.work_until(work)? {
            true => onbeat_status::OnbeatOk,
            false => onbeat_status::OnbeatTimedOut,
        })
    })
}

/// A word that threads wait for.
///
/// # Safety
/// `word` is NULL or valid for atomic reads for as long as the result is used.
unsafe fn word<'a>(word: *const u32) -> Result<&'a AtomicU32, Failure> {
    wanted(word, "word")?;
    if !word.is_aligned() {
        return Err(Failure::argument("`word` is not at a multiple of its size"));
    }
    // SAFETY: the caller's promise; not NULL and aligned. It is only read.
    Ok(unsafe { AtomicU32::from_ptr(word.cast_mut()) })
}

/// Waits for other threads of this program, as a futex does: at most until `until_ns` by this
/// host's copy of the network clock, `INT64_MAX` for ever. Returns `ONBEAT_OK` at once when
/// `*word`, which is read atomically, is not `value`; else when `onbeat_wake` is called for `word`,
/// or, rarely, for no reason: look at the word again. Then `ONBEAT_TIMED_OUT`, or `ONBEAT_STOPPED`
/// when the run is over. In virtual time, threads continue in the order in which they began to
/// wait. Allocates nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `word` is NULL or valid for reading until the
/// call returns, and changed by atomic operations only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_wait(
    context: *mut onbeat,
    word: *const u32,
    value: u32,
    until_ns: i64,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { onbeat_wait_for(context, word, value, until_ns, 0) }
}

/// As `onbeat_wait`, for what the thread `holder` of this program holds, as `gettid` numbers it; 0
/// if unknown. In virtual time, where threads share processors, that one's work is as urgent
/// meanwhile as the last work of the one that waits (priority inheritance); elsewhere this is
/// `onbeat_wait`. Allocates nothing.
///
/// # Safety
/// As for `onbeat_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_wait_for(
    context: *mut onbeat,
    word: *const u32,
    value: u32,
    until_ns: i64,
    holder: u32,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let (context, word) = unsafe { (shared(context, "context")?, self::word(word)?) };
        let until = match until_ns {
            i64::MAX => Timeout::Endless,
            until => Timeout::Until(SyncedTime::from_ns(until)),
        };
        Ok(match context.0.wait_for_holder(word, value, until, holder)? {
            true => onbeat_status::OnbeatOk,
            false => onbeat_status::OnbeatTimedOut,
        })
    })
}

/// Wakes all threads of this program that wait for `word` in `onbeat_wait`. Change the word first.
/// Never blocks, allocates nothing.
///
/// # Safety
/// As for `onbeat_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_wake(context: *mut onbeat, word: *const u32) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let (context, word) = unsafe { (shared(context, "context")?, self::word(word)?) };
        context.0.wake(word)?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Which clock of the machine reads what when this host's copy of the network clock reads `at_ns`,
/// for timers of the system: `clock` gets its number as `timer_create` and `clock_nanosleep` want
/// it (CLOCK_MONOTONIC), `machine_ns` its reading. That is as of now: ask again for an instant that
/// is far away, the clocks' rates differ. An instant more than a year from now is taken as one a
/// year from now. `ONBEAT_E_REFUSED` in virtual time, which no clock of the machine tells. Never
/// blocks, allocates nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `clock` and `machine_ns` are NULL or valid for
/// writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_machine_time(
    context: *mut onbeat,
    at_ns: i64,
    clock: *mut i32,
    machine_ns: *mut i64,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        let Some(at) = context.0.machine_time(SyncedTime::from_ns(at_ns))? else {
            return Err(Failure::Setup(SetupError::Refused(
                "no clock of the machine tells virtual time".to_owned(),
            )));
        };
        // SAFETY: the caller's promise.
        unsafe {
            store(clock, MonoTime::CLOCK);
            store(machine_ns, at.as_ns());
        }
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Creates a thread that takes part in the run; only after `onbeat_start`, from any thread that
/// does. Threads of a program wait for each other through channels, sleeps, `onbeat_wait` and
/// `onbeat_thread_join` only: virtual time stands still while one waits by other means. The body
/// ends by returning, or as a thread of POSIX may: by `pthread_exit`, or cancelled; an exception of
/// C++ that it does not catch ends the process. When the run is over before it could begin, it is
/// not called, and its result is NULL; after that this returns `ONBEAT_STOPPED`, makes none, and
/// `out` gets NULL. `ONBEAT_E_SYSTEM` when the system makes no thread; then the run does not expect
/// it. Calls of this library are no cancellation points: a request to cancel waits until one
/// outside of them. `argument` may be NULL.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `out` is NULL or valid for writing a pointer;
/// `body` is NULL or may be called with `argument` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_thread_create(
    context: *mut onbeat,
    body: onbeat_thread_body,
    argument: *mut c_void,
    out: *mut *mut onbeat_thread,
) -> onbeat_status {
    let made = || {
        let body = body.ok_or_else(|| Failure::null("body"))?;
        wanted(out, "out")?;
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?.0.clone();
        let ticket = context.announce()?;
        let number = ticket.as_ref().map(AnnouncedThread::number);
        let thread = start(Box::new(Beginning { ticket, body, argument }))?;
        let thread = Box::new(onbeat_thread { context, ticket: number, thread });
        // SAFETY: the caller's promise; not NULL.
        unsafe { store(out, Box::into_raw(thread)) };
        Ok(onbeat_status::OnbeatOk)
    };
    // SAFETY: the caller's promise.
    unsafe { entry_to(out, made) }
}

/// Threads that were announced and have not begun yet.
static ANNOUNCED: Mutex<Vec<AnnouncedThread>> = Mutex::new(Vec::new());

/// For threads that the program creates by other means, such as `pthread_create` with attributes:
/// announces one that will call `onbeat_thread_begin` with `*number` as soon as it can. The run
/// waits for that. Only after `onbeat_start`, from any thread that takes part in the run.
/// `ONBEAT_STOPPED` when the run is over. On an interface it does nothing. Allocates.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`; `number` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_thread_announce(
    context: *mut onbeat,
    number: *mut u32,
) -> onbeat_status {
    entry(|| {
        wanted(number, "number")?;
        // SAFETY: the caller's promise.
        let announced = unsafe { shared(context, "context") }?.0.announce()?;
        // SAFETY: the caller's promise; not NULL.
        unsafe { store(number, announced.as_ref().map_or(0, AnnouncedThread::number)) };
        ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner).extend(announced);
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Makes the calling thread the announced one of this number; returns when the run lets it
/// continue. From then on it is as one of `onbeat_thread_create`, until it ends.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_thread_begin(context: *mut onbeat, number: u32) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        if let Context::Interface(_) = context.0 {
            return Ok(onbeat_status::OnbeatOk);
        }
        let mut announced = ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = announced.iter().position(|thread| thread.number() == number);
        let found = found.map(|at| announced.swap_remove(at));
        drop(announced);
        found.ok_or(Failure::argument("`number` is that of no announced thread"))?.begin()?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Waits, in the time of the run, until the announced thread of this number has ended: then it can
/// be joined by the means that created it. Outside of virtual time it does nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_thread_await(context: *mut onbeat, number: u32) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { shared(context, "context") }?.0.wait_for(number)?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Waits until a thread has ended, and frees it. `result`, if not NULL, gets what its body
/// returned or gave to `pthread_exit`, or PTHREAD_CANCELED. The thread is freed whatever is
/// returned, unless it is NULL or the calling one.
///
/// # Safety
/// `thread` is NULL or comes from `onbeat_thread_create` and is not used again; `result` is NULL or
/// valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_thread_join(
    thread: *mut onbeat_thread,
    result: *mut *mut c_void,
) -> onbeat_status {
    entry(|| {
        wanted(thread, "thread")?;
        // SAFETY: the caller's promise.
        if unsafe { libc::pthread_equal((*thread).thread, libc::pthread_self()) } != 0 {
            return Err(Failure::argument(
                "`thread` is the calling thread, which waits for its own end",
            ));
        }
        // SAFETY: the caller's promise; it was made by `Box::into_raw`.
        let thread = unsafe { Box::from_raw(thread) };
        let waited = thread.ticket.map_or(Ok(()), |ticket| thread.context.wait_for(ticket));
        let mut got = std::ptr::null_mut();
        // SAFETY: nobody else has joined it, and it was not detached: that needs its number, which
        // only this handle has.
        unsafe { libc::pthread_join(thread.thread, &raw mut got) };
        // SAFETY: the caller's promise.
        unsafe { store(result, got) };
        waited?;
        Ok(onbeat_status::OnbeatOk)
    })
}
