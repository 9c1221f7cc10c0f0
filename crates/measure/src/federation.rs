//! What runs of a federation's skeleton saw beside its bounds. The JSON contract, version 1:
//! `docs/lingua-franca.md` explains it, `schema/lf-simulation.schema.json` is made from these
//! types.

use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the contract that these types are.
pub const FORMAT: &str = "onbeat-lf-simulation";
/// The version of the contract that these types are.
pub const VERSION: u32 = 1;

/// What runs of a federation saw, beside its bounds. All times are whole nanoseconds. Under one
/// version fields may be added; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Onbeat simulation of a federation in Lingua Franca")]
pub struct FederationResults {
    /// Always `onbeat-lf-simulation`.
    pub format: String,
    /// Which contract this is: 1.
    pub version: u32,
    /// The federation's name.
    pub name: String,
    /// What was asked for.
    pub settings: FederationSettings,
    /// The worst of all verdicts: `exceeded`, `unknown` or `within`.
    pub verdict: Judgement,
    /// Runs that ended because too much happened in them: what they saw is not all.
    pub cut_runs: u32,
    /// Whether the runs were interrupted.
    pub interrupted: bool,
    /// How often something happened.
    pub events: u64,
    /// The chains, from each source to reactions that cause nothing more.
    pub chains: Vec<ChainResult>,
    /// Whether there are more chains than these.
    pub more_chains: bool,
    /// The federates.
    pub federates: Vec<FederateResult>,
    /// The connections between federates.
    pub connections: Vec<ConnectionResult>,
    /// The reactions, federate by federate in the order in which they execute at one tag.
    pub reactions: Vec<ReactionResult>,
}

/// How a federation was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FederationSettings {
    /// The time of the last tag, in each run.
    pub duration_ns: i64,
    /// Where all randomness came from.
    pub seed: u64,
    /// How many runs are put together.
    pub runs: u32,
    /// Whose waits federates had.
    pub maxwait: Waits,
    /// The longest time of a message between federates of one station; null if it is not known.
    pub local_ns: Option<i64>,
    /// Whether handlers of deadlines set ports.
    pub handlers_set: bool,
}

/// Whose waits federates have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Waits {
    /// Those of the model, and computed ones where it has none.
    Model,
    /// The smallest without tardy messages, where they are known.
    Computed,
}

/// What was measured, compared with what bounds it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Judgement {
    /// It did not happen.
    #[serde(rename = "not seen")]
    NotSeen,
    /// It is within the bounds.
    #[serde(rename = "within")]
    Within,
    /// A bound is not known.
    #[serde(rename = "unknown")]
    Unknown,
    /// It is beyond a bound.
    #[serde(rename = "exceeded")]
    Exceeded,
}

impl Judgement {
    /// The word in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSeen => "not seen",
            Self::Within => "within",
            Self::Unknown => "unknown",
            Self::Exceeded => "exceeded",
        }
    }
}

/// How many values there were, their extremes, and what bounds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// How many.
    pub count: u64,
    /// The least; null without values.
    pub min_ns: Option<i64>,
    /// The greatest; null without values.
    pub max_ns: Option<i64>,
    /// The lower bound; null if there is none or it is not known.
    pub best_ns: Option<i64>,
    /// The upper bound; null if it is not known.
    pub worst_ns: Option<i64>,
    /// How they compare.
    pub verdict: Judgement,
    /// Why a bound is not known; absent if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Range {
    /// Values with these extremes, whose bounds are these or not known for a reason. Without a
    /// lower bound, none is missed.
    pub fn new(
        count: u64,
        seen: Option<(Span, Span)>,
        best: Option<Result<Span, String>>,
        worst: Result<Span, String>,
    ) -> Self {
        let best = best.transpose();
        let (lower, upper) = (best.clone().ok().flatten(), worst.clone().ok());
        let verdict = match seen {
            None => Judgement::NotSeen,
            Some((min, _)) if lower.is_some_and(|bound| min < bound) => Judgement::Exceeded,
            Some((_, max)) if upper.is_some_and(|bound| max > bound) => Judgement::Exceeded,
            Some(_) if best.is_err() || worst.is_err() => Judgement::Unknown,
            Some(_) => Judgement::Within,
        };
        Self {
            count,
            min_ns: seen.map(|(min, _)| min.as_ns()),
            max_ns: seen.map(|(_, max)| max.as_ns()),
            best_ns: lower.map(Span::as_ns),
            worst_ns: upper.map(Span::as_ns),
            verdict,
            unknown: worst.err().or(best.err()),
        }
    }

    /// What is beyond which bound, for a person.
    fn excess(&self) -> Option<String> {
        let shown = |ns: i64| Span::from_ns(ns).to_string();
        let over = self.max_ns.zip(self.worst_ns).filter(|(max, worst)| max > worst);
        let under = self.min_ns.zip(self.best_ns).filter(|(min, best)| min < best);
        let over = over.map(|(max, worst)| {
            format!("{} exceeds the bound {} by {}", shown(max), shown(worst), shown(max - worst))
        });
        over.or(
            under.map(|(min, best)| format!("{} is below the bound {}", shown(min), shown(best)))
        )
    }
}

