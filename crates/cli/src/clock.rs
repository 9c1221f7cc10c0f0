//! The verb `clock`: linuxptp configured and supervised, and whether the clock is on network time.

mod simulate;

use self::simulate::SimulateArguments;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::output::write_files;
use crate::terminal;
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{Interface, SyncAge, SyncWatch};
use onbeat_machine::timekeeping::{
    ClockScenario, Configuration, Emulated, FIRST_WORDS, Facts, Role, SOCKET, Settings, Stamping,
    Status, Supervisor, emulation, evaluate, gather, hardware_threshold, software_threshold,
};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often it is looked whether it is interrupted.
const LOOK_AGAIN: Span = Span::from_ms(20);

#[derive(Debug, Subcommand)]
pub(crate) enum ClockVerb {
    /// Writes configurations, units and command lines for ptp4l and phc2sys
    #[command(after_help = "Examples:
  onbeat clock config --scenario sms --role slave --interface eth0 --out /etc/onbeat
  onbeat clock config --scenario mbs --role master --interface eth0 --software --out clock

Scenarios: in sms a bridge is the grandmaster and hosts follow it; in mbs a host is
(docs/clock.md).")]
    Config(ConfigArguments),
    /// Runs ptp4l and phc2sys and reports whether the clock is synchronised
    #[command(after_help = "Examples:
  onbeat clock run --scenario sms --role slave --interface eth0 --out clock
  onbeat clock run --scenario mbs --role slave --interface eth0 --software --free-running \\
      --out clock --duration 1min --json

Never steers the machine's clock in another network namespace or on a virtual interface.")]
    Run(RunArguments),
    /// Checks once whether the clock is synchronised
    #[command(after_help = "Examples:
  onbeat clock status --within 1us
  onbeat clock status --interface eth0 --json

Exits with 0 if the clock is in sync, with 1 and the reasons if it is not.")]
    Status(StatusArguments),
    /// Simulates gPTP over a chain of bridges
    #[command(after_help = "Examples:
  onbeat clock simulate --hops 7
  onbeat clock simulate --hops 100 --timestamping coarse --seed 8 --json")]
    Simulate(SimulateArguments),
}

#[derive(Debug, Args)]
struct NodeArguments {
    /// Scenario, which says where the grandmaster is
    #[arg(long)]
    scenario: ScenarioName,
    /// Role of this node
    #[arg(long)]
    role: RoleName,
    /// Interface of this node; may be repeated for a bridge
    #[arg(long, value_name = "NAME", required = true)]
    interface: Vec<String>,
    /// Uses timestamps of the kernel instead of the interface
    #[arg(long)]
    software: bool,
    /// PTP domain
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=127))]
    domain: u8,
    /// Largest accepted link delay, as in 800ns [default: 800ns, with --software 20ms]
    #[arg(long, value_name = "TIME", value_parser = span)]
    threshold: Option<Span>,
    /// Only measures: sets no clock
    #[arg(long)]
    free_running: bool,
    /// Output directory
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    node: NodeArguments,
    /// Socket of ptp4l
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: String,
    /// Prints JSON for machines
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    node: NodeArguments,
    /// Socket of ptp4l [default: /var/run/ptp4l, free-running `ptp4l` in --out]
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
    /// Largest accepted clock error
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = span)]
    within: Span,
    /// Duration [default: until interrupted]
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration)]
    duration: Option<Span>,
    /// Prints a line of JSON each second (docs/clock.md)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Interface whose link and hardware clock are checked too; may be repeated
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Socket of ptp4l
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
    /// PTP domain
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=127))]
    domain: u8,
    /// Largest accepted clock error
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = span)]
    within: Span,
    /// Checks what ptp4l measures: no clock is set
    #[arg(long)]
    free_running: bool,
    /// Prints JSON for machines (docs/clock.md)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScenarioName {
    /// Slave, master, slave: a bridge is the grandmaster
    Sms,
    /// Master, bridge, slave: a host is the grandmaster
    Mbs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Grandmaster
    Master,
    /// Follows the grandmaster
    Slave,
}

/// Configures, supervises or looks.
pub(crate) fn clock(what: &ClockVerb) -> anyhow::Result<Exit> {
    match what {
        ClockVerb::Config(arguments) => config(arguments),
        ClockVerb::Run(arguments) => run(arguments),
        ClockVerb::Status(arguments) => status(arguments),
        ClockVerb::Simulate(arguments) => simulate::show(arguments),
    }
}

