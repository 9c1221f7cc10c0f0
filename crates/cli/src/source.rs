//! Reading a description from disk, and showing what is wrong with it.

use crate::chosen::WrongArgument;
use crate::study::{self, Graphs};
use crate::trust::{self, Trust};
use crate::{input, terminal};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
#[cfg(feature = "exact")]
use indicatif::ProgressBar;
use onbeat_bounds::{KeptPlan, PlanDocument};
use onbeat_model::codes::plan as codes;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin, Severity, SourceFile};
use onbeat_model::plan::Plan;
use onbeat_model::system::{Backend, ReservationMode, RunSettings, System};
use onbeat_model::timing::TimingReport;
use onbeat_net::network_code::CarryingStation;
use onbeat_network_code::planning::{BusOptions, plan_bus, plan_channels};
use onbeat_timing::tfg::{self, Limits};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The most steps of one search for a schedule; the limit of the tests.
#[cfg(feature = "exact")]
const EXACT_STEPS: u64 = 100_000;

/// A directory's description.
const DESCRIPTION: &str = "system.toml";

/// How many warnings of one code are shown to a person; JSON has all.
const WARNINGS_SHOWN: usize = 20;

/// A description that was read and found right.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where the description is, and programs are found.
    pub(crate) directory: PathBuf,
    /// What it says.
    pub(crate) system: System,
    files: Vec<SourceFile>,
    /// The description's file and those that it names, by their paths below the directory.
    named: Vec<String>,
    /// Whether what is wrong is also printed for machines.
    json: bool,
    /// Whether all that the description says may go to the C compiler.
    is_trusted: bool,
    /// Those of its programs, once they have been asked for.
    graphs: OnceCell<Graphs>,
    /// Where channels are in an earlier plan.
    kept: KeptPlan,
    /// The file of that plan.
    kept_from: Option<PathBuf>,
    /// Whether hosts and bridges may decide in a run who gets what a port has too little of.
    is_to_run: bool,
}

/// The description has errors, which have been shown.
#[derive(Debug)]
pub(crate) struct Wrong;

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the description has errors")
    }
}
impl std::error::Error for Wrong {}

/// A description that was read, right or wrong.
#[derive(Debug)]
pub(crate) struct Examined {
    directory: PathBuf,
    is_trusted: bool,
    files: Vec<SourceFile>,
    named: Vec<String>,
    system: Option<System>,
    diagnostics: Vec<Diagnostic>,
}

impl Examined {
    /// Reads the description at `path`, or `system.toml` in the directory `path`.
    fn read(path: &Path, trust: Trust) -> anyhow::Result<Self> {
        let file = if path.is_dir() { path.join(DESCRIPTION) } else { path.to_owned() };
        let directory = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let is_trusted = trust::of(&directory, trust)?;
        let allowed = |name: &Path, file: &Path| match trust::is_inside(name, &directory) {
            false if !is_trusted => Err(trust::outside(name)),
            _ => read(file),
        };
        let name = Path::new(file.file_name().unwrap_or_default());
        let text = allowed(name, &file).map_err(anyhow::Error::msg)?;
        let shown = file.display().to_string();
        let mut named = vec![name.to_string_lossy().into_owned()];
        let loaded = onbeat_description::load(&shown, &text, &mut |name| {
            named.push(name.to_owned());
            allowed(Path::new(name), &directory.join(name))
        });
        let (files, mut system, mut diagnostics) =
            (loaded.sources, loaded.system, loaded.diagnostics);
        let synchronised = system.as_mut().map(onbeat_net::gptp::synchronise);
        if let Some(Err(errors)) = synchronised {
            diagnostics.extend(errors);
            system = None;
        }
        if let Some(system) = &mut system {
            onbeat_bounds::choose_classes(system);
        }
        Ok(Self { directory, is_trusted, files, named, system, diagnostics })
    }

