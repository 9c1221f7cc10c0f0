//! From a description to programs: every channel has a slot of its own in a round that all stations
//! share, and a bound.
//!
//! ```text
//! System ──carried──→ tree of links ──slots──→ round ──timetable──→ programs, latencies
//! ```
//!
//! What a station sends is flooded, and two frames must meet at no link, whatever clocks, bridges
//! and best effort do. `docs/network-code.md` says how ("From a description").
//!
//! Times are in nanoseconds of true time since the first octet of the frame that begins
//! the round leaves the master. What may be earlier is rounded down, what may be later is rounded
//! up.

mod carried;
mod choice;
mod gaps;
mod latency;
mod repetition;
mod round;
mod rounds;
mod shared;
mod slots;
mod timetable;
mod tree;
mod writing;

pub use choice::SCHEDULES_MAX;
pub use round::FrameDelays;
pub use slots::{ROUND_LENGTH_MAX, ROUNDS_MAX, SENDINGS_MAX};
pub use tree::{BusLink, BusPath};
pub use writing::PLANNED;

use choice::BusChoice;
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::plan::{Bound, Plan, Slot};
use onbeat_model::system::{ChannelId, NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};
use onbeat_runtime::network_code::instruction::{BufferId, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles, Medium};
use round::Bus;

/// How far clocks of interfaces may be from nominal, in parts of 10⁹ (IEEE 802.3: ±100 ppm).
pub const DRIFT_PPB: u32 = 100_000;

/// What a planner of programs knows beside the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusOptions {
    /// The host that begins rounds; none: the one from which the worst delay is least.
    pub master: Option<NodeId>,
    /// How far clocks are from nominal at most, in parts of 10⁹. Those of the description count if
    /// they are further.
    pub drift_ppb: u32,
    /// The longest frame of best effort that may be on any link, with header and check sequence,
    /// beside what the description has.
    pub best_effort: Octets,
    /// By how much stations may hand over frames, and take what has come, later than their programs
    /// say: as software on a host does. None: that of the description's run.
    pub slot_error: Option<Span>,
}

impl Default for BusOptions {
    /// What [`NetworkAssumptions`](crate::topology::NetworkAssumptions) are by default: clocks as
    /// far off as those of Ethernet may be, and best effort that no description knows.
    fn default() -> Self {
        Self {
            master: None,
            drift_ppb: DRIFT_PPB,
            best_effort: frame::MAX_TAGGED,
            slot_error: None,
        }
    }
}

/// Programs for the stations of a system, and what they guarantee.
#[derive(Clone, Debug)]
pub struct BusPlan {
    /// What frames are sent over.
    pub medium: Medium,
    /// How far each clock may be from nominal, in parts of 10⁹.
    pub drift_ppb: u32,
    /// By how much each station may be late.
    pub slot_error: Span,
    /// How delays of frames are counted: by their own lengths only where there is no room else.
    pub delays: FrameDelays,
    /// The station that begins rounds: an index.
    pub master: usize,
    /// Every host with an endpoint, and the master.
    pub stations: Vec<BusStation>,
    /// From one beginning of a round to the next.
    pub round: Cycles,
    /// Rounds until all repeats.
    pub rounds: u32,
    /// From the beginning of a round to where the first slot of any station may begin.
    pub beginning: Cycles,
    /// At the end of each round, without slots: there stations receive what came last.
    pub ending: Cycles,
    /// One per channel, in their order.
    pub slots: Vec<BusSlot>,
    /// How much of the time of the busiest link belongs to slots, and to beginnings and ends of
    /// rounds, in parts of 10⁶.
    pub load_ppm: u32,
    /// Every link that frames are flooded over, in each direction.
    pub links: Vec<BusLink>,
    /// Who reaches which link, and when.
    pub paths: Vec<BusPath>,
    /// What the user should know: best effort without room (OB6072).
    pub warnings: Vec<Diagnostic>,
}

/// A station of such a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusStation {
    /// The host.
    pub node: NodeId,
    /// Its program.
    pub program: StationProgram,
    /// The text that it is assembled from.
    pub text: String,
    /// Which buffer belongs to which channel.
    pub buffers: Vec<(ChannelId, BufferId)>,
}

