//! Assignment of priorities and processors where none are stated.

use super::load::{EDF, Load, Protocol, Share};
use super::{fixed, is_feasible};
use onbeat_model::time::Span;
use std::cmp::Reverse;

/// The greatest fixed priority.
const PRIORITY_MAX: u32 = 99;

/// That of the first task under RM and DM, as Timed C's run time has it, and the greatest that is
/// proposed where nothing more urgent is stated.
pub(super) const PRIORITY_TOP: u32 = 80;

/// Gives priorities to the loads that are `open`, one to each transaction and thread; the others
/// keep theirs. If any order of the open ones among the others lets all meet their deadlines, so
/// does this one (Audsley 1991): from the least urgent on, each place goes to one that is in time
/// there. Where none is, it goes to the one with the longest deadline.
///
/// Between two stated priorities there may be fewer numbers than transactions: they then share one.
pub fn priorities(loads: &mut [Load], open: &[bool], protocol: Protocol) {
    let is_open = |at: usize| open[at] && loads[at].priority != EDF;
    let mut left: Vec<Vec<usize>> = Vec::new();
    for at in (0..loads.len()).filter(|at| is_open(*at)) {
        match left.iter_mut().find(|group| is_one(&loads[group[0]], &loads[at])) {
            Some(group) => group.push(at),
            None => left.push(vec![at]),
        }
    }
    // Groups in the order in which they are tried: the longest deadline first.
    left.sort_by_key(|group| Reverse(shortest(loads, group)));
    let stated = (0..loads.len()).filter(|at| !is_open(*at) && loads[*at].priority != EDF);
    let mut levels: Vec<u32> = stated.map(|at| loads[at].priority).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut levels = levels.into_iter().peekable();
    let (mut order, mut below): (Vec<PriorityLevel>, Vec<usize>) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let is_good = |group: &Vec<usize>| is_met_at(loads, &below, group, protocol);
        if let Some(found) = left.iter().position(is_good) {
            let group = left.remove(found);
            below.extend(&group);
            order.push(PriorityLevel::Open(group));
            continue;
        }
        let Some(level) = levels.peek() else {
            let group = left.remove(0);
            below.extend(&group);
            order.push(PriorityLevel::Open(group));
            continue;
        };
        let lowest: Vec<usize> =
            (0..loads.len()).filter(|at| !is_open(*at) && loads[*at].priority == *level).collect();
        let is_longest = || shortest(loads, &lowest) < shortest(loads, &left[0]);
        if !is_met_at(loads, &below, &lowest, protocol) && is_longest() {
            let group = left.remove(0);
            below.extend(&group);
            order.push(PriorityLevel::Open(group));
            continue;
        }
        below.extend(&lowest);
        order.extend(levels.next().map(PriorityLevel::Stated));
    }
    order.extend(levels.map(PriorityLevel::Stated));
    number(loads, &order);
}

/// Whether both get the same place.
fn is_one(a: &Load, b: &Load) -> bool {
    a.transaction == b.transaction || a.is_same_thread(b)
}

/// A level in the order of urgency.
enum PriorityLevel {
    /// Of loads without a priority.
    Open(Vec<usize>),
    /// Of all with this one.
    Stated(u32),
}

/// The shortest deadline of some loads.
fn shortest(loads: &[Load], group: &[usize]) -> Span {
    let deadlines = group.iter().map(|at| loads[*at].deadline.unwrap_or(Span::MAX));
    deadlines.min().unwrap_or(Span::MAX)
}

/// Whether a group meets its deadlines when only those `below` are less urgent.
fn is_met_at(loads: &[Load], below: &[usize], group: &[usize], protocol: Protocol) -> bool {
    let mut trial = loads.to_vec();
    for (at, load) in trial.iter_mut().enumerate().filter(|(_, load)| load.priority != EDF) {
        let is_above = !below.contains(&at) && !group.contains(&at);
        load.priority = if below.contains(&at) { 0 } else { 1 + u32::from(is_above) };
    }
    group.iter().all(|at| fixed::is_met(&trial, *at, protocol))
}

