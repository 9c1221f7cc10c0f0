//! All that ptp4l says of its clock, its ports and the network's time: the management messages that
//! `pmc` knows (IEEE 1588-2008 clause 15.5.3), and linuxptp's own. Reading them is total.

use crate::interface::ptp_management::{
    MAX_MESSAGE, MAX_PORTS, PATIENCE, PortState, connect, get, interval, is_appointed, open,
};
use crate::interface::ptp_sync::{SyncSeen, sync_interval};
use onbeat_model::time::Span;
use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

const USER_DESCRIPTION: u16 = 0x0002;
const DEFAULT_DATA_SET: u16 = 0x2000;
const CURRENT_DATA_SET: u16 = 0x2001;
const PARENT_DATA_SET: u16 = 0x2002;
const TIME_PROPERTIES: u16 = 0x2003;
const PORT_DATA_SET: u16 = 0x2004;
const TIME_STATUS_NP: u16 = 0xc000;
const PORT_DATA_SET_NP: u16 = 0xc002;
const PORT_STATS_NP: u16 = 0xc005;

/// Where PORT_STATS_NP has the Announce messages that came; the message type's number.
const ANNOUNCE: usize = 0xb;
/// The answers to a port's measurements of the path.
const PDELAY_RESPONSE: usize = 0x3;
/// delayMechanism: peer to peer (8.2.5.4.4).
const PEER_TO_PEER: u8 = 2;
/// clockClass of a clock that never leads (table 5).
const SLAVE_ONLY_CLASS: u8 = 255;
/// The domains that 802.1AS and IEEE 1588 leave to users.
const DOMAINS: std::ops::Range<u8> = 0..128;

/// The identity of a clock (clause 7.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockIdentity(pub [u8; 8]);

impl fmt::Display for ClockIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{g:02x}{h:02x}{i:02x}")
    }
}

/// One port of a ptp4l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpPort {
    /// From 1.
    pub number: u16,
    /// Its state.
    pub state: PortState,
    /// The measured delay to its neighbour; zero before the first measurement.
    pub peer_delay: Span,
    /// Whether it measures that: gPTP does.
    pub peer_to_peer: bool,
    /// The longest such delay with which it counts as capable of gPTP, and whether it does.
    pub capable: Option<(Span, bool)>,
    /// Announce messages that came, of whatever domain or profile, and answers to its
    /// measurements; not told by old versions.
    pub came: Option<(u64, u64)>,
}

impl PtpPort {
    const fn new(number: u16) -> Self {
        let (state, peer_delay) = (PortState::Other(0), Span::ZERO);
        Self { number, state, peer_delay, peer_to_peer: false, capable: None, came: None }
    }
}

/// What ptp4l says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtpSurvey {
    /// The upper half octet of its messages: 1 with gPTP (transportSpecific, majorSdoId).
    pub profile: u8,
    /// Its domain.
    pub domain: u8,
    /// Its clock.
    pub identity: ClockIdentity,
    /// Whether it may be grandmaster: not `slaveOnly`, and its clock's class is none that never
    /// leads (clause 7.6.2.4).
    pub may_lead: bool,
    /// priority1 of the network's grandmaster: the lowest leads.
    pub grandmaster_priority1: u8,
    /// How far that is ahead of its master's, as last measured.
    pub offset: Span,
    /// The delay to the master; with peer-to-peer measurement see the ports.
    pub path_delay: Span,
    /// How many clocks away the grandmaster is.
    pub steps_removed: u16,
    /// The network's grandmaster; its own clock if it has no other.
    pub grandmaster: ClockIdentity,
    /// Whether another clock is.
    pub has_grandmaster: bool,
    /// Whether its configuration says that it is to be the grandmaster, [`GRANDMASTER`]; else it
    /// leads because it receives no better Announce message.
    ///
    /// [`GRANDMASTER`]: super::GRANDMASTER
    pub appointed: bool,
    /// The Syncs that it measures.
    pub sync: SyncSeen,
    /// TAI less UTC in seconds, as the grandmaster says it.
    pub utc_offset: i16,
    /// Whether that is known to be right.
    pub utc_offset_valid: bool,
    /// Whether the network's time is TAI, rather than arbitrary.
    pub ptp_timescale: bool,
    /// Whether it is traced to a primary reference.
    pub time_traceable: bool,
    /// Its ports.
    pub ports: Vec<PtpPort>,
}

