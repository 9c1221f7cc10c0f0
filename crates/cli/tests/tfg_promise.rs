//! What is computed of `examples/05-control-loop` is what its run promises, and keeps.

use crate::common::{self, number, results, root};
use serde_json::Value;
use std::path::Path;

/// A copy of the example: a run writes beside the description.
fn example() -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in root().join("examples/05-control-loop").read_dir().expect("the example").flatten()
    {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
        }
    }
    copy
}

fn reflex(found: &Value) -> &Value {
    let chains = found["chains"].as_array().expect("chains");
    chains.iter().find(|chain| chain["name"] == "reflex").expect("the chain")
}

fn study(directory: &Path) -> Value {
    let output = common::run(&["tfg", "system.toml", "--json"], directory, 0);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_bound_of_the_loop_is_the_promise_of_its_run_and_is_kept() {
    let example = example();
    let study = study(example.path());
    let found = results(&["run", "system.toml", "--duration", "3s"], example.path(), 0);
    let bound = number(reflex(&study), "latency_ns.hi");
    for run in found["runs"].as_array().expect("runs") {
        let chain = reflex(run);
        assert!(number(chain, "completed") > 290, "{chain}");
        if run["scenario"] == "unprotected" {
            assert!(chain["bound_ns"].is_null(), "{chain}");
            continue;
        }
        assert_eq!(number(chain, "bound_ns"), bound);
        assert_eq!(chain["verdict"], "kept", "{chain}");
        let most = number(chain, "latency_ns.max");
        assert!(most <= bound && bound <= number(chain, "deadline_ns"), "{chain}");
        // A run measures to the receipt, the bound continues to the end of the actuator's wait for
        // the fixed delay. Of the rest, filter and controller are most.
        let fixed_delay = 2_000_000;
        assert!(most * 10 > (bound - fixed_delay) * 7, "{most} of {bound}");
    }
}
