//! What tests of several crates share. Nothing but tests depends on it.

mod built;
mod not_run;

pub use built::{home, library, root, tree};
pub use not_run::{NOT_RUN, Need, REQUIRE, not_run};
