//! What is on the bus in a round, and how long each frame needs it.

use super::carried::ChannelFrames;
use super::rounds::BaseRound;
use super::shared::{self, SharedSlot};
use super::slots::{self, BusSchedule};
use super::timetable::{self, Timetable};
use super::tree::{Arrival, BroadcastTree};
use super::{BusPath, codes, refused};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{NodeId, System};
use onbeat_runtime::network_code::timing::{CYCLE_NS, RECEIVE_STORE, SEND_START, SYNC_RESUME};

/// A cycle, in ns.
pub(super) const CYCLE: i64 = CYCLE_NS as i64;
/// From `create` to the first octet, in cycles: 2 for `create`, then that of `send`.
pub(super) const CREATE_LEAD: i64 = 2 + SEND_START.0 as i64;
/// Rounding of instants to whole nanoseconds.
const ROUNDING: i64 = 1;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BusFrame {
    /// The beginning of a round.
    Sync,
    /// The beginning of a hyper-round.
    HyperRound,
    /// A channel: an index.
    Channel(usize),
}

/// From when to when something may be, in ns of the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reference {
    /// When the last octet of the EtherType has come.
    pub(super) ethertype: [i64; 2],
    /// When the instruction behind `sync slave` is issued; of the master, its first octet.
    pub(super) resume: [i64; 2],
}

/// When a link belongs to a frame, in cycles from the begin of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BusWindow {
    /// An index of the tree's ports.
    pub(super) link: usize,
    /// The window before it, by its position.
    pub(super) before: Option<usize>,
    pub(super) offset: i64,
    pub(super) occupies: i64,
}

/// A system's frames on its tree.
#[derive(Debug)]
pub(super) struct Bus<'a> {
    pub(super) system: &'a System,
    pub(super) tree: BroadcastTree,
    pub(super) frames: Vec<ChannelFrames>,
    /// By channel, the station that sends.
    pub(super) senders: Vec<usize>,
    /// By channel, the stations that receive.
    pub(super) listeners: Vec<Vec<usize>>,
    /// By station.
    pub(super) references: Vec<Reference>,
    /// Which frames of a station are counted with for the delay of each.
    pub(super) delays: FrameDelays,
    /// Slots that alternatives share.
    pub(super) shared: Vec<SharedSlot>,
    /// By station the words of its shortest and of its longest frame.
    lengths: Vec<[u16; 2]>,
}

/// How long a frame takes, as plans count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDelays {
    /// As long as any frame of its sender: so counts the verifier, which proves such plans.
    OfSender,
    /// By its own length. Slots are shorter where frames of one sender differ. Theirs do not meet
    /// either, which the verifier does not count with.
    OfFrame,
}

impl<'a> Bus<'a> {
    pub(super) fn new(
        system: &'a System,
        tree: BroadcastTree,
        frames: Vec<ChannelFrames>,
        delays: FrameDelays,
    ) -> Self {
        let at = |node: NodeId| tree.stations.binary_search(&node).unwrap_or(0);
        let senders: Vec<usize> = frames.iter().map(|frames| at(frames.talker)).collect();
        let listeners =
            frames.iter().map(|of| of.listeners.iter().map(|node| at(*node)).collect()).collect();
        let mut lengths = vec![[u16::MAX, 0]; tree.stations.len()];
        lengths[tree.master] = [1; 2];
        for (frames, sender) in frames.iter().zip(&senders) {
            let [least, most] = lengths[*sender];
            lengths[*sender] = [least.min(frames.words), most.max(frames.words)];
        }
        let of_sync = match delays {
            FrameDelays::OfSender => lengths[tree.master],
            FrameDelays::OfFrame => [1; 2],
        };
        let references = (0..tree.stations.len()).map(|of| reference(&tree, of, of_sync)).collect();
        let shared = shared::shared(system);
        Self { system, tree, frames, senders, listeners, references, delays, shared, lengths }
    }

    /// The slot that a channel shares with others.
    pub(super) fn shared_by(&self, channel: usize) -> Option<usize> {
        let is_in = |slot: &SharedSlot| slot.channels.iter().any(|(of, _)| *of == channel);
        self.shared.iter().position(is_in)
    }

    /// The slot of which a channel is the mode.
    pub(super) fn mode_of(&self, channel: usize) -> Option<usize> {
        self.shared.iter().position(|slot| slot.mode == channel)
    }

