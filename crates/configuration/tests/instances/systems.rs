//! Systems and their plans.

use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::Plan;
use onbeat_model::system::System;
use onbeat_testkit::{Random, root};
use std::fmt::Write;

/// Those with bridges.
pub(crate) const EXAMPLES: [&str; 4] =
    ["01-two-hosts", "03-robot-arm", "04-tsn-ring", "05-control-loop"];

/// Every class of channels over two bridges. The port `second.spare` has gates of its own.
pub(crate) const SCHEDULED: &str = r#"
format = 1
name = "cell"

[run]
duration_s = 1

[[host]]
name = "controller"
[[host]]
name = "arm"
[[host]]
name = "watcher"
[[bridge]]
name = "first"
forwarding_ns = 2000
[[bridge]]
name = "second"
forwarding_ns = 2000

[[link]]
ends = ["controller", "first.controller"]
rate_mbps = 1000
[[link]]
ends = ["first.second", "second.first"]
rate_mbps = 1000
[[link]]
ends = ["second.arm", "arm"]
rate_mbps = 1000
[[link]]
ends = ["second.spare", "watcher"]
rate_mbps = 1000

[[port]]
name = "second.spare"
idle_slope_bps = { 4 = 123_456_789 }
gates = [
    { base_time_ns = 7_000_000_123, length_aware = false, entries = [
        { open = [4], interval_ns = 100_000 },
        { open = [0, 1], interval_ns = 233_333 },
    ] },
    # several: { base_time_ns = 9_000_000_000, entries = [{ open = [0], interval_ns = 10 }] },
]

[[channel]]
name = "setpoint"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "scheduled"
size_octets = 64
interval_ns = 1_000_000
fixed_delay_us = 200
talker = "controller"
listeners = ["arm"]

[[channel]]
name = "position"
destination = "91:e0:f0:00:fe:02"
stream_id = 2
class = "A"
size_octets = 64
interval_ns = 1_000_000
talker = "arm"
listeners = ["controller"]

[[channel]]
name = "state"
destination = "91:e0:f0:00:fe:03"
stream_id = 3
class = "B"
size_octets = 100
interval_ns = 10_000_000
talker = "arm"
listeners = ["controller"]
"#;

/// The same, with an asynchronous channel.
pub(crate) fn with_sporadic() -> String {
    SCHEDULED.to_owned()
        + "\n[[channel]]\nname = \"alarm\"\ndestination = \"91:e0:f0:00:fe:04\"\nstream_id = 4\n\
           class = \"asynchronous\"\nsize_octets = 40\ninterval_ns = 10_000_000\n\
           talker = \"arm\"\nlisteners = [\"controller\"]\n"
}

/// The same with a talker of scheduled channels that has no gates.
pub(crate) fn launching() -> String {
    SCHEDULED.replace("name = \"controller\"\n", "name = \"controller\"\ndevice = \"i210\"\n")
}

/// The same, of devices with limits.
pub(crate) fn with_devices() -> String {
    let of = |text: String, node: &str, device: &str| {
        let name = format!("name = \"{node}\"\n");
        text.replace(&name, &format!("{name}device = \"{device}\"\n"))
    };
    let text = of(SCHEDULED.to_owned(), "first", "coarse");
    let text = of(of(text, "controller", "once"), "second", "veth");
    // Its gates are not length-aware.
    text.replace("length_aware = false, ", "")
        .replace("us = 200\n", "us = 200\nphase_ns = 300_000\n")
        + "\n[[device]]\nname = \"coarse\"\ntick_granularity_ns = 200\ninterval_min_ns = 1_000\n\
           supported_interval_max_ns = 77_777\nsupported_cycle_max_ns = 250_000_000\n\
           supported_list_max = 99\n[[device]]\nname = \"once\"\nopenings_max = 1\n"
}

/// The system of an example and its plan.
pub(crate) fn example(name: &str) -> (System, Plan) {
    let directory = root().join("examples").join(name);
    let text = std::fs::read_to_string(directory.join("system.toml")).expect("the example");
    planned(&text, &mut |path| {
        std::fs::read_to_string(directory.join(path)).map_err(|error| error.to_string())
    })
}

/// A description's system and its plan.
pub(crate) fn described(text: &str) -> (System, Plan) {
    planned(text, &mut |path| Err(format!("{path} is not there")))
}

