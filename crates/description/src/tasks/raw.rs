//! A task model as it is written: every key optional, so that one wrong key hides no other.

use crate::At;
use onbeat_model::graph::Policy;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Tasks and the channels between them, as Onbeat reads them for those who only model.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Onbeat tasks")]
#[expect(dead_code, reason = "for schema and key list; tables are read one by one")]
pub(super) struct File {
    /// Version of this format: 1.
    #[schemars(required)]
    pub(super) format: Option<At<i64>>,
    /// What the tasks are called together: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// Where tasks run; without any, all are on one host named `host`.
    host: Option<Vec<Host>>,
    /// What tasks write and read.
    channel: Option<Vec<Channel>>,
    /// The tasks.
    task: Option<Vec<Task>>,
    /// What is asked of channels one after the other.
    chain: Option<Vec<Chain>>,
}

/// Where tasks run.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// Unique among hosts: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// Processors that its tasks share; without, each task has one to itself.
    pub(super) cores: Option<At<i64>>,
    /// From the target of a timed sleep to the task continuing; zero by default.
    pub(super) wakeup_ns: Option<At<Range>>,
    /// What its clock reads when the system starts, in nanoseconds; 0 by default.
    pub(super) start_ns: Option<At<i64>>,
}

/// From a shortest to a longest time, in nanoseconds.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// The shortest; 0 by default.
    pub(super) min: Option<At<i64>>,
    /// The longest.
    pub(super) max: Option<At<i64>>,
}

/// What tasks write and read.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Channel {
    /// Unique among channels: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// What it is.
    #[schemars(required)]
    pub(super) kind: Option<At<Kind>>,
    /// How many values wait for a reader at most; 1024 by default.
    pub(super) capacity: Option<At<i64>>,
    /// From capture to receipt: of a network channel from `min` to `max`, of an IP channel from
    /// `min` on.
    pub(super) latency_ns: Option<At<Range>>,
    /// From capture to when an end with `wait` continues, in microseconds.
    pub(super) fixed_delay_us: Option<At<i64>>,
    /// Messages per second at most; without, and without `interval_ns`, as many as are written.
    pub(super) rate_hz: Option<At<i64>>,
    /// Least mean time between two messages in nanoseconds.
    pub(super) interval_ns: Option<At<i64>>,
    /// With a rate, the messages that may come at once after a pause; 1 by default.
    pub(super) burst_messages: Option<At<i64>>,
}

/// What a channel is.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A fifochannel between tasks of one host: no latency.
    Fifo,
    /// A network channel whose latency has a bound.
    Network,
    /// A network channel whose latency has none.
    Ip,
}

/// A task.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Unique among tasks: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// Its host; may be left out if there is only one.
    pub(super) host: Option<At<String>>,
    /// 1 to 99, the greater the more urgent; none by default.
    pub(super) priority: Option<At<i64>>,
    /// How it is scheduled; by its priority by default.
    pub(super) policy: Option<At<Policy>>,
    /// The processors of its host that it may use; any by default.
    pub(super) cores: Option<At<Vec<At<i64>>>>,
    /// The least time between two releases, in microseconds.
    pub(super) separation_us: Option<At<i64>>,
    /// Whether a point that is passed late keeps the phase; false by default.
    pub(super) keep_phase: Option<At<bool>>,
    /// What it does, in order.
    #[schemars(required)]
    #[expect(dead_code, reason = "for schema and key list; steps are read one by one")]
    steps: Option<Vec<Step>>,
}

/// One thing that a task does.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for schema and key list; steps are read one by one")]
pub(super) struct Step {
    /// Its place, as tables have it; the line that it stands in by default.
    pub(super) at: Option<At<StepName>>,
    /// Execution time in seconds: one number, or the best and the worst case.
    pub(super) work_s: Option<At<Times>>,
    /// The same in milliseconds.
    pub(super) work_ms: Option<At<Times>>,
    /// The same in microseconds.
    pub(super) work_us: Option<At<Times>>,
    /// The same in nanoseconds.
    pub(super) work_ns: Option<At<Times>>,
    /// A soft timing point, with its period in seconds.
    pub(super) soft_s: Option<At<i64>>,
    /// The same in milliseconds.
    pub(super) soft_ms: Option<At<i64>>,
    /// The same in microseconds.
    pub(super) soft_us: Option<At<i64>>,
    /// The same in nanoseconds.
    pub(super) soft_ns: Option<At<i64>>,
    /// A firm timing point, with its period in seconds.
    pub(super) firm_s: Option<At<i64>>,
    /// The same in milliseconds.
    pub(super) firm_ms: Option<At<i64>>,
    /// The same in microseconds.
    pub(super) firm_us: Option<At<i64>>,
    /// The same in nanoseconds.
    pub(super) firm_ns: Option<At<i64>>,
    /// A hard timing point, with its period in seconds.
    pub(super) hard_s: Option<At<i64>>,
    /// The same in milliseconds.
    pub(super) hard_ms: Option<At<i64>>,
    /// The same in microseconds.
    pub(super) hard_us: Option<At<i64>>,
    /// The same in nanoseconds.
    pub(super) hard_ns: Option<At<i64>>,
    /// The point's deadline in seconds; the period by default.
    pub(super) deadline_s: Option<At<i64>>,
    /// The same in milliseconds.
    pub(super) deadline_ms: Option<At<i64>>,
    /// The same in microseconds.
    pub(super) deadline_us: Option<At<i64>>,
    /// The same in nanoseconds.
    pub(super) deadline_ns: Option<At<i64>>,
    /// `"none"`: the point has no deadline.
    pub(super) deadline: Option<At<NoDeadline>>,
    /// Writes to this channel.
    pub(super) write: Option<At<String>>,
    /// Reads from this channel.
    pub(super) read: Option<At<String>>,
    /// Whether a write or a read continues only at capture time + fixed delay; false by default.
    pub(super) wait: Option<At<bool>>,
    /// Does `steps` so many times, for `"ever"`, or an `"unknown"` number of times.
    #[serde(rename = "loop")]
    pub(super) rounds: Option<At<Rounds>>,
    /// Does `steps` while it holds this resource.
    pub(super) lock: Option<At<String>>,
    /// What a loop or a lock is around.
    steps: Option<Vec<Step>>,
    /// Does one of these lists of steps; which one is unknown.
    either: Option<Vec<Vec<Step>>>,
    /// Does these steps, which no deadline aborts.
    critical: Option<Vec<Step>>,
    /// Starts this task.
    pub(super) start: Option<At<String>>,
    /// Continues at the timing point that is next, which does not wait.
    pub(super) skip: Option<At<bool>>,
    /// Makes the present instant the one that the next point counts from.
    pub(super) gettime: Option<At<bool>>,
    /// Leaves the innermost loop.
    #[serde(rename = "break")]
    pub(super) leave: Option<At<bool>>,
}

