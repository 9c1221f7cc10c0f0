//! The environment, where it may be believed.

use std::env::VarError;
use std::ffi::{CString, OsString};
use zeroize::Zeroizing;

/// Whether this process may do what its caller may not, as a set-user-ID program (ld.so(8),
/// secure-execution mode): then the environment is the caller's word, and not to be believed.
fn is_secure() -> bool {
    // SAFETY: the call reads a word that the kernel gave this process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A variable, as secure_getenv(3) gives it: none in a program with more rights than its caller.
pub fn var_os(name: &str) -> Option<OsString> {
    if is_secure() { None } else { std::env::var_os(name) }
}

/// The same as text.
///
/// # Errors
///
/// There is none, or it is no text.
pub fn var(name: &str) -> Result<String, VarError> {
    var_os(name).ok_or(VarError::NotPresent)?.into_string().map_err(VarError::NotUnicode)
}

/// Whether there is a variable of this name.
pub(crate) fn has(name: &str) -> bool {
    !is_secure()
        && std::env::var_os(name).map(|value| Zeroizing::new(value.into_encoded_bytes())).is_some()
}

/// A variable that is secret: removed, and overwritten where the program's start left
/// it, which is what `/proc/PID/environ` shows. No other thread may use the environment meanwhile.
pub(crate) fn take_secret(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    if is_secure() {
        return None;
    }
    let value = Zeroizing::new(std::env::var_os(name)?.into_encoded_bytes());
    let name_in_c = CString::new(name).ok()?;
    // SAFETY: the text that getenv(3) gives is this process's own memory, valid for writing up to
    // its final zero; the caller promises that no other thread uses the environment.
    unsafe {
        let mut place = libc::getenv(name_in_c.as_ptr());
        while !place.is_null() && *place != 0 {
            place.write_volatile(0);
            place = place.add(1);
        }
        std::env::remove_var(name);
    }
    Some(value)
}
