//! Changes a description a little, as a search does that keeps what made it worse.

use crate::shrink::{Key, Step, at, changed, paths};
use crate::{Description, Dice};
use serde_json::Value;

/// Flows that a mutated description has at most: streams and channels.
pub const FLOWS_MAX: usize = 99;

/// What numbers become in plans that have much to look at: intervals and windows with large common
/// multiples, and others that differ little.
const FACTORS: [(i64, i64); 8] =
    [(1, 2), (2, 1), (1, 10), (10, 1), (3, 1), (1, 7), (999, 1_000), (1_001, 1_000)];

/// A description like this one with one to eight changes: flows copied and with other talkers and
/// listeners, numbers changed a little, a lot or for others, tables left out. It need not be right.
pub fn mutated(description: &Description, dice: &mut Dice) -> Description {
    let mut now = description.clone();
    for _ in 0..dice.between(1, 8) {
        let next = match dice.below(4) {
            0 => copied(&now, dice),
            _ => otherwise(&now, dice),
        };
        now = next.unwrap_or(now);
    }
    now
}

fn flows(description: &Description) -> usize {
    description.list("stream").len() + description.list("channel").len()
}

/// With one more stream or channel: a copy of one by another name.
fn copied(description: &Description, dice: &mut Dice) -> Option<Description> {
    let kind = dice.one(&["stream", "stream", "channel"]);
    let list = description.list(kind);
    if list.is_empty() || flows(description) >= FLOWS_MAX {
        return None;
    }
    let mut flow = dice.one(list);
    let number = dice.below(1 << 24);
    flow["name"] = format!("m{number}").into();
    if kind == "channel" {
        let [a, b, c, _] = (number as u32).to_le_bytes();
        flow["destination"] = format!("91:e0:f0:{c:02x}:{b:02x}:{a:02x}").into();
        flow["stream_id"] = (number + 1_000).into();
    }
    let hosts = description.list("host");
    for key in ["talker", "listeners"] {
        if dice.chance(50) && !hosts.is_empty() {
            let host = dice.one(hosts)["name"].clone();
            flow[key] = if key == "talker" { host } else { Value::Array(vec![host]) };
            // Paths lead from one bridge to another.
            flow.as_object_mut()?.remove("paths");
        }
    }
    let mut copy = description.clone();
    copy.root.get_mut(kind)?.as_array_mut()?.push(flow);
    Some(copy)
}

/// With another value at one place, or without it.
fn otherwise(description: &Description, dice: &mut Dice) -> Option<Description> {
    let all = paths(description);
    let path = dice.one(&all);
    let old = at(description, &path)?;
    let Some(number) = old.as_i64() else {
        let choice = dice.below(10);
        return match old {
            Value::Bool(word) => changed(description, &path, &Step::Replace((!word).into())),
            _ if choice == 0 => changed(description, &path, &Step::Remove),
            _ => None,
        };
    };
    let alike = |other: &&Vec<Key>| match (path.last(), other.last()) {
        (Some(Key::Name(a)), Some(Key::Name(b))) => a == b,
        _ => false,
    };
    let others: Vec<Value> = (all.iter().filter(alike))
        .filter_map(|other| at(description, other).cloned())
        .filter(Value::is_i64)
        .collect();
    let new = match dice.below(4) {
        0 if !others.is_empty() => dice.one(&others),
        1 => number.saturating_add(dice.between(-3, 3)).into(),
        _ => {
            let (up, down) = dice.one(&FACTORS);
            (number.saturating_mul(up) / down).into()
        }
    };
    changed(description, &path, &Step::Replace(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn a_mutation_changes_something_and_adds_no_more_flows_than_it_may() {
        let mut dice = Dice::new(7);
        let mut now = crate::draw::description(&Schema::committed(), 3);
        let mut most = 0;
        for _ in 0..2_000 {
            let next = mutated(&now, &mut dice);
            most = most.max(flows(&next));
            now = if dice.chance(90) { next } else { now };
        }
        assert!(most <= FLOWS_MAX && most > 1, "{most}");
        let before = now.clone();
        assert!((0..20).any(|_| mutated(&now, &mut dice) != before));
    }
}
