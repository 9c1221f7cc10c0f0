//! From a checked [`System`] to a [`Plan`]: routes, admission, reservations and bounds.
//!
//! Pure: the same system gives the same plan. `docs/bounds.md` derives every formula.

mod analysis;
mod asynchronous;
mod classes;
mod deadlines;
mod device;
mod difference;
mod document;
pub mod fifo;
pub mod import;
mod keep;
mod planner;
mod reserve;
mod route;
mod scheduled;
mod srp;
pub mod synthesis;

pub use analysis::bound::{by_clocks, longest_run, shortest};
pub use analysis::coincidence::{ChannelSet, Coincidence, coincidence};
pub use classes::choose_classes;
pub use difference::{FieldDifference, ItemDifference, PlanDifference, difference};
pub use document::{
    ChainDocument, ChannelDocument, GateControlDocument, GateDocument, LaunchDocument,
    ListenerDocument, NoiseDocument, PlanDocument, PortDocument, QueueDocument, ReasonDocument,
    RefusedDocument, SchedulerDocument, StreamDocument, StreamListenerDocument, TermDocument,
    WindowDocument, document,
};

pub use keep::KeptPlan;
pub use planner::{PlanChange, Planner};

use analysis::queue::beyond_buffer;
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{Bound, ChannelPlan, Plan, Slot, StreamPlan};
use onbeat_model::port::QUEUES;
use onbeat_model::stream::Stream;
use onbeat_model::system::{Chain, ChannelId, Class, IdleSlopes, Routing, System};
use onbeat_model::time::Span;
use route::Routes;
use route::load_aware::Balance;
use scheduled::Schedule;

/// A frame carries 32 bits of its capture time (IEEE 1722-2016 4.4.4.8): a listener rebuilds the
/// rest for what comes from up to 1 s in its future and up to 3.29 s in its past.
const MOST_APART: Span = Span::from_s(1);
const MOST_UNDER_WAY: Span = Span::from_ms(3_290);

/// Finds routes, admits streams as SRP would (802.1Q-2018 clauses 34 and 35), and bounds the
/// latency of each. `protected` says whether reservations are made at all, which is a run's
/// setting; a channel with `reserve = false` never gets one.
///
/// Clock errors are counted up to the longest duration among the system's run settings and its
/// scenarios: who runs longer sets [`System::run`] first.
///
/// # Errors
/// All that prevents the plan, at once: channels and streams without a path in their VLAN (OB2010),
/// scheduled channels without a place in the gates (OB2002), overloaded ports (OB2001), streams in
/// reserved queues (OB2011), ports set to less than a reservation needs (OB2012), what hosts and
/// bridges cannot reserve by protocol, if that is asked for (OB2017), what devices cannot do
/// (OB2018), and, where what is admitted
/// can be analysed, queues that are too small (OB2003) and streams without a useful bound (OB2004);
/// and clocks too far apart for capture times to be rebuilt (OB2007), or messages too long in
/// flight for it (OB2009).
///
/// # Panics
/// When a noise source has no route, which the description's check excludes.
pub fn plan(system: &System, protected: bool) -> Result<Plan, Vec<Diagnostic>> {
    plan_and_limits(system, protected, &KeptPlan::default()).map(|(plan, _)| plan)
}

/// The same, with a warning (OB2015) for each part of the analysis that ended before it had looked
/// at everything: bounds hold then, but may be larger than they need be. Channels stay where they
/// were in an earlier plan as far as is possible; if they prevent this one, none is kept.
///
/// # Errors
/// Those of [`plan`].
///
/// # Panics
/// As [`plan`].
pub fn plan_and_limits(
    system: &System,
    protected: bool,
    kept: &KeptPlan,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (plan, errors, limits) = with_bounds(system, draft(system, protected, kept)?);
    if errors.is_empty() { Ok((plan, limits)) } else { Err(errors) }
}

