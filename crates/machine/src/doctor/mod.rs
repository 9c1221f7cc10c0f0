//! Looks at a machine, read only, and says what affects a system's guarantees.
//!
//! ```text
//! Machine ─┐
//!          ├─ Facts::collect ──→ Facts ─┐
//! calls   ─┘                            ├─ evaluate ──→ findings ──→ verdicts
//!               System, Plan ──→ Requirements ┘
//! ```
//! Only the edge on the left touches the machine. Facts are plain data, which may come from another
//! machine; what is made of them is a pure function. There is one file for each area: what it
//! collects, its checks, and how it evaluates them.

mod calls;
mod clocksource;
mod config;
mod evaluation;
mod facts;
mod feasible;
mod finding;
mod interrupts;
mod isolation;
mod kernel;
mod nic;
mod power;
mod process;
mod qdiscs;
mod requirements;
mod script;
mod stalls;
mod tasks;
#[cfg(test)]
mod tests;
mod throttling;
mod time;
mod verdict;
mod virtualisation;

pub use calls::{Calls, KernelClock, Ptp4l};
pub use clocksource::Clocksource;
pub use config::Config;
pub use facts::{FACTS_FILE, Fact, Facts, FactsError};
pub use finding::{Area, Check, Finding, Need, State};
pub use interrupts::{InterruptLine, Interrupts};
pub use isolation::Isolation;
pub use kernel::Kernel;
pub use nic::{Interface, Vlan};
pub use power::{Cpu, Power};
pub use process::{Process, Thread};
pub use qdiscs::{Qdisc, Tried};
pub use requirements::{Guarantee, GuaranteeKind, NoSuchHost, Program, Requirements};
pub use script::lint;
pub use tasks::{Policy, Task};
pub use throttling::Throttling;
pub use time::{Daemon, Daemons};
pub use verdict::{Verdict, verdicts, worst};
pub use virtualisation::Virtualisation;

/// Everything that is looked at, area by area.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let areas: [&'static [&'static Check]; 11] = [
        &kernel::CHECKS,
        &virtualisation::CHECKS,
        &clocksource::CHECKS,
        &throttling::CHECKS,
        &power::CHECKS,
        &isolation::CHECKS,
        &interrupts::CHECKS,
        &nic::CHECKS,
        &time::CHECKS,
        &process::CHECKS,
        &script::CHECKS,
    ];
    areas.into_iter().flatten().copied()
}

/// What the facts come to, area by area. Pure. Without a system nothing blocks: what would is
/// advice.
pub fn evaluate(facts: &Facts, requirements: Option<&Requirements>) -> Vec<Finding> {
    let general = Requirements::default();
    let mut evaluation = evaluation::Evaluation::new(facts, requirements.unwrap_or(&general));
    kernel::evaluate(&mut evaluation);
    virtualisation::evaluate(&mut evaluation);
    clocksource::evaluate(&mut evaluation);
    throttling::evaluate(&mut evaluation);
    power::evaluate(&mut evaluation);
    isolation::evaluate(&mut evaluation);
    interrupts::evaluate(&mut evaluation);
    nic::evaluate(&mut evaluation);
    time::evaluate(&mut evaluation);
    process::evaluate(&mut evaluation);
    let mut findings = evaluation.into_findings();
    for finding in &mut findings {
        finding.fix = feasible::fix(facts, finding);
    }
    findings
}
