//! Alternatives: slots that several channels share, of which a word of a message says which one
//! sends.

use super::descriptions::{BEGIN, bridge, channel, hosts, link, system};
use super::engine::{check, simulated, with_clocks};
use super::random::{description, options};
use onbeat_model::codes::verification;
use onbeat_model::diagnostic::Origin;
use onbeat_model::stream::{Fault, FaultKind};
use onbeat_model::system::{Channel, ChannelId, System};
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::Octets;
use onbeat_net::network_code::{Application, ApplicationBuffers};
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_network_code::planning::{BusOptions, BusPlan, BusStation, FrameDelays, plan_bus};
use onbeat_network_code::topology::{NetworkAssumptions, network_model};
use onbeat_network_code::verification::{NetworkProperty, ProofVerdict, Verification, verify};
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_testkit::Random;

/// Clocks that are exact.
const EXACT: BusOptions =
    BusOptions { master: None, drift_ppb: 0, best_effort: Octets::new(0), slot_error: None };

/// A panel says which of two hands a gripper obeys; one of them has two ways to say it.
fn gripper() -> String {
    let mut text = BEGIN.to_owned();
    let names = ["gripper", "left", "panel", "right"];
    hosts(&mut text, &names);
    bridge(&mut text, "s", 1_000);
    names.iter().for_each(|name| link(&mut text, [name, "s"], 1_000, 100));
    channel(&mut text, 0, "force", 40, 1_000_000, "left", &["gripper"]);
    channel(&mut text, 1, "position", 8, 1_000_000, "right", &["gripper"]);
    channel(&mut text, 2, "speed", 8, 1_000_000, "left", &["gripper"]);
    channel(&mut text, 3, "mode", 8, 1_000_000, "panel", &["left", "right"]);
    channel(&mut text, 4, "state", 8, 1_000_000, "gripper", &["panel", "left"]);
    text += "[[alternatives]]\nname = \"hand\"\nmode = \"mode\"\noffset_octets = 4\n\
            channels = [\"force\", \"position\", \"speed\"]\nvalues = [3, 6, 0]\n";
    text
}

fn verified(system: &System, plan: &BusPlan, programs: &[StationProgram]) -> Verification {
    let assumptions = NetworkAssumptions { drift_ppb_max: plan.drift_ppb, best_effort: None };
    verify(&network_model(system, programs, assumptions).expect("it is a tree"))
}

fn programs(plan: &BusPlan) -> Vec<StationProgram> {
    plan.stations.iter().map(|station| station.program.clone()).collect()
}

#[track_caller]
fn proves(verification: &Verification, what: &str) {
    for decided in &verification.properties {
        if decided.property != NetworkProperty::BestEffort {
            assert_eq!(decided.verdict, ProofVerdict::Proven, "{:?}\n{what}", decided.findings);
        }
    }
}

// What the left hand sends follows the mode: 3 cycles for whether that has come, 3 for each guard.
#[test]
fn alternatives_share_a_slot_behind_the_mode() {
    let system = system(&gripper());
    let plan = plan_bus(&system, &EXACT).expect("it has room");
    let [force, position, speed, mode, state] = &plan.slots[..] else { panic!("five slots") };
    assert_eq!(force.start, position.start);
    assert_eq!(speed.start, force.start + Cycles(3));
    assert!(mode.end <= force.start, "the mode is there before");
    assert_ne!(state.start, force.start, "no other slot is there");
    let shared: Vec<_> = plan.slots.iter().map(|slot| slot.shared).collect();
    assert_eq!(shared, [Some(0), Some(0), Some(0), None, None]);
    let left = plan.stations.iter().find(|it| it.program.station == "left").expect("it sends");
    // 24 octets of header are 6 words, and 4 octets one more.
    let expected = "    receive mode, mode  # from panel
    branch not received, r0_1_2
    branch not mode[7] == 3, r0_1_1
    create force";
    assert!(left.text.contains(expected), "{}", left.text);
    assert!(left.text.contains("    branch not mode[7] == 0, r0_1_2\n    create speed"));
    // A mode that came in a round whose beginning was lost is not taken for this one's.
    let discarded = "r0_0:\n    future r0_1, 2568 ns\n    receive mode, mode  # it may be";
    assert!(left.text.contains(discarded), "{}", left.text);
    // `receive` of 8 words takes 10 cycles, and the guards 6.
    let received = mode.receipts[0].receive[0];
    assert_eq!(received + Cycles(16), force.create, "{}", left.text);
    proves(&verified(&system, &plan, &programs(&plan)), &left.text);
}

