//! The JSON contract, version 2. `docs/measurements.md` explains it,
//! `schema/measurement.schema.json` is made from these types.

use super::campaign::ScenarioOutcome;
use super::figures::Figures;
use crate::contract::{indented, schema_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const FORMAT: &str = "onbeat-measurement";
/// The version of the contract that these types are.
pub const VERSION: u32 = 2;

/// What was measured on a machine. All times are whole nanoseconds. Under one version fields may be
/// added; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Always `onbeat-measurement`.
    pub format: String,
    /// Which contract this is: 2.
    pub version: u32,
    /// The scenario of a campaign that was measured.
    pub scenario: Option<ScenarioOutcome>,
    /// On what.
    pub machine: MachineDescription,
    /// How.
    pub settings: Settings,
    /// The series in the order of the tests.
    pub series: Vec<Series>,
    /// Our own wake-ups beside cyclictest's in the same run.
    pub comparisons: Vec<Comparison>,
    /// Instants at which all sides were late together.
    pub stalls: Vec<Stalls>,
    /// What was asked for and not done, and why; what makes figures look better than they are.
    pub notes: Vec<String>,
}

/// The machine, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineDescription {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Whether the kernel is fully preemptible (PREEMPT_RT).
    pub real_time: bool,
    /// The processor's name.
    pub cpu: Option<String>,
    /// The processors in use, as in `0-3`.
    pub processors: String,
    /// Those that the scheduler leaves alone; empty: none.
    pub isolated: String,
    /// Those without a tick while one thread runs; empty: none.
    pub no_tick: String,
    /// Whether a hypervisor is below.
    pub virtualised: bool,
    /// What the kernel reads time from.
    pub clock_source: Option<String>,
    /// How the processors' frequency is chosen.
    pub governor: Option<String>,
    /// How idle processors are put to sleep.
    pub idle_driver: Option<String>,
    /// What real-time threads may take of each second, in microseconds; -1: all.
    pub throttle_us: Option<i64>,
}

/// How it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Samples of each series of tests 1 and 2, and of the output's pulses.
    pub samples: u64,
    /// Wake-ups of each series of tests 3 and 4.
    pub wakes: u64,
    /// From one wake-up to the next.
    pub period_ns: i64,
    /// The processor that was measured on.
    pub cpu: u16,
    /// Those on which threads woke up at the same instants, in test 3.
    pub witnesses: Vec<u16>,
    /// The SCHED_FIFO priority; 0: none.
    pub priority: u8,
    /// Whether all memory was locked.
    pub memory_locked: bool,
    /// Whether `/dev/cpu_dma_latency` was held at 0: idle states were shallower than without a
    /// measurement.
    pub cpu_latency_held: bool,
    /// The clock error that the second node of test 4 was given; its clock is emulated then.
    pub node_error: Option<NodeError>,
    /// The output that was used, as in `/dev/gpiochip0:17`.
    pub gpio: Option<String>,
    /// How the load was started, where there was one.
    pub load: Option<Vec<String>>,
}

/// An emulated clock's error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeError {
    /// At the first instant; positive: ahead.
    pub offset_ns: i64,
    /// Its rate's, in parts of 10⁹; positive: fast.
    pub drift_ppb: i32,
}

/// Who measured a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// Onbeat itself.
    Onbeat,
    /// cyclictest of rt-tests.
    Cyclictest,
}

/// What the name of a series is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesName<'a> {
    /// `clock.lc`, without what says that there was load.
    pub base: &'a str,
    /// Whether there was load.
    pub loaded: bool,
}

impl std::fmt::Display for SeriesName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.loaded { "load." } else { "" }, self.base)
    }
}

/// One quantity, measured often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Unique, as in `clock.lc`; its values are in `samples/NAME.csv`.
    pub name: String,
    /// What it is, for a person.
    pub what: String,
    /// Which of the paper's tests, 1 to 5.
    pub test: u8,
    /// Whether there was load.
    pub under_load: bool,
    /// Who measured it.
    pub tool: Tool,
    /// Always `ns`.
    pub unit: String,
    /// Whether the values are in the order in which they were measured; otherwise in ascending
    /// order within each block.
    pub ordered: bool,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Series {
    /// A series of at least one value; `None` of none.
    pub fn of(
        name: SeriesName<'_>,
        what: &str,
        test: u8,
        tool: Tool,
        values: &[i64],
    ) -> Option<Self> {
        Some(Self {
            name: name.to_string(),
            what: what.to_owned(),
            test,
            under_load: name.loaded,
            tool,
            unit: "ns".into(),
            ordered: tool == Tool::Onbeat,
            figures: Figures::of(values)?,
        })
    }
}

/// Two series of one quantity that were measured in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Ours.
    pub series: String,
    /// The other's.
    pub with: String,
    /// Our median in thousandths of the other's.
    pub p50_per_mille: i64,
    /// Our 99th percentile in thousandths of the other's.
    pub p99_per_mille: i64,
}

impl Comparison {
    /// Compares two series; `None` if the other's percentiles are not positive.
    pub fn of(ours: &Series, theirs: &Series) -> Option<Self> {
        let per_mille = |ours: i64, theirs: i64| {
            let ratio = i128::from(ours) * 1_000 / i128::from(theirs.max(1));
            (theirs > 0).then(|| i64::try_from(ratio).unwrap_or(i64::MAX))
        };
        Some(Self {
            series: ours.name.clone(),
            with: theirs.name.clone(),
            p50_per_mille: per_mille(ours.figures.p50, theirs.figures.p50)?,
            p99_per_mille: per_mille(ours.figures.p99, theirs.figures.p99)?,
        })
    }
}

/// How often the threads of a series were late, and how often all sides at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// Of which series.
    pub series: String,
    /// How many threads woke up at the same instants, the series' own too.
    pub sides: u64,
    /// How many instants.
    pub instants: u64,
    /// Later than this is late, for the series' own thread: three times its median and 50 µs.
    pub late_above: i64,
    /// How often the series' own thread was late.
    pub late: u64,
    /// How often all sides were late: the whole machine stood still.
    pub together: u64,
    /// The longest of these, by its most punctual side; 0 if there is none.
    pub together_max: i64,
}

impl Measurement {
    /// The series of that name.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// As indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        indented(self)
    }
}

/// Reads a document again.
///
/// # Errors
/// What is wrong with the text, for a person.
pub fn read(text: &str) -> Result<Measurement, String> {
    let read: Measurement = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if read.format != FORMAT || read.version != VERSION {
        return Err(format!(
            "this is {} version {}, not {FORMAT} version {VERSION}",
            read.format, read.version
        ));
    }
    Ok(read)
}

/// The JSON Schema of [`Measurement`]. Ends with a line feed.
pub fn schema() -> String {
    schema_of::<Measurement>()
}
