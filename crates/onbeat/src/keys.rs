//! Where a program's keys come from: a file, the kernel's keyring, or the environment.

use crate::regular;
use onbeat_model::integrity::Integrity;
use onbeat_model::time::SyncedTime;
use onbeat_model::units::{MacAddress, StreamId};
use onbeat_runtime::integrity::{
    Epoch, Guard, KEY_FILE_OCTETS, KeyRing, Seal, StreamKeys, hexadecimal,
};
use onbeat_runtime::talker::ChannelParameters;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// The environment variable that names a file of keys.
pub const KEY_FILE: &str = "ONBEAT_KEY_FILE";
/// The one that names a key of type `user` of the kernel's keyrings, which holds a file's text.
pub const KEY_RING: &str = "ONBEAT_KEY_RING";
/// The one that is a key itself: 64 hexadecimal digits, of key number 0. It is wiped when it is
/// read: only the first context of a process finds it.
pub const KEY: &str = "ONBEAT_KEY";

/// Rights that only the owner of a file of keys may have.
const OTHERS: u32 = 0o077;

/// Where keys are read, now and when they are read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file of the user's or of the superuser's, that no other user may access.
    File(PathBuf),
    /// A key of the kernel's keyrings.
    Ring(CString),
    /// The environment, once.
    Environment,
}

impl KeySource {
    /// What the environment names, if anything.
    ///
    /// # Errors
    /// It names two, or one that cannot be.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let [file, ring] = [KEY_FILE, KEY_RING].map(crate::environment::var_os);
        let key = crate::environment::has(KEY).then_some(());
        match (file, ring, key) {
            (None, None, None) => Ok(None),
            (Some(file), None, None) => Ok(Some(Self::File(file.into()))),
            (None, Some(ring), None) => {
                let name = CString::new(ring.as_bytes());
                name.map(|name| Some(Self::Ring(name))).map_err(|error| error.to_string())
            }
            (None, None, Some(())) => Ok(Some(Self::Environment)),
            _ => Err(format!("set one of {KEY_FILE}, {KEY_RING} and {KEY} only")),
        }
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// Why there are none, and what to do; never a part of a key.
    pub fn read(&self) -> Result<KeyRing, String> {
        match self {
            Self::File(path) => {
                let shown = path.display();
                of_file(path).map_err(|why| format!("file of keys {shown}: {why}"))
            }
            Self::Ring(name) => {
                let shown = name.to_string_lossy().into_owned();
                of_kernel(name).map_err(|why| format!("key `{shown}` of the kernel: {why}"))
            }
            Self::Environment => of_variable(),
        }
    }
}

fn parsed(octets: &[u8]) -> Result<KeyRing, String> {
    let text = std::str::from_utf8(octets).map_err(|_| "it is not text".to_owned())?;
    text.parse().map_err(|wrong: onbeat_runtime::integrity::WrongKeys| wrong.to_string())
}

fn of_file(path: &Path) -> Result<KeyRing, String> {
    let file = regular::open(path).map_err(|error| error.to_string())?;
    // Of the open file: another one may have its name by now.
    let about = file.metadata().map_err(|error| error.to_string())?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own && about.uid() != 0 {
        return Err(format!(
            "it belongs to user {}: keys are read of user {own} and of the superuser only; use \
             chown",
            about.uid()
        ));
    }
    let others = about.mode() & OTHERS;
    if others != 0 {
        return Err(format!(
            "others may access it (mode {:o}): use chmod 600",
            about.mode() & 0o777
        ));
    }
    let octets = regular::all(file, KEY_FILE_OCTETS as u64).map_err(|error| error.to_string())?;
    parsed(&Zeroizing::new(octets))
}

fn of_kernel(name: &CString) -> Result<KeyRing, String> {
    let said = |error: std::io::Error| error.to_string();
    // SAFETY: three texts that end with a zero octet, or none; the kernel only reads them.
    let id = unsafe {
        let none = std::ptr::null::<libc::c_char>();
        libc::syscall(libc::SYS_request_key, c"user".as_ptr(), name.as_ptr(), none, 0)
    };
    if id < 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("{error}: add it with keyctl padd user NAME @s < FILE"));
    }
    let mut octets = Zeroizing::new([0; KEY_FILE_OCTETS]);
    let read = libc::c_long::from(libc::KEYCTL_READ as i32);
    // SAFETY: the buffer is valid for writing its length.
    let length =
        unsafe { libc::syscall(libc::SYS_keyctl, read, id, octets.as_mut_ptr(), octets.len()) };
    let length = usize::try_from(length).map_err(|_| said(std::io::Error::last_os_error()))?;
    parsed(octets.get(..length).ok_or("it is too long")?)
}

