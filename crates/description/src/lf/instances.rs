//! Instances: parameters get values, banks and multiports get widths, and each port becomes as many
//! cells as it is wide.

use super::class::{Class, Classes, Mode, Ports};
use super::imports::{ClassId, Units};
use super::syntax::{Expression, Instantiation, Name, Term, Time, Type, Width};
use super::values::{Parameters, Value, arithmetic, evaluate, span};
use super::{Origin, codes};
use crate::{At, Sink, did_you_mean, shorten};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The most instances, and the most cells of all their ports.
const INSTANCES: usize = 100_000;
const CELLS: usize = 1_000_000;
/// How deep instances may be nested.
const DEPTH: usize = 64;

/// A position in [`Tree::list`].
pub(in crate::lf) type InstanceId = usize;
/// A position in [`Tree::cells`].
pub(in crate::lf) type CellId = usize;

/// An instance of a reactor.
pub(in crate::lf) struct Instance {
    pub(in crate::lf) class: ClassId,
    /// Its name with those of all that contain it, but for the main reactor: `fed.pid[1]`.
    pub(in crate::lf) path: String,
    /// The same without the indices of banks.
    pub(in crate::lf) plain: String,
    /// The instance that contains it, and the mode there that it is in.
    pub(in crate::lf) parent: Option<(InstanceId, Mode)>,
    pub(in crate::lf) parameters: Parameters,
    /// What its type parameters are.
    pub(in crate::lf) types: BTreeMap<String, At<Type>>,
    /// Per declared instance, the members of the bank, or one.
    pub(in crate::lf) children: Vec<Vec<InstanceId>>,
    /// Per declared port, its first cell and its width.
    pub(in crate::lf) ports: Vec<(CellId, usize)>,
}

/// One port, or one channel of a multiport.
#[derive(Clone, Copy, Debug)]
pub(in crate::lf) struct Cell {
    pub(in crate::lf) instance: InstanceId,
    pub(in crate::lf) port: usize,
    pub(in crate::lf) index: usize,
}

/// All instances; the first is the main reactor.
pub(in crate::lf) struct Tree {
    pub(in crate::lf) list: Vec<Instance>,
    pub(in crate::lf) cells: Vec<Cell>,
}

/// What instances are made with.
pub(in crate::lf) struct Builder<'b, 't> {
    pub(in crate::lf) units: &'t Units,
    pub(in crate::lf) classes: &'b Classes<'t>,
    /// Values that the sidecar gives to parameters, by their qualified names.
    pub(in crate::lf) given: &'b BTreeMap<String, Value>,
    pub(in crate::lf) sink: &'b mut Sink,
}

/// What an instance consists of, by its position in the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lf) enum Part {
    Child(usize),
    Port(usize),
}

/// One instance to be made.
struct Order {
    class: ClassId,
    path: String,
    plain: String,
    parent: Option<(InstanceId, Mode)>,
    parameters: Parameters,
    types: BTreeMap<String, At<Type>>,
    depth: usize,
    at: Origin,
}

impl<'b, 't> Builder<'b, 't> {
    /// All instances of the main reactor, if their number is within the limits.
    pub(in crate::lf) fn all(&mut self, main: ClassId) -> Option<Tree> {
        let mut tree = Tree { list: Vec::new(), cells: Vec::new() };
        let order = Order {
            class: main,
            path: String::new(),
            plain: String::new(),
            parent: None,
            parameters: Parameters::new(),
            types: BTreeMap::new(),
            depth: 0,
            at: self.units.reactor(main).at,
        };
        self.instance(order, &mut Vec::new(), &mut tree)?;
        Some(tree)
    }

