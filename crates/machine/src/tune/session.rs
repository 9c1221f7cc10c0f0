//! From where the user works: the interface that leads there is left alone.
//!
//! The secure shell says it in the environment, which sudo(8) takes away. What started this program
//! still has it, up to the daemon that has the connection itself.

use super::threads;
use onbeat::environment;
use onbeat_run::machine::Machine;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;

/// Programs between this one and the first that are looked at.
const ANCESTORS_MAX: usize = 64;
/// Octets of an environment that are read.
const ENVIRONMENT_MAX: u64 = 1 << 20;
/// Open files of a program that are looked at, and connections.
const FILES_MAX: usize = 4_096;
const CONNECTIONS_MAX: usize = 100_000;
/// What has the user's address as its first word.
const VARIABLES: [&str; 2] = ["SSH_CONNECTION", "SSH_CLIENT"];
/// `TCP_ESTABLISHED` of net/tcp_states.h, as /proc/net/tcp has it.
const ESTABLISHED: &str = "01";

/// The addresses of the user's own session: what the environment of this program and of those that
/// it was started by says, and where the connections lead that these have open. All count: an
/// address too many leaves an interface alone that might have been set.
pub fn sessions() -> BTreeSet<IpAddr> {
    let own = VARIABLES.into_iter().filter_map(environment::var_os);
    let mut found: BTreeSet<IpAddr> = own.filter_map(|value| address(value.as_bytes())).collect();
    let machine = Machine::this();
    let mut sockets = BTreeSet::new();
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS_MAX {
        let Some(task) = threads::task(&machine, pid) else { break };
        found.extend(said(&environment_of(pid)));
        // The first program has everybody's.
        if task.parent <= 1 {
            break;
        }
        sockets.extend(sockets_of(pid));
        pid = task.parent;
    }
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = machine.read(file).unwrap_or_default();
        found.extend(peers(&text, &sockets));
    }
    found.retain(|address| !address.is_loopback());
    found
}

/// The environment that a program was started with, as far as we may see it.
fn environment_of(pid: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/environ")) {
        let _ = file.take(ENVIRONMENT_MAX).read_to_end(&mut octets);
    }
    octets
}

/// The addresses that an environment names.
fn said(environment: &[u8]) -> BTreeSet<IpAddr> {
    let of_one = |variable: &[u8]| {
        let at = variable.iter().position(|octet| *octet == b'=')?;
        let named = VARIABLES.iter().any(|name| name.as_bytes() == &variable[..at]);
        if named { address(&variable[at + 1..]) } else { None }
    };
    environment.split(|octet| *octet == 0).filter_map(of_one).collect()
}

/// The first word; one of a single link has its interface behind a `%`.
fn address(value: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(value).ok()?;
    let word = text.split(' ').next()?;
    word.split('%').next()?.parse().ok()
}

/// The numbers of the sockets that a program has open.
fn sockets_of(pid: u32) -> BTreeSet<u64> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let files = files.into_iter().flatten().flatten().take(FILES_MAX);
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let number = |link: std::path::PathBuf| {
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    links.filter_map(number).collect()
}

/// Where those of the sockets lead that are connections: the lines of /proc/net/tcp and tcp6.
fn peers(text: &str, sockets: &BTreeSet<u64>) -> BTreeSet<IpAddr> {
    let of_one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let socket = words.get(9)?.parse().ok()?;
        let counts = *words.get(3)? == ESTABLISHED && sockets.contains(&socket);
        if counts { remote(words.get(2)?.split(':').next()?) } else { None }
    };
    text.lines().skip(1).take(CONNECTIONS_MAX).filter_map(of_one).collect()
}

/// An address as words of 32 bits that the machine has in memory as they are on the wire.
fn remote(hexadecimal: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hexadecimal.get(8 * at..8 * at + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match hexadecimal.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let octets: [u8; 16] = words.as_flattened().try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_where_the_user_is() {
        let text =
            b"A=1\0SSH_CONNECTION=192.0.2.7 5000 192.0.2.1 22\0SSH_CLIENT=fe80::5%eth0 1 22\0\
                     XSSH_CLIENT=192.0.2.9 1\0SSH_CLIENT\0SSH_CLIENT=x\0\xff=\0";
        let found: Vec<_> = said(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.7", "fe80::5"]);
        assert!(said(b"").is_empty());
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn connections_of_the_daemon_lead_to_the_user() {
        let line = |peer: &str, state: &str, socket: u32| {
            format!("0: 010200C0:0016 {peer}:C350 {state} 0:0 02:0 0 0 0 {socket} 4\n")
        };
        let four = [
            "sl local_address rem_address st tx_queue:rx_queue tr:tm retrnsmt uid timeout inode\n",
            &line("070200C0", "01", 77),
            &line("080200C0", "01", 78),
            &line("00000000", "0A", 79),
            "nonsense\n",
        ];
        let four = four.concat();
        let found = peers(&four, &BTreeSet::from([77, 79]));
        assert_eq!(found, BTreeSet::from(["192.0.2.7".parse().unwrap()]));
        let six = |address| remote(address).map(|found| found.to_string());
        assert_eq!(six("B80D0120000000000000000001000000").as_deref(), Some("2001:db8::1"));
        assert_eq!(six("0000000000000000FFFF0000070200C0").as_deref(), Some("192.0.2.7"));
        for wrong in ["", "0102", "g10200C0", "äöü€", "B80D012000000000000000000100000g"] {
            assert_eq!(six(wrong), None, "{wrong}");
        }
    }
}
