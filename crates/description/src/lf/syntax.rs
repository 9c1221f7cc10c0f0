//! The syntax tree of a file: what the grammar says, with places, and nothing interpreted.

use crate::At;
use onbeat_model::diagnostic::Origin;

/// A name and its place.
pub(in crate::lf) type Name = At<String>;

/// A file.
#[derive(Clone, Debug, Default)]
pub(in crate::lf) struct File {
    pub(in crate::lf) target: Option<Target>,
    pub(in crate::lf) imports: Vec<Import>,
    pub(in crate::lf) preambles: Vec<Preamble>,
    pub(in crate::lf) reactors: Vec<Reactor>,
    /// Comments in the form of our attributes that belong to no statement.
    pub(in crate::lf) unused: Vec<Origin>,
}

/// `target C { … }`.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Target {
    pub(in crate::lf) name: Name,
    pub(in crate::lf) properties: Vec<Property>,
}

/// A key of a target property and its value.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Property {
    pub(in crate::lf) key: Name,
    pub(in crate::lf) value: Element,
}

/// The value of a target property.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Element {
    /// Pairs in braces, or a list in brackets: nothing that matters here.
    Nested,
    Literal(At<Literal>),
    Time(At<Time>),
    /// A bare word or path.
    Path(Name),
}

/// `import A as B, C from "file.lf"`.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Import {
    /// Each reactor's name there and here.
    pub(in crate::lf) reactors: Vec<(Name, Name)>,
    pub(in crate::lf) from: Name,
    /// Whether the path is in angle brackets: that of a package.
    pub(in crate::lf) is_package: bool,
}

/// Target code that stands before generated code.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Preamble {
    /// Without its delimiters.
    pub(in crate::lf) code: At<String>,
}

/// What a reactor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Role {
    Class,
    Main,
    Federated,
}

/// A reactor class.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Reactor {
    pub(in crate::lf) role: Role,
    /// None: it has the file's name.
    pub(in crate::lf) name: Option<Name>,
    pub(in crate::lf) type_parameters: Vec<Name>,
    pub(in crate::lf) parameters: Vec<Parameter>,
    pub(in crate::lf) extends: Vec<Name>,
    pub(in crate::lf) members: Vec<Member>,
    /// Its name, or the keyword.
    pub(in crate::lf) at: Origin,
}

/// A statement in a reactor or a mode.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Member {
    Preamble(Preamble),
    State(State),
    Method(Name),
    Input(Port),
    Output(Port),
    Timer(Timer),
    Action(Action),
    Watchdog(Watchdog),
    Instantiation(Instantiation),
    Connection(Connection),
    Reaction(Reaction),
    Mode(Mode),
}

/// A state variable.
#[derive(Clone, Debug)]
pub(in crate::lf) struct State {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Name,
}

/// An input or output.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Port {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) width: Option<At<Width>>,
    pub(in crate::lf) kind: Option<At<Type>>,
}

/// A timer.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Timer {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) offset: Option<At<Expression>>,
    pub(in crate::lf) period: Option<At<Expression>>,
}

/// An action.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Action {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) is_physical: bool,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) min_delay: Option<At<Expression>>,
    pub(in crate::lf) min_spacing: Option<At<Expression>>,
}

/// A watchdog.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Watchdog {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) timeout: At<Expression>,
    pub(in crate::lf) effects: Vec<Effect>,
}

/// A mode and what is in it.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Mode {
    pub(in crate::lf) name: Option<Name>,
    pub(in crate::lf) members: Vec<Member>,
}

/// A reaction.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Reaction {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Option<Name>,
    pub(in crate::lf) triggers: Vec<Trigger>,
    pub(in crate::lf) sources: Vec<Reference>,
    pub(in crate::lf) effects: Vec<Effect>,
    pub(in crate::lf) deadline: Option<At<Expression>>,
    /// Whether it has a handler of tardy messages: `tardy`, formerly `STAA` and `STP`.
    pub(in crate::lf) tardy: Option<Tardy>,
    pub(in crate::lf) at: Origin,
}

/// The handler of tardy messages.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Tardy {
    /// How long the reaction waits for its inputs, as older versions put it.
    pub(in crate::lf) value: Option<At<Expression>>,
}

/// What triggers a reaction.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Trigger {
    Startup,
    Shutdown,
    Reset,
    Of(Reference),
}

/// What a reaction may do.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Effect {
    Of(Reference),
    /// `reset(M)` or `history(M)`.
    Transition {
        mode: Name,
        keeps_history: bool,
    },
}

/// A port, action, timer, watchdog or mode, perhaps of an instance.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Reference {
    pub(in crate::lf) instance: Option<Name>,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) is_interleaved: bool,
    pub(in crate::lf) at: Origin,
}

/// `a = new[2] B<T>(x = 1)`.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Instantiation {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) name: Name,
    pub(in crate::lf) width: Option<At<Width>>,
    pub(in crate::lf) class: Name,
    pub(in crate::lf) type_arguments: Vec<At<Type>>,
    pub(in crate::lf) arguments: Vec<(Name, At<Expression>)>,
    pub(in crate::lf) host: Option<At<Host>>,
}

/// A connection.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Connection {
    pub(in crate::lf) attributes: Vec<Attribute>,
    pub(in crate::lf) left: Vec<Reference>,
    /// `( … )+`: the left side is repeated until the right side has enough.
    pub(in crate::lf) is_broadcast: bool,
    pub(in crate::lf) is_physical: bool,
    pub(in crate::lf) right: Vec<Reference>,
    pub(in crate::lf) after: Option<At<Expression>>,
    pub(in crate::lf) serializer: Option<Name>,
    pub(in crate::lf) at: Origin,
}

/// A parameter of a reactor.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Parameter {
    pub(in crate::lf) name: Name,
    pub(in crate::lf) default: Option<At<Expression>>,
}

/// `@name(value, name = value)`, also in a comment.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Attribute {
    pub(in crate::lf) name: Name,
    pub(in crate::lf) values: Vec<(Option<Name>, At<Value>)>,
    pub(in crate::lf) is_comment: bool,
    pub(in crate::lf) at: Origin,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Value {
    Literal(Literal),
    Time(Time),
    /// A bare word.
    Word(String),
    /// `0..4`, which only diagrams use.
    Range,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Expression {
    Literal(Literal),
    Time(Time),
    Parameter(String),
    /// Target code without its delimiters.
    Code(String),
    List(Vec<At<Expression>>),
}

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Literal {
    /// With its quotes.
    Text(String),
    Integer(i64),
    /// As written; a number with a point or an exponent, or one beyond 64 bits.
    Real(String),
    Boolean(bool),
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Time {
    Ns(i64),
    Forever,
    Never,
}

/// A type of the target language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Type {
    Time,
    Named {
        /// Parts joined by `.` or `::`.
        name: String,
        arguments: Vec<At<Type>>,
        stars: usize,
        array: Option<Array>,
    },
    /// Target code without its delimiters.
    Code(String),
}

/// `[3]` or `[]` behind a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Array {
    Of(i64),
    Variable,
}

/// The width of a bank or multiport: a sum of terms, or `[]`.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Width {
    Sum(Vec<At<Term>>),
    Variable,
}

/// A term of a width.
#[derive(Clone, Debug)]
pub(in crate::lf) enum Term {
    Number(i64),
    Parameter(String),
    WidthOf(Reference),
    Code(String),
}

/// `user@name:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) struct Host {
    /// Without user and port.
    pub(in crate::lf) name: String,
}
