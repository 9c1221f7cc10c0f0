//! The verb `new`: a small system to begin with, in a directory of its own.

use crate::cc::places::Places;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::output::{Kind, Output};
use crate::terminal;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use onbeat_model::limits::NAME_OCTETS;
use onbeat_model::name::is_name;
use onbeat_run::process::Reaper;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a system is made from. Each is a directory of `templates`, and runs there as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// A speed controller at 1 kHz: sensor, controller, actuator over one bridge, with a deadline
    ControlLoop,
    /// A process bus: sampled values at 4 kHz, protection relays, trips to a breaker within 3 ms
    Substation,
    /// A PLC and remote I/O on a ring of bridges, with redundant streams (802.1CB) and a cut cable
    Ring,
    /// A mobile robot in Timed C: tasks with timing points that share a processor
    TimedC,
}

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// Directory to create; its last part is the system's name
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub(crate) name: Option<PathBuf>,
    /// Template of the system
    #[arg(long, required_unless_present = "list")]
    pub(crate) template: Option<Template>,
    /// Lists the templates
    #[arg(long, conflicts_with_all = ["name", "template"])]
    pub(crate) list: bool,
}

/// The files of a template, by their names.
type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($template:literal, $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../templates/", $template, "/", $name)))),+]
    };
}

#[rustfmt::skip] // a template a line
const CONTROL_LOOP: Files = files!("control-loop", ".gitignore", "Makefile", "README.md",
    "actuator.c", "controller.c", "loop.h", "sensor.c", "system.toml");
#[rustfmt::skip]
const SUBSTATION: Files = files!("substation", ".gitignore", "Makefile", "README.md",
    "breaker.c", "merging-unit.c", "relay.c", "substation.h", "system.toml");
#[rustfmt::skip]
const RING: Files = files!("ring", ".gitignore", "Makefile", "README.md",
    "image.h", "io.c", "plc.c", "system.toml");
#[rustfmt::skip]
const TIMED_C: Files = files!("timed-c", ".gitignore", "Makefile", "README.md",
    "channels.h", "lidar.c", "motor.c", "robot.c", "system.toml");

/// What `#:schema` names in a template, as seen from there.
const SCHEMA: &str = "#:schema ../../../../schema/system.schema.json\n";
/// Where a template's Makefile finds Onbeat.
const HOME: &str = "\nONBEAT_HOME ?= ../../../..\n";

impl Template {
    /// Its name in the tree and on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::ControlLoop => "control-loop",
            Self::Substation => "substation",
            Self::Ring => "ring",
            Self::TimedC => "timed-c",
        }
    }

    const fn files(self) -> Files {
        match self {
            Self::ControlLoop => CONTROL_LOOP,
            Self::Substation => SUBSTATION,
            Self::Ring => RING,
            Self::TimedC => TIMED_C,
        }
    }

    /// What is different in a system of another name and place: pairs of a text, which a file of
    /// that name has once, and what takes its place.
    fn changes(self, name: &str, onbeat: &Onbeat) -> [(&'static str, String, String); 4] {
        let own = self.name();
        [
            ("system.toml", SCHEMA.into(), format!("#:schema {}\n", onbeat.schema)),
            ("system.toml", format!("\nname = \"{own}\"\n"), format!("\nname = \"{name}\"\n")),
            ("Makefile", HOME.into(), format!("\nONBEAT_HOME ?= {}\n", onbeat.home)),
            ("README.md", format!("# {own}\n"), format!("# {name}\n")),
        ]
    }
}

/// Where Onbeat is, for what a Makefile and an editor read.
struct Onbeat {
    /// The source tree, or the prefix.
    home: String,
    /// The JSON Schema of system.toml.
    schema: String,
}

