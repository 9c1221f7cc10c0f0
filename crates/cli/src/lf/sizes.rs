//! The sizes of a model's types, from a C compiler. It only compiles: nothing of the model runs.

use crate::cc;
use crate::input;
use onbeat_description::lf::SizeQuestion;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// The most types that are tried one by one.
const TRIED: usize = 64;
/// The most of an object file.
const OBJECT_OCTETS: u64 = 16 << 20;
/// What stands before each number in the object file.
const MARK: &str = "onbeat-size=";
/// Digits of a type's number and of its size.
const DIGITS: usize = 10;

/// The sizes in octets, in the order of the types; none for a type that does not compile.
pub(super) fn sizes(question: &SizeQuestion, directory: &Path) -> Vec<Option<u32>> {
    let all: Vec<usize> = (0..question.types.len()).collect();
    let mut found = vec![None; question.types.len()];
    if compile(question, &all, directory, &mut found) {
        return found;
    }
    // One that is wrong keeps all others from being compiled.
    for at in all.into_iter().take(TRIED) {
        compile(question, &[at], directory, &mut found);
    }
    found
}

/// Whether a file with the sizes of these types compiles; notes them.
fn compile(
    question: &SizeQuestion,
    types: &[usize],
    directory: &Path,
    found: &mut [Option<u32>],
) -> bool {
    let Ok(scratch) = tempfile::tempdir() else { return false };
    let object = scratch.path().join("sizes.o");
    let compiler = cc::compiler();
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).args(["-w", "-x", "c", "-c", "-", "-o"]).arg(&object);
    for include in ["", "include", "../include"] {
        command.arg("-I").arg(directory.join(include));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let text = program(question, types);
    let ended = cc::watched_output(&mut command, Some(&text), &AtomicBool::new(false));
    if !ended.is_ok_and(|output| output.status.success()) {
        return false;
    }
    let Ok(octets) = input::read(&object, OBJECT_OCTETS) else { return false };
    for (at, size) in marks(&octets) {
        if let Some(entry) = found.get_mut(at) {
            *entry = Some(size);
        }
    }
    true
}

/// C whose object file has the sizes as text.
fn program(question: &SizeQuestion, types: &[usize]) -> String {
    let mut text = String::from("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n");
    text.push_str(&question.preamble);
    text.push('\n');
    let digits = |text: &mut String, value: &str| {
        let mut power = 10_u64.pow(DIGITS as u32 - 1);
        while power > 0 {
            let _ = write!(text, "(char)('0' + ({value}) / {power}ull % 10), ");
            power /= 10;
        }
    };
    for at in types {
        let _ = write!(text, "const char onbeat_size_{at}[] = {{ ");
        for c in MARK.chars() {
            let _ = write!(text, "'{c}', ");
        }
        digits(&mut text, &format!("{at}ull"));
        text.push_str("':', ");
        // `T[2]` is a type name in C.
        digits(&mut text, &format!("sizeof({})", question.types[*at]));
        text.push_str("';' };\n");
    }
    text
}

/// The numbers and sizes in an object file.
fn marks(octets: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    let mark = MARK.as_bytes();
    let length = mark.len() + 2 * DIGITS + 2;
    octets.windows(length).filter(move |window| window.starts_with(mark)).filter_map(
        move |window| {
            let text = std::str::from_utf8(&window[mark.len()..]).ok()?;
            let (at, size) = text.strip_suffix(';')?.split_once(':')?;
            Some((at.parse().ok()?, size.parse().ok()?))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_does_not_compile_hides_no_other() {
        let question = SizeQuestion {
            types: ["pose_t", "nowhere_t", "pose_t[3]"].map(str::to_owned).into(),
            preamble: "typedef struct { int32_t a; char b; } pose_t;".to_owned(),
        };
        assert_eq!(sizes(&question, Path::new(".")), [Some(8), None, Some(24)]);
        let broken = SizeQuestion { preamble: "#error".to_owned(), ..question };
        assert_eq!(sizes(&broken, Path::new(".")), [None, None, None]);
    }
}
