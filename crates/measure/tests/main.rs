//! What is measured, against logs whose figures are known. One binary:
//! `cargo test --test measure compare::` runs one file's tests.

mod common;

mod compare;
mod measurement;
mod parts;
mod records;
mod reservations;
mod results;
mod schema;
mod simulation;
