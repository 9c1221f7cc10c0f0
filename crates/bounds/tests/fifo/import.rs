//! Networks in the JSON of other programs.

use crate::families::{Shape, network, worst};
use onbeat_bounds::fifo::{Bucket, Curve, Departure};
use onbeat_bounds::import::import;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use proptest::prelude::*;
use serde_json::{Value, json};

const BIT: i128 = 1_000_000_000;

fn bps(rate: u64) -> BitRate {
    BitRate::from_bps(rate)
}

/// Two curves each, units at every level.
fn mixed() -> Value {
    json!({
        "network": {
            "name": "demo", "multiplexing": "FIFO", "packetizer": false, "time_unit": "us",
            "data_unit": "B", "rate_unit": "Mbps", "analysis_option": ["IS"],
            "min_packet_length": 4,
        },
        "flows": [
            {
                "name": "f0", "path": ["s0-o0", "s1-o0"], "max_packet_length": 50,
                "rate_unit": "kbps",
                "arrival_curve": {"bursts": [10, "2kB"], "rates": ["10kbps", 0.5]},
            },
            {
                "name": "f1", "path": ["s1-o0"],
                "arrival_curve": {"bursts": ["10B"], "rates": ["1e1 kbps"]},
            },
        ],
        "servers": [
            {
                "name": "s0-o0", "capacity": 100,
                "service_curve": {"latencies": [10, 1000], "rates": [4, "50Mbps"]},
            },
            {
                "name": "s1-o0", "time_unit": "ms",
                "service_curve": {"latencies": [0.01, "1ms"], "rates": ["480MBpm", 50]},
            },
        ],
    })
}

