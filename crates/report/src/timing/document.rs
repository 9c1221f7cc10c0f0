//! The JSON contract, version 1. `schema/tfg.schema.json` is made from these types.

use super::words::{self, expression, letter};
use onbeat_model::graph::{
    self, ChannelKind, Expression, Interval, NodeKind, Policy, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{
    self, Cause, CauseKind, Component, Composability, Course, Hazard, Miss, OpenReason, Row,
    TimingReport,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const FORMAT: &str = "onbeat-tfg";
/// The version of the contract that these types are.
pub const VERSION: u32 = 1;

/// What the analysis of a system's time-flow graph says. All times are whole nanoseconds; null
/// stands for no bound. What refers to tasks, nodes, channels, hosts and rows does so by their
/// places in their lists, from 0. Under one version fields may be added; none is removed, renamed
/// or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// Always `onbeat-tfg`.
    pub format: String,
    /// Which contract this is: 1.
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// Whether the system is proven to be composable to its logical timing.
    pub composable: bool,
    /// `composable`, `not-composable`, or `unproven`: every logical time is bounded for some
    /// iterations, and of later ones nothing is known.
    pub verdict: String,
    /// Of an unproven system: for so many iterations of each outermost loop every logical time is
    /// bounded.
    pub unproven_within: Option<u32>,
    /// Where tasks run.
    pub hosts: Vec<HostEntry>,
    /// What they write and read.
    pub channels: Vec<ChannelEntry>,
    /// What they lock.
    pub resources: Vec<String>,
    /// The tasks and their nodes.
    pub tasks: Vec<TaskEntry>,
    /// In logical time.
    pub program: TimingEntry,
    /// With execution times.
    pub platform: TimingEntry,
    /// The chains, at platform level.
    pub chains: Vec<ChainEntry>,
    /// The processors that tasks share, or that have execution times.
    pub schedules: Vec<ScheduleEntry>,
    /// Tasks that may wait for each other's locks for ever.
    #[serde(default)]
    pub lock_cycles: Vec<LockCycleEntry>,
    /// What all of this rests on, and nothing in it has proven.
    #[serde(default)]
    pub assumptions: Vec<String>,
}

/// Tasks that may wait for each other's locks for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockCycleEntry {
    /// The cycle in words: each task, what it waits for, who holds that.
    pub cycle: String,
    /// The tasks: what one waits for, the next one holds, and the first one what the last wants.
    pub waits: Vec<LockWaitEntry>,
}

/// A task that waits for a lock while it holds another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockWaitEntry {
    /// The task.
    pub task: usize,
    /// The node at which it waits.
    pub node: usize,
    /// What it waits for.
    pub resource: usize,
}

