//! Bounds of FIFO networks: sums by hand, published figures of other programs, and simulations
//! that try to break them.

mod ethernet;
mod families;
mod hand;
mod import;
mod peers;
mod published;
mod simulation;
mod systems;
