//! One C file: through the preprocessor, translated, written out.

use super::arguments::compiler;
use super::{Driver, foreign, watched};
use crate::trust;
use anyhow::{Context, anyhow, bail};
use onbeat_model::diagnostic::{Diagnostic, SourceFile};
use onbeat_program::graph::UnitGraph;
use onbeat_program::source::{Expanded, NotFollowed, Unit, apply, normal};
use onbeat_program::timedc::{Target, Translation, translate};
use onbeat_run::environment;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Defined while programs are read for translation: the constructs are then no macros.
const TRANSLATING: &str = "-DTIMEDC_TRANSLATING";

/// A C file that was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) path: PathBuf,
    /// Of the unit, the main one first.
    pub(super) files: Vec<SourceFile>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What it becomes; nothing if it stays as it is.
    pub(super) generated: Option<String>,
    /// What it does in time.
    pub(super) graph: UnitGraph,
    /// The abstract channels that it uses, of those that are bound, and its tasks.
    pub(super) bound: Vec<String>,
    pub(super) tasks: Vec<String>,
    /// Its rule for `make`, where that was asked for.
    pub(super) dependencies: Option<PathBuf>,
}

/// Why a file could not be read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The C preprocessor has said why.
    Compiler,
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<NotFollowed> for Stop {
    fn from(NotFollowed { origin }: NotFollowed) -> Self {
        Self::Other(anyhow!("what macros make of octet {} on cannot be followed", origin.start))
    }
}

impl Driver {
    /// Reads and translates a file.
    pub(super) fn read(&self, path: &Path, number: usize) -> Result<Read, Stop> {
        let shown = path.display().to_string();
        let text = watched::read(&self.base.join(path)).map_err(anyhow::Error::msg)?;
        let text =
            String::from_utf8(text).map_err(|_| anyhow!("{shown}: the file is not UTF-8"))?;
        let (plain, mut diagnostics) = normal(&text, 0);
        let dependencies = self.dependencies(number);
        let first = self.first(path, &text, &plain, dependencies.as_deref())?;
        let unit = Unit::read(&shown, &text, &first, &mut |name| header(&self.base, name))
            .map_err(Stop::from_header)?;
        let expanded: Expanded = unit.expand(&mut |marked: &str| {
            let output = self.preprocess(path, Some(marked), &[])?;
            Ok::<_, Stop>(String::from_utf8_lossy(&output.stdout).into_owned())
        })?;
        let files = unit.files();
        let translation = translate(&expanded, &files, self.wanted.options.clone());
        let is_plain = translation.edits.is_empty()
            && translation.after.is_empty()
            && plain == text
            && diagnostics.is_empty();
        let generated = (!is_plain).then(|| generated(&unit, &expanded, &translation));
        diagnostics.extend(translation.diagnostics);
        Ok(Read {
            path: path.to_owned(),
            files,
            diagnostics,
            generated,
            graph: translation.graph,
            bound: translation.bound,
            tasks: translation.tasks.into_iter().map(|task| task.name).collect(),
            dependencies,
        })
    }

