//! The verb `lf`: models in Lingua Franca.

mod bounds;
mod compared;
mod diff;
mod import;
mod model;
mod patch;
mod simulate;
mod sizes;

use crate::exit::Exit;
use bounds::BoundsArguments;
use clap::Subcommand;
use import::ImportArguments;
use simulate::SkeletonArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum LfVerb {
    /// Writes the description of a federation's channels from its model
    #[command(after_help = "Examples:
  onbeat lf import sensor.lf
  onbeat lf import sensor.lf --with sensor.toml -o system.toml
  onbeat lf import sensor.lf -o . --table .
  onbeat lf import sensor.lf --with sensor.toml --json

One channel for each connected pair of ports of federates on different stations. What the model does
not say, the sidecar does: topology, stations, classes, sizes, rates, execution times. What is not
known is asked for by name; the exit code is then 1 (docs/lingua-franca.md).")]
    Import(ImportArguments),
    /// Bounds waits, chains and processors of a federation
    #[command(after_help = "Examples:
  onbeat lf bounds sensor.lf --with sensor.toml
  onbeat lf bounds sensor.lf --with sensor.toml --local 50us --json
  onbeat lf bounds sensor.lf --patch - | patch -p0

For each federate the smallest @maxwait without tardy messages, beside the model's. For each chain
of reactions the best and the worst time. Execution times are @wcet comments or the sidecar's. What
is not known makes figures that depend on it unknown, with the reason. --patch writes @maxwait and
@absent_after into the model. The exit code is 3 if a wait is too short, a deadline may be missed or
a station is overloaded; 6 if that is not known. With --patch it is that of the patched model.")]
    Bounds(BoundsArguments),
    /// Executes a federation's skeleton in virtual time
    #[command(after_help = "Examples:
  onbeat lf simulate sensor.lf --with sensor.toml
  onbeat lf simulate sensor.lf --with sensor.toml --maxwait computed --runs 100 --out measured
  onbeat lf simulate sensor.lf --with sensor.toml --duration 1s --seed 8 --json

Executes no code of the model: reactions take their execution times and set their ports, messages
cross the simulated network. Shows what was measured beside its bounds: chains, tardy messages,
missed deadlines, losses. In runs 0, 2, 4, … executions, wake-ups and clock errors are at their
extremes, in the others they are drawn. The exit code is 3 if a bound is exceeded, a message is
tardy or a deadline missed; 6 if a bound is not known (docs/lingua-franca.md).")]
    Simulate(SkeletonArguments),
}

/// Does what is asked for.
pub(crate) fn lf(what: &LfVerb) -> anyhow::Result<Exit> {
    match what {
        LfVerb::Import(arguments) => import::import(arguments),
        LfVerb::Bounds(arguments) => bounds::bounds(arguments),
        LfVerb::Simulate(arguments) => simulate::simulate(arguments),
    }
}
