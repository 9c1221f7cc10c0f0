//! What an interface can do and how it is set, over the ethtool ioctl (`linux/ethtool.h`). Only
//! commands that read.

use onbeat::interface::ethtool;
use serde::{Deserialize, Serialize};
use std::io;

const GET_SETTINGS: u32 = 0x01;
const GET_DRIVER: u32 = 0x03;
const GET_LINK: u32 = 0x0a;
const GET_COALESCING: u32 = 0x0e;
const GET_CHANNELS: u32 = 0x3c;
const GET_STAMPING: u32 = 0x41;
const GET_EEE: u32 = 0x44;
/// SOF_TIMESTAMPING_TX_HARDWARE, RX_HARDWARE and RAW_HARDWARE (`linux/net_tstamp.h`).
const HARDWARE_STAMPS: u32 = 1 | 1 << 2 | 1 << 6;

/// What an interface can do and how it is set; `None` where its driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The driver's name.
    pub driver: Option<String>,
    /// Whether something is plugged in.
    pub carrier: Option<bool>,
    /// The link's rate in Mb/s, while there is one.
    pub speed_mbps: Option<u32>,
    /// Whether frames get time stamps of its own clock, both ways.
    pub hardware_stamps: Option<bool>,
    /// The number of that clock: `/dev/ptp` and it.
    pub hardware_clock: Option<u32>,
    /// Queues to send from, as set.
    pub transmit_queues: Option<u32>,
    /// By how many µs the interrupt for received frames is delayed.
    pub receive_delay_us: Option<u32>,
    /// Whether the driver changes that by itself.
    pub receive_delay_adapts: Option<bool>,
    /// Whether the link sleeps between frames (Energy-Efficient Ethernet, 802.3 clause 78).
    pub sleeps: Option<bool>,
}

impl Abilities {
    /// Whether there is a clock that stamps frames both ways: channels then use that one.
    pub fn has_clock(&self) -> bool {
        self.hardware_stamps == Some(true) && self.hardware_clock.is_some()
    }

    /// Asks the driver.
    pub fn of(interface: &str) -> Self {
        let settings = ask::<11>(interface, GET_SETTINGS).ok();
        let driver = ask::<49>(interface, GET_DRIVER).ok();
        let stamping = ask::<11>(interface, GET_STAMPING).ok();
        let channels = ask::<9>(interface, GET_CHANNELS).ok();
        let coalescing = ask::<23>(interface, GET_COALESCING).ok();
        Self {
            driver: driver.and_then(|words| name(&words[1..9])),
            carrier: ask::<2>(interface, GET_LINK).ok().map(|words| words[1] != 0),
            speed_mbps: settings.and_then(|words| speed(&words)),
            hardware_stamps: stamping.map(|w| w[1] & HARDWARE_STAMPS == HARDWARE_STAMPS),
            // The index is -1 where there is none.
            hardware_clock: stamping.map(|w| w[2]).filter(|index| index >> 31 == 0),
            transmit_queues: channels.map(|words| words[6] + words[8]),
            receive_delay_us: coalescing.map(|words| words[1]),
            receive_delay_adapts: coalescing.map(|words| words[10] != 0),
            sleeps: ask::<10>(interface, GET_EEE).ok().map(|words| words[5] != 0),
        }
    }
}

/// Sends a command and gives the structure that the kernel has filled in, as words.
fn ask<const WORDS: usize>(interface: &str, command: u32) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = command;
    // SAFETY: the kernel writes the command's structure, which all callers give the room for.
    unsafe { ethtool(interface, &mut words) }?;
    Ok(words)
}

/// A text of at most 32 octets that ends in a zero.
fn name(words: &[u32]) -> Option<String> {
    let octets = words.iter().flat_map(|word| word.to_ne_bytes());
    let text: Vec<u8> = octets.take_while(|octet| *octet != 0).collect();
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

/// `struct ethtool_cmd` has the rate in two halves; all ones and 0 are no rate.
fn speed(words: &[u32; 11]) -> Option<u32> {
    let half = |word: u32| {
        let [a, b, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([a, b]))
    };
    let rate = half(words[7]) << 16 | half(words[3]);
    (rate != 0 && rate != u32::MAX && rate != 0xffff).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_says_that_it_has_no_hardware() {
        let abilities = Abilities::of("lo");
        assert_eq!(abilities.hardware_clock, None);
        assert_ne!(abilities.hardware_stamps, Some(true));
        assert_eq!(abilities.speed_mbps, None);
        assert_eq!(Abilities::of("no-such-if"), Abilities::default());
    }

    #[test]
    fn a_rate_above_65_gbit_needs_both_halves() {
        let mut words = [0; 11];
        assert_eq!(speed(&words), None);
        let half = |value: u16| {
            let [a, b] = value.to_ne_bytes();
            u32::from_ne_bytes([a, b, 7, 7])
        };
        (words[3], words[7]) = (half(1_000), half(0));
        assert_eq!(speed(&words), Some(1_000));
        (words[3], words[7]) = (half(0x86a0), half(1));
        assert_eq!(speed(&words), Some(100_000));
        (words[3], words[7]) = (half(0xffff), half(0xffff));
        assert_eq!(speed(&words), None);
    }
}
