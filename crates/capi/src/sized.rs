//! Structures that callers allocate: they may get more fields at their ends. The calls here say how
//! many octets the caller has; those without a size read and write what version 0.1 had, for ever.

use crate::boundary::{Failure, entry, onbeat_status, shared, wanted};
use crate::channel::{onbeat_counters, onbeat_listener, onbeat_message, onbeat_talker};
use crate::context::onbeat;
use crate::interface::{declare, onbeat_channel, onbeat_interface, open};
use crate::liveness::onbeat_liveness;
use crate::reservation::onbeat_reservation;
use std::mem::{MaybeUninit, offset_of};

/// What version 0.1 had of each structure, in octets.
pub(crate) mod first {
    use super::{offset_of, onbeat_channel, onbeat_counters, onbeat_interface, onbeat_message};

    pub(crate) const COUNTERS: usize = offset_of!(onbeat_counters, rejected_future) + 8;
    pub(crate) const MESSAGE: usize = offset_of!(onbeat_message, flags) + 4;
    pub(crate) const INTERFACE: usize = offset_of!(onbeat_interface, log) + size_of::<*const u8>();
    /// With the padding at its end, which therefore must never become a field.
    pub(crate) const CHANNEL: usize =
        (offset_of!(onbeat_channel, pcp) + 1).next_multiple_of(align_of::<onbeat_channel>());
}

/// A structure that may come from C and go there: any octets are one.
///
/// # Safety
/// `repr(C)`, of numbers and pointers only.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_counters {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_message {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_interface {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_reservation {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_channel {}
// SAFETY: as the trait wants them.
unsafe impl Plain for onbeat_liveness {}

/// Stores a structure where C has `size` octets for it, if it wants it: as much as fits, and zeros
/// behind it.
///
/// # Safety
/// `place` is NULL or valid for writing `size` octets.
pub(crate) unsafe fn give<T: Plain>(place: *mut T, size: usize, result: T) {
    if place.is_null() {
        return;
    }
    let known = size.min(size_of::<T>());
    let place = place.cast::<u8>();
    // SAFETY: `known` is no more than either has, the rest is the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const result).cast(), place, known);
        place.add(known).write_bytes(0, size - known);
    }
}

/// Takes a structure of which C has `size` octets, and calls it `name`: what it lacks is zero. What
/// it has more must be: it asks for what this version does not know.
///
/// # Safety
/// `place` is valid for reading `size` octets.
unsafe fn take<T: Plain>(place: *const T, size: usize, name: &str) -> Result<T, Failure> {
    if !size.is_multiple_of(align_of::<T>()) {
        // Nor does a pointer end in its midst then.
        return Err(Failure::argument(format!("`{name}` has {size} octets: no version's has")));
    }
    let known = size.min(size_of::<T>());
    let mut taken = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` is no more than either has, the rest is the caller's promise.
    let beyond = unsafe {
        std::ptr::copy_nonoverlapping(place.cast::<u8>(), taken.as_mut_ptr().cast(), known);
        std::slice::from_raw_parts(place.cast::<u8>().add(known), size - known)
    };
    if beyond.iter().any(|octet| *octet != 0) {
        let what = format!("`{name}` has fields of a later version that are not 0");
        return Err(Failure::argument(what));
    }
    // SAFETY: any octets are one.
    Ok(unsafe { taken.assume_init() })
}

/// Like `onbeat_talker_counters`, where `out` has `size` octets: `sizeof(struct onbeat_counters)`
/// of the header that the program was compiled with. Counters for which there is no room are left
/// out; those that the library does not know are 0. Never blocks, allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`; `out` is NULL or valid for writing `size`
/// octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_counters_sized(
    talker: *const onbeat_talker,
    size: usize,
    out: *mut onbeat_counters,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let counters = unsafe { shared(talker, "talker") }?.counters()?;
        // SAFETY: the caller's promise.
        unsafe { give(out, size, counters) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// The same for a listener endpoint.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `out` is NULL or valid for writing
/// `size` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_counters_sized(
    listener: *const onbeat_listener,
    size: usize,
    out: *mut onbeat_counters,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let counters = unsafe { shared(listener, "listener") }?.counters()?;
        // SAFETY: the caller's promise.
        unsafe { give(out, size, counters) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// What was known of the message that a call handed over last at this end, where `info` has `size`
/// octets: `sizeof(struct onbeat_message)` of the header that the program was compiled with. What
/// has no room is left out, what the library does not know is 0. `ONBEAT_EMPTY` when there was no
/// message yet. Never blocks, allocates nothing.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `info` is NULL or valid for writing
/// `size` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_message(
    listener: *const onbeat_listener,
    size: usize,
    info: *mut onbeat_message,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let last = unsafe { shared(listener, "listener") }?.last()?;
        let Some(last) = last else { return Ok(onbeat_status::OnbeatEmpty) };
        // SAFETY: the caller's promise.
        unsafe { give(info, size, last) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Like `onbeat_open_interface`, where `interface` has `interface_size` octets and each of
/// `channels` has `channel_size`: `sizeof` by the header that the program was compiled with. Fields
/// that the program does not know are 0; those that the library does not know must be.
///
/// # Safety
/// As for `onbeat_open_interface`, with these sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_open_interface_sized(
    interface: *const onbeat_interface,
    interface_size: usize,
    channels: *const onbeat_channel,
    channel_size: usize,
    count: usize,
    out: *mut *mut onbeat,
) -> onbeat_status {
    entry(|| {
        wanted(interface, "interface")?;
        // SAFETY: the caller's promise.
        let interface = unsafe { take(interface, interface_size, "interface") }?;
        if count > 0 {
            wanted(channels, "channels")?;
        }
        let channel = |at: usize| {
            // SAFETY: the caller's promise: there are `count` of them, of this size.
            unsafe {
                let place = channels.byte_add(at * channel_size);
                take(place, channel_size, &format!("channels[{at}]"))
            }
        };
        // SAFETY: the caller's promise.
        unsafe { open(&interface, (0..count).map(channel), out) }
    })
}

/// Like `onbeat_declare`, where `channel` has `size` octets: `sizeof(struct onbeat_channel)` by the
/// header that the program was compiled with, as for `onbeat_open_interface_sized`. Allocates.
///
/// # Safety
/// As for `onbeat_declare`, with this size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_declare_sized(
    context: *mut onbeat,
    channel: *const onbeat_channel,
    size: usize,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let context = &unsafe { shared(context, "context") }?.0;
        wanted(channel, "channel")?;
        // SAFETY: the caller's promise.
        unsafe { declare(context, &take(channel, size, "channel")?, "channel->") }?;
        Ok(onbeat_status::OnbeatOk)
    })
}
