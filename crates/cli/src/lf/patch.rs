//! `lf bounds --patch`: the waits that suffice, as changes of the model's files.
//!
//! A *wait* is what one place of a model says: an `@maxwait`, which the members of a bank share, a
//! parameter, which all uses of a class may share, or an `@absent_after`. Each gets the smallest
//! time with which nothing that it is for is tardy. A longer wait of one makes others wait longer,
//! so all are raised until nothing changes.

use super::bounds::literal;
use super::diff::{Edit, unified};
use super::model::Model;
use onbeat_description::lf::WaitPlace;
use onbeat_model::diagnostic::{Origin, SourceFile};
use onbeat_model::federation::{Connection, Federation, MaxWait};
use onbeat_model::time::Span;
use onbeat_timing::federation::{Analysis, Environment, Waits, analyse};
use std::collections::BTreeMap;
use std::path::Path;

/// What is to be changed, and what holds then.
pub(super) struct Patch {
    /// A unified diff of the model's files; empty if nothing changes.
    pub(super) text: String,
    /// How many waits change.
    pub(super) changes: usize,
    /// What is not changed and why, and what is changed for several.
    pub(super) notes: Vec<String>,
    /// The bounds of the federation with the patch applied.
    pub(super) analysis: Analysis,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Federates; `@maxwait`.
    Federates,
    /// Connections; `@absent_after`.
    Connections,
}

/// A wait.
#[derive(Clone, Debug)]
struct Entry {
    kind: Kind,
    place: WaitPlace,
    /// Federates or connections.
    members: Vec<usize>,
    wait: Span,
    /// Why it stays as it is.
    stays: Option<String>,
}

/// The changes that make all waits of a model suffice. `computed` is its analysis with
/// [`Waits::Computed`].
pub(super) fn patch(
    model: &Model,
    federation: &Federation,
    environment: &Environment,
    computed: &Analysis,
) -> Patch {
    let mut patcher = Patcher::new(model, federation, environment, computed);
    let analysis = patcher.settle();
    patcher.leave_unknown(&analysis);
    let (edits, notes) = patcher.edits(&analysis);
    let changes = edits.values().map(Vec::len).sum();
    let mut text = String::new();
    for (file, edits) in edits {
        let SourceFile { path, text: old } = &model.sources()[file];
        text += &unified(&shown(path), old, edits);
    }
    // What is to be changed by hand is as it was.
    for entry in patcher.entries.iter_mut().filter(|entry| is_by_hand(entry)) {
        entry.stays.get_or_insert_default();
    }
    patcher.apply();
    let analysis = analyse(&patcher.federation, environment, Waits::Computed);
    Patch { text, changes, notes, analysis }
}

struct Patcher<'p> {
    model: &'p Model,
    /// As the model has it.
    stated: &'p Federation,
    environment: &'p Environment,
    /// With the waits of the entries.
    federation: Federation,
    entries: Vec<Entry>,
    /// The entry of each federate.
    of_federates: Vec<Option<usize>>,
    /// The entry of each connection that has an `@absent_after`.
    of_connections: Vec<Option<usize>>,
}

impl<'p> Patcher<'p> {
    fn new(
        model: &'p Model,
        stated: &'p Federation,
        environment: &'p Environment,
        computed: &Analysis,
    ) -> Self {
        let mut patcher = Self {
            model,
            stated,
            environment,
            federation: stated.clone(),
            entries: Vec::new(),
            of_federates: vec![None; stated.federates.len()],
            of_connections: vec![None; stated.connections.len()],
        };
        let places = model.wait_places();
        let has_inputs = |federate: usize| {
            let mut connections = stated.connections.iter();
            connections.any(|one| !one.physical && one.to.index() == federate)
        };
        for (federate, place) in places.federates.iter().enumerate() {
            if has_inputs(federate) {
                let entry = patcher.entry(Kind::Federates, *place, federate);
                patcher.of_federates[federate] = Some(entry);
            }
        }
        for (at, place) in places.connections.iter().enumerate() {
            // Where no timer of the reader makes it wait, the attribute does nothing.
            let is_met = computed.connections[at].is_met;
            if let Some(place) = place.filter(|_| is_met && !stated.connections[at].physical) {
                let entry = patcher.entry(Kind::Connections, place, at);
                patcher.of_connections[at] = Some(entry);
            }
        }
        // Where nobody waits long enough nothing is known, so a cycle begins with enough.
        for cycle in &computed.cycles {
            for at in &cycle.connections {
                if let Some(entry) = patcher.of_connections[at.index()] {
                    patcher.entries[entry].wait = patcher.entries[entry].wait.max(cycle.excess);
                }
            }
        }
        // Without an `@absent_after`, no wait is shorter than the one that is computed.
        if patcher.of_connections.iter().all(Option::is_none) {
            for entry in &mut patcher.entries {
                let needs = entry.members.iter().map(|at| &computed.federates[*at].maxwait);
                let needs = needs.filter_map(|need| need.as_ref().ok().copied());
                entry.wait = needs.fold(entry.wait, Span::max);
            }
        }
        patcher
    }

