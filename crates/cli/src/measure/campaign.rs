//! The paper's nine scenarios (Table 2), each with a directory of its own; what is there is done.

use super::arguments::CampaignArguments;
use super::bar::Bar;
use super::benchmarks::{Benchmarks, Part, estimate};
use super::setup::{Ready, Setup};
use super::{reaper, role, write};
use crate::exit::Exit;
use crate::output::{Kind, MEASUREMENT, Output, write_files};
use crate::tune::Tuned;
use crate::{input, run, terminal};
use anyhow::{Context, bail};
use onbeat::clock::{MonoTime, pause};
use onbeat_machine::benchmarks::{Isolation, Mode, Role, clock_unmet, unmet};
use onbeat_measure::measurement::{
    Campaign, CampaignScenario, Measurement, ScenarioName, ScenarioOutcome, State, read,
};
use onbeat_model::time::Span;
use onbeat_report::measurement::{campaign_html, campaign_table};
use onbeat_run::machine::Machine;
use onbeat_run::process::Reaper;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The campaign as JSON and as a page.
const CAMPAIGN: &str = "campaign.json";
const CAMPAIGN_PAGE: &str = "campaign.html";
/// How many times as long as expected settings stay in force, and how much longer, if nothing ends
/// them before.
const TAKES_AT_MOST: i64 = 4;
const TUNED_BEYOND: Span = Span::from_s(3_600);
/// How long ptp4l has after a boot until it follows or leads.
const SETTLES_WITHIN: Span = Span::from_s(60);
const LOOK_AGAIN: Span = Span::from_ms(100);
/// Why a scenario is not measured before a reboot.
const REBOOTS: &str = "its boot parameters are written, and the campaign continues after a reboot";

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

/// Measures every scenario that is not there yet and that this machine is set up for, or can be
/// with `--apply`, and says of the others why not.
pub(super) fn campaign(arguments: &CampaignArguments) -> anyhow::Result<Exit> {
    let interrupted = run::interrupt()?;
    let mut setup = arguments.apply.then(|| Setup::new(arguments)).transpose()?;
    let done = whole(arguments, setup.as_mut(), &interrupted);
    if let (Err(_), Some(setup)) = (&done, &mut setup) {
        setup.give_up();
    }
    done
}

fn whole(
    arguments: &CampaignArguments,
    mut setup: Option<&mut Setup<'_>>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Exit> {
    let out = &arguments.out;
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    if let Some(setup) = &mut setup {
        setup.begin()?;
        if arguments.resumed_ptp {
            settles(setup.machine(), interrupted);
        }
    }
    let order = match &setup {
        Some(setup) => setup.order(),
        None => [Isolation::None, Isolation::Tuned, Isolation::Cpuset],
    };
    let mut running = Running {
        arguments,
        reaper: reaper()?,
        interrupted,
        found: SCENARIOS.map(|_| None),
        setup,
        reboots: false,
    };
    for (at, (id, _)) in SCENARIOS.iter().enumerate() {
        running.found[at] = there(&out.join(id))?;
    }
    for isolation in order {
        running.isolated(isolation)?;
    }
    let Running { found, setup, reboots, .. } = running;
    let scenarios = SCENARIOS.into_iter().zip(found);
    let scenarios = scenarios.map(|((id, kinds), one)| one.unwrap_or(not_reached(name(id, kinds))));
    show(&Campaign::new(scenarios.collect()), arguments)?;
    // After all that takes time: who interrupts it wants no reboot.
    let is_interrupted = is_set(interrupted);
    if let Some(setup) = setup {
        match (reboots, is_interrupted) {
            (true, true) => setup.stay()?,
            (true, false) => setup.reboot(REBOOTS)?,
            (false, _) => setup.leave(is_interrupted)?,
        }
    }
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Fine })
}

/// Waits, after a boot, until ptp4l follows or leads as it did before.
fn settles(machine: &Machine, interrupted: &AtomicBool) {
    let until = MonoTime::now() + SETTLES_WITHIN;
    while role::present(machine).is_none() && MonoTime::now() < until && !is_set(interrupted) {
        pause(LOOK_AGAIN);
    }
}

/// Writes a campaign, and prints it.
fn show(campaign: &Campaign, arguments: &CampaignArguments) -> anyhow::Result<()> {
    let (json, page) = (arguments.out.join(CAMPAIGN), arguments.out.join(CAMPAIGN_PAGE));
    write_files(&[(&json, campaign.to_json()), (&page, campaign_html(campaign))])?;
    if arguments.json {
        terminal::print(campaign.to_json().trim_end());
    } else {
        terminal::print(campaign_table(campaign));
        terminal::print(format_args!("\nwritten: {}", page.display()));
    }
    Ok(())
}

/// A campaign that is running.
struct Running<'a, 's> {
    arguments: &'a CampaignArguments,
    reaper: Reaper,
    interrupted: &'a AtomicBool,
    /// What came of the scenarios so far, in the order of Table 2.
    found: [Option<CampaignScenario>; 9],
    /// The machine, if it is to be set up.
    setup: Option<&'a mut Setup<'s>>,
    /// Whether the boot line is written, for a reboot.
    reboots: bool,
}

