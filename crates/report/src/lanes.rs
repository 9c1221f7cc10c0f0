//! What several parties do over time, one lane each: a picture.

use crate::page::environment;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/lanes.svg");
/// Its style sheet.
pub(crate) const STYLE: &str = include_str!("../assets/lanes.css");
const WIDTH: i32 = 1_000;
const LEFT: i32 = 190;
const RIGHT: i32 = 12;
const TOP: i32 = 50;
const LANE_HEIGHT: i32 = 30;
const FOOT: i32 = 26;
/// The most characters of a name that fit beside its lane.
const NAME_MAX: usize = 24;
/// About how many marks the axis has.
const TICKS: i64 = 6;

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// What it shows.
    pub title: String,
    /// From when, in ns.
    pub from_ns: i64,
    /// Until when.
    pub to_ns: i64,
    /// From the top.
    pub lanes: Vec<TimeLane>,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLane {
    /// Whose it is.
    pub name: String,
    /// What is on it.
    pub marks: Vec<LaneMark>,
}

/// An instant or a stretch on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMark {
    /// When it begins.
    pub begin_ns: i64,
    /// When it ends; the same for an instant.
    pub end_ns: i64,
    /// What it is: shown where one points at it.
    pub label: String,
}

#[derive(Serialize)]
struct LaneView {
    name: String,
    y: i32,
    marks: Vec<MarkView>,
}

#[derive(Serialize)]
struct MarkView {
    x: i32,
    width: i32,
    is_frame: bool,
    what: String,
    /// Where that stands: before the mark, or behind it, or on it, where there is no room.
    what_x: i32,
    is_before: bool,
    is_on: bool,
    label: String,
}

#[derive(Serialize)]
struct TickView {
    x: i32,
    label: String,
}

/// The picture: one self-contained SVG. What is outside the shown time is left out.
pub fn svg(lanes: &Lanes) -> String {
    drawn(lanes, Some(STYLE))
}

/// The same for a page that has [`STYLE`].
pub(crate) fn in_page(lanes: &Lanes) -> String {
    drawn(lanes, None)
}

fn drawn(lanes: &Lanes, style: Option<&str>) -> String {
    let mut environment = environment();
    environment.add_template("lanes", TEMPLATE).expect("the picture's template is well-formed");
    let template = environment.get_template("lanes").expect("it was added just now");
    let height = TOP + LANE_HEIGHT * lanes.lanes.len() as i32 + FOOT;
    let rows = lanes.lanes.iter().enumerate();
    let rows: Vec<LaneView> = rows.map(|(at, lane)| view(lanes, at as i32, lane)).collect();
    let view = context! {
        title => lanes.title.clone(), style, width => WIDTH, height => height, left => LEFT,
        lanes => Serde(rows), ticks => Serde(ticks(lanes)),
    };
    template.render(view).expect("the template names what the view has")
}

fn x(lanes: &Lanes, ns: i64) -> i32 {
    let room = i128::from(WIDTH - LEFT - RIGHT);
    // Times may be from a file that anyone wrote.
    let length = i128::from(length(lanes));
    let at = i128::from(ns.saturating_sub(lanes.from_ns)).clamp(0, length);
    LEFT + (at * room / length) as i32
}

fn length(lanes: &Lanes) -> i64 {
    lanes.to_ns.saturating_sub(lanes.from_ns).max(1)
}

fn view(lanes: &Lanes, at: i32, lane: &TimeLane) -> LaneView {
    let is_shown = |mark: &&LaneMark| mark.end_ns >= lanes.from_ns && mark.begin_ns <= lanes.to_ns;
    let mark = |mark: &LaneMark| {
        let [begin, end] = [mark.begin_ns, mark.end_ns].map(|ns| x(lanes, ns));
        let is_frame = mark.end_ns > mark.begin_ns;
        let label = format!("{} to {} ns: {}", mark.begin_ns, mark.end_ns, mark.label);
        let what = mark.label.clone();
        let width = (end - begin).max(2);
        let room = 8 * what.chars().count() as i32;
        let is_before = begin - LEFT >= room;
        let is_on = !is_before && WIDTH - (begin + width) < room;
        let what_x = match (is_before, is_on) {
            (true, _) => begin - 6,
            (_, true) => begin + 6,
            _ => begin + width + 6,
        };
        MarkView { x: begin, width, is_frame, what, what_x, is_before, is_on, label }
    };
    LaneView {
        name: lane.name.chars().take(NAME_MAX).collect(),
        y: TOP + LANE_HEIGHT * at,
        marks: lane.marks.iter().filter(is_shown).map(mark).collect(),
    }
}