/// A draft with bounds, and idleSlopes for deadlines if that is asked for; what prevents the plan,
/// and where the analysis ended early.
fn with_bounds(system: &System, draft: Draft) -> (Plan, Vec<Diagnostic>, Vec<Diagnostic>) {
    let Draft { mut plan, mut errors, admitted } = draft;
    let mut limits = Vec::new();
    if admitted {
        let (found, cut_short) = bound(system, &mut plan);
        errors.extend(found);
        limits = cut_short;
    }
    let is_free = system.idle_slopes == IdleSlopes::Deadline && !srp::is_used(system);
    if errors.is_empty() && is_free {
        limits = deadlines::meet(system, &mut plan).unwrap_or(limits);
    }
    (plan, errors, limits)
}

/// Routes, admits and reserves only, for large systems: no channel has a bound in this plan.
///
/// # Errors
/// Those of [`plan`] that need no bound.
///
/// # Panics
/// As [`plan`].
pub fn plan_without_bounds(
    system: &System,
    protected: bool,
    kept: &KeptPlan,
) -> Result<Plan, Vec<Diagnostic>> {
    let Draft { mut plan, errors, .. } = draft(system, protected, kept)?;
    without_bounds(system, &mut plan);
    if errors.is_empty() { Ok(plan) } else { Err(errors) }
}

/// A plan of a system whose channels have slots: one per channel, with its bounds. Nothing is
/// reserved, and nothing else has a bound.
///
/// # Errors
/// Those of [`plan_without_bounds`] without protection, and messages too long in flight (OB2009).
///
/// # Panics
/// As [`plan`].
pub fn plan_with_slots(
    system: &System,
    slots: Vec<(Slot, Vec<Bound>)>,
) -> Result<Plan, Vec<Diagnostic>> {
    let mut plan = plan_without_bounds(system, false, &KeptPlan::default())?;
    for (planned, (slot, bounds)) in plan.channels.iter_mut().zip(slots) {
        (planned.protected, planned.slot, planned.bounds) = (true, Some(slot), bounds);
    }
    plan.protected = true;
    let errors = long_under_way(system, &plan);
    let of_chain = |chain| analysis::bound::of_chain(system, &plan, chain);
    plan.chains = system.chains.iter().map(of_chain).collect();
    if errors.is_empty() { Ok(plan) } else { Err(errors) }
}

fn without_bounds(system: &System, plan: &mut Plan) {
    for (stream, planned) in system.streams.iter().zip(&mut plan.streams) {
        planned.bounds = vec![None; stream.listeners.len()];
    }
    plan.backlogs = vec![[None; QUEUES]; system.ports.len()];
    plan.chains = vec![None; system.chains.len()];
}

/// Routes, and rates that channels ask for, where hosts and bridges reserve by protocol
/// ([`ReservationMode::Srp`](onbeat_model::system::ReservationMode)): what exceeds a port is not
/// refused, but a warning (OB2001), because the protocol decides in the run who gets it. No channel
/// has a bound in this plan.
///
/// # Errors
/// Those of [`plan_without_bounds`] but OB2001.
///
/// # Panics
/// As [`plan`].
pub fn plan_for_protocol(
    system: &System,
    kept: &KeptPlan,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Draft { mut plan, errors, .. } = draft(system, true, kept)?;
    if !srp::is_used(system) || errors.iter().any(|error| error.code != codes::OVERLOADED) {
        return Err(errors);
    }
    without_bounds(system, &mut plan);
    Ok((plan, errors.into_iter().map(Diagnostic::warning).collect()))
}

/// A plan without bounds, and what prevents it.
struct Draft {
    plan: Plan,
    errors: Vec<Diagnostic>,
    /// Whether it can be analysed.
    admitted: bool,
}

/// How often the channels of a schedule that has no room take other paths, and how many channels
/// may be scheduled again for that.
const DETOURS: usize = 32;
const DETOURS_MAX: usize = 40_000;

/// Routes, admits and reserves: with what is kept, or without if that is refused.
fn draft(system: &System, protected: bool, kept: &KeptPlan) -> Result<Draft, Vec<Diagnostic>> {
    let draft = drafted(system, protected, kept);
    let is_right = draft.as_ref().is_ok_and(|draft| draft.errors.is_empty());
    if kept.is_empty() || is_right {
        return draft;
    }
    drafted(system, protected, &KeptPlan::default())
}

