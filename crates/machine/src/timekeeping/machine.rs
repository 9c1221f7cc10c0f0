//! What the machine says of its clocks. Changes nothing.

use super::evaluation::Facts;
use onbeat::interface::{
    Interface, PtpSurvey, SyncAge, SyncWatch, ask_sync, find_ptp4l, hardware_apart, overhear_ptp,
    survey_ptp4l, tai_offset,
};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use std::io;
use std::path::Path;

/// gPTP's transportSpecific.
const GPTP: u8 = 1;
/// How long a neighbour is listened to that measures and announces once a second.
const EAR: Span = Span::from_ms(1_200);
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
    #[error(
        "whether this is the machine's own network is not known: /proc/1/ns/net is not readable"
    )]
    NotKnown,
}

/// Whether clocks are to be left alone here; `None` where they may be steered.
pub fn emulation(machine: &Machine, interfaces: &[String]) -> Option<Emulated> {
    let namespace = |path: &str| std::fs::read_link(machine.path(path)).ok();
    let own = namespace("/proc/thread-self/ns/net");
    let same = own.zip(namespace("/proc/1/ns/net")).map(|(own, first)| own == first);
    if same == Some(false) {
        return Some(Emulated::Namespace);
    }
    let physical = |name: &String| machine.has(&format!("/sys/class/net/{name}/device"));
    if let Some(found) = interfaces.iter().find(|name| !physical(name)) {
        return Some(Emulated::Virtual(found.clone()));
    }
    same.is_none().then_some(Emulated::NotKnown)
}

/// Finds out all that [`super::evaluate`] needs, in the calling thread's network namespace; `watch`
/// knows of the Syncs before. Takes up to some seconds where ptp4l does not answer, and some Sync
/// intervals where it is not known whether these still come.
pub fn gather(
    machine: &Machine,
    interfaces: &[String],
    socket: &Path,
    domain: u8,
    steered: bool,
    watch: &mut SyncWatch,
) -> io::Result<Facts> {
    let mut survey = survey_ptp4l(socket, domain, GPTP).ok();
    let sync = age(socket, &mut survey, steered, watch);
    let measured = watch.is_measured();
    let elsewhere = match survey {
        None => find_ptp4l(socket).ok().flatten(),
        Some(_) => None,
    };
    let lonely = survey.as_ref().is_some_and(|survey| !is_heard(survey));
    let heard = match interfaces.first() {
        Some(name) if lonely => overhear(name, domain),
        _ => None,
    };
    let tai_offset = tai_offset()?;
    let links = interfaces.iter().map(|name| (name.clone(), has_link(name))).collect();
    let apart = interfaces.first().and_then(|name| hardware_apart(name));
    let rivals = if steered { rivals(machine) } else { Vec::new() };
    Ok(Facts {
        survey,
        sync,
        measured,
        elsewhere,
        heard,
        domain,
        links,
        steered,
        tai_offset,
        rivals,
        apart: apart.map(|ahead: Span| ahead - tai_offset),
    })
}

/// How old the last Sync is that was measured; what ptp4l says meanwhile is put into the survey.
fn age(
    socket: &Path,
    survey: &mut Option<PtpSurvey>,
    steered: bool,
    watch: &mut SyncWatch,
) -> SyncAge {
    if !survey.as_ref().is_some_and(|survey| survey.has_grandmaster) {
        watch.forget();
        return SyncAge::Never;
    }
    let mut first = true;
    // A clock that is steered is in sync as a slave only: it has measured.
    watch.until_known(!steered, || {
        if !std::mem::take(&mut first) {
            *survey = survey.as_ref().and_then(|survey| ask_sync(socket, survey));
        }
        survey.as_ref().map(|survey| survey.sync)
    })
}

/// Looks again at what changes with each Sync; all else is as it was found. Quick: one question.
pub(super) fn glance(facts: &Facts, socket: &Path, watch: &mut SyncWatch) -> Facts {
    let mut survey = facts.survey.as_ref().and_then(|survey| ask_sync(socket, survey));
    let sync = age(socket, &mut survey, facts.steered, watch);
    Facts { survey, sync, measured: watch.is_measured(), ..facts.clone() }
}

/// Whether a neighbour or a master has been heard in this domain and profile.
fn is_heard(survey: &PtpSurvey) -> bool {
    let neighbour = |came: (u64, u64)| came.0 > 0 || came.1 > 0;
    survey.has_grandmaster || survey.ports.iter().any(|port| port.came.is_none_or(neighbour))
}

/// The profile and domain of a neighbour that has others; nothing where frames may not be looked
/// at.
fn overhear(name: &str, domain: u8) -> Option<(u8, u8)> {
    let interface = Interface::named(name).ok()?;
    overhear_ptp(&interface, EAR, |message| foreign(message, domain)).ok().flatten()
}

/// The profile and domain of a message, if they are others (IEEE 1588-2008 13.3).
fn foreign(message: &[u8], domain: u8) -> Option<(u8, u8)> {
    let (first, theirs) = (*message.first()?, *message.get(4)?);
    let profile = first >> 4;
    (profile != GPTP || theirs != domain).then_some((profile, theirs))
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
        assert_eq!(emulation(&nothing, &[]), Some(Emulated::NotKnown));
    }

    #[test]
    fn a_message_of_another_domain_or_profile_is_foreign() {
        let message = |first, domain| [first, 2, 0, 54, domain, 0];
        assert_eq!(foreign(&message(0x12, 3), 3), None);
        assert_eq!(foreign(&message(0x12, 0), 3), Some((1, 0)));
        assert_eq!(foreign(&message(0x0b, 3), 3), Some((0, 3)));
        assert_eq!(foreign(&[0x1b, 2], 0), None, "cut off");
    }

    #[test]
    fn a_competing_time_daemon_is_found_by_its_name() {
        let (_kept, machine) = made_up("net:[1]");
        assert_eq!(rivals(&machine), ["systemd-timesyn (42)"]);
    }
}
