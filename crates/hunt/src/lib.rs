//! Random systems that hold the command `onbeat` to its promises, from outside: a description is
//! drawn from a seed, the command reads, bounds and simulates it, and what its JSON says is held
//! against itself. Nothing of the product is linked in.
//!
//! [`draw::description`] can draw everything that the format's schema can say
//! ([`schema::Schema`] knows what that is), [`checker`] looks for broken promises and wrong books,
//! [`shrink`] makes a description with a fault small, [`reduce`] programs with their description,
//! [`mutate`] makes another description of one, [`verbs`] tries whole verbs on spoilt directories.

pub mod checker;
pub mod coverage;
pub mod description;
mod dice;
pub mod draw;
mod fold;
pub mod mutate;
pub mod reduce;
pub mod schema;
pub mod shrink;
pub mod verbs;

pub use description::Description;
pub use dice::Dice;
