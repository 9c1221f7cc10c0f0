//! Reading record files: any octets give messages, or say where the file is damaged.

use super::{BLOCK_OCTETS, CHANNELS_MAX, DESCRIPTION, NANOSECONDS};
use onbeat_model::fragment::{Fragments, MESSAGE_MAX};
use onbeat_model::limits::{CHANNEL_NAME_OCTETS, DURATION};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::Octets;
use onbeat_runtime::fragment::Fragment;
use onbeat_runtime::wire::Frame;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{DataLink, PcapError};
use std::io::{ErrorKind, Read};

/// Type and length of a block.
const BLOCK_HEADER: usize = 8;
/// How a file begins: the type of its section's header. The magic number is behind the length.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const LITTLE_ENDIAN: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];

/// A file that no recorder writes, or that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("octet {at}: {why}")]
pub struct DamagedRecord {
    /// Where the block begins that is wrong.
    pub at: u64,
    /// What is wrong with it.
    pub why: String,
}

/// A channel that a file has messages of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChannel {
    /// Its name.
    pub name: String,
    /// The size of its messages so far; none without any.
    pub size: Option<Octets>,
    /// How many of them there were.
    pub messages: u64,
    /// How many are left out so far, as the file lacks fragments of them.
    pub incomplete: u64,
}

/// A message of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMessage<'a> {
    /// Which of the file's channels.
    pub channel: usize,
    /// When it was captured, from the start of the run.
    pub capture: SyncedTime,
    /// Messages lost between the one before and this one.
    pub lost: u64,
    /// Its octets.
    pub value: &'a [u8],
}

/// Reads a file message by message. It keeps one block, so a file may have any length.
pub struct MessageReader<R> {
    from: R,
    parser: Option<PcapNgParser>,
    channels: Vec<RecordedChannel>,
    /// Of each channel whose messages are in fragments: the one that is put together.
    parts: Vec<Option<Parts>>,
    block: Vec<u8>,
    /// Where the next block begins.
    at: u64,
}

/// A message of which some fragments are there.
struct Parts {
    octets: usize,
    fragments: Fragments,
    /// When it was captured, and what was lost before it.
    first: (SyncedTime, u64),
    /// Which fragment is next: 0 if none was taken of one that is not whole.
    next: u16,
    /// The message of the last fragment.
    seen: Option<SyncedTime>,
    /// How many messages are not whole.
    incomplete: u64,
    /// How many were lost before messages that are not whole.
    owed: u64,
    value: Vec<u8>,
}

impl Parts {
    /// Of a channel that has this description.
    fn of(description: &str) -> Option<Self> {
        let [before, after] = DESCRIPTION;
        let octets = description.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
        let most = MESSAGE_MAX.get() as usize;
        let octets = Some(octets).filter(|octets| (1..=most).contains(octets))?;
        let fragments = Fragments::of(Octets::new(octets as u32), Octets::default());
        (fragments.count > 1).then_some(Self {
            octets,
            fragments,
            first: (SyncedTime::ZERO, 0),
            next: 0,
            seen: None,
            incomplete: 0,
            owed: 0,
            value: Vec::new(),
        })
    }

    /// Takes a fragment, whose frame was captured at the first of `first`; when its message was
    /// captured and what was lost before it, if it is whole now.
    fn take(
        &mut self,
        payload: &[u8],
        (at, lost): (SyncedTime, u64),
    ) -> Result<Option<(SyncedTime, u64)>, String> {
        let Fragments { count, octets } = self.fragments;
        let fragment = Fragment::parse(payload).filter(|(it, _)| u32::from(it.count) == count);
        let (fragment, part) = fragment.ok_or("no fragment of a message")?;
        let of = at - Span::from_ns(fragment.index.into());
        let is_begun = self.next > 0 && self.first.0 == of;
        if is_begun && fragment.index < self.next {
            return Ok(None); // a copy
        }
        let begins = fragment.index == 0;
        if begins {
            self.value.clear();
            self.owed = self.owed.saturating_add(lost);
            (self.first, self.next) = ((of, self.owed), 0);
            self.seen = Some(of);
            self.incomplete += 1;
        } else if !is_begun || fragment.index != self.next {
            // The others of it are of no use.
            self.next = 0;
            self.incomplete += u64::from(self.seen != Some(of));
            self.seen = Some(of);
            return Ok(None);
        }
        if part.len() != octets.get() as usize {
            return Err("a fragment of another size".into());
        }
        self.value.extend_from_slice(part);
        self.next += 1;
        let is_whole = u32::from(self.next) == count;
        if is_whole {
            (self.incomplete, self.owed) = (self.incomplete - 1, 0);
        }
        Ok(is_whole.then_some(self.first))
    }
}

