//! `onbeat top` beside programs that count for themselves: what it prints, and what is on a
//! terminal.

use crate::common::{TestSystem, number, onbeat, run, two_hosts};
use onbeat::Span;
use onbeat_testkit::{Need, bridged, not_run, run as run_tool, within};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often to look for what must come on a busy machine before it counts as not coming.
const LOOKS: u32 = 1_200;
/// How often to look.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A child that ends with the test, however that ends.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    /// Ends it; it has to end well.
    fn end(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.0.wait().expect("an end").code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Two hosts on interfaces with a channel of this test's at 1 kHz, from the first to the second.
struct Cell {
    system: TestSystem,
    channel: String,
    bridge: OwnedFd,
    hosts: Vec<OwnedFd>,
}

impl Cell {
    fn new() -> Option<Self> {
        static CELLS: AtomicU32 = AtomicU32::new(0);
        let (bridge, hosts) = match bridged(2) {
            Ok(made) => made,
            Err(why) => {
                not_run(Need::Namespaces, why);
                return None;
            }
        };
        let number = CELLS.fetch_add(1, Ordering::Relaxed);
        let channel = format!("top_{}_{number}", std::process::id());
        let text = two_hosts("").replace("name = \"c\"", &format!("name = \"{channel}\""));
        let system = TestSystem::new(&text);
        run(&["plan", ".", "--deploy", "tables"], system.path(), 0);
        Some(Self { system, channel, bridge, hosts })
    }

    fn start(&self, host: usize, words: &[&str], output: Stdio) -> Running {
        let table = ["tables/a.channels", "tables/b.channels"][host];
        let mut command = onbeat();
        command.args([words[0], &self.channel]).args(&words[1..]);
        command.args(["--interface", "eth0", "--table", table]);
        command.current_dir(self.system.path()).stdin(Stdio::piped()).stdout(output);
        Running(within(&self.hosts[host], || command.spawn().expect("onbeat runs")))
    }

    /// Whether the bridge passes frames on to the listener.
    fn passes(&self, does: bool) {
        let how = if does { "on" } else { "off" };
        within(&self.bridge, || {
            run_tool(&format!("bridge link set dev p1 flood {how} mcast_flood {how}"))
        })
        .expect("a bridge");
    }

    /// The command as it prints JSON of the channel.
    fn watched(&self) -> (Running, Lines<BufReader<ChildStdout>>) {
        let child = onbeat()
            .args(["top", "--json", "--interval", "100ms", "--channel", &self.channel])
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("onbeat runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        (Running(child), lines)
    }
}

/// Reads documents until one of an end is as wanted; adds up what the end had in each interval.
struct Sums<'a> {
    documents: &'a mut Lines<BufReader<ChildStdout>>,
    sent: i64,
    received: i64,
    lost: i64,
    /// Mean latencies times the messages that had them.
    latency_ns: i64,
}

impl Sums<'_> {
    fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..LOOKS {
            let line = self.documents.next().expect("a line").expect("text");
            let document: Value = serde_json::from_str(&line).expect("JSON");
            let kind = (document["format"].as_str(), document["version"].as_i64());
            assert_eq!(kind, (Some("onbeat-top"), Some(1)));
            assert!(number(&document, "elapsed_ns") >= 100_000_000, "a whole interval");
            for end in document["endpoints"].as_array().expect("endpoints") {
                if end["in_interval"].is_null() {
                    continue;
                }
                let received = number(end, "in_interval.received");
                self.sent += number(end, "in_interval.sent");
                self.received += received;
                self.lost += number(end, "in_interval.lost");
                if received > 0 {
                    self.latency_ns += number(end, "latency_mean_ns") * received;
                }
            }
            if holds(&document) {
                return document;
            }
        }
        panic!("not within {LOOKS} intervals: {what}");
    }
}

/// An end of a document that was there in the interval before, too.
fn known<'a>(document: &'a Value, role: &str) -> Option<&'a Value> {
    let ends = document["endpoints"].as_array()?;
    ends.iter().find(|end| end["end"] == role && !end["in_interval"].is_null())
}

fn write_messages(input: &mut ChildStdin, count: usize) {
    for _ in 0..count {
        input.write_all(b"0100000000000000\n").expect("written");
    }
    input.flush().expect("written");
}

