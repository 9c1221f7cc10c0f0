//! A reactor class with all that it inherits, and its references resolved: what does not depend on
//! parameters is checked here, once per class.

use super::imports::{ClassId, Units};
use super::instances::Part;
use super::syntax::{
    Action, Connection, Effect, Instantiation, Member, Name, Parameter, Port, Reaction, Reference,
    Timer, Trigger, Watchdog, Width,
};
use super::{Origin, codes};
use crate::{At, Sink, did_you_mean, shorten};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// The most statements of all classes with what they inherit, and the most levels of that.
const MEMBERS: usize = 1_000_000;
const DEPTH: usize = 64;

/// A class, flat.
#[derive(Default)]
pub(in crate::lf) struct Class<'t> {
    pub(in crate::lf) name: String,
    pub(in crate::lf) type_parameters: Vec<&'t Name>,
    pub(in crate::lf) parameters: Vec<&'t Parameter>,
    pub(in crate::lf) ports: Vec<(&'t Port, bool)>,
    pub(in crate::lf) timers: Vec<(&'t Timer, Mode)>,
    pub(in crate::lf) actions: Vec<&'t Action>,
    pub(in crate::lf) watchdogs: Vec<(&'t Watchdog, Vec<Target>, Mode)>,
    pub(in crate::lf) children: Vec<(&'t Instantiation, ClassId, Mode)>,
    pub(in crate::lf) connections: Vec<Wire<'t>>,
    pub(in crate::lf) reactions: Vec<React<'t>>,
    modes: Vec<&'t Option<Name>>,
    names: BTreeMap<&'t str, (Item, Origin)>,
}

/// The mode that something is in.
pub(in crate::lf) type Mode = Option<usize>;

/// What a name in a class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// With whether it is an input.
    Port(usize, bool),
    Timer(usize),
    Action(usize),
    Watchdog(usize),
    Child(usize),
    Mode(usize),
    /// A state variable, parameter or method, to which nothing refers here.
    Else,
}

/// What a reaction is triggered by, reads or does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Target {
    Startup,
    Shutdown,
    /// The mode that the reaction is in is entered with `reset`.
    Reset,
    Ports(Ports),
    Timer(usize),
    Action(usize),
    Watchdog(usize),
    /// The reaction enters the mode, and resets it or not.
    Mode(usize, bool),
}

/// All ports that a reference stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) struct Ports {
    /// None: of the reactor itself.
    pub(in crate::lf) child: Option<usize>,
    pub(in crate::lf) port: usize,
    pub(in crate::lf) is_interleaved: bool,
}

/// A connection with its references resolved.
pub(in crate::lf) struct Wire<'t> {
    pub(in crate::lf) declared: &'t Connection,
    pub(in crate::lf) left: Vec<Ports>,
    pub(in crate::lf) right: Vec<Ports>,
    pub(in crate::lf) mode: Mode,
}

/// A reaction with its references resolved.
pub(in crate::lf) struct React<'t> {
    pub(in crate::lf) declared: &'t Reaction,
    pub(in crate::lf) triggers: Vec<Target>,
    pub(in crate::lf) sources: Vec<Target>,
    pub(in crate::lf) effects: Vec<Target>,
    pub(in crate::lf) mode: Mode,
}

impl<'t> Class<'t> {
    /// Whether it has the parameter.
    pub(in crate::lf) fn knows(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name.value == name)
    }

    /// The declared width of an instance or a port.
    pub(in crate::lf) fn width_of(&self, part: Part) -> Option<&'t At<Width>> {
        match part {
            Part::Child(child) => self.children[child].0.width.as_ref(),
            Part::Port(port) => self.ports[port].0.width.as_ref(),
        }
    }

    /// The ports that a width refers to.
    pub(in crate::lf) fn ports_of(
        &self,
        instance: &Option<Name>,
        port: &Name,
        classes: &Classes<'_>,
    ) -> Option<Ports> {
        let item = |class: &Class<'_>, name: &Name| {
            class.names.get(name.value.as_str()).map(|(item, _)| *item)
        };
        let (child, class) = match instance {
            None => (None, self),
            Some(instance) => match item(self, instance)? {
                Item::Child(child) => (Some(child), classes.list.get(&self.children[child].1)?),
                _ => return None,
            },
        };
        match item(class, port)? {
            Item::Port(port, _) => Some(Ports { child, port, is_interleaved: false }),
            _ => None,
        }
    }
}

/// Every class of the model.
pub(in crate::lf) struct Classes<'t> {
    pub(in crate::lf) list: BTreeMap<ClassId, Class<'t>>,
}

