//! Makes a case smaller that shows a difference: fewer frames, as long as there is one.

use super::case::Case;
use super::compare::{Coverage, compare};
use super::{bench, model};
use std::path::Path;

/// Each takes the hardware about half a second.
const TRIES: usize = 200;

pub(super) fn shrink(mut case: Case, mut difference: String, bench: &Path) -> (Case, String) {
    let mut tries = 0;
    let mut part = case.sent.iter().map(Vec::len).max().unwrap_or(0).div_ceil(2).max(1);
    loop {
        let mut is_smaller = false;
        for host in 0..case.hosts() {
            let mut at = 0;
            while at < case.sent[host].len() && tries < TRIES {
                let mut less = case.clone();
                let end = (at + part).min(less.sent[host].len());
                less.sent[host].drain(at..end);
                tries += 1;
                let hardware = bench::run(&less, bench);
                match compare(&less, &hardware, &model(&less), &mut Coverage::default()) {
                    Ok(()) => at += part,
                    Err(found) => (case, difference, is_smaller) = (less, found, true),
                }
            }
        }
        if tries >= TRIES || (part == 1 && !is_smaller) {
            return (case, difference);
        }
        part = part.div_ceil(2);
    }
}