    /// Makes an instance and all in it.
    fn instance(
        &mut self,
        order: Order,
        stack: &mut Vec<ClassId>,
        tree: &mut Tree,
    ) -> Option<InstanceId> {
        let large = |what: &str| {
            let large = Diagnostic::error(codes::TOO_LARGE, what, order.at, "this instance");
            large.help("make the model smaller")
        };
        if stack.contains(&order.class) {
            let name = self.units.name(order.class);
            let message = format!("`{name}` contains an instance of itself");
            let endless = Diagnostic::error(codes::INSTANCE, message, order.at, "this instance");
            self.sink.push(endless.help("instances are made before the program starts: end it"));
            return None;
        }
        if tree.list.len() == INSTANCES {
            self.sink.push(large(&format!("a model has more than {INSTANCES} instances")));
            return None;
        }
        if order.depth == DEPTH {
            self.sink.push(large(&format!("instances are nested deeper than {DEPTH} levels")));
            return None;
        }
        let class = self.classes.list.get(&order.class)?;
        let at = tree.list.len();
        tree.list.push(Instance {
            class: order.class,
            path: order.path,
            plain: order.plain,
            parent: order.parent,
            parameters: order.parameters,
            types: order.types,
            children: vec![Vec::new(); class.children.len()],
            ports: vec![(0, 0); class.ports.len()],
        });
        self.defaults(class, at, tree);
        stack.push(order.class);
        self.parts(class, at, order.depth, stack, tree)?;
        stack.pop();
        Some(at)
    }

    /// Makes the instances in an instance, and its ports: each behind those whose widths it has.
    fn parts(
        &mut self,
        class: &'b Class<'t>,
        at: InstanceId,
        depth: usize,
        stack: &mut Vec<ClassId>,
        tree: &mut Tree,
    ) -> Option<()> {
        let children = (0..class.children.len()).map(Part::Child);
        let mut left: Vec<Part> = children.chain((0..class.ports.len()).map(Part::Port)).collect();
        let mut made: BTreeSet<Part> = BTreeSet::new();
        for _ in 0..DEPTH {
            let mut waiting = Vec::new();
            for part in left {
                let width = class.width_of(part);
                let is_unknown = |term: &Part| !made.contains(term);
                if self.parts_of(width, class).iter().any(is_unknown) {
                    waiting.push(part);
                    continue;
                }
                match part {
                    Part::Child(child) => {
                        tree.list[at].children[child] =
                            self.bank(class.children[child], at, depth, stack, tree)?;
                    }
                    Part::Port(port) => self.port(class, at, port, tree)?,
                }
                made.insert(part);
            }
            left = waiting;
            if left.is_empty() {
                return Some(());
            }
        }
        let width = left.first().and_then(|part| class.width_of(*part))?;
        let message = format!("this width follows from itself, or from more than {DEPTH} others");
        let endless = Diagnostic::error(codes::VALUE, message, width.at, "this width");
        self.sink.push(endless.help("write a number instead of one of the `widthof`"));
        None
    }

    /// What must be made before a width is known.
    fn parts_of(&self, width: Option<&At<Width>>, class: &Class<'t>) -> Vec<Part> {
        let Some(At { value: Width::Sum(terms), .. }) = width else { return Vec::new() };
        let part = |term: &At<Term>| {
            let Term::WidthOf(of) = &term.value else { return None };
            let ports = class.ports_of(&of.instance, &of.name, self.classes)?;
            Some(ports.child.map_or(Part::Port(ports.port), Part::Child))
        };
        terms.iter().filter_map(part).collect()
    }

    /// Makes the cells of a port.
    fn port(
        &mut self,
        class: &Class<'t>,
        at: InstanceId,
        port: usize,
        tree: &mut Tree,
    ) -> Option<()> {
        let (declared, _) = class.ports[port];
        let width = match &declared.width {
            None => 1,
            Some(width) => self.width(width, at, class, tree).unwrap_or(1),
        };
        if tree.cells.len() + width > CELLS {
            let message = format!("a model has more than {CELLS} ports");
            let large = Diagnostic::error(codes::TOO_LARGE, message, declared.name.at, "this port");
            self.sink.push(large.help("make the model smaller"));
            return None;
        }
        tree.list[at].ports[port] = (tree.cells.len(), width);
        tree.cells.extend((0..width).map(|index| Cell { instance: at, port, index }));
        Some(())
    }

