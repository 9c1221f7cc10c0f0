//! Results of simulations: figures, verdicts, JSON and the terminal's table.

mod common;

use common::simulated::{SETTINGS, Simulated, bound, ring, seen, silent, single};
use onbeat_measure::Verdict;
use onbeat_measure::simulation::{self, FlowKind, Latency, Phases, Results, Term};
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
fn a_port_that_holds_frames_and_sends_none_is_in_the_table() {
    let mut simulated = single(&[20_000]);
    assert!(!simulated.results().table().contains("b1.p1"));
    let port = &mut simulated.observed.ports[1];
    (port.queues[3].deepest_frames, port.queues[3].deepest_octets) = (7, 700);
    let table = simulated.results().table();
    let row = table.lines().find(|line| line.contains("b1.p1")).expect("the port");
    assert!(row.contains("0 %") && row.contains("700"), "{row}");
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
fn the_terminals_table_of_a_small_simulation() {
    insta::assert_snapshot!(single(&[18_000, 40_000, 50_001]).results().table());
}

#[test]
fn a_long_table_shows_what_was_broken_and_says_what_it_leaves_out() {
    let mut simulated = ring(10, 4, 100, 2);
    simulated.observed.streams[77].listeners[1].max = Some(Span::from_s(1));
    let table = simulated.results().table();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[2].starts_with("s77 "), "{}", lines[2]);
    assert!(lines[2].ends_with("broken"), "{}", lines[2]);
    assert!(table.contains("40 of 200: broken ones first"), "{table}");
    assert!(table.contains("the 10 busiest of "), "{table}");
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

/// So many hosts at each bridge, and links between bridges.
fn network(bridges: usize, hosts: usize, trunks: &[(usize, usize)]) -> Simulated {
    let mut nodes: Vec<_> = (0..bridges * hosts).map(|host| format!("h{host}")).collect();
    nodes.extend((0..bridges).map(|bridge| format!("b{bridge}")));
    let name = |bridge: usize| format!("b{bridge}");
    let mut links: Vec<_> = trunks.iter().map(|(a, b)| (name(*a), name(*b))).collect();
    let access = |host: usize| (format!("h{host}"), name(host / hosts.max(1)));
    links.extend((0..bridges * hosts).map(access));
    silent(&nodes, &links)
}

#[test]
fn in_pictures_of_all_kinds_of_networks_no_node_covers_another() {
    let line = |n: usize| -> Vec<_> { (1..n).map(|at| (at - 1, at)).collect() };
    let circle = |n: usize| -> Vec<_> { (0..n).map(|at| (at, (at + 1) % n)).collect() };
    let tree = |n: usize| -> Vec<_> { (1..n).map(|at| ((at - 1) / 3, at)).collect() };
    let mesh =
        |n: usize| -> Vec<_> { (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect() };
    let networks = [
        ("pair", silent(&["h0".into(), "h1".into()], &[("h0".into(), "h1".into())])),
        ("star", network(1, 60, &[])),
        ("line", network(12, 3, &line(12))),
        ("tree", network(40, 4, &tree(40))),
        ("triangle", network(3, 2, &circle(3))),
        ("ring", network(40, 5, &circle(40))),
        ("uneven ring", network(7, 13, &circle(7))),
        ("mesh", network(9, 2, &mesh(9))),
        ("bare ring", network(10, 0, &circle(10))),
        ("large", network(20, 50, &circle(20))),
    ];
    for (name, network) in networks {
        let page = simulation::html(&network.system, &network.plan, &network.results());
        let size = numbers(&page[page.find("id=\"map\"").expect("a picture")..], "viewBox=\"");
        let rects: Vec<_> =
            page.match_indices("<rect x=").map(|(at, _)| numbers(&page[at..], "<rect ")).collect();
        assert_eq!(rects.len(), network.system.nodes.len(), "{name}");
        for (at, a) in rects.iter().enumerate() {
            let inside = a[0] >= 0 && a[1] >= 0 && a[0] + a[2] <= size[2] && a[1] + a[3] <= size[3];
            assert!(inside, "{name}: {a:?} is outside of {size:?}");
            let covers = |b: &&Vec<i64>| {
                (a[0] - b[0]).abs() < a[2].max(b[2]) && (a[1] - b[1]).abs() < a[3].max(b[3])
            };
            let other = rects[at + 1..].iter().find(covers);
            assert!(other.is_none(), "{name}: {a:?} and {other:?}");
        }
    }
}

/// The first four whole numbers after `start`.
fn numbers(text: &str, start: &str) -> Vec<i64> {
    let text = &text[text.find(start).expect("it is there") + start.len()..];
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    parts.filter_map(|part| part.parse().ok()).take(4).collect()
}

#[test]
fn frames_with_a_deadline_that_are_held_for_ever_break_it() {
    let mut simulated = single(&[]);
    simulated.observed.streams[0].released = 10;
    simulated.system.streams[0].deadline = Some(Span::from_us(100));
    let flow = simulated.results().flows.remove(0);
    assert_eq!(flow.verdict, Verdict::Broken);
    assert_eq!(flow.verdict_reason, "a listener received nothing within the deadline");
    // What a meter dropped was taken away as described.
    simulated.observed.streams[0].policed = 10;
    simulated.observed.streams[0].listeners[0].lost.policed = 10;
    assert_eq!(simulated.results().flows.remove(0).verdict, Verdict::NotJudged);
}
