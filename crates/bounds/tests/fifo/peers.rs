//! Beside panco and its exponential program, which is exact for trees of fluid servers.

use crate::families::{Shape, network, worst};
use crate::published::PUBLISHED;

#[test]
fn total_flow_analysis_agrees_with_the_published_figures() {
    for (shape, size, load, total, _) in PUBLISHED {
        let bounds = network(shape, size, load).total_flow().unwrap();
        let found = bounds.map(|bounds| (worst(&bounds).as_ns() + 50) / 100);
        assert_eq!(found, total, "{shape:?} of {size} at {load} %");
    }
}

#[test]
fn no_worst_flow_is_above_the_published_polynomial_program() {
    for (shape, size, load, total, polynomial) in PUBLISHED {
        let bounds = network(shape, size, load).bounds().unwrap().expect("a bound");
        let found = worst(&bounds).as_ns();
        assert!(found <= polynomial * 100, "{shape:?} of {size} at {load} %: {found}");
        assert!(total.is_none_or(|total| found <= total * 100 + 100));
    }
}

#[test]
fn the_worst_of_a_tandem_of_four_is_the_exact_one() {
    // The exponential program: 427.2 µs.
    let bounds = network(Shape::Tandem, 4, 60).bounds().unwrap().expect("a bound");
    assert!((427_150..=427_250).contains(&worst(&bounds).as_ns()));
}

#[test]
fn every_flow_is_at_most_as_late_as_total_flow_analysis_says() {
    for (shape, sizes) in
        [(Shape::Tandem, vec![2, 3, 5, 7]), (Shape::Ring, vec![4, 5, 6]), (Shape::Mesh, vec![5, 7])]
    {
        for size in sizes {
            for load in [30, 60, 90] {
                let network = network(shape, size, load);
                let bounds = network.bounds().unwrap().expect("a bound");
                let Some(total) = network.total_flow().unwrap() else { continue };
                for (flow, (best, total)) in bounds.hops.iter().zip(&total.hops).enumerate() {
                    for (best, total) in best.iter().zip(total) {
                        let at = format!("{shape:?} of {size} at {load} %, flow {flow}");
                        assert!(best.total <= total.total, "{at}");
                        assert!(best.delay <= total.delay, "{at}");
                    }
                }
            }
        }
    }
}

#[test]
fn rings_at_ninety_percent_have_bounds_where_total_flow_analysis_has_none() {
    for size in [5, 6, 7] {
        let network = network(Shape::Ring, size, 90);
        assert!(network.bounds().unwrap().is_some(), "ring of {size}");
    }
    assert_eq!(network(Shape::Ring, 7, 90).total_flow().unwrap(), None);
}

#[test]
fn bounds_are_as_tight_as_they_were() {
    // In tenths of a microsecond; to a thousandth.
    for (shape, size, load, found) in [
        (Shape::Tandem, 8, 60, 9_424),
        (Shape::Tandem, 8, 90, 12_755),
        (Shape::Mesh, 7, 90, 8_785),
        (Shape::Ring, 4, 90, 13_035),
        (Shape::Ring, 6, 60, 9_914),
        (Shape::Ring, 8, 90, 39_310),
    ] {
        let bounds = network(shape, size, load).bounds().unwrap().expect("a bound");
        let worst = worst(&bounds).as_ns() / 100;
        let near = found - found / 1_000 - 1..=found + found / 1_000 + 1;
        assert!(near.contains(&worst), "{shape:?} of {size} at {load} %: {worst}");
    }
}
