//! Hosts on a link and behind a bridge, in virtual time, without loss.

use super::host::{ANSWER, ClientId, HostAction, HostInput, OwnPort, SILENCE, SrpHost};
use onbeat::interface::srp::{Answer, Neighbour, Offer, Phase, Refusal, Request, StreamStatus};
use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::mrp::{MrpInput, MrpSettings, Propagation, PropagationInput};
use onbeat_runtime::msrp::{
    BridgeAction, BridgeId, BridgeInput, FailureCode, MsrpBridge, MsrpBridgeSettings, MsrpPort,
    SrClass, StationSettings, TSpec, stream_rate,
};
use onbeat_runtime::mvrp::Mvrp;
use std::collections::BTreeMap;

const BRIDGE: BridgeId = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);
const CLIENT: ClientId = ClientId(1);

fn offer(stream: u64, size: u16) -> Offer {
    Offer {
        stream: StreamId(stream),
        destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, stream as u8]),
        class: Class::A,
        vid: 2,
        priority: 3,
        tspec: TSpec { max_frame_size: size, max_interval_frames: 1 },
    }
}

fn rate_of(offer: &Offer) -> u64 {
    stream_rate(offer.class, offer.tspec).as_bps()
}

/// Two hosts, joined by a link, by a bridge, or by nothing that answers.
struct Net {
    now: NetTime,
    hosts: Vec<SrpHost>,
    bridge: Option<(MsrpBridge, Propagation<Mvrp>)>,
    is_joined: bool,
    said: Vec<BTreeMap<ClientId, Vec<Answer>>>,
    closed: Vec<(usize, ClientId)>,
}

impl Net {
    fn new(hosts: usize, settings: StationSettings) -> Self {
        let now = NetTime::ZERO;
        let host = |number: usize| {
            let address = MacAddress([2, 0, 0, 0, 0, number as u8 + 1]);
            let port = OwnPort::new(address, BitRate::from_mbps(100));
            SrpHost::new(port, settings, number as u64 + 7, now)
        };
        Self {
            now,
            hosts: (0..hosts).map(host).collect(),
            bridge: None,
            is_joined: true,
            said: vec![BTreeMap::new(); hosts],
            closed: Vec::new(),
        }
    }

    fn bridged(settings: MsrpBridgeSettings, rate: BitRate) -> Self {
        let mut net = Self::new(2, StationSettings::default());
        let port = MsrpPort::new(rate, Span::from_us(10));
        let msrp = MsrpBridge::new(settings, &[port; 2], 3, net.now);
        let mvrp = Propagation::new(MrpSettings::default(), 2, 4, net.now);
        net.bridge = Some((msrp, mvrp));
        net.run(Span::from_s(1));
        net
    }

    fn tell(&mut self, host: usize, input: HostInput<'_>) {
        let actions = self.hosts[host].handle(self.now, input);
        for action in actions {
            match action {
                HostAction::SendMsrp(pdu) => self.carry_msrp(host, &pdu),
                HostAction::SendMvrp(pdu) => self.carry_mvrp(host, &pdu),
                HostAction::Say(client, answer) => {
                    self.said[host].entry(client).or_default().push(answer);
                }
                HostAction::Close(client) => self.closed.push((host, client)),
            }
        }
    }

    fn ask(&mut self, host: usize, client: ClientId, request: Request) {
        let octets = request.to_octets();
        self.tell(host, HostInput::Request(client, client.0 as u32, &octets));
    }

    fn carry_msrp(&mut self, from: usize, pdu: &[u8]) {
        if !self.is_joined {
            return;
        }
        match &mut self.bridge {
            None if self.hosts.len() == 2 => self.tell(1 - from, HostInput::Msrp(pdu)),
            None => {}
            Some((bridge, _)) => {
                let input = BridgeInput::Received { port: from, octets: pdu };
                let actions = bridge.handle(self.now, input);
                self.act(actions);
            }
        }
    }

    fn carry_mvrp(&mut self, from: usize, pdu: &[u8]) {
        match &mut self.bridge {
            None if self.hosts.len() == 2 => self.tell(1 - from, HostInput::Mvrp(pdu)),
            None => {}
            Some((_, bridge)) => {
                let input = PropagationInput::Port(from, MrpInput::Received(pdu));
                let sent = bridge.handle(self.now, input);
                sent.iter().for_each(|(port, pdu)| self.tell(*port, HostInput::Mvrp(pdu)));
            }
        }
    }

    fn act(&mut self, actions: Vec<BridgeAction>) {
        for action in actions {
            if let BridgeAction::Send { port, octets } = action
                && self.is_joined
            {
                self.tell(port, HostInput::Msrp(&octets));
            }
        }
    }

