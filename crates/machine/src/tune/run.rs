//! Making changes and taking them back, each step on disk before the next.

use super::admit::plain;
use super::edge::Edge;
use super::helper::Helper;
use super::identity::Identity;
use super::journal::{self, Ending, Journal, JournalError, Outstanding, Record, boot};
use super::plan::Change;
use super::target::{Form, Target, Value};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;

/// How often the dead-man timer looks whether it was confirmed.
const LOOK_AGAIN: Span = Span::from_ms(100);
/// How long it waits before it tries again to undo what could not be undone: first, and at most.
const TRY_AGAIN: Span = Span::from_s(1);
const TRY_AGAIN_MAX: Span = Span::from_s(60);
/// For how long who has the lock may do nothing when the time is over.
const STUCK: Span = Span::from_s(10);

/// A hook for tests: ends what is in progress at a given step as a kill would, with nothing put
/// right.
#[derive(Debug)]
pub struct Interrupt(Option<u32>);

/// It was time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupt {
    /// Nothing is interrupted.
    pub const fn never() -> Self {
        Self(None)
    }

    /// What is in progress ends after `steps` steps.
    pub const fn after(steps: u32) -> Self {
        Self(Some(steps))
    }

    /// Whether it came to an end: then the interruption took place.
    pub fn is_over(&self) -> bool {
        self.0 == Some(0)
    }

    /// One step of what is in progress.
    pub(super) fn step(&mut self) -> Result<(), Interrupted> {
        match &mut self.0 {
            None => Ok(()),
            Some(0) => Err(Interrupted),
            Some(left) => {
                *left -= 1;
                if *left == 0 { Err(Interrupted) } else { Ok(()) }
            }
        }
    }
}

/// Something to tell the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A change was made.
    Made(&'a str),
    /// The kernel refused one that it may refuse; it is as before.
    Refused(&'a str, &'a str),
    /// A change was taken back, or need not be.
    Undone(&'a str, Ending),
    /// A change could not be taken back, and why.
    Failed(&'a str, &'a str),
    /// A setting had changed, and was made again.
    Again(&'a str),
}

/// Why a tune failed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// This boot's settings are in force.
    #[error("{0} settings of an earlier tune are in force: `onbeat tune undo` first")]
    Tuned(usize),
    /// A change was not made; those before it were taken back.
    #[error("{what} ({place}): {why}{}", match undone {
        true => "; nothing is changed",
        false => "; not all before it could be taken back: see `onbeat tune status`",
    })]
    Change {
        /// What was to be changed.
        what: String,
        /// Where.
        place: String,
        /// What the kernel said.
        why: String,
        /// Whether all before it was taken back.
        undone: bool,
    },
}

impl TuneError {
    /// Whether a test interrupted it.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Interrupted))
    }
}

impl From<Interrupted> for TuneError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Journal(interrupted.into())
    }
}

/// What a tune did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Changes that were made.
    pub made: usize,
    /// Changes that the kernel refused.
    pub refused: usize,
    /// Changes that need not be made any more.
    pub kept: usize,
}

/// What became of one change.
enum Outcome {
    Made,
    Refused(String),
    Kept,
}

impl Journal {
    /// Begins a tune: settings of another boot are noted as gone.
    ///
    /// # Errors
    ///
    /// There are settings of this boot, or the journal cannot be written.
    pub fn begin(
        &mut self,
        edge: &Edge,
        profile: &str,
        confirm_within: Option<Span>,
        interrupt: &mut Interrupt,
    ) -> Result<i64, TuneError> {
        let boot = boot(edge.machine())?;
        let before = self.outstanding();
        let now = before.iter().filter(|one| one.boot == boot).count();
        if now > 0 {
            return Err(TuneError::Tuned(now));
        }
        for one in before.iter().filter(|one| !one.target.survives_reboot()) {
            let gone = Record::Undone { change: one.change, how: Ending::Gone };
            self.append(gone, interrupt)?;
        }
        let started_ns = MonoTime::now().as_ns();
        self.begin_tune(profile, started_ns, confirm_within, interrupt)?;
        Ok(started_ns)
    }
}

