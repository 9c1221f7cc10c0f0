//! Where a verb looks at a stranger's directory: without privileges, network or other processes,
//! in a file system that cannot be written but below one directory, with limits of memory, time and
//! files. What it must not touch stands beside, and what it left is looked at.

use super::Case;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most private memory of a process, and the largest file, in octets.
const MEMORY: u64 = 2 << 30;
/// The most processor time, and time, in seconds. Time passes while others have the processor.
const CPU_S: u64 = 30;
const PATIENCE_S: u64 = 120;

/// What must not be seen in any output: the text of a file that only links lead to, and what the
/// environment has.
const SECRETS: [&str; 2] = ["c4n4ry-of-a-file", "c4n4ry-of-the-environment"];

/// Kept out of the way of the command: what it says, and where its directory is.
const INSIDE: &str = "inside";

/// The first process of the jail. `$1` is the directory with everything, `$2` whether there is a
/// terminal; the command is the script `command` there.
const SCRIPT: &str = r#"
mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / || exit 99
cd "$1/inside" || exit 99
read_all() { while read -r line; do echo "$line"; done; }
read_all < /proc/net/snmp > "$1/said/before"
case "$2" in
yes) script -qec "sh '$1/command'" /dev/null > "$1/said/output" 2>&1 < /dev/null ;;
*) sh "$1/command" > "$1/said/output" 2> "$1/said/errors" < /dev/null ;;
esac
echo $? > "$1/said/code"
read_all < /proc/net/snmp > "$1/said/after"
look() {
    left=
    for process in /proc/[0-9]*; do
        read -r line 2> /dev/null < "$process/stat" || continue
        case "$line" in "1 "*|*") Z "*) ;; *) left="$left $line" ;; esac
    done
}
for again in 1 2 3 4 5 6 7 8 9 10; do
    look
    [ -z "$left" ] && break
    sleep 0.2
done
echo "$left" > "$1/said/left"
"#;

/// One thing that a verb must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of thing: one of a few words.
    pub kind: &'static str,
    /// For a person.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

/// A place where verbs are tried.
#[derive(Debug)]
pub struct Jail {
    onbeat: PathBuf,
    home: PathBuf,
    place: tempfile::TempDir,
}

impl Jail {
    /// For this command, with the headers and libraries of this source tree.
    ///
    /// # Errors
    /// If there is no place, or no jail can be made here.
    pub fn new(onbeat: &Path, home: &Path) -> Result<Self> {
        let jail =
            Self { onbeat: onbeat.to_owned(), home: home.to_owned(), place: tempfile::tempdir()? };
        let works = unshare().args(["true"]).output().context("`unshare` of util-linux")?;
        anyhow::ensure!(
            works.status.success(),
            "this machine makes no namespaces: {}",
            String::from_utf8_lossy(&works.stderr)
        );
        Ok(jail)
    }

    /// Tries a case: how it ended, and what it must not have done.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn run(&self, case: &Case) -> Result<(i32, Vec<Fault>)> {
        // Of its own: what an earlier one left does not count.
        let place = tempfile::tempdir_in(self.place.path())?;
        let root = place.path().canonicalize()?;
        let [inside, outside, said] = [INSIDE, "outside", "said"].map(|name| root.join(name));
        for directory in [&inside, &outside, &said, &root.join("state"), &root.join("tmp")] {
            std::fs::create_dir(directory)?;
        }
        std::fs::write(outside.join("secret"), format!("{}\n", SECRETS[0]))?;
        std::fs::write(outside.join("victim"), "precious\n")?;
        case.write(&inside, &outside)?;
        std::fs::write(root.join("command"), self.command(&root, case))?;
        let before = files(&root)?;
        let mut jail = unshare();
        jail.args(["sh", "-c", SCRIPT, "sh"]).arg(&root);
        jail.arg(if case.terminal { "yes" } else { "no" }).stdin(Stdio::null());
        let output = jail.output().context("`unshare` of util-linux")?;
        let read = |name: &str| std::fs::read(said.join(name)).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
        let code = text("code").trim().parse::<i32>().ok();
        let code = code.with_context(|| format!("the jail failed: {output:?}"))?;
        let [printed, errors] = ["output", "errors"].map(read);
        let mut faults = Vec::new();
        let mut find = |kind, what: String| faults.push(Fault { kind, what });
        ended(case, code, &[&printed[..], &errors].concat(), &mut find);
        shown(case, &printed, &errors, &mut find);
        if text("before") != text("after") {
            find("network", format!("{} was {}", text("after"), text("before")));
        }
        if !text("left").trim().is_empty() {
            find("process", format!("it left {}", text("left")));
        }
        changed(case, &before, &files(&root)?, &mut find);
        Ok((code, faults))
    }

    /// The shell's line that runs a case.
    fn command(&self, root: &Path, case: &Case) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let at = |name: &str| quoted(&root.join(name).display().to_string());
        let mut line = format!(
            "exec env -i PATH=/usr/bin:/bin HOME={} XDG_STATE_HOME={} TMPDIR={} ONBEAT_HOME={} \
             SECRET={} TERM=xterm timeout --signal=KILL {PATIENCE_S} prlimit --data={MEMORY} \
             --cpu={CPU_S} --fsize={MEMORY} --core=0 {}",
            at("state"),
            at("state"),
            at("tmp"),
            quoted(&self.home.display().to_string()),
            SECRETS[1],
            quoted(&self.onbeat.display().to_string()),
        );
        for argument in &case.arguments {
            line += &format!(" {}", quoted(argument));
        }
        line
    }
}

