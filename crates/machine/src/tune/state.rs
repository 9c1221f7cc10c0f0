//! The directory for what the superuser acts on later. It is its owner's alone, and what is in it
//! is looked at before it is believed: no other user can write there, lock there or look.

use super::journal::JournalError;
use onbeat_run::machine::Machine;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where it is.
pub(super) const DIRECTORY: &str = "/var/lib/onbeat";
/// What of a mode lets others write.
const OTHERS_WRITE: u32 = 0o022;
/// What of a mode lets others do anything.
const OTHERS: u32 = 0o077;
/// A file's mode.
const FILE: Mode = Mode::from_raw_mode(0o600);
/// How every file is opened: what took a file's place is not followed and not waited for.
const CAREFULLY: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// The directory, open.
#[derive(Debug)]
pub(super) struct Directory {
    directory: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// The directory of a machine; none where there is none.
    pub(super) fn existing(machine: &Machine) -> Result<Option<Self>, JournalError> {
        let path = machine.path(DIRECTORY);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | CAREFULLY;
        let directory = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(refused(&path, "it is a link, or no directory"));
            }
            opened => opened.map_err(|error| failed(&path, error))?,
        };
        let about = rustix::fs::fstat(&directory).map_err(|error| failed(&path, error))?;
        is_ours(&about).map_err(|why| refused(&path, &why))?;
        // Who may rename the directory may put another in its place.
        let root = machine.path("/");
        for above in path.ancestors().skip(1).take_while(|above| **above != *root) {
            let about = rustix::fs::stat(above).map_err(|error| failed(above, error))?;
            is_ours(&about).map_err(|why| refused(above, &why))?;
        }
        let this = Self { directory, path };
        this.close_to_others(this.directory.as_fd(), &about, Mode::RWXU)?;
        Ok(Some(this))
    }

    /// The same; made where there is none.
    pub(super) fn make(machine: &Machine) -> Result<Self, JournalError> {
        if let Some(this) = Self::existing(machine)? {
            return Ok(this);
        }
        let path = machine.path(DIRECTORY);
        let above = path.parent().unwrap_or(&path);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(above);
        made.map_err(|error| failed(above, error))?;
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(&path, error)),
        }
        Self::existing(machine)?.ok_or_else(|| failed(&path, Errno::NOENT))
    }

    /// A file's path, for people.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file; none where there is none and `flags` do not make it.
    pub(super) fn open(&self, name: &str, flags: OFlags) -> Result<Option<File>, JournalError> {
        let path = self.path(name);
        let file = match rustix::fs::openat(&self.directory, name, flags | CAREFULLY, FILE) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused(&path, "it is a link")),
            opened => opened.map_err(|error| failed(&path, error))?,
        };
        let about = rustix::fs::fstat(&file).map_err(|error| failed(&path, error))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(refused(&path, "it is no regular file"));
        }
        if about.st_nlink > 1 {
            return Err(refused(&path, "it has a second name somewhere (a hard link)"));
        }
        is_ours(&about).map_err(|why| refused(&path, &why))?;
        self.close_to_others(file.as_fd(), &about, FILE)?;
        Ok(Some(File::from(file)))
    }

    /// What others could read before, and could not write, is put right.
    fn close_to_others(
        &self,
        file: impl AsFd,
        about: &Stat,
        mode: Mode,
    ) -> Result<(), JournalError> {
        let mine = about.st_uid == rustix::process::geteuid().as_raw();
        if mine && about.st_mode & OTHERS != 0 {
            rustix::fs::fchmod(file, mode).map_err(|error| failed(&self.path, error))?;
        }
        Ok(())
    }

    /// A file's octets, at most so many; none where there is none.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, JournalError> {
        let Some(file) = self.open(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut octets = Vec::new();
        let path = self.path(name);
        file.take(most + 1).read_to_end(&mut octets).map_err(|error| failed(&path, error))?;
        match octets.len() as u64 > most {
            true => Err(refused(&path, &format!("it is longer than {most} octets"))),
            false => Ok(Some(octets)),
        }
    }

    /// Writes a file as a whole: who reads it sees this or what was there before.
    pub(super) fn write(&self, name: &str, octets: &[u8]) -> Result<(), JournalError> {
        let next = format!("{name}.{}", std::process::id());
        self.remove(&next)?;
        let made = self.open(&next, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let mut made = made.ok_or_else(|| failed(&self.path(&next), Errno::NOENT))?;
        made.write_all(octets).map_err(|error| failed(&self.path(&next), error))?;
        self.rename(&next, name)
    }

    /// Gives a file another name; one that is not there need not get it.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), JournalError> {
        match rustix::fs::renameat(&self.directory, from, &self.directory, to) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(&self.path(from), error)),
        }
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) -> Result<(), JournalError> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(&self.path(name), error)),
        }
    }

    /// Has what was renamed on disk.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        rustix::fs::fsync(&self.directory).map_err(|error| failed(&self.path, error))
    }

    /// Takes a file's lock; none if another process has it. A file that others could open is made
    /// again: they may have it open, and locked.
    pub(super) fn lock(&self, name: &str) -> Result<Option<File>, JournalError> {
        let named = || rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        if named().is_ok_and(|about| about.st_mode & OTHERS != 0) {
            self.remove(name)?;
        }
        loop {
            let file = self.open(name, OFlags::RDWR | OFlags::CREATE)?;
            let file = file.ok_or_else(|| failed(&self.path(name), Errno::NOENT))?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) => return Ok(None),
                locked => locked.map_err(|error| failed(&self.path(name), error))?,
            }
            // Another may have made it again meanwhile.
            let now = rustix::fs::fstat(&file).map_err(|error| failed(&self.path(name), error))?;
            if named().is_ok_and(|about| (about.st_dev, about.st_ino) == (now.st_dev, now.st_ino)) {
                return Ok(Some(file));
            }
        }
    }
}

