//! Which rounds are planned: of those that are tried, the ones in which the fewest channels are
//! late, and among these the ones with the fewest frames.

use super::round::Bus;
use super::rounds::{BaseRound, RoundCandidate, RoundLengths};
use super::slots::{BusSchedule, SENDINGS_MAX};
use super::{BusSlot, BusStation, codes, latency, writing};
use onbeat_model::diagnostic::Diagnostic;

/// Schedules that are tried, at most.
pub const SCHEDULES_MAX: usize = 16;
/// Rounds and slots of all of these together, at most; the first one has as many as there may be.
const WORK_MAX: u64 = SENDINGS_MAX / 8;
/// How often candidates are looked for again, when schedules have shown more of latencies.
const LEARNT_MAX: usize = 3;
/// Candidates that are tried each time.
const CANDIDATES_MAX: usize = 3;
/// What savings of slots are counted in: cycles of a link in so many rounds.
const ROUNDS: i128 = 1_000_000_000;

/// What is planned.
#[derive(Clone, Debug)]
pub(super) struct BusChoice {
    pub(super) schedule: BusSchedule,
    pub(super) slots: Vec<BusSlot>,
    pub(super) stations: Vec<BusStation>,
    /// Channels whose bound is above the fixed delay, and frames.
    key: (usize, i128),
}

/// The rounds, slots and programs of a bus.
///
/// # Errors
/// There is no room even for slots that come just as often as messages (OB6068 to OB6070), or
/// programs are too long (OB6071).
pub(super) fn choose(bus: &Bus<'_>) -> Result<BusChoice, Vec<Diagnostic>> {
    let lengths = RoundLengths::new(bus)?;
    let unknown = vec![0; bus.frames.len()];
    let longest = lengths.longest().and_then(|longest| planned(bus, &longest));
    match &longest {
        Ok(plan) if plan.key.0 == 0 => return longest,
        // More slots have less room.
        Err(errors) if errors.iter().any(|error| error.code != codes::PROGRAM) => return longest,
        _ => (),
    }
    let (best, error) = match longest {
        Ok(plan) => (Some(plan), Vec::new()),
        Err(error) => (None, error),
    };
    let mut search = RoundSearch { bus, lengths, unknown, best, tried: 0, work: 0 };
    search.all();
    search.best.ok_or(error)
}

/// What these rounds give.
fn planned(bus: &Bus<'_>, base: &BaseRound) -> Result<BusChoice, Vec<Diagnostic>> {
    let (schedule, timetables) = bus.schedule(base)?;
    let slots = latency::slots(bus, &schedule, &timetables);
    let stations = writing::stations(bus, &schedule, &timetables)?;
    let late = slots.iter().enumerate().filter(|(channel, slot)| excess(bus, *channel, slot) > 0);
    let key = (late.count(), base.cost());
    Ok(BusChoice { schedule, slots, stations, key })
}

/// By how much the bound of a channel is above its fixed delay, in ns.
fn excess(bus: &Bus<'_>, channel: usize, slot: &BusSlot) -> i64 {
    worst(slot) - bus.system.channels[channel].fixed_delay.as_ns()
}

fn worst(slot: &BusSlot) -> i64 {
    let totals = slot.receipts.iter().map(|receipt| receipt.bound.total().as_ns());
    totals.max().unwrap_or(0)
}

/// What came of trying some rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    /// There is no room, or no more is tried.
    Nothing,
    Planned,
    /// They are planned, and channels are late that were not expected to be.
    Learnt,
}

struct RoundSearch<'a> {
    bus: &'a Bus<'a>,
    lengths: RoundLengths<'a>,
    /// By channel, what schedules have shown of its latency beside what is known without one.
    unknown: Vec<i64>,
    best: Option<BusChoice>,
    tried: usize,
    work: u64,
}

