//! `plan --deploy`: what programs on interfaces read instead of the description, for each host; and
//! what management writes to bridges and hosts.

use crate::output::{Kind, Output};
use crate::source::Source;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat::interface::{ChannelTable, MAX_CHANNELS, TABLE_EXTENSION};
use onbeat_model::device::Device;
use onbeat_model::plan::Plan;
use onbeat_model::system::{NodeId, NodeKind, System};
use onbeat_run::process::Reaper;
use std::path::Path;
use std::process::Command;

/// What the filtering database of a bridge has in its name.
const FILTERING: &str = ".filtering";
/// What the configuration of a node is called, behind its name.
pub(crate) const CONFIGURATION: [&str; 2] = [".yang.json", ".yang.xml"];
/// How many lines say what configurations do not.
const UNSAID_MAX: usize = 20;

/// Writes the tables of all hosts that have channels, and the configuration of every node, into a
/// directory, all or nothing; how many tables.
pub(crate) fn deploy(source: &Source, plan: &Plan, directory: &Path) -> anyhow::Result<usize> {
    let system = &source.system;
    let nodes = (0..).map(NodeId).zip(&system.nodes);
    let mut tables = Vec::new();
    for (id, node) in nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Host(_))) {
        let table = ChannelTable::of(system, id).with_context(|| {
            format!("host `{}` has more than {MAX_CHANNELS} channels: no program may", node.name)
        })?;
        if !table.ends.is_empty() {
            tables.push(table);
        }
    }
    if tables.is_empty() {
        bail!("no host has a channel: there is nothing to deploy");
    }
    for line in launches(system, plan) {
        terminal::say(format_args!("onbeat: {line}"));
    }
    let mut devices = Vec::new();
    for (id, node) in (0..).map(NodeId).zip(&system.nodes) {
        match onbeat_configuration::device(system, plan, id) {
            Ok(device) => devices.push(device),
            // Programs need their tables whatever a bridge can be told.
            Err(why) => {
                terminal::say(format_args!("onbeat: no configuration of `{}`: {why}", node.name));
            }
        }
    }
    let unsaid: Vec<&String> = devices.iter().flat_map(|device| &device.unsaid).collect();
    for line in unsaid.iter().take(UNSAID_MAX) {
        terminal::say(format_args!("onbeat: not in the configuration: {line}"));
    }
    if let Some(more) = unsaid.len().checked_sub(UNSAID_MAX + 1) {
        terminal::say(format_args!("onbeat: {} more lines of this kind", more + 1));
    }
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(directory, Kind::Deployment, &mut reaper)?;
    for table in &tables {
        output.write(&format!("{}.{TABLE_EXTENSION}", table.host), table.to_string())?;
    }
    for device in &devices {
        let filtering = device.filtering.as_ref().map(|filtering| (FILTERING, filtering));
        for (part, instance) in [("", &device.interfaces)].into_iter().chain(filtering) {
            for (extension, text) in CONFIGURATION.iter().zip([&instance.json, &instance.xml]) {
                output.write(&format!("{}{part}{extension}", device.name), text)?;
            }
        }
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
                "`{name}` has no gates (device `{}`): frames of {count} of its channels have to \
                 leave at their launch times, which no configuration says",
                device.name
            )
        })
    };
    hosts.filter_map(launches).collect()
}
