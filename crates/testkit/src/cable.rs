//! Two hosts in network namespaces, on one cable.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, nanosleep, unshare_unsafe,
};
use rustix::time::Timespec;
use std::fs::File;
use std::process::Command;

/// Runs a command, a program and its words, in the calling thread's namespace.
///
/// # Errors
/// When it does not end well: what it says.
pub fn run(command: &str) -> Result<(), String> {
    let mut words = command.split(' ');
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Runs in a network namespace, on a thread of its own.
pub fn within<T: Send>(host: &OwnedFd, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(host.as_fd(), network).expect("a namespace of ours");
            body()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn new_namespace() -> Result<OwnedFd, String> {
    let thread = std::thread::spawn(|| {
        // SAFETY: only this thread changes its namespace, and it ends here.
        #[allow(unsafe_code)]
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
            .map_err(|error| format!("a network namespace: {error}"))?;
        let file = File::open("/proc/thread-self/ns/net").map_err(|e| e.to_string())?;
        Ok(OwnedFd::from(file))
    });
    thread.join().expect("no panic")
}

/// Two hosts on one cable; each has one interface, `eth0`, which is up. They are gone when the
/// descriptors of their namespaces are closed.
///
/// # Errors
/// When this machine does not permit or have it: why.
pub fn cable() -> Result<[OwnedFd; 2], String> {
    let hosts = [new_namespace()?, new_namespace()?];
    let far = format!("/proc/{}/fd/{}", std::process::id(), hosts[1].as_raw_fd());
    within(&hosts[0], || run(&format!("ip link add eth0 type veth peer eth0 netns {far}")))?;
    for host in &hosts {
        within(host, || run("ip link set eth0 up"))?;
    }
    Ok(hosts)
}

/// The bridge's namespace, and each host's; see [`bridged`].
pub type Bridged = (OwnedFd, Vec<OwnedFd>);

/// So many hosts on the ports of a Linux bridge: each has one interface, `eth0`; the bridge's are
/// `p0`, `p1`, … in its own namespace. All are up.
///
/// # Errors
/// When this machine does not permit or have it: why.
pub fn bridged(hosts: usize) -> Result<Bridged, String> {
    let bridge = new_namespace()?;
    let far = format!("/proc/{}/fd/{}", std::process::id(), bridge.as_raw_fd());
    within(&bridge, || {
        run("ip link add br0 type bridge")?;
        run("ip link set br0 up")
    })?;
    let host = |port: usize| {
        let host = new_namespace()?;
        within(&host, || {
            run(&format!("ip link add eth0 type veth peer p{port} netns {far}"))?;
            run("ip link set lo up")?;
            run("ip link set eth0 up")
        })?;
        within(&bridge, || {
            run(&format!("ip link set p{port} master br0"))?;
            run(&format!("ip link set p{port} up"))
        })?;
        Ok(host)
    };
    let hosts: Vec<OwnedFd> = (0..hosts).map(host).collect::<Result<_, String>>()?;
    within(&bridge, || wait_for_ports(hosts.len()))?;
    Ok((bridge, hosts))
}

/// Waits until so many ports of the bridge forward: the kernel notices later that a link is up.
fn wait_for_ports(ports: usize) -> Result<(), String> {
    for _ in 0..1_000 {
        let output = Command::new("bridge").arg("link").output().map_err(|e| e.to_string())?;
        let links = String::from_utf8_lossy(&output.stdout).into_owned();
        if links.matches("state forwarding").count() == ports {
            return Ok(());
        }
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 });
    }
    Err(format!("not all of {ports} ports of a bridge forward"))
}
