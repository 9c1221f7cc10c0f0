//! What a simulation saw beside what the plan promised: JSON, a table for a terminal and one
//! self-contained HTML page.

mod judge;
mod results;
mod table;

pub use results::{
    FORMAT, FlowKind, FlowResult, Latency, ListenerResult, Phases, PortResult, QueueResult,
    Results, SimulationSettings, Term, Totals, VERSION, schema,
};
