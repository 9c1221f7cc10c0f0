//! The verb `noise`: UDP noise on a real network, and its sink.

use crate::arguments::duration;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Context;
use clap::{Args, Subcommand};
use onbeat::clock::{MonoTime, pause};
use onbeat_machine::noise::{
    NoiseError, PORT, RATE_MAX, Receiving, SIZE_MAX, SIZE_MIN, Sender, Sending, Sink, THREADS_MAX,
    wire_octets,
};
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often it says what it did.
const SECOND: Span = Span::from_s(1);
/// How often it looks whether it is interrupted.
const LOOK_AGAIN: Span = Span::from_ms(20);

#[derive(Debug, Subcommand)]
pub(crate) enum NoiseVerb {
    /// Sends UDP datagrams at a rate, continuously or in bursts
    #[command(after_help = "Examples:
  onbeat noise send eth1 --rate 500mbit
  onbeat noise send --to 10.0.0.2 --rate 900mbit --on 1s --off 1s --duration 1min
  onbeat noise send eth1 --to 10.0.0.2 --rate 9gbit --threads 4 --csv noise.csv

The rate counts headers, preamble and gap, and holds while noise is on. Refuses an interface that
carries a default route unless --force is given (docs/noise.md).")]
    Send(SendArguments),
    /// Counts received datagrams
    #[command(after_help = "Examples:
  onbeat noise sink eth1
  onbeat noise sink --address 10.0.0.2 --duration 1min --json")]
    Sink(SinkArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    /// Sending interface [default: the one that leads to --to]
    #[arg(value_name = "INTERFACE", required_unless_present = "to")]
    interface: Option<String>,
    /// Destination address [default: the group 239.255.79.78, which stays on the link]
    #[arg(long, value_name = "ADDRESS")]
    to: Option<IpAddr>,
    /// Destination UDP port
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Rate on the wire, as in 500mbit, 64kbit or 1gbit
    #[arg(long, value_parser = rate)]
    rate: BitRate,
    /// Octets of each datagram, without headers [default: 1470, over IPv6 1450]
    #[arg(long, value_name = "OCTETS",
          value_parser = clap::value_parser!(u32).range(i64::from(SIZE_MIN)..=i64::from(SIZE_MAX)))]
    size: Option<u32>,
    /// Length of a burst, as in 1s or 500ms
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "off")]
    on: Option<Span>,
    /// Pause between two bursts
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "on")]
    off: Option<Span>,
    /// Number of sending threads
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(THREADS_MAX)))]
    threads: u16,
    /// Lets the kernel or the interface segment packets into datagrams (docs/noise.md)
    #[arg(long)]
    offload: bool,
    /// Sends even if the interface carries a default route
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Args)]
pub(crate) struct SinkArguments {
    /// Receiving interface; joins the group 239.255.79.78 there [default: all]
    #[arg(value_name = "INTERFACE")]
    interface: Option<String>,
    /// Local address [default: any of IPv4]
    #[arg(long)]
    address: Option<IpAddr>,
    /// Local UDP port
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    telling: Telling,
}

/// How long, and how it is told.
#[derive(Debug, Args)]
struct Telling {
    /// Duration [default: until interrupted]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Span>,
    /// CSV file with a line per second
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Prints a line of JSON each second (docs/noise.md)
    #[arg(long)]
    json: bool,
}

/// What was counted up to some instant.
#[derive(Clone, Copy, Default)]
struct Counts {
    datagrams: u64,
    payload_octets: u64,
    wire_octets: u64,
    /// As the role's [`Role::more`] names them.
    more: [u64; 2],
}

/// Which of the two it is.
struct Role {
    name: &'static str,
    /// What is counted beside datagrams.
    more: &'static [&'static str],
}

const SEND: Role = Role { name: "send", more: &["skipped"] };
const SINK: Role = Role { name: "sink", more: &["lost", "overrun"] };

/// Makes noise, or counts it.
pub(crate) fn noise(what: &NoiseVerb) -> anyhow::Result<Exit> {
    match what {
        NoiseVerb::Send(arguments) => send(arguments),
        NoiseVerb::Sink(arguments) => sink(arguments),
    }
}

