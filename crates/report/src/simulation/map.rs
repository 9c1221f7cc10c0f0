//! The network as a picture, with the load of each direction of each link.

use super::layout::places;
use crate::text::per_mille;
use crate::topology::{NodeBox, boxed, is_host};
use onbeat_measure::simulation::Results;
use onbeat_model::system::{Link, Node as Described, NodeKind, PortId, System};
use serde::Serialize;

const BOX: (i32, i32) = (84, 36);
/// The most characters of a name that fit into a box.
const LABEL_MAX: usize = 11;
/// From the middle of a link to the line of one direction.
const LANE: i32 = 5;
/// How far a line leaves the straight one.
const BEND: i32 = 50;
/// Loads in thousandths from which on the next colour is used.
const STEPS: [u64; 5] = [1, 100, 300, 600, 800];

/// The picture, in units of its own view box.
#[derive(Debug, Serialize)]
pub(super) struct Map {
    width: i32,
    height: i32,
    /// Two per link.
    directions: Vec<Direction>,
    nodes: Vec<NodeMark>,
}

#[derive(Debug, Serialize)]
struct NodeMark {
    #[serde(flatten)]
    shape: NodeBox,
    /// Of a host: what it sends and receives, in per cent of its link.
    loads: Option<String>,
}

/// What goes one way over a link; the line keeps to the right.
#[derive(Debug, Serialize)]
struct Direction {
    from: (i32, i32),
    by: (i32, i32),
    to: (i32, i32),
    /// Which colour, from 0 for nothing to 5.
    step: usize,
    /// In tenths of a unit.
    thickness: u64,
    title: String,
    /// Between bridges: the load as a number and its place, if there is room.
    label: Option<(String, i32, i32)>,
}

/// Draws the system with the loads of `results`.
pub(super) fn map(system: &System, results: &Results) -> Map {
    let (places, (width, height)) = places(system);
    let trunk = |link: &Link| link.ports.iter().all(|p| !is_host(system, system.port(*p).node));
    // Between many more links than bridges there is no room for numbers.
    let bridges = system.nodes.iter().filter(|n| matches!(n.kind, NodeKind::Bridge(_))).count();
    let roomy = system.links.iter().filter(|link| trunk(link)).count() <= bridges + 2;
    let busy = |port: PortId| results.ports[port.index()].busy_per_mille;
    let loads = |node: &Described| match node.kind {
        NodeKind::Bridge(_) => None,
        NodeKind::Host(_) => node.ports.first().map(|port| {
            let [out, into] = [*port, system.port(*port).peer].map(|p| (busy(p) + 5) / 10);
            format!("↑ {out} % ↓ {into} %")
        }),
    };
    let nodes = system.nodes.iter().zip(&places);
    Map {
        width,
        height,
        directions: (0..)
            .map(PortId)
            .zip(&results.ports)
            .map(|(id, port)| {
                let [from, to] = [id, system.port(id).peer].map(|p| system.port(p).node);
                let load = per_mille(port.busy_per_mille);
                let mut direction =
                    direction(places[from.index()], places[to.index()], &places, height);
                direction.step = STEPS.iter().filter(|step| port.busy_per_mille >= **step).count();
                direction.thickness = 15 + port.busy_per_mille.min(1000) * 5 / 100;
                direction.title = format!("{} → {}: {load}", port.port, port.to);
                if roomy && trunk(system.link_of(id)) && port.busy_per_mille > 0 {
                    let at = direction.label_at();
                    direction.label = Some((load, at.0, at.1));
                }
                direction
            })
            .collect(),
        nodes: nodes
            .map(|(node, place)| NodeMark {
                shape: boxed(node, *place, BOX, LABEL_MAX),
                loads: loads(node),
            })
            .collect(),
    }
}

/// The line from one place to another. Where nodes stand between, it bends towards the middle of
/// the picture.
fn direction(from: (i32, i32), to: (i32, i32), places: &[(i32, i32)], height: i32) -> Direction {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx.unsigned_abs().pow(2) + dy.unsigned_abs().pow(2)).isqrt().max(1) as i32;
    let aside = (-dy * LANE / length, dx * LANE / length);
    let within = |at: i32, a: i32, b: i32| at > a.min(b) && at < a.max(b);
    let across = |at: &(i32, i32)| dy == 0 && at.1 == from.1 && within(at.0, from.0, to.0);
    let along = |at: &(i32, i32)| dx == 0 && at.0 == from.0 && within(at.1, from.1, to.1);
    let bend = match places.iter().any(|at| across(at) || along(at)) {
        true if dy == 0 => (0, if from.1 * 2 > height { -BEND } else { BEND }),
        true => (BEND, 0),
        false => (0, 0),
    };
    let moved = |at: (i32, i32)| (at.0 + aside.0, at.1 + aside.1);
    let middle = ((from.0 + to.0) / 2 + bend.0 * 2, (from.1 + to.1) / 2 + bend.1 * 2);
    Direction {
        from: moved(from),
        by: moved(middle),
        to: moved(to),
        step: 0,
        thickness: 0,
        title: String::new(),
        label: None,
    }
}

impl Direction {
    /// Beside the line, nearer to where the frames come from, so that the numbers of both
    /// directions stand apart.
    fn label_at(&self) -> (i32, i32) {
        // The weights of a quadratic curve's three points at 0.38 of the way.
        let on = |a: i32, b: i32, c: i32| (a * 384 + b * 471 + c * 145) / 1000;
        let (x, y) = (on(self.from.0, self.by.0, self.to.0), on(self.from.1, self.by.1, self.to.1));
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let length = (dx.unsigned_abs().pow(2) + dy.unsigned_abs().pow(2)).isqrt().max(1) as i32;
        (x - dy * 24 / length, y + dx * 12 / length + 4)
    }
}
