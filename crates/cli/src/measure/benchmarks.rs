//! The benchmarks of synchronised time, one after the other.

use super::arguments::Test;
use super::bar::Bar;
use super::collect::{Collected, What};
use super::node::{Pair, pair};
use super::place::Directory;
use crate::build;
use crate::chosen::WrongArgument;
use anyhow::{Context, bail};
use onbeat::clock::pause;
use onbeat_machine::benchmarks::{
    Clock, CpuLatencyHeld, CpuPlacement, CyclicTest, Entered, Facts, GpioLine, GpioOutput,
    Isolated, Load, allowed_cpus, clock_overhead, cross_overhead, cyclictest, default_cpu,
    lock_memory, missing_tool, stress_ng, wake_on_all,
};
use onbeat_measure::measurement::{self, Measurement, NodeError, Tool, relative};
use onbeat_model::time::Span;
use onbeat_run::machine::{CpuList, Machine};
use onbeat_run::process::{Kept, Reaper, Running, Start};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Our wake-ups and cyclictest's take turns of about this long.
const TURN: Span = Span::from_ms(1_500);
/// cyclictest takes about so long to begin and to end, with its histogram of a million bins.
const CYCLICTEST_BEGINS: Span = Span::from_ms(1_300);
/// Where that histogram ends.
const CYCLICTEST_LIMIT: i64 = 1_000_000;
/// How long the load has before anything is measured under it.
const LOAD_BEGINS: Span = Span::from_ms(700);
/// What a sample of tests 1 and 2 takes, about, with the rests in between.
const SAMPLE: Span = Span::from_ns(600);
/// The most processors on which threads wake up together.
const WITNESSES_MAX: usize = 63;

/// How it is measured.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) samples: usize,
    pub(super) wakes: usize,
    pub(super) period: Span,
    pub(super) cpu: Option<u16>,
    pub(super) priority: u8,
    pub(super) hold_cpu_latency: bool,
    pub(super) gpio: Option<GpioLine>,
    pub(super) node_error: Option<NodeError>,
}

/// A test, with or without load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) test: Test,
    pub(super) loaded: bool,
}

impl Part {
    /// These tests, then what test 5 repeats under load: 3 and 4, or all.
    pub(super) fn all(tests: &[Test], all_loaded: bool) -> Vec<Self> {
        let loaded = |test: &&Test| all_loaded || matches!(test, Test::Latency | Test::Sync);
        let without = tests.iter().map(|test| Self { test: *test, loaded: false });
        let with = tests.iter().filter(loaded).map(|test| Self { test: *test, loaded: true });
        without.chain(with).collect()
    }
}

/// About how long it takes.
pub(super) fn estimate(parts: &[Part], settings: &Settings) -> Span {
    let wakes = settings.period * settings.wakes as i64;
    let samples = SAMPLE * settings.samples as i64;
    let of_test = |part: &Part| match part.test {
        Test::Clock => samples * 3,
        Test::Cross => samples * 2,
        Test::Latency => {
            let turns = settings.wakes.div_ceil(turn(settings)) as i64;
            (wakes + wakes + CYCLICTEST_BEGINS * turns) * 2
        }
        Test::Sync => wakes,
    };
    parts.iter().map(of_test).sum()
}

/// How many wake-ups a turn has.
fn turn(settings: &Settings) -> usize {
    let turn = TURN.as_ns() / settings.period.as_ns();
    settings.wakes.min(usize::try_from(turn).unwrap_or(1).max(1))
}

/// What came of it.
pub(super) struct BenchmarkResults {
    pub(super) document: Measurement,
    pub(super) values: BTreeMap<String, Vec<i64>>,
    pub(super) interrupted: bool,
}

/// Tests on a machine that has been made ready for them.
pub(super) struct Benchmarks<'a> {
    pub(super) settings: &'a Settings,
    pub(super) reaper: &'a mut Reaper,
    pub(super) stop: &'a AtomicBool,
    pub(super) bar: &'a Bar,
    pub(super) collected: Collected,
    pub(super) place: CpuPlacement,
    /// The other processors that may be used.
    pub(super) others: Vec<u16>,
    pub(super) directory: Directory,
    /// Where the load may run.
    load_cpus: CpuList,
    /// In which processor set this process is meanwhile.
    entered: Option<Entered>,
    _held: Option<CpuLatencyHeld>,
}

