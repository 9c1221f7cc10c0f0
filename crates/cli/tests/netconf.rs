//! `onbeat deploy` with a NETCONF server that others wrote: netconfd of yuma123, behind sshd. The
//! servers of a test, their keys and their files are in a directory of its own.

use crate::common::{TestSystem, onbeat, root, run, two_hosts};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use onbeat_testkit::{Need, not_run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use tempfile::TempDir;

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
const NETCONFD: &str = "/usr/sbin/netconfd";
const SUBSYSTEM: &str = "/usr/sbin/netconf-subsystem";
const SSHD: &str = "/usr/sbin/sshd";
const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
const INTERFACES: &str = "urn:ietf:params:xml:ns:yang:ietf-interfaces";
const TYPES: &str = "urn:ietf:params:xml:ns:yang:iana-if-type";
/// What the packages bring.
const PLAIN: &[&str] = &["ietf-interfaces", "iana-if-type"];
const NAMES: [&str; 2] = ["br0", "br1"];

/// Whether all that a test needs is there; else it says so.
fn is_there() -> bool {
    let missing = [NETCONFD, SUBSYSTEM, SSHD].into_iter().find(|tool| !Path::new(tool).exists());
    let ncclient = ["python3", "/usr/bin/python3"].iter().any(|python| {
        let tried = Command::new(python).args(["-c", "import ncclient"]).output();
        tried.is_ok_and(|output| output.status.success())
    });
    if let Some(tool) = missing {
        not_run(Need::Tools, format_args!("{tool} is missing (netconfd, openssh-server)"));
    } else if !ncclient {
        not_run(Need::Tools, "ncclient is missing (python3-ncclient)");
    } else if !rustix::process::geteuid().is_root() {
        not_run(Need::Superuser, "sshd has no other user's sessions");
    } else {
        return true;
    }
    false
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two servers, and what a client needs to reach them.
struct Pair {
    names: [&'static str; 2],
    folder: TempDir,
    ports: [u16; 2],
    _servers: Vec<Ends>,
}

/// Two ports. Both are taken at once: else the second one may be the first.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = MonoTime::now();
    while !is_so() {
        assert!(MonoTime::now() - begun < LONG, "{what}");
        pause(Span::from_ms(20));
    }
}

/// A server, with its files in a directory.
fn netconfd(home: &Path, port: u16, modules: &[&str], modpath: &str) -> Ends {
    let mut netconfd = Command::new(NETCONFD);
    netconfd
        .args(["--target=candidate", "--superuser=root", "--with-url=false"])
        .arg(format!("--modpath={modpath}:/usr/share/yuma/modules"))
        .arg(format!("--startup={}", home.join("startup.xml").display()))
        .arg(format!("--port={port}"))
        .arg(format!("--ncxserver-sockname={}", home.join("socket").display()))
        .args(modules.iter().map(|module| format!("--module={module}")))
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(home.join("log")).expect("a log"))
        .stderr(Stdio::null());
    Ends(netconfd.spawn().expect("netconfd"))
}

/// What brings sessions to it, through what counts its answers.
fn sshd(folder: &Path, name: &str, port: u16) -> Ends {
    let home = folder.join(name);
    let subsystem = format!(
        "/usr/bin/python3 {} {} {name} {SUBSYSTEM} --ncxserver-sockname={port}@{}",
        root().join("crates/cli/tests/netconf/subsystem.py").display(),
        folder.display(),
        home.join("socket").display()
    );
    let configuration = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
         Subsystem netconf \"{subsystem}\"\n",
        folder.join("host").display(),
        folder.join("user.pub").display(),
    );
    std::fs::write(home.join("sshd_config"), configuration).expect("written");
    let sshd = Command::new(SSHD)
        .arg("-De")
        .arg("-f")
        .arg(home.join("sshd_config"))
        .stderr(std::fs::File::create(home.join("sshd.log")).expect("a log"))
        .spawn();
    Ends(sshd.expect("sshd"))
}

