//! One end of a stream by way of mrpd, the MRP daemon of OpenAvnu, without I/O: commands out,
//! notices in. A command is a text in one datagram to UDP port 7500 of this host.
//!
//! mrpd does not withdraw what a program asked for when that program dies, and it echoes its own
//! declarations as if they had been registered. So nothing is concluded here from a Domain or a
//! Talker of this program's own, and a program that is killed leaves its streams declared.

use super::protocol::{Offer, Phase, Request, StreamStatus};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, StreamId};
use onbeat_runtime::msrp::{BridgeId, FailureCode, FailureInformation, TSpec, class_id};

/// Where mrpd listens.
pub const PORT: u16 = 7_500;
/// The most octets of a datagram.
pub const DATAGRAM_MAX: usize = 1_500;
/// How long mrpd has to tell the neighbour's domain before a talker is announced with its own.
pub const LEARN: Span = Span::from_ms(300);
/// What subscribes to notices, and asks for all attributes.
pub const QUERY: &str = "S??";
/// What ends the subscription.
const BYE: &str = "BYE";

/// What mrpd says of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is registered: no longer, after a leave.
    pub is_there: bool,
    /// The attribute.
    pub attribute: MrpdAttribute,
}

/// An attribute in mrpd's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MrpdAttribute {
    /// `T:` Talker Advertise, or Talker Failed if there is a failure code.
    Talker {
        /// The stream.
        stream: StreamId,
        /// Where its frames go.
        destination: MacAddress,
        /// In which VLAN.
        vid: u16,
        /// How much it sends.
        tspec: TSpec,
        /// PriorityAndRank.
        priority_and_rank: u8,
        /// The accumulated latency.
        latency_ns: u32,
        /// Why it cannot be had.
        failure: Option<FailureInformation>,
    },
    /// `L:` Listener, with its four-packed value.
    Listener(StreamId, u8),
    /// `D:` Domain: SRclassID, its priority and VLAN, as the neighbour has them if it said so.
    Domain {
        /// SRclassID.
        class: u8,
        /// The priority.
        priority: u8,
        /// The VLAN.
        vid: u16,
    },
}

/// The fields of an attribute: `S=0123,A=…`.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.0.split(',').filter_map(|field| field.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn hex(&self, key: &str) -> Option<u64> {
        // A sign is no digit.
        let text = self.text(key)?;
        let digits = text.bytes().all(|octet| octet.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    }

    fn number<T: TryFrom<u64>>(&self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        let digits = text.bytes().all(|octet| octet.is_ascii_digit());
        let value: u64 = digits.then(|| text.parse().ok()).flatten()?;
        value.try_into().ok()
    }

    fn vid(&self) -> Option<u16> {
        u16::try_from(self.hex("V")?).ok().filter(|vid| (1..=4_094).contains(vid))
    }
}

/// Reads one line; `None` of what is no notice of MSRP.
pub fn parse(line: &str) -> Option<Notice> {
    let (event, rest) = match line.split_once(' ') {
        Some((event @ ("SNE" | "SJO" | "SLE"), rest)) => (event, rest),
        // The answer to a query.
        _ => ("SJO", line),
    };
    let (kind, rest) = rest.split_once(':')?;
    let fields = Fields(rest.split(' ').next().unwrap_or_default());
    let attribute = match kind {
        "T" => talker(&fields)?,
        "L" => {
            let value = fields.number("D").filter(|value| *value <= 3)?;
            MrpdAttribute::Listener(StreamId(fields.hex("S")?), value)
        }
        "D" => {
            let own: u8 = fields.number("P").filter(|priority| *priority <= 7)?;
            let neighbours = fields.number("N").filter(|priority| (1..=7).contains(priority));
            MrpdAttribute::Domain {
                class: fields.number("C")?,
                priority: neighbours.unwrap_or(own),
                vid: fields.vid()?,
            }
        }
        _ => return None,
    };
    Some(Notice { is_there: event != "SLE", attribute })
}

