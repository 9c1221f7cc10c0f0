//! Reactions of all instances, and what makes each of them execute.

use super::annotations;
use super::class::{Class, Classes, Mode, Target};
use super::instances::{Builder, CellId, Instance, InstanceId, Tree, cells, qualified};
use super::syntax::Attribute;
use super::waits::{WaitPlace, of_value};
use super::wiring::{EdgeId, Wiring, name};
use super::{Origin, codes};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::federation::{ConnectionId, FederateId, ReactionId, TagDelay, Trigger};
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A reaction whose number may still change.
pub(in crate::lf) struct Draft {
    pub(in crate::lf) federate: FederateId,
    /// Qualified: with the federate's name.
    pub(in crate::lf) path: String,
    pub(in crate::lf) execution: Option<Interval>,
    pub(in crate::lf) deadline: Option<Span>,
    pub(in crate::lf) causes: Vec<Why>,
    /// Positions of drafts that execute before it if they have the same tag.
    pub(in crate::lf) after: BTreeSet<usize>,
    pub(in crate::lf) origin: Origin,
}

/// A cause, and what bounds how often it comes.
#[derive(Clone, Debug)]
pub(in crate::lf) struct Why {
    pub(in crate::lf) cause: Trigger,
    /// Of an action: its name and the least time between two, if it is known.
    pub(in crate::lf) action: Option<(String, Option<Span>)>,
    /// Of a timer: whether it is in a mode, and so has no fixed phase.
    pub(in crate::lf) is_modal: bool,
}

impl Why {
    /// Whether it is an action that no reaction schedules, of this name.
    pub(in crate::lf) fn is_of(&self, name: &str) -> bool {
        matches!(&self.cause, Trigger::Sporadic { action, .. } if action == name)
    }

    fn of(cause: Trigger) -> Self {
        Self { cause, action: None, is_modal: false }
    }
}

/// All reactions, and what each connection between federates is written by.
pub(in crate::lf) struct Graph {
    pub(in crate::lf) drafts: Vec<Draft>,
    /// Per edge that leads from federate to federate, its connection.
    pub(in crate::lf) connections: BTreeMap<EdgeId, ConnectionId>,
    /// Per connection, the reactions that write it.
    pub(in crate::lf) writers: Vec<Vec<usize>>,
    /// Per connection, how long readers with a handler of tardy messages wait for it, and where
    /// that is said.
    pub(in crate::lf) waits: BTreeMap<ConnectionId, (super::syntax::Time, WaitPlace)>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Root {
    /// A reaction that sets a cell from which it comes at once.
    Writer(usize),
    /// A connection that it does not cross at once.
    Edge(EdgeId),
}

pub(in crate::lf) struct Tracer<'b, 'a, 't> {
    pub(in crate::lf) builder: &'b mut Builder<'a, 't>,
    pub(in crate::lf) tree: &'b Tree,
    pub(in crate::lf) wiring: &'b Wiring<'t>,
    pub(in crate::lf) federates: &'b [Option<u32>],
    /// Least times between two events of actions, from the sidecar, by qualified name.
    pub(in crate::lf) actions: &'b BTreeMap<String, Span>,
    /// Execution times of reactions, from the sidecar, by qualified name.
    pub(in crate::lf) executions: &'b BTreeMap<String, Interval>,
    graph: Graph,
    /// The first draft of each instance's reactions, and of its watchdogs.
    first: Vec<(usize, usize)>,
    /// Reactions that set each cell.
    writers: BTreeMap<CellId, Vec<usize>>,
    /// Reactions that stand for a delay within a federate, or for a message.
    relays: BTreeMap<EdgeId, usize>,
    ahead: Vec<EdgeId>,
}

impl<'b, 'a, 't> Tracer<'b, 'a, 't> {
    pub(in crate::lf) fn new(
        builder: &'b mut Builder<'a, 't>,
        tree: &'b Tree,
        wiring: &'b Wiring<'t>,
        federates: &'b [Option<u32>],
        actions: &'b BTreeMap<String, Span>,
        executions: &'b BTreeMap<String, Interval>,
    ) -> Self {
        let network = wiring.edges.iter().enumerate().filter(|(_, edge)| edge.is_network);
        let connections = network.zip(0..).map(|((edge, _), at)| (edge, ConnectionId(at)));
        let connections: BTreeMap<EdgeId, ConnectionId> = connections.collect();
        let graph = Graph {
            drafts: Vec::new(),
            writers: vec![Vec::new(); connections.len()],
            connections,
            waits: BTreeMap::new(),
        };
        Self {
            builder,
            tree,
            wiring,
            federates,
            actions,
            executions,
            graph,
            first: Vec::new(),
            writers: BTreeMap::new(),
            relays: BTreeMap::new(),
            ahead: Vec::new(),
        }
    }

