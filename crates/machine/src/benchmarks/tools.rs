//! The tools that the paper uses, as they are: cyclictest beside our own loop, stress-ng as load.

use super::{Clock, CpuPlacement};
use onbeat_model::time::Span;
use onbeat_run::environment;
use onbeat_run::machine::CpuList;
use onbeat_run::process::{Kept, Reaper, Running};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

/// cyclictest's histogram has at most so many bins; each is a nanosecond. It does not say more of
/// what is beyond than how often it happened and the largest.
const HISTOGRAM: u32 = 1_000_000;
/// How often it is looked whether a tool has ended.
const LOOK: Span = Span::from_ms(20);

/// Which of the tools cannot be executed, if one cannot.
pub fn missing_tool(name: &str) -> Option<io::Error> {
    let mut command = environment::program(name);
    let quiet = command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null());
    quiet.stderr(Stdio::null()).status().err()
}

/// What cyclictest is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CyclicTest {
    /// [`Clock::Local`] or [`Clock::Global`].
    pub clock: Clock,
    /// Where its thread runs.
    pub place: CpuPlacement,
    /// From one wake-up to the next.
    pub period: Span,
    /// How many wake-ups.
    pub count: usize,
}

/// Runs cyclictest to its end, or until `stop` is set, with one thread and a histogram in `file`
/// as JSON. It tunes nothing: what the machine is like is the same for both.
///
/// # Errors
/// When it cannot be started, does not end well (its last words), or leaves no file.
pub fn cyclictest(
    asked: &CyclicTest,
    file: &Path,
    mut reaper: Option<&mut Reaper>,
    stop: &AtomicBool,
) -> io::Result<String> {
    let mut command = environment::program("cyclictest");
    command
        .args(["--default-system", "--mlockall", "--quiet", "--nsecs", "--threads=1"])
        .arg(format!("--affinity={}", asked.place.cpu))
        .arg(format!("--clock={}", i32::from(asked.clock != Clock::Local)))
        .arg(format!("--interval={}", asked.period.as_ns() / 1_000))
        .arg(format!("--loops={}", asked.count))
        .arg(format!("--histogram={HISTOGRAM}"))
        .arg(format!("--json={}", file.display()));
    match asked.place.priority {
        0 => command.arg("--policy=other"),
        priority => command.args(["--policy=fifo", &format!("--priority={priority}")]),
    };
    let words = file.with_extension("words");
    // Its histogram goes to standard output as well, with a line for every bin.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&words)?);
    let mut child = command.process_group(0).spawn()?;
    let number = child.id();
    if let Some(reaper) = &mut reaper {
        reaper.guard(Kept::Group(number))?;
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            child.kill()?;
            break child.wait()?;
        }
        onbeat::clock::pause(LOOK);
    };
    if let Some(reaper) = reaper {
        reaper.release(Kept::Group(number))?;
    }
    let said = std::fs::read_to_string(&words).unwrap_or_default();
    let _ = std::fs::remove_file(&words);
    if !status.success() {
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("").trim();
        return Err(io::Error::other(format!("cyclictest: {status}: {last}")));
    }
    let text = std::fs::read_to_string(file)?;
    let _ = std::fs::remove_file(file);
    Ok(text)
}

/// The paper's load (section 4, test 5), which runs until this goes.
#[derive(Debug)]
pub struct Load {
    running: Running,
}

/// What stress-ng is called with: 3 workers that compute 25 % of the time, one that commits the
/// caches of filesystems to disk, one that writes, reads and removes files, one timer of 1 MHz. It
/// ends by itself after `seconds`, unless it is ended before.
pub fn stress_ng(cpus: &CpuList, seconds: u64, directory: &Path) -> Vec<String> {
    let words = "stress-ng --quiet --cpu 3 --cpu-load 25 --io 1 --hdd 1 --hdd-bytes 64m --timer 1 \
                 --timer-freq 1000000";
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    words.extend(["--taskset".to_owned(), cpus.to_string()]);
    words.extend(["--timeout".to_owned(), format!("{seconds}s")]);
    words.extend(["--temp-path".to_owned(), directory.display().to_string()]);
    words
}

impl Load {
    /// Takes over a stress-ng that was started.
    pub fn of(running: Running) -> Self {
        Self { running }
    }

    /// Whether it still runs; a load that has ended by itself makes figures wrong.
    pub fn is_there(&mut self) -> bool {
        self.running.ended().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_the_papers() {
        let words = stress_ng(&"0,2".parse().unwrap(), 9, Path::new("/tmp"));
        assert_eq!(
            words.join(" "),
            "stress-ng --quiet --cpu 3 --cpu-load 25 --io 1 --hdd 1 --hdd-bytes 64m --timer 1 \
             --timer-freq 1000000 --taskset 0,2 --timeout 9s --temp-path /tmp"
        );
    }

    #[test]
    fn a_tool_that_is_not_there_is_missing() {
        assert!(missing_tool("onbeat-no-such-tool").is_some());
        assert!(missing_tool("true").is_none());
    }
}
