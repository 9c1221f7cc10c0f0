//! Bounds: from a write to the end of the listener's `receive`.

use super::round::{Bus, BusFrame, CREATE_LEAD, CYCLE};
use super::slots::{BusSchedule, channel_id};
use super::timetable::{ActionKind, RECEIVE, Timetable};
use super::{BusReceipt, BusSlot};
use onbeat_bounds::by_clocks;
use onbeat_model::plan::{Bound, BoundTerm};
use onbeat_model::time::Span;
use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::timing::{Cycles, RECEIVE_STORE};

/// The slots of all channels, with their bounds.
pub(super) fn slots(
    bus: &Bus<'_>,
    schedule: &BusSchedule,
    timetables: &[Timetable],
) -> Vec<BusSlot> {
    let cycles = |cycles: i64| Cycles(cycles.max(0).cast_unsigned());
    let slot = |(channel, slot): (usize, &super::slots::PlacedSlot)| {
        let sender = bus.senders[channel];
        let create = bus.offset(sender, slot.start) - CREATE_LEAD;
        let receipts = bus.listeners[channel].iter().map(|listener| {
            let receive = receives(bus, &timetables[*listener], channel);
            let bound = bound(bus, schedule, channel, *listener, create, receive);
            BusReceipt { listener: *listener, receive: receive.map(cycles), bound }
        });
        BusSlot {
            channel: channel_id(channel),
            message: message(channel),
            words: bus.frames[channel].words,
            sender,
            every: slot.every,
            first_round: slot.first_round,
            start: cycles(slot.start),
            end: cycles(slot.end),
            create: cycles(create),
            shared: bus.shared_by(channel),
            receipts: receipts.collect(),
        }
    };
    schedule.slots.iter().enumerate().map(slot).collect()
}

/// The message of a channel.
pub(super) fn message(channel: usize) -> MessageId {
    // There are no more channels than identifiers but the first.
    MessageId(u8::try_from(channel + 1).unwrap_or(u8::MAX))
}

/// When a station receives a channel: in the round where that is earliest, and where it is latest.
fn receives(bus: &Bus<'_>, timetable: &Timetable, channel: usize) -> [i64; 2] {
    let actions = timetable.rounds.iter().flat_map(|round| &round.actions);
    let own = actions.filter(|action| match action.kind {
        ActionKind::Receive(of) => of == channel,
        ActionKind::Alternatives { shared, .. } => bus.shared[shared].mode == channel,
        ActionKind::HyperRound | ActionKind::Send(_) | ActionKind::Discard(_) => false,
    });
    let [mut least, mut most] = [i64::MAX, 0];
    for action in own {
        (least, most) = (least.min(action.at), most.max(action.at));
    }
    [least.min(most), most]
}

/// What a message waits for `create` at most, in ns: for a slot; and longer because it came early.
///
/// Slots are in each `every`-th round: *S* apart at most, by a clock that is slow. A talker keeps
/// the generic cell rate algorithm (ITU-T I.371): message *i* has a theoretical arrival time
/// *g(i)*, *I* behind that of the one before it or more, and comes at *g(i)* − *τ* at the earliest.
/// By a clock that is fast *I* is still not below *S*. A message that comes while the one before it
/// waits for its `create` is queued, and in the buffer right behind that.
///
/// Each message has left by the first slot at or behind its *g*: these slots are distinct, because
/// *g* are *S* apart or more, and by induction the message before it has left by the one before.
/// So `create` of message *i* − 1 is within *S* behind *g(i − 1)*. If message *i* comes behind
/// that, it waits *S* at most. Else it leaves within *S* behind that: 2 *S* behind *g(i)* − *I* at
/// most, which is *S* + *τ* − (*I* − *S*) behind its arrival. If *S* is at most *I* − *τ*, no
/// message waits for another one. As *τ* is below *I*, and *S* not above it, no third one comes
/// meanwhile.
pub(super) fn waits(bus: &Bus<'_>, channel: usize, every: u32, round: i64) -> [i64; 2] {
    let error = |ns: i64| bus.tree.error(ns);
    let between = round * i64::from(every);
    let slots = between + error(between);
    let channel = &bus.system.channels[channel];
    let [interval, tolerance] = [channel.interval, channel.tolerance()].map(Span::as_ns);
    let early = tolerance + error(tolerance) - (interval - error(interval) - slots);
    [slots, early.max(0)]
}

