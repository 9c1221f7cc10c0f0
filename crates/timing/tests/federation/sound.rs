//! No bound is below what happens.

use crate::random::{Case, FEATURES, case, features};
use crate::run::run;
use onbeat_model::federation::{Federation, MaxWait};
use onbeat_model::time::Span;
use onbeat_net::federation::FederationObserved;
use onbeat_runtime::federate::Extent;
use onbeat_timing::federation::{
    Analysis, Deadline, Delivery, Environment, Figure, WaitVerdict, Waits, analyse,
};
use std::collections::BTreeMap;

/// The federation with the waits that the analysis found, where it found any.
pub(crate) fn with_waits(federation: &Federation, analysis: &Analysis) -> Federation {
    let mut all = federation.clone();
    for (federate, bounds) in all.federates.iter_mut().zip(&analysis.federates) {
        if let Ok(wait) = bounds.maxwait {
            federate.maxwait = Some(MaxWait::For(wait));
        }
    }
    for connection in &mut all.connections {
        connection.absent_after = None;
    }
    all
}

/// How many figures there were, how many of them are known.
#[derive(Debug, Default)]
struct Tally {
    known: usize,
    unknown: usize,
    tardy: u64,
    runs_without_tardy: usize,
}

impl Tally {
    fn most(&mut self, what: &str, bound: &Figure<Span>, seen: &Extent) {
        let Some(max) = seen.max else { return };
        match bound {
            Ok(bound) => {
                self.known += 1;
                assert!(max <= *bound, "{what}: {max} is beyond the bound {bound}");
            }
            Err(_) => self.unknown += 1,
        }
    }

    fn least(&mut self, what: &str, bound: &Figure<Span>, seen: &Extent) {
        if let (Some(min), Ok(bound)) = (seen.min, bound) {
            assert!(min >= *bound, "{what}: {min} is before {bound}");
        }
    }

    fn compare(&mut self, federation: &Federation, analysis: &Analysis, seen: &FederationObserved) {
        for (at, bounds) in analysis.reactions.iter().enumerate() {
            let name = &format!("reaction {at}");
            self.most(
                &format!("release of {name}"),
                &bounds.release_max,
                &seen.reactions[at].release,
            );
            self.least(
                &format!("release of {name}"),
                &bounds.release_min,
                &seen.reactions[at].release,
            );
            self.most(&format!("finish of {name}"), &bounds.finish_max, &seen.reactions[at].finish);
            self.least(
                &format!("finish of {name}"),
                &bounds.finish_min,
                &seen.reactions[at].finish,
            );
            if let Some(Deadline::Met { .. }) = bounds.deadline {
                assert_eq!(seen.reactions[at].misses, 0, "{name} misses its deadline");
            }
        }
        for (at, bounds) in analysis.connections.iter().enumerate() {
            self.most(&format!("sending on {at}"), &bounds.sent_max, &seen.connections[at].sent);
            self.least(&format!("sending on {at}"), &bounds.sent_min, &seen.connections[at].sent);
            if !federation.connections[at].physical {
                self.most(
                    &format!("arrival on {at}"),
                    &bounds.arrival_max,
                    &seen.connections[at].arrived,
                );
            }
        }
        let chains: BTreeMap<_, _> =
            analysis.chains.iter().map(|chain| (&chain.links, chain)).collect();
        for (links, seen) in &seen.chains {
            let Some(chain) = chains.get(links) else { continue };
            let what = format!("chain {links:?}");
            self.most(&what, &chain.worst, seen);
            self.least(&what, &chain.best, seen);
        }
    }
}

/// With the waits that were computed.
fn check_computed(case: &Case, tally: &mut Tally) {
    let analysis = analyse(&case.federation, &case.environment, Waits::Computed);
    let federation = with_waits(&case.federation, &analysis);
    let waiting = Case {
        federation: federation.clone(),
        environment: case.environment.clone(),
        clocks: case.clocks.clone(),
        behaviour: case.behaviour,
    };
    let seen = run(&waiting);
    tally.compare(&federation, &analysis, &seen);
    let mut is_judged = false;
    for (at, connection) in federation.connections.iter().enumerate() {
        if connection.physical {
            assert_eq!(seen.connections[at].tardy.count, 0, "what has no tag is not tardy");
        } else if analysis.federates[connection.to.index()].maxwait.is_ok() {
            assert_eq!(seen.connections[at].tardy.count, 0, "messages on {at} are tardy");
            is_judged |= seen.connections[at].arrived.count > 0;
        }
    }
    tally.runs_without_tardy += usize::from(is_judged);
}