    /// All reactions with their causes.
    pub(in crate::lf) fn trace(mut self) -> Graph {
        self.drafts();
        self.writers_of_cells();
        for at in 0..self.tree.list.len() {
            self.causes_of_instance(at);
        }
        let edges: Vec<_> = self.graph.connections.iter().map(|(e, c)| (*e, *c)).collect();
        for (edge, connection) in edges {
            let roots = self.roots(self.wiring.edges[edge].from, false);
            let writers = roots.into_iter().map(|root| match root {
                Root::Writer(writer) => writer,
                Root::Edge(edge) => self.relay(edge),
            });
            let writers = writers.collect();
            self.graph.writers[connection.index()] = writers;
        }
        self.relays();
        self.graph
    }

    fn class(&self, at: InstanceId) -> Option<&'a Class<'t>> {
        let classes: &'a Classes<'t> = self.builder.classes;
        classes.list.get(&self.tree.list[at].class)
    }

    /// A draft for each reaction and watchdog of each instance, in the order of declaration.
    fn drafts(&mut self) {
        for (at, instance) in self.tree.list.iter().enumerate() {
            let reactions = self.graph.drafts.len();
            let Some(class) = self.class(at) else { continue };
            for (number, react) in class.reactions.iter().enumerate() {
                let declared = react.declared;
                let name = match &declared.name {
                    Some(name) => name.value.clone(),
                    None => format!("reaction_{}", number + 1),
                };
                let deadline = declared.deadline.as_ref();
                let deadline = deadline.and_then(|of| self.builder.span(of, instance));
                self.draft(at, &name, &declared.attributes, deadline, declared.at);
            }
            let watchdogs = self.graph.drafts.len();
            for (watchdog, ..) in &class.watchdogs {
                let name = &watchdog.name.value;
                self.draft(at, name, &watchdog.attributes, None, watchdog.name.at);
            }
            self.first.push((reactions, watchdogs));
        }
    }

    fn draft(
        &mut self,
        at: InstanceId,
        name: &str,
        attributes: &[Attribute],
        deadline: Option<Span>,
        origin: Origin,
    ) {
        let Instance { path, plain, .. } = &self.tree.list[at];
        if self.federates[at].is_none() {
            let message = "a reaction of the federated reactor counts for its first federate only";
            let main = Diagnostic::error(codes::MAIN, message, origin, "this reaction").warning();
            let help = "move it into a reactor of which there is a federate";
            self.builder.sink.push(main.help(help));
        }
        let federate = self.federates[at].unwrap_or(0);
        let path = qualified(path, name);
        let given = self.executions.get(&path).or(self.executions.get(&qualified(plain, name)));
        let given = given.copied();
        let declared = annotations::execution(attributes, self.builder.sink);
        let mut draft = self.blank(federate, path, origin);
        draft.execution = given.or(declared);
        draft.deadline = deadline;
        self.graph.drafts.push(draft);
    }

    fn blank(&self, federate: u32, path: String, origin: Origin) -> Draft {
        Draft {
            federate: FederateId(federate),
            path,
            execution: None,
            deadline: None,
            causes: Vec::new(),
            after: BTreeSet::new(),
            origin,
        }
    }

    fn writers_of_cells(&mut self) {
        for at in 0..self.first.len() {
            let Some(class) = self.class(at) else { continue };
            let (reactions, watchdogs) = self.first[at];
            let of_reactions = class.reactions.iter().map(|react| &react.effects);
            let of_watchdogs = class.watchdogs.iter().map(|(_, effects, _)| effects);
            let all = (reactions..).zip(of_reactions).chain((watchdogs..).zip(of_watchdogs));
            for (draft, effects) in all {
                for effect in effects {
                    let Target::Ports(ports) = effect else { continue };
                    for cell in cells(self.tree, at, *ports) {
                        let writers = self.writers.entry(cell).or_default();
                        if !writers.contains(&draft) {
                            writers.push(draft);
                        }
                    }
                }
            }
        }
    }

