//! Where the nodes of a network stand in a picture: bridges one after another in a row, bridges
//! that branch above what hangs below them, bridges with loops on a rectangle. Integers only, so
//! that the same system makes the same picture on every machine.

use crate::topology::{is_host, neighbours, row};
use onbeat_model::system::{NodeId, System};

/// From the centre of a host to the next one beside it.
const COLUMN: i32 = 100;
/// From the centre of a host to the next one below it.
const LINE: i32 = 48;
/// From a bridge to the nearest of its hosts.
const GAP: i32 = 90;
/// Between the hosts of two bridges.
const MARGIN: i32 = 40;

/// The centre of each node, in the order of the nodes, and the size of the picture.
pub(super) fn places(system: &System) -> (Vec<(i32, i32)>, (i32, i32)) {
    let bridges = row(system);
    let degree = |bridge: &NodeId| bridge_neighbours(system, *bridge).count();
    let mut places = vec![(0, 0); system.nodes.len()];
    // A connected graph of n nodes has no loop if it has n − 1 edges, each seen from both ends.
    let loops = bridges.iter().map(degree).sum::<usize>() / 2 >= bridges.len();
    if loops {
        on_rectangle(system, &bridges, bridges.len() as i32 / 6, &mut places);
    } else if bridges.iter().all(|bridge| degree(bridge) <= 2) {
        in_row(system, &bridges, &mut places);
    } else if let Some(root) = bridges.iter().max_by_key(|bridge| degree(bridge)) {
        let mut tree = Tree { system, places: &mut places, seen: vec![false; system.nodes.len()] };
        tree.place(*root, 0, 0);
    }
    let least = |of: fn(&(i32, i32)) -> i32| places.iter().map(of).min().unwrap_or(0);
    let (left, top) = (least(|p| p.0) - COLUMN, least(|p| p.1) - LINE);
    for place in &mut places {
        *place = (place.0 - left, place.1 - top);
    }
    let most = |of: fn(&(i32, i32)) -> i32| places.iter().map(of).max().unwrap_or(0);
    let size = (most(|p| p.0) + COLUMN, most(|p| p.1) + LINE);
    (places, size)
}

fn bridge_neighbours(system: &System, node: NodeId) -> impl Iterator<Item = NodeId> {
    neighbours(system, node).filter(|other| !is_host(system, *other))
}

fn hosts_of(system: &System, bridge: NodeId) -> Vec<NodeId> {
    neighbours(system, bridge).filter(|other| is_host(system, *other)).collect()
}

/// How many hosts stand beside each other in a block of so many above or below a bridge.
fn columns(hosts: usize) -> i32 {
    (hosts.isqrt() + usize::from(hosts.isqrt() * hosts.isqrt() < hosts)) as i32
}

/// A block of hosts above a bridge, or below it if `down` is 1.
fn block(hosts: &[NodeId], centre: (i32, i32), down: i32, places: &mut [(i32, i32)]) {
    let wide = columns(hosts.len());
    for (number, host) in (0..).zip(hosts) {
        let (column, line) = (number % wide, number / wide);
        let x = centre.0 + (2 * column - wide + 1) * COLUMN / 2;
        places[host.index()] = (x, centre.1 + down * (GAP + line * LINE));
    }
}

/// How many hosts stand beside, and how many below each other, in a block beside a bridge.
fn beside(hosts: usize) -> (i32, i32) {
    let wide = (columns(hosts) / 2).max(1);
    (wide, (hosts as i32 + wide - 1) / wide)
}

/// A block of hosts to the right of a bridge, or to the left if `right` is −1.
fn block_beside(hosts: &[NodeId], centre: (i32, i32), right: i32, places: &mut [(i32, i32)]) {
    let (wide, lines) = beside(hosts.len());
    for (number, host) in (0..).zip(hosts) {
        let (column, line) = (number % wide, number / wide);
        let x = centre.0 + right * (GAP + COLUMN / 2 + column * COLUMN);
        places[host.index()] = (x, centre.1 + (2 * line - lines + 1) * LINE / 2);
    }
}

/// Bridges side by side, their hosts above them.
fn in_row(system: &System, bridges: &[NodeId], places: &mut [(i32, i32)]) {
    let mut left = 0;
    for bridge in bridges {
        let hosts = hosts_of(system, *bridge);
        let width = columns(hosts.len()).max(1) * COLUMN + MARGIN;
        places[bridge.index()] = (left + width / 2, 0);
        block(&hosts, (left + width / 2, 0), -1, places);
        left += width;
    }
}

struct Tree<'a> {
    system: &'a System,
    places: &'a mut [(i32, i32)],
    seen: Vec<bool>,
}

impl Tree<'_> {
    /// Places a bridge with its hosts beside it and all that hangs below from `left` on; returns
    /// how wide that is.
    fn place(&mut self, node: NodeId, left: i32, top: i32) -> i32 {
        self.seen[node.index()] = true;
        let hosts = hosts_of(self.system, node);
        let (wide, lines) = beside(hosts.len());
        let own = COLUMN + if hosts.is_empty() { 0 } else { GAP + wide * COLUMN };
        let half = (lines.max(1) - 1) * LINE / 2;
        let below = top + half + GAP * 2;
        let mut width = 0;
        let children: Vec<_> = bridge_neighbours(self.system, node).collect();
        for child in children {
            if !self.seen[child.index()] {
                width += if width > 0 { MARGIN } else { 0 };
                let room = self.room(child);
                width += self.place(child, left + width, below + room);
            }
        }
        let at = (left + (width - own).max(0) / 2 + COLUMN / 2, top);
        self.places[node.index()] = at;
        block_beside(&hosts, at, 1, self.places);
        width.max(own)
    }

    /// How far a bridge's hosts reach above it.
    fn room(&self, bridge: NodeId) -> i32 {
        (beside(hosts_of(self.system, bridge).len()).1.max(1) - 1) * LINE / 2
    }
}

/// Bridges in the order of a walk along their links, clockwise on a rectangle with so many between
/// the corners of its left and of its right side; hosts stand outside.
fn on_rectangle(system: &System, bridges: &[NodeId], side: i32, places: &mut [(i32, i32)]) {
    let hosts: Vec<_> = bridges.iter().map(|bridge| hosts_of(system, *bridge)).collect();
    let most = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let across = columns(most).max(1) * COLUMN + MARGIN;
    let down = beside(most).1.max(1) * LINE + MARGIN;
    let count = bridges.len() as i32;
    let top = (count - 2 * side + 1) / 2;
    let bottom = count - 2 * side - top;
    let (width, height) = ((top.max(2) - 1) * across, ((side + 1) * down).max(2 * GAP));
    for (number, (bridge, hosts)) in (0..).zip(bridges.iter().zip(&hosts)) {
        let (at, out) = match number {
            n if n < top => ((n * across, 0), (0, -1)),
            n if n < top + side => ((width, (n - top + 1) * height / (side + 1)), (1, 0)),
            n if n < top + side + bottom => {
                let slack = (top - bottom) * across / 2;
                ((width - slack - (n - top - side) * across, height), (0, 1))
            }
            n => ((0, (count - n) * height / (side + 1)), (-1, 0)),
        };
        places[bridge.index()] = at;
        match out {
            (0, down) => block(hosts, at, down, places),
            (right, _) => block_beside(hosts, at, right, places),
        }
    }
}
