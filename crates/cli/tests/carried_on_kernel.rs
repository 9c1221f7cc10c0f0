//! Stations that carry the channels of unchanged programs on networks of the kernel: in a run in
//! namespaces, in the part of a run on an interface, and without a run.

use crate::common::{TestSystem, channel, number, onbeat, permitted, programs, results, run, two_hosts};
use onbeat_testkit::{Need, cable, not_run, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OVER_STATIONS: [&str; 5] = ["run", ".", "--backend", "network-code", "--network"];

/// Two hosts whose messages come each 50 ms: however busy the machine is, stations are rarely 5 ms
/// late.
fn seldom() -> TestSystem {
    let text = two_hosts(&programs("", "")).replace("rate_hz = 1000", "rate_hz = 20");
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
    assert_eq!((sum("unsent"), sum("overruns")), (0, 0), "{stations}");
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
    let system = seldom();
    let seen = results(&[&OVER_STATIONS[..], &["netns"]].concat(), system.path(), 0);
    is_accounted_for(&seen);
    assert_eq!(seen["runs"][0]["stations"]["stations"].as_array().map(Vec::len), Some(2));
    // The report is made again from the records.
    assert_eq!(results(&["report", "."], system.path(), 0), seen);
    let page = std::fs::read_to_string(system.path().join("out/report.html")).expect("a page");
    for shown in ["Slot error p50", "unknown, nobody sees those of the kernel"] {
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

#[test]
fn what_stations_do_not_do_is_refused() {
    let system = seldom();
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
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it runs");
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

#[test]
fn programs_without_a_run_open_their_channels_at_the_station_of_their_host() {
    let hosts = match cable() {
        Ok(hosts) => hosts,
        Err(why) => return not_run(Need::Namespaces, why),
    };
    let text = "\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"b\"]\n\
                rate_mbps = 1000\n[[channel]]\nname = \"c\"\nstream_id = 1\nclass = \"A\"\n\
                destination = \"01:00:5e:00:00:01\"\nsize_octets = 8\nrate_hz = 20\n\
                talker = \"a\"\nlisteners = [\"b\"]\n";
    let text = format!("format = 1\nname = \"cable\"\n[run]\nduration_s = 1\n{text}");
    let system = TestSystem::new(&text);
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/");
    for (source, name) in [("talker.c", "left"), ("follow.c", "right"), ("opens.c", "opens")] {
        system.compile(format!("{from}{source}").as_ref(), name, &["-DPERIOD_NS=50000000LL"]);
    }
    let deploy = ["plan", ".", "--backend", "network-code", "--deploy", "tables"];
    let said = run(&deploy, system.path(), 0).stderr;
    assert!(String::from_utf8(said).expect("UTF-8").contains("plan with `--slot-error`"));
    run(&[&deploy[..], &["--slot-error", "5ms"]].concat(), system.path(), 0);

    let program = |host: usize, name: &str, table: &str| {
        let mut command = Command::new(system.path().join("build").join(name));
        command.env_remove("ONBEAT_COORDINATOR").env("ONBEAT_INTERFACE", "eth0");
        command.env("ONBEAT_SYSTEM", system.path().join(table)).stderr(Stdio::piped());
        if name == "opens" {
            command.arg("listener");
            let output = within(&hosts[host], || command.output().expect("it runs"));
            return Err((output.status.code(), String::from_utf8(output.stderr).expect("UTF-8")));
        }
        Ok(Running::start(&hosts[host], command))
    };
    let refused = |host, name: &str, table: &str| program(host, name, table).err().expect("an end");
    let (code, said) = refused(1, "opens", "tables/b.channels");
    assert!(code == Some(1) && said.contains("no station runs on `eth0`"), "{said}");

    let station = |host: usize, name: &str| {
        let mut command = onbeat();
        let [image, table] = ["ncb", "channels"].map(|it| format!("tables/{name}.{it}"));
        command.args(["nc", "run", &image, "--interface", "eth0", "--table", &table, "--json"]);
        command.current_dir(system.path());
        Running::start(&hosts[host], command)
    };
    let mut stations = [station(0, "a"), station(1, "b")];
    let until = Instant::now() + Duration::from_secs(60);
    // A station takes its name when it is ready.
    while refused(1, "opens", "tables/b.channels").0 != Some(0) {
        assert!(Instant::now() < until, "the station never was ready");
    }
    let listener = program(1, "right", "tables/b.channels").expect("it starts");
    let received = |at_least| {
        while count(listener.pid(), "received") < at_least {
            assert!(Instant::now() < until, "too few messages came");
        }
    };
    let mut talker = program(0, "left", "tables/a.channels").expect("it starts");
    received(5);
    let (code, said) = refused(1, "opens", "tables/b.channels");
    assert!(code == Some(1) && said.contains("another program of this host has this"), "{said}");
    // Whoever ends gives its end back, and another one goes on.
    talker.end();
    let before = count(listener.pid(), "received");
    let talker = program(0, "left", "tables/a.channels").expect("it starts");
    received(before + 5);
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

    let wrong = |table: &str, code| {
        let words = ["nc", "run", "tables/a.ncb", "--interface", "lo", "--table", table];
        String::from_utf8(run(&words, system.path(), code).stderr).expect("UTF-8")
    };
    let said = wrong("tables/b.channels", 5);
    assert!(said.contains("the table of host `b`, the program is of `a`"), "{said}");
    run(&["plan", ".", "--deploy", "bridges"], system.path(), 0);
    let said = wrong("bridges/a.channels", 5);
    assert!(said.contains("the table of a host without a station"), "{said}");
}
