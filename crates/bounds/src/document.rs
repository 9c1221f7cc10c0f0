//! What `onbeat plan --json` prints: the plan with names instead of ids.

use onbeat_model::plan::{
    AtsScheduler, Backlog, Bound, ChannelPlan, Plan, PortPlan, PortWindow, StreamPlan,
};
use onbeat_model::port::{GateControl, QUEUES, Selection};
use onbeat_model::system::{ChannelId, Class, PortId, System};
use onbeat_model::time::Span;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What [`PlanDocument::format`] always is.
const FORMAT: &str = "onbeat-plan";
/// What [`PlanDocument::version`] is now.
const VERSION: u32 = 1;

/// A plan for other tools. Times are in nanoseconds, rates in bits per second. A field may be
/// added under the same `version`; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// Always `onbeat-plan`.
    pub format: Cow<'static, str>,
    /// Which contract: 1.
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// Whether reservations were made.
    pub protected: bool,
    /// In the order of the description.
    pub channels: Vec<ChannelDocument>,
    /// In the order of the description.
    pub streams: Vec<StreamDocument>,
    /// Every port, two per link.
    pub ports: Vec<PortDocument>,
    /// In the order of the description.
    pub noise: Vec<NoiseDocument>,
    /// In the order of the description.
    pub chains: Vec<ChainDocument>,
    /// Channels of the description that are not admitted, where they were admitted one at a time;
    /// they are none of `channels`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedDocument>,
}

/// A channel that found no room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedDocument {
    /// Its name.
    pub name: String,
    /// The code of the first reason, such as `OB2002`.
    pub code: String,
    /// The reasons, for a person.
    pub why: Vec<String>,
}

/// One channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelDocument {
    /// Its name.
    pub name: String,
    /// Its class when it is protected.
    pub class: Class,
    /// Whether it has a reservation.
    pub protected: bool,
    /// Where its frames go to: a MAC address. Null in plans that were written before this was said.
    #[serde(default)]
    pub destination: Option<String>,
    /// VLAN identifier; null as `destination`.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// Priority code point; null as `destination`.
    #[serde(default)]
    pub pcp: Option<u8>,
    /// One message per interval, on the wire.
    pub true_rate_bps: u64,
    /// At least one frame per class measurement interval; of class asynchronous the greatest rate
    /// of its schedulers; zero without a reservation.
    pub reserved_rate_bps: u64,
    /// How many messages may come at once after a pause.
    pub burst_messages: u32,
    /// In how many frames each message is sent; left out if in one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub frames_per_message: u32,
    /// Capture to wake-up.
    pub fixed_delay_ns: i64,
    /// The worst over all listeners; null without a reservation.
    pub bound_ns: Option<i64>,
    /// When its frames leave; left out unless it is scheduled and has windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchDocument>,
    /// Its ATS schedulers, upstream first; left out unless it is of class asynchronous.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<SchedulerDocument>,
    /// In the order of the description.
    pub listeners: Vec<ListenerDocument>,
}

/// When the frames of a scheduled channel leave, in each of its intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchDocument {
    /// The launch time, by the talker's clock.
    pub at_ns: i64,
    /// When a program has to write at the latest for this launch time, by the talker's clock.
    pub write_ns: i64,
    /// At each port of the tree, the talker's first.
    pub windows: Vec<WindowDocument>,
}

/// A window of gates that one frame has for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowDocument {
    /// The egress port, as `node.port`.
    pub port: String,
    /// When it opens, by the clock of the port's node, from the begin of the interval of the launch
    /// time; it may be in a later interval.
    pub start_ns: i64,
    /// For how long it is open.
    pub span_ns: i64,
}

/// The ATS scheduler (802.1Q-2022 8.6.5.6) of a channel for one port of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerDocument {
    /// The egress port, as `node.port`.
    pub port: String,
    /// The reception port: schedulers of one reception port, for one egress port, are a group.
    pub group: String,
    /// CommittedInformationRate, of frames on the wire, by the clock of the port's node.
    pub rate_bps: u64,
    /// CommittedBurstSize.
    pub burst_octets: u32,
}

/// One listener of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerDocument {
    /// The host.
    pub host: String,
    /// Egress ports on the path, as `node.port`; of a replicated channel, on the first one.
    pub path: Vec<String>,
    /// The same of all paths of a replicated channel; left out of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Vec<String>>,
    /// Capture to receipt at most; null without a reservation.
    pub bound_ns: Option<i64>,
    /// Capture to receipt at least; null without a reservation. Jitter is at most the difference.
    pub best_ns: Option<i64>,
    /// What the bound is the sum of, in the order in which a message meets it.
    pub terms: Vec<TermDocument>,
    /// Why there is no bound; left out where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_bound: Option<ReasonDocument>,
}

