//! Executes programs over a network in continuous time, with given clocks, delays and outcomes of
//! guards, and notes what goes wrong. It follows one execution where the verifier follows all, and
//! shares with it the definition of instructions and frames, times, and sets of values: so it can
//! refute what the verifier says of positions and paths.

use super::network::NetworkModel;
use super::time::{Attoseconds, ethertype_octets, gap_octets, octets};
use super::values::Ranges;
use onbeat_runtime::network_code::instruction::{Instruction, MessageId};
use onbeat_runtime::network_code::timing::{Cycles, RECEIVE_STORE, SEND_START, SYNC_RESUME};
use onbeat_runtime::network_code::trace::Trap;

mod execute;
mod guards;

/// Instructions of a replay at most.
pub const REPLAY_STEPS_MAX: usize = 2_000_000;

/// What the definition leaves open: clocks, delays, and what applications do.
pub trait ReplayWorld {
    /// A station's drift in a round, in ppb.
    fn drift_ppb(&mut self, station: usize, round: u32) -> i64;
    /// A resource's drift, in ppb.
    fn resource_drift_ppb(&mut self, resource: usize) -> i64;
    /// The delay of a frame of a round: the index of its reach, and whether it begins the round.
    fn delay_ns(&mut self, reach: usize, round: u32) -> u64;
    /// How much later than it comes a station sees what comes, in ns: 0 to a cycle.
    fn phase_ns(&mut self, station: usize, round: u32) -> u64;
    /// The outcome of a guard (without `not`), where it is open or already decided.
    fn guard(&mut self, at: GuardPlace, evaluated: Option<bool>) -> bool;
    /// A word that an application has written, as `create` finds it; none leaves it open.
    fn written(&mut self, station: usize, buffer: u8, index: usize) -> Option<u32>;
    /// A word of a frame that is sent in a round, where it is open.
    fn sent(&mut self, message: MessageId, round: u32, index: usize) -> Option<u32>;
    /// Which of so many pairs of values two open words get that a guard compares: below `of`.
    fn pick(&mut self, of: usize) -> usize;
    /// Whether the frame that begins a round does not come to a station.
    fn loses(&mut self, station: usize, round: u32) -> bool;
}

