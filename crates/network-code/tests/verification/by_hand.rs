//! Systems made by hand: each property, accepted and refused.

use super::builder::{Code, equals, star, unless, when, word};
use onbeat_network_code::verification::replay::ReplayIncident;
use onbeat_network_code::verification::timeline::{TIMELINE_COLUMNS, timeline};
use onbeat_network_code::verification::{
    FindingWeight, NetworkModel, NetworkProperty, ProofVerdict, Verification, verify,
};
use onbeat_runtime::network_code::instruction::{Condition, MessageId, Relation};

const ROUND: u32 = 20_000;

/// A master that begins rounds and sends a mode word.
fn master() -> Code {
    let mut code = Code::default();
    let mode = code.output(1);
    code.message(0, 1);
    code.label("top").sync_master().future("end", ROUND);
    code.create(mode).send(0).halt().label("end").goto("top");
    code
}

/// A slave that executes something at an offset of the round.
fn slave(offset: u32, body: impl FnOnce(&mut Code)) -> Code {
    let mut code = Code::default();
    code.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    code.wait("slot", offset).future("done", 3_000);
    body(&mut code);
    code.halt().label("done").goto("top");
    code
}

fn sender(offset: u32, message: u8, words: u16) -> Code {
    slave(offset, |code| {
        let buffer = code.output(words);
        code.message(message, words).create(buffer).send(message);
    })
}

fn network(codes: &[&Code]) -> NetworkModel {
    star(codes, 100_000, (500, 700))
}

/// Checks that a counterexample is one, and that its picture has the right form.
fn holds(network: &NetworkModel, verification: &Verification) {
    for finding in verification.properties.iter().flat_map(|property| &property.findings) {
        let Some(example) = &finding.counterexample else { continue };
        let replay = example.choices.replay(network, example.rounds);
        let kind = std::mem::discriminant(&example.incident);
        assert!(
            replay.incidents.iter().any(|seen| std::mem::discriminant(seen) == kind),
            "{finding:?}"
        );
        let text = timeline(network, example).text();
        assert!(text.lines().all(|line| line.chars().count() <= TIMELINE_COLUMNS), "{text}");
        assert!(text.lines().count() > network.stations.len(), "{text}");
    }
}

#[track_caller]
fn expect(
    network: &NetworkModel,
    property: NetworkProperty,
    verdict: ProofVerdict,
) -> Verification {
    let verification = verify(network);
    holds(network, &verification);
    assert_eq!(verification.of(property).verdict, verdict, "{:#?}", verification.of(property));
    verification
}

#[track_caller]
fn violates(network: &NetworkModel, property: NetworkProperty) -> Verification {
    let verification = expect(network, property, ProofVerdict::Violated);
    let of = verification.of(property);
    let shown = of.findings.iter().any(|finding| finding.counterexample.is_some());
    assert!(shown, "{of:#?}");
    verification
}

#[track_caller]
fn proves(network: &NetworkModel) -> Verification {
    let verification = verify(network);
    assert!(verification.is_proven(), "{:#?}", verification.properties);
    verification
}

#[test]
fn stations_in_slots_of_their_own_are_proven() {
    let verification = proves(&network(&[&master(), &sender(4_000, 1, 10), &sender(8_000, 2, 10)]));
    assert_eq!(verification.hyper_round, Some(1));
    let (least, most) = verification.round_ns.unwrap();
    // 20,000 cycles and the instructions around them, each way by 100 ppm.
    assert!(least > 160_000 - 16 && most < 160_000 + 400, "{least} {most}");
    assert!(verification.shares.iter().all(|share| share.share_ppm > 900_000));
}

#[test]
fn slots_that_overlap_are_refused_with_the_overlap() {
    let network = network(&[&master(), &sender(4_000, 1, 10), &sender(4_060, 2, 10)]);
    let verification = violates(&network, NetworkProperty::CollisionFree);
    let finding = &verification.of(NetworkProperty::CollisionFree).findings[0];
    let example = finding.counterexample.as_ref().unwrap();
    let ReplayIncident::Overlap { first, second, .. } = example.incident else {
        panic!("{example:?}");
    };
    let (one, other) = (example.frames[first], example.frames[second]);
    assert!(one.begin < other.end && other.begin < one.end);
    assert_ne!(one.station, other.station);
    assert!(finding.message.contains("meet at `bridge to s0`"), "{}", finding.message);
}

