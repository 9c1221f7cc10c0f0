//! Published examples.

use crate::dice::ns;
use onbeat_model::time::Span;
use onbeat_timing::schedule::assignment::priorities;
use onbeat_timing::schedule::sensitivity::{misses, scaling};
use onbeat_timing::schedule::{EDF, Load, Protocol, Section, Share, edf, fixed, is_feasible};

const CEILING: Protocol = Protocol::Ceiling;

/// C, T and D of each, the most urgent first.
fn ranked(tasks: &[(i64, i64, i64)]) -> Vec<Load> {
    let load = |(at, (c, t, d)): (usize, &(i64, i64, i64))| {
        Load::new(at, 50 - at as u32, ns(*c), ns(*t), ns(*d))
    };
    tasks.iter().enumerate().map(load).collect()
}

fn edf_set(tasks: &[(i64, i64, i64)]) -> Vec<Load> {
    ranked(tasks).into_iter().map(|load| Load { priority: EDF, ..load }).collect()
}

fn responses(loads: &[Load]) -> Vec<Option<i64>> {
    let all = 0..loads.len();
    all.map(|at| fixed::response(loads, at, CEILING).map(Span::as_ns)).collect()
}

fn some(of: &[i64]) -> Vec<Option<i64>> {
    of.iter().copied().map(Some).collect()
}

/// Liu and Layland 1973, section 4: T = 2 and 5.
#[test]
fn liu_and_layland_their_two_tasks() {
    let is_met = |a: i64, b: i64| is_feasible(&ranked(&[(a, 2, 2), (b, 5, 5)]), CEILING);
    let is_met_reversed = |a: i64, b: i64| is_feasible(&ranked(&[(b, 5, 5), (a, 2, 2)]), CEILING);
    assert!(is_met(1, 1) && is_met(1, 2) && !is_met(1, 3));
    assert!(is_met_reversed(1, 1) && !is_met_reversed(1, 2) && !is_met_reversed(2, 1));
}

/// Liu and Layland 1973, theorem 7: under EDF all of the processor can be used, and no more.
#[test]
fn liu_and_layland_all_of_the_processor_under_edf() {
    assert!(edf::is_feasible(&edf_set(&[(1, 2, 2), (1, 3, 3), (1, 6, 6)]), CEILING));
    assert!(!edf::is_feasible(&edf_set(&[(1, 2, 2), (1, 3, 3), (2, 11, 11)]), CEILING));
    assert!(!Share::of(&edf_set(&[(1, 2, 2), (1, 3, 3), (1, 6, 6)])).is_over());
    assert_eq!(Share::of(&edf_set(&[(1, 2, 2), (1, 3, 3)])).ppm(), 833_334);
}

/// The equation of Joseph and Pandya 1986 on the sets of Burns and Wellings, Real-Time Systems and
/// Programming Languages, chapter "Scheduling": task sets A, B, C and D.
#[test]
fn burns_and_wellings_their_task_sets() {
    assert_eq!(
        responses(&ranked(&[(10, 30, 30), (10, 40, 40), (12, 50, 50)])),
        some(&[10, 20, 52])
    );
    assert_eq!(responses(&ranked(&[(4, 16, 16), (5, 40, 40), (32, 80, 80)])), some(&[4, 9, 58]));
    assert_eq!(responses(&ranked(&[(5, 20, 20), (10, 40, 40), (40, 80, 80)])), some(&[5, 15, 80]));
    assert_eq!(responses(&ranked(&[(3, 7, 7), (3, 12, 12), (5, 20, 20)])), some(&[3, 6, 20]));
}

/// The tasks of the Generic Avionics Platform (Locke, Vogel and Mesler, RTSS 1991), C and T in
/// milliseconds, in the order of their priorities, all on one processor. The response times are no
/// published figures: they are worked out by hand, with the equation of Joseph and Pandya. The
/// last one: 139 = 1 + 3 + 6·(2 + 5) + 4·1 + 3·(3 + 5) + 3·8 + 2·(9 + 2) + 2·5 + 3 + 1 + 1 + 3 + 1.
#[test]
fn generic_avionics_platform() {
    let (tasks, expected): (Vec<_>, Vec<_>) = [
        ((3, 200), 3),    // weapon release
        ((2, 25), 5),     // radar tracking filter
        ((5, 25), 10),    // RWR contact management
        ((1, 40), 11),    // data bus poll device
        ((3, 50), 14),    // weapon aiming
        ((5, 50), 19),    // radar target update
        ((8, 59), 34),    // navigation update
        ((9, 80), 44),    // display graphic
        ((2, 80), 46),    // display hook update
        ((5, 100), 74),   // tracking target update
        ((3, 200), 96),   // navigation steering commands
        ((1, 200), 97),   // display stores update
        ((1, 200), 98),   // display key set
        ((3, 200), 137),  // display status update
        ((1, 1000), 138), // BET E status update
        ((1, 1000), 139), // navigation status
    ]
    .map(|((c, t), r)| ((c, t, t), r))
    .into_iter()
    .unzip();
    let tasks = ranked(&tasks);
    assert_eq!(responses(&tasks), some(&expected));
    assert_eq!(Share::of(&tasks).ppm(), 845_094);
}

