//! Synthetic endpoints on networks of the kernel: a thread each that writes on time or
//! reads at once, through the same I/O as a program's.

use onbeat::clock::want_exact_timers;
use onbeat::context::{EndpointIo, Listener, Talker};
use onbeat::coordinator::client::{SetupError, attach_in, station_end};
use onbeat::coordinator::protocol::Attachment;
use onbeat::interface::follow_schedule;
use onbeat::interface::instance;
use onbeat::interface::{InterfaceIo, InterfaceSettings, Limits, NetworkClock, Timebase};
use onbeat::keys;
use onbeat::recorder::Recorder;
use onbeat::shared_log::{self, SharedLog};
use onbeat_model::record::Role;
use onbeat_model::time::{Span, SyncedTime};
use onbeat_runtime::channel::{ListenerEndpoint, TalkerEndpoint};
use onbeat_runtime::channel_io::{ChannelError, Limited, Timeout};
use onbeat_runtime::listener;
use onbeat_runtime::talker::{self, ChannelParameters};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A synthetic endpoint. Dropping it ends it.
#[derive(Debug)]
pub(super) struct SyntheticOnKernel {
    base: Arc<Timebase>,
    /// What it recorded.
    log: SharedLog,
    /// Until it begins.
    part: Option<Part>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Part {
    Talks(Box<Talker>, ChannelParameters, Span),
    Listens(Box<Listener>, ChannelParameters),
}

impl SyntheticOnKernel {
    /// Opens the end's way to its interface, so that nothing that is sent from now on is missed. A
    /// talker writes `phase` after the start for the first time. `way` is the namespace of the
    /// interface, or the end's socket to its host's station.
    pub(super) fn open(
        role: Role,
        (parameters, phase): (ChannelParameters, Span),
        capacity: u32,
        attachment: Attachment<'_>,
        way: Option<OwnedFd>,
    ) -> Result<Self, SetupError> {
        let settings = InterfaceSettings {
            name: attachment.interface.to_owned(),
            transport: attachment.transport,
            options: attachment.options,
            ..InterfaceSettings::default()
        };
        // Others may be on the network, unless it is the run's own.
        let is_shared = attachment.is_shared;
        let wire = match attachment.by_station {
            true => station_end(way)?,
            false => attach_in(way, &settings, &parameters, role)?,
        };
        let memory = shared_log::create(capacity)?;
        let log = SharedLog::map(&memory, capacity)?;
        let recorder = Recorder::new(SharedLog::map(&memory, capacity)?);
        let base = Arc::new(Timebase::default());
        let io = Box::new(InterfaceIo::new(Arc::clone(&base), wire));
        let port = Limited::new(EndpointIo::Interface(io));
        let protected = match is_shared {
            true => keys::on_interface(&parameters, SyncedTime::ZERO),
            false => Ok(None),
        };
        let protected = protected.map_err(SetupError::Refused)?;
        let part = match role {
            Role::Talker => {
                let mut talker = talker::Talker::of_instance(parameters, instance());
                if let Some((seal, _)) = protected {
                    talker = talker.sealed(seal);
                }
                let end = TalkerEndpoint::new(talker, port, recorder);
                Part::Talks(Box::new(end), parameters, phase)
            }
            Role::Listener => {
                let mut listener = listener::Listener::new(parameters);
                if let Some((_, guard)) = protected {
                    listener = listener.guarded(guard);
                }
                let mut end = ListenerEndpoint::new(listener, port, recorder);
                if attachment.options.follow_schedule {
                    follow_schedule(&mut end);
                }
                Part::Listens(Box::new(end), parameters)
            }
        };
        Ok(Self { base, log, part: Some(part), thread: None })
    }

    /// Begins; `clock` tells when it is zero.
    pub(super) fn begin(&mut self, clock: NetworkClock, limits: Limits) -> io::Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        self.base.begin(clock, limits);
        let base = Arc::clone(&self.base);
        let play = move || {
            want_exact_timers();
            // It goes on until it is told that the run is over, or the network is gone.
            let _: Result<(), ChannelError> = match part {
                Part::Talks(mut end, parameters, phase) => {
                    talk(&base, &mut end, &parameters, phase)
                }
                Part::Listens(mut end, parameters) => listen(&base, &mut end, &parameters),
            };
        };
        self.thread = Some(std::thread::Builder::new().name("player".to_owned()).spawn(play)?);
        Ok(())
    }

    /// What it has recorded up to now.
    pub(super) fn recorded(&self) -> &SharedLog {
        &self.log
    }

    /// Ends it, within a tenth of a second; what it recorded.
    pub(super) fn finish(&mut self) -> &SharedLog {
        self.base.stop();
        if let Some(thread) = self.thread.take() {
            // Should it have panicked, what it recorded until then is there.
            let _ = thread.join();
        }
        &self.log
    }
}

impl Drop for SyntheticOnKernel {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Writes every interval from `phase` on, the message's number as its value. What was due before
/// the clock's first reading is left out.
fn talk(
    base: &Timebase,
    end: &mut Talker,
    parameters: &ChannelParameters,
    phase: Span,
) -> Result<(), ChannelError> {
    let mut value = vec![0; parameters.size.get() as usize];
    let mut next = base.sleep_until(SyncedTime::ZERO)?.local.max(SyncedTime::ZERO + phase);
    let interval = parameters.interval.as_ns();
    let missed = (next - (SyncedTime::ZERO + phase)).as_ns().max(0);
    next = SyncedTime::ZERO + phase + parameters.interval * ((missed + interval - 1) / interval);
    for number in 0_u64.. {
        let octets = number.to_le_bytes();
        let shown = octets.len().min(value.len());
        value[..shown].copy_from_slice(&octets[..shown]);
        base.sleep_until(next)?;
        end.write(&value)?;
        next += parameters.interval;
    }
    Ok(())
}

/// Reads whatever comes.
fn listen(
    base: &Timebase,
    end: &mut Listener,
    parameters: &ChannelParameters,
) -> Result<(), ChannelError> {
    let mut value = vec![0; parameters.size.get() as usize];
    base.sleep_until(SyncedTime::ZERO)?;
    loop {
        end.read(&mut value, Timeout::Endless)?;
    }
}
