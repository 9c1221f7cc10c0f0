#[test]
fn debug_seed() {
    let Ok(seed) = std::env::var("SEED") else { return };
    let seed: u64 = seed.parse().unwrap();
    let system = crate::random::system(seed, &crate::mix(seed));
    let plan = onbeat_plan::plan(&system, true).unwrap();
    for (p, port) in system.ports.iter().enumerate() {
        let l = system.links[port.link.index()].rate;
        println!(
            "{} rate {l} {:?}",
            system.port_label(onbeat_model::system::PortId(p as u32)),
            port.settings
        );
    }
    for n in &system.nodes {
        println!("{} {:?} {:?}", n.name, n.clock, n.kind);
    }
    let seen = crate::simulate(&system, &plan, seed);
    for ((s, p), o) in system.streams.iter().zip(&plan.streams).zip(&seen.streams) {
        println!(
            "{} q{} {:?} {:?} reg {:?} paths {:?}",
            s.name,
            s.traffic_class,
            s.frame,
            s.source,
            s.regulator,
            p.paths
                .iter()
                .map(|w| w
                    .iter()
                    .map(|x| x.iter().map(|q| system.port_label(*q)).collect::<Vec<_>>())
                    .collect::<Vec<_>>())
                .collect::<Vec<_>>()
        );
        for (b, l) in p.bounds.iter().zip(&o.listeners) {
            println!(
                "   seen {:?} {:?} bound {:?}",
                l.min,
                l.max,
                b.as_ref().map(|b| (b.total(), &b.terms))
            );
        }
    }
}