#[test]
fn only_drift_makes_frames_collide() {
    // After 18,000 cycles two clocks of 100 ppm are 28.8 ns apart.
    let late = |offset| sender(offset, 2, 10);
    let of = |drift, offset| {
        let codes = [&master(), &sender(16_000, 1, 10), &late(offset)];
        verify(&star(&codes, drift, (500, 500))).of(NetworkProperty::CollisionFree).verdict
    };
    // 10 words: 8 + 64 + 4 octets and the gap of 12, and a cycle of each phase.
    let apart = (16_000..16_200).find(|at| of(0, *at) == ProofVerdict::Proven).unwrap();
    assert_eq!(apart, 16_000 + 8 + 64 + 12 + 1);
    // 16,000 cycles each, by 100 ppm: 25.6 ns.
    assert_eq!(of(100_000, apart + 3), ProofVerdict::Violated);
    assert_eq!(of(100_000, apart + 4), ProofVerdict::Proven);
}

/// A slave that receives the mode word and sends if it is so.
fn moded(offset: u32, message: u8, condition: impl Fn(u8) -> Condition) -> Code {
    let mut code = Code::default();
    let (mode, buffer) = (code.input(1), code.output(4));
    code.message(0, 1).message(message, 4);
    code.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    code.wait("slot", offset).future("done", 3_000).receive(0, mode);
    code.branch(unless(condition(mode)), "skip").create(buffer).send(message).label("skip");
    code.halt().label("done").goto("top");
    code
}

#[test]
fn a_slot_that_a_mode_word_gives_to_one_of_two_stations_is_proven() {
    let one = moded(4_000, 1, |mode| equals(mode, 1));
    let two = moded(4_000, 2, |mode| equals(mode, 2));
    proves(&network(&[&master(), &one, &two]));
    let less = moded(4_000, 1, |mode| word(mode, 0, Relation::Less, -3));
    let rest = moded(4_000, 2, |mode| word(mode, 0, Relation::AtMost, i32::MAX >> 8));
    violates(&network(&[&master(), &less, &rest]), NetworkProperty::CollisionFree);
    let small = moded(4_000, 1, |mode| word(mode, 0, Relation::Below, 7));
    let negative = moded(4_000, 2, |mode| word(mode, 0, Relation::Less, 0));
    proves(&network(&[&master(), &small, &negative]));
}

#[test]
fn a_mode_word_that_is_not_the_same_for_both_proves_nothing() {
    // The second station looks at the word before this round's has come.
    let one = moded(4_000, 1, |mode| equals(mode, 1));
    let same = moded(4_000, 2, |mode| equals(mode, 1));
    violates(&network(&[&master(), &one, &same]), NetworkProperty::CollisionFree);
    let mut early = Code::default();
    let (mode, buffer) = (early.input(1), early.output(4));
    early.message(0, 1).message(2, 4);
    early.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    early.receive(0, mode).wait("slot", 4_000).future("done", 3_000);
    early.branch(unless(equals(mode, 2)), "skip").create(buffer).send(2).label("skip");
    early.halt().label("done").goto("top");
    violates(&network(&[&master(), &one, &early]), NetworkProperty::CollisionFree);
    // This one looks at the word that it copied in the last round.
    let mut old = Code::default();
    let (mode, buffer) = (old.input(1), old.output(4));
    old.message(0, 1).message(2, 4);
    old.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    old.wait("slot", 4_000).branch(unless(equals(mode, 2)), "skip").create(buffer).send(2);
    old.label("skip").wait("late", 4_000).receive(0, mode).goto("top");
    violates(&network(&[&master(), &one, &old]), NetworkProperty::CollisionFree);
    // Two of these agree again, in words of one round before.
    let mut other = Code::default();
    let (mode, buffer) = (other.input(1), other.output(4));
    other.message(0, 1).message(3, 4);
    other.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    other.wait("slot", 4_000).branch(unless(equals(mode, 1)), "skip").create(buffer).send(3);
    other.label("skip").wait("late", 4_000).receive(0, mode).goto("top");
    proves(&network(&[&master(), &other, &old]));
}

