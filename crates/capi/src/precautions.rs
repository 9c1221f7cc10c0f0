//! What the library has done against delays of the program itself.

use crate::boundary::{entry, onbeat_status, shared, store, wanted};
use crate::context::onbeat;
use library::interface::Taken;

/// The memory that the program had when it opened its interface, or in a run at the start, is
/// locked.
pub const ONBEAT_MEMORY_LOCKED: u32 = 1;
/// Memory that the program gets from now on is locked as well.
pub const ONBEAT_LATER_MEMORY_LOCKED: u32 = 2;
/// The program holds `/dev/cpu_dma_latency` at 0, so that no processor is in a deep idle state.
pub const ONBEAT_CPU_LATENCY_HELD: u32 = 4;

/// What the library has done for this process, and was allowed to: `ONBEAT_MEMORY_LOCKED` and the
/// others, or-ed; later versions may set more. What it was not allowed to is no failure. Never
/// blocks for long, allocates nothing.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open` or `onbeat_open_interface`; `taken` is NULL or
/// valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_precautions(
    context: *mut onbeat,
    taken: *mut u32,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { shared(context, "context") }?;
        wanted(taken, "taken")?;
        let now = Taken::now();
        let bits = [
            (now.memory, ONBEAT_MEMORY_LOCKED),
            (now.later_memory, ONBEAT_LATER_MEMORY_LOCKED),
            (now.cpu_latency, ONBEAT_CPU_LATENCY_HELD),
        ];
        let set = bits.iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit);
        // SAFETY: the caller's promise.
        unsafe { store(taken, set) };
        Ok(onbeat_status::OnbeatOk)
    })
}
