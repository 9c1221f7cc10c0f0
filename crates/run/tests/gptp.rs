//! Our gPTP node and ptp4l (linuxptp) on one cable, both ways round, with the kernel's time stamps.
//! ptp4l has lost the capability to set this machine's clock; our node never tries. Both ends read
//! the same clock, so what each should say is known. `ONBEAT_GPTP_SECONDS` (10) says how long.

use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{GptpNode, PortState, ask_ptp4l};
use onbeat_model::time::Span;
use onbeat_runtime::gptp::{Condition, Settings, UTC_OFFSET_S};
use onbeat_testkit::{Need, cable, not_run, within};
use rustix::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Far longer than anything takes: what comes at all comes before.
const LONG: Span = Span::from_s(60);
/// What software time stamps let the delay of a link look like at most.
const THRESHOLD: Span = Span::from_ms(100);
/// Far more than time stamps of a kernel are off at the median, far less than a mistake of units,
/// sign or time scale would make.
const CLOSE: Span = Span::from_ms(1);

/// A ptp4l of ours on the second host, ended with the test.
struct Ptp4l {
    process: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Ptp4l {
    /// With the profile's settings, but patient: a busy machine is no fault.
    fn start(host: &OwnedFd, directory: &Path, priority1: u8, more: &str) -> Self {
        let [socket, log, config] = ["socket", "log", "config"].map(|name| directory.join(name));
        let capable = u8::from(priority1 < 255);
        let text = format!(
            "[global]\ngmCapable {capable}\npriority1 {priority1}\nlogAnnounceInterval 0\n\
             logSyncInterval -3\nsyncReceiptTimeout 40\nneighborPropDelayThresh {}\n\
             min_neighbor_prop_delay -20000000\nassume_two_step 1\npath_trace_enabled 1\n\
             follow_up_info 1\ntransportSpecific 0x1\nptp_dst_mac 01:80:C2:00:00:0E\n\
             announceReceiptTimeout 5\ntx_timestamp_timeout 1000\nfault_reset_interval 0\n\
             network_transport L2\ndelay_mechanism P2P\ntime_stamping software\n\
             pi_proportional_const 0.7\npi_integral_const 0.3\nuds_address {}\n{more}\n",
            THRESHOLD.as_ns(),
            socket.display(),
        );
        std::fs::write(&config, text).expect("a file");
        let output = std::fs::File::create(&log).expect("a file");
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-sys_time", "ptp4l", "-i", "eth0", "-m", "-q", "-f"]);
        command.arg(&config).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null()).stderr(output.try_clone().expect("a file")).stdout(output);
        let process = within(host, || command.spawn()).expect("setpriv");
        Self { process, socket, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("its log")
    }

    /// It took all that came for messages.
    fn assert_content(&self) {
        let log = self.log();
        for complaint in ["bad message", "without timestamp", "invalid"] {
            assert!(!log.contains(complaint), "{complaint}:\n{log}");
        }
    }
}

impl Drop for Ptp4l {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The cable and a directory; `None`, after one line that says why, where this cannot be.
fn ready() -> Option<([OwnedFd; 2], tempfile::TempDir)> {
    let there = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(program).exists())
    };
    if !there("ptp4l") || !there("setpriv") {
        not_run(Need::Tools, "ptp4l (linuxptp) or setpriv is not installed");
        return None;
    }
    match cable() {
        Ok(hosts) => Some((hosts, tempfile::tempdir().expect("a directory"))),
        Err(error) => {
            not_run(Need::Namespaces, error);
            None
        }
    }
}

fn seconds() -> Span {
    let wanted = std::env::var("ONBEAT_GPTP_SECONDS").ok().and_then(|s| s.parse().ok());
    Span::from_s(wanted.unwrap_or(10))
}

/// How long somebody has followed. On a machine that is too busy to send Sync in time, it is left
/// off and begun again, as it should be.
struct Following {
    begun: MonoTime,
    last: MonoTime,
    total: Span,
}

impl Following {
    fn begin() -> Self {
        let now = MonoTime::now();
        Self { begun: now, last: now, total: Span::ZERO }
    }

    /// Whether it was long enough, if it follows now; `None` if it takes far too long.
    fn is_enough(&mut self, follows: bool) -> Option<bool> {
        let now = MonoTime::now();
        if follows {
            self.total += now - self.last;
        }
        self.last = now;
        (now - self.begun < LONG + seconds() * 3).then_some(self.total >= seconds())
    }
}

