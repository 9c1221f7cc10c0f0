//! The fixed point: what federates send decides how long others wait, and where clocks decide on
//! tags, also how much others have to do.

use super::demand::Demand;
use super::stream::{self, Passing, Streams};
use super::wait::{self, Edge, Wait, WaitCycle};
use super::window::{Ends, Task, Work};
use super::{Delivery, Environment, Figure, Ns, Station, Unknown, Waits, connection_name};
use super::{federate_name, name, ns};
use onbeat_model::federation::{
    Connection, ConnectionId, FederateId, Federation, MaxWait, ReactionId, Trigger,
};
use onbeat_model::time::Span;
use std::collections::BTreeSet;

/// So often may figures grow by what grows elsewhere; what still does has no bound then.
const ROUNDS_MAX: usize = 60;
/// So often may the time that others take of a processor grow.
const STEPS_MAX: usize = 10_000;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    /// Per federate: how long it waits; unknown: messages to it may be tardy.
    pub(super) waits: Vec<Figure<Ns>>,
    /// Per federate: how long it must wait.
    pub(super) needs: Vec<Figure<Ns>>,
    /// Per federate: what it executes.
    pub(super) works: Vec<Figure<Work>>,
    pub(super) reactions: Vec<ReactionTimes>,
    pub(super) connections: Vec<ConnectionTimes>,
    pub(super) cycles: Vec<WaitCycle>,
    /// Per federate: the error of its clock.
    pub(super) errors: Vec<Figure<Ns>>,
    /// Per federate: the wait of the model by which messages may be tardy.
    pub(super) is_unsafe: Vec<bool>,
}

/// Times of a reaction in true time, relative to its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReactionTimes {
    pub(super) best: Ns,
    pub(super) worst: Figure<Ns>,
    pub(super) start_min: Figure<Ns>,
    pub(super) finish_max: Figure<Ns>,
}

/// Times of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionTimes {
    /// In true time, relative to the writers' tag.
    pub(super) sent_min: Figure<Ns>,
    pub(super) sent_max: Figure<Ns>,
    /// From the earliest and the latest sending to what the reader's clock reads at arrival.
    pub(super) transit: Figure<(Ns, Ns)>,
    /// The latest arrival by the reader's clock, relative to the message's tag.
    pub(super) arrival: Figure<Ns>,
    /// Whether its reader has an event of its own at each tag of a message.
    pub(super) is_met: bool,
}

/// Where a reaction is in its federate, and the reactions of each federate.
#[derive(Clone, Debug)]
struct Places {
    position: Vec<usize>,
    members: Vec<Vec<usize>>,
}

struct Solver<'a> {
    federation: &'a Federation,
    environment: &'a Environment,
    waits: Waits,
    places: Places,
    edges: Vec<Vec<stream::Edge>>,
    errors: Vec<Figure<Ns>>,
    /// Per reaction: its earliest start.
    starts: Vec<Figure<Ns>>,
    /// Per federate: why nothing bounds it, where nothing does.
    endless: Vec<Option<Unknown>>,
    is_unsafe: Vec<bool>,
}

/// What one round makes of the one before.
#[derive(Clone, Debug)]
struct Round {
    /// Per reaction and per connection, in true time.
    finishes: Vec<Figure<Ns>>,
    sendings: Vec<Figure<Ns>>,
    works: Vec<Figure<Work>>,
    waits: Vec<Figure<Ns>>,
    arrivals: Vec<Figure<Ns>>,
    is_met: Vec<bool>,
    cycles: Vec<WaitCycle>,
}

pub(super) fn solve(federation: &Federation, environment: &Environment, waits: Waits) -> Solved {
    let mut solver = Solver::new(federation, environment, waits);
    let mut round = solver.first();
    for count in 0.. {
        let next = solver.round(&round);
        let demoted = solver.demote(&next);
        let is_done = next.finishes == round.finishes && next.sendings == round.sendings;
        if !demoted && is_done {
            return solver.solved(next);
        }
        if count >= ROUNDS_MAX {
            solver.give_up(&round, &next);
        }
        round = next;
    }
    unreachable!("each round beyond the limit leaves fewer figures that may grow")
}

