//! What of both has to be equal.

use super::case::{Case, Kind, LINK, Sent};
use super::outcome::{COUNTERS, Outcome, Passage, What};
use onbeat_model::dedicated::BestEffortPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A switch's table of addresses serves one port at a time, each so many cycles.
const SERVICE: u64 = 4;

/// What was compared.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    cases: u64,
    /// Of them those in which no frames met at a table.
    whole: u64,
    by_kind: BTreeMap<(String, u64), u64>,
    /// Passages that were compared, and those of stations among them.
    passages: u64,
    stations: u64,
    cut: u64,
    counts: [u64; COUNTERS.len()],
}

impl Coverage {
    /// What has never happened in a case that was compared to its end.
    pub(super) fn missing(&self) -> Vec<String> {
        let counts = COUNTERS.iter().zip(&self.counts);
        let never = counts.filter(|(_, count)| **count == 0).map(|(name, _)| (*name).into());
        let kinds = (self.by_kind.len() < 9).then(|| format!("kinds: {:?}", self.by_kind));
        let cut = (self.cut == 0).then(|| "cut".into());
        let few = (3 * self.whole < self.cases).then(|| format!("whole: {}", self.whole));
        never.chain(kinds).chain(cut).chain(few).collect()
    }

    /// For a file.
    pub(super) fn json(&self, first: u64) -> String {
        let Self { cases, whole, passages, stations, cut, counts, .. } = self;
        let rows = [
            ("first_seed", first),
            ("cases", *cases),
            ("compared_to_their_end", *whole),
            ("frames_compared", *passages),
            ("of_stations", *stations),
            ("cut", *cut),
        ];
        let counted = COUNTERS.iter().copied().zip(counts.iter().copied());
        let rows = rows.into_iter().chain(counted);
        let rows: Vec<String> = rows.map(|(name, count)| format!("\"{name}\": {count}")).collect();
        format!("{{\n{}\n}}\n", rows.join(",\n"))
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cases, whole, passages, stations, cut, counts, .. } = self;
        write!(f, "{cases} networks, {whole} to their end; {passages} frames on wires, of them ")?;
        write!(f, "{stations} of stations and {cut} cut;")?;
        COUNTERS.iter().zip(counts).try_for_each(|(name, count)| write!(f, " {name} {count}"))
    }
}

