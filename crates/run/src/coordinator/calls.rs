//! What programs ask for in virtual time, kept from one run to find where another one differs.
//!
//! Equal calls at equal times give equal records, so the first call that differs is where programs
//! left what virtual time can promise: they read the machine's clock, an address, a file of the
//! other run.

use crate::coordinator::table::ThreadId;
use onbeat::coordinator::protocol::Request;
use onbeat_model::time::NetTime;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most calls that are kept each; of what is beyond only a sum is.
const MOST: usize = 1 << 24;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    at: NetTime,
    thread: u32,
    kind: Kind,
    /// Of all that was asked.
    hash: u64,
}

/// What was called, as users know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Open,
    Start,
    Sleep,
    Work,
    Write,
    Read,
    Select,
    Close,
    CreateThread,
    JoinThread,
    Wait,
    Wake,
    Leave,
}

impl Kind {
    /// `None` for what only the library's use of the connection needs, also as the machine has it.
    const fn of(request: &Request<'_>) -> Option<Self> {
        Some(match request {
            Request::Open { .. } => Self::Open,
            Request::Start => Self::Start,
            Request::Sleep(_) => Self::Sleep,
            Request::Work(_) => Self::Work,
            Request::Send(..) | Request::Launch(..) => Self::Write,
            Request::Receive(..) | Request::Took(..) => Self::Read,
            Request::Select(..) => Self::Select,
            Request::Close(_) => Self::Close,
            Request::Announce => Self::CreateThread,
            Request::Join(_) => Self::JoinThread,
            Request::Park { .. } => Self::Wait,
            Request::Unpark(_) => Self::Wake,
            Request::Bye => Self::Leave,
            Request::Hello(_) | Request::Begin(_) | Request::BeginInMemory(_) | Request::Yield => {
                return None;
            }
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Open => "opens an endpoint",
            Self::Start => "calls onbeat_start",
            Self::Sleep => "sleeps (onbeat_sleep_until)",
            Self::Work => "works (onbeat_work)",
            Self::Write => "writes a message",
            Self::Read => "reads (onbeat_read)",
            Self::Select => "calls onbeat_select",
            Self::Close => "closes an endpoint",
            Self::CreateThread => "creates a thread",
            Self::JoinThread => "joins a thread",
            Self::Wait => "waits for another thread",
            Self::Wake => "wakes other threads",
            Self::Leave => "leaves the run",
        }
    }
}

impl Call {
    fn new(at: NetTime, thread: ThreadId, kind: Kind, packet: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        match kind {
            // What threads wait for has an address, and who holds it a number, which are others in
            // each process.
            Kind::Wait | Kind::Wake => {}
            // Whether a message was offered is the library's affair.
            Kind::Read => packet.get(1..).hash(&mut hasher),
            _ => packet.hash(&mut hasher),
        }
        Self { at, thread: thread.0, kind, hash: hasher.finish() }
    }

    fn sum(self, before: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (before, self.at.as_ns(), self.thread, self.kind, self.hash).hash(&mut hasher);
        hasher.finish()
    }
}

/// The calls of a run, and whether a later one makes the same.
#[derive(Debug, Default)]
pub struct Calls {
    first: Vec<Call>,
    /// Of those beyond [`MOST`], in the first run and in the later one.
    sums: [u64; 2],
    /// How many the later run has made; `None` in the first.
    repeated: Option<usize>,
    difference: Option<String>,
}

impl Calls {
    /// The next run is held against the one before.
    pub fn repeat(&mut self) {
        self.repeated = Some(0);
    }

    /// Where the later run differed from the first one first, in words that follow "the second
    /// run"; `None`: nowhere.
    pub fn difference(&self) -> Option<String> {
        let made = self.repeated?;
        self.difference.clone().or_else(|| {
            if let Some(missing) = self.first.get(made) {
                let (what, at) = (missing.kind.name(), missing.at - NetTime::ZERO);
                return Some(format!(
                    "makes {} calls less: the first one missing is that thread {} {what} at {at}",
                    self.first.len() - made,
                    missing.thread
                ));
            }
            let beyond = "differs after more calls than are kept";
            (self.sums[0] != self.sums[1]).then(|| beyond.to_owned())
        })
    }

    /// How many calls the first run made, and whether there were more than are kept each.
    pub fn count(&self) -> (usize, bool) {
        (self.first.len(), self.sums[0] != 0)
    }