    /// Lets time pass, in steps of a millisecond.
    fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            for host in 0..self.hosts.len() {
                if self.hosts[host].next() <= self.now {
                    self.tell(host, HostInput::Timeout);
                }
            }
            if let Some((bridge, vlans)) = &mut self.bridge {
                let actions = bridge.handle(self.now, BridgeInput::Timeout);
                let sent = vlans.handle(self.now, PropagationInput::Timeout);
                self.act(actions);
                sent.iter().for_each(|(port, pdu)| self.tell(*port, HostInput::Mvrp(pdu)));
            }
            self.now += Span::from_ms(1);
        }
    }

    /// What a program was told last.
    fn status(&self, host: usize, client: ClientId) -> StreamStatus {
        match self.said[host][&client].last() {
            Some(Answer::State(status)) => *status,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn programs_of_two_hosts_on_one_link_reserve_and_a_program_that_is_gone_is_withdrawn() {
    let mut net = Net::new(2, StationSettings::default());
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Asking);
    net.run(Span::from_s(2));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Advertised);
    // Two programs listen; the reservation is there until the last of them is gone.
    let other = ClientId(2);
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.ask(1, other, Request::Listen(StreamId(7)));
    net.run(Span::from_s(2));
    let (talker, listener) = (net.status(0, CLIENT), net.status(1, CLIENT));
    assert_eq!((talker.phase, listener.phase), (Phase::Ready, Phase::Ready));
    assert_eq!((talker.vid, talker.priority, talker.is_static), (Some(2), Some(3), false));
    assert_eq!(listener.destination, Some(offer(7, 32).destination));
    assert_eq!(listener.process, 1);
    net.tell(1, HostInput::Gone(CLIENT));
    net.run(Span::from_s(20));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Ready);
    net.tell(1, HostInput::Gone(other));
    net.run(Span::from_s(2));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Advertised);
    net.tell(0, HostInput::Gone(CLIENT));
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.run(Span::from_s(2));
    assert_eq!(net.status(1, CLIENT).phase, Phase::NoTalker);
    assert_eq!(net.hosts[0].clients(), 0);
}

#[test]
fn a_listener_on_the_talkers_own_host_needs_nothing_of_the_network() {
    let mut net = Net::new(2, StationSettings::default());
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    let near = ClientId(2);
    net.ask(0, near, Request::Listen(StreamId(7)));
    net.run(Span::from_s(2));
    let phases = |net: &mut Net| [net.status(0, CLIENT).phase, net.status(0, near).phase];
    assert_eq!(phases(&mut net), [Phase::Ready, Phase::Ready]);
    // One across the network comes and goes.
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.run(Span::from_s(2));
    assert_eq!(net.status(1, CLIENT).phase, Phase::Ready);
    assert_eq!(phases(&mut net), [Phase::Ready, Phase::Ready]);
    net.tell(1, HostInput::Gone(CLIENT));
    net.run(Span::from_s(2));
    assert_eq!(phases(&mut net), [Phase::Ready, Phase::Ready]);
    net.tell(0, HostInput::Gone(near));
    net.run(Span::from_s(2));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Advertised);
}

#[test]
fn a_talker_has_the_vlan_and_the_priority_of_the_bridge() {
    let mut settings = MsrpBridgeSettings::new(BRIDGE);
    settings.classes[0] = SrClass { class: Class::A, priority: 4, vid: 5 };
    let mut net = Net::bridged(settings, BitRate::from_mbps(100));
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.run(Span::from_s(3));
    let talker = net.status(0, CLIENT);
    assert_eq!((talker.phase, talker.vid, talker.priority), (Phase::Ready, Some(5), Some(4)));
    let (bridge, _) = net.bridge.as_ref().expect("a bridge");
    assert_eq!(bridge.idle_slopes(1)[0].as_bps(), rate_of(&offer(7, 32)));
}

#[test]
fn the_code_and_the_bridge_of_a_failure_reach_the_program() {
    let mut net = Net::bridged(MsrpBridgeSettings::new(BRIDGE), BitRate::from_mbps(10));
    net.ask(0, CLIENT, Request::Advertise(offer(7, 300)));
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.run(Span::from_s(3));
    let Phase::Failed(failure) = net.status(1, CLIENT).phase else {
        panic!("{:?}", net.status(1, CLIENT))
    };
    assert_eq!((failure.code, failure.bridge), (FailureCode::BANDWIDTH, BRIDGE));
    assert_eq!(net.status(0, CLIENT).phase, Phase::AskingFailed);
}

