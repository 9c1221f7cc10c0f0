//! What `onbeat run --json` says in virtual time of a description that has programs, against itself
//! and against its exit code.

use super::{Checker, Kind, Report, Settings, json, sound, text};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Whether a description has programs with which it can be run: those that are there, and those
/// that have nothing to do with the network. As whom they run, and what they may use of the
/// machine, is a matter of who runs them and where, and may keep them from ending well.
pub(super) fn has_programs(description: &str) -> bool {
    let programs: Vec<&str> = description.split("[[program]]\n").skip(1).collect();
    let is_usable = |text: &&str| {
        let table = text.split("\n[").next().unwrap_or(text);
        table.contains("source = ") != table.contains("joins = false")
    };
    let bounded = ["\nuser = ", "\nmemory_max_octets = ", "\nprocesses_max = "];
    let is_free = !bounded.iter().any(|key| description.contains(key));
    is_free && !programs.is_empty() && programs.iter().all(is_usable)
}

impl Checker {
    /// Runs a description once.
    pub(super) fn execute(
        &self,
        directory: &Path,
        settings: Settings,
        description: &str,
        report: &mut Report,
    ) -> Result<()> {
        let (duration, seed) = (format!("{}ns", settings.duration_ns), settings.seed.to_string());
        let mut arguments = vec!["run", ".", "--json", "--time", "virtual", "--out", "run"];
        arguments.extend(["--duration", &duration, "--seed", &seed]);
        let output = self.run(directory, &arguments)?;
        if !sound(&output, "run", report) {
            return Ok(());
        }
        let code = output.status.code().unwrap_or(-1);
        if code != 0 && code != 3 {
            let said = text(&output.stderr);
            report
                .find(Kind::Books, format!("run: exit code {code} after bounds succeeded: {said}"));
            return Ok(());
        }
        let Some(document) = json(&output, "run", report) else { return Ok(()) };
        report.runs += 1;
        let mut broken = 0;
        for run in list(&document["runs"]) {
            for channel in list(&run["channels"]) {
                check(channel, description, report);
            }
            let all = list(&run["channels"]).iter().chain(list(&run["chains"]));
            broken += all.filter(|one| one["verdict"] == "broken").count();
        }
        if (code == 3) != (broken > 0) {
            report
                .find(Kind::Books, format!("run: exit code {code} with {broken} broken verdicts"));
        }
        Ok(())
    }
}

fn check(channel: &Value, description: &str, report: &mut Report) {
    let name = channel["name"].as_str().unwrap_or_default();
    if description.contains(&format!("babble = \"{name}\"")) {
        return;
    }
    let listeners = list(&channel["listeners"]);
    for listener in listeners {
        let most = listener["latency_ns"]["max"].as_i64();
        let Some((most, bound)) = most.zip(listener["bound_ns"].as_i64()) else { continue };
        let steps =
            ["clock_step_ns = ", "in_run = true"].iter().any(|key| description.contains(key));
        if most > bound && !(steps && channel["verdict"] == "not judged") {
            let place = format!("run: {name} at {}", listener["host"]);
            report.find(Kind::Broken, format!("{place} took {most} ns of {bound}"));
            if channel["verdict"] != "broken" {
                report.find(Kind::Books, format!("{place}: {}", channel["verdict"]));
            }
        }
    }
    let counts = ["sent", "received", "lost"].map(|key| channel[key].as_u64());
    if let [Some(sent), Some(received), Some(lost)] = counts
        && received + lost != sent * listeners.len() as u64
    {
        let what = format!("run: {name}: {received} received and {lost} lost of {sent}");
        report.find(Kind::Books, what);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
