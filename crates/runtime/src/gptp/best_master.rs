//! The best master clock algorithm (802.1AS-2020 10.3): the grandmaster and the state of each port.

use crate::gptp::message::{ClockIdentity, PortIdentity};

/// What makes one clock a better grandmaster than another, most important first; less is better
/// (10.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SystemIdentity {
    /// As the operator wants it; 255: never grandmaster (8.6.2.1).
    pub priority1: u8,
    /// clockClass (8.6.2.2).
    pub class: u8,
    /// clockAccuracy (8.6.2.3).
    pub accuracy: u8,
    /// offsetScaledLogVariance (8.6.2.4).
    pub variance: u16,
    /// As the operator wants it among equals.
    pub priority2: u8,
    /// The tie breaker.
    pub identity: ClockIdentity,
}

impl SystemIdentity {
    /// A clock of the default class, accuracy and variance: nothing is known of it (8.6.2).
    pub fn unknown(priority1: u8, identity: ClockIdentity) -> Self {
        let (class, accuracy, variance) = (248, 0xfe, 0x436a);
        Self { priority1, class, accuracy, variance, priority2: 248, identity }
    }

    /// Whether it may be grandmaster (gmCapable; 10.1.2: gmPresent).
    pub fn is_gm_capable(&self) -> bool {
        self.priority1 < 255
    }
}

/// A priority vector (10.3.4, 10.3.5); less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriorityVector {
    /// The grandmaster.
    pub root: SystemIdentity,
    /// Links between it and who sends this.
    pub steps_removed: u16,
    /// Who sends this.
    pub source: PortIdentity,
    /// The port that receives it.
    pub port: u16,
}

/// The state of a port (10.3.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Its neighbour does not speak gPTP, or not well enough (asCapable is false).
    DisabledPort,
    /// Sends time.
    MasterPort,
    /// Neither: the other end has a better way to the grandmaster.
    PassivePort,
    /// Receives the time that this node follows.
    SlavePort,
}

/// A port as the port state decision sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortView {
    /// Whether it takes part (asCapable).
    pub capable: bool,
    /// The best of its received Announce messages that are not too old.
    pub announced: Option<PriorityVector>,
}

/// The port state decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStateDecision {
    /// The grandmaster.
    pub root: SystemIdentity,
    /// Links between it and this node.
    pub steps_removed: u16,
    /// The port that leads to it; `None` if it is this node.
    pub slave: Option<usize>,
    /// By port.
    pub states: Vec<PortState>,
}

/// Decides (10.3.12.2.4, updtStatesTree). Ports are numbered from 1 in the order given.
pub fn decide_port_states(own: &SystemIdentity, ports: &[PortView]) -> PortStateDecision {
    let myself = |port| PortIdentity { clock: own.identity, port };
    let system = PriorityVector { root: *own, steps_removed: 0, source: myself(0), port: 0 };
    let paths = ports.iter().enumerate().filter_map(|(index, port)| {
        let announced = port.announced.filter(|_| port.capable)?;
        // What has come around to its origin leads nowhere.
        let path = PriorityVector {
            steps_removed: announced.steps_removed.saturating_add(1),
            ..announced
        };
        (announced.root.identity != own.identity).then_some((path, Some(index)))
    });
    let (best, slave) = paths.chain([(system, None)]).min().unwrap_or((system, None));
    let state = |(index, view): (usize, &PortView)| {
        let port = index as u16 + 1;
        let offered = PriorityVector { source: myself(port), port, ..best };
        match view.announced {
            _ if !view.capable => PortState::DisabledPort,
            _ if slave == Some(index) => PortState::SlavePort,
            Some(announced) if announced < offered => PortState::PassivePort,
            _ => PortState::MasterPort,
        }
    };
    let states = ports.iter().enumerate().map(state).collect();
    PortStateDecision { root: best.root, steps_removed: best.steps_removed, slave, states }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(priority1: u8, number: u8) -> SystemIdentity {
        SystemIdentity::unknown(priority1, ClockIdentity([number; 8]))
    }

    fn announced(root: SystemIdentity, steps_removed: u16, from: u8, port: u16) -> PortView {
        let source = PortIdentity { clock: ClockIdentity([from; 8]), port: 1 };
        let announced = PriorityVector { root, steps_removed, source, port };
        PortView { capable: true, announced: Some(announced) }
    }

    const SILENT: PortView = PortView { capable: true, announced: None };

    #[test]
    fn a_node_that_hears_nothing_better_leads_on_all_ports() {
        let decision =
            decide_port_states(&clock(246, 5), &[SILENT, announced(clock(248, 1), 0, 1, 2)]);
        assert_eq!((decision.slave, decision.steps_removed), (None, 0));
        assert_eq!(decision.states, [PortState::MasterPort, PortState::MasterPort]);
    }

    #[test]
    fn the_shortest_way_to_the_best_clock_is_followed_and_the_other_one_is_passive() {
        let best = clock(200, 9);
        let ports = [announced(best, 3, 2, 1), announced(best, 1, 3, 2), SILENT];
        let decision = decide_port_states(&clock(246, 5), &ports);
        assert_eq!((decision.root, decision.slave, decision.steps_removed), (best, Some(1), 2));
        // What comes in at port 1 has three links behind it; we offer two.
        assert_eq!(
            decision.states,
            [PortState::MasterPort, PortState::SlavePort, PortState::MasterPort]
        );
        let decision = decide_port_states(
            &clock(246, 5),
            &[announced(best, 1, 3, 1), announced(best, 1, 2, 2)],
        );
        assert_eq!(decision.states, [PortState::PassivePort, PortState::SlavePort]);
    }

    #[test]
    fn a_port_that_is_not_capable_counts_for_nothing() {
        let deaf = PortView { capable: false, ..announced(clock(1, 1), 0, 1, 1) };
        let decision = decide_port_states(&clock(246, 5), &[deaf, SILENT]);
        assert_eq!(decision.slave, None);
        assert_eq!(decision.states, [PortState::DisabledPort, PortState::MasterPort]);
    }

    proptest! {
        #[test]
        fn the_choice_is_the_least_of_all_and_at_most_one_port_follows(
            all in prop::collection::vec((0u8..4, 0u8..6, 0u16..5, 0u8..6, any::<bool>()), 0..6),
        ) {
            let own = clock(2, 3);
            let view = |(at, (p, root, steps, from, capable)): (usize, &(u8, u8, u16, u8, bool))| {
                let view = announced(clock(*p, *root), *steps, *from, at as u16 + 1);
                PortView { capable: *capable, ..view }
            };
            let ports: Vec<_> = all.iter().enumerate().map(view).collect();
            let decision = decide_port_states(&own, &ports);
            let capable = ports.iter().filter(|p| p.capable);
            let roots = capable.filter_map(|p| p.announced).map(|h| h.root);
            let roots = roots.filter(|root| root.identity != own.identity);
            prop_assert_eq!(decision.root, roots.chain([own]).min().expect("at least one"));
            let slaves = decision.states.iter().filter(|r| **r == PortState::SlavePort).count();
            prop_assert_eq!(slaves, usize::from(decision.slave.is_some()));
        }
    }
}
