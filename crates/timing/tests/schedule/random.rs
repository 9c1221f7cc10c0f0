//! Ten thousand random sets: no response is above its bound; and equal to it where the theory is
//! exact.

use crate::dice::{Dice, Mix, loads, ns};
use crate::simulation::{Job, run, worst};
use onbeat_model::time::NetTime;
use onbeat_runtime::processor::Rank;
use onbeat_timing::schedule::assignment::priorities;
use onbeat_timing::schedule::sensitivity::{misses, scaled, scaling};
use onbeat_timing::schedule::{EDF, Load, Protocol, Share, edf, fixed, is_feasible, response};

/// Of each of the first five kinds.
const SETS: u64 = 2_000;

const CEILING: Protocol = Protocol::Ceiling;

fn t(load: &Load) -> i64 {
    load.period.expect("all are periodic").as_ns()
}

fn rank(load: &Load, nominal: i64) -> Rank {
    match load.priority {
        EDF => {
            let due = nominal + load.deadline.expect("all have deadlines").as_ns();
            Rank::by_deadline(NetTime::from_ns(due + 1_000))
        }
        priority => Rank::Fixed(priority),
    }
}

fn job(loads: &[Load], load: usize, nominal: i64, ready: i64, work: i64) -> Job {
    let pieces = vec![(rank(&loads[load], nominal), work)];
    Job { load, nominal, ready, pieces, until: None }
}

/// All come together, with their first jobs as late as they can be, and then as soon as they can.
fn together(loads: &[Load], until: i64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (at, load) in loads.iter().enumerate() {
        let mut nominal = -load.jitter.as_ns();
        while nominal < until {
            jobs.push(job(loads, at, nominal, nominal.max(0), load.wcet.as_ns()));
            nominal += t(load);
        }
    }
    jobs
}

/// As they may come: sporadic, late by any jitter, with less work at times.
fn anyhow(dice: &mut Dice, loads: &[Load], until: i64, is_strict: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (at, load) in loads.iter().enumerate() {
        let jitter = load.jitter.as_ns();
        let (mut nominal, mut before) = (dice.between(0, t(load)) - jitter, i64::MIN);
        while nominal < until {
            let late = if dice.chance(50) { jitter } else { dice.between(0, jitter) };
            // Jobs of a load do not overtake each other.
            let ready = (nominal + late).max(0).max(before);
            before = ready;
            let wcet = load.wcet.as_ns();
            let work = if dice.chance(70) { wcet } else { dice.between(1, wcet) };
            if ready <= nominal + jitter {
                jobs.push(job(loads, at, nominal, ready, work));
            }
            let apart = if is_strict || dice.chance(60) { 0 } else { dice.between(0, t(load)) };
            nominal += t(load) + apart;
        }
    }
    jobs
}

/// When the processor has nothing to do for the first time, if all come together.
fn idle(loads: &[Load]) -> Option<i64> {
    let mut at = 1;
    for _ in 0..10_000 {
        let work = |load: &Load| {
            let jobs = (at + load.jitter.as_ns() + t(load) - 1) / t(load);
            jobs * load.wcet.as_ns()
        };
        let next = loads.iter().map(work).sum::<i64>();
        if next <= at {
            return Some(at);
        }
        at = next;
    }
    None
}

fn bound(loads: &[Load], at: usize, protocol: Protocol) -> i64 {
    response(loads, at, protocol).map_or(i64::MAX, |response| response.as_ns())
}

fn never_above(loads: &[Load], jobs: Vec<Job>, protocol: Protocol, seed: u64) {
    let seen = worst(&run(jobs), loads.len());
    for (at, seen) in seen.iter().enumerate() {
        let bound = bound(loads, at, protocol);
        assert!(*seen <= bound, "seed {seed}: load {at} took {seen} of {bound}: {loads:?}");
    }
}

