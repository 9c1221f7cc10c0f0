//! Where everything stands in the picture: tasks in lanes, lanes side by side in the boxes of
//! their hosts, hosts in rows ("shelves"); and the ways of channels between lanes. These run in the
//! gaps beside lanes ("gutters") and between shelves ("corridors"), so that none crosses a name.

use super::swimlane::{Edge, HALF, Swimlane, is_great, lane};
use onbeat_model::graph::Graph;
use std::collections::BTreeMap;

/// How wide a shelf may get: a page shows that without shrinking it.
const WIDTH: i32 = 1_240;
/// Between two ways in one gutter or corridor.
const TRACK: i32 = 10;
/// The least width of a gutter, the least height of a corridor.
const GAP: i32 = 16;
/// From a host's box to the lanes in it.
const PAD: i32 = 10;
/// Above the lanes of a host that has a name.
const HOST_HEAD: i32 = 28;
/// The least width of a lane.
const LANE_WIDTH: i32 = 96;
/// From the middle of a channel end to its way's beginning: above what is left of it, and below the
/// label that is right of it.
const STUB: (i32, i32) = (14, 9);

/// A node of a task, by their numbers.
pub(super) type NodeIndex = (usize, usize);

/// A box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

/// The whole picture.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Hosts by number, and how much room there is for the name. One that needs several shelves
    /// has several.
    pub(super) hosts: Vec<(usize, Frame, i32)>,
    /// Of each task.
    pub(super) lanes: Vec<Frame>,
    /// Of each task and node: the middle of its shape.
    pub(super) nodes: Vec<Vec<(i32, i32)>>,
    /// Of each task and node: where its label begins.
    pub(super) labels: Vec<Vec<i32>>,
    /// Of each task.
    pub(super) edges: Vec<Vec<Edge>>,
    /// The corners of each wire.
    pub(super) wires: Vec<Vec<(i32, i32)>>,
}

/// Lays out a graph. `width` says how wide a label is, or, without a node, a task's name.
pub(super) fn layout(
    graph: &Graph,
    width: &impl Fn(usize, Option<usize>) -> i32,
    wires: &[(NodeIndex, NodeIndex)],
) -> Layout {
    let lanes: Vec<Swimlane> = graph.tasks.iter().map(lane).collect();
    let of_lane = |(task, lane): (usize, &Swimlane)| {
        let labels = lane.labels.iter().enumerate();
        let ends = labels.map(|(node, from)| from + width(task, Some(node)) + 6);
        ends.max().unwrap_or(0).max(width(task, None) + 20).max(LANE_WIDTH)
    };
    let widths: Vec<i32> = lanes.iter().enumerate().map(of_lane).collect();
    let shelves = Shelves::fill(graph, &widths, &lanes);
    let routes: Vec<Route> = wires.iter().map(|wire| shelves.route(graph, *wire, &lanes)).collect();
    let plan = Plan::make(graph, &shelves, &widths, &routes);
    plan.layout(graph, &lanes, &widths, &shelves, &routes)
}

/// Which tasks stand side by side.
struct Shelves {
    rows: Vec<Vec<usize>>,
    /// Of each task: its shelf, and its place there.
    of: Vec<(usize, usize)>,
    /// How high the lanes of each are.
    heights: Vec<i32>,
}

