//! Participants alone and in pairs: timers, PDUs, limits.

use crate::mrp::participant::{ATTRIBUTES_MAX, MrpCounts};
use crate::mrp::pdu::{self, AttributeEvent, MrpItem};
use crate::mrp::{
    ApplicantState, Indication, Medium, MrpInput, MrpOutput, MrpParticipant, MrpSettings,
    MrpTimers, Propagation, PropagationInput, RegistrarMode, RegistrarState,
};
use crate::msrp::{ListenerDeclaration, Msrp, MsrpAttribute, MsrpKey};
use crate::mvrp::{Mvrp, Vid};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::StreamId;

type Participant = MrpParticipant<Mvrp>;

const MS: i64 = 1_000_000;
/// JoinTime and LeaveTime by default.
const JOIN: i64 = 200 * MS;
const LEAVE: i64 = 600 * MS;

fn at(ns: i64) -> NetTime {
    NetTime::from_ns(ns)
}

fn vid(vid: u16) -> Vid {
    Vid::new(vid).expect("a VLAN")
}

fn new(seed: u64) -> Participant {
    Participant::new(MrpSettings::default(), seed, at(0))
}

/// What a PDU says, LeaveAll as `None`.
fn said(pdu: &[u8]) -> Vec<Option<(AttributeEvent, u16)>> {
    let mut all = Vec::new();
    let read = pdu::read::<Mvrp>(pdu, &mut |item| {
        all.push(match item {
            MrpItem::LeaveAll(_) => None,
            MrpItem::Event(event, vid) => Some((event, vid.get())),
        });
    });
    assert_eq!(read, Ok(()));
    all
}

fn pdu(leaves_all: bool, events: &[(AttributeEvent, u16)]) -> Vec<u8> {
    let mut writer = pdu::PduWriter::<Mvrp>::new(1_500);
    if leaves_all {
        writer.leave_all();
    }
    for (event, number) in events {
        assert!(writer.push(*event, &vid(*number)));
    }
    writer.finish()
}

/// Lets a participant alone until an instant. When it sent what.
fn alone(participant: &mut Participant, until: i64) -> Vec<(i64, Vec<u8>)> {
    let mut sent = Vec::new();
    let mut now = 0;
    while participant.next() <= at(until) {
        now = now.max(participant.next().as_ns());
        let out = participant.handle(at(now), MrpInput::Timeout);
        sent.extend(out.pdus.into_iter().map(|pdu| (now, pdu)));
    }
    sent
}

/// Two participants on a link without delay. What each was told, and when.
struct Pair {
    sides: [Participant; 2],
    now: i64,
    told: Vec<(i64, usize, Indication<Vid>)>,
    sent: Vec<(i64, usize, Vec<u8>)>,
}

impl Pair {
    fn new() -> Self {
        Self { sides: [new(1), new(2)], now: 0, told: Vec::new(), sent: Vec::new() }
    }

    fn take(&mut self, side: usize, out: MrpOutput<Mvrp>) {
        self.told.extend(out.indications.into_iter().map(|told| (self.now, side, told)));
        for pdu in out.pdus {
            self.sent.push((self.now, side, pdu.clone()));
            let out = self.sides[1 - side].handle(at(self.now), MrpInput::Received(&pdu));
            self.take(1 - side, out);
        }
    }

    fn run(&mut self, until: i64) {
        loop {
            let due = [0, 1].map(|side| self.sides[side].next().as_ns());
            let side = usize::from(due[1] < due[0]);
            if due[side] > until {
                break;
            }
            self.now = self.now.max(due[side]);
            let out = self.sides[side].handle(at(self.now), MrpInput::Timeout);
            self.take(side, out);
        }
        self.now = until;
    }

    fn registered(&self, side: usize) -> Vec<u16> {
        self.sides[side].registered().map(|vid| vid.get()).collect()
    }
}

#[test]
fn what_is_new_is_said_twice_and_then_joined_until_it_is_quiet() {
    let mut participant = new(1);
    participant.declare(at(0), vid(5), true);
    participant.declare(at(0), vid(6), false);
    let sent = alone(&mut participant, 9_999 * MS);
    let texts: Vec<_> = sent.iter().map(|(at, pdu)| (*at, said(pdu))).collect();
    use AttributeEvent::{JoinMt, New};
    assert_eq!(
        texts,
        [
            (0, vec![Some((New, 5)), Some((JoinMt, 6))]),
            (JOIN, vec![Some((New, 5)), Some((JoinMt, 6))]),
            (2 * JOIN, vec![Some((JoinMt, 5))]),
        ]
    );
    assert_eq!(participant.states(vid(5)).0, ApplicantState::QuietActive);
}

