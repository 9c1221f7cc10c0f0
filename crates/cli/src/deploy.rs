//! `plan --deploy`: what programs on interfaces read instead of the description, for each host;
//! what management writes to bridges and hosts, and what the tools of those with Linux read.

use crate::output::{Kind, Output};
use crate::source::Source;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat::interface::{ChannelTable, MAX_CHANNELS, TABLE_EXTENSION};
use onbeat_configuration::{Deployment, LINUX, NETWORKD, Networkd};
use onbeat_machine::timekeeping::{
    ClockScenario, Configuration, Role, SOCKET, Settings, SettingsError, Stamping,
    hardware_threshold, software_threshold,
};
use onbeat_model::device::Device;
use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeId, NodeKind, StampKind, Synchronisation, System};
use onbeat_run::process::Reaper;
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

/// What the filtering database of a bridge has in its name.
const FILTERING: &str = ".filtering";
/// What the streams of a bridge have.
const STREAMS: &str = ".streams";
/// What the configuration of a node is called, behind its name.
pub(crate) const CONFIGURATION: [&str; 2] = [".yang.json", ".yang.xml"];
/// The configuration of ptp4l, and the arguments of phc2sys.
pub(crate) const CLOCKS: [&str; 2] = [".ptp4l.conf", ".phc2sys"];

/// Writes the tables of all hosts that have channels, and the configuration of every node, into a
/// directory, all or nothing; how many tables.
pub(crate) fn deploy(source: &Source, plan: &Plan, directory: &Path) -> anyhow::Result<usize> {
    let system = &source.system;
    let nodes = (0..).map(NodeId).zip(&system.nodes);
    let mut tables = Vec::new();
    for (id, node) in nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Host(_))) {
        let table = ChannelTable::of(system, plan, id).with_context(|| {
            format!("host `{}` has more than {MAX_CHANNELS} channels: no program may", node.name)
        })?;
        if !table.ends.is_empty() {
            tables.push(table);
        }
    }
    for line in launches(system, plan) {
        terminal::say(format_args!("onbeat: {line}"));
    }
    let told = Told::of(system, plan);
    if tables.is_empty() && told.files.is_empty() {
        bail!("no host has a channel, and no node a configuration: there is nothing to deploy");
    }
    told.say_unsaid();
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(directory, Kind::Deployment, &mut reaper)?;
    for table in &tables {
        output.write(&format!("{}.{TABLE_EXTENSION}", table.host), table.to_string())?;
    }
    for (name, text) in &told.files {
        output.write(name, text)?;
    }
    output.finish()?;
    Ok(tables.len())
}

/// What hosts without gates have to do themselves for scheduled channels.
fn launches(system: &System, plan: &Plan) -> Vec<String> {
    let hosts = system.devices.iter().filter(|(_, device)| device.limits.gates == Some(false));
    let launches = |(id, device): (&NodeId, &Device)| {
        let own = system.channels.iter().zip(&plan.channels);
        let count = own.filter(|(it, own)| it.talker == *id && own.launch.is_some()).count();
        let name = &system.node(*id).name;
        (count > 0).then(|| {
            format!(
                "`{name}` has no gates (device `{}`): its programs keep the launch times of \
                 {count} channels, which its table says; `etf` of its `.tc` makes them exact",
                device.name
            )
        })
    };
    hosts.filter_map(launches).collect()
}

/// What devices are told.
#[derive(Default)]
struct Told {
    /// Names and texts.
    files: Vec<(String, String)>,
    /// What they do not say.
    unsaid: Vec<String>,
}

impl Told {
    /// What all nodes are.
    fn of(system: &System, plan: &Plan) -> Self {
        let mut told = Self::default();
        let deployment = Deployment::new(system, plan);
        let mut by_networkd = Vec::new();
        for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
            told.managed(&deployment, &node.name, id);
            let linux = deployment.linux(id);
            let files = LINUX.iter().zip(linux.files);
            let files = files.filter_map(|(of, text)| Some((format!("{}{of}", node.name), text?)));
            told.files.extend(files);
            told.unsaid.extend(linux.unsaid);
            let Networkd { files, unsaid } = linux.networkd;
            let path = |name: &str| format!("{}{NETWORKD}/{name}", node.name);
            told.files.extend(files.into_iter().map(|(name, text)| (path(&name), text)));
            by_networkd.extend(unsaid);
            if let Some(synchronisation) = &system.synchronisation {
                told.clocks(system, synchronisation, id);
            }
        }
        // Behind all else: there are other ways to say it.
        told.unsaid.extend(by_networkd);
        told
    }

    /// What management writes to a node.
    fn managed(&mut self, deployment: &Deployment<'_>, name: &str, id: NodeId) {
        let device = match deployment.device(id) {
            Ok(device) => device,
            // Programs need their tables whatever a bridge can be told.
            Err(why) => {
                return terminal::say(format_args!("onbeat: no configuration of `{name}`: {why}"));
            }
        };
        let filtering = device.filtering.map(|filtering| (FILTERING, filtering));
        let streams = device.streams.map(|streams| (STREAMS, streams));
        let all = [("", device.interfaces)].into_iter().chain(filtering).chain(streams);
        for (part, instance) in all {
            for (extension, text) in CONFIGURATION.iter().zip([instance.json, instance.xml]) {
                self.files.push((format!("{}{part}{extension}", device.name), text));
            }
        }
        self.unsaid.extend(device.unsaid);
    }

    /// What keeps a node's clock on the network's time.
    fn clocks(&mut self, system: &System, how: &Synchronisation, id: NodeId) {
        let name = &system.node(id).name;
        match timekeeping(system, how, id) {
            Ok(configuration) => {
                let phc2sys = configuration.phc2sys_words().map(|words| words.join(" ") + "\n");
                let texts = [Some(configuration.ptp4l()), phc2sys];
                let files = CLOCKS.iter().zip(texts);
                let files = files.filter_map(|(of, text)| Some((format!("{name}{of}"), text?)));
                self.files.extend(files);
            }
            Err(why) => self.unsaid.push(format!("{name}: its clock is not kept: {why}")),
        }
    }

    /// Tells the user, each line once: several files may be without the same.
    fn say_unsaid(&self) {
        let mut said = HashSet::new();
        for line in self.unsaid.iter().filter(|line| said.insert(line.as_str())) {
            terminal::say(format_args!("onbeat: not in the configuration: {line}"));
        }
    }
}

/// How ptp4l and phc2sys keep a node's clock. The longest delay to a neighbour lets the described
/// links be (802.1AS-2020 11.2.2).
fn timekeeping(
    system: &System,
    how: &Synchronisation,
    id: NodeId,
) -> Result<Configuration, SettingsError> {
    let ports = &system.node(id).ports;
    let (stamping, threshold) = match how.stamps {
        StampKind::Hardware | StampKind::Coarse => (Stamping::Hardware, hardware_threshold()),
        StampKind::Software => (Stamping::Software, software_threshold()),
    };
    let longest = ports.iter().map(|port| system.link_of(*port).propagation).max();
    Configuration::new(Settings {
        scenario: match system.node(how.grandmaster).kind {
            NodeKind::Bridge(_) => ClockScenario::Sms,
            NodeKind::Host(_) => ClockScenario::Mbs,
        },
        role: if id == how.grandmaster { Role::Master } else { Role::Slave },
        interfaces: ports.iter().map(|port| system.port(*port).name.clone()).collect(),
        stamping,
        domain: 0,
        threshold: threshold + longest.unwrap_or_default(),
        steers: true,
        socket: SOCKET.to_owned(),
    })
}
