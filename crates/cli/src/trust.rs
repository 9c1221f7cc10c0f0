//! Whose descriptions are trusted: their options for the C compiler are then passed on as they are
//! when programs are analysed, and files outside their directory are read. The user says it once
//! for each directory, as editors ask it.

use anyhow::{Context, ensure};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// What the user says of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What was said before holds.
    AsKnown,
    /// To trust it, now and later.
    Said,
    /// That its programs are to be run: this time.
    Runs,
}

impl Trust {
    /// By `--trust`.
    pub(crate) fn by(flag: bool) -> Self {
        if flag { Self::Said } else { Self::AsKnown }
    }
}

/// How large the list of directories may grow.
const LIST_OCTETS: u64 = 1 << 20;

/// Whether a directory's descriptions are trusted. Who says so is not asked again.
pub(crate) fn of(directory: &Path, trust: Trust) -> anyhow::Result<bool> {
    if trust == Trust::Runs {
        return Ok(true);
    }
    let is_said = trust == Trust::Said;
    // What cannot be found cannot be read either.
    let Ok(directory) = directory.canonicalize() else { return Ok(is_said) };
    let known = match list() {
        Some(list) => read(&list)?.contains(&directory),
        None => false,
    };
    if is_said && !known {
        remember(&directory)?;
    }
    Ok(is_said || known)
}

/// Whether a path leads to something in the directory, also by way of links. What is not there is
/// inside if its path goes down only.
pub(crate) fn is_inside(path: &Path, directory: &Path) -> bool {
    let is_down = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    match (directory.canonicalize(), directory.join(path).canonicalize()) {
        (Ok(directory), Ok(path)) => path.starts_with(directory),
        _ => is_down,
    }
}

/// Whether a file that the user names may be read: a link that leads out of its directory is not
/// followed unless the directory is trusted. What is wrong with a file shows lines of it.
pub(crate) fn may_read(path: &Path) -> anyhow::Result<()> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let beside = path.parent().unwrap_or(Path::new("."));
    let may = is_inside(name, beside) || of(beside, Trust::AsKnown)?;
    ensure!(may, outside(path));
    Ok(())
}

/// That a file outside the directory of a description is not read.
pub(crate) fn outside(path: &Path) -> String {
    format!(
        "{}: it is outside the description's directory, which is not trusted: put it there, or let \
         `onbeat check` trust the directory by `--trust` (SECURITY.md)",
        path.display()
    )
}

/// The list is the user's own: a path in each line.
fn list() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("onbeat/trusted"))
}

/// The directories in the list; none if there is none.
fn read(list: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if list.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let file = std::fs::symlink_metadata(list).with_context(|| list.display().to_string())?;
    let is_own = file.uid() == rustix::process::geteuid().as_raw() && file.mode() & 0o022 == 0;
    ensure!(
        file.is_file() && is_own,
        "{}: others can write what you trust: remove it, or make it a file that only you can write",
        list.display()
    );
    let octets = crate::input::read(list, LIST_OCTETS).map_err(anyhow::Error::msg)?;
    let lines = octets.split(|octet| *octet == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| Path::new(std::ffi::OsStr::from_bytes(line)).to_owned()).collect())
}

fn remember(directory: &Path) -> anyhow::Result<()> {
    let Some(list) = list() else { return Ok(()) };
    let line = directory.as_os_str().as_bytes();
    ensure!(!line.contains(&b'\n'), "{}: such a name cannot be kept", directory.display());
    let place = || list.display().to_string();
    if let Some(parent) = list.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).with_context(place)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    let mut file = options.open(&list).with_context(place)?;
    file.write_all(&[line, b"\n"].concat()).with_context(place)
}
