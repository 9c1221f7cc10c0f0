//! The environment, where it may be believed.

use std::env::VarError;
use std::ffi::OsString;

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
