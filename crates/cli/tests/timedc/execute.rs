//! Compiling cases and running them in virtual time.

use super::case::Case;
use crate::common::{ONE_HOST, onbeat};
use crate::trace::{self, Event, nanoseconds};
use std::fmt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Something that the compiler said of a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Diagnosed {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// `error` or `warning`.
    pub(crate) severity: String,
    /// `OB4001`, or `cc` for what the C compiler found.
    pub(crate) code: String,
}

impl fmt::Display for Diagnosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} {}", self.file, self.line, self.severity, self.code)
    }
}

/// A compiled case in a directory of its own.
pub(crate) struct Program {
    directory: TempDir,
    /// What the compiler found, in order of files and lines.
    pub(crate) diagnosed: Vec<Diagnosed>,
    /// All that it said.
    pub(crate) said: String,
}

/// What came of a run.
pub(crate) struct Ran {
    pub(crate) trace: Vec<Event>,
    output: String,
    said: String,
    status: i32,
}

/// Compiles a case as its users would: in its directory, files by their names.
pub(crate) fn compile(case: &Case, optimisation: &str) -> Result<Program, String> {
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let output = onbeat()
        .args(["cc", &format!("{}.c", case.name)])
        .args(&case.files)
        .args(&case.flags)
        .args([optimisation, "-w", "-pthread", "-o"])
        .arg(directory.path().join("program"))
        .current_dir(&case.directory)
        .env("NO_COLOR", "1")
        .output()
        .map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let diagnosed = diagnosed(&said);
    let program = Program { directory, diagnosed, said };
    let failed = program.diagnosed.iter().any(|d| d.severity == "error");
    if output.status.success() == failed || program.is_there() == failed {
        return Err(format!("{} although it said\n{}", output.status, program.said));
    }
    Ok(program)
}

/// Finds `error[OB4001]: …` with the ` --> file:line:column` below it, and the C compiler's
/// `file:line:column: error: …`.
fn diagnosed(said: &str) -> Vec<Diagnosed> {
    let mut found = Vec::new();
    let mut coded = None;
    for line in said.lines() {
        let of = |place: &str, severity: &str, code: &str| {
            let mut parts = place.trim().rsplitn(3, ':').collect::<Vec<_>>();
            parts.reverse();
            let &[file, line, _column] = &parts[..] else { return None };
            let file = Path::new(file).file_name()?.to_string_lossy().into_owned();
            let (severity, code) = (severity.to_owned(), code.to_owned());
            Some(Diagnosed { file, line: line.parse().ok()?, severity, code })
        };
        if let Some((severity @ ("error" | "warning"), rest)) = line.split_once('[') {
            coded = rest.split_once(']').map(|(code, _)| (severity, code));
        } else if let Some((_, place)) = line.split_once("--> ") {
            found.extend(coded.take().and_then(|(severity, code)| of(place, severity, code)));
        } else if let Some((place, _)) = line.split_once(": error: ") {
            found.extend(of(place, "error", "cc"));
        }
    }
    found.sort();
    found
}

impl Program {
    /// Whether an executable was made.
    pub(crate) fn is_there(&self) -> bool {
        self.directory.path().join("program").is_file()
    }

    /// Itself, without a run: in real time.
    pub(crate) fn alone(&self) -> Command {
        Command::new(self.directory.path().join("program"))
    }

    /// Runs it in virtual time. A shell keeps what it prints and its status.
    pub(crate) fn run(&self, case: &Case) -> Result<Ran, String> {
        let path = |name: &str| self.directory.path().join(name);
        let script =
            format!("./program {} >output 2>said; echo $? >status", case.arguments.join(" "));
        let mut system = ONE_HOST.to_owned();
        if !case.cores.is_empty() {
            let host = "name = \"host\"\n";
            system = system.replace(host, &format!("{host}cores = {}\n", case.cores));
        }
        let description = format!(
            "{system}[[program]]\nname = \"program\"\nhost = \"host\"\n\
             command = [\"/bin/sh\", \"-c\", {script:?}]\n"
        );
        let write = |name: &str, text: &str| std::fs::write(path(name), text);
        write("system.toml", &description).map_err(|e| e.to_string())?;
        let mut command: Command = onbeat();
        command.args(["run", "system.toml", "--duration", &case.duration]);
        command.current_dir(self.directory.path()).env("ONBEAT_TRACE", path("trace.csv"));
        if case.best {
            command.env("ONBEAT_EXECUTION", "best");
        }
        if !case.times.is_empty() {
            let text = format!("SRC,BCET,WCET,JITTER,ABORT,DST\n{}\n", case.times.join("\n"));
            write("times.csv", &text).map_err(|e| e.to_string())?;
            command.env("ONBEAT_EXECUTION_TIMES", path("times.csv"));
        }
        let _ = std::fs::remove_file(path("trace.csv"));
        let run = command.output().map_err(|e| e.to_string())?;
        let said_by_run = String::from_utf8_lossy(&run.stderr).into_owned();
        let read = |name: &str| {
            let text = std::fs::read_to_string(path(name));
            text.map_err(|e| format!("{name}: {e}\n{said_by_run}"))
        };
        let (output, said, status) = (read("output")?, read("said")?, read("status")?);
        let status = status.trim().parse().map_err(|_| format!("ended by {status}"))?;
        let text = read("trace.csv").map_err(|e| format!("{e}\n{said}"))?;
        let end = nanoseconds(&case.duration).ok_or("a duration has a unit")?;
        let mut trace = trace::read(&text)?;
        // How tasks end when the run is over is not a matter of instants.
        trace.retain(|event| event.time_ns < end);
        match run.status.success() {
            true => Ok(Ran { trace, output, said, status }),
            false => Err(format!("the run: {}\n{said_by_run}\n{said}", run.status)),
        }
    }
}

impl Ran {
    /// Compares all that a case states.
    pub(crate) fn compare(&self, case: &Case) -> Result<(), String> {
        let mut wrong = Vec::new();
        if let Err(difference) = trace::equal(&case.trace, &self.trace) {
            wrong.push(difference);
        }
        let output: Vec<_> = self.output.lines().collect();
        if output != case.output {
            wrong.push(format!("output: expected {:?}\n            came {output:?}", case.output));
        }
        if self.status != case.status {
            wrong.push(format!("status: expected {}, came {}", case.status, self.status));
        }
        for part in case.says.iter().filter(|part| !self.said.contains(part.as_str())) {
            wrong.push(format!("standard error lacks `{part}`"));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!("{}{}", wrong.join("\n"), indented(&self.said))),
        }
    }
}

fn indented(said: &str) -> String {
    said.lines().map(|line| format!("\n  | {line}")).collect()
}
