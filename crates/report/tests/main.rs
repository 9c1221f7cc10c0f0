//! Pages, tables and pictures, as readers get them. One binary:
//! `cargo test --test report browser::` runs one file's tests.

#[path = "../../measure/tests/common/mod.rs"]
mod common;
#[path = "common/studies.rs"]
#[allow(dead_code, reason = "unit tests use the rest")]
mod studies;

mod browser;
mod measurement;
mod perfetto;
mod report;
mod run;
mod segments;
mod simulation;
mod timing;