/// Marks at round instants.
fn ticks(lanes: &Lanes) -> Vec<TickView> {
    let length = length(lanes);
    let powers = (0..18).map(|power| 10_i64.pow(power));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power));
    let step = steps.find(|step| length / step <= TICKS).unwrap_or(i64::MAX / 2);
    let first = lanes.from_ns.div_euclid(step).saturating_add(1);
    let last = lanes.to_ns.div_euclid(step);
    let marks = (first..=last).map(|at| at.saturating_mul(step));
    marks.map(|at| TickView { x: x(lanes, at), label: instant(at) }).collect()
}

fn instant(ns: i64) -> String {
    if ns % 1_000 == 0 { format!("{} µs", ns / 1_000) } else { format!("{ns} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_where_their_times_are_and_what_is_outside_is_left_out() {
        let mark = |begin_ns, end_ns| LaneMark { begin_ns, end_ns, label: "a <b>".to_owned() };
        let lane = TimeLane {
            name: "left & right".to_owned(),
            marks: vec![mark(1_000, 3_000), mark(4_000, 4_000), mark(9_000, 9_500)],
        };
        let lanes =
            Lanes { title: "t".to_owned(), from_ns: 1_000, to_ns: 5_000, lanes: vec![lane] };
        let drawn = svg(&lanes);
        // 798 units of 4 µs: 2 µs are 399, and 3 µs behind the left are 598.
        assert!(drawn.contains("x=\"190\" y=\"41\" width=\"399\""), "{drawn}");
        assert!(drawn.contains("x1=\"788\" y1=\"42\" x2=\"788\""), "{drawn}");
        assert!(drawn.contains("left &amp; right") && !drawn.contains("<b>"), "{drawn}");
        assert_eq!(drawn.matches("<title>").count(), 2, "{drawn}");
        assert!(drawn.contains(">2 µs<") && drawn.contains(">4 µs<"), "{drawn}");
    }

    #[test]
    fn what_a_mark_is_stands_within_the_picture() {
        let drawn = |begin_ns, end_ns| {
            let label = "send, 11.20 µs".to_owned();
            let lane = TimeLane {
                name: "one".to_owned(),
                marks: vec![LaneMark { begin_ns, end_ns, label }],
            };
            svg(&Lanes { title: "t".to_owned(), from_ns: 0, to_ns: 798, lanes: vec![lane] })
        };
        for (begin, end, expected) in [
            (0, 100, "class=\"faint\" x=\"296\" y=\"46\" text-anchor=\"start\""),
            (0, 798, "class=\"on\" x=\"196\" y=\"54\" text-anchor=\"start\""),
            (600, 798, "class=\"faint\" x=\"784\" y=\"46\" text-anchor=\"end\""),
        ] {
            let drawn = drawn(begin, end);
            assert!(drawn.contains(expected), "{drawn}");
        }
    }

    #[test]
    fn times_of_any_size_are_drawn() {
        let mark = LaneMark { begin_ns: i64::MIN, end_ns: i64::MAX, label: "all".to_owned() };
        let lanes = vec![TimeLane { name: "one".to_owned(), marks: vec![mark] }];
        for [from_ns, to_ns] in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN], [i64::MAX; 2]] {
            let lanes = Lanes { title: "t".to_owned(), from_ns, to_ns, lanes: lanes.clone() };
            assert!(svg(&lanes).contains("all"));
        }
    }
}
