//! How programs for FreeRTOS are built: `sources.txt` says it.

use crate::input;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Lines of `sources.txt`: a keyword and a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Recipe {
    /// Where it stands, and our files.
    own: PathBuf,
    lines: Vec<(String, String)>,
}

impl Recipe {
    pub(super) fn read(own: PathBuf) -> anyhow::Result<Self> {
        let file = own.join("sources.txt");
        let text = input::text(&file, input::LIST_OCTETS).map_err(anyhow::Error::msg)?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let split = |line: &str| line.split_once(' ').map(|(key, word)| (key.into(), word.into()));
        let Some(lines) = lines.map(split).collect() else {
            bail!("{}: a line has one word only", file.display());
        };
        Ok(Self { own, lines })
    }

    fn words(&self, keyword: &str) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(key, _)| key == keyword).map(|(_, word)| word.as_str())
    }

    pub(super) fn own_includes(&self) -> Vec<PathBuf> {
        self.words("include-own").map(|word| self.own.join(word)).collect()
    }

    /// The kernel's directories of headers.
    pub(super) fn kernel_includes(&self, kernel: &Path) -> Vec<PathBuf> {
        self.words("include-kernel").map(|word| kernel.join(word)).collect()
    }

    /// The C files of a program that are not the user's.
    pub(super) fn sources(&self, kernel: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let own = self.words("own").map(|word| self.own.join(word));
        let kernels = self.words("kernel").map(|word| kernel.join(word));
        let files: Vec<PathBuf> = own.chain(kernels).collect();
        match files.iter().find(|file| !file.is_file()) {
            None => Ok(files),
            Some(file) => bail!(
                "{} is missing: --kernel names the FreeRTOS kernel's source tree, the directory of \
                 tasks.c",
                file.display()
            ),
        }
    }

    /// Options for every file, those for the user's, and those for linking.
    pub(super) fn flags(&self) -> Vec<&str> {
        self.words("flag").collect()
    }

    pub(super) fn program_flags(&self) -> Vec<&str> {
        self.words("program-flag").collect()
    }

    pub(super) fn link_flags(&self) -> Vec<&str> {
        self.words("link-flag").collect()
    }
}
