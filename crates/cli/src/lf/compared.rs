//! What runs of a federation saw, beside what its analysis and the plan say.

use super::bounds::{chain_names, reaction_name};
use onbeat_measure::federation::{
    ChainResult, ConnectionResult, DeadlineJudgement, FORMAT, FederateResult, FederationResults,
    FederationSettings, Judgement, Range, ReactionResult, VERSION, Wait, WaitJudgement, WaitSource,
    Waits,
};
use onbeat_model::federation::{Federation, MaxWait, ReactionId};
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{Channel, ChannelId, System};
use onbeat_model::time::Span;
use onbeat_net::federation::FederationObserved;
use onbeat_runtime::federate::Extent;
use onbeat_timing::federation::{Analysis, Deadline, Environment, Figure, WaitVerdict};

/// What was executed and what is known of it.
pub(super) struct Executed<'a> {
    /// With the waits that it had.
    pub(super) federation: &'a Federation,
    pub(super) system: &'a System,
    pub(super) plan: &'a Plan,
    pub(super) environment: &'a Environment,
    /// With those waits.
    pub(super) analysis: &'a Analysis,
    pub(super) observed: &'a FederationObserved,
    /// Per federate: where its wait comes from.
    pub(super) sources: &'a [WaitSource],
    pub(super) settings: FederationSettings,
}

/// Everything, with its verdicts.
pub(super) fn results(executed: &Executed<'_>) -> FederationResults {
    let Executed { federation, analysis, observed, .. } = executed;
    let results = FederationResults {
        format: FORMAT.to_owned(),
        version: VERSION,
        name: federation.name.clone(),
        settings: executed.settings.clone(),
        verdict: Judgement::NotSeen,
        cut_runs: observed.cut,
        interrupted: observed.is_interrupted,
        events: observed.events,
        chains: executed.chains(),
        more_chains: analysis.is_cut || observed.is_chain_cut,
        federates: (0..federation.federates.len()).map(|at| executed.federate(at)).collect(),
        connections: (0..federation.connections.len()).map(|at| executed.connection(at)).collect(),
        reactions: (0..federation.reactions.len()).map(|at| executed.reaction(at)).collect(),
    };
    results.judged()
}

/// What was seen beside its bounds, of which the lower one may be of no interest.
fn range(seen: &Extent, best: Option<&Figure<Span>>, worst: &Figure<Span>) -> Range {
    let known = |figure: &Figure<Span>| figure.clone().map_err(|unknown| unknown.to_string());
    Range::new(seen.count, seen.min.zip(seen.max), best.map(known), known(worst))
}

