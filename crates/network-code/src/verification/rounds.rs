//! The rounds of every station. A station's paths of a round follow from the states in which the
//! last one ended, so the sequence of rounds repeats once these states do.

use super::code::StationCode;
use super::network::NetworkModel;
use super::paths::{
    ArrivalWindow, LimitReached, PathFinder, PathNode, RoundArrivals, RoundEnd, RoundPaths, Stage,
};
use super::positions::Positions;
use super::state::PathState;
use super::values::LookedAt;
use onbeat_runtime::network_code::instruction::MessageId;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds until all that stations do repeats.
pub const ROUNDS_MAX: usize = 4_096;
/// Times that paths are followed again with more knowledge of what arrives.
const PASSES_MAX: usize = 4;
/// Rounds that are followed behind a lost one.
const TIMED_OUT_MAX: usize = 64;

/// Whether a station begins rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StationRole {
    Master,
    Slave,
    /// It never comes to a `sync`.
    None,
    Both,
}

/// A sequence that repeats from `repeats` on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lasso<T> {
    pub(super) items: Vec<T>,
    pub(super) repeats: usize,
}

impl<T> Lasso<T> {
    /// Of which item an index has the like.
    pub(super) fn index(&self, round: usize) -> usize {
        let length = self.items.len();
        if round < length {
            return round;
        }
        self.repeats + (round - self.repeats) % (length - self.repeats)
    }

    pub(super) fn get(&self, round: usize) -> &T {
        &self.items[self.index(round)]
    }

    fn period(&self) -> usize {
        self.items.len() - self.repeats
    }
}

/// From which round on two or more sequences repeat together, and how many rounds there are until
/// then; none above [`ROUNDS_MAX`].
pub(super) fn together(all: &[(usize, usize)]) -> Option<(usize, usize)> {
    let mut period = 1_usize;
    for (_, of) in all {
        let (mut a, mut b) = (period, *of);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        period = period / a * of;
        if period > ROUNDS_MAX {
            return None;
        }
    }
    let repeats = all.iter().map(|(repeats, _)| *repeats).max().unwrap_or(0);
    (repeats + period <= ROUNDS_MAX).then_some((repeats, repeats + period))
}

/// What a station does from its start on.
pub(super) struct StationRounds {
    pub(super) role: StationRole,
    pub(super) start: RoundPaths,
    pub(super) rounds: Lasso<RoundPaths>,
    pub(super) nodes: Vec<PathNode>,
    pub(super) visited: Vec<bool>,
    pub(super) steps: usize,
    /// Whether a limit was reached.
    pub(super) is_cut: bool,
    /// What it does after it has lost the beginning of a round.
    pub(super) timed_out: Vec<RoundPaths>,
    pub(super) is_timed_out_cut: bool,
}

impl StationRounds {
    pub(super) fn shape(&self) -> (usize, usize) {
        if self.rounds.items.is_empty() {
            (0, 1)
        } else {
            (self.rounds.repeats, self.rounds.period())
        }
    }
}

/// The arrivals at a station, round by round.
type Arrivals = Lasso<RoundArrivals>;

/// What all stations do.
pub(super) struct NetworkRounds {
    pub(super) stations: Vec<StationRounds>,
    /// Messages that arrive at a station while a round may begin, of whose arrivals nothing is
    /// known: station and message.
    pub(super) unknown: BTreeSet<(usize, MessageId)>,
    pub(super) passes: usize,
}

