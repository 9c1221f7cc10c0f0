//! The graph as SVG, in the shapes of the paper.

use super::layout::{Frame, Layout, NodeIndex, layout};
use super::swimlane::{Edge, is_great};
use super::words::{self, is_best_effort, kind_of_channel, letter};
use crate::page::environment;
use crate::topology::shortened;
use minijinja::context;
use minijinja::value::Serde;
use onbeat_model::graph::{ChannelKind, Graph, NodeKind, TaskNode};
use onbeat_model::timing::{Level, Row, Timing, TimingReport};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const TEMPLATE: &str = include_str!("../../assets/graph.svg");
/// How the picture looks.
pub(super) const STYLE: &str = include_str!("../../assets/graph.css");
/// The most characters of a label.
const LABEL_MAX: usize = 28;
/// The most characters of a place that fit into a shape.
const INSIDE_MAX: usize = 4;
/// The most visits of a node that its tooltip tells of.
const VISITS_MAX: usize = 4;
/// Below the picture, for one line of the legend.
const LEGEND: i32 = 24;
/// Before the legend.
const PAD: i32 = 16;
/// How long an arrow's head is, and half of how wide.
const HEAD: (i32, i32) = (8, 4);

/// The picture, in units of its own view box.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    pub(super) width: i32,
    pub(super) height: i32,
    hosts: Vec<Titled>,
    lanes: Vec<Titled>,
    pub(super) lines: Vec<EdgePath>,
    pub(super) nodes: Vec<NodeShape>,
    legend: Vec<Entry>,
}

/// A box with a name above or in it.
#[derive(Debug, Serialize)]
struct Titled {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
    label: String,
    title: String,
}

/// An edge or a wire.
#[derive(Debug, Serialize)]
pub(super) struct EdgePath {
    pub(super) class: String,
    /// Its corners; for the template, the path with these made round.
    #[serde(serialize_with = "as_path")]
    pub(super) way: Vec<(i32, i32)>,
    head: String,
    title: String,
}

#[derive(Debug, Serialize)]
pub(super) struct NodeShape {
    /// By which scripts find it: task and node.
    pub(super) id: String,
    class: String,
    pub(super) shape: &'static str,
    pub(super) x: i32,
    pub(super) y: i32,
    letter: Option<char>,
    place: String,
    pub(super) label: String,
    pub(super) label_x: i32,
    title: String,
}

/// A line of the legend, about shapes or lines of one class.
#[derive(Debug, Serialize)]
struct Entry {
    x: i32,
    y: i32,
    class: &'static str,
    is_line: bool,
    shape: &'static str,
    text: &'static str,
}

/// What may be seen in the picture, and what it means: class, whether it is a line, shape, text.
const LEGENDS: [(&str, bool, &str, &str); 12] = [
    ("point", false, "circle", "timing point"),
    ("fragment", false, "square", "code"),
    ("end", false, "hexagon", "channel end"),
    ("small", false, "diamond", "branch"),
    ("fifo", true, "", "fifochannel"),
    ("network", true, "", "network channel"),
    ("best-effort", true, "", "best-effort channel"),
    ("named", true, "", "channel"),
    ("starts", true, "", "starts a task"),
    ("open", false, "circle", "no bound"),
    ("late", false, "circle", "may be late"),
    ("culprit", true, "", "way on which the bound is lost"),
];

/// The graph with the colours of one level.
pub(super) fn svg(study: &TimingReport, level: Level, style: &str) -> String {
    let picture = picture(study, level);
    let mut environment = environment();
    environment.add_template("graph", TEMPLATE).expect("the picture's template is well-formed");
    let template = environment.get_template("graph").expect("it was added just now");
    let level = match level {
        Level::Program => "program",
        Level::Platform => "platform",
    };
    let view = context! { picture => Serde(picture), style, level, name => study.name.clone() };
    template.render(view).expect("the template names what the view has")
}

/// About how wide a text is drawn: rather too wide than too narrow.
pub(super) fn text_width(characters: usize) -> i32 {
    characters as i32 * 15 / 2
}

/// The label of a node, with its place where that has no room in the shape.
fn label(graph: &Graph, node: &TaskNode) -> String {
    let label = words::label(graph, node);
    let is_outside = letter(&node.kind).is_some() && !fits(node);
    let label = match is_outside {
        true if label.is_empty() => node.place.clone(),
        true => format!("{}: {label}", node.place),
        false => label,
    };
    shortened(&label, LABEL_MAX)
}

