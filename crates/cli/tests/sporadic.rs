//! Channels of class asynchronous through the command: real programs in virtual time, what verbs
//! show of schedulers, and what is refused.

use crate::common::{TestSystem, channel, number, programs, results, run, two_hosts};

fn asynchronous(extra: &str) -> String {
    two_hosts(extra)
        .replace("class = \"A\"", "class = \"asynchronous\"")
        .replace("rate_hz = 1000\n", "rate_hz = 1000\nburst_messages = 8\n")
}

/// What `onbeat` says on standard error, and prints, when it refuses.
fn refused(text: &str) -> String {
    let output = run(&["plan", "."], TestSystem::new(text).path(), 1);
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn programs_write_a_burst_of_asynchronous_messages_that_no_shaper_spreads() {
    let system = TestSystem::new(&asynchronous(&programs("", "")));
    system.program("burst.c", "left").program("listener.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    // Eight at 0 ms, 8 ms, … 496 ms.
    assert_eq!((number(c, "sent"), number(c, "received")), (504, 504), "{c}");
    assert_eq!((number(c, "lost"), number(c, "duplicated")), (0, 0), "{c}");
    assert_eq!(c["verdict"], "kept");
    // Two hops of 100 Mb/s: 76 octets to the last one, 100 ns of cable, 1 µs in the bridge. The
    // last of eight waits for seven of 88 octets on the wire at the first port only, and is
    // captured 7 ns after the first.
    let alone = 2 * (76 * 80 + 100) + 1_000;
    assert_eq!(number(c, "latency_ns.min"), alone);
    assert_eq!(number(c, "latency_ns.max"), alone + 7 * 88 * 80 - 7);
    assert!(number(c, "latency_ns.max") <= number(c, "bound_ns"));
}

#[test]
fn every_verb_shows_the_schedulers_of_asynchronous_channels_or_counts_with_them() {
    let system = TestSystem::new(&asynchronous(""));
    let plan = results(&["plan", "."], system.path(), 0);
    let c = &plan["channels"][0];
    assert_eq!((&c["class"], &c["pcp"]), (&"Asynchronous".into(), &4.into()));
    // 704 bits a millisecond: eight frames, and an eighth of one that may be early.
    let scheduler = serde_json::json!([
        { "port": "s.p2", "group": "s.p1", "rate_bps": 704_000, "burst_octets": 8 * 88 + 11 }
    ]);
    assert_eq!(c["schedulers"], scheduler);
    assert_eq!(number(c, "reserved_rate_bps"), 704_000);
    let table = run(&["plan", "."], system.path(), 0).stdout;
    let table = String::from_utf8(table).expect("UTF-8");
    assert!(table.contains("ATS schedulers") && table.contains("715 octets"), "{table}");
    let json = serde_json::to_vec(&plan).expect("JSON");
    std::fs::write(system.path().join("plan.json"), json).expect("written");
    let difference = results(&["plan", ".", "--diff", "plan.json"], system.path(), 0);
    assert_eq!(difference["items"], serde_json::json!([]), "{difference}");
    assert_eq!(results(&["plan", ".", "--keep", "plan.json"], system.path(), 0), plan);
    run(&["plan", ".", "--html", "plan.html", "--deploy", "told"], system.path(), 0);
    let read = |name: &str| std::fs::read_to_string(system.path().join(name)).expect(name);
    assert!(read("plan.html").contains("ATS schedulers"), "the page has them");
    assert!(read("told/s.yang.json").contains("asynchronous-traffic-shaping"));
    let streams = read("told/s.streams.yang.json");
    assert!(streams.contains("\"committed-information-rate\": \"704000\""), "{streams}");
    assert!(streams.contains("\"committed-burst-size\": 5720"), "{streams}");
    let simulated = results(&["simulate", ".", "--repetitions", "3"], system.path(), 0);
    let flow = &simulated["flows"][0];
    assert_eq!((&flow["class"], &flow["queue"]), (&"Asynchronous".into(), &4.into()));
    let latency = number(&flow["listeners"][0], "latency_ns.max");
    assert!(latency <= number(&flow["listeners"][0], "bound_ns"), "{flow}");
}

#[test]
fn what_asynchronous_channels_cannot_have_is_refused_with_its_reason() {
    let by_protocol = asynchronous("").replace("[run]\n", "[run]\nreservation = \"srp\"\n");
    let said = refused(&by_protocol);
    assert!(said.contains("error[OB2017]: channel `c` is of class asynchronous"), "{said}");
    let credit = asynchronous("[[port]]\nname = \"s.p2\"\nidle_slope_mbps = { 4 = 10 }\n");
    let said = refused(&credit);
    assert!(said.contains("error[OB2012]: queue 4 of port s.p2 has an idleSlope"), "{said}");
    let plain = asynchronous("[[device]]\nname = \"plain\"\nasynchronous = false\n")
        .replace("name = \"s\"\n", "name = \"s\"\ndevice = \"plain\"\n");
    let said = refused(&plain);
    assert!(said.contains("error[OB2018]: port s.p2 has asynchronous shaping"), "{said}");
    assert!(said.contains("give channels of class asynchronous"), "{said}");
    let often = asynchronous("").replace("rate_hz = 1000\n", "rate_hz = 120_000\n");
    let said = refused(&often);
    assert!(said.contains("error[OB2001]: port a.p1 would reserve 84.483 Mb/s"), "{said}");
    let misspelt = two_hosts("").replace("class = \"A\"", "class = \"asynchronus\"");
    let output = run(&["check", "."], TestSystem::new(&misspelt).path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("asynchronus") && said.contains("`asynchronous`"), "{said}");
    let system = TestSystem::new(&asynchronous(""));
    let output = run(&["manifest", ".", "--c"], system.path(), 1);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let why = "error[OB1106]: channel `c`: a manifest of the second generation has no word for its";
    assert!(said.contains(why) && said.contains("--> ./system.toml:"), "{said}");
}
