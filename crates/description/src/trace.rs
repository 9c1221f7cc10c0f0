//! Traces: the frames of a stream one by one, in the description or in a file beside it.

use super::fields::Fields;
use super::{At, codes, limits, origin, raw};
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::time::Span;
use onbeat_model::units::{Octets, frame};
use std::ops::RangeInclusive;

const PAIR: &str = "write a time in nanoseconds and the octets of a frame (68 to 1522), by time";

/// What fetches files, and what has been fetched.
pub(super) struct Traces<'a> {
    read: &'a mut dyn FnMut(&str) -> Result<String, String>,
    sources: &'a mut Vec<SourceFile>,
    /// How many frames may still come: traces are what a description may hold most of.
    frames_left: usize,
    files_left: usize,
    octets_left: usize,
}

/// Frames of a stream: time after the phase, length.
pub(super) type Frames = Vec<(Span, Octets)>;

impl<'a> Traces<'a> {
    pub(super) fn new(
        read: &'a mut dyn FnMut(&str) -> Result<String, String>,
        sources: &'a mut Vec<SourceFile>,
    ) -> Self {
        Self {
            read,
            sources,
            frames_left: limits::TRACE_FRAMES,
            files_left: limits::TRACE_FILES,
            octets_left: limits::TRACE_OCTETS,
        }
    }

    /// The frames of a trace in the description.
    pub(super) fn written(
        &mut self,
        fields: &mut Fields<'_, raw::Stream>,
        list: &At<raw::Trace>,
    ) -> Option<Frames> {
        let mut frames = Vec::new();
        for pair in &list.value {
            let (ns, octets) = pair.value;
            if let Err(problem) = self.add(&mut frames, ns, octets) {
                fields.error(codes::TRACE, &problem, pair.at, "this frame", PAIR);
                return None;
            }
        }
        if frames.is_empty() {
            fields.error(codes::TRACE, "the trace is empty", list.at, "this trace", PAIR);
        }
        Some(frames).filter(|f| !f.is_empty())
    }

    /// The frames of a trace in a file: a pair in each line, as `1500,68`. Lines that are empty or
    /// start with `#` say nothing.
    pub(super) fn file(
        &mut self,
        fields: &mut Fields<'_, raw::Stream>,
        path: &At<String>,
    ) -> Option<Frames> {
        let (text, number) = match self.fetch(&path.value) {
            Ok(fetched) => fetched,
            Err(reason) => {
                let text = format!("the trace cannot be read: {reason}");
                let help = "give a path relative to the directory of the description";
                fields.error(codes::TRACE, &text, path.at, "named here", help);
                return None;
            }
        };
        let (mut frames, mut wrong, mut start) = (Vec::new(), 0, 0);
        for line in text.split_inclusive('\n') {
            let at = origin(number, start..start + line.trim_end().len());
            start += line.len();
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let added = match pair(line) {
                Some((ns, octets)) => self.add(&mut frames, ns, octets),
                None => Err("a line is not a pair of numbers".to_owned()),
            };
            if let Err(problem) = added {
                fields.sink.push(in_file(&fields.what, &problem, at, path.at));
                wrong += 1;
                if wrong == limits::TRACE_ERRORS {
                    break;
                }
            }
        }
        self.sources.push(SourceFile { path: path.value.clone(), text });
        if frames.is_empty() && wrong == 0 {
            fields.error(codes::TRACE, "the trace is empty", path.at, "named here", PAIR);
        }
        Some(frames).filter(|f| !f.is_empty() && wrong == 0)
    }

    /// The text of a file and its place among the sources.
    fn fetch(&mut self, path: &str) -> Result<(String, u16), String> {
        let beyond = || {
            let (files, octets) = (limits::TRACE_FILES, limits::TRACE_OCTETS);
            format!("there are more than {files} trace files, or more than {octets} octets in them")
        };
        self.files_left = self.files_left.checked_sub(1).ok_or_else(beyond)?;
        let text = (self.read)(path)?;
        self.octets_left = self.octets_left.checked_sub(text.len()).ok_or_else(beyond)?;
        let number = u16::try_from(self.sources.len()).expect("files are limited to far fewer");
        Ok((text, number))
    }

    /// One more frame, or what is wrong with it.
    fn add(&mut self, frames: &mut Frames, ns: i64, octets: i64) -> Result<(), String> {
        let lengths: RangeInclusive<u32> = frame::MIN_TAGGED.get()..=frame::MAX_TAGGED.get();
        let octets =
            u32::try_from(octets).ok().filter(|o| lengths.contains(o)).ok_or_else(|| {
                format!(
                    "a frame of {octets} octets, outside {} to {}",
                    lengths.start(),
                    lengths.end()
                )
            })?;
        let time = Span::from_ns(ns);
        if !(Span::ZERO..=limits::DURATION).contains(&time) {
            return Err(format!("{ns} ns is outside 0 to {}", limits::DURATION));
        }
        if let Some((before, _)) = frames.last().filter(|(before, _)| *before > time) {
            return Err(format!("{ns} ns comes after {} ns", before.as_ns()));
        }
        let left = self.frames_left.checked_sub(1);
        self.frames_left = left.ok_or_else(|| {
            format!("all traces together have more than {} frames", limits::TRACE_FRAMES)
        })?;
        frames.push((time, Octets::new(octets)));
        Ok(())
    }
}

fn pair(line: &str) -> Option<(i64, i64)> {
    let (ns, octets) = line.split_once(',')?;
    Some((ns.trim().parse().ok()?, octets.trim().parse().ok()?))
}

fn in_file(what: &str, problem: &str, at: Origin, named: Origin) -> Diagnostic {
    let message = format!("{what}: {problem}");
    Diagnostic::error(codes::TRACE, message, at, "this line")
        .help(PAIR)
        .related(named, "the stream that reads the trace")
}
