//! What the analysis of a system's time-flow graph says: arrival and release times,
//! composability, missed deadlines, chains, and the schedules of hosts. `docs/time-flow-graphs.md`.

use crate::graph::{Graph, Interval, PointKind};
use crate::plan::BoundTerm;
use crate::time::Span;

/// On which timeline (Austad et al. 2023, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// Logical time: code takes none.
    #[default]
    Program,
    /// Code takes its execution times, sleeps end late by the hosts' wake-up delays.
    Platform,
}

/// What the analysis of a system's time-flow graph computed, at both levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingReport {
    /// The system's name.
    pub name: String,
    /// The graph that was analysed.
    pub graph: Graph,
    /// In logical time.
    pub program: Timing,
    /// With execution times, the interference of tasks that share a processor included.
    pub platform: Timing,
    /// The chains, at platform level.
    pub chains: Vec<Chain>,
    /// The processors that tasks share, or that have execution times.
    pub schedules: Vec<Schedule>,
    /// Tasks that may wait for each other's locks for ever.
    pub lock_cycles: Vec<LockCycle>,
    /// What all of this rests on, and nothing here has proven.
    pub assumptions: Vec<String>,
}

/// Tasks that may wait for each other's locks for ever: each wants what the next one holds, and the
/// last one what the first holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockCycle {
    /// Where each of them waits.
    pub waits: Vec<LockWait>,
}

/// A task that waits for a lock while it holds another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// In [`crate::graph::Graph::tasks`].
    pub task: usize,
    /// In [`crate::graph::Task::nodes`].
    pub node: usize,
    /// What it waits for there, in [`crate::graph::Graph::resources`].
    pub wants: usize,
}

impl LockCycle {
    /// The cycle as `M → r1 → L → r2 → M`: each task, and what it waits for.
    pub fn path(&self, graph: &Graph) -> String {
        let task = |wait: &LockWait| graph.tasks[wait.task].name.clone();
        let wanted = |wait: &LockWait| {
            let name = &graph.resources[wait.wants];
            let prefix = format!("{}.", graph.tasks[wait.task].program);
            name.strip_prefix(&prefix).unwrap_or(name).to_owned()
        };
        let parts = self.waits.iter().flat_map(|wait| [task(wait), wanted(wait)]);
        parts.chain(self.waits.first().map(task)).collect::<Vec<_>>().join(" → ")
    }

    /// Where each of its tasks waits: `n.c:5 and n.c:6`.
    pub fn places(&self, graph: &Graph) -> String {
        let places = self.waits.iter().map(|wait| graph.tasks[wait.task].label(wait.node));
        places.collect::<Vec<_>>().join(" and ")
    }
}

/// A chain, what is asked of it, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// In [`Graph::channels`], in order.
    pub channels: Vec<usize>,
    /// The most that capture to receipt may take.
    pub deadline: Option<Span>,
    /// The most that [`ChainTime::age`] may be.
    pub age: Option<Span>,
    /// The most that [`ChainTime::reaction`] may be.
    pub reaction: Option<Span>,
    /// What is known.
    pub time: ChainTime,
}

/// All that is known of a graph's time at one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Which level.
    pub level: Level,
    /// The table: visits of nodes, by task, then in an order in which control can come to them.
    pub rows: Vec<Row>,
    /// Rows whose successors the table omits.
    pub open: Vec<usize>,
    /// The tasks that are joined by channels, and what is proven of all that they ever do.
    pub components: Vec<Component>,
    /// The periodic regime of the whole table, all components together; none if none is proven.
    pub regime: Option<PeriodicRegime>,
    /// The causes for which the program is not composable; empty if there is none.
    pub causes: Vec<Cause>,
    /// Points that may be reached late.
    pub misses: Vec<Miss>,
    /// Hazards beside those: messages that may get lost, tasks that may wait for ever.
    pub hazards: Vec<Hazard>,
}

/// One visit of a node. Its times are those since the system's start, for all executions in which
/// control comes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// In [`crate::graph::Graph::tasks`].
    pub task: usize,
    /// In [`crate::graph::Task::nodes`].
    pub node: usize,
    /// The rounds, from 1, of the loops that the node is in, the outermost first; empty outside of
    /// loops.
    pub iteration: Vec<u32>,
    /// When the node begins: t_A.
    pub arrival: Interval,
    /// When it is done: t_R.
    pub release: Interval,
    /// From begin to done: in one and the same execution, so it may be less than the difference of
    /// the ends of [`Row::release`] and [`Row::arrival`].
    pub took: Interval,
    /// Whether control comes there in every execution.
    pub is_certain: bool,
    /// From where control may come: earlier rows of the task, or the row that starts it, and what
    /// passes from the release there to the arrival here, 0 but where an abort leads here.
    pub before: Vec<(usize, Interval)>,
    /// Of a reading end: the rows of the writes whose message it may get.
    pub messages: Vec<usize>,
}

/// Tasks that are joined by channels: what they do depends on no other task, except when another
/// component starts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// In [`crate::graph::Graph::tasks`], ascending.
    pub tasks: Vec<usize>,
    /// How the table continues.
    pub course: Course,
}

