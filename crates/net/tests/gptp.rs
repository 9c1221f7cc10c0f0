//! gPTP in virtual time: how far the clocks of chains and rings are from their grandmaster's.

use onbeat_model::time::{NetTime, Span};
use onbeat_net::gptp::{ErrorFigures, Fault, Scenario, Stamping, Trace, simulate};

fn at_s(s: i64) -> NetTime {
    NetTime::ZERO + Span::from_s(s)
}

fn run(scenario: &Scenario) -> Trace {
    simulate(scenario).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn explore() {
    for (hops, stamps, seconds) in [
        (7, Stamping::HARDWARE, 100),
        (7, Stamping::COARSE, 100),
        (7, Stamping::SOFTWARE, 100),
        (100, Stamping::HARDWARE, 100),
        (100, Stamping::COARSE, 100),
        (100, Stamping::SOFTWARE, 100),
    ] {
        let mut scenario = Scenario::chain(hops, stamps, 1);
        scenario.duration = Span::from_s(seconds);
        let trace = run(&scenario);
        let first = trace.samples.iter().find(|s| s.clocks.iter().all(Option::is_some));
        println!(
            "{hops} {stamps:?}: all set at {:?} of {} messages",
            first.map(|f| f.at),
            trace.messages
        );
        for node in [1, 7, 50, 100] {
            if node <= hops {
                println!("  {node}: {:?}", trace.error(node, at_s(40)));
            }
        }
        println!("  {:?}", trace.nodes[hops]);
    }
}
