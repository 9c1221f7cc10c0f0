//! Rounds that repeat within a hyper-round: a program has each once, and counts.

/// Rounds of a repetition, at most.
const LENGTH_MAX: usize = 64;

/// Rounds that follow each other, so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repetition {
    /// The first.
    pub(super) first: usize,
    /// How many they are.
    pub(super) length: usize,
    /// How often they come, at least once.
    pub(super) times: usize,
}

/// Rounds by what is done in them, as few as can be found at first sight. The first and the last
/// one stand for themselves: what is before and behind them is another matter.
pub(super) fn repetitions(rounds: &[usize]) -> Vec<Repetition> {
    let once = |first| Repetition { first, length: 1, times: 1 };
    let mut all = vec![once(0)];
    let last = rounds.len().saturating_sub(1);
    let mut at = 1;
    while at < last {
        let best = (1..=LENGTH_MAX).filter_map(|length| {
            let times = times(&rounds[at..last], length);
            (times > 1).then_some(Repetition { first: at, length, times })
        });
        let saved = |it: &Repetition| (it.length * (it.times - 1), std::cmp::Reverse(it.length));
        let best = best.max_by_key(saved).unwrap_or(once(at));
        at += best.length * best.times;
        all.push(best);
    }
    if last > 0 {
        all.push(once(last));
    }
    all
}

/// How often the first rounds come one after another.
fn times(rounds: &[usize], length: usize) -> usize {
    let same = rounds.iter().zip(rounds.iter().skip(length)).take_while(|(one, next)| one == next);
    same.count() / length + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rounds: &[usize]) -> Vec<(usize, usize, usize)> {
        let all = repetitions(rounds);
        let mut at = 0;
        for it in &all {
            assert_eq!(it.first, at, "they follow each other");
            for round in 0..it.length * it.times {
                assert_eq!(rounds[at + round], rounds[at + round % it.length]);
            }
            at += it.length * it.times;
        }
        assert_eq!(at, rounds.len(), "all are there");
        all.iter().map(|it| (it.first, it.length, it.times)).collect()
    }

    #[test]
    fn rounds_that_repeat_are_there_once() {
        assert_eq!(found(&[7]), [(0, 1, 1)]);
        assert_eq!(found(&[7, 7]), [(0, 1, 1), (1, 1, 1)]);
        assert_eq!(found(&[7, 7, 7, 7, 7]), [(0, 1, 1), (1, 1, 3), (4, 1, 1)]);
        assert_eq!(found(&[0, 1, 2, 1, 2, 1, 2, 9]), [(0, 1, 1), (1, 2, 3), (7, 1, 1)]);
        assert_eq!(found(&[0, 1, 2, 3, 4]).len(), 5);
        // The shorter one of those that save the same.
        assert_eq!(found(&[0, 5, 5, 5, 5, 0]), [(0, 1, 1), (1, 1, 4), (5, 1, 1)]);
    }
}
