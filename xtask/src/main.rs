//! `cargo run -p xtask -- tidy`: the house rules, as checks. `cargo run -p xtask -- mutate`:
//! whether tests notice bounds that are too small. `cargo run -p xtask -- hunt`: random systems
//! with fresh seeds, as long as wanted.

use anyhow::{Result, bail};
use std::process::ExitCode;
use xtask::{RULES, Tree, hunt, mutate, repository_root};

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["tidy"] => tidy(),
        // The second word is what the first was called once.
        ["mutate" | "weaken"] => mutated(""),
        ["mutate" | "weaken", word] => mutated(word),
        ["hunt", ref words @ ..] => {
            let found = hunt::hunt(&repository_root(), &hunt::Request::read(words)?)?;
            Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => bail!("usage: cargo run -p xtask -- tidy, or mutate [WORD], or hunt [KIND] …"),
    }
}

fn mutated(word: &str) -> Result<ExitCode> {
    let survivors = mutate::mutate(&repository_root(), word)?;
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tidy() -> Result<ExitCode> {
    let tree = Tree::read(&repository_root())?;
    let mut found = 0;
    for rule in RULES {
        for finding in (rule.check)(&tree)? {
            println!("{}: {finding}", rule.name);
            found += 1;
        }
    }
    if found > 0 {
        println!("tidy: {found} findings");
        return Ok(ExitCode::FAILURE);
    }
    println!("tidy: {} files, {} rules, no findings", tree.files.len(), RULES.len());
    Ok(ExitCode::SUCCESS)
}
