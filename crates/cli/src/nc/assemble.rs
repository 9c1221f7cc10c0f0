//! The verb `nc asm`: from a text to a file that stations load.

use crate::exit::Exit;
use crate::output::{spare, write_files};
use crate::source::{self, Source, Wrong};
use crate::terminal;
use crate::trust::{self, Trust};
use clap::Args;
use onbeat_model::system::{NodeKind, System};
use onbeat_model::units::BitRate;
use onbeat_network_code::assembly::{
    self, Assembly, AssemblyOptions, DescribedChannel, DescribedNetwork,
};
use onbeat_network_code::disassembly::{instruction_text, least_cycles};
use onbeat_runtime::network_code::image;
use onbeat_runtime::network_code::instruction::Instruction;
use onbeat_runtime::network_code::program::{BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::CYCLE_NS;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is to be assembled, and where to.
#[derive(Debug, Args)]
pub(crate) struct AssembleArguments {
    /// Text of the program
    file: PathBuf,
    /// File for the program [default: none, the text is only checked]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Description, or directory of a system.toml, whose channels buffers are of
    #[arg(long, value_name = "SYSTEM")]
    system: Option<PathBuf>,
    /// Node that the program is for [default: the text says it]
    #[arg(long, value_name = "NODE")]
    station: Option<String>,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long, requires = "system")]
    trust: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// Writes the program, or everything that is wrong.
pub(super) fn assemble(arguments: &AssembleArguments) -> anyhow::Result<Exit> {
    trust::may_read(&arguments.file)?;
    let text = source::read(&arguments.file).map_err(anyhow::Error::msg)?;
    let described = match &arguments.system {
        None => None,
        Some(system) => Some(Source::load(system, arguments.json, Trust::by(arguments.trust))?),
    };
    let network = described.as_ref().map(|source| network(&source.system));
    let station = arguments.station.as_deref();
    let options = AssemblyOptions { station, network: network.as_ref() };
    let path = arguments.file.display().to_string();
    let assembly = assembly::assemble(&path, &text, options);
    source::show(std::slice::from_ref(&assembly.source), &assembly.diagnostics);
    if arguments.json {
        terminal::print_json(&document(&assembly))?;
    }
    let program = assembly.program.as_ref().ok_or(Wrong)?;
    if let Some(out) = &arguments.out {
        spare(&arguments.file, out)?;
        write_files(&[(out, image::emit(program)?)])?;
    }
    if !arguments.json {
        let to = arguments.out.as_ref().map(|out| format!(": {}", out.display()));
        terminal::say(format_args!("onbeat: {}{}", counts(program), to.unwrap_or_default()));
    }
    Ok(Exit::Fine)
}

fn counts(program: &StationProgram) -> String {
    let plural = |count: usize, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {what}{plural}")
    };
    format!(
        "program of `{}`: {}, {}, {}",
        program.station,
        plural(program.words.len(), "instruction"),
        plural(program.buffers.len(), "buffer"),
        plural(program.messages.len(), "message")
    )
}

/// What the assembler needs of a description.
fn network(system: &System) -> DescribedNetwork {
    let hosts = system.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Host(_)));
    let name = |node: onbeat_model::system::NodeId| system.node(node).name.clone();
    let channel = |channel: &onbeat_model::system::Channel| DescribedChannel {
        name: channel.name.clone(),
        octets: channel.size.get(),
        talker: name(channel.talker),
        listeners: channel.listeners.iter().map(|listener| name(*listener)).collect(),
    };
    DescribedNetwork {
        hosts: hosts.map(|host| host.name.clone()).collect(),
        channels: system.channels.iter().map(channel).collect(),
    }
}

/// All about a program, or what is wrong with it.
fn document(assembly: &Assembly) -> Value {
    let files = std::slice::from_ref(&assembly.source);
    let checked = source::to_json(None, files, &assembly.diagnostics);
    let program = assembly.program.as_ref();
    let medium = |program: &StationProgram| {
        // A cycle of 8 ns for an octet is 1 Gbit/s.
        let rate = BitRate::from_mbps(1_000).as_bps() / u64::from(program.medium.octet_cycles);
        json!({ "rate_bps": rate, "tagged": program.medium.tagged })
    };
    json!({
        "format": "onbeat-network-code",
        "version": 1,
        "file": assembly.source.path,
        "ok": checked["ok"],
        "station": program.map(|program| &program.station),
        "medium": program.map(medium),
        "buffers": program.map(|program| buffers(program, assembly)),
        "messages": program.map(messages),
        "instructions": program.map(instructions),
        "diagnostics": checked["diagnostics"],
    })
}

fn buffers(program: &StationProgram, assembly: &Assembly) -> Vec<Value> {
    let buffers = program.buffers.iter().enumerate();
    let row = buffers.map(|(id, buffer)| {
        let role = match buffer.role {
            BufferRole::Output => "output",
            BufferRole::Input => "input",
        };
        let channel = assembly.channels.get(&id);
        json!({
            "id": id, "name": buffer.name, "words": buffer.words, "role": role, "channel": channel,
        })
    });
    row.collect()
}

fn messages(program: &StationProgram) -> Vec<Value> {
    let row = program
        .messages
        .iter()
        .map(|message| json!({ "id": message.id.0, "name": message.name, "words": message.words }));
    row.collect()
}

fn instructions(program: &StationProgram) -> Vec<Value> {
    let rows = program.words.iter().zip(&program.lines).enumerate();
    let row = rows.filter_map(|(address, (word, line))| {
        let instruction = Instruction::decode(*word).ok()?;
        let issue_ns = least_cycles(program, instruction).0 * u64::from(CYCLE_NS);
        Some(json!({
            "address": address,
            "word": format!("{word:016x}"),
            "text": instruction_text(program, instruction),
            "line": line,
            "issue_ns": issue_ns,
        }))
    });
    row.collect()
}
