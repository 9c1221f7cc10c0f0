//! IdleSlopes that are greater than what channels send, where their fixed delays need that.
//!
//! The bounds of classes A and B fall with the idleSlopes on their paths, but not always: what
//! leaves a port sooner may meet more of others at the next one, and class B waits for class A. So
//! slopes are raised together, and what that does is computed.

use crate::reserve;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::plan::{Plan, PortPlan};
use onbeat_model::port::Selection;
use onbeat_model::system::{ChannelId, Class, PortId, System};
use onbeat_model::units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

const CLASSES: [Class; 2] = [Class::A, Class::B];
/// Slopes as they are, in the unit by which they are raised.
const UNCHANGED: u64 = 1_000;

/// Channels of classes A and B whose messages may come after their fixed delays.
type Late = BTreeSet<ChannelId>;

/// Raises idleSlopes of a plan that has its bounds, if messages of more channels are in time then
/// and none later that were: by as little as lets as many be in time as the most does, to 1 %.
/// Returns where the analysis of the new bounds ended early; none if nothing has changed.
pub(crate) fn meet(system: &System, plan: &mut Plan) -> Option<Vec<Diagnostic>> {
    let late = late(system, plan);
    let raises = raises(system, plan, &late);
    let most = raises.values().map(|raise| raise.most()).max()?;
    let attempt = |permille: u64| {
        let mut raised = plan.clone();
        for (port, raise) in &raises {
            raise.apply(permille, &mut raised.ports[port.index()]);
        }
        let (errors, limits) = crate::bound(system, &mut raised);
        let still = self::late(system, &raised);
        (errors.is_empty() && still.is_subset(&late)).then_some((raised, limits, still.len()))
    };
    let mut best = attempt(most).filter(|(.., still)| *still < late.len())?;
    let (mut too_little, mut enough) = (UNCHANGED, most);
    while enough > too_little + too_little / 100 {
        let middle = (too_little * enough).isqrt().clamp(too_little + 1, enough - 1);
        match attempt(middle).filter(|(.., still)| *still <= best.2) {
            Some(better) => (best, enough) = (better, middle),
            None => too_little = middle,
        }
    }
    let (raised, limits, _) = best;
    *plan = raised;
    Some(limits)
}

fn late(system: &System, plan: &Plan) -> Late {
    let ids = (0..system.channels.len() as u32).map(ChannelId);
    ids.filter(|id| {
        let channel = system.channel(*id);
        let is_late = |bound| bound > channel.fixed_delay;
        CLASSES.contains(&channel.class) && plan.channel(*id).bound().is_some_and(is_late)
    })
    .collect()
}

/// The idleSlopes of a port that may be raised, and what is left to be reserved there; in bit/s.
struct Raise {
    /// Of classes A and B; zero where it stays as it is.
    slopes: [u64; 2],
    room: u64,
}

impl Raise {
    /// From when on a greater factor changes nothing.
    fn most(&self) -> u64 {
        let sum = u128::from(self.slopes[0]) + u128::from(self.slopes[1]);
        let more = (u128::from(self.room) * u128::from(UNCHANGED)).div_ceil(sum.max(1));
        // Of a slope of 1 bit/s, a thousand times a terabit is not too much for a square.
        UNCHANGED + u64::try_from(more).unwrap_or(u64::MAX).min(u64::from(u32::MAX) - UNCHANGED)
    }

    /// Each slope by so many thousandths, as far as there is room for both.
    fn apply(&self, permille: u64, port: &mut PortPlan) {
        let more = self.slopes.map(|slope| {
            u128::from(slope) * u128::from(permille - UNCHANGED) / u128::from(UNCHANGED)
        });
        let (wanted, room) = (more[0] + more[1], u128::from(self.room));
        for ((class, slope), more) in CLASSES.into_iter().zip(self.slopes).zip(more) {
            let more = if wanted > room { more * room / wanted } else { more };
            if slope > 0 {
                let more = u64::try_from(more).expect("no more than there is room");
                port.set_idle_slope(class, BitRate::from_bps(slope + more));
            }
        }
    }
}

/// By port on the paths of late channels, what may be raised there. What the description sets
/// stays.
fn raises(system: &System, plan: &Plan, late: &Late) -> BTreeMap<PortId, Raise> {
    let mut raises: BTreeMap<PortId, Raise> = BTreeMap::new();
    for id in late {
        let class = system.channel(*id).class;
        for port in plan.channel(*id).tree_ports() {
            let selection = &plan.ports[port.index()].settings.selection;
            let Selection::CreditBased { idle_slope } = selection[class.queue()] else { continue };
            if reserve::is_set(system, port, class.queue()) {
                continue;
            }
            let slopes = selection.iter().map(|selection| match selection {
                Selection::CreditBased { idle_slope } => u128::from(idle_slope.as_bps()),
                _ => 0,
            });
            let rate = u128::from(system.link_of(port).rate.as_bps());
            let limit = rate * u128::from(reserve::percent(system, port)) / 100;
            let shaped = u128::from(plan.ports[port.index()].asynchronous_rate.as_bps());
            let room = limit.saturating_sub(slopes.sum::<u128>() + shaped);
            let room = u64::try_from(room).expect("no more than a link's rate");
            let raise = raises.entry(port).or_insert(Raise { slopes: [0; 2], room });
            raise.slopes[usize::from(class == Class::B)] = idle_slope.as_bps();
        }
    }
    raises
}
