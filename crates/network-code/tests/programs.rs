//! Random programs that stations can load, and random texts.

use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, COUNTERS, Condition, FLAGS, Guard, IMMEDIATE, Instruction,
    MessageId, Relation,
};
use onbeat_runtime::network_code::program::{
    Buffer, BufferRole, MessageFormat, RESERVED, StationProgram, is_name,
};
use onbeat_runtime::network_code::timing::{FRAME_WORDS, Medium};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn name() -> impl Strategy<Value = String> {
    let near = select(&RESERVED[..]).prop_map(|word| format!("{word}_"));
    let any = "[a-zA-Z_][a-zA-Z0-9_]{0,12}".prop_filter("a name", |name| is_name(name));
    prop_oneof![any, near, "L[0-9]{1,4}"]
}

fn names(most: usize) -> impl Strategy<Value = Vec<String>> {
    btree_set(name(), 0..=most).prop_map(|names| names.into_iter().collect()).prop_shuffle()
}

fn words() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 1..=4_u16, 1 => 1..=FRAME_WORDS]
}

fn buffers() -> impl Strategy<Value = Vec<Buffer>> {
    names(6).prop_flat_map(|names| {
        let count = names.len();
        let rows = vec((words(), any::<bool>()), count..=count);
        rows.prop_map(move |rows| {
            let of = |(name, (words, is_input)): (&String, (u16, bool))| {
                let role = if is_input { BufferRole::Input } else { BufferRole::Output };
                Buffer { name: name.clone(), words, role }
            };
            names.iter().zip(rows).map(of).collect()
        })
    })
}

fn messages() -> impl Strategy<Value = Vec<MessageFormat>> {
    names(5).prop_flat_map(|names| {
        let count = names.len();
        let rows = (btree_set(any::<u8>(), count..=count), vec(words(), count..=count));
        rows.prop_map(move |(ids, words)| {
            let rows = names.iter().zip(ids).zip(words);
            let of = |((name, id), words): ((&String, u8), u16)| {
                let id = MessageId(id);
                MessageFormat { id, name: name.clone(), words }
            };
            rows.map(of).collect()
        })
    })
}

/// What an instruction is made of: numbers that are fitted to the program.
type Raw = (u8, u8, bool, [u32; 3]);

fn relation(of: u32) -> Relation {
    let all =
        [Relation::Equal, Relation::Less, Relation::AtMost, Relation::Below, Relation::NotAbove];
    all[of as usize % all.len()]
}

/// One of several, if there is any.
fn one<T>(of: u32, all: &[T]) -> Option<(usize, &T)> {
    let at = of as usize % all.len().max(1);
    all.get(at).map(|it| (at, it))
}

fn buffer_word(of: u32, index: u32, buffers: &[Buffer]) -> Option<BufferWord> {
    let (at, buffer) = one(of, buffers)?;
    let index = index % u32::from(buffer.words.min(256));
    Some(BufferWord { buffer: BufferId(at as u8), index: index as u8 })
}

fn condition(
    kind: u8,
    [a, b, c]: [u32; 3],
    buffers: &[Buffer],
    messages: &[MessageFormat],
) -> Option<Condition> {
    Some(match kind % 11 {
        0 => Condition::Always,
        1 => Condition::Count { counter: a as u8 % COUNTERS, every: b.max(1) },
        2 => Condition::Fresh(one(a, messages)?.1.id),
        3 => Condition::Received,
        4 => Condition::SyncTimeout,
        5 => Condition::Overrun,
        6 => Condition::Flag(a as u8 % FLAGS),
        7 => Condition::Transmitting,
        8 => Condition::LinkUp,
        9 => {
            let word = buffer_word(a, b, buffers)?;
            let value = (c as i32).clamp(*IMMEDIATE.start(), *IMMEDIATE.end());
            Condition::Immediate { word, relation: relation(a >> 8), value }
        }
        _ => {
            let left = buffer_word(a, b, buffers)?;
            let right = buffer_word(c, b >> 8, buffers)?;
            Condition::Words { left, relation: relation(a >> 8), right }
        }
    })
}

