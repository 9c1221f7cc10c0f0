//! From a source to a final reaction: how long each chain takes.

use super::solve::Solved;
use super::stream::{self, Edge};
use super::{Figure, Ns, ns, span};
use onbeat_model::federation::{Federation, ReactionId, Trigger};
use onbeat_model::time::Span;

/// So many chains are listed.
pub const CHAINS_MAX: usize = 10_000;
/// So many beginnings of chains are looked at.
const LOOKED_AT_MAX: usize = 200_000;

/// A chain of reactions, none of them twice, from a source to one that causes none but those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReactionChain {
    /// Its reactions, each with the position of its cause. The first cause is a timer, an action
    /// that no reaction schedules, the start or the end.
    pub links: Vec<(ReactionId, usize)>,
    /// From the tag of the source to the end of the last reaction: at least, in true time.
    pub best: Figure<Span>,
    /// At most.
    pub worst: Figure<Span>,
}

/// What is known at the end of a part of a chain.
#[derive(Clone, Debug)]
struct Progress {
    /// From the tag of the source to the current tag.
    tag: Figure<(Ns, Ns)>,
    /// From the current tag to the earliest end of the last reaction.
    earliest: Figure<Ns>,
}

/// All chains, and whether some were left out.
pub(super) fn chains(federation: &Federation, solved: &Solved) -> (Vec<ReactionChain>, bool) {
    let edges = stream::edges(federation);
    let extraction = Extraction { federation, solved, edges: &edges };
    let mut chains = Vec::new();
    let mut looked_at = 0;
    for (at, reaction) in federation.reactions.iter().enumerate() {
        for (cause, what) in reaction.causes.iter().enumerate() {
            if matches!(what, Trigger::Reaction { .. } | Trigger::Message(_)) {
                continue;
            }
            let first = (ReactionId(at as u32), cause);
            if !extraction.from(first, &mut chains, &mut looked_at) {
                return (chains, true);
            }
        }
    }
    (chains, false)
}

struct Extraction<'a> {
    federation: &'a Federation,
    solved: &'a Solved,
    edges: &'a [Vec<Edge>],
}

impl Extraction<'_> {
    /// All chains from a source. False if they are too many.
    fn from(
        &self,
        first: (ReactionId, usize),
        chains: &mut Vec<ReactionChain>,
        looked_at: &mut usize,
    ) -> bool {
        let mut links = vec![first];
        let mut on_path = vec![false; self.federation.reactions.len()];
        on_path[first.0.index()] = true;
        // Per link: what is known, which edge is next, and whether it led anywhere.
        let mut stack = vec![(self.begin(first.0), 0, false)];
        while let Some((progress, next, leads_on)) = stack.last_mut() {
            let Some((last, _)) = links.last().copied() else { break };
            if let Some(edge) = self.edges[last.index()].get(*next) {
                *next += 1;
                if on_path[edge.to.index()] {
                    continue;
                }
                *leads_on = true;
                *looked_at += 1;
                if *looked_at > LOOKED_AT_MAX {
                    return false;
                }
                let progress = self.step(progress, last, edge);
                on_path[edge.to.index()] = true;
                links.push((edge.to, edge.cause));
                stack.push((progress, 0, false));
                continue;
            }
            if !*leads_on {
                if chains.len() >= CHAINS_MAX {
                    return false;
                }
                chains.push(self.chain(&links, progress));
            }
            on_path[last.index()] = false;
            links.pop();
            stack.pop();
        }
        true
    }

    fn error(&self, reaction: ReactionId) -> Figure<Ns> {
        let federate = self.federation.reactions[reaction.index()].federate;
        self.solved.errors[federate.index()].clone()
    }

    fn best(&self, reaction: ReactionId) -> Ns {
        self.solved.reactions[reaction.index()].best
    }

    fn begin(&self, reaction: ReactionId) -> Progress {
        let earliest = self.error(reaction).map(|error| self.best(reaction) - error);
        Progress { tag: Ok((0, 0)), earliest }
    }

    fn step(&self, progress: &Progress, from: ReactionId, edge: &Edge) -> Progress {
        let delay = ns(edge.delay.time());
        let clock = self.error(edge.to).map(|error| -error);
        let earliest = |arrival: Ns| {
            let clock = clock.clone()?;
            Ok((arrival + clock).max(clock) + self.best(edge.to))
        };
        let transit = self.transit(edge);
        if edge.physical {
            return Progress {
                tag: self.physical_tag(progress, from, edge, &transit),
                earliest: clock.clone().map(|clock| clock + self.best(edge.to)),
            };
        }
        let end = progress.earliest.clone();
        let next = match self.is_message(edge) {
            true => self
                .is_punctual(edge.to)
                .and(end)
                .and_then(|end| Ok(end + transit?.0 - delay))
                .and_then(earliest),
            false => end.and_then(|end| Ok((end - delay).max(clock.clone()?) + self.best(edge.to))),
        };
        let tag = progress.tag.clone().map(|(least, most)| (least + delay, most + delay));
        Progress { tag, earliest: next }
    }

    /// The tag that the reader's clock decides, from the tag of the source.
    fn physical_tag(
        &self,
        progress: &Progress,
        from: ReactionId,
        edge: &Edge,
        transit: &Figure<(Ns, Ns)>,
    ) -> Figure<(Ns, Ns)> {
        let (least, most) = progress.tag.clone()?;
        let end = progress.earliest.clone()?;
        let delay = ns(edge.delay.time());
        let (soon, late) = transit.clone()?;
        let sent = match &self.federation.reactions[edge.to.index()].causes[edge.cause] {
            Trigger::Message(id) => self.solved.connections[id.index()].sent_max.clone()?,
            _ => self.solved.reactions[from.index()].finish_max.clone()?,
        };
        Ok((least + end + soon + delay, most + sent + late + delay))
    }

    /// That no message to a reaction's federate is tardy.
    fn is_punctual(&self, reaction: ReactionId) -> Figure<()> {
        let federate = self.federation.reactions[reaction.index()].federate;
        self.solved.waits[federate.index()].clone().map(drop)
    }

    fn is_message(&self, edge: &Edge) -> bool {
        let cause = &self.federation.reactions[edge.to.index()].causes[edge.cause];
        matches!(cause, Trigger::Message(_))
    }

    /// From the end of the reaction to what the clock of the next one reads when it has what was
    /// set.
    fn transit(&self, edge: &Edge) -> Figure<(Ns, Ns)> {
        match &self.federation.reactions[edge.to.index()].causes[edge.cause] {
            Trigger::Message(id) => self.solved.connections[id.index()].transit.clone(),
            _ => self.error(edge.to).map(|error| (-error, error)),
        }
    }

    fn chain(&self, links: &[(ReactionId, usize)], progress: &Progress) -> ReactionChain {
        let last = links.last().map_or(ReactionId(0), |(last, _)| *last);
        let best = || {
            let (least, _) = progress.tag.clone()?;
            span(least + progress.earliest.clone()?)
        };
        let worst = || {
            let (_, most) = progress.tag.clone()?;
            span(most + self.solved.reactions[last.index()].finish_max.clone()?)
        };
        ReactionChain { links: links.to_vec(), best: best(), worst: worst() }
    }
}
