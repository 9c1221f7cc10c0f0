//! Rules about the workspace's crates.

use crate::{Finding, Tree};
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Which crate of ours may depend on which (ARCHITECTURE.md, "Edges").
const EDGES: [(&str, &[&str]); 11] = [
    ("onbeat-model", &[]),
    ("onbeat-program", &["onbeat-model"]),
    ("onbeat-plan", &["onbeat-model"]),
    ("onbeat-measure", &["onbeat-model"]),
    ("onbeat-runtime", &["onbeat-model"]),
    ("onbeat-net", &["onbeat-model", "onbeat-runtime"]),
    ("onbeat-host", &["onbeat-model", "onbeat-runtime", "onbeat-net"]),
    ("onbeat-capi", &["onbeat-model", "onbeat-runtime", "onbeat-host"]),
    (
        "onbeat-cli",
        &[
            "onbeat-model",
            "onbeat-program",
            "onbeat-plan",
            "onbeat-measure",
            "onbeat-runtime",
            "onbeat-net",
            "onbeat-host",
        ],
    ),
    ("onbeat-hunt", &[]),
    ("xtask", &["onbeat-hunt"]),
];

/// No crate of the workspace depends on another that it may not know. Dependencies of tests alone
/// are free.
pub(crate) fn edges(tree: &Tree) -> Result<Vec<Finding>> {
    let mut command = MetadataCommand::new();
    command.manifest_path(tree.root.join("Cargo.toml")).no_deps();
    let metadata = command.exec().context("cargo metadata")?;
    let edges: Vec<_> =
        metadata.packages.iter().map(|package| (package.name.to_string(), ours(package))).collect();
    Ok(forbidden(&edges))
}

/// The crates of this repository that `package` needs to be built.
fn ours(package: &Package) -> Vec<String> {
    let built = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
    built.filter(|d| d.path.is_some()).map(|d| d.name.clone()).collect()
}

fn forbidden(edges: &[(String, Vec<String>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, to) in edges {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| name == from) else {
            let message =
                format!("crate `{from}` has no line in ARCHITECTURE.md and xtask's EDGES");
            findings.push(Finding::new("Cargo.toml", None, message));
            continue;
        };
        for to in to.iter().filter(|to| !allowed.contains(&to.as_str())) {
            let message = format!("crate `{from}` must not depend on `{to}`");
            findings.push(Finding::new("Cargo.toml", None, message));
        }
    }
    findings
}

/// Every crate takes the workspace's lints; one that is a workspace of its own cannot.
pub(crate) fn lints(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let manifest: toml::Table = file.text.parse().with_context(|| file.path.clone())?;
        let inherits = manifest.get("lints").and_then(|l| l.get("workspace"));
        let member = manifest.contains_key("package") && !manifest.contains_key("workspace");
        if member && inherits != Some(&toml::Value::Boolean(true)) {
            findings.push(Finding::new(&file.path, None, "add `[lints] workspace = true`"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn edges_that_are_not_in_the_list_are_found() {
        let edge = |from: &str, to: &str| (from.to_owned(), vec![to.to_owned()]);
        assert!(forbidden(&[edge("onbeat-net", "onbeat-model")]).is_empty());
        for (from, to) in [
            ("onbeat-plan", "onbeat-measure"),
            ("onbeat-net", "onbeat-host"),
            ("onbeat-model", "onbeat-runtime"),
            ("onbeat-cli", "onbeat-capi"),
            ("onbeat-new", "onbeat-model"),
        ] {
            assert_eq!(forbidden(&[edge(from, to)]).len(), 1, "{from} → {to}");
        }
    }

    #[test]
    fn a_crate_without_the_workspaces_lints_is_found() {
        let bare = "[package]\nname = 'x'\n";
        let kept = format!("{bare}[lints]\nworkspace = true\n");
        let tree = tree(&[("a/Cargo.toml", bare), ("b/Cargo.toml", &kept)]);
        let findings = lints(&tree).unwrap();
        assert_eq!(findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a/Cargo.toml"]);
    }
}
