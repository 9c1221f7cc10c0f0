//! Sporadic traffic: messages that a program writes at one instant.

use crate::common::{TestSystem, channel, number, programs, results, two_hosts};

#[test]
fn messages_that_are_written_at_one_instant_all_arrive_within_the_bound() {
    let text = two_hosts(&programs("", ""))
        .replace("rate_hz = 1000\n", "rate_hz = 1000\nburst_messages = 8\n");
    let system = TestSystem::new(&text);
    system.program("burst.c", "left").program("listener.c", "right");
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    // Eight at 0 ms, 8 ms, … 496 ms.
    assert_eq!((number(c, "sent"), number(c, "received")), (504, 504), "{c}");
    assert_eq!((number(c, "lost"), number(c, "duplicated")), (0, 0), "{c}");
    assert_eq!(c["verdict"], "kept");
    // Two hops of 100 Mb/s: 76 octets to the last one, 100 ns of cable, 1 µs in the bridge. The
    // reserved rate is one frame each 125 µs; the last of eight is captured 7 ns after the first.
    let alone = 2 * (76 * 80 + 100) + 1_000;
    assert_eq!(number(c, "latency_ns.min"), alone);
    assert_eq!(number(c, "latency_ns.max"), alone + 7 * 125_000 - 7);
    assert!(number(c, "latency_ns.max") <= number(c, "bound_ns"));
}

/// Gates that open long after a run's last message: it arrives within its bound, so it is no loss.
#[test]
fn a_run_lasts_until_the_last_message_has_had_the_time_that_it_is_promised() {
    let text = "format = 1\nname = \"late\"\nrun = { duration_ms = 6 }\n\
                host = [{ name = \"a\" }, { name = \"b\" }]\n\
                link = [{ ends = [\"a\", \"b\"], rate_mbps = 1000 }]\n\
                [[port]]\nname = \"a\"\ngates = [{ entries = [\
                { open = [7], interval_ns = 5_000_000 }, \
                { open = [0, 1, 2, 3, 4, 5, 6], interval_ns = 300_000_000 }] }]\n\
                [[channel]]\nname = \"c\"\ndestination = \"01:00:5e:00:00:06\"\nstream_id = 6\n\
                class = \"A\"\nsize_octets = 8\ntalker = \"a\"\nlisteners = [\"b\"]\n\
                interval_ns = 1_000_000\nphase_ns = 500_000\n";
    let system = TestSystem::new(text);
    let results = results(&["run", "."], system.path(), 0);
    let c = channel(&results, "c");
    assert_eq!((number(c, "sent"), number(c, "received"), number(c, "lost")), (6, 6, 0), "{c}");
    assert!(number(c, "latency_ns.max") > 200_000_000, "{c}");
    assert_eq!(c["verdict"], "kept");
}