/// Numbers for an order, the least urgent first: as high as possible, stated ones kept.
fn number(loads: &mut [Load], order: &[PriorityLevel]) {
    let is_low = |place: &PriorityLevel| -> bool {
        !matches!(place, PriorityLevel::Stated(level) if *level > PRIORITY_TOP)
    };
    let is_free = order.len() <= PRIORITY_TOP as usize && order.iter().all(is_low);
    let mut above = if is_free { PRIORITY_TOP } else { PRIORITY_MAX } + 1;
    for (at, place) in order.iter().enumerate().rev() {
        match place {
            PriorityLevel::Stated(level) => above = *level,
            PriorityLevel::Open(group) => {
                let floor = order[..at].iter().rev().find_map(|place| match place {
                    PriorityLevel::Stated(level) => Some(*level),
                    PriorityLevel::Open(_) => None,
                });
                above = (above - 1).max(floor.map_or(1, |floor| (floor + 1).min(above))).max(1);
                group.iter().for_each(|load| loads[*load].priority = above);
            }
        }
    }
}

/// What is to be placed: loads that stay together, and where they may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Positions of its loads.
    pub loads: Vec<usize>,
    /// The processors that it may use; empty: any.
    pub cores: Vec<u16>,
}

/// A processor for each group, of `cores`: those with least choice first, then those that use most,
/// each goes to the first processor on which all still meet their deadlines (first fit), and if
/// there is none, to the one that is used least. If that leaves deadlines unmet, each goes to the
/// least used one from the beginning (worst fit), if that leaves none. Groups whose processors do
/// not exist go to processor 0.
pub fn processors(loads: &[Load], open: &[bool], groups: &[Group], cores: u16) -> Vec<u16> {
    let first = place(loads, open, groups, cores, true);
    if first.1 {
        return first.0;
    }
    let worst = place(loads, open, groups, cores, false);
    if worst.1 { worst.0 } else { first.0 }
}

/// Whether all groups found a processor with a schedule, and their processors.
fn place(
    loads: &[Load],
    open: &[bool],
    groups: &[Group],
    cores: u16,
    is_first_fit: bool,
) -> (Vec<u16>, bool) {
    let share = |at: usize| Share::of(groups[at].loads.iter().map(|load| &loads[*load])).ppm();
    let choice = |at: usize| match groups[at].cores.len() {
        0 => usize::from(cores),
        some => some,
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| (choice(*at), Reverse(share(*at))));
    let mut chosen: Vec<Option<u16>> = vec![None; groups.len()];
    let mut all = true;
    for at in order {
        let on = |core: u16| -> Vec<usize> {
            let here = (0..groups.len()).filter(|other| chosen[*other] == Some(core));
            here.flat_map(|other| groups[other].loads.iter().copied()).collect()
        };
        let used = |core: u16| Share::of(on(core).into_iter().map(|load| &loads[load])).ppm();
        let may = |core: &u16| groups[at].cores.is_empty() || groups[at].cores.contains(core);
        let mut choices: Vec<u16> = (0..cores).filter(may).collect();
        let least = choices.iter().copied().min_by_key(|core| used(*core)).unwrap_or(0);
        if !is_first_fit {
            choices = vec![least];
        }
        let fits = |core: &u16| {
            let here = on(*core).into_iter().chain(groups[at].loads.iter().copied());
            fits(loads, open, here.collect())
        };
        let found = choices.into_iter().find(fits);
        all &= found.is_some();
        chosen[at] = Some(found.unwrap_or(least));
    }
    (chosen.into_iter().map(|core| core.unwrap_or(0)).collect(), all)
}

/// Whether some loads have a schedule on a processor of their own, with the best priorities.
fn fits(loads: &[Load], open: &[bool], mut here: Vec<usize>) -> bool {
    here.sort_unstable();
    let mut some: Vec<Load> = here.iter().map(|at| loads[*at].clone()).collect();
    let open: Vec<bool> = here.iter().map(|at| open[*at]).collect();
    if Share::of(&some).is_over() {
        return false;
    }
    let protocol = Protocol::default();
    priorities(&mut some, &open, protocol);
    is_feasible(&some, protocol)
}
