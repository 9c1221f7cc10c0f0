//! The verb `srp`: stream reservation on interfaces, as a host's service, as a bridge, and shown.

mod status;

use self::status::StatusArguments;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Context;
use clap::{Args, Subcommand};
use onbeat::clock::MonoTime;
use onbeat::interface::{ChannelTable, TABLE_OCTETS};
use onbeat_machine::srp::{BridgeEvent, BridgeRole, ServeSettings, SrpService};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often it is looked whether it is interrupted.
const LOOK_AGAIN: Span = Span::from_ms(50);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SrpArguments {
    #[command(subcommand)]
    what: Option<SrpVerb>,
    #[command(flatten)]
    status: StatusArguments,
}

#[derive(Debug, Subcommand)]
enum SrpVerb {
    /// Shows the state of every stream, and why one failed
    #[command(after_help = status::HELP)]
    Status(StatusArguments),
    /// Reserves for the programs of this host, until interrupted
    #[command(after_help = "Examples:
  onbeat srp serve --interface eth0
  onbeat srp serve --interface eth0 --table tables/talker.channels
  onbeat srp serve --interface eth0 --rate 100Mb/s --user 1000

Needs the right to open packet sockets (CAP_NET_RAW). Where no neighbour speaks MSRP, talkers get
their share of this host's own port (docs/reservation.md).")]
    Serve(ServeArguments),
    /// Is a bridge: registers, admits and propagates, until interrupted
    #[command(after_help = "Examples:
  ip link add br0 type bridge; ip link set eth0 master br0; ip link set eth1 master br0
  onbeat srp bridge eth0 eth1

A Linux bridge of the same interfaces forwards the frames. Reservations are accounted and shown, one
line for each change; no queueing discipline is set (docs/reservation.md).")]
    Bridge(BridgeArguments),
}

#[derive(Debug, Args)]
struct ServeArguments {
    /// Interface whose reservations it makes
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// Table of this host's channels: what its talkers need is their share of the port
    /// [default: 75 % of the rate]
    #[arg(long, value_name = "HOST.channels")]
    table: Option<PathBuf>,
    /// Rate of the link, as in 100Mb/s [default: as the driver says]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<BitRate>,
    /// User who may ask, by number, beside root and the service's own; may be repeated
    #[arg(long, value_name = "UID")]
    user: Vec<u32>,
}

#[derive(Debug, Args)]
struct BridgeArguments {
    /// Interfaces that are its ports
    #[arg(value_name = "INTERFACE", required = true, num_args = 2..)]
    interfaces: Vec<String>,
    /// Rate of the links, as in 100Mb/s [default: as the drivers say]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<BitRate>,
    /// Prints a line of JSON for each change (docs/cli.md)
    #[arg(long)]
    json: bool,
    /// Duration [default: until interrupted]
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration)]
    duration: Option<Span>,
}

/// A rate such as `100Mb/s` or `1Gb/s`.
fn rate(text: &str) -> Result<BitRate, String> {
    let wrong = || "expected a rate such as 100Mb/s or 1Gb/s".to_owned();
    let number = text.strip_suffix("b/s").ok_or_else(wrong)?.trim_end();
    let (number, unit) = match number.char_indices().last() {
        Some((at, 'k')) => (&number[..at], 1_000),
        Some((at, 'M')) => (&number[..at], 1_000_000),
        Some((at, 'G')) => (&number[..at], 1_000_000_000),
        _ => (number, 1),
    };
    let bps = number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bps.filter(|bps| (1_000..=1_000_000_000_000).contains(bps))
        .map(BitRate::from_bps)
        .ok_or_else(wrong)
}

/// Shows, serves, or is a bridge.
pub(crate) fn srp(arguments: &SrpArguments) -> anyhow::Result<Exit> {
    match &arguments.what {
        None => status::status(&arguments.status),
        Some(SrpVerb::Status(arguments)) => status::status(arguments),
        Some(SrpVerb::Serve(arguments)) => serve(arguments),
        Some(SrpVerb::Bridge(arguments)) => bridge(arguments),
    }
}