    /// Where a cell's value comes from: reactions, and connections that it does not cross at once.
    /// With `everywhere`, connections between federates are crossed too.
    fn roots(&self, cell: CellId, everywhere: bool) -> Vec<Root> {
        let mut roots = BTreeSet::new();
        let mut seen = BTreeSet::from([cell]);
        let mut ahead = vec![cell];
        while let Some(cell) = ahead.pop() {
            roots.extend(self.writers.get(&cell).into_iter().flatten().map(|w| Root::Writer(*w)));
            for at in &self.wiring.into[cell] {
                let edge = &self.wiring.edges[*at];
                if edge.is_immediate() && (everywhere || !edge.is_network) {
                    if seen.insert(edge.from) {
                        ahead.push(edge.from);
                    }
                } else {
                    roots.insert(Root::Edge(*at));
                }
            }
        }
        roots.into_iter().collect()
    }

    fn causes_of_instance(&mut self, at: InstanceId) {
        let Some(class) = self.class(at) else { return };
        let Some((reactions, watchdogs)) = self.first.get(at).copied() else { return };
        let mut last: BTreeMap<Mode, usize> = BTreeMap::new();
        for (draft, react) in (reactions..).zip(&class.reactions) {
            for trigger in &react.triggers {
                self.trigger(at, class, draft, *trigger, react.mode);
            }
            for read in react.triggers.iter().chain(&react.sources) {
                self.reads(at, draft, *read);
            }
            if let Some(wait) = react.declared.tardy.as_ref().and_then(|t| t.value.as_ref()) {
                self.waits(at, draft, wait);
            }
            // Reactions of different modes never have the same tag.
            let before = match react.mode {
                None => last.values().copied().collect(),
                Some(_) => [react.mode, None].iter().filter_map(|m| last.get(m).copied()).collect(),
            };
            let before: Vec<usize> = before;
            self.graph.drafts[draft].after.extend(before);
            last.insert(react.mode, draft);
        }
        for (draft, (watchdog, ..)) in (watchdogs..).zip(&class.watchdogs) {
            let instance = &self.tree.list[at];
            let Some(timeout) = self.builder.span(&watchdog.timeout, instance) else { continue };
            let index = draft - watchdogs;
            for from in self.doers(at, class, |effect| effect == Target::Watchdog(index)) {
                let delay = delay(timeout);
                self.because(draft, Trigger::Reaction { from: id(from), delay, physical: true });
            }
        }
    }

    /// Reactions of an instance with an effect.
    fn doers(&self, at: InstanceId, class: &Class<'_>, is: impl Fn(Target) -> bool) -> Vec<usize> {
        let (reactions, watchdogs) = self.first[at];
        let of_reactions = class.reactions.iter().map(|react| &react.effects);
        let of_watchdogs = class.watchdogs.iter().map(|(_, effects, _)| effects);
        let all = (reactions..).zip(of_reactions).chain((watchdogs..).zip(of_watchdogs));
        all.filter(|(_, effects)| effects.iter().any(|e| is(*e))).map(|(draft, _)| draft).collect()
    }

    fn because(&mut self, draft: usize, cause: Trigger) {
        self.graph.drafts[draft].causes.push(Why::of(cause));
    }

    fn trigger(
        &mut self,
        at: InstanceId,
        class: &Class<'t>,
        draft: usize,
        trigger: Target,
        mode: Mode,
    ) {
        match trigger {
            Target::Startup => self.because(draft, Trigger::Startup),
            Target::Shutdown => self.because(draft, Trigger::Shutdown),
            Target::Reset => self.reset(at, draft, mode),
            Target::Timer(timer) => self.timer(at, class, draft, timer),
            Target::Action(action) => self.action(at, class, draft, action),
            Target::Watchdog(watchdog) => {
                let from = id(self.first[at].1 + watchdog);
                let delay = TagDelay::None;
                self.because(draft, Trigger::Reaction { from, delay, physical: true });
            }
            Target::Ports(ports) => {
                for cell in cells(self.tree, at, ports) {
                    for root in self.roots(cell, false) {
                        self.root(draft, root);
                    }
                }
            }
            Target::Mode(..) => {}
        }
    }

    /// The modes around a reaction, and who enters them with `reset`.
    fn reset(&mut self, at: InstanceId, draft: usize, mode: Mode) {
        let mut inner = Some((at, mode));
        while let Some((at, mode)) = inner {
            if let (Some(mode), Some(class)) = (mode, self.class(at)) {
                for from in self.doers(at, class, |effect| effect == Target::Mode(mode, true)) {
                    let (from, delay) = (id(from), TagDelay::Microstep);
                    self.because(draft, Trigger::Reaction { from, delay, physical: false });
                }
            }
            inner = self.tree.list[at].parent;
        }
    }

