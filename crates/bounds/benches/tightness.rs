//! How far bounds are above what a simulation finds: the families of FIFO networks as Ethernet
//! systems (`tests/fifo/ethernet.rs`).
//!
//! `cargo bench -p onbeat-bounds --bench tightness` prints the second table in
//! `benches/bounds/README.md`.
//!
//! The simulated maximum is the longest latency in three searches: aligned phases, random ones,
//! and per stream a climb from the longest of these: one stream's release times are changed at
//! random, and the change stays if the latency is not shorter then.

#[path = "../tests/fifo/ethernet.rs"]
mod ethernet;
#[path = "../tests/fifo/families.rs"]
#[expect(dead_code, reason = "the rest is for the fluid networks")]
mod families;

use families::Shape;
use onbeat_bounds::plan;
use onbeat_model::plan::Plan;
use onbeat_model::port::Selection;
use onbeat_model::stream::Source;
use onbeat_model::system::{PortId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::{Capture, FlowRef, Phases, Simulation, Transmission, simulate_one};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// Repetitions with aligned phases, and as many with random ones.
const REPETITIONS: u32 = 1_000;
/// Climbs for each stream, and for the one with the largest bound.
const CLIMBS: [u64; 2] = [1, 6];
/// Changes that are tried in each.
const STEPS: u32 = 5_000;
/// Intervals that each repetition lasts.
const INTERVALS: i64 = 8;

/// Per stream, when its frames are released.
type Releases = Vec<Vec<NetTime>>;

/// What a search found for one stream.
#[derive(Clone, Default)]
struct Longest {
    latency: Span,
    releases: Releases,
}

/// The shortest of three measurements.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed<T>(runs: u32, mut run: impl FnMut() -> T) -> (T, Duration) {
    let mut once = || {
        let start = Instant::now();
        (run(), start.elapsed())
    };
    let (mut found, mut shortest) = once();
    for _ in 1..runs {
        let (again, time) = once();
        (found, shortest) = (again, shortest.min(time));
    }
    (found, shortest)
}

/// Per stream its bound.
fn bounds(system: &System) -> (Plan, Option<Vec<Span>>) {
    let plan = plan(system, true).expect("streams alone can be planned");
    let bounds = plan.streams.iter().map(|s| s.bounds[0].as_ref().map(|bound| bound.total()));
    let bounds = bounds.collect();
    (plan, bounds)
}

/// A system whose bounds are sums over queues: the same one, but one talker's port, where nothing
/// waits for anything else, has asynchronous shaping, which leaves its class to the sum.
fn summed(system: &System) -> System {
    let mut system = system.clone();
    let port = system.nodes[0].ports[0];
    system.ports[port.index()].settings.selection[usize::from(ethernet::QUEUE)] =
        Selection::Asynchronous;
    system
}

struct Search<'a> {
    system: &'a System,
    plan: &'a Plan,
    interval: Span,
    /// Per stream.
    longest: Vec<Longest>,
}

impl Search<'_> {
    /// One repetition; returns the longest latency of one stream.
    fn run(&mut self, system: &System, what: Simulation, repetition: u32, stream: usize) -> Span {
        let talkers: Vec<PortId> =
            system.streams.iter().map(|s| system.node(s.talker).ports[0]).collect();
        let mut releases = vec![Vec::new(); talkers.len()];
        let mut sink = |sent: &Transmission| {
            let FlowRef::Stream(id) = sent.flow else { unreachable!("there are only streams") };
            releases[id.index()].push(sent.released);
        };
        let capture = Some(Capture { ports: &talkers, sink: &mut sink });
        let seen = simulate_one(system, self.plan, &what, repetition, capture, &mut |_| true)
            .expect("frames have room");
        let latencies = seen.streams.iter().map(|s| s.listeners[0].max.unwrap_or(Span::ZERO));
        for (longest, latency) in self.longest.iter_mut().zip(latencies) {
            if latency > longest.latency {
                *longest = Longest { latency, releases: releases.clone() };
            }
        }
        seen.streams[stream].listeners[0].max.unwrap_or(Span::ZERO)
    }

    fn simulate(&mut self, phases: Phases) {
        let duration = self.interval * INTERVALS;
        let what = Simulation { duration, seed: 1, repetitions: REPETITIONS, phases };
        for repetition in 0..REPETITIONS {
            self.run(self.system, what, repetition, 0);
        }
    }

    /// Climbs from what was found for one stream.
    fn climb(&mut self, stream: usize, mut at: Longest, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut system = self.system.clone();
        let phases = Phases::Described;
        for _ in 0..STEPS {
            let mut releases = at.releases.clone();
            change(&mut releases, self.interval, &mut random);
            let last = *releases.iter().flatten().max().expect("some frame");
            for (stream, times) in system.streams.iter_mut().zip(&releases) {
                let frames = times.iter().map(|t| (*t - NetTime::ZERO, stream.frame[1]));
                stream.source = Source::Trace(frames.collect());
            }
            let duration = last - NetTime::ZERO + Span::from_ns(1);
            let what = Simulation { duration, seed: 1, repetitions: 1, phases };
            let latency = self.run(&system, what, 0, stream);
            if latency >= at.latency {
                at = Longest { latency, releases };
            }
        }
    }
}

