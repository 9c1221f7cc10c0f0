//! What each function does with time and channels, for the program's time-flow graph.

use super::construct::{Construct, Constructs, Deadline, Length, TimeUnit};
use super::flow::{Flow, StepKind, inside};
use super::guard::{Guards, in_force};
use super::idle::{Idle, ROUND_NS};
use super::integer::Integer;
use super::locks::{self, Objects};
use super::net;
use super::program::Program;
use super::syntax::{bare, children, number, walk};
use super::unit::{Function, Role, Unit};
use super::value::{self, Reader};
use super::work::{Times, Work};
use super::{bound, channels, hold};
use crate::graph::unit::{
    Act, Argument, Call, ChannelRef, Fifo, Function as Made, Latest, Object, Scheduling,
    SourcePlace, UnitGraph, UnitStep,
};
use onbeat_model::binding::{Binding, Realisation};
use onbeat_model::diagnostic::Origin;
use onbeat_model::graph::{Binary, Expression, Interval, Policy};
use onbeat_model::time::Span;
use std::collections::{BTreeMap, HashMap, HashSet};
use tree_sitter::Node;

/// Calls that are no code of the program's.
const QUIET: [&str; 11] = [
    "__builtin_expect",
    "cinit",
    "nelem",
    "timedc_aborted",
    "timedc_keep_phase",
    "timedc_on_abort",
    "timedc_on_late",
    "pdu_create_standalone",
    "chan_create_standalone",
    "cread",
    "cwrite",
];

/// All that was found out of a unit.
pub(super) struct Extractor<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub constructs: &'u Constructs<'t>,
    pub program: &'u Program<'t>,
    pub work: &'u Work<'t>,
    pub names: &'u [String],
    pub flows: &'u [Flow<'t>],
    pub guards: &'u [Guards],
    pub skips: &'u [BTreeMap<usize, usize>],
    pub idle: &'u [Vec<Idle<'t>>],
}

