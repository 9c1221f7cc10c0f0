//! Two nodes on a perfect cable, and what strangers may send them.

use crate::gptp::instance::{ACTIONS_BESIDES, ACTIONS_PER_PORT, MAX_PORTS};
use crate::gptp::message::Body;
use crate::gptp::{
    Action, ClockIdentity, Condition, Event, LocalClockTime, Message, PortState, PtpInstance,
    ScaledNs, Settings, SystemIdentity, TimestampId,
};
use proptest::prelude::*;

/// The cable's delay and what a node takes to send, in nanoseconds.
const DELAY: i64 = 300;
const SEND_DELAY: i64 = 2_000_000;

fn node(priority1: u8, number: u8) -> PtpInstance {
    let identity = ClockIdentity([number; 8]);
    PtpInstance::new(
        Settings::new(SystemIdentity::unknown(priority1, identity)),
        1,
        LocalClockTime::from_ns(0),
    )
}

/// A message on the cable: when it arrives, at which node, its octets.
type Flight = (i64, usize, Vec<u8>);

/// Two nodes whose clocks both show true time.
struct Pair {
    nodes: [PtpInstance; 2],
    flights: Vec<Flight>,
    heard: Vec<Flight>,
}

impl Pair {
    fn run(priorities: [u8; 2], until_ns: i64) -> Self {
        let nodes = [node(priorities[0], 1), node(priorities[1], 2)];
        let mut pair = Self { nodes, flights: Vec::new(), heard: Vec::new() };
        loop {
            let timeout = |n: usize| pair.nodes[n].next_timeout().as_ns();
            let flight = pair.flights.iter().enumerate().min_by_key(|(_, flight)| flight.0);
            let (due, now) =
                (flight.map(|(index, flight)| (index, flight.0)), timeout(0).min(timeout(1)));
            match due {
                _ if now.min(due.map_or(i64::MAX, |(_, at)| at)) > until_ns => return pair,
                Some((index, at)) if at <= now => {
                    let (_, to, octets) = pair.flights.swap_remove(index);
                    pair.heard.push((at, to, octets.clone()));
                    let stamp = Some(LocalClockTime::from_ns(at));
                    pair.handle(to, at, Event::Received { port: 0, octets: &octets, stamp });
                }
                _ => pair.handle(usize::from(timeout(1) < timeout(0)), now, Event::Timeout),
            }
        }
    }

    fn handle(&mut self, number: usize, now: i64, event: Event<'_>) {
        for action in self.nodes[number].handle(LocalClockTime::from_ns(now), event) {
            let Action::Send { port, octets, timestamp_id } = action else { continue };
            let leaves = now + SEND_DELAY;
            self.flights.push((leaves + DELAY, 1 - number, octets));
            if let Some(timestamp_id) = timestamp_id {
                let stamp = LocalClockTime::from_ns(leaves);
                self.handle(number, leaves, Event::Sent { port, timestamp_id, stamp });
            }
        }
    }
}

#[test]
fn on_a_perfect_cable_the_slave_reads_the_masters_time_to_the_nanosecond() {
    let pair = Pair::run([100, 246], 20_000_000_000);
    let [master, slave] = &pair.nodes;
    assert_eq!(master.condition(), Condition::Grandmaster);
    assert_eq!(slave.condition(), Condition::Slave(0));
    assert_eq!(
        [master.port_state(0), slave.port_state(0)],
        [PortState::MasterPort, PortState::SlavePort]
    );
    assert_eq!(slave.link(0).expect("a link").delay.span().as_ns(), DELAY);
    let at = LocalClockTime::from_ns(20_000_000_000);
    let [theirs, ours] = [master, slave].map(|node| node.read(at).expect("it is set"));
    assert!((theirs - ours).abs() <= ScaledNs::from_ns(1), "{theirs:?} {ours:?}");
    assert_eq!(pair.nodes.each_ref().map(PtpInstance::ignored), [0, 0]);
}

#[test]
fn a_node_waits_three_intervals_for_a_better_clock_before_it_sets_its_own() {
    let early = Pair::run([100, 246], 2_900_000_000);
    assert_eq!(early.nodes.each_ref().map(PtpInstance::condition), [Condition::Unset; 2]);
    let late = Pair::run([100, 246], 3_100_000_000);
    assert_eq!(late.nodes[0].condition(), Condition::Grandmaster);
}

#[test]
fn an_announcement_that_comes_back_to_a_clock_it_has_passed_is_ignored() {
    let mut pair = Pair::run([100, 246], 10_000_000_000);
    let slave = &mut pair.nodes[1];
    let announced = pair.heard.iter().rev().find(|f| f.1 == 1 && f.2[0] & 0x0f == 11);
    let mut message = Message::parse(&announced.expect("it was sent").2).expect("a message");
    for passed in [true, false] {
        let Body::Announce(announce) = &mut message.body else { panic!("{message:?}") };
        announce.root.priority1 = 1;
        announce.path = vec![ClockIdentity([if passed { 2 } else { 9 }; 8])];
        let mut octets = Vec::new();
        message.emit(&mut octets);
        let event = Event::Received { port: 0, octets: &octets, stamp: None };
        slave.handle(LocalClockTime::from_ns(10_000_000_001), event);
        assert_eq!(slave.grandmaster().priority1, if passed { 100 } else { 1 });
    }
}

