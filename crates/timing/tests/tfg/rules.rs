//! Each rule of `docs/time-flow-graphs.md` by hand.

use crate::build::*;
use onbeat_model::graph::{
    Expression, Graph, Interval, NodeKind, PointKind, Segment, Task, TaskNode,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{
    CauseKind, Composability, Course, Hazard, Level, PeriodicRegime, Timing,
};
use onbeat_timing::tfg::{Limits, time};

#[test]
fn listing_3_with_a_fifochannel_gives_table_1() {
    let graph = listing_3(fifo(1024), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(arrivals(&graph, &timing, "5")[..3], [0, 10, 20]);
    assert_eq!(releases(&graph, &timing, "6")[..3], [10, 20, 30]);
    assert_eq!(arrivals(&graph, &timing, "12")[..3], [0, 0, 10]);
    assert_eq!(releases(&graph, &timing, "12")[..3], [0, 10, 20]);
    assert!(timing.rows.iter().all(|row| row.is_certain));
    assert!(timing.causes.is_empty() && timing.misses.is_empty());
    let tasks = vec![Some((1, 1)), Some((2, 1))];
    let parts = vec![Some((1, ms(10))); 2];
    assert_eq!(timing.regime, Some(PeriodicRegime { tasks, shift: ms(10), parts }));
}

#[test]
fn a_network_channel_makes_intervals() {
    let latency = Interval::between(Span::from_us(100), ms(2));
    let graph = listing_3(network(latency), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let reads = visits(&graph, &timing, "12");
    for (round, row) in reads.iter().take(8).enumerate() {
        let capture = Interval::exactly(ms(10 * round as i64));
        assert_eq!(row.release, capture + latency);
    }
    assert!(timing.causes.is_empty());
    assert_eq!(timing.regime.map(|pattern| pattern.shift), Some(ms(10)));
}

#[test]
fn an_ip_channel_is_not_composable_and_is_named_with_the_path() {
    let graph = listing_3(network(Interval::from(Span::from_us(50))), false);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let [culprit] = &timing.causes[..] else { panic!("{:?}", timing.causes) };
    assert_eq!(culprit.kind, CauseKind::BestEffort { channel: 0 });
    let places = culprit.path.iter().map(|row| {
        let row = &timing.rows[*row];
        (graph.tasks[row.task].nodes[row.node].place.as_str(), row.iteration[0])
    });
    assert_eq!(places.collect::<Vec<_>>(), [("5", 1), ("12", 1), ("13", 1)]);
    let reads = visits(&graph, &timing, "12");
    assert_eq!(reads[1].release, Interval::from(ms(10) + Span::from_us(50)));
}

#[test]
fn read_wait_collapses_the_interval() {
    let graph = listing_3(network(Interval::between(Span::from_us(100), ms(2))), true);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(releases(&graph, &timing, "12")[..3], [3, 13, 23]);
}

fn single(nodes: Vec<TaskNode>) -> (Graph, Timing) {
    let graph = graph(vec![], vec![task("t", 0, nodes)]);
    let timing = time(&graph, Level::Platform, &[], Limits::default());
    (graph, timing)
}

fn after_code(lo: i64, hi: i64, kind: PointKind, period: i64) -> (Graph, Timing) {
    let end = TaskNode { next: vec![], ..node("3", NodeKind::End, &[]) };
    let mut nodes = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", code(lo, hi), &[2]),
        node("2", point(kind, period), &[3]),
        end,
    ];
    if kind != PointKind::Soft {
        nodes[1].guard = Some(2);
    }
    single(nodes)
}

#[test]
fn points_release_at_origin_and_period_or_late() {
    let soft = |lo, hi| {
        let (graph, timing) = after_code(lo, hi, PointKind::Soft, 10);
        (visits(&graph, &timing, "2")[0].release, timing.misses.first().and_then(|m| m.by))
    };
    assert_eq!(soft(1, 9), (Interval::exactly(ms(10)), None));
    assert_eq!(soft(1, 10), (Interval::exactly(ms(10)), None));
    assert_eq!(soft(1, 12), (Interval::between(ms(10), ms(12)), Some(ms(2))));
    assert_eq!(soft(11, 12), (Interval::between(ms(11), ms(12)), Some(ms(2))));
}

#[test]
fn firm_points_are_reached_at_the_deadline_at_the_latest() {
    for (kind, lo, hi, arrival, certain) in [
        (PointKind::Firm, 1, 10, Interval::between(ms(1), ms(10)), None),
        (PointKind::Firm, 1, 12, Interval::between(ms(1), ms(10)), Some(false)),
        (PointKind::Hard, 11, 12, Interval::exactly(ms(10)), Some(true)),
    ] {
        let (graph, timing) = after_code(lo, hi, kind, 10);
        let row = visits(&graph, &timing, "2")[0];
        assert_eq!((row.arrival, row.release), (arrival, Interval::exactly(ms(10))));
        assert_eq!(timing.misses.first().map(|miss| miss.is_certain), certain);
    }
}

#[test]
fn who_is_late_before_a_node_does_not_come_there() {
    for (lo, hi, is_certain) in [(8, 10, true), (8, 12, false), (11, 12, false)] {
        let tasks = vec![task(
            "t",
            0,
            vec![
                node("0", NodeKind::Start, &[1]),
                node("1", code(lo, hi), &[2]),
                guarded("2", write(0), &[3], 3),
                node("3", point(PointKind::Firm, 10), &[4]),
                node("4", NodeKind::End, &[]),
            ],
        )];
        let graph = graph(vec![fifo(4)], tasks);
        let timing = time(&graph, Level::Platform, &[], Limits::default());
        assert_eq!(visits(&graph, &timing, "2")[0].is_certain, is_certain, "{lo} to {hi}");
        assert!(visits(&graph, &timing, "3")[0].is_certain);
    }
}

#[test]
fn an_abort_keeps_what_passes_from_the_release_before() {
    let (graph, timing) = after_code(11, 12, PointKind::Firm, 10);
    let row = visits(&graph, &timing, "2")[0];
    assert_eq!(row.before, [(0, Interval::exactly(ms(10)))]);
    let miss = &timing.misses[0];
    assert_eq!((miss.by, &miss.path[..]), (Some(ms(2)), &[0, 1, 2][..]));
}

#[test]
fn segments_begin_late_and_their_aborts_take_time() {
    let up_to = |hi| Interval::between(Span::ZERO, ms(hi));
    let woken = |kind, hi, jitter, abort, wakeup| {
        let (mut graph, _) = after_code(hi - 1, hi, kind, 10);
        graph.hosts[0].wakeup = wakeup;
        let (execution, jitter, abort) = (Interval::ZERO, up_to(jitter), up_to(abort));
        let segment = |from, to| Segment { from, to, execution, jitter, abort };
        graph.tasks[0].segments = vec![segment(0, 2), segment(2, 3)];
        let timing = time(&graph, Level::Platform, &[], Limits::default());
        let row = visits(&graph, &timing, "2")[0];
        (row.arrival, row.release)
    };
    let point = |kind, hi, jitter, abort| woken(kind, hi, jitter, abort, Interval::ZERO);
    let late = (Interval::between(ms(4), ms(5 + 1)), Interval::between(ms(10), ms(10 + 1)));
    assert_eq!(point(PointKind::Soft, 5, 1, 2), late);
    let aborted = Interval::between(ms(10), ms(10 + 2));
    assert_eq!(point(PointKind::Firm, 12, 0, 2), (aborted, aborted));
    // Who sleeps for the jitter wakes late, also the first time.
    let late = Interval::between(ms(4), ms(5 + 1 + 3));
    assert_eq!(woken(PointKind::Soft, 5, 1, 2, Interval::between(ms(2), ms(3))).0, late);
}

#[test]
fn a_segment_is_not_cut_short_while_something_is_held_at_its_point() {
    let arrivals = |what: NodeKind, ways: &[usize]| {
        let nodes = vec![
            node("1", NodeKind::Start, &[1]),
            node("2", NodeKind::Any, ways),
            node("3", what, &[3]),
            node("4", point(PointKind::Firm, 10), &[1]),
        ];
        let mut graph = graph(vec![], vec![task("t", 0, nodes)]);
        let execution = Interval::between(ms(12), ms(14));
        let none = Interval::ZERO;
        let segment = |from| Segment { from, to: 3, execution, jitter: none, abort: none };
        graph.tasks[0].segments = vec![segment(0), segment(3)];
        let timing = time(&graph, Level::Platform, &[], Limits::default());
        visits(&graph, &timing, "4")[0].arrival
    };
    assert_eq!(arrivals(NodeKind::Any, &[2]), Interval::exactly(ms(10)));
    assert_eq!(arrivals(NodeKind::Held, &[2]), Interval::between(ms(12), ms(14)));
    // On one of the two ways only.
    assert_eq!(arrivals(NodeKind::Held, &[2, 3]), Interval::between(ms(10), ms(14)));
}

#[test]
fn a_loop_of_unknown_rounds_in_which_time_passes_has_no_bound() {
    let (graph, timing) = single(vec![
        node("0", NodeKind::Start, &[1]),
        node("1", NodeKind::Any, &[2, 3]),
        node("2", point(PointKind::Soft, 1), &[1]),
        node("3", point(PointKind::Soft, 5), &[3]),
    ]);
    assert_eq!(visits(&graph, &timing, "3")[0].arrival, Interval::from(Span::ZERO));
    assert_eq!(timing.causes[0].kind, CauseKind::Loop);
    let (graph, timing) = single(vec![
        node("0", NodeKind::Start, &[1]),
        node("1", NodeKind::Any, &[2, 3]),
        node("2", code(0, 0), &[1]),
        node("3", point(PointKind::Soft, 5), &[4]),
        node("4", NodeKind::End, &[]),
    ]);
    assert_eq!(visits(&graph, &timing, "3")[0].release, Interval::exactly(ms(5)));
    assert!(timing.causes.is_empty());
}

#[test]
fn an_unknown_delay_has_no_bound() {
    let what =
        NodeKind::Point { kind: PointKind::Soft, period: Expression::Unknown, deadline: None };
    let nodes = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", what, &[2]),
        node("2", NodeKind::End, &[]),
    ];
    let (graph, timing) = single(nodes);
    assert_eq!(visits(&graph, &timing, "1")[0].release, Interval::from(Span::ZERO));
    assert_eq!(timing.causes[0].kind, CauseKind::Delay);
}

/// `period` and one message per round, against a reader that takes one in `takes` milliseconds.
fn rates(capacity: u32, takes: i64) -> Timing {
    let writer = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", write(0), &[2]),
        node("2", point(PointKind::Soft, 1), &[1]),
    ];
    let reader = vec![
        node("3", NodeKind::Start, &[1]),
        node("4", read(0), &[2]),
        node("5", point(PointKind::Soft, takes), &[1]),
    ];
    let graph = graph(vec![fifo(capacity)], vec![task("w", 0, writer), task("r", 0, reader)]);
    time(&graph, Level::Program, &[], Limits::default())
}

