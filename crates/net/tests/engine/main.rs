//! The engine against hand calculation, and against what must hold in any network.

mod drops;
mod latency;
mod network;
mod programs;
mod properties;
mod seeds;
mod shaping;
