//! A network of gPTP nodes in virtual time: how far each clock is from the grandmaster's, when
//! oscillators wander, time stamps are coarse and links have asymmetries. The nodes are those of
//! `onbeat_runtime::gptp`, octet by octet; only clocks, stamps and links are modelled. The same
//! scenario gives the same trace, whatever the machine.
//!
//! ```
//! use onbeat_net::gptp::{GptpScenario, Stamping, simulate};
//! use onbeat_model::time::{NetTime, Span};
//!
//! let mut scenario = GptpScenario::chain(3, Stamping::HARDWARE, 1);
//! scenario.duration = Span::from_s(20);
//! let trace = simulate(&scenario).expect("a sound scenario");
//! let error = trace.error(3, NetTime::from_ns(10_000_000_000)).expect("samples");
//! assert!(error.max < Span::from_us(1));
//! ```
//!
//! # Model
//! A node's *oscillator* has a start, a constant error of its rate, and a wander: every 10 ms its
//! rate takes a step drawn evenly from an interval, back from a bound. A *time stamp* is the
//! oscillator's reading, moved by a jitter drawn evenly from zero to its maximum, earlier for what
//! leaves and later for what comes, and cut to the clock's granularity. What a node sends leaves
//! after a *send_delay* drawn evenly from an interval, in order; this is also what a relay takes
//! for a Sync and a neighbour for its response. A *link* has one delay per direction; the protocol
//! can only assume that they are alike. In a [`GptpScenario`] there is no other traffic, and a link
//! has no rate; in a run ([`join_protocols`](crate::join_protocols)) frames share ports and links
//! with all that the run sends.

mod clocks;
mod instance;
mod oscillator;
mod study;
mod trace;

pub(crate) use clocks::joining;
pub use clocks::{LINK_DELAY_MAX, synchronise};
pub use trace::{ErrorFigures, NodeSummary, Sample, Trace};

use crate::random::{Purpose, Stream};
use onbeat_model::stream::FaultKind;
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::gptp::ServoSettings;

/// The most nodes of a scenario.
pub const NODES_MAX: usize = 1_000;
/// The most readings that a trace keeps: samples times nodes.
pub const READINGS_MAX: u64 = 50_000_000;
/// The time between two steps of an oscillator's rate.
pub const FREQUENCY_DRIFT_INTERVAL: Span = Span::from_ms(10);
/// The largest error of an oscillator's rate, with its wander: twice what 802.1AS permits.
pub const RATE_MAX_PPB: i64 = 200_000;

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GptpScenario {
    /// The nodes; a node's number is its index.
    pub nodes: Vec<NodeModel>,
    /// Links between them. A node's ports are in the order of its links.
    pub links: Vec<LinkModel>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// How long.
    pub duration: Span,
    /// The time between two samples of all clocks.
    pub sample_every: Span,
    /// For all that is random.
    pub seed: u64,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeModel {
    /// How much it is wanted as grandmaster, less is more; 255: never.
    pub priority1: u8,
    /// Its own clock.
    pub oscillator: Oscillator,
    /// How it notes the times of messages.
    pub stamps: Stamping,
    /// The shortest and the longest time between a decision to send and the departure.
    pub send_delay: [Span; 2],
    /// The longest delay that it takes for that of a link (meanLinkDelayThresh).
    pub mean_link_delay_threshold: Span,
    /// How fast its clock follows.
    pub servo: ServoSettings,
}

/// A node's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oscillator {
    /// What it reads at the start, not negative.
    pub start: Span,
    /// The constant part of its rate's error, in parts in 10⁹.
    pub rate_ppb: i64,
    /// The largest step of its rate each [`FREQUENCY_DRIFT_INTERVAL`], in parts in 10¹².
    pub frequency_drift_ppt: i64,
    /// How far the rate wanders from its constant part at most, in parts in 10⁹.
    pub frequency_drift_max_ppb: i64,
}

/// How a node notes the times of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// What a stamp is a multiple of.
    pub granularity: Span,
    /// How far a stamp is from the event at most, before it is cut to the granularity.
    pub jitter: Span,
}

