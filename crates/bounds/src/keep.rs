//! What of an earlier plan stays as it was when a description has changed.

use crate::document::{ChannelDocument, LaunchDocument, PlanDocument};
use crate::reserve;
use crate::route::{Path, Routes, load_aware, next, own, sends};
use onbeat_model::plan::{ChannelPlan, Launch, Plan, PortWindow};
use onbeat_model::system::{Channel, ChannelId, NodeId, NodeKind, PortId, System};
use onbeat_model::time::Span;
use std::collections::HashMap;

/// By channel of a system, what an earlier plan gave the one of the same name: where that is still
/// right, a plan that keeps it leaves it there.
#[derive(Clone, Debug, Default)]
pub struct KeptPlan(Vec<Option<KeptChannel>>);

#[derive(Clone, Debug)]
struct KeptChannel {
    /// One per listener.
    paths: Vec<Path>,
    launch: Option<Launch>,
    /// Whether it sends as much as then.
    is_same: bool,
}

impl KeptPlan {
    /// Whether there is no earlier plan.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// What `earlier` says of the channels of `system`. Channels that it lacks, or whose paths are
    /// none of this system any more, are planned as ever.
    pub fn new(system: &System, earlier: &PlanDocument) -> Self {
        let ports = (0..system.ports.len() as u32).map(PortId);
        let ports: HashMap<String, PortId> =
            ports.map(|port| (system.port_label(port), port)).collect();
        let earlier: HashMap<&str, &ChannelDocument> =
            earlier.channels.iter().map(|channel| (channel.name.as_str(), channel)).collect();
        let kept = |channel: &Channel| {
            let earlier = earlier.get(channel.name.as_str())?;
            let known = |path: &Vec<String>| {
                path.iter().map(|label| ports.get(label).copied()).collect::<Option<Path>>()
            };
            let to = |listener: &NodeId| {
                let host = &system.node(*listener).name;
                earlier.listeners.iter().find(|to| to.host == *host)
            };
            let is_replicated = channel.paths.is_replicated();
            let paths: Option<Vec<Path>> = match is_replicated {
                // They are found again; what stays are their windows.
                true => to(&channel.listeners[0])?.paths.iter().map(known).collect(),
                false => channel.listeners.iter().map(|it| known(&to(it)?.path)).collect(),
            };
            let paths = paths?;
            if !is_replicated && !is_tree(system, channel, &paths) {
                return None;
            }
            let launch = earlier.launch.as_ref().and_then(|earlier| launch(earlier, &ports));
            let is_same = earlier.true_rate_bps == reserve::true_rate(channel).as_bps();
            Some(KeptChannel { paths, launch, is_same })
        };
        Self(system.channels.iter().map(kept).collect())
    }

    /// What a plan gives the channels of a system that has others after a change: `was` says which
    /// of the plan's channels each of them was.
    pub(crate) fn of(plan: &Plan, was: impl Iterator<Item = Option<ChannelId>>) -> Self {
        let kept = |was: Option<ChannelId>| {
            let ChannelPlan { paths, launch, .. } = plan.channel(was?).clone();
            Some(KeptChannel { paths, launch, is_same: true })
        };
        Self(was.map(kept).collect())
    }

    /// Whether there is nothing to be kept.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// How many channels a plan has left where they were, and of how many.
    pub fn held(&self, plan: &Plan) -> [usize; 2] {
        let known = self.0.iter().zip(&plan.channels).filter_map(|(kept, now)| {
            let kept = kept.as_ref()?;
            let windows = |launch: &Launch| (launch.at, launch.windows.clone());
            let [before, after] = [&kept.launch, &now.launch].map(|at| at.as_ref().map(windows));
            Some(kept.paths == now.paths && before == after)
        });
        known.fold([0, 0], |[held, all], is_held| [held + usize::from(is_held), all + 1])
    }

    /// When the frames of a channel left, and whether it sends as much as then.
    pub(crate) fn launch(&self, channel: ChannelId) -> Option<(&Launch, bool)> {
        let kept = self.0.get(channel.index())?.as_ref()?;
        Some((kept.launch.as_ref()?, kept.is_same))
    }

    /// Puts channels on the paths that they had, unless these take longer than may be.
    pub(crate) fn restore(&self, system: &System, channels: &[Channel], paths: &mut [Vec<Path>]) {
        for ((channel, kept), paths) in channels.iter().zip(&self.0).zip(paths) {
            let Some(kept) = kept else { continue };
            // Only one path per listener was a choice.
            if !channel.paths.is_free() || kept.paths.len() != channel.listeners.len() {
                continue;
            }
            let ends = channel.listeners.iter().zip(kept.paths.iter().zip(&*paths));
            let is_late = |(to, (kept, now)): (&NodeId, (&Path, &Path))| {
                let [kept, now] = [kept, now].map(|p| load_aware::least(system, channel, *to, p));
                kept > now.max(channel.fixed_delay)
            };
            if !ends.into_iter().any(is_late) {
                paths.clone_from(&kept.paths);
            }
        }
    }
}

/// Whether paths lead from the talker to the listeners, in the channel's VLAN, and to no node by
/// two ports.
fn is_tree(system: &System, channel: &Channel, paths: &[Path]) -> bool {
    let vlan = Routes::new(system).filtered.then_some(channel.vlan);
    let mut entered: HashMap<NodeId, PortId> = HashMap::new();
    paths.iter().zip(&channel.listeners).all(|(path, listener)| {
        let mut at = channel.talker;
        if *listener == at {
            return *path == own(system, at);
        }
        for port in path {
            let to = next(system, *port);
            let is_on = system.port(*port).node == at && to != channel.talker;
            let leads = to == *listener || matches!(system.node(to).kind, NodeKind::Bridge(_));
            let is_only = *entered.entry(to).or_insert(*port) == *port;
            if !is_on || !leads || !is_only || !sends(system, *port, vlan) {
                return false;
            }
            at = to;
        }
        at == *listener
    })
}

fn launch(earlier: &LaunchDocument, ports: &HashMap<String, PortId>) -> Option<Launch> {
    let windows = earlier.windows.iter().map(|window| {
        let port = *ports.get(&window.port)?;
        let [start, span] = [window.start_ns, window.span_ns].map(Span::from_ns);
        Some(PortWindow { port, start, span })
    });
    let [at, write] = [earlier.at_ns, earlier.write_ns].map(Span::from_ns);
    Some(Launch { at, write, windows: windows.collect::<Option<_>>()? })
}
