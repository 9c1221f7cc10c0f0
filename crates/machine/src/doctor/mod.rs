//! Looks at a machine, read only, and says what affects a system's guarantees.
//!
//! ```text
//! Machine ─┐
//!          ├─ Facts::collect ──→ Facts ─┐
//! calls   ─┘                            ├─ judge ──→ findings ──→ verdicts
//!               System, Plan ──→ Wanted ┘
//! ```
//! Only the edge on the left touches the machine. Facts are plain data, which may come from another
//! machine; what is made of them is a pure function. There is one file for each area: what it
//! collects, its checks, and how it judges.

mod calls;
mod clocksource;
mod config;
mod facts;
mod feasible;
mod finding;
mod interrupts;
mod isolation;
mod judge;
mod kernel;
mod nic;
mod power;
mod process;
mod qdiscs;
mod script;
mod stalls;
mod tasks;
#[cfg(test)]
mod tests;
mod throttling;
mod time;
mod verdict;
mod virtualisation;
mod wanted;

pub use calls::{Calls, KernelClock, Ptp4l};
pub use clocksource::Clocksource;
pub use config::Config;
pub use facts::{FACTS_FILE, Fact, Facts, FactsError};
pub use finding::{Area, Check, Finding, Need, State};
pub use interrupts::{Interrupts, Line};
pub use isolation::Isolation;
pub use kernel::Kernel;
pub use nic::{Interface, Vlan};
pub use power::{Cpu, Power};
pub use process::{Process, Thread};
pub use qdiscs::{Qdisc, Tried};
pub use script::lint;
pub use tasks::{Policy, Task};
pub use throttling::Throttling;
pub use time::{Daemon, Daemons};
pub use verdict::{Verdict, verdicts, worst};
pub use virtualisation::Virtualisation;
pub use wanted::{NoSuchHost, Program, Promise, PromiseKind, Wanted};

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
pub fn judge(facts: &Facts, wanted: Option<&Wanted>) -> Vec<Finding> {
    let general = Wanted::default();
    let mut judge = judge::Judge::new(facts, wanted.unwrap_or(&general));
    kernel::judge(&mut judge);
    virtualisation::judge(&mut judge);
    clocksource::judge(&mut judge);
    throttling::judge(&mut judge);
    power::judge(&mut judge);
    isolation::judge(&mut judge);
    interrupts::judge(&mut judge);
    nic::judge(&mut judge);
    time::judge(&mut judge);
    process::judge(&mut judge);
    let mut findings = judge.into_findings();
    for finding in &mut findings {
        finding.fix = feasible::fix(facts, finding);
    }
    findings
}
