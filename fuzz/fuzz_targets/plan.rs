//! No octets make the reader of plans panic, nor what compares them; a plan is no different from
//! itself.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Ok(plan) = onbeat_bounds::PlanDocument::read(octets) else { return };
    assert!(onbeat_bounds::difference(&plan, &plan).nodes.is_empty());
});
