//! Slots that alternatives share: a word of a mode's message says which of them sends.
//!
//! In each round the mode comes first. A station that sends alternatives receives it right before
//! their slot: if it has come in this round, each of them is sent only if the word has its value.

use super::round::{Bus, BusFrame, BusWindow, CREATE_LEAD};
use super::timetable::{self, BRANCH, RECEIVE};
use onbeat_model::system::System;
use onbeat_model::units::frame;
use std::collections::BTreeMap;

/// The channels of a slot, as indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedSlot {
    pub(super) mode: usize,
    /// Which word of the mode's buffer decides.
    pub(super) word: u32,
    /// With their values.
    pub(super) channels: Vec<(usize, u32)>,
}

/// From when to when a link is taken, by links, in cycles.
pub(super) type Taken = BTreeMap<usize, (i64, i64)>;

/// What takes links, and how its begin is placed.
pub(super) struct SharedPlace {
    pub(super) taken: Taken,
    /// From the first instant at which a link is taken to the begin of the slot.
    pub(super) lead: i64,
    /// The slot does not begin before.
    pub(super) earliest: i64,
}

/// The slots that a description asks for.
pub(super) fn shared(system: &System) -> Vec<SharedSlot> {
    let slot = |it: &onbeat_model::system::Alternatives| SharedSlot {
        mode: it.mode.index(),
        word: (frame::AVTP_HEADER + it.offset).get() / 4,
        channels: it.channels.iter().map(|it| (it.channel.index(), it.value)).collect(),
    };
    system.alternatives.iter().map(slot).collect()
}

impl SharedSlot {
    /// The alternatives that a station sends, in the order in which it looks at their values.
    pub(super) fn own(&self, bus: &Bus<'_>, station: usize) -> Vec<(usize, u32)> {
        let own = self.channels.iter().filter(|(channel, _)| bus.senders[*channel] == station);
        own.copied().collect()
    }

    /// From `receive` of the mode to the first `create`: two guards are between them.
    pub(super) fn lead(&self, bus: &Bus<'_>) -> i64 {
        self.received(bus) + BRANCH
    }

    /// What a station takes at least: `receive`, and whether there was a frame.
    pub(super) fn received(&self, bus: &Bus<'_>) -> i64 {
        RECEIVE + i64::from(bus.words(BusFrame::Channel(self.mode))) + BRANCH
    }

    /// By how much later than the slot begins one of its channels is sent: a guard for each one
    /// of the same sender before it.
    pub(super) fn later(&self, bus: &Bus<'_>, channel: usize) -> i64 {
        let own = self.own(bus, bus.senders[channel]);
        let before = own.iter().take_while(|(of, _)| *of != channel);
        before.map(|_| BRANCH).sum()
    }

    /// Where it may be, if the mode's slot begins at `mode`: at each link from the earliest of its
    /// frames to the latest.
    pub(super) fn place(
        &self,
        bus: &Bus<'_>,
        mode: i64,
        mark: Option<i64>,
        round: i64,
    ) -> SharedPlace {
        let mut taken = Taken::new();
        let mut earliest = 0;
        for (channel, _) in &self.channels {
            let later = self.later(bus, *channel);
            add(&mut taken, later, &bus.windows(BusFrame::Channel(*channel), round));
            let sender = bus.senders[*channel];
            // No other frame of the sender is created meanwhile.
            let own = bus.tree.arrivals[sender][0].link;
            let first = taken.get_mut(&own).map(|(first, _)| first);
            first.into_iter().for_each(|first| *first = (*first).min(-self.lead(bus)));
            let received = bus.received(BusFrame::Channel(self.mode), sender, mode, round);
            let received = received.max(timetable::first(bus, sender, mark, round));
            let create = received + self.lead(bus);
            earliest = earliest.max(create + CREATE_LEAD - bus.offset(sender, 0));
        }
        let first = taken.values().map(|(first, _)| *first).min().unwrap_or(0);
        taken.values_mut().for_each(|(from, to)| (*from, *to) = (*from - first, *to - first));
        SharedPlace { taken, lead: -first, earliest }
    }
}

/// Adds the windows of a frame whose slot begins at an instant.
pub(super) fn add(taken: &mut Taken, start: i64, windows: &[BusWindow]) {
    for window in windows {
        let from = start + window.offset;
        let to = from + window.occupies;
        let known = taken.entry(window.link).or_insert((from, to));
        *known = (known.0.min(from), known.1.max(to));
    }
}

/// Windows at any instants, each behind a link of its own that there is not. The first one is
/// `root`, at which all begins.
pub(super) fn spread(root: BusWindow, taken: &Taken, links: &mut usize) -> Vec<BusWindow> {
    let mut windows = vec![root];
    for (link, (from, to)) in taken {
        let before = Some(windows.len());
        windows.push(BusWindow { link: *links, before: Some(0), offset: 0, occupies: 1 });
        windows.push(BusWindow { link: *link, before, offset: *from, occupies: to - from });
        *links += 1;
    }
    windows
}
