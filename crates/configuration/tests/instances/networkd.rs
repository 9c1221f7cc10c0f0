//! The files of systemd-networkd, against the lines for iproute2, and against networkd itself.

use crate::linux::{all_systems, lines};
use crate::systems;
use onbeat_configuration::{Deployment, Linux, is_linux};
use onbeat_model::system::{NodeId, NodeKind};
use onbeat_testkit::{Need, not_run};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NETWORKD: &str = "/lib/systemd/systemd-networkd";
/// Namespaces whose processes all end with the first, and that with its parent.
const UNSHARE: [&str; 6] = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn told(text: &str, name: &str) -> Linux {
    let (system, plan) = systems::described(text);
    let at = system.nodes.iter().position(|node| node.name == name).expect("a node");
    Deployment::new(&system, &plan).linux(NodeId(at as u32))
}

/// A bridge of a ring.
fn told_of_ring() -> Linux {
    let (system, plan) = systems::described(&crate::ring(1));
    let mut nodes = system.nodes.iter();
    let at = nodes.position(|node| matches!(node.kind, NodeKind::Bridge(_))).expect("a bridge");
    Deployment::new(&system, &plan).linux(NodeId(at as u32))
}

/// The text of a file of a node behind its first lines.
fn file<'a>(told: &'a Linux, node: &str, name: &str) -> &'a str {
    let file = told.networkd.files.iter().find(|(own, _)| own == name);
    let (_, text) = file.unwrap_or_else(|| panic!("{name} in {:?}", told.networkd));
    let header = format!("# Onbeat's plan for `{node}`: systemd-networkd\n\n");
    text.strip_prefix(&header).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_host_has_a_device_for_each_vlan() {
    let told = told(systems::SCHEDULED, "arm");
    assert_eq!(told.networkd.files.len(), 3, "{:?}", told.networkd);
    let port = "[Match]\nName=p1\n\n[Link]\nRequiredForOnline=no\n\n\
                [Network]\nLinkLocalAddressing=no\nVLAN=p1.2\n";
    assert_eq!(file(&told, "arm", "10-onbeat-p1.network"), port);
    let device = "[NetDev]\nName=p1.2\nKind=vlan\n\n[VLAN]\nId=2\nEgressQOSMaps=2-2 3-3 5-5\n";
    assert_eq!(file(&told, "arm", "10-onbeat-p1.2.netdev"), device);
    let up = "[Match]\nName=p1.2\n\n[Link]\nRequiredForOnline=no\n\n\
              [Network]\nLinkLocalAddressing=no\n";
    assert_eq!(file(&told, "arm", "10-onbeat-p1.2.network"), up);
    let queues = "arm: systemd-networkd cannot be told queues: apply `arm.tc` at each boot";
    assert_eq!(told.networkd.unsaid, [queues]);
}

#[test]
fn a_bridge_has_its_ports_and_their_vlans() {
    let told = told(systems::SCHEDULED, "second");
    assert_eq!(told.networkd.files.len(), 5, "{:?}", told.networkd);
    let device = "[NetDev]\nName=br0\nKind=bridge\n\n\
                  [Bridge]\nVLANFiltering=yes\nMulticastSnooping=yes\n";
    assert_eq!(file(&told, "second", "10-onbeat-br0.netdev"), device);
    let up = |name: &str| {
        format!(
            "[Match]\nName={name}\n\n[Link]\nRequiredForOnline=no\n\n\
             [Network]\nLinkLocalAddressing=no\n"
        )
    };
    assert_eq!(file(&told, "second", "10-onbeat-br0.network"), up("br0"));
    let port = up("arm") + "Bridge=br0\n\n[BridgeVLAN]\nVLAN=2\n";
    assert_eq!(file(&told, "second", "10-onbeat-arm.network"), port);
    let closed = told_of_ring();
    let port = "Bridge=br0\n\n[Bridge]\nUnicastFlood=no\nMulticastFlood=no\n\n[BridgeVLAN]\n";
    let is_closed = |(_, text): &(String, String)| text.contains(port);
    assert!(closed.networkd.files.iter().any(is_closed), "{:#?}", closed.networkd);
    let rest = "second: systemd-networkd cannot be told multicast entries, queues: apply \
                `second.bridge` and `second.tc` at each boot";
    assert_eq!(told.networkd.unsaid, [rest]);
}

#[test]
fn interfaces_whose_names_are_numbers_are_said() {
    for (name, is_taken) in [("0x1f", false), ("12", false), ("all", false), ("0z", true)] {
        let text = systems::SCHEDULED.replace("second.spare", &format!("second.{name}"));
        let told = told(&text, "second");
        let of_port = format!("10-onbeat-{name}.network");
        let has = told.networkd.files.iter().any(|(own, _)| *own == of_port);
        let says = format!("second.{name}: systemd-networkd takes no interface so named");
        assert_eq!((has, told.networkd.unsaid.contains(&says)), (is_taken, !is_taken), "{name}");
    }
}