impl<'t> Extractor<'_, 't> {
    pub(super) fn read(&self) -> UnitGraph {
        let ends = Endpoints::read(self.unit, Fifos::read(self.unit));
        let functions = (0..self.flows.len()).map(|index| self.function(index, &ends)).collect();
        UnitGraph {
            file: self.unit.path(0).to_owned(),
            file_count: u16::try_from(self.unit.files.len()).unwrap_or(u16::MAX),
            functions,
            keeps_phase: self.unit.options.keep_phase,
            points: self.names.to_vec(),
            pointers: self.pointers(),
            unread: super::unread::find(self.unit, self.program),
            fifos: ends.fifos.all,
        }
    }

    /// Where functions' names stand other than to be called; of libraries' those that lock or wait.
    fn pointers(&self) -> Vec<(String, Origin)> {
        let unit = self.unit;
        let is_prototype =
            |g: &&super::unit::Variable<'_>| g.declarator.kind() == "function_declarator";
        let mut names: HashSet<&str> =
            unit.globals.iter().filter(is_prototype).map(|g| g.name).collect();
        names.extend(unit.defined.keys().copied());
        names.retain(|name| unit.names.contains(name));
        let mut found = Vec::new();
        walk(unit.root, |node| {
            let name = unit.words(node);
            let is_known = names.contains(name) || locks::is_timed(name);
            let is_name = node.kind() == "identifier" && is_known;
            let is_used = is_name && !is_declared(node) && !is_called(node);
            if is_used && !self.is_local(node) {
                found.push((name.to_owned(), unit.at(node.byte_range())));
            }
            !matches!(node.kind(), "sizeof_expression" | "alignof_expression")
        });
        found
    }

    fn is_local(&self, node: Node<'t>) -> bool {
        let at = node.start_byte();
        let around = self.unit.functions.iter().find(|f| f.definition.byte_range().contains(&at));
        around.is_some_and(|f| self.unit.resolve(f, self.unit.words(node), at).is_some())
    }

    fn function(&self, index: usize, ends: &Endpoints<'t>) -> Made {
        let function = &self.unit.functions[index];
        let registers = value::registers(self.unit, function);
        let (steps, doubts) = Maker {
            all: self,
            index,
            function,
            flow: &self.flows[index],
            ends,
            reader: Reader { unit: self.unit, function, registers: &registers },
            points: points(&self.flows[index]),
            steps: Vec::new(),
            tested: HashSet::new(),
            changed: locks::changed(self.unit, function),
            doubts: Vec::new(),
        }
        .run();
        let parameters = function.variables.iter().enumerate().filter(|(_, v)| v.is_parameter);
        Made {
            name: function.name.to_owned(),
            is_task: function.role == Role::Task,
            starts: self.unit.options.starts(function.role, function.name),
            is_static: function.is_static,
            has_points: self.program.is_with_points(index),
            has_origin: self.constructs.counts_from_entry(self.unit, function),
            steps,
            doubts,
            exit: self.flows[index].exit,
            variable_count: u16::try_from(function.variables.len()).unwrap_or(u16::MAX),
            parameters: parameters
                .map(|(at, _)| Some((u16::try_from(at).ok()?, registers.get(at).copied()??)))
                .collect(),
            scheduling: match function.role {
                Role::Plain => Scheduling::default(),
                _ => self.scheduling(index),
            },
            leap: self.leap(function),
            origin: self.unit.at(function.definition.start_byte()..function.body.start_byte()),
        }
    }

    /// `goto *there;`
    fn leap(&self, function: &Function<'t>) -> Option<Origin> {
        let mut found = None;
        walk(function.body, |node| {
            let mut words = self.unit.words(node).strip_prefix("goto").unwrap_or("").chars();
            let is_leap = words.find(|c| !c.is_whitespace()) == Some('*');
            if is_leap && found.is_none() {
                found = Some(self.unit.at(node.byte_range()));
            }
            !is_leap
        });
        found
    }

    /// What a function, and those that it calls, say of the task.
    fn scheduling(&self, index: usize) -> Scheduling {
        let mut found = Scheduling::default();
        let mut all: Vec<usize> =
            self.program.callees(HashSet::from([index])).into_iter().collect();
        all.sort_unstable_by_key(|f| (*f != index, *f));
        for function in all {
            walk(self.unit.functions[function].body, |node| {
                if node.kind() == "call_expression" {
                    self.says(node, &mut found);
                }
                true
            });
        }
        found
    }

    fn says(&self, call: Node<'t>, found: &mut Scheduling) {
        let arguments = call.child_by_field_name("arguments").map(children).unwrap_or_default();
        let first = arguments.first().and_then(|a| self.unit.constant(*a));
        match self.constructs.calls.get(&call.id()) {
            Some((_, Construct::Policy(name, _))) => {
                found.policy = found.policy.or(Some(match *name {
                    "TIMEDC_EDF" => Policy::Edf,
                    "TIMEDC_FIFO_DM" | "TIMEDC_RR_DM" => Policy::DeadlineMonotonic,
                    _ => Policy::RateMonotonic,
                }));
            }
            Some((_, Construct::Aperiodic(length, ..))) => {
                let separation = length.constant_ns.map(Span::from_ns);
                found.separation = found.separation.or(separation);
            }
            Some((_, Construct::Priority)) => {
                let stated = first.and_then(|v| u8::try_from(v).ok());
                found.priority = found.priority.or(stated.filter(|p| (1..=99).contains(p)));
            }
            _ if self.unit.callee(call) == Some("timedc_keep_phase") => {
                found.keeps_phase = found.keeps_phase.or(first.map(|v| v != 0));
            }
            _ => {}
        }
    }
}

/// Whether a name stands where it is declared: as a variable, a parameter, an enumerator.
fn is_declared(name: Node<'_>) -> bool {
    name.parent().is_some_and(|parent| {
        let mut cursor = parent.walk();
        let mut own = parent.children_by_field_name("declarator", &mut cursor);
        let is_value = parent.child_by_field_name("value") == Some(name);
        !is_value && parent.kind().ends_with("declarator")
            || own.any(|n| n == name)
            || parent.child_by_field_name("name") == Some(name)
    })
}

/// Whether a function's name stands in a call of it.
fn is_called(name: Node<'_>) -> bool {
    let mut inner = name;
    while let Some(parent) = inner.parent() {
        match parent.kind() {
            "parenthesized_expression" => inner = parent,
            "call_expression" => return parent.child_by_field_name("function") == Some(inner),
            _ => return false,
        }
    }
    false
}

/// The steps of a function's points.
fn points(flow: &Flow<'_>) -> HashMap<usize, usize> {
    let steps = flow.steps.iter().enumerate();
    let point = |(at, step): (usize, &super::flow::Step<'_>)| match step.kind {
        StepKind::Point(point) => Some((point, at)),
        _ => None,
    };
    steps.filter_map(point).collect()
}

pub(super) fn interval(times: Times) -> Interval {
    Interval::between(Span::from_ns(times.0), Span::from_ns(times.1))
}

/// The fifochannels of a unit.
struct Fifos {
    all: Vec<Fifo>,
    /// By the place of the name in its declaration.
    by_place: HashMap<usize, usize>,
    /// Of file scope.
    by_name: HashMap<String, usize>,
    /// lvchannels, by the same.
    latest: HashMap<usize, Latest>,
    latest_names: HashMap<String, Latest>,
}

