//! Which messages meet in the network: of tasks that are joined by channels the table says how far
//! apart they write. When others begin is taken to be unknown, whatever the table says.

use super::chain::FAR;
use super::unroll::Unroller;
use onbeat_bounds::{ChannelSet, coincidence, longest_run};
use onbeat_model::graph::{ChannelKind, Graph, Interval, NodeKind};
use onbeat_model::plan::Plan;
use onbeat_model::system::{ChannelId, System};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::timing::{Chain, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// Messages are looked at that are no further apart.
const WINDOW: Span = Span::from_ms(50);
/// Tables are unrolled to no more rows.
const ROWS: usize = 50_000;
/// So many choices are looked at for each channel.
const CHOICES: usize = 256;

/// The graph, of which the system's channels are the first, with latencies of chains' channels for
/// messages that meet no others than the table lets them.
pub(super) fn closer(
    (system, plan): (&System, &Plan),
    graph: &Graph,
    timing: &Timing,
    chains: &[Chain],
) -> Graph {
    let parts = parts(graph);
    let captures: Vec<_> = parts.iter().map(|part| captures(system, graph, timing, part)).collect();
    let mut closer = graph.clone();
    let wanted: BTreeSet<usize> = chains.iter().flat_map(|chain| chain.channels.clone()).collect();
    coincidence(system, plan, |coincidence| {
        for channel in wanted {
            let id = ChannelId(channel as u32);
            let ChannelKind::Network(network) = &mut closer.channels[channel].kind else {
                continue;
            };
            let listeners = &system.channel(id).listeners;
            for ((_, latency), to) in network.latencies.iter_mut().zip(listeners) {
                let choices = |window, near: &ChannelSet| choices(&captures, id, window, near);
                let saved = coincidence.saved(id, *to, choices).unwrap_or_default();
                latency.hi = latency.hi.map(|hi| (hi - saved).max(latency.lo));
            }
        }
    });
    closer
}

/// What joins tasks: a channel, or an lvchannel of a program.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Joint<'a> {
    Channel(usize),
    Latest(&'a str, &'a str),
}

/// Tasks that are joined by channels: that one task started them does not join them.
fn parts(graph: &Graph) -> Vec<BTreeSet<usize>> {
    let mut parts: Vec<(BTreeSet<usize>, BTreeSet<Joint<'_>>)> = Vec::new();
    for (number, task) in graph.tasks.iter().enumerate() {
        let ends = task.nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Read { channel, .. } | NodeKind::Write { channel, .. } => {
                Some(Joint::Channel(channel))
            }
            _ => None,
        });
        let latest = task.latest.iter();
        let latest = latest.map(|access| Joint::Latest(&task.program, &access.variable));
        let mut part = (BTreeSet::from([number]), ends.chain(latest).collect());
        let (joined, others): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|(_, joints)| !joints.is_disjoint(&part.1));
        parts = others;
        for (tasks, joints) in joined {
            part.0.extend(tasks);
            part.1.extend(joints);
        }
        parts.push(part);
    }
    parts.into_iter().map(|(tasks, _)| tasks).collect()
}

/// When a part's tasks may capture messages, in true time; those of channels of which that is
/// known.
#[derive(Default)]
struct Captures(BTreeMap<ChannelId, Vec<Interval>>);

fn captures(system: &System, graph: &Graph, timing: &Timing, part: &BTreeSet<usize>) -> Captures {
    let wanted: Vec<bool> = (0..graph.tasks.len()).map(|task| part.contains(&task)).collect();
    let mut found = Captures::default();
    let Some(unroller) = Unroller::new(graph, timing, &wanted) else { return found };
    let until = match unroller.shift > Span::ZERO {
        true => unroller.steady + unroller.shift * 2 + WINDOW * 2,
        false => FAR,
    };
    if unroller.shift > Span::ZERO && unroller.count(until) > ROWS {
        return found;
    }
    let writes = |task: &usize| {
        graph.tasks[*task].nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Write { channel, .. } if channel < system.channels.len() => Some(channel),
            _ => None,
        })
    };
    let written: BTreeSet<usize> = part.iter().flat_map(writes).collect();
    found.0.extend(written.iter().map(|channel| (ChannelId(*channel as u32), Vec::new())));
    let mut unknown = BTreeSet::new();
    for row in unroller.until(until).rows {
        let task = &graph.tasks[row.task];
        let node = &task.nodes[row.node];
        let NodeKind::Write { channel, waits } = node.kind else { continue };
        let id = ChannelId(channel as u32);
        let Some(captures) = found.0.get_mut(&id) else { continue };
        let ChannelKind::Network(network) = &graph.channels[channel].kind else { continue };
        // Of those that are aborted while they wait for the fixed delay there is no release.
        let Some(hi) = row.release.hi.filter(|_| !waits || node.guard.is_none()) else {
            unknown.insert(id);
            continue;
        };
        let after = if waits { network.fixed_delay } else { Span::ZERO };
        let error = error(system, graph.hosts[task.host].start, id);
        let (lo, hi) = (row.arrival.lo, (hi - after).max(row.arrival.lo));
        captures.push(Interval::between(lo - error.1, hi - error.0));
    }
    unknown.iter().for_each(|id| {
        found.0.remove(id);
    });
    found
}

/// By how much the clock of a channel's talker is ahead, from and to, when it read `start` at the
/// begin.
fn error(system: &System, start: Span, id: ChannelId) -> (Span, Span) {
    let clock = &system.node(system.channel(id).talker).clock;
    let end = longest_run(system);
    let last = (clock.read(NetTime::ZERO + end) - SyncedTime::ZERO) - end;
    let most = clock.wander * 2 + Span::from_ns(2);
    (start.min(last) - most, start.max(last) + most)
}

