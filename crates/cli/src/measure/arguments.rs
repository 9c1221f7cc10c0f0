//! What `measure` can be asked for.

use super::benchmarks::Settings;
use crate::arguments::{REPETITIONS_MAX, duration};
use clap::{Args, Subcommand, ValueEnum};
use onbeat_machine::benchmarks::{GpioLine, Mode, NoLine};
use onbeat_measure::measurement::NodeError;
use onbeat_model::time::{ClockError, Span};
use onbeat_run::machine::CpuList;
use std::path::PathBuf;

/// The most samples of one series.
const SAMPLES_MAX: i64 = 10_000_000;
/// Samples of tests 1 and 2 in the short form.
const SAMPLES: usize = 200_000;
/// Wake-ups of tests 3 and 4 in the short form.
const WAKES: usize = 1_500;
/// The paper's number of samples, in the long form.
const LONG: usize = 1_000_000;

#[derive(Debug, Subcommand)]
pub(crate) enum MeasureVerb {
    /// Measures execution times of Timed C segments on this machine
    #[command(after_help = "Examples:
  onbeat measure wcet program.c --duration 10s --csv times.csv
  onbeat measure wcet program --repetitions 20 --margin 20 --csv times.csv -- 7
  onbeat measure wcet program.c --json --html times.html

Several files are compiled together, with onbeat cc. What the program prints goes to standard
error.")]
    Wcet(WcetArguments),
    /// Test 1: measures the overhead of reading each clock
    #[command(after_help = "Example:\n  onbeat measure clock --cpu 3")]
    Clock(TestArguments),
    /// Test 2: measures the overhead of each clock by the other
    #[command(after_help = "Example:\n  onbeat measure cross --long --out cross")]
    Cross(TestArguments),
    /// Test 3: measures wake-up latency, beside cyclictest
    #[command(after_help = "Examples:
  onbeat measure latency
  onbeat measure latency --under-load --period 1ms --wakes 10000 --out latency")]
    Latency(TestArguments),
    /// Test 4: measures how far apart two nodes act
    #[command(after_help = "Examples:
  onbeat measure sync
  onbeat measure sync --node-offset-ns 5000 --node-drift-ppb 100
  onbeat measure sync --gpio /dev/gpiochip0:17")]
    Sync(TestArguments),
    /// Runs all five tests within five minutes and writes a report
    #[command(after_help = "Examples:
  onbeat measure all
  onbeat measure all --long --out monday
  onbeat measure all --json > measurement.json

Writes report.html, measurement.json and samples/ (docs/measurements.md).")]
    All(TestArguments),
    /// Runs the paper's nine scenarios; resumes where it was stopped
    #[command(after_help = "Examples:
  onbeat measure campaign --out campaign
  onbeat measure campaign --out campaign --sync mbs --long
  onbeat measure campaign --out campaign --apply --cores 2-3 --reboot --long

A scenario is done when its directory has a measurement. Scenarios that the machine is not set up
for are listed, and tried again the next time. With --apply the machine is set up for each and is
as before in the end (docs/measurements.md).")]
    Campaign(CampaignArguments),
    /// Runs one node of test 4
    #[command(hide = true)]
    Node(NodeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WcetArguments {
    /// C files of the program, or a program built with onbeat cc
    #[arg(required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<PathBuf>,
    /// Longest time of each run; a bare number is seconds
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Span,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=REPETITIONS_MAX))]
    pub(crate) repetitions: u32,
    /// Margin on measured worst cases, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) margin: u32,
    /// CSV file of execution times, for the description or other tools (docs/timed-c.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// HTML file with the segments' histograms
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Arguments of the program
    #[arg(last = true)]
    pub(crate) arguments: Vec<String>,
}

/// One of the paper's tests; the fifth is others under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Test {
    /// 1: overhead of reading a clock
    Clock,
    /// 2: the same by the other clock
    Cross,
    /// 3: wake-up latency
    Latency,
    /// 4: distance between the actions of two nodes
    Sync,
}

