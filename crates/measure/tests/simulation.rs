//! Results of simulations: figures, verdicts and JSON.

use crate::common;
use crate::common::simulated::{SETTINGS, Simulated, bound, ring, seen, single};
use onbeat_measure::Verdict;
use onbeat_measure::simulation::{FlowKind, Latency, Phases, Results, Term};
use onbeat_model::diagnostic::Origin;
use onbeat_model::observed::FlowObserved;
use onbeat_model::stream::{Fault, FaultKind};
use onbeat_model::system::{LinkId, PortId};
use onbeat_model::time::{NetTime, Span};

fn fault(kind: FaultKind) -> Fault {
    Fault { kind, from: NetTime::ZERO, until: NetTime::MAX, origin: Origin::default() }
}

fn broken(simulated: &Simulated) -> Vec<String> {
    simulated.results().broken().collect()
}

#[test]
fn figures_of_one_stream_stand_beside_its_bound() {
    // 18, 25 and 40 µs: the mean is 27,666.67 ns; 50 µs is 1.25 times the longest.
    let results = single(&[18_000, 40_000, 25_000]).results();
    let flow = &results.flows[0];
    let end = &flow.listeners[0];
    assert_eq!((flow.kind, flow.queue, flow.talker.as_str()), (FlowKind::Stream, 6, "h1"));
    assert_eq!((end.host.as_str(), end.frames), ("h2", 3));
    let latency = Latency { min: 18_000, mean: 27_667, max: 40_000, max_released: 1_000_000 };
    assert_eq!(end.latency_ns, Some(latency));
    assert_eq!(
        (end.bound_ns, end.best_ns, end.jitter_bound_ns),
        (Some(50_000), Some(17_000), Some(33_000))
    );
    assert_eq!(end.bound_by_max_per_mille, Some(1_250));
    let dominating = Term { what: "queue 6 at b1.p2".into(), span_ns: 30_000 };
    assert_eq!(end.dominating, Some(dominating));
    assert_eq!((end.verdict, flow.verdict), (Verdict::Kept, Verdict::Kept));
    assert_eq!(results.broken().count(), 0);
}

#[test]
fn of_equal_terms_the_first_that_a_frame_meets_dominates() {
    let mut simulated = single(&[20_000]);
    let terms = [("small", 1_000), ("first", 20_000), ("second", 20_000)];
    simulated.plan.streams[0].bounds = vec![Some(bound(&terms, 17_000))];
    let flow = simulated.results().flows.remove(0);
    let dominating = flow.listeners[0].dominating.as_ref().map(|term| term.what.as_str());
    assert_eq!(dominating, Some("first"));
}

#[test]
fn load_is_the_share_of_the_wire_with_preamble_and_gap() {
    // 1,000 frames of 1,020 octets on the wire in 1 s: 8.16 Mb/s, 8 per mille of 1 Gb/s.
    let results = single(&[20_000; 1000]).results();
    let port = &results.ports[2];
    assert_eq!((port.port.as_str(), port.to.as_str()), ("b1.p2", "h2"));
    assert_eq!((port.busy_ns, port.busy_per_mille), (8_160_000, 8));
    let queue = &port.queues[0];
    assert_eq!((queue.queue, queue.sent, queue.sent_octets), (6, 1000, 1_000_000));
    assert_eq!((queue.load_per_mille, queue.bound_octets), (8, Some(2000)));
    assert_eq!(queue.verdict, Verdict::Kept);
    // Ports that sent nothing list no queue.
    assert!(results.ports[1].queues.is_empty());
    assert_eq!((results.totals.sent, results.totals.received), (2000, 1000));
}

#[test]
fn a_latency_of_exactly_the_bound_keeps_it_and_one_nanosecond_more_breaks_it() {
    assert_eq!(single(&[50_000]).results().flows[0].verdict, Verdict::Kept);
    let results = single(&[50_001]).results();
    assert_eq!(results.flows[0].verdict, Verdict::Broken);
    assert_eq!(results.flows[0].listeners[0].bound_by_max_per_mille, Some(999));
    let lines: Vec<_> = results.broken().collect();
    assert_eq!(lines, ["stream s1: to h2: 50.001 µs exceeds the bound of 50 µs, released at 0 ns"]);
}

#[test]
fn a_frame_faster_than_the_best_case_breaks_the_promise() {
    assert_eq!(single(&[17_000]).results().flows[0].verdict, Verdict::Kept);
    let lines = broken(&single(&[16_999, 30_000]));
    assert_eq!(lines, ["stream s1: to h2: 16.999 µs is less than the best case of 17 µs"]);
}

#[test]
fn a_backlog_above_its_bound_is_broken_in_frames_and_in_octets() {
    for (frames, octets, expected) in [(2, 2000, 0), (3, 2000, 1), (2, 2001, 1)] {
        let mut simulated = single(&[20_000]);
        let queue = &mut simulated.observed.ports[2].queues[6];
        (queue.deepest_frames, queue.deepest_octets) = (frames, octets);
        assert_eq!(broken(&simulated).len(), expected, "{frames} frames, {octets} octets");
    }
}

