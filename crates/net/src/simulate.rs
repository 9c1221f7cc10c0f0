//! Simulations: a system with modelled traffic only, again and again, and what its probes saw.

use crate::align;
use crate::engine::{Engine, Options, Output, Overfull};
use crate::network_code::{CarryingStation, NetworkCode, NetworkCodeError};
use crate::participant::join_protocols;
use crate::random::{Purpose, Stream};
use crate::tap::Transmission;
use onbeat_model::observed::Observed;
use onbeat_model::plan::Plan;
use onbeat_model::stream::Source;
use onbeat_model::system::{PortId, System};
use onbeat_model::time::{NetTime, Span};
use std::borrow::Cow;

/// What has not arrived so long after the end of the traffic never will, as far as a simulation is
/// concerned: a gate that never opens would hold it for ever.
pub const DRAIN_LIMIT: Span = Span::from_s(60);

/// The most simulated time between two calls of a progress function: neither an interrupt nor the
/// memory of a capture waits for a hundredth of a month.
const LOOK_MAX: Span = Span::from_ms(1);

/// Longer than anything that is simulated, 100 years.
const WHOLE: Span = Span::from_s(100 * 365 * 24 * 3_600);

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// How long there is traffic, in each repetition. Frames in flight at the end still arrive,
    /// unless they take more than [`DRAIN_LIMIT`].
    pub duration: Span,
    /// Where all randomness comes from. Repetition 0 uses it as it is.
    pub seed: u64,
    /// How often.
    pub repetitions: u32,
    /// When the sources begin.
    pub phases: Phases,
}

/// When the sources of streams and modelled channels begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// As described.
    Described,
    /// Each at any time within its interval, drawn again for each repetition; a trace within its
    /// mean interval. Noise begins as described, and so do streams whose bounds hold for their
    /// phases only ([`StreamPlan::phase_specific`](onbeat_model::plan::StreamPlan::scheduled)).
    Random,
    /// A search for the worst case. Each repetition picks one listener of a channel or stream,
    /// those that meet the most other flows on their way first, and over again when all had their
    /// turn. One frame is followed along its way through an idle network. Where another flow of
    /// the same or a higher queue first meets it, that flow begins such that its frames arrive
    /// there just before the followed one: flows that come in by one link back to back, so that
    /// the last is just in time; and before the first of them the longest frame of a lower queue.
    /// The delay so far counts: later ports are met at the time at which the followed frame then
    /// gets there. Frames have their greatest length and sporadic sources their least interval;
    /// the first frame of a source with jitter is as late as it may be and all others are on time.
    /// What never meets the followed frame begins at random; from the second turn on, the order
    /// in which flows meet it is drawn, too. Where anything is reserved, best effort that the
    /// description does not know is at its worst, in three of four repetitions
    /// ([`Engine::meet_best_effort`]). This finds near-worst latencies where queues are
    /// first in, first out, or shaped by credit. It is no proof: gates and regulators are not
    /// looked at, and stack delays count with their least value.
    Aligned,
}

/// What is to be captured in a simulation.
pub struct Capture<'a> {
    /// At which ports.
    pub ports: &'a [PortId],
    /// Gets every transmission that starts there, in order.
    pub sink: &'a mut dyn FnMut(&Transmission),
}

/// Simulates all repetitions, one after the other, and puts together what they saw. `progress` is
/// told the repetition, from 0, and its time, and says whether to continue; what was seen until
/// then is returned all the same.
///
/// # Errors
/// When more frames wait than an engine keeps.
///
/// # Panics
/// As [`Engine::new`].
pub fn simulate(
    system: &System,
    plan: &Plan,
    simulation: &Simulation,
    progress: &mut dyn FnMut(u32, NetTime) -> bool,
) -> Result<Observed, Overfull> {
    let mut all = Observed::default();
    let mut go_on = true;
    for repetition in 0..simulation.repetitions {
        if !go_on {
            break;
        }
        let mut watch = |now| {
            go_on = progress(repetition, now);
            go_on
        };
        all.merge(&simulate_one(system, plan, simulation, repetition, None, &mut watch)?);
    }
    Ok(all)
}

/// Simulates one repetition; what it sees depends on its number alone, not on others before it.
/// `progress` is told the time at least a hundred times, and each millisecond in which anything
/// happens, and says whether to continue.
///
/// # Errors
/// When more frames wait than an engine keeps.
///
/// # Panics
/// As [`Engine::new`].
pub fn simulate_one(
    system: &System,
    plan: &Plan,
    simulation: &Simulation,
    repetition: u32,
    capture: Option<Capture<'_>>,
    progress: &mut dyn FnMut(NetTime) -> bool,
) -> Result<Observed, Overfull> {
    let seen = simulate_over(&[], (system, plan), simulation, repetition, capture, progress);
    seen.map_err(|error| match error {
        NetworkCodeError::Overfull(overfull) => overfull,
        NetworkCodeError::Setup(_) => unreachable!("there are no stations"),
    })
}

