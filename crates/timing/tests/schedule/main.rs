//! Schedulability: equal to published examples, never below a simulation of random task sets, and
//! equal to it where the theory is exact.

mod dice;
mod graphs;
mod messages;
mod pipelines;
mod random;
mod simulation;
mod textbook;