impl Pair {
    /// Servers of these names, with these modules, which are found where `modpath` says, and with
    /// this configuration.
    fn start(
        names: [&'static str; 2],
        modules: [&[&str]; 2],
        modpath: &str,
        configurations: [&str; 2],
    ) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path.join(key))
                .status();
            assert!(made.expect("ssh-keygen").success());
        }
        std::fs::create_dir_all(path.join(".ssh")).expect("a directory");
        // Where sshd gives up its rights; its package makes it when the service starts.
        std::fs::create_dir_all("/run/sshd").expect("a directory");
        // Whatever HOME says, netconfd wants this one in the superuser's; of two servers that make
        // it at once one gives up.
        std::fs::create_dir_all("/root/.yuma").expect("a directory");
        let ports = free_ports();
        let mut servers = Vec::new();
        for at in 0..2 {
            let home = path.join(names[at]);
            std::fs::create_dir(&home).expect("a directory");
            let config = format!("<config xmlns=\"{BASE}\">{}</config>", configurations[at]);
            std::fs::write(home.join("startup.xml"), config).expect("written");
            servers.push(netconfd(&home, ports[at], modules[at], modpath));
            servers.push(sshd(path, names[at], ports[at]));
        }
        let pair = Self { names, folder, ports, _servers: servers };
        pair.trust(true);
        for (name, port) in names.iter().zip(ports) {
            let log = pair.path().join(name).join("log");
            wait_for(name, || {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                assert!(!text.contains("Shutting down"), "{text}");
                text.contains("Running netconfd server")
                    && TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
        }
        pair
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the client knows the servers' key.
    fn trust(&self, known: bool) {
        let key = std::fs::read_to_string(self.path().join("host.pub")).expect("a key");
        let key: Vec<&str> = key.split(' ').take(2).collect();
        let line = |port: &u16| format!("[127.0.0.1]:{port} {}\n", key.join(" "));
        let lines: String = self.ports.iter().filter(|_| known).map(line).collect();
        std::fs::write(self.path().join(".ssh/known_hosts"), lines).expect("written");
    }

    /// What a node is told.
    fn tell(&self, node: &str, text: &str) {
        let told = self.path().join("told");
        std::fs::create_dir_all(&told).expect("a directory");
        std::fs::write(told.join(format!("{node}.yang.xml")), text).expect("written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.args(["deploy", "told", "--key", "user"]).args(arguments);
        for (name, port) in self.names.iter().zip(self.ports) {
            command.arg("--device").arg(format!("{name}=root@127.0.0.1:{port}"));
        }
        command.current_dir(self.path()).env("HOME", self.path());
        command
    }

    /// Deploys; `plan` is what is to happen at which answer.
    fn deploy(
        &self,
        arguments: &[&str],
        plan: &str,
        expected: Option<i32>,
    ) -> (Output, Vec<String>) {
        let _ = std::fs::remove_file(self.path().join("answers"));
        let _ = std::fs::remove_file(self.path().join("pid"));
        std::fs::write(self.path().join("plan"), plan).expect("written");
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("onbeat");
        let pid = child.id().to_string();
        std::fs::write(self.path().join("pid.new"), pid).expect("written");
        std::fs::rename(self.path().join("pid.new"), self.path().join("pid")).expect("renamed");
        let output = child.wait_with_output().expect("it ends");
        let log = std::fs::read_to_string(self.path().join("answers")).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), expected, "{log}\n{said}");
        (output, log.lines().map(str::to_owned).collect())
    }

    /// The running configuration of a server under `interfaces` and `bridges`.
    fn running(&self, at: usize) -> String {
        let (_, reply) =
            Session::open(self, at, "<get-config><source><running/></source></get-config>");
        let (_, data) = reply.split_once("<data>").expect("data");
        let data: Vec<&str> = data.split_whitespace().collect();
        data.join(" ")
    }
}

/// A session of the test's own, without SSH.
struct Session {
    _process: Ends,
    input: ChildStdin,
    output: ChildStdout,
}