fn fits(node: &TaskNode) -> bool {
    words::is_line(node) && node.place.len() <= INSIDE_MAX
}

/// Where everything is, and how it looks.
pub(super) fn picture(study: &TimingReport, level: Level) -> Picture {
    let graph = &study.graph;
    let timing = super::timing(study, level);
    let wires = wires(graph);
    let label_of = |task: usize, node: usize| label(graph, &graph.tasks[task].nodes[node]);
    let width = |task: usize, node: Option<usize>| {
        let text = node.map_or_else(
            || shortened(&graph.tasks[task].name, LABEL_MAX),
            |node| label_of(task, node),
        );
        // A way that leaves at the side of the labels needs some room even without one.
        text_width(text.chars().count().max(2))
    };
    let ends: Vec<(NodeIndex, NodeIndex)> = wires.iter().map(|wire| wire.ends).collect();
    let layout = layout(graph, &width, &ends);
    let marks = Marks::of(timing);
    let mut lines = edges(graph, &layout, &marks);
    for (wire, way) in wires.iter().zip(&layout.wires) {
        let culprit = marks.steps.contains(&wire.ends);
        lines.push(line(format!("wire {}{}", wire.class, on(culprit)), way, wire.title.clone()));
    }
    let mut picture = Picture {
        width: layout.width,
        height: layout.height,
        hosts: hosts(graph, &layout),
        lanes: lanes(graph, &layout),
        lines,
        nodes: shapes(graph, timing, &layout, &marks),
        legend: Vec::new(),
    };
    picture.add_legend();
    picture
}

const fn on(is_culprit: bool) -> &'static str {
    if is_culprit { " culprit" } else { "" }
}

/// A channel from one end to another, or the start of a task.
pub(super) struct Wire {
    /// Writer and reader, or what starts and what is started.
    pub(super) ends: (NodeIndex, NodeIndex),
    /// For the style sheet: fifo, network, best-effort, named, starts.
    pub(super) class: &'static str,
    /// The channel's name.
    pub(super) name: String,
    title: String,
}

/// All pairs of ends that are joined.
pub(super) fn wires(graph: &Graph) -> Vec<Wire> {
    let places = || {
        let tasks = graph.tasks.iter().enumerate();
        tasks.flat_map(|(t, task)| task.nodes.iter().enumerate().map(move |(n, it)| ((t, n), it)))
    };
    let mut wires = Vec::new();
    for (from, node) in places() {
        match node.kind {
            NodeKind::Write { channel: written, .. } => {
                let reads = |node: &TaskNode| match node.kind {
                    NodeKind::Read { channel, .. } => channel == written,
                    _ => false,
                };
                for (to, _) in places().filter(|(_, node)| reads(node)) {
                    let title = channel_title(graph, written, graph.tasks[to.0].host);
                    let class = class_of(&graph.channels[written].kind);
                    let name = graph.channels[written].name.clone();
                    wires.push(Wire { ends: (from, to), class, name, title });
                }
            }
            NodeKind::Run { task } => {
                let names = [from.0, task].map(|task| graph.tasks[task].name.as_str());
                let (name, title) = (String::new(), names.join(" starts "));
                wires.push(Wire { ends: (from, (task, 0)), class: "starts", name, title });
            }
            _ => {}
        }
    }
    wires
}

fn class_of(kind: &ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Fifo { .. } => "fifo",
        ChannelKind::Named => "named",
        ChannelKind::Network(_) if is_best_effort(kind) => "best-effort",
        ChannelKind::Network(_) => "network",
    }
}

/// What is to be said of a channel to a host.
fn channel_title(graph: &Graph, number: usize, host: usize) -> String {
    let channel = &graph.channels[number];
    let name = format!("{} {}", kind_of_channel(&channel.kind), channel.name);
    match &channel.kind {
        ChannelKind::Fifo { capacity } => format!("{name}, holds {capacity}"),
        ChannelKind::Named => name,
        ChannelKind::Network(network) => {
            match network.latencies.iter().find(|(to, _)| *to == host) {
                Some((_, latency)) => format!("{name}, latency {}", words::times(*latency)),
                None => name,
            }
        }
    }
}

/// What the table says of nodes.
struct Marks {
    open: BTreeSet<NodeIndex>,
    late: BTreeSet<NodeIndex>,
    seen: BTreeSet<NodeIndex>,
    /// Nodes of ways on which a bound is lost.
    culprits: BTreeSet<NodeIndex>,
    /// Steps of such ways.
    steps: BTreeSet<(NodeIndex, NodeIndex)>,
}