/// Burns and Wellings: D < T, deadline monotonic priorities, where rate monotonic ones fail.
#[test]
fn burns_and_wellings_deadline_monotonic() {
    let tasks = [(3, 20, 5), (3, 15, 7), (4, 10, 10), (3, 20, 20)];
    assert_eq!(responses(&ranked(&tasks)), some(&[3, 6, 10, 20]));
    let mut open = ranked(&[tasks[2], tasks[1], tasks[0], tasks[3]]);
    assert!(!is_feasible(&open, CEILING));
    priorities(&mut open, &[true; 4], CEILING);
    assert!(is_feasible(&open, CEILING));
    let order: Vec<u32> = open.iter().map(|load| load.priority).collect();
    assert_eq!(order, [78, 79, 80, 77]);
}

/// Lehoczky, Sha and Ding 1989: C = 40, 40, 100, T = 100, 150, 350.
#[test]
fn lehoczky_sha_and_ding_their_example() {
    let tasks = ranked(&[(40, 100, 100), (40, 150, 150), (100, 350, 350)]);
    assert_eq!(responses(&tasks), some(&[40, 80, 300]));
}

/// Lehoczky 1990: C = 26 and 62, T = 70 and 100. The seven jobs of the second take 114, 102, 116,
/// 104, 118, 106 and 94: not the first takes longest.
#[test]
fn lehoczky_arbitrary_deadlines() {
    let mut tasks = ranked(&[(26, 70, 70), (62, 100, 118)]);
    assert_eq!(responses(&tasks), some(&[26, 118]));
    assert!(is_feasible(&tasks, CEILING));
    tasks[1].deadline = Some(ns(117));
    assert!(!is_feasible(&tasks, CEILING));
}

/// Burns and Wellings: a sporadic task that a periodic one with T = 20 releases at its end, which
/// is 1 to 15 after its release: two releases may be 5 apart.
#[test]
fn release_jitter_brings_jobs_together() {
    let mut tasks = ranked(&[(2, 20, 20), (4, 50, 50)]);
    assert_eq!(responses(&tasks), some(&[2, 6]));
    tasks[0].jitter = ns(15);
    assert_eq!(responses(&tasks), some(&[17, 8]));
    tasks[1].jitter = ns(3);
    assert_eq!(responses(&tasks), some(&[17, 11]));
}

/// The equation of Audsley et al. 1993, R = J + w with w = C + B + Σ ⌈(w + J)/T⌉ C, by hand. B is
/// the longest section of a less urgent task whose ceiling is as urgent at least.
#[test]
fn blocking_and_jitter_are_what_the_equation_says() {
    let mut tasks = ranked(&[(2, 10, 10), (3, 20, 20), (5, 50, 50), (6, 100, 100)]);
    let section = |resource, length| Section { resources: vec![resource], length: ns(length) };
    tasks[0].sections = vec![section(0, 1)];
    tasks[1].sections = vec![section(1, 1)];
    tasks[2].sections = vec![section(0, 2)];
    tasks[3].sections = vec![section(0, 3), section(1, 4)];
    tasks[0].jitter = ns(4);
    // 4 + (2 + 3); 3 + 4 + 2·2; 5 + 4 + 3 + 2·2; 6 + 5 + 3 + 3·2.
    assert_eq!(responses(&tasks), some(&[9, 11, 16, 20]));
    // Inherited: up to one section of each less urgent task, or of each resource.
    let inherited = fixed::response(&tasks, 0, Protocol::Inheritance);
    assert_eq!(inherited, Some(ns(4 + 2 + 3)));
    let inherited = fixed::response(&tasks, 1, Protocol::Inheritance);
    assert_eq!(inherited, Some(ns(3 + (2 + 4) + 2 * 2)));
    // Another one of them may have begun what is not preempted.
    tasks[3].non_preemptive = ns(3);
    let inherited = fixed::response(&tasks, 1, Protocol::Inheritance);
    assert_eq!(inherited, Some(ns(3 + (2 + 4) + 3 + 2 * 2)));
}

