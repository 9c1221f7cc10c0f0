//! The committed header is the one that the sources give. `ONBEAT_UPDATE=1` rewrites it.

use std::path::Path;

#[test]
fn the_committed_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::generate_with_config(root, config).expect("bindings");
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = without_safety_sections(&String::from_utf8(text).expect("UTF-8"));
    let text = with_version(&text);
    let path = root.join("include/onbeat.h");
    if std::env::var_os("ONBEAT_UPDATE").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("include/onbeat.h");
    assert!(committed == text, "run `ONBEAT_UPDATE=1 cargo test -p onbeat-capi --test header`");
}

/// The version comes from Cargo's manifest, to which cbindgen's configuration cannot refer.
fn with_version(header: &str) -> String {
    header
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", env!("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", env!("CARGO_PKG_VERSION_PATCH"))
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
}

/// C has no use for what Rust wants said: that pointers are NULL or valid stands in the preamble.
fn without_safety_sections(header: &str) -> String {
    let mut kept = String::new();
    let mut skipping = false;
    for line in header.lines() {
        skipping |= line.trim() == "* # Safety";
        if line.trim() == "*/" {
            skipping = false;
        }
        if skipping {
            continue;
        }
        if line.trim() == "*/" && kept.ends_with(" *\n") {
            kept.truncate(kept.len() - " *\n".len());
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}
