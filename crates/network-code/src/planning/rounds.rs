//! How long rounds are, and in which of them each channel has a slot: at least as often as
//! messages are written, and more often where fixed delays need it.

use super::latency;
use super::round::{Bus, CYCLE};
use super::slots::{ROUND_LENGTH_MAX, ROUNDS_MAX, SENDINGS_MAX, needs};
use super::{codes, refused};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::time::Span;
use std::collections::BTreeSet;

/// Into how many rounds a length is divided at most.
const PARTS_MAX: i64 = 4_096;
/// Of how many numbers of parts that channels need the neighbours are looked at.
const NEEDED_MAX: usize = 8;
/// Numbers of parts above one that is needed: among them is one whose divisors are better.
const NEIGHBOURS: i64 = 3;
/// What costs are counted in: frames in so many ns.
const COST_NS: i128 = 1_000_000_000_000_000;

/// A round and how often each channel has a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseRound {
    /// In ns, a multiple of a cycle.
    pub(super) round: i64,
    /// By channel: in each so many-th round.
    pub(super) every: Vec<u32>,
    /// Rounds until all repeats.
    pub(super) rounds: u32,
}

impl BaseRound {
    /// None if there are too many rounds or slots until all repeats.
    pub(super) fn new(round: i64, every: Vec<u32>) -> Option<Self> {
        let multiple = |all: i64, every: &u32| {
            let all = all / gcd(all, i64::from(*every)) * i64::from(*every);
            (all <= i64::from(ROUNDS_MAX)).then_some(all)
        };
        let rounds = whole(every.iter().try_fold(1, multiple)?);
        let base = Self { round, every, rounds };
        (base.sendings() <= SENDINGS_MAX).then_some(base)
    }

    /// Slots of all channels until all repeats.
    pub(super) fn sendings(&self) -> u64 {
        self.every.iter().map(|every| u64::from(self.rounds / every)).sum()
    }

    /// Slots in a long time, and the frames that begin rounds.
    pub(super) fn cost(&self) -> i128 {
        let often = |every: u32| COST_NS / (i128::from(self.round) * i128::from(every));
        let beginnings = if self.rounds > 1 { 2 } else { 1 };
        self.every.iter().map(|every| often(*every)).sum::<i128>() + beginnings * often(1)
    }
}

/// Rounds that seem to keep fixed delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundCandidate {
    pub(super) base: BaseRound,
    /// By channel, the fewest slots that come as often as messages: in each so many-th round.
    pub(super) sparse: Vec<u32>,
    /// By channel, whether its fixed delay seems to be kept.
    pub(super) keeps: Vec<bool>,
    /// Channels that are late in any case.
    pub(super) late: usize,
}

/// What rounds may be: a length that is divided.
pub(super) struct RoundLengths<'a> {
    bus: &'a Bus<'a>,
    /// In ns.
    length: i64,
    /// By channel: its interval in such lengths, if it is a multiple.
    multiples: Option<Vec<i64>>,
    /// The fewest parts.
    parts: i64,
}

impl<'a> RoundLengths<'a> {
    /// The greatest common divisor of all intervals, or a part of it; or, where that is too short
    /// for a slot, the shortest interval, and each other one rounded down to whole rounds. Each
    /// shorter by what clocks are off.
    ///
    /// # Errors
    /// There is no room for a slot (OB6068).
    pub(super) fn new(bus: &'a Bus<'a>) -> Result<Self, Vec<Diagnostic>> {
        let intervals = || bus.system.channels.iter().map(|channel| channel.interval.as_ns());
        let parts = |length: i64| (length - 1).div_euclid(ROUND_LENGTH_MAX.as_ns()) + 1;
        let common = intervals().fold(0, gcd);
        let multiples = intervals().map(|interval| interval / common.max(1)).collect();
        let length = slots_apart(bus, common);
        let exact = Self { bus, length, multiples: Some(multiples), parts: parts(length) };
        if exact.parts <= PARTS_MAX && exact.has_room_for_all() {
            return Ok(exact);
        }
        let shortest = intervals().min().unwrap_or(0);
        let length = slots_apart(bus, shortest);
        let rounded = Self { bus, length, multiples: None, parts: parts(length) };
        match rounded.has_room_for_all() {
            true => Ok(rounded),
            false => Err(vec![too_short(bus, shortest, rounded.round(rounded.parts))]),
        }
    }

