//! Random systems: slots of a round, who sends in them by which guard, and a network as a tree.

use super::builder::{Code, equals, unless, when, word};
use onbeat_network_code::verification::{NetworkModel, Reach, SharedResource, StationModel};
use onbeat_runtime::network_code::instruction::{
    BufferId, BufferWord, Condition, Guard, MessageId, Relation,
};
use onbeat_runtime::network_code::timing::Medium;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Numbers of a seed.
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// By what a station decides whether it does what a slot says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    Always,
    /// The mode word compares so with a constant.
    Mode(Relation, i32),
    /// The mode words compare so with each other, or do not.
    Modes(Relation, bool),
    /// Each n-th time, or each other time.
    Count(u32, bool),
    Flag(u8),
    LinkUp,
    Overrun,
    /// Not while its transmitter is busy.
    Idle,
    /// If the last `receive` found something.
    Received,
    /// If a frame of the message has come.
    Fresh(u8),
}

/// What a station does in a slot.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Send {
        message: u8,
        words: u16,
        decision: Decision,
    },
    Receive {
        message: u8,
        words: u16,
        decision: Decision,
    },
    /// Sends on what it has received.
    Relay {
        from: u8,
        message: u8,
        words: u16,
    },
    Nop,
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) start: u32,
    pub(crate) actions: Vec<Action>,
}

#[derive(Clone, Debug)]
pub(crate) struct StationPlan {
    pub(crate) slots: Vec<Slot>,
    pub(crate) drift_ppb: u32,
    pub(crate) bridge: usize,
    pub(crate) timeout: u32,
    pub(crate) tagged: bool,
}

/// A system. Station 0 is the master.
#[derive(Clone, Debug)]
pub(crate) struct SystemPlan {
    pub(crate) stations: Vec<StationPlan>,
    /// The bridge above each bridge but the first.
    pub(crate) above: Vec<usize>,
    /// Of a link and of a bridge: least, greatest, in ns.
    pub(crate) link_ns: (u64, u64),
    pub(crate) bridge_ns: (u64, u64),
    pub(crate) round: u32,
    /// How much longer a round is that a flag of the master makes longer.
    pub(crate) longer: Option<u32>,
    pub(crate) slot: u32,
    pub(crate) modes: u16,
}

const MODE: u8 = 0;

impl SystemPlan {
    /// A system of a seed: with room for what slots hold, or, seldom, a little less.
    pub(crate) fn random(seed: u64) -> Self {
        Self::sized(seed, None)
    }

    /// The same with slots of another length.
    pub(crate) fn sized(seed: u64, slot: Option<u32>) -> Self {
        let mut dice = Dice::new(seed);
        let count = dice.within(2, 6) as usize;
        let bridges = dice.within(1, 4) as usize;
        let is_star = dice.one_in(2);
        // A line is also what is left of a ring without one of its links.
        let above = (1..bridges).map(|it| if is_star { 0 } else { it - 1 }).collect();
        let link_ns = (dice.within(0, 500), dice.within(0, 40));
        let bridge_ns = (dice.within(500, 1_500), dice.within(0, 200));
        let drift_max = [0, 1_000, 20_000, 100_000][dice.below(4) as usize];
        let slots = dice.within(4, 14) as u32;
        let words = dice.within(1, 60) as u16;
        let plain = Medium { octet_cycles: 1, tagged: true };
        let spread = 2 * (link_ns.0 + link_ns.1 + 4 * (bridge_ns.0 + bridge_ns.1)) / 8;
        let room = (plain.frame_cycles(words) + plain.gap_cycles()).0 + spread + 200;
        let tight = if dice.one_in(4) { dice.within(20, 90) } else { dice.within(100, 160) };
        let slot = slot.unwrap_or((room * tight / 100) as u32);
        let modes = dice.within(1, 2) as u16;
        let round = slot * (slots + 4) + 400;
        let longer = dice.one_in(3).then(|| dice.within(100, 2_000) as u32);
        let mut stations = Vec::new();
        for index in 0..count {
            stations.push(StationPlan {
                slots: Vec::new(),
                drift_ppb: dice.within(0, drift_max) as u32,
                bridge: dice.below(bridges as u64) as usize,
                timeout: if index == 0 { 0 } else { 2 * round + longer.unwrap_or(0) },
                tagged: dice.one_in(4),
            });
        }
        let mut plan = Self {
            stations,
            above,
            link_ns: (link_ns.0, link_ns.0 + link_ns.1),
            bridge_ns: (bridge_ns.0, bridge_ns.0 + bridge_ns.1),
            round,
            longer,
            slot,
            modes,
        };
        plan.fill(&mut dice, slots, words);
        plan
    }

