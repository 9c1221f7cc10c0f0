//! Worst cases worked out by hand, to the nanosecond: what the plan promises, and what the engine
//! does when the phases are those of the worst case.
//!
//! Links are of 100 Mb/s unless a case says otherwise: an octet takes 80 ns. A frame is named by
//! the octets that it *occupies* of the wire, with its preamble (8) and gap (12): one of 1000 keeps
//! a port for 80 000 ns, and its last octet is out after 988 of them.

mod asynchronous;
mod bridges;
#[path = "../plan/build.rs"]
#[expect(dead_code, reason = "the plan's tests need more of it")]
mod build;
mod channels;
mod check;
mod credit;
mod gates;
mod preemption;
mod priority;
mod several_inputs;
mod sources;
mod unlimited;
mod windows;