/// From a shortest to a longest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalEntry {
    /// The shortest.
    pub lo: i64,
    /// The longest; null: there is no bound.
    pub hi: Option<i64>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostEntry {
    /// Its name.
    pub name: String,
    /// What its clock reads when the system starts.
    pub start_ns: i64,
    /// From the target of a timed sleep to the task continuing, at platform level.
    pub wakeup_ns: IntervalEntry,
    /// How many processors its tasks share; null: each task has one to itself.
    pub cores: Option<u16>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelEntry {
    /// Its name.
    pub name: String,
    /// `fifo`, `network`, `best-effort`, or `named`: of the description, which is not there.
    pub kind: String,
    /// How many messages it holds; null: not known.
    pub capacity: Option<u32>,
    /// Capture to receipt at each reading host; empty but for network and best-effort channels.
    pub latencies: Vec<LatencyEntry>,
}

/// The latency of a channel to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyEntry {
    /// The host.
    pub host: usize,
    /// By its clock, less the capture by the writer's.
    pub latency_ns: IntervalEntry,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEntry {
    /// Its name.
    pub name: String,
    /// The program that it is part of.
    pub program: String,
    /// Its host.
    pub host: usize,
    /// The file that its nodes' places count lines of.
    pub file: String,
    /// `fixed`, `rate-monotonic`, `deadline-monotonic` or `edf`.
    pub policy: String,
    /// 1 to 99, the greater the more urgent; null: not stated.
    pub priority: Option<u8>,
    /// The processors that it may use; empty: any.
    pub cores: Vec<u16>,
    /// Its nodes, the first of which is its start.
    pub nodes: Vec<NodeEntry>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeEntry {
    /// `start`, `end`, `soft`, `firm`, `hard`, `gettime`, `skip`, `fragment`, `write`, `read`,
    /// `run`, `lock`, `take` (a lock that is free), `unlock`, `held` (something is, at the point
    /// that is next), `set`, `branch` or `any`.
    pub kind: String,
    /// As in tables: `p6`, `f4`, `c5`; null for nodes that have none.
    pub symbol: Option<String>,
    /// A line of the task's file, `12`; `12.2` for the second in it; `loop.h:12` in another file.
    pub place: String,
    /// What may come next.
    pub next: Vec<usize>,
    /// The firm or hard point to which control goes when its deadline passes here.
    pub guard: Option<usize>,
    /// Of a writing or reading end.
    pub channel: Option<usize>,
    /// Of a writing or reading end: whether it waits for the fixed delay.
    pub waits: Option<bool>,
    /// Of a timing point; null also if it is not constant.
    pub period_ns: Option<i64>,
    /// Of a timing point; null also if it is not constant.
    pub deadline_ns: Option<i64>,
    /// Of code: best and worst execution time.
    pub execution_ns: Option<IntervalEntry>,
    /// Of a `run`: the task that is started.
    pub task: Option<usize>,
    /// Of `lock`, `take` and `unlock`.
    pub resource: Option<usize>,
    /// In C, with registers as `r0`: the condition of a branch, what a `set` does, a period that is
    /// not constant.
    pub expression: Option<String>,
}

/// What is known at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimingEntry {
    /// Visits of nodes: arrivals and releases.
    pub rows: Vec<RowEntry>,
    /// Rows whose successors the table omits.
    pub open: Vec<usize>,
    /// The tasks that are joined by channels, and what is proven of all that they ever do.
    pub components: Vec<ComponentEntry>,
    /// Where the whole table repeats itself for ever; null: it was not found to.
    pub pattern: Option<PatternEntry>,
    /// Why there is no bound; empty: all times in the table are bounded.
    pub culprits: Vec<CulpritEntry>,
    /// Points that may be reached late.
    pub misses: Vec<MissEntry>,
    /// Channels that may overflow, tasks that wait for each other for ever.
    pub troubles: Vec<TroubleEntry>,
}

/// A visit of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowEntry {
    /// The task.
    pub task: usize,
    /// The node.
    pub node: usize,
    /// The rounds, from 1, of the loops that it is in, the outermost first.
    pub iteration: Vec<u32>,
    /// When it begins, since the system's start.
    pub arrival_ns: IntervalEntry,
    /// When it is done, since the system's start.
    pub release_ns: IntervalEntry,
    /// From begin to done.
    pub took_ns: IntervalEntry,
    /// Whether control comes there in every execution.
    pub certain: bool,
    /// From where control may come.
    pub before: Vec<BeforeEntry>,
    /// Of a reading end: the rows of the writes whose message it may get.
    pub messages: Vec<usize>,
}

/// From where control comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BeforeEntry {
    /// The row.
    pub row: usize,
    /// From the release there to the arrival here: 0 but where an abort leads here.
    pub after_ns: IntervalEntry,
}

/// Tasks that are joined by channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentEntry {
    /// The tasks.
    pub tasks: Vec<usize>,
    /// `ends`, `repeats` or `open`: nothing is proven of later rounds.
    pub course: String,
    /// Of one that repeats: of each of its tasks; null for one that ends.
    pub rounds: Vec<Option<RepeatEntry>>,
    /// Of one that repeats: by how much all times shift.
    pub shift_ns: Option<i64>,
    /// Of an open one: how many rounds of each outermost loop are known.
    pub within: Option<u32>,
    /// Of an open one, why: `full` (a channel may lose values), `grows` (its times are ever less
    /// certain), `still` (no time passes in an endless loop), `guessed` (one waits for something
    /// unknown), `long` (nothing repeated).
    pub why: Option<String>,
}

