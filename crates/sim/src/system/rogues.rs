//! Programs that speak the protocol of a run wrongly.

use crate::script::{ActorStep, Misdeed, ProtocolState};
use onbeat_hunt::Dice;

/// Requests of a length of their own.
const PLAIN: [u8; 11] = [1, 4, 5, 7, 8, 9, 10, 12, 13, 14, 15];
/// Requests that name an end.
const OF_AN_END: [u8; 4] = [6, 7, 11, 14];
/// Requests with a time or a key.
const OF_A_TIME: [u8; 6] = [4, 5, 7, 11, 12, 13];

/// A script of one step.
pub(super) fn rogue(dice: &mut Dice) -> Vec<ActorStep> {
    let at = dice.one(&ProtocolState::ALL);
    vec![ActorStep::Rogue { at, how: misdeed(at, dice) }]
}

fn misdeed(at: ProtocolState, dice: &mut Dice) -> Misdeed {
    let number = |dice: &mut Dice, most: u64| dice.below(most) as u32;
    // Whoever stays when it is no more in the run is waited for, for seconds: seldom.
    if dice.chance(2) {
        return dice.one(&[Misdeed::Stay, Misdeed::Silent, Misdeed::Silent]);
    }
    let opened = at >= ProtocolState::Opened;
    match dice.below(if opened { 27 } else { 22 }) {
        0 | 1 => Misdeed::Garbage { octets: dice.magnitude(1, 1_500) as usize },
        2 => Misdeed::Empty,
        3 => Misdeed::Oversized { octets: dice.magnitude(1_600, 60_000) as usize },
        4 => Misdeed::Truncated { request: dice.one(&PLAIN) },
        5 => Misdeed::Trailing { request: dice.one(&PLAIN) },
        6 => Misdeed::Unknown { request: dice.one(&[0, 16, 17, 100, 255]) },
        7 => Misdeed::Version { version: dice.one(&[0, 1, 8, 10, u16::MAX]) },
        8 => Misdeed::HelloAgain,
        9 => Misdeed::BeginAgain,
        10 => Misdeed::Premature,
        11 => Misdeed::ForeignEnd {
            request: dice.one(&OF_AN_END),
            end: dice.one(&[60_000, u32::MAX, 1 << 31]),
        },
        12 => Misdeed::Extreme {
            request: dice.one(&OF_A_TIME),
            value: dice.one(&[i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX]),
        },
        13 => Misdeed::JoinNobody { ticket: dice.one(&[u32::MAX, 4_000_000]) },
        14 => Misdeed::SelectMany { count: dice.one(&[0, 257, 300]) },
        15 => Misdeed::Deaf { count: 20_000 },
        16 => Misdeed::Flood { count: dice.one(&[10, 1_000, 5_000, 150_000]) },
        17 => Misdeed::Vanish,
        18 => Misdeed::Descriptors { count: dice.between(1, 2) as usize },
        19 => Misdeed::StartTwice,
        20 => Misdeed::SpeakAfterBye,
        21 => Misdeed::HalfClose { write: dice.chance(50) },
        22 => Misdeed::WrongFrame { octets: dice.magnitude(1, 1_500) as usize },
        23 => Misdeed::Excess { count: dice.magnitude(2, 3_000) as u32 },
        24 => Misdeed::Threads { count: 1 + number(dice, 8) },
        25 => Misdeed::Scribble { octets: dice.magnitude(8, 100_000) as usize },
        _ => Misdeed::Shrink,
    }
}

/// What must come of a misdeed: `None` where either may.
pub(crate) fn ends_the_run(at: ProtocolState, how: &Misdeed) -> Option<bool> {
    let early = at <= ProtocolState::Greeted;
    match how {
        // It exits before its program has begun.
        _ if at == ProtocolState::Door && !matches!(how, Misdeed::HelloAgain) => match how {
            Misdeed::Deaf { .. } | Misdeed::Flood { .. } | Misdeed::SpeakAfterBye => None,
            _ => Some(true),
        },
        _ if at == ProtocolState::Door => None,
        Misdeed::Silent | Misdeed::Stay => Some(true),
        // Of one octet nothing is left: it is as if it had closed its socket.
        Misdeed::Truncated { request: 8 | 10 } => None,
        Misdeed::Vanish | Misdeed::HalfClose { .. } => Some(early),
        Misdeed::Oversized { .. }
        | Misdeed::Truncated { .. }
        | Misdeed::Trailing { .. }
        | Misdeed::Unknown { .. }
        | Misdeed::HelloAgain
        | Misdeed::ForeignEnd { .. }
        | Misdeed::WrongFrame { .. }
        | Misdeed::JoinNobody { .. } => Some(true),
        Misdeed::Version { .. } => Some(true),
        Misdeed::SelectMany { count } if *count > 0 => Some(true),
        Misdeed::BeginAgain if !early => Some(true),
        Misdeed::Deaf { .. } => Some(true),
        Misdeed::Flood { count } if *count > 100_000 || early => Some(true),
        Misdeed::Descriptors { .. } if !early => Some(false),
        Misdeed::Premature | Misdeed::StartTwice if !early => Some(false),
        Misdeed::Excess { .. } => None,
        _ => None,
    }
}
