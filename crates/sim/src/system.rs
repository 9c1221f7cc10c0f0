//! Whole systems from seeds: a description, and programs for its hosts.

mod rogues;
mod scripts;

pub(crate) use rogues::ends_the_run;
pub(crate) use scripts::clocks_jump;

use crate::script::{self, ActorStep};
use anyhow::{Context, Result};
use onbeat_hunt::checker::Settings;
use onbeat_hunt::draw::without_programs;
use onbeat_hunt::schema::Schema;
use onbeat_hunt::{Description, Dice};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// From so many octets on a message may have several frames.
pub const LONG: u32 = 1_400;

/// The file by which a program of the description starts an actor.
pub const STARTER: &str = "actor";

/// How long a run waits for a program that says nothing, in seconds: for as long as a busy machine
/// may need, or, where one says nothing on purpose, not for long.
const PATIENCE_S: [u64; 2] = [30, 3];

/// How many systems of a hundred have stations that carry their channels.
const STATIONS: u64 = 15;

/// Everything that is drawn of a seed.
#[derive(Clone, Debug)]
pub struct DrawnSystem {
    /// Of what all of it was drawn, and the seed of its run.
    pub seed: u64,
    /// What it is.
    pub description: Description,
    /// What its programs do.
    pub actors: Vec<Actor>,
    /// How long it runs, in nanoseconds.
    pub duration_ns: i64,
    /// The scenario that is run.
    pub scenario: Option<String>,
    /// Whether the network is run without its reservations.
    pub unprotected: bool,
}

/// A system as a file has it: it stays the same when other systems are drawn of its seed.
#[derive(Serialize, Deserialize)]
struct Written {
    why: String,
    seed: u64,
    duration_ns: i64,
    scenario: Option<String>,
    unprotected: bool,
    description: Map<String, Value>,
    files: BTreeMap<String, String>,
    /// Which tables are written as groups; files from before there were groups have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<u64>,
    actors: Vec<Actor>,
}

/// A program of a drawn system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// As the description calls it.
    pub name: String,
    /// Where it runs.
    pub host: String,
    /// What its threads do; the first is its main one.
    pub scripts: Vec<Vec<ActorStep>>,
    /// The ends that it may open.
    pub ends: Vec<OwnEndpoint>,
}

/// An end of a channel, as whoever opens it needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnEndpoint {
    /// The channel.
    pub channel: String,
    /// Whether it is the writing end.
    pub talker: bool,
    /// Of a message.
    pub size: u32,
    /// Between messages, in nanoseconds.
    pub interval_ns: i64,
}

/// A channel of a description, with what its manifest says of it.
#[derive(Clone, Debug)]
pub struct DrawnChannel {
    /// Its name.
    pub name: String,
    /// The host that talks.
    pub talker: String,
    /// The hosts that listen, in order.
    pub listeners: Vec<String>,
    /// Of a message, in octets.
    pub size: u32,
    /// Behind a message, in octets.
    pub trailer: u32,
    /// Between messages, in nanoseconds.
    pub interval_ns: i64,
    /// After how long the first one of a host without programs leaves, in nanoseconds.
    pub phase_ns: i64,
    /// How many messages may come at once.
    pub burst: i64,
}

