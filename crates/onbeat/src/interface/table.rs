//! The channels of one host as a table, for programs on interfaces: what they need of a
//! description, without its language. `onbeat plan --deploy` writes it, programs read it.
//!
//! ```text
//! onbeat-channels 1
//! # end, channel, destination, stream, VLAN, PCP, octets; ns: interval, tolerance, fixed delay
//! system two-hosts
//! host plant
//! talker mcast42 91:e0:f0:00:fe:01 0x0000000000000001 2 3 8 20000000 125000 2000000
//! end 1
//! ```
//!
//! Version 2 has a line `reservation plan` or `reservation srp` behind the host's, and two more
//! words for each channel: `none`, `crc` or `authenticated`, and the talker's address or `any`.
//! Version 3 has two more: `r-tag` for channels that are replicated (802.1CB), `bare` for others;
//! and of a scheduled channel's talker its launch time in each interval and how long before it a
//! message has to be written, in nanoseconds with a `:` between them, of all others `any`.
//! Version 4 is of hosts whose stations carry the channels (Network Code). Behind the line of the
//! reservation it has `backend network-code` and by how much stations may be late, in nanoseconds;
//! and one more word for each channel: the buffer of the station's program that has its messages.
//! Version 5 is version 3 and one more word for each channel: by how much less than an interval may
//! be between a message that came late and the next one, in nanoseconds. In versions before, that
//! is interval and tolerance; nothing for a channel with a launch time or a burst.
//!
//! A host has both ends of a channel whose talker is among its listeners: two lines.
//!
//! The first line is the format and its version. Lines that begin with `#` and empty ones say
//! nothing. The last line says how many channels there are, so that half a file is none.

use crate::interface::context::{MAX_CHANNELS, check, launch_times, parameters_of};
use onbeat_model::integrity::Integrity;
use onbeat_model::limits;
use onbeat_model::plan::Plan;
use onbeat_model::record::Role;
use onbeat_model::system::{Channel, NodeId, ReservationMode, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::launch::LaunchTimes;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::talker::ChannelParameters;
use std::fmt;
use std::str::FromStr;

/// The word that a table begins with, before its version.
const FORMAT: &str = "onbeat-channels";
/// The newest version that is read. Tables are of the oldest version that can say what they say.
const VERSION: u32 = 5;
/// Words of a line about a channel in version 1.
const WORDS: usize = 10;
/// In version 2: integrity and talker's address come behind them.
const WORDS_2: usize = WORDS + 2;
/// In version 3: whether it is replicated, and its launch time, come behind them.
const WORDS_3: usize = WORDS_2 + 2;
/// In version 4 its buffer, in version 5 by how much it catches up comes behind them.
const WORDS_4: usize = WORDS_3 + 1;
const REPLICATED: &str = "r-tag";
const NOT_REPLICATED: &str = "bare";
/// The line of version 4, before a number.
const BY_STATION: &str = "backend network-code ";
/// Stands for an address that is not named, and for any time.
const ANY: &str = "any";

/// The most octets of a table: [`MAX_CHANNELS`] of the longest lines are less.
pub const TABLE_OCTETS: u64 = 1 << 20;

/// What ends the name of a table's file.
pub const TABLE_EXTENSION: &str = "channels";

/// The channels of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelTable {
    /// The system's name.
    pub system: String,
    /// The host's name.
    pub host: String,
    /// Who reserves bandwidth for its channels.
    pub reservation: ReservationMode,
    /// Where its station carries them: by how much that may be late.
    pub slot_error: Option<Span>,
    /// Its ends of channels, at most [`MAX_CHANNELS`].
    pub ends: Vec<TableEndpoint>,
}

/// A host's end of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEndpoint {
    /// The channel's name.
    pub name: String,
    /// Which end.
    pub role: Role,
    /// What both ends know of the channel; interface and clock add the rest.
    pub parameters: ChannelParameters,
    /// Where its host's station carries it: the buffer of the station's program. All ends of a
    /// table with a `slot_error` have one, and no others.
    pub buffer: Option<BufferId>,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongTable {
    /// It is something else.
    #[error("this is no table of a host's channels")]
    Other,
    /// It is of another version.
    #[error("this is a table of version {0}; versions 1 to {VERSION} are read")]
    Version(u32),
    /// A line is not as it should be.
    #[error("line {line}: {what}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Lines are missing at its end.
    #[error("the table is not complete: its end is missing")]
    Incomplete,
}

