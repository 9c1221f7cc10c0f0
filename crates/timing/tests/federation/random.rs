//! Random federations and what they execute on: all that [`Federation`] can say.

use crate::dice::Dice;
use onbeat_model::diagnostic::Origin;
use onbeat_model::federation::{
    Connection, ConnectionId, Coordination, Federate, FederateId, Federation, MaxWait, Reaction,
    ReactionId, TagDelay, Trigger,
};
use onbeat_model::graph::Interval;
use onbeat_model::time::{ClockError, Span};
use onbeat_timing::federation::{Delivery, Environment, Station};

/// A federation with all that decides its execution.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) federation: Federation,
    pub(crate) environment: Environment,
    /// Per station.
    pub(crate) clocks: Vec<ClockError>,
    pub(crate) behaviour: Behaviour,
}

/// What chance decides in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    pub(crate) seed: u64,
    /// Whether reactions execute for as long as they can.
    pub(crate) is_worst: bool,
    /// How often a reaction sets what it may.
    pub(crate) sets_per_cent: i64,
    /// Whether messages take as long as they can.
    pub(crate) is_slow: bool,
    /// Whether sporadic actions come as often as they can.
    pub(crate) is_dense: bool,
    pub(crate) duration: Span,
}

const fn us(us: i64) -> Span {
    Span::from_us(us)
}

/// When the federation starts, in network time.
pub(crate) const START: Span = Span::from_ms(10);

/// In some federations each figure is unknown in so many cases of a hundred, in others never.
const UNKNOWN: i64 = 8;

pub(crate) fn case(seed: u64) -> Case {
    let mut dice = Dice::new(seed);
    let dice = &mut dice;
    dice.unknown = if dice.chance(15) { UNKNOWN } else { 0 };
    let duration = Span::from_ms(dice.one(&[40, 60, 90]));
    let clocks: Vec<ClockError> = (0..dice.between(1, 4)).map(|_| clock(dice)).collect();
    let stations =
        (clocks.iter().enumerate()).map(|(at, clock)| station(dice, at, clock, duration));
    let stations: Vec<Station> = stations.collect();
    let federation = federation(dice, &stations);
    let deliveries = federation.connections.iter().map(|_| delivery(dice)).collect();
    let environment = Environment { stations, deliveries, handlers_set: dice.chance(50) };
    let behaviour = Behaviour {
        seed,
        is_worst: dice.chance(60),
        sets_per_cent: if dice.chance(60) { 100 } else { 70 },
        is_slow: dice.chance(60),
        is_dense: dice.chance(70),
        duration,
    };
    Case { federation, environment, clocks, behaviour }
}

fn clock(dice: &mut Dice) -> ClockError {
    let size = dice.one(&[0, 1_000, 50_000]);
    let offset = match dice.below(3) {
        0 => Span::from_ns(size),
        1 => Span::from_ns(-size),
        _ => Span::from_ns(dice.between(-size, size)),
    };
    let wanders = dice.chance(30);
    ClockError {
        offset,
        drift_ppb: if dice.chance(40) { dice.between(-100_000, 100_000) as i32 } else { 0 },
        wander: Span::from_ns(if wanders { dice.between(1, 2_000) } else { 0 }),
        wander_period: Span::from_ms(if wanders { 50 } else { 0 }),
        ..ClockError::default()
    }
}

fn station(dice: &mut Dice, at: usize, clock: &ClockError, duration: Span) -> Station {
    let error = clock.max_abs(onbeat_model::time::NetTime::ZERO + START + duration * 2);
    Station {
        name: format!("s{at}"),
        clock_error: (!dice.is_unknown()).then_some(error),
        cores: dice.chance(40).then(|| dice.between(1, 2) as u16),
        wakeup: if dice.chance(30) { us(dice.between(0, 60)) } else { Span::ZERO },
    }
}

fn delivery(dice: &mut Dice) -> Option<Delivery> {
    if dice.is_unknown() {
        return None;
    }
    Some(match dice.chance(50) {
        true => Delivery::Fixed(us(dice.one(&[400, 1_000, 3_000]))),
        false => {
            let min = us(dice.between(0, 5));
            Delivery::Between { min, max: min + us(dice.between(300, 1_500)) }
        }
    })
}

/// The positions of reactions in one order that all delays of no time follow.
struct Order(Vec<usize>);