/// Those of the channels near one that may all have captured messages within a time in which it has
/// captured one.
fn choices(
    captures: &[Captures],
    id: ChannelId,
    window: Span,
    near: &ChannelSet,
) -> Option<Vec<ChannelSet>> {
    if window > WINDOW {
        return None;
    }
    let wanted: ChannelSet = near.iter().copied().chain([id]).collect();
    let known = |other: &ChannelId| captures.iter().any(|part| part.0.contains_key(other));
    let always: ChannelSet = near.iter().filter(|other| !known(other)).copied().collect();
    let mut all = vec![always];
    for part in captures {
        let own = part.0.contains_key(&id);
        let sets = part.together(window, &wanted);
        let sets = sets.into_iter().filter(|set| !own || set.contains(&id));
        let others = |set: ChannelSet| set.into_iter().filter(|other| *other != id).collect();
        let mut sets = largest(sets.map(others).collect());
        if sets.is_empty() {
            continue;
        }
        if all.len() * sets.len() > CHOICES {
            sets = vec![part.0.keys().filter(|other| near.contains(other)).copied().collect()];
        }
        let with = |one: &ChannelSet| sets.iter().map(|set| one | set).collect::<Vec<ChannelSet>>();
        all = all.iter().flat_map(with).collect();
    }
    Some(largest(all))
}

/// Without those that are within others.
fn largest(sets: Vec<ChannelSet>) -> Vec<ChannelSet> {
    let sets: BTreeSet<ChannelSet> = sets.into_iter().collect();
    let is_within =
        |set: &ChannelSet| sets.iter().any(|other| other != set && set.is_subset(other));
    sets.iter().filter(|set| !is_within(set)).cloned().collect()
}

impl Captures {
    /// Which of the wanted channels may capture messages within one window, all of them.
    fn together(&self, window: Span, wanted: &ChannelSet) -> Vec<ChannelSet> {
        let mut events: Vec<(Span, bool, ChannelId)> = Vec::new();
        for (id, captures) in self.0.iter().filter(|(id, _)| wanted.contains(id)) {
            for Interval { lo, hi } in captures {
                events.push((*lo, false, *id));
                events.push((hi.unwrap_or(FAR) + window, true, *id));
            }
        }
        events.sort_unstable();
        let (mut now, mut sets) = (BTreeMap::<ChannelId, u32>::new(), BTreeSet::new());
        let mut has_grown = false;
        for (_, is_end, id) in events {
            if !is_end {
                *now.entry(id).or_default() += 1;
                has_grown = true;
                continue;
            }
            if has_grown {
                sets.insert(now.keys().copied().collect());
                has_grown = false;
            }
            if let Some(count) = now.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    now.remove(&id);
                }
            }
        }
        sets.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(captures: &[(u32, &[(i64, i64)])]) -> Captures {
        let interval =
            |(lo, hi): &(i64, i64)| Interval::between(Span::from_us(*lo), Span::from_us(*hi));
        let all = captures.iter().map(|(id, all)| (ChannelId(*id), all.iter().map(interval)));
        Captures(all.map(|(id, all)| (id, all.collect())).collect())
    }

    fn set(ids: &[u32]) -> ChannelSet {
        ids.iter().map(|id| ChannelId(*id)).collect()
    }

    fn choices_of_0(
        captures: &[Captures],
        window_us: i64,
        near: &[u32],
    ) -> Option<Vec<ChannelSet>> {
        choices(captures, ChannelId(0), Span::from_us(window_us), &set(near))
    }

    #[test]
    fn channels_that_are_never_captured_within_a_window_do_not_meet() {
        let captures =
            [part(&[(0, &[(0, 10)]), (1, &[(100, 110), (400, 410)]), (2, &[(200, 210)])])];
        assert_eq!(choices_of_0(&captures, 89, &[1, 2]), Some(vec![set(&[])]));
        assert_eq!(choices_of_0(&captures, 90, &[1, 2]), Some(vec![set(&[1])]));
        assert_eq!(choices_of_0(&captures, 190, &[1, 2]), Some(vec![set(&[1, 2])]));
        assert_eq!(choices_of_0(&captures, 190, &[2]), Some(vec![set(&[2])]));
    }

    #[test]
    fn of_others_each_window_is_a_choice_and_what_is_unknown_is_always_there() {
        let own = part(&[(0, &[(0, 0)]), (1, &[(500, 500)])]);
        let other = part(&[(2, &[(0, 0)]), (3, &[(300, 300)]), (4, &[(350, 350)])]);
        let choices = choices_of_0(&[own, other], 100, &[1, 2, 3, 4, 5]);
        assert_eq!(choices, Some(vec![set(&[2, 5]), set(&[3, 4, 5])]));
    }

    #[test]
    fn who_never_writes_is_never_there_and_too_long_windows_say_nothing() {
        let other = part(&[(1, &[]), (2, &[(0, 0)])]);
        let own = part(&[(0, &[(0, 0)])]);
        assert_eq!(choices_of_0(&[own, other], 100, &[1, 2]), Some(vec![set(&[2])]));
        assert_eq!(choices_of_0(&[], 50_001, &[1]), None);
    }

    #[test]
    fn where_there_are_too_many_choices_all_of_a_part_are_there() {
        let apart = |first: u32| part(&[(first, &[(0, 0)]), (first + 1, &[(900, 900)])]);
        let parts: Vec<_> = (0..10).map(|number| apart(1 + 2 * number)).collect();
        let near: Vec<u32> = (1..21).collect();
        let choices = choices_of_0(&parts, 100, &near).expect("choices");
        assert_eq!(choices.len(), CHOICES);
        assert!(choices.iter().all(|set| set.len() == 8 + 2 * 2));
    }
}
