//! The verb `echo`.

use super::form::{Form, TypeArgument, octets_instead};
use super::line::{LineFormat, heading, line};
use super::{PlaceArguments, unless_over, unless_over_before};
use crate::exit::Exit;
use crate::terminal;
use clap::Args;
use onbeat::{ANY_SIZE, Timeout};

pub(crate) const ECHO: &str = "Examples:
  onbeat echo joint_targets --interface eth0 --table told/arm.channels
  onbeat echo joint_targets --type messages.h:targets --json --count 10
  ONBEAT_INTERFACE=eth0 ONBEAT_SYSTEM=told/arm.channels onbeat echo joint_targets

The host must be a listener of the channel. In a run it is the command of a [[program]]:
  command = [\"onbeat\", \"echo\", \"joint_targets\"]
One line per message: capture time in seconds, number, message (docs/messages.md). Fields are shown
of the struct that the description names as the channel's `type`, or of --type.";

#[derive(Debug, Args)]
pub(crate) struct EchoArguments {
    /// Channel
    channel: String,
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    kind: TypeArgument,
    /// Prints hexadecimal digits, whatever struct the messages are
    #[arg(long, conflicts_with = "named")]
    octets: bool,
    /// Ends after this many messages [default: at the end of the run, or when interrupted]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Prints a line of JSON for each message
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Prints CSV
    #[arg(long)]
    csv: bool,
}

/// Prints messages until the run is over.
pub(crate) fn echo(arguments: &EchoArguments) -> anyhow::Result<Exit> {
    let mut form = match arguments.octets {
        true => Form::Octets,
        false => arguments.kind.form(&arguments.channel)?,
    };
    let format = match arguments {
        EchoArguments { json: true, .. } => LineFormat::Json,
        EchoArguments { csv: true, .. } => LineFormat::Csv,
        _ => LineFormat::Text,
    };
    let (context, _) = arguments.place.join()?;
    let known = arguments.kind.is_known_to_run();
    let size = if known { ANY_SIZE } else { form.size() };
    let end = context.open_listener(&arguments.channel, size);
    let Some(mut end) = unless_over_before(end)? else { return Ok(Exit::Fine) };
    let size = end.listener().parameters().size;
    if known && form.size() != ANY_SIZE && form.size() != size {
        let (has, needs) = (form.size().get(), size.get());
        let why = format!("the struct has {has} octets, messages have {needs}");
        octets_instead(&arguments.channel, &why);
        form = Form::Octets;
    }
    let mut value = vec![0; size.get() as usize];
    if let Some(heading) = heading(format, &form)
        && !terminal::print_to_reader(&heading)?
    {
        return Ok(Exit::Fine);
    }
    if unless_over_before(context.start())?.is_none() {
        return Ok(Exit::Fine);
    }
    let mut count = 0;
    while arguments.count.is_none_or(|most| count < most) {
        let Some(read) = unless_over(end.read(&mut value, Timeout::Endless))? else { break };
        let Some(info) = read else { continue };
        count += 1;
        if !terminal::print_to_reader(&line(format, &form, &info, &value))? {
            break; // whoever looked has gone
        }
    }
    drop(end);
    context.leave();
    Ok(Exit::Fine)
}
