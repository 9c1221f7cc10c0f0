//! Bridges that have a path of its own for frames of Network Code's stations, beside that of best
//! effort: the switch of the Atacama platform (Carvajal and Fischmeister, DATE 2013, section IV).

use crate::system::{Node, NodeKind};
use crate::time::Span;
use crate::units::{BitRate, Octets, frame};
use serde::Deserialize;

/// What a bridge with a dedicated path does to best effort that would delay a frame of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BestEffortPolicy {
    /// Abort it at the warning, and send it again from its beginning afterwards.
    #[default]
    Retry,
    /// Abort it, and lose it.
    Drop,
    /// Let it end first; the station's frame waits.
    Finish,
}

/// The dedicated path of a bridge. A frame of a station leaves by all other ports, each octet at a
/// fixed time after it came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedicatedPath {
    /// What happens to best effort.
    pub on_best_effort: BestEffortPolicy,
    /// How much later frames leave than the hardware needs.
    pub wait: Span,
}

impl DedicatedPath {
    /// When ports are warned: preamble, addresses, tag and EtherType are in, whether there is a tag
    /// or not, have been brought into the clock of the switch, and a frame that is not dropped has
    /// the path.
    pub const WARNING: Octets = Octets::new(33);
    /// From the first octet of the preamble in to the first octet out, without a wait: the warning,
    /// one octet that aborts what goes out, the gap. It is what `rtl/switch/atacama_switch.v` takes
    /// from pin to pin.
    pub const START: Octets = Octets::new(46);
    /// By how much later a frame may leave: what crosses to another oscillator's clock takes a
    /// cycle more at times. The network engine has exact clocks there.
    pub const CROSSING: Octets = Octets::new(1);
    /// What aborts a frame: an octet with TX_ER.
    pub const ABORT: Octets = Octets::new(1);
    /// How much later a frame begins that had to wait for best effort to end, at least.
    pub const QUEUED: Octets = Octets::new(3);
    /// Best effort moves from a port to all that it leaves by in words of so many octets; at each
    /// port there is a turn in as many octets, an octet after that of the port before.
    pub const WORD: Octets = Octets::new(4);

    /// What a frame takes of a port's memory, and of the time in which it moves there.
    pub fn in_words(octets: Octets) -> Octets {
        Octets::new(octets.get().next_multiple_of(Self::WORD.get()))
    }

    /// From the first octet of the preamble in to the first octet out, over links of a rate.
    pub fn start(&self, rate: BitRate) -> Span {
        rate.time_for(Self::START) + self.wait
    }
}

impl Node {
    /// Its dedicated path, if it is a bridge that has one.
    pub fn dedicated_path(&self) -> Option<DedicatedPath> {
        match &self.kind {
            NodeKind::Bridge(bridge) => bridge.dedicated_path,
            NodeKind::Host(_) => None,
        }
    }

    /// Whether best effort in transmission delays frames of stations at its ports.
    pub fn best_effort_blocks(&self) -> bool {
        self.dedicated_path().is_none_or(|path| path.on_best_effort == BestEffortPolicy::Finish)
    }

    /// Whether it has a dedicated path and two links: frames that go opposite ways may then meet on
    /// the path though they share no link. Of more links all frames share one.
    pub fn has_dedicated_pair(&self) -> bool {
        self.dedicated_path().is_some() && self.ports.len() == 2
    }
}

const _: () = assert!(
    DedicatedPath::WARNING.get() + DedicatedPath::ABORT.get() + frame::GAP.get()
        == DedicatedPath::START.get(),
    "what is aborted is over, gap included, when the station's frame begins"
);