/// How the table continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternEntry {
    /// Of each task; null for one that ends.
    pub tasks: Vec<Option<RepeatEntry>>,
    /// By how much all times shift.
    pub shift_ns: i64,
    /// Of each task: the same of what is joined to it by channels, alone; null for one that ends.
    pub parts: Vec<Option<PartEntry>>,
}

/// How a task and what is joined to it by channels continues, alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartEntry {
    /// The number of rounds after which all repeats.
    pub every: u32,
    /// By how much all times shift then.
    pub shift_ns: i64,
}

/// From where on a task repeats itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatEntry {
    /// The first round of its outermost loop of which that is so.
    pub from: u32,
    /// The number of rounds after which all repeats.
    pub every: u32,
}

/// Why a bound is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CulpritEntry {
    /// `best-effort`, `unsent`, `shared`, `loop`, `delay`, `processor` or `locks`.
    pub why: String,
    /// The channel, if it is one.
    pub channel: Option<usize>,
    /// The row where the bound is lost.
    pub row: usize,
    /// From the writing end that is waited for to the last node without a bound: rows.
    pub path: Vec<usize>,
    /// The path in words.
    pub path_text: String,
}

/// A point that may be reached late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissEntry {
    /// The point's row.
    pub row: usize,
    /// `soft`, `firm` or `hard`.
    pub kind: String,
    /// By how much at most; null: there is no bound.
    pub by_ns: Option<i64>,
    /// Whether it is late in every execution.
    pub certain: bool,
    /// From the last timing point, or the task's start: rows.
    pub path: Vec<usize>,
}

/// What else may go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TroubleEntry {
    /// `overflow` or `deadlock`.
    pub kind: String,
    /// Of an overflow: the channel.
    pub channel: Option<usize>,
    /// The row of the write, or the rows of the reading ends at which tasks wait.
    pub rows: Vec<usize>,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainEntry {
    /// Its name.
    pub name: String,
    /// Its channels, in order.
    pub channels: Vec<usize>,
    /// The most that capture to receipt may take.
    pub deadline_ns: Option<i64>,
    /// The most that the data's age may be.
    pub age_max_ns: Option<i64>,
    /// The most that the reaction may take.
    pub reaction_max_ns: Option<i64>,
    /// Capture at the first writer to receipt at the last reader; null if it never comes there.
    pub latency_ns: Option<IntervalEntry>,
    /// The worst latency as a sum.
    pub terms: Vec<TermEntry>,
    /// The data's age at most; null: there is no bound.
    pub age_ns: Option<i64>,
    /// The reaction at most; null: there is no bound.
    pub reaction_ns: Option<i64>,
}

/// A term of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TermEntry {
    /// What takes the time.
    pub what: String,
    /// How long at most.
    pub span_ns: i64,
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleEntry {
    /// The host.
    pub host: usize,
    /// Which of its processors.
    pub core: u16,
    /// The share of its time that is used, in parts per million, rounded up; null: it is unknown
    /// how long a task computes, or how often.
    pub utilisation_ppm: Option<u64>,
    /// To how much all execution times may grow together, in parts per million of what they are,
    /// until a deadline is missed; null: for ever.
    pub scaling_ppm: Option<u64>,
    /// Its tasks, the most urgent first.
    pub tasks: Vec<ScheduledEntry>,
}

