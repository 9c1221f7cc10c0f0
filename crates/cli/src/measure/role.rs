//! Has this machine's clock lead or follow for a scenario: by priority1 of ptp4l, with which the
//! network's clocks select their grandmaster (IEEE 1588-2008 clause 9.3.2).

use crate::tune::Tuned;
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{PortState, PtpStatus, ask_ptp4l, survey_ptp4l};
use onbeat_machine::benchmarks::Role;
use onbeat_machine::tune::{Change, PTP4L, Target};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long the clocks have to select another grandmaster and to follow it: Announce messages are
/// missed for three seconds, and a clock is calibrated before it follows.
const WITHIN: Span = Span::from_s(60);
const LOOK_AGAIN: Span = Span::from_ms(100);

/// What ptp4l says, if it answers.
pub(super) fn status(machine: &Machine) -> Option<PtpStatus> {
    ask_ptp4l(&machine.path(PTP4L.0), PTP4L.1).ok()
}

/// What this machine's clock does now; `None` if neither, or if nothing is known.
pub(super) fn present(machine: &Machine) -> Option<Role> {
    match status(machine)?.state {
        PortState::Slave => Some(Role::Slave),
        PortState::Master => Some(Role::Master),
        _ => None,
    }
}

/// The priority1 with which ptp4l comes to lead, or to follow; else why it cannot.
pub(super) fn priority(machine: &Machine, role: Role) -> Result<u8, String> {
    if role == Role::Slave {
        return Ok(u8::MAX);
    }
    let of = |profile| survey_ptp4l(&machine.path(PTP4L.0), PTP4L.1, profile).ok();
    let survey = of(1).or_else(|| of(0)).ok_or("ptp4l does not say who leads")?;
    if !survey.may_lead {
        return Err("ptp4l may not lead: it has slaveOnly 1 or gmCapable 0".to_owned());
    }
    let before = survey.grandmaster_priority1.checked_sub(1);
    before.ok_or_else(|| "the grandmaster has priority1 0, before which there is none".to_owned())
}

/// Has ptp4l lead, or follow, and says by what; else why it does not, and then it is as before.
pub(super) fn take(
    machine: &Machine,
    tuned: &Tuned,
    role: Role,
    stop: &AtomicBool,
) -> Result<String, String> {
    let priority = priority(machine, role)?;
    let (does, not) = match role {
        Role::Master => ("leads", "does not come to lead"),
        Role::Slave => ("follows", "finds no other clock to follow"),
    };
    let what = format!("ptp4l {does} by priority1 {priority}");
    let (target, new) = (Target::Priority1, Some(priority.to_string()));
    let change = Change { what, target, old: None, new, may_refuse: false, reboot: false };
    tuned.add(&change).map_err(|error| error.to_string())?;
    if comes(machine, role, stop) {
        return Ok(change.what);
    }
    give_back(machine, tuned, role, stop);
    Err(format!("ptp4l {not} with priority1 {priority} within {WITHIN}"))
}

/// Gives ptp4l its priority1 back, and waits until it has left a role.
pub(super) fn give_back(machine: &Machine, tuned: &Tuned, role: Role, stop: &AtomicBool) {
    let other = if role == Role::Master { Role::Slave } else { Role::Master };
    match tuned.remove(&Target::Priority1) {
        Ok(true) => _ = comes(machine, other, stop), // what the next scenario lacks is said of it
        Ok(false) => {} // what failed was told, and the end tries again
        Err(error) => crate::terminal::say(format_args!("onbeat: {error}")), // the end tries again
    }
}

fn comes(machine: &Machine, role: Role, stop: &AtomicBool) -> bool {
    let until = MonoTime::now() + WITHIN;
    while present(machine) != Some(role) {
        if MonoTime::now() > until || stop.load(Ordering::Relaxed) {
            return false;
        }
        pause(LOOK_AGAIN);
    }
    true
}