impl Marks {
    fn of(timing: &Timing) -> Self {
        let place = |row: &Row| (row.task, row.node);
        let is_open = |row: &&Row| row.arrival.hi.is_none() || row.release.hi.is_none();
        let ways = || timing.causes.iter().map(|culprit| &culprit.path);
        let at = |row: &usize| place(&timing.rows[*row]);
        let mut steps: BTreeSet<(NodeIndex, NodeIndex)> = BTreeSet::new();
        for path in ways() {
            steps.extend(path.windows(2).map(|pair| (at(&pair[0]), at(&pair[1]))));
        }
        Self {
            open: timing.rows.iter().filter(is_open).map(place).collect(),
            late: timing.misses.iter().map(|miss| at(&miss.row)).collect(),
            seen: timing.rows.iter().map(place).collect(),
            culprits: ways().flatten().map(at).collect(),
            steps,
        }
    }
}

fn hosts(graph: &Graph, layout: &Layout) -> Vec<Titled> {
    let named = layout.hosts.iter().filter_map(|(host, frame, room)| {
        let name = graph.hosts.get(*host).map(|host| host.name.as_str()).unwrap_or_default();
        (!name.is_empty()).then(|| titled(*frame, *room, name, format!("host {name}")))
    });
    named.collect()
}

fn lanes(graph: &Graph, layout: &Layout) -> Vec<Titled> {
    let tasks = graph.tasks.iter().zip(&layout.lanes);
    let title = |task: &onbeat_model::graph::Task| {
        let parts = [("task ", &task.name), (", program ", &task.program), (", in ", &task.file)];
        let named = parts.into_iter().filter(|(_, name)| !name.is_empty());
        named.map(|(kind, name)| format!("{kind}{name}")).collect::<String>()
    };
    tasks.map(|(task, frame)| titled(*frame, frame.width, &task.name, title(task))).collect()
}

fn titled(frame: Frame, room: i32, name: &str, title: String) -> Titled {
    let Frame { x, y, width, height } = frame;
    let most = (room - 16) * 2 / 15;
    let label = shortened(name, usize::try_from(most).unwrap_or(0).clamp(2, LABEL_MAX));
    Titled { x, y, width, height, label, title }
}

fn edges(graph: &Graph, layout: &Layout, marks: &Marks) -> Vec<EdgePath> {
    let mut lines = Vec::new();
    for (task, edges) in layout.edges.iter().enumerate() {
        for Edge { from, to, way } in edges {
            let culprit = marks.steps.contains(&((task, *from), (task, *to)));
            // Between rows that follow each other, where nothing is beside, no head is needed.
            let mut line = line(format!("edge{}", on(culprit)), way, String::new());
            if !is_great(&graph.tasks[task].nodes[*to].kind) && way.len() == 2 {
                line.head = String::new();
            }
            lines.push(line);
        }
    }
    lines
}

fn line(class: String, way: &[(i32, i32)], title: String) -> EdgePath {
    let mut corners: Vec<(i32, i32)> = way.to_vec();
    corners.dedup();
    let head = match corners.as_slice() {
        [.., before, tip] => head(*before, *tip),
        _ => String::new(),
    };
    EdgePath { class, way: corners, head, title }
}

/// The triangle at the end of an arrow.
fn head(before: (i32, i32), tip: (i32, i32)) -> String {
    let (dx, dy) = ((tip.0 - before.0).signum(), (tip.1 - before.1).signum());
    let (x, y) = (tip.0 - dx * HEAD.0, tip.1 - dy * HEAD.0);
    let (wx, wy) = (dy * HEAD.1, dx * HEAD.1);
    format!("{},{} {},{} {},{}", tip.0, tip.1, x + wx, y + wy, x - wx, y - wy)
}

fn as_path<S: serde::Serializer>(corners: &[(i32, i32)], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rounded(corners))
}

/// A path with round corners.
fn rounded(corners: &[(i32, i32)]) -> String {
    let towards = |from: (i32, i32), to: (i32, i32), most: i32| {
        let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
        let by = most.min(length / 2);
        (from.0 + by * (to.0 - from.0).signum(), from.1 + by * (to.1 - from.1).signum())
    };
    let Some((first, rest)) = corners.split_first() else { return String::new() };
    let mut path = format!("M{} {}", first.0, first.1);
    for (at, corner) in rest.iter().enumerate() {
        match rest.get(at + 1) {
            None => path += &format!("L{} {}", corner.0, corner.1),
            Some(next) => {
                let (a, b) = (towards(*corner, corners[at], 6), towards(*corner, *next, 6));
                path += &format!("L{} {}Q{} {} {} {}", a.0, a.1, corner.0, corner.1, b.0, b.1);
            }
        }
    }
    path
}