/// A task on its processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledEntry {
    /// The task.
    pub task: usize,
    /// Its priority; null under EDF, or if it has none.
    pub priority: Option<u8>,
    /// Whether priority or processor are a proposal.
    pub proposed: bool,
    /// Whether it meets its deadlines.
    pub met: bool,
    /// The least time between two releases, once it has begun what it does again and again; 0 if
    /// it is not known; null: it is released once.
    pub period_ns: Option<i64>,
    /// From release to deadline.
    pub deadline_ns: Option<i64>,
    /// The longest execution time; null: there is no bound.
    pub wcet_ns: Option<i64>,
    /// From release to completion at most, of all its jobs; null: there is no bound.
    pub response_ns: Option<i64>,
    /// The least that is left of a deadline, less than 0 if one may be missed; null without a
    /// deadline or a bound.
    pub slack_ns: Option<i64>,
    /// Of so many consecutive jobs (second) at most so many (first) miss their deadlines.
    pub misses: Vec<(u32, u32)>,
}

/// The JSON Schema of [`Document`]. Ends with a line feed.
pub fn schema() -> String {
    onbeat_measure::contract::schema_of::<Document>()
}

/// All that is known, for machines.
pub fn document(study: &TimingReport) -> Document {
    let (graph, verdict) = (&study.graph, study.program.verdict());
    Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        system: study.name.clone(),
        composable: verdict == Composability::Composable,
        verdict: super::composition::verdict(study).to_owned(),
        unproven_within: match verdict {
            Composability::Unproven { rounds } => Some(rounds),
            Composability::Composable | Composability::NotComposable => None,
        },
        hosts: graph.hosts.iter().map(host).collect(),
        channels: graph.channels.iter().map(channel).collect(),
        resources: graph.resources.clone(),
        tasks: graph.tasks.iter().map(task).collect(),
        program: timing(study, &study.program),
        platform: timing(study, &study.platform),
        chains: study.chains.iter().map(chain).collect(),
        schedules: study.schedules.iter().map(schedule).collect(),
        lock_cycles: study.lock_cycles.iter().map(|cycle| lock_cycle(study, cycle)).collect(),
        assumptions: study.assumptions.clone(),
    }
}

fn lock_cycle(study: &TimingReport, cycle: &timing::LockCycle) -> LockCycleEntry {
    let wait = |wait: &timing::LockWait| LockWaitEntry {
        task: wait.task,
        node: wait.node,
        resource: wait.wants,
    };
    LockCycleEntry {
        cycle: cycle.path(&study.graph),
        waits: cycle.waits.iter().map(wait).collect(),
    }
}

fn interval(interval: Interval) -> IntervalEntry {
    IntervalEntry { lo: interval.lo.as_ns(), hi: ns(interval.hi) }
}

fn ns(span: Option<Span>) -> Option<i64> {
    span.map(Span::as_ns)
}

fn host(host: &graph::Host) -> HostEntry {
    HostEntry {
        name: host.name.clone(),
        start_ns: host.start.as_ns(),
        wakeup_ns: interval(host.wakeup),
        cores: host.cores,
    }
}

fn channel(channel: &graph::Channel) -> ChannelEntry {
    let (kind, capacity) = match &channel.kind {
        ChannelKind::Fifo { capacity } => ("fifo", Some(*capacity)),
        ChannelKind::Named => ("named", None),
        ChannelKind::Network(network) if words::is_best_effort(&channel.kind) => {
            ("best-effort", Some(network.capacity))
        }
        ChannelKind::Network(network) => ("network", Some(network.capacity)),
    };
    let latencies = match &channel.kind {
        ChannelKind::Network(network) => network.latencies.as_slice(),
        _ => &[],
    };
    let latency = |(host, latency): &(usize, Interval)| LatencyEntry {
        host: *host,
        latency_ns: interval(*latency),
    };
    ChannelEntry {
        name: channel.name.clone(),
        kind: kind.to_owned(),
        capacity,
        latencies: latencies.iter().map(latency).collect(),
    }
}

fn task(task: &Task) -> TaskEntry {
    let policy = match task.policy {
        Policy::Fixed => "fixed",
        Policy::RateMonotonic => "rate-monotonic",
        Policy::DeadlineMonotonic => "deadline-monotonic",
        Policy::Edf => "edf",
    };
    TaskEntry {
        name: task.name.clone(),
        program: task.program.clone(),
        host: task.host,
        file: task.file.clone(),
        policy: policy.to_owned(),
        priority: task.priority,
        cores: task.cores.clone(),
        nodes: task.nodes.iter().map(node).collect(),
    }
}

