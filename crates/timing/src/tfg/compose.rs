//! Systems put together: whether each still has the times that it has alone. The theorem is that
//! composable ones do that have no channel in common (Austad et al. 2023, section 4.1).

use super::{Limits, analyse};
use onbeat_model::graph::{ChannelKind, Graph, Interval, NetworkChannel, NodeKind, Task};
use onbeat_model::timing::{
    Composability, Composition, Course, Joint, Kept, Level, Part, Spoilt, Timing, TimingReport,
};
use std::collections::{BTreeMap, BTreeSet};

/// So many rows of a part that are not as they were are told.
const SPOILT_MAX: usize = 16;

/// Studies systems alone and together. Hosts, channels and resources of the same name are the
/// same, but for those of programs. `networks` are what the plans of several of them have in
/// common: each was planned alone.
///
/// # Errors
/// What two of them describe under one name, and differently.
pub fn compose(
    systems: Vec<(String, Graph)>,
    networks: &[String],
    limits: Limits,
) -> Result<Composition, Vec<String>> {
    let mut union = Union::default();
    let mut parts: Vec<(TimingReport, usize)> = Vec::new();
    for (name, graph) in systems {
        let first = union.graph.tasks.len();
        union.add(parts.len(), &graph);
        parts.push((analyse(&name, graph, Vec::new(), limits, None), first));
    }
    if !union.conflicts.is_empty() {
        return Err(union.conflicts);
    }
    let names: Vec<&str> = parts.iter().map(|(alone, _)| alone.name.as_str()).collect();
    let together = analyse(&names.join(" and "), union.graph, Vec::new(), limits, None);
    let part = |(alone, first): (TimingReport, usize)| part(alone, first, &together, networks);
    let parts = parts.into_iter().map(part).collect();
    Ok(Composition { parts, together })
}

/// A graph of all.
#[derive(Default)]
struct Union {
    graph: Graph,
    conflicts: Vec<String>,
}

impl Union {
    fn add(&mut self, number: usize, graph: &Graph) {
        // Programs are of one system: what has the same name is another one, and so is what is
        // named after it, its fifochannels and locks.
        let earlier: BTreeSet<String> =
            self.graph.tasks.iter().map(|task| task.program.clone()).collect();
        let other_program = |name: &str| format!("{name}#{}", number + 1);
        let own = |name: &mut String| {
            if let Some((program, rest)) = name.split_once('.')
                && earlier.contains(program)
            {
                *name = format!("{}.{rest}", other_program(program));
            }
        };
        let mut hosts = Vec::new();
        for host in &graph.hosts {
            let known = self.graph.hosts.iter().position(|other| other.name == host.name);
            let at = known.unwrap_or(self.graph.hosts.len());
            match known {
                Some(at) if self.graph.hosts[at] != *host => {
                    self.conflicts.push(format!("host `{}`", host.name));
                }
                Some(_) => {}
                None => self.graph.hosts.push(host.clone()),
            }
            hosts.push(at);
        }
        let mut channels = Vec::new();
        for channel in &graph.channels {
            let mut channel = channel.clone();
            if let ChannelKind::Network(NetworkChannel { latencies, .. }) = &mut channel.kind {
                latencies.iter_mut().for_each(|(host, _)| *host = hosts[*host]);
            } else {
                own(&mut channel.name);
            }
            let all = &mut self.graph.channels;
            let at = all.iter().position(|other| other.name == channel.name);
            match at {
                Some(at) if all[at] != channel => {
                    self.conflicts.push(format!("channel `{}`", channel.name));
                }
                Some(_) => {}
                None => all.push(channel),
            }
            channels.push(at.unwrap_or(self.graph.channels.len() - 1));
        }
        let mut resources = Vec::new();
        for mut resource in graph.resources.iter().cloned() {
            own(&mut resource);
            let all = &mut self.graph.resources;
            let at = all.iter().position(|other| *other == resource).unwrap_or(all.len());
            if at == all.len() {
                all.push(resource);
            }
            resources.push(at);
        }
        let places = [hosts, channels, resources];
        let first = self.graph.tasks.len();
        let tasks: Vec<Task> = graph
            .tasks
            .iter()
            .map(|task| {
                let mut moved = moved(task, first, &places);
                if earlier.contains(&task.program) {
                    moved.program = other_program(&task.program);
                }
                moved
            })
            .collect();
        self.graph.tasks.extend(tasks);
    }
}

/// A task behind others, with its hosts, channels and resources at other places.
fn moved(task: &Task, first: usize, [hosts, channels, resources]: &[Vec<usize>; 3]) -> Task {
    let mut task = Task { host: hosts[task.host], ..task.clone() };
    for node in &mut task.nodes {
        match &mut node.kind {
            NodeKind::Write { channel, .. } | NodeKind::Read { channel, .. } => {
                *channel = channels[*channel];
            }
            NodeKind::Run { task } => *task += first,
            NodeKind::Lock(resource) | NodeKind::Take(resource) | NodeKind::Unlock(resource) => {
                *resource = resources[*resource];
            }
            _ => {}
        }
    }
    task
}