fn planned(text: &str, read: &mut dyn FnMut(&str) -> Result<String, String>) -> (System, Plan) {
    attempted(text, read).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

/// A description's system and its plan, or why there is no plan.
pub(crate) fn attempted(
    text: &str,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(System, Plan), Vec<Diagnostic>> {
    let loaded = onbeat_description::load("system.toml", text, read);
    let system = loaded.system.unwrap_or_else(|| panic!("{:#?}\n{text}", loaded.diagnostics));
    let plan = onbeat_bounds::plan(&system, system.run.protected)?;
    Ok((system, plan))
}

/// A line of bridges with a host at each, and ports with any gates and shapers.
pub(crate) fn random(random: &mut Random) -> String {
    let mut text = "format = 1\nname = \"random\"\n[run]\nduration_s = 1\n".to_owned();
    let bridges = random.between(2, 4);
    let mut ports = Vec::new();
    for at in 0..bridges {
        write!(text, "[[host]]\nname = \"h{at}\"\n[[bridge]]\nname = \"b{at}\"\n").expect("text");
        write!(text, "[[link]]\nends = [\"h{at}.p\", \"b{at}.host\"]\nrate_mbps = 1000\n")
            .expect("text");
        ports.extend([format!("h{at}.p"), format!("b{at}.host")]);
        if at > 0 {
            let [left, right] = [format!("b{}.right", at - 1), format!("b{at}.left")];
            write!(text, "[[link]]\nends = [\"{left}\", \"{right}\"]\nrate_mbps = 1000\n")
                .expect("text");
            ports.extend([left, right]);
        }
    }
    for port in &ports {
        if random.percent(20) {
            continue;
        }
        write!(text, "[[port]]\nname = \"{port}\"\n").expect("text");
        if random.percent(60) {
            let slopes = (0..8).filter(|_| random.percent(40));
            let slopes: Vec<i64> = slopes.collect();
            let slope = |queue| format!("{queue} = {}", random.between(1, 125_000_000));
            let slopes: Vec<String> = slopes.into_iter().map(slope).collect();
            writeln!(text, "idle_slope_bps = {{ {} }}", slopes.join(", ")).expect("text");
        } else {
            writeln!(text, "asynchronous = [{}]", random.below(8)).expect("text");
        }
        if random.percent(80) {
            writeln!(text, "gates = [{}]", gates(random)).expect("text");
        }
    }
    text
}

/// A line of bridges with a host at each, and channels between these in several VLANs.
pub(crate) fn channels(random: &mut Random) -> String {
    let mut text = "format = 1\nname = \"random\"\n[run]\nduration_s = 1\n".to_owned();
    let bridges = random.between(2, 5);
    for at in 0..bridges {
        write!(text, "[[host]]\nname = \"h{at}\"\nmac = \"02:00:00:00:00:0{at}\"\n").expect("text");
        write!(text, "[[bridge]]\nname = \"b{at}\"\n").expect("text");
        let rate = random.one_of(&[100, 1000]);
        write!(text, "[[link]]\nends = [\"h{at}.p\", \"b{at}.host\"]\nrate_mbps = {rate}\n")
            .expect("text");
        if at > 0 {
            let ends = format!("[\"b{}.right\", \"b{at}.left\"]", at - 1);
            write!(text, "[[link]]\nends = {ends}\nrate_mbps = {rate}\n").expect("text");
        }
    }
    let mut stations = std::collections::BTreeSet::new();
    for at in 0..random.between(1, 6) {
        let talker = random.between(0, bridges - 1);
        let others = (0..bridges).filter(|host| *host != talker);
        let others: Vec<i64> = others.filter(|_| random.percent(60)).collect();
        let Some(first) = others.first() else { continue };
        // To one station alone, or to a group.
        let destination = match &others[..] {
            [host] if stations.insert(*host) => format!("02:00:00:00:00:0{first}"),
            _ => format!("91:e0:f0:00:fe:0{at}"),
        };
        let listeners: Vec<String> = others.iter().map(|host| format!("\"h{host}\"")).collect();
        let class = random.one_of(&["A", "B"]);
        writeln!(text, "[[channel]]\nname = \"c{at}\"\nclass = \"{class}\"").expect("text");
        writeln!(text, "stream_id = {}\ndestination = \"{destination}\"", at + 1).expect("text");
        writeln!(text, "size_octets = {}", random.between(1, 300)).expect("text");
        writeln!(text, "interval_ns = {}", random.between(1_000_000, 9_000_000)).expect("text");
        writeln!(text, "vlan = {}", random.between(2, 5)).expect("text");
        if random.percent(30) {
            let pcp = random.one_of(&if class == "A" { [3, 4, 7] } else { [2, 5, 6] });
            writeln!(text, "pcp = {pcp}\nreserve = {}", random.percent(70)).expect("text");
        }
        let listeners = listeners.join(", ");
        writeln!(text, "talker = \"h{talker}\"\nlisteners = [{listeners}]").expect("text");
    }
    text
}

/// One list; a few have states of some seconds.
fn gates(random: &mut Random) -> String {
    let count = random.between(1, 40);
    let long = random.percent(25);
    let (mut entries, mut total) = (Vec::new(), 0);
    for _ in 0..count {
        let open: Vec<String> =
            (0..8).filter(|_| random.percent(50)).map(|queue: i32| queue.to_string()).collect();
        let ns = match long && random.percent(30) {
            true => 1_000_000 * random.between(4_290, 20_000),
            false => random.between(1, 1_000_000),
        };
        total += ns;
        entries.push(format!("{{ open = [{}], interval_ns = {ns} }}", open.join(", ")));
    }
    // A list may end before its cycle or after it, and a cycle of more than 4 s has to be a simple
    // fraction.
    let cycle = match total > 4_000_000_000 {
        true => total / 2_000_000_000 * 1_000_000_000 * random.between(1, 3),
        false => random.one_of(&[total, total / 2 + 1, total + 17]),
    };
    let base = random.between(0, 2_592_000_000_000_000);
    let entries = entries.join(", ");
    format!("{{ base_time_ns = {base}, cycle_time_ns = {cycle}, entries = [{entries}] }}")
}
