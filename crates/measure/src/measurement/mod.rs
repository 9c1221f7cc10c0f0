//! What the five tests of synchronised time measured on a machine (Pérez et al. 2024, section 4):
//! the document, and that of a campaign over the paper's scenarios.

mod campaign;
mod cyclictest;
mod document;
mod figures;
mod stalls;

pub use campaign::{
    CAMPAIGN_FORMAT, Campaign, CampaignScenario, ScenarioName, ScenarioOutcome, State,
    campaign_schema,
};
pub use cyclictest::{NotCyclicTest, cyclictest};
pub use document::{
    Comparison, FORMAT, MachineDescription, Measurement, NodeError, Series, SeriesName, Settings,
    Stalls, Tool, VERSION, read, schema,
};
pub use figures::{Bin, Figures};
pub use stalls::{relative, stalls};