impl Onbeat {
    /// Where this command is from: its source tree, or the prefix that it was installed to.
    fn find() -> anyhow::Result<Self> {
        let places = Places::find()?;
        let home = places.home().canonicalize();
        let home = home.with_context(|| places.home().display().to_string())?;
        let schema = home.join(places.schema());
        let text = |path: &Path| -> anyhow::Result<String> {
            let is_plain = |c: char| c.is_alphanumeric() || "/._+-@,~".contains(c);
            match path.to_str() {
                Some(text) if text.chars().all(is_plain) => Ok(text.to_owned()),
                _ => bail!(
                    "Onbeat is in {}, which a Makefile cannot name: use a path of letters, digits \
                     and ._+-@,~",
                    home.display()
                ),
            }
        };
        Ok(Self { home: text(&home)?, schema: text(&schema)? })
    }
}

/// Makes a directory with a system of a template.
pub(crate) fn new(arguments: &NewArguments) -> anyhow::Result<Exit> {
    let (Some(target), Some(template)) = (&arguments.name, arguments.template) else {
        terminal::print(list());
        return Ok(Exit::Fine);
    };
    let name = target.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_name(name) {
        let why = format!(
            "`{}` does not end in a system's name: 1 to {NAME_OCTETS} letters, digits, `-` and `_`",
            target.display()
        );
        bail!(WrongArgument(why));
    }
    let onbeat = Onbeat::find()?;
    let changes = template.changes(name, &onbeat);
    let mut reaper = Reaper::start(Command::new(std::env::current_exe()?).arg("keeper"))?;
    let output = Output::begin(target, Kind::System, &mut reaper)?;
    for (file, text) in template.files() {
        output.write(file, changed(file, text, &changes))?;
    }
    output.finish()?;
    terminal::print(format_args!(
        "{0}: a system of the template {1}. Next:\n  cd {0} && make && onbeat run .",
        target.display(),
        template.name(),
    ));
    Ok(Exit::Fine)
}

/// The text of a template's file with its changes.
fn changed(file: &str, text: &str, changes: &[(&str, String, String)]) -> String {
    let of_file = changes.iter().filter(|(of, _, _)| *of == file);
    of_file.fold(text.to_owned(), |text, (_, from, to)| text.replacen(from, to, 1))
}

/// The templates, each with what it is.
fn list() -> String {
    let line = |template: &Template| {
        let value = template.to_possible_value().expect("none is hidden");
        format!("{:14}{}", template.name(), value.get_help().expect("each has one"))
    };
    Template::value_variants().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn directory(template: Template) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("templates").join(template.name())
    }

    #[test]
    fn every_file_of_a_template_is_in_the_command() {
        for template in Template::value_variants() {
            let value = template.to_possible_value().expect("not hidden");
            assert_eq!(value.get_name(), template.name());
            // What a run leaves there is none of it.
            let made = ["build", "out", "out-build", "out-simulation"];
            let entries = directory(*template).read_dir().expect("a directory").flatten();
            let there: BTreeSet<String> = entries
                .map(|entry| entry.file_name().into_string().expect("UTF-8"))
                .filter(|name| !made.contains(&name.as_str()))
                .collect();
            let known = template.files().iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(there, known);
        }
        let names: Vec<_> = Template::value_variants().iter().map(|t| t.name().into()).collect();
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates").read_dir();
        let mut all: Vec<_> = all.expect("there").flatten().map(|e| e.file_name()).collect();
        all.sort();
        let mut names: Vec<std::ffi::OsString> = names;
        names.sort();
        assert_eq!(all, names);
    }

    #[test]
    fn each_change_is_of_a_text_that_the_template_has_once() {
        let onbeat = Onbeat { home: "/home/o".into(), schema: "/home/o/s.json".into() };
        for template in Template::value_variants() {
            let changes = template.changes("mine", &onbeat);
            for (file, from, to) in &changes {
                let (_, text) =
                    template.files().iter().find(|(name, _)| name == file).expect("there");
                assert_eq!(
                    text.matches(from.as_str()).count(),
                    1,
                    "{file} of {template:?}: {from}"
                );
                assert!(changed(file, text, &changes).contains(to.as_str()));
            }
            for (file, text) in template.files() {
                assert!(!changed(file, text, &changes).contains("../.."), "{file}");
            }
        }
    }
}
