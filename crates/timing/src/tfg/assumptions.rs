//! What a study rests on, and what nothing in it has proven.

use onbeat_model::graph::{ChannelKind, Graph, Interval, NodeKind};
use onbeat_model::system::System;
use onbeat_model::timing::Schedule;

/// In sentences, those only that matter to this graph. `system` is the description, if there is
/// one.
pub(super) fn assumptions(
    graph: &Graph,
    schedules: &[Schedule],
    system: Option<&System>,
) -> Vec<String> {
    let mut all = vec![
        "code takes no longer than is declared for it, and no time where nothing is declared; \
         functions of libraries lock nothing and wait for nothing"
            .to_owned(),
    ];
    let mut hosts = graph.hosts.iter();
    if hosts.clone().any(|host| host.cores.is_some()) {
        all.push(
            "a processor goes on with the most urgent task that is ready; switching tasks, \
             interrupts and the kernel take none of its time"
                .to_owned(),
        );
    }
    let count = |at: usize| graph.tasks.iter().filter(|task| task.host == at).count();
    let is_crowded = |at: &usize| graph.hosts[*at].cores.is_none() && count(*at) > 1;
    if (0..graph.hosts.len()).any(|at| is_crowded(&at)) {
        all.push(
            "where a host does not say how many processors it has, each task has one to itself"
                .to_owned(),
        );
    }
    if hosts.any(|host| host.wakeup != Interval::ZERO) {
        all.push(
            "who sleeps goes on within the wake-up delay that its host is described with"
                .to_owned(),
        );
    }
    all.extend(of_locks(graph));
    let is_network = |kind: &ChannelKind| matches!(kind, ChannelKind::Network(_));
    if graph.channels.iter().any(|channel| is_network(&channel.kind)) {
        all.push("channels of the network keep to the bounds of the plan".to_owned());
    }
    if schedules.iter().flat_map(|schedule| &schedule.tasks).any(|task| task.is_assigned) {
        all.push(
            "what is proposed (*) is applied: runs in virtual time do so with priorities; in real \
             time the program has to state them"
                .to_owned(),
        );
    }
    all.extend(system.into_iter().flat_map(|system| unknown(graph, system)));
    all
}

fn of_locks(graph: &Graph) -> Vec<String> {
    let mut nodes = graph.tasks.iter().flat_map(|task| &task.nodes);
    if !nodes.any(|node| matches!(node.kind, NodeKind::Lock(_) | NodeKind::Take(_))) {
        return Vec::new();
    }
    let mut all = vec![
        "who holds a mutex is as urgent as the most urgent that waits for it: in real time it is \
         created with PTHREAD_PRIO_INHERIT or PTHREAD_PRIO_PROTECT"
            .to_owned(),
    ];
    for (vague, others) in &graph.aliases {
        let (name, count) = (&graph.resources[*vague], others.len());
        all.push(format!("`{name}` is one mutex, or any of {count} others of its program"));
    }
    all
}

/// Programs of unknown behaviour.
fn unknown(graph: &Graph, system: &System) -> Vec<String> {
    let is_known = |name: &str| graph.tasks.iter().any(|task| task.program == name);
    let left = system.programs.iter().filter(|program| !is_known(&program.name));
    let one = |name: &str| {
        format!("program `{name}`, which is not analysed, takes no time of any processor")
    };
    left.map(|program| one(&program.name)).collect()
}
