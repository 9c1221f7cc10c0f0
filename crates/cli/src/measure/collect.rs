//! What the benchmarks have measured so far.

use super::benchmarks::Settings;
use onbeat_machine::benchmarks::Facts;
use onbeat_measure::measurement::{
    Comparison, FORMAT, MachineDescription, Measurement, Series, SeriesName, Settings as Written,
    Tool, VERSION, stalls,
};
use std::collections::BTreeMap;

/// Series, and their values by name.
pub(super) struct Collected {
    pub(super) document: Measurement,
    pub(super) values: BTreeMap<String, Vec<i64>>,
    /// Whether it is measured under load.
    pub(super) loaded: bool,
}

/// What a series is, beside its values.
#[derive(Clone, Copy)]
pub(super) struct What<'a> {
    pub(super) name: &'a str,
    pub(super) what: &'a str,
    pub(super) test: u8,
    pub(super) tool: Tool,
}

impl Collected {
    /// Nothing yet, on that machine.
    pub(super) fn nothing(facts: &Facts, settings: &Settings) -> Self {
        let settings = Written {
            samples: settings.samples as u64,
            wakes: settings.wakes as u64,
            period_ns: settings.period.as_ns(),
            node_error: settings.node_error,
            gpio: settings.gpio.as_ref().map(ToString::to_string),
            ..Written::default()
        };
        let document = Measurement {
            format: FORMAT.into(),
            version: VERSION,
            scenario: None,
            machine: describe(facts),
            settings,
            series: Vec::new(),
            comparisons: Vec::new(),
            stalls: Vec::new(),
            notes: Vec::new(),
        };
        Self { document, values: BTreeMap::new(), loaded: false }
    }

    /// Something that a reader of the figures has to know.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.document.notes.contains(&note) {
            self.document.notes.push(note);
        }
    }

    fn name(&self, base: &str) -> String {
        SeriesName { base, loaded: self.loaded }.to_string()
    }

    /// A series; nothing of one without values.
    pub(super) fn add(&mut self, what: What<'_>, values: Vec<i64>) {
        let name = SeriesName { base: what.name, loaded: self.loaded };
        let series = Series::of(name, what.what, what.test, what.tool, &values);
        self.document.series.extend(series);
        if !values.is_empty() {
            self.values.insert(name.to_string(), values);
        }
    }

    /// How two series that have been added compare.
    pub(super) fn compare(&mut self, ours: &str, theirs: &str) {
        let (ours, theirs) = (self.name(ours), self.name(theirs));
        let found = self.document.series(&ours).zip(self.document.series(&theirs));
        let comparison = found.and_then(|(ours, theirs)| Comparison::of(ours, theirs));
        self.document.comparisons.extend(comparison);
    }

    /// Judges the instants of a series.
    pub(super) fn evaluate(&mut self, name: &str, sides: &[&[i64]]) {
        let found = stalls(&self.name(name), sides);
        self.document.stalls.extend(found);
    }
}

fn describe(facts: &Facts) -> MachineDescription {
    MachineDescription {
        kernel: facts.kernel.clone(),
        real_time: facts.is_real_time,
        cpu: facts.cpu.clone(),
        processors: facts.online.to_string(),
        isolated: facts.isolated.to_string(),
        no_tick: facts.no_tick.to_string(),
        virtualised: facts.is_virtual,
        clock_source: facts.clock_source.clone(),
        governor: facts.governor.clone(),
        idle_driver: facts.idle_driver.clone(),
        throttle_us: facts.throttle_us,
    }
}
