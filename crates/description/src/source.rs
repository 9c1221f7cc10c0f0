//! When a stream releases frames, and how long they are.

use super::fields::{Fields, Key, NS, presence};
use super::trace::{Frames, Traces};
use super::{At, codes, limits, raw};
use crate::manifest::Rate;
use onbeat_model::stream::Source;
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};

/// The keys of which one says when frames come.
const KEYS: [&str; 4] = ["interval_ns", "rate_hz", "trace", "trace_file"];

/// The shortest and the longest frame, and the source.
pub(super) fn check(
    fields: &mut Fields<'_, raw::Stream>,
    traces: &mut Traces<'_>,
) -> Option<([Octets; 2], Source)> {
    let raw = &fields.entry.raw;
    let (trace, file) = (presence(&raw.trace), presence(&raw.trace_file));
    let given = [raw.interval_ns, raw.rate_hz, trace, file];
    let keys: Vec<_> = KEYS.into_iter().zip(&given).filter(|(_, key)| key.is_some()).collect();
    for other in keys.iter().skip(1) {
        fields.either(keys[0], *other);
    }
    let Some((first, _)) = keys.first() else {
        if !KEYS.iter().any(|key| fields.entry.is_broken(key)) {
            let help = "add one of `interval_ns`, `rate_hz`, `trace` and `trace_file`";
            let text = "no key says when its frames are sent";
            fields.error(codes::MISSING_KEY, text, fields.entry.at, "in this table", help);
        }
        return None;
    };
    let of_trace = |frames: Frames| {
        let lengths = || frames.iter().map(|(_, octets)| *octets);
        let lengths = [lengths().min()?, lengths().max()?];
        Some((lengths, Source::Trace(frames)))
    };
    match (*first, &raw.trace, &raw.trace_file) {
        ("trace", Some(list), _) => {
            only_a_trace(fields, ("trace", &trace));
            traces.written(fields, list).and_then(of_trace)
        }
        ("trace_file", _, Some(path)) => {
            only_a_trace(fields, ("trace_file", &file));
            traces.file(fields, path).and_then(of_trace)
        }
        _ => {
            let lengths = lengths(fields);
            let source = interval(fields).map(|interval| of_interval(fields, interval));
            Some((lengths?, source?))
        }
    }
}

/// A trace says all: other keys of a source would contradict it.
fn only_a_trace(fields: &mut Fields<'_, raw::Stream>, trace: Key<'_>) {
    let raw = &fields.entry.raw;
    for other in [
        ("frame_octets", &raw.frame_octets),
        ("frame_octets_min", &raw.frame_octets_min),
        ("jitter_ns", &raw.jitter_ns),
        ("mean_interval_ns", &raw.mean_interval_ns),
        ("burst_frames", &raw.burst_frames),
    ] {
        fields.either(trace, other);
    }
}

fn lengths(fields: &mut Fields<'_, raw::Stream>) -> Option<[Octets; 2]> {
    let raw = &fields.entry.raw;
    let range = i64::from(frame::MIN_TAGGED.get())..=i64::from(frame::MAX_TAGGED.get());
    let longest = fields.need("frame_octets", &raw.frame_octets);
    let code = codes::PAYLOAD_SIZE;
    let longest = fields.int(code, ("frame_octets", &longest), range.clone())?;
    let shortest = ("frame_octets_min", &raw.frame_octets_min);
    let Some(At { at, .. }) = raw.frame_octets_min else {
        return Some([longest, longest].map(|octets| Octets::new(octets as u32)));
    };
    let shortest = fields.int(code, shortest, range)?;
    if shortest > longest {
        let text = format!("`frame_octets_min` {shortest} is above `frame_octets` {longest}");
        fields.error(codes::MIN_ABOVE_MAX, &text, at, "this length", "swap them");
    }
    Some([shortest, longest].map(|octets| Octets::new(octets as u32)))
}

fn interval(fields: &mut Fields<'_, raw::Stream>) -> Option<Span> {
    let raw = &fields.entry.raw;
    let rate = raw.interval_ns.map(|ns| ns.with(Rate::IntervalNs(ns.value)));
    let rate = rate.or(raw.rate_hz.map(|hz| hz.with(Rate::Hz(hz.value))))?;
    let interval = rate.value.interval();
    if interval.is_none() {
        let help = format!("use an interval of 1 ns to {}", limits::DURATION);
        fields.error(codes::RATE, "its rate is out of range", rate.at, "out of range", &help);
    }
    interval
}

fn of_interval(fields: &mut Fields<'_, raw::Stream>, interval: Span) -> Source {
    let raw = &fields.entry.raw;
    let mean = ("mean_interval_ns", &raw.mean_interval_ns);
    let burst = ("burst_frames", &raw.burst_frames);
    let jitter = ("jitter_ns", &raw.jitter_ns);
    let kinds: Vec<_> = [jitter, mean, burst].into_iter().filter(|key| key.1.is_some()).collect();
    for other in kinds.iter().skip(1) {
        fields.either(kinds[0], *other);
    }
    if raw.mean_interval_ns.is_some() {
        let range = interval..=limits::DURATION;
        let mean = fields.time(codes::OUT_OF_RANGE, mean, NS, range);
        return Source::Sporadic { interval, mean: mean.unwrap_or(interval) };
    }
    if raw.burst_frames.is_some() {
        let frames = fields.int(codes::OUT_OF_RANGE, burst, 1..=limits::BURST_FRAMES);
        return Source::Bursty { interval, frames: frames.unwrap_or(1) as u32 };
    }
    let jitter = fields.time(codes::OUT_OF_RANGE, jitter, NS, Span::ZERO..=limits::DELAY);
    Source::Periodic { interval, jitter: jitter.unwrap_or_default() }
}
