//! The Applicant: whether and how an attribute is declared (802.1Q-2018 10.7.7, Table 10-3).

use crate::mrp::pdu::AttributeEvent;

/// The states of an Applicant, by their names in Table 10-3: how sure it is that the others know of
/// the declaration (very anxious, anxious, quiet, leaving), and its part (active, passive,
/// observer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicantState {
    /// VO, very anxious observer: not declared.
    #[default]
    VeryAnxiousObserver,
    /// VP, very anxious passive: declared, nothing sent yet.
    VeryAnxiousPassive,
    /// VN, very anxious new: declared as new, nothing sent yet.
    VeryAnxiousNew,
    /// AN, anxious new: New sent once.
    AnxiousNew,
    /// AA, anxious active: Join sent once.
    AnxiousActive,
    /// QA, quiet active: declared and sent often enough.
    QuietActive,
    /// LA, leaving active: Lv is to be sent.
    LeavingActive,
    /// AO, anxious observer: not declared, another participant was heard once.
    AnxiousObserver,
    /// QO, quiet observer: not declared, heard often enough.
    QuietObserver,
    /// AP, anxious passive: declared, heard once.
    AnxiousPassive,
    /// QP, quiet passive: declared, heard often enough.
    QuietPassive,
    /// LO, leaving observer: not declared, registrations of others are to be confirmed.
    LeavingObserver,
}

/// What happens to an Applicant (10.7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicantEvent {
    /// The machine starts.
    Begin,
    /// The application declares the attribute as new.
    New,
    /// The application declares the attribute.
    Join,
    /// The application withdraws it.
    Lv,
    /// New was received.
    ReceivedNew,
    /// JoinIn was received.
    ReceivedJoinIn,
    /// In was received.
    ReceivedIn,
    /// JoinMt was received.
    ReceivedJoinMt,
    /// Mt was received.
    ReceivedMt,
    /// Lv was received.
    ReceivedLv,
    /// LeaveAll was received.
    ReceivedLeaveAll,
    /// The port changed from Designated to Root or Alternate.
    Redeclare,
    /// The periodic timer expired.
    Periodic,
    /// There is an opportunity to transmit.
    Transmit,
    /// There is an opportunity to transmit, and LeaveAll is sent.
    TransmitLeaveAll,
    /// The same, and the PDU has no room for this attribute.
    TransmitLeaveAllFull,
}

impl From<AttributeEvent> for ApplicantEvent {
    fn from(event: AttributeEvent) -> Self {
        match event {
            AttributeEvent::New => Self::ReceivedNew,
            AttributeEvent::JoinIn => Self::ReceivedJoinIn,
            AttributeEvent::In => Self::ReceivedIn,
            AttributeEvent::JoinMt => Self::ReceivedJoinMt,
            AttributeEvent::Mt => Self::ReceivedMt,
            AttributeEvent::Lv => Self::ReceivedLv,
        }
    }
}

/// What an Applicant sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// sN: New.
    New,
    /// sJ: JoinIn if the attribute is registered, else JoinMt.
    Join,
    /// s: In if it is registered, else Mt.
    State,
    /// sL: Lv.
    Leave,
    /// [sJ]: only if that makes the PDU shorter.
    OptionalJoin,
    /// [s]: only if that makes the PDU shorter.
    OptionalState,
}

/// What the table's footnotes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicantSituation {
    /// There are two participants (operPointToPointMAC).
    pub is_point_to_point: bool,
    /// There is no Registrar: Applicant-Only Participant.
    pub is_applicant_only: bool,
    /// The Registrar is IN.
    pub is_registered: bool,
}

use ApplicantEvent as E;
use ApplicantState as S;

impl ApplicantState {
    /// The next state, and what is sent (Table 10-3).
    pub const fn after(
        self,
        event: ApplicantEvent,
        situation: ApplicantSituation,
    ) -> (Self, Option<Sending>) {
        let next = match event {
            E::Begin => S::VeryAnxiousObserver,
            E::New => match self {
                S::VeryAnxiousNew | S::AnxiousNew => self,
                _ => S::VeryAnxiousNew,
            },
            E::Join => self.after_join(),
            E::Lv => self.after_leave(),
            E::ReceivedNew => self,
            E::ReceivedJoinIn => self.after_join_in(situation.is_point_to_point),
            E::ReceivedIn => match self {
                S::AnxiousActive if situation.is_point_to_point => S::QuietActive,
                _ => self,
            },
            E::ReceivedJoinMt | E::ReceivedMt => match self {
                S::QuietActive => S::AnxiousActive,
                S::QuietObserver => S::AnxiousObserver,
                S::QuietPassive => S::AnxiousPassive,
                S::LeavingObserver => S::VeryAnxiousObserver,
                _ => self,
            },
            E::ReceivedLv | E::ReceivedLeaveAll | E::Redeclare => {
                self.after_leaving(situation.is_applicant_only)
            }
            E::Periodic => match self {
                S::QuietActive => S::AnxiousActive,
                S::QuietPassive => S::AnxiousPassive,
                _ => self,
            },
            E::Transmit => return self.transmit(situation.is_registered),
            E::TransmitLeaveAll => return self.transmit_leave_all(situation),
            E::TransmitLeaveAllFull => match self {
                S::LeavingActive
                | S::VeryAnxiousObserver
                | S::AnxiousObserver
                | S::QuietObserver => situation.leaving_observer(),
                _ => self.after_leaving(situation.is_applicant_only),
            },
        };
        (next, None)
    }