/// What is proven of all rounds that a component's tasks ever have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Each of its tasks comes to its end, or waits for ever: the table has all of it.
    Ends,
    /// Everything repeats.
    Repeats {
        /// Of each task the first round that does, and after how many; none: it ends.
        rounds: Vec<Option<(u32, u32)>>,
        /// After what time.
        shift: Span,
    },
    /// Nothing, beyond so many rounds of each outermost loop.
    Open {
        /// So many are in the table.
        rounds: u32,
        /// Why there is no more.
        why: OpenReason,
    },
}

/// Why nothing is proven of a component's later rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenReason {
    /// A channel may be full: what is lost is not followed for ever.
    Full {
        /// In [`crate::graph::Graph::channels`].
        channel: usize,
    },
    /// Each round its times are less certain than the round before.
    Grows {
        /// In [`crate::graph::Graph::tasks`].
        task: usize,
    },
    /// A task does the same again and again, and no time passes.
    Still {
        /// In [`crate::graph::Graph::tasks`].
        task: usize,
    },
    /// No task could continue, and something was assumed to come at any time.
    Guessed,
    /// Nothing repeated within the rows that there may be.
    Long,
}

impl OpenReason {
    /// For a person.
    pub fn words(&self, graph: &Graph) -> String {
        match self {
            Self::Full { channel } => format!(
                "the channel {} may be full, and what gets lost is not followed for ever",
                graph.channels[*channel].name
            ),
            Self::Grows { task } => {
                format!("the times of {} are ever less certain", graph.tasks[*task].name)
            }
            Self::Still { task } => {
                format!("no time passes in an endless loop of {}", graph.tasks[*task].name)
            }
            Self::Guessed => "one waits for what nobody can tell".to_owned(),
            Self::Long => "nothing was found to come again".to_owned(),
        }
    }
}

/// Whether a system is composable to its logical timing (Austad et al. 2023, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composability {
    /// Every arrival and release that there ever is has a bound.
    Composable,
    /// One has none.
    NotComposable,
    /// Each of the first rounds has one; of later ones nothing is proven.
    Unproven {
        /// Of each outermost loop.
        rounds: u32,
    },
}

impl Timing {
    /// How the table of a task continues.
    pub fn course(&self, task: usize) -> Option<&Course> {
        self.components.iter().find(|one| one.tasks.contains(&task)).map(|one| &one.course)
    }

    /// What these times say of the system that they are of.
    pub fn verdict(&self) -> Composability {
        let open = self.components.iter().filter_map(|one| match one.course {
            Course::Open { rounds, .. } => Some(rounds),
            Course::Ends | Course::Repeats { .. } => None,
        });
        match open.min() {
            _ if !self.causes.is_empty() => Composability::NotComposable,
            Some(rounds) => Composability::Unproven { rounds },
            None => Composability::Composable,
        }
    }
}

impl Course {
    /// Of the task with this place in its component: the first round that repeats, after how
    /// many rounds, and after what time.
    pub fn again(&self, place: usize) -> Option<(u32, u32, Span)> {
        let Self::Repeats { rounds, shift } = self else { return None };
        let (first, every) = rounds.get(place).copied().flatten()?;
        Some((first, every, *shift))
    }
}

/// From some round on, everything repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodicRegime {
    /// Of each task: the round of its outermost loop from which on it holds, from 1, and the number
    /// of rounds after which all times are those before plus [`PeriodicRegime::shift`]. None for a
    /// task without an endless loop, which ends.
    pub tasks: Vec<Option<(u32, u32)>>,
    /// By how much all times shift.
    pub shift: Span,
    /// The same of each task and those that are joined to it by channels, alone: rounds and shift.
    /// So many rounds are in the table; of those of [`PeriodicRegime::tasks`] the first may be.
    pub parts: Vec<Option<(u32, Span)>>,
}

/// A cause for which a program is not composable: where a bound is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// How it gets lost.
    pub kind: CauseKind,
    /// The row where the bound is lost.
    pub row: usize,
    /// From the writing end that is waited for, over the reading end, to the last node of the same
    /// iteration that has no bound: rows.
    pub path: Vec<usize>,
}

/// The kinds of causes for which a bound gets lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// A best-effort channel has no latency bound.
    BestEffort {
        /// In [`crate::graph::Graph::channels`].
        channel: usize,
    },
    /// The message that a reader waits for is written in some executions only, or never.
    Unsent {
        /// In [`crate::graph::Graph::channels`].
        channel: usize,
    },
    /// Several readers take each other's messages.
    Shared {
        /// In [`crate::graph::Graph::channels`].
        channel: usize,
    },
    /// A loop has no known number of rounds.
    Loop,
    /// A delay is not known.
    Delay,
    /// Tasks that are more urgent leave too little of the processor.
    Processor,
    /// Tasks may wait for each other's locks for ever.
    Locks {
        /// In [`TimingReport::lock_cycles`].
        cycle: usize,
    },
}