fn federation(dice: &mut Dice, stations: &[Station]) -> Federation {
    let federates: Vec<Federate> =
        (0..dice.between(1, 5)).map(|at| federate(dice, at, stations)).collect();
    let mut all = Federation {
        name: "random".to_owned(),
        coordination: dice.one(&[Coordination::Centralized, Coordination::Decentralized]),
        federates,
        reactions: Vec::new(),
        connections: Vec::new(),
    };
    let mut order = Order(Vec::new());
    for at in 0..all.federates.len() {
        let mut places: Vec<usize> = (0..dice.between(1, 3)).map(|_| dice.below(1_000)).collect();
        places.sort_unstable();
        for (number, place) in places.into_iter().enumerate() {
            order.0.push(place);
            all.reactions.push(reaction(dice, at, number));
        }
    }
    let sources = dice.between(1, 4);
    for _ in 0..sources {
        let at = dice.below(all.reactions.len());
        let cause = source(dice, &all, at);
        all.reactions[at].causes.push(cause);
    }
    for _ in 0..dice.between(0, 4) {
        within(dice, &mut all, &order);
    }
    if all.federates.len() > 1 {
        for at in 0..dice.between(0, 5) {
            across(dice, &mut all, &order, at);
        }
    }
    all
}

fn federate(dice: &mut Dice, at: i64, stations: &[Station]) -> Federate {
    let station = dice.one(stations).name;
    let maxwait = match dice.below(4) {
        0 => None,
        1 => Some(MaxWait::Forever),
        2 => Some(MaxWait::For(Span::ZERO)),
        _ => Some(MaxWait::For(us(dice.between(0, 8_000)))),
    };
    Federate {
        name: format!("f{at}"),
        station: (!dice.is_unknown()).then_some(station),
        maxwait,
        origin: Origin::default(),
    }
}

fn reaction(dice: &mut Dice, federate: usize, number: usize) -> Reaction {
    let hi = us(dice.one(&[0, 20, 100, 100, 400, 900]));
    let lo = dice.span(Span::ZERO, hi);
    let hi = (!dice.is_unknown()).then_some(hi);
    Reaction {
        federate: FederateId(federate as u32),
        name: format!("r{number}"),
        execution: (!dice.is_unknown()).then_some(Interval { lo, hi }),
        deadline: dice.chance(20).then(|| us(dice.between(0, 4_000))),
        causes: Vec::new(),
        origin: Origin::default(),
    }
}

fn source(dice: &mut Dice, all: &Federation, at: usize) -> Trigger {
    let period = us(dice.one(&[2_000, 4_000, 5_000, 10_000, 20_000]));
    match dice.below(10) {
        0 => Trigger::Startup,
        1 => Trigger::Shutdown,
        2 | 3 => {
            let federate = all.reactions[at].federate;
            let interval = (!dice.is_unknown()).then_some(period + us(dice.between(0, 3_000)));
            // One action may cause several reactions of a federate.
            let same = all.reactions.iter().filter(|reaction| reaction.federate == federate);
            let same = same.flat_map(|reaction| &reaction.causes);
            let known = same.into_iter().find(|cause| matches!(cause, Trigger::Sporadic { .. }));
            match known.filter(|_| dice.chance(50)) {
                Some(cause) => cause.clone(),
                None => Trigger::Sporadic { action: format!("a{at}"), interval },
            }
        }
        _ => Trigger::Timer {
            offset: us(dice.one(&[0, 0, 0, 1_000, 2_500])),
            period: (!dice.chance(10)).then_some(period),
        },
    }
}

/// A delay of tags; none only forwards in the order, a microstep backwards only seldom.
fn delay(dice: &mut Dice, forward: bool) -> TagDelay {
    match dice.below(6) {
        0 | 1 if forward => TagDelay::None,
        2 if forward || dice.chance(2) => TagDelay::Microstep,
        _ => TagDelay::Time(us(dice.one(&[500, 1_000, 2_000, 3_000, 5_000, 10_000, 40_000]))),
    }
}

/// A cause within a federate.
fn within(dice: &mut Dice, all: &mut Federation, order: &Order) {
    let (from, to) = (dice.below(all.reactions.len()), dice.below(all.reactions.len()));
    if all.reactions[from].federate != all.reactions[to].federate {
        return;
    }
    let physical = dice.chance(10);
    let forward = from < to && order.0[from] < order.0[to];
    let delay = match physical {
        true => dice.one(&[TagDelay::None, TagDelay::Microstep, TagDelay::Time(us(1_500))]),
        false => delay(dice, forward),
    };
    let from = ReactionId(from as u32);
    all.reactions[to].causes.push(Trigger::Reaction { from, delay, physical });
}

