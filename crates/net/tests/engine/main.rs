//! The engine against hand calculation, and against what must hold in any network.

mod drops;
mod faults;
mod latency;
mod learning;
mod network;
mod programs;
mod properties;
mod replication;
mod seeds;
mod shaping;
mod simulation;
mod streams;