impl RoundSearch<'_> {
    /// How many channels are late in the best plan.
    fn late(&self) -> usize {
        self.best.as_ref().map_or(usize::MAX, |best| best.key.0)
    }

    fn all(&mut self) {
        let mut candidates = self.lengths.candidates(&self.unknown);
        let least = candidates.first().map_or(0, |first| first.late);
        for _ in 0..LEARNT_MAX {
            if !self.candidates(&candidates) || self.late() <= least {
                break;
            }
            candidates = self.lengths.candidates(&self.unknown);
        }
        if self.late() <= least {
            return;
        }
        // The best one, and the one that has most room.
        let Some(first) = candidates.first() else { return };
        let roomy = candidates.iter().max_by_key(|candidate| candidate.base.round);
        let roomy = roomy.filter(|roomy| roomy.base.round > first.base.round);
        for candidate in [first].into_iter().chain(roomy) {
            self.give_up(candidate);
        }
    }

    /// Tries candidates until no better ones follow; or until one has shown more of latencies.
    fn candidates(&mut self, candidates: &[RoundCandidate]) -> bool {
        for candidate in candidates.iter().take(CANDIDATES_MAX) {
            if self.late() <= candidate.late {
                break;
            }
            if self.attempt(&candidate.base, &candidate.keeps) == Tried::Learnt {
                return true;
            }
        }
        false
    }

    /// Gives fixed delays up, those first whose slots take most, until there is room.
    fn give_up(&mut self, candidate: &RoundCandidate) {
        let (bus, base) = (self.bus, &candidate.base);
        let saved = |channel: &usize| {
            let [every, sparse] =
                [&base.every, &candidate.sparse].map(|all| i128::from(all[*channel]));
            let length = bus.longest(super::round::BusFrame::Channel(*channel), base.round);
            std::cmp::Reverse(i128::from(length) * (ROUNDS / every - ROUNDS / sparse))
        };
        let is_more = |channel: &usize| base.every[*channel] < candidate.sparse[*channel];
        let mut channels: Vec<usize> = (0..base.every.len()).filter(is_more).collect();
        channels.sort_by_key(saved);
        let (mut low, mut high) = (0, channels.len());
        while low <= high {
            let middle = low + (high - low) / 2;
            let (mut every, mut keeps) = (base.every.clone(), candidate.keeps.clone());
            for channel in &channels[..middle] {
                every[*channel] = candidate.sparse[*channel];
                keeps[*channel] = false;
            }
            let given_up = BaseRound::new(base.round, every);
            let tried = given_up.map(|base| self.attempt(&base, &keeps));
            match tried.unwrap_or(Tried::Nothing) {
                Tried::Nothing => low = middle + 1,
                Tried::Planned | Tried::Learnt if middle == 0 => break,
                Tried::Planned | Tried::Learnt => high = middle - 1,
            }
        }
    }

    /// Tries rounds in which some channels are expected to keep their fixed delays.
    fn attempt(&mut self, base: &BaseRound, keeps: &[bool]) -> Tried {
        let work = u64::from(base.rounds) + base.sendings();
        if self.tried >= SCHEDULES_MAX || (self.tried > 0 && self.work + work > WORK_MAX) {
            return Tried::Nothing;
        }
        self.tried += 1;
        self.work += work;
        let Ok(found) = planned(self.bus, base) else { return Tried::Nothing };
        let mut tried = Tried::Planned;
        for (channel, slot) in found.slots.iter().enumerate() {
            if !keeps[channel] || excess(self.bus, channel, slot) <= 0 {
                continue;
            }
            let waits: i64 = latency::waits(self.bus, channel, slot.every, base.round).iter().sum();
            let known = waits + latency::shortest(self.bus, channel, base.round);
            let unknown = worst(slot) - known;
            if unknown > self.unknown[channel] {
                self.unknown[channel] = unknown;
                tried = Tried::Learnt;
            }
        }
        if self.best.as_ref().is_none_or(|best| found.key < best.key) {
            self.best = Some(found);
        }
        tried
    }
}
