//! What the five tests of synchronised time measured on a machine (Pérez et al. 2024, section 4):
//! the document, a table for a terminal, one self-contained page, and the same of a campaign over
//! the paper's scenarios.

mod campaign;
mod cyclictest;
mod document;
mod figures;
mod page;
mod published;
mod stalls;
mod table;

pub use campaign::{
    CAMPAIGN_FORMAT, Campaign, CampaignScenario, Scenario, ScenarioName, State, campaign_html,
    campaign_schema, campaign_table,
};
pub use cyclictest::{NotCyclicTest, cyclictest};
pub use document::{
    Comparison, FORMAT, MachineDescription, Measurement, NodeError, Series, SeriesName, Settings,
    Stalls, Tool, VERSION, read, schema,
};
pub use figures::{Bin, Figures};
pub use page::html;
pub use stalls::{relative, stalls};
pub use table::{compared, stalled, table};

/// The values of a series as CSV: one column, in the order in which they were measured if the
/// series is ordered.
pub fn csv(values: &[i64]) -> String {
    let mut text = String::with_capacity(8 * values.len() + 9);
    text.push_str("value_ns\n");
    for value in values {
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text
}
