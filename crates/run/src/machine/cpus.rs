//! Processors, as the kernel writes them: `0,2-3`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// More than the kernel can have.
const MOST: u16 = 8_192;

/// A set of processors by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuList(pub BTreeSet<u16>);

/// A text that is no list of processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list of processors such as 0,2-3")]
pub struct NotCpus(String);

impl CpuList {
    /// What is in this list and not in the other.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// What is in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From a mask as in `/proc/irq/default_smp_affinity`: hexadecimal, groups of 32 bits with
    /// commas, the highest first.
    pub fn from_mask(text: &str) -> Result<Self, NotCpus> {
        let wrong = || NotCpus(text.to_owned());
        let digits: String = text.trim().chars().filter(|c| *c != ',').collect();
        if digits.is_empty() || digits.len() > usize::from(MOST / 4) {
            return Err(wrong());
        }
        let mut cpus = BTreeSet::new();
        for (place, digit) in digits.chars().rev().enumerate() {
            let digit = digit.to_digit(16).ok_or_else(wrong)?;
            let bits = (0..4_u16).filter(|bit| digit & (1 << bit) != 0);
            cpus.extend(bits.map(|bit| place as u16 * 4 + bit));
        }
        Ok(Self(cpus))
    }

    /// As such a mask, without commas.
    pub fn mask(&self) -> String {
        let highest = self.0.last().copied().unwrap_or(0);
        let digit = |place: u16| {
            let bits = (0..4).filter(|bit| self.0.contains(&(place * 4 + bit)));
            char::from_digit(bits.map(|bit| 1 << bit).sum(), 16).unwrap_or('0')
        };
        (0..=highest / 4).rev().map(digit).collect()
    }
}

impl FromStr for CpuList {
    type Err = NotCpus;

    fn from_str(text: &str) -> Result<Self, NotCpus> {
        let wrong = || NotCpus(text.to_owned());
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse().map_err(|_| wrong());
            let (first, last): (u16, u16) = (number(first)?, number(last)?);
            if first > last || last >= MOST {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<(u16, u16)> = Vec::new();
        for cpu in &self.0 {
            match parts.last_mut() {
                Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
                _ => parts.push((*cpu, *cpu)),
            }
        }
        let part = |(first, last): &(u16, u16)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        write!(f, "{}", parts.iter().map(part).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_and_masks_are_read_as_the_kernel_writes_them() {
        for (list, mask) in [("", "0"), ("0", "1"), ("0,2-3", "d"), ("4-7,33", "2000000f0")] {
            let cpus: CpuList = list.parse().unwrap();
            assert_eq!(cpus.to_string(), list);
            assert_eq!(cpus.mask(), mask);
            assert_eq!(CpuList::from_mask(mask).unwrap(), cpus);
        }
        assert_eq!(CpuList::from_mask("00000002,000000f0").unwrap().to_string(), "4-7,33");
        for wrong in ["a", "3-1", "1-", "0-99999999", "9000"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
        assert!(CpuList::from_mask("xyz").is_err() && CpuList::from_mask("").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(cpus in prop::collection::btree_set(0..200_u16, 0..20)) {
            let cpus = CpuList(cpus);
            prop_assert_eq!(&cpus.to_string().parse::<CpuList>().unwrap(), &cpus);
            prop_assert_eq!(&CpuList::from_mask(&cpus.mask()).unwrap(), &cpus);
        }
    }
}
