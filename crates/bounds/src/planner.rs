//! Channels that are added, changed and removed one at a time, while all others stay where they
//! are.
//!
//! ```text
//! channel ─→ paths ─→ windows ─→ the part of the system that may be delayed
//!                                  └→ reservations, checks, bounds ─→ Plan
//! ```
//!
//! A channel with windows of its own delays no other. Any other may delay what shares a port with
//! it, and so on: that part is analysed again. Where parts cannot be told apart, all is.

use crate::keep::KeptPlan;
use crate::route::{self, Path, Routes, load_aware};
use crate::scheduled::{self, Timetable};
use crate::{analysis, device, reserve, srp};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{ChannelPlan, Plan, StreamPlan};
use onbeat_model::port::GateControl;
use onbeat_model::system::{
    Channel, ChannelId, Class, IdleSlopes, NodeKind, PortId, Routing, Subject, System,
};
use onbeat_model::time::SyncedTime;
use std::collections::{BTreeSet, HashMap, HashSet};

/// How many paths are tried for one channel.
const PATHS_MAX: usize = 8;
/// How many channels that would have to move an error names.
const NAMED_MAX: usize = 8;

/// A system and its plan with reservations, of which single channels change.
///
/// At any time the plan is the one that [`plan_and_limits`](crate::plan_and_limits) makes of
/// [`Planner::system`] when it keeps the paths and windows of [`Planner::plan`]. Where its analysis
/// ends early (OB2015), bounds may be smaller here.
#[derive(Clone, Debug)]
pub struct Planner {
    system: System,
    /// The same without channels, streams, chains and references.
    base: System,
    plan: Plan,
    timetable: Timetable,
    /// By channel: what the timetable calls it.
    keys: Vec<usize>,
    next_key: usize,
}

/// What one change has done.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanChange {
    /// What the user should know: as of [`warnings`](crate::warnings), of the channels and streams
    /// that were analysed again and of all chains; and OB2015.
    pub warnings: Vec<Diagnostic>,
    /// How many channels and streams were analysed again.
    pub analysed: usize,
}

/// Why a channel is refused, and the port of its paths where there is no room, if it is that.
struct Refused {
    errors: Vec<Diagnostic>,
    port: Option<PortId>,
}

impl From<Vec<Diagnostic>> for Refused {
    fn from(errors: Vec<Diagnostic>) -> Self {
        Self { errors, port: None }
    }
}

/// A channel and the paths that are tried for it.
type Candidate<'a> = (&'a Channel, Vec<Path>);

/// A part of the system with its plan: ports, and all that leaves by them.
struct Part {
    system: System,
    plan: Plan,
    /// By channel of the part: its position in the whole, where a new one is the last.
    channels: Vec<usize>,
    /// By stream of the part: its position in the whole.
    streams: Vec<usize>,
    /// By port.
    is_in: Vec<bool>,
}