impl DrawnSystem {
    /// The system of a seed.
    pub fn draw(schema: &Schema, seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x5151_7e5a_0b5e_55ed);
        let mut description = without_programs(schema, seed);
        tame(&mut description, &mut dice);
        if Dice::new(seed ^ 0x5354_4154_494f_4e53).chance(STATIONS) {
            have_stations(&mut description);
        }
        let longer = dice.one(&[1, 1, 2, 4]);
        let duration_ns = Settings::of(&description, seed, 1).duration_ns.max(1_000) * longer;
        let scenarios = description.list("scenario");
        let scenario = scenarios.first().and_then(|s| s["name"].as_str()).map(str::to_owned);
        let scenario = scenario.filter(|_| dice.chance(40));
        let unprotected = dice.chance(8) && !has_stations(&description);
        let actors = scripts::actors(&description, duration_ns, &mut dice);
        introduce(&mut description, &actors, &mut dice);
        Self { seed, description, actors, duration_ns, scenario, unprotected }
    }

    /// All of it as JSON, with why it is kept.
    pub fn to_json(&self, why: &str) -> String {
        let Self { seed, description, actors, duration_ns, scenario, unprotected } = self.clone();
        let Description { root: description, files, groups } = description;
        let why = why.to_owned();
        let written = Written {
            why,
            seed,
            duration_ns,
            scenario,
            unprotected,
            description,
            files,
            groups,
            actors,
        };
        serde_json::to_string_pretty(&written).expect("a system is plain data") + "\n"
    }

    /// Reads what [`DrawnSystem::to_json`] wrote.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_json(text: &str) -> Result<Self> {
        let Written {
            seed,
            duration_ns,
            scenario,
            unprotected,
            description,
            files,
            groups,
            actors,
            ..
        } = serde_json::from_str(text).context("not a system of onbeat-sim")?;
        let description = Description { root: description, files, groups };
        Ok(Self { seed, description, actors, duration_ns, scenario, unprotected })
    }

    /// Whether some program may break what is promised to others: it does not keep to its rate.
    pub fn has_rogue(&self) -> bool {
        let is_rogue =
            |actor: &Actor| matches!(actor.scripts[0].first(), Some(ActorStep::Rogue { .. }));
        self.actors.iter().any(is_rogue)
    }

    /// The channels of the description.
    pub fn channels(&self) -> Vec<DrawnChannel> {
        channels(&self.description)
    }

    /// Writes the description, the scripts and what starts the actors into a directory.
    ///
    /// # Errors
    /// Says which file could not be written.
    pub fn write(&self, directory: &Path, starter: &str) -> Result<()> {
        self.description.write(directory)?;
        let put = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).with_context(|| path.display().to_string())
        };
        for actor in &self.actors {
            put(
                &format!("{}.{}", actor.name, crate::actor::SCRIPT),
                &script::text(&actor.scripts),
            )?;
            let role = |end: &OwnEndpoint| if end.talker { "talker" } else { "listener" };
            let ends = actor.ends.iter().map(|e| format!("{} {} {}\n", role(e), e.size, e.channel));
            put(&format!("{}.ends", actor.name), &ends.collect::<String>())?;
        }
        put(STARTER, starter)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.join(STARTER), mode).context("the starter")
    }

    /// All of it for a person.
    pub fn text(&self) -> String {
        let Self { seed, duration_ns, scenario, unprotected, .. } = self;
        let mut text = format!(
            "# seed {seed}: {duration_ns} ns, scenario {scenario:?}, unprotected {unprotected}\n\
             # system.toml\n{}",
            self.description.toml()
        );
        for (name, file) in &self.description.files {
            text += &format!("\n# {name}\n{file}\n");
        }
        for actor in &self.actors {
            let body = script::text(&actor.scripts);
            text +=
                &format!("\n# {}.{} on {}\n{body}", actor.name, crate::actor::SCRIPT, actor.host);
        }
        text
    }
}

/// Whether stations carry the channels of some run.
fn has_stations(description: &Description) -> bool {
    let is_theirs = |run: &Value| run["backend"] == "network-code";
    let run = description.root.get("run").is_some_and(is_theirs);
    run || description.list("scenario").iter().any(is_theirs)
}

/// Lets stations carry the channels, and takes out what they do not carry. A network may still be
/// none of theirs.
fn have_stations(description: &mut Description) {
    let root = &mut description.root;
    root.remove("stream");
    root.remove("tcp");
    // Some go by a host that hears itself, which stations do not.
    root.remove("chain");
    // Programs that are drawn know nothing of modes.
    root.remove("alternatives");
    let mut runs: Vec<&mut Map<String, Value>> = Vec::new();
    let of_channel = ["burst_messages", "disjoint_paths", "paths", "history"];
    for (key, table) in root.iter_mut() {
        match (key.as_str(), table) {
            ("run", Value::Object(run)) => runs.push(run),
            ("scenario", Value::Array(all)) => {
                runs.extend(all.iter_mut().filter_map(Value::as_object_mut));
            }
            ("fault", Value::Array(all)) => all.retain(|fault| fault["babble"].is_null()),
            ("reference", Value::Array(all)) => all.retain(|of| of["tcp"].is_null()),
            ("channel", Value::Array(all)) => {
                for channel in all.iter_mut().filter_map(Value::as_object_mut) {
                    of_channel.iter().for_each(|key| drop(channel.remove(*key)));
                    let talker = channel["talker"].clone();
                    let listeners = channel.get_mut("listeners").and_then(Value::as_array_mut);
                    let shared = listeners.filter(|all| all.len() > 1);
                    shared.into_iter().for_each(|all| all.retain(|host| *host != talker));
                }
            }
            _ => {}
        }
    }
    for run in runs {
        run.remove("protected");
        run.remove("reservation");
        run.insert("backend".into(), json!("network-code"));
    }
}

