//! Elimination of duplicates (802.1CB-2017 7.4.3).

use onbeat_model::time::{NetTime, Span};

/// frerSeqRcvyResetMSec: after so long without an accepted frame, whatever comes next is accepted,
/// and counting begins there.
const RESET: Span = Span::from_s(1);

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

    /// Whether the frame is the first of its number; otherwise it goes no further. Neither does a
    /// number further back or ahead than the history ("rogue"), which nobody can tell from a
    /// duplicate.
    pub(crate) fn accepts(&mut self, now: NetTime, sequence: u32) -> bool {
        let newest = match self.newest {
            Some((newest, accepted)) if now - accepted < RESET => newest,
            _ => {
                self.seen.fill(None);
                return self.accept(now, sequence, sequence);
            }
        };
        let ahead = sequence.wrapping_sub(newest) as i32;
        if ahead.unsigned_abs() >= self.history || *self.slot(sequence) == Some(sequence) {
            return false;
        }
        self.accept(now, sequence, if ahead > 0 { sequence } else { newest })
    }

    fn accept(&mut self, now: NetTime, sequence: u32, newest: u32) -> bool {
        *self.slot(sequence) = Some(sequence);
        self.newest = Some((newest, now));
        true
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
        let mut recovery = Recovery::new(4);
        let mut seen = |ns, sequence| recovery.accepts(NetTime::from_ns(ns), sequence);
        // The first may be any. 9 is three back: accepted; 8 is four back: beyond the history.
        for (sequence, accepted) in [
            (12, true),
            (12, false),
            (9, true),
            (9, false),
            (8, false),
            (11, true),
            (15, true),
            (11, false),
            (12, false),
            (13, true),
            (19, false),
            (18, true),
            (14, false),
        ] {
            assert_eq!(seen(0, sequence), accepted, "{sequence}");
        }
        // Numbers begin anew after a second without an accepted frame, not before.
        assert!(!seen(999_999_999, 900));
        assert!(seen(1_000_000_000, 900));
        assert!(seen(1_000_000_001, 901));
    }

    #[test]
    fn numbers_go_on_beyond_the_last_one() {
        let mut recovery = Recovery::new(8);
        let mut seen = |sequence| recovery.accepts(NetTime::ZERO, sequence);
        assert!(seen(u32::MAX) && seen(1) && seen(0) && seen(u32::MAX - 1));
        assert!(!seen(0) && !seen(u32::MAX));
    }
}
