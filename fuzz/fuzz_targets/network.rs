//! No text makes the reader of FIFO networks panic; what it accepts is bounded without a panic, and
//! never worse by all methods than by total flow analysis.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Linear programs of larger networks would take the time of thousands of other inputs.
const SERVERS_MAX: usize = 6;
const FLOWS_MAX: usize = 8;

fuzz_target!(|text: &str| {
    let Ok(named) = onbeat_bounds::import::import(text) else { return };
    assert_eq!(named.flows.len(), named.network.flows.len());
    assert_eq!(named.servers.len(), named.network.servers.len());
    if named.servers.len() > SERVERS_MAX || named.flows.len() > FLOWS_MAX {
        return;
    }
    let total = named.network.total_flow();
    let tight = named.network.bounds();
    let (Ok(total), Ok(tight)) = (total, tight) else { return };
    let Some(total) = total else { return };
    let tight = tight.expect("total flow analysis is one of all methods");
    for (total, tight) in total.hops.iter().flatten().zip(tight.hops.iter().flatten()) {
        assert!(tight.total <= total.total);
    }
});
