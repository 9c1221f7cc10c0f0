//! Stations that carry the channels of unchanged programs on networks of the kernel: in a run in
//! namespaces, in the part of a run on an interface, and without a run.

use crate::common::{
    TestSystem, channel, number, onbeat, permitted, programs, results, run, two_hosts,
};
use onbeat::MonoTime;
use onbeat_model::time::Span;
use onbeat_testkit::{Need, cable, not_run, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

const OVER_STATIONS: [&str; 5] = ["run", ".", "--backend", "network-code", "--network"];

/// Two hosts whose messages come each 50 ms: however busy the machine is, stations are rarely 5 ms
/// late.
fn seldom(how: &str) -> TestSystem {
    let text = two_hosts(&programs("", how)).replace("rate_hz = 1000", "rate_hz = 20");
    let run = "[run]\nslot_error_us = 5000\n";
    let text = text.replace("[run]\n", run).replace("duration_ms = 500", "duration_ms = 2000");
    let system = TestSystem::new(&text);
    let define = ["-DPERIOD_NS=50000000LL"];
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
    system.compile(format!("{from}/talker.c").as_ref(), "left", &define);
    system.compile(format!("{from}/listener.c").as_ref(), "right", &define);
    system
}

/// Each message came or is counted, and where the stations were on time all of them came.
fn is_accounted_for(results: &Value) {
    let c = channel(results, "c");
    assert_eq!(number(c, "received") + number(c, "lost"), number(c, "sent"), "{c}");
    assert!(number(c, "received") > 0 && number(c, "duplicated") == 0, "{c}");
    let stations = &results["runs"][0]["stations"];
    assert_eq!((&stations["collisions"], &stations["waits"]), (&Value::Null, &Value::Null));
    let all = stations["stations"].as_array().expect("stations");
    let sum = |what: &str| all.iter().map(|station| number(station, what)).sum::<i64>();
    assert_eq!(sum("overruns"), 0, "{stations}");
    // What missed its slot may still wait for one when the run ends.
    assert!(sum("unsent") <= sum("missed"), "{stations}");
    if sum("missed") + sum("late") + sum("timeouts") == 0 {
        assert_eq!((&c["verdict"], number(c, "lost")), (&"kept".into(), 0), "{results}");
        assert!(number(c, "latency_ns.max") <= number(c, "bound_ns"), "{c}");
    }
    assert_ne!(c["verdict"], "broken", "{results}");
    let talker = all.iter().find(|station| station["host"] == "a").expect("a station");
    assert!(number(talker, "sent") >= number(c, "received"), "{stations}");
    let [p50, p99, max] = ["p50", "p99", "max"].map(|it| number(&talker["slot_error_ns"], it));
    assert!(0 <= p50 && p50 <= p99 && p99 <= max, "{talker}");
}

#[test]
fn unchanged_programs_run_over_stations_in_namespaces() {
    if !permitted() {
        return;
    }
    let system = seldom("");
    let seen = results(&[&OVER_STATIONS[..], &["netns"]].concat(), system.path(), 0);
    is_accounted_for(&seen);
    assert_eq!(seen["runs"][0]["stations"]["stations"].as_array().map(Vec::len), Some(2));
    // The report is made again from the records.
    assert_eq!(results(&["report", "."], system.path(), 0), seen);
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
    for shown in ["Slot error p50", "unknown, those of the kernel are not seen"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn hosts_without_programs_talk_and_listen_over_their_stations_too() {
    if !permitted() {
        return;
    }
    let text = two_hosts("").replace("rate_hz = 1000", "rate_hz = 20");
    let text = text.replace("[run]\n", "[run]\nbackend = \"network-code\"\nslot_error_us = 5000\n");
    let system = TestSystem::new(&text);
    let seen = results(&["run", ".", "--network", "netns"], system.path(), 0);
    is_accounted_for(&seen);
}

/// A program that stops reading breaks no promise of the network: its station has the messages.
#[test]
fn what_a_program_does_not_read_is_unread_and_not_lost_in_the_network() {
    if !permitted() {
        return;
    }
    let system = seldom("early");
    let output = onbeat()
        .args([&OVER_STATIONS[..], &["netns", "--json"]].concat())
        .current_dir(system.path())
        .output()
        .expect("onbeat runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    is_accounted_for(&seen);
    let unread = said.lines().find(|line| line.contains("arrived on host `b` and were not read"));
    assert!(unread.is_some(), "{said}");
}

#[test]
fn what_stations_do_not_do_is_refused() {
    let system = seldom("");
    let words = [&OVER_STATIONS[..], &["netns", "--transport", "udp4"]].concat();
    let said = String::from_utf8(run(&words, system.path(), 2).stderr).expect("UTF-8");
    assert!(said.contains("stations send frames themselves"), "{said}");
}

/// A process, ended at the latest when this is dropped.
struct Running(Child);

impl Running {
    fn start(host: &OwnedFd, mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stdin(Stdio::null());
        Self(within(host, || command.spawn().expect("it starts")))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(&mut self) -> Vec<u8> {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it runs");
        let mut said = Vec::new();
        let mut output = self.0.stdout.take().expect("a pipe");
        std::io::Read::read_to_end(&mut output, &mut said).expect("text");
        self.0.wait().expect("it ends");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many messages the end of a program has had.
fn count(pid: u32, what: &str) -> i64 {
    let output = run(&["stat", "--json"], "/".as_ref(), 0);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut ends = all["endpoints"].as_array().expect("endpoints").iter();
    let own = ends.find(|end| end["pid"] == pid);
    own.map_or(0, |end| end[what].as_i64().expect(what))
}

/// Two hosts on a cable, with programs and tables of one plan.
struct Deployed {
    hosts: [OwnedFd; 2],
    system: TestSystem,
    until: MonoTime,
}

impl Deployed {
    fn new(hosts: [OwnedFd; 2]) -> Self {
        let text = "format = 1\nname = \"cable\"\n[run]\nduration_s = 1\n[[host]]\nname = \"a\"\n\
                    [[host]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"b\"]\nrate_mbps = 1000\n\
                    [[channel]]\nname = \"c\"\nstream_id = 1\nclass = \"A\"\nsize_octets = 8\n\
                    destination = \"01:00:5e:00:00:01\"\nrate_hz = 20\ntalker = \"a\"\n\
                    listeners = [\"b\"]\n";
        let system = TestSystem::new(text);
        let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/");
        for name in ["talker", "follow", "opens"] {
            let source = format!("{from}{name}.c");
            system.compile(source.as_ref(), name, &["-DPERIOD_NS=50000000LL"]);
        }
        let deploy = ["plan", ".", "--backend", "network-code", "--deploy", "tables"];
        let said = run(&deploy, system.path(), 0).stderr;
        let said = String::from_utf8(said).expect("UTF-8");
        assert!(said.contains("plan with `--slot-error`"), "{said}");
        run(&[&deploy[..], &["--slot-error", "5ms"]].concat(), system.path(), 0);
        Self { hosts, system, until: MonoTime::now() + Span::from_s(60) }
    }

    fn command(&self, name: &str, host: &str) -> Command {
        let mut command = Command::new(self.system.path().join("build").join(name));
        command.env_remove("ONBEAT_COORDINATOR").env("ONBEAT_INTERFACE", "eth0");
        command.env("ONBEAT_SYSTEM", self.system.path().join(format!("tables/{host}.channels")));
        command
    }

    fn program(&self, name: &str, host: usize) -> Running {
        Running::start(&self.hosts[host], self.command(name, ["a", "b"][host]))
    }

    /// How a program ends that opens a host's end and closes it, and what it says.
    fn opens(&self, host: usize) -> (Option<i32>, String) {
        let mut command = self.command("opens", ["a", "b"][host]);
        command.arg(["talker", "listener"][host]);
        let output = within(&self.hosts[host], || command.output().expect("it runs"));
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    }

    fn station(&self, host: usize) -> Running {
        let name = ["a", "b"][host];
        let [image, table] = ["ncb", "channels"].map(|it| format!("tables/{name}.{it}"));
        let mut command = onbeat();
        command.args(["nc", "run", &image, "--interface", "eth0", "--table", &table, "--json"]);
        command.current_dir(self.system.path());
        Running::start(&self.hosts[host], command)
    }

    /// Waits until a listener has had so many messages.
    fn received(&self, listener: &Running, at_least: i64) {
        while count(listener.pid(), "received") < at_least {
            assert!(MonoTime::now() < self.until, "too few messages came");
        }
    }

    /// What a station says that is given another table.
    fn refused(&self, table: &str) -> String {
        let words = ["nc", "run", "tables/a.ncb", "--interface", "lo", "--table", table];
        String::from_utf8(run(&words, self.system.path(), 5).stderr).expect("UTF-8")
    }
}

#[test]
fn programs_without_a_run_open_their_channels_at_the_station_of_their_host() {
    let here = match cable() {
        Ok(hosts) => Deployed::new(hosts),
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let (code, said) = here.opens(1);
    assert!(code == Some(1) && said.contains("no station runs on `eth0`"), "{said}");
    let mut stations = [0, 1].map(|host| here.station(host));
    // A station takes its name when it is ready.
    for host in [0, 1] {
        while here.opens(host).0 != Some(0) {
            assert!(MonoTime::now() < here.until, "the station never was ready");
        }
    }
    let listener = here.program("follow", 1);
    let mut talker = here.program("talker", 0);
    here.received(&listener, 5);
    let (code, said) = here.opens(1);
    assert!(code == Some(1) && said.contains("another program of this host has this"), "{said}");
    // Whoever ends gives its end back, and another one goes on.
    talker.end();
    let before = count(listener.pid(), "received");
    let talker = here.program("talker", 0);
    here.received(&listener, before + 5);
    drop(talker);
    let counters = stations.each_mut().map(|station| {
        let document: Value = serde_json::from_slice(&station.end()).expect("JSON");
        document["counters"].clone()
    });
    let troubles = ["traps", "messages_malformed", "messages_overflowed", "data_unknown"];
    for counters in &counters {
        assert!(troubles.iter().all(|what| counters[what] == 0), "{counters}");
    }
    assert!(number(&counters[0], "data_sent") >= number(&counters[1], "data_received"));
    let said = here.refused("tables/b.channels");
    assert!(said.contains("the table of host `b`, the program is of `a`"), "{said}");
    run(&["plan", ".", "--deploy", "bridges"], here.system.path(), 0);
    let said = here.refused("bridges/a.channels");
    assert!(said.contains("the table of a host without a station"), "{said}");
}