/// A time's keys in one unit each, of which one may be there, from seconds on.
pub(super) type Units<'a, T> = [(&'static str, &'a Option<At<T>>); 4];

macro_rules! units {
    ($($name:ident: $value:ty = $($key:ident)*;)*) => {
        impl Step {
            $(pub(super) fn $name(&self) -> Units<'_, $value> {
                [$((stringify!($key), &self.$key)),*]
            })*
        }
    };
}
units! {
    work: Times = work_s work_ms work_us work_ns;
    soft: i64 = soft_s soft_ms soft_us soft_ns;
    firm: i64 = firm_s firm_ms firm_us firm_ns;
    hard: i64 = hard_s hard_ms hard_us hard_ns;
    deadline: i64 = deadline_s deadline_ms deadline_us deadline_ns;
}

/// That a point has no deadline.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum NoDeadline {
    /// There is none.
    None,
}

/// What is asked of channels one after the other.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Chain {
    /// Unique among chains: letters, digits, `-`, `_`.
    #[schemars(required)]
    pub(super) name: Option<At<String>>,
    /// Channels in order; some task reads each and writes the next.
    #[schemars(required)]
    pub(super) channels: Option<At<Vec<At<String>>>>,
    /// The most from the first capture to the last receipt, in microseconds.
    pub(super) deadline_us: Option<At<i64>>,
    /// The most that data may be old when newer ones come, in microseconds.
    pub(super) age_us: Option<At<i64>>,
    /// The most from something that happens to the first receipt that can show it, in
    /// microseconds.
    pub(super) reaction_us: Option<At<i64>>,
}

/// A value that may be written in more than one way, and its schema.
macro_rules! value {
    ($name:ident, $visitor:ident, $schema:tt) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($visitor)
            }
        }
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// Best and worst case.
#[derive(Clone, Copy)]
pub(super) struct Times(pub(super) i64, pub(super) i64);

struct TimesVisitor;

impl<'de> Visitor<'de> for TimesVisitor {
    type Value = Times;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or [best, worst]")
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Times, E> {
        Ok(Times(value, value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Times, A::Error> {
        let mut next = |n| list.next_element()?.ok_or_else(|| Error::invalid_length(n, &self));
        let times = Times(next(0)?, next(1)?);
        match list.next_element::<i64>()? {
            None => Ok(times),
            Some(_) => Err(Error::invalid_length(3, &self)),
        }
    }
}
value!(Times, TimesVisitor, {
    "oneOf": [
        { "type": "integer" },
        { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 },
    ],
});

/// How many iterations a loop has.
#[derive(Clone, Copy)]
pub(super) enum Rounds {
    Times(i64),
    Ever,
    Unknown,
}

struct RoundsVisitor;

impl Visitor<'_> for RoundsVisitor {
    type Value = Rounds;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, \"ever\" or \"unknown\"")
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Rounds, E> {
        Ok(Rounds::Times(value))
    }
    fn visit_str<E: Error>(self, word: &str) -> Result<Rounds, E> {
        match word {
            "ever" => Ok(Rounds::Ever),
            "unknown" => Ok(Rounds::Unknown),
            _ => Err(E::unknown_variant(word, &["ever", "unknown"])),
        }
    }
}
value!(Rounds, RoundsVisitor, {
    "oneOf": [{ "type": "integer" }, { "type": "string", "enum": ["ever", "unknown"] }],
});

/// The name of a step: a text or a number.
#[derive(Clone)]
pub(super) struct StepName(pub(super) String);

struct StepNameVisitor;

impl Visitor<'_> for StepNameVisitor {
    type Value = StepName;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<StepName, E> {
        Ok(StepName(value.to_string()))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<StepName, E> {
        Ok(StepName(text.to_owned()))
    }
}
value!(StepName, StepNameVisitor, { "oneOf": [{ "type": "integer" }, { "type": "string" }] });