fn drafted(system: &System, protected: bool, kept: &KeptPlan) -> Result<Draft, Vec<Diagnostic>> {
    let mut routes = Routes::new(system);
    let mut paths: Vec<_> = system.channels.iter().map(|c| routes.of_channel(c)).collect();
    let streams = system.streams.iter();
    let streams: Vec<StreamPlan> = streams
        .map(|s| StreamPlan { paths: routes.of_stream(s), ..StreamPlan::default() })
        .collect();
    let noise = system.noise.iter().map(|n| routes.of_noise(n)).collect();
    let tcp = system.tcp.iter().map(|flow| routes.of_tcp(flow)).collect();
    let mut errors = routes.errors;
    let routed = errors.is_empty();
    errors.extend(clocks_too_far_apart(system));
    if !routed {
        return Err(errors);
    }
    kept.restore(system, &system.channels, &mut paths);
    let is_load_aware = system.routing == Routing::LoadAware;
    let mut balance =
        is_load_aware.then(|| Balance::new(system, routes.filtered, &paths, &streams));
    if let Some(balance) = &mut balance {
        balance.relieve(&mut paths);
    }
    let both = system.channels.iter().zip(paths);
    let mut channels: Vec<ChannelPlan> = both
        .map(|(channel, paths)| reserve::unreserved(channel, paths, protected || is_load_aware))
        .collect();
    let mut schedule = scheduled::schedule(system, &mut channels, &streams, kept);
    // The larger the system, the longer an attempt.
    for _ in 0..(DETOURS_MAX / channels.len().max(1)).clamp(1, DETOURS) {
        let (Some(crowded), Some(balance)) = (schedule.crowded, &mut balance) else { break };
        let mut paths: Vec<_> = channels.iter().map(|channel| channel.paths.clone()).collect();
        if !balance.make_room(crowded, &mut paths) {
            break;
        }
        for (channel, paths) in channels.iter_mut().zip(paths) {
            channel.paths = paths;
        }
        schedule = scheduled::schedule(system, &mut channels, &streams, kept);
    }
    if !protected {
        // Frames take the same paths, by which runs with and without protection differ in nothing.
        schedule = Schedule::default();
        for channel in &mut channels {
            (channel.protected, channel.launch) = (false, None);
        }
    }
    let (ports, refused) = reserve::reserve(system, &mut channels, schedule.gates);
    let plan = Plan { protected, channels, noise, tcp, streams, ports, ..Plan::default() };
    let hindrances = srp::hindrances(system, &plan);
    if !hindrances.is_empty() {
        errors.extend(hindrances);
        return Err(errors);
    }
    let refused = schedule.errors.into_iter().chain(refused);
    let refused = refused.chain(reserve::overloads(system, &plan));
    let refused = refused.chain(device::refusals(system, &plan));
    let refused: Vec<_> = refused
        .chain(reserve::intruders(system, &plan))
        .chain(reserve::over_dedicated(system, &plan))
        .collect();
    let admitted = refused.is_empty();
    errors.extend(refused);
    Ok(Draft { plan, errors, admitted })
}

/// A search over all gate schedules on the paths of [`plan`], where this finds none: the paths and
/// windows that a plan has to keep to have the schedule. `steps` is the most steps of a search,
/// each a decision of the solver or a conflict; the same system gives the same answer. With `None`
/// the plan has a schedule without that.
///
/// # Errors
/// What prevents the plan beside its schedule; OB2002 with a proof that there is no schedule, or
/// with why the search ended without an answer.
///
/// # Panics
/// As [`plan`].
#[cfg(feature = "exact")]
pub fn search_schedules(
    system: &System,
    kept: &KeptPlan,
    steps: u64,
) -> Result<Option<KeptPlan>, Vec<Diagnostic>> {
    let Draft { mut plan, errors, .. } = draft(system, true, kept)?;
    if !errors.iter().any(|error| error.code == codes::SCHEDULED) {
        return Ok(None);
    }
    scheduled::search(system, &mut plan.channels, &plan.streams, steps)?;
    Ok(Some(KeptPlan::of(&plan, (0..system.channels.len() as u32).map(|id| Some(ChannelId(id))))))
}

