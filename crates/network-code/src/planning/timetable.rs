//! What a station does in each round, and when, in cycles of its own clock.
//!
//! A slave counts from the issue of the instruction behind `sync slave`, the master from the first
//! octet of the frame that begins the round.

use super::round::{Bus, BusFrame, CREATE_LEAD, MASTER_LEAD};
use super::slots::BusSchedule;
use onbeat_runtime::network_code::timing::SYNC_RESUME;

/// Cycles of `future`, `halt` and `branch`.
pub(super) const FUTURE: i64 = 2;
const HALT: i64 = 1;
pub(super) const BRANCH: i64 = 3;
/// Cycles of `receive` beside its words.
pub(super) const RECEIVE: i64 = 2;
/// Cycles of `create` and `send`.
const SEND: i64 = 4;

/// From the end of an action until the next one may begin: `halt`, a cycle so that its countdown
/// has not ended, and `future`.
const APART: i64 = HALT + FUTURE;
/// Behind the last action of a round: `branch` at the end of a repetition, and `goto`.
pub(super) const LEAVE: i64 = 2 * BRANCH;

/// What a station does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ActionKind {
    /// Sends the frame that begins a hyper-round.
    HyperRound,
    /// Sends a channel.
    Send(usize),
    /// Receives a channel.
    Receive(usize),
    /// Receives a channel of an earlier round, if this station lost the beginning of that.
    Discard(usize),
    /// Receives a mode, and sends the alternative that it says, if that is the station's own.
    Alternatives {
        /// Of this slot.
        shared: usize,
        station: usize,
    },
}

/// When it does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Action {
    /// The issue of its first instruction.
    pub(super) at: i64,
    pub(super) kind: ActionKind,
}

/// A station's round.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RoundActions {
    /// In the order of time.
    pub(super) actions: Vec<Action>,
    /// For how long a slave waits for its beginning.
    pub(super) timeout: i64,
}

/// All rounds of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timetable {
    pub(super) rounds: Vec<RoundActions>,
    /// When a slave looks whether a hyper-round has begun, if there is more than one round.
    pub(super) look: Option<i64>,
}

impl Action {
    /// How long it takes.
    pub(super) fn takes(self, bus: &Bus<'_>) -> i64 {
        match self.kind {
            ActionKind::HyperRound | ActionKind::Send(_) => SEND,
            ActionKind::Receive(channel) | ActionKind::Discard(channel) => {
                RECEIVE + i64::from(bus.frames[channel].words)
            }
            ActionKind::Alternatives { shared, station } => {
                let shared = &bus.shared[shared];
                let own = shared.own(bus, station);
                shared.received(bus) + own.iter().map(|_| BRANCH).sum::<i64>() + SEND
            }
        }
    }

    /// How long it takes at least.
    fn takes_least(self, bus: &Bus<'_>) -> i64 {
        match self.kind {
            ActionKind::Alternatives { shared, .. } => bus.shared[shared].received(bus),
            _ => self.takes(bus),
        }
    }
}

/// When a slave looks for the frame that begins a hyper-round, whose slot begins at `mark`.
fn look(bus: &Bus<'_>, station: usize, mark: i64, round: i64) -> i64 {
    bus.received(BusFrame::HyperRound, station, mark, round)
}

/// When the first action of a station in a round may begin, behind what it discards. `mark` is the
/// slot of the frame that begins a hyper-round.
pub(super) fn first(bus: &Bus<'_>, station: usize, mark: Option<i64>, round: i64) -> i64 {
    let discards = discards(bus, station, mark, round);
    let end = discards.last().map(|last| last.at + last.takes(bus) + APART);
    end.unwrap_or_else(|| begin(bus, station, mark, round))
}

/// The modes of its alternatives that a station discards, before those of the round can come. Else
/// it might take one of a round whose beginning it lost for the one of this round.
pub(super) fn discards(
    bus: &Bus<'_>,
    station: usize,
    mark: Option<i64>,
    round: i64,
) -> Vec<Action> {
    let mut at = begin(bus, station, mark, round);
    if let (true, Some(mark)) = (station == bus.tree.master, mark) {
        at = at.max(mark - CREATE_LEAD + SEND + APART);
    }
    let mut discards = Vec::new();
    for slot in bus.shared.iter().filter(|slot| !slot.own(bus, station).is_empty()) {
        let discard = Action { at, kind: ActionKind::Discard(slot.mode) };
        at += discard.takes(bus) + APART;
        discards.push(discard);
    }
    discards
}

/// When a station is ready to do anything in a round.
fn begin(bus: &Bus<'_>, station: usize, mark: Option<i64>, round: i64) -> i64 {
    let ready = match mark {
        _ if station == bus.tree.master => {
            let ethertype = bus.tree.medium.ethertype_cycles() + SYNC_RESUME;
            return ethertype.0.cast_signed() + HALT + 1 + FUTURE;
        }
        // `receive` of one word, and whether there was a frame.
        Some(mark) => look(bus, station, mark, round) + RECEIVE + 1 + BRANCH,
        // Whether a round has begun.
        None => BRANCH,
    };
    ready + FUTURE + HALT + FUTURE
}

