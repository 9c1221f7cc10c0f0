//! What segments of Timed C programs took, as their run time measured it: figures, JSON, and the
//! file of execution times that other runs take.

use crate::statistics::Statistics;
use onbeat_model::execution_times::{self, SegmentEnd, SegmentTimes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most samples of all runs together.
pub const SAMPLES_MAX: usize = 10_000_000;

/// The most segments of a program.
pub const SEGMENTS_MAX: usize = 4_096;

/// The most bins of a histogram.
const BINS_MAX: i64 = 32;

/// The columns that the run time writes.
const HEADER: &str = "src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns";

/// What no measurement can prove.
pub const WARNING: &str = "Measured, not proven: the worst case may not have occurred. The figures \
    hold for this machine, its caches, this compiler and these inputs.";

/// What is wrong with a file of samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A line is not as the run time writes it.
    #[error("line {0} is not a sample: {HEADER}")]
    Line(usize),
    /// There is more than anybody can have measured.
    #[error("more than {SAMPLES_MAX} samples or {SEGMENTS_MAX} segments")]
    TooMany,
}

/// Samples of segments, as runs add them.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    segments: BTreeMap<(String, String), Collected>,
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Collected {
    /// Processor times of segments that came to their end.
    complete: Vec<i64>,
    /// Those of aborted ones: they would have taken longer.
    aborted: Vec<i64>,
    elapsed: Vec<i64>,
    release_jitter_max: i64,
    abort_max: i64,
}

impl Samples {
    /// Adds what a run has measured: the text of the file that the run time wrote.
    ///
    /// # Errors
    /// [`Invalid`]; then nothing more of the text is added.
    pub fn add(&mut self, text: &str) -> Result<(), Invalid> {
        let lines = (1..).zip(text.lines()).filter(|(at, line)| *at > 1 || *line != HEADER);
        for (at, line) in lines {
            let (source, destination, sample) = sample(line).ok_or(Invalid::Line(at))?;
            if self.count == SAMPLES_MAX {
                return Err(Invalid::TooMany);
            }
            let known = self.segments.len();
            let collected = self.segments.entry((source, destination)).or_default();
            let [cpu, elapsed, release_jitter] = sample.times;
            match sample.abort {
                Some(abort) => {
                    collected.aborted.push(cpu);
                    collected.abort_max = collected.abort_max.max(abort);
                }
                None => collected.complete.push(cpu),
            }
            collected.elapsed.push(elapsed);
            collected.release_jitter_max = collected.release_jitter_max.max(release_jitter);
            self.count += 1;
            if known == SEGMENTS_MAX && self.segments.len() > known {
                return Err(Invalid::TooMany);
            }
        }
        Ok(())
    }

    /// The figures of all segments. `margin_percent` is what measured worst cases are increased by.
    pub fn measured(self, runs: u32, margin_percent: u32) -> Measured {
        let segments =
            self.segments.into_iter().filter_map(|((source, destination), collected)| {
                segment(source, destination, collected, margin_percent)
            });
        let mut segments: Vec<_> = segments.collect();
        segments.sort_by_cached_key(|s| (place(&s.source), place(&s.destination)));
        Measured {
            format: "onbeat-execution-times",
            version: 1,
            warning: WARNING,
            runs,
            margin_percent,
            segments,
        }
    }
}

struct Sample {
    /// Processor time, elapsed time, release jitter.
    times: [i64; 3],
    abort: Option<i64>,
}

fn sample(line: &str) -> Option<(String, String, Sample)> {
    let fields: Vec<&str> = line.splitn(7, ',').collect();
    let &[source, destination, cpu, elapsed, jitter, abort] = fields.as_slice() else {
        return None;
    };
    // The names must be such as the file of execution times takes.
    let row = format!("{source},0,0,0,0,{destination}");
    let rows = execution_times::read(&row, "").ok()?;
    let named = matches!(rows.as_slice(), [SegmentTimes { source: SegmentEnd::Named { .. }, .. }]);
    let time = |text: &str| text.parse::<i64>().ok().filter(|ns| *ns >= 0);
    // A clock that is read twice may give jitter a sign.
    let jitter = jitter.parse::<i64>().ok()?.max(0);
    let times = [time(cpu)?, time(elapsed)?, jitter];
    let abort = if abort.is_empty() { None } else { Some(time(abort)?) };
    named.then(|| (source.to_owned(), destination.to_owned(), Sample { times, abort }))
}