impl Test {
    /// All of them, in their order.
    pub(crate) const ALL: [Self; 4] = [Self::Clock, Self::Cross, Self::Latency, Self::Sync];

    /// Its number in the paper.
    pub(crate) const fn number(self, loaded: bool) -> u8 {
        match self {
            Self::Clock => 1,
            Self::Cross => 2,
            Self::Latency | Self::Sync if loaded => 5,
            Self::Latency => 3,
            Self::Sync => 4,
        }
    }
}

/// How to measure.
#[derive(Clone, Debug, Args)]
pub(crate) struct HowArguments {
    /// Takes the paper's 10⁶ samples of each series: hours
    #[arg(long)]
    pub(crate) long: bool,
    /// Samples of each series of tests 1 and 2 [default: 200,000; 1,000,000 with --long]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SAMPLES_MAX))]
    pub(crate) samples: Option<u32>,
    /// Wake-ups of each series of tests 3 and 4 [default: 1,500; 1,000,000 with --long]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SAMPLES_MAX))]
    pub(crate) wakes: Option<u32>,
    /// Period of wake-ups, at least 100 µs
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = period)]
    pub(crate) period: Span,
    /// CPU to measure on [default: an isolated one, else the last]
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u16>,
    /// SCHED_FIFO priority; 0: none
    #[arg(long, value_name = "N", default_value_t = 99,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) priority: u8,
    /// Holds /dev/cpu_dma_latency at 0 during the test: figures are better than without
    #[arg(long)]
    pub(crate) hold_cpu_latency: bool,
    /// Test 4: output that the first node toggles, as in /dev/gpiochip0:17
    #[arg(long, value_name = "CHIP:LINE", value_parser = line)]
    pub(crate) gpio: Option<GpioLine>,
    /// Test 4: offset of the second node's emulated clock; positive is ahead
    #[arg(long, value_name = "NS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1_000_000_000..=1_000_000_000))]
    pub(crate) node_offset_ns: Option<i64>,
    /// Test 4: frequency offset of the second node's emulated clock; positive is fast
    #[arg(long, value_name = "PPB", allow_negative_numbers = true, value_parser = drift)]
    pub(crate) node_drift_ppb: Option<i32>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    pub(crate) how: HowArguments,
    /// Test 5: adds the paper's load, by stress-ng; with `all`, to tests 1 and 2 too
    #[arg(long)]
    pub(crate) under_load: bool,
    /// Output directory for report, figures and samples [default of `all`: out-measurement]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Prints JSON for machines (docs/measurements.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignArguments {
    #[command(flatten)]
    pub(crate) how: HowArguments,
    /// Tests to run; 3 and 4 also under load
    #[arg(long, value_delimiter = ',', default_values = ["clock", "cross", "latency", "sync"])]
    pub(crate) tests: Vec<Test>,
    /// Grandmaster while this machine is a slave: the bridge or the other node
    #[arg(long, value_name = "sms|mbs")]
    pub(crate) sync: Option<Sync>,
    /// Sets the machine up for each scenario by a profile of `onbeat tune`, and undoes it after it
    #[arg(long, requires = "cores")]
    pub(crate) apply: bool,
    /// CPUs to isolate, as in 2-3
    #[arg(long, value_name = "LIST", requires = "apply")]
    pub(crate) cores: Option<CpuList>,
    /// Writes boot parameters and reboots where a scenario needs them; continues by itself
    #[arg(long, requires = "apply")]
    pub(crate) reboot: bool,
    /// A reboot was tried: none is tried again
    #[arg(long, requires = "apply", hide = true)]
    pub(crate) resumed: bool,
    /// ptp4l answered before that
    #[arg(long, requires = "resumed", hide = true)]
    pub(crate) resumed_ptp: bool,
    /// The files of another machine, with a fake kernel: nothing of this one is set
    #[arg(long, value_name = "DIRECTORY", requires = "apply", hide = true, default_value = "/")]
    pub(crate) tune_root: PathBuf,
    /// Output directory, where earlier scenarios are found
    #[arg(long, value_name = "DIRECTORY", default_value = "out-campaign")]
    pub(crate) out: PathBuf,
    /// Prints JSON for machines (docs/measurements.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who is grandmaster.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sync {
    /// Bridge
    Sms,
    /// Node
    Mbs,
}