impl PtpSurvey {
    /// The port that decides: the one that follows a master, else the first.
    pub fn deciding(&self) -> Option<&PtpPort> {
        let follows = |port: &&PtpPort| port.state == PortState::Slave;
        let nearly = |port: &&PtpPort| port.state == PortState::Uncalibrated;
        let ports = || self.ports.iter();
        ports().find(follows).or_else(|| ports().find(nearly)).or_else(|| self.ports.first())
    }

    /// The delay of the path to the master: where ports measure that to their neighbours, the one
    /// of the port that decides.
    pub fn delay(&self) -> Span {
        let measures = |port: &&PtpPort| port.peer_to_peer;
        self.deciding().filter(measures).map_or(self.path_delay, |port| port.peer_delay)
    }

    /// Puts in what one answer says; total.
    fn read(&mut self, id: u16, data: &[u8]) -> Option<()> {
        match id {
            USER_DESCRIPTION => self.appointed = is_appointed(data),
            DEFAULT_DATA_SET => {
                self.identity = ClockIdentity(octets(data, 10)?);
                let ([flags], [class]) = (octets(data, 0)?, octets(data, 5)?);
                self.may_lead = flags & 1 << 1 == 0 && class != SLAVE_ONLY_CLASS;
            }
            CURRENT_DATA_SET => {
                self.steps_removed = u16::from_be_bytes(octets(data, 0)?);
                self.offset = interval(octets(data, 2)?);
                self.path_delay = interval(octets(data, 10)?);
            }
            PARENT_DATA_SET => {
                self.grandmaster = ClockIdentity(octets(data, 24)?);
                [self.grandmaster_priority1] = octets(data, 18)?;
            }
            TIME_PROPERTIES => {
                self.utc_offset = i16::from_be_bytes(octets(data, 0)?);
                let [flags] = octets(data, 2)?;
                self.utc_offset_valid = flags & 1 << 2 != 0;
                self.ptp_timescale = flags & 1 << 3 != 0;
                self.time_traceable = flags & 1 << 4 != 0;
            }
            TIME_STATUS_NP => {
                self.offset = Span::from_ns(i64::from_be_bytes(octets(data, 0)?));
                self.sync.offset = self.offset;
                let ingress_ns = i64::from_be_bytes(octets(data, 8)?);
                self.sync.ingress_ns = (ingress_ns != 0).then_some(ingress_ns);
                self.has_grandmaster = i32::from_be_bytes(octets(data, 38)?) != 0;
                self.sync.grandmaster = ClockIdentity(octets(data, 42)?);
            }
            PORT_DATA_SET => {
                let [state] = octets(data, 10)?;
                let peer_delay = interval(octets(data, 12)?);
                let [log_interval, mechanism] = octets(data, 22)?;
                self.sync.interval = sync_interval(log_interval as i8);
                let port = self.port(data)?;
                port.state = PortState::of(state);
                port.peer_delay = peer_delay;
                port.peer_to_peer = mechanism == PEER_TO_PEER;
            }
            PORT_DATA_SET_NP => {
                // This answer names its port in the header only: see `ask_port`.
                return None;
            }
            PORT_STATS_NP => {
                // linuxptp writes these in the order of octets of small machines.
                let count = |kind: usize| Some(u64::from_le_bytes(octets(data, 10 + 8 * kind)?));
                let came = Some((count(ANNOUNCE)?, count(PDELAY_RESPONSE)?));
                self.port(data)?.came = came;
            }
            _ => return None,
        }
        Some(())
    }

    /// The port that data begin with.
    fn port(&mut self, data: &[u8]) -> Option<&mut PtpPort> {
        let number = u16::from_be_bytes(octets(data, 8)?);
        self.port_numbered(number)
    }

    fn port_numbered(&mut self, number: u16) -> Option<&mut PtpPort> {
        let known = self.ports.iter().position(|port| port.number == number);
        if known.is_none() {
            if self.ports.len() >= MAX_PORTS {
                return None;
            }
            self.ports.push(PtpPort::new(number));
        }
        let place = known.unwrap_or(self.ports.len() - 1);
        self.ports.get_mut(place)
    }
}