/// What became of one system's promises.
fn part(alone: TimingReport, first: usize, together: &TimingReport, networks: &[String]) -> Part {
    let tasks = first..first + alone.graph.tasks.len();
    let mut joints: BTreeSet<Joint> = BTreeSet::new();
    for task in tasks.clone() {
        joints.extend(joined(&together.graph, task, &tasks));
    }
    let is_networked =
        alone.graph.channels.iter().any(|c| matches!(c.kind, ChannelKind::Network(_)));
    let networks = networks.iter().filter(|_| is_networked);
    joints.extend(networks.map(|name| Joint::Network(name.clone())));
    let levels = [(&alone.program, &together.program), (&alone.platform, &together.platform)];
    let mut spoilt = Vec::new();
    for (before, after) in levels {
        let worse = worse((before, after), first);
        let by = |task: usize| {
            let part = component(before, task);
            let all = part.iter().flat_map(|task| joined(&together.graph, first + task, &tasks));
            let is_it = |joint: &Joint| {
                before.level == Level::Platform || matches!(joint, Joint::Channel(_))
            };
            let found: BTreeSet<Joint> = all.filter(is_it).collect();
            found.into_iter().collect::<Vec<_>>()
        };
        spoilt.extend(worse.into_iter().map(|(row, now)| Spoilt {
            level: before.level,
            by: by(before.rows[row].task),
            row,
            now,
        }));
    }
    spoilt.truncate(SPOILT_MAX);
    let is_known = |joint: &Joint| !matches!(joint, Joint::Network(_));
    let is_proven = joints.iter().all(is_known)
        && levels.iter().all(|levels| (0..tasks.len()).all(|task| is_proven(*levels, first, task)));
    let kept = match alone.program.verdict() {
        Composability::NotComposable => Kept::NothingPromised,
        _ if !spoilt.is_empty() => Kept::Broken,
        Composability::Unproven { .. } => Kept::Unproven,
        Composability::Composable if is_proven => Kept::Kept,
        Composability::Composable => Kept::Unproven,
    };
    Part { alone, kept, joints: joints.into_iter().collect(), spoilt }
}

/// The tasks of a task's component.
fn component(timing: &Timing, task: usize) -> Vec<usize> {
    let found = timing.components.iter().find(|one| one.tasks.contains(&task));
    found.map(|one| one.tasks.clone()).unwrap_or_default()
}

/// What a task has in common with others than `ours`.
fn joined(graph: &Graph, task: usize, ours: &std::ops::Range<usize>) -> Vec<Joint> {
    let used = |of: usize| {
        let task = &graph.tasks[of];
        let mut used: BTreeSet<Joint> = BTreeSet::new();
        for node in &task.nodes {
            match node.kind {
                NodeKind::Write { channel, .. } | NodeKind::Read { channel, .. } => {
                    used.insert(Joint::Channel(graph.channels[channel].name.clone()));
                }
                NodeKind::Lock(resource) | NodeKind::Take(resource) => {
                    used.insert(Joint::Resource(graph.resources[resource].clone()));
                }
                _ => {}
            }
        }
        let host = &graph.hosts[task.host];
        used.extend(host.cores.map(|_| Joint::Processors(host.name.clone())));
        used
    };
    let mine = used(task);
    let others = (0..graph.tasks.len()).filter(|other| !ours.contains(other));
    let others: BTreeSet<Joint> = others.flat_map(used).collect();
    mine.intersection(&others).cloned().collect()
}

/// A visit, apart from its table.
type Key<'a> = (usize, usize, &'a [u32]);

/// The rows whose times are not within those that they have alone, each node's first, and the
/// arrivals and releases that they have now.
fn worse((before, after): (&Timing, &Timing), first: usize) -> Vec<(usize, (Interval, Interval))> {
    let key = |row: &onbeat_model::timing::Row, first: usize| (row.task + first, row.node);
    let now: BTreeMap<Key<'_>, (Interval, Interval)> = after
        .rows
        .iter()
        .map(|row| ((row.task, row.node, &row.iteration[..]), (row.arrival, row.release)))
        .collect();
    let mut found = BTreeMap::new();
    for (at, row) in before.rows.iter().enumerate() {
        let (task, node) = key(row, first);
        let Some(times) = now.get(&(task, node, &row.iteration[..])) else { continue };
        if !(is_within(times.0, row.arrival) && is_within(times.1, row.release)) {
            found.entry((task, node)).or_insert((at, *times));
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_unstable_by_key(|(at, (_, release))| (release.lo, *at));
    found
}

fn is_within(now: Interval, promised: Interval) -> bool {
    let ends = promised.hi.is_none_or(|most| now.hi.is_some_and(|hi| hi <= most));
    now.lo >= promised.lo && ends
}

/// Whether all rounds that a task ever has are those of its part of the tables: it continues as it
/// does alone, after the same rounds and the same time, and all rounds until both do are there.
fn is_proven((before, after): (&Timing, &Timing), first: usize, task: usize) -> bool {
    let again = |timing: &Timing, task: usize| {
        let one = timing.components.iter().find(|one| one.tasks.contains(&task))?;
        let place = one.tasks.iter().position(|of| *of == task)?;
        match one.course {
            Course::Open { .. } => None,
            _ => Some(one.course.again(place)),
        }
    };
    let last = |timing: &Timing, task: usize| {
        let rows = timing.rows.iter().filter(|row| row.task == task);
        rows.filter_map(|row| row.iteration.first()).max().copied().unwrap_or(0)
    };
    let count =
        |timing: &Timing, task: usize| timing.rows.iter().filter(|row| row.task == task).count();
    match (again(before, task), again(after, first + task)) {
        (Some(None), Some(None)) => count(before, task) == count(after, first + task),
        (Some(Some((a, every, shift))), Some(Some((b, again, then)))) => {
            let needed = a.max(b) + every - 1;
            (every, shift) == (again, then)
                && last(before, task).min(last(after, first + task)) >= needed
        }
        _ => false,
    }
}
