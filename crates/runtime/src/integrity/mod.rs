//! Integrity of a channel's messages: what a talker puts behind them ([`Seal`]), and what a reader
//! checks ([`Guard`]).
//!
//! The tag of an authenticated message is BLAKE2s, keyed, of 128 bits (RFC 7693). It covers the
//! whole data unit, the channel's destination, and the capture time in full: the frame has the
//! lower 32 bits of that, and the reader rebuilds the rest by its own clock. So a frame that is
//! repeated after these have wrapped does not verify. It does not cover what bridges may change,
//! the tag of the VLAN, nor the sender's address, which UDP does not carry (IEEE 1722 Annex J).
//!
//! # What is guaranteed
//!
//! *Nonces.* Stream, epoch, capture time and counter name a message. No two messages of one start
//! of a talker have the same counter; no two starts have the same epoch, as far as 64 random bits
//! differ. Where they do not, as on a machine without randomness, two messages have the same name
//! only if they have the same capture time too. A keyed hash needs no nonce to be unforgeable:
//! should a name come twice, the tag still proves who made the message.
//!
//! *Replay.* One opening of a reader accepts each message at most once, whatever the clocks do: of
//! the epoch that it reads, by a window of [`WINDOW`] counters; a message of another epoch only if
//! it was captured later than all that were accepted, so that it is none of them. Openings remember
//! nothing of each other: one accepts no message that was captured before it, by its own clock. If
//! that is set back between two of them, it may accept again what came in the time that it lives
//! twice.

mod key;

pub use key::{KEY, KEY_FILE_OCTETS, KEYS_MAX, KeyRing, StreamKeys, WrongKeys, hexadecimal};

use crate::channel_io::Reason;
use crate::talker::ChannelParameters;
use crate::wire::trailer::{AUTHENTICATION_TAG, COUNTERS, CRC, CRC_TRAILER, Mark, TAG_TRAILER};
use crate::wire::{self, Header, STREAM_HEADER};
use blake2::digest::Mac;
use onbeat_model::integrity::Integrity;
use onbeat_model::time::SyncedTime;

/// So many counters back a message of the same epoch is known to be new or a repetition.
pub const WINDOW: u64 = 64;

/// Counters of messages with a CRC are below this.
const CRC_COUNTERS: u64 = 1 << 32;

/// CRC-32P4 of AUTOSAR's CRC library, as E2E profile 4 uses it.
const AUTOSAR: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_AUTOSAR);

/// What tells a start of a talker from all others: random, and never chosen by a clock, which may
/// be set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(pub u64);

/// A message's capture time in nanoseconds of network time, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was captured.
    pub capture_ns: i64,
    /// The talker's count, from 0.
    pub counter: u64,
}

/// What a talker puts behind each message.
#[derive(Clone, Debug)]
pub struct Seal(SealKind);

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each end; nothing allocates")]
enum SealKind {
    None,
    Crc,
    Authenticated { keys: StreamKeys, epoch: Epoch },
}

impl Seal {
    /// Of the integrity that the channel has; `None` if that needs keys and there are none.
    pub fn new(integrity: Integrity, keys: Option<StreamKeys>, epoch: Epoch) -> Option<Self> {
        Some(Self(match integrity {
            Integrity::None => SealKind::None,
            Integrity::Crc => SealKind::Crc,
            Integrity::Authenticated => SealKind::Authenticated { keys: keys?, epoch },
        }))
    }

    /// The same in an emulation, where the network is the run's own.
    pub fn of_runs(parameters: &ChannelParameters, epoch: Epoch) -> Self {
        let keys = KeyRing::of_runs().of_stream(parameters.stream_id, parameters.destination);
        Self::new(parameters.integrity, Some(keys), epoch).expect("there are keys")
    }

    /// Whether it uses keys.
    #[inline]
    pub fn is_keyed(&self) -> bool {
        matches!(self.0, SealKind::Authenticated { .. })
    }

    /// From now on uses these.
    pub fn set_keys(&mut self, new: StreamKeys) {
        if let SealKind::Authenticated { keys, .. } = &mut self.0 {
            *keys = new;
        }
    }

