//! Whole verbs of the command against a stranger's directory: descriptions, sources, records,
//! results, journals and machines are spoilt, and the command looks at them in a jail with canaries
//! ([`jail`]).

pub mod corpus;
mod jail;
mod spoil;

use crate::Dice;
use crate::draw::description;
use crate::mutate::mutated;
use crate::reduce::reduce;
use crate::schema::Schema;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{File, create_dir_all, write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

pub use corpus::Corpus;
pub use jail::{Fault, Jail};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File(Vec<u8>),
    /// A link to somewhere; `OUTSIDE` in it stands for the directory beside, which is not its own.
    Link(String),
    /// A pipe.
    Pipe,
    /// A file of so many octets that are not there.
    Hole(u64),
    /// An empty directory.
    Directory,
}

/// What is in a directory, by the path below it.
pub type Entries = BTreeMap<String, Entry>;

/// A verb that is used on foreign input.
#[derive(Debug)]
pub struct Verb {
    /// The word.
    pub name: &'static str,
    /// Which of the corpus' directories it is for.
    pub of: &'static str,
    /// How it may be asked.
    pub ways: &'static [&'static [&'static str]],
    /// Below which paths it may change what is there.
    pub writes: &'static [&'static str],
    /// How it may end, as docs/cli.md says.
    pub exits: &'static [i32],
}

/// All of them: those of SECURITY.md's table that execute nothing and read files.
pub const VERBS: &[Verb] = &[
    Verb {
        name: "check",
        of: "description",
        ways: &[&["check", "."], &["check", ".", "--json"], &["check", ".", "--no-bounds"]],
        writes: &[],
        exits: &[0, 1, 5],
    },
    Verb {
        name: "plan",
        of: "description",
        ways: &[&["plan", "."], &["plan", ".", "--json", "--unprotected"]],
        writes: &[],
        exits: &[0, 1, 5],
    },
    Verb {
        name: "tfg",
        of: "description",
        ways: &[
            &["tfg", "."],
            &["tfg", ".", "--json"],
            &["tfg", ".", "--html", "new.html", "--svg", "new.svg", "--dot", "new.dot"],
        ],
        writes: &["new."],
        exits: &[0, 1, 2, 5, 6],
    },
    Verb {
        name: "tasks",
        of: "tasks",
        ways: &[&["tfg", "tasks.toml"], &["tfg", "tasks.toml", "--json"]],
        writes: &[],
        exits: &[0, 1, 2, 5, 6],
    },
    Verb {
        name: "bounds",
        of: "description",
        ways: &[&["bounds", "."], &["bounds", ".", "--json"]],
        writes: &[],
        exits: &[0, 1, 5],
    },
    Verb {
        name: "network",
        of: "network",
        ways: &[&["bounds", "network.json"], &["bounds", "network.json", "--json"]],
        writes: &[],
        exits: &[0, 1, 5],
    },
    Verb {
        name: "manifest",
        of: "description",
        ways: &[&["manifest", ".", "--c"], &["manifest", ".", "--c", "--first-generation"]],
        writes: &[],
        exits: &[0, 1, 2, 5],
    },
    Verb {
        name: "simulate",
        of: "description",
        ways: &[
            &["simulate", ".", "--duration", "2ms", "--capture", "new.pcapng"],
            &["simulate", ".", "--duration", "2ms", "--repetitions", "3", "--json"],
        ],
        writes: &["out-simulation", "new.pcapng", ""],
        exits: &[0, 1, 2, 3, 5],
    },
    Verb {
        name: "import",
        of: "network",
        ways: &[
            &["import", "links.csv", "--streams", "streams.csv"],
            &["import", "links.csv", "--streams", "streams.csv", "--json", "-o", "new.toml"],
            &["import", "graph.graphml", "--add-hosts", "--streams", "streams.csv"],
        ],
        writes: &["new."],
        exits: &[0, 1, 2, 5],
    },
    Verb {
        name: "lf-import",
        of: "model",
        ways: &[
            &["lf", "import", "model.lf", "--with", "model.toml"],
            &["lf", "import", "model.lf", "--with", "model.toml", "--json", "-o", "new.toml"],
        ],
        writes: &["new."],
        exits: &[0, 1, 5],
    },
    Verb {
        name: "lf-bounds",
        of: "model",
        ways: &[
            &["lf", "bounds", "model.lf", "--with", "model.toml"],
            &["lf", "bounds", "model.lf", "--with", "model.toml", "--json", "--local", "1us"],
        ],
        writes: &[],
        exits: &[0, 1, 3, 5, 6],
    },
    Verb {
        name: "lf-simulate",
        of: "model",
        ways: &[
            &[
                "lf",
                "simulate",
                "model.lf",
                "--with",
                "model.toml",
                "--duration",
                "20ms",
                "--runs",
                "2",
                "--out",
                "out-federation",
            ],
            &[
                "lf",
                "simulate",
                "model.lf",
                "--with",
                "model.toml",
                "--duration",
                "5ms",
                "--runs",
                "1",
                "--maxwait",
                "computed",
                "--json",
            ],
        ],
        writes: &["out-federation", ""],
        exits: &[0, 1, 3, 5, 6],
    },
    Verb {
        name: "nc",
        of: "station",
        ways: &[
            &["nc", "asm", "program.nc", "--json"],
            &["nc", "asm", "program.nc", "--system", ".", "--station", "a", "-o", "new.ncb"],
            &["nc", "dis", "program.ncb", "--words"],
            &["nc", "dis", "program.ncb", "-o", "new.nc"],
            &["nc", "fmt", "program.nc"],
        ],
        writes: &["new.", "program.nc"],
        exits: &[0, 1, 2, 5],
    },
    Verb {
        name: "report",
        of: "run",
        ways: &[&["report", "."], &["report", ".", "--json"], &["report", ".", "--recovered"]],
        writes: &["out", ""],
        exits: &[0, 1, 3, 4, 5],
    },
    Verb {
        name: "compare",
        of: "outputs",
        ways: &[
            &["compare", "first", "second"],
            &["compare", "first", "second", "--json"],
            &["compare", "first", "first", "--html", "new.html"],
        ],
        writes: &["new.html", ""],
        exits: &[0, 1, 2, 5],
    },
    Verb {
        name: "doctor",
        of: "machine",
        ways: &[
            &["doctor", "--root", "machine"],
            &["doctor", "--facts", "facts.json"],
            &["doctor", "--root", "machine", "--json"],
        ],
        writes: &[],
        exits: &[0, 1, 2, 5],
    },
    Verb {
        name: "tune",
        of: "machine",
        ways: &[
            &["tune", "--root", "machine", "status"],
            &["tune", "--root", "machine", "undo"],
            &["tune", "--root", "machine", "plan", "--profile", "none"],
            &["tune", "--root", "machine", "confirm"],
        ],
        writes: &["machine"],
        exits: &[0, 1, 2, 5],
    },
];