    /// A round of so many parts, in ns.
    fn round(&self, parts: i64) -> i64 {
        self.length / parts.max(1) / CYCLE * CYCLE
    }

    fn has_room_for_all(&self) -> bool {
        let round = self.round(self.parts);
        let mut intervals = self.bus.system.channels.iter().map(|it| it.interval.as_ns());
        round > 0 && self.has_room(round, intervals.any(|interval| interval / round > 1))
    }

    fn has_room(&self, round: i64, has_more: bool) -> bool {
        round > 0 && needs(self.bus, round, has_more).0 <= round
    }

    /// In which rounds channels have slots that come just as often as messages.
    fn sparse(&self, parts: i64) -> Vec<u32> {
        let round = self.round(parts);
        let rounds = |(channel, it): (usize, &onbeat_model::system::Channel)| {
            // A mode and its alternatives are in each round.
            if self.bus.shared_by(channel).or(self.bus.mode_of(channel)).is_some() {
                return 1;
            }
            let exact = self.multiples.as_ref().map(|multiples| multiples[channel]);
            let rounded = || slots_apart(self.bus, it.interval.as_ns()) / round;
            whole(exact.map_or_else(rounded, |multiple| multiple.saturating_mul(parts)))
        };
        self.bus.system.channels.iter().enumerate().map(rounds).collect()
    }

    /// The longest rounds, with as few slots as there may be.
    ///
    /// # Errors
    /// All repeats after too many rounds (OB6071).
    pub(super) fn longest(&self) -> Result<BaseRound, Vec<Diagnostic>> {
        let round = self.round(self.parts);
        BaseRound::new(round, self.sparse(self.parts)).ok_or_else(|| {
            let message = format!(
                "slots of all channels repeat after more than {ROUNDS_MAX} rounds of {}",
                Span::from_ns(round)
            );
            vec![refused(codes::PROGRAM, message, "use intervals that divide one another")]
        })
    }

    /// Whether a channel's bound is not above its fixed delay, if all that is not known before
    /// there is a schedule takes `unknown`.
    fn keeps(&self, channel: usize, every: u32, round: i64, unknown: i64) -> bool {
        let waits: i64 = latency::waits(self.bus, channel, every, round).iter().sum();
        let least = waits + latency::shortest(self.bus, channel, round) + unknown;
        least <= self.bus.system.channels[channel].fixed_delay.as_ns()
    }