impl From<Sync> for Mode {
    fn from(sync: Sync) -> Self {
        match sync {
            Sync::Sms => Self::Sms,
            Sync::Mbs => Self::Mbs,
        }
    }
}

/// What one node of test 4 is told by the process that started it.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// Where its samples go
    #[arg(long)]
    pub(crate) file: PathBuf,
    /// The first instant
    #[arg(long)]
    pub(crate) start_ns: i64,
    /// From one to the next
    #[arg(long)]
    pub(crate) period_ns: i64,
    /// How many
    #[arg(long)]
    pub(crate) count: usize,
    /// The processor
    #[arg(long)]
    pub(crate) cpu: u16,
    /// SCHED_FIFO priority
    #[arg(long)]
    pub(crate) priority: u8,
    /// Its clock is CLOCK_MONOTONIC with an error
    #[arg(long)]
    pub(crate) emulated: bool,
    /// How far its clock is ahead
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) offset_ns: i64,
    /// How fast its clock is
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) drift_ppb: i32,
    /// The output that it toggles
    #[arg(long, value_parser = line)]
    pub(crate) gpio: Option<GpioLine>,
}

impl HowArguments {
    /// With the defaults of the short or the long form.
    pub(super) fn settings(&self) -> Settings {
        let or = |asked: Option<u32>, short| match asked {
            Some(count) => count as usize,
            None if self.long => LONG,
            None => short,
        };
        let (offset, drift) = (self.node_offset_ns, self.node_drift_ppb);
        let node_error = (offset.is_some() || drift.is_some())
            .then(|| NodeError { offset_ns: offset.unwrap_or(0), drift_ppb: drift.unwrap_or(0) });
        Settings {
            samples: or(self.samples, SAMPLES),
            wakes: or(self.wakes, WAKES),
            period: self.period,
            cpu: self.cpu,
            priority: self.priority,
            hold_cpu_latency: self.hold_cpu_latency,
            gpio: self.gpio.clone(),
            node_error,
        }
    }
}

impl TestArguments {
    /// With the defaults of the short or the long form.
    pub(super) fn settings(&self) -> Settings {
        self.how.settings()
    }
}

fn line(text: &str) -> Result<GpioLine, NoLine> {
    text.parse()
}

fn period(text: &str) -> Result<Span, String> {
    let (least, most) = (Span::from_us(100), Span::from_s(1));
    let whole = |span: &Span| span.as_ns() % 1_000 == 0 && *span >= least && *span <= most;
    duration(text)
        .ok()
        .filter(whole)
        .ok_or_else(|| "expected whole microseconds between 100us and 1s, such as 10ms".to_owned())
}

fn drift(text: &str) -> Result<i32, String> {
    let most = ClockError::MAX_DRIFT_PPB;
    let drift = text.parse().ok().filter(|drift: &i32| drift.unsigned_abs() < most as u32);
    drift.ok_or_else(|| format!("expected a whole number between −{most} and {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_such_as_cyclictest_takes() {
        assert_eq!(period("10ms"), Ok(Span::from_ms(10)));
        assert_eq!(period("250us"), Ok(Span::from_us(250)));
        for wrong in ["", "99us", "100500ns", "2s", "-1ms"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
        assert_eq!(drift("-100"), Ok(-100));
        assert!(drift("1000000").is_err() && drift("x").is_err());
    }
}