/// A chain: from the tag of its source to the end of its last reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainResult {
    /// Its reactions.
    pub reactions: Vec<String>,
    /// How often it came to its end, and how long that took, in true time.
    #[serde(flatten)]
    pub range: Range,
}

/// A time in nanoseconds, or the word `forever`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Wait {
    /// Nanoseconds.
    Ns(i64),
    /// `forever`.
    Word(String),
}

/// Where a federate's wait comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitSource {
    /// The model states it.
    Model,
    /// It is the smallest without tardy messages.
    Computed,
    /// Neither is known: it is what the runtime does.
    Runtime,
}

/// What to think of a federate's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WaitJudgement {
    /// It has no logical connection to wait for.
    #[serde(rename = "no inputs")]
    NoInputs,
    /// No message can be tardy, and none was.
    #[serde(rename = "safe")]
    Safe,
    /// No message could be tardy, but one was.
    #[serde(rename = "broken")]
    Broken,
    /// Messages may be tardy.
    #[serde(rename = "too short")]
    TooShort,
    /// No message is ever tardy, but what never comes is waited for without end.
    #[serde(rename = "forever")]
    Forever,
    /// How long it must be is not known.
    #[serde(rename = "unknown")]
    Unknown,
}

impl WaitJudgement {
    /// The word in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoInputs => "no inputs",
            Self::Safe => "safe",
            Self::Broken => "broken",
            Self::TooShort => "too short",
            Self::Forever => "forever",
            Self::Unknown => "unknown",
        }
    }
}

/// A federate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FederateResult {
    /// Its name.
    pub name: String,
    /// The host that it executes on.
    pub station: Option<String>,
    /// How long it waited for inputs: nanoseconds or `forever`.
    pub maxwait: Wait,
    /// Where that comes from.
    pub maxwait_from: WaitSource,
    /// The smallest wait without tardy messages; null if it is not known.
    pub needed_ns: Option<i64>,
    /// By how much its wait is too short; null if it is not, or that is not known.
    pub short_ns: Option<i64>,
    /// What to think of its wait.
    pub verdict: WaitJudgement,
    /// Why that is not known; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Messages that it received, on all connections.
    pub received: u64,
    /// Messages that came when their tags had begun.
    pub tardy: u64,
    /// By how much its clock was ahead of the tags of those at most; null without any.
    pub tardy_max_ns: Option<i64>,
    /// How often a reaction of it began after its deadline.
    pub missed_deadlines: u64,
    /// Tags that it began.
    pub tags: u64,
    /// What it dropped because too many tags waited.
    pub dropped: u64,
    /// Runs in which its last tag was over at the end.
    pub ended_runs: u32,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionResult {
    /// Its name, which is that of its channel.
    pub name: String,
    /// Whether it has a channel; if not, both federates are on one station.
    pub channel: bool,
    /// Messages that were sent.
    pub messages: u64,
    /// Messages that the reader received.
    pub received: u64,
    /// Messages whose frames did not come.
    pub lost: u64,
    /// Messages that waited at the sender because the channel's declared rate did not allow them.
    pub held: u64,
    /// Messages that came after their capture time and the channel's fixed delay: physical
    /// lateness.
    pub late: u64,
    /// By how much at most; null without any.
    pub late_max_ns: Option<i64>,
    /// Messages that came when their tags had begun.
    pub tardy: u64,
    /// The worst of its verdicts, also on what must not be lost or late.
    pub verdict: Judgement,
    /// When messages were sent, relative to the tag of their writers, in true time.
    pub sent: Range,
    /// When the reader received them, by its clock, relative to their tags; null on a physical
    /// connection, whose messages have the tags of their arrivals.
    pub arrival: Option<Range>,
    /// From the capture until the message was at the reader's host, in true time; null without a
    /// channel.
    pub latency: Option<Range>,
    /// Whether the plan guarantees that no message is lost.
    pub lossless: bool,
    /// Whether the plan and the clocks guarantee that no message is late.
    pub punctual: bool,
}

