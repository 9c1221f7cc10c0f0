//! The network that a run is to have.

use crate::arguments::{ChosenNetwork, RunArguments, Time};
use crate::terminal;
use anyhow::bail;
use onbeat::interface::InterfaceOptions;
use onbeat_model::system::{NodeId, NodeKind, RunSettings, Scenario, System, TransportKind};
use onbeat_model::time::Span;
use onbeat_run::coordinator::{self, NetworkKind, StartAt};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

/// An argument that does not fit the description, or the others.
#[derive(Debug)]
pub(crate) struct WrongArgument(pub(crate) String);

impl std::fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for WrongArgument {}

/// Says where `--stamps` has no effect.
pub(crate) fn stamped(transport: TransportKind, arguments: &RunArguments) {
    if arguments.stamps && transport == TransportKind::Xdp {
        eprintln!(
            "onbeat: --stamps has no effect with AF_XDP: frames do not pass the kernel's queues, \
             and nobody notes when they leave"
        );
    }
}

/// How the arguments have interfaces used.
pub(crate) fn options(arguments: &RunArguments) -> InterfaceOptions {
    InterfaceOptions {
        follow_schedule: arguments.poll_expected,
        sent_stamps: arguments.stamps,
        ..InterfaceOptions::default()
    }
}

/// What the arguments choose.
pub(crate) fn network(system: &System, arguments: &RunArguments) -> anyhow::Result<NetworkKind> {
    let on_interface = arguments.interface.as_ref().zip(arguments.host.as_ref());
    if arguments.network == ChosenNetwork::Emulated && on_interface.is_none() {
        let flags = [
            (arguments.transport.is_some(), "--transport"),
            (arguments.poll_expected, "--poll-expected"),
            (arguments.stamps, "--stamps"),
        ];
        let Some((_, flag)) = flags.into_iter().find(|(given, _)| *given) else {
            return Ok(NetworkKind::Emulated);
        };
        let why = format!(
            "{flag} is for --network netns and --interface: the emulated network \
                           has neither sockets nor schedules to follow, and knows when frames leave"
        );
        bail!(WrongArgument(why));
    }
    if matches!(arguments.time, Some(Time::Virtual)) {
        let why = "only the emulated network has virtual time: leave out --time, or --network and \
                   --interface";
        bail!(WrongArgument(why.to_owned()));
    }
    let transport = arguments.transport.map_or(TransportKind::Packet, TransportKind::from);
    let options = options(arguments);
    stamped(transport, arguments);
    let Some((interface, host)) = on_interface else {
        return Ok(NetworkKind::Namespaces { transport, options });
    };
    let host = host_named(system, host)?;
    let epoch_ns = arguments.start.unwrap_or(StartAt::NextMinute).network_ns();
    if coordinator::until(epoch_ns) <= Span::ZERO {
        bail!(WrongArgument(
            "--start is over: all hosts need the same start, in the future".into()
        ));
    }
    Ok(NetworkKind::Interface {
        host,
        name: interface.clone(),
        transport,
        options,
        epoch_ns,
        clock_offset: Span::ZERO,
        clock_spread: Span::ZERO,
        noise: BTreeMap::new(),
    })
}

/// The scenario of that name.
pub(crate) fn scenario<'a>(system: &'a System, name: &str) -> anyhow::Result<&'a Scenario> {
    let Some(found) = system.scenarios.iter().find(|s| s.name == name) else {
        let known: Vec<_> = system.scenarios.iter().map(|s| s.name.as_str()).collect();
        let known = match known.is_empty() {
            true => "the description has none".to_owned(),
            false => format!("there are: {}", known.join(", ")),
        };
        bail!(WrongArgument(format!("there is no scenario `{name}`; {known}")));
    };
    Ok(found)
}

pub(crate) fn host_named(system: &System, name: &str) -> anyhow::Result<NodeId> {
    let hosts = || {
        let nodes = (0..).map(NodeId).zip(&system.nodes);
        nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Host(_)))
    };
    if let Some((id, _)) = hosts().find(|(_, node)| node.name == name) {
        return Ok(id);
    }
    let known: Vec<_> = hosts().map(|(_, node)| node.name.as_str()).collect();
    let known = known.join(", ");
    bail!(WrongArgument(format!("there is no host `{name}`; there are: {known}")))
}

/// Whoever asks for reservations on a network of the kernel is told that there are none. That they
/// are the default in a description is not asking.
pub(crate) fn without_reservations(scenario: &str, settings: &RunSettings) -> anyhow::Result<()> {
    if !settings.protected || !settings.asks_protection {
        return Ok(());
    }
    let who = match scenario {
        "" => "[run]".to_owned(),
        name => format!("scenario `{name}`"),
    };
    bail!(WrongArgument(format!(
        "{who} asks for reservations (protected = true), which a real network does not get from \
         Onbeat yet: choose a scenario without them, or add --unprotected"
    )))
}

/// How late stations on networks of the kernel may be, if the description does not say.
const SLOT_ERROR: Span = Span::from_us(100);

/// The settings of a run whose stations are software: these are late now and then.
pub(crate) fn with_slot_errors(settings: RunSettings) -> RunSettings {
    let slot_error = match settings.slot_error {
        Span::ZERO => SLOT_ERROR,
        described => described,
    };
    RunSettings { slot_error, ..settings }
}

/// What stations do not take of how programs reach a network.
pub(crate) fn by_stations(network: &NetworkKind) -> anyhow::Result<()> {
    let transport = match network {
        NetworkKind::Emulated => return Ok(()),
        NetworkKind::Namespaces { transport, .. } | NetworkKind::Interface { transport, .. } => {
            *transport
        }
    };
    if transport != TransportKind::Packet {
        let why = "--transport is for --backend bridges: stations send frames themselves";
        bail!(WrongArgument(why.to_owned()));
    }
    Ok(())
}

/// Says when a run on an interface starts: whoever starts the other hosts' needs to know.
pub(crate) fn announce(epoch_ns: i64) {
    let utc = u64::try_from(coordinator::utc_of(epoch_ns)).unwrap_or(0);
    let utc = humantime::format_rfc3339(UNIX_EPOCH + Duration::from_nanos(utc));
    let left = coordinator::until(epoch_ns).as_ns() / 1_000_000_000;
    terminal::say(format_args!("onbeat: the run starts at {utc} (UTC), in {left} s"));
}
