//! Programs as texts and as files: what is written is read as the same program.

use crate::programs::{program, sloppy, soup};
use onbeat_model::diagnostic::Severity;
use onbeat_network_code::assembly::{Assembly, AssemblyOptions, assemble, assemble_unfollowed};
use onbeat_network_code::disassembly::{
    disassemble, disassemble_with_words, instruction_text, least_cycles,
};
use onbeat_network_code::format::format;
use onbeat_runtime::network_code::image::{self, IMAGE_OCTETS, ImageError};
use onbeat_runtime::network_code::instruction::Instruction;
use onbeat_runtime::network_code::program::StationProgram;
use proptest::prelude::*;
use std::path::Path;

/// Everything but where it comes from.
fn bare(program: &StationProgram) -> StationProgram {
    StationProgram { source: String::new(), lines: Vec::new(), ..program.clone() }
}

fn unfollowed(text: &str) -> Assembly {
    assemble_unfollowed("x.nc", text, AssemblyOptions::default())
}

/// The words and comments of a text, without what is between them.
fn content(text: &str) -> String {
    let line = |line: &str| -> String { line.split([' ', '\t', '\r']).collect() };
    text.lines().map(line).collect::<Vec<_>>().concat()
}

/// A formatted text is as its definition says, and means the same.
fn check_format(text: &str) -> Result<bool, TestCaseError> {
    let before = assemble("x.nc", text, AssemblyOptions::default());
    let formatted = match format(text) {
        Ok(formatted) => formatted,
        Err(found) => {
            prop_assert!(found.iter().any(|found| found.severity == Severity::Error));
            prop_assert!(before.program.is_none(), "{}", text);
            return Ok(false);
        }
    };
    prop_assert_eq!(format(&formatted), Ok(formatted.clone()), "of {}", text);
    prop_assert_eq!(content(&formatted), content(text));
    let after = assemble("x.nc", &formatted, AssemblyOptions::default());
    let codes = |of: &Assembly| {
        let mut codes: Vec<_> = of.diagnostics.iter().map(|found| found.code).collect();
        codes.sort_unstable();
        codes
    };
    prop_assert_eq!(codes(&before), codes(&after));
    let programs = [&before, &after].map(|of| of.program.as_ref().map(bare));
    prop_assert_eq!(&programs[0], &programs[1]);
    prop_assert!(!formatted.contains("\n\n\n") && !formatted.starts_with('\n'));
    prop_assert!(formatted.is_empty() || formatted.ends_with('\n'));
    prop_assert!(formatted.lines().all(|line| line == line.trim_end_matches([' ', '\t', '\r'])));
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_file_is_read_as_the_program_that_was_written(program in program()) {
        prop_assert_eq!(program.check(), Ok(()));
        let octets = image::emit(&program).expect("it was checked");
        prop_assert!(octets.len() <= IMAGE_OCTETS);
        prop_assert_eq!(image::parse(&octets), Ok(program));
    }

    #[test]
    fn a_changed_file_is_refused_or_the_only_one_of_its_program(
        program in program(),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut octets = image::emit(&program).expect("it was checked");
        if let Some(cut) = cut {
            octets.truncate(cut.index(octets.len()));
        }
        let body = octets.len().saturating_sub(4);
        if body > 0 {
            octets[at.index(body)] ^= octet;
            octets.truncate(body);
        }
        let checksum = crc(&octets);
        octets.extend(checksum.to_be_bytes());
        match image::parse(&octets) {
            Ok(parsed) => prop_assert_eq!(image::emit(&parsed), Ok(octets)),
            Err(error) => prop_assert!(error != ImageError::Checksum, "{}", error),
        }
    }

    #[test]
    fn a_disassembled_program_is_assembled_again(program in program()) {
        for text in [disassemble(&program), disassemble_with_words(&program)] {
            let text = text.expect("it was checked");
            let assembly = unfollowed(&text);
            let assembled = assembly.program.as_ref().map(bare);
            let found = &assembly.diagnostics;
            prop_assert_eq!(assembled, Some(bare(&program)), "{}\n{:?}", text, found);
        }
        let text = disassemble(&program).expect("it was checked");
        prop_assert_eq!(format(&text), Ok(text.clone()), "it is laid out already");
    }

    #[test]
    fn an_assembled_program_can_be_loaded(text in sloppy()) {
        for assembly in [unfollowed(&text), assemble("x.nc", &text, AssemblyOptions::default())] {
            if let Some(program) = assembly.program {
                prop_assert_eq!(program.check(), Ok(()));
            }
        }
    }

    #[test]
    fn no_text_makes_the_assembler_panic_and_no_error_is_without_a_place(text in soup()) {
        let assembly = assemble("x.nc", &text, AssemblyOptions::default());
        let has_error = assembly.diagnostics.iter().any(|d| d.severity == Severity::Error);
        prop_assert_eq!(assembly.program.is_none(), has_error);
        for found in &assembly.diagnostics {
            let (at, _) = found.at.as_ref().expect("a place");
            prop_assert!(text.get(at.start as usize..at.end as usize).is_some(), "{:?}", found);
        }
        check_format(&text)?;
    }

    #[test]
    fn a_formatted_text_means_the_same_and_is_formatted(text in sloppy()) {
        prop_assert!(check_format(&text)?, "each line is a statement: {}", text);
    }

    #[test]
    fn programs_keep_their_meaning_in_any_layout(program in program(), space in " {0,3}") {
        let text = disassemble(&program).expect("it was checked");
        let text = text.replace(' ', &format!(" {space}")).replace(":\n", ": ");
        prop_assert!(check_format(&text)?);
        let formatted = format(&text).expect("it was formatted before");
        let assembled = unfollowed(&formatted).program;
        prop_assert_eq!(assembled.as_ref().map(bare), Some(bare(&program)));
    }
}

