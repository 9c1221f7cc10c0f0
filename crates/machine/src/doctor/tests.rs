//! A fake host that is tuned well, and one fault planted in it at a time.

mod faults;
mod guarantees;
mod host;
mod listing_14;
mod this_machine;

use super::{Facts, Finding, State, checks};
use onbeat_run::machine::Machine;
use std::collections::BTreeSet;

/// What is not as it should be: the names of the checks, and how it stands.
fn wrong(findings: &[Finding]) -> Vec<(&'static str, State)> {
    let wrong = findings.iter().filter(|finding| finding.state != State::Ok);
    wrong.map(|finding| (finding.check.id, finding.state)).collect()
}

#[test]
fn every_check_has_a_name_of_its_own_in_its_area_and_says_what_to_do() {
    let mut names = BTreeSet::new();
    for check in checks() {
        assert!(names.insert(check.id), "{} is there twice", check.id);
        assert!(check.id.starts_with(&format!("{}.", check.area)), "{}", check.id);
        assert!(check.why.ends_with('.') && !check.fix.is_empty(), "{}", check.id);
    }
}

/// The table of docs/doctor.md, made of the checks.
fn documented() -> String {
    let mut text = String::new();
    for check in checks() {
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        let needs: Vec<_> =
            check.against.iter().map(|need| format!("{need:?}").to_lowercase()).collect();
        text += &format!(
            "\n### `{}`\n\n*{}.* {}\n\nFix: {}{}\n\nAffects: {}.\n",
            check.id,
            check.what,
            cell(check.why),
            cell(check.fix),
            if check.reboot { " Needs a reboot." } else { "" },
            if needs.is_empty() { "nothing by itself".to_owned() } else { needs.join(", ") },
        );
    }
    text
}

/// Compares a file of the repository with what it should be, or writes it.
fn checked_in(path: &str, expected: &str) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ONBEAT_WRITE").is_some() {
        return std::fs::write(path, expected).expect("it is written");
    }
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(text == expected, "{path} is not up to date: run this test with ONBEAT_WRITE=1");
}

#[test]
fn the_page_has_every_check_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, _) = page.split_once(MARK).expect("the mark where the checks begin");
    checked_in("docs/doctor.md", &format!("{before}{MARK}{}", documented()));
}

/// Where the checks begin in the page.
const MARK: &str = "<!-- What follows is made of the checks in crates/machine/src/doctor. -->\n";

#[test]
fn the_examples_for_tests_of_the_command_are_as_they_would_be_saved() {
    let save = |host: &host::Host| {
        let root = host.root();
        Facts::collect(&Machine::below(root.path()), Some(800)).to_json() + "\n"
    };
    let mut host = host::Host::tuned();
    checked_in("crates/cli/tests/doctor/tuned.json", &save(&host));
    host.make_weak();
    checked_in("crates/cli/tests/doctor/weak.json", &save(&host));
}
