//! What one unit adds to the graph of its program.

use crate::timedc::Integer;
use onbeat_model::diagnostic::Origin;
use onbeat_model::graph::{Expression, Interval, PointKind, Policy};
use onbeat_model::time::Span;

/// A unit's functions, for [`super::link`].
#[derive(Clone, Debug, Default)]
pub struct UnitGraph {
    /// The main file's path.
    pub(crate) file: String,
    /// How many files it was read from.
    pub(crate) file_count: u16,
    pub(crate) functions: Vec<Function>,
    pub(crate) fifos: Vec<Fifo>,
    pub(crate) keeps_phase: bool,
    /// Timing points as traces have them, in the order of the text.
    pub(crate) points: Vec<String>,
    /// Functions that are used other than called: their names, and where.
    pub(crate) pointers: Vec<(String, Origin)>,
    /// What is not understood as C, and where.
    pub(crate) unread: Option<(String, Origin)>,
}

/// A fifochannel.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    pub name: String,
    /// Whether other units can mean the same one.
    pub is_shared: bool,
    /// Whether it is what an abstract channel is, and no declared one.
    pub is_bound: bool,
    /// None where another unit says it.
    pub capacity: Option<u32>,
    pub origin: Origin,
}

/// An lvchannel.
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    pub name: String,
    /// Whether other units can mean the same one.
    pub is_shared: bool,
    pub origin: Origin,
}

/// A function. Registers are the places of its variables in its list.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub name: String,
    pub is_task: bool,
    /// Whether a start of it starts it on the program's host.
    pub starts: bool,
    pub is_static: bool,
    /// Whether control may come to a timing point in it, as far as its unit knows.
    pub has_points: bool,
    /// Whether its points count from its call, and the caller's not from them.
    pub has_origin: bool,
    /// Step 0 is where it begins.
    pub steps: Vec<UnitStep>,
    pub exit: usize,
    pub variable_count: u16,
    /// By position: the register and its type, if it is one.
    pub parameters: Vec<Option<(u16, Integer)>>,
    pub scheduling: Scheduling,
    /// A `goto` to a label that is computed.
    pub leap: Option<Origin>,
    /// What of it has no bound, and where.
    pub doubts: Vec<(String, Origin)>,
    pub origin: Origin,
}

/// What a task says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scheduling {
    pub policy: Option<Policy>,
    pub priority: Option<u8>,
    pub separation: Option<Span>,
    pub keeps_phase: Option<bool>,
}

/// A step of a function.
#[derive(Clone, Debug)]
pub(crate) struct UnitStep {
    pub act: Act,
    /// The order of [`Act`].
    pub next: Vec<usize>,
    /// The step of the point that guards it.
    pub guard: Option<usize>,
    pub in_critical: bool,
    /// Whether its time is not declared, but taken for a loop without end.
    pub is_assumed: bool,
    pub place: SourcePlace,
    pub origin: Origin,
}

/// A place in the sources: a line of a file, or the name of a point or of a channel endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePlace {
    /// The file's name, if it is not the unit's main one.
    pub file: Option<String>,
    /// A line, and the number in it.
    pub name: String,
}

/// What happens at a step.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Nothing,
    Code,
    Work(Interval),
    Point {
        kind: PointKind,
        period: Expression,
        deadline: Option<Expression>,
    },
    Gettime,
    /// To the step of the point.
    Skip(usize),
    Start(Call),
    /// Of a function of the program, or code.
    Call(Call),
    Write {
        channel: ChannelRef,
        waits: bool,
    },
    Read {
        channel: ChannelRef,
        waits: bool,
    },
    /// An end of an lvchannel.
    Latest {
        latest: Latest,
        is_write: bool,
    },
    /// `cinit`.
    Init(ChannelRef),
    Lock(Object),
    /// The same, of one that was free.
    Take(Object),
    Unlock(Object),
    /// Something is obtained or given back; otherwise it is code.
    Hold(Vec<Hold>),
    Set {
        register: u16,
        value: Expression,
        /// Whether it is code where the register does not matter.
        is_code: bool,
    },
    /// The first of `next` if it holds.
    Branch(Expression),
    /// Any of `next`.
    Any,
    /// The program, or the task, ends.
    Exit,
    /// What cannot be followed.
    Lost(String),
}

/// What an abort waits for: it is obtained, or given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub thing: Thing,
    pub effect: Effect,
    /// As the program names it, if it does.
    pub name: Option<String>,
    /// Whether the name is one of the function's own.
    pub is_local: bool,
}

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Thing {
    Lock,
    Memory,
    Stream,
    Directory,
    Other,
    /// Any of them.
    Any,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Take,
    /// It is obtained, or not.
    May,
    Give,
}

/// A call by name.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub name: String,
    pub arguments: Vec<Argument>,
}

/// What is passed.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub value: Expression,
    /// Its type, if that is known.
    pub kind: Option<Integer>,
    /// The channel's end that it is, if it is one.
    pub end: Option<ChannelRef>,
    /// What it points to, if it is a pointer of which that is known.
    pub object: Option<Object>,
}

/// What a pointer points to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    /// A variable, or a part of one: `dev.lock`.
    Known {
        name: String,
        /// Whether other units can mean the same one.
        is_shared: bool,
        /// Where a function's own is declared.
        at: usize,
    },
    /// What the parameter at a position points to, or a part of it: `.lock`.
    Parameter(usize, String),
    /// Unknown: as the program has it.
    Vague(String),
}

impl Object {
    /// A part of it.
    pub(crate) fn part(self, part: &str) -> Self {
        match self {
            Self::Known { name, is_shared, at } => Self::Known { name: name + part, is_shared, at },
            Self::Parameter(at, path) => Self::Parameter(at, path + part),
            Self::Vague(name) => Self::Vague(name + part),
        }
    }
}

/// The channel that an endpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChannelRef {
    /// In [`UnitGraph::fifos`].
    Fifo(usize),
    Named(String),
    /// The one that is passed; or, if none is, the one that the parameter is named after.
    Parameter(usize, Option<String>),
}
