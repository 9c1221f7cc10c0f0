//! The verb `record`.

use super::unnamed::UnnamedFile;
use super::{PlaceArguments, unless_over, unless_over_before};
use crate::exit::Exit;
use crate::output::FileKind;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use onbeat::coordinator::protocol::MAX_SELECT;
use onbeat::{ANY_SIZE, Listener, Timeout};
use onbeat_machine::messages::{CHANNELS_MAX, MessageWriter};
use onbeat_model::fragment::MESSAGE_MAX;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

pub(crate) const RECORD: &str = "Examples:
  onbeat record joint_states joint_targets -o day.pcapng --interface eth0 --table told/log.channels
  onbeat record joint_states -o first.pcapng --count 1000

The host must be a listener of the channels. In a run it is the command of a [[program]]:
  command = [\"onbeat\", \"record\", \"joint_states\", \"-o\", \"states.pcapng\"]
The file appears when it is complete: at the end of the run, or when interrupted. `onbeat replay`
and Wireshark read it (docs/messages.md).";

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Channels
    #[arg(value_name = "CHANNEL", required = true)]
    channels: Vec<String>,
    /// File to write, pcapng; replaces only captures
    #[arg(short, long, value_name = "FILE", required = true)]
    out: PathBuf,
    #[command(flatten)]
    place: PlaceArguments,
    /// Ends after this many messages of all channels together [default: at the end of the run, or
    /// when interrupted]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

// All are waited for at once, which a run allows for so many.
const _: () = assert!(CHANNELS_MAX <= MAX_SELECT);

/// Writes messages into a file until the run is over.
pub(crate) fn record(arguments: &RecordArguments) -> anyhow::Result<Exit> {
    let RecordArguments { channels, out, place, count } = arguments;
    if channels.len() > CHANNELS_MAX {
        anyhow::bail!("a file has at most {CHANNELS_MAX} channels: record into several");
    }
    let (unnamed, file) = UnnamedFile::begin(out, FileKind::Capture)?;
    let (context, _) = place.join()?;
    let mut ends = Vec::new();
    for name in channels {
        let end = unless_over_before(context.open_listener(name, ANY_SIZE))?;
        ends.extend(end);
    }
    let shown = || out.display().to_string();
    let parameters = ends.iter().map(|end| *end.listener().parameters());
    let named = channels.iter().map(String::as_str).zip(parameters);
    let writer = MessageWriter::new(BufWriter::new(file), named).with_context(shown)?;
    let mut recording = Recording { writer, messages: 0, lost: 0, early: 0 };
    if unless_over_before(context.start())?.is_some() {
        recording.go(&context, &mut ends, *count).with_context(shown)?;
    }
    let Recording { writer, messages, lost, early } = recording;
    writer.finish().flush().with_context(shown)?;
    unnamed.finish()?;
    drop(ends);
    context.leave();
    let more = [(lost, "lost on the way"), (early, "left out, captured before the start")];
    let more = more.iter().filter(|(count, _)| *count > 0);
    let more: String = more.map(|(count, what)| format!(", {count} {what}")).collect();
    terminal::say(format_args!("onbeat: {}: {messages} messages{more}", out.display()));
    Ok(Exit::Fine)
}

/// A file in progress, and what came.
struct Recording<W: Write> {
    writer: MessageWriter<W>,
    messages: u64,
    lost: u64,
    early: u64,
}

impl<W: Write> Recording<W> {
    /// Takes all messages until the run is over, or there are enough.
    fn go(
        &mut self,
        context: &onbeat::Context,
        ends: &mut [Listener],
        count: Option<u64>,
    ) -> anyhow::Result<()> {
        let mut value = vec![0; MESSAGE_MAX.get() as usize];
        while count.is_none_or(|most| self.messages < most) {
            let ready = {
                let all: Vec<&Listener> = ends.iter().collect();
                context.select(&all, Timeout::Endless)
            };
            let Some(ready) = unless_over(ready)? else { break };
            let Some(channel) = ready else { continue };
            let end = &mut ends[channel];
            let size = end.listener().parameters().size.get() as usize;
            let Some(read) = unless_over(end.read(&mut value[..size], Timeout::None))? else {
                break;
            };
            let Some(info) = read else { continue };
            self.lost += u64::from(info.gap);
            match self.writer.message(channel, &info, &value[..size])? {
                true => self.messages += 1,
                false => self.early += 1,
            }
        }
        Ok(())
    }
}