    /// Reads a description and also looks for what prevents its plans; without bounds only for what
    /// prevents routes and reservations.
    pub(crate) fn with_plan(path: &Path, bounds: bool, trust: Trust) -> anyhow::Result<Self> {
        let mut examined = Self::read(path, trust)?;
        let Some(system) = examined.system.clone() else { return Ok(examined) };
        let graphs = study::graphs(&system, &examined.directory, examined.is_trusted);
        let runs = || system.scenarios.iter().map(|s| s.run).chain([system.run]);
        let key = |d: &Diagnostic| (d.code, d.at.as_ref().map(|at| at.0), d.message.clone());
        let mut seen: HashSet<_> = examined.diagnostics.iter().map(key).collect();
        let (plan, srp) = (ReservationMode::Plan, ReservationMode::Srp);
        let (bridges, stations) = (Backend::Bridges, Backend::NetworkCode);
        let kinds = [
            (false, plan, bridges),
            (true, plan, bridges),
            (true, srp, bridges),
            (true, plan, stations),
            (true, srp, stations),
        ];
        for (protected, reservation, backend) in kinds {
            let is_it = |run: RunSettings| {
                let same = run.protected == protected && run.backend == backend;
                same && (!protected || run.reservation == reservation)
            };
            if !runs().any(is_it) {
                continue;
            }
            let mut system = system.clone();
            (system.run.reservation, system.run.backend) = (reservation, backend);
            let found = match bounds || backend == stations {
                true => findings(&system, &graphs, protected).unwrap_or_else(|errors| errors),
                false => {
                    onbeat_bounds::plan_without_bounds(&system, protected, &KeptPlan::default())
                        .err()
                        .unwrap_or_default()
                }
            };
            let new = found.into_iter().filter(|d| seen.insert(key(d)));
            examined.diagnostics.extend(new);
        }
        examined.diagnostics.extend(graphs.unread);
        let before = u16::try_from(examined.files.len()).unwrap_or(u16::MAX);
        examined.files.extend(graphs.files);
        let of_programs = graphs.diagnostics.into_iter().map(|d| study::moved(d, before));
        examined.diagnostics.extend(of_programs);
        Ok(examined)
    }

    /// The system, if nothing is wrong.
    pub(crate) fn right(&self) -> Option<&System> {
        let wrong = self.diagnostics.iter().any(|d| d.severity == Severity::Error);
        self.system.as_ref().filter(|_| !wrong)
    }

    /// Shows what was found on standard error.
    pub(crate) fn show(&self) {
        show(&self.files, &self.diagnostics);
    }

    /// What was found, for machines.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let name = self.system.as_ref().map(|s| s.name.as_str());
        to_json(name, &self.files, &self.diagnostics)
    }
}

/// What the user should know of a system's plan and of its programs' timing; what prevents them as
/// an error.
fn findings(
    system: &System,
    graphs: &Graphs,
    protected: bool,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let (mut plan, mut found) = planned(system, protected, &KeptPlan::default())?;
    let study = study::study(system, &plan, graphs, Limits::default())?;
    let Some(study) = study else {
        found.extend(onbeat_bounds::warnings(system, &plan));
        return Ok(found);
    };
    study::promise(system, graphs, &study, &mut plan);
    found.extend(onbeat_bounds::warnings(system, &plan));
    // Without reservations nothing is promised: that is what such a run shows.
    if protected || !system.channels.iter().any(|channel| channel.reserve) {
        found.extend(tfg::findings(&study, Some(system)));
    }
    Ok(found)
}

/// The plan of a system by its backend, and where the analysis ended early.
fn planned(
    system: &System,
    protected: bool,
    kept: &KeptPlan,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    match system.run.backend {
        Backend::Bridges => onbeat_bounds::plan_and_limits(system, protected, kept),
        Backend::NetworkCode => {
            let (plan, bus) = plan_channels(system, &BusOptions::default())?;
            Ok((plan, bus.warnings))
        }
    }
}

/// What was found in a description, for machines.
pub(crate) fn to_json(
    system: Option<&str>,
    files: &[SourceFile],
    diagnostics: &[Diagnostic],
) -> serde_json::Value {
    let ends = |file: &SourceFile| -> Vec<usize> {
        file.text.match_indices('\n').map(|(at, _)| at).collect()
    };
    let ends: Vec<Vec<usize>> = files.iter().map(ends).collect();
    let line = |origin: Origin| {
        let ends = ends.get(usize::from(origin.file))?;
        Some(1 + ends.partition_point(|end| *end < origin.start as usize))
    };
    let of_one = |diagnostic: &Diagnostic| {
        let origin = diagnostic.at.as_ref().map(|(origin, _)| *origin);
        let file = origin.and_then(|origin| files.get(usize::from(origin.file)));
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        serde_json::json!({
            "severity": severity,
            "code": diagnostic.code.as_str(),
            "file": file.map(|f| &f.path),
            "line": origin.and_then(line),
            "message": diagnostic.message,
            "help": diagnostic.help,
        })
    };
    serde_json::json!({
        "version": 1,
        "system": system,
        "ok": diagnostics.iter().all(|d| d.severity != Severity::Error),
        "diagnostics": diagnostics.iter().map(of_one).collect::<Vec<_>>(),
    })
}