#[test]
fn under_fixed_priorities_the_longest_response_is_the_simulated_one() {
    let mut full = 0;
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let loads = loads(&mut dice, Mix { jitter: seed % 2 == 1, ..Mix::default() });
        full += u64::from(Share::of(&loads).ppm() > 900_000);
        let Some(end) = idle(&loads) else { continue };
        let seen = worst(&run(together(&loads, end)), loads.len());
        for (at, seen) in seen.iter().enumerate() {
            let bound = fixed::response(&loads, at, CEILING).map(|r| r.as_ns());
            assert_eq!(bound, Some(*seen), "seed {seed}: load {at} of {loads:?}");
        }
        never_above(&loads, anyhow(&mut dice, &loads, 400, false), CEILING, seed);
    }
    assert!(full > SETS / 20, "{full} sets used most of the time");
}

#[test]
fn under_edf_a_set_is_feasible_if_and_only_if_its_simulation_is() {
    let (mut feasible, mut late) = (0, 0);
    for seed in 10_000..10_000 + SETS {
        let mut dice = Dice::new(seed);
        let constrained = seed % 3 == 0;
        let mix = Mix { edf: true, constrained, jitter: seed % 2 == 1, ..Mix::default() };
        let loads = loads(&mut dice, mix);
        let Some(end) = idle(&loads) else { continue };
        let ends = run(together(&loads, end));
        let due = |load: usize| loads[load].deadline.expect("all have one").as_ns();
        let is_met = ends.iter().all(|(load, response)| response.is_some_and(|r| r <= due(*load)));
        let is_feasible = edf::is_feasible(&loads, CEILING);
        assert_eq!(is_feasible, is_met, "seed {seed}: {loads:?}");
        // The responses are another computation of the same.
        let is_in_time =
            |at: usize| edf::response(&loads, at, CEILING).is_some_and(|r| r.as_ns() <= due(at));
        assert_eq!((0..loads.len()).all(is_in_time), is_met, "seed {seed}: {loads:?}");
        never_above(&loads, anyhow(&mut dice, &loads, 400, false), CEILING, seed);
        *(if is_met { &mut feasible } else { &mut late }) += 1;
    }
    assert!(feasible > SETS / 5 && late > SETS / 5, "{feasible} feasible, {late} not");
}

#[test]
fn equal_priorities_and_lines_with_offsets_are_never_above_their_bounds() {
    for seed in 20_000..20_000 + SETS {
        let mut dice = Dice::new(seed);
        let mut loads = loads(&mut dice, Mix { equals: true, jitter: true, ..Mix::default() });
        // The first ones become a line.
        let period = loads[0].period;
        for at in 1..loads.len().min(3) {
            loads[at].transaction = 0;
            loads[at].period = period;
            loads[at].offset = ns(dice.between(0, t(&loads[0]) - 1));
        }
        if Share::of(&loads).is_over() {
            continue;
        }
        let mut jobs = Vec::new();
        let begin = dice.between(0, 40);
        for (at, load) in loads.iter().enumerate() {
            let jitter = load.jitter.as_ns();
            let begin = if load.transaction == 0 { begin } else { dice.between(0, 40) };
            let mut nominal = begin + load.offset.as_ns();
            let mut before = 0;
            while nominal < 500 {
                let late = if dice.chance(50) { jitter } else { dice.between(0, jitter) };
                before = (nominal + late).max(before);
                jobs.push(job(&loads, at, nominal, before, load.wcet.as_ns()));
                nominal += t(load);
            }
        }
        never_above(&loads, jobs, CEILING, seed);
    }
}