    /// Slots in such rounds, and what each station does when.
    pub(super) fn schedule(
        &self,
        base: &BaseRound,
    ) -> Result<(BusSchedule, Vec<Timetable>), Vec<Diagnostic>> {
        let mut ending = self.ending(base.round);
        for _ in 0..ENDINGS_MAX {
            let schedule = slots::schedule(self, base, ending)?;
            match timetable::timetables(self, &schedule) {
                Ok(timetables) => return Ok((schedule, timetables)),
                // What is received last needs so much more behind the last slot.
                Err(lacking) => ending += lacking,
            }
        }
        let message = "stations do not come to an end of what they receive in a round".to_owned();
        Err(vec![refused(codes::ROUND, message, "use longer intervals")])
    }

    pub(super) fn sender(&self, frame: BusFrame) -> usize {
        match frame {
            BusFrame::Sync | BusFrame::HyperRound => self.tree.master,
            BusFrame::Channel(channel) => self.senders[channel],
        }
    }

    pub(super) fn words(&self, frame: BusFrame) -> u16 {
        match frame {
            BusFrame::Sync | BusFrame::HyperRound => 1,
            BusFrame::Channel(channel) => self.frames[channel].words,
        }
    }

    /// The words of the frames by which its delays are counted.
    fn delayed(&self, frame: BusFrame) -> [u16; 2] {
        match self.delays {
            FrameDelays::OfSender => self.lengths[self.sender(frame)],
            FrameDelays::OfFrame => [self.words(frame); 2],
        }
    }

    /// All frames that there may be.
    pub(super) fn all(&self) -> impl Iterator<Item = BusFrame> {
        let channels = (0..self.frames.len()).map(BusFrame::Channel);
        [BusFrame::Sync, BusFrame::HyperRound].into_iter().chain(channels)
    }

    /// By how much the first octet of a frame may be off the begin of its slot: too early by the
    /// drift of the round so far; too late by that, and by what is not known of the begin of the
    /// round at its sender.
    pub(super) fn off(&self, frame: BusFrame, round: i64) -> [i64; 2] {
        let drift = self.tree.error(round);
        let sender = self.sender(frame);
        if frame == BusFrame::Sync {
            // The next round begins by the master's clock.
            return [-drift, 0];
        }
        if sender == self.tree.master {
            return [-drift, drift];
        }
        let [early, late] = self.references[sender].resume;
        // Slots begin at whole cycles of the round, and stations at whole cycles of their own.
        [-drift, late - early + CYCLE + drift]
    }

    /// When links belong to a frame, the sender's own first: from its earliest begin there until
    /// its latest end and the gap behind it. What is early for all frames alike is left out.
    pub(super) fn windows(&self, frame: BusFrame, round: i64) -> Vec<BusWindow> {
        let words = self.words(frame);
        let [first, last] = self.off(frame, round);
        let [_, length] = self.tree.frame(words);
        let window = |arrival: &Arrival| {
            let [early, late] = self.tree.begin(arrival, self.delayed(frame));
            // Starts are whole cycles, rounded down.
            let offset = early.div_euclid(CYCLE);
            let until = last - first + late + length + self.tree.gap();
            BusWindow {
                link: arrival.link,
                before: arrival.before,
                offset,
                occupies: cycles_up(until) - offset,
            }
        };
        self.tree.arrivals[self.sender(frame)].iter().map(window).collect()
    }

    /// The longest of its windows.
    pub(super) fn longest(&self, frame: BusFrame, round: i64) -> i64 {
        let windows = self.windows(frame, round);
        windows.iter().map(|window| window.occupies).max().unwrap_or(0)
    }

    /// The offset of a slave's first octet, or of the master's, that is in a slot in any case.
    pub(super) fn offset(&self, sender: usize, start: i64) -> i64 {
        start - self.references[sender].resume[0].div_euclid(CYCLE)
    }

    /// When `receive` may be issued at a listener at the earliest, in its cycles, for a frame
    /// whose slot begins at `start`.
    pub(super) fn received(&self, frame: BusFrame, listener: usize, start: i64, round: i64) -> i64 {
        let [_, late] = self.off(frame, round);
        let words = self.words(frame);
        let [_, delay] = self.tree.delay_to(self.sender(frame), listener, self.delayed(frame));
        let [_, length] = self.tree.frame(words);
        // It is stored some cycles later, which begin with the next one.
        let stored = (RECEIVE_STORE.0.cast_signed() + 1) * CYCLE;
        let there = start * CYCLE + late + delay + length + stored + ROUNDING;
        let own = self.references[listener].resume[0] - 2 * self.tree.error(round);
        cycles_up(there - own)
    }

