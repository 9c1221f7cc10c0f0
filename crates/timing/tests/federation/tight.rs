//! Bounds are close to what happens where nothing else executes on the hosts of a chain.

use crate::build::{Build, because, us};
use crate::dice::Dice;
use crate::random::Case;
use crate::run::run;
use crate::sound::with_waits;
use onbeat_model::federation::{ReactionId, TagDelay, Trigger};
use onbeat_model::time::Span;
use onbeat_timing::federation::{Delivery, ReactionChain, Waits, analyse};
use std::collections::BTreeMap;

/// So many chains are looked at, each with some settings of the clocks.
const CHAINS: u64 = 250;

/// A chain through some federates, each on a host of its own with nothing else to do.
fn pipeline(dice: &mut Dice) -> Build {
    let federates = dice.between(1, 4) as usize;
    let mut built = Build::new(federates);
    built.0.environment.handlers_set = dice.chance(50);
    let period = dice.one(&[5_000, 10_000, 20_000]);
    let source = match dice.below(3) {
        0 => Trigger::Startup,
        1 => Trigger::Sporadic { action: "a".to_owned(), interval: Some(us(period)) },
        _ => Trigger::Timer { offset: us(dice.one(&[0, 700])), period: Some(us(period)) },
    };
    let mut cause = source;
    for federate in 0..federates {
        let mut last = ReactionId(0);
        for _ in 0..dice.between(1, 3) {
            last = built.reaction(federate, dice.between(20, 900), vec![cause]);
            let delay = match dice.below(4) {
                0 => TagDelay::Microstep,
                1 => TagDelay::Time(us(dice.between(100, 2_000))),
                _ => TagDelay::None,
            };
            cause = because(last, delay);
        }
        if federate + 1 < federates {
            let delivery = match dice.chance(50) {
                true => Delivery::Fixed(us(dice.between(400, 3_000))),
                false => Delivery::Between { min: Span::ZERO, max: us(dice.between(400, 3_000)) },
            };
            let after = match dice.below(3) {
                0 => TagDelay::None,
                1 => TagDelay::Microstep,
                _ => TagDelay::Time(us(dice.between(100, 6_000))),
            };
            let id = built.connect(last, federate + 1, after, delivery);
            built.0.federation.connections[id.index()].physical = dice.chance(15);
            cause = Trigger::Message(id);
        }
    }
    built
}

/// The longest that was seen of each chain, over signs of the clocks' errors.
fn longest(built: &mut Build, error: Span, seed: u64) -> BTreeMap<Vec<(ReactionId, usize)>, Span> {
    let federates = built.0.federation.federates.len();
    let mut longest = BTreeMap::new();
    for signs in 0..1_u64 << federates {
        for at in 0..federates {
            let sign = if signs >> at & 1 == 1 { 1 } else { -1 };
            built.clock(at, error, error * sign);
        }
        built.0.behaviour.seed = seed + signs;
        for (links, seen) in run(&built.0).chains {
            let Some(max) = seen.max else { continue };
            let known = longest.entry(links).or_insert(max);
            *known = max.max(*known);
        }
    }
    longest
}

fn check(
    case: &Case,
    chains: &[ReactionChain],
    seen: &BTreeMap<Vec<(ReactionId, usize)>, Span>,
) -> i64 {
    assert_eq!(chains.len(), 1, "a pipeline is one chain: {case:?}");
    let bound = chains[0].worst.clone().expect("all is known");
    let seen = seen.get(&chains[0].links).copied().expect("the chain executes");
    assert!(seen <= bound, "{seen} is beyond {bound}: {case:?}");
    bound.as_ns() * 1_000 / seen.as_ns()
}

#[test]
fn bounds_of_chains_on_idle_hosts_are_at_most_a_fifth_above_the_worst_that_happens() {
    let mut ratios = Vec::new();
    for seed in 0..CHAINS {
        let mut dice = Dice::new(seed);
        let mut built = pipeline(&mut dice);
        let error = Span::from_ns(dice.one(&[0, 500, 10_000]));
        for at in 0..built.0.federation.federates.len() {
            built.clock(at, error, Span::ZERO);
        }
        let analysis = analyse(&built.0.federation, &built.0.environment, Waits::Computed);
        built.0.federation = with_waits(&built.0.federation, &analysis);
        let seen = longest(&mut built, error, seed);
        let ratio = check(&built.0, &analysis.chains, &seen);
        assert!(ratio <= 1_200, "{ratio} of a thousand: {:?}", built.0);
        ratios.push(ratio);
    }
    ratios.sort_unstable();
    let quantile = |per_cent: usize| ratios[(ratios.len() - 1) * per_cent / 100];
    println!(
        "bound / seen in thousandths: median {}, 90 % {}, 99 % {}, most {}",
        quantile(50),
        quantile(90),
        quantile(99),
        quantile(100),
    );
}
