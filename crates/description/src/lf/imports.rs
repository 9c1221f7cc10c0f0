//! The files of a model, and which reactor a name in each of them is.

use super::syntax::{File, Import, Reactor};
use super::{codes, parser};
use crate::{Sink, did_you_mean, shorten};
use onbeat_model::diagnostic::{Diagnostic, SourceFile};
use onbeat_model::limits;
use std::collections::BTreeMap;

/// The most files of one model.
const FILES: usize = 1_000;

/// How many directories up a package is looked for.
const PACKAGE_LEVELS: usize = 8;

/// Fetches a file by its path relative to the directory of the model.
pub(in crate::lf) type Read<'r> = dyn FnMut(&str) -> Result<String, String> + 'r;

/// A reactor by its file and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lf) struct ClassId {
    pub(in crate::lf) file: usize,
    pub(in crate::lf) reactor: usize,
}

/// A file of a model.
pub(in crate::lf) struct Unit {
    /// Relative to the directory of the model, without `.` and, where possible, `..`.
    path: String,
    pub(in crate::lf) tree: File,
    /// Which reactor each name is.
    pub(in crate::lf) names: BTreeMap<String, ClassId>,
}

/// All files; the first is the model itself.
pub(in crate::lf) struct Units {
    pub(in crate::lf) list: Vec<Unit>,
}

impl Units {
    pub(in crate::lf) fn reactor(&self, class: ClassId) -> &Reactor {
        &self.list[class.file].tree.reactors[class.reactor]
    }

    /// The name of a class: a main reactor may have none but its file's.
    pub(in crate::lf) fn name(&self, class: ClassId) -> String {
        match &self.reactor(class).name {
            Some(name) => name.value.clone(),
            None => stem(&self.list[class.file].path),
        }
    }
}

/// The name of a file without directory and ending, as a name in the language.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".lf").unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Reads the model and all that it imports; none if a file has an error.
pub(in crate::lf) fn load(
    name: &str,
    text: &str,
    read: &mut Read<'_>,
    sources: &mut Vec<SourceFile>,
    sink: &mut Sink,
) -> Option<Units> {
    let mut loader = Loader { read, sources, sink, units: Vec::new(), is_whole: true };
    let file = name.rsplit('/').next().unwrap_or(name);
    let shown = name.strip_suffix(file).unwrap_or("").to_owned();
    loader.add(file.to_owned(), name.to_owned(), text.to_owned());
    let mut next = 0;
    while next < loader.units.len() {
        loader.imports(next, &shown);
        next += 1;
    }
    let Loader { mut units, mut is_whole, sink, .. } = loader;
    if !is_whole {
        return None;
    }
    for at in 0..units.len() {
        match own_names(&units, at, sink) {
            Some(names) => units[at].unit.names = names,
            None => is_whole = false,
        }
    }
    let own: Vec<_> = units.iter().map(|loaded| loaded.unit.names.clone()).collect();
    for loaded in &mut units {
        is_whole &= imported_names(loaded, &own, sink);
    }
    let list = units.into_iter().map(|loaded| loaded.unit).collect();
    is_whole.then_some(Units { list })
}

/// A file and which one each of its imports names.
struct LoadedUnit {
    unit: Unit,
    imported: Vec<usize>,
}

struct Loader<'l, 'r> {
    read: &'l mut Read<'r>,
    sources: &'l mut Vec<SourceFile>,
    sink: &'l mut Sink,
    units: Vec<LoadedUnit>,
    /// Whether every file could be read.
    is_whole: bool,
}

impl Loader<'_, '_> {
    /// Parses a file; its position.
    fn add(&mut self, path: String, shown: String, text: String) -> usize {
        let file = u16::try_from(self.sources.len()).unwrap_or(u16::MAX);
        let tree = match parser::parse(&text, file) {
            Ok(tree) => tree,
            Err(wrong) => {
                self.sink.push(*wrong);
                self.is_whole = false;
                File::default()
            }
        };
        self.sources.push(SourceFile { path: shown, text });
        let unit = Unit { path, tree, names: BTreeMap::new() };
        self.units.push(LoadedUnit { unit, imported: Vec::new() });
        self.units.len() - 1
    }

    /// Fetches what a file imports.
    fn imports(&mut self, of: usize, shown: &str) {
        let from = self.units[of].unit.path.clone();
        let imports = self.units[of].unit.tree.imports.clone();
        for import in &imports {
            let found = self.fetch(&from, import, shown);
            self.is_whole &= found.is_some();
            self.units[of].imported.extend(found);
        }
    }