fn octets<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Asks a running ptp4l for all of it. Not for real-time paths: waits up to a second.
///
/// # Errors
/// When no daemon listens at `path`, this process may not write there, or there is no answer for
/// this domain and profile.
pub fn survey_ptp4l(path: &Path, domain: u8, profile: u8) -> io::Result<PtpSurvey> {
    let socket = connect(path)?;
    let mut survey = PtpSurvey { domain, profile, ..PtpSurvey::default() };
    let mut ports = 1;
    let clock =
        [DEFAULT_DATA_SET, CURRENT_DATA_SET, PARENT_DATA_SET, TIME_PROPERTIES, USER_DESCRIPTION];
    let of_ports = [PORT_DATA_SET, PORT_DATA_SET_NP, PORT_STATS_NP];
    // One question at a time: neither side's socket holds many answers.
    for (number, id) in clock.into_iter().chain(of_ports).chain([TIME_STATUS_NP]).enumerate() {
        let answers = if of_ports.contains(&id) { ports } else { 1 };
        socket.send(&get(id, domain, profile, number as u16))?;
        for _ in 0..answers {
            let Some((source, content)) = answer(&socket, number as u16)? else {
                // Old versions do not know all; one that says nothing at first is not there.
                if number == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                break;
            };
            let Some((id, data)) = content else { continue };
            if id == DEFAULT_DATA_SET
                && let Some(count) = octets(&data, 2)
            {
                ports = usize::from(u16::from_be_bytes(count)).min(MAX_PORTS);
            }
            if id == PORT_DATA_SET_NP {
                read_capability(&mut survey, source, &data);
            } else {
                let _ = survey.read(id, &data);
            }
        }
    }
    Ok(survey)
}

/// Asks again for what changes with each Sync: offset, grandmaster, and when the last one came. One
/// short question, so that it may be asked often; `None` if it is not answered.
pub fn ask_sync(path: &Path, survey: &PtpSurvey) -> Option<PtpSurvey> {
    let socket = connect(path).ok()?;
    socket.send(&get(TIME_STATUS_NP, survey.domain, survey.profile, 0)).ok()?;
    let (_, content) = answer(&socket, 0).ok()??;
    let (id, data) = content.filter(|(id, _)| *id == TIME_STATUS_NP)?;
    let mut now = survey.clone();
    now.read(id, &data).map(|()| now)
}

/// PORT_DATA_SET_NP of the port that sent it.
fn read_capability(survey: &mut PtpSurvey, source: u16, data: &[u8]) -> Option<()> {
    let threshold = u32::from_be_bytes(octets(data, 0)?);
    let capable = i32::from_be_bytes(octets(data, 4)?) != 0;
    let port = survey.port_numbered(source)?;
    port.capable = Some((Span::from_ns(threshold.into()), capable));
    Some(())
}

/// The port that an answer comes from, and what it says unless it is an error.
pub(super) type Answered = (u16, Option<(u16, Vec<u8>)>);

/// Waits for an answer to the request of this number; `None` if there is none in time.
pub(super) fn answer(socket: &UnixDatagram, number: u16) -> io::Result<Option<Answered>> {
    let mut message = [0; MAX_MESSAGE];
    for _ in 0..MAX_PORTS {
        let length = match socket.recv(&mut message) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let message = &message[..length];
        if let Some((sequence, content)) = open(message)
            && sequence == number
        {
            // sourcePortIdentity (13.3.2.8).
            let source = octets(message, 28).map_or(0, u16::from_be_bytes);
            return Ok(Some((source, content.map(|(id, data)| (id, data.to_vec())))));
        }
    }
    Ok(None)
}