impl Session {
    /// A session and its answer to a request. netconfd leaves a request alone that it reads
    /// together with the hello (2.13): then it is another session's turn.
    fn open(pair: &Pair, at: usize, operation: &str) -> (Self, String) {
        let begun = MonoTime::now();
        loop {
            let mut session = Self::hello(pair, at);
            pause(Span::from_ms(20));
            session.send(&format!("<rpc message-id=\"1\" xmlns=\"{BASE}\">{operation}</rpc>"));
            let second = Timespec { tv_sec: 1, tv_nsec: 0 };
            let mut ready = [PollFd::new(&session.output, PollFlags::IN)];
            if poll(&mut ready, Some(&second)).expect("a pipe") > 0 {
                let answer = session.receive();
                return (session, answer);
            }
            assert!(MonoTime::now() - begun < LONG, "no answer to {operation}");
        }
    }

    fn hello(pair: &Pair, at: usize) -> Self {
        let port = pair.ports[at];
        let socket = pair.path().join(pair.names[at]).join("socket");
        let mut process = Command::new(SUBSYSTEM)
            .arg(format!("--ncxserver-sockname={port}@{}", socket.display()))
            .env("SSH_CONNECTION", format!("127.0.0.1 1 127.0.0.1 {port}"))
            .env("USER", "root")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("netconf-subsystem");
        let input = process.stdin.take().expect("a pipe");
        let output = process.stdout.take().expect("a pipe");
        let mut session = Self { _process: Ends(process), input, output };
        let capability = "<capability>urn:ietf:params:netconf:base:1.0</capability>";
        session.send(&format!(
            "<hello xmlns=\"{BASE}\"><capabilities>{capability}</capabilities></hello>"
        ));
        session.receive();
        session
    }

    fn send(&mut self, text: &str) {
        self.input.write_all(format!("{text}]]>]]>").as_bytes()).expect("written");
    }

