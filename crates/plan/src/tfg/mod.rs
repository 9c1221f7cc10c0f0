//! What time-flow graphs do in time; `docs/time-flow-graphs.md`.