fn constant(of: &Expression) -> Option<i64> {
    of.value(&[])
}

fn node(node: &TaskNode) -> NodeEntry {
    let mut entry = NodeEntry {
        kind: kind(&node.kind).to_owned(),
        symbol: letter(&node.kind).map(|letter| format!("{letter}{}", node.place)),
        place: node.place.clone(),
        next: node.next.clone(),
        guard: node.guard,
        channel: words::channel(&node.kind),
        waits: None,
        period_ns: None,
        deadline_ns: None,
        execution_ns: None,
        task: None,
        resource: None,
        expression: None,
    };
    match &node.kind {
        NodeKind::Point { period, deadline, .. } => {
            entry.period_ns = constant(period);
            entry.deadline_ns = deadline.as_ref().and_then(constant);
            entry.expression = constant(period).is_none().then(|| expression(period));
        }
        NodeKind::Fragment { execution } => entry.execution_ns = Some(interval(*execution)),
        NodeKind::Write { waits, .. } | NodeKind::Read { waits, .. } => entry.waits = Some(*waits),
        NodeKind::Run { task } => entry.task = Some(*task),
        NodeKind::Lock(resource) | NodeKind::Take(resource) | NodeKind::Unlock(resource) => {
            entry.resource = Some(*resource);
        }
        NodeKind::Set { register, value } => {
            entry.expression = Some(format!("r{register} = {}", expression(value)));
        }
        NodeKind::Branch(condition) => entry.expression = Some(expression(condition)),
        NodeKind::Start
        | NodeKind::End
        | NodeKind::Gettime
        | NodeKind::Skip
        | NodeKind::Held
        | NodeKind::Any => {}
    }
    entry
}

const fn kind(what: &NodeKind) -> &'static str {
    match what {
        NodeKind::Start => "start",
        NodeKind::End => "end",
        NodeKind::Point { kind, .. } => words::point_kind(*kind),
        NodeKind::Gettime => "gettime",
        NodeKind::Skip => "skip",
        NodeKind::Fragment { .. } => "fragment",
        NodeKind::Write { .. } => "write",
        NodeKind::Read { .. } => "read",
        NodeKind::Run { .. } => "run",
        NodeKind::Lock(_) => "lock",
        NodeKind::Take(_) => "take",
        NodeKind::Unlock(_) => "unlock",
        NodeKind::Held => "held",
        NodeKind::Set { .. } => "set",
        NodeKind::Branch(_) => "branch",
        NodeKind::Any => "any",
    }
}

fn timing(study: &TimingReport, timing: &timing::Timing) -> TimingEntry {
    let pattern = timing.regime.as_ref().map(|pattern| PatternEntry {
        tasks: pattern
            .tasks
            .iter()
            .map(|task| task.map(|(from, every)| RepeatEntry { from, every }))
            .collect(),
        shift_ns: pattern.shift.as_ns(),
        parts: pattern
            .parts
            .iter()
            .map(|part| part.map(|(every, shift)| PartEntry { every, shift_ns: shift.as_ns() }))
            .collect(),
    });
    TimingEntry {
        rows: timing.rows.iter().map(row).collect(),
        open: timing.open.clone(),
        components: timing.components.iter().map(component).collect(),
        pattern,
        culprits: timing.causes.iter().map(|it| culprit(study, timing, it)).collect(),
        misses: timing.misses.iter().map(miss).collect(),
        troubles: timing.hazards.iter().map(trouble).collect(),
    }
}