impl ConnectionResult {
    /// The verdict that its figures make.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let ranges = [Some(&self.sent), self.arrival.as_ref(), self.latency.as_ref()];
        let worst = ranges.into_iter().flatten().map(|range| range.verdict).max();
        let is_broken = self.lossless && self.lost > 0 || self.punctual && self.late > 0;
        let worst = worst.unwrap_or(Judgement::NotSeen);
        self.verdict = if is_broken { Judgement::Exceeded } else { worst };
        self
    }
}

/// Whether a reaction meets its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeadlineJudgement {
    /// By its bounds always, and it did.
    #[serde(rename = "met")]
    Met,
    /// By its bounds always, but it did not.
    #[serde(rename = "broken")]
    Broken,
    /// By its bounds not always, and it did not.
    #[serde(rename = "missed")]
    Missed,
    /// By its bounds not always, but it did.
    #[serde(rename = "may be missed")]
    MayBeMissed,
    /// It is not known whether always.
    #[serde(rename = "unknown")]
    Unknown,
}

/// A reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReactionResult {
    /// Its name: `federate.reaction`.
    pub name: String,
    /// Whether an execution time is known; if not, it took none.
    pub has_execution_time: bool,
    /// When it began, relative to its tag, in true time.
    pub release: Range,
    /// When it was done.
    pub finish: Range,
    /// Its deadline; null if it has none.
    pub deadline_ns: Option<i64>,
    /// How often it would have begun after its deadline: the handler executed instead.
    pub missed: u64,
    /// Whether it meets its deadline; null if it has none.
    pub deadline: Option<DeadlineJudgement>,
}

impl FederationResults {
    /// The results as indented JSON that ends with a line feed.
    pub fn to_json(&self) -> String {
        crate::contract::indented(self)
    }

    /// All that is beyond a bound or breaks a guarantee, one line each for a person.
    pub fn broken(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut range = |what: String, range: &Range| {
            lines.extend(range.excess().map(|excess| format!("{what}: {excess}")));
        };
        for chain in &self.chains {
            range(format!("chain {}", chain.reactions.join(" → ")), &chain.range);
        }
        for reaction in &self.reactions {
            range(format!("release of {}", reaction.name), &reaction.release);
            range(format!("finish of {}", reaction.name), &reaction.finish);
        }
        for connection in &self.connections {
            range(format!("sending on {}", connection.name), &connection.sent);
            for (what, bounded) in
                [("arrival", &connection.arrival), ("latency", &connection.latency)]
            {
                if let Some(bounded) = bounded {
                    range(format!("{what} on {}", connection.name), bounded);
                }
            }
        }
        lines.extend(self.federates.iter().filter_map(tardiness));
        lines.extend(self.reactions.iter().filter_map(|reaction| {
            let (name, missed) = (&reaction.name, reaction.missed);
            match reaction.deadline? {
                DeadlineJudgement::Broken => {
                    Some(format!("{name} missed its deadline {missed} times, which it never does"))
                }
                DeadlineJudgement::Missed => {
                    Some(format!("{name} missed its deadline {missed} times"))
                }
                _ => None,
            }
        }));
        for connection in &self.connections {
            let ConnectionResult { name, lost, late, held, .. } = connection;
            if connection.verdict == Judgement::Exceeded && *held > 0 {
                lines.push(format!(
                    "{held} messages on {name} waited for the channel's declared rate, which \
                     bounds do not count with"
                ));
            }
            if connection.lossless && *lost > 0 {
                lines.push(format!("{lost} messages on {name} were lost, which are reserved for"));
            }
            if connection.punctual && *late > 0 {
                lines.push(format!("{late} messages on {name} were later than the fixed delay"));
            }
        }
        lines
    }

