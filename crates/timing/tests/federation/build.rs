//! Small federations, by hand.

use crate::random::{Behaviour, Case};
use onbeat_model::diagnostic::Origin;
use onbeat_model::federation::{
    Connection, ConnectionId, Coordination, Federate, FederateId, Federation, MaxWait, Reaction,
    ReactionId, TagDelay, Trigger,
};
use onbeat_model::graph::Interval;
use onbeat_model::time::{ClockError, Span};
use onbeat_timing::federation::{Delivery, Environment, Station};

pub(crate) const fn us(us: i64) -> Span {
    Span::from_us(us)
}

/// A federation on stations of their own, one for each federate.
#[derive(Debug)]
pub(crate) struct Build(pub(crate) Case);

impl Build {
    pub(crate) fn new(federates: usize) -> Self {
        let federate = |at| Federate {
            name: format!("f{at}"),
            station: Some(format!("s{at}")),
            maxwait: None,
            origin: Origin::default(),
        };
        let station = |at| Station {
            name: format!("s{at}"),
            clock_error: Some(Span::ZERO),
            cores: None,
            wakeup: Span::ZERO,
        };
        let federation = Federation {
            name: "built".to_owned(),
            coordination: Coordination::Decentralized,
            federates: (0..federates).map(federate).collect(),
            ..Federation::default()
        };
        let stations = (0..federates).map(station).collect();
        let environment = Environment { stations, deliveries: Vec::new(), handlers_set: true };
        let behaviour = Behaviour {
            seed: 1,
            is_worst: true,
            sets_per_cent: 100,
            is_slow: true,
            is_dense: true,
            duration: Span::from_ms(60),
        };
        let clocks = vec![ClockError::default(); federates];
        Self(Case { federation, environment, clocks, behaviour })
    }

    /// A reaction after all others of its federate.
    pub(crate) fn reaction(
        &mut self,
        federate: usize,
        worst: i64,
        causes: Vec<Trigger>,
    ) -> ReactionId {
        let federation = &mut self.0.federation;
        let id = ReactionId(federation.reactions.len() as u32);
        federation.reactions.push(Reaction {
            federate: FederateId(federate as u32),
            name: format!("r{}", id.0),
            execution: Some(Interval::exactly(us(worst))),
            deadline: None,
            causes,
            origin: Origin::default(),
        });
        id
    }

    pub(crate) fn connect(
        &mut self,
        writer: ReactionId,
        to: usize,
        after: TagDelay,
        delivery: Delivery,
    ) -> ConnectionId {
        let federation = &mut self.0.federation;
        let id = ConnectionId(federation.connections.len() as u32);
        federation.connections.push(Connection {
            name: format!("c{}", id.0),
            from: federation.reactions[writer.index()].federate,
            from_port: "out".to_owned(),
            to: FederateId(to as u32),
            to_port: "in".to_owned(),
            writers: vec![writer],
            after,
            physical: false,
            absent_after: None,
            payload: "int".to_owned(),
            octets: Some(4),
            interval: None,
            origin: Origin::default(),
        });
        self.0.environment.deliveries.push(Some(delivery));
        id
    }

    /// The clock of a federate's station.
    pub(crate) fn clock(&mut self, federate: usize, error: Span, offset: Span) {
        self.0.environment.stations[federate].clock_error = Some(error);
        self.0.clocks[federate].offset = offset;
    }

    pub(crate) fn wait(&mut self, federate: usize, wait: Span) {
        self.0.federation.federates[federate].maxwait = Some(MaxWait::For(wait));
    }
}

pub(crate) fn timer(offset: i64, period: i64) -> Trigger {
    Trigger::Timer { offset: us(offset), period: Some(us(period)) }
}

pub(crate) fn because(from: ReactionId, delay: TagDelay) -> Trigger {
    Trigger::Reaction { from, delay, physical: false }
}

pub(crate) fn exactly(us: i64) -> Delivery {
    Delivery::Between { min: Span::from_us(us), max: Span::from_us(us) }
}