impl ChannelTable {
    /// The table of a host by a plan; `None` if it has more ends than a program may declare.
    pub fn of(system: &System, plan: &Plan, host: NodeId) -> Option<Self> {
        let roles = |channel: &Channel| {
            let talks = (channel.talker == host).then_some(Role::Talker);
            let listens = channel.listeners.contains(&host).then_some(Role::Listener);
            [talks, listens].into_iter().flatten()
        };
        let ends = system.channels.iter().zip(&plan.channels).flat_map(|(channel, planned)| {
            roles(channel).map(move |role| (channel, planned, role))
        });
        let ends = ends.map(|(channel, planned, role)| {
            let name = channel.name.clone();
            let launch = launch_times(channel, planned).filter(|_| role == Role::Talker);
            let parameters = ChannelParameters { launch, ..parameters_of(channel) };
            let catch_up = match role {
                Role::Talker => parameters.catch_up,
                Role::Listener => usual_catch_up(&parameters),
            };
            let parameters = ChannelParameters { catch_up, ..parameters };
            TableEndpoint { name, role, parameters, buffer: None }
        });
        let ends: Vec<_> = ends.collect();
        let host = system.node(host).name.clone();
        let reservation = match system.run.protected {
            true => system.run.reservation,
            false => ReservationMode::Plan,
        };
        let system = system.name.clone();
        let slot_error = None;
        (ends.len() <= MAX_CHANNELS).then_some(Self { system, host, reservation, slot_error, ends })
    }

    /// The same of a host whose station carries its channels, and may be late by so much; `None`
    /// also if a channel has no buffer.
    pub fn by_station(
        self,
        slot_error: Span,
        buffer_of: impl Fn(&str) -> Option<BufferId>,
    ) -> Option<Self> {
        let end = |end: TableEndpoint| {
            let buffer = Some(buffer_of(&end.name)?);
            // A message that comes late has missed its slot.
            let parameters = ChannelParameters { catch_up: Span::ZERO, ..end.parameters };
            Some(TableEndpoint { parameters, buffer, ..end })
        };
        let ends = self.ends.into_iter().map(end).collect::<Option<_>>()?;
        // Slots need no reservation.
        let (reservation, slot_error) = (ReservationMode::Plan, Some(slot_error));
        Some(Self { reservation, slot_error, ends, ..self })
    }
}

impl fmt::Display for ChannelTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain =
            |p: &ChannelParameters| p.integrity == Integrity::None && p.talker_address.is_none();
        let is_of_version_2 = |p: &ChannelParameters| !p.replicated && p.launch.is_none();
        let is_plain = self.ends.iter().all(|end| is_plain(&end.parameters));
        let version = match self.reservation {
            _ if self.slot_error.is_some() => 4,
            _ if !self.ends.iter().all(|end| catches_up_as_usual(&end.parameters)) => 5,
            _ if !self.ends.iter().all(|end| is_of_version_2(&end.parameters)) => 3,
            ReservationMode::Plan if is_plain => 1,
            _ => 2,
        };
        writeln!(f, "{FORMAT} {version}")?;
        let more = match version {
            1 => "",
            2 => "; integrity, talker's address",
            3 => "; integrity, talker's address, redundancy tag, launch time:lead",
            4 => "; integrity, talker's address, redundancy tag, launch time:lead, buffer",
            _ => "; integrity, talker's address, redundancy tag, launch time:lead, catching up",
        };
        writeln!(
            f,
            "# end, channel, destination, stream, VLAN, PCP, octets; ns: interval, tolerance, \
             fixed delay{more}"
        )?;
        writeln!(f, "system {}", self.system)?;
        writeln!(f, "host {}", self.host)?;
        if version > 1 {
            writeln!(f, "reservation {}", self.reservation.as_str())?;
        }
        if let Some(slot_error) = self.slot_error {
            writeln!(f, "{BY_STATION}{}", slot_error.as_ns())?;
        }
        for TableEndpoint { name, role, parameters: p, buffer } in &self.ends {
            let end = match role {
                Role::Talker => "talker",
                Role::Listener => "listener",
            };
            let (stream, octets) = (p.stream_id.0, p.size.get());
            let times = [p.interval, p.tolerance, p.fixed_delay].map(Span::as_ns);
            let [interval, tolerance, delay] = times;
            write!(
                f,
                "{end} {name} {} {stream:#018x} {} {} {octets} {interval} {tolerance} {delay}",
                p.destination, p.vlan, p.pcp,
            )?;
            if version > 1 {
                let talker = p.talker_address.map_or(ANY.to_owned(), |a| a.to_string());
                write!(f, " {} {talker}", p.integrity.as_str())?;
            }
            if version > 2 {
                let launch = p.launch.map_or(ANY.to_owned(), |launch| {
                    format!("{}:{}", launch.at.as_ns(), launch.lead.as_ns())
                });
                write!(f, " {} {launch}", if p.replicated { REPLICATED } else { NOT_REPLICATED })?;
            }
            match buffer {
                Some(buffer) => write!(f, " {}", buffer.0)?,
                None if version > 4 => write!(f, " {}", p.catch_up.as_ns())?,
                None => {}
            }
            writeln!(f)?;
        }
        writeln!(f, "end {}", self.ends.len())
    }
}

