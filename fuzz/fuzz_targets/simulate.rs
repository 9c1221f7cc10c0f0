//! What the description's reader accepts is planned and simulated without a panic. (That no bound
//! is exceeded is for the tests of `plan`, whose random systems reach further than random text.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_model::stream::Source;
use onbeat_model::system::System;
use onbeat_model::time::Span;
use onbeat_net::{Phases, Simulation, simulate_one};

const DURATION: Span = Span::from_us(200);

/// More would take the time of thousands of other inputs.
const FRAMES_MAX: i64 = 20_000;
const LOOKS_MAX: u32 = 1_000;

/// Not more frames at the sources than one input may cost.
fn is_small(system: &System) -> bool {
    let frames = |interval: Span, at_once: u32| {
        (DURATION.as_ns() / interval.as_ns().max(1) + 1).saturating_mul(i64::from(at_once))
    };
    let streams = system.streams.iter().map(|stream| match &stream.source {
        Source::Periodic { interval, .. } | Source::Sporadic { interval, .. } => {
            frames(*interval, 1)
        }
        Source::Bursty { interval, frames: at_once } => frames(*interval, *at_once),
        Source::Trace(all) => all.len() as i64,
    });
    let channels = system.channels.iter().map(|channel| frames(channel.interval, 1));
    let noise = system.noise.iter().map(|noise| frames(noise.interval, 1));
    streams.chain(channels).chain(noise).fold(0, i64::saturating_add) <= FRAMES_MAX
}

fuzz_target!(|text: &str| {
    let (text, other) = text.split_once('\0').unwrap_or((text, ""));
    let file = |_: &str| Ok(other.to_owned());
    let loaded = onbeat_description::load("system.toml", text, &mut { file });
    let Some(system) = loaded.system.filter(is_small) else { return };
    let protected = onbeat_bounds::plan(&system, true);
    let Ok(plan) = protected.or_else(|_| onbeat_bounds::plan(&system, false)) else { return };
    onbeat_bounds::warnings(&system, &plan);
    for (repetition, phases) in
        [Phases::Described, Phases::Random, Phases::Aligned].into_iter().enumerate()
    {
        let wanted = Simulation { duration: DURATION, seed: 1, repetitions: 3, phases };
        let mut looks = 0;
        let mut progress = |_| {
            looks += 1;
            looks < LOOKS_MAX
        };
        let number = repetition as u32;
        let _overfull = simulate_one(&system, &plan, &wanted, number, None, &mut progress);
    }
});
