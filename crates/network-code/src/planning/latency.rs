//! Bounds: from a write to the end of the listener's `receive`.

use super::round::{Bus, BusFrame, CREATE_LEAD, CYCLE};
use super::slots::{BusSchedule, channel_id};
use super::timetable::{ActionKind, Timetable};
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
            let receive = receives(&timetables[*listener], channel);
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
fn receives(timetable: &Timetable, channel: usize) -> [i64; 2] {
    let actions = timetable.rounds.iter().flat_map(|round| &round.actions);
    let own = actions.filter(|action| action.kind == ActionKind::Receive(channel));
    let [mut least, mut most] = [i64::MAX, 0];
    for action in own {
        (least, most) = (least.min(action.at), most.max(action.at));
    }
    [least.min(most), most]
}

/// A write that comes just behind `create` waits for the next one. From then on all is counted from
/// the beginning of that round.
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
    let takes = 2 + i64::from(words);
    let [early, late] = [receive[0] + takes, receive[1] + takes].map(|at| at * CYCLE);
    let created = create * CYCLE;
    let (from, to) = (&bus.references[sender], &bus.references[listener]);
    let most =
        to.resume[1] + late + tree.error(late) - (from.resume[0] + created) + tree.error(created);
    let least =
        to.resume[0] + early - tree.error(early) - (from.resume[1] + created + tree.error(created));
    // What nothing shortens, whatever is known of the round.
    let [delay_min, delay] = tree.delay_to(sender, listener, [words; 2]);
    let [frame_min, frame] = tree.frame(words);
    let blocked = tree.blocked_to(sender, listener);
    let sends = CREATE_LEAD * CYCLE;
    let received = (RECEIVE_STORE.0.cast_signed() + takes) * CYCLE;
    let around = sends + received;
    let shortest = delay_min + frame_min + around - tree.error(around);
    let period = schedule.round_ns() * i64::from(schedule.slots[channel].every);
    let name = |station: usize| &bus.system.node(tree.stations[station]).name;
    let on_links = delay - blocked + frame;
    let rest = most - sends - blocked - on_links - received;
    let terms = [
        (format!("wait for the slot of {}", name(sender)), period + tree.error(period)),
        (format!("create and send at {}", name(sender)), sends),
        ("best effort at ports".to_owned(), blocked),
        (format!("links and bridges to {}", name(listener)), on_links),
        (format!("receive at {}", name(listener)), received),
        ("clocks, and when the round begins".to_owned(), rest),
    ];
    let term = |(what, ns): (String, i64)| BoundTerm { what, span: Span::from_ns(ns) };
    let terms = terms.into_iter().filter(|(_, ns)| *ns != 0).map(term).collect();
    let bound = Bound { terms, best: Span::from_ns(least.max(shortest).max(0)) };
    by_clocks(bus.system, [tree.stations[sender], tree.stations[listener]], bound)
}
