//! The verb `deploy`: what a plan tells its devices, written to all of them or to none by NETCONF
//! (docs/deployment.md). Which request comes when is decided in `onbeat_configuration::push`.

mod client;

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::terminal;
use clap::Args;
use client::{Address, Client, Login};
use onbeat::clock::MonoTime;
use onbeat_configuration::push::{
    Action, DEVICES_MAX, Ending, Event, Failure, Push, PushDocument, PushOptions, PushState,
    PushTarget,
};
use onbeat_model::time::Span;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a node is told, behind its name: all have the first one, bridges may have the others.
const TOLD: [&str; 3] = [".yang.xml", ".filtering.yang.xml", STREAMS];
/// Streams of asynchronous and replicated channels.
const STREAMS: &str = ".streams.yang.xml";
/// What can be done for a device that lacks what this needs.
const WITHOUT_STREAMS: &str = "help: describe what the device cannot do (`elimination = false`, \
    `asynchronous = false` in `[[device]]`), and plan again (docs/devices.md)";
/// The most of such a file.
const TOLD_OCTETS: u64 = 32 << 20;
/// The port of NETCONF over SSH (RFC 6242 6).
const PORT: u16 = 830;

#[derive(Debug, Args)]
pub(crate) struct DeployArguments {
    /// Directory that `plan --deploy` wrote
    directory: PathBuf,
    /// A node of the plan, and where it is reached: br0=admin@192.0.2.7:830; may be repeated
    #[arg(long = "device", value_name = "NODE=[USER@]HOST[:PORT]", required = true,
        value_parser = device)]
    devices: Vec<ChosenDevice>,
    /// File of the private key; without it, keys of the SSH agent and of ~/.ssh are tried
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Asks for each device's password at the terminal
    #[arg(long)]
    ask_password: bool,
    /// Directory that was deployed before: its entries that the new one lacks are removed
    #[arg(long, value_name = "DIRECTORY")]
    former: Option<PathBuf>,
    /// Time after which devices go back without a confirmation; whole seconds count
    #[arg(long, value_name = "TIME", value_parser = within, default_value = "60s")]
    confirm_within: Span,
    /// Lets the devices validate, and changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// A device of `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChosenDevice {
    node: String,
    address: Address,
}

fn device(text: &str) -> Result<ChosenDevice, String> {
    let wrong = || "expected NODE=[USER@]HOST[:PORT], such as br0=admin@192.0.2.7:830".to_owned();
    let (node, shown) = text.split_once('=').ok_or_else(wrong)?;
    let (user, place) = match shown.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, shown),
    };
    // An IPv6 address is in brackets.
    let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
        Some(None) => return Err(wrong()),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(PORT), str::parse).map_err(|_| wrong())?;
    let is_file = |name: &str| !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    if !is_file(node) || host.is_empty() || user.as_deref() == Some("") || port == 0 {
        return Err(wrong());
    }
    let (shown, host) = (shown.to_owned(), host.to_owned());
    Ok(ChosenDevice { node: node.to_owned(), address: Address { shown, user, host, port } })
}

fn within(text: &str) -> Result<Span, String> {
    let span = crate::arguments::duration(text)?;
    if span < Span::from_s(1) { Err("at least 1s".to_owned()) } else { Ok(span) }
}

pub(crate) fn deploy(arguments: &DeployArguments) -> anyhow::Result<Exit> {
    let DeployArguments { devices, confirm_within, dry_run, .. } = arguments;
    let mut nodes = BTreeSet::new();
    if let Some(twice) = devices.iter().find(|device| !nodes.insert(&device.node)) {
        return Err(WrongArgument(format!("`{}` is given twice", twice.node)).into());
    }
    if devices.len() > DEVICES_MAX {
        return Err(WrongArgument(format!("there are more than {DEVICES_MAX} devices")).into());
    }
    let former = arguments.former.as_deref();
    let targets = devices.iter().map(|device| target(&arguments.directory, former, &device.node));
    let targets: Vec<PushTarget> = targets.collect::<anyhow::Result<_>>()?;
    let key = arguments.key.as_ref().map(|key| key.display().to_string());
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut client = Client::start(Login { key, asks: arguments.ask_password })?;
    let options = PushOptions { confirm_within: *confirm_within, only_try: *dry_run };
    let mut push = Push::new(&targets, options);
    let begun = MonoTime::now();
    loop {
        if interrupted.load(Ordering::Relaxed) && !push.is_interrupted() {
            push.interrupt();
        }
        let Action::Do { device, rpc, .. } = push.next(MonoTime::now() - begun) else { break };
        let answer = client.request(device, &devices[device].address, rpc.as_deref());
        push.happened(answer.unwrap_or_else(|why| Event::Lost(format!("{why:#}"))));
    }
    drop(client);
    Ok(Outcome { push: &push, arguments }.show())
}

/// What a node is told, and was told before.
fn target(directory: &Path, former: Option<&Path>, node: &str) -> anyhow::Result<PushTarget> {
    let read = |directory: &Path| {
        let paths = TOLD.iter().map(|part| directory.join(format!("{node}{part}")));
        let files = paths.filter_map(|path| {
            let text = input::text_if_there(&path, TOLD_OCTETS).transpose()?;
            Some(text.map(|text| PushDocument { name: path.display().to_string(), text }))
        });
        files.collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)
    };
    let told = read(directory)?;
    let main = directory.join(format!("{node}{}", TOLD[0])).display().to_string();
    if told.first().is_none_or(|document| document.name != main) {
        let why = format!("{main}: there is no such file, so `{node}` is told nothing");
        return Err(WrongArgument(why).into());
    }
    let former = former.map_or_else(|| Ok(Vec::new()), read)?;
    PushTarget::new(&told, &former)
        .map_err(|(name, why)| anyhow::anyhow!("{name}: it is no XML: {why}"))
}