    /// The entry of a place, with one more member.
    fn entry(&mut self, kind: Kind, place: WaitPlace, member: usize) -> usize {
        let known = self.entries.iter().position(|one| one.kind == kind && one.place == place);
        let at = known.unwrap_or(self.entries.len());
        if known.is_none() {
            let members = Vec::new();
            self.entries.push(Entry { kind, place, members, wait: Span::ZERO, stays: None });
        }
        self.entries[at].members.push(member);
        at
    }

    /// Raises waits until nothing changes, and gives up those that would grow for ever.
    fn settle(&mut self) -> Analysis {
        let most = 2 * self.entries.len() + 2;
        for round in 0.. {
            self.apply();
            let analysis = analyse(&self.federation, self.environment, Waits::Model);
            let changed = self.raise(&analysis);
            if changed.is_empty() {
                return analysis;
            }
            if round >= most {
                for at in changed {
                    let why = "it and others would wait for each other without end".to_owned();
                    self.entries[at].stays = Some(why);
                }
            }
        }
        unreachable!("each round beyond the limit leaves fewer waits that may change")
    }

    /// Writes the waits of the entries into the federation.
    fn apply(&mut self) {
        let wait = |entry: Option<usize>, stated: Option<MaxWait>| match entry {
            Some(at) if self.entries[at].stays.is_none() => {
                Some(MaxWait::For(self.entries[at].wait))
            }
            _ => stated,
        };
        for (at, federate) in self.federation.federates.iter_mut().enumerate() {
            federate.maxwait = wait(self.of_federates[at], self.stated.federates[at].maxwait);
        }
        for (at, connection) in self.federation.connections.iter_mut().enumerate() {
            let stated = self.stated.connections[at].absent_after;
            connection.absent_after = wait(self.of_connections[at], stated);
        }
    }

    /// The open entry of an `@absent_after`.
    fn absent(&self, connection: usize) -> Option<usize> {
        self.of_connections[connection].filter(|at| self.entries[*at].stays.is_none())
    }

    /// Makes waits as long as messages take; those that changed.
    fn raise(&mut self, analysis: &Analysis) -> Vec<usize> {
        let mut waits: Vec<Span> = self.entries.iter().map(|entry| entry.wait).collect();
        let logical =
            || self.stated.connections.iter().enumerate().filter(|(_, one)| !one.physical);
        let arrival = |at: usize| analysis.connections[at].arrival_max.as_ref().ok();
        for (at, connection) in logical().filter(|(at, _)| self.absent(*at).is_none()) {
            if let (Some(arrival), Some(entry)) = (arrival(at), self.reader(connection)) {
                waits[entry] = waits[entry].max(*arrival);
            }
        }
        let mut more: BTreeMap<usize, Span> = BTreeMap::new();
        for (at, connection) in logical() {
            let (Some(entry), Some(arrival)) = (self.absent(at), arrival(at)) else { continue };
            let wait = self.reader(connection).map_or(Span::ZERO, |reader| waits[reader]);
            let more = more.entry(entry).or_default();
            *more = (*more).max(*arrival - wait);
        }
        for (entry, wait) in more {
            waits[entry] = wait;
        }
        let open = |at: &usize| self.entries[*at].stays.is_none();
        let changes = |at: &usize| self.entries[*at].wait != waits[*at];
        let changed: Vec<usize> = (0..waits.len()).filter(open).filter(changes).collect();
        for at in &changed {
            self.entries[*at].wait = waits[*at];
        }
        changed
    }

    fn reader(&self, connection: &Connection) -> Option<usize> {
        self.of_federates[connection.to.index()]
    }

    /// Keeps what depends on what is not known.
    fn leave_unknown(&mut self, analysis: &Analysis) {
        for (at, connection) in self.stated.connections.iter().enumerate() {
            let Err(unknown) = &analysis.connections[at].arrival_max else { continue };
            if connection.physical {
                continue;
            }
            let entries = [self.reader(connection), self.absent(at)];
            for entry in entries.into_iter().flatten() {
                let stays = &mut self.entries[entry].stays;
                stays.get_or_insert_with(|| unknown.to_string());
            }
        }
    }