impl Planner {
    /// Plans a system as [`plan_and_limits`](crate::plan_and_limits) does; the warnings are its.
    ///
    /// # Errors
    /// Those of [`plan_and_limits`](crate::plan_and_limits).
    ///
    /// # Panics
    /// As [`plan`](crate::plan).
    pub fn new(
        system: System,
        kept: &KeptPlan,
    ) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let (plan, limits) = crate::plan_and_limits(&system, true, kept)?;
        let base = System { nodes: system.nodes.clone(), ..without_traffic(&system) };
        let timetable = Timetable::new(&base);
        let mut planner = Self { system, base, plan, timetable, keys: Vec::new(), next_key: 0 };
        planner.fill_timetable();
        Ok((planner, limits))
    }

    /// The system as it is now.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Adds a channel behind all others, if there is room for it beside these.
    ///
    /// # Errors
    /// Those of [`plan`](crate::plan) about the channel or what it may delay; nothing has changed
    /// then.
    ///
    /// # Panics
    /// If its ends are no hosts of the system. Name, stream identifier and destination must be its
    /// own, as in a checked description.
    pub fn add(&mut self, channel: Channel) -> Result<PlanChange, Vec<Diagnostic>> {
        self.alter(None, Some(channel))
    }

    /// Puts another channel in the place of one. It keeps paths and windows that are right for it.
    ///
    /// # Errors
    /// As [`Planner::add`].
    ///
    /// # Panics
    /// As [`Planner::add`], and if there is no such channel.
    pub fn change(
        &mut self,
        id: ChannelId,
        channel: Channel,
    ) -> Result<PlanChange, Vec<Diagnostic>> {
        self.alter(Some(id.index()), Some(channel))
    }

    /// Removes a channel; the numbers of those behind it become less by one.
    ///
    /// # Errors
    /// OB2002 for each chain and reference that is about it; nothing has changed then.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn remove(&mut self, id: ChannelId) -> Result<PlanChange, Vec<Diagnostic>> {
        let chains = self.system.chains.iter().filter(|chain| chain.channels.contains(&id));
        let chains = chains.map(|chain| (format!("chain `{}`", chain.name), chain.origin));
        let references = self.system.references.iter();
        let references = references.filter(|it| it.of == Subject::Channel(id));
        let channel = self.system.channel(id);
        let references = references.map(|_| ("a reference".to_owned(), channel.origin));
        let name = &channel.name;
        let needed = |(what, origin)| {
            let message = format!("channel `{name}` cannot be removed: {what} is about it");
            Diagnostic::error(codes::SCHEDULED, message, origin, "needs it").help("remove it first")
        };
        let needed: Vec<Diagnostic> = chains.chain(references).map(needed).collect();
        if needed.is_empty() { self.alter(Some(id.index()), None) } else { Err(needed) }
    }

    /// Takes the windows of the plan in the timetable.
    fn fill_timetable(&mut self) {
        self.timetable = Timetable::new(&self.base);
        self.keys = (0..self.system.channels.len()).collect();
        self.next_key = self.keys.len();
        let both = self.system.channels.iter().zip(&self.plan.channels);
        for (key, (channel, planned)) in both.enumerate() {
            let Some(launch) = &planned.launch else { continue };
            let ours = (channel, planned);
            assert!(
                self.timetable.put_back(&self.base, key, ours, launch),
                "the windows of `{}` are not where the plan says",
                channel.name
            );
        }
    }

    /// A channel in the place of another, or behind all, or none in its place.
    fn alter(
        &mut self,
        old: Option<usize>,
        new: Option<Channel>,
    ) -> Result<PlanChange, Vec<Diagnostic>> {
        if !self.has_parts() {
            return self.plan_again(old, new);
        }
        let Some(channel) = new else {
            return self.attempt(old, None).map_err(|refused| refused.errors);
        };
        let mut paths = self.first_paths(old, &channel)?;
        let (mut avoided, mut first) = (HashSet::new(), None);
        for _ in 0..PATHS_MAX {
            let refused = match self.attempt(old, Some((&channel, paths))) {
                Ok(change) => return Ok(change),
                Err(refused) => refused,
            };
            first.get_or_insert(refused.errors);
            let is_elsewhere = |port: &PortId| {
                let system = &self.system;
                system.routing == Routing::LoadAware
                    && channel.paths.is_free()
                    && load_aware::is_between_bridges(system, *port)
            };
            let Some(port) = refused.port.filter(is_elsewhere) else { break };
            avoided.insert(port);
            let Some(others) = route::around(&self.base, &channel, &avoided) else { break };
            paths = others;
        }
        Err(first.expect("a path was tried"))
    }

    /// Whether a change concerns only what shares ports: nothing is flooded, reserved by protocol
    /// or raised for all, and frames with windows are apart from others in time.
    fn has_parts(&self) -> bool {
        let Self { system, plan, .. } = self;
        let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(b) if b.learning);
        let queue = Class::Scheduled.queue();
        let is_in_queue = |class: u8| usize::from(class) == queue;
        let is_apart = |(port, planned): (usize, &onbeat_model::plan::PortPlan)| {
            let clock = &system.node(system.ports[port].node).clock;
            let begins_late =
                |list: &GateControl| clock.when(SyncedTime::from_ns(list.base.as_ns())).as_ns() > 0;
            let is_planned = system.ports[port].settings.gates.is_empty();
            !is_planned
                || planned.settings.gates.is_empty()
                || (planned.settings.preemptable == 0
                    && !planned.settings.gates.iter().any(begins_late))
        };
        let all_launched = system.streams.is_empty()
            && plan.channels.iter().all(|planned| planned.launch.is_some());
        !srp::is_used(system)
            && system.idle_slopes == IdleSlopes::Rate
            && system.faults.is_empty()
            && !system.nodes.iter().any(|node| learns(&node.kind))
            && !system.streams.iter().any(|stream| is_in_queue(stream.traffic_class))
            && (all_launched || plan.ports.iter().enumerate().all(is_apart))
    }

    /// Those of the channel before, if they are right for it, else the shortest.
    fn first_paths(
        &self,
        old: Option<usize>,
        channel: &Channel,
    ) -> Result<Vec<Path>, Vec<Diagnostic>> {
        let mut routes = Routes::new(&self.base);
        let mut paths = vec![routes.of_channel(channel)];
        if !routes.errors.is_empty() {
            return Err(routes.errors);
        }
        let was = self.before(old, channel);
        let kept = KeptPlan::of(&self.plan, [was].into_iter());
        kept.restore(&self.base, std::slice::from_ref(channel), &mut paths);
        Ok(paths.remove(0))
    }

    /// The channel that another one replaces, if its paths may be those of the other.
    fn before(&self, old: Option<usize>, channel: &Channel) -> Option<ChannelId> {
        let id = ChannelId(old? as u32);
        let before = self.system.channel(id);
        let is_same = (before.talker, before.vlan) == (channel.talker, channel.vlan)
            && before.listeners == channel.listeners;
        is_same.then_some(id)
    }

    /// Makes a change with certain paths; nothing has changed if that is refused.
    fn attempt(
        &mut self,
        old: Option<usize>,
        new: Option<Candidate<'_>>,
    ) -> Result<PlanChange, Refused> {
        let key = old.map_or(self.next_key, |old| self.keys[old]);
        self.timetable.remove(key);
        let result = self.attempt_as(key, old, new);
        if let (Err(_), Some(old)) = (&result, old) {
            self.timetable.remove(key);
            let ours = (&self.system.channels[old], &self.plan.channels[old]);
            if let Some(launch) = &ours.1.launch {
                assert!(self.timetable.put_back(&self.base, key, ours, launch), "it was there");
            }
        } else if result.is_err() {
            self.timetable.remove(key);
        }
        result
    }

    fn attempt_as(
        &mut self,
        key: usize,
        old: Option<usize>,
        new: Option<Candidate<'_>>,
    ) -> Result<PlanChange, Refused> {
        let planned = new
            .map(|(channel, paths)| (channel.clone(), reserve::unreserved(channel, paths, true)));
        let mut changed: BTreeSet<PortId> = BTreeSet::new();
        changed.extend(planned.iter().flat_map(|(_, planned)| planned.tree_ports()));
        changed.extend(old.into_iter().flat_map(|old| self.plan.channels[old].tree_ports()));
        let at = old.unwrap_or(self.system.channels.len());
        let mut part = self.part(&changed, at, planned);
        if let Some(own) = part.channels.iter().position(|channel| *channel == at) {
            self.launch(key, old, &mut part, own)?;
        }
        let hindrances = part.hindrances();
        if !hindrances.is_empty() {
            return Err(hindrances.into());
        }
        let mut gates: HashMap<PortId, GateControl> = HashMap::new();
        for port in (0..self.base.ports.len() as u32).map(PortId) {
            if changed.contains(&port) {
                gates.extend(self.timetable.gates(&self.base, port).map(|list| (port, list)));
            } else if part.is_in[port.index()] {
                let described = self.base.port(port).settings.gates.len();
                let lists = &self.plan.ports[port.index()].settings.gates[described..];
                gates.extend(lists.first().map(|list| (port, list.clone())));
            }
        }
        let (ports, refused) = reserve::reserve(&part.system, &mut part.plan.channels, gates);
        part.plan.ports = ports;
        // The limits of a device are of all its ports.
        self.swap_others(&mut part);
        let checked = part.check(refused);
        self.swap_others(&mut part);
        let warnings = checked?;
        Ok(self.commit(old, at, part, warnings))
    }

    /// Gives the changed channel windows, if it is scheduled.
    fn launch(
        &mut self,
        key: usize,
        old: Option<usize>,
        part: &mut Part,
        own: usize,
    ) -> Result<(), Refused> {
        let (channel, planned) = (&part.system.channels[own], &mut part.plan.channels[own]);
        if channel.class != Class::Scheduled || !planned.protected {
            return Ok(());
        }
        let id = ChannelId(own as u32);
        if let Some(why) = scheduled::hindrance(&part.system, planned, &part.plan.streams, id) {
            return Err(vec![why].into());
        }
        let before = old.and_then(|old| self.plan.channels[old].launch.clone());
        if let Some(before) = before
            && self.timetable.put_back(&self.base, key, (channel, planned), &before)
        {
            planned.launch = Some(scheduled::relaunched(&self.base, channel, before));
            return Ok(());
        }
        match self.timetable.add(&self.base, key, channel, planned) {
            Ok(launch) => planned.launch = Some(launch),
            Err(no_place) => {
                let scheduled::NoPlace { flow, refusal } = *no_place;
                let name = |other: usize| match self.keys.iter().position(|key| *key == other) {
                    Some(at) => self.system.channels[at].name.as_str(),
                    None => channel.name.as_str(),
                };
                let error = scheduled::refused(&self.base, channel, &flow, &refusal, &name);
                let port = refusal.why.port().map(|port| PortId(port as u32));
                return Err(Refused { errors: vec![error], port });
            }
        }
        Ok(())
    }

    /// The ports that a change concerns, with all that leaves there. `new` is the channel in place
    /// `at` from now on.
    fn part(
        &self,
        changed: &BTreeSet<PortId>,
        at: usize,
        new: Option<(Channel, ChannelPlan)>,
    ) -> Part {
        let is_in = self.joined(changed, at);
        let enters = |port: &PortId| is_in[port.index()];
        let mut part = Part {
            system: without_traffic(&self.base),
            plan: Plan { protected: true, ..Plan::default() },
            channels: Vec::new(),
            streams: Vec::new(),
            is_in: Vec::new(),
        };
        part.plan.noise.clone_from(&self.plan.noise);
        part.plan.tcp.clone_from(&self.plan.tcp);
        let mut add = |at: usize, channel: Channel, planned: ChannelPlan| {
            part.channels.push(at);
            part.system.channels.push(channel);
            part.plan.channels.push(planned);
        };
        let mut new = new;
        for (other, planned) in self.plan.channels.iter().enumerate() {
            if other == at {
                let own = new.take();
                own.into_iter().for_each(|(channel, planned)| add(at, channel, planned));
            } else if planned.paths.iter().flatten().any(enters) {
                add(other, self.system.channels[other].clone(), planned.clone());
            }
        }
        new.into_iter().for_each(|(channel, planned)| add(at, channel, planned));
        for (stream, planned) in self.plan.streams.iter().enumerate() {
            if planned.paths.iter().flatten().flatten().any(enters) {
                part.streams.push(stream);
                part.system.streams.push(self.system.streams[stream].clone());
                let paths = planned.paths.clone();
                part.plan.streams.push(StreamPlan { paths, ..StreamPlan::default() });
            }
        }
        part.is_in = is_in;
        part
    }

    /// The ports of a change, and those that are joined to them by what has no windows of its own,
    /// except the channel `at`.
    fn joined(&self, changed: &BTreeSet<PortId>, at: usize) -> Vec<bool> {
        let mut is_in = vec![false; self.base.ports.len()];
        changed.iter().for_each(|port| is_in[port.index()] = true);
        let channels = self.plan.channels.iter().enumerate();
        let loose = channels.filter(|(other, planned)| *other != at && planned.launch.is_none());
        let channels = loose.map(|(_, planned)| planned.tree_ports());
        let streams = self.plan.streams.iter();
        let streams = streams.map(|planned| planned.paths.iter().flatten().flatten().copied());
        let streams = streams.map(Iterator::collect);
        let mut outside: Vec<Vec<PortId>> = channels.chain(streams).collect();
        loop {
            for node in &self.base.nodes {
                let shares = matches!(&node.kind, NodeKind::Bridge(b) if b.shared_buffer.is_some());
                if shares && node.ports.iter().any(|port| is_in[port.index()]) {
                    node.ports.iter().for_each(|port| is_in[port.index()] = true);
                }
            }
            let before = outside.len();
            outside.retain(|ports| {
                let joins = ports.iter().any(|port| is_in[port.index()]);
                if joins {
                    ports.iter().for_each(|port| is_in[port.index()] = true);
                }
                !joins
            });
            if outside.len() == before {
                return is_in;
            }
        }
    }

    /// Exchanges the plans of ports that are not in a part.
    fn swap_others(&mut self, part: &mut Part) {
        let both = self.plan.ports.iter_mut().zip(&mut part.plan.ports);
        for ((whole, other), is_in) in both.zip(&part.is_in) {
            if !is_in {
                std::mem::swap(whole, other);
            }
        }
    }

    /// The part is as it is planned from now on.
    fn commit(
        &mut self,
        old: Option<usize>,
        at: usize,
        mut part: Part,
        mut warnings: Vec<Diagnostic>,
    ) -> PlanChange {
        let analysed = part.channels.len() + part.streams.len();
        let channels = part.system.channels.into_iter().zip(part.plan.channels);
        let mut is_there = false;
        for (place, (channel, planned)) in part.channels.iter().zip(channels) {
            is_there |= *place == at;
            if *place == self.system.channels.len() {
                self.system.channels.push(channel);
                self.plan.channels.push(planned);
                self.keys.push(self.next_key);
                self.next_key += 1;
            } else {
                self.system.channels[*place] = channel;
                self.plan.channels[*place] = planned;
            }
        }
        if let (Some(old), false) = (old, is_there) {
            remove_channel(&mut self.system, old);
            self.plan.channels.remove(old);
            self.keys.remove(old);
        }
        for (stream, planned) in part.streams.iter().zip(part.plan.streams) {
            self.plan.streams[*stream] = planned;
        }
        for port in (0..part.is_in.len()).filter(|port| part.is_in[*port]) {
            self.plan.ports[port] = std::mem::take(&mut part.plan.ports[port]);
            self.plan.backlogs[port] = part.plan.backlogs[port];
        }
        self.bound_chains();
        warnings.extend(crate::late_chains(&self.system, &self.plan));
        PlanChange { warnings, analysed }
    }

    fn bound_chains(&mut self) {
        let Self { system, plan, .. } = self;
        let bound = |chain| analysis::bound::of_chain(system, plan, chain);
        plan.chains = system.chains.iter().map(bound).collect();
    }

    /// Makes a change where no part can be told from the rest: plans all, and refuses it if others
    /// would have to move.
    fn plan_again(
        &mut self,
        old: Option<usize>,
        new: Option<Channel>,
    ) -> Result<PlanChange, Vec<Diagnostic>> {
        let mut system = self.system.clone();
        let ids = (0..system.channels.len() as u32).map(|id| Some(ChannelId(id)));
        let mut was: Vec<Option<ChannelId>> = ids.collect();
        match (old, new) {
            (Some(old), Some(channel)) => {
                was[old] = self.before(Some(old), &channel);
                system.channels[old] = channel;
            }
            (Some(old), None) => {
                remove_channel(&mut system, old);
                was.remove(old);
            }
            (None, Some(channel)) => {
                system.channels.push(channel);
                was.push(None);
            }
            (None, None) => unreachable!("a change is about a channel"),
        }
        let kept = KeptPlan::of(&self.plan, was.iter().copied());
        let (plan, limits) = crate::plan_and_limits(&system, true, &kept)?;
        let moved = was.iter().zip(&plan.channels).filter(|(was, planned)| {
            let Some(id) = was.filter(|id| Some(id.index()) != old) else { return false };
            let before = self.plan.channel(id);
            (&before.paths, &before.launch) != (&planned.paths, &planned.launch)
        });
        let moved: Vec<&str> = moved
            .filter_map(|(was, _)| Some(self.system.channel((*was)?).name.as_str()))
            .take(NAMED_MAX)
            .collect();
        if let ([first, ..], Some(id)) = (&moved[..], old.or(system.channels.len().checked_sub(1)))
        {
            let channel = &system.channels[id.min(system.channels.len() - 1)];
            let message = format!(
                "channel `{}` has room only if others move: `{}`",
                channel.name,
                moved.join("`, `")
            );
            let label = format!("`{first}` would have to move");
            let error = Diagnostic::error(codes::SCHEDULED, message, channel.origin, &label);
            return Err(vec![error.help("plan all channels together: `onbeat plan`")]);
        }
        (self.system, self.plan) = (system, plan);
        self.fill_timetable();
        let mut warnings = crate::warnings(&self.system, &self.plan);
        warnings.extend(limits);
        let analysed = self.system.channels.len() + self.system.streams.len();
        Ok(PlanChange { warnings, analysed })
    }
}

