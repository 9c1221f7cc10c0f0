//! What a network cannot have.

use super::{Idle, network, program, setup, team};
use crate::network::Network;
use onbeat_model::port::Selection;
use onbeat_model::system::{Class, PortId};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use onbeat_net::network_code::{NetworkCode, SetupError, StationSetup};

fn refusals(network: &Network, stations: Vec<StationSetup>) -> Vec<String> {
    let mut engine = network.engine(1, 0);
    let settings = super::settings(1, Span::from_ms(1));
    let joined =
        NetworkCode::join(&mut engine, &network.system, &network.plan, stations, &settings);
    joined.expect_err("a refusal").iter().map(SetupError::to_string).collect()
}

fn waiting(station: &str, medium: &str) -> StationSetup {
    let text = format!("station {station}\nmedium {medium}\na: sync slave, 1 ms\n goto a\n");
    setup(&text, Idle)
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let mut network = network(3, 1, 100);
    network.host();
    let mut large = program(&team(1)[0]);
    large.messages[0].words = 375;
    large.station = "n2".to_owned();
    let stations = vec![
        waiting("n1", "100 Mbit/s"),
        waiting("x", "1 Gbit/s"),
        waiting("n3", "1 Gbit/s"),
        waiting("n4", "1 Gbit/s"),
        waiting("n1", "100 Mbit/s"),
        waiting("n0", "1 Gbit/s"),
        StationSetup::new(large, Idle),
    ];
    let expected = [
        "the system has no node `x`: a program runs on the host that its `station` names",
        "`n3` is a bridge: programs in Network Code run on hosts",
        "host `n4` has no link",
        "two programs are of station `n1`: a host runs one",
        "the program of `n0` is for a medium of 1 Gb/s, its link has 100 Mb/s",
        "the program of `n2` exceeds a limit",
    ];
    assert_eq!(refusals(&network, stations), expected);
}

#[test]
fn all_media_have_tags_or_none() {
    let network = network(2, 1, 1_000);
    let stations = vec![waiting("n0", "1 Gbit/s"), waiting("n1", "1 Gbit/s tagged")];
    let expected = "frames of `n1` have a VLAN tag, those of `n0` have none: all media of a \
                    network are `tagged`, or none is";
    assert_eq!(refusals(&network, stations), [expected]);
}

#[test]
fn ports_that_shape_or_interrupt_what_stations_send_are_refused() {
    let mut network = network(2, 1, 1_000);
    let idle_slope = BitRate::from_mbps(100);
    network.plan.ports[1].set_idle_slope(Class::A, idle_slope);
    network.plan.ports[2].settings.preemptable = 1 << 7;
    network.plan.ports[3].settings.selection[7] = Selection::Asynchronous;
    // No station is at the host of this one.
    network.plan.ports[0].settings.preemptable = 1 << 7;
    let shaped = "shapes traffic class 7, which is that of stations: no reservation of class A, or \
                  other shaping, may be there";
    let label = |port| network.system.port_label(PortId(port));
    let expected = [
        format!("port {} {shaped}", label(1)),
        format!("port {} may interrupt frames of traffic class 7, which stations send", label(2)),
        format!("port {} {shaped}", label(3)),
    ];
    assert_eq!(refusals(&network, vec![waiting("n1", "1 Gbit/s")]), expected);
}