/// A message before it borrows the reader.
struct Found {
    channel: usize,
    capture: SyncedTime,
    lost: u64,
    /// Where in the block it is; none of one that was put together.
    value: Option<std::ops::Range<usize>>,
}

impl<R: Read> MessageReader<R> {
    /// Of a file from its beginning.
    pub fn new(from: R) -> Self {
        let (channels, parts) = (Vec::new(), Vec::new());
        Self { from, parser: None, channels, parts, block: Vec::new(), at: 0 }
    }

    /// The channels of the file as far as it was read.
    pub fn channels(&self) -> &[RecordedChannel] {
        &self.channels
    }

    /// The next message; none at the end.
    pub fn next_message(&mut self) -> Result<Option<RecordedMessage<'_>>, DamagedRecord> {
        loop {
            let at = self.at;
            let wrong = |why| DamagedRecord { at, why };
            if !self.fill().map_err(wrong)? {
                return Ok(None);
            }
            if let Some(found) = self.take().map_err(wrong)? {
                let Found { channel, capture, lost, value } = found;
                let value = match (value, &self.parts[channel]) {
                    (None, Some(parts)) => &parts.value[..parts.octets],
                    (value, _) => &self.block[value.unwrap_or_default()],
                };
                return Ok(Some(RecordedMessage { channel, capture, lost, value }));
            }
        }
    }

    /// Reads the next block; false at the end.
    fn fill(&mut self) -> Result<bool, String> {
        let mut header = [0; BLOCK_HEADER];
        let got = self.up_to(&mut header)?;
        if got == 0 && self.at > 0 {
            return Ok(false);
        }
        let is_first = self.at == 0;
        let is_section = header[..SECTION.len()] == SECTION;
        match (is_first, is_section) {
            (true, false) => {
                return Err("this is no record file: `onbeat record` writes one".into());
            }
            (false, true) => return Err("a second section: the file was joined of several".into()),
            _ if got < BLOCK_HEADER => return Err("the file ends within a block".into()),
            _ => {}
        }
        let length = u32::from_le_bytes(header[4..].try_into().expect("four octets")) as usize;
        if !(BLOCK_HEADER + 4..=BLOCK_OCTETS).contains(&length) {
            return Err(format!("a block of {length} octets; it has 12 to {BLOCK_OCTETS}"));
        }
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        block.extend_from_slice(&header);
        block.resize(length, 0);
        let got = self.up_to(&mut block[BLOCK_HEADER..])?;
        self.block = block;
        if got < length - BLOCK_HEADER {
            return Err("the file ends within a block".into());
        }
        if is_first && self.block[BLOCK_HEADER..BLOCK_HEADER + 4] != LITTLE_ENDIAN {
            return Err("the octets of its numbers are in another order than a recorder's".into());
        }
        self.at += length as u64;
        Ok(true)
    }

    /// Fills a buffer unless the file ends before; how far.
    fn up_to(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(filled)
    }

    /// What the block says: a message, or what need not be known.
    fn take(&mut self) -> Result<Option<Found>, String> {
        let Some(parser) = &mut self.parser else {
            self.parser = Some(PcapNgParser::new(&self.block).map_err(broken)?.1);
            return Ok(None);
        };
        match parser.next_block(&self.block).map_err(broken)?.1 {
            Block::InterfaceDescription(interface) => {
                if self.channels.len() == CHANNELS_MAX {
                    return Err(format!("more than {CHANNELS_MAX} channels"));
                }
                let (channel, parts) = channel_of(&interface)?;
                if self.channels.iter().any(|other| other.name == channel.name) {
                    return Err(format!("channel `{}` for the second time", channel.name));
                }
                self.channels.push(channel);
                self.parts.push(parts);
                Ok(None)
            }
            Block::EnhancedPacket(packet) => {
                let channel = packet.interface_id as usize;
                let of = self.channels.get_mut(channel);
                let of = of.ok_or_else(|| format!("a message of channel number {channel}"))?;
                let (capture, payload) = message_of(&packet)?;
                let lost = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::DropCount(count) => Some(*count),
                    _ => None,
                });
                let lost = lost.unwrap_or(0);
                if let Some(parts) = &mut self.parts[channel] {
                    let whole = parts.take(payload, (capture, lost));
                    let whole = whole.map_err(|why| format!("channel `{}`: {why}", of.name))?;
                    of.messages += u64::from(whole.is_some());
                    of.incomplete = parts.incomplete;
                    return Ok(whole.map(|(capture, lost)| Found {
                        channel,
                        capture,
                        lost,
                        value: None,
                    }));
                }
                // It borrows the block: where in it?
                let start = payload.as_ptr().addr() - self.block.as_ptr().addr();
                let size = Octets::new(payload.len() as u32);
                if *of.size.get_or_insert(size) != size {
                    let (name, size) = (&of.name, size.get());
                    return Err(format!("channel `{name}`: a message of another size, {size}"));
                }
                of.messages += 1;
                let value = Some(start..start + payload.len());
                Ok(Some(Found { channel, capture, lost, value }))
            }
            Block::Packet(_) | Block::SimplePacket(_) => {
                Err("a packet without channel and time in nanoseconds".into())
            }
            // Statistics and names that Wireshark adds.
            _ => Ok(None),
        }
    }
}