fn of_variable() -> Result<KeyRing, String> {
    let taken = crate::environment::take_secret(KEY);
    let value = taken
        .ok_or_else(|| format!("{KEY} was read before: use {KEY_FILE}, which can be read again"))?;
    let digits = std::str::from_utf8(&value).ok().and_then(hexadecimal);
    let key = digits.ok_or_else(|| format!("{KEY} must be 64 hexadecimal digits"))?;
    Ok(KeyRing::of_one(0, *key))
}

/// The keys of a program, which its ends look at before each message.
#[derive(Debug, Default)]
pub struct KeyStore {
    /// How often they were read.
    generation: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    source: Option<KeySource>,
    ring: Option<KeyRing>,
}

impl KeyStore {
    /// Of a source that is named, or else of the environment's; without keys if there is none.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn open(named: Option<PathBuf>) -> Result<Arc<Self>, String> {
        let source = match named {
            Some(path) => Some(KeySource::File(path)),
            None => KeySource::from_environment()?,
        };
        let ring = source.as_ref().map(KeySource::read).transpose()?;
        let held = Mutex::new(Held { source, ring });
        Ok(Arc::new(Self { generation: AtomicU64::new(0), held }))
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads the keys again; each end takes them before its next message.
    ///
    /// # Errors
    /// There is no source, or it cannot be read: the keys stay as they are.
    pub fn reload(&self) -> Result<(), String> {
        let mut held = self.held();
        let source = held.source.as_ref();
        let source = source.ok_or_else(|| format!("there are no keys; {}", how_to_give()))?;
        held.ring = Some(source.read()?);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// What a channel's end needs of the keys: none unless it is authenticated.
    ///
    /// # Errors
    /// It is authenticated, and there are no keys.
    pub(crate) fn of_end(
        self: &Arc<Self>,
        parameters: &ChannelParameters,
    ) -> Result<Option<EndKeys>, String> {
        if parameters.integrity != Integrity::Authenticated {
            return Ok(None);
        }
        let held = self.held();
        let ring = held.ring.as_ref();
        let ring = ring.ok_or_else(|| {
            format!("it is authenticated, and there is no key: {}", how_to_give())
        })?;
        let stream = (parameters.stream_id, parameters.destination);
        let keys = ring.of_stream(stream.0, stream.1);
        let seen = self.generation.load(Ordering::Acquire);
        Ok(Some(EndKeys { store: Arc::clone(self), stream, seen, keys }))
    }
}

fn how_to_give() -> String {
    format!("name a file of keys in {KEY_FILE}")
}

/// The keys of one end.
#[derive(Debug)]
pub(crate) struct EndKeys {
    store: Arc<KeyStore>,
    stream: (StreamId, MacAddress),
    seen: u64,
    keys: StreamKeys,
}

impl EndKeys {
    /// What a talker that starts now puts behind its messages.
    pub(crate) fn seal(keys: Option<&Self>, integrity: Integrity) -> Result<Seal, String> {
        let keys = keys.map(|keys| keys.keys.clone());
        let epoch = if keys.is_some() { epoch()? } else { Epoch(0) };
        Ok(Seal::new(integrity, keys, epoch).expect("an authenticated end has keys"))
    }

    /// What either end of an authenticated channel has, if it begins at `since`.
    pub(crate) fn both(&self, since: SyncedTime) -> Result<(Seal, Guard), String> {
        let integrity = Integrity::Authenticated;
        Ok((Self::seal(Some(self), integrity)?, Self::guard(Some(self), integrity, since)))
    }

    /// What a reader that opens at `since` checks.
    pub(crate) fn guard(keys: Option<&Self>, integrity: Integrity, since: SyncedTime) -> Guard {
        let keys = keys.map(|keys| keys.keys.clone());
        Guard::new(integrity, keys, since).expect("an authenticated end has keys")
    }

    /// The keys, if they were read again. Real-time: a load; when they were, a lock that is not
    /// waited for and a few hundred nanoseconds for each key.
    #[inline]
    pub(crate) fn new_keys(&mut self) -> Option<StreamKeys> {
        let generation = self.store.generation.load(Ordering::Acquire);
        if generation == self.seen { None } else { self.take(generation) }
    }

