//! Schedulability of hosts: response times under fixed priorities, processor demand under EDF;
//! `docs/schedulability.md`.
//!
//! [`fixed`], [`edf`], [`sensitivity`] and [`assignment`] are numbers only ([`Load`]); [`analyse`]
//! and [`interference`] make them from a graph.

mod activation;
pub mod assignment;
mod cycles;
mod demand;
pub mod edf;
mod extraction;
pub mod fixed;
mod load;
pub mod sensitivity;

pub use load::{EDF, Load, Protocol, Section, Share};

use assignment::{Group, PRIORITY_TOP};
use cycles::Requests;
use demand::{Demand, Tasks};
use load::{Transaction, least, ns, span};
use onbeat_model::graph::{Graph, NodeKind, Policy};
use onbeat_model::time::Span;
use onbeat_model::timing::{LockCycle, Schedule, ScheduledTask};
use std::cmp::Reverse;

/// Of so many consecutive jobs of a firm task it is said how many may miss their deadlines.
const WINDOWS: [u32; 4] = [5, 10, 20, 100];

/// So often response times may grow by what comes late for others; what still does has no bound
/// then.
const ITERATIONS_MAX: usize = 200;

/// What a task may have to wait for on its processor while it executes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interference {
    /// What less urgent tasks, or other processors, hold, and what the task held itself.
    blocking: i128,
    /// More urgent tasks, and those as urgent.
    others: Vec<Transaction>,
    /// Under EDF, of a task that never suspends itself: the longest execution, and the response
    /// time.
    whole: Option<(i128, i128)>,
    /// Whether this is unknown.
    is_unbounded: bool,
}

impl Interference {
    /// The longest time from an instant at which the task is ready, that is released or continuing
    /// after a wait (its wake-up delay is over by then), or anywhere in its work, to when it has
    /// done so much more work. None if there is no bound.
    ///
    /// It holds however often the task was late or waited before, if
    /// - the task does not wait for anything but the processor and locks in between: each time that
    ///   it does, the count begins again;
    /// - the processor always continues with the most urgent task that is ready, in the order that
    ///   [`analyse`] states;
    /// - the other tasks keep to their graphs: execution times, and least times between releases;
    /// - under EDF, of a task that does not suspend itself, all belongs to one job and is at most
    ///   what its longest execution leaves. (A job that has done *w* was released *w* ago at least,
    ///   so its response time less what would still be to do holds from there as well.) Of others
    ///   only what would hold if all were more urgent is said.
    ///
    /// It does not decrease with `work`, and is `work` itself where nothing interferes.
    pub fn completion(&self, work: Span) -> Option<Span> {
        if work <= Span::ZERO {
            return Some(Span::ZERO);
        }
        if self.is_unbounded {
            return None;
        }
        let alone = self.blocking + ns(work);
        let others =
            |time| self.others.iter().map(|transaction| transaction.work(time)).sum::<i128>();
        let fixed = least(alone, |time| Some(alone + others(time)));
        // The rest of the longest execution is still to be done at the end.
        let whole = self.whole.filter(|(wcet, _)| ns(work) <= *wcet);
        let whole = whole.map(|(wcet, response)| response - (wcet - ns(work)));
        fixed.into_iter().chain(whole).min().map(span)
    }
}

/// Whether all loads meet their deadlines.
pub fn is_feasible(loads: &[Load], protocol: Protocol) -> bool {
    let is_edf = |load: &Load| load.priority == EDF;
    let edf = || (0..loads.len()).filter(|at| is_edf(&loads[*at]));
    let is_in_time = || edf::is_feasible(loads, protocol);
    fixed::is_feasible(loads, protocol)
        && (is_in_time() || edf().all(|at| fixed::is_met(loads, at, protocol)))
}

