//! Noise between two network namespaces, with the real command. Where these are not permitted,
//! each test says so.

use onbeat::clock::pause;
use onbeat_model::time::Span;
use onbeat_testkit::{Need, not_run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

/// A namespace, held by a process that ends when its input does.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Host {
    fn new() -> Result<Self, String> {
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sh", "-c", "echo ready; cat"]);
        holder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = holder.spawn().map_err(|error| format!("unshare: {error}"))?;
        let mut line = String::new();
        let said = BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line);
        let host = Self(holder);
        match said {
            Ok(_) if line == "ready\n" => Ok(host),
            _ => Err("network namespaces are not permitted here".to_owned()),
        }
    }

    /// A command that runs inside.
    fn command(&self, program: &str, words: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.0.id().to_string(), program]);
        command.args(words.split(' '));
        command
    }

    fn run(&self, program: &str, words: &str) -> Result<(), String> {
        let output = self.command(program, words).output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        output.status.success().then_some(()).ok_or_else(|| format!("{program} {words}: {said}"))
    }

    fn onbeat(&self, words: &str) -> Command {
        self.command(env!("CARGO_BIN_EXE_onbeat"), words)
    }
}

/// Two hosts on one cable; `None`, after one line that says why, where there is no such thing.
fn pair() -> Option<[Host; 2]> {
    let build = || {
        let hosts = [Host::new()?, Host::new()?];
        let far = hosts[1].0.id();
        hosts[0].run("ip", &format!("link add eth0 type veth peer name eth0 netns {far}"))?;
        for (host, number) in hosts.iter().zip(1..) {
            host.run("ip", "link set lo up")?;
            host.run("ip", "link set eth0 up")?;
            host.run("ip", &format!("address add 10.0.0.{number}/24 dev eth0"))?;
        }
        Ok(hosts)
    };
    build().map_err(|error: String| not_run(Need::Namespaces, error)).ok()
}

fn lines(output: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(output);
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} is a number in {value}"))
}

/// A sink that is ready; it ends when it is told to.
struct Sink(Child);

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Sink {
    fn start(host: &Host) -> Self {
        let mut command = host.onbeat("noise sink eth0 --json");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut sink = Self(command.spawn().expect("a sink"));
        let mut line = String::new();
        let errors = sink.0.stderr.as_mut().expect("a pipe");
        BufReader::new(errors).read_line(&mut line).expect("it says that it is ready");
        assert!(line.contains("noise is counted at"), "{line}");
        sink
    }

    /// What it counted in all, when it has counted so many or says itself why not.
    fn finish(mut self) -> Value {
        let term = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(term.expect("kill").success());
        let mut text = Vec::new();
        self.0.stdout.take().expect("a pipe").read_to_end(&mut text).expect("its lines");
        assert!(self.0.wait().expect("its end").success());
        lines(&text).pop().expect("a total")
    }
}