/// What `echo` said of each message that it had: messages, lost ones, the sum of all latencies and
/// the largest.
fn told(path: &Path) -> [i64; 4] {
    let text = std::fs::read_to_string(path).expect("what echo printed");
    let mut told = [0, 0, 0, i64::MIN];
    for line in text.lines().skip(1) {
        let fields: Vec<i64> =
            line.split(',').take(4).map(|n| n.parse().expect("a number")).collect();
        let [_, _, lost, latency] = fields.try_into().expect("four fields");
        told = [told[0] + 1, told[1] + lost, told[2] + latency, told[3].max(latency)];
    }
    told
}

#[test]
fn figures_are_those_of_the_programs_themselves() {
    let Some(cell) = Cell::new() else { return };
    let csv = cell.system.path().join("echo.csv");
    let (top, mut documents) = cell.watched();
    let mut sums = Sums { documents: &mut documents, sent: 0, received: 0, lost: 0, latency_ns: 0 };
    let echo = cell.start(1, &["echo", "--csv"], File::create(&csv).expect("a file").into());
    sums.until("a listener", |all| known(all, "listener").is_some());
    let mut publish = cell.start(0, &["pub"], Stdio::null());
    let input = &mut publish.0.stdin.take().expect("a pipe");
    sums.until("a talker", |all| known(all, "talker").is_some());
    let mut both = |count: i64, sent: i64| {
        let has = |end: Option<&Value>, name: &str, count| {
            end.is_some_and(|end| number(end, name) == count)
        };
        sums.until(&format!("{count} messages"), |all| {
            has(known(all, "talker"), "sent", sent)
                && has(known(all, "listener"), "received", count)
        })
    };
    write_messages(input, 300);
    both(300, 300);
    cell.passes(false);
    write_messages(input, 50);
    both(300, 350);
    cell.passes(true);
    write_messages(input, 10);
    let last = both(310, 360);
    // The same by hand, once for a person: totals of two tables.
    let words =
        ["top", "--batch", "--count", "2", "--interval", "100ms", "--channel", &cell.channel];
    let output = run(&words, Path::new("/"), 0);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        text.matches("onbeat top: 2 endpoints of 2 programs, by problems").count(),
        2,
        "{text}"
    );
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |role| rows.iter().rfind(|row| row.get(3) == Some(&role)).expect("a row").clone();
    let (talks, listens) = (row("talker"), row("listener"));
    assert_eq!((talks[4], talks[5], talks[6], talks[7]), ("0", "1000", "360", "-"), "{text}");
    assert_eq!(
        (listens[4], listens[6], listens[9], listens[12]),
        ("0", "310", "50", "-"),
        "{text}"
    );
    // Once echo has ended, it has printed all that it had.
    publish.end();
    echo.end();
    let gone = |all: &Value| all["endpoints"].as_array().is_some_and(Vec::is_empty);
    sums.until("that nothing is left", gone);
    top.end();
    let [messages, lost, latency, worst] = told(&csv);
    assert_eq!((messages, lost), (310, 50), "what echo counted");
    assert_eq!((sums.sent, sums.received, sums.lost), (360, 310, 50));
    let listener = known(&last, "listener").expect("the listener");
    assert_eq!(number(listener, "latency_worst_ns"), worst);
    // Each mean is rounded by at most half a nanosecond.
    let apart = (sums.latency_ns - latency).abs();
    assert!(apart <= messages, "{} and {latency}", sums.latency_ns);
    let talker = known(&last, "talker").expect("the talker");
    assert_eq!(
        (number(talker, "interval_ns"), &talker["latency_worst_ns"]),
        (1_000_000, &Value::Null)
    );
}

/// A terminal of which this test is the other side, and the command on it.
struct OnTerminal {
    master: File,
    slave: File,
    before: Termios,
    top: Running,
    octets: Vec<u8>,
}