#[test]
fn without_an_answer_talkers_get_their_share_of_the_port_in_the_order_in_which_they_came() {
    let mut net = Net::new(1, StationSettings::default());
    // Two of 4 · 10^7 b/s have no room in 75 Mb/s.
    let (first, second) = (offer(1, 580), offer(2, 580));
    assert_eq!(rate_of(&first), (580 + 43) * 8 * 8_000);
    net.ask(0, CLIENT, Request::Advertise(first));
    net.ask(0, ClientId(2), Request::Advertise(second));
    net.run(ANSWER - Span::from_ms(1));
    assert_eq!(net.status(0, CLIENT).phase, Phase::Asking);
    net.run(Span::from_ms(3));
    assert_eq!(net.hosts[0].neighbour(), Neighbour::Silent);
    let status = net.status(0, CLIENT);
    assert_eq!((status.phase, status.is_static), (Phase::Ready, true));
    let Phase::Failed(failure) = net.status(0, ClientId(2)).phase else { panic!("not refused") };
    assert_eq!(failure.bridge, BridgeId([0, 0, 2, 0, 0, 0, 0, 1]), "its own port says so");
    net.tell(0, HostInput::Gone(CLIENT));
    assert_eq!(net.status(0, ClientId(2)).phase, Phase::Ready);
}

#[test]
fn a_neighbour_that_begins_to_speak_ends_static_shares_and_one_that_ceases_brings_them_back() {
    let mut net = Net::new(2, StationSettings::default());
    net.is_joined = false;
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    net.run(ANSWER + Span::from_s(1));
    assert!(net.status(0, CLIENT).is_static);
    net.is_joined = true;
    net.run(Span::from_s(16));
    let status = net.status(0, CLIENT);
    assert_eq!((status.phase, status.is_static), (Phase::Advertised, false));
    net.is_joined = false;
    net.run(SILENCE + Span::from_s(1));
    assert!(net.status(0, CLIENT).is_static);
    net.tell(0, HostInput::LinkDown);
    assert_eq!(net.status(0, CLIENT).phase, Phase::Asking);
    assert_eq!(net.hosts[0].neighbour(), Neighbour::LinkDown);
    net.tell(0, HostInput::LinkUp);
    net.run(ANSWER + Span::from_ms(2));
    assert!(net.status(0, CLIENT).is_static);
}

#[test]
fn what_a_program_may_not_ask_for_is_refused_and_its_connection_closed() {
    let mut net = Net::new(1, StationSettings::default());
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    net.ask(0, ClientId(2), Request::Advertise(offer(7, 32)));
    net.tell(0, HostInput::Request(ClientId(3), 3, &[2, 3]));
    net.ask(0, CLIENT, Request::Listen(StreamId(8)));
    for (client, why) in [
        (ClientId(2), Refusal::StreamInUse),
        (ClientId(3), Refusal::Request),
        (CLIENT, Refusal::Request),
    ] {
        assert!(net.said[0][&client].contains(&Answer::Refused(why)), "{client:?}");
        assert!(net.closed.contains(&(0, client)), "{client:?}");
    }
}

#[test]
fn a_program_that_comes_back_with_another_stream_of_the_same_name_is_not_refused() {
    let mut net = Net::bridged(MsrpBridgeSettings::new(BRIDGE), BitRate::from_mbps(100));
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    net.ask(1, CLIENT, Request::Listen(StreamId(7)));
    net.run(Span::from_s(2));
    assert_eq!(net.status(1, CLIENT).phase, Phase::Ready);
    net.tell(0, HostInput::Gone(CLIENT));
    net.ask(0, ClientId(2), Request::Advertise(offer(7, 100)));
    assert_eq!(net.status(0, ClientId(2)).phase, Phase::Asking);
    net.run(Span::from_s(3));
    assert_eq!(net.status(0, ClientId(2)).phase, Phase::Ready);
    let (bridge, _) = net.bridge.as_ref().expect("a bridge");
    assert_eq!(bridge.idle_slopes(1)[0].as_bps(), rate_of(&offer(7, 100)));
}

#[test]
fn showing_tells_every_stream_and_ends_with_the_port() {
    let mut net = Net::bridged(MsrpBridgeSettings::new(BRIDGE), BitRate::from_mbps(100));
    net.ask(0, CLIENT, Request::Advertise(offer(7, 32)));
    net.ask(0, ClientId(2), Request::Listen(StreamId(8)));
    net.ask(0, ClientId(3), Request::Show);
    let said = &net.said[0][&ClientId(3)];
    let [Answer::State(talker), Answer::State(listener), Answer::Summary(summary)] = said[..]
    else {
        panic!("{said:?}")
    };
    assert_eq!((talker.stream, listener.stream), (StreamId(7), StreamId(8)));
    assert_eq!(summary.reserved.map(BitRate::as_bps), [rate_of(&offer(7, 32)), 0]);
    assert_eq!(summary.share.map(BitRate::as_bps), [75_000_000, 0]);
    assert_eq!(summary.domains, [Some((3, 2)), Some((2, 2))]);
    assert_eq!(summary.neighbour, Neighbour::Msrp);
}
