//! Random networks of switches, and what each host sends in which cycle.

use crate::generator::Dice;
use onbeat_model::dedicated::BestEffortPolicy;
use onbeat_model::units::{Octets, frame};
use std::fmt;

/// Cycles of 8 ns of each link, as in the other experiments with the hardware.
pub(super) const LINK: u64 = 46;
/// Addresses are learnt before.
pub(super) const BEGIN: u64 = 16_000;
/// Of all that is sent.
pub(super) const WINDOW: u64 = 12_000;
const PORTS: usize = 4;
const SWITCHES: u64 = 4;
const FRAMES: usize = 60;

/// What `rtl/bench` is compiled with, and its name there.
pub(super) const VARIANTS: [(u64, &str); 3] = [(0, "native"), (105, "calibrated"), (400, "late")];

/// A frame that a host sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The cycle of its first octet.
    pub(super) at: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A station's, of so many words.
    Station(u16),
    /// To a host, or to all.
    BestEffort(u32, Option<usize>),
}

impl Sent {
    /// From the destination address to the FCS.
    pub(super) fn octets(&self) -> u32 {
        match self.kind {
            Kind::Station(words) => (22 + 4 * u32::from(words)).max(frame::MIN_UNTAGGED.get()),
            Kind::BestEffort(octets, _) => octets,
        }
    }

    /// The first cycle in which the next one may begin.
    fn over(&self) -> u64 {
        self.at + u64::from(frame::on_wire(Octets::new(self.octets())).get())
    }
}

/// A network. Its nodes are hosts, then switches; ports count in the order of the links.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) policy: BestEffortPolicy,
    /// Which of [`VARIANTS`].
    pub(super) variant: usize,
    pub(super) switches: usize,
    pub(super) links: Vec<[usize; 2]>,
    /// By host, in order.
    pub(super) sent: Vec<Vec<Sent>>,
}

