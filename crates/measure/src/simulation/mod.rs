//! What a simulation saw beside what the plan promised.

mod evaluate;
mod results;

pub use results::{
    DedicatedResult, Described, FORMAT, FlowKind, FlowResult, Latency, ListenerResult, Phases,
    PortResult, QueueResult, Results, SimulationSettings, Term, Totals, VERSION, described, schema,
};