impl FromStr for ChannelTable {
    type Err = WrongTable;

    fn from_str(text: &str) -> Result<Self, WrongTable> {
        let lines = (1..).zip(text.lines());
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (_, first) = lines.next().ok_or(WrongTable::Other)?;
        let version = first.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix(' '));
        let version = match version.and_then(|version| version.parse().ok()) {
            Some(version @ 1..=VERSION) => version,
            Some(other) => return Err(WrongTable::Version(other)),
            None => return Err(WrongTable::Other),
        };
        let mut named = |what: &str| {
            let (line, text) = lines.next().ok_or(WrongTable::Incomplete)?;
            let name = text.strip_prefix(what).and_then(|rest| rest.strip_prefix(' '));
            let name = name.filter(|name| is_name(name, limits::NAME_OCTETS));
            let wrong = || WrongTable::Line { line, what: format!("expected `{what}` and a name") };
            name.map(str::to_owned).ok_or_else(wrong)
        };
        let (system, host) = (named("system")?, named("host")?);
        let reservation = match version {
            1 => ReservationMode::Plan,
            _ => {
                let (line, text) = lines.next().ok_or(WrongTable::Incomplete)?;
                read_reservation(text).ok_or_else(|| {
                    let what = "expected `reservation plan` or `reservation srp`".to_owned();
                    WrongTable::Line { line, what }
                })?
            }
        };
        let slot_error = match version {
            4 => {
                let (line, text) = lines.next().ok_or(WrongTable::Incomplete)?;
                let slot_error = read_backend(text).ok_or_else(|| {
                    let what = format!("expected `{BY_STATION}` and nanoseconds");
                    WrongTable::Line { line, what }
                })?;
                Some(slot_error)
            }
            _ => None,
        };
        let mut ends = Vec::new();
        for (line, text) in lines.by_ref() {
            let wrong = |what| WrongTable::Line { line, what };
            if let Some(count) = text.strip_prefix("end ") {
                if count.parse() != Ok(ends.len()) {
                    return Err(wrong(format!("`{text}` after {} channels", ends.len())));
                }
                return match lines.next() {
                    None => Ok(Self { system, host, reservation, slot_error, ends }),
                    Some((line, _)) => {
                        Err(WrongTable::Line { line, what: "nothing may follow the end".into() })
                    }
                };
            }
            if ends.len() == MAX_CHANNELS {
                return Err(wrong(format!("a program has at most {MAX_CHANNELS} channels")));
            }
            ends.push(read_end(text, version).map_err(wrong)?);
        }
        Err(WrongTable::Incomplete)
    }
}

/// Letters, digits, `-` and `_`, as names of descriptions have.
fn is_name(name: &str, most: usize) -> bool {
    let may = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    (1..=most).contains(&name.len()) && name.bytes().all(may)
}

/// By how much messages catch up if a table does not say it.
fn usual_catch_up(parameters: &ChannelParameters) -> Span {
    let ChannelParameters { interval, tolerance, launch, .. } = *parameters;
    let is_periodic = launch.is_none() && tolerance < interval;
    if is_periodic { interval + tolerance } else { Span::ZERO }
}

fn catches_up_as_usual(parameters: &ChannelParameters) -> bool {
    parameters.catch_up == usual_catch_up(parameters)
}