/// Two stations that send with the same value meet, and the verifier shows how.
#[test]
fn a_value_that_two_stations_have_is_contradicted() {
    let system = system(&gripper());
    let plan = plan_bus(&system, &EXACT).expect("it has room");
    let changed = plan.stations.iter().map(|station| {
        let text = match station.program.station.as_str() {
            "right" => station.text.replace("mode[7] == 6", "mode[7] == 3"),
            _ => station.text.clone(),
        };
        assemble("x.nc", &text, AssemblyOptions::default()).program.expect("it is right")
    });
    let changed: Vec<_> = changed.collect();
    assert_ne!(changed, programs(&plan));
    let verification = verified(&system, &plan, &changed);
    let collisions = verification.of(NetworkProperty::CollisionFree);
    assert_eq!(collisions.verdict, ProofVerdict::Violated);
    let [found, ..] = &collisions.findings[..] else { panic!("there is a finding") };
    assert_eq!(found.code, verification::COLLISION);
    assert!(found.counterexample.is_some(), "{found:?}");
    // One station with equal values sends the first one only.
    let left = plan.stations.iter().position(|it| it.program.station == "left").expect("it is");
    let twice = plan.stations[left].text.replace("mode[7] == 0", "mode[7] == 6");
    let mut changed = programs(&plan);
    changed[left] = assemble("x.nc", &twice, AssemblyOptions::default()).program.expect("right");
    let collisions = verified(&system, &plan, &changed);
    let collisions = collisions.of(NetworkProperty::CollisionFree);
    assert_eq!(collisions.verdict, ProofVerdict::Violated, "`speed` and `position`");
}

/// A random description with alternatives, if some channel may be a mode.
fn with_alternatives(random: &mut Random) -> Option<String> {
    let mut text = description(random).replace("cut_through = true", "");
    // More talkers that hear something.
    text = text.replace("interval_ns = 5000000\n", "interval_ns = 500000\n");
    let system = system(&text);
    let mut free: Vec<usize> = (0..system.channels.len()).collect();
    let mut count = 0;
    while count < 2 {
        let hears =
            |mode: &Channel, of: &usize| mode.listeners.contains(&system.channels[*of].talker);
        let possible = free.iter().filter_map(|at| {
            let mode = &system.channels[*at];
            let others = free.iter().copied().filter(|of| of != at && hears(mode, of));
            let others: Vec<usize> = others.collect();
            (others.len() > 1 && mode.size.get() >= 4).then_some((*at, others))
        });
        let possible: Vec<_> = possible.collect();
        if possible.is_empty() {
            break;
        }
        let (mode, mut others) = possible[random.index(possible.len())].clone();
        others.truncate(2 + random.index(3));
        let name = |at: &usize| system.channels[*at].name.as_str();
        let values: Vec<usize> = (0..others.len()).map(|at| 3 * at).collect();
        let offset = 4 * random.index((system.channels[mode].size.get() as usize / 4).min(200));
        text += &format!(
            "[[alternatives]]\nname = \"a{count}\"\nmode = \"{}\"\noffset_octets = {offset}\n\
             channels = {:?}\nvalues = {values:?}\n\n",
            name(&mode),
            others.iter().map(name).collect::<Vec<_>>(),
        );
        free.retain(|at| *at != mode && !others.contains(at));
        count += 1;
    }
    (count > 0).then_some(text)
}

#[test]
fn the_verifier_proves_alternatives() {
    let (mut proven, mut tables) = (0, 0);
    for seed in 0..80 {
        let mut random = Random(seed);
        let Some(text) = with_alternatives(&mut random) else { continue };
        let system = system(&text);
        let options = BusOptions { best_effort: Octets::new(0), ..options(&mut random, &system) };
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        if plan.delays == FrameDelays::OfFrame {
            continue;
        }
        proves(&verified(&system, &plan, &programs(&plan)), &format!("seed {seed}\n{text}"));
        proven += 1;
        tables += system.alternatives.len();
    }
    assert!(proven > 30 && tables > proven, "{proven} proven, {tables} tables");
}

