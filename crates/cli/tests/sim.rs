//! Whole systems from seeds, as `onbeat-sim` runs them for ever: some fixed seeds, those that once
//! failed, and whether what looks for faults can find one. The programs of these systems are this
//! test again, started by the command.

use onbeat_hunt::schema::Schema;
use onbeat_sim::judge::{Evidence, Finding, judge};
use onbeat_sim::trial::ACTOR;
use onbeat_sim::{DrawnSystem, Harness};
use std::path::{Path, PathBuf};

/// Seeds of each run: the same on every machine.
const SEEDS: [u64; 6] = [1, 2, 3, 4, 5, 6];

fn stage() -> Harness {
    let own = std::env::current_exe().expect("this test");
    // The test that is an actor, by its name in this binary.
    let (_, module) = module_path!().split_once("::").unwrap_or(("", ""));
    let test = if module.is_empty() { "acts".to_owned() } else { format!("{module}::acts") };
    let own = own.to_str().expect("UTF-8");
    let actor = [own, &test, "--exact", "--nocapture", "--test-threads=1", "--"];
    Harness {
        onbeat: PathBuf::from(env!("CARGO_BIN_EXE_onbeat")),
        actor: actor.map(str::to_owned).to_vec(),
        keep: None,
    }
}

/// A program of a drawn system, if the command has started it as one.
#[test]
fn acts() {
    if std::env::var_os(ACTOR).is_none() {
        return;
    }
    let name = std::env::args().next_back().expect("the program's name");
    let code = onbeat_sim::actor::act(&name);
    std::process::exit(i32::from(code.is_err()));
}

fn try_out(system: &DrawnSystem) -> Vec<Finding> {
    stage().try_out(system).expect("the machine works").findings
}

#[test]
fn every_invariant_holds_of_some_drawn_systems() {
    for seed in SEEDS {
        let found = try_out(&DrawnSystem::draw(&Schema::committed(), seed));
        assert!(found.is_empty(), "onbeat-sim {seed}: {found:#?}");
    }
}

#[test]
fn what_was_found_once_holds() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found_systems");
    for entry in place.read_dir().expect("tests/found_systems") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a system");
        let found = try_out(&DrawnSystem::from_json(&text).expect("a system"));
        assert!(found.is_empty(), "onbeat-sim --case {}: {found:#?}", path.display());
    }
}

/// A seed whose programs write and read, and whose run is complete.
const BUSY: u64 = 3;

/// What makes some account wrong.
type Spoil = fn(&mut Evidence);

/// One account made wrong, and the invariant that must notice it.
const SPOILT: [(&str, Spoil); 14] = [
    ("books", |it| add(&mut first_channel(it)["sent"], 1)),
    ("books", |it| add(&mut first_channel(it)["received"], -1)),
    ("books", |it| add(&mut first_channel(it)["listeners"][0]["lost"], 1)),
    ("books", |it| add(&mut first_channel(it)["listeners"][0]["late"], 1)),
    ("books", |it| add(&mut first_channel(it)["latency_ns"]["max"], 1)),
    ("books", |it| it.messages = without_line(&it.messages, 3)),
    ("books", |it| each_log(it, |log| without_first(log, " wrote "))),
    ("books", |it| each_log(it, |log| log.replacen(" wrote ", " writes ", 1))),
    ("books", |it| each_log(it, |log| field(log, " read ", 5, "77"))),
    ("books", |it| each_log(it, |log| field(log, " read ", 6, "1"))),
    ("time", |it| each_log(it, |log| field(log, " woke ", 2, "-5"))),
    ("exit", |it| each_log(it, |log| format!("{log}0 - - fatal exit 3\n"))),
    ("exit", |it| it.code = 3),
    ("blame", |it| {
        it.code = 4;
        it.results["runs"][0]["ended"] =
            serde_json::json!({ "early": { "at_ns": 5, "reason": "somebody did it" } });
    }),
];

/// The first channel that somebody received something of.
fn first_channel(of: &mut Evidence) -> &mut serde_json::Value {
    let channels = of.results["runs"][0]["channels"].as_array_mut().expect("channels");
    channels.iter_mut().find(|one| one["received"] != 0).expect("messages were received")
}

fn add(figure: &mut serde_json::Value, by: i64) {
    *figure = (figure.as_i64().expect("a figure") + by).into();
}

fn each_log(of: &mut Evidence, change: impl Fn(&str) -> String) {
    of.logs.values_mut().for_each(|log| *log = change(log));
}

fn without_line(text: &str, number: usize) -> String {
    let kept = text.lines().enumerate().filter(|(at, _)| *at != number);
    kept.map(|(_, line)| format!("{line}\n")).collect()
}

fn without_first(text: &str, with: &str) -> String {
    let number = text.lines().position(|line| line.contains(with));
    number.map_or(text.to_owned(), |number| without_line(text, number))
}

/// The first line with these words gets another word at a place.
fn field(text: &str, with: &str, place: usize, word: &str) -> String {
    let Some(line) = text.lines().find(|line| line.contains(with)) else { return text.to_owned() };
    let mut words: Vec<&str> = line.split(' ').collect();
    words[place] = word;
    text.replacen(line, &words.join(" "), 1)
}

#[test]
fn books_that_are_wrong_are_found_to_be() {
    let system = DrawnSystem::draw(&Schema::committed(), BUSY);
    let right = stage().evidence(&system).expect("the machine works").expect("it runs");
    assert_eq!(judge(&system, &right), Vec::new());
    for (invariant, spoil) in SPOILT {
        let mut wrong = right.clone();
        spoil(&mut wrong);
        let found = judge(&system, &wrong);
        assert!(found.iter().any(|one| one.invariant == invariant), "{invariant}: {found:#?}");
    }
}