impl Source {
    /// Reads the description at `path`, or `system.toml` in the directory `path`, and shows what
    /// is wrong with it.
    /// With `json`, errors are also printed on standard output, as `check` prints them.
    pub(crate) fn load(path: &Path, json: bool, trust: Trust) -> anyhow::Result<Self> {
        let examined = Examined::read(path, trust)?;
        examined.show();
        if json && examined.right().is_none() {
            terminal::print(format_args!("{:#}", examined.to_json()));
        }
        let system = examined.system.ok_or(Wrong)?;
        Ok(Self {
            directory: examined.directory,
            system,
            files: examined.files,
            named: examined.named,
            json,
            is_trusted: examined.is_trusted,
            graphs: OnceCell::new(),
            kept: KeptPlan::default(),
            kept_from: None,
            is_to_run: true,
        })
    }

    /// The description's file and those that it names, by their paths below the directory; none
    /// without a description.
    pub(crate) fn named(&self) -> &[String] {
        &self.named
    }

    /// With channels where they are in an earlier plan, if there is one.
    pub(crate) fn keeping(mut self, earlier: Option<&PlanDocument>) -> Self {
        self.kept = earlier.map(|plan| KeptPlan::new(&self.system, plan)).unwrap_or_default();
        self
    }

    /// The same with the file of the earlier plan, for [`Self::subject`].
    pub(crate) fn kept_from(mut self, file: Option<&Path>) -> Self {
        self.kept_from = file.map(Path::to_owned);
        self
    }

    /// What follows `onbeat run` in the description's directory for the same system and plan.
    pub(crate) fn subject(&self) -> Vec<String> {
        let mut words = match (self.system.sources_alone(), self.named.first()) {
            (Some(source), _) => source.files.clone(),
            (None, Some(file)) if file != DESCRIPTION => vec![file.clone()],
            _ => vec![".".to_owned()],
        };
        if let Some(file) = &self.kept_from {
            let [whole, directory] = [file, &self.directory].map(|it| it.canonicalize().ok());
            let below = whole.as_deref().zip(directory.as_deref());
            let below = below.and_then(|(file, directory)| file.strip_prefix(directory).ok());
            let shown = below.or(whole.as_deref()).unwrap_or(file).display().to_string();
            words.extend(["--keep".to_owned(), shown]);
        }
        words
    }

    /// With channels in windows that a search over all schedules found, where the plan finds none.
    #[cfg(feature = "exact")]
    pub(crate) fn with_exact_schedule(mut self) -> anyhow::Result<Self> {
        let spinner = ProgressBar::new_spinner().with_message("searching all gate schedules");
        spinner.enable_steady_tick(std::time::Duration::from_millis(200));
        let found = onbeat_bounds::search_schedules(&self.system, &self.kept, EXACT_STEPS);
        spinner.finish_and_clear();
        if let Some(windows) = found.map_err(|errors| self.wrong(&errors))? {
            terminal::say("onbeat: the windows are those of the exact search");
            self.kept = windows;
        }
        Ok(self)
    }

    /// This command was built without the search.
    #[cfg(not(feature = "exact"))]
    pub(crate) fn with_exact_schedule(self) -> anyhow::Result<Self> {
        let why = "this onbeat was built without the exact search (feature `exact` of onbeat-cli)";
        Err(WrongArgument(why.to_owned()).into())
    }

    /// How many channels a plan of it leaves where they were, and how many were somewhere.
    pub(crate) fn held(&self, plan: &Plan) -> [usize; 2] {
        self.kept.held(plan)
    }

    /// A system without a description, whose programs are found in the current directory.
    pub(crate) fn without_description(system: System, json: bool) -> Self {
        Self {
            directory: PathBuf::from("."),
            system,
            files: Vec::new(),
            named: Vec::new(),
            json,
            is_trusted: true,
            graphs: OnceCell::new(),
            kept: KeptPlan::default(),
            kept_from: None,
            is_to_run: true,
        }
    }

