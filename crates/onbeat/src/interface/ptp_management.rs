//! Asks ptp4l, over its local management socket, how well its clock is synchronised: what its own
//! `pmc` asks for. Messages as in IEEE 1588-2008 clause 15; TIME_STATUS_NP is linuxptp's addition.
//! Reading them is total: any octets give a message or `None`. [`super::ptp_survey`] asks for more.

use crate::interface::ptp_survey::ClockIdentity;
use crate::interface::ptp_sync::{SyncSeen, sync_interval};
use onbeat_model::time::Span;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Octets of the common header (clause 13.3), of a management message's own (15.4.1), and of a TLV
/// up to and with the management identifier (15.5.2).
const HEADER: usize = 34;
const MANAGEMENT: usize = 48;
pub(super) const TLV: usize = 54;
/// The longest message that is read.
pub(super) const MAX_MESSAGE: usize = 1_500;
/// Message type and version 2, without the profile's upper half octet.
const TYPE_MANAGEMENT: u8 = 0x0d;
const ACTION_GET: u8 = 0;
const ACTION_SET: u8 = 1;
const ACTION_RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
/// userDescription (15.5.3.1.2) of a clock that is to be the network's grandmaster. A clock that
/// hears no better one leads as well, so leading alone does not tell one that is right by
/// definition from one that has lost its master.
pub const GRANDMASTER: &str = "onbeat;grandmaster";
/// How long ptp4l has for an answer; it takes microseconds.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The most ports whose state is read.
pub(super) const MAX_PORTS: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Question {
    UserDescription = 0x0002,
    CurrentDataSet = 0x2001,
    PortDataSet = 0x2004,
    TimeStatus = 0xc000,
}

/// A port's state (clause 9.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Follows a master.
    Slave,
    /// Is master on its link.
    Master,
    /// Has a master and does not follow it closely yet.
    Uncalibrated,
    /// Waits for a master.
    Listening,
    /// Does not work.
    Faulty,
    /// Another one, by its number.
    Other(u8),
}

impl PortState {
    pub(super) fn of(number: u8) -> Self {
        match number {
            2 => Self::Faulty,
            4 => Self::Listening,
            6 => Self::Master,
            8 => Self::Uncalibrated,
            9 => Self::Slave,
            other => Self::Other(other),
        }
    }
}

impl std::fmt::Display for PortState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slave => f.write_str("SLAVE"),
            Self::Master => f.write_str("MASTER"),
            Self::Uncalibrated => f.write_str("UNCALIBRATED"),
            Self::Listening => f.write_str("LISTENING"),
            Self::Faulty => f.write_str("FAULTY"),
            Self::Other(number) => write!(f, "{number}"),
        }
    }
}

/// What ptp4l says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpStatus {
    /// The port that decides: the one that follows a master, else the first.
    pub state: PortState,
    /// How far the clock is ahead of its master's, as last measured.
    pub offset: Span,
    /// Whether another clock is the network's grandmaster.
    pub has_grandmaster: bool,
    /// Whether it was appointed as that, [`GRANDMASTER`].
    pub appointed: bool,
    /// The Syncs that it measures.
    pub sync: SyncSeen,
}

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// CURRENT_DATA_SET: the offset from the master.
    Offset(Span),
    /// PORT_DATA_SET of one port, and its Sync interval.
    State(PortState, Span),
    /// USER_DESCRIPTION: whether it was appointed as grandmaster.
    Appointed(bool),
    /// TIME_STATUS_NP: whether there is a grandmaster, and the last Sync.
    Grandmaster(bool, SyncSeen),
    /// An error, or something else.
    Nothing,
}

/// A request that all ports answer.
pub(super) fn get(question: u16, domain: u8, profile: u8, sequence: u16) -> [u8; TLV] {
    let mut message = [0; TLV];
    message[0] = profile << 4 | TYPE_MANAGEMENT;
    message[1] = 2;
    message[2..4].copy_from_slice(&(TLV as u16).to_be_bytes());
    message[4] = domain;
    message[30..32].copy_from_slice(&sequence.to_be_bytes());
    message[32] = 4;
    message[33] = 0x7f;
    message[HEADER..HEADER + 10].fill(0xff);
    message[46] = ACTION_GET;
    message[48..50].copy_from_slice(&TLV_MANAGEMENT.to_be_bytes());
    message[50..52].copy_from_slice(&2_u16.to_be_bytes());
    message[52..54].copy_from_slice(&question.to_be_bytes());
    message
}

