//! What is known of a channel's messages: when each may be captured, and by which writes.

use super::state::Count;
use onbeat_model::graph::Interval;
use onbeat_model::time::Span;

/// Numbers of one write that are kept apart; what may be one of more numbers may be any.
const APART: u32 = 64;

/// A write that may have made a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    pub(super) row: usize,
    pub(super) at: Interval,
    /// Whether it is made in every execution.
    pub(super) is_certain: bool,
}

/// The messages of one writer to one channel.
#[derive(Debug, Default)]
pub(super) struct WriterMessages {
    /// By number: what may have made it, with the first number that it may have made.
    numbered: Vec<Vec<(u32, Capture)>>,
    /// What may have made any message from a number on.
    open: Vec<(u32, Capture)>,
    /// All of them.
    pub(super) all: Vec<Capture>,
}

impl WriterMessages {
    /// A write that made the message with one of these numbers.
    pub(super) fn add(&mut self, number: Count, capture: Capture) {
        self.all.push(capture);
        match number.hi {
            Some(hi) if hi - number.lo < APART => {
                if self.numbered.len() <= hi as usize {
                    self.numbered.resize(hi as usize + 1, Vec::new());
                }
                for made in &mut self.numbered[number.lo as usize..=hi as usize] {
                    made.push((number.lo, capture));
                }
            }
            _ => self.open.push((number.lo, capture)),
        }
    }

    /// Up to which number there may be messages.
    pub(super) fn made(&self) -> usize {
        self.numbered.len()
    }

    /// What may have made one of the messages with these numbers, each once.
    pub(super) fn captures(&self, lo: u32, hi: u32) -> impl Iterator<Item = &Capture> {
        (lo..=hi).flat_map(move |number| {
            let numbered = self.numbered.get(number as usize).into_iter().flatten();
            let all = numbered.chain(&self.open);
            // What may have made the one before, too, has been there.
            let is_new = move |from: u32| from == number || number == lo && from < lo;
            all.filter(move |(from, _)| is_new(*from)).map(|(_, capture)| capture)
        })
    }
}

/// What is known of the message that a read takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// When it was captured; none if it is not known to be ever written.
    pub(super) at: Option<Interval>,
    /// The writes.
    pub(super) rows: Vec<usize>,
}

impl Known {
    pub(super) fn or(&mut self, capture: &Capture) {
        self.at = Some(self.at.map_or(capture.at, |at| at.or(capture.at)));
        if !self.rows.contains(&capture.row) {
            self.rows.push(capture.row);
        }
    }
}

/// The message with one of these numbers, of several writers: the least is the least of their
/// captures of that rank, the greatest that of their certain captures.
pub(super) fn merged(writers: &[&WriterMessages], number: Count) -> Known {
    let all = || writers.iter().flat_map(|messages| &messages.all);
    let mut earliest: Vec<Span> = all().map(|capture| capture.at.lo).collect();
    let Some(lo) = ranked(&mut earliest, number.lo) else { return Known::default() };
    let certain = all().filter(|capture| capture.is_certain);
    let mut latest: Vec<Span> = certain.filter_map(|capture| capture.at.hi).collect();
    let hi = number.hi.and_then(|hi| ranked(&mut latest, hi));
    let is_it =
        |c: &&Capture| c.at.hi.is_none_or(|at| at >= lo) && hi.is_none_or(|hi| c.at.lo <= hi);
    let rows = all().filter(is_it).map(|capture| capture.row).collect();
    Known { at: Some(Interval { lo, hi }), rows }
}

/// The one of some times with so many before it.
fn ranked(times: &mut [Span], rank: u32) -> Option<Span> {
    let rank = rank as usize;
    (rank < times.len()).then(|| *times.select_nth_unstable(rank).1)
}
