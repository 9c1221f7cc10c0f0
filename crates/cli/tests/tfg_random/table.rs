//! What `onbeat tfg --json` says, as far as it is compared.

use serde::{Deserialize, Deserializer};

/// The graph and its times.
#[derive(Deserialize)]
pub(crate) struct Document {
    format: String,
    version: u32,
    pub(crate) channels: Vec<Channel>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) program: Timing,
    pub(crate) platform: Timing,
}

#[derive(Deserialize)]
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) kind: String,
}

#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) kind: String,
    pub(crate) place: String,
    pub(crate) next: Vec<usize>,
    pub(crate) guard: Option<usize>,
    pub(crate) channel: Option<usize>,
}

/// The times at one level.
#[derive(Deserialize)]
pub(crate) struct Timing {
    pub(crate) rows: Vec<Row>,
    /// Rows behind which the table does not continue.
    pub(crate) open: Vec<usize>,
    pub(crate) pattern: Option<Pattern>,
    /// By task: the indices of its rows.
    #[serde(skip)]
    by_task: Vec<Vec<usize>>,
}

/// How the table continues: by task the first round that repeats itself, and after how many.
#[derive(Deserialize)]
pub(crate) struct Pattern {
    #[serde(deserialize_with = "repeats")]
    pub(crate) tasks: Vec<Option<(u32, u32)>>,
    pub(crate) shift_ns: i64,
}

/// A visit of a node.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) task: usize,
    pub(crate) node: usize,
    #[serde(rename = "iteration")]
    pub(crate) rounds: Vec<u32>,
    #[serde(rename = "arrival_ns")]
    pub(crate) arrival: Interval,
    #[serde(rename = "release_ns")]
    pub(crate) release: Interval,
    #[serde(rename = "certain")]
    pub(crate) is_certain: bool,
}

/// Both ends are possible, or should be; none: there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Interval {
    pub(crate) lo: i64,
    pub(crate) hi: Option<i64>,
}

fn repeats<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<Option<(u32, u32)>>, D::Error> {
    #[derive(Deserialize)]
    struct Repeat {
        from: u32,
        every: u32,
    }
    let tasks = Vec::<Option<Repeat>>::deserialize(from)?;
    Ok(tasks.into_iter().map(|task| task.map(|repeat| (repeat.from, repeat.every))).collect())
}

impl Timing {
    /// The rows of a task with their indices.
    pub(crate) fn of_task(&self, task: usize) -> impl Iterator<Item = (usize, &Row)> {
        self.by_task[task].iter().map(|index| (*index, &self.rows[*index]))
    }

    fn sort(&mut self, tasks: usize) {
        self.by_task = vec![Vec::new(); tasks];
        for (index, row) in self.rows.iter().enumerate() {
            self.by_task[row.task].push(index);
        }
    }
}

impl Document {
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut document: Self = serde_json::from_slice(text).expect("JSON");
        for timing in [&mut document.program, &mut document.platform] {
            timing.sort(document.tasks.len());
        }
        assert_eq!((document.format.as_str(), document.version), ("onbeat-tfg", 1));
        document
    }
}
