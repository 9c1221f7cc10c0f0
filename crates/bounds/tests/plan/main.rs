//! The plan of whole systems, against sums worked out by hand, a small simulation, and the network
//! engine.

mod admission;
mod asynchronous;
mod bounds;
mod build;
mod classes;
mod deadlines;
mod devices;
mod document;
mod engine;
mod exact;
mod load_aware;
mod planner;
mod replication;
mod routes;
mod scheduled;
mod simulation;
mod srp;
