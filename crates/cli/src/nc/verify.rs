//! The verb `nc verify`: the programs of a network, proven or disproven.

use crate::exit::Exit;
use crate::output::write_files;
use crate::source::{self, Source, Wrong};
use crate::terminal;
use crate::trust::Trust;
use clap::Args;
use comfy_table::Cell;
use onbeat_model::units::{Octets, frame};
use onbeat_network_code::topology::{NetworkAssumptions, network_model};
use onbeat_network_code::verification::timeline::{Timeline, TimelineMark, TimelineRow, timeline};
use onbeat_network_code::verification::{
    BestEffortShare, DecidedProperty, FindingWeight, NetworkModel, ProofFinding, ProofVerdict,
    Verification, verify as decide,
};
use onbeat_report::grid::{grid, right, ruled};
use onbeat_report::lanes::{LaneMark, Lanes, TimeLane, svg};
use serde_json::{Value, json};
use std::path::PathBuf;

/// No frame is longer (802.3-2018 3.2.7).
const BEST_EFFORT_MAX: u32 = 2_000;

/// What is to be verified, and on which assumptions.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Description of the network, or directory of a system.toml
    system: PathBuf,
    /// Programs of the stations: texts, or what `onbeat nc asm` made of them
    #[arg(required = true)]
    programs: Vec<PathBuf>,
    /// How far each clock is off at most
    #[arg(long, value_name = "PPM", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(..=1_000))]
    drift_ppm: u32,
    /// Longest best-effort frame at each port, with header and check sequence; 0: there is none
    #[arg(long, value_name = "OCTETS", default_value_t = frame::MAX_TAGGED.get(),
          value_parser = clap::value_parser!(u32).range(..=i64::from(BEST_EFFORT_MAX)))]
    best_effort: u32,
    /// Writes the timeline of the first counterexample as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    trust: bool,
}

/// Decides every property, and shows what contradicts one.
pub(super) fn verify(arguments: &VerifyArguments) -> anyhow::Result<Exit> {
    let described = Source::load(&arguments.system, arguments.json, Trust::by(arguments.trust))?;
    let programs: Vec<_> =
        arguments.programs.iter().map(|path| super::load(path)).collect::<Result<_, _>>()?;
    let assumptions = NetworkAssumptions {
        drift_ppb_max: arguments.drift_ppm * 1_000,
        best_effort: Some(arguments.best_effort).filter(|it| *it > 0).map(Octets::new),
    };
    let model = network_model(&described.system, &programs, assumptions).map_err(|errors| {
        source::show(&[], &errors);
        Wrong
    })?;
    let verification = decide(&model);
    let first = verification.properties.iter().flat_map(|property| &property.findings);
    let first =
        first.filter_map(|finding| Some((finding, finding.counterexample.as_ref()?))).next();
    if let Some(path) = &arguments.svg {
        match first {
            Some((finding, example)) => {
                let drawn = picture(finding, timeline(&model, example));
                write_files(&[(path, drawn)])?;
            }
            None => terminal::say("onbeat: nothing is contradicted: no picture is written"),
        }
    }
    if arguments.json {
        terminal::print_json(&document(&model, &verification))?;
    } else {
        terminal::print(text(&model, &verification));
    }
    let is = |verdict| verification.properties.iter().any(|it| it.verdict == verdict);
    Ok(match () {
        () if is(ProofVerdict::Violated) => Exit::Description,
        () if is(ProofVerdict::Unknown) => Exit::Unproven,
        () => Exit::Fine,
    })
}

fn word(verdict: ProofVerdict) -> &'static str {
    match verdict {
        ProofVerdict::Proven => "proven",
        ProofVerdict::Violated => "violated",
        ProofVerdict::Unknown => "unknown",
    }
}

/// Where a finding is, as `FILE:LINE`; the station alone where a line is unknown.
fn place(model: &NetworkModel, finding: &ProofFinding) -> Option<String> {
    let program = &model.stations.get(finding.station?)?.program;
    Some(match finding.line {
        0 => program.station.clone(),
        line => format!("{}:{line}", program.source),
    })
}

