//! The disassembler: from a program to a text that assembles to it.

use crate::assembly::UNITS;
use onbeat_runtime::network_code::check::ProgramError;
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::program::{BufferRole, StationProgram, is_name};
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles, issue_cycles};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Columns of an instruction before what is noted of it.
const NOTE_COLUMN: usize = 40;

/// The text of a program. Labels are called by their addresses.
///
/// # Errors
/// When no station can load the program: it may have no text.
///
/// ```
/// use onbeat_network_code::{assembly, disassembly};
/// let text = "station a\n\nL0:\n    sync slave, 1 ms\n    goto L0\n";
/// let assembly = assembly::assemble("a.nc", text, assembly::AssemblyOptions::default());
/// let program = assembly.program.ok_or("it is right")?;
/// assert_eq!(disassembly::disassemble(&program)?, text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn disassemble(program: &StationProgram) -> Result<String, ProgramError> {
    text(program, |_, _| None)
}

/// The same, with the address, the word and the least cycles of each instruction as a comment.
///
/// # Errors
/// As [`disassemble`].
pub fn disassemble_with_words(program: &StationProgram) -> Result<String, ProgramError> {
    let note = |address: usize, instruction| {
        let word = Instruction::encode(instruction);
        let Cycles(cycles) = least_cycles(program, instruction);
        Some(format!("# {address:03x} {word:016x} {cycles}"))
    };
    Ok(format!("# Address, word, least cycles to the next issue\n{}", text(program, note)?))
}

/// What an instruction takes until the next one is issued, if it waits for nothing.
pub fn least_cycles(program: &StationProgram, instruction: Instruction) -> Cycles {
    let words = match instruction {
        Instruction::Receive { buffer, .. } => program.buffer(buffer).map_or(0, |it| it.words),
        _ => 0,
    };
    issue_cycles(instruction, words)
}

fn text(
    program: &StationProgram,
    note: impl Fn(usize, Instruction) -> Option<String>,
) -> Result<String, ProgramError> {
    program.check()?;
    let mut text = declarations(program);
    let instructions: Vec<Instruction> =
        program.words.iter().filter_map(|word| Instruction::decode(*word).ok()).collect();
    let labels: BTreeSet<Address> = (instructions.iter())
        .filter_map(|instruction| match instruction {
            Instruction::Future { target, .. } | Instruction::Branch { target, .. } => {
                Some(*target)
            }
            _ => None,
        })
        .collect();
    for (address, instruction) in instructions.into_iter().enumerate() {
        if Address::new(address).is_some_and(|address| labels.contains(&address)) {
            let _ = writeln!(text, "L{address}:");
        }
        let line = format!("    {}", instruction_text(program, instruction));
        let _ = match note(address, instruction) {
            Some(note) => writeln!(text, "{line:NOTE_COLUMN$}  {note}"),
            None => writeln!(text, "{line}"),
        };
    }
    Ok(text)
}

/// Everything before the instructions.
fn declarations(program: &StationProgram) -> String {
    let mut text = match is_name(&program.station) {
        true => format!("station {}\n", program.station),
        false => format!("station \"{}\"\n", program.station),
    };
    let rate = match program.medium.octet_cycles {
        1 => "1 Gbit/s",
        10 => "100 Mbit/s",
        _ => "10 Mbit/s",
    };
    if program.medium.octet_cycles != 1 || program.medium.tagged {
        let tagged = if program.medium.tagged { " tagged" } else { "" };
        let _ = writeln!(text, "medium {rate}{tagged}");
    }
    text.push('\n');
    for buffer in &program.buffers {
        let role = match buffer.role {
            BufferRole::Output => "output",
            BufferRole::Input => "input",
        };
        let _ = writeln!(text, "{role} {}[{}]", buffer.name, buffer.words);
    }
    for message in &program.messages {
        let _ = writeln!(text, "message {} = {}[{}]", message.name, message.id.0, message.words);
    }
    if !program.buffers.is_empty() || !program.messages.is_empty() {
        text.push('\n');
    }
    text
}

