//! Small systems, computed by hand.

use super::descriptions::{BEGIN, bridge, channel, hosts, link, noise, system};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{ChannelId, NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::Octets;
use onbeat_network_code::planning::{BusOptions, BusPlan, DRIFT_PPB, plan_bus, plan_channels};
use onbeat_runtime::network_code::timing::Cycles;

/// Clocks that are exact.
const EXACT: BusOptions =
    BusOptions { master: None, drift_ppb: 0, best_effort: Octets::new(0), slot_error: None };

/// Clocks as Ethernet has them, and no best effort but what is described.
const QUIET: BusOptions = BusOptions { drift_ppb: DRIFT_PPB, ..EXACT };

/// What a user is told of bounds above fixed delays.
fn late(system: &System, options: &BusOptions) -> Vec<Diagnostic> {
    let (plan, _) = plan_channels(system, options).expect("it has room");
    let late = onbeat_bounds::warnings(system, &plan);
    late.into_iter().filter(|found| found.code.to_string() == "OB2005").collect()
}

fn planned(text: &str, options: BusOptions) -> BusPlan {
    plan_bus(&system(text), &options).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Hosts `a` and `b` at a bridge, and a channel between them.
fn pair() -> String {
    let mut text = BEGIN.to_owned();
    hosts(&mut text, &["a", "b"]);
    bridge(&mut text, "s", 1_000);
    link(&mut text, ["a", "s"], 1_000, 100);
    link(&mut text, ["b", "s"], 1_000, 100);
    channel(&mut text, 0, "c", 8, 1_000_000, "a", &["b"]);
    text
}

fn terms(plan: &BusPlan, channel: u32) -> Vec<(&str, i64)> {
    let receipt = plan.bound(ChannelId(channel)).expect("it is planned");
    receipt.bound.terms.iter().map(|term| (&term.what[..], term.span.as_ns())).collect()
}

// 24 octets of header and 8 of the message are 8 words. Frames are the shortest, as those that
// begin a round: 8 octets of preamble and 68, or 608 ns, and a gap of 96 ns.
//
// A frame of a begins at the bridge's port 100 + 608 + 1000 = 1708 ns after it did at a: from cycle
// 213 on, and with its gap until cycle 301.5. So it has this link for 89 cycles, and that of a for
// 88, of which the first are those of the frame that begins a round.
//
// First octet to first octet is 1808 ns from a to b. 26 octets up to the EtherType are 208 ns: b's
// round begins 2016 ns after a's, known to 1 ns, and b continues 1 to 2 cycles later, at 2023 to
// 2033 ns.
//
// The slot begins at cycle 89. `create` is 8 cycles before. The frame is there at 712 + 1808 + 608
// = 3128 ns, stored 8 cycles later and seen up to 1 more: at 3200 ns, or 3201, which is 1178 ns or
// 147.25 cycles after 2023. So `receive` is issued 148 cycles after that, and takes 2 + 8.
#[test]
fn two_hosts_and_a_bridge() {
    let plan = planned(&pair(), EXACT);
    assert_eq!((plan.master, plan.round, plan.rounds), (0, Cycles(125_000), 1));
    assert_eq!((plan.beginning, plan.ending), (Cycles(88), Cycles(0)));
    let slot = &plan.slots[0];
    assert_eq!((slot.message.0, slot.words, slot.every, slot.first_round), (1, 8, 1, 0));
    assert_eq!((slot.start, slot.end, slot.create), (Cycles(89), Cycles(391), Cycles(81)));
    assert_eq!(slot.receipts[0].receive, [Cycles(148); 2]);
    // It ends at 2033 + 158 × 8 = 3297 ns at most, and `create` is at 648 ns.
    assert_eq!(
        terms(&plan, 0),
        [
            ("wait for the slot of a", 1_000_000),
            // A message may come an eighth of the interval early, while the one before it waits.
            ("messages that come early", 125_000),
            ("create and send at a", 64),
            ("links and bridges to b", 1_808 + 608),
            ("receive at b", 8 * 8 + 10 * 8),
            ("clocks, and when the round begins", 3_297 - 648 - 64 - 2_416 - 144),
        ]
    );
    let bound = &slot.receipts[0].bound;
    assert_eq!(bound.total(), Span::from_ns(1_127_649));
    assert_eq!(bound.best, Span::from_ns(2_023 + 158 * 8 - 648));
    assert_eq!(bound.dominating().map(|term| &term.what[..]), Some("wait for the slot of a"));
    // Two times 89 of 125,000 cycles.
    assert_eq!(plan.load_ppm, 2 * 712);
    let [one, other] = [0, 1].map(|at| &plan.stations[at]);
    assert_eq!(one.text, MASTER);
    assert_eq!(other.text, SLAVE);
}

// From the master's first `future`, 8 cycles before its first octet, to that of `create`: 8 + 81 −
// 2 = 87 cycles; from there to the next round 125,000 − 87.
const MASTER: &str = "\
# Planned by onbeat: a round takes 1 ms. Slots are from its beginning on.
station a
medium 1 Gbit/s tagged

output c[8]
message c = 1[8]

round_0:
    future r0_0, 696 ns
    sync master
    halt
r0_0:
    future round_0, 999304 ns
    create c  # its slot: 712 ns to 3.128 µs
    send c
    halt
";

// `branch` takes 3 of the 148 cycles. `receive` and `goto` end at 161; the EtherType of the next
// round comes 1,000,000 + 2017 − 2023 − 161 × 8 = 998,706 ns later at most, or 124,839 cycles, and
// two more.
const SLAVE: &str = "\
# Planned by onbeat: a round takes 1 ms. Slots are from its beginning on.
station b
medium 1 Gbit/s tagged

input c[8]
message c = 1[8]

begin:
    sync slave, 998728 ns
    branch sync_timeout, begin
    future r0_0, 1160 ns
    halt
r0_0:
    receive c, c  # from a
    goto begin
";

// 1 ms at 100 ppm is 100 ns, by which the begin of a slot, and that of another one, may be off. A
// frame takes up to 609 ns, a gap 97: the bridge's port has sent it 200 + 1709 + 609 + 97 = 2615 ns
// after the begin, or 326.9 cycles.
#[test]
fn drift_makes_slots_longer() {
    let plan = planned(&pair(), QUIET);
    assert_eq!(plan.drift_ppb, 100_000);
    assert_eq!(plan.slots[0].end - plan.slots[0].start, Cycles(327));
    // A description may say that a clock is worse: by 400 instead of 200 ns, or 351.9 cycles.
    let name = "name = \"a\"";
    let worse = pair().replacen(name, &format!("{name}\nclock = {{ drift_ppb = -200_000 }}"), 1);
    let plan = planned(&worse, QUIET);
    assert_eq!(plan.drift_ppb, 200_000);
    assert_eq!(plan.slots[0].end - plan.slots[0].start, Cycles(352));
    // 4 × 1,000 ns each 100 ms are 40,000 ppb more.
    let wander = "clock = { drift_ppb = -200_000, wander_ns = 1_000, wander_period_ms = 100 }";
    let wanders = pair().replacen(name, &format!("{name}\n{wander}"), 1);
    assert_eq!(planned(&wanders, QUIET).drift_ppb, 240_000);
}

// 1,472 octets of a datagram are a frame of 1,518, and 1,538 on the wire: 12,304 ns at each of two
// ports.
#[test]
fn best_effort_blocks_once_at_each_port_that_it_passes() {
    let mut text = pair();
    noise(&mut text, "a", "b", 1_472);
    let plan = planned(&text, EXACT);
    assert_eq!(terms(&plan, 0)[3], ("best effort at ports", 2 * 12_304));
    assert_eq!(terms(&plan, 0)[4], ("links and bridges to b", 2_416));
    // The other direction has none.
    let mut text = pair();
    noise(&mut text, "b", "a", 1_472);
    let plan = planned(&text, EXACT);
    assert_eq!(terms(&plan, 0)[3], ("links and bridges to b", 2_416));
    // A bridge that learns floods it to all ports.
    let learns = text.replace("name = \"s\"", "name = \"s\"\nlearning = true");
    assert_eq!(terms(&planned(&learns, EXACT), 0)[3], ("best effort at ports", 2 * 12_304));
    // What is not described may be asked for.
    let unknown = BusOptions { best_effort: Octets::new(64), ..EXACT };
    assert_eq!(terms(&planned(&pair(), unknown), 0)[3], ("best effort at ports", 2 * 84 * 8));
}

// 26 octets at 100 Mbit/s are 2,080 ns, a frame 6,080 ns. A bridge that may cut through is certain
// to have forwarded the frame only when it has all of it.
#[test]
fn what_cuts_through_may_also_store() {
    let slow = pair().replace("rate_mbps = 1000", "rate_mbps = 100");
    let cuts = slow.replace("name = \"s\"", "name = \"s\"\ncut_through = true");
    let plan = planned(&cuts, EXACT);
    let paths: Vec<_> = plan.paths.iter().map(|path| path.delay_ns).collect();
    let [cut, stored] = [2_080, 6_080].map(|frame| 100 + frame + 1_000 + 100);
    assert!(paths.contains(&[cut, stored]), "{paths:?}");
    let stores = planned(&slow, EXACT);
    let paths: Vec<_> = stores.paths.iter().map(|path| path.delay_ns).collect();
    assert!(paths.contains(&[stored; 2]), "{paths:?}");
    // The link to b belongs to the beginning of a round for 4,000 ns more, and when b's round
    // begins is known to 4,000 ns less.
    assert_eq!(plan.slots[0].start - stores.slots[0].start, Cycles(500));
    let last = |plan: &BusPlan| terms(plan, 0).last().map_or(0, |(_, ns)| *ns);
    assert_eq!(last(&plan) - last(&stores), 4_000);
}

// 46 octets are 368 ns, and one more for the crossing of clocks. No frame is stored, and best
// effort waits: only at the port of a itself it is ahead.
#[test]
fn a_dedicated_path_takes_the_same_for_all_frames_and_best_effort_gives_way() {
    let mut text = pair() + "[[host]]\nname = \"c\"\n";
    link(&mut text, ["c", "s"], 1_000, 100);
    noise(&mut text, "a", "b", 1_472);
    let with = |more: &str| {
        let path = format!("name = \"s\"\ndedicated_path = {{ wait_ns = 16{more} }}");
        planned(&text.replace("name = \"s\"", &path), EXACT)
    };
    let delays = |plan: &BusPlan| plan.paths.iter().map(|it| it.delay_ns).collect::<Vec<_>>();
    let plan = with("");
    let passes = 100 + 368 + 16 + 100;
    let frame = 1_538 * 8;
    assert!(delays(&plan).contains(&[passes, passes + 8 + frame]), "{:?}", delays(&plan));
    assert_eq!(terms(&plan, 0)[3], ("best effort at ports", frame));
    let finishes = with(", on_best_effort = \"finish\"");
    assert!(delays(&finishes).contains(&[passes, passes + 8 + 2 * frame]));
    assert_eq!(terms(&finishes, 0)[3], ("best effort at ports", 2 * frame));
}

#[test]
fn a_dedicated_path_between_two_links_is_refused() {
    let text = pair().replace("name = \"s\"", "name = \"s\"\ndedicated_path = {}");
    let errors = plan_bus(&system(&text), &EXACT).expect_err("frames may meet");
    assert_eq!(errors[0].code, onbeat_model::codes::network_code::TOPOLOGY);
    assert!(errors[0].message.contains("dedicated path and two links"), "{}", errors[0].message);
}

#[test]
fn the_master_is_the_host_in_the_middle_or_the_one_that_is_asked_for() {
    let mut text = BEGIN.to_owned();
    hosts(&mut text, &["a", "b", "m"]);
    for (at, host) in ["a", "m", "b"].into_iter().enumerate() {
        let name = format!("s{at}");
        bridge(&mut text, &name, 1_000);
        link(&mut text, [host, &name], 1_000, 100);
        if at > 0 {
            link(&mut text, [&name, &format!("s{}", at - 1)], 1_000, 100);
        }
    }
    channel(&mut text, 0, "c", 8, 1_000_000, "a", &["b", "m"]);
    let plan = planned(&text, EXACT);
    assert_eq!(plan.stations[plan.master].program.station, "m");
    let asked = BusOptions { master: Some(NodeId(1)), ..EXACT };
    let plan = planned(&text, asked);
    assert_eq!(plan.stations[plan.master].program.station, "b");
    assert_eq!(plan.slots[0].receipts.len(), 2);
}

/// The round and how often each channel has a slot.
fn rounds(plan: &BusPlan) -> (u64, Vec<u32>) {
    (plan.round.0 * 8, plan.slots.iter().map(|slot| slot.every).collect())
}

#[test]
fn slots_come_as_often_as_messages() {
    let mut text = pair();
    channel(&mut text, 1, "d", 8, 3_000_000, "b", &["a"]);
    text += "fixed_delay_us = 10000\n";
    let plan = planned(&text, EXACT);
    assert_eq!((rounds(&plan), plan.rounds), ((1_000_000, vec![1, 3]), 3));
    assert_eq!(terms(&plan, 1)[0], ("wait for the slot of b", 3_000_000));
    // Intervals without a common divisor that is long enough: each is rounded down.
    let odd = pair().replace("interval_ns = 1000000", "interval_ns = 1000001");
    let mut text = odd;
    channel(&mut text, 1, "d", 8, 3_000_000, "b", &["a"]);
    text += "fixed_delay_us = 10000\n";
    let plan = planned(&text, EXACT);
    // 3,000,000 / 1,000,000: a round is whole cycles.
    assert_eq!(rounds(&plan), (1_000_000, vec![1, 3]));
    // A long interval is divided.
    let long = pair().replace("interval_ns = 1000000", "interval_ns = 350000000");
    let plan = planned(&format!("{long}fixed_delay_us = 1000000\n"), EXACT);
    assert_eq!((rounds(&plan), plan.rounds), ((87_500_000, vec![4]), 4));
}

// By a clock that is slow 999,800 ns take 100 ns more, and by one that is fast 1 ms 100 ns less. By
// 200 ppm 999,600 + 200 are 1,000,000 − 200. Three rounds are 3 ms less 600 ns.
#[test]
fn rounds_are_shorter_by_what_clocks_are_off() {
    let mut text = pair();
    channel(&mut text, 1, "d", 8, 3_000_000, "b", &["a"]);
    text += "fixed_delay_us = 10000\n";
    let plan = planned(&text, QUIET);
    assert_eq!(rounds(&plan), (999_800, vec![1, 3]));
    // An eighth of 1 ms, by a clock that is slow; of 3 ms no more than 125 µs.
    let early = ("messages that come early", 125_013);
    assert_eq!(terms(&plan, 0)[..2], [("wait for the slot of a", 999_900), early]);
    assert_eq!(terms(&plan, 1)[..2], [("wait for the slot of b", 2_999_700), early]);
    let plan = planned(&text, BusOptions { drift_ppb: 200_000, ..EXACT });
    assert_eq!(rounds(&plan), (999_600, vec![1, 3]));
    assert_eq!(terms(&plan, 0)[0], ("wait for the slot of a", 999_800));
}

// Behind the wait there are 2,649 ns, as above.
#[test]
fn slots_come_as_often_as_fixed_delays_need() {
    let within = |us: u32| planned(&format!("{}fixed_delay_us = {us}\n", pair()), EXACT);
    for (us, round, bound) in [
        (1_128, 1_000_000, 1_127_649),
        // With slots that are 125 µs closer than messages, none waits for another one.
        (1_127, 500_000, 502_649),
        (503, 500_000, 502_649),
        // A third, in whole cycles.
        (502, 333_328, 335_977),
        (6, 3_344, 5_993),
    ] {
        let plan = within(us);
        assert_eq!((rounds(&plan), plan.rounds), ((round, vec![1]), 1), "{us}");
        let receipt = plan.bound(ChannelId(0)).expect("it is planned");
        assert_eq!(receipt.bound.total(), Span::from_ns(bound), "{us}");
    }
    // What cannot be kept anyway gets no more slots than it has messages.
    assert_eq!(rounds(&within(2)), (1_000_000, vec![1]));
    // Only what needs more slots has them.
    let mut text = pair();
    text += "fixed_delay_us = 503\n";
    channel(&mut text, 1, "d", 8, 1_000_000, "b", &["a"]);
    channel(&mut text, 2, "e", 8, 4_000_000, "b", &["a"]);
    let plan = planned(&format!("{text}fixed_delay_us = 3000\n"), EXACT);
    assert_eq!((rounds(&plan), plan.rounds), ((500_000, vec![1, 2, 4]), 4));
}

// At 100 Mbit/s 1,200 octets are 1,274 with preamble and gap, or 101.92 µs. Of a round of 1 ms
// 124 µs belong to its beginning and end: eight slots have room, that of `c`, six, and one that the
// others share.
#[test]
fn where_not_all_have_room_the_fewest_are_late() {
    let mut text = pair().replace("rate_mbps = 1000", "rate_mbps = 100");
    text = text.replace("size_octets = 8", "size_octets = 1200");
    for number in 1..=12 {
        let name = format!("x{number}");
        channel(&mut text, number, &name, 1_200, 10_000_000, "a", &["b"]);
        text += "fixed_delay_us = 1250\n";
    }
    let system = system(&text);
    let options = BusOptions { master: Some(NodeId(1)), ..EXACT };
    let plan = plan_bus(&system, &options).expect("it has room");
    let late = late(&system, &options).len();
    let sparse = plan.slots.iter().filter(|slot| slot.every > 1).count();
    assert_eq!((late, sparse), (6, 6), "{:?}", rounds(&plan));
}

#[test]
fn a_robot_arm_is_in_time() {
    let system = system(include_str!("../../../../examples/03-robot-arm/system.toml"));
    let plan = plan_bus(&system, &BusOptions::default()).expect("it has room");
    assert_eq!(late(&system, &BusOptions::default()), []);
    // Two slots for each message, in halves of 1 ms less twice 100 ppm.
    assert_eq!((rounds(&plan), plan.rounds), ((499_896, vec![1, 1, 1]), 1));
}

/// 1,000 rounds, of which 998 are alike: programs count.
#[test]
fn rounds_that_repeat_are_in_a_program_once() {
    let mut text = pair();
    channel(&mut text, 1, "d", 8, 1_000_000_000, "b", &["a"]);
    text += "fixed_delay_us = 1100000\n";
    let plan = planned(&text, EXACT);
    assert_eq!(plan.rounds, 1_000);
    for station in &plan.stations {
        let (text, count) = (&station.text, station.program.words.len());
        assert!(count < 50, "{count}\n{text}");
        assert!(text.contains("branch not count(0, "), "{text}");
    }
}

#[test]
fn a_bound_above_the_fixed_delay_is_told() {
    let text = format!("{}fixed_delay_us = 3\n", pair());
    let system = system(&text);
    let [found] = &late(&system, &EXACT)[..] else { panic!("no slots are so often") };
    assert!(found.help.contains("make room for more slots"), "{found:?}");
    let text = text.replace("_us = 3\n", "_us = 10\n");
    let system = super::descriptions::system(&text);
    assert_eq!(late(&system, &EXACT), []);
}

#[test]
fn names_of_channels_become_names_of_the_language() {
    let mut text = pair();
    channel(&mut text, 1, "send", 8, 1_000_000, "a", &["b"]);
    channel(&mut text, 2, "hyper_round", 8, 1_000_000, "a", &["b"]);
    channel(&mut text, 3, "_send", 8, 1_000_000, "a", &["b"]);
    let plan = planned(&text, EXACT);
    let names: Vec<_> = plan.stations[1].program.messages.iter().map(|it| &it.name[..]).collect();
    assert_eq!(names, ["c", "_send", "hyper_round_2", "_send_2"]);
    let buffers: Vec<_> = plan.stations[1].buffers.iter().map(|(of, to)| (of.0, to.0)).collect();
    assert_eq!(buffers, [(0, 0), (1, 1), (2, 2), (3, 3)]);
}
