//! Jobs on one processor, as the runtime's scheduler moves them.

use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::processor::{Processors, Rank};
use std::collections::VecDeque;

/// Work that is ready at some time.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) load: usize,
    /// From when its response is counted.
    pub(crate) nominal: i64,
    /// When it is ready, not before the nominal time.
    pub(crate) ready: i64,
    /// Its work, in pieces with a rank of their own, one right after the other.
    pub(crate) pieces: Vec<(Rank, i64)>,
    /// When it is given up.
    pub(crate) until: Option<i64>,
}

/// From nominal release to its end, or none where it was given up, of each job, as they end.
pub(crate) fn run(mut jobs: Vec<Job>) -> Vec<(usize, Option<i64>)> {
    let at = NetTime::from_ns;
    jobs.sort_by_key(|job| job.ready);
    let mut processor = Processors::new(1);
    let mut ends = Vec::new();
    let mut left: Vec<VecDeque<(Rank, i64)>> =
        jobs.iter().map(|job| job.pieces.iter().copied().collect()).collect();
    let mut is_over = vec![false; jobs.len()];
    let mut ahead = 0;
    // Those that are ready, not over, and given up some time.
    let mut watched: Vec<usize> = Vec::new();
    loop {
        let release = jobs.get(ahead).map(|job| job.ready);
        let done = processor.next().map(NetTime::as_ns);
        let given_up = watched.iter().filter_map(|job| jobs[*job].until).min();
        let Some(now) = release.into_iter().chain(done).chain(given_up).min() else {
            return ends;
        };
        // Whoever is done at the very instant of the deadline is on time.
        for id in processor.advance(at(now)) {
            let job = id as usize;
            left[job].pop_front();
            if let Some((rank, amount)) = left[job].front() {
                processor.start(at(now), id, 0, *rank, Span::from_ns(*amount));
            } else {
                is_over[job] = true;
                ends.push((jobs[job].load, Some(now - jobs[job].nominal)));
            }
        }
        watched.retain(|job| !is_over[*job]);
        for job in watched.iter().copied().filter(|job| jobs[*job].until == Some(now)) {
            processor.cancel(at(now), job as u64);
            is_over[job] = true;
            ends.push((jobs[job].load, None));
        }
        watched.retain(|job| !is_over[*job]);
        while ahead < jobs.len() && jobs[ahead].ready == now {
            let (rank, amount) = left[ahead][0];
            processor.start(at(now), ahead as u64, 0, rank, Span::from_ns(amount));
            match jobs[ahead].until {
                Some(until) if until <= now => {
                    processor.cancel(at(now), ahead as u64);
                    ends.push((jobs[ahead].load, None));
                }
                Some(_) => watched.push(ahead),
                None => {}
            }
            ahead += 1;
        }
    }
}

/// The greatest response of each load.
pub(crate) fn worst(ends: &[(usize, Option<i64>)], loads: usize) -> Vec<i64> {
    let mut worst = vec![0; loads];
    for (load, response) in ends {
        worst[*load] = worst[*load].max(response.unwrap_or(0));
    }
    worst
}
