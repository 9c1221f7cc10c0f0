//! Logs that look like the experiment of Austad et al. 2023, section 6, for the report's tests:
//! invented, not simulated.

use super::{channel, log, plan, system};
use onbeat_measure::{RunResult, analyse};
use onbeat_model::diagnostic::Origin;
use onbeat_model::plan::{Plan, PortPlan};
use onbeat_model::record::{LoadSample, Record, RunLog};
use onbeat_model::system::{
    Backend, Chain, ChannelId, Class, NodeId, Noise, NoiseId, PortId, ProgramLimits, Quantity,
    Reference, ReservationMode, RunSettings, Scenario, SchedulingPolicy, Subject, System, TimeMode,
    TuneProfile,
};
use onbeat_model::time::{NetTime, Span, SyncedTime};
use onbeat_model::units::{BitRate, Octets};

/// What a report is made from.
pub(crate) type Runs = Vec<(Plan, RunLog, RunResult)>;

/// A small generator (xorshift64*): the tests need repeatable numbers, not good ones.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: i64) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as i64 % limit
    }
    /// Roughly normal about zero: the sum of twelve uniform numbers.
    fn bell(&mut self, sigma: i64) -> i64 {
        (0..12).map(|_| self.below(2_001) - 1_000).sum::<i64>() * sigma / 2_000
    }
}

/// Two hosts, two bridges, two noise sources, one channel.
pub(crate) fn two_hosts() -> System {
    let nodes = ["talker", "listener", "noise1", "noise2", "sink", "b-cat1", "b-cat2"];
    let links = [
        ("talker", "b-cat1"),
        ("noise1", "b-cat1"),
        ("noise2", "b-cat1"),
        ("b-cat1", "b-cat2"),
        ("b-cat2", "listener"),
        ("b-cat2", "sink"),
    ];
    let mut system = system(&nodes, &links, vec![channel("mcast42", 0, &[1])]);
    system.name = "two-hosts".into();
    system.noise = vec![noise("noise1", 2), noise("noise2", 3)];
    let settings = |protected, time, seconds| RunSettings {
        duration: Span::from_s(seconds),
        seed: 42,
        time,
        protected,
        asks_protection: false,
        reservation: ReservationMode::Plan,
        backend: Backend::Bridges,
        slot_error: Span::ZERO,
        noise: true,
        companions: true,
        policy: SchedulingPolicy::Fifo,
        tune: TuneProfile::Off,
        hang_timeout: Span::from_s(5),
        limits: ProgramLimits::default(),
    };
    system.run = settings(true, TimeMode::Virtual, 300);
    let scenario = |name: &str, run| Scenario { name: name.into(), run, programs: Vec::new() };
    system.scenarios = vec![
        scenario("unprotected", settings(false, TimeMode::Virtual, 300)),
        scenario("protected", settings(true, TimeMode::Virtual, 300)),
        scenario("real-time", settings(true, TimeMode::Real, 20)),
    ];
    let latency = Quantity::Latency;
    system.references = vec![
        reference("Table 7, no protection", "unprotected", latency, [4196, 39, 126, 437], 483),
        reference("Table 7, with SRP", "protected", latency, [184, 39, 58, 4], 0),
        reference(
            "Table 8, relative error",
            "protected",
            Quantity::RelativeWakeup,
            [15, 0, 0, 1],
            0,
        ),
    ];
    system
}

fn noise(name: &str, from: u32) -> Noise {
    Noise {
        name: name.into(),
        from: NodeId(from),
        to: NodeId(4),
        payload: Octets::new(1470),
        interval: Span::from_ns(14_771),
        jitter: true,
        start: NetTime::ZERO + Span::from_s(10),
        on: Span::from_s(30),
        off: Span::from_s(30),
        origin: Origin::default(),
    }
}

fn reference(
    table: &str,
    scenario: &str,
    quantity: Quantity,
    max_min_avg_stddev_us: [i64; 4],
    lost_per_mille: u32,
) -> Reference {
    let [max, min, avg, stddev] = max_min_avg_stddev_us.map(|us| Some(Span::from_us(us)));
    Reference {
        source: format!("Austad et al. 2023, {table}"),
        scenario: scenario.into(),
        of: Subject::Channel(ChannelId(0)),
        quantity,
        max,
        min,
        avg,
        stddev,
        lost_per_mille: (quantity == Quantity::Latency).then_some(lost_per_mille),
        note: None,
    }
}

/// Five minutes without and with protection, and twenty seconds in real time.
pub(crate) fn paper(system: &System) -> Runs {
    let runs = [("unprotected", false, 300), ("protected", true, 300), ("real-time", true, 20)];
    let run = |(name, protected, seconds): (&str, bool, i64)| {
        let mut plan = plan(system, &[protected.then_some(512)]);
        plan.channels[0].paths = vec![vec![PortId(0), PortId(6), PortId(8)]];
        plan.noise =
            vec![vec![PortId(2), PortId(6), PortId(10)], vec![PortId(4), PortId(6), PortId(10)]];
        if protected {
            for port in [0, 6, 8] {
                let mut planned = PortPlan { class_a_streams: 1, ..PortPlan::default() };
                planned.set_idle_slope(Class::A, BitRate::from_bps(5_632_000));
                plan.ports[port] = planned;
            }
        }
        let real = name == "real-time";
        let mut log = made_up(system, protected, Span::from_s(seconds), Span::from_ms(20), real);
        log.scenario = name.into();
        let result = analyse(system, &plan, &log).expect("all are of one system");
        (plan, log, result)
    };
    runs.map(run).into()
}

