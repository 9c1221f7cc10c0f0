//! What programs do that speak the protocol rightly, whatever else they do.

use super::rogues::rogue;
use super::{Actor, DrawnChannel, LONG, OwnEndpoint, channels};
use crate::script::ActorStep;
use onbeat_hunt::{Description, Dice};
use serde_json::Value;

/// The least that a repeated sleep takes: an end of a run is not worth more rounds.
const ROUNDS: i64 = 600;

/// The programs of a description. Most systems have none that spoils a run: then everything of
/// them is known.
pub(super) fn actors(description: &Description, duration_ns: i64, dice: &mut Dice) -> Vec<Actor> {
    let channels = channels(description);
    let hosts = description.list("host").iter().filter_map(|h| h["name"].as_str());
    let mut actors: Vec<Actor> = Vec::new();
    for host in hosts {
        let mut ends = ends_of(host, &channels);
        let count = match (ends.is_empty(), dice.below(100)) {
            (true, 0..8) => 1,
            (true, _) => 0,
            (false, 0..25) => 0,
            (false, 25..85) => 1,
            (false, _) => 2,
        };
        for left in (0..count).rev() {
            let own = if left > 0 { ends.split_off(ends.len() / 2) } else { ends.clone() };
            let name = format!("p{}", actors.len());
            actors.push(Actor { name, host: host.to_owned(), scripts: Vec::new(), ends: own });
        }
    }
    let trouble = dice.below(100);
    let spoilers = match trouble {
        0..55 => 0,
        55..92 => 1,
        _ => 2,
    };
    let chosen = dice.some(actors.len(), spoilers);
    for (number, actor) in actors.iter_mut().enumerate() {
        let others = channels.clone();
        let mut author = Author { dice, ends: actor.ends.clone(), others, duration_ns };
        actor.scripts = match chosen.contains(&number) {
            true if author.dice.chance(60) => vec![rogue(author.dice)],
            spoils => author.scripts(spoils),
        };
    }
    actors
}

/// The ends of a host.
fn ends_of(host: &str, channels: &[DrawnChannel]) -> Vec<OwnEndpoint> {
    let end = |channel: &DrawnChannel, talker| OwnEndpoint {
        channel: channel.name.clone(),
        talker,
        size: channel.size,
        interval_ns: channel.interval_ns,
    };
    let talks = channels.iter().filter(|c| c.talker == host).map(|c| end(c, true));
    let hears = channels.iter().filter(|c| c.listeners.iter().any(|l| l == host));
    talks.chain(hears.map(|c| end(c, false))).collect()
}

/// Writes scripts.
struct Author<'a> {
    dice: &'a mut Dice,
    /// The ends that the program may open; a slot is a place among them.
    ends: Vec<OwnEndpoint>,
    others: Vec<DrawnChannel>,
    duration_ns: i64,
}