fn size(columns: u16, lines: u16) -> Winsize {
    Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl OnTerminal {
    fn new(words: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("its name");
        tcsetwinsize(&master, size(80, 24)).expect("a size");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(path, flags, Mode::empty()).expect("the terminal");
        let slave = File::from(slave);
        let before = tcgetattr(&slave).expect("its mode");
        let side = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_onbeat"), "top", "--interval", "200ms"])
            .args(words)
            .env("TERM", "xterm")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn();
        let top = Running(child.expect("setsid"));
        Self { master: File::from(master), slave, before, top, octets: Vec::new() }
    }

    /// Takes what comes within a look.
    fn take(&mut self) {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut ready, Some(&LOOK)).expect("poll") > 0 {
            let mut octets = [0; 1 << 16];
            let count = self.master.read(&mut octets).expect("what is on the screen");
            self.octets.extend(&octets[..count]);
        }
    }

    /// Waits for a screen; its lines.
    fn until(&mut self, what: &str, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        for _ in 0..LOOKS {
            let screen = screen(&self.octets);
            if holds(&screen) {
                return screen;
            }
            self.take();
        }
        panic!("never on the screen: {what}: {:#?}", screen(&self.octets));
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("pressed");
    }

    fn resize(&self, columns: u16, lines: u16) {
        tcsetwinsize(&self.master, size(columns, lines)).expect("a size");
    }

    /// Waits for the end of the command, which has to leave the terminal as it was.
    fn ends_restored(mut self, code: i32) {
        let mut ended = None;
        for _ in 0..LOOKS {
            self.take();
            ended = self.top.0.try_wait().expect("it can be asked");
            if ended.is_some() {
                break;
            }
        }
        self.take();
        assert_eq!(ended.and_then(|status| status.code()), Some(code));
        let text = String::from_utf8_lossy(&self.octets);
        let last = |of: [&str; 2]| of.map(|part| text.rfind(part));
        for (on, off) in
            [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")]
        {
            let [on, off] = last([on, off]);
            assert!(on.is_some() && off > on, "{text:?}");
        }
        let modes =
            |of: &Termios| (of.input_modes, of.output_modes, of.local_modes, of.control_modes);
        let after = tcgetattr(&self.slave).expect("its mode");
        assert_eq!(modes(&after), modes(&self.before));
    }
}

/// What a terminal shows that got these octets. Sequences other than those that move the cursor or
/// clear something only change how it looks.
fn screen(octets: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(octets);
    let mut lines: Vec<Vec<char>> = vec![Vec::new(); 60];
    let (mut at, mut rest) = ((0, 0), text.chars());
    while let Some(c) = rest.next() {
        if c == '\x1b' {
            let mut parameters = String::new();
            let kind = rest.find(|c| {
                parameters.push(*c);
                c.is_ascii_alphabetic()
            });
            let numbers = parameters.trim_matches(|c: char| !c.is_ascii_digit());
            let mut numbers = numbers.split(';').map(|n| n.parse::<usize>().unwrap_or(1));
            match kind {
                Some('H') => {
                    at = (numbers.next().unwrap_or(1) - 1, numbers.next().unwrap_or(1) - 1)
                }
                Some('J') if parameters == "[2J" => lines.iter_mut().for_each(Vec::clear),
                Some('J') => lines.iter_mut().skip(at.0).for_each(Vec::clear),
                Some('K') => lines[at.0].clear(),
                _ => {}
            }
            continue;
        }
        assert!(!c.is_control(), "{c:?} in {text:?}");
        let line = &mut lines[at.0];
        line.resize(line.len().max(at.1 + 1), ' ');
        line[at.1] = c;
        at.1 += 1;
    }
    let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// Whether the row of a talker, at 80 columns, has messages a second.
fn talks(screen: &[String]) -> bool {
    let row = screen.iter().find(|line| line.contains(" T "));
    let rate = row.and_then(|row| row.split_whitespace().skip_while(|word| *word != "T").nth(1));
    rate.is_some_and(|rate| rate.starts_with(|c: char| ('1'..='9').contains(&c)))
}

#[test]
fn on_a_terminal_it_follows_programs_keys_and_sizes_and_leaves_all_as_it_was() {
    let Some(cell) = Cell::new() else { return };
    let channel = cell.channel.clone();
    let publish = cell.start(0, &["pub", "0100000000000000", "--every", "5ms"], Stdio::null());
    let echo = cell.start(1, &["echo"], Stdio::null());
    let mut on = OnTerminal::new(&["--channel", &channel]);
    let shown = on.until("rates of two programs", |screen| {
        screen[0].starts_with("onbeat top: 2 endpoints of 2 programs, by problems, every 200 ms")
            && talks(screen)
    });
    assert!(shown[2].starts_with("program "), "{shown:#?}");
    assert!(shown[23].starts_with("q quit  s sort"), "{shown:#?}");
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:#?}");
    on.press("s");
    on.until("another order", |screen| screen[0].contains(", by rate, "));
    on.resize(160, 50);
    on.until("a larger screen", |screen| {
        screen[49].starts_with("q quit") && screen[23].is_empty() && screen[2].contains("messages")
    });
    on.press("r");
    on.until("a reset", |screen| screen[0].ends_with("totals since reset"));
    on.press(" ");
    on.until("a pause", |screen| screen[0].starts_with("onbeat top (paused): "));
    on.press(" ");
    drop(publish); // killed
    on.until("one program", |screen| screen[0].starts_with("onbeat top: 1 endpoint of 1 program"));
    on.resize(30, 5);
    on.until("a small screen", |screen| {
        screen[0].ends_with('…') && screen[5..].iter().all(String::is_empty)
    });
    on.press("\x1b[B\x1b[A\x1b[6~\x1b[5~xyz\x07q");
    on.ends_restored(0);
    echo.end();
}

#[test]
fn signals_end_it_and_leave_the_terminal_as_it_was() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut on = OnTerminal::new(&["--channel", "no such one"]);
        on.until("a view", |screen| {
            screen[2]
                == "No running program with channels, or none that --pid and --channel select."
        });
        let raw = tcgetattr(&on.slave).expect("its mode");
        assert_ne!(raw.local_modes, on.before.local_modes, "it is as the view needs it");
        on.top.signal(signal);
        on.ends_restored(0);
    }
    // The same key as everywhere, and a number of intervals.
    let mut on = OnTerminal::new(&["--channel", "no such one"]);
    on.until("a view", |screen| {
        screen[2] == "No running program with channels, or none that --pid and --channel select."
    });
    on.press("\x03");
    on.ends_restored(0);
    OnTerminal::new(&["--channel", "no such one", "--count", "2"]).ends_restored(0);
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let mut on = OnTerminal::new(&["--channel", "no such one"]);
    on.until("a view", |screen| {
        screen[2] == "No running program with channels, or none that --pid and --channel select."
    });
    let OnTerminal { master, slave, mut top, .. } = on;
    drop((master, slave));
    for _ in 0..LOOKS {
        if top.0.try_wait().expect("it can be asked").is_some() {
            return;
        }
        onbeat::clock::pause(Span::from_ms(50));
    }
    panic!("it does not end");
}

