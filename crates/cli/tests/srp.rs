//! Stream reservation on interfaces: programs, the service of their host, a bridge and a neighbour
//! that says nothing, in network namespaces; and what Wireshark makes of their frames.

use crate::common::{TestSystem, onbeat, root, run, two_hosts};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use onbeat_testkit::{Need, bridged, cable, not_run, within};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// How long anything may take before a test fails: no figure of the protocol.
const PATIENCE: Span = Span::from_s(40);

/// A process in a namespace, ended with its value.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(host: &OwnedFd, mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stdin(Stdio::null());
        let mut child = within(host, || command.spawn().expect("it starts"));
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, lines }
    }

    fn onbeat(host: &OwnedFd, arguments: &[&str]) -> Self {
        let mut command = onbeat();
        command.args(arguments);
        Self::start(host, command)
    }

    /// The next line that begins so, without the line feed.
    fn line(&mut self, begin: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).expect("text");
            assert!(length > 0, "it ended without `{begin}`: {seen:?}");
            if line.starts_with(begin) {
                return line.trim_end().to_owned();
            }
            seen.push(line);
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is there");
    }

    /// Everything that it still says, after it was asked to end.
    fn end(mut self) -> Vec<String> {
        self.signal(Signal::TERM);
        let lines: Vec<_> = (&mut self.lines).lines().map(|line| line.expect("text")).collect();
        assert!(self.child.wait().expect("it ends").success());
        lines
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of these tests.
fn program() -> TestSystem {
    let system = TestSystem::new("");
    system.program("srp_end.c", "srp_end");
    system
}

fn end(system: &TestSystem, host: &OwnedFd, arguments: &str) -> Process {
    let mut command = Command::new(system.path().join("build/srp_end"));
    command.args(arguments.split(' '));
    Process::start(host, command)
}

/// What `onbeat srp status --json` says in a namespace, and its exit code.
fn status(host: &OwnedFd) -> (Value, i32) {
    let output =
        within(host, || onbeat().args(["srp", "status", "--json"]).output().expect("it starts"));
    let code = output.status.code().expect("it ends by itself");
    (serde_json::from_slice(&output.stdout).unwrap_or(Value::Null), code)
}

/// The status, once it is as it should be.
fn status_when(host: &OwnedFd, is_so: impl Fn(&Value) -> bool) -> (Value, i32) {
    let begun = MonoTime::now();
    loop {
        let (said, code) = status(host);
        if is_so(&said) {
            return (said, code);
        }
        assert!(MonoTime::now() - begun < PATIENCE, "still {said:#}");
        pause(Span::from_ms(50));
    }
}

fn serve(host: &OwnedFd, more: &[&str]) -> Process {
    serve_on(host, "eth0", more)
}

fn serve_on(host: &OwnedFd, interface: &str, more: &[&str]) -> Process {
    let arguments = [&["srp", "serve", "--interface", interface], more].concat();
    let service = Process::onbeat(host, &arguments);
    status_when(host, |said| !said.is_null());
    service
}

/// A bridge of two hosts, and the services of both.
struct Network {
    /// Its namespace is there as long as this.
    _bridge: OwnedFd,
    hosts: Vec<OwnedFd>,
    role: Process,
    services: Vec<Process>,
    /// Of the second port, from before anything speaks.
    capture: Option<Capture>,
}

fn network(rate: &str, captures: bool) -> Option<Network> {
    let (bridge, hosts) = match bridged(2) {
        Ok(network) => network,
        Err(why) => {
            not_run(Need::Namespaces, why);
            return None;
        }
    };
    let capture = captures.then(|| Capture::start(&bridge, "p1"));
    let arguments = ["srp", "bridge", "p0", "p1", "--json", "--rate", rate];
    let role = Process::onbeat(&bridge, &arguments);
    let services = hosts.iter().map(|host| serve(host, &["--rate", rate])).collect();
    Some(Network { _bridge: bridge, hosts, role, services, capture })
}

/// The bridge's lines about what a port reserves: interface, class and rate.
fn reserved(lines: &[String]) -> Vec<(String, String, u64)> {
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    lines
        .filter(|line| line["event"] == "reserved")
        .map(|line| {
            let rate = line["rate_bps"].as_u64().expect("a rate");
            (text(&line["interface"]), text(&line["class"]), rate)
        })
        .collect()
}

/// 8 octets behind the stream header, 24, are 32 octets of client data: with header, tag and FCS
/// 54, so 68 at least; with preamble and gap 88, with the margin 89; 8,000 times a second.
const SMALL_BPS: u64 = 89 * 8 * 8_000;

#[test]
fn two_programs_reserve_through_a_bridge_and_the_talker_stops_when_the_listener_is_killed() {
    let Some(network) = network("100Mb/s", true) else { return };
    let Network { hosts, role, services, capture, .. } = network;
    let system = program();
    let mut talker = end(&system, &hosts[0], "talk eth0 0x0200000000010001 8 0 60000 2000");
    assert!(talker.line("opened").starts_with("opened 0 state "));
    let advertised = |said: &Value| said["interfaces"][0]["streams"][0]["state"] == "advertised";
    let (said, code) = status_when(&hosts[0], advertised);
    assert_eq!(code, 1, "nothing is reserved yet: {said:#}");
    assert_eq!(said["interfaces"][0]["class_a"]["reserved_bps"], SMALL_BPS);
    let mut listener = end(&system, &hosts[1], "listen eth0 0x0200000000010001 8 0 60000 60000");
    let ready = "state 4 vlan 2 pcp 3 static 0 code 0 bridge 0000000000000000";
    // What the service says to a listener may come to it later than the first message.
    listener.line("first 1 state ");
    assert_eq!(talker.line("first"), format!("first 1 {ready}"));
    let (said, code) = status(&hosts[1]);
    let stream = &said["interfaces"][0]["streams"][0];
    assert_eq!((code, &stream["state"], &stream["end"]), (0, &"ready".into(), &"listener".into()));
    assert_eq!(stream["destination"], "91:e0:f0:00:fe:01");
    assert_eq!((&stream["vlan"], &stream["pcp"]), (&2.into(), &3.into()));
    assert_eq!(said["interfaces"][0]["class_a"]["domain"]["vlan"], 2);
    listener.signal(Signal::KILL);
    // The service withdraws what a dead program asked for: the write that waits ends by its limit.
    let waited = talker.line("waited");
    assert!(waited.contains(" state 3 "), "{waited}");
    drop((talker, listener));
    services.into_iter().for_each(|service| drop(service.end()));
    let lines = role.end();
    let once = |rate| ("p1".to_owned(), "A".to_owned(), rate);
    assert_eq!(reserved(&lines), [once(SMALL_BPS), once(0)]);
    capture.expect("it was asked for").check();
}

#[test]
fn what_a_bridge_cannot_reserve_fails_with_the_reason_and_the_bridge() {
    // 1,400 octets in each 125 µs are more than 75 % of 100 Mb/s at the bridge. The talker's host
    // believes its link to be faster.
    let Ok((bridge, hosts)) = bridged(2) else { return not_run(Need::Namespaces, "a bridge") };
    let arguments = ["srp", "bridge", "p0", "p1", "--json", "--rate", "100Mb/s"];
    let role = Process::onbeat(&bridge, &arguments);
    let services: Vec<_> = hosts.iter().map(|host| serve(host, &["--rate", "1Gb/s"])).collect();
    let system = program();
    let mut talker = end(&system, &hosts[0], "talk eth0 2 1400 1 60000 60000");
    talker.line("opened");
    let mut listener = end(&system, &hosts[1], "listen eth0 2 1400 1 5000 5000");
    let waited = listener.line("waited");
    let (said, code) = status_when(&hosts[0], |said| {
        said["interfaces"][0]["streams"][0]["state"] == "asking-failed"
    });
    assert_eq!(code, 1, "{said:#}");
    let address =
        within(&bridge, || onbeat::interface::Interface::named("p0").expect("a port").address.0);
    let identifier: String = address.iter().map(|octet| format!("{octet:02x}")).collect();
    let failed = format!("waited 0 state 7 vlan 0 pcp 0 static 0 code 1 bridge 8000{identifier}");
    assert_eq!(waited, failed);
    services.into_iter().for_each(|service| drop(service.end()));
    assert_eq!(reserved(&role.end()), []);
}

#[test]
fn a_program_without_a_service_says_how_to_start_it() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let system = program();
    let mut command = Command::new(system.path().join("build/srp_end"));
    command.args("talk eth0 1 8 1 1000 1000".split(' '));
    let output = within(&hosts[0], || command.output().expect("it starts"));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("start it with `onbeat srp serve --interface eth0`"), "{said}");
    assert_eq!(status(&hosts[0]).1, 5);
}