fn send(arguments: &SendArguments) -> anyhow::Result<Exit> {
    // A frame of Ethernet has room for it, with what its headers take.
    let usual = if arguments.to.is_some_and(|to| to.is_ipv6()) { 1_450 } else { 1_470 };
    let size = Octets::new(arguments.size.unwrap_or(usual));
    let sending = Sending {
        interface: arguments.interface.clone(),
        to: arguments.to,
        port: arguments.port,
        size,
        rate: arguments.rate,
        on: arguments.on.unwrap_or(SECOND),
        off: arguments.off.unwrap_or(Span::ZERO),
        threads: arguments.threads,
        offload: arguments.offload,
        force: arguments.force,
    };
    let log = Log::new(&SEND, &arguments.telling)?;
    let sender = Sender::start(&sending).map_err(wrong)?;
    let to = sender.to();
    terminal::say(format_args!(
        "onbeat: noise to {to} by {}: {} of the wire, datagrams of {} octets",
        sender.interface(),
        arguments.rate,
        size.get()
    ));
    let counts = |sent: onbeat_machine::noise::Sent| Counts {
        datagrams: sent.datagrams,
        payload_octets: sent.datagrams * u64::from(size.get()),
        wire_octets: sent.datagrams * u64::from(wire_octets(size, to.is_ipv6()).get()),
        more: [sent.skipped, 0],
    };
    log.run(|| Ok(counts(sender.sent())))?.total(counts(sender.finish()))
}

fn sink(arguments: &SinkArguments) -> anyhow::Result<Exit> {
    let receiving = Receiving {
        interface: arguments.interface.clone(),
        address: arguments.address,
        port: arguments.port,
    };
    let log = Log::new(&SINK, &arguments.telling)?;
    let sink = Sink::start(&receiving).map_err(wrong)?;
    terminal::say(format_args!("onbeat: noise is counted at {}", sink.at()));
    let counts = |received: onbeat_machine::noise::Received| Counts {
        datagrams: received.datagrams,
        payload_octets: received.payload_octets,
        wire_octets: received.wire_octets,
        more: [received.lost, received.overrun],
    };
    let log = log.run(|| match sink.broken() {
        Some(why) => Err(anyhow::anyhow!("receiving: {why}")),
        None => Ok(counts(sink.received())),
    })?;
    log.total(counts(sink.finish()))
}

/// What the user can put right with other arguments is a wrong argument.
fn wrong(error: NoiseError) -> anyhow::Error {
    match error {
        NoiseError::DefaultRoute(_) | NoiseError::TooLong { .. } => {
            WrongArgument(error.to_string()).into()
        }
        other => other.into(),
    }
}

/// Where a line goes each second.
struct Log<'a> {
    role: &'static Role,
    telling: &'a Telling,
    csv: Option<(&'a Path, File)>,
    interrupted: Arc<AtomicBool>,
    begun: MonoTime,
}

