//! A case in `rtl/bench`: the scenario, and what comes of it.

use super::case::{BEGIN, Case, Kind, LINK, VARIANTS, WINDOW};
use super::model::END;
use super::outcome::{COUNTERS, Outcome, Passage, What};
use onbeat_model::dedicated::BestEffortPolicy;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// In femtoseconds.
const CYCLE: u64 = 8_000_000;
/// Of the registers that are counters, in the order of [`COUNTERS`].
const ADDRESSES: [u64; COUNTERS.len()] = [1, 5, 12, 13, 14, 15];
const POLICY: u64 = 0x002;
const COUNTS: u64 = 0x100;
/// Each host makes itself known, one after the other, when the switches have cleared their tables.
const KNOWN: u64 = 3_000;
const APART: u64 = 800;

/// What the switches do, compiled into a directory.
pub(super) fn run(case: &Case, directory: &Path) -> Outcome {
    let program = directory.join(VARIANTS[case.variant].1).join("bench");
    let mut command = Command::new(&program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("{}: {error}; `make -C rtl bench` makes it", program.display())
    });
    let text = scenario(case);
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("the bench reads");
    let output = child.wait_with_output().expect("the bench ends");
    assert!(output.status.success(), "the bench fails\n{text}");
    let answer = String::from_utf8(output.stdout).expect("text");
    let mut outcome = outcome(case, &answer);
    sends_as_drawn(case, &mut outcome);
    outcome
}

fn name(case: &Case, node: usize) -> String {
    match node.checked_sub(case.hosts()) {
        Some(switch) => format!("s{switch}"),
        None => format!("h{node}"),
    }
}

fn node(case: &Case, name: &str) -> usize {
    let number: usize = name[1..].parse().expect("a number");
    if name.starts_with('s') { case.hosts() + number } else { number }
}

fn address(host: usize) -> u64 {
    0x0200_0000_0000 + host as u64
}

fn scenario(case: &Case) -> String {
    let mut lines = String::from("seed 1\nidle_limit 64\nlog\n");
    let policy = match case.policy {
        BestEffortPolicy::Retry => 0,
        BestEffortPolicy::Drop => 1,
        BestEffortPolicy::Finish => 2,
    };
    let mut put = |line: std::fmt::Arguments<'_>| {
        writeln!(lines, "{line}").expect("a string takes all");
    };
    (0..case.hosts()).for_each(|host| put(format_args!("injector h{host}")));
    for at in 0..case.switches {
        put(format_args!("switch s{at}"));
        put(format_args!("write s{at} {POLICY} {policy}"));
        for port in case.links_of(case.hosts() + at).enumerate().map(|(port, _)| port as u64) {
            for (name, address) in COUNTERS.iter().zip(ADDRESSES) {
                let address = COUNTS + 32 * port + address;
                put(format_args!("read s{at} {address} {name}:{port}"));
            }
        }
    }
    for (link, ends) in case.links.iter().enumerate() {
        let [a, b] = ends.map(|node| format!("{} {}", name(case, node), case.port(link, node)));
        put(format_args!("link {a} {b} {}", LINK * CYCLE));
    }
    for (host, sent) in case.sent.iter().enumerate() {
        let source = address(host);
        let stream = format_args!("stream h{host} known source={source}");
        // An injector decides in the cycle before.
        put(format_args!("{stream} length=64 count=1 start={}", KNOWN + APART * host as u64));
        for (number, it) in sent.iter().enumerate() {
            let to = match it.kind {
                Kind::Station(_) => " type=rt".into(),
                Kind::BestEffort(_, Some(to)) => format!(" destination={}", address(to)),
                Kind::BestEffort(_, None) => String::new(),
            };
            let (length, start) = (it.octets(), it.at - 1);
            let stream = format_args!("stream h{host} {host}.{number} source={source}");
            put(format_args!("{stream} length={length} count=1 start={start}{to}"));
        }
    }
    put(format_args!("stop_fs {}", (BEGIN + 2 * WINDOW) * CYCLE));
    put(format_args!("drain_fs {}", (END - BEGIN - 2 * WINDOW) * CYCLE));
    lines
}

/// Lines of its JSON, of which each has one wire or one device.
fn outcome(case: &Case, answer: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in answer.lines().map(str::trim) {
        let quoted: Vec<&str> = line.split('"').collect();
        if let Some(name) = line.strip_prefix("{\"name\": \"") {
            let from = node(case, name.split('"').next().expect("a name"));
            count(&mut outcome, from, &quoted);
        } else if line.contains("\"frames\": [") {
            let from = node(case, quoted[3]);
            let port = quoted[6].trim_matches([':', ',', ' ']).parse().expect("a port");
            let (_, frames) = line.split_once("\"frames\": [").expect("frames");
            let passages: Vec<Passage> = frames.split("], ").filter_map(passage).collect();
            if !passages.is_empty() {
                outcome.wires.insert((from, port), passages);
            }
        }
    }
    outcome
}

fn count(outcome: &mut Outcome, from: usize, quoted: &[&str]) {
    for pair in quoted.windows(2) {
        let Some((name, port)) = pair[0].split_once(':') else { continue };
        let Some(index) = COUNTERS.iter().position(|it| *it == name) else { continue };
        let digits: String = pair[1].chars().filter(char::is_ascii_digit).collect();
        let value = digits.parse().expect("a number");
        if value != 0 {
            let place = (from, port.parse().expect("a port"));
            outcome.counts.entry(place).or_default()[index] = value;
        }
    }
}

/// `[begin, octets, cut, "name"`, with more brackets around it. Not of what makes hosts known.
fn passage(text: &str) -> Option<Passage> {
    let text = text.trim_matches(['[', ']', '}', ',', ' ']);
    let fields: Vec<&str> = text.split(", ").collect();
    let [begin, octets, cut, name] = fields[..] else { return None };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let at = number(begin) / CYCLE;
    if at < BEGIN {
        return None;
    }
    let what = match name.trim_matches('"').split_once('.') {
        Some((host, frame)) => What::Whole(number(host) as usize, number(frame) as usize),
        None => {
            assert_eq!(cut, "1", "what is no frame was cut");
            What::Cut(number(octets))
        }
    };
    Some(Passage { at, what })
}

/// The wires of hosts carry what the case says, and are no part of what is compared.
fn sends_as_drawn(case: &Case, outcome: &mut Outcome) {
    for (host, sent) in case.sent.iter().enumerate() {
        let passage = |(number, it): (usize, &super::case::Sent)| Passage {
            at: it.at,
            what: What::Whole(host, number),
        };
        let expected: Vec<Passage> = sent.iter().enumerate().map(passage).collect();
        let found = outcome.wires.remove(&(host, 0)).unwrap_or_default();
        assert_eq!(found, expected, "host {host}, seed {}", case.seed);
    }
}
