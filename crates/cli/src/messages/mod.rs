//! The verbs `echo`, `pub`, `record` and `replay`: programs like any other, which open channels by
//! the product library. So they are the same in a run, where the description starts them, and on
//! an interface.

mod echo;
mod fields;
mod form;
mod line;
mod publish;
mod record;
mod replay;
mod unnamed;

pub(crate) use echo::{ECHO, EchoArguments, echo};
pub(crate) use publish::{PUB, PubArguments, publish};
pub(crate) use record::{RECORD, RecordArguments, record};
pub(crate) use replay::{REPLAY, ReplayArguments, replay};

use crate::arguments::Transport;
use anyhow::bail;
use clap::Args;
use onbeat::interface::{InterfaceContext, Precautions};
use onbeat::{ChannelError, Context, SetupError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the channels are, outside of a run.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// Interface of this machine on which the channels are; without it ONBEAT_INTERFACE, or the run
    /// that starts this program
    #[arg(long, value_name = "NAME", requires = "table")]
    interface: Option<String>,
    /// Table of this host's channels, which `plan --deploy` wrote
    #[arg(long, value_name = "HOST.channels", requires = "interface")]
    table: Option<PathBuf>,
    /// Transport of frames to the kernel [default: packet]
    #[arg(long, requires = "interface")]
    transport: Option<Transport>,
}

impl PlaceArguments {
    /// Joins the run, or opens the interface. On an interface signals end what waits, and then the
    /// flag is true; in a run its coordinator says when it is over.
    fn join(&self) -> anyhow::Result<(Context, Arc<AtomicBool>)> {
        let context = match (&self.interface, &self.table) {
            (Some(interface), Some(table)) => {
                let transport = self.transport.map(Into::into).unwrap_or_default();
                Context::Interface(InterfaceContext::with_table(
                    interface,
                    table,
                    transport,
                    Precautions::NONE,
                )?)
            }
            _ => match Context::join_with(Precautions::NONE) {
                Err(SetupError::NotInRun) => bail!(
                    "no run has started this program, and no interface is named: make it a \
                     [[program]] of a description, or use --interface and --table"
                ),
                joined => joined?,
            },
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        if let Context::Interface(_) = context {
            let (stopped, flag) = (context.clone(), Arc::clone(&interrupted));
            let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
            std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
                for _ in signals.forever() {
                    stopped.stop();
                    flag.store(true, Ordering::Relaxed);
                }
            })?;
        }
        Ok((context, interrupted))
    }
}

/// What a call gave; none if the run is over.
fn unless_over<T>(given: Result<T, ChannelError>) -> anyhow::Result<Option<T>> {
    match given {
        Ok(value) => Ok(Some(value)),
        Err(ChannelError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same of what comes before the start.
fn unless_over_before<T>(given: Result<T, SetupError>) -> anyhow::Result<Option<T>> {
    match given {
        Err(SetupError::ChannelError(error)) => unless_over(Err(error)),
        other => Ok(Some(other?)),
    }
}

/// How many messages were passed over because their interface was down: told at the end.
#[derive(Debug)]
struct Missed<'a> {
    channel: &'a str,
    messages: u64,
}

impl<'a> Missed<'a> {
    fn of(channel: &'a str) -> Self {
        Self { channel, messages: 0 }
    }

    /// What a write gave, twice none if the run is over, once if the message was passed over.
    fn unless_over<T>(
        &mut self,
        given: Result<T, ChannelError>,
    ) -> anyhow::Result<Option<Option<T>>> {
        if matches!(given, Err(ChannelError::LinkDown)) {
            self.messages += 1;
            return Ok(Some(None));
        }
        Ok(unless_over(given)?.map(Some))
    }
}

impl Drop for Missed<'_> {
    fn drop(&mut self) {
        let Self { channel, messages } = self;
        if *messages > 0 {
            let why = "the interface was down or not there";
            eprintln!("onbeat: channel `{channel}`: {messages} messages not written: {why}");
        }
    }
}
