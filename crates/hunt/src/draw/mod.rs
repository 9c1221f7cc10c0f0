//! Descriptions from seeds. Whatever the schema can say is drawn sooner or later: each key, each
//! word, both ends of each range; `tests/coverage.rs` holds it to that.

mod dedicated;
mod nodes;
mod ports;
mod programs;
mod rest;
mod traffic;

use crate::Description;
use crate::dice::Dice;
use crate::schema::Schema;
use serde_json::{Map, Value, json};

/// A table under construction.
type Table = Map<String, Value>;

/// How often something is there in one description, in per cent, and how extreme its numbers are.
#[derive(Debug)]
struct Mix {
    /// Of numbers that are an end of their range, in parts per thousand.
    extreme: u64,
    /// Of keys that may be left out.
    optional: u64,
    /// Of ports that have a `[[port]]`.
    ports: u64,
    credit: u64,
    asynchronous: u64,
    gates: u64,
    preemption: u64,
    vlans: u64,
    clocks: u64,
    channels: u64,
    noise: u64,
    policing: u64,
    paths: u64,
    faults: u64,
    /// Load that the slowest link is meant to carry, in parts per million.
    load_ppm: i64,
}

/// A host as other parts of a description need it.
#[derive(Clone, Debug)]
struct Host {
    name: String,
    mac: String,
    /// The bridge that it is linked to; none where two hosts are linked directly.
    bridge: Option<usize>,
    cores: Option<i64>,
}

/// A port as `[[port]]` and faults name it.
#[derive(Clone, Debug)]
struct DrawnPort {
    name: String,
    rate_bps: i64,
}

/// One description under construction.
struct Draft<'a> {
    dice: Dice,
    schema: &'a Schema,
    mix: Mix,
    root: Table,
    files: std::collections::BTreeMap<String, String>,
    hosts: Vec<Host>,
    bridges: usize,
    /// Which bridges links join.
    edges: Vec<(usize, usize)>,
    ports: Vec<DrawnPort>,
    slowest_bps: i64,
    /// What the gates of all ports have in common, if anything.
    cycle_ns: i64,
    /// Whether some channel has a reservation in class A, in class B.
    reserved: [bool; 2],
}

/// The description of a seed.
pub fn description(schema: &Schema, seed: u64) -> Description {
    let mut dice = Dice::new(seed);
    let mix = mix(&mut dice);
    let mut draft = Draft::new(schema, dice, mix);
    draft.network();
    draft.programs();
    draft.chains();
    draft.references();
    draft.routing();
    draft.devices();
    draft.sporadic();
    draft.open_classes();
    draft.replicate();
    draft.alternatives();
    draft.dedicated_path();
    draft.scenario_programs();
    draft.take_back();
    draft.types();
    draft.into_description(seed)
}

/// The description of a seed that most often can be run. It has channels, but no programs: the
/// caller adds them.
pub fn without_programs(schema: &Schema, seed: u64) -> Description {
    let mut dice = Dice::new(seed);
    let extreme = dice.one(&[0, 0, 0, 0, 0, 0, 2, 20]);
    let load_ppm = dice.between(10_000, 600_000);
    let mix = Mix { extreme, load_ppm, channels: 100, ..mix(&mut dice) };
    let mut draft = Draft::new(schema, dice, mix);
    draft.network();
    draft.chains();
    draft.references();
    draft.routing();
    draft.devices();
    draft.sporadic();
    draft.open_classes();
    draft.replicate();
    draft.alternatives();
    draft.dedicated_path();
    draft.take_back();
    draft.into_description(seed)
}

fn mix(dice: &mut Dice) -> Mix {
    let extreme = dice.one(&[0, 0, 0, 0, 3, 30, 150]);
    let load_ppm = match dice.below(6) {
        // Full to within a few parts per million, and as much too full.
        0 => 1_000_000 + dice.between(-20, 20),
        1 => dice.between(800_000, 1_300_000),
        _ => dice.between(50_000, 800_000),
    };
    let mut share = |most: u64| if dice.chance(35) { 0 } else { dice.below(most + 1) };
    Mix {
        extreme,
        optional: share(100),
        ports: share(100),
        credit: share(100),
        asynchronous: share(80),
        gates: share(80),
        preemption: share(80),
        vlans: share(20),
        clocks: share(100),
        channels: share(100),
        noise: share(100),
        policing: share(40),
        paths: share(60),
        faults: share(50),
        load_ppm,
    }
}