/// Which guard is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardPlace {
    /// The station.
    pub station: usize,
    /// The round, from 0; before the first it is 0 too.
    pub round: u32,
    /// The address of the branch.
    pub address: usize,
    /// Whether the guard is a negation.
    pub negated: bool,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplayIncident {
    /// Two frames at once at a resource: indices of [`Replay::frames`].
    Overlap {
        /// The resource.
        resource: usize,
        /// The frame that was sent first.
        first: usize,
        /// The other one.
        second: usize,
    },
    /// `halt` at or after the end of its countdown.
    Overrun {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// `future` with a countdown.
    Replaced {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// A station has stopped.
    Trapped {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
        /// Why.
        trap: TrapKind,
    },
    /// A round began while no `sync slave` waited.
    Missed {
        /// The station.
        station: usize,
        /// Which round.
        round: u32,
    },
    /// `sync slave` continued without a frame.
    TimedOut {
        /// The station.
        station: usize,
        /// The round it was in.
        round: u32,
    },
    /// A frame was overwritten before it was copied.
    Lost {
        /// The station.
        station: usize,
        /// What was lost.
        message: MessageId,
    },
    /// `receive` found nothing.
    Empty {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// `create` of an input buffer that was never written.
    Unwritten {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// `create` waited beyond the end of the countdown.
    Stalled {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// A station sent data before its first round, or after it had lost one.
    Unsynchronised {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
    /// A second station began a round.
    SecondMaster {
        /// The station.
        station: usize,
        /// Of the instruction.
        address: usize,
    },
}

/// A trap, without what it says besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrapKind {
    /// `halt` without a countdown.
    NoFuture,
    /// `send` with nothing created.
    NothingCreated,
    /// A buffer of another length than its message.
    Length,
    /// Any other.
    Other,
}

impl From<Trap> for TrapKind {
    fn from(trap: Trap) -> Self {
        match trap {
            Trap::NoFuture => Self::NoFuture,
            Trap::NothingCreated => Self::NothingCreated,
            Trap::Length => Self::Length,
            _ => Self::Other,
        }
    }
}

/// An instruction, carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The station.
    pub station: usize,
    /// The round it is in.
    pub round: u32,
    /// Where.
    pub address: usize,
    /// When, from the start of the replay.
    pub issued: Attoseconds,
    /// When, in cycles from its first instruction in the round.
    pub offset: i64,
    /// Of a branch, whether it was taken.
    pub taken: Option<bool>,
}

/// A frame at a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayFrame {
    /// Whose.
    pub station: usize,
    /// The station's round.
    pub round: u32,
    /// The address of the instruction that sent it.
    pub address: usize,
    /// None begins a round.
    pub message: Option<MessageId>,
    /// Where.
    pub resource: usize,
    /// The first octet of the preamble.
    pub begin: Attoseconds,
    /// The last octet of the check sequence, and the gap.
    pub end: Attoseconds,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// What went wrong, in the order in which it did.
    pub incidents: Vec<ReplayIncident>,
    /// All instructions, in order of time.
    pub steps: Vec<ReplayStep>,
    /// All frames at all resources.
    pub frames: Vec<ReplayFrame>,
    /// The rounds that the master began.
    pub rounds: u32,
}

/// When a replay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Rounds that are completed.
    pub rounds: u32,
    /// Whether [`Replay::steps`] is wanted.
    pub keeps_steps: bool,
}

/// A word as it was written once, wherever it is copied to: which of [`Player::words`].
type WordId = usize;

/// The word of buffers that are not written.
const ZERO: WordId = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Runs,
    /// In `sync slave`, until then; the first one waits for ever.
    Waits {
        until: Option<Attoseconds>,
    },
    Stopped,
}

#[derive(Clone, Debug, Default)]
struct ReceiveBuffer {
    pending: bool,
    words: Vec<WordId>,
    /// Frames that become visible then.
    due: Vec<(Attoseconds, Vec<WordId>)>,
}

#[derive(Clone, Debug)]
struct Machine {
    activity: Activity,
    at: usize,
    now: Attoseconds,
    cycle: Attoseconds,
    round: u32,
    is_synchronised: bool,
    began: Attoseconds,
    countdown: Option<(Attoseconds, usize)>,
    data_end: Attoseconds,
    gap_end: Attoseconds,
    created: Option<Vec<WordId>>,
    buffers: Vec<(bool, Vec<WordId>)>,
    receive: Vec<ReceiveBuffer>,
    /// Rounds that begin: the EtherType's last octet, and which round.
    syncs: Vec<(Attoseconds, u32)>,
    counters: [u32; 16],
    overrun: bool,
    timeout: bool,
    received: bool,
}

/// The replay, as it proceeds.
struct Player<'a, W> {
    network: &'a NetworkModel,
    codes: Vec<Vec<Option<Instruction>>>,
    world: &'a mut W,
    machines: Vec<Machine>,
    replay: Replay,
    limits: ReplayLimits,
    master: Option<usize>,
    /// The frames at each resource: indices.
    latest: Vec<Vec<usize>>,
    /// The values that each word may still have: guards decide what is open.
    words: Vec<Ranges>,
}

