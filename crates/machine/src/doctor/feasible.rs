//! Remedies that this kernel does not have: what to do instead.

use super::facts::Facts;
use super::finding::Finding;

/// What a finding's check tells to do, or what this machine can do instead.
pub(super) fn fix(facts: &Facts, finding: &Finding) -> String {
    let kernel = &facts.kernel;
    let lacks = |option: &str| kernel.config.has(option) == Some(false);
    let without = |option: &str| {
        format!("Use a kernel with CONFIG_{option}: this one is built without, there is no module.")
    };
    let other = match finding.check.id {
        "kernel.preemption" if lacks("PREEMPT_DYNAMIC") => Some(
            "Use a kernel with CONFIG_PREEMPT_RT or CONFIG_PREEMPT: this one is built without \
             CONFIG_PREEMPT_DYNAMIC, and `preempt=` has no effect."
                .to_owned(),
        ),
        "kernel.vlan" if lacks("VLAN_8021Q") => Some(without("VLAN_8021Q")),
        "kernel.mqprio" if lacks("NET_SCH_MQPRIO") => Some(without("NET_SCH_MQPRIO")),
        "kernel.cbs" if lacks("NET_SCH_CBS") => Some(without("NET_SCH_CBS")),
        "kernel.etf" if lacks("NET_SCH_ETF") => Some(without("NET_SCH_ETF")),
        "kernel.taprio" if lacks("NET_SCH_TAPRIO") => Some(without("NET_SCH_TAPRIO")),
        "isolation.cores" => isolation(facts),
        _ => None,
    };
    other.unwrap_or_else(|| finding.check.fix.to_owned())
}

/// How CPUs can be isolated here; `None` where it is not known that some way is closed.
fn isolation(facts: &Facts) -> Option<String> {
    let at_boot = facts.kernel.config.has("CPU_ISOLATION") != Some(false);
    let controllers = facts.isolation.controllers.known()?;
    let partition = controllers.split_whitespace().any(|name| name == "cpuset");
    if at_boot && partition {
        return None;
    }
    let mut ways = Vec::new();
    if partition {
        ways.push("make an isolated partition of cgroup v2");
    } else if facts.isolation.version_1 {
        ways.push("make an exclusive set of cgroup v1 (`onbeat tune --profile cpuset`)");
    }
    if at_boot {
        ways.push("boot with `isolcpus=managed_irq,domain,…`");
    }
    let mut text = match ways.is_empty() {
        true => "Use a kernel with CONFIG_CPU_ISOLATION or CONFIG_CPUSETS.".to_owned(),
        false => format!("{}.", ways.join(", or ")),
    };
    text[..1].make_ascii_uppercase();
    Some(text)
}