/// A description of a network that is right, as others are drawn, or was until it was changed.
fn drawn(dice: &mut Dice) -> Entries {
    let mut description = description(&Schema::committed(), dice.bits());
    for _ in 0..dice.below(4) {
        description = mutated(&description, dice);
    }
    Entries::from([("system.toml".into(), Entry::File(description.toml().into_bytes()))])
}

/// A verb, how it is asked, and what it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name in [`VERBS`].
    pub verb: String,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Whether it prints on a terminal.
    pub terminal: bool,
    /// The directory.
    pub entries: Entries,
}

impl Case {
    /// One that a seed draws of a verb.
    pub fn draw(corpus: &Corpus, verb: &Verb, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let is_drawn = verb.of == "description" && dice.chance(40);
        let (mut entries, times) = match is_drawn {
            true => (drawn(&mut dice), 0..=1),
            false => (dice.one(corpus.of(verb.of)), 1..=3),
        };
        let way = dice.one(verb.ways);
        for _ in 0..dice.between(*times.start(), *times.end()) {
            spoil::spoil(&mut entries, corpus, &mut dice);
        }
        Self {
            verb: verb.name.to_owned(),
            arguments: way.iter().map(|word| (*word).to_owned()).collect(),
            terminal: dice.chance(15),
            entries,
        }
    }