#[test]
fn where_no_neighbour_answers_the_hosts_own_port_is_shared_out() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    // 75 % of 8 Mb/s are 6 Mb/s: one small stream of 5.696 Mb/s, and not two.
    let service = serve(&hosts[0], &["--rate", "8Mb/s"]);
    let system = program();
    let mut first = end(&system, &hosts[0], "talk eth0 1 8 0 60000 60000");
    let said = first.line("first");
    assert_eq!(said, "first 1 state 4 vlan 2 pcp 3 static 1 code 0 bridge 0000000000000000");
    let mut second = end(&system, &hosts[0], "talk eth0 2 8 1 500 500");
    let waited = second.line("waited");
    assert!(waited.starts_with("waited 0 state 7 vlan 2 pcp 3 static 1 code 1 "), "{waited}");
    let (said, code) = status_when(&hosts[0], |said| {
        said["interfaces"][0]["streams"].as_array().is_some_and(|streams| streams.len() == 1)
    });
    let interface = &said["interfaces"][0];
    assert_eq!((&interface["neighbour"], code), (&"silent".into(), 0), "{said:#}");
    assert_eq!(interface["class_a"]["reserved_bps"], SMALL_BPS);
    // Another program cannot offer the same stream; one that comes when it is gone can.
    let mut third = Command::new(system.path().join("build/srp_end"));
    third.args("talk eth0 1 8 1 500 500".split(' '));
    let refused = within(&hosts[0], || third.output().expect("it starts"));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("another program of this host offers the stream"), "{said}");
    drop(first);
    let mut fourth = end(&system, &hosts[0], "talk eth0 2 8 1 60000 60000");
    assert!(fourth.line("done").starts_with("done 1 state 4 "));
    service.end();
}

