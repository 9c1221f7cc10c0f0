//! The shared vocabulary of Onbeat: time, units, systems, plans, records, graphs. No I/O, and no
//! language that people write: those are `onbeat-description` and `onbeat-program`.

pub mod binding;
pub mod codes;
pub mod diagnostic;
pub mod execution_times;
pub mod graph;
pub mod limits;
pub mod name;
pub mod observed;
pub mod plan;
pub mod port;
pub mod record;
pub mod stream;
pub mod system;
pub mod time;
pub mod timing;
pub mod units;