/// Only the master's drift: its next round comes before or behind a frame at the end of this one.
#[test]
fn drift_of_a_round_makes_frames_collide_with_the_next_one() {
    let of = |drift_ppb, offset| {
        let late = {
            let mut code = Code::default();
            let buffer = code.output(300);
            code.message(1, 300).label("top").sync_slave(3 * ROUND);
            code.branch(when(Condition::SyncTimeout), "top").wait("slot", offset);
            code.create(buffer).send(1).goto("top");
            code
        };
        let mut network = star(&[&master(), &late, &sender(4_000, 2, 4)], 0, (500, 500));
        network.stations[0].drift_ppb_max = drift_ppb;
        verify(&network).of(NetworkProperty::CollisionFree).verdict
    };
    let free = (ROUND - 1_400..ROUND).rev().find(|at| of(0, *at) == ProofVerdict::Proven).unwrap();
    assert_eq!(of(0, free + 1), ProofVerdict::Violated);
    // 20,000 cycles by 100 ppm are two cycles.
    assert_eq!(of(100_000, free), ProofVerdict::Violated);
    assert_eq!(of(100_000, free - 1), ProofVerdict::Violated);
    assert_eq!(of(100_000, free - 3), ProofVerdict::Proven);
}

/// A round that a word makes longer, which the master receives, and a slave that sends late in it.
#[test]
fn frames_at_the_end_of_a_longer_round_collide_with_the_next_one() {
    let source = sender(2_000, 1, 1);
    let mut long = Code::default();
    let word = long.input(1);
    long.message(1, 1).label("top").sync_master().wait("slot", 4_000).receive(1, word);
    long.branch(when(equals(word, 1)), "more").future("end", ROUND).halt();
    long.label("more").future("end", 2 * ROUND).halt().label("end").goto("top");
    let late = |offset: u32| {
        let mut code = Code::default();
        let (word, buffer) = (code.input(1), code.output(300));
        code.message(1, 1).message(2, 300).label("top").sync_slave(4 * ROUND);
        code.branch(when(Condition::SyncTimeout), "top").wait("slot", 4_000).receive(1, word);
        code.branch(unless(equals(word, 1)), "top").wait("late", offset).create(buffer).send(2);
        code.goto("top");
        network(&[&long, &source, &code])
    };
    proves(&late(2 * ROUND - 4_000));
    // The slave waits again, but its frame takes 1,250 cycles.
    let network = late(2 * ROUND - 600);
    violates(&network, NetworkProperty::CollisionFree);
    expect(&network, NetworkProperty::Synchronisation, ProofVerdict::Unknown);
}

#[test]
fn slots_shared_by_counting_are_proven() {
    let counting = |message, negated| {
        slave(4_000, |code| {
            let buffer = code.output(4);
            let condition = Condition::Count { counter: 0, every: 2 };
            let guard = if negated { when(condition) } else { unless(condition) };
            code.message(message, 4).branch(guard, "skip");
            code.create(buffer).send(message).label("skip");
        })
    };
    let verification = proves(&network(&[&master(), &counting(1, false), &counting(2, true)]));
    assert_eq!(verification.hyper_round, Some(2));
    let same = network(&[&master(), &counting(1, false), &counting(2, false)]);
    violates(&same, NetworkProperty::CollisionFree);
}