#[test]
fn what_others_write_as_names_does_not_reach_the_terminal() {
    use onbeat::shared_log::{Board, Identity};
    let board = Board::new().expect("a board");
    let mut end = board.end().expect("an end");
    let channel = format!("\x1b[2J\r\n\u{202e}{}", std::process::id());
    let (stream_id, role) = (onbeat_model::units::StreamId(9), onbeat_model::record::Role::Talker);
    end.introduce(&Identity { channel: channel.clone(), stream_id, role });
    let on = &mut OnTerminal::new(&["--channel", &channel]);
    let expected = format!("\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}{}", std::process::id());
    on.until("its row", |screen| screen[3].contains(&expected));
    assert!(!String::from_utf8_lossy(&on.octets).contains('\u{202e}'));
    let words = ["top", "--batch", "--count", "1", "--interval", "100ms", "--channel", &channel];
    let output = run(&words, Path::new("/"), 0);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains(&expected) && !text.contains(['\x1b', '\u{202e}', '\r']), "{text:?}");
}

#[test]
fn without_a_reader_it_ends_and_wrong_words_are_refused() {
    let mut child = Running(
        onbeat()
            .args(["top", "--interval", "100ms", "--channel", "no such one"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("onbeat runs"),
    );
    let mut first = BufReader::new(child.0.stdout.take().expect("a pipe"));
    first.read_line(&mut String::new()).expect("a line");
    drop(first);
    assert_eq!(child.0.wait().expect("an end").code(), Some(0));
    for wrong in [
        ["--interval", "99ms"],
        ["--interval", "2h"],
        ["--interval", "soon"],
        ["--count", "0"],
        ["--sort", "colour"],
        ["--pid", "left"],
    ] {
        run(&["top", wrong[0], wrong[1]], Path::new("/"), 2);
    }
}
