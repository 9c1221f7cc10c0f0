//! Time-flow graphs of programs, extended by channels (Natarajan and Broman 2020; Austad et al.
//! 2023, section 4.1). `docs/time-flow-graphs.md` has the semantics: the analysis computes what
//! these graphs do, runs do it.
//!
//! A graph is made from Timed C or from a task model, first one per program, then one of the
//! whole system, whose channels have their latencies.

use crate::rate::Rate;
use crate::time::Span;

/// From a shortest to a longest time, both possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The shortest.
    pub lo: Span,
    /// The longest; none if there is no bound.
    pub hi: Option<Span>,
}

impl Interval {
    /// No time at all.
    pub const ZERO: Self = Self::exactly(Span::ZERO);

    /// One time.
    pub const fn exactly(at: Span) -> Self {
        Self { lo: at, hi: Some(at) }
    }

    /// From one time to another one, not before it.
    pub const fn between(lo: Span, hi: Span) -> Self {
        Self { lo, hi: Some(hi) }
    }

    /// From a time on, without a bound.
    pub const fn from(lo: Span) -> Self {
        Self { lo, hi: None }
    }

    /// Whether there is one possible time only.
    pub fn is_exact(&self) -> bool {
        self.hi == Some(self.lo)
    }

    /// Whether a time is one of them.
    pub fn contains(&self, at: Span) -> bool {
        self.lo <= at && self.hi.is_none_or(|hi| at <= hi)
    }

    /// All times of both, and those between.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let hi = self.hi.zip(other.hi).map(|(a, b)| a.max(b));
        Self { lo: self.lo.min(other.lo), hi }
    }

    /// The later one of a time of each.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        let hi = self.hi.zip(other.hi).map(|(a, b)| a.max(b));
        Self { lo: self.lo.max(other.lo), hi }
    }
}

/// No time: a missing bound has to be stated.
impl Default for Interval {
    fn default() -> Self {
        Self::ZERO
    }
}

impl std::ops::Add for Interval {
    type Output = Self;
    /// A time of the one after a time of the other.
    fn add(self, other: Self) -> Self {
        let hi = self.hi.zip(other.hi).map(|(a, b)| a + b);
        Self { lo: self.lo + other.lo, hi }
    }
}

/// The tasks of a program or of a system, and what is between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Where tasks run.
    pub hosts: Vec<Host>,
    /// What they write and read.
    pub channels: Vec<Channel>,
    /// What they lock.
    pub resources: Vec<String>,
    /// Resources of unknown identity, each with those that it may be.
    pub aliases: Vec<(usize, Vec<usize>)>,
    /// The tasks. No two of a program have the same name.
    pub tasks: Vec<Task>,
}

/// Where tasks run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What its clock reads when the system starts.
    pub start: Span,
    /// From the target of a timed sleep to the task continuing, at platform level.
    pub wakeup: Interval,
    /// How many processors its tasks share; none: each task has one to itself.
    pub cores: Option<u16>,
}

/// A channel between tasks. An lvchannel is a shared variable, not a message, and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// A fifochannel's is `program.name`, all others' that of the description.
    pub name: String,
    /// What it is.
    pub kind: ChannelKind,
}

/// What a channel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A fifochannel: no latency. A value that finds it full is dropped.
    Fifo {
        /// How many values it holds.
        capacity: u32,
    },
    /// A channel of the description that nothing else is known of yet: in graphs of one program.
    Named,
    /// A network channel, reserved, so that its latency is bounded, or best effort ("IP channel"),
    /// so that it is not.
    Network(NetworkChannel),
}

/// A channel over a network: latencies and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkChannel {
    /// From capture to receipt, for tasks of each host that reads it: by the reader's clock, less
    /// the capture by the writer's. The bound is missing where nothing is reserved.
    pub latencies: Vec<(usize, Interval)>,
    /// From capture to when both ends continue that wait for it.
    pub fixed_delay: Span,
    /// The least mean time between two messages: a write waits until the rate allows it.
    pub interval: Span,
    /// By how much a message may come before its interval is over
    /// ([`crate::rate::rate_tolerance`]).
    pub tolerance: Span,
    /// By how much less than an interval may be between a message that came late and the next one
    /// ([`crate::rate::catch_up`]); what is held is then held until it is due.
    pub catch_up: Span,
    /// By how much messages come before their intervals are over, as others count on: `tolerance`
    /// if bounds suppose that no talker is late and catches up, else `catch_up` more.
    pub early: Span,
    /// How many messages wait for a reader at most; one that finds no room is lost.
    pub capacity: u32,
}