    /// Gives values to parameters that have no argument.
    fn defaults(&mut self, class: &Class<'t>, at: InstanceId, tree: &mut Tree) {
        for parameter in &class.parameters {
            let name = &parameter.name.value;
            let of = &tree.list[at];
            let given = self.given.get(&qualified(&of.path, name));
            if let Some(value) = given.or(self.given.get(&qualified(&of.plain, name))) {
                tree.list[at].parameters.insert(name.clone(), value.clone());
            }
            if tree.list[at].parameters.contains_key(name) {
                continue;
            }
            let value = match &parameter.default {
                Some(default) => self.value(default, &tree.list[at].parameters),
                None => Some(Value::Other),
            };
            tree.list[at].parameters.insert(name.clone(), value.unwrap_or(Value::Other));
        }
    }

    /// The members of a bank, or the one instance.
    fn bank(
        &mut self,
        (child, class, mode): (&'t Instantiation, ClassId, Mode),
        parent: InstanceId,
        depth: usize,
        stack: &mut Vec<ClassId>,
        tree: &mut Tree,
    ) -> Option<Vec<InstanceId>> {
        let inner = self.classes.list.get(&class)?;
        let outer = self.classes.list.get(&tree.list[parent].class)?;
        self.arguments_are_known(child, inner);
        let width = child.width.as_ref();
        let width = width.map(|width| self.width(width, parent, outer, tree).unwrap_or(1));
        let types = self.types(child, inner, &tree.list[parent].types);
        let mut members = Vec::new();
        for index in 0..width.unwrap_or(1) {
            let mut name = child.name.value.clone();
            let prefix = tree.list[parent].path.clone();
            if width.is_some() {
                // Federates are named as the generated programs are.
                name += &if prefix.is_empty() { format!("_{index}") } else { format!("[{index}]") };
            }
            let path = qualified(&prefix, &name);
            let mut of = tree.list[parent].parameters.clone();
            let mut parameters = Parameters::new();
            if width.is_some() {
                let value = Value::Integer(i64::try_from(index).unwrap_or(i64::MAX));
                if inner.knows("bank_index") {
                    parameters.insert("bank_index".to_owned(), value.clone());
                }
                of.insert("bank_index".to_owned(), value);
            }
            for (name, value) in &child.arguments {
                let of = match &value.value {
                    // Only code sees the index of the bank that is being made.
                    Expression::Code(_) => &of,
                    _ => &tree.list[parent].parameters,
                };
                let value = self.value(value, of).unwrap_or(Value::Other);
                parameters.insert(name.value.clone(), value);
            }
            let order = Order {
                class,
                path,
                plain: qualified(&tree.list[parent].plain, &child.name.value),
                parent: Some((parent, mode)),
                parameters,
                types: types.clone(),
                depth: depth + 1,
                at: child.name.at,
            };
            members.push(self.instance(order, stack, tree)?);
        }
        Some(members)
    }

    /// Whether each argument is for a parameter, and given once.
    fn arguments_are_known(&mut self, child: &Instantiation, class: &Class<'t>) {
        let mut seen: BTreeMap<&str, Origin> = BTreeMap::new();
        for (name, _) in &child.arguments {
            if let Some(first) = seen.insert(&name.value, name.at) {
                let message = format!("duplicate argument `{}`", name.value);
                let twice = Diagnostic::error(codes::DUPLICATE, message, name.at, "the second");
                self.sink.push(twice.related(first, "the first").help("remove one of them"));
            }
            if !class.knows(&name.value) {
                let known = class.parameters.iter().map(|known| known.name.value.as_str());
                self.unknown(name, &format!("`{}` has no parameter", class.name), known);
            }
        }
        let (given, wanted) = (child.type_arguments.len(), class.type_parameters.len());
        if given > wanted {
            let message = format!("`{}` has {wanted} type parameters, not {given}", class.name);
            let many = Diagnostic::error(codes::INSTANCE, message, child.class.at, "this reactor");
            self.sink.push(many.help("give one type for each"));
        }
    }

    fn types(
        &self,
        child: &Instantiation,
        class: &Class<'t>,
        outer: &BTreeMap<String, At<Type>>,
    ) -> BTreeMap<String, At<Type>> {
        let pairs = class.type_parameters.iter().zip(&child.type_arguments);
        let pairs = pairs.map(|(name, kind)| {
            let name = name.value.split_whitespace().next().unwrap_or("").to_owned();
            (name, substitute(kind, outer))
        });
        pairs.collect()
    }

    /// The value of an expression, or a diagnostic.
    pub(in crate::lf) fn value(
        &mut self,
        of: &At<Expression>,
        known: &Parameters,
    ) -> Option<Value> {
        if let Some(value) = evaluate(&of.value, known) {
            return Some(value);
        }
        let name = match &of.value {
            Expression::Parameter(name) => name.clone(),
            _ => "a parameter in this list".to_owned(),
        };
        let known = known.keys().map(String::as_str);
        self.unknown(&At { value: name, at: of.at }, "unknown parameter", known);
        None
    }

    /// A time; `forever` and `never` are none.
    pub(in crate::lf) fn span(&mut self, of: &At<Expression>, instance: &Instance) -> Option<Span> {
        let value = self.value(of, &instance.parameters)?;
        if let Some(span) = value.as_time().and_then(span) {
            return Some(span);
        }
        let reason = match (&value, value.as_time()) {
            (_, Some(Time::Ns(_))) => "it is negative",
            (_, Some(_)) => "it has no end",
            (Value::Integer(_), _) => "it has no unit",
            (Value::Time(_) | Value::List(_) | Value::Other, None) => "it cannot be computed",
        };
        self.no_value(of, instance, &format!("no time: {reason}"));
        None
    }

    /// Reports an expression without a usable value; says how to give it one.
    fn no_value(&mut self, of: &At<Expression>, instance: &Instance, text: &str) {
        let name = match &of.value {
            Expression::Parameter(name) => format!("the parameter `{}.{name}`", instance.path),
            Expression::Code(_) => "this code".to_owned(),
            _ => "this".to_owned(),
        };
        let message = format!("{name} is {text}");
        let help = match &of.value {
            Expression::Parameter(_) | Expression::Code(_) => {
                "give it in the sidecar, as a [[parameter]] with `name` and `value`"
            }
            _ => "write a number and a unit, as in 10 ms",
        };
        self.sink.push(Diagnostic::error(codes::VALUE, message, of.at, "here").help(help));
    }

    /// How many members or channels.
    fn width(
        &mut self,
        width: &At<Width>,
        instance: InstanceId,
        class: &Class<'t>,
        tree: &Tree,
    ) -> Option<usize> {
        let wrong = |reason: &str, at: Origin| {
            let wrong = Diagnostic::error(codes::VALUE, reason, at, "this width");
            wrong.help("give it in the sidecar, as a [[parameter]], or write a positive number")
        };
        let Width::Sum(terms) = &width.value else {
            self.sink.push(wrong("a width that is decided at run time", width.at));
            return None;
        };
        let known = &tree.list[instance].parameters;
        let mut sum: i64 = 0;
        for term in terms {
            let value = match &term.value {
                Term::Number(value) => Some(*value),
                Term::Parameter(name) => {
                    let name = At { value: Expression::Parameter(name.clone()), at: term.at };
                    match self.value(&name, known)? {
                        value @ (Value::Time(_) | Value::Integer(_) | Value::Other) => {
                            value.as_integer()
                        }
                        // The width of a list of C and C++ is its length.
                        Value::List(list) => i64::try_from(list.len()).ok(),
                    }
                }
                Term::Code(code) => arithmetic(code, known).and_then(|value| value.as_integer()),
                Term::WidthOf(of) => {
                    let ports = class.ports_of(&of.instance, &of.name, self.classes);
                    let cells = ports.map(|ports| cells(tree, instance, ports).len());
                    cells.and_then(|cells| i64::try_from(cells).ok())
                }
            };
            let Some(value) = value.filter(|value| *value >= 0) else {
                self.sink.push(wrong("a width is no number, or negative", term.at));
                return None;
            };
            sum = sum.saturating_add(value);
        }
        match usize::try_from(sum).ok().filter(|sum| *sum <= CELLS) {
            Some(sum) => Some(sum),
            None => {
                self.sink.push(wrong(&format!("a width of {sum}"), width.at));
                None
            }
        }
    }

    fn unknown<'n>(&mut self, name: &Name, what: &str, known: impl Iterator<Item = &'n str>) {
        let message = format!("{what} `{}`", shorten(&name.value));
        let help = match did_you_mean(&name.value, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "declare it, or correct the name".to_owned(),
        };
        let unknown = Diagnostic::error(codes::UNKNOWN, message, name.at, "not found");
        self.sink.push(unknown.help(help));
    }
}