    /// The same to be planned only: what a plan refuses is an error.
    pub(crate) fn only_planned(self) -> Self {
        Self { is_to_run: false, ..self }
    }

    /// Plans `system`, which is this description's but for its run settings.
    pub(crate) fn plan(&self, system: &System, protected: bool) -> anyhow::Result<Plan> {
        let (plan, mut found) = self.plan_to_run(system, protected)?;
        found.extend(onbeat_bounds::warnings(system, &plan));
        show(&self.files, &found);
        Ok(plan)
    }

    /// The plan, and what the user should know of it. Where hosts and bridges reserve, too little
    /// bandwidth alone prevents no run: they decide who gets it, and nothing has a bound.
    pub(crate) fn plan_to_run(
        &self,
        system: &System,
        protected: bool,
    ) -> anyhow::Result<(Plan, Vec<Diagnostic>)> {
        if system.run.backend == Backend::NetworkCode && !self.kept.is_none() {
            let why = "`--keep` is for `backend = \"bridges\"`: slots are planned anew";
            return Err(WrongArgument(why.to_owned()).into());
        }
        if system.run.backend == Backend::NetworkCode && !protected {
            let why = "`--unprotected` is for `backend = \"bridges\"`: stations send in slots only";
            return Err(WrongArgument(why.to_owned()).into());
        }
        let errors = match planned(system, protected, &self.kept) {
            Ok(planned) => return Ok(planned),
            Err(errors) => errors,
        };
        let run = system.run;
        let by_protocol = run.reservation == ReservationMode::Srp;
        let is_open = self.is_to_run
            && protected
            && by_protocol
            && run.backend == Backend::Bridges
            && errors.iter().all(|error| error.code == codes::OVERLOADED);
        let planned =
            is_open.then(|| onbeat_bounds::plan_for_protocol(system, &self.kept).ok()).flatten();
        // Of what is refused nothing else is analysed: there is no other error then.
        planned.ok_or_else(|| self.wrong(&errors).into())
    }

    /// The same without any bound.
    pub(crate) fn plan_without_bounds(
        &self,
        system: &System,
        protected: bool,
    ) -> anyhow::Result<Plan> {
        let planned = onbeat_bounds::plan_without_bounds(system, protected, &self.kept);
        Ok(planned.map_err(|errors| self.wrong(&errors))?)
    }

    /// The stations that carry the channels of a system; none if its backend is another one.
    pub(crate) fn stations(&self, system: &System) -> anyhow::Result<Vec<CarryingStation>> {
        if system.run.backend == Backend::Bridges {
            return Ok(Vec::new());
        }
        let planned = plan_bus(system, &BusOptions::default());
        let planned = planned.map_err(|errors| self.wrong(&errors))?;
        let stations = planned.stations.into_iter();
        let carrying = stations
            .map(|station| CarryingStation { program: station.program, channels: station.buffers });
        Ok(carrying.collect())
    }

    /// The same with the bounds of chains as the programs' timing has them, and that timing if any
    /// program is known.
    pub(crate) fn plan_and_study(
        &self,
        system: &System,
        protected: bool,
        limits: Limits,
    ) -> anyhow::Result<(Plan, Option<TimingReport>)> {
        let planned = self.plan_to_run(system, protected)?;
        self.study(system, planned, limits)
    }

    /// The same of a plan that is there, with what the user should know of it.
    pub(crate) fn study(
        &self,
        system: &System,
        (mut plan, mut found): (Plan, Vec<Diagnostic>),
        limits: Limits,
    ) -> anyhow::Result<(Plan, Option<TimingReport>)> {
        let wrong = |errors: Vec<Diagnostic>| self.wrong(&errors);
        let graphs = self.graphs();
        if plan.channels.iter().any(|channel| channel.protected && channel.bounds.is_empty()) {
            show(&self.files, &found);
            return Ok((plan, None));
        }
        let study = study::study(system, &plan, graphs, limits).map_err(wrong)?;
        if let Some(study) = &study {
            study::promise(system, graphs, study, &mut plan);
        }
        found.extend(onbeat_bounds::warnings(system, &plan));
        show(&self.files, &found);
        Ok((plan, study))
    }

