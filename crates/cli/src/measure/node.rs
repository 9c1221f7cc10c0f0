//! Test 4: two nodes, each a process of its own.

use super::arguments::NodeArguments;
use super::benchmarks::Benchmarks;
use crate::build;
use crate::exit::Exit;
use crate::input;
use anyhow::{Context, bail};
use onbeat::clock::MonoTime;
use onbeat_machine::benchmarks::{
    Clock, CpuPlacement, NodeClock, NodeSample, NodeTask, decode, encode, first_instant,
    lock_memory, wake_node,
};
use onbeat_model::time::{ClockError, Span};
use onbeat_run::process::{Kept, Running, Start};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// From when the nodes are started to the first instant.
const LEAD: Span = Span::from_ms(1_500);
/// How long after the last instant a node may take to write its samples.
const PATIENCE: Span = Span::from_s(20);
/// How often it is looked whether a node has ended.
const LOOK: Span = Span::from_ms(20);

/// What both nodes saw at the instants that both reached, in nanoseconds.
pub(super) struct Pair {
    /// How late each was by its own clock.
    pub(super) first: Vec<i64>,
    pub(super) second: Vec<i64>,
    /// How much later the second acted, in true time.
    pub(super) offset: Vec<i64>,
}

/// Is one node.
pub(super) fn be(arguments: &NodeArguments) -> anyhow::Result<Exit> {
    let error = ClockError {
        offset: Span::from_ns(arguments.offset_ns),
        drift_ppb: arguments.drift_ppb,
        ..ClockError::default()
    };
    let clock = match arguments.emulated {
        true => NodeClock::Emulated(error),
        false => NodeClock::Machine(Clock::Global),
    };
    let node = NodeTask {
        clock,
        start_ns: arguments.start_ns,
        period: Span::from_ns(arguments.period_ns),
        count: arguments.count,
        place: CpuPlacement { cpu: arguments.cpu, priority: arguments.priority },
        gpio: arguments.gpio.clone(),
    };
    // Whether that is allowed has been noted by who started us.
    let _ = lock_memory();
    let samples = wake_node(&node, &AtomicBool::new(false))?;
    let file = &arguments.file;
    std::fs::write(file, encode(&samples)).with_context(|| file.display().to_string())?;
    Ok(Exit::Fine)
}

/// Runs both nodes; `None` if it was interrupted.
pub(super) fn pair(benchmarks: &mut Benchmarks<'_>) -> anyhow::Result<Option<Pair>> {
    let emulated = benchmarks.settings.node_error.is_some();
    let base = if emulated { Clock::Local } else { Clock::Global };
    let earliest_ns = base.now_ns() + LEAD.as_ns();
    let start_ns = match emulated {
        true => earliest_ns,
        false => first_instant(earliest_ns, benchmarks.settings.period),
    };
    let second = benchmarks.others.last().copied();
    if second.is_none() {
        benchmarks.collected.note("one processor: both nodes of test 4 share it");
    }
    let files = ["first", "second"].map(|name| benchmarks.directory.path.join(name));
    let mut nodes = Vec::new();
    for (cpu, file) in [Some(benchmarks.place.cpu), second].into_iter().zip(&files) {
        let cpu = cpu.unwrap_or(benchmarks.place.cpu);
        let words = words(benchmarks, start_ns, cpu, file, !nodes.is_empty())?;
        let program = build::alone("a node of test 4".into(), words);
        let start = Start { reaper: Some(benchmarks.reaper), ..Start::default() };
        let running = Running::start(&program, Path::new("."), start)?;
        nodes.push(running);
    }
    let length = benchmarks.settings.period * benchmarks.settings.wakes as i64;
    let until = MonoTime::now() + LEAD + length + PATIENCE;
    let groups: Vec<u32> = nodes.iter().map(Running::group).collect();
    for node in &mut nodes {
        let mut before = MonoTime::now();
        let status = loop {
            if let Some(status) = node.ended_within(LOOK) {
                break status;
            }
            if benchmarks.is_stopped() {
                return Ok(None);
            }
            let now = MonoTime::now();
            if now > until {
                bail!("a node of test 4 does not end");
            }
            benchmarks.bar.advance(now - before);
            before = now;
        };
        if !status.success() {
            bail!("a node of test 4 failed ({status}); see its output above");
        }
    }
    for group in groups {
        benchmarks.reaper.release(Kept::Group(group))?;
    }
    let [first, second] = files.map(samples);
    Ok(Some(put_together(&first?, &second?)))
}

/// The command of a node.
fn words(
    benchmarks: &Benchmarks<'_>,
    start_ns: i64,
    cpu: u16,
    file: &Path,
    is_second: bool,
) -> anyhow::Result<Vec<String>> {
    let own = std::env::current_exe()?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is no UTF-8");
    let mut words = vec![text(&own)?, "measure".into(), "node".into()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("file", text(file)?);
    option("start-ns", start_ns.to_string());
    option("period-ns", benchmarks.settings.period.as_ns().to_string());
    option("count", benchmarks.settings.wakes.to_string());
    option("cpu", cpu.to_string());
    option("priority", benchmarks.place.priority.to_string());
    if let Some(error) = benchmarks.settings.node_error.filter(|_| is_second) {
        option("offset-ns", error.offset_ns.to_string());
        option("drift-ppb", error.drift_ppb.to_string());
    }
    if let Some(line) = benchmarks.settings.gpio.as_ref().filter(|_| !is_second) {
        option("gpio", line.to_string());
    }
    if benchmarks.settings.node_error.is_some() {
        words.push("--emulated".into());
    }
    Ok(words)
}

fn samples(file: PathBuf) -> anyhow::Result<Vec<NodeSample>> {
    let octets = input::read(&file, input::VALUES_OCTETS).map_err(anyhow::Error::msg)?;
    decode(&octets).context("a node of test 4 wrote something else than samples")
}

fn put_together(first: &[NodeSample], second: &[NodeSample]) -> Pair {
    let late = |side: &[NodeSample], count: usize| {
        side.iter().take(count).map(|sample| sample.late_ns).collect::<Vec<_>>()
    };
    let count = first.len().min(second.len());
    let both = first.iter().zip(second);
    Pair {
        first: late(first, count),
        second: late(second, count),
        offset: both.map(|(first, second)| second.at_ns - first.at_ns).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_positive_where_the_second_acts_later() {
        let sample = |at_ns, late_ns| NodeSample { at_ns, late_ns, woken: true };
        let first = [sample(100, 100), sample(10_200, 200), sample(20_000, 0)];
        let second = [sample(150, 50), sample(10_100, 0)];
        let pair = put_together(&first, &second);
        assert_eq!(pair.offset, [50, -100]);
        assert_eq!((pair.first, pair.second), (vec![100, 200], vec![50, 0]));
    }
}