#[test]
fn a_channel_that_is_read_too_slowly_overflows() {
    assert!(rates(1, 1).hazards.iter().all(|t| matches!(t, Hazard::Overflow { .. })));
    assert!(rates(8, 1).hazards.is_empty());
    assert!(matches!(rates(8, 2).hazards[..], [Hazard::Overflow { .. }]));
    assert!(matches!(rates(500, 2).hazards[..], [Hazard::Overflow { .. }]));
}

/// The reader may take the first message before the second write, which has room then: found by
/// random systems.
#[test]
fn a_write_that_the_reader_waits_for_may_have_room() {
    let perhaps = NodeKind::Branch(Expression::Unknown);
    let writer = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", perhaps.clone(), &[2, 3]),
        node("2", write(0), &[3]),
        node("3", perhaps, &[4, 5]),
        node("4", point(PointKind::Soft, 4), &[5]),
        node("5", write(0), &[6]),
        node("6", point(PointKind::Soft, 10), &[1]),
    ];
    let reader = vec![
        node("7", NodeKind::Start, &[1]),
        node("8", point(PointKind::Soft, 3), &[2]),
        node("9", read(0), &[1]),
    ];
    let graph = graph(vec![fifo(1)], vec![task("w", 0, writer), task("r", 0, reader)]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let reads = visits(&graph, &timing, "9");
    assert_eq!(reads[0].release, Interval::between(ms(3), ms(4)));
    // Written at 0 and at 4, read at 3 and at 6.
    assert!(reads[1].release.lo <= ms(6), "{:?}", reads[1].release);
}

