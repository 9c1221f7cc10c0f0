//! What a stranger may do to a directory.

use super::{Corpus, Entries, Entry};
use crate::Dice;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// The most octets that a spoilt file has.
const OCTETS_MAX: usize = 3 << 20;

/// Numbers at the ends of ranges, and such as are none.
const NUMBERS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "2",
    "127",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0.1",
    "1e308",
    "1e-308",
    "999999999999",
    "99999999999999999999999999999999999999999999",
    "1_000_000",
];

/// Words that lead elsewhere, do something, or steer a terminal.
const WORDS: [&str; 30] = [
    "",
    ".",
    "..",
    "/",
    "../outside/secret",
    "../../outside/secret",
    "x/../../outside/victim",
    "/dev/zero",
    "/dev/stdin",
    "/dev/tty",
    "/proc/self/environ",
    "/proc/self/mem",
    "/etc/passwd",
    "-B./bin",
    "@words",
    "-o../outside/victim",
    "-fplugin=./x.so",
    "--trust",
    "%s%n%x",
    "$(touch x)",
    "a\nb",
    "a\tb",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[2J\u{1b}[H",
    "\u{9b}2J",
    "\u{202e}txt.exe",
    "\u{2066}x\u{2069}",
    "\u{7f}\u{8}\u{8}",
    "<script>alert(1)</script>",
    "'\"`&|;<>*?[]{}\\",
];

/// Lines of C.
const C_LINES: [&str; 22] = [
    "#include \"/dev/zero\"",
    "#include \"/dev/stdin\"",
    "#include \"pipe\"",
    "#include \".\"",
    "#include __FILE__",
    "#include_next \"x.h\"",
    "#include \"../outside/secret\"",
    "#line 2147483647 \"\u{1b}]0;t\u{7}\"",
    "# 1 \"/dev/zero\"",
    "# 1 \"../outside/victim\" 2 3",
    "#pragma GCC dependency \"/dev/zero\"",
    "_Pragma(\"GCC poison int\")",
    "#define int char",
    "#define task t(",
    "#error \u{202e}reversed",
    "__asm__(\".incbin \\\"/etc/passwd\\\"\");",
    "#if __has_include(\"pipe\")",
    "#embed \"/dev/zero\"",
    "/* never ends",
    "\"never ends",
    "#define a(x) x x x x x x x x\na(a(a(a(a(a(a(a(1))))))))",
    "#undef NULL",
];

/// Where links lead.
const LINKS: [&str; 9] = [
    "OUTSIDE/secret",
    "OUTSIDE/victim",
    "OUTSIDE",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "nowhere",
    "system.toml",
    ".",
];

/// Names of files that no verb writes.
const NAMES: [&str; 8] = [
    "pipe",
    "x.h",
    "words",
    "out/\u{1b}[2J",
    "out/2-x/records.onb",
    "\u{202e}gnp.c",
    "bin/cc1",
    "out.partial-1-x",
];

/// Does one thing to a directory.
pub(super) fn spoil(entries: &mut Entries, corpus: &Corpus, dice: &mut Dice) {
    let paths: Vec<String> = entries.keys().cloned().collect();
    if paths.is_empty() {
        return;
    }
    let path = dice.one(&paths);
    match dice.below(100) {
        0..12 => {
            let entry = special(dice);
            entries.insert(path, entry);
        }
        12..16 => {
            entries.remove(&path);
        }
        16..20 => {
            let all: Vec<_> = corpus.all().collect();
            entries.insert(path, dice.one(&all).1.clone());
        }
        20..25 => {
            let name = dice.one(&NAMES).to_owned();
            let is_free = entries.keys().all(|other| !other.starts_with(&format!("{name}/")));
            if is_free && parents_are_directories(entries, &name) {
                let entry = special(dice);
                entries.insert(name, entry);
            }
        }
        _ => {
            if let Some(Entry::File(octets)) = entries.get_mut(&path) {
                *octets = spoilt(octets, &path, corpus, dice);
                octets.truncate(OCTETS_MAX);
            }
        }
    }
}

fn parents_are_directories(entries: &Entries, name: &str) -> bool {
    let parents = name.match_indices('/').map(|(at, _)| &name[..at]);
    parents.into_iter().all(|parent| !entries.contains_key(parent))
}

/// Something that is no usual file.
fn special(dice: &mut Dice) -> Entry {
    match dice.below(8) {
        0 => Entry::Pipe,
        1 => Entry::Hole(6_000_000_000),
        2 => Entry::Hole(dice.below(1 << 21)),
        3 => Entry::Directory,
        4 => Entry::File(Vec::new()),
        _ => Entry::Link(dice.one(&LINKS).to_owned()),
    }
}

fn spoilt(octets: &[u8], path: &str, corpus: &Corpus, dice: &mut Dice) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(octets) else { return binary(octets, dice) };
    if path.ends_with(".json")
        && dice.chance(50)
        && let Ok(mut document) = serde_json::from_str(text)
    {
        restructure(&mut document, dice);
        return format!("{document:#}").into_bytes();
    }
    match dice.below(16) {
        0..7 => number(text, dice).into_bytes(),
        7..9 => word(text, dice).into_bytes(),
        9..12 => lines(text, path, corpus, dice).into_bytes(),
        12 => deep(text, dice).into_bytes(),
        13 => many(text, dice).into_bytes(),
        _ => binary(octets, dice),
    }
}

/// One of the places in a text that begin and continue like this.
fn place(text: &str, dice: &mut Dice, of: impl Fn(char) -> bool) -> Option<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| of(*c)) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end = at + c.len_utf8(),
            _ => found.push(at..at + c.len_utf8()),
        }
    }
    (!found.is_empty()).then(|| dice.one(&found))
}