/// Whether the noise is on at an instant.
fn noisy(at: Span) -> bool {
    let since = at.as_ns() - Span::from_s(10).as_ns();
    since >= 0 && since % 60_000_000_000 < 30_000_000_000
}

/// A log in which the noise raises the latency, and fills the queue of what is not protected.
pub(crate) fn made_up(
    system: &System,
    protected: bool,
    duration: Span,
    interval: Span,
    real: bool,
) -> RunLog {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut log = log(system);
    log.duration = duration;
    log.protected = protected;
    log.seed = 42;
    if real {
        log.time = TimeMode::Real;
        log.lag_max = Some(Span::from_us(230));
    }
    let count = duration.as_ns() / interval.as_ns() + 1;
    for number in 0..count {
        let capture = Span::from_ns(number * interval.as_ns());
        let jitter = if real { random.below(60_000) } else { 0 };
        let since_on = (capture.as_ns() - 10_000_000_000).rem_euclid(60_000_000_000);
        let idle = 56_500 + random.bell(1_000) + jitter;
        let latency = match (noisy(capture), protected) {
            (false, _) => Some(idle),
            (true, true) => Some(idle + random.below(24_000) * random.below(2)),
            (true, false) => {
                let queue = (since_on / 1_000 * 3).min(4_140_000);
                let full = queue == 4_140_000;
                (!full || random.below(60) == 0).then(|| idle + queue - random.below(20_000))
            }
        };
        let late = || 1_100 + random_tail(&mut random);
        push(&mut log, number as u64, capture, latency, late);
    }
    log.load = load(duration);
    log
}

fn random_tail(random: &mut Random) -> i64 {
    let rare = if random.below(5_000) == 0 { random.below(15_000) } else { 0 };
    random.bell(300).abs() + rare
}

fn push(
    log: &mut RunLog,
    sequence: u64,
    capture: Span,
    latency_ns: Option<i64>,
    mut wakes_late_ns: impl FnMut() -> i64,
) {
    let local = |offset: Span| Some(SyncedTime::ZERO + capture + offset);
    let target = Span::from_ms(2);
    let mut end = |transfer: i64| {
        let wake = target + Span::from_ns(wakes_late_ns());
        Record {
            capture: local(Span::ZERO),
            transfer: local(Span::from_ns(transfer)),
            wake_target: local(target),
            wake: local(wake),
            network: Some(NetTime::ZERO + capture + wake),
            sequence,
            ..Record::default()
        }
    };
    let talker = end(20_000);
    log.ends[0].records.push(talker);
    if let Some(latency) = latency_ns {
        let mut listener = end(latency - 28_500);
        listener.receive = local(Span::from_ns(latency));
        log.ends[1].records.push(listener);
    }
}

fn load(duration: Span) -> Vec<LoadSample> {
    let mut load = Vec::new();
    for tenth in 0..duration.as_ns() / 100_000_000 {
        let at = Span::from_ms(tenth * 100);
        let on = u64::from(noisy(at));
        for source in 0..2 {
            load.push(LoadSample {
                noise: NoiseId(source),
                at: NetTime::ZERO + at,
                offered_bits: on * 83_190_000,
                delivered_bits: on * 49_000_000,
            });
        }
    }
    load
}

/// One channel of 1 kHz over five minutes, unprotected: 300,001 messages, many of them lost.
pub(crate) fn dense(system: &System) -> Runs {
    let plan = plan(system, &[None]);
    let mut log = made_up(system, false, Span::from_s(300), Span::from_ms(1), false);
    log.scenario = "dense".into();
    let result = analyse(system, &plan, &log).expect("all are of one system");
    vec![(plan, log, result)]
}

/// Three hosts, two channels, one chain, and names that try to break out of the page.
pub(crate) fn hostile() -> (System, Runs) {
    let evil = "<script>alert(1)</script>\"'&";
    let nodes = [evil, "mid", "end", "b1"];
    let links = [(evil, "b1"), ("mid", "b1"), ("end", "b1")];
    let channels = vec![channel("</script><b>", 0, &[1]), channel("{{ 7*7 }}", 1, &[2])];
    let mut system = system(&nodes, &links, channels);
    system.name = "</title><img src=x onerror=alert(1)>".into();
    system.chains = vec![Chain {
        name: "<i>chain</i>".into(),
        channels: vec![ChannelId(0), ChannelId(1)],
        deadline: Span::from_ms(1),
        age: None,
        reaction: None,
        origin: Origin::default(),
    }];
    system.references = vec![Reference {
        source: "<u>source</u>".into(),
        ..reference("", evil, Quantity::Latency, [1, 1, 1, 1], 1)
    }];
    let mut plan = plan(&system, &[Some(500), Some(500)]);
    plan.chains = vec![Some(Span::from_us(900))];
    plan.channels[0].bounds[0].terms[0].what = "<s>term</s>".into();
    let mut log = log(&system);
    log.scenario = evil.into();
    for number in 0..100 {
        let at = number * 10_000;
        log.ends[0].records.push(super::sent(number as u64, at));
        log.ends[1].records.push(super::got(number as u64, at, 50 + number % 7));
        log.ends[2].records.push(super::sent(number as u64, at + 100));
        log.ends[3].records.push(super::got(number as u64, at + 100, 60 + number % 5));
    }
    let result = analyse(&system, &plan, &log).expect("all are of one system");
    (system, vec![(plan, log, result)])
}
