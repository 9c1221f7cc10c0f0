//! The verb `nc`: programs in Network Code.

mod assemble;
mod disassemble;
mod format;
mod run;
mod simulate;
pub(crate) mod stations;
mod verify;

use crate::exit::Exit;
use crate::source::{self, Wrong};
use crate::{input, trust};
use assemble::AssembleArguments;
use clap::Subcommand;
use disassemble::DisassembleArguments;
use format::FormatArguments;
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_runtime::network_code::image::{self, IMAGE_OCTETS, ImageError};
use onbeat_runtime::network_code::program::StationProgram;
use run::StationArguments;
use simulate::NetworkArguments;
use std::path::Path;
use verify::VerifyArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum NcVerb {
    /// Assembles a program and reports all errors
    #[command(after_help = "Examples:
  onbeat nc asm sensor.nc
  onbeat nc asm sensor.nc -o sensor.ncb
  onbeat nc asm sensor.nc --system cell --station sensor -o sensor.ncb
  onbeat nc asm sensor.nc --json

With --system, buffers may have the lengths of the station's channels. Exits with 1 if the text has
errors (docs/network-code.md).")]
    Asm(AssembleArguments),
    /// Shows an assembled program as a text that assembles to it
    #[command(after_help = "Examples:
  onbeat nc dis sensor.ncb
  onbeat nc dis sensor.ncb --words
  onbeat nc dis sensor.ncb > sensor.nc")]
    Dis(DisassembleArguments),
    /// Lays out the texts of programs
    #[command(after_help = "Examples:
  onbeat nc fmt *.nc
  onbeat nc fmt *.nc --check

Comments stay, and so does what the programs mean. A file with errors is left as it is. With --check
nothing is written, and the exit code is 1 if a file has another layout.")]
    Fmt(FormatArguments),
    /// Is a station on an interface
    #[command(after_help = "Examples:
  onbeat nc run sensor.nc --interface eth0
  onbeat nc run controller.ncb --interface eth0 --rounds 1000 --cpu 1 --priority 80 --json

Needs the right to open packet sockets (CAP_NET_RAW). Writes the number of the round into every word
of its output buffers. At the end it prints what it counted, and how late its frames were handed to
the kernel (docs/network-code.md). Exits with 4 if the program ended in a trap.")]
    Run(StationArguments),
    /// Proves that the programs of a network keep apart and keep their times
    #[command(after_help = "Examples:
  onbeat nc verify cell controller.nc sensor.nc
  onbeat nc verify cell/system.toml *.nc --drift-ppm 50 --best-effort 0
  onbeat nc verify cell *.nc --svg counterexample.svg --json

Exits with 0 if every property is proven, with 1 if one is violated: then an execution is shown that
violates it. Exits with 6 if one is unknown (docs/network-code.md#verification).")]
    Verify(VerifyArguments),
    /// Simulates the programs of a network in virtual time
    #[command(after_help = "Examples:
  onbeat nc simulate cell controller.nc sensor.nc
  onbeat nc simulate cell/system.toml *.nc --rounds 100000 --seed 7
  onbeat nc simulate cell *.nc --duration 10s --json

Clocks, noise, streams and faults are those of the description. Applications write a count and
random words. Exits with 3 if a message was lost, frames of two stations collided, or a program
ended in a trap (docs/network-code.md#in-the-engine).")]
    Simulate(NetworkArguments),
}

/// Does what is asked for.
pub(crate) fn nc(what: &NcVerb) -> anyhow::Result<Exit> {
    match what {
        NcVerb::Asm(arguments) => assemble::assemble(arguments),
        NcVerb::Dis(arguments) => disassemble::disassemble(arguments),
        NcVerb::Fmt(arguments) => format::format(arguments),
        NcVerb::Run(arguments) => run::run(arguments),
        NcVerb::Verify(arguments) => verify::verify(arguments),
        NcVerb::Simulate(arguments) => simulate::simulate(arguments),
    }
}

/// A program, from its text or assembled.
fn load(file: &Path) -> anyhow::Result<StationProgram> {
    if file.extension().is_some_and(|extension| extension == "ncb") {
        return image(file);
    }
    trust::may_read(file)?;
    let text = source::read(file).map_err(anyhow::Error::msg)?;
    let path = file.display().to_string();
    let assembly = assemble(&path, &text, AssemblyOptions::default());
    source::show(std::slice::from_ref(&assembly.source), &assembly.diagnostics);
    Ok(assembly.program.ok_or(Wrong)?)
}

/// An assembled program.
fn image(file: &Path) -> anyhow::Result<StationProgram> {
    trust::may_read(file)?;
    let octets = input::read(file, IMAGE_OCTETS as u64).map_err(anyhow::Error::msg)?;
    Ok(image::parse(&octets).map_err(|error| refused(file, error))?)
}

/// Says why a file is no program.
fn refused(file: &Path, error: ImageError) -> Wrong {
    let found = Diagnostic {
        severity: Severity::Error,
        code: codes::IMAGE,
        message: format!("{}: {error}", file.display()),
        at: None,
        related: Vec::new(),
        help: "assemble it again: `onbeat nc asm FILE.nc -o FILE.ncb`".to_owned(),
    };
    source::show(&[], &[found]);
    Wrong
}
