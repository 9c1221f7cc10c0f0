//! A picture of the network: bridges in a row, each host above or below its bridge.

use onbeat_model::plan::Plan;
use onbeat_model::system::{LinkId, NodeId, NodeKind, System};
use serde::Serialize;

const COLUMN: i32 = 150;
const ROWS: [i32; 3] = [40, 150, 260];
const BOX: (i32, i32) = (118, 36);
/// The most characters of a name that fit into a box.
const LABEL_MAX: usize = 14;
/// How many colours the style sheet has for channels.
pub(crate) const COLOURS: usize = 6;
/// The distance between two paths on one link.
const LANE: i32 = 6;

/// The picture, in units of its own view box.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    width: i32,
    height: i32,
    links: Vec<Link>,
    paths: Vec<PathLine>,
    nodes: Vec<NodeBox>,
}

#[derive(Debug, Serialize)]
struct LinkLine {
    x1: i32,
    y1: i32,
    x2: i32,
    y2: i32,
    /// How it bends, so that it does not run through what lies between.
    bend: i32,
}

/// A link, and its rate beside it.
#[derive(Debug, Serialize)]
struct Link {
    #[serde(flatten)]
    line: LinkLine,
    label: String,
    label_x: i32,
    label_y: i32,
}

/// The way of one channel or noise source: one stroke per link.
#[derive(Debug, Serialize)]
struct PathLine {
    /// Which of the colours; none for noise.
    colour: Option<usize>,
    strokes: Vec<LinkLine>,
}

#[derive(Debug, Serialize)]
pub(crate) struct NodeBox {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
    bridge: bool,
    name: String,
    /// As much of the name as fits into the box.
    label: String,
}

/// Draws the system with the paths of a plan.
pub(crate) fn picture(system: &System, plan: &Plan) -> Picture {
    let places = places(system);
    let at = |node: NodeId| places[node.index()];
    let ends = |link: LinkId| system.links[link.index()].ports.map(|p| at(system.port(p).node));
    let line = |link: LinkId, lane: i32| {
        let [from, to] = ends(link);
        let along_row = from.1 == to.1;
        let bend = if along_row && (from.0 - to.0).abs() > COLUMN * 3 / 2 { -60 } else { 0 };
        // Lanes lie side by side across the link's direction.
        let (dx, dy) = if along_row { (0, lane) } else { (lane, 0) };
        LinkLine { x1: from.0 + dx, y1: from.1 + dy, x2: to.0 + dx, y2: to.1 + dy, bend }
    };
    let tracks: Vec<Vec<LinkId>> = (plan.channels.iter().map(|c| c.tree_ports()))
        .chain(plan.noise.iter().cloned())
        .map(|ports| ports.iter().map(|port| system.port(*port).link).collect())
        .collect();
    // The tracks on one link lie side by side about its middle.
    let lanes = |link: LinkId| tracks.iter().filter(|t| t.contains(&link)).count() as i32;
    let lane = |number: usize, link: LinkId| {
        let before = tracks[..number].iter().filter(|t| t.contains(&link)).count() as i32;
        before * LANE - (lanes(link) - 1) * LANE / 2
    };
    let paths = tracks.iter().enumerate().map(|(number, links)| PathLine {
        colour: (number < plan.channels.len()).then_some(number % COLOURS),
        strokes: links.iter().map(|link| line(*link, lane(number, *link))).collect(),
    });
    let link = |(id, described): (u32, &onbeat_model::system::Link)| {
        let line = line(LinkId(id), 0);
        let aside = (lanes(LinkId(id)) + 1) * LANE / 2 + 6;
        let (x, y) = ((line.x1 + line.x2) / 2, (line.y1 + line.y2) / 2);
        let (dx, dy) = if line.y1 == line.y2 { (-20, line.bend - aside - 4) } else { (aside, 4) };
        Link { line, label: described.rate.to_string(), label_x: x + dx, label_y: y + dy }
    };
    Picture {
        width: places.iter().map(|p| p.0).max().unwrap_or(0) + COLUMN / 2,
        height: ROWS[2] + 40,
        links: (0..).zip(&system.links).map(link).collect(),
        paths: paths.collect(),
        nodes: (system.nodes.iter().zip(&places))
            .map(|(node, place)| boxed(node, *place, BOX, LABEL_MAX))
            .collect(),
    }
}

/// A node about its centre; `longest` is how many characters of its name fit.
pub(crate) fn boxed(
    node: &onbeat_model::system::Node,
    (x, y): (i32, i32),
    (width, height): (i32, i32),
    longest: usize,
) -> NodeBox {
    NodeBox {
        x: x - width / 2,
        y: y - height / 2,
        width,
        height,
        bridge: matches!(node.kind, NodeKind::Bridge(_)),
        name: node.name.clone(),
        label: shortened(&node.name, longest),
    }
}

pub(crate) fn shortened(name: &str, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    let start: String = name.chars().take(longest - 1).collect();
    format!("{start}…")
}

/// The centre of each node, in the order of the nodes.
fn places(system: &System) -> Vec<(i32, i32)> {
    let mut places = vec![(0, 0); system.nodes.len()];
    let mut left = 0;
    for centre in row(system) {
        let hosts: Vec<_> = neighbours(system, centre)
            .filter(|n| is_host(system, *n) && !is_host(system, centre))
            .collect();
        let columns = hosts.len().div_ceil(2).max(1) as i32;
        places[centre.index()] = (left + columns * COLUMN / 2, ROWS[1]);
        for (number, host) in hosts.iter().enumerate() {
            let (column, row) = ((number / 2) as i32, if number % 2 == 0 { 0 } else { 2 });
            // Fewer hosts below than above: the row stays centred.
            let in_row = if row == 0 { hosts.len().div_ceil(2) } else { hosts.len() / 2 } as i32;
            let indent = (columns - in_row) * COLUMN / 2;
            places[host.index()] = (left + indent + COLUMN / 2 + column * COLUMN, ROWS[row]);
        }
        left += columns * COLUMN;
    }
    places
}

/// What stands in the middle row, from left to right: bridges along their links, so that
/// neighbours stand side by side where they can; without bridges, the hosts.
pub(crate) fn row(system: &System) -> Vec<NodeId> {
    let ids = (0..system.nodes.len() as u32).map(NodeId);
    let bridges: Vec<_> = ids.clone().filter(|n| !is_host(system, *n)).collect();
    if bridges.is_empty() {
        return ids.collect();
    }
    let degree = |n: &NodeId| neighbours(system, *n).filter(|m| !is_host(system, *m)).count();
    let mut row = Vec::new();
    // The topology is connected, so one walk from an end of it meets every bridge.
    let mut open: Vec<_> = bridges.iter().min_by_key(|n| degree(n)).copied().into_iter().collect();
    while let Some(next) = open.pop() {
        if !row.contains(&next) {
            row.push(next);
            open.extend(neighbours(system, next).filter(|n| !is_host(system, *n)));
        }
    }
    row
}

pub(crate) fn neighbours(system: &System, node: NodeId) -> impl Iterator<Item = NodeId> {
    let ports = system.node(node).ports.iter();
    ports.map(|port| system.port(system.port(*port).peer).node)
}

pub(crate) fn is_host(system: &System, node: NodeId) -> bool {
    matches!(system.node(node).kind, NodeKind::Host(_))
}
