//! What is compared: the series of a run, of a simulation or of a measurement.

use crate::result::{Ended, Results};
use crate::simulation;
use onbeat_model::system::{Backend, TimeMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most values of a series.
pub const VALUES_MAX: usize = 50_000_000;
/// The most series of a subject.
pub const SERIES_MAX: usize = 20_000;
/// The setting that says which scenario of a campaign a measurement is of.
const SCENARIO: &str = "scenario";
/// What a measurement's document says that it is.
const MEASUREMENT: &str = "onbeat-measurement";
/// The versions of such documents that are read: their samples are alike.
const MEASUREMENT_VERSIONS: [u64; 2] = [1, 2];
/// The columns of a file of messages that are used; there may be more, in any order.
const COLUMNS: [&str; 7] = [
    "channel",
    "listener",
    "latency_ns",
    "talker_wake_error_ns",
    "listener_wake_error_ns",
    "relative_wake_error_ns",
    "lost",
];
/// The same of a file of repetitions.
const REPETITION_COLUMNS: [&str; 4] = ["flow", "listener", "mean_ns", "max_ns"];

/// What two things are that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Runs of a system.
    Run,
    /// Simulations of a system.
    Simulation,
    /// Measurements of machines.
    Measurement,
}

impl Kind {
    /// The kind as it is in the JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Simulation => "simulation",
            Self::Measurement => "measurement",
        }
    }
}

/// What the values of a series are. Of all, larger is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Capture to receipt, of each message.
    Latency,
    /// How far from its target the talker woke, early or late, for each message.
    TalkerWakeup,
    /// The same of the listener.
    ListenerWakeup,
    /// How far apart talker and listener woke, for each message.
    RelativeWakeup,
    /// Whether a message was lost: 1 if so, else 0.
    Lost,
    /// The mean latency of each repetition of a simulation.
    MeanLatency,
    /// The longest latency of each repetition of a simulation.
    MaxLatency,
    /// What a measurement measured; the size of it, where it has a sign.
    Measured,
}

impl Quantity {
    /// The quantity for a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::TalkerWakeup => "wake-up error of the talker",
            Self::ListenerWakeup => "wake-up error of the listener",
            Self::RelativeWakeup => "relative wake-up error",
            Self::Lost => "lost messages",
            Self::MeanLatency => "mean latency of a repetition",
            Self::MaxLatency => "longest latency of a repetition",
            Self::Measured => "measured",
        }
    }
}

/// Values of one kind, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The scenario; empty where there is none.
    pub run: String,
    /// What it is of.
    pub name: String,
    /// What its values are.
    pub quantity: Quantity,
    /// Nanoseconds, or 0 and 1 for [`Quantity::Lost`]. Not empty.
    pub values: Vec<i64>,
    /// How many of these each run has, where they are of several, one after the other.
    pub runs: Vec<usize>,
}

impl Series {
    /// A series of one run.
    pub fn new(run: &str, name: &str, quantity: Quantity, values: Vec<i64>) -> Self {
        let runs = vec![values.len()];
        Self { run: run.to_owned(), name: name.to_owned(), quantity, values, runs }
    }

    /// The values of each run.
    pub(super) fn each_run(&self) -> impl Iterator<Item = &[i64]> {
        let mut rest = self.values.as_slice();
        self.runs.iter().map(move |count| {
            let (run, after) = rest.split_at(*count);
            rest = after;
            run
        })
    }
}

/// One of the two things that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: Kind,
    /// Whether a machine's time is in its values: then what differs from one run to the next is
    /// more than what differs within one.
    pub of_machine: bool,
    /// The system's name; empty for a measurement.
    pub system: String,
    /// Under which circumstances it came about, by name: what differs is said.
    pub settings: BTreeMap<String, String>,
    /// In the order of the files.
    pub series: Vec<Series>,
}

/// Why files are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A document is not JSON of its kind.
    #[error("{0}")]
    Document(String),
    /// A column is missing from the first line of a file.
    #[error("line 1: there is no column `{0}`")]
    Column(&'static str),
    /// A line is not as it should be.
    #[error("line {line}: {what}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// There is more than anybody can have measured.
    #[error("more than {VALUES_MAX} values of a series, or {SERIES_MAX} series")]
    TooMany,
}

/// Why two things cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Different {
    /// They are not of one kind.
    #[error("the first is a {0}, the second a {1}: only two of a kind can be compared")]
    Kinds(&'static str, &'static str),
    /// They are of different systems.
    #[error("the first is of system `{0}`, the second of `{1}`: only two of one can be compared")]
    Systems(String, String),
    /// They have nothing in common.
    #[error("they have no series in common: the first has {0}; the second has {1}")]
    NothingInCommon(String, String),
}