/// Flattens all classes that the main reactor needs.
pub(in crate::lf) fn flatten<'t>(units: &'t Units, main: ClassId, sink: &mut Sink) -> Classes<'t> {
    let mut classes = Classes { list: BTreeMap::new() };
    let mut left = MEMBERS;
    // What the model itself declares is checked, too, if it is not used.
    let own = 0..units.list[0].tree.reactors.len();
    let mut ahead: Vec<ClassId> = own.map(|reactor| ClassId { file: 0, reactor }).collect();
    ahead.push(main);
    while let Some(id) = ahead.pop() {
        if classes.list.contains_key(&id) {
            continue;
        }
        let (class, pending) = (Class::default(), Vec::new());
        let mut flat = Flattener { units, sink, class, pending, left: &mut left };
        flat.class.name = units.name(id);
        if flat.inherit(id, &mut Vec::new(), &mut BTreeSet::new()).is_none() {
            break;
        }
        flat.modes();
        let class = flat.class;
        ahead.extend(class.children.iter().map(|(_, id, _)| *id));
        classes.list.insert(id, class);
    }
    // References lead into classes, so they are resolved when all are there.
    let ids: Vec<ClassId> = classes.list.keys().copied().collect();
    for id in ids {
        let resolver = Resolver { classes: &classes, class: &classes.list[&id] };
        let (wires, reactions, watchdogs) = resolver.all(sink);
        if let Some(class) = classes.list.get_mut(&id) {
            class.connections = wires;
            class.reactions = reactions;
            class.watchdogs = watchdogs;
        }
    }
    classes
}

/// A statement with those in it.
fn size(member: &Member) -> usize {
    match member {
        Member::Mode(mode) => 1 + mode.members.len(),
        _ => 1,
    }
}

struct Flattener<'f, 't> {
    units: &'t Units,
    sink: &'f mut Sink,
    class: Class<'t>,
    /// Modes with their files, whose members follow all others.
    pending: Vec<(usize, usize, &'t [Member])>,
    /// How many members may still be added.
    left: &'f mut usize,
}

impl<'t> Flattener<'_, 't> {
    /// Adds what a class inherits, then what it declares; none if that is too much.
    fn inherit(
        &mut self,
        id: ClassId,
        path: &mut Vec<ClassId>,
        done: &mut BTreeSet<ClassId>,
    ) -> Option<()> {
        let units = self.units;
        let reactor = units.reactor(id);
        if path.contains(&id) {
            let message = format!("`{}` extends itself", units.name(id));
            let cycle = Diagnostic::error(codes::INSTANCE, message, reactor.at, "this reactor");
            self.sink.push(cycle.help("remove one `extends`"));
            return Some(());
        }
        if done.contains(&id) {
            return Some(());
        }
        let members: usize = 1 + reactor.members.iter().map(size).sum::<usize>();
        let message = if path.len() == DEPTH {
            format!("reactors inherit through more than {DEPTH} levels")
        } else if members > *self.left {
            format!("reactors have more than {MEMBERS} statements with what they inherit")
        } else {
            String::new()
        };
        if !message.is_empty() {
            let large = Diagnostic::error(codes::TOO_LARGE, message, reactor.at, "this reactor");
            self.sink.push(large.help("make the model smaller"));
            return None;
        }
        *self.left -= members;
        path.push(id);
        for name in &reactor.extends {
            if let Some(class) = self.class_of(id.file, name) {
                self.inherit(class, path, done)?;
            }
        }
        path.pop();
        done.insert(id);
        self.class.type_parameters.extend(&reactor.type_parameters);
        for parameter in &reactor.parameters {
            // A parameter of the class replaces an inherited one.
            let known = &mut self.class.parameters;
            known.retain(|known| known.name.value != parameter.name.value);
            known.push(parameter);
        }
        self.members(id.file, &reactor.members, None);
        Some(())
    }

    /// Members of modes, which follow all others.
    fn modes(&mut self) {
        for (file, mode, members) in std::mem::take(&mut self.pending) {
            self.members(file, members, Some(mode));
        }
    }

