//! What users touch: the command, and what is built and installed for their programs. One binary,
//! so that what waits for a clock waits beside what computes; `cargo test --test cli books::` runs
//! one file's tests.

// For `fuzz_targets`: what the targets know by this name.
extern crate self as libfuzzer_sys;

mod common;

// What several of them use.
#[path = "../../bounds/tests/fifo/families.rs"]
#[allow(dead_code)] // the tests of the library use all of it
mod families;
#[path = "tfg_random/found.rs"]
mod found;
#[path = "tfg_random/loops.rs"]
mod loops;
#[path = "../../bounds/tests/fifo/published.rs"]
mod published;
#[path = "tfg_random/table.rs"]
mod table;
#[path = "timedc/trace.rs"]
mod trace;
#[path = "tfg_random/walk.rs"]
mod walk;

mod abi;
mod abort;
mod abstract_channels;
mod books;
mod boundaries;
mod bounds_command;
mod burst;
mod by_protocol;
mod campaign;
mod carried;
mod carried_on_kernel;
mod cc;
mod classes;
mod cleanup;
mod clock;
mod command;
mod compare;
mod compat;
mod completions;
mod coordinator;
mod cpp;
mod day;
mod deploy;
mod devices;
mod doctor;
mod engines;
mod experiment;
mod federated;
mod five_tests;
mod followed;
mod freertos;
mod fuzz_targets;
mod gptp_in_run;
mod groups;
mod hunt;
mod import;
mod infeasible;
mod install;
mod interference;
mod lf_bounds;
mod lf_import;
mod lf_patch;
mod lf_runtime;
mod lf_simulate;
mod lf_table;
mod lingua_franca;
mod locks;
mod measure;
mod messages;
mod nc;
mod netconf;
mod netns;
mod new;
mod noise;
mod on;
mod outside;
mod own_host;
mod perfetto;
mod recording;
mod refusals;
mod rendezvous;
mod replication;
mod sanitizers;
mod sim;
mod simulate;
mod sources;
mod sporadic;
mod srp;
mod stat;
mod tfg;
mod tfg_chains;
mod tfg_promise;
mod tfg_proof;
mod tfg_random;
mod tfg_schedule;
mod timedc;
mod timedc_flags;
mod timedc_processor;
mod timedc_random;
mod timedc_runtime;
mod timedc_table;
mod timedc_trace;
mod top;
mod trust;
mod tune;
mod turns;
mod users;
mod verbs;
mod windows;
