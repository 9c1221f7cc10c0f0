//! The table of times of random systems against what their programs do in virtual time: node by
//! node, and round by round of their loops. `TFG_GRAPHS=10000` tests so many, `TFG_SEED=N` from
//! this seed on.

use crate::found;
use crate::trace;
mod systems;
mod tasks;

use crate::common::onbeat;
use crate::found::Wrong;
use crate::table::{Document, Node, Row, Timing};
use crate::trace::Event;
use crate::walk::{Figures, Walker};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Groups of tasks, each a graph, in one system: few enough for its table to be long.
const GROUPS: u64 = 25;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// What a command says on standard output; what is wrong if it does not end well.
fn output(
    arguments: &[&str],
    environment: &[(&str, &str)],
    directory: &Path,
    codes: &[i32],
) -> Result<Vec<u8>, Wrong> {
    let mut command = onbeat();
    command.args(arguments).current_dir(directory).env("NO_COLOR", "1");
    let output = command.envs(environment.iter().copied()).output().expect("it runs");
    match output.status.code().filter(|code| codes.contains(code)) {
        Some(_) => Ok(output.stdout),
        None => Err(Wrong::command(arguments, &output)),
    }
}

/// Compiles the programs for a run on the platform and for one in logical time.
fn compile(directory: &Path) -> Result<(), Wrong> {
    std::fs::create_dir_all(directory.join("build")).expect("a directory");
    let one = |name: &str, flag: &str| {
        (0..systems::HOSTS).try_for_each(|program| {
            let (source, binary) = (format!("p{program}.c"), format!("build/{name}{program}"));
            // What was made small may have fewer.
            if !directory.join(&source).exists() {
                return Ok(());
            }
            let arguments = ["cc", &source, "-w", "-O0", flag, "-o", &binary];
            output(&arguments, &[], directory, &[0]).map(|_| ())
        })
    };
    std::thread::scope(|scope| {
        let platform = scope.spawn(|| one("p", "-DPLATFORM"));
        one("logical", "-DLOGICAL").and(platform.join().expect("it does not panic"))
    })
}

/// The table, as long as runs are.
fn table(directory: &Path) -> Result<Document, Wrong> {
    let until = format!("{}ns", systems::END_NS);
    let arguments = ["tfg", ".", "--json", "--iterations", "80", "--until", &until];
    let text = output(&arguments, &[], directory, &[0, 6])?;
    Ok(Document::read(&text))
}

fn times<'a>(document: &'a Document, level: &str) -> &'a Timing {
    if level == "logical" { &document.program } else { &document.platform }
}

/// Runs the programs; what each task did, by program and name.
fn run(
    directory: &Path,
    description: &str,
    coins: u64,
    execution: &str,
) -> Result<BTreeMap<(String, String), Vec<Event>>, Wrong> {
    let traces = format!("traces-{description}-{coins}");
    let (description, coins) = (format!("{description}.toml"), coins.to_string());
    let arguments = ["run", &description, "--out", "out", "--task-trace", &traces];
    let traces = directory.join(&traces);
    std::fs::create_dir_all(&traces).expect("a directory");
    let environment = [("COINS", &*coins), ("ONBEAT_EXECUTION", execution)];
    output(&arguments, &environment, directory, &[0])?;
    let mut tasks: BTreeMap<(String, String), Vec<Event>> = BTreeMap::new();
    for program in 0..systems::HOSTS {
        let name = format!("p{program}");
        let Ok(text) = std::fs::read_to_string(traces.join(format!("{name}.csv"))) else {
            continue;
        };
        for event in trace::read(&text).expect("a trace") {
            if event.time_ns < systems::END_NS {
                let key = (name.clone(), event.task.clone());
                tasks.entry(key).or_default().push(event);
            }
        }
    }
    Ok(tasks)
}

/// Walks what all tasks of a run did. What does not agree is said with the task.
fn compare(
    document: &Document,
    timing: &Timing,
    did: &BTreeMap<(String, String), Vec<Event>>,
    figures: &mut Figures,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, task) in document.tasks.iter().enumerate() {
        let events = did.get(&(task.program.clone(), task.name.clone()));
        let events: Vec<&Event> = events.into_iter().flatten().collect();
        let mut walker = Walker::new(document, timing, number);
        if let Err(reason) = walker.walk(&events, systems::END_NS) {
            wrong.push(format!("task {} of {}: {reason}", task.name, task.program));
        }
        *figures += walker.figures;
    }
    wrong
}

