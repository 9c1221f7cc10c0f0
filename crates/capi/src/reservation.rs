//! How the streams of channel ends stand, where SRP reserves bandwidth for them.

use crate::boundary::{entry, onbeat_status, shared};
use crate::channel::{onbeat_listener, onbeat_talker};
use crate::sized::give;
use library::interface::srp::{Phase, StreamStatus};

/// State of a channel endpoint's stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::enum_variant_names)] // one name space in C
pub enum onbeat_stream_state {
    /// SRP does not reserve for it: it is of a run, or `ONBEAT_RESERVE` was not asked for.
    OnbeatStreamUnreserved = 0,
    /// The reservation service is gone, and looked for.
    OnbeatStreamNoService = 1,
    /// The link is down, or the neighbour has not been asked yet.
    OnbeatStreamAsking = 2,
    /// Talker: no listener is known. Listener: the talker is known, the VLAN being joined.
    OnbeatStreamAdvertised = 3,
    /// Bandwidth is reserved.
    OnbeatStreamReady = 4,
    /// Bandwidth is reserved for some of the listeners.
    OnbeatStreamReadyFailed = 5,
    /// There are listeners, and none can get the stream.
    OnbeatStreamAskingFailed = 6,
    /// It cannot be reserved: `failure_code` and `bridge` say why.
    OnbeatStreamFailed = 7,
    /// No talker is known.
    OnbeatStreamNoTalker = 8,
    /// The neighbour has SR classes, and not the stream's.
    OnbeatStreamDomainMismatch = 9,
}

/// Reservation of a channel endpoint's stream. Later versions may add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types)]
pub struct onbeat_reservation {
    /// An `onbeat_stream_state`.
    pub state: u32,
    /// Why it failed (802.1Q Table 46-15), else 0.
    pub failure_code: u32,
    /// The bridge that says so: two octets of priority, six of its address; else zeros.
    pub bridge: [u8; 8],
    /// VLAN identifier of its frames, 0 if unknown.
    pub vlan: u16,
    /// Priority code point of its frames.
    pub pcp: u8,
    /// 1 if no neighbour speaks MSRP: it has a share of this host's own port, no more.
    pub is_static: u8,
}

impl From<Option<StreamStatus>> for onbeat_reservation {
    fn from(status: Option<StreamStatus>) -> Self {
        use onbeat_stream_state as State;
        let Some(status) = status else {
            return Self { state: State::OnbeatStreamUnreserved as u32, ..Self::default() };
        };
        let state = match status.phase {
            Phase::NoService => State::OnbeatStreamNoService,
            Phase::Asking => State::OnbeatStreamAsking,
            Phase::Advertised => State::OnbeatStreamAdvertised,
            Phase::Ready => State::OnbeatStreamReady,
            Phase::ReadyFailed => State::OnbeatStreamReadyFailed,
            Phase::AskingFailed => State::OnbeatStreamAskingFailed,
            Phase::Failed(_) => State::OnbeatStreamFailed,
            Phase::NoTalker => State::OnbeatStreamNoTalker,
            Phase::DomainMismatch => State::OnbeatStreamDomainMismatch,
        };
        let (failure_code, bridge) = match status.phase {
            Phase::Failed(failure) => (failure.code.0.into(), failure.bridge.0),
            _ => (0, [0; 8]),
        };
        Self {
            state: state as u32,
            failure_code,
            bridge,
            vlan: status.vid.unwrap_or(0),
            pcp: status.priority.unwrap_or(0),
            is_static: status.is_static.into(),
        }
    }
}

/// How the stream of a talker endpoint stands. `size` is `sizeof(struct onbeat_reservation)` by the
/// header that the program was compiled with; `out` may be NULL. Takes a lock for a short time: not
/// for real-time paths. Allocates nothing.
///
/// # Safety
/// `talker` is NULL or comes from `onbeat_talker_open`; `out` is NULL or valid for writing `size`
/// octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_talker_reservation(
    talker: *const onbeat_talker,
    size: usize,
    out: *mut onbeat_reservation,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let reservation = unsafe { shared(talker, "talker") }?.reservation()?;
        // SAFETY: the caller's promise.
        unsafe { give(out, size, reservation) };
        Ok(onbeat_status::OnbeatOk)
    })
}

/// The same for a listener endpoint; `out` may be NULL.
///
/// # Safety
/// `listener` is NULL or comes from `onbeat_listener_open`; `out` is NULL or valid for writing
/// `size` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_listener_reservation(
    listener: *const onbeat_listener,
    size: usize,
    out: *mut onbeat_reservation,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let reservation = unsafe { shared(listener, "listener") }?.reservation()?;
        // SAFETY: the caller's promise.
        unsafe { give(out, size, reservation) };
        Ok(onbeat_status::OnbeatOk)
    })
}
