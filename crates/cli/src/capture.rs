//! What a simulation's ports sent, as a pcapng file with nanosecond time stamps: one interface per
//! port, every frame with the octets that it would have on the wire, but for its FCS.
//!
//! The engine moves no octets of modelled traffic, so they are made here: frames of channels and
//! streams as [`onbeat_runtime::wire`] makes them, noise as UDP over IPv4. Those of protocols
//! (gPTP, MSRP, MVRP, TCP) are the ones that the engine moves.

use etherparse::PacketBuilder;
use onbeat_model::fragment::Fragments;
use onbeat_model::integrity::Integrity;
use onbeat_model::system::{ChannelId, NodeId, NodeKind, NoiseId, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId, frame};
use onbeat_net::{FlowRef, Transmission};
use onbeat_run::netns::ipv4_of;
use onbeat_runtime::integrity::{Epoch, KeyRing, Seal, Stamp};
use onbeat_runtime::wire;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapResult};
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

/// Time stamps are in 10⁻⁹ s (the interface option `if_tsresol`).
const NANOSECONDS: u8 = 9;
/// The UDP port that noise goes to and comes from: discard (RFC 863).
const DISCARD: u16 = 9;
/// Hops that the IPv4 header of noise allows.
const TIME_TO_LIVE: u8 = 64;
/// The first two octets of a stream's destination: a group address for whoever administers the
/// network (IEEE 802c-2017, AAI), of which none has a meaning elsewhere. The stream's number, from
/// 0, is the other four.
const STREAM_GROUP: [u8; 2] = [0x53, 0];

/// A capture file in progress.
pub(crate) struct Capture<'a, W: Write> {
    system: &'a System,
    writer: PcapNgWriter<W>,
    /// Per port: its interface in the file, if it is captured.
    interfaces: Vec<Option<u32>>,
    streams: Vec<Identity>,
    value: Vec<u8>,
}

/// What the frames of a channel or a stream have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    destination: MacAddress,
    stream_id: StreamId,
    talker: NodeId,
    vlan: u16,
    pcp: u8,
    replicated: bool,
}

impl<'a, W: Write> Capture<'a, W> {
    /// Begins a file with one interface for each of `ports`.
    pub(crate) fn new(system: &'a System, ports: &[PortId], into: W) -> PcapResult<Self> {
        // The same octets on every machine.
        let mut writer = PcapNgWriter::with_endianness(into, Endianness::Little)?;
        let mut interfaces = vec![None; system.ports.len()];
        for (number, port) in (0..).zip(ports) {
            let options = vec![
                InterfaceDescriptionOption::IfName(system.port_label(*port).into()),
                InterfaceDescriptionOption::IfSpeed(system.link_of(*port).rate.as_bps()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            // No limit to what is kept of a frame.
            writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options,
            })?;
            interfaces[port.index()] = Some(number);
        }
        let value = Vec::with_capacity(wire::MAX_FRAME);
        Ok(Self { system, writer, interfaces, streams: streams(system), value })
    }

    /// Writes a frame if its port is captured.
    pub(crate) fn frame(&mut self, sent: &Transmission) -> PcapResult<()> {
        let Some(interface_id) = self.interfaces[sent.port.index()] else { return Ok(()) };
        let octets = match sent.flow {
            FlowRef::Channel(id) => self.of_identity(sent, &of_channel(self.system, id)),
            FlowRef::Stream(id) => self.of_identity(sent, &self.streams[id.index()].clone()),
            FlowRef::Noise(id) => of_noise(self.system, id, sent.octets),
            FlowRef::Protocol => padded(sent.data.clone(), sent.octets),
        };
        let packet = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(sent.at.as_ns().max(0).unsigned_abs()),
            original_len: octets.len() as u32,
            data: octets.into(),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(packet).map(drop)
    }