/// All frames on all wires between switches, and to hosts: to the cycle, whole or cut, and what the
/// switches counted. From where best effort meets at a table of addresses, of which the engine has
/// none, only frames of stations, unless they wait for best effort.
pub(super) fn compare(
    case: &Case,
    hardware: &Outcome,
    model: &Outcome,
    coverage: &mut Coverage,
) -> Result<(), String> {
    conserves(case, hardware).map_err(|lost| format!("hardware: {lost}"))?;
    conserves(case, model).map_err(|lost| format!("model: {lost}"))?;
    let meeting = meeting(case, hardware);
    let end = meeting.unwrap_or(u64::MAX);
    let [mut own, mut others] = [hardware, model].map(|it| it.before(end, |_| true));
    if meeting.is_none() {
        own.counts = hardware.counts.clone();
        others.counts = model.counts.clone();
    }
    own.difference(&others).map_or(Ok(()), Err)?;
    if case.policy != BestEffortPolicy::Finish {
        let [own, others] =
            [hardware, model].map(|it| it.before(u64::MAX, |it| is_station(case, it)));
        own.difference(&others).map_or(Ok(()), Err)?;
    }
    coverage.cases += 1;
    coverage.whole += u64::from(meeting.is_none());
    *coverage.by_kind.entry((format!("{:?}", case.policy), case.wait())).or_default() += 1;
    for passage in own.wires.values().flatten() {
        coverage.passages += 1;
        coverage.stations += u64::from(is_station(case, passage));
        coverage.cut += u64::from(matches!(passage.what, What::Cut(_)));
    }
    for counts in own.counts.values() {
        coverage.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Ok(())
}

fn is_station(case: &Case, passage: &Passage) -> bool {
    match passage.what {
        What::Whole(host, number) => matches!(case.sent[host][number].kind, Kind::Station(_)),
        What::Cut(_) => false,
    }
}

/// Each frame leaves a port once at most. Of those that should leave it, as many do not as the port
/// has counted.
fn conserves(case: &Case, outcome: &Outcome) -> Result<(), String> {
    for switch in case.hosts()..case.hosts() + case.switches {
        for (port, link) in case.links_of(switch).enumerate() {
            let left = outcome.wires.get(&(switch, port)).into_iter().flatten();
            let left: Vec<(usize, usize)> = left.filter_map(frame).collect();
            let distinct: BTreeSet<_> = left.iter().copied().collect();
            if distinct.len() < left.len() {
                return Err(format!("a frame left {switch}, port {port}, twice"));
            }
            let mut due: BTreeSet<(usize, usize)> = BTreeSet::new();
            let mut due_stations = 0;
            for other in case.links_of(switch).filter(|other| *other != link) {
                for (host, number) in came(case, outcome, other, switch) {
                    match case.sent[host][number].kind {
                        Kind::Station(_) => due_stations += 1,
                        Kind::BestEffort(_, to) if is_behind(case, link, switch, to) => {
                            due.insert((host, number));
                        }
                        Kind::BestEffort(..) => {}
                    }
                }
            }
            let [_, _, full, _, _, aborted] = counts(outcome, switch, port);
            let stations = left.iter().filter(|(host, number)| {
                matches!(case.sent[*host][*number].kind, Kind::Station(_))
            });
            let stations = stations.count() as u64;
            let best_effort = left.len() as u64 - stations;
            let collisions: u64 = (case.links_of(switch).enumerate())
                .filter(|(other, _)| *other != port)
                .map(|(other, _)| counts(outcome, switch, other)[1])
                .sum();
            if best_effort + full + aborted != due.len() as u64 || !distinct_in(&left, &due, case) {
                let due = due.len();
                return Err(format!("{switch}, port {port}: {best_effort} of {due} left"));
            }
            if stations + collisions != due_stations {
                return Err(format!(
                    "{switch}, port {port}: {stations} of {due_stations} stations'"
                ));
            }
        }
    }
    Ok(())
}

/// Whether all best effort among these was due.
fn distinct_in(left: &[(usize, usize)], due: &BTreeSet<(usize, usize)>, case: &Case) -> bool {
    left.iter().all(|it| matches!(case.sent[it.0][it.1].kind, Kind::Station(_)) || due.contains(it))
}

fn frame(passage: &Passage) -> Option<(usize, usize)> {
    match passage.what {
        What::Whole(host, number) => Some((host, number)),
        What::Cut(_) => None,
    }
}

fn counts(outcome: &Outcome, switch: usize, port: usize) -> [u64; COUNTERS.len()] {
    outcome.counts.get(&(switch, port)).copied().unwrap_or_default()
}

/// The frames that came by a link to a switch.
fn came(case: &Case, outcome: &Outcome, link: usize, switch: usize) -> Vec<(usize, usize)> {
    let from = other_end(case, link, switch);
    if from < case.hosts() {
        return (0..case.sent[from].len()).map(|number| (from, number)).collect();
    }
    let passages = outcome.wires.get(&(from, case.port(link, from)));
    passages.into_iter().flatten().filter_map(frame).collect()
}

fn other_end(case: &Case, link: usize, node: usize) -> usize {
    let [a, b] = case.links[link];
    if a == node { b } else { a }
}

/// Whether a host is behind a link of a switch; all are if it is none.
fn is_behind(case: &Case, link: usize, switch: usize, host: Option<usize>) -> bool {
    let Some(host) = host else { return true };
    let mut trail = vec![(other_end(case, link, switch), link)];
    while let Some((node, entry)) = trail.pop() {
        if node == host {
            return true;
        }
        let on = case.links_of(node).filter(|other| *other != entry);
        trail.extend(on.map(|other| (other_end(case, other, node), other)));
    }
    false
}

/// When best effort of two ports first asks a switch's table of addresses at about the same time.
fn meeting(case: &Case, hardware: &Outcome) -> Option<u64> {
    let of_switch = |switch: usize| {
        let links = case.links_of(switch);
        let ends = links.flat_map(|link| ends(case, hardware, link, switch));
        let mut asked: Vec<u64> = ends.collect();
        asked.sort_unstable();
        asked.windows(2).find(|pair| pair[1] - pair[0] < SERVICE).map(|pair| pair[0])
    };
    (case.hosts()..case.hosts() + case.switches).filter_map(of_switch).min()
}

/// When the last octets of best effort that comes by a link to a switch are there.
fn ends(case: &Case, hardware: &Outcome, link: usize, switch: usize) -> Vec<u64> {
    let end = |at: u64, sent: &Sent| match sent.kind {
        Kind::BestEffort(octets, _) => Some(at + 8 + u64::from(octets) + LINK),
        Kind::Station(_) => None,
    };
    let from = other_end(case, link, switch);
    if from < case.hosts() {
        return case.sent[from].iter().filter_map(|sent| end(sent.at, sent)).collect();
    }
    let passages = hardware.wires.get(&(from, case.port(link, from))).into_iter().flatten();
    let ends = passages.filter_map(|it| match it.what {
        What::Whole(host, number) => end(it.at, &case.sent[host][number]),
        What::Cut(_) => None,
    });
    ends.collect()
}
