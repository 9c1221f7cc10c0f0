//! The paper's nine scenarios (its Table 2) on one machine: what could be measured, what not and
//! why. The contract is version 1, `schema/campaign.schema.json` is made from these types.

use super::document::Measurement;
use crate::contract::{indented, schema_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const CAMPAIGN_FORMAT: &str = "onbeat-campaign";

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
#[schemars(rename = "Scenario")]
pub struct ScenarioOutcome {
    /// Which.
    #[serde(flatten)]
    pub name: ScenarioName,
    /// What came of it.
    pub state: State,
    /// What is missing, and how it can be had.
    pub why: Vec<String>,
    /// What was set on the machine for its time, for a person; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
}

/// A scenario of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignScenario {
    /// Which, and what came of it.
    #[serde(flatten)]
    pub scenario: ScenarioOutcome,
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