/// What came of it.
struct Outcome<'a> {
    push: &'a Push,
    arguments: &'a DeployArguments,
}

impl Outcome<'_> {
    fn show(&self) -> Exit {
        let Self { push, arguments } = self;
        for failure in push.failures() {
            let Failure { device, step, why } = failure;
            let ChosenDevice { node, address } = &arguments.devices[*device];
            terminal::say(format_args!("onbeat: {node} ({}): {step}: {why}", address.shown));
        }
        let lacking = push.failures().iter().filter_map(|failure| failure.why.file.as_ref());
        if lacking.into_iter().any(|file| file.ends_with(STREAMS)) {
            terminal::say(format_args!("onbeat: {WITHOUT_STREAMS}"));
        }
        let ending = push.ending();
        if arguments.json {
            terminal::print(format_args!("{:#}", self.json()));
        } else {
            self.print(ending);
        }
        match ending {
            Ending::Deployed | Ending::Tried => Exit::Fine,
            Ending::Unchanged if push.is_interrupted() => Exit::Interrupted,
            Ending::Unchanged => Exit::Machine,
            Ending::Mixed => Exit::Broken,
        }
    }

    fn print(&self, ending: Ending) {
        let Self { push, arguments } = self;
        let would = if ending == Ending::Tried { "would be" } else { "was" };
        for (at, device) in arguments.devices.iter().enumerate() {
            if matches!(ending, Ending::Deployed | Ending::Tried) {
                for path in push.removed(at) {
                    terminal::print(format_args!("{}: {would} removed: {path}", device.node));
                }
            }
        }
        let (devices, have) = match arguments.devices.len() {
            1 => ("1 device".to_owned(), "has"),
            count => (format!("{count} devices"), "have"),
        };
        let directory = arguments.directory.display();
        match ending {
            Ending::Deployed => {
                terminal::print(format_args!("{devices} {have} what `{directory}` says"));
            }
            Ending::Tried => terminal::print(format_args!(
                "{devices} would take what `{directory}` says; nothing has changed"
            )),
            Ending::Unchanged | Ending::Mixed => {
                for (at, device) in arguments.devices.iter().enumerate() {
                    let has = match push.state(at) {
                        PushState::Unchanged => "is as before: it was never written",
                        PushState::Deployed => "has what it was told",
                        PushState::TakenBack => "is as before, and has been read since",
                        PushState::GoesBack => {
                            "goes back by itself: at the latest when the time to confirm has passed"
                        }
                        PushState::Unknown => "was confirmed without an answer: it may have either",
                        PushState::NotAsBefore => "was taken back, and is not as before",
                    };
                    terminal::print(format_args!("{} {has}", device.node));
                }
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        let Self { push, arguments } = self;
        let devices = arguments.devices.iter().enumerate().map(|(at, device)| {
            let state = match push.state(at) {
                PushState::Unchanged => "unchanged",
                PushState::Deployed => "deployed",
                PushState::TakenBack => "taken-back",
                PushState::GoesBack => "goes-back",
                PushState::Unknown => "unknown",
                PushState::NotAsBefore => "not-as-before",
            };
            let address = &device.address.shown;
            let removed = push.removed(at);
            json!({ "node": device.node, "address": address, "state": state, "removed": removed })
        });
        let failures = push.failures().iter().map(|Failure { device, step, why }| {
            json!({
                "node": arguments.devices[*device].node, "request": step.to_string(),
                "tag": why.tag, "path": why.path, "message": why.message, "file": why.file,
            })
        });
        let outcome = match push.ending() {
            Ending::Deployed => "deployed",
            Ending::Tried => "tried",
            Ending::Unchanged => "unchanged",
            Ending::Mixed => "mixed",
        };
        json!({
            "format": "onbeat-deployment", "version": 1, "outcome": outcome,
            "interrupted": push.is_interrupted(),
            "devices": devices.collect::<Vec<_>>(), "failures": failures.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_a_node_and_a_place_that_can_be_reached() {
        let parts = |text| {
            let ChosenDevice { node, address } = device(text).expect(text);
            (node, address.user, address.host, address.port)
        };
        let user = Some("admin".to_owned());
        let expected = |user, host: &str, port| ("br0".to_owned(), user, host.to_owned(), port);
        assert_eq!(parts("br0=admin@192.0.2.7:2830"), expected(user.clone(), "192.0.2.7", 2830));
        assert_eq!(parts("br0=switch"), expected(None, "switch", 830));
        assert_eq!(parts("br0=admin@[2001:db8::7]"), expected(user, "2001:db8::7", 830));
        assert_eq!(parts("br0=[2001:db8::7]:1"), expected(None, "2001:db8::7", 1));
        for bad in ["", "br0", "=a", "br0=", "br0=@a", "br0=a:", "br0=a:0", "br0=a:65536", "../x=a"]
        {
            assert!(device(bad).is_err(), "{bad}");
        }
        for bad in ["br0=[::1", "br0=[::1]830", "br0=::1"] {
            assert!(device(bad).is_err(), "{bad}");
        }
    }
}
