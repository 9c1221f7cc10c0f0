//! Hosts, bridges, links and their clocks.

use super::{Draft, DrawnPort, Host, Table, table};
use serde_json::{Value, json};

/// Rates that networks have.
const RATES_MBPS: [i64; 6] = [10, 100, 100, 1_000, 1_000, 2_500];

impl Draft<'_> {
    pub(super) fn nodes(&mut self) {
        self.bridges = self.dice.one(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 6]);
        let hosts = match self.bridges {
            0 => 2,
            bridges => self.dice.between(2, 2 + 2 * bridges as i64) as usize,
        };
        for number in 0..hosts {
            self.host(number);
        }
        for number in 0..self.bridges {
            self.bridge(number);
        }
        self.links();
        let grandmaster = if self.bridges > 0 { "b0" } else { "h0" };
        // It simulates gPTP for 100 s: seldom.
        if self.chance(3) {
            let mut sync = table(json!({ "grandmaster": grandmaster }));
            if self.chance(80) {
                let stamps = self.dice.one(&["hardware", "coarse", "software"]);
                sync.insert("timestamping".into(), json!(stamps));
            }
            if self.chance(50) {
                let bits = self.dice.bits();
                let seed = self.dice.one(&[0, bits]);
                sync.insert("seed".into(), json!(seed));
            }
            if self.chance(60) {
                let in_run = self.chance(80);
                sync.insert("in_run".into(), json!(in_run));
                if in_run {
                    self.forget_clocks();
                }
            }
            self.root.insert("synchronisation".into(), Value::Object(sync));
        }
    }

    /// gPTP in the run keeps the clocks of all nodes.
    fn forget_clocks(&mut self) {
        for key in ["host", "bridge"] {
            let tables = self.root.get_mut(key).and_then(Value::as_array_mut);
            for node in tables.into_iter().flatten().filter_map(Value::as_object_mut) {
                node.remove("clock");
            }
        }
    }

    fn host(&mut self, number: usize) {
        let mut host = table(json!({ "name": format!("h{number}") }));
        let mut mac = format!("02:00:00:00:{:02x}:{:02x}", (number + 1) >> 8, (number + 1) & 255);
        if self.optional() {
            mac = format!("06:00:00:00:01:{number:02x}");
            host.insert("mac".into(), json!(mac));
        }
        self.clock(&mut host);
        for key in ["stack_tx_ns", "stack_rx_ns", "wakeup_ns"] {
            if self.optional() {
                let delay = self.delay();
                host.insert(key.into(), delay);
            }
        }
        let mut cores = None;
        if self.chance(20) {
            let usual = self.dice.between(1, 4);
            let value = self.number("Host.cores", usual);
            cores = value.as_i64();
            host.insert("cores".into(), value);
        }
        self.queue(&mut host, "Host");
        self.push("host", host);
        let bridge = (self.bridges > 0).then(|| match number {
            // Every bridge has somebody sooner or later; the first two hosts are far apart.
            0 => 0,
            1 => self.bridges - 1,
            _ => self.dice.below(self.bridges as u64) as usize,
        });
        self.hosts.push(Host { name: format!("h{number}"), mac, bridge, cores });
    }

    fn bridge(&mut self, number: usize) {
        let mut bridge = table(json!({ "name": format!("b{number}") }));
        self.clock(&mut bridge);
        self.maybe(&mut bridge, "Bridge.forwarding_ns", |dice| dice.between(0, 5_000));
        self.queue(&mut bridge, "Bridge");
        if self.chance(20) {
            let usual = self.dice.magnitude(2_000, 4_000_000);
            let value = self.number("Bridge.shared_buffer_octets", usual);
            bridge.insert("shared_buffer_octets".into(), value);
        }
        self.maybe_bool(&mut bridge, "cut_through");
        self.maybe_bool(&mut bridge, "learning");
        self.push("bridge", bridge);
    }

    /// Mostly room for whatever has a bound, sometimes little.
    fn queue(&mut self, node: &mut Table, kind: &str) {
        let (frames, octets) = if self.chance(80) { (100_000, 1 << 27) } else { (20, 30_000) };
        for (key, usual) in [("queue_frames", frames), ("queue_octets", octets)] {
            if self.chance(70) {
                let value = self.number(&format!("{kind}.{key}"), usual);
                node.insert(key.into(), value);
            }
        }
    }

    fn clock(&mut self, node: &mut Table) {
        let share = self.mix.clocks;
        if !self.chance(share) {
            return;
        }
        let mut clock = Table::new();
        if self.optional() {
            let usual = self.dice.between(-100_000, 100_000);
            clock.insert("offset_ns".into(), self.number("Clock.offset_ns", usual));
        }
        let wanders = self.chance(30);
        if self.chance(80) {
            let usual = match self.dice.below(3) {
                0 => self.dice.between(-20, 20),
                1 => self.dice.between(-10_000, 10_000),
                _ => self.dice.between(-200_000, 200_000),
            };
            // With a wander there is no room for the end of the range.
            let drift = if wanders { json!(usual) } else { self.number("Clock.drift_ppb", usual) };
            clock.insert("drift_ppb".into(), drift);
        }
        if wanders {
            let [wander, period] = ["Clock.wander_ns", "Clock.wander_period_ms"]
                .map(|place| self.schema.range(place).clone());
            let (wander, period) = match self.dice.below(400) {
                // The greatest wander leaves no room for a drift, and needs the longest period.
                0 => {
                    clock.remove("drift_ppb");
                    (wander[1].clone(), period[1].clone())
                }
                1 => (wander[0].clone(), period[0].clone()),
                _ => (json!(self.dice.between(0, 2_000)), json!(self.dice.between(10, 1_000))),
            };
            clock.insert("wander_ns".into(), wander);
            clock.insert("wander_period_ms".into(), period);
        }
        node.insert("clock".into(), Value::Object(clock));
    }

    pub(super) fn delay(&mut self) -> Value {
        if self.chance(25) {
            let pairs = (0..self.dice.between(1, 4))
                .map(|_| json!([self.dice.between(0, 60_000), self.dice.magnitude(1, 1_000)]));
            return json!({ "histogram": pairs.collect::<Vec<_>>() });
        }
        let (one, other) = (self.dice.between(0, 60_000), self.dice.between(0, 60_000));
        let min = self.number("Delay.min", one.min(other));
        let max = self.number("Delay.max", one.max(other));
        let above = min.as_i64() > max.as_i64();
        if above { json!({ "min": max, "max": min }) } else { json!({ "min": min, "max": max }) }
    }

    /// A tandem, a tree, a ring, a full mesh, or a ring with a chord; hosts at their bridges.
    fn links(&mut self) {
        let bridges = self.bridges;
        let tandem = || (1..bridges).map(|b| (b - 1, b)).collect::<Vec<_>>();
        let edges = match self.dice.below(5) {
            0 => tandem(),
            1 => (1..bridges).map(|b| (self.dice.below(b as u64) as usize, b)).collect(),
            2 | 3 if bridges > 2 => [tandem(), vec![(bridges - 1, 0)]].concat(),
            4 if bridges > 3 => [tandem(), vec![(bridges - 1, 0), (0, 2)]].concat(),
            _ if bridges < 5 => (0..bridges).flat_map(|b| (0..b).map(move |a| (a, b))).collect(),
            _ => tandem(),
        };
        let rates = [self.dice.one(&RATES_MBPS), self.dice.one(&RATES_MBPS)];
        let hosts = self.hosts.clone();
        let mut numbers = vec![0; hosts.len() + bridges];
        if bridges == 0 {
            self.link([("h0".into(), 0), ("h1".into(), 1)], &rates, &mut numbers);
        }
        for (number, host) in hosts.iter().enumerate() {
            if let Some(bridge) = host.bridge {
                let bridge = (format!("b{bridge}"), hosts.len() + bridge);
                self.link([(host.name.clone(), number), bridge], &rates, &mut numbers);
            }
        }
        for &(a, b) in &edges {
            let node = |b: usize| (format!("b{b}"), hosts.len() + b);
            self.link([node(a), node(b)], &rates, &mut numbers);
        }
        self.edges = edges;
    }

    /// A link; `numbers` are of the ports without a name of each node.
    fn link(&mut self, ends: [(String, usize); 2], rates: &[i64; 2], numbers: &mut [usize]) {
        let usual = self.dice.one(rates);
        let in_bps = self.optional();
        let mut link = Table::new();
        let place = if in_bps { "Link.rate_bps" } else { "Link.rate_mbps" };
        // One bit per second is legal, and a year for a day's traffic: only where all is odd.
        let value = self.number(place, if in_bps { usual * 1_000_000 } else { usual });
        let unit = if in_bps { 1 } else { 1_000_000 };
        let rate_bps = value.as_i64().expect("a rate") * unit;
        self.slowest_bps = self.slowest_bps.min(rate_bps);
        link.insert(place.split_once('.').expect("a place").1.into(), value);
        self.maybe(&mut link, "Link.propagation_ns", |dice| dice.between(0, 2_000));
        let name_share = self.mix.optional;
        let ends = ends.map(|(node, number)| {
            let (written, port) = if self.dice.chance(name_share) {
                let port = format!("x{}", self.ports.len());
                (format!("{node}.{port}"), format!("{node}.{port}"))
            } else {
                numbers[number] += 1;
                (node.clone(), format!("{node}.p{}", numbers[number]))
            };
            self.ports.push(DrawnPort { name: port, rate_bps });
            written
        });
        link.insert("ends".into(), json!(ends));
        self.push("link", link);
    }
}
