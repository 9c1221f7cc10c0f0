//! The verb `nc dis`: an assembled program as a text.

use crate::exit::Exit;
use crate::output::write_files;
use crate::source::{self, Wrong};
use crate::{input, terminal, trust};
use clap::Args;
use onbeat_model::codes::network_code as codes;
use onbeat_model::diagnostic::{Diagnostic, Severity};
use onbeat_network_code::disassembly::{disassemble as text, disassemble_with_words};
use onbeat_runtime::network_code::image::{self, IMAGE_OCTETS, ImageError};
use std::path::{Path, PathBuf};

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
    trust::may_read(file)?;
    let octets = input::read(file, IMAGE_OCTETS as u64).map_err(anyhow::Error::msg)?;
    let program = image::parse(&octets).map_err(|error| refused(file, error))?;
    let text = if arguments.words { disassemble_with_words(&program) } else { text(&program) }?;
    match &arguments.out {
        Some(out) => {
            super::spare(file, out)?;
            write_files(&[(out, text)])?;
        }
        None => terminal::print(text.trim_end()),
    }
    Ok(Exit::Fine)
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
