//! What is known of words: which guards on a path were true, as sets of values. Two paths exclude
//! each other if no value of a word that both stations hold makes both.

use onbeat_runtime::network_code::instruction::{MessageId, Relation};
use std::collections::{BTreeMap, BTreeSet};

/// Where a word is from. `Value` is one word for all stations: that of the frame of a message which
/// is sent exactly once in each round, so many rounds ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WordSource {
    /// A buffer of this station, since it was last written.
    Local { buffer: u8 },
    /// A transmission.
    Value { message: MessageId, age: u8 },
}

/// A word of a known source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SourceWord {
    pub(super) source: WordSource,
    pub(super) index: u8,
}

impl SourceWord {
    fn is_value(&self) -> bool {
        matches!(self.source, WordSource::Value { .. })
    }

    /// The message and the index, whichever transmission of it.
    fn of_message(self) -> Option<(MessageId, u8)> {
        match self.source {
            WordSource::Value { message, .. } => Some((message, self.index)),
            WordSource::Local { .. } => None,
        }
    }

    /// As seen from a round that begins so many later.
    fn older(self, rounds: u8) -> Self {
        match self.source {
            WordSource::Local { .. } => self,
            WordSource::Value { message, age } => {
                let source = WordSource::Value { message, age: age.saturating_add(rounds) };
                Self { source, ..self }
            }
        }
    }
}

/// Which values a word may have: disjoint ranges in order.
pub(super) type Ranges = Vec<(u32, u32)>;

const SIGN: u32 = 1 << 31;

/// The values that compare so with a constant, or do not.
pub(super) fn ranges(relation: Relation, value: u32, is_so: bool) -> Ranges {
    let below = |end: Option<u32>| end.map_or(Vec::new(), |end| vec![(0, end)]);
    let signed = |end: Option<u32>| {
        // In the order of signed numbers the negative ones come first.
        let Some(end) = end else { return Vec::new() };
        match end.checked_sub(SIGN) {
            None => vec![(SIGN, end + SIGN)],
            Some(end) => vec![(0, end), (SIGN, u32::MAX)],
        }
    };
    let ordered = value ^ SIGN;
    let holds = match relation {
        Relation::Equal => vec![(value, value)],
        Relation::Below => below(value.checked_sub(1)),
        Relation::NotAbove => below(Some(value)),
        Relation::Less => signed(ordered.checked_sub(1)),
        Relation::AtMost => signed(Some(ordered)),
    };
    if is_so { holds } else { complement(&holds) }
}

fn complement(all: &[(u32, u32)]) -> Ranges {
    let mut rest = Vec::new();
    let mut next = Some(0);
    for &(first, last) in all {
        if let Some(next) = next
            && next < first
        {
            rest.push((next, first - 1));
        }
        next = last.checked_add(1);
    }
    rest.extend(next.map(|next| (next, u32::MAX)));
    rest
}

pub(super) fn intersection(left: &[(u32, u32)], right: &[(u32, u32)]) -> Ranges {
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    pairs.filter(|(first, last)| first <= last).collect()
}

/// Guards that a path has passed: sets of values by word, and comparisons of two words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Facts {
    words: Vec<(SourceWord, Ranges)>,
    pairs: Vec<((SourceWord, RelationCode, SourceWord), bool)>,
}

/// A relation that has an order, for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RelationCode {
    Equal,
    Less,
    AtMost,
    Below,
    NotAbove,
}

impl RelationCode {
    pub(super) fn of(relation: Relation) -> Self {
        match relation {
            Relation::Equal => Self::Equal,
            Relation::Less => Self::Less,
            Relation::AtMost => Self::AtMost,
            Relation::Below => Self::Below,
            Relation::NotAbove => Self::NotAbove,
        }
    }

    fn relation(self) -> Relation {
        match self {
            Self::Equal => Relation::Equal,
            Self::Less => Relation::Less,
            Self::AtMost => Relation::AtMost,
            Self::Below => Relation::Below,
            Self::NotAbove => Relation::NotAbove,
        }
    }
}

impl Facts {
    /// The values that a word may still have.
    pub(super) fn of(&self, word: SourceWord) -> Option<&Ranges> {
        let at = self.words.binary_search_by_key(&word, |(word, _)| *word).ok()?;
        Some(&self.words[at].1)
    }

    /// The same facts with one more of a word; none if they exclude each other.
    pub(super) fn with(&self, word: SourceWord, ranges: &Ranges) -> Option<Self> {
        let mut facts = self.clone();
        match facts.words.binary_search_by_key(&word, |(word, _)| *word) {
            Ok(at) => facts.words[at].1 = intersection(&facts.words[at].1, ranges),
            Err(at) => facts.words.insert(at, (word, ranges.clone())),
        }
        (!facts.of(word)?.is_empty()).then_some(facts)
    }

