//! When the tasks of programs do what: time-flow graphs (`docs/time-flow-graphs.md`), and whether
//! tasks that share processors meet their deadlines (`docs/schedulability.md`); and federations of
//! Lingua Franca (`docs/lingua-franca.md`). Pure: the same system and plan give the same table.

pub mod federation;
pub mod schedule;
pub mod tfg;