/// Whether only the superuser and this user can have written it.
fn is_ours(about: &Stat) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if about.st_uid != 0 && about.st_uid != me {
        return Err(format!("it belongs to user {}", about.st_uid));
    }
    if about.st_mode & OTHERS_WRITE != 0 {
        return Err(format!("others may write to it (mode {:04o})", about.st_mode & 0o7777));
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> JournalError {
    JournalError::Untrusted { path: path.to_owned(), why: why.to_owned() }
}

fn failed(path: &Path, error: impl Into<io::Error>) -> JournalError {
    JournalError::File { path: path.to_owned(), error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn made() -> (tempfile::TempDir, Machine, Directory) {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::below(root.path());
        let directory = Directory::make(&machine).unwrap();
        (root, machine, directory)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn directory_and_files_are_their_owners_alone() {
        let (_root, machine, directory) = made();
        directory.write("a", b"text").unwrap();
        let path = machine.path(DIRECTORY);
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
        assert_eq!(directory.read("a", 4).unwrap().unwrap(), b"text");
        assert!(directory.read("a", 3).is_err() && directory.read("b", 3).unwrap().is_none());
        // As an earlier version left them: others could read and lock.
        set_mode(&path, 0o755);
        set_mode(&path.join("a"), 0o644);
        let directory = Directory::existing(&machine).unwrap().unwrap();
        directory.read("a", 4).unwrap();
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
    }

    #[test]
    fn what_others_may_have_written_is_refused() {
        let (_root, machine, directory) = made();
        let path = machine.path(DIRECTORY);
        directory.write("a", b"text").unwrap();
        let why = |result: Result<(), JournalError>| result.unwrap_err().to_string();
        let read = || directory.read("a", 9).map(drop);
        let a = path.join("a");
        set_mode(&a, 0o620);
        assert!(why(read()).contains("others may write to it (mode 0620)"));
        set_mode(&a, 0o600);
        std::fs::hard_link(&a, path.join("b")).unwrap();
        assert!(why(read()).contains("hard link"));
        std::fs::remove_file(&a).unwrap();
        symlink("b", &a).unwrap();
        assert!(why(read()).contains("it is a link"));
        std::fs::remove_file(&a).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &a, FileType::Fifo, FILE, 0).unwrap();
        assert!(why(read()).contains("no regular file"), "and it is not waited for");
        let opened = || Directory::existing(&machine).map(drop);
        set_mode(&path, 0o770);
        assert!(why(opened()).contains("others may write"));
        set_mode(&path, 0o700);
        let above = path.parent().unwrap();
        set_mode(above, 0o777);
        assert!(why(opened()).contains("others may write"));
        set_mode(above, 0o755);
        opened().unwrap();
        std::fs::rename(&path, above.join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(why(opened()).contains("it is a link"));
        assert!(Directory::make(&machine).is_err());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let (_root, machine, directory) = made();
        if !rustix::process::geteuid().is_root() {
            onbeat_testkit::not_run(
                onbeat_testkit::Need::Superuser,
                "only the superuser has files of another user",
            );
            return;
        }
        directory.write("a", b"text").unwrap();
        let path = machine.path(DIRECTORY);
        chown(path.join("a"), Some(54_321), None).unwrap();
        let error = directory.read("a", 9).unwrap_err().to_string();
        assert!(error.contains("belongs to user 54321"), "{error}");
        assert!(directory.lock("a").is_err());
        chown(&path, Some(54_321), None).unwrap();
        assert!(Directory::existing(&machine).is_err() && Directory::make(&machine).is_err());
    }

    #[test]
    fn a_lock_that_others_could_take_stops_nothing() {
        let (_root, machine, directory) = made();
        let path = machine.path(DIRECTORY).join("lock");
        std::fs::write(&path, "").unwrap();
        set_mode(&path, 0o644);
        let theirs = File::open(&path).unwrap();
        rustix::fs::flock(&theirs, FlockOperation::LockShared).unwrap();
        let ours = directory.lock("lock").unwrap().expect("the lock");
        assert!(directory.lock("lock").unwrap().is_none(), "one at a time");
        drop(ours);
        assert!(directory.lock("lock").unwrap().is_some());
    }
}
