//! What the command and its part on another machine say to each other, over any stream of octets:
//! messages with a head as JSON, and what belongs to it as octets. Without I/O of its own.

use onbeat_model::system::{Backend, TransportKind, TuneProfile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::Ipv6Addr;

/// The most of a head.
const HEAD_OCTETS: u32 = 1 << 20;
/// The most of what belongs to it: the records of a run.
const BODY_OCTETS: u64 = (1 << 30) + (64 << 20);

/// What the command tells a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Keep the octets as a file, relative to the directory for the description.
    File { name: String, executable: bool },
    /// All files are there: look at the interface, the clock and the machine.
    Check(CheckOrder),
    /// Read the clock now.
    Clock { number: u32 },
    /// Set a profile of `tune`, until it is to be taken back or the part ends.
    Tune(TuneOrder),
    /// Run the programs of the host.
    Run(RunOrder),
    /// Take back what was set.
    Restore,
    /// The command is still there. Answered with [`Told::Alive`].
    Alive,
    /// End the run.
    Stop,
}

/// Which host of which description a machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckOrder {
    /// The description's file.
    pub(super) description: String,
    pub(super) host: String,
    pub(super) interface: String,
    pub(super) transport: TransportKind,
    /// ptp4l's management socket, if not the usual one.
    pub(super) ptp4l: Option<String>,
    /// Where programs are that were compiled, by their names.
    pub(super) built: BTreeMap<String, String>,
    /// The scenarios that will be run; empty: the description as it is.
    pub(super) scenarios: Vec<String>,
    /// The hosts that have machines.
    pub(super) hosts: Vec<String>,
    /// What will be set there for runs.
    pub(super) tunes: Vec<TuneOrder>,
}

/// A profile of `tune` for a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TuneOrder {
    /// The scenario that it is for, in which programs have the priorities that it takes; empty:
    /// none.
    pub(super) scenario: String,
    pub(super) profile: TuneProfile,
    /// The CPUs that are isolated, if the profile isolates any.
    pub(super) cores: Vec<u16>,
    /// Whether the interface is set whatever it carries.
    pub(super) force: bool,
    /// Below which the files are that are set; none: the machine's own.
    pub(super) root: Option<String>,
    /// After so long it is taken back in any case.
    pub(super) most_ns: i64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunOrder {
    /// Empty: none.
    pub(super) scenario: String,
    pub(super) duration_ns: i64,
    pub(super) seed: u64,
    pub(super) backend: Backend,
    pub(super) poll_expected: bool,
    pub(super) stamps: bool,
    pub(super) trace: bool,
    pub(super) break_ns: Option<i64>,
    /// What the machine's clock reads at the start.
    pub(super) epoch_ns: i64,
    /// By how much that clock is ahead of the machine's CLOCK_TAI.
    pub(super) clock_offset_ns: i64,
    /// By how much these differ among the machines at most.
    pub(super) clock_spread_ns: i64,
    /// The addresses of hosts that noise is sent between.
    pub(super) noise: BTreeMap<String, Ipv6Addr>,
}

/// What a machine tells the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Told {
    /// It has begun.
    Hello { version: String },
    /// What it has found.
    Checked {
        /// By how much its clock may be wrong by its own account, if it has one.
        clock_error_ns: Option<i64>,
        /// Else why that is not known.
        clock: String,
        /// What `doctor` finds that keeps it from what the system promises.
        blocks: Vec<String>,
        /// The link-local address of its interface.
        address: Option<Ipv6Addr>,
    },
    /// What CLOCK_TAI read.
    Clock { number: u32, tai_ns: i64 },
    /// What was set, on one line.
    Tuned { what: String },
    /// It was taken back, as far as nothing is said.
    Restored { note: Option<String> },
    /// The machine is still there.
    Alive,
    /// How far the run has come.
    Progress { ns: i64 },
    /// A part of what is recorded.
    Recorded,
    /// The run is over. With its records, and by how much the machine's clock was set meanwhile, in
    /// nanoseconds, at least and at most.
    Done { notes: Vec<String>, set_ns: Option<(i64, i64)> },
    /// An order could not be carried out.
    Failed { why: String },
}

/// A message as it is sent.
pub(super) fn encode(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let head = serde_json::to_vec(head).expect("heads are plain JSON");
    let mut octets = Vec::with_capacity(12 + head.len() + body.len());
    octets.extend(u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    octets.extend((body.len() as u64).to_le_bytes());
    octets.extend(head);
    octets.extend(body);
    octets
}

/// The next message of a stream; nothing at its end.
///
/// # Errors
/// When the stream fails or ends within a message, or a message is none.
pub(super) fn next<T: DeserializeOwned>(
    stream: &mut impl Read,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut lengths = [0; 12];
    match stream.read(&mut lengths[..1])? {
        0 => return Ok(None),
        _ => stream.read_exact(&mut lengths[1..])?,
    }
    let (head, body) = lengths.split_at(4);
    let head = u32::from_le_bytes(head.try_into().expect("four octets"));
    let body = u64::from_le_bytes(body.try_into().expect("eight octets"));
    if head > HEAD_OCTETS || body > BODY_OCTETS {
        return Err(wrong("this is no message"));
    }
    let head = take(stream, head.into())?;
    let head = serde_json::from_slice(&head).map_err(|error| wrong(&error.to_string()))?;
    Ok(Some((head, take(stream, body)?)))
}

/// So many octets: memory is only taken as they come.
fn take(stream: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    let taken = stream.take(length).read_to_end(&mut octets)? as u64;
    if taken < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(octets) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Vec<(Told, Vec<u8>)> {
        vec![
            (Told::Hello { version: "1".into() }, Vec::new()),
            (Told::Clock { number: 7, tai_ns: i64::MIN }, Vec::new()),
            (Told::Done { notes: vec!["ü\n".into()], set_ns: Some((-7, 0)) }, vec![0; 70_000]),
            (Told::Failed { why: String::new() }, vec![1]),
        ]
    }

    #[test]
    fn messages_come_as_they_were_sent_and_what_is_cut_off_is_none() {
        let messages = told();
        let octets: Vec<_> = messages.iter().flat_map(|(head, body)| encode(head, body)).collect();
        let mut stream = &octets[..];
        for message in &messages {
            assert_eq!(next::<Told>(&mut stream).expect("whole").as_ref(), Some(message));
        }
        assert_eq!(next::<Told>(&mut stream).expect("the end"), None);
        let first = encode(&messages[0].0, &messages[0].1).len();
        for end in 1..first {
            next::<Told>(&mut &octets[..end]).expect_err("cut off");
        }
    }

    #[test]
    fn what_is_no_message_is_an_error_and_takes_no_memory() {
        let huge = [&4_u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()[..], b"null"].concat();
        next::<Told>(&mut &huge[..]).expect_err("longer than anything");
        let claims = [&4_u32.to_le_bytes()[..], &BODY_OCTETS.to_le_bytes()[..], b"null"].concat();
        next::<Told>(&mut &claims[..]).expect_err("not what it says");
        for (head, body) in told() {
            let right = encode(&head, &body[..body.len().min(9)]);
            for at in 0..right.len() {
                for bit in 0..8 {
                    let mut wrong = right.clone();
                    wrong[at] ^= 1 << bit;
                    // Whatever it is, it ends.
                    let _ = next::<Told>(&mut &wrong[..]);
                    let _ = next::<Order>(&mut &wrong[..]);
                }
            }
        }
    }
}
