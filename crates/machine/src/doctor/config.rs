//! What the kernel was built with, as far as a check or an advice depends on it.

use super::facts::Fact;
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

/// What is looked at of a configuration; the rest is left out.
const OPTIONS: [&str; 14] = [
    "PREEMPT_RT",
    "PREEMPT_DYNAMIC",
    "PREEMPT",
    "PREEMPT_LAZY",
    "PREEMPT_VOLUNTARY",
    "PREEMPT_NONE",
    "MODULES",
    "CPU_ISOLATION",
    "VLAN_8021Q",
    "NET_SCH_MQPRIO",
    "NET_SCH_CBS",
    "NET_SCH_ETF",
    "NET_SCH_TAPRIO",
    "DEBUG_FS",
];
/// No configuration is longer.
const LENGTH_MAX: u64 = 4 << 20;

/// The kernel's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config(pub Fact<BTreeMap<String, String>>);

impl Config {
    /// From where the kernel shows it (CONFIG_IKCONFIG_PROC), else from where distributions put it.
    pub(super) fn read(machine: &Machine, release: &Fact<String>) -> Self {
        let places = release.known().map(|release| {
            [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
        });
        let text = unpacked(machine, "/proc/config.gz")
            .or_else(|| places.iter().flatten().find_map(|place| machine.read(place).ok()));
        Self(match text {
            Some(text) => Fact::Known(options(&text)),
            None => Fact::Unknown(
                "its configuration is neither in /proc/config.gz nor in /boot".to_owned(),
            ),
        })
    }

    /// Whether it was built with an option, as a module too; `None` if that is not known.
    pub(super) fn has(&self, option: &str) -> Option<bool> {
        self.0.known().map(|options| options.contains_key(option))
    }
}

/// Those of the options that are set, with their values.
fn options(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
    let wanted = lines.filter(|(name, _)| OPTIONS.contains(name));
    wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A packed file's text; `None` where it, or what unpacks it, is not there.
fn unpacked(machine: &Machine, path: &str) -> Option<String> {
    let file = machine.open(path).ok()?;
    let mut command = onbeat_run::environment::program("gzip");
    command.arg("-dc").stdin(file).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut octets = Vec::new();
    // What unpacks to more is not waited for: the pipe closes, and ends it.
    let read = child.stdout.take()?.take(LENGTH_MAX + 1).read_to_end(&mut octets);
    let status = child.wait().ok()?;
    let is_whole = status.success() && read.ok()? as u64 <= LENGTH_MAX;
    String::from_utf8(octets).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_found_where_distributions_put_it() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        let release = Fact::Known("6.1".to_owned());
        assert_eq!(Config::read(&machine, &release).has("PREEMPT"), None);
        std::fs::create_dir(directory.path().join("boot")).unwrap();
        let text = "CONFIG_PREEMPT_DYNAMIC=y\n# CONFIG_PREEMPT is not set\nCONFIG_NET_SCH_CBS=m\n";
        std::fs::write(directory.path().join("boot/config-6.1"), text).unwrap();
        let config = Config::read(&machine, &release);
        let has = |option| config.has(option);
        assert_eq!([has("PREEMPT_DYNAMIC"), has("NET_SCH_CBS")], [Some(true); 2]);
        assert_eq!([has("PREEMPT"), has("NET_SCH_ETF")], [Some(false); 2]);
    }
}
