//! Reading a model with all that it imports, and its sidecar.

use super::sizes;
use crate::chosen::WrongArgument;
use crate::source::{self, Wrong};
use crate::trust::{self, Trust};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use onbeat_description::lf::{self, Description, Loaded, Outside, Table, WaitPlaces};
use onbeat_model::diagnostic::{Diagnostic, Origin, SourceFile};
use onbeat_model::federation::Federation;
use onbeat_model::plan::Plan;
use onbeat_model::system::{Backend, ReservationMode, System};
use onbeat_timing::federation::Waits;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The model and what stands beside it.
#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// Model in Lingua Franca
    #[arg(value_name = "MODEL.lf")]
    pub(crate) model: PathBuf,
    /// Sidecar with what the model does not say
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Option<PathBuf>,
    /// Trusts the model's directory, from now on: the sidecar may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Whose waits federates have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ChosenWaits {
    /// The model's; computed ones where it has none
    Model,
    /// The smallest without tardy messages
    Computed,
}

impl From<ChosenWaits> for Waits {
    fn from(chosen: ChosenWaits) -> Self {
        match chosen {
            ChosenWaits::Model => Self::Model,
            ChosenWaits::Computed => Self::Computed,
        }
    }
}

/// A model that was read, right or wrong.
pub(crate) struct Model {
    loaded: Loaded,
    directory: PathBuf,
    is_trusted: bool,
    /// What the sidecar names and was read.
    named: RefCell<Vec<PathBuf>>,
}

impl Model {
    /// Reads the model and its sidecar, and asks a C compiler for the sizes of its types.
    pub(crate) fn read(arguments: &ModelArguments) -> anyhow::Result<Self> {
        let path = &arguments.model;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let is_trusted = trust::of(&directory, Trust::by(arguments.trust))?;
        let text = named(path, is_trusted)?;
        let sidecar = match &arguments.with {
            Some(file) => Some((file.display().to_string(), named(file, is_trusted)?)),
            None => None,
        };
        let sidecar = sidecar.as_ref().map(|(path, text)| (path.as_str(), text.as_str()));
        let shown = path.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", path.display()))?;
        let mut outside = Outside {
            read: &mut |name| fetch(name, &directory, is_trusted),
            sizes: &mut |question| sizes::sizes(question, &directory),
        };
        let loaded = lf::load(shown, &text, sidecar, &mut outside);
        Ok(Self { loaded, directory, is_trusted, named: RefCell::default() })
    }

    /// The federation, or all that is wrong with the model.
    pub(super) fn federation(&self, json: bool) -> Result<&Federation, Wrong> {
        let Loaded { federation, sources, diagnostics, .. } = &self.loaded;
        federation.as_ref().ok_or_else(|| source::wrong(None, sources, diagnostics, json))
    }

    /// The description of its channels, or all that is wrong or not known. Shows warnings.
    pub(super) fn describe(&self, json: bool) -> Result<Description, Wrong> {
        self.federation(json)?;
        let Loaded { sources, diagnostics, .. } = &self.loaded;
        match lf::describe(&self.loaded, &mut |name| self.fetch(name)) {
            Ok(description) => {
                source::show(sources, diagnostics);
                source::show(sources, &description.warnings);
                Ok(description)
            }
            Err(found) => {
                let all = [&diagnostics[..], &found.diagnostics].concat();
                Err(source::wrong(None, &found.sources, &all, json))
            }
        }
    }