impl Shelves {
    /// Hosts one after the other, as many on a shelf as there is room for.
    fn fill(graph: &Graph, widths: &[i32], lanes: &[Swimlane]) -> Self {
        let mut hosts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, task) in graph.tasks.iter().enumerate() {
            hosts.entry(task.host).or_default().push(number);
        }
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut used = WIDTH;
        for tasks in hosts.values() {
            let room = |task: &usize| widths[*task] + 2 * GAP;
            let all = tasks.iter().map(room).sum::<i32>() + 2 * PAD;
            let mut fits = used + all <= WIDTH;
            for task in tasks {
                if !fits {
                    rows.push(Vec::new());
                    used = 2 * PAD;
                }
                rows.last_mut().expect("the first does not fit on none").push(*task);
                used += room(task);
                fits = used + tasks.last().map_or(0, room) <= WIDTH;
            }
            used += 2 * PAD;
        }
        let mut of = vec![(0, 0); widths.len()];
        for (shelf, row) in rows.iter().enumerate() {
            for (at, task) in row.iter().enumerate() {
                of[*task] = (shelf, at);
            }
        }
        let height = |row: &Vec<usize>| row.iter().map(|task| lanes[*task].height).max();
        let heights = rows.iter().map(|row| height(row).unwrap_or(0)).collect();
        Self { rows, of, heights }
    }

    /// Which way a wire takes.
    fn route(
        &self,
        graph: &Graph,
        (from, to): (NodeIndex, NodeIndex),
        lanes: &[Swimlane],
    ) -> Route {
        let [(a, p), (b, q)] = [from, to].map(|(task, _)| self.of[task]);
        let (out, into) = match () {
            () if a != b || p < q => (p + 1, q),
            () if p > q => (p, q + 1),
            () => (p + 1, p + 1),
        };
        let y = |end: usize, (task, node): NodeIndex, is_right: bool| {
            lanes[task].nodes[node].1 + stub(graph, (task, node), end, is_right).1
        };
        let (y, z) = (y(0, from, out > p), y(1, to, into > q));
        let corridors = match b as i64 - a as i64 {
            0 if out == into => None,
            0 if y + z <= 2 * self.heights[a] - y - z => Some([a, a]),
            0 => Some([a + 1, a + 1]),
            1.. => Some([a + 1, b]),
            _ => Some([a, b + 1]),
        };
        Route { ends: [from, to], y: [y, z], gutters: [(a, out), (b, into)], corridors }
    }
}

/// From the middle of a node to where a wire begins (end 0) or ends (end 1).
fn stub(graph: &Graph, (task, node): NodeIndex, end: usize, is_right: bool) -> (i32, i32) {
    let side = if is_right { 1 } else { -1 };
    match is_great(&graph.tasks[task].nodes[node].kind) {
        true => (side * STUB.0, side * STUB.1),
        // What starts a task: off the edge below it. The start of a task has no label.
        false if end == 0 => (0, STUB.1),
        false => (side * HALF[1], 0),
    }
}

/// The way of one wire.
struct Route {
    ends: [NodeIndex; 2],
    /// Where it leaves and comes, from the tops of the lanes.
    y: [i32; 2],
    /// Shelf and gutter there; gutter 0 is before the first lane.
    gutters: [(usize, usize); 2],
    /// Corridor 0 is above the first shelf. None if both gutters are the same.
    corridors: Option<[usize; 2]>,
}

/// A straight part of a way, beside which others may be.
#[derive(Clone, Copy)]
struct Piece<K> {
    /// Where.
    key: K,
    from: i32,
    to: i32,
}

/// Gives each piece a track on which it is alone; with how many tracks there are in each place.
fn tracks<K: Ord + Copy>(pieces: &[Piece<K>]) -> (Vec<i32>, BTreeMap<K, i32>) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    let ends = |piece: &Piece<K>| (piece.from.min(piece.to), piece.from.max(piece.to));
    order.sort_by_key(|at| (pieces[*at].key, ends(&pieces[*at])));
    let mut track = vec![0; pieces.len()];
    let mut ended: BTreeMap<K, Vec<i32>> = BTreeMap::new();
    for at in order {
        let (from, to) = ends(&pieces[at]);
        let ended = ended.entry(pieces[at].key).or_default();
        let free = ended.iter().position(|end| *end < from).unwrap_or_else(|| {
            ended.push(0);
            ended.len() - 1
        });
        ended[free] = to;
        track[at] = free as i32;
    }
    (track, ended.into_iter().map(|(key, ends)| (key, ends.len() as i32)).collect())
}

/// The coordinates of shelves, gutters and corridors.
struct Plan {
    /// Of each shelf: where its gutters begin.
    gutters: Vec<Vec<i32>>,
    /// Of each shelf: where its lanes begin.
    lanes: Vec<Vec<i32>>,
    /// Of each corridor: where it begins.
    corridors: Vec<i32>,
    /// Of each shelf: where its hosts' boxes begin.
    shelves: Vec<i32>,
    /// Of each route: the x of its vertical parts and the y of its horizontal ones.
    ways: Vec<Way>,
    size: (i32, i32),
}

