//! What people see of the clocks that gPTP kept: a table for a terminal, and on pages a line each
//! beside it.

use crate::grid::{grid, ruled};
use crate::text::us;
use comfy_table::CellAlignment;
use onbeat_measure::{ClockDifference, ClockErrors, ClockResult, WakeupOffset};
use onbeat_model::time::Span;
use serde::Serialize;

/// How many colours the style sheet has for lines.
const COLOURS: usize = 6;
/// The plot in units of its SVG: from the left, from above, to the right and down.
const PLOT: [i64; 4] = [90, 10, 890, 210];

/// The clocks of one run or simulation.
#[derive(Debug, Serialize)]
pub(crate) struct ClockChart {
    title: String,
    lines: Vec<ErrorCurve>,
    fault: Option<Shade>,
    /// Where no error is.
    zero: i64,
    top: String,
    bottom: String,
    end: String,
    rows: Vec<[String; 7]>,
}

#[derive(Debug, Serialize)]
struct ErrorCurve {
    name: String,
    points: String,
    colour: usize,
}

#[derive(Debug, Serialize)]
struct Shade {
    x: i64,
    width: i64,
}

impl ClockChart {
    /// None without clocks.
    pub(crate) fn new(title: &str, clocks: &[ClockResult]) -> Option<Self> {
        if clocks.is_empty() {
            return None;
        }
        let all = || clocks.iter().flat_map(|clock| &clock.error_ns).copied();
        let (low, high) = (all().min().unwrap_or(0).min(-1), all().max().unwrap_or(0).max(1));
        let ends = clocks.iter().flat_map(|clock| &clock.at_ns).copied();
        let end = ends.max().unwrap_or(0).max(1);
        let [left, above, right, below] = PLOT;
        let place = |value: i64, of: i64, size: i64| {
            i64::try_from(i128::from(value) * i128::from(size) / i128::from(of.max(1)))
                .unwrap_or_default()
        };
        let x = |at: i64| left + place(at, end, right - left);
        let height = i128::from(high) - i128::from(low);
        let height = i64::try_from(height).unwrap_or(i64::MAX);
        let y = |error: i64| above + place(high.saturating_sub(error), height, below - above);
        let line = |(number, clock): (usize, &ClockResult)| {
            let points = clock.at_ns.iter().zip(&clock.error_ns);
            let points: Vec<_> =
                points.map(|(at, error)| format!("{},{}", x(*at), y(*error))).collect();
            ErrorCurve {
                name: clock.node.clone(),
                points: points.join(" "),
                colour: number % COLOURS,
            }
        };
        let fault = clocks.iter().find_map(|clock| clock.fault_ns).map(|from| {
            let x = x(from.clamp(0, end));
            Shade { x, width: right - x }
        });
        Some(Self {
            title: title.to_owned(),
            lines: clocks.iter().enumerate().map(line).collect(),
            fault,
            zero: y(0),
            top: Span::from_ns(high).to_string(),
            bottom: Span::from_ns(low).to_string(),
            end: Span::from_ns(end).to_string(),
            rows: clocks.iter().map(cells).collect(),
        })
    }
}

/// The clocks as a table for a terminal, without a line feed at its end; none without any.
pub(crate) fn clock_table(clocks: &[ClockResult]) -> Option<String> {
    if clocks.is_empty() {
        return None;
    }
    let headings =
        ["clock", "plan", "before faults", "during", "after", "in order after", "follows"];
    let mut table = grid(&headings);
    for clock in clocks {
        table.add_row(cells(clock));
    }
    for column in table.column_iter_mut().take(6).skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Some(ruled(&table))
}