    /// The federation on the stations of the system that the model describes, that system, changed
    /// by `change`, and its plan. Shows warnings.
    pub(super) fn planned(
        &self,
        json: bool,
        change: impl FnOnce(&mut System),
    ) -> Result<(Federation, System, Plan), Wrong> {
        let mut federation = self.federation(json)?.clone();
        let description = self.describe(json)?;
        // What neither model nor sidecar places is placed by the description.
        for placed in &description.document.federates {
            let mut federates = federation.federates.iter_mut();
            if let Some(federate) = federates.find(|federate| federate.name == placed.name) {
                federate.station = Some(placed.station.clone());
            }
        }
        let made = "description of the model";
        let fetch = &mut |name: &str| self.fetch(name);
        let read = onbeat_description::load(made, &description.text, fetch);
        let wrong = |found: &[_]| source::wrong(None, &read.sources, found, json);
        let Some(mut system) = read.system else { return Err(wrong(&read.diagnostics)) };
        change(&mut system);
        // A federation's talkers wait for no protocol.
        system.run.reservation = ReservationMode::Plan;
        system.run.backend = Backend::Bridges;
        onbeat_net::gptp::synchronise(&mut system).map_err(|found| wrong(&found))?;
        onbeat_bounds::choose_classes(&mut system);
        let planned = onbeat_bounds::plan_and_limits(
            &system,
            system.run.protected,
            &onbeat_bounds::KeptPlan::default(),
        );
        let (plan, found) = planned.map_err(|found| wrong(&found))?;
        source::show(&read.sources, &found);
        Ok((federation, system, plan))
    }

    /// Shows what is wrong with the model.
    pub(super) fn wrong(&self, found: &[Diagnostic], json: bool) -> Wrong {
        source::wrong(None, &self.loaded.sources, found, json)
    }

    /// The table of its channels, or why there is none.
    pub(super) fn table(&self, description: &Description, json: bool) -> Result<Table, Wrong> {
        lf::table(&self.loaded, description)
            .map_err(|none| source::wrong(None, &self.loaded.sources, &[*none], json))
    }

    /// Where the model says how long its federates wait.
    pub(super) const fn wait_places(&self) -> &WaitPlaces {
        self.loaded.wait_places()
    }

    /// The files that were read.
    pub(super) fn sources(&self) -> &[SourceFile] {
        &self.loaded.sources
    }

    /// A place as `file:line`.
    pub(super) fn place(&self, at: Origin) -> String {
        let SourceFile { path, text } = &self.loaded.sources[usize::from(at.file)];
        let before = &text.as_bytes()[..at.start as usize];
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        format!("{path}:{line}")
    }

    /// Reads a file that the model or its sidecar names.
    pub(crate) fn fetch(&self, name: &str) -> Result<String, String> {
        self.named.borrow_mut().push(self.directory.join(name));
        fetch(name, &self.directory, self.is_trusted)
    }

    /// Whether a file may be written: what was read would be lost.
    ///
    /// # Errors
    /// It is the model, its sidecar, or what one of them names.
    pub(super) fn spare(&self, out: &Path) -> Result<(), WrongArgument> {
        let Ok(out_real) = out.canonicalize() else { return Ok(()) };
        let sources = self.sources().iter().map(|source| PathBuf::from(&source.path));
        let named = self.named.borrow();
        let mut read = sources.chain(named.iter().cloned());
        if read.any(|path| path.canonicalize().is_ok_and(|real| real == out_real)) {
            let why = format!("{} is read: give the output another name", out.display());
            return Err(WrongArgument(why));
        }
        Ok(())
    }
}

/// Reads a file that the user names, unless it is a link that leads elsewhere.
fn named(path: &Path, is_trusted: bool) -> anyhow::Result<String> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let beside = path.parent().unwrap_or(Path::new("."));
    if !is_trusted && !trust::is_inside(name, beside) {
        return Err(anyhow!(trust::outside(path)));
    }
    source::read(path).map_err(anyhow::Error::msg)
}

/// Models import from directories beside theirs. Other files, also by way of links, must be inside
/// or trusted.
fn fetch(name: &str, directory: &Path, is_trusted: bool) -> Result<String, String> {
    let path = Path::new(name);
    let real = directory.join(path).canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_model = real.extension().is_some_and(|end| end == "lf");
    if !is_model && !is_trusted && !trust::is_inside(path, directory) {
        return Err(trust::outside(path));
    }
    source::read(&directory.join(path))
}
