//! Channels whose talker is among the listeners: its own host hears what leaves by its port.

use crate::common::{ENGINES, TestSystem, channel, number, permitted, results, run, two_hosts};
use serde_json::Value;
use std::collections::BTreeMap;

/// Host `a` talks, `a` and `b` listen. On `a` one program does both, or two do.
fn system(programs_on_a: &[&str], more: &str) -> TestSystem {
    let program = |does: &str, host: &str| {
        format!(
            "[[program]]\nname = \"{does}-{host}\"\nhost = \"{host}\"\n\
             command = [\"build/own\", \"{does}\", \"{does}-{host}\"]\n"
        )
    };
    let mut programs: String = programs_on_a.iter().map(|does| program(does, "a")).collect();
    programs += &program("hear", "b");
    let stacks = "stack_tx_ns = { min = 2000, max = 9000 }\n\
                  stack_rx_ns = { min = 1000, max = 30000 }\n";
    let text = two_hosts(&format!("{programs}{more}"))
        .replace("listeners = [\"b\"]", "listeners = [\"a\", \"b\"]")
        .replace("[[bridge]]", &format!("{stacks}[[bridge]]"))
        .replace("name = \"a\"\n[[host]]", &format!("name = \"a\"\n{stacks}[[host]]"));
    let system = TestSystem::new(&text);
    system.program("own.c", "own");
    system
}

/// What a listener has in the results.
fn at<'a>(channel: &'a Value, host: &str) -> &'a Value {
    let listeners = channel["listeners"].as_array().expect("a list");
    listeners.iter().find(|it| it["host"] == host).expect("the listener")
}

/// By its capture, when the records say that a message was received at a host.
fn recorded(system: &TestSystem, host: &str) -> BTreeMap<i64, Option<i64>> {
    let text = std::fs::read_to_string(system.path().join("out/1-run/messages.csv"));
    let text = text.expect("the messages");
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let of_host = rows.filter(|row| row[0] == "c" && row[1] == host);
    of_host.map(|row| (row[3].parse().expect("a time"), row[6].parse().ok())).collect()
}

/// What a program wrote down: value, capture, receipt.
fn heard(system: &TestSystem, name: &str) -> Vec<[i64; 3]> {
    let text = std::fs::read_to_string(system.path().join(format!("{name}.log")));
    let figures = |line: &str| {
        let all: Vec<i64> = line.split(' ').map(|f| f.parse().expect("a number")).collect();
        all.try_into().expect("three figures")
    };
    text.expect("a log").lines().map(figures).collect()
}

#[test]
fn the_own_host_hears_each_message_once_in_every_engine() {
    for how in ENGINES.iter().filter(|how| !how.contains(&"netns") || permitted()) {
        for (does, hears) in [(&["both"][..], "both-a"), (&["talk", "hear"], "hear-a")] {
            let system = system(does, "");
            if how.contains(&"xdp") {
                // What leaves by AF_XDP passes the kernel by.
                let said = run(how, system.path(), 4).stderr;
                assert!(String::from_utf8_lossy(&said).contains("use packet or udp"));
                continue;
            }
            let results = results(how, system.path(), 0);
            let c = channel(&results, "c");
            let context = format!("{how:?} {does:?} {c}");
            for (host, name) in [("a", hears), ("b", "hear-b")] {
                let (own, rows) = (at(c, host), recorded(&system, host));
                let books = heard(&system, name);
                assert!(books.len() > 20, "{context}");
                for [_, capture, receipt] in &books {
                    assert_eq!(rows[capture], Some(*receipt), "{context}");
                }
                let values = books.windows(2).map(|pair| pair[1][0] - pair[0][0]);
                assert!(values.clone().all(|step| step >= 1), "{context}");
                let received = rows.values().flatten().count() as i64;
                assert_eq!(number(own, "received"), received, "{context}");
                assert_eq!(number(own, "received") + number(own, "lost"), number(c, "sent"));
                let latencies: Vec<i64> =
                    rows.iter().filter_map(|(capture, at)| Some((*at)? - capture)).collect();
                assert_eq!(own["latency_ns"]["max"].as_i64(), latencies.iter().copied().max());
                if *how == ENGINES[0] {
                    assert_eq!((number(own, "lost"), books.len() as i64), (0, received));
                    let bound = number(own, "bound_ns");
                    assert!(latencies.iter().all(|it| (3_000..=bound).contains(it)), "{context}");
                }
            }
            // Networks of the kernel promise nothing.
            let [a, b] = ["a", "b"].map(|host| at(c, host)["bound_ns"].as_i64());
            assert!(a < b || how.contains(&"netns"), "{context}");
        }
    }
}

/// A frame that its link loses has left the host, and its program has it. While the link is down
/// none leaves.
#[test]
fn what_is_lost_behind_the_port_the_own_host_has() {
    let lossy = "[[fault]]\nlink = \"a\"\nerrors_ppb = 300_000_000\n";
    let cut = "[[fault]]\nlink = \"a\"\nfrom_ms = 100\nuntil_ms = 200\n";
    for (fault, own_loses) in [(lossy, false), (cut, true)] {
        let system = system(&["talk", "hear"], fault);
        let results = results(&["run", "."], system.path(), 3);
        let c = channel(&results, "c");
        let [a, b] = ["a", "b"].map(|host| number(at(c, host), "lost"));
        match own_loses {
            true => assert!((95..=105).contains(&a) && (a - b).abs() < 2, "{c}"),
            false => assert!(a == 0 && b > 50, "{c}"),
        }
        assert_eq!(heard(&system, "hear-a").len() as i64, number(c, "sent") - a, "{c}");
        // Modelled ends do as programs do.
        let simulated = crate::common::results(&["simulate", "."], system.path(), 0);
        let flow = &simulated["flows"][0];
        let [a, b] = ["a", "b"].map(|host| number(at(flow, host), "frames"));
        match own_loses {
            true => assert!(a < number(flow, "released") - 90 && (a - b).abs() < 2, "{flow}"),
            false => assert!(a == number(flow, "released") && b < a - 50, "{flow}"),
        }
    }
}

#[test]
fn the_own_host_may_be_the_only_listener() {
    let system = system(&["both"], "");
    let text = std::fs::read_to_string(system.path().join("system.toml")).expect("written");
    let alone = text.replace("listeners = [\"a\", \"b\"]", "listeners = [\"a\"]");
    let program = alone.find("[[program]]\nname = \"hear-b\"").expect("the program");
    std::fs::write(system.path().join("system.toml"), &alone[..program]).expect("written");
    for how in &ENGINES[..2] {
        let results = results(how, system.path(), 0);
        let c = channel(&results, "c");
        assert_eq!((number(c, "lost"), &c["listeners"][0]["host"]), (0, &"a".into()), "{c}");
        assert_eq!(heard(&system, "both-a").len() as i64, number(c, "sent"), "{c}");
    }
    let simulated = crate::common::results(&["simulate", "."], system.path(), 0);
    let flow = &simulated["flows"][0];
    assert_eq!(number(at(flow, "a"), "frames"), number(flow, "released"), "{flow}");
}
