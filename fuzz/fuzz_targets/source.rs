//! No text, and no answer of a preprocessor, makes the reader of C sources panic; a unit that is
//! read and not edited is the text itself. What follows the first octet 0 is the answer, once to
//! the text and once more to the marked one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_program::source::{Edit, Expanded, NotFollowed, Unit, apply, normal};

fuzz_target!(|text: &str| {
    let (text, answer) = text.split_once('\0').unwrap_or((text, ""));
    let (plain, _) = normal(text, 0);
    assert_eq!(plain.len(), text.len());
    let unit = Unit::plain("a.c", text);
    let expanded = Expanded::plain(&plain);
    let kept: String = apply(&unit, &expanded, &[]).replace('\u{feff}', "");
    assert_eq!(kept, plain.replace('\u{feff}', ""));
    let mut header = |_: &str| Ok(text.to_owned());
    let unit = Unit::read("a.c", text, answer, &mut header).expect("every header is there");
    let mut preprocess = |_: &str| Ok::<_, NotFollowed>(answer.to_owned());
    if let Ok(expanded) = unit.expand(&mut preprocess) {
        let edits = [Edit::Before(0, "x".to_owned())];
        let _ = apply(&unit, &expanded, &edits);
    }
});