/// One message in a millisecond over the network, of which 16 may wait, for a reader that begins to
/// read them so much later.
fn behind(late: i64) -> Timing {
    let writer = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", write(0), &[2]),
        node("2", point(PointKind::Soft, 1), &[1]),
    ];
    let reader = vec![
        node("3", NodeKind::Start, &[1]),
        node("4", point(PointKind::Soft, late), &[2]),
        node("5", read(0), &[3]),
        node("6", point(PointKind::Soft, 1), &[2]),
    ];
    let channel = network(Interval::exactly(Span::from_us(100)));
    let graph = graph(vec![channel], vec![task("w", 0, writer), task("r", 1, reader)]);
    time(&graph, Level::Program, &[], Limits { rounds: 40, ..Limits::default() })
}

#[test]
fn messages_for_which_no_room_is_left_on_the_readers_host_have_no_pattern() {
    assert_eq!(behind(10).verdict(), Composability::Composable);
    assert!(behind(10).regime.is_some());
    for late in [20, 200] {
        assert!(behind(late).regime.is_none());
        assert_ne!(behind(late).verdict(), Composability::Composable);
    }
}

/// Found by the hunt for verbs: three thousand readers took minutes, a little more for each row.
#[test]
fn of_thousands_of_tasks_that_are_joined_the_table_is_short() {
    let of = |readers: usize| {
        let writer = vec![
            node("0", NodeKind::Start, &[1]),
            node("1", write(0), &[2]),
            node("2", point(PointKind::Soft, 1), &[1]),
        ];
        let reader = vec![
            node("0", NodeKind::Start, &[1]),
            node("1", NodeKind::Read { channel: 0, waits: true }, &[1]),
        ];
        let mut tasks = vec![task("writer", 0, writer)];
        tasks.extend((0..readers).map(|_| task("reader", 0, reader.clone())));
        let graph = graph(vec![fifo(8)], tasks);
        time(&graph, Level::Program, &[], Limits::default()).rows.len()
    };
    // Nine rows of each, where nothing is cut short.
    assert!(of(500) > 9 * 500);
    assert!(of(2_000) <= 10_000_000 / 2_001);
}