/// Makes the changes, in their order. One that fails and may not has all before it taken back.
///
/// # Errors
///
/// A change fails, or the journal cannot be written.
pub fn apply(
    edge: &Edge,
    mut journal: Journal,
    changes: &[Change],
    interrupt: &mut Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Applied, TuneError> {
    let mut applied = Applied::default();
    for change in changes {
        let outcome = match make(edge, &mut journal, change, interrupt) {
            Err(error) if !error.is_interruption() => {
                // What cannot be written down is not done, and what is done is taken back.
                undo(edge, journal, interrupt, tell)?;
                return Err(error);
            }
            outcome => outcome?,
        };
        match outcome {
            Outcome::Made => {
                applied.made += 1;
                tell(Event::Made(&change.what));
            }
            Outcome::Kept => applied.kept += 1,
            Outcome::Refused(why) if change.may_refuse => {
                applied.refused += 1;
                tell(Event::Refused(&change.what, &why));
            }
            Outcome::Refused(why) => {
                let failed = undo(edge, journal, interrupt, tell)?;
                return Err(TuneError::Change {
                    what: change.what.clone(),
                    place: change.target.place(),
                    why,
                    undone: failed == 0,
                });
            }
        }
    }
    Ok(applied)
}

/// Makes one change: journal, change, read back, journal.
fn make(
    edge: &Edge,
    journal: &mut Journal,
    change: &Change,
    interrupt: &mut Interrupt,
) -> Result<Outcome, TuneError> {
    let (target, new) = (&change.target, &change.new);
    let old = match edge.get(target) {
        Ok(old) if target.same(&old, new) => return Ok(Outcome::Kept),
        Ok(old) => old,
        Err(error) => return Ok(Outcome::Refused(error.to_string())),
    };
    // What could not be believed when it is read is not done.
    if let Err(why) = target.admit(&old, new) {
        return Ok(Outcome::Refused(why));
    }
    let number = journal.next();
    let (what, target_) = (plain(&change.what), target.clone());
    let begin =
        Record::Begin { change: number, what, target: target_, old: old.clone(), new: new.clone() };
    journal.append(begin, interrupt)?;
    let set = edge.set(target, new);
    interrupt.step()?;
    let why = match (set, edge.get(target)) {
        (Ok(()), Ok(after)) if target.same(&after, new) && target.admit_after(&after).is_ok() => {
            journal.append(Record::Done { change: number, after }, interrupt)?;
            return Ok(Outcome::Made);
        }
        (Ok(()), Ok(after)) => format!("the kernel made `{}` of it", shown(&after)),
        (Err(error), _) | (_, Err(error)) => error.to_string(),
    };
    // Whatever of it was made goes.
    edge.tidy(target);
    if edge.get(target).is_ok_and(|now| !target.same(&now, &old)) {
        let _ = edge.set(target, &old); // read back in the next line
    }
    match edge.get(target) {
        Ok(now) if target.same(&now, &old) => {
            journal.append(Record::Refused { change: number, why: plain(&why) }, interrupt)?;
        }
        // It stays outstanding, so that `undo` tries again.
        _ => {}
    }
    Ok(Outcome::Refused(why))
}

/// A value for people.
fn shown(value: &Value) -> &str {
    value.as_deref().unwrap_or("nothing")
}

/// Takes back all that is outstanding, the last change first, and puts the journal away; gives how
/// many changes could not be taken back, which stay in it. What others have set since stays. What
/// cannot be written down, on a disk that somebody has filled, is taken back all the same: who
/// comes after finds that it is as it was.
///
/// # Errors
///
/// The journal cannot be put away.
pub fn undo(
    edge: &Edge,
    mut journal: Journal,
    interrupt: &mut Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<usize, TuneError> {
    let failed = undo_those(edge, &mut journal, &|_| true, interrupt, tell)?;
    if failed == 0 {
        interrupt.step()?;
        journal.close()?;
    }
    Ok(failed)
}

/// Takes back those of the outstanding changes, the last one first.
fn undo_those(
    edge: &Edge,
    journal: &mut Journal,
    which: &dyn Fn(&Outstanding) -> bool,
    interrupt: &mut Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<usize, TuneError> {
    let boot = boot(edge.machine())?;
    let (mut failed, mut written) = (0, Ok(()));
    for one in journal.outstanding().iter().rev().filter(|one| which(one)) {
        let how = match one.boot != boot && !one.target.survives_reboot() {
            true => Ok(Ending::Gone),
            false => take_back(edge, one, interrupt)?,
        };
        match how {
            Ok(how) => {
                if written.is_ok() {
                    written = journal.append(Record::Undone { change: one.change, how }, interrupt);
                }
                if matches!(written, Err(JournalError::Interrupted)) {
                    break;
                }
                tell(Event::Undone(&one.what, how));
            }
            Err(why) => {
                failed += 1;
                tell(Event::Failed(&one.what, &why));
            }
        }
    }
    if let Err(error @ JournalError::Interrupted) = written {
        return Err(error.into());
    }
    Ok(failed)
}

/// One change more, in a tune that is in force.
///
/// # Errors
///
/// It cannot be made, or the journal cannot be written; the error says whether all is as before. An
/// earlier change of the same is still to be taken back: that one knows the value from before.
pub fn add(edge: &Edge, change: &Change) -> Result<(), TuneError> {
    let mut journal = Journal::open(edge.machine())?;
    let is_left =
        |journal: &Journal| journal.outstanding().iter().any(|one| one.target == change.target);
    let refused = |why, undone| {
        let (what, place) = (change.what.clone(), change.target.place());
        Err(TuneError::Change { what, place, why, undone })
    };
    if is_left(&journal) {
        return refused("what was set before is still to be taken back".to_owned(), false);
    }
    match make(edge, &mut journal, change, &mut Interrupt::never())? {
        Outcome::Made | Outcome::Kept => Ok(()),
        Outcome::Refused(why) => refused(why, !is_left(&journal)),
    }
}

/// Takes one target back, and says whether that was possible; the others stay as they are.
///
/// # Errors
///
/// The journal cannot be opened.
pub fn remove(
    edge: &Edge,
    target: &Target,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<bool, TuneError> {
    let mut journal = Journal::open(edge.machine())?;
    let is_it = |one: &Outstanding| one.target == *target;
    let failed = undo_those(edge, &mut journal, &is_it, &mut Interrupt::never(), tell)?;
    Ok(failed == 0)
}

/// Takes back a tune that is for a time. A boot line that a tune before this boot wrote stays, but
/// for a campaign's, which comes and goes with it: the journal is kept for it, as confirmed.
fn undo_last(
    edge: &Edge,
    mut journal: Journal,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<usize, TuneError> {
    let boot = boot(edge.machine())?;
    let never = &mut Interrupt::never();
    let stays = |one: &Outstanding| one.boot != boot && one.target.survives_reboot();
    let all = journal.outstanding();
    if all.iter().any(|one| one.target.resumes()) || !all.iter().any(stays) {
        return undo(edge, journal, never, tell);
    }
    let failed = undo_those(edge, &mut journal, &|one| !stays(one), never, tell)?;
    if failed == 0 {
        journal.confirm()?;
    }
    Ok(failed)
}

/// Takes one change back, or says why that is not possible.
fn take_back(
    edge: &Edge,
    one: &Outstanding,
    interrupt: &mut Interrupt,
) -> Result<Result<Ending, String>, Interrupted> {
    let Outstanding { target, old, new, after, .. } = one;
    edge.tidy(target);
    let now = match edge.get(target) {
        Ok(now) => now,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if target.same(&now, old) {
        return Ok(Ok(Ending::Already));
    }
    let is_thread = matches!(target, Target::Threads { .. });
    if (is_thread && old.is_none()) || (now.is_none() && !target.survives_reboot()) {
        return Ok(Ok(Ending::Gone));
    }
    if !target.is_ours(&now, new, after.as_ref().unwrap_or(&None)) {
        return Ok(Ok(Ending::Left));
    }
    interrupt.step()?;
    let set = edge.set(target, old);
    interrupt.step()?;
    Ok(match (set, edge.get(target)) {
        (Ok(()), Ok(back)) if target.same(&back, old) => Ok(Ending::Restored),
        (Ok(()), Ok(back)) => Err(format!("the kernel made `{}` of it", shown(&back))),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    })
}

/// How a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// As it was set.
    InForce,
    /// Somebody, or the kernel, has set another value.
    Drifted,
    /// It is as it was set, and the kernel does something else: the processors that it uses.
    Ineffective(String),
    /// A reboot undid it.
    Gone,
    /// It cannot be read, and why.
    Unknown(String),
}

/// One setting of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its change.
    pub change: Outstanding,
    /// Its value now.
    pub now: Value,
    /// How that is.
    pub state: State,
}

/// Reads back what is outstanding.
///
/// # Errors
///
/// The machine does not say which boot it is.
pub fn verify(edge: &Edge, records: &[Record]) -> Result<Vec<Status>, TuneError> {
    let boot = boot(edge.machine())?;
    let of_one = |change: Outstanding| {
        if change.boot != boot && !change.target.survives_reboot() {
            return Status { change, now: None, state: State::Gone };
        }
        match edge.get(&change.target) {
            Err(error) => Status { change, now: None, state: State::Unknown(error.to_string()) },
            Ok(now) => {
                let state = match change.target.same(&now, &change.new) {
                    true => effective(edge, &change.target, &now),
                    false => State::Drifted,
                };
                Status { change, now, state }
            }
        }
    };
    Ok(journal::outstanding(records).into_iter().map(of_one).collect())
}

/// An interrupt may go elsewhere than it is bound to: its controller knows one processor at a time,
/// or has not moved it yet.
fn effective(edge: &Edge, target: &Target, now: &Value) -> State {
    let Target::File { path, form: Form::List } = target else { return State::InForce };
    let Some(directory) = path.strip_suffix("/smp_affinity_list") else { return State::InForce };
    let wanted = now.as_deref().and_then(|text| text.parse().ok());
    match (wanted, edge.machine().cpus(&format!("{directory}/effective_affinity_list"))) {
        (Some(wanted), Ok(used)) if !used.without(&wanted).is_empty() => {
            State::Ineffective(used.to_string())
        }
        _ => State::InForce,
    }
}

/// The dead-man timer of the tune that began at `started_ns`: waits until it is confirmed or
/// undone, or its time is over, or the process is that it is for, and then undoes it, again and
/// again until all is undone. What prevents it is reported. Gives whether it undid anything.
///
/// # Errors
///
/// It cannot say that it is there: no other process would know of it.
pub fn guard(
    edge: &Edge,
    started_ns: i64,
    process: Option<&Identity>,
    tell: &mut dyn FnMut(&str),
) -> Result<bool, TuneError> {
    let word = started_ns.to_string();
    let failed = |error| JournalError::File { path: edge.machine().path("/"), error };
    Helper::Guard.ready(edge.machine(), &word).map_err(failed)?;
    let (mut patience, mut stuck) = (TRY_AGAIN, None);
    loop {
        match guard_once(edge, started_ns, process, &mut stuck) {
            Ok(Look::Over(undone)) => return Ok(undone),
            Ok(Look::Waits) => pause(LOOK_AGAIN),
            Ok(Look::Ended(owner)) => {
                tell(&format!("process {} had the lock, did nothing, and is ended", owner.pid));
                pause(LOOK_AGAIN);
            }
            Ok(Look::Left(settings)) => {
                tell(&format!(
                    "settings that could not be taken back yet: {settings}; tried again"
                ));
                pause(patience);
                patience = (patience * 2).min(TRY_AGAIN_MAX);
            }
            Err(error) => {
                tell(&error.to_string());
                pause(patience);
                patience = (patience * 2).min(TRY_AGAIN_MAX);
            }
        }
    }
}

/// What a look of the dead-man timer found.
enum Look {
    /// It is not time, or the tune itself is still at work.
    Waits,
    /// Nothing is to be done any more; whether it undid something.
    Over(bool),
    /// So many settings could not be taken back.
    Left(usize),
    /// Who had the lock did nothing, and is ended.
    Ended(Identity),
}

/// Who has the lock, how far the journal is, and since when that is so.
type Stuck = Option<(Identity, usize, MonoTime)>;

fn guard_once(
    edge: &Edge,
    started_ns: i64,
    process: Option<&Identity>,
    stuck: &mut Stuck,
) -> Result<Look, TuneError> {
    let Some(until) = unconfirmed(&journal::read(edge.machine())?, started_ns) else {
        return Ok(Look::Over(false));
    };
    // One of which the kernel does not say whether it lives counts as living.
    let lives = |process: &Identity| process.living().map_or(true, |living| living.is_some());
    if MonoTime::now() < MonoTime::from_ns(until) && process.is_none_or(lives) {
        return Ok(Look::Waits);
    }
    let journal = match Journal::open(edge.machine()) {
        Err(JournalError::Locked(_)) => return still(edge, stuck),
        journal => journal?,
    };
    *stuck = None;
    if unconfirmed(journal.records(), started_ns).is_none() {
        return Ok(Look::Over(false));
    }
    match undo_last(edge, journal, &mut |_| ())? {
        0 => Ok(Look::Over(true)),
        left => Ok(Look::Left(left)),
    }
}

/// The time is over, and somebody has the lock. One who is at work gets on; one who was stopped, or
/// whom the kernel keeps, does not, and must not keep the machine as it is.
fn still(edge: &Edge, stuck: &mut Stuck) -> Result<Look, TuneError> {
    let (length, Some(owner)) = journal::progress(edge.machine())? else { return Ok(Look::Waits) };
    let now = MonoTime::now();
    match stuck {
        Some((same, before, since)) if *same == owner && *before == length => {
            if now < *since + STUCK {
                return Ok(Look::Waits);
            }
            journal::end_owner(&owner).map_err(|error| JournalError::File {
                path: edge.machine().path("/proc"),
                error,
            })?;
            *stuck = None;
            Ok(Look::Ended(owner))
        }
        _ => {
            *stuck = Some((owner, length, now));
            Ok(Look::Waits)
        }
    }
}

/// Takes back the tune that began at `started_ns`, for whoever made it; waits for a while if
/// another process is at work. Gives how many changes could not be taken back; none if that tune
/// is no longer in force: what others have made since is theirs.
///
/// # Errors
///
/// The journal cannot be opened or put away.
pub fn end(
    edge: &Edge,
    started_ns: i64,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Option<usize>, TuneError> {
    let until = MonoTime::now() + STUCK;
    let journal = loop {
        match Journal::open(edge.machine()) {
            Err(JournalError::Locked(_)) if MonoTime::now() < until => pause(LOOK_AGAIN),
            journal => break journal?,
        }
    };
    let of_tune = |record: &Record| match record {
        Record::Tune { started_ns, .. } => Some(*started_ns),
        _ => None,
    };
    if journal.records().iter().rev().find_map(of_tune) != Some(started_ns) {
        return Ok(None);
    }
    undo_last(edge, journal, tell).map(Some)
}

/// By when the tune that began then must be confirmed, if it is not.
pub(super) fn unconfirmed(records: &[Record], started: i64) -> Option<i64> {
    let begins = |record: &Record| matches!(record, Record::Tune { .. });
    let at = records.iter().rposition(begins)?;
    let Record::Tune { started_ns, confirm_by_ns, .. } = &records[at] else { return None };
    let confirmed = records[at..].contains(&Record::Confirmed);
    confirm_by_ns.filter(|_| *started_ns == started && !confirmed)
}

/// One change more, for a tune that is in force; not if it was tried before.
pub(super) fn one_more(
    edge: &Edge,
    journal: &mut Journal,
    change: &Change,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), TuneError> {
    let tried = journal
        .records()
        .iter()
        .any(|record| matches!(record, Record::Begin { target, .. } if *target == change.target));
    if tried {
        return Ok(());
    }
    match make(edge, journal, change, &mut Interrupt::never())? {
        Outcome::Made => tell(Event::Made(&change.what)),
        Outcome::Refused(why) => tell(Event::Refused(&change.what, &why)),
        Outcome::Kept => {}
    }
    Ok(())
}
