//! `onbeat plan --admit`: channels one at a time, each where those before it leave room.

use crate::source::Source;
use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use onbeat_bounds::{KeptPlan, PlanDocument, Planner, RefusedDocument, document};
use onbeat_model::system::{Channel, Subject, System};
use std::collections::HashSet;

/// A system of which only some channels are admitted.
pub(crate) struct Admitted {
    /// With these channels, and the chains and references about them.
    pub(crate) system: System,
    /// Where they are.
    pub(crate) plan: PlanDocument,
    /// The others.
    pub(crate) refused: Vec<RefusedDocument>,
}

/// Admits the channels of a description in their order. Those of the plan that is kept are there
/// before all others.
pub(crate) fn admit(source: &Source, kept: Option<&PlanDocument>) -> anyhow::Result<Admitted> {
    let whole = &source.system;
    let names = kept.iter().flat_map(|plan| &plan.channels).map(|channel| channel.name.as_str());
    let kept_names: HashSet<&str> = names.collect();
    let (first, others): (Vec<Channel>, Vec<Channel>) =
        whole.channels.iter().cloned().partition(|c| kept_names.contains(c.name.as_str()));
    let base = with_channels(whole, first);
    let kept = kept.map(|plan| KeptPlan::new(&base, plan)).unwrap_or_default();
    let planned = Planner::new(base, &kept);
    let (mut planner, limits) = planned.map_err(|errors| source.wrong(&errors))?;
    source.show(&limits);
    let bar = progress_bar(others.len());
    let (mut refused, mut reasons) = (Vec::new(), Vec::new());
    for channel in others {
        let name = channel.name.clone();
        if let Err(errors) = planner.add(channel) {
            let why = errors.iter().map(|error| error.message.clone()).collect();
            let code = errors.first().map(|error| error.code.as_str().to_owned());
            refused.push(RefusedDocument { name, code: code.unwrap_or_default(), why });
            reasons.extend(errors);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    source.show(&reasons);
    let plan = document(planner.system(), planner.plan());
    let system = with_channels(whole, planner.system().channels.clone());
    let [admitted, all] = [system.channels.len(), whole.channels.len()];
    terminal::say(format_args!("onbeat: {admitted} of {all} channels are admitted"));
    Ok(Admitted { system, plan, refused })
}

/// A system with some of its channels, in any order, and what is about these only.
fn with_channels(whole: &System, channels: Vec<Channel>) -> System {
    // Bridges know no alternatives.
    let mut system = System { channels, alternatives: Vec::new(), ..whole.clone() };
    let now = |id| system.channel_named(&whole.channel(id).name);
    let mut chains = whole.chains.clone();
    chains.retain_mut(|chain| match chain.channels.iter().map(|id| now(*id)).collect() {
        Some(channels) => {
            chain.channels = channels;
            true
        }
        None => false,
    });
    let mut references = whole.references.clone();
    references.retain_mut(|reference| match reference.of {
        Subject::Channel(id) => now(id).map(|id| reference.of = Subject::Channel(id)).is_some(),
        Subject::Tcp(_) | Subject::Clock(_) => true,
    });
    (system.chains, system.references) = (chains, references);
    system
}

fn progress_bar(channels: usize) -> ProgressBar {
    let bar = ProgressBar::new(channels as u64);
    let style = ProgressStyle::with_template("admitting [{wide_bar}] {pos} of {len}  {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