fn output(mut command: Command, expected: i32) -> Output {
    let output = command.output().expect("onbeat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(expected), "{said}");
    output
}

#[test]
fn all_that_is_sent_arrives_and_each_second_is_told() {
    let Some([a, b]) = pair() else { return };
    let sink = Sink::start(&b);
    let directory = tempfile::tempdir().expect("a directory");
    let csv = directory.path().join("noise.csv");
    let words = format!(
        "noise send eth0 --rate 20mbit --size 1000 --threads 2 --on 300ms --off 700ms --duration \
         2500ms --json --csv {}",
        csv.display()
    );
    let lines = lines(&output(a.onbeat(&words), 0).stdout);
    let (total, seconds) = lines.split_last().expect("lines");
    assert_eq!(seconds.iter().map(|s| number(s, "second")).collect::<Vec<_>>(), [1, 2]);
    assert!(total["second"].is_null() && total["role"] == "send");
    let sent = number(total, "datagrams");
    // 20 Mb/s of the wire, 1,066 octets each, three times 300 ms: 2,110 are due, less what a busy
    // machine leaves out; what it leaves out it says.
    let due = 20_000_000 * 9 / 10 / (1_066 * 8);
    let all = sent + number(total, "skipped");
    assert!(sent > 0 && (due - 8..=due + 8).contains(&all), "{all} of {due}: {total}");
    assert_eq!(number(total, "payload_octets"), sent * 1_000);
    assert_eq!(number(total, "wire_octets"), sent * 1_066);
    let told: u64 = seconds.iter().map(|second| number(second, "datagrams")).sum();
    assert!(told <= sent, "{told} of {sent}");
    let rows = std::fs::read_to_string(&csv).expect("a file");
    let rows: Vec<_> = rows.lines().map(|line| line.split(',').collect::<Vec<_>>()).collect();
    assert_eq!((rows.len(), rows[0][2], rows[0].len()), (3, "datagrams", rows[1].len()));
    let counted = sink.finish();
    assert_eq!(number(&counted, "datagrams") + number(&counted, "overrun"), sent, "{counted}");
    assert_eq!(number(&counted, "payload_octets"), number(&counted, "datagrams") * 1_000);
    // Of what ran over, the sink knows all but what would have come last.
    assert!(number(&counted, "lost") <= number(&counted, "overrun"), "{counted}");
}

#[test]
fn with_offload_each_datagram_arrives_as_one_too() {
    let Some([a, b]) = pair() else { return };
    let sink = Sink::start(&b);
    let words = "noise send eth0 --rate 50mbit --size 1000 --offload --duration 1s --json";
    let total = lines(&output(a.onbeat(words), 0).stdout).pop().expect("a total");
    let counted = sink.finish();
    let sent = number(&total, "datagrams");
    assert!(sent > 0, "{total}");
    assert_eq!(number(&counted, "datagrams") + number(&counted, "overrun"), sent, "{counted}");
    assert_eq!(number(&counted, "payload_octets"), number(&counted, "datagrams") * 1_000);
}

#[test]
fn what_a_slow_link_does_not_take_is_left_out_and_said() {
    let Some([a, b]) = pair() else { return };
    let tbf = "qdisc add dev eth0 root tbf rate 5mbit burst 10kb limit 20kb";
    if let Err(error) = a.run("tc", tbf) {
        not_run(Need::Machine, error);
        return;
    }
    let sink = Sink::start(&b);
    let words = "noise send eth0 --rate 50mbit --duration 1s --json";
    let total = lines(&output(a.onbeat(words), 0).stdout).pop().expect("a total");
    let sent = number(&total, "datagrams");
    assert!(number(&total, "skipped") > sent, "a tenth fits: {total}");
    // What the queue still holds leaves it within 33 ms; the sink is told to end after that.
    pause(Span::from_ms(500));
    let counted = sink.finish();
    assert_eq!(number(&counted, "datagrams") + number(&counted, "overrun"), sent, "{counted}");
}

#[test]
fn a_default_route_is_spared_unless_forced() {
    let Some([a, b]) = pair() else { return };
    let quiet = "noise send eth0 --rate 1mbit --duration 300ms --json";
    a.run("ip", "route add default via 10.0.0.2").expect("a route");
    for words in [quiet, "noise send --to 192.0.2.1 --rate 1mbit --duration 300ms --json"] {
        let refused = output(a.onbeat(words), 2);
        let said = String::from_utf8_lossy(&refused.stderr);
        let expected = ["`eth0` carries a default route", "--force"];
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("noise to"), "nothing is sent: {said}");
    }
    let forced = output(a.onbeat(&format!("{quiet} --force")), 0);
    let total = lines(&forced.stdout).pop().expect("a total");
    assert!(number(&total, "datagrams") > 0, "{total}");
    // The other host has no such route.
    output(b.onbeat(quiet), 0);
}

#[test]
fn what_does_not_fit_a_frame_and_an_interface_that_is_not_there_are_refused() {
    let Some([a, _b]) = pair() else { return };
    let long = output(a.onbeat("noise send eth0 --rate 1mbit --size 1473 --duration 1s"), 2);
    let said = String::from_utf8_lossy(&long.stderr);
    assert!(said.contains("at most 1472"), "{said}");
    let none = output(a.onbeat("noise send eth7 --rate 1mbit --duration 1s"), 5);
    assert!(String::from_utf8_lossy(&none.stderr).contains("`eth7`"));
    output(a.onbeat("noise send eth0 --rate fast"), 2);
}
