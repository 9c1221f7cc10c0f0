//! A profile of `tune` for the time of something: made before it, and taken back after it by
//! whoever is left.

use super::{GROUPS, edge, start_guard, tell};
use anyhow::{Context, bail};
use onbeat_machine::tune::{
    self as machine, Change, Edge, Ending, Event, Identity, Interrupt, Journal, Plan, Profile,
    Record, Requirement, State, Target, TuneError, WishError,
};
use onbeat_model::time::Span;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The most settings that are named in results.
const NAMED: usize = 16;

/// What is in force on a machine for a time. Its end takes it back.
pub(crate) struct Tuned {
    edge: Edge,
    started_ns: i64,
}

/// A profile on a machine, before it is set.
pub(crate) struct Prepared {
    edge: Edge,
    itself: [OsString; 2],
    requirement: Requirement,
    plan: Plan,
}

impl Prepared {
    /// What a requirement takes on the machine below a root; `words` says what is wrong with it.
    ///
    /// # Errors
    /// It needs another boot, or something that the machine does not have.
    pub(crate) fn new(
        root: &Path,
        requirement: Requirement,
        words: fn(&WishError) -> String,
    ) -> anyhow::Result<Self> {
        let itself = std::env::current_exe().context("this program's own file")?;
        let edge = edge(root, &itself);
        let profile = requirement.profile;
        let of = format!("tune profile {}", profile.as_str());
        let interface = requirement.interface.as_deref();
        let snapshot = machine::snapshot(&edge, interface, &machine::sessions(), &[]);
        let mut plan = match machine::plan(&snapshot, &requirement) {
            Ok(plan) => plan,
            Err(errors) => {
                let errors: Vec<_> = errors.iter().map(words).collect();
                bail!("{of}: {}", errors.join("; "));
            }
        };
        if profile == Profile::TunedLike && !plan.boot.is_empty() {
            bail!(
                "{of} needs a reboot: the kernel was started without {}: `onbeat tune apply \
                 --profile tuned-like --cores {} --write-boot`, `update-grub`, `reboot`, then this \
                 command again",
                plan.boot.join(" "),
                requirement.cores
            );
        }
        plan.settle(&edge).context(of)?;
        let itself = [itself.into(), root.into()];
        Ok(Self { edge, itself, requirement, plan })
    }

    /// Sets all of it, for so long at most, and says what was set. `always`: it is held also where
    /// all is so already, for what is added.
    ///
    /// # Errors
    /// A setting cannot be made, which is named. Then all is as it was.
    pub(crate) fn apply(self, most: Span, always: bool) -> anyhow::Result<(Option<Tuned>, String)> {
        let Self { edge, itself, requirement, plan } = self;
        let name = requirement.profile.as_str();
        let of = || format!("tune profile {name}");
        let mut made = Vec::new();
        let mut refused = Vec::new();
        let mut tuned = None;
        if always || !plan.changes.is_empty() {
            let never = &mut Interrupt::never();
            let mut journal = Journal::open(edge.machine()).with_context(of)?;
            let started_ns = journal.begin(&edge, name, Some(most), never).with_context(of)?;
            let own = Identity::own()?;
            if let Err(error) = start_guard(&edge, &itself, started_ns, Some(&own)) {
                machine::undo(&edge, journal, never, &mut tell)?;
                return Err(error.context("the process that takes settings back")).with_context(of);
            }
            // Its end takes back what was made, whatever comes.
            let mut this = Tuned { edge, started_ns };
            let mut note = |event: Event<'_>| match event {
                Event::Made(what) => made.push(what.to_owned()),
                Event::Refused(what, _) => refused.push(what.to_owned()),
                event => tell(event),
            };
            if let Err(error) = machine::apply(&this.edge, journal, &plan.changes, never, &mut note)
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
    pub(crate) fn isolated(&self) -> Option<PathBuf> {
        let machine = self.edge.machine();
        let there = GROUPS.iter().find(|group| machine.is_this() && machine.has(group));
        there.map(PathBuf::from)
    }

    /// Sets one thing more.
    pub(crate) fn add(&self, change: &Change) -> Result<(), TuneError> {
        machine::add(&self.edge, change)
    }

    /// Takes one thing back that was added, and says whether that was possible.
    pub(crate) fn remove(&self, target: &Target) -> Result<bool, TuneError> {
        machine::remove(&self.edge, target, &mut tell)
    }

    /// What of it is not in force any more, for a person; what was added comes and goes.
    pub(crate) fn changed(&self) -> Option<String> {
        let of_this = |record: &Record| match record {
            Record::Tune { started_ns, .. } => *started_ns == self.started_ns,
            _ => false,
        };
        let all = machine::read(self.edge.machine()).ok()?;
        // What belongs to it follows the line that begins it.
        let at = all.iter().rposition(|record| matches!(record, Record::Tune { .. }));
        let own = &all[at.unwrap_or(0)..];
        let is_added = |number: u32| {
            let added = |record: &Record| match record {
                Record::Begin { change, target, .. } => {
                    *change == number && *target == Target::Priority1
                }
                _ => false,
            };
            own.iter().any(added)
        };
        let is_back = |record: &Record| match record {
            Record::Undone { how, change } => *how != Ending::Gone && !is_added(*change),
            _ => false,
        };
        let is_gone = !own.first().is_some_and(of_this) || own.iter().any(is_back);
        if is_gone {
            return Some("what was set was taken back meanwhile".to_owned());
        }
        let status = machine::verify(&self.edge, &all).ok()?;
        let other = status.iter().filter(|one| one.state == State::Drifted);
        let names: Vec<_> = other.map(|one| one.change.what.clone()).collect();
        (!names.is_empty()).then(|| listed("changed meanwhile", &names))
    }

    /// Takes it back. What the user should know, if anything.
    pub(crate) fn end(&mut self) -> Option<String> {
        let started_ns = std::mem::take(&mut self.started_ns);
        if started_ns == 0 {
            return None;
        }
        let mut left = Vec::new();
        let mut note = |event: Event<'_>| match event {
            Event::Failed(what, why) => left.push(format!("{what}: {why}")),
            event => tell(event),
        };
        match machine::end(&self.edge, started_ns, &mut note) {
            Ok(Some(0)) => None,
            Ok(Some(_)) => Some(format!(
                "not all settings could be taken back; that is tried again until it can be: {}",
                left.join("; ")
            )),
            Ok(None) => Some("the profile was taken back before its time was over".to_owned()),
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
