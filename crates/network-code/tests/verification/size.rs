//! Systems as large as they come: what takes how many steps.

use super::builder::{Code, equals, star, unless, when, word};
use onbeat_network_code::verification::{NetworkProperty, ProofVerdict, verify};
use onbeat_runtime::network_code::instruction::{Condition, Relation};

const STATIONS: u8 = 12;
const SLOTS: u32 = 64;
/// Words of the mode message: all guards of a station are on different ones.
const WORDS: u16 = 32;
const SLOT: u32 = 1_200;
const ROUND: u32 = SLOT * (SLOTS + 2);

/// A station with its share of 64 slots and eight guards: on the words of a mode message, on a
/// flag, and on a counter. A station's neighbour has the slot where it has not.
fn station(index: u8) -> Code {
    let mut code = Code::default();
    let mode = code.input(WORDS);
    code.message(0, WORDS).label("top");
    if index == 0 {
        code.sync_master();
    } else {
        code.sync_slave(2 * ROUND).branch(when(Condition::SyncTimeout), "top");
    }
    let mut at = if index == 0 { 0 } else { 3 };
    let mut guards = 0;
    for slot in 0..SLOTS {
        let owner = (slot % u32::from(STATIONS)) as u8;
        let shares = slot >= 2 && (owner + 1) % STATIONS == index;
        if slot != 1 && owner != index && !shares {
            continue;
        }
        let label = format!("slot{slot}");
        code.future(&label, (slot + 1) * SLOT - at).halt().label(&label);
        at = (slot + 1) * SLOT;
        let message = slot as u8 + if shares { 100 } else { 0 };
        match slot {
            0 => {
                let buffer = code.output(WORDS);
                code.create(buffer).send(0);
            }
            1 if index != 0 => {
                code.receive(0, mode);
            }
            1 => {}
            _ => {
                let skip = format!("skip{slot}");
                let buffer = code.output(20);
                let column = (slot % u32::from(WORDS)) as u8;
                let condition = match index {
                    // The master has no word that it has received.
                    0 => Condition::Flag(1),
                    _ if shares && owner == 0 => Condition::Flag(2),
                    _ if shares => word(mode, column, Relation::Less, 0),
                    _ => word(mode, column, Relation::Equal, 7),
                };
                guards += 1;
                let is_sent = !shares || (owner != 0 && index != 0);
                code.message(message, 20).branch(unless(condition), &skip);
                if is_sent {
                    code.create(buffer).send(message);
                } else {
                    code.nop();
                }
                code.label(&skip);
            }
        }
    }
    assert!(guards >= 8, "{guards}");
    if index == 0 {
        code.future("end", ROUND - at).halt().label("end");
    } else {
        // One guard more, of a word that another one has been on.
        code.branch(unless(equals(mode, 7)), "end").nop().label("end");
    }
    code.goto("top");
    code
}

#[test]
fn twelve_stations_with_sixty_four_slots_are_proven() {
    let codes: Vec<Code> = (0..STATIONS).map(station).collect();
    let network = star(&codes.iter().collect::<Vec<_>>(), 100_000, (1_000, 1_400));
    let verification = verify(&network);
    for property in NetworkProperty::ALL {
        let of = verification.of(property);
        assert_eq!(of.verdict, ProofVerdict::Proven, "{of:#?}");
    }
    // Not the time, but what takes it.
    assert!(verification.steps < 1_000_000, "{} steps", verification.steps);
    assert!(verification.pairs < 1_000_000, "{} pairs", verification.pairs);
    println!("{} steps, {} pairs", verification.steps, verification.pairs);
}