fn talker(fields: &Fields<'_>) -> Option<MrpdAttribute> {
    let [0, 0, address @ ..] = fields.hex("A")?.to_be_bytes() else { return None };
    let failure = match fields.number::<u8>("C") {
        None | Some(0) => None,
        Some(code) => {
            let bridge = BridgeId(fields.hex("B").unwrap_or_default().to_be_bytes());
            Some(FailureInformation { bridge, code: FailureCode(code) })
        }
    };
    Some(MrpdAttribute::Talker {
        stream: StreamId(fields.hex("S")?),
        destination: MacAddress(address),
        vid: fields.vid()?,
        tspec: TSpec {
            max_frame_size: fields.number("Z")?,
            max_interval_frames: fields.number("I")?,
        },
        priority_and_rank: fields.number("P")?,
        latency_ns: fields.number("L")?,
        failure,
    })
}

/// All notices of a datagram: lines that end with a line feed, zeros behind the last.
pub fn notices(datagram: &[u8]) -> impl Iterator<Item = Notice> {
    let datagram = &datagram[..datagram.len().min(DATAGRAM_MAX)];
    let lines = datagram.split(|octet| matches!(octet, b'\n' | b'\r' | 0));
    lines.filter_map(|line| parse(std::str::from_utf8(line).ok()?.trim()))
}

/// One end of a stream.
#[derive(Debug)]
pub struct MrpdEnd {
    status: StreamStatus,
    /// A talker's.
    offer: Option<Offer>,
    /// Whether it is announced; a listener: the four-packed value that it declares.
    declares: Option<u8>,
    /// Whether a Domain of another class, and whether one of the stream's, was registered.
    domains: [bool; 2],
}

impl MrpdEnd {
    /// The end that asks for this; `None` if it asks for no stream.
    pub fn new(request: Request) -> Option<Self> {
        let (role, stream, offer) = match request {
            Request::Advertise(offer) => (Role::Talker, offer.stream, Some(offer)),
            Request::Listen(stream) => (Role::Listener, stream, None),
            Request::Show => return None,
        };
        let mut status = StreamStatus::new(role, stream);
        status.phase = if offer.is_some() { Phase::Asking } else { Phase::NoTalker };
        if let Some(offer) = offer {
            status.destination = Some(offer.destination);
            (status.vid, status.priority) = (Some(offer.vid), Some(offer.priority));
            status.tspec = Some(offer.tspec);
        }
        Some(Self { status, offer, declares: None, domains: [false; 2] })
    }

    /// How the stream stands.
    pub fn status(&self) -> &StreamStatus {
        &self.status
    }

    /// Whether it waits for [`LEARN`] to pass since [`QUERY`] was sent.
    pub fn is_learning(&self) -> bool {
        self.offer.is_some() && self.declares.is_none()
    }

    /// The commands that announce a talker, with the domain that was learnt.
    pub fn announce(&mut self) -> Vec<String> {
        let Some(offer) = self.offer.filter(|_| self.declares.is_none()) else {
            return Vec::new();
        };
        self.declares = Some(0);
        self.status.phase = Phase::Advertised;
        let vid = self.status.vid.unwrap_or(offer.vid);
        let priority = self.status.priority.unwrap_or(offer.priority);
        let Offer { stream, destination, class, tspec, .. } = offer;
        let TSpec { max_frame_size, max_interval_frames } = tspec;
        let [a, b, c, d, e, f] = destination.0;
        let latency = class.measurement_interval().map_or(0, Span::as_ns);
        vec![
            // Without a bridge nobody declares one, and clients of other kinds wait for it.
            format!("S+D:C={},P={priority},V={vid:04x}", class_id(class)),
            format!("V++:I={vid:04x}"),
            format!(
                "S++:S={:016x},A={a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x},V={vid:04x},\
                 Z={max_frame_size},I={max_interval_frames},P={},L={latency}",
                stream.0,
                priority << 5 | 1 << 4,
            ),
        ]
    }

    /// Takes a datagram; gives the commands that follow.
    pub fn receive(&mut self, datagram: &[u8]) -> Vec<String> {
        let mut commands = Vec::new();
        for Notice { is_there, attribute } in notices(datagram) {
            match (attribute, self.status.role) {
                (MrpdAttribute::Listener(stream, value), Role::Talker)
                    if stream == self.status.stream && self.declares.is_some() =>
                {
                    self.hear_listener(if is_there { value } else { 0 });
                }
                (MrpdAttribute::Domain { class, priority, vid }, Role::Talker) if is_there => {
                    self.hear_domain(class, priority, vid);
                }
                (MrpdAttribute::Talker { stream, .. }, Role::Listener)
                    if stream == self.status.stream =>
                {
                    self.hear_talker(is_there.then_some(attribute), &mut commands);
                }
                _ => {}
            }
        }
        commands
    }

