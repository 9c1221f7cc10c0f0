//! The verb `import`: a description of other tools' networks and streams.

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::write_files;
use crate::{source, terminal, trust};
use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use onbeat_description::import::{self, Format, ImportOptions, Input, SizeMeaning};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::path::{Path, PathBuf};

/// What is to be imported, and where to.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Links of the scheduling benchmark (CSV), a graph (GraphML), or a topology of YANG (JSON)
    network: PathBuf,
    /// Streams of the scheduling benchmark (CSV)
    #[arg(long, value_name = "FILE")]
    streams: Option<PathBuf>,
    /// File for the description [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What sizes of streams count
    #[arg(long, value_name = "MEANING", default_value = "wire", requires = "streams")]
    size: ChosenSize,
    /// Gives each bridge a host of its own, at which its streams begin and end
    #[arg(long)]
    add_hosts: bool,
    /// Rate of edges without one, in a graph [default: 1000]
    #[arg(long, value_name = "MBPS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate_mbps: Option<u64>,
    /// Propagation delay of edges without one, in a graph [default: 0]
    #[arg(long, value_name = "NS", value_parser = delay())]
    propagation_ns: Option<i64>,
    /// Forwarding delay of bridges without one, in a graph [default: 0]
    #[arg(long, value_name = "NS", value_parser = delay())]
    forwarding_ns: Option<i64>,
    /// Prints what was found, as JSON for machines
    #[arg(long, requires = "out")]
    json: bool,
}

fn delay() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(0..=onbeat_model::limits::DELAY.as_ns())
}

/// What sizes of streams count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChosenSize {
    /// All that the frame occupies of a link, with preamble and gap, as in the benchmark
    Wire,
    /// The frame from the destination address to the FCS
    Frame,
    /// The message in the frame
    Payload,
}

impl From<ChosenSize> for SizeMeaning {
    fn from(size: ChosenSize) -> Self {
        match size {
            ChosenSize::Wire => Self::Wire,
            ChosenSize::Frame => Self::Frame,
            ChosenSize::Payload => Self::Payload,
        }
    }
}

/// Writes the description, or all that is wrong with the files.
pub(crate) fn import(arguments: &ImportArguments) -> anyhow::Result<Exit> {
    let network = named(&arguments.network)?;
    let streams = arguments.streams.as_deref().map(named).transpose()?;
    let options = options(arguments, Format::of(&network.1))?;
    for input in [Some(&arguments.network), arguments.streams.as_ref()].into_iter().flatten() {
        spare(input, arguments.out.as_deref())?;
    }
    let imported = match import::import(input(&network), streams.as_ref().map(input), &options) {
        Ok(imported) => imported,
        Err(found) => {
            let (files, wrong) = (&found.sources, &found.diagnostics);
            bail!(source::wrong(None, files, wrong, arguments.json));
        }
    };
    source::show(&imported.sources, &imported.warnings);
    let Some(out) = &arguments.out else {
        terminal::print(imported.text.trim_end());
        return Ok(Exit::Fine);
    };
    write_files(&[(out, imported.text)])?;
    if arguments.json {
        let found = source::to_json(None, &imported.sources, &imported.warnings);
        terminal::print_json(&found)?;
    }
    let [hosts, bridges, links, channels] = imported.counts;
    terminal::say(format_args!(
        "onbeat: hosts: {hosts}, bridges: {bridges}, links: {links}, channels: {channels}: {}",
        out.display()
    ));
    Ok(Exit::Fine)
}

fn input((path, text): &(String, String)) -> Input<'_> {
    Input { path, text }
}

/// What the files do not say.
fn options(arguments: &ImportArguments, format: Format) -> anyhow::Result<ImportOptions> {
    let ImportArguments { rate_mbps, propagation_ns, forwarding_ns, .. } = arguments;
    let flags = [
        ("--rate-mbps", rate_mbps.is_some()),
        ("--propagation-ns", propagation_ns.is_some()),
        ("--forwarding-ns", forwarding_ns.is_some()),
    ];
    let flag = flags.iter().find(|(_, is_given)| *is_given);
    if let (Format::Links, Some((flag, _))) = (format, flag) {
        let why = format!("{flag} is for graphs: the links of a CSV file have their own");
        bail!(WrongArgument(why));
    }
    let name = arguments.network.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ImportOptions {
        name,
        size: arguments.size.into(),
        add_hosts: arguments.add_hosts,
        rate: rate_mbps.map(BitRate::from_mbps),
        propagation: propagation_ns.map(Span::from_ns),
        forwarding: forwarding_ns.map(Span::from_ns),
    })
}

/// A file's path as it is shown, and its text.
fn named(path: &Path) -> anyhow::Result<(String, String)> {
    trust::may_read(path)?;
    let text = source::read(path).map_err(anyhow::Error::msg)?;
    let shown = path.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", path.display()))?;
    Ok((shown.to_owned(), text))
}

/// What is read is not written over.
fn spare(input: &Path, out: Option<&Path>) -> anyhow::Result<()> {
    let same = |out: &Path| Some(out.canonicalize().ok()? == input.canonicalize().ok()?);
    if out.and_then(same) == Some(true) {
        let why = format!("{} would be overwritten", input.display());
        bail!(WrongArgument(why));
    }
    Ok(())
}