impl NetworkChannel {
    /// What its writer keeps to.
    pub fn rate(&self) -> Rate {
        let Self { interval, tolerance, catch_up, .. } = *self;
        Rate { interval, tolerance, catch_up }
    }
}

/// A task: a control-flow graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its function's name; what is started a second time is `name#2`.
    pub name: String,
    /// The program that it is part of.
    pub program: String,
    /// In [`Graph::hosts`].
    pub host: usize,
    /// The file that its nodes' places count lines of; those of others name theirs.
    pub file: String,
    /// Its nodes. Node 0 is its [`NodeKind::Start`].
    pub nodes: Vec<TaskNode>,
    /// How many registers its expressions use. All are unknown at first.
    pub registers: u16,
    /// Whether a point that is passed late keeps the phase.
    pub keeps_phase: bool,
    /// Whether it begins when the program does; otherwise a [`NodeKind::Run`] starts it.
    pub is_first: bool,
    /// Execution times of whole segments: they pass when control comes to `to`, and the last timing
    /// point was `from`, or none and `from` is node 0. In a firm or hard segment the deadline cuts
    /// them short.
    pub segments: Vec<Segment>,
    /// Where it reads and writes lvchannels, which chains may go over.
    pub latest: Vec<Latest>,
    /// How it is scheduled.
    pub policy: Policy,
    /// 1 to 99, the greater the more urgent, where it is stated.
    pub priority: Option<u8>,
    /// The processors that it may use; empty: any.
    pub cores: Vec<u16>,
    /// The least time between two releases, where it is stated (`aperiodic`).
    pub separation: Option<Span>,
}

impl Task {
    /// A node's place for people: `controller.c:12`; of a task without a file `controller:12`.
    pub fn label(&self, node: usize) -> String {
        let place = &self.nodes[node].place;
        let file = if self.file.is_empty() { &self.name } else { &self.file };
        if place.contains(':') { place.clone() } else { format!("{file}:{place}") }
    }
}

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// By its priority, if it has one.
    #[default]
    Fixed,
    /// By a priority in the order of shortest periods.
    RateMonotonic,
    /// By a priority in the order of shortest deadlines.
    DeadlineMonotonic,
    /// Earliest deadline first.
    Edf,
}

/// Where a task reads or writes an lvchannel: a node without any effect on time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// A fragment.
    pub node: usize,
    /// The lvchannel's name, one in its program.
    pub variable: String,
    /// Whether it is written here; otherwise it is read.
    pub is_write: bool,
}

/// What a whole segment takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// A timing point, or node 0.
    pub from: usize,
    /// A timing point, or the task's end.
    pub to: usize,
    /// Best and worst execution time.
    pub execution: Interval,
    /// By how much it may begin late, when it was released at an instant.
    pub jitter: Interval,
    /// What it still takes when a deadline aborts it, before control comes to `to`.
    pub abort: Interval,
}

/// A node of a task's control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNode {
    /// What executes there.
    pub kind: NodeKind,
    /// Its place as traces have it: a line of the task's file, `12`; `12.2` for the second timing
    /// point, or the second channel end, in it; `loop.h:12` in another file. What tables call it.
    pub place: String,
    /// What may come next, in the order that [`NodeKind`] states.
    pub next: Vec<usize>,
    /// The firm or hard point to which control goes when its deadline passes here.
    pub guard: Option<usize>,
}

/// The kinds of nodes, with what executes at each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The task begins.
    Start,
    /// The task ends: nothing is next.
    End,
    /// A timing point.
    Point {
        /// What a missed deadline means.
        kind: PointKind,
        /// From the origin to the release, in nanoseconds.
        period: Expression,
        /// From the origin to the deadline, in nanoseconds; none if there is none.
        deadline: Option<Expression>,
    },
    /// The origin becomes now (`gettime`).
    Gettime,
    /// `skipdelay`: control continues at the timing point that is next and does not wait there.
    Skip,
    /// Code. At program level it takes no time.
    Fragment {
        /// Best and worst execution time at platform level.
        execution: Interval,
    },
    /// A channel's writing end.
    Write {
        /// In [`Graph::channels`].
        channel: usize,
        /// Whether it waits until capture time + the fixed delay (`WRITE_WAIT`).
        waits: bool,
    },
    /// A channel's reading end.
    Read {
        /// In [`Graph::channels`].
        channel: usize,
        /// Whether it waits until capture time + the fixed delay (`READ_WAIT`).
        waits: bool,
    },
    /// Another task is started.
    Run {
        /// In [`Graph::tasks`].
        task: usize,
    },
    /// A resource of [`Graph::resources`] is locked.
    Lock(usize),
    /// The same, of one that was free, without a wait (`pthread_mutex_trylock`).
    Take(usize),
    /// A resource of [`Graph::resources`] is unlocked.
    Unlock(usize),
    /// The segment holds something when control comes to the firm or hard point that is next: no
    /// deadline has cut it short.
    Held,
    /// A register gets a value.
    Set {
        /// Which.
        register: u16,
        /// Its new value.
        value: Expression,
    },
    /// The first of `next` if the condition is not 0, the second if it is; either if it is unknown.
    Branch(Expression),
    /// Any of `next`: paths part by what the graph does not know, or join.
    Any,
}