impl Author<'_> {
    fn chance(&mut self, per_cent: u64) -> bool {
        self.dice.chance(per_cent)
    }

    fn scripts(&mut self, spoils: bool) -> Vec<Vec<ActorStep>> {
        let all: Vec<usize> = (0..self.ends.len()).collect();
        // Some of the ends are a thread's own.
        let threads = if self.chance(25) { self.dice.between(1, 2) as usize } else { 0 };
        let mut of = vec![Vec::new(); threads + 1];
        for end in all {
            let thread = self.dice.below(threads as u64 + 1) as usize;
            of[thread].push(end);
        }
        let mut main = self.beginning(&of[0]);
        let spawned: Vec<usize> = (1..=threads).collect();
        main.extend(spawned.iter().map(|script| ActorStep::Spawn { script: *script }));
        let body = self.body(&of[0], threads > 0);
        if spoils {
            // After a while, else it would do so when the run is over.
            main.push(ActorStep::Repeat { times: self.dice.below(20) as u32, steps: body.clone() });
            main.push(self.spoiling());
        }
        main.extend(body);
        for script in spawned {
            if self.chance(50) {
                main.push(ActorStep::JoinThread { script });
            }
        }
        main.extend(self.ending());
        let mut scripts = vec![main];
        for own in of.iter().skip(1) {
            let opens: Vec<ActorStep> = own.iter().map(|end| self.opens(*end)).collect();
            scripts.push([opens, self.body(own, true)].concat());
        }
        scripts
    }

    fn opens(&self, slot: usize) -> ActorStep {
        let OwnEndpoint { channel, talker, size, .. } = self.ends[slot].clone();
        match talker {
            true => ActorStep::OpenTalker { slot, channel, size },
            false => ActorStep::OpenListener { slot, channel, size },
        }
    }

    /// Up to the start, and ends that are opened after it.
    fn beginning(&mut self, slots: &[usize]) -> Vec<ActorStep> {
        let mut steps = Vec::new();
        if self.chance(10) {
            steps.push(ActorStep::Dawdle { ms: self.dice.between(0, 29) });
        }
        steps.push(ActorStep::Join);
        if self.chance(8) {
            let wrong = self.wrong();
            steps.push(wrong);
        }
        let mut late = Vec::new();
        for slot in slots {
            match self.dice.below(100) {
                0..90 => steps.push(self.opens(*slot)),
                90..97 => late.push(self.opens(*slot)),
                _ => {}
            }
        }
        if self.chance(4) {
            steps.push(ActorStep::Dawdle { ms: self.dice.between(0, 19) });
        }
        steps.push(ActorStep::Start);
        if !late.is_empty() && self.chance(50) {
            let ns = self.dice.magnitude(1, self.duration_ns);
            steps.push(ActorStep::Sleep { ns });
        }
        steps.extend(late);
        match self.dice.below(30) {
            0 => steps.push(ActorStep::Child),
            1 => steps.push(ActorStep::Fork),
            _ => {}
        }
        steps
    }

    fn wrong(&mut self) -> ActorStep {
        let talker = self.chance(50);
        let known = self.others.clone();
        match (self.dice.below(3), known.is_empty()) {
            (0, false) => {
                let DrawnChannel { name, size, .. } = self.dice.one(&known);
                ActorStep::OpenWrong { talker, channel: name, size: size + 1 }
            }
            (1, false) => {
                // Also of a host that has it, by who opens it twice: the end is its own, then.
                let DrawnChannel { name, .. } = self.dice.one(&known);
                ActorStep::OpenWrong { talker, channel: name, size: 0 }
            }
            _ => ActorStep::OpenWrong { talker, channel: "nosuch".into(), size: 8 },
        }
    }

    /// What a thread does again and again.
    fn body(&mut self, slots: &[usize], threads: bool) -> Vec<ActorStep> {
        let least = (self.duration_ns / ROUNDS).max(20_000);
        let fastest = slots.iter().map(|slot| self.ends[*slot].interval_ns).min();
        let interval = fastest.unwrap_or(self.duration_ns / 10).max(least);
        let factor = self.dice.one(&[1, 2, 2, 2, 4, 10, 40]);
        let ns = (interval / 2).saturating_mul(factor).max(least);
        let mut body = Vec::new();
        for slot in slots {
            // Some are never read, or written.
            if self.chance(92) {
                let times = self.dice.one(&[1, 1, 1, 2]);
                (0..times).for_each(|_| body.push(self.uses(*slot, ns)));
            }
        }
        if self.chance(30) {
            let step = self.odd(slots, ns, threads);
            body.push(step);
        }
        body.push(ActorStep::Sleep { ns });
        let most = self.duration_ns.saturating_mul(3) / ns.max(1) + 2;
        let short = self.chance(20);
        let times = if short { self.dice.between(1, 20) } else { most.min(10_000) } as u32;
        let mut steps = vec![ActorStep::Repeat { times, steps: body }];
        if self.chance(25) {
            steps.extend(self.again(slots, ns));
        }
        steps
    }

    /// Once through an end, one way or another.
    fn uses(&mut self, slot: usize, ns: i64) -> ActorStep {
        if self.ends[slot].talker {
            return match self.dice.below(12) {
                0..4 => ActorStep::Write { slot },
                4..7 => ActorStep::TryWrite { slot },
                7 | 8 => ActorStep::WriteTwice { slot },
                9 | 10 => ActorStep::WriteWait { slot },
                _ => ActorStep::WriteAt { slot, ahead_ns: self.dice.between(-1_000, 4 * ns) },
            };
        }
        match self.dice.below(14) {
            0..3 => ActorStep::ReadFor { slot, ns: self.dice.between(-10, 2 * ns) },
            3 | 4 => ActorStep::TryRead { slot },
            5 | 6 => ActorStep::Drain { slot },
            7 | 8 => ActorStep::ReadLatest { slot },
            9 => ActorStep::ReadWait { slot },
            10 => ActorStep::Read { slot },
            _ => ActorStep::Select { slots: self.readers(slot), ns: self.dice.between(0, 2 * ns) },
        }
    }

    /// A reader's end, and again.
    fn readers(&mut self, slot: usize) -> Vec<usize> {
        vec![slot; self.dice.one(&[1, 1, 2])]
    }

    /// What is seldom done.
    fn odd(&mut self, slots: &[usize], ns: i64, threads: bool) -> ActorStep {
        let slot = slots.first().copied().unwrap_or(0);
        let talker = slots.iter().find(|slot| self.ends[**slot].talker).copied();
        let listener = slots.iter().find(|slot| !self.ends[**slot].talker).copied();
        match self.dice.below(16) {
            0 => ActorStep::Sleep { ns: -self.dice.magnitude(1, 1_000_000_000) },
            1 => ActorStep::SleepTo { ns: self.dice.between(-1, self.duration_ns) },
            2 | 3 => ActorStep::Work { ns: self.dice.between(-1, ns) },
            4 | 5 => ActorStep::WorkUntil {
                ns: self.dice.between(0, 2 * ns),
                limit_ns: self.dice.between(-5, ns),
                priority: self.dice.below(100) as u8,
            },
            6 => ActorStep::Limit { slot, ns: self.dice.between(-10, 20 * ns) },
            7 => ActorStep::Pester { count: self.dice.magnitude(1, 200) as u32 },
            8 => ActorStep::Dawdle { ms: self.dice.between(0, 1) },
            9 => ActorStep::Say { lines: self.dice.below(3) as u32 },
            10 | 11 if threads => ActorStep::Await { ns: self.dice.between(0, 4 * ns) },
            12 | 13 if threads => ActorStep::Wake,
            _ => match (talker, listener) {
                // Messages in fragments are refused, and one channel.
                (Some(talker), Some(listener))
                    if [talker, listener].iter().all(|slot| self.ends[*slot].size < LONG)
                        && self.ends[talker].channel != self.ends[listener].channel =>
                {
                    ActorStep::Rendezvous { talker, listener, ns: self.dice.between(0, 8 * ns) }
                }
                _ => ActorStep::Work { ns: self.dice.between(0, ns / 4) },
            },
        }
    }

    /// Closes ends and opens them again.
    fn again(&mut self, slots: &[usize], ns: i64) -> Vec<ActorStep> {
        let mut steps = Vec::new();
        for slot in slots {
            steps.push(ActorStep::Close { slot: *slot });
            if self.chance(50) {
                steps.push(ActorStep::Sleep { ns: self.dice.between(1, ns) });
            }
            steps.push(self.opens(*slot));
            let times = self.dice.between(1, 30) as u32;
            let uses = self.uses(*slot, ns);
            steps.push(ActorStep::Repeat { times, steps: vec![uses, ActorStep::Sleep { ns }] });
        }
        steps
    }

    /// How a program ends that spoils nothing.
    fn ending(&mut self) -> Vec<ActorStep> {
        match self.dice.below(20) {
            0 => vec![ActorStep::Leave { ms: self.dice.between(0, 19) }],
            1 => vec![ActorStep::Exit { code: 0 }],
            _ => Vec::new(),
        }
    }

    /// How one does that spoils the run.
    fn spoiling(&mut self) -> ActorStep {
        match self.dice.below(100) {
            0..45 => {
                // SIGKILL, SIGABRT, SIGSEGV, SIGTERM, SIGFPE.
                let signal = self.dice.one(&[9, 6, 11, 15, 8]);
                ActorStep::Die { signal }
            }
            45..93 => ActorStep::Exit { code: self.dice.one(&[1, 3, 77, 255]) },
            93..96 => ActorStep::Hang,
            96..99 => ActorStep::Livelock,
            _ => ActorStep::Linger,
        }
    }
}

/// Whether a fault of a description steps some clock, or gPTP keeps them in the run.
pub(crate) fn clocks_jump(description: &Description) -> bool {
    let steps = |fault: &Value| !fault["clock_step_ns"].is_null();
    let kept = description.root.get("synchronisation").is_some_and(|s| s["in_run"] == true);
    kept || description.list("fault").iter().any(steps)
}
