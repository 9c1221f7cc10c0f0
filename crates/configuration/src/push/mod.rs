//! What devices are told, written to all of them or to none by NETCONF (RFC 6241, confirmed commit
//! 8.4): a state machine without I/O. It says which request comes next; the caller carries it out
//! and says what came of it.
//!
//! A step is done on all devices before the next one begins on any. What fails before the first
//! confirmation takes everything back. From then on the others are confirmed, too: a device that
//! cannot be goes back alone, and is named. A session's end takes back what is not confirmed, so
//! nothing of it depends on this program being alive.

mod claims;
mod device;
mod edit;
mod keys;
mod rpc;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tests;
mod tree;

pub use device::{PushDocument, PushState, PushTarget};
pub use rpc::{PushStep, RpcError};

use device::Device;
use onbeat_model::time::Span;
use std::collections::VecDeque;

/// Devices of one deployment.
pub const DEVICES_MAX: usize = 1_024;
/// After which part of the time to confirm, in quarters, no confirmation begins any more.
const LATEST_QUARTERS: i64 = 3;

/// How a device goes back.
const BACK: [PushStep; 5] =
    [PushStep::Cancel, PushStep::Discard, PushStep::After, PushStep::Unlock, PushStep::Close];

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Carries a step out on a device, by its place among the targets.
    Do {
        /// Which device.
        device: usize,
        /// What.
        step: PushStep,
        /// The operation in XML, that of `rpc`; none to open a session.
        rpc: Option<String>,
    },
    /// All is done.
    Done,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a session, with these capabilities of the device.
    Connected(Vec<String>),
    /// The device's answer: an `rpc-reply`.
    Answered(String),
    /// There is no session, or not any more; why.
    Lost(String),
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// On which device.
    pub device: usize,
    /// In which step.
    pub step: PushStep,
    /// Why.
    pub why: RpcError,
}

/// How a deployment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Each device has what it was told.
    Deployed,
    /// Each device would take what it was to be told, and has what it had.
    Tried,
    /// Each device has what it had before.
    Unchanged,
    /// Some devices have what they were told, or what they have is not known.
    Mixed,
}

/// How devices are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// After which time without a confirmation a device goes back. At least one second counts.
    pub confirm_within: Span,
    /// Everything up to the validation, and back.
    pub only_try: bool,
}

/// A deployment in progress.
#[derive(Debug)]
pub struct Push {
    devices: Vec<Device>,
    options: PushOptions,
    /// What is still to be done, device by device.
    ahead: VecDeque<(usize, PushStep)>,
    /// What is being done.
    doing: Option<(usize, PushStep)>,
    failures: Vec<Failure>,
    /// When the first commit began.
    begun: Option<Span>,
    /// Whether everything is being taken back, or has been.
    back: bool,
    interrupted: bool,
}

impl Push {
    /// Tells these devices, of which there are at most [`DEVICES_MAX`].
    pub fn new(targets: &[PushTarget], options: PushOptions) -> Self {
        assert!(targets.len() <= DEVICES_MAX, "the caller limits the number of devices");
        let phases: &[&[PushStep]] = match options.only_try {
            true => &[
                &[PushStep::Connect, PushStep::Library],
                &[PushStep::Lock],
                &[PushStep::Before, PushStep::Try, PushStep::Validate, PushStep::Discard],
                &[PushStep::Unlock, PushStep::Close],
            ],
            // A device's `validate` may leave the candidate so that `commit` takes nothing of it
            // (yuma123 2.13). So what was tried is taken back, and edited again.
            false => &[
                &[PushStep::Connect, PushStep::Library],
                &[PushStep::Lock],
                &[PushStep::Before, PushStep::Try, PushStep::Validate, PushStep::Discard],
                &[PushStep::Edit],
                &[PushStep::Commit],
                &[PushStep::Verify],
                &[PushStep::Confirm],
                &[PushStep::Unlock, PushStep::Close],
            ],
        };
        let of_phase = |phase: &&[PushStep]| {
            let steps = phase.to_vec();
            (0..targets.len()).flat_map(move |at| steps.clone().into_iter().map(move |s| (at, s)))
        };
        Self {
            devices: targets.iter().map(Device::new).collect(),
            options,
            ahead: phases.iter().flat_map(of_phase).collect(),
            doing: None,
            failures: Vec::new(),
            begun: None,
            back: false,
            interrupted: false,
        }
    }

