//! The set-up of Austad et al. 2023, Listing 14, as printed, and with its faults mended.

use super::host::Host;
use super::wrong;
use crate::doctor::State::{Advice, Blocks};
use crate::doctor::{Finding, State, lint};

const LISTING: &str = r#"
tc qdisc replace dev enp2s0 parent root mqprio \
  num_tc 4 \
  map 3 3 1 0 2 2 2 2 2 2 2 2 2 2 \
  queues 1@0 1@1 1@2 1@3 hw 0
tc qdisc add dev enp2s0 parent 8001:1 cbs \
  idleslope 20000 sendslope -980000 \
  hicredit 30 locredit -1470 offload 1
cset shield --cpu 2-3
for irq in $(cat /proc/interrupts | \
  grep -E '(enp1s0|enp2s0$|enp2s0-TxRx-0|enp2s0-TxRx-1)' | \
  cut -d ':' -f1);
do
  echo "Setting affinity for irq ${irq} to: 1"
  echo "1" > /proc/irq/${irq}/smp_affinity
done
for irq in $(cat /proc/interrupts | \
  grep -E '(enp2s0-TxRx-2|enp2s0-TxRx-3)' | \
  cut -d ':' -f1);
do
  echo "Setting affinity for irq ${irq} to: 14"
  echo "1" > /proc/irq/${irq}/smp_affinity
done
"#;

/// What is found in a text.
fn findings(text: &str) -> Vec<Finding> {
    lint("setup.sh", text, Some(&Host::tuned().requirements))
}

#[test]
fn its_map_of_14_entries_its_handle_and_its_second_affinity_are_found() {
    let found = findings(LISTING);
    let expected =
        [("script.priority-map", Advice), ("script.handle", Advice), ("script.affinity", Advice)];
    assert_eq!(wrong(&found), expected, "{found:#?}");
    let places: Vec<_> = found
        .iter()
        .filter(|finding| finding.state != State::Ok)
        .map(|finding| finding.subject.as_deref().unwrap())
        .collect();
    assert_eq!(places, ["setup.sh:2", "setup.sh:6", "setup.sh:22"]);
    let affinity = found.last().unwrap();
    assert_eq!(affinity.value, "writes 1 (CPUs 0)");
    assert_eq!(affinity.wanted, "14, as it says");
}

#[test]
fn mended_it_raises_no_alarm() {
    let mended = LISTING
        .replace("parent root mqprio", "root handle 100: mqprio")
        .replace("2 2 \\\n  queues", "2 2 2 2 \\\n  queues")
        .replace("parent 8001:1", "parent 100:1")
        .replace("to: 14\"\n  echo \"1\"", "to: 14\"\n  echo \"14\"");
    let found = findings(&mended);
    assert_eq!(wrong(&found), [], "{found:#?}");
    assert_eq!(found.len(), 6, "and all of it was looked at: {found:#?}");
}

#[test]
fn masks_and_lists_are_not_taken_for_each_other() {
    for (text, expected) in [
        ("# IRQ 9 to CPU 2\necho 2 > /proc/irq/9/smp_affinity", "script.affinity"),
        ("# IRQ 9 to CPUs 2-3\necho c > /proc/irq/9/smp_affinity", ""),
        ("# IRQ 9 to CPUs 2-3\necho 2-3 > /proc/irq/9/smp_affinity_list", ""),
        ("echo 2-3 > /proc/irq/9/smp_affinity", "script.mask-or-list"),
        ("echo 0x4 > /proc/irq/9/smp_affinity_list", "script.mask-or-list"),
        ("echo 1,3 | sudo tee /proc/irq/9/smp_affinity", "script.mask-or-list"),
        ("echo \"mask 3\"\necho $MASK > /proc/irq/9/smp_affinity", ""),
        ("echo ffffffff,fffffffc > /proc/irq/default_smp_affinity", ""),
    ] {
        let found = findings(text);
        let found: Vec<_> = wrong(&found).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }
}

#[test]
fn other_faults_of_scripts_are_found() {
    for (text, expected) in [
        ("sysctl -w kernel.sched_rt_runtime_us=-1", "script.throttling"),
        ("echo -1 > /proc/sys/kernel/sched_rt_runtime_us", "script.throttling"),
        ("echo 950000 > /proc/sys/kernel/sched_rt_runtime_us", ""),
        (
            "tc qdisc add dev e root handle 1: mqprio num_tc 2 map 0 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             queues 1@0 1@1",
            "script.classes",
        ),
        (
            "tc qdisc add dev e root handle 1: mqprio num_tc 3 map 0 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             queues 1@0 1@1",
            "script.classes",
        ),
        (
            "tc qdisc add dev e root handle 6: taprio num_tc 1 map 0 0\n\
             tc qdisc add dev e parent 6:1 cbs idleslope 98688 sendslope -900000 hicredit 1",
            "script.priority-map script.slopes",
        ),
    ] {
        let found = findings(text);
        let found: Vec<_> = wrong(&found).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }
}

#[test]
fn a_configuration_of_ptp4l_is_looked_at_where_it_stands() {
    let text = "[global]\ntime_stamping software\ndelay_mechanism P2P\n\
                neighborPropDelayThresh 800\n";
    let found = findings(text);
    assert_eq!(wrong(&found), [("time.path-threshold", Blocks)]);
    assert_eq!(found[0].subject.as_deref(), Some("setup.sh:4"));
    assert_eq!(wrong(&findings(&text.replace("800", "2000000"))), []);
}
