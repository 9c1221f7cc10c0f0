//! Network channels in the traces of Timed C: when control comes to an end, and when it is done.

mod common;

use common::{TestSystem, run};

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

/// Until 2 ms after the capture both ends wait; the second message in a row comes an interval after
/// the first, less an eighth of it.
#[test]
fn network_channel_ends_are_in_the_trace() {
    let channel = "[[channel]]\nname = \"c\"\ntalker = \"a\"\nlisteners = [\"b\"]\n";
    let description = common::two_hosts("");
    let (head, _) = description.split_once("[[channel]]").expect("a channel");
    let program = |name: &str, host: &str| {
        format!("[[program]]\nname = \"{name}\"\nhost = \"{host}\"\nsource = [\"{name}.c\"]\n")
    };
    let programs = program("left", "a") + &program("right", "b");
    let head = head.replacen("[run]", "manifest = \"manifest.h\"\n[run]", 1);
    let system = TestSystem::new(&format!("{head}{channel}{programs}"));
    for (name, text) in [("manifest.h", MANIFEST), ("left.c", LEFT), ("right.c", RIGHT)] {
        std::fs::write(system.path().join(name), text).expect("written");
    }
    std::fs::create_dir(system.path().join("traces")).expect("a directory");
    let arguments = ["run", ".", "--duration", "20ms", "--task-trace", "traces"];
    run(&arguments, system.path(), 0);
    let trace = |name: &str, task: &str| -> Vec<String> {
        let path = system.path().join("traces").join(name);
        let text = std::fs::read_to_string(path).expect("a trace");
        let of_task = text.lines().filter(|line| line.contains(task));
        of_task.map(|line| line.replacen(&format!(",{task}"), "", 1)).collect()
    };
    let expected = [
        "0,start,,",
        "0,arrive,7,0",
        "5000000,release,7,0",
        "5000000,reach,8,",
        "7000000,write,c,",
        "7000000,reach,9,",
        "7000000,write,c,",
        "7000000,reach,9.2,",
        "7875000,write,c,",
        "7875000,reach,11,",
        "8875000,write,c,",
        "8875000,end,,",
    ];
    assert_eq!(trace("left.csv", "talk"), expected);
    let expected = [
        "0,start,,",
        "0,reach,7,",
        "7000000,read,c,",
        "7000000,arrive,8,6000000",
        "7000000,release,8,6000000",
        "7000000,reach,7,",
        "9000000,read,c,",
    ];
    assert_eq!(trace("right.csv", "hear")[..expected.len()], expected);
}