/// The columns of a file with a header.
struct Table<'a, const N: usize> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    places: [usize; N],
    width: usize,
}

impl<'a, const N: usize> Table<'a, N> {
    fn new(text: &'a str, columns: [&'static str; N]) -> Result<Self, Invalid> {
        let mut lines = text.lines().enumerate();
        let names = fields(lines.next().map_or("", |(_, line)| line));
        let mut places = [0; N];
        for (place, column) in places.iter_mut().zip(columns) {
            *place = names.iter().position(|n| n == column).ok_or(Invalid::Column(column))?;
        }
        Ok(Self { lines, places, width: names.len() })
    }
}

impl<const N: usize> Iterator for Table<'_, N> {
    /// The number of a line and its wanted fields.
    type Item = Result<(usize, [String; N]), Invalid>;

    fn next(&mut self) -> Option<Self::Item> {
        let (at, line) = self.lines.next()?;
        let mut all = fields(line);
        if all.len() != self.width {
            let what = "another number of columns than in line 1; it may be cut off";
            return Some(Err(Invalid::Line { line: at + 1, what }));
        }
        Some(Ok((at + 1, self.places.map(|place| std::mem::take(&mut all[place])))))
    }
}

/// The fields of a line as RFC 4180 has them; no field has a line feed.
fn fields(line: &str) -> Vec<String> {
    if !line.contains('"') {
        return line.split(',').map(str::to_owned).collect();
    }
    let mut all = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let field = all.last_mut().expect("there is one from the start");
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            letter => field.push(letter),
        }
    }
    all
}

/// The longest time either way that a file may say: differences and sums of two are still times.
const TIME_MAX: i64 = i64::MAX / 4;

/// A whole number, or nothing.
fn number(field: &str, line: usize) -> Result<Option<i64>, Invalid> {
    if field.is_empty() {
        return Ok(None);
    }
    let wrong = |what| Invalid::Line { line, what };
    match field.parse::<i64>() {
        Ok(time) if time.saturating_abs() <= TIME_MAX => Ok(Some(time)),
        Ok(_) => Err(wrong("a time is of more than 73 years")),
        Err(_) => Err(wrong("a time is no whole number of nanoseconds")),
    }
}

/// Series as lines add to them, in the order in which the first value of each came.
#[derive(Default)]
struct Collected {
    series: Vec<Series>,
    places: BTreeMap<(String, u8), usize>,
}

impl Collected {
    fn add(
        &mut self,
        run: &str,
        name: &str,
        quantity: Quantity,
        value: Option<i64>,
    ) -> Result<(), Invalid> {
        let Some(value) = value else { return Ok(()) };
        // Names repeat from line to line: the last one is looked at before all others are.
        let key = quantity as u8;
        let place = match self.places.get(&(name.to_owned(), key)) {
            Some(place) => *place,
            None if self.series.len() == SERIES_MAX => return Err(Invalid::TooMany),
            None => {
                self.places.insert((name.to_owned(), key), self.series.len());
                self.series.push(Series::new(run, name, quantity, Vec::new()));
                self.series.len() - 1
            }
        };
        let Series { values, runs, .. } = &mut self.series[place];
        if values.len() == VALUES_MAX {
            return Err(Invalid::TooMany);
        }
        values.push(value);
        runs[0] += 1;
        Ok(())
    }
}

/// The series of one run: what its file of messages says (`docs/results.md`).
///
/// # Errors
/// [`Invalid`], with the line.
pub fn messages(run: &str, text: &str) -> Result<Vec<Series>, Invalid> {
    let mut collected = Collected::default();
    let mut talkers = BTreeMap::new();
    for line in Table::new(text, COLUMNS)? {
        let (line, [channel, listener, latency, talker_error, listener_error, apart, lost]) = line?;
        let name = format!("{channel} to {listener}");
        let flag = match lost.as_str() {
            "" => None,
            "0" => Some(0),
            "1" => Some(1),
            _ => return Err(Invalid::Line { line, what: "`lost` is neither 0 nor 1" }),
        };
        let size = |field: &str| Ok(number(field, line)?.map(i64::saturating_abs));
        let latency = number(&latency, line)?;
        collected.add(run, &name, Quantity::Latency, latency)?;
        // Every listener's lines have the talker's wake-ups: the first one's are enough.
        if *talkers.entry(channel.clone()).or_insert_with(|| listener.clone()) == listener {
            collected.add(run, &channel, Quantity::TalkerWakeup, size(&talker_error)?)?;
        }
        collected.add(run, &name, Quantity::ListenerWakeup, size(&listener_error)?)?;
        collected.add(run, &name, Quantity::RelativeWakeup, size(&apart)?)?;
        collected.add(run, &name, Quantity::Lost, flag)?;
    }
    Ok(collected.series)
}

