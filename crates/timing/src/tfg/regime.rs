//! Where everything repeats. Of each task two visits of the head of its endless loop are found
//! that are equal but for the time, the same time for all tasks, and of each channel the messages
//! between the first ones and those between the second ones are the same but for that time. What a
//! task does depends on its state and the messages that it reads and on nothing else, so after the
//! second visits comes what came after the first, that much later, and so for ever.

use super::fixpoint::{Cut, Fixpoint};
use super::state::Count;
use super::statics::Endpoint;
use onbeat_model::graph::{ChannelKind, Interval};
use onbeat_model::time::Span;
use onbeat_model::timing::{Component, Course, PeriodicRegime};
use std::collections::BTreeMap;

/// The longest shift that is of use.
const LONGEST: Span = Span::from_s(3_600);
/// So many first visits are tried.
const TRIALS: usize = 64;
/// Up to so many times the shortest shift after which each task alone repeats.
const MULTIPLES: i64 = 4;

/// By task: a visit and one that is the same later.
type Pairs<'a> = BTreeMap<usize, (&'a Cut, &'a Cut)>;

/// The periodic regime of a component.
#[derive(Clone, Debug)]
pub(super) struct FoundRegime {
    /// Of each task that does not end: its first visit's round and the rounds until it repeats.
    pub(super) rounds: BTreeMap<usize, (u32, u32)>,
    pub(super) shift: Span,
}

impl FoundRegime {
    /// How these tasks continue.
    pub(super) fn course(&self, tasks: &[usize]) -> Course {
        let rounds = tasks.iter().map(|task| self.rounds.get(task).copied()).collect();
        Course::Repeats { rounds, shift: self.shift }
    }
}