/// A connection between federates.
fn across(dice: &mut Dice, all: &mut Federation, order: &Order, number: i64) {
    let from = dice.below(all.reactions.len());
    let federate = all.reactions[from].federate;
    let others: Vec<usize> =
        (0..all.reactions.len()).filter(|at| all.reactions[*at].federate != federate).collect();
    let to = dice.one(&others);
    let reader = all.reactions[to].federate;
    let same = |at: &usize| all.reactions[*at].federate == federate;
    let mut writers = vec![from];
    writers.extend((0..all.reactions.len()).filter(same).filter(|_| dice.chance(15)));
    writers.sort_unstable();
    writers.dedup();
    let mut readers = vec![to];
    if dice.chance(20) {
        readers.extend((0..all.reactions.len()).filter(|at| all.reactions[*at].federate == reader));
    }
    readers.sort_unstable();
    readers.dedup();
    let last = writers.iter().map(|at| order.0[*at]).max();
    let first = readers.iter().map(|at| order.0[*at]).min();
    let after = delay(dice, last < first);
    let id = ConnectionId(all.connections.len() as u32);
    all.connections.push(Connection {
        name: format!("c{number}"),
        from: federate,
        from_port: "out".to_owned(),
        to: reader,
        to_port: format!("in[{number}]"),
        writers: writers.into_iter().map(|at| ReactionId(at as u32)).collect(),
        after,
        physical: dice.chance(15),
        absent_after: match dice.below(8) {
            0 => Some(MaxWait::Forever),
            1 | 2 => Some(MaxWait::For(us(dice.between(0, 5_000)))),
            _ => None,
        },
        payload: "int".to_owned(),
        octets: (!dice.chance(10)).then(|| dice.between(1, 400) as u32),
        interval: (!dice.chance(50)).then(|| us(dice.between(1, 10_000))),
        origin: Origin::default(),
    });
    for reader in readers {
        all.reactions[reader].causes.push(Trigger::Message(id));
    }
}

/// What a federation says, in words, each of which should be drawn often enough.
pub(crate) fn features(case: &Case) -> Vec<String> {
    let mut all = Vec::new();
    let federation = &case.federation;
    let mut note = |text: String| all.push(text);
    note(format!("{:?}", federation.coordination));
    for federate in &federation.federates {
        note(format!("station {}", federate.station.is_some()));
        note(format!("maxwait {}", wait(federate.maxwait)));
    }
    for reaction in &federation.reactions {
        let bounded = reaction.execution.map(|interval| interval.hi.is_some());
        note(format!("execution {bounded:?}"));
        note(format!("deadline {}", reaction.deadline.is_some()));
        note(format!("{} causes", reaction.causes.len().min(2)));
        for cause in &reaction.causes {
            note(match cause {
                Trigger::Startup => "startup".to_owned(),
                Trigger::Shutdown => "shutdown".to_owned(),
                Trigger::Timer { period, .. } => format!("timer {}", period.is_some()),
                Trigger::Reaction { delay, physical, .. } => {
                    format!("reaction {} {physical}", shape(*delay))
                }
                Trigger::Sporadic { interval, .. } => format!("sporadic {}", interval.is_some()),
                Trigger::Message(_) => "message".to_owned(),
            });
        }
    }
    for connection in &federation.connections {
        note(format!("connection {} {}", shape(connection.after), connection.physical));
        note(format!("absent_after {}", wait(connection.absent_after)));
        note(format!("{} writers", connection.writers.len().min(2)));
        note(format!("octets {}", connection.octets.is_some()));
        note(format!("interval {}", connection.interval.is_some()));
    }
    for delivery in &case.environment.deliveries {
        note(match delivery {
            None => "delivery unknown".to_owned(),
            Some(Delivery::Fixed(_)) => "delivery fixed".to_owned(),
            Some(Delivery::Between { .. }) => "delivery between".to_owned(),
        });
    }
    for station in &case.environment.stations {
        note(format!("clock error {}", station.clock_error.is_some()));
        note(format!("cores {:?}", station.cores));
    }
    note(format!("handlers set {}", case.environment.handlers_set));
    all
}

fn wait(wait: Option<MaxWait>) -> &'static str {
    match wait {
        None => "none",
        Some(MaxWait::Forever) => "for ever",
        Some(MaxWait::For(_)) => "for a time",
    }
}

fn shape(delay: TagDelay) -> &'static str {
    match delay {
        TagDelay::None => "at once",
        TagDelay::Microstep => "microstep",
        TagDelay::Time(_) => "later",
    }
}

/// All that [`features`] can say.
pub(crate) const FEATURES: &[&str] = &[
    "Centralized",
    "Decentralized",
    "station true",
    "station false",
    "maxwait none",
    "maxwait for ever",
    "maxwait for a time",
    "execution None",
    "execution Some(true)",
    "execution Some(false)",
    "deadline true",
    "deadline false",
    "0 causes",
    "1 causes",
    "2 causes",
    "startup",
    "shutdown",
    "timer true",
    "timer false",
    "reaction at once false",
    "reaction at once true",
    "reaction microstep false",
    "reaction microstep true",
    "reaction later false",
    "reaction later true",
    "sporadic true",
    "sporadic false",
    "message",
    "connection at once false",
    "connection at once true",
    "connection microstep false",
    "connection microstep true",
    "connection later false",
    "connection later true",
    "absent_after none",
    "absent_after for ever",
    "absent_after for a time",
    "1 writers",
    "2 writers",
    "octets true",
    "octets false",
    "interval true",
    "interval false",
    "delivery unknown",
    "delivery fixed",
    "delivery between",
    "clock error true",
    "clock error false",
    "cores None",
    "cores Some(1)",
    "cores Some(2)",
    "handlers set true",
    "handlers set false",
];
