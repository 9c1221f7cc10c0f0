//! The clocks of a description's nodes as gPTP keeps them.

use super::study;
use super::{GptpScenario, NODES_MAX, Sample, Stamping, Trace, simulate};
use crate::participant::Joining;
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::limits;
use onbeat_model::system::{Node, NodeId, StampKind, Synchronisation, System};
use onbeat_model::time::{ClockError, NetTime, Span};

/// From when on clocks count as in sync.
const SETTLED: NetTime = NetTime::from_ns(40_000_000_000);

/// The longest delay of a link over which nodes are known to come in sync: 2,000 km of fibre.
pub const LINK_DELAY_MAX: Span = Span::from_ms(10);

/// Gives nodes without a described clock error one that is as large and as quick as what gPTP left
/// in a simulation of the description's network: a triangle from the least to the largest error of
/// the settled clock, with a swing for every two times that the error went through the middle. The
/// grandmaster's clock is true time.
///
/// # Errors
/// OB2016 for all that gPTP cannot bring or keep in sync: too many nodes, links that it cannot
/// measure, nodes that it does not reach.
pub fn synchronise(system: &mut System) -> Result<(), Vec<Diagnostic>> {
    let Some(synchronisation) = system.synchronisation else { return Ok(()) };
    let Synchronisation { grandmaster, origin, .. } = synchronisation;
    let hindrances = hindrances(system, &synchronisation);
    if !hindrances.is_empty() {
        return Err(hindrances);
    }
    let scenario = scenario(system, &synchronisation);
    let trace = simulate(&scenario).map_err(|error| {
        let message = format!("the gPTP of this network cannot be simulated: {error}");
        vec![Diagnostic::error(codes::NOT_IN_SYNC, message, origin, "asked for here").help(HELP)]
    })?;
    let mut errors = Vec::new();
    for (index, node) in system.nodes.iter_mut().enumerate() {
        if needs_time(node) && index != grandmaster.index() {
            let clock = settled(&trace, grandmaster.index(), index);
            match clock.map(|clock| if synchronisation.in_run { allowance(&clock) } else { clock })
            {
                Some(clock) => node.clock = clock,
                None => {
                    let text = "does not get the grandmaster's time from gPTP within 40 s";
                    errors.push(not_in_sync(node, text, &synchronisation));
                }
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The network of a description without its faults: what goes wrong in a run goes wrong at its
/// instants, not at those of this simulation.
fn scenario(system: &System, synchronisation: &Synchronisation) -> GptpScenario {
    let Synchronisation { grandmaster, stamps, seed, in_run, .. } = *synchronisation;
    let stamps = match stamps {
        StampKind::Hardware => Stamping::HARDWARE,
        StampKind::Coarse => Stamping::COARSE,
        StampKind::Software => Stamping::SOFTWARE,
    };
    let mut scenario = GptpScenario::of(system, grandmaster, stamps, seed);
    scenario.faults.clear();
    if in_run {
        // Its clock is true time in a run.
        let oscillator = &mut scenario.nodes[grandmaster.index()].oscillator;
        (oscillator.rate_ppb, oscillator.frequency_drift_ppt, oscillator.frequency_drift_max_ppb) =
            (0, 0, 0);
    }
    scenario
}

/// What plans count with for a clock that gPTP keeps in the run itself: a wave about true time of
/// twice the largest error that it left in a simulation apart, and as steep as that was.
fn allowance(settled: &ClockError) -> ClockError {
    let most = (settled.offset.abs() + settled.wander).max(Span::from_ns(1));
    let half = settled.wander.max(Span::from_ns(1)).as_ns();
    let period = i128::from(settled.wander_period.as_ns().max(1_000_000));
    let period = period * i128::from(most.as_ns()) / i128::from(half);
    let wander_period = Span::from_ns(i64::try_from(period).unwrap_or(i64::MAX));
    ClockError { wander: most * 2, wander_period, ..ClockError::default() }
}

/// What takes part in a run of this system if the description asks for it: every node of the
/// network, with clocks that have been in sync for a while; and the nodes whose clocks they steer,
/// which are all. The grandmaster's is true time.
///
/// # Panics
/// When the system is not one for which [`synchronise`] found nothing wrong.
pub(crate) fn joining(system: &System) -> (Vec<Joining>, Vec<NodeId>) {
    let none = (Vec::new(), Vec::new());
    let Some(synchronisation) = system.synchronisation.filter(|it| it.in_run) else { return none };
    let scenario = scenario(system, &synchronisation);
    let before = SETTLED - NetTime::ZERO;
    let instances = study::settled(system, &scenario.nodes, scenario.seed, before);
    let start = scenario.nodes[synchronisation.grandmaster.index()].oscillator.start;
    let epoch = (start + before).as_ns();
    let mut steered = Vec::new();
    let mut joining = Vec::with_capacity(instances.len());
    for (index, mut instance) in instances.into_iter().enumerate() {
        instance.go_on_in_run(before, epoch);
        joining.push(study::joining(index, instance));
        steered.push(NodeId(index as u32));
    }
    (joining, steered)
}

const HELP: &str = "shorten its path to the grandmaster, or describe its `clock` instead";

/// Whether it has no clock of its own description.
fn needs_time(node: &Node) -> bool {
    node.clock == ClockError::default()
}

fn not_in_sync(node: &Node, text: &str, synchronisation: &Synchronisation) -> Diagnostic {
    let message = format!("`{}` {text}", node.name);
    Diagnostic::error(codes::NOT_IN_SYNC, message, node.origin, "its clock")
        .help(HELP)
        .related(synchronisation.origin, "the grandmaster")
}

/// What can be told without a simulation.
fn hindrances(system: &System, synchronisation: &Synchronisation) -> Vec<Diagnostic> {
    let origin = synchronisation.origin;
    let count = system.nodes.len();
    if count > NODES_MAX {
        let message =
            format!("gPTP of {count} nodes cannot be simulated: the limit is {NODES_MAX}");
        let help = "remove [synchronisation] and describe the `clock` of each host and bridge";
        return vec![
            Diagnostic::error(codes::NOT_IN_SYNC, message, origin, "asked for here").help(help),
        ];
    }
    let long = system.links.iter().filter(|link| link.propagation > LINK_DELAY_MAX).map(|link| {
        let message = format!(
            "link {}–{}: gPTP keeps clocks together over up to {LINK_DELAY_MAX}, not over {}",
            system.port_label(link.ports[0]),
            system.port_label(link.ports[1]),
            link.propagation,
        );
        let help = "reduce `propagation_ns`, or remove [synchronisation] and describe the `clock` \
                    of each host and bridge";
        Diagnostic::error(codes::NOT_IN_SYNC, message, link.origin, "this link")
            .help(help)
            .related(origin, "gPTP is enabled here")
    });
    let reached = reached(system, synchronisation.grandmaster);
    let apart = system.nodes.iter().zip(&reached).filter(|(node, reached)| {
        // A node without any link cannot take part in a simulation.
        !**reached && (needs_time(node) || node.ports.is_empty())
    });
    let apart = apart.map(|(node, _)| {
        not_in_sync(node, "has no path to the grandmaster of gPTP", synchronisation)
    });
    long.chain(apart).take(limits::DIAGNOSTICS).collect()
}

/// By node: whether links join it to the grandmaster.
fn reached(system: &System, grandmaster: NodeId) -> Vec<bool> {
    let mut reached = vec![false; system.nodes.len()];
    reached[grandmaster.index()] = true;
    let mut open = vec![grandmaster];
    while let Some(node) = open.pop() {
        for port in &system.node(node).ports {
            let next = system.port(system.port(*port).peer).node;
            if !std::mem::replace(&mut reached[next.index()], true) {
                open.push(next);
            }
        }
    }
    reached
}

/// A clock error that spans all of a node's; none if it was not in sync with the grandmaster all
/// the time.
fn settled(trace: &Trace, grandmaster: usize, node: usize) -> Option<ClockError> {
    let samples = trace.samples.iter().filter(|sample| sample.at >= SETTLED);
    let follows = |follows: Option<u16>| follows.map(usize::from) == Some(grandmaster);
    let error = |sample: &Sample| {
        let leads = sample.reference == Some(grandmaster);
        Some(sample.error(node)?.as_ns()).filter(|_| leads && follows(sample.follows[node]))
    };
    let errors = samples.map(error).collect::<Option<Vec<i64>>>()?;
    let (least, most) = (errors.iter().min()?, errors.iter().max()?);
    let offset = (least + most).div_euclid(2);
    let wander = (most - offset).max(offset - least);
    let sides = errors.iter().map(|error| *error > offset).collect::<Vec<bool>>();
    let crossings = sides.windows(2).filter(|pair| pair[0] != pair[1]).count().max(1);
    let lasted = (trace.samples.last().map_or(SETTLED, |last| last.at) - SETTLED).as_ns();
    // No description may ask for a steeper one.
    let least = wander * 4 * 1_100_000_000 / i64::from(ClockError::MAX_DRIFT_PPB);
    let period = (2 * lasted / i64::try_from(crossings).unwrap_or(i64::MAX)).max(least);
    Some(ClockError {
        offset: Span::from_ns(offset),
        drift_ppb: 0,
        wander: Span::from_ns(wander),
        wander_period: Span::from_ns(if wander == 0 { 0 } else { period }),
        ..ClockError::default()
    })
}
