//! What Pérez et al. 2024 publish of the five tests, in words and numbers of its section 5; most of
//! its figures are only drawn, on logarithmic scales.

use onbeat_measure::measurement::Series;

/// Published figures for one series, in ns; what is not said is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Published {
    /// For which series of ours.
    pub(super) series: &'static str,
    /// Which figure and scenario.
    pub(super) place: &'static str,
    pub(super) min: Option<i64>,
    pub(super) avg: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) stddev: Option<i64>,
}

const NOTHING: Published =
    Published { series: "", place: "", min: None, avg: None, max: None, stddev: None };

const ALL: [Published; 6] = [
    Published {
        series: "clock.lc",
        place: "fig. 3, about, all scenarios",
        min: Some(71),
        max: Some(13_000),
        stddev: Some(50),
        ..NOTHING
    },
    Published {
        series: "clock.gc",
        place: "fig. 4, about, all scenarios",
        max: Some(18_000),
        ..NOTHING
    },
    Published {
        series: "gpio.pulse",
        place: "fig. 9",
        min: Some(22_000),
        avg: Some(24_000),
        max: Some(50_000),
        ..NOTHING
    },
    Published {
        series: "sync.offset",
        place: "fig. 10, about, by oscilloscope",
        stddev: Some(1_000),
        ..NOTHING
    },
    Published {
        series: "load.sync.offset",
        place: "fig. 12, RT-SMS, by oscilloscope",
        max: Some(60_000),
        stddev: Some(3_200),
        ..NOTHING
    },
    Published {
        series: "load.sync.offset",
        place: "fig. 13, CPUSET-SMS, by oscilloscope",
        max: Some(56_000),
        stddev: Some(4_000),
        ..NOTHING
    },
];

/// What is published beside a series.
pub(super) fn published(series: &Series) -> impl Iterator<Item = &'static Published> {
    ALL.iter().filter(move |published| published.series == series.name)
}

/// What the paper says in words about what it only draws.
pub(super) const IN_WORDS: &str = "Pérez et al. 2024 draw tests 2 and 3 only, on logarithmic \
    scales: test 2 is like test 1 in all scenarios; in test 3 the largest latency is lower where \
    processors are isolated, mean and least are alike. Their machine: Intel Atom E3845 at \
    1.91 GHz, Linux 4.9 with PREEMPT_RT.";
