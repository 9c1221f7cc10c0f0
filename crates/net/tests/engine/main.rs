//! The engine against hand calculation, and against what must hold in any network.

mod cut_through;
mod drops;
mod gates;
mod latency;
mod network;
mod preemption;
mod programs;
mod properties;
mod seeds;
mod shaping;