#[test]
fn a_queue_that_nothing_may_be_in_is_listed_only_if_something_was() {
    let mut simulated = single(&[20_000]);
    simulated.plan.backlogs[2][5] = Some(onbeat_model::plan::Backlog::default());
    let results = simulated.results();
    assert_eq!(results.ports[2].queues.len(), 1);
    assert_eq!(results.totals.kept, 2);
    let queue = &mut simulated.observed.ports[2].queues[5];
    (queue.deepest_frames, queue.deepest_octets) = (1, 64);
    assert_eq!(broken(&simulated).len(), 1);
}

#[test]
fn a_deadline_is_a_promise_even_without_a_bound() {
    let mut simulated = single(&[20_000, 30_001]);
    simulated.plan.streams[0].bounds = vec![None];
    assert_eq!(simulated.results().flows[0].verdict, Verdict::NoPromise);
    simulated.system.streams[0].deadline = Some(Span::from_us(31));
    assert_eq!(simulated.results().flows[0].verdict, Verdict::Kept);
    simulated.system.streams[0].deadline = Some(Span::from_us(30));
    let lines = broken(&simulated);
    assert_eq!(lines, ["stream s1: to h2: 30.001 µs exceeds the deadline of 30 µs"]);
}

#[test]
fn losses_to_full_queues_break_a_promise_and_losses_to_described_faults_do_not() {
    let mut simulated = single(&[20_000]);
    simulated.observed.streams[0].faulted = 5;
    simulated.system.faults = vec![fault(FaultKind::LinkDown(LinkId(0)))];
    let results = simulated.results();
    assert_eq!(results.flows[0].verdict, Verdict::Kept);
    assert_eq!(results.flows[0].lost(), 5);
    assert!(results.flows[0].verdict_reason.ends_with("; 5 lost to described faults"));
    simulated.observed.streams[0].overflowed = 2;
    // On the way to nobody who was promised anything.
    assert_eq!(simulated.results().flows[0].verdict, Verdict::Kept);
    simulated.observed.streams[0].listeners[0].lost.overflowed = 2;
    let lines = broken(&simulated);
    assert_eq!(lines.len(), 1);
    let said = "stream s1: to h2: 2 frames were lost to a full queue";
    assert!(lines[0].starts_with(said), "{lines:?}");
    assert_eq!(simulated.results().flows[0].listeners[0].lost(), 2);
}

#[test]
fn a_listener_that_received_nothing_is_not_judged() {
    let mut simulated = single(&[]);
    assert_eq!(simulated.results().flows[0].verdict_reason, "nothing was sent");
    simulated.observed.streams[0].released = 1;
    let flow = simulated.results().flows.remove(0);
    assert_eq!(flow.verdict, Verdict::NotJudged);
    assert_eq!(flow.verdict_reason, "a listener received nothing");
    assert_eq!(
        (flow.listeners[0].latency_ns, flow.listeners[0].bound_by_max_per_mille),
        (None, None)
    );
}

#[test]
fn what_babbles_is_not_judged_and_all_others_are() {
    let mut simulated = single(&[60_000]);
    let Simulated { system, plan, observed } = &mut simulated;
    system.streams.push(common::simulated::stream("victim", 1, &[0], 6));
    plan.streams.push(plan.streams[0].clone());
    observed.streams.push(observed.streams[0].clone());
    system.faults = vec![fault(FaultKind::Babble(0))];
    let verdicts: Vec<_> = simulated.results().flows.iter().map(|flow| flow.verdict).collect();
    assert_eq!(verdicts, [Verdict::NotJudged, Verdict::Broken]);
}

#[test]
fn what_a_clock_that_steps_may_have_to_do_with_is_not_judged_from_then_on() {
    let mut simulated = single(&[60_000]);
    let Simulated { system, plan, observed } = &mut simulated;
    system.streams.push(common::simulated::stream("other", 1, &[0], 6));
    plan.streams.push(plan.streams[0].clone());
    observed.streams.push(observed.streams[0].clone());
    let worst = &observed.streams[0].listeners[0];
    let over = worst.max_released + worst.max.expect("a latency");
    let verdicts = |simulated: &mut Simulated, node, by, from| {
        let kind = FaultKind::ClockStep { node, by: Span::from_ns(by) };
        simulated.system.faults = vec![Fault { from, ..fault(kind) }];
        let flows = simulated.results().flows;
        flows.into_iter().map(|flow| flow.verdict).collect::<Vec<_>>()
    };
    let plan = &mut simulated.plan;
    plan.streams.iter_mut().for_each(|stream| stream.paths = vec![Vec::new()]);
    let talker = simulated.system.streams[0].talker;
    let (broken, not_judged) = (Verdict::Broken, Verdict::NotJudged);
    assert_eq!(verdicts(&mut simulated, talker, 5, over), [not_judged, broken]);
    let after = over + Span::from_ns(1);
    assert_eq!(verdicts(&mut simulated, talker, 5, after), [broken, broken]);
    assert_eq!(verdicts(&mut simulated, talker, 0, over), [broken, broken]);
    // They share a port.
    let plan = &mut simulated.plan;
    plan.streams.iter_mut().for_each(|stream| stream.paths = vec![vec![vec![PortId(0)]]]);
    assert_eq!(verdicts(&mut simulated, talker, 5, over), [not_judged, not_judged]);
    let reason = simulated.results().flows.remove(1).verdict_reason;
    assert!(reason.contains("but a clock steps that it may depend on"), "{reason}");
}