impl<'a> Benchmarks<'a> {
    /// Makes the machine ready as far as it lets us, and notes what it does not.
    pub(super) fn begin(
        settings: &'a Settings,
        reaper: &'a mut Reaper,
        stop: &'a AtomicBool,
        bar: &'a Bar,
    ) -> anyhow::Result<Self> {
        let machine = Machine::this();
        let facts = Facts::of(&machine);
        let allowed = allowed_cpus()?;
        let mut collected = Collected::nothing(&facts, settings);
        let entered = settings.cpu.is_none().then(|| enter(&machine, &mut collected)).flatten();
        let here = allowed_cpus()?;
        let cpu = settings.cpu.or(entered.as_ref().map(|entered| entered.cpu));
        let cpu = cpu.or_else(|| default_cpu(&here, &facts.isolated));
        let cpu = cpu.context("the system names no processor that may be used")?;
        if entered.is_none() && !here.0.contains(&cpu) {
            let message = format!("--cpu {cpu}: this process may use processors {here} only");
            bail!(WrongArgument(message));
        }
        let mut place = CpuPlacement { cpu, priority: settings.priority };
        if let Err(error) = place.run(|| ()) {
            place.priority = 0;
            place.run(|| ()).with_context(|| format!("processor {cpu}"))?;
            collected.note(format!(
                "SCHED_FIFO priority {}: {error}; measured without a real-time priority \
                 (CAP_SYS_NICE or an rtprio limit is needed)",
                settings.priority
            ));
        }
        if let Err(error) = lock_memory() {
            collected.note(format!("memory is not locked: {error}"));
        } else {
            collected.document.settings.memory_locked = true;
        }
        let held = settings.hold_cpu_latency.then(|| CpuLatencyHeld::hold(&machine)).transpose();
        let held = held.context("/dev/cpu_dma_latency (--hold-cpu-latency)")?;
        if held.is_some() {
            collected.document.settings.cpu_latency_held = true;
            collected.note("/dev/cpu_dma_latency was held at 0: figures are better than without");
        }
        let others: Vec<u16> = here.0.iter().copied().filter(|other| *other != cpu).collect();
        let written = &mut collected.document.settings;
        (written.cpu, written.priority) = (place.cpu, place.priority);
        written.witnesses = others.iter().copied().take(WITNESSES_MAX).collect();
        let free = allowed.without(&facts.isolated);
        let load_cpus = if free.is_empty() { allowed } else { free };
        let directory = Directory::make(reaper)?;
        let benchmarks = Self {
            settings,
            reaper,
            stop,
            bar,
            collected,
            place,
            others,
            directory,
            load_cpus,
            entered,
            _held: held,
        };
        Ok(benchmarks)
    }

    /// Measures the parts in their order; the load is there from the first part that wants it on.
    pub(super) fn run(mut self, parts: &[Part]) -> anyhow::Result<BenchmarkResults> {
        let mut load = None;
        for part in parts {
            if part.loaded && load.is_none() {
                load = self.load(parts)?;
                if load.is_none() {
                    break; // it has been noted why
                }
            }
            self.collected.loaded = part.loaded;
            self.bar.say(format!(
                "test {}{}",
                part.test.number(false),
                if part.loaded { " under load" } else { "" }
            ));
            let number = part.test.number(part.loaded);
            match part.test {
                Test::Clock => self.clock(number)?,
                Test::Cross => self.cross(number)?,
                Test::Latency => self.latency(number)?,
                Test::Sync => self.sync(number)?,
            }
            if load.as_mut().is_some_and(|(load, _): &mut (Load, u32)| !load.is_there()) {
                bail!("stress-ng ended before the measurement did");
            }
            if self.is_stopped() {
                break;
            }
        }
        if let Some((load, group)) = load {
            drop(load);
            self.reaper.release(Kept::Group(group))?;
        }
        let interrupted = self.is_stopped();
        if interrupted {
            self.collected.note("interrupted: what is here was measured until then, the rest not");
        }
        let Collected { document, values, .. } = self.collected;
        Ok(BenchmarkResults { document, values, interrupted })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Starts the load; `None` where it cannot be had.
    fn load(&mut self, parts: &[Part]) -> anyhow::Result<Option<(Load, u32)>> {
        if let Some(error) = missing_tool("stress-ng") {
            self.collected.note(format!("nothing is measured under load: stress-ng: {error}"));
            return Ok(None);
        }
        // Should nobody end it: twice what is expected, and a minute.
        let seconds = estimate(parts, self.settings).as_ns() as u64 / 500_000_000 + 60;
        let mut words = stress_ng(&self.load_cpus, seconds, &self.directory.path);
        if let Some(outside) = self.entered.as_ref().and_then(|entered| entered.outside.as_ref()) {
            // Not in the processor set that this process has entered.
            let out = ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""].map(str::to_owned);
            let out = out.into_iter().chain([outside.display().to_string()]);
            words = out.chain(words).collect();
        }
        self.collected.document.settings.load = Some(words.clone());
        let program = build::alone("stress-ng".into(), words);
        let start = Start { reaper: Some(self.reaper), ..Start::default() };
        let running = Running::start(&program, Path::new("."), start)?;
        let group = running.group();
        let mut load = Load::of(running);
        pause(LOAD_BEGINS);
        if !load.is_there() {
            bail!("stress-ng ended at once; see its output above");
        }
        Ok(Some((load, group)))
    }