    /// The graphs of its programs.
    pub(crate) fn graphs(&self) -> &Graphs {
        self.graphs.get_or_init(|| {
            let graphs = study::graphs(&self.system, &self.directory, self.is_trusted);
            show(&self.files, &graphs.unread);
            graphs
        })
    }

    /// Shows what is wrong with its programs' sources, and why their timing cannot be followed.
    pub(crate) fn show_programs(&self) -> Result<(), Wrong> {
        let Graphs { files, diagnostics, .. } = self.graphs();
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(wrong(Some(&self.system.name), files, diagnostics, self.json));
        }
        show(files, diagnostics);
        Ok(())
    }

    /// Shows what the user should know of it.
    pub(crate) fn show(&self, diagnostics: &[Diagnostic]) {
        show(&self.files, diagnostics);
    }

    /// Shows what is wrong.
    pub(crate) fn wrong(&self, diagnostics: &[Diagnostic]) -> Wrong {
        wrong(Some(&self.system.name), &self.files, diagnostics, self.json)
    }
}

/// Shows what is wrong in files, with `json` also on standard output, as `check` prints it.
pub(crate) fn wrong(
    system: Option<&str>,
    files: &[SourceFile],
    diagnostics: &[Diagnostic],
    json: bool,
) -> Wrong {
    show(files, diagnostics);
    if json {
        terminal::print(format_args!("{:#}", to_json(system, files, diagnostics)));
    }
    Wrong
}

/// Reads a file as text; of one that is larger than any may be, only so much that this shows.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    let most = onbeat_model::limits::FILE_OCTETS as u64 + 1;
    let mut octets = Vec::new();
    let read = input::open(file)?.take(most).read_to_end(&mut octets);
    read.map_err(|error| format!("{}: {error}", file.display()))?;
    String::from_utf8(octets).map_err(|_| format!("{}: the file is not UTF-8", file.display()))
}

/// Shows diagnostics on standard error, with the lines that they are about.
pub(crate) fn show(files: &[SourceFile], diagnostics: &[Diagnostic]) {
    let styled = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    let mut warnings: BTreeMap<Code, usize> = BTreeMap::new();
    for diagnostic in diagnostics {
        if diagnostic.severity == Severity::Warning {
            let count = warnings.entry(diagnostic.code).or_default();
            *count += 1;
            if *count > WARNINGS_SHOWN {
                continue;
            }
        }
        terminal::say(format_args!("{}\n", renderer.render(&report(files, diagnostic))));
    }
    for (code, count) in warnings.iter().filter(|(_, count)| **count > WARNINGS_SHOWN) {
        let more = count - WARNINGS_SHOWN;
        terminal::say(format_args!(
            "onbeat: {more} more warnings {}; `onbeat check --json` lists all",
            code.as_str()
        ));
    }
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    if errors > 0 {
        let plural = if errors == 1 { "error" } else { "errors" };
        terminal::say(format_args!("onbeat: {errors} {plural}; docs/errors.md explains each code"));
    }
}

fn report<'a>(files: &'a [SourceFile], diagnostic: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    let snippet =
        |file: &'a SourceFile| Snippet::source(file.text.as_str()).path(file.path.as_str());
    let range = |origin: &Origin| origin.start as usize..origin.end as usize;
    let mut primary_file = None;
    if let Some((origin, label)) = &diagnostic.at {
        let Some(file) = files.get(usize::from(origin.file)) else { return vec![group] };
        let mut shown = snippet(file)
            .annotation(AnnotationKind::Primary.span(range(origin)).label(label.as_str()));
        for (other, label) in diagnostic.related.iter().filter(|(o, _)| o.file == origin.file) {
            shown =
                shown.annotation(AnnotationKind::Context.span(range(other)).label(label.as_str()));
        }
        group = group.element(shown);
        primary_file = Some(origin.file);
    }
    for (other, label) in diagnostic.related.iter().filter(|(o, _)| Some(o.file) != primary_file) {
        if let Some(file) = files.get(usize::from(other.file)) {
            let annotation = AnnotationKind::Context.span(range(other)).label(label.as_str());
            group = group.element(snippet(file).annotation(annotation));
        }
    }
    if !diagnostic.help.is_empty() {
        group = group.element(Level::HELP.message(diagnostic.help.as_str()));
    }
    vec![group]
}