impl Case {
    pub(super) fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let policies = [BestEffortPolicy::Retry, BestEffortPolicy::Drop, BestEffortPolicy::Finish];
        let policy = dice.of(&policies);
        let variant = dice.below(VARIANTS.len() as u64) as usize;
        if dice.percent(12) {
            return Self::at_warnings(seed, policy, &mut dice);
        }
        if dice.percent(10) {
            return Self::full_ring(seed, (policy, variant), &mut dice);
        }
        // A switch with one link would get what is for all, and has nobody behind it.
        let (switches, links) = loop {
            let (switches, links) = topology(&mut dice);
            let degree = |at: usize| links.iter().flatten().filter(|end| **end == at).count();
            let nodes = links.iter().flatten().max().expect("a link") + 1;
            if (nodes - switches..nodes).all(|switch| degree(switch) > 1) {
                break (switches, links);
            }
        };
        let hosts = links.iter().flatten().max().expect("a link") + 1 - switches;
        let mut case = Self { seed, policy, variant, switches, links, sent: Vec::new() };
        let mut stations = stations(&mut dice, &case, hosts);
        let load = dice.below(100);
        let lengths = dice.below(4);
        for (host, of_station) in stations.iter_mut().enumerate() {
            let best_effort = |dice: &mut Dice| best_effort(dice, lengths, (host, hosts));
            case.sent.push(fill(&mut dice, of_station, load, best_effort));
        }
        case
    }

    /// One switch, best effort of a host that is whole at about the warning of a station's frame,
    /// and over before that begins.
    fn at_warnings(seed: u64, policy: BestEffortPolicy, dice: &mut Dice) -> Self {
        let mut sent = vec![Vec::new(); 3];
        for number in 0..WINDOW / 1_300 {
            let at = BEGIN + 1_300 * number + dice.below(100);
            let octets = 64 + dice.below(40);
            let best_effort = Kind::BestEffort(octets as u32, Some(2));
            sent[0].push(Sent { at, kind: best_effort });
            // Preamble, link, what it takes to move; the warning is 33 octets behind the preamble.
            let whole = at + 8 + octets + LINK + 17 + octets.next_multiple_of(4);
            let at = whole - LINK - 33 - 2 + dice.below(8);
            sent[1].push(Sent { at, kind: Kind::Station(words(dice).min(100)) });
        }
        let links = (0..3).map(|host| [host, 3]).collect();
        Self { seed, policy, variant: VARIANTS.len() - 1, switches: 1, links, sent }
    }

    /// One switch, three hosts that send as fast as they may to a fourth one: from the middle on
    /// its ring is full, so frames come just when another one has left, or is aborted.
    fn full_ring(seed: u64, (policy, variant): (BestEffortPolicy, usize), dice: &mut Dice) -> Self {
        let (least, to) = (150 + dice.below(300), 3);
        let mut sent = vec![Vec::new(); 4];
        for (host, of_host) in sent[..to].iter_mut().enumerate() {
            let mut at = BEGIN + dice.below(100);
            let mut station = BEGIN + WINDOW / 2;
            while at < BEGIN + WINDOW {
                let is_station = host == 0 && at > station;
                let kind = match is_station {
                    true => Kind::Station(words(dice).min(20)),
                    false => Kind::BestEffort((least + dice.below(200)) as u32, Some(to)),
                };
                if is_station {
                    station = at + 500 + dice.below(300);
                }
                let one = Sent { at, kind };
                at = one.over() + dice.below(3);
                of_host.push(one);
            }
        }
        let links = (0..4).map(|host| [host, 4]).collect();
        Self { seed, policy, variant, switches: 1, links, sent }
    }

    pub(super) fn hosts(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn wait(&self) -> u64 {
        VARIANTS[self.variant].0
    }

    /// The number of a port: that of its link among those of its node.
    pub(super) fn port(&self, link: usize, node: usize) -> usize {
        self.links[..link].iter().filter(|ends| ends.contains(&node)).count()
    }

    /// The links of a node, in the order of its ports.
    pub(super) fn links_of(&self, node: usize) -> impl Iterator<Item = usize> {
        let links = self.links.iter().enumerate();
        links.filter(move |(_, ends)| ends.contains(&node)).map(|(link, _)| link)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, switches, links, .. } = self;
        writeln!(f, "{policy:?}, wait {}, {switches} switches, links {links:?}", self.wait())?;
        for (host, sent) in self.sent.iter().enumerate() {
            write!(f, "host {host}:")?;
            sent.iter().try_for_each(|it| match it.kind {
                Kind::Station(words) => write!(f, " {}:rt{words}", it.at),
                Kind::BestEffort(octets, to) => write!(f, " {}:{octets}>{to:?}", it.at),
            })?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A tree of switches with two hosts or more, its links in any order.
fn topology(dice: &mut Dice) -> (usize, Vec<[usize; 2]>) {
    let switches = 1 + dice.below(SWITCHES) as usize;
    let mut free = vec![PORTS; switches];
    let mut links = Vec::new();
    for at in 1..switches {
        let above = loop {
            let above = dice.below(at as u64) as usize;
            if free[above] > 0 {
                break above;
            }
        };
        free[above] -= 1;
        free[at] -= 1;
        links.push([above, at]);
    }
    // Hosts have no numbers yet: each is a link to itself.
    let all: Vec<usize> = (0..switches).flat_map(|at| vec![at; free[at]]).collect();
    let mut places = all;
    let gone = dice.below(4.min(places.len() as u64 - 1)) as usize;
    for _ in 0..gone {
        let at = dice.below(places.len() as u64) as usize;
        places.swap_remove(at);
    }
    for link in &mut links {
        link.iter_mut().for_each(|at| *at += places.len());
    }
    let count = places.len();
    links.extend(places.into_iter().enumerate().map(|(host, at)| [host, count + at]));
    for at in (1..links.len()).rev() {
        links.swap(at, dice.below(at as u64 + 1) as usize);
    }
    (switches, links)
}

fn words(dice: &mut Dice) -> u16 {
    if dice.percent(70) { 1 + dice.below(40) as u16 } else { 1 + dice.below(374) as u16 }
}

/// The frames of each host's station. They do not meet, or some do.
fn stations(dice: &mut Dice, case: &Case, hosts: usize) -> Vec<Vec<Sent>> {
    let collide = dice.percent(40);
    let mut sent: Vec<Vec<Sent>> = vec![Vec::new(); hosts];
    let delay = case.switches as u64 * (case.wait() + 2 * LINK) + 200;
    let pause = dice.of(&[0, 300, 2_000]);
    let mut at = BEGIN + dice.below(1_000);
    while at < BEGIN + WINDOW {
        let frame = Sent { at, kind: Kind::Station(words(dice)) };
        let host = dice.below(hosts as u64) as usize;
        let others = if collide { 1 + dice.below(3) } else { 0 };
        let near = dice.of(&[1, 6, 100]);
        let mut add = |host: usize, frame: Sent| {
            if sent[host].last().is_none_or(|last| last.over() <= frame.at) {
                sent[host].push(frame);
            }
        };
        add(host, frame);
        for _ in 0..others {
            let host = dice.below(hosts as u64) as usize;
            // Together, in the midst of the first one, or when it just leaves the path.
            let wire = u64::from(frame::PREAMBLE.get() + frame.octets());
            let at = match dice.below(5) {
                0 => at + dice.below(400),
                1 => at + wire + dice.below(3),
                _ => at + dice.below(near),
            };
            add(host, Sent { at, kind: Kind::Station(words(dice)) });
        }
        let apart = if case.policy == BestEffortPolicy::Finish { 1_600 } else { 0 };
        at = frame.over() + dice.below(pause + 1);
        if !collide {
            at += delay + if dice.percent(50) { apart } else { 0 };
        }
    }
    sent
}

fn best_effort(dice: &mut Dice, lengths: u64, (host, hosts): (usize, usize)) -> Kind {
    let octets = match lengths {
        0 => 64 + dice.below(20),
        1 => 1_500 + dice.below(23),
        _ if dice.percent(40) => 64 + dice.below(100),
        _ => 64 + dice.below(1_459),
    };
    let to = dice.below(hosts as u64) as usize;
    let to = (to != host && dice.percent(70)).then_some(to);
    Kind::BestEffort(octets as u32, to)
}

/// What a host sends: its station's frames, and best effort of a load in percent between them,
/// often in bursts.
fn fill(
    dice: &mut Dice,
    stations: &[Sent],
    load: u64,
    best_effort: impl Fn(&mut Dice) -> Kind,
) -> Vec<Sent> {
    let mut all = Vec::new();
    let mut stations = stations.iter().peekable();
    let mut at = BEGIN + dice.below(500);
    let burst = dice.below(90);
    while all.len() < FRAMES {
        let frame = Sent { at, kind: best_effort(dice) };
        if let Some(next) = stations.next_if(|next| frame.over() > next.at) {
            all.push(*next);
            at = at.max(next.over());
            continue;
        }
        if at >= BEGIN + WINDOW {
            break;
        }
        if load > 2 {
            all.push(frame);
        }
        let idle = (frame.over() - at) * (100 - load) / load.max(1);
        at = frame.over();
        if !dice.percent(burst) {
            at += dice.below(2 * idle + 1) + dice.below(4);
        }
    }
    all
}