/// Moves the frames of one stream, from one of them on, by some time, as far as its interval and
/// the start of time allow.
fn change(releases: &mut Releases, interval: Span, random: &mut Xoshiro256PlusPlus) {
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let stream = below(releases.len());
    let times = &mut releases[stream];
    if times.is_empty() {
        return;
    }
    // As often all of them as some.
    let from = below(2) * below(times.len());
    let by = match below(6) {
        // Whole transmissions, at 200 Mb/s or 100 Mb/s, and just before or after.
        0 | 1 => (below(25) as i64 - 12) * 40_000 + below(3) as i64 - 1,
        which => {
            let reach = [100, 10_000, 200_000, interval.as_ns() as usize][which - 2];
            below(2 * reach + 1) as i64 - reach as i64
        }
    };
    let earliest = from.checked_sub(1).map_or(NetTime::ZERO, |before| times[before] + interval);
    let by = Span::from_ns(by).max(earliest - times[from]);
    times[from..].iter_mut().for_each(|time| *time += by);
}

fn us(span: Span) -> String {
    format!("{:.1}", span.as_ns() as f64 / 1e3)
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn ratio(whole: Span, part: Span) -> f64 {
    whole.as_ns() as f64 / part.as_ns() as f64
}

fn line(shape: Shape, size: usize, load: u64) {
    let system = ethernet::system(shape, size, load);
    let other = summed(&system);
    let (sum, first) = timed(3, || bounds(&other).1);
    let ((plan, bounds), second) = timed(3, || bounds(&system));
    let name = format!("{shape:?} of {size}").to_lowercase();
    let sum = sum.and_then(|sums| sums.into_iter().max()).map_or("–".to_owned(), us);
    let Some(bounds) = bounds else {
        println!("| {name} | {load} | {sum} | {} | – | {} | | | | | | |", ms(first), ms(second));
        return;
    };
    let interval = ethernet::interval(shape, size, load);
    let longest = vec![Longest::default(); system.streams.len()];
    let mut search = Search { system: &system, plan: &plan, interval, longest };
    let most = *bounds.iter().max().expect("a stream");
    let largest = bounds.iter().position(|bound| *bound == most).expect("it is one of them");
    let ((aligned, drawn), third) = timed(1, || {
        search.simulate(Phases::Random);
        let drawn = search.longest[largest].latency;
        search.simulate(Phases::Aligned);
        let aligned = search.longest[largest].latency;
        for stream in 0..bounds.len() {
            let start = search.longest[stream].clone();
            let climbs = CLIMBS[usize::from(stream == largest)];
            (0..climbs).for_each(|seed| search.climb(stream, start.clone(), seed));
        }
        (aligned, drawn)
    });
    let seen: Vec<Span> = search.longest.iter().map(|found| found.latency).collect();
    let mut ratios: Vec<f64> = bounds.iter().zip(&seen).map(|(b, s)| ratio(*b, *s)).collect();
    assert!(ratios.iter().all(|ratio| *ratio >= 1.0), "beyond a bound: {bounds:?}, {seen:?}");
    let of_largest = ratios[largest];
    ratios.sort_by(f64::total_cmp);
    println!(
        "| {name} | {load} | {sum} | {} | {} | {} | {} | {} | {} | {:.1} | {of_largest:.3} \
         | {:.3} |",
        ms(first),
        us(most),
        ms(second),
        us(drawn),
        us(aligned),
        us(seen[largest]),
        third.as_secs_f64(),
        ratios[ratios.len() / 2],
    );
}

fn main() {
    println!(
        "| network | load | sum over queues, µs | ms | bound, µs | ms | random, µs | \
         with aligned, µs | simulated, µs | s | bound/simulated | median |"
    );
    println!("| --- |{}", " ---: |".repeat(11));
    let families = [
        (Shape::Tandem, vec![2, 4, 8, 12]),
        (Shape::Ring, vec![4, 6, 8, 10]),
        (Shape::Mesh, vec![5, 7, 9]),
    ];
    for (shape, sizes) in families {
        for size in sizes {
            [30, 60, 90].into_iter().for_each(|load| line(shape, size, load));
        }
    }
}