/// Follows all stations, first with any arrivals, then with those that the others' paths allow.
pub(super) fn follow(network: &NetworkModel, codes: &[StationCode]) -> NetworkRounds {
    let looked_at = looked_at(codes);
    let none = BTreeSet::new();
    let any: Vec<Arrivals> =
        codes.iter().map(|code| constant(vec![None; code.messages.len()])).collect();
    let all = |certain: &BTreeSet<MessageId>, arrivals: &[Arrivals]| -> Vec<StationRounds> {
        let each = network.stations.iter().zip(codes).zip(arrivals);
        each.map(|((station, code), arrivals)| {
            let finder = PathFinder::new(&station.program, code, &looked_at, certain);
            rounds(finder, arrivals)
        })
        .collect()
    };
    let mut result =
        NetworkRounds { stations: all(&none, &any), unknown: BTreeSet::new(), passes: 1 };
    let mut last = None;
    while result.passes < PASSES_MAX {
        let Some(positions) = Positions::new(network, &result) else { return result };
        let certain = certain(&result);
        let mut unknown = BTreeSet::new();
        let arrivals: Vec<Arrivals> = (0..codes.len())
            .map(|station| arrivals(&positions, &result, codes, station, &mut unknown))
            .collect();
        if last.as_ref() == Some(&(shapes(&arrivals), certain.clone())) {
            break;
        }
        last = Some((shapes(&arrivals), certain.clone()));
        let stations = all(&certain, &arrivals);
        let passes = result.passes + 1;
        result = NetworkRounds { stations, unknown, passes };
    }
    result
}

/// Arrivals without the decisions that lead to them, which differ from pass to pass.
fn shapes(arrivals: &[Arrivals]) -> Vec<Arrivals> {
    let mut shapes = arrivals.to_vec();
    for lasso in &mut shapes {
        let windows = lasso.items.iter_mut().flatten().flatten().flatten();
        windows.for_each(|window| window.sender = (0, 0));
    }
    shapes
}

fn constant(arrivals: RoundArrivals) -> Arrivals {
    Lasso { items: vec![arrivals], repeats: 0 }
}

/// The words of messages that more than one guard looks at, whichever stations they are of.
fn looked_at(codes: &[StationCode]) -> LookedAt {
    let mut times = BTreeMap::<(MessageId, u8), usize>::new();
    for code in codes {
        for &(buffer, index) in &code.looked_at {
            for message in code.sources(buffer).collect::<BTreeSet<_>>() {
                *times.entry((message, index)).or_default() += 1;
            }
        }
    }
    times.into_iter().filter(|(_, times)| *times > 1).map(|(word, _)| word).collect()
}

/// All rounds of a station, until they repeat.
fn rounds(mut finder: PathFinder, arrivals: &Arrivals) -> StationRounds {
    let messages = finder.code.messages.len();
    let nothing: RoundArrivals = vec![Some(Vec::new()); messages];
    let starts = BTreeMap::from([(finder.start(), 0)]);
    let mut is_cut = false;
    let start = finder.follow(&starts, &nothing).unwrap_or_else(|LimitReached| {
        is_cut = true;
        RoundPaths::default()
    });
    let mut items: Vec<RoundPaths> = Vec::new();
    let mut seen = BTreeMap::new();
    let mut states = start.next.clone();
    let mut repeats = 0;
    finder.stage = Stage::Round;
    while !is_cut && !states.is_empty() {
        let keys: Vec<PathState> = states.keys().cloned().collect();
        let key = (keys, arrivals.index(items.len()));
        if let Some(at) = seen.get(&key) {
            repeats = *at;
            break;
        }
        seen.insert(key, items.len());
        finder.round = items.len() as u32;
        let followed = finder.follow(&states, arrivals.get(items.len()));
        let Ok(mut round) = followed.and_then(|round| match items.len() < ROUNDS_MAX {
            true => Ok(round),
            false => Err(LimitReached),
        }) else {
            is_cut = true;
            break;
        };
        round.events.splice(0..0, finder.beginnings(&states));
        states = round.next.clone();
        items.push(round);
    }
    if states.is_empty() && !items.is_empty() {
        // It has stopped: it does nothing in all rounds to come.
        repeats = items.len();
        items.push(RoundPaths::default());
    }
    let role = role(&start, &items);
    let (timed_out, is_timed_out_cut) = timed_out(&mut finder, &start, &items);
    let PathFinder { nodes, visited, steps, .. } = finder;
    let rounds = Lasso { items, repeats };
    StationRounds {
        role,
        start,
        rounds,
        nodes,
        visited,
        steps,
        is_cut,
        timed_out,
        is_timed_out_cut,
    }
}

