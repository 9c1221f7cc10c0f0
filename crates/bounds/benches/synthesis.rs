//! How much processor time gate schedules take to be made: the set in the published style, and
//! networks of up to 45,000 streams.

#[path = "../tests/synthesis/generate.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod generate;

use generate::{Periods, Topology, published, published_set};
use onbeat_bounds::synthesis::{Waiting, synthesize};

/// Seconds that this thread has been on a processor.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with it");
    let ns: f64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds");
    ns / 1e9
}

fn main() {
    let set = published_set(2_024);
    for waiting in [Waiting::Allowed, Waiting::None] {
        let (mut solved, mut proven) = (0, 0);
        let begun = processor_s();
        for instance in &set {
            match synthesize(&instance.network, &instance.flows, waiting) {
                Ok(_) => solved += 1,
                Err(refusal) => proven += u32::from(refusal.is_proven),
            }
        }
        let time = processor_s() - begun;
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
        let begun = processor_s();
        let result = synthesize(&instance.network, &instance.flows, Waiting::Allowed);
        let time = processor_s() - begun;
        let what = match result {
            Ok(_) => "solved".to_owned(),
            Err(refusal) if refusal.is_proven => format!("infeasible: {:.60?}", refusal.why),
            Err(refusal) => format!("open: {:.60?}", refusal.why),
        };
        let network = format!("{streams} streams, {bridges} bridges, {topology:?}, {hops} hops");
        println!("{network}: {time:.3} s, {what:.90}");
    }
}
