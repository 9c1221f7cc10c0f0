//! Programs that are started by their names, in an environment that is not ours.

use onbeat::environment::var_os;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked for behind what PATH names.
const DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Where programs are looked for: the directories of PATH without those that are empty or relative,
/// which are in whatever directory one happens to be, and then the system's.
fn directories(path: Option<&OsStr>) -> Vec<PathBuf> {
    let named = path.map(std::env::split_paths).into_iter().flatten();
    let mut all: Vec<PathBuf> = named.filter(|directory| directory.is_absolute()).collect();
    for directory in DIRECTORIES {
        if !all.iter().any(|one| one == Path::new(directory)) {
            all.push(directory.into());
        }
    }
    all
}

/// A program by its name: its absolute path, with a PATH for what it starts in turn. A name with a
/// slash is a path already.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let name = name.as_ref();
    let all = directories(var_os("PATH").as_deref());
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let mut command = match name.as_bytes().contains(&b'/') {
        true => Command::new(name),
        false => {
            let mut places = all.iter().map(|directory| directory.join(name));
            Command::new(
                places.find(is_program).unwrap_or_else(|| Path::new("/usr/bin").join(name)),
            )
        }
    };
    command.env("PATH", std::env::join_paths(all).unwrap_or_else(|_| DIRECTORIES.join(":").into()));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_never_looked_for_where_one_happens_to_be() {
        let shown = |path: Option<&str>| {
            let all = directories(path.map(OsStr::new));
            assert!(all.iter().all(|directory| directory.is_absolute()), "{path:?} {all:?}");
            all
        };
        let usual: Vec<PathBuf> = DIRECTORIES.iter().map(PathBuf::from).collect();
        for nothing in [None, Some(""), Some(":"), Some("."), Some("bin:./x::../y")] {
            assert_eq!(shown(nothing), usual, "{nothing:?}");
        }
        assert_eq!(
            shown(Some(":/opt/x:.:/usr/bin"))[..2],
            ["/opt/x", "/usr/bin"].map(PathBuf::from)
        );
        assert_eq!(shown(Some("/usr/bin")).len(), usual.len(), "each once");
    }

    #[test]
    fn a_program_is_started_by_its_absolute_path() {
        let command = program("sh");
        assert!(Path::new(command.get_program()).is_absolute(), "{command:?}");
        let output = program("sh").args(["-c", "echo $PATH"]).output().unwrap();
        let path = String::from_utf8(output.stdout).unwrap();
        assert!(path.trim_end().split(':').all(|directory| directory.starts_with('/')), "{path}");
        assert!(program("no-such-program").status().is_err());
        assert_eq!(program("./x").get_program(), "./x");
    }
}