/// Executes all stations until so many rounds are complete.
///
/// Stations start together; the master's first round begins when all others wait for it.
///
/// # Panics
/// If the model has [errors](NetworkModel::errors).
pub fn replay<W: ReplayWorld>(
    network: &NetworkModel,
    world: &mut W,
    limits: ReplayLimits,
) -> Replay {
    assert!(network.errors().is_empty(), "the model is consistent");
    let codes = network.stations.iter().map(|station| {
        station.program.words.iter().map(|word| Instruction::decode(*word).ok()).collect()
    });
    let machine = |(index, station): (usize, &super::network::StationModel)| Machine {
        activity: Activity::Runs,
        at: 0,
        now: Attoseconds(0),
        cycle: Attoseconds::cycles(1, world.drift_ppb(index, 0)),
        round: 0,
        is_synchronised: false,
        began: Attoseconds(0),
        countdown: None,
        data_end: Attoseconds(0),
        gap_end: Attoseconds(0),
        created: None,
        buffers: station
            .program
            .buffers
            .iter()
            .map(|buffer| (false, vec![ZERO; usize::from(buffer.words)]))
            .collect(),
        receive: vec![ReceiveBuffer::default(); 256],
        syncs: Vec::new(),
        counters: [0; 16],
        overrun: false,
        timeout: false,
        received: false,
    };
    let codes = codes.collect();
    let machines = network.stations.iter().enumerate().map(machine).collect();
    let latest = vec![Vec::new(); network.resources.len()];
    let replay = Replay::default();
    let words = vec![vec![(0, 0)]];
    let mut player =
        Player { network, codes, world, machines, replay, limits, master: None, latest, words };
    player.play();
    player.replay
}

impl Machine {
    fn cycles(&self, count: Cycles) -> Attoseconds {
        Attoseconds(self.cycle.0 * i128::from(count.0))
    }
}

