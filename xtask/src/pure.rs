//! Rules about what crates do without: the world around them, and floating point.

use crate::sources::has_word;
use crate::{File, Finding, Tree};
use anyhow::Result;

/// Crates to which the caller passes time, octets and seeds.
const PURE: [&str; 11] = [
    "bounds",
    "configuration",
    "description",
    "measure",
    "model",
    "net",
    "network-code",
    "program",
    "report",
    "runtime",
    "timing",
];

/// The ways to a file, a process, the environment, a clock or a socket that need no dependency.
const WORLD: [&str; 9] = [
    "std::env",
    "std::fs",
    "std::os",
    "std::process",
    "std::time",
    "io::stdin",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
];

/// Where floating point is: linear programs, whose results are certified in integers, the
/// probabilities of comparisons, and what users' messages have in their fields.
const FLOATS: [&str; 3] =
    ["crates/bounds/src/fifo/", "crates/measure/src/compare/", "crates/cli/src/messages/fields.rs"];

/// The pure crates read no clock, file, socket, environment or process. Their tests may.
pub(crate) fn world(tree: &Tree) -> Result<Vec<Finding>> {
    let is_pure =
        |file: &&File| PURE.iter().any(|name| is_of(file, &format!("crates/{name}/src/")));
    let message = "this crate is pure: take it from the caller";
    Ok(tree.files.iter().filter(is_pure).flat_map(|file| having(file, &WORLD, message)).collect())
}

/// Times, rates and statistics are integers.
pub(crate) fn floats(tree: &Tree) -> Result<Vec<Finding>> {
    let may = |file: &&File| FLOATS.iter().any(|place| file.path.starts_with(place));
    let sources = tree.files.iter().filter(|file| is_of(file, "crates/") && !may(file));
    let sources = sources.filter(|file| file.path.contains("/src/"));
    let message = "times, rates and statistics are integers";
    Ok(sources.flat_map(|file| having(file, &["f32", "f64"], message)).collect())
}

fn is_of(file: &File, place: &str) -> bool {
    file.path.starts_with(place) && file.is(&[".rs"]) && !file.is(&["tests.rs"])
}

/// The lines of the product, comments aside, that have one of the words.
fn having(file: &File, words: &[&str], message: &str) -> Vec<Finding> {
    let product = file.lines().take_while(|(_, line)| *line != "mod tests {");
    let code = product.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = code.filter(|(_, line)| words.iter().any(|word| has_word(line, word)));
    found.map(|(number, _)| Finding::new(&file.path, number, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn pure_crates_have_no_way_to_the_world() {
        let count = |path: &str, text: &str| world(&tree(&[(path, text)])).expect("checked").len();
        assert_eq!(count("crates/net/src/a.rs", "use std::fs;\nlet a = std::env::var(b);\n"), 2);
        assert_eq!(count("crates/net/src/a.rs", "// std::fs\nmod tests {\nuse std::fs;\n"), 0);
        assert_eq!(count("crates/net/src/b/tests.rs", "use std::fs;\n"), 0);
        assert_eq!(count("crates/run/src/a.rs", "use std::fs;\n"), 0);
        assert_eq!(count("crates/runtime/src/a.rs", "use std::net::IpAddr;\n"), 0);
    }

    #[test]
    fn floating_point_is_in_two_places() {
        let count = |path: &str| {
            floats(&tree(&[(path, "fn a(b: f64) -> u32 { 0 }\n")])).expect("checked").len()
        };
        assert_eq!(count("crates/model/src/time.rs"), 1);
        assert_eq!(count("crates/bounds/src/fifo/linear.rs"), 0);
        assert_eq!(count("crates/bounds/benches/fifo.rs"), 0);
    }
}
