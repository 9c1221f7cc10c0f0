//! The command `onbeat`: one verb per stage, `run` walks them all.

mod admit;
mod arguments;
mod bounds;
mod build;
mod capture;
mod cc;
mod chosen;
mod clock;
mod compare;
mod completions;
mod deploy;
mod doctor;
mod elf;
mod exit;
mod import;
mod input;
mod join;
mod lf;
#[cfg(test)]
mod manual;
mod measure;
mod messages;
mod nc;
mod netconf;
mod network;
mod new;
mod noise;
mod old_words;
mod on;
mod output;
mod perfetto;
mod plan;
mod recording;
mod run;
mod simulate;
mod source;
mod srp;
mod stat;
mod study;
mod terminal;
mod tfg;
mod top;
mod trust;
mod tune;
mod verify;

use crate::arguments::{Arguments, CheckArguments, ManifestArguments, SchemaKind, Verb};
use crate::exit::Exit;
use crate::source::{Examined, Source};
use crate::trust::Trust;
use clap::Parser;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    old_words::note(std::env::args_os().skip(1));
    let exit = match &arguments.verb {
        Verb::New(new) => new::new(new),
        Verb::Check(check) => self::check(check),
        Verb::Plan(plan) => self::plan::plan(plan),
        Verb::Deploy(deploy) => netconf::deploy(deploy),
        Verb::Run(run) => run::run(run),
        Verb::Simulate(simulate) => simulate::simulate(simulate),
        Verb::Bounds(bounds) => bounds::bounds(bounds),
        Verb::Tfg(tfg) => tfg::tfg(tfg),
        Verb::Import(import) => self::import::import(import),
        Verb::Lf { what } => lf::lf(what),
        Verb::Nc { what } => nc::nc(what),
        Verb::Cc(cc) => cc::cc(cc),
        Verb::Doctor(doctor) => doctor::doctor(doctor),
        Verb::Report(report) => run::report(report),
        Verb::Join(parts) => join::join(parts),
        Verb::Stat(stat) => stat::stat(stat),
        Verb::Top(top) => self::top::top(top),
        Verb::Measure { what } => measure::measure(what),
        Verb::Compare(arguments) => compare::compare(arguments),
        Verb::Echo(echo) => messages::echo(echo),
        Verb::Pub(publish) => messages::publish(publish),
        Verb::Record(record) => messages::record(record),
        Verb::Replay(replay) => messages::replay(replay),
        Verb::Tune(tune) => tune::tune(tune),
        Verb::Clock { what } => clock::clock(what),
        Verb::Noise { what } => noise::noise(what),
        Verb::Srp(srp) => srp::srp(srp),
        Verb::Manifest(manifest) => self::manifest(manifest),
        Verb::Schema { kind } => {
            let text = match kind {
                SchemaKind::System => onbeat_description::schema(),
                SchemaKind::Machines => onbeat_description::machines::schema(),
                SchemaKind::Tasks => onbeat_description::tasks::schema(),
                SchemaKind::LfSidecar => onbeat_description::lf::sidecar_schema(),
                SchemaKind::LfFederation => onbeat_description::lf::schema(),
                SchemaKind::LfSimulation => onbeat_measure::federation::schema(),
                SchemaKind::Results => onbeat_measure::schema(),
                SchemaKind::Simulation => onbeat_measure::simulation::schema(),
                SchemaKind::Tfg => onbeat_report::timing::schema(),
                SchemaKind::Measurement => onbeat_measure::measurement::schema(),
                SchemaKind::Campaign => onbeat_measure::measurement::campaign_schema(),
                SchemaKind::Comparison => onbeat_measure::compare::schema(),
            };
            terminal::print(text.trim_end());
            Ok(Exit::Fine)
        }
        Verb::Completions { shell } => completions::completions(*shell),
        Verb::Part { directory } => on::part(directory),
        Verb::Keeper => {
            onbeat_run::process::keep(std::io::stdin());
            Ok(Exit::Fine)
        }
    };
    let exit = exit.unwrap_or_else(|error| {
        if error.is::<source::Wrong>() {
            return Exit::Description; // what is wrong has been shown
        }
        terminal::say(format_args!("onbeat: {error:#}"));
        if error.is::<chosen::WrongArgument>() { Exit::Usage } else { Exit::Machine }
    });
    match exit {
        // What was to be said is not there, whatever it was.
        exit if exit != Exit::Interrupted && !terminal::is_printed() => Exit::Machine.into(),
        exit => exit.into(),
    }
}

fn check(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let examined =
        Examined::with_plan(&arguments.system, !arguments.no_bounds, Trust::by(arguments.trust))?;
    if arguments.json {
        terminal::print_json(&examined.to_json())?;
    } else {
        examined.show();
    }
    let Some(system) = examined.right() else { return Ok(Exit::Description) };
    if !arguments.json {
        terminal::print(onbeat_report::plan::summary(system));
    }
    Ok(Exit::Fine)
}

fn manifest(arguments: &ManifestArguments) -> anyhow::Result<Exit> {
    let source = Source::load(&arguments.system, false, Trust::AsKnown)?;
    let text = if arguments.first_generation {
        onbeat_description::manifest::to_c_first_generation(&source.system)
    } else {
        onbeat_description::manifest::to_c(&source.system)
    };
    terminal::print(text.map_err(|errors| source.wrong(&errors))?.trim_end());
    Ok(Exit::Fine)
}
