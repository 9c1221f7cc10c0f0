//! No text makes the reader of execution times panic, and it reads what it writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::execution_times::{read, write};

fuzz_target!(|text: &str| {
    if let Ok(rows) = read(text, "times.csv") {
        assert_eq!(read(&write(&rows), "times.csv").expect("it was written").len(), rows.len());
    }
});