#[derive(Clone, Copy, Default)]
struct Way {
    x: [i32; 2],
    y: [i32; 2],
    margin: i32,
}

impl Plan {
    fn make(graph: &Graph, shelves: &Shelves, widths: &[i32], routes: &[Route]) -> Self {
        let ends = [i32::MIN, i32::MAX];
        let mut pieces = Vec::new();
        for route in routes {
            let to = |end: usize| match route.corridors {
                None => route.y[1 - end],
                Some(corridors) => ends[usize::from(corridors[end] > route.gutters[end].0)],
            };
            for end in [0, 1] {
                pieces.push(Piece { key: route.gutters[end], from: route.y[end], to: to(end) });
            }
        }
        // A way in one gutter has one part only; the other one stands for itself.
        let direct = |at: usize| at % 2 == 1 && routes[at / 2].corridors.is_none();
        let kept: Vec<usize> = (0..pieces.len()).filter(|at| !direct(*at)).collect();
        let (track, counts) = tracks(&kept.iter().map(|at| pieces[*at]).collect::<Vec<_>>());
        let mut plan = Self::columns(graph, shelves, widths, &counts);
        plan.ways = vec![Way::default(); routes.len()];
        for (at, track) in kept.iter().zip(track) {
            let (shelf, gutter) = pieces[*at].key;
            plan.ways[at / 2].x[at % 2] = plan.gutters[shelf][gutter] + (track + 1) * TRACK;
        }
        plan.rows(shelves, routes);
        plan
    }

    /// Where lanes and gutters begin.
    fn columns(
        graph: &Graph,
        shelves: &Shelves,
        widths: &[i32],
        counts: &BTreeMap<(usize, usize), i32>,
    ) -> Self {
        let (mut gutters, mut lanes) = (Vec::new(), Vec::new());
        let mut width = 0;
        for (shelf, row) in shelves.rows.iter().enumerate() {
            let (mut starts, mut begins, mut x) = (Vec::new(), Vec::new(), 0);
            for gutter in 0..=row.len() {
                let pad = if is_boundary(graph, row, gutter) { PAD } else { 0 };
                x += if gutter > 0 { pad } else { 0 };
                starts.push(x);
                let count = counts.get(&(shelf, gutter)).copied().unwrap_or(0);
                x += ((count + 1) * TRACK).max(GAP);
                if let Some(task) = row.get(gutter) {
                    x += pad;
                    begins.push(x);
                    x += widths[*task];
                }
            }
            width = x.max(width);
            gutters.push(starts);
            lanes.push(begins);
        }
        let (corridors, ways) = (Vec::new(), Vec::new());
        Self { gutters, lanes, corridors, shelves: Vec::new(), ways, size: (width, 0) }
    }

    /// Where corridors and shelves begin.
    fn rows(&mut self, shelves: &Shelves, routes: &[Route]) {
        let far = |route: &&Route| route.corridors.is_some_and(|[a, b]| a != b);
        let margins = routes.iter().filter(far).filter_map(|route| route.corridors);
        let margins = margins.map(|[a, b]| Piece { key: (), from: a as i32, to: b as i32 });
        let (track, counts) = tracks(&margins.collect::<Vec<_>>());
        let at = routes.iter().zip(&mut self.ways).filter(|(route, _)| far(route));
        for ((_, way), track) in at.zip(track) {
            way.margin = self.size.0 + (track + 1) * TRACK;
        }
        let margin = counts.values().next().map_or(0, |count| (count + 1) * TRACK);
        let mut pieces = Vec::new();
        let mut owners = Vec::new();
        for (number, (route, way)) in routes.iter().zip(&self.ways).enumerate() {
            let Some([a, b]) = route.corridors else { continue };
            let parts: &[_] = match a == b {
                true => &[(a, way.x[0], way.x[1], 0)],
                false => &[(a, way.x[0], way.margin, 0), (b, way.margin, way.x[1], 1)],
            };
            for (key, from, to, end) in parts {
                pieces.push(Piece { key: *key, from: *from, to: *to });
                owners.push((number, *end));
            }
        }
        let (track, counts) = tracks(&pieces);
        let mut y = 0;
        for corridor in 0..=shelves.rows.len() {
            self.corridors.push(y);
            let count = counts.get(&corridor).copied().unwrap_or(0);
            y += ((count + 1) * TRACK).max(GAP);
            if let Some(height) = shelves.heights.get(corridor) {
                self.shelves.push(y);
                y += HOST_HEAD + height + PAD;
            }
        }
        for ((piece, (route, end)), track) in pieces.iter().zip(owners).zip(track) {
            let at = self.corridors[piece.key] + (track + 1) * TRACK;
            self.ways[route].y[end] = at;
            if routes[route].corridors.is_some_and(|[a, b]| a == b) {
                self.ways[route].y[1] = at;
            }
        }
        self.size = (self.size.0 + margin, y);
    }