    #[cold]
    fn take(&mut self, generation: u64) -> Option<StreamKeys> {
        let held = self.store.held.try_lock().ok()?;
        self.seen = generation;
        held.ring.as_ref().map(|ring| ring.of_stream(self.stream.0, self.stream.1))
    }
}

/// What either end of a channel has on an interface that other systems may share, with the keys
/// that the environment names; `None` unless it is authenticated.
///
/// # Errors
/// It is authenticated, and there are no keys.
#[doc(hidden)] // for the run's side
pub fn on_interface(
    parameters: &ChannelParameters,
    since: SyncedTime,
) -> Result<Option<(Seal, Guard)>, String> {
    if parameters.integrity != Integrity::Authenticated {
        return Ok(None);
    }
    let keys = KeyStore::open(None)?.of_end(parameters)?;
    keys.map(|keys| keys.both(since)).transpose()
}

/// 64 bits of the kernel's randomness.
fn epoch() -> Result<Epoch, String> {
    let mut octets = [0; 8];
    match getrandom(&mut octets, GetRandomFlags::empty()) {
        Ok(8) => Ok(Epoch(u64::from_ne_bytes(octets))),
        Ok(_) => Err("the kernel gives no randomness".to_owned()),
        Err(error) => Err(format!("the kernel gives no randomness: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(directory: &Path, text: &str, mode: u32) -> PathBuf {
        let path = directory.join("keys");
        std::fs::write(&path, text).expect("a file");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, mode).expect("a mode");
        path
    }

    fn key(number: u8) -> String {
        format!("{number} {}\n", format!("{number:02x}").repeat(32))
    }

    #[test]
    fn keys_that_others_may_read_are_refused_with_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let path = file(directory.path(), &key(1), mode);
            let why = KeySource::File(path).read().expect_err("refused");
            assert!(why.contains(&format!("mode {mode:o}): use chmod 600")), "{why}");
        }
        for mode in [0o600, 0o400, 0o700] {
            let path = file(directory.path(), &key(1), mode);
            assert!(KeySource::File(path).read().is_ok(), "{mode:o}");
        }
        let why = KeySource::File(directory.path().into()).read().expect_err("a directory");
        assert!(why.contains("file of keys"), "{why}");
        let path = file(directory.path(), "1 secret-text", 0o600);
        let why = KeySource::File(path).read().expect_err("no key");
        assert!(why.contains("line 1") && !why.contains("secret-text"), "{why}");
    }

    #[test]
    fn an_end_takes_keys_that_were_read_again_before_its_next_message_and_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = file(directory.path(), &key(1), 0o600);
        let store = KeyStore::open(Some(path)).expect("keys");
        let parameters = ChannelParameters {
            destination: onbeat_model::units::MacAddress([1, 0, 0, 0, 0, 1]),
            source: Default::default(),
            stream_id: StreamId(3),
            vlan: 2,
            pcp: 3,
            size: onbeat_model::units::Octets::new(8),
            integrity: Integrity::Authenticated,
            replicated: false,
            launch: None,
            talker_address: None,
            interval: onbeat_model::time::Span::from_ms(1),
            tolerance: Default::default(),
            catch_up: Default::default(),
            fixed_delay: Default::default(),
            clock_error: Default::default(),
            epoch: 0,
        };
        let mut end = store.of_end(&parameters).expect("keys").expect("an authenticated end");
        assert!(end.new_keys().is_none());
        file(directory.path(), &(key(2) + &key(1)), 0o600);
        store.reload().expect("keys");
        let shown = format!("{:?}", end.new_keys().expect("new keys"));
        assert_eq!(shown, "StreamKeys([2, 1])");
        assert!(end.new_keys().is_none());
        file(directory.path(), "nothing", 0o600);
        assert!(store.reload().is_err());
        assert!(end.new_keys().is_none(), "what cannot be read changes nothing");
        let plain = ChannelParameters { integrity: Integrity::Crc, ..parameters };
        assert!(store.of_end(&plain).expect("none are needed").is_none());
        let why = Arc::new(KeyStore::default()).of_end(&parameters).expect_err("no key");
        assert!(why.contains(KEY_FILE), "{why}");
    }

    #[test]
    fn no_two_starts_of_a_talker_draw_the_same_epoch() {
        let drawn: std::collections::HashSet<u64> =
            (0..100_000).map(|_| epoch().expect("randomness").0).collect();
        assert_eq!(drawn.len(), 100_000);
    }
}
