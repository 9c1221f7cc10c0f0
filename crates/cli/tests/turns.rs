//! Virtual time: threads take turns, and what they say to the coordinator is in shared memory.

use crate::common::{TestSystem, channel, number, results, run};
use std::fmt::Write as _;

const CHANNELS: usize = 40;

/// One program writes many channels, another reads them.
fn many_channels(writes: &str) -> TestSystem {
    let mut text = format!(
        "format = 1\nname = \"turns\"\n[run]\nduration_ms = 500\n[[host]]\nname = \"a\"\n[[host]]\n\
         name = \"b\"\n[[link]]\nends = [\"a\", \"b\"]\nrate_mbps = 1000\n\
         [[program]]\nname = \"writes\"\nhost = \"a\"\n\
         command = [\"build/a\", \"{writes}\", \"{CHANNELS}\"]\n\
         [[program]]\nname = \"reads\"\nhost = \"b\"\n\
         command = [\"build/b\", \"read\", \"{CHANNELS}\"]\n"
    );
    for at in 0..CHANNELS {
        let _ = write!(
            text,
            "[[channel]]\nname = \"c{at}\"\nstream_id = {}\n\
             destination = \"91:e0:f0:00:fe:{at:02x}\"\nclass = \"A\"\n\
             size_octets = 8\nrate_hz = 1000\ntalker = \"a\"\nlisteners = [\"b\"]\n",
            at + 1
        );
    }
    let system = TestSystem::new(&text);
    system.program("turns.c", "a").program("turns.c", "b");
    system
}

/// More writes at one instant than the shared memory has room for, more frames than are offered.
#[test]
fn as_many_messages_at_one_instant_as_a_program_likes_come_in_order() {
    let results = results(&["run", "."], many_channels("write").path(), 0);
    for at in 0..CHANNELS {
        let c = channel(&results, &format!("c{at}"));
        assert_eq!((number(c, "sent"), number(c, "received")), (500, 500), "{c}");
        assert_eq!((number(c, "lost"), number(c, "held")), (0, 0), "{c}");
    }
}

/// It has more to say then than the shared memory has room for, while the main thread waits for it.
#[test]
fn a_thread_cleans_up_after_the_end_and_is_where_it_was_before() {
    let results = results(&["run", "."], many_channels("thread").path(), 0);
    assert_eq!(number(channel(&results, "c0"), "received"), 500);
}

/// What a program wrote before it was killed has left it, also what it had not handed over yet.
#[test]
fn what_a_killed_program_wrote_last_is_on_the_network() {
    let system = many_channels("die");
    let output = run(&["run", "."], system.path(), 4);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("program `writes` ended before the run did"), "{said}");
    let found = std::fs::read_to_string(system.path().join("out/1-run/messages.csv"));
    let found = found.expect("the messages");
    let last = format!("c{}", CHANNELS - 1);
    let of_last = found.lines().filter(|line| line.split(',').any(|field| field == last));
    assert_eq!(of_last.count(), 101, "{said}");
}

#[test]
fn a_run_is_verified_by_a_second_one() {
    let output = run(&["run", ".", "--verify"], many_channels("write").path(), 0);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("onbeat: the run was executed twice: "), "{said}");
    assert!(said.contains(" calls of its programs, the same both times"), "{said}");

    let output = run(&["run", ".", "--verify"], many_channels("clock").path(), 3);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let first = "the second time it differs at 100 ms: program `writes` (thread 0) writes a \
                 message with other octets than in the first run";
    assert!(said.contains(first), "{said}");

    let real = ["run", ".", "--verify", "--time", "real"];
    let output = run(&real, many_channels("write").path(), 2);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("--verify is for virtual time"), "{said}");
}
