//! The thread that does for a program's ends what may take long: it writes their logs and tells of
//! a frozen trace.

use crate::clock::pause;
use crate::instrument::delay_log::{Files, Stream};
use crate::instrument::trace::Trace;
use onbeat_model::record::Record;
use onbeat_model::time::Span;
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How many records an end may be ahead of its log.
pub(super) const RING: usize = 512;
/// How often the thread looks for records.
const LOOK_AGAIN: Span = Span::from_ms(4);
/// The same while a ring is found a quarter full.
const LOOK_AGAIN_SOON: Span = Span::from_us(200);
/// How long an end that is closed waits for room for its last record.
const PATIENCE_LOOKS: u32 = 1_000;
/// How much less important than others the thread is.
const NICE: i32 = 10;

type Octets = [u8; Record::SIZE];

/// The thread.
#[derive(Debug)]
pub(super) struct Scribe {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: one that it forks has not.
    process: u32,
}

#[derive(Debug, Default)]
struct Shared {
    /// Ends that have been opened and that the thread does not know yet.
    opened: Mutex<Vec<Source>>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Source {
    stream: Stream,
    ring: Consumer<Octets>,
}

impl Scribe {
    pub(super) fn start(files: Option<Files>, trace: Option<Arc<Trace>>) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let desk = Desk { files, trace, sources: Vec::new() };
        let thread = std::thread::Builder::new()
            .name("onbeat-log".to_owned())
            .spawn(move || desk.work(&theirs))?;
        Ok(Self { shared, thread: Some(thread), process: std::process::id() })
    }

    /// An end's way to the log.
    pub(super) fn tap(scribe: &Arc<Self>, stream: Stream) -> Tap {
        let (ring, source) = RingBuffer::new(RING);
        let mut opened = scribe.shared.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push(Source { stream, ring: source });
        Tap { ring, last: None, _scribe: Arc::clone(scribe) }
    }
}

impl Drop for Scribe {
    /// Waits until all that the ends recorded is in the files: they are gone, each has a share in
    /// this.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && self.process == std::process::id()
        {
            // A panic of its own has been reported by the thread.
            let _ = thread.join();
        }
    }
}

/// An end's way to the log. The last record is held back, because it may still change.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) ring: Producer<Octets>,
    last: Option<Octets>,
    // Dropped last: the thread must live until the ring is abandoned.
    _scribe: Arc<Scribe>,
}

impl Tap {
    /// Adds a record; false when the one before found no room. Real-time: bounded.
    pub(super) fn push(&mut self, record: &Record) -> bool {
        let before = self.last.replace(record.to_bytes());
        before.is_none_or(|octets| self.ring.push(octets).is_ok())
    }

    /// Replaces the record that was added last. Real-time: bounded.
    pub(super) fn amend(&mut self, record: &Record) {
        if self.last.is_some() {
            self.last = Some(record.to_bytes());
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let Some(last) = self.last.take() else { return };
        for _ in 0..PATIENCE_LOOKS {
            if self.ring.push(last).is_ok() || self.ring.is_abandoned() {
                return;
            }
            pause(LOOK_AGAIN);
        }
    }
}

/// What the thread works with.
struct Desk {
    files: Option<Files>,
    trace: Option<Arc<Trace>>,
    sources: Vec<Source>,
}

impl Desk {
    fn work(mut self, shared: &Shared) {
        step_back();
        loop {
            // Looked at before the rings: what they get afterwards nobody has put there.
            let last = shared.stop.load(Ordering::Acquire);
            let mut opened = shared.opened.lock().unwrap_or_else(PoisonError::into_inner);
            self.sources.append(&mut opened);
            drop(opened);
            let busy = self.drain();
            self.tell();
            if last {
                return;
            }
            pause(if busy { LOOK_AGAIN_SOON } else { LOOK_AGAIN });
        }
    }

    /// Writes all records there are. When the files take no more, the ends' rings run full, and
    /// they count what they lose. Whether there were many.
    fn drain(&mut self) -> bool {
        let Some(files) = &mut self.files else {
            self.sources.clear();
            return false;
        };
        // An end that is gone now has put its last record into its ring.
        let gone: Vec<bool> = self.sources.iter().map(|s| s.ring.is_abandoned()).collect();
        let mut write = || {
            let mut most = 0;
            for source in &mut self.sources {
                let there = source.ring.slots();
                most = most.max(there);
                for _ in 0..there {
                    let Ok(octets) = source.ring.pop() else { break };
                    files.write(source.stream, &Record::from_bytes(&octets))?;
                }
            }
            if most > 0 {
                files.flush()?;
            }
            Ok::<_, io::Error>(most >= RING / 4)
        };
        let written = write();
        if let Err(error) = &written {
            eprintln!("onbeat: the delay log {} ends here: {error}", files.path().display());
            self.files = None;
        }
        let mut gone = gone.into_iter();
        self.sources.retain(|_| gone.next() != Some(true));
        written.unwrap_or(false)
    }

    /// Tells once that the trace is frozen.
    fn tell(&mut self) {
        let Some(why) = self.trace.as_ref().and_then(|trace| trace.broken()) else { return };
        let (channel, sequence, latency) = (why.channel, why.sequence, why.latency);
        let done = if why.done { "is frozen" } else { "could not be frozen" };
        eprintln!(
            "onbeat: the kernel's trace {done}: message {sequence} of channel `{channel}` took \
             {latency}"
        );
        self.trace = None;
    }
}

/// Makes the calling thread one that disturbs no other thread: it has the priority of the thread
/// that opened the context otherwise, and handles the program's signals.
pub(crate) fn step_back() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a zeroed set is valid to be filled; all pointers are to locals, valid during each
    // call; priorities and signal mask are the calling thread's own. None of it can fail in a way
    // that would matter here: the thread would only be more important than it need be.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters);
        let own = libc::gettid().unsigned_abs();
        libc::setpriority(libc::PRIO_PROCESS, own, NICE);
    }
}