    fn hear_listener(&mut self, value: u8) {
        let is_foreign = self.domains == [true, false];
        self.status.phase = match value {
            1 => Phase::AskingFailed,
            2 => Phase::Ready,
            3 => Phase::ReadyFailed,
            _ if is_foreign => Phase::DomainMismatch,
            _ => Phase::Advertised,
        };
    }

    fn hear_domain(&mut self, class: u8, priority: u8, vid: u16) {
        let is_own = self.offer.is_some_and(|offer| class == class_id(offer.class));
        self.domains[usize::from(is_own)] = true;
        // What is announced may not change before it is withdrawn.
        if is_own && self.is_learning() {
            (self.status.priority, self.status.vid) = (Some(priority), Some(vid));
        }
    }

    fn hear_talker(&mut self, talker: Option<MrpdAttribute>, commands: &mut Vec<String>) {
        let stream = self.status.stream;
        let Some(MrpdAttribute::Talker {
            destination,
            vid,
            tspec,
            priority_and_rank,
            latency_ns,
            failure,
            ..
        }) = talker
        else {
            if self.declares.take().is_some() {
                commands.push(format!("S-L:L={:016x}", stream.0));
            }
            self.status = StreamStatus {
                phase: Phase::NoTalker,
                ..StreamStatus::new(Role::Listener, stream)
            };
            return;
        };
        self.status.destination = Some(destination);
        (self.status.vid, self.status.priority) = (Some(vid), Some(priority_and_rank >> 5));
        self.status.tspec = Some(tspec);
        self.status.latency = Some(Span::from_ns(latency_ns.into()));
        let (phase, value) = match failure {
            Some(failure) => (Phase::Failed(failure), 1),
            None => (Phase::Ready, 2),
        };
        self.status.phase = phase;
        if self.declares.replace(value) == Some(value) {
            return;
        }
        if value == 2 {
            // The VLAN before Ready (35.1.2.2).
            commands.push(format!("V++:I={vid:04x}"));
        }
        commands.push(format!("S+L:L={:016x},D={value}", stream.0));
    }

