//! Names of things in a description, other than channels.

use crate::limits::NAME_OCTETS;

/// Whether a name may have this octet: letters, digits, `-` and `_`.
pub const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-')
}

/// Whether a text can be such a name. Nothing else is taken for one that a file of results claims
/// to have: it may become part of a path.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_OCTETS && text.bytes().all(is_plain)
}
