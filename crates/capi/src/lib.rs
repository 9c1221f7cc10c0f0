//! The C ABI: thin, every pointer checked, no panic crosses it. `include/onbeat.h` is generated
//! from here, and its comments are these.
#![allow(unsafe_code)]
// What C sees is not what other crates see.
#![allow(unreachable_pub)]

mod boundary;
mod channel;
mod context;
mod interface;
mod liveness;
mod precautions;
mod reservation;
mod selector;
mod sized;
mod version;