fn configuration(
    node: &NodeArguments,
    steers: bool,
    socket: String,
) -> anyhow::Result<Configuration> {
    let (stamping, usual) = match node.software {
        true => (Stamping::Software, software_threshold()),
        false => (Stamping::Hardware, hardware_threshold()),
    };
    let settings = Settings {
        scenario: match node.scenario {
            ScenarioName::Sms => ClockScenario::Sms,
            ScenarioName::Mbs => ClockScenario::Mbs,
        },
        role: match node.role {
            RoleName::Master => Role::Master,
            RoleName::Slave => Role::Slave,
        },
        interfaces: node.interface.clone(),
        stamping,
        domain: node.domain,
        threshold: node.threshold.unwrap_or(usual),
        steers,
        socket,
    };
    Configuration::new(settings).map_err(|error| WrongArgument(error.to_string()).into())
}

fn config(arguments: &ConfigArguments) -> anyhow::Result<Exit> {
    let ConfigArguments { node, socket, json } = arguments;
    let configuration = configuration(node, !node.free_running, socket.clone())?;
    let out = std::path::absolute(&node.out).context("--out")?;
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let before = out.join("ptp4l.cfg");
    let text = input::text_if_there(&before, input::LIST_OCTETS).map_err(anyhow::Error::msg)?;
    if text.is_some_and(|text| !text.starts_with(FIRST_WORDS)) {
        bail!("{} is not of `onbeat clock`: it is not replaced", before.display());
    }
    let files = configuration.files(&out);
    let paths: Vec<_> = files.iter().map(|file| out.join(file.name)).collect();
    let named: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    write_files(&named.into_iter().zip(files.iter().map(|f| f.text.clone())).collect::<Vec<_>>())?;
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    if *json {
        let value = json!({ "format": "onbeat-clock-config", "version": 1, "files": names });
        terminal::print(value);
    } else {
        terminal::print(names.join("\n"));
    }
    Ok(Exit::Fine)
}

fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let RunArguments { node, socket, within, duration, json } = arguments;
    for name in &node.interface {
        let interface = Interface::named(name).with_context(|| format!("interface `{name}`"))?;
        if !node.software && interface.hardware_clock()?.is_none() {
            let why = format!("interface `{name}` has no PTP hardware clock: add --software");
            return Err(WrongArgument(why).into());
        }
    }
    let emulated = emulation(&Machine::this(), &node.interface);
    let steers = !node.free_running && emulated.is_none();
    if let Some(why) = emulated.filter(|_| !node.free_running) {
        terminal::say(format_args!("onbeat: {why}: no clock is set, ptp4l only measures"));
    }
    let out = std::path::absolute(&node.out).context("--out")?;
    let usual = if steers { SOCKET.to_owned() } else { out.join("ptp4l").display().to_string() };
    let configuration = configuration(node, steers, socket.clone().unwrap_or(usual))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut supervisor = Supervisor::start(configuration, &out, *within)?;
    let begun = MonoTime::now();
    let mut told: Option<String> = None;
    loop {
        let report = supervisor.look()?;
        let next = MonoTime::now() + supervisor.look_again();
        for note in &report.notes {
            terminal::say(format_args!("onbeat: {note}"));
        }
        if *json && report.noted {
            terminal::print(document(&report.facts, &report.status, *within));
        } else if !*json {
            let kind = report.status.kind();
            if told.as_ref() != Some(&kind) {
                terminal::print(text(&report.facts, &report.status, *within));
                told = Some(kind);
            }
        }
        // A look may take longer than the time to the next one: it is asked at least once.
        loop {
            let over = duration.is_some_and(|duration| MonoTime::now() - begun >= duration);
            if interrupted.load(Ordering::Relaxed) || over {
                let fine = report.status.in_sync();
                return Ok(if fine { Exit::Fine } else { Exit::Description });
            }
            if MonoTime::now() >= next {
                break;
            }
            pause(LOOK_AGAIN.min(next - MonoTime::now()));
        }
    }
}

