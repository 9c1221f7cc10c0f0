//! Where slots are: found by the search for gate schedules. A frame of a station does not wait in
//! bridges, and where it is flooded is a tree of windows, each for a frame that may be early or
//! late.

use super::round::{Bus, BusFrame, BusWindow, CREATE_LEAD, CYCLE};
use super::rounds::BaseRound;
use super::timetable;
use super::{codes, refused};
use onbeat_bounds::synthesis::{
    self, Egress, FlowHop, Network, Obstacle, PeriodicFlow, Refusal, Waiting,
};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::ChannelId;
use onbeat_model::time::Span;

/// The longest round: what clocks drift apart until its end is room that each slot needs.
pub const ROUND_LENGTH_MAX: Span = Span::from_ms(100);
/// Rounds until all repeats, at most.
pub const ROUNDS_MAX: u32 = 1 << 16;
/// Frames of all channels in these rounds, at most.
pub const SENDINGS_MAX: u64 = 1 << 20;

/// Channels that are named where there is no room.
const NAMED_MAX: usize = 5;
const MILLION: i128 = 1_000_000;

/// A slot in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedSlot {
    pub(super) every: u32,
    pub(super) first_round: u32,
    /// In cycles of the round.
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Slots of all channels. Times are in cycles of the round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BusSchedule {
    pub(super) round: i64,
    pub(super) rounds: u32,
    /// The first slot is not before.
    pub(super) beginning: i64,
    /// Before the end of the round, without slots.
    pub(super) ending: i64,
    /// Where the slot of the frame that begins a hyper-round begins, if there is one.
    pub(super) hyper_round: Option<i64>,
    /// By channel.
    pub(super) slots: Vec<PlacedSlot>,
    pub(super) load_ppm: u32,
}

impl BusSchedule {
    /// A round in ns.
    pub(super) fn round_ns(&self) -> i64 {
        self.round * CYCLE
    }
}

/// The shortest round that has room for a slot of each channel alone, in ns, if rounds were as long
/// as this one, and one of several or not; and the channel that needs it.
pub(super) fn needs(bus: &Bus<'_>, round: i64, has_more: bool) -> (i64, usize) {
    let length = |channel: usize| bus.longest(BusFrame::Channel(channel), round);
    let longest = (0..bus.frames.len()).max_by_key(|channel| length(*channel));
    let channel = longest.unwrap_or(0);
    let beginning = beginning(bus, round, has_more);
    let around = beginning.ready.iter().max().unwrap_or(&0) + bus.ending(round);
    ((around + length(channel)) * CYCLE, channel)
}

/// The beginning of rounds, in cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Where the slot of the frame that begins a hyper-round begins, if there is one.
    hyper_round: Option<i64>,
    /// When links belong to that frame and the one before it, which begins each round.
    windows: Vec<BusWindow>,
    /// By station, the first cycle in which a slot of it may begin.
    ready: Vec<i64>,
}

fn beginning(bus: &Bus<'_>, round: i64, has_more: bool) -> Beginning {
    let mut windows = bus.windows(BusFrame::Sync, round);
    let next = windows.iter().map(|window| window.occupies).max().unwrap_or(0);
    let hyper_round = has_more.then_some(next);
    if has_more {
        for (window, last) in windows.iter_mut().zip(bus.windows(BusFrame::HyperRound, round)) {
            window.occupies = next + last.occupies;
        }
    }
    let ready = |station: usize| {
        let ready = timetable::first(bus, station, hyper_round, round) + CREATE_LEAD;
        let ready = ready - bus.offset(station, 0);
        match station == bus.tree.master {
            true => ready.max(windows.first().map_or(0, |own| own.occupies)),
            false => ready,
        }
    };
    let ready = (0..bus.tree.stations.len()).map(ready).collect();
    Beginning { hyper_round, windows, ready }
}

