//! The verb `nc dis`: an assembled program as a text.

use crate::exit::Exit;
use crate::output::{spare, write_files};
use crate::terminal;
use clap::Args;
use onbeat_network_code::disassembly::{disassemble as text, disassemble_with_words};
use std::path::PathBuf;

/// What is to be shown.
#[derive(Debug, Args)]
pub(crate) struct DisassembleArguments {
    /// Assembled program
    file: PathBuf,
    /// Adds the address, the word and the least cycles of each instruction, as comments
    #[arg(long)]
    words: bool,
    /// File for the text [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Prints the text of a program.
pub(super) fn disassemble(arguments: &DisassembleArguments) -> anyhow::Result<Exit> {
    let file = &arguments.file;
    let program = super::image(file)?;
    let text = if arguments.words { disassemble_with_words(&program) } else { text(&program) }?;
    match &arguments.out {
        Some(out) => {
            spare(file, out)?;
            write_files(&[(out, text)])?;
        }
        None => terminal::print(text.trim_end()),
    }
    Ok(Exit::Fine)
}