/// IEEE 802.3's checksum by its definition.
fn crc(octets: &[u8]) -> u32 {
    let mut rest = u32::MAX;
    for bit in octets.iter().flat_map(|octet| (0..8).map(move |at| octet >> at & 1)) {
        let divides = rest & 1 != u32::from(bit);
        rest = rest >> 1 ^ if divides { 0xedb8_8320 } else { 0 };
    }
    !rest
}

#[test]
fn the_layout_is_the_documented_one() {
    let text = "

#  first
station   a#me
 medium 100 Mbit / s tagged



const N=-5--1 *( 2+3)
output b [N+ 10]   # what is sent
message m=1[2]
# here
begin:x:   sync slave,1 ms # waits
  # on

# the next
 nop
branch b[0]>=u N , begin  # back
create b# sent

send m
# over

";
    let expected = "\
#  first
station a  #me
medium 100 Mbit/s tagged

const N = -5 - -1 * (2 + 3)
output b[N + 10]  # what is sent
message m = 1[2]
# here
begin:
x:
    sync slave, 1 ms  # waits
    # on

    # the next
    nop
    branch b[0] >=u N, begin  # back
    create b                  # sent

    send m
    # over
";
    assert_eq!(format(text), Ok(expected.to_owned()));
}

#[test]
fn programs_of_the_tests_and_the_manual_are_laid_out_already() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let mut count = 0;
    for entry in good.read_dir().expect("a directory") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        assert_eq!(format(&text), Ok(text.clone()), "{}", path.display());
        count += 1;
    }
    assert!(count >= 4);
    let manual = include_str!("../../../docs/network-code.md");
    for block in manual.split("```text\n").skip(1) {
        let (text, _) = block.split_once("```").expect("its end");
        assert_eq!(format(text), Ok(text.to_owned()));
    }
}

#[test]
fn a_program_is_shown_with_its_words() {
    let text = "station a\nmedium 10 Mbit/s\noutput b[2]\ninput c[2]\nmessage m = 2[2]\n\
                begin: sync slave, 2 ms + 8 ns\nbranch not fresh(m), begin\nreceive m, c\n\
                branch c[1] >u 0xffffffff, begin\nfuture begin, 5 cycles\ncreate b\nsend m\nhalt\n";
    let program = unfollowed(text).program.expect("it is right");
    let expected = "\
# Address, word, least cycles to the next issue
station a
medium 10 Mbit/s

output b[2]
input c[2]
message m = 2[2]

L0:
    sync slave, 2000008 ns                # 000 180000000003d091 1
    branch not fresh(m), L0               # 001 1c0000a200000000 3
    receive m, c                          # 002 0c00008000000001 4
    branch c[1] >u 0xffffffff, L0         # 003 1c00007401ffffff 3
    future L0, 40 ns                      # 004 1000000000000005 2
    create b                              # 005 0400000000000000 2
    send m                                # 006 0800008000000000 2
    halt                                  # 007 1400000000000000 1
";
    assert_eq!(disassemble_with_words(&program).as_deref(), Ok(expected));
    let receive = Instruction::decode(program.words[2]).expect("it was assembled");
    assert_eq!(instruction_text(&program, receive), "receive m, c");
    assert_eq!(least_cycles(&program, receive).0, 4);
}

#[test]
fn a_program_that_cannot_be_loaded_is_not_disassembled() {
    let mut program = unfollowed("station a\nsync slave, 1 s\n").program.expect("it is right");
    program.words.push(u64::MAX);
    assert!(disassemble(&program).is_err());
    assert!(image::emit(&program).is_err());
}

#[test]
fn a_program_is_loaded_whatever_its_text_is_called() {
    let text = "station a\nsync slave, 1 s\n";
    for (path, source) in [("a b/ü.nc", "a b/ü.nc"), ("a\nb", ""), (&*"x".repeat(1_025), "")] {
        let assembly = assemble_unfollowed(path, text, AssemblyOptions::default());
        assert_eq!(assembly.source.path, path);
        let program = assembly.program.expect("it is right");
        assert_eq!(program.source, source);
        assert_eq!(program.check(), Ok(()));
    }
}

#[test]
fn the_largest_program_has_a_text_that_is_assembled() {
    let long = |at: usize| format!("{at:x<63}").replace(|c: char| c.is_ascii_digit(), "y");
    let [left, right] = [long(0), format!("z{}", &long(0)[1..])];
    let line = format!("branch {left}[255] >=u {right}[255], end\n");
    let text = format!(
        "station a\ninput {left}[374]\noutput {right}[256]\n{}end: sync master\n",
        line.repeat(4_095)
    );
    let program = unfollowed(&text).program.expect("it is right");
    assert_eq!(program.words.len(), 4_096);
    let shown = disassemble_with_words(&program).expect("it can be loaded");
    assert_eq!(unfollowed(&shown).program.as_ref().map(bare), Some(bare(&program)));
}
