//! Times when no core ran at all: a thread on each core sleeps and wakes, and what all of them
//! missed together was the machine's standstill.

use super::facts::Fact;
use onbeat::clock::MonoTime;
use onbeat_model::time::Span;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// For how long cores are watched.
const WATCH: Span = Span::from_ms(200);
/// How long a watching thread sleeps.
const NAP: Span = Span::from_us(500);
/// A sleep that took longer is noted.
const NOTED: Span = Span::from_ms(1);
/// Cores beyond these are not watched.
const CORES_MAX: usize = 64;
/// High enough that nothing but the kernel's own threads goes before.
const PRIORITY: i32 = 60;

/// From when to when a core did not run, in ns of CLOCK_MONOTONIC.
type Gap = (i64, i64);

/// The longest time in ns for which no core ran, and for how many ms that was watched.
pub(super) fn watch() -> (Fact<i64>, i64) {
    let allowed = match sched_getaffinity(None) {
        Ok(set) => set,
        Err(error) => return (Fact::Unknown(format!("sched_getaffinity: {error}")), 0),
    };
    let cores = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let cores: Vec<usize> = cores.take(CORES_MAX).collect();
    let watched = std::thread::scope(|scope| {
        let threads: Vec<_> = cores.iter().map(|core| scope.spawn(|| watch_one(*core))).collect();
        let ended = threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Ok(Vec::new())));
        ended.collect::<io::Result<Vec<Vec<Gap>>>>()
    });
    let stall = match watched {
        Ok(gaps) if gaps.len() > 1 => Fact::Known(together(&gaps)),
        Ok(_) => Fact::Unknown("with one CPU a stall of all looks like any other delay".to_owned()),
        Err(error) => Fact::Unknown(format!(
            "watching takes a real-time priority, or load looks like a stall ({error})"
        )),
    };
    (stall, WATCH.as_ns() / 1_000_000)
}

/// Watches one core from a thread that ends afterwards, with its affinity and priority.
fn watch_one(core: usize) -> io::Result<Vec<Gap>> {
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    // SAFETY: all zeros is a valid parameter; the call changes the calling thread only.
    let refused = unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = PRIORITY;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    let mut gaps = Vec::new();
    let mut last = MonoTime::now();
    let end = last + WATCH;
    while last < end {
        (last + NAP).sleep();
        let now = MonoTime::now();
        if now - last >= NAP + NOTED {
            gaps.push((last.as_ns(), now.as_ns()));
        }
        last = now;
    }
    Ok(gaps)
}

/// The longest time that is in a gap of each core.
fn together(cores: &[Vec<Gap>]) -> i64 {
    let Some((first, others)) = cores.split_first() else { return 0 };
    let meet = |all: Vec<Gap>, gaps: &Vec<Gap>| {
        let pairs = all.iter().flat_map(|a| gaps.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
        pairs.filter(|(from, to)| from < to).collect()
    };
    let common: Vec<Gap> = others.iter().fold(first.clone(), meet);
    common.iter().map(|(from, to)| to - from).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_cores_missed_is_a_stall() {
        assert_eq!(together(&[vec![(0, 10), (50, 90)], vec![(5, 20), (60, 100)]]), 30);
        assert_eq!(together(&[vec![(0, 10)], vec![(10, 20)]]), 0);
        assert_eq!(together(&[vec![(0, 10)], Vec::new()]), 0);
        assert_eq!(together(&[]), 0);
    }

    #[test]
    fn watching_leaves_the_caller_where_it_was() {
        let before = sched_getaffinity(None).unwrap();
        let (stall, watched) = watch();
        assert_eq!(watched, 200);
        match stall {
            Fact::Known(ns) => assert!(ns >= 0),
            Fact::Unknown(why) => assert!(!why.is_empty()),
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