/// Tasks by name; of a task the start first, lines in order, the end last.
fn place(node: &str) -> (String, u8, String, u32, u32) {
    let (task, place) = node.split_once(':').unwrap_or((node, ""));
    let (file, line) = place.rsplit_once(':').unwrap_or(("", place));
    let (line, which) = line.split_once('.').unwrap_or((line, "1"));
    let order = match place {
        "start" => 0,
        "end" => 2,
        _ => 1,
    };
    let number = |text: &str| text.parse().unwrap_or(0);
    (task.to_owned(), order, file.to_owned(), number(line), number(which))
}

/// What was measured of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    format: &'static str,
    version: u32,
    warning: &'static str,
    /// How many runs the samples are of.
    pub runs: u32,
    /// What the written worst cases have above the measured ones.
    pub margin_percent: u32,
    /// By task, then in the order of the text.
    pub segments: Vec<Segment>,
}

/// What was measured of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Where it begins, as `task:line`.
    pub source: String,
    /// Where it ends.
    pub destination: String,
    /// How many samples.
    pub samples: usize,
    /// How many of them were aborted.
    pub aborted: usize,
    /// Processor time of those that were not.
    pub cpu_ns: Option<Statistics>,
    /// The value that 999 of 1,000 do not exceed.
    pub cpu_p999_ns: Option<i64>,
    /// The longest of all, the aborted ones too: less than these would have taken.
    pub cpu_max_ns: i64,
    /// From release to arrival: with what the task waited for, and what else ran.
    pub elapsed_ns: Statistics,
    /// The latest release after the instant that it was asked for.
    pub release_jitter_max_ns: i64,
    /// The longest time from a deadline to the timing point.
    pub abort_max_ns: i64,
    /// The measured worst case with the margin, rounded up.
    pub wcet_ns: i64,
    /// Processor times of those that were not aborted; bins without samples are not listed.
    pub histogram: Vec<Bin>,
}

/// How many samples were in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// The first value of it.
    pub from_ns: i64,
    /// The first value after it.
    pub to_ns: i64,
    /// How many samples.
    pub count: u64,
}

fn segment(
    source: String,
    destination: String,
    collected: Collected,
    margin_percent: u32,
) -> Option<Segment> {
    let aborted = collected.aborted.len();
    let mut complete = collected.complete.clone();
    complete.sort_unstable();
    let cpu_max_ns = complete.iter().chain(&collected.aborted).copied().max()?;
    let grown = i128::from(cpu_max_ns) * i128::from(100 + u64::from(margin_percent));
    Some(Segment {
        source,
        destination,
        samples: complete.len() + aborted,
        aborted,
        cpu_p999_ns: complete.get((complete.len() * 999).div_ceil(1000).max(1) - 1).copied(),
        histogram: histogram(&complete),
        cpu_ns: Statistics::of(complete),
        cpu_max_ns,
        elapsed_ns: Statistics::of(collected.elapsed)?,
        release_jitter_max_ns: collected.release_jitter_max,
        abort_max_ns: collected.abort_max,
        wcet_ns: i64::try_from((grown + 99) / 100).unwrap_or(i64::MAX),
    })
}

/// Bins that grow with their values: each power of two has the same number of them, as many as
/// there is room for. A single outlier then does not squeeze all others into one.
fn histogram(values: &[i64]) -> Vec<Bin> {
    let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) else {
        return Vec::new();
    };
    let bits = (0..=16).rev().find(|bits| bin_of(*max, *bits) - bin_of(*min, *bits) < BINS_MAX);
    let bits = bits.unwrap_or(0);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(bin_of(*value, bits)).or_default() += 1;
    }
    let bin =
        |(at, count)| Bin { from_ns: start_of(at, bits), to_ns: start_of(at + 1, bits), count };
    counts.into_iter().map(bin).collect()
}

/// Which bin a value is in, where each power of two has 2^`bits` of them.
pub(crate) fn bin_of(value: i64, bits: u32) -> i64 {
    let power = value.max(1).ilog2();
    if power < bits {
        return value;
    }
    let shift = power - bits;
    (i64::from(shift) << bits) + (value >> shift)
}

/// The first value of a bin.
pub(crate) fn start_of(bin: i64, bits: u32) -> i64 {
    let shift = ((bin >> bits) - 1).max(0) as u32;
    let within = bin - (i64::from(shift) << bits);
    i64::try_from(i128::from(within) << shift).unwrap_or(i64::MAX)
}