/// Writes all output buffers; a word of each mode is random, most often one of the values.
#[derive(Debug)]
struct RandomModes {
    random: Random,
    every: Span,
    /// Buffers with the word that decides.
    modes: Vec<(BufferId, usize)>,
}

impl Application for RandomModes {
    fn act(&mut self, now: NetTime, buffers: &mut ApplicationBuffers<'_>) -> NetTime {
        for index in 0..buffers.program().buffers.len() {
            let buffer = &buffers.program().buffers[index];
            if buffer.role == BufferRole::Input {
                continue;
            }
            let id = BufferId(index as u8);
            let mut words = vec![1; usize::from(buffer.words)];
            for (_, word) in self.modes.iter().filter(|(of, _)| *of == id) {
                words[*word] = 3 * self.random.below(4) as u32;
            }
            buffers.write(id, &words).expect("an output of this length");
        }
        now + self.every + Span::from_ns(self.random.below(1_000) as i64)
    }
}

fn random_modes(system: &System, station: &BusStation, every: Span, seed: u64) -> RandomModes {
    let word = |(channel, buffer): &(ChannelId, BufferId)| {
        let own = system.alternatives.iter().find(|it| it.mode == *channel)?;
        (system.channel(*channel).talker == station.node)
            .then_some((*buffer, 6 + own.offset.get() as usize / 4))
    };
    let modes = station.buffers.iter().filter_map(word).collect();
    RandomModes { random: Random(seed ^ u64::from(station.node.0)), every, modes }
}

/// Who lost a mode, or the beginning of a round and then a mode, sends no alternative: none meets
/// another one.
#[test]
fn a_lost_mode_is_silence() {
    let mut system = system(&gripper());
    let plan = plan_bus(&system, &EXACT).expect("it has room");
    for (seed, name) in (0..10).zip(["left", "right"].into_iter().cycle()) {
        let node = system.nodes.iter().find(|node| node.name == name).expect("it is there");
        let link = system.port(node.ports[0]).link;
        system.faults = vec![Fault {
            kind: FaultKind::FrameErrors { link, per_billion: 50_000_000 },
            from: NetTime::ZERO,
            until: NetTime::MAX,
            origin: Origin::default(),
        }];
        let application = |station: &BusStation, every| -> Box<dyn Application> {
            Box::new(random_modes(&system, station, every, seed))
        };
        let observed = simulated(&system, &plan, 1_000, seed, &application);
        assert_eq!(observed.collisions(), 0, "seed {seed}");
        assert!(observed.lost() > 20, "{} lost", observed.lost());
    }
}

/// At most one of them is at each link, whatever modes say and clocks do, and each has its turn.
#[test]
fn at_most_one_alternative_sends_in_a_round() {
    let (mut systems, mut sent_all, mut alternatives) = (0, 0, 0);
    for seed in 0..60 {
        let mut random = Random(seed);
        let Some(text) = with_alternatives(&mut random) else { continue };
        let system = system(&with_clocks(&mut random, &text));
        let options = BusOptions { best_effort: Octets::new(0), ..options(&mut random, &system) };
        let options = BusOptions { drift_ppb: 100_000, ..options };
        let Ok(plan) = plan_bus(&system, &options) else { continue };
        let rounds = u64::from(plan.rounds) * 2 + 60;
        let application = |station: &BusStation, every| -> Box<dyn Application> {
            Box::new(random_modes(&system, station, every, seed))
        };
        let observed = simulated(&system, &plan, rounds, seed, &application);
        let all = std::panic::catch_unwind(|| check(&plan, &observed));
        assert!(all.unwrap_or_else(|_| panic!("seed {seed}\n{text}")) > 0);
        for table in &system.alternatives {
            let sent = |channel: ChannelId| {
                let message = plan.slots[channel.index()].message;
                let message = observed.messages.iter().find(|it| it.id == message);
                message.map_or(0, |it| it.sent)
            };
            let each: Vec<u64> = table.channels.iter().map(|it| sent(it.channel)).collect();
            assert!(each.iter().sum::<u64>() <= rounds + 2, "{each:?} in {rounds} rounds");
            sent_all += each.iter().filter(|sent| **sent > 0).count();
            alternatives += each.len();
        }
        systems += 1;
    }
    assert!(systems > 20 && sent_all * 10 > alternatives * 9, "{systems}, {sent_all}");
}