/// From the nominal release of a job of `loads[index]` to its end at most; none if there is no
/// bound, or none was found.
///
/// # Panics
/// When there is no such load.
pub fn response(loads: &[Load], index: usize, protocol: Protocol) -> Option<Span> {
    response_by(loads, index, protocol, edf::response)
}

/// Under EDF by `by_deadline`.
fn response_by(
    loads: &[Load],
    index: usize,
    protocol: Protocol,
    by_deadline: fn(&[Load], usize, Protocol) -> Option<Span>,
) -> Option<Span> {
    // Whatever the deadlines are, nobody is less urgent than if all others are more urgent.
    let fixed = fixed::response(loads, index, protocol);
    if loads[index].priority != EDF {
        return fixed;
    }
    fixed.into_iter().chain(by_deadline(loads, index, protocol)).min()
}

/// A processor and what it has to do.
struct Processor {
    host: usize,
    core: u16,
    tasks: Vec<Placed>,
    /// All their loads.
    loads: Vec<Load>,
    /// Whether the tasks share it.
    is_shared: bool,
}

/// A task on its processor.
struct Placed {
    task: usize,
    is_assigned: bool,
    is_firm: bool,
    /// Its loads are those from the first to before the second.
    loads: (usize, usize),
    period: Option<Span>,
    deadline: Option<Span>,
    /// How long it may wait for what others on other processors hold; none if there is no bound,
    /// and where tasks may wait for each other's locks for ever.
    remote: Option<i128>,
}

/// The processors' schedules: of hosts with a number of processors, and of all tasks with execution
/// times elsewhere. Waiting for messages is not counted in response times. Priorities and
/// processors that nothing states are proposals ([`assignment`]).
pub fn analyse(graph: &Graph) -> Vec<Schedule> {
    processors(graph).iter().filter_map(Processor::schedule).collect()
}

/// What each task may have to wait for on its processor, under the priorities of [`analyse`].
pub fn interference(graph: &Graph) -> Vec<Interference> {
    let mut all = vec![Interference::default(); graph.tasks.len()];
    for processor in processors(graph) {
        for placed in &processor.tasks {
            all[placed.task] = processor.interference(placed);
        }
    }
    all
}

/// Tasks that may wait for each other's locks for ever. None of them, and no task that requests
/// what they hold, has a bound.
pub fn lock_cycles(graph: &Graph) -> Vec<LockCycle> {
    Requests::new(graph, &Tasks::new(graph).extractions).cycles()
}