#[test]
fn a_flow_is_as_bad_as_its_worst_listener() {
    let mut simulated = single(&[20_000]);
    simulated.system.streams[0].listeners.push(onbeat_model::system::NodeId(2));
    simulated.plan.streams[0].bounds.push(Some(bound(&[("all", 10_000)], 5_000)));
    simulated.observed.streams[0].listeners.push(seen(&[10_001]));
    let flow = simulated.results().flows.remove(0);
    let verdicts: Vec<_> = flow.listeners.iter().map(|end| end.verdict).collect();
    assert_eq!(verdicts, [Verdict::Kept, Verdict::Broken]);
    assert_eq!(flow.verdict, Verdict::Broken);
    assert!(flow.verdict_reason.starts_with("to b1: 10.001 µs"), "{}", flow.verdict_reason);
}

#[test]
fn channels_come_before_streams_and_without_a_reservation_nothing_was_promised_them() {
    let mut simulated = single(&[20_000]);
    simulated.system.channels = vec![common::channel("c1", 0, &[1])];
    simulated.plan.channels = common::plan(&simulated.system, &[None]).channels;
    let end = seen(&[30_000]);
    simulated.observed.channels =
        vec![FlowObserved { released: 1, listeners: vec![end], ..FlowObserved::default() }];
    let results = simulated.results();
    let channel = &results.flows[0];
    assert_eq!((channel.name.as_str(), channel.kind), ("c1", FlowKind::Channel));
    assert_eq!((channel.queue, channel.class), (1, None));
    assert_eq!(channel.verdict, Verdict::NoPromise);
    simulated.plan.channels = common::plan(&simulated.system, &[Some(29)]).channels;
    let results = simulated.results();
    assert_eq!((results.flows[0].queue, results.flows[0].verdict), (7, Verdict::Broken));
}

#[test]
fn results_are_the_same_after_json_and_back() {
    let results = ring(4, 2, 12, 2).results();
    let back: Results = serde_json::from_str(&results.to_json()).expect("it is our own");
    assert_eq!(back, results);
    assert_eq!((back.format.as_str(), back.version), ("onbeat-simulation", 1));
}

#[test]
fn the_json_of_a_small_simulation() {
    insta::assert_snapshot!(single(&[18_000, 40_000, 25_000]).results().to_json());
}

#[test]
fn probes_of_another_system_are_refused() {
    let (one, other) = (single(&[20_000]), ring(4, 1, 3, 1));
    let wrong = std::panic::catch_unwind(|| {
        Results::new(&one.system, &one.plan, &other.observed, SETTINGS)
    });
    assert!(wrong.is_err());
}

#[test]
fn phases_have_the_names_of_the_command_line() {
    let names = [Phases::Described, Phases::Random, Phases::Aligned];
    let names = names.map(|phases| serde_json::to_string(&phases).expect("a word"));
    assert_eq!(names, ["\"described\"", "\"random\"", "\"aligned\""]);
}

#[test]
fn frames_with_a_deadline_that_are_held_for_ever_break_it() {
    let mut simulated = single(&[]);
    simulated.observed.streams[0].released = 10;
    simulated.system.streams[0].deadline = Some(Span::from_us(100));
    let flow = simulated.results().flows.remove(0);
    assert_eq!(flow.verdict, Verdict::Broken);
    let host = &simulated.system.node(simulated.system.streams[0].listeners[0]).name;
    let wanted = format!("to {host}: 10 of 10 frames missed the deadline: they never came");
    assert_eq!(flow.verdict_reason, wanted);
    // What a full queue lost has missed it, too.
    simulated.observed.streams[0].listeners[0].lost.overflowed = 10;
    assert_eq!(simulated.results().flows.remove(0).verdict, Verdict::Broken);
    simulated.observed.streams[0].listeners[0].lost.overflowed = 0;
    // What a meter dropped was taken away as described.
    simulated.observed.streams[0].policed = 10;
    simulated.observed.streams[0].listeners[0].lost.policed = 10;
    assert_eq!(simulated.results().flows.remove(0).verdict, Verdict::NotJudged);
}
