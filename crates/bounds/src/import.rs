//! Output-port networks in JSON, as Saihu reads them for panco and others, so that other programs
//! and this one answer the same question.
//!
//! ```json
//! {"network": {"name": "demo", "multiplexing": "FIFO", "packetizer": false, "time_unit": "us"},
//!  "flows":   [{"name": "f0", "path": ["s0"], "max_packet_length": "1kB",
//!               "arrival_curve": {"bursts": ["2kB"], "rates": ["10Mbps"]}}],
//!  "servers": [{"name": "s0", "capacity": "100Mbps",
//!               "service_curve": {"latencies": [10], "rates": ["100Mbps"]}}]}
//! ```
//!
//! A quantity is a number with a unit, or a number in the `time_unit`, `data_unit` or `rate_unit`
//! of its flow or server, else of the network, else in s, b or bps. Units are `s`, `m` (minute) and
//! `h`; `b` and `B`; and `bps`, `Bps`, `bpm` and so on; after a decimal prefix from `a` to `E`.
//!
//! Quantities are read as decimals, exactly, and rounded to whole nanoseconds, nanobits and bits
//! per second to the side that makes bounds larger.

use crate::fifo::{Bucket, Curve, Departure, FifoNetwork, Flow, Hop, InvalidNetwork, Server};
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// The most digits of a number.
const DIGITS_MAX: usize = 60;

/// The most characters of a number: its digits, signs, point and exponent.
const NUMBER_MAX: usize = DIGITS_MAX + 10;

/// A network that was read, and the names of what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its name, if it has one.
    pub name: String,
    /// The servers' names, as in [`FifoNetwork::servers`].
    pub servers: Vec<String>,
    /// The flows' names, as in [`FifoNetwork::flows`].
    pub flows: Vec<String>,
    /// The network. Without a packetizer all outputs are [`Departure::Bits`], with one
    /// [`Departure::Fragments`]: the format does not say that transmissions are not interrupted.
    pub network: FifoNetwork,
}

