//! Random systems, changed so that they must collide or miss: each is refused, and the
//! counterexample replays.

use super::plan::{Action, Decision, Dice, SystemPlan};
use super::random::{begins, collides, execute, is_accepted, is_proven, replays, systems};
use onbeat_network_code::verification::{DRIFT_PPB_MAX, NetworkProperty, ProofVerdict, verify};
use onbeat_runtime::network_code::timing::FRAME_WORDS;
use std::collections::BTreeMap;

/// Cycles between the starts of two slots of a station, at least.
const ROOM: u32 = 400;
/// Systems whose limit of drift is searched, at most.
const DRIFTS_MAX: u64 = 100;

/// How a system is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    SlotMoved,
    LengthGrown,
    LiteralChanged,
    TimeoutCut,
    RoundCut,
}

const ALL: [Change; 5] = [
    Change::SlotMoved,
    Change::LengthGrown,
    Change::LiteralChanged,
    Change::TimeoutCut,
    Change::RoundCut,
];

/// The slots in which a station always sends: station, slot, message, start.
fn certain(plan: &SystemPlan) -> Vec<(usize, usize, u8, u32)> {
    let mut found = Vec::new();
    for (station, of) in plan.stations.iter().enumerate() {
        for (index, slot) in of.slots.iter().enumerate() {
            for action in &slot.actions {
                if let Action::Send { decision: Decision::Always, message, .. } = action {
                    found.push((station, index, *message, slot.start));
                }
            }
        }
    }
    found
}

/// Moves a slot to where its frame begins with another station's at some resource, if the slots
/// before and behind it leave it that.
fn moved(plan: &SystemPlan, dice: &mut Dice) -> Option<SystemPlan> {
    let all = certain(plan);
    let (station, slot, own, start) = all[dice.below(all.len() as u64) as usize];
    let begins = begins(&plan.network());
    let slots = &plan.stations[station].slots;
    let from = slot.checked_sub(1).map_or(0, |before| slots[before].start) + ROOM;
    let to = slots.get(slot + 1).map_or(plan.round, |next| next.start) - ROOM;
    let mut starts = Vec::new();
    for (_, _, message, _) in all.iter().filter(|it| it.0 != station) {
        for ((of, resource), begin) in &begins {
            let own = begins.get(&(own, *resource)).filter(|_| of == message);
            starts.extend(own.map(|own| (i64::from(start) + (begin - own) / 8) as u32));
        }
    }
    starts.retain(|start| (from..=to).contains(start));
    let start = *starts.get(dice.below(starts.len().max(1) as u64) as usize)?;
    let mut plan = plan.clone();
    plan.stations[station].slots[slot].start = start;
    Some(plan)
}

/// Makes a message so long that it reaches into the next one that another station always sends.
fn grown(seed: u64, plan: &SystemPlan) -> Option<SystemPlan> {
    // With slots that the longest message does not fit in, but theirs do.
    let plan = SystemPlan::sized(seed, Some(plan.slot * 3 / 5));
    if !is_accepted(&verify(&plan.network())) {
        return None;
    }
    let all = certain(&plan);
    let begins = begins(&plan.network());
    // A frame of the longest message takes more than 12 us.
    let reaches = |one: u8, other: u8| {
        let of = |message: u8| begins.iter().filter(move |((of, _), _)| *of == message);
        of(one).any(|((_, resource), begin)| {
            let next = begins.get(&(other, *resource));
            next.is_some_and(|next| (0..12_000).contains(&(next - begin)))
        })
    };
    let mut actions = plan.stations.iter().flat_map(|it| &it.slots).flat_map(|it| &it.actions);
    let relayed: Vec<u8> = actions
        .by_ref()
        .filter_map(|action| match action {
            Action::Relay { from, .. } => Some(*from),
            _ => None,
        })
        .collect();
    let (_, _, message, _) = *all.iter().find(|(station, _, message, _)| {
        let is_next = |it: &(usize, usize, u8, u32)| it.0 != *station && reaches(*message, it.2);
        *message != 0 && !relayed.contains(message) && all.iter().any(is_next)
    })?;
    let mut plan = plan.clone();
    let slots = plan.stations.iter_mut().flat_map(|it| &mut it.slots);
    for action in slots.flat_map(|it| &mut it.actions) {
        match action {
            Action::Send { message: of, words, .. }
            | Action::Receive { message: of, words, .. }
                if *of == message =>
            {
                *words = FRAME_WORDS;
            }
            _ => {}
        }
    }
    Some(plan)
}

/// Gives both stations of a shared slot the same guard.
fn same(plan: &SystemPlan) -> Option<SystemPlan> {
    let mut seen = BTreeMap::<u32, Decision>::new();
    let mut plan = plan.clone();
    for station in &mut plan.stations {
        for slot in &mut station.slots {
            for action in &mut slot.actions {
                let Action::Send { decision, .. } = action else { continue };
                let is_shared = matches!(
                    decision,
                    Decision::Mode(..) | Decision::Modes(..) | Decision::Count(2, _)
                );
                match seen.get(&slot.start) {
                    Some(other) if is_shared => {
                        *decision = *other;
                        return Some(plan);
                    }
                    _ if is_shared => {
                        seen.insert(slot.start, *decision);
                    }
                    _ => {}
                }
            }
        }
    }
    None
}