    fn timer(&mut self, at: InstanceId, class: &Class<'t>, draft: usize, timer: usize) {
        let instance = &self.tree.list[at];
        let (timer, mode) = class.timers[timer];
        let mut time = |of: &Option<_>| match of {
            None => Some(Span::ZERO),
            Some(of) => self.builder.span(of, instance),
        };
        let (Some(offset), Some(period)) = (time(&timer.offset), time(&timer.period)) else {
            return;
        };
        let period = Some(period).filter(|period| *period > Span::ZERO);
        let cause = Trigger::Timer { offset, period };
        let is_modal = mode.is_some() || self.is_in_mode(at);
        self.graph.drafts[draft].causes.push(Why { cause, action: None, is_modal });
    }

    fn is_in_mode(&self, mut at: InstanceId) -> bool {
        while let Some((parent, mode)) = self.tree.list[at].parent {
            if mode.is_some() {
                return true;
            }
            at = parent;
        }
        false
    }

    /// An action: scheduled by reactions, or, if it is physical, by something else.
    fn action(&mut self, at: InstanceId, class: &Class<'t>, draft: usize, action: usize) {
        let instance: &Instance = &self.tree.list[at];
        let declared = class.actions[action];
        let mut time = |of: &Option<_>| match of {
            None => Some(Span::ZERO),
            Some(of) => self.builder.span(of, instance),
        };
        let (Some(min_delay), Some(spacing)) =
            (time(&declared.min_delay), time(&declared.min_spacing))
        else {
            return;
        };
        let full = qualified(&instance.path, &declared.name.value);
        let plain = qualified(&instance.plain, &declared.name.value);
        let given = self.actions.get(&full).or(self.actions.get(&plain)).copied();
        let spacing = Some(spacing).filter(|spacing| *spacing > Span::ZERO);
        let least = given.or(spacing);
        let doers = self.doers(at, class, |effect| effect == Target::Action(action));
        // A reaction to the start hands a physical action to a thread, which schedules it.
        let is_startup = |doer: &usize| {
            let triggers = class.reactions.get(doer - self.first[at].0).map(|r| &r.triggers);
            triggers.is_some_and(|t| t.iter().all(|t| matches!(t, Target::Startup)))
        };
        let is_sporadic = declared.is_physical && doers.iter().all(is_startup);
        let causes: Vec<Trigger> = if is_sporadic {
            vec![Trigger::Sporadic { action: full.clone(), interval: least }]
        } else {
            let physical = declared.is_physical;
            let delay = match (min_delay, physical) {
                (Span::ZERO, true) => TagDelay::None,
                (min_delay, _) => delay(min_delay),
            };
            let of = |from: usize| Trigger::Reaction { from: id(from), delay, physical };
            doers.into_iter().map(of).collect()
        };
        for cause in causes {
            let action = Some((full.clone(), least));
            self.graph.drafts[draft].causes.push(Why { cause, action, is_modal: false });
        }
    }

    /// What a value's origin means for the reaction that it triggers.
    fn root(&mut self, draft: usize, root: Root) {
        let cause = match root {
            Root::Writer(from) => {
                Trigger::Reaction { from: id(from), delay: TagDelay::None, physical: false }
            }
            Root::Edge(edge) => match self.graph.connections.get(&edge) {
                Some(connection) => Trigger::Message(*connection),
                None => {
                    let at = &self.wiring.edges[edge];
                    let up = self.roots(at.from, false);
                    let writers = up.iter().map(|root| match root {
                        Root::Writer(from) => Some(*from),
                        Root::Edge(_) => None,
                    });
                    let (delay, physical) = (at.delay, at.is_physical);
                    // The delay of reactions' values alone needs no reaction of its own.
                    if let Some(writers) = writers.collect::<Option<Vec<usize>>>() {
                        for from in writers {
                            self.because(
                                draft,
                                Trigger::Reaction { from: id(from), delay, physical },
                            );
                        }
                        return;
                    }
                    let from = id(self.relay(edge));
                    Trigger::Reaction { from, delay: TagDelay::None, physical: false }
                }
            },
        };
        self.because(draft, cause);
    }

    /// The order that what a reaction reads imposes.
    fn reads(&mut self, at: InstanceId, draft: usize, read: Target) {
        let Target::Ports(ports) = read else { return };
        for cell in cells(self.tree, at, ports) {
            for root in self.roots(cell, true) {
                if let Root::Writer(writer) = root {
                    self.graph.drafts[draft].after.insert(writer);
                }
            }
        }
    }