    fn fetch(&mut self, from: &str, import: &Import, shown: &str) -> Option<usize> {
        let paths = candidates(from, &import.from.value, import.is_package);
        let known = |path: &String| self.units.iter().position(|known| known.unit.path == *path);
        if let Some(known) = paths.iter().find_map(known) {
            return Some(known);
        }
        let wrong = |reason: &str| {
            let message = format!("{} cannot be read: {reason}", shorten(&import.from.value));
            let wrong = Diagnostic::error(codes::IMPORT, message, import.from.at, "imported here");
            wrong.help(match import.is_package {
                true => {
                    "packages are looked for in build/lfc_include, as `lingo build` leaves them"
                }
                false => "give a path relative to the directory of this file",
            })
        };
        if self.units.len() == FILES {
            let message = format!("a model has more than {FILES} files");
            let large = Diagnostic::error(codes::TOO_LARGE, message, import.from.at, "this file");
            self.sink.push(large.help("split the model"));
            return None;
        }
        let mut reason = String::new();
        for path in paths {
            match (self.read)(&path) {
                Ok(text) if text.len() > limits::FILE_OCTETS => {
                    let most = limits::FILE_OCTETS;
                    self.sink.push(wrong(&format!("it has more than {most} octets")));
                    return None;
                }
                Ok(text) => {
                    let shown = format!("{shown}{path}");
                    return Some(self.add(path, shown, text));
                }
                Err(error) if reason.is_empty() => reason = error,
                Err(_) => {}
            }
        }
        self.sink.push(wrong(&reason));
        None
    }
}

/// Where a file may be that `from` imports.
fn candidates(from: &str, path: &str, is_package: bool) -> Vec<String> {
    let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
    if !is_package && path.starts_with('/') {
        return vec![normal(path, true)];
    }
    if !is_package {
        return vec![normal(&format!("{directory}/{path}"), false)];
    }
    let (package, file) = path.split_once('/').unwrap_or((path, path));
    let levels = (0..PACKAGE_LEVELS).map(|up| {
        let up = "../".repeat(up);
        normal(&format!("{directory}/{up}build/lfc_include/{package}/src/lib/{file}"), false)
    });
    levels.collect()
}

/// A path without `.`, and without `..` where something stands before it.
fn normal(path: &str, is_absolute: bool) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    if is_absolute { format!("/{joined}") } else { joined }
}

/// The reactors that a file declares.
fn own_names(
    units: &[LoadedUnit],
    file: usize,
    sink: &mut Sink,
) -> Option<BTreeMap<String, ClassId>> {
    let mut names: BTreeMap<String, ClassId> = BTreeMap::new();
    let reactors = &units[file].unit.tree.reactors;
    let mut is_right = true;
    for (reactor, declared) in reactors.iter().enumerate() {
        let Some(name) = &declared.name else { continue };
        if let Some(first) = names.get(&name.value) {
            let message = format!("duplicate reactor `{}`", name.value);
            let twice = Diagnostic::error(codes::DUPLICATE, message, name.at, "the second");
            let twice = twice.related(reactors[first.reactor].at, "the first");
            sink.push(twice.help("rename one of them"));
            is_right = false;
        } else {
            names.insert(name.value.clone(), ClassId { file, reactor });
        }
    }
    is_right.then_some(names)
}

/// Adds the reactors that a file imports.
fn imported_names(
    loaded: &mut LoadedUnit,
    own: &[BTreeMap<String, ClassId>],
    sink: &mut Sink,
) -> bool {
    let mut is_right = true;
    for (import, file) in loaded.unit.tree.imports.iter().zip(&loaded.imported) {
        for (there, here) in &import.reactors {
            let Some(class) = own[*file].get(&there.value) else {
                let message = format!("{} has no reactor `{}`", import.from.value, there.value);
                let known = own[*file].keys().map(String::as_str);
                let help = match did_you_mean(&there.value, known) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => "name a reactor of that file".to_owned(),
                };
                let unknown = Diagnostic::error(codes::UNKNOWN, message, there.at, "not found");
                sink.push(unknown.help(help));
                is_right = false;
                continue;
            };
            let before = loaded.unit.names.insert(here.value.clone(), *class);
            if before.is_some_and(|before| before != *class) {
                let message = format!("duplicate reactor `{}`", here.value);
                let twice = Diagnostic::error(codes::DUPLICATE, message, here.at, "the second");
                sink.push(twice.help("import it under another name, with `as`"));
                is_right = false;
            }
        }
    }
    is_right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file_that_imports() {
        let one = |from, path| candidates(from, path, false).remove(0);
        assert_eq!(one("a.lf", "b.lf"), "b.lf");
        assert_eq!(one("x/a.lf", "./b.lf"), "x/b.lf");
        assert_eq!(one("x/a.lf", "../../b.lf"), "../b.lf");
        assert_eq!(one("x/a.lf", "/b.lf"), "/b.lf");
        let packages = candidates("src/a.lf", "lib/B.lf", true);
        assert_eq!(packages[1], "build/lfc_include/lib/src/lib/B.lf");
    }
}