impl Stamping {
    /// A clock of 125 MHz in the network interface, and as much jitter of the PHY.
    pub const HARDWARE: Self = Self { granularity: Span::from_ns(8), jitter: Span::from_ns(8) };
    /// As coarse as 802.1AS permits (B.1.2: 40 ns), with as much jitter.
    pub const COARSE: Self = Self { granularity: Span::from_ns(40), jitter: Span::from_ns(40) };
    /// The kernel's: exact to a nanosecond, and late by microseconds.
    pub const SOFTWARE: Self = Self { granularity: Span::from_ns(1), jitter: Span::from_us(20) };
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// The two nodes.
    pub ends: [usize; 2],
    /// The delay from the first end to the second, and back.
    pub delay: [Span; 2],
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node stops for good.
    NodeStops {
        /// Which.
        node: usize,
        /// When.
        at: NetTime,
    },
    /// A link carries nothing from an instant to another, without that.
    LinkDown {
        /// Which, by its index.
        link: usize,
        /// The first instant.
        from: NetTime,
        /// The end.
        until: NetTime,
    },
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// No nodes, or too many.
    #[error("{0} nodes: 1 to {NODES_MAX} can be simulated")]
    Nodes(usize),
    /// A node's figures.
    #[error("node {node}: {what}")]
    Node {
        /// Which.
        node: usize,
        /// Which figure, and what it must be.
        what: &'static str,
    },
    /// A link's figures.
    #[error("link {link}: {what}")]
    Link {
        /// Which.
        link: usize,
        /// Which figure, and what it must be.
        what: &'static str,
    },
    /// A fault names what is not there.
    #[error("fault {0}: no such node or link, or it ends before it begins")]
    Fault(usize),
    /// Times that cannot be simulated.
    #[error("{0}")]
    Time(&'static str),
}

impl GptpScenario {
    /// Nodes in a row, `hops` links long, in the ranges of 802.1AS-2020 annex B: the first is
    /// grandmaster; rates within 100 ppm, wandering within 1 ppm by about 3 ppb in a second; links
    /// of 50 to 500 ns that are asymmetric by up to 8 ns; send delays of 0.1 to 10 ms. 100 s, ten
    /// samples a second. Software stamps get a threshold for the link delay that lets them be.
    pub fn chain(hops: usize, stamps: Stamping, seed: u64) -> Self {
        let mut random = Stream::new(seed, Purpose::Synchronisation, NODES_MAX);
        let node = |number: usize| NodeModel::typical(number == 0, stamps, &mut random);
        let nodes = (0..=hops).map(node).collect();
        let link = |number: usize| {
            let delay = between(&mut random, 50, 500);
            let back = delay + between(&mut random, -8, 8);
            let delay = [delay, back].map(Span::from_ns);
            LinkModel { ends: [number, number + 1], delay }
        };
        let links = (0..hops).map(link).collect();
        let (duration, sample_every) = (Span::from_s(100), Span::from_ms(100));
        Self { nodes, links, faults: Vec::new(), duration, sample_every, seed }
    }

    /// The network of a description: its nodes and links by their indices, propagation delays as
    /// described, clocks and send delays as those of [`GptpScenario::chain`]. One node is
    /// grandmaster (802.1AS: commonly a bridge), all others may become it. Of the description's
    /// faults, links that are down, and nodes, whose clocks continue meanwhile and whose links do
    /// not. Thresholds for the link delay let the described links be, as who lays long ones sets
    /// them (802.1AS-2020 11.2.2). Its clock errors are not used: a trace is what they may be
    /// compared with.
    pub fn of(system: &System, grandmaster: NodeId, stamps: Stamping, seed: u64) -> Self {
        let mut random = Stream::new(seed, Purpose::Synchronisation, NODES_MAX);
        let longest = system.links.iter().map(|link| link.propagation).max().unwrap_or_default();
        let node = |number: usize| {
            let leads = number == grandmaster.index();
            let mut node = NodeModel::typical(leads, stamps, &mut random);
            node.mean_link_delay_threshold += longest;
            node
        };
        let nodes = (0..system.nodes.len()).map(node).collect();
        let link = |link: &onbeat_model::system::Link| {
            let ends = link.ports.map(|port| system.port(port).node.index());
            LinkModel { ends, delay: [link.propagation; 2] }
        };
        let links: Vec<_> = system.links.iter().map(link).collect();
        let mut faults = Vec::new();
        for fault in &system.faults {
            let down = |link| Fault::LinkDown { link, from: fault.from, until: fault.until };
            let touches = |link: &LinkModel, node: NodeId| link.ends.contains(&node.index());
            match fault.kind {
                FaultKind::LinkDown(link) => faults.push(down(link.index())),
                FaultKind::NodeDown(node) => {
                    let numbered = links.iter().enumerate().filter(|(_, link)| touches(link, node));
                    faults.extend(numbered.map(|(index, _)| down(index)));
                }
                _ => {}
            }
        }
        let (duration, sample_every) = (Span::from_s(100), Span::from_ms(100));
        Self { nodes, links, faults, duration, sample_every, seed }
    }