/// Becomes true when somebody interrupts the command.
pub(crate) fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// Reads the table of a host's channels.
pub(crate) fn read_table(path: &Path) -> anyhow::Result<ChannelTable> {
    let shown = || path.display().to_string();
    let octets = onbeat::regular::read(path, TABLE_OCTETS).with_context(shown)?;
    let text = String::from_utf8(octets).with_context(shown)?;
    text.parse().with_context(shown)
}

fn serve(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    let ServeArguments { interface, table, rate, user } = arguments;
    let settings = ServeSettings {
        interface: interface.clone(),
        rate: *rate,
        table: table.as_deref().map(read_table).transpose()?,
        users: user.clone(),
    };
    let interrupted = interrupted()?;
    let mut service = SrpService::open(&settings)?;
    terminal::say(format_args!("onbeat: reserves for programs on `{interface}`"));
    while !interrupted.load(Ordering::Relaxed) {
        service.step(LOOK_AGAIN)?;
    }
    service.close();
    Ok(Exit::Fine)
}

fn bridge(arguments: &BridgeArguments) -> anyhow::Result<Exit> {
    let BridgeArguments { interfaces, rate, json, duration } = arguments;
    let interrupted = interrupted()?;
    let mut bridge = BridgeRole::open(interfaces, *rate)?;
    terminal::say(format_args!(
        "onbeat: bridge {} on {}: accounts only, no queueing discipline is set",
        bridge.identifier(),
        interfaces.join(", ")
    ));
    let begun = MonoTime::now();
    while !interrupted.load(Ordering::Relaxed)
        && duration.is_none_or(|duration| MonoTime::now() - begun < duration)
    {
        for event in bridge.step(LOOK_AGAIN)? {
            if *json {
                terminal::print(event_json(&event));
            } else {
                terminal::print(event_text(&event));
            }
        }
    }
    Ok(Exit::Fine)
}

fn event_text(event: &BridgeEvent) -> String {
    match event {
        BridgeEvent::Reserved { interface, class, rate } => {
            format!("{interface}: class {class:?} reserves {rate}")
        }
        BridgeEvent::Forwarded { stream, destination, vid, interfaces } => {
            let to = match interfaces.is_empty() {
                true => "is not reserved any more".to_owned(),
                false => format!("is reserved to {}", interfaces.join(", ")),
            };
            format!("stream {} ({destination}, VLAN {vid}) {to}", status::stream(*stream))
        }
        BridgeEvent::Link { interface, is_up } => {
            format!("{interface}: the link {}", if *is_up { "is up" } else { "is down" })
        }
    }
}

fn event_json(event: &BridgeEvent) -> Value {
    match event {
        BridgeEvent::Reserved { interface, class, rate } => json!({
            "event": "reserved", "interface": interface,
            "class": format!("{class:?}"), "rate_bps": rate.as_bps(),
        }),
        BridgeEvent::Forwarded { stream, destination, vid, interfaces } => json!({
            "event": "forwarded", "stream_id": status::stream(*stream),
            "destination": destination.to_string(), "vlan": vid, "interfaces": interfaces,
        }),
        BridgeEvent::Link { interface, is_up } => {
            json!({ "event": "link", "interface": interface, "up": is_up })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_and_limits() {
        assert_eq!(rate("100Mb/s"), Ok(BitRate::from_mbps(100)));
        assert_eq!(rate("1 Gb/s"), Ok(BitRate::from_mbps(1_000)));
        assert_eq!(rate("64000b/s"), Ok(BitRate::from_bps(64_000)));
        for bad in ["", "100", "100M", "-1Mb/s", "0b/s", "1.5Gb/s", "99999999999999Gb/s"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