    fn members(&mut self, file: usize, members: &'t [Member], mode: Mode) {
        for member in members {
            let class = &mut self.class;
            match member {
                Member::Preamble(_) => {}
                Member::State(state) => self.name(&state.name, Item::Else),
                Member::Method(name) => self.name(name, Item::Else),
                Member::Input(port) | Member::Output(port) => {
                    let is_input = matches!(member, Member::Input(_));
                    class.ports.push((port, is_input));
                    let at = class.ports.len() - 1;
                    self.name(&port.name, Item::Port(at, is_input));
                }
                Member::Timer(timer) => {
                    class.timers.push((timer, mode));
                    let at = class.timers.len() - 1;
                    self.name(&timer.name, Item::Timer(at));
                }
                Member::Action(action) => {
                    class.actions.push(action);
                    let at = class.actions.len() - 1;
                    self.name(&action.name, Item::Action(at));
                }
                Member::Watchdog(watchdog) => {
                    class.watchdogs.push((watchdog, Vec::new(), mode));
                    let at = class.watchdogs.len() - 1;
                    self.name(&watchdog.name, Item::Watchdog(at));
                }
                Member::Instantiation(child) => {
                    if let Some(id) = self.class_of(file, &child.class) {
                        self.class.children.push((child, id, mode));
                        let at = self.class.children.len() - 1;
                        self.name(&child.name, Item::Child(at));
                    }
                }
                Member::Connection(declared) => {
                    let wire = Wire { declared, left: Vec::new(), right: Vec::new(), mode };
                    class.connections.push(wire);
                }
                Member::Reaction(declared) => class.reactions.push(React {
                    declared,
                    triggers: Vec::new(),
                    sources: Vec::new(),
                    effects: Vec::new(),
                    mode,
                }),
                Member::Mode(inner) => {
                    class.modes.push(&inner.name);
                    let at = class.modes.len() - 1;
                    self.pending.push((file, at, &inner.members));
                    if let Some(name) = &inner.name {
                        self.name(name, Item::Mode(at));
                    }
                }
            }
        }
    }

    fn name(&mut self, name: &'t Name, item: Item) {
        if let Some((_, first)) = self.class.names.get(name.value.as_str()) {
            let class = &self.class.name;
            let message = format!("duplicate name `{}` in `{class}`", name.value);
            let twice = Diagnostic::error(codes::DUPLICATE, message, name.at, "the second");
            self.sink.push(twice.related(*first, "the first").help("rename one of them"));
        } else {
            self.class.names.insert(&name.value, (item, name.at));
        }
    }

    fn class_of(&mut self, file: usize, name: &Name) -> Option<ClassId> {
        let names = &self.units.list[file].names;
        let found = names.get(&name.value).copied();
        if found.is_none() {
            let message = format!("unknown reactor `{}`", shorten(&name.value));
            let help = match did_you_mean(&name.value, names.keys().map(String::as_str)) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "declare it in this file, or import it".to_owned(),
            };
            let unknown = Diagnostic::error(codes::UNKNOWN, message, name.at, "not found");
            self.sink.push(unknown.help(help));
        }
        found
    }
}

/// On which side of a connection or reaction a port stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It is read: an input of the reactor or an output of an instance.
    Read,
    /// It is written: an output of the reactor or an input of an instance.
    Written,
}

struct Resolver<'c, 't> {
    classes: &'c Classes<'t>,
    class: &'c Class<'t>,
}

type Resolved<'t> = (Vec<Wire<'t>>, Vec<React<'t>>, Vec<(&'t Watchdog, Vec<Target>, Mode)>);

