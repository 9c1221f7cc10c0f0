//! The paper's nine scenarios on one machine: a table for a terminal, and a page.

use super::page::machine;
use super::published::IN_WORDS;
use super::table::{shown, wrapped};
use crate::grid::{grid, ruled};
use crate::page::Page;
use minijinja::context;
use minijinja::value::Serde;
use onbeat_measure::measurement::{Campaign, CampaignScenario, ScenarioOutcome, Series, State};
use serde::Serialize;

const PAGE: Page = Page {
    kicker: "the five tests of synchronised time",
    body: include_str!("../../assets/campaign.html"),
    notes: "The JSON has whole nanoseconds.",
    styles: &[],
    script: "",
    has_charts: false,
};

/// Headings, series, and which of their figures the table has.
type Column = (&'static str, &'static str, fn(&Series) -> i64);

const COLUMNS: [Column; 10] = [
    ("LC min", "clock.lc", |series| series.figures.min),
    ("LC max", "clock.lc", |series| series.figures.max),
    ("LC σ", "clock.lc", |series| series.figures.stddev),
    ("GC max", "clock.gc", |series| series.figures.max),
    ("latency LC max", "latency.lc", |series| series.figures.max),
    ("latency GC max", "latency.gc", |series| series.figures.max),
    ("sync σ", "sync.offset", |series| series.figures.stddev),
    ("sync max", "sync.offset", |series| series.figures.max),
    ("load: sync σ", "load.sync.offset", |series| series.figures.stddev),
    ("load: sync max", "load.sync.offset", |series| series.figures.max),
];

/// What the paper says of all its scenarios, and of two of them, in the columns of the table.
const PUBLISHED: [(&str, [&str; 10]); 3] = [
    ("all, about", ["71 ns", "13 µs", "50 ns", "18 µs", "–", "–", "1 µs", "–", "–", "–"]),
    ("RT-SMS", ["–", "–", "–", "–", "–", "–", "–", "–", "3.2 µs", "60 µs"]),
    ("CPUSET-SMS", ["–", "–", "–", "–", "–", "–", "–", "–", "4 µs", "56 µs"]),
];

#[derive(Serialize)]
struct RowView {
    id: String,
    about: String,
    state: &'static str,
    linked: bool,
    cells: Vec<String>,
    why: Vec<String>,
    tuned: Option<String>,
}

fn row(scenario: &CampaignScenario) -> RowView {
    let figure = |(_, name, of): &Column| {
        let series = scenario.measurement.as_ref().and_then(|measured| measured.series(name));
        series.map_or("–".to_owned(), |series| shown(of(series)))
    };
    let ScenarioOutcome { name, state, why, tuned } = &scenario.scenario;
    RowView {
        id: name.id.clone(),
        about: format!("isolation {}, {}, {}", name.isolation, name.clock, name.node),
        state: state.as_str(),
        linked: scenario.measurement.is_some(),
        cells: COLUMNS.iter().map(figure).collect(),
        why: why.clone(),
        tuned: tuned.clone(),
    }
}

fn headings() -> Vec<&'static str> {
    ["scenario", "state"].into_iter().chain(COLUMNS.iter().map(|(heading, ..)| *heading)).collect()
}

/// For a terminal: a line for each scenario, the paper's below, what was set, and why what is
/// missing is.
pub fn campaign_table(campaign: &Campaign) -> String {
    let mut grid = grid(&headings());
    let rows: Vec<_> = campaign.scenarios.iter().map(row).collect();
    for row in &rows {
        let first = [row.id.clone(), row.state.to_owned()];
        grid.add_row(first.into_iter().chain(row.cells.iter().cloned()));
    }
    for (of, cells) in PUBLISHED {
        let first = [format!("↳ {of}"), "published".to_owned()];
        grid.add_row(first.into_iter().chain(cells.map(str::to_owned)));
    }
    let mut text = format!("{}\n\n{}\n", ruled(&grid), wrapped(&format!("↳ {IN_WORDS}")));
    for row in rows {
        if let Some(tuned) = row.tuned {
            text.push_str(&format!("\n{}, tuned: {tuned}", row.id));
        }
        for why in row.why {
            text.push_str(&format!("\n{}, {}: {why}", row.id, row.state));
        }
    }
    text
}

/// The page: the scenarios beside the paper's figures, each with a link to its own page.
pub fn campaign_html(campaign: &Campaign) -> String {
    let measured = campaign.scenarios.iter().find_map(|scenario| scenario.measurement.as_ref());
    let count = |state: State| {
        let count = campaign.scenarios.iter().filter(|of| of.scenario.state == state).count();
        (state.as_str(), count.to_string())
    };
    let mut about = vec![count(State::Done), count(State::Partly), count(State::Cannot)];
    about.extend(measured.map(|of| machine(&of.machine)).unwrap_or_default());
    let view = context! {
        about => about,
        headings => headings(),
        tuned => campaign.scenarios.iter().any(|of| of.scenario.tuned.is_some()),
        rows => Serde(campaign.scenarios.iter().map(row).collect::<Vec<_>>()),
        published => PUBLISHED.map(|(of, cells)| (of, cells.to_vec())).to_vec(),
        in_words => IN_WORDS,
    };
    PAGE.render("The paper's nine scenarios", &view, &())
}
