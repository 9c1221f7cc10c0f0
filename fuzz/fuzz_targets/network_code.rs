//! No octets make the loader of Network Code panic, and no text its assembler or formatter; what
//! they accept is written again as the same program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_network_code::assembly::{AssemblyOptions, assemble, assemble_unfollowed};
use onbeat_network_code::disassembly::disassemble;
use onbeat_network_code::format::format;
use onbeat_runtime::network_code::image;
use onbeat_runtime::network_code::program::StationProgram;

/// IEEE 802.3's, so that mutations get behind the checksum.
fn checksum(octets: &[u8]) -> u32 {
    let mut rest = u32::MAX;
    for octet in octets {
        rest ^= u32::from(*octet);
        for _ in 0..8 {
            rest = rest >> 1 ^ if rest & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !rest
}

fn program(text: &str) -> Option<StationProgram> {
    let options = AssemblyOptions { station: Some("fuzz"), network: None };
    let options = if text.contains("station") { AssemblyOptions::default() } else { options };
    // A name that files may not be able to hold.
    let program = assemble(text, text, options).program?;
    check(&program);
    Some(StationProgram { source: String::new(), lines: Vec::new(), ..program })
}

/// Text and file of a program are of the same program.
fn check(program: &StationProgram) {
    let octets = image::emit(program).expect("it was accepted");
    assert_eq!(image::parse(&octets).as_ref(), Ok(program));
    let text = disassemble(program).expect("it was accepted");
    let again = assemble_unfollowed("", &text, AssemblyOptions::default()).program;
    let again = again.expect("it was disassembled");
    assert_eq!((&again.words, &again.buffers), (&program.words, &program.buffers));
    assert_eq!(disassemble(&again).as_ref(), Ok(&text));
    assert_eq!(format(&text).as_ref(), Ok(&text));
}

fuzz_target!(|octets: &[u8]| {
    let mut sealed = image::MAGIC.to_vec();
    sealed.extend(image::VERSION.to_be_bytes());
    sealed.extend(octets);
    sealed.extend(checksum(&sealed).to_be_bytes());
    for octets in [octets, &sealed] {
        if let Ok(program) = image::parse(octets) {
            assert_eq!(image::emit(&program).as_deref(), Ok(octets));
            check(&program);
        }
    }
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let assembled = program(text);
    if let Ok(formatted) = format(text) {
        assert_eq!(format(&formatted).as_ref(), Ok(&formatted));
        assert_eq!(program(&formatted), assembled);
    }
});
