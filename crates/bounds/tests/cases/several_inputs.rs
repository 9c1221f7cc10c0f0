//! Credit-based shaping with several inputs: a formula that was published is not a bound.

use crate::build::Net;
use crate::check::{Case, FAST, Shape};
use onbeat_model::time::Span;

/// `n` talkers with `n` frames each, all at once; every port on the way has an idleSlope of
/// 75 Mb/s. A frame occupies 1066 octets of the wire (1000 of data, UDP and IPv4, untagged). The
/// published simulation has 430 ns more than its transmissions: cables or forwarding.
fn simultaneous(n: usize) -> Case {
    let hosts: Vec<String> = (0..n).map(|i| format!("h{i}")).collect();
    let mut names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    names.push("sink");
    let mut net = Net::new(&names, &["b"]);
    for name in &names {
        net.link(name, "b", FAST);
    }
    net.bridge("b").forwarding = Span::from_ns(430);
    for host in &hosts {
        net.stream(host, &["sink"], 6, 1_066).frames(n);
        net.credit(host, "b", 6, 75);
    }
    net.credit("b", "sink", 6, 75);
    Case::new(net)
}

#[test]
fn the_first_instant_alone_is_no_bound_where_several_shaped_inputs_meet() {
    // Per size: the published simulated maximum, and the published formula: at both ports the sum
    // over input links (or local sources) of one largest frame, at the idleSlope, in 0.1 µs.
    let published = [(2, 5_102, 4_548), (3, 10_787, 6_822), (4, 18_747, 9_097)];
    for (n, simulated, formula) in published {
        let case = simultaneous(n);
        let longest = case.seen.streams.iter().map(|s| s.listeners[0].max.unwrap()).max().unwrap();
        let bounds = case.plan.streams.iter().map(|s| s.bounds[0].as_ref().unwrap().total());
        let bound = bounds.max().unwrap();
        assert_eq!((longest.as_ns() + 50) / 100, simulated);
        assert_eq!((2 * n as i64 * 8_528_000 / 75 + 50) / 100, formula);
        assert!(longest.as_ns() > formula * 100, "{longest} is within the formula");
        assert!(longest <= bound, "{longest} is beyond {bound}");
        assert!(bound.as_ns() * 100 <= longest.as_ns() * 112, "{bound} for {longest}");
    }
}