/// Fills in the bounds of channels and chains; returns what prevents bounds, and what the analysis
/// left out.
fn bound(system: &System, plan: &mut Plan) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let (mut errors, limits) = analysis::bound::fill_in(system, plan);
    errors.extend(long_under_way(system, plan));
    plan.chains =
        system.chains.iter().map(|c| analysis::bound::of_chain(system, plan, c)).collect();
    (errors, limits)
}

/// Channels whose messages may be too old for their capture times to be rebuilt. The bounds count
/// the difference of the clocks.
fn long_under_way(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let bounded = system.channels.iter().zip(plan.channels.iter().map(ChannelPlan::bound));
    let long = bounded.filter_map(|(channel, bound)| {
        let bound = bound.filter(|bound| *bound > MOST_UNDER_WAY)?;
        let message = format!(
            "a message of `{}` may take {bound}, more than the {MOST_UNDER_WAY} that a frame can \
             express",
            channel.name
        );
        let help = "reduce the delays that `onbeat plan` lists, or set `reserve = false`";
        Some(
            Diagnostic::error(codes::LONG_UNDER_WAY, message, channel.origin, "takes long")
                .help(help),
        )
    });
    long.collect()
}

/// Channels whose listeners could not rebuild a capture time.
fn clocks_too_far_apart(system: &System) -> Vec<Diagnostic> {
    let step = |node| system.clock_of(node).step.by.abs();
    let mut errors = Vec::new();
    for channel in &system.channels {
        let talker = system.node(channel.talker);
        for (id, listener) in channel.listeners.iter().map(|id| (id, system.node(*id))) {
            let steps = step(channel.talker) + step(*id);
            let apart = analysis::bound::clocks_apart(system, &talker.clock, &listener.clock);
            let apart = apart + steps;
            if apart > MOST_APART {
                let message = format!(
                    "channel `{}`: the clocks of `{}` and `{}` differ by up to {apart}, more than \
                     {MOST_APART}",
                    channel.name, talker.name, listener.name,
                );
                let error =
                    Diagnostic::error(codes::CLOCKS, message, channel.origin, "between these")
                        .related(talker.origin, "the talker")
                        .related(listener.origin, "a listener")
                        .help("reduce the offsets, drifts or steps of the clocks, or the duration");
                errors.push(error);
            }
        }
    }
    errors
}

/// What the user should know of a plan that can be carried out: fixed delays (OB2005), chain
/// deadlines (OB2006) and stream deadlines (OB2013) below the worst case, chains without one
/// (OB2008), and queues that may have to drop frames of a stream that has a bound (OB2014).
pub fn warnings(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let late = (0..).map(ChannelId).zip(&system.channels).flat_map(|(id, channel)| {
        let planned = plan.channel(id);
        let help = match (system.idle_slopes, channel.class) {
            _ if planned.slot.is_some() => {
                "raise the fixed delay, or make room for more slots: less or shorter messages, \
                 faster links, shorter paths, less best effort"
            }
            (IdleSlopes::Rate, Class::A | Class::B) => {
                "raise the fixed delay, reduce the delays that `onbeat plan` lists, or let the \
                 plan raise idleSlopes (`idle_slopes = \"deadline\"`)"
            }
            _ => "raise the fixed delay, or reduce the delays that `onbeat plan` lists",
        };
        let bounds = channel.listeners.iter().zip(&planned.bounds);
        let late = bounds.filter(|(_, bound)| bound.total() > channel.fixed_delay);
        late.map(move |(listener, bound)| {
            let message = format!(
                "a message of `{}` may take {} to `{}`, longer than its fixed delay of {}",
                channel.name,
                bound.total(),
                system.node(*listener).name,
                channel.fixed_delay,
            );
            let late = Diagnostic::error(codes::LATE, message, channel.origin, "may be late");
            late.warning().help(help)
        })
    });
    late.chain(late_chains(system, plan))
        .chain(late_streams(system, plan))
        .chain(lossy(system, plan))
        .collect()
}