    /// Writes a frame with its trailer into `into`, and returns how long it is. Real-time:
    /// bounded, allocates nothing.
    ///
    /// # Panics
    /// When message and trailer are longer than a frame can carry, or `into` shorter than the
    /// frame.
    #[inline]
    pub fn emit(&self, header: &Header, value: &[u8], stamp: Stamp, into: &mut [u8]) -> usize {
        match &self.0 {
            SealKind::None => wire::emit(header, value, into),
            SealKind::Crc => emit_with_crc(header, value, stamp, into),
            SealKind::Authenticated { keys, epoch: Epoch(epoch) } => {
                let (key, epoch) = (keys.current(), *epoch);
                let mark = Mark { key, counter: stamp.counter % COUNTERS, epoch };
                let mut trailer = [0; TAG_TRAILER];
                trailer[..TAG_TRAILER - AUTHENTICATION_TAG].copy_from_slice(&mark.to_octets());
                let length = wire::emit_with(header, value, &trailer, into);
                let Some(mac) = keys.mac(key) else { return length };
                let length_of_unit = STREAM_HEADER + value.len() + TAG_TRAILER;
                let unit = &mut into[header.unit_at()..];
                let (unit, rest) = unit.split_at_mut(length_of_unit - AUTHENTICATION_TAG);
                let tag = tagged(mac, unit, stamp.capture_ns).finalize();
                rest[..AUTHENTICATION_TAG].copy_from_slice(&tag.into_bytes());
                length
            }
        }
    }
}

impl Seal {
    /// The same into a frame of the channel that this has written before, `made` octets long, or 0
    /// if there is none: what is the same in both is not written again, if there is no trailer.
    #[inline]
    pub(crate) fn renew(
        &self,
        header: &Header,
        value: &[u8],
        stamp: Stamp,
        frame: &mut [u8],
        made: usize,
    ) -> usize {
        if made == 0 || !matches!(self.0, SealKind::None) {
            return self.emit(header, value, stamp, frame);
        }
        wire::renew(header, value, &mut frame[..made]);
        made
    }
}

fn emit_with_crc(header: &Header, value: &[u8], stamp: Stamp, into: &mut [u8]) -> usize {
    let mut trailer = [0; CRC_TRAILER];
    let counter = (stamp.counter % CRC_COUNTERS) as u32;
    trailer[..CRC_TRAILER - CRC].copy_from_slice(&counter.to_be_bytes());
    let length = wire::emit_with(header, value, &trailer, into);
    let unit = &mut into[header.unit_at()..];
    let end = STREAM_HEADER + value.len() + CRC_TRAILER - CRC;
    let sum = AUTOSAR.checksum(&unit[..end]);
    unit[end..end + CRC].copy_from_slice(&sum.to_be_bytes());
    length
}

/// Everything that the tag covers, behind the destination, with which it is begun. Only `unit` may
/// be of another length in another message, and its header says how long it is: no two messages are
/// the same octets here.
#[inline]
fn tagged<M: Mac>(mut mac: M, unit: &[u8], capture_ns: i64) -> M {
    mac.update(&capture_ns.to_be_bytes());
    mac.update(unit);
    mac
}

/// What a reader knows of the messages that it accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    epoch: u64,
    highest: u64,
    /// Bit n: the counter `highest` − n is taken.
    window: u64,
    /// The latest capture time.
    capture: SyncedTime,
}

/// What a reader checks of each message before it believes anything else that it says.
#[derive(Clone, Debug)]
pub struct Guard(GuardKind);

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each end; nothing allocates")]
enum GuardKind {
    None,
    Crc,
    Authenticated {
        keys: StreamKeys,
        /// Nothing is accepted that was captured before.
        since: SyncedTime,
        /// Whether a message of another epoch must be later than all before.
        doubts: bool,
        seen: Option<Seen>,
    },
}

/// A message that is what its talker made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Its number, and below what numbers are; none where only the frame's own header has one.
    pub(crate) counter: Option<(u64, u64)>,
    /// Its talker has the key, wherever the frame seems to come from.
    pub(crate) is_authentic: bool,
    seen: Option<Seen>,
}

impl Guard {
    /// Of the integrity that the channel has, for an end that opens at `since` by its own clock;
    /// `None` if that needs keys and there are none.
    pub fn new(integrity: Integrity, keys: Option<StreamKeys>, since: SyncedTime) -> Option<Self> {
        Some(Self(match integrity {
            Integrity::None => GuardKind::None,
            Integrity::Crc => GuardKind::Crc,
            Integrity::Authenticated => {
                GuardKind::Authenticated { keys: keys?, since, doubts: true, seen: None }
            }
        }))
    }

