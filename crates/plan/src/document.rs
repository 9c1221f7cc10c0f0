//! What `onbeat plan --json` prints: the plan with names instead of ids.

use onbeat_model::plan::Plan;
use onbeat_model::system::{Class, PortId, System};
use serde::Serialize;

/// A plan for other tools. Times are in nanoseconds, rates in bits per second. A field may be
/// added under the same `version`; none is removed, renamed or given another meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDocument {
    /// Always `onbeat-plan`.
    pub format: &'static str,
    /// Which contract: 1.
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// Whether reservations were made.
    pub protected: bool,
    /// In the order of the description.
    pub channels: Vec<ChannelDocument>,
    /// Every port, two per link.
    pub ports: Vec<PortDocument>,
    /// In the order of the description.
    pub noise: Vec<NoiseDocument>,
    /// In the order of the description.
    pub chains: Vec<ChainDocument>,
}

/// One channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelDocument {
    /// Its name.
    pub name: String,
    /// Its class when it is protected.
    pub class: Class,
    /// Whether it has a reservation.
    pub protected: bool,
    /// One frame per interval, on the wire.
    pub true_rate_bps: u64,
    /// At least one frame per class measurement interval; zero without a reservation.
    pub reserved_rate_bps: u64,
    /// Capture to wake-up.
    pub fixed_delay_ns: i64,
    /// The worst over all listeners; null without a reservation.
    pub bound_ns: Option<i64>,
    /// In the order of the description.
    pub listeners: Vec<ListenerDocument>,
}

/// One listener of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListenerDocument {
    /// The host.
    pub host: String,
    /// Egress ports on the way, as `node.port`.
    pub path: Vec<String>,
    /// Capture to receipt at most; null without a reservation.
    pub bound_ns: Option<i64>,
    /// What the bound is the sum of, in the order in which a message meets it.
    pub terms: Vec<TermDocument>,
}

/// One term of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TermDocument {
    /// What delays the message.
    pub what: String,
    /// By how much at most.
    pub span_ns: i64,
}

/// What one port reserves for what it sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
}

/// The path of one noise source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoiseDocument {
    /// Its name.
    pub name: String,
    /// Egress ports on the way, as `node.port`.
    pub path: Vec<String>,
}

/// One chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        format: "onbeat-plan",
        version: 1,
        system: system.name.clone(),
        protected: plan.protected,
        channels: channels(system, plan),
        ports: ports(system, plan),
        noise: noise.collect(),
        chains: chains.collect(),
    }
}

fn labels(system: &System, path: &[PortId]) -> Vec<String> {
    path.iter().map(|port| system.port_label(*port)).collect()
}

fn channels(system: &System, plan: &Plan) -> Vec<ChannelDocument> {
    let both = system.channels.iter().zip(&plan.channels);
    both.map(|(channel, planned)| {
        let listeners = channel.listeners.iter().enumerate().map(|(at, listener)| {
            let bound = planned.bounds.get(at);
            let terms = bound.iter().flat_map(|b| &b.terms);
            ListenerDocument {
                host: system.node(*listener).name.clone(),
                path: labels(system, &planned.paths[at]),
                bound_ns: bound.map(|b| b.total().as_ns()),
                terms: terms
                    .map(|t| TermDocument { what: t.what.clone(), span_ns: t.span.as_ns() })
                    .collect(),
            }
        });
        ChannelDocument {
            name: channel.name.clone(),
            class: channel.class,
            protected: planned.protected,
            true_rate_bps: planned.true_rate.as_bps(),
            reserved_rate_bps: planned.reserved_rate.as_bps(),
            fixed_delay_ns: channel.fixed_delay.as_ns(),
            bound_ns: planned.bound().map(|b| b.as_ns()),
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
    })
    .collect()
}