/// What takes a link in each period: an index, windows of which each is behind another one, a
/// period in ns.
fn flow(windows: &[BusWindow], period: i64) -> PeriodicFlow {
    let offset = |at: Option<usize>| at.map_or(0, |at| windows[at].offset);
    let hop = |(index, window): (usize, &BusWindow)| {
        // All windows behind one have the same offset: they are ports of one bridge.
        let next = windows.iter().find(|next| next.before == Some(index));
        let sent = next.map_or(0, |next| next.offset - offset(Some(index)));
        FlowHop {
            port: window.link,
            after: window.before,
            sent: Span::from_ns(sent * CYCLE),
            occupies: Span::from_ns(window.occupies * CYCLE),
        }
    };
    let last = windows.iter().map(|window| window.offset).max().unwrap_or(0);
    PeriodicFlow {
        period: Span::from_ns(period),
        release: None,
        ready: [Span::ZERO; 2],
        deadline: Span::from_ns(2 * period + last * CYCLE),
        jitter: None,
        hops: windows.iter().enumerate().map(hop).collect(),
        joins: Vec::new(),
    }
}

/// The beginning of rounds, and the end before it, as what takes links: no station begins to send
/// before it is ready, or in the end of a round.
fn around(bus: &Bus<'_>, beginning: &Beginning, ending: i64) -> Vec<BusWindow> {
    // One link that there is not, for what comes first.
    let link = bus.tree.ports.len();
    let mut windows = vec![BusWindow { link, before: None, offset: 0, occupies: 1 }];
    let master = bus.tree.master;
    let mut add = |station: usize| {
        let link = bus.tree.arrivals[station][0].link;
        let occupies = ending + beginning.ready[station];
        windows.push(BusWindow { link, before: Some(0), offset: 0, occupies });
    };
    // The windows of the frame itself are behind the one of its sender.
    add(master);
    let sends = |station: &usize| *station != master && bus.senders.contains(station);
    (0..bus.tree.stations.len()).filter(sends).for_each(add);
    let others = windows.len() - 1;
    for window in &beginning.windows[1..] {
        let before = window.before.map(|before| if before == 0 { 1 } else { before + others });
        windows.push(BusWindow { before, offset: ending + window.offset, ..*window });
    }
    windows
}

/// Finds a place for each channel.
pub(super) fn schedule(
    bus: &Bus<'_>,
    base: &BaseRound,
    ending: i64,
) -> Result<BusSchedule, Vec<Diagnostic>> {
    let beginning = beginning(bus, base.round, base.rounds > 1);
    let mut flows = vec![flow(&around(bus, &beginning, ending), base.round)];
    for (channel, every) in base.every.iter().enumerate() {
        let windows = bus.windows(BusFrame::Channel(channel), base.round);
        flows.push(flow(&windows, base.round * i64::from(*every)));
    }
    let load_ppm = load(bus, &flows)?;
    let egress = Egress {
        latency: [Span::ZERO; 2],
        clock_error: Span::ZERO,
        tick: Span::from_ns(CYCLE),
        queues: 1,
        entries_max: usize::MAX,
    };
    let network = Network { ports: vec![egress; bus.tree.ports.len() + 1] };
    let placed = synthesis::synthesize(&network, &flows, Waiting::None)
        .map_err(|refusal| vec![no_place(bus, &refusal)])?;
    let round = base.round / CYCLE;
    let origin = placed[0].starts[0].as_ns() / CYCLE + ending;
    let slot = |(channel, every): (usize, &u32)| {
        let start = placed[channel + 1].starts[0].as_ns() / CYCLE - origin;
        let start = start.rem_euclid(round * i64::from(*every));
        let first_round = u32::try_from(start / round).unwrap_or(0);
        let windows = bus.windows(BusFrame::Channel(channel), base.round);
        let ends = windows.iter().map(|window| window.offset + window.occupies);
        let start = start % round;
        PlacedSlot { every: *every, first_round, start, end: start + ends.max().unwrap_or(0) }
    };
    let slots = base.every.iter().enumerate().map(slot).collect();
    Ok(BusSchedule {
        round,
        rounds: base.rounds,
        beginning: beginning.ready.iter().copied().min().unwrap_or(0),
        ending,
        hyper_round: beginning.hyper_round,
        slots,
        load_ppm,
    })
}

