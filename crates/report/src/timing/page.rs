//! The page on a time-flow graph.

use super::arrivals::{Arrivals, Cell, arrivals};
use super::chains::{ChainView, chain_view};
use super::schedules::{ScheduleView, schedule_view};
use super::words::{self, Finding, letter};
use super::{draw, timing};
use crate::page::Page;
use crate::text::counted;
use onbeat_model::timing::{Composability, Level, TimingReport};
use serde::Serialize;

const PAGE: Page = Page {
    kicker: "time-flow graph",
    body: include_str!("../../assets/timing.html"),
    notes: "Times are exact to the nanosecond. docs/time-flow-graphs.md has the rules by which \
        they are computed.",
    styles: &[draw::STYLE, include_str!("../../assets/timing.css")],
    script: include_str!("../../assets/timing.js"),
    has_charts: false,
};
/// The most rows of one task's table.
const ROWS: usize = 40;

#[derive(Serialize)]
struct View {
    /// For the style sheet, as a badge, and what follows it.
    verdict: (&'static str, &'static str, String),
    culprits: Vec<FindingView>,
    about: Vec<(&'static str, String)>,
    levels: Vec<LevelView>,
    misses: Vec<FindingView>,
    troubles: Vec<FindingView>,
    chains: Vec<ChainView>,
    schedules: Vec<ScheduleView>,
    has_proposed: bool,
}

#[derive(Serialize)]
struct FindingView {
    what: String,
    when: String,
    path: String,
}

/// What is shown of one level.
#[derive(Serialize)]
struct LevelView {
    id: &'static str,
    name: &'static str,
    about: String,
    /// SVG.
    graph: String,
    /// Those that are not the program level's.
    culprits: Vec<FindingView>,
    tables: Vec<TableView>,
}

/// The arrivals and releases of one task.
#[derive(Serialize)]
struct TableView {
    task: usize,
    name: String,
    host: String,
    columns: Vec<ColumnView>,
    rows: Vec<(String, Vec<CellView>)>,
    left_out: usize,
    closed: String,
}

#[derive(Serialize)]
struct ColumnView {
    node: String,
    which: char,
    letter: Option<char>,
    place: String,
    title: String,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    class: &'static str,
    uncertain: bool,
}

/// One self-contained page: whether the system is composable, its graph, arrivals and releases,
/// chains, deadlines and processors. It asks nothing of the network.
pub fn html(study: &TimingReport) -> String {
    PAGE.render(&study.name, &view(study), &())
}

fn view(study: &TimingReport) -> View {
    let graph = &study.graph;
    let (verdict, how) = words::verdict(study);
    let class = match study.program.verdict() {
        Composability::Composable => "kept",
        Composability::NotComposable => "broken",
        Composability::Unproven { .. } => "no-promise",
    };
    let mut culprits = words::culprits(graph, &study.program);
    culprits.extend(words::open(graph, &study.program));
    let schedules = study.schedules.iter().map(|schedule| schedule_view(study, schedule));
    let schedules: Vec<_> = schedules.collect();
    View {
        verdict: (class, verdict, how),
        culprits: findings(culprits),
        about: about(study),
        levels: vec![level(study, Level::Program), level(study, Level::Platform)],
        misses: findings(words::misses(graph, &study.platform)),
        troubles: findings(words::troubles(graph, &study.platform)),
        chains: study.chains.iter().map(|chain| chain_view(graph, chain)).collect(),
        has_proposed: schedules.iter().flat_map(|s| &s.tasks).any(|task| task.is_proposed),
        schedules,
    }
}

fn findings(found: Vec<Finding>) -> Vec<FindingView> {
    let view = |Finding { what, when, path }| FindingView { what, when, path };
    found.into_iter().map(view).collect()
}

fn about(study: &TimingReport) -> Vec<(&'static str, String)> {
    let graph = &study.graph;
    let nodes: usize = graph.tasks.iter().map(|task| task.nodes.len()).sum();
    let named = graph.tasks.iter().flat_map(|task| &task.nodes);
    let points = named.filter(|node| letter(&node.kind) == Some('p')).count();
    vec![
        ("Hosts", graph.hosts.len().to_string()),
        ("Tasks", graph.tasks.len().to_string()),
        ("Nodes", format!("{nodes}, {}", counted(points, "timing point", "timing points"))),
        ("Channels", graph.channels.len().to_string()),
    ]
}

fn level(study: &TimingReport, level: Level) -> LevelView {
    let (id, name, about) = match level {
        Level::Program => ("program", "Program level", "Logical time: code takes none."),
        Level::Platform => (
            "platform",
            "Platform level",
            "Code takes its execution times, tasks wait for processors, sleeps end late.",
        ),
    };
    let known = words::culprits(&study.graph, &study.program);
    let mut culprits = words::culprits(&study.graph, timing(study, level));
    culprits.retain(|finding| !known.contains(finding));
    let tables = (0..study.graph.tasks.len()).map(|task| table(study, level, task));
    LevelView {
        id,
        name,
        about: about.to_owned(),
        graph: draw::svg(study, level, ""),
        culprits: findings(culprits),
        tables: tables.filter(|table| !table.rows.is_empty()).collect(),
    }
}

fn table(study: &TimingReport, level: Level, number: usize) -> TableView {
    let task = &study.graph.tasks[number];
    let Arrivals { columns, rows, left_out, closed } =
        arrivals(study, level, number, (u32::MAX, ROWS));
    let column = |column: &super::arrivals::Column| {
        let node = &task.nodes[column.node];
        let phrase = words::phrase(&study.graph, node);
        let which = if column.is_release { "done" } else { "begins" };
        ColumnView {
            node: format!("{number}-{}", column.node),
            which: if column.is_release { 'R' } else { 'A' },
            letter: letter(&node.kind),
            place: node.place.clone(),
            title: format!("{}: {phrase}, {which}", words::place(task, column.node)),
        }
    };
    let host = study.graph.hosts.get(task.host).map(|host| host.name.clone());
    TableView {
        task: number,
        name: task.name.clone(),
        host: host.unwrap_or_default(),
        columns: columns.iter().map(column).collect(),
        rows: rows.into_iter().map(|(it, cells)| (it, cells.iter().map(cell).collect())).collect(),
        left_out,
        closed,
    }
}

fn cell(cell: &Cell) -> CellView {
    let class = match (cell.is_late, cell.is_open) {
        (true, _) => "late",
        (false, true) => "open",
        (false, false) => "",
    };
    CellView { text: cell.text.clone(), class, uncertain: cell.is_uncertain }
}