fn replaced(text: &str, at: Range<usize>, with: &str) -> String {
    [&text[..at.start], with, &text[at.end..]].concat()
}

/// With another number in one place, or in all of the same.
fn number(text: &str, dice: &mut Dice) -> String {
    let Some(at) = place(text, dice, |c| c.is_ascii_digit()) else { return text.to_owned() };
    let new = match (dice.below(10), text[at.clone()].parse::<i64>()) {
        // Such as is likely to be taken.
        (0..5, Ok(old)) => {
            let near = [old / 10, old / 2, old - 1, old.saturating_add(1), old.saturating_mul(2)];
            dice.one(&near).to_string()
        }
        (5..8, _) => dice.one(&NUMBERS).to_owned(),
        _ => dice.magnitude(1, i64::MAX).to_string(),
    };
    match dice.chance(10) {
        true => text.replace(&text[at], &new),
        false => replaced(text, at, &new),
    }
}

/// With another word in one place, or in all of the same.
fn word(text: &str, dice: &mut Dice) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let Some(at) = place(text, dice, is_part) else { return text.to_owned() };
    let new = match dice.below(10) {
        0 => "x".repeat(dice.one(&[64, 256, 4_096, 70_000])),
        1..4 => match place(text, dice, is_part) {
            Some(other) => text[other].to_owned(),
            None => String::new(),
        },
        // As a string of TOML, JSON and C has it, or as it is.
        _ => {
            let word = dice.one(&WORDS);
            let quoted = json!(word).to_string();
            if dice.chance(60) { quoted[1..quoted.len() - 1].to_owned() } else { word.to_owned() }
        }
    };
    match dice.chance(20) {
        true => text.replace(&text[at], &new),
        false => replaced(text, at, &new),
    }
}

/// With lines left out, doubled, moved, or from elsewhere.
fn lines(text: &str, path: &str, corpus: &Corpus, dice: &mut Dice) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let at = dice.below(lines.len() as u64) as usize;
    let count = (dice.between(1, 8) as usize).min(lines.len() - at);
    let other;
    match dice.below(6) {
        0 => drop(lines.drain(at..at + count)),
        1 => {
            let copy = lines[at..at + count].to_vec();
            let to = dice.below(lines.len() as u64) as usize;
            lines.splice(to..to, copy);
        }
        2 => lines.truncate(at),
        3 => {
            let moved: Vec<_> = lines.drain(at..at + count).collect();
            let to = dice.below(lines.len() as u64 + 1) as usize;
            lines.splice(to..to, moved);
        }
        4 if path.ends_with(".c") || path.ends_with(".h") => lines.insert(at, dice.one(&C_LINES)),
        _ => {
            let end = path.rsplit('.').next().unwrap_or_default();
            let alike: Vec<_> = corpus.all().filter(|(name, _)| name.ends_with(end)).collect();
            if let Some(Entry::File(octets)) = (!alike.is_empty()).then(|| dice.one(&alike).1) {
                other = String::from_utf8_lossy(octets).into_owned();
                let theirs: Vec<_> = other.split('\n').collect();
                let from = dice.below(theirs.len() as u64) as usize;
                let end = (from + 8).min(theirs.len());
                lines.splice(at..at, theirs[from..end].iter().copied());
            }
        }
    }
    lines.join("\n")
}