    /// Where a slot begins at the earliest whose frame is not at a listener before an instant of
    /// that, in its cycles.
    pub(super) fn behind(&self, frame: BusFrame, listener: usize, at: i64, round: i64) -> i64 {
        let [early, _] = self.off(frame, round);
        let [delay, _] = self.tree.delay_to(self.sender(frame), listener, self.delayed(frame));
        let [length, _] = self.tree.at_station(self.tree.frame(self.words(frame)));
        let own = self.references[listener].resume[1] + at * CYCLE + 2 * self.tree.error(round);
        // It comes within a cycle.
        cycles_up(own + CYCLE + ROUNDING - early - delay - length)
    }

    /// The last offset at which a station has to be ready for the next round, in its cycles.
    pub(super) fn ready(&self, station: usize, round: i64) -> i64 {
        let round_cycles = round / CYCLE;
        if station == self.tree.master {
            return round_cycles - MASTER_LEAD;
        }
        let reference = &self.references[station];
        let next = round + reference.ethertype[0] - reference.resume[1] - CYCLE;
        (next - 3 * self.tree.error(round)).div_euclid(CYCLE)
    }

    /// How long a slave that waits for the next round from an offset on does so, in cycles.
    pub(super) fn timeout(&self, station: usize, from: i64, round: i64) -> i64 {
        let reference = &self.references[station];
        let next = round + reference.ethertype[1] - reference.resume[0] - from * CYCLE;
        cycles_up(next + 4 * self.tree.error(round)) + TIMEOUT_MARGIN
    }

    /// What the end of a round needs, at first sight: what comes in the last slot is received.
    pub(super) fn ending(&self, round: i64) -> i64 {
        let mut ending = 0;
        for channel in 0..self.frames.len() {
            let frame = BusFrame::Channel(channel);
            let own = self.windows(frame, round).first().map_or(0, |own| own.occupies);
            let start = round / CYCLE - own;
            for listener in &self.listeners[channel] {
                let words = i64::from(self.words(frame));
                let done = self.received(frame, *listener, start, round) + words + 2;
                ending = ending.max(done + timetable::LEAVE - self.ready(*listener, round));
            }
        }
        ending
    }

    /// Who reaches which link, and when.
    pub(super) fn paths(&self) -> Vec<BusPath> {
        let mut paths = Vec::new();
        for sender in 0..self.tree.stations.len() {
            let own: Vec<_> = self.all().filter(|frame| self.sender(*frame) == sender).collect();
            for arrival in &self.tree.arrivals[sender] {
                let delay = |frame: &BusFrame| self.tree.delay(arrival, self.delayed(*frame));
                let delays = own.iter().map(delay);
                let both = delays.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
                let link = arrival.link;
                paths.extend(both.map(|delay_ns| BusPath { sender, link, delay_ns }));
            }
        }
        paths
    }
}

/// How often the end of a round is made longer at most.
const ENDINGS_MAX: usize = 16;
/// Cycles by which a timeout is longer than it need be.
const TIMEOUT_MARGIN: i64 = 2;
/// From the master's first `future` of a round to the first octet: its 2 cycles, and `sync`.
pub(super) const MASTER_LEAD: i64 = 2 + SEND_START.0 as i64;

/// When a round begins for a station.
fn reference(tree: &BroadcastTree, station: usize, words: [u16; 2]) -> Reference {
    if station == tree.master {
        return Reference::default();
    }
    let [early, late] = tree.delay_to(tree.master, station, words);
    let [least, most] = tree.noted();
    let ethertype = [early + least - ROUNDING, late + most + ROUNDING];
    // It comes within a cycle of the station.
    let resume = SYNC_RESUME.0.cast_signed() * CYCLE;
    let later = tree.error(2 * CYCLE);
    let resume = [ethertype[0] + resume - later, ethertype[1] + resume + CYCLE + later];
    Reference { ethertype, resume }
}

/// Whole cycles, rounded up.
pub(super) fn cycles_up(ns: i64) -> i64 {
    -(-ns).div_euclid(CYCLE)
}
