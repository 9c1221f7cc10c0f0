//! The program of a drawn system: this binary, started again by the run, which acts a script and
//! keeps books of its own. Whatever happens to it is a line of its log, written at once, so that a
//! program that is killed has left what happened until then.

mod log;
mod rogue;
mod thread;
// The one thing here that no safe call does.
#[allow(unsafe_code)]
mod process;

use crate::script::{self, ActorStep};
use anyhow::{Context, Result};
use log::ActorLog;
use onbeat::Span;
use onbeat::clock::pause;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// What a script's file is called behind the program's name.
pub const SCRIPT: &str = "script";
/// What a log is called.
pub const LOG: &str = "log";

/// What the threads of an actor share.
#[derive(Debug)]
pub(crate) struct ActorShared {
    scripts: Vec<Vec<ActorStep>>,
    log: ActorLog,
}

/// Acts the script of a program in the current directory; returns when it is to exit.
///
/// # Errors
/// If it has no script, or cannot write its log.
pub fn act(name: &str) -> Result<ExitCode> {
    let path = Path::new(name).with_extension(SCRIPT);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let scripts = script::read(&text).with_context(|| path.display().to_string())?;
    let log = ActorLog::create(&Path::new(name).with_extension(LOG))?;
    let shared = Arc::new(ActorShared { scripts, log });
    if let Some(ActorStep::Rogue { at, how }) = shared.scripts.first().and_then(|main| main.first())
    {
        rogue::act(&shared.log, *at, how);
        return Ok(ExitCode::SUCCESS);
    }
    Ok(thread::main(&shared))
}

/// Lets the machine's time pass, in milliseconds: none of the run's.
fn dawdle(ms: i64) {
    pause(Span::from_ms(ms));
}

/// Never comes back.
fn hang() -> ! {
    loop {
        pause(Span::from_s(60));
    }
}
