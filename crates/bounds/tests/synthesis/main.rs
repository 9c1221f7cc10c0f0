//! Gate schedules of random networks, held to their rules by a checker that shares no code with the
//! synthesis.

mod check;
#[cfg(feature = "exact")]
mod exact;
mod generate;

use check::{check, check_gates, confirm};
use generate::{Instance, Periods, Topology, any, joined, published, published_set};
use onbeat_bounds::synthesis::{
    Egress, FlowHop, Network, Obstacle, PeriodicFlow, Placed, Refusal, Synthesizer, Waiting,
    gate_lists, synthesize, synthesize_keeping,
};
use onbeat_model::time::Span;
use onbeat_testkit::Random;

/// What became of an instance; panics where something is wrong.
fn judged(instance: &Instance) -> Result<Vec<Placed>, Refusal> {
    let Instance { name, network, flows, waiting } = instance;
    let result = synthesize(network, flows, *waiting);
    match &result {
        Ok(placed) => {
            check(network, flows, placed, *waiting).unwrap_or_else(|why| panic!("{name}: {why}"));
            for (port, list) in gate_lists(network, flows, placed).into_iter().enumerate() {
                check_gates(network, flows, placed, port, list.as_ref())
                    .unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
        Err(refusal) if refusal.is_proven => {
            confirm(network, flows, refusal).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        Err(_) => {}
    }
    result
}

#[test]
fn schedules_of_any_network_keep_the_rules_and_proofs_hold() {
    let (mut solved, mut proven, mut open) = ([0; 2], 0, 0);
    let mut drawn = [0; 10];
    for seed in 0..400 {
        let instance = any(seed);
        let (ports, flows) = (&instance.network.ports, &instance.flows);
        let has = [
            ports.iter().any(|port| port.clock_error > Span::ZERO),
            ports.iter().any(|port| port.tick > Span::from_ns(1)),
            ports.iter().any(|port| port.latency[0] < port.latency[1]),
            ports.iter().any(|port| port.queues > 1),
            ports.iter().any(|port| port.entries_max < 40),
            flows.iter().any(|flow| flow.release.is_some()),
            flows.iter().any(|flow| flow.ready[0] < flow.ready[1]),
            flows.iter().any(|flow| flow.jitter.is_some()),
            flows.iter().any(|flow| flow.deadline < flow.period),
            flows
                .iter()
                .any(|flow| flow.hops.iter().filter(|hop| hop.after == Some(0)).count() > 1),
        ];
        drawn.iter_mut().zip(has).for_each(|(count, has)| *count += u32::from(has));
        match judged(&instance) {
            Ok(_) => solved[usize::from(instance.waiting == Waiting::Allowed)] += 1,
            Err(refusal) if refusal.is_proven => proven += 1,
            Err(_) => open += 1,
        }
    }
    println!("{solved:?} solved without and with waiting, {proven} proven, {open} open; {drawn:?}");
    assert!(drawn.iter().all(|count| *count > 20), "{drawn:?}");
    assert!(solved.iter().all(|count| *count > 50) && proven > 20, "{solved:?}, {proven} proven");
    assert!(open * 3 < solved.iter().sum::<i32>(), "{open} open");
}

#[test]
fn where_copies_join_each_may_be_the_only_one() {
    let (mut solved, mut proven, mut open, mut joins) = ([0; 2], 0, 0, 0);
    for seed in 0..600 {
        let instance = joined(seed);
        match judged(&instance) {
            Ok(_) => {
                solved[usize::from(instance.waiting == Waiting::Allowed)] += 1;
                joins += instance.flows.iter().map(|flow| flow.joins.len()).sum::<usize>();
            }
            Err(refusal) if refusal.is_proven => proven += 1,
            Err(_) => open += 1,
        }
    }
    println!("{solved:?} solved without and with waiting, {proven} proven, {open} open, {joins}");
    assert!(solved.iter().all(|count| *count > 50) && joins > 1_000, "{solved:?}, {joins} joins");
}

/// All 256 with ONBEAT_SCHEDULES=256. The hardest is always among those that are looked at: its
/// busiest links have 95 and 90 % of their time taken.
#[test]
fn the_published_style_is_solved_or_proven_to_be_infeasible() {
    let all = std::env::var("ONBEAT_SCHEDULES").is_ok_and(|count| count == "256");
    let (mut solved, mut proven, mut open) = (0, 0, Vec::new());
    for (at, instance) in published_set(2_024).into_iter().enumerate() {
        if !all && at % 4 != at / 4 % 4 && at != 226 {
            continue;
        }
        match judged(&instance) {
            Ok(_) => solved += 1,
            Err(refusal) if refusal.is_proven => proven += 1,
            Err(_) => open.push(instance.name),
        }
    }
    println!("{solved} solved, {proven} proven to be infeasible, open: {open:?}");
    assert!(solved > proven && proven > 5);
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn equal_inputs_have_equal_schedules() {
    for topology in Topology::ALL {
        let instance = published(7, 60, 12, topology, Periods::Sparse);
        assert_eq!(judged(&instance), judged(&instance));
    }
}

#[test]
fn who_is_added_or_taken_out_moves_no_other() {
    let Instance { network, flows, .. } = published(11, 120, 16, Topology::Mesh, Periods::Sparse);
    let mut synthesizer = Synthesizer::new(&network, Waiting::Allowed);
    let mut placed: Vec<Placed> = flows
        .iter()
        .enumerate()
        .map(|(id, flow)| synthesizer.add(id, flow).expect("there is room"))
        .collect();
    for id in (0..flows.len()).step_by(3) {
        assert!(synthesizer.remove(id) && !synthesizer.remove(id));
    }
    for id in (0..flows.len()).step_by(3).rev() {
        let flow = PeriodicFlow { release: Some(placed[id].release), ..flows[id].clone() };
        placed[id] = synthesizer.add(id, &flow).expect("where it was there is room");
    }
    check(&network, &flows, &placed, Waiting::Allowed).expect("a schedule");
}

#[test]
fn who_is_kept_stays_where_there_is_room_and_what_is_kept_is_not_believed() {
    let (mut unmoved, mut moved, mut refused) = (0, 0, 0);
    for seed in 0..120 {
        let Instance { name, network, mut flows, .. } = any(seed);
        let Ok(before) = synthesize(&network, &flows, Waiting::Allowed) else { continue };
        let mut kept: Vec<_> = before.iter().cloned().enumerate().collect();
        let all = synthesize_keeping(&network, &flows, Waiting::None, &kept);
        assert_eq!(all.as_ref(), Ok(&before), "{name}");
        let mut random = Random(seed);
        let at = random.below(flows.len() as u64) as usize;
        match random.below(3) {
            0 => flows[at].period = flows[at].period * 2,
            1 => flows[at].hops.iter_mut().for_each(|hop| hop.occupies = hop.occupies * 2),
            _ => flows[at].deadline = flows[at].deadline * 3,
        }
        kept.remove(at);
        if random.percent(70) {
            kept.push((at, nonsense(&mut random, &before[at])));
        }
        let mut room = Synthesizer::new(&network, Waiting::Allowed);
        let others = (0..flows.len()).filter(|other| *other != at);
        others.for_each(|id| assert!(room.put_back(id, &flows[id], &before[id]), "{name}"));
        let is_room = room.add(at, &flows[at]).is_ok();
        match synthesize_keeping(&network, &flows, Waiting::Allowed, &kept) {
            Ok(after) => {
                check(&network, &flows, &after, Waiting::Allowed)
                    .unwrap_or_else(|why| panic!("{name}: {why}"));
                let mut others = (0..flows.len()).filter(|other| *other != at);
                match others.all(|other| after[other] == before[other]) {
                    true => unmoved += 1,
                    false => moved += 1,
                }
                let mut others = (0..flows.len()).filter(|other| *other != at);
                assert!(!is_room || others.all(|other| after[other] == before[other]), "{name}");
            }
            Err(_) => refused += 1,
        }
    }
    println!("{unmoved} without a move, {moved} with, {refused} refused");
    assert!(unmoved > 50 && moved + refused > 0, "{unmoved}, {moved}, {refused}");
}

/// Perhaps right, perhaps not, perhaps from a file that somebody wrote by hand.
fn nonsense(random: &mut Random, placed: &Placed) -> Placed {
    let mut wrong = placed.clone();
    let any = |random: &mut Random| {
        Span::from_ns(random.one_of(&[0, -1, 1, 12_345, i64::MAX, i64::MIN, 1 << 40]))
    };
    match random.below(4) {
        0 => wrong.release = any(random),
        1 => wrong.queue = random.below(256) as u8,
        2 => wrong.starts.truncate(random.below(3) as usize),
        _ => wrong.starts.iter_mut().for_each(|start| *start = any(random)),
    }
    wrong
}

fn egress() -> Egress {
    Egress {
        latency: [Span::from_ns(100), Span::from_ns(200)],
        clock_error: Span::from_ns(10),
        tick: Span::from_ns(10),
        queues: 2,
        entries_max: 16,
    }
}

/// Two flows over two ports, and a schedule that is right.
fn small() -> (Network, Vec<PeriodicFlow>, Vec<Placed>) {
    let network = Network { ports: vec![egress(); 2] };
    let hop = |port, after| {
        let (sent, occupies) = (Span::from_ns(800), Span::from_ns(995));
        FlowHop { port, after, sent, occupies }
    };
    let flow = PeriodicFlow {
        period: Span::from_us(10),
        release: None,
        ready: [Span::ZERO, Span::from_ns(20)],
        deadline: Span::from_us(3),
        jitter: Some(Span::from_ns(120)),
        hops: vec![hop(0, None), hop(1, Some(0))],
        joins: Vec::new(),
    };
    let placed = |release: i64, starts: [i64; 2], queue| Placed {
        release: Span::from_ns(release),
        queue,
        starts: starts.map(Span::from_ns).to_vec(),
    };
    let all = vec![placed(0, [20, 1_040], 0), placed(1_160, [1_180, 2_200], 0)];
    (network, vec![flow.clone(), flow], all)
}

#[test]
fn the_checker_finds_each_breach_of_a_rule_and_names_it() {
    let (network, flows, right) = small();
    check(&network, &flows, &right, Waiting::Allowed).expect("it is right");
    check(&network, &flows, &right, Waiting::None).expect("nothing waits");
    let broken =
        |rule: u8, waiting: Waiting, change: &dyn Fn(&mut Vec<PeriodicFlow>, &mut Vec<Placed>)| {
            let (mut flows, mut placed) = (flows.clone(), right.clone());
            change(&mut flows, &mut placed);
            let why = check(&network, &flows, &placed, waiting).expect_err("it is wrong");
            assert!(why.contains(&format!("rule {rule}:")), "{rule}: {why}");
        };
    let allowed = Waiting::Allowed;
    broken(1, allowed, &|_, placed| placed[0].starts[0] = Span::from_ns(25));
    broken(1, allowed, &|flows, _| flows[1].period = Span::from_ns(10_005));
    broken(2, allowed, &|_, placed| placed[0].starts[0] = Span::from_ns(10));
    broken(2, allowed, &|_, placed| placed[0].release = Span::from_us(10));
    broken(2, allowed, &|flows, _| flows[0].release = Some(Span::from_ns(1)));
    broken(3, allowed, &|_, placed| placed[0].starts[1] = Span::from_ns(1_030));
    broken(3, Waiting::None, &|_, placed| placed[1].starts[1] = Span::from_ns(2_210));
    broken(4, allowed, &|_, placed| {
        placed[1] = Placed { release: Span::from_ns(990), ..placed[1].clone() };
        placed[1].starts = [1_010, 2_030].map(Span::from_ns).to_vec();
        placed[1].queue = 1;
    });
    broken(5, allowed, &|_, placed| placed[1].release = Span::from_ns(1_010));
    broken(5, allowed, &|_, placed| placed[0].queue = 2);
    broken(6, allowed, &|flows, _| flows[1].deadline = Span::from_ns(2_059));
    broken(6, allowed, &|flows, _| flows[0].jitter = Some(Span::from_ns(119)));
    // The other way round it is right to the nanosecond.
    let mut exact = flows.clone();
    exact[1].deadline = Span::from_ns(2_060);
    check(&network, &exact, &right, allowed).expect("it is in time");
}

#[test]
fn the_checker_finds_gates_that_are_open_at_another_time() {
    let (network, flows, placed) = small();
    let list = gate_lists(&network, &flows, &placed)[0].clone().expect("gates");
    check_gates(&network, &flows, &placed, 0, Some(&list)).expect("they are right");
    let short = Network { ports: vec![Egress { entries_max: 4, ..egress() }; 2] };
    let why = check_gates(&short, &flows, &placed, 0, Some(&list)).expect_err("too many");
    assert!(why.contains("5 entries"), "{why}");
    for entry in 0..list.entries.len() {
        let mut wrong = list.clone();
        wrong.entries[entry].span += Span::from_ns(10);
        let next = &mut wrong.entries[(entry + 1) % list.entries.len()].span;
        *next = *next - Span::from_ns(10);
        check_gates(&network, &flows, &placed, 0, Some(&wrong)).expect_err("they are wrong");
    }
    check_gates(&network, &flows, &placed, 0, None).expect_err("there are none");
}

#[test]
fn a_refusal_says_what_is_in_the_way() {
    let (network, mut flows, _) = small();
    let refused =
        |flows: &[PeriodicFlow]| synthesize(&network, flows, Waiting::Allowed).expect_err("no");
    flows[0].deadline = Span::from_ns(2_059);
    let why = Obstacle::Path { hop: 1, takes: Span::from_ns(2_060) };
    assert_eq!(refused(&flows), Refusal { flow: 0, why, is_proven: true });
    let odd = PeriodicFlow { period: Span::from_ns(10_005), ..flows[1].clone() };
    let refusal = refused(std::slice::from_ref(&odd));
    assert_eq!(refusal, Refusal { flow: 0, why: Obstacle::Tick { hop: 0 }, is_proven: true });
    confirm(&network, &[odd], &refusal).expect("10 ns do not divide it");
    // Eleven windows of 1,000 ns do not fit in 10 µs; ten do not either: frames are queued before.
    let flow = PeriodicFlow { deadline: Span::from_us(30), ..flows[1].clone() };
    let refusal = refused(&vec![flow.clone(); 11]);
    assert!(matches!(refusal.why, Obstacle::Overload { port: 0, .. }) && refusal.is_proven);
    let slow = PeriodicFlow { period: Span::from_ns(14_300), ..flow.clone() };
    let refusal = refused(&[flow, slow]);
    assert_eq!(refusal.why, Obstacle::Pair { port: 0, other: 0 });
    confirm(
        &network,
        &[flows[1].clone(), PeriodicFlow { period: Span::from_ns(14_300), ..flows[1].clone() }],
        &refusal,
    )
    .expect("100 ns divide both periods");
}
