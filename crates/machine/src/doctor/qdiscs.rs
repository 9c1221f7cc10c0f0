//! The queueing disciplines of all interfaces, asked for over rtnetlink, whose options
//! `netlink-packet-route` does not know; and which kinds of them the kernel has, found out by
//! asking for one of each in a network namespace of its own.

use super::facts::Fact;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
/// NLM_F_REQUEST with NLM_F_DUMP, and with NLM_F_ACK, NLM_F_EXCL and NLM_F_CREATE.
const DUMP: u16 = 0x301;
const MAKE: u16 = 0x605;
/// Octets of a message's header, of `struct tcmsg`, of `struct ifinfomsg`.
const HEADER: usize = 16;
const TC: usize = 20;
const LINK: usize = 16;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TAPRIO_PRIORITIES: u16 = 1;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const TC_H_ROOT: u32 = u32::MAX;
/// The longest answer to a dump, and how many answers are read.
const ANSWER: usize = 32 << 10;
const ANSWERS_MAX: usize = 1_000;

/// One queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// The number of its interface.
    pub interface: u32,
    /// Its kind: `mqprio`.
    pub kind: String,
    /// Whether it is the interface's, not one class's.
    pub is_root: bool,
    /// Of mqprio and taprio: how many traffic classes there are.
    pub classes: Option<u8>,
    /// The same: each priority's class.
    pub map: Option<[u8; 16]>,
}

/// Which of the parts that channels need the kernel has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// VLAN interfaces.
    pub vlan: Fact<bool>,
    /// The qdisc mqprio.
    pub mqprio: Fact<bool>,
    /// The qdisc cbs.
    pub cbs: Fact<bool>,
    /// The qdisc etf.
    pub etf: Fact<bool>,
    /// The qdisc taprio.
    pub taprio: Fact<bool>,
}

fn open() -> io::Result<OwnedFd> {
    // No protocol is protocol 0, NETLINK_ROUTE.
    let kind = (AddressFamily::NETLINK, SocketType::RAW);
    Ok(rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?)
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend((4 + value.len() as u16).to_ne_bytes());
    octets.extend(kind.to_ne_bytes());
    octets.extend(value);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    octets.extend(kind.to_ne_bytes());
    octets.extend(flags.to_ne_bytes());
    octets.extend([0; 8]);
    octets.extend(body);
    octets
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..at + 2).map(|o| u16::from_ne_bytes([o[0], o[1]]))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4).map(|o| u32::from_ne_bytes([o[0], o[1], o[2], o[3]]))
}

/// The value of the first attribute of a kind.
fn find(mut octets: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(octets, 0)?);
        let value = octets.get(4..length)?;
        if u16_at(octets, 2)? & 0x3fff == kind {
            return Some(value);
        }
        octets = octets.get(length.next_multiple_of(4)..)?;
    }
}