/// Reads the line that says who reserves.
fn read_reservation(line: &str) -> Option<ReservationMode> {
    let mode = line.strip_prefix("reservation ")?;
    [ReservationMode::Plan, ReservationMode::Srp].into_iter().find(|known| known.as_str() == mode)
}

/// Reads the line that says that a station carries the channels, and how late it may be.
fn read_backend(line: &str) -> Option<Span> {
    let ns = line.strip_prefix(BY_STATION)?.parse().ok().map(Span::from_ns)?;
    (Span::ZERO..=limits::SLOT_ERROR).contains(&ns).then_some(ns)
}

/// Reads integrity and talker's address.
fn read_integrity(words: &[&str]) -> Result<(Integrity, Option<MacAddress>), String> {
    let &[integrity, talker] = words else { return Ok((Integrity::None, None)) };
    let integrity =
        Integrity::named(integrity).ok_or("the integrity is `none`, `crc` or `authenticated`")?;
    let talker = match talker {
        ANY => None,
        address => Some(address.parse().map_err(|error| format!("the talker's address: {error}"))?),
    };
    Ok((integrity, talker))
}

/// Reads whether a channel is replicated.
fn read_tag(word: &str) -> Result<bool, String> {
    match word {
        REPLICATED => Ok(true),
        NOT_REPLICATED => Ok(false),
        _ => Err(format!("the redundancy tag is `{REPLICATED}` or `{NOT_REPLICATED}`")),
    }
}

/// Reads a launch time and its lead.
fn read_launch(word: &str) -> Result<Option<LaunchTimes>, String> {
    if word == ANY {
        return Ok(None);
    }
    let numbers = word.split_once(':').and_then(|(at, lead)| {
        let [at, lead] = [at.parse().ok()?, lead.parse().ok()?].map(Span::from_ns);
        Some(LaunchTimes { at, lead })
    });
    let wrong = || format!("the launch time is `{ANY}`, or two numbers of nanoseconds as in 2:1");
    numbers.ok_or_else(wrong).map(Some)
}

