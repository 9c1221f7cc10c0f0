//! Elimination of duplicates (802.1CB-2017 7.4.3).

use onbeat_model::time::{NetTime, Span};

/// frerSeqRcvyResetMSec: after so long without an accepted frame, whatever comes next is accepted,
/// and counting begins there.
const RESET: Span = Span::from_s(1);

/// What the algorithm makes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// The first of its number.
    New,
    /// Its number was accepted before (frerCpsSeqRcvyDiscardedPackets).
    Duplicate,
    /// Its number is further back or ahead than the history (frerCpsSeqRcvyRoguePackets): whether
    /// it was accepted before is unknown.
    Rogue,
}

/// The vector recovery algorithm (7.4.3.4) of one stream where its ways meet. Numbers count modulo
/// 2³² instead of the R-TAG's 2¹⁶, which is the same as long as the ways differ by less than 2¹⁵
/// frames.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// frerSeqRcvyHistoryLength.
    history: u32,
    /// What was accepted last of each number modulo the length of this list, a power of two.
    seen: Vec<Option<u32>>,
    /// The highest number accepted, and when a frame was accepted last; `None`: take any.
    newest: Option<(u32, NetTime)>,
}

impl Recovery {
    pub(crate) fn new(history: u32) -> Self {
        assert!((1..1 << 16).contains(&history), "a history of {history} frames");
        let seen = vec![None; history.next_power_of_two() as usize];
        Self { history, seen, newest: None }
    }

    /// What becomes of a frame. Only a new one goes further.
    pub(crate) fn judge(&mut self, now: NetTime, sequence: u32) -> Recovered {
        let newest = match self.newest {
            Some((newest, accepted)) if now - accepted < RESET => newest,
            _ => {
                self.seen.fill(None);
                return self.accept(now, sequence, sequence);
            }
        };
        let ahead = sequence.wrapping_sub(newest) as i32;
        if ahead.unsigned_abs() >= self.history {
            return Recovered::Rogue;
        }
        if *self.slot(sequence) == Some(sequence) {
            return Recovered::Duplicate;
        }
        self.accept(now, sequence, if ahead > 0 { sequence } else { newest })
    }

    fn accept(&mut self, now: NetTime, sequence: u32, newest: u32) -> Recovered {
        *self.slot(sequence) = Some(sequence);
        self.newest = Some((newest, now));
        Recovered::New
    }

    fn slot(&mut self, sequence: u32) -> &mut Option<u32> {
        let mask = self.seen.len() - 1;
        &mut self.seen[sequence as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_passes_once_in_any_order_within_the_history() {
        use Recovered::{Duplicate, New, Rogue};
        let mut recovery = Recovery::new(4);
        let mut seen = |ns, sequence| recovery.judge(NetTime::from_ns(ns), sequence);
        // The first may be any. 9 is three back: accepted; 8 is four back: beyond the history.
        for (sequence, wanted) in [
            (12, New),
            (12, Duplicate),
            (9, New),
            (9, Duplicate),
            (8, Rogue),
            (11, New),
            (15, New),
            (11, Rogue),
            (12, Duplicate),
            (13, New),
            (19, Rogue),
            (18, New),
            (14, Rogue),
        ] {
            assert_eq!(seen(0, sequence), wanted, "{sequence}");
        }
        // Numbers begin again after a second without an accepted frame, not before.
        assert_eq!(seen(999_999_999, 900), Rogue);
        assert_eq!(seen(1_000_000_000, 900), New);
        assert_eq!(seen(1_000_000_001, 901), New);
    }

    #[test]
    fn numbers_go_on_beyond_the_last_one() {
        let mut recovery = Recovery::new(8);
        let mut seen = |sequence| recovery.judge(NetTime::ZERO, sequence) == Recovered::New;
        assert!(seen(u32::MAX) && seen(1) && seen(0) && seen(u32::MAX - 1));
        assert!(!seen(0) && !seen(u32::MAX));
    }
}
