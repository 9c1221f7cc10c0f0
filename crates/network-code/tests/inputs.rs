//! Inputs of a random program: instants and words that are drawn often at the edges.

use onbeat_runtime::network_code::station::Station;

use crate::generator::Dice;

/// A number that an environment variable says.
pub(crate) fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// The cycle of the next input, at `from` or later: often just when the station does something.
pub(crate) fn instant(station: &Station, from: u64, dice: &mut Dice) -> u64 {
    let next = station.next().0;
    let at = match dice.below(4) {
        0 => from + dice.below(200),
        _ if next > from + 3_000 => from + dice.below(600),
        1 => next.saturating_sub(1),
        2 => next,
        _ => next + 1,
    };
    at.max(from)
}

/// Words that often agree.
pub(crate) fn values(words: u16, dice: &mut Dice) -> Vec<u32> {
    let value = |dice: &mut Dice| if dice.percent(80) { dice.below(3) } else { dice.word() };
    (0..words).map(|_| (value(dice) as u32).wrapping_sub(1)).collect()
}
