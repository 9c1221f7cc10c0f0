//! The verb `nc`: programs in Network Code.

mod assemble;
mod disassemble;
mod format;

use crate::chosen::WrongArgument;
use crate::exit::Exit;
use assemble::AssembleArguments;
use clap::Subcommand;
use disassemble::DisassembleArguments;
use format::FormatArguments;
use std::path::Path;

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
}

/// Does what is asked for.
pub(crate) fn nc(what: &NcVerb) -> anyhow::Result<Exit> {
    match what {
        NcVerb::Asm(arguments) => assemble::assemble(arguments),
        NcVerb::Dis(arguments) => disassemble::disassemble(arguments),
        NcVerb::Fmt(arguments) => format::format(arguments),
    }
}

/// An output must not be the file that is read.
fn spare(input: &Path, out: &Path) -> Result<(), WrongArgument> {
    let [input_real, out_real] = [input, out].map(|path| path.canonicalize().ok());
    if input_real.is_some() && input_real == out_real {
        let why = format!("{} is read: give the output another name", out.display());
        return Err(WrongArgument(why));
    }
    Ok(())
}