/// With the waits of the model.
fn check_model(case: &Case, tally: &mut Tally) {
    let analysis = analyse(&case.federation, &case.environment, Waits::Model);
    // Where the model says nothing, the runtime would wait for ever.
    let mut federation = case.federation.clone();
    for (federate, bounds) in federation.federates.iter_mut().zip(&analysis.federates) {
        if federate.maxwait.is_none() {
            federate.maxwait = bounds.maxwait.clone().ok().map(MaxWait::For);
        }
    }
    let stated = Case {
        federation: federation.clone(),
        environment: case.environment.clone(),
        clocks: case.clocks.clone(),
        behaviour: case.behaviour,
    };
    let seen = run(&stated);
    tally.compare(&federation, &analysis, &seen);
    for (at, connection) in federation.connections.iter().enumerate() {
        let reader = &analysis.federates[connection.to.index()];
        if matches!(reader.verdict, WaitVerdict::Safe { .. }) {
            assert_eq!(seen.connections[at].tardy.count, 0, "messages on {at} are tardy");
        }
        tally.tardy += seen.connections[at].tardy.count;
    }
}

#[test]
fn no_bound_is_below_what_a_thousand_random_federations_do() {
    let mut tally = Tally::default();
    for seed in 0..1_000 {
        let case = case(seed);
        let check = std::panic::AssertUnwindSafe(|| {
            let mut own = Tally::default();
            check_computed(&case, &mut own);
            check_model(&case, &mut own);
            own
        });
        let own = std::panic::catch_unwind(check);
        let own = own.unwrap_or_else(|_| panic!("seed {seed}: {case:#?}"));
        tally.known += own.known;
        tally.unknown += own.unknown;
        tally.tardy += own.tardy;
        tally.runs_without_tardy += own.runs_without_tardy;
    }
    println!("{tally:?}");
    // Most figures must be known for this to say anything.
    assert!(tally.known > tally.unknown, "{tally:?}");
    assert!(tally.known > 8_000, "{tally:?}");
    assert!(tally.runs_without_tardy > 150, "{tally:?}");
    assert!(tally.tardy > 0, "waits of models are too short for nobody");
}

#[test]
fn the_generator_draws_all_that_a_federation_can_say() {
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..1_000 {
        for feature in features(&case(seed)) {
            *drawn.entry(feature).or_default() += 1;
        }
    }
    for feature in FEATURES {
        assert!(drawn.get(*feature).is_some_and(|count| *count >= 3), "{feature}: {drawn:?}");
    }
    for feature in drawn.keys() {
        assert!(FEATURES.contains(&feature.as_str()), "{feature} is not listed");
    }
}

#[test]
fn what_is_not_known_is_never_a_figure() {
    let mut seen = 0;
    for seed in 0..300 {
        let case = case(seed);
        let nothing = Environment {
            stations: Vec::new(),
            deliveries: vec![None; case.federation.connections.len()],
            handlers_set: true,
        };
        let analysis = analyse(&case.federation, &nothing, Waits::Computed);
        for reaction in &analysis.reactions {
            assert!(reaction.release_min.is_err() && reaction.finish_max.is_err());
        }
        for (at, connection) in analysis.connections.iter().enumerate() {
            assert!(connection.sent_max.is_err() && connection.arrival_max.is_err());
            let reader = case.federation.connections[at].to.index();
            if !case.federation.connections[at].physical {
                assert!(analysis.federates[reader].maxwait.is_err());
                seen += 1;
            }
        }
        assert!(analysis.chains.iter().all(|chain| chain.worst.is_err()));
    }
    assert!(seen > 100);
}

#[test]
fn the_deliveries_of_the_generator_are_longer_than_the_engine_takes() {
    // The run asserts it of each message between; this counts that there are such at all.
    let fixed = |seed| {
        let all = case(seed).environment.deliveries;
        all.iter().filter(|one| matches!(one, Some(Delivery::Fixed(_)))).count()
    };
    assert!((0..100).map(fixed).sum::<usize>() > 20);
}