impl Part {
    /// Why channels cannot have their windows, whoever else has some.
    fn hindrances(&self) -> Vec<Diagnostic> {
        let Self { system, plan, .. } = self;
        let all = (0..).map(ChannelId).zip(&plan.channels);
        let launched = all.filter(|(_, planned)| planned.launch.is_some());
        launched
            .filter_map(|(id, planned)| scheduled::hindrance(system, planned, &plan.streams, id))
            .collect()
    }

    /// Bounds of what is in the part, and what the user should know; or what prevents it.
    fn check(&mut self, refused: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Refused> {
        let Self { system, plan, .. } = self;
        let mut errors = crate::clocks_too_far_apart(system);
        errors.extend(refused);
        errors.extend(reserve::overloads(system, plan));
        errors.extend(device::refusals(system, plan));
        errors.extend(reserve::intruders(system, plan));
        errors.extend(reserve::over_dedicated(system, plan));
        if !errors.is_empty() {
            let port = reserve::overloaded(system, plan).map(|(port, ..)| port).next();
            return Err(Refused { errors, port });
        }
        let (errors, limits) = crate::bound(system, plan);
        if !errors.is_empty() {
            return Err(errors.into());
        }
        let mut warnings = crate::warnings(system, plan);
        warnings.extend(limits);
        Ok(warnings)
    }
}

/// A system with neither channels nor what is about them.
fn without_traffic(system: &System) -> System {
    System {
        name: system.name.clone(),
        nodes: system.nodes.clone(),
        ports: system.ports.clone(),
        links: system.links.clone(),
        devices: system.devices.clone(),
        channels: Vec::new(),
        programs: system.programs.clone(),
        noise: system.noise.clone(),
        tcp: system.tcp.clone(),
        routing: system.routing,
        idle_slopes: system.idle_slopes,
        synchronisation: system.synchronisation,
        streams: Vec::new(),
        faults: system.faults.clone(),
        chains: Vec::new(),
        alternatives: Vec::new(),
        run: system.run,
        scenarios: system.scenarios.clone(),
        references: Vec::new(),
    }
}

/// Takes a channel out of a system in which nothing is about it.
fn remove_channel(system: &mut System, channel: usize) {
    system.channels.remove(channel);
    let lower = |id: &mut ChannelId| id.0 -= u32::from(id.index() > channel);
    system.chains.iter_mut().flat_map(|chain| &mut chain.channels).for_each(lower);
    // Those of its slot, if it has one with others, have slots of their own then.
    system.alternatives.retain(|it| !it.is_about(ChannelId(channel as u32)));
    for it in &mut system.alternatives {
        lower(&mut it.mode);
        it.channels.iter_mut().for_each(|alternative| lower(&mut alternative.channel));
    }
    for reference in &mut system.references {
        if let Subject::Channel(id) = &mut reference.of {
            lower(id);
        }
    }
}
