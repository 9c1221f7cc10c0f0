//! Random models whose channels and messages are also computed another way: ports are listed one by
//! one, and tags are simulated.

use onbeat_description::lf::{self, Outside};
use onbeat_model::federation::TagDelay;
use onbeat_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const MS: i64 = 1_000_000;
/// All periods and delays divide it, or are multiples of what does.
const HYPER_NS: i64 = 120 * MS;
/// How many of them are simulated; the last one is steady.
const HYPERS: i64 = 6;

/// An instance of the federated reactor.
struct Decl {
    /// Period and offset of its timer; none: it hands on what it receives.
    timer: Option<(i64, i64)>,
    has_output: bool,
    width: usize,
    /// None: no bank.
    bank: Option<usize>,
    nested: usize,
}

impl Decl {
    fn members(&self) -> usize {
        self.bank.unwrap_or(1)
    }
    fn name(&self, at: usize, member: usize) -> String {
        if self.bank.is_some() { format!("f{at}_{member}") } else { format!("f{at}") }
    }
    /// Member and channel of each port, in the order of the language.
    fn ports(&self, interleaved: bool) -> Vec<(usize, usize)> {
        let mut ports = Vec::new();
        if interleaved {
            for channel in 0..self.width {
                for member in 0..self.members() {
                    ports.push((member, channel));
                }
            }
        } else {
            for member in 0..self.members() {
                for channel in 0..self.width {
                    ports.push((member, channel));
                }
            }
        }
        ports
    }
}

/// What a connection adds to tags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Same,
    Microstep,
    Ns(i64),
}

/// Two connected ports: decl, member and channel of each.
type Wire = ((usize, usize, usize), (usize, usize, usize), After);

struct Drawn {
    text: String,
    decls: Vec<Decl>,
    wires: Vec<Wire>,
}

fn draw(seed: u64) -> Drawn {
    let mut random = Random(seed);
    let mut decls: Vec<Decl> = Vec::new();
    for at in 0..2 + random.index(5) {
        let timer = (at == 0 || random.one_in(3))
            .then(|| (random.one_of(&[10, 20, 30, 40, 60]) * MS, random.one_of(&[0, 5]) * MS));
        let bank = if random.one_in(2) { Some(1 + random.index(3)) } else { None };
        let has_output = timer.is_some() || !random.one_in(3);
        let width = 1 + random.index(3);
        decls.push(Decl { timer, has_output, width, bank, nested: random.index(3) });
    }
    let mut text = "target C\n".to_owned();
    for (at, decl) in decls.iter().enumerate() {
        classes(&mut text, at, decl);
    }
    let _ = writeln!(text, "federated reactor(d: time = 3 ms) {{");
    for (at, decl) in decls.iter().enumerate() {
        let bank = decl.bank.map_or_else(String::new, |bank| format!("[{bank}]"));
        let class = format!("C{at}_{}", decl.nested);
        let width = decl.width;
        let _ = writeln!(text, "  f{at} = new{bank} {class}(w = {width})");
    }
    let mut wires = Vec::new();
    for at in 0..decls.len() {
        if decls[at].timer.is_none() {
            connect(&mut random, &decls, at, &mut text, &mut wires);
        }
    }
    text.push_str("}\n");
    Drawn { text, decls, wires }
}

/// The class of an instance, within as many others that only forward.
fn classes(text: &mut String, at: usize, decl: &Decl) {
    let input = if decl.timer.is_none() { "input[w] in: int " } else { "" };
    let output = if decl.has_output { "output[w] out: int " } else { "" };
    let to = if decl.has_output { "-> out " } else { "" };
    let (timer, trigger) = match decl.timer {
        Some((period, offset)) => (format!("timer t({offset} ns, {period} ns) "), "t"),
        None => (String::new(), "in"),
    };
    let _ = writeln!(
        text,
        "reactor C{at}_0(w: int = 1) {{ {input}{output}{timer}reaction({trigger}) {to}{{= =}} }}"
    );
    for level in 1..=decl.nested {
        let inner = level - 1;
        let up = if decl.has_output { "x.out -> out " } else { "" };
        let down = if decl.timer.is_none() { "in -> x.in " } else { "" };
        let _ = writeln!(
            text,
            "reactor C{at}_{level}(w: int = 1) {{ {input}{output}x = new C{at}_{inner}(w = w) \
             {up}{down}}}"
        );
    }
}

/// Connects all inputs of an instance to outputs of earlier ones.
fn connect(
    random: &mut Random,
    decls: &[Decl],
    at: usize,
    text: &mut String,
    wires: &mut Vec<Wire>,
) {
    let sources: Vec<usize> = (0..at).filter(|from| decls[*from].has_output).collect();
    let mut refs = Vec::new();
    let mut left = Vec::new();
    for _ in 0..1 + random.index(2) {
        let from = random.one_of(&sources);
        let interleaved = random.one_in(3);
        let port = format!("f{from}.out");
        refs.push(if interleaved { format!("interleaved({port})") } else { port });
        left.extend(decls[from].ports(interleaved).into_iter().map(|(m, c)| (from, m, c)));
    }
    let interleaved = random.one_in(3);
    let right = decls[at].ports(interleaved);
    let broadcast = random.one_in(2);
    let (after, words) = random.one_of(&[
        (After::Same, ""),
        (After::Microstep, " after 0"),
        (After::Ns(3 * MS), " after d"),
        (After::Ns(10 * MS), " after 10 msec"),
    ]);
    let to = if interleaved { format!("interleaved(f{at}.in)") } else { format!("f{at}.in") };
    let refs = refs.join(", ");
    let refs = if broadcast { format!("({refs})+") } else { refs };
    let _ = writeln!(text, "  {refs} -> {to}{words}");
    for (number, (member, channel)) in right.into_iter().enumerate() {
        let from = if broadcast { number % left.len() } else { number };
        if let Some(from) = left.get(from) {
            wires.push((*from, (at, member, channel), after));
        }
    }
}

