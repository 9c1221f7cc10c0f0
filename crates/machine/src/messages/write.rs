//! Writing record files.

use super::{CHANNELS_MAX, DESCRIPTION, NANOSECONDS};
use onbeat_model::fragment::Fragments;
use onbeat_model::record::flag;
use onbeat_model::units::Octets;
use onbeat_runtime::channel::MessageInfo;
use onbeat_runtime::fragment::Fragment;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{self, Header, MAX_FRAME};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};
use std::io::{self, Write};
use std::time::Duration;

/// A record file in progress.
pub struct MessageWriter<W: Write> {
    writer: PcapNgWriter<W>,
    channels: Vec<ChannelParameters>,
    frame: [u8; MAX_FRAME],
}

impl<W: Write> MessageWriter<W> {
    /// Begins a file of these channels.
    ///
    /// # Panics
    /// With more than [`CHANNELS_MAX`] channels.
    pub fn new<'a>(
        into: W,
        channels: impl Iterator<Item = (&'a str, ChannelParameters)>,
    ) -> io::Result<Self> {
        // The same octets on every machine.
        let mut writer =
            PcapNgWriter::with_endianness(into, Endianness::Little).map_err(unwritten)?;
        let mut known = Vec::new();
        for (name, parameters) in channels {
            let mut options = vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            if fragments(&parameters).count > 1 {
                let [before, after] = DESCRIPTION;
                let said = format!("{before}{}{after}", parameters.size.get());
                options.push(InterfaceDescriptionOption::IfDescription(said.into()));
            }
            // No limit to what is kept of a frame.
            let snaplen = 0;
            let block =
                InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen, options };
            writer.write_pcapng_block(block).map_err(unwritten)?;
            known.push(parameters);
        }
        assert!(known.len() <= CHANNELS_MAX, "{} channels in a file", known.len());
        Ok(Self { writer, channels: known, frame: [0; MAX_FRAME] })
    }

    /// Writes a message of the channel at that position. False: nothing is written, because it was
    /// captured before the start, for which time stamps have no number.
    ///
    /// # Panics
    /// When there is no such channel, or no frame carries a message so long.
    pub fn message(
        &mut self,
        channel: usize,
        info: &MessageInfo,
        value: &[u8],
    ) -> io::Result<bool> {
        let parameters = &self.channels[channel];
        let Ok(at) = u64::try_from(info.capture.as_ns()) else { return Ok(false) };
        let Fragments { count, octets } = fragments(parameters);
        let mut header = Header {
            destination: parameters.destination,
            source: parameters.source,
            vlan: parameters.vlan,
            pcp: parameters.pcp,
            r_tag: None,
            number: info.sequence as u16,
            instance: info.instance,
            uncertain: info.flags & flag::UNCERTAIN != 0,
            stream_id: parameters.stream_id,
            timestamp: parameters.epoch.wrapping_add(info.capture.as_ns()) as u32,
            meeting: info.meeting,
        };
        if count == 1 {
            self.packet(channel, &header, (value, at), info.gap)?;
            return Ok(true);
        }
        let first = header;
        for (index, part) in (0..).zip(value.chunks(octets.get() as usize)) {
            let mut payload = [0; MAX_FRAME];
            let fragment = Fragment { index, count: count as u16 };
            let length = fragment.emit(part, octets, &mut payload);
            header.number = (info.sequence.wrapping_mul(count.into()) as u16).wrapping_add(index);
            header.timestamp = first.timestamp.wrapping_add(index.into());
            let gap = if index == 0 { info.gap } else { 0 };
            self.packet(channel, &header, (&payload[..length], at + u64::from(index)), gap)?;
        }
        Ok(true)
    }

    /// Writes a frame as a packet.
    fn packet(
        &mut self,
        channel: usize,
        header: &Header,
        (payload, at): (&[u8], u64),
        gap: u32,
    ) -> io::Result<()> {
        let length = wire::emit(header, payload, &mut self.frame);
        let lost = (gap > 0).then(|| EnhancedPacketOption::DropCount(gap.into()));
        let packet = EnhancedPacketBlock {
            interface_id: channel as u32,
            timestamp: Duration::from_nanos(at),
            original_len: length as u32,
            data: (&self.frame[..length]).into(),
            options: lost.into_iter().collect(),
        };
        self.writer.write_pcapng_block(packet).map(drop).map_err(unwritten)
    }

    /// Gives the file back; what is written into it may still be in its buffer.
    pub fn finish(self) -> W {
        self.writer.into_inner()
    }
}

/// As its frames are made again: without what they carry beside the message.
fn fragments(parameters: &ChannelParameters) -> Fragments {
    Fragments::of(parameters.size, Octets::default())
}

/// Writing fails as the file does.
fn unwritten(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