impl Fifos {
    fn read(unit: &Unit<'_>) -> Self {
        let mut made = Self {
            all: Vec::new(),
            by_place: HashMap::new(),
            by_name: HashMap::new(),
            latest: HashMap::new(),
            latest_names: HashMap::new(),
        };
        for channel in &unit.prepared.channels {
            let name = unit.text.get(channel.name.clone()).unwrap_or("").to_owned();
            let Some(node) = channels::declaration(unit, channel) else { continue };
            let is_inner = node.parent().is_some_and(|p| p.kind() == "compound_statement");
            let storage = children(node)
                .into_iter()
                .filter(|n| n.kind() == "storage_class_specifier")
                .map(|n| unit.words(n));
            let storage: Vec<&str> = storage.collect();
            let is_extern = storage.contains(&"extern");
            let is_shared = is_extern || !is_inner && !storage.contains(&"static");
            if channel.is_latest {
                let origin = unit.at(channel.name.clone());
                let latest = Latest { name: name.clone(), is_shared, origin };
                if !is_inner {
                    made.latest_names.insert(name, latest.clone());
                }
                made.latest.insert(channel.name.start, latest);
                continue;
            }
            let count = channel.count.clone().map(|c| unit.text.get(c).unwrap_or("").trim());
            let stated = match count {
                None => channels::CAPACITY.parse().ok(),
                Some(text) => number(text).or_else(|| unit.enumerator(text)),
            };
            let capacity = stated.filter(|_| !is_extern).and_then(|n: i128| u32::try_from(n).ok());
            let fifo = Fifo {
                is_shared,
                is_bound: false,
                capacity,
                origin: unit.at(channel.name.clone()),
                name: name.clone(),
            };
            let known = made.by_name.get(&name).copied().filter(|_| !is_inner);
            let at = known.unwrap_or(made.all.len());
            match known {
                Some(known) => {
                    let old = &mut made.all[known];
                    old.capacity = old.capacity.or(fifo.capacity);
                }
                None => made.all.push(fifo),
            }
            made.by_place.insert(channel.name.start, at);
            if !is_inner {
                made.by_name.insert(name, at);
            }
        }
        made
    }
}

impl Fifos {
    /// What an abstract channel is.
    fn bound(&mut self, unit: &Unit<'_>, binding: &Binding) -> ChannelRef {
        match &binding.to {
            Realisation::Network(channel) => ChannelRef::Named(channel.clone()),
            Realisation::Fifo(count) => {
                self.all.push(Fifo {
                    name: binding.name.clone(),
                    is_shared: true,
                    is_bound: true,
                    capacity: Some(*count),
                    origin: unit.at(0..0),
                });
                ChannelRef::Fifo(self.all.len() - 1)
            }
        }
    }
}

/// Which channel a call is about.
enum About {
    Channel(ChannelRef),
    /// An lvchannel, a shared variable.
    Latest(Latest),
    Unknown,
}

/// The channels' ends of a unit.
struct Endpoints<'t> {
    fifos: Fifos,
    /// Variables that are ends, by function and everywhere.
    opened: HashMap<(usize, &'t str), String>,
    anywhere: HashMap<&'t str, String>,
    /// What abstract channels are, by their places in the list of bindings.
    bound: HashMap<usize, ChannelRef>,
    /// Names of places, by the call: those that traces have.
    places: HashMap<usize, String>,
}

impl<'t> Endpoints<'t> {
    fn read(unit: &Unit<'t>, fifos: Fifos) -> Self {
        let mut made = Self {
            fifos,
            opened: HashMap::new(),
            anywhere: HashMap::new(),
            bound: HashMap::new(),
            places: HashMap::new(),
        };
        for at in bound::used(unit) {
            let end = made.fifos.bound(unit, &unit.options.bindings[at]);
            made.bound.insert(at, end);
        }
        let mut calls = Vec::new();
        for (index, function) in unit.functions.iter().enumerate() {
            walk(function.body, |node| {
                if node.kind() == "call_expression" {
                    calls.push((index, node));
                }
                true
            });
        }
        for (function, call) in &calls {
            let callee = unit.callee(*call).unwrap_or("");
            if let Some((_, first)) = net::OPENERS.iter().find(|(name, _)| *name == callee)
                && let Some((end, _)) = net::end(unit, *call, *first)
                && let Some(variable) = net::receiver(unit, *call)
            {
                made.anywhere.insert(variable, end.name.clone());
                made.opened.insert((*function, variable), end.name);
            }
        }
        for end in super::endpoints::read(unit) {
            let name = end.place.rsplit(':').next().unwrap_or_default().to_owned();
            made.places.insert(end.call.id(), name);
        }
        made
    }