/// A clock's row of a table.
fn cells(clock: &ClockResult) -> [String; 7] {
    let span = |ns: i64| Span::from_ns(ns).to_string();
    let errors = |phase: Option<ClockErrors>| phase.map_or("-".into(), |p| span(p.error_ns));
    [
        clock.node.clone(),
        span(clock.assumed_ns),
        errors(clock.before),
        errors(clock.during),
        errors(clock.after),
        match (clock.back_after_ns, clock.fault_ns) {
            (Some(after), _) => span(after),
            (None, Some(_)) => "not".to_owned(),
            (None, None) => "-".to_owned(),
        },
        clock.grandmaster.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// How far two machines' clocks are apart, as far as messages show it.
pub fn clock_difference(apart: &ClockDifference) -> String {
    let ClockDifference { host, other, least_ns, greatest_ns, .. } = apart;
    let span = |ns: &i64| Span::from_ns(*ns).to_string();
    let than = |ns: &i64, host: &str, other: &str| match ns.is_negative() {
        false => format!("{other} at most {} ahead of {host}", span(ns)),
        true => format!("{other} at least {} behind {host}", span(&ns.saturating_neg())),
    };
    match (least_ns, greatest_ns) {
        (Some(least), Some(greatest)) if least > greatest => format!(
            "{host} and {other}: their difference changed by {} at least",
            span(&least.saturating_sub(*greatest))
        ),
        (Some(least), Some(greatest)) => {
            format!("{other} less {host}: from {} to {}", span(least), span(greatest))
        }
        (None, Some(greatest)) => than(greatest, host, other),
        (Some(least), None) => than(&least.saturating_neg(), other, host),
        (None, None) => format!("{host} and {other}: unknown"),
    }
}

/// By how much a listener woke after its talker, in words.
pub fn wakeup_offset(offset: &WakeupOffset) -> String {
    let WakeupOffset { ns, uncertainty_ns } = offset;
    let (mean, signed) = (ns.signed_avg(), ns.signed);
    let side = if mean < 0 { "before" } else { "after" };
    let range = signed.map_or(String::new(), |it| format!(" ({} to {})", us(it.min), us(it.max)));
    let mean = us(mean.saturating_abs());
    match uncertainty_ns {
        0 => format!("{mean} µs {side} the talker on average{range}"),
        _ => format!(
            "{mean} µs {side} the talker on average{range}, ± {} µs because of the clocks",
            us(*uncertainty_ns)
        ),
    }
}

/// The same as readings before the run and after it show, if somebody took them.
pub fn clock_readings(apart: &ClockDifference) -> Option<String> {
    let ClockDifference { host, other, read_least_ns, read_greatest_ns, .. } = apart;
    let [least, greatest] = [(*read_least_ns)?, (*read_greatest_ns)?].map(Span::from_ns);
    Some(format!("{other} less {host}: from {least} to {greatest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_the_least_error_at_the_bottom_to_the_largest_at_the_top() {
        assert!(ClockChart::new("a run", &[]).is_none());
        let clock = ClockResult {
            node: "a".to_owned(),
            assumed_ns: 10,
            before: None,
            during: None,
            after: None,
            fault_ns: Some(500),
            back_after_ns: None,
            beyond_ns: None,
            grandmaster: None,
            at_ns: vec![0, 500, 1_000],
            error_ns: vec![-100, 0, 300],
        };
        let chart = ClockChart::new("a run", &[clock]).expect("a clock");
        assert_eq!(chart.lines[0].points, "90,210 490,160 890,10");
        let fault = chart.fault.map(|shade| (shade.x, shade.width));
        assert_eq!((chart.zero, fault), (160, Some((490, 400))));
        assert_eq!([chart.top, chart.bottom, chart.end], ["300 ns", "-100 ns", "1 µs"]);
        assert_eq!(chart.rows[0][5], "not");
    }

    #[test]
    fn what_messages_show_of_two_clocks_is_said_in_one_direction_or_both() {
        let said = |least_ns, greatest_ns| {
            let (host, other) = ("a".to_owned(), "b".to_owned());
            let [read_least_ns, read_greatest_ns] = [least_ns, greatest_ns];
            let apart = ClockDifference {
                host,
                other,
                least_ns,
                greatest_ns,
                read_least_ns,
                read_greatest_ns,
            };
            if let Some(read) = clock_readings(&apart) {
                assert!(read.starts_with("b less a: from "), "{read}");
            }
            clock_difference(&apart)
        };
        assert_eq!(said(Some(-90_000), Some(110_000)), "b less a: from -90 µs to 110 µs");
        assert_eq!(said(None, Some(40_000)), "b at most 40 µs ahead of a");
        assert_eq!(said(None, Some(-5_000)), "b at least 5 µs behind a");
        assert_eq!(said(Some(-40_000), None), "a at most 40 µs ahead of b");
        assert_eq!(said(Some(7_000), None), "a at least 7 µs behind b");
        let changed = "a and b: their difference changed by 12 µs at least";
        assert_eq!(said(Some(10_000), Some(-2_000)), changed);
    }
}
