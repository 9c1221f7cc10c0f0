//! The paper's nine scenarios (its Table 2) on one machine: what could be measured, what not and
//! why. The contract is version 1, `schema/campaign.schema.json` is made from these types.

use super::document::{Measurement, Series};
use super::page::machine;
use super::published::IN_WORDS;
use super::table::{shown, wrapped};
use crate::grid::{grid, ruled};
use crate::report::render;
use crate::result::{indented, schema_of};
use minijinja::context;
use minijinja::value::Serde;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const CAMPAIGN_FORMAT: &str = "onbeat-campaign";

const TEMPLATE: &str = include_str!("../../assets/campaign.html");

/// What a scenario is called and what it is, as in Table 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioName {
    /// `RT-SMS-SLAVE`; the directory of its measurement has this name.
    pub id: String,
    /// `none`, `TuneD` or `cpuset`.
    pub isolation: String,
    /// `SMS`: the bridge is grandmaster; `MBS`: a node is.
    pub clock: String,
    /// `slave` or `master`.
    pub node: String,
}

/// What came of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Measured as the paper has it.
    Done,
    /// Measured, but for what is said.
    Partly,
    /// Not measured: the machine is not set up for it.
    Cannot,
}

impl State {
    /// For a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partly => "partly",
            Self::Cannot => "cannot",
        }
    }
}

/// A scenario and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Which.
    #[serde(flatten)]
    pub name: ScenarioName,
    /// What came of it.
    pub state: State,
    /// What is missing, and how it can be had.
    pub why: Vec<String>,
}

/// A scenario of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignScenario {
    /// Which, and what came of it.
    #[serde(flatten)]
    pub scenario: Scenario,
    /// What was measured.
    pub measurement: Option<Measurement>,
}

/// All scenarios on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Always `onbeat-campaign`.
    pub format: String,
    /// Which contract this is: 1.
    pub version: u32,
    /// In the order of Table 2.
    pub scenarios: Vec<CampaignScenario>,
}

impl Campaign {
    /// A campaign under the current contract.
    pub fn new(scenarios: Vec<CampaignScenario>) -> Self {
        Self { format: CAMPAIGN_FORMAT.into(), version: 1, scenarios }
    }

    /// As indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        indented(self)
    }
}

/// The JSON Schema of [`Campaign`]. Ends with a line feed.
pub fn campaign_schema() -> String {
    schema_of::<Campaign>()
}

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
}

fn row(scenario: &CampaignScenario) -> RowView {
    let figure = |(_, name, of): &Column| {
        let series = scenario.measurement.as_ref().and_then(|measured| measured.series(name));
        series.map_or("–".to_owned(), |series| shown(of(series)))
    };
    let Scenario { name, state, why } = &scenario.scenario;
    RowView {
        id: name.id.clone(),
        about: format!("isolation {}, {}, {}", name.isolation, name.clock, name.node),
        state: state.as_str(),
        linked: scenario.measurement.is_some(),
        cells: COLUMNS.iter().map(figure).collect(),
        why: why.clone(),
    }
}

fn headings() -> Vec<&'static str> {
    ["scenario", "state"].into_iter().chain(COLUMNS.iter().map(|(heading, ..)| *heading)).collect()
}

/// For a terminal: a line for each scenario, the paper's below, and why what is missing is.
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
        system => "The paper's nine scenarios",
        about => about,
        headings => headings(),
        rows => Serde(campaign.scenarios.iter().map(row).collect::<Vec<_>>()),
        published => PUBLISHED.map(|(of, cells)| (of, cells.to_vec())).to_vec(),
        in_words => IN_WORDS,
    };
    render(TEMPLATE, context! { report => view }, &(), "", "")
}
