//! Descriptions, manifests and task models, good and bad. One binary:
//! `cargo test --test description description::` runs one file's tests.

mod description;
mod editors;
mod groups;
mod import;
mod lf;
mod lf_elaboration;
mod lf_random;
mod manifest;
mod strict_manifests;
mod tasks;
