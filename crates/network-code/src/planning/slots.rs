//! Where slots are: found by the search for gate schedules. A frame of a station does not wait in
//! bridges, and where it is flooded is a tree of windows, each for a frame that may be early or
//! late.

use super::round::{Bus, BusFrame, BusWindow, CREATE_LEAD, CYCLE};
use super::rounds::BaseRound;
use super::shared::{self, Taken};
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

/// What is placed as one: a channel, or a slot that several share. Slots are so many cycles behind
/// the first window.
struct Placeable {
    channels: Vec<(usize, i64)>,
    windows: Vec<BusWindow>,
    every: u32,
}

/// Where the slots of modes begin: behind the beginning of a round, one behind the other.
fn modes(bus: &Bus<'_>, beginning: &Beginning, round: i64) -> (Vec<(usize, i64)>, Taken) {
    let mut taken = Taken::new();
    shared::add(&mut taken, 0, &beginning.windows);
    let mut modes = Vec::new();
    for slot in &bus.shared {
        let windows = bus.windows(BusFrame::Channel(slot.mode), round);
        let after = |window: &BusWindow| {
            taken.get(&window.link).map_or(0, |(_, until)| until - window.offset)
        };
        let after = windows.iter().map(after).max().unwrap_or(0);
        let mut start = after.max(beginning.ready[bus.senders[slot.mode]]);
        for (channel, _) in &slot.channels {
            let station = bus.senders[*channel];
            let discards = timetable::discards(bus, station, beginning.hyper_round, round);
            let last = discards.last().map_or(0, |last| last.at);
            let behind = bus.behind(BusFrame::Channel(slot.mode), station, last, round);
            start = start.max(behind);
        }
        shared::add(&mut taken, start, &windows);
        modes.push((slot.mode, start));
    }
    (modes, taken)
}

/// All that is placed behind the beginning of rounds, which is first and has the modes in it; and
/// how many links these have, with those that there are not.
fn placeable(
    bus: &Bus<'_>,
    base: &BaseRound,
    beginning: &Beginning,
    ending: i64,
) -> (Vec<Placeable>, usize) {
    let (modes, mut taken) = modes(bus, beginning, base.round);
    let mut links = bus.tree.ports.len() + 1;
    let mut first = around(bus, beginning, ending);
    let mut placed = Vec::new();
    let mut marks = Vec::new();
    for (slot, (_, mode)) in bus.shared.iter().zip(&modes) {
        let place = slot.place(bus, *mode, beginning.hyper_round, base.round);
        // What has no room beside the beginning of rounds is not before it has come.
        let occupies = (ending + place.earliest - place.lead).max(1);
        let mark = BusWindow { link: links, before: None, offset: 0, occupies: 1 };
        marks.push(BusWindow { before: Some(0), occupies, ..mark });
        links += 1;
        let windows = shared::spread(mark, &place.taken, &mut links);
        let later =
            |(channel, _): &(usize, u32)| (*channel, place.lead + slot.later(bus, *channel));
        let channels = slot.channels.iter().map(later).collect();
        placed.push(Placeable { channels, windows, every: 1 });
    }
    if !bus.shared.is_empty() {
        for (link, (from, to)) in first[1..].iter().map(|it| (it.link, (it.offset, it.occupies))) {
            let to = from + to - ending;
            let from = from - ending;
            let known = taken.entry(link).or_insert((from, to));
            *known = (known.0.min(from), known.1.max(to));
        }
        taken.values_mut().for_each(|(from, to)| (*from, *to) = (*from + ending, *to + ending));
        first = shared::spread(first[0], &taken, &mut links);
        first.extend(marks);
    }
    let modes = modes.iter().map(|(mode, start)| (*mode, ending + start)).collect();
    placed.insert(0, Placeable { channels: modes, windows: first, every: 1 });
    for (channel, every) in base.every.iter().enumerate() {
        if bus.shared_by(channel).or(bus.mode_of(channel)).is_none() {
            let windows = bus.windows(BusFrame::Channel(channel), base.round);
            placed.push(Placeable { channels: vec![(channel, 0)], windows, every: *every });
        }
    }
    (placed, links)
}

/// Finds a place for each channel.
pub(super) fn schedule(
    bus: &Bus<'_>,
    base: &BaseRound,
    ending: i64,
) -> Result<BusSchedule, Vec<Diagnostic>> {
    let beginning = beginning(bus, base.round, base.rounds > 1);
    let (all, links) = placeable(bus, base, &beginning, ending);
    let of = |it: &Placeable| flow(&it.windows, base.round * i64::from(it.every));
    let flows: Vec<PeriodicFlow> = all.iter().map(of).collect();
    let names: Vec<usize> =
        all.iter().map(|it| it.channels.first().map_or(0, |(first, _)| *first)).collect();
    let load_ppm = load(bus, &flows, links, &names)?;
    let egress = Egress {
        latency: [Span::ZERO; 2],
        clock_error: Span::ZERO,
        tick: Span::from_ns(CYCLE),
        queues: 1,
        entries_max: usize::MAX,
    };
    let network = Network { ports: vec![egress; links] };
    let placed = synthesis::synthesize(&network, &flows, Waiting::None)
        .map_err(|refusal| vec![no_place(bus, &refusal, &names)])?;
    let round = base.round / CYCLE;
    let origin = placed[0].starts[0].as_ns() / CYCLE + ending;
    let mut slots =
        vec![PlacedSlot { every: 1, first_round: 0, start: 0, end: 0 }; bus.frames.len()];
    for (it, placed) in all.iter().zip(&placed) {
        for (channel, later) in &it.channels {
            let start = placed.starts[0].as_ns() / CYCLE + later - origin;
            let start = start.rem_euclid(round * i64::from(it.every));
            let first_round = u32::try_from(start / round).unwrap_or(0);
            let windows = bus.windows(BusFrame::Channel(*channel), base.round);
            let ends = windows.iter().map(|window| window.offset + window.occupies);
            let start = start % round;
            let end = start + ends.max().unwrap_or(0);
            slots[*channel] = PlacedSlot { every: it.every, first_round, start, end };
        }
    }
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
fn load(
    bus: &Bus<'_>,
    flows: &[PeriodicFlow],
    links: usize,
    names: &[usize],
) -> Result<u32, Vec<Diagnostic>> {
    let mut shares: Vec<Vec<(u64, usize)>> = vec![Vec::new(); links];
    for (index, flow) in flows.iter().enumerate() {
        for hop in &flow.hops {
            let taken = i128::from(hop.occupies.as_ns()) * MILLION;
            let period = i128::from(flow.period.as_ns());
            shares[hop.port].push((((taken + period - 1) / period) as u64, index));
        }
    }
    // Further ones are no links.
    shares.truncate(bus.tree.ports.len());
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
        let name = &bus.system.channels[names[*flow]].name;
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

/// `names` are channels of what is placed; the first is the beginning of rounds.
fn no_place(bus: &Bus<'_>, refusal: &Refusal, names: &[usize]) -> Diagnostic {
    let name = |flow: usize| match flow {
        0 => "the beginning of rounds".to_owned(),
        _ => format!("`{}`", bus.system.channels[names[flow]].name),
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
    let origin = (refusal.flow > 0).then(|| &bus.system.channels[names[refusal.flow]]);
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
