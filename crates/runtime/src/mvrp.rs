//! The multiple VLAN registration protocol (MVRP, 802.1Q-2018 11.2): who wants the frames of which
//! VLAN.

use crate::mrp::{AttributeType, MrpApplication};
use onbeat_model::units::MacAddress;

/// MVRP in customer bridges.
#[derive(Clone, Copy, Debug)]
pub struct Mvrp;

/// A VLAN identifier, 1 to 4094.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vid(u16);

impl Vid {
    /// The VLAN with this number, if it can be one (9.6).
    pub const fn new(vid: u16) -> Option<Self> {
        if is_vid(vid) { Some(Self(vid)) } else { None }
    }
    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Whether it is the number of a VLAN: 0 is that of a priority tag, 4095 is reserved (Table 9-2).
pub(crate) const fn is_vid(vid: u16) -> bool {
    1 <= vid && vid <= 4_094
}

impl MrpApplication for Mvrp {
    type Attribute = Vid;
    type Key = Vid;

    const ETHERTYPE: u16 = 0x88f5;
    const DESTINATION: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x21]);
    const VERSION: u8 = 0;
    const HAS_LIST_LENGTH: bool = false;
    /// The VID vector (11.2.3.1.6).
    const TYPES: &'static [AttributeType] =
        &[AttributeType { number: 1, length: 2, has_parameter: false }];

    fn key(attribute: &Vid) -> Vid {
        *attribute
    }
    fn type_of(_key: Vid) -> u8 {
        1
    }
    fn write(attribute: &Vid, into: &mut Vec<u8>) {
        into.extend(attribute.0.to_be_bytes());
    }
    fn read(_number: u8, first: &[u8], offset: u16, _parameter: u8) -> Option<Vid> {
        let [high, low] = *first else { return None };
        Vid::new(u16::from_be_bytes([high, low]).checked_add(offset)?)
    }
    fn follows(first: &Vid, offset: u16, next: &Vid) -> bool {
        first.0.checked_add(offset) == Some(next.0)
    }
}
