//! Where headers and libraries of Timed C are.

use crate::input;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Names the directory that holds them, when they are not where the command itself is.
const HOME: &str = "ONBEAT_HOME";

/// A source tree that was built, or a prefix that was installed to.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    home: PathBuf,
    is_tree: bool,
    /// Of an installation: where libraries and headers are, if they are not where they belong.
    stated: Vec<PathBuf>,
    /// The command's own directory.
    beside: PathBuf,
}

impl Places {
    /// Looks for them: in `ONBEAT_HOME`, or around the command.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let command = std::env::current_exe()?;
        let command = command.canonicalize().unwrap_or(command);
        let beside = command.parent().unwrap_or(Path::new("/")).to_owned();
        let homes = match std::env::var_os(HOME) {
            Some(home) => vec![PathBuf::from(home)],
            // The tree's target/release/onbeat, the prefix's bin/onbeat.
            None => beside.ancestors().skip(1).take(2).map(Path::to_owned).collect(),
        };
        let lists = [(true, "timedc/wrapped.txt"), (false, "share/onbeat/wrapped.txt")];
        for home in homes.iter().cloned() {
            if let Some((is_tree, _)) = lists.iter().find(|(_, name)| home.join(name).is_file()) {
                let stated = home.join("share/onbeat/directories");
                let stated = input::text(&stated, input::LIST_OCTETS).unwrap_or_default();
                let stated = stated.lines().map(PathBuf::from).collect();
                return Ok(Self { home, is_tree: *is_tree, stated, beside });
            }
        }
        let looked =
            homes.iter().map(|h| h.display().to_string()).collect::<Vec<_>>().join(" and ");
        bail!(
            "the headers and libraries are not in {looked}: set {HOME} to Onbeat's source tree \
             after `make` there, or to the prefix that `make install` installed to"
        )
    }

    /// The source tree or the prefix itself.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where below it the JSON Schema of system.toml is.
    pub(crate) const fn schema(&self) -> &'static str {
        match self.is_tree {
            true => "schema/system.schema.json",
            false => "share/onbeat/schema/system.schema.json",
        }
    }

    /// A source tree.
    #[cfg(test)]
    pub(super) fn tree(home: PathBuf) -> Self {
        Self { beside: home.clone(), home, is_tree: true, stated: Vec::new() }
    }

    /// Directories of headers.
    pub(super) fn includes(&self) -> Vec<PathBuf> {
        if !self.is_tree {
            let other = self.stated.get(1).cloned();
            let own = self.home.join("include");
            return vec![other.filter(|_| !own.join("timedc.h").is_file()).unwrap_or(own)];
        }
        let names = ["timedc/include", "compat/include", "crates/capi/include"];
        names.iter().map(|name| self.home.join(name)).collect()
    }

    /// What programs are linked with, in the order of the line.
    pub(super) fn libraries(&self) -> anyhow::Result<Vec<PathBuf>> {
        if !self.is_tree {
            let names = ["libtimedc.a", "libnetchan.a", "libonbeat.a"];
            // What is beside the command goes first: a prefix may have been moved.
            let own = self.home.join("lib");
            let directories: Vec<_> = [&own].into_iter().chain(self.stated.first()).collect();
            let files = |name| directories.iter().map(|d| d.join(name)).collect::<Vec<_>>();
            return names.iter().map(|name| self.file(&files(name))).collect();
        }
        Ok(vec![
            self.file(&[self.home.join("timedc/build/libtimedc.a")])?,
            self.file(&[self.home.join("compat/build/libnetchan.a")])?,
            self.file(&[
                self.home.join("target/release/libonbeat.a"),
                self.beside.join("libonbeat.a"),
            ])?,
        ])
    }

    /// The functions that programs are linked with `--wrap` for.
    pub(super) fn wrapped(&self) -> anyhow::Result<Vec<String>> {
        self.list("wrapped.txt")
    }

    /// The functions of libraries that an abort may cut.
    pub(super) fn abortable(&self) -> anyhow::Result<Vec<String>> {
        self.list("abortable.txt")
    }

    /// A list of names; lines that begin with `#` say something of them.
    fn list(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let directory = if self.is_tree { "timedc" } else { "share/onbeat" };
        let file = self.file(&[self.home.join(directory).join(name)])?;
        let text = input::text(&file, input::LIST_OCTETS).map_err(anyhow::Error::msg)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.flat_map(str::split_whitespace).map(str::to_owned).collect())
    }

    /// The directory with what programs for FreeRTOS are built with.
    pub(super) fn freertos(&self) -> anyhow::Result<PathBuf> {
        let directory = match self.is_tree {
            true => self.home.join("timedc/freertos"),
            false => self.home.join("share/onbeat/freertos"),
        };
        self.file(&[directory.join("sources.txt")])?;
        Ok(directory)
    }

    /// The first of these files that there is.
    fn file(&self, files: &[PathBuf]) -> anyhow::Result<PathBuf> {
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            return Ok(file.clone());
        }
        let todo = match self.is_tree {
            true => format!("run `make` in {}", self.home.display()),
            false => "install Onbeat once more: `make && make install`".to_owned(),
        };
        bail!("{} is missing: {todo}", files[0].display())
    }
}
