//! Interrupt coalescing of an interface, over the ethtool ioctl (`linux/ethtool.h`).

use onbeat::interface::ethtool;
use std::fmt;
use std::io;
use std::str::FromStr;

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_SCOALESCE: u32 = 0x0f;
/// `struct ethtool_coalesce`: the command and 22 values.
const WORDS: usize = 23;
/// Where in it the values are that we set, under ethtool's names for them.
const FIELDS: [(usize, &str); 6] = [
    (1, "rx-usecs"),
    (2, "rx-frames"),
    (5, "tx-usecs"),
    (6, "tx-frames"),
    (10, "adaptive-rx"),
    (11, "adaptive-tx"),
];

/// For how long, and for how many frames, an interface delays an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coalescing([u32; FIELDS.len()]);

impl Coalescing {
    /// The one that gives each frame its interrupt at once and differs least from this: what counts
    /// frames is left alone where it does not, since drivers refuse what they do not know.
    #[must_use]
    pub(crate) fn at_once(self) -> Self {
        let Self([_, rx_frames, _, tx_frames, _, _]) = self;
        Self([0, rx_frames.min(1), 0, tx_frames.min(1), 0, 0])
    }
}

impl fmt::Display for Coalescing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, ((_, name), value)) in FIELDS.iter().zip(self.0).enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name} {value}")?;
        }
        Ok(())
    }
}

impl FromStr for Coalescing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no coalescing such as `{}`", Self::default());
        let words: Vec<&str> = text.split(' ').collect();
        if words.len() != 2 * FIELDS.len() {
            return Err(wrong());
        }
        let mut values = [0; FIELDS.len()];
        for ((value, pair), (_, name)) in values.iter_mut().zip(words.chunks(2)).zip(FIELDS) {
            *value = pair[1].parse().map_err(|_| wrong())?;
            if pair[0] != name {
                return Err(wrong());
            }
        }
        Ok(Self(values))
    }
}

/// What an interface does; none where its driver has no such setting.
pub(crate) fn get(interface: &str) -> io::Result<Option<Coalescing>> {
    match raw(interface) {
        Ok(words) => Ok(Some(Coalescing(FIELDS.map(|(at, _)| words[at])))),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets it; what else the driver has stays.
pub(crate) fn set(interface: &str, wanted: &Coalescing) -> io::Result<()> {
    let mut words = raw(interface)?;
    for ((at, _), value) in FIELDS.iter().zip(wanted.0) {
        words[*at] = value;
    }
    words[0] = ETHTOOL_SCOALESCE;
    exchange(interface, &mut words)
}

fn raw(interface: &str) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = ETHTOOL_GCOALESCE;
    exchange(interface, &mut words)?;
    Ok(words)
}

fn exchange(interface: &str, words: &mut [u32; WORDS]) -> io::Result<()> {
    // SAFETY: the structure of both commands has so many words.
    unsafe { ethtool(interface, words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are_written_and_nothing_else_is() {
        let some = Coalescing([3, 1, 4, 0, 1, 0]);
        let text = "rx-usecs 3 rx-frames 1 tx-usecs 4 tx-frames 0 adaptive-rx 1 adaptive-tx 0";
        assert_eq!(some.to_string(), text);
        assert_eq!(text.parse(), Ok(some));
        assert_eq!(some.at_once(), Coalescing([0, 1, 0, 0, 0, 0]));
        for bad in ["", "rx-usecs 3", &text.replace('3', "x"), &text.replace("rx", "tx")] {
            assert!(bad.parse::<Coalescing>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_interface_without_the_setting_has_none_and_cannot_be_set() {
        assert_eq!(get("lo").expect("it is asked"), None);
        let refused = set("lo", &Coalescing::default()).expect_err("it has none");
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(get("no-such-if").is_err());
    }
}
