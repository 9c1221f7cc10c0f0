//! The repository keeps its house rules: one test for each, so that a failure says which.

use xtask::{RULES, Tree, repository_root};

fn holds(name: &str) {
    let rule = RULES.iter().find(|r| r.name == name).expect("a rule of that name");
    let tree = Tree::read(&repository_root()).expect("a readable repository");
    let findings = (rule.check)(&tree).expect("a repository that can be checked");
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{name}:\n{}", lines.join("\n"));
}

macro_rules! rules {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { holds($name); })*

        #[test]
        fn every_rule_has_a_test() {
            assert_eq!(RULES.map(|r| r.name), [$($name),*]);
        }
    };
}

rules! {
    crates_depend_only_on_what_they_may_know: "edges",
    dependencies_come_from_the_registry_under_permitted_licences: "supply",
    crates_that_are_to_be_published_have_what_that_needs: "publishing",
    every_crate_takes_the_workspaces_lints: "lints",
    no_line_is_longer_than_a_hundred_characters: "line-length",
    no_file_is_longer_than_a_thousand_lines: "file-length",
    unsafe_code_is_only_where_the_system_is_called_and_in_tests: "unsafe",
    the_library_reads_the_environment_only_where_it_may_be_believed: "environment",
    the_command_reads_files_in_one_place: "reading",
    pure_crates_take_everything_from_the_caller: "pure",
    times_and_rates_are_integers: "floats",
    nothing_is_left_for_later: "unfinished",
    every_error_code_has_its_section: "error-codes",
    every_dependency_is_justified: "dependencies",
    every_relative_link_leads_somewhere: "links",
    every_link_to_a_part_leads_to_a_heading: "anchors",
    sentences_can_be_read_at_once: "sentences",
    no_retired_word_comes_back: "words",
    every_large_commit_says_why: "commits",
    what_the_map_names_is_there: "map",
    types_have_names_of_their_own: "overloaded",
}