impl Running<'_, '_> {
    /// Measures what is left of the scenarios with one kind of isolation; the machine is as before
    /// after it.
    fn isolated(&mut self, isolation: Isolation) -> anyhow::Result<()> {
        let is_left = |(at, (_, kinds)): &(usize, (&str, Kinds))| {
            kinds.0 == isolation && self.found[*at].is_none()
        };
        let left: Vec<_> = SCENARIOS.into_iter().enumerate().filter(is_left).collect();
        let mut tuned = None;
        let (mut line, mut refused) = (None, None);
        // Nothing is set where the clock keeps all of them from being measured.
        let can = left.iter().any(|(_, (_, kinds))| self.clock_fits(*kinds));
        if let Some(setup) = self.setup.as_mut().filter(|_| can && !is_set(self.interrupted)) {
            let parts = Part::all(&self.arguments.tests, false);
            let takes = estimate(&parts, &self.arguments.how.settings()) * left.len() as i64;
            match setup.set(isolation, takes * TAKES_AT_MOST + TUNED_BEYOND)? {
                Ready::Set(set, what) => (tuned, line) = (set, Some(what)),
                Ready::AsItIs => {}
                Ready::Cannot(why) => refused = Some(why),
                Ready::Reboots => {
                    self.reboots = true;
                    refused = Some(REBOOTS.to_owned());
                }
            }
        }
        let done = self.all_of(&left, (tuned.as_ref(), line.as_deref()), refused.as_deref());
        if let Some(note) = tuned.as_mut().and_then(Tuned::end) {
            terminal::say(format_args!("onbeat: {note}"));
        }
        match &mut self.setup {
            Some(setup) if isolation == Isolation::Tuned => setup.end_boot().and(done),
            _ => done,
        }
    }

    /// Measures scenarios for which the machine is set up, unless that was refused.
    fn all_of(
        &mut self,
        left: &[(usize, (&str, Kinds))],
        (tuned, line): (Option<&Tuned>, Option<&str>),
        refused: Option<&str>,
    ) -> anyhow::Result<()> {
        for (at, (id, kinds)) in left {
            if is_set(self.interrupted) {
                break;
            }
            let tuned = tuned.filter(|_| refused.is_none());
            let other = tuned.zip(self.other_role(*kinds));
            let taken = other
                .map(|(tuned, role)| role::take(&self.machine(), tuned, role, self.interrupted));
            if is_set(self.interrupted) {
                break; // also while clocks selected another grandmaster
            }
            let mut scenario = self.evaluate(name(id, *kinds), *kinds, refused);
            let mut line = line.map(str::to_owned);
            match &taken {
                Some(Ok(what)) => line = line.map(|line| format!("{line}; {what}")),
                Some(Err(why)) => scenario.why.push(why.clone()),
                None => {}
            }
            scenario.tuned = line.filter(|_| scenario.state != State::Cannot);
            self.found[*at] = self.measure(scenario, tuned)?;
            if let (Some((tuned, role)), Some(Ok(_))) = (other, taken) {
                role::give_back(&self.machine(), tuned, role, self.interrupted);
            }
        }
        Ok(())
    }

    fn machine(&self) -> Machine {
        self.setup.as_ref().map_or_else(Machine::this, |setup| setup.machine().clone())
    }

    /// Whether a scenario can be measured with this machine's clock, or with what it can be had do.
    fn clock_fits(&self, kinds: Kinds) -> bool {
        let (machine, said) = (self.machine(), self.arguments.sync.map(Into::into));
        let unmet = clock_unmet(&machine, role::status(&machine), said, kinds.1, kinds.2);
        let is_had = |role| role::priority(&machine, role).is_ok();
        unmet.is_none_or(|unmet| !unmet.blocks)
            || self.setup.is_some() && self.other_role(kinds).is_some_and(is_had)
    }

    /// What this machine's clock is to do for a scenario and does not.
    fn other_role(&self, (_, mode, role): Kinds) -> Option<Role> {
        let is = role::present(&self.machine())?;
        // Who leads when this machine does not is only said.
        let is_known = role == Role::Master || self.arguments.sync.map(Mode::from) == Some(mode);
        (is != role && is_known).then_some(role)
    }

    /// Whether the machine is set up for a scenario.
    fn evaluate(&self, name: ScenarioName, kinds: Kinds, refused: Option<&str>) -> ScenarioOutcome {
        let said = self.arguments.sync.map(Into::into);
        let output = self.arguments.how.gpio.is_some();
        let machine = self.machine();
        let unmet = unmet(&machine, role::status(&machine), said, output, refused, kinds);
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
        &mut self,
        mut scenario: ScenarioOutcome,
        tuned: Option<&Tuned>,
    ) -> anyhow::Result<Option<CampaignScenario>> {
        if scenario.state == State::Cannot {
            return Ok(Some(CampaignScenario { scenario, measurement: None }));
        }
        let parts = Part::all(&self.arguments.tests, false);
        let settings = self.arguments.how.settings();
        let bar = Bar::new(estimate(&parts, &settings), scenario.name.id.clone());
        let directory = self.arguments.out.join(&scenario.name.id);
        let mut output = Output::begin(&directory, Kind::Measurement, &mut self.reaper)?;
        let mut done =
            Benchmarks::begin(&settings, output.reaper(), self.interrupted, &bar)?.run(&parts)?;
        bar.finish();
        if done.interrupted {
            return Ok(None);
        }
        if let Some(changed) = tuned.and_then(Tuned::changed) {
            scenario.state = State::Partly;
            scenario.why.push(changed);
        }
        let measurement = Measurement { scenario: Some(scenario.clone()), ..done.document };
        done.document = measurement.clone();
        write(&output, &done)?;
        output.finish()?;
        Ok(Some(CampaignScenario { scenario, measurement: Some(measurement) }))
    }
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
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
