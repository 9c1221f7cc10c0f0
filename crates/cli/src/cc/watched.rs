//! The preprocessor on files that others may have written: it ends, in time and in memory.

use crate::input;
use anyhow::{Context, bail};
use onbeat::clock::MonoTime;
use onbeat_model::time::Span;
use onbeat_run::process::limit;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The most of a C file, and of what the preprocessor makes of one.
const TEXT_OCTETS: u64 = 16 << 20;

/// The most that it has to say about it.
const SAID_OCTETS: u64 = 1 << 20;

/// The most memory that it may ask for, in octets.
const MEMORY: u64 = 2 << 30;

/// The most time that it may take.
const PATIENCE: Span = Span::from_s(30);

/// How often it is looked at, and how often it may be found waiting: for what reads nothing and
/// writes nothing, as a pipe without a writer.
const LOOK: Duration = Duration::from_millis(50);
const WAITING_MAX: u32 = 14;

/// Reads a C file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    input::read(path, TEXT_OCTETS)
}

/// Runs the preprocessor, with a text as its input if there is one, until it is done, says too
/// much, waits for ever or an interrupt comes.
pub(crate) fn output(
    command: &mut Command,
    text: Option<&str>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Output> {
    command.process_group(0);
    limit(command, MEMORY, PATIENCE.as_ns().unsigned_abs() / 1_000_000_000);
    let mut child = command.spawn().with_context(|| super::unit::name_of(command))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("no process")?;
    let (done, ended) = channel();
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr, problem) = std::thread::scope(|scope| {
        if let Some((input, text)) = input.zip(text) {
            scope.spawn(move || write(input, text));
        }
        let said = done.clone();
        let stdout = scope.spawn(move || all(output, TEXT_OCTETS, &done));
        let stderr = scope.spawn(move || all(errors, SAID_OCTETS, &said));
        let problem = watch(group, &ended, interrupted);
        if problem.is_some() {
            // It has ended if it cannot be killed.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let joined = |it: std::thread::ScopedJoinHandle<'_, Vec<u8>>| it.join().unwrap_or_default();
        (joined(stdout), joined(stderr), problem)
    });
    let status = child.wait()?;
    match problem {
        Some(problem) => bail!("the C compiler {problem}"),
        None => Ok(Output { status, stdout, stderr }),
    }
}

fn write(mut input: ChildStdin, text: &str) {
    // A preprocessor that stops reading says itself why.
    let _ = input.write_all(text.as_bytes());
}

/// All that comes, if it is not too much; says at the end whether it was.
fn all(from: Option<impl Read>, most: u64, done: &Sender<bool>) -> Vec<u8> {
    let mut octets = Vec::new();
    let read = from.map(|from| from.take(most + 1).read_to_end(&mut octets));
    let is_too_much = octets.len() as u64 > most;
    let _ = done.send(read.is_some_and(|read| read.is_err()) || is_too_much);
    octets
}

/// Waits until both of its outputs have ended; what is wrong if they should not be waited for.
fn watch(group: Pid, ended: &Receiver<bool>, interrupted: &AtomicBool) -> Option<&'static str> {
    let until = MonoTime::now() + PATIENCE;
    let (mut open, mut waiting) = (2, 0);
    while open > 0 {
        match ended.recv_timeout(LOOK) {
            Ok(true) => return Some("makes too much of it: more than 16 MiB"),
            Ok(false) => open -= 1,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        waiting = if waits(group) { waiting + 1 } else { 0 };
        match () {
            () if interrupted.load(Ordering::Relaxed) => return Some("was interrupted"),
            () if waiting > WAITING_MAX => {
                return Some("waits for a file that gives nothing, such as a pipe");
            }
            () if MonoTime::now() > until => return Some("does not end"),
            () => {}
        }
    }
    None
}

/// Whether all processes of a group sleep: none computes, waits for its processor or for a disk.
fn waits(group: Pid) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = input::read(&entry.path().join("stat"), input::LIST_OCTETS);
        let stat = String::from_utf8_lossy(&stat.unwrap_or_default()).into_owned();
        // The name before it may have anything in it.
        let mut words = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        let (state, of) = (words.next(), words.nth(1));
        if of.and_then(|of| of.parse().ok()) == Some(group.as_raw_nonzero().get()) {
            if state != Some("S") {
                return false;
            }
            found = true;
        }
    }
    found
}