    /// What is to be done at `now`, on any clock that never goes back. What it returned before has
    /// come to an event since.
    pub fn next(&mut self, now: Span) -> Action {
        assert!(self.doing.is_none(), "what was to be done has come to an event");
        while let Some((device, step)) = self.ahead.pop_front() {
            if !self.devices[device].takes(step) {
                continue;
            }
            if step == PushStep::Confirm && !self.is_decided() && self.is_late(now) {
                let why = "too much of the time to confirm has passed";
                self.fail(device, step, vec![RpcError::own(why)]);
                continue;
            }
            if step == PushStep::Commit {
                self.begun.get_or_insert(now);
            }
            let rpc = self.devices[device].begin(step, self.options.confirm_within);
            self.doing = Some((device, step));
            return Action::Do { device, step, rpc };
        }
        Action::Done
    }

    /// What came of the last action.
    pub fn happened(&mut self, event: Event) {
        let (device, step) = self.doing.take().expect("something was to be done");
        let refused = self.devices[device].happened(step, event);
        if let Err(refusals) = refused {
            self.fail(device, step, refusals);
        }
        let is_last = |other: usize| other + 1 == self.devices.len();
        // What devices lack is said of all of them at once.
        if step == PushStep::Library && is_last(device) && !self.failures.is_empty() {
            self.go_back();
        }
    }

    /// Takes everything back, unless a device has been confirmed already.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
        if !self.is_decided() {
            self.go_back();
        }
    }

    fn fail(&mut self, device: usize, step: PushStep, refusals: Vec<RpcError>) {
        self.failures.extend(refusals.into_iter().map(|why| Failure { device, step, why }));
        match step {
            PushStep::Connect | PushStep::Library if !self.back => {
                // The others are asked, too, and nothing has been written.
                let is_last = device + 1 == self.devices.len();
                self.ahead.retain(|(of, next)| *of != device || *next != PushStep::Library);
                if is_last {
                    self.go_back();
                }
            }
            _ if self.back => {}
            // Two-phase commit: the first confirmation decides.
            PushStep::Confirm if self.is_decided() => self.take_back(device),
            PushStep::Unlock | PushStep::Close => {}
            _ => self.go_back(),
        }
    }

    fn is_late(&self, now: Span) -> bool {
        let latest = self.options.confirm_within.as_ns() / 4 * LATEST_QUARTERS;
        self.begun.is_some_and(|begun| (now - begun).as_ns() >= latest)
    }

    /// Whether a device has been confirmed, or may have been.
    fn is_decided(&self) -> bool {
        self.devices.iter().any(Device::may_be_confirmed)
    }

    /// Everything is taken back; a device takes only those steps that it needs.
    fn go_back(&mut self) {
        if self.back {
            return;
        }
        self.back = true;
        self.ahead.clear();
        let devices = 0..self.devices.len();
        let all = BACK.iter().flat_map(|step| devices.clone().map(|device| (device, *step)));
        self.ahead.extend(all);
    }

    fn take_back(&mut self, device: usize) {
        self.ahead.retain(|(of, _)| *of != device);
        self.ahead.extend(BACK.map(|step| (device, step)));
    }

    /// What failed, in order.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether it was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// What can be said of a device's running configuration.
    pub fn state(&self, device: usize) -> PushState {
        self.devices[device].state()
    }

    /// What was removed from a device, or would be: paths of entries that the plan lacks.
    pub fn removed(&self, device: usize) -> &[String] {
        self.devices[device].removed()
    }

    /// How it ended, after [`Action::Done`].
    pub fn ending(&self) -> Ending {
        let all = |state| self.devices.iter().all(|device| device.state() == state);
        let unchanged = [PushState::Unchanged, PushState::TakenBack];
        let is_unchanged = |device: &Device| unchanged.contains(&device.state());
        if all(PushState::Deployed) {
            Ending::Deployed
        } else if !self.devices.iter().all(is_unchanged) {
            Ending::Mixed
        } else if self.options.only_try && self.failures.is_empty() && !self.back {
            Ending::Tried
        } else {
            Ending::Unchanged
        }
    }
}

/// Reads XML as a device's answers are read. Whether it is one, for a test of the reader.
#[doc(hidden)]
pub fn is_readable(text: &str) -> bool {
    let tree = tree::Tree::read(text);
    if let Ok(tree) = &tree {
        assert_eq!(tree::Tree::read(&tree.write()).as_ref(), Ok(tree));
        let (nodes, none) = (std::slice::from_ref(tree), edit::edit(&[], &[], &[]));
        assert!(none.config.is_empty());
        let _ = edit::difference(nodes, nodes, &[]);
        let _ = edit::edit(&[], nodes, nodes);
        let _ = rpc::reply(text);
    }
    tree.is_ok()
}