/// How much of the time of the busiest link is taken; or that it is too much, by which channels.
fn load(bus: &Bus<'_>, flows: &[PeriodicFlow]) -> Result<u32, Vec<Diagnostic>> {
    // The last one is no link.
    let mut shares: Vec<Vec<(u64, usize)>> = vec![Vec::new(); bus.tree.ports.len() + 1];
    for (index, flow) in flows.iter().enumerate() {
        for hop in &flow.hops {
            let taken = i128::from(hop.occupies.as_ns()) * MILLION;
            let period = i128::from(flow.period.as_ns());
            shares[hop.port].push((((taken + period - 1) / period) as u64, index));
        }
    }
    shares.pop();
    let sum = |shares: &Vec<(u64, usize)>| shares.iter().map(|(share, _)| share).sum::<u64>();
    let Some(link) = (0..shares.len()).max_by_key(|link| sum(&shares[*link])) else { return Ok(0) };
    let mut largest = shares.swap_remove(link);
    let all = sum(&largest);
    // Shares are rounded up, each by less than one part.
    let whole = MILLION as u64;
    if all <= whole + flows.len() as u64 {
        return Ok(all.min(whole) as u32);
    }
    let around: u64 = largest.iter().filter(|(_, flow)| *flow == 0).map(|(share, _)| share).sum();
    largest.retain(|(_, flow)| *flow > 0);
    largest.sort_by_key(|(share, flow)| (std::cmp::Reverse(*share), *flow));
    let named = largest.iter().take(NAMED_MAX).map(|(share, flow)| {
        let name = &bus.system.channels[flow - 1].name;
        format!("`{name}` {}", percent(*share))
    });
    let named: Vec<_> = named.collect();
    let more = match largest.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "slots take {} of the link from {}, {} too much: beginnings and ends of rounds {}, \
         {}{more}",
        percent(all),
        bus.system.port_label(bus.tree.ports[link]),
        percent(all - whole),
        percent(around),
        named.join(", "),
    );
    let help = "send less or less often, or use faster links, shorter paths, less best effort";
    Err(vec![refused(codes::LOAD, message, help)])
}

/// Parts of 10⁶ as per cent.
fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm / 1_000 % 10)
}

fn no_place(bus: &Bus<'_>, refusal: &Refusal) -> Diagnostic {
    let name = |flow: usize| match flow.checked_sub(1) {
        None => "the beginning of rounds".to_owned(),
        Some(channel) => format!("`{}`", bus.system.channels[channel].name),
    };
    let among = match &refusal.why {
        Obstacle::Pair { other, .. } => format!("beside {}", name(*other)),
        Obstacle::Occupied { flows, .. } => {
            let shown: Vec<_> = flows.iter().take(NAMED_MAX).map(|flow| name(*flow)).collect();
            format!("beside {}", shown.join(", "))
        }
        _ => "in its interval".to_owned(),
    };
    let certain = if refusal.is_proven { "has no room" } else { "found no room" };
    let message = format!("the slot of {} {certain} {among}", name(refusal.flow));
    let origin = refusal.flow.checked_sub(1).and_then(|at| bus.system.channels.get(at));
    let help = "use intervals that divide one another, or send less";
    match origin {
        Some(channel) => {
            Diagnostic::error(codes::PLACE, message, channel.origin, "has no slot").help(help)
        }
        None => refused(codes::PLACE, message, help),
    }
}

/// The channel of an index.
pub(super) fn channel_id(channel: usize) -> ChannelId {
    ChannelId(u32::try_from(channel).unwrap_or(u32::MAX))
}
