//! What devices can do at most. `docs/devices.md` has the source of each built-in figure.

use crate::diagnostic::Origin;
use crate::time::Span;
use serde::Deserialize;

/// What a device can do at most, at each of its ports. None: unknown, and so not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Queues of a port, each for one traffic class (802.1Q-2022 8.6.6).
    pub traffic_classes: Option<u8>,
    /// Queues of a port that may have a credit-based shaper.
    pub credit_based: Option<u8>,
    /// Whether there are gates (802.1Q-2022 8.6.8.4) at all.
    pub gates: Option<bool>,
    /// SupportedListMax (802.1Q-2022 12.29.1): entries of a gate control list.
    pub list_max: Option<usize>,
    /// Entries of the gate control lists of all ports together.
    pub shared_list_max: Option<usize>,
    /// How often a gate may open in a cycle. One that is open from the last entry on into the first
    /// one opens once more.
    pub openings_max: Option<usize>,
    /// SupportedCycleMax: how long a cycle may take.
    pub cycle_max: Option<Span>,
    /// SupportedIntervalMax: how long an entry may take.
    pub interval_max: Option<Span>,
    /// How long an entry has to take at least.
    pub interval_min: Option<Span>,
    /// TickGranularity: base time, cycle and entries are multiples of it.
    pub tick: Option<Span>,
    /// Whether a frame starts only if it ends before its gate closes.
    pub length_aware: Option<bool>,
    /// Whether a bridge may forward a frame before it has all of it.
    pub cut_through: Option<bool>,
    /// Whether queues may be preemptable (802.1Qbu, 802.3br).
    pub preemption: Option<bool>,
    /// Whether there is asynchronous traffic shaping (802.1Qcr).
    pub asynchronous: Option<bool>,
    /// Whether a bridge eliminates duplicates of replicated frames (802.1CB-2017 7.4.3).
    pub elimination: Option<bool>,
}

impl DeviceLimits {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        traffic_classes: None,
        credit_based: None,
        gates: None,
        list_max: None,
        shared_list_max: None,
        openings_max: None,
        cycle_max: None,
        interval_max: None,
        interval_min: None,
        tick: None,
        length_aware: None,
        cut_through: None,
        preemption: None,
        asynchronous: None,
        elimination: None,
    };

    /// These, and where they are unknown those of `base`.
    #[must_use]
    pub fn or(self, base: Self) -> Self {
        Self {
            traffic_classes: self.traffic_classes.or(base.traffic_classes),
            credit_based: self.credit_based.or(base.credit_based),
            gates: self.gates.or(base.gates),
            list_max: self.list_max.or(base.list_max),
            shared_list_max: self.shared_list_max.or(base.shared_list_max),
            openings_max: self.openings_max.or(base.openings_max),
            cycle_max: self.cycle_max.or(base.cycle_max),
            interval_max: self.interval_max.or(base.interval_max),
            interval_min: self.interval_min.or(base.interval_min),
            tick: self.tick.or(base.tick),
            length_aware: self.length_aware.or(base.length_aware),
            cut_through: self.cut_through.or(base.cut_through),
            preemption: self.preemption.or(base.preemption),
            asynchronous: self.asynchronous.or(base.asynchronous),
            elimination: self.elimination.or(base.elimination),
        }
    }

    /// In what steps the plan opens and closes gates: the least multiple of the tick that an entry
    /// may take. 1 ns if nothing is known.
    pub fn gate_step(&self) -> Span {
        let tick = self.tick.unwrap_or(Span::from_ns(1)).as_ns();
        let least = self.interval_min.unwrap_or_default().as_ns();
        Span::from_ns(tick * (least.max(1) + tick - 1).div_euclid(tick))
    }

    /// The most entries of a gate control list, of at most `format`, in which one gate opens as
    /// often as it may: it is closed as often, and one state is cut where the cycle begins.
    pub fn entries_max(&self, format: usize) -> usize {
        let openings = self.openings_max.map_or(format, |openings| 2 * openings + 1);
        self.list_max.unwrap_or(format).min(openings).min(format)
    }

    /// The longest entry that can be written in at most `most_ns`: a multiple of the tick.
    pub fn longest_entry(&self, most_ns: u32) -> Span {
        let most = Span::from_ns(most_ns.into());
        let most = self.interval_max.map_or(most, |max| max.min(most));
        let step = self.gate_step().as_ns();
        Span::from_ns((most.as_ns() / step * step).max(1))
    }
}

/// A device that needs no table: as its driver in Linux has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BuiltInDevice {
    /// Intel I210.
    I210,
    /// Intel I225 and I226.
    I225,
    /// Microchip LAN9662 and others of its family, LAN966x.
    Lan9662,
    /// The virtual interface of the kernel.
    Veth,
}

impl BuiltInDevice {
    /// All.
    pub const ALL: [Self; 4] = [Self::I210, Self::I225, Self::Lan9662, Self::Veth];

    /// As descriptions name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I210 => "i210",
            Self::I225 => "i225",
            Self::Lan9662 => "lan9662",
            Self::Veth => "veth",
        }
    }

    /// What it can do.
    pub const fn limits(self) -> DeviceLimits {
        const NONE: DeviceLimits = DeviceLimits {
            asynchronous: Some(false),
            elimination: Some(false),
            ..DeviceLimits::UNKNOWN
        };
        match self {
            Self::I210 => DeviceLimits {
                traffic_classes: Some(4),
                credit_based: Some(2),
                gates: Some(false),
                preemption: Some(false),
                ..NONE
            },
            Self::I225 => DeviceLimits {
                traffic_classes: Some(4),
                credit_based: Some(2),
                gates: Some(true),
                openings_max: Some(1),
                length_aware: Some(true),
                preemption: Some(true),
                ..NONE
            },
            Self::Lan9662 => DeviceLimits {
                traffic_classes: Some(8),
                credit_based: Some(8),
                gates: Some(true),
                list_max: Some(256),
                shared_list_max: Some(256),
                cycle_max: Some(Span::from_ns(999_999_999)),
                interval_max: Some(Span::from_ns(999_999_999)),
                interval_min: Some(Span::from_us(1)),
                preemption: Some(false),
                ..NONE
            },
            Self::Veth => DeviceLimits {
                gates: Some(true),
                length_aware: Some(true),
                preemption: Some(false),
                ..NONE
            },
        }
    }
}

/// The device that a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// As the description names it.
    pub name: String,
    /// What it can do.
    pub limits: DeviceLimits,
    /// Where the node says so.
    pub origin: Origin,
}
