//! Where the nodes of a network stand in a picture: without loops bridges above what hangs below
//! them, with loops bridges on a rectangle and hosts outside of it. Integers only, so that the same
//! system makes the same picture on every machine.

use crate::report::topology::{is_host, neighbours, row};
use onbeat_model::system::{NodeId, System};

/// From the centre of a host to the next one beside it.
const COLUMN: i32 = 100;
/// From the centre of a host to the next one below it.
const LINE: i32 = 44;
/// From a bridge to the nearest of its hosts.
const GAP: i32 = 90;
/// Between the hosts of two bridges.
const MARGIN: i32 = 40;

/// The centre of each node, in the order of the nodes, and the size of the picture.
pub(super) fn places(system: &System) -> (Vec<(i32, i32)>, (i32, i32)) {
    let bridges = row(system);
    let joints: usize = bridges.iter().map(|b| bridge_neighbours(system, *b).count()).sum();
    let mut places = vec![(0, 0); system.nodes.len()];
    // A connected graph of n nodes has no loop if it has n − 1 edges, each seen from both ends.
    if joints / 2 < bridges.len() {
        let mut tree = Tree { system, places: &mut places, seen: vec![false; system.nodes.len()] };
        if let Some(root) = bridges.iter().max_by_key(|b| bridge_neighbours(system, **b).count()) {
            tree.place(*root, 0, 0);
        }
    } else {
        on_rectangle(system, &bridges, &mut places);
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

/// How many hosts stand beside each other in a block of so many: about twice as many as below each
/// other would be square, since names are wider than high.
fn columns(hosts: usize) -> i32 {
    (hosts.isqrt() + usize::from(hosts.isqrt() * hosts.isqrt() < hosts)) as i32
}

/// A block of hosts, centred below (or above, if `down` is −1) a point.
fn block(hosts: &[NodeId], centre: (i32, i32), down: i32, places: &mut [(i32, i32)]) {
    let wide = columns(hosts.len());
    for (number, host) in (0..).zip(hosts) {
        let (column, line) = (number % wide, number / wide);
        let x = centre.0 + (2 * column - wide + 1) * COLUMN / 2;
        places[host.index()] = (x, centre.1 + down * (GAP + line * LINE));
    }
}

struct Tree<'a> {
    system: &'a System,
    places: &'a mut [(i32, i32)],
    seen: Vec<bool>,
}

impl Tree<'_> {
    /// Places a bridge and all that hangs below it from `left` on; returns how wide that is.
    fn place(&mut self, node: NodeId, left: i32, top: i32) -> i32 {
        self.seen[node.index()] = true;
        let mut hosts = hosts_of(self.system, node);
        hosts.retain(|host| !self.seen[host.index()]);
        for host in &hosts {
            self.seen[host.index()] = true;
        }
        let mut width = columns(hosts.len()) * COLUMN;
        let lines = (hosts.len() as i32 + columns(hosts.len()) - 1) / columns(hosts.len()).max(1);
        block(&hosts, (left + width / 2, top), 1, self.places);
        // Bridges stand below the hosts of the one above them.
        let below = top + GAP * 3 / 2 + lines * LINE;
        let children: Vec<_> = bridge_neighbours(self.system, node).collect();
        for child in children {
            if !self.seen[child.index()] {
                width += if width > 0 { MARGIN } else { 0 };
                width += self.place(child, left + width, below);
            }
        }
        let width = width.max(COLUMN);
        self.places[node.index()] = (left + width / 2, top);
        width
    }
}

/// Bridges in the order of a walk along their links, clockwise on a rectangle.
fn on_rectangle(system: &System, bridges: &[NodeId], places: &mut [(i32, i32)]) {
    let hosts: Vec<_> = bridges.iter().map(|bridge| hosts_of(system, *bridge)).collect();
    let widest = hosts.iter().map(|hosts| columns(hosts.len())).max().unwrap_or(0).max(1);
    let (across, down) = (widest * COLUMN + MARGIN, widest * LINE + MARGIN);
    let count = bridges.len() as i32;
    let side = count / 6;
    let top = (count - 2 * side + 1) / 2;
    let bottom = count - 2 * side - top;
    let (width, height) = ((top.max(2) - 1) * across, ((side + 1) * down).max(2 * GAP));
    for (number, (bridge, hosts)) in (0..).zip(bridges.iter().zip(&hosts)) {
        // The place on the side, and which way is out.
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
        if out.0 == 0 {
            block(hosts, at, out.1, places);
        } else {
            let wide = columns(hosts.len());
            let lines = (hosts.len() as i32 + wide - 1) / wide.max(1);
            let middle = at.0 + out.0 * (GAP + COLUMN / 2 + (wide - 1) * COLUMN / 2);
            block(hosts, (middle, at.1 - GAP - (lines - 1) * LINE / 2), 1, places);
        }
    }
}

#[cfg(test)]
mod tests {}