    /// The same with the outcome of a comparison of two words.
    pub(super) fn with_pair(
        &self,
        key: (SourceWord, RelationCode, SourceWord),
        is_so: bool,
    ) -> Option<Self> {
        let mut facts = self.clone();
        match facts.pairs.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => (facts.pairs[at].1 == is_so).then_some(facts),
            Err(at) => {
                facts.pairs.insert(at, (key, is_so));
                Some(facts)
            }
        }
    }

    /// A buffer has been written: what was known of it is past.
    pub(super) fn forget(&mut self, buffer: u8) {
        let old = WordSource::Local { buffer };
        self.words.retain(|(word, _)| word.source != old);
        self.pairs.retain(|((left, _, right), _)| left.source != old && right.source != old);
    }

    /// A buffer's words have become those of a transmission.
    pub(super) fn rename(&mut self, buffer: u8, source: WordSource) {
        let old = WordSource::Local { buffer };
        let renamed = |word: SourceWord| {
            if word.source == old { SourceWord { source, ..word } } else { word }
        };
        for (word, _) in &mut self.words {
            *word = renamed(*word);
        }
        for ((left, _, right), _) in &mut self.pairs {
            (*left, *right) = (renamed(*left), renamed(*right));
        }
        self.words.sort();
        self.pairs.sort();
    }

    /// Only what other stations may know too.
    pub(super) fn shared(&self) -> Self {
        let words = self.words.iter().filter(|(word, _)| word.is_value());
        let is_value = |pair: &&((SourceWord, RelationCode, SourceWord), bool)| {
            pair.0.0.is_value() && pair.0.2.is_value()
        };
        let pairs = self.pairs.iter().filter(is_value);
        Self { words: words.cloned().collect(), pairs: pairs.cloned().collect() }
    }

    /// The words of messages that something is known of.
    pub(super) fn keys(&self) -> impl Iterator<Item = (MessageId, u8)> {
        let pairs = self.pairs.iter().flat_map(|((left, _, right), _)| [*left, *right]);
        self.words.iter().map(|(word, _)| *word).chain(pairs).filter_map(SourceWord::of_message)
    }

    /// Only what is known of these words.
    pub(super) fn within(&self, words: &LookedAt) -> Self {
        let is_in = |word: &SourceWord| word.of_message().is_some_and(|word| words.contains(&word));
        let kept = self.words.iter().filter(|(word, _)| is_in(word));
        let pairs = self.pairs.iter().filter(|((a, _, b), _)| is_in(a) && is_in(b));
        Self { words: kept.cloned().collect(), pairs: pairs.cloned().collect() }
    }

    /// Whether no value of a single word makes both so: then nothing is to be joined.
    pub(super) fn excludes(&self, rounds: u8, later: &Self) -> bool {
        let meet = |left: &Ranges, right: &Ranges| {
            left.iter().any(|a| right.iter().any(|b| a.0.max(b.0) <= a.1.min(b.1)))
        };
        self.words.iter().filter(|(word, _)| word.is_value()).any(|(word, ranges)| {
            later.of(word.older(rounds)).is_some_and(|other| !meet(ranges, other))
        })
    }

    /// What is known if both are so, where `self` is of a round `rounds` before the other; none if
    /// both cannot be. The result is as seen from the later round.
    pub(super) fn joined(&self, rounds: u8, later: &Self) -> Option<Self> {
        let mut all = later.clone();
        for (word, ranges) in self.words.iter().filter(|(word, _)| word.is_value()) {
            all = all.with(word.older(rounds), ranges)?;
        }
        for ((left, relation, right), is_so) in &self.pairs {
            if left.is_value() && right.is_value() {
                let key = (left.older(rounds), *relation, right.older(rounds));
                all = all.with_pair(key, *is_so)?;
            }
        }
        Some(all)
    }

    /// Values of words that make all of it so: message, rounds ago, index, value. Comparisons of
    /// two words are met where ends of their ranges meet them.
    pub(super) fn values(&self) -> Vec<(MessageId, u8, u8, u32)> {
        let keys = self.pairs.iter().flat_map(|((left, _, right), _)| [*left, *right]);
        let keys: BTreeSet<SourceWord> =
            self.words.iter().map(|(word, _)| *word).chain(keys).collect();
        let may = |key: SourceWord| self.of(key).cloned().unwrap_or(vec![(0, u32::MAX)]);
        let first = |key: &SourceWord| (*key, may(*key).first().map_or(0, |range| range.0));
        let mut values: BTreeMap<SourceWord, u32> = keys.iter().map(first).collect();
        let mut fixed = BTreeSet::new();
        for ((left, relation, right), is_so) in &self.pairs {
            let ends = |key: SourceWord| -> Vec<u32> {
                if fixed.contains(&key) {
                    return vec![values[&key]];
                }
                may(key).iter().flat_map(|range| [range.0, range.1]).collect()
            };
            let (one, other) = (ends(*left), ends(*right));
            let all = one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b)));
            let mut fits = all.filter(|(a, b)| relation.relation().holds(*a, *b) == *is_so);
            if let Some((a, b)) = fits.next() {
                values.extend([(*left, a), (*right, b)]);
                fixed.extend([*left, *right]);
            }
        }
        let value = |(word, value): (SourceWord, u32)| match word.source {
            WordSource::Value { message, age } => Some((message, age, word.index, value)),
            WordSource::Local { .. } => None,
        };
        values.into_iter().filter_map(value).collect()
    }
}

/// Words of messages that guards of more than one station look at, or one station more than once.
pub(super) type LookedAt = BTreeSet<(MessageId, u8)>;