#[test]
fn a_service_that_comes_back_reserves_again() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let services: Vec<_> = hosts.iter().map(|host| serve(host, &[])).collect();
    let system = program();
    let mut talker = end(&system, &hosts[0], "talk eth0 1 8 0 60000 60000");
    let mut listener = end(&system, &hosts[1], "listen eth0 1 8 0 60000 60000");
    listener.line("first");
    talker.line("first");
    let [first, second] = <[Process; 2]>::try_from(services).ok().expect("two services");
    first.signal(Signal::KILL);
    drop(first);
    let service = serve(&hosts[0], &[]);
    let (said, _) =
        status_when(&hosts[0], |said| said["interfaces"][0]["streams"][0]["state"] == "ready");
    assert_eq!(said["interfaces"][0]["streams"][0]["end"], "talker", "{said:#}");
    second.end();
    service.end();
}

/// The paper's listings 11 and 12 without their tasks, and 13: the first generation's names, and
/// `nf_use_srp` in both.
#[test]
fn the_papers_programs_reserve_on_interfaces_unchanged() {
    let Some(network) = network("1Gb/s", false) else { return };
    let Network { hosts, role, services, .. } = network;
    let flags = ["-DSRP", "-DLOOPS=20"];
    let system = crate::compat::system("", "first_talker.c", "first_listener.c", &flags);
    let start = |host: &OwnedFd, name: &str| {
        let mut command = Command::new(system.path().join("build").join(name));
        command.current_dir(system.path());
        Process::start(host, command)
    };
    let mut listener = start(&hosts[1], "right");
    listener.line("ready");
    let mut talker = start(&hosts[0], "left");
    assert_eq!(listener.line("received"), "received 20 sum 190");
    assert!(talker.child.wait().expect("it ends").success());
    assert!(listener.child.wait().expect("it ends").success());
    services.into_iter().for_each(|service| drop(service.end()));
    let lines = role.end();
    // 8 octets of class A to the listener's port, for as long as both were there.
    assert_eq!(reserved(&lines).first(), Some(&("p1".into(), "A".into(), SMALL_BPS)));
    assert_eq!(reserved(&lines).last(), Some(&("p1".into(), "A".into(), 0)));
}

