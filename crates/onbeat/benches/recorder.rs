//! What it costs to record a message: counted only, with each thing that can be switched on, and
//! counted without the way to switch anything on.
//!
//! `cargo bench -p onbeat --bench recorder [-- MILLIONS]`

use onbeat::clock::{MonoTime, pause};
use onbeat::instrument::{Instruments, Watch};
use onbeat::interface::{Limits, NetworkClock, Timebase};
use onbeat::recorder::Recorder;
use onbeat::shared_log::{Board, Identity};
use onbeat_model::record::{Record, Role};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::StreamId;
use onbeat_runtime::channel_io::Log;
use std::sync::Arc;

/// Rounds, of which the fastest counts: the others were disturbed.
const ROUNDS: usize = 9;

fn main() {
    let millions: u64 = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(2);
    let count = millions * 1_000_000 / ROUNDS as u64;
    let board = Board::new().expect("memory");
    let base = Arc::new(Timebase::default());
    base.begin(NetworkClock::Tai { epoch: 0, watch: None }, Limits::NONE);
    let identity =
        Identity { channel: "bench".to_owned(), stream_id: StreamId(1), role: Role::Listener };
    let shared = || {
        let mut shared = board.end().expect("an end");
        shared.introduce(&identity);
        shared
    };
    let directory = std::env::temp_dir().join(format!("onbeat-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory");
    let log = Some(directory.join("log.csv"));

    println!("nanoseconds per record of a received message, fastest of {ROUNDS} rounds");
    println!("{:<34}{:>7.1}", "counters alone", fastest(shared(), count));
    println!(
        "{:<34}{:>7.1}",
        "recorder, all switched off",
        fastest(Recorder::new(shared()), count)
    );
    let long = Some(Span::from_s(3_600));
    for (name, watch, count) in [
        // As many as fit at once: full speed would be faster than any file.
        ("recorder, delay log", Watch { log, ..Watch::default() }, 256),
        ("recorder, stop-on-latency", Watch { break_at: long, ..Watch::default() }, count),
        ("recorder, trace markers", Watch { trace: true, ..Watch::default() }, count / 10),
    ] {
        match Instruments::new(&watch, &base, 0) {
            Ok(on) => {
                let recorder = Recorder::with(shared(), on.probe(&identity, 64));
                println!("{name:<34}{:>7.1}", fastest(recorder, count));
            }
            Err(error) => println!("{name:<34} not measured: {error}"),
        }
    }
    std::fs::remove_dir_all(&directory).expect("removed");
}

fn fastest(mut log: impl Log, count: u64) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        pause(Span::from_ms(20)); // for the thread that writes the log
        let start = MonoTime::now();
        for sequence in 0..count {
            let capture = Some(SyncedTime::from_ns(sequence as i64));
            let record = Record { sequence, capture, receive: capture, ..Record::default() };
            log.push(std::hint::black_box(&record));
        }
        (MonoTime::now() - start).as_ns() as f64 / count as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}