    fn at(&mut self, station: usize, slot: u32, action: Action) {
        let start = (slot + 1) * self.slot;
        let slots = &mut self.stations[station].slots;
        match slots.last_mut() {
            Some(last) if last.start == start => last.actions.push(action),
            _ => slots.push(Slot { start, actions: vec![action] }),
        }
    }

    fn fill(&mut self, dice: &mut Dice, slots: u32, words: u16) {
        let (modes, count) = (self.modes, self.stations.len() as u64);
        let (decision, relays) = (Decision::Always, dice.one_in(2));
        self.at(0, 0, Action::Send { message: MODE, words: modes, decision });
        // What the slot before had: message, words, sender, whether it always comes.
        let mut last: Vec<(u8, u16, usize, bool)> = vec![(MODE, modes, 0, true)];
        let mut next = 1;
        for slot in 1..slots {
            let mut sent = Vec::new();
            for (message, words, sender, always) in std::mem::take(&mut last) {
                for station in (0..count as usize).filter(|it| *it != sender) {
                    if message == MODE || dice.one_in(2) {
                        let decision = match dice.below(6) {
                            0 if message != MODE => Decision::Fresh(message),
                            _ => Decision::Always,
                        };
                        self.at(station, slot, Action::Receive { message, words, decision });
                        if !relays || !always || message == MODE || !dice.one_in(3) {
                            continue;
                        }
                        if sent.is_empty() && next < 200 {
                            self.at(
                                station,
                                slot,
                                Action::Relay { from: message, message: next, words },
                            );
                            sent.push((next, words, station, false));
                            next += 1;
                        }
                    }
                }
            }
            if sent.is_empty() {
                sent = self.share(dice, slot, words, &mut next);
            }
            last = sent;
        }
        for station in 0..count as usize {
            if let Some((message, words, sender, _)) = last.first().copied()
                && station != sender
            {
                let decision = Decision::Always;
                self.at(station, slots, Action::Receive { message, words, decision });
            }
            self.at(station, slots + 1, Action::Nop);
        }
    }