/// The profile and domain of a ptp4l that answers at all: to say that it has others than wanted.
/// Takes up to a second.
pub fn find_ptp4l(path: &Path) -> io::Result<Option<(u8, u8)>> {
    let socket = connect(path)?;
    socket.set_read_timeout(Some(PATIENCE / 50))?;
    let mut message = [0; MAX_MESSAGE];
    for domain in DOMAINS {
        for profile in [1, 0] {
            socket.send(&get(DEFAULT_DATA_SET, domain, profile, 0))?;
        }
        if let Ok(length) = socket.recv(&mut message)
            && open(&message[..length]).is_some()
        {
            return Ok(Some((message[0] >> 4, message[4])));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_put_in_what_they_say() {
        let mut survey = PtpSurvey::default();
        let mut default = vec![0; 20];
        default[10..18].copy_from_slice(&[1, 2, 3, 0xff, 0xfe, 4, 5, 6]);
        survey.read(DEFAULT_DATA_SET, &default).expect("well-formed");
        assert_eq!(survey.identity.to_string(), "010203.fffe.040506");
        for (flags, class, may_lead) in [(1, 248, true), (3, 248, false), (1, 255, false)] {
            (default[0], default[5]) = (flags, class);
            survey.read(DEFAULT_DATA_SET, &default).expect("well-formed");
            assert_eq!(survey.may_lead, may_lead, "{flags} {class}");
        }
        let mut parent = [0; 32];
        parent[18] = 246;
        survey.read(PARENT_DATA_SET, &parent).expect("well-formed");
        assert_eq!(survey.grandmaster_priority1, 246);
        let current = [&[0, 2][..], &(-5_i64 << 16).to_be_bytes(), &(7_i64 << 16).to_be_bytes()];
        survey.read(CURRENT_DATA_SET, &current.concat()).expect("well-formed");
        assert_eq!((survey.steps_removed, survey.offset.as_ns()), (2, -5));
        assert_eq!(survey.path_delay.as_ns(), 7);
        survey.read(TIME_PROPERTIES, &[0, 37, 0b1_1100, 0x20]).expect("well-formed");
        assert!(survey.utc_offset == 37 && survey.utc_offset_valid && survey.ptp_timescale);
        let mut port = vec![0; 26];
        (port[9], port[10], port[22], port[23]) = (1, 9, 0xfd, PEER_TO_PEER);
        port[12..20].copy_from_slice(&(1_469_i64 << 16).to_be_bytes());
        survey.read(PORT_DATA_SET, &port).expect("well-formed");
        read_capability(&mut survey, 1, &[0, 0, 3, 32, 0, 0, 0, 1]).expect("well-formed");
        let found = survey.deciding().expect("a port");
        assert_eq!(found.capable, Some((Span::from_ns(800), true)));
        assert!(found.state == PortState::Slave && found.peer_to_peer);
        assert_eq!(found.peer_delay, Span::from_ns(1_469));
        assert!(survey.read(CURRENT_DATA_SET, &[0; 17]).is_none(), "cut off");
    }

    #[test]
    fn the_last_sync_is_told_by_its_stamp_and_whose_time_it_brought() {
        let mut survey = PtpSurvey::default();
        let mut status = vec![0; 50];
        survey.read(TIME_STATUS_NP, &status).expect("well-formed");
        assert_eq!(survey.sync, SyncSeen::default(), "nothing was measured");
        status[..8].copy_from_slice(&(-7_i64).to_be_bytes());
        status[8..16].copy_from_slice(&9_i64.to_be_bytes());
        (status[41], status[49]) = (1, 5);
        survey.read(TIME_STATUS_NP, &status).expect("well-formed");
        assert!(survey.has_grandmaster && survey.offset.as_ns() == -7);
        let grandmaster = ClockIdentity([0, 0, 0, 0, 0, 0, 0, 5]);
        let (ingress_ns, offset) = (Some(9), Span::from_ns(-7));
        let expected = SyncSeen { ingress_ns, offset, grandmaster, ..SyncSeen::default() };
        assert_eq!(survey.sync, expected);
        assert!(survey.read(TIME_STATUS_NP, &status[..49]).is_none(), "cut off");
        for (text, appointed) in [("onbeat;grandmaster", true), (";", false), ("", false)] {
            let mut data = vec![text.len() as u8];
            data.extend(text.as_bytes());
            survey.read(USER_DESCRIPTION, &data).expect("well-formed");
            assert_eq!(survey.appointed, appointed, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_the_reader_panic(
            data in prop::collection::vec(any::<u8>(), 0..300), port: u16,
            id in prop::sample::select(vec![
                USER_DESCRIPTION, DEFAULT_DATA_SET, CURRENT_DATA_SET, PARENT_DATA_SET,
                TIME_PROPERTIES,
                PORT_DATA_SET, PORT_STATS_NP, TIME_STATUS_NP, 7,
            ]),
        ) {
            let mut survey = PtpSurvey::default();
            let _ = survey.read(id, &data);
            let _ = read_capability(&mut survey, port, &data);
            prop_assert!(survey.ports.len() <= 2);
        }
    }
}