/// Why a network could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not JSON of this form; the message has line and column.
    #[error("not an output-port network: {0}")]
    Json(#[from] serde_json::Error),
    /// The value of a field is not what it should be.
    #[error("{item}: {field}: {problem}")]
    Field {
        /// The flow or server, by name.
        item: String,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Its parts do not make a network.
    #[error("{item}: {source}")]
    InvalidNetwork {
        /// The flow or server, by name.
        item: String,
        /// What is wrong with it; positions are those in the file.
        source: InvalidNetwork,
    },
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    network: General,
    flows: Vec<FlowItem>,
    servers: Vec<ServerItem>,
}

#[derive(Default, Deserialize)]
struct General {
    #[serde(default)]
    name: String,
    multiplexing: Option<String>,
    #[serde(default)]
    packetizer: bool,
    min_packet_length: Option<Value>,
    max_packet_length: Option<Value>,
    #[serde(flatten)]
    units: Units,
}

#[derive(Deserialize)]
struct FlowItem {
    name: String,
    path: Vec<String>,
    arrival_curve: ArrivalCurve,
    min_packet_length: Option<Value>,
    max_packet_length: Option<Value>,
    #[serde(flatten)]
    units: Units,
}

#[derive(Deserialize)]
struct ArrivalCurve {
    bursts: Vec<Value>,
    rates: Vec<Value>,
}

#[derive(Deserialize)]
struct ServerItem {
    name: String,
    service_curve: ServiceCurve,
    capacity: Option<Value>,
    #[serde(flatten)]
    units: Units,
}

#[derive(Deserialize)]
struct ServiceCurve {
    latencies: Vec<Value>,
    rates: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Units {
    time_unit: Option<String>,
    data_unit: Option<String>,
    rate_unit: Option<String>,
}

/// What a quantity is of.
#[derive(Clone, Copy)]
enum Kind {
    Time,
    Data,
    Rate,
}

/// To which side a quantity is rounded.
#[derive(Clone, Copy, PartialEq)]
enum Round {
    Down,
    Up,
}

/// Reads a network.
///
/// Where a server has several rate-latency curves, whose maximum it offers, the one is taken under
/// which the bursts of its flows' sources would be served first: a single curve is less than all of
/// them, so bounds hold. A line slower than the service counts as fast as that.
///
/// # Errors
/// [`ImportError`], which names the flow or server.
pub fn import(json: &str) -> Result<Imported, ImportError> {
    let file: File = serde_json::from_str(json)?;
    let general = &file.network;
    if general.multiplexing.as_deref().is_some_and(|m| !m.eq_ignore_ascii_case("FIFO")) {
        return Err(field("network", "multiplexing", "only FIFO is analysed"));
    }
    let mut positions = HashMap::new();
    for (at, server) in file.servers.iter().enumerate() {
        if positions.insert(server.name.as_str(), at).is_some() {
            return Err(field(&server.name, "name", "two servers have it"));
        }
    }
    let flows = file
        .flows
        .iter()
        .map(|item| item.read(general, &positions))
        .collect::<Result<Vec<_>, _>>()?;
    let servers = file
        .servers
        .iter()
        .enumerate()
        .map(|(at, item)| item.read(general, at, &flows))
        .collect::<Result<Vec<_>, _>>()?;
    let network = FifoNetwork { servers, flows };
    let names = |at: usize| file.flows[at].name.clone();
    network.check().map_err(|source| {
        let item = match source {
            InvalidNetwork::Server(at) => file.servers[at].name.clone(),
            InvalidNetwork::Flow(at) => names(at),
            InvalidNetwork::Hop { flow, .. } | InvalidNetwork::Twice { flow, .. } => names(flow),
        };
        ImportError::InvalidNetwork { item, source }
    })?;
    Ok(Imported {
        name: file.network.name,
        servers: file.servers.into_iter().map(|s| s.name).collect(),
        flows: file.flows.into_iter().map(|f| f.name).collect(),
        network,
    })
}

impl FlowItem {
    fn read(
        &self,
        general: &General,
        positions: &HashMap<&str, usize>,
    ) -> Result<Flow, ImportError> {
        let reader = Reader { item: &self.name, units: &self.units, general: &general.units };
        let curve = &self.arrival_curve;
        let bursts = reader.all("bursts", &curve.bursts, Kind::Data, Round::Up)?;
        let rates = reader.all("rates", &curve.rates, Kind::Rate, Round::Up)?;
        if bursts.len() != rates.len() || bursts.is_empty() {
            return Err(field(&self.name, "arrival_curve", "as many bursts as rates are needed"));
        }
        let of = |own: &Option<Value>, all: &Option<Value>, name, round| {
            let value = own.as_ref().or(all.as_ref());
            value.map(|v| reader.one(name, v, Kind::Data, round)).transpose()
        };
        let (mut smallest, mut largest) = (0, 0);
        if general.packetizer {
            let (own, all) = (&self.max_packet_length, &general.max_packet_length);
            let greatest = bursts.iter().copied().max().unwrap_or(0);
            largest = of(own, all, "max_packet_length", Round::Up)?.unwrap_or(greatest);
            let (own, all) = (&self.min_packet_length, &general.min_packet_length);
            smallest = of(own, all, "min_packet_length", Round::Down)?.unwrap_or(0).min(largest);
        }
        // A whole packet comes at once, whatever the curve says.
        let bucket = |(burst, bps): (i128, i128)| {
            let bps = u64::try_from(bps).unwrap_or(u64::MAX);
            Bucket { burst: burst.max(largest).max(1), rate: BitRate::from_bps(bps) }
        };
        if self.path.is_empty() {
            return Err(field(&self.name, "path", "it is empty"));
        }
        let mut hops = Vec::with_capacity(self.path.len());
        for (at, name) in self.path.iter().enumerate() {
            let server = positions.get(name.as_str()).copied();
            let server = server
                .ok_or_else(|| field(&self.name, "path", format!("no server is named {name:?}")))?;
            let (earliest, latest) = (Span::ZERO, Span::ZERO);
            hops.push(Hop {
                server,
                upstream: at.checked_sub(1),
                earliest,
                latest,
                reshaped: None,
            });
        }
        let arrival = Curve::new(bursts.into_iter().zip(rates).map(bucket).collect());
        Ok(Flow { arrival, smallest, largest, hops })
    }
}

impl ServerItem {
    fn read(&self, general: &General, at: usize, flows: &[Flow]) -> Result<Server, ImportError> {
        let reader = Reader { item: &self.name, units: &self.units, general: &general.units };
        let curve = &self.service_curve;
        let latencies = reader.all("latencies", &curve.latencies, Kind::Time, Round::Up)?;
        let rates = reader.all("rates", &curve.rates, Kind::Rate, Round::Down)?;
        if latencies.len() != rates.len() || rates.iter().any(|rate| *rate <= 0) {
            let problem = "as many latencies as rates are needed, and rates of 1 b/s at least";
            return Err(field(&self.name, "service_curve", problem));
        }
        let here = flows.iter().filter(|f| f.hops.iter().any(|hop| hop.server == at));
        let (mut burst, mut load) = (0_i128, 0_i128);
        for bucket in here.map(|flow| flow.arrival.sustained()) {
            burst = burst.saturating_add(bucket.burst);
            load += i128::from(bucket.rate.as_bps());
        }
        let served = |(latency, rate): &(i128, i128)| {
            (load > *rate, latency.saturating_add(burst / rate), -rate)
        };
        let best = latencies.into_iter().zip(rates).min_by_key(served);
        let (latency, rate) =
            best.ok_or_else(|| field(&self.name, "service_curve", "it has no curve"))?;
        let line = self.capacity.as_ref();
        let line = line
            .map(|v| reader.one("capacity", v, Kind::Rate, Round::Up))
            .transpose()?
            .filter(|line| *line > 0);
        let bps = |rate: i128| BitRate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX));
        Ok(Server {
            rate: bps(rate),
            latency: Span::from_ns(i64::try_from(latency).unwrap_or(i64::MAX)),
            link_rate: line.map(|line| bps(line.max(rate))),
            output: if general.packetizer { Departure::Fragments } else { Departure::Bits },
        })
    }
}

