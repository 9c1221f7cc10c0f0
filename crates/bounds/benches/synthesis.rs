//! How long gate schedules take to be made: the set in the published style, and networks of up to
//! 45,000 streams.

#[path = "../tests/synthesis/generate.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod generate;

use generate::{Periods, Topology, published, published_set};
use onbeat_bounds::synthesis::{Waiting, synthesize};
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn main() {
    let set = published_set(2_024);
    for waiting in [Waiting::Allowed, Waiting::None] {
        let (mut solved, mut proven) = (0, 0);
        let begun = Instant::now();
        for instance in &set {
            match synthesize(&instance.network, &instance.flows, waiting) {
                Ok(_) => solved += 1,
                Err(refusal) => proven += u32::from(refusal.is_proven),
            }
        }
        let time = begun.elapsed().as_secs_f64();
        let open = set.len() as u32 - solved - proven;
        println!(
            "256, waiting {waiting:?}: {solved} solved, {proven} proven, {open} open in {time:.2} s"
        );
    }
    let sizes = [(100, 16), (1_000, 100), (5_000, 400), (10_000, 900), (45_000, 1_000)];
    let both = |size| [(size, Topology::Mesh), (size, Topology::Random)];
    let both = sizes.into_iter().flat_map(both);
    for ((streams, bridges), topology) in both {
        let instance = published(1, streams, bridges, topology, Periods::Sparse);
        let hops: usize = instance.flows.iter().map(|flow| flow.hops.len()).sum();
        let begun = Instant::now();
        let result = synthesize(&instance.network, &instance.flows, Waiting::Allowed);
        let time = begun.elapsed().as_secs_f64();
        let what = match result {
            Ok(_) => "solved".to_owned(),
            Err(refusal) if refusal.is_proven => format!("infeasible: {:.60?}", refusal.why),
            Err(refusal) => format!("open: {:.60?}", refusal.why),
        };
        let network = format!("{streams} streams, {bridges} bridges, {topology:?}, {hops} hops");
        println!("{network}: {time:.3} s, {what:.90}");
    }
}
