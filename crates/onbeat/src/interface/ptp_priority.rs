//! Which clock leads: priority1 of a running ptp4l (IEEE 1588-2008 clause 7.6.2.2), by management
//! messages (15.5.3.3.4). ptp4l lets only a process that may write to its socket set it.

use crate::interface::ptp_management::{connect, get, set};
use crate::interface::ptp_survey::answer;
use std::io;
use std::path::Path;

const PRIORITY1: u16 = 0x2005;

/// Its value; `None` where there is no ptp4l.
///
/// # Errors
/// When this process may not write to the socket, or ptp4l does not answer in time: it may be busy,
/// and has a value all the same.
pub fn ptp4l_priority1(path: &Path, domain: u8) -> io::Result<Option<u8>> {
    match asked(path, |profile, number| get(PRIORITY1, domain, profile, number).to_vec()) {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// Sets it. The network's clocks then select their grandmaster, which takes seconds.
///
/// # Errors
/// When no ptp4l answers, or it does not take the value.
pub fn set_ptp4l_priority1(path: &Path, domain: u8, value: u8) -> io::Result<()> {
    // The second octet is reserved.
    let data = [value, 0];
    match asked(path, |profile, number| set(PRIORITY1, &data, domain, profile, number))? {
        now if now == value => Ok(()),
        now => Err(io::Error::other(format!("ptp4l has priority1 {now} and not {value}"))),
    }
}

/// What is answered to a request; ptp4l answers those of its own profile only.
fn asked(path: &Path, request: impl Fn(u8, u16) -> Vec<u8>) -> io::Result<u8> {
    let socket = connect(path)?;
    for profile in [1, 0] {
        let number = u16::from(profile);
        socket.send(&request(profile, number))?;
        let Some((_, content)) = answer(&socket, number)? else { continue };
        let value = content.filter(|(id, _)| *id == PRIORITY1);
        let value = value.and_then(|(_, data)| data.first().copied());
        return value.ok_or_else(|| io::Error::other("ptp4l refuses to answer for priority1"));
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_set_has_the_octets_of_clause_15() {
        let request = set(PRIORITY1, &[7, 0], 3, 1, 0x0102);
        let expected: Vec<u8> = [
            &[0x1d, 2, 0, 56, 3, 0, 0, 0][..],
            &[0; 22],
            &[1, 2, 4, 0x7f],
            &[0xff; 10],
            &[0, 0, 1, 0],
            &[0, 1, 0, 4, 0x20, 0x05, 7, 0],
        ]
        .concat();
        assert_eq!(request, expected);
    }
}