/// All queueing disciplines of the calling thread's network namespace.
pub(super) fn all() -> io::Result<Vec<Qdisc>> {
    let socket = open()?;
    let request = message(RTM_GETQDISC, DUMP, &[0; TC]);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut octets = vec![0; ANSWER];
    for _ in 0..ANSWERS_MAX {
        let (received, _) = rustix::net::recv(&socket, &mut octets[..], RecvFlags::empty())?;
        let mut rest = &octets[..received];
        while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
            let length = length as usize;
            match kind {
                NLMSG_DONE => return Ok(found),
                NLMSG_ERROR => return Err(io::ErrorKind::InvalidData.into()),
                _ => found.extend(rest.get(HEADER..length).and_then(parse)),
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
    Ok(found)
}

/// Reads `struct tcmsg` and its attributes. Total: any octets give one or none.
fn parse(octets: &[u8]) -> Option<Qdisc> {
    let attributes = octets.get(TC..)?;
    let kind = find(attributes, TCA_KIND)?;
    let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
    let options = find(attributes, TCA_OPTIONS).unwrap_or_default();
    // `struct tc_mqprio_qopt`: the number of classes, then the class of each priority.
    let priorities = match kind.as_str() {
        "mqprio" => options,
        "taprio" => find(options, TAPRIO_PRIORITIES).unwrap_or_default(),
        _ => &[],
    };
    Some(Qdisc {
        interface: u32_at(octets, 4)?,
        kind,
        is_root: u32_at(octets, 12)? == TC_H_ROOT,
        classes: priorities.first().copied(),
        map: priorities.get(1..17).and_then(|map| map.try_into().ok()),
    })
}

/// Asks for a qdisc on the loopback, without options: the kernel refuses in one way if it does not
/// know the kind, and in another if it does.
fn qdisc_request(kind: &str) -> Vec<u8> {
    let mut body = vec![0; TC];
    body[4..8].copy_from_slice(&1_u32.to_ne_bytes());
    body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    body.extend(attribute(TCA_KIND, format!("{kind}\0").as_bytes()));
    message(RTM_NEWQDISC, MAKE, &body)
}

/// The same of a VLAN interface.
fn vlan_request() -> Vec<u8> {
    let mut body = vec![0; LINK];
    body.extend(attribute(IFLA_LINKINFO, &attribute(IFLA_INFO_KIND, b"vlan")));
    message(RTM_NEWLINK, MAKE, &body)
}

/// How many things are tried.
const TRIED: usize = 5;
/// What the child says where it could not try: no errno is below 0.
const NOT_TRIED: i32 = -1;

/// Tries each of them in a child process, in a namespace of its own, which goes with the child. A
/// kernel that has one as a module may load it, as it would for anybody who asked.
pub(super) fn tried() -> Tried {
    let requests: [Vec<u8>; TRIED] = [
        vlan_request(),
        qdisc_request("mqprio"),
        qdisc_request("cbs"),
        qdisc_request("etf"),
        qdisc_request("taprio"),
    ];
    let answers = match try_in_child(&requests) {
        Ok(answers) => answers,
        Err(error) => {
            let why = format!("a network namespace to try it in was refused: {error}");
            return Tried {
                vlan: Fact::Unknown(why.clone()),
                mqprio: Fact::Unknown(why.clone()),
                cbs: Fact::Unknown(why.clone()),
                etf: Fact::Unknown(why.clone()),
                taprio: Fact::Unknown(why),
            };
        }
    };
    let [vlan, mqprio, cbs, etf, taprio] = answers;
    let of = |answer: i32, unknown_kind: i32| match answer {
        NOT_TRIED => Fact::Unknown("the kernel did not answer".to_owned()),
        libc::EPERM => Fact::Unknown("trying it is not permitted here".to_owned()),
        error => Fact::Known(error != unknown_kind),
    };
    Tried {
        vlan: of(vlan, libc::EOPNOTSUPP),
        mqprio: of(mqprio, libc::ENOENT),
        cbs: of(cbs, libc::ENOENT),
        etf: of(etf, libc::ENOENT),
        taprio: of(taprio, libc::ENOENT),
    }
}

/// What the kernel said to each request, as errno; 0 is success.
fn try_in_child(requests: &[Vec<u8>; TRIED]) -> io::Result<[i32; TRIED]> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: the child calls only what is async-signal-safe: system calls, on memory that was
    // there before, and _exit.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let mut answers = [NOT_TRIED; TRIED + 1];
        answers[0] = apart();
        if answers[0] == 0 {
            for (answer, request) in answers[1..].iter_mut().zip(requests) {
                *answer = exchange(request);
            }
        }
        let octets = size_of_val(&answers);
        // SAFETY: the buffer is as long as is said; a reader that is gone is no matter here. The
        // child ends without running anything of its parent's.
        unsafe {
            libc::write(std::os::fd::AsRawFd::as_raw_fd(&writer), answers.as_ptr().cast(), octets);
            libc::_exit(0);
        }
    }
    drop(writer);
    let mut octets = [0; 4 * (TRIED + 1)];
    let read = (&reader).read_exact(&mut octets);
    // SAFETY: waits for the child that was just made; its state is of no interest.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    read?;
    let number = |at: usize| u32_at(&octets, 4 * at).unwrap_or(0) as i32;
    match number(0) {
        0 => Ok(std::array::from_fn(|at| number(at + 1))),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Moves the process into a network namespace of its own, as another user if need be; errno.
fn apart() -> i32 {
    // SAFETY: changes the calling process only, which is a child that soon ends.
    let failed = unsafe {
        libc::unshare(libc::CLONE_NEWNET) != 0
            && libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0
    };
    if failed { errno() } else { 0 }
}

fn errno() -> i32 {
    // SAFETY: the location is valid in every thread.
    unsafe { *libc::__errno_location() }
}

/// Sends one request and gives the kernel's answer as errno. Allocates nothing.
fn exchange(request: &[u8]) -> i32 {
    let mut answer = [0_u8; 4_096];
    // SAFETY: plain system calls on buffers of the lengths that are said; the descriptor is closed
    // with the process.
    let received = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        let sent = libc::send(socket, request.as_ptr().cast(), request.len(), 0);
        match sent {
            0.. => libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0),
            _ => -1,
        }
    };
    match (received, u16_at(&answer, 4), u32_at(&answer, HEADER)) {
        (20.., Some(NLMSG_ERROR), Some(error)) => (error as i32).wrapping_neg(),
        _ => NOT_TRIED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dumped(kind: &str, options: &[u8]) -> Vec<u8> {
        let mut octets = vec![0; TC];
        octets[4..8].copy_from_slice(&3_u32.to_ne_bytes());
        octets[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
        octets.extend(attribute(TCA_KIND, format!("{kind}\0").as_bytes()));
        octets.extend(attribute(TCA_OPTIONS, options));
        octets
    }

    #[test]
    fn the_classes_of_priorities_are_read_from_mqprio_and_taprio() {
        let mut options = vec![0; 82];
        options[0] = 4;
        options[1..17].copy_from_slice(&[3, 3, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0]);
        let nested = attribute(TAPRIO_PRIORITIES, &options);
        for (kind, options) in [("mqprio", &options), ("taprio", &nested)] {
            let qdisc = parse(&dumped(kind, options)).unwrap();
            assert_eq!((qdisc.interface, qdisc.kind.as_str(), qdisc.is_root), (3, kind, true));
            assert_eq!(qdisc.classes, Some(4));
            assert_eq!(qdisc.map.unwrap()[..5], [3, 3, 1, 0, 2]);
        }
        assert_eq!(parse(&dumped("pfifo_fast", &options)).unwrap().map, None);
    }

    #[test]
    fn the_kernel_lists_what_it_has_and_says_which_kinds_it_knows() {
        let before = all().expect("netlink answers");
        let tried = tried();
        // Whatever this kernel has, it has answered, or said why not.
        for part in [tried.vlan, tried.mqprio, tried.cbs, tried.etf, tried.taprio] {
            match part {
                Fact::Known(_) => {}
                Fact::Unknown(why) => assert!(why.contains("refused"), "{why}"),
            }
        }
        assert_eq!(all().expect("netlink answers"), before, "nothing has changed here");
    }

    #[test]
    fn a_kind_that_no_kernel_has_is_told_from_one_that_it_has() {
        let mut requests: [Vec<u8>; TRIED] = std::array::from_fn(|_| qdisc_request("no-such"));
        requests[1] = qdisc_request("pfifo");
        match try_in_child(&requests) {
            Ok(answers) => {
                assert_eq!(answers[0], libc::ENOENT);
                assert_ne!(answers[1], libc::ENOENT);
            }
            Err(error) => eprintln!("no network namespace here: {error}"),
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&octets);
            let _ = find(&octets, TCA_KIND);
        }
    }
}
