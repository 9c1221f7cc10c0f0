//! Delays of described networks, computed by hand.

use onbeat_model::system::System;
use onbeat_model::units::Octets;
use onbeat_network_code::assembly::{AssemblyOptions, assemble};
use onbeat_network_code::topology::{NetworkAssumptions, network_model};
use onbeat_network_code::verification::NetworkModel;
use onbeat_runtime::network_code::program::StationProgram;

const HEAD: &str = "format = 1\nname = \"n\"\n[run]\nduration_s = 1\n";

fn system(text: &str) -> System {
    let loaded = onbeat_description::load("system.toml", &format!("{HEAD}{text}"), &mut |_| {
        Err(String::new())
    });
    loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

fn nodes(hosts: &[&str], bridges: &[&str]) -> String {
    let host = hosts.iter().map(|name| format!("[[host]]\nname = \"{name}\"\n"));
    let bridge =
        bridges.iter().map(|name| format!("[[bridge]]\nname = \"{name}\"\nforwarding_ns = 2000\n"));
    host.chain(bridge).collect()
}

fn link(one: &str, other: &str, rate_mbps: u32) -> String {
    format!(
        "[[link]]\nends = [\"{one}\", \"{other}\"]\nrate_mbps = {rate_mbps}\npropagation_ns = 100\n"
    )
}

/// Begins rounds and sends a message of so many words.
fn program(station: &str, medium: &str, words: u16) -> StationProgram {
    let text = format!(
        "station {station}\nmedium {medium}\noutput v[{words}]\nmessage m = 1[{words}]\n\
         begin: future begin, 10 ms\nsync master\ncreate v\nsend m\nhalt\n"
    );
    let assembly = assemble("a.nc", &text, AssemblyOptions::default());
    assembly.program.unwrap_or_else(|| panic!("{:?}", assembly.diagnostics))
}

fn delay(model: &NetworkModel, link: &str) -> Option<(u64, u64)> {
    let resource = model.resources.iter().position(|it| it.name == link).expect("a link");
    let reach = model.reaches.iter().find(|reach| reach.resource == resource)?;
    Some((reach.delay_min_ns, reach.delay_max_ns))
}

fn reason(system: &System, programs: &[StationProgram]) -> String {
    let refused = network_model(system, programs, NetworkAssumptions::default());
    refused.expect_err("it is refused").remove(0).message
}

#[test]
fn a_frame_takes_propagation_its_own_length_forwarding_and_one_frame_in_the_way() {
    let links = link("a", "x", 1_000) + &link("x", "y", 1_000) + &link("y", "b", 1_000);
    let system = system(&(nodes(&["a", "b"], &["x", "y"]) + &links));
    // The beginning of a round has 72 octets with its preamble, the message of 100 words 8 + 14 + 4
    // + 400 + 4 = 430: 576 and 3,440 ns. In the way are 8 + 1,522 + 12 octets, 12,336 ns.
    let programs = [program("a", "1 Gbit/s", 100)];
    let model = network_model(&system, &programs, NetworkAssumptions::default()).expect("a model");
    assert_eq!(delay(&model, "a to x"), Some((100, 12_436)));
    assert_eq!(delay(&model, "x to y"), Some((2_776, 12_436 + 3_440 + 2_000 + 12_436)));
    assert_eq!(delay(&model, "y to b"), Some((5_452, 12_436 + 2 * (3_440 + 2_000 + 12_436))));
    assert_eq!(delay(&model, "b to y"), None);
    assert_eq!(model.stations[0].drift_ppb_max, 100_000);
    let alone = NetworkAssumptions { best_effort: None, drift_ppb_max: 0 };
    let model = network_model(&system, &programs, alone).expect("a model");
    assert_eq!(delay(&model, "y to b"), Some((5_452, 100 + 2 * (3_440 + 2_000 + 100))));
    let short = NetworkAssumptions { best_effort: Some(Octets::new(64)), drift_ppb_max: 0 };
    let model = network_model(&system, &programs, short).expect("a model");
    assert_eq!(delay(&model, "a to x"), Some((100, 100 + 84 * 8)));
}

#[test]
fn a_dedicated_path_takes_a_fixed_time_and_best_effort_only_if_it_ends_first() {
    let links = link("a", "x", 1_000) + &link("x", "b", 1_000) + &link("x", "c", 1_000);
    let with = |path: &str| {
        let path = format!("name = \"x\"\ndedicated_path = {path}");
        system(&(nodes(&["a", "b", "c"], &["x"]) + &links).replace("name = \"x\"", &path))
    };
    let programs = [program("a", "1 Gbit/s", 100)];
    let exact = NetworkAssumptions { best_effort: Some(Octets::new(64)), drift_ppb_max: 0 };
    let model = network_model(&with("{}"), &programs, exact).expect("a model");
    // 84 octets of best effort are at the host's port, and one octet crosses clocks.
    assert_eq!(delay(&model, "x to b"), Some((100 + 368 + 100, 672 + 100 + 376 + 100)));
    // 150,368 ns by 100 ppm are 15.04 ns, with 8 more 15.0376.
    let off = NetworkAssumptions { best_effort: None, drift_ppb_max: 100_000 };
    let late = with("{ wait_ns = 150_000 }");
    let model = network_model(&late, &programs, off).expect("a model");
    assert_eq!(delay(&model, "x to b"), Some((150_568 - 16, 150_576 + 16)));
    let finish = with("{ on_best_effort = \"finish\" }");
    let model = network_model(&finish, &programs, exact).expect("a model");
    assert_eq!(delay(&model, "x to b"), Some((568, 2 * 672 + 576)));
    let two = link("a", "x", 1_000) + &link("x", "b", 1_000);
    let pair = (nodes(&["a", "b"], &["x"]) + &two)
        .replace("name = \"x\"", "name = \"x\"\ndedicated_path = {}");
    assert!(reason(&system(&pair), &programs).contains("dedicated path and two links"));
}

#[test]
fn at_a_tenth_of_the_rate_octets_take_ten_times_as_long_and_tags_count() {
    let links = link("a", "x", 100) + &link("x", "b", 100);
    let system = system(&(nodes(&["a", "b"], &["x"]) + &links));
    let alone = NetworkAssumptions { best_effort: None, drift_ppb_max: 0 };
    let programs = [program("a", "100 Mbit/s tagged", 100)];
    let model = network_model(&system, &programs, alone).expect("a model");
    // 76 and 434 octets of 80 ns.
    assert_eq!(delay(&model, "x to b"), Some((100 + 6_080 + 2_100, 100 + 34_720 + 2_100)));
    let fast = [program("a", "1 Gbit/s", 100)];
    assert!(reason(&system, &fast).contains("is for 1000 Mb/s, its link has 100 Mb/s"));
}

#[test]
fn a_drift_that_the_description_says_counts_if_it_is_more() {
    let hosts = "[[host]]\nname = \"a\"\nclock = { drift_ppb = -150_000 }\n";
    let text = hosts.to_owned() + &nodes(&["b"], &[]) + &link("a", "b", 1_000);
    let model = network_model(
        &system(&text),
        &[program("a", "1 Gbit/s", 1), program("b", "1 Gbit/s", 1)],
        NetworkAssumptions::default(),
    );
    let drifts = model.expect("a model").stations.into_iter().map(|it| it.drift_ppb_max);
    assert_eq!(drifts.collect::<Vec<_>>(), [150_000, 100_000]);
}

#[test]
fn loops_other_rates_and_other_stations_are_refused() {
    let triangle = link("x", "y", 1_000) + &link("y", "z", 1_000) + &link("z", "x", 1_000);
    let links = link("a", "x", 1_000) + &link("b", "y", 1_000) + &triangle;
    let round = system(&(nodes(&["a", "b"], &["x", "y", "z"]) + &links));
    let one = [program("a", "1 Gbit/s", 1)];
    assert!(reason(&round, &one).contains("on two paths"));
    let links = link("a", "x", 1_000) + &link("x", "b", 100);
    let mixed = system(&(nodes(&["a", "b"], &["x"]) + &links));
    assert!(reason(&mixed, &one).contains("the link of `x` and `b` has another rate, 100 Mb/s"));
    let same = [program("a", "1 Gbit/s", 1), program("a", "1 Gbit/s", 1)];
    assert!(reason(&mixed, &same).contains("two programs are for the station `a`"));
    assert!(reason(&mixed, &[program("x", "1 Gbit/s", 1)]).contains("no host `x`"));
    assert!(reason(&mixed, &[]).contains("no program"));
    let scheduled = "[[channel]]\nname = \"c\"\ndestination = \"91:e0:f0:00:fe:01\"\n\
                     stream_id = 1\nclass = \"scheduled\"\nsize_octets = 64\n\
                     interval_ns = 1_000_000\nfixed_delay_us = 200\n\
                     talker = \"a\"\nlisteners = [\"b\"]\n";
    let text = nodes(&["a", "b"], &[]) + &link("a", "b", 1_000) + scheduled;
    assert!(reason(&system(&text), &one).contains("channel `c` is scheduled"));
}
