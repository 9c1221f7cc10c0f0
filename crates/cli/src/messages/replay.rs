//! The verb `replay`. Each channel has a thread, which reads the file for itself: so the memory is
//! bounded, and a message of one channel waits for none of another.

use super::{Missed, PlaceArguments, unless_over, unless_over_before};
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use onbeat::{AnnouncedThread, Span, Talker};
use onbeat_machine::messages::{MessageReader, RecordedChannel};
use onbeat_model::fragment::MESSAGE_MAX;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

pub(crate) const REPLAY: &str = "Examples:
  onbeat replay day.pcapng --interface eth0 --table told/arm.channels
  onbeat replay day.pcapng joint_states

The host must be the talker of the channels. In a run it is the command of a [[program]]:
  command = [\"onbeat\", \"replay\", \"states.pcapng\"]
Each message is captured at its instant after the start, in virtual time to the nanosecond
(docs/messages.md).";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// File that `onbeat record` wrote
    file: PathBuf,
    /// Channels to replay [default: all of the file]
    #[arg(value_name = "CHANNEL")]
    channels: Vec<String>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// What became of a channel's messages.
#[derive(Default)]
struct Replayed {
    messages: u64,
    /// Those that were captured later than recorded, and by how much at most.
    late: u64,
    latest: Span,
    /// Those that the file has in part only.
    incomplete: u64,
}

/// Writes the messages of a file until there are no more, or the run is over.
pub(crate) fn replay(arguments: &ReplayArguments) -> anyhow::Result<Exit> {
    let file = &arguments.file;
    // All of it is read before the first message is written.
    let channels = chosen(file, whole(file)?, &arguments.channels)?;
    let (context, _) = arguments.place.join()?;
    let mut ends = Vec::new();
    for channel in &channels {
        let size = channel.size.context("a channel that is replayed has messages")?;
        let end = unless_over_before(context.open_talker(&channel.name, size))?;
        ends.extend(end);
    }
    if unless_over_before(context.start())?.is_none() {
        return Ok(Exit::Fine);
    }
    let mut threads = Vec::new();
    for (channel, end) in channels.into_iter().zip(ends) {
        let Some(announced) = unless_over(context.announce())? else { break };
        let number = announced.as_ref().map(AnnouncedThread::number);
        let (path, name) = (file.clone(), channel.name.clone());
        let thread = std::thread::Builder::new().name("replay".to_owned());
        let thread = thread.spawn(move || {
            if let Some(announced) = announced
                && unless_over_before(announced.begin())?.is_none()
            {
                return Ok(Replayed::default());
            }
            one(&path, &channel.name, end)
        })?;
        threads.push((name, number, thread));
    }
    for (name, number, thread) in threads {
        if let Some(number) = number {
            unless_over(context.wait_for(number))?;
        }
        let replayed = thread.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))?;
        tell(&name, &replayed.with_context(|| file.display().to_string())?);
    }
    context.leave();
    Ok(Exit::Fine)
}

fn tell(name: &str, replayed: &Replayed) {
    let Replayed { messages, late, latest, incomplete } = replayed;
    let incomplete = match incomplete {
        0 => String::new(),
        _ => format!(", {incomplete} left out, of which the file lacks fragments"),
    };
    let late = match late {
        0 => String::new(),
        _ => format!(", {late} of them later than recorded, by up to {latest}"),
    };
    terminal::say(format_args!(
        "onbeat: channel `{name}`: {messages} messages replayed{late}{incomplete}"
    ));
}

fn open(path: &Path) -> anyhow::Result<MessageReader<BufReader<File>>> {
    let file = input::open(path).map_err(anyhow::Error::msg)?;
    Ok(MessageReader::new(BufReader::new(file)))
}

/// The channels of a file that is read to its end.
fn whole(path: &Path) -> anyhow::Result<Vec<RecordedChannel>> {
    let mut reader = open(path)?;
    while reader.next_message().with_context(|| path.display().to_string())?.is_some() {}
    Ok(reader.channels().to_vec())
}

/// Those that are to be replayed: they have messages.
fn chosen(
    path: &Path,
    mut channels: Vec<RecordedChannel>,
    wanted: &[String],
) -> anyhow::Result<Vec<RecordedChannel>> {
    let shown = path.display();
    for name in wanted {
        if !channels.iter().any(|channel| channel.name == *name) {
            let known: Vec<_> = channels.iter().map(|channel| channel.name.as_str()).collect();
            let known = known.join(", ");
            let why = format!("{shown}: there is no channel `{name}`; there are: {known}");
            bail!(WrongArgument(why));
        }
    }
    channels.retain(|channel| wanted.is_empty() || wanted.contains(&channel.name));
    channels.retain(|channel| channel.messages > 0);
    if channels.is_empty() {
        bail!("{shown}: there are no messages to replay");
    }
    Ok(channels)
}

/// Writes the messages of one channel, each at its instant.
fn one(path: &Path, name: &str, mut end: Talker) -> anyhow::Result<Replayed> {
    let mut reader = open(path)?;
    let size = end.talker().parameters().size.get() as usize;
    let mut value = vec![0; MESSAGE_MAX.get() as usize];
    let (mut replayed, mut missed) = (Replayed::default(), Missed::of(name));
    while let Some(message) = reader.next_message()? {
        let (channel, at, length) = (message.channel, message.capture, message.value.len());
        value[..length].copy_from_slice(message.value);
        if reader.channels()[channel].name != name {
            continue;
        }
        if length != size {
            bail!("the file has changed while it was replayed");
        }
        let written = missed.unless_over(end.write_at(&value[..size], at))?;
        let Some(written) = written else { break };
        let Some(captured) = written else { continue };
        replayed.messages += 1;
        if captured > at {
            replayed.late += 1;
            replayed.latest = replayed.latest.max(captured - at);
        }
    }
    let of_channel = reader.channels().iter().find(|channel| channel.name == name);
    replayed.incomplete = of_channel.map_or(0, |channel| channel.incomplete);
    Ok(replayed)
}
