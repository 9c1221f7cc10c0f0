//! What the machine says of its clocks. Changes nothing.

use super::judgement::Facts;
use crate::link::{Interface, find_ptp4l, hardware_apart, survey_ptp4l, tai_offset};
use crate::machine::Machine;
use onbeat_model::time::Span;
use std::io;
use std::path::Path;

/// gPTP's transportSpecific.
const GPTP: u8 = 1;
/// Programs that steer the machine's clock, as the kernel names processes: 15 octets at most.
const RIVALS: [&str; 4] = ["chronyd", "ntpd", "openntpd", "systemd-timesyn"];

/// Why clocks are left alone: it is an emulated network, or may be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Emulated {
    /// Not that of the machine's first process.
    #[error("this is a network namespace of its own")]
    Namespace,
    /// Nothing but a program is behind it.
    #[error("interface `{0}` is virtual")]
    Virtual(String),
    /// It may be either.
    #[error("whether this is the machine's own network is not known without root")]
    NotKnown,
}

/// Whether clocks are to be left alone here; `None` where they may be steered.
pub fn emulation(machine: &Machine, interfaces: &[String]) -> Option<Emulated> {
    let namespace = |path: &str| std::fs::read_link(machine.path(path));
    match (namespace("/proc/thread-self/ns/net"), namespace("/proc/1/ns/net")) {
        (Ok(own), Ok(first)) if own == first => {}
        (Ok(_), Ok(_)) => return Some(Emulated::Namespace),
        _ => return Some(Emulated::NotKnown),
    }
    let physical = |name: &String| machine.has(&format!("/sys/class/net/{name}/device"));
    let found = interfaces.iter().find(|name| !physical(name))?;
    Some(Emulated::Virtual(found.clone()))
}

/// Finds out all that [`super::judge`] needs, in the calling thread's network namespace. Takes up
/// to some seconds where ptp4l does not answer.
pub fn gather(
    machine: &Machine,
    interfaces: &[String],
    socket: &Path,
    domain: u8,
    steered: bool,
) -> io::Result<Facts> {
    let survey = survey_ptp4l(socket, domain, GPTP).ok();
    let elsewhere = match survey {
        None => find_ptp4l(socket).ok().flatten(),
        Some(_) => None,
    };
    let tai_offset = tai_offset()?;
    let links = interfaces.iter().map(|name| (name.clone(), has_link(name))).collect();
    let apart = interfaces.first().and_then(|name| hardware_apart(name));
    let rivals = if steered { rivals(machine) } else { Vec::new() };
    Ok(Facts {
        survey,
        elsewhere,
        domain,
        links,
        steered,
        tai_offset,
        rivals,
        apart: apart.map(|ahead: Span| ahead - tai_offset),
    })
}

fn has_link(name: &str) -> bool {
    Interface::named(name).is_ok_and(|interface| interface.up && interface.running)
}

/// Programs that steer the machine's clock, with their numbers.
fn rivals(machine: &Machine) -> Vec<String> {
    let names = machine.names("/proc");
    let processes = names.iter().filter(|name| name.bytes().all(|c| c.is_ascii_digit()));
    let found = processes.filter_map(|number| {
        let name = machine.read(&format!("/proc/{number}/comm")).ok()?;
        RIVALS.contains(&name.as_str()).then(|| format!("{name} ({number})"))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn made_up(namespace: &str) -> (tempfile::TempDir, Machine) {
        let directory = tempfile::tempdir().expect("a directory");
        let machine = Machine::below(directory.path());
        for path in ["/proc/thread-self/ns", "/proc/1/ns", "/proc/42", "/proc/43"] {
            std::fs::create_dir_all(machine.path(path)).expect("a directory");
        }
        symlink(namespace, machine.path("/proc/thread-self/ns/net")).expect("a link");
        symlink("net:[1]", machine.path("/proc/1/ns/net")).expect("a link");
        std::fs::write(machine.path("/proc/42/comm"), "systemd-timesyn\n").expect("a file");
        std::fs::write(machine.path("/proc/43/comm"), "ntpd-lookalike\n").expect("a file");
        std::fs::create_dir_all(machine.path("/sys/class/net/veth0")).expect("a directory");
        std::fs::create_dir_all(machine.path("/sys/class/net/eth0/device")).expect("a directory");
        (directory, machine)
    }

    #[test]
    fn clocks_are_steered_on_hardware_in_the_machines_own_network_only() {
        let eth0 = ["eth0".to_owned()];
        let (_kept, own) = made_up("net:[1]");
        assert_eq!(emulation(&own, &eth0), None);
        let both = ["eth0".to_owned(), "veth0".to_owned()];
        assert_eq!(emulation(&own, &both), Some(Emulated::Virtual("veth0".to_owned())));
        let (_kept, other) = made_up("net:[2]");
        assert_eq!(emulation(&other, &eth0), Some(Emulated::Namespace));
        let nothing = tempfile::tempdir().expect("a directory");
        let nothing = Machine::below(nothing.path());
        assert_eq!(emulation(&nothing, &eth0), Some(Emulated::NotKnown));
    }

    #[test]
    fn a_competing_time_daemon_is_found_by_its_name() {
        let (_kept, machine) = made_up("net:[1]");
        assert_eq!(rivals(&machine), ["systemd-timesyn (42)"]);
    }
}