#[test]
fn a_task_of_which_nobody_knows_when_it_is_started_is_looked_at_with_who_starts_it() {
    let points = 100;
    let mut starter = vec![node("0", NodeKind::Start, &[1])];
    let at = |at: usize| node(&format!("1.{at}"), point(PointKind::Soft, 1), &[at + 1]);
    starter.extend((1..=points).map(at));
    starter.push(node("2", NodeKind::Run { task: 1 }, &[points + 2]));
    starter.push(node("3", NodeKind::Any, &[points + 3]));
    starter.push(node("4", point(PointKind::Soft, 1), &[points + 2]));
    let started =
        vec![node("5", NodeKind::Start, &[1]), node("6", point(PointKind::Soft, 1), &[1])];
    let started = Task { is_first: false, ..task("b", 0, started) };
    let graph = graph(vec![], vec![task("a", 0, starter), started]);
    let of =
        |rows| time(&graph, Level::Program, &[], Limits { rounds: 4, rows, ..Limits::default() });
    let all = of(1_000);
    assert_eq!(all.components.len(), 2);
    assert!(all.components.iter().all(|one| matches!(one.course, Course::Repeats { .. })));
    // The table ends before that.
    let short = of(50);
    assert!(short.components.iter().all(|one| matches!(one.course, Course::Open { .. })));
    assert!(short.components.iter().any(|one| one.tasks == [0, 1]), "{:?}", short.components);
    assert!(matches!(short.verdict(), Composability::Unproven { .. }));
}