/// With brackets in brackets in brackets.
fn deep(text: &str, dice: &mut Dice) -> String {
    let count = dice.one(&[100, 1_000, 20_000, 200_000]);
    let opening = dice.one(&["[", "{", "(", "{\"a\":", "a.", "[[", "!", "if (1) ", "*", "x = ["]);
    let Some(at) = place(text, dice, |c| !c.is_whitespace()) else { return text.to_owned() };
    let closing = match opening {
        "[" => "]",
        "{" => "}",
        "(" => ")",
        _ => "",
    };
    let closing = if dice.chance(50) { closing.repeat(count) } else { String::new() };
    let middle = if dice.chance(50) { &text[at.clone()] } else { "" };
    replaced(text, at, &[&opening.repeat(count), middle, &closing].concat())
}

/// With a part many times.
fn many(text: &str, dice: &mut Dice) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return String::new();
    }
    let at = dice.below(lines.len() as u64) as usize;
    let part: String = lines[at..].iter().take(dice.between(1, 12) as usize).copied().collect();
    let count = dice.one(&[10, 200, 3_000]).min(OCTETS_MAX / part.len().max(1));
    // Different names, where there is a number or one can be put behind a name.
    let name = |n: usize| part.replacen("name = \"", &format!("name = \"m{n}"), 1);
    let copies: String = (0..count).map(name).collect();
    [&lines[..at].concat(), &copies[..], &lines[at..].concat()].concat()
}

/// With other octets.
fn binary(octets: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut new = octets.to_vec();
    if new.is_empty() {
        return vec![dice.bits() as u8; dice.below(64) as usize];
    }
    let at = dice.below(new.len() as u64) as usize;
    match dice.below(6) {
        0 => new[at] ^= 1 << dice.below(8),
        1 => new.truncate(at),
        2 => {
            let count = (dice.below(64) as usize).min(new.len() - at);
            let part = new[at..at + count].to_vec();
            new.splice(at..at, part);
        }
        3 => drop(new.splice(at..at, (0..dice.below(32)).map(|n| n as u8).collect::<Vec<_>>())),
        // A number of four or eight octets.
        _ => {
            let number = dice.one(&[0, 1, u64::MAX, 1 << 31, 1 << 32, i64::MAX as u64, 1 << 40]);
            let number = if dice.chance(30) { dice.bits() >> dice.below(64) } else { number };
            let width = dice.one(&[1, 4, 8]);
            let end = (at + width).min(new.len());
            new[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
    }
    new
}

/// How many values a tree has.
fn size(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(table) => table.values().map(size).sum(),
        _ => 0,
    }
}

/// Puts something else at one place of a tree.
fn restructure(document: &mut Value, dice: &mut Dice) {
    let mut skip = dice.below(size(document));
    let mut at = document;
    while skip > 0 {
        skip -= 1;
        let inner: Vec<&mut Value> = match at {
            Value::Array(items) => items.iter_mut().collect(),
            Value::Object(table) => table.values_mut().collect(),
            _ => return,
        };
        let mut found = None;
        for value in inner {
            let size = size(value);
            if skip < size {
                found = Some(value);
                break;
            }
            skip -= size;
        }
        let Some(value) = found else { return };
        at = value;
    }
    match (dice.below(4), &mut *at) {
        (0, Value::Array(items)) if !items.is_empty() => {
            let item = dice.one(items);
            items.extend(std::iter::repeat_n(item, dice.one(&[1, 30, 2_000])));
        }
        (0, Value::Object(table)) if !table.is_empty() => {
            let keys: Vec<_> = table.keys().cloned().collect();
            table.remove(&dice.one(&keys));
        }
        (1, Value::Array(items)) => items.clear(),
        _ => *at = other(dice),
    }
}

fn other(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => Value::Null,
        1 => Value::Bool(dice.chance(50)),
        2 => Value::Array(Vec::new()),
        3 => Value::Object(Map::new()),
        4 | 5 => serde_json::from_str(dice.one(&NUMBERS)).unwrap_or(Value::Null),
        _ => json!(dice.one(&WORDS)),
    }
}
