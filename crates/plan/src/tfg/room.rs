//! Whether channels have room for what is written to them.

use super::explore::{Explorer, Taken};
use super::shape::End;
use super::state::{Count, plus};
use onbeat_model::graph::{ChannelKind, Interval};
use onbeat_model::timing::Trouble;

/// Whether a value finds room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Yes,
    /// As long as the reader goes on.
    WhileRead,
    Perhaps,
    No,
}

impl Explorer<'_> {
    /// Whether the message with one of these numbers finds room in a fifochannel; what happens at
    /// the same instant may happen in any order.
    ///
    /// # Errors
    /// The reader that has to be moved first.
    pub(super) fn room(
        &self,
        writer: usize,
        channel: usize,
        number: Count,
        now: Interval,
    ) -> Result<Room, usize> {
        let Some(ChannelKind::Fifo { capacity }) =
            self.graph.channels.get(channel).map(|c| &c.kind)
        else {
            return Ok(Room::Yes);
        };
        let others = self.lines[channel].iter().filter(|(task, _)| *task != writer);
        let others: usize = others.map(|(_, line)| line.all.len()).sum();
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        let most = number.hi.map_or(u32::MAX, |hi| hi.saturating_add(others));
        let Some(needed) = most.checked_sub(*capacity) else { return Ok(Room::Yes) };
        let reader = match self.readers[channel][..] {
            [] if number.lo >= *capacity => return Ok(Room::No),
            [reader] if others == 0 => reader,
            _ => return Ok(Room::Perhaps),
        };
        let Some(end) = self.shapes[reader].number(End { channel, writes: false }) else {
            return Ok(Room::Perhaps);
        };
        if self.taken_at(reader, end, needed).is_some_and(|taken| taken < now.lo) {
            let taken = self.tasks[reader].taken[end].iter().filter(|taken| taken.is_certain);
            let mut before = taken.filter(|taken| taken.at.hi.is_some_and(|hi| hi < now.lo));
            let is_certain = before.any(|taken| taken.count.lo > needed);
            return Ok(if is_certain { Room::Yes } else { Room::WhileRead });
        }
        let has_passed = |state: &super::state::State| now.hi.is_some_and(|hi| state.now.lo > hi);
        let shape = &self.shapes[reader];
        let is_settled = reader == writer
            || self.tasks[reader]
                .frontier
                .iter()
                .all(|(key, state)| has_passed(state) || !shape.uses[shape.order.node(key)][end]);
        if !is_settled {
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
            Some(first) if !may_take(first) => Room::No,
            _ => Room::Perhaps,
        })
    }

    /// A value may get lost at a write.
    pub(super) fn overflow(&mut self, row: usize, channel: usize) {
        let place = |row: usize| (self.rows[row].task, self.rows[row].node);
        let is_known = |trouble: &Trouble| match trouble {
            Trouble::Overflow { row: known, channel: of } => {
                *of == channel && place(*known) == place(row)
            }
            Trouble::Deadlock { .. } => false,
        };
        if !self.troubles.iter().any(is_known) {
            self.troubles.push(Trouble::Overflow { row, channel });
        }
    }

    /// Whether a reader of a network channel may have missed messages: when one came, as many as
    /// are kept were not yet taken. From then on nobody knows which one is the next.
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
