//! Makes a description with a fault small: as long as the fault stays, tables and keys go, and
//! numbers become rounder.

use crate::Description;
use serde_json::Value;

/// What may be done to one place of a description.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Take it away.
    Remove,
    /// Put another value in its place.
    Replace(Value),
}

/// The smallest description that this finds for which `fails` still holds. It asks at most `tries`
/// times.
pub fn shrink(
    description: Description,
    tries: usize,
    mut fails: impl FnMut(&Description) -> bool,
) -> Description {
    let (mut best, mut left) = (description, tries);
    loop {
        let mut smaller = false;
        // From the end: removing leaves the paths before it as they are.
        for path in paths(&best).into_iter().rev() {
            for step in steps(&best, &path) {
                if left == 0 {
                    return best;
                }
                let Some(candidate) = changed(&best, &path, &step) else { continue };
                left -= 1;
                if fails(&candidate) {
                    best = candidate;
                    smaller = true;
                    break;
                }
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// One step down a tree.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Name(String),
    At(usize),
}

/// All places, parents before what is in them.
pub(crate) fn paths(description: &Description) -> Vec<Vec<Key>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), Value::Object(description.root.clone()))];
    while let Some((path, value)) = open.pop() {
        let inner: Vec<(Key, Value)> = match value {
            Value::Object(table) => table.into_iter().map(|(k, v)| (Key::Name(k), v)).collect(),
            Value::Array(list) => {
                list.into_iter().enumerate().map(|(n, v)| (Key::At(n), v)).collect()
            }
            _ => Vec::new(),
        };
        for (key, value) in inner {
            let mut path: Vec<Key> = path.clone();
            path.push(key);
            open.push((path.clone(), value));
            found.push(path);
        }
    }
    found.sort_by_key(Vec::len);
    // Whole tables first, the last of them at the end of the walk's beginning.
    found.reverse();
    found
}

fn steps(description: &Description, path: &[Key]) -> Vec<Step> {
    let mut steps = vec![Step::Remove];
    if let Some(value) = at(description, path).and_then(Value::as_i64) {
        let rounder = [0, 1, value / 1_000 * 1_000, value / 10 * 10];
        let rounder = rounder.into_iter().filter(|other| *other != value);
        steps.extend(rounder.map(|other| Step::Replace(other.into())));
    }
    steps
}

pub(crate) fn at<'a>(description: &'a Description, path: &[Key]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let Key::Name(first) = first else { return None };
    let mut value = description.root.get(first)?;
    for key in rest {
        value = match key {
            Key::Name(name) => value.get(name)?,
            Key::At(at) => value.get(at)?,
        };
    }
    Some(value)
}

pub(crate) fn changed(description: &Description, path: &[Key], step: &Step) -> Option<Description> {
    at(description, path)?;
    let mut copy = description.clone();
    let (last, parents) = path.split_last()?;
    let mut root = Value::Object(std::mem::take(&mut copy.root));
    let mut value = &mut root;
    for key in parents {
        value = match key {
            Key::Name(name) => value.get_mut(name)?,
            Key::At(at) => value.get_mut(at)?,
        };
    }
    match (value, last, step) {
        (Value::Object(table), Key::Name(name), Step::Remove) => drop(table.remove(name)),
        (Value::Array(list), Key::At(at), Step::Remove) => drop(list.remove(*at)),
        (Value::Object(table), Key::Name(name), Step::Replace(new)) => {
            table.insert(name.clone(), new.clone());
        }
        (Value::Array(list), Key::At(at), Step::Replace(new)) => list[*at] = new.clone(),
        _ => return None,
    }
    let Value::Object(root) = root else { return None };
    copy.root = root;
    Some(copy)
}