fn text(model: &NetworkModel, verification: &Verification) -> String {
    let mut properties = grid(&["property", "verdict"]);
    for DecidedProperty { property, verdict, .. } in &verification.properties {
        properties.add_row(vec![Cell::new(property.name()), Cell::new(word(*verdict))]);
    }
    let mut lines = vec![ruled(&properties)];
    for finding in verification.properties.iter().flat_map(|property| &property.findings) {
        let weight = match finding.weight {
            FindingWeight::Violation => "violation",
            FindingWeight::Doubt => "not decided",
            FindingWeight::Note => "note",
        };
        let place = place(model, finding).map(|place| format!("{place}: ")).unwrap_or_default();
        lines.push(format!("\n{weight}[{}]: {place}{}", finding.code, finding.message));
        if let Some(example) = &finding.counterexample {
            lines.push(timeline(model, example).text().trim_end().to_owned());
        }
    }
    if let Some((least, most)) = verification.round_ns {
        let rounds = verification
            .hyper_round
            .map_or_else(String::new, |rounds| format!("; all repeats after {rounds} of them"));
        lines.push(format!("\nA round takes {least} to {most} ns{rounds}."));
    }
    if !verification.shares.is_empty() {
        lines.push(shares(model, &verification.shares));
    }
    lines.join("\n")
}

/// What is left of each link.
fn shares(model: &NetworkModel, shares: &[BestEffortShare]) -> String {
    let mut table = grid(&["link", "left, %", "longest gap, ns", "longest frame, octets"]);
    for share in shares {
        let percent = format!("{}.{:02}", share.share_ppm / 10_000, share.share_ppm % 10_000 / 100);
        table.add_row(vec![
            Cell::new(&model.resources[share.resource].name),
            right(percent),
            right(share.longest_gap_ns.to_string()),
            right(match share.longest_frame_octets {
                octets if octets > BEST_EFFORT_MAX => "any".to_owned(),
                octets => octets.to_string(),
            }),
        ]);
    }
    ruled(&table)
}

fn document(model: &NetworkModel, verification: &Verification) -> Value {
    let property = |property: &DecidedProperty| {
        let findings = property.findings.iter().map(|finding| finding_of(model, finding));
        json!({
            "property": property.property.name(),
            "verdict": word(property.verdict),
            "findings": findings.collect::<Vec<_>>(),
        })
    };
    let share = |share: &BestEffortShare| {
        json!({
            "link": model.resources[share.resource].name,
            "share_ppm": share.share_ppm,
            "longest_gap_ns": share.longest_gap_ns,
            "longest_frame_octets": share.longest_frame_octets,
        })
    };
    let round = verification.round_ns;
    json!({
        "format": "onbeat-network-code-proof",
        "version": 1,
        "properties": verification.properties.iter().map(property).collect::<Vec<_>>(),
        "shares": verification.shares.iter().map(share).collect::<Vec<_>>(),
        "round_min_ns": round.map(|(least, _)| least),
        "round_max_ns": round.map(|(_, most)| most),
        "hyper_round": verification.hyper_round,
    })
}

fn finding_of(model: &NetworkModel, finding: &ProofFinding) -> Value {
    let program = finding.station.map(|station| &model.stations[station].program);
    let example = finding.counterexample.as_ref().map(|example| {
        let Timeline { from_ns, to_ns, rows } = timeline(model, example);
        let row = |row: &TimelineRow| {
            let mark = |mark: &TimelineMark| {
                json!({ "begin_ns": mark.begin_ns, "end_ns": mark.end_ns, "what": mark.label })
            };
            json!({ "name": row.name, "marks": row.marks.iter().map(mark).collect::<Vec<_>>() })
        };
        let rows = rows.iter().map(row).collect::<Vec<_>>();
        let choices = &example.choices;
        json!({
            "from_ns": from_ns,
            "to_ns": to_ns,
            "drift_ppb": choices.drift_ppb,
            "rows": rows,
        })
    });
    json!({
        "code": finding.code.as_str(),
        "weight": match finding.weight {
            FindingWeight::Violation => "violation",
            FindingWeight::Doubt => "doubt",
            FindingWeight::Note => "note",
        },
        "station": program.map(|program| &program.station),
        "file": program.filter(|_| finding.line > 0).map(|program| &program.source),
        "line": Some(finding.line).filter(|line| *line > 0),
        "message": finding.message,
        "counterexample": example,
    })
}

fn picture(finding: &ProofFinding, shown: Timeline) -> String {
    let mark = |mark: TimelineMark| LaneMark {
        begin_ns: mark.begin_ns,
        end_ns: mark.end_ns,
        label: mark.label,
    };
    let lanes = shown
        .rows
        .into_iter()
        .map(|row| TimeLane { name: row.name, marks: row.marks.into_iter().map(mark).collect() });
    let title = format!("{}: {}", finding.code, finding.message);
    svg(&Lanes { title, from_ns: shown.from_ns, to_ns: shown.to_ns, lanes: lanes.collect() })
}