/// Chains whose worst case is above their deadline, or that have none.
fn late_chains(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let missed = system.chains.iter().zip(&plan.chains).filter_map(|(chain, bound)| {
        let bound = (*bound)?;
        (bound > chain.deadline).then(|| {
            let message = format!(
                "chain `{}` may take {bound}, longer than its deadline of {}",
                chain.name, chain.deadline,
            );
            Diagnostic::error(codes::CHAIN_DEADLINE, message, chain.origin, "may miss its deadline")
                .warning()
                .help("raise the deadline, or reduce the work or the delays on its path")
        })
    });
    let protected = |chain: &&Chain| chain.channels.iter().all(|c| plan.channel(*c).protected);
    let unbounded = system.chains.iter().zip(&plan.chains).filter(|(_, bound)| bound.is_none());
    let untriggered = unbounded.map(|(c, _)| c).filter(protected).filter_map(|chain| {
        let why = analysis::bound::untriggered(system, chain)?;
        let message = format!("chain `{}` has no bound: {why}", chain.name);
        Some(
            Diagnostic::error(
                codes::UNTRIGGERED,
                message,
                chain.origin,
                "measured, not guaranteed",
            )
            .warning()
            .help("let each program write one message for each that it reads"),
        )
    });
    missed.chain(untriggered).collect()
}

/// Streams whose bound at a listener is above their deadline.
fn late_streams(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let mut late = Vec::new();
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let Some(deadline) = stream.deadline else { continue };
        for (listener, bound) in stream.listeners.iter().zip(&planned.bounds) {
            let Some(total) = bound.as_ref().map(Bound::total).filter(|t| *t > deadline) else {
                continue;
            };
            let message = format!(
                "a frame of `{}` may take {total} to `{}`, longer than its deadline of {deadline}",
                stream.name,
                system.node(*listener).name,
            );
            let warning =
                Diagnostic::error(codes::STREAM_DEADLINE, message, stream.origin, "may be late")
                    .warning()
                    .help("raise the deadline, or reduce the delays that `onbeat plan` lists");
            late.push(warning);
        }
    }
    late
}

fn may_lose(stream: &Stream, message: String) -> Diagnostic {
    Diagnostic::error(codes::STREAM_LOST, message, stream.origin, "may lose frames").warning()
}

/// Streams with bounds whose frames may find a full queue, or the buffer full that a bridge's
/// queues share.
fn lossy(system: &System, plan: &Plan) -> Vec<Diagnostic> {
    let mut lossy = Vec::new();
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let queue = usize::from(stream.traffic_class);
        if planned.bounds.iter().all(Option::is_none) {
            continue;
        }
        let ports = planned.paths.iter().flatten().flatten();
        let shared = ports.clone().map(|port| system.port(*port).node);
        let mut shared =
            shared.filter_map(|id| Some((id, beyond_buffer(system, &plan.backlogs, id)?)));
        if let Some((id, (all, buffer))) = shared.next() {
            let node = system.node(id);
            let message = format!(
                "frames of `{}` may be lost: the queues of `{}` may hold {all} octets together, \
                 and its buffer holds {buffer}",
                stream.name, node.name,
            );
            let warning = may_lose(stream, message)
                .related(node.origin, "shares its buffer")
                .help("raise `shared_buffer_octets` of the bridge, or lower its `queue_octets`");
            lossy.push(warning);
        }
        let full = ports.copied().find_map(|port| {
            let backlog = plan.backlogs[port.index()][queue]?;
            let limit = system.node(system.port(port).node).queue;
            let (frames, octets) = (u64::from(limit.frames), u64::from(limit.octets.get()));
            (backlog.frames > frames || backlog.octets > octets).then_some((port, backlog))
        });
        if let Some((port, backlog)) = full {
            let message = format!(
                "frames of `{}` may be lost: the backlog of queue {queue} of {} may reach {} \
                 frames ({} octets)",
                stream.name,
                system.port_label(port),
                backlog.frames,
                backlog.octets,
            );
            let node = system.node(system.port(port).node);
            let warning = may_lose(stream, message)
                .related(node.origin, "its queues are smaller")
                .help("raise `queue_frames` or `queue_octets` of the node, or send smaller bursts");
            lossy.push(warning);
        }
    }
    lossy
}