#[test]
fn a_relay_sends_only_what_it_has_received() {
    let relay = |guarded: bool| {
        slave(8_000, |code| {
            let buffer = code.input(4);
            code.message(1, 4).message(2, 4).receive(1, buffer);
            if guarded {
                code.branch(unless(Condition::Received), "skip");
            }
            code.create(buffer).send(2);
            if guarded {
                code.label("skip");
            }
        })
    };
    let source = moded(4_000, 1, |mode| equals(mode, 1));
    let verification = proves(&network(&[&master(), &source, &relay(true)]));
    let notes = &verification.of(NetworkProperty::Reception).findings;
    assert!(notes.iter().any(|note| note.weight == FindingWeight::Note && note.station == Some(2)));
    violates(&network(&[&master(), &source, &relay(false)]), NetworkProperty::BufferValidity);
    // What always comes needs no guard.
    proves(&network(&[&master(), &sender(4_000, 1, 4), &relay(false)]));
}

#[test]
fn traps_and_stalls_of_buffers_are_refused() {
    let empty = slave(4_000, |code| {
        code.message(1, 4).send(1);
    });
    violates(&network(&[&master(), &empty]), NetworkProperty::BufferValidity);
    let other = slave(4_000, |code| {
        let buffer = code.output(5);
        code.message(1, 4).create(buffer).send(1);
    });
    violates(&network(&[&master(), &other]), NetworkProperty::BufferValidity);
    let mut stalled = Code::default();
    let buffer = stalled.output(374);
    stalled.message(1, 374);
    stalled.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    stalled.wait("slot", 4_000).future("more", 500).create(buffer).send(1).halt();
    stalled.label("more").future("done", 900).create(buffer).halt().label("done").goto("top");
    violates(&network(&[&master(), &stalled]), NetworkProperty::BufferValidity);
}

#[test]
fn countdowns_that_are_too_short_or_missing_are_refused() {
    let timed = |cycles| {
        let mut code = Code::default();
        let input = code.input(40);
        code.message(1, 40).label("top").sync_slave(2 * ROUND);
        code.branch(when(Condition::SyncTimeout), "top");
        code.wait("slot", 8_000).future("done", cycles).receive(1, input).halt();
        code.label("done").goto("top");
        network(&[&master(), &sender(4_000, 1, 40), &code])
    };
    // `future` 2, `receive` 2 and a cycle for each word: `halt` is issued 44 cycles later.
    violates(&timed(44), NetworkProperty::Schedulability);
    proves(&timed(45));
    let mut none = Code::default();
    none.label("top").sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    none.wait("slot", 4_000).halt().goto("top");
    violates(&network(&[&master(), &none]), NetworkProperty::WellFormed);
    let two = slave(4_000, |code| {
        code.future("done", 100);
    });
    violates(&network(&[&master(), &two]), NetworkProperty::WellFormed);
}

#[test]
fn programs_that_cannot_be_followed_are_refused() {
    let mut polling = Code::default();
    polling.message(0, 1).label("top").sync_slave(2 * ROUND).label("x");
    polling.branch(unless(Condition::Fresh(MessageId(0))), "x").goto("top");
    let verification = expect(
        &network(&[&master(), &polling]),
        NetworkProperty::WellFormed,
        ProofVerdict::Violated,
    );
    assert!(verification.of(NetworkProperty::WellFormed).findings[0].message.contains("loop"));
    assert_eq!(verification.of(NetworkProperty::CollisionFree).verdict, ProofVerdict::Unknown);
    let mut falls = Code::default();
    falls.label("top").sync_slave(2 * ROUND);
    let verification =
        expect(&network(&[&master(), &falls]), NetworkProperty::WellFormed, ProofVerdict::Violated);
    assert!(verification.of(NetworkProperty::WellFormed).findings[0].message.contains("its end"));
}