#[test]
fn units_are_those_of_the_quantity_the_item_and_the_network_in_that_order() {
    let read = import(&mixed().to_string()).unwrap();
    assert_eq!(read.name, "demo");
    assert_eq!(
        (read.servers, read.flows),
        (vec!["s0-o0".to_owned(), "s1-o0".to_owned()], vec!["f0".to_owned(), "f1".to_owned()],)
    );
    let [first, second] = &read.network.flows[..] else { panic!("two flows") };
    let both = vec![
        Bucket { burst: 80 * BIT, rate: bps(10_000) },
        Bucket { burst: 16_000 * BIT, rate: bps(500) },
    ];
    assert_eq!(first.arrival, Curve::new(both));
    assert_eq!(first.hops.iter().map(|hop| hop.server).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(second.arrival, Curve::bucket(80 * BIT, bps(10_000)));
    let [one, two] = &read.network.servers[..] else { panic!("two servers") };
    // 16,000 bit are served sooner by 50 Mb/s after 1 ms than by 4 Mb/s after 10 µs.
    assert_eq!((one.rate, one.latency), (bps(50_000_000), Span::from_ms(1)));
    assert_eq!((one.link_rate, one.output), (Some(bps(100_000_000)), Departure::Bits));
    // 480 MB a minute are 64 Mb/s.
    assert_eq!((two.rate, two.latency, two.link_rate), (bps(64_000_000), Span::from_us(10), None));
}

#[test]
fn a_packetizer_makes_whole_packets() {
    let mut file = mixed();
    file["network"]["packetizer"] = json!(true);
    let read = import(&file.to_string()).unwrap().network;
    assert_eq!(read.servers[0].output, Departure::Fragments);
    assert_eq!((read.flows[0].smallest, read.flows[0].largest), (32 * BIT, 400 * BIT));
    // A packet of 50 B comes at once although the curve allows 10 B.
    assert_eq!(read.flows[0].arrival.burst(), 400 * BIT);
    // Without a length of its own: its burst.
    assert_eq!(read.flows[1].largest, 80 * BIT);
}

#[test]
fn quantities_are_rounded_to_the_safe_side() {
    let mut file = mixed();
    file["flows"][1]["arrival_curve"] = json!({"bursts": ["0.1nb"], "rates": ["0.1bps"]});
    file["servers"][1]["service_curve"] = json!({"latencies": ["1.5ns"], "rates": ["1.9kbps"]});
    file["servers"][1]["capacity"] = json!("2000.1bps");
    let read = import(&file.to_string()).unwrap().network;
    assert_eq!(read.flows[1].arrival, Curve::bucket(1, bps(1)));
    let server = &read.servers[1];
    assert_eq!((server.latency, server.rate), (Span::from_ns(2), bps(1_900)));
    assert_eq!(server.link_rate, Some(bps(2_001)));
}

#[test]
fn the_same_network_has_the_same_bounds() {
    let ring = network(Shape::Ring, 4, 60);
    let flow = |at: usize| {
        let path: Vec<String> = (0..4).map(|i| format!("s{}", (at + i) % 4)).collect();
        let curve = json!({"bursts": ["1kB"], "rates": ["15Mbps"]});
        json!({"name": format!("f{at}"), "path": path, "arrival_curve": curve})
    };
    let server = |at: usize| {
        let curve = json!({"latencies": ["10us"], "rates": ["100Mbps"]});
        json!({"name": format!("s{at}"), "service_curve": curve, "capacity": "100Mbps"})
    };
    let file = json!({
        "network": {"name": "ring"},
        "flows": (0..4).map(flow).collect::<Vec<_>>(),
        "servers": (0..4).map(server).collect::<Vec<_>>(),
    });
    let read = import(&file.to_string()).unwrap().network;
    assert_eq!(read, ring);
    assert_eq!(
        read.bounds().unwrap().map(|b| worst(&b)),
        ring.bounds().unwrap().map(|b| worst(&b))
    );
}

#[test]
fn errors_name_the_item() {
    let refused = |path: &[&str], value: Value| {
        let mut file = mixed();
        let mut at = &mut file;
        for step in path {
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[*step],
            };
        }
        *at = value;
        import(&file.to_string()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&["network", "multiplexing"], json!("ARBITRARY")),
        "network: multiplexing: only FIFO is analysed"
    );
    assert_eq!(
        refused(&["flows", "0", "path", "1"], json!("s9")),
        r#"f0: path: no server is named "s9""#
    );
    assert_eq!(
        refused(&["flows", "0", "path", "1"], json!("s0-o0")),
        "f0: flow 0 crosses server 0 twice"
    );
    assert_eq!(refused(&["flows", "0", "path"], json!([])), "f0: path: it is empty");
    assert_eq!(
        refused(&["network", "time_unit"], json!("parsec")),
        "s0-o0: latencies: 10 in parsec is not a time"
    );
    assert_eq!(
        refused(&["flows", "1", "arrival_curve", "bursts", "0"], json!("10 bananas")),
        r#"f1: bursts: "10 bananas" is not an amount of data"#
    );
    assert_eq!(
        refused(&["servers", "0", "service_curve", "latencies", "0"], json!(-1)),
        "s0-o0: latencies: -1 is not a time"
    );
    assert_eq!(
        refused(&["servers", "1", "name"], json!("s0-o0")),
        "s0-o0: name: two servers have it"
    );
    let long = "1".repeat(1_000_000);
    let refusal = refused(&["flows", "1", "arrival_curve", "bursts", "0"], json!(long));
    assert!(refusal.ends_with("is not an amount of data") && refusal.len() > 1_000_000);
    let syntax = import("{\n  \"flows\": 3}").unwrap_err().to_string();
    assert!(syntax.contains("line 2 column"), "{syntax}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}") {
        drop(import(&text));
    }

    #[test]
    fn no_quantity_makes_it_panic(
        quantity in r#"[-+]?[0-9]{0,30}(\.[0-9]{0,30})?(e-?[0-9]{1,5})?[ a-zA-Zµ]{0,5}"#,
        field in 0..6_usize,
        packetizer: bool,
    ) {
        let mut file = mixed();
        file["network"]["packetizer"] = json!(packetizer);
        let (flow, server) = ("flows", "servers");
        let at = match field {
            0 => &mut file[flow][0]["arrival_curve"]["bursts"][0],
            1 => &mut file[flow][0]["arrival_curve"]["rates"][0],
            2 => &mut file[flow][0]["max_packet_length"],
            3 => &mut file[server][0]["service_curve"]["latencies"][0],
            4 => &mut file[server][0]["service_curve"]["rates"][0],
            _ => &mut file[server][0]["capacity"],
        };
        *at = json!(quantity);
        if let Ok(read) = import(&file.to_string()) {
            prop_assert!(read.network.bounds().is_ok());
        }
    }
}