/// Reads the quantities of one flow or server.
struct Reader<'a> {
    item: &'a str,
    units: &'a Units,
    general: &'a Units,
}

impl Reader<'_> {
    fn all(
        &self,
        name: &'static str,
        values: &[Value],
        kind: Kind,
        round: Round,
    ) -> Result<Vec<i128>, ImportError> {
        values.iter().map(|value| self.one(name, value, kind, round)).collect()
    }

    fn one(
        &self,
        name: &'static str,
        value: &Value,
        kind: Kind,
        round: Round,
    ) -> Result<i128, ImportError> {
        let of = |units: &Units| match kind {
            Kind::Time => units.time_unit.clone(),
            Kind::Data => units.data_unit.clone(),
            Kind::Rate => units.rate_unit.clone(),
        };
        let (what, plain) = match kind {
            Kind::Time => ("a time", "s"),
            Kind::Data => ("an amount of data", "b"),
            Kind::Rate => ("a rate", "bps"),
        };
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let (number, unit) = split(text.trim());
        let preset = || of(self.units).or_else(|| of(self.general)).unwrap_or(plain.to_owned());
        let (unit, said) = match unit {
            "" => (preset(), format!("{value} in {}", preset())),
            unit => (unit.to_owned(), value.to_string()),
        };
        let read = Decimal::read(number).zip(scale(kind, &unit));
        read.and_then(|(number, scale)| number.times(scale, round))
            .ok_or_else(|| field(self.item, name, format!("{said} is not {what}")))
    }
}

fn field(item: &str, field: &'static str, problem: impl Into<String>) -> ImportError {
    ImportError::Field { item: item.to_owned(), field, problem: problem.into() }
}

/// A number and what follows it.
fn split(text: &str) -> (&str, &str) {
    // An exponent is a letter too: the longest prefix that is a number counts.
    let ends = text.char_indices().take(NUMBER_MAX).map(|(at, c)| at + c.len_utf8());
    let end = ends.filter(|end| Decimal::read(&text[..*end]).is_some()).max().unwrap_or(0);
    (&text[..end], text[end..].trim_start())
}

/// `digits·10^exponent`, not negative.
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// What one unit is in the smallest one: a fraction, and a power of ten.
struct Scale {
    times: i128,
    per: i128,
    exponent: i32,
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
            None => (text, 0),
        };
        let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{part}");
        if !digits.bytes().all(|b| b.is_ascii_digit()) || digits.len() > DIGITS_MAX {
            return None;
        }
        let part = i32::try_from(part.len()).ok()?;
        Some(Self { digits: digits.parse().ok()?, exponent: i32::from(exponent) - part })
    }

    fn times(&self, scale: Scale, round: Round) -> Option<i128> {
        if self.digits == 0 {
            return Some(0);
        }
        let exponent = self.exponent + scale.exponent;
        let ten = 10_i128.checked_pow(exponent.unsigned_abs());
        let (times, per) = match (exponent >= 0, ten) {
            (true, Some(ten)) => (scale.times.checked_mul(ten)?, scale.per),
            (false, Some(ten)) => (scale.times, scale.per.checked_mul(ten)?),
            (true, None) => return None,
            (false, None) => return Some(i128::from(round == Round::Up)),
        };
        let product = self.digits.checked_mul(times)?;
        Some(product / per + i128::from(round == Round::Up && product % per != 0))
    }
}

/// What a unit with its prefix is: in nanoseconds, nanobits or bits per second.
fn scale(kind: Kind, unit: &str) -> Option<Scale> {
    let time = |unit: &str| match unit {
        "s" => Some(1_i128),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let data = |unit: &str| match unit {
        "b" => Some(1_i128),
        "B" => Some(8),
        _ => None,
    };
    let length = if matches!(kind, Kind::Rate) { 3 } else { 1 };
    let at = unit.len().checked_sub(length).filter(|at| unit.is_char_boundary(*at))?;
    let (prefix, base) = unit.split_at(at);
    let prefix = match prefix {
        "" => 0,
        "a" => -18,
        "f" => -15,
        "p" => -12,
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => return None,
    };
    Some(match kind {
        Kind::Time => Scale { times: time(base)?, per: 1, exponent: prefix + 9 },
        Kind::Data => Scale { times: data(base)?, per: 1, exponent: prefix + 9 },
        Kind::Rate => {
            let (amount, per) = base.split_once('p')?;
            Scale { times: data(amount)?, per: time(per)?, exponent: prefix }
        }
    })
}
