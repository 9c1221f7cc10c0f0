//! The shared vocabulary of Onbeat: time, units, systems, plans and records, and the file formats
//! that hold them. No I/O: callers bring the text and take the bytes.

pub mod binding;
pub mod description;
pub mod diagnostic;
pub mod execution_times;
pub mod graph;
pub mod manifest;
pub mod observed;
pub mod plan;
pub mod port;
pub mod record;
pub mod stream;
pub mod system;
pub mod tasks;
pub mod time;
pub mod timing;
pub mod units;
