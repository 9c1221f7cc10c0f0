//! What guards see.

use super::{Player, ReplayWorld, WordId};
use crate::verification::values::{Ranges, intersection, ranges};
use onbeat_runtime::network_code::instruction::{BufferWord, Condition, Guard, Relation};
use onbeat_runtime::network_code::program::BufferRole;

impl<W: ReplayWorld> Player<'_, W> {
    /// Whether a condition is true. The world decides what is open, and hears of the rest.
    pub(super) fn condition(&mut self, station: usize, guard: Guard) -> bool {
        let machine = &mut self.machines[station];
        let evaluated = match guard.condition {
            Condition::Always => Some(true),
            Condition::Count { counter, every } => {
                let count = &mut machine.counters[usize::from(counter)];
                *count = count.saturating_add(1);
                let is_true = *count >= every;
                *count = if is_true { 0 } else { *count };
                Some(is_true)
            }
            Condition::Received => Some(machine.received),
            Condition::SyncTimeout => Some(machine.timeout),
            Condition::Overrun => Some(std::mem::take(&mut machine.overrun)),
            Condition::Transmitting => Some(machine.now < machine.gap_end),
            Condition::Flag(_) | Condition::LinkUp => None,
            Condition::Fresh(message) => {
                self.take(station, message);
                Some(self.machines[station].receive[usize::from(message.0)].pending)
            }
            Condition::Immediate { word, relation, value } => {
                return self.compare(station, guard.negated, word, relation, value as u32);
            }
            Condition::Words { left, relation, right } => {
                return self.compare_words(station, guard.negated, left, relation, right);
            }
        };
        let place = self.place(station, guard.negated);
        self.world.guard(place, evaluated)
    }

    /// A word of an input buffer; one of the application's may be any at each instant.
    fn word(&self, station: usize, word: BufferWord) -> Option<WordId> {
        let of = self.network.stations[station].program.buffer(word.buffer)?;
        let words = &self.machines[station].buffers[usize::from(word.buffer.0)].1;
        match of.role {
            BufferRole::Input => words.get(usize::from(word.index)).copied(),
            BufferRole::Output => None,
        }
    }

    fn compare(
        &mut self,
        station: usize,
        negated: bool,
        word: BufferWord,
        relation: Relation,
        value: u32,
    ) -> bool {
        let place = self.place(station, negated);
        let Some(id) = self.word(station, word) else { return self.world.guard(place, None) };
        let may = |is_true: bool| intersection(&self.words[id], &ranges(relation, value, is_true));
        let (so, not) = (may(true), may(false));
        let evaluated = (so.is_empty() || not.is_empty()).then_some(!so.is_empty());
        let is_true = self.world.guard(place, evaluated);
        let is_true = evaluated.unwrap_or(is_true);
        self.words[id] = if is_true { so } else { not };
        is_true
    }

    fn compare_words(
        &mut self,
        station: usize,
        negated: bool,
        left: BufferWord,
        relation: Relation,
        right: BufferWord,
    ) -> bool {
        let place = self.place(station, negated);
        let ids = self.word(station, left).zip(self.word(station, right));
        let Some((left, right)) = ids else { return self.world.guard(place, None) };
        // The ends of the ranges: some of them compare so if any values do.
        let ends = |of: &Ranges| -> Vec<u32> { of.iter().flat_map(|it| [it.0, it.1]).collect() };
        let pairs: Vec<(u32, u32)> = ends(&self.words[left])
            .into_iter()
            .flat_map(|a| ends(&self.words[right]).into_iter().map(move |b| (a, b)))
            .filter(|(a, b)| left != right || a == b)
            .collect();
        let (so, not): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(a, b)| relation.holds(*a, *b));
        let evaluated = (so.is_empty() || not.is_empty()).then_some(!so.is_empty());
        let is_true = self.world.guard(place, evaluated);
        let is_true = evaluated.unwrap_or(is_true);
        let fits = if is_true { so } else { not };
        if !fits.is_empty()
            && let Some((a, b)) = fits.get(self.world.pick(fits.len()))
        {
            let (a, b) = (*a, *b);
            self.words[left] = vec![(a, a)];
            self.words[right] = vec![(b, b)];
        }
        is_true
    }
}
