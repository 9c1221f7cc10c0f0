//! The verb `completions`: what a shell completes this command's arguments with.

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::terminal;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::shells;

/// The shells that `make install` installs scripts for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// bash with bash-completion
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// Prints the script of a shell.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<Exit> {
    let shell = match shell {
        Shell::Bash => shells::Shell::Bash,
        Shell::Zsh => shells::Shell::Zsh,
        Shell::Fish => shells::Shell::Fish,
    };
    let mut command = visible(&Arguments::command()).version(env!("CARGO_PKG_VERSION"));
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "onbeat", &mut script);
    terminal::print(String::from_utf8(script)?.trim_end());
    Ok(Exit::Fine)
}

/// The same command without hidden verbs, which the scripts would offer. Of what the command is,
/// only what they need.
fn visible(command: &Command) -> Command {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible);
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(command.is_disable_help_flag_set())
        .args(command.get_arguments().cloned())
        .subcommands(verbs)
}