fn status(arguments: &StatusArguments) -> anyhow::Result<Exit> {
    let StatusArguments { interface, socket, domain, within, free_running, json } = arguments;
    for name in interface {
        Interface::named(name).with_context(|| format!("interface `{name}`"))?;
    }
    let machine = Machine::this();
    // Where it is not known whether this is the machine's own network, its clock is meant.
    let emulated = emulation(&machine, interface);
    let steered = !free_running && matches!(emulated, None | Some(Emulated::NotKnown));
    let mut watch = SyncWatch::default();
    let facts = gather(&machine, interface, Path::new(socket), *domain, steered, &mut watch)
        .context("the kernel's clock")?;
    let status = evaluate(&facts, *within);
    if *json {
        terminal::print(document(&facts, &status, *within));
    } else {
        terminal::print(text(&facts, &status, *within));
    }
    Ok(if status.in_sync() { Exit::Fine } else { Exit::Description })
}

/// What a person is told.
fn text(facts: &Facts, status: &Status, within: Span) -> String {
    let mut lines = Vec::new();
    let error = status.error.map(|error| format!(", the clock is wrong by {error}"));
    let unmeasured = match status.in_sync() {
        true => ", this clock is the grandmaster: its time is the network's, nothing is measured",
        false => "",
    };
    let error = error.unwrap_or_else(|| unmeasured.to_owned());
    lines.push(match status.in_sync() {
        true => format!("in sync within {within}{error}"),
        false => "not in sync".to_owned(),
    });
    lines.extend(status.reasons.iter().map(|reason| format!("  {reason}")));
    if let Some(survey) = &facts.survey {
        let own = if survey.has_grandmaster { "" } else { " (this clock)" };
        lines.push(format!("  grandmaster {}{own}", survey.grandmaster));
        for port in &survey.ports {
            let delay = if port.peer_to_peer { port.peer_delay } else { survey.path_delay };
            let (number, state) = (port.number, port.state);
            lines.push(format!("  port {number} is {state}, {delay} from its neighbour"));
        }
    }
    if !facts.steered {
        lines.push("  free-running: this machine's clock is not set".to_owned());
    }
    lines.join("\n")
}

/// The same for machines.
fn document(facts: &Facts, status: &Status, within: Span) -> Value {
    let reasons: Vec<_> = status.reasons.iter().map(ToString::to_string).collect();
    let ns = |span: Option<Span>| span.map(Span::as_ns);
    let survey = facts.survey.as_ref().map(|survey| {
        let ports = survey.ports.iter().map(|port| {
            json!({
                "number": port.number,
                "state": port.state.to_string(),
                "peer_delay_ns": port.peer_delay.as_ns(),
                "threshold_ns": port.capable.map(|(threshold, _)| threshold.as_ns()),
                "as_capable": port.capable.map(|(_, capable)| capable),
            })
        });
        json!({
            "clock": survey.identity.to_string(),
            "grandmaster": survey.grandmaster.to_string(),
            "is_grandmaster": !survey.has_grandmaster,
            "steps_removed": survey.steps_removed,
            "offset_ns": survey.offset.as_ns(),
            "path_delay_ns": survey.delay().as_ns(),
            "utc_offset_s": survey.utc_offset,
            "utc_offset_valid": survey.utc_offset_valid,
            "ptp_timescale": survey.ptp_timescale,
            "time_traceable": survey.time_traceable,
            "ports": ports.collect::<Vec<_>>(),
        })
    });
    json!({
        "format": "onbeat-clock",
        "version": 1,
        "in_sync": status.in_sync(),
        "within_ns": within.as_ns(),
        "error_ns": ns(status.error),
        "sync_age_ns": match facts.sync {
            SyncAge::AtMost(age) => Some(age.as_ns()),
            SyncAge::Never | SyncAge::Unknown => None,
        },
        "steered": facts.steered,
        "tai_offset_s": facts.tai_offset.as_ns() / 1_000_000_000,
        "reasons": reasons,
        "ptp4l": survey,
    })
}

fn span(text: &str) -> Result<Span, String> {
    let wrong = || "expected a time such as 800ns, 1us or 20ms".to_owned();
    let duration = humantime::parse_duration(text).map_err(|_| wrong())?;
    let ns = i64::try_from(duration.as_nanos()).map_err(|_| wrong())?;
    let span = Span::from_ns(ns);
    (span > Span::ZERO && span <= Span::from_s(3_600)).then_some(span).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_times_with_a_unit() {
        assert_eq!(span("800ns"), Ok(Span::from_ns(800)));
        assert_eq!(span("1us"), Ok(Span::from_us(1)));
        for bad in ["", "0us", "1", "2h", "-1us"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