/// What the job before holds still, and what a less urgent task holds, are waited for both.
#[test]
fn a_late_job_waits_for_the_section_of_the_one_before_and_for_a_blocking_one() {
    let mut tasks = ranked(&[(2, 1_000, 1_000), (4, 10, 10), (6, 1_000, 1_000)]);
    let section = |resource, length| Section { resources: vec![resource], length: ns(length) };
    tasks[0].sections = vec![section(0, 1), section(1, 1)];
    tasks[1].sections = vec![section(0, 2)];
    tasks[1].thread = Some(1);
    tasks[2].sections = vec![section(1, 3)];
    // 4 + (2 + 3) + 2 is more than 10; of five jobs, the most urgent task delays one.
    assert_eq!(misses(&tasks, 1, 5, CEILING), 1);
    // Two jobs of one thread in turn: the other one is the one before.
    let period = Some(ns(20));
    let second = Load { offset: ns(10), period, ..tasks[1].clone() };
    tasks[1].period = period;
    tasks.push(second);
    assert_eq!(fixed::response(&tasks, 1, CEILING), Some(ns(4 + (2 + 3) + 2)));
}

/// Baruah, Rosier and Howell 1990, as in Buttazzo, Hard Real-Time Computing Systems, section 4.6:
/// the demand at 4, 5, 7, 10, 13, 16, 21, 22 is 2, 4, 7, 9, 11, 16, 18, 20.
#[test]
fn processor_demand_is_met_exactly_and_not_beyond() {
    assert!(edf::is_feasible(&edf_set(&[(2, 6, 4), (2, 8, 5), (3, 9, 7)]), CEILING));
    assert!(!edf::is_feasible(&edf_set(&[(2, 6, 4), (2, 8, 5), (4, 9, 7)]), CEILING));
    assert!(!edf::is_feasible(&edf_set(&[(2, 6, 4), (2, 8, 5), (3, 9, 6)]), CEILING));
    let jittery = |jitter| {
        let mut tasks = edf_set(&[(2, 6, 4), (2, 8, 5), (3, 9, 8)]);
        tasks[2].jitter = ns(jitter);
        tasks
    };
    assert!(edf::is_feasible(&jittery(1), CEILING) && !edf::is_feasible(&jittery(2), CEILING));
}

/// Under EDF, with the stack resource policy, what is due later blocks (Baker 1991).
#[test]
fn what_is_due_later_blocks_under_edf() {
    let section = |length| vec![Section { resources: vec![0], length: ns(length) }];
    let with = |length| {
        let mut tasks = edf_set(&[(2, 10, 5), (4, 20, 20)]);
        tasks[0].sections = section(1);
        tasks[1].sections = section(length);
        tasks
    };
    assert!(edf::is_feasible(&with(3), CEILING));
    assert!(!edf::is_feasible(&with(4), CEILING));
}

/// Tindell 1994: loads of one line with offsets do not come together.
#[test]
fn offsets_keep_loads_of_a_line_apart() {
    let mut tasks = ranked(&[(4, 20, 20), (4, 20, 20), (5, 20, 20)]);
    assert_eq!(responses(&tasks), some(&[4, 8, 13]));
    for (at, offset) in [(0, 0), (1, 10), (2, 4)] {
        tasks[at].transaction = 0;
        tasks[at].offset = ns(offset);
    }
    assert_eq!(responses(&tasks), some(&[4, 4, 5]));
}

#[test]
fn scaling_is_exact_at_its_border() {
    // 12 + 2·10 + 2·10 = 52 is 2 too late: at 50/52 it is in time.
    let ms = |tasks: &[(i64, i64, i64)]| {
        let all: Vec<_> =
            tasks.iter().map(|(c, t, d)| (c * 1_000_000, t * 1_000_000, d * 1_000_000)).collect();
        ranked(&all)
    };
    let tasks = ms(&[(10, 30, 30), (10, 40, 40), (12, 50, 50)]);
    assert_eq!(scaling(&tasks, CEILING, |_| true), Some(961_538));
    // Alone, the last one may grow to 10 ms.
    assert_eq!(scaling(&tasks, CEILING, |at| at == 2), Some(833_333));
    // Without deadlines, there may be as much to do as there is time.
    let mut idle = ranked(&[(5, 10, 10)]);
    idle[0].deadline = None;
    assert_eq!(scaling(&idle, CEILING, |_| true), Some(2_000_000));
}

/// A rare long job hits one job of a firm task, not each.
#[test]
fn a_rare_job_spoils_few() {
    let tasks = ranked(&[(6, 1_000, 1_000), (2, 10, 10), (3, 10, 10)]);
    assert_eq!(fixed::response(&tasks, 2, CEILING), Some(ns(13)));
    let of = |jobs| misses(&tasks, 2, jobs, CEILING);
    assert_eq!([of(5), of(10), of(20), of(100)], [1, 1, 1, 1]);
    let often = ranked(&[(6, 50, 50), (2, 10, 10), (3, 10, 10)]);
    assert_eq!([5, 20].map(|jobs| misses(&often, 2, jobs, CEILING)), [1, 6]);
}
