//! What the wires carried, and what the switches counted.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A frame on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The cycle of its first octet.
    pub(super) at: u64,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// By its host, and its number among what that sends.
    Whole(usize, usize),
    /// Octets of one that was aborted, with its preamble and the one that aborts it.
    Cut(u64),
}

/// What is counted at a port, in this order.
pub(super) const COUNTERS: [&str; 6] =
    ["rt_out", "collisions", "be_full", "aborts", "retries", "lost_to_abort"];

/// By node and port. A wire that carried nothing, and a port that counted nothing, has no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) wires: BTreeMap<(usize, usize), Vec<Passage>>,
    pub(super) counts: BTreeMap<(usize, usize), [u64; COUNTERS.len()]>,
}

impl Outcome {
    /// As lines of text: a case, its wires, its counts. Cycles are those since the one before.
    pub(super) fn write(&self, seed: u64, lines: &mut String) {
        let put = |lines: &mut String, text: std::fmt::Arguments<'_>| {
            lines.write_fmt(text).expect("a string takes all");
        };
        put(lines, format_args!("case {seed}\n"));
        for ((node, port), passages) in &self.wires {
            put(lines, format_args!("wire {node} {port}"));
            let mut before = 0;
            for Passage { at, what } in passages {
                let since = at - before;
                before = *at;
                match what {
                    What::Whole(host, number) => {
                        put(lines, format_args!(" {since}:{host}.{number}"));
                    }
                    What::Cut(octets) => put(lines, format_args!(" {since}-{octets}")),
                }
            }
            lines.push('\n');
        }
        for ((node, port), counts) in &self.counts {
            put(lines, format_args!("count {node} {port}"));
            counts.iter().for_each(|count| put(lines, format_args!(" {count}")));
            lines.push('\n');
        }
    }

    /// The cases of a text, each with its seed.
    pub(super) fn read(text: &str) -> Vec<(u64, Self)> {
        let mut cases: Vec<(u64, Self)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let kind = words.next().expect("a word");
            let mut number = || words.next().map(|it| it.parse().expect("a number"));
            let first: u64 = number().expect("a number");
            if kind == "case" {
                cases.push((first, Self::default()));
                continue;
            }
            let place = (first as usize, number().expect("a port") as usize);
            let (_, outcome) = cases.last_mut().expect("a case");
            if kind == "count" {
                let counts = std::array::from_fn(|_| number().expect("a count"));
                outcome.counts.insert(place, counts);
            } else {
                let mut at = 0;
                let passage = |word| passage(word, &mut at);
                outcome.wires.insert(place, words.map(passage).collect());
            }
        }
        cases
    }

    /// What of it is comparable: what began before a cycle.
    pub(super) fn before(&self, end: u64, keeps: impl Fn(&Passage) -> bool) -> Self {
        let mut wires = self.wires.clone();
        wires.values_mut().for_each(|all| all.retain(|it| it.at < end && keeps(it)));
        wires.retain(|_, all| !all.is_empty());
        Self { wires, counts: BTreeMap::new() }
    }

    /// The first wire on which two differ, and what follows there.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let places = self.wires.keys().chain(other.wires.keys());
        let none = Vec::new();
        let mut found: Vec<(u64, String)> = places
            .filter_map(|place| {
                let [own, others] = [self, other].map(|it| it.wires.get(place).unwrap_or(&none));
                let at =
                    (0..own.len().max(others.len())).find(|at| own.get(*at) != others.get(*at))?;
                let few = |all: &[Passage]| {
                    format!("{:?}", all.iter().skip(at).take(3).collect::<Vec<_>>())
                };
                let first =
                    [own, others].iter().filter_map(|all| all.get(at)).map(|it| it.at).min();
                let (own, others) = (few(own), few(others));
                Some((
                    first?,
                    format!("wire {place:?}, frame {at}: hardware {own}, model {others}"),
                ))
            })
            .collect();
        found.sort();
        let counts = (self.counts != other.counts)
            .then(|| format!("counted: hardware {:?}, model {:?}", self.counts, other.counts));
        found.into_iter().map(|(_, text)| text).next().or(counts)
    }
}

fn passage(word: &str, at: &mut u64) -> Passage {
    let end = word.find([':', '-']).expect("a passage");
    *at += word[..end].parse::<u64>().expect("a cycle");
    let rest = &word[end + 1..];
    let what = match rest.split_once('.') {
        Some((host, number)) => {
            What::Whole(host.parse().expect("a host"), number.parse().expect("a number"))
        }
        None => What::Cut(rest.parse().expect("octets")),
    };
    Passage { at: *at, what }
}
