//! Which chains lead to what happens.

use super::observed::ChainStep;
use onbeat_model::federation::ReactionId;
use onbeat_model::time::Span;
use onbeat_runtime::federate::Extent;
use std::collections::BTreeMap;

/// So many parts of chains are followed.
const PARTS_MAX: usize = 1 << 17;

/// A part of a chain, as a position in [`Chains::parts`], and the time of its source's tag.
pub(super) type Instance = (usize, Span);

/// Parts of chains from their sources on, in which no reaction is twice.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Each with the one before, and its last step.
    parts: Vec<(Option<usize>, ChainStep)>,
    known: BTreeMap<(Option<usize>, ChainStep), usize>,
    extents: Vec<Extent>,
    is_cut: bool,
}

impl Chains {
    /// The part that a step makes of another one, or that it begins. None if the reaction is in it
    /// already, or there are too many.
    pub(super) fn step(&mut self, before: Option<usize>, step: ChainStep) -> Option<usize> {
        if let Some(known) = self.known.get(&(before, step)) {
            return Some(*known);
        }
        if self.passes(before, step.0) {
            return None;
        }
        if self.parts.len() >= PARTS_MAX {
            self.is_cut = true;
            return None;
        }
        let part = self.parts.len();
        self.known.insert((before, step), part);
        self.parts.push((before, step));
        self.extents.push(Extent::default());
        Some(part)
    }

    fn passes(&self, mut part: Option<usize>, reaction: ReactionId) -> bool {
        while let Some(at) = part {
            let (before, step) = self.parts[at];
            if step.0 == reaction {
                return true;
            }
            part = before;
        }
        false
    }

    /// The last reaction of a part is done, so long after the tag of the source.
    pub(super) fn done(&mut self, part: usize, took: Span) {
        self.extents[part].add(took);
    }

    /// All parts whose last reaction was done, and whether there were too many.
    pub(super) fn observed(&self) -> (BTreeMap<Vec<ChainStep>, Extent>, bool) {
        let seen = (0..self.parts.len()).filter(|part| self.extents[*part].count > 0);
        (seen.map(|part| (self.links(part), self.extents[part])).collect(), self.is_cut)
    }

    fn links(&self, part: usize) -> Vec<ChainStep> {
        let mut links = Vec::new();
        let mut at = Some(part);
        while let Some(part) = at {
            let (before, step) = self.parts[part];
            links.push(step);
            at = before;
        }
        links.reverse();
        links
    }
}