fn open(host: &OwnedFd, priority1: u8, adapt: impl Fn(&mut Settings) + Sync) -> GptpNode {
    let all = |settings: &mut Settings| {
        settings.mean_link_delay_threshold = THRESHOLD;
        adapt(settings);
    };
    within(host, || GptpNode::open(&["eth0"], priority1, all)).expect("a node")
}

fn median(mut values: Vec<Span>) -> Span {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Only in the description of a failure.
fn summary(values: &[Span]) -> String {
    let (min, max) = (values.iter().min(), values.iter().max());
    format!("{} values, {min:?} to {max:?}, median {}", values.len(), median(values.to_vec()))
}

#[test]
fn ptp4l_follows_our_node_and_reports_by_how_much_our_time_is_another_one() {
    let Some((hosts, directory)) = ready() else { return };
    // This machine's clock shows UTC; what ptp4l should find is the rest.
    let ahead = Span::from_ms(3);
    let mut node = open(&hosts[0], 100, |settings| {
        settings.ahead = Span::from_s(UTC_OFFSET_S.into()) + ahead;
    });
    // Its servo turns a clock that does not turn; it must not take that for a fault.
    let ptp4l = Ptp4l::start(&hosts[1], directory.path(), 255, "sanity_freq_limit 0");
    let over = AtomicBool::new(false);
    let offsets = std::thread::scope(|scope| {
        let ours = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                node.step(Span::from_ms(100)).expect("an interface");
            }
            node.node().condition()
        });
        let offsets = within(&hosts[1], || {
            let (mut following, mut offsets) = (Following::begin(), Vec::new());
            loop {
                let answer = ask_ptp4l(&ptp4l.socket, 0);
                let slave = answer.as_ref().ok().filter(|s| s.state == PortState::Slave);
                if let Some(status) = slave {
                    assert!(status.has_grandmaster);
                    offsets.push(status.offset);
                }
                match following.is_enough(slave.is_some()) {
                    Some(true) => return Ok(offsets),
                    Some(false) => pause(Span::from_ms(125)),
                    None => return Err(format!("{answer:?}\n{}", ptp4l.log())),
                }
            }
        });
        over.store(true, Ordering::Relaxed);
        assert_eq!(ours.join().expect("no panic"), Condition::Grandmaster);
        offsets.unwrap_or_else(|error| panic!("ptp4l is not SLAVE for long enough: {error}"))
    });
    println!("ptp4l behind our grandmaster: {}", summary(&offsets));
    // It cannot correct its clock, so it continues to see it behind.
    let off = median(offsets.clone()) + ahead;
    assert!(off.abs() < CLOSE, "{}", summary(&offsets));
    ptp4l.assert_content();
}

#[test]
fn our_node_follows_ptp4l_and_shows_its_time() {
    let Some((hosts, directory)) = ready() else { return };
    let ptp4l = Ptp4l::start(&hosts[1], directory.path(), 100, "free_running 1");
    let mut node = open(&hosts[0], 255, |_| {});
    let mut following = Following::begin();
    let (mut errors, mut offsets) = (Vec::new(), Vec::new());
    loop {
        node.step(Span::from_ms(20)).expect("an interface");
        let slave = node.node().condition() == Condition::Slave(0);
        if slave {
            // ptp4l distributes this machine's CLOCK_REALTIME as it is.
            let (reading, clock) = node.read().expect("a slave's clock is set");
            errors.push((reading.since_epoch() - clock.since_epoch()).span());
            offsets.extend(node.node().last_offset());
        }
        let enough = following.is_enough(slave);
        if enough.unwrap_or_else(|| panic!("it does not follow: {node:?}\n{}", ptp4l.log())) {
            break;
        }
    }
    let delay = node.node().link(0).expect("a link").delay.span();
    println!(
        "our node behind ptp4l: delay {delay}, error of the clock: {}; measured offset: {}",
        summary(&errors),
        summary(&offsets)
    );
    assert!(Span::ZERO < delay && delay < THRESHOLD, "{delay}");
    assert!(median(errors.clone()).abs() < CLOSE, "{}", summary(&errors));
    assert!(median(offsets.clone()).abs() < CLOSE, "{}", summary(&offsets));
    assert_eq!(node.node().steps_removed(), 1);
    ptp4l.assert_content();
}