/// Namespaces of users, mounts, networks and processes; they end with this process.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["-Urmnpf", "--mount-proc", "--kill-child"]);
    command
}

/// Whether it ended as it may.
fn ended(case: &Case, code: i32, said: &[u8], find: &mut impl FnMut(&'static str, String)) {
    let said = String::from_utf8_lossy(said);
    let start: String = said.lines().take(6).collect::<Vec<_>>().join("\n");
    let start: String = start.chars().take(1_000).collect();
    let has = |words: &str| said.contains(words);
    match code {
        _ if has("panicked at") => find("panic", start.clone()),
        _ if has("has overflowed its stack") => find("stack", start.clone()),
        _ if has("memory allocation of") => find("memory", start.clone()),
        // SIGXCPU or SIGKILL at the limits.
        152 | 137 | 124 => find("time", format!("exit {code}")),
        _ if !case.verb().exits.contains(&code) => find("exit", format!("exit {code}: {start}")),
        _ => {}
    }
    if has("Read-only file system") {
        find("write", start.clone());
    }
}

/// Whether what it shows steers no terminal and tells no secret.
fn shown(case: &Case, output: &[u8], errors: &[u8], find: &mut impl FnMut(&'static str, String)) {
    for octets in [output, errors] {
        let text = String::from_utf8_lossy(octets);
        // A terminal ends lines with both.
        let text = match case.terminal {
            true => without_progress(&text.replace("\r\n", "\n")),
            false => text.into_owned(),
        };
        if let Some(at) = text.char_indices().find_map(|(at, c)| steers(&text, at, c).then_some(at))
        {
            let rest: String = text[at..].chars().take(40).collect();
            find("terminal", format!("{rest:?}"));
        }
        for secret in SECRETS.iter().filter(|secret| text.contains(**secret)) {
            find("secret", format!("it shows {secret}"));
        }
    }
}

/// Without the bars that show the progress of what takes long, each of which takes the place of the
/// one before, and what clears the last one. Of the input they have only what is before `[`, which
/// may steer as little as all else.
fn without_progress(text: &str) -> String {
    const ANEW: &str = "\r\x1b[2K";
    let bar = |part: &str| {
        let (bar, rest) = part.split_once(" left")?;
        let (message, state) = bar.rsplit_once('[')?;
        let is_bar = state.contains("] ") && state.ends_with(|c: char| c.is_alphanumeric());
        (is_bar && rest.is_empty() && !bar.contains('\n')).then(|| message.to_owned())
    };
    let mut kept = String::new();
    let mut was_bar = false;
    for (at, part) in text.split(ANEW).enumerate() {
        let message = bar(part);
        if at > 0 && message.is_none() && !was_bar {
            kept += ANEW;
        }
        was_bar = message.is_some();
        kept += message.as_deref().unwrap_or(part);
    }
    kept
}

/// Whether a character does more than to show itself; colours may.
fn steers(text: &str, at: usize, c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_colour = || {
        let rest = text[at + 1..].strip_prefix('[').unwrap_or_default();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    };
    turns || c.is_control() && !matches!(c, '\n' | '\t') && !(c == '\x1b' && is_colour())
}

/// What one sees of a file from outside.
type Seen = (u32, u64, u64, i64, i64);

/// Everything below a directory but what the jail itself writes. What is a directory may have
/// another time: something may have been there and gone.
fn files(root: &Path) -> Result<BTreeMap<String, Seen>> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in directory.read_dir()? {
            let path = entry?.path();
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            if name == "said" {
                continue;
            }
            let about = path.symlink_metadata()?;
            let (mut seen, is_directory) =
                ((about.mode(), about.ino(), about.size(), 0, 0), about.is_dir());
            if is_directory {
                seen.2 = 0;
                ahead.push(path);
            } else {
                (seen.3, seen.4) = (about.mtime(), about.mtime_nsec());
            }
            found.insert(name, seen);
        }
    }
    Ok(found)
}