fn component(component: &Component) -> ComponentEntry {
    let mut entry = ComponentEntry {
        tasks: component.tasks.clone(),
        course: String::new(),
        rounds: Vec::new(),
        shift_ns: None,
        within: None,
        why: None,
    };
    let repeat = |(from, every): (u32, u32)| RepeatEntry { from, every };
    entry.course = match &component.course {
        Course::Ends => "ends",
        Course::Repeats { rounds, shift } => {
            entry.rounds = rounds.iter().map(|one| one.map(repeat)).collect();
            entry.shift_ns = Some(shift.as_ns());
            "repeats"
        }
        Course::Open { rounds, why } => {
            entry.within = Some(*rounds);
            let why = match why {
                OpenReason::Full { .. } => "full",
                OpenReason::Grows { .. } => "grows",
                OpenReason::Still { .. } => "still",
                OpenReason::Guessed => "guessed",
                OpenReason::Long => "long",
            };
            entry.why = Some(why.to_owned());
            "open"
        }
    }
    .to_owned();
    entry
}

fn row(row: &Row) -> RowEntry {
    let before =
        |(row, after): &(usize, Interval)| BeforeEntry { row: *row, after_ns: interval(*after) };
    RowEntry {
        task: row.task,
        node: row.node,
        iteration: row.iteration.clone(),
        arrival_ns: interval(row.arrival),
        release_ns: interval(row.release),
        took_ns: interval(row.took),
        certain: row.is_certain,
        before: row.before.iter().map(before).collect(),
        messages: row.messages.clone(),
    }
}

fn culprit(study: &TimingReport, timing: &timing::Timing, culprit: &Cause) -> CulpritEntry {
    let (why, channel) = match culprit.kind {
        CauseKind::BestEffort { channel } => ("best-effort", Some(channel)),
        CauseKind::Unsent { channel } => ("unsent", Some(channel)),
        CauseKind::Shared { channel } => ("shared", Some(channel)),
        CauseKind::Loop => ("loop", None),
        CauseKind::Delay => ("delay", None),
        CauseKind::Processor => ("processor", None),
        CauseKind::Locks { .. } => ("locks", None),
    };
    CulpritEntry {
        why: why.to_owned(),
        channel,
        row: culprit.row,
        path: culprit.path.clone(),
        path_text: words::path(&study.graph, timing, &culprit.path),
    }
}

fn miss(miss: &Miss) -> MissEntry {
    MissEntry {
        row: miss.row,
        kind: words::point_kind(miss.kind).to_owned(),
        by_ns: ns(miss.by),
        certain: miss.is_certain,
        path: miss.path.clone(),
    }
}

fn trouble(trouble: &Hazard) -> TroubleEntry {
    let (kind, channel, rows) = match trouble {
        Hazard::Overflow { row, channel } => ("overflow", Some(*channel), vec![*row]),
        Hazard::Deadlock { rows } => ("deadlock", None, rows.clone()),
    };
    TroubleEntry { kind: kind.to_owned(), channel, rows }
}

fn chain(chain: &timing::Chain) -> ChainEntry {
    let term = |term: &onbeat_model::plan::BoundTerm| TermEntry {
        what: term.what.clone(),
        span_ns: term.span.as_ns(),
    };
    ChainEntry {
        name: chain.name.clone(),
        channels: chain.channels.clone(),
        deadline_ns: ns(chain.deadline),
        age_max_ns: ns(chain.age),
        reaction_max_ns: ns(chain.reaction),
        latency_ns: chain.time.latency.map(interval),
        terms: chain.time.terms.iter().map(term).collect(),
        age_ns: ns(chain.time.age),
        reaction_ns: ns(chain.time.reaction),
    }
}

fn schedule(schedule: &timing::Schedule) -> ScheduleEntry {
    let task = |task: &timing::ScheduledTask| ScheduledEntry {
        task: task.task,
        priority: task.priority,
        proposed: task.is_assigned,
        met: task.is_met(),
        period_ns: ns(task.period),
        deadline_ns: ns(task.deadline),
        wcet_ns: (task.wcet != Span::MAX).then_some(task.wcet.as_ns()),
        response_ns: ns(task.response),
        slack_ns: ns(task.slack),
        misses: task.misses.clone(),
    };
    ScheduleEntry {
        host: schedule.host,
        core: schedule.core,
        utilisation_ppm: schedule.utilisation_ppm,
        scaling_ppm: schedule.scaling_ppm,
        tasks: schedule.tasks.iter().map(task).collect(),
    }
}