impl Fixpoint<'_> {
    /// Whether all that these tasks do repeats.
    pub(super) fn repeats(&self, tasks: &[usize]) -> Option<FoundRegime> {
        let endless: Vec<usize> =
            tasks.iter().copied().filter(|t| self.front(*t).is_some()).collect();
        let slowest = *endless.iter().min_by_key(|t| self.tasks[**t].cuts.len())?;
        let mut together = 1;
        for task in &endless {
            together = common(together, self.alone(*task)?.as_ns())?;
        }
        let cuts = &self.tasks[slowest].cuts;
        for times in 1..=MULTIPLES {
            let shift = Span::from_ns(together.checked_mul(times)?);
            let seconds = |first: &Cut| {
                let at = first.state.now.lo + shift;
                let index = cuts.partition_point(|cut| cut.state.now.lo < at);
                let mut same = cuts[index..].iter().take_while(|cut| cut.state.now.lo == at);
                same.any(|second| is_again(first, second, shift))
            };
            for first in cuts.iter().filter(|first| seconds(first)).take(TRIALS) {
                if let Some(found) = self.pairs(&endless, first.state.now.lo, shift) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// After what a task alone was last as it is.
    fn alone(&self, task: usize) -> Option<Span> {
        let (last, before) = self.tasks[task].cuts.split_last()?;
        let shifts = before.iter().rev().map(|cut| (cut, last.state.now.lo - cut.state.now.lo));
        let mut shifts = shifts.filter(|(_, shift)| *shift > Span::ZERO);
        shifts.find(|(cut, shift)| is_again(cut, last, *shift)).map(|(_, shift)| shift)
    }

    /// The first pair of each task from an instant on.
    fn pairs(&self, tasks: &[usize], from: Span, shift: Span) -> Option<FoundRegime> {
        let mut pairs = BTreeMap::new();
        for task in tasks {
            let cuts = &self.tasks[*task].cuts;
            let begin = cuts.partition_point(|cut| cut.state.now.lo < from);
            let pair = cuts[begin..].iter().find_map(|first| {
                let at = first.state.now.lo + shift;
                let index = cuts.partition_point(|cut| cut.state.now.lo < at);
                let later = cuts[index..].iter().take_while(|cut| cut.state.now.lo == at);
                let second = later.into_iter().find(|second| is_again(first, second, shift))?;
                Some((first, second))
            })?;
            pairs.insert(*task, pair);
        }
        if !self.are_same(&pairs, shift) {
            return None;
        }
        self.earliest(&mut pairs, shift);
        let rounds = |(a, b): (&Cut, &Cut)| (a.round, b.round - a.round);
        let rounds = pairs.into_iter().map(|(task, pair)| (task, rounds(pair)));
        Some(FoundRegime { rounds: rounds.collect(), shift })
    }

    fn are_same(&self, pairs: &Pairs<'_>, shift: Span) -> bool {
        (0..self.writers.len()).all(|channel| self.is_same_channel(channel, pairs, shift))
    }

    /// Moves the pairs to earlier rounds where they are as good.
    fn earliest<'a>(&'a self, pairs: &mut Pairs<'a>, shift: Span) {
        let tasks: Vec<usize> = pairs.keys().copied().collect();
        let mut moved = true;
        while moved {
            moved = false;
            for task in &tasks {
                let cuts = &self.tasks[*task].cuts;
                let (first, second) = pairs[task];
                let find = |round: u32| {
                    cuts.iter().find(|cut| cut.head == first.head && cut.round + 1 == round)
                };
                let earlier = find(first.round).zip(find(second.round));
                let Some(pair) = earlier.filter(|(a, b)| is_again(a, b, shift)) else { continue };
                pairs.insert(*task, pair);
                if self.are_same(pairs, shift) {
                    moved = true;
                } else {
                    pairs.insert(*task, (first, second));
                }
            }
        }
    }

    /// Whether a channel has the same messages in flight at both visits, and as many written as
    /// read in between.
    fn is_same_channel(&self, channel: usize, pairs: &Pairs<'_>, shift: Span) -> bool {
        let count = |task: usize, writes: bool| {
            let end = self.statics[task].number(Endpoint { channel, writes })?;
            let (first, second) = pairs.get(&task)?;
            Some((first.state.counts[end], second.state.counts[end]))
        };
        let made = |task: usize| {
            let end = self.statics[task].number(Endpoint { channel, writes: true })?;
            let (first, second) = pairs.get(&task)?;
            Some((first.made[end], second.made[end]))
        };
        let writers = &self.writers[channel];
        let has_pair = |task: &usize| pairs.contains_key(task);
        if !writers.iter().map(|(t, _)| t).chain(&self.readers[channel]).any(has_pair) {
            return true;
        }
        if writers.len() > 1 {
            return self.is_same_mix(channel, pairs, shift);
        }
        let writes = match writers.first() {
            Some((writer, _)) => count(*writer, true),
            None => None,
        };
        let made = writers.first().and_then(|(writer, _)| made(*writer)).unwrap_or_default();
        for reader in &self.readers[channel] {
            let reads = count(*reader, false);
            let is_same = match (writes, reads) {
                (Some(writes), Some(reads)) => {
                    self.is_same_flow((channel, *reader), writes, made, reads, shift)
                }
                (None, Some((first, second))) => {
                    first == second && self.is_over(channel, *reader, first, pairs)
                }
                (Some((first, second)), None) => first == second,
                (None, None) => true,
            };
            if !is_same {
                return false;
            }
        }
        true
    }

    /// The same of a channel that several tasks write and one reads. From the last of the first
    /// visits on, all that is written repeats, so that each time of so many messages there are
    /// as many more; what is in flight then is compared.
    fn is_same_mix(&self, channel: usize, pairs: &Pairs<'_>, shift: Span) -> bool {
        let [reader] = self.readers[channel][..] else { return false };
        let reads = self.statics[reader].number(Endpoint { channel, writes: false });
        let Some((reads, (first, second))) = reads.zip(pairs.get(&reader)) else { return false };
        let read = [first, second].map(|cut| exact(cut.state.counts[reads]));
        let (mut more, mut begin) = (0, first.state.now);
        let (mut earliest, mut latest) = (Vec::new(), Vec::new());
        for (writer, messages) in &self.writers[channel] {
            let end = self.statics[*writer].number(Endpoint { channel, writes: true });
            if let Some((end, (first, second))) = end.zip(pairs.get(writer)) {
                let made = [first, second].map(|cut| exact(cut.state.counts[end]));
                let [Some(made), Some(then)] = made else { return false };
                more += then - made;
                begin = begin.later(first.state.now);
            } else if self.front(*writer).is_some() {
                return false;
            }
            if !messages.all.iter().all(|capture| capture.is_certain) {
                return false;
            }
            earliest.extend(messages.all.iter().map(|capture| capture.at.lo));
            latest.extend(messages.all.iter().filter_map(|capture| capture.at.hi));
        }
        let ([Some(from), Some(to)], Some(last)) = (read, begin.hi) else { return false };
        let is_behind =
            |task: &usize| self.front(*task).is_none_or(|(_, state)| state.now.lo > last + shift);
        let mut tasks = self.writers[channel].iter().map(|(writer, _)| writer).chain([&reader]);
        let is_same = |times: &mut Vec<Span>, begin: Span| {
            times.sort_unstable();
            let steady = times.partition_point(|at| *at <= begin);
            let again =
                |at| times.get(at + more as usize) == times.get(at).map(|t| *t + shift).as_ref();
            (from as usize..steady).all(again)
        };
        !self.crowded.contains(&channel)
            && to - from == more
            && earliest.len() == latest.len()
            && tasks.all(is_behind)
            && is_same(&mut earliest, begin.lo)
            && is_same(&mut latest, last)
    }

    /// Whether nothing is left to read of writers that have ended.
    fn is_over(&self, channel: usize, reader: usize, reads: Count, pairs: &Pairs<'_>) -> bool {
        let next = Count { lo: reads.lo, hi: Some(reads.lo) };
        let statics = &self.statics[reader];
        let end = statics.number(Endpoint { channel, writes: false });
        let cut = pairs.get(&reader).map(|(first, _)| statics.order.node(&vec![first.head]));
        let reads_on = cut.zip(end).is_some_and(|(head, end)| statics.uses[head][end]);
        !reads_on || self.captures(channel, next).at.is_none()
    }

    fn is_same_flow(
        &self,
        (channel, reader): (usize, usize),
        writes: (Count, Count),
        made: (usize, usize),
        reads: (Count, Count),
        shift: Span,
    ) -> bool {
        let more = writes.1.lo - writes.0.lo;
        // Who left the loop before may have made messages that it makes later.
        if made.0 + more as usize != made.1 {
            return false;
        }
        if reads.1.lo - reads.0.lo != more || !is_more(writes, more) || !is_more(reads, more) {
            return false;
        }
        let last = writes.0.hi.unwrap_or(writes.0.lo).max(writes.0.lo).max(made.0 as u32);
        for number in reads.0.lo..last {
            let at = |number| {
                let count = Count { lo: number, hi: Some(number) };
                let known = self.captures(channel, count);
                (known.at, self.is_sure(channel, count), self.is_final(channel, count))
            };
            let (first, second) = (at(number), at(number + more));
            let again = first.0.map(|at| at + Interval::exactly(shift));
            if again != second.0 || first.1 != second.1 || !first.2 || !second.2 {
                return false;
            }
        }
        self.has_room(channel, reader, (writes.0.lo, writes.1.lo), reads, shift)
    }

    /// Whether no message ever finds the channel full.
    fn has_room(
        &self,
        channel: usize,
        reader: usize,
        writes: (u32, u32),
        reads: (Count, Count),
        shift: Span,
    ) -> bool {
        let capacity = match self.graph.channels.get(channel).map(|c| &c.kind) {
            Some(ChannelKind::Fifo { capacity }) => *capacity,
            Some(ChannelKind::Network(network)) => network.capacity,
            _ => return true,
        };
        let more = i64::from(writes.1 - writes.0);
        let latency = self.latency(channel, reader);
        if more == 0 || latency.hi.is_none() {
            return true;
        }
        let Some(end) = self.statics[reader].number(Endpoint { channel, writes: false }) else {
            return false;
        };
        let begin = i64::from(reads.0.lo);
        (writes.0..writes.1).all(|number| {
            let count = Count { lo: number, hi: Some(number) };
            let Some(at) = self.captures(channel, count).at else { return true };
            // The read that makes room for it, or the same one of other rounds.
            let needed = i64::from(number) - i64::from(capacity);
            let rounds = (begin - needed).div_euclid(more)
                + i64::from((begin - needed).rem_euclid(more) != 0);
            let same = u32::try_from(needed + rounds * more).unwrap_or(u32::MAX);
            let read = self.taken_at(reader, end, same);
            let room = (at.lo + latency.lo).as_ns() + rounds * shift.as_ns();
            read.is_some_and(|read| read.as_ns() < room)
        })
    }

    /// When the read of a message is done at the latest, if the reader continues.
    pub(super) fn taken_at(&self, task: usize, end: usize, number: u32) -> Option<Span> {
        self.tasks[task].taken[end].of(number)?.at.hi
    }
}

fn exact(count: Count) -> Option<u32> {
    count.hi.filter(|hi| *hi == count.lo)
}

fn is_more(counts: (Count, Count), more: u32) -> bool {
    counts.0.hi.map(|hi| hi + more) == counts.1.hi
}

fn is_again(first: &Cut, second: &Cut, shift: Span) -> bool {
    first.head == second.head
        && first.is_certain == second.is_certain
        && first.state.is_shifted(shift, &second.state)
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The shortest time that is a multiple of both, if it is of use.
fn common(a: i64, b: i64) -> Option<i64> {
    (a / gcd(a, b)).checked_mul(b).filter(|ns| *ns <= LONGEST.as_ns())
}

/// The pattern of all components together, if each that does not end has one.
pub(super) fn together(tasks: usize, components: &[Component]) -> Option<PeriodicRegime> {
    let mut all = 1_i64;
    for component in components {
        match component.course {
            Course::Ends => {}
            Course::Repeats { shift, .. } => all = common(all, shift.as_ns())?,
            Course::Open { .. } => return None,
        }
    }
    let (mut rounds, mut parts) = (vec![None; tasks], vec![None; tasks]);
    for component in components {
        for (place, task) in component.tasks.iter().enumerate() {
            let Some((first, again, shift)) = component.course.again(place) else { continue };
            let times = u32::try_from(all / shift.as_ns()).ok()?;
            rounds[*task] = Some((first, again.checked_mul(times)?));
            parts[*task] = Some((again, shift));
        }
    }
    let is_endless = rounds.iter().any(Option::is_some);
    is_endless.then_some(PeriodicRegime { tasks: rounds, shift: Span::from_ns(all), parts })
}
