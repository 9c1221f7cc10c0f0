//! The rendezvous in every order of its steps: who begins when, which messages are lost, come
//! twice, soon or late within D, who is started again or gives up. Time goes in ticks.

use onbeat_model::time::{Span, SyncedTime};
use onbeat_runtime::meeting::{Heard, Meeting, Name, Step, Word};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// D, and the longest that a message takes.
const DELAY: i64 = 2;
/// After so many ticks all that could go wrong has gone wrong.
const TROUBLE: i64 = 12;
/// Until then both sides must have met so often.
const END: i64 = 80;
const MEETINGS: usize = 3;

fn at(tick: i64) -> SyncedTime {
    SyncedTime::from_ns(tick)
}

/// Which call of which start of a side; its value says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    start: u8,
    call: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing {
    Idle { until: i64 },
    Waiting { until: Option<i64> },
    Writing { word: Word, repeats: bool },
    Sleeping { until: i64 },
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Past {
    call: Call,
    began: i64,
    /// When it ended, if it has.
    ended: Option<i64>,
    /// It ended by giving up, or with its program.
    failed: bool,
    met: Option<Met>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Met {
    other: Call,
    target: i64,
    late: bool,
    at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Side {
    meeting: Meeting,
    start: u8,
    number: u16,
    doing: Doing,
    /// When its rate allows the next message.
    due: i64,
    inbox: Vec<(Heard, Call)>,
    last_capture: i64,
    taken: Option<Call>,
    /// Its value of the meeting before.
    before: Option<Call>,
    past: Vec<Past>,
}

impl Side {
    fn new(begins: i64) -> Self {
        Self {
            meeting: Meeting::new(1),
            start: 1,
            number: 0,
            doing: Doing::Idle { until: begins },
            due: 0,
            inbox: Vec::new(),
            last_capture: i64::MIN,
            taken: None,
            before: None,
            past: Vec::new(),
        }
    }

    fn now(&mut self) -> &mut Past {
        self.past.last_mut().expect("it has called")
    }

    fn met(&self) -> usize {
        self.past.iter().filter(|past| past.met.is_some()).count()
    }

    fn fail(&mut self, tick: i64) {
        if let Some(past) = self.past.last_mut().filter(|past| past.ended.is_none()) {
            (past.ended, past.failed) = (Some(tick), true);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    arrives: i64,
    to: usize,
    heard: Heard,
    value: Call,
}

/// How much may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    losses: u8,
    copies: u8,
    restarts: u8,
    limits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    tick: i64,
    sides: [Side; 2],
    flights: Vec<Flight>,
    left: Budget,
}

/// What is the same in all worlds of one exploration.
#[derive(Clone, Copy, Debug)]
struct Setting {
    interval: i64,
    /// How long each side does something else between two calls.
    pauses: [i64; 2],
    all: Budget,
}

impl Setting {
    /// Goes through all worlds; how many there are.
    fn explore(&self, begins: i64) -> usize {
        let sides = [Side::new(0), Side::new(begins)];
        let first = World { tick: 0, sides, flights: Vec::new(), left: self.all };
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let (mut seen, mut open) = (HashSet::new(), vec![first]);
        while let Some(world) = open.pop() {
            if world.sides.iter().all(|side| side.met() >= MEETINGS) {
                continue;
            }
            assert!(world.tick < END, "they do not meet any more: {self:?} {world:#?}");
            for next in self.tick(world) {
                if seen.insert(hasher.hash_one(&next)) {
                    open.push(next);
                }
            }
        }
        seen.len()
    }

    fn tick(&self, mut world: World) -> Vec<World> {
        let tick = world.tick;
        world.flights.sort_by_key(|flight| flight.heard.capture);
        let (here, flights): (Vec<_>, _) =
            world.flights.into_iter().partition(|flight| flight.arrives <= tick);
        world.flights = flights;
        for Flight { to, heard, value, .. } in here {
            let side = &mut world.sides[to];
            // What the listener does: no copy, and nothing that is older.
            if heard.capture.as_ns() > side.last_capture {
                side.last_capture = heard.capture.as_ns();
                side.inbox.push((heard, value));
            }
        }
        let mut worlds = Self::troubles(world);
        for who in 0..2 {
            worlds = worlds.into_iter().flat_map(|world| self.run(world, who)).collect();
        }
        worlds.iter_mut().for_each(|world| world.tick += 1);
        worlds
    }

    /// The world as it is, and with a program that is started again, or gives up.
    fn troubles(world: World) -> Vec<World> {
        let mut worlds = vec![world.clone()];
        let tick = world.tick;
        if tick >= TROUBLE {
            return worlds;
        }
        for who in 0..2 {
            let called = !world.sides[who].past.is_empty();
            if world.left.restarts > 0 && called {
                let mut other = world.clone();
                other.left.restarts -= 1;
                let side = &mut other.sides[who];
                side.fail(tick);
                let (start, past) = (side.start + 1, std::mem::take(&mut side.past));
                let meeting = Meeting::new(start);
                *side = Side { start, meeting, past, due: 0, ..Side::new(tick) };
                worlds.push(other);
            }
            if world.left.limits > 0 && matches!(world.sides[who].doing, Doing::Waiting { .. }) {
                let mut other = world.clone();
                other.left.limits -= 1;
                let side = &mut other.sides[who];
                side.fail(tick);
                side.meeting.give_up();
                side.doing = Doing::Idle { until: tick };
                worlds.push(other);
            }
        }
        worlds
    }

    /// Lets a side do what it can in this tick.
    fn run(&self, mut world: World, who: usize) -> Vec<World> {
        let tick = world.tick;
        loop {
            let side = &mut world.sides[who];
            match side.doing {
                Doing::Idle { until } if tick >= until => {
                    side.meeting.begin(Span::from_ns(DELAY), Span::from_ns(self.interval));
                    let calls = side.past.iter().filter(|p| p.call.start == side.start).count();
                    let call = Call { start: side.start, call: calls as u8 };
                    let past = Past { call, began: tick, ended: None, failed: false, met: None };
                    side.past.push(past);
                    side.taken = None;
                    for (heard, value) in std::mem::take(&mut side.inbox) {
                        if side.meeting.heard(heard) {
                            side.taken = Some(value);
                        }
                    }
                    side.doing = Doing::Waiting { until: None };
                }
                Doing::Waiting { until: None } => self.step(&mut world, who),
                Doing::Waiting { until: Some(until) } => {
                    if !side.inbox.is_empty() {
                        let (heard, value) = side.inbox.remove(0);
                        if side.meeting.heard(heard) {
                            side.taken = Some(value);
                        }
                    } else if tick >= until {
                        side.meeting.silent();
                    } else {
                        return vec![world];
                    }
                    side.doing = Doing::Waiting { until: None };
                }
                Doing::Writing { word, repeats } if tick >= side.due => {
                    let worlds = self.write(world, who, word, repeats);
                    return worlds.into_iter().flat_map(|world| self.run(world, who)).collect();
                }
                Doing::Sleeping { until } if tick >= until => {
                    side.now().ended = Some(tick);
                    side.doing = Doing::Idle { until: tick + self.pauses[who] };
                }
                _ => return vec![world],
            }
        }
    }

    fn step(&self, world: &mut World, who: usize) {
        let tick = world.tick;
        let side = &mut world.sides[who];
        let doing = match side.meeting.step(at(tick)) {
            Step::Say(word) => Doing::Writing { word, repeats: false },
            Step::Repeat(word) => Doing::Writing { word, repeats: true },
            Step::Wait(until) => Doing::Waiting { until: Some(until.as_ns()) },
            Step::Met { target, late } => {
                let target = target.as_ns();
                let other = side.taken.expect("a value of the other side");
                side.before = Some(side.now().call);
                side.now().met = Some(Met { other, target, late, at: tick });
                self.check(world, who);
                Doing::Sleeping { until: target }
            }
        };
        world.sides[who].doing = doing;
    }

    /// All that may become of a message.
    fn write(&self, mut world: World, who: usize, word: Word, repeats: bool) -> Vec<World> {
        let tick = world.tick;
        let side = &mut world.sides[who];
        let value = if repeats { side.before.expect("it has met") } else { side.now().call };
        let name = Name { instance: side.start, number: side.number };
        let heard = Heard { name, capture: at(tick), word };
        match repeats {
            true => side.meeting.repeated(at(tick)),
            false => side.meeting.said(side.number, at(tick)),
        }
        side.number += 1;
        side.due = tick + self.interval;
        side.doing = Doing::Waiting { until: None };
        let fate = |arrivals: &[i64], left: Budget| {
            let mut world = World { left, ..world.clone() };
            world.flights.extend(arrivals.iter().map(|takes| Flight {
                arrives: tick + takes,
                to: 1 - who,
                heard,
                value,
            }));
            world
        };
        let left = world.left;
        let mut fates = vec![fate(&[1], left)];
        if tick < TROUBLE {
            fates.push(fate(&[DELAY], left));
        }
        if left.losses > 0 && tick < TROUBLE {
            fates.push(fate(&[], Budget { losses: left.losses - 1, ..left }));
        }
        if left.copies > 0 && tick < TROUBLE {
            fates.push(fate(&[1, DELAY], Budget { copies: left.copies - 1, ..left }));
        }
        fates
    }

    /// That the meeting which a side reports has happened.
    fn check(&self, world: &World, who: usize) {
        let [own, peer] = [&world.sides[who], &world.sides[1 - who]];
        let mine = own.past.last().expect("it has called");
        let met = mine.met.expect("it has met");
        let say = || format!("{self:?} side {who}: {mine:?}\n{:?}\n{:?}", own.past, peer.past);
        let theirs = peer.past.iter().find(|past| past.call == met.other);
        let Some(theirs) = theirs else { panic!("a call that never was: {}", say()) };
        // They were there at the same time. Who has given up, or was started again, may have gone
        // shortly before: no handshake tells that in time.
        let again = self.interval.max(2 * DELAY);
        let grace = if theirs.failed { again + 2 * DELAY } else { 0 };
        let together = theirs.ended.is_none_or(|ended| ended + grace >= mine.began);
        assert!(together, "not at the same time: {}", say());
        if let Some(other) = theirs.met {
            // Only a start that is gone may have been taken for this one before.
            let same = other.other == mine.call || other.other.start < mine.call.start;
            assert!(same, "they met somebody else: {}", say());
            let agree = other.target == met.target || other.late || met.late;
            assert!(agree || other.other != mine.call, "not at one instant: {}", say());
        }
        if self.all.restarts == 0 && self.all.limits == 0 {
            assert_eq!(met.other.call, mine.call.call, "rounds apart: {}", say());
        }
        if world.left.losses == self.all.losses {
            assert!(!met.late || self.all.limits + self.all.restarts > 0, "late: {}", say());
        }
    }
}

fn explore(all: Budget) -> usize {
    let mut worlds = 0;
    for interval in [1, 3] {
        for pauses in [[0, 0], [0, 5], [4, 1]] {
            for begins in [0, 1, 3, 7] {
                worlds += Setting { interval, pauses, all }.explore(begins);
            }
        }
    }
    worlds
}

const NONE: Budget = Budget { losses: 0, copies: 0, restarts: 0, limits: 0 };

#[test]
fn whoever_begins_first_all_rounds_are_meetings() {
    let worlds = explore(Budget { copies: 1, ..NONE });
    assert!(worlds > 1_000, "{worlds}");
}

#[test]
fn after_losses_both_meet_again_in_the_same_round() {
    let worlds = explore(Budget { losses: 2, ..NONE });
    assert!(worlds > 10_000, "{worlds}");
}

#[test]
fn a_side_that_is_started_again_is_met_again() {
    let worlds = explore(Budget { losses: 1, restarts: 1, ..NONE });
    assert!(worlds > 10_000, "{worlds}");
}

#[test]
fn a_side_that_gives_up_is_met_again() {
    let worlds = explore(Budget { losses: 1, limits: 1, ..NONE });
    assert!(worlds > 10_000, "{worlds}");
}

#[test]
fn words_are_read_back_as_they_were_written() {
    let names = [None, Some(Name { instance: 1, number: 0 })];
    let names = names.into_iter().chain([Some(Name { instance: 255, number: u16::MAX })]);
    for has in names {
        for round in [1, 63] {
            for (asks, met) in [(false, false), (true, false), (false, true)] {
                let word = Word { round, asks, met, has };
                assert_eq!(Word::from_bits(word.to_bits()), Some(word));
            }
        }
    }
    assert_eq!(Word::from_bits(0), None, "an ordinary message");
    assert_eq!(Word::from_bits(0x8001_0001), None, "no round");
}
