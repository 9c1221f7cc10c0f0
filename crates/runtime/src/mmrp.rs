//! The multiple MAC registration protocol (MMRP, 802.1Q-2018 10.9 to 10.12): who wants the frames
//! to which group addresses. With talker pruning, MSRP asks it.

use crate::mrp::{AttributeType, MrpApplication};
use crate::msrp::plus_address;
use onbeat_model::units::MacAddress;

/// MMRP in the base spanning tree context.
#[derive(Clone, Copy, Debug)]
pub struct Mmrp;

/// Numbers of the attribute types (10.12.1.6).
const SERVICE: u8 = 1;
const MAC: u8 = 2;

/// A group service requirement (10.12.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupService {
    /// The frames of all groups.
    AllGroups,
    /// The frames of groups that are not registered.
    AllUnregisteredGroups,
}

/// An attribute of MMRP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MmrpAttribute {
    /// A group service requirement.
    Service(GroupService),
    /// An address.
    Address(MacAddress),
}

impl MrpApplication for Mmrp {
    type Attribute = MmrpAttribute;
    type Key = MmrpAttribute;

    const ETHERTYPE: u16 = 0x88f6;
    const DESTINATION: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x20]);
    const VERSION: u8 = 0;
    const HAS_LIST_LENGTH: bool = false;
    const TYPES: &'static [AttributeType] = &[
        AttributeType { number: SERVICE, length: 1, has_parameter: false },
        AttributeType { number: MAC, length: 6, has_parameter: false },
    ];

    fn key(attribute: &MmrpAttribute) -> MmrpAttribute {
        *attribute
    }
    fn type_of(key: MmrpAttribute) -> u8 {
        match key {
            MmrpAttribute::Service(_) => SERVICE,
            MmrpAttribute::Address(_) => MAC,
        }
    }
    fn write(attribute: &MmrpAttribute, into: &mut Vec<u8>) {
        match attribute {
            MmrpAttribute::Service(service) => into.push(*service as u8),
            MmrpAttribute::Address(address) => into.extend(address.0),
        }
    }
    fn read(number: u8, first: &[u8], offset: u16, _parameter: u8) -> Option<MmrpAttribute> {
        match (number, first) {
            (SERVICE, [first]) => match u16::from(*first) + offset {
                0 => Some(MmrpAttribute::Service(GroupService::AllGroups)),
                1 => Some(MmrpAttribute::Service(GroupService::AllUnregisteredGroups)),
                _ => None,
            },
            (MAC, first) => plus_address(*first.first_chunk()?, offset).map(MmrpAttribute::Address),
            _ => None,
        }
    }
    fn follows(first: &MmrpAttribute, offset: u16, next: &MmrpAttribute) -> bool {
        match (first, next) {
            (MmrpAttribute::Service(first), MmrpAttribute::Service(next)) => {
                *first as u16 + offset == *next as u16
            }
            (MmrpAttribute::Address(first), MmrpAttribute::Address(next)) => {
                let is_near = u16::from(first.0[5]) + offset <= 0xff;
                is_near && plus_address(first.0, offset) == Some(*next)
            }
            _ => false,
        }
    }
}
