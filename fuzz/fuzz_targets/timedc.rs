//! No text makes the translation of Timed C panic, nor its graph, and its edits fit the text that
//! they are about.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_program::graph::link;
use onbeat_program::source::{Expanded, Unit, apply, normal};
use onbeat_program::timedc::{Options, Target, translate};

fuzz_target!(|text: &str| {
    let (plain, _) = normal(text, 0);
    let unit = Unit::plain("a.c", text);
    let expanded = Expanded::plain(&plain);
    for target in [Target::Posix, Target::FreeRtos] {
        let options = Options { keep_phase: false, target };
        let translation = translate(&expanded, &unit.files(), options);
        let _ = apply(&unit, &expanded, &translation.edits);
        let _ = link(&[translation.graph], "program");
    }
});