/// A request that sets something.
pub(super) fn set(id: u16, data: &[u8], domain: u8, profile: u8, sequence: u16) -> Vec<u8> {
    let mut message = get(id, domain, profile, sequence).to_vec();
    message[46] = ACTION_SET;
    message[50..52].copy_from_slice(&(2 + data.len() as u16).to_be_bytes());
    message.extend(data);
    let length = message.len() as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// What was asked for, and its data.
pub(super) type Content<'a> = (u16, &'a [u8]);

/// Opens a response: the sequence number of its request, and, unless it is an error, what was asked
/// for and its data.
pub(super) fn open(message: &[u8]) -> Option<(u16, Option<Content<'_>>)> {
    let u16_at = |at: usize| message.get(at..at + 2).map(|o| u16::from_be_bytes([o[0], o[1]]));
    if message.first()? & 0x0f != TYPE_MANAGEMENT || message.get(46)? & 0x0f != ACTION_RESPONSE {
        return None;
    }
    let sequence = u16_at(30)?;
    if u16_at(MANAGEMENT)? != TLV_MANAGEMENT {
        return Some((sequence, None));
    }
    let length = usize::from(u16_at(50)?).checked_sub(2)?;
    Some((sequence, Some((u16_at(52)?, message.get(TLV..TLV + length)?))))
}

/// Reads a TimeInterval, which counts 2⁻¹⁶ ns (clause 5.3.2).
pub(super) fn interval(octets: [u8; 8]) -> Span {
    Span::from_ns(i64::from_be_bytes(octets) >> 16)
}

/// Reads a response: the sequence number of its request, and what it says.
fn parse(message: &[u8]) -> Option<(u16, Answer)> {
    let (sequence, content) = open(message)?;
    let Some((id, data)) = content else { return Some((sequence, Answer::Nothing)) };
    let answer = match id {
        id if id == Question::CurrentDataSet as u16 => {
            let (offset, _) = data.get(2..)?.split_first_chunk()?;
            Answer::Offset(interval(*offset))
        }
        id if id == Question::PortDataSet as u16 => {
            let interval = sync_interval(*data.get(22)? as i8);
            Answer::State(PortState::of(*data.get(10)?), interval)
        }
        id if id == Question::UserDescription as u16 => Answer::Appointed(is_appointed(data)),
        id if id == Question::TimeStatus as u16 => {
            let (offset, _) = data.split_first_chunk()?;
            let offset = Span::from_ns(i64::from_be_bytes(*offset));
            let (ingress, _) = data.get(8..)?.split_first_chunk()?;
            let ingress_ns = Some(i64::from_be_bytes(*ingress)).filter(|ns| *ns != 0);
            let (present, rest) = data.get(38..)?.split_first_chunk()?;
            let (grandmaster, _) = rest.split_first_chunk()?;
            let grandmaster = ClockIdentity(*grandmaster);
            let sync = SyncSeen { ingress_ns, offset, grandmaster, ..SyncSeen::default() };
            Answer::Grandmaster(i32::from_be_bytes(*present) != 0, sync)
        }
        _ => Answer::Nothing,
    };
    Some((sequence, answer))
}

/// Whether a USER_DESCRIPTION, which is a PTPText (5.3.9), says that this clock is to lead.
pub(super) fn is_appointed(data: &[u8]) -> bool {
    let text = data.split_first().and_then(|(length, text)| text.get(..usize::from(*length)));
    text == Some(GRANDMASTER.as_bytes())
}