#[test]
fn a_pair_is_quiet_until_a_leave_all_and_no_registration_flaps() {
    let mut pair = Pair::new();
    pair.sides[0].declare(at(0), vid(5), true);
    pair.sides[1].declare(at(0), vid(5), true);
    pair.sides[1].declare(at(0), vid(7), false);
    pair.run(2_000 * MS);
    assert_eq!((pair.registered(0), pair.registered(1)), (vec![5, 7], vec![5]));
    let quiet = pair.sent.len();
    pair.run(9_999 * MS);
    assert_eq!(pair.sent.len(), quiet);
    pair.run(120_000 * MS);
    // Registered as new, twice, and once more: nothing else happened in two minutes.
    let left = pair.told.iter().filter(|(.., told)| matches!(told, Indication::Left(_))).count();
    assert_eq!(left, 0);
    let of_7 = |(.., told): &&(i64, usize, Indication<Vid>)| match told {
        Indication::Registered { attribute, .. } => attribute.get() == 7,
        Indication::Left(_) => false,
    };
    assert_eq!(pair.told.iter().filter(of_7).count(), 1);
    // A LeaveAll from either starts the other's timer again.
    let all: Vec<_> = pair
        .sent
        .iter()
        .filter(|(.., pdu)| said(pdu).contains(&None))
        .map(|(at, ..)| *at)
        .collect();
    assert!((8..=12).contains(&all.len()), "{all:?}");
    assert!(all.windows(2).all(|w| (10_000..=15_000).contains(&((w[1] - w[0]) / MS))), "{all:?}");
}

#[test]
fn a_withdrawn_attribute_leaves_after_the_leave_time() {
    let mut pair = Pair::new();
    pair.sides[0].declare(at(0), vid(5), false);
    pair.run(1_000 * MS);
    pair.sides[0].withdraw(at(1_000 * MS), vid(5));
    pair.run(3_000 * MS);
    let last = pair.told.last().expect("told");
    assert_eq!(*last, (1_000 * MS + LEAVE, 1, Indication::Left(vid(5))));
    assert_eq!([0, 1].map(|side| pair.sides[side].attributes()), [0, 0], "nothing remains");
    // A declaration in between keeps it, without a word to the application.
    pair.sides[0].declare(at(3_000 * MS), vid(5), false);
    pair.run(4_000 * MS);
    pair.sides[0].withdraw(at(4_000 * MS), vid(5));
    pair.run(4_100 * MS);
    assert_eq!(pair.sides[1].states(vid(5)).1, RegistrarState::Lv);
    pair.sides[0].declare(at(4_100 * MS), vid(5), false);
    pair.run(6_000 * MS);
    assert_eq!(pair.told.len(), 3);
    assert_eq!(pair.sides[1].states(vid(5)).1, RegistrarState::In);
}

#[test]
fn what_is_left_without_a_word_ages_within_a_leave_all_and_the_leave_time() {
    let mut participant = new(3);
    let out =
        participant.handle(at(0), MrpInput::Received(&pdu(false, &[(AttributeEvent::New, 5)])));
    assert_eq!(out.indications, [Indication::Registered { attribute: vid(5), is_new: true }]);
    let left = loop {
        let now = participant.next().as_ns();
        assert!(now <= 16_000 * MS);
        let out = participant.handle(at(now), MrpInput::Timeout);
        if out.indications == [Indication::Left(vid(5))] {
            break now;
        }
    };
    assert!((10_000 * MS + LEAVE..=15_000 * MS + LEAVE).contains(&left), "{left}");
}

#[test]
fn a_profile_may_leave_at_once() {
    let settings = MrpSettings { leaves_at_once: true, ..MrpSettings::default() };
    let mut participant = Participant::new(settings, 1, at(0));
    let joined = pdu(false, &[(AttributeEvent::JoinIn, 5)]);
    participant.handle(at(0), MrpInput::Received(&joined));
    let left = pdu(false, &[(AttributeEvent::Lv, 5)]);
    let out = participant.handle(at(1), MrpInput::Received(&left));
    assert_eq!(out.indications, [Indication::Left(vid(5))]);
    // LeaveAll still gives the others LeaveTime.
    participant.handle(at(2), MrpInput::Received(&joined));
    let out = participant.handle(at(3), MrpInput::Received(&pdu(true, &[])));
    assert_eq!(out.indications, []);
    assert_eq!(participant.states(vid(5)).1, RegistrarState::Lv);
}