    /// Parts in which there may be slots that are often enough, and what they cost: those in which
    /// the fewest channels are late first, and then those with the fewest frames. `unknown` is
    /// what each channel's latency is at least above what is known before there is a schedule.
    pub(super) fn candidates(&self, unknown: &[i64]) -> Vec<RoundCandidate> {
        // More parts have less room, and slots that are closer.
        let first = |is_enough: &dyn Fn(i64) -> bool| {
            let (mut low, mut high) = (self.parts, PARTS_MAX.max(self.parts) + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                match is_enough(middle) {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            low
        };
        let most = first(&|parts| !self.has_room(self.round(parts), false)) - 1;
        let needed = |(channel, unknown): (usize, &i64)| {
            first(&|parts| self.keeps(channel, 1, self.round(parts), *unknown))
        };
        let needed: BTreeSet<i64> = unknown.iter().enumerate().map(needed).collect();
        let needed = needed.into_iter().rev().filter(|parts| *parts <= most).take(NEEDED_MAX);
        let around = |parts: i64| (parts..=parts + NEIGHBOURS).chain([2 * parts]);
        let mut all: BTreeSet<i64> = needed.flat_map(around).filter(|it| *it <= most).collect();
        all.insert(self.parts);
        let mut candidates: Vec<_> =
            all.into_iter().filter_map(|parts| self.candidate(parts, unknown)).collect();
        candidates.sort_by_key(|it| (it.late, it.base.cost()));
        candidates
    }

    fn candidate(&self, parts: i64, unknown: &[i64]) -> Option<RoundCandidate> {
        let round = self.round(parts);
        let sparse = self.sparse(parts);
        let often = |(channel, sparse): (usize, &u32)| {
            divisor(*sparse, |every| self.keeps(channel, every, round, unknown[channel]))
        };
        let often: Vec<Option<u32>> = sparse.iter().enumerate().map(often).collect();
        let keeps: Vec<bool> = often.iter().map(Option::is_some).collect();
        let late = keeps.iter().filter(|keeps| !**keeps).count();
        let every = often.iter().zip(&sparse).map(|(often, sparse)| often.unwrap_or(*sparse));
        let base = BaseRound::new(round, every.collect())?;
        let has_room = self.has_room(round, base.rounds > 1);
        has_room.then_some(RoundCandidate { base, sparse, keeps, late })
    }
}

/// The longest time between two slots, in ns by the master's clock, so that slots come at least as
/// often as messages: these by a clock that is fast, and slots by one that is slow.
fn slots_apart(bus: &Bus<'_>, interval: i64) -> i64 {
    const BILLION: i128 = 1_000_000_000;
    let messages = i128::from(interval - bus.tree.error(interval));
    let apart = messages.max(0) * BILLION / (BILLION + i128::from(bus.tree.drift_ppb));
    // It is no longer than the interval.
    apart as i64
}

/// The greatest divisor of a number that is small enough.
fn divisor(number: u32, is_small: impl Fn(u32) -> bool) -> Option<u32> {
    let mut greatest = None;
    for small in (1..=number).take_while(|small| u64::from(*small).pow(2) <= u64::from(number)) {
        if !number.is_multiple_of(small) {
            continue;
        }
        for divisor in [small, number / small] {
            if greatest < Some(divisor) && divisor <= ROUNDS_MAX && is_small(divisor) {
                greatest = Some(divisor);
            }
        }
        // Not even 1.
        greatest?;
    }
    greatest
}

fn too_short(bus: &Bus<'_>, shortest: i64, round: i64) -> Diagnostic {
    let (needs, channel) = needs(bus, round, bus.frames.len() > 1);
    let is_shortest = |channel: &&_| {
        let channel: &onbeat_model::system::Channel = channel;
        channel.interval.as_ns() == shortest
    };
    let channels = &bus.system.channels;
    let shortest = channels.iter().find(is_shortest).unwrap_or(&channels[channel]);
    let message = format!(
        "channel `{}` has an interval of {}, and a round with its beginning and a slot of `{}` \
         takes {}",
        shortest.name,
        shortest.interval,
        channels[channel].name,
        Span::from_ns(needs)
    );
    let error = Diagnostic::error(codes::ROUND, message, shortest.origin, "is too often");
    error.help("use longer intervals, faster links, or less best effort on them")
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn whole(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_divisor_that_is_small_enough() {
        for number in 1..200 {
            for limit in 0..=number {
                let all = (1..=limit).filter(|divisor| number % divisor == 0);
                assert_eq!(divisor(number, |it| it <= limit), all.max(), "{number}, {limit}");
            }
        }
        assert_eq!(divisor(1 << 20, |_| true), Some(ROUNDS_MAX));
    }

    #[test]
    fn rounds_repeat_after_their_common_multiple() {
        let base = BaseRound::new(1_000_000, vec![2, 3, 4]).expect("few");
        assert_eq!((base.rounds, base.sendings()), (12, 6 + 4 + 3));
        // In 10⁶ s there are 10⁹ rounds, with two frames at the beginning of each.
        assert_eq!(base.cost(), 500_000_000 + 333_333_333 + 250_000_000 + 2_000_000_000);
        assert_eq!(BaseRound::new(1_000_000, vec![1]).map(|it| it.cost()), Some(2_000_000_000));
        assert_eq!(BaseRound::new(1_000_000, vec![7, 11, 13, 17, 19]), None);
    }
}