impl<'a> Draft<'a> {
    fn new(schema: &'a Schema, mut dice: Dice, mix: Mix) -> Self {
        let cycle_ns = dice.one(&[250_000, 500_000, 1_000_000, 400_000, 1_234_567]);
        Self {
            dice,
            schema,
            mix,
            root: Table::new(),
            files: Default::default(),
            hosts: Vec::new(),
            bridges: 0,
            edges: Vec::new(),
            ports: Vec::new(),
            slowest_bps: i64::MAX,
            cycle_ns,
            reserved: [false; 2],
        }
    }

    /// All but what is about programs and figures.
    fn network(&mut self) {
        self.nodes();
        self.runs();
        self.channels();
        self.streams();
        self.ports();
        self.noise();
        self.tcp();
        self.faults();
    }

    /// What has been drawn. Groups have dice of their own: the system is that of the seed.
    fn into_description(self, seed: u64) -> Description {
        let mut dice = Dice::new(!seed);
        let groups = dice.chance(30).then(|| dice.bits());
        Description { root: self.root, files: self.files, groups }
    }

    fn chance(&mut self, per_cent: u64) -> bool {
        self.dice.chance(per_cent)
    }

    /// Whether an optional key is there.
    fn optional(&mut self) -> bool {
        let share = self.mix.optional;
        self.dice.chance(share)
    }

    /// A number: what is usual, brought into the range, or an end of the range.
    fn number(&mut self, place: &str, usual: i64) -> Value {
        let [least, most] = self.schema.range(place).clone();
        if self.dice.below(1_000) < self.mix.extreme {
            return if self.chance(50) { least } else { most };
        }
        let most = most.as_i64().unwrap_or(i64::MAX);
        json!(usual.clamp(least.as_i64().unwrap_or(0), most))
    }

    /// Adds an optional number of the table `name`.
    fn maybe(&mut self, table: &mut Table, place: &str, usual: impl FnOnce(&mut Dice) -> i64) {
        if self.optional() {
            let usual = usual(&mut self.dice);
            let key = place.split_once('.').map_or(place, |(_, key)| key);
            table.insert(key.to_owned(), self.number(place, usual));
        }
    }

    /// Adds an optional boolean.
    fn maybe_bool(&mut self, table: &mut Table, key: &str) {
        if self.optional() {
            let value = self.chance(50);
            table.insert(key.to_owned(), json!(value));
        }
    }

    /// Adds a table to the list `key` of the description.
    fn push(&mut self, key: &str, table: Table) {
        let list = self.root.entry(key).or_insert_with(|| json!([]));
        list.as_array_mut().expect("a list of tables").push(Value::Object(table));
    }

    /// How many nanoseconds so many octets take on the slowest link.
    fn slowest_ns(&self, octets: i64) -> i64 {
        (i128::from(octets) * 8_000_000_000 / i128::from(self.slowest_bps)) as i64 + 1
    }

    /// Two different hosts.
    fn two_hosts(&mut self) -> (usize, usize) {
        let two = self.dice.some(self.hosts.len(), 2);
        (two[0], two[1])
    }

    /// Some hosts that are not `talker`, mostly few.
    fn listeners(&mut self, talker: usize) -> Vec<usize> {
        let others: Vec<usize> = (0..self.hosts.len()).filter(|h| *h != talker).collect();
        let count = self.dice.one(&[1, 1, 1, 2, 3]).min(others.len());
        self.dice.some(others.len(), count).into_iter().map(|at| others[at]).collect()
    }

    fn host_names(&self, hosts: &[usize]) -> Value {
        json!(hosts.iter().map(|h| self.hosts[*h].name.as_str()).collect::<Vec<_>>())
    }
}

fn table(value: Value) -> Table {
    let Value::Object(table) = value else { unreachable!("a table is drawn as an object") };
    table
}
