//! Processors that the threads of a host share in virtual time, where the description says how many
//! there are (`docs/engines.md`). The engine wakes the coordinator when the next work is done.

use crate::coordinator::table::ThreadId;
use crate::coordinator::wakeup::Wakeup;
use onbeat::coordinator::protocol::Work;
use onbeat_model::system::{NodeId, NodeKind, Program, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_net::Engine;
use onbeat_runtime::processor::{Processors, Rank};
use std::collections::{BTreeMap, BTreeSet};

/// So far from the epoch instants can still be converted between clocks.
const FAR: i64 = i64::MAX / 4;

/// Of one host.
#[derive(Debug)]
struct Shared {
    cores: u16,
    /// As it was when work last began.
    clock: ClockError,
    processors: Processors,
    /// How urgent each thread's last work was by itself.
    ranks: BTreeMap<ThreadId, Rank>,
    /// By thread that waits: the one that holds what it waits for.
    holders: BTreeMap<ThreadId, ThreadId>,
    /// When the engine will wake the coordinator.
    alarm: Option<NetTime>,
}

/// All hosts' processors.
#[derive(Debug)]
pub(super) struct HostProcessors {
    /// By node; none where each thread has one to itself.
    hosts: Vec<Option<Shared>>,
}

/// How many processors a host's threads share, if they do.
pub(super) fn cores_of(system: &System, host: NodeId) -> Option<u16> {
    match &system.node(host).kind {
        NodeKind::Host(host) => host.cores,
        NodeKind::Bridge(_) => None,
    }
}

impl HostProcessors {
    pub(super) fn new(system: &System) -> Self {
        let hosts = (0..system.nodes.len()).map(|node| {
            let node = NodeId(node as u32);
            cores_of(system, node).map(|cores| Shared {
                cores,
                clock: system.clock_of(node),
                processors: Processors::new(cores),
                ranks: BTreeMap::new(),
                holders: BTreeMap::new(),
                alarm: None,
            })
        });
        Self { hosts: hosts.collect() }
    }

    /// Whether a host's threads share its processors.
    pub(super) fn are_shared(&self, host: NodeId) -> bool {
        self.hosts[host.index()].is_some()
    }

    /// A thread has work for a processor of its host. A program's threads use the first of its
    /// cores, or else core 0.
    pub(super) fn start(
        &mut self,
        engine: &mut Engine,
        program: &Program,
        thread: ThreadId,
        work: Work,
    ) {
        let Some(shared) = &mut self.hosts[program.host.index()] else { return };
        let core = program.cores.first().filter(|core| **core < shared.cores);
        shared.clock = engine.clock_of(program.host);
        let (core, rank) = (core.copied().unwrap_or(0), shared.rank(engine.now(), program, &work));
        shared.ranks.insert(thread, rank);
        let rank = shared.inherited(thread);
        shared.processors.start(engine.now(), thread.0.into(), core, rank, work.span);
        shared.set_alarm(engine, program.host);
    }

    /// What is left of a thread's work, which is given up; nothing if it is done or there is none.
    pub(super) fn cancel(&mut self, engine: &mut Engine, host: NodeId, thread: ThreadId) -> Span {
        let Some(shared) = &mut self.hosts[host.index()] else { return Span::ZERO };
        let left = shared.processors.cancel(engine.now(), thread.0.into());
        shared.set_alarm(engine, host);
        left.unwrap_or(Span::ZERO)
    }

    /// A thread waits for what another one holds: that one is as urgent at least, until it waits no
    /// more. So are those that this one waits for.
    pub(super) fn wait_for(
        &mut self,
        engine: &mut Engine,
        host: NodeId,
        thread: ThreadId,
        holder: ThreadId,
    ) {
        let Some(shared) = &mut self.hosts[host.index()] else { return };
        shared.holders.insert(thread, holder);
        shared.inherit(engine, host);
    }

    /// A thread does not wait for another one any more.
    pub(super) fn waits_no_more(&mut self, engine: &mut Engine, host: NodeId, thread: ThreadId) {
        let Some(shared) = &mut self.hosts[host.index()] else { return };
        if shared.holders.remove(&thread).is_some() {
            shared.inherit(engine, host);
        }
    }

    /// The threads whose work is done, in the order in which they continue.
    pub(super) fn done(&mut self, engine: &mut Engine, host: NodeId) -> Vec<ThreadId> {
        let Some(shared) = &mut self.hosts[host.index()] else { return Vec::new() };
        let done = shared.processors.advance(engine.now());
        shared.alarm = None;
        shared.set_alarm(engine, host);
        done.into_iter().map(|id| ThreadId(id as u32)).collect()
    }
}

impl Shared {
    fn rank(&self, now: NetTime, program: &Program, work: &Work) -> Rank {
        if work.deadline < SyncedTime::MAX {
            let far = SyncedTime::from_ns(FAR);
            let deadline = work.deadline.clamp(SyncedTime::from_ns(-FAR), far);
            return Rank::by_deadline(self.clock.when_near(now, deadline));
        }
        match work.priority {
            0 => program.priority.map_or(Rank::LOWEST, |own| Rank::Fixed(own.into())),
            own => Rank::Fixed(own.into()),
        }
    }

    /// How urgent a thread is: as the most urgent of those that wait for it, directly or not.
    fn inherited(&self, thread: ThreadId) -> Rank {
        let mut known = BTreeSet::from([thread]);
        let mut open = vec![thread];
        let mut rank = Rank::LOWEST;
        while let Some(at) = open.pop() {
            rank = rank.max(self.ranks.get(&at).copied().unwrap_or(Rank::LOWEST));
            let waiting = self.holders.iter().filter(|(_, holder)| **holder == at);
            open.extend(waiting.map(|(waiter, _)| *waiter).filter(|waiter| known.insert(*waiter)));
        }
        rank
    }

    /// Makes work in progress as urgent as it is now.
    fn inherit(&mut self, engine: &mut Engine, host: NodeId) {
        for thread in self.ranks.keys() {
            self.processors.set_rank(engine.now(), thread.0.into(), self.inherited(*thread));
        }
        self.set_alarm(engine, host);
    }

    fn set_alarm(&mut self, engine: &mut Engine, host: NodeId) {
        let next = self.processors.next();
        if next == self.alarm {
            return;
        }
        let token = Wakeup::Processors(host).into();
        engine.cancel(token);
        if let Some(at) = next {
            engine.alarm(at, token);
        }
        self.alarm = next;
    }
}