/// Listings 11, 12 and 13 as they are printed, in Timed C, on an interface with the name that they
/// have in them.
#[test]
fn the_papers_listings_reserve_on_interfaces_unchanged() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let system = TestSystem::new("");
    let from = root().join("examples/02-federated-timed-c");
    std::fs::copy(from.join("manifest.h"), system.path().join("manifest.h")).expect("copied");
    for name in ["talker", "listener"] {
        let source = format!("{name}.c");
        std::fs::copy(from.join(&source), system.path().join(&source)).expect("copied");
        run(&["cc", &source, "-o", name], system.path(), 0);
    }
    let services: Vec<_> = hosts
        .iter()
        .map(|host| {
            for change in ["down", "name enp2s0.2", "up"] {
                let interface = if change == "up" { "enp2s0.2" } else { "eth0" };
                let command = format!("ip link set {interface} {change}");
                within(host, || onbeat_testkit::run(&command)).expect("an interface");
            }
            serve_on(host, "enp2s0.2", &["--rate", "1Gb/s"])
        })
        .collect();
    let start = |host: &OwnedFd, name: &str| {
        let mut command = Command::new("stdbuf");
        command.args(["-oL", &format!("./{name}")]).current_dir(system.path());
        Process::start(host, command)
    };
    let mut talker = start(&hosts[0], "talker");
    talker.line("Using SRP");
    let mut listener = start(&hosts[1], "listener");
    listener.line("Counter received! -> 0");
    talker.line("0: written");
    assert_eq!(status(&hosts[0]).1, 0);
    drop((talker, listener));
    services.into_iter().for_each(|service| drop(service.end()));
}

#[test]
fn the_tables_of_a_system_that_srp_reserves_for_say_so() {
    let text = two_hosts("").replace("[run]\n", "[run]\nprotected = true\nreservation = \"srp\"\n");
    let system = TestSystem::new(&text);
    run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
    let table = std::fs::read_to_string(system.path().join("tables/a.channels")).expect("a table");
    let lines: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines[..4], ["onbeat-channels 2", "system test", "host a", "reservation srp"]);
    // Its program asks the service of its interface, which is not there.
    system.program("talker.c", "left");
    let mut command = Command::new(system.path().join("build/left"));
    command
        .env("ONBEAT_INTERFACE", "lo")
        .env("ONBEAT_SYSTEM", system.path().join("tables/a.channels"));
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("cannot be reserved"), "{said}");
}