/// Whether it changed nothing but what it may.
fn changed(
    case: &Case,
    before: &BTreeMap<String, Seen>,
    after: &BTreeMap<String, Seen>,
    find: &mut impl FnMut(&'static str, String),
) {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
        let below = name.strip_prefix(INSIDE).map(|name| name.trim_start_matches('/'));
        let may = below.is_some_and(|name| {
            case.verb().writes.iter().any(|start| !start.is_empty() && name.starts_with(start))
        });
        if !may {
            let how = match (before.get(name), after.get(name)) {
                (None, _) => "made",
                (_, None) => "removed",
                _ => "changed",
            };
            find("write", format!("{how} {name:?}"));
        }
    }
}

/// Of a process that is no command: so that tests see what the jail sees.
#[cfg(test)]
mod tests {
    use super::super::{Entry, VERBS};
    use super::*;

    /// What a command does that is this script.
    fn faults(script: &str) -> Vec<Fault> {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("onbeat");
        // Another process writes it: what this one has open to write, a child of another test may
        // hold for a moment, and then it cannot be executed.
        let text = format!("#!/bin/sh\n{script}");
        let install = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", install, "sh", &text]).arg(&path);
        assert!(shell.status().expect("sh runs").success(), "{}", path.display());
        let case = Case {
            verb: VERBS[0].name.to_owned(),
            arguments: vec!["it's".to_owned()],
            terminal: false,
            entries: [("s".to_owned(), Entry::Link("OUTSIDE/secret".to_owned()))].into(),
        };
        let jail = Jail::new(&path, Path::new("/")).expect("a jail");
        jail.run(&case).expect("it runs").1
    }

    #[test]
    fn a_bar_of_progress_steers_no_terminal_and_a_line_that_looks_like_one_does() {
        let bar = "3 simulations [==> ]  42 %  1s left";
        let shown = format!("{bar}\r\x1b[2K{bar}\r\x1b[2Kend\n");
        assert_eq!(without_progress(&shown), "3 simulations 3 simulations end\n");
        for other in ["a\n\r\x1b[2Kfine\n", "\r\x1b[2K", "\r\x1b[2K\r\x1b[2K"] {
            assert_eq!(without_progress(other), other);
        }
        assert!(without_progress(&shown.replace("3 s", "\x1b[31;1H s")).contains("\x1b[31;1H"));
    }

    #[test]
    fn every_canary_sings() {
        let all = [
            ("exit 0", ""),
            ("[ \"$1\" = \"it's\" ] || exit 7", ""),
            ("exit 7", "exit"),
            ("kill -9 $$", "time"),
            ("echo \"thread panicked at\"; exit 101", "panic"),
            ("cat s", "secret"),
            ("env", "secret"),
            ("printf '\\033]0;t\\007'", "terminal"),
            ("printf '\\033[1mbold\\033[0m'", ""),
            ("printf '\\342\\200\\256'", "terminal"),
            ("echo x > ../outside/new", "write"),
            ("echo x > ../outside/victim", "write"),
            ("echo x > made", "write"),
            ("rm s", "write"),
            ("echo x > /made-by-a-test || :", "write"),
            ("sleep 100 &", "process"),
            ("bash -c 'echo x > /dev/udp/127.0.0.1/9' 2>/dev/null || :", "network"),
        ];
        for (script, kind) in all {
            let kinds: Vec<_> = faults(script).into_iter().map(|fault| fault.kind).collect();
            let expected: &[&str] = if kind.is_empty() { &[] } else { &[kind] };
            assert_eq!(kinds, expected, "{script}");
        }
    }
}
