//! Network channels in the traces of Timed C: when control comes to an end, and when it is done.

use crate::common::{self, TestSystem, run};

const MANIFEST: &str = r#"
#include <timedc_avtp.h>
struct net_fifo net_fifo_chans[] = {
	{ .dst = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01}, .stream_id = 1, .class = CLASS_A,
	  .size = 8, .freq = 1000, .name = "c" },
};
"#;

const LEFT: &str = r#"#include <cilktc.h>
#include "manifest.h"
task talk()
{
	int64_t v = 1;
	NETFIFO_TX(c);
	sdelay(5, ms);
	WRITE_WAIT(c, &v);
	WRITE(c, &v); pdu_send_now(c_du, &v);
	pdu_update(c_du, 0, &v);
	pdu_send(c_du);
}
int main(void) { talk(); }
"#;

const RIGHT: &str = r#"#include <cilktc.h>
#include "manifest.h"
task hear()
{
	int64_t v;
	NETFIFO_RX(c);
	while (READ_WAIT(c, &v) > 0)
		sdelay(1, ms);
}
int main(void) { hear(); }
"#;

/// The traces of two programs that have a channel, each `task,event,...` by time.
struct Traces(TestSystem);

impl Traces {
    /// `host` are further keys of host `a`, `channel` of the channel.
    fn of(manifest: &str, host: &str, channel: &str, left: &str, right: &str) -> Self {
        let description = common::two_hosts("");
        let (head, _) = description.split_once("[[channel]]").expect("a channel");
        let program = |name: &str, host: &str| {
            format!("[[program]]\nname = \"{name}\"\nhost = \"{host}\"\nsource = [\"{name}.c\"]\n")
        };
        let programs = program("left", "a") + &program("right", "b");
        let head = head.replacen("[run]", "manifest = \"manifest.h\"\n[run]", 1);
        let head = head.replacen("name = \"a\"\n", &format!("name = \"a\"\n{host}\n"), 1);
        let channel =
            format!("[[channel]]\nname = \"c\"\ntalker = \"a\"\nlisteners = [\"b\"]\n{channel}\n");
        let system = TestSystem::new(&format!("{head}{channel}{programs}"));
        for (name, text) in [("manifest.h", manifest), ("left.c", left), ("right.c", right)] {
            std::fs::write(system.path().join(name), text).expect("written");
        }
        std::fs::create_dir(system.path().join("traces")).expect("a directory");
        let arguments = ["run", ".", "--duration", "60ms", "--task-trace", "traces"];
        run(&arguments, system.path(), 0);
        Self(system)
    }

    /// What a task did, without its name.
    fn of_task(&self, name: &str, task: &str) -> Vec<String> {
        let path = self.0.path().join("traces").join(name);
        let text = std::fs::read_to_string(path).expect("a trace");
        let of_task = text.lines().filter(|line| line.contains(task));
        of_task.map(|line| line.replacen(&format!(",{task}"), "", 1)).collect()
    }
}

/// Until 2 ms after the capture both ends wait. The first message was due at 5, the second at 6: it
/// has caught up. The third is held until it is due.
#[test]
fn network_channel_ends_are_in_the_trace() {
    let traces = Traces::of(MANIFEST, "", "", LEFT, RIGHT);
    let expected = [
        "0,start,,",
        "0,arrive,7,0",
        "5000000,release,7,0",
        "5000000,reach,8,",
        "7000000,write,c,",
        "7000000,reach,9,",
        "7000000,write,c,",
        "7000000,reach,9.2,",
        "7000000,write,c,",
        "7000000,reach,11,",
        "8000000,write,c,",
        "8000000,end,,",
    ];
    assert_eq!(traces.of_task("left.csv", "talk"), expected);
    let expected = [
        "0,start,,",
        "0,reach,7,",
        "7000000,read,c,",
        "7000000,arrive,8,6000000",
        "7000000,release,8,6000000",
        "7000000,reach,7,",
        "9000000,read,c,",
    ];
    assert_eq!(traces.of_task("right.csv", "hear")[..expected.len()], expected);
}

const GUARDED: &str = r#"#include <cilktc.h>
#include "manifest.h"
task talk()
{
	int64_t v = 1;
	NETFIFO_TX(c);
	WRITE_WAIT(c, &v);
	fdelay(10, ms);
	gettime(us);
	WRITE_WAIT(c, &v);
	fdelay(3, ms);
}
int main(void) { talk(); }
"#;

const HEARD: &str = r#"#include <cilktc.h>
#include "manifest.h"
task hear()
{
	int64_t v;
	NETFIFO_RX(c);
	READ_WAIT(c, &v);
	fdelay(10, ms);
	READ_WAIT(c, &v);
	fdelay(2, ms);
	READ(c, &v);
	fdelay(2, ms);
}
int main(void) { hear(); }
"#;

/// The description's delay counts, 3 ms, not the class's, 50 ms: at the other host, which wakes at
/// once, and at the one that wakes 5 us late. There the second wait is for the very deadline: who
/// wakes from it is late.
#[test]
fn guarded_waits_are_for_the_descriptions_delay() {
    let manifest = MANIFEST.replace("CLASS_A", "CLASS_B");
    let host = "wakeup_ns = { min = 5000, max = 5000 }";
    let traces = Traces::of(&manifest, host, "fixed_delay_us = 3000", GUARDED, HEARD);
    let expected = [
        "0,start,,",
        "0,reach,7,",
        "3005000,write,c,",
        "3005000,arrive,8,0",
        "10005000,release,8,0",
        "10005000,reach,10,",
        "13010000,abort,11,5000",
        "13010000,release,11,5000",
        "13010000,end,,",
    ];
    assert_eq!(traces.of_task("left.csv", "talk"), expected);
    // The second message is there when its wait is aborted: it is taken.
    let expected = [
        "0,start,,",
        "0,reach,7,",
        "3000000,read,c,",
        "3000000,arrive,8,0",
        "10000000,release,8,0",
        "10000000,reach,9,",
        "12000000,abort,10,0",
        "12000000,release,10,0",
        "12000000,reach,11,",
        "14000000,abort,12,0",
        "14000000,release,12,0",
        "14000000,end,,",
    ];
    assert_eq!(traces.of_task("right.csv", "hear"), expected);
}