/// A point that may be reached late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The row of the point.
    pub row: usize,
    /// What it means.
    pub kind: PointKind,
    /// By how much at most; none if there is no bound.
    pub by: Option<Span>,
    /// Whether it is late in every execution.
    pub is_certain: bool,
    /// From the last timing point, or the task's start, to it: rows.
    pub path: Vec<usize>,
}

/// A hazard beside late points and lost bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// A value may find its channel full and get lost.
    Overflow {
        /// The row of the write.
        row: usize,
        /// In [`crate::graph::Graph::channels`].
        channel: usize,
    },
    /// Tasks wait for each other for ever.
    Deadlock {
        /// The rows of the reading ends at which they wait.
        rows: Vec<usize>,
    },
}

/// The time of a chain: what [`Chain`] asks for, computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainTime {
    /// Capture at the first writer to receipt at the last reader; none if the chain never comes to
    /// its end.
    pub latency: Option<Interval>,
    /// The worst latency as a sum, in the order of the path.
    pub terms: Vec<BoundTerm>,
    /// How old the data of the last receipt are at most when the next one comes (last to last;
    /// Feiertag et al. 2008).
    pub age: Option<Span>,
    /// From something that happens right after a capture to the first receipt that can show it
    /// (first to first).
    pub reaction: Option<Span>,
    /// Whether more values are on its path than are looked at: then what is none may be bounded.
    pub is_cut_short: bool,
}

/// Whether the tasks of one processor meet their deadlines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// In [`crate::graph::Graph::hosts`].
    pub host: usize,
    /// Which of its processors.
    pub core: u16,
    /// Its tasks, the most urgent first.
    pub tasks: Vec<ScheduledTask>,
    /// The share of its time that is used, in parts per million, rounded up; none if it is unknown
    /// how long a task computes, or how often.
    pub utilisation_ppm: Option<u64>,
    /// To how much all execution times may grow together, in parts per million of what they are,
    /// rounded down, until a deadline is missed; none if they may grow for ever.
    pub scaling_ppm: Option<u64>,
}

/// A task on its processor: what the schedulability analysis says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledTask {
    /// In [`crate::graph::Graph::tasks`].
    pub task: usize,
    /// Its priority, 1 to 99; none under EDF, or if it has none.
    pub priority: Option<u8>,
    /// Whether priority or processor are a proposal: nothing states them.
    pub is_assigned: bool,
    /// The least time between two releases, once it has begun what it repeats; 0 if unknown; none
    /// of a task that is released once.
    pub period: Option<Span>,
    /// From release to deadline; of a task with several, that of the job with the least time left.
    pub deadline: Option<Span>,
    /// The longest execution time of what is released at once; [`Span::MAX`] if there is no bound.
    pub wcet: Span,
    /// From release to completion at most, of all its jobs, waits for messages not counted; none if
    /// there is no bound.
    pub response: Option<Span>,
    /// The least that is left of a deadline, less than nothing if one may be missed; none without
    /// a deadline or a bound.
    pub slack: Option<Span>,
    /// Of a firm task that may miss deadlines: of so many consecutive jobs (second) at most so many
    /// (first) miss theirs.
    pub misses: Vec<(u32, u32)>,
}

impl ScheduledTask {
    /// Whether it meets its deadlines.
    pub fn is_met(&self) -> bool {
        self.deadline.is_none() || self.slack.is_some_and(|slack| slack >= Span::ZERO)
    }
}

/// Systems put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composition {
    /// Each of them.
    pub parts: Vec<Part>,
    /// All of them as one system.
    pub together: TimingReport,
}

/// One of several systems that are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// By itself.
    pub alone: TimingReport,
    /// What becomes of its times.
    pub kept: Kept,
    /// What it has in common with the others.
    pub joints: Vec<Joint>,
    /// Visits that are not within the times that they have alone.
    pub spoilt: Vec<Spoilt>,
}

/// What becomes of a system's times among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All are within those that it has alone, for ever.
    Kept,
    /// Some are not.
    Broken,
    /// It has times without a bound alone.
    NothingPromised,
    /// Nothing is proven beyond the tables.
    Unproven,
}

/// What systems have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joint {
    /// A channel, by its name.
    Channel(String),
    /// What they lock.
    Resource(String),
    /// The processors of a host.
    Processors(String),
    /// A node of a network that each was planned for alone.
    Network(String),
}

/// A visit whose times are not within those that it has alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoilt {
    /// On which timeline.
    pub level: Level,
    /// Its row in the table of the system alone.
    pub row: usize,
    /// Arrival and release among the others.
    pub now: (Interval, Interval),
    /// What may do that.
    pub by: Vec<Joint>,
}

impl Composition {
    /// What becomes of the times of all: the worst of what becomes of one's.
    pub fn kept(&self) -> Kept {
        let is = |kept: Kept| self.parts.iter().any(|part| part.kept == kept);
        let worst = [Kept::Broken, Kept::NothingPromised, Kept::Unproven];
        worst.into_iter().find(|kept| is(*kept)).unwrap_or(Kept::Kept)
    }
}
