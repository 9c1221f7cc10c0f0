//! Chains over channels whose messages do not all meet: 1 Gb/s, 8 octets, which occupy 704 ns of
//! the wire; the longest other frame 12 336 ns.
use onbeat_bounds::plan;
use onbeat_model::time::Span;
use onbeat_timing::tfg::{Limits, analyse, system_graph};

/// `apart` is how long after each message of `a` one of `b` is written by the same task; `more` is
/// in the description.
fn bound_of_a(apart_ns: i64, more: &str) -> Span {
    let host = |name: &str| {
        format!(
            "[[host]]\nname = \"{name}\"\n[[link]]\nends = [\"{name}\", \"b0\"]\nrate_mbps = 1000\n"
        )
    };
    let channel = |name: &str, id: u32, talker: &str| {
        format!(
            "[[channel]]\nname = \"{name}\"\ndestination = \"01:00:5e:00:00:0{id}\"\n\
             stream_id = {id}\nclass = \"A\"\nsize_octets = 8\nrate_hz = 100\n\
             talker = \"{talker}\"\nlisteners = [\"h2\"]\n"
        )
    };
    let text = format!(
        "format = 1\nname = \"case\"\n[run]\nduration_s = 1\n\
         [[bridge]]\nname = \"b0\"\nforwarding_ns = 2000\n{}{}{}{}{}{more}\
         [[program]]\nname = \"p\"\nhost = \"h1\"\ncommand = [\"true\"]\ntasks = \"p.toml\"\n\
         [[chain]]\nname = \"only\"\nchannels = [\"a\"]\ndeadline_us = 1000\n",
        host("h1"),
        host("h2"),
        host("h3"),
        channel("a", 1, "h1"),
        channel("b", 2, "h1"),
    );
    let tasks = format!(
        "format = 1\nname = \"p\"\n[[task]]\nname = \"main\"\n\
         steps = [{{ loop = \"ever\", steps = [\n\
         {{ write = \"a\" }}, {{ soft_ns = {apart_ns} }},\n\
         {{ write = \"b\" }}, {{ soft_ns = {} }}] }}]\n",
        20_000_000 - apart_ns
    );
    let mut read = |_: &str| Ok(tasks.clone());
    let loaded = onbeat_description::load("system.toml", &text, &mut read);
    let system = loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let plan = plan(&system, true).expect("a plan");
    let programs = [(0, system.programs[0].tasks.clone().expect("tasks"))];
    let (graph, chains) = system_graph(&system, &plan, &programs).expect("a graph");
    let known = Some((&system, &plan));
    let study = analyse("case", graph, chains, Limits::default(), known);
    study.chains[0].time.latency.and_then(|latency| latency.hi).expect("a bound")
}

/// Where `b` is in the way: 62 500 ns of idleSlope behind it at h1, and 25 377 ns at b0, to which
/// both come over one line.
const TOGETHER: i64 = 12_336 + 62_500 + 608 + 2_000 + 25_377 + 608;
/// Where it is not.
const ALONE: i64 = 12_336 + 608 + 2_000 + 12_336 + 608;

#[test]
fn messages_that_are_far_apart_do_not_wait_for_each_other() {
    // The longest busy time is that of the other frame and of both with their credit, 2 · 62 500
    // ns, and of what may begin to repeat in it: less than 1.3 %. Instants may be read 2 ns
    // wrong on either side.
    let busy = 12_336 + 2 * 62_500 + 1_775;
    let window = 2 * TOGETHER + busy;
    assert_eq!(bound_of_a(window + 4, ""), Span::from_ns(TOGETHER));
    assert_eq!(bound_of_a(window + 5, ""), Span::from_ns(ALONE));
    assert_eq!(bound_of_a(10_000_000, ""), Span::from_ns(ALONE));
}

#[test]
fn messages_of_tasks_that_nothing_joins_may_meet_whenever_they_are_written() {
    let more = "[[channel]]\nname = \"c\"\ndestination = \"01:00:5e:00:00:03\"\nstream_id = 3\n\
                class = \"A\"\nsize_octets = 8\nrate_hz = 50\ntalker = \"h3\"\n\
                listeners = [\"h2\"]\nphase_ns = 10_000_000\n";
    // Of three at b0.p2 it sends one each 41 666.7 ns.
    assert_eq!(bound_of_a(10_000_000, more), Span::from_ns(ALONE + 41_667));
}