    /// What a call writes or reads: whether it writes, and whether it waits.
    fn end(&self, unit: &Unit<'t>, function: usize, call: Node<'t>) -> Option<(About, bool, bool)> {
        let callee = unit.callee(call)?;
        let subject = &unit.functions[function];
        if let Some(moves) = bound::of(unit, subject, call) {
            let end = moves.binding.and_then(|at| self.bound.get(&at).cloned());
            let about = end.map_or(About::Unknown, About::Channel);
            return Some((about, moves.is_write, false));
        }
        let is_ours = |name: &str| {
            !unit.defined.contains_key(name)
                && unit.resolve(subject, name, call.start_byte()).is_none()
        };
        let first = *children(call.child_by_field_name("arguments")?).first()?;
        if let "cread" | "cwrite" = callee {
            let is_ours = is_ours(callee) && !unit.names.contains(callee);
            return is_ours.then(|| (self.fifo(unit, function, first), callee == "cwrite", false));
        }
        let name = net::MOVERS.iter().find(|name| **name == callee)?;
        is_ours(name).then(|| {
            let end = self.net(unit, function, first);
            let about = end.map_or(About::Unknown, About::Channel);
            (about, net::writes(name), name.ends_with("_wait"))
        })
    }

    fn fifo(&self, unit: &Unit<'t>, function: usize, node: Node<'t>) -> About {
        let node = bare(node);
        let name = unit.words(node);
        let known = match unit.resolve(&unit.functions[function], name, node.start_byte()) {
            Some(local) => {
                if let Some(latest) = self.fifos.latest.get(&local.place.start) {
                    return About::Latest(latest.clone());
                }
                self.fifos.by_place.get(&local.place.start)
            }
            None => match self.fifos.latest_names.get(name) {
                Some(latest) => return About::Latest(latest.clone()),
                None => self.fifos.by_name.get(name),
            },
        };
        known.map_or(About::Unknown, |fifo| About::Channel(ChannelRef::Fifo(*fifo)))
    }

    fn net(&self, unit: &Unit<'t>, function: usize, node: Node<'t>) -> Option<ChannelRef> {
        let node = bare(node);
        let name = unit.words(node);
        let label = name.strip_suffix("_du").map(str::to_owned);
        let subject = &unit.functions[function];
        if let Some(local) = unit.resolve(subject, name, node.start_byte())
            && local.is_parameter
        {
            let mut parameters = subject.variables.iter().filter(|v| v.is_parameter);
            let at = parameters.position(|v| v.place == local.place)?;
            return Some(ChannelRef::Parameter(at, label));
        }
        let opened = self.opened.get(&(function, name)).or(self.anywhere.get(name));
        opened.cloned().or(label).map(ChannelRef::Named)
    }
}

/// Makes the steps of one function.
struct Maker<'u, 't> {
    all: &'u Extractor<'u, 't>,
    index: usize,
    function: &'u Function<'t>,
    flow: &'u Flow<'t>,
    ends: &'u Endpoints<'t>,
    reader: Reader<'u, 't>,
    points: HashMap<usize, usize>,
    steps: Vec<UnitStep>,
    /// Arguments of calls that lock a mutex if they can, and that decide conditions.
    tested: HashSet<usize>,
    /// Where variables are declared that do not keep their value.
    changed: HashSet<usize>,
    doubts: Vec<(String, Origin)>,
}