fn changed(seed: u64, plan: &SystemPlan, change: Change, dice: &mut Dice) -> Option<SystemPlan> {
    let mut next = plan.clone();
    match change {
        Change::SlotMoved => moved(plan, dice),
        Change::LengthGrown => grown(seed, plan),
        Change::LiteralChanged => same(plan),
        Change::TimeoutCut => {
            // The slave is back after its last slot; the round is as long again as what is left.
            let back = plan.stations[1].slots.last()?.start;
            next.stations[1].timeout = (plan.round - back) / 2;
            Some(next)
        }
        Change::RoundCut => {
            // The master has done all it does; a slave is not back yet.
            next.stations[0].slots.truncate(1);
            next.longer = None;
            next.round = next.stations[0].slots.last()?.start + plan.slot;
            let latest = plan.stations[1..].iter().map(|it| it.slots.last().map(|it| it.start));
            (next.round + plan.slot < latest.max()??).then_some(next)
        }
    }
}

/// The property that a change violates.
fn violated(change: Change) -> NetworkProperty {
    match change {
        Change::SlotMoved | Change::LengthGrown | Change::LiteralChanged => {
            NetworkProperty::CollisionFree
        }
        Change::TimeoutCut | Change::RoundCut => NetworkProperty::Synchronisation,
    }
}

#[test]
fn systems_that_must_collide_are_refused() {
    let mut made = BTreeMap::<Change, (u64, u64)>::new();
    let (mut shown, mut must, mut unshown) = (0, 0, 0);
    for seed in 0..systems() {
        let plan = SystemPlan::random(seed);
        if !is_accepted(&verify(&plan.network())) {
            continue;
        }
        let mut dice = Dice::new(!seed);
        // The change whose turn it is, or the next one that the system allows.
        let mut changes = ALL.into_iter().cycle().skip(seed as usize % ALL.len()).take(ALL.len());
        let Some((change, plan)) =
            changes.find_map(|change| Some((change, changed(seed, &plan, change, &mut dice)?)))
        else {
            continue;
        };
        let network = plan.network();
        let verification = verify(&network);
        let (all, refused) = made.entry(change).or_default();
        *all += 1;
        *refused += u64::from(!is_accepted(&verification));
        shown += replays(seed, &network, &verification);
        execute(seed, &network, &verification);
        let property = violated(change);
        if property != NetworkProperty::CollisionFree || collides(seed, &network) {
            let of = verification.of(property);
            let is_shown = of.findings.iter().any(|finding| finding.counterexample.is_some());
            assert_ne!(of.verdict, ProofVerdict::Proven, "seed {seed}, {change:?}: {of:#?}");
            assert_eq!(of.verdict == ProofVerdict::Violated, is_shown, "seed {seed}, {change:?}");
            must += 1;
            unshown += u64::from(!is_shown);
        }
    }
    println!("{must} had to be refused, {unshown} of them only as unknown");
    // The search for an execution is not a complete one.
    assert!(unshown * 200 <= must, "{unshown} of {must}");
    println!("changes (made, refused): {made:?}, {shown} counterexamples replayed");
    for change in ALL {
        let (all, refused) = made.get(&change).copied().unwrap_or_default();
        assert!(all > 0 && refused > 0, "{change:?}: {all} made, {refused} refused");
    }
}

/// Raises the drift until the verifier refuses: just below nothing happens, at more it does.
#[test]
fn drift_is_refused_from_where_frames_collide() {
    let (mut checked, mut shown, mut unshown) = (0, 0, 0);
    for seed in 0..systems().div_ceil(20).min(DRIFTS_MAX) {
        let with = |slot: u32, drift_ppb: u32| {
            let mut plan = SystemPlan::sized(seed, Some(slot));
            plan.stations.iter_mut().for_each(|it| it.drift_ppb = drift_ppb);
            // So that only frames can be what drift affects.
            plan.stations.iter_mut().skip(1).for_each(|it| it.timeout = 4 * plan.round);
            let network = plan.network();
            let verification = verify(&network);
            (network, verification)
        };
        let whole = SystemPlan::random(seed).slot;
        let fits = |slot| is_proven(&with(slot, 0).1, NetworkProperty::CollisionFree);
        // The shortest slots, and two cycles more.
        let (mut short, mut long) = (whole / 4, whole);
        if !fits(long) || fits(short) {
            continue;
        }
        while long - short > 1 {
            let middle = short.midpoint(long);
            if fits(middle) { long = middle } else { short = middle }
        }
        let at = |drift_ppb| with(long + 2, drift_ppb);
        let is_free = |drift| is_proven(&at(drift).1, NetworkProperty::CollisionFree);
        if !is_free(0) || is_free(DRIFT_PPB_MAX) {
            continue;
        }
        let (mut free, mut collides_at) = (0, DRIFT_PPB_MAX);
        while collides_at - free > 1 {
            let middle = free.midpoint(collides_at);
            if is_free(middle) { free = middle } else { collides_at = middle }
        }
        let (network, verification) = at(free);
        execute(seed, &network, &verification);
        // A hundred parts per million more, where executions show it too.
        let (network, verification) = at((collides_at + 100_000).min(DRIFT_PPB_MAX));
        assert!(!is_proven(&verification, NetworkProperty::CollisionFree), "seed {seed}");
        let of = verification.of(NetworkProperty::CollisionFree);
        shown += replays(seed, &network, &verification);
        unshown += u64::from(of.verdict != ProofVerdict::Violated && collides(seed, &network));
        checked += 1;
    }
    println!("{checked} limits of drift, {shown} counterexamples replayed, {unshown} unknown");
    assert!(unshown * 20 <= checked, "{unshown} of {checked}");
    assert!(checked > 0 && shown > 0);
}