#[test]
fn tasks_that_wait_for_each_other_are_named() {
    let side = |reads: usize, places: [&str; 3]| {
        vec![
            node(places[0], NodeKind::Start, &[1]),
            node(places[1], read(reads), &[2]),
            node(places[2], write(1 - reads), &[1]),
        ]
    };
    let tasks =
        vec![task("a", 0, side(0, ["1", "2", "3"])), task("b", 0, side(1, ["4", "5", "6"]))];
    let graph = graph(vec![fifo(4), fifo(4)], tasks);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let [Hazard::Deadlock { rows }] = &timing.hazards[..] else { panic!("{timing:?}") };
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_deadline_ends_a_circle_of_waiting() {
    let first = vec![
        node("1", NodeKind::Start, &[1]),
        guarded("2", read(0), &[2], 2),
        node("3", point(PointKind::Firm, 10), &[3]),
        node("4", write(1), &[1]),
    ];
    let second =
        vec![node("5", NodeKind::Start, &[1]), node("6", read(1), &[2]), node("7", write(0), &[1])];
    let graph = graph(vec![fifo(4), fifo(4)], vec![task("a", 0, first), task("b", 0, second)]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    assert_eq!(releases(&graph, &timing, "6")[..2], [10, 20]);
    assert!(timing.hazards.is_empty());
}

/// Listing 11 of the paper, or, with `running`, without its counter, and Listing 12.
fn stopped_at_any_time(counts: bool, rounds: i64) -> (Graph, Timing) {
    use onbeat_model::graph::Binary;
    let counter = || Box::new(Expression::Register(0));
    let goes_on = Expression::Binary(Binary::Less, counter(), Box::new(constant(rounds)));
    let value = Expression::Binary(Binary::Add, counter(), Box::new(constant(1)));
    let wait =
        |next: &str, to: &[usize]| node(next, NodeKind::Write { channel: 0, waits: true }, to);
    let writer = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", NodeKind::Set { register: 0, value: constant(0) }, &[2]),
        node("2", if counts { NodeKind::Branch(goes_on) } else { NodeKind::Any }, &[3, 7]),
        node(
            "3",
            if rounds > 1_000 { NodeKind::Any } else { NodeKind::Branch(constant(1)) },
            &[4, 7],
        ),
        wait("22", &[5]),
        node("25", point(PointKind::Soft, 20), &[6]),
        node("6", NodeKind::Set { register: 0, value }, &[2]),
        wait("29", &[8]),
        node("30", NodeKind::End, &[]),
    ];
    let reader = vec![
        node("10", NodeKind::Start, &[1]),
        node("13", NodeKind::Read { channel: 0, waits: true }, &[2]),
        node("17", NodeKind::Branch(Expression::Unknown), &[3, 1]),
        node("23", NodeKind::End, &[]),
    ];
    let mut writer = task("writer", 0, writer);
    writer.registers = 1;
    let channel = network(Interval::between(Span::from_us(100), ms(2)));
    let graph = graph(vec![channel], vec![writer, task("reader", 1, reader)]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    (graph, timing)
}

#[test]
fn listings_11_and_12_may_stop_in_any_round_and_are_composable() {
    for counts in [false, true] {
        let (graph, timing) = stopped_at_any_time(counts, 900_000);
        assert_eq!(timing.causes, []);
        assert_eq!(releases(&graph, &timing, "13")[..4], [3, 23, 43, 63]);
        assert_eq!(arrivals(&graph, &timing, "29")[..4], [0, 20, 40, 60]);
        assert_eq!(visits(&graph, &timing, "29")[3].iteration, [4]);
        assert!(timing.rows.iter().all(|row| row.release.hi.is_some()));
        assert_eq!(timing.regime.map(|pattern| pattern.shift), Some(ms(20)));
    }
}

#[test]
fn a_loop_of_some_hundred_rounds_ends_exactly() {
    let (graph, timing) = stopped_at_any_time(true, 250);
    let [end] = visits(&graph, &timing, "29")[..] else { panic!("one visit") };
    assert_eq!((end.arrival, end.is_certain), (Interval::exactly(ms(5_000)), true));
    assert_eq!(visits(&graph, &timing, "22").len(), 250);
}

#[test]
fn a_counter_beside_a_register_that_comes_again_is_forgotten_alone() {
    use onbeat_model::graph::Binary;
    let register = |number| Box::new(Expression::Register(number));
    let next = |number| Expression::Binary(Binary::Add, register(number), Box::new(constant(1)));
    let turn = Expression::Binary(Binary::Remainder, Box::new(next(1)), Box::new(constant(4)));
    let less = Expression::Binary(Binary::Less, register(0), Box::new(constant(1_000_000)));
    let mut task = task(
        "t",
        0,
        vec![
            node("0", NodeKind::Start, &[1]),
            node("1", NodeKind::Set { register: 0, value: constant(0) }, &[2]),
            node("2", NodeKind::Set { register: 1, value: constant(0) }, &[3]),
            node("3", NodeKind::Branch(less), &[4, 9]),
            node("4", NodeKind::Set { register: 0, value: next(0) }, &[5]),
            node("5", NodeKind::Set { register: 1, value: turn }, &[6]),
            node("6", NodeKind::Branch(Expression::Register(1)), &[8, 7]),
            node("7", point(PointKind::Soft, 5), &[8]),
            node("8", point(PointKind::Soft, 10), &[3]),
            node("9", NodeKind::End, &[]),
        ],
    );
    task.registers = 2;
    let graph = graph(vec![], vec![task]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let pattern = timing.regime.unwrap_or_else(|| panic!("it comes again"));
    assert_eq!((pattern.shift, pattern.tasks[0].map(|t| t.1)), (ms(45), Some(4)));
    assert!(timing.rows.iter().all(|row| row.arrival.is_exact()));
}

#[test]
fn who_waits_for_what_an_unknown_delay_holds_up_is_no_culprit_besides_it() {
    let delay =
        NodeKind::Point { kind: PointKind::Soft, period: Expression::Unknown, deadline: None };
    let writer = vec![
        node("0", NodeKind::Start, &[1]),
        node("1", NodeKind::Any, &[2, 4]),
        node("2", delay, &[3]),
        node("3", write(0), &[1]),
        node("4", NodeKind::End, &[]),
    ];
    let reader = vec![node("5", NodeKind::Start, &[1]), node("6", read(0), &[1])];
    let graph = graph(vec![fifo(8)], vec![task("w", 0, writer), task("r", 0, reader)]);
    let timing = time(&graph, Level::Program, &[], Limits::default());
    let culprits: Vec<_> = timing.causes.iter().map(|culprit| &culprit.kind).collect();
    assert_eq!(culprits, [&CauseKind::Delay]);
}
