//! Bounds of FIFO networks.

#[path = "../tests/fifo/families.rs"]
mod families;

use families::{Shape, network};

fn main() {
    for (shape, size, load) in [
        (Shape::Tandem, 4, 60),
        (Shape::Tandem, 8, 60),
        (Shape::Tandem, 8, 90),
        (Shape::Tandem, 12, 60),
        (Shape::Mesh, 7, 90),
        (Shape::Mesh, 9, 60),
        (Shape::Ring, 4, 90),
        (Shape::Ring, 8, 90),
        (Shape::Ring, 10, 60),
    ] {
        let network = network(shape, size, load);
        let total = network.total_flow().expect("valid");
        let worst = total.map(|b| b.hops.iter().map(|h| h.last().unwrap().total.as_ns()).max());
        let start = std::time::Instant::now();
        let best = network.bounds().expect("valid");
        let took = start.elapsed();
        let best = best.map(|b| b.hops.iter().map(|h| h.last().unwrap().total.as_ns()).max());
        println!("{shape:?} {size} {load} {worst:?} {best:?} {took:?}");
    }
}
