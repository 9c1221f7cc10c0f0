//! The verb `top`: rates, latencies and losses of running programs, again and again.

mod keys;
mod row;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use crate::arguments::duration;
use crate::exit::Exit;
use crate::stat::{interrupted, say_skipped, wanted};
use crate::terminal;
use clap::{Args, ValueEnum};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use view::Top;

pub(crate) const TOP: &str = "Keys:
  q  quit          s  next order      space  pause      r  count totals from now on
  Up, Down, PgUp, PgDn, Home, End     scroll

Examples:
  onbeat top
  onbeat top --channel joint_targets --interval 200ms
  onbeat top --batch --count 3 --sort rate
  onbeat top --json --count 1

`lost 120 +3/s` is 120 in all and 3 each second now. A dash is what does not apply to an end, or is
unknown: rates of an end that is new or has begun again, the mean latency if nothing came, the
declared rate and all latencies of a program with an older library. Messages that caught up are
known only after a run, from its records. Only the superuser sees other users' programs
(docs/cli.md).";

/// The shortest time between two looks at all processes, and the longest.
const INTERVAL_MIN: Span = Span::from_ms(100);
const INTERVAL_MAX: Span = Span::from_s(3_600);
/// How often signals are looked for.
const LOOK_AGAIN: Span = Span::from_ms(50);

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Process to show [default: all]
    #[arg(long, value_name = "NUMBER")]
    pid: Option<u32>,
    /// Channel to show [default: all]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// What comes first
    #[arg(long, value_name = "KEY", default_value = "problems")]
    sort: SortBy,
    /// Time of each update, and over which rates are counted, 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Span,
    /// Prints a table for each interval instead, as without a terminal
    #[arg(long)]
    batch: bool,
    /// Ends after so many intervals [default: when interrupted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Prints a line of JSON for each interval (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// What comes first in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// Losses, late messages, rejected frames and breaks now; then silence, held writes, and
    /// earlier ones
    Problems,
    /// Most messages a second
    Rate,
    /// Largest mean latency, then largest worst one
    Latency,
    /// Most lost messages now, then in all
    Lost,
    /// Most rejected frames now, then in all
    Rejected,
    /// Most held writes now, then in all
    Held,
    /// By name of the program
    Program,
    /// By number of the process
    Pid,
    /// By name of the channel
    Channel,
}

impl SortBy {
    /// The one that follows, round and round.
    fn next(self) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|one| *one == self).unwrap_or_default();
        all[(at + 1) % all.len()]
    }

    /// What it is called on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

fn interval(text: &str) -> Result<Span, String> {
    let span = duration(text)?;
    let is_within = (INTERVAL_MIN..=INTERVAL_MAX).contains(&span);
    is_within.then_some(span).ok_or_else(|| "an interval is from 100ms to 1h".to_owned())
}

/// Shows what running programs do, on a terminal or as text.
pub(crate) fn top(arguments: &TopArguments) -> anyhow::Result<Exit> {
    let me = rustix::process::geteuid().as_raw();
    let top = Top::new(arguments.interval, arguments.sort, me);
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    let is_seen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !is_dumb;
    if is_seen && !arguments.batch && !arguments.json {
        return screen::interact(arguments, top);
    }
    batch(arguments, top)
}

/// Prints a table or a line of JSON for each interval.
fn batch(arguments: &TopArguments, mut top: Top) -> anyhow::Result<Exit> {
    let interrupted = interrupted()?;
    let mut said = BTreeSet::new();
    let (mut before, mut left) = (None, arguments.count);
    loop {
        let now = MonoTime::now();
        let seen = wanted(arguments.pid, arguments.channel.as_deref())?;
        say_skipped(&seen.skipped, &mut said);
        let elapsed = before.replace(now).map(|before| now - before);
        top.update(elapsed, seen);
        if let Some(elapsed) = elapsed {
            let text = if arguments.json { top.json(elapsed) } else { top.table() };
            left = left.map(|left| left - 1);
            if !terminal::print_to_reader(&text)? || left == Some(0) {
                return Ok(Exit::Fine);
            }
        }
        while MonoTime::now() < now + arguments.interval {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Exit::Fine);
            }
            pause(LOOK_AGAIN.min(now + arguments.interval - MonoTime::now()));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Fine);
        }
    }
}