    /// Test 1.
    fn clock(&mut self, test: u8) -> anyhow::Result<()> {
        for (clock, name, what) in [
            (Clock::Local, "clock.lc", "What reading the local clock costs: CLOCK_MONOTONIC"),
            (Clock::Global, "clock.gc", "What reading the global clock costs: CLOCK_REALTIME"),
            (Clock::Tai, "clock.tai", "What reading CLOCK_TAI costs"),
        ] {
            let mut samples = vec![-1; self.settings.samples];
            let done = self.place.run(|| clock_overhead(clock, &mut samples, self.stop))?;
            samples.truncate(done);
            self.collected.add(What { name, what, test, tool: Tool::Onbeat }, samples);
            self.bar.advance(SAMPLE * self.settings.samples as i64);
        }
        Ok(())
    }

    /// Test 2.
    fn cross(&mut self, test: u8) -> anyhow::Result<()> {
        let (local, global) = (Clock::Local, Clock::Global);
        for (of, by, name, what) in [
            (local, global, "cross.lc_by_gc", "What reading the local clock costs by the global"),
            (global, local, "cross.gc_by_lc", "What reading the global clock costs by the local"),
        ] {
            let mut samples = vec![-1; self.settings.samples];
            let done = self.place.run(|| cross_overhead(of, by, &mut samples, self.stop))?;
            samples.truncate(done);
            self.collected.add(What { name, what, test, tool: Tool::Onbeat }, samples);
            self.bar.advance(SAMPLE * self.settings.samples as i64);
        }
        Ok(())
    }

    /// Test 3: ours and cyclictest's in turn, every other round in reverse.
    fn latency(&mut self, test: u8) -> anyhow::Result<()> {
        let mut is_beside = true;
        if let Some(error) = missing_tool("cyclictest") {
            self.collected.note(format!("not beside cyclictest (rt-tests): {error}"));
            is_beside = false;
        }
        for clock in [Clock::Local, Clock::Global] {
            let mut turns = Turns::default();
            let mut left = self.settings.wakes;
            let mut round = 0;
            while left > 0 && !self.is_stopped() {
                let count = left.min(turn(self.settings));
                for ours in [round % 2 == 0, round % 2 != 0] {
                    if ours {
                        self.our_turn(clock, count, &mut turns)?;
                    } else if is_beside && !self.is_stopped() {
                        is_beside = self.their_turn(clock, count, &mut turns)?;
                    }
                    self.bar.advance(self.settings.period * count as i64);
                }
                left -= count;
                round += 1;
            }
            if !turns.ours.is_empty() {
                self.add_turns(clock, test, turns);
            }
        }
        Ok(())
    }

    fn witnesses(&self) -> &[u16] {
        &self.others[..self.others.len().min(WITNESSES_MAX)]
    }

    fn our_turn(&self, clock: Clock, count: usize, turns: &mut Turns) -> anyhow::Result<()> {
        let (place, period) = (self.place, self.settings.period);
        let sides = wake_on_all(clock, place, self.witnesses(), period, count, self.stop)?;
        turns.sides.resize_with(sides.len(), Vec::new);
        turns.ours.extend(sides[0].latencies());
        for (all, side) in turns.sides.iter_mut().zip(sides) {
            all.extend(side.late_ns);
        }
        Ok(())
    }