    /// The same results with the verdict that they make.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.verdict = if !self.broken().is_empty() {
            Judgement::Exceeded
        } else if self.is_unknown() {
            Judgement::Unknown
        } else {
            Judgement::Within
        };
        self
    }

    fn is_unknown(&self) -> bool {
        let chains = self.chains.iter().map(|chain| chain.range.verdict);
        let reactions = self.reactions.iter();
        let reactions = reactions.flat_map(|one| [one.release.verdict, one.finish.verdict]);
        let connections = self.connections.iter().map(|connection| connection.verdict);
        let deadlines = self.reactions.iter().filter_map(|reaction| reaction.deadline);
        self.cut_runs > 0
            || chains.chain(reactions).chain(connections).any(|one| one == Judgement::Unknown)
            || self
                .federates
                .iter()
                .any(|federate| federate.verdict == WaitJudgement::Unknown || federate.dropped > 0)
            || deadlines.into_iter().any(|deadline| deadline == DeadlineJudgement::Unknown)
    }

    /// Why bounds are not known, each reason once, in order.
    pub fn reasons(&self) -> Vec<&str> {
        let chains = self.chains.iter().filter_map(|chain| chain.range.unknown.as_deref());
        let federates = self.federates.iter().filter_map(|one| one.unknown.as_deref());
        let reactions = self.reactions.iter().flat_map(|one| [&one.release, &one.finish]);
        let connections = self.connections.iter().flat_map(|one| {
            [Some(&one.sent), one.arrival.as_ref(), one.latency.as_ref()].into_iter().flatten()
        });
        let ranges = reactions.chain(connections).filter_map(|range| range.unknown.as_deref());
        let all = chains.chain(federates).chain(ranges);
        all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }
}

/// What is wrong with a federate to which messages were tardy.
fn tardiness(federate: &FederateResult) -> Option<String> {
    let FederateResult { name, tardy, .. } = federate;
    if *tardy == 0 {
        return None;
    }
    match federate.verdict {
        WaitJudgement::TooShort => {
            let by = federate.short_ns.map(|by| format!(" by {}", Span::from_ns(by)));
            let by = by.unwrap_or_default();
            Some(format!("{tardy} messages to {name} were tardy: its @maxwait is too short{by}"))
        }
        WaitJudgement::Unknown => None,
        _ => Some(format!("{tardy} messages to {name} were tardy, although its wait is safe")),
    }
}

/// The JSON Schema of [`FederationResults`]. Ends with a line feed.
pub fn schema() -> String {
    crate::contract::schema_of::<FederationResults>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(seen: Option<(i64, i64)>, best: Option<i64>, worst: Option<i64>) -> Judgement {
        let bound = |ns: Option<i64>| ns.map(Span::from_ns).ok_or_else(|| "why".to_owned());
        let seen = seen.map(|(min, max)| (Span::from_ns(min), Span::from_ns(max)));
        Range::new(2, seen, Some(bound(best)), bound(worst)).verdict
    }

    #[test]
    fn a_value_at_its_bound_is_within_it_and_one_beyond_is_not() {
        assert_eq!(range(Some((3, 9)), Some(3), Some(9)), Judgement::Within);
        assert_eq!(range(Some((3, 10)), Some(3), Some(9)), Judgement::Exceeded);
        assert_eq!(range(Some((2, 9)), Some(3), Some(9)), Judgement::Exceeded);
    }

    #[test]
    fn what_is_unknown_is_never_within_and_a_known_bound_counts_all_the_same() {
        assert_eq!(range(Some((3, 9)), None, Some(9)), Judgement::Unknown);
        assert_eq!(range(Some((3, 9)), Some(3), None), Judgement::Unknown);
        assert_eq!(range(Some((2, 9)), Some(3), None), Judgement::Exceeded);
        assert_eq!(range(None, Some(3), None), Judgement::NotSeen);
    }
}
