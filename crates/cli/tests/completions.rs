//! Shells complete what the command understands: bash is asked, of zsh and fish the scripts are
//! looked at.

use crate::common::{onbeat, root, run};
use std::collections::BTreeSet;
use std::process::Command;

fn script(shell: &str) -> String {
    String::from_utf8(run(&["completions", shell], root(), 0).stdout).expect("text")
}

/// The verbs that a help lists.
fn verbs(of: &[&str]) -> BTreeSet<String> {
    let help = onbeat().args(of).arg("--help").output().expect("runs").stdout;
    let help = String::from_utf8(help).expect("text");
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What a verb does may continue in a second line, further to the right.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// What bash makes of a line whose last word is to be completed.
fn completed(words: &[&str]) -> BTreeSet<String> {
    // Bash itself says which function is called for the command.
    let ask = r#"
        source /dev/stdin
        registered=$(complete -p onbeat) || exit 1
        [[ $registered =~ -F\ ([^ ]+) ]] || exit 2
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        "${BASH_REMATCH[1]}" onbeat "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), script("bash")).expect("written");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", ask, "bash", "onbeat"]).args(words);
    bash.stdin(std::fs::File::open(file.path()).expect("the script"));
    let output = bash.output().expect("bash");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{words:?}: {errors}");
    let said = String::from_utf8(output.stdout).expect("text");
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn bash_completes_every_verb_and_none_that_is_hidden() {
    let offered = completed(&[""]);
    let offered: BTreeSet<_> = offered.into_iter().filter(|word| !word.starts_with('-')).collect();
    assert_eq!(offered, verbs(&[]));
    assert!(offered.len() > 15, "{offered:?}");
    assert_eq!(completed(&["che"]), set(&["check"]));
    assert_eq!(completed(&["co"]), set(&["compare", "completions"]));
    for verb in ["measure", "clock", "noise", "tune"] {
        let offered = completed(&[verb, ""]);
        let offered = offered.into_iter().filter(|word| !word.starts_with('-'));
        let offered: BTreeSet<_> = offered.filter(|word| !word.starts_with('[')).collect();
        assert_eq!(offered, verbs(&[verb]), "{verb}");
    }
}

#[test]
fn bash_completes_flags_and_their_values() {
    assert_eq!(completed(&["run", ".", "--all"]), set(&["--all-scenarios"]));
    assert_eq!(completed(&["run", ".", "--time", ""]), set(&["real", "virtual"]));
    assert_eq!(completed(&["new", "x", "--template", "s"]), set(&["substation"]));
    assert_eq!(completed(&["schema", "ta"]), set(&["tasks"]));
    assert_eq!(completed(&["check", "--js"]), set(&["--json"]));
}

#[test]
fn the_scripts_of_zsh_and_fish_have_every_verb() {
    let (zsh, fish) = (script("zsh"), script("fish"));
    assert!(zsh.starts_with("#compdef onbeat"), "{zsh}");
    for verb in verbs(&[]) {
        assert!(zsh.contains(&format!("\n'{verb}:")), "{verb}");
        assert!(fish.contains(&format!(" -a \"{verb}\"")), "{verb}");
    }
    run(&["completions", "csh"], root(), 2);
}