fn role(start: &RoundPaths, rounds: &[RoundPaths]) -> StationRole {
    let ends = || start.ends.iter().chain(rounds.iter().flat_map(|round| &round.ends));
    let is_master = |end: &RoundEnd| end.timeout.is_none();
    match (ends().any(is_master), ends().any(|end| !is_master(end))) {
        (true, true) => StationRole::Both,
        (true, false) => StationRole::Master,
        (false, true) => StationRole::Slave,
        (false, false) => StationRole::None,
    }
}

/// Follows what a station does from a `sync slave` that timed out to the next `sync`, with anything
/// received in between.
fn timed_out(
    finder: &mut PathFinder,
    start: &RoundPaths,
    rounds: &[RoundPaths],
) -> (Vec<RoundPaths>, bool) {
    finder.stage = Stage::TimedOut;
    let is_slave = |round: &&RoundPaths| round.ends.iter().any(|end| end.timeout.is_some());
    let any: RoundArrivals = vec![None; finder.code.messages.len()];
    let mut open = BTreeMap::new();
    for round in std::iter::once(start).chain(rounds).filter(is_slave) {
        open.extend(round.next.clone());
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for _ in 0..TIMED_OUT_MAX {
        let late = |(state, node): (PathState, u32)| {
            // What the timeout interrupted is as old as it was; of what was received, nothing is
            // known.
            let mut state = PathState { timeout: true, ..state };
            state.messages.fill(Default::default());
            state.buffers.iter_mut().for_each(|buffer| buffer.value = None);
            (state, node)
        };
        open = open.into_iter().map(late).filter(|(state, _)| !seen.contains(state)).collect();
        if open.is_empty() {
            return (found, false);
        }
        seen.extend(open.keys().cloned());
        match finder.follow(&open, &any) {
            Ok(round) => {
                let next = if is_slave(&&round) { round.next.clone() } else { BTreeMap::new() };
                open = next;
                found.push(round);
            }
            Err(LimitReached) => return (found, true),
        }
    }
    (found, true)
}

/// Messages that exactly one station sends, exactly once in every round.
fn certain(network: &NetworkRounds) -> BTreeSet<MessageId> {
    let mut certain = BTreeSet::new();
    let mut sent = BTreeMap::<MessageId, BTreeSet<usize>>::new();
    for (index, station) in network.stations.iter().enumerate() {
        for round in &station.rounds.items {
            for message in round.events.iter().filter_map(|event| event.message) {
                sent.entry(message).or_default().insert(index);
            }
        }
    }
    for (message, stations) in sent {
        let of = |index: &usize| &network.stations[*index];
        let is_certain = stations.len() == 1
            && stations.iter().map(of).all(|station| {
                let mut rounds = station.rounds.items.iter();
                !station.is_cut
                    && rounds.all(|it| it.always.contains(&message) && !it.twice.contains(&message))
            });
        if is_certain {
            certain.insert(message);
        }
    }
    certain
}

/// When frames may come to a station.
fn arrivals(
    positions: &Positions,
    network: &NetworkRounds,
    codes: &[StationCode],
    station: usize,
    unknown: &mut BTreeSet<(usize, MessageId)>,
) -> Arrivals {
    let messages = &codes[station].messages;
    let any = || constant(vec![None; messages.len()]);
    let relevant = |of: &&StationRounds| {
        let sends = |round: &RoundPaths| {
            round.events.iter().any(|it| it.message.is_some_and(|id| messages.contains(&id)))
        };
        of.role == StationRole::Master || of.rounds.items.iter().any(sends)
    };
    let relevant: Vec<&StationRounds> = network.stations.iter().filter(relevant).collect();
    let shapes: Vec<_> = relevant.iter().map(|station| station.shape()).collect();
    let (true, Some((repeats, length))) =
        (relevant.iter().all(|station| !station.is_cut), together(&shapes))
    else {
        unknown.extend(messages.iter().map(|message| (station, *message)));
        return any();
    };
    let mut beyond = BTreeSet::new();
    let mut items: Vec<RoundArrivals> = Vec::new();
    for round in 0..length {
        let windows = messages.iter().map(|message| {
            let windows = windows(positions, network, station, *message, round);
            if windows.is_none() {
                beyond.insert(*message);
            }
            windows
        });
        items.push(windows.collect());
    }
    for message in &beyond {
        unknown.insert((station, *message));
        let tracked = messages.binary_search(message).unwrap_or(0);
        items.iter_mut().for_each(|round| round[tracked] = None);
    }
    shortest(items, repeats)
}

/// The same sequence without what repeats earlier than said.
fn shortest(mut items: Vec<RoundArrivals>, mut repeats: usize) -> Arrivals {
    let shape = |items: &[RoundArrivals]| {
        let lasso = Lasso { items: items.to_vec(), repeats: 0 };
        shapes(&[lasso]).remove(0).items
    };
    let bare = shape(&items);
    let period = items.len() - repeats;
    let smaller = (1..period).find(|smaller| {
        period.is_multiple_of(*smaller)
            && (repeats..items.len() - smaller).all(|at| bare[at] == bare[at + smaller])
    });
    let period = smaller.unwrap_or(period);
    items.truncate(repeats + period);
    while repeats > 0 && bare[repeats - 1] == bare[repeats - 1 + period] {
        repeats -= 1;
        items.truncate(repeats + period);
    }
    Lasso { items, repeats }
}

/// Whether exactly one station sends a message in a round, exactly once on each path.
fn is_certain(network: &NetworkRounds, message: MessageId, round: usize) -> bool {
    let paths = |of: &StationRounds| {
        let has_rounds = !of.is_cut && !of.rounds.items.is_empty();
        has_rounds.then(|| {
            let paths = of.rounds.get(round);
            let sends = paths.events.iter().any(|event| event.message == Some(message));
            (sends, paths.always.contains(&message) && !paths.twice.contains(&message))
        })
    };
    let mut senders = network.stations.iter().filter_map(paths).filter(|(sends, _)| *sends);
    let (first, second) = (senders.next(), senders.next());
    second.is_none() && first.is_some_and(|(_, is_once)| is_once)
}

/// When frames of a message may come to a station in a round; none where one may come in the next.
fn windows(
    positions: &Positions,
    network: &NetworkRounds,
    station: usize,
    message: MessageId,
    round: usize,
) -> Option<Vec<ArrivalWindow>> {
    let is_certain = is_certain(network, message, round);
    // With each window whether it is that of one offset.
    let mut windows: Vec<(ArrivalWindow, bool)> = Vec::new();
    for (sender, of) in network.stations.iter().enumerate() {
        if sender == station || of.rounds.items.is_empty() {
            continue;
        }
        let paths = of.rounds.get(round);
        let own = windows.len();
        for event in paths.events.iter().filter(|event| event.message == Some(message)) {
            let Some((earliest, latest)) = positions.arrival(sender, event, station) else {
                continue;
            };
            match windows[own..].last_mut() {
                // Other paths that send at the same instant, or another one: one path sends once.
                Some((last, _)) if (last.earliest, last.latest) == (earliest, latest) => {}
                Some((last, is_one)) if !paths.twice.contains(&message) => {
                    last.earliest = last.earliest.min(earliest);
                    last.latest = last.latest.max(latest);
                    *is_one = false;
                }
                _ => {
                    let sender = (sender, event.node);
                    let window = ArrivalWindow { earliest, latest, is_certain, sender };
                    windows.push((window, true));
                }
            }
        }
    }
    windows.sort_by_key(|(window, _)| (window.earliest, window.latest));
    let mut merged: Vec<(ArrivalWindow, bool)> = Vec::new();
    for (window, is_one) in windows {
        match merged.last_mut() {
            // Frames of two stations would collide if both came: at most one is sent.
            Some((last, last_is_one))
                if is_one
                    && *last_is_one
                    && last.latest >= window.earliest
                    && last.sender.0 != window.sender.0 =>
            {
                last.latest = last.latest.max(window.latest);
                *last_is_one = false;
            }
            _ => merged.push((window, is_one)),
        }
    }
    let merged: Vec<ArrivalWindow> = merged.into_iter().map(|(window, _)| window).collect();
    let end = positions.earliest_end(station, round);
    merged.iter().all(|window| window.latest < end).then_some(merged)
}
