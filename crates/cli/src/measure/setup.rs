//! What `campaign --apply` sets on the machine for a kind of isolation, and puts back: a profile of
//! `tune`, and for what only a boot can set, the boot line, with what continues after the reboot.

use super::arguments::CampaignArguments;
use super::role;
use crate::chosen::WrongArgument;
use crate::tune::{self, Prepared, Tuned};
use anyhow::{Context, bail, ensure};
use onbeat::clock::{MonoTime, pause};
use onbeat_machine::benchmarks::{Isolated, Isolation};
use onbeat_machine::tune::{
    self as machine, Edge, Helper, Interrupt, Journal, JournalError, Outstanding, Plan, Profile,
    Record, Requirement, TuneError, WishError,
};
use onbeat_model::time::Span;
use onbeat_run::environment::program;
use onbeat_run::machine::{CpuList, Machine};
use rustix::fs::statfs;
use std::path::{Path, PathBuf};

/// How long the guard of a campaign that was killed has to take its settings back.
const GUARD_WITHIN: Span = Span::from_s(10);
const LOOK_AGAIN: Span = Span::from_ms(50);
/// What a reboot needs, below the machine's root, and what each of them is.
const SYSTEMD: &str = "/run/systemd/system";
const SYSTEMCTL: &str = "/usr/bin/systemctl";
const UPDATE: &str = "/usr/sbin/update-grub";
const NEEDED: [(&str, &str); 3] = [
    (SYSTEMD, "systemd, which continues the campaign"),
    (SYSTEMCTL, "systemctl, which reboots"),
    (UPDATE, "update-grub, which gives the boot loader its parameters"),
];
/// What is wrong with systems that boot without what was written.
const BOOTED_WITHOUT: &str =
    "also after a reboot for it, and no other is tried: look at the boot loader's settings";
/// What is wrong with scenarios in which the machine did not stay up.
const RESTARTED: &str =
    "the machine restarted while it was measured: start the campaign again to measure it";
/// What the journal has of a campaign that has begun after its reboot.
const RESUMED: &str = "campaign";
/// The file systems tmpfs and ramfs (statfs(2)).
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// How the machine is for a kind of isolation.
pub(super) enum Ready {
    /// A profile is in force, which the line says.
    Set(Option<Tuned>, String),
    /// Nothing is set: what there is of itself counts.
    AsItIs,
    /// It cannot be had, and why.
    Cannot(String),
    /// The boot line is written: [`Setup::reboot`] is next.
    Reboots,
}

/// The machine that scenarios are set up on.
pub(super) struct Setup<'a> {
    arguments: &'a CampaignArguments,
    root: PathBuf,
    edge: Edge,
    /// A boot with the parameters was tried: none is tried again.
    booted: bool,
    /// This process has written the boot line and what continues: the reboot is next.
    ready: bool,
    /// The machine has restarted since the campaign continued after its reboot.
    restarted: bool,
    /// The boot line of an earlier boot is to be put back.
    written: bool,
    /// It is put back, and the kernel still has its parameters.
    outdated: bool,
}

impl<'a> Setup<'a> {
    /// The machine, which is not looked at yet.
    pub(super) fn new(arguments: &'a CampaignArguments) -> anyhow::Result<Self> {
        let root = std::path::absolute(&arguments.tune_root)?;
        let itself = std::env::current_exe().context("this program's own file")?;
        let edge = tune::edge(&root, &itself);
        Ok(Self {
            arguments,
            root,
            edge,
            booted: arguments.resumed,
            ready: false,
            restarted: false,
            written: false,
            outdated: false,
        })
    }

