//! What `onbeat tfg --json` says, as far as it is compared.

use serde_json::Value;

/// The graph and its times.
pub(crate) struct Document {
    pub(crate) channels: Vec<Channel>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) program: Timing,
    pub(crate) platform: Timing,
}

pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) kind: String,
}

pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    pub(crate) kind: String,
    pub(crate) place: String,
    pub(crate) next: Vec<usize>,
    pub(crate) guard: Option<usize>,
    pub(crate) channel: Option<usize>,
}

/// The times at one level.
pub(crate) struct Timing {
    pub(crate) rows: Vec<Row>,
    /// Rows behind which the table does not go on.
    pub(crate) open: Vec<usize>,
    pub(crate) pattern: Option<Pattern>,
}

/// How the table goes on: by task the first round that repeats itself, and after how many.
pub(crate) struct Pattern {
    pub(crate) tasks: Vec<Option<(u32, u32)>>,
    pub(crate) shift_ns: i64,
}

/// A visit of a node.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) task: usize,
    pub(crate) node: usize,
    pub(crate) rounds: Vec<u32>,
    pub(crate) arrival: Interval,
    pub(crate) release: Interval,
    pub(crate) is_certain: bool,
}

/// Both ends are possible, or should be; none: there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: i64,
    pub(crate) hi: Option<i64>,
}

fn all<T>(value: &Value, one: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(one).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    value.as_u64().and_then(|number| T::try_from(number).ok())
}

fn index(value: &Value) -> usize {
    number(value).expect("a number")
}

fn interval(value: &Value) -> Interval {
    Interval { lo: value["lo"].as_i64().expect("a time"), hi: value["hi"].as_i64() }
}

impl Document {
    pub(crate) fn read(text_of: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(text_of).expect("JSON");
        assert_eq!((&value["format"], &value["version"]), (&"onbeat-tfg".into(), &1.into()));
        let task = |task: &Value| Task {
            name: text(&task["name"]),
            program: text(&task["program"]),
            nodes: all(&task["nodes"], |node| Node {
                kind: text(&node["kind"]),
                place: text(&node["place"]),
                next: all(&node["next"], index),
                guard: number(&node["guard"]),
                channel: number(&node["channel"]),
            }),
        };
        Self {
            channels: all(&value["channels"], |channel| Channel {
                name: text(&channel["name"]),
                kind: text(&channel["kind"]),
            }),
            tasks: all(&value["tasks"], task),
            program: timing(&value["program"]),
            platform: timing(&value["platform"]),
        }
    }
}

fn timing(value: &Value) -> Timing {
    let row = |row: &Value| Row {
        task: index(&row["task"]),
        node: index(&row["node"]),
        rounds: all(&row["iteration"], |round| number(round).expect("a round")),
        arrival: interval(&row["arrival_ns"]),
        release: interval(&row["release_ns"]),
        is_certain: row["certain"] == true,
    };
    let repeat = |repeat: &Value| number(&repeat["from"]).zip(number(&repeat["every"]));
    let pattern = value["pattern"].as_object().map(|pattern| Pattern {
        tasks: all(&pattern["tasks"], repeat),
        shift_ns: pattern["shift_ns"].as_i64().expect("a time"),
    });
    Timing { rows: all(&value["rows"], row), open: all(&value["open"], index), pattern }
}