/// What the files say, as words of the lines: in no order.
fn facts(told: &Linux) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for (name, text) in &told.networkd.files {
        assert!(is_linux(text) && name.starts_with("10-onbeat-"), "{name}");
        let (mut section, mut of, mut keys) = ("", "", Vec::new());
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            let (key, value) = line.split_once('=').expect("a key and its value");
            if let ("[Match]" | "[NetDev]", "Name") = (section, key) {
                of = value;
            }
            keys.push((section, key, value));
        }
        let (device, kind) = name["10-onbeat-".len()..].rsplit_once('.').expect("a kind");
        assert_eq!(device, of, "{name}");
        if kind == "network" {
            facts.insert(format!("up {of}"));
        }
        for (section, key, value) in keys {
            let fact = match (section, key) {
                ("[Match]" | "[NetDev]", "Name") => continue,
                ("[Link]", "RequiredForOnline") | ("[Network]", "LinkLocalAddressing") => {
                    assert_eq!(value, "no");
                    continue;
                }
                _ => format!("{of} {section}{key} {value}"),
            };
            assert!(facts.insert(fact.clone()), "{fact} twice");
        }
    }
    facts
}

/// What a line says in the same words; words of what is said to be missing for what it does not.
fn line_facts(line: &[String]) -> (Vec<String>, Option<&'static str>) {
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    match words[..] {
        ["link", "add", "link", on, "name", name, "type", "vlan", "id", id, ref map @ ..] => {
            assert_eq!(map[0], "egress-qos-map");
            let map: Vec<String> = map[1..].iter().map(|pair| pair.replace(':', "-")).collect();
            let device = [("NetDev", "Kind", "vlan"), ("VLAN", "Id", id)];
            let device = device.map(|(section, key, to)| format!("{name} [{section}]{key} {to}"));
            let mut all = device.to_vec();
            all.push(format!("{name} [VLAN]EgressQOSMaps {}", map.join(" ")));
            // The interface below is up, too: it has a file.
            all.extend([format!("{on} [Network]VLAN {name}"), format!("up {on}")]);
            (all, None)
        }
        ["link", "add", "name", name, "type", "bridge", "vlan_filtering", "1", ref rest @ ..] => {
            assert_eq!(rest, ["mcast_snooping", "1"]);
            let all = ["[NetDev]Kind bridge", "[Bridge]VLANFiltering yes"];
            let all = all.into_iter().chain(["[Bridge]MulticastSnooping yes"]);
            (all.map(|fact| format!("{name} {fact}")).collect(), None)
        }
        ["link", "set", "dev", port, "master", to] => {
            (vec![format!("{port} [Network]Bridge {to}")], None)
        }
        ["link", "set", "dev", name, "up"] => (vec![format!("up {name}")], None),
        ["link", "set", "dev", port, "flood", "off", "mcast_flood", "off", ref rest @ ..] => {
            assert_eq!(rest, ["bcast_flood", "off"]);
            let all = ["UnicastFlood", "MulticastFlood"];
            (all.map(|key| format!("{port} [Bridge]{key} no")).to_vec(), Some("`bcast_flood`"))
        }
        ["vlan", "add", "dev", port, "vid", vid] => {
            (vec![format!("{port} [BridgeVLAN]VLAN {vid}")], None)
        }
        ["mdb", ..] => (Vec::new(), Some("multicast entries")),
        ["fdb", ..] => (Vec::new(), Some("static entries")),
        _ => panic!("{line:?}"),
    }
}

#[test]
fn each_line_is_in_the_files_or_said_to_be_missing() {
    const MISSING: [&str; 3] = ["multicast entries", "static entries", "`bcast_flood`"];
    let (mut same, mut missing) = (0, BTreeSet::new());
    for (system, plan) in all_systems() {
        for (at, node) in system.nodes.iter().enumerate() {
            let told = Deployment::new(&system, &plan).linux(NodeId(at as u32));
            let (mut of_lines, mut lacks) = (BTreeSet::new(), BTreeSet::new());
            for line in lines(&told.files[0]).iter().chain(&lines(&told.files[1])) {
                let (facts, lack) = line_facts(line);
                of_lines.extend(facts);
                lacks.extend(lack);
            }
            assert_eq!(facts(&told), of_lines, "{}", node.name);
            same += of_lines.len();
            let said = told.networkd.unsaid.join("\n");
            assert!(told.networkd.unsaid.len() < 2, "one line: {said}");
            for what in MISSING {
                assert_eq!(said.contains(what), lacks.contains(what), "{}: {said}", node.name);
            }
            let files = [("bridge", !lacks.is_empty()), ("tc", told.files[2].is_some())];
            for (tool, is_needed) in files {
                let name = format!("`{}.{tool}`", node.name);
                assert_eq!(said.contains(&name), is_needed, "{}: {said}", node.name);
            }
            missing.extend(lacks);
        }
    }
    assert!(same > 1_000 && missing.len() == MISSING.len(), "{same} {missing:?}");
}

/// Ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What networkd says in namespaces of its own, in which a directory is that of its files, and the
/// ports are; until it has said all of `until`.
fn networkd_says(files: &Path, ports: &[&str], until: &[String]) -> String {
    // Without a udev it waits for none where `/sys` is read-only.
    let mut script = "set -e\nmount -t tmpfs none /run\n\
        mkdir -p /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases \
        /run/systemd/netif/lldp\nchown -R systemd-network /run/systemd/netif\n\
        cp \"$1\"/* /run/systemd/network/\nmount -t sysfs -o ro none /sys\n"
        .to_owned();
    for (at, port) in ports.iter().enumerate() {
        script += &format!("ip link add {port} type veth peer name far{at}\n");
    }
    // Far longer than anything takes: what comes at all comes before.
    script += &format!("timeout 60 {NETWORKD}\n");
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", &script, "sh"]).arg(files);
    command.env("SYSTEMD_LOG_LEVEL", "debug").env("SYSTEMD_LOG_TARGET", "console");
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("unshare"));
    let (mut said, mut left) = (String::new(), until.to_vec());
    for line in BufReader::new(running.0.stderr.take().expect("piped")).lines() {
        let line = line.expect("UTF-8");
        left.retain(|expected| !line.contains(expected));
        said += &(line + "\n");
        if left.is_empty() {
            return said;
        }
    }
    panic!("{left:#?} not in {said}");
}

fn has_networkd() -> bool {
    if !Path::new(NETWORKD).exists() {
        not_run(Need::Tools, "systemd-networkd is missing (systemd)");
        return false;
    }
    let unshared = Command::new("unshare").args(UNSHARE).args(["ip", "link"]).output();
    let is_able = unshared.is_ok_and(|unshared| unshared.status.success());
    if !is_able {
        not_run(Need::Namespaces, "unshare (util-linux) makes no namespaces here");
    }
    is_able
}

#[test]
fn networkd_reads_every_file() {
    if !has_networkd() {
        return;
    }
    let mut read = 0;
    let systems = [systems::described(systems::SCHEDULED), systems::described(&crate::ring(1))];
    for (system, plan) in systems {
        for (at, node) in system.nodes.iter().enumerate() {
            let told = Deployment::new(&system, &plan).linux(NodeId(at as u32));
            let ports = node.ports.iter().map(|port| &*system.port(*port).name);
            let ports: Vec<&str> = ports.collect();
            let directory = tempfile::tempdir().expect("a directory");
            let mut until = Vec::new();
            for (name, text) in &told.networkd.files {
                std::fs::write(directory.path().join(name), text).expect("written");
                let (device, kind) = name["10-onbeat-".len()..].rsplit_once('.').expect("a kind");
                let made = matches!(node.kind, NodeKind::Bridge(_)) && device == "br0";
                if kind == "netdev" {
                    until.push(format!("{device}: loaded \""));
                } else if ports.contains(&device) || made {
                    let path = format!("/run/systemd/network/{name}");
                    until.push(format!("{device}: Configuring with {path}."));
                }
            }
            let said = networkd_says(directory.path(), &ports, &until);
            // What it does not like it says with the file's name and the line's number.
            let wrong = said.lines().filter(|line| line.starts_with("/run/systemd/network/"));
            assert_eq!(wrong.collect::<Vec<_>>(), [""; 0], "{said}");
            read += told.networkd.files.len();
        }
    }
    assert!(read > 20, "{read}");
}

/// It says what is wrong: otherwise the test before would say nothing.
#[test]
fn networkd_says_what_is_wrong() {
    if !has_networkd() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let told = told(systems::SCHEDULED, "second");
    for (name, text) in &told.networkd.files {
        let text = text.replace("VLAN=2", "VLAN=2\nVLAM=2").replace("Snooping=", "Snoopin=");
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    let wrong = ["Unknown key 'VLAM' in section [BridgeVLAN]", "Unknown key 'MulticastSnoopin'"];
    networkd_says(directory.path(), &[], &wrong.map(str::to_owned));
}