/// The text of one instruction of a program. Labels are called by their addresses; what the program
/// does not have is `?`.
pub fn instruction_text(program: &StationProgram, instruction: Instruction) -> String {
    match instruction {
        Instruction::Nop => "nop".to_owned(),
        Instruction::Create { buffer } => format!("create {}", buffer_name(program, buffer)),
        Instruction::Send { message } => format!("send {}", message_name(program, message)),
        Instruction::Receive { message, buffer } => {
            let message = message_name(program, message);
            format!("receive {message}, {}", buffer_name(program, buffer))
        }
        Instruction::Future { target, delay } => {
            format!("future L{}, {}", target.index(), time(delay))
        }
        Instruction::Halt => "halt".to_owned(),
        Instruction::SyncMaster => "sync master".to_owned(),
        Instruction::SyncSlave { timeout } => format!("sync slave, {}", time(timeout)),
        Instruction::Branch { guard: Guard::ALWAYS, target } => format!("goto L{}", target.index()),
        Instruction::Branch { guard, target } => {
            format!("branch {}, L{}", guard_text(program, guard), target.index())
        }
    }
}

fn buffer_name(program: &StationProgram, id: BufferId) -> &str {
    program.buffer(id).map_or("?", |buffer| &buffer.name)
}

fn message_name(program: &StationProgram, id: MessageId) -> &str {
    program.message(id).map_or("?", |message| &message.name)
}

/// Cycles in the largest unit of which they are a whole number.
pub(crate) fn time(cycles: u32) -> String {
    let ns = i64::from(cycles) * i64::from(CYCLE_NS);
    let units = UNITS.iter().filter(|(unit, size)| *unit != "cycles" && ns % size == 0);
    match units.max_by_key(|(_, size)| size) {
        Some((unit, size)) if ns > 0 => format!("{} {unit}", ns / size),
        _ => format!("{ns} ns"),
    }
}

fn guard_text(program: &StationProgram, guard: Guard) -> String {
    let word = |word: BufferWord| format!("{}[{}]", buffer_name(program, word.buffer), word.index);
    let condition = match guard.condition {
        Condition::Always => "always".to_owned(),
        Condition::Count { counter, every } => format!("count({counter}, {every})"),
        Condition::Fresh(message) => format!("fresh({})", message_name(program, message)),
        Condition::Received => "received".to_owned(),
        Condition::SyncTimeout => "sync_timeout".to_owned(),
        Condition::Overrun => "overrun".to_owned(),
        Condition::Flag(flag) => format!("flag({flag})"),
        Condition::Transmitting => "transmitting".to_owned(),
        Condition::LinkUp => "link_up".to_owned(),
        // A negated comparison is the opposite one.
        Condition::Immediate { word: left, relation, value } => {
            let operator = operator(relation, guard.negated);
            let is_large = matches!(relation, Relation::Below | Relation::NotAbove) && value < 0;
            let value = if is_large { format!("{:#x}", value as u32) } else { value.to_string() };
            return format!("{} {operator} {value}", word(left));
        }
        Condition::Words { left, relation, right } => {
            let operator = operator(relation, guard.negated);
            return format!("{} {operator} {}", word(left), word(right));
        }
    };
    if guard.negated { format!("not {condition}") } else { condition }
}

fn operator(relation: Relation, negated: bool) -> &'static str {
    match (relation, negated) {
        (Relation::Equal, false) => "==",
        (Relation::Equal, true) => "!=",
        (Relation::Less, false) => "<",
        (Relation::Less, true) => ">=",
        (Relation::AtMost, false) => "<=",
        (Relation::AtMost, true) => ">",
        (Relation::Below, false) => "<u",
        (Relation::Below, true) => ">=u",
        (Relation::NotAbove, false) => "<=u",
        (Relation::NotAbove, true) => ">u",
    }
}