    /// What changes in each file, and what is to be said of it.
    fn edits(&self, analysis: &Analysis) -> (BTreeMap<usize, Vec<Edit>>, Vec<String>) {
        let mut edits: BTreeMap<usize, Vec<Edit>> = BTreeMap::new();
        let mut notes = Vec::new();
        for entry in &self.entries {
            let at = self.model.place(origin(entry.place));
            let names = self.names(entry);
            if let Some(why) = &entry.stays {
                notes.push(format!("{at}: {names}: not changed: {why}"));
                continue;
            }
            if self.is_stated(entry) {
                continue;
            }
            let (least, most) = self.needs(entry, analysis);
            let (attribute, wait) = (entry.kind.attribute(), literal(entry.wait));
            if least != most {
                let (least, most) = (literal(least), literal(most));
                notes.push(format!(
                    "{at}: one {attribute} is for {names}, which need {least} to {most}: {wait}"
                ));
            }
            let Some((file, edit)) = self.edit(entry) else {
                notes.push(format!(
                    "{at}: {names}: write {attribute}({wait}) by hand: its wait is no time here"
                ));
                continue;
            };
            edits.entry(file).or_default().push(edit);
        }
        (edits, notes)
    }

    /// Whether the model says it already, of all.
    fn is_stated(&self, entry: &Entry) -> bool {
        let wait = Some(MaxWait::For(entry.wait));
        let mut members = entry.members.iter();
        members.all(|at| match entry.kind {
            Kind::Federates => self.stated.federates[*at].maxwait == wait,
            Kind::Connections => self.stated.connections[*at].absent_after == wait,
        })
    }

    fn names(&self, entry: &Entry) -> String {
        let name = |at: &usize| match entry.kind {
            Kind::Federates => format!("`{}`", self.stated.federates[*at].name),
            Kind::Connections => format!("`{}`", self.stated.connections[*at].name),
        };
        entry.members.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The least and the most that members need.
    fn needs(&self, entry: &Entry, analysis: &Analysis) -> (Span, Span) {
        let need = |member: &usize| {
            let inputs = self.stated.connections.iter().enumerate();
            let own = inputs.filter(|(at, one)| match entry.kind {
                Kind::Federates => {
                    one.to.index() == *member && !one.physical && self.absent(*at).is_none()
                }
                Kind::Connections => at == member,
            });
            let arrivals = own.filter_map(|(at, one)| {
                let arrival = *analysis.connections[at].arrival_max.as_ref().ok()?;
                let reader = self.reader(one).filter(|_| entry.kind == Kind::Connections);
                Some(arrival - reader.map_or(Span::ZERO, |reader| self.entries[reader].wait))
            });
            arrivals.fold(Span::ZERO, Span::max)
        };
        let needs = entry.members.iter().map(need);
        let (least, most) = (needs.clone().min(), needs.max());
        (least.unwrap_or_default(), most.unwrap_or_default())
    }

    /// The change of a file that makes the wait what it is to be.
    fn edit(&self, entry: &Entry) -> Option<(usize, Edit)> {
        let wait = literal(entry.wait);
        let at = origin(entry.place);
        let (file, start) = (usize::from(at.file), at.start as usize);
        match entry.place {
            WaitPlace::Elsewhere(_) => None,
            WaitPlace::Time(_) => Some((file, Edit { range: start..at.end as usize, text: wait })),
            WaitPlace::Before(_) => {
                let text = &self.model.sources()[file].text;
                Some((file, before(text, start, &format!("{}({wait})", entry.kind.attribute()))))
            }
        }
    }
}

impl Kind {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Federates => "@maxwait",
            Self::Connections => "@absent_after",
        }
    }
}

/// Puts an attribute on a line of its own before a statement that begins a line, else before it.
fn before(text: &str, start: usize, attribute: &str) -> Edit {
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let indentation = &text[line..start];
    if !indentation.chars().all(char::is_whitespace) {
        return Edit { range: start..start, text: format!("{attribute} ") };
    }
    let rest = &text[start..];
    let is_dos = rest.find('\n').is_some_and(|end| rest[..end].ends_with('\r'));
    let end = if is_dos { "\r\n" } else { "\n" };
    Edit { range: line..line, text: format!("{indentation}{attribute}{end}") }
}

fn is_by_hand(entry: &Entry) -> bool {
    matches!(entry.place, WaitPlace::Elsewhere(_))
}

const fn origin(place: WaitPlace) -> Origin {
    match place {
        WaitPlace::Before(at) | WaitPlace::Time(at) | WaitPlace::Elsewhere(at) => at,
    }
}

/// A file's path from the current directory, as `patch` takes it: without links, `.` and `..`.
fn shown(path: &str) -> String {
    let real = Path::new(path).canonicalize().ok();
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    let inside = real
        .zip(here)
        .and_then(|(real, here)| Some(real.strip_prefix(here).ok()?.to_str()?.to_owned()));
    inside.unwrap_or_else(|| path.to_owned())
}