impl<'a> Log<'a> {
    fn new(role: &'static Role, telling: &'a Telling) -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self { role, telling, csv: None, interrupted, begun: MonoTime::now() })
    }

    /// Tells each second what was counted since the last, until it is over.
    fn run(mut self, counts: impl Fn() -> anyhow::Result<Counts>) -> anyhow::Result<Self> {
        if let Some(path) = &self.telling.csv {
            let file = File::create(path).with_context(|| path.display().to_string())?;
            self.csv = Some((path.as_path(), file));
        }
        let heading = ["datagrams", "goodput Mb/s", "wire Mb/s"].into_iter();
        if !self.telling.json {
            let heading = heading.chain(self.role.more.iter().copied());
            terminal::print(line("second", heading.map(str::to_owned)));
        }
        self.csv_line(&format!(
            "second,elapsed_ns,datagrams,payload_octets,wire_octets,goodput_bps,wire_bps,{}",
            self.role.more.join(",")
        ))?;
        self.begun = MonoTime::now();
        let end = self.telling.duration.map(|duration| self.begun + duration);
        let (mut then, mut before, mut second) = (self.begun, Counts::default(), 1);
        loop {
            let due = self.begun + SECOND * second;
            let until = end.map_or(due, |end| end.min(due));
            while MonoTime::now() < until && !self.is_over() {
                pause((until - MonoTime::now()).min(LOOK_AGAIN));
            }
            let (now, counted) = (MonoTime::now(), counts()?);
            if now >= due {
                self.tell(Some(second), now - then, counted.since(&before))?;
                (then, before, second) = (now, counted, second + 1);
            }
            if self.is_over() || end.is_some_and(|end| now >= end) {
                return Ok(self);
            }
        }
    }

    /// Whether no more of it is wanted.
    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn total(mut self, counts: Counts) -> anyhow::Result<Exit> {
        let elapsed = MonoTime::now() - self.begun;
        self.tell(None, elapsed, counts)?;
        Ok(Exit::Fine)
    }

    /// Tells of one second, or of all.
    fn tell(&mut self, second: Option<i64>, elapsed: Span, counts: Counts) -> anyhow::Result<()> {
        let Counts { datagrams, payload_octets, wire_octets, more } = counts;
        let (goodput, wire) = (rate_of(payload_octets, elapsed), rate_of(wire_octets, elapsed));
        let more = self.role.more.iter().zip(more);
        if self.telling.json {
            let mut value = json!({
                "format": "onbeat-noise",
                "version": 1,
                "role": self.role.name,
                "second": second,
                "elapsed_ns": elapsed.as_ns(),
                "datagrams": datagrams,
                "payload_octets": payload_octets,
                "wire_octets": wire_octets,
                "goodput_bps": goodput,
                "wire_bps": wire,
            });
            for (name, count) in more.clone() {
                value[*name] = count.into();
            }
            terminal::print(value);
        } else {
            let name = second.map_or("total".to_owned(), |second| second.to_string());
            let cells = [datagrams.to_string(), mbps(goodput), mbps(wire)].into_iter();
            let cells = cells.chain(more.clone().map(|(_, count)| count.to_string()));
            terminal::print(line(&name, cells));
        }
        if let Some(second) = second {
            let more: Vec<_> = more.map(|(_, count)| count.to_string()).collect();
            self.csv_line(&format!(
                "{second},{},{datagrams},{payload_octets},{wire_octets},{goodput},{wire},{}",
                elapsed.as_ns(),
                more.join(",")
            ))?;
        }
        Ok(())
    }

    fn csv_line(&mut self, text: &str) -> anyhow::Result<()> {
        let Some((path, file)) = &mut self.csv else { return Ok(()) };
        writeln!(file, "{text}").with_context(|| path.display().to_string())
    }
}

impl Counts {
    /// What was counted after `before`. Losses may shrink: what was missing came late.
    fn since(&self, before: &Self) -> Self {
        Self {
            datagrams: self.datagrams - before.datagrams,
            payload_octets: self.payload_octets - before.payload_octets,
            wire_octets: self.wire_octets - before.wire_octets,
            more: std::array::from_fn(|at| self.more[at].saturating_sub(before.more[at])),
        }
    }
}

fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!("{cell:>14}")).collect();
    format!("{first:>8}{cells}")
}

/// Bits per second, rounded down.
fn rate_of(octets: u64, elapsed: Span) -> u64 {
    let ns = u128::try_from(elapsed.as_ns()).unwrap_or(0).max(1);
    u64::try_from(u128::from(octets) * 8_000_000_000 / ns).unwrap_or(u64::MAX)
}

/// With one decimal place.
fn mbps(bps: u64) -> String {
    let tenths = (bps + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn rate(text: &str) -> Result<BitRate, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let factor = match unit {
        "bit" => Some(1),
        "kbit" => Some(1_000),
        "mbit" => Some(1_000_000),
        "gbit" => Some(1_000_000_000),
        _ => None,
    };
    let bps = number.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    bps.map(BitRate::from_bps)
        .filter(|rate| rate.as_bps() >= 1_000 && *rate <= RATE_MAX)
        .ok_or_else(|| {
            format!("expected a rate such as 500mbit, from 1kbit to {RATE_MAX}, in whole numbers")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_numbers_with_a_unit_and_bounded() {
        assert_eq!(rate("500mbit"), Ok(BitRate::from_mbps(500)));
        assert_eq!(rate("1Gbit"), Ok(BitRate::from_mbps(1_000)));
        assert_eq!(rate("64kbit"), Ok(BitRate::from_bps(64_000)));
        for bad in ["", "500", "mbit", "0mbit", "1.5gbit", "999bit", "401gbit", "-1mbit", "5mb"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bandwidth_is_bits_over_the_time_they_took() {
        assert_eq!(rate_of(125_000_000, SECOND), 1_000_000_000);
        assert_eq!(rate_of(125_000_000, Span::from_ms(500)), 2_000_000_000);
        assert_eq!(mbps(957_031_250), "957.0");
        assert_eq!(mbps(999_950_000), "1000.0");
    }
}