#[test]
fn with_ceilings_nobody_is_blocked_longer_than_the_bound() {
    let mut blocked = 0;
    for seed in 30_000..30_000 + SETS {
        let mut dice = Dice::new(seed);
        let mix = Mix { sections: true, jitter: seed % 2 == 1, ..Mix::default() };
        let loads = loads(&mut dice, mix);
        let ceiling = |resource: usize| {
            let uses = |load: &&Load| load.sections.iter().any(|s| s.resources == [resource]);
            loads.iter().filter(uses).map(|load| load.priority).max().unwrap_or(0)
        };
        let mut jobs = anyhow(&mut dice, &loads, 400, false);
        for job in &mut jobs {
            let Some(section) = loads[job.load].sections.first() else { continue };
            let (rank, work) = job.pieces[0];
            // At its release a job holds nothing.
            let held = section.length.as_ns().min(work - 1);
            let before = dice.between(1, work - held);
            let after = work - held - before;
            let top = Rank::Fixed(ceiling(section.resources[0]));
            job.pieces = [(rank, before), (top, held), (rank, after)].into();
            job.pieces.retain(|(_, amount)| *amount > 0);
        }
        let plain: Vec<Load> =
            loads.iter().map(|load| Load { sections: Vec::new(), ..load.clone() }).collect();
        let seen = worst(&run(jobs.clone()), loads.len());
        blocked += (0..loads.len()).filter(|at| seen[*at] > bound(&plain, *at, CEILING)).count();
        never_above(&loads, jobs.clone(), CEILING, seed);
        never_above(&loads, jobs, Protocol::Inheritance, seed);
    }
    assert!(blocked > 50, "{blocked} were blocked beyond what interference explains");
}

#[test]
fn no_more_jobs_miss_than_the_bound_says() {
    let (mut missed, mut tight, mut useful) = (0, 0, 0);
    for seed in 40_000..40_000 + SETS {
        let mut dice = Dice::new(seed);
        let mut loads = loads(&mut dice, Mix { constrained: true, ..Mix::default() });
        // One that seldom comes and takes long.
        if dice.chance(70) {
            let period = dice.between(100, 400);
            loads.push(Load::new(9, 9, ns(dice.between(3, 20)), ns(period), ns(period)));
        }
        if Share::of(&loads).is_over() {
            continue;
        }
        let lowest = loads.iter().map(|load| load.priority).min();
        let me = loads.iter().position(|l| Some(l.priority) == lowest).expect("there are some");
        loads[me].jitter = ns(dice.between(0, 2));
        let mut jobs = anyhow(&mut dice, &loads, 2_000, false);
        jobs.retain(|job| job.load != me);
        let begin = dice.between(0, 40);
        for nominal in (0..).map(|k| begin + k * t(&loads[me])).take_while(|at| *at < 2_000) {
            let late = dice.between(0, loads[me].jitter.as_ns());
            let mut mine = job(&loads, me, nominal, nominal + late, loads[me].wcet.as_ns());
            mine.until = loads[me].deadline.map(|deadline| nominal + deadline.as_ns());
            jobs.push(mine);
        }
        let ends = run(jobs);
        let mine: Vec<bool> =
            ends.iter().filter(|(load, _)| *load == me).map(|(_, end)| end.is_none()).collect();
        missed += mine.iter().filter(|is_missed| **is_missed).count();
        for window in [1, 5, 10, 20] {
            let most = mine.windows(window).map(|some| some.iter().filter(|m| **m).count()).max();
            let (most, window) = (most.unwrap_or(0), window as u32);
            let bound = misses(&loads, me, window, CEILING) as usize;
            assert!(most <= bound, "seed {seed}: {most} of {window}, not {bound}: {loads:?}");
            tight += usize::from(most == bound && most > 0 && most < window as usize);
            useful += usize::from(bound > 0 && bound < window as usize);
        }
    }
    assert!(missed > 1_000 && tight > 10 && useful > 100, "{missed}, {tight}, {useful}");
}

/// All orders of so many.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| insert(order, at))).collect()
}

