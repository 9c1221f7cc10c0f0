//! What each repetition of a simulation saw, for comparisons: repetitions are independent of each
//! other, which the frames of one are not.

use crate::csv::quoted;
use onbeat_model::observed::Observed;
use onbeat_model::system::{NodeId, System};
use std::fmt::Write;

/// The most lines that are kept; repetitions after them are left out.
const LINES_MAX: usize = 1_000_000;

/// The repetitions of a simulation, as they are added.
#[derive(Clone, Debug)]
pub struct Repetitions {
    /// The begin of each listener's line, of the channels and then of the streams.
    flows: Vec<Vec<String>>,
    text: String,
    repetitions: u32,
    lines: usize,
}

impl Repetitions {
    /// No repetition of `system` yet.
    pub fn new(system: &System) -> Self {
        let flow = |name: &str, listeners: &[NodeId]| -> Vec<String> {
            let hosts = listeners.iter().map(|host| quoted(&system.node(*host).name));
            hosts.map(|host| format!("{},{host}", quoted(name))).collect()
        };
        let channels = system.channels.iter().map(|c| flow(&c.name, &c.listeners));
        let streams = system.streams.iter().map(|s| flow(&s.name, &s.listeners));
        Self {
            flows: channels.chain(streams).collect(),
            text: "repetition,flow,listener,frames,min_ns,mean_ns,max_ns\n".to_owned(),
            repetitions: 0,
            lines: 0,
        }
    }

    /// Adds the next repetition, as long as there is room for all of it.
    pub fn add(&mut self, seen: &Observed) {
        let lines: usize = self.flows.iter().map(Vec::len).sum();
        if self.lines + lines > LINES_MAX {
            return;
        }
        for (flow, seen) in self.flows.iter().zip(seen.channels.iter().chain(&seen.streams)) {
            for (names, end) in flow.iter().zip(&seen.listeners) {
                let frames = i128::from(end.frames);
                let mean = (end.sum_ns + frames / 2).checked_div_euclid(frames);
                let times = [
                    end.min.map(|span| i128::from(span.as_ns())),
                    mean,
                    end.max.map(|span| i128::from(span.as_ns())),
                ];
                let _ = write!(self.text, "{},{names},{frames}", self.repetitions);
                for time in times {
                    let _ = match time {
                        Some(ns) => write!(self.text, ",{ns}"),
                        None => write!(self.text, ","),
                    };
                }
                self.text.push('\n');
            }
        }
        self.repetitions += 1;
        self.lines += lines;
    }

    /// One line for each listener of each repetition, with a header (RFC 4180); times are empty
    /// where no frame came.
    pub fn to_csv(&self) -> &str {
        &self.text
    }
}