/// Reads a line about a channel.
fn read_end(line: &str, version: u32) -> Result<TableEndpoint, String> {
    fn number<T: FromStr>(word: &str, what: &str) -> Result<T, String> {
        // What is too long to be right is not repeated.
        let shown = word.get(..word.len().min(32)).unwrap_or_default();
        word.parse().map_err(|_| format!("the {what} `{shown}` is no number, or too large"))
    }
    let wanted = match version {
        1 => WORDS,
        2 => WORDS_2,
        3 => WORDS_3,
        _ => WORDS_4,
    };
    let words: Vec<&str> = line.split(' ').take(wanted + 1).collect();
    let (first, more) = match words.split_first_chunk::<WORDS>() {
        Some((first, more)) if words.len() == wanted => (*first, more),
        _ => return Err(format!("{wanted} words, one space between them, not {}", words.len())),
    };
    let [end, name, destination, stream, vlan, pcp, octets, interval, tolerance, delay] = first;
    let (more, newest) = more.split_at(more.len().min(WORDS_2 - WORDS));
    let (replicated, launch) = match *newest {
        [tag, launch, ..] => (read_tag(tag)?, read_launch(launch)?),
        _ => (false, None),
    };
    let (buffer, catch_up) = match *newest {
        [_, _, buffer] if version == 4 => {
            (Some(BufferId(number(buffer, "buffer")?)), Some(Span::ZERO))
        }
        [_, _, ns] => (None, Some(Span::from_ns(number(ns, "time to catch up")?))),
        _ => (None, None),
    };
    let (integrity, talker_address) = read_integrity(more)?;
    let role = match end {
        "talker" => Role::Talker,
        "listener" => Role::Listener,
        _ => return Err("expected `talker`, `listener` or `end`".to_owned()),
    };
    if !is_name(name, limits::CHANNEL_NAME_OCTETS) {
        let most = limits::CHANNEL_NAME_OCTETS;
        return Err(format!("a name has 1 to {most} letters, digits, `-` and `_`"));
    }
    let stream = stream.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let stream = stream.ok_or("the stream identifier is 0x and hexadecimal digits")?;
    let destination: MacAddress =
        destination.parse().map_err(|error| format!("the destination: {error}"))?;
    let parameters = ChannelParameters {
        destination,
        source: MacAddress::default(),
        stream_id: StreamId(stream),
        vlan: number(vlan, "VLAN identifier")?,
        pcp: number(pcp, "priority code point")?,
        replicated,
        size: Octets::new(number(octets, "size")?),
        integrity,
        talker_address,
        launch,
        interval: Span::from_ns(number(interval, "interval")?),
        tolerance: Span::from_ns(number(tolerance, "tolerance")?),
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ns(number(delay, "fixed delay")?),
        clock_error: Span::ZERO,
        epoch: 0,
    };
    let catch_up = catch_up.unwrap_or_else(|| usual_catch_up(&parameters));
    let parameters = ChannelParameters { catch_up, ..parameters };
    check(name, &parameters)?;
    Ok(TableEndpoint { name: name.to_owned(), role, parameters, buffer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "\
onbeat-channels 1
# end, channel, destination, stream, VLAN, PCP, octets; ns: interval, tolerance, fixed delay
system two-hosts
host plant
talker mcast42 91:e0:f0:00:fe:01 0x0000000000000001 2 3 8 20000000 125000 2000000
listener back 91:e0:f0:00:fe:02 0x0200000000000001 2 2 1471 1 0 0
end 2
";

    fn wrong(text: &str) -> String {
        text.parse::<ChannelTable>().expect_err(text).to_string()
    }

    #[test]
    fn a_table_is_read_as_it_is_written() {
        let table: ChannelTable = TABLE.parse().expect("a table");
        assert_eq!(table.to_string(), TABLE);
        assert_eq!((table.system.as_str(), table.host.as_str()), ("two-hosts", "plant"));
        let [talker, listener] = &table.ends[..] else { panic!("{table:?}") };
        assert_eq!((talker.name.as_str(), talker.role), ("mcast42", Role::Talker));
        assert_eq!((listener.name.as_str(), listener.role), ("back", Role::Listener));
        assert_eq!(talker.parameters.interval, Span::from_ms(20));
        assert_eq!(listener.parameters.stream_id, StreamId(0x0200_0000_0000_0001));
        let spaced = TABLE.replace('\n', "\n\n# a remark\n");
        assert_eq!(spaced.parse(), Ok(table));
    }

    #[test]
    fn what_is_no_table_says_so() {
        for text in ["", "[system]\nname = \"x\"\n", "onbeat-channels", "onbeat-channels one\n"] {
            assert_eq!(text.parse::<ChannelTable>(), Err(WrongTable::Other), "{text}");
        }
        assert_eq!("onbeat-channels 6\n".parse::<ChannelTable>(), Err(WrongTable::Version(6)));
    }

    #[test]
    fn a_table_of_version_2_says_who_reserves() {
        let text = TABLE
            .replace("channels 1", "channels 2")
            .replace("fixed delay", "fixed delay; integrity, talker's address")
            .replace("host plant\n", "host plant\nreservation srp\n")
            .replace(" 2000000\n", " 2000000 none any\n")
            .replace(" 1471 1 0 0\n", " 1471 1 0 0 none any\n");
        let table: ChannelTable = text.parse().expect("a table");
        assert_eq!(table.reservation, ReservationMode::Srp);
        assert_eq!(table.to_string(), text);
        let plan: ChannelTable = TABLE.parse().expect("a table");
        assert_eq!(plan.reservation, ReservationMode::Plan);
        for wrong_line in ["", "reservation all\n", "reservation \n"] {
            let said = wrong(&text.replace("reservation srp\n", wrong_line));
            assert!(said.contains("line 5: expected `reservation plan` or"), "{said}");
        }
    }

    #[test]
    fn a_table_of_version_3_says_what_is_replicated_and_when_frames_leave() {
        let text = TABLE
            .replace("channels 1", "channels 3")
            .replace(
                "fixed delay",
                "fixed delay; integrity, talker's address, redundancy tag, \
                                     launch time:lead",
            )
            .replace("host plant\n", "host plant\nreservation plan\n")
            .replace(" 2000000\n", " 2000000 none any r-tag 250000:60000\n")
            .replace(" 1471 1 0 0\n", " 1471 1 0 0 none any bare any\n");
        let table: ChannelTable = text.parse().expect("a table");
        assert_eq!(table.to_string(), text);
        let said = |end: &TableEndpoint| (end.parameters.replicated, end.parameters.launch);
        let launch = LaunchTimes { at: Span::from_us(250), lead: Span::from_us(60) };
        let said: Vec<_> = table.ends.iter().map(said).collect();
        assert_eq!(said, [(true, Some(launch)), (false, None)]);
        for (from, to, what) in [
            (" r-tag", "", "line 6: 14 words"),
            (" r-tag", " tag", "line 6: the redundancy tag is `r-tag` or `bare`"),
            ("250000:60000", "250000", "line 6: the launch time is `any`, or two numbers"),
            ("250000:60000", "20000000:0", "line 6: its launch time must be from"),
            ("250000:60000", "0:-1", "line 6: its lead before its launch time must be from"),
            (
                " 2 3 8 ",
                " 2 3 1471 ",
                "a message of 1471 octets; one of a replicated channel has one",
            ),
        ] {
            let said = wrong(&text.replacen(from, to, 1));
            assert!(said.contains(what), "{from} → {to}: {said}");
        }
    }

    #[test]
    fn a_table_of_version_4_says_which_buffers_of_a_station_carry_channels() {
        let text = TABLE
            .replace("channels 1", "channels 4")
            .replace(
                "fixed delay",
                "fixed delay; integrity, talker's address, redundancy tag, \
                 launch time:lead, buffer",
            )
            .replace("host plant\n", "host plant\nreservation plan\nbackend network-code 20000\n")
            .replace(" 2000000\n", " 2000000 none any bare any 255\n")
            .replace(" 1471 1 0 0\n", " 1471 1 0 0 none any bare any 0\n");
        let table: ChannelTable = text.parse().expect("a table");
        assert_eq!(table.to_string(), text);
        assert_eq!(table.slot_error, Some(Span::from_us(20)));
        let buffers: Vec<_> = table.ends.iter().map(|end| end.buffer).collect();
        assert_eq!(buffers, [255, 0].map(|buffer| Some(BufferId(buffer))));
        // The same of a table of a host without a station.
        let bare: ChannelTable = TABLE.parse().expect("a table");
        let buffer_of = |name: &str| Some(BufferId(if name == "back" { 0 } else { 255 }));
        assert_eq!(bare.clone().by_station(Span::from_us(20), buffer_of), Some(table));
        assert_eq!(bare.by_station(Span::ZERO, |_| None), None);
        for (from, to, what) in [
            (" 255\n", "\n", "line 7: 15 words"),
            (" 255\n", " 256\n", "line 7: the buffer `256` is no number, or too large"),
            ("network-code 20000", "bridges", "line 6: expected `backend network-code `"),
            ("network-code 20000", "network-code -1", "line 6: expected `backend network-code `"),
            ("network-code 20000", "network-code 10000001", "line 6: expected `backend"),
        ] {
            let said = wrong(&text.replacen(from, to, 1));
            assert!(said.contains(what), "{from} → {to}: {said}");
        }
    }

    #[test]
    fn a_table_of_version_5_says_what_catches_up() {
        let text = TABLE
            .replace("channels 1", "channels 5")
            .replace(
                "fixed delay",
                "fixed delay; integrity, talker's address, redundancy tag, \
                 launch time:lead, catching up",
            )
            .replace("host plant\n", "host plant\nreservation plan\n")
            .replace(" 2000000\n", " 2000000 none any bare any 20000000\n")
            .replace(" 1471 1 0 0\n", " 1471 1 0 0 none any bare any 0\n");
        let caught_up = |text: &str| -> Vec<Span> {
            let table: ChannelTable = text.parse().expect("a table");
            assert_eq!(table.to_string(), text);
            table.ends.iter().map(|end| end.parameters.catch_up).collect()
        };
        assert_eq!(caught_up(&text), [Span::from_ms(20), Span::ZERO]);
        // Those before mean what is usual; a burst has its own tolerance.
        assert_eq!(caught_up(TABLE), [Span::from_us(20_125), Span::from_ns(1)]);
        let burst = TABLE.replace(" 125000 ", " 20125000 ");
        assert_eq!(caught_up(&burst), [Span::ZERO, Span::from_ns(1)]);
        for (from, to, what) in [
            (" 20000000\n", "\n", "line 6: 15 words"),
            ("any 20000000\n", "any 40000001\n", "line 6: its catching up must be from"),
            ("any 20000000\n", "any -1\n", "line 6: its catching up must be from"),
            ("any 20000000\n", "any much\n", "line 6: the time to catch up `much`"),
        ] {
            let said = wrong(&text.replacen(from, to, 1));
            assert!(said.contains(what), "{from} → {to}: {said}");
        }
    }

    #[test]
    fn half_a_table_is_none() {
        let lines: Vec<&str> = TABLE.lines().collect();
        for kept in 1..lines.len() {
            let text = lines[..kept].join("\n");
            assert_eq!(text.parse::<ChannelTable>(), Err(WrongTable::Incomplete), "{text}");
        }
        assert!(wrong(&TABLE.replace("end 2", "end 1")).contains("line 7: `end 1` after 2"));
        assert!(wrong(&format!("{TABLE}talker")).contains("line 8: nothing may follow"));
    }

    #[test]
    fn each_word_of_a_channel_is_checked() {
        for (from, to, what) in [
            ("talker", "writer", "line 5: expected `talker`"),
            ("mcast42", "mc\u{1b}", "a name has 1 to 31"),
            ("mcast42", &"x".repeat(32), "a name has 1 to 31"),
            ("91:e0:f0:00:fe:01", "91:e0", "the destination"),
            ("91:e0:f0:00:fe:01", "00:00:00:00:00:00", "its destination is"),
            ("0x0000000000000001", "1", "the stream identifier is 0x"),
            ("0x0000000000000001", "0x0", "identifier 0 names no stream"),
            (" 2 3 8 ", " 4095 3 8 ", "its VLAN identifier"),
            (" 2 3 8 ", " 2 8 8 ", "its priority at most 7"),
            (" 2 3 8 ", " 2 3 0 ", "a message of 0 octets"),
            (" 2 3 8 ", " 2 3 99999999999 ", "the size"),
            ("20000000 ", "0 ", "its interval"),
            ("20000000 ", "9223372036854775808 ", "the interval"),
            ("125000 ", "-1 ", "its burst"),
            (" 2000000", "", "10 words"),
            (" 2000000", " 2000000 7", "10 words"),
            ("system two-hosts", "system ", "line 3: expected `system` and a name"),
            ("host plant", "host a b", "line 4: expected `host` and a name"),
        ] {
            let said = wrong(&TABLE.replacen(from, to, 1));
            assert!(said.contains(what), "{from} → {to}: {said}");
        }
    }

    #[test]
    fn a_table_says_how_messages_are_checked_and_who_may_talk() {
        let checked = TABLE
            .replace("channels 1", "channels 2")
            .replace("fixed delay", "fixed delay; integrity, talker's address")
            .replace("host plant\n", "host plant\nreservation plan\n")
            .replace(" 2000000\n", " 2000000 authenticated 02:00:00:00:00:07\n")
            .replace(" 1471 1 0 0\n", " 1468 1 0 0 crc any\n");
        let table: ChannelTable = checked.parse().expect("a table");
        assert_eq!(table.to_string(), checked);
        let [talker, listener] = &table.ends[..] else { panic!("{table:?}") };
        assert_eq!(talker.parameters.integrity, Integrity::Authenticated);
        assert_eq!(talker.parameters.talker_address, Some(MacAddress([2, 0, 0, 0, 0, 7])));
        assert_eq!(listener.parameters.integrity, Integrity::Crc);
        assert_eq!(listener.parameters.talker_address, None);
        for (from, to, what) in [
            ("authenticated", "secret", "the integrity is"),
            ("02:00:00:00:00:07", "02:00", "the talker's address"),
            ("02:00:00:00:00:07", "03:00:00:00:00:07", "a group's"),
            (" 1468 ", " 65537 ", "a message of 65537 octets; it may have 1 to 65536"),
            (" crc any", "", "12 words"),
            ("reservation plan\n", "", "line 5: expected `reservation"),
            ("channels 2\n", "channels 1\n", "line 5: 10 words"),
        ] {
            let said = wrong(&checked.replacen(from, to, 1));
            assert!(said.contains(what), "{from} → {to}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic_and_it_reads_what_it_writes(
            text in "(onbeat-channels [0-9]{1,2}\n)?(\\PC| |\n){0,200}",
            at in 0..TABLE.len(), octet in 0u8..128,
        ) {
            let mut mutated = TABLE.as_bytes().to_vec();
            mutated[at] = octet;
            let mutated = String::from_utf8(mutated).expect("ASCII");
            for text in [text, mutated] {
                if let Ok(table) = text.parse::<ChannelTable>() {
                    prop_assert_eq!(table.to_string().parse(), Ok(table));
                }
            }
        }
    }
}
