//! The same description with groups: the last tables of some kinds become copies of one table.

use crate::Dice;
use serde_json::{Map, Value, json};

/// Which tables a group may have.
const KINDS: [&str; 11] = [
    "host", "bridge", "link", "port", "stream", "fault", "channel", "program", "noise", "tcp",
    "chain",
];

/// The tree with groups, of which `seed` says which. It describes the same system.
pub(crate) fn folded(root: &Map<String, Value>, seed: u64) -> Map<String, Value> {
    let mut dice = Dice::new(seed);
    let mut root = root.clone();
    let mut one = Map::from_iter([("name".to_owned(), json!("one")), ("count".into(), json!(1))]);
    let mut two = Map::from_iter([("name".to_owned(), json!("two")), ("count".into(), json!(2))]);
    for kind in KINDS {
        let Some(Value::Array(list)) = root.get_mut(kind).filter(|_| dice.chance(60)) else {
            continue;
        };
        let pair = list.last_chunk::<2>().and_then(|[a, b]| pair(a, b));
        if let Some(pair) = pair.filter(|_| dice.chance(80)) {
            list.truncate(list.len() - 2);
            two.insert(kind.to_owned(), json!([pair]));
        } else if let Some(last) = list.pop() {
            let same = pair_of(&last);
            one.insert(kind.to_owned(), json!([same]));
        }
        if list.is_empty() {
            root.remove(kind);
        }
    }
    let has_tables = |group: &Map<String, Value>| group.len() > 2;
    if has_tables(&two) && dice.chance(40) {
        one.insert("group".to_owned(), json!([two]));
    } else if has_tables(&two) {
        root.insert("group".to_owned(), json!([two]));
    }
    if has_tables(&one) {
        let groups = root.entry("group").or_insert_with(|| json!([]));
        groups.as_array_mut().expect("a list").push(Value::Object(one));
    }
    root
}

fn pair_of(value: &Value) -> Value {
    pair(value, value).expect("a value is like itself")
}

/// The value of which one is the copy where `two` is 0 and the other where it is 1, if there is
/// one.
fn pair(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).map(|(a, b)| pair(a, b)).collect()
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            let entries =
                a.iter().map(|(key, value)| Some((key.clone(), pair(value, b.get(key)?)?)));
            entries.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        (Value::String(a), Value::String(b)) => texts(a, b).map(Value::String),
        (a, b) if a == b => Some(a.clone()),
        (a, b) => {
            let number = |value: &Value| {
                let signed = value.as_i64().map(i128::from);
                signed.or(value.as_u64().map(i128::from))
            };
            line(number(a)?, number(b)?).map(|line| json!(format!("={line}")))
        }
    }
}

/// The expression that is `a` where `two` is 0 and `b` where it is 1.
fn line(a: i128, b: i128) -> Option<String> {
    let step = b - a;
    let sign = if step < 0 { '-' } else { '+' };
    let step = u64::try_from(step.abs()).ok()?;
    Some(match (a, step) {
        (0, 1) if sign == '+' => "two".to_owned(),
        (_, 1) => format!("{a} {sign} two"),
        _ => format!("{a} {sign} {step} * two"),
    })
}

/// The same of texts: numbers in them may differ, and octets of addresses.
fn texts(a: &str, b: &str) -> Option<String> {
    if a == b {
        let text = a.replace('{', "{{").replace('}', "}}");
        return Some(if a.starts_with('=') { format!("={text}") } else { text });
    }
    let is_address = |text: &str| text.len() == 17 && text.matches(':').count() == 5;
    let is_in_number = |c: char| c.is_ascii_digit();
    let mut made = String::new();
    if is_address(a) && is_address(b) {
        for (a, b) in a.split(':').zip(b.split(':')) {
            let octet = |text| u8::from_str_radix(text, 16).ok().map(i128::from);
            let line = line(octet(a)?, octet(b)?)?;
            made += &if a == b { format!(":{a}") } else { format!(":{{{line}:02x}}") };
        }
        return Some(made.split_off(1));
    }
    let (mut a, mut b) = (a, b);
    loop {
        let start = a.find(is_in_number).unwrap_or(a.len());
        let (same, rest) = a.split_at(start);
        let other = b.strip_prefix(same)?;
        made += &texts(same, same)?;
        if rest.is_empty() {
            return other.is_empty().then_some(made);
        }
        let end = |text: &str| text.find(|c| !is_in_number(c)).unwrap_or(text.len());
        let ((x, rest), (y, other)) = (rest.split_at(end(rest)), other.split_at(end(other)));
        made += &if x == y { x.to_owned() } else { format!("{{{}}}", number(x, y)?) };
        (a, b) = (rest, other);
    }
}

/// The same of the digits of two numbers: they have the same width if one begins with 0.
fn number(a: &str, b: &str) -> Option<String> {
    let line = line(a.parse().ok()?, b.parse().ok()?)?;
    let is_padded = [a, b].iter().any(|text| text.len() > 1 && text.starts_with('0'));
    match is_padded {
        true if a.len() == b.len() && a.len() <= 20 => Some(format!("{line}:0{}", a.len())),
        true => None,
        false => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_becomes_a_line_through_both() {
        let pair = |a: Value, b: Value| pair(&a, &b);
        assert_eq!(pair(json!(7), json!(7)), Some(json!(7)));
        assert_eq!(pair(json!(7), json!(5)), Some(json!("=7 - 2 * two")));
        assert_eq!(pair(json!(-1), json!(u64::MAX)), None);
        assert_eq!(
            pair(json!(0), json!(u64::MAX)),
            Some(json!(format!("=0 + {} * two", u64::MAX)))
        );
        assert_eq!(pair(json!(true), json!(false)), None);
        assert_eq!(pair(json!("=a{"), json!("=a{")), Some(json!("==a{{")));
        assert_eq!(
            pair(json!("h1.p09"), json!("h4.p10")),
            Some(json!("h{1 + 3 * two}.p{9 + two:02}"))
        );
        assert_eq!(pair(json!("h1"), json!("g1")), None);
        assert_eq!(pair(json!("h1"), json!("h1x")), None);
        let addresses = [json!("02:00:00:00:1f:ff"), json!("02:00:00:00:20:00")];
        let [a, b] = addresses;
        assert_eq!(pair(a, b), Some(json!("02:00:00:00:{31 + two:02x}:{255 - 255 * two:02x}")));
    }
}