type Tags = BTreeSet<(i64, u32)>;

/// The tags at which each member of each instance executes, up to the end of what is simulated.
fn simulate(drawn: &Drawn) -> BTreeMap<(usize, usize), Tags> {
    let end = HYPER_NS * HYPERS;
    let mut tags: BTreeMap<(usize, usize), Tags> = BTreeMap::new();
    // Inputs come from earlier instances only.
    for (at, decl) in drawn.decls.iter().enumerate() {
        for member in 0..decl.members() {
            let mut own = Tags::new();
            if let Some((period, offset)) = decl.timer {
                own.extend((0..).map(|n| (offset + n * period, 0)).take_while(|tag| tag.0 < end));
            }
            for ((from, from_member, _), (to, to_member, _), after) in &drawn.wires {
                if (*to, *to_member) == (at, member) {
                    own.extend(tags[&(*from, *from_member)].iter().map(|tag| match after {
                        After::Same => *tag,
                        After::Microstep => (tag.0, tag.1 + 1),
                        After::Ns(ns) => (tag.0 + ns, 0),
                    }));
                }
            }
            own.retain(|tag| tag.0 < end);
            tags.insert((at, member), own);
        }
    }
    tags
}

/// Whether messages at these tags keep a token bucket.
fn keeps(tags: &Tags, interval: i64, burst: i64) -> bool {
    // Times interval, so that all is whole: what is left of the bucket.
    let mut level = burst * interval;
    let mut last = 0;
    for (at, _) in tags {
        level = (level + at - last).min(burst * interval) - interval;
        last = *at;
        if level < 0 {
            return false;
        }
    }
    true
}

#[test]
fn random_models_have_the_channels_and_rates_that_listing_and_simulating_gives() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let drawn = draw(seed);
        let text = &drawn.text;
        let mut outside =
            Outside { read: &mut |_| Err("none".to_owned()), sizes: &mut |_| Vec::new() };
        let loaded = lf::load("model.lf", text, None, &mut outside);
        let federation = loaded.federation.as_ref();
        let federation =
            federation.unwrap_or_else(|| panic!("seed {seed}: {:?}\n{text}", loaded.diagnostics));
        let described = lf::describe(&loaded, &mut |_| Err("none".to_owned()));
        let described = described.unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let name = |(at, member, channel): (usize, usize, usize), port: &str| {
            format!("{}.{port}[{channel}]", drawn.decls[at].name(at, member))
        };
        let expected: BTreeMap<(String, String), (After, (usize, usize))> = drawn
            .wires
            .iter()
            .map(|(f, t, after)| ((name(*f, "out"), name(*t, "in")), (*after, (f.0, f.1))))
            .collect();
        let channels = &described.document.channels;
        let found: BTreeSet<_> = channels.iter().map(|c| (c.from.clone(), c.to.clone())).collect();
        assert_eq!(found, expected.keys().cloned().collect(), "seed {seed}\n{text}");
        assert_eq!(channels.len(), federation.connections.len(), "seed {seed}");
        let tags = simulate(&drawn);
        for (channel, connection) in channels.iter().zip(&federation.connections) {
            let (after, writer) = expected[&(channel.from.clone(), channel.to.clone())];
            let delay = match after {
                After::Same => TagDelay::None,
                After::Microstep => TagDelay::Microstep,
                After::Ns(ns) => TagDelay::Time(onbeat_model::time::Span::from_ns(ns)),
            };
            assert_eq!(connection.after, delay, "seed {seed}\n{text}");
            let tags = &tags[&writer];
            let from = HYPER_NS * (HYPERS - 1);
            let steady = tags.iter().filter(|tag| tag.0 >= from).count() as i64;
            let (interval, burst) = (channel.interval_ns, i64::from(channel.burst_messages));
            assert!(steady * interval <= HYPER_NS, "seed {seed}: {channel:?}, {steady}\n{text}");
            assert!(keeps(tags, interval, burst), "seed {seed}: {channel:?}\n{text}");
            // With one progression the rate is exact.
            if burst == 1 && steady > 0 {
                assert_eq!(steady * interval, HYPER_NS, "seed {seed}: {channel:?}\n{text}");
            }
            seen.insert(("burst", burst > 1));
            seen.insert(("delayed", connection.after != TagDelay::None));
        }
        for word in ["interleaved", ")+", "after d", "after 0", "new[", "x.out", "in -> x.in"] {
            if text.contains(word) {
                seen.insert((word, true));
            }
        }
    }
    assert_eq!(seen.len(), 11, "{seen:?}");
}
