//! MRP attribute propagation (MAP, 802.1Q-2018 10.3) of a bridge: what is registered on one
//! forwarding port is declared on all others.

use crate::mrp::participant::{Indication, MrpInput, MrpParticipant, MrpSettings};
use crate::mrp::pdu::MrpApplication;
use onbeat_model::time::NetTime;
use std::collections::{BTreeMap, BTreeSet};

/// What a bridge's ports are told.
#[derive(Debug)]
pub enum PropagationInput<'a, A: MrpApplication> {
    /// To the participant of a port.
    Port(usize, MrpInput<'a, A>),
    /// It is [`Propagation::next`], or later.
    Timeout,
    /// A port begins or ceases to forward: it is or is not in the set of ports of the context.
    Forwards(usize, bool),
}

/// The participants of a bridge's ports, joined.
#[derive(Debug)]
pub struct Propagation<A: MrpApplication> {
    ports: Vec<(MrpParticipant<A>, bool)>,
    /// By attribute: the ports on which it is registered.
    registered: BTreeMap<A::Key, (A::Attribute, BTreeSet<usize>)>,
}

impl<A: MrpApplication> Propagation<A> {
    /// A bridge with so many ports, all forwarding. The port's number is added to the seed.
    pub fn new(settings: MrpSettings, ports: usize, seed: u64, now: NetTime) -> Self {
        let port = |port| (MrpParticipant::new(settings, seed.wrapping_add(port), now), true);
        Self { ports: (0..ports as u64).map(port).collect(), registered: BTreeMap::new() }
    }

    /// Does what an input asks for; gives the PDUs to send, each with its port.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn handle(
        &mut self,
        now: NetTime,
        input: PropagationInput<'_, A>,
    ) -> Vec<(usize, Vec<u8>)> {
        let mut sent = Vec::new();
        match input {
            PropagationInput::Port(port, input) => self.pass(now, port, input, &mut sent),
            PropagationInput::Timeout => {
                for port in 0..self.ports.len() {
                    if self.ports[port].0.next() <= now {
                        self.pass(now, port, MrpInput::Timeout, &mut sent);
                    }
                }
            }
            PropagationInput::Forwards(port, forwards) => {
                if self.ports[port].1 != forwards {
                    self.ports[port].1 = forwards;
                    let keys: Vec<_> = self.registered.keys().copied().collect();
                    for key in keys {
                        self.spread(now, key, false);
                    }
                }
            }
        }
        sent
    }

    /// When it wants [`PropagationInput::Timeout`] at the latest.
    pub fn next(&self) -> NetTime {
        self.ports.iter().map(|(port, _)| port.next()).min().unwrap_or(NetTime::MAX)
    }

    /// The participant of a port.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn port(&self, port: usize) -> &MrpParticipant<A> {
        &self.ports[port].0
    }

    /// The ports on which an attribute is registered.
    pub fn ports_of(&self, key: A::Key) -> impl Iterator<Item = usize> {
        self.registered.get(&key).into_iter().flat_map(|(_, ports)| ports).copied()
    }

    fn pass(
        &mut self,
        now: NetTime,
        port: usize,
        input: MrpInput<'_, A>,
        sent: &mut Vec<(usize, Vec<u8>)>,
    ) {
        let out = self.ports[port].0.handle(now, input);
        sent.extend(out.pdus.into_iter().map(|pdu| (port, pdu)));
        for indication in out.indications {
            let (attribute, is_new, is_there) = match indication {
                Indication::Registered { attribute, is_new } => (attribute, is_new, true),
                Indication::Left(attribute) => (attribute, false, false),
            };
            let key = A::key(&attribute);
            let entry = self.registered.entry(key).or_insert((attribute, BTreeSet::new()));
            match is_there {
                true => {
                    *entry = (attribute, std::mem::take(&mut entry.1));
                    entry.1.insert(port);
                }
                false => {
                    entry.1.remove(&port);
                }
            }
            self.spread(now, key, is_new);
        }
    }

    /// Declares an attribute where it has to be, and withdraws it elsewhere.
    fn spread(&mut self, now: NetTime, key: A::Key, is_new: bool) {
        let Some((attribute, on)) = self.registered.get(&key) else { return };
        let (attribute, on) = (*attribute, on.clone());
        let forwarding: BTreeSet<_> = (0..self.ports.len()).filter(|p| self.ports[*p].1).collect();
        for (number, (port, _)) in self.ports.iter_mut().enumerate() {
            let mut others = on.iter().filter(|other| **other != number);
            let wanted =
                forwarding.contains(&number) && others.any(|other| forwarding.contains(other));
            let has = port.declaration(key).is_some();
            if wanted && (!has || is_new && !on.contains(&number)) {
                port.declare(now, attribute, is_new);
            } else if !wanted && has {
                port.withdraw(now, key);
            }
        }
        if on.is_empty() {
            self.registered.remove(&key);
        }
    }
}