    fn layout(
        &self,
        graph: &Graph,
        lanes: &[Swimlane],
        widths: &[i32],
        shelves: &Shelves,
        routes: &[Route],
    ) -> Layout {
        let mut layout = Layout { width: self.size.0, height: self.size.1, ..Layout::default() };
        for (task, lane) in lanes.iter().enumerate() {
            let (shelf, at) = shelves.of[task];
            let (x, y) = (self.lanes[shelf][at], self.shelves[shelf] + HOST_HEAD);
            let moved = |(dx, dy): &(i32, i32)| (x + dx, y + dy);
            let (width, height) = (widths[task], lane.height);
            layout.lanes.push(Frame { x, y, width, height });
            layout.labels.push(lane.labels.iter().map(|dx| x + dx).collect());
            layout.nodes.push(lane.nodes.iter().map(moved).collect());
            let edges = lane.edges.iter();
            let edges = edges.map(|e| Edge { way: e.way.iter().map(moved).collect(), ..*e });
            layout.edges.push(edges.collect());
        }
        for (shelf, row) in shelves.rows.iter().enumerate() {
            for group in row.chunk_by(|a, b| graph.tasks[*a].host == graph.tasks[*b].host) {
                let (first, last) = (layout.lanes[group[0]], layout.lanes[group[group.len() - 1]]);
                let (x, y) = (first.x - PAD, self.shelves[shelf]);
                let width = last.x + last.width + PAD - x;
                let height = HOST_HEAD + shelves.heights[shelf] + PAD;
                let frame = Frame { x, y, width, height };
                layout.hosts.push((graph.tasks[group[0]].host, frame, first.width));
            }
        }
        for (route, way) in routes.iter().zip(&self.ways) {
            layout.wires.push(corners(graph, route, way, shelves, &layout));
        }
        layout
    }
}

/// Whether a gutter lies between two hosts' boxes, or outside of all.
fn is_boundary(graph: &Graph, row: &[usize], gutter: usize) -> bool {
    let host = |at: Option<&usize>| at.map(|task| graph.tasks[*task].host);
    let before = gutter.checked_sub(1).and_then(|at| row.get(at));
    host(before) != host(row.get(gutter))
}

/// The corners of a wire.
fn corners(
    graph: &Graph,
    route: &Route,
    way: &Way,
    shelves: &Shelves,
    layout: &Layout,
) -> Vec<(i32, i32)> {
    let [from, to] = [0, 1].map(|end| {
        let (task, node) = route.ends[end];
        let is_right = route.gutters[end].1 > shelves.of[task].1;
        let (x, y) = layout.nodes[task][node];
        let (dx, dy) = stub(graph, route.ends[end], end, is_right);
        (x + dx, y + dy)
    });
    let mut corners = vec![from, (way.x[0], from.1)];
    match route.corridors {
        None => corners.push((way.x[0], to.1)),
        Some([a, b]) => {
            corners.push((way.x[0], way.y[0]));
            if a != b {
                corners.extend([(way.margin, way.y[0]), (way.margin, way.y[1])]);
            }
            corners.extend([(way.x[1], way.y[1]), (way.x[1], to.1)]);
        }
    }
    corners.push(to);
    corners
}