#[test]
fn a_leave_timer_that_expires_with_a_leave_is_not_lost() {
    let mut participant = new(1);
    participant.handle(at(0), MrpInput::Received(&pdu(false, &[(AttributeEvent::JoinIn, 5)])));
    let left = pdu(false, &[(AttributeEvent::Lv, 5)]);
    participant.handle(at(1), MrpInput::Received(&left));
    let out = participant.handle(at(1 + LEAVE), MrpInput::Received(&left));
    assert_eq!(out.indications, [Indication::Left(vid(5))]);
    let out = participant.handle(at(1 + 2 * LEAVE), MrpInput::Timeout);
    assert_eq!(out.indications, [], "no timer is left behind");
}

#[test]
fn a_leave_all_counts_before_what_the_same_pdu_declares_wherever_it_is() {
    let mut participant = new(1);
    participant.handle(at(0), MrpInput::Received(&pdu(false, &[(AttributeEvent::JoinIn, 5)])));
    // A vector that declares 5, then one with LeaveAll and no values, and that one again.
    let octets = [0, 1, 2, 0, 1, 0, 5, 36, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0];
    participant.handle(at(1), MrpInput::Received(&octets));
    assert_eq!(participant.states(vid(5)).1, RegistrarState::In);
}

#[test]
fn a_leave_all_of_one_type_leaves_the_others_and_our_own_timer_alone() {
    let mut participant = MrpParticipant::<Msrp>::new(MrpSettings::default(), 1, at(0));
    let stream = StreamId(7);
    let ready = MsrpAttribute::Listener(stream, ListenerDeclaration::Ready);
    let mut writer = pdu::PduWriter::<Msrp>::new(1_500);
    assert!(writer.push(AttributeEvent::JoinIn, &ready));
    participant.handle(at(0), MrpInput::Received(&writer.finish()));
    let due = participant.next();
    // LeaveAll of the type Domain: 2000 and a FirstValue of four octets.
    let octets = [0, 4, 4, 0, 8, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for _ in 0..3 {
        participant.handle(at(5), MrpInput::Received(&octets));
    }
    assert_eq!(participant.states(MsrpKey::Listener(stream)).1, RegistrarState::In);
    assert_eq!(participant.next(), due, "a neighbour cannot keep what it registers for ever");
    assert_eq!(participant.counts().discarded, 0);
}

#[test]
fn there_are_at_most_three_opportunities_in_one_and_a_half_join_times() {
    let mut participant = new(1);
    let mut sent = Vec::new();
    // Something new to say each millisecond, and a neighbour that leaves all each three.
    for now in 0..5_000 {
        participant.declare(at(now * MS), vid(1 + (now as u16) % 4_000), true);
        if now % 3 == 0 {
            participant.handle(at(now * MS), MrpInput::Received(&pdu(true, &[])));
        }
        let out = participant.handle(at(now * MS), MrpInput::Timeout);
        if !out.pdus.is_empty() {
            sent.push(now * MS);
        }
    }
    assert!(sent.len() > 40, "{}", sent.len());
    assert!(sent.windows(4).all(|w| w[3] - w[0] >= JOIN * 3 / 2), "{sent:?}");
}

#[test]
fn on_shared_media_each_waits_for_a_random_part_of_the_join_time() {
    let settings = MrpSettings { medium: Medium::Shared, ..MrpSettings::default() };
    let mut first = Vec::new();
    for seed in 0..50 {
        let mut participant = Participant::new(settings, seed, at(0));
        participant.declare(at(0), vid(5), false);
        first.push(participant.next().as_ns());
    }
    assert!(first.iter().all(|at| (0..JOIN).contains(at)), "{first:?}");
    let mean = first.iter().sum::<i64>() / 50;
    assert!((JOIN / 3..2 * JOIN / 3).contains(&mean), "{mean}");
    // Another's JoinIn makes us quiet before we said anything.
    let mut participant = Participant::new(settings, 1, at(0));
    participant.declare(at(0), vid(5), false);
    let joined = pdu(false, &[(AttributeEvent::JoinIn, 5)]);
    participant.handle(at(0), MrpInput::Received(&joined));
    participant.handle(at(0), MrpInput::Received(&joined));
    assert_eq!(participant.states(vid(5)).0, ApplicantState::QuietPassive);
}

/// 500 listeners that are not next to each other, so that each takes a vector.
fn crowd(participant: &mut MrpParticipant<Msrp>, count: u64) {
    for n in 0..count {
        let attribute = MsrpAttribute::Listener(StreamId(n * 2), ListenerDeclaration::Ready);
        participant.declare(at(0), attribute, false);
    }
}

#[test]
fn what_one_pdu_has_no_room_for_is_in_the_next() {
    let mut sender = MrpParticipant::<Msrp>::new(MrpSettings::default(), 1, at(0));
    let mut receiver = MrpParticipant::<Msrp>::new(MrpSettings::default(), 2, at(0));
    crowd(&mut sender, 500);
    let out = sender.handle(at(0), MrpInput::Timeout);
    // 12 octets each, 1,500 in a PDU.
    assert_eq!(out.pdus.len(), 5);
    assert!(out.pdus.iter().all(|pdu| pdu.len() <= 1_500));
    let told: usize = out
        .pdus
        .iter()
        .map(|pdu| receiver.handle(at(0), MrpInput::Received(pdu)).indications.len())
        .sum();
    assert_eq!(told, 500);
}

#[test]
fn an_attribute_that_is_not_sent_keeps_its_state_and_is_sent_next() {
    let settings = MrpSettings { pdus_max: 1, ..MrpSettings::default() };
    let mut sender = MrpParticipant::<Msrp>::new(settings, 1, at(0));
    crowd(&mut sender, 300);
    let waiting = |sender: &MrpParticipant<Msrp>| {
        let very_anxious = |n: &u64| {
            sender.states(MsrpKey::Listener(StreamId(n * 2))).0
                == ApplicantState::VeryAnxiousPassive
        };
        (0..300_u64).filter(very_anxious).count()
    };
    let mut left = vec![waiting(&sender)];
    for _ in 0..3 {
        let now = sender.next().max(at(0));
        assert_eq!(sender.handle(now, MrpInput::Timeout).pdus.len(), 1);
        left.push(waiting(&sender));
    }
    assert_eq!(left[0], 300);
    assert!(left[1] > 170 && left[2] > 50 && left[3] == 0, "{left:?}");
    // With a LeaveAll, what has no room is declared again from the start.
    let mut now = at(0);
    let pdu = loop {
        now = now.max(sender.next());
        let out = sender.handle(now, MrpInput::Timeout);
        if let Some(pdu) = out.pdus.into_iter().find(|pdu| pdu[5] >> 5 == 1) {
            break pdu;
        }
    };
    assert!(pdu.len() > 1_400);
    assert_eq!(waiting(&sender), 300);
}

#[test]
fn tables_have_a_limit_and_refusals_are_counted() {
    let mut participant = MrpParticipant::<Msrp>::new(MrpSettings::default(), 1, at(0));
    for n in 0..ATTRIBUTES_MAX as u64 + 10 {
        let mut writer = pdu::PduWriter::<Msrp>::new(1_500);
        let attribute = MsrpAttribute::Listener(StreamId(n * 2), ListenerDeclaration::Ready);
        assert!(writer.push(AttributeEvent::JoinMt, &attribute));
        participant.handle(at(0), MrpInput::Received(&writer.finish()));
    }
    let counts = participant.counts();
    assert_eq!((participant.attributes(), counts.refused), (ATTRIBUTES_MAX, 10));
    let own = MsrpAttribute::Listener(StreamId(1), ListenerDeclaration::Ready);
    participant.declare(at(0), own, false);
    assert_eq!(participant.declared().count(), 1, "a neighbour keeps nothing from being declared");
}

#[test]
fn an_applicant_only_participant_registers_nothing_and_never_leaves_all() {
    let settings = MrpSettings { is_applicant_only: true, ..MrpSettings::default() };
    let mut participant = Participant::new(settings, 1, at(0));
    participant.declare(at(0), vid(5), false);
    let joined = pdu(true, &[(AttributeEvent::JoinIn, 5), (AttributeEvent::New, 6)]);
    let out = participant.handle(at(0), MrpInput::Received(&joined));
    assert_eq!((out.indications.len(), participant.attributes()), (0, 1));
    let sent = alone(&mut participant, 60_000 * MS);
    assert!(sent.iter().all(|(_, pdu)| said(pdu) == [Some((AttributeEvent::JoinMt, 5))]));
}

#[test]
fn management_fixes_and_forbids_registrations() {
    let mut participant = new(1);
    let out = participant.handle(at(0), MrpInput::Manage(vid(5), RegistrarMode::Fixed));
    assert_eq!(out.indications, [Indication::Registered { attribute: vid(5), is_new: false }]);
    participant.handle(at(0), MrpInput::Manage(vid(6), RegistrarMode::Forbidden));
    let octets = pdu(true, &[(AttributeEvent::Lv, 5), (AttributeEvent::New, 6)]);
    let out = participant.handle(at(1), MrpInput::Received(&octets));
    assert_eq!(out.indications, []);
    let there: Vec<_> = participant.registered().collect();
    assert_eq!(there, [&vid(5)]);
    let out = participant.handle(at(2), MrpInput::Manage(vid(5), RegistrarMode::Normal));
    assert_eq!(out.indications, [Indication::Left(vid(5))]);
}

#[test]
fn a_link_that_fails_registers_nothing_and_declares_again_when_it_works() {
    let mut pair = Pair::new();
    pair.sides[0].declare(at(0), vid(5), true);
    pair.run(1_000 * MS);
    for flap in 1..4 {
        let now = flap * 20_000 * MS;
        pair.run(now);
        for side in [0, 1] {
            let out = pair.sides[side].handle(at(now), MrpInput::LinkDown);
            pair.take(side, out);
        }
        assert_eq!(pair.registered(1), [0; 0]);
        pair.run(now + 1_000 * MS);
        for side in [0, 1] {
            let out = pair.sides[side].handle(at(now + 1_000 * MS), MrpInput::LinkUp);
            pair.take(side, out);
        }
        pair.run(now + 1_001 * MS);
        assert_eq!(pair.registered(1), [5], "flap {flap}");
    }
}

#[test]
fn flush_ends_registrations_and_redeclare_starts_their_end() {
    let mut participant = new(1);
    let joined = pdu(false, &[(AttributeEvent::JoinIn, 5)]);
    participant.handle(at(0), MrpInput::Received(&joined));
    participant.handle(at(0), MrpInput::Redeclare);
    assert_eq!(participant.states(vid(5)).1, RegistrarState::Lv);
    let out = participant.handle(at(1), MrpInput::Flush);
    assert_eq!(out.indications, [Indication::Left(vid(5))]);
    participant.declare(at(2), vid(9), false);
    alone(&mut participant, 5_000 * MS);
    assert_eq!(participant.states(vid(9)).0, ApplicantState::QuietActive);
    participant.handle(at(5_000 * MS), MrpInput::Redeclare);
    assert_eq!(participant.states(vid(9)).0, ApplicantState::VeryAnxiousPassive);
}

#[test]
fn periodic_transmission_repeats_what_is_declared() {
    let timers = MrpTimers { periodic: Some(Span::from_s(1)), ..MrpTimers::default() };
    let mut participant =
        Participant::new(MrpSettings { timers, ..MrpSettings::default() }, 1, at(0));
    participant.declare(at(0), vid(5), false);
    let sent = alone(&mut participant, 9_500 * MS);
    let times: Vec<_> = sent.iter().map(|(at, _)| at / MS).collect();
    assert_eq!(times, [0, 200, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000]);
}

#[test]
fn a_bridge_declares_on_all_other_forwarding_ports_what_one_registers() {
    let mut bridge = Propagation::<Mvrp>::new(MrpSettings::default(), 3, 1, at(0));
    let joined = pdu(false, &[(AttributeEvent::New, 5)]);
    let received = |octets| PropagationInput::Port(0, MrpInput::Received(octets));
    bridge.handle(at(0), received(&joined));
    let declared = |bridge: &Propagation<Mvrp>| {
        [0, 1, 2].map(|port| bridge.port(port).declared().map(|vid| vid.get()).sum::<u16>())
    };
    assert_eq!(declared(&bridge), [0, 5, 5]);
    let sent = bridge.handle(at(0), PropagationInput::Timeout);
    assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(said(&sent[0].1), [Some((AttributeEvent::New, 5))], "new is passed on as new");
    bridge.handle(at(1), PropagationInput::Forwards(1, false));
    assert_eq!(declared(&bridge), [0, 0, 5]);
    bridge.handle(at(2), PropagationInput::Port(2, MrpInput::Received(&joined)));
    assert_eq!(declared(&bridge), [5, 0, 5]);
    assert_eq!(bridge.ports_of(vid(5)).collect::<Vec<_>>(), [0, 2]);
    bridge.handle(at(3), PropagationInput::Port(0, MrpInput::Flush));
    assert_eq!(declared(&bridge), [5, 0, 0]);
    bridge.handle(at(3), PropagationInput::Forwards(1, true));
    bridge.handle(at(4), PropagationInput::Port(2, MrpInput::LinkDown));
    assert_eq!(declared(&bridge), [0, 0, 0]);
}

#[test]
fn a_participant_counts_what_it_sends_receives_and_discards() {
    let mut participant = new(1);
    participant.declare(at(0), vid(5), false);
    participant.handle(at(0), MrpInput::Timeout);
    participant.handle(at(0), MrpInput::Received(&[0, 9]));
    participant.handle(at(0), MrpInput::Received(&pdu(true, &[])));
    let expected = MrpCounts { sent: 1, received: 2, discarded: 1, refused: 0 };
    assert_eq!(participant.counts(), expected);
}
