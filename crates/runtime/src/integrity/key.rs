//! Keys: the system's, of which a user has one or a few, and the streams', derived from it.

use arrayvec::ArrayVec;
use blake2::Blake2sMac;
use blake2::digest::consts::{U16, U32};
use blake2::digest::{KeyInit, Mac};
use onbeat_model::units::{MacAddress, StreamId};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Octets of a key.
pub const KEY: usize = 32;
/// The most keys that are valid at once: the current one, the next one, and room for a mistake.
pub const KEYS_MAX: usize = 4;
/// The most octets of a file of keys.
pub const KEY_FILE_OCTETS: usize = 4 << 10;

/// What the derivation of a stream's key begins with: another use has another key.
const LABEL: &[u8] = b"onbeat channel v1";

/// The system's keys by their numbers, in order: talkers write with the first one, readers accept
/// all of them. They are not printed, and wiped when the value goes.
#[derive(Clone)]
pub struct KeyRing(Vec<(u8, Zeroizing<[u8; KEY]>)>);

/// What is wrong with a text of keys. Says nothing of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongKeys {
    /// There is no key.
    #[error(
        "it holds no key: a line has a number from 0 to 255, a space and 64 hexadecimal digits"
    )]
    None,
    /// There are too many, or it is too long.
    #[error("it holds more than {KEYS_MAX} keys or {KEY_FILE_OCTETS} octets: remove old keys")]
    TooMany,
    /// A line is not a key.
    #[error("line {0}: expected a number from 0 to 255, a space and 64 hexadecimal digits")]
    Line(usize),
    /// A number stands there twice.
    #[error("line {0}: a key with this number is there already")]
    Twice(usize),
}

impl KeyRing {
    /// One key.
    pub fn of_one(number: u8, key: [u8; KEY]) -> Self {
        Self(vec![(number, Zeroizing::new(key))])
    }

    /// The key of runs whose user gives none. Everybody knows it: it lets runs be the same octet
    /// for octet, and protects nothing.
    pub fn of_runs() -> Self {
        Self::of_one(0, *b"onbeat run: key without a secret")
    }

    /// The numbers of the keys, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u8> {
        self.0.iter().map(|(number, _)| *number)
    }

    /// The keys of a stream: of each of the system's, a key that no other stream has. BLAKE2s
    /// keyed is a pseudorandom function (RFC 7693 2.9), so that one stream's key tells nothing of
    /// another's. What every tag covers first, the destination, is in them already, and with it
    /// the block of the key: a message has one block less to compute.
    pub fn of_stream(&self, stream: StreamId, destination: MacAddress) -> StreamKeys {
        let derive = |(number, key): &(u8, Zeroizing<[u8; KEY]>)| {
            let mut mac: Blake2sMac<U32> = keyed(key.as_slice());
            mac.update(LABEL);
            mac.update(&stream.0.to_be_bytes());
            let derived = Zeroizing::new(<[u8; KEY]>::from(mac.finalize().into_bytes()));
            let mut mac: Blake2sMac<U16> = keyed(derived.as_slice());
            mac.update(&destination.0);
            (*number, mac)
        };
        StreamKeys(self.0.iter().take(KEYS_MAX).map(derive).collect())
    }
}

fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("BLAKE2s takes a key of 32 octets")
}

/// Reads lines of `number digits`; those that begin with `#` and empty ones say nothing.
impl FromStr for KeyRing {
    type Err = WrongKeys;

    fn from_str(text: &str) -> Result<Self, WrongKeys> {
        if text.len() > KEY_FILE_OCTETS {
            return Err(WrongKeys::TooMany);
        }
        // Of its final size: nothing is moved, which would leave a copy.
        let mut keys: Vec<(u8, Zeroizing<[u8; KEY]>)> = Vec::with_capacity(KEYS_MAX);
        let lines = (1..).zip(text.lines());
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let (number, digits) = line.split_once(' ').ok_or(WrongKeys::Line(at))?;
            let is_number = number.bytes().all(|octet| octet.is_ascii_digit());
            let number = number.parse().ok().filter(|_| is_number).ok_or(WrongKeys::Line(at))?;
            let key = hexadecimal(digits).ok_or(WrongKeys::Line(at))?;
            if keys.iter().any(|(other, _)| *other == number) {
                return Err(WrongKeys::Twice(at));
            }
            if keys.len() == KEYS_MAX {
                return Err(WrongKeys::TooMany);
            }
            keys.push((number, key));
        }
        if keys.is_empty() { Err(WrongKeys::None) } else { Ok(Self(keys)) }
    }
}