fn shapes(graph: &Graph, timing: &Timing, layout: &Layout, marks: &Marks) -> Vec<NodeShape> {
    let mut visits: BTreeMap<NodeIndex, Vec<&Row>> = BTreeMap::new();
    for row in &timing.rows {
        visits.entry((row.task, row.node)).or_default().push(row);
    }
    let mut shapes = Vec::new();
    for (t, task) in graph.tasks.iter().enumerate() {
        for (n, node) in task.nodes.iter().enumerate() {
            let (x, y) = layout.nodes[t][n];
            let (kind, shape) = look(&node.kind);
            let place = (t, n);
            let states = [
                (marks.open.contains(&place), "open"),
                (marks.late.contains(&place), "late"),
                (marks.culprits.contains(&place), "culprit"),
                (!marks.seen.contains(&place) && !marks.seen.is_empty(), "unseen"),
            ];
            let states = states.into_iter().filter(|(is, _)| *is);
            let states: String = states.map(|(_, name)| format!(" {name}")).collect();
            shapes.push(NodeShape {
                id: format!("{t}-{n}"),
                class: format!("{kind}{states}"),
                shape,
                x,
                y,
                letter: letter(&node.kind),
                place: if fits(node) { node.place.clone() } else { String::new() },
                label: label(graph, node),
                label_x: layout.labels[t][n],
                title: title(graph, visits.get(&place).map_or(&[][..], Vec::as_slice), place),
            });
        }
    }
    shapes
}

/// The class and the shape of a node.
const fn look(kind: &NodeKind) -> (&'static str, &'static str) {
    match kind {
        NodeKind::Point { .. } => ("point", "circle"),
        NodeKind::Fragment { .. } => ("fragment", "square"),
        NodeKind::Write { .. } | NodeKind::Read { .. } => ("end", "hexagon"),
        NodeKind::Branch(_) => ("small", "diamond"),
        NodeKind::Any => ("small", "dot"),
        NodeKind::End => ("small", "ring"),
        _ => ("small", "disc"),
    }
}

/// What a node is, and when it is begun and done.
fn title(graph: &Graph, visits: &[&Row], (task, node): NodeIndex) -> String {
    let of = &graph.tasks[task];
    let it = &of.nodes[node];
    let mut text = format!("{}: {}", words::place(of, node), words::phrase(graph, it));
    if let Some(guard) = it.guard {
        text += &format!("; left at the deadline of p{}", of.nodes[guard].place);
    }
    for row in visits.iter().take(VISITS_MAX) {
        let iteration = words::iteration(&row.iteration);
        let iteration = match iteration.is_empty() {
            true => String::new(),
            false => format!("{iteration}: "),
        };
        let [arrival, release] = [row.arrival, row.release].map(words::interval);
        let sure = if row.is_certain { "" } else { ", not in every execution" };
        text += &format!("\n{iteration}begins at {arrival}, done at {release} ms{sure}");
    }
    if visits.len() > VISITS_MAX {
        text += "\n…";
    }
    text
}

impl Picture {
    /// Explains what is in the picture, below it.
    fn add_legend(&mut self) {
        let words = |class: &str, word: &str| class.split(' ').any(|w| w == word);
        let is_there = |(class, is_line, shape, _): &&(&str, bool, &str, &str)| match is_line {
            true => self.lines.iter().any(|line| words(&line.class, class)),
            false if *class == "open" || *class == "late" => {
                self.nodes.iter().any(|node| words(&node.class, class))
            }
            false => self.nodes.iter().any(|node| node.shape == *shape),
        };
        let there: Vec<_> = LEGENDS.iter().filter(is_there).collect();
        let (mut x, mut y) = (PAD, self.height + LEGEND / 2);
        for (class, is_line, shape, text) in there {
            let width = 34 + text_width(text.chars().count()) + 14;
            if x > PAD && x + width > self.width {
                (x, y) = (PAD, y + LEGEND);
            }
            self.legend.push(Entry { x, y, class, is_line: *is_line, shape, text });
            x += width;
            self.width = self.width.max(x);
        }
        self.height = y + LEGEND;
    }
}
