//! What cyclictest wrote with `--json` and `--histogram`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The most wake-ups that are read.
const CYCLES_MAX: u64 = 100_000_000;

/// A text that is not what cyclictest writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCyclicTest {
    /// No JSON, or another.
    #[error("this is not cyclictest's JSON with a histogram: {0}")]
    Json(String),
    /// There is not one thread.
    #[error("cyclictest measured {0} threads: one was asked for")]
    Threads(usize),
    /// The histogram has more than was measured, or more than anybody can measure.
    #[error("cyclictest's histogram has {counted} wake-ups, of {cycles} that it says it had")]
    Counts {
        /// In the histogram.
        counted: u64,
        /// What it says.
        cycles: u64,
    },
}

#[derive(Deserialize)]
struct Document {
    thread: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: BTreeMap<i64, u64>,
    cycles: u64,
    max: i64,
}

/// Its latencies in ascending order: it does not keep the order in which they were. `limit` is
/// where its histogram ends: of what is beyond it only says how often that was and the largest, so
/// all but the largest count as `limit`, which is too little.
///
/// # Errors
/// [`NotCyclicTest`].
pub fn cyclictest(text: &str, limit: i64) -> Result<Vec<i64>, NotCyclicTest> {
    let wrong = |error: serde_json::Error| NotCyclicTest::Json(error.to_string());
    let document: Document = serde_json::from_str(text).map_err(wrong)?;
    let count = document.thread.len();
    let Some((thread, 1)) = document.thread.into_values().next().zip(Some(count)) else {
        return Err(NotCyclicTest::Threads(count));
    };
    let counted = thread.histogram.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let cycles = thread.cycles;
    if counted > cycles || cycles > CYCLES_MAX {
        return Err(NotCyclicTest::Counts { counted, cycles });
    }
    let mut values = Vec::with_capacity(cycles as usize);
    for (latency, count) in thread.histogram {
        values.extend(std::iter::repeat_n(latency, count as usize));
    }
    let beyond = (cycles - counted) as usize;
    if beyond > 0 {
        values.extend(std::iter::repeat_n(limit.min(thread.max), beyond - 1));
        values.push(thread.max);
        values.sort_unstable();
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As version 2.4 writes it.
    fn text(histogram: &str, cycles: u64, max: i64) -> String {
        format!(
            r#"{{"file_version": 1, "cmdline:": "cyclictest -q", "return_code": 0,
            "num_threads": 1, "resolution_in_ns": 1, "thread": {{ "0": {{
            "histogram": {{ {histogram} }}, "cycles": {cycles}, "min": 13803, "max": {max},
            "avg": 32670.46, "cpu": 0, "node": 0 }} }} }}"#
        )
    }

    #[test]
    fn the_histogram_becomes_a_list_in_ascending_order() {
        let read = |text: &str| cyclictest(text, 1_000_000);
        let three = text(r#""19213": 2, "13803": 1"#, 3, 19_213);
        assert_eq!(read(&three).unwrap(), [13_803, 19_213, 19_213]);
        let beyond = text(r#""5": 1"#, 4, 2_345_678);
        assert_eq!(read(&beyond).unwrap(), [5, 1_000_000, 1_000_000, 2_345_678]);
        assert_eq!(read(&text("", 0, 0)).unwrap(), [0; 0]);
    }

    #[test]
    fn what_cyclictest_does_not_write_is_refused() {
        let read = |text: &str| cyclictest(text, 1_000_000).unwrap_err();
        assert_eq!(read(&text(r#""5": 9"#, 4, 5)), NotCyclicTest::Counts { counted: 9, cycles: 4 });
        let much = text("", CYCLES_MAX + 1, 5);
        assert!(matches!(read(&much), NotCyclicTest::Counts { .. }));
        assert_eq!(read(r#"{"thread": {}}"#), NotCyclicTest::Threads(0));
        for wrong in ["", "# Histogram\n000001 000002\n", r#"{"thread": {"0": {}}}"#, "[]"] {
            assert!(matches!(read(wrong), NotCyclicTest::Json(_)), "{wrong}");
        }
        assert!(matches!(read(&text(r#""x": 1"#, 1, 1)), NotCyclicTest::Json(_)));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            noise in ".{0,80}", count in any::<u64>(), at in 0..300_usize,
        ) {
            let _ = cyclictest(&noise, 1_000_000);
            let mut whole = text(&format!(r#""5": {count}, "-7": 3"#), 1_000, i64::MIN);
            let _ = cyclictest(&whole, 1_000_000);
            let at = at.min(whole.len());
            if whole.is_char_boundary(at) {
                whole.truncate(at);
                whole.push_str(&noise);
                let _ = cyclictest(&whole, 1_000_000);
            }
        }
    }
}