impl Executed<'_> {
    fn chains(&self) -> Vec<ChainResult> {
        let chains = self.analysis.chains.iter().map(|chain| {
            let seen = self.observed.chains.get(&chain.links).copied().unwrap_or_default();
            ChainResult {
                reactions: chain_names(self.federation, chain),
                range: range(&seen, Some(&chain.best), &chain.worst),
            }
        });
        chains.collect()
    }

    fn federate(&self, at: usize) -> FederateResult {
        let federate = &self.federation.federates[at];
        let bounds = &self.analysis.federates[at];
        let connections = self.federation.connections.iter().zip(&self.observed.connections);
        let inputs = connections.filter(|(connection, _)| connection.to.index() == at);
        let inputs: Vec<_> = inputs.map(|(_, seen)| seen).collect();
        let reactions = self.federation.reactions.iter().zip(&self.observed.reactions);
        let own = reactions.filter(|(reaction, _)| reaction.federate.index() == at);
        let tardy = inputs.iter().map(|seen| seen.tardy.count).sum();
        let tardy_max = inputs.iter().filter_map(|seen| seen.tardy.max).max();
        let (verdict, short, unknown) = self.wait(at);
        let is_safe = matches!(verdict, WaitJudgement::Safe | WaitJudgement::Forever);
        let seen = &self.observed.federates[at];
        FederateResult {
            name: federate.name.clone(),
            station: federate.station.clone(),
            maxwait: match federate.maxwait {
                Some(MaxWait::For(wait)) => Wait::Ns(wait.as_ns()),
                Some(MaxWait::Forever) | None => Wait::Word("forever".to_owned()),
            },
            maxwait_from: self.sources[at],
            needed_ns: bounds.maxwait.as_ref().ok().map(|wait| wait.as_ns()),
            short_ns: short.map(Span::as_ns),
            verdict: if is_safe && tardy > 0 { WaitJudgement::Broken } else { verdict },
            unknown,
            received: inputs.iter().map(|seen| seen.arrived.count).sum(),
            tardy,
            tardy_max_ns: tardy_max.map(Span::as_ns),
            missed_deadlines: own.map(|(_, seen)| seen.misses).sum(),
            tags: seen.tags,
            dropped: seen.overflows,
            ended_runs: seen.ended,
        }
    }

    /// What to think of a federate's wait, by how much it is too short, and why that is not known.
    fn wait(&self, at: usize) -> (WaitJudgement, Option<Span>, Option<String>) {
        let bounds = &self.analysis.federates[at];
        let by_need = || match &bounds.maxwait {
            Ok(_) => (WaitJudgement::Safe, None, None),
            Err(unknown) => (WaitJudgement::Unknown, None, Some(unknown.to_string())),
        };
        match &bounds.verdict {
            WaitVerdict::NoInputs => (WaitJudgement::NoInputs, None, None),
            _ if self.settings.maxwait == Waits::Computed => by_need(),
            WaitVerdict::Unstated => by_need(),
            WaitVerdict::Safe { .. } => (WaitJudgement::Safe, None, None),
            WaitVerdict::Unsafe { by } => (WaitJudgement::TooShort, Some(*by), None),
            WaitVerdict::Forever => (WaitJudgement::Forever, None, None),
            WaitVerdict::Unknown(unknown) => {
                (WaitJudgement::Unknown, None, Some(unknown.to_string()))
            }
        }
    }

    fn connection(&self, at: usize) -> ConnectionResult {
        let connection = &self.federation.connections[at];
        let (bounds, seen) = (&self.analysis.connections[at], &self.observed.connections[at]);
        let channels = (0..).map(ChannelId).zip(&self.system.channels);
        let channel = channels.into_iter().find(|(_, channel)| channel.name == connection.name);
        let planned = channel.and_then(|(id, _)| self.plan.channel(id).bounds.first());
        let has_faults = !self.system.faults.is_empty();
        let latency = channel.map(|_| {
            let none = || format!("nothing is reserved for `{}`", connection.name);
            let best = planned.map(|bound| bound.best).ok_or_else(none);
            let worst = planned.map(Bound::total).ok_or_else(none);
            Range::new(
                seen.latency.count,
                seen.latency.min.zip(seen.latency.max),
                Some(best),
                worst,
            )
        });
        let is_punctual = channel.zip(planned).is_some_and(|((_, channel), bound)| {
            self.clocks(channel).is_some_and(|error| bound.total() + error <= channel.fixed_delay)
        });
        let arrival =
            (!connection.physical).then(|| range(&seen.arrived, None, &bounds.arrival_max));
        let result = ConnectionResult {
            name: connection.name.clone(),
            channel: channel.is_some(),
            messages: seen.sent.count,
            received: seen.arrived.count,
            lost: seen.lost,
            held: seen.held,
            late: seen.late.count,
            late_max_ns: seen.late.max.map(Span::as_ns),
            tardy: seen.tardy.count,
            verdict: Judgement::NotSeen,
            sent: range(&seen.sent, Some(&bounds.sent_min), &bounds.sent_max),
            arrival,
            latency,
            lossless: planned.is_some() && !has_faults,
            punctual: is_punctual && !has_faults,
        };
        result.judged()
    }

    /// The errors of the clocks at both ends of a channel.
    fn clocks(&self, channel: &Channel) -> Option<Span> {
        let error = |node| {
            let name = &self.system.node(node).name;
            let stations = self.environment.stations.iter();
            stations.into_iter().find(|station| station.name == *name)?.clock_error
        };
        Some(error(channel.talker)? + error(*channel.listeners.first()?)?)
    }

    fn reaction(&self, at: usize) -> ReactionResult {
        let reaction = &self.federation.reactions[at];
        let (bounds, seen) = (&self.analysis.reactions[at], &self.observed.reactions[at]);
        let deadline = bounds.deadline.as_ref().map(|deadline| match (deadline, seen.misses) {
            (Deadline::Met { .. }, 0) => DeadlineJudgement::Met,
            (Deadline::Met { .. }, _) => DeadlineJudgement::Broken,
            (Deadline::Missed { .. }, 0) => DeadlineJudgement::MayBeMissed,
            (Deadline::Missed { .. }, _) => DeadlineJudgement::Missed,
            (Deadline::Unknown(_), _) => DeadlineJudgement::Unknown,
        });
        ReactionResult {
            name: reaction_name(self.federation, ReactionId(at as u32)),
            has_execution_time: reaction.execution.is_some_and(|time| time.hi.is_some()),
            release: range(&seen.release, Some(&bounds.release_min), &bounds.release_max),
            finish: range(&seen.finish, Some(&bounds.finish_min), &bounds.finish_max),
            deadline_ns: reaction.deadline.map(Span::as_ns),
            missed: seen.misses,
            deadline,
        }
    }
}
