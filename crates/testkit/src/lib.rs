//! What tests of several crates share. Nothing but tests depends on it.

mod not_run;

pub use not_run::{NOT_RUN, Need, REQUIRE, not_run};