/// Every task on its processor. Who writes messages late makes others come late, and longer for
/// those that they delay: response times grow from none at all until nothing changes.
fn processors(graph: &Graph) -> Vec<Processor> {
    let tasks = Tasks::new(graph);
    let mut ends: Vec<Option<i128>> = vec![Some(0); graph.tasks.len()];
    let mut demands = tasks.demands(&ends);
    let mut all = place(graph, &demands);
    let requests = Requests::new(graph, &tasks.extractions);
    let stuck = requests.stuck();
    for placed in all.iter_mut().flat_map(|processor| &mut processor.tasks) {
        placed.remote = placed.remote.filter(|_| !stuck.contains(&placed.task));
    }
    for round in 0.. {
        let mut is_changed = false;
        for (processor, placed) in all.iter().flat_map(|p| p.tasks.iter().map(move |t| (p, t))) {
            let (task, before) = (placed.task, ends[placed.task]);
            let end = || tasks.end(task, &demands[task], processor.end(placed)?);
            let next = before.and_then(|before| Some(end()?.max(before)));
            if next != before {
                ends[task] = next.filter(|_| round < ITERATIONS_MAX);
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
        demands = tasks.demands(&ends);
        all.iter_mut().for_each(|processor| processor.reload(&demands));
    }
    all
}

/// Puts every task on a processor.
fn place(graph: &Graph, demands: &[Demand]) -> Vec<Processor> {
    let mut all = Vec::new();
    for (host, it) in graph.hosts.iter().enumerate() {
        let here: Vec<usize> =
            (0..graph.tasks.len()).filter(|task| graph.tasks[*task].host == host).collect();
        let mut loads: Vec<Load> = Vec::new();
        let mut owned: Vec<(usize, usize)> = Vec::new();
        for task in &here {
            let mine = demands[*task].loads(*task, priority(graph, *task));
            owned.push((loads.len(), loads.len() + mine.len()));
            loads.extend(mine);
        }
        let Some(cores) = it.cores.map(|cores| cores.max(1)) else {
            all.extend(apart(demands, host, &here, &loads, &owned));
            continue;
        };
        let is_open = |task: usize| is_open(graph, task);
        let open = here.iter().zip(&owned);
        let open: Vec<bool> = open
            .flat_map(|(task, (from, to))| std::iter::repeat_n(is_open(*task), to - from))
            .collect();
        let groups = groups(graph, &here, &owned, &loads);
        let places = assignment::processors(&loads, &open, &groups, cores);
        let place = |at: usize| {
            let has_it = |group: &Group| group.loads.contains(&owned[at].0);
            groups.iter().position(has_it).map_or(0, |group| places[group])
        };
        for core in 0..cores {
            let mine: Vec<usize> = (0..here.len()).filter(|at| place(*at) == core).collect();
            let mut processor =
                Processor { host, core, tasks: Vec::new(), loads: Vec::new(), is_shared: true };
            let mut free = Vec::new();
            for at in mine {
                let (from, to) = owned[at];
                let is_chosen = cores > 1 && graph.tasks[here[at]].cores.len() != 1;
                let is_elsewhere = |other| {
                    let owner = owned.iter().position(|(a, b)| (*a..*b).contains(&other));
                    owner.is_some_and(|other| place(other) != core)
                };
                let remote = (!is_apart(&loads, (from, to), is_elsewhere)).then_some(0);
                let is_assigned = is_open(here[at]) || is_chosen;
                processor.add(here[at], &demands[here[at]], &loads[from..to], is_assigned, remote);
                free.extend_from_slice(&open[from..to]);
            }
            assignment::priorities(&mut processor.loads, &free, Protocol::default());
            processor.make_alike(graph);
            all.push(processor);
        }
    }
    all
}

/// Whether one of some loads locks what another one does that is elsewhere.
fn is_apart(
    loads: &[Load],
    (from, to): (usize, usize),
    is_elsewhere: impl Fn(usize) -> bool,
) -> bool {
    let locks = |load: &Load, resource: &usize| {
        load.sections.iter().any(|section| section.resources.contains(resource))
    };
    let mine = loads[from..to].iter().flat_map(|load| &load.sections);
    let mut mine = mine.flat_map(|section| &section.resources);
    let others = || (0..loads.len()).filter(|at| is_elsewhere(*at));
    mine.any(|resource| others().any(|at| locks(&loads[at], resource)))
}

/// The tasks of a host where each has a processor to itself. A lock waits for each other task that
/// has it, once; if one of those may itself wait for another lock, there is no bound.
fn apart(
    demands: &[Demand],
    host: usize,
    here: &[usize],
    loads: &[Load],
    owned: &[(usize, usize)],
) -> Vec<Processor> {
    let mut all = Vec::new();
    for (at, task) in here.iter().enumerate() {
        let (from, to) = owned[at];
        let is_other = |other: &usize| !(from..to).contains(other);
        let sections = |at: usize| loads[at].sections.iter();
        let mut remote = Some(0_i128);
        for mine in loads[from..from + 1].iter().flat_map(|load| &load.sections) {
            let is_it = |s: &&Section| s.resources.iter().any(|r| mine.resources.contains(r));
            let others = (0..here.len()).filter(|other| is_other(&owned[*other].0));
            let is_nested = |s: &Section| mine.resources.len() > 1 || s.resources.len() > 1;
            for other in others {
                let relevant: Vec<_> = sections(owned[other].0).filter(is_it).collect();
                let longest = relevant.iter().map(|s| ns(s.length)).max().unwrap_or(0);
                let is_flat = !relevant.iter().any(|s| is_nested(s));
                remote = remote.filter(|_| is_flat).map(|remote| remote + longest);
            }
        }
        let remote = remote.map(|remote| remote.saturating_mul(demands[*task].locks));
        let core = u16::try_from(at).unwrap_or(u16::MAX);
        let mut processor =
            Processor { host, core, tasks: Vec::new(), loads: Vec::new(), is_shared: false };
        processor.add(*task, &demands[*task], &loads[from..to], false, remote);
        all.push(processor);
    }
    all
}

/// Whether nothing states a task's priority.
fn is_open(graph: &Graph, task: usize) -> bool {
    let task = &graph.tasks[task];
    task.priority.is_none() && task.policy == Policy::Fixed
}

/// The priority of a task as it is stated, or as Timed C's run time makes it: under RM and DM the
/// program's tasks are ranked by their shortest period or deadline, equal ones alike.
fn priority(graph: &Graph, task: usize) -> u32 {
    let me = &graph.tasks[task];
    if let Some(priority) = me.priority {
        return u32::from(priority);
    }
    let by_deadline = match me.policy {
        Policy::Edf => return EDF,
        Policy::Fixed => return 0,
        Policy::RateMonotonic => false,
        Policy::DeadlineMonotonic => true,
    };
    // What the sources state, whether it repeats or not.
    let shortest = |at: usize, by_deadline: bool| {
        let stated = graph.tasks[at].nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Point { deadline, .. } if by_deadline => deadline.as_ref()?.value(&[]),
            NodeKind::Point { period, .. } => period.value(&[]),
            _ => None,
        });
        stated.filter(|ns| *ns > 0).min().map(Span::from_ns)
    };
    let key = |at: usize| {
        let deadline = shortest(at, true).filter(|_| by_deadline);
        let key = graph.tasks[at].separation.or(deadline).or_else(|| shortest(at, false));
        key.unwrap_or(Span::MAX)
    };
    let same = (0..graph.tasks.len()).filter(|at| {
        let other = &graph.tasks[*at];
        other.program == me.program && other.host == me.host
    });
    let mut before: Vec<Span> = same.map(key).filter(|other| *other < key(task)).collect();
    before.sort_unstable();
    before.dedup();
    let ahead = u32::try_from(before.len()).unwrap_or(u32::MAX);
    PRIORITY_TOP.saturating_sub(ahead).max(1)
}