/// The key that 64 hexadecimal digits are.
pub fn hexadecimal(digits: &str) -> Option<Zeroizing<[u8; KEY]>> {
    let mut key = Zeroizing::new([0; KEY]);
    let digits = digits.as_bytes();
    if digits.len() != 2 * KEY {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (octet, pair) in key.iter_mut().zip(digits.as_chunks::<2>().0) {
        *octet = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(key)
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyRing").field(&self.numbers().collect::<Vec<_>>()).finish()
    }
}

/// A stream's keys, ready for use; the first is the one to write with. Wiped when they go.
#[derive(Clone)]
pub struct StreamKeys(ArrayVec<(u8, Blake2sMac<U16>), KEYS_MAX>);

impl StreamKeys {
    /// The number of the key that talkers write with.
    #[inline]
    pub(super) fn current(&self) -> u8 {
        self.0.first().map_or(0, |(number, _)| *number)
    }

    /// A tag with the key of this number, begun with the destination.
    #[inline]
    pub(super) fn mac(&self, number: u8) -> Option<Blake2sMac<U16>> {
        self.0.iter().find(|(other, _)| *other == number).map(|(_, mac)| mac.clone())
    }
}

impl fmt::Debug for StreamKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(|(number, _)| number).collect();
        f.debug_tuple("StreamKeys").field(&numbers).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digits(octet: u8) -> String {
        format!("{octet:02x}").repeat(KEY)
    }

    #[test]
    fn keys_are_read_in_their_order_and_never_printed() {
        let text = format!("# two keys\n\n7 {}\n3 {}\n", digits(0xab), digits(0xCD).to_uppercase());
        let ring: KeyRing = text.parse().expect("two keys");
        assert_eq!(ring.numbers().collect::<Vec<_>>(), [7, 3]);
        assert_eq!(*ring.0[1].1, [0xcd; KEY]);
        assert_eq!(format!("{ring:?}"), "KeyRing([7, 3])");
        let keys = ring.of_stream(StreamId(1), MacAddress([1; 6]));
        assert_eq!((format!("{keys:?}"), keys.current()), ("StreamKeys([7, 3])".to_owned(), 7));
    }

    #[test]
    fn what_is_no_file_of_keys_is_refused_without_repeating_it() {
        let key = digits(1);
        let five: String = (0..5).map(|number| format!("{number} {key}\n")).collect();
        for (text, wrong) in [
            (String::new(), WrongKeys::None),
            ("# nothing\n".to_owned(), WrongKeys::None),
            (key.clone(), WrongKeys::Line(1)),
            (format!("256 {key}"), WrongKeys::Line(1)),
            (format!("+1 {key}"), WrongKeys::Line(1)),
            (format!("# one\n1  {key}"), WrongKeys::Line(2)),
            (format!("1 {key}0"), WrongKeys::Line(1)),
            (format!("1 {}", key.replace('1', "g")), WrongKeys::Line(1)),
            (format!("1 {key}\n1 {key}"), WrongKeys::Twice(2)),
            (five, WrongKeys::TooMany),
            ("#".repeat(KEY_FILE_OCTETS + 1), WrongKeys::TooMany),
        ] {
            let error = text.parse::<KeyRing>().expect_err("no file of keys");
            assert_eq!(error, wrong);
            assert!(!error.to_string().contains(&key));
        }
    }

    #[test]
    fn each_stream_and_each_key_of_the_system_has_a_key_of_its_own() {
        let tag = |key: [u8; KEY], stream| {
            let keys = KeyRing::of_one(1, key).of_stream(StreamId(stream), MacAddress([1; 6]));
            <[u8; 16]>::from(keys.mac(1).expect("the key").finalize().into_bytes())
        };
        let all = [tag([1; KEY], 1), tag([1; KEY], 2), tag([2; KEY], 1), tag([2; KEY], 2)];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
        // BLAKE2s of RFC 7693, computed with Python's hashlib.
        assert_eq!(tag([1; KEY], 1)[..4], EXPECTED);
    }

    const EXPECTED: [u8; 4] = [0x03, 0x6a, 0xd3, 0x00];

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_keys_panic(text in "(\\PC| |\n|[0-9a-f]{64}){0,40}") {
            let _ = text.parse::<KeyRing>();
        }
    }
}