/// Takes out what depends on the machine, and lets some channels be fast enough to fill queues.
fn tame(description: &mut Description, dice: &mut Dice) {
    if let Some(run) = description.root.get_mut("run").and_then(Value::as_object_mut) {
        run.remove("memory_max_octets");
        run.remove("processes_max");
    }
    let in_manifest = description.root.contains_key("manifest");
    // The end of its range is beyond the words of most messages: that is refused.
    let tables = description.root.get_mut("alternatives").and_then(Value::as_array_mut);
    for table in tables.into_iter().flatten().filter_map(Value::as_object_mut) {
        if table.get("offset_octets") == Some(&json!(996)) {
            table.insert("offset_octets".into(), json!(0));
        }
    }
    // A word of a mode's message is where the description says.
    let tables = description.list("alternatives").iter();
    let modes: Vec<Value> = tables.map(|table| table["mode"].clone()).collect();
    let list = description.root.get_mut("channel").and_then(Value::as_array_mut);
    for channel in list.into_iter().flatten().filter_map(Value::as_object_mut) {
        // One that no message can keep is refused.
        if channel.get("deadline_us") == Some(&json!(1)) {
            channel.remove("deadline_us");
        }
        // Programs here read all that they receive.
        channel.remove("lifespan_us");
        if in_manifest || !dice.chance(15) || channel.get("name").is_some_and(|n| modes.contains(n))
        {
            continue;
        }
        channel.remove("rate_hz");
        channel.insert("interval_ns".into(), json!(dice.one(&[20_000, 50_000, 125_000])));
        channel.insert("size_octets".into(), json!(dice.one(&[1, 4, 8])));
        channel.insert("reserve".into(), json!(dice.chance(60)));
    }
}

/// Adds the actors to the description, and for how long they are waited for.
fn introduce(description: &mut Description, actors: &[Actor], dice: &mut Dice) {
    let hosts: Vec<Value> = description.list("host").to_vec();
    let mut programs = Vec::new();
    for Actor { name, host, .. } in actors {
        let mut program = Map::new();
        program.insert("name".into(), json!(name));
        program.insert("host".into(), json!(host));
        program.insert("command".into(), json!([format!("./{STARTER}"), name]));
        if dice.chance(20) {
            program.insert("priority".into(), json!(dice.between(1, 99)));
        }
        if dice.chance(10) {
            program.insert("work_max_ns".into(), json!(dice.between(0, 200_000)));
        }
        let cores = hosts.iter().find(|h| h["name"] == **host).and_then(|h| h["cores"].as_u64());
        if let Some(cores) = cores.filter(|_| dice.chance(50)) {
            program.insert("cores".into(), json!([dice.below(cores)]));
        }
        programs.push(Value::Object(program));
    }
    if dice.chance(5) {
        let host = &dice.one(&hosts)["name"];
        programs
            .push(json!({ "name": "aside", "host": host, "command": ["true"], "joins": false }));
    }
    if !programs.is_empty() {
        description.root.insert("program".into(), Value::Array(programs));
    }
    let patience = PATIENCE_S[usize::from(actors.iter().any(is_silent))];
    let run = description.root.entry("run").or_insert_with(|| json!({}));
    let run = run.as_object_mut().expect("[run] is a table");
    run.insert("hang_timeout_s".into(), json!(patience));
    for scenario in
        description.root.get_mut("scenario").and_then(Value::as_array_mut).into_iter().flatten()
    {
        let scenario = scenario.as_object_mut().expect("[[scenario]] is a table");
        scenario.remove("hang_timeout_s");
    }
}

/// Whether a program lets the run wait in vain.
fn is_silent(actor: &Actor) -> bool {
    use script::{Misdeed, ProtocolState};
    let mut found = false;
    let mut look = |step: &ActorStep| {
        found |= match step {
            ActorStep::Hang => true,
            ActorStep::Rogue { at, how } => match how {
                Misdeed::Silent => true,
                Misdeed::Stay => *at <= ProtocolState::Greeted,
                _ => false,
            },
            _ => false,
        };
    };
    actor.scripts.iter().for_each(|steps| script::each(steps, &mut look));
    found
}

/// The channels of a description, with what its manifest says.
pub(crate) fn channels(description: &Description) -> Vec<DrawnChannel> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let manifest = description.files.get("manifest.h").map(String::as_str).unwrap_or_default();
    let channel = |table: &Value| {
        let name = text(&table["name"]);
        let own = manifest.lines().find(|line| line.contains(&format!(".name = \"{name}\"")));
        let field = |key: &str| {
            let (_, rest) = own?.split_once(&format!(".{key} = "))?;
            rest.split([',', ' ']).next()?.parse::<i64>().ok()
        };
        let int = |key: &str| table[key].as_i64();
        let interval = int("interval_ns").or(int("rate_hz").map(|hz| 1_000_000_000 / hz.max(1)));
        let listeners = table["listeners"].as_array().map_or(&[][..], Vec::as_slice);
        DrawnChannel {
            talker: text(&table["talker"]),
            listeners: listeners.iter().map(text).collect(),
            size: int("size_octets").or(field("size")).unwrap_or(1) as u32,
            trailer: match table["integrity"].as_str() {
                Some("crc") => 8,
                Some("authenticated") => 32,
                _ => 0,
            },
            interval_ns: interval.or(field("interval_ns")).unwrap_or(1_000_000),
            phase_ns: int("phase_ns").unwrap_or(0),
            burst: int("burst_messages").unwrap_or(1),
            name,
        }
    };
    description.list("channel").iter().map(channel).collect()
}