    fn receive(&mut self) -> String {
        let (mut text, mut part) = (Vec::new(), [0; 1 << 12]);
        while !text.ends_with(b"]]>]]>") {
            let read = self.output.read(&mut part).expect("an answer");
            assert!(read > 0, "{}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&part[..read]);
        }
        String::from_utf8(text).expect("UTF-8")
    }
}

/// One interface with a description.
fn interface(description: &str) -> String {
    format!(
        "<interfaces xmlns=\"{INTERFACES}\"><interface><name>p1</name>\
         <type xmlns:ianaift=\"{TYPES}\">ianaift:ethernetCsmacd</type>\
         <description>{description}</description></interface></interfaces>"
    )
}

/// Servers with one interface each, called `old`, which are to be told `new`.
fn plain() -> Option<Pair> {
    is_there().then(|| {
        let old = interface("old");
        let pair = Pair::start(NAMES, [PLAIN, PLAIN], "/usr/share/yuma/modules", [&old, &old]);
        NAMES.iter().for_each(|name| pair.tell(name, &interface("new")));
        pair
    })
}

fn is(running: &str, what: &str) -> bool {
    running.contains(&format!("<description>{what}</description>"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn devices_have_what_they_are_told_or_what_they_had() {
    let Some(pair) = plain() else { return };
    let is_all = |what| (0..2).all(|at| is(&pair.running(at), what));
    assert!(is_all("old"));
    let (output, log) = pair.deploy(&["--dry-run", "--json"], "", Some(0));
    let tried: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&tried["outcome"], &tried["failures"]), (&"tried".into(), &Value::Array(vec![])));
    assert!(is_all("old") && !log.iter().any(|line| line.contains("commit")), "{log:?}");

    // Whoever holds the lock of one device keeps both as they are.
    let (other, reply) = Session::open(&pair, 1, "<lock><target><candidate/></target></lock>");
    assert!(reply.contains("<ok/>"), "{reply}");
    let (output, log) = pair.deploy(&[], "", Some(5));
    assert!(said(&output).contains("br1 (root@127.0.0.1:"), "{}", said(&output));
    assert!(said(&output).contains(": lock: lock-denied: "), "{}", said(&output));
    assert!(!log.iter().any(|line| line.contains("edit-config")) && is_all("old"), "{log:?}");
    drop(other);

    // What one device refuses, none gets.
    pair.tell("br1", &interface("new").replace("ethernetCsmacd", "noSuchType"));
    let (output, log) = pair.deploy(&[], "", Some(5));
    assert!(said(&output).contains(": edit-config: "), "{}", said(&output));
    assert!(said(&output).contains("if:interface[if:name='p1']/if:type"), "{}", said(&output));
    assert!(!log.iter().any(|line| line.contains("commit")) && is_all("old"), "{log:?}");

    // What one device cannot have at all is said before anything is written.
    pair.tell("br1", "<bridges xmlns=\"urn:x:yang:a-bridge\"><bridge/></bridges>");
    let (output, log) = pair.deploy(&[], "", Some(5));
    let lacks = ": get: it lacks the YANG module a-bridge (urn:x:yang:a-bridge)";
    assert!(said(&output).contains(lacks), "{}", said(&output));
    assert!(!log.iter().any(|line| line.contains("lock")), "{log:?}");

    // A stranger's key is no device's.
    pair.tell("br1", &interface("new"));
    pair.trust(false);
    let (output, log) = pair.deploy(&[], "", Some(5));
    assert!(said(&output).contains("is not in ~/.ssh/known_hosts"), "{}", said(&output));
    assert!(log.is_empty(), "{log:?}");
    pair.trust(true);

    // Twice the same: a device that has it already takes it again.
    for _ in 0..2 {
        let (output, _) = pair.deploy(&[], "", Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2 devices have what `told` says\n");
        assert!(is_all("new"));
    }
}

#[test]
fn what_breaks_amid_commits_takes_all_devices_back() {
    let Some(pair) = plain() else { return };
    let (_, log) = pair.deploy(&["--dry-run"], "", Some(0));
    // Up to the last of the devices' edits it is the same, but for unlock and close.
    let edits = log.iter().filter(|line| !line.contains("close") && !line.contains("unlock"));
    let commits = edits.count() + 2;
    // The second device's session breaks with its commit: it goes back by itself.
    let (output, _) = pair.deploy(&[], &format!("break {}", commits + 1), Some(3));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("br0 is as before, and has been read since\n"), "{shown}");
    assert!(shown.contains("br1 goes back by itself"), "{shown}");
    let is_old = |at| is(&pair.running(at), "old");
    wait_for("both are as before", || (0..2).all(is_old));
    // An interruption after both commits.
    let (output, log) = pair.deploy(&["--json"], &format!("interrupt {}", commits + 1), Some(130));
    assert!(log.iter().any(|line| line == "br1 commit confirmed"), "{log:?}");
    assert!((0..2).all(is_old), "{log:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["outcome"], &told["interrupted"]), (&"unchanged".into(), &true.into()));
    assert_eq!(told["devices"][1]["state"], "taken-back");
}

/// After each answer of each server. A killed client leaves both as they were, unless it has
/// confirmed: then those that were confirmed have what they were told.
#[test]
fn a_client_that_is_killed_after_any_request_leaves_no_device_half_told() {
    let Some(mut pair) = plain() else { return };
    let (_, all) = pair.deploy(&["--json"], "", Some(0));
    let is_confirmation = |line: &str| line.ends_with(" commit");
    let first = all.iter().position(|line| is_confirmation(line)).expect("a confirmation");
    let commit = all.iter().position(|line| line.ends_with("confirmed")).expect("a commit");
    let last = all.iter().rposition(|line| is_confirmation(line)).expect("a confirmation");
    let commits = commit - 1..=last;
    let is_every = std::env::var_os("ONBEAT_DEPLOY_KILLS").is_some();
    pair = plain().expect("as before");
    for at in 0..all.len() {
        // Outside the commits, where nothing is put in force, by default some.
        let is_commit = commits.contains(&at) || at % 8 == 5;
        if !is_every && !is_commit {
            continue;
        }
        let (_, log) = pair.deploy(&[], &format!("kill {at}"), None);
        assert_eq!(log, all[..=at], "the same requests as ever");
        for (device, name) in NAMES.iter().enumerate() {
            let is_confirmed =
                log.iter().any(|line| is_confirmation(line) && line.starts_with(name));
            let expected = if is_confirmed { "new" } else { "old" };
            wait_for(&format!("{name}: {expected} after {log:?}"), || {
                is(&pair.running(device), expected)
            });
        }
        if at >= first {
            pair = plain().expect("as before");
        }
    }
}

/// The modules of IEEE 802.1Q, where they are.
fn modules() -> Option<PathBuf> {
    let folder = std::env::var_os("ONBEAT_YANG").map(PathBuf::from);
    if folder.is_none() {
        not_run(Need::Machine, "ONBEAT_YANG names no folder of YANG modules");
    }
    folder
}

/// The modules of IEEE that netconfd finds: the others of the folder are of a later YANG than it
/// reads.
fn links(folder: &Path) -> TempDir {
    let links = tempfile::tempdir().expect("a directory");
    for entry in folder.read_dir().expect("the folder of modules").flatten() {
        if entry.file_name().to_string_lossy().starts_with("ieee") {
            let link = links.path().join(entry.file_name());
            std::os::unix::fs::symlink(entry.path(), link).expect("a link");
        }
    }
    links
}

/// What every bridge has already, and something else of its component.
fn component(name: &str, more: &str) -> String {
    format!(
        "<bridges xmlns=\"urn:ieee:std:802.1Q:yang:ieee802-dot1q-bridge\" \
         xmlns:q=\"urn:ieee:std:802.1Q:yang:ieee802-dot1q-bridge\"><bridge><name>{name}</name>\
         <address>02-00-00-00-00-01</address><bridge-type>q:customer-vlan-bridge</bridge-type>\
         <component><name>{name}</name><type>q:c-vlan-component</type>{more}</component>\
         </bridge></bridges>"
    )
}

/// A channel with gates, beside that of [`two_hosts`].
const SCHEDULED: &str = r#"
[[channel]]
name = "d"
destination = "01:00:5e:00:00:02"
stream_id = 2
class = "scheduled"
size_octets = 8
rate_hz = 1000
talker = "a"
listeners = ["b"]
"#;

#[test]
fn a_bridge_and_a_host_have_a_new_plan_and_nothing_of_the_old_one() {
    if !is_there() {
        return;
    }
    let Some(folder) = modules() else { return };
    let links = links(&folder);
    let common = ["ietf-interfaces", "iana-if-type", "ieee802-dot1q-types", "ieee802-dot1q-sched"];
    let bridges =
        ["ieee802-dot1q-bridge", "ieee802-dot1q-sched-bridge", "ieee802-dot1q-cbsa-bridge"];
    let hosts = ["ieee802-dot1dc-gfqos", "ieee802-dot1dc-sched-if", "ieee802-dot1dc-cbsa-if"];
    let [bridge, host] = [bridges, hosts].map(|own| [&common[..], &own[..]].concat());
    // What every bridge has already, and an entry that is nobody's plan.
    let entry = "<filtering-entry><database-id>9</database-id><vids>9</vids>\
                 <address>01-00-5E-00-00-02</address><entry-type>static</entry-type>\
                 </filtering-entry>";
    let database = format!("<filtering-database>{entry}</filtering-database>");
    let configuration = component("s", &database);
    let path = links.path().to_str().expect("UTF-8");
    let pair = Pair::start(["s", "a"], [&bridge, &host], path, [&configuration, ""]);
    let system = TestSystem::new(&two_hosts(SCHEDULED));
    let told = pair.path().join("told");
    let plan = || {
        let told = told.to_str().expect("UTF-8");
        run(&["plan", ".", "--deploy", told], system.path(), 0);
    };
    plan();
    pair.deploy(&[], "", Some(0));
    let before = [pair.running(0), pair.running(1)];
    assert!(before.iter().all(|running| running.contains("<gate-control-entry>")), "{before:?}");
    assert_eq!(before[0].matches("<address>01-00-5E-00-00-02</address>").count(), 2);

    std::fs::write(system.path().join("system.toml"), two_hosts("")).expect("written");
    plan();
    let (output, _) = pair.deploy(&["--json"], "", Some(0));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let removed = |at: usize| told["devices"][at]["removed"].as_array().expect("a list").len();
    let after = [pair.running(0), pair.running(1)];
    assert!(after.iter().all(|running| !running.contains("<gate-control-entry>")), "{after:?}");
    // That of the other VLAN stays.
    assert_eq!(after[0].matches("<address>01-00-5E-00-00-02</address>").count(), 1);
    assert_eq!(after[0].matches("<address>01-00-5E-00-00-01</address>").count(), 1);
    assert_eq!((removed(0), removed(1)), (2, 1), "{told}");
}

/// The modules of a bridge with or without 802.1CB, beside those of [`PLAIN`].
const BRIDGE: [&str; 3] =
    ["ieee802-dot1q-bridge", "ieee802-dot1q-sched-bridge", "ieee802-dot1q-cbsa-bridge"];
const FRER: [&str; 2] = ["ieee802-dot1cb-stream-identification", "ieee802-dot1cb-frer"];

/// Two bridges between two hosts, with two links between them, and two channels with these keys.
fn two_ways(keys: [&str; 2]) -> String {
    let link = |ends: &str| format!("[[link]]\nends = [{ends}]\nrate_mbps = 1000\n");
    let links = [
        r#""a", "west.a""#,
        r#""b", "east.b""#,
        r#""west.upper", "east.upper""#,
        r#""west.lower", "east.lower""#,
    ];
    let links: String = links.iter().map(|ends| link(ends)).collect();
    let channel = |number: u8, more: &str| {
        format!(
            "[[channel]]\nname = \"c{number}\"\ndestination = \"91:e0:f0:00:fe:0{number}\"\n\
             stream_id = {number}\nclass = \"A\"\nsize_octets = 64\nrate_hz = 1000\n\
             talker = \"a\"\nlisteners = [\"b\"]\n{more}\n"
        )
    };
    let (one, other) = (channel(1, keys[0]), channel(2, keys[1]));
    format!(
        "format = 1\nname = \"ways\"\n[run]\nduration_ms = 200\n[[host]]\nname = \"a\"\n\
         [[host]]\nname = \"b\"\n[[bridge]]\nname = \"west\"\n[[bridge]]\nname = \"east\"\n\
         {links}{one}{other}"
    )
}

/// An identity that is no plan's: in another VLAN.
fn foreign() -> String {
    let namespace = format!("urn:ieee:std:802.1Q:yang:{}", FRER[0]);
    format!(
        "<stream-identity xmlns=\"{namespace}\"><index>77</index><handle>77</handle>\
         <null-stream-identification><destination-mac>91-E0-F0-00-FE-01</destination-mac>\
         <tagged>tagged</tagged><vlan>9</vlan></null-stream-identification></stream-identity>"
    )
}

/// The servers of bridges `west` and `east`.
fn two_bridges(folder: &Path, modules: [&[&str]; 2]) -> Pair {
    let links = links(folder);
    // The modules of 802.1CB augment that of RFC 8343.
    let interfaces = folder.join("ietf-interfaces@2018-02-20.yang");
    let link = links.path().join("ietf-interfaces.yang");
    std::os::unix::fs::symlink(interfaces, link).expect("a link");
    let all = modules.map(|own| [PLAIN, &BRIDGE, own].concat());
    let configurations = ["west", "east"].map(|name| component(name, ""));
    let [west, east] = configurations;
    let east = if modules[1].is_empty() { east } else { east + &foreign() };
    let path = links.path().to_str().expect("UTF-8");
    Pair::start(["west", "east"], [&all[0], &all[1]], path, [&west, &east])
}

/// Writes what these bridges are told with channels of these keys.
fn tell_bridges(pair: &Pair, keys: [&str; 2], directory: &str) {
    let system = TestSystem::new(&two_ways(keys));
    let told = pair.path().join(directory);
    run(&["plan", ".", "--deploy", told.to_str().expect("UTF-8")], system.path(), 0);
}

/// How many entries a bridge has of: identities, recoveries, identifications; streams in these.
fn tables(pair: &Pair, at: usize) -> [usize; 4] {
    let running = pair.running(at);
    let names = ["stream-identity ", "sequence-recovery>", "sequence-identification>", "stream>"];
    names.map(|name| running.matches(&format!("<{name}")).count())
}

const BOTH_WAYS: &str = "disjoint_paths = 2";

#[test]
fn bridges_have_the_streams_of_a_plan_until_another_one_has_none() {
    if !is_there() {
        return;
    }
    let Some(folder) = modules() else { return };
    let pair = two_bridges(&folder, [&FRER, &FRER]);
    let both = || [tables(&pair, 0), tables(&pair, 1)];
    let removed = |output: &Output, at: usize| {
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let paths = told["devices"][at]["removed"].as_array().expect("a list").iter();
        let paths: Vec<_> = paths.map(|path| path.as_str().expect("a path").to_owned()).collect();
        paths
    };
    tell_bridges(&pair, [BOTH_WAYS; 2], "told");
    let (_, log) = pair.deploy(&["--dry-run"], "", Some(0));
    let edits = log.iter().filter(|line| !line.contains("close") && !line.contains("unlock"));
    let killed = format!("kill {}", edits.count() + 2);
    // A client that dies when the first bridge has committed leaves nothing of it.
    pair.deploy(&[], &killed, None);
    wait_for("as before", || both() == [[0; 4], [1, 0, 0, 0]]);
    let all = [[2, 0, 3, 6], [3, 2, 3, 8]];
    for _ in 0..2 {
        let (output, _) = pair.deploy(&["--json"], "", Some(0));
        assert_eq!((both(), removed(&output, 1)), (all, vec![]));
    }

    // One of two is left: what was told of the other goes, and no more than that.
    tell_bridges(&pair, [BOTH_WAYS, ""], "told");
    let (output, _) = pair.deploy(&["--json"], "", Some(0));
    let expected = ["/stream-identity[index='2']", "/frer/sequence-recovery[index='2']"];
    assert_eq!(removed(&output, 0), expected[..1]);
    assert_eq!(removed(&output, 1), expected);
    assert_eq!(both(), [[1, 0, 3, 3], [2, 1, 3, 4]]);

    // A plan that has none tells nothing of streams: only what was told before goes.
    std::fs::rename(pair.path().join("told"), pair.path().join("former")).expect("renamed");
    tell_bridges(&pair, ["", ""], "told");
    pair.deploy(&[], "", Some(0));
    assert_eq!(both(), [[1, 0, 3, 3], [2, 1, 3, 4]]);
    pair.deploy(&["--former", "former"], &killed, None);
    wait_for("as before", || both() == [[1, 0, 3, 3], [2, 1, 3, 4]]);
    let (output, _) = pair.deploy(&["--former", "former", "--json"], "", Some(0));
    assert_eq!((removed(&output, 0).len(), removed(&output, 1).len()), (4, 5));
    assert_eq!(both(), [[0; 4], [1, 0, 0, 0]]);
    assert!(pair.running(1).contains("<handle>77</handle>"));
}

#[test]
fn a_bridge_without_replication_is_named_with_the_file_that_needs_it() {
    if !is_there() {
        return;
    }
    let Some(folder) = modules() else { return };
    let pair = two_bridges(&folder, [&FRER, &[]]);
    tell_bridges(&pair, [BOTH_WAYS, ""], "told");
    let (output, log) = pair.deploy(&[], "", Some(5));
    for module in FRER {
        let namespace = format!("urn:ieee:std:802.1Q:yang:{module}");
        let lacks = format!("it lacks the YANG module {module} ({namespace}), which ");
        let expected = format!("{lacks}`told/east.streams.yang.xml` needs\n");
        assert!(said(&output).contains(&expected), "{}", said(&output));
    }
    assert!(said(&output).contains("onbeat: help: "), "{}", said(&output));
    assert!(!said(&output).contains("west"), "{}", said(&output));
    assert!(!log.iter().any(|line| line.contains("lock")), "{log:?}");
    // Without its file it is told the rest.
    std::fs::remove_file(pair.path().join("told/east.streams.yang.xml")).expect("removed");
    pair.deploy(&[], "", Some(0));
    assert_eq!([tables(&pair, 0), tables(&pair, 1)], [[1, 0, 3, 3], [0; 4]]);
}