impl<W: ReplayWorld> Player<'_, W> {
    fn play(&mut self) {
        for station in 0..self.machines.len() {
            self.start(station);
        }
        let latest = self.machines.iter().map(|machine| machine.now).max().unwrap_or_default();
        for machine in &mut self.machines {
            if machine.activity == Activity::Runs {
                let shift = latest - machine.now;
                machine.now += shift;
                machine.countdown = machine.countdown.map(|(end, label)| (end + shift, label));
                machine.gap_end += shift;
                machine.data_end += shift;
            }
        }
        for _ in 0..REPLAY_STEPS_MAX {
            let next = (0..self.machines.len()).filter_map(|it| Some((self.next(it)?, it))).min();
            let Some((_, station)) = next else { break };
            if self.replay.rounds > self.limits.rounds {
                break;
            }
            self.advance(station);
        }
    }

    /// To the first `sync`.
    fn start(&mut self, station: usize) {
        for _ in 0..REPLAY_STEPS_MAX / 16 {
            let machine = &self.machines[station];
            let sync = self.codes[station].get(machine.at);
            match sync {
                Some(Some(Instruction::SyncMaster)) => return,
                _ if machine.activity != Activity::Runs => return,
                _ => self.execute(station),
            }
        }
        self.machines[station].activity = Activity::Stopped;
    }

    /// When something happens at a station next.
    fn next(&self, station: usize) -> Option<Attoseconds> {
        let machine = &self.machines[station];
        match machine.activity {
            Activity::Runs => Some(machine.now),
            Activity::Stopped => None,
            Activity::Waits { until } => {
                let sync = machine.syncs.first().map(|(at, _)| *at);
                match (sync, until) {
                    (Some(sync), Some(until)) => Some(sync.min(until)),
                    (sync, until) => sync.or(until),
                }
            }
        }
    }

    fn advance(&mut self, station: usize) {
        if self.machines[station].activity == Activity::Runs {
            self.discard(station);
            return self.execute(station);
        }
        let Activity::Waits { until } = self.machines[station].activity else { return };
        let machine = &mut self.machines[station];
        let phase = Attoseconds::ns(self.world.phase_ns(station, machine.round));
        machine.activity = Activity::Runs;
        match machine.syncs.first().copied() {
            Some((at, round)) if until.is_none_or(|until| at + phase <= until) => {
                machine.syncs.remove(0);
                machine.round = round;
                machine.is_synchronised = true;
                machine.cycle = Attoseconds::cycles(1, self.world.drift_ppb(station, round));
                machine.timeout = false;
                machine.now = at + phase + machine.cycles(SYNC_RESUME);
            }
            _ => {
                machine.timeout = true;
                machine.is_synchronised = false;
                machine.now = until.unwrap_or(machine.now);
                let round = machine.round;
                self.replay.incidents.push(ReplayIncident::TimedOut { station, round });
            }
        }
        let machine = &mut self.machines[station];
        machine.began = machine.now;
    }

    /// Drops rounds that began while the station did something else.
    fn discard(&mut self, station: usize) {
        let machine = &mut self.machines[station];
        while let Some(&(at, round)) = machine.syncs.first() {
            if at >= machine.now {
                break;
            }
            machine.syncs.remove(0);
            self.replay.incidents.push(ReplayIncident::Missed { station, round });
        }
    }

    /// Puts a frame on all resources that it reaches.
    fn transmit(
        &mut self,
        station: usize,
        message: Option<(MessageId, Vec<WordId>)>,
        address: usize,
        begin: Attoseconds,
    ) {
        let program = &self.network.stations[station].program;
        let length = message.as_ref().map_or(1, |(_, words)| words.len() as u16);
        let octets = octets(program, length);
        let round = self.machines[station].round;
        for (index, reach) in self.network.reaches.iter().enumerate() {
            if reach.sender != station {
                continue;
            }
            let resource = &self.network.resources[reach.resource];
            let drift = self.world.resource_drift_ppb(reach.resource);
            let time = |octets| Attoseconds::of(octets, resource.octet_ns, drift);
            let mut at = begin + Attoseconds::ns(self.world.delay_ns(index, round));
            // Frames of one station take the same way and do not overtake.
            let frames = &self.replay.frames;
            for &before in self.latest[reach.resource].iter().rev().take(64) {
                if frames[before].station == station {
                    let latest = begin + Attoseconds::ns(reach.delay_max_ns);
                    at = at.max(frames[before].end.min(latest));
                    break;
                }
            }
            let last = at + time(octets);
            self.occupy(ReplayFrame {
                station,
                round,
                address,
                message: message.as_ref().map(|(message, _)| *message),
                resource: reach.resource,
                begin: at,
                end: last + time(gap_octets()),
            });
            let Some(receiver) = resource.receiver else { continue };
            let machine = &mut self.machines[receiver];
            if let Some((message, words)) = &message {
                let phase = Attoseconds::ns(self.world.phase_ns(receiver, machine.round));
                let visible = last + machine.cycles(RECEIVE_STORE) + phase;
                machine.receive[usize::from(message.0)].due.push((visible, words.clone()));
            } else if !self.world.loses(receiver, round) && Some(receiver) != self.master {
                machine.syncs.push((at + time(ethertype_octets(program)), round));
            }
        }
    }

    /// Notes a frame, and those of other stations that it meets.
    fn occupy(&mut self, frame: ReplayFrame) {
        let index = self.replay.frames.len();
        let resource = frame.resource;
        for &other in self.latest[resource].iter().rev().take(64) {
            let before = self.replay.frames[other];
            if before.station != frame.station
                && before.begin < frame.end
                && frame.begin < before.end
            {
                let incident = ReplayIncident::Overlap { resource, first: other, second: index };
                self.replay.incidents.push(incident);
            }
        }
        self.latest[resource].push(index);
        self.replay.frames.push(frame);
    }

    /// `sync master`: the frame leaves then.
    fn begin_round(&mut self, station: usize, issued: Attoseconds) {
        let address = self.machines[station].at;
        if self.master.is_some_and(|master| master != station) {
            let incident = ReplayIncident::SecondMaster { station, address };
            self.replay.incidents.push(incident);
        } else {
            self.replay.rounds += 1;
        }
        self.master = self.master.or(Some(station));
        let machine = &mut self.machines[station];
        machine.round = if machine.is_synchronised { machine.round + 1 } else { 0 };
        machine.is_synchronised = true;
        let begin = issued + machine.cycles(SEND_START);
        let medium = self.network.stations[station].program.medium;
        let busy = medium.frame_cycles(1) + medium.gap_cycles();
        machine.gap_end = begin + machine.cycles(busy);
        let round = machine.round;
        machine.cycle = Attoseconds::cycles(1, self.world.drift_ppb(station, round));
        machine.now = begin + machine.cycles(medium.ethertype_cycles() + SYNC_RESUME);
        machine.began = machine.now;
        machine.timeout = false;
        machine.at += 1;
        self.transmit(station, None, address, begin);
    }
}