    /// The same in an emulation, where the network is the run's own: a talker that is started again
    /// is read at once, though its clock was set back, as without integrity.
    pub fn of_runs(parameters: &ChannelParameters) -> Self {
        let keys = KeyRing::of_runs().of_stream(parameters.stream_id, parameters.destination);
        let since = SyncedTime::from_ns(i64::MIN);
        let mut guard = Self::new(parameters.integrity, Some(keys), since).expect("there are keys");
        if let GuardKind::Authenticated { doubts, .. } = &mut guard.0 {
            *doubts = false;
        }
        guard
    }

    /// Whether it uses keys.
    #[inline]
    pub fn is_keyed(&self) -> bool {
        matches!(self.0, GuardKind::Authenticated { .. })
    }

    /// From now on accepts messages of these only.
    pub fn set_keys(&mut self, new: StreamKeys) {
        if let GuardKind::Authenticated { keys, .. } = &mut self.0 {
            *keys = new;
        }
    }

    /// Whether a data unit is what its talker made, captured at `capture`, if the end's clock reads
    /// `now`. [`Guard::pass`] then makes it one that was seen.
    #[inline]
    pub(crate) fn check(
        &mut self,
        unit: &[u8],
        parameters: &ChannelParameters,
        [capture, now]: [SyncedTime; 2],
    ) -> Result<Verified, Reason> {
        match &mut self.0 {
            GuardKind::None => Ok(Verified { counter: None, is_authentic: false, seen: None }),
            GuardKind::Crc => check_crc(unit),
            GuardKind::Authenticated { keys, since, doubts, seen } => {
                // The clock was set back: what it said before means nothing any more.
                *since = now.min(*since);
                let at = unit.len().checked_sub(TAG_TRAILER).ok_or(Reason::Shape)?;
                let mark = Mark::parse(&unit[at..]).map_err(|_| Reason::Shape)?;
                let mac = keys.mac(mark.key).ok_or(Reason::UnknownKey)?;
                let (covered, tag) = unit.split_at(unit.len() - AUTHENTICATION_TAG);
                let captured = parameters.epoch.wrapping_add(capture.as_ns());
                let mac = tagged(mac, covered, captured);
                // In constant time.
                mac.verify_slice(tag).map_err(|_| Reason::NotAuthentic)?;
                if capture < *since {
                    return Err(Reason::Stale);
                }
                let after = Seen::after(*seen, mark, capture, *doubts)?;
                let seen = Some(after);
                let counter = Some((mark.counter, COUNTERS));
                Ok(Verified { counter, is_authentic: true, seen })
            }
        }
    }

    /// The message was taken: it will not be accepted again.
    #[inline]
    pub(crate) fn pass(&mut self, verified: &Verified) {
        if let GuardKind::Authenticated { seen, .. } = &mut self.0 {
            *seen = verified.seen;
        }
    }
}

fn check_crc(unit: &[u8]) -> Result<Verified, Reason> {
    let (covered, sum) = unit.split_last_chunk::<CRC>().ok_or(Reason::Shape)?;
    if AUTOSAR.checksum(covered) != u32::from_be_bytes(*sum) {
        return Err(Reason::Damaged);
    }
    let (_, counter) = covered.split_last_chunk::<4>().ok_or(Reason::Shape)?;
    let counter = Some((u64::from(u32::from_be_bytes(*counter)), CRC_COUNTERS));
    Ok(Verified { counter, is_authentic: false, seen: None })
}

impl Seen {
    /// What is known when this message is accepted, or why it is not.
    fn after(
        before: Option<Self>,
        mark: Mark,
        capture: SyncedTime,
        doubts: bool,
    ) -> Result<Self, Reason> {
        let Mark { counter, epoch, .. } = mark;
        let first = Self { epoch, highest: counter, window: u64::MAX, capture };
        let Some(seen) = before else { return Ok(first) };
        if seen.epoch != epoch {
            // The talker was started again, or somebody repeats what an earlier start sent.
            let is_later = capture > seen.capture;
            return if is_later || !doubts { Ok(first) } else { Err(Reason::Stale) };
        }
        let capture = seen.capture.max(capture);
        if counter > seen.highest {
            let ahead = u32::try_from(counter - seen.highest).unwrap_or(u32::MAX);
            let window = seen.window.checked_shl(ahead).unwrap_or(0) | 1;
            return Ok(Self { epoch, highest: counter, window, capture });
        }
        let bit = u32::try_from(seen.highest - counter).ok().and_then(|n| 1u64.checked_shl(n));
        match bit.filter(|bit| seen.window & bit == 0) {
            Some(bit) => Ok(Self { window: seen.window | bit, capture, ..seen }),
            None => Err(Reason::Replayed),
        }
    }
}
