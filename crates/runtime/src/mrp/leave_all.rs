//! The LeaveAll and the periodic transmission machines (802.1Q-2018 10.7.9, 10.7.10; Tables 10-5
//! and 10-6). LeaveAll ends what was left without a word: each participant has to declare again.

use crate::mrp::random::TimerRandom;
use onbeat_model::time::{NetTime, Span};

/// The states of the LeaveAll machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaveAllState {
    /// LeaveAll is to be sent.
    Active,
    /// The timer runs.
    #[default]
    Passive,
}

/// The LeaveAll machine of a participant.
#[derive(Clone, Debug)]
pub struct LeaveAllMachine {
    state: LeaveAllState,
    time: Span,
    due: NetTime,
}

impl LeaveAllMachine {
    /// Begins. `time`: LeaveAllTime.
    pub(crate) fn new(time: Span, now: NetTime, random: &mut TimerRandom) -> Self {
        let mut machine = Self { state: LeaveAllState::Passive, time, due: now };
        machine.restart(now, random);
        machine
    }

    /// The state.
    pub fn state(&self) -> LeaveAllState {
        self.state
    }

    /// When the timer expires.
    pub fn due(&self) -> NetTime {
        self.due
    }

    /// rLA!, or Begin: another participant did it (Table 10-5).
    pub(crate) fn restart(&mut self, now: NetTime, random: &mut TimerRandom) {
        self.state = LeaveAllState::Passive;
        self.due = now + self.draw(random);
    }

    /// leavealltimer!: whether it expired. If so, a transmission is to be requested.
    pub(crate) fn expire(&mut self, now: NetTime, random: &mut TimerRandom) -> bool {
        let expires = self.due <= now;
        if expires {
            self.state = LeaveAllState::Active;
            self.due = now + self.draw(random);
        }
        expires
    }

    /// tx!: whether LeaveAll is sent with it.
    pub(crate) fn transmit(&mut self) -> bool {
        let sends = self.state == LeaveAllState::Active;
        self.state = LeaveAllState::Passive;
        sends
    }

    /// Between LeaveAllTime and one and a half times that (10.7.4.3), so that participants do not
    /// keep in step.
    fn draw(&self, random: &mut TimerRandom) -> Span {
        let half = (self.time.as_ns() / 2).unsigned_abs();
        self.time + Span::from_ns(random.below(half + 1) as i64)
    }
}

/// The periodic transmission machine of a port: periodic! each interval.
#[derive(Clone, Debug)]
pub(crate) struct PeriodicMachine {
    interval: Span,
    due: NetTime,
}

impl PeriodicMachine {
    pub(crate) fn new(interval: Span, now: NetTime) -> Self {
        Self { interval, due: now + interval }
    }

    pub(crate) fn due(&self) -> NetTime {
        self.due
    }

    /// Whether periodic! is due.
    pub(crate) fn expire(&mut self, now: NetTime) -> bool {
        let expires = self.due <= now;
        if expires {
            self.due = now + self.interval;
        }
        expires
    }
}