impl Measured {
    /// The file of execution times.
    pub fn to_csv(&self) -> String {
        let rows = self.segments.iter().filter_map(|segment| {
            let best = segment.cpu_ns.map_or(0, |cpu| cpu.min);
            let line = format!(
                "{},{best},{},{},{},{}",
                segment.source,
                segment.wcet_ns,
                segment.release_jitter_max_ns,
                segment.abort_max_ns,
                segment.destination
            );
            execution_times::read(&line, "").ok()?.pop()
        });
        execution_times::write(&rows.collect::<Vec<_>>())
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(self).expect("figures are plain JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns\n\
        b:start,b:7,100,300,5,\n\
        a:16.2,a:9,10,20,-3,\n\
        a:start,a:9,30,40,0,\n\
        b:start,b:7,120,300,9,\n\
        a:9,a:end,1,1,0,\n\
        b:start,b:7,201,400,2,17\n";

    fn measured(text: &str, margin: u32) -> Measured {
        let mut samples = Samples::default();
        samples.add(text).unwrap();
        samples.measured(1, margin)
    }

    #[test]
    fn an_aborted_segment_counts_for_the_worst_case_only() {
        let measured = measured(TEXT, 0);
        let b = measured.segments.last().unwrap();
        assert_eq!((b.samples, b.aborted), (3, 1));
        let cpu = b.cpu_ns.unwrap();
        assert_eq!((cpu.min, cpu.max, b.cpu_max_ns), (100, 120, 201));
        assert_eq!(b.histogram.iter().map(|bin| bin.count).sum::<u64>(), 2);
        assert_eq!((b.release_jitter_max_ns, b.abort_max_ns), (9, 17));
        assert!(measured.to_json().contains(r#""cpu_max_ns": 201"#));
    }

    #[test]
    fn the_file_of_execution_times_has_the_margin_rounded_up_and_the_order_of_the_text() {
        assert_eq!(
            measured(TEXT, 10).to_csv(),
            "SRC,BCET,WCET,JITTER,ABORT,DST\n\
             a:start,30,33,0,0,a:9\n\
             a:9,1,2,0,0,a:end\n\
             a:16.2,10,11,0,0,a:9\n\
             b:start,100,222,9,17,b:7\n"
        );
    }

    #[test]
    fn what_the_run_time_does_not_write_is_named_by_its_line() {
        for (text, line) in [
            ("a:1,a:2,1,2,3\n", 1),
            ("a:1,a:2,1,2,3,,\n", 1),
            ("src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns\na:1,a:2,-1,2,3,\n", 2),
            ("a:1,a:2,1,2,3,\n\n", 2),
            ("0,1,1,2,3,\n", 1),
            ("a:1,b:2,1,2,3,\n", 1),
        ] {
            let error = Samples::default().add(text).unwrap_err();
            assert_eq!(error, Invalid::Line(line), "{text}");
        }
    }

    #[test]
    fn no_more_segments_are_taken_than_a_program_may_have() {
        let line = |at| format!("a:start,a:{at},1,2,3,\n");
        let fits: String = (1..=SEGMENTS_MAX).map(line).collect();
        assert_eq!(Samples::default().add(&fits), Ok(()));
        let more = fits + &line(SEGMENTS_MAX + 1);
        assert_eq!(Samples::default().add(&more), Err(Invalid::TooMany));
    }

    proptest! {
        #[test]
        fn every_value_is_in_its_bin_and_there_are_not_too_many(
            values in proptest::collection::vec(
                prop_oneof![0i64..200, 0i64..1 << 40, Just(i64::MAX)], 1..80),
        ) {
            let bins = histogram(&values);
            prop_assert!(bins.len() as i64 <= 2 * BINS_MAX);
            prop_assert!(bins.windows(2).all(|pair| pair[0].to_ns <= pair[1].from_ns));
            for bin in &bins {
                let last = bin.to_ns == i64::MAX;
                let within = |v: &&i64| **v >= bin.from_ns && (**v < bin.to_ns || last);
                prop_assert_eq!(values.iter().filter(within).count() as u64, bin.count);
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "([a:0-9,.\n-]|a:1,a:2,1,2,3,4\n){0,40}") {
            let mut samples = Samples::default();
            let _ = samples.add(&text);
            let measured = samples.measured(1, 1000);
            let _ = measured.to_json();
            let rows = execution_times::read(&measured.to_csv(), "").unwrap();
            prop_assert_eq!(rows.len(), measured.segments.len());
        }
    }
}
