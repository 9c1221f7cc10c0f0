//! Buffer space: whether channels have room for what is written to them.

use super::fixpoint::{Fixpoint, Taken};
use super::messages::WriterMessages;
use super::state::{Count, NEVER, plus};
use super::statics::Endpoint;
use onbeat_model::graph::{ChannelKind, Interval};
use onbeat_model::time::Span;
use onbeat_model::timing::Hazard;

/// So often the last of what is written to a channel is looked for.
const TRIALS: usize = 8;

/// Whether a written value finds space in the buffer of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferSpace {
    Yes,
    /// As long as the reader continues.
    WhileRead,
    Perhaps,
    No,
}

impl Fixpoint<'_> {
    /// Whether the message with one of these numbers finds room in a fifochannel; what happens at
    /// the same instant may happen in any order.
    ///
    /// # Errors
    /// The reader that has to be moved first.
    pub(super) fn buffer_space(
        &self,
        writer: usize,
        channel: usize,
        number: Count,
        now: Interval,
    ) -> Result<BufferSpace, usize> {
        let Some(ChannelKind::Fifo { capacity }) =
            self.graph.channels.get(channel).map(|c| &c.kind)
        else {
            return Ok(BufferSpace::Yes);
        };
        if self.has_one_reader(channel) && !self.crowded.contains(&channel) {
            return Ok(BufferSpace::Yes);
        }
        let others = self.writers[channel].iter().filter(|(task, _)| *task != writer);
        let others: usize = others.map(|(_, messages)| messages.all.len()).sum();
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        let most = number.hi.map_or(u32::MAX, |hi| hi.saturating_add(others));
        let Some(needed) = most.checked_sub(*capacity) else { return Ok(BufferSpace::Yes) };
        let reader = match self.readers[channel][..] {
            [] if number.lo >= *capacity => return Ok(BufferSpace::No),
            [reader] if others == 0 => reader,
            _ => return Ok(BufferSpace::Perhaps),
        };
        let Some(end) = self.statics[reader].number(Endpoint { channel, writes: false }) else {
            return Ok(BufferSpace::Perhaps);
        };
        if self.taken_at(reader, end, needed).is_some_and(|taken| taken < now.lo) {
            let taken = self.tasks[reader].taken[end].iter().filter(|taken| taken.is_certain);
            let mut before = taken.filter(|taken| taken.at.hi.is_some_and(|hi| hi < now.lo));
            let is_certain = before.any(|taken| taken.count.lo > needed);
            return Ok(if is_certain { BufferSpace::Yes } else { BufferSpace::WhileRead });
        }
        if reader != writer && !self.is_settled(reader, end, now) {
            return Err(reader);
        }
        let first = number.lo.checked_sub(*capacity);
        let taken = &self.tasks[reader].taken[end];
        let may_take = |first: u32| {
            taken.iter().any(|Taken { count, at, .. }| {
                count.hi.is_none_or(|hi| hi > first) && now.hi.is_none_or(|hi| at.lo <= hi)
            })
        };
        Ok(match first {
            Some(first) if !may_take(first) => BufferSpace::No,
            _ => BufferSpace::Perhaps,
        })
    }

    /// Whether all is known that a reader may have taken by then.
    fn is_settled(&self, reader: usize, end: usize, now: Interval) -> bool {
        let statics = &self.statics[reader];
        self.tasks[reader].frontier.iter().all(|(key, state)| {
            now.hi.is_some_and(|hi| state.now.lo > hi)
                || !statics.uses[statics.order.node(key)][end]
        })
    }

    /// Whether several tasks write a channel that one reads.
    fn has_one_reader(&self, channel: usize) -> bool {
        self.writers[channel].len() > 1 && self.readers[channel].len() == 1
    }

    /// Whether a channel that several tasks write, of which each write was taken to have room, may
    /// be full at one. Up to the first such write all is as it was taken to be, so that one is
    /// found: what is there at a write is what may have come by then, but for what must have been
    /// read before.
    pub(super) fn is_crowded(&mut self, tasks: &[usize], first: usize) -> bool {
        let mut is_new = false;
        for channel in 0..self.graph.channels.len() {
            let ChannelKind::Fifo { capacity } = self.graph.channels[channel].kind else {
                continue;
            };
            let is_ours = self.readers[channel].iter().any(|reader| tasks.contains(reader));
            if is_ours && self.has_one_reader(channel) && !self.crowded.contains(&channel) {
                let is_bounded =
                    (0..TRIALS).any(|_| self.always_fits(tasks, first, channel, capacity));
                if !is_bounded {
                    is_new |= self.crowded.insert(channel);
                }
            }
        }
        is_new
    }

    /// Whether all that is known to be written to a channel finds room: each task continues to when
    /// the last of it is there, without waiting for what would come later.
    fn always_fits(
        &mut self,
        tasks: &[usize],
        first: usize,
        channel: usize,
        capacity: u32,
    ) -> bool {
        let reader = self.readers[channel][0];
        let Some(number) = self.statics[reader].number(Endpoint { channel, writes: false }) else {
            return false;
        };
        let last = |messages: &WriterMessages| {
            messages.all.iter().filter_map(|capture| capture.at.hi).max()
        };
        let last = self.writers[channel].iter().filter_map(|(_, messages)| last(messages)).max();
        let end = last.map_or(NEVER, |last| last + Span::from_ns(1));
        let mut rows = 0;
        while rows != self.rows.len() {
            rows = self.rows.len();
            tasks.iter().for_each(|task| self.advance(&[*task], first, Some(end)));
        }
        let goes_on = |task: &usize| self.wake(*task).is_some_and(|at| at < end);
        if tasks.iter().any(goes_on) {
            return false;
        }
        let captures = || self.writers[channel].iter().flat_map(|(_, messages)| &messages.all);
        let mut begins: Vec<Span> = captures().map(|capture| capture.at.lo).collect();
        begins.sort_unstable();
        let taken = self.tasks[reader].taken[number].iter().filter(|taken| taken.is_certain);
        let mut taken: Vec<(Span, u32)> =
            taken.filter_map(|taken| Some((taken.at.hi?, taken.count.lo))).collect();
        taken.sort_unstable();
        let mut most = 0;
        taken.iter_mut().for_each(|(_, count)| {
            most = most.max(*count);
            *count = most;
        });
        let fits = |at: Interval| {
            let Some(last) = at.hi.filter(|last| *last < end) else { return false };
            let come = begins.partition_point(|begin| *begin <= last);
            let gone = taken.partition_point(|(done, _)| *done < at.lo);
            let gone = gone.checked_sub(1).map_or(0, |before| taken[before].1);
            come <= (gone.saturating_add(capacity)) as usize
        };
        captures().all(|capture| fits(capture.at))
    }

    /// How many messages a channel has had after a write to it that may have found it full: then
    /// it holds as many as it can, and never more.
    pub(super) fn filled(&self, channel: usize, number: Count, now: Interval) -> Count {
        let after = number.more(false);
        let (Some(ChannelKind::Fifo { capacity }), [reader], [(writer, _)]) = (
            self.graph.channels.get(channel).map(|c| &c.kind),
            &self.readers[channel][..],
            &self.writers[channel][..],
        ) else {
            return after;
        };
        let end = self.statics[*reader].number(Endpoint { channel, writes: false });
        let Some(end) = end.filter(|_| reader != writer) else { return after };
        let taken = &self.tasks[*reader].taken[end];
        let is_over =
            |taken: &&Taken| taken.is_certain && taken.at.hi.is_some_and(|hi| hi < now.lo);
        let least = taken.iter().filter(is_over).map(|taken| taken.count.lo).max().unwrap_or(0);
        let may = |taken: &&Taken| now.hi.is_none_or(|hi| taken.at.lo <= hi);
        let mut most = taken.iter().filter(may).map(|taken| taken.count.hi);
        let most = most.try_fold(0, |a: u32, b| b.map(|b| a.max(b)));
        // A reader that waits for this very write may take more by then.
        let most = most.filter(|_| self.is_settled(*reader, end, now));
        Count {
            lo: after.lo.max((after.lo + 1).min(least + capacity)),
            hi: match (after.hi, most.map(|most| most.saturating_add(*capacity))) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// A value may get lost at a write.
    pub(super) fn overflow(&mut self, row: usize, channel: usize) {
        let place = |row: usize| (self.rows[row].task, self.rows[row].node);
        let is_known = |trouble: &Hazard| match trouble {
            Hazard::Overflow { row: known, channel: of } => {
                *of == channel && place(*known) == place(row)
            }
            Hazard::Deadlock { .. } => false,
        };
        if !self.hazards.iter().any(is_known) {
            self.hazards.push(Hazard::Overflow { row, channel });
        }
    }

    /// Whether a reader of a network channel may have missed messages: when one came, as many as
    /// are kept were not yet taken. From then on it is unknown which one is the next.
    pub(super) fn loses(
        &mut self,
        task: usize,
        channel: usize,
        end: usize,
        number: Count,
        capture: Option<Interval>,
        writes: &[usize],
    ) -> bool {
        if self.tasks[task].loses.contains(&end) {
            return true;
        }
        let Some(ChannelKind::Network(network)) = self.graph.channels.get(channel).map(|c| &c.kind)
        else {
            return false;
        };
        let (Some(at), Some(last)) = (capture, number.hi) else { return false };
        let Some(needed) = last.checked_sub(network.capacity) else { return false };
        let latency = self.latency(channel, task);
        if latency.hi.is_none() {
            return false;
        }
        let there = plus(at, latency).lo;
        if self.taken_at(task, end, needed).is_some_and(|taken| taken < there) {
            return false;
        }
        self.tasks[task].loses.insert(end);
        if let Some(row) = writes.first() {
            self.overflow(*row, channel);
        }
        true
    }
}