    /// The commands that withdraw what it asked for. The VLAN may be other programs' too: it stays.
    pub fn end(&mut self) -> Vec<String> {
        let stream = self.status.stream.0;
        let withdraw = self.declares.take().map(|_| match self.status.role {
            Role::Talker => format!("S--:S={stream:016x}"),
            Role::Listener => format!("S-L:L={stream:016x}"),
        });
        withdraw.into_iter().chain([BYE.to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::system::Class;
    use proptest::prelude::*;

    fn offer() -> Offer {
        Offer {
            stream: StreamId(0x0200_0000_aabb_0001),
            destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1]),
            class: Class::A,
            vid: 2,
            priority: 3,
            tspec: TSpec { max_frame_size: 224, max_interval_frames: 1 },
        }
    }

    fn datagram(text: &str) -> Vec<u8> {
        let mut octets = text.as_bytes().to_vec();
        octets.resize(DATAGRAM_MAX, 0);
        octets
    }

    #[test]
    fn a_talker_is_announced_in_mrpds_words_and_sends_while_a_listener_is_ready() {
        let mut end = MrpdEnd::new(Request::Advertise(offer())).expect("a stream");
        assert!(end.is_learning());
        let announced = [
            "S+D:C=6,P=3,V=0002",
            "V++:I=0002",
            "S++:S=02000000aabb0001,A=91e0f000fe01,V=0002,Z=224,I=1,P=112,L=125000",
        ];
        assert_eq!(end.announce(), announced);
        assert_eq!(end.status().phase, Phase::Advertised);
        let listener = |event: &str, value: u8| {
            datagram(&format!("{event} L:D={value},S=02000000aabb0001 R=020000000001 VO/IN\n"))
        };
        for (event, value, phase) in [
            ("SNE", 2, Phase::Ready),
            ("SJO", 3, Phase::ReadyFailed),
            ("SJO", 1, Phase::AskingFailed),
            ("SLE", 2, Phase::Advertised),
        ] {
            assert_eq!(end.receive(&listener(event, value)), [""; 0]);
            assert_eq!(end.status().phase, phase, "{event} {value}");
        }
        end.receive(&datagram("SJO L:D=2,S=02000000aabb0002 R=020000000001 VO/IN\n"));
        assert_eq!(end.status().phase, Phase::Advertised, "another stream's listener");
        assert_eq!(end.end(), ["S--:S=02000000aabb0001", "BYE"]);
    }

    #[test]
    fn a_talker_takes_the_neighbours_priority_and_vlan() {
        let mut end = MrpdEnd::new(Request::Advertise(offer())).expect("a stream");
        end.receive(&datagram("D:C=6,P=3,V=0005,N=4 R=020000000001 QA/IN\n"));
        let announced = end.announce();
        assert_eq!(announced[0], "S+D:C=6,P=4,V=0005");
        assert!(announced[2].contains(",V=0005,") && announced[2].contains(",P=144,"));
        // It may not change what is announced.
        end.receive(&datagram("SJO D:C=6,P=3,V=0002,N=3 R=020000000001 QA/IN\n"));
        assert_eq!((end.status().vid, end.status().priority), (Some(5), Some(4)));
    }

    #[test]
    fn a_listener_joins_the_vlan_before_it_is_ready_and_says_why_it_is_not() {
        let mut end = MrpdEnd::new(Request::Listen(offer().stream)).expect("a stream");
        assert!(!end.is_learning());
        let talker = |event: &str, more: &str| {
            datagram(&format!(
                "{event}T:S=02000000aabb0001,A=91e0f000fe01,V=0002,Z=224,I=1,P=112,L=250000{more} \
                 R=020000000001 QA/IN\n"
            ))
        };
        let ready = ["V++:I=0002", "S+L:L=02000000aabb0001,D=2"];
        assert_eq!(end.receive(&talker("", ",B=0000000000000000,C=0")), ready);
        assert_eq!(end.status().phase, Phase::Ready);
        assert_eq!(end.status().latency, Some(Span::from_us(250)));
        assert_eq!(end.receive(&talker("SJO ", "")), [""; 0], "it is said once");
        let failed = end.receive(&talker("SJO ", ",B=8000020000cc0001,C=1"));
        assert_eq!(failed, ["S+L:L=02000000aabb0001,D=1"]);
        let Phase::Failed(failure) = end.status().phase else { panic!("{end:?}") };
        assert_eq!(failure.code, FailureCode::BANDWIDTH);
        assert_eq!(failure.bridge.to_string(), "8000.02:00:00:cc:00:01");
        assert_eq!(end.receive(&talker("SLE ", "")), ["S-L:L=02000000aabb0001"]);
        assert_eq!(end.status().phase, Phase::NoTalker);
        assert_eq!(end.end(), ["BYE"]);
    }

    #[test]
    fn a_domain_of_other_classes_only_is_a_mismatch() {
        let mut end = MrpdEnd::new(Request::Advertise(offer())).expect("a stream");
        end.announce();
        end.receive(&datagram("SJO D:C=5,P=2,V=0002,N=2 R=020000000001 QA/IN\n"));
        end.receive(&datagram("SLE L:D=0,S=02000000aabb0001 R=020000000001 VO/MT\n"));
        assert_eq!(end.status().phase, Phase::DomainMismatch);
    }

    #[test]
    fn what_mrpd_never_says_is_no_notice() {
        for line in [
            "",
            "ERC",
            "ERP S+L:S=1",
            "MSRP:Empty",
            "SJO",
            "SJO T:",
            "L:D=4,S=1",
            "L:D=2,S=+1",
            "D:C=6,P=3,V=0fff,N=3",
            "D:C=6,P=8,V=0002",
            "T:S=1,A=1ffffffffffff,V=0002",
            "L:D=2,S=",
            "V:I=0002 R=020000000001 QA/IN",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_datagram_makes_an_end_panic(
            text in "((SNE|SJO|SLE) )?[TLD]:(S=[0-9a-f]{1,17},?|[A-Z]=[0-9]{1,9},?){0,8}[ \n\0]",
            is_talker: bool,
        ) {
            let request = match is_talker {
                true => Request::Advertise(offer()),
                false => Request::Listen(offer().stream),
            };
            let mut end = MrpdEnd::new(request).expect("a stream");
            end.announce();
            let commands = end.receive(text.as_bytes());
            prop_assert!(commands.iter().all(|command| command.len() < DATAGRAM_MAX));
        }
    }
}
