//! No text makes the reader of task models panic, by themselves or of a program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_description::tasks::{read, read_program};

fuzz_target!(|text: &str| {
    for found in [read(text, "tasks.toml"), read_program(text, "tasks.toml", &["f", "n"])] {
        match found {
            Ok(file) => assert!(file.graph.tasks.iter().all(|task| !task.nodes.is_empty())),
            Err(wrong) => assert!(!wrong.is_empty()),
        }
    }
});