/// One term of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermDocument {
    /// What delays the message.
    pub what: String,
    /// By how much at most.
    pub span_ns: i64,
}

/// One modelled stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamDocument {
    /// Its name.
    pub name: String,
    /// Its queue at every port.
    pub traffic_class: u8,
    /// VLAN identifier.
    pub vlan: u16,
    /// Priority code point.
    pub pcp: u8,
    /// Release to receipt; null without a deadline.
    pub deadline_ns: Option<i64>,
    /// The worst over all listeners; null if one of them has no bound.
    pub bound_ns: Option<i64>,
    /// Whether the bounds hold for the described phases only.
    pub scheduled: bool,
    /// In the order of the description.
    pub listeners: Vec<StreamListenerDocument>,
}

/// One listener of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamListenerDocument {
    /// The host.
    pub host: String,
    /// Per path the egress ports, as `node.port`; several if the stream is replicated.
    pub paths: Vec<Vec<String>>,
    /// Release to receipt at most; null without a bound.
    pub bound_ns: Option<i64>,
    /// Release to receipt at least; null without a bound.
    pub best_ns: Option<i64>,
    /// What the bound is the sum of, in the order in which a frame meets it.
    pub terms: Vec<TermDocument>,
    /// Why there is no bound; left out where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_bound: Option<ReasonDocument>,
}

/// Why a flow has no bound at a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonDocument {
    /// `unlimited-traffic`, `babbling`, `overload`, `short-windows`, `preemption`, `regulator`,
    /// `circle`, `too-long`; `not-reserved` for a channel without a reservation, `tcp` for messages
    /// over TCP.
    pub cause: Cow<'static, str>,
    /// Where, as `node.port`; null if it is not at a port.
    pub port: Option<String>,
    /// The queue of that port.
    pub queue: Option<u8>,
    /// For a person.
    pub why: String,
}

impl PlanDocument {
    /// The plan that `onbeat plan --json` printed once.
    ///
    /// # Errors
    /// In words, when it is none, or one of another version.
    pub fn read(octets: &[u8]) -> Result<Self, String> {
        /// What is the same in every version.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head = serde_json::from_slice::<Head>(octets).map_err(|error| error.to_string());
        match head {
            Ok(head) if head.format == FORMAT && head.version == VERSION => {
                serde_json::from_slice(octets).map_err(|error| error.to_string())
            }
            Ok(head) if head.format == FORMAT => {
                Err(format!("it is a plan of version {}, and {VERSION} is read", head.version))
            }
            Ok(head) => Err(format!("it is `{}`, not `{FORMAT}`", head.format)),
            Err(why) => Err(format!("it is no plan: {why}")),
        }
    }
}

impl ReasonDocument {
    /// Why a stream has no bound at one of its listeners, if it has none.
    pub fn of_stream(system: &System, planned: &StreamPlan, listener: usize) -> Option<Self> {
        let bound = planned.bounds.get(listener).and_then(Option::as_ref);
        let reason = planned.unbounded.get(listener).and_then(Option::as_ref);
        reason.filter(|_| bound.is_none()).map(|reason| Self {
            cause: reason.cause.as_str().into(),
            port: Some(system.port_label(reason.port)),
            queue: Some(reason.queue),
            why: reason.why.clone(),
        })
    }

    /// Why a channel has none: it is not protected, or its plan leaves it to hosts and bridges who
    /// gets what a port has too little of.
    pub fn of_channel(planned: &ChannelPlan) -> Self {
        let (cause, why) = match planned.protected {
            false => ("not-reserved", "it has no reservation: it travels as best effort"),
            true => ("overloaded", "more is asked for than ports can reserve"),
        };
        Self { cause: cause.into(), port: None, queue: None, why: why.to_owned() }
    }

    /// Why messages over TCP have none.
    pub fn over_tcp() -> Self {
        let why = "it is best effort over TCP, which waits for its timers after a loss".to_owned();
        Self { cause: "tcp".into(), port: None, queue: None, why }
    }
}

/// How one port sends, and what it reserves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDocument {
    /// As `node.port`.
    pub port: String,
    /// The rate of its link.
    pub rate_bps: u64,
    /// idleSlope of class A.
    pub class_a_idle_slope_bps: u64,
    /// idleSlope of class B.
    pub class_b_idle_slope_bps: u64,
    /// Streams of class A that leave here.
    pub class_a_streams: u32,
    /// Streams of class B that leave here.
    pub class_b_streams: u32,
    /// What channels of class asynchronous reserve here; left out, as the next, where none leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asynchronous_rate_bps: Option<u64>,
    /// Channels of class asynchronous that leave here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asynchronous_streams: Option<u32>,
    /// Its eight queues, 0 first.
    pub queues: Vec<QueueDocument>,
    /// Its gate control lists in the order of their base times; empty: all gates are open.
    pub gates: Vec<GateControlDocument>,
    /// The VLANs whose frames leave here; null: all.
    pub vlans: Option<Vec<u16>>,
}

