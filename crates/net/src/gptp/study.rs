//! Networks of gPTP nodes without any traffic, in an engine of their own.

use crate::engine::{Engine, Options};
use crate::gptp::instance::{self, Instance};
use crate::gptp::trace::{NodeSummary, Sample, Trace};
use crate::gptp::{Fault, GptpScenario, NodeModel};
use crate::participant::Joining;
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::{Plan, PortPlan};
use onbeat_model::port::PortSettings;
use onbeat_model::stream::{self, FaultKind};
use onbeat_model::system::{
    BEST_EFFORT_QUEUE, Bridge, Link, LinkId, Node, NodeId, NodeKind, Port, PortId, QueueLimits,
    System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, Octets};
use onbeat_runtime::gptp::ETHERTYPE;

/// Of a wire that has none.
const NO_RATE: BitRate = BitRate::from_bps(1_000_000_000_000_000);

/// A simulation in progress.
pub(super) struct Study<'a> {
    scenario: &'a GptpScenario,
    engine: Engine,
    reference: Option<usize>,
}

impl<'a> Study<'a> {
    pub(super) fn new(scenario: &'a GptpScenario) -> Self {
        let system = system(scenario);
        let until = NetTime::ZERO + scenario.duration + Span::from_ns(1);
        let mut engine = engine(&system);
        let joining = (scenario.nodes.iter().enumerate()).map(|(index, model)| {
            let ports = system.nodes[index].ports.len();
            let mut instance = Instance::new(model, index, ports, scenario.seed);
            for fault in &scenario.faults {
                match *fault {
                    Fault::NodeStops { node, at } if node == index => instance.stop_at(at),
                    _ => {}
                }
            }
            joining(index, instance)
        });
        engine.join(&system, joining.collect(), until, &[]);
        let lengths = scenario.links.iter().flat_map(|link| link.delay);
        engine.set_ideal_wires(lengths.collect());
        Self { scenario, engine, reference: None }
    }

    pub(super) fn run(mut self) -> Trace {
        let end = NetTime::ZERO + self.scenario.duration;
        let mut trace = Trace { samples: Vec::new(), nodes: Vec::new(), messages: 0 };
        let mut at = NetTime::ZERO;
        while at <= end {
            // Nobody waits for anything here.
            while self.engine.advance(at).is_some() {}
            trace.samples.push(self.sample());
            at += self.scenario.sample_every;
        }
        while self.engine.advance(end).is_some() {}
        for instance in self.engine.participants::<Instance>() {
            let (largest_step, rates_ppb) = instance.noted();
            let ignored = instance.protocol().ignored();
            trace.nodes.push(NodeSummary { largest_step, rates_ppb, ignored });
            trace.messages += instance.messages();
        }
        trace
    }

    fn sample(&mut self) -> Sample {
        let now = self.engine.now();
        let mut instances: Vec<_> = self.engine.participants::<Instance>().collect();
        let leads = |i: &Instance| i.runs(now) && i.is_grandmaster();
        // While two nodes lead, the better one will stay.
        let numbered = instances.iter().enumerate().filter(|(_, i)| leads(i));
        let best = numbered.min_by_key(|(_, i)| i.protocol().grandmaster());
        self.reference = best.map(|(index, _)| index).or(self.reference);
        let readings: Vec<_> = instances.iter_mut().map(|i| i.read(now)).collect();
        let reference_clock = self.reference.and_then(|node| readings[node]);
        let stands = |i: &Instance| now < i.stopped();
        let clocks = readings.into_iter().zip(&instances).map(|(r, i)| r.filter(|_| stands(i)));
        let clocks: Vec<_> = clocks.collect();
        let whose = |i: &Instance| instance::index(i.protocol().grandmaster().identity);
        let follows = instances.iter().zip(&clocks).map(|(i, clock)| clock.map(|_| whose(i)));
        let follows = follows.collect();
        Sample { at: now, reference: self.reference, clocks, follows, reference_clock }
    }
}

/// The protocol of a node, with the priority of best effort: 802.1AS asks for none, and its frames
/// have no tag.
pub(super) fn joining(index: usize, instance: Instance) -> Joining {
    let (node, participant) = (NodeId(index as u32), Box::new(instance));
    let traffic_class = BEST_EFFORT_QUEUE as u8;
    let carries = Vec::new();
    Joining { node, ethertype: ETHERTYPE, traffic_class, carries, participant }
}

/// An engine with nothing but the network.
pub(super) fn engine(system: &System) -> Engine {
    let ports = vec![PortPlan::default(); system.ports.len()];
    let plan = Plan { ports, ..Plan::default() };
    let options = Options {
        seed: 0,
        host_delays: false,
        load_bin: Span::from_s(1),
        noise_until: NetTime::ZERO,
        traffic_until: NetTime::ZERO,
        model_channels: false,
    };
    Engine::new(system, &plan, options)
}

/// Nodes that have run from the epoch on for `warm_up`, in the network of a description without its
/// traffic and faults.
pub(super) fn settled(
    system: &System,
    models: &[NodeModel],
    seed: u64,
    warm_up: Span,
) -> Vec<Instance> {
    let mut bare = System::empty(&system.name, warm_up);
    (bare.nodes, bare.ports, bare.links) =
        (system.nodes.clone(), system.ports.clone(), system.links.clone());
    let mut engine = engine(&bare);
    let instance = |(index, model): (usize, &NodeModel)| {
        joining(index, Instance::new(model, index, bare.nodes[index].ports.len(), seed))
    };
    let end = NetTime::ZERO + warm_up;
    engine.join(&bare, models.iter().enumerate().map(instance).collect(), end, &[]);
    while engine.advance(end).is_some() {}
    let taken = engine.take_participants().into_iter().map(|(_, participant)| {
        let any: Box<dyn std::any::Any> = participant;
        *any.downcast::<Instance>().expect("all are of gPTP")
    });
    taken.collect()
}

/// A scenario's network.
fn system(scenario: &GptpScenario) -> System {
    let mut system = System::empty("gPTP", scenario.duration);
    let node = |index: usize| Node {
        name: format!("n{index}"),
        kind: NodeKind::Bridge(Bridge::default()),
        clock: ClockError::default(),
        queue: QueueLimits { frames: 1_000, octets: Octets::new(1_000_000) },
        ports: Vec::new(),
        origin: Origin::default(),
    };
    system.nodes = (0..scenario.nodes.len()).map(node).collect();
    for (index, model) in scenario.links.iter().enumerate() {
        let ports = [2 * index as u32, 2 * index as u32 + 1].map(PortId);
        let link = LinkId(index as u32);
        for (end, node) in model.ends.into_iter().enumerate() {
            let (name, settings) = (format!("p{index}"), PortSettings::default());
            let (at, peer) = (NodeId(node as u32), ports[1 - end]);
            system.nodes[node].ports.push(ports[end]);
            system.ports.push(Port { name, node: at, link, peer, settings });
        }
        let propagation = model.delay[0];
        let origin = Origin::default();
        system.links.push(Link { ports, rate: NO_RATE, propagation, origin });
    }
    for fault in &scenario.faults {
        if let Fault::LinkDown { link, from, until } = *fault {
            let kind = FaultKind::LinkDown(LinkId(link as u32));
            system.faults.push(stream::Fault { kind, from, until, origin: Origin::default() });
        }
    }
    system
}