    /// The preprocessor's output of the file as it is, with its definitions.
    fn first(
        &self,
        path: &Path,
        text: &str,
        plain: &str,
        dependencies: Option<&Path>,
    ) -> Result<String, Stop> {
        let mut more: Vec<OsString> = vec!["-dD".into()];
        if let Some(file) = dependencies {
            more.extend(self.wanted.dependencies.iter().cloned());
            let is_named = |word: &OsString| word == "-MT" || word == "-MQ";
            if !self.wanted.dependencies.iter().any(is_named) {
                more.extend(["-MT".into(), self.object_name(path).into()]);
            }
            more.extend(["-MF".into(), file.into()]);
        }
        let line = format!("#line 1 \"{}\"\n", escape(&path.display().to_string()));
        let changed = line + plain.trim_start_matches('\u{feff}');
        let output = self.preprocess(path, (plain != text).then_some(&changed), &more)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            crate::terminal::say(said.trim_end());
            return Err(Stop::Compiler);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs the preprocessor on a file, or on a text in its place.
    fn preprocess(
        &self,
        path: &Path,
        text: Option<&str>,
        more: &[OsString],
    ) -> anyhow::Result<std::process::Output> {
        let mut command = self.compiler();
        command.args(["-E", TRANSLATING]).args(more);
        match text {
            // Not "-": headers beside the file would be looked for in the working directory first.
            Some(_) => command.args(["-x", "c", "/dev/stdin"]),
            None => command.args(["-x", "c"]).arg(path),
        };
        if text.is_some() {
            command.arg("-iquote").arg(directory(path));
        }
        command.stdin(if text.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = watched::output(&mut command, text, &self.interrupted);
        self.go_on()?;
        let output = output?;
        if !self.is_trusted {
            let made = &output.stdout;
            if let Some(file) = foreign::included(made, &self.base, &self.headers()?) {
                bail!(trust::outside(&file));
            }
        }
        Ok(output)
    }

    /// The directories with the compiler's own headers, which it names, and ours.
    fn headers(&self) -> anyhow::Result<Vec<PathBuf>> {
        static COMPILERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
        let mut headers = self.places.includes();
        headers.extend(self.recipe.own_includes());
        if COMPILERS.get().is_none() {
            let words = compiler();
            let mut command = environment::program(&words[0]);
            command.args(&words[1..]).args(["-E", "-v", "-x", "c", "/dev/null"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let output = watched::output(&mut command, None, &self.interrupted)?;
            let said = String::from_utf8_lossy(&output.stderr);
            let named = said.lines().skip_while(|line| !line.starts_with("#include <"));
            let named = named.skip(1).take_while(|line| line.starts_with(' '));
            let _ = COMPILERS.set(named.map(|line| PathBuf::from(line.trim())).collect());
        }
        headers.extend(COMPILERS.get().into_iter().flatten().cloned());
        Ok(headers)
    }

    /// The C compiler with the user's options and our headers.
    pub(super) fn compiler(&self) -> Command {
        let words = compiler();
        let mut command = environment::program(&words[0]);
        command.args(&words[1..]).args(&self.wanted.flags);
        if !self.base.as_os_str().is_empty() {
            command.current_dir(&self.base);
        }
        if self.wanted.options.target == Target::FreeRtos {
            for directory in self.recipe.own_includes() {
                command.arg("-isystem").arg(directory);
            }
        }
        for directory in self.places.includes() {
            command.arg("-isystem").arg(directory);
        }
        command
    }

    /// The object file that a C file becomes by its name.
    pub(super) fn object_name(&self, path: &Path) -> PathBuf {
        match &self.wanted.output {
            Some(output) if self.wanted.stage == super::Stage::Object => output.clone(),
            _ => Path::new(path.file_name().unwrap_or_default()).with_extension("o"),
        }
    }

    /// Where the rule of a file is written first.
    fn dependencies(&self, number: usize) -> Option<PathBuf> {
        let is_wanted = |word: &OsString| word == "-MD" || word == "-MMD";
        let is_wanted = self.wanted.dependencies.iter().any(is_wanted);
        is_wanted.then(|| self.directory.path().join(format!("{number}.d")))
    }
}

impl Stop {
    fn from_header(message: String) -> Self {
        Self::Other(anyhow!(message))
    }
}

/// The directory of a file.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// A command for messages.
pub(super) fn name_of(command: &Command) -> String {
    format!("the C compiler, {}", command.get_program().to_string_lossy())
}

/// Reads a header. Comments need not be UTF-8: what is not is one other octet.
fn header(base: &Path, path: &str) -> Result<String, String> {
    let octets = watched::read(&base.join(path))?;
    let mut text = String::with_capacity(octets.len());
    for chunk in octets.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Ok(text)
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The generated C.
fn generated(unit: &Unit, expanded: &Expanded, translation: &Translation) -> String {
    let main = &unit.files()[0];
    let text = apply(unit, expanded, &translation.edits);
    let (before, after) = (translation.before.trim_end(), translation.after.trim_end());
    let path = escape(&main.path);
    let ours = "#line 1 \"<timed c>\"\n";
    format!("{ours}{before}\n#line 1 \"{path}\"\n{text}\n{ours}{after}\n")
}

impl Read {
    /// Writes the generated C to a file of the directory, under the name of the user's.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<Option<PathBuf>> {
        let Some(text) = &self.generated else { return Ok(None) };
        let Some(name) = self.path.file_name() else { bail!("{} is no file", self.path.display()) };
        std::fs::create_dir_all(directory)?;
        let mut file = directory.join(name);
        if file.extension().is_none_or(|end| end != "c") {
            file.as_mut_os_string().push(".c");
        }
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        Ok(Some(file))
    }
}