#[test]
fn proposed_priorities_are_feasible_whenever_any_are() {
    let (mut found, mut none) = (0, 0);
    for seed in 50_000..50_600 {
        let mut dice = Dice::new(seed);
        let mix =
            Mix { jitter: true, sections: seed % 2 == 0, constrained: true, ..Mix::default() };
        let mut loads = loads(&mut dice, mix);
        loads.truncate(4);
        // Some state their priorities, far enough apart.
        let open: Vec<bool> = loads.iter().map(|_| dice.chance(70)).collect();
        for load in &mut loads {
            load.priority *= 10;
        }
        let stated: Vec<u32> = loads.iter().map(|load| load.priority).collect();
        let keeps = |ranks: &[u32]| {
            let fixed = || (0..ranks.len()).filter(|at| !open[*at]);
            fixed().all(|a| fixed().all(|b| (stated[a] < stated[b]) == (ranks[a] < ranks[b])))
        };
        let any = orders(loads.len()).into_iter().any(|order| {
            let mut ranks = vec![0; order.len()];
            (1..).zip(&order).for_each(|(rank, at)| ranks[*at] = rank);
            let ranked = loads.iter().zip(&ranks);
            let ranked: Vec<Load> =
                ranked.map(|(load, rank)| Load { priority: *rank, ..load.clone() }).collect();
            keeps(&ranks) && is_feasible(&ranked, CEILING)
        });
        priorities(&mut loads, &open, CEILING);
        assert_eq!(is_feasible(&loads, CEILING), any, "seed {seed}: {loads:?}");
        let kept =
            loads.iter().zip(&stated).zip(&open).all(|((l, s), open)| *open || l.priority == *s);
        assert!(kept, "seed {seed}: {loads:?}");
        *(if any { &mut found } else { &mut none }) += 1;
    }
    assert!(found > 50 && none > 50, "{found} feasible, {none} not");
}

#[test]
fn one_part_per_million_beyond_the_scaling_is_too_much() {
    for seed in 60_000..60_400 {
        let mut dice = Dice::new(seed);
        let mix = Mix { edf: seed % 2 == 0, sections: seed % 3 == 0, ..Mix::default() };
        let mut loads = loads(&mut dice, mix);
        for load in &mut loads {
            let longer = |span: onbeat_model::time::Span| ns(span.as_ns() * 1_000_003);
            (load.wcet, load.period) = (longer(load.wcet), load.period.map(longer));
            load.deadline = load.deadline.map(longer);
            load.sections.iter_mut().for_each(|s| s.length = longer(s.length));
        }
        let grown = |ppm: u64| {
            let mut grown = loads.clone();
            for load in &mut grown {
                load.wcet = scaled(load.wcet, ppm);
                load.sections.iter_mut().for_each(|s| s.length = scaled(s.length, ppm));
            }
            is_feasible(&grown, CEILING)
        };
        let ppm = scaling(&loads, CEILING, |_| true).expect("deadlines end growth");
        assert!(grown(ppm) && !grown(ppm + 1), "seed {seed}: {ppm} ppm of {loads:?}");
        assert_eq!(ppm >= 1_000_000, is_feasible(&loads, CEILING));
    }
}

#[test]
fn no_response_is_shorter_than_the_best() {
    let mut reached = 0;
    for seed in 70_000..70_500 {
        let mut dice = Dice::new(seed);
        let loads = loads(&mut dice, Mix::default());
        let shortest: Vec<_> =
            loads.iter().map(|load| ns(dice.between(1, load.wcet.as_ns()))).collect();
        let mut jobs = anyhow(&mut dice, &loads, 600, true);
        for job in &mut jobs {
            job.pieces[0].1 = shortest[job.load].as_ns();
        }
        let early =
            |load: usize| jobs.iter().filter(|job| job.load == load && job.nominal < 450).count();
        let early: Vec<usize> = (0..loads.len()).map(early).collect();
        // What is in flight at the begin, and at the end, is not periodic.
        let ends = run(jobs);
        for at in 0..loads.len() {
            let best = fixed::best_response(&loads, &shortest, at).as_ns();
            let mine = ends.iter().filter(|(load, _)| *load == at).filter_map(|(_, r)| *r);
            let seen = mine.take(early[at]).skip(10).min().unwrap_or(i64::MAX);
            assert!(seen >= best, "seed {seed}: load {at} took {seen}, not {best}: {loads:?}");
            reached += u64::from(seen == best && best > shortest[at].as_ns());
        }
    }
    assert!(reached > 20, "{reached} best responses beyond the execution time were seen");
}

/// A thread: phases, each with work, perhaps a wait and more work, until the next release.
struct Thread {
    /// Work before and after a wait, and the least time to the next release.
    phases: Vec<(i64, i64, i64)>,
    waits: bool,
}

/// What a thread does next, and when.
struct Moment {
    phase: usize,
    is_behind_wait: bool,
    /// Of the phase.
    release: i64,
    /// How long it has waited since.
    waited: i64,
}

