//! The verb `pub`.

use super::form::{Form, TypeArgument};
use super::{Missed, PlaceArguments, unless_over, unless_over_before};
use crate::arguments::duration;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use onbeat::{Octets, Span, SyncedTime};
use std::io::{BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

pub(crate) const PUB: &str = "Examples:
  onbeat pub speed 0a00000000000000 --interface eth0 --table told/arm.channels
  onbeat pub speed --type messages.h:speed '{\"metres_per_s\": 0.5}' --count 100
  generate | onbeat pub speed --type messages.h:speed --every 20ms

The host must be the channel's talker. In a run it is the command of a [[program]]:
  command = [\"onbeat\", \"pub\", \"speed\", \"0a00000000000000\"]
Fields are those of the struct that the description names as the channel's `type`, or of --type.
Several messages are written in turn, over and over; without one, each line of standard input is a
message (docs/messages.md).";

/// The longest line of standard input: as JSON an octet of the longest message takes up to five.
const LINE_OCTETS: u64 = 1 << 19;
/// How often who waits for one looks whether it is interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(crate) struct PubArguments {
    /// Channel
    channel: String,
    /// Messages: hexadecimal digits, or JSON objects of a struct's fields [default: lines of
    /// standard input]
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    kind: TypeArgument,
    /// Time between two messages, which are captured at its multiples from the start [default: the
    /// channel's interval]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Span>,
    /// Ends after this many messages [default: at the end of the run, or when interrupted]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Where messages come from.
enum Source {
    Given(Vec<Vec<u8>>),
    /// Lines of standard input, from a thread that waits for them: nothing ends its wait.
    Lines(Receiver<std::io::Result<String>>),
}

impl Source {
    /// Standard input, which a thread reads a line ahead.
    fn lines() -> anyhow::Result<Self> {
        let (to, lines) = sync_channel(1);
        std::thread::Builder::new().name("lines".to_owned()).spawn(move || {
            loop {
                let mut line = String::new();
                let got = std::io::stdin().lock().take(LINE_OCTETS + 1).read_line(&mut line);
                let is_end = !matches!(got, Ok(octets) if octets > 0);
                if to.send(got.map(|_| line)).is_err() || is_end {
                    return;
                }
            }
        })?;
        Ok(Self::Lines(lines))
    }

    /// The next message, of the given number; none after the last one.
    fn next(
        &self,
        number: u64,
        form: &Form,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let lines = match self {
            Self::Given(messages) => {
                let place = (number % messages.len() as u64) as usize;
                return Ok(Some(messages[place].clone()));
            }
            Self::Lines(lines) => lines,
        };
        let shown = || format!("standard input: line {}", number + 1);
        while !interrupted.load(Ordering::Relaxed) {
            let line = match lines.recv_timeout(LOOK_AGAIN) {
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Ok(line) => line.with_context(shown)?,
            };
            if line.is_empty() {
                return Ok(None);
            }
            if line.len() as u64 > LINE_OCTETS {
                bail!("{}: longer than {LINE_OCTETS} octets", shown());
            }
            return form.read(&line).map(Some).map_err(anyhow::Error::msg).with_context(shown);
        }
        Ok(None)
    }
}

/// Writes messages until there are no more, or the run is over.
pub(crate) fn publish(arguments: &PubArguments) -> anyhow::Result<Exit> {
    let form = arguments.kind.form(&arguments.channel)?;
    let given = arguments.messages.iter().map(|text| form.read(text));
    let given: Vec<_> = given.collect::<Result<_, _>>().map_err(WrongArgument)?;
    // Hexadecimal digits say a size, too: another than the channel's is refused as any program's.
    let size = given.first().map_or(form.size(), |first| Octets::new(first.len() as u32));
    let (context, interrupted) = arguments.place.join()?;
    let end = context.open_talker(&arguments.channel, size);
    let Some(mut end) = unless_over_before(end)? else { return Ok(Exit::Fine) };
    let parameters = *end.talker().parameters();
    let source = if given.is_empty() { Source::lines()? } else { Source::Given(given) };
    if unless_over_before(context.start())?.is_none() {
        return Ok(Exit::Fine);
    }
    let every = arguments.every.unwrap_or(parameters.interval);
    let mut at = SyncedTime::from_ns(i64::MIN);
    let mut missed = Missed::of(&arguments.channel);
    for number in 0..arguments.count.unwrap_or(u64::MAX) {
        let Some(message) = source.next(number, &form, &interrupted)? else {
            if number == 0 && !interrupted.load(Ordering::Relaxed) {
                terminal::say("onbeat: nothing is published: standard input is empty");
            }
            break;
        };
        let (has, needs) = (message.len(), parameters.size.get());
        if has != needs as usize {
            let name = &arguments.channel;
            bail!(
                "message {}: {has} octets; channel `{name}` carries messages of {needs}",
                number + 1
            );
        }
        // After a pause of the input, too, it is captured at a multiple.
        let Some(now) = unless_over(context.now())? else { break };
        at = at.max(next_multiple(now.local, every));
        if missed.unless_over(end.write_at(&message, at))?.is_none() {
            break;
        }
        at += every;
    }
    drop(end);
    context.leave();
    Ok(Exit::Fine)
}

/// The first multiple of a span that is not before an instant.
fn next_multiple(now: SyncedTime, every: Span) -> SyncedTime {
    let (now, every) = (now.as_ns(), every.as_ns());
    let behind = now.rem_euclid(every);
    SyncedTime::from_ns(if behind == 0 { now } else { now + (every - behind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_at_multiples_from_the_start() {
        let next = |now| next_multiple(SyncedTime::from_ns(now), Span::from_ns(10)).as_ns();
        assert_eq!([-11, -10, -1, 0, 1, 9, 10].map(next), [-10, -10, 0, 0, 10, 10, 10]);
    }
}