    /// A thread of a program asks for something.
    pub(super) fn note<'n>(
        &mut self,
        (at, thread): (NetTime, ThreadId),
        (request, packet): (&Request<'_>, &[u8]),
        name: impl Fn(ThreadId) -> &'n str,
    ) {
        let Some(kind) = Kind::of(request) else { return };
        let call = Call::new(at, thread, kind, packet);
        let Some(made) = &mut self.repeated else {
            match self.first.len() < MOST {
                true => self.first.push(call),
                false => self.sums[0] = call.sum(self.sums[0]),
            }
            return;
        };
        if *made == MOST {
            self.sums[1] = call.sum(self.sums[1]);
            return;
        }
        let before = self.first.get(*made).copied();
        *made += 1;
        if self.difference.is_none() && before != Some(call) {
            self.difference = Some(explain(before, call, name));
        }
    }
}

/// How a call differs from the one in its place.
fn explain<'n>(before: Option<Call>, call: Call, name: impl Fn(ThreadId) -> &'n str) -> String {
    let (at, who) = (call.at - NetTime::ZERO, name(ThreadId(call.thread)));
    let (number, what) = (call.thread, call.kind.name());
    let does = format!("differs at {at}: program `{who}` (thread {number}) {what}");
    let Some(before) = before else {
        return format!("{does}; the first run had ended its calls");
    };
    if before.thread != call.thread {
        let (other, what) = (name(ThreadId(before.thread)), before.kind.name());
        return format!(
            "{does}; in the first run program `{other}` (thread {}) {what} then, at {}",
            before.thread,
            before.at - NetTime::ZERO
        );
    }
    if before.at != call.at {
        let (what, at) = (before.kind.name(), before.at - NetTime::ZERO);
        return format!("{does}; in the first run it {what} at {at}");
    }
    if before.kind != call.kind {
        return format!("{does}; in the first run it {}", before.kind.name());
    }
    match call.kind {
        Kind::Write => format!("{does} with other octets than in the first run"),
        _ => format!("{does} with other arguments than in the first run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::coordinator::protocol::MAX_PACKET;
    use onbeat_model::time::SyncedTime;

    fn note(calls: &mut Calls, at: i64, thread: u32, request: &Request<'_>) {
        let mut packet = [0; MAX_PACKET];
        let length = request.encode(&mut packet);
        let names = ["left", "right"];
        let of = |thread: ThreadId| names[thread.0 as usize % 2];
        calls.note((NetTime::from_ns(at), ThreadId(thread)), (request, &packet[..length]), of);
    }

    fn second(requests: &[(i64, u32, Request<'_>)]) -> Option<String> {
        let mut calls = Calls::default();
        note(&mut calls, 0, 0, &Request::Sleep(SyncedTime::from_ns(5)));
        note(&mut calls, 5, 1, &Request::Send(1, &[1, 2]));
        note(&mut calls, 6, 1, &Request::Unpark(7));
        assert_eq!((calls.difference(), calls.count()), (None, (3, false)));
        calls.repeat();
        for (at, thread, request) in requests {
            note(&mut calls, *at, *thread, request);
        }
        calls.difference()
    }

    #[test]
    fn the_first_difference_is_named() {
        let sleep = (0, 0, Request::Sleep(SyncedTime::from_ns(5)));
        let (send, wake) = ((5, 1, Request::Send(1, &[1, 2])), (6, 1, Request::Unpark(8)));
        assert_eq!(second(&[sleep, send, wake]), None);
        let said = |requests: &[(i64, u32, Request<'_>)]| second(requests).expect("a difference");
        let less = said(&[sleep, send]);
        let missing = "makes 1 calls less: the first one missing is that thread 1 wakes";
        assert!(less.starts_with(missing), "{less}");
        let other = said(&[sleep, (5, 1, Request::Send(1, &[1, 3])), wake]);
        assert!(other.contains("`right` (thread 1) writes a message with other octets"), "{other}");
        let later = said(&[sleep, (7, 1, Request::Send(1, &[1, 2]))]);
        assert!(later.contains("differs at 7 ns") && later.ends_with("at 5 ns"), "{later}");
        let thread = said(&[sleep, (5, 0, Request::Bye)]);
        assert!(thread.contains("`left` (thread 0) leaves the run; in the first run"), "{thread}");
        let kind = said(&[sleep, (5, 1, Request::Start)]);
        assert!(kind.ends_with("in the first run it writes a message"), "{kind}");
        let more = said(&[sleep, send, wake, (9, 0, Request::Bye)]);
        assert!(more.ends_with("the first run had ended its calls"), "{more}");
    }
}
