//! `cargo run -p xtask -- tidy`: the house rules, as checks.

use anyhow::{Result, bail};
use std::process::ExitCode;
use xtask::{RULES, Tree, repository_root};

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        bail!("usage: cargo run -p xtask -- tidy");
    }
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