/// Tasks that lock the same stay together, where what is stated allows it.
fn groups(graph: &Graph, here: &[usize], owned: &[(usize, usize)], loads: &[Load]) -> Vec<Group> {
    let resources = |at: usize| -> Vec<usize> {
        let mine = loads[owned[at].0..owned[at].1].iter().flat_map(|load| &load.sections);
        mine.flat_map(|section| section.resources.iter().copied()).collect()
    };
    let mut all: Vec<(Group, Vec<usize>)> = Vec::new();
    for (at, task) in here.iter().enumerate() {
        let stated = &graph.tasks[*task].cores;
        let mut group =
            Group { loads: (owned[at].0..owned[at].1).collect(), cores: stated.clone() };
        let mut locked = resources(at);
        let (near, far) = all.into_iter().partition(|(other, theirs): &(Group, Vec<usize>)| {
            theirs.iter().any(|r| locked.contains(r))
                && common(&other.cores, &group.cores).is_some()
        });
        all = far;
        let near: Vec<(Group, Vec<usize>)> = near;
        for (other, theirs) in near {
            let Some(cores) = common(&other.cores, &group.cores) else {
                all.push((other, theirs));
                continue;
            };
            group.loads.extend(other.loads);
            group.cores = cores;
            locked.extend(theirs);
        }
        all.push((group, locked));
    }
    all.into_iter().map(|(group, _)| group).collect()
}