    /// The other processors do the same as in our turn meanwhile, so that both have the same
    /// neighbours. Whether there was one: cyclictest may need rights that we can do without.
    fn their_turn(
        &mut self,
        clock: Clock,
        count: usize,
        turns: &mut Turns,
    ) -> anyhow::Result<bool> {
        let (place, period) = (self.place, self.settings.period);
        let asked = CyclicTest { clock, place, period, count };
        let file = self.directory.path.join("cyclictest.json");
        let done = AtomicBool::new(false);
        let others = self.others[..self.others.len().min(WITNESSES_MAX)].split_first();
        let text = std::thread::scope(|scope| {
            let beside = others.map(|(cpu, more)| {
                let there = CpuPlacement { cpu: *cpu, ..place };
                let patience = CYCLICTEST_BEGINS.as_ns() * 100 / period.as_ns();
                let enough = count * 2 + usize::try_from(patience).unwrap_or(0);
                let done = &done;
                scope.spawn(move || wake_on_all(clock, there, more, period, enough, done))
            });
            let text = cyclictest(&asked, &file, Some(self.reaper), self.stop);
            done.store(true, Ordering::Relaxed);
            if let Some(beside) = beside {
                beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            text
        });
        match text {
            Err(_) if self.is_stopped() => Ok(true),
            Err(error) => {
                self.collected.note(format!("not beside cyclictest (rt-tests): {error}"));
                Ok(false)
            }
            Ok(text) => {
                turns.theirs.extend(measurement::cyclictest(&text, CYCLICTEST_LIMIT)?);
                Ok(true)
            }
        }
    }

    fn add_turns(&mut self, clock: Clock, test: u8, turns: Turns) {
        let named = match clock {
            Clock::Local => "the local clock",
            _ => "the global clock",
        };
        let name = format!("latency.{}", clock.name());
        let (beside, theirs) = (format!("{name}.relative"), format!("{name}.cyclictest"));
        let what = format!("How late a thread wakes up by {named}");
        let lateness = What { name: &name, what: &what, test, tool: Tool::Onbeat };
        self.collected.add(lateness, turns.ours);
        if let Some((own, others)) = turns.sides.split_first().filter(|(_, more)| !more.is_empty())
        {
            let others: Vec<&[i64]> = others.iter().map(Vec::as_slice).collect();
            let what = "The same, beyond the most punctual thread on another processor".to_owned();
            let values = relative(own, &others);
            self.collected.add(What { name: &beside, what: &what, ..lateness }, values);
            let sides: Vec<&[i64]> = turns.sides.iter().map(Vec::as_slice).collect();
            self.collected.evaluate(&name, &sides);
        } else if self.others.is_empty() {
            self.collected.note("one processor: it cannot be seen whether all stood still");
        }
        let what = format!("{what}, by cyclictest in the same run");
        let by_cyclictest = What { name: &theirs, what: &what, tool: Tool::Cyclictest, ..lateness };
        self.collected.add(by_cyclictest, turns.theirs);
        self.collected.compare(&name, &theirs);
    }

    /// Test 4, and what an output costs.
    fn sync(&mut self, test: u8) -> anyhow::Result<()> {
        if let Some(wanted) = self.settings.gpio.clone() {
            let failed = || format!("output {wanted}");
            let line = GpioOutput::request(&wanted).with_context(failed)?;
            let mut samples = vec![-1; self.settings.samples];
            let done = self.place.run(|| line.pulses(&mut samples, self.stop))?;
            samples.truncate(done.with_context(failed)?);
            let what = "What an output costs: high and low again";
            let what = What { name: "gpio.pulse", what, test, tool: Tool::Onbeat };
            self.collected.add(what, samples);
        } else {
            self.collected.note(
                "no output was named (--gpio): test 4 is by software, two processes that wake up \
                 at the same instants",
            );
        }
        let Some(Pair { first, second, offset }) = pair(self)? else { return Ok(()) };
        let what = |name, what| What { name, what, test, tool: Tool::Onbeat };
        let (late_first, late_second) = (first.clone(), second.clone());
        self.collected.add(what("sync.offset", "How much later the second node acts"), offset);
        self.collected.add(what("sync.first", "How late the first node wakes up"), first);
        self.collected.add(what("sync.second", "How late the second node wakes up"), second);
        self.collected.evaluate("sync.first", &[&late_first, &late_second]);
        Ok(())
    }
}

/// Goes to an isolated processor, if there is one; notes why not, if that cannot be.
fn enter(machine: &Machine, collected: &mut Collected) -> Option<Entered> {
    let isolated = Isolated::of(machine);
    let cpus = isolated.cpus();
    if cpus.is_empty() {
        return None;
    }
    let entered = isolated.enter(machine);
    if let Err(error) = &entered {
        collected.note(format!("processors {cpus} are isolated, and not measured on: {error}"));
    }
    entered.ok()
}

/// What turns of one clock have measured.
#[derive(Default)]
struct Turns {
    ours: Vec<i64>,
    theirs: Vec<i64>,
    /// Instant by instant, our own lateness and that of the witnesses.
    sides: Vec<Vec<i64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_five_repeats_wake_ups_and_synchronisation() {
        let names = |parts: Vec<Part>| -> Vec<(u8, bool)> {
            parts.iter().map(|part| (part.test.number(part.loaded), part.loaded)).collect()
        };
        let plain = [(1, false), (2, false), (3, false), (4, false)];
        assert_eq!(names(Part::all(&Test::ALL, false))[..4], plain);
        assert_eq!(names(Part::all(&Test::ALL, false))[4..], [(5, true), (5, true)]);
        assert_eq!(names(Part::all(&[Test::Clock], true)), [(1, false), (1, true)]);
    }
}
