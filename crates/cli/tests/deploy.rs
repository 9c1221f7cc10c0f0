//! `plan --deploy`: what machines with Linux are told.

use crate::common::{TestSystem, run, two_hosts};
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use onbeat_testkit::{Need, cable, not_run, within};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
const MAP: &str = "1 0 6 7 2 3 4 5 1 1 1 1 1 1 1 1 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 hw 0";

/// Two hosts and a bridge; `a` is the grandmaster.
fn synchronised(stamps: &str) -> TestSystem {
    let more = format!("[synchronisation]\ngrandmaster = \"a\"\ntimestamping = \"{stamps}\"\n");
    TestSystem::new(&two_hosts(&more))
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn machines_with_linux_are_told_the_plan() {
    let system = synchronised("hardware");
    // Again over the same files: the description may have changed.
    for _ in 0..2 {
        run(&["plan", ".", "--deploy", "told"], system.path(), 0);
    }
    let told = system.path().join("told");
    let lines = |name: &str| {
        let text = read(&told, name);
        let (node, tool) = name.split_once('.').expect("a node and a tool");
        let header = format!("# Onbeat's plan for `{node}`: {tool} -batch\n");
        text.strip_prefix(&header).unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    for host in ["a.ip", "b.ip"] {
        let expected = "link add link p1 name p1.2 type vlan id 2 egress-qos-map 3:3\n\
                        link set dev p1.2 up\n";
        assert_eq!(lines(host), expected);
    }
    // One frame of 88 octets on the wire each 125 µs; 1,542 octets and 88 at the two slopes.
    let shaper = "cbs idleslope 5632 sendslope -94368 hicredit 87 locredit -84 offload";
    let root = "qdisc replace dev p1 root handle 8b0: mqprio num_tc 2 map";
    assert_eq!(
        lines("a.tc"),
        format!(
            "{root} 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 queues 1@0 1@1 hw 0\n\
             qdisc replace dev p1 parent 8b0:1 handle 8b1: {shaper} 0\n"
        )
    );
    assert!(!told.join("b.tc").exists(), "b sends nothing of the plan");
    assert_eq!(
        lines("s.ip"),
        "link add name br0 type bridge vlan_filtering 1 mcast_snooping 1\n\
         link set dev p1 master br0\nlink set dev p2 master br0\n\
         link set dev p1 up\nlink set dev p2 up\nlink set dev br0 up\n"
    );
    assert_eq!(
        lines("s.bridge"),
        "vlan add dev p1 vid 2\nvlan add dev p2 vid 2\n\
         mdb add dev br0 port p2 grp 01:00:5e:00:00:01 permanent vid 2\n"
    );
    let root = |port| format!("qdisc replace dev {port} root handle 8b0: mqprio num_tc 8 map");
    assert_eq!(
        lines("s.tc"),
        format!(
            "{} {MAP}\n{} {MAP}\nqdisc replace dev p2 parent 8b0:8 handle 8b8: {shaper} 1\n",
            root("p1"),
            root("p2")
        )
    );
    let text = read(&told, "s.networkd/10-onbeat-p2.network");
    assert!(text.starts_with("# Onbeat's plan for `s`: systemd-networkd\n"), "{text}");
    assert!(text.ends_with("Bridge=br0\n\n[BridgeVLAN]\nVLAN=2\n"), "{text}");
    assert!(read(&told, "a.networkd/10-onbeat-p1.2.netdev").contains("EgressQOSMaps=3-3\n"));
    let has = |name: &str, word: &str, value: &str| {
        let text = read(&told, name);
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert!(lines.any(|line| line == [word, value]), "{name}: {word} {value}: {text}");
    };
    has("a.ptp4l.conf", "priority1", "100");
    has("b.ptp4l.conf", "slaveOnly", "1");
    has("s.ptp4l.conf", "gmCapable", "0");
    for name in ["a.ptp4l.conf", "s.ptp4l.conf"] {
        has(name, "time_stamping", "hardware");
        has(name, "neighborPropDelayThresh", "900");
        has(name, "transportSpecific", "0x1");
        has(name, "delay_mechanism", "P2P");
    }
    assert!(read(&told, "s.ptp4l.conf").ends_with("\n[p1]\n\n[p2]\n"));
    let end = "-n 0 -z /var/run/ptp4l --transportSpecific=1 --step_threshold=0.0 -m -q\n";
    assert_eq!(read(&told, "a.phc2sys"), format!("-a -r -r {end}"));
    assert_eq!(read(&told, "b.phc2sys"), format!("-a -r {end}"));
}

#[test]
fn what_somebody_else_has_put_into_a_deployment_is_not_lost() {
    let system = synchronised("hardware");
    run(&["plan", ".", "--deploy", "told"], system.path(), 0);
    let told = system.path().join("told");
    let names = ["a.tc", "a.ptp4l.conf", "a.phc2sys", "s.bridge", "other.ip"];
    for name in names.into_iter().chain(["s.networkd/10-onbeat-p1.network", "s.networkd/own"]) {
        let before = std::fs::read(told.join(name));
        std::fs::write(told.join(name), "mine\n").expect("written");
        run(&["plan", ".", "--deploy", "told"], system.path(), 5);
        assert_eq!(read(&told, name), "mine\n");
        match before {
            Ok(before) => std::fs::write(told.join(name), before).expect("written"),
            Err(_) => std::fs::remove_file(told.join(name)).expect("removed"),
        }
    }
    run(&["plan", ".", "--deploy", "told"], system.path(), 0);
}

#[test]
fn what_linux_is_not_told_is_printed_once() {
    let lists = "[{ entries = [{ open = [0, 7], interval_ns = 1_000 }, \
        { open = [7], interval_ns = 499_000 }], length_aware = false }]";
    let port = format!("[[port]]\nname = \"s.p1\"\ngates = {lists}\n");
    let system = TestSystem::new(&two_hosts(&port));
    let output = run(&["plan", ".", "--deploy", "told"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let count = |text: &str| said.matches(text).count();
    assert_eq!(count("s.p1: a frame may start though its gate closes before its end"), 1, "{said}");
    let why = "s.p1: its queues are not set: an entry of its gate control list takes 1000 ns, and \
               `taprio` takes none shorter than 4800 ns at its rate";
    assert_eq!(count(why), 1, "{said}");
    let text = read(&system.path().join("told"), "s.tc");
    assert!(text.contains("dev p2") && !text.contains("dev p1"), "{text}");
}

#[test]
fn a_system_of_streams_alone_is_deployed_and_each_line_that_nothing_says_is_printed() {
    let ports: String = (0..12)
        .map(|number| {
            format!(
                "[[link]]\nends = [\"h{number}\", \"s.q{number}\"]\nrate_mbps = 100\n\
                 propagation_ns = 100\n[[host]]\nname = \"h{number}\"\n\
                 [[port]]\nname = \"s.q{number}\"\npreemptable = [0, 1]\n\
                 [[port]]\nname = \"h{number}.p1\"\npreemptable = [2]\n"
            )
        })
        .collect();
    let system = TestSystem::new(&format!(
        "format = 1\nname = \"streams\"\n[run]\nduration_s = 1\n\
         [[bridge]]\nname = \"s\"\nforwarding_ns = 1000\n{ports}\
         [[stream]]\nname = \"one\"\ntalker = \"h0\"\nlisteners = [\"h1\"]\n\
         traffic_class = 5\nframe_octets = 128\ninterval_ns = 1_000_000\n"
    ));
    let output = run(&["plan", ".", "--deploy", "told"], system.path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    for number in 0..12 {
        for line in [
            format!("s.q{number}: frames of queues 0, 1 are preemptable"),
            format!("h{number}.p1: frames of queue 2 are preemptable"),
        ] {
            assert_eq!(said.matches(&line).count(), 1, "{line} in {said}");
        }
    }
    assert!(said.contains("onbeat: configurations of nodes: told"), "{said}");
    assert!(read(&system.path().join("told"), "s.yang.json").contains("q11"), "{said}");
}

/// A ptp4l of ours that may not set clocks, ended with the test.
struct Ptp4l(Child);

impl Drop for Ptp4l {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ptp4l_reads_what_each_node_is_told() {
    let installed = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(program).exists())
    };
    if !installed("ptp4l") || !installed("setpriv") {
        return not_run(Need::Tools, "ptp4l (linuxptp) or setpriv is not installed");
    }
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let system = synchronised("software");
    run(&["plan", ".", "--deploy", "told"], system.path(), 0);
    let told = system.path().join("told");
    assert!(!told.join("a.phc2sys").exists(), "ptp4l keeps the system's clock itself");
    // The ports of both are p1; those of the bridge have other names here.
    let start = |name: &str, said: &str| {
        let log = system.path().join(format!("{name}.log"));
        let file = std::fs::File::create(&log).expect("a log");
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-sys_time", "ptp4l", "--free_running=1", "-f"]);
        command.arg(told.join(name)).stdin(Stdio::null());
        command.arg(format!("--uds_address={}", system.path().join(name).display()));
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdout(file.try_clone().expect("a log")).stderr(file);
        let _running = Ptp4l(within(&hosts[0], || command.spawn()).expect("setpriv"));
        let begun = MonoTime::now();
        loop {
            let text = std::fs::read_to_string(&log).expect("a log");
            if text.contains(said) {
                return;
            }
            assert!(MonoTime::now() - begun < LONG, "{name}: {text}");
            pause(Span::from_ms(20));
        }
    };
    within(&hosts[0], || {
        for command in ["link set eth0 down", "link set eth0 name p1", "link set p1 up"] {
            onbeat_testkit::run(&format!("ip {command}")).expect("a name");
        }
        onbeat_testkit::run("ip link add p2 type veth peer name p3").expect("a veth");
        onbeat_testkit::run("ip link set p2 up").expect("a veth");
    });
    for name in ["a.ptp4l.conf", "b.ptp4l.conf", "s.ptp4l.conf"] {
        start(name, "INITIALIZING to LISTENING");
    }
    // One that is wrong is not read.
    let text = read(&told, "a.ptp4l.conf").replace("priority2", "priority9");
    std::fs::write(told.join("wrong"), text).expect("written");
    start("wrong", "failed to parse");
}
