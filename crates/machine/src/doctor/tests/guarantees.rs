//! What a system asks for, and whether findings carry it.

use super::host::Host;
use super::wrong;
use crate::doctor::facts::Fact;
use crate::doctor::{Need, Requirements, State, verdicts, worst};
use onbeat_model::plan::{Bound, BoundTerm, ChannelPlan, Plan, PortPlan};
use onbeat_model::port::Selection;
use onbeat_model::system::{Class, PortId, System};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::collections::BTreeSet;

const SYSTEM: &str = r#"
format = 1
name = "arm"
[run]
duration_s = 1
[[host]]
name = "left"
wakeup_ns = { min = 1000, max = 16000 }
[[host]]
name = "right"
[[link]]
ends = ["left", "right"]
rate_mbps = 100
[[channel]]
name = "joints"
destination = "01:00:5e:01:11:42"
stream_id = 42
class = "A"
size_octets = 100
interval_ns = 1000000
talker = "left"
listeners = ["right"]
[[program]]
name = "arm"
host = "left"
command = ["arm"]
priority = 70
cores = [2, 3]
"#;

fn system() -> System {
    let loaded = onbeat_description::load("system.toml", SYSTEM, &mut |name| Err(name.to_owned()));
    loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

/// A plan with class A reserved at the talker's port, and a bound of 1 ms.
fn plan(system: &System) -> Plan {
    let term = BoundTerm { what: "all".to_owned(), span: Span::from_ms(1) };
    let bound = Bound { terms: vec![term], best: Span::ZERO };
    let mut ports = vec![PortPlan::default(); system.ports.len()];
    ports[0].set_idle_slope(Class::A, BitRate::from_bps(1_000_000));
    assert!(ports[0].settings.selection.iter().any(|s| *s != Selection::StrictPriority));
    Plan {
        protected: true,
        channels: vec![ChannelPlan {
            protected: true,
            paths: vec![vec![PortId(0)]],
            true_rate: BitRate::from_bps(1_000_000),
            reserved_rate: BitRate::from_bps(1_000_000),
            launch: None,
            schedulers: Vec::new(),
            slot: None,
            bounds: vec![bound],
        }],
        ports,
        ..Plan::default()
    }
}

#[test]
fn a_host_asks_for_what_its_part_of_the_system_needs() {
    let system = system();
    let plan = plan(&system);
    let left = Requirements::of_host(&system, &plan, "left").unwrap();
    assert_eq!(left.rate, Some(BitRate::from_bps(100_000_000)));
    assert_eq!((left.payload, left.shaped, left.gated), (Some(124), true, false));
    assert_eq!(left.tags, BTreeSet::from([(2, 3)]));
    assert_eq!(left.wakeup_max, Some(Span::from_us(16)));
    assert_eq!(left.clock_slack, Some(Span::from_ms(1)));
    assert_eq!((left.priority(), left.cores().to_string().as_str()), (Some(70), "2-3"));
    let names: Vec<_> = left.guarantees.iter().map(|guarantee| guarantee.name.as_str()).collect();
    assert_eq!(names, ["joints", "arm"]);
    // The other host only listens: no program, no reservation, no tag of its own.
    let right = Requirements::of_host(&system, &plan, "right").unwrap();
    assert_eq!((right.shaped, right.tags.len(), right.programs.len()), (false, 0, 0));
    assert!(right.rests_on(Need::Time) && right.rests_on(Need::Network));
    let error = Requirements::of_host(&system, &plan, "middle").unwrap_err().to_string();
    assert_eq!(error, "the system has no host `middle`: it has left, right");
}

#[test]
fn one_machine_that_runs_all_needs_no_synchronised_clock() {
    let system = system();
    let all = Requirements::of_all(&system, &plan(&system));
    assert!(all.rests_on(Need::Wakeup));
    assert!(!all.rests_on(Need::Time) && !all.rests_on(Need::Network));
    assert!(!all.shaped && all.rate.is_none());
}

#[test]
fn a_finding_affects_the_guarantees_that_rest_on_it_and_no_others() {
    let mut host = Host::tuned();
    host.calls.tried.cbs = Fact::Known(false);
    let findings = host.findings();
    let verdicts = verdicts(&findings, &host.requirements);
    let said: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            let against: Vec<_> = verdict.against.iter().map(|f| f.check.id).collect();
            (verdict.guarantee.name.as_str(), verdict.state, against)
        })
        .collect();
    let expected =
        [("joints", State::Blocks, vec!["kernel.cbs"]), ("talker", State::Ok, Vec::new())];
    assert_eq!(said, expected);
    assert_eq!(worst(&findings), State::Blocks);
}

#[test]
fn what_no_guarantee_rests_on_raises_no_alarm() {
    let mut host = Host::tuned();
    host.calls.tried.cbs = Fact::Known(false);
    host.calls.ptp4l = Fact::Unknown("there is no /var/run/ptp4l".to_owned());
    host.interface().up = false;
    host.requirements.guarantees.retain(|guarantee| guarantee.name == "talker");
    assert_eq!(wrong(&host.findings()), []);
}

#[test]
fn without_a_system_nothing_blocks() {
    let mut host = Host::tuned();
    host.write("/sys/kernel/realtime", "0");
    host.write("/proc/sys/kernel/sched_rt_runtime_us", "0");
    host.requirements = Requirements::default();
    let findings = host.findings();
    assert_eq!(worst(&findings), State::Advice);
    assert_eq!(worst(&Host::tuned().findings()), State::Ok);
}