/// The longest responses of each thread's phases, without waits.
fn threads(dice: &mut Dice, threads: &[Thread], until: i64) -> Vec<Vec<i64>> {
    use onbeat_model::time::Span;
    use onbeat_runtime::processor::Processors;
    let at = NetTime::from_ns;
    let mut worst: Vec<Vec<i64>> = threads.iter().map(|t| vec![0; t.phases.len()]).collect();
    let begin = |release| Moment { phase: 0, is_behind_wait: false, release, waited: 0 };
    let mut moments: Vec<Moment> = threads.iter().map(|_| begin(dice.between(0, 30))).collect();
    let mut starts: Vec<Option<i64>> = moments.iter().map(|m| Some(m.release)).collect();
    let mut processor = Processors::new(1);
    loop {
        let next = starts.iter().flatten().copied().min();
        let now = next.into_iter().chain(processor.next().map(NetTime::as_ns)).min();
        let Some(now) = now.filter(|now| *now < until) else { return worst };
        for id in processor.advance(at(now)) {
            let (thread, moment) = (&threads[id as usize], &mut moments[id as usize]);
            let (_, _, gap) = thread.phases[moment.phase];
            if thread.waits && !moment.is_behind_wait {
                let wait = dice.between(0, gap);
                moment.is_behind_wait = true;
                moment.waited += wait;
                starts[id as usize] = Some(now + wait);
                continue;
            }
            let longest = &mut worst[id as usize][moment.phase];
            *longest = (*longest).max(now - moment.release - moment.waited);
            let late = if dice.chance(70) { 0 } else { dice.between(0, gap) };
            let release = now.max(moment.release + gap + late);
            let phase = (moment.phase + 1) % thread.phases.len();
            *moment = Moment { phase, ..begin(release) };
            starts[id as usize] = Some(release);
        }
        for (id, start) in starts.iter_mut().enumerate().filter(|(_, s)| **s == Some(now)) {
            let (thread, moment) = (&threads[id], &moments[id]);
            let (before, after, _) = thread.phases[moment.phase];
            let work = if moment.is_behind_wait { after } else { before };
            let work = if dice.chance(70) { work } else { dice.between(1, work) };
            let rank = Rank::Fixed(1 + id as u32);
            processor.start(at(now), id as u64, 0, rank, Span::from_ns(work));
            *start = None;
        }
    }
}

#[test]
fn threads_with_phases_and_waits_are_never_above_their_bounds() {
    let (mut reached, mut all) = (0, 0);
    for seed in 80_000..81_000 {
        let mut dice = Dice::new(seed);
        let some: Vec<Thread> = (0..dice.between(2, 4))
            .map(|_| {
                let waits = dice.chance(40);
                let count = if waits { 1 } else { dice.between(1, 3) };
                let phase =
                    |dice: &mut Dice| (dice.between(1, 4), dice.between(1, 3), dice.between(8, 40));
                Thread { phases: (0..count).map(|_| phase(&mut dice)).collect(), waits }
            })
            .collect();
        let mut loads = Vec::new();
        for (number, thread) in some.iter().enumerate() {
            let period: i64 = thread.phases.iter().map(|(.., gap)| gap).sum();
            let mut offset = 0;
            for (before, after, gap) in &thread.phases {
                let work = if thread.waits { before + after } else { *before };
                let mut load =
                    Load::new(number, 1 + number as u32, ns(work), ns(period), ns(period));
                (load.thread, load.offset) = (Some(number), ns(offset));
                if thread.waits {
                    (load.suspensions, load.suspension_jitter) = (1, ns((gap - work).max(0)));
                }
                offset += gap;
                loads.push(load);
            }
        }
        let seen = threads(&mut dice, &some, 3_000).concat();
        for (at, seen) in seen.iter().enumerate() {
            let bound = bound(&loads, at, CEILING);
            assert!(*seen <= bound, "seed {seed}: load {at} took {seen} of {bound}: {loads:?}");
            all += 1;
            reached += u32::from(*seen == bound);
        }
    }
    assert!(reached > all / 4, "{reached} of {all} took as long as their bounds");
}