impl Subject {
    /// The runs of an output directory: `results.json`, and of each run its series.
    pub fn of_runs(results: &Results, runs: Vec<Vec<Series>>) -> Self {
        let mut settings = BTreeMap::new();
        for run in &results.runs {
            let mut set = |what: &str, value: String| {
                let place = match run.scenario.as_str() {
                    "" => what.to_owned(),
                    scenario => format!("{scenario}, {what}"),
                };
                settings.insert(place, value);
            };
            let plain = |value: serde_json::Result<serde_json::Value>| match value {
                Ok(serde_json::Value::String(text)) => text,
                Ok(value) => value.to_string(),
                Err(_) => String::new(),
            };
            set("time", plain(serde_json::to_value(run.time)));
            set("network", plain(serde_json::to_value(run.network.kind)));
            set("transport", plain(serde_json::to_value(run.network.transport)));
            set("reservations", if run.protected { "made" } else { "none" }.to_owned());
            if run.stations.is_some() {
                set("backend", Backend::NetworkCode.as_str().to_owned());
            }
            set("duration_ns", run.duration_ns.to_string());
            set("end", if run.ended == Ended::Complete { "complete" } else { "early" }.to_owned());
        }
        Self {
            kind: Kind::Run,
            of_machine: results.runs.iter().any(|run| run.time != TimeMode::Virtual),
            system: results.system.clone(),
            settings,
            series: runs.into_iter().flatten().collect(),
        }
    }

    /// A simulation: `simulation.json`, and the text of its repetitions
    /// (`docs/simulation-results.md`).
    ///
    /// # Errors
    /// [`Invalid`], with the line.
    pub fn of_simulation(
        results: &simulation::Results,
        repetitions: &str,
    ) -> Result<Self, Invalid> {
        let mut collected = Collected::default();
        for line in Table::new(repetitions, REPETITION_COLUMNS)? {
            let (line, [flow, listener, mean, max]) = line?;
            let name = format!("{flow} to {listener}");
            collected.add("", &name, Quantity::MeanLatency, number(&mean, line)?)?;
            collected.add("", &name, Quantity::MaxLatency, number(&max, line)?)?;
        }
        let reservations = if results.protected { "made" } else { "none" };
        let settings = [
            ("reservations", reservations.to_owned()),
            ("duration_ns", results.settings.duration_ns.to_string()),
            ("phases", format!("{:?}", results.settings.phases).to_lowercase()),
        ];
        Ok(Self {
            kind: Kind::Simulation,
            of_machine: false,
            system: results.system.clone(),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
            series: collected.series,
        })
    }

    /// A measurement: its document, and of each series that it lists the text of its samples.
    ///
    /// # Errors
    /// [`Invalid`] when the document is none; the error of `samples`.
    pub fn of_measurement<E: From<Invalid>>(
        document: &str,
        mut samples: impl FnMut(&str) -> Result<Vec<i64>, E>,
    ) -> Result<Self, E> {
        let wrong = |what: String| Invalid::Document(what);
        let document: serde_json::Value =
            serde_json::from_str(document).map_err(|error| wrong(error.to_string()))?;
        let known = MEASUREMENT_VERSIONS.iter().any(|version| document["version"] == *version);
        if document["format"] != MEASUREMENT || !known {
            let what = format!(
                "not `{MEASUREMENT}`, version {MEASUREMENT_VERSIONS:?}, but {}, version {}",
                document["format"], document["version"]
            );
            return Err(wrong(what).into());
        }
        let list = document["series"].as_array();
        let list = list.ok_or_else(|| wrong("there is no list `series`".to_owned()))?;
        if list.len() > SERIES_MAX {
            return Err(Invalid::TooMany.into());
        }
        let mut series = Vec::new();
        for listed in list {
            let name = listed["name"].as_str().filter(|name| is_file_name(name));
            let name = name.ok_or_else(|| wrong("a series without a proper name".to_owned()))?;
            let mut values = samples(name)?;
            values.iter_mut().for_each(|value| *value = value.saturating_abs());
            if !values.is_empty() {
                series.push(Series::new("", name, Quantity::Measured, values));
            }
        }
        let mut settings = BTreeMap::new();
        flatten("machine", &document["machine"], &mut settings);
        flatten(SCENARIO, &document["scenario"]["id"], &mut settings);
        let (kind, system) = (Kind::Measurement, String::new());
        Ok(Self { kind, of_machine: true, system, settings, series })
    }