    /// A slot of one station or of two.
    fn share(
        &mut self,
        dice: &mut Dice,
        slot: u32,
        words: u16,
        next: &mut u8,
    ) -> Vec<(u8, u16, usize, bool)> {
        let count = self.stations.len() as u64;
        let one = dice.below(count) as usize;
        let other = (one + 1 + dice.below(count - 1) as usize) % count as usize;
        let (one, other) = if one == 0 { (other, one) } else { (one, other) };
        let can_share = other != 0 && slot > 1;
        let decisions = match dice.below(9) {
            0 | 1 if can_share => Some((
                Decision::Mode(Relation::Equal, dice.within(0, 4) as i32),
                Decision::Mode(Relation::Equal, 5),
            )),
            2 if can_share => Some((
                Decision::Mode(Relation::Less, dice.within(0, 20) as i32 - 10),
                Decision::Mode(Relation::Equal, 11),
            )),
            3 if can_share => Some((
                Decision::Mode(Relation::NotAbove, 3),
                Decision::Mode(Relation::Equal, 1 << 20),
            )),
            4 if can_share => {
                Some((Decision::Mode(Relation::Below, 3), Decision::Mode(Relation::AtMost, -1)))
            }
            5 if can_share && self.modes > 1 => {
                let relation =
                    [Relation::Equal, Relation::Less, Relation::Below][dice.below(3) as usize];
                Some((Decision::Modes(relation, false), Decision::Modes(relation, true)))
            }
            6 | 7 => Some((Decision::Count(2, false), Decision::Count(2, true))),
            _ => None,
        };
        let mut sent = Vec::new();
        let Some((first, second)) = decisions else {
            let decision = self.alone(dice);
            self.at(one, slot, Action::Send { message: *next, words, decision });
            sent.push((*next, words, one, decision == Decision::Always));
            *next += 1;
            return sent;
        };
        for (station, decision) in [(one, first), (other, second)] {
            self.at(station, slot, Action::Send { message: *next, words, decision });
            sent.push((*next, words, station, false));
            *next += 1;
        }
        sent
    }

    fn alone(&self, dice: &mut Dice) -> Decision {
        match dice.below(12) {
            0 => Decision::Flag(dice.below(16) as u8),
            1 => Decision::LinkUp,
            2 => Decision::Overrun,
            3 => Decision::Idle,
            4 => Decision::Count(dice.within(1, 3) as u32, false),
            5 => Decision::Received,
            _ => Decision::Always,
        }
    }

    /// The model of the network.
    pub(crate) fn network(&self) -> NetworkModel {
        let stations = self.stations.iter().enumerate().map(|(index, plan)| StationModel {
            program: {
                let mut program = self.code(index).program(&format!("s{index}"));
                program.medium.tagged = plan.tagged;
                program
            },
            drift_ppb_max: plan.drift_ppb,
        });
        let stations: Vec<_> = stations.collect();
        let mut resources = Vec::new();
        let mut reaches = Vec::new();
        let drift = self.stations.iter().map(|it| it.drift_ppb).max().unwrap_or(0);
        let resource = |name, receiver| SharedResource {
            name,
            octet_ns: 8,
            drift_ppb_max: drift,
            receiver,
            best_effort_octets: None,
        };
        for (to, station) in self.stations.iter().enumerate() {
            let index = resources.len();
            resources.push(resource(format!("bridge {} to s{to}", station.bridge), Some(to)));
            for sender in (0..self.stations.len()).filter(|sender| *sender != to) {
                let path = self.path(self.stations[sender].bridge, station.bridge);
                reaches.push(self.reach(sender, index, path.len() as u64 + 1));
            }
        }
        for (below, above) in (1..).zip(self.above.iter().copied()) {
            for (from, to) in [(below, above), (above, below)] {
                let index = resources.len();
                resources.push(resource(format!("bridge {from} to bridge {to}"), None));
                for sender in 0..self.stations.len() {
                    let at = self.stations[sender].bridge;
                    let path = self.path(at, to);
                    if path.last() == Some(&(from, to)) {
                        reaches.push(self.reach(sender, index, path.len() as u64));
                    }
                }
            }
        }
        NetworkModel { stations, resources, reaches }
    }

    /// Behind so many bridges.
    fn reach(&self, sender: usize, resource: usize, bridges: u64) -> Reach {
        let delay = |link: u64, bridge: u64| link * (bridges + 1) + bridge * bridges;
        Reach {
            sender,
            resource,
            delay_min_ns: delay(self.link_ns.0, self.bridge_ns.0),
            delay_max_ns: delay(self.link_ns.1, self.bridge_ns.1),
        }
    }