/// One queue of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDocument {
    /// Its number; 7 is sent first.
    pub queue: usize,
    /// `strict-priority`, `credit-based` or `asynchronous`.
    pub selection: Cow<'static, str>,
    /// idleSlope; null without a credit-based shaper.
    pub idle_slope_bps: Option<u64>,
    /// Whether frames of other queues may interrupt its frames.
    pub preemptable: bool,
    /// Frames that wait here at once at most; null if that is not bounded.
    pub backlog_frames: Option<u64>,
    /// Octets of these frames; null if that is not bounded.
    pub backlog_octets: Option<u64>,
}

/// One gate control list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateControlDocument {
    /// When its first cycle starts, by the node's clock.
    pub base_ns: i64,
    /// How long a cycle takes.
    pub cycle_ns: i64,
    /// Whether a frame starts only if it ends before its gate closes.
    pub length_aware: bool,
    /// In order.
    pub entries: Vec<GateDocument>,
}

/// One state of a port's gates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateDocument {
    /// The queues that may start a frame.
    pub open: Vec<usize>,
    /// For how long.
    pub for_ns: i64,
}

/// The path of one noise source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseDocument {
    /// Its name.
    pub name: String,
    /// Egress ports on the path, as `node.port`.
    pub path: Vec<String>,
}

/// One chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainDocument {
    /// Its name.
    pub name: String,
    /// First capture to last receipt.
    pub deadline_ns: i64,
    /// At most; null when a channel of it has no bound.
    pub bound_ns: Option<i64>,
}

/// The document of a plan that was made of `system`.
pub fn document(system: &System, plan: &Plan) -> PlanDocument {
    let noise = system.noise.iter().zip(&plan.noise).map(|(noise, path)| NoiseDocument {
        name: noise.name.clone(),
        path: labels(system, path),
    });
    let chains = system.chains.iter().zip(&plan.chains).map(|(chain, bound)| ChainDocument {
        name: chain.name.clone(),
        deadline_ns: chain.deadline.as_ns(),
        bound_ns: bound.map(|b| b.as_ns()),
    });
    PlanDocument {
        format: FORMAT.into(),
        version: VERSION,
        system: system.name.clone(),
        protected: plan.protected,
        channels: channels(system, plan),
        streams: streams(system, plan),
        ports: ports(system, plan),
        noise: noise.collect(),
        chains: chains.collect(),
        refused: Vec::new(),
    }
}

fn labels(system: &System, path: &[PortId]) -> Vec<String> {
    path.iter().map(|port| system.port_label(*port)).collect()
}

impl LaunchDocument {
    fn of_channel(system: &System, plan: &Plan, id: ChannelId) -> Option<Self> {
        let launch = plan.channel(id).launch.as_ref()?;
        let window = |window: &PortWindow| WindowDocument {
            port: system.port_label(window.port),
            start_ns: window.start.as_ns(),
            span_ns: window.span.as_ns(),
        };
        Some(Self {
            at_ns: launch.at.as_ns(),
            write_ns: plan.phase(system, id).as_ns(),
            windows: launch.windows.iter().map(window).collect(),
        })
    }
}