    /// Several runs of one thing as one subject, in their order. What not all of them have is left
    /// out.
    ///
    /// # Errors
    /// [`Different`] when they are not of one system, or have no series in common.
    ///
    /// # Panics
    /// When there is none.
    pub fn joined(runs: Vec<Self>) -> Result<Self, Different> {
        let mut runs = runs.into_iter();
        let mut all = runs.next().expect("a run");
        for run in runs {
            common(&all, &run)?;
            let scenario = |subject: &Self| subject.settings.get(SCENARIO).cloned();
            if scenario(&all) != scenario(&run) {
                // A campaign: its directories are not repetitions of one another.
                let named = |subject: &Self| scenario(subject).unwrap_or_default();
                return Err(Different::Systems(named(&all), named(&run)));
            }
            let mut others: BTreeMap<_, _> =
                run.series.into_iter().map(|other| (other.key(), other)).collect();
            all.series.retain_mut(|series| {
                let Some(other) = others.get_mut(&series.key()) else { return false };
                series.values.append(&mut other.values);
                series.runs.append(&mut other.runs);
                true
            });
            all.of_machine |= run.of_machine;
            // What differs from run to run is no setting of all of them.
            all.settings.retain(|name, value| run.settings.get(name) == Some(value));
        }
        Ok(all)
    }

    /// How many runs it is of.
    pub fn runs(&self) -> usize {
        self.series.first().map_or(0, |series| series.runs.len())
    }
}

/// Whether a series' name can be a file's, in the directory of samples.
fn is_file_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_fine)
}

/// Every value in a JSON value by the way to it.
fn flatten(place: &str, value: &serde_json::Value, into: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{place}.{name}"), value, into);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => {
            into.insert(place.to_owned(), text.clone());
        }
        other => {
            into.insert(place.to_owned(), other.to_string());
        }
    }
}

/// The values of a file of samples: a line `value_ns`, then one whole number a line.
///
/// # Errors
/// [`Invalid`], with the line.
pub fn samples(text: &str) -> Result<Vec<i64>, Invalid> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line != "value_ns") {
        return Err(Invalid::Column("value_ns"));
    }
    let mut values = Vec::new();
    for (at, line) in lines {
        let value = number(line, at + 1)?;
        if values.len() == VALUES_MAX {
            return Err(Invalid::TooMany);
        }
        values.push(value.ok_or(Invalid::Line { line: at + 1, what: "it is empty" })?);
    }
    Ok(values)
}

/// The series that both have, in the order of the first, and what else differs, for a person.
pub(super) fn common<'a>(
    first: &'a Subject,
    second: &'a Subject,
) -> Result<(Vec<[&'a Series; 2]>, Vec<String>), Different> {
    if first.kind != second.kind {
        return Err(Different::Kinds(first.kind.as_str(), second.kind.as_str()));
    }
    if first.system != second.system {
        return Err(Different::Systems(first.system.clone(), second.system.clone()));
    }
    let of_second: BTreeMap<_, _> = second.series.iter().map(|s| (s.key(), s)).collect();
    let of_first: BTreeMap<_, _> = first.series.iter().map(|s| (s.key(), s)).collect();
    let pairs: Vec<_> = (first.series.iter())
        .filter_map(|series| of_second.get(&series.key()).map(|other| [series, *other]))
        .collect();
    if pairs.is_empty() {
        return Err(Different::NothingInCommon(listed(first.series.iter()), {
            listed(second.series.iter())
        }));
    }
    let mut notes = Vec::new();
    let names = first.settings.keys().chain(second.settings.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    for name in names {
        // What only one has is of a scenario that the other lacks, which is said below.
        let values = (first.settings.get(name), second.settings.get(name));
        if let (Some(a), Some(b)) = values
            && a != b
        {
            notes.push(format!("{name}: {a} in the first, {b} in the second"));
        }
    }
    for (which, all, other) in [("first", &of_first, &of_second), ("second", &of_second, &of_first)]
    {
        let only: Vec<_> = all.iter().filter(|(k, _)| !other.contains_key(k)).collect();
        if !only.is_empty() {
            let only = listed(only.into_iter().map(|(_, series)| *series));
            notes.push(format!("only the {which} has {only}"));
        }
    }
    Ok((pairs, notes))
}

/// Some series by name, for a person.
fn listed<'a>(series: impl Iterator<Item = &'a Series>) -> String {
    const SHOWN: usize = 6;
    let names: Vec<_> = series.map(Series::label).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => {
            format!("{} and {} more", names[..SHOWN].join("; "), count - SHOWN)
        }
        _ => names.join("; "),
    }
}

impl Series {
    /// What tells it from others of its subject.
    pub(super) fn key(&self) -> (String, String, u8) {
        (self.run.clone(), self.name.clone(), self.quantity as u8)
    }

    /// For a person: `protected: joint to arm, latency`.
    fn label(&self) -> String {
        let run = if self.run.is_empty() { String::new() } else { format!("{}: ", self.run) };
        match self.quantity {
            Quantity::Measured => format!("{run}{}", self.name),
            quantity => format!("{run}{}, {}", self.name, quantity.as_str()),
        }
    }
}
