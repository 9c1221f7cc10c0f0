//! No text makes the translation of Timed C panic, nor its graph, and its edits fit the text that
//! they are about.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_program::graph::link;
use onbeat_program::source::{Expanded, Unit, apply, normal};
use onbeat_program::timedc::{Options, Origin, Target, translate};

fuzz_target!(|text: &str| {
    let (plain, _) = normal(text, 0);
    let unit = Unit::plain("a.c", text);
    let expanded = Expanded::plain(&plain);
    let kinds = [(Target::Posix, Origin::Task), (Target::FreeRtos, Origin::Function)];
    for (target, origin) in kinds {
        let options = Options { target, origin, ..Options::default() };
        let translation = translate(&expanded, &unit.files(), options);
        let _ = apply(&unit, &expanded, &translation.edits);
        let _ = link(&[translation.graph], "program");
    }
});
