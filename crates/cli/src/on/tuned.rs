//! What a run sets on one machine for its time, by `tune`.

use super::protocol::TuneOrder;
use crate::tune::{self, Prepared};
use anyhow::{Context, bail};
use onbeat_machine::tune::{self as machine, Outstanding, Profile, Requirement};
use onbeat_machine::tune::{TuneError, WishError};
use onbeat_model::system::{NodeId, System, TuneProfile};
use std::path::PathBuf;

/// The profile of `tune`; none if nothing is set.
pub(super) fn profile(tune: TuneProfile) -> Option<Profile> {
    match tune {
        TuneProfile::Off => None,
        TuneProfile::None => Some(Profile::None),
        TuneProfile::Cpuset => Some(Profile::Cpuset),
        TuneProfile::TunedLike => Some(Profile::TunedLike),
    }
}

/// What the profile takes on this machine, whose interface has that name.
///
/// # Errors
/// It needs another boot, or something that the machine does not have, or settings of another tune
/// are in force.
pub(super) fn prepared(
    order: &TuneOrder,
    system: &System,
    host: NodeId,
    interface: &str,
) -> anyhow::Result<Prepared> {
    let itself = std::env::current_exe().context("this program's own file")?;
    let root = PathBuf::from(order.root.as_deref().unwrap_or("/"));
    let edge = tune::edge(&root, &itself);
    let profile = profile(order.profile).unwrap_or_default();
    // A boot line from before this boot is what a profile may need, and stays. A campaign's goes
    // with the campaign.
    let boot = machine::boot(edge.machine())?;
    let mut left = machine::outstanding(&machine::read(edge.machine())?);
    left.retain(|one| one.boot == boot || one.target.resumes());
    if !left.is_empty() {
        let of = format!("tune profile {}", profile.as_str());
        let is_line = |one: &Outstanding| one.target.survives_reboot() && !one.target.resumes();
        if profile == Profile::TunedLike && left.iter().any(is_line) {
            bail!(
                "{of} needs a reboot: the boot line is written: `update-grub`, `reboot`, then \
                 this command again"
            );
        }
        return Err(anyhow::Error::from(TuneError::Tuned(left.len())).context(of));
    }
    let isolates = profile != Profile::None;
    let cores = order.cores.iter().copied().filter(|_| isolates);
    let requirement = Requirement {
        profile,
        cores: onbeat_run::machine::CpuList(cores.collect()),
        interface: Some(interface.to_owned()),
        force: order.force,
        priorities: tune::priorities(system, host),
        ..Requirement::default()
    };
    Prepared::new(&root, requirement, in_words_of_the_file)
}

/// What is wrong with a wish, in the words of who wrote a file of machines.
fn in_words_of_the_file(error: &WishError) -> String {
    match error {
        WishError::NoCores(_) => "`tune_cores` is missing".to_owned(),
        WishError::Carries(name, what) => {
            format!("{name} carries {what}, and is not touched without `tune_force = true`")
        }
        error => error.to_string(),
    }
}
