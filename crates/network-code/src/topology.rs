//! From a description to what the verifier takes: which links frames of stations take, and when
//! they are there.
//!
//! Bridges flood frames of stations to all other ports, store each and send it `forwarding` later.
//! The first octet of a frame's preamble is at the far end of its sender's link after the
//! propagation, and of each further link after the frame, the forwarding and the propagation.
//! Before each link it may wait for one best-effort frame that is being sent. The delays of a
//! sender are those of its shortest and its longest frame.
//!
//! A bridge with a dedicated path sends each octet at a fixed time after it came, and an octet
//! later at most. Only if best effort may end first, it waits for that.

use crate::verification::{NetworkModel, Reach, SharedResource, StationModel};
use onbeat_model::codes::verification as codes;
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{Class, NodeId, NodeKind, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_runtime::network_code::instruction::Instruction;
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::timing::CYCLE_NS;
use std::collections::BTreeMap;

/// The queue of stations' frames, which none is above.
const QUEUE: usize = 7;

/// What a description does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkAssumptions {
    /// How far each clock, and each port's octets, are from nominal at most, in parts of 10⁹.
    pub drift_ppb_max: u32,
    /// The longest best-effort frame that may be at each port, with header and check sequence; none
    /// if nothing but stations sends.
    pub best_effort: Option<Octets>,
}

impl Default for NetworkAssumptions {
    /// Clocks as far off as those of Ethernet may be, ± 100 ppm (802.3-2018 40.6.1.2.6), and best
    /// effort that no description knows.
    fn default() -> Self {
        Self { drift_ppb_max: 100_000, best_effort: Some(frame::MAX_TAGGED) }
    }
}

/// The network of a description in which hosts execute programs.
///
/// # Errors
/// OB6101 for each program that has no host of its own there or another medium than its link; for
/// what may hold up frames of the highest priority; for links of several rates; and for loops, in
/// which a flooded frame has no one path.
pub fn network_model(
    system: &System,
    programs: &[StationProgram],
    assumptions: NetworkAssumptions,
) -> Result<NetworkModel, Vec<Diagnostic>> {
    let topology = Topology { system, assumptions };
    topology.alone()?;
    let hosts = topology.hosts(programs)?;
    let octet_ns = topology.octet_ns(programs, &hosts)?;
    let mut resources = Vec::new();
    let mut of_port = BTreeMap::new();
    for port in (0..system.ports.len() as u32).map(PortId) {
        of_port.insert(port, resources.len());
        resources.push(topology.resource(port, octet_ns, &hosts));
    }
    let mut reaches = Vec::new();
    for (sender, (program, host)) in programs.iter().zip(&hosts).enumerate() {
        let Some(lengths) = lengths(program) else { continue };
        for (port, [min, max]) in topology.delays(*host, lengths.map(|it| octet_ns * it))? {
            let ns = |delay: Span| delay.as_ns() as u64;
            let (delay_min_ns, delay_max_ns) = (ns(min), ns(max));
            reaches.push(Reach { sender, resource: of_port[&port], delay_min_ns, delay_max_ns });
        }
    }
    let drift_ppb_max = assumptions.drift_ppb_max;
    let station = |program: &StationProgram, host: &NodeId| StationModel {
        program: program.clone(),
        drift_ppb_max: drift_ppb_max.max(system.node(*host).clock.drift_ppb.unsigned_abs()),
    };
    let stations = programs.iter().zip(&hosts).map(|(program, host)| station(program, host));
    Ok(NetworkModel { stations: stations.collect(), resources, reaches })
}

/// The octets of the shortest and of the longest frame that a program sends, from the preamble to
/// the check sequence; none if it sends nothing.
fn lengths(program: &StationProgram) -> Option<[i64; 2]> {
    let octets = |words| {
        let cycles = program.medium.frame_cycles(words).0;
        (cycles / u64::from(program.medium.octet_cycles)) as i64
    };
    let sent = program.words.iter().filter_map(|word| match Instruction::decode(*word) {
        Ok(Instruction::SyncMaster) => Some(octets(1)),
        Ok(Instruction::Send { message }) => Some(octets(program.message(message)?.words)),
        _ => None,
    });
    let sent: Vec<i64> = sent.collect();
    Some([*sent.iter().min()?, *sent.iter().max()?])
}