/// What a missed deadline means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointKind {
    /// The overshoot is returned.
    Soft,
    /// The segment is aborted.
    Firm,
    /// The segment is aborted and the error handler runs; without one the program ends.
    Hard,
}

/// Integers, as C's `long`; what overflows is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Constant(i64),
    /// A register's value.
    Register(u16),
    /// Unknown.
    Unknown,
    /// An operation on one value.
    Unary(Unary, Box<Expression>),
    /// An operation on two values.
    Binary(Binary, Box<Expression>, Box<Expression>),
}

/// An operation on one value, as in C, or a type's limits on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
    /// The value itself; unknown outside of a range, as of a type that cannot hold it.
    Within {
        /// The least value.
        lo: i64,
        /// The greatest one.
        hi: i64,
    },
    /// The lowest bits of it, as an unsigned type of less than 64 bits has them.
    Wrap {
        /// How many.
        bits: u8,
    },
}

/// An operation on two values, as in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; by 0 unknown
    Divide,
    /// `%`; by 0 unknown
    Remainder,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`; unknown unless 0 to 62
    ShiftLeft,
    /// `>>`; unknown unless 0 to 62
    ShiftRight,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Expression {
    /// Its value, if it is known.
    pub fn value(&self, registers: &[Option<i64>]) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Register(register) => registers.get(usize::from(*register)).copied().flatten(),
            Self::Unknown => None,
            Self::Unary(operation, inner) => {
                let value = inner.value(registers)?;
                match operation {
                    Unary::Minus => value.checked_neg(),
                    Unary::Not => Some(i64::from(value == 0)),
                    Unary::Complement => Some(!value),
                    Unary::Within { lo, hi } => Some(value).filter(|v| (*lo..=*hi).contains(v)),
                    Unary::Wrap { bits } => Some(value & ((1 << (*bits).min(62)) - 1)),
                }
            }
            Self::Binary(operation, left, right) => {
                operation.of(left.value(registers)?, right.value(registers)?)
            }
        }
    }

    /// Itself and all that it is made of.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Constant(_) | Self::Register(_) | Self::Unknown => vec![self],
            Self::Unary(_, inner) => [vec![self], inner.parts()].concat(),
            Self::Binary(_, left, right) => [vec![self], left.parts(), right.parts()].concat(),
        }
    }

    /// The registers that its value depends on.
    pub fn registers(&self) -> impl Iterator<Item = u16> {
        self.parts().into_iter().filter_map(|part| match part {
            Self::Register(register) => Some(*register),
            _ => None,
        })
    }
}

impl Unary {
    /// Its operator in C; empty for those that C has no operator for.
    pub const fn operator(self) -> &'static str {
        match self {
            Self::Minus => "-",
            Self::Not => "!",
            Self::Complement => "~",
            Self::Within { .. } | Self::Wrap { .. } => "",
        }
    }
}

impl Binary {
    /// Its operator in C.
    pub const fn operator(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// What comes of two values, if it is known.
    fn of(self, a: i64, b: i64) -> Option<i64> {
        let shift = u32::try_from(b).ok().filter(|by| *by < 63);
        match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
            Self::And => Some(a & b),
            Self::Or => Some(a | b),
            Self::Xor => Some(a ^ b),
            Self::ShiftLeft => shift.and_then(|by| a.checked_mul(1 << by)),
            Self::ShiftRight => shift.map(|by| a >> by),
            Self::Equal => Some(i64::from(a == b)),
            Self::Unequal => Some(i64::from(a != b)),
            Self::Less => Some(i64::from(a < b)),
            Self::LessOrEqual => Some(i64::from(a <= b)),
            Self::Greater => Some(i64::from(a > b)),
            Self::GreaterOrEqual => Some(i64::from(a >= b)),
        }
    }
}