#[test]
fn a_frame_that_is_overwritten_is_told() {
    let twice = {
        let mut code = Code::default();
        let buffer = code.output(4);
        code.message(1, 4).label("top").sync_slave(2 * ROUND);
        code.branch(when(Condition::SyncTimeout), "top");
        code.wait("one", 4_000).create(buffer).send(1);
        code.wait("two", 4_000).create(buffer).send(1).goto("top");
        code
    };
    let listener = |offset| {
        let input = |code: &mut Code| {
            let buffer = code.input(4);
            code.message(1, 4).receive(1, buffer);
        };
        slave(offset, input)
    };
    let both = {
        let mut code = Code::default();
        let buffer = code.input(4);
        code.message(1, 4).label("top").sync_slave(2 * ROUND);
        code.branch(when(Condition::SyncTimeout), "top");
        code.wait("one", 6_000).receive(1, buffer);
        code.wait("two", 4_000).receive(1, buffer).goto("top");
        code
    };
    violates(&network(&[&master(), &twice, &listener(9_000)]), NetworkProperty::Reception);
    proves(&network(&[&master(), &twice, &both]));
    // Once a round is often enough for what is sent once, wherever in the round.
    proves(&network(&[&master(), &sender(4_000, 1, 4), &listener(2_000)]));
    // The frame is visible 97 cycles and the delay after the send, which is 6 after its issue.
    let late = verify(&network(&[&master(), &sender(4_000, 1, 4), &listener(4_150)]));
    let sentences = &late.of(NetworkProperty::Reception).findings;
    assert!(sentences.iter().any(|it| it.message.contains("may find no frame")), "{sentences:?}");
}

#[test]
fn two_masters_or_none_are_refused() {
    violates(&network(&[&master(), &master()]), NetworkProperty::Synchronisation);
    let verification = verify(&network(&[&sender(4_000, 1, 4), &sender(8_000, 2, 4)]));
    assert_eq!(verification.of(NetworkProperty::Synchronisation).verdict, ProofVerdict::Violated);
    assert_eq!(verification.of(NetworkProperty::CollisionFree).verdict, ProofVerdict::Unknown);
}

#[test]
fn a_timeout_is_longer_than_the_longest_round() {
    let waiting = |timeout| {
        let mut code = Code::default();
        code.label("top")
            .sync_slave(timeout)
            .branch(when(Condition::SyncTimeout), "top")
            .goto("top");
        code
    };
    // A round of 20,039 cycles; the slave is back after 6 cycles.
    let verdict = |timeout| {
        let network = star(&[&master(), &waiting(timeout)], 0, (500, 500));
        verify(&network).of(NetworkProperty::Synchronisation).verdict
    };
    let least = (19_900..20_100).find(|it| verdict(*it) == ProofVerdict::Proven).unwrap();
    assert!((19_900..20_100).all(|it| {
        verdict(it) == if it < least { ProofVerdict::Violated } else { ProofVerdict::Proven }
    }));
    violates(&network(&[&master(), &waiting(least)]), NetworkProperty::Synchronisation);
}

#[test]
fn a_slave_is_back_before_the_next_round() {
    violates(
        &network(&[&master(), &sender(ROUND - 2_990, 1, 4)]),
        NetworkProperty::Synchronisation,
    );
    proves(&network(&[&master(), &sender(ROUND - 3_200, 1, 4)]));
}

#[test]
fn a_station_without_a_round_is_silent() {
    let mut code = Code::default();
    let buffer = code.output(4);
    code.message(1, 4);
    code.label("top").sync_slave(2 * ROUND).wait("slot", 4_000).future("done", 3_000);
    code.create(buffer).send(1).halt().label("done").goto("top");
    let verification = violates(&network(&[&master(), &code]), NetworkProperty::Silence);
    assert_eq!(verification.of(NetworkProperty::CollisionFree).verdict, ProofVerdict::Proven);
    assert_eq!(verification.of(NetworkProperty::Synchronisation).verdict, ProofVerdict::Proven);
}

#[test]
fn an_instruction_without_a_path_is_told() {
    let mut code = sender(4_000, 1, 4);
    code.label("never").nop().goto("never2").label("never2").goto("top");
    let network = network(&[&master(), &code]);
    let verification = expect(&network, NetworkProperty::Reachability, ProofVerdict::Violated);
    assert_eq!(verification.of(NetworkProperty::Reachability).findings.len(), 3);
}