/// A stand-in for mrpd: it speaks the documented octets to one client, and nothing else.
#[test]
fn where_mrpd_runs_its_protocol_is_used() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let daemon = within(&hosts[0], || {
        onbeat_testkit::run("ip link set lo up").expect("a loopback");
        UdpSocket::bind(("127.0.0.1", 7_500)).expect("mrpd's port")
    });
    daemon.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
    let system = program();
    let mut talker = end(&system, &hosts[0], "talk eth0 0x0200000000010001 8 1 60000 60000");
    let mut octets = [0; 2_000];
    let mut commands = Vec::new();
    while !commands.iter().any(|command: &String| command.starts_with("S++")) {
        let (length, from) = daemon.recv_from(&mut octets).expect("a command");
        let (text, zero) = octets[..length].split_at(length - 1);
        assert_eq!(zero, [0], "a zero ends each command");
        let text = std::str::from_utf8(text).expect("text").to_owned();
        if text == "S??" {
            let mut answer = b"D:C=6,P=3,V=0002,N=3 R=020000000001 QA/IN\n".to_vec();
            answer.resize(1_500, 0);
            daemon.send_to(&answer, from).expect("sent");
        }
        if text.starts_with("S++") {
            let notice = "SJO L:D=2,S=0200000000010001 R=020000000001 VO/IN\n";
            let mut notice = notice.as_bytes().to_vec();
            notice.resize(1_500, 0);
            daemon.send_to(&notice, from).expect("sent");
        }
        commands.push(text);
    }
    let announced = [
        "S+D:C=6,P=3,V=0002",
        "V++:I=0002",
        "S++:S=0200000000010001,A=91e0f000fe01,V=0002,Z=32,I=1,P=112,L=125000",
    ];
    assert_eq!(commands[commands.len() - 3..], announced);
    assert!(talker.line("done").starts_with("done 1 state 4 vlan 2 pcp 3 static 0 "));
    // One participant of a port is enough: the service leaves it to mrpd.
    let mut serve = onbeat();
    serve.args(["srp", "serve", "--interface", "eth0"]).stderr(Stdio::piped());
    let serve = within(&hosts[0], || serve.spawn().expect("it starts"));
    loop {
        let (length, from) = daemon.recv_from(&mut octets).expect("a question");
        if octets[..length] == *b"S??\0" {
            daemon.send_to(&[&b"MSRP:Empty\n"[..], &[0; 64]].concat(), from).expect("sent");
            break;
        }
    }
    let output = serve.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("mrpd runs on this host"), "{said}");
}

/// What passes an interface, into a file.
struct Capture {
    tshark: Option<Process>,
    file: tempfile::NamedTempFile,
}

impl Capture {
    fn start(host: &OwnedFd, interface: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut command = Command::new("dumpcap");
        command.args(["-q", "-P", "-i", interface, "-w"]).arg(file.path());
        command.stderr(Stdio::null());
        let is_there = Command::new("dumpcap").arg("-v").output().is_ok();
        if !is_there {
            not_run(Need::Tools, "tshark: what Wireshark makes of the frames");
        }
        let tshark = is_there.then(|| Process::start(host, command));
        // It begins its file when it captures.
        let until = MonoTime::now() + PATIENCE;
        while tshark.is_some() && file.path().metadata().expect("the file").len() == 0 {
            assert!(MonoTime::now() < until, "nothing is captured");
            pause(Span::from_ms(10));
        }
        Self { tshark, file }
    }

    /// Wireshark finds nothing wrong with frames of MSRP and MVRP, and sees all kinds of them.
    fn check(self) {
        let Some(tshark) = self.tshark else { return };
        tshark.end();
        let wrong =
            dissect(self.file.path(), "(mrp-msrp || mrp-mvrp) && (_ws.malformed || _ws.expert)");
        assert_eq!(wrong, "");
        for (filter, what) in [
            ("mrp-msrp.attribute_type == 1", "Talker Advertise"),
            ("mrp-msrp.attribute_type == 3", "Listener"),
            ("mrp-msrp.attribute_type == 4", "Domain"),
            ("mrp-mvrp", "VID"),
        ] {
            assert_ne!(dissect(self.file.path(), filter), "", "no {what} was captured");
        }
    }
}

fn dissect(file: &Path, filter: &str) -> String {
    let output = Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).output();
    let output = output.expect("tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
