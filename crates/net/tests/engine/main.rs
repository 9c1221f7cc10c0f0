//! The engine against hand calculation, and against what must hold in any network.

mod cut_through;
mod drops;
mod faults;
mod gates;
#[path = "../../../network-code/tests/generator.rs"]
mod generator;
mod hardware;
mod latency;
mod learning;
mod network;
mod network_code;
mod participants;
mod preemption;
mod programs;
mod properties;
mod replication;
mod reservation;
mod seeds;
mod shaping;
mod simulation;
mod streams;
mod tcp;