/// A socket of ours that is connected to ptp4l's.
pub(super) fn connect(path: &Path) -> io::Result<UnixDatagram> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    // An abstract name leaves no file behind.
    let name = format!("onbeat-ptp-{}-{number}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Asks a running ptp4l. Not for real-time paths: waits up to some tenths of a second.
///
/// # Errors
/// When no daemon listens at `path` in this domain, or this process may not write there.
pub fn ask_ptp4l(path: &Path, domain: u8) -> io::Result<PtpStatus> {
    let socket = connect(path)?;
    // Profiles mark their messages: 802.1AS with 1. ptp4l answers its own only.
    for profile in [0, 1] {
        if let Some(status) = ask(&socket, domain, profile)? {
            return Ok(status);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn ask(socket: &UnixDatagram, domain: u8, profile: u8) -> io::Result<Option<PtpStatus>> {
    // The last one's answer comes last: then all ports have answered the one before.
    let questions = [
        Question::UserDescription,
        Question::CurrentDataSet,
        Question::PortDataSet,
        Question::TimeStatus,
    ];
    let sequence = |question: usize| u16::from(profile) << 8 | question as u16;
    for (number, question) in questions.into_iter().enumerate() {
        socket.send(&get(question as u16, domain, profile, sequence(number)))?;
    }
    let last = sequence(questions.len() - 1);
    let (mut offset, mut state, mut octets) = (None, None, [0; MAX_MESSAGE]);
    let mut appointed = false;
    for _ in 0..MAX_PORTS + questions.len() {
        let length = match socket.recv(&mut octets) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some((number, answer)) = parse(&octets[..length]) else { continue };
        match answer {
            Answer::Offset(ahead) => offset = Some(ahead),
            Answer::State(PortState::Slave, interval) => {
                state = Some((PortState::Slave, interval));
            }
            Answer::State(other, interval) => state = state.or(Some((other, interval))),
            Answer::Appointed(is) => appointed = is,
            Answer::Grandmaster(has_grandmaster, sync) if number == last => {
                let (Some(offset), Some((state, interval))) = (offset, state) else {
                    return Ok(None);
                };
                let sync = SyncSeen { interval, ..sync };
                return Ok(Some(PtpStatus { state, offset, has_grandmaster, appointed, sync }));
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A response as ptp4l writes it: its header, the TLV and its data.
    fn response(id: u16, data: &[u8]) -> Vec<u8> {
        let mut message = get(Question::TimeStatus as u16, 0, 0, 7).to_vec();
        message[46] = ACTION_RESPONSE;
        message[50..52].copy_from_slice(&(2 + data.len() as u16).to_be_bytes());
        message[52..54].copy_from_slice(&id.to_be_bytes());
        message.extend(data);
        let length = message.len() as u16;
        message[2..4].copy_from_slice(&length.to_be_bytes());
        message
    }

    #[test]
    fn a_request_has_the_octets_of_clause_15() {
        let request = get(Question::PortDataSet as u16, 3, 1, 0x0102);
        let expected: Vec<u8> = [
            &[0x1d, 2, 0, 54, 3, 0, 0, 0][..],
            &[0; 22],
            &[1, 2, 4, 0x7f],
            &[0xff; 10],
            &[0, 0, 0, 0],
            &[0, 1, 0, 2, 0x20, 0x04],
        ]
        .concat();
        assert_eq!(request, expected[..]);
    }

    #[test]
    fn responses_say_offset_state_and_grandmaster() {
        let mut current = vec![0, 1];
        current.extend((-186_i64 << 16).to_be_bytes());
        current.extend([0; 8]);
        let offset = Answer::Offset(Span::from_ns(-186));
        assert_eq!(parse(&response(0x2001, &current)), Some((7, offset)));
        let mut port = [0; 26];
        for (number, state) in [(9, PortState::Slave), (8, PortState::Uncalibrated)] {
            port[10] = number;
            (port[22], port[23]) = (0xfd, 2);
            let state = Answer::State(state, Span::from_ms(125));
            assert_eq!(parse(&response(0x2004, &port)), Some((7, state)));
        }
        let mut status = [0; 50];
        let none = Answer::Grandmaster(false, SyncSeen::default());
        assert_eq!(parse(&response(0xc000, &status)), Some((7, none)));
        (status[15], status[41]) = (9, 1);
        let sync = SyncSeen { ingress_ns: Some(9), ..SyncSeen::default() };
        let follows = Answer::Grandmaster(true, sync);
        assert_eq!(parse(&response(0xc000, &status)), Some((7, follows)));
        let mut error = response(0xc000, &status);
        error[49] = 2;
        assert_eq!(parse(&error), Some((7, Answer::Nothing)));
        assert_eq!(parse(&get(Question::TimeStatus as u16, 0, 0, 7)), None, "a request");
    }

    proptest! {
        #[test]
        fn no_octets_make_the_reader_panic(
            octets in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..104, value: u8,
            cut in 0usize..105, id in prop::sample::select(vec![0x2_u16, 0x2001, 0x2004, 0xc000]),
        ) {
            let _ = parse(&octets);
            let mut mutated = response(id, &[0; 50]);
            mutated[at] = value;
            mutated.truncate(cut);
            let _ = parse(&mutated);
        }
    }
}