/// The processors that both may use, if there are any; an empty list is any.
fn common(a: &[u16], b: &[u16]) -> Option<Vec<u16>> {
    if a.is_empty() || b.is_empty() {
        return Some([a, b].concat());
    }
    let both: Vec<u16> = a.iter().copied().filter(|core| b.contains(core)).collect();
    (!both.is_empty()).then_some(both)
}

impl Processor {
    /// Puts a task on it.
    fn add(
        &mut self,
        task: usize,
        demand: &Demand,
        loads: &[Load],
        is_assigned: bool,
        remote: Option<i128>,
    ) {
        let from = self.loads.len();
        self.loads.extend_from_slice(loads);
        self.tasks.push(Placed {
            task,
            is_assigned,
            is_firm: demand.is_firm,
            loads: (from, self.loads.len()),
            period: demand.separation(),
            deadline: demand.deadline(),
            remote,
        });
    }

    /// Tasks of one function have one priority, where none is stated: the run cannot tell them
    /// apart.
    fn make_alike(&mut self, graph: &Graph) {
        let function = |placed: &Placed| {
            let task = &graph.tasks[placed.task];
            (task.program.as_str(), task.name.split('#').next())
        };
        let first = |loads: &[Load], at: &Placed| loads.get(at.loads.0).map(|load| load.priority);
        let open: Vec<&Placed> =
            self.tasks.iter().filter(|placed| is_open(graph, placed.task)).collect();
        for placed in &open {
            let same = open.iter().filter(|other| function(other) == function(placed));
            let least = same.filter_map(|other| first(&self.loads, other)).min();
            let (from, to) = placed.loads;
            for load in &mut self.loads[from..to] {
                load.priority = least.unwrap_or(load.priority);
            }
        }
    }

    /// Takes over what has changed but for who is where, and how urgent.
    fn reload(&mut self, demands: &[Demand]) {
        for placed in &self.tasks {
            let (from, to) = placed.loads;
            let priority = self.loads.get(from).map_or(0, |load| load.priority);
            let loads = demands[placed.task].loads(placed.task, priority);
            self.loads[from..to].clone_from_slice(&loads);
        }
    }

    /// From the nominal release of any job of a task to its end.
    fn end(&self, placed: &Placed) -> Option<i128> {
        let (from, to) = placed.loads;
        let one = |at| response(&self.loads, at, Protocol::default()).map(ns);
        let all: Option<Vec<i128>> = (from..to).map(one).collect();
        Some(all?.into_iter().max().unwrap_or(0) + placed.remote?)
    }

    fn interference(&self, placed: &Placed) -> Interference {
        let first = placed.loads.0;
        let Some(remote) = placed.remote else {
            return Interference { is_unbounded: true, ..Interference::default() };
        };
        if !self.is_shared {
            return Interference { blocking: remote, ..Interference::default() };
        }
        let me = &self.loads[first];
        let is_rival = |at: usize| {
            let other = &self.loads[at];
            other.priority >= me.priority && !(placed.loads.0..placed.loads.1).contains(&at)
        };
        let rivals = (0..self.loads.len()).filter(|at| is_rival(*at)).map(|at| &self.loads[at]);
        let protocol = Protocol::default();
        let held = fixed::blocked(&self.loads, first, protocol) + fixed::own(&self.loads, first);
        let is_whole = me.priority == EDF && me.suspensions == 0 && placed.loads.1 == first + 1;
        let response = edf::response(&self.loads, first, protocol).filter(|_| is_whole);
        Interference {
            blocking: held,
            is_unbounded: Share::of(rivals).is_full(),
            others: Transaction::all(&self.loads, is_rival),
            // It may have been released as early as it nominally is.
            whole: response.map(|response| (ns(me.wcet), ns(response))),
        }
    }

