//! What tests of several crates share. Nothing but tests depends on it.

mod built;
mod cable;
mod not_run;
mod random;

pub use built::{home, library, object, root, tree};
pub use cable::{Bridged, bridged, cable, run, within};
pub use not_run::{NOT_RUN, Need, REQUIRE, not_run};
pub use random::Random;
