//! How well machines' clocks were synchronised during a run, as linuxptp measured it there.

use onbeat_model::record::TimeErrorSample;
use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was measured of a machine's clock during a run, about once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeErrors {
    /// Of the clock that ptp4l keeps against its master's; null if it measured no Sync.
    pub ptp4l: Option<TimeErrorFigures>,
    /// Of CLOCK_TAI against the interface's hardware clock, which phc2sys keeps small; null without
    /// such a clock.
    pub phc2sys: Option<TimeErrorFigures>,
    /// When they were asked for, in the run's time.
    pub at_ns: Vec<i64>,
    /// How far the clock was ahead then, by ptp4l; null if it had measured nothing new.
    pub ptp4l_ns: Vec<Option<i64>>,
    /// The same against the hardware clock.
    pub phc2sys_ns: Vec<Option<i64>>,
}

/// Figures of time errors, as ptp4l and phc2sys sum them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeErrorFigures {
    /// How many were measured.
    pub samples: u64,
    /// The root of the mean of their squares, rounded down.
    pub rms_ns: i64,
    /// The largest, without its sign.
    pub largest_ns: i64,
    /// Their mean, with its sign, rounded towards zero.
    pub mean_ns: i64,
}

impl TimeErrors {
    /// None without samples.
    pub(crate) fn of(samples: &[TimeErrorSample]) -> Option<Self> {
        let values = |of: fn(&TimeErrorSample) -> Option<Span>| -> Vec<Option<i64>> {
            samples.iter().map(|sample| of(sample).map(Span::as_ns)).collect()
        };
        let (ptp4l_ns, phc2sys_ns) = (values(|s| s.ptp4l), values(|s| s.phc2sys));
        let this = Self {
            ptp4l: TimeErrorFigures::of(&ptp4l_ns),
            phc2sys: TimeErrorFigures::of(&phc2sys_ns),
            at_ns: samples.iter().map(|sample| sample.at.as_ns()).collect(),
            ptp4l_ns,
            phc2sys_ns,
        };
        (!samples.is_empty()).then_some(this)
    }
}

impl TimeErrorFigures {
    fn of(values: &[Option<i64>]) -> Option<Self> {
        let all = || values.iter().flatten().map(|ns| i128::from(*ns));
        let count = all().count() as i128;
        let largest = all().map(i128::abs).max()?;
        let squares = all().map(|ns| ns.unsigned_abs().pow(2));
        let squares = squares.fold(0, u128::saturating_add) / count.unsigned_abs();
        let limited = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        Some(Self {
            samples: count as u64,
            rms_ns: i64::try_from(squares.isqrt()).unwrap_or(i64::MAX),
            largest_ns: limited(largest),
            mean_ns: limited(all().sum::<i128>() / count),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::time::NetTime;

    #[test]
    fn figures_are_of_what_was_measured_alone() {
        let sample = |at, ptp4l: Option<i64>| TimeErrorSample {
            at: NetTime::from_ns(at),
            ptp4l: ptp4l.map(Span::from_ns),
            phc2sys: None,
        };
        let samples = [sample(0, Some(-700)), sample(1, None), sample(2, Some(100))];
        let errors = TimeErrors::of(&samples).expect("samples");
        let figures = TimeErrorFigures { samples: 2, rms_ns: 500, largest_ns: 700, mean_ns: -300 };
        assert_eq!((errors.ptp4l, errors.phc2sys), (Some(figures), None));
        assert_eq!(errors.ptp4l_ns, [Some(-700), None, Some(100)]);
        assert_eq!(TimeErrors::of(&[]), None);
        let huge = [Some(i64::MIN), Some(i64::MIN)];
        let figures = TimeErrorFigures::of(&huge).expect("some");
        assert_eq!((figures.rms_ns, figures.largest_ns), (i64::MAX, i64::MAX));
        assert_eq!(figures.mean_ns, i64::MIN);
    }
}