#[test]
fn a_best_effort_frame_fits_between_real_time_frames() {
    let mut network = network(&[&master(), &sender(4_000, 1, 10)]);
    network.resources[0].best_effort_octets = Some(1_522);
    proves(&network);
    network.resources[0].best_effort_octets = Some(60_000);
    expect(&network, NetworkProperty::BestEffort, ProofVerdict::Violated);
}

#[test]
fn what_is_beyond_a_limit_is_unknown() {
    let counting = slave(4_000, |code| {
        let buffer = code.output(4);
        let condition = Condition::Count { counter: 0, every: 1_000_000 };
        code.message(1, 4).branch(when(condition), "skip");
        code.create(buffer).send(1).label("skip");
    });
    let network = network(&[&master(), &counting]);
    let verification = expect(&network, NetworkProperty::CollisionFree, ProofVerdict::Unknown);
    assert!(verification.of(NetworkProperty::CollisionFree).findings[0].message.contains("states"));
}

#[test]
fn an_inconsistent_model_is_unknown() {
    let mut network = network(&[&master(), &sender(4_000, 1, 4)]);
    network.reaches[0].delay_min_ns = network.reaches[0].delay_max_ns + 1;
    let verification = verify(&network);
    let unknown = |it: &NetworkProperty| verification.of(*it).verdict == ProofVerdict::Unknown;
    assert!(NetworkProperty::ALL.iter().all(unknown));
}

/// A system that violates each property, in order.
fn violating() -> [NetworkModel; 9] {
    let of = |slave: &Code| network(&[&master(), slave]);
    let empty = slave(4_000, |code| {
        code.message(1, 4).send(1);
    });
    let mut off = Code::default();
    off.label("top").sync_slave(2 * ROUND);
    let late = slave(4_000, |code| {
        let input = code.input(374);
        code.message(1, 374);
        (0..9).for_each(|_| {
            code.receive(1, input);
        });
    });
    let mut loud = Code::default();
    let buffer = loud.output(4);
    loud.message(1, 4).label("top").sync_slave(2 * ROUND).wait("slot", 4_000);
    loud.create(buffer).send(1).goto("top");
    let mut twice = Code::default();
    let buffer = twice.output(4);
    twice.message(1, 4).label("top").sync_slave(2 * ROUND);
    twice.branch(when(Condition::SyncTimeout), "top").wait("one", 4_000).create(buffer).send(1);
    twice.wait("two", 4_000).create(buffer).send(1).goto("top");
    let listener = slave(12_000, |code| {
        let input = code.input(4);
        code.message(1, 4).receive(1, input);
    });
    let mut dead = sender(4_000, 1, 4);
    dead.label("never").goto("never2").label("never2").goto("top");
    let mut crowded = of(&sender(4_000, 1, 10));
    crowded.resources[0].best_effort_octets = Some(60_000);
    [
        of(&off),
        network(&[&master(), &sender(4_000, 1, 10), &sender(4_060, 2, 10)]),
        of(&empty),
        of(&late),
        network(&[&master(), &twice, &listener]),
        of(&master()),
        of(&loud),
        of(&dead),
        crowded,
    ]
}

#[test]
fn each_property_has_each_verdict() {
    use std::collections::BTreeSet;
    let mut seen = BTreeSet::new();
    let mut inconsistent = network(&[&master(), &sender(4_000, 1, 4)]);
    seen.extend(verify(&inconsistent).properties.iter().map(|it| (it.property, it.verdict)));
    inconsistent.stations[0].drift_ppb_max = u32::MAX;
    seen.extend(verify(&inconsistent).properties.iter().map(|it| (it.property, it.verdict)));
    for (property, network) in NetworkProperty::ALL.into_iter().zip(violating()) {
        let verification = expect(&network, property, ProofVerdict::Violated);
        seen.extend(verification.properties.iter().map(|it| (it.property, it.verdict)));
    }
    let verdicts = [ProofVerdict::Proven, ProofVerdict::Violated, ProofVerdict::Unknown];
    let all = NetworkProperty::ALL.into_iter().flat_map(|it| verdicts.map(|verdict| (it, verdict)));
    assert_eq!(seen, all.collect());
}
