//! What a run sets on one machine for its time, by `tune`: made before it, and taken back after it
//! by whoever is left.

use super::protocol::TuneOrder;
use crate::tune;
use anyhow::{Context, bail};
use onbeat_machine::tune::{
    self as machine, Edge, Event, Identity, Interrupt, Journal, Profile, Requirement, State,
    TuneError, WishError,
};
use onbeat_model::system::{NodeId, System, TuneProfile};
use onbeat_model::time::Span;
use std::ffi::OsString;
use std::path::PathBuf;

/// The most settings that are named in results.
const NAMED: usize = 16;

/// The profile of `tune`; none if nothing is set.
pub(super) fn profile(tune: TuneProfile) -> Option<Profile> {
    match tune {
        TuneProfile::Off => None,
        TuneProfile::None => Some(Profile::None),
        TuneProfile::Cpuset => Some(Profile::Cpuset),
        TuneProfile::TunedLike => Some(Profile::TunedLike),
    }
}

/// What is in force on a machine for the time of a run. Its end takes it back.
pub(super) struct Tuned {
    edge: Edge,
    started_ns: i64,
}

/// A profile on a machine, before it is set.
pub(super) struct Prepared {
    edge: Edge,
    itself: [OsString; 2],
    profile: Profile,
    requirement: Requirement,
    plan: machine::Plan,
}

impl Prepared {
    /// What the profile takes on this machine, whose interface has that name.
    ///
    /// # Errors
    /// It needs another boot, or something that the machine does not have, or settings of another
    /// tune are in force.
    pub(super) fn new(
        order: &TuneOrder,
        system: &System,
        host: NodeId,
        interface: &str,
    ) -> anyhow::Result<Self> {
        let itself = std::env::current_exe().context("this program's own file")?;
        let root = PathBuf::from(order.root.as_deref().unwrap_or("/"));
        let edge = tune::edge(&root, &itself);
        let profile = profile(order.profile).unwrap_or_default();
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
        let of = format!("tune profile {}", profile.as_str());
        let records = machine::read(edge.machine())?;
        let earlier = machine::verify(&edge, &records)?;
        let earlier = earlier.iter().filter(|one| one.state != State::Gone).count();
        if earlier > 0 {
            return Err(anyhow::Error::from(TuneError::Tuned(earlier)).context(of));
        }
        let snapshot = machine::snapshot(&edge, Some(interface), &machine::sessions(), &[]);
        let mut plan = match machine::plan(&snapshot, &requirement) {
            Ok(plan) => plan,
            Err(errors) => {
                let errors: Vec<_> = errors.iter().map(in_words_of_the_file).collect();
                bail!("{of}: {}", errors.join("; "));
            }
        };
        if profile == Profile::TunedLike && !plan.boot.is_empty() {
            bail!(
                "{of} needs a reboot: the kernel was started without {} (`onbeat tune apply \
                 --write-boot` writes them)",
                plan.boot.join(" ")
            );
        }
        plan.settle(&edge).context(of)?;
        let itself = [itself.into(), root.into()];
        Ok(Self { edge, itself, profile, requirement, plan })
    }

    /// Sets all of it, for so long at most, and says what was set.
    ///
    /// # Errors
    /// A setting cannot be made, which is named. Then all is as it was.
    pub(super) fn apply(self, most: Span) -> anyhow::Result<(Option<Tuned>, String)> {
        let Self { edge, itself, profile, requirement, plan } = self;
        let name = profile.as_str();
        let of = || format!("tune profile {name}");
        let mut made = Vec::new();
        let mut refused = Vec::new();
        let mut tuned = None;
        if !plan.changes.is_empty() {
            let never = &mut Interrupt::never();
            let mut journal = Journal::open(edge.machine()).with_context(of)?;
            let started_ns = journal.begin(&edge, name, Some(most), never).with_context(of)?;
            let own = Identity::own()?;
            if let Err(error) = tune::start_guard(&edge, &itself, started_ns, Some(&own)) {
                machine::undo(&edge, journal, never, &mut tune::tell)?;
                return Err(error.context("the process that takes settings back")).with_context(of);
            }
            // Its end takes back what was made, whatever comes.
            let mut this = Tuned { edge, started_ns };
            let mut tell = |event: Event<'_>| match event {
                Event::Made(what) => made.push(what.to_owned()),
                Event::Refused(what, _) => refused.push(what.to_owned()),
                event => tune::tell(event),
            };
            if let Err(error) = machine::apply(&this.edge, journal, &plan.changes, never, &mut tell)
            {
                this.started_ns = 0; // it has taken back what it could
                return Err(error).with_context(of);
            }
            tuned = Some(this);
        }
        let cores = match requirement.cores.is_empty() {
            true => String::new(),
            false => format!(" on processors {}", requirement.cores),
        };
        let mut line = format!("{name}{cores}: {}", listed("set", &made));
        if !refused.is_empty() {
            line += &format!("; {}", listed("refused by the kernel", &refused));
        }
        Ok((tuned, line))
    }
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

/// So many settings, and which.
fn listed(what: &str, names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => format!("nothing {what}"),
        count @ ..=NAMED => format!("{count} {what}: {shown}"),
        count => format!("{count} {what}: {shown} and {} more", count - NAMED),
    }
}

impl Tuned {
    /// The control group that has the isolated processors, if the machine is this one.
    pub(super) fn isolated(&self) -> Option<PathBuf> {
        let machine = self.edge.machine();
        let there = tune::GROUPS.iter().find(|group| machine.is_this() && machine.has(group));
        there.map(PathBuf::from)
    }

    /// Takes it back. What the user should know, if anything.
    pub(super) fn end(&mut self) -> Option<String> {
        let started_ns = std::mem::take(&mut self.started_ns);
        if started_ns == 0 {
            return None;
        }
        let mut left = Vec::new();
        let mut tell = |event: Event<'_>| match event {
            Event::Failed(what, why) => left.push(format!("{what}: {why}")),
            event => tune::tell(event),
        };
        match machine::end(&self.edge, started_ns, &mut tell) {
            Ok(Some(0)) => None,
            Ok(Some(_)) => Some(format!(
                "not all settings could be taken back; that is tried again until it can be: {}",
                left.join("; ")
            )),
            Ok(None) => Some("the profile was taken back before the run was over".to_owned()),
            Err(error) => Some(format!("settings are not taken back yet: {error}")),
        }
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        if let Some(note) = self.end() {
            crate::terminal::say(format_args!("onbeat: {note}"));
        }
    }
}
