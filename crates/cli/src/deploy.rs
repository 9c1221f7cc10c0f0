//! `plan --deploy`: what programs on interfaces read instead of the description, for each host.

use crate::output::{Kind, Output};
use crate::source::Source;
use anyhow::{Context, bail};
use onbeat::interface::{ChannelTable, MAX_CHANNELS, TABLE_EXTENSION};
use onbeat_model::system::{NodeId, NodeKind};
use onbeat_run::process::Reaper;
use std::path::Path;
use std::process::Command;

/// Writes the tables of all hosts that have channels into a directory, all or nothing; how many.
pub(crate) fn deploy(source: &Source, directory: &Path) -> anyhow::Result<usize> {
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
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(directory, Kind::Deployment, &mut reaper)?;
    for table in &tables {
        output.write(&format!("{}.{TABLE_EXTENSION}", table.host), table.to_string())?;
    }
    output.finish()?;
    Ok(tables.len())
}