/// The same with stations that carry the channels, unless there are none.
///
/// # Errors
/// Also when the network cannot have the stations.
///
/// # Panics
/// As [`simulate_one`].
pub fn simulate_over(
    stations: &[CarryingStation],
    (system, plan): (&System, &Plan),
    simulation: &Simulation,
    repetition: u32,
    mut capture: Option<Capture<'_>>,
    progress: &mut dyn FnMut(NetTime) -> bool,
) -> Result<Observed, NetworkCodeError> {
    let mut random = Stream::new(simulation.seed, Purpose::Repetition, repetition as usize);
    let drawn = random.below(u64::MAX);
    let system = with_phases(system, plan, simulation, repetition, &mut random);
    let end = NetTime::ZERO + simulation.duration;
    let options = Options {
        seed: if repetition == 0 { simulation.seed } else { drawn },
        host_delays: true,
        // Nobody looks at the load over time: one sample, however late a frame arrives.
        load_bin: WHOLE,
        noise_until: if system.run.noise { end } else { NetTime::ZERO },
        traffic_until: end,
        model_channels: true,
    };
    let mut engine = Engine::new(&system, plan, options);
    let last = match stations {
        [] => {
            join_protocols(&mut engine, &system, plan, options.seed, end);
            end + DRAIN_LIMIT
        }
        _ => NetworkCode::carry(&mut engine, &system, plan, stations, (options.seed, end))
            .map_err(NetworkCodeError::Setup)?,
    };
    if simulation.phases == Phases::Aligned && !drawn.is_multiple_of(4) {
        engine.meet_best_effort();
    }
    if let Some(capture) = &capture {
        engine.tap(capture.ports);
    }
    let step = Span::from_ns(simulation.duration.as_ns() / 100).clamp(Span::from_us(1), LOOK_MAX);
    let mut go_on = true;
    while go_on && engine.next_event().is_some_and(|next| next <= last) {
        let next = engine.next_event().unwrap_or(end);
        match engine.advance(next.max(engine.now() + step)) {
            Some(Output::Overfull(full)) => return Err(NetworkCodeError::Overfull(full)),
            output => debug_assert!(output.is_none(), "nobody is told anything in a simulation"),
        }
        if let Some(capture) = &mut capture {
            engine.take_transmissions().iter().for_each(&mut *capture.sink);
        }
        go_on = progress(engine.now().min(end));
    }
    let mut observed = engine.observed();
    let covered = if go_on { simulation.duration } else { observed.duration };
    observed.duration = covered.min(simulation.duration);
    Ok(observed)
}

/// The system with the phases of one repetition.
fn with_phases<'a>(
    system: &'a System,
    plan: &Plan,
    simulation: &Simulation,
    repetition: u32,
    random: &mut Stream,
) -> Cow<'a, System> {
    if simulation.phases == Phases::Described {
        return Cow::Borrowed(system);
    }
    let described = &system.streams;
    let mut system = system.clone();
    let mut within =
        |interval: Span| Span::from_ns(random.below(interval.as_ns().max(1) as u64) as i64);
    for channel in &mut system.channels {
        channel.phase = within(channel.interval);
    }
    for stream in &mut system.streams {
        stream.phase = within(mean_interval(&stream.source));
    }
    if simulation.phases == Phases::Aligned {
        align::align(&mut system, plan, repetition as usize, simulation.duration, random);
    }
    // The bound of what is scheduled, and that of its gate's other users, is one for its phase, and
    // for releases that count from it.
    for (at, _) in plan.streams.iter().enumerate().filter(|(_, planned)| planned.phase_specific) {
        system.streams[at] = described[at].clone();
    }
    Cow::Owned(system)
}

/// The time between two frames or bursts of a source.
fn mean_interval(source: &Source) -> Span {
    match source {
        Source::Periodic { interval, .. } | Source::Bursty { interval, .. } => *interval,
        Source::Sporadic { mean, .. } => *mean,
        Source::Trace(frames) => {
            let whole = frames.last().map_or(Span::ZERO, |last| last.0);
            Span::from_ns(whole.as_ns() / frames.len().max(1) as i64)
        }
    }
}
