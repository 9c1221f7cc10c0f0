//! What linuxptp measures of a machine's clock while a run takes place there.

use super::part::Teller;
use super::protocol::Told;
use onbeat::clock::pause;
use onbeat::interface::{InterfaceSettings, PortState, ask_ptp4l, hardware_apart, tai_offset};
use onbeat_model::time::Span;
use onbeat_run::coordinator::StartAt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// A thread that asks each second, and tells what is new. Ends with this value.
pub(super) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub(super) fn start(of: Measured, tell: &Teller) -> Self {
        let (over, tell) = (Arc::new(AtomicBool::new(false)), tell.clone());
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || measure(&of, &tell, &seen));
        Self { over, thread: Some(thread) }
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

fn measure(of: &Measured, tell: &Teller, over: &AtomicBool) {
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
        let ptp4l_ns = status.filter(|_| is_new).map(|status| status.offset.as_ns());
        let phc2sys_ns = ahead.map(|(hardware, tai)| (tai - hardware).as_ns());
        if at >= Span::ZERO && (ptp4l_ns.is_some() || phc2sys_ns.is_some()) {
            tell.say(&Told::TimeError { at_ns: at.as_ns(), ptp4l_ns, phc2sys_ns });
        }
        next = (next + INTERVAL).max(at + LOOK_AGAIN);
        while now() < next && !over.load(Ordering::Relaxed) {
            pause(LOOK_AGAIN);
        }
    }
}