fn instruction(
    (kind, guard, negated, [a, b, c]): Raw,
    count: usize,
    buffers: &[Buffer],
    messages: &[MessageFormat],
) -> Option<Instruction> {
    let target = Address::new(a as usize % count)?;
    Some(match kind % 9 {
        0 => Instruction::Nop,
        1 => Instruction::Create { buffer: BufferId(one(b, buffers)?.0 as u8) },
        2 => Instruction::Send { message: one(b, messages)?.1.id },
        3 => {
            let message = one(b, messages)?.1;
            let fits = |it: &Buffer| it.role == BufferRole::Input && it.words == message.words;
            let buffer = BufferId(buffers.iter().position(fits)? as u8);
            Instruction::Receive { message: message.id, buffer }
        }
        4 => Instruction::Future { target, delay: c },
        5 => Instruction::Halt,
        6 => Instruction::SyncMaster,
        7 => Instruction::SyncSlave { timeout: c.max(1) },
        _ => {
            let condition = condition(guard, [b, c, a], buffers, messages)?;
            Instruction::Branch { guard: Guard { negated, condition }, target }
        }
    })
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        0..300_u32,
        (0..40_u32).prop_map(|n| n * 125),
        (0..5_u32).prop_map(|n| n * 125_000_000),
        (u32::MAX - 300)..=u32::MAX,
    ]
}

/// Any program that a station can load.
pub(crate) fn program() -> impl Strategy<Value = StationProgram> {
    let head = ("[a-z0-9_-]{1,12}", select(&[1, 10, 100][..]), any::<bool>());
    let raw = (any::<u8>(), any::<u8>(), any::<bool>(), [number(), number(), number()]);
    (head, buffers(), messages(), vec(raw, 1..60), "[ -~é]{0,20}", any::<bool>()).prop_map(
        |((station, octet_cycles, tagged), buffers, messages, raws, source, has_lines)| {
            let count = raws.len();
            let of = |raw: &Raw| instruction(*raw, count, &buffers, &messages);
            let instructions = raws.iter().map(|raw| of(raw).unwrap_or(Instruction::Nop));
            let words: Vec<u64> = instructions.map(Instruction::encode).collect();
            let lines = (1..).take(if has_lines { count } else { 0 }).collect();
            let medium = Medium { octet_cycles, tagged };
            StationProgram { station, medium, buffers, messages, words, source, lines }
        },
    )
}

/// Words, signs and ends of lines, as programs have them and in no order.
pub(crate) fn soup() -> impl Strategy<Value = String> {
    let parts = [
        "station", "a", "b", "medium", "1", "Gbit", "/", "s", "tagged", "const", "=", "N",
        "output", "input", "[", "]", "message", "m", ":", ",", "(", ")", "+", "-", "*", "<", "<u",
        ">=", "==", "create", "send", "receive", "future", "halt", "sync", "master", "slave",
        "branch", "goto", "not", "always", "count", "fresh", "flag", "frame", "gap", "ms",
        "cycles", "0x1f", "\"x\"", "\n", "\n", "\n", " ", " ", " ", "\t", "\r", "# note", "#",
        "L0", "é", "\"",
    ];
    vec(select(parts.to_vec()), 0..80).prop_map(|parts| parts.join(""))
}

/// Statements that are formed right, laid out in any way; the program need not be right.
pub(crate) fn sloppy() -> impl Strategy<Value = String> {
    let statements = [
        "station a",
        "station \"b-1\"",
        "medium 1 Gbit / s",
        "medium 10 Mbit/s tagged",
        "const N = - 5 + ( 3 * 2 ) - -1",
        "const T = frame ( 2 ) + gap ( ) / 2 - 8 ns",
        "output b [ 2 ]",
        "input c[N+1]",
        "output d = channel \"speed\"",
        "message m = 1 [ 2 ]",
        "x:",
        "y :",
        "x: y:nop",
        "nop",
        "create b",
        "send m",
        "receive m , c",
        "future x , 1 ms - N * 2 us",
        "halt",
        "sync master",
        "sync slave , 10 cycles",
        "branch not fresh ( m ) , x",
        "branch b [ 0 ]<- 5 , y",
        "branch b[1] >=u c [ N ] , x",
        "branch count ( 0 , - 1 ) , x",
        "goto x",
        "",
        "",
        "",
    ];
    let space = select(vec![" ", "  ", "\t", ""]);
    let comment = select(vec!["", "", "", "#", "# note", "## a # b  ", "#\tx \r"]);
    let end = select(vec!["\n", "\n", "\r\n", "\n\n\n"]);
    let line = (space.clone(), select(statements.to_vec()), space, comment, end);
    let text = |(before, statement, behind, comment, end): (&str, &str, &str, &str, &str)| {
        format!("{before}{statement}{behind}{comment}{end}")
    };
    vec(line.prop_map(text), 0..30).prop_map(|lines| lines.concat())
}