    fn schedule(&self) -> Option<Schedule> {
        let is_idle = |placed: &&Placed| {
            let loads = &self.loads[placed.loads.0..placed.loads.1];
            loads.iter().all(|load| load.wcet == Span::ZERO)
        };
        let mut tasks: Vec<&Placed> = self.tasks.iter().collect();
        tasks.retain(|placed| {
            !is_idle(placed) || self.is_shared && placed.deadline.or(placed.period).is_some()
        });
        if tasks.is_empty() {
            return None;
        }
        let priority = |placed: &Placed| self.loads[placed.loads.0].priority;
        let by_edf = |placed: &Placed| placed.deadline.filter(|_| priority(placed) == EDF);
        tasks.sort_by_key(|placed| (Reverse(priority(placed)), by_edf(placed)));
        Some(Schedule {
            host: self.host,
            core: self.core,
            tasks: tasks.iter().map(|placed| self.scheduled(placed)).collect(),
            utilisation_ppm: self.is_limited().then(|| Share::of(&self.loads).ppm()),
            scaling_ppm: self.scaling(),
        })
    }

    /// Whether it is known how long its tasks compute, and how often at most.
    fn is_limited(&self) -> bool {
        let is_often = |period: Span| period <= Span::from_ns(1);
        let limited = |load: &Load| load.wcet < Span::MAX && !load.period.is_some_and(is_often);
        self.loads.iter().all(|load| load.wcet == Span::ZERO || limited(load))
    }

    /// None of its tasks that wait for other processors is ever in time for certain.
    fn scaling(&self) -> Option<u64> {
        let is_lost = |placed: &Placed| placed.remote.is_none() && placed.deadline.is_some();
        if self.tasks.iter().any(is_lost) {
            return Some(0);
        }
        sensitivity::scaling(&self.loads, Protocol::default(), |_| true)
    }

    fn scheduled(&self, placed: &Placed) -> ScheduledTask {
        let protocol = Protocol::default();
        let (from, to) = placed.loads;
        let is_lost = placed.remote.is_none();
        let remote = placed.remote.unwrap_or(0);
        let one = |at: usize, by_deadline| {
            let response = response_by(&self.loads, at, protocol, by_deadline);
            Some(span(ns(response.filter(|_| !is_lost)?) + remote))
        };
        let urgent: Vec<_> = (from..to).map(|at| one(at, edf::response_of_urgent)).collect();
        let slack = |at: &usize| Some(self.loads[*at].deadline? - urgent[*at - from]?);
        let is_late = |at: &usize| {
            self.loads[*at].deadline.is_some() && slack(at).is_none_or(|left| left < Span::ZERO)
        };
        // The job that has the least time left; who has nothing to do is no matter if in time.
        let left = |at: &usize| {
            let is_idle = self.loads[*at].wcet == Span::ZERO && !is_late(at);
            (is_idle, self.loads[*at].deadline.is_none(), slack(at))
        };
        let least = (from..to).min_by_key(left).unwrap_or(from);
        let responses = (from..to).map(|at| one(at, edf::response));
        let response = responses.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten();
        let is_late = is_late(&least);
        let is_counted = is_late && placed.is_firm && !is_lost && to == from + 1;
        let windows = WINDOWS.iter().filter(|_| is_counted);
        let me = &self.loads[from];
        let shown = me.priority != EDF && me.priority != 0;
        let wcet = (from..to).map(|at| self.loads[at].wcet).max().unwrap_or_default();
        ScheduledTask {
            task: placed.task,
            priority: u8::try_from(me.priority).ok().filter(|_| shown),
            is_assigned: placed.is_assigned,
            period: placed.period,
            deadline: self.loads[least].deadline,
            wcet,
            response,
            slack: slack(&least),
            misses: windows
                .map(|k| (sensitivity::misses(&self.loads, from, *k, protocol), *k))
                .collect(),
        }
    }
}
