//! The Registrar: whether an attribute is registered (802.1Q-2018 10.7.8, Table 10-4).

use crate::mrp::pdu::AttributeEvent;

/// The states of a Registrar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegistrarState {
    /// IN: registered.
    In,
    /// LV: registered, and about to leave.
    Lv,
    /// MT, empty: not registered.
    #[default]
    Mt,
}

/// What happens to a Registrar (10.7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegistrarEvent {
    /// The machine starts.
    Begin,
    /// New was received.
    ReceivedNew,
    /// JoinIn or JoinMt was received.
    ReceivedJoin,
    /// In or Mt was received.
    ReceivedState,
    /// Lv was received.
    ReceivedLv,
    /// LeaveAll was received.
    ReceivedLeaveAll,
    /// LeaveAll is sent.
    TransmitLeaveAll,
    /// The port changed from Designated to Root or Alternate.
    Redeclare,
    /// The port changed from Root or Alternate to Designated.
    Flush,
    /// The leave timer expired.
    LeaveTimer,
}

impl From<AttributeEvent> for RegistrarEvent {
    fn from(event: AttributeEvent) -> Self {
        match event {
            AttributeEvent::New => Self::ReceivedNew,
            AttributeEvent::JoinIn | AttributeEvent::JoinMt => Self::ReceivedJoin,
            AttributeEvent::In | AttributeEvent::Mt => Self::ReceivedState,
            AttributeEvent::Lv => Self::ReceivedLv,
        }
    }
}

/// What management wants of a registration (10.7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegistrarMode {
    /// What is received decides.
    #[default]
    Normal,
    /// Registered, whatever is received.
    Fixed,
    /// Not registered, whatever is received.
    Forbidden,
}

/// What a Registrar tells its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// New: registered as new.
    New,
    /// Join: registered.
    Join,
    /// Lv: no longer registered.
    Leave,
}

/// What a Registrar does with its leave timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveTimer {
    /// Leaves it as it is.
    Keep,
    /// Starts it.
    Start,
    /// Stops it.
    Stop,
}

/// A transition: the next state, what the application is told, and the leave timer.
pub type RegistrarStep = (RegistrarState, Option<Registration>, LeaveTimer);

use LeaveTimer::{Keep, Start, Stop};
use RegistrarEvent as E;
use RegistrarState::{In, Lv, Mt};

impl RegistrarState {
    /// What management's wish makes of a Registrar before anything is received.
    pub const fn of(mode: RegistrarMode) -> Self {
        match mode {
            RegistrarMode::Fixed => In,
            RegistrarMode::Normal | RegistrarMode::Forbidden => Mt,
        }
    }

    /// The next state (Table 10-4). A registration that is fixed or forbidden stays as it is.
    pub const fn after(self, event: RegistrarEvent, mode: RegistrarMode) -> RegistrarStep {
        match mode {
            RegistrarMode::Normal => self.normally_after(event),
            RegistrarMode::Fixed | RegistrarMode::Forbidden => (Self::of(mode), None, Keep),
        }
    }

    const fn normally_after(self, event: RegistrarEvent) -> RegistrarStep {
        match (event, self) {
            (E::Begin, _) => (Mt, None, Stop),
            (E::ReceivedNew, Lv) => (In, Some(Registration::New), Stop),
            (E::ReceivedNew, _) => (In, Some(Registration::New), Keep),
            (E::ReceivedJoin, Lv) => (In, None, Stop),
            (E::ReceivedJoin, Mt) => (In, Some(Registration::Join), Keep),
            (E::ReceivedLv | E::ReceivedLeaveAll | E::TransmitLeaveAll | E::Redeclare, In) => {
                (Lv, None, Start)
            }
            (E::Flush, In) => (Mt, Some(Registration::Leave), Keep),
            (E::Flush, Lv) => (Mt, Some(Registration::Leave), Stop),
            (E::LeaveTimer, Lv) => (Mt, Some(Registration::Leave), Keep),
            _ => (self, None, Keep),
        }
    }
}
