//! How a machine is reached: the command whose standard input and output lead to it, and what a
//! shell does there to begin.

use onbeat_description::machines::{Access, HostMachine};
use std::process::Command;

/// What the first line from a machine begins with. Before it may come what a login prints.
pub(super) const GREETING: &str = "onbeat-machine ";

/// What ssh is told if the user's options do not say otherwise: it takes what comes first.
const SSH: [&str; 11] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "LogLevel=ERROR",
];

/// The command that reaches a machine, with what a shell does there.
pub(super) fn command(machine: &HostMachine) -> Command {
    let words = words(machine);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// How a machine is called for a person: where it is.
pub(super) fn place(access: &Access) -> String {
    match access {
        Access::Local => "this machine".to_owned(),
        Access::Namespace(name) => format!("namespace {name}"),
        Access::Ssh { address, .. } => address.clone(),
    }
}

fn words(machine: &HostMachine) -> Vec<String> {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let script = script(&machine.directory);
    let sudo: &[&str] = if machine.sudo { &["sudo", "-n"] } else { &[] };
    match &machine.access {
        Access::Local => own(&[sudo, &["sh", "-c", &script]].concat()),
        Access::Namespace(name) => {
            own(&[sudo, &["ip", "netns", "exec", name, "sh", "-c", &script]].concat())
        }
        Access::Ssh { address, options } => {
            // The user's shell there may be any: it sees some words and one text in quotes.
            let quoted = format!("'{script}'");
            let there = [sudo, &["sh", "-c", &quoted]].concat().join(" ");
            let options: Vec<_> = options.iter().map(String::as_str).collect();
            own(&[&["ssh"], &options[..], &SSH, &["--", address, &there]].concat())
        }
    }
}

/// Makes a directory that is gone in the end, tells where and on which architecture, takes this
/// command as so many octets as the first line says, and starts it. Has no single quotes. Without a
/// trap for it, a shell whose reader is gone dies of a pipe, and clears up nothing.
fn script(directory: &str) -> String {
    format!(
        "umask 077; d=; trap \"rm -rf \\\"\\$d\\\"\" EXIT; trap \"exit 1\" HUP INT TERM PIPE; \
         d=$(mktemp -d {directory}/onbeat.XXXXXX) || exit 1; \
         echo \"{GREETING}$(uname -m) $d\"; read -r n || exit 1; \
         head -c \"$n\" >\"$d/onbeat\" && test \"$(wc -c <\"$d/onbeat\")\" -eq \"$n\" && \
         chmod 700 \"$d/onbeat\" && \"$d/onbeat\" part \"$d\""
    )
}

/// The architecture and the directory that a machine has told.
pub(super) fn greeted(line: &str) -> Option<(&str, &str)> {
    line.trim_end().strip_prefix(GREETING)?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::system::{NodeId, TransportKind};
    use onbeat_model::time::Span;

    fn machine(access: Access, sudo: bool) -> HostMachine {
        HostMachine {
            host: NodeId(0),
            access,
            interface: "eth0".into(),
            transport: TransportKind::Packet,
            sudo,
            directory: "/var/tmp".into(),
            runner: None,
            files: Vec::new(),
            clock_offset: Span::ZERO,
            ptp4l: None,
            tune_cores: Vec::new(),
            tune_force: false,
            tune_root: None,
        }
    }

    #[test]
    fn what_the_user_says_of_ssh_comes_first_and_the_address_is_no_option() {
        let options = vec!["-p".to_owned(), "2222".to_owned()];
        let access = Access::Ssh { address: "arm@10.0.0.7".into(), options };
        let words = words(&machine(access, true));
        assert_eq!(words[..4], ["ssh", "-p", "2222", "-T"]);
        let end = &words[words.len() - 3..];
        assert_eq!(end[..2], ["--", "arm@10.0.0.7"]);
        assert!(end[2].starts_with("sudo -n sh -c 'umask 077; "), "{}", end[2]);
        assert_eq!(end[2].matches('\'').count(), 2, "the script is one text in quotes");
    }

    #[test]
    fn the_shell_keeps_what_it_is_given_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().display().to_string();
        let script = script(&place);
        let runner = "#!/bin/sh\necho \"$1 $2\"\ncat\n";
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut input = child.stdin.take().expect("piped");
        let text = format!("{}\n{runner}what follows", runner.len());
        std::io::Write::write_all(&mut input, text.as_bytes()).expect("written");
        drop(input);
        let output = child.wait_with_output().expect("ended");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        let (first, rest) = said.split_once('\n').expect("a line");
        let (_, made) = greeted(first).expect("greeted");
        assert!(made.starts_with(&format!("{place}/onbeat.")), "{made}");
        assert_eq!(rest, format!("part {made}\nwhat follows"));
        assert_eq!(std::fs::read_dir(&place).expect("there").count(), 0);
    }
}
