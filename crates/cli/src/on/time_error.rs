//! What linuxptp measures of a machine's clock while a run takes place there.

use onbeat::clock::pause;
use onbeat::interface::{InterfaceSettings, PortState, ask_ptp4l, hardware_apart, tai_offset};
use onbeat_model::record::TimeErrorSample;
use onbeat_model::time::{NetTime, Span};
use onbeat_run::coordinator::StartAt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often it is asked for, and how often one looks whether the run is over.
const INTERVAL: Span = Span::from_s(1);
const LOOK_AGAIN: Span = Span::from_ms(50);

/// Where to ask, and for how long.
pub(super) struct Measured {
    /// The interface whose clock it is.
    pub(super) interface: String,
    /// ptp4l's management socket, if not the usual one.
    pub(super) ptp4l: Option<String>,
    /// What CLOCK_TAI reads at the instant that the run calls zero.
    pub(super) zero_ns: i64,
    pub(super) duration: Span,
}

/// What was measured up to now, in order of time.
type Samples = Mutex<Vec<TimeErrorSample>>;

/// A thread that asks each second. Ends with this value.
pub(super) struct Sampler {
    over: Arc<AtomicBool>,
    samples: Arc<Samples>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub(super) fn start(of: Measured) -> Self {
        let (over, samples) = (Arc::new(AtomicBool::new(false)), Arc::<Samples>::default());
        let (seen, noted) = (Arc::clone(&over), Arc::clone(&samples));
        let thread = std::thread::spawn(move || measure(&of, &noted, &seen));
        Self { over, samples, thread: Some(thread) }
    }

    /// What was measured, without so many of the first.
    pub(super) fn samples_from(&self, first: usize) -> Vec<TimeErrorSample> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.get(first..).unwrap_or_default().to_vec()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn measure(of: &Measured, samples: &Samples, over: &AtomicBool) {
    let usual = InterfaceSettings::default();
    let socket = of.ptp4l.as_ref().map_or(usual.ptp4l, PathBuf::from);
    let now = || Span::from_ns(StartAt::In(Span::ZERO).network_ns().saturating_sub(of.zero_ns));
    // The last Sync that was measured: an offset that remains from before is no measurement. The
    // first look only finds it.
    let (mut last, mut is_first) = (None, true);
    let mut next = Span::ZERO;
    while !over.load(Ordering::Relaxed) {
        let at = now();
        if at >= of.duration {
            return;
        }
        let status = ask_ptp4l(&socket, usual.ptp_domain).ok();
        let follows = |state| matches!(state, PortState::Slave | PortState::Uncalibrated);
        let status = status.filter(|status| follows(status.state));
        let ingress = status.and_then(|status| status.sync.ingress_ns);
        let is_new = ingress.is_some() && ingress != last && !is_first;
        is_first = false;
        last = ingress.or(last);
        let ahead = hardware_apart(&of.interface).zip(tai_offset().ok());
        let ptp4l = status.filter(|_| is_new).map(|status| status.offset);
        let phc2sys = ahead.map(|(hardware, tai)| tai - hardware);
        if at >= Span::ZERO && (ptp4l.is_some() || phc2sys.is_some()) {
            let at = NetTime::ZERO + at;
            let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
            // A clock that was set back measures again what was.
            if samples.last().is_none_or(|last| last.at < at) {
                samples.push(TimeErrorSample { at, ptp4l, phc2sys });
            }
        }
        next = (next + INTERVAL).max(at + LOOK_AGAIN);
        while now() < next && !over.load(Ordering::Relaxed) {
            pause(LOOK_AGAIN);
        }
    }
}