/// What all stations do; or by how many cycles too late one of them is ready for the next round.
pub(super) fn timetables(bus: &Bus<'_>, schedule: &BusSchedule) -> Result<Vec<Timetable>, i64> {
    let mut sent = vec![Vec::new(); schedule.rounds as usize];
    for (channel, slot) in schedule.slots.iter().enumerate() {
        let rounds = sent.iter_mut().skip(slot.first_round as usize).step_by(slot.every as usize);
        rounds.for_each(|sent| sent.push(channel));
    }
    let mut timetables = Vec::new();
    let mut lacking = 0;
    for station in 0..bus.tree.stations.len() {
        let (timetable, late) = timetable(bus, schedule, station, &sent);
        lacking = lacking.max(late);
        timetables.push(timetable);
    }
    if lacking > 0 { Err(lacking) } else { Ok(timetables) }
}

/// `sent` are the channels of each round.
fn timetable(
    bus: &Bus<'_>,
    schedule: &BusSchedule,
    station: usize,
    sent: &[Vec<usize>],
) -> (Timetable, i64) {
    let round_ns = schedule.round_ns();
    let is_master = station == bus.tree.master;
    let mark = schedule.hyper_round;
    let look = mark.filter(|_| !is_master).map(|mark| look(bus, station, mark, round_ns));
    let ready = bus.ready(station, round_ns);
    let mut rounds: Vec<RoundActions> = Vec::new();
    let mut late = i64::MIN;
    let mut before = 0;
    for (round, sent) in sent.iter().enumerate() {
        let mut actions = actions(bus, schedule, station, sent);
        if round == 0 && is_master {
            let at = mark.map(|mark| mark - CREATE_LEAD);
            let first = at.map(|at| Action { at, kind: ActionKind::HyperRound });
            actions.splice(0..0, first);
        }
        let timeout = bus.timeout(station, before, round_ns);
        let begun = if round == 0 { look.map_or(0, |look| look + RECEIVE + 1 + BRANCH) } else { 0 };
        let done = actions.last().map(|last| last.at + last.takes(bus));
        let begun = begun.max(BRANCH);
        late = late.max(done.unwrap_or(begun) + LEAVE - ready);
        before = actions.last().map_or(begun, |last| last.at + last.takes_least(bus));
        rounds.push(RoundActions { actions, timeout });
    }
    if let ([round], false) = (&mut rounds[..], is_master) {
        // It follows itself, by `goto`.
        round.timeout = bus.timeout(station, before + BRANCH, round_ns);
    }
    (Timetable { rounds, look }, late)
}

/// What a station does in one round: it sends when it must, and receives as soon as it can.
fn actions(bus: &Bus<'_>, schedule: &BusSchedule, station: usize, sent: &[usize]) -> Vec<Action> {
    let round = schedule.round_ns();
    let mut actions = discards(bus, station, schedule.hyper_round, round);
    let mut due = Vec::new();
    for channel in sent.iter().copied() {
        let slot = &schedule.slots[channel];
        let is_own = |shared: usize| !bus.shared[shared].own(bus, station).is_empty();
        if let Some(shared) = bus.shared_by(channel).filter(|shared| is_own(*shared)) {
            // One action for all that are the station's own.
            let own = bus.shared[shared].own(bus, station);
            if own.first().is_some_and(|(first, _)| *first == channel) {
                let create = bus.offset(station, slot.start) - CREATE_LEAD;
                let at = create - bus.shared[shared].lead(bus);
                actions.push(Action { at, kind: ActionKind::Alternatives { shared, station } });
                continue;
            }
        }
        if bus.mode_of(channel).is_some_and(is_own) {
            // It is received right before its alternatives.
            continue;
        }
        if bus.senders[channel] == station {
            if bus.shared_by(channel).is_some() {
                continue;
            }
            let at = bus.offset(station, slot.start) - CREATE_LEAD;
            actions.push(Action { at, kind: ActionKind::Send(channel) });
        } else if bus.listeners[channel].contains(&station) {
            let frame = BusFrame::Channel(channel);
            let at = bus.received(frame, station, slot.start, round);
            due.push(Action { at, kind: ActionKind::Receive(channel) });
        }
    }
    actions.sort_unstable();
    due.sort_unstable();
    let first = first(bus, station, schedule.hyper_round, round);
    for mut receive in due {
        receive.at = receive.at.max(first);
        let takes = receive.takes(bus);
        let mut place = actions.len();
        for (index, other) in actions.iter().enumerate() {
            if receive.at + takes + APART <= other.at {
                place = index;
                break;
            }
            receive.at = receive.at.max(other.at + other.takes(bus) + APART);
        }
        actions.insert(place, receive);
    }
    actions
}

/// The master's `future` of a round, before the first octet.
pub(super) const BEGIN: i64 = -MASTER_LEAD;