/// A name below a path.
pub(in crate::lf) fn qualified(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// All cells that a reference of an instance stands for, in the language's order: members of a bank
/// one after the other, or, interleaved, channels one after the other.
pub(in crate::lf) fn cells(tree: &Tree, of: InstanceId, ports: Ports) -> Vec<CellId> {
    let instance = &tree.list[of];
    let own = [of];
    let members: &[InstanceId] = match ports.child {
        Some(child) => instance.children.get(child).map_or(&[], Vec::as_slice),
        None => &own,
    };
    let ranges = members.iter().filter_map(|member| tree.list[*member].ports.get(ports.port));
    let ranges: Vec<(CellId, usize)> = ranges.copied().collect();
    if !ports.is_interleaved {
        return ranges.iter().flat_map(|(first, width)| *first..first + width).collect();
    }
    let widest = ranges.iter().map(|(_, width)| *width).max().unwrap_or(0);
    let channel = |index: usize| {
        let has = ranges.iter().filter(move |(_, width)| index < *width);
        has.map(move |(first, _)| first + index)
    };
    (0..widest).flat_map(channel).collect()
}

/// A type with type parameters replaced.
pub(in crate::lf) fn substitute(kind: &At<Type>, by: &BTreeMap<String, At<Type>>) -> At<Type> {
    let value = match &kind.value {
        Type::Named { name, arguments, stars, array } => {
            if arguments.is_empty()
                && let Some(found) = by.get(name)
            {
                return At { value: decorated(&found.value, *stars, *array), at: kind.at };
            }
            let arguments = arguments.iter().map(|inner| substitute(inner, by)).collect();
            Type::Named { name: name.clone(), arguments, stars: *stars, array: *array }
        }
        Type::Code(code) => match by.get(code.trim()) {
            Some(found) => found.value.clone(),
            None => Type::Code(code.clone()),
        },
        Type::Time => Type::Time,
    };
    At { value, at: kind.at }
}

/// A type with `*` and `[]` behind it.
fn decorated(kind: &Type, stars: usize, array: Option<super::syntax::Array>) -> Type {
    match kind {
        Type::Named { name, arguments, stars: own, array: None } => Type::Named {
            name: name.clone(),
            arguments: arguments.clone(),
            stars: own + stars,
            array,
        },
        other if stars == 0 && array.is_none() => other.clone(),
        other => Type::Code(format!("{}{}", super::types::text(other), "*".repeat(stars))),
    }
}
