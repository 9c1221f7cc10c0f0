//! What the hardware is told of the language: `rtl/station/nc_table.vh`, from the tables that
//! assembler, verifier, interpreter and executor use.

use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::timing::{
    FRAME_WORDS, RECEIVE_STORE, SEND_START, SYNC_RESUME, issue_cycles,
};
use onbeat_runtime::network_code::wire::{ETHERTYPE_DATA, ETHERTYPE_ROUND, GROUP};
use std::fmt::Write;

/// Names of the reasons for which a station stops, in the order of their codes in
/// `nc_registers.v`, from 0.
pub const TRAPS: [&str; 12] = [
    "NONE",
    "OPERATION",
    "GUARD",
    "OPERAND",
    "RESERVED",
    "END",
    "NO_FUTURE",
    "BUFFER",
    "MESSAGE",
    "NOTHING_CREATED",
    "LENGTH",
    "INDEX",
];

/// The tag of a tagged frame: 802.1Q, priority 7, VLAN 0.
const TAG: u32 = 0x8100_e000;

/// The definitions that the Verilog of the station includes.
pub fn header() -> String {
    let mut text = String::from(
        "// Made of the tables of the language by `ONBEAT_UPDATE=1 cargo test -p \
         onbeat-network-code hardware`.\n",
    );
    let mut define = |name: &str, value: String| {
        writeln!(text, "`define NC_{name} {value}").expect("a String takes what is written");
    };
    let address = Address::new(0).expect("the first address");
    let (buffer, message) = (BufferId(0), MessageId(0));
    let branch = |condition| {
        let guard = Guard { negated: false, condition };
        Instruction::Branch { guard, target: address }
    };
    for (name, instruction) in [
        ("NOP", Instruction::Nop),
        ("CREATE", Instruction::Create { buffer }),
        ("SEND", Instruction::Send { message }),
        ("RECEIVE", Instruction::Receive { message, buffer }),
        ("FUTURE", Instruction::Future { target: address, delay: 0 }),
        ("HALT", Instruction::Halt),
        ("SYNC", Instruction::SyncMaster),
        ("BRANCH", branch(Condition::Always)),
    ] {
        define(name, format!("6'd{}", instruction.encode() >> 58));
        // Of `receive` what it takes beside its words.
        define(&format!("COST_{name}"), format!("10'd{}", issue_cycles(instruction, 0).0));
    }
    define("MASTER", format!("6'd{}", Instruction::SyncMaster.encode() >> 32 & 0x3f));
    let word = BufferWord { buffer, index: 0 };
    for (name, condition) in [
        ("ALWAYS", Condition::Always),
        ("COUNT", Condition::Count { counter: 0, every: 1 }),
        ("FRESH", Condition::Fresh(message)),
        ("RECEIVED", Condition::Received),
        ("SYNC_TIMEOUT", Condition::SyncTimeout),
        ("OVERRUN", Condition::Overrun),
        ("FLAG", Condition::Flag(0)),
        ("TRANSMITTING", Condition::Transmitting),
        ("LINK_UP", Condition::LinkUp),
    ] {
        define(name, format!("5'd{}", branch(condition).encode() >> 32 & 0x1f));
    }
    let relations = [
        ("EQUAL", Relation::Equal),
        ("LESS", Relation::Less),
        ("AT_MOST", Relation::AtMost),
        ("BELOW", Relation::Below),
        ("NOT_ABOVE", Relation::NotAbove),
    ];
    for (name, relation) in relations {
        let condition = Condition::Immediate { word, relation, value: 0 };
        define(name, format!("3'd{}", branch(condition).encode() >> 32 & 7));
    }
    define("RELATIONS", format!("3'd{}", relations.len()));
    for (code, name) in TRAPS.iter().enumerate() {
        define(&format!("TRAP_{name}"), format!("4'd{code}"));
    }
    define("SEND_START", format!("5'd{}", SEND_START.0));
    define("RECEIVE_STORE", RECEIVE_STORE.0.to_string());
    define("SYNC_RESUME", SYNC_RESUME.0.to_string());
    define("FRAME_WORDS", format!("9'd{FRAME_WORDS}"));
    let group: String = GROUP.0.iter().map(|octet| format!("{octet:02x}")).collect();
    define("GROUP", format!("48'h{group}"));
    define("ETHERTYPE_DATA", format!("16'h{ETHERTYPE_DATA:04x}"));
    define("ETHERTYPE_ROUND", format!("16'h{ETHERTYPE_ROUND:04x}"));
    define("TAG", format!("32'h{TAG:08x}"));
    text
}
