//! Bounds of the FIFO networks in `tests/fifo/families.rs`: how tight, and how long they take.
//!
//! `cargo bench -p onbeat-bounds --bench fifo` prints the table in `benches/bounds/README.md`.

#[path = "../tests/fifo/families.rs"]
mod families;

use families::{Shape, network, worst};
use onbeat_bounds::fifo::{Bounds, FifoNetwork};
use std::time::{Duration, Instant};

/// What panco (through Saihu) found for the worst flow, in µs, and the seconds of processor time
/// that it took: single runs, November 2026. Total flow analysis with shaping; polynomial program.
struct Published {
    total: Option<f64>,
    polynomial: f64,
    seconds: Option<f64>,
}

fn published(shape: Shape, size: usize, load: u64) -> Option<Published> {
    let (total, polynomial, seconds) = match (shape, size, load) {
        (Shape::Tandem, 4, 60) => (Some(522.8), 436.0, Some(0.04)),
        (Shape::Tandem, 8, 60) => (Some(1_364.7), 1_026.8, Some(0.08)),
        (Shape::Tandem, 8, 90) => (Some(3_720.0), 1_565.0, Some(0.10)),
        (Shape::Tandem, 12, 60) => (Some(2_472.7), 1_663.3, Some(0.31)),
        (Shape::Mesh, 7, 90) => (Some(1_055.2), 971.3, Some(0.23)),
        (Shape::Mesh, 9, 60) => (Some(2_444.5), 2_326.6, Some(0.98)),
        (Shape::Ring, 4, 90) => (Some(15_671.0), 1_435.0, Some(0.07)),
        (Shape::Ring, 8, 90) => (None, 5_624.0, Some(2.7)),
        (Shape::Ring, 10, 60) => (Some(2_839.0), 1_853.0, Some(14.3)),
        _ => return None,
    };
    Some(Published { total, polynomial, seconds })
}

/// The bounds, and the shortest of some measurements of how long they took.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed(run: impl Fn() -> Option<Bounds>) -> (Option<Bounds>, Duration) {
    let mut bounds = None;
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            bounds = run();
            start.elapsed()
        })
        .collect();
    times.sort();
    (bounds, times[0])
}

fn us(bounds: Option<&Bounds>) -> String {
    bounds.map_or("–".into(), |b| format!("{:.1}", worst(b).as_ns() as f64 / 1e3))
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn line(shape: Shape, size: usize, load: u64) {
    let network: FifoNetwork = network(shape, size, load);
    let (total, first) = timed(|| network.total_flow().expect("valid"));
    let (best, second) = timed(|| network.bounds().expect("valid"));
    let ratio = |best: &Bounds, total: &Bounds| {
        format!("{:.3}", worst(best).as_ns() as f64 / worst(total).as_ns() as f64)
    };
    let gain = best.as_ref().zip(total.as_ref()).map_or("–".into(), |(b, t)| ratio(b, t));
    let peer = published(shape, size, load).map_or("| | | | ".to_owned(), |p| {
        let infinite = || "–".to_owned();
        let best = best.as_ref().map_or(f64::INFINITY, |b| worst(b).as_ns() as f64 / 1e3);
        let faster =
            p.seconds.map_or_else(infinite, |s| format!("{:.0}", s / second.as_secs_f64()));
        let total = p.total.map_or_else(infinite, |total| format!("{total}"));
        format!("| {total} | {} | {:.3} | {faster} ", p.polynomial, best / p.polynomial)
    });
    let name = format!("{shape:?} of {size}").to_lowercase();
    println!(
        "| {name} | {load} | {} | {} | {} | {} | {gain} {peer}|",
        us(total.as_ref()),
        ms(first),
        us(best.as_ref()),
        ms(second),
    );
}

fn main() {
    println!(
        "| network | load | total flow, µs | ms | best, µs | ms | best/total | panco total, µs \
         | panco polynomial, µs | best/polynomial | times as fast |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let families = [
        (Shape::Tandem, vec![2, 4, 6, 8, 10, 12]),
        (Shape::Ring, vec![4, 6, 8, 10]),
        (Shape::Mesh, vec![5, 7, 9]),
    ];
    for (shape, sizes) in families {
        for size in sizes {
            [30, 60, 90].into_iter().for_each(|load| line(shape, size, load));
        }
    }
}
