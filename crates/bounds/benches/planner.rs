//! How much processor time it takes to plan scheduled channels, bounds included: all of them, and
//! one more, one that changes and one that goes among them.

use onbeat_bounds::{KeptPlan, Planner};
use onbeat_model::system::{ChannelId, System};
use onbeat_model::units::Octets;
use onbeat_testkit::Random;
use std::fmt::Write;

/// Seconds that this thread has been on a processor.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with it");
    let ns: f64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds");
    ns / 1e9
}

/// Bridges that are joined in two random circles, each with a host; channels between any two.
/// Of `shaped` in a hundred the class is A.
fn system(channels: u64, bridges: usize, shaped: u64) -> System {
    let mut random = Random(channels);
    let mut text = "format = 1\nname = \"plan\"\nrouting = \"load-aware\"\n".to_owned();
    text += "[run]\nduration_ms = 50\n";
    for at in 0..bridges {
        let _ = write!(text, "[[bridge]]\nname = \"b{at}\"\nforwarding_ns = 2000\n");
        let _ = write!(text, "[[host]]\nname = \"h{at}\"\n[[link]]\nrate_mbps = 1000\n");
        let _ = writeln!(text, "ends = [\"h{at}\", \"b{at}\"]");
    }
    let mut joined = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let mut circle: Vec<usize> = (0..bridges).collect();
        (1..bridges).for_each(|at| circle.swap(at, random.index(at + 1)));
        let next = circle.iter().cycle().skip(1);
        joined.extend(circle.iter().zip(next).map(|(a, b)| (*a.min(b), *a.max(b))));
    }
    for (one, other) in joined {
        let _ = writeln!(text, "[[link]]\nends = [\"b{one}\", \"b{other}\"]\nrate_mbps = 1000");
    }
    for at in 0..channels {
        let talker = random.index(bridges);
        let listener = (talker + 1 + random.index(bridges - 1)) % bridges;
        let interval = random.one_of(&[500, 1_000, 2_000, 4_000]);
        let class = if random.percent(shaped) { "A" } else { "scheduled" };
        let _ = writeln!(text, "[[channel]]\nname = \"c{at}\"\nclass = \"{class}\"");
        let _ = writeln!(text, "stream_id = {}\ntalker = \"h{talker}\"", at + 1);
        let [high, middle, low] = [at >> 16, at >> 8 & 255, at & 255];
        let _ = writeln!(text, "destination = \"91:e0:f0:{high:02x}:{middle:02x}:{low:02x}\"");
        let _ = writeln!(text, "size_octets = {}", random.between(60, 460));
        let _ = writeln!(text, "interval_ns = {interval}_000\nfixed_delay_us = {interval}");
        let _ = writeln!(text, "listeners = [\"h{listener}\"]");
    }
    let loaded = onbeat_description::load("system.toml", &text, &mut |_| Err(String::new()));
    loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics.first()))
}

fn main() {
    const CHANGES: usize = 100;
    for (channels, bridges, shaped) in
        [(100, 16, 0), (1_000, 100, 0), (10_000, 900, 0), (45_000, 1_000, 0), (1_000, 100, 10)]
    {
        let mut system = system(channels, bridges, shaped);
        let last = system.channels.split_off(system.channels.len() - CHANGES);
        let begun = processor_s();
        let planned = Planner::new(system, &KeptPlan::default());
        let whole = processor_s() - begun;
        let Ok((mut planner, _)) = planned else {
            println!("{channels} channels, {bridges} bridges: {whole:.2} s, refused");
            continue;
        };
        let name = format!("{channels} channels ({shaped} % class A), {bridges} bridges");
        print!("{name}: {whole:.3} s");
        let mut longest = [0.0f64; 4];
        let mut refused = 0;
        for channel in last {
            let mut timed = |which: usize, change: &mut dyn FnMut() -> bool| {
                let begun = processor_s();
                let which = if change() { which } else { 3 };
                longest[which] = longest[which].max(processor_s() - begun);
                refused += usize::from(which == 3);
            };
            let id = ChannelId(planner.system().channels.len() as u32);
            timed(0, &mut || planner.add(channel.clone()).is_ok());
            if planner.system().channels.len() as u32 > id.0 {
                let mut other = channel.clone();
                other.size = Octets::new(other.size.get() + 50);
                timed(1, &mut || planner.change(id, other.clone()).is_ok());
                timed(2, &mut || planner.remove(id).is_ok());
            }
        }
        let ms = longest.map(|s| s * 1e3);
        println!(
            "; the slowest of {CHANGES}: add {:.1} ms, change {:.1} ms, remove {:.1} ms, \
             {refused} refused {:.1} ms",
            ms[0], ms[1], ms[2], ms[3]
        );
    }
}
