//! Whole systems from seeds: a description, programs that come late, die, write twice or speak the
//! protocol wrongly, and faults of the network. The command `onbeat` runs each of them twice, and
//! every invariant is checked. `onbeat-sim SEED` does that for one seed.
//!
//! [`system::DrawnSystem::draw`] draws, [`actor::act`] is what a program of such a system does,
//! [`trial::Harness`] runs the command, and [`judge::judge`] looks for what is wrong.

pub mod actor;
pub mod coverage;
pub mod judge;
pub mod script;
pub mod system;
pub mod trial;

pub use system::DrawnSystem;
pub use trial::Harness;