    /// Its verb.
    ///
    /// # Panics
    /// If there is none of this name.
    pub fn verb(&self) -> &'static Verb {
        VERBS.iter().find(|verb| verb.name == self.verb).expect("a verb of the list")
    }

    /// Makes its directory; `outside` is where links to the outside lead.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, directory: &Path, outside: &Path) -> Result<()> {
        let outside = outside.display().to_string();
        for (path, entry) in &self.entries {
            let at = directory.join(path);
            let shown = || format!("{path:?}");
            if let Some(parent) = at.parent() {
                create_dir_all(parent).with_context(shown)?;
            }
            match entry {
                Entry::File(octets) => write(&at, octets).with_context(shown)?,
                Entry::Link(to) => {
                    symlink(to.replace("OUTSIDE", &outside), &at).with_context(shown)?;
                }
                Entry::Hole(length) => File::create(&at)?.set_len(*length).with_context(shown)?,
                Entry::Directory => create_dir_all(&at).with_context(shown)?,
                Entry::Pipe => {
                    let made = Command::new("mkfifo").arg(&at).status().context("mkfifo")?;
                    if !made.success() {
                        bail!("mkfifo {path:?} failed");
                    }
                }
            }
        }
        Ok(())
    }

    /// As a document that tests keep. What is no text is written as hexadecimal digits.
    pub fn to_json(&self) -> String {
        let one = |entry: &Entry| match entry {
            Entry::File(octets) => match std::str::from_utf8(octets) {
                Ok(text) => json!({ "text": text }),
                Err(_) => json!({ "octets": hexadecimal(octets) }),
            },
            Entry::Link(to) => json!({ "link": to }),
            Entry::Hole(length) => json!({ "hole": length }),
            Entry::Pipe => json!("pipe"),
            Entry::Directory => json!("directory"),
        };
        let entries: Map<String, Value> =
            self.entries.iter().map(|(path, entry)| (path.clone(), one(entry))).collect();
        let document = json!({
            "verb": self.verb,
            "arguments": self.arguments,
            "terminal": self.terminal,
            "entries": entries,
        });
        format!("{document:#}\n")
    }

    /// Reads back what [`Case::to_json`] wrote.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_json(text: &str) -> Result<Self> {
        let document: Value = serde_json::from_str(text)?;
        let one = |value: &Value| -> Option<Entry> {
            Some(match (value.as_str(), value.as_object()) {
                (Some("pipe"), _) => Entry::Pipe,
                (Some("directory"), _) => Entry::Directory,
                (_, Some(object)) => {
                    let (key, value) = object.iter().next()?;
                    match key.as_str() {
                        "text" => Entry::File(value.as_str()?.into()),
                        "octets" => Entry::File(octets(value.as_str()?)?),
                        "link" => Entry::Link(value.as_str()?.into()),
                        "hole" => Entry::Hole(value.as_u64()?),
                        _ => return None,
                    }
                }
                _ => return None,
            })
        };
        let read = || -> Option<Self> {
            let arguments = document["arguments"].as_array()?.iter();
            let entries = document["entries"].as_object()?.iter();
            Some(Self {
                verb: document["verb"].as_str()?.to_owned(),
                arguments: arguments
                    .map(|w| Some(w.as_str()?.to_owned()))
                    .collect::<Option<_>>()?,
                terminal: document["terminal"].as_bool()?,
                entries: entries
                    .map(|(path, value)| Some((path.clone(), one(value)?)))
                    .collect::<Option<_>>()?,
            })
        };
        read().context("this is no case")
    }

    /// The smallest case like this that this finds in so many tries and for which `fails` holds.
    pub fn reduced(&self, tries: usize, fails: impl Fn(&Self) -> bool) -> Self {
        let mut best = self.clone();
        for path in self.entries.keys() {
            let mut without = best.clone();
            without.entries.remove(path);
            if fails(&without) {
                best = without;
            }
        }
        let text = |entry: &Entry| match entry {
            Entry::File(octets) => String::from_utf8(octets.clone()).ok(),
            _ => None,
        };
        let files = best.entries.iter().filter_map(|(path, e)| Some((path.clone(), text(e)?)));
        let files: BTreeMap<_, _> = files.collect();
        let others: Entries = (best.entries.iter())
            .filter(|(path, _)| !files.contains_key(*path))
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect();
        let with = |files: &BTreeMap<String, String>| {
            let files = files
                .iter()
                .map(|(path, text)| (path.clone(), Entry::File(text.clone().into_bytes())));
            Self { entries: others.clone().into_iter().chain(files).collect(), ..best.clone() }
        };
        let small = with(&reduce(files, tries, |files| fails(&with(files))));
        if fails(&small) { small } else { best }
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn octets(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_back_as_it_was_written() {
        let entries = [
            ("a", Entry::File(b"text\x1b".to_vec())),
            ("b", Entry::File(vec![0, 255, 16])),
            ("c/d", Entry::Link("OUTSIDE/x".to_owned())),
            ("e", Entry::Hole(6_000_000_000)),
            ("f", Entry::Pipe),
            ("g", Entry::Directory),
        ];
        let case = Case {
            verb: "check".to_owned(),
            arguments: vec!["check".to_owned(), ".".to_owned()],
            terminal: true,
            entries: entries.map(|(path, entry)| (path.to_owned(), entry)).into(),
        };
        assert_eq!(Case::from_json(&case.to_json()).unwrap(), case);
        assert!(Case::from_json("{}").is_err());
    }

    #[test]
    fn a_case_becomes_small_and_keeps_its_fault() {
        let file = |text: &str| Entry::File(text.as_bytes().to_vec());
        let case = Case {
            verb: "check".to_owned(),
            arguments: Vec::new(),
            terminal: false,
            entries: [("a", file("x\nbad\ny\n")), ("b", file("z\n")), ("c", Entry::Pipe)]
                .map(|(path, entry)| (path.to_owned(), entry))
                .into(),
        };
        let has = |octets: &[u8]| octets.split(|octet| *octet == b'\n').any(|line| line == b"bad");
        let bad = |case: &Case| {
            case.entries.values().any(|entry| matches!(entry, Entry::File(octets) if has(octets)))
        };
        let small = case.reduced(100, bad);
        assert_eq!(small.entries, [("a".to_owned(), file("bad\n"))].into());
    }
}