impl Places {
    fn new(federation: &Federation) -> Self {
        let mut places = Self { position: Vec::new(), members: Vec::new() };
        places.members.resize(federation.federates.len(), Vec::new());
        for (at, reaction) in federation.reactions.iter().enumerate() {
            let members = &mut places.members[reaction.federate.index()];
            places.position.push(members.len());
            members.push(at);
        }
        places
    }
}

impl<'a> Solver<'a> {
    fn new(federation: &'a Federation, environment: &'a Environment, waits: Waits) -> Self {
        let mut solver = Self {
            federation,
            environment,
            waits,
            places: Places::new(federation),
            edges: stream::edges(federation),
            errors: Vec::new(),
            starts: Vec::new(),
            endless: vec![None; federation.federates.len()],
            is_unsafe: vec![false; federation.federates.len()],
        };
        solver.errors = (0..federation.federates.len()).map(|at| solver.error(at)).collect();
        solver.starts = solver.starts(|_| true);
        solver
    }

    fn station(&self, federate: usize) -> Option<&'a Station> {
        let name = self.federation.federates[federate].station.as_ref()?;
        self.environment.stations.iter().find(|station| station.name == *name)
    }

    fn error(&self, federate: usize) -> Figure<Ns> {
        let name = &self.federation.federates[federate].name;
        let station = self.station(federate);
        let station = station.ok_or_else(|| Unknown(format!("`{name}` has no station")))?;
        let why = || Unknown(format!("the clock error of `{}` is not known", station.name));
        station.clock_error.map(ns).ok_or_else(why)
    }

    fn wakeup(&self, federate: usize) -> Ns {
        self.station(federate).map_or(0, |station| ns(station.wakeup))
    }

    fn worst(&self, reaction: usize) -> Figure<Ns> {
        let name = || name(self.federation, ReactionId(reaction as u32));
        match self.federation.reactions[reaction].execution {
            None => Err(Unknown(format!("{} has no execution time", name()))),
            Some(interval) => {
                let why = || Unknown(format!("the execution time of {} has no bound", name()));
                interval.hi.map(ns).ok_or_else(why)
            }
        }
    }

    /// The shortest execution. That of a handler is not known.
    fn best(&self, reaction: usize) -> Ns {
        let reaction = &self.federation.reactions[reaction];
        let execution = reaction.execution.filter(|_| reaction.deadline.is_none());
        execution.map_or(0, |interval| ns(interval.lo))
    }

    /// From a sending in true time to what the reader's clock reads at arrival.
    fn transit(&self, connection: usize) -> Figure<(Ns, Ns)> {
        let id = ConnectionId(connection as u32);
        let ends = &self.federation.connections[connection];
        let delivery = self.environment.deliveries.get(connection).copied().flatten();
        let why = || {
            let name = connection_name(self.federation, id);
            Unknown(format!("the latency of `{name}` is not known"))
        };
        let writer = self.errors[ends.from.index()].clone()?;
        let reader = self.errors[ends.to.index()].clone()?;
        let (least, most) = match delivery.ok_or_else(why)? {
            Delivery::Between { min, max } => (ns(min) - reader, ns(max) + reader),
            Delivery::Fixed(delay) => (ns(delay) - writer, ns(delay) + writer),
        };
        Ok((least, most + self.wakeup(ends.to.index())))
    }

    /// The earliest starts: from below, by as much as causes allow. Tardy messages are scheduled at
    /// a later tag than theirs: what they cause has to wait for the clock only.
    fn starts(&self, is_punctual: impl Fn(usize) -> bool) -> Vec<Figure<Ns>> {
        let reactions = &self.federation.reactions;
        let clock =
            |at: usize| self.errors[reactions[at].federate.index()].clone().map(|error| -error);
        let mut starts: Vec<Figure<Ns>> = (0..reactions.len()).map(clock).collect();
        for _ in 0..reactions.len().min(ROUNDS_MAX) {
            let mut changes = false;
            for at in 0..reactions.len() {
                let Ok(own) = starts[at] else { continue };
                let clock = clock(at).unwrap_or(own);
                let is_punctual = is_punctual(reactions[at].federate.index());
                let causes = reactions[at].causes.iter();
                let earliest = causes.map(|cause| match cause {
                    Trigger::Message(_) if !is_punctual => clock,
                    _ => self.cause(&starts, cause, clock),
                });
                let earliest = earliest.min();
                let earliest = earliest.unwrap_or(clock).max(own);
                changes |= earliest > own;
                starts[at] = Ok(earliest);
            }
            if !changes {
                break;
            }
        }
        starts
    }

    /// When a cause lets a reaction start, at the earliest; not before its clock does.
    fn cause(&self, starts: &[Figure<Ns>], cause: &Trigger, clock: Ns) -> Ns {
        let finish = |at: &ReactionId| {
            let start = starts[at.index()].clone().ok()?;
            Some(start + self.best(at.index()))
        };
        let at = match cause {
            Trigger::Reaction { from, delay, physical: false } => {
                finish(from).map(|finish| finish - ns(delay.time()))
            }
            Trigger::Message(id) => {
                let connection = &self.federation.connections[id.index()];
                let sent = connection.writers.iter().map(finish).min().flatten();
                let transit = self.transit(id.index()).ok().filter(|_| !connection.physical);
                // The clock that reads this at arrival may be ahead.
                sent.zip(transit)
                    .map(|(sent, (least, _))| sent + least - ns(connection.after.time()) + clock)
            }
            _ => None,
        };
        at.map_or(clock, |at| at.max(clock))
    }

    /// The earliest sending of a connection.
    fn sent_min(&self, connection: &Connection) -> Figure<Ns> {
        let mut least: Option<Ns> = None;
        for writer in &connection.writers {
            let sent = self.starts[writer.index()].clone()? + self.best(writer.index());
            least = Some(least.map_or(sent, |least| least.min(sent)));
        }
        least.ok_or_else(|| Unknown("nothing is sent on it".to_owned()))
    }

    /// Before anything is known to take time.
    fn first(&self) -> Round {
        let federation = self.federation;
        let finish = |at: usize| Ok(self.starts[at].clone()? + self.best(at));
        let unknown = || Err(Unknown(String::new()));
        Round {
            finishes: (0..federation.reactions.len()).map(finish).collect(),
            sendings: federation.connections.iter().map(|one| self.sent_min(one)).collect(),
            works: vec![unknown(); federation.federates.len()],
            waits: Vec::new(),
            arrivals: Vec::new(),
            is_met: Vec::new(),
            cycles: Vec::new(),
        }
    }

    fn round(&self, before: &Round) -> Round {
        let federation = self.federation;
        let passing = |reaction, cause| self.passing(before, reaction, cause);
        let passing: &Passing<'_> = &passing;
        let streams = Streams::new(federation, &self.edges, passing);
        let federates = 0..federation.federates.len();
        let works: Vec<_> = federates.clone().map(|at| self.work(&streams, at)).collect();
        let ends: Vec<_> = federates.clone().map(|at| self.ends(&works, before, at)).collect();
        let edges = self.waiting(&streams, &ends);
        let (waits, cycles) = wait::solve(federation, &self.given(), &edges);
        let mut arrivals: Vec<Figure<Ns>> =
            vec![
                Err(Unknown("its messages have no tags of their own".to_owned()));
                federation.connections.len()
            ];
        for edge in &edges {
            arrivals[edge.connection.index()] = edge.arrival(&waits[edge.from]);
        }
        let sum = |federate: usize, end: &dyn Fn(&Ends) -> Ns| {
            let ends = ends[federate].as_ref().map_err(Clone::clone)?;
            let begin = waits[federate].clone()? + self.wakeup(federate);
            Ok(begin + end(ends) + self.errors[federate].clone()?)
        };
        let finish = |at: usize| {
            let federate = federation.reactions[at].federate.index();
            sum(federate, &|ends| ends.tasks[self.places.position[at]])
        };
        let sending = |at: usize| {
            let connection = &federation.connections[at];
            let sent = sum(connection.from.index(), &|ends| ends.outputs[self.output(at)]);
            match self.cap(connection) {
                Some(cap) => {
                    let cap = cap + self.errors[connection.from.index()].clone()?;
                    Ok(sent.map_or(cap, |sent| sent.min(cap)))
                }
                None => sent,
            }
        };
        Round {
            finishes: (0..federation.reactions.len()).map(finish).collect(),
            sendings: (0..federation.connections.len()).map(sending).collect(),
            is_met: (0..federation.connections.len()).map(|at| self.is_met(&streams, at)).collect(),
            works,
            waits,
            arrivals,
            cycles,
        }
    }

    /// From the tag at which a reaction executes to the one that a physical cause makes of it.
    fn passing(&self, before: &Round, reaction: ReactionId, cause: usize) -> Figure<(Ns, Ns)> {
        let what = &self.federation.reactions[reaction.index()];
        let (least, most, delay) = match &what.causes[cause] {
            Trigger::Reaction { from, delay, .. } => {
                let error = self.errors[what.federate.index()].clone()?;
                let finish = self.starts[from.index()].clone()? + self.best(from.index());
                (finish - error, before.finishes[from.index()].clone()? + error, delay)
            }
            Trigger::Message(id) => {
                let connection = &self.federation.connections[id.index()];
                let (least, most) = self.transit(id.index())?;
                let sent = before.sendings[id.index()].clone()?;
                (self.sent_min(connection)? + least, sent + most, &connection.after)
            }
            _ => return Err(Unknown("nothing causes it".to_owned())),
        };
        let delay = ns(delay.time());
        Ok((least + delay, most.max(least) + delay))
    }

    /// The position of a connection among those of its writer.
    fn output(&self, connection: usize) -> usize {
        let from = self.federation.connections[connection].from;
        let before = &self.federation.connections[..connection];
        before.iter().filter(|one| one.from == from).count()
    }

    fn work(&self, streams: &Streams, federate: usize) -> Figure<Work> {
        let federation = self.federation;
        let members = &self.places.members[federate];
        let mut more = vec![0; members.len()];
        let mut most = 0;
        if self.waits == Waits::Model {
            for (at, connection) in federation.connections.iter().enumerate() {
                if connection.to.index() != federate || connection.physical {
                    continue;
                }
                let needs = |reaction: &usize| {
                    let id = ConnectionId(at as u32);
                    federation.reactions[*reaction].causes.contains(&Trigger::Message(id))
                };
                let Some(first) = members.iter().position(needs) else { continue };
                let wait = match connection.absent_after {
                    None => 0,
                    Some(MaxWait::For(wait)) => ns(wait),
                    Some(MaxWait::Forever) => {
                        let why = format!("it waits for ever for `{}`", connection.name);
                        return Err(Unknown(why));
                    }
                };
                most = most.max(wait);
                more[first..].iter_mut().for_each(|more| *more = wait.max(*more));
            }
        }
        let mut tasks = Vec::new();
        for (at, more) in members.iter().zip(more) {
            let streams = streams.reactions[*at].clone()?;
            tasks.push(Task { worst: self.worst(*at)?, streams, more });
        }
        let outputs = federation.connections.iter().filter(|one| one.from.index() == federate);
        let outputs = outputs.map(|connection| {
            let writers = connection.writers.iter();
            let writers: BTreeSet<_> =
                writers.map(|writer| self.places.position[writer.index()]).collect();
            writers.into_iter().collect()
        });
        Ok(Work { tasks, outputs: outputs.collect(), more: most })
    }

    fn ends(&self, works: &[Figure<Work>], before: &Round, federate: usize) -> Figure<Ends> {
        let work = works[federate].as_ref().map_err(Clone::clone)?;
        if let Some(unknown) = &self.endless[federate] {
            return Err(unknown.clone());
        }
        let name = federate_name(self.federation, FederateId(federate as u32));
        let explain = |unknown: Unknown| Unknown(format!("`{name}`: {unknown}"));
        let Some((cores, others)) = self.others(federate) else {
            return work.ends(None).map_err(explain);
        };
        let other = |other: &usize| self.other(works, before, *other);
        let others = others.iter().map(other).collect::<Figure<Vec<_>>>().map_err(explain)?;
        let completion = |amount: Ns| completion(cores, &others, amount);
        work.ends(Some(&completion)).map_err(explain)
    }

    /// What another federate may have to do in a window, and by how much longer than the window the
    /// one of its tags is.
    fn other(&self, works: &[Figure<Work>], before: &Round, other: usize) -> Figure<(Demand, Ns)> {
        let work = works[other].as_ref().map_err(Clone::clone)?;
        let error = self.errors[other].clone()?;
        let mut behind = error;
        for reaction in &self.places.members[other] {
            behind = behind.max(before.finishes[*reaction].clone()?);
        }
        Ok((Demand::new(work), behind + error))
    }

    /// Who else uses the processors of a federate, if they are fewer than those who do.
    fn others(&self, federate: usize) -> Option<(Ns, Vec<usize>)> {
        let station = self.station(federate)?;
        let cores = usize::from(station.cores?);
        let same = |other: &usize| {
            *other != federate
                && self.federation.federates[*other].station.as_ref() == Some(&station.name)
        };
        let others = (0..self.federation.federates.len()).filter(same).collect::<Vec<_>>();
        (others.len() >= cores).then_some((cores.max(1) as Ns, others))
    }

    /// The latest sending by the deadline, where handlers set nothing and the federate has a
    /// processor of its own.
    fn cap(&self, connection: &Connection) -> Option<Ns> {
        if self.environment.handlers_set || self.others(connection.from.index()).is_some() {
            return None;
        }
        let by_deadline = |writer: &ReactionId| {
            let deadline = self.federation.reactions[writer.index()].deadline?;
            Some(ns(deadline) + self.worst(writer.index()).ok()?)
        };
        // With several writers, others may execute between them.
        match connection.writers.as_slice() {
            [one] => by_deadline(one),
            _ => None,
        }
    }

    /// The logical connections, as what their readers wait for.
    fn waiting(&self, streams: &Streams, ends: &[Figure<Ends>]) -> Vec<Edge> {
        let logical = self.federation.connections.iter().enumerate();
        let logical = logical.filter(|(_, connection)| !connection.physical);
        let edge = |(at, connection): (usize, &Connection)| {
            let (from, to) = (connection.from.index(), connection.to.index());
            let after = ns(connection.after.time());
            let rest = || {
                self.one_by_one(streams, connection)?;
                let (_, transit) = self.transit(at)?;
                Ok(self.errors[from].clone()? + transit - after)
            };
            let weight = || {
                let end = ends[from].as_ref().map_err(Clone::clone)?.outputs[self.output(at)];
                Ok(self.wakeup(from) + end + rest()?)
            };
            Edge {
                connection: ConnectionId(at as u32),
                from,
                to,
                weight: weight(),
                cap: self.cap(connection).and_then(|cap| rest().ok().map(|rest| cap + rest)),
            }
        };
        logical.map(edge).collect()
    }

    /// That no two messages of a connection have one tag. The first would make the tag known, and
    /// the second might be tardy however long the reader waits.
    fn one_by_one(&self, streams: &Streams, connection: &Connection) -> Figure<()> {
        let mut all = BTreeSet::new();
        for writer in &connection.writers {
            all.extend(streams.reactions[writer.index()].as_ref().map_err(Clone::clone)?);
        }
        if connection.after.time() > Span::ZERO && stream::may_coincide(&all) {
            let why = format!("two messages of `{}` may have one tag", connection.name);
            return Err(Unknown(why));
        }
        Ok(())
    }

    /// How long each federate waits, as far as that is given.
    fn given(&self) -> Vec<Wait> {
        let wait = |at: usize| {
            let federate = &self.federation.federates[at];
            let inputs = self.federation.connections.iter();
            let mut inputs = inputs.filter(|one| one.to.index() == at && !one.physical);
            match (self.waits, federate.maxwait) {
                _ if inputs.next().is_none() => Wait::Given(0),
                (Waits::Computed, _) | (_, None) => Wait::Free,
                (Waits::Model, Some(MaxWait::Forever)) => {
                    Wait::Unknown(Unknown(format!("`{}` waits for ever", federate.name)))
                }
                (Waits::Model, Some(MaxWait::For(_))) if self.is_unsafe[at] => {
                    let why = format!("messages to `{}` may be tardy", federate.name);
                    Wait::Unknown(Unknown(why))
                }
                (Waits::Model, Some(MaxWait::For(wait))) => Wait::Given(ns(wait)),
            }
        };
        (0..self.federation.federates.len()).map(wait).collect()
    }

    /// Whether the reader has an event of its own at each tag of a connection, at which it waits
    /// for it: that of a timer, or of its start.
    fn is_met(&self, streams: &Streams, at: usize) -> bool {
        let connection = &self.federation.connections[at];
        if connection.physical {
            return false;
        }
        let own = self.places.members[connection.to.index()].iter();
        let own = own.flat_map(|member| &self.federation.reactions[*member].causes);
        let own: Vec<_> = own.filter_map(stream::own).collect();
        connection.writers.iter().all(|writer| {
            streams.reactions[writer.index()].as_ref().is_ok_and(|streams| {
                let streams = streams.iter().map(|stream| stream.after(connection.after));
                streams.into_iter().all(|stream| own.iter().any(|own| own.contains(&stream)))
            })
        })
    }

    /// Finds waits of the model that are too short. Whether there are new ones.
    fn demote(&mut self, round: &Round) -> bool {
        let mut changes = false;
        for (at, federate) in self.federation.federates.iter().enumerate() {
            let Some(MaxWait::For(wait)) = federate.maxwait else { continue };
            if self.waits == Waits::Computed || self.is_unsafe[at] {
                continue;
            }
            let is_tardy = |(number, connection): (usize, &Connection)| {
                let more = match connection.absent_after {
                    Some(MaxWait::For(more)) if round.is_met[number] => ns(more),
                    _ => 0,
                };
                let arrival = &round.arrivals[number];
                connection.to.index() == at
                    && !connection.physical
                    && arrival.as_ref().is_ok_and(|arrival| *arrival > ns(wait) + more)
            };
            if self.federation.connections.iter().enumerate().any(is_tardy) {
                self.is_unsafe[at] = true;
                changes = true;
            }
        }
        changes
    }

    /// What still grows has no bound.
    fn give_up(&mut self, before: &Round, now: &Round) {
        let why = Unknown("its times and those of others grow with each other".to_owned());
        for (at, reaction) in self.federation.reactions.iter().enumerate() {
            if before.finishes[at] != now.finishes[at] {
                self.endless[reaction.federate.index()].get_or_insert(why.clone());
            }
        }
        for (at, connection) in self.federation.connections.iter().enumerate() {
            if before.sendings[at] != now.sendings[at] {
                self.endless[connection.from.index()].get_or_insert(why.clone());
            }
        }
    }

    fn solved(mut self, round: Round) -> Solved {
        let federation = self.federation;
        self.starts = self.starts(|federate| round.waits[federate].is_ok());
        let mut needs: Vec<Figure<Ns>> = vec![Ok(0); federation.federates.len()];
        for (connection, arrival) in federation.connections.iter().zip(&round.arrivals) {
            let need = &mut needs[connection.to.index()];
            if connection.physical {
                continue;
            }
            *need = match (need.clone(), arrival) {
                (Ok(need), Ok(arrival)) => Ok(need.max(*arrival)),
                (Err(unknown), _) => Err(unknown),
                (Ok(_), Err(unknown)) => Err(unknown.clone()),
            };
        }
        // In a cycle no wait is enough, although each arrival depends on the others only.
        for (need, wait) in needs.iter_mut().zip(&round.waits) {
            if self.waits == Waits::Computed {
                need.clone_from(wait);
            }
        }
        let reactions = 0..federation.reactions.len();
        let reactions = reactions.map(|at| ReactionTimes {
            best: self.best(at),
            worst: self.worst(at),
            start_min: self.starts[at].clone(),
            finish_max: round.finishes[at].clone(),
        });
        let connections = federation.connections.iter().enumerate();
        let connections = connections.map(|(at, connection)| ConnectionTimes {
            sent_min: self.sent_min(connection),
            sent_max: round.sendings[at].clone(),
            transit: self.transit(at),
            arrival: round.arrivals[at].clone(),
            is_met: round.is_met[at],
        });
        Solved {
            reactions: reactions.collect(),
            connections: connections.collect(),
            waits: round.waits,
            needs,
            works: round.works,
            cycles: round.cycles,
            errors: self.errors,
            is_unsafe: self.is_unsafe,
        }
    }
}

/// How long so much work takes beside others. Whoever does not execute waits for processors that
/// all execute others, each of which is one thread: all their work in this time, shared among the
/// processors, is the longest wait.
fn completion(cores: Ns, others: &[(Demand, Ns)], amount: Ns) -> Figure<Ns> {
    // Work of no length waits for its turn as any other.
    let amount = amount.max(1);
    let mut time = amount;
    for _ in 0..STEPS_MAX {
        let taken = |(demand, longer): &(Demand, Ns)| demand.most(time + longer).min(time);
        let taken: Ns = others.iter().map(taken).sum();
        let next = amount + (taken + cores - 1) / cores;
        if next <= time {
            return Ok(next);
        }
        time = next;
        if time > Ns::from(i64::MAX) {
            break;
        }
    }
    Err(Unknown("others may use its processors without end".to_owned()))
}