    const fn after_join(self) -> Self {
        match self {
            S::VeryAnxiousObserver | S::LeavingObserver => S::VeryAnxiousPassive,
            S::LeavingActive => S::AnxiousActive,
            S::AnxiousObserver => S::AnxiousPassive,
            S::QuietObserver => S::QuietPassive,
            _ => self,
        }
    }

    const fn after_leave(self) -> Self {
        match self {
            S::VeryAnxiousPassive => S::VeryAnxiousObserver,
            S::VeryAnxiousNew | S::AnxiousNew | S::AnxiousActive | S::QuietActive => {
                S::LeavingActive
            }
            S::AnxiousPassive => S::AnxiousObserver,
            S::QuietPassive => S::QuietObserver,
            _ => self,
        }
    }

    const fn after_join_in(self, is_point_to_point: bool) -> Self {
        match self {
            S::VeryAnxiousObserver if !is_point_to_point => S::AnxiousObserver,
            S::VeryAnxiousPassive if !is_point_to_point => S::AnxiousPassive,
            S::AnxiousActive => S::QuietActive,
            S::AnxiousObserver => S::QuietObserver,
            S::AnxiousPassive => S::QuietPassive,
            _ => self,
        }
    }

    /// After the others have left, or may have.
    const fn after_leaving(self, is_applicant_only: bool) -> Self {
        match self {
            S::VeryAnxiousObserver | S::AnxiousObserver | S::QuietObserver => {
                match is_applicant_only {
                    true => S::VeryAnxiousObserver,
                    false => S::LeavingObserver,
                }
            }
            S::AnxiousNew => S::VeryAnxiousNew,
            S::AnxiousActive | S::QuietActive | S::AnxiousPassive | S::QuietPassive => {
                S::VeryAnxiousPassive
            }
            _ => self,
        }
    }

    const fn transmit(self, is_registered: bool) -> (Self, Option<Sending>) {
        match self {
            S::VeryAnxiousPassive => (S::AnxiousActive, Some(Sending::Join)),
            S::VeryAnxiousNew => (S::AnxiousNew, Some(Sending::New)),
            S::AnxiousNew if is_registered => (S::QuietActive, Some(Sending::New)),
            S::AnxiousNew => (S::AnxiousActive, Some(Sending::New)),
            S::AnxiousActive | S::AnxiousPassive => (S::QuietActive, Some(Sending::Join)),
            S::QuietActive => (self, Some(Sending::OptionalJoin)),
            S::LeavingActive => (S::VeryAnxiousObserver, Some(Sending::Leave)),
            S::LeavingObserver => (S::VeryAnxiousObserver, Some(Sending::State)),
            S::VeryAnxiousObserver | S::AnxiousObserver | S::QuietObserver | S::QuietPassive => {
                (self, Some(Sending::OptionalState))
            }
        }
    }

    const fn transmit_leave_all(self, situation: ApplicantSituation) -> (Self, Option<Sending>) {
        match self {
            S::VeryAnxiousPassive => (S::AnxiousActive, Some(Sending::State)),
            S::VeryAnxiousNew => (S::AnxiousNew, Some(Sending::New)),
            S::AnxiousNew => (S::QuietActive, Some(Sending::New)),
            S::AnxiousActive | S::QuietActive | S::AnxiousPassive | S::QuietPassive => {
                (S::QuietActive, Some(Sending::Join))
            }
            S::VeryAnxiousObserver | S::LeavingActive | S::AnxiousObserver | S::QuietObserver => {
                (situation.leaving_observer(), Some(Sending::OptionalState))
            }
            S::LeavingObserver => (self, Some(Sending::OptionalState)),
        }
    }

    /// Whether the application wants the attribute declared.
    pub const fn is_declared(self) -> bool {
        matches!(
            self,
            S::VeryAnxiousPassive
                | S::VeryAnxiousNew
                | S::AnxiousNew
                | S::AnxiousActive
                | S::QuietActive
                | S::AnxiousPassive
                | S::QuietPassive
        )
    }

    /// Whether it wants an opportunity to transmit: entering such a state requests one (10.7.7).
    pub const fn wants_transmission(self) -> bool {
        matches!(
            self,
            S::VeryAnxiousPassive
                | S::VeryAnxiousNew
                | S::AnxiousNew
                | S::AnxiousActive
                | S::LeavingActive
                | S::AnxiousPassive
                | S::LeavingObserver
        )
    }

    /// Whether it has nothing to remember if there is no registration either.
    pub const fn is_idle(self) -> bool {
        matches!(self, S::VeryAnxiousObserver | S::AnxiousObserver | S::QuietObserver)
    }
}

impl ApplicantSituation {
    /// Where an observer goes: an Applicant-Only Participant has no LO.
    const fn leaving_observer(self) -> ApplicantState {
        match self.is_applicant_only {
            true => S::VeryAnxiousObserver,
            false => S::LeavingObserver,
        }
    }
}