    /// The links from one bridge to another.
    fn path(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let up = |mut at: usize| {
            let mut all = vec![at];
            while at > 0 {
                at = self.above[at - 1];
                all.push(at);
            }
            all
        };
        let (mut left, mut right) = (up(from), up(to));
        while left.len() > 1 && right.len() > 1 && left[left.len() - 2] == right[right.len() - 2] {
            left.pop();
            right.pop();
        }
        right.pop();
        left.extend(right.into_iter().rev());
        left.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn code(&self, station: usize) -> Code {
        let plan = &self.stations[station];
        let mut code = Code::default();
        let mode = code.input(self.modes);
        code.message(MODE, self.modes).label("top");
        if station == 0 {
            code.sync_master();
        } else {
            code.sync_slave(plan.timeout).branch(when(Condition::SyncTimeout), "top");
        }
        let mut inputs = std::collections::BTreeMap::from([(MODE, mode)]);
        // Offsets are from the first instruction of the round; a slave's branch is before.
        let mut at = if station == 0 { 0 } else { 3 };
        for (index, slot) in plan.slots.iter().enumerate() {
            code.future(&format!("slot{index}"), slot.start - at).halt();
            code.label(&format!("slot{index}"));
            at = slot.start;
            for (number, action) in slot.actions.iter().enumerate() {
                let skip = format!("skip{index}_{number}");
                self.action(&mut code, &mut inputs, action, &skip, mode);
            }
        }
        if station == 0 {
            if let Some(longer) = self.longer {
                code.branch(when(Condition::Flag(0)), "longer");
                code.future("end", self.round - at).halt();
                code.label("longer").future("end", self.round + longer - at).halt();
            } else {
                code.future("end", self.round - at).halt();
            }
            code.label("end");
        }
        code.goto("top");
        code
    }

    fn action(
        &self,
        code: &mut Code,
        inputs: &mut std::collections::BTreeMap<u8, u8>,
        action: &Action,
        skip: &str,
        mode: u8,
    ) {
        match *action {
            Action::Nop => {
                code.nop();
            }
            Action::Send { message, words, decision } => {
                let buffer = code.output(words);
                code.message(message, words);
                let guard = self.skip(decision, mode, message % 16);
                guard.map(|guard| code.branch(guard, skip));
                code.create(buffer).send(message);
                guard.map(|_| code.label(skip));
            }
            Action::Receive { message, words, decision } => {
                let buffer = *inputs.entry(message).or_insert_with(|| code.input(words));
                code.message(message, words);
                let guard = self.skip(decision, mode, message % 16);
                guard.map(|guard| code.branch(guard, skip));
                code.receive(message, buffer);
                guard.map(|_| code.label(skip));
            }
            Action::Relay { from, message, words } => {
                let buffer = *inputs.entry(from).or_insert_with(|| code.input(words));
                code.message(message, words);
                code.branch(unless(Condition::Received), skip);
                code.create(buffer).send(message).label(skip);
            }
        }
    }

    /// When an action is not carried out.
    fn skip(&self, decision: Decision, mode: u8, counter: u8) -> Option<Guard> {
        let of = |index| BufferWord { buffer: BufferId(mode), index };
        Some(match decision {
            Decision::Always => return None,
            Decision::Mode(Relation::Equal, value) => unless(equals(mode, value)),
            Decision::Mode(relation, value) => unless(word(mode, 0, relation, value)),
            Decision::Modes(relation, negated) => {
                let condition = Condition::Words { left: of(0), relation, right: of(1) };
                if negated { when(condition) } else { unless(condition) }
            }
            Decision::Count(every, negated) => {
                let condition = Condition::Count { counter, every };
                if negated { when(condition) } else { unless(condition) }
            }
            Decision::Flag(flag) => unless(Condition::Flag(flag)),
            Decision::LinkUp => unless(Condition::LinkUp),
            Decision::Overrun => when(Condition::Overrun),
            Decision::Idle => when(Condition::Transmitting),
            Decision::Received => unless(Condition::Received),
            Decision::Fresh(message) => unless(Condition::Fresh(MessageId(message))),
        })
    }
}