    /// The frame of a channel or a stream. Its message holds its number, as that of a modelled
    /// talker in a run does.
    fn of_identity(&mut self, sent: &Transmission, identity: &Identity) -> Vec<u8> {
        let frames = match sent.flow {
            FlowRef::Channel(id) => self.system.channel(id).fragments(),
            _ => Fragments { count: 1, octets: Octets::default() },
        };
        let (message, index) = (sent.sequence / frames.count, sent.sequence % frames.count);
        // Those of one message are released at once.
        let capture = sent.captured + Span::from_ns(index.into());
        let header = wire::Header {
            destination: identity.destination,
            source: mac_of(self.system, identity.talker),
            vlan: identity.vlan,
            pcp: identity.pcp,
            r_tag: identity.replicated.then_some(sent.sequence as u16),
            number: sent.sequence as u16,
            instance: 1,
            uncertain: false,
            stream_id: identity.stream_id,
            timestamp: capture.as_ns() as u32,
            meeting: 0,
        };
        let before = header.unit_at() + wire::STREAM_HEADER;
        let (length, integrity) = match sent.flow {
            FlowRef::Channel(id) => {
                let channel = self.system.channel(id);
                (channel.fragments().payload().get() as usize, channel.integrity)
            }
            _ => (without_fcs(sent.octets).saturating_sub(before), Integrity::None),
        };
        let keys = || KeyRing::of_runs().of_stream(identity.stream_id, identity.destination);
        let keys = (integrity == Integrity::Authenticated).then(keys);
        let seal = Seal::new(integrity, keys, Epoch(1)).expect("there are keys");
        let stamp = Stamp { capture_ns: capture.as_ns(), counter: u64::from(sent.sequence) };
        self.value.clear();
        if frames.count > 1 {
            self.value.extend_from_slice(&(index as u16).to_be_bytes());
            self.value.extend_from_slice(&(frames.count as u16).to_be_bytes());
        }
        if index == 0 {
            self.value.extend_from_slice(&u64::from(message).to_le_bytes());
        }
        self.value.resize(length, 0);
        let mut octets = vec![0; without_fcs(sent.octets).max(wire::MIN_FRAME)];
        let written = seal.emit(&header, &self.value, stamp, &mut octets);
        assert_eq!(written, octets.len(), "the engine counts this frame otherwise");
        octets
    }

    /// Gives the file back; what is written into it may still be in its buffer.
    pub(crate) fn finish(self) -> W {
        self.writer.into_inner()
    }
}

fn without_fcs(octets: u16) -> usize {
    usize::from(octets) - frame::FCS.get() as usize
}

fn mac_of(system: &System, host: NodeId) -> MacAddress {
    match &system.node(host).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => unreachable!("only hosts are talkers"),
    }
}

fn of_channel(system: &System, id: ChannelId) -> Identity {
    let channel = system.channel(id);
    Identity {
        destination: channel.destination,
        stream_id: channel.stream_id,
        talker: channel.talker,
        vlan: channel.vlan,
        pcp: channel.pcp,
        replicated: channel.paths.is_replicated(),
    }
}

/// What the description does not say of streams, derived from it: the destination is
/// [`STREAM_GROUP`] and the stream's number; the stream id is the talker's address and a 16-bit
/// number, from 0 for the talker's first stream (IEEE 1722-2016 4.4.4.6). What a channel has
/// already is left out.
fn streams(system: &System) -> Vec<Identity> {
    let mut ids: BTreeSet<_> = system.channels.iter().map(|c| c.stream_id).collect();
    let mut destinations: BTreeSet<_> = system.channels.iter().map(|c| c.destination).collect();
    let mut next_id = vec![0_u64; system.nodes.len()];
    let mut next_destination = 0_u32;
    let identities = system.streams.iter().map(|stream| {
        let MacAddress([a, b, c, d, e, f]) = mac_of(system, stream.talker);
        let first = u64::from_be_bytes([a, b, c, d, e, f, 0, 0]);
        let next = &mut next_id[stream.talker.index()];
        let stream_id = loop {
            let id = StreamId(first + *next);
            *next += 1;
            if ids.insert(id) {
                break id;
            }
        };
        let destination = loop {
            let [a, b] = STREAM_GROUP;
            let [c, d, e, f] = next_destination.to_be_bytes();
            next_destination += 1;
            let address = MacAddress([a, b, c, d, e, f]);
            if destinations.insert(address) {
                break address;
            }
        };
        let (talker, vlan, pcp) = (stream.talker, stream.vlan, stream.pcp);
        let replicated = stream.paths.is_replicated();
        Identity { destination, stream_id, talker, vlan, pcp, replicated }
    });
    identities.collect()
}

/// A noise frame: UDP over IPv4, untagged, between the hosts' addresses.
fn of_noise(system: &System, id: NoiseId, octets: u16) -> Vec<u8> {
    let noise = &system.noise[id.index()];
    let [from, to] = [noise.from, noise.to].map(|host| mac_of(system, host).0);
    let [source, target] = [noise.from, noise.to].map(|host| ipv4_of(host).octets());
    let packet =
        PacketBuilder::ethernet2(from, to).ipv4(source, target, TIME_TO_LIVE).udp(DISCARD, DISCARD);
    let payload = vec![0; noise.payload.get() as usize];
    let mut built = Vec::with_capacity(without_fcs(octets));
    packet.write(&mut built, &payload).expect("a datagram of the description's size");
    padded(built, octets)
}

/// A frame of so many octets, FCS and all, without the FCS: the shortest ones are padded.
fn padded(mut frame: Vec<u8>, octets: u16) -> Vec<u8> {
    frame.resize(without_fcs(octets), 0);
    frame
}

#[cfg(test)]
mod tests;