impl<'t> Maker<'_, 't> {
    fn run(mut self) -> (Vec<UnitStep>, Vec<(String, Origin)>) {
        let guards = in_force(self.all.program, self.flow, &self.all.guards[self.index]);
        self.tested = self.tested();
        for (at, step) in self.flow.steps.iter().enumerate() {
            let mut next = step.next.clone();
            next.retain(|to| !self.flow.aborts.contains(&(at, *to)));
            let made = UnitStep {
                act: Act::Nothing,
                next,
                guard: guards[at].and_then(|point| self.points.get(&point).copied()),
                in_critical: step.in_critical,
                is_assumed: false,
                place: self.place(step.place.start),
                origin: self.all.unit.at(step.place.clone()),
            };
            self.steps.push(made);
        }
        for at in 0..self.flow.steps.len() {
            self.step(at);
        }
        for idle in &self.all.idle[self.index] {
            let step = &mut self.steps[idle.again];
            step.act = Act::Work(Interval::exactly(Span::from_ns(ROUND_NS)));
            step.is_assumed = true;
            step.origin = self.all.unit.at(idle.keyword());
        }
        if let Some(times) = self.all.work.of_function(self.function.name) {
            self.steps[0].act = Act::Work(interval(times));
        }
        (self.steps, self.doubts)
    }

    fn place(&self, at: usize) -> SourcePlace {
        let (file, line) = self.all.unit.line(at);
        SourcePlace { file: self.file(file), name: line.to_string() }
    }

    fn file(&self, file: u16) -> Option<String> {
        let path = self.all.unit.path(file);
        (file != 0).then(|| path.rsplit('/').next().unwrap_or(path).to_owned())
    }

    fn step(&mut self, at: usize) {
        let step = &self.flow.steps[at];
        let act = match step.kind {
            StepKind::Join | StepKind::Declare(_) | StepKind::CriticalEnd(_) | StepKind::Exit => {
                Act::Nothing
            }
            StepKind::Slot(slot) => self.slot(at, self.flow.slots[slot].node()),
            StepKind::Inner(node) => self.slot(at, node),
            StepKind::Branch(condition, is_first) => {
                return self.branch(at, condition, is_first);
            }
            StepKind::Choose(value) => return self.choose(at, value),
            StepKind::Point(point) => self.point(at, point),
            StepKind::Gettime => Act::Gettime,
            StepKind::Call(call) => self.call(at, call),
            StepKind::Start(call) => {
                let name = self.all.unit.callee(call).unwrap_or("").to_owned();
                Act::Start(Call { name, arguments: self.arguments(call) })
            }
            StepKind::Assign(variable) => self.assign(at, variable),
            StepKind::Skip(node) => {
                let point = self.all.skips[self.index].get(&node.id());
                let point = point.and_then(|point| self.points.get(point)).copied();
                point.map_or(Act::Nothing, Act::Skip)
            }
        };
        self.steps[at].act = act;
    }

    /// The line of the statement that an expression is in.
    fn statement(&self, node: Node<'t>) -> SourcePlace {
        let mut outer = node;
        while let Some(parent) = outer.parent() {
            match outer.kind() {
                "expression_statement" | "declaration" | "return_statement" => {
                    return self.place(outer.start_byte());
                }
                "compound_statement" => break,
                _ => outer = parent,
            }
        }
        self.place(node.start_byte())
    }

    fn slot(&mut self, at: usize, node: Node<'t>) -> Act {
        if node.kind() != "expression_statement" {
            return Act::Nothing;
        }
        if let Some(times) = self.all.work.at_statement(node.start_byte()) {
            return Act::Work(interval(times));
        }
        let (mut assigns, mut has_construct) = (false, false);
        walk(node, |inner| {
            let target = match inner.kind() {
                "assignment_expression" => inner.child_by_field_name("left"),
                "update_expression" => inner.child_by_field_name("argument"),
                _ => None,
            };
            assigns |= target.is_some() || inner.kind().starts_with("gnu_asm");
            has_construct |= inner.kind() == "call_expression" && !self.is_code(inner);
            true
        });
        self.steps[at].place = self.place(node.start_byte());
        // What assigns to a register has a step of its own.
        let inner = children(node).first().copied();
        let has_step = inner.is_some_and(|n| {
            let target = n.child_by_field_name("left").or(n.child_by_field_name("argument"));
            target.is_some_and(|t| {
                let t = bare(t);
                let name = self.all.unit.words(t);
                t.kind() == "identifier"
                    && self.all.unit.resolve(self.function, name, t.start_byte()).is_some()
            })
        });
        if assigns && !has_construct && !has_step { Act::Code } else { Act::Nothing }
    }

    /// Whether a call is code, not a construct.
    fn is_code(&self, call: Node<'t>) -> bool {
        let callee = self.all.unit.callee(call).unwrap_or("");
        let is_own = match callee {
            "cinit" | "cread" | "cwrite" | "nelem" => self.all.unit.names.contains(callee),
            _ => self.all.unit.defined.contains_key(callee),
        };
        !self.all.constructs.calls.contains_key(&call.id())
            && (is_own || !QUIET.contains(&callee))
            && self.ends.end(self.all.unit, self.index, call).is_none()
    }

    fn assign(&mut self, at: usize, variable: usize) -> Act {
        let (place, unit) = (self.flow.steps[at].place.clone(), self.all.unit);
        let node = self.function.body.descendant_for_byte_range(place.start, place.end);
        let mut outer = node;
        while let Some(parent) = outer.and_then(|n| n.parent()) {
            let is_target = matches!(
                parent.kind(),
                "assignment_expression"
                    | "update_expression"
                    | "init_declarator"
                    | "pointer_expression"
            );
            if is_target || !matches!(parent.kind(), "parenthesized_expression") {
                outer = Some(parent);
                break;
            }
            outer = Some(parent);
        }
        let Some((node, outer)) = node.zip(outer) else { return Act::Nothing };
        self.steps[at].place = self.statement(outer);
        let register = u16::try_from(variable).ok();
        let (value, source) = match outer.kind() {
            "init_declarator" => {
                let source = outer.child_by_field_name("value");
                (source.map(|n| self.reader.assigned(variable, n)), source)
            }
            "assignment_expression" => self.assignment(variable, outer),
            // A message is written: the variable keeps its value.
            "pointer_expression" if net::moves(unit, outer).is_some_and(net::writes) => {
                return Act::Nothing;
            }
            "update_expression" => {
                let sign = if unit.words(outer).contains("--") { "-" } else { "+" };
                (Some(self.reader.changed(variable, sign, None)), Some(outer))
            }
            _ => (None, None),
        };
        // Parts of a variable, and what calls assign to, are not seen.
        let is_whole = node.kind() == "identifier";
        let is_code = source.is_some_and(|n| self.is_work(n, outer));
        match register.filter(|_| self.reader.registers.get(variable).is_some_and(Option::is_some))
        {
            Some(register) => {
                let value = value.filter(|_| is_whole).unwrap_or(Expression::Unknown);
                Act::Set { register, value, is_code }
            }
            None if is_code => Act::Code,
            None => Act::Nothing,
        }
    }

    fn assignment(
        &self,
        variable: usize,
        outer: Node<'t>,
    ) -> (Option<Expression>, Option<Node<'t>>) {
        let operator =
            outer.child_by_field_name("operator").map_or("=", |o| self.all.unit.words(o));
        let source = outer.child_by_field_name("right");
        let value = match operator.strip_suffix('=') {
            Some("") | None => source.map(|n| self.reader.assigned(variable, n)),
            Some(operator) => source.map(|n| self.reader.changed(variable, operator, Some(n))),
        };
        (value, source)
    }

    /// Whether giving a variable a value is code: not if it is a constant it begins with, or what
    /// a construct gives.
    fn is_work(&self, source: Node<'t>, outer: Node<'t>) -> bool {
        let inner = bare(source);
        if inner.kind() == "call_expression" {
            // The call is a step of its own.
            return false;
        }
        let mut has_name = false;
        walk(inner, |n| {
            has_name |= matches!(n.kind(), "identifier" | "call_expression");
            true
        });
        outer.kind() != "init_declarator" || has_name
    }

    fn point(&mut self, at: usize, index: usize) -> Act {
        let point = &self.all.constructs.points[index];
        let (file, _) = self.all.unit.line(point.call.start_byte());
        let name = &self.all.names[index];
        // The name has the file's already.
        let name = name.rsplit(':').next().unwrap_or(name).to_owned();
        self.steps[at].place = SourcePlace { file: self.file(file), name };
        let kind = point.kind;
        let length = |length: &Length<'t>| self.length(length, point.unit);
        let period = length(&point.period);
        let deadline = match &point.deadline {
            Deadline::Same => Some(period.clone()),
            Deadline::None(_) => None,
            Deadline::Length(l) => Some(length(l)),
        };
        Act::Point { kind, period, deadline }
    }

    /// A length in nanoseconds; what is negative when the program runs is 0.
    fn length(&self, length: &Length<'t>, unit: TimeUnit) -> Expression {
        if let Some(constant) = length.constant_ns {
            return Expression::Constant(constant);
        }
        let zero = || Box::new(Expression::Constant(0));
        let (value, kind) = self.reader.typed(length.node);
        match value {
            Expression::Unknown => Expression::Unknown,
            Expression::Constant(value) => {
                let ns = value.max(0).checked_mul(unit.scale());
                ns.map_or(Expression::Unknown, Expression::Constant)
            }
            value if kind.is_some_and(Integer::is_natural) => Expression::Binary(
                Binary::Multiply,
                Box::new(value),
                Box::new(Expression::Constant(unit.scale())),
            ),
            value => {
                let factor = Expression::Binary(
                    Binary::Multiply,
                    Box::new(Expression::Binary(Binary::Greater, Box::new(value.clone()), zero())),
                    Box::new(Expression::Constant(unit.scale())),
                );
                Expression::Binary(Binary::Multiply, Box::new(value), Box::new(factor))
            }
        }
    }

    fn arguments(&self, call: Node<'t>) -> Vec<Argument> {
        let all = call.child_by_field_name("arguments").map(children).unwrap_or_default();
        let argument = |node: Node<'t>| {
            let (value, kind) = self.reader.typed(node);
            let end = match bare(node).kind() {
                "identifier" => self.ends.net(self.all.unit, self.index, node),
                _ => None,
            };
            let object = Some(self.objects().pointed(node));
            let object = object.filter(|object| !matches!(object, Object::Vague(_)));
            Argument { value, kind, end, object }
        };
        all.into_iter().map(argument).collect()
    }

    fn call(&mut self, at: usize, call: Node<'t>) -> Act {
        let unit = self.all.unit;
        let callee = unit.callee(call).unwrap_or("");
        if let Some((about, writes, waits)) = self.ends.end(unit, self.index, call) {
            let channel = match about {
                About::Latest(latest) => return Act::Latest { latest, is_write: writes },
                About::Channel(channel) => channel,
                About::Unknown => {
                    let text = format!("the channel of `{callee}` is unknown");
                    return Act::Lost(text);
                }
            };
            if let Some(name) = self.ends.places.get(&call.id()) {
                self.steps[at].place.name.clone_from(name);
            }
            return match writes {
                true => Act::Write { channel, waits },
                false => Act::Read { channel, waits },
            };
        }
        let holds = hold::of(unit, self.function, call);
        if !holds.is_empty() {
            self.steps[at].place = self.statement(call);
            return self.holds(at, call, callee, Act::Hold(holds));
        }
        let arguments = call.child_by_field_name("arguments").map(children).unwrap_or_default();
        let is_own = unit.names.contains(callee);
        let is_local = unit.resolve(self.function, callee, call.start_byte()).is_some();
        // Whoever only declares a function of libc's means that one.
        let is_defined = unit.functions.iter().any(|f| f.name == callee);
        match (callee, &arguments[..]) {
            ("cinit", [channel, ..]) if !is_own && !is_local => {
                match self.ends.fifo(unit, self.index, *channel) {
                    About::Channel(channel) => Act::Init(channel),
                    About::Latest(_) => Act::Nothing,
                    About::Unknown => Act::Lost("the channel of `cinit` is unknown".to_owned()),
                }
            }
            _ if is_defined || is_local => self.plain(at, call, callee, is_local),
            ("pthread_mutex_lock", [mutex]) => Act::Lock(self.objects().pointed(*mutex)),
            ("pthread_mutex_unlock", [mutex]) => Act::Unlock(self.objects().pointed(*mutex)),
            (_, [mutex, ..]) if locks::tries(callee) => self.tries(at, call, callee, *mutex),
            _ if locks::waits(callee) => self.waits(at, call, callee),
            _ => self.plain(at, call, callee, is_local),
        }
    }

    fn objects(&self) -> Objects<'_, 't> {
        Objects { unit: self.all.unit, function: self.function, changed: &self.changed }
    }

    /// A call of a function of the program, or of code.
    fn plain(&mut self, at: usize, call: Node<'t>, callee: &str, is_local: bool) -> Act {
        match () {
            () if !self.is_code(call) => Act::Nothing,
            _ => {
                self.steps[at].place = self.statement(call);
                let is_ending = super::flow::ends_program(self.all.unit, callee);
                match () {
                    () if is_ending => Act::Exit,
                    () if is_local || callee.is_empty() => Act::Code,
                    () => {
                        let arguments = self.arguments(call);
                        Act::Call(Call { name: callee.to_owned(), arguments })
                    }
                }
            }
        }
    }

    fn doubt(&mut self, call: Node<'t>, text: String) {
        self.doubts.push((text, self.all.unit.at(call.byte_range())));
    }

    /// A call that takes an unknown time: unless its statement has one declared.
    fn waits(&mut self, at: usize, call: Node<'t>, callee: &str) -> Act {
        self.steps[at].place = self.statement(call);
        let around = std::iter::successors(Some(call), Node::parent);
        let mut statements = around.filter(|node| node.kind() == "expression_statement");
        if statements.any(|node| self.all.work.at_statement(node.start_byte()).is_some()) {
            return Act::Code;
        }
        self.doubt(call, format!("the time of `{callee}` has no bound"));
        Act::Work(Interval { lo: Span::ZERO, hi: None })
    }

    /// A call that obtains something or gives it back, and may have to wait for it.
    fn holds(&mut self, at: usize, call: Node<'t>, callee: &str, holds: Act) -> Act {
        if !locks::waits(callee) {
            return holds;
        }
        let step = UnitStep { act: holds, ..self.steps[at].clone() };
        self.steps.push(step);
        self.steps[at].next = vec![self.steps.len() - 1];
        self.waits(at, call, callee)
    }

    /// A call that locks a mutex, or does not. A condition that it decides knows which.
    fn tries(&mut self, at: usize, call: Node<'t>, callee: &str, mutex: Node<'t>) -> Act {
        let act = match callee {
            "pthread_mutex_trylock" => Act::Any,
            _ => self.waits(at, call, callee),
        };
        if !self.tested.contains(&mutex.id()) {
            self.doubt(call, format!("whether `{callee}` has locked it is unknown"));
            let next = self.steps[at].next.clone();
            let taken = self.taken(at, mutex, next);
            self.steps[at].next.push(taken);
        }
        act
    }

    /// A step at which a mutex was free and is taken.
    fn taken(&mut self, at: usize, mutex: Node<'t>, next: Vec<usize>) -> usize {
        let act = Act::Take(self.objects().pointed(mutex));
        let step = UnitStep { act, next, ..self.steps[at].clone() };
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// The mutexes of which conditions find out whether they have been locked.
    fn tested(&self) -> HashSet<usize> {
        let mut open: Vec<Node<'t>> = Vec::new();
        for step in &self.flow.steps {
            if let StepKind::Branch(condition, _) = step.kind {
                open.push(condition);
            }
        }
        let mut found = HashSet::new();
        while let Some(condition) = open.pop().map(inside) {
            let field = |name| condition.child_by_field_name(name);
            let word = field("operator").map_or("", |o| self.all.unit.words(o));
            match (condition.kind(), word) {
                ("unary_expression", "!") => open.extend(field("argument")),
                ("binary_expression", "&&" | "||") => {
                    open.extend(field("left").into_iter().chain(field("right")));
                }
                _ => found.extend(self.objects().tried(condition).map(|(mutex, _)| mutex.id())),
            }
        }
        found
    }

    fn branch(&mut self, at: usize, condition: Node<'t>, is_first: bool) {
        let next = self.steps[at].next.clone();
        let [first, second] = next[..] else { return };
        let (yes, no) = if is_first { (first, second) } else { (second, first) };
        self.decide(at, condition, condition, yes, no);
    }

    /// Lets a step decide a condition, with more steps for `&&` and `||`.
    fn decide(&mut self, at: usize, condition: Node<'t>, whole: Node<'t>, yes: usize, no: usize) {
        let condition = inside(condition);
        let field = |name| condition.child_by_field_name(name);
        let word = field("operator").map_or("", |o| self.all.unit.words(o));
        match (condition.kind(), word, field("left"), field("right"), field("argument")) {
            ("unary_expression", "!", _, _, Some(inner)) => {
                self.decide(at, inner, whole, no, yes);
            }
            ("binary_expression", "&&" | "||", Some(left), Some(right), _) => {
                let mut more = self.steps[at].clone();
                more.act = Act::Nothing;
                self.steps.push(more);
                let second = self.steps.len() - 1;
                let (left_yes, left_no) = if word == "&&" { (second, no) } else { (yes, second) };
                self.decide(at, left, whole, left_yes, left_no);
                self.decide(second, right, whole, yes, no);
            }
            _ => {
                let tried = self.objects().tried(condition);
                let (yes, no) = match tried {
                    Some((mutex, true)) => (self.taken(at, mutex, vec![yes]), no),
                    Some((mutex, false)) => (yes, self.taken(at, mutex, vec![no])),
                    None => (yes, no),
                };
                self.steps[at].next = vec![yes, no];
                self.steps[at].act = match tried {
                    Some(_) => Act::Any,
                    None => Act::Branch(self.reader.part(condition, whole)),
                };
            }
        }
    }

    /// A `switch`: one comparison after the other, if all are known.
    fn choose(&mut self, at: usize, chosen: Node<'t>) {
        let Some(cases) = self.flow.cases.get(&at) else { return };
        let targets: Vec<usize> = cases.iter().map(|(_, target)| *target).collect();
        let default = cases.iter().find(|(v, _)| v.is_none()).map(|(_, target)| *target);
        let end = self.flow.steps[at].next.iter().copied().find(|n| !targets.contains(n));
        let constant = |(value, target): &(Option<Node<'t>>, usize)| {
            // `case 1 ... 3:` is no number.
            let is = |node: Option<Node<'t>>, kind| node.is_some_and(|n| n.kind() == kind);
            let is_one = |v: &Node<'t>| is(v.prev_sibling(), "case") && is(v.next_sibling(), ":");
            let value = value.filter(is_one)?;
            Some((self.reader.chosen(chosen, value), *target))
        };
        let known: Vec<(Expression, usize)> = cases.iter().filter_map(constant).collect();
        let is_known = known.len() == cases.iter().filter(|(v, _)| v.is_some()).count()
            && known.iter().all(|(is_it, _)| *is_it != Expression::Unknown);
        let (Some(last), true) = (default.or(end), is_known) else {
            self.steps[at].act = Act::Any;
            return;
        };
        let (mut now, count) = (at, known.len());
        for (index, (is_it, target)) in known.into_iter().enumerate() {
            let is_last = index + 1 == count;
            let mut more = self.steps[now].clone();
            more.act = Act::Nothing;
            let otherwise = if is_last {
                last
            } else {
                self.steps.push(more);
                self.steps.len() - 1
            };
            self.steps[now].act = Act::Branch(is_it);
            self.steps[now].next = vec![target, otherwise];
            now = otherwise;
        }
    }
}
