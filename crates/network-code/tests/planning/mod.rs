//! Programs that are planned for the channels of descriptions.

mod alternatives;
mod by_hand;
mod descriptions;
mod engine;
mod random;
mod refusals;
mod simulation;