    fn waits(
        &mut self,
        at: InstanceId,
        draft: usize,
        of: &'t crate::At<super::syntax::Expression>,
    ) {
        let value = self.builder.value(of, &self.tree.list[at].parameters);
        let Some(time) = value.and_then(|value| value.as_time()) else {
            // Only to say what is wrong with it.
            self.builder.span(of, &self.tree.list[at]);
            return;
        };
        let place = of_value(of);
        for why in &self.graph.drafts[draft].causes {
            if let Trigger::Message(connection) = why.cause {
                self.graph.waits.insert(connection, (time, place));
            }
        }
    }

    /// The reaction that stands for a delay or a message, without execution time.
    fn relay(&mut self, edge: EdgeId) -> usize {
        if let Some(relay) = self.relays.get(&edge) {
            return *relay;
        }
        let at = &self.wiring.edges[edge];
        // A message is received where it arrives; a delay is between two ports.
        let federate = self.federates[self.tree.cells[at.to].instance]
            .or(self.federates[self.tree.cells[at.from].instance]);
        let kind = if at.is_network { "receive" } else { "delay" };
        let cell = name(self.tree, self.builder.classes, at.to);
        let mut draft = self.blank(federate.unwrap_or(0), format!("{cell}.{kind}"), at.origin());
        draft.execution = Some(Interval::ZERO);
        self.graph.drafts.push(draft);
        let relay = self.graph.drafts.len() - 1;
        self.relays.insert(edge, relay);
        self.ahead.push(edge);
        relay
    }

    /// The causes of all relays, which may need more of them.
    fn relays(&mut self) {
        while let Some(edge) = self.ahead.pop() {
            let relay = self.relays[&edge];
            let at = &self.wiring.edges[edge];
            if let Some(connection) = self.graph.connections.get(&edge) {
                self.because(relay, Trigger::Message(*connection));
                if at.is_immediate() {
                    let roots = self.roots(at.from, true);
                    let writers = roots.iter().filter_map(|root| match root {
                        Root::Writer(writer) => Some(*writer),
                        Root::Edge(_) => None,
                    });
                    self.graph.drafts[relay].after.extend(writers);
                }
                continue;
            }
            let (delay, physical) = (at.delay, at.is_physical);
            for root in self.roots(at.from, false) {
                let from = match root {
                    Root::Writer(from) => from,
                    Root::Edge(edge) => self.relay(edge),
                };
                self.because(relay, Trigger::Reaction { from: id(from), delay, physical });
            }
        }
        // What a relay hands on at the same tag comes after it.
        for draft in &mut self.graph.drafts {
            let relayed = draft.causes.iter().filter_map(|why| match why.cause {
                Trigger::Reaction { from, delay: TagDelay::None, physical: false } => {
                    Some(from.index())
                }
                _ => None,
            });
            draft.after.extend(relayed.collect::<Vec<_>>());
        }
    }
}

/// The position of a draft as long as reactions have no order.
fn id(draft: usize) -> ReactionId {
    ReactionId(u32::try_from(draft).unwrap_or(u32::MAX))
}

fn delay(span: Span) -> TagDelay {
    if span == Span::ZERO { TagDelay::Microstep } else { TagDelay::Time(span) }
}

/// Reports cells that feed themselves at once through connections alone.
pub(in crate::lf) fn loops(builder: &mut Builder<'_, '_>, tree: &Tree, wiring: &Wiring<'_>) {
    // 0: not looked at, 1: on the way, 2: done.
    let mut state = vec![0_u8; tree.cells.len()];
    for first in 0..tree.cells.len() {
        let mut path = vec![(first, 0)];
        if state[first] == 0 {
            state[first] = 1;
        } else {
            continue;
        }
        while let Some((cell, next)) = path.pop() {
            let Some(at) = wiring.into[cell].get(next) else {
                state[cell] = 2;
                continue;
            };
            path.push((cell, next + 1));
            let edge = &wiring.edges[*at];
            if !edge.is_immediate() {
                continue;
            }
            if state[edge.from] == 1 {
                let on = path.iter().skip_while(|(cell, _)| *cell != edge.from);
                let names: Vec<_> = on.map(|(c, _)| name(tree, builder.classes, *c)).collect();
                let message = format!("ports feed each other without delay: {}", names.join(" ← "));
                let cycle =
                    Diagnostic::error(codes::CYCLE, message, edge.origin(), "this connection");
                builder.sink.push(cycle.help("remove one of the connections"));
            } else if state[edge.from] == 0 {
                state[edge.from] = 1;
                path.push((edge.from, 0));
            }
        }
    }
}
