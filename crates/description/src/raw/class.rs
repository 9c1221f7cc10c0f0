//! Names of stream classes.

use schemars::JsonSchema;
use serde::Deserialize;

/// A stream class by its name in the description.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) enum ClassName {
    /// SR class A: 2 ms.
    A,
    /// SR class B: 50 ms.
    B,
    /// Scheduled traffic: 100 µs.
    #[serde(rename = "scheduled")]
    Scheduled,
    /// Sporadic traffic behind asynchronous traffic shaping (ATS, 802.1Qcr): 10 ms.
    #[serde(rename = "asynchronous")]
    Asynchronous,
    /// The first of B, A and scheduled that keeps the fixed delay.
    #[serde(rename = "any")]
    Any,
}
