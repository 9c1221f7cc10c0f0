//! All paths of all channels, where these are few.

use super::load_aware::{Balance, Tree};
use super::{Path, next, sends};
use onbeat_model::system::{NodeId, NodeKind, System};

/// How many ports the search looks at.
const LOOKS_MAX: u32 = 200_000;
/// How many channels and nodes it takes on: it calls itself for each port of each path.
const FEW: usize = 64;

/// What came of the search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Paths that overload nothing.
    Found,
    /// There are none.
    None,
    /// It ended before it had looked at all, or some channels have several listeners or paths of
    /// the description, or there is too much of it.
    Unknown,
}

/// Channels with one listener, on every path; others stay where they are.
pub(super) struct Exhaustive<'s, 'b, 'a> {
    balance: &'b mut Balance<'a>,
    system: &'a System,
    /// The channels that may move, the largest first: they have the least choice.
    order: Vec<usize>,
    paths: &'s mut [Tree],
    looks: u32,
}

/// Puts channels on paths that overload nothing, if it finds some.
pub(super) fn search(balance: &mut Balance<'_>, paths: &mut [Tree]) -> Outcome {
    let system = balance.system;
    if paths.len() > FEW || system.nodes.len() > FEW {
        return Outcome::Unknown;
    }
    let before = paths.to_vec();
    let all = (0..paths.len()).filter(|channel| balance.size(*channel) > 0);
    let (mut order, fixed): (Vec<usize>, Vec<usize>) = all.partition(|channel| {
        let described = &system.channels[*channel];
        let is_one = described.listeners.len() == 1 && described.listeners[0] != described.talker;
        is_one && balance.may_move(*channel)
    });
    order.sort_by_key(|channel| std::cmp::Reverse(balance.size(*channel)));
    for channel in &order {
        balance.take(*channel, &paths[*channel]);
    }
    let mut search = Exhaustive { balance, system, order, paths, looks: 0 };
    let found = search.channel(0);
    let ended = search.looks < LOOKS_MAX;
    let Exhaustive { order, .. } = search;
    if !found {
        for channel in order {
            paths[channel].clone_from(&before[channel]);
            balance.put(channel, &paths[channel]);
        }
    }
    match found {
        true => Outcome::Found,
        false if ended && fixed.is_empty() => Outcome::None,
        false => Outcome::Unknown,
    }
}

impl Exhaustive<'_, '_, '_> {
    /// Places the channel at this place of the order, and those behind it.
    fn channel(&mut self, at: usize) -> bool {
        let Some(channel) = self.order.get(at) else { return true };
        let talker = self.system.channels[*channel].talker;
        self.step(at, talker, &mut vec![talker], &mut Path::new())
    }

    fn step(&mut self, at: usize, node: NodeId, seen: &mut Vec<NodeId>, path: &mut Path) -> bool {
        let (system, channel) = (self.system, self.order[at]);
        let described = &system.channels[channel];
        if node == described.listeners[0] {
            if self.balance.in_time(channel, 0, path) && self.channel(at + 1) {
                self.paths[channel] = vec![path.clone()];
                return true;
            }
            return false;
        }
        let vlan = self.balance.filtered.then_some(described.vlan);
        for port in &system.node(node).ports {
            self.looks += 1;
            if self.looks >= LOOKS_MAX {
                return false;
            }
            let to = next(system, *port);
            let leads =
                to == described.listeners[0] || matches!(system.node(to).kind, NodeKind::Bridge(_));
            let fits = leads && self.balance.has_room(channel, *port);
            if !fits || seen.contains(&to) || !sends(system, *port, vlan) {
                continue;
            }
            seen.push(to);
            path.push(*port);
            self.balance.enter(channel, *port);
            if self.step(at, to, seen, path) {
                return true;
            }
            self.balance.leave(channel, *port);
            path.pop();
            seen.pop();
        }
        false
    }
}