fn broken(error: PcapError) -> String {
    format!("not pcapng: {error}")
}

/// The channel that an interface is, and what its fragments are put together in.
fn channel_of(
    interface: &InterfaceDescriptionBlock<'_>,
) -> Result<(RecordedChannel, Option<Parts>), String> {
    let (mut name, mut parts) = (None, None);
    // Microseconds, where nothing else is said.
    let mut resolution = 6;
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfName(said) => name = Some(said.to_string()),
            InterfaceDescriptionOption::IfTsResol(said) => resolution = *said,
            InterfaceDescriptionOption::IfDescription(said) => parts = Parts::of(said),
            _ => {}
        }
    }
    let name = name.ok_or("an interface without a name: it is no channel")?;
    if name.is_empty() || name.len() > CHANNEL_NAME_OCTETS {
        return Err(format!("the name of a channel has 1 to {CHANNEL_NAME_OCTETS} octets"));
    }
    if interface.linktype != DataLink::ETHERNET || resolution != NANOSECONDS {
        let name = name.escape_debug();
        return Err(format!("interface `{name}` is no channel: not Ethernet in nanoseconds"));
    }
    let size = parts.as_ref().map(|parts| Octets::new(parts.octets as u32));
    Ok((RecordedChannel { name, size, messages: 0, incomplete: 0 }, parts))
}

/// The capture time and the octets of the message that a packet is.
fn message_of<'a>(packet: &'a EnhancedPacketBlock<'_>) -> Result<(SyncedTime, &'a [u8]), String> {
    let data = &packet.data[..];
    if packet.original_len as usize != data.len() {
        return Err("a frame that was cut off when it was captured".into());
    }
    let frame = Frame::parse(data).map_err(|why| format!("no frame of a channel: {why}"))?;
    let ns = i64::try_from(packet.timestamp.as_nanos()).ok();
    let capture = ns.map(Span::from_ns).filter(|since| *since <= DURATION);
    let capture =
        capture.ok_or_else(|| format!("a message more than {DURATION} after the start"))?;
    Ok((SyncedTime::ZERO + capture, frame.payload))
}