    /// Looks for what cannot be simulated.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if !(1..=NODES_MAX).contains(&self.nodes.len()) {
            return Err(ScenarioError::Nodes(self.nodes.len()));
        }
        for (node, model) in self.nodes.iter().enumerate() {
            model.check().map_err(|what| ScenarioError::Node { node, what })?;
        }
        for (link, model) in self.links.iter().enumerate() {
            let [a, b] = model.ends;
            let there = a < self.nodes.len() && b < self.nodes.len();
            let what = match model.delay {
                _ if a == b || !there => "its ends must be two nodes that there are",
                delay if !delay.iter().all(|d| is_within(*d, 0, 1_000_000_000)) => {
                    "delays must be 0 to 1 s"
                }
                _ => continue,
            };
            return Err(ScenarioError::Link { link, what });
        }
        let linked = |node: &usize| self.links.iter().any(|link| link.ends.contains(node));
        if let Some(node) = (0..self.nodes.len()).find(|node| !linked(node)) {
            return Err(ScenarioError::Node { node, what: "it has no link" });
        }
        self.check_faults()?;
        self.check_times()
    }

    fn check_faults(&self) -> Result<(), ScenarioError> {
        for (index, fault) in self.faults.iter().enumerate() {
            let sound = match *fault {
                Fault::NodeStops { node, at } => node < self.nodes.len() && NetTime::ZERO <= at,
                Fault::LinkDown { link, from, until } => {
                    link < self.links.len() && NetTime::ZERO <= from && from < until
                }
            };
            if !sound {
                return Err(ScenarioError::Fault(index));
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ScenarioError> {
        if !is_within(self.duration, 1, 1_000_000_000_000_000) {
            return Err(ScenarioError::Time("the duration must be 1 ns to 1,000,000 s"));
        }
        if !is_within(self.sample_every, 1, i64::MAX) {
            return Err(ScenarioError::Time("the time between samples must be positive"));
        }
        let samples = (self.duration.as_ns() / self.sample_every.as_ns()) as u64 + 1;
        if samples.saturating_mul(self.nodes.len() as u64) > READINGS_MAX {
            let what = "samples times nodes are more than 50,000,000: sample less often";
            return Err(ScenarioError::Time(what));
        }
        Ok(())
    }
}

impl NodeModel {
    fn typical(grandmaster: bool, stamps: Stamping, random: &mut Stream) -> Self {
        Self {
            priority1: if grandmaster { 100 } else { 246 },
            oscillator: Oscillator {
                start: Span::from_ns(between(random, 1_000_000_000, 1_000_000_000_000)),
                rate_ppb: between(random, -99_000, 99_000),
                frequency_drift_ppt: 500,
                frequency_drift_max_ppb: 1_000,
            },
            stamps,
            send_delay: [Span::from_us(100), Span::from_ms(10)],
            mean_link_delay_threshold: Span::from_ns(800) + stamps.jitter * 4,
            servo: ServoSettings::default(),
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        let Oscillator { start, rate_ppb, frequency_drift_ppt, frequency_drift_max_ppb } =
            self.oscillator;
        let (second, hour) = (1_000_000_000, 3_600_000_000_000);
        let far =
            rate_ppb.saturating_abs().saturating_add(frequency_drift_max_ppb.saturating_abs());
        let [shortest, longest] = self.send_delay;
        match () {
            () if !is_within(start, 0, 1_000_000 * second) => Err("it must start at 0 to 10⁶ s"),
            () if far > RATE_MAX_PPB || frequency_drift_max_ppb < 0 => {
                Err("rate and wander must be within 200,000 ppb")
            }
            () if frequency_drift_ppt < 0
                || frequency_drift_ppt / 1_000 > frequency_drift_max_ppb =>
            {
                Err("a step of the wander must not be larger than the wander")
            }
            () if !is_within(self.stamps.granularity, 1, second) => {
                Err("the granularity of time stamps must be 1 ns to 1 s")
            }
            () if !is_within(self.stamps.jitter, 0, second) => {
                Err("the jitter of time stamps must be 0 to 1 s")
            }
            () if !is_within(shortest, 0, second)
                || shortest > longest
                || longest.as_ns() > second =>
            {
                Err("the send_delay must be 0 to 1 s, the shortest first")
            }
            () if !is_within(self.mean_link_delay_threshold, 0, hour) => {
                Err("the threshold of the link delay must be 0 to an hour")
            }
            () => Ok(()),
        }
    }
}

/// Drawn evenly, both ends included.
fn between(random: &mut Stream, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1).unsigned_abs()) as i64
}

fn is_within(span: Span, low: i64, high: i64) -> bool {
    (low..=high).contains(&span.as_ns())
}

/// Simulates. Takes about 2 s for 100 nodes and 100 s.
///
/// # Errors
/// When the scenario is not sound; [`GptpScenario::check`] says the same.
pub fn simulate(scenario: &GptpScenario) -> Result<Trace, ScenarioError> {
    scenario.check()?;
    Ok(study::Study::new(scenario).run())
}