/// From the earliest `create` to the end of the latest `receive`, in ns, both from the beginning
/// of a round by the stations' clocks: at most, and at least from the latest to the earliest one.
fn way(bus: &Bus<'_>, stations: [usize; 2], created: i64, received: [i64; 2]) -> [i64; 2] {
    let tree = &bus.tree;
    let [from, to] = stations.map(|station| bus.references[station].resume);
    let [early, late] = received;
    let most = to[1] + late + tree.error(late) - (from[0] + created) + tree.error(created);
    let least = to[0] + early - tree.error(early) - (from[1] + created + tree.error(created));
    [least, most]
}

/// The end of `receive`, in ns.
fn end(bus: &Bus<'_>, channel: usize, receive: i64) -> i64 {
    (receive + RECEIVE + i64::from(bus.words(BusFrame::Channel(channel)))) * CYCLE
}

/// What a message takes from `create` on, in any schedule of such rounds: to the listener to which
/// it takes longest at most. A slot at the beginning of a round is what clocks say most of.
pub(super) fn shortest(bus: &Bus<'_>, channel: usize, round: i64) -> i64 {
    let sender = bus.senders[channel];
    let created = (bus.offset(sender, 0) - CREATE_LEAD) * CYCLE;
    let most = bus.listeners[channel].iter().map(|listener| {
        let receive = bus.received(BusFrame::Channel(channel), *listener, 0, round);
        let [_, most] = way(bus, [sender, *listener], created, [end(bus, channel, receive); 2]);
        most
    });
    most.max().unwrap_or(0) + bus.tree.slot_error
}

/// A write that comes just behind `create` waits for the next one, or longer. From then on all is
/// counted from the beginning of that round.
fn bound(
    bus: &Bus<'_>,
    schedule: &BusSchedule,
    channel: usize,
    listener: usize,
    create: i64,
    receive: [i64; 2],
) -> Bound {
    let (tree, sender) = (&bus.tree, bus.senders[channel]);
    let words = bus.words(BusFrame::Channel(channel));
    let received = receive.map(|receive| end(bus, channel, receive));
    let [least, most] = way(bus, [sender, listener], create * CYCLE, received);
    // What nothing shortens, whatever is known of the round.
    let [delay_min, delay] = tree.delay_to(sender, listener, [words; 2]);
    let [frame_min, frame] = tree.at_station(tree.frame(words));
    let blocked = tree.blocked_to(sender, listener);
    let sends = CREATE_LEAD * CYCLE;
    let received = RECEIVE_STORE.0.cast_signed() * CYCLE + end(bus, channel, 0);
    let around = sends + received;
    let shortest = delay_min + frame_min + around - tree.error(around);
    let [slot, early] = waits(bus, channel, schedule.slots[channel].every, schedule.round_ns());
    let name = |station: usize| &bus.system.node(tree.stations[station]).name;
    let on_links = delay - tree.slot_error - blocked + frame;
    let rest = most - sends - tree.slot_error - blocked - on_links - received;
    let terms = [
        (format!("wait for the slot of {}", name(sender)), slot),
        ("messages that come early".to_owned(), early),
        (format!("create and send at {}", name(sender)), sends),
        (format!("slot error of {}", name(sender)), tree.slot_error),
        ("best effort at ports".to_owned(), blocked),
        (format!("links and bridges to {}", name(listener)), on_links),
        (format!("receive at {}", name(listener)), received),
        (format!("late wake-up of {}", name(listener)), tree.slot_error),
        ("clocks, and when the round begins".to_owned(), rest),
    ];
    let term = |(what, ns): (String, i64)| BoundTerm { what, span: Span::from_ns(ns) };
    let terms = terms.into_iter().filter(|(_, ns)| *ns != 0).map(term).collect();
    let bound = Bound { terms, best: Span::from_ns(least.max(shortest).max(0)) };
    by_clocks(bus.system, [tree.stations[sender], tree.stations[listener]], bound)
}