    /// Looks at what an earlier campaign has left.
    ///
    /// # Errors
    /// There are no such processors; settings of another tune are in force; this user may not set
    /// anything.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        if let Err(why) = self.plan(false) {
            bail!(WrongArgument(why));
        }
        let until = MonoTime::now() + GUARD_WITHIN;
        while !self.continues(MonoTime::now() < until)? {
            pause(LOOK_AGAIN);
        }
        Ok(())
    }

    pub(super) fn machine(&self) -> &Machine {
        self.edge.machine()
    }

    /// The kinds of isolation, in the order that needs the fewest reboots.
    pub(super) fn order(&self) -> [Isolation; 3] {
        match self.booted || self.is_isolated_at_boot() {
            true => [Isolation::Tuned, Isolation::None, Isolation::Cpuset],
            false => [Isolation::None, Isolation::Cpuset, Isolation::Tuned],
        }
    }

    fn is_isolated_at_boot(&self) -> bool {
        !Isolated::of(self.machine()).at_boot.is_empty()
    }

    /// Whether what an earlier campaign has left is such that this one can begin; not yet, if its
    /// guard is at it.
    fn continues(&mut self, patient: bool) -> anyhow::Result<bool> {
        match Journal::open(self.machine()) {
            Err(JournalError::Locked(_)) if patient => return Ok(false),
            journal => drop(journal?),
        }
        let boot = machine::boot(self.machine())?;
        let records = machine::read(self.machine())?;
        let guard = Helper::Guard.living(self.machine())?;
        if patient && tune::waits(&records) && guard.is_some() {
            return Ok(false);
        }
        let mut left = machine::outstanding(&records);
        left.retain(|one| one.boot == boot || one.target.survives_reboot());
        let is_document = |one: &Outstanding| one.target.survives_reboot();
        if left.is_empty() {
            // One that was killed after the reboot has had its boot line put back by its guard.
            let resumes = |record: &Record| match record {
                Record::Begin { target, .. } => target.resumes(),
                _ => false,
            };
            self.written =
                self.is_isolated_at_boot() && machine::last(self.machine())?.iter().any(resumes);
        } else if left.iter().all(|one| is_document(one) && one.boot != boot)
            && left.iter().any(|one| one.target.resumes() || one.isolates(&self.cores()))
        {
            (self.booted, self.written) = (true, true);
            self.restarted = machine::restarted(&records, &boot);
            if !self.restarted {
                // If this boot ends before the campaign does, the next one finds that it began.
                let never = &mut Interrupt::never();
                Journal::open(self.machine())?.begin(&self.edge, RESUMED, None, never)?;
            }
        } else if left.iter().all(is_document) && left.iter().any(|one| one.target.resumes()) {
            self.put_back()?; // written, and not rebooted
        } else {
            bail!(TuneError::Tuned(left.len()));
        }
        Ok(true)
    }

    fn cores(&self) -> CpuList {
        self.arguments.cores.clone().unwrap_or_default()
    }

    /// What the boot-time profile takes; its `boot` has what the kernel was started without.
    fn plan(&self, write_boot: bool) -> Result<Plan, String> {
        let (profile, cores) = (Profile::TunedLike, self.cores());
        let requirement = Requirement { profile, cores, write_boot, ..Requirement::default() };
        let snapshot = machine::snapshot(&self.edge, None, &machine::sessions(), &[]);
        machine::plan(&snapshot, &requirement).map_err(|errors| {
            errors.iter().map(WishError::to_string).collect::<Vec<_>>().join("; ")
        })
    }

    /// Sets the machine up for a kind of isolation, for so long at most.
    ///
    /// # Errors
    /// What was written for a reboot cannot be put back.
    pub(super) fn set(&mut self, isolation: Isolation, most: Span) -> anyhow::Result<Ready> {
        let (profile, cores) = match isolation {
            Isolation::None => (Profile::None, CpuList::default()),
            Isolation::Cpuset => (Profile::Cpuset, self.cores()),
            Isolation::Tuned => (Profile::TunedLike, self.cores()),
        };
        match (isolation, self.plan(false)) {
            (Isolation::Tuned, _) if self.restarted => {
                self.end_boot()?;
                return Ok(Ready::Cannot(RESTARTED.to_owned()));
            }
            (Isolation::Tuned, Err(why)) => return Ok(Ready::Cannot(why)),
            (Isolation::Tuned, Ok(plan)) if !plan.boot.is_empty() => {
                return self.set_boot(&plan.boot.join(" "));
            }
            (Isolation::None | Isolation::Cpuset, _) if self.is_isolated_at_boot() => {
                return Ok(Ready::AsItIs);
            }
            _ => {}
        }
        let requirement = Requirement { profile, cores, ..Requirement::default() };
        let set = Prepared::new(&self.root, requirement, WishError::to_string)
            .and_then(|prepared| prepared.apply(most, true));
        Ok(match set {
            Ok((tuned, line)) => Ready::Set(tuned, line),
            Err(error) => Ready::Cannot(format!("{error:#}")),
        })
    }

    /// The kernel was started without these parameters.
    fn set_boot(&mut self, missing: &str) -> anyhow::Result<Ready> {
        let without = format!("the kernel was started without {missing}");
        if self.booted {
            self.end_boot()?;
            return Ok(Ready::Cannot(format!("{without}, {BOOTED_WITHOUT}")));
        }
        if self.is_isolated_at_boot() {
            return Ok(Ready::AsItIs); // by somebody else, in another way
        }
        if !self.arguments.reboot {
            let cores = self.cores();
            return Ok(Ready::Cannot(format!(
                "{without}: `onbeat tune apply --profile tuned-like --cores {cores} --write-boot`, \
                 `update-grub`, `reboot`, then this command again; with --reboot it does all of \
                 that itself"
            )));
        }
        let written = match NEEDED.iter().find(|(path, _)| !self.machine().has(path)) {
            Some((path, what)) => Err(anyhow::anyhow!("--reboot needs {what}: there is no {path}")),
            None => self.write_boot(),
        };
        Ok(match written {
            Ok(()) => {
                self.ready = true;
                Ready::Reboots
            }
            Err(error) => Ready::Cannot(format!("{without}: {error:#}")),
        })
    }

    /// Writes the boot line and what continues after the reboot. Without a guard, which would take
    /// it back when this process ends: a reboot ends it.
    fn write_boot(&self) -> anyhow::Result<()> {
        let itself = std::env::current_exe().context("this program's own file")?;
        let directory = std::env::current_dir()?;
        for (what, path) in [
            ("this program", &itself),
            ("the working directory", &directory),
            ("the output directory", &self.arguments.out),
        ] {
            // Below a root, nothing reboots.
            let of = |path: &Path| match self.machine().is_this() {
                true => file_system(path),
                false => std::fs::metadata(path).map(|_| 0),
            };
            survives_reboot(what, path, of(path))?;
        }
        let words = [itself.into_os_string()].into_iter().chain(std::env::args_os().skip(1));
        // Whether ptp4l is waited for after the boot.
        let ptp = role::status(self.machine()).map(|_| "--resumed-ptp".into());
        let words = words.chain(["--resumed".into()]).chain(ptp).map(|word| word.into_string());
        let words: Vec<_> = words
            .collect::<Result<_, _>>()
            .map_err(|word| anyhow::anyhow!("{} is no text for a unit", word.display()))?;
        let changes = machine::resume(&words, &directory);
        let mut changes =
            Vec::from(changes.map_err(|word| anyhow::anyhow!("`{word}` is no text for a unit"))?);
        // The boot line is last: what is outstanding with it is a campaign's.
        let boot = self.plan(true).map_err(anyhow::Error::msg)?.changes;
        changes.extend(boot.into_iter().filter(|change| change.reboot));
        let never = &mut Interrupt::never();
        let mut journal = Journal::open(self.machine())?;
        journal.begin(&self.edge, Profile::TunedLike.as_str(), None, never)?;
        machine::apply(&self.edge, journal, &changes, never, &mut tune::tell)?;
        self.update().or_else(|error| {
            self.put_back()?;
            Err(error)
        })
    }

    /// Has the boot loader take its settings.
    fn update(&self) -> anyhow::Result<()> {
        match self.machine().has(UPDATE) {
            true => run(program(self.machine().path(UPDATE))),
            false => Ok(()), // it was another program that has used what was written
        }
    }

    /// Takes back all that the journal has.
    fn put_back(&self) -> anyhow::Result<()> {
        let journal = Journal::open(self.machine())?;
        if !journal.records().is_empty() {
            let never = &mut Interrupt::never();
            let failed = machine::undo(&self.edge, journal, never, &mut tune::tell)?;
            ensure!(
                failed == 0,
                "{failed} settings could not be taken back; `onbeat tune undo` tries again"
            );
        }
        self.update()
    }

    /// Puts the boot line of an earlier boot back, if there is one.
    ///
    /// # Errors
    /// It cannot be put back; then nothing is rebooted.
    pub(super) fn end_boot(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.written) {
            self.put_back()?;
            self.outdated = self.is_isolated_at_boot();
        }
        Ok(())
    }

    /// Takes back what was written for a reboot that does not take place.
    ///
    /// # Errors
    /// As [`Setup::end_boot`].
    pub(super) fn stay(&mut self) -> anyhow::Result<()> {
        self.ready = false;
        self.put_back()
    }

    /// After an error: takes back what a campaign has written for a reboot, if this process wrote
    /// it or was started by it, so that no boot comes to the same error again. Nothing is rebooted.
    pub(super) fn give_up(&mut self) {
        if !self.ready && !self.arguments.resumed {
            return;
        }
        let is_left = self.forget().and_then(|()| self.leave(true));
        if let Err(error) = is_left {
            crate::terminal::say(format_args!(
                "onbeat: the boot line stays: {error:#}; `onbeat tune undo` and `update-grub` put \
                 it back"
            ));
        }
    }

    /// Takes back a campaign's files for a reboot; what is set in this boot is another tune's, and
    /// stays.
    fn forget(&mut self) -> anyhow::Result<()> {
        let boot = machine::boot(self.machine())?;
        let left = machine::outstanding(&machine::read(self.machine())?);
        if !left.iter().any(|one| one.target.resumes()) {
            return Ok(());
        }
        let (files, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|one| one.target.survives_reboot());
        if others.iter().any(|one| one.boot == boot) {
            for one in files.iter().rev() {
                machine::remove(&self.edge, &one.target, &mut tune::tell)?;
            }
            let left = machine::outstanding(&machine::read(self.machine())?);
            let left = left.iter().filter(|one| one.target.survives_reboot()).count();
            ensure!(left == 0, "{left} files could not be taken back");
            self.update()?;
        } else {
            self.put_back()?;
        }
        (self.written, self.outdated) = (false, self.is_isolated_at_boot());
        Ok(())
    }

    /// Reboots if the boot line was put back and that is wanted; else says that one is needed.
    ///
    /// # Errors
    /// The machine does not reboot.
    pub(super) fn leave(&self, is_interrupted: bool) -> anyhow::Result<()> {
        match (self.outdated, self.arguments.reboot && !is_interrupted) {
            (true, true) => self.reboot("the boot line is as before"),
            (true, false) => {
                let update = if self.machine().has(UPDATE) { "" } else { "update-grub and " };
                crate::terminal::say(format_args!(
                    "onbeat: the boot line is as before: {update}a reboot puts it in force"
                ));
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    /// Reboots, for what is said.
    ///
    /// # Errors
    /// The machine does not do it.
    pub(super) fn reboot(&self, why: &str) -> anyhow::Result<()> {
        crate::terminal::say(format_args!("onbeat: {why}: the machine reboots"));
        let mut command = program(self.machine().path(SYSTEMCTL));
        command.arg("reboot");
        run(command)
    }
}

/// The type of the file system that a file or directory is on.
fn file_system(path: &Path) -> std::io::Result<i64> {
    Ok(statfs(path)?.f_type as i64)
}

/// Whether a file or directory, with the type of its file system, is still there after a reboot.
fn survives_reboot(what: &str, path: &Path, of: std::io::Result<i64>) -> anyhow::Result<()> {
    let path = path.display();
    let of = of.with_context(|| format!("{what} would not be found after the reboot: {path}"))?;
    ensure!(
        !IN_MEMORY.contains(&of),
        "{what} would be gone after the reboot: {path} is in memory only (tmpfs)"
    );
    Ok(())
}

/// Runs a command of the machine; what it says if it fails is why.
fn run(mut command: std::process::Command) -> anyhow::Result<()> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(std::process::Stdio::null()).output().context(name.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or_default().to_owned();
    ensure!(output.status.success(), "{name}: {}: {last}", output.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reboot_takes_away_is_refused_before_it() {
        let said = |path: &str| {
            let path = Path::new(path);
            survives_reboot("this program", path, file_system(path))
                .map_err(|error| format!("{error:#}"))
        };
        let gone = "/usr/bin/onbeat (deleted)";
        assert!(
            said(gone).unwrap_err().starts_with(&format!(
                "this program would not be found after the reboot: {gone}: "
            ))
        );
        // What the kernel keeps in memory, and one that is no such file system.
        for (of, survives) in [(0x0102_1994, false), (0x8584_58f6, false), (0xef53, true)] {
            let found = survives_reboot("the output directory", Path::new("/run/x"), Ok(of));
            assert_eq!(found.is_ok(), survives, "{found:?}");
        }
        assert_eq!(said("/proc"), Ok(()));
    }
}