#[test]
fn where_no_node_is_gm_capable_no_clock_is_set() {
    let pair = Pair::run([255, 255], 20_000_000_000);
    for node in &pair.nodes {
        assert_eq!(node.condition(), Condition::Unset);
    }
}

#[test]
fn a_message_that_is_an_event_counts_for_nothing_without_its_stamp() {
    let pair = Pair::run([100, 246], 10_000_000_000);
    let mut stranger = node(255, 2);
    for (at, _, octets) in pair.heard.iter().filter(|flight| flight.1 == 1) {
        stranger
            .handle(LocalClockTime::from_ns(*at), Event::Received { port: 0, octets, stamp: None });
    }
    assert_eq!(stranger.condition(), Condition::Unset);
    assert!(stranger.ignored() > 0);
}

#[test]
fn when_time_is_no_longer_received_the_clock_drops_the_correction_and_keeps_the_rate() {
    let mut pair = Pair::run([100, 246], 10_000_000_000);
    let last = |kind: u8, number: Option<[u8; 2]>| {
        let of_kind = |f: &&Flight| f.1 == 1 && f.2[0] & 0x0f == kind;
        let numbered = |f: &&Flight| number.is_none_or(|number| f.2[30..32] == number);
        pair.heard.iter().rev().filter(of_kind).find(numbered).expect("it was sent").clone()
    };
    let follow_up = last(8, None);
    let sync = last(0, Some([follow_up.2[30], follow_up.2[31]]));
    let slave = &mut pair.nodes[1];
    // As if it had come a millisecond later: more than the clock can correct until the next one.
    let now = LocalClockTime::from_ns(10_010_000_000);
    let stamp = Some(LocalClockTime::from_ns(sync.0 + 1_000_000));
    for (octets, stamp) in [(&sync.2, stamp), (&follow_up.2, None)] {
        slave.handle(now, Event::Received { port: 0, octets, stamp });
    }
    let rate = |node: &PtpInstance| node.clock().expect("it is set").rate.ppb();
    assert_eq!((slave.condition(), rate(slave)), (Condition::Slave(0), -500_000));
    let actions = slave.handle(now + ScaledNs::from_ns(375_000_000), Event::Timeout);
    assert!(actions.iter().any(|action| matches!(action, Action::AdjustClock(_))), "{actions:?}");
    assert!(rate(slave).abs() < 100, "{}", rate(slave));
}

/// Does not compile if a timestamp_id can be copied: then there are two ways to do what has no
/// effect.
#[test]
fn a_timestamp_id_cannot_be_copied() {
    trait Copies<Way> {
        fn copies() {}
    }
    struct ByClone;
    impl<T> Copies<()> for T {}
    impl<T: Clone> Copies<ByClone> for T {}
    <TimestampId as Copies<_>>::copies();
}

#[test]
fn one_event_leads_to_a_bounded_number_of_actions() {
    let settings = Settings::new(SystemIdentity::unknown(100, ClockIdentity([1; 8])));
    let start = LocalClockTime::from_ns(0);
    let mut node = PtpInstance::new(settings, MAX_PORTS, start);
    // A request for each link.
    assert_eq!(node.handle(start, Event::Timeout).len(), MAX_PORTS);
    assert_eq!(node.handle(start, Event::Timeout).len(), 0);
    // However late it comes to it: no more for what was missed.
    let late = LocalClockTime::from_ns(1_000_000_000_000);
    let actions = node.handle(late, Event::Timeout);
    // It also sets its clock, as nobody is grandmaster; without links it tells nobody.
    assert_eq!(actions.len(), MAX_PORTS + 1);
    assert!(actions.len() <= MAX_PORTS * ACTIONS_PER_PORT + ACTIONS_BESIDES);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_comes_a_node_does_not_panic_and_its_clock_never_goes_back(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..60),
        late in 0i64..2_000_000_000, any_stamp: i64,
    ) {
        // What a master once sent, with octets changed, to one that is in the middle of it.
        let mut pair = Pair::run([100, 246], 6_000_000_000);
        let mut recorded: Vec<_> =
            pair.heard.drain(..).filter(|f| f.1 == 1).map(|f| f.2).collect();
        for (which, at, value) in changes {
            let index = which.index(recorded.len());
            let octets = &mut recorded[index];
            let at = at.index(octets.len());
            octets[at] = value;
        }
        let node = &mut pair.nodes[1];
        let mut now = LocalClockTime::from_ns(6_000_000_000);
        let mut read = node.read(now);
        for (number, octets) in recorded.iter().enumerate() {
            now = now + ScaledNs::from_ns(late / 50);
            let stamp = if number % 7 == 3 { LocalClockTime::from_ns(any_stamp) } else { now };
            let event = Event::Received { port: 0, octets, stamp: Some(stamp) };
            node.handle(now, event);
            let reading = node.read(now);
            prop_assert!(reading >= read, "{reading:?} {read:?}");
            read = reading;
        }
    }
}
