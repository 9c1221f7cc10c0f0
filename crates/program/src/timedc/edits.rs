//! Changes of the text, collected in any order.

use crate::source::Edit;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where one of several texts of the same owner comes: in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Round a loop's body.
    LoopHead,
    /// Of a definition or a block.
    Open,
    /// What a function's or a loop's body begins with.
    Body,
    Guard,
    Label,
    /// The beginning of a construct that was taken apart.
    Head,
    /// The end of an expression or a statement.
    Close,
    Brace,
    /// The end of a loop's body.
    LoopEnd,
}

/// All changes. Texts at one place come in the order that their owners' nesting demands: what is
/// before a place from the outermost owner to the innermost, what is behind it the other way.
#[derive(Debug, Default)]
pub(super) struct Edits {
    before: BTreeMap<(usize, Reverse<usize>, Rank), String>,
    after: BTreeMap<(usize, Reverse<usize>, Rank), String>,
    replace: BTreeMap<usize, (usize, String)>,
}

impl Edits {
    /// Puts text before a node or token.
    pub(super) fn before(&mut self, owner: Range<usize>, rank: Rank, text: &str) {
        self.before.entry((owner.start, Reverse(owner.end), rank)).or_default().push_str(text);
    }

    /// Puts text behind a node or token.
    pub(super) fn after(&mut self, owner: Range<usize>, rank: Rank, text: &str) {
        self.after.entry((owner.end, Reverse(owner.start), rank)).or_default().push_str(text);
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.replace.insert(range.start, (range.end, text.to_owned()));
    }

    /// A part of the text with its changes, in one line; the changes are no more to be made there.
    pub(super) fn take(&mut self, text: &str, range: &Range<usize>) -> String {
        let (mut made, mut at) = (String::new(), range.start);
        let inside = |at: usize| range.start <= at && at <= range.end;
        while at <= range.end {
            // At the range's ends, what belongs to its neighbours is not its own.
            if at > range.start {
                self.after
                    .iter()
                    .filter(|((p, _, _), _)| *p == at)
                    .for_each(|(_, t)| made.push_str(t));
            }
            if at == range.end {
                break;
            }
            self.before
                .iter()
                .filter(|((p, _, _), _)| *p == at)
                .for_each(|(_, t)| made.push_str(t));
            if let Some((end, new)) = self.replace.get(&at) {
                made.push_str(new);
                at = *end;
                continue;
            }
            let next = (at + 1..range.end).find(|n| self.has(*n)).unwrap_or(range.end);
            made.push_str(text.get(at..next).unwrap_or(""));
            at = next;
        }
        self.before.retain(|(p, _, _), _| !(inside(*p) && *p < range.end));
        self.after.retain(|(p, _, _), _| !(inside(*p) && *p > range.start));
        self.replace.retain(|p, _| !(inside(*p) && *p < range.end));
        made.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
    }

    fn has(&self, at: usize) -> bool {
        let first = (at, Reverse(usize::MAX), Rank::LoopHead);
        let is_here = |(key, _): (&(usize, Reverse<usize>, Rank), &String)| key.0 == at;
        self.replace.contains_key(&at)
            || self.before.range(first..).next().is_some_and(is_here)
            || self.after.range(first..).next().is_some_and(is_here)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.replace.is_empty()
    }

    /// The changes in the order of the text, at most one of each kind at a place.
    pub(super) fn finish(self) -> Vec<Edit> {
        let mut all: BTreeMap<(usize, u8), Edit> = BTreeMap::new();
        for ((at, ..), text) in self.after {
            match all.get_mut(&(at, 0)) {
                Some(Edit::After(_, old)) => old.push_str(&text),
                _ => drop(all.insert((at, 0), Edit::After(at, text))),
            }
        }
        for ((at, ..), text) in self.before {
            match all.get_mut(&(at, 1)) {
                Some(Edit::Before(_, old)) => old.push_str(&text),
                _ => drop(all.insert((at, 1), Edit::Before(at, text))),
            }
        }
        for (start, (end, text)) in self.replace {
            all.insert((start, 2), Edit::Replace(start..end, text));
        }
        all.into_values().collect()
    }
}
