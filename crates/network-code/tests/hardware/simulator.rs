//! The simulated station, a process: `rtl/bench/lockstep.cpp` says what goes in and comes out.

use super::case::{Action, Case};
use onbeat_network_code::hardware::TRAPS;
use onbeat_testkit::{Need, not_run, root};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What happened to the station in a cycle, or what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Fetch,
    Issue {
        address: u32,
        trap: usize,
        outcome: u32,
    },
    Branch(bool),
    Round,
    Strobe,
    /// The action of the case that completes a buffer.
    Commit(usize),
    Flags(u16),
    Link(bool),
    Read {
        buffer: u8,
        index: usize,
        value: u32,
    },
    /// The action that is not possible.
    Refused(usize),
    Octet {
        octet: u8,
        error: bool,
    },
    Idle,
    /// Whether it was the last word of its frame.
    Stored(bool),
    Counter {
        index: u32,
        value: u32,
    },
}

/// What a simulation has shown, in its order; each with its cycle.
pub(super) type Run = Vec<(u64, Event)>;

/// Makes what `rtl/Makefile` calls so; none where its tools are missing.
pub(super) fn build(target: &str) -> Option<PathBuf> {
    if !root().join("target/hardware/venv").is_dir() {
        not_run(Need::Tools, "the tools of the hardware are missing: scripts/needs hardware");
        return None;
    }
    let mut make = Command::new("make");
    let made = make.arg("-s").arg("-C").arg(root().join("rtl")).arg(target);
    let output = made.stdin(Stdio::null()).output().expect("make is started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make -C rtl {target}: {said}");
    Some(root().join("target/hardware").join(target).join(target))
}

pub(super) struct Simulator {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Simulator {
    pub(super) fn start(path: &Path) -> Self {
        let mut command = Command::new(path);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// What the station does. It is stopped after the case's cycles.
    pub(super) fn run(&mut self, case: &Case) -> Run {
        let octets: Vec<u8> = numbers(case).into_iter().flat_map(u32::to_ne_bytes).collect();
        self.input.write_all(&octets).expect("the simulator reads");
        self.input.flush().expect("the simulator reads");
        let mut run = Run::new();
        loop {
            let mut row = [0; 16];
            self.output.read_exact(&mut row).expect("the simulator answers");
            let [kind, cycle, a, b] = std::array::from_fn(|index| {
                u32::from_ne_bytes(row[4 * index..][..4].try_into().expect("four octets"))
            });
            match event(kind, a, b) {
                Some(event) => run.push((u64::from(cycle), event)),
                None => return run,
            }
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn event(kind: u32, a: u32, b: u32) -> Option<Event> {
    Some(match kind {
        0 => return None,
        1 => Event::Fetch,
        2 => {
            let trap = (b & 0xf) as usize;
            assert!(trap < TRAPS.len(), "trap {trap}");
            Event::Issue { address: a, trap, outcome: b >> 4 }
        }
        3 => Event::Branch(a == 1),
        4 => Event::Round,
        5 => Event::Strobe,
        6 => Event::Commit(b as usize),
        7 => Event::Flags(a as u16),
        8 => Event::Link(a == 1),
        9 => Event::Read { buffer: (a >> 16) as u8, index: (a & 0xffff) as usize, value: b },
        10 => Event::Refused(b as usize),
        11 => Event::Octet { octet: a as u8, error: a >> 8 == 1 },
        12 => Event::Idle,
        13 => Event::Stored(a == 1),
        14 => Event::Counter { index: a, value: b },
        _ => panic!("the simulator says {kind}"),
    })
}

/// A case as the simulator reads it.
fn numbers(case: &Case) -> Vec<u32> {
    let source = &case.source.0;
    let high = u16::from_be_bytes([source[0], source[1]]);
    let low = u32::from_be_bytes([source[2], source[3], source[4], source[5]]);
    let program = &case.program;
    let mut numbers = vec![case.cycles as u32, u32::from(program.medium.tagged)];
    numbers.extend([u32::from(high), low, program.words.len() as u32]);
    for word in &program.words {
        numbers.extend([(word >> 32) as u32, *word as u32]);
    }
    let (rows, words) = case.buffer_rows();
    numbers.push(rows.len() as u32);
    numbers.extend(rows);
    numbers.push(words);
    let (rows, _) = case.message_rows();
    numbers.push(rows.len() as u32);
    numbers.extend(rows.into_iter().flatten());
    numbers.push(case.bursts.len() as u32);
    for burst in &case.bursts {
        numbers.extend([burst.at as u32, burst.octets.len() as u32]);
        let error = |index| u32::from(burst.error == Some(index)) << 8;
        let octets = burst.octets.iter().enumerate();
        numbers.extend(octets.map(|(index, octet)| u32::from(*octet) | error(index)));
    }
    numbers.push(case.best_effort.len() as u32);
    for (at, octets) in &case.best_effort {
        numbers.extend([*at as u32, octets.len() as u32]);
        numbers.extend(octets.iter().map(|octet| u32::from(*octet)));
    }
    numbers.push(case.actions.len() as u32);
    for (at, action) in &case.actions {
        let (kind, what, given) = match action {
            Action::Write(buffer, words) => (0, u32::from(buffer.0), words.clone()),
            Action::Flags(flags) => (1, u32::from(*flags), Vec::new()),
            Action::Link(is_up) => (2, u32::from(*is_up), Vec::new()),
            Action::Read(buffer, indices) => (3, u32::from(buffer.0), indices.clone()),
        };
        numbers.extend([*at as u32, kind, what, given.len() as u32]);
        numbers.extend(given);
    }
    numbers
}