/// A directory that stays where something is wrong.
fn directory(seed: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("onbeat-tfg-{}-{seed}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

/// What is wrong with a system: its table against four runs.
fn judge(directory: &Path, figures: &mut BTreeMap<&str, Figures>) -> Result<Vec<Wrong>, Wrong> {
    let document = std::thread::scope(|scope| {
        let table = scope.spawn(|| table(directory));
        compile(directory).and(table.join().expect("it does not panic"))
    })?;
    let mut wrong = Vec::new();
    for (level, description, coins, execution) in [
        ("logical", "logical", 1, "worst"),
        ("logical", "logical", 2, "worst"),
        ("platform", "run", 3, "worst"),
        ("platform", "run", 4, "best"),
    ] {
        let timing = times(&document, level);
        let did = run(directory, description, coins, execution)?;
        let figures = figures.entry(level).or_default();
        for reason in compare(&document, timing, &did, figures) {
            wrong.push(Wrong::new(format!("{level} table"), format!("coins {coins}: {reason}")));
        }
    }
    Ok(wrong)
}

fn all_wrong(directory: &Path) -> Vec<Wrong> {
    judge(directory, &mut BTreeMap::new()).unwrap_or_else(|wrong| vec![wrong])
}

/// One system. What is wrong is kept, where a hunt asks for it.
fn system(seed: u64, groups: &[u64], figures: &mut BTreeMap<&str, Figures>) -> Vec<String> {
    let directory = directory(seed);
    systems::batch(seed, groups).write(&directory);
    let wrong = judge(&directory, figures).unwrap_or_else(|wrong| vec![wrong]);
    if let Some(first) = wrong.first() {
        // Tasks are called by their group. Each program has a task of the first groups.
        let mut words = first.what.split(|c: char| !c.is_alphanumeric());
        let group = words.find_map(|word| word.strip_prefix('g')?.parse::<u64>().ok());
        let fewer = group.map(|group| {
            let fewer = groups.iter().copied().filter(|other| *other < 6 || *other == group);
            let place = tempfile::tempdir().expect("a directory");
            systems::batch(seed, &fewer.collect::<Vec<_>>()).write(place.path());
            found::read(place.path())
        });
        let narrower = fewer.into_iter().chain([found::read(&directory)]).collect();
        found::keep(&format!("graphs-{seed}"), first, narrower, all_wrong);
    } else {
        std::fs::remove_dir_all(&directory).expect("removed");
    }
    let place = directory.display();
    wrong.iter().map(|wrong| format!("seed {seed}, {place}: {wrong}")).collect()
}

#[test]
fn what_was_found_once_agrees() {
    for (name, directory) in found::all("graphs") {
        let wrong: Vec<_> = all_wrong(directory.path()).iter().map(ToString::to_string).collect();
        assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n"));
    }
}

#[test]
fn what_random_systems_do_is_in_the_table() {
    let graphs = number("TFG_GRAPHS").unwrap_or(75);
    let first = number("TFG_SEED").unwrap_or(1);
    let mut figures = BTreeMap::new();
    let mut wrong = Vec::new();
    for batch in 0..graphs.div_ceil(GROUPS) {
        let groups: Vec<u64> = (0..GROUPS.min(graphs - batch * GROUPS)).collect();
        wrong.extend(system(first + batch, &groups, &mut figures));
    }
    println!("{graphs} graphs");
    for (level, figures) in &figures {
        println!("{level}: {figures}");
    }
    let count = wrong.len();
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{count} tasks do not agree\n{}", wrong.join("\n\n"));
    for (level, figures) in &figures {
        assert!(figures.exact > figures.times / 10, "{level}: hardly anything is exact: {figures}");
        assert!(figures.beyond < figures.times / 3, "{level}: the table is short: {figures}");
    }
}

/// Longer runs than those of this test found them.
#[test]
fn graphs_that_once_did_not_agree_do() {
    for (seed, group) in
        [(1_039, 998), (100_027, 0), (100_042, 15), (100_048, 12), (200_002, 22), (300_017, 15)]
    {
        // With others, so that each program has a task.
        let groups: BTreeSet<u64> = (0..6).chain([group]).collect();
        let groups: Vec<u64> = groups.into_iter().collect();
        let wrong = system(seed, &groups, &mut BTreeMap::new());
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

/// What the table says of the tasks of a group: by task, node and round.
type Part<'a> = BTreeMap<(&'a str, usize, &'a [u32]), (&'a Row, &'a Node)>;

fn part<'a>(document: &'a Document, timing: &'a Timing, group: &str) -> Part<'a> {
    let mut part = Part::new();
    for row in &timing.rows {
        let task = &document.tasks[row.task];
        if task.name.starts_with(group) {
            let key = (task.name.as_str(), row.node, row.rounds.as_slice());
            part.insert(key, (row, &task.nodes[row.node]));
        }
    }
    part
}

/// Whether a group's tasks have a channel whose latency depends on what else is on the network.
fn is_on_network(document: &Document, group: &str) -> bool {
    let tasks = document.tasks.iter().filter(|task| task.name.starts_with(group));
    let mut channels = tasks.flat_map(|t| &t.nodes).filter_map(|node| node.channel);
    channels.any(|channel| document.channels[channel].kind != "fifo")
}

#[test]
fn independent_programs_beside_it_change_no_row_of_a_graph() {
    let seed = number("TFG_SEED").unwrap_or(7);
    let table = |groups: &[u64]| {
        let directory = tempfile::tempdir().expect("a directory");
        systems::batch(seed, groups).write(directory.path());
        table(directory.path()).unwrap_or_else(|wrong| panic!("{wrong}"))
    };
    let groups: Vec<u64> = (0..12).collect();
    let all = table(&groups);
    let mut compared = 0;
    for group in &groups {
        let name = format!("g{group}_");
        if is_on_network(&all, &name) {
            continue;
        }
        let alone = table(&[*group]);
        for level in ["logical", "platform"] {
            let together = part(&all, times(&all, level), &name);
            let by_itself = part(&alone, times(&alone, level), &name);
            // How long a table is may depend on what else is in it.
            for (visit, (row, node)) in &together {
                let Some((other, _)) = by_itself.get(visit) else { continue };
                let said = |row: &Row| (row.arrival, row.release, row.is_certain);
                assert_eq!(said(row), said(other), "{visit:?} {} {level}", node.kind);
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared} rows were compared");
}
