//! Where the diagnostics of one description come together.

use crate::did_you_mean;
use crate::group::{GroupCopies, GroupCopy, WRONG_COPIES};
use onbeat_model::diagnostic::{Code, Diagnostic, Origin, Severity};
use onbeat_model::limits;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Collects what is wrong, up to a limit.
pub(crate) struct Sink {
    list: Vec<Diagnostic>,
    /// What documents the file that is read.
    pub(crate) document: &'static str,
    /// Where the copies of tables of groups are.
    pub(crate) copies: GroupCopies,
    /// What was wrong in copies of a table, by what and where.
    repeated: BTreeMap<(Code, Origin), Repeated>,
}

/// What is wrong in several copies of one table is told once, of the first.
struct Repeated {
    /// Its position in the list.
    at: usize,
    first: GroupCopy,
    last: GroupCopy,
    others: usize,
}

/// Where the same was wrong before.
enum Repeat {
    /// Nowhere.
    First,
    /// In the first copy, and this is the same copy.
    SameCopy,
    /// In another copy.
    OtherCopy,
}

impl Default for Sink {
    /// For a description.
    fn default() -> Self {
        Self::of("docs/description.md")
    }
}

impl Sink {
    /// For a file that `document` documents.
    pub(crate) fn of(document: &'static str) -> Self {
        let (copies, repeated) = (GroupCopies::default(), BTreeMap::new());
        Self { list: Vec::new(), document, copies, repeated }
    }
    /// Adds one, unless there are so many already that one more is no help.
    pub(crate) fn push(&mut self, mut diagnostic: Diagnostic) {
        for (at, label) in &mut diagnostic.related {
            let (place, copy) = self.copies.place(*at);
            *at = place;
            if let Some(copy) = copy {
                *label = format!("{label} ({})", self.copies.describe(copy));
            }
        }
        if let Some((at, _)) = &mut diagnostic.at {
            let (place, copy) = self.copies.place(*at);
            *at = place;
            if let Some(copy) = copy {
                let repeated = self.repeats(diagnostic.code, place, copy);
                match repeated {
                    Repeat::First => {}
                    Repeat::SameCopy => {
                        let copy = self.copies.describe(copy);
                        diagnostic.message = format!("{} ({copy})", diagnostic.message);
                    }
                    Repeat::OtherCopy => return,
                }
            }
        }
        if self.list.len() < limits::DIAGNOSTICS {
            self.list.push(diagnostic);
        }
    }
    /// Where the same was wrong before; notes that it is wrong in this copy.
    fn repeats(&mut self, code: Code, place: Origin, copy: GroupCopy) -> Repeat {
        match self.repeated.entry((code, place)) {
            Entry::Vacant(new) => {
                let at = self.list.len();
                new.insert(Repeated { at, first: copy, last: copy, others: 0 });
                Repeat::First
            }
            Entry::Occupied(known) if known.get().first == copy => Repeat::SameCopy,
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.others += usize::from(known.last != copy);
                known.last = copy;
                Repeat::OtherCopy
            }
        }
    }
    /// The known word that is closest to `word`, if one is close enough to be meant and somebody
    /// will read so: of 100,000 copies with an unknown name only the first is compared with all.
    pub(crate) fn did_you_mean<'a>(
        &self,
        (code, at): (Code, Origin),
        word: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let (place, copy) = self.copies.place(at);
        let is_told = copy.is_some() && self.repeated.contains_key(&(code, place));
        if is_told || self.is_full() { None } else { did_you_mean(word, known) }
    }
    /// Whether one more is dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= limits::DIAGNOSTICS
    }
    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Whether something is wrong, and not only a warning.
    pub(crate) fn has_error(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
    /// All, in the order of their places.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        for known in self.repeated.values() {
            let Some(diagnostic) = self.list.get_mut(known.at) else { continue };
            let copy = self.copies.describe(known.first);
            let others = match known.others {
                0 => String::new(),
                1 => ", and 1 other".to_owned(),
                // More copies may not have been read.
                others if others + 1 == WRONG_COPIES => format!(", and {others} or more others"),
                others => format!(", and {others} others"),
            };
            diagnostic.message = format!("{} ({copy}{others})", diagnostic.message);
        }
        self.list.sort_by_key(|d| d.at.as_ref().map(|(origin, _)| *origin));
        self.list
    }
}
