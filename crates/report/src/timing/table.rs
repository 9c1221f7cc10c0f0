//! What a terminal shows: the verdict, a table for each task, and what else was found.

use super::arrivals::{Arrivals, Cell, arrivals, heading};
use super::chains::{ChainView, chain_view};
use super::words::{self, Finding};
use crate::grid::{grid, ruled};
use crate::text::counted;
use comfy_table::CellAlignment;
use onbeat_model::timing::{Level, Schedule, TimingReport};

/// How many columns stand side by side.
const COLUMNS: usize = 8;
/// The most rows of one task.
const ROWS: usize = 40;

/// The verdict, the arrivals and releases of each task up to an iteration of its outermost loops,
/// chains, processors and what may go wrong.
pub fn table(study: &TimingReport, level: Level, iterations: u32) -> String {
    let timing = super::timing(study, level);
    let (verdict, how) = words::verdict(study);
    let mut parts = vec![format!("{}{} {how}", verdict[..1].to_uppercase(), &verdict[1..])];
    let unbounded = words::culprits(&study.graph, &study.program);
    parts.extend(findings("no bound", &unbounded));
    parts.extend(findings("not proven", &words::open(&study.graph, timing)));
    let mut has_more = [false; 2];
    for task in 0..study.graph.tasks.len() {
        let arrivals = arrivals(study, level, task, (iterations, ROWS));
        has_more[0] |= cells(&arrivals).any(|cell| cell.is_uncertain);
        has_more[1] |= cells(&arrivals).any(|cell| cell.is_late);
        parts.extend(of_task(study, task, &arrivals));
    }
    let notes = ["?: not in every execution", "!: the deadline may be missed"];
    let notes: Vec<_> = notes.into_iter().zip(has_more).filter(|(_, has)| *has).collect();
    if !notes.is_empty() {
        parts.push(notes.iter().map(|(note, _)| *note).collect::<Vec<_>>().join("\n"));
    }
    if level == Level::Platform {
        let mut more = words::culprits(&study.graph, timing);
        more.retain(|finding| !unbounded.contains(finding));
        parts.extend(findings("no bound at platform level", &more));
    }
    parts.extend(findings("late", &words::misses(&study.graph, &study.platform)));
    parts.extend(findings("trouble", &words::troubles(&study.graph, timing)));
    parts.extend(findings("deadlock", &words::locks(study)));
    let chains: Vec<_> = study.chains.iter().map(|chain| chain_view(&study.graph, chain)).collect();
    parts.extend((!chains.is_empty()).then(|| self::chains(&chains)));
    parts.extend(study.schedules.iter().map(|schedule| self::schedule(study, schedule)));
    let assumed: Vec<_> = study.assumptions.iter().map(|it| format!("assumed: {it}")).collect();
    parts.extend((!assumed.is_empty()).then(|| assumed.join("\n")));
    parts.join("\n\n")
}

fn cells(arrivals: &Arrivals) -> impl Iterator<Item = &Cell> {
    arrivals.rows.iter().flat_map(|(_, cells)| cells)
}

fn findings(kind: &str, found: &[Finding]) -> Option<String> {
    let lines: Vec<_> = found.iter().map(|f| format!("{kind}: {}", words::line(f))).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The table of a task, in parts where it has many columns.
fn of_task(study: &TimingReport, number: usize, arrivals: &Arrivals) -> Option<String> {
    let task = &study.graph.tasks[number];
    if arrivals.rows.is_empty() {
        return None;
    }
    let host = study.graph.hosts.get(task.host).map(|host| host.name.as_str()).unwrap_or_default();
    let at = if host.is_empty() { String::new() } else { format!(" at {host}") };
    let mut text = format!("{}{at}, ms", task.name);
    for from in (0..arrivals.columns.len()).step_by(COLUMNS) {
        let to = (from + COLUMNS).min(arrivals.columns.len());
        let columns = &arrivals.columns[from..to];
        let names = columns.iter().map(|column| heading(task, *column));
        let headings: Vec<String> = ["iteration".to_owned()].into_iter().chain(names).collect();
        let mut grid = grid(&headings.iter().map(String::as_str).collect::<Vec<_>>());
        for (iteration, cells) in &arrivals.rows {
            let cells = cells[from..to].iter().map(marked);
            grid.add_row([iteration.clone()].into_iter().chain(cells));
        }
        for column in grid.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        text = format!("{text}\n{}", ruled(&grid));
    }
    if arrivals.left_out > 0 {
        text = format!("{text}\nand {}", counted(arrivals.left_out, "more row", "more rows"));
    }
    if !arrivals.closed.is_empty() {
        text = format!("{text}\n{}", arrivals.closed);
    }
    Some(text)
}

fn marked(cell: &Cell) -> String {
    let late = if cell.is_late { "!" } else { "" };
    let uncertain = if cell.is_uncertain { "?" } else { "" };
    format!("{}{late}{uncertain}", cell.text)
}

fn chains(chains: &[ChainView]) -> String {
    let mut grid =
        grid(&["chain", "latency", "deadline", "age", "at most", "reaction", "at most", "verdict"]);
    let mut most = String::new();
    for chain in chains {
        let [latency, age, reaction] = &chain.judged;
        grid.add_row([
            &chain.name,
            &latency.found,
            &latency.asked,
            &age.found,
            &age.asked,
            &reaction.found,
            &reaction.asked,
            &chain.verdict.1.to_owned(),
        ]);
        if let Some(term) = chain.dominating() {
            let words = format!(
                "\n{}: most of it is {}, {} ({})",
                chain.name, term.what, term.span, term.share
            );
            most.push_str(&words);
        }
    }
    format!("{}{most}", ruled(&grid))
}

fn schedule(study: &TimingReport, schedule: &Schedule) -> String {
    let view = super::schedules::schedule_view(study, schedule);
    let mut grid =
        grid(&["task", "priority", "period", "deadline", "wcet", "response", "slack", "misses"]);
    for task in &view.tasks {
        let misses =
            if task.is_met { task.misses.clone() } else { format!("late {}", task.misses) };
        grid.add_row([
            &task.name,
            &task.priority,
            &task.period,
            &task.deadline,
            &task.wcet,
            &task.response,
            &task.slack,
            &misses.trim_end().to_owned(),
        ]);
    }
    let proposed = match view.tasks.iter().any(|task| task.is_proposed) {
        true => "\n*: proposed, nothing states it",
        false => "",
    };
    format!("{}: {}\n{}{proposed}", view.name, view.summary, ruled(&grid))
}
