//! Users as whom programs run.

use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// The group of a number that no user has: the kernel's own for `nobody`.
const NOBODY: u32 = 65_534;
/// The first descriptor after the standard streams.
const FIRST_OPENED: libc::c_uint = 3;
/// The most that is read of a user.
const ENTRY_OCTETS: usize = 1 << 16;
/// The most groups of a user, as the kernel limits them.
const MAX_GROUPS: usize = 65_536;
/// What names things of the one who started the run.
const OWN: [&str; 8] = [
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "MAIL",
];

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: OsString,
    home: OsString,
    shell: OsString,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl User {
    /// The user with this name, or this number; a number need not be any user's.
    ///
    /// # Errors
    /// There is none, or the system does not say.
    pub fn find(text: &str) -> io::Result<Self> {
        let number = text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let name = CString::new(text)?;
        let found = match number {
            Some(u32::MAX) => None, // for the calls below: leave it as it is
            Some(number) => {
                let found = entry(|into, buffer, length, found| {
                    // SAFETY: all of them are valid for the call.
                    unsafe { libc::getpwuid_r(number, into, buffer, length, found) }
                })?;
                Some(found.unwrap_or_else(|| Self::without_entry(number)))
            }
            None => entry(|into, buffer, length, found| {
                // SAFETY: all of them are valid for the call.
                unsafe { libc::getpwnam_r(name.as_ptr(), into, buffer, length, found) }
            })?,
        };
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such user"))
    }

    fn without_entry(number: u32) -> Self {
        let gid = Gid::from_raw(NOBODY);
        Self {
            name: number.to_string().into(),
            home: "/".into(),
            shell: "/bin/sh".into(),
            uid: Uid::from_raw(number),
            gid,
            groups: Vec::new(),
        }
    }

    /// Its number.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// The number of its own group.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// Tells a command of what its user has, and no more what another one has.
    pub(crate) fn introduce(&self, command: &mut Command) {
        for name in OWN {
            command.env_remove(name);
        }
        let sudo = std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"SUDO_"));
        for (name, _) in sudo {
            command.env_remove(name);
        }
        command.env("HOME", &self.home).env("SHELL", &self.shell);
        command.env("USER", &self.name).env("LOGNAME", &self.name);
    }

    /// Makes a file empty and this user's.
    pub(crate) fn own(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?;
        Ok(rustix::fs::fchown(file, Some(self.uid), Some(self.gid))?)
    }

    /// Makes the calling process this user's, for ever, with the right to lock its memory and to
    /// have priorities up to `priority`. It has neither the terminal of the one before, which takes
    /// input from whom it controls, nor what that one has open but its standard streams. Between
    /// fork and exec: neither allocates nor locks.
    pub(crate) fn become_it(&self, priority: Option<u8>) -> io::Result<()> {
        rustix::process::setsid()?;
        // SAFETY: closes nothing before another program is executed.
        let closed = unsafe {
            let flags = libc::CLOSE_RANGE_CLOEXEC;
            libc::syscall(libc::SYS_close_range, FIRST_OPENED, libc::c_uint::MAX, flags)
        };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
        let limit = |most| Rlimit { current: most, maximum: most };
        // Asked for only, as the priority itself is: not every superuser may raise limits.
        let _ = setrlimit(Resource::Memlock, limit(None));
        if let Some(priority) = priority {
            let _ = setrlimit(Resource::Rtprio, limit(Some(u64::from(priority))));
        }
        // The process has one thread.
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        Ok(set_no_new_privs(true)?)
    }
}

/// Calls one of getpwnam_r and getpwuid_r.
fn entry(
    mut call: impl FnMut(
        *mut libc::passwd,
        *mut libc::c_char,
        libc::size_t,
        *mut *mut libc::passwd,
    ) -> libc::c_int,
) -> io::Result<Option<User>> {
    // SAFETY: numbers and pointers, of which all zero is one.
    let mut into: libc::passwd = unsafe { std::mem::zeroed() };
    let mut buffer: Vec<libc::c_char> = vec![0; ENTRY_OCTETS];
    let mut found = std::ptr::null_mut();
    let error = call(&raw mut into, buffer.as_mut_ptr(), buffer.len(), &raw mut found);
    if found.is_null() {
        return match error {
            0 | libc::ENOENT | libc::ESRCH => Ok(None),
            error => Err(io::Error::from_raw_os_error(error)),
        };
    }
    let text = |text: *const libc::c_char| {
        if text.is_null() {
            return OsString::new();
        }
        // SAFETY: the call has filled the entry in; its texts are in `buffer`.
        let text = unsafe { CStr::from_ptr(text) };
        OsStr::from_bytes(text.to_bytes()).to_owned()
    };
    Ok(Some(User {
        name: text(into.pw_name),
        home: text(into.pw_dir),
        shell: text(into.pw_shell),
        uid: Uid::from_raw(into.pw_uid),
        gid: Gid::from_raw(into.pw_gid),
        groups: groups(&into)?,
    }))
}

/// All groups of a user.
fn groups(of: &libc::passwd) -> io::Result<Vec<Gid>> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name is the entry's, and there are so many groups.
        let got = unsafe {
            libc::getgrouplist(of.pw_name, of.pw_gid, groups.as_mut_ptr(), &raw mut count)
        };
        if got >= 0 {
            groups.truncate(count.unsigned_abs() as usize);
            return Ok(groups.into_iter().map(Gid::from_raw).collect());
        }
        if groups.len() >= MAX_GROUPS {
            return Err(io::Error::other("the user is in too many groups"));
        }
        groups.resize(groups.len() * 4, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let root = User::find("root").expect("there is one");
        assert_eq!(User::find("0").expect("the same"), root);
        assert_eq!((root.uid().is_root(), root.name), (true, "root".into()));
        assert!(root.groups.contains(&Gid::ROOT));
        let nobodys = User::find("54321").expect("a number that no user has");
        assert_eq!(nobodys, User::without_entry(54_321));
        assert_eq!(nobodys.gid().as_raw(), NOBODY, "and not the group 54321");
        for none in ["", "no such user", "4294967295", "-1", "+0", "0x0", "a\0b"] {
            assert!(User::find(none).is_err(), "{none:?}");
        }
    }
}