/// The slot of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusSlot {
    /// The channel.
    pub channel: ChannelId,
    /// The message that carries it.
    pub message: MessageId,
    /// Its length.
    pub words: u16,
    /// The station that sends it: an index.
    pub sender: usize,
    /// The slot is in each `every`-th round.
    pub every: u32,
    /// The first round that has it, below `every`.
    pub first_round: u32,
    /// Where the slot begins, from the beginning of its round.
    pub start: Cycles,
    /// Where the last link is free of its frame.
    pub end: Cycles,
    /// When `create` is issued: by the sender's clock, from its reference point. That of a slave is
    /// the issue of the instruction behind `sync slave`, that of the master the first octet of its
    /// frame.
    pub create: Cycles,
    /// Which [`System::alternatives`] share it: an index.
    pub shared: Option<usize>,
    /// One per listener, in the order of the channel.
    pub receipts: Vec<BusReceipt>,
}

/// That a listener receives a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusReceipt {
    /// The station: an index.
    pub listener: usize,
    /// When `receive` is issued, by the listener's clock and from its reference point: in the round
    /// where that is earliest, and where it is latest.
    pub receive: [Cycles; 2],
    /// From a write to the end of `receive`.
    pub bound: Bound,
}

impl BusPlan {
    /// The worst bound of a channel over its listeners.
    pub fn bound(&self, channel: ChannelId) -> Option<&BusReceipt> {
        let receipts = &self.slots.get(channel.index())?.receipts;
        receipts.iter().max_by_key(|receipt| receipt.bound.total())
    }
}

/// Plans a slot for each channel of a system, and writes the programs.
///
/// # Errors
/// Everything that prevents it, at once: what is not carried or known (OB6060 to OB6066), a master
/// that cannot be one (OB6067), rounds without room (OB6068 to OB6070), programs that are too long
/// (OB6071).
pub fn plan_bus(system: &System, options: &BusOptions) -> Result<BusPlan, Vec<Diagnostic>> {
    let frames = carried::frames(system)?;
    let tree = tree::BroadcastTree::new(system, &frames, options)?;
    let bus = |delays| Bus::new(system, tree.clone(), frames.clone(), delays);
    let mut bus_of = bus(FrameDelays::OfSender);
    let mut chosen = choice::choose(&bus_of);
    let lacks_room = |error: &Diagnostic| error.code != codes::PROGRAM;
    if chosen.as_ref().is_err_and(|errors| errors.iter().all(lacks_room)) {
        bus_of = bus(FrameDelays::OfFrame);
        chosen = choice::choose(&bus_of);
    }
    let slot_error = Span::from_ns(bus_of.tree.slot_error);
    let chosen = chosen.map_err(|mut errors| {
        let lacking =
            errors.iter_mut().filter(|error| lacks_room(error) && slot_error > Span::ZERO);
        lacking.for_each(|error| {
            error.help += &format!("; or count with less `slot_error_us`: it is {slot_error}");
        });
        errors
    });
    let (bus, BusChoice { schedule, slots, stations, .. }) = (bus_of, chosen?);
    let warnings = gaps::warnings(&bus, &schedule);
    Ok(BusPlan {
        warnings,
        medium: bus.tree.medium,
        drift_ppb: bus.tree.drift_ppb,
        slot_error,
        delays: bus.delays,
        master: bus.tree.master,
        stations,
        round: Cycles(schedule.round.cast_unsigned()),
        rounds: schedule.rounds,
        beginning: Cycles(schedule.beginning.cast_unsigned()),
        ending: Cycles(schedule.ending.cast_unsigned()),
        slots,
        load_ppm: schedule.load_ppm,
        links: bus.tree.links(system),
        paths: bus.paths(),
    })
}

/// The same, with what it says of the channels as a [`Plan`]: their slots and bounds, and those of
/// chains over them.
///
/// # Errors
/// Those of [`plan_bus`], and what no plan of the system may have.
pub fn plan_channels(
    system: &System,
    options: &BusOptions,
) -> Result<(Plan, BusPlan), Vec<Diagnostic>> {
    let bus = plan_bus(system, options)?;
    let ns = |cycles: Cycles| Span::from_ns(cycles.0.cast_signed() * i64::from(CYCLE_NS));
    let slot = |slot: &BusSlot| {
        let bounds = slot.receipts.iter().map(|receipt| receipt.bound.clone());
        let planned = Slot {
            message: slot.message.0,
            words: slot.words,
            round: ns(bus.round),
            every: slot.every,
            first_round: slot.first_round,
            start: ns(slot.start),
            end: ns(slot.end),
        };
        (planned, bounds.collect())
    };
    let plan = onbeat_bounds::plan_with_slots(system, bus.slots.iter().map(slot).collect())?;
    Ok((plan, bus))
}

/// That something of the whole system is in the way.
fn refused(code: onbeat_model::diagnostic::Code, message: String, help: &str) -> Diagnostic {
    Diagnostic { at: None, ..Diagnostic::error(code, message, Origin::default(), "") }.help(help)
}