struct Topology<'a> {
    system: &'a System,
    assumptions: NetworkAssumptions,
}

impl Topology<'_> {
    /// Nothing else may hold up frames of stations, or be among them.
    fn alone(&self) -> Result<(), Vec<Diagnostic>> {
        let system = self.system;
        let highest = system.streams.iter().filter(|it| usize::from(it.traffic_class) == QUEUE);
        let highest = highest.map(|it| format!("stream `{}` has the queue of stations", it.name));
        let scheduled = system.channels.iter().filter(|it| it.class == Class::Scheduled);
        let scheduled = scheduled.map(|it| {
            format!("channel `{}` is scheduled: its windows close the queue of stations", it.name)
        });
        let ports = (0..system.ports.len() as u32).map(PortId);
        let gated = ports.filter(|port| {
            let settings = &system.port(*port).settings;
            !settings.gates.is_empty() || settings.preemptable >> QUEUE & 1 == 1
        });
        let gated = gated.map(|port| {
            format!("a port of `{}` has gates, or preempts frames of stations", self.name_of(port))
        });
        let errors: Vec<Diagnostic> = highest
            .chain(scheduled)
            .chain(gated)
            .map(|message| wrong(message, "leave it out where stations share the network"))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The host of each program.
    fn hosts(&self, programs: &[StationProgram]) -> Result<Vec<NodeId>, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let mut hosts = Vec::new();
        for program in programs {
            let name = &program.station;
            let id = (0..self.system.nodes.len() as u32).map(NodeId).find(|id| {
                let node = self.system.node(*id);
                node.name == *name && matches!(node.kind, NodeKind::Host(_))
            });
            match id.filter(|id| !self.system.node(*id).ports.is_empty()) {
                None => errors.push(wrong(
                    format!("the description has no host `{name}` with a link"),
                    "name the station as one of its hosts",
                )),
                Some(id) if hosts.contains(&id) => errors.push(wrong(
                    format!("two programs are for the station `{name}`"),
                    "give each station one program",
                )),
                Some(id) => hosts.push(id),
            }
        }
        if errors.is_empty() { Ok(hosts) } else { Err(errors) }
    }

    /// The time of an octet, which is the same on all links and for all programs.
    fn octet_ns(
        &self,
        programs: &[StationProgram],
        hosts: &[NodeId],
    ) -> Result<Span, Vec<Diagnostic>> {
        let of_cycles = |cycles: u32| Span::from_ns(i64::from(cycles) * i64::from(CYCLE_NS));
        let Some(first) = programs.first() else {
            return Err(vec![wrong("there is no program".to_owned(), "name one for each station")]);
        };
        let octet = of_cycles(first.medium.octet_cycles);
        let is_other = |rate: BitRate| rate.time_for(Octets::new(1_000)) != octet * 1_000;
        let mut errors = Vec::new();
        for (program, host) in programs.iter().zip(hosts) {
            let rate = self.system.link_of(self.system.node(*host).ports[0]).rate;
            let medium = of_cycles(program.medium.octet_cycles);
            if rate.time_for(Octets::new(1_000)) != medium * 1_000 {
                let message = format!(
                    "the program of `{}` is for {} Mb/s, its link has {rate}",
                    program.station,
                    8_000 / medium.as_ns()
                );
                errors.push(wrong(message, "declare the `medium` that the link is"));
            }
        }
        if let Some(link) = self.system.links.iter().find(|link| is_other(link.rate))
            && errors.is_empty()
        {
            let [one, other] = link.ports.map(|port| self.name_of(port));
            let message =
                format!("the link of `{one}` and `{other}` has another rate, {}", link.rate);
            errors.push(wrong(message, "give all links the rate of the stations"));
        }
        if errors.is_empty() { Ok(octet) } else { Err(errors) }
    }

    fn name_of(&self, port: PortId) -> &str {
        &self.system.node(self.system.port(port).node).name
    }

    /// The link that a port sends on.
    fn resource(&self, port: PortId, octet: Span, hosts: &[NodeId]) -> SharedResource {
        let peer = self.system.port(port).peer;
        let receiver = self.system.port(peer).node;
        SharedResource {
            name: format!("{} to {}", self.name_of(port), self.name_of(peer)),
            octet_ns: octet.as_ns() as u32,
            drift_ppb_max: self.assumptions.drift_ppb_max,
            receiver: hosts.iter().position(|host| *host == receiver),
            best_effort_octets: self.assumptions.best_effort.map(Octets::get),
        }
    }

    /// The least and the greatest delay from a host to the far end of every link that its frames
    /// take, given the times of its shortest and its longest frame.
    fn delays(
        &self,
        host: NodeId,
        frames: [Span; 2],
    ) -> Result<BTreeMap<PortId, [Span; 2]>, Vec<Diagnostic>> {
        let mut delays = BTreeMap::new();
        let mut seen = vec![false; self.system.nodes.len()];
        seen[host.index()] = true;
        let mut next: Vec<(PortId, [Span; 2])> =
            self.system.node(host).ports.iter().map(|port| (*port, [Span::ZERO; 2])).collect();
        while let Some((port, [min, max])) = next.pop() {
            let link = self.system.link_of(port);
            let blocks = self.system.node(self.system.port(port).node).best_effort_blocks();
            let best_effort = self.assumptions.best_effort.filter(|_| blocks);
            let waits = best_effort.map_or(Span::ZERO, |octets| {
                link.rate.time_for(frame::PREAMBLE + octets + frame::GAP)
            });
            let [min, max] = [min + link.propagation, max + waits + link.propagation];
            delays.insert(port, [min, max]);
            let peer = self.system.port(port).peer;
            let node = self.system.port(peer).node;
            if std::mem::replace(&mut seen[node.index()], true) {
                let name = &self.system.node(node).name;
                let message = format!("frames come to `{name}` on two paths, and go round");
                return Err(vec![wrong(message, "leave out the links that close loops")]);
            }
            let NodeKind::Bridge(bridge) = &self.system.node(node).kind else { continue };
            let stored = match bridge.dedicated_path {
                None => [min + frames[0], max + frames[1]].map(|it| it + bridge.forwarding),
                Some(_) if self.system.node(node).has_dedicated_pair() => {
                    return Err(vec![self.pair(node)]);
                }
                Some(path) => {
                    let [least, most] = self.passes(path, link.rate);
                    [min + least, max + most]
                }
            };
            let others = self.system.node(node).ports.iter().filter(|other| **other != peer);
            next.extend(others.map(|other| (*other, stored)));
        }
        Ok(delays)
    }
}

impl Topology<'_> {
    /// From the first octet in to the first one out of a dedicated path, by clocks that are off.
    fn passes(&self, path: DedicatedPath, rate: BitRate) -> [Span; 2] {
        let drift = i64::from(self.assumptions.drift_ppb_max);
        // A millisecond by a drift of 0.1 % at most.
        let error =
            |span: Span| Span::from_ns((span.as_ns() * drift + 999_999_999) / 1_000_000_000);
        let least = path.start(rate);
        let most = least + rate.time_for(DedicatedPath::CROSSING);
        [least - error(least), most + error(most)]
    }

    /// Frames of opposite directions share no link there, but the path.
    fn pair(&self, node: NodeId) -> Diagnostic {
        let name = &self.system.node(node).name;
        let message = format!(
            "`{name}` has a dedicated path and two links: frames of both may meet on it unseen"
        );
        wrong(message, "remove `dedicated_path`, or the bridge")
    }
}

fn wrong(message: String, help: &str) -> Diagnostic {
    Diagnostic {
        severity: onbeat_model::diagnostic::Severity::Error,
        code: codes::MODEL,
        message,
        at: None,
        related: Vec::new(),
        help: help.to_owned(),
    }
}