fn channels(system: &System, plan: &Plan) -> Vec<ChannelDocument> {
    let both = (0..).map(ChannelId).zip(&system.channels).zip(&plan.channels);
    both.map(|((id, channel), planned)| {
        let listeners = channel.listeners.iter().enumerate().map(|(at, listener)| {
            let bound = planned.bounds.get(at);
            ListenerDocument {
                host: system.node(*listener).name.clone(),
                path: labels(system, &planned.paths[at]),
                paths: match channel.paths.is_replicated() {
                    true => planned.paths.iter().map(|path| labels(system, path)).collect(),
                    false => Vec::new(),
                },
                bound_ns: bound.map(|b| b.total().as_ns()),
                best_ns: bound.map(|b| b.best.as_ns()),
                terms: terms(bound),
                no_bound: bound.is_none().then(|| ReasonDocument::of_channel(planned)),
            }
        });
        ChannelDocument {
            name: channel.name.clone(),
            class: channel.class,
            protected: planned.protected,
            destination: Some(channel.destination.to_string()),
            vlan: Some(channel.vlan),
            pcp: Some(channel.pcp),
            true_rate_bps: planned.true_rate.as_bps(),
            reserved_rate_bps: planned.reserved_rate.as_bps(),
            burst_messages: channel.burst,
            frames_per_message: channel.frames(),
            fixed_delay_ns: channel.fixed_delay.as_ns(),
            bound_ns: planned.bound().map(|b| b.as_ns()),
            launch: LaunchDocument::of_channel(system, plan, id),
            schedulers: schedulers(system, planned),
            listeners: listeners.collect(),
        }
    })
    .collect()
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

fn schedulers(system: &System, planned: &ChannelPlan) -> Vec<SchedulerDocument> {
    let scheduler = |scheduler: &AtsScheduler| SchedulerDocument {
        port: system.port_label(scheduler.port),
        group: system.port_label(scheduler.group),
        rate_bps: scheduler.bucket.rate.as_bps(),
        burst_octets: scheduler.bucket.burst.get(),
    };
    planned.schedulers.iter().map(scheduler).collect()
}

fn terms(bound: Option<&Bound>) -> Vec<TermDocument> {
    let terms = bound.into_iter().flat_map(|b| &b.terms);
    terms.map(|t| TermDocument { what: t.what.clone(), span_ns: t.span.as_ns() }).collect()
}

fn streams(system: &System, plan: &Plan) -> Vec<StreamDocument> {
    let both = system.streams.iter().zip(&plan.streams);
    both.map(|(stream, planned)| {
        let bounds = |at: usize| planned.bounds.get(at).and_then(Option::as_ref);
        let listeners = stream.listeners.iter().enumerate().map(|(at, listener)| {
            let bound = bounds(at);
            StreamListenerDocument {
                host: system.node(*listener).name.clone(),
                paths: planned.paths[at].iter().map(|path| labels(system, path)).collect(),
                bound_ns: bound.map(|b| b.total().as_ns()),
                best_ns: bound.map(|b| b.best.as_ns()),
                terms: terms(bound),
                no_bound: ReasonDocument::of_stream(system, planned, at),
            }
        });
        let totals = (0..stream.listeners.len()).map(|at| bounds(at).map(Bound::total));
        let worst: Option<Vec<Span>> = totals.collect();
        StreamDocument {
            name: stream.name.clone(),
            traffic_class: stream.traffic_class,
            vlan: stream.vlan,
            pcp: stream.pcp,
            deadline_ns: stream.deadline.map(Span::as_ns),
            bound_ns: worst.and_then(|all| all.into_iter().max()).map(Span::as_ns),
            scheduled: planned.phase_specific,
            listeners: listeners.collect(),
        }
    })
    .collect()
}

fn ports(system: &System, plan: &Plan) -> Vec<PortDocument> {
    let both = (0..).map(PortId).zip(&plan.ports);
    both.map(|(id, planned)| PortDocument {
        port: system.port_label(id),
        rate_bps: system.link_of(id).rate.as_bps(),
        class_a_idle_slope_bps: planned.idle_slope(Class::A).as_bps(),
        class_b_idle_slope_bps: planned.idle_slope(Class::B).as_bps(),
        class_a_streams: planned.class_a_streams,
        class_b_streams: planned.class_b_streams,
        asynchronous_rate_bps: (planned.asynchronous_streams > 0)
            .then(|| planned.asynchronous_rate.as_bps()),
        asynchronous_streams: Some(planned.asynchronous_streams).filter(|streams| *streams > 0),
        queues: queues(planned, plan.backlogs.get(id.index())),
        gates: planned.settings.gates.iter().map(gates).collect(),
        vlans: planned.settings.vlans.clone(),
    })
    .collect()
}

fn queues(planned: &PortPlan, backlogs: Option<&[Option<Backlog>; QUEUES]>) -> Vec<QueueDocument> {
    let queue = |queue: usize| {
        let (selection, idle_slope) = match planned.settings.selection[queue] {
            Selection::StrictPriority => ("strict-priority", None),
            Selection::CreditBased { idle_slope } => ("credit-based", Some(idle_slope)),
            Selection::Asynchronous => ("asynchronous", None),
        };
        let backlog = backlogs.and_then(|all| all[queue]);
        QueueDocument {
            queue,
            selection: selection.into(),
            idle_slope_bps: idle_slope.map(|slope| slope.as_bps()),
            preemptable: planned.settings.preemptable & 1 << queue != 0,
            backlog_frames: backlog.map(|b| b.frames),
            backlog_octets: backlog.map(|b| b.octets),
        }
    };
    (0..QUEUES).map(queue).collect()
}

fn gates(list: &GateControl) -> GateControlDocument {
    let entries = list.entries.iter().map(|entry| GateDocument {
        open: (0..QUEUES).filter(|queue| entry.open & 1 << queue != 0).collect(),
        for_ns: entry.span.as_ns(),
    });
    GateControlDocument {
        base_ns: list.base.as_ns(),
        cycle_ns: list.cycle.as_ns(),
        length_aware: list.length_aware,
        entries: entries.collect(),
    }
}
