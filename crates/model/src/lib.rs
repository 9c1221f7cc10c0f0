//! The shared vocabulary of Onbeat: time, units, systems, plans, records, graphs. No I/O, and no
//! language that people write: those are `onbeat-description` and `onbeat-program`.

pub mod binding;
pub mod codes;
pub mod dedicated;
pub mod device;
pub mod diagnostic;
pub mod execution_times;
pub mod federation;
pub mod fragment;
pub mod graph;
pub mod integrity;
pub mod limits;
pub mod name;
pub mod observed;
pub mod outside;
pub mod plan;
pub mod port;
pub mod rate;
pub mod record;
pub mod reservation;
mod scheduling;
pub mod stations;
pub mod stream;
pub mod system;
pub mod tcp;
pub mod time;
pub mod timing;
pub mod units;
