//! What the verifier proves of a network holds in the engine.

use super::{drift, generated, master, network, program, run, settings, slave};
use crate::generator::Dice;
use onbeat_model::time::Span;
use onbeat_net::network_code::NetworkCodeSettings;
use onbeat_network_code::topology::{NetworkAssumptions, network_model};
use onbeat_network_code::verification::{ProofVerdict, verify};

/// The verdicts of the verifier by the names of properties.
fn verdict(verification: &onbeat_network_code::verification::Verification) -> [ProofVerdict; 3] {
    ["collision-free", "reception", "synchronisation"].map(|name| {
        let found = verification.properties.iter().find(|it| it.property.name() == name);
        found.expect("a property").verdict
    })
}

#[test]
fn collisions_that_are_excluded_happen_in_no_run_and_others_do() {
    let (mut proven, mut violated, mut seen) = (0, 0, 0);
    for seed in 0..80 {
        let mut dice = Dice::new(seed);
        let mut network = network(4, 1 + dice.below(2) as usize, 1_000);
        // A frame with its gap is on the wire for 0.672 µs: slots are apart or not.
        let slots: Vec<u64> = (0..3).map(|_| 20 + 2 * dice.below(8)).collect();
        let mut texts = vec![master(3, "1 Gbit/s", 100)];
        texts.extend((1..).zip(&slots).map(|(number, at)| slave(number, "1 Gbit/s", *at)));
        let programs: Vec<_> = texts.iter().map(|text| program(text)).collect();
        let assumptions = NetworkAssumptions { drift_ppb_max: 100_000, best_effort: None };
        let model = network_model(&network.system, &programs, assumptions).expect("a model");
        let [collides, receives, synchronises] = verdict(&verify(&model));
        assert_eq!([receives, synchronises], [ProofVerdict::Proven; 2], "seed {seed}");
        let (mut collisions, mut missed) = (0, 0);
        for run_seed in 0..3 {
            for host in 0..4 {
                drift(&mut network, host, dice.below(201) as i32 - 100);
            }
            let limits = NetworkCodeSettings {
                rounds: Some(100),
                start_within: Span::from_us(100),
                logs: false,
                ..settings(run_seed, Span::from_ms(20))
            };
            let observed = run(&network, generated(&network, &texts, seed), limits).observed;
            collisions += observed.collisions();
            let timeouts = observed.stations.iter().map(|station| station.counters.sync_timeouts);
            missed += observed.lost() + timeouts.sum::<u64>();
        }
        assert_eq!(missed, 0, "seed {seed}");
        match collides {
            ProofVerdict::Proven => {
                assert_eq!(collisions, 0, "seed {seed}: {slots:?} µs");
                proven += 1;
            }
            ProofVerdict::Violated => {
                violated += 1;
                seen += u32::from(collisions > 0);
            }
            ProofVerdict::Unknown => panic!("seed {seed}: {slots:?} µs"),
        }
    }
    eprintln!("{proven} proven, {violated} violated, of these {seen} with collisions");
    assert!(proven > 10 && violated > 10 && seen > 10);
}