impl<'t> Resolver<'_, 't> {
    fn all(&self, sink: &mut Sink) -> Resolved<'t> {
        let wires = self.class.connections.iter().map(|wire| {
            let declared = wire.declared;
            let mut ports = |list: &[Reference], side| -> Vec<Ports> {
                list.iter().filter_map(|at| self.ports(at, side, sink)).collect()
            };
            let left = ports(&declared.left, Side::Read);
            let right = ports(&declared.right, Side::Written);
            Wire { declared, left, right, mode: wire.mode }
        });
        let wires = wires.collect();
        let reactions = self.class.reactions.iter().map(|react| {
            let declared = react.declared;
            let triggers = declared.triggers.iter().filter_map(|trigger| match trigger {
                Trigger::Startup => Some(Target::Startup),
                Trigger::Shutdown => Some(Target::Shutdown),
                Trigger::Reset => Some(Target::Reset),
                Trigger::Of(reference) => self.target(reference, Side::Read, sink),
            });
            let triggers = triggers.collect();
            let sources = declared.sources.iter();
            let sources = sources.filter_map(|of| self.target(of, Side::Read, sink)).collect();
            let effects = self.effects(&declared.effects, sink);
            React { declared, triggers, sources, effects, mode: react.mode }
        });
        let reactions = reactions.collect();
        let watchdogs = self.class.watchdogs.iter();
        let watchdogs = watchdogs
            .map(|(watchdog, _, mode)| (*watchdog, self.effects(&watchdog.effects, sink), *mode))
            .collect();
        (wires, reactions, watchdogs)
    }

    fn effects(&self, effects: &[Effect], sink: &mut Sink) -> Vec<Target> {
        let resolved = effects.iter().filter_map(|effect| match effect {
            Effect::Of(reference) => self.target(reference, Side::Written, sink),
            Effect::Transition { mode, keeps_history } => match self.item(mode, sink)? {
                Item::Mode(at) => Some(Target::Mode(at, !keeps_history)),
                _ => {
                    self.wrong(mode.at, &format!("`{}` is no mode", mode.value), sink);
                    None
                }
            },
        });
        resolved.collect()
    }

    fn wrong(&self, at: Origin, message: &str, sink: &mut Sink) {
        let wrong = Diagnostic::error(codes::CONNECTION, message, at, "this reference");
        sink.push(wrong.help(
            "what is read is an input of the reactor or an output of an instance, what is written \
             an output of the reactor or an input of an instance",
        ));
    }

    fn item(&self, name: &Name, sink: &mut Sink) -> Option<Item> {
        let found = self.class.names.get(name.value.as_str()).map(|(item, _)| *item);
        if found.is_none() {
            let known = self.class.names.keys().copied();
            unknown(name, &format!("`{}`", self.class.name), known, sink);
        }
        found
    }

    /// A port, action, timer, watchdog or mode.
    fn target(&self, of: &Reference, side: Side, sink: &mut Sink) -> Option<Target> {
        if of.instance.is_some() {
            return self.ports(of, side, sink).map(Target::Ports);
        }
        match (self.item(&of.name, sink)?, side) {
            (Item::Port(..), _) => self.ports(of, side, sink).map(Target::Ports),
            (Item::Timer(at), Side::Read) => Some(Target::Timer(at)),
            (Item::Action(at), _) => Some(Target::Action(at)),
            (Item::Watchdog(at), _) => Some(Target::Watchdog(at)),
            (Item::Mode(at), Side::Written) => Some(Target::Mode(at, true)),
            (Item::Timer(_) | Item::Mode(_) | Item::Child(_) | Item::Else, _) => {
                let side = if side == Side::Read { "triggers nothing" } else { "is no effect" };
                self.wrong(of.at, &format!("`{}` {side}", of.name.value), sink);
                None
            }
        }
    }

    fn ports(&self, of: &Reference, side: Side, sink: &mut Sink) -> Option<Ports> {
        let is_interleaved = of.is_interleaved;
        let Some(instance) = &of.instance else {
            return match self.item(&of.name, sink)? {
                // A reaction reads outputs of its reactor, too, if it sets them.
                Item::Port(port, is_input) if is_input == (side == Side::Read) => {
                    Some(Ports { child: None, port, is_interleaved })
                }
                Item::Port(_, is_input) => {
                    let (kind, done) =
                        if is_input { ("input", "written") } else { ("output", "read") };
                    let name = &of.name.value;
                    self.wrong(of.at, &format!("the {kind} `{name}` is {done} here"), sink);
                    None
                }
                _ => {
                    self.wrong(of.at, &format!("`{}` is no port", of.name.value), sink);
                    None
                }
            };
        };
        let Item::Child(child) = self.item(instance, sink)? else {
            self.wrong(instance.at, &format!("`{}` is no instance", instance.value), sink);
            return None;
        };
        let inner = self.classes.list.get(&self.class.children[child].1)?;
        let found = inner.names.get(of.name.value.as_str()).map(|(item, _)| *item);
        match found {
            Some(Item::Port(port, is_input)) if is_input == (side == Side::Written) => {
                Some(Ports { child: Some(child), port, is_interleaved })
            }
            Some(Item::Port(_, is_input)) => {
                let (kind, done) = if is_input { ("input", "read") } else { ("output", "written") };
                let name = format!("{}.{}", instance.value, of.name.value);
                self.wrong(of.at, &format!("the {kind} `{name}` is {done} here"), sink);
                None
            }
            _ => {
                let ports = inner.ports.iter().map(|(port, _)| port.name.value.as_str());
                unknown(&of.name, &format!("`{}`", inner.name), ports, sink);
                None
            }
        }
    }
}

fn unknown<'n>(name: &Name, of: &str, known: impl Iterator<Item = &'n str>, sink: &mut Sink) {
    let message = format!("{of} has no `{}`", shorten(&name.value));
    let help = match did_you_mean(&name.value, known) {
        Some(close) => format!("did you mean `{close}`?"),
        None => "declare it, or correct the name".to_owned(),
    };
    sink.push(Diagnostic::error(codes::UNKNOWN, message, name.at, "not found").help(help));
}
