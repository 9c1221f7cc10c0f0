//! The paper's nine scenarios (Table 2), each with a directory of its own; what is there is done.

use super::arguments::CampaignArguments;
use super::bar::Bar;
use super::benchmarks::{Benchmarks, Part, estimate};
use super::{reaper, write};
use crate::exit::Exit;
use crate::output::{Kind, MEASUREMENT, Output, write_files};
use crate::{input, run, terminal};
use anyhow::{Context, bail};
use onbeat::interface::ask_ptp4l;
use onbeat_machine::benchmarks::{Isolation, Mode, Role, unmet};
use onbeat_measure::measurement::{
    Campaign, CampaignScenario, Measurement, ScenarioName, ScenarioOutcome, State, read,
};
use onbeat_report::measurement::{campaign_html, campaign_table};
use onbeat_run::machine::Machine;
use onbeat_run::process::Reaper;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Where ptp4l answers, and the domain of gPTP.
const PTP4L: (&str, u8) = ("/var/run/ptp4l", 0);
/// The campaign as JSON and as a page.
const CAMPAIGN: &str = "campaign.json";
const CAMPAIGN_PAGE: &str = "campaign.html";

/// What a scenario is for this machine.
type Kinds = (Isolation, Mode, Role);

/// Table 2, in its order.
const SCENARIOS: [(&str, Kinds); 9] = [
    ("RT-SMS-SLAVE", (Isolation::None, Mode::Sms, Role::Slave)),
    ("RT-MBS-MASTER", (Isolation::None, Mode::Mbs, Role::Master)),
    ("RT-MBS-SLAVE", (Isolation::None, Mode::Mbs, Role::Slave)),
    ("TUNED-SMS-SLAVE", (Isolation::Tuned, Mode::Sms, Role::Slave)),
    ("TUNED-MBS-MASTER", (Isolation::Tuned, Mode::Mbs, Role::Master)),
    ("TUNED-MBS-SLAVE", (Isolation::Tuned, Mode::Mbs, Role::Slave)),
    ("CPUSET-SMS-SLAVE", (Isolation::Cpuset, Mode::Sms, Role::Slave)),
    ("CPUSET-MBS-MASTER", (Isolation::Cpuset, Mode::Mbs, Role::Master)),
    ("CPUSET-MBS-SLAVE", (Isolation::Cpuset, Mode::Mbs, Role::Slave)),
];

fn name(id: &str, (isolation, mode, role): Kinds) -> ScenarioName {
    let isolation = match isolation {
        Isolation::None => "none",
        Isolation::Tuned => "TuneD",
        Isolation::Cpuset => "cpuset",
    };
    let clock = match mode {
        Mode::Sms => "SMS",
        Mode::Mbs => "MBS",
    };
    let node = match role {
        Role::Slave => "slave",
        Role::Master => "master",
    };
    ScenarioName {
        id: id.to_owned(),
        isolation: isolation.to_owned(),
        clock: clock.to_owned(),
        node: node.to_owned(),
    }
}

/// Measures every scenario that is not there yet and that this machine is set up for, and says of
/// the others why not.
pub(super) fn campaign(arguments: &CampaignArguments) -> anyhow::Result<Exit> {
    let interrupted = run::interrupt()?;
    let mut reaper = reaper()?;
    let out = &arguments.out;
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let mut found: Vec<CampaignScenario> = Vec::new();
    let mut exit = Exit::Fine;
    for (id, kinds) in SCENARIOS {
        let (name, directory) = (name(id, kinds), out.join(id));
        let scenario = match there(&directory)? {
            Some(done) => done,
            None if exit == Exit::Interrupted => not_reached(name),
            None => {
                let judged = evaluate(name, kinds, arguments);
                match measure(judged.clone(), &directory, arguments, &mut reaper, &interrupted)? {
                    Some(measured) => measured,
                    None => {
                        exit = Exit::Interrupted;
                        not_reached(judged.name)
                    }
                }
            }
        };
        found.push(scenario);
    }
    let campaign = Campaign::new(found);
    let (json, page) = (out.join(CAMPAIGN), out.join(CAMPAIGN_PAGE));
    write_files(&[(&json, campaign.to_json()), (&page, campaign_html(&campaign))])?;
    if arguments.json {
        terminal::print(campaign.to_json().trim_end());
    } else {
        terminal::print(campaign_table(&campaign));
        terminal::print(format_args!("\nwritten: {}", page.display()));
    }
    Ok(exit)
}

/// What was measured of a scenario before, if it was.
fn there(directory: &Path) -> anyhow::Result<Option<CampaignScenario>> {
    let file = directory.join(MEASUREMENT);
    let text = input::text_if_there(&file, input::RESULTS_OCTETS).map_err(anyhow::Error::msg)?;
    let Some(text) = text else { return Ok(None) };
    let again = || format!("{}: remove the directory to measure again", file.display());
    let read = read(&text).map_err(anyhow::Error::msg).with_context(again)?;
    let Some(scenario) = read.scenario.clone() else {
        bail!("{}: this measurement is of no scenario; choose another --out", file.display());
    };
    Ok(Some(CampaignScenario { scenario, measurement: Some(read) }))
}

/// A scenario that an interrupt came before.
fn not_reached(name: ScenarioName) -> CampaignScenario {
    let why = vec!["the campaign was interrupted before: start it again".to_owned()];
    CampaignScenario {
        scenario: ScenarioOutcome { name, state: State::Cannot, why, tuned: None },
        measurement: None,
    }
}

/// Whether the machine is set up for a scenario.
fn evaluate(name: ScenarioName, kinds: Kinds, arguments: &CampaignArguments) -> ScenarioOutcome {
    let ptp = ask_ptp4l(Path::new(PTP4L.0), PTP4L.1).ok();
    let said = arguments.sync.map(Into::into);
    let output = arguments.how.gpio.is_some();
    let unmet = unmet(&Machine::this(), ptp, said, output, kinds);
    let state = match unmet.iter().any(|unmet| unmet.blocks) {
        true => State::Cannot,
        false if unmet.is_empty() => State::Done,
        false => State::Partly,
    };
    let why = unmet.into_iter().map(|unmet| unmet.what).collect();
    ScenarioOutcome { name, state, why, tuned: None }
}

/// Measures a scenario, if it can be; `None` if that was interrupted.
fn measure(
    scenario: ScenarioOutcome,
    directory: &Path,
    arguments: &CampaignArguments,
    reaper: &mut Reaper,
    interrupted: &AtomicBool,
) -> anyhow::Result<Option<CampaignScenario>> {
    if scenario.state == State::Cannot {
        return Ok(Some(CampaignScenario { scenario, measurement: None }));
    }
    let parts = Part::all(&arguments.tests, false);
    let settings = arguments.how.settings();
    let bar = Bar::new(estimate(&parts, &settings), scenario.name.id.clone());
    let mut output = Output::begin(directory, Kind::Measurement, reaper)?;
    let mut done = Benchmarks::begin(&settings, output.reaper(), interrupted, &bar)?.run(&parts)?;
    bar.finish();
    if done.interrupted {
        return Ok(None);
    }
    let measurement = Measurement { scenario: Some(scenario.clone()), ..done.document };
    done.document = measurement.clone();
    write(&output, &done)?;
    output.finish()?;
    Ok(Some(CampaignScenario { scenario, measurement: Some(measurement) }))
}
