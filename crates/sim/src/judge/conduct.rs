//! What becomes of a run fits what its programs did, and their time went forward.

use super::{Case, text};
use crate::script::{ActorStep, Misdeed, ProtocolState};
use crate::system::{Actor, ends_the_run};

/// The codes of a run that has been started: its guarantees were met, or one was not; or it ended
/// early.
const FINE: i32 = 0;
const BROKEN: i32 = 3;
const EARLY: i32 = 4;

/// What an actor says against the protocol, if it is such a one.
pub(super) fn rogue(actor: &Actor) -> Option<(ProtocolState, &Misdeed)> {
    match actor.scripts.first()?.first()? {
        ActorStep::Rogue { at, how } => Some((*at, how)),
        _ => None,
    }
}

impl Case<'_> {
    pub(super) fn conduct(&mut self) {
        self.ending();
        self.verdicts();
        self.own_time();
        let errors = self.logs.iter().flat_map(|(name, log)| {
            log.errors.iter().map(move |error| format!("program `{name}`: {error}"))
        });
        let errors: Vec<String> = errors.collect();
        errors.into_iter().for_each(|error| self.find("exit", error));
    }

    /// Those that did what may end a run, and those that did what must.
    fn spoilers(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut may, mut must) = (Vec::new(), Vec::new());
        for actor in &self.system.actors {
            let Some(log) = self.logs.get(actor.name.as_str()) else { continue };
            let verdict = match rogue(actor) {
                Some((at, how)) if log.misdeed.is_some() => ends_the_run(at, how),
                _ => Some(log.fatal.is_some()),
            };
            if verdict != Some(false) {
                may.push(actor.name.as_str());
            }
            if verdict == Some(true) {
                must.push(actor.name.as_str());
            }
        }
        (may, must)
    }

    fn ending(&mut self) {
        let code = self.evidence.code;
        let (may, must) = self.spoilers();
        let reason = text(&self.run["ended"]["early"]["reason"]).to_owned();
        let named = may.iter().any(|name| reason.contains(&format!("program `{name}`")));
        let (may, must) = (format!("{may:?}"), format!("{must:?}"));
        if (code == EARLY) == self.is_complete() {
            self.find(
                "exit",
                format!("exit code {code} of a run that ended {}", self.run["ended"]),
            );
        }
        match code {
            FINE | BROKEN if must != "[]" => {
                self.find(
                    "exit",
                    format!("exit code {code}, though {must} must have ended the run"),
                );
            }
            FINE | BROKEN => {}
            // The engine itself may come to its limits, and says so.
            EARLY if named || reason.contains("frames") && !reason.contains("program") => {}
            EARLY => {
                let what = format!("the run ended early with {may} to blame: {reason}");
                self.find("blame", what);
            }
            _ => {
                self.find("exit", format!("exit code {code}: {}", first_lines(&self.evidence.said)))
            }
        }
    }

    /// The exit code follows from the verdicts.
    fn verdicts(&mut self) {
        let all = super::list(&self.run["channels"]).iter().chain(super::list(&self.run["chains"]));
        let broken = all.filter(|one| one["verdict"] == "broken").count();
        let code = self.evidence.code;
        if code != EARLY && (code == BROKEN) != (broken > 0) {
            self.find("exit", format!("exit code {code} with {broken} broken verdicts"));
        }
    }

    fn own_time(&mut self) {
        let jumps = self.clocks_jump();
        let mut found = Vec::new();
        for (name, log) in &self.logs {
            for (thread, times) in &log.times {
                let back = times.windows(2).find(|two| {
                    let ([before, after], network) = ([two[0], two[1]], two[1].1 < two[0].1);
                    network || !jumps && after.0 < before.0
                });
                found.extend(back.map(|two| format!("{name}, thread {thread}: {two:?}")));
            }
            let early = log.slept.iter().find(|(target, woke)| !jumps && woke < target);
            found.extend(early.map(|(target, woke)| format!("{name} woke at {woke} for {target}")));
            let short = log.worked.iter().find(|(ns, from, to)| to - from < (*ns).max(0));
            found.extend(short.map(|work| format!("{name}: work, from, to {work:?}")));
        }
        found.into_iter().for_each(|what| self.find("time", what));
    }
}

fn first_lines(text: &str) -> String {
    text.lines().take(6).collect::<Vec<_>>().join(" | ")
}
