//! Bounds of federations: never below what the federates' state machines do over the network
//! engine, and close to it where nothing else executes.

mod build;
mod counts;
mod dice;
mod edges;
mod random;
mod run;
mod sound;
mod tight;
mod worst;
