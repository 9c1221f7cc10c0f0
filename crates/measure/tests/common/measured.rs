//! A measurement made by hand.

use onbeat_measure::measurement::{
    Comparison, FORMAT, MachineDescription, Measurement, Series, SeriesName, Settings, Tool,
    VERSION, stalls,
};
use std::collections::BTreeMap;

fn series(name: &str, test: u8, tool: Tool, values: &[i64]) -> Series {
    let loaded = name.starts_with("load.");
    let base = name.trim_start_matches("load.");
    Series::of(SeriesName { base, loaded }, "What it is", test, tool, values).expect("values")
}

/// Of `clock.lc` 90 ns and once 1,000 ns; wake-ups of 10 and 30 µs beside cyclictest's of 10 and
/// 20 µs; offsets on both sides of zero under load.
pub(crate) fn by_hand() -> (Measurement, BTreeMap<String, Vec<i64>>) {
    let mut clock = vec![90; 99];
    clock.push(1_000);
    let ours = vec![10_000, 30_000, 10_000, 500_000];
    let theirs = vec![10_000, 20_000];
    let offsets = vec![-61_000, 4_000, 0];
    let series = vec![
        series("clock.lc", 1, Tool::Onbeat, &clock),
        series("latency.lc", 3, Tool::Onbeat, &ours),
        series("latency.lc.cyclictest", 3, Tool::Cyclictest, &theirs),
        series("load.sync.offset", 5, Tool::Onbeat, &offsets),
    ];
    let measurement = Measurement {
        format: FORMAT.into(),
        version: VERSION,
        scenario: None,
        machine: MachineDescription {
            cpu: Some("<Atom & Co>".into()),
            throttle_us: Some(950_000),
            ..MachineDescription::default()
        },
        settings: Settings { priority: 99, period_ns: 10_000_000, ..Settings::default() },
        comparisons: Vec::from_iter(Comparison::of(&series[1], &series[2])),
        series,
        stalls: Vec::from_iter(stalls("latency.lc", &[&ours, &[0, 0, 0, 400_000]])),
        notes: vec!["memory is not locked: <why>".into()],
    };
    let values = [("clock.lc", clock), ("latency.lc", ours), ("load.sync.offset", offsets)];
    let values = values.map(|(name, values)| (name.to_owned(), values));
    (measurement, BTreeMap::from(values))
}
