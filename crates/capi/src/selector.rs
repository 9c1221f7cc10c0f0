//! Waiting for many listener endpoints.

use crate::boundary::{
    Failure, close, entry_to, onbeat_status, quick_entry, shared, store, value, wanted,
};
use crate::channel::onbeat_listener;
use crate::context::onbeat;
use library::context::Listener;
use library::interface::MAX_CHANNELS;
use library::selector::Selector;
use onbeat_model::time::SyncedTime;
use onbeat_runtime::channel_io::Timeout;

/// Some listener endpoints, to be waited for. Used by one thread at a time, which is also the one
/// that uses its endpoints meanwhile.
#[allow(non_camel_case_types)]
pub struct onbeat_selector {
    context: onbeat,
    selector: Selector,
    ends: Box<[*const onbeat_listener]>,
}

/// Makes a selector of `count` listener endpoints, which must stay open until it is closed.
/// `onbeat_selector_wait` does what `onbeat_select` does, for a price that does not grow with the
/// number of endpoints. At most 256 endpoints in a run in virtual time, else 4096. Allocates.
///
/// # Safety
/// As for `onbeat_select`; `out` is NULL or valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_selector_open(
    context: *mut onbeat,
    listeners: *const *const onbeat_listener,
    count: usize,
    out: *mut *mut onbeat_selector,
) -> onbeat_status {
    let made = || {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        wanted(listeners, "listeners")?;
        wanted(out, "out")?;
        if !(1..=MAX_CHANNELS).contains(&count) {
            let why = format!("`count` is {count}: there may be 1 to {MAX_CHANNELS}");
            return Err(Failure::argument(why));
        }
        // SAFETY: the caller's promise: there are `count` of them.
        let ends: Box<[_]> = unsafe { std::slice::from_raw_parts(listeners, count) }.into();
        if let Some(null) = ends.iter().position(|end| end.is_null()) {
            return Err(Failure::null(&format!("listeners[{null}]")));
        }
        // SAFETY: the caller's promise; none is NULL.
        let opened = ends.iter().map(|end| unsafe { &(**end).end });
        let selector = Selector::new(&context.0, opened)?;
        let context = onbeat(context.0.clone());
        let made = Box::new(onbeat_selector { context, selector, ends });
        // SAFETY: the caller's promise.
        unsafe { store(out, Box::into_raw(made)) };
        Ok(onbeat_status::OnbeatOk)
    };
    // SAFETY: the caller's promise.
    unsafe { entry_to(out, made) }
}

/// Waits as `onbeat_select` does: until one of the selector's endpoints has something to read or
/// has missed its deadline, at most `timeout_ns`, or for ever if that is negative; `index` gets the
/// position of the first that has. `ONBEAT_TIMED_OUT` when none had in time. Allocates nothing.
///
/// # Safety
/// `selector` is NULL or comes from `onbeat_selector_open`, and its endpoints are open; `index` is
/// NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_selector_wait(
    selector: *mut onbeat_selector,
    timeout_ns: i64,
    index: *mut usize,
) -> onbeat_status {
    quick_entry(|| {
        // SAFETY: the caller's promise.
        let selector = unsafe { value(selector, "selector") }?;
        let patience = if timeout_ns < 0 {
            Timeout::Endless
        } else {
            let now = selector.context.0.now()?.local.as_ns();
            Timeout::Until(SyncedTime::from_ns(now.saturating_add(timeout_ns)))
        };
        let ends = &selector.ends;
        // SAFETY: the caller's promise: it is open, and nobody uses it meanwhile.
        let end = |at: usize| -> &Listener { unsafe { &(*ends[at]).end } };
        let Some(found) = selector.selector.wait(end, patience)? else {
            return Ok(onbeat_status::OnbeatTimedOut);
        };
        // SAFETY: the caller's promise.
        unsafe { store(index, found) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Closes a selector and frees it. Its endpoints stay open. NULL is allowed.
///
/// # Safety
/// `selector` is NULL or comes from `onbeat_selector_open` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_selector_close(selector: *mut onbeat_selector) {
    // SAFETY: the caller's promise; it was made by `Box::into_raw`.
    unsafe { close(selector) }
}
